"""Runs as processes forked from one warm process: the papermill of each run, and from there its kernel."""

import functools
import os
import sys

from selfeval import ROOT
from selfeval.sweep import kernels
from selfeval.sweep.launch import LocalProcesses, command, variables
from selfeval.sweep.runs import Run


class ForkedProcesses(LocalProcesses):
    """Like `LocalProcesses`, without the start-up of Python and its imports in every run.

    The warm process is made for the first run and ends with the sweep, in whatever way that ends, and so do its runs.
    """

    def __init__(self, keep: int):
        super().__init__(keep)
        self.warm = None

    def start(self, run: Run) -> None:
        """Start a run and return at once; raise `OSError` where that is not possible."""
        if reason := kernels.obstacle():
            _say(reason)
            return super().start(run)
        if self.warm is None:
            self.warm = kernels.WarmProcess(kernels.PAPERMILL + kernels.KERNEL, ROOT)
        env = os.environ | variables(run) | {"SELFEVAL_WARM": self.warm.address}
        with (run.folder / "log.txt").open("wb") as log, open(os.devnull, "rb") as stdin:  # noqa: PTH123
            files = [stdin.fileno(), log.fileno(), log.fileno(), self.keep]
            try:
                process = kernels.start(self.warm.address, [*command(run), "--engine", "forked"], ROOT, env, files)
            except ConnectionError as error:
                _say(f"the warm process has ended ({error.strerror})")
                return super().start(run)
        self.processes[run.name] = process

    def poll(self, run: Run) -> int | None:
        """Return papermill's exit status, None while it is at work."""
        status = super().poll(run)
        if status is not None and self.processes[run.name].pid is None:
            _say("the warm process has ended")
            super().start(run)
            return None
        return status

    def end(self, runs: list[Run]) -> None:
        """End these runs with their kernels within five seconds."""
        for run in runs:
            if self.processes[run.name].pid is None:
                self.processes[run.name].drop()
        super().end([run for run in runs if self.processes[run.name].pid])

    def close(self) -> None:
        """End the warm process with whatever it forked."""
        if self.warm:
            self.warm.close()


@functools.cache
def _say(reason: str) -> None:
    print(f"selfeval: runs are started in the ordinary way: {reason}", file=sys.stderr, flush=True)
