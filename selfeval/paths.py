"""Where things are, what came with the package and what is the user's own; files that are whole or not there."""

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from selfeval.errors import InputError, check_one_of

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (
    _PACKAGE / "data"
).is_dir()  # from a wheel, which holds what a clone has beside the package
ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent
HOME = Path.cwd() if INSTALLED else ROOT  # of what is the user's own
DATA = Path(
    os.environ.get("SELFEVAL_DATA") or HOME / "data"
).absolute()  # a dry run has a shadow of it
BEGINNING = 100  # bytes that tell what a file is


def shipped(name: Path | str) -> Path:
    """Return a file or folder to read below data/: the user's own, or where there is none that of the package."""
    installed = ROOT / "data" / name
    return (
        installed
        if INSTALLED and installed.exists() and not (DATA / name).exists()
        else DATA / name
    )


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, in the place of none or of one that begins alike."""
    content = content if isinstance(content, bytes) else in_utf8(content).encode()
    check_begins(path, content)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
        temporary.replace(path)


def in_utf8(text: str) -> str:
    """Return a text that UTF-8 holds: a lone surrogate becomes its escape, which in JSON means the same."""
    return text.encode("utf-8", "backslashreplace").decode()


def check_begins(path: Path, content: bytes) -> None:
    """Raise `InputError` where a file is there that begins otherwise than this content: somebody else wrote it."""
    old = b""
    if path.is_file():
        with contextlib.suppress(OSError), path.open("rb") as file:
            old = file.read(BEGINNING)
    if old and content and _beginning(old) != _beginning(content):
        raise InputError(
            f"{path} holds something else than what is to be written there, and nothing is replaced that this tool "
            "did not write; move that file away, or choose another name or folder."
        )


def _beginning(content: bytes) -> str:
    """Return how a file begins: a few letters, or the first field of its first record, in a list or not."""
    text = " ".join(content[:BEGINNING].decode("utf-8", "replace").split())
    return text.lstrip("[ ").partition('": ')[0][:12]


def check_writable(path: Path) -> None:
    """Raise `InputError` where `write_whole` could not write, before anything is bought for what goes there."""
    with replacing(path) as temporary:
        temporary.touch()
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; name a file in it.")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the file that becomes this one; it is gone afterwards."""
    temporary = path.with_name(
        f"{path.name}.{secrets.token_hex(8)}.part"
    )  # where nobody can have put a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}; make room or choose another folder."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_private_folder(folder: Path) -> None:
    """Make a folder that no other user of this host can enter, unless it is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path, mode: str):
    """Open a file to write text in UTF-8; where it is new, no other user of this host can read it."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, mode=0o600)

    return open(path, mode, encoding="utf-8", opener=opener)


def is_open_to_others(path: Path) -> bool:
    """Tell whether other users of this host can read a file, or list a folder, that is there."""
    if not path.exists():
        return False
    path = path.resolve()
    can_enter = all(parent.stat().st_mode & 0o011 for parent in path.parents)
    return can_enter and bool(stat.S_IMODE(path.stat().st_mode) & 0o044)


def read_json(path: Path) -> dict:
    """Return what a JSON file holds, {} where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text("utf-8"))
    return {}


# what the committed notebooks wrote -----------------------------------------------------------------------------------


def committed_runs() -> dict[str, dict]:
    """Return {notebook: what it was run with (`parameters`), and where it wrote (`writes`)} of the committed ones."""
    return yaml.safe_load((ROOT / "data" / "committed.yaml").read_text(encoding="utf-8"))


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
    """Return where a notebook writes that was given no `out`, and say so unless it is where the committed one wrote.

    notebook: its name, such as "03_self_recognition". variables: `globals()` of the notebook, with
    its parameters. With the parameters of the committed notebook this is what that wrote, such as
    "results/families/recognition" below data/. With your own parameters it is a folder in
    data/runs/, the same one for the same parameters, so that nothing committed is overwritten.
    """
    known = committed_runs()
    check_one_of("notebook", notebook, known)
    folder = results_folder(known[notebook], notebook, variables)
    if own := own_parameters(known[notebook]["parameters"], variables):
        place = "out" if "out" in variables else "corpus"
        what = ", ".join(f"`{name}`" for name in own)
        print(
            f"The results go to {folder}, a folder for these parameters ({what} of your own); `{place}` names another."
        )
    return folder


def results_folder(known: Mapping, notebook: str, variables: Mapping) -> str:
    """Return where a notebook writes that was given no `out`. known: its entry in `committed_runs`."""
    committed = known["parameters"]
    if not own_parameters(committed, variables):
        return known["writes"]
    values = {name: variables[name] for name in committed if name in variables}
    key = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return str(DATA / "runs" / f"{notebook}_{key}")
