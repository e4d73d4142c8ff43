"""Read prediction records, ours and those made elsewhere: one table, one form of every value, one name per author."""

import difflib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from selfeval.condition import OBJECT, condition_of, conditions, mapped, names_author, plain_yaml
from selfeval.errors import InputError, check_name, check_one_of, did_you_mean
from selfeval.providers.models import Model, display_names, models, stripped
from selfeval.reading import parsing
from selfeval.reading.parsing import name_key, place
from selfeval.records import tables as record_files
from selfeval.records.tables import PREDICTION_FIELDS
from selfeval.records.texts import is_text, one_spelling, prompt_id_of

PLAIN = {
    *PREDICTION_FIELDS,
    "text_full",
    "prompt_id",
    "sample",
    "score",
    "position",
    "other_model",
    "other_text_id",
}
FIELDS = (  # of question and answer
    *PREDICTION_FIELDS,
    "text_full",
    "prompt_id",
    "sample",
    "candidates",
    "other_text_id",
    "other_model",
    "position",
    "repeat",
    "reply",
    "returned_text",
    "status",
    "score",
    "condition",
    "first",
    "second",
    "chosen",
)
FOR_ALL = (
    "task_type",
    "evaluator_model",
    "true_model",
    "repeat",
)  # what may be said of a whole file
HEADINGS = {  # field: what others call it
    "evaluator_model": ("evaluator", "judge", "rater", "model"),
    "true_model": ("author", "true_author", "writer"),
    "prompt_used": ("prompt", "question"),
}
ANSWERS = (
    "answer",
    "response",
    "predicted",
    "prediction",
    "guess",
)  # what others call what was answered
NEEDED = (  # of each one at least
    ("text_id",),
    ("true_model",),
    ("evaluator_model",),
    ("task_type",),
    ("prompt_used", "prompt_id"),
    ("reply", "predicted_model", "predicted_self", "score"),
)
SENT = (
    "messages",
    "evaluation_prompt",
    "adapted",
)  # most of a file, and nothing that statistics need
TASKS = ("exact_model", "binary_self", "pairwise_self", "lineup")
NAMES = ("true_model", "evaluator_model", "other_model", "predicted_model", "candidates")
NAMED = NAMES[:-1]  # by one name
PLACED = (
    "first",
    "second",
)  # the authors of a pair's texts as they were shown, where `chosen` says which was chosen
SPELLED = (
    "true_model",
    "other_model",
    *PLACED,
    "evaluator_model",
)  # two spellings of a name in these are one
IDS = (
    "task_type",
    "text_id",
    "other_text_id",
    "prompt_id",
    "prompt_used",
)  # blanks around these are none
NO_ANSWER = "no answer"  # what `authors` says of words such as "unknown"
ONLY_NAME = re.compile(
    r"""^\[\s*(["'])([^"']+)\1\s*\]$"""
)  # in the text of a list of one, as tables have it
HINTED = "_with_hints"  # in the name of a published file whose questions had the hint
REPEATED = 3  # times that a reply names nobody, where it may be a slip
NULLS = dict.fromkeys(("", "none", "null", "nan", "n/a"))
TRUTH = parsing.CODES | {"yes": True, "no": False} | NULLS
WHERE = "`columns`, {theirs: ours}, renames fields, {path: {field: value}} adds one; data/README.md explains them."


def read_predictions(
    source: record_files.Rows | Mapping | Sequence[str | Path | Mapping],
    columns: Mapping[str, str | Sequence[str]] | None = None,
    authors: Mapping[str, str | None] | None = None,
) -> pd.DataFrame:
    """Return the prediction records of files and folders (`predictions_*.jsonl` below them) as one table.

    source: paths, and mappings {path: {name: value}} that say of a whole file what it does not:
    parts of the condition (`hints: true`, which a name with `_with_hints` says too), `task_type`,
    `evaluator_model`, `true_model` or `repeat`.

    columns: {their name of a field: ours, or a list of ours}. Without `text_id`, prompt, author and
    `sample` tell a text; without `task_type`, records that all have an `other_model` are of pairs.
    Pairs may have `first` and `second`, the authors of the texts as they were shown, and `chosen`,
    which of them.

    authors: {name in the records: author, None for somebody else, or "no answer" for what is no
    answer, such as "unknown"}; a name that nobody bears is an error without. Two spellings of an
    author or evaluator that differ in case, blanks, width or the form of accents are one name.

    What was sent (SENT) is left out, unless `columns` names it: statistics do not need it, and of
    200,000 records it takes 460 MB beside the 140 of all else; `read_jsonl` has it. The published
    `returned_text` is a reply, and `returned_reasoning` is reasoning.

    A file that is named twice counts once, and so does a record that repeats another in question
    and answer (a resumed run). Two different answers to the same question under the same condition
    are an error of the statistics, since two designs would be mixed. `attrs["notes"]` has a
    sentence for what was left out or taken for something else, and `attrs["called"]`
    {id: further names in replies}.
    """
    names, authors = _fields_by_heading(columns or {}), authors or {}
    if not isinstance(authors, Mapping):
        raise InputError(
            f"`authors` must be of the form {{'ChatGPT': 'GPT', 'Bard': None}}, got {authors!r:.80}."
        )
    unused, unseen, notes, frames, files = {*names}, {*authors}, [], [], []
    spellings: dict[str, str] = {}
    nobody = [name for name, who in authors.items() if who == NO_ANSWER]
    authors = {name: who for name, who in authors.items() if who != NO_ANSWER}
    for file, rows, given in _sources(source):
        found = _table(file, rows, names)
        unused -= {*found}
        frame = _with_our_names(file, found, names)
        frame = _by_other_headings(file, frame, nobody)
        unseen -= _names_in(frame, unseen)
        _strip_ids(frame)
        notes += _one_spelling(file, frame, spellings)
        frame, told = _by_place(file, frame, given, authors, nobody)
        notes += told + _take_for_a_task(file, frame, given)
        frame = _fill_in(file, frame, given)
        _take_for_no_answer(frame, nobody)
        _read_replies(file, frame)
        _check_values(file, frame)
        unseen -= _names_in(frame, unseen)
        notes += _by_id(file, frame, authors) + _asked_by_name(file, frame)
        frames.append(frame)
        files.append(f"{file.parent.name}/{file.name}" if isinstance(file, Path) else str(file))
    if unused:
        raise InputError(
            f"`columns` names {sorted(unused)[0]!r}, a field that no file of `predictions` has."
        )
    origin = np.repeat(files, [len(part) for part in frames])
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    notes += _several_corpora(frame, origin)
    again = _repeats(frame)
    if len(again):
        frame = frame.drop(index=again).reset_index(drop=True)
        notes.append(
            f"{len(again)} records repeat others in question and answer, as after a resumed run, and count once."
        )
    notes += [
        f"`authors` names {name!r}, which is in no record." for name in sorted(unseen, key=str)
    ]
    frame.attrs["called"] = _names_by_hand(frame, authors) if authors else {}
    frame.attrs["nobody"] = nobody
    frame.attrs["notes"] = notes + _nearly_alike(frame) + _check_names(frame)
    return frame


