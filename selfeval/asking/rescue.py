"""Replies that the store could not take: JSON lines in a folder beside it, which its next writer takes in."""

import contextlib
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from selfeval.asking.recordings import canonical_row, read_line
from selfeval.errors import InputError

TRIES = 5


@dataclass
class Found:
    """What lies in the folder. rows: (key, request, response) as the store has them. spoilt: files with other lines."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    whole: list[Path] = field(default_factory=list)
    spoilt: list[Path] = field(default_factory=list)


class Rescued:
    """The folder of rescued replies of one store; it is there while there are any.

    Whoever rescues does so before it gives its claim back: who finds a request unclaimed finds its rescued reply too.
    """

    def __init__(self, store: Path):
        store = store.resolve()  # one folder for all names of a store
        self.folder = store.with_name(f"{store.name}.rescued")
        self._settled: set[Path] = set()  # read, but not ours to move

    def waiting(self) -> list[Path]:
        """Return the files to take in, oldest first; no link, pipe or folder is one."""
        try:
            with os.scandir(self.folder) as entries:
                files = [entry for entry in entries if entry.name.endswith(".jsonl")]
                found = {Path(entry.path) for entry in files if entry.is_file(follow_symlinks=False)}
            return [] if self.folder.is_symlink() else sorted(found - self._settled)
        except OSError:  # no folder, or none of ours
            return []

    def add(self, lines: list[bytes]) -> tuple[Path, int]:
        """Write replies as JSON lines; return where, and for how many there was room."""
        file = self.folder / f"{time.time_ns()}-{os.getpid()}.jsonl"
        part, kept, end = file.with_suffix(".part"), 0, 0
        with self._open(part) as out:
            with contextlib.suppress(OSError):
                for line in lines:
                    if out.write(line) < len(line):
                        break
                    kept, end = kept + 1, end + len(line)
            out.truncate(end)
            os.fsync(out.fileno())
        part.replace(file) if kept else part.unlink()
        return file, kept

    def _open(self, file: Path):
        for left in reversed(range(TRIES)):  # another process may take the empty folder away
            self.folder.mkdir(exist_ok=True)
            try:
                return file.open("xb", buffering=0)
            except FileNotFoundError:
                if not left:
                    raise
        raise AssertionError

    def read(self) -> Found:
        """Return all that waits; a line that is no reply spoils its file but not the others in it."""
        found = Found()
        for file in self.waiting():
            whole = True
            try:
                with file.open("rb") as lines:
                    for line in lines:
                        try:
                            found.rows.append(canonical_row(*read_line(line)))
                        except InputError:
                            whole = False
            except OSError:
                whole = False
            (found.whole if whole else found.spoilt).append(file)
        return found

    def settle(self, found: Found, new: int) -> None:
        """Take away what the store holds by now, and say so."""
        for file in found.whole:
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
        for file in found.spoilt:
            with contextlib.suppress(OSError):
                file.replace(file.with_suffix(".spoilt"))
                say(f"{file.with_suffix('.spoilt')} has lines that are no replies; the others are in the store")
        self._settled.update({*found.whole, *found.spoilt} & {*self.waiting()})
        with contextlib.suppress(OSError):  # not while anything is left
            self.folder.rmdir()
        if found.rows:
            say(f"{len(found.rows)} replies that were rescued into {self.folder}: {new} of them new, now in the store")


def say(text: str) -> None:
    """Print a line to the terminal, if there still is one: no thread ends for want of a reader."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"selfeval: {text}", file=sys.stderr, flush=True)
