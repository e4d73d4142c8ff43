"""The one way to ask models: many at once, each request bought once, counted, with progress.

Also what verbs share.
"""

import asyncio
import contextlib
import inspect
import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, ParamSpec, TypedDict, TypeVar, cast

from selfeval.errors import InputError, check_flag, check_whole, meant_by
from selfeval.providers import dry_runs, embedded, ends
from selfeval.providers.askers import Account, Asker, Paid, Simulated, Tally
from selfeval.providers.batches import Batched
from selfeval.providers.budget import Ceiling
from selfeval.providers.calls import Experience
from selfeval.providers.models import Model
from selfeval.providers.request import Request, Response, is_computed, read_again
from selfeval.providers.store import Store
from selfeval.secrets import visible

P = ParamSpec("P")
R = TypeVar("R")
WHOLE_BATCH = 1_000_000  # questions in flight where batches take all that wait


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

    # {role: the module that plays it in simulated models}; those of evaluations stand above
    players: ClassVar[Mapping[str, ModuleType]] = {}

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
        self.concurrency = WHOLE_BATCH if self.batch else concurrency
        self.store = store or Store()
        self.tally = Tally()
        tallies.append(self.tally)
        ceiling = Ceiling.of(max_cost)
        wanted = read_again(again)
        self._account = Account(self.store, ceiling, self.tally, concurrency, *wanted)
        self._paid: dict[str, Paid] = {}  # by provider
        # model id -> which endpoints its replies come from
        self.served: dict[str, set[str]] = defaultdict(set)
        self.ends: Counter[str] = Counter()  # unknown reasons why replies ended

    async def __aexit__(self, *_) -> None:
        """Close connections and files."""
        for asker in self._paid.values():
            await asker.close()
        self.store.close()
        _write_progress()

    def experience(self) -> Iterator[tuple[str, Experience]]:
        """Yield the models that were asked, with what is known of them now."""
        for asker in self._paid.values():
            yield from asker.known.items()

    async def chat(
        self, model: Model, messages: list[dict], *, sample=0, seed=0, **parameters
    ) -> Response:
        """Return one response; a failure is a response with status `error`."""
        request = Request(model, messages, parameters, sample, seed)
        [response] = await self.chat_all([request], label=None)
        return response

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
        responses = self._stored(requests)
        missing = [i for i, response in enumerate(responses) if response is None]
        models = {requests[i].model.id: requests[i].model for i in missing}
        askers = {name: self._asker(model) for name, model in models.items()}
        by_provider = defaultdict(list)
        for i in missing:
            by_provider[requests[i].model.provider.name].append(i)

        with progress(label, len(requests), len(requests) - len(missing)) as bar:

            async def work(indices: Iterator[int]) -> None:
                for i in indices:
                    request = requests[i]
                    responses[i] = await askers[request.model.id].ask(request)
                    bar.update()

            async with Tasks() as group:
                for indices in by_provider.values():
                    shared = iter(indices)  # workers pull in order: a server's prefix cache profits
                    for _ in range(min(self.concurrency, len(indices))):
                        group.create_task(work(shared))
        answered = cast(list[Response], responses)
        self._note(requests, answered)
        return answered

    def _stored(self, requests: Sequence[Request]) -> list[Response | None]:
        """Return the stored replies.

        None is for no reply, and for one that is to be asked for again.
        """
        asked = {each.key: each.identity for each in requests if not is_computed(each.model)}
        stored = {}
        if not dry_runs.passes_over_stored():
            stored = self.store.look_up(asked)
        replies = {key: Response.from_dict(reply) for key, reply in stored.items()}
        responses: list[Response | None] = []
        for request in requests:
            response = None if is_computed(request.model) else replies.get(request.key)
            if response and self._account.wants_again(request, response):
                self._account.before[request.key] = response
                response = None
            if response:
                self.tally.stored += 1
                dry_runs.count_stored(request)
            responses.append(response)
        return responses

    def _asker(self, model: Model) -> Asker:
        """Return who answers for a model in this mode; raise where nobody can."""
        provider = model.provider
        embedded.require(model, self.batch)
        if is_computed(model) and not (model.call and dry_runs.folder()):
            if not (model.call or self.players):
                raise InputError(f"{model.id!r} is simulated; ask it by `selfeval.Client`.")
            return Simulated(self.players, self.tally)
        if dry_runs.folder():
            return dry_runs.Counting(self.batch)
        if provider.name not in self._paid:
            asker = Paid(provider, self._account)
            if provider.batch:
                asker = Batched(provider, self._account, sends=self.batch)
            self._paid[provider.name] = asker
        return self._paid[provider.name]

    def _note(self, requests: Sequence[Request], responses: Sequence[Response]) -> None:
        """Take note of who served replies, and of reasons for their ends that nobody knows."""
        for request, response in zip(requests, responses, strict=True):
            names = [name for name in (response.served_model, response.served_by) if name]
            if names:
                self.served[request.model.id].add(" via ".join(names))
            if ends.status_of(response.finish_reason) == ends.UNKNOWN:
                self.ends[str(response.finish_reason)] += 1


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


@contextlib.contextmanager
def progress(label: str | None, total: int, done: int = 0) -> Iterator["Progress"]:
    """Show a bar to a person, which is told of each reply by `update()`; none for label None."""
    from tqdm.auto import tqdm

    # tqdm's notebook class does not look at it
    quiet = label is None or os.environ.get("TQDM_DISABLE") == "1"
    with tqdm(total=total, initial=done, desc=label, unit="reply", disable=quiet) as bar:
        yield Progress(bar, label, total, done)


@dataclass
class Progress:
    """A bar, and the file of a sweep's run that says the same."""

    bar: Any
    label: str | None
    total: int
    done: int

    def update(self) -> None:
        """Take note of one more reply."""
        self.done += 1
        self.bar.update()
        if self.label:
            _write_progress(f"{self.done} of {self.total} {self.label}")


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


def ask(work: Callable[[Any], Awaitable[R]], asking: Asking, kind: type[Client] = Client) -> R:
    """Return what work with a client of this kind returns, or what it would cost.

    In a script, and where a loop runs already.
    """
    return run(_ask(work, kind, **asking))


async def _ask(work, kind: type[Client], *, concurrency: int = 16, dry_run: bool = False, **how):
    with dry_runs.counting() if dry_run else contextlib.nullcontext() as folder:
        async with kind(concurrency, **how) as client:
            found = await work(client)
        if folder:
            counted = dry_runs.prices(folder)
            if counted["usd_low"].isna().any():  # a sum over the frame would leave these out
                print(dry_runs.price_sentence(counted))
            return counted
    if client.tally != Tally():
        print(client.tally)
    for sentence in _notices(client):
        print(visible(sentence))
    return found


def _notices(client: Client) -> Iterator[str]:
    """Yield what a person should know of a client's calls."""
    models = [*client.experience()]
    for model, known in models:
        if known.given_up:
            yield f"{model} is not asked any more: {known.given_up}"
    for model, known in models:
        if known.refused and known.answered:
            parameters = ", ".join(f"`{parameter}`" for parameter in known.refused)
            yield f"{model} does not take {parameters} as asked; see `adapted` in the records."
    for model, names in client.served.items():
        if len(names) > 1:
            several = f"{model}, served by {', '.join(sorted(names))}"
            yield f"{several}: its numbers mix them; docs/models.md pins one."
    for reason, n in client.ends.items():
        which, count = ("replies", "they count") if n > 1 else ("reply", "it counts")
        unknown = f"for a reason that is not known: `{reason[:60]}`"
        yield f"{n} {which} ended {unknown}; {count} as complete."


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