def _several_corpora(frame: pd.DataFrame, origin: np.ndarray) -> list[str]:
    """Return a sentence where records are about several texts of one author on one prompt, and count as one condition.

    An author writes one text on a prompt and `sample`. Where there are two, these are texts of two
    corpora, such as of two temperatures, and no field of the answers tells them apart. origin: how
    the file of each row is called.
    """
    told = ["task_type", "evaluator_model", "true_model", "prompt_id", "sample"]
    if not {*told, "text_id"} <= {*frame} or frame[told].isna().all().any():
        return []
    rows = frame[[*told, "text_id"]].assign(origin=origin, condition=conditions(frame).astype(str))
    rows = rows.dropna().drop_duplicates()
    same = rows.groupby([*told, "condition"])["text_id"]
    pooled = rows[same.transform("nunique") > 1]
    if pooled.empty:
        return []
    count = pooled["text_id"].nunique()
    return [
        f"{', '.join(pooled['origin'].unique())}: {count} texts are different ones of the same authors on the same "
        "prompts, as of two temperatures, and are measured as one condition. To tell them apart, say in `predictions` "
        "how the texts of a file differ, as {path: {text_temperature: 1.0}}, or measure each corpus alone."
    ]


def _fields_by_heading(columns) -> dict[str, Sequence[str]]:
    """Return {their name of a field: our names}; raise for a field that we do not have."""
    if not isinstance(columns, Mapping):
        raise InputError(f"`columns` must be a mapping {{theirs: ours}}, got {columns!r:.80}.")
    names = {
        str(theirs): [ours] if isinstance(ours, str) else ours for theirs, ours in columns.items()
    }
    for ours in names.values():
        for field in ours if isinstance(ours, list | tuple) and ours else [ours]:
            check_one_of("columns", field, FIELDS)
    return names


def _sources(source) -> Iterator[tuple[str | Path, Iterable[dict] | pd.DataFrame, Mapping]]:
    """Yield what is read as one: how errors call it, its rows, and what is said of all of it."""
    if isinstance(source, Mapping) and record_files.are_columns(source):
        source = pd.DataFrame(source)
    first = (
        next(iter(source), None)
        if isinstance(source, Sequence) and not record_files.is_file(source)
        else None
    )
    if isinstance(source, pd.DataFrame) or (
        isinstance(first, Mapping) and len(first) > 1
    ):  # not {path: {...}}
        yield "The frame of predictions", record_files.rows_of(source) if first else source, {}
        return
    for file, given in _files(source).items():
        yield file, record_files.file_rows(file), given


def _files(source) -> dict[Path, Mapping]:
    """Return {file: what is said of it}."""
    parts = (
        [source]
        if isinstance(source, str | Path | Mapping) or not isinstance(source, Iterable)
        else source
    )
    files: dict[Path, Mapping] = {}
    for name, given in [
        pair
        for part in parts
        for pair in (part if isinstance(part, Mapping) else {part: {}}).items()
    ]:
        if not isinstance(given, Mapping | None):
            raise InputError(
                f"`predictions` must say of {str(name)!r} a mapping such as hints: true, got {given!r:.80}."
            )
        for file in record_files.files_of("predictions", name):
            by_name = {"hints": True} if HINTED in file.name else {}
            files[file] = by_name | (given or {})
    if not files:
        raise InputError("`predictions` names no file and no folder.")
    return files


