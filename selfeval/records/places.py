"""Pairs of texts whose records name the authors by the place in which their texts were shown."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from selfeval.condition import condition_of
from selfeval.errors import InputError
from selfeval.reading.parsing import name_key, place
from selfeval.records.fields import PLACED
from selfeval.records.names import replace_names
from selfeval.records.texts import is_text
from selfeval.records.values import add_to_condition


def pairs_by_place(
    path: str | Path,
    frame: pd.DataFrame,
    given: Mapping,
    authors: Mapping,
    nobody: Sequence[str],
    notes: list[str],
) -> pd.DataFrame:
    """Return pairs of a first and a second author as pairs about the evaluator's own text.

    Of an evaluator that wrote neither it is the text of the author who comes first by name. Where
    there are such, all are read as asked which text they wrote themselves, unless a condition says
    which question it was. notes: gets a sentence on that.
    """
    has_places = set(frame) >= {*PLACED, "chosen"}
    if not has_places or "true_model" in frame:
        return frame
    if "evaluator_model" not in frame:
        has = "`first`, `second` and `chosen`, and not who chose"
        raise InputError(f"{path} has {has}; name it `evaluator_model`.")
    said = {name_key(name): who for name, who in authors.items() if who}
    _name_evaluators_as_authors(frame, said)
    rows = _own_pairs(path, frame, said, {*map(name_key, nobody)})
    columns = ["true_model", "other_model", "position", "predicted_self"]
    pairs = pd.DataFrame(rows, columns=columns, index=frame.index, dtype=object)
    wrote_one = frame[[*PLACED]].eq(frame["evaluator_model"], axis=0).any(axis=1)
    frame = frame.drop(columns=[*PLACED, "chosen"]).assign(**pairs)
    if "task_type" not in frame and "task_type" not in given:
        frame["task_type"] = "pairwise_self"
    told = f"{Path(path).name}: `first`, `second` and `chosen` are read as pairs"
    if wrote_one.all() or _says_question(frame, given):
        notes.append(f"{told}.")
        return frame
    add_to_condition(path, frame, [{"question": "authored"}] * len(frame))
    neutral = f"{(~wrote_one).sum()} of them judged by a model that wrote neither text"
    rule = "all as asked which text they wrote, unless `condition` says question=better"
    notes.append(f"{told}, {neutral}; {rule}.")
    return frame


def _name_evaluators_as_authors(frame: pd.DataFrame, said: Mapping[str, str]) -> None:
    """Name those who judged pairs as the pairs name authors; said: {key of a name: author}."""
    fields = (*PLACED, "evaluator_model")
    replace_names(frame, fields, lambda name: said.get(name_key(name), name))
    authors = {}
    for field in PLACED:
        for name in filter(is_text, frame[field].unique()):
            authors[name_key(name)] = name
    replace_names(frame, ["evaluator_model"], lambda name: authors.get(name_key(name), name))


def _own_pairs(
    path: str | Path, frame: pd.DataFrame, said: Mapping[str, str], no_answer: set[str]
) -> list[tuple]:
    """Return what `_own_pair` makes of each record; equal ones are read once."""
    columns = [frame[name] for name in ("evaluator_model", *PLACED, "chosen")]
    rows = [*zip(*columns, strict=True)]
    pairs = {}
    for number, row in enumerate(rows, 1):
        if row not in pairs:
            where = f"{path}, record {number}"
            evaluator, first, second, chosen = row
            pairs[row] = _own_pair(where, evaluator, first, second, chosen, said, no_answer)
    return [pairs[row] for row in rows]


def _says_question(frame: pd.DataFrame, given: Mapping) -> bool:
    """Tell whether a file, or what is said of it, says which question any pair was asked."""
    if "question" in given:
        return True
    if "condition" not in frame:
        return False
    return any("question" in condition_of(condition) for condition in frame["condition"])


def _own_pair(where: str, evaluator: str, first, second, chosen, said, no_answer) -> tuple:
    """Return a pair's own author, the other, the place of the own text, and if it was chosen."""
    shown = [first, second]
    if not all(map(is_text, shown)) or first == second:
        rule = "`first` and `second` must be two authors"
        raise InputError(f"{where}: {rule}, got {first!r} and {second!r}.")
    own = evaluator if evaluator in shown else min(shown)
    position = 1 + shown.index(own)
    other = shown[2 - position]
    place_chosen = _place_chosen(chosen, shown, said, no_answer)
    if place_chosen is None:
        return own, other, position, None
    if place_chosen == 0:
        raise InputError(
            f"{where}: `chosen` is {chosen!r:.80}, and must say which text was chosen: first or "
            f"second, A or B, 1 or 2, or the author {first!r} or {second!r}; "
            f"authors={{{chosen!r:.80}: 'no answer'}} counts it as no answer."
        )
    return own, other, position, place_chosen == position


def _place_chosen(
    chosen, shown: Sequence[str], said: Mapping[str, str], no_answer: set[str]
) -> int | None:
    """Return which of two texts was chosen, 1 or 2; None for no answer, 0 for what is no choice."""
    text = str(chosen)
    if pd.isna(chosen) or not text.strip() or name_key(text) in no_answer:
        return None
    author = said.get(name_key(text), text)
    keys = [name_key(name) for name in shown]
    if name_key(author) in keys:
        return 1 + keys.index(name_key(author))
    return place(chosen) or 0
