"""What an HTTP response says: a reply, or a classified failure.

The OpenAI SDK returns HTTP 200 with an error body, HTML or broken JSON as if it were a reply; here the raw body counts.
"""

import email.utils
import json
import math
import re
import time
from functools import partial
from itertools import accumulate

from selfeval.asking.request import Response, readable
from selfeval.errors import is_amount, is_count
from selfeval.keys import SHORTEST, redact
from selfeval.models import Model

NO_USE = re.compile("not a valid model|invalid model|api key not valid", re.I)  # OpenRouter and Gemini say it by a 400
REFUSES = re.compile("unsupported|not supported|does not support|deprecated|unrecognized|only the default", re.I)
# <think>...</think>, also without the last tag where the reply was cut off in it, or without the first one
THOUGHT = re.compile(
    r"\s*+(?:<think(?:ing)?>(.*?)(?:</think(?:ing)?>\s*|\Z)|((?:(?!<think).)*?)</think(?:ing)?>\s*)", re.S | re.I
)


def _finite(text: str) -> float | None:
    return value if math.isfinite(value := float(text)) else None


# A number that no file can hold (NaN, Infinity, 1e999) is read as null: it costs one field, not the reply around it.
DECODER = json.JSONDecoder(parse_constant=lambda name: None, parse_float=_finite)


class Failure(Exception):
    """An attempt that brought no reply. outcome: `transient`, `throttled`, `rejected` (this request), `fatal`, or
    `given_up` (nothing was sent, the model had failed before). wait: seconds that the provider asks for."""

    def __init__(self, outcome: str, detail: str, wait: float | None = None):
        self.outcome, self.detail, self.wait = outcome, readable(redact(detail)), wait  # some echo the key
        super().__init__(self.detail)


def read_reply(response, model: Model, **more) -> Response:
    """Return the reply in an HTTP response, with `more` of its fields; raise `Failure` where there is none.

    What is not of the usual shape around the text is passed over.
    """
    body = read_body(response, model.provider.key or "")
    choice = body["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    content, refusal = message.get("content") or "", message.get("refusal")
    if isinstance(content, list):  # some endpoints answer in parts
        content = "".join(str(_dict(part).get("text") or "") for part in content)
    thought, content = _apart(content)
    if refusal:
        content, status = content or str(refusal), "refusal"
    elif finish in ("content_filter", "length"):
        status = "length" if finish == "length" else "filtered"
    else:
        status = "ok" if content.strip() else "empty"
    usage = _usage(_dict(body.get("usage")))
    return Response(
        text=content,
        status=status,
        finish_reason=_text(finish),
        usage=usage,
        cost=_cost(_dict(body.get("usage")), usage, model),
        served_model=_text(body.get("model")),
        served_by=_text(body.get("provider")),
        request_id=_text(body.get("id")) or response.headers.get("x-request-id"),
        reasoning=_text(message.get("reasoning")) or _text(message.get("reasoning_content")) or thought,
        logprobs=_logprobs(_dict(choice.get("logprobs")).get("content"), content),
        **more,
    )


def read_body(response, key: str = "") -> dict:
    """Return the parsed body of an HTTP response that holds a choice; raise a classified `Failure` for any other.

    key: the provider's, which does not come back in the body.
    """
    try:
        body = _without(key, DECODER.decode(response.content.decode("utf-8-sig")))
    except (ValueError, RecursionError):  # also UnicodeDecodeError
        body = None
    status = response.status_code
    if isinstance(body, list) and len(body) == 1:  # Gemini wraps its errors in a list
        body = body[0]
    error = body.get("error") if isinstance(body, dict) else None
    if status == 200 and error is None:
        return _with_choice(body)
    error = error if isinstance(error, dict) else {"message": error or response.text[:200]}
    if status == 200:  # an error that travels as a success carries its own number
        status = int(error["code"]) if str(error.get("code", "")).isdigit() else 502
    raise classify(status, error, response.headers)


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
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | list | None):
        raise Failure("transient", "HTTP 200 without a choice")
    if choice.get("finish_reason") == "error" or choice.get("error"):
        raise Failure("transient", f"the model's server failed while answering: {choice.get('error') or 'no details'}")
    return body


