"""Errors that a person reads (one sentence: the thing, the rule, the value, the remedy) and checks that raise them."""

import ast
import contextlib
import difflib
import itertools
import linecache
import math
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

from selfeval.secrets import visible

PACKAGE = Path(__file__).parent


class SelfevalError(Exception):
    """Base of all errors of this package: one sentence on the command line (exit status 1) and in a notebook.

    A notebook shows the sentence and the line of the cell that met it, instead of a traceback
    through this package and the libraries below it, and so does a plain Python program; `%debug`
    and `pdb.pm()` go into the frames.
    """

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints in place of a traceback."""
        return [visible(f"{type(self).__name__}: {self}"), *_line_of_user(self)]


def say(kind: type, error: BaseException, frames, before=sys.excepthook) -> None:
    """Print what ends a program: of this package's errors a sentence and the line, others as the hook `before` does."""
    if isinstance(error, SelfevalError):
        print(*error._render_traceback_(), sep="\n", file=sys.stderr)
    else:
        before(kind, error, frames)


def _line_of_user(error: BaseException) -> list[str]:
    """Return where the caller's own code entered this package: the last line before it."""
    found = []
    for frame, number in traceback.walk_tb(error.__traceback__):
        if Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            break
        if source := linecache.getline(
            frame.f_code.co_filename, number
        ).strip():  # none of a dataclass's own __init__
            found = [f"  in line {number}: {source}"]
    return found


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


SAME = (  # what people, other programs and earlier versions call a parameter or a verb, and what it is called here
    {
        "models",
        "model",
        "evaluators",
        "authors",
        "agent",
        "jurors",
        "ids",
        "evaluator",
        "evaluator_model",
    },
    {"answer", "answers", "reply", "predicted", "prediction", "predicted_model"},
    {"scoring", "scorer", "scorers", "grader", "metric", "score_fn"},
    {
        "words",
        "tokens",
        "max_tokens",
        "max_completion_tokens",
        "max_new_tokens",
        "max_length",
        "length",
    },
    {"samples", "n", "n_samples", "num_samples", "num_texts"},
    {
        "repeats",
        "iterations",
        "n",
        "n_samples",
        "num_samples",
        "samples",
        "epochs",
        "n_repeats",
        "trials",
    },
    {"n_resamples", "n_boot", "n_bootstrap", "num_bootstrap", "bootstraps"},
    {"level", "confidence", "confidence_level", "ci"},
    {
        "concurrency",
        "max_workers",
        "workers",
        "n_jobs",
        "num_workers",
        "max_connections",
        "parallel",
    },
    {"out", "output", "output_dir", "out_dir", "save_to", "folder"},
    {"limit", "max_samples", "num_prompts", "max_prompts"},
    {"max_cost", "budget", "max_dollars", "max_usd"},
)
SYSTEM = "A system prompt is part of a model: add an entry with `system` to a registry of yours (docs/models.md)"
SCORER = (
    "Replies are read by rules of this package; to score them your own way, put your `score` or answers beside the "
    "records and measure these (docs/own-data.md); on identity, `scoring` chooses among four ways"
)
LENGTH = "How long an answer may be is `answer_tokens` of a provider in a registry of yours (docs/models.md)"
KEY = "A key is no parameter: it comes from the environment or from a file `.env` (docs/models.md)"
ADDRESS = "An address is `base_url` of a provider in a registry of yours (docs/models.md)"
PATIENCE = "Failed calls are repeated for `deadline` seconds, a field of a provider in a registry of yours (docs/models.md)"
STORED = "Every reply is stored, and none is bought twice (docs/store.md)"
ELSEWHERE = {  # what is done elsewhere here, and where
    **dict.fromkeys(("system", "system_prompt", "system_message", "instructions"), SYSTEM),
    **dict.fromkeys(("scorer", "scoring", "scorers", "grader", "metric", "score_fn"), SCORER),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "max_new_tokens", "max_length"), LENGTH
    ),
    **dict.fromkeys(("api_key", "api_keys"), KEY),
    **dict.fromkeys(("base_url", "api_base", "endpoint", "url"), ADDRESS),
    "provider": "Which provider is asked stands in a model's id, as in `openai:gpt-4.1` (docs/models.md)",
    **dict.fromkeys(("timeout", "retries", "max_retries", "num_retries"), PATIENCE),
    "engine": "Every run has an ordinary kernel of its own (docs/cluster.md)",
    **dict.fromkeys(("cache", "use_cache", "cache_dir"), STORED),
}


