"""Execute a sweep: submit each run, once what it depends on has ended, to this machine or to a Dask cluster.

Both are a function that takes a run and returns a `concurrent.futures.Future` of its manifest. Here a thread executes
it, with a kernel of its own; on a cluster a thread of a worker does the same.
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
from selfeval.providers.dry_runs import dollars
from selfeval.providers.store import share
from selfeval.secrets import plain
from selfeval.sweep.file import Sweep
from selfeval.sweep.findings import without_findings
from selfeval.sweep.kernels import KernelManager
from selfeval.sweep.pooled import pooled_runs
from selfeval.sweep.runs import Run

logging.getLogger("papermill").addHandler(
    logging.NullHandler()
)  # what it says stands in the runs' logs
TELL = 15  # seconds after which a run tells how far it is
PATIENCE = 10  # seconds to wait for a scheduler


def run(sweep: Sweep, where: Callable, *, only=(), max_cost: float | None = None) -> int:
    """Execute what is to do of a sweep and return the exit status.

    0: all is done. 1: a run failed or could not start. 3: every run ended, but in some of them calls failed.

    where: `threads` or `cluster`, which takes the ceiling. only: patterns of runs, STAGE or STAGE/RUN. max_cost: US
    dollars for all runs together.
    """
    chosen = choose(sweep, only)
    for sentence in pooled_runs(sweep):
        print(sentence)
    if max_cost is not None:
        check_at_least("max_cost", max_cost)  # the command line lets `inf` and `nan` through
    make_private_folder(sweep.folder)
    with (sweep.folder / "lock").open(
        "a+"
    ) as file:  # free as soon as a sweep is killed; its kernels end with it
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{os.path.relpath(sweep.folder)}: another sweep is at work there; wait for it"
            ) from None
        with where(max_cost) as submit:
            work(sweep, submit, chosen)
    return summary(sweep)


def choose(sweep: Sweep, only=()) -> set[str]:
    """Return the names of the runs that the patterns, with * and ?, ask for; refuse a pattern that names none."""
    names, found = [run.name for run in sweep.runs], set()
    for pattern in only or ["*"]:
        these = {*fnmatch.filter(names, pattern), *fnmatch.filter(names, f"{pattern}/*")}
        if not these:
            raise InputError(
                f"--only {pattern!r} names no STAGE or STAGE/RUN; stages: {', '.join(sweep.stages)}"
            )
        found |= these
    return found


def work(sweep: Sweep, submit: Callable, chosen: set[str], tell=print) -> None:
    """Execute what is to do, each run once all runs that it depends on have ended, and tell of each how it ended."""
    waiting, flying = sweep.runs, {}
    while waiting or flying:
        at_work = {run.stage for run in (*waiting, *flying.values())}
        ready = [run for run in waiting if not at_work & run.needs]
        waiting = [run for run in waiting if at_work & run.needs]
        flying |= {submit(run): run for run in ready if sweep.is_to_do(run, chosen)}
        while not (ended := wait(flying, TELL, FIRST_COMPLETED).done) and flying:
            for run in flying.values():
                if asked := read_json(run.folder / "progress.json").get("asked"):
                    tell(f"running: {run.name}: {asked}", flush=True)
        told = [run for run in ready if run.status == "not started"]
        for run in (*told, *(_settle(flying.pop(future), future) for future in ended)):
            where = f" (see {os.path.relpath(run.folder)})" if run.status == "failed" else ""
            tell(
                f"{run.status}: {run.name}{f': {run.cause}' if run.cause else ''}{where}",
                flush=True,
            )


def _settle(run: Run, future: Future) -> Run:
    """Settle a run that was executed."""
    try:
        run.manifest = future.result()
    except Exception as error:  # of a worker that died, or of an ended scheduler
        run.manifest = {"status": "failed", "cause": plain(f"{type(error).__name__}: {error}")}
    run.status, run.cause = run.manifest["status"], run.manifest["cause"]
    return run


# where runs are executed ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def threads(workers: int, max_cost: float | None = None, variables=None) -> Iterator[Callable]:
    """Yield what submits a run to this machine, of which so many run at a time; at the end their kernels end."""
    stop, variables = threading.Event(), share(max_cost) | (variables or {})
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield lambda run: pool.submit(execute, run, variables, stop.is_set)
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def cluster(address: str, max_cost: float | None) -> Iterator[Callable]:
    """Yield what submits a run to the workers of a Dask scheduler; kernels end with the client, however that ends."""
    try:
        from distributed import Client

        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # Dask is not there, or those of sockets, of Tornado, and of an address that is none
        why = f"{error or type(error).__name__}; Dask comes with pip install -e '.[cluster]'"
        raise InputError(f"no Dask scheduler answers at {address!r}: {why}") from None
    with client:
        stores = client.run(os.environ.get, "SELFEVAL_STORE")
        hosts = {worker.rpartition("://")[2].rpartition(":")[0] for worker in stores}
        if not stores or not all(stores.values()):
            raise InputError(
                f"{address}: start workers, each with SELFEVAL_STORE, a file on a disk of its host's own"
            )
        same = {
            name: os.environ.get(name, "")
            for name in ("SELFEVAL_REPLAY", "SELFEVAL_MODELS", "SELFEVAL_BATCH")
        }
        variables = share(max_cost, len(hosts)) | same
        executor = client.get_executor(pure=False)
        yield lambda run: executor.submit(execute_there, run, variables)


def execute_there(run: Run, variables: dict[str, str]) -> dict:
    """Execute a run in a thread of a Dask worker, as long as its sweep is there."""
    from distributed import get_worker

    worker = get_worker()
    key, tasks = worker.get_current_task(), worker.state.tasks
    return execute(
        run, variables, lambda: getattr(tasks.get(key), "state", "cancelled") == "cancelled"
    )


def execute(run: Run, variables: dict[str, str], stopped: Callable[[], bool]) -> dict:
    """Execute a run's notebook, until `stopped()` is true at most; return its manifest. The log ends with the cause."""
    import papermill  # takes seconds

    started, error = datetime.now(UTC), None
    env = os.environ | {
        "SELFEVAL_PROGRESS": str(run.folder / "progress.json"),
        "SELFEVAL_DATA": str(DATA),
    }
    run.begin()
    with (
        open_private(run.folder / "log.txt", "w") as log,
        tempfile.TemporaryDirectory(
            prefix="selfeval-kernel-", ignore_cleanup_errors=True
        ) as folder,
    ):
        options = {
            "env": env | {"TQDM_DISABLE": "1"} | variables,
            "cwd": Path.cwd(),
            "stdout": log,
            "stderr": log,
        }
        made = {"folder": folder, "options": options, "stopped": staticmethod(stopped)}
        manager = type("Manager", (KernelManager,), made)
        how = {"kernel_manager_class": manager, "kernel_name": "python3", "progress_bar": False}
        try:
            papermill.execute_notebook(
                run.notebook, run.folder / "notebook.ipynb", run.parameters, **how
            )
        except Exception as failure:  # papermill, Jupyter and the system raise many kinds
            error = failure
            log.write(f"{error}\n{type(error).__name__}: {error}\n")
    leave_out_findings(run)
    return run.settle(started, error)


