"""The one way to ask models: many at once, each request bought once, counted, with progress."""

import asyncio
import contextlib
import json
import os
import time
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from selfeval.asking import dryrun, simulated
from selfeval.asking.endpoint import Endpoint
from selfeval.asking.http import Failure
from selfeval.asking.recordings import numbered
from selfeval.asking.request import Request, Response, ask_callable, estimate, is_computed, read_again, require
from selfeval.asking.sharing import Purse
from selfeval.asking.store import Store
from selfeval.errors import StoreError, check_whole
from selfeval.models import Model


@dataclass
class Tally:
    """What a client did so far. calls: replies bought, with their tokens and cost; stored: served from the store.

    again: of the calls, those that asked for a reply once more.
    """

    calls: int = 0
    again: int = 0
    stored: int = 0
    simulated: int = 0
    failed: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def __str__(self) -> str:
        parts = [f"{self.calls} model calls"]
        if self.calls:
            money = "?" if self.unpriced and not self.cost else f"${self.cost:.4f}" + " or more" * bool(self.unpriced)
            parts[0] += f" ({self.tokens} tokens, {money})"
        if self.again:
            parts.append(f"{self.again} of them asked again")
        if self.simulated:
            parts.append(f"{self.simulated} simulated replies")
        return ", ".join([*parts, f"{self.stored} replies from the store, {self.failed} failed"])


