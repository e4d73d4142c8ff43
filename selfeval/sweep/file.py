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
from collections.abc import Iterable
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
from selfeval.sweep.runs import Run

# the parameter that says where a notebook writes; elsewhere `out`
TARGETS = {"01_generate_texts": "corpus"}
REFERENCE = re.compile(r"\{([^{}]*)\}")
# later, as a text, than any time: a run that waits for one without an end is not done
NOT_YET = "to come"
Lists = dict[str, Annotated[list, MinLen(1)]]


@dataclass
class Entry:
    """A stage as it stands in the file."""

    notebook: str
    name: str | None = None
    parameters: dict | None = None
    grid: Lists | None = None
    zip: Lists | None = None
    after: list[str] | None = None
    __pydantic_config__ = STRANGERS

    def sets(self) -> list[dict]:
        """Return the parameters that vary, run by run."""
        if self.grid and self.zip:
            raise InputError("there is `grid` or `zip`, not both")
        if self.zip and len({len(values) for values in self.zip.values()}) > 1:
            raise InputError("the lists of `zip` differ in length")
        if self.zip:
            varying = self.zip
            rows: Iterable = zip(*varying.values(), strict=True)
        else:
            varying = self.grid or {}
            number = math.prod(map(len, varying.values()))
            if number > RUNS:
                rule = f"`grid` makes {number:,} runs, more than {RUNS:,}"
                raise InputError(f"{rule}; take values out of its lists")
            rows = itertools.product(*varying.values())
        return [dict(zip(varying, row, strict=True)) for row in rows]


@dataclass
class File:
    """A sweep file."""

    name: str
    stages: Annotated[list[dict], MinLen(1)]
    variables: dict | None = None
    __pydantic_config__ = STRANGERS


@dataclass
class Sweep:
    """The runs of a sweep file, in order, and the folder of their outputs."""

    folder: Path
    runs: list[Run] = field(default_factory=list)

    @property
    def stages(self) -> dict[str, list[Run]]:
        """Return the runs of each stage."""
        return {name: [*runs] for name, runs in itertools.groupby(self.runs, lambda run: run.stage)}

    def is_ready(self, run: Run, chosen: set[str]) -> bool:
        """Return whether a run whose needs have ended is to be executed; if not, set its status.

        chosen: the names of the runs to execute.
        """
        needed = [other for other in self.runs if other.stage in run.needs]
        ends = [other.manifest.get("ended", NOT_YET) for other in needed]
        run.look(max(ends, default=""))
        if run.status == "done":
            return False
        if run.name not in chosen:
            run.status = "left out"
            return False
        for other in needed:
            if other.status not in ("ok", "done", "to do"):
                run.status = "not started"
                lost = f"{other.name}, which has not finished ({other.status})"
                run.cause = f"it depends on {lost}"
                break
        return run.status == "waiting"

    def add(self, entry: Entry, base: Path) -> None:
        """Add the runs of an entry of a file in the folder `base`, as far as nothing is wrong."""
        notebook = _find_notebook(entry.notebook, base)
        stages = self.stages
        stage = _check_name(entry.name or notebook.stem)
        if stage.lower() in map(str.lower, stages):
            raise InputError("the name is used twice; give one of them another `name`")
        after = list(stages) if entry.after is None else entry.after
        for name in after:
            if name not in stages:
                raise InputError(f"`after` names {name!r}, which is no stage before this one")
        declared = declared_parameters(notebook)
        fixed = entry.parameters or {}
        for varying in entry.sets():
            both = fixed.keys() & varying.keys()
            if both:
                raise InputError(f"{', '.join(sorted(map(repr, both)))} is both fixed and varying")
            parameters = fixed | varying
            for name, value in parameters.items():
                check_parameter(name, value, declared)
            run = Run(stage, notebook, self.folder / stage, parameters, needs=set(after))
            self.runs.append(_place_run(run, varying, stages, declared))
        _check_places(self.runs)


def load(path, out=None, variables=None) -> Sweep:
    """Read a sweep file, expand its runs and check them all.

    out: a folder that replaces `data/runs/<name>`. variables: {name: value} that replace those of
    the file. Raises `InputError` with the first problem.
    """
    path = Path(path)
    file = decode(File, _read_yaml(path), path)
    values = dict(file.variables or {})
    for name, value in (variables or {}).items():
        if name not in values:
            known = ", ".join(values) or "none"
            raise InputError(f"{path} has no variable {name!r}; it has {known}.")
        values[name] = value
    folder = DATA / "runs" / _check_name(file.name)
    sweep = Sweep(Path(out or folder).absolute())
    for number, entry in enumerate(_fill_in_variables(file.stages, values), 1):
        try:
            sweep.add(decode(Entry, entry, "its entry"), path.parent)
        except InputError as error:
            name = entry.get("name") or entry.get("notebook") or number
            raise InputError(f"{path}: stage {str(name)!r}: {error}") from None
    return sweep


