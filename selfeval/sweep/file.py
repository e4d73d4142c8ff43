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
import keyword
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml

from selfeval import DATA, ROOT
from selfeval.errors import InputError, did_you_mean
from selfeval.keys import SECRET_VALUE, is_secret_name
from selfeval.sweep.runs import USABLE, Run, Sweep

MAX_RUNS = 10_000  # of one stage
MAX_VALUES = 1_000_000  # of one file
TARGETS = {"01_generate_texts": "corpus"}  # the parameter that says where a notebook writes; elsewhere `out`
KEYS = ("notebook", "name", "parameters", "grid", "zip", "list", "after")
TYPES = {"int": int, "float": int | float, "str": str, "bool": bool, "dict": dict, "list": str}
YAML = "YAML reads no, yes, on and off as booleans, and 1e-3 as text: quote text, write numbers plainly, as 1.0e-3"


def load(path, out=None):
    """Read a sweep file, expand its runs and check them all; raise one InputError that lists every problem.

    out: a folder that replaces `data/runs/<name>`.
    """
    path = Path(path)
    spec = _read_yaml(path)
    entries = spec.get("stages") if isinstance(spec, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path}: a sweep file is a mapping with `name` and `stages`, a list of mappings")
    problems = [*_unknown(spec, ("name", "stages", "replaces_samples"))]
    if not _is_name(spec.get("name")):
        problems.append(f"`name` is {spec.get('name')!r}, but must be letters, digits, dots, dashes or underscores")
    if fault := type_fault(replaces := spec.get("replaces_samples", False), "bool"):
        problems.append(f"`replaces_samples` {fault}")
    sweep = Sweep(spec.get("name"), Path(out or DATA / "runs" / str(spec.get("name"))).absolute(), [])
    problems = [f"the file: {problem}" for problem in problems]
    for number, entry in enumerate(entries, 1):
        stage = Stage(f"stage-{number}", entry=entry, known={stage.name: stage for stage in sweep.stages})
        stage.check(path.parent)
        stage.expand(sweep.folder, {"SELFEVAL_REPLACE_SAMPLES": "1"} if replaces else {})
        problems += [f"stage {stage.name!r}: {problem}" for problem in stage.problems]
        sweep.stages.append(stage)
    problems += _written_twice(sweep.runs)
    if problems:
        problems = list(dict.fromkeys(problems))
        lines = problems[0] if len(problems) == 1 else "".join(f"\n  - {problem}" for problem in problems)
        raise InputError(f"{path}: {lines}")
    return sweep


