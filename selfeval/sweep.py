"""Execute a sweep: one papermill process per run, resumable, with a manifest each and the causes of failure at the end.

Stages run in order. A run has the repository as working directory and leaves `<stage>/<slug>/` with `notebook.ipynb`,
`parameters.yaml`, `manifest.json`, `log.txt` and what the notebook writes to its `out`. The folder belongs to the
sweep: an ok run removes what an older run left in it. A run is skipped when its parameters, its notebook's code, the
package, the input data, the runs of all earlier stages (they may feed it through a corpus) and the files it wrote are
what they were when it ended ok. Otherwise it runs again, and the response store makes that free.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import yaml

from selfeval import DATA, ROOT
from selfeval.errors import InputError
from selfeval.sweepfile import SECRET_VALUE, load

COUNTERS = ("calls", "stored", "failed", "tokens")
GRACE = 3.0  # seconds that a child has to end by itself after a signal
LINE_EVERY = 10.0  # seconds between lines where there is no terminal
PACKAGES = ("selfeval", "papermill", "openai", "pandas", "numpy", "scipy", "xllamacpp")


def run_file(path, workers=2, out=None):
    """Execute the sweep file at `path` and return the exit status; `out` replaces the folder `data/runs/<name>`."""
    return run(load(path, out), workers=workers)


# Versions and manifests


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


def _notebook_hash(path):
    """Return a hash of a notebook's code cells: prose and outputs do not count."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [[cell["source"], cell.get("metadata", {}).get("tags")] for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()[:16]


def _packages():
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _read_json(path):
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write(path, text):
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write_manifest(run):
    _write(run.folder / "manifest.json", json.dumps(run.manifest, indent=1, default=str) + "\n")


def _outputs(folder, tidy):
    """Return the files that the notebook wrote to its folder, relative; `tidy` removes those older than this run."""
    own = {"manifest.json", "parameters.yaml", "progress.json", "written.txt", "log.txt"}
    files = {file: file.stat().st_ctime_ns for file in sorted(folder.rglob("*")) if file.is_file()}
    since = files.get(folder / "parameters.yaml", 0)  # by the clock of the file system, not of this machine
    if tidy:
        for file in [file for file, changed in files.items() if changed < since]:
            file.unlink()
            del files[file]
    return [file.relative_to(folder).as_posix() for file in files if file.name not in own and file.suffix != ".part"]


def _written(folder):
    """Return {path: digest} of the records that the notebook wrote outside its folder, such as a corpus."""
    with contextlib.suppress(OSError):
        paths = {Path(line) for line in (folder / "written.txt").read_text("utf-8").splitlines()}
        return {str(path): _digest(path) for path in sorted(paths) if not path.is_relative_to(folder)}
    return {}


def _digest(path):
    with contextlib.suppress(OSError):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    return None


# Executing


def run(sweep, workers=2):
    """Execute what is missing, `workers` notebooks at a time; return 0, 1 after failures, 128 + n after signal n."""
    if not isinstance(workers, int) or workers < 1:
        raise InputError(f"`workers` is {workers!r}, but must be a whole number of at least 1")
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{sweep.folder}: cannot make the folder for the outputs: {error.strerror}") from None
    code, packages, began = code_version(), _packages(), time.monotonic()
    with _lock(sweep.folder) as lock, _signals() as stop:
        for number, stage in enumerate(sweep.stages):
            earlier = [run for before in sweep.stages[:number] for run in before.runs]
            # Any of them: a stage may also read what an earlier one wrote elsewhere, such as a corpus.
            lost = [run for run in earlier if run.status in ("failed", "not started")]
            if lost:
                for each in stage.runs:
                    each.status, each.cause = "not started", f"not started because {lost[0].name} {lost[0].status}"
            elif not stop:
                inputs = {run.name: run.manifest.get("started") for run in earlier if run.status in ("ok", "skipped")}
                versions = {"notebook_hash": _notebook_hash(stage.runs[0].notebook), "code": code, "packages": packages}
                _run_stage(stage, workers, versions | {"inputs": inputs}, lock, stop)
    _report(sweep, time.monotonic() - began, stop)
    if stop:
        return 128 + stop[0]
    return int(any(each.status not in ("ok", "skipped") for stage in sweep.stages for each in stage.runs))