class Client:
    """Ask models, `concurrency` calls in flight per provider at most; use it as `async with Client() as client`.

    The bound holds over everything that runs on this client at a time: chains of single `chat` calls share the places
    of their provider with each other and with every `chat_all`, first come, first served.

    again: which replies to ask for once more, stored ones too: "empty", "filtered" or cut off ("length"), separated by
    commas, with a number for more often than once. Every reply stays stored, the last is served. An answer, a
    refusal and the reply of a simulated model or a callable are never asked for again.
    """

    def __init__(self, concurrency: int = 16, store: Store | None = None, *, again: str = ""):
        check_whole("concurrency", concurrency, 1)
        self._again, self._times = read_again(again)
        self.concurrency, self.store, self.tally = concurrency, store or Store(), Tally()
        self.purse = Purse.from_environment()
        self._endpoints: dict[str, Endpoint] = {}
        self._unwritten: deque[Future] = deque()
        self._sent = 0  # calls that wait for their reply

    def __repr__(self) -> str:
        return f"Client({self.tally})"

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_) -> None:
        await self.close()

    async def close(self) -> None:
        """Close connections and commit what waits."""
        for closing in self._endpoints.values():
            await closing.close()
        await asyncio.to_thread(self.store.close)  # first: what it holds was paid for
        if self.purse:
            await asyncio.to_thread(self.purse.close)
        self._unwritten.clear()
        Progress(None, 0, 0, self.tally).write()

    async def chat(self, model: Model, messages: list[dict], *, sample=0, seed=0, **parameters) -> Response:
        """Return one response; a failure is a response with status `error`."""
        return (await self.chat_all([Request(model, messages, parameters, sample, seed)], label=None))[0]

    async def chat_all(self, requests: Sequence[Request], label: str | None = "replies") -> list[Response]:
        """Return the responses to all requests in their order; stored ones are read, the others are bought.

        A request whose call fails gets a response with status `error`; after a failure that concerns the model itself
        (key, credit, no such model) no further call to it is made. Raises `ProviderError` before the first call where
        a key is missing, `StoreError` where replies cannot be kept, `BudgetError` once the ceiling of
        `SELFEVAL_BUDGET` is reached and all that was in flight is stored, `ReplayMiss` in replay mode.
        """
        responses = [self._from_store(request) for request in requests]
        missing = [i for i, response in enumerate(responses) if response is None]
        for model in {requests[i].model.id: requests[i].model for i in missing}.values():
            require(model)
        by_provider = defaultdict(list)
        for i in missing:
            by_provider[requests[i].model.provider.name].append(i)

        with Progress(label, len(requests), len(missing), self.tally) as progress:

            async def work(indices: Iterator[int]) -> None:
                for i in indices:
                    responses[i] = await self._answer(requests[i])
                    progress.step()

            async with Tasks() as group:
                for indices in by_provider.values():
                    shared = iter(indices)  # workers pull in order: a server's prefix cache profits
                    for _ in range(min(self.concurrency, len(indices))):
                        group.create_task(work(shared))
        await self._written()
        return responses

    async def _written(self) -> None:
        for written in tuple(self._unwritten):  # of other callers too: all of them may wait for the same commit
            await asyncio.wrap_future(written)
        self._check_written()

    def _check_written(self) -> None:
        while self._unwritten and self._unwritten[0].done():
            self._unwritten.popleft().result()

    def _from_store(self, request: Request) -> Response | None:
        if is_computed(request.model):
            return None
        stored = self.store.get(request.key)
        if stored is None:
            self.store.check_replay(request.identity)
            return None
        response = Response.from_dict(stored)
        if self._wanted_again(request, response):
            return None
        self.tally.stored += 1
        if dryrun.folder():
            dryrun.note(request, stored=True)
        return response

    def _wanted_again(self, request: Request, response: Response) -> bool:
        if self.store.replay or response.status not in self._again or len(response.earlier) >= self._times:
            return False
        return not (request.cut_counts and response.status == "length" and response.text.strip())

    async def _answer(self, request: Request) -> Response:
        model = request.model
        if is_computed(model):
            self.tally.simulated += 1
            messages, parameters = request.full()
            function = model.call or simulated.Simulated(model, request.sample, request.seed)
            response = await ask_callable(function, messages, parameters)
            self.tally.failed += response.status == "error"
            return response
        if dryrun.folder():
            return self._planned(request)
        while True:
            try:
                # Claimed only when it can be sent: what is claimed at a kill was in flight.
                async with self._endpoint(model).place(model):
                    response = await self._buy(request)
            except Failure as failure:
                response = self._failed(failure.detail)
            if not self._wanted_again(request, response):
                return response
            await self._written()  # it is looked up before it is asked for again

    def _planned(self, request: Request) -> Response:
        """Return a stand-in for the reply that would be bought."""
        text = dryrun.stand_in(*request.full(), request.key)
        dryrun.note(request, stored=False, text=text)
        return Response(text, finish_reason="stop", usage={"prompt": 0, "completion": 0}, cost=0.0)

    async def _buy(self, request: Request) -> Response:
        endpoint = self._endpoint(request.model)
        self._check_written()  # nothing more is bought once a reply cannot be kept
        earlier = []
        if self._again and (stored := self.store.get(request.key)):
            before = Response.from_dict(stored)
            if not self._wanted_again(request, before):
                self.tally.stored += 1
                return before
            earlier = [*before.earlier, before.status]
        key = numbered(request.key, len(earlier))
        if (stored := await self.store.claim(key)) is not None:
            self.tally.stored += 1
            return Response.from_dict(stored)
        try:
            return await self._ask(request, endpoint, key, earlier)
        except Failure:
            await asyncio.wrap_future(self.store.release(key))
            raise
        except StoreError:  # of the rates or the purse: it ends the others, so what is paid for comes first
            self.store.release(key)
            while self._sent:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            raise
        except BaseException:
            self.store.release(key)
            raise

    async def _ask(self, request: Request, endpoint: Endpoint, key: str, earlier: list[str]) -> Response:
        """Return the model's response and store it; what was all thinking is asked for again, with room for that."""
        model = request.model
        response = await self._send(request, endpoint, key)
        if response.only_thought and endpoint.make_room(model, request.full()[1]):
            detail = f"all thinking: {response.usage.get('completion', '?')} tokens and no answer, asked with more"
            self.store.record_attempt(key, "thinking", detail)
            response = await self._send(request, endpoint, key)
            self.tally.again += 1
        self.tally.again += bool(earlier)
        response = replace(response, earlier=earlier)
        # The next call need not wait for the disk; whoever asked does, at the end of `chat_all`.
        self._unwritten.append(self.store.put(key, request.identity, response.to_dict()))
        return response

    async def _send(self, request: Request, endpoint: Endpoint, key: str) -> Response:
        """Return the model's response; what it can cost at most is reserved while it is in flight."""
        model, (messages, parameters), purse = request.model, request.full(), self.purse

        def note(failure: Failure) -> None:
            self.store.record_attempt(key, failure.outcome, failure.detail)

        allowed = endpoint.allowed(model, parameters)  # once: it may change while this call waits for the purse
        amount = purse.price(model, *estimate(messages, allowed, model)) if purse else 0.0
        if purse:
            await purse.reserve(amount)
        cost = amount
        self._sent += 1
        try:
            response = await endpoint.ask(model, messages, parameters, note, allowed)
            self._count(response)
            cost = response.cost
        except Failure:
            cost = 0.0
            raise
        except asyncio.CancelledError:  # whoever asked was stopped; the reply may be billed
            self.store.record_attempt(key, "abandoned", "broken off while it waited for a reply")
            raise
        finally:
            self._sent -= 1
            if purse:
                purse.settle(model, amount, cost)
        return response

    def _endpoint(self, model: Model) -> Endpoint:
        provider = model.provider
        if provider.name not in self._endpoints:
            self._endpoints[provider.name] = Endpoint(provider, self.concurrency)
        return self._endpoints[provider.name]

    def _failed(self, detail: str) -> Response:
        self.tally.failed += 1
        return Response(status="error", error=detail)

    def _count(self, response: Response) -> None:
        self.tally.calls += 1
        self.tally.tokens += response.tokens()
        self.tally.cost += response.cost or 0.0
        self.tally.unpriced += response.cost is None


