"""The names in prediction records: who is meant, by id, display name, label or letter."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import pandas as pd

from selfeval.condition import mapped
from selfeval.errors import InputError, check_name, did_you_mean
from selfeval.providers.models import Model, display_names, models
from selfeval.reading import parsing
from selfeval.reading.parsing import name_key, place
from selfeval.records.fields import NAMES, PLACED, REPEATED, SPELLED
from selfeval.records.tasks import LINEUPS, NAMING, PAIRS
from selfeval.records.texts import is_text, one_spelling


def spell_alike(path: str | Path, frame: pd.DataFrame, known: dict[str, str]) -> list[str]:
    """Put one spelling of a name in the place of all; return a sentence on each that changed.

    known: {key: the spelling that stays} of the files before, to which these are added.
    """
    counts: Counter = Counter()
    for field in SPELLED:
        if field not in frame:
            continue
        for name, times in frame[field].value_counts().items():
            check_name(field, name)
            if isinstance(name, str):
                counts[name] += times
    changed, told = one_spelling(counts, known)
    if changed:
        replace_names(frame, SPELLED, lambda name: changed.get(name, name))
    file = Path(path).name
    return [f"{file}: the name {sentence}; rename one if these are two." for sentence in told]


def nearly_alike(frame: pd.DataFrame) -> list[str]:
    """Say which names count as two and differ in hyphens, underscores or blanks alone."""
    by_key: dict[str, list[str]] = {}
    for name in sorted({*_writers(frame), *frame["evaluator_model"].unique()}):
        by_key.setdefault(name_key(name), []).append(name)
    sentences = []
    for key, names in by_key.items():
        if key and len(names) > 1:
            first, second, *_ = names
            remedy = f"say authors={{{second!r}: {first!r}}}"
            sentences.append(f"{first!r} and {second!r} count as two; if they are one, {remedy}.")
    return sentences


def name_by_id(
    path: str | Path, frame: pd.DataFrame, authors: Mapping[str, str | None]
) -> list[str]:
    """Put the ids of authors in the place of their other names; say what was taken for whom.

    A file may name evaluators, answers and candidates by the label or the registry's name of an
    author. Authors keep the names that `true_model` gives them, or `authors`. A name of two authors
    is an error.
    """
    if authors:
        bearer = _bearer(path, frame)
        said = {name_key(name): bearer(who or name) for name, who in authors.items()}
        replace_names(frame, NAMES, lambda name: said.get(name_key(name), name))
    bearer = _bearer(path, frame)
    evaluators = {*frame["evaluator_model"].tolist()}
    renamed = {}
    told = []
    for evaluator in sorted(evaluators):
        author = bearer(evaluator)
        if author not in evaluators:
            renamed[evaluator] = author
            told.append(f"{Path(path).name}: the evaluator {evaluator!r} is the author {author!r}.")
    frame["evaluator_model"] = frame["evaluator_model"].replace(renamed)
    replace_names(frame, ("predicted_model", "candidates"), bearer)
    _fill_in_labels(frame)
    lettered = _letters_as_names(frame)
    if lettered:
        told.append(f"{Path(path).name}: {lettered} answers are letters, read as places.")
    return told


def _fill_in_labels(frame: pd.DataFrame) -> None:
    """Give authors that the file does not label the registry's label, or their id."""
    authors = frame["true_model"].unique()
    labels = dict(zip(authors, authors, strict=True)) | display_names(authors)
    shown = frame["true_model"].map(labels)
    frame["true_model_display"] = frame.get("true_model_display", shown).fillna(shown)


def names_in(frame: pd.DataFrame, names: set[str]) -> set[str]:
    """Return those of the names that stand in a field or in a reply, however they are typed."""
    if not names:
        return set()
    fields = [*NAMES, *PLACED, "chosen", "predicted_self", "true_model_display", "reply"]
    keys = set()
    for field in frame.columns.intersection(fields):
        values = frame[field].explode().dropna().astype(str).unique()
        keys.update(map(name_key, values))
    text = "\n".join(keys)
    return {name for name in names if name_key(str(name)) in text}


