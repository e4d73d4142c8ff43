"""The log-likelihood of a given text in one call, by a route that the text's server offers.

A request for one is a conversation that ends with the text as the assistant's message and has the route as its
parameter `likelihood`, which is the provider's in the registry:

grammar          llama.cpp: the text is tokenised, and a grammar of just these token ids lets the model write nothing
                 else. Log-probabilities are before grammar and temperature, so their sum is the text's: within 1e-3 of
                 feeding it token by token (tests/test_likelihood.py). The prompt is computed anew in each call, since
                 what is cached of it changes rounding, on a text of Qwen by .6 in -91. Other grammars are wrong routes:
                 on a text of -71.16, one of its letters gives -134.7 and a JSON schema's `const` -134.0, for both let
                 the model spell it with tokens that it would not choose.
prompt_logprobs  vLLM: the log-probabilities of the prompt's last tokens, which are the text.

The reply is the text, with the log-probability of each of its tokens; without any where one is not known: llama.cpp's
server leaves out a token that holds part of a character, and breaks off some long texts ("Unexpected empty grammar
stack": 1 of 120, of 256 tokens).
"""

import json
from functools import partial

from selfeval.asking.http import DECODER, Failure, read_body


async def post(client, url, body: dict):
    """Return the response to a chat request with `likelihood`, in the form of other responses."""
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
        return _said(response, {}, text, [])
    return _rewritten(response, text, partial(_of_reply, n=len(ids)))


async def _send(client, url, body: dict):
    return await client.post(url, content=json.dumps(body).encode())


def _rewritten(response, text: str, tokens_of):
    """Return a response whose reply is the text, with its tokens' log-probabilities where all are known."""
    body = read_body(response)
    return _said(response, body, text, tokens_of(body, text))


def _said(response, body: dict, text: str, tokens: list[tuple[str, float]]):
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
