"""One provider in one event loop: who may be asked now, how often, and with which parameters."""

import asyncio
import contextlib
import errno
import json
import random
import sqlite3
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from selfeval.asking import local
from selfeval.asking.http import Failure, adaptation, post_likelihood, read_reply
from selfeval.asking.request import Response, ask_callable, estimate
from selfeval.asking.store import Store
from selfeval.models import Model, Provider

ATTEMPTS = {"transient": 12, "throttled": 12}  # of one call that end so; one that ends otherwise is the last
SHORTEST = 0.1  # seconds that an attempt needs
MAX_PAUSE = 600.0  # seconds; a provider that asks for more is given up for this run
UNPROVEN = 3  # failed calls after which a model that never answered is given up
IN_A_ROW = 8  # failed calls after which a model that did answer is given up
LAG = 1.0  # seconds of unused rate that may be made up for, or short sleeps would cost a share of it
STALE = 900.0  # seconds ahead that no rate leads to: the clock was set back


class Pace:
    """Requests and tokens a minute of one provider: what is due next is due for all processes that share the store."""

    def __init__(self, provider: Provider, store: Store):
        self.name, self._store = f"{provider.name} {provider.url}", store
        # A minute's worth in 61 seconds, since LAG may be made up for at any time.
        rates = (provider.requests_per_minute, provider.tokens_per_minute)
        self._seconds, self._turn = [(60 + LAG) / rate for rate in rates], asyncio.Lock()
        self._owed = 0.0  # seconds of the rate of tokens by which replies differed from what was expected

    async def wait(self, tokens: int) -> None:
        """Wait until one more request, of so many tokens, keeps the rates."""
        if any(self._seconds):
            async with self._turn:
                while (pause := await self._store.write(lambda store: self._enter(store, tokens))) > 0:  # noqa: ASYNC110  processes set no event
                    await asyncio.sleep(pause)

    def settle(self, tokens: int) -> None:
        """Correct the estimate by so many tokens, with the next request."""
        self._owed += tokens * self._seconds[1]

    def _enter(self, store: sqlite3.Connection, tokens: int) -> float:
        """Take a place now and return 0, or return the seconds until there may be one."""
        now, costs = time.time(), (self._seconds[0], tokens * self._seconds[1])
        row = store.execute("SELECT requests, tokens FROM rates WHERE name = ?", (self.name,)).fetchone() or (0.0, 0.0)
        due = [at if at < now + STALE else now for at in (row[0], row[1] + self._owed)]
        pause = max(0.0, max(due) - now)
        after = due if pause else [max(at, now - LAG) + cost for at, cost in zip(due, costs, strict=True)]
        store.execute("INSERT OR REPLACE INTO rates VALUES (?, ?, ?)", (self.name, *after))
        self._owed = 0.0
        return pause


@dataclass
class Experience:
    """What is known of one model: whether it is worth another call, and what it takes.

    Until a first call succeeds its calls go one at a time, so that a bad key costs one request. A model that keeps
    failing is given up for the rest of this client's life.
    """

    answered: bool = False
    failed: int = 0  # calls in a row
    given_up: str | None = None  # why no further call makes sense
    refused: dict[str, str | None] = field(default_factory=dict)  # parameter -> its other name, None: left out
    thinks: bool | None = None  # though it is not marked as such; False: its server has no room for it
    first: asyncio.Lock = field(default_factory=asyncio.Lock)  # held by the one call to a model that never answered

    def learn(self, failure: Failure | None) -> None:
        """Count how a call ended: with a reply (None) or not."""
        if failure is None or failure.outcome == "rejected":  # that request alone: the service is there
            self.answered, self.failed = self.answered or failure is None, 0
            return
        self.failed += 1
        if failure.outcome != "transient" or self.failed >= (IN_A_ROW if self.answered else UNPROVEN):
            self.given_up = failure.detail


@dataclass
class Call:
    """One call with its attempts. given: its parameters, with room for thinking where the model thinks."""

    model: Model
    messages: list[dict]
    parameters: dict
    given: dict
    attempts: int = 0
    seconds: float = 0.0  # of the provider's deadline, which attempts and back-off took
    failures: Counter = field(default_factory=Counter)  # outcome -> attempts


