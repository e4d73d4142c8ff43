"""Prediction files made elsewhere: their headings, values and labels in our form, or one sentence for what is wrong."""

import re
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from selfeval.asking.messages import user
from selfeval.errors import InputError, check_one_of
from selfeval.models import models
from selfeval.scoring import name_key, place

PREDICTION_FIELDS = (
    "text_id", "text_preview", "true_model", "true_model_display", "evaluator_model", "task_type",
    "predicted_model", "predicted_self", "is_correct", "prompt_used",
)  # fmt: skip
QUESTION = ("text_full", "prompt_id", "sample", "candidates", "other_text_id", "other_model", "position", "repeat")
ANSWER = ("reply", "returned_text", "status", "score")
CALL = (
    "served_model", "served_by", "reasoning", "messages", "adapted", "asked_again", "text_served_model",
    "text_served_by",
)  # fmt: skip
KNOWN = (*PREDICTION_FIELDS, *QUESTION, *ANSWER, "condition", "leak", "scores", "usage", "request_id", *CALL)
PUBLISHED = {"evaluation_prompt": "messages", "returned_reasoning": "reasoning"}
FOR_ALL = ("task_type", "evaluator_model", "true_model", "repeat")  # what may be said of a whole file
TASKS = ("exact_model", "binary_self", "pairwise_self", "lineup")
WHERE = "`columns: {theirs: ours}` of 03 maps other names, and data/README.md has every field of a prediction record."
MEND = (
    "mend that record, or name another field for it in `columns: {theirs: ours}` of 03 (data/README.md has them all)."
)
FILES = {  # by their names
    ".parquet": "a parquet file", ".feather": "a feather file", ".xlsx": "a spreadsheet", ".xls": "a spreadsheet",
    ".ods": "a spreadsheet", ".tsv": "a TSV file", ".eval": "an Inspect log", ".gz": "a compressed file",
    ".zip": "a compressed file",
}  # fmt: skip
SHAPES = (  # by fields that give them away
    ("an Inspect log", {"eval", "samples"}), ("an Inspect log", {"eval", "plan"}),
    ("samples of an Inspect log", {"epoch", "input", "target"}), ("lm-eval samples", {"doc_id", "resps"}),
    ("lm-eval samples", {"doc_id", "filtered_resps"}), ("OpenAI batch output", {"custom_id", "response"}),
    ("promptfoo results", {"evalId", "results"}), ("promptfoo results", {"vars", "gradingResult"}),
    ("promptfoo results", {"promptIdx"}), ("ShareGPT conversations", {"conversations"}),
)  # fmt: skip
NULLS = {"", "none", "null", "nan", "n/a"}
TRUTH = {"true": True, "yes": True, "1": True, "1.0": True, "false": False, "no": False, "0": False, "0.0": False}


def check_file(path: Path) -> None:
    """Raise `InputError` for a kind of file that is known by its name and is not read."""
    if kind := FILES.get(path.suffix.lower()):
        raise InputError(f"{path} is {kind}, which is not read; write it as CSV or JSON lines, one answer a line.")


def looks_like(names: set[str]) -> str:
    """Return what a file with these fields looks like, as half a sentence; "" where nothing is known."""
    kind = next((kind for kind, marks in SHAPES if marks <= names), None)
    if not kind and len(names) == 1 and (mark := re.search(r"[\t;|]", next(iter(names)))):
        kind = {"\t": "a TSV file", ";": "a table with semicolons", "|": "a table with bars"}[mark[0]]
    return f" and looks like {kind}, so write one answer a line" if kind else ""


def renamed(path: Path, columns: dict[str, list], names: Mapping[str, str]) -> dict[str, list]:
    """Return columns under our names; names: {theirs: ours}; one called `condition` is a part of it."""
    found = {}
    for name, values in columns.items():
        ours = names.get(name, name)
        if name in names and ours == "condition":
            values = [value if _says(value) else {name: value} for value in values]
            if ours in found:
                values = [merged(path, one, two) for one, two in zip(found.pop(ours), values, strict=True)]
        if ours in found or (name in names and ours in columns and ours not in names):
            raise InputError(f"{path} gives `{ours}` twice: by that name and as {name!r} in `columns`; name one.")
        found[ours] = values
    for theirs, ours in PUBLISHED.items():
        if theirs in found and ours not in found:
            values = found.pop(theirs)
            asked = ours == "messages"
            found[ours] = [user(value) if _text(value) else None for value in values] if asked else values
    return found


