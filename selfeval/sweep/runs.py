"""A run of a sweep: whether it is done, its folder, and its manifest."""

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

from selfeval.errors import InputError
from selfeval.paths import DATA, ROOT, read_json, write_whole
from selfeval.secrets import plain, redact

COUNTS = ("calls", "stored", "simulated", "failed", "tokens", "cost", "unpriced")


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
        same = (old.get("parameters_hash"), old.get("notebook_hash")) == (
            self.key,
            notebook_hash(self.notebook),
        )
        well = (
            old.get("status") == "ok"
            and not old.get("cause")
            and (self.folder / "notebook.ipynb").is_file()
        )
        if (
            same
            and well
            and str(old.get("started")) >= after
            and not self._reads_newer(old["ended"])
        ):
            self.status, self.manifest = "done", old

    def _reads_newer(self, ended: str) -> bool:
        """Tell whether a file that a parameter names, or a JSON lines file in a folder, was written after that time."""
        for value in self.parameters.values():
            for name in filter(None, value if isinstance(value, list) else [value]):
                for below in (Path.cwd(), DATA, DATA / "corpora"):
                    with contextlib.suppress(OSError, TypeError, ValueError):  # it names nothing
                        files = filter(
                            Path.is_file, [below / name, *(below / name).glob("*.jsonl")]
                        )
                        if (
                            max(file.stat().st_mtime for file in files)
                            > datetime.fromisoformat(ended).timestamp()
                        ):
                            return True
        return False

    def begin(self) -> None:
        """Empty the folder for the notebook; raise `InputError` where it is not that of an earlier run."""
        is_run = (self.folder / "parameters.yaml").is_file()
        if not is_run and self.folder.is_dir() and any(self.folder.iterdir()):
            raise InputError(
                f"{self.folder} holds files that are not of a run, and it would be emptied; move them, or name another "
                "folder with --out."
            )
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(
            parents=True, exist_ok=True
        )  # the kernel of a killed worker writes how far it is to its end
        write_whole(
            self.folder / "parameters.yaml", yaml.safe_dump(self.parameters, sort_keys=False)
        )

    def settle(self, started: datetime, error: Exception | None) -> dict:
        """Write and return the manifest. error: what papermill raised."""
        seen, ended = read_json(self.folder / "progress.json"), datetime.now(UTC)
        counts = {name: seen.get(name) or 0 for name in COUNTS}
        status, cause = self._outcome(error, counts["failed"])
        made = {"stage": self.stage, "notebook": self.notebook.name, "parameters": self.parameters}
        made |= {"parameters_hash": self.key, "notebook_hash": notebook_hash(self.notebook)}
        made |= {
            "status": status,
            "cause": cause,
            "started": started.isoformat(),
            "ended": ended.isoformat(),
        }
        made |= {
            "seconds": round((ended - started).total_seconds(), 3),
            "counts": counts,
            **made_with(),
        }
        write_whole(self.folder / "manifest.json", json.dumps(made, indent=1, default=str) + "\n")
        return made

    def _outcome(self, error: Exception | None, failed: int) -> tuple[str, str]:
        """Return status and cause; a notebook whose last cell asserts that no call failed has saved everything."""
        if error is None:
            return "ok", f"{failed} calls failed" if failed else ""
        name, text = (
            getattr(error, "ename", type(error).__name__),
            str(getattr(error, "evalue", error)),
        )
        unanswered = name == "AssertionError" and "run again" in text
        return "ok" if unanswered else "failed", plain(
            redact(text if unanswered else f"{name}: {text}")
        )


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
    return hashlib.sha256(json.dumps(code_cells(notebook)).encode()).hexdigest()[:16]
