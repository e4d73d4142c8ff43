"""Execute a sweep: each run's notebook by papermill, once the stages that it needs have ended.

A run has the working directory of the command and leaves `<stage>/<slug>/` with `notebook.ipynb`,
`log.txt` and what the notebook writes to its `out`. The folder belongs to the sweep: a run that
starts empties it. As with `make`, a run is done if its notebook ended well with the code that it
has now, after the runs that it needs and after the last change of the files that its parameters
name. To execute it again, delete its folder: stored replies are free.

Threads of this machine or a Dask cluster execute runs: both are a function that takes one and
returns a `concurrent.futures.Future`.
"""

import contextlib
import fcntl
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import fields, replace
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager

from selfeval import ASKING
from selfeval.errors import InputError, check_at_least
from selfeval.paths import DATA, ROOT, make_private_folder, open_private, read_json, write_whole
from selfeval.providers import dry_runs, models
from selfeval.providers.budget import share
from selfeval.providers.client import Tally
from selfeval.providers.store import place
from selfeval.secrets import plain, redact
from selfeval.sweep.file import Run, Sweep, load

# what papermill says stands in the runs' notebooks
logging.getLogger("papermill").addHandler(logging.NullHandler())
# seconds after which a run tells how far it is
TELL = 15
# seconds to wait for a scheduler
PATIENCE = 10
# tag of a cell that says what a committed notebook found
FINDING = "committed"
ASKS = re.compile(rf"\b(Client|EvalRunner|({'|'.join(ASKING)})\()")


