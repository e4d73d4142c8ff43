"""Forked kernels: the results are the ordinary ones, nothing is shared, nothing is left behind."""

import json
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from conftest import PAPERMILL, wait_for
from sweep_files import make_notebook

from selfeval.sweep import kernels
from selfeval.sweep.execute import execute
from selfeval.sweep.file import Run

pytestmark = pytest.mark.skipif(not kernels.FORKS, reason="kernels are forked on Linux alone")
LONG = "time.sleep(3600)"  # longer than a test may take: what is to end has to be ended
SLEEP = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; {LONG}'])"
LEAVE = """import asyncio, gc, os, random, sqlite3, sys, threading
import matplotlib, numpy as np, pandas as pd, openai
from selfeval.asking.client import Client
sqlite3.left = sqlite3.connect(os.environ["IPYTHONDIR"] + ".left"); sqlite3.left.execute("CREATE TABLE t (x)")
pd.left = Client(); asyncio.left = asyncio.new_event_loop()
left = os.environ["LEFT"] = "left"; os.chdir("/"); sys.path.insert(0, "/left"); sys.left = 1
np.random.seed(1); random.seed(1); pd.options.display.max_rows = 7; matplotlib.use("pdf")
threading.Thread(target=threading.Event().wait, daemon=True).start()"""
LOOK = """import asyncio, gc, os, random, sqlite3, sys
import matplotlib, numpy as np, pandas as pd, openai
from selfeval.asking.client import Client
assert not any(hasattr(module, "left") for module in (sqlite3, pd, asyncio, sys)) and "left" not in globals()
assert "LEFT" not in os.environ and os.getcwd() != "/" and "/left" not in sys.path
assert pd.options.display.max_rows == 60 and "inline" in matplotlib.get_backend()
assert not [each for each in gc.get_objects() if isinstance(each, (openai.AsyncOpenAI, Client))]
links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
files = [os.readlink(link) for link in links if os.path.exists(link)]
print(*sorted(file for file in files if file.startswith("/") and not file.startswith("/dev")))
print(np.random.random(), random.random())"""


@pytest.fixture
def start(tmp_path):
    """A function that starts a notebook of these cells as a sweep does; it returns its future and what can end it."""
    stops, pool = [], ThreadPoolExecutor(3)

    def start(name, *cells, forked=True, **variables):
        make_notebook(tmp_path / f"{name}.ipynb", *cells)
        variables, stop = {"IPYTHONDIR": str(tmp_path / "ipython")} | variables, threading.Event()
        stops.append(stop)
        run = Run("", tmp_path / f"{name}.ipynb", tmp_path / name, {})
        return pool.submit(execute, run, variables, forked, stop.is_set), stop.set

    yield start
    for stop in stops:
        stop.set()
    pool.shutdown()


def status(folder, name, future):
    return future.result(60)["status"], (folder / name / "log.txt").read_text()


def result(file):
    """Return the output notebook without what differs between any two executions."""
    notebook = json.loads(file.read_text())
    notebook["metadata"]["papermill"] = sorted(notebook["metadata"]["papermill"])
    for cell in notebook["cells"]:
        cell |= {"id": "", "metadata": {key: sorted(value) for key, value in cell["metadata"].items()}}
    return notebook


def texts(file):
    return [line for cell in result(file)["cells"] for output in cell["outputs"] for line in output.get("text", ())]


def test_results_are_those_of_an_ordinary_kernel(start, tmp_path):
    cells = [
        "import sys\nimport matplotlib.pyplot as plt\nimport pandas as pd\nfrom tqdm.auto import tqdm",
        "print(tqdm.__module__, sys.argv[0][-21:], sys.path[0], __name__)\nprint('to stderr', file=sys.stderr)",
        "pd.DataFrame({'a': [1.5, 2], 'b': ['x', '<b>']})",
        "_ = plt.figure(figsize=(1, 1)).subplots().plot([1, 3, 2])",
        "await __import__('asyncio').sleep(0, 'awaited')",
    ]
    runs = {name: start(name, *cells, forked=name == "forked")[0] for name in ("ordinary", "forked")}
    assert [status(tmp_path, *each)[0] for each in runs.items()] == ["ok", "ok"]
    ordinary, forked = (result(tmp_path / name / "notebook.ipynb") for name in runs)
    assert "image/png" in forked["cells"][4]["outputs"][0]["data"]
    assert forked == ordinary


def test_nothing_of_one_run_reaches_another(start, tmp_path):
    assert status(tmp_path, "leave", start("leave", LEAVE)[0])[0] == "ok", (tmp_path / "leave" / "log.txt").read_text()
    for name in ("first", "second"):
        assert status(tmp_path, name, start(name, LOOK)[0])[0] == "ok"
    (files, draws), (_, others) = (texts(tmp_path / name / "notebook.ipynb") for name in ("first", "second"))
    assert files.split() == [str(tmp_path / "first" / "log.txt")] * 2
    assert not {*draws.split()} & {*others.split()}, "two runs draw the same numbers"


def sleeping(root):
    """Return all processes below one, once a notebook's child sleeps."""

    def family():
        found = psutil.Process(root).children(recursive=True)
        return found if any(LONG in command_line(each) for each in found) else None

    return wait_for(family)


def command_line(process):
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # also a zombie
        return ""


def test_a_kernel_and_its_children_end_with_their_run(start, tmp_path):
    before = psutil.Process().children(recursive=True)
    future, end = start("long", SLEEP, LONG)
    family = [
        each for each in sleeping(os.getpid()) if each not in before and "multiprocessing" not in command_line(each)
    ]
    assert family
    end()
    psutil.wait_procs(family)
    assert status(tmp_path, "long", future)[0] == "failed"


def test_everything_ends_with_whoever_is_killed(tmp_path):
    make_notebook(tmp_path / "long.ipynb", SLEEP, LONG)
    command = [*PAPERMILL, "long.ipynb", "out.ipynb", "--no-progress-bar", "--engine", "forked"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    family = sleeping(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    gone, _ = psutil.wait_procs(family)
    assert len(gone) >= 3
