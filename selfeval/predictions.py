"""Read prediction records, ours and those made elsewhere: one table, one form of every value, one name per author."""

import difflib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from selfeval.errors import InputError, check_one_of, did_you_mean
from selfeval.models import Model, models
from selfeval.records import (
    PREDICTION_FIELDS,
    Rows,
    condition_of,
    data_path,
    file_rows,
    is_file,
    is_text,
    names_author,
    prompt_id_of,
    rows_of,
)
from selfeval.scoring import (
    CODES,
    at_letter,
    bare_name,
    credited_name,
    is_answer,
    letter,
    lineup_entry,
    name_key,
    parse_yes_no,
    place,
    place_of_lineup,
)

ANSWERS = {"predicted_model", "predicted_self"}
PLAIN = {*PREDICTION_FIELDS, "text_full", "prompt_id", "sample", "score", "position", "other_model", "other_text_id"}
ABOUT = (  # what is no part of question and answer
    "leak", "scores", "usage", "request_id", "served_model", "served_by", "reasoning", "messages", "adapted",
    "asked_again", "text_served_model", "text_served_by",
)  # fmt: skip
FIELDS = (
    *PREDICTION_FIELDS, "text_full", "prompt_id", "sample", "candidates", "other_text_id", "other_model", "position",
    "repeat", "reply", "returned_text", "status", "score", "condition", *ABOUT,
)  # fmt: skip
FOR_ALL = ("task_type", "evaluator_model", "true_model", "repeat")  # what may be said of a whole file
NEEDED = (  # of each one at least
    ("text_id",), ("true_model",), ("evaluator_model",), ("task_type",), ("prompt_used", "prompt_id"),
    ("reply", "returned_text", "predicted_model", "predicted_self", "score"),
)  # fmt: skip
SENT = ("messages", "evaluation_prompt", "adapted")  # most of a file, and nothing that statistics need
TASKS = ("exact_model", "binary_self", "pairwise_self", "lineup")
NAMES = ("true_model", "evaluator_model", "other_model", "predicted_model", "candidates")
REPEATED = 3  # times that a reply names nobody, where it may be a slip
NULLS = {"", "none", "null", "nan", "n/a"}
TRUTH = CODES | {"yes": True, "no": False}
WHERE = "`columns: {theirs: ours}` of 03 maps other names, and data/README.md has every field of a prediction record."


def read_predictions(
    source: Rows | Mapping | Sequence[str | Path | Mapping],
    columns: Mapping[str, str | Sequence[str]] | None = None,
    authors: Mapping[str, str | None] | None = None,
) -> pd.DataFrame:
    """Return the prediction records of files and folders (`predictions_*.jsonl` below them) as one table.

    source: paths, and mappings {path: {name: value}} that say of a whole file what it does not: parts of the condition
    (`hints: true`), `task_type`, `evaluator_model`, `true_model` or `repeat`. columns: {their name of a field: ours,
    or a list of ours}. Without `text_id`, prompt, author and `sample` tell a text; without `task_type`, records that
    all have an `other_model` are of pairs.
    authors: {name in the records: author, or None for somebody else}; a name that nobody bears is an error without.
    What was sent (SENT) is left out, unless `columns` names it: statistics do not need it, and of 200,000 records it
    takes 460 MB beside the 140 of all else; `read_jsonl` has it. The published `returned_reasoning` is `reasoning`.
    A file that is named twice counts once, and so does a record that repeats another in question and answer (a resumed
    run); two different answers to the same question under the same condition are an error of the statistics, since two
    designs would be mixed. `attrs["notes"]` has a sentence for what was left out or taken for something else, and
    `attrs["called"]` {id: further names in replies}.
    """
    if not isinstance(columns, Mapping | None):
        raise InputError(f"`columns` must be a mapping {{theirs: ours}}, got {columns!r:.80}.")
    if not isinstance(authors, Mapping | None):
        raise InputError(f"`authors` must be of the form {{'ChatGPT': 'GPT', 'Bard': None}}, got {authors!r:.80}.")
    names = {str(theirs): [ours] if isinstance(ours, str) else ours for theirs, ours in (columns or {}).items()}
    for ours in names.values():
        for field in ours if isinstance(ours, list | tuple) and ours else [ours]:
            check_one_of("columns", field, FIELDS)
    unused, nowhere, notes, frames = {*names}, {*(authors or {})}, [], []
    for file, rows, given in _sources(source):
        found = pd.DataFrame(_kept_once(file, rows, names))
        unused -= {*found}
        frame = _renamed(file, found, names)
        notes += _taken_for_pairs(file, frame, given)
        frame = _completed(file, frame, given)
        _read_replies(file, frame)
        _check_values(file, frame)
        nowhere -= _said(frame, nowhere)
        notes += _by_id(file, frame, authors or {}) + _asked_by_name(file, frame)
        frames.append(frame)
    if unused:
        raise InputError(f"`columns` names {sorted(unused)[0]!r}, a field that no file of `predictions` has.")
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    again = _repeats(frame)
    if len(again):
        frame = frame.drop(index=again).reset_index(drop=True)
        notes.append(
            f"{len(again)} records repeat others in question and answer, as after a resumed run, and count once."
        )
    notes += [f"`authors` names {name!r}, which no record has." for name in sorted(nowhere, key=str)]
    called = _called(frame, authors or {})
    frame.attrs |= {"notes": notes + _others(frame, called), "called": called}
    return frame


