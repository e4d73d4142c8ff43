"""What an HTTP response says: a reply, or a classified failure.

The OpenAI SDK returns HTTP 200 with an error body, HTML or broken JSON as if it were a reply; here
the raw body counts.
"""

import contextlib
import json
import math
import re
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from itertools import accumulate
from typing import Any

from selfeval.errors import is_amount, is_count
from selfeval.providers import ends
from selfeval.providers.models import Model
from selfeval.providers.request import Response, readable
from selfeval.reading import thinking
from selfeval.secrets import SHORTEST, redact

# decimals of a log-probability that are kept; all of them would be a third of a recording
DIGITS = 6
NO_USE = re.compile(  # OpenRouter, Gemini and Anthropic say it by a 400
    "not a valid model|invalid model|api key not valid|credit balance is too low", re.I
)
EMPTY = re.compile(  # of an account
    "quota|balance|billing|credit|payment|spending|arrears|recharge|余额|欠费", re.I
)
RATE = re.compile(  # of requests, which some tell in the words of an empty account
    r"rate.?(?:limit|quota)|per.?(?:second|minute|hour|day)|throttl|too.many.requests"
    "|(?:retry|try again) (?:in|after)|resource_exhausted|check quota",
    re.I,
)
REFUSES = re.compile(
    "unsupported|n[o't]+ support|deprecated|unrecognized|only the default|unknown|unexpected|extra"
    "|not (?:permitted|allowed|available|enabled|recognized|valid)|forbidden|disabled|cannot"
    "|invalid|must|should|(?:greater|less) than",
    re.I,
)
# what words in the place of an error's number stand for, by OpenAI's names
NUMBERS = {"insufficient_quota": 429, "rate_limit_exceeded": 429, "invalid_api_key": 401}
NEEDED = {
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "provider",
    "likelihood",
}
TOGETHER = ("logprobs", "top_logprobs")
VERSION = re.compile(r"/v\d")  # of an API, in a base URL
START = 60  # letters of an answer that is no completion, which are shown
PAGE = re.compile("<(!doctype|html|head|body|script|title)", re.I)
EVENTS = re.compile("(data|event|id|retry)?:")  # where one reply in JSON was asked for


def _finite(text: str) -> float | None:
    """Read a number that no file can hold (NaN, 1e999) as null.

    It costs one field, not the reply around it.
    """
    return value if math.isfinite(value := float(text)) else None


class Failure(Exception):
    """An attempt that brought no reply.

    outcome: `transient`, `throttled`, `rejected` (this request), `fatal`, or `given_up` (nothing
    was sent, the model had failed before). wait: seconds that the provider asks for. status: of the
    HTTP response, where there is one. from_api: its body says what is wrong as APIs do, in JSON.
    """

    status: int | None = None
    from_api = True
    named: tuple[str, ...] = ()

    def __init__(self, outcome: str, detail: str, wait: float | None = None):
        # some echo the key
        self.outcome = outcome
        self.detail = readable(redact(detail))
        self.wait = wait
        super().__init__(self.detail)


class NoEndpoint(Failure):
    """An answer by no chat endpoint, such as a web page: it would be the same at the next attempt.

    is_stream: it is a reply after all, in events, and was billed.
    """

    def __init__(self, status: int, fault: str, is_stream: bool = False):
        super().__init__("fatal", f"HTTP {status}: {fault}")
        self.status = status
        self.is_stream = is_stream


class Filtered(Failure):
    """An error that says that the prompt was filtered: an answer to this text, and no fault."""


class Again(Failure):
    """A call that is to be claimed and sent once more: otherwise, or since it never was sent."""


def read_reply(response, model: Model, **more) -> Response:
    """Return the reply in an HTTP response, with `more` of its fields.

    Raises `Failure` where there is none. What is not of the usual shape around the text is passed
    over.
    """
    try:
        body = read_body(response, model.provider.read_secrets())
    except Filtered as failure:
        ident = response.headers.get("x-request-id")
        said = {"finish_reason": "content_filter", "error": failure.detail, "request_id": ident}
        return Response(status="filtered", cost=0.0, **said, **more)  # no usage is told of it
    choice = body["choices"][0]
    message = choice["message"]
    finish = choice.get("finish_reason")
    in_parts, content = thinking.of_parts(message.get("content"))
    marked, content = thinking.split(content)
    apart = _text(message.get("reasoning")) or _text(message.get("reasoning_content"))
    refusal = message.get("refusal")
    ended = ends.status_of(finish)
    if refusal:
        content = content or str(refusal)
        status = "refusal"
    elif ended in ("filtered", "length", "refusal"):
        status = ended
    else:
        status = "ok" if content.strip() else "empty"
    usage = _usage(as_dict(body.get("usage")))
    return Response(
        text=content,
        status=status,
        finish_reason=None if finish is None else str(finish),
        usage=usage,
        cost=_cost(as_dict(body.get("usage")), usage, model),
        served_model=_text(body.get("model")),
        served_by=_text(body.get("provider")),
        request_id=_text(body.get("id")) or response.headers.get("x-request-id"),
        reasoning=apart or in_parts or marked,
        logprobs=_logprobs(as_dict(choice.get("logprobs")).get("content"), content),
        **more,
    )


