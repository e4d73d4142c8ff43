"""The runs of a sweep: their state, why they are to do, how they ended, and the manifest that each keeps of itself."""

import contextlib
import hashlib
import importlib.metadata
import json
import platform
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import yaml

from selfeval import models
from selfeval.asking.store import Store
from selfeval.errors import InputError
from selfeval.files import below_root, write_whole
from selfeval.keys import redact
from selfeval.paths import DATA, INSTALLED, ROOT

USABLE = ("ok", "incomplete", "skipped", "to do")  # what later stages may run on; `to do`: of a dry run
COUNTS = ("calls", "stored", "simulated", "failed", "tokens", "cost", "unpriced")
PAID = ("calls", "tokens", "cost", "unpriced")
OWN = {"manifest.json", "parameters.yaml", "log.txt", "progress.json", "written.txt", "read.txt"}
PACKAGES = ("selfeval", "papermill", "openai", "pandas", "numpy", "scipy", "scikit-learn", "matplotlib", "xllamacpp")
CEILING = ("BudgetError", "PriceError")  # of `selfeval.errors`: not the notebook failed, the ceiling ended it
# The last cell of a notebook, after everything is saved, asserts that no call failed.
FAILED_CALLS = re.compile(r"\b(failed|ended early); run again\b")
CHANGED = {
    "parameters_hash": "other parameters",
    "notebook_hash": "the notebook's code has changed",
    "code": "the package or the data it reads have changed",
    "environment": "the models, their addresses or what is replayed have changed",
    "inputs": "earlier runs are others",
}


@dataclass
class Run:
    """One execution of one notebook: `planned`, `started`, `ended`.

    status: `waiting` for earlier stages or a place, `running`, and at the end `ok`, `incomplete` (its outputs are
    there, but calls failed, which are null answers), `failed`, `stopped` (by a signal or the cost ceiling), `skipped`
    (ok before, and nothing has changed), `not started` (what it needs failed, or the sweep had come to its end), or
    `left out` (to do, but not asked for by --only). In a dry run, `to do`.
    """

    stage: str
    notebook: Path
    folder: Path
    parameters: dict  # as the notebook gets them
    key: str  # hash of the parameters, the same wherever the outputs lie
    needs: tuple[str, ...] = ()  # the stages that it waits for
    seeds: dict = field(default_factory=dict)  # given, or as they stand in the notebook
    variables: dict = field(default_factory=dict)  # for its environment
    status: str = "waiting"
    reason: str = ""  # why it is to be executed
    cause: str = ""  # why it is not ok
    manifest: dict = field(default_factory=dict)
    clock: float = 0.0

    @property
    def name(self):
        """Return the stage and the folder's name."""
        return f"{self.stage}/{self.folder.name}"

    @property
    def executed(self):
        """Tell whether it ended now, so that its manifest counts what it did."""
        return self.status in ("ok", "incomplete", "failed", "stopped")

    def planned(self, versions, inputs):
        """Begin a manifest and say why the run is to do; skip it where nothing has changed.

        versions: of the code and the environment. inputs: {stage: digest of its runs}, for the stages that it needs.
        """
        old = read_json(self.folder / "manifest.json")
        self.manifest = {
            "stage": self.stage,
            "notebook": str(self.notebook.relative_to(ROOT) if self.notebook.is_relative_to(ROOT) else self.notebook),
            "parameters": self.parameters,
            "parameters_hash": self.key,
            "seeds": self.seeds,
            "notebook_hash": notebook_hash(self.notebook),
            "inputs": inputs,
            **versions,
            "attempt": 1 + old.get("attempt", 0),
            "before": self.paid(old),
        }
        self.reason = self._reason(old)
        if not self.reason:
            self.status, self.manifest = "skipped", old

    def _reason(self, old):
        """Say in a few words why the run is to be executed; "" where it is not."""
        if old.get("status") != "ok":
            return str(old.get("status", "new"))
        for name, reason in CHANGED.items():
            before, now = old.get(name), self.manifest[name]
            if name == "code":  # the commit is for information
                before, now = (before or {}).get("hash"), now["hash"]
            if before != now:
                return reason
        for file in ["notebook.ipynb", *(old.get("outputs") or ())]:
            if not (self.folder / file).is_file():
                return f"its {file} is gone"
        for did, kind in (("wrote", "written"), ("read", "read")):
            for path, known in (old.get(kind) or {}).items():
                if digest(path) != known:
                    return f"{path}, which it {did}, has changed"
        return ""

    def started(self):
        """Empty the folder for the notebook; raise `InputError` or `OSError` where that is not possible."""
        self.status, self.clock = "running", time.monotonic()
        self.manifest |= {"status": "running", "started": datetime.now(UTC).isoformat()}
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        write_whole(self.folder / "parameters.yaml", yaml.safe_dump(self.parameters, sort_keys=False))
        self._keep()

    def ended(self, code=0, stopped=""):
        """Settle status and cause by papermill's exit code; stopped: why the sweep ended it, where it did."""
        counts = {name: count for name, count in self.progress().items() if name in COUNTS}
        self.status, self.cause = "ok", ""
        if stopped:
            self.status, self.cause = "stopped", stopped
        elif code or not (self.folder / "notebook.ipynb").is_file():
            self.status, self.cause = self._failure(counts)
        elif counts["failed"]:
            self.status, self.cause = "incomplete", f"{counts['failed']} calls failed"
        self.manifest |= {"status": self.status, "cause": self.cause or None, "ended": datetime.now(UTC).isoformat()}
        self.manifest |= {"seconds": round(time.monotonic() - self.clock, 3), "counts": counts}
        try:
            self.manifest["outputs"] = self._outputs()
            self.manifest |= {kind: self._noted(kind) for kind in ("written", "read")}
            self._keep()
        except (OSError, InputError) as error:
            self.status, self.cause = "failed", f"{self.cause + '; ' if self.cause else ''}{error}"

    def _failure(self, counts):
        """Return status and cause by the exception of the failed cell, or by the end of the log."""
        cells = [c for c in read_json(self.folder / "notebook.ipynb").get("cells", []) if c.get("cell_type") == "code"]
        errors = [(cell, out) for cell in cells for out in cell.get("outputs", []) if out.get("output_type") == "error"]
        if not errors:
            log = ""
            with contextlib.suppress(OSError):
                log = (self.folder / "log.txt").read_text("utf-8", "replace")
            return "failed", plain(redact(next((line for line in log.splitlines()[::-1] if line.strip()), "no output")))
        cell, error = errors[-1]
        name, text = str(error.get("ename")), str(error.get("evalue"))
        if cell is cells[-1] and name == "AssertionError" and FAILED_CALLS.search(text) and counts["failed"]:
            return "incomplete", plain(redact(text))
        return "stopped" if name in CEILING else "failed", plain(redact(f"{name}: {text}"))

    def _outputs(self):
        """Return the files that the notebook wrote to its folder, relative."""
        files = [file for file in sorted(self.folder.rglob("*")) if file.is_file()]
        made = [file for file in files if file.name not in OWN and file.suffix != ".part"]
        return [file.relative_to(self.folder).as_posix() for file in made]

    def _noted(self, kind):
        """Return {path: digest} of the files outside its folder, such as a corpus, that it noted as written or read."""
        with contextlib.suppress(OSError):
            paths = {Path(line) for line in (self.folder / f"{kind}.txt").read_text("utf-8").splitlines()}
            return {str(path): digest(path) for path in sorted(paths) if not path.is_relative_to(self.folder)}
        return {}

    def _keep(self):
        write_whole(self.folder / "manifest.json", json.dumps(self.manifest, indent=1, default=str) + "\n")

    def progress(self):
        """Return what the package inside the notebook last wrote, with 0 for what is not there."""
        seen = read_json(self.folder / "progress.json")
        return {name: seen.get(name) or 0 for name in (*COUNTS, "done", "total")}

    def paid(self, old):
        """Return what all earlier attempts took, by the old manifest, and for one that was killed its progress."""
        last = self.progress() if old.get("status") == "running" else old.get("counts") or {}
        before = old.get("before") or {}
        return {name: (before.get(name) or 0) + (last.get(name) or 0) for name in PAID}


