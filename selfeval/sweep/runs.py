"""The runs of a sweep: which are done, how one ended, and the manifest that each leaves."""

import contextlib
import hashlib
import json
import platform
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

import yaml

from selfeval.keys import redact
from selfeval.paths import ROOT, below_root, write_whole

COUNTS = ("calls", "stored", "simulated", "failed", "tokens", "cost", "unpriced")
PACKAGES = ("selfeval", "papermill", "openai", "pandas", "numpy", "scipy", "scikit-learn", "matplotlib")
USABLE = ("ok", "done", "to do")  # what later stages may run on


@dataclass
class Run:
    """One notebook with one set of parameters.

    status: `waiting`; then `ok` (it ended; where calls failed, `cause` says so and the next time it is executed again),
    `failed`, `done` (ok before), `not started` (a run that it depends on failed), `left out` (not asked for by --only),
    and in a dry run `to do`.
    """

    stage: str
    notebook: Path
    folder: Path
    parameters: dict  # as the notebook gets them
    key: str = ""  # hash of the parameters, the same wherever the outputs lie
    needs: set[str] = field(default_factory=set)  # the stages that it waits for
    status: str = "waiting"
    cause: str = ""  # why it is not ok
    manifest: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the stage and the folder's name."""
        return f"{self.stage}/{self.folder.name}"

    def look(self, after: str) -> None:
        """Settle it as done where it ended well as it is now, and began after that time."""
        old = read_json(self.folder / "manifest.json")
        same = (old.get("parameters_hash"), old.get("notebook_hash")) == (self.key, notebook_hash(self.notebook))
        well = old.get("status") == "ok" and not old.get("cause") and (self.folder / "notebook.ipynb").is_file()
        if same and well and str(old.get("started")) >= after:
            self.status, self.manifest = "done", old

    def begin(self) -> None:
        """Empty the folder for the notebook."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        write_whole(self.folder / "parameters.yaml", yaml.safe_dump(self.parameters, sort_keys=False))

    def settle(self, started: datetime, error: Exception | None) -> dict:
        """Write and return the manifest. error: what papermill raised."""
        seen, ended = read_json(self.folder / "progress.json"), datetime.now(UTC)
        counts = {name: seen.get(name) or 0 for name in COUNTS}
        status, cause = self._outcome(error, counts["failed"])
        made = {"stage": self.stage, "notebook": below_root(self.notebook), "parameters": self.parameters}
        made |= {"parameters_hash": self.key, "notebook_hash": notebook_hash(self.notebook)}
        made |= {"status": status, "cause": cause, "started": started.isoformat(), "ended": ended.isoformat()}
        made |= {"seconds": round((ended - started).total_seconds(), 3), "counts": counts, **made_with()}
        write_whole(self.folder / "manifest.json", json.dumps(made, indent=1, default=str) + "\n")
        return made

    def _outcome(self, error: Exception | None, failed: int) -> tuple[str, str]:
        """Return status and cause; a notebook whose last cell asserts that no call failed has saved everything."""
        if error is None:
            return "ok", f"{failed} calls failed" if failed else ""
        name, text = getattr(error, "ename", type(error).__name__), str(getattr(error, "evalue", error))
        at_its_end = getattr(error, "source", None) == code_cells(self.notebook)[-1]
        unanswered = name == "AssertionError" and "run again" in text and at_its_end
        return "ok" if unanswered else "failed", plain(redact(text if unanswered else f"{name}: {text}"))


@cache
def made_with() -> dict:
    """Return the commit and the versions of the packages that runs are made with."""
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}
    commit = ""
    with contextlib.suppress(OSError):
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"commit": commit or None, "packages": versions}


def code_cells(notebook: Path) -> list[str]:
    """Return the sources of a notebook's code cells."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def notebook_hash(notebook: Path) -> str:
    """Return a hash of a notebook's code: prose and outputs do not count."""
    return hashlib.sha256(json.dumps(code_cells(notebook)).encode()).hexdigest()[:16]


def read_json(path: Path) -> dict:
    """Return the JSON object in a file, {} where there is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def plain(text: str) -> str:
    """Return at most 400 characters on one line without control characters: text may come from a model."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:400]
