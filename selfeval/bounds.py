"""How much may enter: what is larger is refused in a sentence, before it fills the memory."""

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import AnyStr

import yaml

from selfeval.errors import InputError

MB = 1_000_000
REPLY = 20 * MB  # bytes of a provider's answer, unpacked
LINE = 50 * MB  # of a file that is read: bytes, or letters
UNPACKED = 100 * MB  # bytes that any packed file may hold
# times its own size that a larger one may hold; our recordings hold up to 50 times theirs
RATIO = 200
VALUES = 100_000  # of a YAML file, with its aliases written out
RUNS = 10_000  # of a sweep


def bounded_lines(path: Path, file) -> Iterator[AnyStr]:
    """Yield the lines of an opened file, packed or not; refuse one, or all, that are too long."""
    most = most_unpacked(path)
    total = 0
    while line := file.readline(LINE + 1):
        total += len(line)
        if len(line) > LINE:
            rule = f"has a line of more than {LINE // MB} MB, the longest that is read"
            raise InputError(f"{path} {rule}; write one record on each line, or split the file.")
        if total > most:
            raise InputError(_too_much(path, most))
        yield line


def check_lines(path: Path, file) -> None:
    """Raise `InputError` where a line of an opened file, or what it unpacks to, is too long."""
    for _ in bounded_lines(path, file):
        pass


def check_zip(path: Path) -> None:
    """Refuse a zip archive (also .xlsx) that unpacks to too much."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:  # no more is read of a part than it says
        total = sum(part.file_size for part in archive.infolist())
    if total > most_unpacked(path):
        raise InputError(_too_much(path, most_unpacked(path)))


def most_unpacked(path: Path) -> int:
    """Return how many bytes a file may hold once it is unpacked."""
    return max(UNPACKED, RATIO * path.stat().st_size)


def _too_much(path: Path, most: int) -> str:
    rule = f"unpacks to more than {most // MB:,} MB, the most for its size"
    return f"{path} {rule}; unpack it yourself if you trust it, and name the unpacked file."


def unpacked_reply(body: bytes, encoding: str, most: int = REPLY) -> bytes:
    """Return the body of an answer without its compression.

    encoding: of the answer's header; a client asks for gzip alone. Raises `ValueError` where the
    body has more than `most` bytes, `zlib.error` where it is broken.
    """
    if encoding == "gzip" and 0 < len(body) <= most:
        body = _unpacked_gzip(body, most)
    elif encoding not in ("", "identity", "gzip"):
        rule = "and gzip was asked for; have it sent unpacked"
        raise ValueError(f"the answer is packed as {encoding!r:.20}, {rule}")
    if len(body) > most:
        remedy = "ask for shorter replies or fewer log-probabilities"
        raise ValueError(
            f"the answer has more than {most // MB} MB, the most that is read; {remedy}"
        )
    return body


def _unpacked_gzip(body: bytes, most: int) -> bytes:
    """Return what gzip packed, up to one byte more than an answer may have."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    content = reader.decompress(body, most + 1)
    if len(content) <= most and not reader.eof:
        raise zlib.error("the answer ends in the middle of what gzip packed")
    return content


def read_yaml(text: str):
    """Return what a text holds as YAML; `YAMLError` for a key that stands twice in a mapping.

    The same where its aliases make too many values.
    """
    reader = yaml.SafeLoader(text)
    try:
        node = reader.get_single_node()
        if node is None:
            return None
        if _count(node, {}) > VALUES:
            rule = f"more than {VALUES:,} values, with its aliases (*name) written out"
            raise yaml.YAMLError(f"it holds {rule}; write fewer, or without aliases")
        return reader.construct_document(node)
    finally:
        reader.dispose()


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a part of a document holds; infinitely many if it holds itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = VALUES + 1  # while it is counted
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            names = Counter(str(key.value) for key, _ in node.value)
            for name, times in names.items():
                if times > 1:
                    problem = f"the key {name!r} twice"
                    raise yaml.MarkedYAMLError(None, None, problem, node.start_mark)
            parts = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]
