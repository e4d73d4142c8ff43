"""Run notebooks over a grid of parameters: read a sweep file, check it, execute, resume, report.

    name: demo
    stages:
    - notebook: 01_generate_texts            # a stem in notebooks/, or a path relative to the sweep file
      parameters: {corpus: demo, limit: 40}  # the same for all runs
      grid: {models: [sim/perfect, sim/chance], seed: [0, 1]}     # four runs; `zip` pairs equally long lists
    - notebook: 03_self_recognition
      parameters: {predictions: "{02_collect_predictions}"}       # the run folders of that earlier stage

Stages run in order, each run is one papermill process with the repository as working directory, and leaves
`<stage>/<slug>/` with `notebook.ipynb`, `parameters.yaml`, `manifest.json`, `log.txt` and what the notebook writes to
its `out`. The folder belongs to the sweep: an ok run removes what an older run left in it. A run is skipped when its
parameters, its notebook's code, the package, the input data, and the runs of all earlier stages (they may feed it
through a corpus) are what they were when it ended ok. Otherwise it runs again, and the store makes that free.
"""

import contextlib
import difflib
import fcntl
import hashlib
import importlib.metadata
import itertools
import json
import keyword
import math
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml

from selfeval import DATA, ROOT
from selfeval.errors import InputError

MAX_RUNS = 10_000  # of one stage
GRACE = 3.0  # seconds that a child has to end by itself after a signal
LINE_EVERY = 10.0  # seconds between lines where there is no terminal
PACKAGES = ("selfeval", "papermill", "openai", "pandas", "numpy", "scipy", "xllamacpp")
COUNTERS = ("calls", "stored", "failed", "tokens")
SECRET_WORDS = {"key", "apikey", "token", "secret", "secrets", "password", "passwords", "passwd", "credentials"}
SECRET_VALUE = re.compile(
    r"\b(sk|pk|rk)-[\w-]{12,}|\b(hf|ghp|gsk|xox[bp])[_-]\w{16,}|\bAIza[\w-]{20,}|\bBearer \S{12,}"
)


@dataclass
class Run:
    """One execution of one notebook; `status` is ok, skipped, failed or `not started`."""

    stage: str
    notebook: Path
    folder: Path
    parameters: dict  # as the notebook gets them
    key: str  # hash of the parameters, the same wherever the outputs lie
    status: str = "waiting"
    cause: str = ""
    manifest: dict = field(default_factory=dict)
    process: subprocess.Popen | None = None
    clock: float = 0.0

    @property
    def name(self):
        return f"{self.stage}/{self.folder.name}"

    def progress(self):
        """Return what the package inside the notebook last wrote, with 0 for what is not there."""
        seen = _read_json(self.folder / "progress.json")
        counts = {k: v if isinstance(v := seen.get(k), int) else 0 for k in (*COUNTERS, "done", "total")}
        cost = seen.get("cost")
        counts["cost"] = cost if isinstance(cost, int | float) else None
        return counts | {"label": _plain(seen.get("label", ""))}


@dataclass
class Stage:
    name: str
    runs: list[Run]
    needs: set[str]  # names of the earlier stages whose run folders are parameters here


@dataclass
class Sweep:
    name: str
    folder: Path
    stages: list[Stage]


def run_file(path, workers=2, out=None):
    """Execute the sweep file at `path` and return the exit status; `out` replaces the folder `data/runs/<name>`."""
    return run(load(path, out), workers=workers)


# Reading and checking: everything here happens before the first call.


