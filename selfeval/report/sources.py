"""What there is to report: the runs of sweeps with their manifests, executed notebooks, and the records they wrote."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from selfeval import DATA, ROOT
from selfeval.errors import InputError
from selfeval.figures.cards import is_messages
from selfeval.keys import SECRET_VALUE, values, visible
from selfeval.records import json_rows
from selfeval.stats.serving import served_by_several

KINDS = {  # fields by which the records of a file are known
    "predictions": {"text_id", "evaluator_model", "task_type", "true_model"},
    "existence": {"evaluator", "target_display", "raw_response"},
    "identity": {"model", "arm", "source", "messages", "reply"},
    "statements": {"conversation_id", "turn", "arm", "role", "round", "juror"},
    "conversations": {"conversation_id", "turns"},
    "texts": {"text_id", "author", "text"},
}
SERVED = {  # fields of a record that say who served which model
    "predictions": (
        ("evaluator_model", "served_model", "served_by"),
        ("true_model", "text_served_model", "text_served_by"),
    ),
    "existence": (("evaluator", "served_model", "served_by"),),
    "identity": (("model", "served_model", "served_by"),),
    "statements": (("juror", "served_model", "served_by"),),
    "texts": (("author", "served_model", "served_by"),),
}
MAY_BE_NULL = {"reply", "raw_response", "text"}
MAPPINGS = ("parameters", "counts", "before", "code", "packages", "written", "read")  # of a manifest
WITHOUT_SWEEP = ("predictions", "conversations", "results")  # folders of data/ that hold what the notebooks wrote


@dataclass(frozen=True)
class Run:
    """One run of a sweep: its name (`sweep/stage/run`), folder and manifest."""

    name: str
    folder: Path
    manifest: dict

    @property
    def notebook(self) -> Path:
        """Return where its executed notebook is, if it is."""
        return self.folder / "notebook.ipynb"


@dataclass
class Sources:
    """What a report is made of. notebooks: {name: file}; files: {kind: files of such records}."""

    runs: list[Run] = field(default_factory=list)
    notebooks: dict[str, Path] = field(default_factory=dict)
    files: dict[str, list[Path]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    problems: dict[str, None] = field(default_factory=dict)  # what could not be read, each once
    served: set[tuple] = field(default_factory=set)  # (model, served model, upstream) of the records read so far

    def rows(self, kind: str) -> Iterator[tuple[Path, dict]]:
        """Yield the records of one kind with the file they stand in; a broken file or record becomes a problem."""
        for file in self.files[kind]:
            try:
                for row in json_rows(file):
                    if fault := _fault(kind, row):
                        self.problems[f"{file}: a record {fault} and is left out."] = None
                    else:
                        self.served |= {_endpoint(row, fields) for fields in SERVED.get(kind, ())}
                        yield file, row
            except InputError as error:
                self.problems[str(error)] = None

    @cached_property
    def several(self) -> dict[str, dict[str, int]]:
        """The endpoints of the models that several of them served, as the conversations and the records read say."""
        fields = ["model", "served_model", "served_by"]
        for _, row in self.rows("conversations"):
            for turn in row["turns"] if isinstance(row["turns"], list) else ():
                if isinstance(turn, dict) and turn.get("speaker") == row.get("agent"):
                    self.served.add(_endpoint(turn | {"model": row.get("agent_model")}, fields))
        return served_by_several(pd.DataFrame(sorted(self.served, key=repr), columns=fields), fields)

    def run_of(self, file: Path) -> str:
        """Return the name of the run that a file belongs to, else the file's own below the repository."""
        owner = next((run.name for run in self.runs if file.is_relative_to(run.folder)), None)
        return owner or self.clean(file.parent).removeprefix("data/")

    @cached_property
    def clean(self) -> "Cleaner":
        """What takes keys, paths of this machine and invisible characters out of a text."""
        return Cleaner(self.runs)


def _endpoint(row: dict, fields: Sequence[str]) -> tuple[str | None, ...]:
    """Return the model (a juror without the number of its seat), the served model and the upstream; None: unknown."""
    model, *served = (value if isinstance(value := row.get(name), str) else None for name in fields)
    return model and model.partition(" #")[0], *served


def _fault(kind: str, row: dict) -> str:
    """Say what makes a record none of its kind, "" where it is one."""
    if lacking := sorted(KINDS[kind] - row.keys()):
        return f"lacks {', '.join(lacking)}"
    plain = KINDS[kind] - MAY_BE_NULL - {"messages", "turns"}
    odd = [name for name in plain if not isinstance(row[name], str | int)]
    odd += [name for name in ("status", "persona", "variant", "family") if isinstance(row.get(name), list | dict)]
    odd += ["messages"] * ("messages" in KINDS[kind] and not is_messages(row["messages"]))
    return f"has {', '.join(sorted(odd))} of the wrong form" if odd else ""


