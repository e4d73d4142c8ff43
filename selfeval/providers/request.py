"""What is asked, what comes back, and what makes two requests the same.

Also what a request may cost, and the texts of simulated models."""

import hashlib
import inspect
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from selfeval.errors import InputError, SelfevalError, is_amount, is_count
from selfeval.providers.models import LIMITS, Model, models
from selfeval.reading import thinking

UNANSWERED = ("empty", "filtered", "length")  # statuses of replies that may be asked for again
STORED = ("ok", "refusal", *UNANSWERED)  # the statuses of what is stored; an error is no reply
MOST_AGAIN = 9  # times that a request is asked again
SURROGATES = re.compile("[\ud800-\udfff]")
GIVEN = "; a function is given messages, [{'role': 'user', 'content': 'Hello'}], and not a text"
BYTES = 3  # of a token: fewer than nearly all texts have, so that what is reserved suffices
_BLOCK = re.compile(
    r"^(?:Read the text|(?P<title>[^\n]+),) between the two lines (?P<mark>TEXT "
    r"[0-9a-f]{8,64})[.:]\n\n"
    r"(?P=mark)\n(?P<text>.*?)\n(?P=mark)$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Request:
    """A question to one model.

    sample: the number of the repeat. seed: only sent to providers that take one. cut_counts: what
    was cut off counts as an answer (a text does), so that it is not asked for again.
    """

    model: Model
    messages: list[dict]
    parameters: dict = field(default_factory=dict)
    sample: int = 0
    seed: int = 0
    cut_counts: bool = False

    def full(self) -> tuple[list[dict], dict]:
        """Return messages and parameters as sent.

        With the model's system prompt, defaults and exclusions.
        """
        messages = self.messages
        own = self.model.parameters
        if self.model.system:
            system = [self.model.system]
            rest = messages
            if messages[0]["role"] == "system":
                system = [self.model.system, messages[0]["content"]]
                rest = messages[1:]
            messages = [{"role": "system", "content": "\n\n".join(system)}, *rest]
        parameters = {}
        for name, value in (own | self.parameters).items():
            is_excluded = name in own and own[name] is None
            if value is not None and not is_excluded:
                parameters[name] = value
        if self.model.provider.seeded:
            parameters["seed"] = self.seed * 1_000_000 + self.sample
        return messages, parameters

    @cached_property
    def identity(self) -> str:
        """Return everything that can change the reply, and nothing else, as canonical JSON."""
        messages, parameters = self.full()
        asked = {"messages": messages, "parameters": parameters, "sample": self.sample}
        asked["provider"] = self.model.provider.identity()
        asked["model"] = self.model.api_name
        return canonical(asked)

    @cached_property
    def key(self) -> str:
        """Return the request's identity as the store's key."""
        return key_of(self.identity)


def read_again(text: str) -> tuple[list[str], int]:
    """Return statuses to ask again for, and how often, of a text such as "empty, length, 3"."""
    statuses = []
    numbers = []
    for part in str(text).split(","):
        part = part.strip()
        if part.isdecimal():
            numbers.append(int(part))
        elif part:
            statuses.append(part)
    times = numbers[0] if numbers else 1
    are_known = isinstance(text, str) and set(statuses) <= set(UNANSWERED)
    is_number_alone = bool(numbers) and not statuses
    if not are_known or is_number_alone or len(numbers) > 1 or not 1 <= times <= MOST_AGAIN:
        raise InputError(
            f"`again` must name statuses ({', '.join(UNANSWERED)}), separated by commas, with at "
            f"most one number from "
            f"1 to {MOST_AGAIN} of how often, got {text!r}."
        )
    return statuses, times


def readable(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, which no file and no database takes."""
    return text if text.isascii() else SURROGATES.sub("\ufffd", text)


@dataclass(frozen=True)
class Response:
    """One reply, or why there is none.

    status: `ok`, `refusal`, `filtered`, `length` (cut off), `empty`, or `error` (no reply at all).

    usage: tokens (prompt, completion, cached, reasoning). cost: US dollars, None where unknown.
    latency: seconds of the attempt that succeeded. logprobs: per token of the reply (token,
    log-probability, {alternative: log-probability}). adapted: parameters sent otherwise than asked:
    under another name, left out (None), or with a larger allowance (a number). earlier: the
    statuses of earlier replies to the same request, oldest first, where it was asked again.
    """

    text: str = ""
    status: str = "ok"
    finish_reason: str | None = None
    usage: dict = field(default_factory=dict)
    cost: float | None = None
    served_model: str | None = None
    served_by: str | None = None
    request_id: str | None = None
    latency: float = 0.0
    attempts: int = 0
    reasoning: str | None = None
    logprobs: list | None = None
    adapted: dict | None = None
    error: str | None = None
    earlier: list[str] = field(default_factory=list)

    def __post_init__(self):
        for name, value in vars(self).items():
            if isinstance(value, str):
                vars(self)[name] = readable(value)

    def to_dict(self) -> dict:
        """Return the fields that hold something, for JSON."""
        fields = vars(self).items()
        return {name: value for name, value in fields if value not in (None, {}, [])}

    @property
    def only_thought(self) -> bool:
        """Tell whether a model that had no room for thinking spent on it all that it was given."""
        changed = self.adapted or {}
        had_room = any(isinstance(changed.get(name), int) for name in LIMITS)
        return self.status == "length" and not self.text.strip() and not had_room

    def without_thinking(self) -> "Response":
        """Return the response with thinking that a function left in its text in `reasoning`."""
        thought, said = thinking.split(self.text)
        if said == self.text:
            return self
        status = "empty" if self.status == "ok" and not said.strip() else self.status
        return replace(self, text=said, status=status, reasoning=self.reasoning or thought)

    def tokens(self) -> int:
        """Return the tokens of prompt and reply, 0 where the provider does not count them."""
        return self.usage.get("prompt", 0) + self.usage.get("completion", 0)

    @classmethod
    def from_dict(cls, values: dict) -> "Response":
        """Return the response that `to_dict` wrote; fields of other versions are passed over."""
        known = values.keys() & cls.__dataclass_fields__.keys()
        return cls(**{name: values[name] for name in known})


def is_computed(model: Model) -> bool:
    """Tell whether the reply is computed and not stored: of a simulated model, or a function."""
    return model.call is not None or model.provider.name == "sim"


async def ask_callable(function: Callable, messages: list[dict], parameters: dict) -> Response:
    """Return the response of a Python callable that answers with a Response or a text.

    An exception of its own is a response with status `error`: it does not cost the other replies of
    the batch.
    """
    try:
        answer = function(messages, **parameters)
        answer = await answer if inspect.isawaitable(answer) else answer
        if isinstance(answer, str):
            return Response(answer, "ok" if answer.strip() else "empty")
        if isinstance(answer, Response):
            if answer.status != "error":
                check_response(answer.to_dict(), len(answer.earlier))
            return answer
        said = f"TypeError: the function must return a text or a Response, got {answer!r:.80}"
        return Response(status="error", error=said)
    except SelfevalError:
        raise
    except Exception as error:
        given = GIVEN * isinstance(error, AttributeError | TypeError)
        return Response(status="error", error=f"{type(error).__name__}: {error}{given}")


def check_response(response, number: int) -> None:
    """Raise `ValueError` unless the client could have stored this reply with this number."""
    if not isinstance(response, dict) or not isinstance(response.get("text"), str):
        raise ValueError("a response has a `text` that is text")
    if (status := response.get("status", "ok")) not in STORED:
        raise ValueError(f"the status of a response is one of {', '.join(STORED)}, got {status!r}")
    earlier = response.get("earlier", [])
    if (
        not isinstance(earlier, list)
        or len(earlier) != number
        or not all(each in UNANSWERED for each in earlier)
    ):
        raise ValueError(
            f"a reply with the number {number} has {number} statuses in `earlier`, got "
            f"{earlier!r:.40}"
        )
    for name in ("cost", "latency", "attempts"):
        if (value := response.get(name)) is not None and not is_amount(value):
            raise ValueError(
                f"the {name} of a response is a finite number of at least 0, got {value!r:.40}"
            )
    usage = response.get("usage", {})
    if not isinstance(usage, dict) or not all(map(is_count, usage.values())):
        raise ValueError("the usage of a response holds whole numbers of at least 0")
    json.dumps(response, allow_nan=False)


def estimate(messages: list[dict], parameters: dict, model: Model) -> tuple[int, int]:
    """Return the tokens of a prompt, and the most that its reply may have.

    As far as that can be told before.
    """
    unlimited = model.provider.answer_tokens + model.reasoning * model.reasoning_tokens
    prompt = 0
    for message in messages:
        content = str(message.get("content")).encode(errors="replace")
        prompt += len(content) // BYTES + 8
    return prompt, parameters.get("max_tokens") or parameters.get(
        "max_completion_tokens"
    ) or unlimited


# what makes two requests the same


def canonical(request: dict | list) -> str:
    """Return the request as JSON, equal for equal requests (keys sorted, 1.0 as 1)."""

    def plain(value):
        if isinstance(value, dict):
            return {str(k): plain(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    try:
        return json.dumps(plain(request), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"A request holds texts, finite numbers, lists and dictionaries alone: {error}."
        ) from error


def key_of(canonical_request: str) -> str:
    """Return the store's key of a request: the SHA-256 of its canonical JSON."""
    return hashlib.sha256(canonical_request.encode()).hexdigest()


def stored_key(key: str, number: int) -> str:
    """Return under which key a reply is stored.

    The request's own, with a number behind it where it was asked again.
    """
    return f"{key} {number}" if number else key


def request_key(key: str) -> str:
    """Return the request's own key of a key under which a reply is stored."""
    return re.sub(r" [1-9]$", "", key)


# messages, which every evaluation puts its questions together from


def user(text: str) -> list[dict]:
    """Return a conversation of one user turn."""
    return [{"role": "user", "content": text}]


def mark_of(text: str) -> str:
    """Return a line that a text does not contain.

    Eight digits of its own hash, or more where it was made to hold them. Such a text takes some
    billion tries, and every other keeps the mark that stored requests have.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    marks = (f"TEXT {digest[:length]}" for length in (8, 16, 32))
    return next((mark for mark in marks if mark not in text), f"TEXT {digest}")


def fenced(text: str) -> str:
    """Return a text between two equal lines that it does not contain."""
    mark = mark_of(text)
    return f"Read the text between the two lines {mark}.\n\n{mark}\n{text}\n{mark}\n\n"


def titled(title: str, text: str) -> str:
    """Return a text with its title, between two equal lines that it does not contain."""
    mark = mark_of(text)
    return f"{title}, between the two lines {mark}:\n\n{mark}\n{text}\n{mark}\n\n"


def blocks(question: str) -> list[tuple[str, str]]:
    """Return (title, text) of every text that a question shows.

    The title of a lone text is empty.
    """
    matches = _BLOCK.finditer(question)
    return [(match["title"] or "", match["text"]) for match in matches]


def choice_format(choices: Mapping[str, Sequence]) -> dict:
    """Return a `response_format` for a JSON object with one of the options in each field."""
    kinds = {str: "string", int: "integer"}
    fields = {}
    for name, options in choices.items():
        kind = kinds[type(options[0])]
        fields[name] = {"type": kind, "enum": list(options)}
    return object_format(next(iter(choices)), fields)


def object_format(name: str, fields: dict) -> dict:
    """Return a `response_format` whose reply is a JSON object with these fields and no others."""
    schema = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


# what simulated models write, and how they know whose text they see

WORDS = (
    "river morning engine garden letter window market silver quiet bridge winter forest story "
    "paper coffee signal "
    "teacher harbour village copper music season number corner shadow candle journey kitchen "
    "planet winding gentle "
    "narrow early patient bright hollow distant common curious steady open careful plain "
    "sudden ordinary"
).split()
VERBS = (
    "keeps follows carries changes opens remembers crosses gathers measures answers leaves repeats"
).split()


def seeded(*parts: str) -> random.Random:
    """Return a generator that is seeded by texts."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return random.Random(int.from_bytes(digest[:8]))


def write(model: Model, question: str, draw: random.Random) -> str:
    """Write a text with the model's tell, of as many words as the question asks for."""
    wanted = re.search(r"(\d+) words", question)
    words: list[str] = []
    length = int(wanted[1]) if wanted else 60
    while len(words) < length:
        first, second, third = draw.sample(WORDS, 3)
        words += ["The", first, second, draw.choice(VERBS), "a", third, tell(model.id) + "."]
    return " ".join(words)


@cache
def tell(author: str) -> str:
    """Return the word that an author's texts carry: four syllables from a hash of its id."""
    digest = hashlib.sha256(author.encode()).digest()
    syllables = []
    for first, second in zip(digest[0:8:2], digest[1:8:2], strict=True):
        consonant = "bdfgklmnprstvz"[first % 14]
        syllables.append(consonant + "aeiou"[second % 5])
    return "".join(syllables)


def author_of(text: str) -> str | None:
    """Return the id of the simulated author whose tell stands in a text, or None."""
    for model in models().values():
        if model.provider.name == "sim" and tell(model.id) in text:
            return model.id
    return None
