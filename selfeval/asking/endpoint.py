"""One provider in one event loop: who may be asked now, how often, and with which parameters."""

import asyncio
import contextlib
import errno
import json
import random
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from selfeval.asking import embedded
from selfeval.asking.http import Failure, adaptation, read_reply
from selfeval.asking.request import Response, estimate
from selfeval.asking.sharing import Pace
from selfeval.models import Model, Provider

ATTEMPTS = {"transient": 6, "throttled": 10}  # of one call that end so; one that ends otherwise is the last
MAX_PAUSE = 600.0  # seconds; a provider that asks for more is given up for this run
UNPROVEN = 3  # failed calls after which a model that never answered is given up
IN_A_ROW = 8  # failed calls after which a model that did answer is only tried, one call at a time
PAUSES = (30.0, 60.0, 120.0)  # seconds before each further trial; after the last one the model is given up
SERVERS = {"ollama": "Ollama", "vllm": "vLLM", "llamacpp": "the llama.cpp server"}  # as their users call them


@dataclass
class Known:
    """What is known of one model: whether it is worth another call, and what it takes.

    Until a first call succeeds its calls go one at a time, so that a bad key costs one request. After many failures in
    a row they do so again, with growing pauses, so that an outage of minutes costs time and not a sweep; a model that
    does not come back is given up for the rest of this client's life.
    """

    answered: bool = False
    failed: int = 0  # calls in a row
    in_flight: int = 0
    open_at: float = 0.0  # when a trial may begin
    given_up: str | None = None  # why no further call makes sense
    refused: dict[str, str | None] = field(default_factory=dict)  # parameter -> its other name, None: left out
    thinks: bool | None = None  # though it is not marked as such; False: its server has no room for it

    def allows(self, now: float) -> bool:
        """Tell whether one call more may begin; of a model that is given up it ends at once."""
        sure = self.given_up or (self.answered and self.failed < IN_A_ROW)
        return bool(sure) or (not self.in_flight and now >= self.open_at)

    def learn(self, failure: Failure | None) -> None:
        """Count how a call ended: with a reply (None) or not."""
        if failure is None or failure.outcome == "rejected":  # that request alone: the service is there
            self.answered, self.failed = self.answered or failure is None, 0
        elif failure.outcome != "transient":
            self.given_up = failure.detail
        elif self.failed < IN_A_ROW or self.in_flight == 1:  # the others of a volley began before we knew
            self.failed += 1
            trials = self.failed - IN_A_ROW
            if trials > len(PAUSES) or (self.failed >= UNPROVEN and not self.answered):
                self.given_up = failure.detail
            elif trials > 0:
                self.open_at = time.monotonic() + PAUSES[trials - 1]