def replace_names(frame: pd.DataFrame, fields: Iterable[str], of: Callable[[str], str]) -> None:
    """Put other names in the place of those in some fields, equal names looked up once."""
    of = cache(of)

    def replaced(value):
        if isinstance(value, list):
            return [replaced(part) for part in value]
        return of(value) if isinstance(value, str) else value  # what is missing stays

    for field in frame.columns.intersection([*fields]):
        frame[field] = mapped(frame[field].tolist(), replaced)


def _bearer(path: str | Path, frame: pd.DataFrame) -> Callable[[str], str]:
    """Return what makes of a name the one author that bears it, or leaves it.

    A name of two authors is an error.
    """
    owners = _owners(frame)
    writers = _writers(frame)

    def bearer(name: str) -> str:
        if name in writers:
            return name
        author = owners.get(name_key(name), name)
        if author is None:
            rule = f"gives two authors the label {name!r}, which is an answer"
            raise InputError(f"{path} {rule}; give answers by id.")
        return author

    return bearer


def _writers(frame: pd.DataFrame) -> set[str]:
    """Return the authors of texts, in pairs also of the other text."""
    writers = set(frame["true_model"].tolist())
    if "other_model" in frame:
        writers.update(filter(is_text, frame["other_model"].tolist()))
    return writers


def _owners(frame: pd.DataFrame) -> dict[str, str | None]:
    """Return {a name's key: the author that bears it, None where two do}.

    Names are ids, labels of the file, and those of the registry.
    """
    registered = _registered()
    labels = file_labels(frame)
    owners: dict[str, str | None] = {}
    for author in _writers(frame):
        names = [author, author.rpartition("/")[2], *labels.get(author, ())]
        model = models().get(author) or registered.get(name_key(author))
        if model:
            names += [model.id, *model.all_names]
        for key in map(name_key, names):
            is_free = owners.get(key, author) == author
            owners[key] = author if is_free else None
    return owners


def _registered() -> dict[str, Model]:
    """Return {a name's key: the model of the registry that has it}."""
    by_key = {}
    for model in models().values():
        for name in (model.id, *model.all_names):
            by_key[name_key(name)] = model
    return by_key


def _letters_as_names(frame: pd.DataFrame) -> int:
    """Put names in the place of answers that are letters; return how many.

    The names are those of the candidates shown, or of a pair. A letter that is somebody's name
    stays one.
    """
    answers = frame["predicted_model"]
    words = set(answers.dropna().tolist()) - _writers(frame)
    letters = [word for word in words if parsing.letter(word)]
    columns = ["task_type", "true_model", "other_model", "position", "candidates"]
    asked = frame.reindex(columns=columns)
    names = {}
    for index in answers.index[answers.isin(letters)]:
        task, author, other, position, shown = asked.loc[index]
        if task in PAIRS:
            by_place = {1: [author, other], 2: [other, author]}
            shown = by_place.get(place(position) or 0)
        letter = answers[index]
        if isinstance(shown, list) and letter not in shown:
            name = parsing.at_letter(letter, shown)
            if name:
                names[index] = name
    frame.loc[[*names], "predicted_model"] = [*names.values()]
    return len(names)


