"""What a GGUF file must be before it is used.

Whole, by what its head says, and known by the hash of its bytes. The form of the head is that of
the ggml project (docs/gguf.md there), from version 2 on.
"""

import hashlib
import struct
from functools import cache
from math import prod
from pathlib import Path

from selfeval.errors import InputError

TEXT = 8
LIST = 9
# of `struct`, by the number of a value's kind; text and list have none
VALUE_FORMS = "BbHhIif?--Qqd"
# Bits of a weight, by the number of its type; 1 where it is another: then only the engine misses
# the last bytes.
BITS = {0: 32, 1: 16, 3: 5, 8: 8.5, 12: 4.5, 14: 6.5625}


def checked_sha256(path: Path) -> str:
    """Return the SHA-256 of a GGUF file.

    Raises `InputError` where it is missing, cut off or no GGUF file.
    """
    try:
        known = path.stat()
        return _checked(path, known.st_size, known.st_mtime_ns)
    except OSError as error:
        raise InputError(
            f"The GGUF file {path} cannot be read ({error.strerror}); correct its path."
        ) from error
    except (struct.error, IndexError, OverflowError) as error:
        raise InputError(
            f"The GGUF file {path} is cut off in its head; download it again."
        ) from error


@cache
def _checked(path: Path, size: int, _changed: int) -> str:
    """Return a file's SHA-256, which takes seconds.

    Computed anew where its size or time has changed.
    """
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(
                f"{path} is no GGUF file: it does not begin with GGUF; name another file."
            )
        needed = _least_size(file)
        if size < needed:
            rule = f"is cut off: it has {size:,} bytes, and its head speaks of {needed:,}"
            raise InputError(f"The GGUF file {path} {rule}; download it again.")
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _least_size(file) -> int:
    """Return how many bytes a file has at least, by its head."""
    _, tensors, pairs = _read(file, "IQQ")
    for _ in range(pairs):
        _skip(file, TEXT)
        _skip(file, *_read(file, "I"))
    end = 0
    for _ in range(tensors):
        _skip(file, TEXT)
        [axes] = _read(file, "I")
        *lengths, kind, offset = _read(file, f"{axes}QIQ")
        end = max(end, offset + int(prod(lengths) * BITS.get(kind, 1)) // 8)
    return file.tell() + end


def _read(file, form: str) -> tuple:
    packed = struct.Struct(f"<{form}")
    return packed.unpack(file.read(packed.size))


def _skip(file, kind: int) -> None:
    """Pass over a value of a kind."""
    if kind == TEXT:
        file.seek(*_read(file, "Q"), 1)
    elif kind == LIST:
        of, count = _read(file, "IQ")
        for _ in range(count):
            _skip(file, of)
    else:
        _read(file, VALUE_FORMS[kind])
