"""A dry run, inside the notebooks: requests are counted instead of sent, files are written into one folder alone.

`SELFEVAL_PLAN` names the folder. Stored replies are read as ever; a request that is not stored gets a stand-in, so that
what follows from it is counted too. Paths that go through `records` lead into the folder, where whatever exists outside
of it is seen as it is. An audit hook refuses all other writing and every connection: no stand-in reaches a record.
"""

import errno
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

LARGEST_COPY = 1_000_000  # bytes of a file; larger ones are linked, and replaced as a whole where they are written
WORD = 3  # tokens for two words, and one more: what a text of so many words takes


def folder() -> Path | None:
    """Return the folder of a dry run, None where this is none."""
    name = os.environ.get("SELFEVAL_PLAN")
    return Path(name) if name else None


# files ----------------------------------------------------------------------------------------------------------------


def shadow(path: Path) -> Path:
    """Return where a path is read and written: the path itself, or in a dry run its place in the folder."""
    base = folder()
    if base is None:
        return path
    path = Path(os.path.abspath(path))  # noqa: PTH100  a link is followed when it is read
    if path.is_relative_to(base):
        return path
    target = base / "files" / path.relative_to(path.anchor)
    if not target.exists() and path.exists():
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                _mirror(file, target / file.relative_to(path) if path.is_dir() else target)
    return target


def _mirror(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.mirror")
    if file.stat().st_size > LARGEST_COPY:
        part.symlink_to(file)
    else:
        shutil.copyfile(file, part)
    part.replace(target)


def read_only(store: Path, schema: str) -> sqlite3.Connection:
    """Open a response store without writing a byte beside it; an empty one where there is none."""
    if not store.exists():
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.executescript(schema)
        return connection
    in_use = Path(f"{store}-wal").exists()
    address = f"file:{quote(str(store.absolute()))}?{'mode=ro' if in_use else 'immutable=1'}"
    return sqlite3.connect(address, uri=True, timeout=30, check_same_thread=False)


_set = []  # the guard, once it is there: an audit hook cannot be taken away


def guard() -> None:
    """Refuse from now on to write outside of the folder, and to connect to anything."""
    base = folder()
    if base is None or guard in _set:
        return
    _set.append(guard)
    sys.dont_write_bytecode, tempfile.tempdir = True, None  # a forked process found both before
    caches = (".cache", ".config", ".ipython", ".jupyter", ".matplotlib", ".local/share/jupyter")  # of other packages
    allowed = (str(base.resolve()), "/dev", *(str(Path.home() / name) for name in caches))
    places = {"os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,), "os.truncate": (0,), "os.rename": (0, 1)}
    places |= {"os.link": (1,), "os.symlink": (1,)}
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def check(event: str, arguments: tuple) -> None:
        if event == "socket.connect" and not isinstance(arguments[1], str | bytes):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "a dry run connects to nothing")
        if event == "sqlite3.connect" and str(arguments[0]).startswith(("file:", ":memory:")):
            return
        paths = [arguments[i] for i in places.get(event, ())]
        if event == "sqlite3.connect" or (event == "open" and (arguments[2] or 0) & writing):
            paths = [arguments[0]]
        for path in paths:
            if isinstance(path, int) or path is None:
                continue
            real = os.path.realpath(os.fsdecode(path))
            if event in ("os.rename", "os.remove", "os.symlink"):  # of a link itself, not of what it leads to
                real = os.path.join(os.path.realpath(os.path.dirname(os.fsdecode(path))), "x")  # noqa: PTH118, PTH120
            if not real.startswith(tuple(f"{place}{os.sep}" for place in allowed)) and real not in allowed:
                text = f"a dry run writes into {base} alone; a notebook takes its paths from selfeval.records.data_path"
                raise PermissionError(errno.EPERM, text, os.fsdecode(path))

    sys.addaudithook(check)


# requests -------------------------------------------------------------------------------------------------------------


def note(request, stored: bool, text: str = "") -> None:
    """Count a request that has its reply in the store, or that would be bought.

    Per line: key, model, and for one to buy the tokens of prompt and reply, `low` as they typically are and `high` as
    they can be at most.
    """
    line = {"key": request.key, "model": request.model.id, "stored": stored}
    if not stored:
        from selfeval.asking.request import estimate

        messages, parameters = request.full()
        model = request.model
        most = estimate(messages, model.with_room(parameters) if model.reasoning else parameters, model)
        written = sum(len(str(message.get("content")).encode(errors="replace")) // 4 + 4 for message in messages)
        typical = len(text.split()) * WORD // 2 + 1 if " " in text else len(text) // 4 + 2
        line |= {"prompt": [min(written, most[0]), most[0]], "reply": [min(typical, most[1]), most[1]]}
    calls = folder() / "calls"
    calls.mkdir(exist_ok=True)
    with (calls / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def stand_in(messages: list[dict], parameters: dict, key: str) -> str:
    """Return a text of the form that a request asks for: another one for every other request."""
    draw = random.Random(key)
    form = (parameters.get("response_format") or {}).get("json_schema") or {}
    if "schema" in form:
        return json.dumps(_instance(form["schema"], draw))
    wanted = re.search(r"(\d+) words", str(messages[-1]["content"]))
    length = min(int(wanted[1]) if wanted else 12, 5000)
    return " ".join([f"Stand-in {_mark(draw)}", *(draw.choice(WORDS) for _ in range(max(length - 2, 1)))]) + "."


WORDS = "the a river morning engine garden letter window market quiet bridge winter keeps follows opens story".split()


def _mark(draw: random.Random) -> str:
    return hashlib.sha256(str(draw.random()).encode()).hexdigest()[:12]


def _instance(schema: dict, draw: random.Random):
    """Return an instance of a JSON schema, drawn from what it allows."""
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _instance(draw.choice(schema[key]), draw)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return draw.choice(schema["enum"])
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: _instance(part, draw) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema.get("items", {"type": "string"}), draw) for _ in range(schema.get("minItems", 1))]
    low, high = schema.get("minimum", 0), schema.get("maximum", 1)
    numbers = {"integer": draw.randint(int(low), max(int(low), int(high))), "number": draw.uniform(low, high)}
    return numbers.get(kind, {"boolean": True, "null": None}.get(kind, f"Stand-in {_mark(draw)} for a reason"))
