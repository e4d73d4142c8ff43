"""Sweep files: read one, expand its grids into runs, and check everything before the first call.

name: demo
stages:
- notebook: 01_generate_texts            # a stem in notebooks/, or a path relative to the sweep file
  parameters: {corpus: demo, limit: 40, models: [sim/perfect, sim/chance]}  # the same for all runs
- notebook: 02_collect_predictions
  parameters: {corpus: demo, answer: free}
  grid: {evaluators: [sim/perfect, sim/chance], told: [true, false]}  # four runs; `zip` pairs equally long lists
- notebook: 07_existence
  list: [{evaluators: sim/perfect, names: 3}, {evaluators: sim/chance}]   # two runs, each as it is written
  after: []                              # waits for no other stage
- notebook: 03_self_recognition
  name: analysis                         # the notebook's stem unless given
  parameters: {corpus: demo, predictions: "{02_collect_predictions}"}       # the run folders of that earlier stage

Runs of one notebook write apart: each has a folder of its own as `out` where that is not given. A run waits for all
stages before its own, since any of them may write what it reads; `after` names those that it waits for instead. For the
stages that its parameters refer to as "{stage}" it waits in any case. `replaces_samples: true` beside `name` lets its
runs replace committed samples (`selfeval.files.keep_samples`).
"""

import hashlib
import itertools
import json
import math
import re
import sys
from pathlib import Path

import yaml

from selfeval import DATA, ROOT
from selfeval.errors import InputError
from selfeval.sweep.parameters import declared_parameters, parameter_fault, suggest, type_fault
from selfeval.sweep.runs import Run, Stage, Sweep

MAX_RUNS = 10_000  # of one stage
MAX_VALUES = 1_000_000  # of one file
TARGETS = {"01_generate_texts": "corpus"}  # the parameter that says where a notebook writes; elsewhere `out`


def load(path, out=None):
    """Read a sweep file, expand its runs and check them all; raise one InputError that lists every problem."""
    path = Path(path)
    spec = _read_yaml(path)
    where, problems = "the file", []

    def say(problem):
        problems.append(f"{where}: {problem}")

    def check_keys(mapping, known):
        for key in mapping.keys() - {*known}:
            say(f"there is no key {key!r}{suggest(key, known)}")

    stages = spec.get("stages") if isinstance(spec, dict) else None
    if not isinstance(stages, list) or not stages or not all(isinstance(stage, dict) for stage in stages):
        raise InputError(f"{path}: a sweep file is a mapping with `name` and `stages`, a list of mappings")
    check_keys(spec, ("name", "stages", "replaces_samples"))
    if not _is_name(spec.get("name")):
        say(f"`name` is {spec.get('name')!r}, but must be letters, digits, dots, dashes or underscores")
    if fault := type_fault(replaces := spec.get("replaces_samples", False), "bool"):
        say(f"`replaces_samples` {fault}")
    folder = Path(out or DATA / "runs" / str(spec.get("name"))).absolute()
    done = []
    for number, entry in enumerate(stages, 1):
        where = f"stage {number}"
        check_keys(entry, ("notebook", "name", "parameters", "grid", "zip", "list", "after"))
        notebook = _find_notebook(entry.get("notebook"), path.parent, say)
        name = entry.get("name", notebook.stem if notebook else f"stage-{number}")
        where = f"stage {name!r}"
        if not _is_name(name):
            say("a name must be letters, digits, dots, dashes or underscores; give `name`")
        elif str(name).lower() in {stage.name.lower() for stage in done}:
            say("the name is used twice; give one of them another `name`")
        known, before = {stage.name: stage for stage in done}, len(problems)
        sets = _expand(entry, say)
        stage = Stage(str(name), [])
        declared, after = _declared(notebook, say), _after(entry, known, say)
        for given, varying in sets:
            run = _make_run(stage, notebook, given, varying, after, declared, folder, known, say)
            run.variables = {"SELFEVAL_REPLACE_SAMPLES": "1"} if replaces else {}
            if len(problems) == before:
                stage.runs.append(run)
        twice = [run.folder.name for run in stage.runs]
        if len({*map(str.lower, twice)}) < len(twice):
            say("the same parameters stand there twice")
        done.append(stage)
    problems += _written_twice(run for stage in done for run in stage.runs if run.notebook)
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
        if (count := _written_out(data, {})) > MAX_VALUES:
            raise ValueError(f"{count} values with every alias written out; at most {MAX_VALUES} are read")
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