def leave_out_findings(run: Run) -> None:
    """Take out of a run's notebook what the committed notebook found, unless it has the same parameters."""
    import nbformat

    file = run.folder / "notebook.ipynb"
    with contextlib.suppress(OSError, ValueError):  # there is none where papermill failed early
        notebook = nbformat.read(file, as_version=4)
        before = len(notebook.cells)
        if len(without_findings(notebook, run.parameters).cells) < before:
            write_whole(file, nbformat.writes(notebook))


# the end --------------------------------------------------------------------------------------------------------------


def summary(sweep: Sweep) -> int:
    """Print what became of the runs, what they took and how to resume; return the exit status."""
    for stage, runs in sweep.stages.items():
        found = Counter(run.status for run in runs)
        print(f"{stage}: {', '.join(f'{count} {status}' for status, count in found.items())}")
    total, found = Counter(), {run.status for run in sweep.runs}
    for run in (run for run in sweep.runs if run.status in ("ok", "failed")):
        total.update(run.manifest.get("counts", {}))
    money = f"{dollars(total['cost'])} USD"
    if unpriced := total["unpriced"]:
        priced, unknown = total["calls"] - unpriced, f"price unknown for {unpriced:,} calls"
        money = f"{unknown}, {money} for the other {priced:,}" if priced > 0 else unknown
    replies = f"{total['simulated']} simulated, {total['stored']} from the store"
    print(f"{total['calls']} calls ({total['tokens']:,} tokens), {money}; {replies}")
    unanswered = any(run.status == "ok" and run.cause for run in sweep.runs)
    if unanswered or "failed" in found:
        print(
            "run the same command again to resume: what is done stays, and stored replies are free"
        )
    print(f"outputs: {named(sweep.folder)}")
    return 1 if found & {"failed", "not started"} else 3 if unanswered else 0


def named(folder: Path) -> str:
    """Return a folder of outputs as it is seen from here; elsewhere its whole path, and why it is there."""
    if folder.is_relative_to(Path.cwd()):
        return os.path.relpath(folder)
    if folder.is_relative_to(DATA):
        return f"{folder} (results go below {DATA}, wherever a command runs; --out names another folder)"
    return str(folder)