@dataclass
class Sweep:
    """The stages of a sweep file (`file.Stage`), in order, and the folder of their outputs."""

    name: str
    folder: Path
    stages: list

    @property
    def runs(self):
        """Return the runs of all stages in order."""
        return [run for stage in self.stages for run in stage.runs]

    @cached_property
    def versions(self):
        """Return what the runs are made with, besides notebooks and parameters."""
        return versions()

    def decide(self, run, chosen):
        """Plan a run whose earlier stages have settled; settle it too unless it is to be executed."""
        before = [stage for stage in self.stages if stage.name in run.needs]
        run.planned(self.versions, {stage.name: stage.digest for stage in before})
        lost = next((stage.lost for stage in before if stage.lost), None)
        if run.status == "skipped":
            return
        if run.name not in chosen:
            run.status = "left out"
        elif lost:
            why = f"is left out and to do ({lost.reason})" if lost.status == "left out" else lost.status
            run.status, run.cause = "not started", f"not started because {lost.name} {why}"


def versions():
    """Return what runs are made with: the code, what of the environment can change replies, and the packages."""
    own = [digest(file) for file in models.registry_files()[1:]]
    moved = {name: p.identity().get("base_url") for name, p in models.providers().items() if p.url != p.base_url}
    packages = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    environment = {"models": own, "addresses": moved}
    if (store := Store()).replay:  # what was replayed is not what is asked for real
        environment["replay"] = [digest(file) for file in store.recorded_files()]
    return {"code": code_version(), "environment": environment, "packages": packages}


def code_version():
    """Return the commit, for information, and a hash of the package and of the input data, which decides."""
    commit = None
    with contextlib.suppress(OSError):
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip() or None
    inputs = [f"{folder}*.{kind}" for folder in ("", "identity/**/", "roleplay/") for kind in ("json", "jsonl", "yaml")]
    files = {*ROOT.glob("**/*.py" if INSTALLED else "selfeval/**/*.py")}
    files |= {file for folder in (ROOT / "data", DATA) for pattern in inputs for file in folder.glob(pattern)}
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(f"{below_root(file)}\0".encode() + file.read_bytes())
    return {"commit": commit, "hash": found.hexdigest()[:16]}


def notebook_hash(path):
    """Return a hash of a notebook's code cells: prose and outputs do not count."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [[cell["source"], cell.get("metadata", {}).get("tags")] for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()[:16]


def digest(path):
    """Return a digest of a file, None where it cannot be read."""
    with contextlib.suppress(OSError), Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def read_json(path):
    """Return the JSON object in a file, {} where there is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def plain(text):
    """Return at most 400 characters on one line without control characters: text may come from a model."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())[:400]


def relative(path):
    """Return a path as it is written from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