def load(path, out=None):
    """Read a sweep file, expand its runs and check them all; raise one InputError that lists every problem."""
    path = Path(path)
    spec = _read_yaml(path)
    where, problems = "the file", []

    def say(problem):
        problems.append(f"{where}: {problem}")

    def check_keys(mapping, known):
        for key in mapping.keys() - {*known}:
            say(f"there is no key {key!r}{_suggest(key, known)}")

    stages = spec.get("stages") if isinstance(spec, dict) else None
    if not isinstance(stages, list) or not stages or not all(isinstance(stage, dict) for stage in stages):
        raise InputError(f"{path}: a sweep file is a mapping with `name` and `stages`, a list of mappings")
    check_keys(spec, ("name", "stages"))
    if not _is_name(spec.get("name")):
        say(f"`name` is {spec.get('name')!r}, but must be letters, digits, dots, dashes or underscores")
    folder = Path(out or DATA / "runs" / str(spec.get("name"))).absolute()
    done = []
    for number, entry in enumerate(stages, 1):
        where = f"stage {number}"
        check_keys(entry, ("notebook", "name", "parameters", "grid", "zip"))
        notebook = _find_notebook(entry.get("notebook"), path.parent, say)
        name = entry.get("name", notebook.stem if notebook else f"stage-{number}")
        where = f"stage {name!r}"
        if not _is_name(name):
            say("a name must be letters, digits, dots, dashes or underscores; give `name`")
        elif str(name).lower() in {stage.name.lower() for stage in done}:
            say("the name is used twice; give one of them another `name`")
        known, before = {stage.name: stage for stage in done}, len(problems)
        sets = _expand(entry, say)
        stage = Stage(str(name), [], set())
        declared = _declared(notebook, say)
        for given, varying in sets:
            run = _make_run(stage, notebook, given, varying, declared, folder, known, say)
            if len(problems) == before:
                stage.runs.append(run)
        twice = [run.folder.name for run in stage.runs]
        if len({*map(str.lower, twice)}) < len(twice):
            say("the same parameters stand in the grid twice")
        done.append(stage)
    if other := _other_kernel():
        problems.append(f"the kernel python3 is {other}, not {sys.executable}: set JUPYTER_PREFER_ENV_PATH=1")
    if problems:
        problems = list(dict.fromkeys(problems))
        lines = problems[0] if len(problems) == 1 else "".join(f"\n  - {problem}" for problem in problems)
        raise InputError(f"{path}: {lines}")
    return Sweep(spec["name"], folder, done)


def _read_yaml(path):
    """Read YAML without tags that make objects, and without keys that silently win over an earlier one."""

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            names = [key.value for key, _ in node.value if not isinstance(key.value, list)]
            if twice := [name for name in names if names.count(name) > 1]:
                raise yaml.constructor.ConstructorError(None, None, f"the key {twice[0]!r} twice", node.start_mark)
            return super().construct_mapping(node, deep)

    try:
        data = yaml.load(path.read_text("utf-8"), Loader)  # a SafeLoader
        json.dumps(data, default=str)  # no mapping inside itself, no keys but scalars
        return data
    except OSError as error:
        raise InputError(f"{path}: cannot read the sweep file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the sweep file is not UTF-8 text") from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:  # without the line's text: it may be a key
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise InputError(f"{path}: not plain YAML{line}: {getattr(error, 'problem', None) or error}") from None


