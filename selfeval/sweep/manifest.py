"""What is kept of a run: its manifest, its outputs, how far it is, and the versions that it was made with."""

import contextlib
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from functools import cache
from pathlib import Path

from selfeval import DATA, ROOT, models

COUNTS = ("calls", "stored", "simulated", "failed", "tokens", "cost", "unpriced")
PAID = ("calls", "tokens", "cost", "unpriced")
OWN = {"manifest.json", "parameters.yaml", "progress.json", "written.txt", "read.txt", "log.txt"}
PACKAGES = ("selfeval", "papermill", "openai", "pandas", "numpy", "scipy", "scikit-learn", "matplotlib", "xllamacpp")


def versions():
    """Return what a run is made with, besides its notebook and parameters."""
    return {"code": code_version(), "environment": environment(), "packages": packages()}


def environment():
    """Return what of the environment can change the replies: a registry of one's own, and other addresses."""
    own = [digest(file) for file in models.registry_files()[1:]]
    moved = {name: p.identity().get("base_url") for name, p in models.providers().items() if p.url != p.base_url}
    return {"models": own, "addresses": moved}


def code_version():
    """Return the commit, for information, and a hash of the package and of the input data, which decides."""
    commit = None
    with contextlib.suppress(OSError):
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip() or None
    inputs = [f for folder in ("", "identity/**/", "roleplay/") for kind in ("json", "jsonl", "yaml")
              for f in DATA.glob(f"{folder}*.{kind}")]  # fmt: skip
    files = {*ROOT.glob("selfeval/**/*.py"), *inputs}
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return {"commit": commit, "hash": digest.hexdigest()[:16]}


def notebook_hash(path):
    """Return a hash of a notebook's code cells: prose and outputs do not count."""
    return _notebook_hash(path, path.stat().st_mtime_ns)


@cache  # a stage has many runs of one notebook
def _notebook_hash(path, changed):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [[cell["source"], cell.get("metadata", {}).get("tags")] for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()[:16]


def packages():
    """Return the versions of Python and of the packages that can change a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def read_json(path):
    """Return the JSON object in a file, {} where there is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def write_whole(path, text):
    """Write a file whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_manifest(run):
    """Write a run's manifest into its folder."""
    write_whole(run.folder / "manifest.json", json.dumps(run.manifest, indent=1, default=str) + "\n")


def outputs(folder, tidy):
    """Return the files that the notebook wrote to its folder, relative; `tidy` removes those older than this run."""
    files = {file: file.stat().st_ctime_ns for file in sorted(folder.rglob("*")) if file.is_file()}
    since = files.get(folder / "parameters.yaml", 0)  # by the clock of the file system, not of this machine
    if tidy:
        for file in [file for file, changed in files.items() if changed < since]:
            file.unlink()
            del files[file]
    return [file.relative_to(folder).as_posix() for file in files if file.name not in OWN and file.suffix != ".part"]


def noted(folder, kind):
    """Return {path: digest} of the files outside its folder, such as a corpus, that a run noted as written or read."""
    with contextlib.suppress(OSError):
        paths = {Path(line) for line in (folder / f"{kind}.txt").read_text("utf-8").splitlines()}
        return {str(path): digest(path) for path in sorted(paths) if not path.is_relative_to(folder)}
    return {}


def digest(path):
    """Return a digest of a file, None where it cannot be read."""
    with contextlib.suppress(OSError):
        state = Path(path).stat()
        return _digest(str(path), state.st_size, state.st_mtime_ns, state.st_ino)
    return None


@cache  # many runs read the same large file
def _digest(path, *state):
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def progress(run):
    """Return what the package inside a run's notebook last wrote, with 0 for what is not there."""
    seen = read_json(run.folder / "progress.json")
    counts = {name: seen.get(name) for name in (*COUNTS, "done", "total")}
    counts = {name: count if isinstance(count, int | float) else 0 for name, count in counts.items()}
    return counts | {"label": plain(seen.get("label", ""))}


def paid(run, old):
    """Return what all earlier attempts of a run took, by its old manifest, and for one that was killed its progress."""
    last = progress(run) if old.get("status") == "running" else old.get("counts") or {}
    before = old.get("before") or {}
    return {name: (before.get(name) or 0) + (last.get(name) or 0) for name in PAID}


def plain(text):
    """Return text on one line without control characters: it may come from a model."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def relative(path):
    """Return a path as it is written from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