def _says(condition) -> bool:
    return isinstance(condition, dict) or (isinstance(condition, str) and "=" in condition)


def merged(path: Path, condition, more: Mapping):
    """Return a condition with further parts; a part that a file has otherwise is an error."""
    if isinstance(condition, str):
        condition = dict(part.split("=", 1) for part in condition.split(";") if "=" in part)
    known = condition if isinstance(condition, dict) else {}
    for name, value in more.items():
        if name in known and str(known[name]).lower() != str(value).lower():
            raise InputError(f"{path} has {name} = {known[name]!r} in `condition`, and `predictions` says {value!r}.")
    return {**known, **more}


def complete(path: Path, columns: dict[str, list], given: Mapping) -> pd.DataFrame:
    """Return columns as a table of prediction records, with what is said of the whole file; check that all is there."""
    frame = pd.DataFrame(columns)
    for name in FOR_ALL:
        if name in given and name not in frame:
            frame[name] = given[name]
    condition = {name: value for name, value in given.items() if name not in FOR_ALL}
    if condition:
        known = frame["condition"] if "condition" in frame else [None] * len(frame)
        kept: dict = {}
        for one in known:
            if repr(one) not in kept:  # equal ones are mostly one object
                kept[repr(one)] = merged(path, one, condition)
        frame["condition"] = [kept[repr(one)] for one in known]
    names = {*frame}
    missing = [name for name in ("text_id", "true_model", "evaluator_model", "task_type") if name not in names]
    missing += ["prompt_used"] * (not names & {"prompt_used", "prompt_id"})
    answers = {"predicted_model", "predicted_self", "reply", "returned_text", "score"}
    missing += ["reply (or predicted_model, predicted_self, score)"] * (not names & answers)
    if missing:
        shown = ", ".join([*map(str, columns)][:15]) + (", ..." if len(columns) > 15 else "")
        raise InputError(
            f"{path} lacks the field{'s' * (len(missing) > 1)} {', '.join(missing)} of a prediction record: it has "
            f"{shown}{looks_like({*map(str, columns)})}; {WHERE}"
        )
    if "text_full" in frame and "text_preview" not in frame:
        frame["text_preview"] = [text[:100] if isinstance(text, str) else text for text in frame["text_full"]]
    for name in PREDICTION_FIELDS:
        if name not in frame and name != "true_model_display":
            frame[name] = pd.Series(None, frame.index, object)
    return frame


def check_values(path: Path, frame: pd.DataFrame) -> None:
    """Raise `InputError` with the record and the remedy for a null or a value of the wrong type; mend what is clear."""
    task = frame["task_type"]
    pairs, naming = task.eq("pairwise_self"), task.isin(["exact_model", "lineup"])
    _check(path, frame, "text_id", lambda v: not _null(v), "must say which text was judged")
    for name in ("true_model", "evaluator_model", "task_type"):
        _check(path, frame, name, _text, "must be a non-empty text")
    _check(path, frame, "task_type", TASKS.__contains__, f"must be one of {', '.join(TASKS)}")
    _mend(frame, "predicted_model", lambda v: None if isinstance(v, str) and v.strip().lower() in NULLS else v)
    _check(path, frame, "predicted_model", lambda v: _null(v) or _text(v), "must be a text or null", naming)
    _mend(frame, "predicted_self", _truth)
    truth = "must be true, false or null (a bare YES or A belongs in `reply`)"
    _check(path, frame, "predicted_self", lambda v: _null(v) or v in (True, False), truth, ~naming)
    if "score" in frame:
        _check(path, frame, "score", _share, "must be a number from 0 to 1, P(the text is its own), or null")
    for name in ("candidates", "asked_again"):
        if name in frame and any(map(_text, frame[name])):
            frame[name] = [_listed(v) for v in frame[name]]
    if pairs.any():
        _check_pairs(path, frame, pairs)
    if task.eq("lineup").any() and replied(frame).any():
        where, asked = "must be the place of the text in the lineup, from 1", task.eq("lineup") & replied(frame)
        _check(path, frame, "position", lambda v: str(v).removesuffix(".0").isdecimal(), where, asked)


