"""Results on disk: kept, read again, and gathered over the runs of a sweep."""

import os
import warnings
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from selfeval import stats
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
from selfeval.paths import HOME, committed_runs, read_json, results_folder, shipped
from selfeval.providers import models as registry
from selfeval.records import tables as record_files

# {file of estimates: their kind}
MAIN = {f"{file_of(kind)}.csv": kind for kind in KINDS}


def save(result: Estimates, out: str | Path) -> Path:
    """Write a result to a folder below data/ and return it: a CSV per table, and its main figure.

    Answers about texts and verdicts of juries are kept by the verb that asks, with `out`; other
    records are written here. `read_results` and `runs` read the CSVs again.
    """
    folder = record_files.data_path(out)
    check_measured("save", result)
    _check_kept(result.kind, folder)
    if result.kind in ("identity", "existence"):
        records = record_files.rows_of(result.records)
        record_files.write_jsonl(folder / f"{result.kind}.jsonl", records)
    for name in KINDS[result.kind].tables:
        if name in result.tables:
            record_files.write_csv(folder / f"{file_of(name)}.csv", result.tables[name])
    figure: Any = plot(result)
    if figure:
        figure.save(folder / file_of(result.kind))
    return folder


def _check_kept(kind: str, folder: Path) -> None:
    """Refuse a folder whose tables, of a result of another kind, would be replaced."""
    for file, other in MAIN.items():
        shared = {*KINDS[other].tables} & {*KINDS[kind].tables}
        if other != kind and shared and (folder / file).exists():
            rule = f"{folder} has {file}, whose tables this result would replace"
            raise InputError(f"{rule}; name a folder of its own.")


def _folder(folder: str | Path) -> Path:
    """Return a folder of results; of a file in it, the folder.

    It is named below data/, or from here or the clone, as commands name it (data/runs/mine).
    """
    for path in (shipped(folder), HOME / folder):
        if path.exists():
            break
    else:
        path = Path(folder)
    return path.parent if path.is_file() else path


def read_results(folder: str | Path) -> list[Estimates]:
    """Return the results that notebooks or `save` kept below a folder, as `measure_...` does."""
    return [_read_result(kind, file.parent) for kind, file in _results(folder)]


def _results(folder: str | Path, elsewhere: Iterable[Path] = ()) -> list[tuple[str, Path]]:
    """Return (kind, CSV of estimates) of the results below a folder or in others, by path."""
    files = sorted(_folder(folder).rglob("*.csv"))
    for other in elsewhere:
        files += sorted(other.glob("*.csv"))
    found = [(MAIN[file.name], file) for file in files if file.name in MAIN]
    if not found:
        rule = f"There are no results below {folder}"
        raise InputError(f"{rule}; run a sweep or an analysis notebook first.")
    return found


def _read_result(kind: str, folder: Path) -> Estimates:
    """Return the result in a folder; labels are texts, empty where there is none."""
    tables = {}
    for name in KINDS[kind].tables:
        file = folder / f"{file_of(name)}.csv"
        if file.exists():
            tables[name] = read_table(file)
    rows = tables[kind]
    if kind == "identity":  # the file also has families and conditions
        rows = rows[rows["task"].eq("") & rows["condition"].eq("")]
    names = registry.display_names(pd.concat([tables[kind]["evaluator"], tables[kind]["author"]]))
    result = estimates_of(kind, rows, {}, None, names)
    result.tables = tables
    return result


def read_table(file: Path) -> pd.DataFrame:
    """Return a table of a result as it was written."""
    as_text = dict.fromkeys(TEXT, str)
    table = pd.read_csv(file, dtype=as_text, keep_default_na=False, na_values=[""])
    empty = dict.fromkeys(TEXT.intersection(table), "")
    return record_files.from_spreadsheet(table.fillna(empty))


def runs(folder: str | Path = "data/runs", *, all: bool = False) -> pd.DataFrame:
    """Return the estimates of a sweep's folder, a row each, with the parameters behind them.

    Parameters are columns: those of the run and of the runs whose texts and answers it read;
    different ones are joined by commas. folder: data/runs, with all sweeps and studies, unless
    given; or one of notebooks that plain papermill executed, wherever their results are. all: with
    every policy and method of interval, instead of each statistic's usual ones.
    """
    root = _folder(folder)
    by_place, by_folder = _parameters(root)
    elsewhere = [place for place in by_folder if not place.is_relative_to(root.resolve())]
    frames = []
    for kind, file in _results(folder, elsewhere):
        frame = _read_result(kind, file.parent).tables[kind]
        if not all:
            frame = stats.default_rows(frame)
        result = Path(os.path.relpath(file.parent, root)).as_posix()
        frame = frame.assign(result=result, kind=kind)
        parameters = _behind(by_folder.get(file.parent.resolve(), {}), by_place)
        new = {name: value for name, value in parameters.items() if name not in frame}
        frames.append(frame.assign(**new))
    return pd.concat(frames, ignore_index=True)


def _parameters(root: Path) -> tuple[dict[str, dict], dict[Path, dict]]:
    """Return the parameters of the runs below a folder, by what names their results, and where.

    The names are those in other runs' parameters, such as a corpus; the places are folders.
    """
    by_place = {}
    by_folder = {}
    for file in sorted(root.rglob("*.ipynb")):
        parameters, place = _given_by_papermill(file)
        if place:
            by_place[place] = parameters
            results = record_files.data_path(place)
            if not results.is_dir():  # runs of a sweep that were moved stand beside their results
                results = file.parent
            by_folder[results.resolve()] = parameters
    return by_place, by_folder


def _given_by_papermill(file: Path) -> tuple[dict, str]:
    """Return a notebook's parameters, and the name of its results ("" for none)."""
    notebook = read_json(file)
    if not notebook:
        rule = f"{file} is no whole notebook, and its parameters are not read"
        warnings.warn(f"{rule}; execute it again.", stacklevel=4)
    executed = notebook.get("metadata", {}).get("papermill", {})
    passed = executed.get("parameters", {})
    parameters = {name: registry.listed(value, name) for name, value in passed.items()}
    name = Path(executed.get("input_path") or "").stem
    known = committed_runs().get(name, {})
    defaults = known.get("parameters", {})
    place = parameters.get("out")
    if not place and "corpus" not in defaults:  # where it is there, the texts are read
        place = parameters.get("corpus")
    if not place and "writes" in known:
        place = results_folder(known, name, defaults | passed)
    return parameters, str(place or "")


def _behind(parameters: Mapping, by_place: Mapping[str, Mapping]) -> dict:
    """Return the parameters of a run and those of the runs whose results it reads.

    Each is a number, or texts joined by commas.
    """
    several: dict[str, list] = {}
    own: dict[str, list] = {}
    for name, value in parameters.items():
        own[name] = value if isinstance(value, list) else [value]
    for value in chain.from_iterable(own.values()):
        before = by_place.get(str(value), parameters)
        if before != parameters:
            for name, earlier in _behind(before, by_place).items():
                several.setdefault(name, []).append(earlier)
    return {name: _as_one(values) for name, values in (several | own).items()}


def _as_one(values: list):
    """Return a number as it is, and texts, or several values, as one text."""
    distinct = dict.fromkeys(map(str, values))
    if len(distinct) == 1 and isinstance(values[0], int | float):
        return values[0]
    return ", ".join(distinct)
