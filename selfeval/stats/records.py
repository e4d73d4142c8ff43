"""Prediction records to integer codes and counts: what every statistic of recognition starts from.

Rows are never dropped: no answer stays a row without an answer. Each distinct (task, condition) is one `Tally`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.scoring import place

NAMING, BINARY, PAIRWISE = ("exact_model", "lineup"), "binary_self", "pairwise_self"
TASKS = (*NAMING, BINARY, PAIRWISE)
NONE, NOT_SELF = "none", "not_self"  # labels in confusion tables: no answer; the answer "not mine"


@dataclass(frozen=True, eq=False)
class Tally:
    """The rows of one task under one condition, as codes.

    prompt, evaluator, author, answer, other, position: one integer per row. `answer` is -1 for no answer; the
    author's index, or len(authors) for a name outside them (naming tasks); 1 for "mine" and 0 for "not mine" (the
    others). `own` maps evaluators to their author index, -1 for one that wrote nothing.

    Pairs have `position` (1 or 2, where the own text stood, 0 unknown) and `pair`, one code for the same two texts;
    their authors are the rivals. Rows of neutral judges, who wrote neither text, are a tally of their own (`neutral`):
    there `author` wrote the first-named text, which `answer` and `position` are about, and `other` the second. Where
    such judges saw pairs of an evaluator, `shared` marks its rows of these pairs and `against` has the judges' rows as
    if they were the evaluator's.
    """

    task: str
    condition: str
    evaluators: np.ndarray
    authors: np.ndarray
    own: np.ndarray
    n_prompts: int
    prompt: np.ndarray
    evaluator: np.ndarray
    author: np.ndarray
    answer: np.ndarray
    score: np.ndarray
    other: np.ndarray
    position: np.ndarray
    note: str = ""
    pair: np.ndarray | None = None
    neutral: bool = False
    shared: np.ndarray | None = None
    against: Tally | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Prompts, evaluators, authors."""
        return self.n_prompts, len(self.evaluators), len(self.authors)

    def count(self, rows=None, weights=None, author=None) -> np.ndarray:
        """Count rows (a mask), or sum weights, by prompt, evaluator and author (or another author-like code)."""
        author = self.author if author is None else author
        cell = (self.prompt * self.shape[1] + self.evaluator) * self.shape[2] + author
        if rows is not None:
            cell = cell[rows]
        return np.bincount(cell, weights, minlength=np.prod(self.shape)).reshape(self.shape)

    def both_sides(self) -> Tally:
        """Return the rows of neutral judges once about each of their two texts."""
        answer = np.where(self.answer < 0, -1, 1 - self.answer)
        position = np.where(self.position == 0, 0, 3 - self.position)
        turned = {"author": self.other, "other": self.author, "answer": answer, "position": position,
                  "score": 1 - self.score}  # fmt: skip
        same = {name: getattr(self, name) for name in ("prompt", "evaluator", "pair")}
        both = {name: np.concatenate([getattr(self, name), x]) for name, x in (turned | same).items()}
        return replace(self, **both)

    def by_place(self) -> Tally:
        """Return pairs as a task of scores: P(the first text is one's own), on pairs with the own text first or not."""
        first = np.select([self.position == 1, self.position == 2], [self.score, 1 - self.score], np.nan)
        return replace(self, author=self.position, own=np.ones(len(self.evaluators), int), score=first)


def condition_label(condition) -> str:
    """Write a condition (mapping, "k=v;k=v" text or null) in one form: keys sorted, true and false in lower case."""
    if isinstance(condition, dict):
        parts = [f"{k}={'' if v is None else v}" for k, v in condition.items()]
    elif condition is None or condition is pd.NA or condition != condition:
        return ""
    else:
        parts = [part.strip() for part in str(condition).split(";") if part.strip()]
    pairs = [part.partition("=") for part in parts]
    return ";".join(sorted(k + s + (v.lower() if v in ("True", "False") else v) for k, s, v in pairs))