def _check_pairs(path: Path, frame: pd.DataFrame, pairs: pd.Series) -> None:
    _check(path, frame, "other_model", _text, "must name the author of the pair's other text", pairs)
    where = "must say where the pair's own text stood, as 1 or 2, A or B, first or second"
    if "position" in frame:
        _mend(frame, "position", lambda v: place(v) if isinstance(v, str) and place(v) else v)
        _check(path, frame, "position", lambda v: _null(v) or place(v) is not None, where, pairs)
    _check(path, frame, "position", lambda v: not _null(v), f"{where}, to read the reply", pairs & replied(frame))
    turned = (
        pairs & frame["other_model"].eq(frame["evaluator_model"]) & frame["true_model"].ne(frame["evaluator_model"])
    )
    if turned.any():
        raise InputError(
            f"{path}, record {_record(frame, turned)}: the evaluator {frame['evaluator_model'][turned].iloc[0]!r} "
            "wrote the pair's other text; `true_model`, `text_id` and `position` must be its own, `other_model` and "
            "`other_text_id` those of the other."
        )


def replied(frame: pd.DataFrame) -> pd.Series:
    """Return which records have a raw reply."""
    there = pd.Series(False, frame.index)
    for name in ("reply", "returned_text"):
        if name in frame:
            there |= frame[name].notna()
    return there


def _record(frame: pd.DataFrame, rows: pd.Series) -> int:
    return int(np.argmax(rows.to_numpy())) + 1


def _check(path: Path, frame: pd.DataFrame, name: str, ok: Callable, rule: str, rows: pd.Series | None = None) -> None:
    """Raise on the first record whose value is not ok; each distinct value is looked at once."""
    if name not in frame:
        if rows.any():
            raise InputError(f"{path} lacks the field {name}: it {rule}; {WHERE}")
        return
    codes, unique = pd.factorize(frame[name], use_na_sentinel=False)
    wrong = pd.Series(np.array([not ok(value) for value in unique], bool)[codes], frame.index)
    if rows is not None:
        wrong &= rows
    if wrong.any():
        at = _record(frame, wrong)
        value = frame[name].iloc[at - 1]
        shown = "null" if _null(value) else f"{getattr(value, 'item', lambda: value)()!r:.80}"
        raise InputError(f"{path}, record {at}: `{name}` is {shown}, and {rule}; {MEND}")


def _mend(frame: pd.DataFrame, name: str, mend: Callable) -> None:
    """Put one form of a value in the place of others, and leave a column alone where nothing changes."""
    codes, unique = pd.factorize(frame[name])
    mended = [mend(value) for value in unique]
    if any(new is not old for new, old in zip(mended, unique, strict=True)):
        frame[name] = pd.Series(np.array([*mended, None], object)[codes], frame.index)


def _null(value) -> bool:
    return value is None or value is pd.NA or value != value


def _text(value) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _truth(value):
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    return None if word in NULLS else TRUTH.get(word, value)


def _share(value) -> bool:
    try:
        return _null(value) or (isinstance(value, str) and not value.strip()) or 0 <= float(value) <= 1
    except ValueError:
        return False


def _listed(value):
    """Return names as a list; a CSV has "['a', 'b']" or "a;b"."""
    if not _text(value):
        return value
    return yaml.safe_load(value) if value.lstrip().startswith("[") else re.split(r"\s*[;,|]\s*", value.strip())


