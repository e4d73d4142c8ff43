"""Kernels forked from a warm process: the results are the ordinary ones, nothing is shared, nothing is left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from conftest import AT_ONCE

from selfeval import sweep
from selfeval.sweep import kernels

pytestmark = pytest.mark.skipif(kernels.obstacle() is not None, reason=str(kernels.obstacle()))
QUIET = ("--no-progress-bar", "--log-level", "ERROR")


@pytest.fixture(scope="module")
def process():
    with kernels.WarmProcess(kernels.PAPERMILL + kernels.KERNEL) as process:
        yield process


@pytest.fixture
def start(process, tmp_path):
    """A function that starts papermill on a notebook of these cells, itself and its kernel forked."""

    def start(name, *cells, engine="forked", options=()):
        make(tmp_path / f"{name}.ipynb", *cells)
        command = [sys.executable, "-m", "papermill", f"{name}.ipynb", f"{name}.out.ipynb", "--engine", engine]
        env = os.environ | {"SELFEVAL_WARM": process.address, "IPYTHONDIR": str(tmp_path / "ipython")}
        with (tmp_path / f"{name}.log").open("wb") as log, Path(os.devnull).open() as stdin:
            files = [stdin.fileno(), log.fileno(), log.fileno()]
            return kernels.start(process.address, [*command, *QUIET, *options], tmp_path, env, files).started()

    return start


def make(path, *cells, kernel="python3"):
    cells = [nbformat.v4.new_code_cell(cell, id=f"cell-{i}") for i, cell in enumerate(cells)]
    kernel = {"name": kernel, "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def result(folder, name):
    """Return the output notebook without what differs between any two executions."""
    notebook = json.loads((folder / f"{name}.out.ipynb").read_text())
    notebook["metadata"]["papermill"] = sorted(notebook["metadata"]["papermill"])
    for cell in notebook["cells"]:
        cell["metadata"] = {key: sorted(value) for key, value in cell["metadata"].items()}
    return notebook


def texts(folder, name):
    outputs = [output for cell in result(folder, name)["cells"] for output in cell["outputs"]]
    return [line for output in outputs for line in output.get("text", ())]


def test_results_are_those_of_the_ordinary_engine(start, tmp_path):
    cells = [
        "import sys\nimport matplotlib.pyplot as plt\nimport pandas as pd\nfrom tqdm.auto import tqdm",
        "print(tqdm.__module__, sys.argv[0][-21:], sys.path[0], __name__)\nprint('to stderr', file=sys.stderr)",
        "pd.DataFrame({'a': [1.5, 2], 'b': ['x', '<b>']})",
        "_ = plt.figure(figsize=(1, 1)).subplots().plot([1, 3, 2])",
        "await __import__('asyncio').sleep(0, 'awaited')",
    ]
    runs = [start(name, *cells, engine=name) for name in ("nbclient", "forked")]
    assert [run.wait(60) for run in runs] == [0, 0]
    ordinary, forked = result(tmp_path, "nbclient"), result(tmp_path, "forked")
    assert "image/png" in forked["cells"][3]["outputs"][0]["data"]
    assert forked == ordinary
    assert "selfeval" not in (tmp_path / "forked.log").read_text(), "an ordinary kernel after all"


def test_nothing_of_one_run_reaches_another(start, tmp_path):
    leave = """
    import asyncio, gc, os, random, sqlite3, sys, threading
    import matplotlib, numpy as np, pandas as pd, openai
    from selfeval.asking.client import Client
    sqlite3.left = sqlite3.connect("left.sqlite"); sqlite3.left.execute("CREATE TABLE t (x)")
    pd.left = Client(); pd.left.store.record_attempt("k", "o", "d").result()
    asyncio.left = asyncio.new_event_loop()
    left = os.environ["LEFT"] = "left"; os.chdir("/"); sys.path.insert(0, "/left"); sys.left = 1
    np.random.seed(1); random.seed(1); pd.options.display.max_rows = 7; matplotlib.use("pdf")
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    """
    look = """
    import asyncio, gc, os, random, sqlite3, sys, threading
    import matplotlib, numpy as np, pandas as pd, openai
    from selfeval.asking.client import Client
    assert not any(hasattr(module, "left") for module in (sqlite3, pd, asyncio, sys)) and "left" not in globals()
    assert "LEFT" not in os.environ and os.getcwd() != "/" and "/left" not in sys.path
    assert pd.options.display.max_rows == 60 and "inline" in matplotlib.get_backend()
    assert not [each for each in gc.get_objects() if isinstance(each, (openai.AsyncOpenAI, Client))]
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    files = [os.readlink(link) for link in links if os.path.exists(link)]
    print(*sorted(file for file in files if file.startswith("/") and not file.startswith("/dev")))
    print(np.random.random(), random.random())
    """
    strip = "\n".join(line.strip() for line in leave.splitlines())
    assert start("leave", strip).wait(60) == 0
    strip = "\n".join(line.strip() for line in look.splitlines())
    runs = [start(name, strip) for name in ("first", "second")]
    assert [run.wait(60) for run in runs] == [0, 0], (tmp_path / "first.log").read_text()[-2000:]
    (files, draws), (_, others) = texts(tmp_path, "first"), texts(tmp_path, "second")
    assert files.split() == [str(tmp_path / "first.log")] * 2
    assert not {*draws.split()} & {*others.split()}, "two runs draw the same numbers"


def test_failures_are_those_of_the_ordinary_engine(start, tmp_path):
    dead = start("dead", "import os\nos.kill(os.getpid(), 9)")
    raises = start("raises", "print(1)\n1 / 0", "2")
    slow = start("slow", "import time\ntime.sleep(60)", options=("--execution-timeout", "1"))
    assert [run.wait(30) != 0 for run in (dead, raises, slow)] == [True] * 3
    assert "DeadKernelError" in (tmp_path / "dead.log").read_text()
    assert "ZeroDivisionError" in (tmp_path / "raises.log").read_text()
    assert "CellTimeoutError" in (tmp_path / "slow.log").read_text()
    cells = result(tmp_path, "raises")["cells"]
    assert cells[-1]["execution_count"] is None and cells[-2]["outputs"][-1]["ename"] == "ZeroDivisionError"


SLEEP = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"


def command_line(process):
    """Return a process's command line, "" of one that has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # also a zombie
        return ""


