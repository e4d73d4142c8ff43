"""What a paper's figures are drawn from: small tables of results with what they are about, in a folder `paper` each.

An analysis notebook keeps its set with `keep`, below its own results: `<out>/paper/about.json` and a CSV per table.
`09_paper_figures` finds all sets below a folder with `find`, and needs nothing else: no model, no reply, no record.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pandas as pd

from selfeval import DATA
from selfeval.errors import InputError
from selfeval.files import for_spreadsheet
from selfeval.records import data_path, write_whole
from selfeval.stats.counts import confusion
from selfeval.stats.roc import roc_points
from selfeval.stats.serving import of_predictions

KINDS = {  # kind: (the tables of a set, the notebook that makes it)
    "recognition": (("recognition", "counts", "roc", "contrasts"), "03_self_recognition"),
    "identity": (("identity", "survival"), "04_identity"),
    "jury": (("jury", "verdicts"), "06_jury"),
    "existence": (("existence",), "07_existence"),
    "validation": (("coverage", "power"), "08_validation"),
}
TEXT = frozenset(
    "evaluator author task condition policy statistic method note predicted field first second model family source arm "
    "juror conversation_id agent pair scenario".split()
)
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


def keep(
    folder: Path, kind: str, tables: Mapping[str, pd.DataFrame], models: Iterable[Mapping], settings: Mapping
) -> Path:
    """Write a set below a results folder and return where; one that holds the same already keeps its date.

    tables: {name: rows} as `KINDS` says. models: {id, display, served} of every name in them; served is the version
    that answered, "" where unknown. settings: what a reader of the figures has to know, as plain values.
    """
    names, notebook = KINDS[kind]
    if set(tables) != set(names):
        raise InputError(f"A set of kind {kind!r} has the tables {', '.join(names)}, got {', '.join(tables)}.")
    where = Path(folder) / "paper"
    about = {"kind": kind, "notebook": notebook, "settings": dict(settings), "models": [dict(m) for m in models]}
    texts = {
        f"{name}.csv": for_spreadsheet(tables[name]).to_csv(index=False, float_format=f"%.{DIGITS}g") for name in names
    }
    old = _read_about(where) if (where / "about.json").exists() else {}
    same = {key: old.get(key) for key in about} == json.loads(json.dumps(about))
    same = same and all((where / name).exists() and (where / name).read_text("utf-8") == t for name, t in texts.items())
    about["date"] = old["date"] if same and "date" in old else date.today().isoformat()
    for name, text in texts.items():
        write_whole(where / name, text)
    write_whole(where / "about.json", json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return where


def keep_recognition(
    folder: Path,
    records: pd.DataFrame,
    table: pd.DataFrame,
    changes: pd.DataFrame,
    display: Mapping[str, str],
    texts: Sequence[Mapping] = (),
) -> Path:
    """Keep what figures of self-recognition need. texts: those of the corpus, for the versions that wrote them."""
    served: dict[str, set] = {}
    for text in texts:
        served.setdefault(text["author"], set()).add(text.get("served_model") or "")
    served |= {model: {*found} for model, found in of_predictions(records).items()}
    names = dict.fromkeys([*records["evaluator_model"].unique(), *records["true_model"].unique()])
    tables = {
        "recognition": default_only(table, ["evaluator", "author", "task", "condition"]),
        "counts": confusion(records),
        "roc": roc_points(records, table),
        "contrasts": changes,
    }
    level, prompts = table["level"].iloc[0], int(table["n_prompts"].max())
    settings = {"level": float(level), "prompts": prompts, "texts": int(records["text_id"].nunique())}
    settings |= _common(table["condition"].unique())
    return keep(folder, "recognition", tables, _models(names, display, served), settings)


def keep_identity(
    folder: Path,
    records: pd.DataFrame,
    table: pd.DataFrame,
    by_family: pd.DataFrame,
    by_condition: pd.DataFrame,
    lasting: pd.DataFrame,
    display: Mapping[str, str],
    settings: Mapping,
) -> Path:
    """Keep what figures of identity need: estimates per model, claims per family and condition, survival by turn."""
    accepts = ["accept_true", "accept_false"]
    parts = [default_only(table, ["model"])]
    for group, rows in (("family", by_family), ("condition", by_condition)):
        parts.append(default_only(rows[rows["statistic"].isin(accepts)], ["model", group]))
    tables = {"identity": pd.concat(parts, ignore_index=True), "survival": default_only(lasting, ["model", "turn"])}
    served = records.groupby("model")["served_model"].agg(lambda found: {*found.dropna()}).to_dict()
    templates = {model: int(rows["template_id"].nunique()) for model, rows in records.groupby("model", sort=False)}
    counted = {"level": float(table["level"].iloc[0]), "templates": templates, "records": len(records)}
    return keep(folder, "identity", tables, _models(templates, display, served), counted | dict(settings))


def keep_jury(
    folder: Path,
    records: pd.DataFrame,
    table: pd.DataFrame,
    verdicts: pd.DataFrame,
    display: Mapping[str, str],
    settings: Mapping,
) -> Path:
    """Keep what figures of a jury need. table: with the rows of the judges that understand nothing."""
    tables = {
        "jury": default_only(table, ["arm", "source", "round", "juror"]),
        "verdicts": verdicts[["conversation_id", "turn", "arm", "source", "agent", "score"]],
    }
    served = records.groupby("juror")["served_model"].agg(lambda found: {*found.dropna()}).to_dict()
    counted = {
        "level": float(table["level"].iloc[0]),
        "conversations": int(records["conversation_id"].nunique()),
        "statements": len(records),
    }
    names = dict.fromkeys([*records["juror"].unique(), *records["agent"].dropna().unique()])
    return keep(folder, "jury", tables, _models(names, display, served), counted | dict(settings))


def keep_existence(folder: Path, records: pd.DataFrame, table: pd.DataFrame, settings: Mapping) -> Path:
    """Keep what figures of the test of names need."""
    display = dict(zip(records["evaluator"], records["evaluator_display"], strict=True))
    counted = {
        "level": float(table["level"].iloc[0]),
        "names": int(records["target_model"].nunique()),
        "questions": len(records),
    }
    return keep(folder, "existence", {"existence": table}, _models(display, display, {}), counted | dict(settings))


def keep_validation(folder: Path, coverage: pd.DataFrame, power: pd.DataFrame, settings: Mapping) -> Path:
    """Keep what figures of coverage and power need."""
    needed = "scenario prompts statistic method coverage mc_error lowest_rate highest_rate".split()
    return keep(folder, "validation", {"coverage": coverage[needed], "power": power}, [], settings)


def default_only(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return the default row (first method, first policy) of every statistic of every group."""
    return table.drop_duplicates([*(key for key in keys if key in table), "statistic"])


