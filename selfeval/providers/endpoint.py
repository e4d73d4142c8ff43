"""One provider in one event loop.

Who may be asked now, how often, with which parameters, and what its answer says. The OpenAI SDK
returns HTTP 200 with an error body, HTML or broken JSON as if it were a reply; here the raw body
counts.
"""

import asyncio
import contextlib
import errno
import json
import math
import random
import re
import time
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from itertools import accumulate
from typing import Any

from selfeval.bounds import REPLY, unpacked_reply
from selfeval.errors import is_amount, is_count
from selfeval.providers import embedded, ends
from selfeval.providers.addresses import is_here
from selfeval.providers.models import Model, Provider
from selfeval.providers.request import Response, ask_callable, readable
from selfeval.providers.store import Ceiling, Store
from selfeval.reading import thinking
from selfeval.secrets import SHORTEST, redact

# of one call, where they end as `transient` or `throttled`; one that ends otherwise is the last
ATTEMPTS = 12
LEAST = 0.1  # seconds that an attempt needs
MAX_PAUSE = 600.0  # seconds; a provider that asks for more is given up for this run
UNPROVEN = 3  # failed calls after which a model that never answered is given up
IN_A_ROW = 8  # failed calls after which a model that did answer is given up
LAG = (
    1.0  # seconds of unused rate that may be made up for, or short sleeps would cost a share of it
)
DIGITS = (
    6  # decimals of a log-probability that are kept; all of them would be a third of a recording
)
STALE = 900.0  # seconds ahead that no rate leads to: the clock was set back
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
NEEDED = {
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "provider",
    "likelihood",
    "embedding",
}
TOGETHER = ("logprobs", "top_logprobs")
VERSION = re.compile(r"/v\d")  # of an API, in a base URL
EMBEDDED = 6  # decimals of an embedding that are kept
START = 60  # letters of an answer that is no completion, which are shown
PAGE = re.compile("<(!doctype|html|head|body|script|title)", re.I)
EVENTS = re.compile("(data|event|id|retry)?:")  # where one reply in JSON was asked for


# what an HTTP response says: a reply, or a classified failure


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
        self.outcome, self.detail, self.wait = (
            outcome,
            readable(redact(detail)),
            wait,
        )  # some echo the key
        super().__init__(self.detail)


