"""Sweep files: read one, expand its grids into runs, check everything before the first call.

name: demo
variables: {models: [sim/perfect, sim/chance]}  # as "{models}" below; `--set models=[a,b]`
stages:
- notebook: 01_generate_texts  # a stem in notebooks/, or a path relative to the sweep file
  parameters: {corpus: demo, limit: 40, models: "{models}"}                 # the same for all runs
- notebook: 02_collect_predictions
  parameters: {corpus: demo, answer: free}
  grid: {models: [sim/perfect, sim/chance], told: [true, false]}  # four runs
- notebook: 07_existence
  zip: {models: [sim/perfect, sim/chance], names: [3, 4]}             # two runs
  after: []                              # waits for no other stage
- notebook: 03_self_recognition
  name: analysis                         # the notebook's stem unless given
  parameters: {predictions: "{02_collect_predictions}"}  # the run folders of that earlier stage

Runs of one notebook write apart: each has a folder of its own as `out` where that is not given;
only 01_generate_texts wants a `corpus`, a name by which later stages read the texts. A run waits
for the stages that its parameters refer to as "{stage}", and for those in `after`; without `after`
for all before its own, since any of them may write what it reads.
"""

import hashlib
import itertools
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import yaml
from annotated_types import MinLen

from selfeval.bounds import RUNS, read_yaml
from selfeval.errors import InputError, did_you_mean, meant_by
from selfeval.paths import DATA, ROOT
from selfeval.providers.models import STRANGERS, decode
from selfeval.secrets import SECRET_VALUE, is_secret_name

REFERENCE = re.compile(r"\{([^{}]*)\}")
Lists = dict[str, Annotated[list, MinLen(1)]]


@dataclass
class Entry:
    """A stage as it stands in the file."""

    notebook: str
    name: str | None = None
    parameters: dict = field(default_factory=dict)
    grid: Lists | None = None
    zip: Lists | None = None
    after: list[str] | None = None
    __pydantic_config__ = STRANGERS

    def sets(self) -> list[dict]:
        """Return the parameters that vary, run by run."""
        if self.grid and self.zip:
            raise InputError("there is `grid` or `zip`, not both")
        varying = self.zip or self.grid or {}
        lengths = [len(values) for values in varying.values()]
        if self.zip and len(set(lengths)) > 1:
            raise InputError("the lists of `zip` differ in length")
        if self.grid and math.prod(lengths) > RUNS:
            rule = f"`grid` makes {math.prod(lengths):,} runs, more than {RUNS:,}"
            raise InputError(f"{rule}; take values out of its lists")
        rows = (
            zip(*varying.values(), strict=True)
            if self.zip
            else itertools.product(*varying.values())
        )
        return [dict(zip(varying, row, strict=True)) for row in rows]


@dataclass
class File:
    """A sweep file."""

    name: str
    stages: Annotated[list[dict], MinLen(1)]
    variables: dict = field(default_factory=dict)
    __pydantic_config__ = STRANGERS


@dataclass(eq=False)
class Run:
    """One notebook with one set of parameters.

    folder: where its executed notebook goes. parameters: as the notebook gets them. needs: the
    stages that it waits for. status: `to do`; then `done` (in an earlier sweep), `ok`, `incomplete`
    (calls failed, the next sweep asks for them again), `failed`, or `not started` (a stage that it
    needs failed). cause: why it is not ok. ended: when, in seconds as of a file; infinite until it
    is done.
    """

    stage: str
    notebook: Path
    folder: Path
    parameters: dict
    needs: list[str]
    status: str = "to do"
    cause: str = ""
    ended: float = math.inf

    @property
    def name(self) -> str:
        """Return the stage and the folder's name."""
        return f"{self.stage}/{self.folder.name}"


@dataclass
class Sweep:
    """The stages of a sweep file with their runs, in order, and the folder of their outputs."""

    folder: Path
    stages: dict[str, list[Run]] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """Return the runs of all stages."""
        return [*itertools.chain.from_iterable(self.stages.values())]

    def add(self, entry: Entry, base: Path) -> None:
        """Add a stage of a file in the folder `base`."""
        notebook = _find_notebook(entry.notebook, base)
        stage = _check_name(entry.name or notebook.stem)
        if stage.lower() in map(str.lower, self.stages):
            raise InputError("the name is used twice; give one of them another `name`")
        after = list(self.stages) if entry.after is None else entry.after
        for name in after:
            if name not in self.stages:
                raise InputError(f"`after` names {name!r}, which is no stage before this one")
        declared = _declared_parameters(notebook)
        runs: list[Run] = []
        for varying in entry.sets():
            both = entry.parameters.keys() & varying.keys()
            if both:
                raise InputError(f"{', '.join(sorted(map(repr, both)))} is both fixed and varying")
            parameters = entry.parameters | varying
            # with names of runs for their folders: the key is the same wherever outputs lie
            portable = dict(parameters)
            needs = set(after)
            for name, value in parameters.items():
                _check_parameter(name, value, declared)
                stages = self._stages_named(name, value)
                if stages:
                    needs |= set(stages)
                    others = [run for other in stages for run in self.stages[other]]
                    parameters[name] = [str(run.folder) for run in others]
                    portable[name] = [run.name for run in others]
            content = json.dumps(portable, sort_keys=True, default=str)
            key = hashlib.sha256(content.encode()).hexdigest()[:10]
            folder = self.folder / stage / slug(varying, key)
            runs.append(Run(stage, notebook, folder, parameters, sorted(needs)))
        _set_targets(runs, declared)
        self.stages[stage] = runs

    def _stages_named(self, name: str, value) -> list[str]:
        """Return the stages that `"{stage}"`, or a list of such, names; [] for a plain value."""
        parts = value if isinstance(value, list) else [value]
        matches = [REFERENCE.fullmatch(part) for part in parts if isinstance(part, str)]
        stages = [match[1] for match in matches if match]
        if stages and (len(stages) < len(parts) or not self.stages.keys() >= set(stages)):
            raise InputError(f"`{name}` refers to {value!r}; name only stages before this one")
        return stages


