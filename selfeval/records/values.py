"""The values of prediction records: how a text in a cell is read, and what must hold."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from selfeval.condition import OBJECT, condition_of, names_author, plain_yaml
from selfeval.errors import InputError
from selfeval.reading import parsing
from selfeval.reading.parsing import name_key, place
from selfeval.records import tables as record_files
from selfeval.records.fields import FIELDS, NAMES, NULLS, PLAIN, TRUTH, WHERE
from selfeval.records.tasks import CLAIMS, LINEUPS, NAMING, PAIRS, TASKS
from selfeval.records.texts import is_text


def read_cells(path: str | Path, column: pd.Series, read: Callable) -> pd.Series:
    """Return a column with what its texts mean, equal ones as one object.

    An error says in which record.
    """
    meanings = {}
    for number, value in enumerate(column.tolist(), 1):
        if isinstance(value, str) and value not in meanings:
            try:
                meanings[value] = read(value)
            except InputError as error:
                raise InputError(f"{path}, record {number}: `{column.name}` {error}") from error
    if not meanings:
        return column
    values = [meanings[value] if isinstance(value, str) else value for value in column.tolist()]
    return pd.Series(values, column.index, object)


def read_condition(cell: str):
    """Return a condition in JSON or as Python shows it as a mapping; others stay."""
    return condition_of(cell) if OBJECT.match(cell) else cell


def add_to_condition(path: str | Path, frame: pd.DataFrame, parts: Sequence) -> None:
    """Add further parts to each record's condition; one that a file has otherwise is an error."""
    known = frame["condition"].tolist() if "condition" in frame else [None] * len(frame)
    pairs = [*zip(known, parts, strict=True)]
    joined: dict[tuple, dict] = {}  # equal objects are joined once
    for condition, part in pairs:
        key = (id(condition), id(part))
        if key not in joined:
            joined[key] = _joined(path, condition_of(condition), condition_of(part))
    frame["condition"] = [joined[id(condition), id(part)] for condition, part in pairs]


def _joined(path: str | Path, condition: Mapping, part: Mapping) -> dict:
    """Return a condition with a further part; refuse two that say one thing differently."""
    for name in condition.keys() & part:
        if str(condition[name]).lower() != str(part[name]).lower():
            both = f"{name} = {condition[name]!r}, and `predictions` says {part[name]!r}"
            raise InputError(f"{path} has {both}.")
    return {**condition, **part}


def read_replies(path: str | Path, frame: pd.DataFrame) -> None:
    """Put texts in the place of replies that are answers without words.

    In yes/no tasks true, false, 1 and 0 are YES and NO, in pairs 1 and 2 the places; an object has
    to be the JSON of an answer or a block of text, a list of such. Raises `InputError` for what is
    no reply.
    """
    replies = record_files.with_nulls(frame["reply"]).tolist()
    for index, value in enumerate(replies):
        if value is None or isinstance(value, str):
            continue
        reply = _in_words(value, frame["task_type"][index])
        if reply is None:
            raise InputError(
                f"{path}, record {index + 1}: `reply` is {value!r:.80}, and must be the words of a "
                "reply (in yes/no tasks also true or false); give these, or the answer in "
                "`predicted_model` or `predicted_self`."
            )
        replies[index] = reply
    frame["reply"] = pd.Series(replies, frame.index, object)


def _in_words(value, task: str):
    """Return an answer without words as a reply, blocks of text as they are; None for others."""
    if task in CLAIMS and value in (True, False):
        return "YES" if value else "NO"
    if task in PAIRS and not isinstance(value, bool) and value in (1, 2):
        return str(int(value))
    if isinstance(value, dict) and parsing.is_answer(value):
        return json.dumps(value, ensure_ascii=False)
    return value if _is_block(value) else None


def take_for_no_answer(frame: pd.DataFrame, nobody: Sequence[str]) -> None:
    """Put null in the place of answers on record that are none by `authors`, such as "unknown"."""
    words = {name_key(word) for word in nobody}
    if not words:
        return

    def answered(value):
        is_no_answer = isinstance(value, str) and name_key(value) in words
        return None if is_no_answer else value

    for name in ("predicted_model", "predicted_self"):
        frame[name] = pd.Series([answered(value) for value in frame[name]], frame.index, object)


def _is_block(value) -> bool:
    """Tell whether a value is a block of text of a reply, or a list of them."""
    if isinstance(value, list):
        return all(isinstance(part, str) or _is_block(part) for part in value)
    return isinstance(value, dict) and not {"type", "text", "content"}.isdisjoint(value)


def _as_list(value: str):
    """Return the names of a CSV as a list: "['a', 'b']" or "a;b"."""
    if value.lstrip().startswith("["):
        return plain_yaml(value)
    return re.split(r"\s*[;,|]\s*", value.strip())


def _as_answer(value: str):
    """Return None for a word such as "n/a"; others as they are."""
    return NULLS.get(value.strip().lower(), value)


def _as_truth(value: str):
    """Return True, False or None for a word that says so; others as they are."""
    return TRUTH.get(value.strip().lower(), value)


def _as_place(value: str):
    """Return 1 or 2 for a place of a pair; others as they are."""
    return place(value) or value


def _is_there(value) -> bool:
    return not pd.isna(value)


def _is_share(value) -> bool:
    return 0 <= pd.to_numeric(value, errors="coerce") <= 1


def _is_name(value) -> bool:
    """Tell whether a value is one name, and no list of several as text."""
    return is_text(value) and not re.match(r"\[\s*['\"]", value)


# {field: how a text in it is read}
READ = {
    "predicted_model": _as_answer,
    "score": _as_answer,
    "predicted_self": _as_truth,
    "position": _as_place,
    "candidates": _as_list,
}
CLAIMING = (*CLAIMS, *PAIRS)
IN_LINEUP = partial(place, most=999)
IS_CLAIM = "must be true, false or null (`reply` takes a YES or A)"
IS_PLACE = "must say where the pair's own text stood, as 1 or 2, A or B, first or second"
IN_ORDER = "must be the text's place in the lineup, from 1, or a letter from A"
# (field, tasks, what must hold of a value, in words)
RULES = (
    ("task_type", (), TASKS.__contains__, f"must be one of {', '.join(TASKS)}"),
    ("text_id", (*TASKS,), _is_there, "must say which text was judged"),
    ("true_model", (*TASKS,), _is_name, "must be a non-empty text, one name"),
    ("evaluator_model", (*TASKS,), _is_name, "must be a non-empty text, one name"),
    ("predicted_model", NAMING, is_text, "must be a text or null"),
    ("predicted_self", CLAIMING, {True, False}.__contains__, IS_CLAIM),
    (
        "score",
        (*TASKS,),
        _is_share,
        "must be a number from 0 to 1, P(the text is its own), or null",
    ),
    ("other_model", PAIRS, is_text, "must name the author of the pair's other text"),
    ("position", PAIRS, place, IS_PLACE),
    ("position", LINEUPS, IN_LINEUP, IN_ORDER),
)
# fields that may be null, the last only where there is no reply to read
NULLABLE = ("predicted_model", "predicted_self", "score", "position")


def check_values(path: str | Path, frame: pd.DataFrame) -> None:
    """Put one form of a value in the place of others; raise `InputError` for a wrong value."""
    for name, read in READ.items():
        if name in frame:
            frame[name] = read_cells(path, frame[name], read)
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
    for index, value in values.drop_duplicates().items():
        if is_right(value):
            continue
        shown = "null" if pd.isna(value) else f"{value!r:.80}"
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