def _sources(source) -> Iterator[tuple[str | Path, Iterable[dict], Mapping]]:
    """Yield what is read as one: how errors call it, its rows, and what is said of all of it."""
    first = next(iter(source), None) if isinstance(source, Sequence) and not is_file(source) else None
    if isinstance(source, pd.DataFrame) or (isinstance(first, Mapping) and not _says_of_files(first)):
        yield "The frame of predictions", rows_of(source), {}
        return
    for file, given in _named_files(source).items():
        yield file, file_rows(file), given


def _says_of_files(part: Mapping) -> bool:
    """Tell a mapping {path: {name: value}} from a record."""
    return len(part) == 1 or all(isinstance(value, Mapping | None) for value in part.values())


def _named_files(source) -> dict[Path, Mapping]:
    """Return {file: what is said of it}."""
    parts = [source] if isinstance(source, str | Path | Mapping) or not isinstance(source, Iterable) else source
    files: dict[Path, Mapping] = {}
    for name, given in [pair for part in parts for pair in (part if isinstance(part, Mapping) else {part: {}}).items()]:
        if not isinstance(given, Mapping | None):
            raise InputError(f"`predictions` must say of {str(name)!r} a mapping such as hints: true, got {given!r}.")
        path = data_path(name).resolve()
        found = sorted(path.rglob("predictions_*.jsonl")) if path.is_dir() else [path] * path.exists()
        if not found:
            raise InputError(
                f"There are no predictions at {path}, a file or a folder with `predictions_*.jsonl`; relative "
                "paths lie below data/, so give the full path of any other. `02_collect_predictions` writes some."
            )
        files |= dict.fromkeys(found, given or {})
    if not files:
        raise InputError("`predictions` names no file and no folder.")
    return files


def _kept_once(path: str | Path, rows: Iterable[dict], names: Mapping[str, Sequence[str]]) -> Iterator[dict]:
    """Yield the rows of a file without SENT, in which equal texts, lists and objects are one; names: {theirs: ours}.

    A prediction file says the same names, prompts and settings in every row; kept once each, a million rows fit into
    memory.
    """
    known: dict = {}
    left_out = {*SENT} - {*names}
    for number, row in enumerate(rows, 1):
        row = {sys.intern(str(name)): value for name, value in row.items() if name not in left_out}
        for name, value in row.items():
            if isinstance(value, dict) and [*value] == ["answer"] and ANSWERS.intersection(names.get(name, [name])):
                row[name] = value["answer"]
            elif isinstance(value, str):
                row[name] = sys.intern(str(value))  # a frame may hold numpy's
            elif isinstance(value, list | dict):
                if not PLAIN.isdisjoint(names.get(name, [name])):
                    raise InputError(f"{path}, record {number}: `{name}` must be no list or object, got {value!r:.80}.")
                row[name] = known.setdefault(repr(value), value)
        yield row


