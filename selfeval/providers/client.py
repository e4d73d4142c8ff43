"""The one way to ask models: many at once, each request bought once, counted, with progress.

Also what verbs share.
"""

import asyncio
import contextlib
import inspect
import itertools
import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import wraps
from operator import add
from pathlib import Path
from typing import ParamSpec, TypedDict, TypeVar, cast

from selfeval.errors import BudgetError, InputError, StoreError, check_flag, check_whole, meant_by
from selfeval.providers import dry_runs, embedded, ends
from selfeval.providers.batches import Batches
from selfeval.providers.budget import Ceiling
from selfeval.providers.endpoint import Call, Endpoint
from selfeval.providers.models import Model
from selfeval.providers.replies import Again, Failure
from selfeval.providers.request import (
    Request,
    Response,
    compute,
    estimate,
    is_computed,
    read_again,
    stored_key,
)
from selfeval.providers.store import Store
from selfeval.secrets import visible

P = ParamSpec("P")
R = TypeVar("R")


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
    cached: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def count(self, response: Response) -> None:
        """Count a reply that was bought."""
        self.calls += 1
        self.tokens += response.tokens()
        self.cached += response.usage.get("cached", 0)
        self.cost += response.cost or 0.0
        self.unpriced += response.cost is None

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*map(add, vars(self).values(), vars(other).values()))

    def __str__(self) -> str:
        parts = [f"{self.calls} model calls"]
        if self.calls:
            cached = f", {self.cached} of them cached" if self.cached else ""
            parts = [f"{self.calls} model calls ({self.tokens} tokens{cached}, {self._money()})"]
        if self.again:
            parts.append(f"{self.again} of them asked again")
        if self.simulated:
            parts.append(f"{self.simulated} simulated replies")
        return ", ".join([*parts, f"{self.stored} replies from the store, {self.failed} failed"])

    def _money(self) -> str:
        """Return what the calls cost, and for how many nobody knows."""
        known = f"${dry_runs.dollars(self.cost)}"
        if not self.unpriced:
            return known
        unknown = f"price unknown for {self.unpriced} calls"
        priced = self.calls - self.unpriced
        return f"{unknown}, {known} for the other {priced}" if priced > 0 else unknown


tallies: list[Tally] = []  # of all clients of this process: a notebook may use several


