"""What answers a request: an OpenAI-compatible endpoint (also the embedded one), a simulated model, a callable."""

import asyncio
import errno
import inspect
import json
import re
import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate

from selfeval.asking import embedded
from selfeval.asking.breaker import Breaker
from selfeval.asking.http import Failure, Gate, Reply, call
from selfeval.asking.recordings import is_amount, is_count
from selfeval.asking.request import Response, estimate
from selfeval.asking.sharing import Pace
from selfeval.errors import SelfevalError
from selfeval.keys import SHORTEST
from selfeval.models import Model, Provider

# <think>...</think>, also without the last tag where the reply was cut off in it, or without the first one
THOUGHT = re.compile(
    r"\s*+(?:<think(?:ing)?>(.*?)(?:</think(?:ing)?>\s*|\Z)|((?:(?!<think).)*?)</think(?:ing)?>\s*)", re.S | re.I
)
SERVERS = {"ollama": "Ollama", "vllm": "vLLM", "llamacpp": "the llama.cpp server"}  # as their users call them


async def ask_callable(function: Callable, messages: list[dict], parameters: dict) -> Response:
    """Return the response of a plain or asynchronous Python callable that answers with a Response or a text.

    An exception of its own is a response with status `error`: it does not cost the other replies of the batch.
    """
    try:
        answer = function(messages, **parameters)
        answer = await answer if inspect.isawaitable(answer) else answer
    except SelfevalError:
        raise
    except Exception as error:
        return Response(status="error", error=f"{type(error).__name__}: {error}")
    return answer if isinstance(answer, Response) else Response(str(answer), "ok" if str(answer).strip() else "empty")


class Endpoint:
    """One provider in one event loop: its HTTP client, its gate, what its models refuse and which are given up."""

    def __init__(self, provider: Provider, concurrency: int):
        self.provider = provider
        self.pace = Pace(provider)
        self.gate = Gate(min(concurrency, provider.concurrency), self.pace)
        self.places = asyncio.Semaphore(self.gate.most)  # calls with their retries; the gate holds attempts back
        self.refused: dict[str, dict] = {}
        self.thinking: dict[str, bool] = {}  # id of a model that was not marked as such: whether its server has room
        self.breakers: dict[str, Breaker] = defaultdict(Breaker)  # by model id
        self._client = self._url = None
        self._connecting = asyncio.Lock()

    def allowed(self, model: Model, parameters: dict) -> dict:
        """Return parameters as the model is sent them: with room for thinking where it thinks."""
        return model.with_room(parameters) if model.reasoning or self.thinking.get(model.id) else parameters

    def make_room(self, model: Model, parameters: dict) -> bool:
        """Give a model room for thinking from now on; return whether that changes what it is sent."""
        no_room = self.provider.embedded or self.thinking.get(model.id) is False
        if no_room or model.with_room(parameters) == parameters:
            return False
        if model.id not in self.thinking:
            self.thinking[model.id] = True
            warnings.warn(
                f"{model.id!r} spent a whole reply on thinking and is given {model.reasoning_tokens} tokens more from "
                "now on; mark it `reasoning: true` in the registry to spare that request.",
                stacklevel=2,
            )
        return True

    async def ask(
        self, model: Model, messages: list[dict], parameters: dict, note=lambda failure: None, allowed=None
    ) -> Response:
        """Return the model's response, or raise `transport.Failure`; allowed: the parameters with room for thinking."""

        def told(failure: Failure) -> None:
            failure.detail = self._redact(failure.detail)  # some providers echo the key in their refusal
            note(failure)

        await self._connect()  # imports and the start of our own server are not the reply's latency
        allowed, no_room = allowed or parameters, False
        while True:
            refused = {k: new for k, new in self.refused.get(model.id, {}).items() if k in parameters}
            body = {refused.get(k, k): v for k, v in allowed.items() if refused.get(k, k)}
            room = {refused.get(k, k): v for k, v in allowed.items() if v != parameters[k]}
            body = {"model": model.api_name, "messages": messages, **body}
            content, tokens = json.dumps(body).encode(), sum(estimate(messages, body, model))
            try:
                reply = await call(
                    lambda data=content: self._send(model, data), self.gate, self.provider.deadline, told, tokens
                )
            except Failure as failure:
                rejected = failure.outcome == "rejected"
                if rejected and (change := _adaptation(failure.detail, body)):
                    self.refused[model.id] = self.refused.get(model.id, {}) | change
                elif rejected and room and not model.reasoning:
                    allowed, no_room = parameters, True
                else:
                    if rejected and room:
                        failure.detail += f"; {model.reasoning_tokens} tokens were added for thinking: the registry's "
                        failure.detail += f"`reasoning_tokens` of {model.id!r} sets how many"
                    self.breakers[model.id].failed(failure.outcome, failure.detail)
                    raise
            else:
                if no_room and self.thinking[model.id]:
                    self.thinking[model.id] = False
                    warnings.warn(
                        f"{model.id!r} is given no room for thinking: its server refuses {model.reasoning_tokens} "
                        "tokens more; set fewer `reasoning_tokens` and `reasoning: true` in the registry.",
                        stacklevel=2,
                    )
                self.breakers[model.id].succeeded()
                response = self._without_key(read_reply(reply, model, refused | room or None))
                self.pace.settle(response.tokens() - tokens if response.usage else 0)
                return response

    async def _send(self, model: Model, content: bytes):
        import aiohttp
        import httpx2

        if given_up := self.breakers[model.id].given_up:
            raise Failure("given_up", given_up)
        client = await self._connect()
        try:
            return await client.post(self._url, content=content)
        except (httpx2.HTTPError, httpx2.InvalidURL, aiohttp.ClientError, OSError, RuntimeError) as error:
            if self.provider.embedded and client is self._client:
                await self.close()  # it may have gone for idleness: find or start it anew
            if self.provider.on_loopback and _is_refused(error):
                raise Failure("fatal", f"connection refused: {_not_running(self.provider)}") from error
            raise Failure("transient", f"connection failed: {error.__cause__ or error}") from error

    async def _connect(self):
        """Return the HTTP client: the SDK's own, without its layer that builds every request's headers anew."""
        if self._client:
            return self._client
        import httpx2
        import openai

        async with self._connecting:
            if self._client is None:
                provider = self.provider
                url = await asyncio.to_thread(embedded.url, provider) if provider.embedded else provider.url
                headers = {"Content-Type": "application/json", "User-Agent": "selfeval"}
                self._url = httpx2.URL(f"{url.rstrip('/')}/chat/completions")
                self._client = openai.DefaultAioHttpClient(
                    headers=headers | ({"Authorization": f"Bearer {provider.key}"} if provider.key else {}),
                    limits=httpx2.Limits(max_connections=self.gate.most, max_keepalive_connections=self.gate.most),
                    timeout=None,
                    trust_env=not provider.embedded,  # no proxy between us and our own server
                )
            return self._client

    def _redact(self, text: str) -> str:
        key = self.provider.key or ""  # `x`, `EMPTY` and `ollama`, as own servers take them, are words and no secrets
        secret = len(key) >= SHORTEST and (re.search(r"\d", key) or len(key) >= 2 * SHORTEST)
        return text.replace(key, "[key]") if secret else text

    def _without_key(self, response: Response) -> Response:
        """Return the reply of a server that echoes the key without it: it is about to be stored."""
        text = json.dumps(response.to_dict())
        return response if self._redact(text) == text else Response.from_dict(json.loads(self._redact(text)))

    async def close(self) -> None:
        """Close the HTTP client and the file of the rates."""
        self.pace.close()
        client, self._client = self._client, None
        if client:
            await client.aclose()