def _find_notebook(given, base, say):
    known = {file.stem: file for file in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    if not isinstance(given, str):
        say("`notebook` is missing")
        return None
    stem = given.removesuffix(".ipynb")
    for file in (known.get(stem), base / given, base / f"{given}.ipynb"):
        if file and file.is_file():
            return file.resolve()
    say(f"there is no notebook {given!r}{_suggest(stem, known)}")
    return None


def _declared(notebook, say):
    """Return {parameter: annotation} of a notebook; None when it cannot be read."""
    if notebook is None:
        return None
    from papermill import inspect_notebook

    try:
        return {name: each["inferred_type_name"] for name, each in inspect_notebook(str(notebook)).items()}
    except Exception as error:  # papermill and nbformat raise many kinds
        say(f"{notebook.name} is no readable notebook ({type(error).__name__})")
        return None


def _expand(entry, say):
    """Return [(parameters, names that vary)], one per run."""
    fixed, grid, pairs = (entry.get(part) or {} for part in ("parameters", "grid", "zip"))
    if not all(isinstance(part, dict) for part in (fixed, grid, pairs)) or (grid and pairs):
        say("`parameters` is a mapping, and so is `grid` or `zip`, of which there is one")
        return []
    varying = grid or pairs
    if wrong := [name for name, values in varying.items() if not isinstance(values, list) or not values]:
        say(f"the values of `{wrong[0]}` in grid or zip are not a list with entries")
        return []
    if both := varying.keys() & fixed.keys():
        say(f"{', '.join(sorted(map(repr, both)))} is both fixed and varying")
    lengths = {name: len(values) for name, values in varying.items()}
    if pairs and len({*lengths.values()}) > 1:
        say(f"the lists of `zip` differ in length: {lengths}")
        return []
    if grid and (count := math.prod(lengths.values())) > MAX_RUNS:
        say(f"the grid has {count} runs; at most {MAX_RUNS} are possible in a stage")
        return []
    rows = zip(*pairs.values(), strict=True) if pairs else itertools.product(*grid.values())
    return [({**fixed, **dict(zip(varying, row, strict=True))}, list(varying)) for row in rows]


def _make_run(stage, notebook, given, varying, declared, folder, known, say):
    """Return the run of one set of parameters, with stage references and `out` filled in."""
    portable, actual = {}, {}
    for name, value in given.items():
        if fault := _parameter_fault(name, value, declared):
            say(fault)
            continue
        runs, wrong = _referenced(value, known)
        if wrong:
            say(f"`{name}` refers to {wrong}; stages before this one: {', '.join(known) or 'none'}")
            continue
        kind = (declared or {}).get(name, "None")
        portable[name] = actual[name] = value
        if runs is not None:
            stage.needs.update(run.stage for run in runs)
            portable[name], actual[name] = [run.name for run in runs], [str(run.folder) for run in runs]
            if kind == "str" and len(runs) == 1:
                actual[name] = actual[name][0]
        if fault := _type_fault(actual[name], kind):
            say(f"`{name}` {fault}")
    key = hashlib.sha256(json.dumps(portable, sort_keys=True, default=str).encode()).hexdigest()[:10]
    target = folder / stage.name / _slug({name: given[name] for name in varying}, key)
    if not target.resolve().is_relative_to(folder.resolve()):
        say(f"the folder {target} leads out of {folder}")
    if declared and "out" in declared and "out" not in given:
        actual["out"] = str(target)
    return Run(stage.name, notebook, target, actual, key)


def _referenced(value, known):
    """Return the runs that `"{stage}"`, or a list of such, stands for (None for a plain value), and unknown names."""
    parts = value if isinstance(value, list) else [value]
    names = [part[1:-1] for part in parts if isinstance(part, str) and re.fullmatch(r"\{[^{}]*\}", part)]
    if not names:
        return None, None
    if wrong := [name for name in names if name not in known]:
        return None, f"the unknown stage {wrong[0]!r}{_suggest(wrong[0], known)}"
    if len(names) < len(parts):
        return None, "stages and other values in one list"
    return [run for name in names for run in known[name].runs], None


def _parameter_fault(name, value, declared):
    """Return what forbids to pass a parameter on: papermill injects names as code and stores values three times."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        return f"{str(name)[:60]!r} is no parameter name"
    leaves = [*_leaves(name, value)]
    if any(_is_secret(*leaf) for leaf in leaves):
        return f"`{name}` looks like a secret; keys come from the environment (or .env), never from parameters"
    if declared is not None and name not in declared:
        listed = ", ".join(declared) or "none"
        return f"the notebook has no parameter {name!r}{_suggest(name, declared)}; it declares {listed}"
    for key, leaf in leaves:
        finite = not isinstance(leaf, float) or math.isfinite(leaf)
        if not isinstance(key, str) or not isinstance(leaf, str | int | float | None) or not finite:
            return f"`{name}` has {leaf or key!s:.40}, which is no plain literal; quote it if text is meant"
    return None


def _leaves(name, value):
    """Yield (name, value) for each scalar inside a parameter, and (key, None) for each key of a mapping."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key, None
            yield from _leaves(key, part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(name, part)
    else:
        yield name, value


def _is_secret(name, value):
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", str(name))
    return bool(SECRET_WORDS & {*map(str.lower, words)} or (isinstance(value, str) and SECRET_VALUE.search(value)))


def _type_fault(value, kind):
    """Return how a value breaks its annotation, with the trap of YAML that it fell into; None when it keeps it."""
    outer, _, inner = kind.replace(" ", "").partition("[")
    if outer == "list":
        if not isinstance(value, list):
            return None if isinstance(value, str) else _mismatch(value, "a list or one string")
        faults = (_type_fault(part, inner.removesuffix("]") or "plain") for part in value)
        return next(filter(None, faults), None)
    types = {"int": int, "float": int | float, "str": str, "bool": bool, "dict": dict, "plain": object}
    fits = isinstance(value, types.get(outer, object))
    if fits and (outer in ("bool", "dict", "str") or outer not in types or not isinstance(value, bool)):
        return None
    return _mismatch(value, "text or a number" if outer == "plain" else outer)


def _mismatch(value, kind):
    text = f"is {json.dumps(value, default=str)[:60]}, but must be {kind}"
    if kind in ("int", "float") and isinstance(value, str):
        if match := re.fullmatch(r"([+-]?\d+)(\.\d*)?[eE]([+-]?)(\d+)", value):
            whole, part, sign, power = match.groups()
            return f"{text}: YAML 1.1 reads {value} as text, write {whole}{part or '.0'}e{sign or '+'}{power}"
        return f"{text}: write it without quotes"
    if kind in ("int", "float", "bool", "dict") or not isinstance(value, int | float):
        return text
    return f"{text}: {'YAML reads no, yes, on and off as booleans, ' * isinstance(value, bool)}quote it"


def _slug(varying, key):
    """Return a folder name that shows what varies; the hash keeps apart what looks alike, also in letter case."""
    parts = []
    for name, value in varying.items():
        text = value if isinstance(value, str) else f"{name}-{json.dumps(value, default=str)}"
        parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:40])
    return "_".join([*[*filter(None, parts)][:4], key])