class Client(contextlib.AbstractAsyncContextManager):
    """Ask models, `concurrency` calls in flight per provider at most.

    Use it as `async with Client() as client`. The bound holds over everything that runs on this
    client at a time: chains of single `chat` calls share the places of their provider with each
    other and with every `chat_all`, first come, first served.

    again: which replies to ask for once more, stored ones too: "empty", "filtered" or cut off
    ("length"), separated by commas, with a number for more often than once. Every reply stays
    stored, the last is served. An answer, a refusal and the reply of a simulated model or a
    callable are never asked for again. max_cost: US dollars that this client may spend, where
    `SELFEVAL_MAX_COST` sets no ceiling. batch: ask in batches, as `SELFEVAL_BATCH=1` does.
    """

    def __init__(
        self,
        concurrency=16,
        store: Store | None = None,
        *,
        again="",
        max_cost=None,
        batch: bool = False,
    ):
        check_whole("concurrency", concurrency, 1)
        check_flag("batch", batch)
        self.batch = batch or os.environ.get("SELFEVAL_BATCH") == "1"
        self._again, self._times = read_again(again)
        self.concurrency = concurrency
        self.store = store or Store()
        self.tally = Tally()
        tallies.append(self.tally)
        self.ceiling = Ceiling.of(max_cost)
        self._endpoints: dict[str, Endpoint] = {}
        # model id -> which endpoints its replies come from
        self.served: dict[str, set[str]] = defaultdict(set)
        self.ends: Counter[str] = Counter()  # unknown reasons why replies ended
        self._flying = 0  # calls that are sent and not yet stored
        # two embedded models at once are four times as slow as one after the other
        self._machine = asyncio.Lock()

    async def __aexit__(self, *_) -> None:
        """Close connections and files."""
        for endpoint in self._endpoints.values():
            await endpoint.close()
        self.store.close()
        _write_progress()

    def given_up(self) -> dict[str, str]:
        """Return {model id: why} of the models that are not asked any more."""
        known = {
            name: found
            for endpoint in self._endpoints.values()
            for name, found in endpoint.known.items()
        }
        return {name: found.given_up for name, found in known.items() if found.given_up}

    def refused(self) -> dict[str, str]:
        """Return {model id: the parameters that it does not take as they were asked}."""
        found = {}
        for endpoint in self._endpoints.values():
            for name, known in endpoint.known.items():
                if known.refused and known.answered:
                    found[name] = ", ".join(f"`{parameter}`" for parameter in known.refused)
        return found

    async def chat(
        self, model: Model, messages: list[dict], *, sample=0, seed=0, shared=0, **parameters
    ) -> Response:
        """Return one response; a failure is a response with status `error`."""
        return (
            await self.chat_all(
                [Request(model, messages, parameters, sample, seed, False, shared)], label=None
            )
        )[0]

    async def chat_all(
        self, requests: Sequence[Request], label: str | None = "replies"
    ) -> list[Response]:
        """Return the responses to all requests in their order.

        Stored ones are read, the others are bought. A request whose call fails gets a response with
        status `error`; after a failure that concerns the model itself (key, credit, no such model)
        no further call to it is made. Raises `ProviderError` before the first call where a key is
        missing, `StoreError` where replies cannot be kept, `BudgetError` once the ceiling of
        `max_cost` is reached and all that was in flight is stored, `ReplayMiss` in replay mode.
        """
        stored = {}
        if not dry_runs.passes_over_stored():
            stored = self.store.look_up(
                {each.key: each.identity for each in requests if not is_computed(each.model)}
            )
        before = {key: Response.from_dict(reply) for key, reply in stored.items()}
        responses = [self._find_stored(request, before) for request in requests]
        missing = [i for i, response in enumerate(responses) if response is None]
        for model in {requests[i].model.id: requests[i].model for i in missing}.values():
            embedded.require(model, self.batch)
        by_provider = defaultdict(list)
        for i in missing:
            by_provider[requests[i].model.provider.name].append(i)

        with progress(label, len(requests), len(requests) - len(missing)) as bar:

            async def work(indices: Iterator[int]) -> None:
                for i in indices:
                    responses[i] = await self._answer(requests[i], before)
                    bar.update()

            async with Tasks() as group:
                for indices in by_provider.values():
                    shared = iter(indices)  # workers pull in order: a server's prefix cache profits
                    for _ in range(
                        len(indices) if self.batch else min(self.concurrency, len(indices))
                    ):
                        group.create_task(work(shared))
        answered = cast(list[Response], responses)
        for request, response in zip(requests, answered, strict=True):
            names = [name for name in (response.served_model, response.served_by) if name]
            self.served[request.model.id] |= {" via ".join(names)} - {""}
            if ends.status_of(response.finish_reason) == ends.UNKNOWN:
                self.ends[str(response.finish_reason)] += 1
        return answered

    def _find_stored(self, request: Request, stored: dict[str, Response]) -> Response | None:
        """Return the stored reply.

        None is for no reply, and for one that is to be asked for again.
        """
        if (
            is_computed(request.model)
            or request.key not in stored
            or self._wanted_again(request, stored[request.key])
        ):
            return None
        self.tally.stored += 1
        dry_runs.count_stored(request)
        return stored[request.key]

    def _wanted_again(self, request: Request, response: Response) -> bool:
        if (
            self.store.replay
            or response.status not in self._again
            or len(response.earlier) >= self._times
        ):
            return False
        return not (request.cut_counts and response.status == "length" and response.text.strip())

    async def _answer(self, request: Request, stored: dict[str, Response]) -> Response:
        """Return the response to a request that is not served.

        Computed, a stand-in of a dry run, or bought. What a simulated model or a function of the
        user's answers is not stored, unless the function says so.
        """
        if is_computed(request.model) and not (request.model.call and dry_runs.folder()):
            self.tally.simulated += 1
            response = await compute(request)
            self.tally.failed += response.status == "error"
            return response
        if dry_runs.folder():
            return dry_runs.reply(
                request, *request.full(), bool(self.batch and request.model.provider.batch)
            )
        before = stored.get(request.key)
        while True:
            earlier = [*before.earlier, before.status] if before else []
            before = await self._place(request, earlier)
            if not self._wanted_again(request, before):
                return before

    async def _place(self, request: Request, earlier: list[str]) -> Response:
        """Return the reply to a request, bought or stored meanwhile, or why there is none."""
        provider = request.model.provider
        if provider.name not in self._endpoints:
            kind = Batches if provider.batch else Endpoint
            self._endpoints[provider.name] = kind(
                provider, self.concurrency, self.store, self.batch
            )
        endpoint = self._endpoints[provider.name]
        try:
            async with (
                endpoint.place(request.model),
                self._machine if provider.embedded else contextlib.nullcontext(),
            ):
                return await self._buy(request, endpoint, earlier)
        except Failure as failure:
            self.tally.failed += 1
            return Response(status="error", error=failure.detail)
        except (StoreError, BudgetError) as error:
            # it ends the others, so what is paid for comes first
            while self._flying:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            raise self.store.failure or error from None

    async def _buy(self, request: Request, endpoint: Endpoint, earlier: list[str]) -> Response:
        """Claim a request, ask, store the reply.

        What was all thinking is asked for again, with room for that.
        """
        model = request.model
        messages, parameters = request.full()
        key = stored_key(request.key, len(earlier))
        only_thought_before = False
        while True:
            if self.store.failure:  # nothing more is bought once a reply cannot be kept
                raise self.store.failure
            allowed = endpoint.allowed(model, parameters)
            tokens = estimate(messages, allowed, model)
            amount = self.ceiling.at_most(model, *tokens) if self.ceiling else 0.0
            call = Call(key, model, messages, parameters, allowed, sum(tokens), request.shared)
            stored = await endpoint.claim(call, self.ceiling, amount)
            if stored is not None:
                self.tally.stored += 1
                return Response.from_dict(stored)
            with contextlib.suppress(Again), self._in_flight(call, amount):
                response = await endpoint.ask(call)
                self.tally.count(response)
                if self.ceiling:
                    self.ceiling.learn(model, response.cost)
                may_ask_again = response.only_thought and not only_thought_before
                if may_ask_again and endpoint.make_room(model, parameters):
                    only_thought_before = True
                    used = response.usage.get("completion", "?")
                    detail = f"all thinking: {used} tokens and no answer, asked with more"
                    self.store.release(
                        key, self.ceiling, response.cost, "thinking", detail, call.batch
                    )
                    continue
                response = replace(response, earlier=earlier)
                await self.store.put(key, request.identity, response.to_dict(), self.ceiling)
                if earlier:
                    self.tally.again += 1
                if only_thought_before:
                    self.tally.again += 1
                return response

    @contextlib.contextmanager
    def _in_flight(self, call: Call, amount: float) -> Iterator[None]:
        """Give a claim back where what is inside fails, unless a batch is on its way.

        No reply of it is stored.
        """
        self._flying += 1
        try:
            yield
        except BaseException as error:
            has_failed = isinstance(error, Failure)
            cost = 0.0 if has_failed else amount  # the reply to what is broken off may be billed
            outcome = "abandoned" if isinstance(error, asyncio.CancelledError) else ""
            is_open = isinstance(error, Failure) and error.outcome == "open"
            is_with_a_batch = call.batch and (is_open or not has_failed)
            if not is_with_a_batch:
                self.store.release(
                    call.key, self.ceiling, cost, outcome, "broken off without a reply", call.batch
                )
            raise
        finally:
            self._flying -= 1


