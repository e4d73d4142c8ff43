"""The paper's figures and tables from sets of results (`selfeval.figures.results`), with an index of what each shows."""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from selfeval.errors import InputError
from selfeval.figures import style
from selfeval.figures.drawing import draw
from selfeval.figures.printed import save_table, set_tables
from selfeval.figures.results import ResultSet
from selfeval.figures.rows import default_rows, words
from selfeval.figures.tables import about_intervals
from selfeval.records import write_whole
from selfeval.stats.serving import MARK

TEN = 10  # figures of the paper; the others are its supplement
MAIN = {  # figures that go into the paper first, and what they are told with
    "recognition": "discrimination",
    "identity": "claim_discrimination",
    "jury": "auc",
    "existence": "discrimination",
}


def make(sets: Sequence[ResultSet], out: Path, command: str) -> list[dict]:
    """Write all figures, tables, index.json and README.md to a folder; return the index, the paper's figures first.

    A figure is written as `<set>_<figure>.pdf`, .png and .svg as wide as two columns of print; the paper's ten also as
    wide as one, in `single/`; tables as CSV and LaTeX in `tables/`. command: what makes them, for the index. What an
    earlier index names and this one does not is removed.
    """
    known = {one.name: one for one in sets}
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), style.use_style) as pool:
        drawn = dict(zip(known, pool.map(_draw_set, sets, [out] * len(sets)), strict=True))
        ranked = sorted((rank, k, name) for k, one in enumerate(known) for rank, name in enumerate(drawn[one]))
        paper = [([*known][k], name) for _, k, name in ranked[:TEN]]
        single = pool.map(_draw_set, [known[one] for one, _ in paper], [out / "single"] * TEN, [[n] for _, n in paper])
        for (one, name), more in zip(paper, single, strict=True):
            drawn[one][name] += more[name]
    index = [_entry(known[one], name, drawn[one][name], out, command) | {"paper": True} for one, name in paper]
    for one in sets:
        rest = [name for name in drawn[one.name] if (one.name, name) not in paper]
        index += [_entry(one, name, drawn[one.name][name], out, command) for name in rest]
        index += _tables(one, out, command)
    _remove_stale(out, index)
    write_whole(out / "index.json", json.dumps(index, indent=1, ensure_ascii=False) + "\n")
    write_whole(out / "README.md", _readme(sets, index, command))
    return index


def _draw_set(one: ResultSet, folder: Path, only: Sequence[str] = ()) -> dict[str, list[Path]]:
    """Write a set's figures, in two columns' width or in one for `single`; return their files."""
    width = style.SINGLE if folder.name == "single" else style.DOUBLE
    found = draw(one.kind, one.tables, one.display, width, only)
    return {name: style.save(figure, folder, file_name(one, name)) for name, figure in found.items()}


def file_name(one: ResultSet, figure: str) -> str:
    """Return what a figure of a set is called: the set, and what is drawn."""
    return f"{one.name}_{figure.removesuffix(f'_{one.kind}')}"


def _entry(one: ResultSet, name: str, files: Sequence[Path], out: Path, command: str, **more) -> dict:
    about = {"type": "figure", "name": file_name(one, name), "caption": caption(one, name), "set": one.name,
             "kind": one.kind, "date": one.about["date"], "notebook": one.about["notebook"], "data": one.source,
             "command": command}  # fmt: skip
    return about | more | {"notes": notes(one), "files": [file.relative_to(out).as_posix() for file in files]}


def _tables(one: ResultSet, out: Path, command: str) -> list[dict]:
    """Write the tables of a set; return their entries."""
    entries = []
    for name, (title, numbers, shown) in set_tables(one).items():
        called = one.name if name == one.name else f"{one.name}_{name}"
        labels = [column for column in ("task", "condition", "whose answers", "evaluator") if column in shown]
        groups = labels[:-1]
        files = save_table(numbers, out / "tables", called, notes(one), shown, groups)
        more = {
            "type": "table",
            "name": called,
            "caption": f"{title}.",
            "columns": [*shown],
            "rows": shown.values.tolist(),
        }
        entries.append(_entry(one, name, files, out, command) | more)
    return entries


def caption(one: ResultSet, name: str) -> str:
    """Say what a figure shows, over how much, whether it is simulated, and how its intervals are made."""
    what, _, design = name.partition("_")
    parts = [words()["figures"][one.kind].get(what, ""), "All models are simulated." * one.simulated]
    rows = one.tables.get("contrasts" if what == "contrasts" else one.kind)
    if rows is not None:
        rows = default_rows(rows, MAIN[one.kind])
        parts.append(_sizes(rows[rows["task"].map(design.startswith)] if one.kind == "recognition" else rows))
        parts.append(about_intervals(rows))
    return " ".join(filter(None, parts))


