"""Fresh kernels in a blink: forked from a process that has the heavy imports done (Linux).

The process is `multiprocessing`'s fork server. Every kernel is a process and session of its own, with the working
directory, environment and open files it was asked for, new random states, and modules that nobody has used. It ends,
with what it started, when the process that asked for it ends in any way.
"""

import atexit
import contextlib
import os
import pickle
import runpy
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import connection, forkserver
from pathlib import Path
from uuid import uuid4

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

# What the notebooks use. None of them opens a thread, a loop or a connection when it is imported.
WARM = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "zmq.asyncio", "numpy", "pandas", "scipy.stats", "matplotlib.pyplot",
    "seaborn", "sklearn.linear_model", "sklearn.feature_extraction.text", "openai", "aiohttp", "yaml", "dotenv",
)  # fmt: skip
FRESH = ("selfeval", "tqdm")  # imported anew: edited between runs; chooses its bar by where it is imported
OURS = [sys.executable, "-m", "ipykernel_launcher"]  # no other environment's, and no other language's
INLINE = "module://matplotlib_inline.backend_inline"
GRACE = 1.0  # seconds between TERM and KILL
FORKS = sys.platform == "linux"  # elsewhere system libraries do not survive a fork


class KernelManager(AsyncKernelManager):
    """A manager of one kernel, which talks over Unix sockets: another program may take a TCP port before it is bound.

    forked: whether the kernel is forked where that is possible. options: of its process (`env`, `cwd`, `stdout`,
    `stderr`) as `subprocess.Popen` takes them. started: a list that gets this manager.
    """

    forked, options, started = True, None, None

    def __init__(self, **traits):
        if FORKS:  # in Linux's abstract namespace: no file to leave behind
            traits |= {"transport": "ipc", "ip": f"@selfeval-{uuid4().hex}"}
        super().__init__(**traits)

    async def _async_pre_start_kernel(self, **kw):
        if self.options:
            kw |= self.options
            self.started.append(self)
            self.kernel_spec.argv[0] = sys.executable  # whatever environment the kernel `python3` is registered for
        if FORKS and self.forked and self.format_kernel_cmd()[:3] == OURS:
            self.provisioner = ForkedProvisioner(kernel_spec=self.kernel_spec, parent=self)
        return await super()._async_pre_start_kernel(**kw)


def end_when(stopped: Callable[[], bool], ended: threading.Event, managers: list[KernelManager]) -> None:
    """End kernels, with what they started, as soon as `stopped()` is true; return when `ended` is set.

    What a notebook started in a session of its own, like the shared server of the embedded model, stays.
    """
    since = None
    while not ended.wait(0.1):
        if not stopped():
            continue
        since = since or time.monotonic()
        for manager in managers:  # again and again: a kernel may only now have come up
            if pid := manager.provisioner and manager.provisioner.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGTERM if time.monotonic() < since + GRACE else signal.SIGKILL)


class ForkedProvisioner(LocalProvisioner):
    """Jupyter's own way to a kernel on this machine, but for how its process is made and signalled."""

    async def launch_kernel(self, cmd, env=None, cwd=None, stdout=None, stderr=None, **_):
        """Fork the kernel; return how to connect to it."""
        self.cwd = Path(cwd or Path.cwd())
        files = (stdout or sys.__stdout__, stderr or sys.__stderr__)
        self.process = Forked(Kernel(cmd, str(self.cwd), env), [file.fileno() for file in files])
        self.pid = self.pgid = self.process.pid
        return self.connection_info

    async def send_signal(self, signum):
        """Signal the kernel and what it started; nobody, and above all not the caller, where that is gone.

        jupyter_client interrupts a kernel before it asks it to end, which may strike while the last reply is sent.
        """
        if signum != signal.SIGINT:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signum)


class Forked:
    """A forked kernel, with what jupyter_client needs of `subprocess.Popen`. files: descriptors it gets."""

    stdin = stdout = stderr = returncode = None

    def __init__(self, kernel: "Kernel", files: list[int]):
        forkserver.set_forkserver_preload([*WARM, __name__])
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the server inherits it: Ctrl-C is ours
        try:
            self._read, self._held = forkserver.connect_to_new_process(files)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        with open(self._held, "wb", closefd=False) as child:
            child.write(pickle.dumps({}) + pickle.dumps(kernel))  # {}: nothing of our __main__, which it would import
        self.pid = forkserver.read_signed(self._read)

    def poll(self) -> int | None:
        """Return the exit status, None while the kernel runs."""
        if self.returncode is None and connection.wait([self._read], 0):
            try:
                self.returncode = forkserver.read_signed(self._read)
            except EOFError:  # the server was killed
                self.returncode = -signal.SIGKILL
            os.close(self._read)
            os.close(self._held)  # whatever is left of the kernel ends
        return self.returncode

    wait = poll  # called when it has ended


@dataclass
class Kernel:
    """What the fork server's child turns into."""

    command: list[str]
    cwd: str
    env: dict

    def _bootstrap(self, sentinel: int) -> int:  # the name by which the server calls it
        os.setsid()
        os.close(forkserver._forkserver._forkserver_alive_fd)  # else the server would wait for this process too
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        threading.Thread(target=_end_with, args=(sentinel,), daemon=True).start()
        for target, fd in enumerate(forkserver.get_inherited_fds(), 1):
            os.dup2(fd, target)
            os.close(fd)
        os.chdir(self.cwd)
        os.environ.clear()
        os.environ.update(self.env)
        sys.orig_argv = self.command
        sys.argv = [*self.command[2:], "--IPKernelApp.parent_handle=1"]  # `_end_with` watches
        for name in [name for name in sys.modules if name.partition(".")[0] in FRESH]:
            del sys.modules[name]
        tempfile.tempdir = None  # an import may have looked before
        sys.modules["numpy"].random.seed()  # `random` does this by itself after a fork
        sys.modules["matplotlib"].rcParams["backend"] = os.environ.get("MPLBACKEND") or INLINE
        try:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        finally:
            atexit._run_exitfuncs()  # the server leaves by `os._exit`
            sys.stdout.flush()
        return 0


def _end_with(sentinel: int) -> None:
    """End this session when the process that asked for it has ended."""
    select.select([sentinel], [], [])
    os.killpg(0, signal.SIGKILL)
