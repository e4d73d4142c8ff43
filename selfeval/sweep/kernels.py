"""A warm process: it has the heavy imports done and forks each program from there, so that a small run need not wait.

    with WarmProcess() as warm:
        process = start(warm.address, [sys.executable, "-m", "ipykernel_launcher", "-f", file], cwd, env, files)
        process.wait()

Every program gets a fresh process in a session of its own, with the working directory, the environment and the open
files of its request, new random states, and modules that nobody has used. The warm process has no thread, event loop,
socket or database of its own but the one that takes requests. It ends, with all that it forked, when whoever made it
ends in whatever way; what it forked ends when it dies (Linux, PR_SET_PDEATHSIG), or when whoever asked for it dies.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

# What the notebooks use. None of them opens a thread, a loop or a connection when it is imported.
KERNEL = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "zmq.asyncio", "numpy", "pandas", "scipy.stats", "matplotlib.pyplot",
    "seaborn", "sklearn.linear_model", "sklearn.feature_extraction.text", "openai", "aiohttp", "yaml", "dotenv",
)  # fmt: skip
PAPERMILL = ("papermill.cli", "nbclient", "nbformat", "jupyter_client.asynchronous", "selfeval.sweep.engine")
FRESH = ("selfeval", "tqdm")  # imported anew: edited between runs; chooses its bar by where it is imported
FOREVER = float("inf")
GRACE = 3.0  # seconds between TERM and KILL
INLINE = "module://matplotlib_inline.backend_inline"


def obstacle() -> str | None:
    """Return why processes cannot be forked here, None where they can."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return f"forking from a warm process needs Linux, this is {sys.platform}"
    return None


# The side that asks


class WarmProcess:
    """A warm process of the caller, in the working directory and environment that its programs mostly have.

    modules: what it imports before it takes the first request.
    """

    def __init__(self, modules: tuple[str, ...] = KERNEL, cwd: Path | None = None, env: dict | None = None):
        name = f"selfeval-{secrets.token_hex(16)}"  # in Linux's abstract namespace: no file to leave behind
        self._owner, owner = socket.socketpair()
        with owner, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0{name}")
            listener.listen(256)
            code = f"from selfeval.sweep.kernels import _main; _main({owner.fileno()}, {listener.fileno()}, {modules})"
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], cwd=cwd, env=env, start_new_session=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, pass_fds=(owner.fileno(), listener.fileno()),
            )  # fmt: skip
        self.address = name

    def close(self) -> None:
        """End the warm process and everything that it forked."""
        self._owner.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE / 2)
        self.process.kill()  # it imports, or what it forked does not listen to TERM
        self.process.wait()

    def __enter__(self) -> "WarmProcess":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def start(address: str, command: list[str], cwd: Path | str, env: dict, files: list[int]) -> "Forked":
    """Have `python -m module arguments` run in a process forked from the warm one at this address; return at once.

    files: descriptors for stdin, stdout and stderr, and others to keep open. Raises `OSError` where nobody takes it.
    """
    if command[1] != "-m":
        raise OSError(f"a warm process runs `python -m MODULE`, not {command[1]!r}")
    job = {"argv": command[2:], "command": command, "cwd": str(cwd), "env": dict(env)}
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"\0{address}")
        socket.send_fds(connection, [b"\n"], files)
        connection.sendall(json.dumps(job).encode() + b"\n")
    except BaseException:
        connection.close()
        raise
    return Forked(connection)