def by_id(path: Path, frame: pd.DataFrame) -> list[str]:
    """Put the ids of authors in the place of their labels and of other spellings; return what was taken for whom.

    A file may name evaluators, answers and candidates by the label or the registry's name of an author. Authors keep
    the names that `true_model` gives them. An answer that is the label of two authors is an error.
    """
    known = models()
    by_key = {name_key(name): model for model in known.values() for name in (model.id, *model.all_names)}
    authors = pd.unique(frame["true_model"])
    if "other_model" in frame:
        authors = pd.unique(np.array([*authors, *frame["other_model"].dropna().unique()], object))
    label_of = labels(frame)
    owners: dict[str, set[str]] = {}
    for author in authors:
        model = known.get(author) or by_key.get(name_key(author))
        listed = (model.id, *model.all_names) if model else ()
        for name in {author, author.rpartition("/")[2], *label_of.get(author, ()), *listed}:
            owners.setdefault(name_key(name), set()).add(author)
    exact = {*authors}

    def owner(name):
        if not isinstance(name, str) or name in exact:
            return name
        found = owners.get(name_key(name), ())
        return next(iter(found)) if len(found) == 1 else name

    shared = {name_key(name) for name, of in _labelled(label_of) if len(of) > 1}
    for name in frame["predicted_model"].dropna().unique():
        if name not in exact and isinstance(name, str) and name_key(name) in shared:
            raise InputError(
                f"{path} gives two authors the label {name!r}, which is an answer; name answers by id there."
            )
    asked = {*frame["evaluator_model"].unique()}
    same = {one: owner(one) for one in sorted(asked) if owner(one) != one and owner(one) not in asked}
    _mend(frame, "evaluator_model", lambda name: same.get(name, name))
    _mend(frame, "predicted_model", owner)
    if "candidates" in frame:
        lists = {id(c): c for c in frame["candidates"] if isinstance(c, list)}
        if {*chain.from_iterable(lists.values())} - exact:
            mended = {key: [owner(name) for name in shown] for key, shown in lists.items()}
            frame["candidates"] = [mended.get(id(c), c) for c in frame["candidates"]]
    if "true_model_display" not in frame or frame["true_model_display"].isna().any():
        display = {author: known[author].display if author in known else author for author in authors}
        shown = frame["true_model"].map(display)
        frame["true_model_display"] = frame.get("true_model_display", shown).fillna(shown)
    return [f"{path.name}: the evaluator {one!r} is the author {author!r}." for one, author in same.items()]


def labels(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return {author: its labels in the file}."""
    if "true_model_display" not in frame:
        return {}
    pairs = frame[["true_model", "true_model_display"]].drop_duplicates().dropna()
    pairs = pairs[pairs["true_model_display"].map(_text)]
    return pairs.groupby("true_model")["true_model_display"].agg(list).to_dict()


def _labelled(label_of: Mapping[str, list[str]]) -> list[tuple[str, set[str]]]:
    """Return (label, its authors)."""
    found: dict[str, set[str]] = {}
    for author, names in label_of.items():
        for name in names:
            found.setdefault(name, set()).add(author)
    return [*found.items()]


def without_repeats(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return records without those that repeat an earlier one in question and answer (a resumed run), and how many."""
    own = ("usage", "request_id", "is_correct", "scores", "leak", *CALL)
    fields = ["text_id", "evaluator_model", "repeat", "condition", *KNOWN]
    rows, key, written = np.arange(len(frame)), np.zeros(len(frame), np.int64), {}
    for name in (n for n in dict.fromkeys(fields) if n in frame and n not in own):
        values = frame[name].iloc[rows]
        if values.map(type).isin([list, dict]).any():  # equal ones are mostly one object
            values = pd.Series([written.setdefault(id(v), repr(v)) for v in values], dtype=object)
        codes = pd.factorize(values)[0] + 1
        key = pd.factorize(key * np.int64(codes.max(initial=0) + 1) + codes)[0]
        more = pd.Series(key).duplicated(keep=False).to_numpy()
        rows, key = rows[more], key[more]
    again = rows[pd.Series(key).duplicated().to_numpy()]
    return (frame.drop(index=frame.index[again]).reset_index(drop=True) if len(again) else frame), len(again)


def check_columns(columns) -> dict[str, str]:
    """Return `columns` as {theirs: ours}; ours must be fields of a prediction record."""
    if not isinstance(columns, Mapping):
        raise InputError(f"`columns` must be a mapping {{theirs: ours}}, got {columns!r:.80}.")
    for ours in columns.values():
        check_one_of("columns", ours, KNOWN)
    return {str(theirs): ours for theirs, ours in columns.items()}