class Tasks(asyncio.TaskGroup):
    """A group of tasks whose first failure ends the others and is raised as itself.

    Nor does it carry the group as its context: IPython cannot show such an exception, and when it
    is a kernel's first, papermill and nbconvert wait for ever for the cell's reply (ipykernel 7.4).
    """

    async def __aexit__(self, *exception) -> None:
        failure = None
        try:
            await super().__aexit__(*exception)
        except BaseExceptionGroup as failures:
            failure = failures.exceptions[0]
        if failure:
            raise failure


async def gather(coroutines: Iterable[Coroutine]) -> list:
    """Return the results of coroutines in their order.

    The first failure ends the others and is raised as itself.
    """
    async with Tasks() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
    return [task.result() for task in tasks]


def progress(label: str | None, total: int, done: int = 0):
    """Return a bar for a person, to be used in a `with` and told of each reply by `update()`.

    None for label None.
    """
    from tqdm.auto import tqdm

    # tqdm's notebook class does not look at it
    quiet = label is None or os.environ.get("TQDM_DISABLE") == "1"
    bar = tqdm(total=total, initial=done, desc=label, unit="reply", disable=quiet)
    if label and os.environ.get("SELFEVAL_PROGRESS"):
        numbers = itertools.count(done + 1)
        bar.update = lambda: _write_progress(f"{next(numbers)} of {total} {label}")  # type: ignore
    return bar


