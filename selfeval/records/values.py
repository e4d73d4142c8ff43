"""The values of prediction records: how a text in a cell is read, and what must hold."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from selfeval.condition import condition_of, mapped, names_author
from selfeval.errors import InputError
from selfeval.reading.parsing import place
from selfeval.records.fields import FIELDS, NAMES, NULLS, PLAIN, TRUTH, WHERE
from selfeval.records.tasks import CLAIMS, LINEUPS, NAMING, PAIRS, TASKS
from selfeval.records.texts import is_text


def add_to_condition(path: str | Path, frame: pd.DataFrame, parts: Mapping) -> None:
    """Add parts to each record's condition; one that the file has otherwise is an error."""

    def joined(condition) -> dict:
        known = condition_of(condition)
        for name in known.keys() & parts:
            if str(known[name]).lower() != str(parts[name]).lower():
                both = f"{name} = {known[name]!r}, and `predictions` says {parts[name]!r}"
                raise InputError(f"{path} has {both}.")
        return {**known, **parts}

    known = frame["condition"].tolist() if "condition" in frame else [None] * len(frame)
    frame["condition"] = mapped(known, joined)


def _is_there(value) -> bool:
    return not pd.isna(value)


def _is_share(value) -> bool:
    return 0 <= pd.to_numeric(value, errors="coerce") <= 1


def _is_reply(value) -> bool:
    """Tell whether a value is a reply: a text, or a list of its blocks."""
    if isinstance(value, list):
        return all(isinstance(block, dict) and "type" in block for block in value)
    return isinstance(value, str)


def _is_list(value) -> bool:
    return isinstance(value, list)


def _is_condition(value) -> bool:
    return isinstance(value, dict) or not str(value).lstrip().startswith("{")


def _as_answer(value: str):
    """Return None for a word such as "n/a"; others as they are."""
    return NULLS.get(value.strip().lower(), value)


def _as_truth(value: str):
    """Return True, False or None for a word that says so; others as they are."""
    return TRUTH.get(value.strip().lower(), value)


def _as_place(value: str):
    """Return 1 or 2 for a place of a pair; others as they are."""
    return place(value) or value


# {field: how a text in it is read}
READ = {
    "predicted_model": _as_answer,
    "score": _as_answer,
    "predicted_self": _as_truth,
    "position": _as_place,
}
CLAIMING = (*CLAIMS, *PAIRS)
IN_LINEUP = partial(place, most=999)
IS_CLAIM = "must be true, false or null (`reply` takes a YES or A)"
IS_REPLY = "must be the words of a reply (`predicted_self` takes true, `predicted_model` a name)"
IS_PLACE = "must say where the pair's own text stood, as 1 or 2, A or B, first or second"
IN_ORDER = "must be the text's place in the lineup, from 1, or a letter from A"
# (field, tasks, what must hold of a value, in words)
RULES = (
    ("task_type", (), TASKS.__contains__, f"must be one of {', '.join(TASKS)}"),
    ("text_id", (*TASKS,), _is_there, "must say which text was judged"),
    ("true_model", (*TASKS,), is_text, "must be a non-empty text, one name"),
    ("evaluator_model", (*TASKS,), is_text, "must be a non-empty text, one name"),
    ("predicted_model", NAMING, is_text, "must be a text or null"),
    ("predicted_self", CLAIMING, {True, False}.__contains__, IS_CLAIM),
    ("reply", (*TASKS,), _is_reply, IS_REPLY),
    (
        "score",
        (*TASKS,),
        _is_share,
        "must be a number from 0 to 1, P(the text is its own), or null",
    ),
    ("other_model", PAIRS, is_text, "must name the author of the pair's other text"),
    ("position", PAIRS, place, IS_PLACE),
    ("position", LINEUPS, IN_LINEUP, IN_ORDER),
    ("candidates", NAMING, _is_list, "must be a list of names or null"),
    ("condition", (*TASKS,), _is_condition, "must be an object or name=value;name=value"),
)
# fields that may be null, the last only where there is no reply to read
NULLABLE = (
    "predicted_model",
    "predicted_self",
    "reply",
    "score",
    "candidates",
    "condition",
    "position",
)


