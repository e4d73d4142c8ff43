"""What a GGUF file must be before it is used: there, by its first letters, and known by its hash.

A file that is cut off is refused by the engine.
"""

import hashlib
from functools import cache
from pathlib import Path

from selfeval.errors import InputError


def checked_sha256(path: Path) -> str:
    """Return the SHA-256 of a GGUF file.

    Raises `InputError` where it is missing or no GGUF file.
    """
    try:
        known = path.stat()
        if not path.is_file():  # a pipe would never end
            raise InputError(f"{path} is no file; name a GGUF file.")
        return _sha256(path, known.st_size, known.st_mtime_ns)
    except OSError as error:
        raise InputError(
            f"The GGUF file {path} cannot be read ({error.strerror}); correct its path."
        ) from error


@cache
def _sha256(path: Path, _size: int, _changed: int) -> str:
    """Return a file's SHA-256, which takes seconds.

    Computed anew where its size or time has changed.
    """
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(
                f"{path} is no GGUF file: it does not begin with GGUF; name another file."
            )
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()