class Forked:
    """A program that a warm process forks, with the methods of `subprocess.Popen`; it ends when this is dropped.

    `pid` is None until it has started.
    """

    stdin = stdout = stderr = None

    def __init__(self, connection: socket.socket):
        self.pid, self.returncode, self._connection, self._rest = None, None, connection, b""

    def _read(self, flags: int) -> None:
        try:
            data = self._connection.recv(64, flags)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for word, number in map(bytes.split, lines):
            if word == b"pid":
                self.pid = int(number)
            else:
                self.returncode = int(number)
        if not data and self.returncode is None:  # the warm process is dead, and with it what it forked
            self.returncode = -signal.SIGKILL
        if self.returncode is not None:
            self._connection.close()

    def started(self) -> "Forked":
        """Wait until the program runs; raise `OSError` where it does not come to that."""
        while self.pid is None and self.returncode is None:
            self._read(0)
        if self.pid is None:
            raise OSError("the warm process did not start it")
        return self

    def poll(self) -> int | None:
        """Return the exit status, None while the program runs or waits for its start."""
        if self.returncode is None:
            self._read(socket.MSG_DONTWAIT)
        return self.returncode

    def drop(self) -> None:
        """Ask for the program no longer: it is not started, or ended."""
        self._connection.close()
        self.returncode = -signal.SIGTERM if self.returncode is None else self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status."""
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            select.select([self._connection], [], [], None if timeout is None else max(0, end - time.monotonic()))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, if it still runs."""
        if self.poll() is None and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the program to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program."""
        self.send_signal(signal.SIGKILL)


# The warm process


@dataclass
class _Child:
    pid: int
    pidfd: int
    connection: socket.socket
    end: float = FOREVER  # when it is killed, once it was asked to end


def _main(owner: int, listener: int, modules: tuple[str, ...]) -> None:
    """Serve until the owner is gone; in a forked child, become the program that was asked for."""
    if sys.path[0] == "":
        del sys.path[0]
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel reads it when imported, and watches its parent
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if threading.active_count() > 1:  # OpenBLAS alone ends its own threads before a fork and starts them after it
        sys.exit(f"selfeval: an import started a thread: {threading.enumerate()}; nothing is forked from there")
    gc.collect()
    gc.freeze()  # the children share these objects' memory as long as nobody counts through them
    job = _serve(socket.socket(fileno=owner), socket.socket(fileno=listener))
    if job:
        runpy.run_module(job["argv"][0], run_name="__main__", alter_sys=True)


def _serve(owner: socket.socket, listener: socket.socket) -> dict | None:
    """Fork what is asked for and tell who asked how it ended; return the job in a child, None when all is over."""
    children, parent = [], os.getpid()
    while owner or children:
        watched = [*filter(None, (owner, listener))]
        watched += [child.pidfd for child in children]
        watched += [child.connection for child in children if child.end == FOREVER]
        ready = select.select(watched, [], [], 0.1 if any(child.end < FOREVER for child in children) else None)[0]
        if owner in ready:  # it never writes: this is its end
            owner.close()
            listener.close()
            owner = listener = None
        elif listener in ready and (taken := _take(listener)):
            job, files, connection = taken
            pid = os.fork()
            if pid == 0:
                for each in (owner, listener, *(child.connection for child in children)):
                    each.close()
                for child in children:
                    os.close(child.pidfd)
                return _become(job, files, connection, parent)
            children.append(_Child(pid, os.pidfd_open(pid), connection))
            for fd in files:
                os.close(fd)
        for child in [*children]:
            if child.pidfd in ready:
                if child.end < FOREVER:
                    _signal_session(child.pid, signal.SIGKILL)  # before its number is free for another
                _, status = os.waitpid(child.pid, 0)
                with contextlib.suppress(OSError):
                    child.connection.sendall(f"exit {os.waitstatus_to_exitcode(status)}\n".encode())
                child.connection.close()
                os.close(child.pidfd)
                children.remove(child)
            elif child.end == FOREVER and (owner is None or child.connection in ready):  # nobody waits for it any more
                child.end = time.monotonic() + GRACE
                _signal_session(child.pid, signal.SIGTERM)
            elif child.end < time.monotonic():
                _signal_session(child.pid, signal.SIGKILL)
    return None


def _take(listener: socket.socket) -> tuple[dict, list[int], socket.socket] | None:
    """Return a job, its files and where to answer; None where another user asks, or who asked is gone."""
    connection, _ = listener.accept()
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    files = []
    try:
        if user == os.getuid():
            connection.settimeout(5)
            data, files, *_ = socket.recv_fds(connection, 1, 16)
            while len(data) < 2 or not data.endswith(b"\n"):
                more = connection.recv(1 << 20)
                if not more:
                    raise ConnectionError("the request is cut off")
                data += more
            connection.settimeout(None)
            return json.loads(data), files, connection
    except (OSError, ValueError):
        for fd in files:
            os.close(fd)
    connection.close()
    return None


def _signal_session(leader: int, number: int) -> None:
    """Send a signal to a child and all other processes of its session."""
    for name in os.listdir("/proc"):  # noqa: PTH208
        with contextlib.suppress(ValueError, ProcessLookupError, PermissionError):
            if os.getsid(int(name)) == leader:
                os.kill(int(name), number)


def _become(job: dict, files: list[int], connection: socket.socket, parent: int) -> dict:
    """Make this forked child what `python -m` would have made, and tell its process id to who asked."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # died before that
        os._exit(1)
    os.setsid()  # before anybody knows it: a signal to its group must not meet another
    for target, fd in enumerate(files[:3]):
        os.dup2(fd, target)
        os.close(fd)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.argv, sys.orig_argv = job["argv"][:], job["command"]
    sys.path.insert(0, job["cwd"])
    for name in [*sys.modules]:
        if name.partition(".")[0] in FRESH:
            del sys.modules[name]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # `random` does this by itself after a fork
    if "matplotlib" in sys.modules and job["argv"][0] == "ipykernel_launcher":  # which it else learns when imported
        sys.modules["matplotlib"].rcParams["backend"] = os.environ.get("MPLBACKEND") or INLINE
    connection.sendall(f"pid {os.getpid()}\n".encode())
    connection.close()
    return job
