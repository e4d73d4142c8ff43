"""Read prediction records, ours and those made elsewhere.

They become one table with one form of every value and one name per author.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from selfeval.condition import condition_of, conditions, mapped
from selfeval.errors import InputError, check_one_of
from selfeval.providers.models import stripped
from selfeval.reading.parsing import name_key
from selfeval.records import tables as record_files
from selfeval.records.fields import (
    ANSWERS,
    FIELDS,
    FOR_ALL,
    HEADINGS,
    HINTED,
    IDS,
    NAMED,
    NEEDED,
    NO_ANSWER,
    ONLY_NAME,
    PLAIN,
    QUESTION,
    SENT,
    TRUTH,
    WHERE,
)
from selfeval.records.names import (
    check_names,
    name_by_id,
    names_by_hand,
    names_in,
    nearly_alike,
    replace_names,
    spell_alike,
)
from selfeval.records.places import pairs_by_place
from selfeval.records.tables import PREDICTION_FIELDS
from selfeval.records.texts import prompt_id_of
from selfeval.records.values import (
    add_to_condition,
    asked_by_name,
    check_values,
    read_cells,
    read_condition,
    read_replies,
    repeated_rows,
    take_for_no_answer,
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
        unseen -= names_in(frame, unseen)
        _strip_ids(frame)
        notes += spell_alike(file, frame, spellings)
        frame = pairs_by_place(file, frame, said, authors, nobody, notes)
        notes += _take_for_a_task(file, frame, said)
        frame = _fill_in(file, frame, said)
        take_for_no_answer(frame, nobody)
        read_replies(file, frame)
        check_values(file, frame)
        unseen -= names_in(frame, unseen)
        notes += name_by_id(file, frame, authors)
        notes += asked_by_name(file, frame)
        frames.append(frame)
        files.append(f"{file.parent.name}/{file.name}" if isinstance(file, Path) else str(file))
    if unused:
        name = min(unused)
        raise InputError(f"`columns` names {name!r}, a field that no file of `predictions` has.")
    frame, told = _in_one(frames, files)
    notes += told
    for name in sorted(unseen, key=str):
        notes.append(f"`authors` names {name!r}, which is in no record.")
    frame.attrs["called"] = names_by_hand(frame, authors) if authors else {}
    frame.attrs["nobody"] = nobody
    frame.attrs["notes"] = notes + nearly_alike(frame) + check_names(frame)
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
    again = repeated_rows(frame)
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


# fields


def _with_our_names(
    path: str | Path, frame: pd.DataFrame, names: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return a table under our names; names: {theirs: ours}.

    A field that is called `condition` is a part of it.
    """
    for name in frame:
        if "condition" in names.get(name, [name]):
            frame[name] = read_cells(path, frame[name], read_condition)
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
    replace_names(renamed, NAMED, lambda name: ONLY_NAME.sub(r"\2", name))
    for part in parts:

        def as_mapping(said, part=part):
            return condition_of(said) or {part: said}

        add_to_condition(path, renamed, mapped(frame[part].tolist(), as_mapping))
    if "returned_text" in renamed:
        replies = renamed.get("reply", renamed["returned_text"]).astype(object)
        renamed["reply"] = replies.fillna(renamed["returned_text"])
    return renamed


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
        add_to_condition(path, frame, [of_condition] * len(frame))
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