def run_file(
    path,
    workers: int | None = None,
    out=None,
    *,
    variables: dict | None = None,
    scheduler: str | None = None,
    max_cost: float | None = None,
    dry_run: bool = False,
    confirm: Callable[[int], None] | None = None,
) -> int:
    """Execute the sweep file at `path` and return the exit status.

    0: all is done. 1: a run failed or could not start. 3: every run ended, but in some of them
    calls failed.

    workers: runs at a time on this machine, by default 2. out: a folder that replaces
    `data/runs/<name>`. variables: {name: value} of the file's. scheduler: the address of a Dask
    scheduler whose workers execute the runs. max_cost: US dollars for all runs together. dry_run:
    only print what would be done and cost. confirm: called in a dry run with the number of replies
    to buy, where there are any and all could be counted.
    """
    sweep = load(path, out, variables)
    if max_cost is not None:
        check_at_least("max_cost", max_cost)  # the command line lets `inf` and `nan` through
    _look(sweep)
    if dry_run:
        return _count(sweep, workers or 2, confirm)
    make_private_folder(sweep.folder)
    # the lock is free as soon as a sweep is killed; its kernels end with it
    with (sweep.folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            rule = "another sweep is at work there; wait for it"
            raise InputError(f"{sweep.folder}: {rule}") from None
        with (
            cluster(scheduler, max_cost)
            if scheduler
            else threads(workers or 2, share(max_cost)) as submit
        ):
            _work(sweep.runs, submit)
    return _summary(sweep)


# what is to do


def _look(sweep: Sweep) -> None:
    """Settle the runs that are done."""
    latest: dict[str, float] = {}
    for run in sweep.runs:
        ended = _ended_well(run)
        changes = [latest[stage] for stage in run.needs] + _changes(run.parameters)
        if ended > max(changes, default=0):
            run.status = "done"
            run.ended = ended
        latest[run.stage] = max(latest.get(run.stage, 0), run.ended)


def _ended_well(run: Run) -> float:
    """Return when a run's notebook ended well with the code that it has now, 0 if it did not."""
    file = run.folder / "notebook.ipynb"
    executed = read_json(file)
    if "selfeval" not in executed.get("metadata", {}):
        return 0
    is_same = _code_cells(executed) == _code_cells(read_json(run.notebook))
    return file.stat().st_mtime if is_same else 0


def _code_cells(notebook: dict) -> list[str]:
    """Return the sources of a notebook's code cells, but for the parameters of papermill."""
    return [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
        and "injected-parameters" not in cell["metadata"].get("tags", ())
    ]


def _changes(parameters: dict) -> list[float]:
    """Return when the files that parameters name were written; of a folder, its JSON lines."""
    written = []
    for value in parameters.values():
        for name in value if isinstance(value, list) else [value]:
            if not (name and isinstance(name, str)):
                continue
            for folder in (Path.cwd(), DATA, DATA / "corpora"):
                with contextlib.suppress(OSError, ValueError):  # it names nothing
                    files = [folder / name, *(folder / name).glob("*.jsonl")]
                    written += [file.stat().st_mtime for file in files if file.is_file()]
    return written


# the runs in their order


def _work(runs: list[Run], submit: Callable[[Run], Future], tell=print) -> None:
    """Execute what is to do, each run once its needs have ended, and tell how each ended."""
    graph: TopologicalSorter = TopologicalSorter()
    for run in runs:
        graph.add(run, *run.needs)
        graph.add(run.stage, run)
    graph.prepare()
    running: dict[Future, Run] = {}
    broken: set[str] = set()  # stages in which a run failed
    while graph.is_active():
        for node in graph.get_ready():
            if isinstance(node, Run) and node.status == "to do":
                lost = sorted(broken.intersection(node.needs))
                if not lost:
                    running[submit(node)] = node
                    continue
                node.status = "not started"
                node.cause = f"it needs {lost[0]}, where a run failed or was not started"
                broken.add(node.stage)
            graph.done(node)
        ended = wait(running, TELL, FIRST_COMPLETED).done
        if not ended:
            _tell_progress(running.values(), tell)
        for future in ended:
            run = running.pop(future)
            _settle(run, future)
            tell(f"{run.status}: {run.name}", flush=True)
            if run.status == "failed":
                broken.add(run.stage)
            graph.done(run)


def _tell_progress(runs: Iterable[Run], tell: Callable) -> None:
    """Tell how far runs are that ask models."""
    for run in runs:
        asked = read_json(run.folder / "progress.json").get("asked")
        if asked:
            tell(f"running: {run.name}: {asked}", flush=True)


def _settle(run: Run, future: Future) -> None:
    """Settle a run that was executed.

    Where it is only asserted that no call failed, the notebook has saved everything.
    """
    try:
        future.result()
        run.status = "ok"
    except Exception as error:  # papermill, Jupyter, Dask and the system raise many kinds
        name = getattr(error, "ename", type(error).__name__)
        text = str(getattr(error, "evalue", error))
        is_saved = name == "AssertionError" and "run again" in text
        run.status = "incomplete" if is_saved else "failed"
        run.cause = f"{plain(redact(f'{name}: {text}'))} (see {run.folder})"


def _summary(sweep: Sweep) -> int:
    """Print what became of the runs, what they took and how to resume; return the exit status."""
    total = Tally()
    names = [item.name for item in fields(Tally)]
    for run in sweep.runs:
        if run.cause:
            print(f"{run.status}: {run.name}: {run.cause}")
        if run.status not in ("done", "not started"):
            counts = read_json(run.folder / "progress.json")
            total += Tally(*(counts.get(name, 0) for name in names))
    counts = Counter(run.status for run in sweep.runs)
    print(f"runs: {', '.join(f'{count} {status}' for status, count in counts.items())}")
    print(total)
    print(f"outputs: {sweep.folder}")
    if counts.keys() <= {"ok", "done"}:
        return 0
    print("run the same command again to resume: what is done stays, and stored replies are free")
    return 1 if counts["failed"] else 3


# where runs are executed


@contextlib.contextmanager
def threads(workers: int, variables: dict[str, str]) -> Iterator[Callable]:
    """Yield what submits a run to this machine; at the end their kernels end.

    workers: how many run at a time. variables: of the kernels' environment.
    """
    stop = threading.Event()
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
        stores = client.run(os.getenv, "SELFEVAL_STORE")
        if not stores or not all(stores.values()):
            file = "a file on a disk of its host's own"
            raise InputError(f"{address}: start workers, each with SELFEVAL_STORE, {file}")
        hosts = {worker.rpartition("://")[2].rpartition(":")[0] for worker in stores}
        variables = share(max_cost, len(hosts))
        for name in ("SELFEVAL_REPLAY", "SELFEVAL_MODELS", "SELFEVAL_BATCH"):
            variables[name] = os.environ.get(name, "")
        executor = client.get_executor(pure=False)
        yield lambda run: executor.submit(_execute_there, run, variables)


def _execute_there(run: Run, variables: dict[str, str]) -> None:
    """Execute a run in a thread of a Dask worker, as long as its sweep is there."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    execute(run, variables, is_cancelled)


class _KernelManager(AsyncKernelManager):
    """A manager of Jupyter's kernel, which talks over Unix sockets in a folder of this user's.

    Ports of this machine are open to all its users, and who listens to a kernel's needs no key to
    read what it sends.

    folder: where the sockets are. options: of the kernel's process (`env`, `cwd`, `stdout`,
    `stderr`) as `subprocess.Popen` takes them. stopped: tells whether the kernel is to end.
    """

    folder = ""
    options = None
    stopped = staticmethod(bool)

    def __init__(self, **traits):
        super().__init__(**traits, transport="ipc", ip=f"{self.folder}/kernel")

    async def start_kernel(self, **how):
        # where the kernel `python3` is registered for another environment
        self.kernel_spec.argv[0] = sys.executable
        await super().start_kernel(**how, **self.options)

    async def _async_is_alive(self):
        """Tell whether the kernel runs, every second; where it is to end, end it with its children.

        What a notebook started in a session of its own, like the shared server of the embedded
        model, stays.
        """
        if self.stopped():
            await self.signal_kernel(signal.SIGKILL)
        return await super()._async_is_alive()


def execute(run: Run, variables: dict[str, str], stopped: Callable[[], bool]) -> None:
    """Execute a run's notebook, until `stopped()` is true at most; raise what papermill raises."""
    import nbformat
    import papermill  # takes seconds

    file = run.folder / "notebook.ipynb"
    if run.folder.is_dir() and any(run.folder.iterdir()) and not file.is_file():
        rule = "holds files that are not of a run, and it would be emptied"
        raise InputError(f"{run.folder} {rule}; move them, or name another folder with --out.")
    shutil.rmtree(run.folder, ignore_errors=True)
    # it may be there again: the kernel of a killed worker writes how far it is to its end
    run.folder.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.read(run.notebook, as_version=4)
    notebook.cells = [
        cell for cell in notebook.cells if FINDING not in cell.metadata.get("tags", ())
    ]
    write_whole(file, nbformat.writes(notebook))
    env = {
        **os.environ,
        "SELFEVAL_PROGRESS": str(run.folder / "progress.json"),
        "SELFEVAL_DATA": str(DATA),
        "TQDM_DISABLE": "1",
        **variables,
    }
    sockets = tempfile.TemporaryDirectory(prefix="selfeval-kernel-", ignore_cleanup_errors=True)
    with open_private(run.folder / "log.txt", "w") as log, sockets as folder:
        process = {"env": env, "cwd": Path.cwd(), "stdout": log, "stderr": log}
        parts = {"folder": folder, "options": process, "stopped": staticmethod(stopped)}
        notebook = papermill.execute_notebook(
            file,
            file,
            run.parameters,
            kernel_manager_class=type("Manager", (_KernelManager,), parts),
            kernel_name="python3",
            progress_bar=False,
        )
    failed = read_json(run.folder / "progress.json").get("failed")
    if failed:
        raise AssertionError(f"{failed} calls failed; run again to make only these.")
    notebook.metadata["selfeval"] = _made_with()  # what ended well has it
    write_whole(file, nbformat.writes(notebook))


