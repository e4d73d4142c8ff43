"""Results on the way from a notebook to a paper: one form of table, one way to keep a result, and to find it again.

An analysis notebook ends with `save`: estimates as CSV, figures, records where it made them, and below `paper/` the
small tables that figures are drawn from, with what they are about. `find` reads all such folders, also those of 0.1.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pandas as pd

from selfeval.errors import InputError
from selfeval.figures.rows import TEXT, bootstrapped, default_rows, renamed
from selfeval.files import for_spreadsheet
from selfeval.paths import DATA
from selfeval.records import data_path, write_csv, write_jsonl, write_whole

KINDS = {  # kind: (the tables of a set, the notebook that makes it)
    "implicit": (("implicit", "gaps"), "10_implicit_explicit"),
    "recognition": (("recognition", "counts", "roc", "contrasts"), "03_self_recognition"),
    "identity": (("identity",), "04_identity"),
    "jury": (("jury", "verdicts"), "06_jury"),
    "existence": (("existence",), "07_existence"),
    "validation": (("coverage", "power"), "08_validation"),
}
FILES = {"recognition": "self_recognition", "jury_records": "verdicts"}  # called otherwise than the table or kind
LABELS = TEXT | {*"predicted source arm conversation_id agent scenario model family juror".split()}
BY_FAMILY = ("accept_true", "accept_false", "claim_discrimination")
SERVED = {  # columns of records with a model's id: those with who answered under its name
    ("evaluator_model", "model", "juror", "evaluator"): ["served_model", "served_by"],
    ("true_model",): ["text_served_model", "text_served_by"],
    ("agent",): [],
}
Tables, Figures = Mapping[str, pd.DataFrame], Mapping[str, object]
DIGITS = 6  # significant; the last bits of a float differ between machines


@dataclass(frozen=True)
class ResultSet:
    """One evaluation's results: its name in figures, where they lie, its kind, what it is about, its tables by name."""

    name: str
    source: str
    kind: str
    about: dict
    tables: dict[str, pd.DataFrame]

    @property
    def display(self) -> dict[str, str]:
        """Return {model id: label}."""
        return {model["id"]: model["display"] for model in self.about["models"]}

    @property
    def simulated(self) -> bool:
        """Tell whether all its models are simulated."""
        names = {*self.display} - {"human"}
        return not names or all(name.startswith("sim/") for name in names)


def save(
    out: Path | str,
    kind: str,
    records: pd.DataFrame | list[dict],
    tables: Tables,
    figures: Figures,
    settings: Mapping,
    display: Mapping[str, str] | None = None,
    notebook: str = "",
) -> Path:
    """Write a result to a folder (below data/, or absolute), and return where its set for the paper's figures is.

    records: a list of those made here is written as JSON lines. tables: {name: rows}, those of `KINDS` and others;
    each with estimates becomes a CSV of its own. settings: what a reader of the figures has to know, as plain values.
    notebook: which one makes it, where that is not the first of its kind. A set that holds the same already keeps its
    date.
    """
    from selfeval.figures import style  # matplotlib

    folder, (names, first) = data_path(out), KINDS[kind]
    more = ["paired"] if kind == "identity" and "paired" in tables else []  # no figure draws it, papers say it
    kept = [*names, *more]
    if isinstance(records, list) and records:
        write_jsonl(folder / f"{FILES.get(f'{kind}_records', kind)}.jsonl", records)
    records = pd.DataFrame(records)
    for name, table in tables.items():
        if "estimate" in table:
            write_csv(folder / f"{FILES.get(name, name)}.csv", renamed(table))
    for name, figure in figures.items():
        style.save(figure, folder, name)
    made = {"kind": kind, "notebook": notebook or first}
    about = made | {"settings": dict(settings), "models": _models(records, display or {})}
    texts = {name: for_spreadsheet(_for_a_set(tables[name])) for name in kept}
    files = {f"{name}.csv": rows.to_csv(index=False, float_format=f"%.{DIGITS}g") for name, rows in texts.items()}
    where = folder / "paper"
    old = json.loads((where / "about.json").read_text("utf-8")) if (where / "about.json").exists() else {}
    same = [(where / name).exists() and (where / name).read_text("utf-8") == text for name, text in files.items()]
    dated = json.loads(json.dumps(about | {"date": old.get("date")}))
    about["date"] = old["date"] if all(same) and dated == old else date.today().isoformat()
    for name, text in (files | {"about.json": json.dumps(about, indent=1, ensure_ascii=False) + "\n"}).items():
        write_whole(where / name, text)
    (where / "survival.csv").unlink(missing_ok=True)  # of 0.1, which `_read` would add to these estimates
    return where