def _run_stage(stage, workers, common, lock, stop):
    for run in stage.runs:
        _plan(run, common)
    waiting, running = [run for run in stage.runs if run.status == "waiting"], []
    line = _Line(stage)
    try:
        while (waiting or running) and not stop:
            while waiting and len(running) < workers:
                run = waiting.pop(0)
                if _start(run, lock):
                    running.append(run)
            for run in [run for run in running if run.process.poll() is not None]:
                running.remove(run)
                _finish(run)
            line.show(running)
            time.sleep(0.1)
    finally:
        _end(running)
        for run in running:
            _finish(run, f"interrupted by {signal.Signals(stop[0]).name if stop else 'an error'}")
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
    old = _read_json(run.folder / "manifest.json")
    same = all(old.get(key) == run.manifest[key] for key in ("parameters_hash", "notebook_hash", "inputs"))
    same = same and (old.get("code") or {}).get("hash") == run.manifest["code"]["hash"]
    files = ["notebook.ipynb", *(old.get("outputs") or ())]
    same = same and all(_digest(path) == digest for path, digest in (old.get("written") or {}).items())
    if same and old.get("status") == "ok" and all((run.folder / file).is_file() for file in files):
        run.status, run.manifest = "skipped", old


def _start(run, lock):
    """Start papermill for a run; False, with the run failed, where that is not possible."""
    run.clock = time.monotonic()
    run.manifest |= {"status": "running", "started": datetime.now(UTC).isoformat()}
    files = {"SELFEVAL_PROGRESS": run.folder / "progress.json", "SELFEVAL_WRITTEN": run.folder / "written.txt"}
    env = os.environ | {name: str(file) for name, file in files.items()} | {"TQDM_DISABLE": "1"}
    command = [sys.executable, "-m", "papermill", str(run.notebook), str(run.folder / "notebook.ipynb")]
    command += ["-f", str(run.folder / "parameters.yaml"), "-k", "python3", "--no-progress-bar"]
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        for file in files.values():
            file.unlink(missing_ok=True)
        _write(run.folder / "parameters.yaml", yaml.safe_dump(run.parameters, sort_keys=False))
        _write_manifest(run)
        with (run.folder / "log.txt").open("wb") as log:
            run.process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, pass_fds=(lock.fileno(),), preexec_fn=_die_with_parent(),
            )  # fmt: skip
    except OSError as error:
        _finish(run, f"cannot start in {_relative(run.folder)}: {error.strerror}")
        return False
    run.status = "running"
    return True


def _finish(run, cause=None):
    """Settle a run's status by its exit code (papermill's own metadata says completed for a dead kernel too)."""
    if cause is None and (run.process.returncode or not (run.folder / "notebook.ipynb").is_file()):
        cause = _cause(run)
    seconds, progress = time.monotonic() - run.clock, _progress(run)
    run.manifest |= {"status": "failed" if cause else "ok", "seconds": round(seconds, 3), "cause": cause}
    run.manifest["counts"] = {key: progress[key] for key in (*COUNTERS, "cost")}
    try:
        run.manifest["outputs"] = _outputs(run.folder, tidy=not cause)
        run.manifest["written"] = _written(run.folder)
        _write_manifest(run)
    except OSError as error:
        cause = f"{cause + '; ' if cause else ''}cannot write {_relative(run.folder)}/manifest.json: {error.strerror}"
    run.status, run.cause = "failed" if cause else "ok", cause or ""


def _cause(run):
    """Return the exception of the failed cell, or the end of papermill's own output."""
    cells = _read_json(run.folder / "notebook.ipynb").get("cells", [])
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    errors = [output for output in outputs if output.get("output_type") == "error"]
    if errors:
        text = f"{errors[-1].get('ename')}: {errors[-1].get('evalue')}"
    else:
        with contextlib.suppress(OSError):
            log = (run.folder / "log.txt").read_text("utf-8", "replace")
        text = ([line for line in log.splitlines() if line.strip()] or ["no output"])[-1]
        text = f"{text} (exit status {run.process.returncode})"
    return _plain(SECRET_VALUE.sub("[secret]", text))[:400]


