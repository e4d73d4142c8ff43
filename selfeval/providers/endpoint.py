"""One provider in one event loop: who may be asked now, how often, and with which parameters."""

import asyncio
import contextlib
import errno
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from selfeval.providers import embedded
from selfeval.providers.addresses import is_here
from selfeval.providers.budget import Ceiling
from selfeval.providers.limits import RateLimiter
from selfeval.providers.models import Model, Provider
from selfeval.providers.replies import EMPTY, VERSION, Failure, NoEndpoint, adaptation, read_reply
from selfeval.providers.request import Response, ask_callable
from selfeval.providers.routes import route_of
from selfeval.providers.store import Store

# of one call, where they end as `transient` or `throttled`; one that ends otherwise is the last
ATTEMPTS = 12
LEAST = 0.1  # seconds that an attempt needs
MAX_PAUSE = 600.0  # seconds; a provider that asks for more is given up for this run
SCHEMA = "response_format"
UNPROVEN = 3  # failed calls after which a model that never answered is given up
IN_A_ROW = 8  # failed calls after which a model that did answer is given up


@dataclass
class Experience:
    """What is known of one model: whether it is worth another call, and what it takes.

    Until a first call succeeds its calls go one at a time, so that a bad key costs one request. A
    model that keeps failing is given up for the rest of this client's life.
    """

    answered: bool = False
    failed: int = 0  # calls in a row
    given_up: str | None = None  # why no further call makes sense
    # parameter -> its other name or value, None: left out
    refused: dict[str, str | int | None] = field(default_factory=dict)
    # whether it takes a schema: unknown, taken, or tried without one, since then
    schema: str = "unknown"
    # though it is not marked as such; False: its server has no room for it
    thinks: bool | None = None
    # held by the one call to a model that never answered
    first: asyncio.Lock = field(default_factory=asyncio.Lock)

    def check(self) -> None:
        """Raise `Failure` where no further call makes sense."""
        if self.given_up:
            raise Failure("given_up", self.given_up)

    def learn(self, failure: Failure | None) -> None:
        """Count how a call ended: with a reply (None) or not."""
        # that request alone: the service is there
        if failure is None or failure.outcome == "rejected":
            self.answered = self.answered or failure is None
            self.failed = 0
            return
        self.failed += 1
        if failure.outcome != "transient" or self.failed >= (
            IN_A_ROW if self.answered else UNPROVEN
        ):
            self.given_up = failure.detail

    def try_in_words(self, sent: dict, failure: Failure) -> bool:
        """Leave out the JSON schema of one that never took it; return whether to send again.

        Servers refuse it in words of their own. Where the same is refused without it, it was
        something else, and the schema is sent again.
        """
        if failure.status not in (400, 404, 422) or isinstance(failure, NoEndpoint):
            return False
        if SCHEMA in sent and self.schema != "taken":
            self.schema = "tried without"
            self.refused[SCHEMA] = None
            return True
        if self.schema == "tried without":
            self.schema = "taken"
            self.refused.pop(SCHEMA)
        return False


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
        self.provider = provider
        self.store = store
        self.limiter = RateLimiter(provider, store)
        self.batch = batch
        self.most = min(concurrency, provider.concurrency)
        # attempts at a time: as many as may be, and as are
        self.limit = float(self.most)
        self.sending = 0
        # refusals in a row, and the end of the pause that they ask for
        self.throttled = 0
        self.open_at = 0.0
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
        await self.limiter.wait(tokens)
        while self._is_closed():
            pause = self.open_at - time.monotonic()
            await asyncio.sleep(max(pause, 0) + 0.02)
        self.sending += 1

    def _slow_down(self, failure: Failure) -> None:
        """Pause for everybody where a provider asks for it.

        Until its time, or for a growing while if it named none.
        """
        wait = failure.wait
        now = time.monotonic()
        if (wait or 0) > MAX_PAUSE:
            failure.outcome = "fatal"
            failure.detail += f"; it asks to wait {wait:.0f} s"
        if failure.outcome == "throttled":
            if now >= self.open_at:  # the first of a volley; the others were sent before we knew
                self.throttled += 1
                self.limit = max(1.0, min(self.limit, self.sending) / 2)
            if not wait:  # 0 is no time that was named: it would end the call within a second
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
            return await self._call(call, call.model.call)
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
        model = call.model
        known = self.known[call.model.id]
        await self._turn(call.tokens)
        call.attempts += 1
        left = self.provider.deadline - call.seconds
        started = time.monotonic()
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
            self.limiter.settle(-call.tokens)
            raise
        finally:
            self.sending -= 1
        self.throttled = 0
        self.limit = min(self.most, self.limit + 1 / self.limit)
        self.limiter.settle(response.tokens() - call.tokens if response.usage else 0)
        known.learn(None)
        if SCHEMA in sent:
            known.schema = "taken"
        elif known.schema == "tried without":
            known.schema = "refused"
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
        if failure.outcome == "rejected":
            if change := adaptation(failure, sent):
                known.refused |= change
                return True
            if call.given != call.parameters and not call.model.reasoning:
                call.given = call.parameters  # its server has no room for thinking
                known.thinks = False
                return True
        return known.try_in_words(sent, failure)

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

    async def _call(self, call: Call, function: Callable) -> Response:
        """Return the response of the user's function."""
        response = await ask_callable(function, call.messages, call.parameters)
        if response.status == "error":
            failure = Failure("rejected", response.error or "it says no more")
            self.store.record_attempt(call.key, failure.outcome, failure.detail)
            raise failure
        self.known[call.model.id].learn(None)
        return response

    async def _post(self, body: dict, seconds: float):
        async def exchange(client, url):
            return await route_of(body)(client, url, body)

        return await self._exchange(exchange, seconds)

    async def _exchange(self, exchange: Callable[[Any, Any], Awaitable], seconds: float):
        """Return what an exchange with the provider brings, by our HTTP client and its URL."""
        client = await self._connect()
        try:
            async with asyncio.timeout(seconds):
                return await exchange(client, self._url)
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
                url = self.provider.url
                key = self.provider.read_key()
                if self.provider.embedded:
                    url = await asyncio.to_thread(embedded.url, self.provider)
                    key = embedded.key(self.provider)
                base = httpx2.URL(url)  # Azure's has a query, ?api-version=...
                self._url = base.copy_with(path=f"{base.path.rstrip('/')}/chat/completions")
                headers = {
                    "Content-Type": "application/json",
                    "User-Agent": "selfeval",
                    "Accept-Encoding": "gzip",
                }
                if key:
                    headers["Authorization"] = f"Bearer {key}"
                self._client = openai.DefaultAioHttpClient(
                    headers=headers | self.provider.read_headers(),
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
        client = self._client
        self._client = None
        if client:
            await client.aclose()


def adapted_parameters(refused: dict, parameters: dict, allowed: dict) -> tuple[dict, dict | None]:
    """Return the parameters that are sent, and what of them is otherwise than asked."""
    sent = {}
    adapted = {}
    for name, value in allowed.items():
        change = refused.get(name, name)
        if name in refused:
            adapted[name] = change
        if isinstance(change, int):
            sent[name] = change
        elif change is not None:
            sent[change] = value
            if value != parameters[name]:
                adapted[change] = value
    return sent, adapted or None


def is_refused(error: BaseException | None) -> bool:
    """Tell whether nobody listened at an address."""
    while error and getattr(error, "errno", None) != errno.ECONNREFUSED:
        error = error.__cause__
    return error is not None