def varying_parts(conditions: Iterable[str]) -> dict[str, str]:
    """Return {condition label: what of it is not the same in all of them}."""
    parts = {condition: str(condition).split(";") for condition in conditions}
    common = set.intersection(*map(set, parts.values())) if parts else set()
    return {condition: ";".join(p for p in of if p not in common) for condition, of in parts.items()}


def _conditions(frame: pd.DataFrame) -> pd.Categorical:
    """Return the condition labels of the rows; text is normalised once per distinct value."""
    if "condition" not in frame:
        return pd.Categorical([""] * len(frame))
    try:
        codes, unique = pd.factorize(frame["condition"])
    except TypeError:  # mappings
        return pd.Categorical([condition_label(c) for c in frame["condition"]])
    labels = np.array([*map(condition_label, unique), ""], object)
    return pd.Categorical(labels[codes])


def truth_codes(values: pd.Series, column: str) -> np.ndarray:
    """Return 1, 0 or -1 (null) for True, False and null, as booleans, numbers or text."""
    codes, unique = _codes(values, column)
    table = {"true": 1, "1": 1, "1.0": 1, "false": 0, "0": 0, "0.0": 0, "": -1, "none": -1, "null": -1, "nan": -1}
    try:
        mapped = [table[str(value).strip().lower()] for value in unique]
    except KeyError as error:
        raise InputError(f"Column `{column}` must hold true, false or null, got {error.args[0]!r}.") from None
    return np.append(np.array(mapped, int), -1)[codes]


def check_frame(frame, what: str) -> None:
    """Raise `InputError` unless records are a table with rows, whose columns have names of their own."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{what} must be a pandas DataFrame, got {type(frame).__name__}.")
    if frame.empty:
        raise InputError(f"There are no {what[0].lower()}{what[1:]} to analyse.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(f"{what} have the column `{twice}` twice; keep one.")


def _codes(values: pd.Series, column: str, **options) -> tuple[np.ndarray, pd.Index]:
    """Return `pd.factorize` of a column; a list or an object in it is an error."""
    try:
        return pd.factorize(values, **options)
    except TypeError:
        raise InputError(f"Column `{column}` must hold texts, numbers or nulls, and no list or object.") from None


def same_codes(values: pd.Series, column: str) -> np.ndarray:
    """Return one code per distinct value, -1 for null; 1, 1.0 and "1" are one value, as files of two kinds have it."""
    codes, unique = _codes(values, column)
    if not pd.api.types.is_numeric_dtype(unique):
        names = [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in unique]
        codes = np.append(pd.factorize(np.array(names, object))[0], -1)[codes]
    return codes


def shares(values: pd.Series, column: str) -> np.ndarray:
    """Return a column of numbers in [0, 1], NaN for null."""
    try:
        numbers = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
    except TypeError:  # lists, objects
        numbers = np.full(len(values), np.nan)
    wrong = values.notna().to_numpy() & ~((numbers >= 0) & (numbers <= 1))
    for value in values[wrong].tolist():
        if not isinstance(value, str) or value.strip():  # a blank is null
            raise InputError(f"Column `{column}` must hold numbers from 0 to 1 or null, got {value!r}.")
    return numbers


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    if name not in frame:
        raise InputError(f"Column `{name}` is missing from the predictions; found {', '.join(map(str, frame))}.")
    return frame[name]


def ids(frame: pd.DataFrame, name: str) -> pd.Categorical:
    """Return a column of ids as a categorical in sorted order; a null is an error."""
    codes, unique = _codes(_column(frame, name), name, sort=True)
    if (codes < 0).any():
        raise InputError(f"Column `{name}` must not be null, but row {int(np.argmax(codes < 0))} is.")
    return pd.Categorical.from_codes(codes, unique)


def _prompts(frame: pd.DataFrame) -> tuple[np.ndarray, str]:
    """Return cluster codes from prompt_id, else the prompt's text; where no row has any, the text itself (and a note).

    Some rows with a prompt and some without are an error: with texts as clusters for all, no cluster would hold both
    own and others' texts.
    """
    given = {name: frame[name].notna() & (frame[name] != "") for name in ("prompt_id", "prompt_used") if name in frame}
    given = {name: rows for name, rows in given.items() if rows.any()}
    for name, rows in given.items():
        if rows.all():
            return same_codes(frame[name], name), ""
    if given:
        name, rows = max(given.items(), key=lambda item: item[1].sum())
        first = int(np.argmin(rows))
        raise InputError(
            f"Column `{name}` is empty in {len(rows) - rows.sum()} of {len(rows)} rows (the first is row {first}, "
            f"text_id {frame['text_id'].iloc[first]}), but texts on one prompt are analysed together: fill in the "
            "prompt of these rows, or leave `prompt_id` and `prompt_used` empty in all rows, so that each text counts "
            "as a cluster of its own."
        )
    return same_codes(frame["text_id"], "text_id"), "clusters_are_texts"


def _named(frame: pd.DataFrame, authors: pd.Index) -> pd.Series:
    """Return `predicted_model` without spaces around a name, but where an author's id has them."""
    names = _column(frame, "predicted_model")
    codes, unique = _codes(names, "predicted_model")
    plain = [name if name in authors or not isinstance(name, str) else name.strip() for name in unique]
    return pd.Series(np.array([*plain, None], object)[codes], names.index)


