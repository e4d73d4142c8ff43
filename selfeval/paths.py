"""Where things are, what came with the package and what is the user's own; files that are whole or not there."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from selfeval.errors import InputError

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (_PACKAGE / "data").is_dir()  # from a wheel, which holds what a clone has beside the package
ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent
HOME = Path.cwd() if INSTALLED else ROOT  # of what is the user's own
DATA = Path(os.environ.get("SELFEVAL_DATA") or HOME / "data").absolute()  # a dry run has a shadow of it


def shipped(name: Path | str) -> Path:
    """Return a file or folder to read below data/: the user's own, or where there is none that of the package."""
    installed = ROOT / "data" / name
    return installed if INSTALLED and installed.exists() and not (DATA / name).exists() else DATA / name


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


def read_json(path: Path) -> dict:
    """Return what a JSON file holds, {} where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text("utf-8"))
    return {}
