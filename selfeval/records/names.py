"""The names in prediction records: who is meant, by id, label or a name of the registry."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache

import numpy as np
import pandas as pd

from selfeval.condition import condition_of, mapped
from selfeval.errors import InputError, did_you_mean
from selfeval.providers.models import display_names, models
from selfeval.reading.parsing import name_key
from selfeval.records.fields import NAMES, NO_ANSWER
from selfeval.records.tasks import NAMING, PAIRS
from selfeval.records.texts import check_spellings, is_text

# times that a short reply names nobody, where it may be a slip
REPEATED = 3
# characters of a reply that may be a name
SHORT = 40


def name_by_id(frame: pd.DataFrame) -> list[str]:
    """Put the ids of authors in the place of their other names; say which evaluators are whom.

    Records may name evaluators, answers and candidates by the label or the registry's name of an
    author. A name of two authors is an error.
    """
    check_spellings("The records of `predictions`", "author", _writers(frame))
    owners = _owners(frame)

    def bearer(name: str) -> str:
        author = owners.get(name_key(name), name)
        if author is None:
            rule = "give answers and evaluators by id"
            raise InputError(f"The records call two authors {name!r}; {rule}.")
        return author

    told = []
    for evaluator in sorted(frame["evaluator_model"].unique()):
        author = bearer(evaluator)
        if author != evaluator:
            told.append(f"The evaluator {evaluator!r} is read as the author {author!r}.")
    replace_names(frame, ("evaluator_model", "predicted_model", "candidates"), bearer)
    check_spellings("The records of `predictions`", "evaluator", frame["evaluator_model"].unique())
    _fill_in_labels(frame)
    return told


def _fill_in_labels(frame: pd.DataFrame) -> None:
    """Give authors that the file does not label the registry's label, or their id."""
    authors = frame["true_model"].unique()
    labels = dict(zip(authors, authors, strict=True)) | display_names(authors)
    shown = frame["true_model"].map(labels)
    frame["true_model_display"] = frame.get("true_model_display", shown).fillna(shown)


def replace_names(
    frame: pd.DataFrame, fields: Iterable[str], of: Callable[[str], str | None]
) -> None:
    """Put other names in the place of those in some fields, equal names looked up once."""
    of = cache(of)

    def replaced(value):
        if isinstance(value, list):
            return [replaced(part) for part in value]
        return of(value) if isinstance(value, str) else value  # what is missing stays

    for field in frame.columns.intersection([*fields]):
        frame[field] = mapped(frame[field].tolist(), replaced)


def _writers(frame: pd.DataFrame) -> set[str]:
    """Return the authors of texts, in pairs also of the other text."""
    writers = set(frame["true_model"].tolist())
    if "other_model" in frame:
        writers.update(filter(is_text, frame["other_model"].tolist()))
    return writers


def _owners(frame: pd.DataFrame) -> dict[str, str | None]:
    """Return {a name's key: the author that bears it, None where two do}.

    Names are ids, which come first, labels of the file, and those of the registry.
    """
    labels = file_labels(frame)
    writers = sorted(_writers(frame))
    owners: dict[str, str | None] = {}
    for author in writers:
        names = [*labels.get(author, ())]
        if author in models():
            names += models()[author].all_names
        for key in map(name_key, names):
            is_free = owners.get(key, author) == author
            owners[key] = author if is_free else None
    return owners | {name_key(author): author for author in writers}


def further_names(frame: pd.DataFrame, authors: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return {id: further names} of what is said by hand, {name: []} of somebody else.

    Raises `InputError` for one who is nowhere.
    """
    known = _writers(frame) | {*frame["evaluator_model"]}
    called: dict[str, list[str]] = {}
    for name, who in authors.items():
        if who == NO_ANSWER:
            continue
        called.setdefault(who or name, [])
        if who and who not in known and who not in models():
            raise InputError(
                f"`authors` says that {name!r} is {who!r}, who is no author of the records and no "
                f"model of the registry{did_you_mean(who, known)}; "
                f"the authors are {', '.join(sorted(known))}."
            )
        if who:
            called[who].append(name)
    return called


def check_names(frame: pd.DataFrame) -> None:
    """Refuse answers on record with names that no author bears and `authors` does not say."""
    asked = frame.reindex(columns=[*NAMES, "task_type"]).dropna(subset="predicted_model")
    writers = _writers(frame)
    is_pair = asked["task_type"].isin(PAIRS)
    is_unknown = asked["task_type"].isin(NAMING) & ~asked["predicted_model"].isin(writers)
    said = {*map(name_key, frame.attrs["called"])}
    unknown = []
    for row in asked[is_pair | is_unknown].itertuples():
        known = row.candidates if isinstance(row.candidates, list) else []
        if row.task_type in PAIRS:
            known = [row.true_model, row.other_model]
        if row.predicted_model not in known and name_key(row.predicted_model) not in said:
            unknown.append(row.predicted_model)
    if unknown:
        raise InputError(
            f"Answers name {_times(unknown)}, and the authors are {', '.join(sorted(writers))}; "
            f"{_how_to_say(frame, unknown)}"
        )


def _how_to_say(frame: pd.DataFrame, names: Iterable[str]) -> str:
    """Say how `authors` tells who the most frequent of some names is.

    Perhaps it is the author whose id is most like it.
    """
    [(name, _)] = Counter(names).most_common(1)
    [likely] = get_close_matches(name, sorted(_writers(frame)), 1, 0)
    return (
        f"if that is a name, say whose: authors={{{name!r}: {likely!r}}} for one of the authors, "
        f"authors={{{name!r}: None}} for somebody else, "
        f"authors={{{name!r}: 'no answer'}} for no answer."
    )


def unread(frame: pd.DataFrame) -> list[str]:
    """Say which short replies name no author again and again where one was asked for.

    Passed over are records that say how authors were called, as ours do.
    """
    is_unread = frame["task_type"].isin(NAMING) & frame["status"].eq("no_answer")
    if "condition" in frame:
        says_labels = mapped(
            frame["condition"].tolist(), lambda said: "labels" in condition_of(said)
        )
        is_unread &= ~np.array(says_labels)
    replies = frame["reply"][is_unread].dropna().str.strip()
    replies = replies[(replies.str.len() <= SHORT) & ~replies.isin(frame.attrs.get("nobody", ()))]
    repeated = replies[replies.groupby(replies).transform("size") >= REPEATED]
    if repeated.empty:
        return []
    return [f"Replies without an answer: {_times(repeated)}; {_how_to_say(frame, repeated)}"]


def _times(names: Iterable[str]) -> str:
    """Return the most frequent names, and how often each stands there."""
    counts = Counter(names)
    shown = []
    for name, count in counts.most_common(9):
        times = "1 time" if count == 1 else f"{count} times"
        shown.append(f"{name!r} ({times})")
    text = ", ".join(shown)
    if len(counts) > 9:
        text += f" and {len(counts) - 9} more"
    return text


def file_labels(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return {author: its labels in the file}."""
    named = frame.reindex(columns=["true_model", "true_model_display"]).drop_duplicates()
    named = named[named["true_model_display"].map(is_text)]
    labels = named.groupby("true_model")["true_model_display"]
    return labels.agg(lambda displays: [*displays.unique()]).to_dict()