class Endpoint:
    """One provider in one event loop: its HTTP client, its places in flight, and what it knows of its models.

    concurrency: calls in flight at most; fewer where the registry gives the provider fewer.
    """

    def __init__(self, provider: Provider, concurrency: int):
        self.provider, self.pace = provider, Pace(provider)
        self.most = min(concurrency, provider.concurrency)
        if self.most < concurrency and not provider.embedded:
            warnings.warn(
                f"At most {self.most} calls to `{provider.name}` are in flight at a time, and not {concurrency}: its "
                "`concurrency` in the registry says so.",
                stacklevel=3,
            )
        self.limit, self.held, self.sending = float(self.most), 0, 0  # of places, and of attempts that have their turn
        self.throttled, self.open_at = 0, 0.0
        self.known: dict[str, Known] = defaultdict(Known)  # by model id
        self._waiting: list[tuple[asyncio.Future, Known | None]] = []  # for a turn, then for a place
        self._client = self._url = None
        self._connecting = asyncio.Lock()

    # who is next ------------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def place(self, model: Model):
        """Hold a place in flight for one call with its attempts, first come, first served.

        Raises `Failure("given_up", detail)` where the model is not worth another call.
        """
        known = self.known[model.id]
        await self._enter(known)
        try:
            if known.given_up:
                raise Failure("given_up", known.given_up)
            yield
        finally:
            self._leave(known)

    async def _enter(self, known: Known | None) -> None:
        """Wait for a place for a call to a model; without a model, for the turn of an attempt, which goes first."""
        ticket = asyncio.get_running_loop().create_future()
        last = len(self._waiting)
        turns = next((k for k, (_, other) in enumerate(self._waiting) if other), last)
        self._waiting.insert(last if known else turns, (ticket, known))
        self._admit()
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.cancelled():
                self._waiting.remove((ticket, known))
            else:
                self._leave(known)
            raise

    def _leave(self, known: Known | None) -> None:
        self._count(known, -1)
        self._admit()

    def _count(self, known: Known | None, change: int) -> None:
        if known:
            self.held += change
            known.in_flight += change
        else:
            self.sending += change

    def _admit(self) -> None:
        """Let those in who may be asked now: at the end of an attempt or a pause, and when somebody comes."""
        now = time.monotonic()
        while now >= self.open_at:
            for ticket, known in self._waiting:
                if (self.held if known else self.sending) >= int(self.limit):
                    return
                if not ticket.done() and (known is None or known.allows(now)):
                    break
            else:
                return
            self._waiting.remove((ticket, known))
            self._count(known, 1)
            ticket.set_result(None)

    def _admit_at(self, at: float) -> None:
        asyncio.get_running_loop().call_at(at + 0.01, self._admit)  # never before its time

    def _throttle(self, wait: float | None) -> None:
        """Pause until the provider's time, or for a growing while if it named none, and halve the calls in flight."""
        now = time.monotonic()
        if now >= self.open_at:  # the first of a volley; the others were sent before we knew
            self.throttled += 1
            self.limit = max(1.0, min(self.limit, self.sending) / 2)
        if wait is None:
            wait = min(60.0, 2.0 ** min(self.throttled - 1, 6)) * random.uniform(1, 1.5)
        self.open_at = max(self.open_at, now + wait)
        self._admit_at(self.open_at)

    async def _turn(self, known: Known, tokens: int) -> None:
        """Wait for the turn of one attempt: outside of pauses, and as the rates allow a request of so many tokens."""
        while True:
            await self._enter(None)
            try:
                await self.pace.wait(tokens)
                if known.given_up:
                    raise Failure("given_up", known.given_up)
            except BaseException:
                self._leave(None)
                raise
            if self.open_at <= time.monotonic():
                return
            self._leave(None)  # closed in the meantime
            self.pace.settle(-tokens)

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

    def _take_room(self, model: Model) -> None:
        if self.known[model.id].thinks:
            self.known[model.id].thinks = False
            warnings.warn(
                f"{model.id!r} is given no room for thinking: its server refuses {model.reasoning_tokens} tokens more; "
                "set fewer `reasoning_tokens` and `reasoning: true` in the registry.",
                stacklevel=2,
            )

    async def ask(
        self, model: Model, messages: list[dict], parameters: dict, note=lambda failure: None, allowed=None
    ) -> Response:
        """Return the model's response, or raise the last `Failure`; call it inside of a place of the model.

        The provider's deadline bounds attempts and back-off in all; a pause that it asked for, or that its rates need,
        does not count. note: told of every failed attempt. allowed: the parameters with room for thinking.
        """
        await self._connect()  # imports and the start of our own server are not the reply's latency
        known, room = self.known[model.id], allowed or parameters
        given, spent, attempts, failures = room, 0.0, 0, Counter()
        while True:
            sent, adapted = _sent(known.refused, parameters, given)
            tokens = sum(estimate(messages, sent, model))
            await self._turn(known, tokens)
            attempts, left, started = attempts + 1, self.provider.deadline - spent, time.monotonic()
            try:
                # Half of the time for the first attempt: a hung connection leaves room for a second one.
                seconds = left / 2 if attempts == 1 else left
                answer = await self._post({"model": model.api_name, "messages": messages, **sent}, seconds)
                latency = round(time.monotonic() - started, 3)
                response = read_reply(answer, model, latency=latency, attempts=attempts, adapted=adapted)
                break
            except Failure as error:
                failure = error
                note(failure)
                self._heed(failure)  # before another has its turn
            finally:
                self._leave(None)
            spent += time.monotonic() - started
            self.pace.settle(-tokens)
            rejected = failure.outcome == "rejected"
            if rejected and (change := adaptation(failure.detail, sent)):
                known.refused |= change
            elif rejected and given != parameters and not model.reasoning:
                given = parameters
            else:
                failures[failure.outcome] += 1
                count, left = failures[failure.outcome], self.provider.deadline - spent
                if count >= ATTEMPTS.get(failure.outcome, 1) or left <= 0:
                    known.learn(failure)
                    self._admit_at(known.open_at)
                    failure.detail += f" (after {attempts} attempt{'s' * (attempts > 1)})"
                    raise failure
                if failure.outcome == "transient":
                    pause = min(30.0, 2.0 ** (count - 2), left / 2) * random.uniform(0.5, 1)
                    await asyncio.sleep(pause)
                    spent += pause
        self.throttled, self.limit = 0, min(self.most, self.limit + 1 / self.limit)
        self.pace.settle(response.tokens() - tokens if response.usage else 0)
        known.learn(None)
        if given != room:
            self._take_room(model)
        return response

    def _heed(self, failure: Failure) -> None:
        """Pause for everybody where a provider asks for it."""
        if (failure.wait or 0) > MAX_PAUSE:
            failure.outcome = "fatal"
            failure.detail += f"; it asks to wait {failure.wait:.0f} s"
        if failure.outcome == "throttled":
            self._throttle(failure.wait)

    async def _post(self, body: dict, seconds: float):
        client, content = await self._connect(), json.dumps(body).encode()
        try:
            async with asyncio.timeout(seconds):
                return await client.post(self._url, content=content)
        except TimeoutError as error:
            raise Failure("transient", f"no complete reply within {seconds:.0f} s") from error
        except Exception as error:  # of openai's client, aiohttp, the sockets, or of a broken answer in any of them
            if self.provider.embedded and client is self._client:
                await self.close()  # it may have gone for idleness: find or start it anew
            if self.provider.on_loopback and _is_refused(error):
                raise Failure("fatal", f"connection refused: {_not_running(self.provider)}") from error
            raise Failure("transient", f"connection failed: {error.__cause__ or error}") from error

    async def _connect(self):
        """Return the HTTP client: the SDK's own, without its layer that builds every request's headers anew."""
        import httpx2
        import openai

        async with self._connecting:
            if self._client is None:
                own, key = self.provider.embedded, self.provider.key
                url = await asyncio.to_thread(embedded.url, self.provider) if own else self.provider.url
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
        """Close the HTTP client and the file of the rates."""
        self.pace.close()
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


def _not_running(provider: Provider) -> str:
    name, variable = SERVERS.get(provider.name, f"`{provider.name}`"), provider.base_url_env
    where = f"set {variable} to where it is" if variable else "correct its `base_url` in the registry"
    return f"Is {name} running? Nothing answers at {provider.address}; start it, or {where}"