def names_by_hand(frame: pd.DataFrame, authors: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return {id: further names} of what is said by hand, {name: []} of somebody else.

    Raises `InputError` for one who is nowhere.
    """
    known = _writers(frame) | set(frame["evaluator_model"].tolist())
    bearer = _bearer("`authors`", frame)
    called: dict[str, list[str]] = {}
    for name, who in authors.items():
        author = bearer(str(who or name))
        names = called.setdefault(author, [])
        if not who:
            continue
        if author not in known and name_key(author) not in _registered():
            raise InputError(
                f"`authors` says that {name!r} is {who!r}, who is no author of the records and no "
                f"model of the registry{did_you_mean(who, known)}; "
                f"the authors are {', '.join(sorted(known))}."
            )
        names.append(name)
    return called


def check_names(frame: pd.DataFrame) -> list[str]:
    """Say which answers on record name nobody in the records; refuse names that nobody knows."""
    asked = frame.reindex(columns=[*NAMES, "task_type"]).dropna(subset="predicted_model")
    named = asked["predicted_model"]
    is_outside = asked["task_type"].isin(NAMING) & ~named.isin(_writers(frame))
    outside = []
    for row in asked[is_outside].itertuples():
        names = row.candidates if isinstance(row.candidates, list) else ()
        if row.predicted_model not in names or row.true_model not in names:
            outside.append(row.predicted_model)
    is_pair = asked["task_type"].isin(PAIRS)
    is_neither = named.ne(asked["true_model"]) & named.ne(asked["other_model"])
    neither = named[is_pair & is_neither].tolist()
    _refuse_unknown(frame, [*outside, *neither])
    sentences = []
    if outside:
        what = "nobody in the records count as somebody else"
        sentences.append(f"Answers that name {what}: {_times(outside)}.")
    if neither:
        what = "neither author of their pair count as no answer"
        sentences.append(f"Answers that name {what}: {_times(neither)}.")
    return sentences


def _refuse_unknown(frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Raise `InputError` where answers have names that nobody knows."""
    said = [*frame.attrs.get("called", ()), *frame.attrs.get("nobody", ())]
    known = {*_registered(), *map(name_key, [*said, *_writers(frame)])}
    names = [name for name in names if name_key(name) not in known]
    if not names:
        return
    authors = ", ".join(sorted(_writers(frame)))
    raise InputError(
        f"Answers name {_times(names)}, whom neither the records (authors {authors}) nor the "
        f"registry know; {_how_to_say(frame, names)} Letters are places where `candidates` lists "
        "who was shown."
    )


def _how_to_say(frame: pd.DataFrame, names: Iterable[str]) -> str:
    """Say how `authors` tells who the most frequent of some names is.

    Perhaps it is the author whose id is most like it.
    """
    [(name, _)] = Counter(names).most_common(1)
    [likely] = difflib.get_close_matches(name, sorted(_writers(frame)), 1, 0)
    return (
        f"say who that is: authors={{{name!r}: {likely!r}}} for one of the authors, "
        f"authors={{{name!r}: None}} for somebody else, "
        f"authors={{{name!r}: 'no answer'}} for no answer."
    )


def unread(frame: pd.DataFrame, on_record: pd.Series) -> list[str]:
    """Say which names stand in replies that were read as no answer to who wrote a text.

    Counted are names in a position of authorship, and whole replies. One that is the whole reply
    again and again is an error where nothing says who was shown, and the evaluator has no answers
    on record.
    """
    is_naming = frame["task_type"].isin(NAMING)
    is_unread = is_naming & frame["predicted_model"].isna() & frame["reply"].notna()
    columns = ["task_type", "evaluator_model", "reply", "position", "candidates"]
    rows = frame.reindex(columns=columns)[is_unread]
    replies = rows["reply"].astype(object)
    for index in rows.index[rows["task_type"].isin(LINEUPS)]:
        replies[index] = parsing.lineup_entry(replies[index], rows["position"][index])
    alone = replies.map(cache(parsing.bare_name)).dropna()
    with_answers = frame["evaluator_model"][is_naming & on_record]
    is_told = rows["candidates"].notna() | rows["evaluator_model"].isin(with_answers)
    untold = alone[~is_told[alone.index]]
    _refuse_unknown(frame, untold[untold.groupby(untold).transform("size") >= REPEATED])
    is_capital = alone.map(lambda name: len(name) > 1 and name[0].isupper())
    alone = alone[is_capital | ~is_told[alone.index]]
    credited = replies.drop(alone.index).map(cache(parsing.credited_name)).dropna()
    names = [*alone]
    if len(credited):
        known = {*_owners(frame), *map(name_key, frame.attrs.get("called", ()))}
        names += [name for name in credited if name_key(name) not in known]
    nobody = set(map(name_key, frame.attrs.get("nobody", ())))
    names = [name for name in names if name_key(name) not in nobody]
    if not names:
        return []
    return [f"Replies without an answer name {_times(names)}; {_how_to_say(frame, names)}"]


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
