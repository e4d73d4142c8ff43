"""Kernels that have imported the libraries before they are asked for, so that a test waits two seconds less for each.

`start` begins a process that imports what notebooks import, except selfeval, and then forks a kernel whenever
`python3` is started with its folder on `JUPYTER_PATH`. What Jupyter starts, and kills, is a small process (`connect`)
that hands over its files, environment and folder and lives as long as the kernel; each ends with the other. Tests of
processes themselves, and the notebooks that nbval executes, have Jupyter's own kernels.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

ORDINARY = ("-m", "ipykernel_launcher")
INLINE = "module://matplotlib_inline.backend_inline"
MOST = 1 << 20  # bytes of a message


def start(folder):
    """Start the process that forks kernels, which ends with its stdin; `folder`/jupyter is for `JUPYTER_PATH`."""
    address = f"{folder}/kernels.sock"
    spec = Path(folder) / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-S", "-E", __file__, address, sys.executable, "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    command = [sys.executable, __file__, "serve", str(listener.fileno())]
    environment = os.environ | {"MPLBACKEND": INLINE}
    files = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "pass_fds": [listener.fileno()]}
    process = subprocess.Popen(command, env=environment, start_new_session=True, **files)
    listener.close()
    return process


# the small process


def connect(address, python, arguments):
    """Have a kernel forked, and live as long as it; in another environment become an ordinary kernel."""
    kernel = socket.socket(socket.AF_UNIX)
    try:
        if Path(python).parent != Path(sys.executable).parent:
            raise OSError("another environment")
        kernel.connect(address)
    except OSError:
        os.execv(sys.executable, [sys.executable, *ORDINARY, *arguments])
    signal.signal(signal.SIGINT, lambda *_: kernel.send(b"i"))
    asked = json.dumps([arguments, dict(os.environ), str(Path.cwd())]).encode()
    socket.send_fds(kernel, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    kernel.sendall(asked)
    for file in (0, 1, 2):  # whoever reads what the kernel prints waits for the kernel
        os.close(file)
    kernel.recv(1)  # nothing, at its end


# the process that forks


def serve(listener):
    """Fork a kernel for each connection, until stdin ends."""
    import importlib

    for name in ("ipykernel.kernelapp", "ipykernel.ipkernel", "openai", "pandas", "scipy.stats", "seaborn"):
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a kernel but its small process
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            begin(connection)
        connection.close()


def begin(connection):
    """Be the kernel of a connection."""
    size, files, _, _ = socket.recv_fds(connection, 4, 3)
    asked = b""
    while len(asked) < int.from_bytes(size, "big"):
        asked += connection.recv(MOST)
    arguments, environment, folder = json.loads(asked)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment, JPY_PARENT_PID=str(os.getppid()))
    os.chdir(folder)
    sys.path[:1] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = ["ipykernel_launcher", *arguments]
    threading.Thread(target=watch, args=[connection], daemon=True).start()

    import random

    import matplotlib
    import numpy as np
    from ipykernel import kernelapp

    random.seed()
    np.random.seed()
    matplotlib.rcParams["backend"] = environment.get("MPLBACKEND") or INLINE
    kernelapp.launch_new_instance()
    os._exit(0)


def watch(connection):
    """Pass on interrupts; end with all that this kernel started once its small process has ended."""
    while connection.recv(1):
        os.kill(os.getpid(), signal.SIGINT)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        connect(sys.argv[1], sys.argv[2], sys.argv[3:])