def _fill_in_variables(value, variables: dict):
    """Return a part of a file with the values of "{variable}" in it."""
    if isinstance(value, dict):
        return {name: _fill_in_variables(part, variables) for name, part in value.items()}
    if isinstance(value, list):
        return [_fill_in_variables(part, variables) for part in value]
    match = REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return variables.get(match[1], value) if match else value


def _place_run(run: Run, varying: dict, known: dict[str, list[Run]], declared: dict) -> Run:
    """Fill in what the parameters of a run refer to, its folder, and where it writes."""
    # with names of runs in place of their folders: the key is the same wherever outputs lie
    portable = dict(run.parameters)
    for name, value in portable.items():
        stages = _stages_named(name, value, known)
        if not stages:
            continue
        run.needs |= set(stages)
        others = [other for stage in stages for other in known[stage]]
        portable[name] = [other.name for other in others]
        folders = [str(other.folder) for other in others]
        is_text = declared[name][0] == "str"
        run.parameters[name] = folders[0] if is_text and len(folders) == 1 else folders
    content = json.dumps(portable, sort_keys=True, default=str)
    run.key = hashlib.sha256(content.encode()).hexdigest()[:10]
    run.folder /= slug(varying, run.key)
    target = TARGETS.get(run.notebook.stem, "out")
    if target not in declared:
        return run
    if target == "out":
        run.parameters.setdefault("out", str(run.folder))
    elif not run.parameters.get(target):
        rule = "a name of your own for the texts, by which later stages read them"
        raise InputError(f"give `{target}`, {rule}")
    return run


def _stages_named(name: str, value, known: dict[str, list[Run]]) -> list[str]:
    """Return the stages that `"{stage}"`, or a list of such, names; [] for a plain value."""
    parts = value if isinstance(value, list) else [value]
    stages = []
    for part in parts:
        match = REFERENCE.fullmatch(part) if isinstance(part, str) else None
        if match:
            stages.append(match[1])
    are_known = known.keys() >= set(stages)
    if stages and (len(stages) < len(parts) or not are_known):
        raise InputError(f"`{name}` refers to {value!r}; name only stages before this one")
    return stages


def _read_yaml(path: Path):
    """Read YAML without tags that make objects, and without keys that stand there twice."""

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            names = [key.value for key, _ in node.value if not isinstance(key.value, list)]
            for name in names:
                if names.count(name) > 1:
                    problem = f"the key {name!r} twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
            return super().construct_mapping(node, deep)

    try:
        return read_yaml(path.read_text("utf-8"), Loader)  # a SafeLoader
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        # without the line's text: it may be a key
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", error)
        line = f" in line {mark.line + 1}" if mark else ""
        raise InputError(f"{path}: cannot read the sweep file as plain YAML{line}: {why}") from None


def _check_name(text: str) -> str:
    """Return a name of a sweep or stage; refuse one that is no name of a folder."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", text, re.ASCII):
        rule = "must be letters, digits, dots, dashes or underscores"
        raise InputError(f"the name {text!r} {rule}; give another `name`")
    return text


def _check_places(runs: list[Run]) -> None:
    """Refuse two runs of one notebook that would write to one place: one would be replaced."""
    writers: dict[tuple, Run] = {}
    for run in runs:
        name = TARGETS.get(run.notebook.stem, "out")
        place = str(run.parameters.get(name, run.folder))
        other = writers.setdefault((run.notebook, place), run)
        if other is not run:
            both = f"{other.name} and {run.name} write to one {name!r}, {place!r}"
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


def declared_parameters(notebook: Path) -> dict[str, tuple]:
    """Return {parameter: (annotation, default)} of a notebook, as papermill sees them."""
    from papermill import inspect_notebook  # takes two seconds

    declared = {}
    for name, parameter in inspect_notebook(str(notebook)).items():
        default = yaml.safe_load(parameter["default"])
        declared[name] = (parameter["inferred_type_name"], default)
    return declared


def check_parameter(name, value, declared: dict) -> None:
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
