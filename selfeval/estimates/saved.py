"""Results on disk: kept, read again, and gathered over the runs of a sweep."""

import os
import warnings
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

import pandas as pd

from selfeval import inspect_logs, stats
from selfeval.bounds import read_yaml
from selfeval.errors import InputError
from selfeval.figures.estimates import (
    KINDS,
    TEXT,
    Estimates,
    check_measured,
    estimates_of,
    file_of,
    plot,
)
from selfeval.paths import HOME, committed_runs, read_json, results_folder
from selfeval.providers import models as registry
from selfeval.records import tables as record_files

MAIN = {f"{file_of(kind)}.csv": kind for kind in KINDS}  # files of estimates


def save(result: Estimates, out: str | Path, *, form: str = "") -> Path:
    """Write a result to a folder below data/ and return the folder: a CSV per table, and its main figure.

    Answers about texts and verdicts of juries are kept by the verb that asks, with `out`; other records are written
    here. `read_results` and `runs` read the CSVs again.
    form: instead of these, write logs of Inspect AI ("inspect") of the answers to questions of authorship, replies on
    identity or verdicts behind a result, or of these as they were returned, with their messages; `measure_recognition`
    reads such logs as predictions.
    """
    folder = record_files.data_path(out)
    if form:
        return inspect_logs.save_as(form, result, folder)
    check_measured("save", result)
    for file, kind in MAIN.items():
        shared = {*KINDS[kind].tables} & {*KINDS[result.kind].tables}
        if kind != result.kind and shared and (folder / file).exists():
            raise InputError(
                f"{folder} has {file}, whose tables this result would replace; name a folder of its own."
            )
    if result.kind in ("identity", "existence"):
        record_files.write_jsonl(
            folder / f"{result.kind}.jsonl", record_files.rows_of(result.records)
        )
    for name in KINDS[result.kind].tables:
        if name in result.tables:
            record_files.write_csv(folder / f"{file_of(name)}.csv", result.tables[name])
    if figure := plot(result):
        figure.save(folder / file_of(result.kind))
    return folder


def _folder(folder: str | Path) -> Path:
    """Return a folder of results: below data/, or as commands name it from here or the clone (data/runs/mine).

    Of a file in it, the folder.
    """
    places = [record_files.data_path(folder), HOME / folder, Path(folder)]
    found = next((path for path in places if path.exists()), Path(folder))
    return found.parent if found.is_file() else found


def read_results(folder: str | Path) -> list[Estimates]:
    """Return the results that notebooks or `save` kept below a folder, each as the `measure_...` verbs return them."""
    return [_read_result(kind, file.parent) for kind, file in _results(folder)]


def _results(folder: str | Path, elsewhere: Iterable[Path] = ()) -> list[tuple[str, Path]]:
    """Return (kind, CSV of estimates) of all results below a folder, or in others, in the order of their paths."""
    files = sorted(_folder(folder).rglob("*.csv"))
    for other in elsewhere:
        files += sorted(other.glob("*.csv"))
    found = [(MAIN[file.name], file) for file in files if file.name in MAIN]
    if not found:
        raise InputError(
            f"There are no results below {folder}; run a sweep or an analysis notebook first."
        )
    return found


def _read_result(kind: str, folder: Path) -> Estimates:
    """Return the result in a folder; labels are texts, empty where there is none."""
    files = {name: folder / f"{file_of(name)}.csv" for name in KINDS[kind].tables}
    read = {}
    for name, file in files.items():
        if file.exists():
            table = pd.read_csv(
                file, dtype=dict.fromkeys(TEXT, str), keep_default_na=False, na_values=[""]
            )
            read[name] = record_files.from_spreadsheet(
                table.fillna(dict.fromkeys(TEXT & {*table}, ""))
            )
    names = registry.display_names(
        [*read[kind]["evaluator"].unique(), *read[kind]["author"].unique()]
    )
    rows = read[kind]
    if (
        kind == "identity"
    ):  # beside the estimates over all templates, the file has families and conditions
        rows = rows[rows["task"].eq("") & rows["condition"].eq("")]
    found = estimates_of(kind, rows, {}, None, names)
    found.tables = read
    return found


def runs(folder: str | Path = "data/runs", *, all: bool = False) -> pd.DataFrame:
    """Return the estimates of a sweep's folder in one frame, a row each, with the parameters behind them as columns.

    Parameters are those of the run and of the runs whose texts and answers it read; different ones are joined by
    commas. folder: data/runs, with all sweeps and studies, unless given; or one of notebooks that plain papermill
    executed, wherever their results are. all: with every policy and method of interval,
    instead of each statistic's usual ones.
    """
    root = _folder(folder)
    made, by_folder = {}, {}
    for file in sorted(root.rglob("*.ipynb")):
        if file.with_name("parameters.yaml").exists():  # of a sweep
            continue
        given, where = _given_by_papermill(file)
        if where:
            made[where] = by_folder[record_files.data_path(where).resolve()] = given
    elsewhere = [path for path in by_folder if not path.is_relative_to(root.resolve())]
    for file in root.rglob("parameters.yaml"):
        given = by_folder[file.parent.resolve()] = read_yaml(file.read_text(encoding="utf-8"))
        if where := given.get("out") or given.get("corpus"):
            made[str(where)] = given
    parts = []
    for kind, csv in _results(folder, elsewhere):
        given = _behind(by_folder.get(csv.parent.resolve(), {}), made)
        frame = _read_result(kind, csv.parent).tables[kind]
        frame = frame if all else stats.default_rows(frame)
        frame = frame.assign(result=Path(os.path.relpath(csv.parent, root)).as_posix(), kind=kind)
        plain = {name: value for name, value in given.items() if name not in frame}
        parts.append(frame.assign(**plain))
    return pd.concat(parts, ignore_index=True)


def _given_by_papermill(file: Path) -> tuple[dict, str]:
    """Return the parameters that a notebook was executed with, and where it left its results, "" for nowhere."""
    notebook = read_json(file)
    if not notebook:
        warnings.warn(
            f"{file} is no whole notebook, and its parameters are not read; execute it again.",
            stacklevel=3,
        )
    executed = notebook.get("metadata", {}).get("papermill", {})
    passed = executed.get("parameters", {})
    given = {name: registry.listed(value, name) for name, value in passed.items()}
    name = Path(executed.get("input_path") or "").stem
    known = committed_runs().get(name, {})
    usual = known.get("parameters", {})
    where = given.get("out")
    if not where and "corpus" not in usual:  # where it is there, the texts are read
        where = given.get("corpus")
    if not where and "writes" in known:
        where = results_folder(known, name, usual | passed)
    return given, str(where or "")


def _behind(given: Mapping, made: Mapping[str, Mapping]) -> dict:
    """Return the parameters of a run as numbers and texts, before them those of the runs whose results it reads.

    made: {where a run left its results: its parameters}.
    """
    values = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    found: dict[str, list] = {}
    for each in chain.from_iterable(values.values()):
        before = made.get(str(each), given)
        for name, value in _behind(before, made).items() if before != given else ():
            found.setdefault(name, []).append(value)
    return {name: _as_one(several) for name, several in (found | values).items()}


def _as_one(values: list):
    """Return a number as it is, and texts, or several values, as one text."""
    several = [*dict.fromkeys(map(str, values))]
    return (
        values[0]
        if len(several) == 1 and isinstance(values[0], int | float)
        else ", ".join(several)
    )