def _answers(frame: pd.DataFrame, task: np.ndarray, authors: pd.Index) -> tuple[np.ndarray, np.ndarray]:
    """Return the answer code of each row, and the name codes of naming tasks with their labels last."""
    answer = np.full(len(frame), -1)
    naming = np.isin(task, NAMING)
    if naming.any():
        codes, unique = _codes(_named(frame, authors), "predicted_model")
        index = authors.get_indexer(pd.Index(unique))
        index[index < 0] = len(authors)
        index[pd.Index(unique) == ""] = -1
        answer[naming] = np.append(index, -1)[codes[naming]]
    if not naming.all():
        answer[~naming] = truth_codes(_column(frame, "predicted_self")[~naming], "predicted_self")
    return answer, naming


def _positions(frame: pd.DataFrame, pairs: np.ndarray) -> np.ndarray:
    """Return 1 or 2 where a text of a pair stood, 0 for null and for the place in a lineup, which may be beyond 2."""
    if "position" not in frame:
        return np.zeros(len(frame), int)
    codes, unique = _codes(frame["position"], "position")
    words = [str(value).strip().lower().removesuffix(".0") for value in unique]
    places = [place(word) or 0 for word in words]
    of_pairs = {words[code] for code in np.unique(codes[pairs]) if code >= 0 and not places[code]}
    if wrong := sorted(of_pairs - {""} | {"0"} & {*words}):
        raise InputError(f"Column `position` must hold 1 or 2 (first or second) or null, got {wrong[0]!r}.")
    return np.append(places, 0).astype(int)[codes]


def _check_unique(frame: pd.DataFrame, group: np.ndarray, evaluator: pd.Categorical, labels: pd.DataFrame) -> None:
    """Raise on the first item that one evaluator has twice under one task and condition.

    Some files count texts anew per author or prompt: texts that differ in more than the id are different texts.
    """
    key = group * len(evaluator.categories) + evaluator.codes
    key = _refined(key, frame, ("text_id", "position", "other_text_id", "other_model", "repeat"))
    twice = pd.Series(key).duplicated().to_numpy()
    if twice.any():
        text = ("true_model", "prompt_id", "prompt_used", "sample", "text_full", "text_preview")
        twice = pd.Series(_refined(key, frame, text)).duplicated().to_numpy()
    if twice.any():
        row = int(np.argmax(twice))
        task, condition = labels.iloc[group[row]]
        raise InputError(
            f"Evaluator {evaluator[row]!r} has text_id {frame['text_id'].iloc[row]} twice under task {task!r}, "
            f"condition {condition!r} (row {row}): say what tells the two apart, in `repeat` for "
            "questions put several times or in `condition` (`columns: {theirs: repeat}` of 03 names a field for it), "
            "for files of two conditions with `predictions: {path: {hints: true}}`."
        )