def read_body(response, secrets: Iterable[str] = ()) -> dict:
    """Return the parsed body of an HTTP response that holds a choice.

    Raises a classified `Failure` for any other. secrets: the provider's, which do not come back in
    the body.
    """
    body = _parsed(response, secrets)
    status = response.status_code
    if 300 <= status < 400:
        raise NoEndpoint(status, redirection(response.headers))
    text = response.text.lstrip("\ufeff").strip()  # some servers begin with a mark
    if status == 200 and (EVENTS.match(text) or text.endswith("[DONE]")):
        fault = f"a stream of events and no completion; it begins {text[:START]!r}"
        raise NoEndpoint(status, fault, is_stream=True)
    if not_ours := _no_endpoint(status, text, body):
        raise NoEndpoint(status, not_ours)
    fields = as_dict(body)
    error = fields.get("error")
    if status == 200 and error is None:
        return _with_choice(body)
    if error is None and {"message", "detail"} & fields.keys():
        error = body
    if not isinstance(error, dict):
        error = {"message": error or response.text[:200]}
    if status == 200:  # an error that travels as a success carries its own number
        code = str(error.get("code", ""))
        status = int(code) if code.isdigit() else NUMBERS.get(code, 502)
    failure = classify(status, error, response.headers)
    failure.status = status
    failure.from_api = bool({"error", "message"} & fields.keys())
    failure.named = named_in(body)
    raise failure


def _parsed(response, secrets: Iterable[str]):
    """Return what a body holds as JSON, without secrets; None where it holds none."""
    try:
        text = response.content.decode("utf-8-sig")
        body = json.loads(text, parse_constant=lambda name: None, parse_float=_finite)
        for secret in secrets:
            if secret in text or "\\u" in text or "\\/" in text:  # as it is, or in escapes
                body = _without(secret, body)
    except (ValueError, RecursionError):  # also UnicodeDecodeError
        return None
    if isinstance(body, list) and len(body) == 1:  # Gemini wraps its errors in a list
        return body[0]
    return body


def _no_endpoint(status: int, text: str, body) -> str | None:
    """Return how an answer shows that no chat endpoint gave it, with its beginning, or None.

    An empty body, broken JSON and an empty list of choices come from endpoints that fail for a
    moment, as do the pages that a proxy shows with a status of 500 or more. An error in JSON is
    classified by its number.
    """
    begins = f"and no completion; it begins {text[:START]!r}"
    if status == 405:
        return "the address takes no chat requests"
    if status not in (200, 400):
        return None
    if PAGE.match(text):
        return f"a web page {begins}"
    if status == 200 and body is not None and not {"choices", "error"} & as_dict(body).keys():
        return f"JSON {begins}"
    if status == 200 and text and text[0] not in "{[":
        return f"a text {begins}"
    return None


def redirection(headers) -> str:
    """Say where an answer sends us, which we do not follow.

    Key and prompt go to the address in use alone.
    """
    address = headers.get("location")
    return f"a redirection to another address{f', {address[:200]}' if address else ''}"


def _without(key: str, body):
    """Return a body without a key that a server echoes: it is about to be stored.

    `x`, `EMPTY` and `ollama`, as own servers take them, are words and no secrets.
    """
    if len(key) < SHORTEST or not (re.search(r"\d", key) or len(key) >= 2 * SHORTEST):
        return body
    return json.loads(json.dumps(body, ensure_ascii=False).replace(key, "[key]"))


def _with_choice(body) -> dict:
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = as_dict(choices[0]) if isinstance(choices, list) and choices else {}
    ended = ends.status_of(choice.get("finish_reason"))
    if ended in ("filtered", "length", "refusal"):
        choice["message"] = choice.get("message") or {}  # Gemini leaves it out
    message = choice.get("message")
    content = as_dict(message).get("content")
    if not isinstance(message, dict) or not isinstance(content, str | list | dict | None):
        raise Failure("transient", "HTTP 200 without a choice")
    if ended == "error" or choice.get("error"):
        raise Failure(
            "transient",
            f"the model's server failed while answering: {choice.get('error') or 'no details'}",
        )
    return body


def classify(status: int, error: dict, headers) -> Failure:
    """Return what an error answer means for this call.

    Wait, try again, give up the request, or give up the model.
    """
    message = f"HTTP {status}: {_message(error)}"
    if status not in (401, 402, 404, 429) and ends.is_filter(error, message):
        return Filtered("rejected", message)
    wait = retry_after(headers, error)
    if status == 429 and _is_account_empty(error, message, wait):
        return Failure("fatal", message)
    if status == 429 or (status in (503, 529) and wait is not None):
        return Failure("throttled", message, wait)
    if status in (401, 402, 403, 404) or (status == 400 and NO_USE.search(message)):
        return Failure("fatal", message)
    if 400 <= status < 500 and status not in (408, 409, 425):
        return Failure("rejected", message)
    return Failure("transient", message)