def _is_refused(error: BaseException | None) -> bool:
    while error and getattr(error, "errno", None) != errno.ECONNREFUSED:
        error = error.__cause__
    return error is not None


def _not_running(provider: Provider) -> str:
    name, variable = SERVERS.get(provider.name, f"`{provider.name}`"), provider.base_url_env
    where = f"set {variable} to where it is" if variable else "correct its `base_url` in the registry"
    return f"Is {name} running? Nothing answers at {provider.address}; start it, or {where}"


REFUSES = re.compile("unsupported|not supported|does not support|deprecated|unrecognized|only the default", re.I)


def _adaptation(message: str, body: dict) -> dict | None:
    """Return {parameter: new name, or None for leaving it out} where an error says that the model refuses one."""
    if not REFUSES.search(message):
        return None
    if "max_tokens" in body and "max_completion_tokens" in message:
        return {"max_tokens": "max_completion_tokens"}
    parameters = ("temperature", "top_p", "seed", "logprobs", "reasoning_effort")
    dropped = next((k for k in parameters if k in body and k in message), None)
    if dropped is None:
        return None
    return {"logprobs": None, "top_logprobs": None} if dropped == "logprobs" else {dropped: None}


def read_reply(reply: Reply, model: Model, adapted: dict | None = None) -> Response:
    """Return the response that a raw body holds; what is not of the usual shape around the text is passed over."""
    body, choice = reply.body, reply.body["choices"][0]
    message = choice["message"]
    content, refusal, finish = message.get("content") or "", message.get("refusal"), choice.get("finish_reason")
    if isinstance(content, list):  # some endpoints answer in parts
        content = "".join(str(_dict(part).get("text") or "") for part in content)
    thought, content = _apart(content)
    if refusal:
        content, status = content or str(refusal), "refusal"
    elif finish == "content_filter":
        status = "filtered"
    elif finish == "length":
        status = "length"
    else:
        status = "ok" if content.strip() else "empty"
    raw = _dict(body.get("usage"))
    usage = _usage(raw)
    return Response(
        text=content,
        status=status,
        finish_reason=_text(finish),
        usage=usage,
        cost=_cost(raw, usage, model),
        served_model=_text(body.get("model")),
        served_by=_text(body.get("provider")),
        request_id=_text(body.get("id")) or reply.request_id,
        latency=round(reply.latency, 3),
        attempts=reply.attempts,
        reasoning=_text(message.get("reasoning")) or _text(message.get("reasoning_content")) or thought,
        logprobs=_logprobs(_dict(choice.get("logprobs")).get("content"), content),
        adapted=adapted,
    )


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