def _models(records: pd.DataFrame, display: Mapping[str, str]) -> list[dict]:
    """Return {id, display, served} of every model that the records name; served is who answered, "" where unknown."""
    found: dict[str, set] = {}
    for column, served in ((name, served) for names, served in SERVED.items() for name in names if name in records):
        said = records.reindex(columns=[column, *served]).replace({column: {"": None}}).dropna(subset=column)
        for model, *by in said.drop_duplicates().values:
            found.setdefault(model, set()).add(" via ".join(name for name in by if isinstance(name, str) and name))
    rows = []
    for model, names in found.items():
        told = [name for name in sorted(names - {model, ""}) if not any(f"{name} via " in other for other in names)]
        rows.append({"id": model, "display": display.get(model, model), "served": ", ".join(told)})
    return rows


def _for_a_set(table: pd.DataFrame) -> pd.DataFrame:
    """Return what a set keeps of a table: default rows, the BCa intervals that are shown, claims by family."""
    if "estimate" not in table:
        return table
    rows = default_rows(table, author=None)
    if rows["cluster_unit"].eq("template").any():
        rows = rows[rows["condition"].eq("") & (rows["task"].eq("") | rows["statistic"].isin(BY_FAMILY))]
    return pd.concat([rows, bootstrapped(table)])


def find(sources: str | Sequence[str], only: str | Sequence[str] = ()) -> list[ResultSet]:
    """Return all sets below folders (relative ones below data/), folder by folder, real models first; raise if none.

    only: names of sets, to leave out the others.
    """
    only, sources = ([each] if isinstance(each, str) else list(each) for each in (only, sources))
    found, place = {}, {}
    for rank, source in enumerate(sources):
        folder = data_path(source)
        for file in sorted(folder.rglob("paper/about.json")):
            name = "-".join(file.parent.parent.relative_to(folder).parts) or folder.name
            if name in found:
                raise InputError(f"Two sets of results are called {name!r}; name their folders apart.")
            found[name], place[name] = _read(file.parent, name), rank
    if not found:
        raise InputError(
            f"There are no results for figures below {', '.join(map(str, sources)) or 'no folder'}; run the analysis "
            "notebooks first, which write them to `<out>/paper/`."
        )
    if missing := [name for name in only if name not in found]:
        raise InputError(f"There is no set of results {missing[0]!r}; found {', '.join(found)}.")
    chosen = [one for name, one in found.items() if not only or name in only]
    return sorted(chosen, key=lambda s: (place[s.name], [*KINDS].index(s.kind), s.simulated, "human" in s.name, s.name))


def _read(folder: Path, name: str) -> ResultSet:
    """Return the set in a folder; labels are texts, empty where there is none."""
    how = {"dtype": dict.fromkeys(LABELS, str), "keep_default_na": False, "na_values": [""]}
    tables = {}
    try:
        about = json.loads((folder / "about.json").read_text("utf-8"))
        for table in KINDS[about["kind"]][0]:
            files = [folder / f"{table}.csv", *folder.glob("survival.csv")]  # up to 0.1 a table of its own
            parts = [pd.read_csv(file, **how) for file in files]
            parts = [renamed(part.fillna(dict.fromkeys(LABELS & {*part}, ""))) for part in parts]
            tables[table] = pd.concat(parts, ignore_index=True)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"The results in {folder} cannot be read ({error}); run their notebook again.") from error
    source = folder.relative_to(DATA.parent).as_posix() if folder.is_relative_to(DATA) else folder.name
    return ResultSet(name, source, about["kind"], about, tables)