def _end(runs):
    """End processes within five seconds: TERM, then KILL for papermill and its kernel, with what shares their sessions.

    What a notebook started in a session of its own, like the shared server of the embedded model, stays.
    """
    import psutil

    family = set()
    for run in runs:
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            parent = psutil.Process(run.process.pid)
            sessions = {os.getsid(each.pid) for each in (parent, *parent.children())}
            family.update(each for each in parent.children(recursive=True) if os.getsid(each.pid) in sessions)
            parent.terminate()
    for run in runs:
        family.add(run.process.pid)
    end = time.monotonic() + GRACE
    while time.monotonic() < end and any(run.process.poll() is None for run in runs):
        time.sleep(0.05)
    for each in family:
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            os.kill(each, signal.SIGKILL) if isinstance(each, int) else each.kill()
    for run in runs:
        run.process.wait()


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
                    raise InputError(f"{_relative(folder)}: another sweep is at work there; wait for its end") from None
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


def _die_with_parent():
    """Return what makes a child on Linux get TERM when this process is killed outright."""
    if sys.platform != "linux":
        return None
    import ctypes

    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


# Showing


class _Line:
    """One live line on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, stage):
        self.stage, self.live, self.began = stage, sys.stderr.isatty(), time.monotonic()
        self.skipped = sum(run.status == "skipped" for run in stage.runs)
        self.next = 0.0
        if not self.live:
            done = f", {self.skipped} done before" if self.skipped else ""
            print(f"{stage.name}: {len(stage.runs)} runs{done}", file=sys.stderr, flush=True)
            self.next = self.began + LINE_EVERY

    def show(self, running):
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + (0.5 if self.live else LINE_EVERY)
        text = self.text(running)
        if self.live:
            text = "\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1]
        print(text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def text(self, running):
        now = [_progress(run) for run in running]
        ended = [run.manifest["counts"] for run in self.stage.runs if run.status in ("ok", "failed")]
        total = {key: sum(each[key] for each in (*now, *ended)) for key in COUNTERS}
        parts = [f"{self.stage.name}: {len(ended) + self.skipped}/{len(self.stage.runs)} runs"]
        if any(each["total"] for each in now):
            label = f" {now[0]['label']}" if len(now) == 1 else ""
            parts.append(f"now{label} {sum(each['done'] for each in now)}/{sum(each['total'] for each in now)}")
        parts.append(f"{total['calls']} calls, {total['stored']} stored, {total['failed']} failed")
        share = len(ended) + sum(min(each["done"] / each["total"], 1) for each in now if each["total"])
        if share:
            rest = (len(self.stage.runs) - self.skipped - share) / share * (time.monotonic() - self.began)
            parts.append(f"about {_duration(rest)} left in this stage")
        return " · ".join(parts)

    def close(self):
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _report(sweep, seconds, stop):
    """Print what ran, what it cost, where it lies, and what failed why."""
    runs = [run for stage in sweep.stages for run in stage.runs]
    width = max(len(stage.name) for stage in sweep.stages)
    for stage in sweep.stages:
        statuses = [run.status for run in stage.runs]
        states = [
            s for s in ("ok", "skipped", "failed", "not started", "waiting") if s in statuses or s in ("ok", "failed")
        ]
        print(f"{stage.name:{width}}  " + ", ".join(f"{statuses.count(state)} {state}" for state in states))
    counts = [run.manifest["counts"] for run in runs if run.status in ("ok", "failed")]
    total = {key: sum(each[key] for each in counts) for key in COUNTERS}
    cost = sum(each["cost"] or 0 for each in counts)
    money = f", {cost:.4f} USD" if cost else ""
    print(f"{total['calls']} calls{money}, {total['stored']} replies from the store, {_duration(seconds)}")
    print(f"outputs: {_relative(sweep.folder)}")
    for run in runs:
        if run.cause:
            print(f"{run.status}: {run.name}: {run.cause}")
            if run.status == "failed" and (run.folder / "notebook.ipynb").is_file():
                print(f"  see {_relative(run.folder / 'notebook.ipynb')}")
    if stop:
        print(f"stopped by {signal.Signals(stop[0]).name}; run the same command again to resume: replies are stored")
    elif any(run.cause for run in runs):
        print("run the same command again for what is missing: finished runs are skipped, stored replies are free")


def _plain(text):
    """Return text on one line without control characters: it may come from a model."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def _progress(run):
    """Return what the package inside a run's notebook last wrote, with 0 for what is not there."""
    seen = _read_json(run.folder / "progress.json")
    counts = {k: v if isinstance(v := seen.get(k), int) else 0 for k in (*COUNTERS, "done", "total")}
    cost = seen.get("cost")
    counts["cost"] = cost if isinstance(cost, int | float) else None
    return counts | {"label": _plain(seen.get("label", ""))}


def _duration(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _relative(path):
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
