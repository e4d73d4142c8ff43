"""What identifies a request, and files of recorded replies: exports as JSON lines, and stores of other hosts."""

import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from selfeval.errors import InputError, is_amount, is_count

UNANSWERED = ("empty", "filtered", "length")  # statuses of replies that may be asked for again
STORED = ("ok", "refusal", *UNANSWERED)  # the statuses of what is stored; an error is no reply
MOST_AGAIN = 9  # times that a request is asked again
KEY = re.compile(rb'{"key": ?"([^"]+)"')  # how a line of an export begins


def canonical(request: dict) -> str:
    """Return the request as JSON in which equal requests are equal texts (keys sorted, 1.0 written as 1)."""

    def plain(value):
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            return {str(k): plain(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    try:
        return json.dumps(plain(request), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"A request holds texts, finite numbers, lists and dictionaries alone: {error}.") from error


def key_of(canonical_request: str) -> str:
    """Return the store's key of a request: the SHA-256 of its canonical JSON."""
    return hashlib.sha256(canonical_request.encode()).hexdigest()


def numbered(key: str, number: int) -> str:
    """Return under which key a reply is stored: the request's own, with a number behind it where it was asked again."""
    return f"{key} {number}" if number else key


def request_key(key: str) -> str:
    """Return the request's own key of a key under which a reply is stored."""
    return re.sub(r" [1-9]$", "", key)


def opener(path: Path) -> Callable:
    """Return what opens a file of recorded replies: compressed where its name ends in .xz."""
    return lzma.open if path.suffix == ".xz" else open


def read_lines(path: Path) -> Iterator[tuple[Path, int, bytes]]:
    """Yield the lines of a file as `read_line` takes them."""
    try:
        with opener(path)(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                yield path, number, line
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"The recorded replies {path} cannot be read: {error}.") from error


def read_line(path: Path, number: int, line: bytes) -> tuple[str, str, str]:
    """Return (key, request, response) of a line of an export.

    Raises `InputError` where the client could not have stored it, or where its key is not that of its request.
    """
    try:
        row = json.loads(line)
        request = canonical(row["request"])
        _check(row["key"], request, row["response"])
        return row["key"], request, json.dumps(row["response"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}, line {number}: not an exported reply ({error!r}).") from error


def files(folder: Path) -> list[Path]:
    """Return the files of recorded replies in a folder."""
    return [file for pattern in ("*.jsonl", "*.jsonl.xz") for file in sorted(folder.glob(pattern))]


def by_key(folder: Path) -> dict[str, tuple[Path, int, bytes]]:
    """Return the lines of a folder's recorded replies by their keys; each is checked when it is served."""
    found = {}
    for line in (line for file in files(folder) for line in read_lines(file)):
        begins = KEY.match(line[2])
        found[begins[1].decode() if begins else read_line(*line)[0]] = line
    return found


def export_line(key: str, request: str, response: str) -> str:
    """Return a reply of the store as a line of an export."""
    return f'{{"key":"{key}","request":{request},"response":{response}}}\n'


def _check(key: str, request: str, response) -> None:
    """Raise `ValueError` or `TypeError` unless the client itself could have stored this."""
    if request_key(key) != key_of(request):
        raise ValueError(f"the key {key[:12]!r} is not that of its request")
    asked = json.loads(request)
    if not isinstance(asked, dict) or canonical(asked) != request:
        raise TypeError("a request is an object in canonical form")
    if not isinstance(asked.get("model"), str) or not isinstance(asked.get("messages"), list):
        raise TypeError("a request has a model and messages")
    if not isinstance(response, dict) or not isinstance(response.get("text"), str):
        raise TypeError("a response is an object whose text is text")
    if (status := response.get("status", "ok")) not in STORED:
        raise TypeError(f"the status of a response is one of {', '.join(STORED)}, got {status!r}")
    earlier, number = response.get("earlier", []), int(key.removeprefix(request_key(key)) or 0)
    if not isinstance(earlier, list) or len(earlier) != number or not all(each in UNANSWERED for each in earlier):
        raise TypeError(f"a reply with the number {number} has {number} statuses in `earlier`, got {earlier!r:.40}")
    for name in ("cost", "latency", "attempts"):
        if (value := response.get(name)) is not None and not is_amount(value):
            raise TypeError(f"the {name} of a response is a finite number of at least 0, got {value!r:.40}")
    usage = response.get("usage", {})
    if not isinstance(usage, dict) or not all(map(is_count, usage.values())):
        raise TypeError("the usage of a response holds whole numbers of at least 0")
    json.dumps(response, allow_nan=False)


def read_rows(path: Path, rows: Iterable[tuple]) -> Iterator[tuple]:
    """Yield (key, request, response, created) of another store; raise `InputError` where it is not the client's."""
    for key, request, response, created in rows:
        try:
            _check(key, request, json.loads(response))
            if not is_amount(created):
                raise TypeError(f"`created` is a time, got {created!r}")
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{path} holds the reply {str(key)[:12]!r}, which is not ours: {error}.") from error
        yield key, request, response, created


def difference(request: dict, recorded: list[dict]) -> str:
    """Say in one sentence what a request has otherwise than the most similar recorded one."""
    if not recorded:
        return f"Replay mode has no recorded replies, and {request['model']!r} was asked; record them first."
    nearest = max(recorded, key=lambda other: sum(request[field] == other.get(field) for field in request))
    parts = [
        f"`{name}` is ...{json.dumps(value)[-100:]}" for name, value in request.items() if value != nearest.get(name)
    ]
    return (
        f"Replay mode has no recorded reply for this request to {request['model']!r}; otherwise than in the nearest "
        f"recorded one {'; '.join(parts)}. Unset SELFEVAL_REPLAY to ask the model, or record anew with `make record`."
    )
