"""How a run is started, watched and ended: here, as a process of this machine.

Another way (a cluster, say) is another class with the methods of `Launcher`; `execute.run` takes what makes one.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Protocol

from selfeval import ROOT
from selfeval.sweep.runs import Run

GRACE = 3.0  # seconds that a child has to end by itself after a signal


class Launcher(Protocol):
    """Starts papermill for runs. Before `start` the run's folder holds `parameters.yaml` and no old `progress.json`.

    `command(run)` is what is to be executed, in the working directory `ROOT`, with `variables(run)` added to the
    environment and its output in `run.folder / "log.txt"`. It reads and writes in `run.folder`; a launcher whose
    workers see another file system brings `progress.json` from time to time, and everything before `poll` tells the
    end. Runs are told apart by `run.name`.
    """

    def start(self, run: Run) -> None:
        """Start a run and return at once; raise `OSError` where that is not possible."""

    def poll(self, run: Run) -> int | None:
        """Return papermill's exit status, None while it is at work."""

    def end(self, runs: list[Run]) -> None:
        """End these runs with their kernels within five seconds."""

    def close(self) -> None:
        """Free what the launcher holds; all runs have ended."""


def command(run: Run) -> list[str]:
    """Return the command line that executes a run's notebook."""
    return [
        *(sys.executable, "-m", "papermill", str(run.notebook), str(run.folder / "notebook.ipynb")),
        *("-f", str(run.folder / "parameters.yaml"), "-k", "python3", "--no-progress-bar"),
    ]


def variables(run: Run) -> dict[str, str]:
    """Return the environment variables by which the package inside the notebook knows its run."""
    files = {"PROGRESS": "progress.json", "WRITTEN": "written.txt", "READ": "read.txt"}
    noted = {f"SELFEVAL_{name}": str(run.folder / file) for name, file in files.items()}
    return {"TQDM_DISABLE": "1"} | noted | run.variables


class LocalProcesses:
    """Papermill as a child process per run. keep: a file descriptor that children inherit, the sweep's lock."""

    def __init__(self, keep: int):
        self.keep, self.processes = keep, {}

    def start(self, run: Run) -> None:
        """Start a run and return at once; raise `OSError` where that is not possible."""
        with (run.folder / "log.txt").open("wb") as log:
            self.processes[run.name] = subprocess.Popen(
                command(run), cwd=ROOT, env=os.environ | variables(run), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, pass_fds=(self.keep,), preexec_fn=_die_with_parent(),
            )  # fmt: skip

    def poll(self, run: Run) -> int | None:
        """Return papermill's exit status, None while it is at work."""
        return self.processes[run.name].poll()

    def end(self, runs: list[Run]) -> None:
        """End processes: TERM, then KILL for papermill and its kernel, with what shares their sessions.

        What a notebook started in a session of its own, like the shared server of the embedded model, stays.
        """
        import psutil

        processes, family = [self.processes[run.name] for run in runs], set()
        for process in processes:
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                parent = psutil.Process(process.pid)
                sessions = {os.getsid(each.pid) for each in (parent, *parent.children())}
                family.update(each for each in parent.children(recursive=True) if os.getsid(each.pid) in sessions)
                parent.terminate()
        family.update(process.pid for process in processes)
        end = time.monotonic() + GRACE
        while time.monotonic() < end and any(process.poll() is None for process in processes):
            time.sleep(0.05)
        for each in family:
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                os.kill(each, signal.SIGKILL) if isinstance(each, int) else each.kill()
        for process in processes:
            process.wait()

    def close(self) -> None:
        """Free what the launcher holds; all runs have ended."""


def _die_with_parent():
    """Return what makes a child on Linux get TERM when this process is killed outright."""
    if sys.platform != "linux":
        return None
    import ctypes

    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