def _made_with() -> dict[str, str]:
    """Return the version and the commit of the package; Python's is in every notebook."""
    commit = ""
    with contextlib.suppress(OSError):
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"version": metadata.version("selfeval"), "commit": commit}


# a dry run

# Notebooks that ask models are executed as planning (see `selfeval.providers.dry_runs`) on a
# shadow of data/ in a temporary folder, where `SELFEVAL_DATA` leads: stored replies are read,
# stand-ins take the place of the others, so that calls of later stages are counted on texts that
# do not exist yet. Every request counts once, as it is bought once. Notebooks that ask nobody are
# left out: an asking one that needs what they write can be looked through when they have run.


def _count(sweep: Sweep, workers: int, confirm: Callable[[int], None] | None) -> int:
    """Print what would be done and what it would take; return 1 where a run cannot be counted."""
    for run in sweep.runs:
        print(f"{run.status:5}  {run.name}")
    with tempfile.TemporaryDirectory(prefix="selfeval-plan-") as name:
        base = Path(name).resolve()
        planned, variables = _shadow(sweep, base)
        with threads(workers, variables) as submit:
            _work(planned, submit, tell=lambda *_, **__: None)
        rows = dry_runs.prices(base)
    to_do = [run for run in sweep.runs if run.status == "to do"]
    print(f"\n{len(to_do)} of {len(sweep.runs)} runs to do; ", end="")
    to_buy = dry_runs.print_calls(rows)
    broken = [run for run in planned if run.status != "ok"]
    for run in broken:
        print(f"at least: {run.name} could not be counted to its end: {run.cause}")
    if confirm and to_buy and not broken:
        confirm(to_buy)
    return int(bool(broken))


def _shadow(sweep: Sweep, base: Path) -> tuple[list[Run], dict[str, str]]:
    """Return the runs to look through, on a shadow of data/, and the variables of their kernels."""
    root = base / "root"  # every file stands below it as it does below /
    for path in DATA.glob("*"):
        if path.name not in ("runs", "store", "report"):
            dry_runs.mirror(path, root)
    planned = []
    for run in sweep.runs:
        asks = any(map(ASKS.search, _code_cells(read_json(run.notebook))))
        if run.status == "to do" and asks:
            parameters = {
                name: dry_runs.inside(value, root) for name, value in run.parameters.items()
            }
            planned.append(replace(run, folder=Path(f"{root}{run.folder}"), parameters=parameters))
    variables = {
        "SELFEVAL_PLAN": str(base),
        "SELFEVAL_DATA": f"{root}{DATA}",
        "SELFEVAL_MAX_COST": "",
        "SELFEVAL_STORE": str(place(None)),
    }
    for provider in models.providers().values():
        variables |= dict.fromkeys([*provider.keys, *provider.header_variables], "")
    return planned, variables
