"""The kernel of a run: nobody else reaches it, it ends with its run, and nothing is left behind."""

import stat
import subprocess
import sys
from pathlib import Path

import psutil
from conftest import wait_for
from sweep_files import make_notebook, write

SLEEP = """import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid} ")
time.sleep(3600)"""  # longer than a test may take: what is to end has to be ended


def at_work(folder):
    """Return the kernel's process and that of its child, once both are there."""

    def pids():
        file = folder / "pids"
        return file.exists() and file.read_text().endswith(" ") and file.read_text().split()

    return [psutil.Process(int(pid)) for pid in wait_for(pids)]


def test_no_other_user_reaches_a_kernel_and_it_ends_with_its_children_when_the_sweep_is_stopped(tmp_path):
    make_notebook(tmp_path / "long.ipynb", SLEEP)
    path = write(tmp_path, {"notebook": "long"})
    command = [sys.executable, "-c", "from selfeval.cli import main; main()", "sweep", path, "--out", "out"]
    sweep = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    family = at_work(tmp_path)
    sockets = {Path(name) for name in {each.laddr for each in family[0].net_connections("unix")} - {""}}
    listening = [each for each in family[0].net_connections("inet") if each.status == psutil.CONN_LISTEN]
    assert len(sockets) == 5
    assert len(listening) <= 1, "what forked children print comes in there, with a secret word"
    [folder] = {socket.parent for socket in sockets}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    sweep.terminate()
    assert sweep.wait() == 130
    assert psutil.wait_procs(family, timeout=60)[1] == []
    assert not folder.exists(), "nothing is left behind"
