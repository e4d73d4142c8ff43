"""Sweep files: read one, expand its grids into runs, and check everything before the first call.

name: demo
variables: {models: [sim/perfect, sim/chance]}   # "{models}" stands for it below; `--set models=[a,b]` sets another
stages:
- notebook: 01_generate_texts            # a stem in notebooks/, or a path relative to the sweep file
  parameters: {corpus: demo, limit: 40, models: "{models}"}                 # the same for all runs
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
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

import yaml
from annotated_types import MinLen

from selfeval.errors import InputError, did_you_mean
from selfeval.keys import SECRET_VALUE, is_secret_name
from selfeval.models import STRANGERS, decode
from selfeval.paths import DATA, ROOT
from selfeval.sweep.runs import USABLE, Run, Sweep

MAX_RUNS = 10_000  # of one stage
MAX_VALUES = 1_000_000  # of one file
TARGETS = {"01_generate_texts": "corpus"}  # the parameter that says where a notebook writes; elsewhere `out`
REFERENCE = re.compile(r"\{([^{}]*)\}")
Names = list[str]
Lists = dict[str, Annotated[list, MinLen(1)]]
Sets = Annotated[list[dict], MinLen(1)]


@dataclass
class Entry:
    """A stage as it stands in the file."""

    notebook: str
    name: str | None = None
    parameters: dict | None = None
    grid: Lists | None = None
    zip: Lists | None = None
    list: Sets | None = None
    after: Names | None = None
    __pydantic_config__ = STRANGERS

    def sets(self):
        """Return the parameters that vary, run by run."""
        if [self.grid, self.zip, self.list].count(None) < 2:
            raise InputError("of grid, zip and list there is one")
        if self.zip and len({len(values) for values in self.zip.values()}) > 1:
            raise InputError("the lists of `zip` differ in length")
        if self.grid and (count := math.prod(map(len, self.grid.values()))) > MAX_RUNS:
            raise InputError(f"the grid has {count} runs; at most {MAX_RUNS} are possible in a stage")
        varying = self.grid or self.zip or {}
        rows = zip(*varying.values(), strict=True) if self.zip else itertools.product(*varying.values())
        return self.list or [dict(zip(varying, row, strict=True)) for row in rows]


@dataclass
class File:
    """A sweep file."""

    name: str
    stages: Sets
    variables: dict | None = None
    replaces_samples: object = False
    __pydantic_config__ = STRANGERS

    def __post_init__(self):
        _check_name(self.name)
        if not isinstance(self.replaces_samples, bool):
            wrong = json.dumps(self.replaces_samples, default=str)
            raise InputError(f"`replaces_samples` is {wrong:.40}, but must be bool")


def load(path, out=None, variables=None):
    """Read a sweep file, expand its runs and check them all; raise `InputError` with the first problem.

    out: a folder that replaces `data/runs/<name>`. variables: {name: value} that replace those of the file.
    """
    path = Path(path)
    given = decode(File, _read_yaml(path), path)
    known = given.variables or {}
    if unknown := [name for name in variables or {} if name not in known]:
        raise InputError(f"{path} has no variable {unknown[0]!r}; it has {', '.join(known) or 'none'}.")
    given.stages = _filled(given.stages, known | (variables or {}))
    sweep = Sweep(given.name, Path(out or DATA / "runs" / given.name).absolute(), [])
    environment = {"SELFEVAL_REPLACE_SAMPLES": "1"} if given.replaces_samples else {}
    for number, entry in enumerate(given.stages, 1):
        stage = Stage(str(entry.get("name", number)), {stage.name: stage for stage in sweep.stages})
        sweep.stages.append(stage)
        try:
            stage.check(decode(Entry, entry, "its entry"), path.parent)
            stage.expand(sweep.folder, environment)
            _check_places(sweep.runs)
        except InputError as error:
            raise InputError(f"{path}: stage {stage.name!r}: {error}") from None
    return sweep


def _filled(value, variables):
    """Return a part of a file with the values of "{variable}" in it."""
    if isinstance(value, dict):
        return {name: _filled(part, variables) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, variables) for part in value]
    match = REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return variables.get(match[1], value) if match else value


@dataclass
class Stage:
    """The runs of one notebook; of a file, with its entry there and the stages before it."""

    name: str
    known: dict[str, "Stage"]
    runs: list[Run] = field(default_factory=list)
    entry: Entry | None = None
    notebook: Path | None = None
    declared: dict = field(default_factory=dict)  # parameter: (annotation, default as it stands in the notebook)
    after: list[str] = field(default_factory=list)

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

    def check(self, entry, base):
        """Take in an entry of a file in the folder `base`: notebook, name, and the stages that it waits for."""
        self.entry, self.notebook = entry, _find_notebook(entry.notebook, base)
        self.name = entry.name or self.notebook.stem
        _check_name(self.name)
        if self.name.lower() in map(str.lower, self.known):
            raise InputError("the name is used twice; give one of them another `name`")
        self.declared = declared_parameters(self.notebook)
        self.after = [*self.known] if entry.after is None else entry.after
        if wrong := [name for name in self.after if name not in self.known]:
            raise InputError(f"`after` names {wrong[0]!r}, which is no stage before this one")

    def expand(self, folder, variables):
        """Make the runs, as far as nothing is wrong; folder: of the sweep."""
        fixed = self.entry.parameters or {}
        for row in self.entry.sets():
            if both := fixed.keys() & row.keys():
                raise InputError(f"{', '.join(sorted(map(repr, both)))} is both fixed and varying")
            self.runs.append(self._run(fixed | row, row, folder, variables))
        if len({run.folder.name.lower() for run in self.runs}) < len(self.runs):
            raise InputError("the same parameters stand there twice")

    def _run(self, given, varying, folder, variables):
        """Return the run of one set of parameters, with stage references and `out` filled in."""
        portable, actual, needs = dict(given), dict(given), dict.fromkeys(self.after)
        for name, value in given.items():
            check_parameter(name, value, self.declared)
            if names := self._referenced(name, value):
                needs |= dict.fromkeys(names)
                runs = [run for stage in names for run in self.known[stage].runs]
                portable[name], actual[name] = [run.name for run in runs], [str(run.folder) for run in runs]
                if self.declared[name][0] == "str" and len(runs) == 1:
                    actual[name] = actual[name][0]
        key = hashlib.sha256(json.dumps(portable, sort_keys=True, default=str).encode()).hexdigest()[:10]
        place = folder / self.name / _slug(varying, key)
        if not place.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"the folder {place} leads out of {folder}")
        target = TARGETS.get(self.notebook.stem, "out")
        if target in self.declared:
            actual.setdefault(target, str(place) if target == "out" else self.declared[target][1])
        seeds = {name: default for name, (_, default) in self.declared.items()} | actual
        seeds = {name: value for name, value in seeds.items() if name == "seed" or name.endswith("_seed")}
        return Run(self.name, self.notebook, place, actual, key, tuple(needs), seeds, {**variables})

    def _referenced(self, name, value):
        """Return the stages that `"{stage}"`, or a list of such, names; [] for a plain value."""
        parts = value if isinstance(value, list) else [value]
        names = [match[1] for part in parts if isinstance(part, str) and (match := REFERENCE.fullmatch(part))]
        if unknown := [each for each in names if each not in self.known]:
            raise InputError(f"`{name}` refers to {unknown[0]!r}, which is no stage before this one")
        if names and len(names) < len(parts):
            raise InputError(f"`{name}` refers to stages and other values in one list")
        return names


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


def _check_name(text):
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", text, re.ASCII):
        raise InputError(f"the name {text!r} must be letters, digits, dots, dashes or underscores; give another `name`")


def _check_places(runs):
    """Refuse two runs of one notebook that would write to one place: the later one would replace what is there."""
    found = {}
    for run in runs:
        name = TARGETS.get(run.notebook.stem, "out")
        place = str(run.parameters.get(name, run.folder))
        if (other := found.setdefault((run.notebook, place), run)) is not run:
            remedy = "put models into one list, or give each run a place of its own (leave `out` out)"
            raise InputError(f"{other.name} and {run.name} write to one `{name}`, {place!r}: {remedy}")


def _find_notebook(given, base):
    folder, stem = ROOT / "notebooks", given.removesuffix(".ipynb")
    for file in (folder / f"{stem}.ipynb", base / given, base / f"{given}.ipynb"):
        if file.is_file():
            return file.resolve()
    known = [file.stem for file in folder.glob("*.ipynb")]
    raise InputError(f"there is no notebook {given!r}{did_you_mean(stem, known)}")


def declared_parameters(notebook):
    """Return {parameter: (annotation, default as it stands there)} of a notebook, as papermill sees them."""
    from papermill import inspect_notebook  # takes two seconds

    found = inspect_notebook(str(notebook))
    return {name: (each["inferred_type_name"], yaml.safe_load(each["default"])) for name, each in found.items()}


def check_parameter(name, value, declared):
    """Refuse what must not be passed on: papermill injects names as code and stores values three times."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"{str(name)[:60]!r} is no parameter name")
    leaves = [*_leaves(name, value)]
    if any(is_secret_name(key) or (isinstance(leaf, str) and SECRET_VALUE.search(leaf)) for key, leaf in leaves):
        raise InputError(f"`{name}` looks like a secret; keys come from the environment (or .env), never parameters")
    if name not in declared:
        raise InputError(f"the notebook has no parameter {name!r}{did_you_mean(name, declared)}")
    for key, leaf in leaves:
        finite = not isinstance(leaf, float) or math.isfinite(leaf)
        if not isinstance(key, str) or not isinstance(leaf, str | int | float | None) or not finite:
            raise InputError(f"`{name}` has {leaf or key!s:.40}, which is no plain literal; quote it if text is meant")


def _slug(varying, key):
    """Return a folder name that shows what varies; the hash keeps apart what looks alike, also in letter case."""
    parts = []
    for name, value in varying.items():
        text = value if isinstance(value, str) else f"{name}-{json.dumps(value, default=str)}"
        parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:40])
    return "_".join([*[*filter(None, parts)][:4], key])
