"""What a GGUF file must be before it is used: whole, by what its head says, and known by the hash of its bytes.

The form of the head is that of the ggml project (docs/gguf.md there), versions 2 and 3.
"""

import hashlib
import struct
from functools import cache
from pathlib import Path

from selfeval.errors import InputError

MAGIC = b"GGUF"
TEXT, LIST = 8, 9
VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
# Bits of a weight, by the number of its type; 1 where the type is another: then only the engine sees the last bytes.
BITS = {0: 32, 1: 16, 2: 4.5, 3: 5, 6: 5.5, 7: 6, 8: 8.5, 10: 2.625, 11: 3.4375, 12: 4.5, 13: 5.5, 14: 6.5625, 30: 16}
MOST_AXES = 4


def checked_sha256(path: Path) -> str:
    """Return the SHA-256 of a GGUF file; raise `InputError` where it is missing, cut off or no GGUF file."""
    try:
        known = path.stat()
        return _checked(path, known.st_size, known.st_mtime_ns)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"The GGUF file {path} cannot be read ({why}); correct its path.") from error


@cache
def _checked(path: Path, size: int, _changed: int) -> str:
    """Return a file's SHA-256, which takes seconds: it is computed anew where size or time of the file are others."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{path} is no GGUF file: it does not begin with GGUF; name another file.")
        try:
            needed = _end_of_weights(file)
        except (struct.error, KeyError, OverflowError) as error:
            rule = "has a head that is cut off, or of a version other than 2 and 3"
            raise InputError(f"The GGUF file {path} {rule}; download it again.") from error
        if size < needed:
            rule = f"is cut off: it has {size:,} bytes, and its head speaks of {needed:,}"
            raise InputError(f"The GGUF file {path} {rule}; download it again.")
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _end_of_weights(file) -> int:
    """Return how many bytes a file must have, by its head."""
    version, tensors, pairs = _read(file, "IQQ")
    if version not in (2, 3):
        raise KeyError(version)
    alignment = 32
    for _ in range(pairs):
        name = _text(file)
        [kind] = _read(file, "I")
        if name == b"general.alignment":
            [alignment] = _read(file, "I")
        else:
            _skip(file, kind)
    end = 0
    for _ in range(tensors):
        _text(file)
        [axes] = _read(file, "I")
        if axes > MOST_AXES:
            raise KeyError(axes)
        *lengths, kind, offset = _read(file, f"{axes}QIQ")
        weights = 1
        for length in lengths:
            weights *= length
        end = max(end, offset + int(weights * BITS.get(kind, 1)) // 8)
    head = file.tell()
    return head + -head % max(alignment, 1) + end


def _read(file, form: str) -> tuple:
    form = f"<{form}"
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _text(file) -> bytes:
    [length] = _read(file, "Q")
    [text] = _read(file, f"{min(length, 1_000_000)}s")
    file.seek(length - len(text), 1)
    return text


def _skip(file, kind: int) -> None:
    """Pass over a value of a kind."""
    if kind == TEXT:
        _text(file)
    elif kind == LIST:
        of, count = _read(file, "IQ")
        if of in VALUE_BYTES:
            file.seek(VALUE_BYTES[of] * count, 1)
        else:
            for _ in range(count):
                _skip(file, of)
    else:
        file.seek(VALUE_BYTES[kind], 1)
