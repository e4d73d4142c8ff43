"""Scorers of the user's own.

A function of a reply and of what is expected, in the place of a built-in method.

    def names_its_maker(reply, expected):
        return expected["provider_name"] in reply

It returns True or False, a share from 0 to 1 (half and more passes), or a dictionary with `passed`
or `score`, whose further entries go into the details.
"""

import copy
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

from selfeval.errors import InputError

RETURNS = (
    "it must return True or False, a share from 0 to 1, or a dictionary with `passed` or `score`"
)
PASSES = 0.5  # the least share that passes


class Score(NamedTuple):
    """What a scorer finds: passed and score (0 to 1) are None where there is no verdict."""

    passed: bool | None
    score: float | None
    details: dict


class Scorer(NamedTuple):
    """A function of the user's, and what it is called."""

    function: Callable
    name: str

    def label(self) -> str:
        """Return the name with the start of a hash of the function's source.

        It tells two versions apart.
        """
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):  # typed at a prompt, built in, or an object that is called
            return f"{self.name} (source unknown)"
        return f"{self.name} ({hashlib.sha256(source.encode()).hexdigest()[:8]})"

    def score(self, reply: str, expected: Mapping) -> Score:
        """Return the score of a reply.

        A function that fails or returns something else leaves it without a verdict.
        """
        try:
            found = self.function(reply, copy.deepcopy(dict(expected)))
            return _read(found)
        except Exception as error:
            return Score(
                None,
                None,
                {"note": f"the scorer {self.name} gave no score: {type(error).__name__}: {error}"},
            )


def _read(found) -> Score:
    """Return what a scorer's function returned; raise `ValueError` where it is no score."""
    given = found if isinstance(found, Mapping) else {"score": found}
    verdict = given.get("passed", given.get("score"))
    score = given.get("score", verdict)
    details = {str(name): value for name, value in given.items() if name not in ("passed", "score")}
    # what cannot be written is said now, not when the results are saved
    written = json.dumps(details, default=str)
    return Score(_share(verdict) >= PASSES, _share(score), json.loads(written))


def _share(value) -> float:
    """Return a share from 0 to 1, which True and False are too.

    Raises `ValueError` for anything else.
    """
    value = value.item() if hasattr(value, "item") else value  # of numpy
    if isinstance(value, Real) and 0 <= float(value) <= 1:
        return float(value)
    raise ValueError(f"{RETURNS}, got {value!r:.80}")


def as_scorer(scoring: str | Callable | Scorer, beside: Path | None = None) -> str | Scorer:
    """Return a function, or one named as `module:function`, as a scorer.

    The name of a built-in method stays. beside: a folder where the module may lie, if it is not in
    the current one. Raises `InputError` for one that is not there or cannot be imported.
    """
    if callable(scoring):
        return Scorer(scoring, getattr(scoring, "__name__", type(scoring).__name__))
    if isinstance(scoring, Scorer) or ":" not in str(scoring):
        return scoring
    folders = [Path.cwd()]
    if beside:
        folders.append(beside.expanduser().resolve())
    return Scorer(_load(scoring, folders), scoring)


def _load(named: str, folders: Sequence[Path]) -> Callable:
    """Return the function `module:function` of a file of the user's.

    No installed module is imported for it.
    """
    module, _, name = named.partition(":")
    parts = module.split(".")
    if not all(part.isidentifier() for part in (*parts, name)):
        raise InputError(
            f"The scorer {named!r} must be named as module:function, such as mine:polite."
        )
    files = dict.fromkeys(folder.joinpath(*parts).with_suffix(".py") for folder in folders)
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise InputError(
            f"The scorer {named!r} is not there: put it into {' or '.join(map(str, files))}."
        )
    spec: Any = spec_from_file_location(module, file)
    loaded = module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        raise InputError(
            f"The scorer {named!r} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    function = getattr(loaded, name, None)
    if not callable(function):
        raise InputError(f"{file} has no function {name!r}, which `scoring` names.")
    return function
