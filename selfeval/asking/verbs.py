"""What all verbs that ask models share: their common keywords, and a client in a loop of its own."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import nullcontext
from functools import wraps
from typing import ParamSpec, TypedDict, TypeVar

import pandas as pd

from selfeval.asking import dryrun
from selfeval.asking.client import Client, Tally
from selfeval.errors import InputError, did_you_mean

P, R = ParamSpec("P"), TypeVar("R")


class Asking(TypedDict, total=False):
    """The keywords that every verb that asks models takes.

    concurrency: calls in flight per provider, 16 unless set. again: replies to ask for once more, stored ones too:
    "empty", "filtered" or cut off ("length"), with a number for more often than once. max_cost: US dollars that this
    call may spend; before it could spend more it stops, and what was bought stays stored. dry_run: ask nobody, and
    return per model what is stored, what would be bought, the tokens and the price.
    """

    concurrency: int
    again: str
    max_cost: float | None
    dry_run: bool


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse keywords that a verb does not take in one sentence, and explain those of `Asking` in its help."""
    known = [*inspect.signature(function).parameters, *Asking.__annotations__]
    known.remove("asking")

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        for name in keywords:
            if name not in known:
                meant = did_you_mean(name, known) or f"; it takes {', '.join(known)}."
                raise InputError(f"`{function.__name__}` takes no keyword {name!r}{meant}")
        return function(*args, **keywords)

    checked.__doc__ = f"{function.__doc__.rstrip()}\n{Asking.__doc__.partition(chr(10))[2]}"
    return checked


def ask(work: Callable[[Client], Awaitable[pd.DataFrame]], asking: Asking) -> pd.DataFrame:
    """Return what work with a client returns, or what it would cost; in a script, and where a loop runs already."""
    return run(_ask(work, **asking))


async def _ask(work, *, concurrency: int = 16, again: str = "", max_cost: float | None = None, dry_run: bool = False):
    with dryrun.counting() if dry_run else nullcontext() as folder:
        async with Client(concurrency, again=again, max_cost=max_cost) as client:
            found = await work(client)
        if folder:
            return pd.DataFrame(dryrun.prices(folder))
    if client.tally != Tally():
        print(client.tally)
    return found


def run(coroutine):
    """Return what a coroutine returns; where a loop runs already, as in a notebook, by a loop in a thread of its own.

    An interrupt cancels it: nothing more is bought, and what is in flight is given up.
    """
    if not _in_loop():
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
        found, task = asyncio.run_coroutine_threadsafe(coroutine, loop), asyncio.current_task()
        while not wait([found], 0.2).done:
            if task and task.cancelling():  # `asyncio.run` takes the first interrupt for its own task, which waits here
                raise KeyboardInterrupt
        return found.result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _in_loop() -> bool:
    try:
        return bool(asyncio.get_running_loop())
    except RuntimeError:
        return False
