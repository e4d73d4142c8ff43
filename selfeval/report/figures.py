"""The figures and tables of a folder, with what they show: from its `index.json`, else from the files' names."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from selfeval.display import below_root
from selfeval.errors import InputError

MAIN = ("advantage", "acceptance", "areas", "arms", "existence", "coverage", "survival", "forest")
EACH = 2  # main figures of one set of results


@dataclass(frozen=True)
class Figure:
    """A picture of a folder: its set of results, name, caption and PNG file, and where it comes from."""

    set: str
    name: str
    caption: str
    file: Path
    origin: str = ""


def read(folder: Path) -> tuple[list[Figure], list[tuple[str, pd.DataFrame]]]:
    """Return the figures of a folder, and its tables as (caption, table)."""
    if (folder / "index.json").is_file():
        return _indexed(folder)
    files = sorted(folder.glob("*.png"))
    figures = [Figure(file.stem.partition("_")[0], file.stem, file.stem.replace("_", " "), file) for file in files]
    tables = [(file.stem.replace("_", " "), pd.read_csv(file)) for file in sorted(folder.glob("tables/*.csv"))]
    return figures, tables


def _indexed(folder: Path) -> tuple[list[Figure], list[tuple[str, pd.DataFrame]]]:
    try:
        index = json.loads((folder / "index.json").read_text("utf-8"))
        figures, tables = [], []
        for entry in index:
            if entry["type"] == "table":
                tables.append((entry["caption"], pd.DataFrame(entry["rows"], columns=entry["columns"])))
                continue
            pictures = [folder / file for file in entry["files"] if file.endswith(".png") and "/" not in file]
            origin = f"{entry['notebook']} from {entry['data']}, {entry['date']}; made by {entry['command']}"
            figures += [Figure(entry["set"], entry["name"], entry["caption"], file, origin) for file in pictures]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{below_root(folder)}/index.json is no index of figures: {error!r}.") from error
    return figures, tables


def main_ones(figures: list[Figure]) -> list[Figure]:
    """Return at most two figures of each set, those first that answer its question."""

    def rank(one: Figure) -> int:
        kind = one.name.removeprefix(f"{one.set}_")
        return next((k for k, name in enumerate(MAIN) if kind.startswith(name)), len(MAIN))

    chosen = []
    for name in dict.fromkeys(one.set for one in figures):
        of_set = sorted((one for one in figures if one.set == name), key=rank)
        chosen += of_set[:EACH]
    return chosen
