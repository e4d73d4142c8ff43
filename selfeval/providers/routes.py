"""How a request is sent: to the chat, or for the likelihood of a text."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from selfeval.bounds import REPLY, unpacked_reply
from selfeval.providers.replies import START, Failure, NoEndpoint, read_body


@dataclass
class Answer:
    """What an HTTP response says, unpacked."""

    status_code: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the content as a text; what is not UTF-8 is seen as U+FFFD."""
        return self.content.decode("utf-8", "replace")


async def post_likelihood(client, url, body: dict):
    """Return the response to a request for the log-likelihood of a text.

    Such a request is a conversation that ends with the text as the assistant's message; its
    parameter `likelihood` is the provider's in the registry, "grammar" of llama.cpp.

    The text is tokenised, and a grammar of just these token ids lets the model
    write nothing else. Log-probabilities are before grammar and temperature, so their sum is the
    text's: within 1e-3 of feeding it token by token (tests/test_likelihood.py). The prompt is
    computed anew in each call, since what is cached of it changes rounding, on a text of Qwen by .6
    in -91. Other grammars are wrong routes: on a text of -71.16, one of its letters gives -134.7
    and a JSON schema's `const` -134.0: both let the model spell it with tokens that it would not
    choose.

    The reply is the text, with the log-probability of each of its tokens; without any where one is
    not known: the server of llama.cpp leaves out a token that holds part of a character, and breaks
    off some long texts ("Unexpected empty grammar stack": 1 of 120, of 256 tokens).
    """
    text = body["messages"][-1]["content"]
    sent = {
        name: value for name, value in body.items() if name not in ("likelihood", "temperature")
    }
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
        return _reply_of({}, text, [])
    body = read_body(response)
    return _reply_of(body, text, _of_reply(body, text, len(ids)))


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


async def post(client, url, body: dict) -> Answer:
    """Return the answer to a request: to the chat, or for a likelihood."""
    if "likelihood" in body:
        return await post_likelihood(client, url, body)
    return await _send(client, url, body)


async def _send(client, url, body: dict) -> Answer:
    """Return the answer to a request that posts an object in JSON."""
    return await send(client, url, json.dumps(body).encode())


async def send(
    client, url, content=None, *, method="POST", headers=None, most: int = REPLY
) -> Answer:
    """Return the answer to a request, of so many bytes at most."""
    received = bytearray()
    async with client.stream(method, url, content=content, headers=headers) as answer:
        async for part in answer.aiter_raw():
            received += part
            if len(received) > most:
                break
    encoding = answer.headers.get("content-encoding", "")
    try:
        unpacked = unpacked_reply(bytes(received), encoding.strip().lower(), most)
    except zlib.error as error:
        raise Failure("transient", f"connection failed: {error}") from error
    except ValueError as error:  # it would be as large the next time
        raise Failure("rejected", str(error)) from error
    return Answer(answer.status_code, unpacked, answer.headers)


def _reply_of(body: dict, text: str, tokens: list[tuple[str, float]]):
    """Return a response whose reply is the text.

    It has its tokens' log-probabilities where all are known.
    """
    found = [{"token": token, "logprob": logprob} for token, logprob in tokens]
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    if all(row["logprob"] is not None for row in found):
        choice["logprobs"] = {"content": found}
    body = {name: body.get(name) for name in ("id", "model", "usage")} | {"choices": [choice]}
    return Answer(200, json.dumps(body).encode())


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
