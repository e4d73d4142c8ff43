"""What is to be executed, and why: a run that ended ok is skipped while nothing that it depends on has changed."""

import hashlib
import json
from fnmatch import fnmatchcase

from selfeval import ROOT
from selfeval.errors import InputError
from selfeval.sweep import manifest
from selfeval.sweep.parameters import suggest

OTHERS = "earlier runs are others"
AGAIN = ("failed", "stopped", "incomplete", "running")  # in a manifest; `running`: the sweep was killed


def prepare(run, versions, inputs):
    """Set a run's manifest and the reason why it is to do; skip it where there is none.

    versions: of the code and the environment. inputs: {stage: digest of its runs}, for the stages that it needs.
    """
    old = manifest.read_json(run.folder / "manifest.json")
    run.manifest = {
        "stage": run.stage,
        "notebook": str(run.notebook.relative_to(ROOT) if run.notebook.is_relative_to(ROOT) else run.notebook),
        "parameters": run.parameters,
        "parameters_hash": run.key,
        "seeds": run.seeds,
        "notebook_hash": manifest.notebook_hash(run.notebook),
        "inputs": inputs,
        **versions,
        "attempt": 1 + _number(old.get("attempt")),
        "before": manifest.paid(run, old),
    }
    run.reason = _reason(run, old)
    if not run.reason:
        run.status, run.manifest = "skipped", old


def digest_of(runs):
    """Return a digest of the executions of runs: another one when one of them was executed again."""
    made = [(run.name, run.manifest.get("started")) for run in runs if run.status in ("ok", "incomplete", "skipped")]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:16]


def is_broken(run):
    """Tell whether the last execution of a run did not end ok."""
    return manifest.read_json(run.folder / "manifest.json").get("status") in AGAIN


def choose(sweep, only=(), retry_failed=False):
    """Return the names of the runs that the options ask for; raise `InputError` for a pattern that names none."""
    stages = [stage.name for stage in sweep.stages]
    for pattern in only:
        if not any(_matches(run, pattern) for run in sweep.runs):
            raise InputError(
                f"--only {pattern!r} names no run{suggest(pattern, stages)}; it is a stage ({', '.join(stages)}), or "
                "STAGE/RUN with * and ? as wild cards"
            )
    asked = [run for run in sweep.runs if not only or any(_matches(run, pattern) for pattern in only)]
    return {run.name for run in asked if not retry_failed or is_broken(run)}


def left_over(sweep):
    """Return the folders of runs in the sweep's folder that are none of its runs."""
    known = {run.folder for run in sweep.runs}
    return sorted({file.parent for file in sweep.folder.glob("*/*/manifest.json")} - known)


def _matches(run, pattern):
    return fnmatchcase(run.stage, pattern) or fnmatchcase(run.name, pattern)


def _reason(run, old):
    """Say in a few words why a run is to be executed; "" where it is not."""
    new = run.manifest
    status = old.get("status")
    if not old:
        return "new"
    if status != "ok":
        return {"incomplete": "calls failed", "running": "broken off"}.get(status, str(status or "no manifest"))
    if old.get("parameters_hash") != new["parameters_hash"]:
        return "other parameters"
    if old.get("notebook_hash") != new["notebook_hash"]:
        return "the notebook's code has changed"
    if (old.get("code") or {}).get("hash") != new["code"]["hash"]:
        return "the package or the data it reads have changed"
    if old.get("environment") != new["environment"]:
        return "the models or their addresses have changed"
    if old.get("inputs") != new["inputs"]:
        return OTHERS
    for file in ["notebook.ipynb", *(old.get("outputs") or ())]:
        if not (run.folder / file).is_file():
            return f"its {file} is gone"
    for kind in ("written", "read"):
        for path, digest in (old.get(kind) or {}).items():
            if manifest.digest(path) != digest:
                return f"{path}, which it {'wrote' if kind == 'written' else 'read'}, has changed"
    return ""


def _number(value):
    return value if isinstance(value, int) else 0
