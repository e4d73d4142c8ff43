"""The paper's figures and tables from sets of results (`selfeval.figures.results`), with an index of what each shows.

`make` writes them all. The functions that draw are those of the analysis notebooks.
"""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from matplotlib.figure import Figure

from selfeval import figures
from selfeval.errors import InputError
from selfeval.figures import DOUBLE, SINGLE
from selfeval.figures.captions import caption, notes
from selfeval.figures.identity import identity_figures
from selfeval.figures.jury import jury_figures
from selfeval.figures.paper_tables import set_tables
from selfeval.figures.results import ResultSet
from selfeval.records import write_whole

WIDTHS = {"double": DOUBLE, "single": SINGLE}


def draw(one: ResultSet, width: float = DOUBLE) -> dict[str, Figure]:
    """Return every figure that a set of results allows: {"<kind>_<what>": figure}."""
    return DRAWING[one.kind](one, width)


def _recognition(one: ResultSet, width: float) -> dict[str, Figure]:
    t = one.tables
    changes = t["contrasts"] if len(t["contrasts"]) else None
    return figures.recognition_figures(t["recognition"], t["counts"], one.display, t["roc"], changes, width)


def _identity(one: ResultSet, width: float) -> dict[str, Figure]:
    return identity_figures(one.tables["identity"], one.tables["survival"], one.display, width)


def _jury(one: ResultSet, width: float) -> dict[str, Figure]:
    return jury_figures(one.tables["verdicts"], one.tables["jury"], width)


def _existence(one: ResultSet, width: float) -> dict[str, Figure]:
    return figures.existence_figures(one.tables["existence"], one.display, width)


def _validation(one: ResultSet, width: float) -> dict[str, Figure]:
    promise = one.about["settings"]["promise"]
    return figures.validation_figures(one.tables["coverage"], one.tables["power"], promise, width)


DRAWING: dict[str, Callable[[ResultSet, float], dict[str, Figure]]] = {
    "recognition": _recognition,
    "identity": _identity,
    "jury": _jury,
    "existence": _existence,
    "validation": _validation,
}


def make(sets: Sequence[ResultSet], out: Path, command: str) -> list[dict]:
    """Write all figures, tables, index.json and README.md to a folder; return the index.

    A figure is written as `<set>_<figure>.pdf`, .png and .svg as wide as two columns of print, and as wide as one in
    `single/`; tables as CSV and LaTeX in `tables/`. command: what makes them, for the index. What an earlier index
    names and this one does not is removed.
    """
    index, saved = [], _draw_all(sets, out)
    for one in sets:
        entry = {"set": one.name, "kind": one.kind, "date": one.about["date"], "notebook": one.about["notebook"]}
        entry |= {"data": one.source, "command": command}
        for name in saved[one.name, "double"]:
            called = file_name(one, name)
            files = [path.relative_to(out) for size in WIDTHS for path in saved[one.name, size][name]]
            index.append(
                {
                    "type": "figure",
                    "name": called,
                    "caption": caption(one, name),
                    **entry,
                    "files": sorted(map(str, files)),
                }
            )
        for table in set_tables(one):
            called = f"{one.name}_{table.name}" if table.name != one.name else one.name
            below = notes(one)
            files = figures.save_table(
                table.numbers, out / "tables", called, notes=below, shown=table.shown, groups=table.groups
            )
            index.append({
                "type": "table", "name": called, "caption": f"{table.title}.", **entry, "notes": below,
                "files": [path.relative_to(out).as_posix() for path in files],
                "columns": list(table.shown), "rows": table.shown.values.tolist(),
            })  # fmt: skip
    _remove_stale(out, index)
    write_whole(out / "index.json", json.dumps(index, indent=1, ensure_ascii=False) + "\n")
    write_whole(out / "README.md", _readme(sets, index, command))
    return index


def _draw_all(sets: Sequence[ResultSet], out: Path) -> dict[tuple[str, str], dict[str, list[Path]]]:
    """Draw and write the figures of all sets at all widths, in as many processes as there are cores.

    Returns {(set, width): {figure: its files}}.
    """
    jobs = [(one, size, out) for one in sets for size in WIDTHS]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), figures.use_style) as pool:
        found = list(pool.map(_draw_set, *zip(*jobs, strict=True)))
    return {(one.name, size): files for (one, size, _), files in zip(jobs, found, strict=True)}


def _draw_set(one: ResultSet, size: str, out: Path) -> dict[str, list[Path]]:
    """Write a set's figures at one width; return their files."""
    folder = out if size == "double" else out / size
    drawn = draw(one, WIDTHS[size])
    return {name: figures.save(figure, folder, file_name(one, name)) for name, figure in drawn.items()}


def file_name(one: ResultSet, figure: str) -> str:
    """Return what a figure of a set is called: the set, and what is drawn."""
    return f"{one.name}_{figure.removesuffix(f'_{one.kind}')}"


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
    """Return the index for readers: per set what made it, then its tables and figures with captions."""
    lines = [
        "# Figures and tables",
        "",
        f"Written by `09_paper_figures` (`{command}`) from the small tables of results below `data/`; nothing "
        "here is edited by hand. Every figure is there as PDF (embedded TrueType fonts), SVG and PNG, 6.9 inches wide, "
        "and 3.3 inches wide in `single/`; every table as CSV (numbers) and LaTeX (booktabs, threeparttable) in "
        "`tables/`. `index.json` lists them all for programs.",
    ]
    for one in sets:
        of_set = [entry for entry in index if entry["set"] == one.name]
        lines += [
            "",
            f"## {one.name}",
            "",
            f"* **notebook** `{one.about['notebook']}`",
            f"* **data** `{of_set[0]['data']}`",
        ]
        lines += [f"* **command** `{command}`", f"* **date** {one.about['date']}"]
        for entry in of_set:
            lines += ["", *(_table_lines(entry) if entry["type"] == "table" else _figure_lines(entry))]
        lines += ["", *(f"{note}  " for note in notes(one))]
    return "\n".join(lines) + "\n"


def _figure_lines(entry: dict) -> list[str]:
    name = entry["name"]
    return [f"### {name}", "", f"![{name}]({name}.png)", "", _literal(entry["caption"])]


def _table_lines(entry: dict) -> list[str]:
    rows = [entry["columns"], ["---"] * len(entry["columns"]), *entry["rows"]]
    cells = [" | ".join(_literal(str(cell)) for cell in row) for row in rows]
    return [f"### {entry['name']} (table)", "", _literal(entry["caption"]), "", *(f"| {line} |" for line in cells)]


def _literal(text: str) -> str:
    """Return text that Markdown shows as it is: names come from data."""
    for mark in "\\`*_<>|[]":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
