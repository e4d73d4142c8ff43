"""Benchmarks of sweeps: what a run costs beside its calls."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from served import served

RUNS, WORKERS = 16, 2
ASKING, CALLS, LATENCY = 6, 500, 0.1  # runs of one notebook, calls of each, seconds that a reply takes
ASK = f"""from selfeval.providers.client import Client
from selfeval.providers.request import Request
from selfeval.providers.models import get

async with Client(64) as client:
    text = "word " * 100
    asked = [[{{"role": "user", "content": f"{{x}} {{i}} {{text}}"}}] for i in range({CALLS})]
    replies = await client.chat_all([Request(get("openai:bench"), messages) for messages in asked])
assert all(reply.status == "ok" for reply in replies)"""


def kernels() -> dict:
    """Run a notebook of heavy imports 16 times, two at a time: with the command `papermill`, and as a sweep."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, "import openai\nimport pandas as pd\nimport scipy.stats\nimport seaborn", RUNS)
        seconds = {
            "papermill_command": _commands(folder),
            "sweep": _sweep(folder, "runs", RUNS, "--workers", str(WORKERS)),
        }
    ratio = seconds["sweep"] / seconds["papermill_command"]
    return {"runs": RUNS, "at_a_time": WORKERS, "seconds": seconds, "sweep_to_papermill_command": round(ratio, 3)}


def throughput() -> dict:
    """Ask 3,000 questions by a sweep of six runs, 64 calls in flight in each, at 100 ms a reply: calls a second.

    One, two or three notebooks at a time on this machine, then on three Dask workers of this machine.
    """
    from local_cluster import three_hosts

    def rate(seconds: float) -> float:
        return round(ASKING * CALLS / seconds)

    with tempfile.TemporaryDirectory() as name, served(LATENCY) as url:
        folder = Path(name)
        _write(folder, ASK, ASKING)
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench"}
        found = {}
        for workers in (1, 2, 3):
            os.environ["SELFEVAL_STORE"] = str(folder / f"{workers}.sqlite")
            found[f"{workers} at a time"] = rate(_sweep(folder, f"w{workers}", ASKING, "--workers", str(workers)))
        with three_hosts(folder / "hosts") as cluster:
            os.environ["SELFEVAL_STORE"] = str(folder / "main.sqlite")
            seconds = _sweep(folder, "cluster", ASKING, "--scheduler", cluster.scheduler_address)
            found["3 Dask workers"] = rate(seconds)
    return {"calls": ASKING * CALLS, "calls_a_second": found, "cores": os.cpu_count()}


def _write(folder: Path, cell: str, runs: int) -> None:
    """Write a notebook of one cell, and the sweep that runs it so many times."""
    cells = ["x: int = 0  # a number", cell, "x"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.cells[0].metadata["tags"] = ["parameters"]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "heavy.ipynb")
    sweep = {"name": "bench", "stages": [{"notebook": "heavy", "grid": {"x": list(range(runs))}}]}
    (folder / "sweep.yaml").write_text(json.dumps(sweep))


def _commands(folder: Path) -> float:
    """Return the seconds that the papermill commands take, two at a time."""
    began, waiting, running = time.perf_counter(), list(range(RUNS)), []
    while waiting or running:
        running = [process for process in running if process.poll() is None]
        while waiting and len(running) < WORKERS:
            x = str(waiting.pop())
            command = [sys.executable, "-m", "papermill", "heavy.ipynb", f"{x}.ipynb", "-p", "x", x]
            quiet = ["--no-progress-bar", "--log-level", "ERROR"]
            running.append(subprocess.Popen([*command, *quiet], cwd=folder, stderr=subprocess.DEVNULL))
        time.sleep(0.02)
    assert len(list(folder.glob("[0-9]*.ipynb"))) == RUNS
    return round(time.perf_counter() - began, 2)


def _sweep(folder: Path, out: str, runs: int, *options: str) -> float:
    """Return the seconds that the sweep takes, with its start and its end."""
    began = time.perf_counter()
    command = [sys.executable, "-c", "from selfeval.cli import main; main()", "sweep", "sweep.yaml", "--out", out]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, env=os.environ)
    assert f": {runs} ok\n" in done.stdout, done.stdout + done.stderr
    return round(time.perf_counter() - began, 2)