def classify(status: int, error: dict, headers) -> Failure:
    """Return what an error answer means for this call: wait, try again, give up the request, or give up the model."""
    message = f"HTTP {status}: {error.get('message') or error.get('code') or 'no message'}"
    code = f"{error.get('code')} {error.get('type')}"
    if status == 429 and ("insufficient_quota" in code or "billing" in code):
        return Failure("fatal", message)
    wait = retry_after(headers, error)
    if status == 429 or (status in (503, 529) and wait is not None):
        return Failure("throttled", message, wait)
    if status == 403 and isinstance(error.get("metadata"), dict) and "reasons" in error["metadata"]:
        return Failure("rejected", message)  # OpenRouter's moderation: about this text, not about the account
    if status in (401, 402, 403, 404) or (status == 400 and NO_USE.search(message)):
        return Failure("fatal", message)
    if 400 <= status < 500 and status not in (408, 409, 425):
        return Failure("rejected", message)
    return Failure("transient", message)


def retry_after(headers, error: dict) -> float | None:
    """Return the seconds a provider asks to wait, from its headers or its body, or None.

    Forms: `retry-after-ms`, `retry-after` in seconds or as a date, and OpenRouter's reset time (milliseconds since the
    epoch) inside the error's metadata.
    """
    after = headers.get("retry-after")
    try:
        reset = ((error.get("metadata") or {}).get("headers") or {}).get("X-RateLimit-Reset")
        if headers.get("retry-after-ms"):
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if after and after.replace(".", "", 1).isdigit():
            return float(after)
        if after:
            return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
        if reset:
            return max(0.0, float(reset) / 1000 - time.time())
    except (TypeError, ValueError, AttributeError):
        pass  # an unreadable time is the same as none
    return None


def adaptation(message: str, body: dict) -> dict | None:
    """Return {parameter: new name, or None for leaving it out} where an error says that the model refuses one."""
    if not REFUSES.search(message):
        return None
    if "max_tokens" in body and "max_completion_tokens" in message:
        return {"max_tokens": "max_completion_tokens"}
    for names in (["temperature"], ["top_p"], ["seed"], ["logprobs", "top_logprobs"], ["reasoning_effort"]):
        if names[0] in body and names[0] in message:
            return dict.fromkeys(names)
    return None


def _apart(content: str) -> tuple[str | None, str]:
    """Return the thinking that a reply begins with, between tags (the first may be in the template), and the rest."""
    found = THOUGHT.match(content)
    return ((found[1] or found[2] or "").strip() or None, content[found.end() :]) if found else (None, content)


def _dict(value) -> dict:
    return value if isinstance(value, dict) else {}


def _text(value) -> str | None:
    return value if isinstance(value, str) else None


def _usage(raw: dict) -> dict:
    counts = {
        "prompt": raw.get("prompt_tokens"),
        "completion": raw.get("completion_tokens"),
        "cached": _dict(raw.get("prompt_tokens_details")).get("cached_tokens"),
        "reasoning": _dict(raw.get("completion_tokens_details")).get("reasoning_tokens"),
    }
    return {name: count for name, count in counts.items() if is_count(count)}


def _cost(raw: dict, usage: dict, model: Model) -> float | None:
    if model.provider.embedded:
        return 0.0
    if is_amount(raw.get("cost")):
        return float(raw["cost"])
    if model.price is None or "prompt" not in usage or "completion" not in usage:
        return None
    return (usage["prompt"] * model.price["input"] + usage["completion"] * model.price["output"]) / 1e6


