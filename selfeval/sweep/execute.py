"""Execute a sweep: start what is to do once what it needs has ended, and stop cleanly.

Runs are started by a launcher: `start(run)` returns at once, or raises `OSError`; `poll(run)` returns an exit status,
None while it is at work; `end(runs)` ends runs with their kernels within five seconds; `close()`; `places()` says how
many may run at a time. Here it is `Notebooks`, for other hosts `cluster.Cluster`.
"""

import contextlib
import fcntl
import logging
import os
import signal
import threading
import time
import uuid
from collections import Counter
from fnmatch import fnmatchcase

from selfeval.errors import InputError, check_at_least
from selfeval.paths import DATA, HOME
from selfeval.sweep.kernels import KernelManager
from selfeval.sweep.runs import COUNTS, relative
from selfeval.sweep.show import Line, report

logging.getLogger("papermill").addHandler(logging.NullHandler())  # what it says stands in the runs' logs
FAILED, INCOMPLETE, CEILING = 1, 3, 4  # exit statuses; 2 is click's, for a command line that it does not understand
GRACE = 1.0  # seconds between TERM and KILL


def run(sweep, workers, launcher, *, only=(), max_cost=None, pointers=True):
    """Execute what is missing, `workers` notebooks at a time (None: as many as there are places); return exit status.

    0: all ok. 1: a run failed or could not start. 3: calls failed, in runs that ended. 4: `max_cost`, in US dollars, is
    reached. 128 + n: stopped by signal n. launcher: what makes one. only: patterns of runs, as in `selfeval sweep
    --help`. pointers: end with where figure and pages are.
    """
    if max_cost is not None:
        check_at_least("max_cost", max_cost, 0)
    chosen = choose(sweep, only)
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{sweep.folder}: cannot make the folder for the outputs: {error.strerror}") from None
    began = time.monotonic()
    with lock(sweep.folder), contextlib.closing(launcher()) as launch, signals() as stop:
        work = Work(sweep, launch, chosen, workers or launch.places(), max_cost)
        work.execute(stop, Line(sweep, max_cost))
    report(sweep, time.monotonic() - began, stop, work, pointers)
    statuses = {run.status for run in sweep.runs}
    if stop:
        return 128 + stop[0]
    if work.halted:
        return CEILING
    if statuses & {"failed", "not started", "stopped", "waiting"}:
        return FAILED
    return INCOMPLETE if "incomplete" in statuses else 0


def choose(sweep, only=()):
    """Return the names of the runs that the patterns ask for; raise `InputError` for a pattern that names none."""

    def matches(run, pattern):
        return fnmatchcase(run.stage, pattern) or fnmatchcase(run.name, pattern)

    stages = [stage.name for stage in sweep.stages]
    for pattern in only:
        if not any(matches(run, pattern) for run in sweep.runs):
            raise InputError(
                f"--only {pattern!r} names no run; it is a stage ({', '.join(stages)}), or STAGE/RUN with * and ? as "
                "wild cards"
            )
    return {run.name for run in sweep.runs if not only or any(matches(run, pattern) for pattern in only)}


class Work:
    """The runs of a sweep on their way."""

    def __init__(self, sweep, launch, chosen, workers, max_cost=None):
        self.sweep, self.launch, self.chosen, self.workers = sweep, launch, chosen, workers
        self.max_cost, self.variables = max_cost, {}
        if max_cost is not None:  # a purse that every client in the runs takes from
            self.variables = {"SELFEVAL_BUDGET": f"sweep-{os.getpid()}-{uuid.uuid4().hex[:8]}:{max_cost}"}
        self.halted = False  # by the ceiling: nothing more is started
        self.running, self.waiting = [], sweep.runs
        self.open = Counter(run.stage for run in sweep.runs)  # runs of a stage that have not settled

    def execute(self, stop, line):
        """Run everything to its end, or until `stop` holds a signal."""
        try:
            while (self.waiting or self.running) and not stop:
                self.look()
                self.start()
                line.show()
                time.sleep(0.1 if self.running else 0)
        finally:
            self.launch.end(self.running)
            for run in self.running:
                run.ended(stopped=f"interrupted by {signal.Signals(stop[0]).name if stop else 'an error'}")
            line.close()

    def start(self):
        """Start waiting runs whose earlier stages have settled, in order, while there is a place."""
        for run in self.waiting:
            if len(self.running) == self.workers:
                break
            if self.halted and run.name not in self.chosen:
                run.status = "left out"
            elif self.halted:
                run.status, run.cause = "not started", "not started because the cost ceiling is reached"
            elif not any(self.open[stage] for stage in run.needs):
                self.sweep.decide(run, self.chosen)
                if run.status == "waiting":
                    self.start_one(run)
            if run.status not in ("waiting", "running"):
                self.open[run.stage] -= 1
        self.waiting = [run for run in self.waiting if run.status == "waiting"]

    def start_one(self, run):
        """Start a run, which fails where its folder cannot be written."""
        run.variables |= self.variables
        try:
            run.started()
            self.launch.start(run)
            self.running.append(run)
        except (OSError, InputError) as error:
            run.manifest |= {"status": "failed", "counts": dict.fromkeys(COUNTS, 0)}
            run.status, run.cause = "failed", f"cannot start in {relative(run.folder)}: {error}"

    def look(self):
        """Settle the runs that have ended, and what follows from their end for the others."""
        for run in [*self.running]:
            if (code := self.launch.poll(run)) is None:
                continue
            self.running.remove(run)
            run.ended(code)
            self.open[run.stage] -= 1
            self.halted |= run.status == "stopped"  # by a signal it is ended elsewhere