def check_values(path: str | Path, frame: pd.DataFrame) -> None:
    """Put one form of a value in the place of others; raise `InputError` for a wrong value."""
    for name, read in READ.items():
        if name in frame:
            values = [read(cell) if isinstance(cell, str) else cell for cell in frame[name]]
            frame[name] = pd.Series(values, frame.index, object)
    for name, tasks, is_right, rule in RULES:
        rows = _rows_to_check(frame, name, tasks)
        if name in frame:
            _check_column(path, frame[name][rows], is_right, rule)
        elif rows.any():
            raise InputError(f"{path} lacks the field {name}: it {rule}; {WHERE}")
    _check_other_author(path, frame)


def _rows_to_check(frame: pd.DataFrame, name: str, tasks: Sequence[str]) -> pd.Series:
    """Tell of each record whether a rule on a field holds for it; no tasks mean all."""
    if not tasks:
        return pd.Series(True, frame.index)
    rows = frame["task_type"].isin(tasks)
    if name not in NULLABLE:
        return rows
    needed = frame[name].notna() if name in frame else pd.Series(False, frame.index)
    if name == "position":  # a reply is read by it
        needed |= frame["reply"].notna()
    return rows & needed


def _check_column(path: str | Path, values: pd.Series, is_right: Callable, rule: str) -> None:
    """Raise `InputError` for the first value that a rule forbids."""
    right = [*map(bool, mapped(values.tolist(), is_right))]
    if all(right):
        return
    index = values.index[right.index(False)]
    value = values[index]
    shown = "null" if pd.isna(value) is True else f"{value!r:.80}"
    remedy = WHERE
    if values.name == "predicted_self" and is_text(value):
        remedy = f"authors={{{shown}: 'no answer'}} counts it as no answer; {WHERE}"
    found = f"{path}, record {index + 1}: `{values.name}` is {shown}"
    raise InputError(f"{found}, and {rule}; {remedy}")


def _check_other_author(path: str | Path, frame: pd.DataFrame) -> None:
    """Raise `InputError` for a pair whose other text is the evaluator's own."""
    if "other_model" not in frame:
        return
    is_own = frame["other_model"].eq(frame["evaluator_model"]) & frame["task_type"].isin(PAIRS)
    if is_own.any():
        index = is_own.idxmax()
        evaluator = frame["evaluator_model"][index]
        raise InputError(
            f"{path}, record {index + 1}: the evaluator {evaluator!r} wrote the pair's other text; "
            "give its own text and place in `true_model`, `text_id` and `position`, and leave out "
            "pairs of which it wrote both."
        )


def asked_by_name(path: str | Path, frame: pd.DataFrame) -> list[str]:
    """Say of how many pairs it is supposed that judges were asked which text `true_model` wrote."""
    pairs = frame[frame["task_type"].isin(PAIRS)].reindex(columns=[*NAMES, "condition"])
    authors = pairs[["true_model", "other_model"]]
    wrote_one = authors.eq(pairs["evaluator_model"], axis=0).any(axis=1)
    named = sum(map(names_author, pairs["condition"][~wrote_one]))
    if not named:
        return []
    return [
        f"{Path(path).name}: {named} pairs are judged by a model that wrote neither text, and are "
        "read as the question which of the two `true_model` wrote; if it was which is better, say "
        "so of the file ({path: {question: better}}) or in `condition` (question=better)."
    ]


def repeated_rows(frame: pd.DataFrame) -> pd.Index:
    """Return which records repeat an earlier one in question and answer, as after a resumed run."""
    fields = [name for name in FIELDS if name in frame and name != "is_correct"]
    plain = [name for name in fields if name in PLAIN]
    alike = frame.loc[frame.duplicated(plain, keep=False), fields]
    for name in fields:
        if name not in PLAIN:
            alike[name] = alike[name].map(repr, na_action="ignore")
    return alike.index[alike.duplicated()]
