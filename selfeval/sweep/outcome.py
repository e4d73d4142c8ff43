"""How a run ended: its status, the cause in one line, and the end of its manifest."""

import contextlib
import re
import time
from datetime import UTC, datetime

from selfeval.keys import redact
from selfeval.sweep import manifest
from selfeval.sweep.manifest import plain, relative

CEILING = ("BudgetError", "PriceError")  # of `selfeval.errors`: not the notebook failed, the ceiling ended it
# The last cell of a notebook, after everything is saved, asserts that no call failed.
FAILED_CALLS = re.compile(r"\b(failed|ended early); run again\b")


def finish(run, code=None, broken_off=None):
    """Settle a run's status by papermill's exit code (its own metadata says completed for a dead kernel too).

    broken_off: why the sweep ended it, where it did.
    """
    counts = {name: count for name, count in manifest.progress(run).items() if name in manifest.COUNTS}
    status, cause = "ok", ""
    if broken_off:
        status, cause = "stopped", broken_off
    elif code or not (run.folder / "notebook.ipynb").is_file():
        status, cause = _failure(run, code, counts)
    elif counts["failed"]:
        status, cause = "incomplete", f"{counts['failed']} calls failed"
    run.manifest |= {"status": status, "cause": cause or None, "ended": datetime.now(UTC).isoformat()}
    run.manifest |= {"seconds": round(time.monotonic() - run.clock, 3), "counts": counts}
    try:
        run.manifest["outputs"] = manifest.outputs(run.folder, tidy=status in ("ok", "incomplete"))
        run.manifest |= {kind: manifest.noted(run.folder, kind) for kind in ("written", "read")}
        manifest.write_manifest(run)
    except OSError as error:
        status = "failed"
        cause = f"{cause + '; ' if cause else ''}cannot write {relative(run.folder)}/manifest.json: {error.strerror}"
    run.status, run.cause = status, cause


def _failure(run, code, counts):
    """Return status and cause by the exception of the failed cell, or by the end of papermill's own output."""
    cells = manifest.read_json(run.folder / "notebook.ipynb").get("cells", [])
    cells = [cell for cell in cells if cell.get("cell_type") == "code"]
    errors = [(cell, out) for cell in cells for out in cell.get("outputs", []) if out.get("output_type") == "error"]
    if not errors:
        log = ""
        with contextlib.suppress(OSError):
            log = (run.folder / "log.txt").read_text("utf-8", "replace")
        lines = [line for line in log.splitlines() if line.strip()] or ["no output"]
        return "failed", _short(f"{lines[-1]} (exit status {code})")
    cell, error = errors[-1]
    name, text = str(error.get("ename")), str(error.get("evalue"))
    saved = cell is cells[-1] and name == "AssertionError" and FAILED_CALLS.search(text)
    status = "incomplete" if saved and counts["failed"] else "stopped" if name in CEILING else "failed"
    return status, _short(text if status == "incomplete" else f"{name}: {text}")


def _short(text):
    return plain(redact(text))[:400]
