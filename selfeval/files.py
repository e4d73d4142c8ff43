"""Files that are whole or not there."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from selfeval.errors import InputError
from selfeval.paths import ROOT

FORMULA = re.compile(r"[=+\-@\s＝＋－＠]")  # how a cell begins that a spreadsheet computes
NUMBER = re.compile(r"= [\d.]+|[+-][\d.,]+(?:[eE][+-]?\d+)?%?(?: \[[\d., +-]+\])?")  # also "-0.12 [-0.30, 0.06]"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all.

    A lone surrogate cannot be written as UTF-8 but as an escape, which in JSON means the same.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
        temporary.replace(path)


def check_writable(path: Path) -> None:
    """Raise `InputError` where `write_whole` could not write, before anything is bought for what goes there."""
    with replacing(path) as temporary:
        temporary.touch()
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; name a file in it.")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the file that becomes this one; it is gone afterwards."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; make room or choose another folder.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def below_root(path: Path | str) -> str:
    """Return a path without what is above the repository; outside of it the name alone."""
    path = Path(path)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def for_spreadsheet(table):
    """Return a copy of a DataFrame in which no text, heads included, is a formula to a spreadsheet: it begins with '.

    Numbers stay numbers, and texts like "-0.12 [-0.30, 0.06]" stay as they are.
    """

    def guarded(value):
        if not isinstance(value, str):
            return value
        value = value.encode("utf-8", "backslashreplace").decode()
        return f"'{value}" if FORMULA.match(value) and not NUMBER.fullmatch(value) else value

    return table.map(guarded).set_axis(table.columns.map(guarded), axis=1)
