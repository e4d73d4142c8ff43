"""Files of replies: lines of an export, and recordings that are read beside the store."""

import json
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from selfeval.bounds import bounded_lines
from selfeval.errors import InputError
from selfeval.providers.request import (
    canonical,
    check_response,
    key_of,
    request_key,
)

KEY = re.compile(rb'{"key": ?"([^"]+)"')  # how a line of an export begins


def opener(path: Path) -> Callable:
    """Return what opens a file of recorded replies: compressed where its name ends in .xz."""
    return lzma.open if path.suffix == ".xz" else open


def read_lines(path: Path) -> Iterator[tuple[Path, int, bytes]]:
    """Yield the lines of a file as `read_line` takes them."""
    try:
        with opener(path)(path, "rb") as lines:
            numbered: Iterable[tuple[int, bytes]] = enumerate(bounded_lines(path, lines), 1)
            for number, line in numbered:
                yield path, number, line
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"The recorded replies {path} cannot be read: {error}.") from error


def read_line(path: Path, number: int, line: bytes) -> tuple[str, str, str]:
    """Return (key, request, response) of a line of an export.

    Raises `InputError` where it is no reply of ours.
    """
    where = f"{path}, line {number}"
    try:
        row = json.loads(line)
        key = row["key"]
        request = canonical(row["request"])
        response = json.dumps(row["response"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{where}: not an exported reply ({error!r}).") from error
    return check_reply(where, key, request, response)


def check_reply(where: Path | str, key: str, request: str, response: str) -> tuple[str, str, str]:
    """Return what an import brings.

    Raises `InputError` where the client itself could not have stored it.
    """
    try:
        if request_key(key) != key_of(request) or canonical(json.loads(request)) != request:
            raise ValueError(f"the key {key[:12]!r} is not that of its request")
        check_response(json.loads(response), int(key.removeprefix(request_key(key)) or 0))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{where}: the reply {str(key)[:12]!r} is not ours: {error}.") from error
    return key, request, response


def by_key(folder: Path) -> dict[str, tuple[Path, int, bytes]]:
    """Return the lines of a folder's recorded replies by their keys.

    Each is checked when it is served.
    """
    found = {}
    files = [file for pattern in ("*.jsonl", "*.jsonl.xz") for file in sorted(folder.glob(pattern))]
    for line in (line for file in files for line in read_lines(file)):
        begins = KEY.match(line[2])
        found[begins[1].decode() if begins else read_line(*line)[0]] = line
    return found


def export_line(key: str, request: str, response: str) -> str:
    """Return a reply of the store as a line of an export."""
    return f'{{"key":"{key}","request":{request},"response":{response}}}\n'
