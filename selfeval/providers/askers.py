"""Who answers a request, chosen once from the model and the mode: computed, counted, or bought.

`Counting` is in `dry_runs`, `Batched`, which buys in batches, in `batches`.
"""

import asyncio
import contextlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import add
from typing import Any, Protocol

from selfeval.errors import BudgetError, InputError, StoreError, check_one_of
from selfeval.providers.budget import Ceiling
from selfeval.providers.calls import Call
from selfeval.providers.dry_runs import dollars
from selfeval.providers.endpoint import Endpoint
from selfeval.providers.leases import own_name
from selfeval.providers.models import Model, Provider
from selfeval.providers.replies import Again, Failure
from selfeval.providers.request import (
    Request,
    Response,
    ask_callable,
    canonical,
    seeded,
)
from selfeval.providers.store import Store

# of one call, where they end as `transient` or `throttled`; one that ends otherwise is the last
ATTEMPTS = 12
LEAST = 0.1  # seconds that an attempt needs


class Asker(Protocol):
    """Whoever answers requests."""

    async def ask(self, request: Request) -> Response:
        """Return the response to a request; a failure is one with status `error`."""


@dataclass
class Tally:
    """What a client did so far.

    calls: replies bought, with their tokens and cost. stored: served from the store. again: of the
    calls, those that asked for a reply once more.
    """

    calls: int = 0
    again: int = 0
    stored: int = 0
    simulated: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def count(self, response: Response) -> None:
        """Count a reply that was bought."""
        self.calls += 1
        self.tokens += response.tokens()
        self.cost += response.cost or 0.0
        self.unpriced += response.cost is None

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*map(add, vars(self).values(), vars(other).values()))

    def __str__(self) -> str:
        parts = [f"{self.calls} model calls"]
        if self.calls:
            parts = [f"{self.calls} model calls ({self.tokens} tokens, {self._money()})"]
        if self.again:
            parts.append(f"{self.again} of them asked again")
        if self.simulated:
            parts.append(f"{self.simulated} simulated replies")
        return ", ".join([*parts, f"{self.stored} replies from the store, {self.failed} failed"])

    def _money(self) -> str:
        """Return what the calls cost, and for how many nobody knows."""
        known = f"${dollars(self.cost)}"
        if not self.unpriced:
            return known
        unknown = f"price unknown for {self.unpriced} calls"
        priced = self.calls - self.unpriced
        return f"{unknown}, {known} for the other {priced}" if priced > 0 else unknown


@dataclass
class Account:
    """What the askers of a client share.

    again: statuses of replies to ask for once more, so many times. before: stored replies that are
    to be asked for again, by the keys of their requests. flying: calls that are sent and not yet
    stored.
    """

    store: Store
    ceiling: Ceiling | None
    tally: Tally
    concurrency: int
    again: list[str]
    times: int
    before: dict[str, Response] = field(default_factory=dict)
    flying: int = 0
    # two embedded models at once are four times as slow as one after the other
    machine: asyncio.Lock = field(default_factory=asyncio.Lock)

    def wants_again(self, request: Request, response: Response) -> bool:
        """Tell whether a reply is to be asked for once more."""
        if (
            response.status not in self.again
            or len(response.earlier) >= self.times
            or self.store.replay
        ):
            return False
        return not (request.cut_counts and response.status == "length" and response.text.strip())


@dataclass
class Simulated:
    """Computes replies, which are not stored: of simulated models, and of functions.

    players: {role: the module that plays it}. Each knows the prompts of its part by `is_asked`, but
    for the last, who has all that is left: anything may be said before a model is asked who it is.
    """

    players: Mapping[str, Any]
    tally: Tally

    async def ask(self, request: Request) -> Response:
        """Return what a model's function answers, or what a simulated model does."""
        self.tally.simulated += 1
        messages, parameters = request.full()
        function = request.model.call or partial(self._play, request)
        response = await ask_callable(function, messages, parameters)
        self.tally.failed += response.status == "error"
        return response

    def _play(self, request: Request, messages: list[dict], **parameters) -> Response:
        """Return what a simulated model answers to the messages of a request.

        Every draw is seeded by the request, so the same request always has the same reply. Raises
        `InputError` for a role or rate that nobody knows.
        """
        model = request.model
        rates = dict(model.simulation or {})
        role = rates.pop("role", None)
        if role:
            check_one_of(f"role` of `{model.id}", role, self.players)
        players = [self.players[role]] if role else [*self.players.values()]
        if unknown := rates.keys() - {rate for player in players for rate in player.RATES}:
            raise InputError(
                f"The model {model.id!r} has the unknown simulation parameter `{min(unknown)}`."
            )
        player = next((each for each in players[:-1] if each.is_asked(messages)), players[-1])
        seed = canonical({"m": model.id, "x": messages, "s": request.sample, "seed": request.seed})
        text = player.reply(model, rates, messages, seeded(seed))
        usage = {"prompt": len(messages[-1]["content"].split()), "completion": len(text.split())}
        return Response(text, finish_reason="stop", usage=usage, cost=0.0, served_model=model.id)