def _models(ids: Iterable[str], display: Mapping[str, str], served: Mapping[str, set]) -> list[dict]:
    return [
        {"id": i, "display": display.get(i, i), "served": ", ".join(sorted(served.get(i, set()) - {i, ""}))}
        for i in ids
    ]


def _common(conditions: Iterable[str]) -> dict[str, str]:
    """Return the settings that all conditions share."""
    parts = [set(str(condition).split(";")) for condition in conditions]
    return dict(sorted(part.split("=", 1) for part in set.intersection(*parts) if "=" in part))


def find(sources: str | Sequence[str], only: str | Sequence[str] = ()) -> list[ResultSet]:
    """Return all sets below folders (relative ones below data/), real models first; raise where there is none.

    only: names of sets, to leave out the others.
    """
    only = [only] if isinstance(only, str) else list(only)
    sources = [sources] if isinstance(sources, str) else list(sources)
    found = {}
    for source in sources:
        folder = data_path(source)
        for file in sorted(folder.rglob("paper/about.json")):
            inside = file.parent.parent.relative_to(folder)
            name = "-".join(inside.parts) or folder.name
            if name in found:
                raise InputError(f"Two sets of results are called {name!r}; name their folders apart.")
            found[name] = _read(file.parent, name)
    if not found:
        raise InputError(
            f"There are no results for figures below {', '.join(map(str, sources)) or 'no folder'}; run the analysis "
            "notebooks first, which write them to `<out>/paper/`."
        )
    if missing := [name for name in only if name not in found]:
        raise InputError(f"There is no set of results {missing[0]!r}; found {', '.join(found)}.")
    found = {name: one for name, one in found.items() if not only or name in only}
    return sorted(found.values(), key=_rank)


def _rank(one: ResultSet) -> tuple:
    """Put the evaluations in their order; within one, real models come before simulated ones."""
    ids = [model["id"] for model in one.about["models"]]
    simulated = bool(ids) and all(name.startswith("sim/") for name in ids)
    return [*KINDS].index(one.kind), simulated, "human" in one.name, one.name


def _read(folder: Path, name: str) -> ResultSet:
    about = _read_about(folder)
    if about.get("kind") not in KINDS:
        raise InputError(f"{folder}/about.json: `kind` must be one of {', '.join(KINDS)}, got {about.get('kind')!r}.")
    tables = {}
    for table in KINDS[about["kind"]][0]:
        try:
            rows = pd.read_csv(
                folder / f"{table}.csv", dtype=dict.fromkeys(TEXT, str), keep_default_na=False, na_values=[""]
            )
        except (OSError, ValueError) as error:
            raise InputError(
                f"{folder}/{table}.csv cannot be read ({error}); run {about['notebook']} again."
            ) from error
        tables[table] = rows.fillna(dict.fromkeys(TEXT & set(rows), ""))
    source = folder.relative_to(DATA.parent).as_posix() if folder.is_relative_to(DATA) else folder.name
    return ResultSet(name, source, about["kind"], about, tables)


def _read_about(folder: Path) -> dict:
    try:
        return json.loads((folder / "about.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}/about.json cannot be read ({error}); run its notebook again.") from error