def _logprobs(tokens, content: str) -> list | None:
    """Return the tokens of a reply, without those of thinking before its content."""
    try:
        found = [
            (t["token"], t["logprob"], {a["token"]: a["logprob"] for a in t.get("top_logprobs") or []}) for t in tokens
        ]
        start = "".join(token for token, *_ in found).rfind(content)
        if start <= 0:  # nothing before it, or tokens that are parts of characters
            return found or None
        ends = accumulate(len(token) for token, *_ in found)
        return [each for each, end in zip(found, ends, strict=True) if end > start] or None
    except (TypeError, KeyError, AttributeError):
        return None


# the log-likelihood of a given text -----------------------------------------------------------------------------------


async def post_likelihood(client, url, body: dict):
    """Return the response to a request for the log-likelihood of a text, by a route that the text's server offers.

    Such a request is a conversation that ends with the text as the assistant's message; its parameter `likelihood` is
    the route, which is the provider's in the registry:

    grammar: llama.cpp. The text is tokenised, and a grammar of just these token ids lets the model write nothing else.
    Log-probabilities are before grammar and temperature, so their sum is the text's: within 1e-3 of feeding it token by
    token (tests/test_likelihood.py). The prompt is computed anew in each call, since what is cached of it changes
    rounding, on a text of Qwen by .6 in -91. Other grammars are wrong routes: on a text of -71.16, one of its letters
    gives -134.7 and a JSON schema's `const` -134.0: both let the model spell it with tokens that it would not choose.

    prompt_logprobs: vLLM. The log-probabilities of the prompt's last tokens, which are the text.

    The reply is the text, with the log-probability of each of its tokens; without any where one is not known: the
    server of llama.cpp leaves out a token that holds part of a character, and breaks off some long texts ("Unexpected
    empty grammar stack": 1 of 120, of 256 tokens).
    """
    text = body["messages"][-1]["content"]
    sent = {name: value for name, value in body.items() if name not in ("likelihood", "temperature")}
    if body["likelihood"] == "prompt_logprobs":
        sent |= {"prompt_logprobs": 0, "max_tokens": 1, "add_generation_prompt": False, "continue_final_message": True}
        return _rewritten(await _send(client, url, sent), text, _of_prompt)
    tokenizer = url.copy_with(path=url.path.removesuffix("/v1/chat/completions") + "/tokenize")
    response = await _send(client, tokenizer, {"content": text, "add_special": False, "parse_special": False})
    if response.status_code != 200:
        return response
    ids = DECODER.decode(response.text)["tokens"]
    sent |= {"messages": body["messages"][:-1], "grammar": "root ::= " + " ".join(f"<[{i}]>" for i in ids)}
    sent |= {"logprobs": True, "top_logprobs": 1, "max_tokens": len(ids) + 1, "cache_prompt": False}
    response = await _send(client, url, sent)
    if response.status_code == 500 and "grammar stack" in response.text:  # it would every time
        return _reply_of(response, {}, text, [])
    return _rewritten(response, text, partial(_of_reply, n=len(ids)))


async def _send(client, url, body: dict):
    return await client.post(url, content=json.dumps(body).encode())


def _rewritten(response, text: str, tokens_of):
    """Return a response whose reply is the text, with its tokens' log-probabilities where all are known."""
    body = read_body(response)
    return _reply_of(response, body, text, tokens_of(body, text))


def _reply_of(response, body: dict, text: str, tokens: list[tuple[str, float]]):
    found = [{"token": token, "logprob": logprob} for token, logprob in tokens]
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    if all(row["logprob"] is not None for row in found):
        choice["logprobs"] = {"content": found}
    body = {name: body.get(name) for name in ("id", "model", "usage")} | {"choices": [choice]}
    return type(response)(200, content=json.dumps(body).encode(), headers={"content-type": "application/json"})


def _of_reply(body: dict, text: str, n: int) -> list[tuple[str, float]]:
    """Return the n tokens and log-probabilities of a reply that a grammar forced; none where some are missing."""
    choice = body["choices"][0]
    if choice["message"]["content"] != text:
        raise Failure("rejected", f"the server wrote {choice['message']['content']!r:.40} instead of the text")
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
