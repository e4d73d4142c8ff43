"""Execute a sweep: start what is to do once what it needs has ended, and stop cleanly."""

import contextlib
import fcntl
import os
import signal
import time
import uuid
from collections import Counter, deque
from datetime import UTC, datetime

import yaml

from selfeval.errors import InputError, check_at_least, check_whole
from selfeval.sweep import manifest, todo
from selfeval.sweep.launch import LocalProcesses
from selfeval.sweep.outcome import finish
from selfeval.sweep.runs import SETTLED, USABLE
from selfeval.sweep.show import Line, relative, report

FAILED, INCOMPLETE, CEILING = 1, 3, 4  # exit statuses; 2 is click's, for a command line that it does not understand


def run(sweep, workers=2, launcher=LocalProcesses, *, only=(), retry_failed=False, fail_fast=False, max_cost=None):
    """Execute what is missing, `workers` notebooks at a time, and return the exit status.

    0: all ok. 1: a run failed or could not start. 3: calls failed, in runs that ended. 4: `max_cost`, in US dollars, is
    reached. 128 + n: stopped by signal n. launcher: a function of the lock's file descriptor that returns a
    `launch.Launcher`. only, retry_failed, fail_fast: as in `selfeval sweep --help`.
    """
    check_whole("workers", workers, 1)
    if max_cost is not None:
        check_at_least("max_cost", max_cost, 0)
    chosen = todo.choose(sweep, only, retry_failed)
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{sweep.folder}: cannot make the folder for the outputs: {error.strerror}") from None
    began = time.monotonic()
    with lock(sweep.folder) as held, contextlib.closing(launcher(held.fileno())) as launch, signals() as stop:
        work = Work(sweep, launch, chosen, fail_fast, Budget(max_cost))
        execute(work, workers, stop, Line(sweep, workers, work.budget))
    report(sweep, time.monotonic() - began, stop, work.budget)
    return exit_status(sweep, stop, work.budget)


def exit_status(sweep, stop, budget):
    """Return the exit status of an executed sweep."""
    statuses = {run.status for run in sweep.runs}
    if stop:
        return 128 + stop[0]
    if budget.reached:
        return CEILING
    if statuses & {"failed", "not started", "stopped", "waiting"}:
        return FAILED
    return INCOMPLETE if "incomplete" in statuses else 0


class Budget:
    """What all runs of one call of the command may cost together: a purse that every client in them takes from."""

    def __init__(self, ceiling=None):
        self.ceiling, self.reached, self.unpriced = ceiling, False, False
        self.name = f"sweep-{os.getpid()}-{uuid.uuid4().hex[:8]}"

    @property
    def variables(self):
        """Return the environment by which clients know it."""
        return {} if self.ceiling is None else {"SELFEVAL_BUDGET": f"{self.name}:{self.ceiling}"}


