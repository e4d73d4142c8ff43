"""Runs on the workers of a Dask cluster: `selfeval sweep FILE --scheduler ADDRESS`.

The repository with `data/` and the folder of the sweep lie on a file system that all hosts see under the same path;
the response store does not: every host has its own on a local disk, where SQLite's locks hold. A host takes in what the
main store holds before its first run, and after each run sends what its store has got since, as a file in the folder of
the sweep, which is merged into the main store. A run stays with its host, also when Dask has to run it again because
the worker died: there its replies are stored. It moves only when its host is gone.

Dask runs whatever is sent to it: keep the scheduler on a network that you trust, or use its TLS.
"""

import contextlib
import functools
import hashlib
import logging
import os
import socket
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from selfeval import DATA, ROOT
from selfeval.asking.store import Store
from selfeval.errors import InputError
from selfeval.sweep import manifest
from selfeval.sweep.forked import ForkedProcesses
from selfeval.sweep.launch import GRACE, LocalProcesses
from selfeval.sweep.runs import Run

GONE = 30.0  # seconds without a worker after which a host's runs move to others
SEEN = 60.0  # seconds that a network drive may take to show a file that was written elsewhere
OVERLAP = 60.0  # seconds of replies that are sent twice, for a clock that was set


@dataclass
class Task:
    """A run on its way: its job, where it is, and since when its host has no worker."""

    job: dict
    host: str = ""
    future: object = None
    missing: float = 0.0
    ended: float = 0.0