def neutral_rows(frame: pd.DataFrame) -> pd.Series:
    """Return which rows are pairs of which their evaluator wrote neither text."""
    wrote = [frame[column] == frame["evaluator_model"] for column in ("true_model", "other_model") if column in frame]
    return (frame["task_type"] == PAIRWISE) & ~np.logical_or.reduce(wrote)


def _refined(key: np.ndarray, frame: pd.DataFrame, names: Iterable[str]) -> np.ndarray:
    """Return codes that tell rows apart by further columns too, where the records have them."""
    for name in names:
        if name in frame:
            codes = same_codes(frame[name], name) + 1  # null is a value here
            key = pd.factorize(key)[0] * np.int64(codes.max() + 1) + codes
    return key


def tallies(predictions: pd.DataFrame) -> Iterator[Tally]:
    """Yield one Tally for each (task, condition) of the prediction records, checked, in sorted order."""
    check_frame(predictions, "Prediction records")
    frame = predictions.reset_index(drop=True)
    _column(frame, "text_id")
    task, evaluator, author = (ids(frame, name) for name in ("task_type", "evaluator_model", "true_model"))
    unknown = sorted(set(task.categories) - set(TASKS))
    if unknown:
        raise InputError(f"Column `task_type` must be one of {', '.join(TASKS)}, got {unknown[0]!r}.")
    condition = _conditions(frame)
    group = task.codes.astype(np.int64) * len(condition.categories) + condition.codes
    present = np.unique(group)
    group = np.searchsorted(present, group)
    labels = pd.DataFrame(
        {
            "task": task.categories[present // len(condition.categories)],
            "condition": condition.categories[present % len(condition.categories)],
        }
    )
    _check_unique(frame, group, evaluator, labels)
    prompt, note = _prompts(frame)
    answer, _ = _answers(frame, np.asarray(task), author.categories)
    position = _positions(frame, np.asarray(task == PAIRWISE))
    score = shares(frame["score"], "score") if "score" in frame else np.full(len(frame), np.nan)
    score = score.copy()  # rows of pairs may be turned round
    pairs = np.flatnonzero(task == PAIRWISE)
    asked = _pairs(frame.iloc[pairs], pairs, prompt, answer, position, score) if len(pairs) else None
    for g, (name, label) in enumerate(labels.itertuples(index=False)):
        rows = np.flatnonzero(group == g) if len(labels) > 1 else slice(None)
        about = str(name), str(label), note
        if name == PAIRWISE:
            columns = evaluator, prompt, answer, position, score
            yield from _pair_tallies(asked, about, np.flatnonzero(group == g), *columns)
        else:
            yield _tally(*about, rows, evaluator, author, prompt, answer, score, position)


def _tally(task, condition, note, rows, evaluator, author, prompt, answer, score, position) -> Tally:
    """Recode one group's rows to the evaluators, authors and prompts that occur in it."""
    who, e = np.unique(evaluator.codes[rows], return_inverse=True)
    wrote, t = np.unique(author.codes[rows], return_inverse=True)
    authors = np.asarray(author.categories[wrote], object)
    a = answer[rows]
    if task in NAMING:  # codes of all authors of the file -> of this group, others are outside
        recode = np.full(len(author.categories) + 2, len(wrote))
        recode[wrote], recode[-1] = np.arange(len(wrote)), -1
        a = recode[a]
    seen, p = np.unique(prompt[rows], return_inverse=True)
    evaluators = np.asarray(evaluator.categories[who], object)
    own = pd.Index(authors).get_indexer(pd.Index(evaluators))
    return Tally(
        task, condition, evaluators, authors, own, len(seen), p, e, t, a, score[rows], np.full(len(p), -1),
        position[rows], note,
    )  # fmt: skip


@dataclass(eq=False)
class _Pairs:
    """Who wrote the two texts of each row, the own one (of a neutral judge the first-named) first, and which they are.

    Codes are of `names`; -1 where a row is no pair, and where the other author is not known.
    """

    names: pd.Index
    first: np.ndarray
    second: np.ndarray
    pair: np.ndarray
    neutral: np.ndarray


def _pairs(frame: pd.DataFrame, rows, prompt, answer, position, score) -> _Pairs:
    """Read who wrote what from the rows of pairs; `answer`, `position` and `score` are turned to the own text in place.

    A row is about the text of `text_id`, by `true_model`. Where the other text is the evaluator's own, the row is
    turned round; where neither is, all rows of a pair are turned to one of its texts. What was chosen of texts that
    `true_model` does not say to be the evaluator's, `predicted_model` says, if it is one of the two authors.
    """
    none = pd.Series(None, frame.index, object)
    columns = [frame["true_model"], frame.get("other_model", none), frame["evaluator_model"]]
    codes, names = _codes(pd.concat(columns), "other_model", sort=True)
    first, second, judge = np.split(codes, 3)
    foreign = first != judge
    turned, neutral = foreign & (second == judge), foreign & (second != judge)
    if (neutral & (second < 0)).any():
        raise InputError(
            f"Row {rows[np.argmax(neutral & (second < 0))]} is a pair whose `true_model` is not its evaluator, and "
            "`other_model` is null; say there who wrote the other text."
        )
    if "predicted_model" in frame:
        named = names.get_indexer(pd.Index(frame["predicted_model"]))
        chosen = np.where(named == first, 1, np.where(named == second, 0, -1))
        answer[rows] = np.where(foreign & (named >= 0) & (chosen >= 0), chosen, answer[rows])
    ids = [same_codes(pd.concat([frame["text_id"], frame.get("other_text_id", none)]), "other_text_id")]
    ids = ids[0] if (ids[0] >= 0).all() else np.tile(prompt[rows], 2)  # else the two authors' texts on a prompt
    sides = pd.MultiIndex.from_arrays([np.concatenate([first, second]), ids]).factorize()[0].reshape(2, -1)
    pair = pd.MultiIndex.from_arrays(np.sort(sides, 0)).factorize()[0]
    turned |= neutral & (sides[0] > sides[1])
    at = rows[turned]
    answer[at] = np.where(answer[at] < 0, -1, 1 - answer[at])
    position[at] = np.where(position[at] == 0, 0, 3 - position[at])
    score[at] = 1 - score[at]
    first[turned], second[turned] = second[turned], first[turned]
    whole = np.full((3, len(answer)), -1)
    whole[:, rows] = first, second, pair
    is_neutral = np.zeros(len(answer), bool)
    is_neutral[rows] = neutral
    return _Pairs(names, *whole, is_neutral)


def _pair_tallies(asked: _Pairs, about, rows, *columns) -> Iterator[Tally]:
    """Yield the tally of the evaluators' own pairs, then that of neutral judges, where there are any."""
    neutral = asked.neutral[rows]
    mine, theirs = (_pair_tally(asked, about, rows[neutral == kind], kind, *columns) for kind in (False, True))
    if mine and theirs:
        sides = theirs.both_sides()
        subject = pd.Index(mine.evaluators).get_indexer(pd.Index(theirs.authors))[sides.author]
        pairs = asked.pair.max() + 1
        mine_key, key = mine.evaluator * pairs + mine.pair, np.where(subject < 0, -1, subject * pairs + sides.pair)
        known, first = np.unique(mine_key, return_index=True)
        at = np.minimum(np.searchsorted(known, key), len(known) - 1)
        hit = known[at] == key
        row = first[at[hit]]
        same = {name: getattr(mine, name)[row] for name in ("prompt", "evaluator", "author", "other", "pair")}
        turned = {name: getattr(sides, name)[hit] for name in ("answer", "position", "score")}
        mine = replace(mine, shared=np.isin(mine_key, key), against=replace(mine, **same, **turned))
    yield from filter(None, (mine, theirs))


def _pair_tally(asked, about, rows, neutral, evaluator, prompt, answer, position, score) -> Tally | None:
    if not len(rows):
        return None
    wrote, codes = np.unique(np.stack([asked.first[rows], asked.second[rows]])[int(not neutral) :], return_inverse=True)
    codes = codes.reshape(-1, len(rows))  # of the own pairs the rivals alone: the own text is in every one
    authors = np.array([asked.names[i] if i >= 0 else "" for i in wrote], object)
    who, e = np.unique(evaluator.codes[rows], return_inverse=True)
    seen, p = np.unique(prompt[rows], return_inverse=True)
    evaluators = np.asarray(evaluator.categories[who], object)
    own = pd.Index(authors).get_indexer(pd.Index(evaluators))
    return Tally(
        *about[:2], evaluators, authors, own, len(seen), p, e, codes[0], answer[rows], score[rows], codes[-1],
        position[rows], about[2], asked.pair[rows], neutral,
    )  # fmt: skip


def unreached(predictions: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return (task, condition, evaluator) wherever no call brought a reply: every `status` is error."""
    if "status" not in predictions:
        return []
    names = [
        predictions["task_type"].astype(str),
        _conditions(predictions).astype(object),
        predictions["evaluator_model"],
    ]
    failed = pd.Series((predictions["status"] == "error").to_numpy())
    failed = failed.groupby([pd.Series(np.asarray(name, object)) for name in names]).all()
    return list(failed.index[failed])


def reached(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the records without evaluators whose every call failed: these are no models that claim nothing."""
    failed = unreached(predictions)
    if not failed:
        return predictions
    names = [predictions["task_type"].astype(str), _conditions(predictions).astype(object)]
    who = pd.MultiIndex.from_arrays([*map(np.asarray, names), predictions["evaluator_model"]])
    return predictions[~who.isin(failed)]


def confusion(predictions: pd.DataFrame) -> pd.DataFrame:
    """Count answers: task, condition, evaluator, author, predicted, n; one row per combination that occurs.

    `predicted` is the name given (also one outside the candidates), "none" for no answer; in the binary task the
    evaluator's own id for "mine" and "not_self" for "not mine". Pairs are not in it.
    """
    list(tallies(predictions))  # the same checks as everywhere
    frame = predictions.reset_index(drop=True)
    task = frame["task_type"].astype(str).to_numpy()
    evaluator = frame["evaluator_model"].astype(str).to_numpy()
    predicted = np.full(len(frame), NONE, object)
    naming, binary = np.isin(task, NAMING), task == BINARY
    if naming.any():
        names = _named(frame, pd.Index(frame["true_model"].unique()))
        given = naming & names.notna().to_numpy() & (names != "").to_numpy()
        predicted[given] = names[given].astype(str)
    if binary.any():
        truth = truth_codes(frame["predicted_self"], "predicted_self")
        predicted[binary & (truth == 1)] = evaluator[binary & (truth == 1)]
        predicted[binary & (truth == 0)] = NOT_SELF
    condition = _conditions(frame).astype(object)
    long = pd.DataFrame(
        {"task": task, "condition": condition, "evaluator": evaluator, "author": frame["true_model"].astype(str),
         "predicted": predicted}
    )[naming | binary]  # fmt: skip
    return long.groupby([*long], sort=True).size().rename("n").reset_index()
