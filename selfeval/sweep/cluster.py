"""Runs on the workers of a Dask cluster: `selfeval sweep FILE --scheduler ADDRESS`.

The repository with `data/` and the folder of the sweep lie on a file system that all hosts see under the same path;
the response store does not: every host has its own on a local disk, where SQLite's locks hold. A host takes in what the
main store holds before its first run, and after each run sends what its store has got since, as an export in the
folder of the sweep, which is added to the main store. A run stays with its host, also when Dask has to run it again
because the worker died: there its replies are stored. When its host is gone it fails; the same command starts it
elsewhere.

Dask runs everything that is sent to it: keep the scheduler on a network that you trust, or use its TLS.
"""

import contextlib
import functools
import logging
import os
import socket
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from selfeval.asking.local import host_folder
from selfeval.asking.store import Store
from selfeval.errors import InputError
from selfeval.paths import ROOT
from selfeval.sweep.execute import Notebooks
from selfeval.sweep.runs import Run, versions

GONE = 30.0  # seconds without a worker after which a host's runs fail
OVERLAP = 60.0  # seconds of replies that are sent twice, for a clock that was set


@dataclass
class Task:
    """A run on its way: on which host, and when that was last seen."""

    host: str
    future: object
    seen: float


class Cluster:
    """A launcher (`execute`) on the workers of the Dask scheduler at an address.

    folder: of the sweep. forked: how kernels are made. patience: seconds to wait for the scheduler.
    """

    def __init__(self, address: str, folder: Path, forked=True, patience: float = 10):
        try:
            from distributed import Client
        except ImportError:
            raise InputError("--scheduler needs Dask: pip install -e '.[cluster]'") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            self.client = Client(address, timeout=patience, set_as_default=False)
        except Exception as error:  # those of sockets, of Tornado, and of an address that is none
            raise InputError(f"no Dask scheduler answers at {address!r}: {error or type(error).__name__}") from None
        self.tasks, self.store, self.replies = {}, Store(), folder / "replies"
        self.main = self.replies / f"main-{uuid.uuid4().hex[:12]}.jsonl"
        self.common = {"made": made_with(), "forked": forked, "main": str(self.main)}
        if found := next(filter(None, self.client.run(problem, self.common).values()), None):
            raise InputError(found)
        self._merge()  # of a sweep that was killed
        self.store.export_file(self.main)

    def places(self) -> int:
        """Return how many notebooks the cluster runs at a time: the threads of its workers."""
        return max(1, self._threads().total())

    def _threads(self) -> Counter:
        """Return how many threads the workers of each host have."""
        found = Counter()
        for address, threads in self.client.nthreads().items():
            found[address.rpartition("://")[2].rpartition(":")[0]] += threads
        return found

    def start(self, run: Run) -> None:
        """Start a run and return at once."""
        threads, busy = self._threads(), Counter(task.host for task in self.tasks.values())
        if not threads:
            raise OSError("the cluster has no worker")
        host = max(threads, key=lambda host: threads[host] - busy[host])
        common = self.common | {"share": len(threads)}
        future = self.client.submit(execute, run, common, pure=False, workers=[host])
        self.tasks[run.name] = Task(host, future, time.monotonic())

    def poll(self, run: Run) -> int | None:
        """Return 0 for a notebook that ended well and 1 for another, None while it is at work."""
        task, now = self.tasks[run.name], time.monotonic()
        task.seen = now if task.host in self._threads() else task.seen
        if task.future.status == "pending" and now < task.seen + GONE:
            return None
        try:
            done = task.future.result(1)
            run.manifest["host"] = done["host"]
            self._merge()
        except Exception as error:  # of the worker, of an ended scheduler, or no answer of a host that is gone
            task.future.cancel(force=True)
            done = {"status": 1}
            (run.folder / "log.txt").write_text(f"{task.host} gave no result: {error!r:.300}\n")
        del self.tasks[run.name]  # else Dask would make the result again when the worker that holds it dies
        return done["status"]

    def _merge(self) -> None:
        """Add what hosts have sent."""
        for path in sorted(self.replies.glob("from-*.jsonl")):
            self.store.import_file(path)
            path.unlink()

    def end(self, runs: list[Run]) -> None:
        """End these runs with their kernels within five seconds."""
        ours, limit = {str(run.folder) for run in runs}, time.monotonic() + 4
        for run in runs:
            self.tasks[run.name].future.cancel(force=True)
        while ours and time.monotonic() < limit:
            time.sleep(0.1)
            ours &= {folder for folders in self.client.run(running, on_error="ignore").values() for folder in folders}

    def close(self) -> None:
        """Fetch what the stores of the hosts still have, and leave."""
        self.client.run(send, self.common, on_error="ignore")
        self._merge()
        self.main.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.replies.rmdir()
        self.store.close()
        self.client.close()


# On the workers

_lock, _folders, _sent = threading.RLock(), set(), {}


def made_with() -> dict:
    """Return by name what all hosts must have in common."""
    found = versions()
    return {"repository": str(ROOT), "code": found["code"]["hash"], **found["environment"], **found["packages"]}


def problem(common: dict) -> str | None:
    """Return in one sentence why this host cannot run the sweep, None where it can."""
    ours, theirs = made_with(), common["made"]
    wrong = [name for name in theirs if ours.get(name) != theirs[name]]
    if not wrong:
        return None
    name, host = wrong[0], socket.gethostname()
    return f"`{name}` is {ours.get(name)} on {host} and {theirs[name]} here; all hosts of a sweep must have the same"


def execute(run: Run, common: dict) -> dict:
    """Run a notebook on this host; return its exit status and the host."""
    from distributed import get_worker

    worker = get_worker()
    key, notebooks = worker.get_current_task(), Notebooks(common["forked"])
    with _lock:
        _take_in(common["main"])
    run.variables |= {"SELFEVAL_STORE": str(_store()), "SELFEVAL_SHARE": str(common["share"])}
    run.started()
    notebooks.start(run)
    _folders.add(str(run.folder))
    while (status := notebooks.poll(run)) is None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":  # by the sweep, or because it is gone
            notebooks.end([run])
        time.sleep(0.1)
    _folders.discard(str(run.folder))
    send(common)
    return {"status": status, "host": socket.gethostname()}


def running() -> list[str]:
    """Return the folders of the runs that are at work on this worker."""
    return sorted(_folders)


def _store() -> Path:
    """Return this host's store: where `SELFEVAL_STORE` says on the worker, else among the temporary files."""
    given = os.environ.get("SELFEVAL_STORE")
    if given and not Path(given).is_absolute():  # it would lie below the repository, which all hosts share
        raise InputError(f"SELFEVAL_STORE of a worker must be a whole path on its own disk, got {given!r}.")
    return Path(given) if given else host_folder() / "responses.sqlite"


@functools.cache
def _take_in(main: str) -> None:
    """Add what the main store held when the sweep began."""
    with contextlib.closing(Store(_store())) as store:
        store.import_file(Path(main), created=0.0)  # nothing to send back


def send(common: dict) -> None:
    """Write what this host's store has got since this worker last wrote for that sweep; at first all it bought."""
    with _lock, contextlib.closing(Store(_store())) as store:
        now = time.time()
        target = Path(common["main"]).with_name(f"from-{socket.gethostname()}-{uuid.uuid4().hex[:8]}.jsonl")
        store.export_file(target, since=_sent.get(common["main"], 1.0 + OVERLAP) - OVERLAP)
        _sent[common["main"]] = now
