"""A verb that asks models: called plainly in a script or a notebook, or awaited.

The plain verb and its twin are made of one async function whose first argument is a client.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext
from functools import wraps

import pandas as pd

from selfeval.asking import dryrun
from selfeval.asking.client import Client, Tally
from selfeval.errors import InputError

COMMON = {"concurrency": 16, "again": "", "max_cost": None, "dry_run": False}
ASKED = """

    concurrency: calls in flight per provider. again: replies to ask for once more, stored ones too: "empty", "filtered"
    or cut off ("length"), with a number for more often than once. max_cost: US dollars that this call may spend; before
    it could spend more it stops, and what was bought stays stored. dry_run: ask nobody, and return per model what is
    stored, what would be bought, the tokens and the price.
    """


def asks(*expanded: Callable) -> Callable:
    """Make a verb of an async function of a client: plain, with its twin to await as `awaited`.

    expanded: functions and dataclasses whose keywords the function's `**keywords` stands for.
    """

    def verb(function: Callable) -> Callable:
        signature = _signature(function, expanded)

        @wraps(function)
        async def awaited(*args, **keywords):
            given = _bound(function.__name__, signature, args, keywords)
            common = {name: given.arguments.pop(name, default) for name, default in COMMON.items()}
            with dryrun.counting() if common.pop("dry_run") else nullcontext() as folder:
                async with Client(**common) as client:
                    found = await function(client, *given.args, **given.kwargs)
                if folder:
                    return pd.DataFrame(dryrun.prices(folder))
            if client.tally != Tally():
                print(client.tally)
            return found

        @wraps(function)
        def plain(*args, **keywords):
            return run(awaited(*args, **keywords))

        awaited.__name__, plain.awaited = f"a{function.__name__}", awaited
        for one in (plain, awaited):
            one.__doc__, one.__signature__ = function.__doc__.rstrip() + ASKED, signature
        return plain

    return verb


def _signature(function: Callable, expanded: Sequence[Callable]) -> inspect.Signature:
    """Return what a verb takes: no client, the keywords of what it hands on, and what all verbs that ask take."""
    _, *own = inspect.signature(function).parameters.values()
    taken = {one.name: one for one in own if one.kind is not one.VAR_KEYWORD}
    more = [one for each in expanded for one in inspect.signature(each).parameters.values()]
    more += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given) for name, given in COMMON.items()]
    for one in more:
        if one.default is not one.empty:
            taken.setdefault(one.name, one.replace(kind=one.KEYWORD_ONLY))
    return inspect.Signature([one.replace(annotation=one.empty) for one in taken.values()])


def _bound(name: str, signature: inspect.Signature, args, keywords) -> inspect.BoundArguments:
    if args and isinstance(args[0], Client):
        raise InputError(f"`{name}` takes no client any more: leave it out, its settings are keywords.")
    try:
        return signature.bind(*args, **keywords)
    except TypeError as error:
        raise InputError(f"`{name}`: {error}; it takes {', '.join(signature.parameters)}.") from None


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