class Tasks(asyncio.TaskGroup):
    """A group of tasks whose first failure ends the others and is raised as itself.

    Nor does it carry the group as its context: IPython cannot show such an exception, and when it is a kernel's first,
    papermill and nbconvert wait for ever for the cell's reply (ipykernel 7.4).
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
    """Return the results of coroutines in their order; the first failure ends the others and is raised as itself."""
    async with Tasks() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
    return [task.result() for task in tasks]


class Progress:
    """A bar for a person, and a file for the sweep that `SELFEVAL_PROGRESS` names; silent for label None.

    The file counts what all clients of this process did: a notebook may use several, one after the other.
    """

    tallies: ClassVar[dict[str, list[Tally]]] = defaultdict(list)  # by file
    shown: ClassVar[dict[str, dict]] = {}  # by file: the bar that moved last

    def __init__(self, label: str | None, total: int, missing: int, tally: Tally):
        self.label, self.total, self.done, self.tally = label, total, total - missing, tally
        self.file = os.environ.get("SELFEVAL_PROGRESS")
        self.written, self.bar = 0.0, None
        if self.file and not any(tally is known for known in self.tallies[self.file]):
            self.tallies[self.file].append(tally)

    def __enter__(self) -> "Progress":
        if self.label:
            from tqdm.auto import tqdm

            quiet = os.environ.get("TQDM_DISABLE") == "1"  # tqdm's notebook class does not look at it
            self.bar = tqdm(total=self.total, initial=self.done, desc=self.label, unit="reply", disable=quiet)
            self.write()
        return self

    def step(self) -> None:
        """Count one more reply."""
        self.done += 1
        if self.bar is not None:
            self.bar.update()
            if time.monotonic() - self.written > 1:
                self.write()

    def __exit__(self, *_) -> None:
        if self.bar is not None:
            self.bar.close()
            self.write()

    def write(self) -> None:
        """Tell the sweep, if any, how far this is."""
        self.written = time.monotonic()
        if self.file:
            if self.label:
                self.shown[self.file] = {"label": self.label, "done": self.done, "total": self.total}
            state = {**self.shown.get(self.file, {})}
            for name in vars(self.tally):
                state[name] = sum(getattr(tally, name) for tally in self.tallies[self.file])
            temporary = Path(f"{self.file}.part")
            with contextlib.suppress(OSError):  # a full disk ends the run where replies are lost, not here
                temporary.write_text(json.dumps(state))
                temporary.replace(self.file)
