"""The one way to ask models: many at once, each request bought once, counted, with progress."""

import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from selfeval.asking import dryrun, embedded, simulated
from selfeval.asking.endpoint import Endpoint
from selfeval.asking.http import Failure
from selfeval.asking.recordings import numbered
from selfeval.asking.request import Request, Response, ask_callable, estimate, is_computed, read_again
from selfeval.asking.sharing import Purse
from selfeval.asking.store import Store
from selfeval.errors import BudgetError, ProviderError, StoreError, check_whole
from selfeval.models import Model

ADDRESS = re.compile(r"https?://([^/@]*@)?([\w.-]+|\[[\da-f:.]+\])(:[1-9]\d*)?(/|$)", re.I)


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

    def count(self, response: Response) -> None:
        """Count a reply that was bought."""
        self.calls += 1
        self.tokens += response.tokens()
        self.cost += response.cost or 0.0
        self.unpriced += response.cost is None

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
    refusal and the reply of a simulated model or a callable are never asked for again. max_cost: US dollars that this
    client may spend, where `SELFEVAL_BUDGET` sets no ceiling.
    """

    def __init__(
        self, concurrency: int = 16, store: Store | None = None, *, again: str = "", max_cost: float | None = None
    ):
        check_whole("concurrency", concurrency, 1)
        self._again, self._times = read_again(again)
        self.concurrency, self.store, self.tally = concurrency, store or Store(), Tally()
        Progress.tallies.append(self.tally)
        self.purse = Purse.of(max_cost)
        if self.purse:
            self.store.attach(self.purse.ledger)
        self._endpoints: dict[str, Endpoint] = {}
        self._flying = 0  # calls that are sent and not yet stored
        self._machine = asyncio.Lock()  # two embedded models at once are four times as slow as one after the other

    def __repr__(self) -> str:
        return f"Client({self.tally})"

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_) -> None:
        await self.close()

    async def close(self) -> None:
        """Close connections and files."""
        for endpoint in self._endpoints.values():
            await endpoint.close()
        self.store.close()
        Progress(None, 0, 0).write()

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
        stored = self.store.look_up([request.key for request in requests if not is_computed(request.model)])
        responses = [self._served(request, stored) for request in requests]
        missing = [i for i, response in enumerate(responses) if response is None]
        for model in {requests[i].model.id: requests[i].model for i in missing}.values():
            require(model)
        by_provider = defaultdict(list)
        for i in missing:
            by_provider[requests[i].model.provider.name].append(i)

        with Progress(label, len(requests), len(missing)) as progress:

            async def work(indices: Iterator[int]) -> None:
                for i in indices:
                    responses[i] = await self._answer(requests[i])
                    progress.step()

            async with Tasks() as group:
                for indices in by_provider.values():
                    shared = iter(indices)  # workers pull in order: a server's prefix cache profits
                    for _ in range(min(self.concurrency, len(indices))):
                        group.create_task(work(shared))
        return responses

    def _served(self, request: Request, stored: dict[str, dict]) -> Response | None:
        """Return the stored reply, None where there is none or where it is to be asked for again."""
        if is_computed(request.model):
            return None
        if request.key not in stored:
            self.store.check_replay(request.identity)
            return None
        response = Response.from_dict(stored[request.key])
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
        """Return the response to a request that is not stored."""
        model = request.model
        if is_computed(model) and not (model.call and dryrun.folder()):
            self.tally.simulated += 1
            messages, parameters = request.full()
            function = model.call or simulated.Simulated(model, request.sample, request.seed)
            response = await ask_callable(function, messages, parameters)
            self.tally.failed += response.status == "error"
            return response
        if dryrun.folder():
            text = dryrun.stand_in(*request.full(), request.key)
            if not is_computed(model):
                dryrun.note(request, stored=False, text=text)
            chances = [("", -1.0 - int(request.key[:2], 16))] if "likelihood" in request.parameters else None
            usage = {"prompt": 0, "completion": 0}
            return Response(text, finish_reason="stop", usage=usage, cost=0.0, logprobs=chances)
        while True:
            earlier: list[str] = []
            if self._again and (stored := self.store.get(request.key)):
                before = Response.from_dict(stored)
                earlier = [*before.earlier, before.status]
                if not self._wanted_again(request, before):  # it came meanwhile
                    self.tally.stored += 1
                    return before
            response = await self._place(request, earlier)
            if not self._wanted_again(request, response):
                return response

    async def _place(self, request: Request, earlier: list[str]) -> Response:
        """Return the reply to a request, bought or stored meanwhile, or a response that says why there is none."""
        model = request.model
        if model.provider.name not in self._endpoints:
            self._endpoints[model.provider.name] = Endpoint(model.provider, self.concurrency)
        endpoint = self._endpoints[model.provider.name]
        try:
            async with endpoint.place(model), self._machine if model.provider.embedded else contextlib.nullcontext():
                return await self._buy(request, endpoint, earlier)
        except Failure as failure:
            self.tally.failed += 1
            return Response(status="error", error=failure.detail)
        except (StoreError, BudgetError):  # it ends the others, so what is paid for comes first
            while self._flying:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            raise self.store.failure or sys.exception() from None

    async def _buy(self, request: Request, endpoint: Endpoint, earlier: list[str]) -> Response:
        """Claim a request, ask, store the reply; what was all thinking is asked for again, with room for that."""
        model, (messages, parameters), purse = request.model, request.full(), self.purse
        key, thought, response = numbered(request.key, len(earlier)), False, None

        def note(failure: Failure) -> None:
            self.store.record_attempt(key, failure.outcome, failure.detail)

        while response is None:
            if self.store.failure:  # nothing more is bought once a reply cannot be kept
                raise self.store.failure
            allowed = endpoint.allowed(model, parameters)
            amount = purse.price(model, *estimate(messages, allowed, model)) if purse else 0.0
            if (stored := await self.store.claim(key, purse, amount)) is not None:
                self.tally.stored += 1
                return Response.from_dict(stored)
            self._flying += 1
            try:
                response = await endpoint.ask(model, messages, parameters, allowed, note)
                self.tally.count(response)
                if purse:
                    purse.learn(model, response.cost)
                if response.only_thought and not thought and endpoint.make_room(model, parameters):
                    detail = (
                        f"all thinking: {response.usage.get('completion', '?')} tokens and no answer, asked with more"
                    )
                    self.store.release(key, purse, response.cost, "thinking", detail)
                    response, thought = None, True
                else:
                    response = replace(response, earlier=earlier)
                    await self.store.put(key, request.identity, response.to_dict(), purse, response.cost)
            except BaseException as error:
                cost = 0.0 if isinstance(error, Failure) else amount  # of what is broken off the reply may be billed
                outcome = "abandoned" * isinstance(error, asyncio.CancelledError)
                self.store.release(key, purse, cost, outcome, "broken off while it waited for a reply")
                raise
            finally:
                self._flying -= 1
        self.tally.again += bool(earlier) + thought
        return response


def require(model: Model) -> None:
    """Raise `ProviderError` where a call to this model cannot succeed: no key, no embedded model."""
    provider = model.provider
    if is_computed(model) or model.call or dryrun.folder():  # a dry run asks nobody
        return
    if provider.embedded:
        embedded.model_file(provider)
    elif provider.keys and not provider.key:
        raise ProviderError(
            f"The model {model.id!r} is served by `{provider.name}`, which needs an API key: set {provider.keys[0]} in "
            "the environment or in a .env file beside README.md."
        )
    elif not (provider.key or "").isascii():
        raise ProviderError(
            f"The API key in {' or '.join(provider.keys)} has characters that no key has; copy it anew."
        )
    elif not ADDRESS.match(provider.url or ""):
        raise ProviderError(
            f"The model {model.id!r} is served by `{provider.name}`, whose `base_url` must be an address like "
            f"http://127.0.0.1:8000/v1, got {provider.url!r}."
        )


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
    """A bar for a person, and a file for the sweep that `SELFEVAL_PROGRESS` names; none of it for label None.

    The file counts what all clients of this process did: a notebook may use several, one after the other.
    """

    tallies: ClassVar[list[Tally]] = []
    shown: ClassVar[dict] = {}  # of the bar that moved last

    def __init__(self, label: str | None, total: int, missing: int):
        self.label, self.total, self.done = label, total, total - missing
        self.written, self.bar = 0.0, None

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
        if self.label:
            self.shown.update(label=self.label, done=self.done, total=self.total)
        if file := os.environ.get("SELFEVAL_PROGRESS"):
            counts = {name: sum(getattr(tally, name) for tally in self.tallies) for name in vars(Tally())}
            temporary = Path(f"{file}.part")
            with contextlib.suppress(OSError):  # a full disk ends the run where replies are lost, not here
                temporary.write_text(json.dumps(self.shown | counts))
                temporary.replace(file)