def _message(error: dict) -> str:
    """Return what an error says, with what a router was told by the server behind it."""
    message = error.get("message") or error.get("detail") or error.get("code") or "no message"
    said = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    behind = as_dict(error.get("metadata")).get("raw")
    return f"{said}: {behind}" if behind else said


def _is_account_empty(error: dict, message: str, wait: float | None) -> bool:
    """Tell whether an account has nothing left.

    Many a rate limit is told in such words, but it also says that it is one, or when to try again.
    """
    code = f"{error.get('code')} {error.get('type')} {error.get('status')}"
    if "insufficient_quota" in code:
        return True
    if RATE.search(f"{code} {message}"):
        return False
    return bool(EMPTY.search(code if wait else f"{code} {message}"))


def retry_after(headers, error: dict) -> float | None:
    """Return the seconds a provider asks to wait, from its headers or its body, or None.

    Forms: `retry-after` in seconds or as a date, and OpenRouter's reset time (milliseconds since
    the epoch) inside the error's metadata. An unreadable time is the same as none.
    """
    reset: Any = as_dict(as_dict(error.get("metadata")).get("headers")).get("X-RateLimit-Reset")
    asked = headers.get("retry-after") or ""
    with contextlib.suppress(ValueError):
        return max(0.0, float(asked))
    with contextlib.suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    with contextlib.suppress(TypeError, ValueError):
        return max(0.0, float(reset) / 1000 - time.time())
    return None


def named_in(body) -> tuple[str, ...]:
    """Return the words of all `param` and `loc` (["body", "seed"]) in an error's body."""
    words: list[str] = []
    left = [body]
    for value in left:  # which grows
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            words += re.findall(r"\w+", f"{value.get('param')} {value.get('loc')}")
            left += [part for part in value.values() if isinstance(part, dict | list)]
    return tuple(words)


def adaptation(failure: Failure, body: dict) -> dict | None:
    """Return {parameter: its new name or value, None to leave it out} where an error blames one.

    Never left out is what decides who answers, and how much a reply may cost.
    """
    message = failure.detail
    refuses = REFUSES.search(message)
    if refuses and "max_tokens" in body and "max_completion_tokens" in message:
        return {"max_tokens": "max_completion_tokens"}
    words = [*failure.named, *re.findall(r"\w+", message if refuses else "")]
    blamed = next((word for word in words if word in body and word not in NEEDED), None)
    if blamed == "top_logprobs":
        numbers = [int(number) for number in re.findall(r"\b\d{1,2}\b", message)]
        fewer = [number for number in numbers if 0 < number < body[blamed]]
        if fewer:  # "must be at most 5"
            return {blamed: max(fewer)}
    if blamed in TOGETHER:
        return dict.fromkeys(TOGETHER)
    return {blamed: None} if blamed else None


def as_dict(value) -> dict:
    """Return a part of an answer that should be an object, {} where it is none."""
    return value if isinstance(value, dict) else {}


def _text(value) -> str | None:
    return value if isinstance(value, str) else None


def _usage(raw: dict) -> dict:
    counts = {
        "prompt": raw.get("prompt_tokens"),
        "completion": raw.get("completion_tokens"),
        "cached": as_dict(raw.get("prompt_tokens_details")).get("cached_tokens"),
        "reasoning": as_dict(raw.get("completion_tokens_details")).get("reasoning_tokens"),
    }
    return {name: count for name, count in counts.items() if is_count(count)}


def _cost(raw: dict, usage: dict, model: Model) -> float | None:
    if model.provider.embedded:
        return 0.0
    if is_amount(raw.get("cost")):
        return float(raw["cost"])
    if model.price is None or "prompt" not in usage or "completion" not in usage:
        return None
    in_dollars = usage["prompt"] * model.price["input"]
    out_dollars = usage["completion"] * model.price["output"]
    return (in_dollars + out_dollars) / 1e6


def _logprobs(tokens, content: str) -> list | None:
    """Return the tokens of a reply without thinking before it, to `DIGITS` decimals."""
    try:
        found = []
        for token in tokens:
            shown = _alternatives(token.get("top_logprobs") or [])
            found.append((token["token"], round(token["logprob"], DIGITS), shown))
        start = "".join(token for token, *_ in found).rfind(content)
        if start <= 0:  # nothing before it, or tokens that are parts of characters
            return found or None
        ends = accumulate(len(token) for token, *_ in found)
        return [each for each, end in zip(found, ends, strict=True) if end > start] or None
    except (TypeError, KeyError, AttributeError):
        return None


def _alternatives(shown: list) -> dict[str, float]:
    """Return {token: log-probability}.

    One that a grammar forbids has null or -Infinity, and is none.
    """
    found = {}
    for one in shown:
        if isinstance(one["logprob"], int | float):
            found[one["token"]] = round(one["logprob"], DIGITS)
    return found
