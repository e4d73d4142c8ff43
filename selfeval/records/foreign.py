"""Read prediction records, ours and those made elsewhere.

They become one table with one form of every value and one name per author.
"""

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
from selfeval.records.tasks import CLAIMS, LINEUPS, NAMING, PAIRS, TASKS
from selfeval.records.texts import is_text, one_spelling, prompt_id_of

# fields that hold no lists and no objects
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
# fields of question and answer
FIELDS = (
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
# what may be said of a whole file
FOR_ALL = ("task_type", "evaluator_model", "true_model", "repeat")
# {field: what others call it}
HEADINGS = {
    "evaluator_model": ("evaluator", "judge", "rater", "model"),
    "true_model": ("author", "true_author", "writer"),
    "prompt_used": ("prompt", "question"),
}
# what others call what was answered
ANSWERS = ("answer", "response", "predicted", "prediction", "guess")
# of each of these, one at least
NEEDED = (
    ("text_id",),
    ("true_model",),
    ("evaluator_model",),
    ("task_type",),
    ("prompt_used", "prompt_id"),
    ("reply", "predicted_model", "predicted_self", "score"),
)
# most of a file, and nothing that statistics need
SENT = ("messages", "evaluation_prompt", "adapted")
NAMES = ("true_model", "evaluator_model", "other_model", "predicted_model", "candidates")
# those with one name
NAMED = NAMES[:-1]
# the authors of a pair's texts as they were shown, where `chosen` says which was chosen
PLACED = ("first", "second")
# two spellings of a name in these are one
SPELLED = ("true_model", "other_model", *PLACED, "evaluator_model")
# blanks around these are none
IDS = ("task_type", "text_id", "other_text_id", "prompt_id", "prompt_used")
# what tells one question to an evaluator from another
QUESTION = (
    "task_type",
    "evaluator_model",
    "text_id",
    "other_text_id",
    "position",
    "repeat",
    "condition",
)
# what `authors` says of words such as "unknown"
NO_ANSWER = "no answer"
# in the text of a list of one, as tables have it
ONLY_NAME = re.compile(r"""^\[\s*(["'])([^"']+)\1\s*\]$""")
# in the name of a published file whose questions had the hint
HINTED = "_with_hints"
# times that a reply names nobody, where it may be a slip
REPEATED = 3
NULLS = dict.fromkeys(("", "none", "null", "nan", "n/a"))
TRUTH = parsing.CODES | {"yes": True, "no": False} | NULLS
WHERE = (
    "`columns`, {theirs: ours}, renames fields, {path: {field: value}} adds one; "
    "data/README.md explains them."
)


def read_predictions(
    source: record_files.Rows | Mapping | Sequence[str | Path | Mapping],
    columns: Mapping[str, str | Sequence[str]] | None = None,
    authors: Mapping[str, str | None] | None = None,
) -> pd.DataFrame:
    """Return the prediction records of files and folders as one table.

    Of folders, those of `predictions_*.jsonl` below them.

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
    headings = _fields_by_heading(columns or {})
    authors, nobody = _said_of_names(authors or {})
    unused = set(headings)
    unseen = {*authors, *nobody}
    frames: list[pd.DataFrame] = []
    files: list[str] = []
    notes: list[str] = []
    spellings: dict[str, str] = {}
    for file, rows, said in _sources(source):
        table = _table(file, rows, headings)
        unused -= set(table)
        frame = _with_our_names(file, table, headings)
        frame = _by_other_headings(file, frame, nobody)
        unseen -= _names_in(frame, unseen)
        _strip_ids(frame)
        notes += _one_spelling(file, frame, spellings)
        frame = _by_place(file, frame, said, authors, nobody, notes)
        notes += _take_for_a_task(file, frame, said)
        frame = _fill_in(file, frame, said)
        _take_for_no_answer(frame, nobody)
        _read_replies(file, frame)
        _check_values(file, frame)
        unseen -= _names_in(frame, unseen)
        notes += _by_id(file, frame, authors)
        notes += _asked_by_name(file, frame)
        frames.append(frame)
        files.append(f"{file.parent.name}/{file.name}" if isinstance(file, Path) else str(file))
    if unused:
        name = min(unused)
        raise InputError(f"`columns` names {name!r}, a field that no file of `predictions` has.")
    frame, told = _in_one(frames, files)
    notes += told
    for name in sorted(unseen, key=str):
        notes.append(f"`authors` names {name!r}, which is in no record.")
    frame.attrs["called"] = _names_by_hand(frame, authors) if authors else {}
    frame.attrs["nobody"] = nobody
    frame.attrs["notes"] = notes + _nearly_alike(frame) + _check_names(frame)
    return frame


def _said_of_names(authors) -> tuple[dict[str, str | None], list[str]]:
    """Return who is who, and the words that are no answer, of what `authors` says."""
    if not isinstance(authors, Mapping):
        form = "{'ChatGPT': 'GPT', 'Bard': None}"
        raise InputError(f"`authors` must be of the form {form}, got {authors!r:.80}.")
    nobody = [name for name, who in authors.items() if who == NO_ANSWER]
    return {name: who for name, who in authors.items() if who != NO_ANSWER}, nobody


def _in_one(frames: list[pd.DataFrame], files: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the records of all files without repeats, and sentences on what was pooled."""
    origin = np.repeat(files, [len(frame) for frame in frames])
    frame = frames[0]
    if len(frames) > 1:
        frame = pd.concat(frames, ignore_index=True)
    notes = _several_corpora(frame, origin)
    again = _repeats(frame)
    if len(again):
        frame = frame.drop(index=again).reset_index(drop=True)
        what = "repeat others in question and answer, as after a resumed run"
        notes.append(f"{len(again)} records {what}, and count once.")
    return frame, notes


def _several_corpora(frame: pd.DataFrame, origin: np.ndarray) -> list[str]:
    """Return a sentence where several texts of one author on one prompt count as one condition.

    An author writes one text on a prompt and `sample`. Where there are two, these are texts of two
    corpora, such as of two temperatures, and no field of the answers tells them apart. origin: how
    the file of each row is called.
    """
    telling = ["task_type", "evaluator_model", "true_model", "prompt_id", "sample"]
    if not set(frame) >= {*telling, "text_id"} or frame[telling].isna().all().any():
        return []
    rows = frame[[*telling, "text_id"]]
    rows = rows.assign(origin=origin, condition=conditions(frame).astype(str))
    rows = rows.dropna().drop_duplicates()
    texts = rows.groupby([*telling, "condition"])["text_id"]
    pooled = rows[texts.transform("nunique") > 1]
    if pooled.empty:
        return []
    files = ", ".join(pooled["origin"].unique())
    return [
        f"{files}: {pooled['text_id'].nunique()} texts are different ones of the same authors on "
        "the same prompts, as of two temperatures, and are measured as one condition. To tell them "
        "apart, say in `predictions` how the texts of a file differ, as {path: {text_temperature: "
        "1.0}}, or measure each corpus alone."
    ]


def _fields_by_heading(columns) -> dict[str, Sequence[str]]:
    """Return {their name of a field: our names}; raise for a field that we do not have."""
    if not isinstance(columns, Mapping):
        raise InputError(f"`columns` must be a mapping {{theirs: ours}}, got {columns!r:.80}.")
    fields_of = {}
    for theirs, ours in columns.items():
        fields = [ours] if isinstance(ours, str) else ours
        are_several = isinstance(fields, list | tuple) and len(fields) > 0
        for field in fields if are_several else [fields]:
            check_one_of("columns", field, FIELDS)
        fields_of[str(theirs)] = fields
    return fields_of


def _sources(source) -> Iterator[tuple[str | Path, Iterable[dict] | pd.DataFrame, Mapping]]:
    """Yield what is read as one: how errors call it, its rows, and what is said of all of it."""
    if isinstance(source, Mapping) and record_files.are_columns(source):
        source = pd.DataFrame(source)
    if isinstance(source, pd.DataFrame):
        yield "The frame of predictions", source, {}
        return
    if isinstance(source, Sequence) and not record_files.is_file(source):
        first = next(iter(source), None)
        if isinstance(first, Mapping) and len(first) > 1:  # a row, and not {path: {...}}
            yield "The frame of predictions", record_files.rows_of(source), {}
            return
    for file, said in _files(source).items():
        yield file, record_files.file_rows(file), said


def _files(source) -> dict[Path, Mapping]:
    """Return {file: what is said of it}."""
    is_one = isinstance(source, str | Path | Mapping) or not isinstance(source, Iterable)
    named = []
    for part in [source] if is_one else source:
        if isinstance(part, Mapping):
            named += part.items()
        else:
            named.append((part, {}))
    files: dict[Path, Mapping] = {}
    for name, said in named:
        if not isinstance(said, Mapping | None):
            rule = f"`predictions` must say of {str(name)!r} a mapping such as hints: true"
            raise InputError(f"{rule}, got {said!r:.80}.")
        for file in record_files.files_of("predictions", name):
            files[file] = dict(said or {})
            if HINTED in file.name:
                files[file] = {"hints": True, **files[file]}
    if not files:
        raise InputError("`predictions` names no file and no folder.")
    return files


def _table(
    path: str | Path, rows: Iterable[dict] | pd.DataFrame, names: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return rows without SENT as a table; names: {theirs: ours}.

    Of a frame only lists and objects are read row by row.
    """
    if not isinstance(rows, pd.DataFrame):
        frame = pd.DataFrame(_share_values(path, rows, names))
        return record_files.without_empty_rows(frame).reset_index(drop=True)
    if rows.columns.is_unique:
        rows = record_files.without_empty_rows(rows)
    if not len(rows) or not rows.columns.is_unique:
        rule = "must have records, and each column once"
        raise InputError(f"{path} {rule}, got {len(rows)} of {[*rows]}; mend that.")
    columns = {}
    nested = []
    for name, column in rows.reset_index(drop=True).items():
        if name in SENT and name not in names:
            continue
        heading = _heading(name, names)
        values = record_files.with_nulls(column)
        columns[heading] = values
        if not set(map(type, values)) <= {str, int, float, bool, type(None)}:
            nested.append(heading)
    values_of_rows = zip(*[columns[name] for name in nested], strict=True)
    of_rows = (dict(zip(nested, values, strict=True)) for values in values_of_rows)
    columns |= pd.DataFrame(_share_values(path, of_rows, names)).items()
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


def _condition(cell: str):
    """Return a condition in JSON or as Python shows it as a mapping; others stay."""
    return condition_of(cell) if OBJECT.match(cell) else cell


# fields


def _with_our_names(
    path: str | Path, frame: pd.DataFrame, names: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return a table under our names; names: {theirs: ours}.

    A field that is called `condition` is a part of it.
    """
    for name in frame:
        if "condition" in names.get(name, [name]):
            frame[name] = _read_cells(path, frame[name], _condition)
    if "reasoning" not in frame:
        names = {"returned_reasoning": ["reasoning"]} | dict(names)
    theirs = []
    ours = []
    parts = []
    for name in frame:
        for field in names.get(name, [name]):
            if field == "condition" and name in names:
                parts.append(name)
            else:
                theirs.append(name)
                ours.append(field)
    renamed = frame[theirs].set_axis(ours, axis=1)
    twice = renamed.columns.duplicated()
    if twice.any():
        said = f"`{renamed.columns[twice][0]}` twice: by that name and in `columns`, or twice there"
        raise InputError(f"{path} gives {said}; name one.")
    _replace_names(renamed, NAMED, lambda name: ONLY_NAME.sub(r"\2", name))
    for part in parts:

        def as_mapping(said, part=part):
            return condition_of(said) or {part: said}

        _add_to_condition(path, renamed, mapped(frame[part].tolist(), as_mapping))
    if "returned_text" in renamed:
        replies = renamed.get("reply", renamed["returned_text"]).astype(object)
        renamed["reply"] = replies.fillna(renamed["returned_text"])
    return renamed


def _add_to_condition(path: str | Path, frame: pd.DataFrame, parts: Sequence) -> None:
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


def _by_other_headings(
    path: str | Path, frame: pd.DataFrame, nobody: Sequence[str] = ()
) -> pd.DataFrame:
    """Return a table in which fields that others call otherwise have our names.

    Answers are called by what they are. nobody: words that are no answer.
    """
    there = set(frame) - {"score"}
    lacking = []
    for fields in NEEDED:
        if there.isdisjoint(fields):
            lacking += fields
    headings = {str(name).strip().casefold() for name in frame}
    has_answers = not headings.isdisjoint({*ANSWERS, "score"})
    if not lacking or ("text" in frame and not has_answers):  # texts that nobody was asked about
        return frame
    wanted = {field: names for field, names in HEADINGS.items() if field in lacking}
    wanted |= dict.fromkeys(sorted(set(lacking) - set(HEADINGS)), ())
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
    for name in frame.columns.intersection(IDS):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            continue
        if any(stripped(value) is not value for value in column.unique()):
            frame[name] = column.map(stripped, na_action="ignore")


def _one_spelling(path: str | Path, frame: pd.DataFrame, known: dict[str, str]) -> list[str]:
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
        _replace_names(frame, SPELLED, lambda name: changed.get(name, name))
    file = Path(path).name
    return [f"{file}: the name {sentence}; rename one if these are two." for sentence in told]


def _nearly_alike(frame: pd.DataFrame) -> list[str]:
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


# pairs by place


def _by_place(
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
    _add_to_condition(path, frame, [{"question": "authored"}] * len(frame))
    neutral = f"{(~wrote_one).sum()} of them judged by a model that wrote neither text"
    rule = "all as asked which text they wrote, unless `condition` says question=better"
    notes.append(f"{told}, {neutral}; {rule}.")
    return frame


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


# what is said of a whole file


def _take_for_a_task(path: str | Path, frame: pd.DataFrame, given: Mapping) -> list[str]:
    """Fill in the task of records that name none, where their fields tell it, and say so."""
    if "task_type" in frame or "task_type" in given:
        return []
    claims = "predicted_self" in frame
    names = "predicted_model" in frame
    if "other_model" in frame:
        if frame["other_model"].isna().any():
            return []
        task = "pairwise_self"
        why = "`other_model` in every record, so these are pairs"
    elif claims and not names:
        task = "binary_self"
        why = f"answers in `predicted_self` alone, so the task is {task}"
    elif names and not claims:
        task = "exact_model"
        why = f"answers in `predicted_model` alone, so the task is {task}"
    else:
        return []
    frame["task_type"] = task
    return [f"{Path(path).name}: no `task_type`, and {why}."]


def _fill_in(path: str | Path, frame: pd.DataFrame, given: Mapping) -> pd.DataFrame:
    """Return prediction records with what is said of the whole file; check that all is there."""
    of_all = {name: value for name, value in given.items() if name in FOR_ALL}
    frame = frame.assign(**{name: of_all[name] for name in of_all if name not in frame})
    _add_text_ids(path, frame)
    of_condition = {name: value for name, value in given.items() if name not in FOR_ALL}
    if of_condition:
        _add_to_condition(path, frame, [of_condition] * len(frame))
    _check_fields(path, frame)
    if "text_full" in frame and "text_preview" not in frame:
        previews = [text[:100] if isinstance(text, str) else text for text in frame["text_full"]]
        frame["text_preview"] = previews
    for name in (*PREDICTION_FIELDS, "reply"):
        if name not in frame and name != "true_model_display":
            frame[name] = pd.Series(None, frame.index, object)
    return frame


def _check_fields(path: str | Path, frame: pd.DataFrame) -> None:
    """Raise `InputError` where a field of a prediction record is missing."""
    missing = [" or ".join(fields) for fields in NEEDED if set(frame).isdisjoint(fields)]
    if not missing:
        return
    if "author" in frame and "text" in frame:
        remedy = "ask models with `collect_predictions` first"
        raise InputError(f"{path} holds texts and no predictions; {remedy}.")
    fields = "field" if len(missing) == 1 else "fields"
    lacks = f"{path} lacks the {fields} {', '.join(missing)} of a prediction record"
    hints = f"{_odd_headings(frame)}{_odd_answers(frame)}"
    raise InputError(f"{lacks}: it has {', '.join(frame)}; {hints}{WHERE}")


def _odd_headings(frame: pd.DataFrame) -> str:
    """Ask for the headings in the first line where a table has another line there."""
    unnamed = [name for name in frame if name.startswith("Unnamed: ")]
    if len(unnamed) < 2:
        return ""
    return "the first line must be that of the headings, so delete what stands above; "


def _odd_answers(frame: pd.DataFrame) -> str:
    """Say how a word is no answer, where most answers are yes or no, or authors."""
    if "reply" not in frame or "task_type" in frame:
        return ""
    replies = frame["reply"].dropna().astype(str)
    is_usual = replies.str.strip().str.lower().isin([*TRUTH])
    is_usual |= replies.isin([*frame.get("true_model", ())])
    words = replies[~is_usual].value_counts().index
    if words.empty or is_usual.mean() < 0.5:
        return ""
    word = words[0]
    return f"if {word!r} is no answer, authors={{{word!r}: 'no answer'}} says so; "


def _add_text_ids(path: str | Path, frame: pd.DataFrame) -> None:
    """Give texts without an id one: a text is told by its prompt, author and sample."""
    filled = [name for name in ("prompt_id", "prompt_used") if name in frame]
    filled = [name for name in filled if frame[name].notna().all()]
    has_names = set(frame) >= {"true_model", "evaluator_model"}
    if "text_id" in frame or not filled or not has_names:
        return

    @cache
    def short(prompt):
        return prompt_id_of(prompt) if " " in str(prompt) else prompt

    about = [frame[filled[0]].map(short)]
    if "sample" in frame:
        about.append(frame["sample"])
    for name, author in (("text_id", "true_model"), ("other_text_id", "other_model")):
        if author in frame:
            parts = zip(frame[author], *about, strict=True)
            frame[name] = [" / ".join(map(str, part)) for part in parts]
    asked = frame[frame.columns.intersection(QUESTION)].astype(str)
    again = asked.duplicated()
    if again.any():
        index = again.idxmax()
        raise InputError(
            f"{path}, record {index + 1}: without `text_id`, a text is told by its author, prompt "
            f"and `sample`, and this evaluator was asked about {frame['text_id'][index]!r:.80} "
            "before; say in `sample` or `text_id` which text it is, or in `repeat` which asking."
        )


# values


def _read_replies(path: str | Path, frame: pd.DataFrame) -> None:
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


def _take_for_no_answer(frame: pd.DataFrame, nobody: Sequence[str]) -> None:
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
    plain = [name for name in fields if name in PLAIN]
    alike = frame.loc[frame.duplicated(plain, keep=False), fields]
    for name in fields:
        if name not in PLAIN:
            alike[name] = alike[name].map(repr, na_action="ignore")
    return alike.index[alike.duplicated()]


# names


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


def _names_in(frame: pd.DataFrame, names: set[str]) -> set[str]:
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


def _replace_names(frame: pd.DataFrame, fields: Iterable[str], of: Callable[[str], str]) -> None:
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
            shown = by_place.get(place(position))
        letter = answers[index]
        if isinstance(shown, list) and letter not in shown:
            name = parsing.at_letter(letter, shown)
            if name:
                names[index] = name
    frame.loc[[*names], "predicted_model"] = [*names.values()]
    return len(names)


def _names_by_hand(frame: pd.DataFrame, authors: Mapping[str, str | None]) -> dict[str, list[str]]:
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


def _check_names(frame: pd.DataFrame) -> list[str]:
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
