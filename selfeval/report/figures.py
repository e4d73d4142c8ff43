"""The figures and tables of a folder, with what they show: from its `index.json`, else from the files' names."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from selfeval.errors import InputError
from selfeval.files import below_root
from selfeval.report.tables import IN_WORDS
from selfeval.stats.serving import NOTE

# What answers the question of a set of results, the best first; the start page shows one figure of each set.
MAIN = ("advantage_exact_model", "advantage", "claims", "acceptance", "areas", "arms", "discrimination", "coverage")


@dataclass(frozen=True)
class Figure:
    """A picture: its set of results, name, caption and PNG file, and what it was made from."""

    set: str
    name: str
    caption: str
    file: Path
    origin: str = ""


@dataclass(frozen=True)
class ResultTable:
    """A table as printed: its set of results, caption, cells and notes, and what it was made from."""

    set: str
    caption: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    origin: str = ""


@dataclass
class Shown:
    """The figures and tables of a folder."""

    figures: list[Figure] = field(default_factory=list)
    tables: list[ResultTable] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.figures or self.tables)


def read(folder: Path) -> Shown:
    """Return the figures and tables of a folder; raise `InputError` where its index does not have the form."""
    if (folder / "index.json").is_file():
        return _indexed(folder)
    pictures, cells = sorted(folder.glob("*.png")), sorted(folder.glob("tables/*.csv"))
    return Shown(
        [Figure(file.stem.partition("_")[0], file.stem, file.stem.replace("_", " "), file) for file in pictures],
        [ResultTable(f.stem.partition("_")[0], f.stem.replace("_", " "), _read(f)) for f in cells],
    )


def _read(file: Path) -> pd.DataFrame:
    return pd.read_csv(file).replace(NOTE, IN_WORDS, regex=True)


def _indexed(folder: Path) -> Shown:
    shown = Shown()
    try:
        for entry in json.loads((folder / "index.json").read_text("utf-8")):
            origin = f"{entry['notebook']} from {entry['data']}, {entry['date']}; made by {entry['command']}"
            about = {"set": entry["set"], "caption": entry["caption"], "origin": origin}
            if entry["type"] == "table":
                cells = pd.DataFrame(entry["rows"], columns=entry["columns"])
                shown.tables.append(ResultTable(frame=cells, notes=tuple(entry.get("notes") or ()), **about))
                continue
            pictures = [folder / file for file in entry["files"] if file.endswith(".png") and "/" not in file]
            shown.figures += [Figure(name=entry["name"], file=file, **about) for file in pictures]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{below_root(folder)}/index.json is no index of figures: {error!r}.") from error
    return shown


def main_ones(figures: list[Figure]) -> list[Figure]:
    """Return one figure of each set: the one that answers its question."""

    def rank(one: Figure) -> int:
        kind = one.name.removeprefix(f"{one.set}_")
        return next((k for k, name in enumerate(MAIN) if kind.startswith(name)), len(MAIN))

    return [min((f for f in figures if f.set == name), key=rank) for name in dict.fromkeys(f.set for f in figures)]