def _is_name(text):
    return isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", text, re.ASCII) is not None


def _suggest(name, known):
    near = difflib.get_close_matches(str(name), [*known], 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _other_kernel():
    """Return the interpreter that a kernel would run on where it is not this one, else None."""
    from jupyter_client.kernelspec import KernelSpecManager

    command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    same = re.fullmatch(r"python(3(\.\d+)?)?", command) or Path(command).absolute() == Path(sys.executable).absolute()
    return None if same else command  # jupyter_client replaces a bare `python` by sys.executable


# Versions and manifests


def code_version():
    """Return the commit, for information, and a hash of the package and of the input data, which decides."""
    commit = None
    with contextlib.suppress(OSError):
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip() or None
    files = [*ROOT.glob("selfeval/*.py"), *DATA.glob("*.yaml"), *DATA.glob("*.json*"), *DATA.glob("identity/*.json")]
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
    own = {"manifest.json", "parameters.yaml", "progress.json", "log.txt"}
    files = {file: file.stat().st_ctime_ns for file in sorted(folder.rglob("*")) if file.is_file()}
    since = files.get(folder / "parameters.yaml", 0)  # by the clock of the file system, not of this machine
    if tidy:
        for file in [file for file, changed in files.items() if changed < since]:
            file.unlink()
            del files[file]
    return [file.relative_to(folder).as_posix() for file in files if file.name not in own and file.suffix != ".part"]


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
            lost = [run for run in earlier if run.stage in stage.needs and run.status in ("failed", "not started")]
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
    same = same and ("out" not in run.parameters or Path(ROOT, str(run.parameters["out"])).exists())
    if same and old.get("status") == "ok" and all((run.folder / file).is_file() for file in files):
        run.status, run.manifest = "skipped", old


def _start(run, lock):
    """Start papermill for a run; False, with the run failed, where that is not possible."""
    run.clock = time.monotonic()
    run.manifest |= {"status": "running", "started": datetime.now(UTC).isoformat()}
    env = os.environ | {"SELFEVAL_PROGRESS": str(run.folder / "progress.json"), "TQDM_DISABLE": "1"}
    command = [sys.executable, "-m", "papermill", str(run.notebook), str(run.folder / "notebook.ipynb")]
    command += ["-f", str(run.folder / "parameters.yaml"), "-k", "python3", "--no-progress-bar"]
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "progress.json").unlink(missing_ok=True)
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
    seconds, progress = time.monotonic() - run.clock, run.progress()
    run.manifest |= {"status": "failed" if cause else "ok", "seconds": round(seconds, 3), "cause": cause}
    run.manifest["counts"] = {key: progress[key] for key in (*COUNTERS, "cost")}
    try:
        run.manifest["outputs"] = _outputs(run.folder, tidy=not cause)
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
        now = [run.progress() for run in running]
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
            parts.append(f"about {_duration(rest)} left")
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


def _duration(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _relative(path):
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
