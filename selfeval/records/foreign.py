"""Read prediction records, ours and those made elsewhere.

They become one table with one form of every value and one name per author.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from selfeval.condition import conditions, mapped
from selfeval.errors import InputError, check_one_of
from selfeval.providers.models import stripped
from selfeval.reading.parsing import name_key
from selfeval.records import tables as record_files
from selfeval.records.fields import (
    FIELDS,
    FOR_ALL,
    HINTED,
    IDS,
    NAMES,
    NEEDED,
    NO_ANSWER,
    PLAIN,
    PUBLISHED,
    QUESTION,
    SENT,
    TRUTH,
    WHERE,
)
from selfeval.records.names import check_names, further_names, name_by_id, replace_names
from selfeval.records.tables import PREDICTION_FIELDS
from selfeval.records.texts import prompt_id_of
from selfeval.records.values import add_to_condition, asked_by_name, check_values, repeated_rows


def read_predictions(
    source: record_files.Rows | Mapping | Sequence[str | Path | Mapping],
    columns: Mapping[str, str] | None = None,
    authors: Mapping[str, str | None] | None = None,
) -> pd.DataFrame:
    """Return the prediction records of a frame, of rows, or of files and folders as one table.

    Of folders, those of `predictions_*.jsonl` below them.

    source: a frame, rows, paths, or mappings {path: {name: value}} that say of a whole file what it
    does not: parts of the condition (`hints: true`, which a name with `_with_hints` says too),
    `task_type`, `evaluator_model`, `true_model` or `repeat`.

    columns: {their name of a field: ours}. Without `text_id`, prompt, author and `sample` tell a
    text; without `task_type`, the columns tell the task where they can.

    authors: {name in the records: author, None for somebody else, or "no answer" for what is no
    answer, such as "unknown"}; a name that nobody bears is an error without, and so are two authors
    whose names differ in typing alone.

    What was sent (SENT) is left out, unless `columns` names it: statistics do not need it, and it
    is most of a file; `read_jsonl` has it.

    A file that is named twice counts once, and so does a record that repeats another in question
    and answer (a resumed run). Two different answers to the same question under the same condition
    are an error of the statistics, since two designs would be mixed. `attrs["notes"]` has a
    sentence for what was left out or taken for something else, `attrs["called"]` {id: further names
    in replies}, and `attrs["nobody"]` the words that are no answer.
    """
    columns = _checked_columns(columns or {})
    authors = authors or {}
    if not isinstance(authors, Mapping):
        form = "{'ChatGPT': 'GPT', 'Bard': None}"
        raise InputError(f"`authors` must be of the form {form}, got {authors!r:.80}.")
    unused = set(columns)
    frames: list[pd.DataFrame] = []
    files: list[str] = []
    notes: list[str] = []
    for file, rows, said in _sources(source):
        table = _table(file, rows, columns)
        unused -= set(table)
        frame = _with_our_names(file, table, columns, authors)
        notes += _take_for_a_task(file, frame, said)
        frame = _fill_in(file, frame, said)
        check_values(file, frame)
        notes += asked_by_name(file, frame)
        frames.append(frame)
        files.append(f"{file.parent.name}/{file.name}" if isinstance(file, Path) else str(file))
    if unused:
        name = min(unused)
        raise InputError(f"`columns` names {name!r}, a field that no file of `predictions` has.")
    frame, told = _in_one(frames, files)
    notes += told + name_by_id(frame)
    frame.attrs["called"] = further_names(frame, authors)
    frame.attrs["nobody"] = [name for name, who in authors.items() if who == NO_ANSWER]
    check_names(frame)
    frame.attrs["notes"] = notes
    return frame


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


def _checked_columns(columns) -> Mapping[str, str]:
    """Return {their name of a field: ours}; raise for a field that we do not have."""
    if not isinstance(columns, Mapping):
        raise InputError(f"`columns` must be a mapping {{theirs: ours}}, got {columns!r:.80}.")
    for field in columns.values():
        check_one_of("columns", field, FIELDS)
    return columns


def _sources(source) -> Iterator[tuple[str | Path, Iterable[dict] | pd.DataFrame, Mapping]]:
    """Yield what is read as one: how errors call it, its rows, and what is said of all of it."""
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
    path: str | Path, rows: Iterable[dict] | pd.DataFrame, columns: Mapping[str, str]
) -> pd.DataFrame:
    """Return rows as a table without SENT; columns: {theirs: ours}, which stay."""
    left_out = {*SENT} - {*columns}
    if isinstance(rows, pd.DataFrame):
        frame = rows.drop(columns=rows.columns.intersection([*left_out]))
    else:
        # before they fill the memory
        frame = pd.DataFrame(
            {name: value for name, value in row.items() if name not in left_out} for row in rows
        )
    frame = frame.rename(columns=lambda name: str(name).strip())
    if frame.columns.is_unique:
        frame = record_files.without_empty_rows(frame).reset_index(drop=True)
    if not len(frame) or not frame.columns.is_unique:
        rule = "must have records, and each column once"
        raise InputError(f"{path} {rule}, got {len(frame)} of {[*frame]}; mend that.")
    return frame


# fields


def _with_our_names(
    path: str | Path, table: pd.DataFrame, columns: Mapping[str, str], authors: Mapping
) -> pd.DataFrame:
    """Return a table under our names; fields that others call otherwise are looked up.

    columns: {theirs: ours}. authors: as of `read_predictions`.
    """
    frame = table.rename(columns={**PUBLISHED, **columns})
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        said = f"`{twice}` twice: by that name and in `columns`, or twice there"
        raise InputError(f"{path} gives {said}; name one.")
    frame = _by_other_headings(path, _plain(path, frame), authors)
    for name in frame.columns.intersection(IDS):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = mapped(frame[name].tolist(), stripped)
    return frame


def _by_other_headings(path: str | Path, frame: pd.DataFrame, authors: Mapping) -> pd.DataFrame:
    """Return a table in which fields that others call otherwise have our names.

    Answers are called by what they are, once `authors` says who is who.
    """
    headings = record_files.headings("predictions")
    there = set(frame) - {"score"}
    lacking = [field for fields in NEEDED if there.isdisjoint(fields) for field in fields]
    answers = [name for name in frame if name.casefold() in headings["reply"]]
    if not answers and set(frame) >= {"author", "text"} and "reply" in lacking:
        remedy = "ask models with `collect_predictions` first"
        raise InputError(f"{path} holds texts and no predictions; {remedy}.")
    # prompts on which the same texts were shown are one
    lacking.append("text_full")
    wanted = {field: headings.get(field, ()) for field in lacking if field != "reply"}
    frame = frame.rename(columns=record_files.called_otherwise(path, frame, wanted))
    if authors:
        replace_names(frame, (*NAMES, "predicted_self", *answers), _said(authors))
    if "reply" not in lacking or not answers:
        return frame
    wanted = {_field_of_answers(frame, answers[0]): headings["reply"]}
    return frame.rename(columns=record_files.called_otherwise(path, frame, wanted))


def _said(authors: Mapping[str, str | None]) -> Callable[[str], str | None]:
    """Return what makes of a name the author that `authors` says, or null of no answer."""
    known = {name_key(name): who for name, who in authors.items() if who}

    def said(name: str) -> str | None:
        who = known.get(name_key(name), name)
        return None if who == NO_ANSWER else who

    return said


def _field_of_answers(frame: pd.DataFrame, name: str) -> str:
    """Return which of our fields a column of answers is, by what stands in it."""
    answers = frame[name].dropna()
    if answers.astype(str).str.strip().str.lower().isin([*TRUTH]).all():
        return "predicted_self"
    if "true_model" in frame and answers.isin(frame["true_model"].unique()).all():
        return "predicted_model"
    return "reply"


def _plain(path: str | Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which what is missing is null, and equal lists and objects are one.

    Raises `InputError` for a list or an object in a field that takes none.
    """
    known: dict = {}
    columns = {}
    for name, column in frame.items():
        columns[name] = column
        if column.dtype == "str":  # as pandas reads a file
            continue
        values = record_files.with_nulls(column).tolist()
        kinds = {*map(type, values)}
        if not kinds.isdisjoint({list, dict}):
            for number, value in enumerate(values, 1):
                if not isinstance(value, list | dict):
                    continue
                if name in PLAIN:
                    rule = f"`{name}` must be no list or object, got {value!r:.80}"
                    raise InputError(f"{path}, record {number}: {rule}.")
                values[number - 1] = known.setdefault(repr(value), value)
        columns[name] = pd.Series(values, dtype=object).infer_objects()
    return pd.DataFrame(columns)


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
        add_to_condition(path, frame, of_condition)
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
    if missing:
        fields = "field" if len(missing) == 1 else "fields"
        lacks = f"{path} lacks the {fields} {', '.join(missing)} of a prediction record"
        raise InputError(f"{lacks}: it has {', '.join(frame)}; {WHERE}")


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
