"""Execute a sweep's stages: decide what is to do, start it, settle how it ended."""

import contextlib
import fcntl
import signal
import time
from datetime import UTC, datetime

import yaml

from selfeval import ROOT
from selfeval.errors import InputError
from selfeval.secrets import redact
from selfeval.sweep import manifest
from selfeval.sweep.launch import LocalProcesses
from selfeval.sweep.manifest import COUNTERS, plain, read_json, write_manifest, write_whole
from selfeval.sweep.show import Line, relative, report


def run(sweep, workers=2, launcher=LocalProcesses):
    """Execute what is missing, `workers` notebooks at a time; return 0, 1 after failures, 128 + n after signal n.

    launcher: a function of the lock's file descriptor that returns a `launch.Launcher`.
    """
    if not isinstance(workers, int) or workers < 1:
        raise InputError(f"`workers` is {workers!r}, but must be a whole number of at least 1")
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{sweep.folder}: cannot make the folder for the outputs: {error.strerror}") from None
    code, packages, began = manifest.code_version(), manifest.packages(), time.monotonic()
    with _lock(sweep.folder) as lock, contextlib.closing(launcher(lock.fileno())) as launch, _signals() as stop:
        for number, stage in enumerate(sweep.stages):
            earlier = [run for before in sweep.stages[:number] for run in before.runs]
            # Any of them: a stage may also read what an earlier one wrote elsewhere, such as a corpus.
            lost = [run for run in earlier if run.status in ("failed", "not started")]
            if lost:
                for each in stage.runs:
                    each.status, each.cause = "not started", f"not started because {lost[0].name} {lost[0].status}"
            elif not stop:
                inputs = {run.name: run.manifest.get("started") for run in earlier if run.status in ("ok", "skipped")}
                versions = {
                    "notebook_hash": manifest.notebook_hash(stage.runs[0].notebook),
                    "code": code,
                    "packages": packages,
                }
                _run_stage(stage, workers, versions | {"inputs": inputs}, launch, stop)
    report(sweep, time.monotonic() - began, stop)
    if stop:
        return 128 + stop[0]
    return int(any(each.status not in ("ok", "skipped") for stage in sweep.stages for each in stage.runs))


def _run_stage(stage, workers, common, launch, stop):
    for run in stage.runs:
        _plan(run, common)
    waiting, running = [run for run in stage.runs if run.status == "waiting"], []
    line = Line(stage)
    try:
        while (waiting or running) and not stop:
            while waiting and len(running) < workers:
                run = waiting.pop(0)
                if _start(run, launch):
                    running.append(run)
            for run in [*running]:
                if (status := launch.poll(run)) is not None:
                    running.remove(run)
                    _finish(run, status)
            line.show(running)
            time.sleep(0.1)
    finally:
        launch.end(running)
        for run in running:
            _finish(run, cause=f"interrupted by {signal.Signals(stop[0]).name if stop else 'an error'}")
        line.close()


def _plan(run, common):
    """Set a run to skipped when it is done already, and prepare its manifest otherwise."""
    run.manifest = {
        "stage": run.stage,
        "notebook": str(run.notebook.relative_to(ROOT) if run.notebook.is_relative_to(ROOT) else run.notebook),
        "parameters": run.parameters,
        "parameters_hash": run.key,
        **common,
    }
    old = read_json(run.folder / "manifest.json")
    same = all(old.get(key) == run.manifest[key] for key in ("parameters_hash", "notebook_hash", "inputs"))
    same = same and (old.get("code") or {}).get("hash") == run.manifest["code"]["hash"]
    files = ["notebook.ipynb", *(old.get("outputs") or ())]
    same = same and all(manifest.digest(path) == digest for path, digest in (old.get("written") or {}).items())
    if same and old.get("status") == "ok" and all((run.folder / file).is_file() for file in files):
        run.status, run.manifest = "skipped", old


def _start(run, launch):
    """Start a run; False, with the run failed, where that is not possible."""
    run.clock = time.monotonic()
    run.manifest |= {"status": "running", "started": datetime.now(UTC).isoformat()}
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        for name in ("progress.json", "written.txt"):
            (run.folder / name).unlink(missing_ok=True)
        write_whole(run.folder / "parameters.yaml", yaml.safe_dump(run.parameters, sort_keys=False))
        write_manifest(run)
        launch.start(run)
    except OSError as error:
        _finish(run, cause=f"cannot start in {relative(run.folder)}: {error.strerror}")
        return False
    run.status = "running"
    return True


def _finish(run, status=None, cause=None):
    """Settle a run's status by its exit code (papermill's own metadata says completed for a dead kernel too)."""
    if cause is None and (status or not (run.folder / "notebook.ipynb").is_file()):
        cause = _cause(run, status)
    seconds, counts = time.monotonic() - run.clock, manifest.progress(run)
    run.manifest |= {"status": "failed" if cause else "ok", "seconds": round(seconds, 3), "cause": cause}
    run.manifest["counts"] = {key: counts[key] for key in (*COUNTERS, "cost")}
    try:
        run.manifest["outputs"] = manifest.outputs(run.folder, tidy=not cause)
        run.manifest["written"] = manifest.written(run.folder)
        write_manifest(run)
    except OSError as error:
        cause = f"{cause + '; ' if cause else ''}cannot write {relative(run.folder)}/manifest.json: {error.strerror}"
    run.status, run.cause = "failed" if cause else "ok", cause or ""


def _cause(run, status):
    """Return the exception of the failed cell, or the end of papermill's own output."""
    cells = read_json(run.folder / "notebook.ipynb").get("cells", [])
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    errors = [output for output in outputs if output.get("output_type") == "error"]
    if errors:
        text = f"{errors[-1].get('ename')}: {errors[-1].get('evalue')}"
    else:
        with contextlib.suppress(OSError):
            log = (run.folder / "log.txt").read_text("utf-8", "replace")
        text = ([line for line in log.splitlines() if line.strip()] or ["no output"])[-1]
        text = f"{text} (exit status {status})"
    return plain(redact(text))[:400]


@contextlib.contextmanager
def _lock(folder):
    """Hold the sweep's folder; children inherit the lock, so the runs of a killed sweep keep it until they end."""
    with (folder / "lock").open("a+") as file:
        end = time.monotonic() + 10
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise InputError(f"{relative(folder)}: another sweep is at work there; wait for its end") from None
                time.sleep(0.2)
        yield file


@contextlib.contextmanager
def _signals():
    """Collect Ctrl-C, TERM and a closed terminal in a list instead of breaking off at any line."""
    stop, before = [], {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) not in (signal.SIG_IGN, None):  # nohup stays nohup
            before[number] = signal.signal(number, lambda number, frame: stop.append(number))
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
