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

from selfeval.paths import HOME

SHORTEST = 8  # letters of a value that can be searched for; shorter ones stand in every file
READ: dict[str, str] = {}  # variable: the key that a provider of the registry read there, whatever it is called
WORDS = {"key", "apikey", "token", "secret", "secrets", "password", "passwords", "passwd", "credentials"}
PASSWORD = re.compile(r"://[^:/@\s]*:([^/\s]+)@")  # in an address
BEGINNINGS = {  # how keys begin: how they go on
    "sk- pk- rk- sk_ pk_ rk_": r"(?=(?:[\w-]{0,60}?\d){3})[\w-]{16,}",  # OpenAI, OpenRouter, Anthropic, Stripe
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ gsk_ xai-": r"\w{16,}",  # GitHub, Groq, xAI
    "AIza glpat- nvapi- xoxb- xoxp- xoxa- xoxe- xoxo- xoxr- xoxs-": r"[\w-]{16,}",  # Google, GitLab, NVIDIA, Slack
    "hf_": "[A-Za-z0-9]{16,}",  # Hugging Face
    "AKIA ASIA": r"[0-9A-Z]{16}\b",  # AWS
    "eyJ": r"[\w-]{10,400}\.eyJ[\w-]{10,2000}\.[\w-]{10,}",  # a JSON web token
    "Bearer": r" (?=[\w.~+/=-]*?\d)[\w.~+/=-]{16,}",
    "-----BEGIN": r" (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
}
# One pattern for each beginning, literal first: that is searched for twenty times as fast as one after a `\b`.
SHAPES = {begin: rf"{begin}(?<!\w{begin}){rest}" for begins, rest in BEGINNINGS.items() for begin in begins.split()}
SECRET_VALUE = re.compile("|".join(SHAPES.values()), re.ASCII)

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
        if is_secret_name(name) and re.search(r"\d", text) and re.search("[A-Za-z]", text):  # `KEY=notebook` is none
            found[name] = text.strip()
        if password := PASSWORD.search(text):
            found[f"{name} (password)"] = password[1]
    return {name: value for name, value in found.items() if len(value) >= SHORTEST}


def redact(text: str, shapes: bool = True) -> str:
    """Return a text without the keys in use, and without what looks like a key."""
    for value in sorted({*values().values()}, key=len, reverse=True):
        text = text.replace(value, "[key]")
    return PASSWORD.sub("://[key]@", SECRET_VALUE.sub("[key]", text)) if shapes else text


def guard_kernel(shell) -> None:
    """Keep keys out of all that this notebook kernel sends: outputs, tracebacks, the reply to a cell.

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


def scan(paths: Iterable[Path | str], secrets: dict[str, str] | None = None) -> Report:
    """Search files and folders. secrets: {name: value} to look for, by default those of this environment.

    Every file is searched as bytes, an image with its texts too, for values (also as URL or JSON text) and for shapes;
    of an SQLite file also the rows, as text. The first place of each is named. What is compressed or encoded is not
    opened; in folders, .git and .venv are left out, the project's .env, where keys belong, and pipes.
    """
    report = Report()
    patterns = [*_patterns(values() if secrets is None else secrets)]
    for file in (file for path in paths for file in _files(Path(path), report)):
        try:
            with file.open("rb") as content:
                found = _search("line {}", iter(lambda: content.readlines(PIECE), []), patterns)
        except OSError as error:
            report.unreadable.append(f"{file}: {error.strerror or error}")
            continue
        found |= _search("line {} of its .dump", _rows(file), patterns)
        report.files += 1
        report.found += [f"{file}, {place}: {what}" for what, place in found.items()]
    return report


def _patterns(secrets: dict[str, str]) -> Iterator[tuple[str, re.Pattern]]:
    for name, value in secrets.items():
        quoted = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")
        yield f"the value of {name}", re.compile("|".join(map(re.escape, {value, *quoted})).encode())
    for begin, shape in SHAPES.items():
        yield f"a key that begins with {begin}", re.compile(shape.encode())


def _files(path: Path, report: Report) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif not path.is_dir():
        report.unreadable.append(f"{path}: there is no such file or folder with content")
    for folder, folders, names in os.walk(path, onerror=lambda error: report.unreadable.append(str(error))):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for file in (Path(folder) / name for name in sorted(names)):
            if file.is_file() and file.resolve() != HOME / ".env":  # a pipe would be waited for
                yield file


def _search(place: str, pieces: Iterable[list[bytes]], patterns: list[tuple[str, re.Pattern]]) -> dict[str, str]:
    """Return {what: the place where it is first found} of a text in pieces of whole lines."""
    found, line = {}, 1
    for data in map(b"".join, pieces):
        for what, pattern in patterns:
            if what not in found and (match := pattern.search(data)):
                found[what] = place.format(line + data.count(b"\n", 0, match.start()))
        line += data.count(b"\n")
    return found


def _rows(path: Path) -> Iterator[list[bytes]]:
    """Yield an SQLite file as SQL, and nothing of other files; no more where it cannot be read on."""
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"  # the second leaves no file behind
    address = f"file:{quote(str(path.absolute()))}?{mode}"
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        for statement in connection.iterdump():
            yield [f"{statement}\n".encode("utf-8", "replace")]
