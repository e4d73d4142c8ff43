"""What answers a request: an OpenAI-compatible endpoint (also the embedded one), a simulated model, a callable."""

import asyncio
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from selfeval import embedded
from selfeval.errors import ProviderError
from selfeval.models import Model, Provider
from selfeval.transport import Failure, Gate, Reply, call


@dataclass(frozen=True)
class Response:
    """One reply. status: `ok`, `refusal`, `filtered`, `length` (cut off), `empty`, or `error` (no reply at all).

    usage: tokens (prompt, completion, cached, reasoning). cost: US dollars, None where unknown. latency: seconds of the
    attempt that succeeded. logprobs: per token of the reply (token, log-probability, {alternative: log-probability}).
    adapted: parameters that the model refused and what was done about them.
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

    def to_dict(self) -> dict:
        """Return the fields that hold something, for JSON."""
        return {k: v for k, v in vars(self).items() if v not in (None, {}, [])}

    @classmethod
    def from_dict(cls, values: dict) -> "Response":
        """Return the response that `to_dict` wrote; fields of other versions are passed over."""
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in values.items() if k in known})


def require(model: Model) -> None:
    """Raise `ProviderError` where a call to this model cannot succeed: no key, no embedded model."""
    provider = model.provider
    if provider.embedded:
        embedded.model_file(provider)
    elif provider.keys and not provider.key:
        raise ProviderError(
            f"The model {model.id!r} is served by `{provider.name}`, which needs an API key: set {provider.keys[0]} in "
            "the environment or in a .env file beside README.md."
        )


async def ask_callable(function: Callable, messages: list[dict], parameters: dict) -> Response:
    """Return the response of a plain or asynchronous Python callable that answers with a Response or a text."""
    answer = function(messages, **parameters)
    answer = await answer if inspect.isawaitable(answer) else answer
    return answer if isinstance(answer, Response) else Response(str(answer), "ok" if str(answer).strip() else "empty")


class Endpoint:
    """One provider in one event loop: its HTTP client, its gate, and what its models refuse."""

    def __init__(self, provider: Provider, concurrency: int):
        self.provider = provider
        self.gate = Gate(min(concurrency, provider.concurrency))
        self.refused: dict[str, dict] = {}
        self._client = None
        self._connecting = asyncio.Lock()

    async def ask(self, model: Model, messages: list[dict], parameters: dict, note=lambda failure: None) -> Response:
        """Return the model's response, or raise `transport.Failure`."""

        def told(failure: Failure) -> None:
            failure.detail = self._redact(failure.detail)  # some providers echo the key in their refusal
            note(failure)

        while True:
            refused = self.refused.get(model.id, {})
            body = {refused.get(k, k): v for k, v in parameters.items() if refused.get(k, k)}
            body = {"model": model.api_name, "messages": messages, **body}
            try:
                reply = await call(lambda body=body: self._send(body), self.gate, self.provider.deadline, told)
                return read_reply(reply, model, refused or None)
            except Failure as failure:
                change = _adaptation(failure.detail, body) if failure.outcome == "rejected" else None
                if change is None:
                    raise
                self.refused[model.id] = refused | change

    async def _send(self, body: dict):
        import httpx2
        import openai

        client = await self._connect()
        try:
            return await client.post("/chat/completions", cast_to=httpx2.Response, body=body)
        except openai.APIStatusError as error:
            return error.response
        except (openai.APIError, httpx2.HTTPError, OSError) as error:
            if self.provider.embedded:
                await self.close()  # it may have gone for idleness: find or start it anew
            raise Failure("transient", f"connection failed: {error.__cause__ or error}") from error

    async def _connect(self):
        import httpx2
        import openai

        async with self._connecting:
            if self._client is None:
                provider = self.provider
                url = await asyncio.to_thread(embedded.url, provider) if provider.embedded else provider.url
                limits = httpx2.Limits(max_connections=None, max_keepalive_connections=self.gate.most)
                self._client = openai.AsyncOpenAI(
                    base_url=url,
                    api_key=provider.key or "none",
                    max_retries=0,
                    http_client=openai.DefaultAioHttpClient(limits=limits, timeout=None),
                )
        return self._client

    def _redact(self, text: str) -> str:
        return text.replace(self.provider.key, "[key]") if self.provider.key else text

    async def close(self) -> None:
        """Close the HTTP client."""
        client, self._client = self._client, None
        if client:
            await client.close()


REFUSES = re.compile("unsupported|not supported|does not support|deprecated|unrecognized|only the default", re.I)


def _adaptation(message: str, body: dict) -> dict | None:
    """Return {parameter: new name, or None for leaving it out} where an error says that the model refuses one."""
    if not REFUSES.search(message):
        return None
    if "max_tokens" in body and "max_completion_tokens" in message:
        return {"max_tokens": "max_completion_tokens"}
    dropped = next((k for k in ("temperature", "top_p", "seed", "logprobs") if k in body and k in message), None)
    if dropped is None:
        return None
    return {"logprobs": None, "top_logprobs": None} if dropped == "logprobs" else {dropped: None}


def read_reply(reply: Reply, model: Model, adapted: dict | None = None) -> Response:
    """Return the response that a raw body holds."""
    body, choice = reply.body, reply.body["choices"][0]
    message = choice["message"]
    content = message.get("content") or ""
    if isinstance(content, list):  # some endpoints answer in parts
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    finish = choice.get("finish_reason")
    if message.get("refusal"):
        content, status = content or message["refusal"], "refusal"
    elif finish == "content_filter":
        status = "filtered"
    elif finish == "length":
        status = "length"
    else:
        status = "ok" if content.strip() else "empty"
    usage = _usage(body.get("usage") or {})
    return Response(
        text=content,
        status=status,
        finish_reason=finish,
        usage=usage,
        cost=_cost(body.get("usage") or {}, usage, model),
        served_model=body.get("model"),
        served_by=body.get("provider"),
        request_id=body.get("id") or reply.request_id,
        latency=round(reply.latency, 3),
        attempts=reply.attempts,
        reasoning=message.get("reasoning") or message.get("reasoning_content"),
        logprobs=_logprobs(choice.get("logprobs") or {}),
        adapted=adapted,
    )


def _usage(raw: dict) -> dict:
    counts = {
        "prompt": raw.get("prompt_tokens"),
        "completion": raw.get("completion_tokens"),
        "cached": (raw.get("prompt_tokens_details") or {}).get("cached_tokens"),
        "reasoning": (raw.get("completion_tokens_details") or {}).get("reasoning_tokens"),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _cost(raw: dict, usage: dict, model: Model) -> float | None:
    if model.provider.embedded:
        return 0.0
    if raw.get("cost") is not None:
        return float(raw["cost"])
    if model.price is None or "prompt" not in usage or "completion" not in usage:
        return None
    return (usage["prompt"] * model.price["input"] + usage["completion"] * model.price["output"]) / 1e6


def _logprobs(raw: dict) -> list | None:
    return [
        (t["token"], t["logprob"], {a["token"]: a["logprob"] for a in t.get("top_logprobs") or []})
        for t in raw.get("content") or []
    ] or None
