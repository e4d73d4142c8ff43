"""Execute a sweep: submit each run to this machine or to a Dask cluster once its needs have ended.

Both are a function that takes a run and returns a `concurrent.futures.Future` of its manifest. Here
a thread executes it, with a kernel of its own; on a cluster a thread of a worker does the same.
"""

import contextlib
import fcntl
import fnmatch
import logging
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path

from selfeval.errors import InputError, check_at_least
from selfeval.paths import DATA, make_private_folder, open_private, read_json, write_whole
from selfeval.providers.budget import share
from selfeval.providers.dry_runs import dollars
from selfeval.secrets import plain
from selfeval.sweep.file import Sweep
from selfeval.sweep.findings import without_findings
from selfeval.sweep.kernels import KernelManager
from selfeval.sweep.pooled import pooled_runs
from selfeval.sweep.runs import Run

# what papermill says stands in the runs' logs
logging.getLogger("papermill").addHandler(logging.NullHandler())
# seconds after which a run tells how far it is
TELL = 15
# seconds to wait for a scheduler
PATIENCE = 10


def run(sweep: Sweep, where: Callable, *, only=(), max_cost: float | None = None) -> int:
    """Execute what is to do of a sweep and return the exit status.

    0: all is done. 1: a run failed or could not start. 3: every run ended, but in some of them
    calls failed.

    where: `threads` or `cluster`, which takes the ceiling. only: patterns of runs, STAGE or
    STAGE/RUN. max_cost: US dollars for all runs together.
    """
    chosen = choose(sweep, only)
    for sentence in pooled_runs(sweep):
        print(sentence)
    if max_cost is not None:
        check_at_least("max_cost", max_cost)  # the command line lets `inf` and `nan` through
    make_private_folder(sweep.folder)
    # the lock is free as soon as a sweep is killed; its kernels end with it
    with (sweep.folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            folder = os.path.relpath(sweep.folder)
            raise InputError(f"{folder}: another sweep is at work there; wait for it") from None
        with where(max_cost) as submit:
            work(sweep, submit, chosen)
    return summary(sweep)


def choose(sweep: Sweep, only=()) -> set[str]:
    """Return the names of the runs that patterns, with * and ?, ask for.

    Refuses a pattern that names none.
    """
    names = [run.name for run in sweep.runs]
    chosen = set()
    for pattern in only or ["*"]:
        matching = fnmatch.filter(names, pattern) + fnmatch.filter(names, f"{pattern}/*")
        if not matching:
            stages = ", ".join(sweep.stages)
            raise InputError(f"--only {pattern!r} names no STAGE or STAGE/RUN; stages: {stages}")
        chosen.update(matching)
    return chosen


def work(sweep: Sweep, submit: Callable, chosen: set[str], tell=print) -> None:
    """Execute what is to do, each run once its needs have ended, and tell how each ended."""
    waiting = list(sweep.runs)
    running: dict[Future, Run] = {}
    while waiting or running:
        unfinished = {run.stage for run in (*waiting, *running.values())}
        ready = [run for run in waiting if unfinished.isdisjoint(run.needs)]
        waiting = [run for run in waiting if run not in ready]
        for run in ready:
            if sweep.is_ready(run, chosen):
                running[submit(run)] = run
            elif run.status == "not started":
                _tell_end(run, tell)
        for future in _first_to_end(running, tell):
            run = running.pop(future)
            _settle(run, future)
            _tell_end(run, tell)


def _first_to_end(running: dict[Future, Run], tell: Callable) -> set[Future]:
    """Return what has ended once anything has; until then, tell how far runs are."""
    ended = wait(running, TELL, FIRST_COMPLETED).done
    while running and not ended:
        for run in running.values():
            asked = read_json(run.folder / "progress.json").get("asked")
            if asked:
                tell(f"running: {run.name}: {asked}", flush=True)
        ended = wait(running, TELL, FIRST_COMPLETED).done
    return ended


def _settle(run: Run, future: Future) -> None:
    """Settle a run that was executed."""
    try:
        run.manifest = future.result()
    except Exception as error:  # of a worker that died, or of an ended scheduler
        run.manifest = {"status": "failed", "cause": plain(f"{type(error).__name__}: {error}")}
    run.status = run.manifest["status"]
    run.cause = run.manifest["cause"]


def _tell_end(run: Run, tell: Callable) -> None:
    """Tell how a run ended, and why."""
    sentence = f"{run.status}: {run.name}"
    if run.cause:
        sentence += f": {run.cause}"
    if run.status == "failed":
        sentence += f" (see {os.path.relpath(run.folder)})"
    tell(sentence, flush=True)


# where runs are executed


@contextlib.contextmanager
def threads(workers: int, max_cost: float | None = None, variables=None) -> Iterator[Callable]:
    """Yield what submits a run to this machine; at the end their kernels end.

    workers: how many run at a time.
    """
    stop = threading.Event()
    variables = share(max_cost) | (variables or {})
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield lambda run: pool.submit(execute, run, variables, stop.is_set)
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def cluster(address: str, max_cost: float | None) -> Iterator[Callable]:
    """Yield what submits a run to the workers of a Dask scheduler; kernels end with the client."""
    try:
        from distributed import Client

        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # Dask is not there, or its sockets, or the address is none
        why = f"{error or type(error).__name__}; Dask comes with pip install -e '.[cluster]'"
        raise InputError(f"no Dask scheduler answers at {address!r}: {why}") from None
    with client:
        stores = client.run(os.environ.get, "SELFEVAL_STORE")
        hosts = {worker.rpartition("://")[2].rpartition(":")[0] for worker in stores}
        if not stores or not all(stores.values()):
            file = "a file on a disk of its host's own"
            raise InputError(f"{address}: start workers, each with SELFEVAL_STORE, {file}")
        variables = share(max_cost, len(hosts))
        for name in ("SELFEVAL_REPLAY", "SELFEVAL_MODELS", "SELFEVAL_BATCH"):
            variables[name] = os.environ.get(name, "")
        executor = client.get_executor(pure=False)
        yield lambda run: executor.submit(execute_there, run, variables)


def execute_there(run: Run, variables: dict[str, str]) -> dict:
    """Execute a run in a thread of a Dask worker, as long as its sweep is there."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return execute(run, variables, is_cancelled)


def execute(run: Run, variables: dict[str, str], stopped: Callable[[], bool]) -> dict:
    """Execute a run's notebook, until `stopped()` is true at most; return its manifest.

    The log ends with the cause.
    """
    import papermill  # takes seconds

    started = datetime.now(UTC)
    error = None
    env = {
        **os.environ,
        "SELFEVAL_PROGRESS": str(run.folder / "progress.json"),
        "SELFEVAL_DATA": str(DATA),
        "TQDM_DISABLE": "1",
        **variables,
    }
    run.begin()
    sockets = tempfile.TemporaryDirectory(prefix="selfeval-kernel-", ignore_cleanup_errors=True)
    with open_private(run.folder / "log.txt", "w") as log, sockets as folder:
        process = {"env": env, "cwd": Path.cwd(), "stdout": log, "stderr": log}
        parts = {"folder": folder, "options": process, "stopped": staticmethod(stopped)}
        try:
            papermill.execute_notebook(
                run.notebook,
                run.folder / "notebook.ipynb",
                run.parameters,
                kernel_manager_class=type("Manager", (KernelManager,), parts),
                kernel_name="python3",
                progress_bar=False,
            )
        except Exception as failure:  # papermill, Jupyter and the system raise many kinds
            error = failure
            log.write(f"{error}\n{type(error).__name__}: {error}\n")
    leave_out_findings(run)
    return run.settle(started, error)


def leave_out_findings(run: Run) -> None:
    """Take out of a run's notebook what the committed one found, unless it has its parameters."""
    import nbformat

    file = run.folder / "notebook.ipynb"
    with contextlib.suppress(OSError, ValueError):  # there is none where papermill failed early
        notebook = nbformat.read(file, as_version=4)
        before = len(notebook.cells)
        if len(without_findings(notebook, run.parameters).cells) < before:
            write_whole(file, nbformat.writes(notebook))


# the end


def summary(sweep: Sweep) -> int:
    """Print what became of the runs, what they took and how to resume; return the exit status."""
    for stage, runs in sweep.stages.items():
        counts = Counter(run.status for run in runs)
        parts = [f"{count} {status}" for status, count in counts.items()]
        print(f"{stage}: {', '.join(parts)}")
    total: Counter = Counter()
    for run in sweep.runs:
        if run.status in ("ok", "failed"):
            total.update(run.manifest.get("counts", {}))
    replies = f"{total['simulated']} simulated, {total['stored']} from the store"
    print(f"{total['calls']} calls ({total['tokens']:,} tokens), {_money(total)}; {replies}")
    statuses = {run.status for run in sweep.runs}
    is_unanswered = any(run.status == "ok" and run.cause for run in sweep.runs)
    if is_unanswered or "failed" in statuses:
        rest = "what is done stays, and stored replies are free"
        print(f"run the same command again to resume: {rest}")
    print(f"outputs: {named(sweep.folder)}")
    if statuses & {"failed", "not started"}:
        return 1
    return 3 if is_unanswered else 0


def _money(total: Counter) -> str:
    """Return what calls cost, and for how many of them nobody knows."""
    known = f"{dollars(total['cost'])} USD"
    unpriced = total["unpriced"]
    if not unpriced:
        return known
    unknown = f"price unknown for {unpriced:,} calls"
    priced = total["calls"] - unpriced
    return f"{unknown}, {known} for the other {priced:,}" if priced > 0 else unknown


def named(folder: Path) -> str:
    """Return a folder of outputs as seen from here; elsewhere its whole path, and why there."""
    if folder.is_relative_to(Path.cwd()):
        return os.path.relpath(folder)
    if folder.is_relative_to(DATA):
        why = f"results go below {DATA}, wherever a command runs"
        return f"{folder} ({why}; --out names another folder)"
    return str(folder)
