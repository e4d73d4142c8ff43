"""Keys and hostile text: what must not get out of here, and what must not act where it is shown.

Keys are known by value, those that this environment holds (`.env` is part of it), and by the shapes of well-known ones.
They are kept out of what a notebook kernel sends and of manifests; `selfeval scan` finds those that got into a file.
Records keep every text as it was: `visible` stands where it is shown.
"""

import contextlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from selfeval import ROOT

SHORTEST = 8  # letters of a value that can be searched for; shorter ones stand in every file
READ: dict[str, str] = {}  # variable: the key that a provider of the registry read there, whatever it is called
WORDS = {"key", "apikey", "token", "secret", "secrets", "password", "passwords", "passwd", "credentials"}
PASSWORD = re.compile(r"://[^:/@\s]*:([^/\s]+)@")  # in an address
KINDS = {  # kind: (how it begins, how it goes on)
    "API key (sk-)": ("sk- pk- rk- sk_ pk_ rk_", r"(?=(?:[\w-]{0,60}?\d){3})[\w-]{16,}"),
    "Google API key": ("AIza", r"[\w-]{30,}"),
    "Hugging Face token": ("hf_", "[A-Za-z0-9]{16,}"),
    "GitHub token": ("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\w{16,}"),
    "GitLab token": ("glpat-", r"[\w-]{16,}"),
    "Slack token": ("xoxb- xoxp- xoxa- xoxe- xoxo- xoxr- xoxs-", r"[\w-]{16,}"),
    "Groq or xAI key": ("gsk_ xai-", r"\w{16,}"),
    "NVIDIA key": ("nvapi-", r"[\w-]{20,}"),
    "AWS access key": ("AKIA ASIA", r"[0-9A-Z]{16}\b"),
    "JSON web token": ("eyJ", r"[\w-]{10,400}\.eyJ[\w-]{10,2000}\.[\w-]{10,}"),
    "bearer token": ("Bearer", r" (?=[\w.~+/=-]*?\d)[\w.~+/=-]{16,}"),
    "private key": ("-----BEGIN", r" (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
}
# One pattern for each beginning, literal first: that is searched for twenty times as fast as one after a `\b`.
SHAPES = [(kind, rf"{begin}(?<!\w{begin}){rest}") for kind, (begins, rest) in KINDS.items() for begin in begins.split()]
SECRET_VALUE = re.compile("|".join(shape for _, shape in SHAPES), re.ASCII)

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARKS = {"\0": "‹NUL›", "\r": "‹CR›", "\x1b": "‹ESC›"}
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")  # of these, what does harm

PIECE = 1 << 20  # bytes read at a time
SKIPPED = {".git", ".venv"}  # git's own objects are compressed; packages are not what this project wrote


def visible(text) -> str:
    """Return a text in which control characters, escapes, direction marks and lone surrogates can be seen."""
    return _HIDDEN.sub(_mark, str(text).replace("\r\n", "\n"))


def _mark(match: re.Match) -> str:
    return _MARKS.get(match[0]) or f"‹U+{ord(match[0]):04X}›"


# keeping out ----------------------------------------------------------------------------------------------------------


def is_secret_name(name: str) -> bool:
    """Tell whether a name (of a parameter, of a variable) says that its value is a secret."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", str(name))
    return bool(WORDS & {*map(str.lower, words)})


def values() -> dict[str, str]:
    """Return {name: value} of the secrets in this environment, also passwords in addresses, and of keys once read."""
    found = dict(READ)
    for name, text in os.environ.items():
        text = text.strip()
        random = re.search(r"\d", text) and re.search("[A-Za-z]", text)  # `KEY=notebook` is no secret
        if random and is_secret_name(name):
            found[name] = text
        if password := PASSWORD.search(text):
            found[f"{name} (password)"] = password[1]
    return {name: value for name, value in found.items() if len(value) >= SHORTEST}


def redact(text: str, shapes: bool = True) -> str:
    """Return a text without the keys in use, and without what looks like a key."""
    for value in sorted({*values().values()}, key=len, reverse=True):
        text = text.replace(value, "[key]")
    return PASSWORD.sub("://[key]@", SECRET_VALUE.sub("[key]", text)) if shapes else text


def guard_kernel(shell) -> None:
    """Keep keys out of whatever this notebook kernel sends: outputs, tracebacks, the reply to a cell.

    shell: IPython's; in a terminal nothing is done. A verbose traceback shows local variables, and with them headers or
    the environment. A lone surrogate in an output ends the kernel's channel, so it is written as an escape; in tables
    and other displayed values (not in what is printed) so are escape sequences and marks that turn text round.
    """
    session = getattr(getattr(shell, "kernel", None), "session", None)
    if session is None or hasattr(session.pack, "unguarded"):
        return
    pack = session.pack

    def guarded(message):
        return pack(message if "msg_id" in message else _clean(message))

    guarded.unguarded = pack
    session.pack = guarded


def _clean(part, kind: str = ""):
    if isinstance(part, str):
        text = _ACTS.sub(_mark, part) if kind.startswith("text/") else part
        return redact(text.encode("utf-8", "backslashreplace").decode(), shapes=False)
    if isinstance(part, dict):
        return {key: _clean(value, str(key)) for key, value in part.items()}
    return [_clean(value) for value in part] if isinstance(part, list | tuple) else part


# finding --------------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """What a scan found, as sentences that name a key and never show it, and what it could not read."""

    found: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    files: int = 0

    @property
    def status(self) -> int:
        """Return the exit status: 1 for keys, 2 where something could not be read, else 0."""
        return 1 if self.found else 2 if self.unreadable else 0

    def __str__(self) -> str:
        lines = [*self.found, *(f"cannot be read: {each}" for each in self.unreadable)]
        return "\n".join(map(visible, [*lines, f"{len(self.found)} keys in {self.files} files"]))


def scan(paths: Iterable[Path | str], secrets: dict[str, str] | None = None) -> Report:
    """Search files and folders. secrets: {name: value} to look for, by default those of this environment.

    Every file is searched as bytes, an image with its texts too, for values (also as URL or JSON text) and for shapes;
    of an SQLite file also the rows, as text. The first place of each kind is named. What is compressed or encoded is
    not opened; in folders, .git and .venv are left out, the project's .env, where keys belong, and pipes.
    """
    report = Report()
    shapes = [(kind, re.compile(shape.encode())) for kind, shape in SHAPES]
    patterns = [*_patterns(values() if secrets is None else secrets), *shapes]
    for file in (file for path in paths for file in _files(Path(path), report)):
        try:
            with file.open("rb") as content:
                found = {}
                if content.read(16).startswith(b"SQLite format 3"):
                    found = {kind: f"line {line} of its .dump" for kind, line in _search(_rows(file), patterns).items()}
                content.seek(0)
                pieces = iter(lambda: content.readlines(PIECE), [])
                found = {kind: f"line {line}" for kind, line in _search(pieces, patterns).items()} | found
        except OSError as error:
            report.unreadable.append(f"{file}: {error.strerror or error}")
            continue
        report.files += 1
        report.found += [f"{file}, {place}: {kind}" for kind, place in found.items()]
    return report


def _patterns(secrets: dict[str, str]) -> Iterator[tuple[str, re.Pattern]]:
    for name, value in secrets.items():
        quoted = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")
        yield f"the value of {name}", re.compile("|".join(map(re.escape, {value, *quoted})).encode())


def _files(path: Path, report: Report) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif not path.is_dir():
        report.unreadable.append(f"{path}: there is no such file or folder with content")
    for folder, folders, names in os.walk(path, onerror=lambda error: report.unreadable.append(str(error))):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        files = (Path(folder) / name for name in sorted(names))
        yield from (
            file for file in files if file.is_file() and file.resolve() != ROOT / ".env"
        )  # a pipe would be waited for


def _search(pieces: Iterable[list[bytes]], patterns: list[tuple[str, re.Pattern]]) -> dict[str, int]:
    """Return {kind: the line where it is first found} of a text in pieces of whole lines."""
    found, line = {}, 1
    for data in map(b"".join, pieces):
        for kind, pattern in patterns:
            if kind not in found and (match := pattern.search(data)):
                found[kind] = line + data.count(b"\n", 0, match.start())
        line += data.count(b"\n")
    return found


def _rows(path: Path) -> Iterator[list[bytes]]:
    """Yield an SQLite file as SQL; no more where it cannot be read on, since its bytes are searched anyway."""
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"  # the second leaves no file behind
    address = f"file:{quote(str(path.absolute()))}?{mode}"
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        for statement in connection.iterdump():
            yield [f"{statement}\n".encode("utf-8", "replace")]