class Cluster:
    """A `launch.Launcher` on the workers of the Dask scheduler at an address; `folder` is that of the sweep."""

    def __init__(self, address: str, folder: Path, forked: bool = True, patience: float = 10):
        try:
            from distributed import Client
        except ImportError:
            raise InputError("--scheduler needs Dask: pip install -e '.[cluster]'") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            self.client = Client(address, timeout=patience, set_as_default=False)
        except Exception as error:  # those of sockets, of Tornado, and of an address that is none
            raise InputError(f"no Dask scheduler answers at {address!r}: {error or type(error).__name__}") from None
        self.address, self.id, self.replies = address, uuid.uuid4().hex[:12], folder / "replies"
        self.tasks: dict[str, Task] = {}
        self.store, self._hosts, self._looked = Store(), {}, 0.0
        self.token = DATA / "runs" / f"sweep-{self.id}.part"
        self.common = {"root": str(ROOT), "token": str(self.token), "id": self.id, "replies": str(self.replies)}
        self.common["forked"] = forked

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_) -> None:
        self.token.unlink(missing_ok=True)
        (self.replies / f"main-{self.id}.sqlite").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.replies.rmdir()
        self.store.close()
        self.client.close()

    def launch(self, keep: int) -> "Cluster":
        """Prepare what the workers need, and check those that are there; `keep` is of no use on other hosts."""
        for left in sorted(self.replies.glob("from-*.sqlite")):  # of a sweep that was killed
            self._merge(left)
        self.token.parent.mkdir(parents=True, exist_ok=True)
        self.token.write_text(self.id)
        self.store.copy(self.replies / f"main-{self.id}.sqlite")
        self.common |= {"versions": manifest.versions(), "store": str(self.store.path.absolute())}
        try:
            problems = self.client.run(check, self.common)
        except Exception as error:  # whatever a worker of another installation raises
            raise InputError(f"the workers of {self.address} cannot run this package: {error!r:.300}") from None
        if problem := next(filter(None, problems.values()), None):
            raise InputError(problem)
        return self

    def places(self) -> int:
        """Return how many notebooks the cluster runs at a time: the threads of its workers."""
        return max(1, sum(self.client.nthreads().values()))

    def start(self, run: Run) -> None:
        """Start a run and return at once."""
        job = {"stage": run.stage, "notebook": str(run.notebook), "folder": str(run.folder), "common": self.common}
        job |= {"variables": run.variables, "parameters": (run.folder / "parameters.yaml").read_text("utf-8")}
        (run.folder / "log.txt").unlink(missing_ok=True)
        self.tasks[run.name] = Task(job)
        self._place(self.tasks[run.name])

    def _places(self) -> dict[str, int]:
        """Return {host: threads}, at most a second old."""
        if time.monotonic() - self._looked > 1:
            self._hosts, self._looked = {}, time.monotonic()
            with contextlib.suppress(OSError, ValueError):
                for address, threads in self.client.nthreads().items():
                    self._hosts[_host(address)] = self._hosts.get(_host(address), 0) + threads
        return self._hosts

    def _place(self, task: Task) -> None:
        """Send a run to the host that has most to spare, if there is one."""
        busy = [each.host for each in self.tasks.values() if each.future and not each.ended]
        hosts = {host: threads - busy.count(host) for host, threads in self._places().items()}
        if not hosts:
            return
        task.host, task.missing = max(hosts, key=hosts.get), 0.0
        task.job["share"] = len(hosts)
        key = f"selfeval-{self.id}-{uuid.uuid4().hex[:12]}"
        task.future = self.client.submit(execute, task.job, key=key, pure=False, workers=[task.host])

    def poll(self, run: Run) -> int | None:
        """Return papermill's exit status, None while it is at work."""
        task = self.tasks[run.name]
        if task.future is None:
            self._place(task)
            return None
        if task.future.status == "pending":
            self._watch(run, task)
            return None
        if task.future.status != "finished":
            error = task.future.exception() if task.future.status == "error" else "the scheduler has ended"
            return self._failed(run, task, f"{task.host}: {error!r:.300}")
        done = task.future.result()
        if "problem" in done:
            return self._failed(run, task, done["problem"])
        task.ended = task.ended or time.monotonic()
        if unseen := _unseen(run.folder, done["files"]):
            if time.monotonic() - task.ended < SEEN:
                return None
            return self._failed(run, task, f"{unseen[0]}, written on {done['host']}, is not to be seen here")
        run.manifest["host"] = done["host"]
        if done["replies"]:
            self._merge(Path(done["replies"]))
        return done["status"]

    def _watch(self, run: Run, task: Task) -> None:
        """Move a run whose host has gone."""
        if task.host in self._places():
            task.missing = 0.0
        elif not task.missing:
            task.missing = time.monotonic()
        elif time.monotonic() - task.missing > GONE:
            print(f"selfeval: {task.host} is gone; {run.name} starts anew elsewhere", file=sys.stderr, flush=True)
            task.future.cancel(force=True)
            task.future = None

    def _failed(self, run: Run, task: Task, why: str) -> int:
        task.ended = time.monotonic()
        with (run.folder / "log.txt").open("a") as log:
            log.write(f"\n{why}\n")
        return 1

    def _merge(self, path: Path) -> None:
        self.store.merge(path)
        path.unlink()

    def end(self, runs: list[Run]) -> None:
        """End these runs with their kernels within five seconds."""
        tasks = [self.tasks[run.name] for run in runs if self.tasks[run.name].future]
        for task in tasks:
            task.future.cancel(force=True)
        ours, limit = {task.job["folder"] for task in tasks}, time.monotonic() + GRACE + 1
        while ours and time.monotonic() < limit:
            time.sleep(0.1)
            busy = self.client.run(running, on_error="ignore")
            ours &= {folder for folders in busy.values() for folder in folders}

    def close(self) -> None:
        """Fetch what the stores of the hosts still have."""
        used = {task.host for task in self.tasks.values() if task.host}
        there = {_host(address): address for address in self.client.nthreads()}
        for host in sorted(used - there.keys()):
            print(f"selfeval: {host} is gone; what its store had not sent is still there", file=sys.stderr, flush=True)
        chosen = [there[host] for host in used & there.keys()]
        sent = self.client.run(send, self.common, workers=chosen, on_error="ignore") if chosen else {}
        for path in filter(None, sent.values()):
            self._merge(Path(path))


def _host(address: str) -> str:
    return address.rpartition("://")[2].rpartition(":")[0]


def _unseen(folder: Path, files: dict[str, int]) -> list[str]:
    """Return the files that a network drive does not show here yet as they were written there."""
    seen = {}
    for name in files:
        with contextlib.suppress(OSError), (folder / name).open("rb") as file:  # opening asks the server anew
            seen[name] = os.fstat(file.fileno()).st_size
    return [name for name, size in files.items() if seen.get(name) != size]


# On the workers

_lock, _folders = threading.RLock(), set()