def same_as(word, known: Iterable[str]) -> list[str]:
    """Return those of the known words that are another name of the same."""
    groups = [group for group in SAME if str(word) in group]
    return [one for one in known if one != word and any(one in group for group in groups)]


def did_you_mean(word, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` where a known word is near, or another name of the same, else nothing."""
    known = [*known]
    near = same_as(word, known) or difflib.get_close_matches(str(word), known, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def meant_by(word, known: Iterable[str]) -> str:
    """Return what a guessed keyword or option is called here, or where that is done; else nothing."""
    known = [*known]
    if word in ELSEWHERE and not same_as(word, known):
        return f". {ELSEWHERE[word]}."
    return did_you_mean(word, known)


def is_count(value) -> bool:
    """Tell whether a value can be a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def is_amount(value) -> bool:
    """Tell whether a value can be a number of dollars or seconds."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= sys.float_info.max
    )


def check_whole(name: str, value, least: int = 0, most: float = math.inf) -> None:
    """Raise `InputError` unless a parameter is a whole number of at least so much, and at most."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        limits = f"at least {least}" + f" and at most {most}" * (most < math.inf)
        raise InputError(f"`{name}` must be a whole number of {limits}, got {value!r}.")


def check_at_least(name: str, value, least: float = 0) -> None:
    """Raise `InputError` unless a parameter is a finite number of at least so much."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not least <= value < math.inf
    ):
        raise InputError(f"`{name}` must be a finite number of at least {least}, got {value!r}.")


def check_name(name: str, value) -> None:
    """Raise `InputError` for a name that no file takes: one with half of a sign, which is called a lone surrogate."""
    if (
        isinstance(value, str)
        and not value.isascii()
        and any("\ud800" <= sign <= "\udfff" for sign in value)
    ):
        raise InputError(
            f"`{name}` is {value!r:.80}, with half of a sign (a lone surrogate); write the whole name."
        )


def check_one_of(name: str, value, known) -> None:
    """Raise `InputError` unless a parameter is one of the known values."""
    if value not in known:
        raise InputError(f"`{name}` must be one of {', '.join(known)}, got {value!r}.")


def check_names(name: str, values: Sequence, known: Iterable) -> None:
    """Raise `InputError` unless each value of a parameter is one of the known ones, and given once."""
    for value in values:
        if value not in known or list(values).count(value) > 1:
            raise InputError(
                f"Unknown name {value!r} in `{name}`, or given twice; known are {', '.join(known)}."
            )


def check_injected(cells: Sequence[str]) -> None:
    """Raise `InputError` for a parameter that papermill gave a notebook which does not have it; papermill only warns.

    cells: the code of the cells executed so far; what papermill gives stands behind the cell of the
    parameters.
    """
    for before, cell in itertools.pairwise(cells):
        known = _assigned(before) if cell.startswith("# Parameters\n") else []
        for name in _assigned(cell) if known else ():
            if name not in known:
                meant = meant_by(name, known) or f"; it has {', '.join(known)}."
                raise InputError(f"The notebook has no parameter {name!r}{meant}")


def _assigned(cell: str) -> list[str]:
    """Return the names that a cell of plain code gives values to."""
    targets = []
    with contextlib.suppress(SyntaxError):  # such as a cell with a magic
        for line in ast.parse(cell).body:
            targets += getattr(line, "targets", [getattr(line, "target", None)])
    return [target.id for target in targets if isinstance(target, ast.Name)]


def check_flag(name: str, value) -> None:
    """Raise `InputError` unless a parameter is True or False; papermill's -p passes other words as text."""
    if not isinstance(value, bool):
        raise InputError(
            f"`{name}` must be true or false, got {value!r}; papermill takes `-p {name} False`."
        )
