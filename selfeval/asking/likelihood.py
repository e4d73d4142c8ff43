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

The reply is the text, with the log-probability of each of its tokens; without them where a token holds part of a
character, which llama.cpp's server leaves out, or where the server breaks off a long grammar ("Unexpected empty grammar
stack": 1 of 120 texts, one of 256 tokens).
"""

import json

from selfeval.asking.http import DECODER, Failure


async def post(client, url, body: dict):
    """Return the response to a chat request with `likelihood`, in the form of other responses."""
    route, *_, text = body["likelihood"], body["messages"][-1]["content"]
    rest = {name: value for name, value in body.items() if name not in ("likelihood", "temperature")}
    if route == "prompt_logprobs":
        own = {"prompt_logprobs": 0, "max_tokens": 1, "add_generation_prompt": False, "continue_final_message": True}
        response = await _send(client, url, rest | own)
        return _rewritten(response, text, _of_prompt) if response.status_code == 200 else response
    asked = {"content": text, "add_special": False, "parse_special": False}
    response = await _send(
        client, url.copy_with(path=url.path.removesuffix("/v1/chat/completions") + "/tokenize"), asked
    )
    if response.status_code != 200:
        return response
    ids = DECODER.decode(response.text)["tokens"]
    own = {"messages": rest["messages"][:-1], "grammar": "root ::= " + " ".join(f"<[{i}]>" for i in ids)}
    own |= {"logprobs": True, "top_logprobs": 1, "max_tokens": len(ids) + 1, "cache_prompt": False}
    response = await _send(client, url, rest | own)
    if response.status_code == 500 and "grammar stack" in response.text:  # of texts of 250 tokens; it would again
        return _rewritten(response, text, lambda said, text: None)
    if response.status_code != 200:
        return response
    return _rewritten(response, text, lambda said, text: _of_reply(said, text, len(ids)))


async def _send(client, url, body: dict):
    return await client.post(url, content=json.dumps(body).encode())


def _rewritten(response, text: str, tokens_of):
    """Return a response whose reply is the text, with its tokens' log-probabilities, or without."""
    body = DECODER.decode(response.text)
    tokens = tokens_of(body, text)
    found = [{"token": token, "logprob": logprob} for token, logprob in tokens or ()]
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {name: body.get(name) for name in ("id", "model", "usage")}
    body["choices"] = [choice | ({"logprobs": {"content": found}} if found else {})]
    return type(response)(200, content=json.dumps(body).encode(), headers={"content-type": "application/json"})


def _of_reply(body: dict, text: str, n: int) -> list[tuple[str, float]] | None:
    """Return tokens and log-probabilities of a reply that a grammar forced; None where some are missing."""
    choice = body["choices"][0]
    if choice["message"]["content"] != text:
        raise Failure("rejected", f"the server wrote {choice['message']['content']!r:.40} instead of the text")
    rows = choice["logprobs"]["content"][: None if choice["finish_reason"] == "length" else -1]
    return [(row["token"], row["logprob"]) for row in rows] if len(rows) == n else None


def _of_prompt(body: dict, text: str) -> list[tuple[str, float]] | None:
    """Return tokens and log-probabilities of the text that a prompt ends with."""
    found: list[tuple[str, float]] = []
    for entry in reversed(body.get("prompt_logprobs") or []):
        [row] = (entry or {"": {"logprob": None}}).values()
        if row["logprob"] is None:
            break
        found.insert(0, (row["decoded_token"], row["logprob"]))
        if "".join(token for token, _ in found).strip() == text.strip():
            return found
    raise Failure("rejected", "the log-probabilities of the prompt do not end with the text")