class Cleaner:
    """Take out of texts what must not leave this machine, and make visible what hides.

    Paths lose what is above the repository, also above the one where a run was made elsewhere; keys become [key].
    """

    def __init__(self, runs: Iterable[Run] = ()):
        roots = {f"{ROOT}/", f"{Path.home()}/"}
        for run in runs:
            out, end = str(run.manifest.get("parameters", {}).get("out", "")), "/".join(run.folder.parts[-5:])
            roots |= {f"{run.folder.parent.parent.parent}/"} | ({out.removesuffix(end)} if out.endswith(end) else set())
        known = map(re.escape, sorted(values().values(), key=len, reverse=True))
        self.keys = re.compile("|".join([*known, SECRET_VALUE.pattern]), re.ASCII)
        self.roots = re.compile("|".join(map(re.escape, sorted(roots - {"", "/", "//"}, key=lambda r: (-len(r), r)))))

    def __call__(self, text) -> str:
        return visible(self.keys.sub("[key]", self.roots.sub("", str(text))))


def find(paths: Sequence[Path | str] = ()) -> Sources:
    """Return what these folders and files hold; without any, all sweeps of data/runs, or the committed notebooks.

    A folder with manifests is a sweep, or a part of one; any other is searched for notebooks and records. Raises
    `InputError` for a path that is not there, or where there is nothing.
    """
    found, empty = Sources(), []
    if paths:
        for path in map(Path, paths):
            if not path.exists():
                raise InputError(f"There is nothing at {path} to report; name folders of runs, notebooks, or records.")
            before = _size(found)
            _add(found, path.resolve())
            if _size(found) > before or _holds_something(path):  # nothing new is not nothing
                continue
            if path.is_file():
                raise InputError(f"{path} is no notebook, and holds no records that a report shows.")
            empty.append(path)
    elif [*DATA.glob("runs/*/*/*/manifest.json")]:
        _add(found, DATA / "runs")
    else:
        for path in (ROOT / "notebooks", *(DATA / name for name in WITHOUT_SWEEP)):
            _add(found, path)
        found.files["texts"] += sorted(DATA.glob("corpora/*/texts.jsonl"))
    if not found.runs and not found.notebooks and not any(found.files.values()):
        raise InputError(f"{', '.join(map(str, paths))} holds no run, no notebook and no records to report.")
    for path in empty:  # beside others that hold something
        found.problems[f"{path.resolve()} holds no run, no notebook and no records to report."] = None
    return found


def _holds_something(path: Path) -> bool:
    alone = Sources()
    _add(alone, path.resolve())
    return _size(alone) > 0


def _size(found: Sources) -> int:
    return len(found.runs) + len(found.notebooks) + len(found.problems) + sum(map(len, found.files.values()))


def _add(found: Sources, path: Path) -> None:
    if path.is_file():
        return _add_file(found, path)
    manifests = sorted(path.rglob("manifest.json"))
    for manifest in manifests:
        _add_run(found, manifest)
    if not manifests:
        files = sorted(file for kind in ("*.ipynb", "*.jsonl") for file in path.rglob(kind))
        for file in files:
            if ".ipynb_checkpoints" not in file.parts:
                _add_file(found, file)


def _add_run(found: Sources, file: Path) -> None:
    folder = file.parent
    name = "/".join(folder.parts[-3:])
    try:
        manifest = json.loads(file.read_text("utf-8"))
        manifest = manifest if isinstance(manifest, dict) else {}
        if odd := [key for key in MAPPINGS if not isinstance(manifest.get(key) or {}, dict)]:
            found.problems[f"The manifest of {name} has {', '.join(odd)} of the wrong form; left out."] = None
            manifest = {key: value for key, value in manifest.items() if key not in odd}
    except (OSError, ValueError) as error:
        found.problems[f"The manifest of {name} cannot be read: {error}."] = None
        manifest = {}
    run = Run(name, folder, manifest)
    found.runs.append(run)
    if run.notebook.is_file():
        found.notebooks[name] = run.notebook
    for one in dict.fromkeys([*sorted(folder.rglob("*.jsonl")), *map(Path, manifest.get("written") or ())]):
        if one.suffix == ".jsonl" and one.is_file():
            _add_records(found, one)


def _add_file(found: Sources, file: Path) -> None:
    if file.suffix == ".ipynb":
        found.notebooks[file.stem if file.parent == ROOT / "notebooks" else "/".join(file.parts[-2:])[:-6]] = file
    else:
        _add_records(found, file)


def _add_records(found: Sources, file: Path) -> None:
    """Add a file to its kind; files of other kinds (stored replies, configurations) are no records.

    Nor are the same predictions in the published form beside them.
    """
    if file.name.startswith("published_") and file.with_name(file.name.replace("published_", "predictions_")).is_file():
        return
    try:
        first = next(json_rows(file), {})
    except InputError as error:
        found.problems[str(error)] = None
        return
    kind = next((kind for kind, fields in KINDS.items() if fields <= first.keys()), None)
    if kind and file not in found.files[kind]:
        found.files[kind].append(file)
