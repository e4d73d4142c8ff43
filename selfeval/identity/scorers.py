"""A scorer of the user's own: a function of a reply and of what is expected.

    def names_its_maker(reply, expected):
        return expected["provider_name"] in reply

It returns True or False, a share from 0 to 1 (half and more passes), or a dictionary with `passed`
or `score`, whose further entries go into the details.
"""

import copy
import json
from collections.abc import Callable, Mapping
from numbers import Real
from typing import NamedTuple

RETURNS = (
    "it must return True or False, a share from 0 to 1, or a dictionary with `passed` or `score`"
)
PASSES = 0.5  # the least share that passes


class Score(NamedTuple):
    """What a scorer finds: passed and score (0 to 1) are None where there is no verdict."""

    passed: bool | None
    score: float | None
    details: dict


def score_by(function: Callable, reply: str, expected: Mapping) -> Score:
    """Return the score that a function gives a reply.

    One that fails or returns something else leaves it without a verdict.
    """
    try:
        found = function(reply, copy.deepcopy(dict(expected)))
        return _read(found)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        note = f"the scorer {name_of(function)} gave no score: {why}"
        return Score(None, None, {"note": note})


def name_of(function: Callable) -> str:
    """Return what a function is called, or the class of an object that is called."""
    return getattr(function, "__name__", type(function).__name__)


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