class Paid:
    """Buys the replies of one provider: the store, a lease, the endpoint, and the store again."""

    def __init__(self, provider: Provider, account: Account):
        self.provider = provider
        self.account = account
        self.store = account.store
        self.endpoint = Endpoint(provider, account.concurrency)
        self.known = self.endpoint.known
        self._machine: Any = account.machine if provider.embedded else contextlib.nullcontext()

    async def close(self) -> None:
        """Close connections."""
        await self.endpoint.close()

    async def ask(self, request: Request) -> Response:
        """Return the reply to a request, bought or stored meanwhile, or why there is none."""
        before = self.account.before.get(request.key)
        while True:
            earlier = [*before.earlier, before.status] if before else []
            try:
                async with self._place(request.model):
                    before = await self._buy(request, earlier)
            except Failure as failure:
                self.account.tally.failed += 1
                return Response(status="error", error=failure.detail)
            except (StoreError, BudgetError) as error:
                # it ends the others, so what is paid for comes first
                while self.account.flying:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                raise self.store.failure or error from None
            if not self.account.wants_again(request, before):
                return before

    @contextlib.asynccontextmanager
    async def _place(self, model: Model):
        """Hold a place in flight for one call with its attempts, first come, first served."""
        known = self.known[model.id]
        async with known.first:
            if not known.answered:
                async with self.endpoint.places, self._machine:
                    yield
                return
        async with self.endpoint.places, self._machine:
            yield

    async def _buy(self, request: Request, earlier: list[str]) -> Response:
        """Lease a request, ask, store the reply.

        What was all thinking is asked for again, with room for that.
        """
        account = self.account
        known = self.known[request.model.id]
        only_thought_before = False
        while True:
            if self.store.failure:  # nothing more is bought once a reply cannot be kept
                raise self.store.failure
            call = known.call(request, len(earlier), account.ceiling)
            if stored := await self._lease(call):
                account.tally.stored += 1
                return stored
            with contextlib.suppress(Again), self._in_flight(call):
                response = await self._send(call)
                self._count(call, response)
                if not only_thought_before and self._needs_room(call, response):
                    only_thought_before = True
                    continue
                response = replace(response, earlier=earlier) if earlier else response
                reply = response.to_dict()
                await self.store.put(call.key, request.identity, reply, account.ceiling, call.owner)
                account.tally.again += bool(earlier) + only_thought_before
                return response

    async def _lease(self, call: Call) -> Response | None:
        """Wait until a call is ours to send (None), or its reply is stored (the reply)."""
        found = await self.store.claim(call.key, self.account.ceiling, call.amount)
        if isinstance(found, dict):
            return Response.from_dict(found)
        call.owner = found or call.owner
        return None

    @contextlib.contextmanager
    def _in_flight(self, call: Call) -> Iterator[None]:
        """Give a lease back where what is inside fails, unless somebody else has it meanwhile."""
        self.account.flying += 1
        try:
            yield
        except Failure as failure:
            if failure.outcome != "open":
                self.store.release(call.key, call.owner, self.account.ceiling, 0.0)
            raise
        except BaseException as error:
            if call.owner == own_name():
                outcome = "abandoned" if isinstance(error, asyncio.CancelledError) else ""
                detail = "broken off without a reply"
                # the reply to what is broken off may be billed
                cost = call.amount
                self.store.release(
                    call.key, call.owner, self.account.ceiling, cost, outcome, detail
                )
            raise
        finally:
            self.account.flying -= 1

    def _count(self, call: Call, response: Response) -> None:
        """Count what a reply cost."""
        self.account.tally.count(response)
        if self.account.ceiling:
            self.account.ceiling.learn(call.model, response.cost)

    def _needs_room(self, call: Call, response: Response) -> bool:
        """Give a model room for thinking from now on, where a reply was all thinking.

        Returns whether that changes what it is sent; then the lease is given back.
        """
        known = self.known[call.model.id]
        if not (response.only_thought and known.make_room(call)):
            return False
        used = response.usage.get("completion", "?")
        detail = f"all thinking: {used} tokens and no answer, asked with more"
        self.store.release(
            call.key, call.owner, self.account.ceiling, response.cost, "thinking", detail
        )
        return True

    async def _send(self, call: Call) -> Response:
        """Return the model's response, or raise the last `Failure`.

        The provider's deadline bounds attempts and back-off in all; a pause that it asked for
        does not count.
        """
        if call.owner != own_name():
            remedy = f"put `batch` back into the entry of `{self.provider.name}` in the registry"
            raise Failure("open", f"the request went out in the {call.owner}; {remedy}")
        await self.endpoint.connect()  # the start of our own server is not the reply's latency
        while True:
            try:
                return await self.endpoint.send(call)
            except Failure as failure:
                if failure.outcome == "given_up":
                    raise
                self.store.record_attempt(call.key, failure.outcome, failure.detail)
                if not self.known[call.model.id].adapt(call, failure):
                    await self._back_off(call, failure)

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