def _table(
    path: str | Path, rows: Iterable[dict] | pd.DataFrame, names: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return rows without SENT as a table; names: {theirs: ours}. Of a frame only lists and objects are read by row."""
    if not isinstance(rows, pd.DataFrame):
        frame = record_files.without_empty_rows(pd.DataFrame(_share_values(path, rows, names)))
        return frame.reset_index(drop=True)
    rows = record_files.without_empty_rows(rows) if rows.columns.is_unique else rows
    if not len(rows) or not rows.columns.is_unique:
        raise InputError(
            f"{path} must have records, and each column once, got {len(rows)} of {[*rows]}; mend that."
        )
    kept = rows.loc[:, [name in names or name not in SENT for name in rows]].reset_index(drop=True)
    columns = {
        _heading(name, names): record_files.with_nulls(column) for name, column in kept.items()
    }
    plain = {str, int, float, bool, type(None)}
    nested = [
        name for name, column in columns.items() if not {*map(type, column.tolist())} <= plain
    ]
    rows = (
        dict(zip(nested, row, strict=True)) for row in zip(*map(columns.get, nested), strict=True)
    )
    columns |= pd.DataFrame(_share_values(path, rows, names)).items()
    return pd.DataFrame({name: column.infer_objects() for name, column in columns.items()})


def _heading(name, names: Mapping[str, Sequence[str]]) -> str:
    """Return a heading without blanks around it, unless `columns` has it as it is."""
    return str(name) if str(name) in names else str(name).strip()


def _share_values(
    path: str | Path, rows: Iterable[dict], names: Mapping[str, Sequence[str]]
) -> Iterator[dict]:
    """Yield the rows of a file without SENT; equal texts, lists and objects are one object.

    A prediction file says the same names, prompts and settings in every row; kept once each, a
    million rows fit into memory. names: {theirs: ours}.
    """
    known: dict = {}
    for number, row in enumerate(rows, 1):
        shared = {}
        for name, value in row.items():
            if name in SENT and name not in names:
                continue
            if isinstance(value, np.ndarray | pd.Series):  # of parquet
                value = value.tolist()
            if isinstance(value, str):
                value = sys.intern(str(value))  # a frame may hold numpy's
            elif isinstance(value, list | dict):
                if not PLAIN.isdisjoint(names.get(name, [name])):
                    rule = f"`{name}` must be no list or object, got {value!r:.80}"
                    raise InputError(f"{path}, record {number}: {rule}.")
                value = known.setdefault(repr(value), value)
            shared[sys.intern(str(name))] = value
        yield shared


def _read_cells(path: str | Path, column: pd.Series, read: Callable) -> pd.Series:
    """Return a column with what its texts mean, equal ones as one object; an error says in which record."""
    made = {}
    for number, value in enumerate(column.tolist(), 1):
        if isinstance(value, str) and value not in made:
            try:
                made[value] = read(value)
            except InputError as error:
                raise InputError(f"{path}, record {number}: `{column.name}` {error}") from error
    if not made:
        return column
    values = [made[value] if isinstance(value, str) else value for value in column.tolist()]
    return pd.Series(values, column.index, object)


def _condition(cell: str):
    return condition_of(cell) if OBJECT.match(cell) else cell


# fields ---------------------------------------------------------------------------------------------------------------


def _with_our_names(
    path: str | Path, frame: pd.DataFrame, names: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return a table under our names; names: {theirs: ours}; one called `condition` is a part of it."""
    for name in frame:
        if "condition" in names.get(name, [name]):
            frame[name] = _read_cells(path, frame[name], _condition)
    ours = ({} if "reasoning" in frame else {"returned_reasoning": ["reasoning"]}) | names
    fields = [(field, name) for name in frame for field in ours.get(name, [name])]
    parts = [name for field, name in fields if field == "condition" and name in names]
    fields = [pair for pair in fields if pair[0] != "condition" or pair[1] not in parts]
    renamed = frame[[name for _, name in fields]].set_axis([field for field, _ in fields], axis=1)
    twice = renamed.columns.duplicated()
    if twice.any():
        said = f"`{renamed.columns[twice][0]}` twice: by that name and in `columns`, or twice there"
        raise InputError(f"{path} gives {said}; name one.")
    _replace_names(renamed, NAMED, lambda name: ONLY_NAME.sub(r"\2", name))
    for part in parts:
        put = mapped(
            frame[part].tolist(), lambda said, part=part: condition_of(said) or {part: said}
        )
        _add_to_condition(path, renamed, put)
    if "returned_text" in renamed:
        replies = renamed.get("reply", renamed["returned_text"]).astype(object)
        renamed["reply"] = replies.fillna(renamed["returned_text"])
    return renamed


def _add_to_condition(path: str | Path, frame: pd.DataFrame, parts: Sequence) -> None:
    """Add further parts to the condition of each record; one that a file has otherwise is an error."""
    conditions = frame["condition"].tolist() if "condition" in frame else [None] * len(frame)
    both = {
        (id(known), id(more)): (known, more) for known, more in zip(conditions, parts, strict=True)
    }
    for key, pair in both.items():
        known, more = map(condition_of, pair)
        for name in known.keys() & more:
            if str(known[name]).lower() != str(more[name]).lower():
                raise InputError(
                    f"{path} has {name} = {known[name]!r}, and `predictions` says {more[name]!r}."
                )
        both[key] = {**known, **more}
    frame["condition"] = [
        both[key] for key in zip(map(id, conditions), map(id, parts), strict=True)
    ]


def _by_other_headings(
    path: str | Path, frame: pd.DataFrame, nobody: Sequence[str] = ()
) -> pd.DataFrame:
    """Return a table in which fields that others call otherwise have our names, answers by what they are.

    nobody: words that are no answer.
    """
    lacking = {
        field for fields in NEEDED if {*fields}.isdisjoint({*frame} - {"score"}) for field in fields
    }
    asked = {*ANSWERS, "score"} & {str(name).strip().casefold() for name in frame}
    if not lacking or ("text" in frame and not asked):  # texts, which were not asked about yet
        return frame
    others = {**HEADINGS, **dict.fromkeys(sorted(lacking - {*HEADINGS}), ())}
    wanted = {field: names for field, names in others.items() if field in lacking}
    frame = frame.rename(columns=record_files.called_otherwise(path, frame, wanted))
    answers = [name for name in frame if str(name).strip().casefold() in ANSWERS]
    if "reply" not in lacking or not answers:
        return frame
    field = _field_of_answers(frame, answers[0], nobody)
    called = record_files.called_otherwise(path, frame, {field: ANSWERS})
    return frame.rename(columns=called)


def _field_of_answers(frame: pd.DataFrame, name: str, nobody: Sequence[str]) -> str:
    """Return which of our fields a column of answers is, by what stands in it."""
    answers = frame[name].dropna()
    if nobody:
        keys = answers.astype(str).map(name_key)
        answers = answers[~keys.isin([*map(name_key, nobody)])]
    if answers.astype(str).str.strip().str.lower().isin([*TRUTH]).all():
        return "predicted_self"
    if "true_model" in frame and answers.isin(frame["true_model"].unique()).all():
        return "predicted_model"
    return "reply"


def _strip_ids(frame: pd.DataFrame) -> None:
    """Take the blanks around ids, prompts and tasks away, so that "p1 " is p1."""
    for name in {*IDS} & {*frame}:
        values = frame[name].unique() if not pd.api.types.is_numeric_dtype(frame[name]) else ()
        bare = {value: stripped(value) for value in values if stripped(value) is not value}
        if bare:
            frame[name] = frame[name].map(
                lambda value, bare=bare: bare.get(value, value), na_action="ignore"
            )


def _one_spelling(path: str | Path, frame: pd.DataFrame, known: dict[str, str]) -> list[str]:
    """Put one spelling of a name in the place of all; return a sentence on each that changed.

    known: {key: the spelling that stays} of the files before, to which these are added.
    """
    counts: Counter = Counter()
    for field in (field for field in SPELLED if field in frame):
        names = frame[field].value_counts().to_dict()
        for name in names:
            check_name(field, name)
        counts.update({name: times for name, times in names.items() if isinstance(name, str)})
    changed, told = one_spelling(counts, known)
    if changed:
        _replace_names(frame, SPELLED, lambda name: changed.get(name, name))
    return [
        f"{Path(path).name}: the name {sentence}; rename one if these are two." for sentence in told
    ]


def _nearly_alike(frame: pd.DataFrame) -> list[str]:
    """Say which authors and evaluators count as two and differ in hyphens, underscores or blanks alone."""
    spelled: dict[str, list[str]] = {}
    for name in sorted({*_writers(frame), *frame["evaluator_model"].unique()}):
        spelled.setdefault(name_key(name), []).append(name)
    return [
        f"{alike[0]!r} and {alike[1]!r} count as two; if they are one, say authors={{{alike[1]!r}: {alike[0]!r}}}."
        for key, alike in spelled.items()
        if key and len(alike) > 1
    ]


# pairs by place -------------------------------------------------------------------------------------------------------


def _by_place(
    path: str | Path, frame: pd.DataFrame, given: Mapping, authors: Mapping, nobody: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return pairs of a first and a second author as pairs about the evaluator's own text.

    Of an evaluator that wrote neither it is the text of the author who comes first by name. Where
    there are such, all are read as asked which text they wrote themselves, unless a condition says
    which question it was.
    """
    if not {*PLACED, "chosen"} <= {*frame} or "true_model" in frame:
        return frame, []
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
    if not {"task_type"} & {*frame, *given}:
        frame["task_type"] = "pairwise_self"
    told = f"{Path(path).name}: `first`, `second` and `chosen` are read as pairs"
    if wrote_one.all() or _says_question(frame, given):
        return frame, [f"{told}."]
    _add_to_condition(path, frame, [{"question": "authored"}] * len(frame))
    neutral = f"{(~wrote_one).sum()} of them judged by a model that wrote neither text"
    rule = "all as asked which text they wrote, unless `condition` says question=better"
    return frame, [f"{told}, {neutral}; {rule}."]


def _name_evaluators_as_authors(frame: pd.DataFrame, said: Mapping[str, str]) -> None:
    """Name those who judged pairs as the pairs name authors; said: {key of a name: author}."""
    fields = (*PLACED, "evaluator_model")
    _replace_names(frame, fields, lambda name: said.get(name_key(name), name))
    authors = {}
    for field in PLACED:
        for name in filter(is_text, frame[field].unique()):
            authors[name_key(name)] = name
    _replace_names(frame, ["evaluator_model"], lambda name: authors.get(name_key(name), name))


def _own_pairs(
    path: str | Path, frame: pd.DataFrame, said: Mapping[str, str], no_answer: set[str]
) -> list[tuple]:
    """Return what `_own_pair` makes of each record; equal ones are read once."""
    columns = [frame[name] for name in ("evaluator_model", *PLACED, "chosen")]
    rows = [*zip(*columns, strict=True)]
    pairs = {}
    for number, row in enumerate(rows, 1):
        if row not in pairs:
            pairs[row] = _own_pair(f"{path}, record {number}", *row, said, no_answer)
    return [pairs[row] for row in rows]


def _says_question(frame: pd.DataFrame, given: Mapping) -> bool:
    """Tell whether a file, or what is said of it, says which question any pair was asked."""
    if "question" in given:
        return True
    if "condition" not in frame:
        return False
    return any("question" in condition_of(condition) for condition in frame["condition"])


def _own_pair(
    where: str, evaluator: str, first, second, chosen, said: Mapping[str, str], no_answer: set[str]
) -> tuple:
    """Return a pair's own author, the other one, the place of the own text, and whether that was chosen."""
    shown = [first, second]
    if not all(map(is_text, shown)) or first == second:
        raise InputError(
            f"{where}: `first` and `second` must be two authors, got {first!r} and {second!r}."
        )
    own = evaluator if evaluator in shown else min(shown)
    position = 1 + shown.index(own)
    at = _place_chosen(chosen, shown, said, no_answer)
    if at == 0:
        raise InputError(
            f"{where}: `chosen` is {chosen!r:.80}, and must say which text was chosen: first or second, A or B, 1 or "
            f"2, or the author {first!r} or {second!r}; authors={{{chosen!r:.80}: 'no answer'}} counts it as no answer."
        )
    return own, shown[2 - position], position, None if at is None else at == position


def _place_chosen(
    chosen, shown: Sequence[str], said: Mapping[str, str], no_answer: set[str]
) -> int | None:
    """Return which of two texts was chosen, 1 or 2; None for no answer, 0 for what is no choice."""
    if pd.isna(chosen) or not str(chosen).strip() or name_key(str(chosen)) in no_answer:
        return None
    named = said.get(name_key(str(chosen)), str(chosen))
    keys = [*map(name_key, shown)]
    if name_key(named) in keys:
        return 1 + keys.index(name_key(named))
    return place(chosen) or 0


# what is said of a whole file -----------------------------------------------------------------------------------------


def _take_for_a_task(path: str | Path, frame: pd.DataFrame, given: Mapping) -> list[str]:
    """Fill in the task of records that name none, where their fields tell it; return a sentence on it."""
    if {"task_type"} & {*frame, *given}:
        return []
    if "other_model" in frame:
        task, why = "pairwise_self", "`other_model` in every record, so these are pairs"
        if frame["other_model"].isna().any():
            return []
    elif ("predicted_self" in frame) == ("predicted_model" in frame):
        return []
    else:
        task = "binary_self" if "predicted_self" in frame else "exact_model"
        why = f"answers in `predicted_{'self' if 'predicted_self' in frame else 'model'}` alone, so the task is {task}"
    frame["task_type"] = task
    return [f"{Path(path).name}: no `task_type`, and {why}."]


def _fill_in(path: str | Path, frame: pd.DataFrame, given: Mapping) -> pd.DataFrame:
    """Return a table of prediction records with what is said of the whole file; check that all is there."""
    frame = frame.assign(
        **{name: given[name] for name in FOR_ALL if name in given and name not in frame}
    )
    _add_text_ids(path, frame)
    if more := {name: value for name, value in given.items() if name not in FOR_ALL}:
        _add_to_condition(path, frame, [more] * len(frame))
    missing = [" or ".join(fields) for fields in NEEDED if {*fields}.isdisjoint(frame)]
    if missing and {"author", "text"} <= {*frame}:
        raise InputError(
            f"{path} holds texts and no predictions; ask models with `collect_predictions` first."
        )
    if missing:
        raise InputError(
            f"{path} lacks the field{'s' * (len(missing) > 1)} {', '.join(missing)} of a prediction record: it has "
            f"{', '.join(frame)}; {_odd_headings(frame)}{_odd_answers(frame)}{WHERE}"
        )
    if "text_full" in frame and "text_preview" not in frame:
        frame["text_preview"] = [
            text[:100] if isinstance(text, str) else text for text in frame["text_full"]
        ]
    for name in (*PREDICTION_FIELDS, "reply"):
        if name not in frame and name != "true_model_display":
            frame[name] = pd.Series(None, frame.index, object)
    return frame


def _odd_headings(frame: pd.DataFrame) -> str:
    """Ask for the headings in the first line where a table without a name for its columns has another line there."""
    unnamed = [name for name in frame if name.startswith("Unnamed: ")]
    return (
        "the first line must be that of the headings, so delete what stands above; "
        if len(unnamed) > 1
        else ""
    )


def _odd_answers(frame: pd.DataFrame) -> str:
    """Say how a word is no answer, where most answers are yes or no, or authors, and a few words are neither."""
    if "reply" not in frame or "task_type" in frame:
        return ""
    said = frame["reply"].dropna().astype(str)
    usual = said.str.strip().str.lower().isin([*TRUTH]) | said.isin([*frame.get("true_model", ())])
    words = [*said[~usual].value_counts().index]
    if not words or usual.mean() < 0.5:
        return ""
    return f"if {words[0]!r} is no answer, authors={{{words[0]!r}: 'no answer'}} says so; "


def _add_text_ids(path: str | Path, frame: pd.DataFrame) -> None:
    """Give texts without an id one: a text is told by its prompt, author and sample."""
    prompt = next(
        (
            name
            for name in ("prompt_id", "prompt_used")
            if name in frame and frame[name].notna().all()
        ),
        "",
    )
    if "text_id" in frame or not prompt or not {"true_model", "evaluator_model"} <= {*frame}:
        return
    about = [
        frame[prompt].map(cache(lambda said: prompt_id_of(said) if " " in str(said) else said))
    ]
    about += [frame[name] for name in ("sample",) if name in frame]
    for name, author in (("text_id", "true_model"), ("other_text_id", "other_model")):
        if author in frame:
            frame[name] = [
                " / ".join(map(str, told)) for told in zip(frame[author], *about, strict=True)
            ]
    told = [
        "task_type",
        "evaluator_model",
        "text_id",
        "other_text_id",
        "position",
        "repeat",
        "condition",
    ]
    again = frame[[name for name in told if name in frame]].astype(str).duplicated()
    if again.any():
        index = again.idxmax()
        raise InputError(
            f"{path}, record {index + 1}: without `text_id`, a text is told by its author, prompt "
            f"and `sample`, and this evaluator was asked about {frame['text_id'][index]!r:.80} "
            "before; say in `sample` or `text_id` which text it is, or in `repeat` which asking."
        )


# values ---------------------------------------------------------------------------------------------------------------


def _read_replies(path: str | Path, frame: pd.DataFrame) -> None:
    """Put texts in the place of replies that are answers without words; raise `InputError` for what is no reply.

    In yes/no tasks true, false, 1 and 0 are YES and NO, in pairs 1 and 2 the places; an object has
    to be the JSON of an answer or a block of text, a list of such.
    """
    replies = record_files.with_nulls(frame["reply"]).tolist()
    for at in [
        at for at, value in enumerate(replies) if not (value is None or isinstance(value, str))
    ]:
        value, task = replies[at], frame["task_type"][at]
        if task == "binary_self" and value in (True, False):
            replies[at] = "YES" if value else "NO"
        elif task in PAIRS and not isinstance(value, bool) and value in (1, 2):
            replies[at] = str(int(value))
        elif isinstance(value, dict) and parsing.is_answer(value):
            replies[at] = json.dumps(value, ensure_ascii=False)
        elif not _is_block(value):
            raise InputError(
                f"{path}, record {at + 1}: `reply` is {value!r:.80}, and must be the words of a reply (in "
                "yes/no tasks also true or false); give these, or the answer in `predicted_model` or `predicted_self`."
            )
    frame["reply"] = pd.Series(replies, frame.index, object)


def _take_for_no_answer(frame: pd.DataFrame, nobody: Sequence[str]) -> None:
    """Put null in the place of answers on record that are none, such as "unknown", as `authors` says."""
    words = {*map(name_key, nobody)}
    for name in ("predicted_model", "predicted_self") if words else ():
        values = [
            None if isinstance(value, str) and name_key(value) in words else value
            for value in frame[name]
        ]
        frame[name] = pd.Series(values, frame.index, object)


def _is_block(value) -> bool:
    """Tell whether a value is a block of text of a reply, or a list of them."""
    if isinstance(value, list):
        return all(isinstance(part, str) or _is_block(part) for part in value)
    return isinstance(value, dict) and not {"type", "text", "content"}.isdisjoint(value)


def _as_list(value: str):
    """Return the names of a CSV as a list: "['a', 'b']" or "a;b"."""
    return (
        plain_yaml(value)
        if value.lstrip().startswith("[")
        else re.split(r"\s*[;,|]\s*", value.strip())
    )


def _is_share(value) -> bool:
    return 0 <= pd.to_numeric(value, errors="coerce") <= 1


def _is_name(value) -> bool:
    return is_text(value) and not re.match(r"\[\s*['\"]", value)  # a list of several


READ = {  # field: how a text in it is read
    **dict.fromkeys(
        ("predicted_model", "score"), lambda value: NULLS.get(value.strip().lower(), value)
    ),
    "predicted_self": lambda value: TRUTH.get(value.strip().lower(), value),
    "position": lambda value: place(value) or value,
    "candidates": _as_list,
}
IN_LINEUP = partial(place, most=999)
NAMING, CLAIMING, PAIRS = (
    ("exact_model", "lineup"),
    ("binary_self", "pairwise_self"),
    ("pairwise_self",),
)
RULES = (  # field, tasks, what must hold of a value, in words
    ("task_type", (), TASKS.__contains__, f"must be one of {', '.join(TASKS)}"),
    ("text_id", TASKS, lambda value: not pd.isna(value), "must say which text was judged"),
    ("true_model", TASKS, _is_name, "must be a non-empty text, one name"),
    ("evaluator_model", TASKS, _is_name, "must be a non-empty text, one name"),
    ("predicted_model", NAMING, is_text, "must be a text or null"),
    (
        "predicted_self",
        CLAIMING,
        {True, False}.__contains__,
        "must be true, false or null (`reply` takes a YES or A)",
    ),
    ("score", TASKS, _is_share, "must be a number from 0 to 1, P(the text is its own), or null"),
    ("other_model", PAIRS, is_text, "must name the author of the pair's other text"),
    (
        "position",
        PAIRS,
        place,
        "must say where the pair's own text stood, as 1 or 2, A or B, first or second",
    ),
    (
        "position",
        ("lineup",),
        IN_LINEUP,
        "must be the text's place in the lineup, from 1, or a letter from A",
    ),
)
NULLABLE = (
    "predicted_model",
    "predicted_self",
    "score",
    "position",
)  # the last only where there is no reply to read


def _check_values(path: str | Path, frame: pd.DataFrame) -> None:
    """Put one form of a value in the place of others; raise `InputError` for a wrong value."""
    for name, read in READ.items():
        if name in frame:
            frame[name] = _read_cells(path, frame[name], read)
    for name, tasks, is_right, rule in RULES:
        rows = _rows_to_check(frame, name, tasks)
        if name in frame:
            _check_column(path, frame[name][rows], is_right, rule)
        elif rows.any():
            raise InputError(f"{path} lacks the field {name}: it {rule}; {WHERE}")
    _check_other_author(path, frame)


def _rows_to_check(frame: pd.DataFrame, name: str, tasks: Sequence[str]) -> pd.Series:
    """Tell of each record whether a rule on a field holds for it; tasks: of the rule, none for all."""
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
    """Raise `InputError` for the first value that a rule forbids: record, value, rule and remedy."""
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


def _asked_by_name(path: str | Path, frame: pd.DataFrame) -> list[str]:
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


def _repeats(frame: pd.DataFrame) -> pd.Index:
    """Return which records repeat an earlier one in question and answer, as after a resumed run."""
    fields = [name for name in FIELDS if name in frame and name != "is_correct"]
    alike = frame.loc[
        frame.duplicated([name for name in fields if name in PLAIN], keep=False), fields
    ]
    nested = {
        name: alike[name].map(repr, na_action="ignore") for name in fields if name not in PLAIN
    }
    return alike.index[alike.assign(**nested).duplicated()]


# names ----------------------------------------------------------------------------------------------------------------


def _by_id(path: str | Path, frame: pd.DataFrame, authors: Mapping[str, str | None]) -> list[str]:
    """Put the ids of authors in the place of their other names; say what was taken for whom.

    A file may name evaluators, answers and candidates by the label or the registry's name of an
    author. Authors keep the names that `true_model` gives them, or `authors`. A name of two authors
    is an error.
    """
    if authors:
        bearer = _bearer(path, frame)
        said = {name_key(name): bearer(who or name) for name, who in authors.items()}
        _replace_names(frame, NAMES, lambda name: said.get(name_key(name), name))
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
    _replace_names(frame, ("predicted_model", "candidates"), bearer)
    _fill_in_labels(frame)
    if lettered := _letters_as_names(frame):
        told.append(f"{Path(path).name}: {lettered} answers are letters, read as places.")
    return told


def _fill_in_labels(frame: pd.DataFrame) -> None:
    """Give authors that the file does not label the registry's label, or their id."""
    authors = frame["true_model"].unique()
    labels = dict(zip(authors, authors, strict=True)) | display_names(authors)
    shown = frame["true_model"].map(labels)
    frame["true_model_display"] = frame.get("true_model_display", shown).fillna(shown)


def _names_in(frame: pd.DataFrame, names: set[str]) -> set[str]:
    """Return those of the names that stand in a field or in a reply, however they are typed."""
    wanted = [*NAMES, *PLACED, "chosen", "predicted_self", "true_model_display", "reply"]
    fields = frame.reindex(columns=wanted) if names else ()
    words = {
        name_key(value)
        for field in fields
        for value in fields[field].explode().dropna().astype(str).unique()
    }
    text = "\n".join(words)
    return {name for name in names if name_key(str(name)) in text}


def _replace_names(frame: pd.DataFrame, fields: Iterable[str], of: Callable[[str], str]) -> None:
    """Put other names in the place of those in some fields, equal names looked up once."""
    of = cache(of)

    def replaced(value):
        if isinstance(value, list):
            return [*map(replaced, value)]
        return of(value) if isinstance(value, str) else value  # what is missing stays

    for field in {*fields} & {*frame}:
        frame[field] = mapped(frame[field].tolist(), replaced)


def _bearer(path: str | Path, frame: pd.DataFrame) -> Callable[[str], str]:
    """Return what makes of a name the one author that bears it, or leaves it; a name of two is an error."""
    owners, exact = _owners(frame), _writers(frame)

    def bearer(name: str) -> str:
        author = name if name in exact else owners.get(name_key(name), name)
        if author is None:
            raise InputError(
                f"{path} gives two authors the label {name!r}, which is an answer; give answers by id."
            )
        return author

    return bearer


def _writers(frame: pd.DataFrame) -> set[str]:
    return {
        *frame["true_model"].tolist(),
        *frame.get("other_model", frame["true_model"]).dropna().tolist(),
    }


def _owners(frame: pd.DataFrame) -> dict[str, str | None]:
    """Return {a name's key: the author that bears it, None where two do}: ids, labels of the file, the registry's."""
    registered, label_of = _registered(), file_labels(frame)
    owners: dict[str, str | None] = {}
    for author in _writers(frame):
        model = models().get(author) or registered.get(name_key(author))
        listed = (model.id, *model.all_names) if model else ()
        for key in map(
            name_key, (author, author.rpartition("/")[2], *label_of.get(author, ()), *listed)
        ):
            owners[key] = author if owners.get(key, author) == author else None
    return owners


def _registered() -> dict[str, Model]:
    return {
        name_key(name): model
        for model in models().values()
        for name in (model.id, *model.all_names)
    }


def _letters_as_names(frame: pd.DataFrame) -> int:
    """Put names in the place of answers that are letters: of the candidates shown, or of a pair; return how many.

    A letter that is somebody's name stays one.
    """
    found, said = {}, frame["predicted_model"]
    asked = frame.reindex(
        columns=["task_type", "true_model", "other_model", "position", "candidates"]
    )
    letters = [*filter(parsing.letter, {*said.dropna().tolist()} - _writers(frame))]
    for at in said.index[said.isin(letters)]:
        task, true, other, position, shown = asked.loc[at]
        if task in PAIRS:
            shown = {1: [true, other], 2: [other, true]}.get(place(position))
        if (
            isinstance(shown, list)
            and said[at] not in shown
            and (name := parsing.at_letter(said[at], shown))
        ):
            found[at] = name
    frame.loc[[*found], "predicted_model"] = [*found.values()]
    return len(found)


def _names_by_hand(frame: pd.DataFrame, authors: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return {id: further names} of what is said by hand, {name: []} of somebody else; raise for one who is nowhere."""
    bearers, called = {*_writers(frame), *frame["evaluator_model"].tolist()}, {}
    bearer = _bearer("`authors`", frame)
    for name, who in authors.items():
        found = bearer(str(who or name))
        if who and found not in bearers and name_key(found) not in _registered():
            raise InputError(
                f"`authors` says that {name!r} is {who!r}, who is no author of the records and no model of the "
                f"registry{did_you_mean(who, bearers)}; the authors are {', '.join(sorted(bearers))}."
            )
        called.setdefault(found, []).extend([name] * bool(who))
    return called


def _check_names(frame: pd.DataFrame) -> list[str]:
    """Say which answers on record name nobody in the records; raise `InputError` for names that nobody knows."""
    asked = frame.reindex(columns=[*NAMES, "task_type"]).dropna(subset="predicted_model")
    pairs, named = asked["task_type"].isin(PAIRS), asked["predicted_model"]
    outside = asked[asked["task_type"].isin(NAMING) & ~named.isin(_writers(frame))]
    both = zip(
        outside["predicted_model"], outside["true_model"], outside["candidates"], strict=True
    )
    unlisted = [
        not (isinstance(names, list) and {name, true} <= {*names}) for name, true, names in both
    ]
    outside = outside.loc[unlisted, "predicted_model"]
    neither = named[pairs & named.ne(asked["true_model"]) & named.ne(asked["other_model"])]
    _refuse_unknown(frame, [*outside, *neither])
    told = {"nobody in the records count as somebody else": outside}
    told |= {"neither author of their pair count as no answer": neither}
    return [
        f"Answers that name {what}: {_times(names)}." for what, names in told.items() if len(names)
    ]


def _refuse_unknown(frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Raise `InputError` where answers have names that nobody knows."""
    said = [*frame.attrs.get("called", ()), *frame.attrs.get("nobody", ())]
    known = {*_registered(), *map(name_key, [*said, *_writers(frame)])}
    names = [name for name in names if name_key(name) not in known]
    if not names:
        return
    raise InputError(
        f"Answers name {_times(names)}, whom neither the records (authors {', '.join(sorted(_writers(frame)))}) nor "
        f"the registry know; {_how_to_say(frame, names)} Letters are places where `candidates` lists who was shown."
    )


def _how_to_say(frame: pd.DataFrame, names: Iterable[str]) -> str:
    """Say how `authors` tells who the most frequent of some names is: perhaps the author whose id is most like it."""
    [(first, _)] = Counter(names).most_common(1)
    likely = difflib.get_close_matches(first, sorted(_writers(frame)), 1, 0)[0]
    return (
        f"say who that is: authors={{{first!r}: {likely!r}}} for one of the authors, "
        f"authors={{{first!r}: None}} for somebody else, authors={{{first!r}: 'no answer'}} for no answer."
    )


def unread(frame: pd.DataFrame, on_record: pd.Series) -> list[str]:
    """Say which names stand in replies that were read as no answer to who wrote a text.

    Counted are names in a position of authorship, and whole replies. One that is the whole reply
    again and again is an error where nothing says who was shown, and the evaluator has no answers
    on record.
    """
    naming = frame["task_type"].isin(NAMING)
    rows = naming & frame["predicted_model"].isna() & frame["reply"].notna()
    lacking = frame.reindex(
        columns=["task_type", "evaluator_model", "reply", "position", "candidates"]
    )[rows]
    replies = lacking["reply"].astype(object)
    for at in lacking.index[lacking["task_type"] == "lineup"]:
        replies[at] = parsing.lineup_entry(replies[at], lacking["position"][at])
    alone = replies.map(cache(parsing.bare_name)).dropna()
    known = lacking["candidates"].notna() | lacking["evaluator_model"].isin(
        frame["evaluator_model"][naming & on_record]
    )
    unheard = alone[~known[alone.index]]
    _refuse_unknown(frame, unheard[unheard.groupby(unheard).transform("size") >= REPEATED])
    alone = alone[alone.map(lambda name: len(name) > 1 and name[0].isupper()) | ~known[alone.index]]
    named = replies.drop(alone.index).map(cache(parsing.credited_name)).dropna()
    nobody = {*map(name_key, frame.attrs.get("nobody", ()))}
    heard = {*_owners(frame), *map(name_key, frame.attrs.get("called", ()))} if len(named) else ()
    names = [*alone, *(name for name in named if name_key(name) not in heard)]
    names = [name for name in names if name_key(name) not in nobody]
    return (
        [f"Replies without an answer name {_times(names)}; {_how_to_say(frame, names)}"]
        if names
        else []
    )


def _times(names: Iterable[str] | Mapping[str, int]) -> str:
    counts = Counter(names)
    shown = [f"{name!r} ({n} time{'s' * (n != 1)})" for name, n in counts.most_common(9)]
    return ", ".join(shown) + f" and {len(counts) - 9} more" * (len(counts) > 9)


def file_labels(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return {author: its labels in the file}."""
    named = frame.reindex(columns=["true_model", "true_model_display"]).drop_duplicates()
    named = named[named["true_model_display"].map(is_text)]
    return (
        named.groupby("true_model")["true_model_display"]
        .agg(lambda found: [*found.unique()])
        .to_dict()
    )