def _sizes(rows: pd.DataFrame) -> str:
    counts = sorted({int(number) for number in rows["clusters"] if number > 0})
    models = rows["evaluator"].nunique()
    if not counts:
        return ""
    span = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
    who = f"{models} {'model' if models == 1 else 'models'}, " * any(rows["evaluator"])
    return f"n: {who}{span} {rows['cluster_unit'].iloc[0]}{'s' * (span != '1')}."


def notes(one: ResultSet) -> list[str]:
    """Return the notes of a set: models with the version that answered, interval methods, settings, date."""
    models = [
        f"{m['display']} is {m['id']}" + f" (answered by {m['served']})" * bool(m["served"])
        for m in one.about["models"]
    ]
    mixed = any(label.endswith(MARK) for label in one.display.values())
    main = one.tables.get(one.kind)
    shared = {}
    if one.kind == "recognition":
        parts = [set(condition.split(";")) for condition in main["condition"].unique()]
        shared = dict(sorted(part.split("=", 1) for part in set.intersection(*parts) if "=" in part))
    settings = [
        f"{key.replace('_', ' ')} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in (one.about["settings"] | shared).items()
        if value not in ("", None, [], "none") and not isinstance(value, dict)
    ]
    found = [
        f"{'; '.join(models)}." if models else "",
        "All models are simulated." * one.simulated,
        "" if main is None else about_intervals(default_rows(main, *_printed(one.kind))),
        f"{MARK.strip()} Several endpoints served this model; its numbers mix them." * mixed,
        f"Settings: {'; '.join(settings)}." if settings else "",
        f"Results of {one.about['date']}.",
    ]
    return [*filter(None, found)]


def _printed(kind: str) -> list[str]:
    return [name for about in words()["tables"][kind].values() for name in about["columns"]]


def _remove_stale(out: Path, index: Sequence[dict]) -> None:
    """Remove files that this folder's earlier index lists and the new one does not."""
    try:
        old = json.loads((out / "index.json").read_text("utf-8"))
        listed = {name for entry in old for name in entry["files"]}
    except FileNotFoundError:
        return
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{out}/index.json is no index of figures ({error!r}); remove it, or choose another `out`."
        ) from error
    for name in listed - {name for entry in index for name in entry["files"]}:
        file = (out / name).resolve()
        if file.is_relative_to(out.resolve()):
            file.unlink(missing_ok=True)


def _readme(sets: Sequence[ResultSet], index: Sequence[dict], command: str) -> str:
    """Return the index for readers: the paper's figures, then per set what made it, its other figures and tables."""
    lines = [
        "# Figures and tables",
        f"Written by `09_paper_figures` (`{command}`) from the small tables of results below `data/`; nothing here is "
        "edited by hand. Figures are PDF (embedded TrueType fonts), SVG and PNG, 6.9 inches wide, those of the paper also "
        "3.3 inches wide in `single/`; tables are CSV (numbers) and LaTeX (booktabs, threeparttable) in `tables/`. "
        "`index.json` lists them all for programs.",
        "## Contents",
        "\n".join(["* [The paper's figures](#the-papers-figures)", *(f"* [{one.name}](#{one.name})" for one in sets)]),
        "## The paper's figures",
        *(_shown(entry) for entry in index if entry.get("paper")),
    ]
    for one in sets:
        made = f"`{one.about['notebook']}`, from `{one.source}`, of {one.about['date']}."
        lines += [f"## {one.name}", f"Made by {made}", "\n".join(f"* {_literal(note)}" for note in notes(one))]
        lines += [_shown(entry) for entry in index if entry["set"] == one.name and not entry.get("paper")]
    return "\n\n".join(lines) + "\n"


def _shown(entry: dict) -> str:
    name, said = entry["name"], _literal(entry["caption"])
    if entry["type"] == "figure":
        return f"### {name}\n\n![{name}]({name}.png)\n\n{said}"
    rows = [entry["columns"], ["---"] * len(entry["columns"]), *entry["rows"]]
    cells = "\n".join(f"| {' | '.join(_literal(str(cell)) for cell in row)} |" for row in rows)
    return f"### {name} (table)\n\n{said}\n\n{cells}"


def _literal(text: str) -> str:
    """Return text that Markdown shows as it is: names come from data."""
    for mark in "\\`*_<>|[]":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
