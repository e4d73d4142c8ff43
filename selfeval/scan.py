"""Find keys in files: notebooks, stores, logs, reports, figures; `selfeval scan` on the command line.

Every file is searched as bytes, in pieces of whole lines, for the values of the keys that this environment holds (also
as URL or JSON text, and as UTF-16) and for the shapes of well-known keys; of an SQLite file also the rows. Texts that a
figure carries are stored as they are. What is compressed or in base64 is not opened. What is found is named and never
printed.
"""

import contextlib
import itertools
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from selfeval import ROOT
from selfeval.display import visible
from selfeval.models import providers
from selfeval.secrets import SHAPES, redact, values

PIECE = 1 << 20  # bytes read at a time
SKIPPED = {".git", ".venv"}  # git's own objects are compressed; packages are not what this project wrote
PER_FILE = 20  # findings of one file that are listed


@dataclass
class Found:
    """A key in a file. place: line, or table and row. excerpt: what stands before it; never the key or what follows."""

    path: Path
    place: str
    kind: str
    excerpt: str

    def __str__(self) -> str:
        return visible(f"{self.path}, {self.place}: {self.kind}: {self.excerpt}")


@dataclass
class Report:
    """What a scan found, could not read and left out."""

    found: list[Found] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    files: int = 0
    size: int = 0

    @property
    def status(self) -> int:
        """Return the exit status: 1 for keys, 2 where something could not be read, else 0."""
        return 1 if self.found else 2 if self.unreadable else 0

    def __str__(self) -> str:
        lines = [*map(str, self.found), *(visible(f"cannot be read: {each}") for each in self.unreadable)]
        lines += [visible(f"skipped: {each}") for each in self.skipped]
        return "\n".join([*lines, f"{len(self.found)} keys in {self.files} files, {self.size / 1e6:.1f} MB"])


def scan(paths: Iterable[Path | str], secrets: dict[str, str] | None = None) -> Report:
    """Search files and folders. secrets: {name: value} to look for, by default those of this environment."""
    report, patterns = Report(), _patterns(values(registered()) if secrets is None else secrets)
    for file in dict.fromkeys(_files(map(Path, paths), report)):
        try:
            with file.open("rb") as content:
                report.files += 1
                report.size += file.stat().st_size
                report.found += _search_file(file, content, patterns)
        except OSError as error:
            report.unreadable.append(f"{file}: {error.strerror or error}")
    return report


def registered() -> dict[str, str]:
    """Return {variable: value} of the keys that the registry's providers name."""
    return {name: os.environ.get(name, "") for provider in providers().values() for name in provider.keys}


def _files(paths: Iterable[Path], report: Report) -> Iterator[Path]:
    for path in paths:
        if not os.path.lexists(path):
            report.unreadable.append(f"{path}: there is no such file or folder")
            continue
        if not path.is_dir():
            if _is_regular(path):
                yield path
            else:
                report.unreadable.append(f"{path}: not a file with content, nor a folder")
            continue
        for folder, folders, names in os.walk(path, onerror=lambda e: report.unreadable.append(str(e))):
            here = Path(folder)
            report.skipped += [str(here / name) for name in folders if name in SKIPPED]
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            for file in (here / name for name in sorted(names)):
                if file.resolve() == ROOT / ".env" or file.name == ".git":
                    report.skipped.append(str(file))  # where keys belong; a worktree's pointer
                elif _is_regular(file):
                    yield file


def _is_regular(file: Path) -> bool:
    """Tell whether this is a file with content, and no pipe or socket that a reader would wait for."""
    try:
        return file.is_file()
    except OSError:
        return True  # the attempt to open it says why not


# patterns -------------------------------------------------------------------------------------------------------------


def _patterns(secrets: dict[str, str]) -> list[tuple[str, re.Pattern]]:
    forms = [(f"the value of {name}", _forms(value.encode())) for name, value in secrets.items()]
    known = [(kind, re.compile(b"|".join(map(re.escape, parts)))) for kind, parts in forms]
    return [*known, *((kind, re.compile(shape.encode())) for kind, shape in SHAPES)]


def _forms(value: bytes) -> list[bytes]:
    """Return a key as it may be written: plain, in a URL, in JSON, as UTF-16."""
    text = value.decode()
    forms = {value, quote(text, safe="").encode(), text.encode("utf-16-le")}
    forms |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode() for ascii_only in (True, False)}
    return sorted(forms, key=len, reverse=True)


def _matches(pieces: Iterable[bytes], patterns) -> Iterator[tuple[int, str, str]]:
    """Yield (line, kind, excerpt) of every key in a stream of pieces that end where lines end."""
    line = 1
    for data in pieces:
        seen = []
        for kind, pattern in patterns:
            for at in (match.start() for match in pattern.finditer(data)):
                if all(abs(at - other) >= 8 for other in seen):  # else its value was found there
                    seen.append(at)
                    yield line + data.count(b"\n", 0, at), kind, _excerpt(data[max(0, at - 200) : at])
        line += data.count(b"\n")


def _excerpt(before: bytes) -> str:
    text = redact(before.decode("utf-8", "replace").rpartition("\n")[2])[-40:]
    return "".join(c if c.isprintable() else "." for c in text) + "[...]"


# files ----------------------------------------------------------------------------------------------------------------


def _search_file(path: Path, content, patterns) -> list[Found]:
    is_store = content.read(16).startswith(b"SQLite format 3")
    content.seek(0)
    found = [*itertools.islice(_search_tables(path, patterns), PER_FILE + 1)] if is_store else []
    known = {each.kind for each in found}  # named already, in a table's row
    pieces = (b"".join(lines) for lines in iter(lambda: content.readlines(PIECE), []))
    matches = (each for each in _matches(pieces, patterns) if each[1] not in known)
    found += [Found(path, f"line {line}", *said) for line, *said in itertools.islice(matches, PER_FILE + 1)]
    if len(found) > PER_FILE:
        found = [*found[:PER_FILE], Found(path, "further on", "more of the same", "not listed")]
    return found


def _search_tables(path: Path, patterns) -> Iterator[Found]:
    """Yield the keys in the rows of an SQLite file; none where it cannot be opened, its bytes are searched anyway."""
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"  # the second leaves no file behind
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)) as connection,
    ):
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.text_factory = bytes
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        for (name,) in tables.fetchall():
            table = name.decode("utf-8", "replace")
            rows = connection.execute('SELECT * FROM "' + table.replace('"', '""') + '"')
            for number, row in enumerate(rows, 1):
                cells = b"\n".join(str(cell).encode() if isinstance(cell, int | float) else cell or b"" for cell in row)
                for _, *said in _matches([cells], patterns):
                    yield Found(path, f"table {table}, row {number}", *said)