@dataclass
class Stage:
    """The runs of one notebook; of a file, with its entry there and the stages before it."""

    name: str
    runs: list[Run] = field(default_factory=list)
    entry: dict = field(default_factory=dict)
    known: dict[str, "Stage"] = field(default_factory=dict)
    notebook: Path | None = None
    declared: dict = field(default_factory=dict)  # parameter: (annotation, default as it stands in the notebook)
    after: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @cached_property
    def digest(self):
        """Return a digest of the executions of its settled runs: another one when one of them was executed again."""
        usable = [run for run in self.runs if run.status in USABLE and run.status != "to do"]
        made = [(run.name, run.manifest.get("started")) for run in usable]
        return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:16]

    @cached_property
    def lost(self):
        """Return the first of its settled runs on which later stages cannot run, None where they can."""
        return next((run for run in self.runs if run.status not in USABLE), None)

    def check(self, base):
        """Find the notebook, what it declares, the stage's name, and the stages that it waits for."""
        say, after = self.problems.append, self.entry.get("after", [*self.known])
        self.problems += _unknown(self.entry, KEYS)
        self.notebook = self._find_notebook(base)
        self.name = str(self.entry.get("name", self.notebook.stem if self.notebook else self.name))
        if not _is_name(self.entry.get("name", self.name)):
            say("a name must be letters, digits, dots, dashes or underscores; give `name`")
        elif self.name.lower() in map(str.lower, self.known):
            say("the name is used twice; give one of them another `name`")
        if self.notebook:
            try:
                self.declared = declared_parameters(self.notebook)
            except Exception as error:  # papermill and nbformat raise many kinds
                say(f"{self.notebook.name} is no readable notebook ({type(error).__name__})")
        if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
            say("`after` is a list of names of earlier stages, or [] for none")
        elif wrong := [name for name in after if name not in self.known]:
            say(f"`after` names {wrong[0]!r}{did_you_mean(wrong[0], self.known)}; {self._before()}")
        else:
            self.after = after

    def _before(self):
        return f"stages before this one: {', '.join(self.known) or 'none'}"

    def _find_notebook(self, base):
        given = self.entry.get("notebook")
        if not isinstance(given, str):
            self.problems.append("`notebook` is missing")
            return None
        folder, stem = ROOT / "notebooks", given.removesuffix(".ipynb")
        for file in (folder / f"{stem}.ipynb", base / given, base / f"{given}.ipynb"):
            if file.is_file():
                return file.resolve()
        known = [file.stem for file in folder.glob("*.ipynb")]
        self.problems.append(f"there is no notebook {given!r}{did_you_mean(stem, known)}")
        return None

    def expand(self, folder, variables):
        """Make the runs, as far as nothing is wrong; folder: of the sweep."""
        for given, varying in self._sets():
            run = self._run(given, varying, folder, variables)
            if not self.problems:
                self.runs.append(run)
        if len({run.folder.name.lower() for run in self.runs}) < len(self.runs):
            self.problems.append("the same parameters stand there twice")

    def _sets(self):
        """Return [(parameters, names that vary)], one per run."""
        say, fixed = self.problems.append, self.entry.get("parameters") or {}
        ways = {way: self.entry[way] for way in ("grid", "zip", "list") if way in self.entry}
        way, rows = next(iter(ways.items()), ("list", [{}]))
        if len(ways) > 1 or not isinstance(fixed, dict) or (way != "list" and not isinstance(rows, dict)):
            say("`parameters` is a mapping, and so is `grid` or `zip`; of grid, zip and list there is one")
            return []
        if way != "list":
            rows = self._rows(way, rows)
        elif not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            say("`list` is a list of parameter sets, each of them a mapping")
            return []
        if both := fixed.keys() & {name for row in rows for name in row}:
            say(f"{', '.join(sorted(map(repr, both)))} is both fixed and varying")
        return [(fixed | row, [*row]) for row in rows]

    def _rows(self, way, varying):
        """Return the parameters that vary, run by run, of a grid or of lists to zip."""
        say = self.problems.append
        lengths = {name: len(values) for name, values in varying.items() if isinstance(values, list) and values}
        if wrong := [name for name in varying if name not in lengths]:
            say(f"the values of `{wrong[0]}` in grid or zip are not a list with entries")
        elif way == "zip" and len({*lengths.values()}) > 1:
            say(f"the lists of `zip` differ in length: {lengths}")
        elif way == "grid" and (count := math.prod(lengths.values())) > MAX_RUNS:
            say(f"the grid has {count} runs; at most {MAX_RUNS} are possible in a stage")
        else:
            rows = zip(*varying.values(), strict=True) if way == "zip" else itertools.product(*varying.values())
            return [dict(zip(varying, row, strict=True)) for row in rows]
        return []

    def _run(self, given, varying, folder, variables):
        """Return the run of one set of parameters, with stage references and `out` filled in."""
        portable, actual, needs = {}, {}, dict.fromkeys(self.after)
        for name, value in given.items():
            fault = parameter_fault(name, value, self.declared if self.notebook else None)
            names = None if fault else self._referenced(name, value)
            if fault:
                self.problems.append(fault)
                continue
            kind, _ = self.declared.get(name, ("None", None))
            portable[name] = actual[name] = value
            if names is not None:
                needs |= dict.fromkeys(names)
                runs = [run for stage in names for run in self.known[stage].runs]
                portable[name], actual[name] = [run.name for run in runs], [str(run.folder) for run in runs]
                if kind == "str" and len(runs) == 1:
                    actual[name] = actual[name][0]
            if fault := type_fault(actual[name], kind):
                self.problems.append(f"`{name}` {fault}")
        key = hashlib.sha256(json.dumps(portable, sort_keys=True, default=str).encode()).hexdigest()[:10]
        place = folder / self.name / _slug({name: given[name] for name in varying}, key)
        if not place.resolve().is_relative_to(folder.resolve()):
            self.problems.append(f"the folder {place} leads out of {folder}")
        target = TARGETS.get(self.notebook.stem, "out") if self.notebook else "out"
        if target in self.declared:
            actual.setdefault(target, str(place) if target == "out" else self.declared[target][1])
        seeds = {name: default for name, (_, default) in self.declared.items()} | actual
        seeds = {name: value for name, value in seeds.items() if name == "seed" or name.endswith("_seed")}
        return Run(self.name, self.notebook, place, actual, key, tuple(needs), seeds, {**variables})

    def _referenced(self, name, value):
        """Return the stages that `"{stage}"`, or a list of such, names; None for a plain value."""
        parts = value if isinstance(value, list) else [value]
        names = [part[1:-1] for part in parts if isinstance(part, str) and re.fullmatch(r"\{[^{}]*\}", part)]
        unknown = [each for each in names if each not in self.known]
        if unknown:
            what = f"the unknown stage {unknown[0]!r}{did_you_mean(unknown[0], self.known)}"
            self.problems.append(f"`{name}` refers to {what}; {self._before()}")
        elif names and len(names) < len(parts):
            self.problems.append(f"`{name}` refers to stages and other values in one list")
        return names if names and not unknown else None


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
        if any(number > MAX_VALUES for number, _ in enumerate(_leaves("", data))):
            raise ValueError(f"more than {MAX_VALUES} values with every alias written out")
        return data
    except RecursionError:
        why, line = "a value inside itself, or too many levels", ""
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:  # without the line's text: it may be a key
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        why = getattr(error, "problem", None) or getattr(error, "strerror", None) or error
    raise InputError(f"{path}: cannot read the sweep file as plain YAML{line}: {why}")


