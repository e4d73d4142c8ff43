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
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.popen_forkserver import Popen
from multiprocessing.util import Finalize, close_fds
from pathlib import Path
from uuid import uuid4

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

# What the notebooks use. None of them opens a thread, a loop or a connection when it is imported.
WARM = """ipykernel.kernelapp ipykernel.ipkernel zmq.asyncio numpy pandas scipy.stats matplotlib.pyplot seaborn
sklearn.linear_model sklearn.feature_extraction.text openai aiohttp yaml dotenv""".split()
FRESH = ("selfeval", "tqdm")  # imported anew: edited between runs; chooses its bar by where it is imported
OURS = [sys.executable, "-m", "ipykernel_launcher"]  # no other environment's, and no other language's
INLINE = "module://matplotlib_inline.backend_inline"
FORKS = sys.platform == "linux"  # elsewhere system libraries do not survive a fork


class KernelManager(AsyncKernelManager):
    """A manager of one kernel, which talks over Unix sockets: another program may take a TCP port before it is bound.

    forked: whether the kernel is forked where that is possible. options: of its process (`env`, `cwd`, `stdout`,
    `stderr`) as `subprocess.Popen` takes them. stopped: tells whether the kernel is to end.
    """

    forked, options, stopped = True, None, staticmethod(bool)

    def __init__(self, **traits):
        if FORKS:  # in Linux's abstract namespace: no file to leave behind
            traits |= {"transport": "ipc", "ip": f"@selfeval-{uuid4().hex}"}
        super().__init__(**traits)

    async def _async_pre_start_kernel(self, **kw):
        if self.options:
            kw |= self.options
            self.kernel_spec.argv[0] = sys.executable  # whatever environment the kernel `python3` is registered for
        if FORKS and self.forked and self.format_kernel_cmd()[:3] == OURS:
            self.provisioner = ForkedProvisioner(kernel_spec=self.kernel_spec, parent=self)
        return await super()._async_pre_start_kernel(**kw)

    async def _async_is_alive(self):
        """Tell whether the kernel runs, which is asked every second; where it is to end, end it with what it started.

        What a notebook started in a session of its own, like the shared server of the embedded model, stays.
        """
        if self.stopped():
            await self._async_signal_kernel(signal.SIGKILL)
        return await super()._async_is_alive()


class ForkedProvisioner(LocalProvisioner):
    """Jupyter's own way to a kernel on this machine, but for how its process is made and signalled."""

    async def launch_kernel(self, cmd, env=None, cwd=None, stdout=None, stderr=None, **_):
        """Fork the kernel; return how to connect to it."""
        files = [file.fileno() for file in (stdout or sys.__stdout__, stderr or sys.__stderr__)]
        self.process = Forked(Kernel(cmd, str(cwd or Path.cwd()), env, files))
        self.pid = self.pgid = self.process.pid
        return self.connection_info

    async def send_signal(self, signum):
        """Signal the kernel and what it started; nobody, and above all not the caller, where that is gone.

        jupyter_client interrupts a kernel before it asks it to end, which may strike while the last reply is sent.
        """
        if signum != signal.SIGINT:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signum)


class Forked(Popen):
    """A forked kernel, with what jupyter_client needs of `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def _launch(self, kernel: "Kernel") -> None:
        forkserver.set_forkserver_preload([*WARM, __name__])
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the server inherits it: Ctrl-C is ours
        try:
            self.sentinel, held = forkserver.connect_to_new_process(kernel.files)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.finalizer = Finalize(self, close_fds, (self.sentinel, held))  # the kernel ends when `held` is closed
        with open(held, "wb", closefd=False) as child:
            child.write(pickle.dumps({}) + pickle.dumps(kernel))  # {}: nothing of our __main__, which it would import
        self.pid = forkserver.read_signed(self.sentinel)


@dataclass
class Kernel:
    """What the fork server's child turns into."""

    command: list[str]
    cwd: str
    env: dict
    files: list[int]  # what becomes its stdout and stderr

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