class Notebook(threading.Thread):
    """A run on its way: papermill in this thread, its kernel in a process. `status`: None until it has ended."""

    def __init__(self, run, forked):
        super().__init__(daemon=True)
        self.execution, self.forked, self.kernel, self.status = run, forked, None, None
        told = {"PROGRESS": "progress.json", "WRITTEN": "written.txt", "READ": "read.txt"}
        env = os.environ | {f"SELFEVAL_{name}": str(run.folder / file) for name, file in told.items()}
        env |= {"TQDM_DISABLE": "1", "SELFEVAL_DATA": str(DATA)} | run.variables
        self.options = {"env": env, "cwd": HOME}

    def run(self):
        """Execute the notebook; the log ends with what went wrong."""
        folder, manager, status = self.execution.folder, type("Manager", (KernelManager,), {"owner": self}), 1
        with contextlib.suppress(OSError), (folder / "log.txt").open("w", encoding="utf-8") as log:  # of a full disk
            self.options |= {"stdout": log, "stderr": log}
            try:
                import papermill  # takes seconds

                papermill.execute_notebook(
                    *(self.execution.notebook, folder / "notebook.ipynb", self.execution.parameters),
                    engine_name="forked", kernel_name="python3", progress_bar=False, kernel_manager_class=manager,
                )  # fmt: skip
                status = 0
            except Exception as error:  # papermill, Jupyter and the system raise many kinds
                log.write(f"{error}\n{type(error).__name__}: {error}\n")
        self.status = status

    def signal(self, number):
        """Signal the kernel and what it started, if it is there."""
        if pid := self.kernel and self.kernel.provisioner and self.kernel.provisioner.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)


class Notebooks:
    """A launcher of runs on this machine. forked: whether from one process that has the imports done."""

    def __init__(self, forked):
        self.forked, self.threads = forked, {}

    def places(self):
        """Return how many notebooks run at a time."""
        return 2

    def start(self, run):
        """Start a run and return at once."""
        self.threads[run.name] = Notebook(run, self.forked)
        self.threads[run.name].start()

    def poll(self, run):
        """Return 0 for a notebook that ended well and 1 for another, None while it is at work."""
        return self.threads[run.name].status

    def end(self, runs):
        """End the kernels of these runs, with what they started, and wait for their papermill.

        What a notebook started in a session of its own, like the shared server of the embedded model, stays.
        """
        left, began = [self.threads[run.name] for run in runs], time.monotonic()
        while (left := [thread for thread in left if thread.is_alive()]) and time.monotonic() < began + 4 * GRACE:
            for thread in left:  # again and again: a kernel may only now have come up
                thread.signal(signal.SIGTERM if time.monotonic() < began + GRACE else signal.SIGKILL)
            time.sleep(0.05)

    def close(self):
        """Free what the launcher holds: nothing; the fork server is ready for the next sweep of this process."""


@contextlib.contextmanager
def lock(folder):
    """Hold the sweep's folder; the kernels of a sweep that was killed end within a second."""
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{relative(folder)}: another sweep is at work there; wait for its end") from None
        yield


@contextlib.contextmanager
def signals():
    """Collect Ctrl-C, TERM and a closed terminal in a list instead of breaking off at any line."""
    stop, before = [], {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) not in (signal.SIG_IGN, None):  # nohup stays nohup
            before[number] = signal.signal(number, lambda number, frame: stop.append(number))
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
