"""The kernel of a run: nobody else reaches it, it ends with its run, and nothing is left behind."""

import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from conftest import wait_for
from sweep_files import make_notebook, write

from selfeval.sweep.execute import execute
from selfeval.sweep.runs import Run

LONG = "time.sleep(3600)"  # longer than a test may take: what is to end has to be ended
SLEEP = f"""import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; {LONG}"])
pathlib.Path("pids").write_text(f"{{os.getpid()}} {{child.pid}} ")"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A function that starts a notebook of these cells as a sweep does; it returns its future and what can end it."""
    monkeypatch.chdir(tmp_path)
    stops, pool = [], ThreadPoolExecutor(3)

    def start(*cells):
        make_notebook(tmp_path / "long.ipynb", *cells)
        stops.append(stop := threading.Event())
        run = Run("", tmp_path / "long.ipynb", tmp_path / "long", {})
        return pool.submit(execute, run, {}, stop.is_set), stop.set

    yield start
    for stop in stops:
        stop.set()
    pool.shutdown()


def at_work(folder):
    """Return the kernel's process and that of its child, once both are there."""

    def pids():
        file = folder / "pids"
        return file.exists() and file.read_text().endswith(" ") and file.read_text().split()

    return [psutil.Process(int(pid)) for pid in wait_for(pids)]


def sockets_of(process):
    """Return the Unix sockets that have a name, and those of the network that listen."""
    named = {connection.laddr for connection in process.net_connections("unix")} - {""}
    listening = [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
    return {Path(name) for name in named}, listening


def test_no_other_user_of_the_host_reaches_a_kernel(start, tmp_path):
    future, end = start(SLEEP, LONG)
    kernel, _ = at_work(tmp_path)
    sockets, listening = sockets_of(kernel)
    assert len(sockets) == 5
    assert len(listening) <= 1, "what forked children print comes in there, with a secret word"
    [folder] = {socket.parent for socket in sockets}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and folder.parent == Path(tempfile.gettempdir())
    end()
    future.result()
    assert not folder.exists(), "nothing is left behind"


def test_a_kernel_and_its_children_end_with_their_run(start, tmp_path):
    future, end = start(SLEEP, LONG)
    family = at_work(tmp_path)
    end()
    psutil.wait_procs(family)
    assert future.result()["status"] == "failed"


def test_a_kernel_ends_with_a_sweep_that_is_killed(tmp_path):
    make_notebook(tmp_path / "long.ipynb", SLEEP, LONG)
    path = write(tmp_path, {"notebook": "long"})
    command = [sys.executable, "-c", "from selfeval.cli import main; main()", "sweep", path, "--out", "out"]
    sweep = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    kernel, child = at_work(tmp_path)
    sweep.kill()
    sweep.wait()
    psutil.wait_procs([kernel])
    child.kill()  # what a notebook started outlives it then
    assert not kernel.is_running()
