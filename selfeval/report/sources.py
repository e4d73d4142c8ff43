"""What there is to report below a folder, source by source, and what must not leave this machine."""

import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from selfeval.errors import InputError
from selfeval.figures.cards import short
from selfeval.keys import SECRET_VALUE, values, visible
from selfeval.paths import HOME
from selfeval.sweep.runs import COUNTS, read_json

MAPPINGS = ("parameters", "counts", "written")  # of a manifest
PICTURES = ("image/png", "image/jpeg")


class Source(NamedTuple):
    """A run of a sweep with its manifest, or a folder without runs; nothing of it is mixed with another's."""

    name: str
    folder: Path
    manifest: dict

    def files(self, ending: str) -> list[Path]:
        """Return the files whose path ends so: those in the folder, then those that the run wrote elsewhere."""
        inside = [file for file in sorted(self.folder.rglob("*")) if ".ipynb_checkpoints" not in file.parts]
        elsewhere = map(Path, self.manifest.get("written", {}))
        return [file for file in dict.fromkeys([*inside, *elsewhere]) if str(file).endswith(ending) and file.is_file()]

    @property
    def about(self) -> str:
        """Return how a run ended and what it took, "" for a folder."""
        known = self.manifest | self.manifest.get("counts", {})
        return short({name: known[name] for name in ("status", "cause", "seconds", *COUNTS) if known.get(name)})


def find(folders: Sequence[Path]) -> list[Source]:
    """Return the runs below each folder as they began, or where there is none the folder; raise where it is missing."""
    found = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"There is no folder {folder} to report; name a sweep's, such as data/runs/demo.")
        runs = [_run(file) for file in sorted(folder.resolve().rglob("manifest.json"))]
        runs.sort(key=lambda run: str(run.manifest.get("started")))
        found += runs or [Source(folder.resolve().name, folder.resolve(), {})]
    return found


def _run(file: Path) -> Source:
    """Return a run by its manifest, without fields of another form."""
    manifest = read_json(file) or {"status": "unknown", "cause": "its manifest cannot be read"}
    manifest = {name: value for name, value in manifest.items() if name not in MAPPINGS or isinstance(value, dict)}
    return Source("/".join(file.parts[-4:-1]), file.parent, manifest)


def cleaner(sources: Sequence[Source]) -> Callable:
    """Return what cleans the texts of a value, also in mappings and lists: keys become [key], what hides is shown.

    Paths lose what is above the project, the home or the sweep, also as they were on the machine that made a run.
    Pictures, which stand under their type (`image/png`), stay as they are.
    """
    above = {f"{HOME}/", f"{Path.home()}/"}
    for one in sources:
        out, end = str(one.manifest.get("parameters", {}).get("out")), "/".join(one.folder.parts[-5:])
        above |= {f"{one.folder.parents[2 * bool(one.manifest)]}/", out.removesuffix(end) * out.endswith(end)}
    known = {form for value in values().values() for form in (value, escape(value))}
    secret = re.compile("|".join([*map(re.escape, sorted(known, key=len)[::-1]), SECRET_VALUE.pattern]), re.ASCII)
    roots = re.compile("|".join(map(re.escape, sorted(above - {"", "/", "//"}, key=len)[::-1])))

    def clean(value):
        if isinstance(value, dict):
            return {clean(name): part if name in PICTURES else clean(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [clean(part) for part in value]
        return visible(secret.sub("[key]", roots.sub("", value))) if isinstance(value, str) else value

    return clean