class Work:
    """The runs of a sweep on their way: waiting for earlier stages, ready for a place, running."""

    def __init__(self, sweep, launch, chosen, fail_fast=False, budget=None):
        self.sweep, self.launch, self.chosen, self.fail_fast = sweep, launch, chosen, fail_fast
        self.budget = budget or Budget()
        self.versions = manifest.versions()
        self.halted = ""  # why nothing more is started
        self.ready, self.running = deque(), []
        self.open = Counter(run.stage for run in sweep.runs)  # runs of a stage that have not settled
        self.groups = {}  # runs that wait for the same stages
        for run in sweep.runs:
            self.groups.setdefault((run.stage, run.needs), []).append(run)
        self.advance()

    def advance(self):
        """Make the runs ready whose earlier stages have settled, or say why they are not started; stages in order."""
        for key in [*self.groups]:
            _, needs = key
            if any(self.open[stage] for stage in needs):
                continue
            before = {stage.name: stage.runs for stage in self.sweep.stages if stage.name in needs}
            inputs = {name: todo.digest_of(runs) for name, runs in before.items()}
            lost = next((run for runs in before.values() for run in runs if run.status not in USABLE), None)
            for run in self.groups.pop(key):
                self.decide(run, lost, inputs)

    def decide(self, run, lost, inputs):
        """Settle a run that is not executed, and line up one that is."""
        todo.prepare(run, self.versions, inputs)
        if lost and run.name in self.chosen:
            why = f"is left out and to do ({lost.reason})" if lost.status == "left out" else lost.status
            self.settle(run, "not started", f"not started because {lost.name} {why}")
        elif run.status == "skipped":
            self.settle(run, "skipped")
        elif run.name not in self.chosen:
            self.settle(run, "left out")
        else:
            self.ready.append(run)

    def settle(self, run, status, cause=""):
        """Note that a run is at its end."""
        run.status, run.cause = status, cause
        self.open[run.stage] -= 1

    def start_next(self):
        """Start the run that is ready longest."""
        run = self.ready.popleft()
        run.clock, run.variables = time.monotonic(), run.variables | self.budget.variables
        run.manifest |= {"status": "running", "started": datetime.now(UTC).isoformat()}
        run.status = "running"
        try:
            run.folder.mkdir(parents=True, exist_ok=True)
            for name in ("progress.json", "written.txt", "read.txt"):
                (run.folder / name).unlink(missing_ok=True)
            manifest.write_whole(run.folder / "parameters.yaml", yaml.safe_dump(run.parameters, sort_keys=False))
            manifest.write_manifest(run)
            self.launch.start(run)
        except OSError as error:
            run.manifest |= {"status": "failed", "counts": dict.fromkeys(manifest.COUNTS, 0)}
            self.ended(run, "failed", f"cannot start in {relative(run.folder)}: {error.strerror}")
        else:
            self.running.append(run)

    def look(self):
        """Settle the runs that have ended."""
        for run in [*self.running]:
            if (code := self.launch.poll(run)) is not None:
                self.running.remove(run)
                finish(run, code)
                self.ended(run, run.status, run.cause)

    def ended(self, run, status, cause):
        """Settle an executed run and what follows from its end for the others."""
        self.settle(run, status, cause)
        if status == "stopped":  # by a signal it is ended elsewhere
            self.budget.reached, self.halted = True, "the cost ceiling is reached"
            self.budget.unpriced |= cause.startswith("PriceError: ")  # another ceiling is no remedy
        elif status == "failed" and self.fail_fast:
            self.halted = f"{run.name} failed, and --fail-fast is on"
        self.advance()

    def halt(self):
        """Start nothing more."""
        for run in [*self.ready, *(run for runs in self.groups.values() for run in runs)]:
            if run.name in self.chosen:
                self.settle(run, "not started", f"not started because {self.halted}")
            else:
                self.settle(run, "left out")
        self.ready.clear()
        self.groups.clear()

    def end(self, why):
        """End what is running."""
        self.launch.end(self.running)
        for run in self.running:
            finish(run, broken_off=why)
            self.settle(run, run.status, run.cause)
        self.running.clear()


def execute(work, workers, stop, line):
    """Run everything to its end, or until `stop` holds a signal."""
    try:
        while (work.ready or work.running) and not stop:
            while work.ready and len(work.running) < workers and not work.halted:
                work.start_next()
            work.look()
            if work.halted:
                work.halt()
            line.show()
            time.sleep(0.1)
    finally:
        work.end(f"interrupted by {signal.Signals(stop[0]).name if stop else 'an error'}")
        line.close()
    assert stop or all(run.status in SETTLED for run in work.sweep.runs)


@contextlib.contextmanager
def lock(folder):
    """Hold the sweep's folder; children inherit the lock, so the runs of a killed sweep keep it until they end."""
    with (folder / "lock").open("a+") as file:
        end = time.monotonic() + 10
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise InputError(f"{relative(folder)}: another sweep is at work there; wait for its end") from None
                time.sleep(0.2)
        yield file


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