def _written_out(value, known):
    """Return how many values there are once every alias stands for what it names: nested ones multiply."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = 0  # of what is inside itself
        known[id(value)] = 1 + sum(
            _written_out(v, known) for v in (value.values() if isinstance(value, dict) else value)
        )
    return known[id(value)]


def _written_twice(runs):
    """Return a problem for every place that two runs of one notebook would write: the later one would replace it."""
    found = {}
    for run in runs:
        name = TARGETS.get(run.notebook.stem, "out")
        if name in run.parameters:
            found.setdefault((run.notebook, name, str(run.parameters[name])), []).append(run.name)
    return [
        f"{' and '.join(names[:2])} write to one `{name}`, {place!r}, and would replace each other's files; "
        + ("put the models into one list" if name == "corpus" else "leave it out")
        + f", or give each run another `{name}`"
        for (_, name, place), names in found.items()
        if len(names) > 1
    ]


def _find_notebook(given, base, say):
    known = {file.stem: file for file in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    if not isinstance(given, str):
        say("`notebook` is missing")
        return None
    stem = given.removesuffix(".ipynb")
    for file in (known.get(stem), base / given, base / f"{given}.ipynb"):
        if file and file.is_file():
            return file.resolve()
    say(f"there is no notebook {given!r}{suggest(stem, known)}")
    return None


def _declared(notebook, say):
    """Return {parameter: (annotation, default as it stands there)} of a notebook; None when it cannot be read."""
    if notebook is None:
        return None
    try:
        found = declared_parameters(notebook)
        return {name: (each["inferred_type_name"], yaml.safe_load(each["default"])) for name, each in found.items()}
    except Exception as error:  # papermill and nbformat raise many kinds
        say(f"{notebook.name} is no readable notebook ({type(error).__name__})")
        return None


def _after(entry, known, say):
    """Return the names of the stages that a stage waits for, whatever its parameters refer to."""
    after = entry.get("after", [*known])
    if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
        say("`after` is a list of names of earlier stages, or [] for none")
        return []
    for name in after:
        if name not in known:
            say(f"`after` names {name!r}{suggest(name, known)}; stages before this one: {', '.join(known) or 'none'}")
    return after


def _expand(entry, say):
    """Return [(parameters, names that vary)], one per run."""
    fixed, grid, pairs = (entry.get(part) or {} for part in ("parameters", "grid", "zip"))
    listed = entry.get("list") or []
    mappings = all(isinstance(part, dict) for part in (fixed, grid, pairs))
    if not mappings or sum(map(bool, (grid, pairs, listed))) > 1:
        say("`parameters` is a mapping, and so is `grid` or `zip`; of grid, zip and list there is one")
        return []
    if "list" in entry:
        return _expand_list(fixed, listed, say)
    varying = grid or pairs
    if wrong := [name for name, values in varying.items() if not isinstance(values, list) or not values]:
        say(f"the values of `{wrong[0]}` in grid or zip are not a list with entries")
        return []
    _check_apart(fixed, varying, say)
    lengths = {name: len(values) for name, values in varying.items()}
    if pairs and len({*lengths.values()}) > 1:
        say(f"the lists of `zip` differ in length: {lengths}")
        return []
    if grid and (count := math.prod(lengths.values())) > MAX_RUNS:
        say(f"the grid has {count} runs; at most {MAX_RUNS} are possible in a stage")
        return []
    rows = zip(*pairs.values(), strict=True) if pairs else itertools.product(*grid.values())
    return [({**fixed, **dict(zip(varying, row, strict=True))}, list(varying)) for row in rows]


def _expand_list(fixed, listed, say):
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        say("`list` is a list of parameter sets, each of them a mapping")
        return []
    _check_apart(fixed, {name: None for each in listed for name in each}, say)
    return [({**fixed, **each}, list(each)) for each in listed]


def _check_apart(fixed, varying, say):
    if both := varying.keys() & fixed.keys():
        say(f"{', '.join(sorted(map(repr, both)))} is both fixed and varying")


def _make_run(stage, notebook, given, varying, after, declared, folder, known, say):
    """Return the run of one set of parameters, with stage references and `out` filled in."""
    portable, actual, needs = {}, {}, dict.fromkeys(after)
    for name, value in given.items():
        if fault := parameter_fault(name, value, declared):
            say(fault)
            continue
        names, wrong = _referenced(value, known)
        if wrong:
            say(f"`{name}` refers to {wrong}; stages before this one: {', '.join(known) or 'none'}")
            continue
        kind, _ = (declared or {}).get(name, ("None", None))
        portable[name] = actual[name] = value
        if names is not None:
            needs |= dict.fromkeys(names)
            runs = [run for stage in names for run in known[stage].runs]
            portable[name], actual[name] = [run.name for run in runs], [str(run.folder) for run in runs]
            if kind == "str" and len(runs) == 1:
                actual[name] = actual[name][0]
        if fault := type_fault(actual[name], kind):
            say(f"`{name}` {fault}")
    if notebook and TARGETS.get(notebook.stem) in (declared or {}):
        actual.setdefault(TARGETS[notebook.stem], declared[TARGETS[notebook.stem]][1])
    key = hashlib.sha256(json.dumps(portable, sort_keys=True, default=str).encode()).hexdigest()[:10]
    target = folder / stage.name / _slug({name: given[name] for name in varying}, key)
    if not target.resolve().is_relative_to(folder.resolve()):
        say(f"the folder {target} leads out of {folder}")
    if declared and "out" in declared and "out" not in given:
        actual["out"] = str(target)
    seeds = {name: default for name, (_, default) in (declared or {}).items()} | actual
    seeds = {name: value for name, value in seeds.items() if name == "seed" or name.endswith("_seed")}
    return Run(stage.name, notebook, target, actual, key, tuple(needs), seeds)


def _referenced(value, known):
    """Return the stages that `"{stage}"`, or a list of such, names (None for a plain value), and what is wrong."""
    parts = value if isinstance(value, list) else [value]
    names = [part[1:-1] for part in parts if isinstance(part, str) and re.fullmatch(r"\{[^{}]*\}", part)]
    if not names:
        return None, None
    if wrong := [name for name in names if name not in known]:
        return None, f"the unknown stage {wrong[0]!r}{suggest(wrong[0], known)}"
    if len(names) < len(parts):
        return None, "stages and other values in one list"
    return names, None


def _slug(varying, key):
    """Return a folder name that shows what varies; the hash keeps apart what looks alike, also in letter case."""
    parts = []
    for name, value in varying.items():
        text = value if isinstance(value, str) else f"{name}-{json.dumps(value, default=str)}"
        parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:40])
    return "_".join([*[*filter(None, parts)][:4], key])


def _is_name(text):
    return isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", text, re.ASCII) is not None


def _other_kernel():
    """Return the interpreter that a kernel would run on where it is not this one, else None."""
    from jupyter_client.kernelspec import KernelSpecManager

    command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    same = re.fullmatch(r"python(3(\.\d+)?)?", command) or Path(command).absolute() == Path(sys.executable).absolute()
    return None if same else command  # jupyter_client replaces a bare `python` by sys.executable