class Endpoint:
    """One provider in one event loop: its HTTP client, its places in flight, and what it knows of its models.

    concurrency: calls in flight at most; fewer where the registry gives the provider fewer.
    """

    def __init__(self, provider: Provider, concurrency: int, store: Store):
        self.provider, self.pace = provider, Pace(provider, store)
        self.most = min(concurrency, provider.concurrency)
        self.limit, self.sending = float(self.most), 0  # attempts at a time: as many as may be, and as are
        self.throttled, self.open_at = 0, 0.0  # refusals in a row, and the end of the pause that they ask for
        self.known: dict[str, Experience] = defaultdict(Experience)  # by model id
        self._places = asyncio.Semaphore(self.most)
        self._client = self._url = None
        self._connecting = asyncio.Lock()

    # who is next ------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def place(self, model: Model):
        """Hold a place in flight for one call with its attempts, first come, first served.

        Raises `Failure("given_up", detail)` where the model is not worth another call.
        """
        known = self.known[model.id]
        async with contextlib.AsyncExitStack() as held:
            if not known.answered:
                async with contextlib.AsyncExitStack() as first:
                    await first.enter_async_context(known.first)
                    if not known.answered:
                        held.push_async_exit(first.pop_all())
            await held.enter_async_context(self._places)
            if known.given_up:
                raise Failure("given_up", known.given_up)
            yield

    async def _turn(self, known: Experience, tokens: int) -> None:
        """Wait for the turn of one attempt: outside of pauses, and as the rates allow a request of so many tokens."""
        while True:
            while (pause := self.open_at - time.monotonic()) > 0 or self.sending >= int(self.limit):  # noqa: ASYNC110
                await asyncio.sleep(max(pause, 0) + 0.02)
            self.sending += 1
            try:
                await self.pace.wait(tokens)
                if known.given_up:
                    raise Failure("given_up", known.given_up)
            except BaseException:
                self.sending -= 1
                raise
            if self.open_at <= time.monotonic():
                return
            self.sending -= 1  # a pause began in the meantime
            self.pace.settle(-tokens)

    def _slow_down(self, failure: Failure) -> None:
        """Pause for everybody where a provider asks for it: until its time, or for a growing while if it named none."""
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

    # what is sent -----------------------------------------------------------------------------------------------------

    def allowed(self, model: Model, parameters: dict) -> dict:
        """Return parameters as the model is sent them: with room for thinking where it thinks."""
        return model.with_room(parameters) if model.reasoning or self.known[model.id].thinks else parameters

    def make_room(self, model: Model, parameters: dict) -> bool:
        """Give a model room for thinking from now on; return whether that changes what it is sent."""
        known = self.known[model.id]
        if self.provider.embedded or known.thinks is False or model.with_room(parameters) == parameters:
            return False
        if known.thinks is None:
            known.thinks = True
            warnings.warn(
                f"{model.id!r} spent a whole reply on thinking and is given {model.reasoning_tokens} tokens more from "
                "now on; mark it `reasoning: true` in the registry to spare that request.",
                stacklevel=2,
            )
        return True

    async def ask(
        self, model: Model, messages: list[dict], parameters: dict, allowed: dict, note: Callable
    ) -> Response:
        """Return the model's response, or raise the last `Failure`; call it inside of a place of the model.

        The provider's deadline bounds attempts and back-off in all; a pause that it asked for, or that its rates need,
        does not count. allowed: the parameters with room for thinking. note: told of every failed attempt.
        """
        if model.call:
            return await self._call(model, messages, parameters, note)
        await self._connect()  # imports and the start of our own server are not the reply's latency
        call = Call(model, messages, parameters, allowed)
        while True:
            sent, adapted = _sent(self.known[model.id].refused, parameters, call.given)
            try:
                return await self._attempt(call, sent, adapted)
            except Failure as failure:
                if failure.outcome == "given_up":  # nothing was sent
                    raise
                note(failure)
                if not self._adapt(call, sent, failure):
                    await self._back_off(call, failure)

    async def _attempt(self, call: Call, sent: dict, adapted: dict | None) -> Response:
        """Wait for its turn, send the request once, and read the reply."""
        model, known = call.model, self.known[call.model.id]
        tokens = sum(estimate(call.messages, sent, model))
        await self._turn(known, tokens)
        call.attempts, left, started = call.attempts + 1, self.provider.deadline - call.seconds, time.monotonic()
        try:
            # Half of the time for the first attempt: a hung connection leaves room for a second one.
            seconds = left / 2 if call.attempts == 1 else left
            answer = await self._post({"model": model.api_name, "messages": call.messages, **sent}, seconds)
            latency = round(time.monotonic() - started, 3)
            response = read_reply(answer, model, latency=latency, attempts=call.attempts, adapted=adapted)
        except Failure as failure:
            self._slow_down(failure)
            call.seconds += time.monotonic() - started
            self.pace.settle(-tokens)
            raise
        finally:
            self.sending -= 1
        self.throttled, self.limit = 0, min(self.most, self.limit + 1 / self.limit)
        self.pace.settle(response.tokens() - tokens if response.usage else 0)
        known.learn(None)
        return response

    def _adapt(self, call: Call, sent: dict, failure: Failure) -> bool:
        """Change what is sent where the model refuses a parameter; return whether there is something to change."""
        known = self.known[call.model.id]
        if failure.outcome != "rejected":
            return False
        if change := adaptation(failure.detail, sent):
            known.refused |= change
        elif call.given != call.parameters and not call.model.reasoning:  # its server has no room for thinking
            call.given, known.thinks = call.parameters, False
        else:
            return False
        return True

    async def _back_off(self, call: Call, failure: Failure) -> None:
        """Wait before the next attempt; raise the failure where there is none."""
        call.failures[failure.outcome] += 1
        count, left = call.failures[failure.outcome], self.provider.deadline - call.seconds
        if count >= ATTEMPTS.get(failure.outcome, 1) or left < SHORTEST:
            self.known[call.model.id].learn(failure)
            failure.detail += f" (after {call.attempts} attempt{'s' if call.attempts > 1 else ''})"
            raise failure
        if failure.outcome == "transient":
            pause = min(30.0, 2.0 ** (count - 2), left / 2) * random.uniform(0.5, 1)
            await asyncio.sleep(pause)
            call.seconds += pause

    async def _call(self, model: Model, messages: list[dict], parameters: dict, note: Callable) -> Response:
        """Return the response of the user's function."""
        response = await ask_callable(model.call, messages, parameters)
        if response.status == "error":
            failure = Failure("rejected", response.error)
            note(failure)
            raise failure
        self.known[model.id].learn(None)
        return response

    async def _post(self, body: dict, seconds: float):
        client = await self._connect()
        try:
            async with asyncio.timeout(seconds):
                if "likelihood" in body:
                    return await post_likelihood(client, self._url, body)
                return await client.post(self._url, content=json.dumps(body).encode())
        except Failure:
            raise
        except TimeoutError as error:
            raise Failure("transient", f"no complete reply within {seconds:.0f} s") from error
        except Exception as error:  # of openai's client, aiohttp, the sockets, or of a broken answer in any of them
            if self.provider.embedded and client is self._client:
                await self.close()  # it may have gone for idleness: find or start it anew
            if self.provider.on_loopback and _is_refused(error):
                where = self.provider.base_url_env or "its `base_url`"
                detail = f"nothing answers at {self.provider.address}; start the server, or correct {where}"
                raise Failure("fatal", detail) from error
            raise Failure("transient", f"connection failed: {error.__cause__ or error}") from error

    async def _connect(self):
        """Return the HTTP client: the SDK's own, without its layer that builds every request's headers anew."""
        import httpx2
        import openai

        async with self._connecting:
            if self._client is None:
                own, key = self.provider.embedded, self.provider.key
                url = await asyncio.to_thread(local.url, self.provider) if own else self.provider.url
                self._url = httpx2.URL(f"{url.rstrip('/')}/chat/completions")
                headers = {"Content-Type": "application/json", "User-Agent": "selfeval"}
                self._client = openai.DefaultAioHttpClient(
                    headers=headers | ({"Authorization": f"Bearer {key}"} if key else {}),
                    limits=httpx2.Limits(max_connections=self.most, max_keepalive_connections=self.most),
                    timeout=None,
                    trust_env=not own,  # no proxy between us and our own server
                )
            return self._client

    async def close(self) -> None:
        """Close the HTTP client."""
        client, self._client = self._client, None
        if client:
            await client.aclose()


def _sent(refused: dict, parameters: dict, allowed: dict) -> tuple[dict, dict | None]:
    """Return the parameters that are sent, and what of them is otherwise than asked."""
    names = {k: new for k, new in refused.items() if k in parameters}
    sent = {names.get(k, k): v for k, v in allowed.items() if names.get(k, k)}
    room = {names.get(k, k): v for k, v in allowed.items() if v != parameters[k]}
    return sent, names | room or None


def _is_refused(error: BaseException | None) -> bool:
    while error and getattr(error, "errno", None) != errno.ECONNREFUSED:
        error = error.__cause__
    return error is not None
