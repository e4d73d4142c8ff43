"""Errors that a person reads, and checks that raise them.

An error is one sentence: the thing, the rule, the value, the remedy.
"""

import ast
import contextlib
import difflib
import itertools
import linecache
import math
import sys
import traceback
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import yaml

from selfeval.secrets import visible

PACKAGE = Path(__file__).parent


class SelfevalError(Exception):
    """Base of all errors of this package.

    On the command line it is one sentence and exit status 1.
    A notebook shows the sentence and the line of the cell that met it, instead of a traceback
    through this package and the libraries below it; `%debug` goes into the frames.
    """

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints in place of a traceback."""
        return [visible(f"{type(self).__name__}: {self}"), *_line_of_user(self)]


def _line_of_user(error: BaseException) -> list[str]:
    """Return the last line of the caller's own code before it entered this package."""
    line = []
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if Path(file).is_relative_to(PACKAGE):
            break
        source = linecache.getline(file, number).strip()
        if source:  # there is none of a dataclass's own __init__
            line = [f"  in line {number}: {source}"]
    return line


class InputError(SelfevalError, ValueError):
    """A parameter, file or name that breaks a rule."""


class ProviderError(SelfevalError):
    """A provider that cannot be used at all: no key, no server, no such model, no credit."""


class BudgetError(SelfevalError):
    """A call that could cost more than the ceiling leaves, or nobody knows what."""


class StoreError(SelfevalError):
    """The response store cannot be read or written."""


class ReplayMiss(SelfevalError):
    """A request that the recorded replies do not hold, in replay mode."""


@lru_cache
def _synonyms() -> tuple[list[set], dict[str, str]]:
    """Return the groups of words for one thing, and {word: what is done elsewhere, and where}."""
    file = yaml.safe_load((PACKAGE / "synonyms.yaml").read_text(encoding="utf-8"))
    sentences = {}
    for entry in file["elsewhere"]:
        sentences |= dict.fromkeys(entry["words"], entry["sentence"])
    return [set(group) for group in file["same"]], sentences


def elsewhere(word) -> str:
    """Return in a sentence where something is done that no verb takes as a keyword; else ""."""
    return _synonyms()[1].get(word, "")


def same_as(word, known: Iterable[str]) -> list[str]:
    """Return those of the known words that are another name of the same."""
    word = str(word)
    others = set()
    for group in _synonyms()[0]:
        if word in group:
            others |= group - {word}
    return [name for name in known if name in others]


def did_you_mean(word, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` where a known word is near or means the same, else ""."""
    known = list(known)
    near = same_as(word, known) or difflib.get_close_matches(str(word), known, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def meant_by(word, known: Iterable[str]) -> str:
    """Return what a guessed keyword is called here, or where that is done; else ""."""
    known = list(known)
    sentence = elsewhere(word)
    if sentence and not same_as(word, known):
        return f". {sentence}."
    return did_you_mean(word, known)


def _is_number(value, kinds) -> bool:
    """Tell whether a value is a number of some kinds; True and False are none."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def is_count(value) -> bool:
    """Tell whether a value can be a number of tokens."""
    return _is_number(value, int) and 0 <= value < 2**53


def is_amount(value) -> bool:
    """Tell whether a value can be a number of dollars or seconds."""
    return _is_number(value, int | float) and 0 <= value <= sys.float_info.max


def check_whole(name: str, value, least: int = 0, most: float = math.inf) -> None:
    """Raise `InputError` unless a parameter is a whole number between two, these included."""
    if _is_number(value, int) and least <= value <= most:
        return
    limits = f"at least {least}"
    if most < math.inf:
        limits += f" and at most {most}"
    raise InputError(f"`{name}` must be a whole number of {limits}, got {value!r}.")


def check_at_least(name: str, value, least: float = 0) -> None:
    """Raise `InputError` unless a parameter is a finite number of at least so much."""
    if not _is_number(value, int | float) or not least <= value < math.inf:
        raise InputError(f"`{name}` must be a finite number of at least {least}, got {value!r}.")


def check_name(name: str, value) -> None:
    """Raise `InputError` for a name with half of a sign (a lone surrogate), which no file takes."""
    if not isinstance(value, str) or value.isascii():
        return
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        rule = "with half of a sign (a lone surrogate); write the whole name"
        raise InputError(f"`{name}` is {value!r:.80}, {rule}.")


def check_one_of(name: str, value, known) -> None:
    """Raise `InputError` unless a parameter is one of the known values."""
    if value not in known:
        raise InputError(f"`{name}` must be one of {', '.join(known)}, got {value!r}.")


def check_names(name: str, values: Sequence, known: Iterable) -> None:
    """Raise `InputError` unless each value of a parameter is a known one, and given once."""
    for value in values:
        if value not in known or list(values).count(value) > 1:
            rule = f"Unknown name {value!r} in `{name}`, or given twice"
            raise InputError(f"{rule}; known are {', '.join(known)}.")


def check_injected(cells: Sequence[str]) -> None:
    """Raise `InputError` for a parameter that the notebook which papermill gave it does not have.

    Papermill only warns. cells: the code of the cells executed so far; what papermill gives stands
    behind the cell of the parameters.
    """
    for before, cell in itertools.pairwise(cells):
        known = _assigned(before)
        if not cell.startswith("# Parameters\n") or not known:
            continue
        for name in _assigned(cell):
            if name not in known:
                meant = meant_by(name, known) or f"; it has {', '.join(known)}."
                raise InputError(f"The notebook has no parameter {name!r}{meant}")


def _assigned(cell: str) -> list[str]:
    """Return the names that a cell of plain code gives values to."""
    targets = []
    with contextlib.suppress(SyntaxError):  # such as a cell with a magic
        for statement in ast.parse(cell).body:
            if isinstance(statement, ast.Assign):
                targets += statement.targets
            elif isinstance(statement, ast.AnnAssign):
                targets.append(statement.target)
    return [target.id for target in targets if isinstance(target, ast.Name)]


def check_flag(name: str, value) -> None:
    """Raise `InputError` unless a parameter is True or False.

    papermill's -p passes other words as text.
    """
    if not isinstance(value, bool):
        rule = f"must be true or false, got {value!r}"
        raise InputError(f"`{name}` {rule}; papermill takes `-p {name} False`.")