def family(run, kernels=1):
    """Return papermill, its kernel and what the kernel started, once they are there."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        siblings = psutil.Process(run.pid).parent().children(recursive=True)
        sleeping = [p for p in siblings if "time.sleep(60)" in command_line(p)]
        if len(sleeping) == kernels:
            time.sleep(0.3)
            return siblings
        time.sleep(0.05)
    raise AssertionError("the kernel did not come up")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_kernel_and_its_children_end_with_papermill(start, process, number):
    run = start("long", SLEEP, "time.sleep(60)")
    everybody = family(run)
    assert len(everybody) == 3
    run.send_signal(number)
    assert psutil.wait_procs(everybody, timeout=AT_ONCE)[1] == []
    assert run.wait(AT_ONCE) != 0 and process.process.poll() is None


def test_everything_ends_with_the_warm_process(tmp_path):
    make(tmp_path / "long.ipynb", SLEEP, "time.sleep(60)")
    command = [sys.executable, "-m", "papermill", "long.ipynb", "out.ipynb", *QUIET, "--engine", "forked"]
    for end in (lambda warm_one: warm_one.close(), lambda warm_one: warm_one.process.kill()):
        with kernels.WarmProcess(kernels.PAPERMILL + kernels.KERNEL[:3]) as warm_one:
            env = os.environ | {"SELFEVAL_WARM": warm_one.address}
            with (tmp_path / "log").open("wb") as log:
                run = kernels.start(warm_one.address, command, tmp_path, env, [log.fileno()] * 3).started()
            everybody = family(run)
            end(warm_one)
            gone, _ = psutil.wait_procs(everybody, timeout=AT_ONCE)
            assert {run.pid} < {each.pid for each in gone} and run.wait(AT_ONCE) < 0
            if len(gone) < len(everybody):  # of a warm process that was killed, what kernels started may stay
                [left] = [each for each in everybody if each not in gone]
                assert "time.sleep(60)" in command_line(left) and warm_one.process.poll() == -9
                left.kill()


def test_a_plain_command_shares_the_warm_process_or_falls_back_and_says_so(process, tmp_path):
    make(tmp_path / "in.ipynb", "import os\nprint(os.getppid())")
    command = [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb", "--engine", "forked", *QUIET[:1]]
    for address, says in ((process.address, 0), ("selfeval-nobody", 1)):
        env = os.environ | {"SELFEVAL_WARM": address}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert done.stderr.count("selfeval: an ordinary kernel instead of a forked one") == says
        (outputs,) = [cell["outputs"] for cell in json.loads((tmp_path / "out.ipynb").read_text())["cells"]]
        assert (int(outputs[0]["text"][0]) == process.process.pid) == (not says)


def test_a_kernel_of_another_interpreter_is_started_as_its_specification_says(process, tmp_path):
    spec = {"argv": [sys.executable, "-X", "utf8", "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    folder = tmp_path / "kernels" / "other"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec | {"display_name": "other", "language": "python"}))
    make(tmp_path / "in.ipynb", "import sys\nprint(sys.flags.utf8_mode)", kernel="other")
    env = os.environ | {"SELFEVAL_WARM": process.address, "JUPYTER_PATH": str(tmp_path)}
    command = [sys.executable, "-m", "papermill", "in.ipynb", "in.out.ipynb", "--engine", "forked", "--no-progress-bar"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "forked one: the kernel other is not" in done.stderr
    assert texts(tmp_path, "in") == ["1\n"]


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user, which only root can")
def test_another_user_is_not_served(process):
    code = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX)\n"
    code += "s.connect('\\0' + sys.argv[1])\ntry: print(s.recv(1))\nexcept ConnectionError: print(b'')"
    said = subprocess.run([sys.executable, "-c", code, process.address], capture_output=True, text=True, timeout=10)
    assert said.stdout.strip() == "b''", said.stderr
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(f"\0{process.address}")
        ours.sendall(b"no job\n")
        assert ours.recv(1) == b""


@pytest.fixture
def swept(tmp_path, monkeypatch, capsys):
    """A function that runs a sweep of three runs and returns its status, what it said, and the kernels' parents."""
    monkeypatch.setattr(kernels, "KERNEL", ())
    make(tmp_path / "look.ipynb", "out: str = ''\nx: int = 0", "import os, pathlib, signal, time",
         "pathlib.Path(out, 'parent').write_text(str(os.getppid()))",
         "if x == -1: os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)")  # fmt: skip
    notebook = nbformat.read(tmp_path / "look.ipynb", 4)
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, tmp_path / "look.ipynb")

    def swept(first, engine):
        stages = [{"notebook": "look", "grid": {"x": [first, 1, 2]}}]
        (tmp_path / "sweep.yaml").write_text(json.dumps({"name": "a", "stages": stages}))
        out = tmp_path / f"out {engine} {first}"
        before = psutil.Process().children(recursive=True)
        status = sweep.run_file(tmp_path / "sweep.yaml", 1, out, engine)
        assert not {*psutil.Process().children(recursive=True)} - {*before}  # one of before may have ended by now
        return status, capsys.readouterr(), [int(file.read_text()) for file in sorted(out.rglob("parent"))]

    return swept


def test_a_sweep_forks_its_runs_from_one_process_and_leaves_nothing(swept):
    status, said, parents = swept(0, "forked")
    assert status == 0 and "3 ok, 0 failed" in said.out and "ordinary way" not in said.err
    assert len({*parents}) == 1 and not psutil.pid_exists(parents[0])
    status, said, parents = swept(0, "auto")
    assert status == 0 and len({*parents}) == 3, "three runs do not pay for a warm process"


def test_a_sweep_without_forks_or_without_its_warm_process_goes_on_and_says_so(swept, monkeypatch):
    status, said, parents = swept(-1, "forked")
    assert status == 1 and "2 ok, 1 failed" in said.out and "exit status -9" in said.out
    assert said.err.count("started in the ordinary way: the warm process has ended") == 1
    monkeypatch.setattr(kernels, "obstacle", lambda: "no forks here")
    status, said, parents = swept(0, "forked")
    assert status == 0 and len({*parents}) == 3
    assert said.err.count("started in the ordinary way: no forks here") == 1