class NoEndpoint(Failure):
    """An answer by no chat endpoint, such as a web page: it would be the same at the next attempt.

    is_stream: it is a reply after all, in events, and was billed.
    """

    def __init__(self, status: int, fault: str, is_stream: bool = False):
        super().__init__("fatal", f"HTTP {status}: {fault}")
        self.status, self.is_stream = status, is_stream


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
        body = read_body(response, model.provider.read_key() or "")
    except Filtered as failure:
        ident = response.headers.get("x-request-id")
        said = {"finish_reason": "content_filter", "error": failure.detail, "request_id": ident}
        return Response(status="filtered", cost=0.0, **said, **more)  # no usage is told of it
    choice = body["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    in_parts, content = thinking.of_parts(message.get("content"))
    marked, content = thinking.split(content)
    apart = _text(message.get("reasoning")) or _text(message.get("reasoning_content"))
    refusal, ended = message.get("refusal"), ends.status_of(finish)
    if refusal:
        content, status = content or str(refusal), "refusal"
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


def read_body(response, key: str = "") -> dict:
    """Return the parsed body of an HTTP response that holds a choice.

    Raises a classified `Failure` for any other. key: the provider's, which does not come back in
    the body.
    """
    body = _parsed(response, key)
    status = response.status_code
    if 300 <= status < 400:
        raise NoEndpoint(status, redirection(response.headers))
    text = response.text.lstrip("\ufeff").strip()  # some servers begin with a mark
    if status == 200 and (EVENTS.match(text) or text.endswith("[DONE]")):
        fault = f"a stream of events and no completion; it begins {text[:START]!r}"
        raise NoEndpoint(status, fault, is_stream=True)
    fault = _no_endpoint(status, text, body)
    if fault:
        raise NoEndpoint(status, fault)
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
        status = int(code) if code.isdigit() else 502
    failure = classify(status, error, response.headers)
    failure.status = status
    failure.from_api = bool({"error", "message"} & fields.keys())
    failure.named = named_in(body)
    raise failure


def _parsed(response, key: str):
    """Return what a body holds as JSON, without the key; None where it holds none."""
    try:
        text = response.content.decode("utf-8-sig")
        body = json.loads(text, parse_constant=lambda name: None, parse_float=_finite)
        body = _without(key, body)
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
    """Return a body without the key, where a server echoes it: it is about to be stored.

    `x`, `EMPTY` and `ollama`, as own servers take them, are words and no secrets.
    """
    if len(key) < SHORTEST or not (re.search(r"\d", key) or len(key) >= 2 * SHORTEST):
        return body
    return json.loads(json.dumps(body, ensure_ascii=False).replace(key, "[key]"))


def _with_choice(body) -> dict:
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    ended = ends.status_of(as_dict(choice).get("finish_reason"))
    if isinstance(choice, dict) and ended in ("filtered", "length", "refusal"):
        choice["message"] = choice.get("message") or {}  # Gemini leaves it out
    message = choice.get("message") if isinstance(choice, dict) else None
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
    reset = as_dict(as_dict(error.get("metadata")).get("headers")).get("X-RateLimit-Reset")
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
    """Return {parameter: new name, or None for leaving it out} where an error blames one.

    Never left out is what decides who answers, and how much a reply may cost.
    """
    message = failure.detail
    refuses = REFUSES.search(message)
    if refuses and "max_tokens" in body and "max_completion_tokens" in message:
        return {"max_tokens": "max_completion_tokens"}
    words = [*failure.named, *re.findall(r"\w+", message if refuses else "")]
    blamed = next((word for word in words if word in body and word not in NEEDED), None)
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
    price = {"cached": model.price["input"]} | model.price
    counts = {
        "input": usage["prompt"],
        "output": usage["completion"],
        "cached": usage.get("cached", 0),
    }
    return (
        sum(counts[part] * price[part] for part in price) - counts["cached"] * price["input"]
    ) / 1e6


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


# the log-likelihood of a given text


async def post_likelihood(client, url, body: dict):
    """Return the response to a request for the log-likelihood of a text.

    Such a request is a conversation that ends with the text as the assistant's message; its
    parameter `likelihood` is the route, which is the provider's in the registry:

    grammar: llama.cpp. The text is tokenised, and a grammar of just these token ids lets the model
    write nothing else. Log-probabilities are before grammar and temperature, so their sum is the
    text's: within 1e-3 of feeding it token by token (tests/test_likelihood.py). The prompt is
    computed anew in each call, since what is cached of it changes rounding, on a text of Qwen by .6
    in -91. Other grammars are wrong routes: on a text of -71.16, one of its letters gives -134.7
    and a JSON schema's `const` -134.0: both let the model spell it with tokens that it would not
    choose.

    prompt_logprobs: vLLM. The log-probabilities of the prompt's last tokens, which are the text.

    The reply is the text, with the log-probability of each of its tokens; without any where one is
    not known: the server of llama.cpp leaves out a token that holds part of a character, and breaks
    off some long texts ("Unexpected empty grammar stack": 1 of 120, of 256 tokens).
    """
    text = body["messages"][-1]["content"]
    sent = {
        name: value for name, value in body.items() if name not in ("likelihood", "temperature")
    }
    if body["likelihood"] == "prompt_logprobs":
        sent |= {
            "prompt_logprobs": 0,
            "max_tokens": 1,
            "add_generation_prompt": False,
            "continue_final_message": True,
        }
        response = await _send(client, url, sent)
        body = read_body(response)
        return _reply_of(response, body, text, _of_prompt(body, text))
    tokenizer = url.copy_with(path=url.path.removesuffix("/v1/chat/completions") + "/tokenize")
    response = await _send(
        client, tokenizer, {"content": text, "add_special": False, "parse_special": False}
    )
    if response.status_code != 200:
        return response
    ids = _token_ids(response)
    sent |= {
        "messages": body["messages"][:-1],
        "grammar": "root ::= " + " ".join(f"<[{i}]>" for i in ids),
    }
    sent |= {"logprobs": True, "top_logprobs": 1, "max_tokens": len(ids) + 1, "cache_prompt": False}
    response = await _send(client, url, sent)
    if response.status_code == 500 and "grammar stack" in response.text:  # it would every time
        return _reply_of(response, {}, text, [])
    body = read_body(response)
    return _reply_of(response, body, text, _of_reply(body, text, len(ids)))


def _token_ids(response) -> list[int]:
    """Return the tokens that llama.cpp's tokenizer gives.

    Raises `NoEndpoint` where something else answered.
    """
    text = response.text.strip()
    if not text:
        raise Failure("transient", "HTTP 200 without tokens")
    try:
        return json.loads(text)["tokens"]
    except (ValueError, KeyError, TypeError):
        raise NoEndpoint(
            response.status_code, f"no tokens of a text; it begins {text[:START]!r}"
        ) from None


async def post_embedding(client, url, body: dict):
    """Return the response to a request for the embedding of a text.

    As a reply that is the vector in JSON.
    """
    sent = {
        "model": body["model"],
        "input": body["messages"][-1]["content"],
        "encoding_format": body["embedding"],
    }
    route = url.copy_with(path=url.path.removesuffix("/chat/completions") + "/embeddings")
    response = await _send(client, route, sent)
    try:
        found = json.loads(response.content)
        vector = [round(float(value), EMBEDDED) for value in found["data"][0]["embedding"]]
    except (ValueError, LookupError, TypeError):
        read_body(response)  # an error is classified as those of replies are
        raise Failure("rejected", "HTTP 200 without an embedding") from None
    found["usage"] = {"completion_tokens": 0} | as_dict(found.get("usage"))
    return _reply_of(response, found, json.dumps(vector), [])


def _route(body: dict):
    """Return how a request is sent: to the chat, or for a likelihood or an embedding."""
    if "likelihood" in body:
        return post_likelihood
    return post_embedding if "embedding" in body else _send


async def _send(client, url, body: dict):
    """Return the response to a request, read up to the most that an answer may have."""
    content = bytearray()
    async with client.stream("POST", url, content=json.dumps(body).encode()) as answer:
        async for part in answer.aiter_raw():
            content += part
            if len(content) > REPLY:
                break
    headers = answer.headers.copy()
    encoding = headers.pop("content-encoding", "")
    headers.pop("content-length", None)
    headers.pop("transfer-encoding", None)
    try:
        unpacked = unpacked_reply(bytes(content), encoding.strip().lower())
    except zlib.error as error:
        raise Failure("transient", f"connection failed: {error}") from error
    except ValueError as error:  # it would be as large the next time
        raise Failure("rejected", str(error)) from error
    return type(answer)(answer.status_code, content=unpacked, headers=headers)


def _reply_of(response, body: dict, text: str, tokens: list[tuple[str, float]]):
    """Return a response whose reply is the text.

    It has its tokens' log-probabilities where all are known.
    """
    found = [{"token": token, "logprob": logprob} for token, logprob in tokens]
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    if all(row["logprob"] is not None for row in found):
        choice["logprobs"] = {"content": found}
    body = {name: body.get(name) for name in ("id", "model", "usage")} | {"choices": [choice]}
    return type(response)(
        200, content=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )


def _of_reply(body: dict, text: str, n: int) -> list[tuple[str, float]]:
    """Return the n tokens and log-probabilities of a reply that a grammar forced.

    None where some are missing.
    """
    choice = body["choices"][0]
    if choice["message"]["content"] != text:
        raise Failure(
            "rejected", f"the server wrote {choice['message']['content']!r:.40} instead of the text"
        )
    rows = (choice.get("logprobs") or {}).get("content") or []
    if choice.get("finish_reason") != "length":  # the last one is the end of the turn
        rows = rows[:-1]
    return [(row["token"], row["logprob"]) for row in rows] if len(rows) == n else []


def _of_prompt(body: dict, text: str) -> list[tuple[str, float]]:
    """Return tokens and log-probabilities of the text that a prompt ends with."""
    rows = [next(iter(entry.values())) for entry in body.get("prompt_logprobs") or () if entry]
    found: list[tuple[str, float]] = []
    for row in reversed(rows):
        found.insert(0, (row["decoded_token"], row["logprob"]))
        if "".join(token for token, _ in found).strip() == text.strip():
            return found
    raise Failure("rejected", "the log-probabilities of the prompt do not end with the text")


# when and how a provider is asked


class Pace:
    """Requests and tokens a minute of one provider.

    What is due next is due for all processes that share the store.
    """

    def __init__(self, provider: Provider, store: Store):
        self.name, self._store = f"{provider.name} {provider.url}", store
        # A minute's worth in 61 seconds, since LAG may be made up for at any time.
        rates = (provider.requests_per_minute, provider.tokens_per_minute)
        self._seconds, self._turn = [(60 + LAG) / rate for rate in rates], asyncio.Lock()
        self._owed = (
            0.0  # seconds of the rate of tokens by which replies differed from what was expected
        )

    async def wait(self, tokens: int) -> None:
        """Wait until one more request, of so many tokens, keeps the rates."""
        if any(self._seconds):
            async with self._turn:
                while (pause := self._enter(tokens)) > 0:  # noqa: ASYNC110
                    await asyncio.sleep(pause)

    def settle(self, tokens: int) -> None:
        """Correct the estimate by so many tokens, with the next request."""
        self._owed += tokens * self._seconds[1]

    def _enter(self, tokens: int) -> float:
        """Take a place now and return 0, or return the seconds until there may be one."""
        now, costs = time.time(), (self._seconds[0], tokens * self._seconds[1])
        with self._store.change() as store:
            row = store.execute(
                "SELECT requests, tokens FROM rates WHERE name = ?", (self.name,)
            ).fetchone() or (0, 0)
            due = [at if at < now + STALE else now for at in (row[0], row[1] + self._owed)]
            pause = max(0.0, max(due) - now)
            after = (
                due
                if pause
                else [max(at, now - LAG) + cost for at, cost in zip(due, costs, strict=True)]
            )
            store.execute("INSERT OR REPLACE INTO rates VALUES (?, ?, ?)", (self.name, *after))
        self._owed = 0.0
        return pause


@dataclass
class Experience:
    """What is known of one model: whether it is worth another call, and what it takes.

    Until a first call succeeds its calls go one at a time, so that a bad key costs one request. A
    model that keeps failing is given up for the rest of this client's life.
    """

    answered: bool = False
    failed: int = 0  # calls in a row
    given_up: str | None = None  # why no further call makes sense
    refused: dict[str, str | None] = field(
        default_factory=dict
    )  # parameter -> its other name, None: left out
    thinks: bool | None = (
        None  # though it is not marked as such; False: its server has no room for it
    )
    first: asyncio.Lock = field(
        default_factory=asyncio.Lock
    )  # held by the one call to a model that never answered

    def check(self) -> None:
        """Raise `Failure` where no further call makes sense."""
        if self.given_up:
            raise Failure("given_up", self.given_up)

    def learn(self, failure: Failure | None) -> None:
        """Count how a call ended: with a reply (None) or not."""
        if (
            failure is None or failure.outcome == "rejected"
        ):  # that request alone: the service is there
            self.answered, self.failed = self.answered or failure is None, 0
            return
        self.failed += 1
        if failure.outcome != "transient" or self.failed >= (
            IN_A_ROW if self.answered else UNPROVEN
        ):
            self.given_up = failure.detail


@dataclass
class Call:
    """One call with its attempts.

    key: of its reply. given: its parameters, with room for thinking where the model thinks. tokens:
    of prompt and reply, at most. shared: as in `Request`. batch: the task that waits for the batch
    which has the call; its name is that of the owner of the claim.
    """

    key: str
    model: Model
    messages: list[dict]
    parameters: dict
    given: dict
    tokens: int
    shared: int = 0
    attempts: int = 0
    seconds: float = 0.0  # of the provider's deadline, which attempts and back-off took
    batch: asyncio.Task | None = None

    def body(self, sent: dict) -> dict:
        """Return what goes to the API.

        Where the model has a cache that is told what to keep, with that marked.
        """
        messages = [*self.messages]
        if self.shared and self.model.cache_control:
            first = int(messages[0]["role"] == "system")
            text = messages[first]["content"]
            kept = {
                "type": "text",
                "text": text[: self.shared],
                "cache_control": {"type": "ephemeral"},
            }
            messages[first] = {
                "role": "user",
                "content": [kept, {"type": "text", "text": text[self.shared :]}],
            }
        return {"model": self.model.api_name, "messages": messages, **sent}


class Endpoint:
    """One provider in one event loop.

    Its HTTP client, its places in flight, and what it knows of its models. concurrency: calls in
    flight at most; fewer where the registry gives the provider fewer. batch: whether the client
    asks in batches.
    """

    def __init__(self, provider: Provider, concurrency: int, store: Store, batch: bool = False):
        self.provider, self.store, self.pace, self.batch = (
            provider,
            store,
            Pace(provider, store),
            batch,
        )
        self.most = min(concurrency, provider.concurrency)
        self.limit, self.sending = (
            float(self.most),
            0,
        )  # attempts at a time: as many as may be, and as are
        self.throttled, self.open_at = (
            0,
            0.0,
        )  # refusals in a row, and the end of the pause that they ask for
        self.known: dict[str, Experience] = defaultdict(Experience)  # by model id
        self._places = asyncio.Semaphore(self.most)
        self._client = self._url = None
        self._connecting = asyncio.Lock()

    # who is next

    @contextlib.asynccontextmanager
    async def place(self, model: Model):
        """Hold a place in flight for one call with its attempts, first come, first served."""
        known = self.known[model.id]
        async with known.first:
            if not known.answered:
                async with self._places:
                    yield
                return
        async with self._places:
            yield

    def _is_closed(self) -> bool:
        """Tell whether attempts have to wait: for the end of a pause, or for a place."""
        return self.open_at > time.monotonic() or self.sending >= int(self.limit)

    async def _turn(self, tokens: int) -> None:
        """Wait for the turn of one attempt.

        As the rates allow a request of so many tokens, and outside of pauses.
        """
        await self.pace.wait(tokens)
        while self._is_closed():
            pause = self.open_at - time.monotonic()
            await asyncio.sleep(max(pause, 0) + 0.02)
        self.sending += 1

    def _slow_down(self, failure: Failure) -> None:
        """Pause for everybody where a provider asks for it.

        Until its time, or for a growing while if it named none.
        """
        wait, now = failure.wait, time.monotonic()
        if (wait or 0) > MAX_PAUSE:
            failure.outcome = "fatal"
            failure.detail += f"; it asks to wait {wait:.0f} s"
        if failure.outcome == "throttled":
            if now >= self.open_at:  # the first of a volley; the others were sent before we knew
                self.throttled += 1
                self.limit = max(1.0, min(self.limit, self.sending) / 2)
            if wait is None:
                wait = min(60.0, 2.0 ** min(self.throttled - 1, 6)) * random.uniform(1, 1.5)
            self.open_at = max(self.open_at, now + wait)

    async def claim(self, call: Call, ceiling: Ceiling | None, amount: float) -> Any:
        """Wait until this call is ours to send (None), or its reply is stored (the reply)."""
        return await self.store.claim(call.key, ceiling, amount)

    # what is sent

    def allowed(self, model: Model, parameters: dict) -> dict:
        """Return parameters as the model is sent them: with room for thinking where it thinks.

        Raises `Failure("given_up", detail)` where the model is not worth another call.
        """
        self.known[model.id].check()
        return (
            model.with_room(parameters)
            if model.reasoning or self.known[model.id].thinks
            else parameters
        )

    def make_room(self, model: Model, parameters: dict) -> bool:
        """Give a model room for thinking from now on.

        Returns whether that changes what it is sent.
        """
        known = self.known[model.id]
        if (
            self.provider.embedded
            or known.thinks is False
            or model.with_room(parameters) == parameters
        ):
            return False
        known.thinks = True
        return True

    async def ask(self, call: Call) -> Response:
        """Return the model's response, or raise the last `Failure`.

        Call it inside of a place of the model. The provider's deadline bounds attempts and back-off
        in all; a pause that it asked for, or that its rates need, does not count.
        """
        if call.model.call:
            return await self._call(call)
        await self._connect()  # imports and the start of our own server are not the reply's latency
        while True:
            self.known[call.model.id].check()
            sent, adapted = adapted_parameters(
                self.known[call.model.id].refused, call.parameters, call.given
            )
            try:
                return await self._attempt(call, sent, adapted)
            except Failure as failure:
                self.store.record_attempt(call.key, failure.outcome, failure.detail)
                if not self._adapt(call, sent, failure):
                    await self._back_off(call, failure)

    async def _attempt(self, call: Call, sent: dict, adapted: dict | None) -> Response:
        """Wait for its turn, send the request once, and read the reply."""
        model, known = call.model, self.known[call.model.id]
        await self._turn(call.tokens)
        call.attempts, left, started = (
            call.attempts + 1,
            self.provider.deadline - call.seconds,
            time.monotonic(),
        )
        try:
            # Half of the time for the first attempt: a hung connection leaves room for a second
            # one.
            seconds = left / 2 if call.attempts == 1 else left
            answer = await self._post(call.body(sent), seconds)
            latency = round(time.monotonic() - started, 3)
            response = read_reply(
                answer, model, latency=latency, attempts=call.attempts, adapted=adapted
            )
        except Failure as failure:
            self._say_remedy(failure)
            self._slow_down(failure)
            call.seconds += time.monotonic() - started
            self.pace.settle(-call.tokens)
            raise
        finally:
            self.sending -= 1
        self.throttled, self.limit = 0, min(self.most, self.limit + 1 / self.limit)
        self.pace.settle(response.tokens() - call.tokens if response.usage else 0)
        known.learn(None)
        return response

    def _say_remedy(self, failure: Failure) -> None:
        """Say what to correct where the address or the key is wrong.

        What did answer before may heal. A proxy's page about one text (400) is about that text,
        once other texts were answered.
        """
        if isinstance(failure, NoEndpoint) and any(known.answered for known in self.known.values()):
            is_about_text = failure.is_stream or failure.status in (400, 405)
            failure.outcome = "rejected" if is_about_text else "transient"
            return
        if self.provider.embedded or failure.outcome != "fatal":
            return
        is_versioned = VERSION.search(self.provider.address)
        is_no_route = failure.status == 404 and not (is_versioned and failure.from_api)
        if failure.status in (401, 403) and not EMPTY.search(failure.detail):
            remedy = self._about_key()
        elif isinstance(failure, NoEndpoint) or is_no_route:
            remedy = self._about_address()
        else:
            return
        failure.detail = f"{failure.detail.rstrip('.')}; {remedy}"

    def _about_key(self) -> str:
        """Say which key was sent, or where to name one."""
        if where := self.provider.key_source:
            return f"the key is that of {where}"
        if self.provider.keys:
            return f"no key was sent: set {' or '.join(self.provider.keys)}"
        return (
            f"no key was sent: name the variable that has it under `keys` of the provider "
            f"{self.provider.name!r}"
        )

    def _about_address(self) -> str:
        """Say where the address comes from, and what most addresses have."""
        provider = self.provider
        name = (
            f"{provider.base_url_env} (its `base_url`)"
            if provider.base_url_env
            else "its `base_url`"
        )
        remedy = f"correct {name}, which is {provider.address}"
        if VERSION.search(provider.address):
            return remedy
        return f"{remedy}; most servers want /v1 at its end"

    def _adapt(self, call: Call, sent: dict, failure: Failure) -> bool:
        """Change what is sent where the model refuses a parameter.

        Returns whether there is something to change.
        """
        known = self.known[call.model.id]
        if failure.outcome != "rejected":
            return False
        if change := adaptation(failure, sent):
            known.refused |= change
        elif (
            call.given != call.parameters and not call.model.reasoning
        ):  # its server has no room for thinking
            call.given, known.thinks = call.parameters, False
        else:
            return False
        return True

    async def _back_off(self, call: Call, failure: Failure) -> None:
        """Wait before the next attempt; raise the failure where there is none."""
        left = self.provider.deadline - call.seconds
        if (
            failure.outcome not in ("transient", "throttled")
            or call.attempts >= ATTEMPTS
            or left < LEAST
        ):
            self.known[call.model.id].learn(failure)
            failure.detail += f" (after {call.attempts} attempt{'s' if call.attempts > 1 else ''})"
            raise failure
        if failure.outcome == "transient":
            pause = min(30.0, 2.0 ** (call.attempts - 2), left / 2) * random.uniform(0.5, 1)
            await asyncio.sleep(pause)
            call.seconds += pause

    async def _call(self, call: Call) -> Response:
        """Return the response of the user's function."""
        response = await ask_callable(call.model.call, call.messages, call.parameters)
        if response.status == "error":
            failure = Failure("rejected", response.error or "it says no more")
            self.store.record_attempt(call.key, failure.outcome, failure.detail)
            raise failure
        self.known[call.model.id].learn(None)
        return response

    async def _post(self, body: dict, seconds: float):
        client = await self._connect()
        try:
            async with asyncio.timeout(seconds):
                return await _route(body)(client, self._url, body)
        except Failure:
            raise
        except TimeoutError as error:
            raise Failure("transient", f"no complete reply within {seconds:.0f} s") from error
        # of openai's client, aiohttp, the sockets, or of a broken answer in any of them
        except Exception as error:
            if self.provider.embedded and client is self._client:
                await self.close()  # it may have gone for idleness: find or start it anew
            if is_here(self.provider.address) and is_refused(error):
                where = self.provider.base_url_env or "its `base_url`"
                detail = (
                    f"nothing answers at {self.provider.address}; start the server, or correct "
                    f"{where}"
                )
                raise Failure("fatal", detail) from error
            raise Failure("transient", f"connection failed: {error.__cause__ or error}") from error

    async def _connect(self):
        """Return the HTTP client.

        The SDK's own, without its layer that builds every request's headers anew.
        """
        import httpx2
        import openai

        async with self._connecting:
            if self._client is None:
                url, key = self.provider.url, self.provider.read_key()
                if self.provider.embedded:
                    url = await asyncio.to_thread(embedded.url, self.provider)
                    key = embedded.key(self.provider)
                self._url = httpx2.URL(f"{url.rstrip('/')}/chat/completions")
                headers = {
                    "Content-Type": "application/json",
                    "User-Agent": "selfeval",
                    "Accept-Encoding": "gzip",
                }
                self._client = openai.DefaultAioHttpClient(
                    headers=headers | ({"Authorization": f"Bearer {key}"} if key else {}),
                    limits=httpx2.Limits(
                        max_connections=self.most, max_keepalive_connections=self.most
                    ),
                    timeout=None,
                    follow_redirects=False,  # nobody but the address in use gets prompts
                    trust_env=not is_here(url),  # no proxy between us and our own server
                )
            return self._client

    async def close(self) -> None:
        """Close the HTTP client."""
        client, self._client = self._client, None
        if client:
            await client.aclose()


def adapted_parameters(refused: dict, parameters: dict, allowed: dict) -> tuple[dict, dict | None]:
    """Return the parameters that are sent, and what of them is otherwise than asked."""
    names = {k: new for k, new in refused.items() if k in parameters}
    sent = {names.get(k, k): v for k, v in allowed.items() if names.get(k, k)}
    room = {names.get(k, k): v for k, v in allowed.items() if v != parameters[k]}
    return sent, names | room or None


def is_refused(error: BaseException | None) -> bool:
    """Tell whether nobody listened at an address."""
    while error and getattr(error, "errno", None) != errno.ECONNREFUSED:
        error = error.__cause__
    return error is not None