def _renamed(path: Path, frame: pd.DataFrame, names: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return a table under our names; names: {theirs: ours}; one called `condition` is a part of it."""
    ours = ({} if "reasoning" in frame else {"returned_reasoning": ["reasoning"]}) | names
    fields = [(field, name) for name in frame for field in ours.get(name, [name])]
    parts = [name for field, name in fields if field == "condition" and name in names]
    fields = [pair for pair in fields if pair[0] != "condition" or pair[1] not in parts]
    renamed = frame[[name for _, name in fields]].set_axis([field for field, _ in fields], axis=1)
    for name in renamed.columns[renamed.columns.duplicated()][:1]:
        raise InputError(f"{path} gives `{name}` twice: by that name and in `columns`, or twice there; name one.")
    for part in parts:
        values = [value if condition_of(value) else {part: value} for value in frame[part]]
        known = renamed.get("condition", values)
        renamed["condition"] = [_merged(path, one, two) for one, two in zip(known, values, strict=True)]
    return renamed


def _merged(path: str | Path, condition, more) -> dict:
    """Return a condition with further parts; a part that a file has otherwise is an error."""
    known, more = condition_of(condition), condition_of(more)
    for name in known.keys() & more:
        if str(known[name]).lower() != str(more[name]).lower():
            raise InputError(
                f"{path} has {name} = {known[name]!r} in `condition`, and `predictions` says {more[name]!r}."
            )
    return {**known, **more}


def _taken_for_pairs(path: Path, frame: pd.DataFrame, given: Mapping) -> list[str]:
    """Fill in the task of records that name none, and all name the author of another text; return a sentence on it."""
    if {"task_type"} & {*frame, *given} or "other_model" not in frame or frame["other_model"].isna().any():
        return []
    frame["task_type"] = "pairwise_self"
    return [f"{_named(path)}: no `task_type`, and `other_model` in every record, so these are pairs."]


def _named(path: str | Path) -> str:
    """Return how sentences call a file, or a frame."""
    return path.name if isinstance(path, Path) else str(path)


def _asked_by_name(path: Path, frame: pd.DataFrame) -> list[str]:
    """Say of how many pairs it is supposed that their judges were asked which text `true_model` wrote."""
    pairs = frame[frame["task_type"].isin(PAIRS)].reindex(columns=[*NAMES, "condition"])
    wrote = pairs[["true_model", "other_model"]].eq(pairs["evaluator_model"], axis=0).any(axis=1)
    named = pairs["condition"][~wrote].map(names_author).sum()
    return [
        f"{_named(path)}: {named} pairs are judged by a model that wrote neither text, and are read as the question "
        "which of the two `true_model` wrote; if it was which is better, say so of the file "
        "({path: {question: better}}) or in `condition` (question=better)."
    ] * bool(named)


def _text_ids(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with ids for texts that have none: a text is told by its prompt, author and sample."""
    prompt = next((name for name in ("prompt_id", "prompt_used") if name in frame and frame[name].notna().all()), "")
    if "text_id" in frame or not prompt or "true_model" not in frame:
        return frame
    about = [frame[prompt].map(cache(lambda said: prompt_id_of(said) if " " in str(said) else said))]
    about += [frame[name] for name in ("sample",) if name in frame]
    for name, author in (("text_id", "true_model"), ("other_text_id", "other_model")):
        if author in frame:
            frame[name] = [" / ".join(map(str, told)) for told in zip(frame[author], *about, strict=True)]
    told = ["task_type", "evaluator_model", "text_id", "other_text_id", "position", "repeat", "condition"]
    again = frame[[name for name in told if name in frame]].astype(str).duplicated()
    for at in frame.index[again][:1]:
        raise InputError(
            f"{path}, record {at + 1}: without `text_id`, a text is told by its author, prompt and `sample`, and this "
            f"evaluator was asked about {frame['text_id'][at]!r} before; say in `sample` or `text_id` which text it "
            "is, or in `repeat` which asking."
        )
    return frame


def _completed(path: Path, frame: pd.DataFrame, given: Mapping) -> pd.DataFrame:
    """Return a table of prediction records with what is said of the whole file; check that all is there."""
    frame = frame.assign(**{name: given[name] for name in FOR_ALL if name in given and name not in frame})
    frame = _text_ids(path, frame)
    if more := {name: value for name, value in given.items() if name not in FOR_ALL}:
        known = frame["condition"] if "condition" in frame else [None] * len(frame)
        frame["condition"] = [_merged(path, one, more) for one in known]
    names = [*map(str, frame)]
    missing = [" or ".join(fields) for fields in NEEDED if {*fields}.isdisjoint(names)]
    if missing:
        raise InputError(
            f"{path} lacks the field{'s' * (len(missing) > 1)} {', '.join(missing)} of a prediction record: it has "
            f"{', '.join(names)}; {WHERE}"
        )
    if "text_full" in frame and "text_preview" not in frame:
        frame["text_preview"] = [text[:100] if isinstance(text, str) else text for text in frame["text_full"]]
    for name in PREDICTION_FIELDS:
        if name not in frame and name != "true_model_display":
            frame[name] = pd.Series(None, frame.index, object)
    return frame


def _null(value):
    return None if isinstance(value, str) and value.strip().lower() in NULLS else value


def _truth(value):
    if isinstance(value, str) and value.startswith("{") and (said := parse_yes_no(value)) is not None:
        return said
    return TRUTH.get(value.strip().lower(), _null(value)) if isinstance(value, str) else value


def _read_replies(path: Path, frame: pd.DataFrame) -> None:
    """Put texts in the place of replies that are answers without words; raise `InputError` for what is no reply.

    In yes/no tasks true, false, 1 and 0 are YES and NO, in pairs 1 and 2 the places; an object has to be the JSON of an
    answer or a block of text, a list of such.
    """
    yes_no, pair = (frame["task_type"].isin(tasks).tolist() for tasks in (CLAIMING[:1], PAIRS))
    for name in {"reply", "returned_text"} & {*frame}:
        values = [None if _missing(value) else value for value in frame[name]]
        for at, value in enumerate(values):
            if yes_no[at] and value in (True, False):
                values[at] = "YES" if value else "NO"
            elif pair[at] and not isinstance(value, bool) and value in (1, 2):
                values[at] = str(int(value))
            elif isinstance(value, dict) and is_answer(value):
                values[at] = json.dumps(value, ensure_ascii=False)
            elif not (value is None or isinstance(value, str) or _is_block(value)):
                raise InputError(
                    f"{path}, record {at + 1}: `{name}` is {value!r:.80}, and must be the words of a reply (in yes/no "
                    "tasks also true or false); give these, or the answer in `predicted_model` or `predicted_self`."
                )
        frame[name] = pd.Series(values, frame.index, object)


def _missing(value) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _is_block(value) -> bool:
    """Tell whether a value is a block of text of a reply, or a list of them."""
    if isinstance(value, list):
        return all(isinstance(part, str) or _is_block(part) for part in value)
    return isinstance(value, dict) and not {"type", "text", "content"}.isdisjoint(value)


def _listed(value):
    """Return names as a list; a CSV has "['a', 'b']" or "a;b"."""
    if not is_text(value):
        return value
    return yaml.safe_load(value) if value.lstrip().startswith("[") else re.split(r"\s*[;,|]\s*", value.strip())


def _share(value) -> bool:
    try:
        return 0 <= float(value) <= 1
    except ValueError:
        return False


READ = {  # field: how other forms of a value are read
    "predicted_model": _null,
    "predicted_self": _truth,
    "score": _null,
    "position": lambda value: (isinstance(value, str) and place(value)) or value,
    "candidates": _listed,
    "asked_again": _listed,
}
NAMING, CLAIMING, PAIRS = ("exact_model", "lineup"), ("binary_self", "pairwise_self"), ("pairwise_self",)
RULES = (  # field, tasks, what must hold of a value, in words
    ("task_type", (), TASKS.__contains__, f"must be one of {', '.join(TASKS)}"),
    ("text_id", TASKS, lambda value: not pd.isna(value), "must say which text was judged"),
    ("true_model", TASKS, is_text, "must be a non-empty text"),
    ("evaluator_model", TASKS, is_text, "must be a non-empty text"),
    ("predicted_model", NAMING, is_text, "must be a text or null"),
    ("predicted_self", CLAIMING, {True, False}.__contains__, "must be true, false or null (`reply` takes a YES or A)"),
    ("score", TASKS, _share, "must be a number from 0 to 1, P(the text is its own), or null"),
    ("other_model", PAIRS, is_text, "must name the author of the pair's other text"),
    ("position", PAIRS, place, "must say where the pair's own text stood, as 1 or 2, A or B, first or second"),
    ("position", ("lineup",), place_of_lineup, "must be the text's place in the lineup, from 1, or a letter from A"),
)
NULLABLE = ("predicted_model", "predicted_self", "score", "position")  # the last only where there is no reply to read


def _check_values(path: Path, frame: pd.DataFrame) -> None:
    """Put one form of a value in the place of others; raise `InputError` for a wrong one: record, rule and remedy."""
    for name, read in READ.items():
        old = frame[name].tolist() if name in frame else []
        if any(isinstance(value, str) for value in old) and (new := [*map(read, old)]) != old:
            frame[name] = pd.Series(new, frame.index, object)

    there = frame.reindex(columns=["reply", "returned_text", *NULLABLE]).notna()
    replied = there["reply"] | there["returned_text"]
    for name, tasks, ok, rule in RULES:
        rows = frame["task_type"].isin(tasks) | (not tasks)
        if name in NULLABLE:
            rows &= there[name] | (replied if name == "position" else False)
        if rows.any() and name not in frame:
            raise InputError(f"{path} lacks the field {name}: it {rule}; {WHERE}")
        for at, value in frame[name][rows].drop_duplicates().items() if name in frame else ():
            if not ok(value):
                shown = "null" if pd.isna(value) else f"{value!r:.80}"
                raise InputError(f"{path}, record {at + 1}: `{name}` is {shown}, and {rule}; {WHERE}")
    pairs = frame[frame["task_type"].isin(PAIRS)].reindex(columns=["evaluator_model", "true_model", "other_model"])
    for at, evaluator, own, _ in pairs[pairs["other_model"].eq(pairs["evaluator_model"])].head(1).itertuples():
        wrong = "wrote the pair's other text; give its own text and place in `true_model`, `text_id` and `position`"
        if own == evaluator:
            wrong = "wrote both texts of a pair, so which is its own has no answer; leave the pair out"
        raise InputError(f"{path}, record {at + 1}: the evaluator {evaluator!r} {wrong}.")


def _by_id(path: Path, frame: pd.DataFrame, authors: Mapping[str, str | None]) -> list[str]:
    """Put the ids of authors in the place of their labels and of other spellings; return what was taken for whom.

    A file may name evaluators, answers and candidates by the label or the registry's name of an author. Authors keep
    the names that `true_model` gives them, or `authors`. An answer that is a name of two authors is an error.
    """
    if authors:
        bearer = _bearer(frame, _owners(frame))
        said = {name_key(name): bearer(who or name) for name, who in authors.items()}
        _replace_names(frame, NAMES, lambda name: said.get(name_key(name), name))
    owners, exact = _owners(frame), _writers(frame)
    owner = _bearer(frame, owners)
    for name in {*frame["predicted_model"].dropna()} - exact:
        if isinstance(name, str) and owners.get(name_key(name), name) is None:
            raise InputError(f"{path} gives two authors the label {name!r}, which is an answer; give answers by id.")
    asked = {*frame["evaluator_model"]}
    same = {one: owner(one) for one in sorted(asked) if owner(one) != one and owner(one) not in asked}
    frame["evaluator_model"] = frame["evaluator_model"].replace(same)
    _replace_names(frame, ("predicted_model", "candidates"), owner)
    known = models()
    shown = frame["true_model"].map({author: known[author].display if author in known else author for author in exact})
    frame["true_model_display"] = frame.get("true_model_display", shown).fillna(shown)
    where, lettered = _named(path), _letters_as_names(frame)
    told = [f"{where}: the evaluator {one!r} is the author {author!r}." for one, author in same.items()]
    return told + [f"{where}: {lettered} answers are letters, read as places."] * bool(lettered)


def _said(frame: pd.DataFrame, names: set[str]) -> set[str]:
    """Return those of the names that stand in a field or in a reply, however they are typed."""
    if not names:
        return names
    fields = frame.reindex(columns=[*NAMES, "true_model_display", "reply", "returned_text"])
    words = {_letters(value) for field in fields for value in fields[field].explode().dropna().astype(str).unique()}
    text = "\n".join(words)
    return {name for name in names if _letters(str(name)) in text}


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _replace_names(frame: pd.DataFrame, fields: Iterable[str], of: Callable[[str], str]) -> None:
    """Put other names in the place of those in some fields, equal names looked up once."""
    of = cache(of)

    def replaced(value):
        return of(value) if isinstance(value, str) else value  # what is missing stays

    for field in {*fields} & {*frame}:
        lists = {id(value): [*map(replaced, value)] for value in frame[field] if isinstance(value, list)}
        frame[field] = [lists[id(value)] if isinstance(value, list) else replaced(value) for value in frame[field]]


def _bearer(frame: pd.DataFrame, owners: Mapping[str, str | None]) -> Callable[[str], str]:
    """Return what makes of a name the one author that bears it, or leaves it."""
    exact = _writers(frame)
    return lambda name: name if name in exact else owners.get(name_key(name)) or name


def _writers(frame: pd.DataFrame) -> set[str]:
    return {*frame["true_model"]} | ({*frame["other_model"].dropna()} if "other_model" in frame else set())


def _owners(frame: pd.DataFrame) -> dict[str, str | None]:
    """Return {a name's key: the author that bears it, None where two do}: ids, labels of the file, the registry's."""
    registered, label_of = _registered(), file_labels(frame)
    owners: dict[str, str | None] = {}
    for author in _writers(frame):
        model = models().get(author) or registered.get(name_key(author))
        listed = (model.id, *model.all_names) if model else ()
        for key in map(name_key, (author, author.rpartition("/")[2], *label_of.get(author, ()), *listed)):
            owners[key] = author if owners.get(key, author) == author else None
    return owners


def _registered() -> dict[str, Model]:
    return {name_key(name): model for model in models().values() for name in (model.id, *model.all_names)}


def _letters_as_names(frame: pd.DataFrame) -> int:
    """Put names in the place of answers that are letters: of the candidates shown, or of a pair; return how many.

    A letter that is somebody's name stays one.
    """
    found, writers, said = {}, _writers(frame), frame["predicted_model"]
    asked = frame.reindex(columns=["task_type", "true_model", "other_model", "position", "candidates"])
    for at in said.index[said.map(letter, na_action="ignore").notna() & ~said.isin(writers)]:
        task, true, other, position, shown = asked.loc[at]
        if task in PAIRS:
            shown = {1: [true, other], 2: [other, true]}.get(place(position))
        if isinstance(shown, list) and said[at] not in shown and (name := at_letter(said[at], shown)):
            found[at] = name
    frame.loc[[*found], "predicted_model"] = [*found.values()]
    return len(found)


def _called(frame: pd.DataFrame, authors: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return {id: further names} of what is said by hand, {name: []} of somebody else; raise for one who is nowhere."""
    bearers, called = {*_writers(frame), *frame["evaluator_model"]}, {}
    bearer = _bearer(frame, _owners(frame) if authors else {})
    for name, who in authors.items():
        found = bearer(str(who or name))
        if who and found not in bearers and name_key(found) not in _registered():
            raise InputError(
                f"`authors` says that {name!r} is {who!r}, who is no author of the records and no model of the "
                f"registry{did_you_mean(who, bearers)}; the authors are {', '.join(sorted(bearers))}."
            )
        called.setdefault(found, []).extend([name] * bool(who))
    return called


def _others(frame: pd.DataFrame, called: dict[str, list[str]]) -> list[str]:
    """Say which answers name nobody in the records; raise `InputError` for names that nobody knows.

    Counted are answers on record, and replies without one that are a name and nothing else; of these, what a model of
    the registry is called is added to `called`, to be read.
    """
    named, naming, pair = frame["predicted_model"], frame["task_type"].isin(NAMING), frame["task_type"].isin(PAIRS)
    writers, registered = _writers(frame), _registered()
    shown = frame["candidates"] if "candidates" in frame else pd.Series(None, frame.index, object)
    outside = naming & named.notna() & ~named.isin(writers)
    for at in outside.index[outside & shown.notna()]:
        outside[at] = not {named[at], frame["true_model"][at]} <= {*shown[at]}
    neither = pair & named.notna() & named.ne(frame["true_model"])
    neither &= named.ne(frame["other_model"]) if neither.any() else False
    bare = _bare_names(frame[naming & named.isna()], _owners(frame), called)
    bare = bare[shown[bare.index].isna()]
    alone = ~frame["evaluator_model"].isin(frame["evaluator_model"][naming & named.notna()])  # has replies alone
    replied = bare[alone[bare.index]]
    replied = replied[replied.groupby(replied).transform("size") >= REPEATED]

    somebody = {name_key(name) for name in [*registered, *called, *writers]}
    counts = Counter([*named[outside], *named[neither], *replied])
    if unknown := {name: n for name, n in counts.most_common() if name_key(name) not in somebody}:
        first = next(iter(unknown))
        [likely] = difflib.get_close_matches(first, sorted(writers), 1, 0)
        listed = " List in `candidates` who was shown, and letters are read as places." * bool(letter(first))
        raise InputError(
            f"Answers name {_times(unknown)}, whom neither the records (authors {', '.join(sorted(writers))}) nor the "
            f"registry know; say who that is: authors={{{first!r}: {likely!r}}} for one of the "
            f"authors, authors={{{first!r}: None}} for somebody else.{listed}"
        )
    read = [model.id for name in bare.unique() if (model := registered.get(name_key(name)))]
    called |= {name: called.get(name, []) for name in read}
    lost = bare[[name_key(name) not in somebody for name in bare]]
    return [
        f"Answers that {what}: {_times(Counter(names))}."
        for what, names in (
            ("name nobody in the records count as somebody else", [*named[outside], *bare.drop(lost.index)]),
            ("name neither author of their pair count as no answer", named[neither]),
            ("name nobody known count as no answer", lost),
        )
        if len(names)
    ]


def _bare_names(frame: pd.DataFrame, owners: Mapping[str, str | None], called: dict[str, list[str]]) -> pd.Series:
    """Return the replies that are a name and nothing else, of nobody in the records; add others' forms to `called`."""
    raw = frame.reindex(columns=["reply", "returned_text"]).astype(object)
    raw = raw["reply"].where(raw["reply"].notna(), raw["returned_text"])
    found = raw[raw.map(lambda reply: isinstance(reply, str))].map(cache(bare_name)).dropna().astype(object)
    whose = {key: author for key, author in owners.items() if author}
    whose |= {name_key(name): author for author, names in called.items() for name in (author, *names)}
    for name in found.unique():
        if author := whose.get(name_key(name)):
            called.setdefault(author, []).append(name)
    writers = _writers(frame)
    return found[[whose.get(name_key(name)) not in writers for name in found]]


def unread(frame: pd.DataFrame) -> list[str]:
    """Say which names of no author stand in replies that were read as no answer to who wrote a text.

    Counted are names in a position of authorship, and whole replies where the candidates are on record.
    """
    lacking = frame[frame["task_type"].isin(NAMING) & frame["predicted_model"].isna() & frame["reply"].notna()]
    shown = lacking["candidates"].notna() if "candidates" in lacking else pd.Series(False, lacking.index)
    replies = lacking["reply"]
    if (lineup := lacking["task_type"] == "lineup").any():
        entries = [lineup_entry(*row) for row in zip(replies, lacking["position"].map(place_of_lineup), strict=True)]
        replies = replies.mask(lineup, pd.Series(entries, lacking.index, object))
    alone = replies[shown].map(cache(bare_name)).dropna()
    alone = alone[alone.map(lambda name: len(name) > 1 and name[0].isupper())]
    named = replies.drop(alone.index).map(cache(credited_name)).dropna()
    known = {*_owners(frame), *(name_key(name) for name in frame.attrs.get("called", ()))}
    names = Counter(name for name in [*alone, *named] if name_key(name) not in known)
    if not names:
        return []
    first = names.most_common(1)[0][0]
    [likely] = difflib.get_close_matches(first, sorted(_writers(frame)), 1, 0)
    return [
        f"Replies without an answer name {_times(names)}; if that is one of the authors, say so, as "
        f"authors={{{first!r}: {likely!r}}}, and authors={{{first!r}: None}} if it is somebody else."
    ]


def _times(counts: Mapping[str, int]) -> str:
    shown = [f"{name!r} ({n} time{'s' * (n != 1)})" for name, n in [*Counter(counts).most_common(9)]]
    return ", ".join(shown) + f" and {len(counts) - 9} more" * (len(counts) > 9)


def file_labels(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return {author: its labels in the file}."""
    if "true_model_display" not in frame:
        return {}
    named = frame[frame["true_model_display"].map(is_text)]
    return named.groupby("true_model")["true_model_display"].agg(lambda found: [*found.unique()]).to_dict()


def _repeats(frame: pd.DataFrame) -> pd.Index:
    """Return which records repeat an earlier one in question and answer, as after a resumed run."""
    fields = [name for name in FIELDS if name in frame and name not in ("is_correct", *ABOUT)]
    alike = frame.loc[frame.duplicated([name for name in fields if name in PLAIN], keep=False), fields]
    nested = {name: alike[name].map(repr, na_action="ignore") for name in fields if name not in PLAIN}
    return alike.index[alike.assign(**nested).duplicated()]
