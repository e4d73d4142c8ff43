"""Where things are, and files that are whole or not there."""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from selfeval.errors import InputError, check_one_of

_PACKAGE = Path(__file__).resolve().parent
# a wheel holds what a clone has beside the package
INSTALLED = (_PACKAGE / "data").is_dir()
ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent
# of what is the user's own
HOME = Path.cwd() if INSTALLED else ROOT
# a dry run has a shadow of it
DATA = Path(os.environ.get("SELFEVAL_DATA") or HOME / "data").absolute()
# bytes that tell what a file is
BEGINNING = 100


def shipped(name: Path | str) -> Path:
    """Return a file or folder to read below data/: the user's own, else that of the package."""
    own = DATA / name
    installed = ROOT / "data" / name
    if INSTALLED and installed.exists() and not own.exists():
        return installed
    return own


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, in the place of none or of one that begins alike."""
    if isinstance(content, str):
        content = in_utf8(content).encode()
    check_begins(path, content)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
        temporary.replace(path)


def in_utf8(text: str) -> str:
    """Return a text that UTF-8 holds: a lone surrogate becomes its escape, the same in JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


def check_begins(path: Path, content: bytes) -> None:
    """Refuse a place where a file begins otherwise than this content: somebody else wrote it."""
    old = b""
    if path.is_file():
        with contextlib.suppress(OSError), path.open("rb") as file:
            old = file.read(BEGINNING)
    if old and content and _beginning(old) != _beginning(content):
        rule = "and nothing is replaced that this tool did not write"
        remedy = "move that file away, or choose another name or folder"
        raise InputError(
            f"{path} holds something else than what is to be written there, {rule}; {remedy}."
        )


def _beginning(content: bytes) -> str:
    """Return how a file begins: a few letters, or the first field of its first record."""
    text = " ".join(content[:BEGINNING].decode("utf-8", "replace").split())
    return text.lstrip("[ ").partition('": ')[0][:12]


def check_writable(path: Path) -> None:
    """Refuse a place where `write_whole` could not write, before anything is bought for it."""
    with replacing(path) as temporary:
        temporary.touch()
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; name a file in it.")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the file that becomes this one; it is gone afterwards."""
    # a name that nobody can have made a link of
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
    except OSError as error:
        remedy = "make room or choose another folder"
        raise InputError(f"{path} cannot be written: {error.strerror}; {remedy}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_private_folder(folder: Path) -> None:
    """Make a folder that no other user of this host can enter, unless it is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path, mode: str):
    """Open a file to write text in UTF-8; a new one no other user of this host can read."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, mode=0o600)

    return open(path, mode, encoding="utf-8", opener=opener)


def read_json(path: Path) -> dict:
    """Return what a JSON file holds, {} where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text("utf-8"))
    return {}


# what the committed notebooks wrote


def committed_runs() -> dict[str, dict]:
    """Return what each committed notebook was run with, and where it wrote.

    {notebook: {"parameters": {name: value}, "writes": folder}}
    """
    file = ROOT / "data" / "committed.yaml"
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def own_parameters(committed: Mapping, given: Mapping) -> list[str]:
    """Return the names of the committed parameters that have another value in a run.

    Of a parameter that is a dict, the parts that a run does not give are the committed ones.
    """
    found = []
    for name, usual in committed.items():
        value = given.get(name, usual)
        if isinstance(usual, dict) and isinstance(value, Mapping):
            value = usual | dict(value)
        if value != usual:
            found.append(name)
    return found


def output_folder(notebook: str, variables: Mapping) -> str:
    """Return where a notebook writes that was given no `out`.

    Says so, unless it is where the committed one wrote.

    notebook: its name, such as "03_self_recognition". variables: `globals()` of the notebook, with
    its parameters. With the parameters of the committed notebook this is what that wrote, such as
    "results/families/recognition" below data/. With your own parameters it is a folder in
    data/runs/, the same one for the same parameters, so that nothing committed is overwritten.
    """
    known = committed_runs()
    check_one_of("notebook", notebook, known)
    folder = results_folder(known[notebook], notebook, variables)
    own = own_parameters(known[notebook]["parameters"], variables)
    if own:
        place = "out" if "out" in variables else "corpus"
        names = ", ".join(f"`{name}`" for name in own)
        what = f"a folder for these parameters ({names} of your own)"
        print(f"The results go to {folder}, {what}; `{place}` names another.")
    return folder


def results_folder(known: Mapping, notebook: str, variables: Mapping) -> str:
    """Return where a notebook writes that was given no `out`.

    known: its entry in `committed_runs`.
    """
    committed = known["parameters"]
    if not own_parameters(committed, variables):
        return known["writes"]
    values = {name: variables[name] for name in committed if name in variables}
    text = json.dumps(values, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return str(DATA / "runs" / f"{notebook}_{digest[:8]}")