def _leaves(name, value):
    """Yield (name, value) for each scalar inside a value, and (key, None) for each key of a mapping."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key, None
            yield from _leaves(key, part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(name, part)
    else:
        yield name, value


def _written_twice(runs):
    """Return a problem for every place that two runs of one notebook would write: the later one would replace it."""
    found = defaultdict(list)
    for run in runs:
        name = TARGETS.get(run.notebook.stem, "out")
        if name in run.parameters:
            found[run.notebook, f"`{name}`, {str(run.parameters[name])!r}"].append(run.name)
    twice = {what: names for (_, what), names in found.items() if len(names) > 1}
    remedy = "put models into one list, or give each run a place of its own (leave `out` out)"
    return [f"{' and '.join(names[:2])} write to one {what}: {remedy}" for what, names in twice.items()]


def declared_parameters(notebook):
    """Return {parameter: (annotation, default as it stands there)} of a notebook, as papermill sees them."""
    from papermill import inspect_notebook  # takes two seconds

    found = inspect_notebook(str(notebook))
    return {name: (each["inferred_type_name"], yaml.safe_load(each["default"])) for name, each in found.items()}


def parameter_fault(name, value, declared):
    """Return what forbids to pass a parameter on: papermill injects names as code and stores values three times."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        return f"{str(name)[:60]!r} is no parameter name"
    leaves = [*_leaves(name, value)]
    if any(is_secret_name(key) or (isinstance(leaf, str) and SECRET_VALUE.search(leaf)) for key, leaf in leaves):
        return f"`{name}` looks like a secret; keys come from the environment (or .env), never from parameters"
    if declared is not None and name not in declared:
        listed = ", ".join(declared) or "none"
        return f"the notebook has no parameter {name!r}{did_you_mean(name, declared)}; it declares {listed}"
    for key, leaf in leaves:
        finite = not isinstance(leaf, float) or math.isfinite(leaf)
        if not isinstance(key, str) or not isinstance(leaf, str | int | float | None) or not finite:
            return f"`{name}` has {leaf or key!s:.40}, which is no plain literal; quote it if text is meant"
    return None


def type_fault(value, kind):
    """Return how a value breaks its annotation, with the traps of YAML; None when it keeps it."""
    outer, _, inner = kind.replace(" ", "").partition("[")
    if outer == "list" and isinstance(value, list):
        faults = (type_fault(part, inner.removesuffix("]") or "plain") for part in value)
        return next(filter(None, faults), None)
    wrong_flag = isinstance(value, bool) and outer in ("int", "float", "plain")
    if isinstance(value, TYPES.get(outer, object)) and not wrong_flag:
        return None
    wanted = {"list": "a list or one string", "plain": "text or a number"}.get(outer, outer)
    return f"is {json.dumps(value, default=str)[:60]}, but must be {wanted}; {YAML}"


def _unknown(mapping, known):
    return [f"there is no key {key!r}{did_you_mean(key, known)}" for key in mapping.keys() - {*known}]


def _slug(varying, key):
    """Return a folder name that shows what varies; the hash keeps apart what looks alike, also in letter case."""
    parts = []
    for name, value in varying.items():
        text = value if isinstance(value, str) else f"{name}-{json.dumps(value, default=str)}"
        parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:40])
    return "_".join([*[*filter(None, parts)][:4], key])


def _is_name(text):
    return isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", text, re.ASCII) is not None
