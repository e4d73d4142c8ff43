"""Benchmarks of sweeps: what a run costs beside its calls."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

RUNS, WORKERS = 16, 2


def kernels() -> dict:
    """Run a notebook of heavy imports 16 times, two at a time: with the command `papermill`, and as a sweep."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        heavy = "import openai\nimport pandas as pd\nimport scipy.stats\nimport seaborn"
        cells = ["x: int = 0  # a number", heavy, "x"]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.cells[0].metadata["tags"] = ["parameters"]
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, folder / "heavy.ipynb")
        sweep = {"name": "bench", "stages": [{"notebook": "heavy", "grid": {"x": list(range(RUNS))}}]}
        (folder / "sweep.yaml").write_text(json.dumps(sweep))
        seconds = {
            "papermill_command": _commands(folder),
            "sweep_ordinary": _sweep(folder, "ordinary"),
            "sweep_forked": _sweep(folder, "forked"),
        }
    ratio = seconds["sweep_forked"] / seconds["papermill_command"]
    return {"runs": RUNS, "at_a_time": WORKERS, "seconds": seconds, "forked_to_papermill_command": round(ratio, 3)}


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


def _sweep(folder: Path, engine: str) -> float:
    """Return the seconds that the sweep takes, with its start and its end."""
    began = time.perf_counter()
    command = [sys.executable, "-c", "from selfeval.cli import main; main()", "sweep", "sweep.yaml", "--out", engine]
    command += ["--workers", str(WORKERS), "--engine", engine]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ, check=True)
    assert f"{RUNS} ok, 0 failed" in done.stdout, done.stdout
    return round(time.perf_counter() - began, 2)