def check(common: dict) -> str | None:
    """Return in one sentence why this host cannot run the sweep, None where it can."""
    host = socket.gethostname()
    if str(ROOT) != common["root"]:
        return f"{host} has the repository in {ROOT} and the sweep in {common['root']}; both must see the same folder"
    if not _appears(Path(common["token"]), common["id"], SEEN / 6):
        return f"{host} does not see {common['token']}: its data/ is another one, and must be the sweep's"
    ours, theirs = manifest.versions(), common["versions"]
    if ours["code"]["hash"] != theirs["code"]["hash"]:
        return f"{host} has another version of the code or of data/: {ours['code']}, the sweep {theirs['code']}"
    for part in ("environment", "packages"):
        if wrong := [name for name in theirs[part] if ours[part].get(name) != theirs[part][name]]:
            mine, other = ours[part].get(wrong[0]), theirs[part][wrong[0]]
            return f"{host} has other {part} than the sweep: {wrong[0]} is {mine} there and {other} here"
    return None


def _appears(path: Path, text: str, seconds: float) -> bool:
    """Wait so long for a file with this text."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if path.read_text("utf-8") == text:
                return True
        if time.monotonic() > end:
            return False
        time.sleep(0.2)


def execute(job: dict) -> dict:
    """Run a notebook as a process of this host; return its exit status, the files it left, and its replies' file."""
    from distributed import get_worker

    worker, common, folder = get_worker(), job["common"], Path(job["folder"])
    key = worker.get_current_task()
    if problem := check(common):
        return {"problem": problem}
    if not _appears(folder / "parameters.yaml", job["parameters"], SEEN):
        return {"problem": f"{socket.gethostname()} does not see {folder}, where the sweep keeps its runs"}
    variables = job["variables"] | {"SELFEVAL_STORE": str(_store()), "SELFEVAL_SHARE": str(job["share"])}
    run = Run(job["stage"], Path(job["notebook"]), folder, {}, "", variables=variables)
    for name in ("progress.json", "written.txt", "read.txt"):  # of a worker that died here
        (folder / name).unlink(missing_ok=True)
    manifest.write_whole(folder / "parameters.yaml", job["parameters"])  # what is older than this is not ours
    launcher = _launcher(common["forked"])
    with _lock:
        _take_in(common["replies"], common["id"])
        launcher.start(run)
        _folders.add(job["folder"])
    try:
        while (status := launcher.poll(run)) is None:
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":  # by the sweep, or because it is gone
                launcher.end([run])
                status = launcher.poll(run)
                break
            time.sleep(0.1)
    finally:
        _folders.discard(job["folder"])
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    return {"status": status, "host": socket.gethostname(), "files": files, "replies": send(common)}


def running() -> list[str]:
    """Return the folders of the runs that are at work on this worker."""
    return sorted(_folders)


@functools.cache
def _launcher(forked: bool) -> LocalProcesses:
    return (ForkedProcesses if forked else LocalProcesses)(os.open(os.devnull, os.O_RDONLY))


def _store() -> Path:
    """Return this host's store: where `SELFEVAL_STORE` says on the worker, else among the temporary files."""
    if given := os.environ.get("SELFEVAL_STORE"):
        if not Path(given).is_absolute():  # it would lie below the repository, which all hosts share
            raise InputError(f"SELFEVAL_STORE of a worker must be a whole path on its own disk, got {given!r}.")
        return Path(given)
    folder = Path(tempfile.gettempdir()) / f"selfeval-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise InputError(f"{folder} belongs to another user; set SELFEVAL_STORE on the workers")
    return folder / "responses.sqlite"


@functools.cache
def _take_in(replies: str, identity: str) -> None:
    """Add what the main store held when the sweep began."""
    store = Store(_store())
    store.merge(Path(replies) / f"main-{identity}.sqlite")
    store.close()


def send(common: dict) -> str | None:
    """Write what this host's store has got since it was last sent to that main store; return the file, if any."""
    with _lock:
        path = _store()
        if not path.is_file():
            return None
        mark = path.with_name(f"{path.name}.sent-{hashlib.sha256(common['store'].encode()).hexdigest()[:10]}")
        now, since = time.time(), 0.0
        with contextlib.suppress(OSError, ValueError):
            since = float(mark.read_text()) - OVERLAP
        target = Path(common["replies"]) / f"from-{socket.gethostname()}-{uuid.uuid4().hex[:8]}.sqlite"
        store = Store(path)
        store.copy(target, since)
        store.close()
        manifest.write_whole(mark, str(now))
        return str(target)
