"""Sweep files: read one, expand its grids into runs, check everything before the first call; what a run leaves.

name: demo
variables: {models: [sim/perfect, sim/chance]}   # "{models}" stands for it below; `--set models=[a,b]` sets another
stages:
- notebook: 01_generate_texts            # a stem in notebooks/, or a path relative to the sweep file
  parameters: {corpus: demo, limit: 40, models: "{models}"}                 # the same for all runs
- notebook: 02_collect_predictions
  parameters: {corpus: demo, answer: free}
  grid: {models: [sim/perfect, sim/chance], told: [true, false]}  # four runs; `zip` pairs equally long lists
- notebook: 07_existence
  zip: {models: [sim/perfect, sim/chance], names: [3, 4]}             # two runs
  after: []                              # waits for no other stage
- notebook: 03_self_recognition
  name: analysis                         # the notebook's stem unless given
  parameters: {predictions: "{02_collect_predictions}"}                     # the run folders of that earlier stage

Runs of one notebook write apart: each has a folder of its own as `out` where that is not given; only
01_generate_texts wants a `corpus`, a name by which later stages read the texts. A run waits for all
stages before its own, since any of them may write what it reads; `after` names those that it waits for instead. For the
stages that its parameters refer to as "{stage}" it waits in any case.
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
from selfeval.sweep.runs import Run

TARGETS = {
    "01_generate_texts": "corpus"
}  # the parameter that says where a notebook writes; elsewhere `out`
REFERENCE = re.compile(r"\{([^{}]*)\}")
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
        varying = self.grid or self.zip or {}
        number = math.prod(map(len, varying.values())) if self.grid else 0
        if number > RUNS:
            raise InputError(
                f"`grid` makes {number:,} runs, more than {RUNS:,}; take values out of its lists"
            )
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

    def is_to_do(self, run: Run, chosen: set[str]) -> bool:
        """Settle a run whose needs have ended, or tell that it is to be executed. chosen: names of runs to execute."""
        needed = [other for other in self.runs if other.stage in run.needs]
        run.look(
            max((other.manifest.get("ended", "to come") for other in needed), default="")
        )  # no time is after that
        if run.status == "done":
            return False
        lost = next(
            (other for other in needed if other.status not in ("ok", "done", "to do")), None
        )
        if run.name not in chosen:
            run.status = "left out"
        elif lost:
            run.status, run.cause = (
                "not started",
                f"it depends on {lost.name}, which has not finished ({lost.status})",
            )
        return run.status == "waiting"

    def add(self, entry: Entry, base: Path) -> None:
        """Add the runs of an entry of a file in the folder `base`, as far as nothing is wrong."""
        notebook, known = _find_notebook(entry.notebook, base), self.stages
        stage = _check_name(entry.name or notebook.stem)
        if stage.lower() in map(str.lower, known):
            raise InputError("the name is used twice; give one of them another `name`")
        after = [*known] if entry.after is None else entry.after
        if wrong := [name for name in after if name not in known]:
            raise InputError(f"`after` names {wrong[0]!r}, which is no stage before this one")
        declared, fixed = declared_parameters(notebook), entry.parameters or {}
        for varying in entry.sets():
            if both := fixed.keys() & varying.keys():
                raise InputError(f"{', '.join(sorted(map(repr, both)))} is both fixed and varying")
            for name, value in (fixed | varying).items():
                check_parameter(name, value, declared)
            run = Run(stage, notebook, self.folder / stage, fixed | varying, needs={*after})
            self.runs.append(_place_run(run, varying, known, declared))
        _check_places(self.runs)


def load(path, out=None, variables=None) -> Sweep:
    """Read a sweep file, expand its runs and check them all; raise `InputError` with the first problem.

    out: a folder that replaces `data/runs/<name>`. variables: {name: value} that replace those of the file.
    """
    path = Path(path)
    given = decode(File, _read_yaml(path), path)
    known = given.variables or {}
    if unknown := [name for name in variables or {} if name not in known]:
        raise InputError(
            f"{path} has no variable {unknown[0]!r}; it has {', '.join(known) or 'none'}."
        )
    folder = DATA / "runs" / _check_name(given.name)
    sweep = Sweep(Path(out or folder).absolute())
    for number, entry in enumerate(_fill_in_variables(given.stages, known | (variables or {})), 1):
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
    """Fill in what the parameters of a run refer to, its folder below that of the stage, and where it writes."""
    portable = dict(run.parameters)
    for name, value in portable.items():
        if names := _stages_named(name, value, known):
            run.needs |= {*names}
            runs = [other for stage in names for other in known[stage]]
            portable[name], folders = (
                [other.name for other in runs],
                [str(other.folder) for other in runs],
            )
            run.parameters[name] = (
                folders[0] if declared[name][0] == "str" and len(runs) == 1 else folders
            )
    run.key = hashlib.sha256(
        json.dumps(portable, sort_keys=True, default=str).encode()
    ).hexdigest()[:10]
    run.folder /= slug(varying, run.key)
    target = TARGETS.get(run.notebook.stem, "out")
    if target == "out" and "out" in declared:
        run.parameters.setdefault("out", str(run.folder))
    elif target in declared and not run.parameters.get(target):
        raise InputError(
            f"give `{target}`, a name of your own for the texts, by which later stages read them"
        )
    return run


def _stages_named(name: str, value, known: dict[str, list[Run]]) -> list[str]:
    """Return the stages that `"{stage}"`, or a list of such, names; [] for a plain value."""
    parts = value if isinstance(value, list) else [value]
    names = [
        match[1] for part in parts if isinstance(part, str) and (match := REFERENCE.fullmatch(part))
    ]
    if names and (len(names) < len(parts) or not known.keys() >= {*names}):
        raise InputError(f"`{name}` refers to {value!r}; name only stages before this one")
    return names


def _read_yaml(path: Path):
    """Read YAML without tags that make objects, and without keys that silently win over an earlier one."""

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            names = [key.value for key, _ in node.value if not isinstance(key.value, list)]
            if twice := [name for name in names if names.count(name) > 1]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {twice[0]!r} twice", node.start_mark
                )
            return super().construct_mapping(node, deep)

    try:
        return read_yaml(path.read_text("utf-8"), Loader)  # a SafeLoader
    except (
        OSError,
        ValueError,
        RecursionError,
        yaml.YAMLError,
    ) as error:  # without the line's text: it may be a key
        mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        line = f" in line {mark.line + 1}" if mark else ""
        raise InputError(f"{path}: cannot read the sweep file as plain YAML{line}: {why}") from None


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,63}", text, re.ASCII):
        raise InputError(
            f"the name {text!r} must be letters, digits, dots, dashes or underscores; give another `name`"
        )
    return text


def _check_places(runs: list[Run]) -> None:
    """Refuse two runs of one notebook that would write to one place: the later one would replace what is there."""
    found = {}
    for run in runs:
        name = TARGETS.get(run.notebook.stem, "out")
        place = str(run.parameters.get(name, run.folder))
        if (other := found.setdefault((run.notebook, place), run)) is not run:
            remedy = "put models into one list, or take the parameter out of the file: each run has its own folder"
            raise InputError(
                f"{other.name} and {run.name} write to one {name!r}, {place!r}: {remedy}"
            )


def _find_notebook(given: str, base: Path) -> Path:
    folder, stem = ROOT / "notebooks", given.removesuffix(".ipynb")
    for file in (folder / f"{stem}.ipynb", base / given, base / f"{given}.ipynb"):
        if file.is_file():
            return file.resolve()
    raise InputError(
        f"there is no notebook {given!r}{did_you_mean(stem, [f.stem for f in folder.glob('*.ipynb')])}"
    )


def declared_parameters(notebook: Path) -> dict[str, tuple]:
    """Return {parameter: (annotation, default as it stands there)} of a notebook, as papermill sees them."""
    from papermill import inspect_notebook  # takes two seconds

    found = inspect_notebook(str(notebook))
    return {
        name: (each["inferred_type_name"], yaml.safe_load(each["default"]))
        for name, each in found.items()
    }


def check_parameter(name, value, declared: dict) -> None:
    """Refuse what must not be passed on: papermill stores values three times."""
    names = [name, *value] if isinstance(value, dict) else [name]
    if any(map(is_secret_name, map(str, names))) or SECRET_VALUE.search(
        json.dumps(value, default=str)
    ):
        raise InputError(
            f"`{name}` looks like a secret; keys come from the environment (or .env), never parameters"
        )
    if name not in declared:
        raise InputError(f"the notebook has no parameter {name!r}{meant_by(str(name), declared)}")


def slug(varying: dict, key: str) -> str:
    """Return a folder name that shows what varies; the hash keeps apart what looks alike, also in letter case."""
    parts = []
    for name, value in varying.items():
        text = value if isinstance(value, str) else f"{name}-{json.dumps(value, default=str)}"
        parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:40])
    return "_".join([*[*filter(None, parts)][:4], key])