def load(path, out=None, variables=None) -> Sweep:
    """Read a sweep file, expand its runs and check them all.

    out: a folder that replaces `data/runs/<name>`. variables: {name: value} that replace those of
    the file. Raises `InputError` with the first problem.
    """
    path = Path(path)
    file = decode(File, _read(path), path)
    values = file.variables | dict(variables or {})
    for name in values:
        if name not in file.variables:
            known = ", ".join(file.variables) or "none"
            raise InputError(f"{path} has no variable {name!r}; it has {known}.")
    folder = DATA / "runs" / _check_name(file.name)
    sweep = Sweep(Path(out or folder).absolute())
    for number, entry in enumerate(_fill_in_variables(file.stages, values), 1):
        try:
            sweep.add(decode(Entry, entry, "its entry"), path.parent)
        except InputError as error:
            name = entry.get("name") or entry.get("notebook") or number
            raise InputError(f"{path}: stage {str(name)!r}: {error}") from None
    return sweep


def _read(path: Path):
    """Return what a sweep file holds."""
    try:
        return read_yaml(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        # without the line's text: it may be a key
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", error)
        line = f" in line {mark.line + 1}" if mark else ""
        raise InputError(f"{path}: cannot read the sweep file as plain YAML{line}: {why}") from None


def _fill_in_variables(value, variables: dict):
    """Return a part of a file with the values of "{variable}" in it."""
    if isinstance(value, dict):
        return {name: _fill_in_variables(part, variables) for name, part in value.items()}
    if isinstance(value, list):
        return [_fill_in_variables(part, variables) for part in value]
    match = REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return variables.get(match[1], value) if match else value


def _check_name(text: str) -> str:
    """Return a name of a sweep or stage; refuse one that is no name of a folder."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", text, re.ASCII):
        rule = "must be letters, digits, dots, dashes or underscores"
        raise InputError(f"the name {text!r} {rule}; give another `name`")
    return text


def _set_targets(runs: list[Run], declared: dict) -> None:
    """Fill in where runs of a notebook write; refuse two that write to one place."""
    target = "corpus" if runs[0].notebook.stem == "01_generate_texts" else "out"
    if target not in declared:
        return
    writers: dict[str, Run] = {}
    for run in runs:
        if target == "out":
            run.parameters.setdefault("out", str(run.folder))
        place = run.parameters.get(target)
        if not place:
            rule = "a name of your own for the texts, by which later stages read them"
            raise InputError(f"give `corpus`, {rule}")
        other = writers.setdefault(str(place), run)
        if other is not run:
            both = f"{other.name} and {run.name} write to one {target!r}, {place!r}"
            remedy = "put models into one list, or take the parameter out of the file"
            raise InputError(f"{both}: {remedy}: each run has its own folder")


def _find_notebook(name: str, base: Path) -> Path:
    """Return a notebook of the package by its stem, or one by its path from the sweep file."""
    packaged = ROOT / "notebooks"
    stem = name.removesuffix(".ipynb")
    for file in (packaged / f"{stem}.ipynb", base / name, base / f"{name}.ipynb"):
        if file.is_file():
            return file.resolve()
    stems = [file.stem for file in packaged.glob("*.ipynb")]
    raise InputError(f"there is no notebook {name!r}{did_you_mean(stem, stems)}")


def _declared_parameters(notebook: Path) -> dict:
    """Return the parameters of a notebook, as papermill sees them."""
    from papermill import inspect_notebook  # takes two seconds

    return inspect_notebook(str(notebook))


def _check_parameter(name, value, declared: dict) -> None:
    """Refuse what must not be passed on: papermill stores values three times."""
    names = [name, *value] if isinstance(value, dict) else [name]
    has_secret_name = any(is_secret_name(str(part)) for part in names)
    if has_secret_name or SECRET_VALUE.search(json.dumps(value, default=str)):
        remedy = "keys come from the environment (or .env), never parameters"
        raise InputError(f"`{name}` looks like a secret; {remedy}")
    if name not in declared:
        raise InputError(f"the notebook has no parameter {name!r}{meant_by(str(name), declared)}")


def slug(varying: dict, key: str) -> str:
    """Return a folder name that shows what varies; the key keeps apart what looks alike."""
    parts = []
    for name, value in varying.items():
        text = value
        if not isinstance(value, str):
            text = f"{name}-{json.dumps(value, default=str)}"
        parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:40])
    shown = list(filter(None, parts))[:4]
    return "_".join([*shown, key])