def _write_progress(asked: str = "") -> None:
    """Write what all clients of this process did into the file that `SELFEVAL_PROGRESS` names.

    A sweep runs it.
    """
    if file := os.environ.get("SELFEVAL_PROGRESS"):
        counts = vars(sum(tallies, Tally()))
        counts |= {"asked": asked} if asked else {}
        # a full disk ends the run where replies are lost, not here
        with contextlib.suppress(OSError):
            Path(file).write_text(json.dumps(counts))


# what verbs that ask models share


class Asking(TypedDict, total=False):
    """The keywords that every verb that asks models takes.

    concurrency: calls in flight per provider, 16 unless set. again: replies to ask for once more,
    stored ones too: "empty", "filtered" or cut off ("length"), with a number for more often than
    once. max_cost: US dollars that this call may spend; before it could spend more it stops, and
    what was bought stays stored. batch: ask in batches, at half the price and within a day;
    interrupted, the same call goes on waiting. dry_run: ask nobody, and return per model what is
    stored, what would be bought, the tokens and the price.
    """

    concurrency: int
    again: str
    max_cost: float | None
    batch: bool
    dry_run: bool


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse keywords that a verb does not take, and explain those of `Asking` in its help."""
    known = [*inspect.signature(function).parameters]
    if asks := "asking" in known:
        known = [*known[:-1], *Asking.__annotations__]

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        for name in keywords:
            if name not in known:
                meant = meant_by(name, known) or f"; it takes {', '.join(known)}."
                raise InputError(f"`{function.__name__}` takes no keyword {name!r}{meant}")
        return function(*args, **keywords)

    if asks:
        own = str(function.__doc__).rstrip()
        of_all = str(Asking.__doc__).partition("\n")[2]
        checked.__doc__ = f"{own}\n{of_all}"
    return checked


def ask(work: Callable[[Client], Awaitable[R]], asking: Asking) -> R:
    """Return what work with a client returns, or what it would cost.

    In a script, and where a loop runs already.
    """
    return run(_ask(work, **asking))


async def _ask(work, *, concurrency: int = 16, dry_run: bool = False, **how):
    with dry_runs.counting() if dry_run else contextlib.nullcontext() as folder:
        async with Client(concurrency, **how) as client:
            found = await work(client)
        if folder:
            counted = dry_runs.prices(folder)
            if counted["usd_low"].isna().any():  # a sum over the frame would leave these out
                print(dry_runs.price_sentence(counted))
            return counted
    if client.tally != Tally():
        print(client.tally)
    for model, why in client.given_up().items():
        print(visible(f"{model} is not asked any more: {why}"))
    for model, parameters in client.refused().items():
        print(
            visible(f"{model} does not take {parameters} as asked; see `adapted` in the records.")
        )
    for model, names in client.served.items():
        if len(names) > 1:
            several = f"{model}, served by {', '.join(sorted(names))}"
            print(visible(f"{several}: its numbers mix them; docs/models.md pins one."))
    for reason, n in client.ends.items():
        which, count = ("replies", "they count") if n > 1 else ("reply", "it counts")
        shown = visible(reason[:60])
        print(f"{n} {which} ended for a reason that is not known: `{shown}`; {count} as complete.")
    return found


def run(coroutine):
    """Return what a coroutine returns.

    Where a loop runs already, as in a notebook, by a loop in a thread of its own. An interrupt
    cancels it: nothing more is bought, and what is in flight is given up.
    """
    around = None
    with contextlib.suppress(RuntimeError):
        around = asyncio.get_running_loop()
    if not around:
        return asyncio.run(coroutine)
    started: Future = Future()

    def work() -> None:
        with asyncio.Runner() as runner:  # whose end cancels what is left
            started.set_result(runner.get_loop())
            runner.get_loop().run_forever()

    thread = threading.Thread(target=work, name="selfeval")
    thread.start()
    loop = started.result()
    try:
        found = asyncio.run_coroutine_threadsafe(coroutine, loop)
        task = asyncio.current_task()
        while not wait([found], 0.2).done:
            # `asyncio.run` takes the first interrupt for its own task, which waits here
            if task and task.cancelling():
                raise KeyboardInterrupt
        return found.result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
