"""A run of a sweep: whether it is done, its folder, and its manifest."""

import contextlib
import hashlib
import json
import math
import platform
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

import yaml

from selfeval.errors import InputError
from selfeval.paths import DATA, ROOT, read_json, write_whole
from selfeval.secrets import plain, redact

COUNTS = ("calls", "stored", "simulated", "failed", "tokens", "cost", "unpriced")


@dataclass
class Run:
    """One notebook with one set of parameters.

    parameters: as the notebook gets them. key: a hash of them, the same wherever the outputs lie.
    needs: the stages that it waits for. status: `waiting`; then `ok` (it ended; where calls failed,
    `cause` says so and the next time it is executed again), `failed`, `done` (ok before), `not
    started` (a run that it depends on failed), `left out` (not asked for by --only), and in a dry
    run `to do`. cause: why it is not ok.
    """

    stage: str
    notebook: Path
    folder: Path
    parameters: dict
    key: str = ""
    needs: set[str] = field(default_factory=set)
    status: str = "waiting"
    cause: str = ""
    manifest: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the stage and the folder's name."""
        return f"{self.stage}/{self.folder.name}"

    def look(self, after: str) -> None:
        """Settle it as done where it ended well as it is now, and began after that time."""
        manifest = read_json(self.folder / "manifest.json")
        if manifest.get("status") != "ok" or manifest.get("cause"):
            return
        if not (self.folder / "notebook.ipynb").is_file():
            return
        is_same = manifest.get("parameters_hash") == self.key and manifest.get(
            "notebook_hash"
        ) == notebook_hash(self.notebook)
        is_later = str(manifest.get("started")) >= after
        if is_same and is_later and not self._reads_newer(manifest["ended"]):
            self.status = "done"
            self.manifest = manifest

    def _reads_newer(self, ended: str) -> bool:
        """Tell whether a file that a parameter names was written after that time.

        Of a folder, its JSON lines files.
        """
        end = datetime.fromisoformat(ended).timestamp()
        for value in self.parameters.values():
            names = value if isinstance(value, list) else [value]
            for name in filter(None, names):
                for folder in (Path.cwd(), DATA, DATA / "corpora"):
                    if _last_written(folder, name) > end:
                        return True
        return False

    def begin(self) -> None:
        """Empty the folder for the notebook; refuse one that is not of an earlier run."""
        parameters = self.folder / "parameters.yaml"
        is_filled = self.folder.is_dir() and any(self.folder.iterdir())
        if is_filled and not parameters.is_file():
            rule = "holds files that are not of a run, and it would be emptied"
            remedy = "move them, or name another folder with --out"
            raise InputError(f"{self.folder} {rule}; {remedy}.")
        shutil.rmtree(self.folder, ignore_errors=True)
        # it may be there again: the kernel of a killed worker writes how far it is to its end
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(parameters, yaml.safe_dump(self.parameters, sort_keys=False))

    def settle(self, started: datetime, error: Exception | None) -> dict:
        """Write and return the manifest. error: what papermill raised."""
        ended = datetime.now(UTC)
        progress = read_json(self.folder / "progress.json")
        counts = {name: progress.get(name) or 0 for name in COUNTS}
        status, cause = _outcome(error, counts["failed"])
        manifest = {
            "stage": self.stage,
            "notebook": self.notebook.name,
            "parameters": self.parameters,
            "parameters_hash": self.key,
            "notebook_hash": notebook_hash(self.notebook),
            "status": status,
            "cause": cause,
            "started": started.isoformat(),
            "ended": ended.isoformat(),
            "seconds": round((ended - started).total_seconds(), 3),
            "counts": counts,
            **made_with(),
        }
        content = json.dumps(manifest, indent=1, default=str)
        write_whole(self.folder / "manifest.json", content + "\n")
        return manifest


def _last_written(folder: Path, name) -> float:
    """Return when a file below a folder was written, or the last JSON lines file in it."""
    latest = -math.inf
    with contextlib.suppress(OSError, TypeError, ValueError):  # it names nothing
        for file in (folder / name, *(folder / name).glob("*.jsonl")):
            if file.is_file():
                latest = max(latest, file.stat().st_mtime)
    return latest


def _outcome(error: Exception | None, failed: int) -> tuple[str, str]:
    """Return status and cause of an execution.

    A notebook whose last cell asserts that no call failed has saved everything.
    """
    if error is None:
        return "ok", f"{failed} calls failed" if failed else ""
    name = getattr(error, "ename", type(error).__name__)
    text = str(getattr(error, "evalue", error))
    if name == "AssertionError" and "run again" in text:
        return "ok", plain(redact(text))
    return "failed", plain(redact(f"{name}: {text}"))


@cache
def made_with() -> dict:
    """Return the commit and the versions of the package and of Python that runs are made with."""
    commit = ""
    with contextlib.suppress(OSError):
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {
        "commit": commit,
        "selfeval": metadata.version("selfeval"),
        "python": platform.python_version(),
    }


def code_cells(notebook: Path) -> list[str]:
    """Return the sources of a notebook's code cells."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def notebook_hash(notebook: Path) -> str:
    """Return a hash of a notebook's code: prose and outputs do not count."""
    code = json.dumps(code_cells(notebook))
    return hashlib.sha256(code.encode()).hexdigest()[:16]
