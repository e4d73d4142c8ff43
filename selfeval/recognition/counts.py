"""Prediction records to integer codes and counts: what every statistic of recognition starts from.

Rows are never dropped: no answer stays a row without an answer. Each distinct (task, condition) is one `Tally`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from selfeval.condition import conditions, names_author
from selfeval.errors import InputError
from selfeval.records.columns import same_codes, shares, truth_codes

NAMING, BINARY, PAIRWISE = ("exact_model", "lineup"), "binary_self", "pairwise_self"
NONE, NOT_SELF = "none", "not_self"  # labels in confusion tables: no answer; the answer "not mine"
SCORED = 0.9  # share of an evaluator's rows that must have a score before one speaks of them
OPTIONAL = ("predicted_model", "predicted_self", "score", "position", "other_model", "other_text_id")
ASKED = ("text_id", "position", "other_text_id", "other_model", "repeat")  # what tells an evaluator's questions apart
TEXT = ("true_model", "prompt_id", "prompt_used", "sample", "text_full", "text_preview")


@dataclass(frozen=True, eq=False)
class Tally:
    """The rows of one task under one condition, as codes.

    prompt, evaluator, author, answer, position: one integer per row. `answer` is -1 for no answer; the author's index,
    or len(authors) for a name outside them (naming tasks); 1 for "mine" and 0 for "not mine" (the others). `own` maps
    evaluators to their author index, -1 for one that wrote nothing.

    Pairs have `position` (1 or 2, where the own text stood, 0 unknown) and `pair`, one code for an evaluator and its
    two texts; their authors are the rivals. Rows of neutral judges, who wrote neither text, are a tally of their own
    (`neutral`); where such judges saw pairs of an evaluator, `against` has their rows as if they were the evaluator's.
    Where judges were asked for an author by name (`by_name`), their answers are 1 for that author's text, and
    `as_neutral` has the rows in which the evaluators themselves were neutral.
    """

    task: str
    condition: str
    note: str
    evaluators: np.ndarray
    authors: np.ndarray
    own: np.ndarray
    n_prompts: int
    prompt: np.ndarray
    evaluator: np.ndarray
    author: np.ndarray
    answer: np.ndarray
    score: np.ndarray
    position: np.ndarray
    pair: np.ndarray
    neutral: bool = False
    against: Tally | None = None
    as_neutral: Tally | None = None

    @property
    def by_name(self) -> bool:
        """Whether judges of pairs were asked for an author by name."""
        return names_author(self.condition)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Prompts, evaluators, authors."""
        return self.n_prompts, len(self.evaluators), len(self.authors)

    @property
    def heard(self) -> np.ndarray:
        """Which evaluators gave any answer."""
        return np.bincount(self.evaluator, self.answer >= 0, len(self.evaluators)) > 0

    def count(self, rows=None, weights=None, author=None) -> np.ndarray:
        """Count rows (a mask), or sum weights, by prompt, evaluator and author (or another author-like code)."""
        author = self.author if author is None else author
        cell = (self.prompt * self.shape[1] + self.evaluator) * self.shape[2] + author
        if rows is not None:
            cell = cell[rows]
        return np.bincount(cell, weights, minlength=np.prod(self.shape)).reshape(self.shape)

    def kept(self, rows) -> Tally:
        """Return the tally of some rows (a mask or indices), with all its evaluators, authors and prompts."""
        names = ("prompt", "evaluator", "author", "answer", "score", "position", "pair")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def scored(self) -> tuple[Tally, list]:
        """Return the tally without scores of evaluators that are partly scored, and the note that says so.

        Where more than a tenth of an evaluator's rows have no score, the others are a selection by the replies.
        """
        evaluators = len(self.evaluators)  # the last of them may have no rows here
        known = np.bincount(self.evaluator, ~np.isnan(self.score), evaluators)
        partly = (known > 0) & (known < SCORED * np.bincount(self.evaluator, minlength=evaluators))
        return replace(self, score=np.where(partly[self.evaluator], np.nan, self.score)), [(partly, "partly_scored")]

    def by_place(self) -> Tally:
        """Return pairs as a task of scores: P(the first text is its own), on pairs with the own text first or not."""
        first = np.select([self.position == 1, self.position == 2], [self.score, 1 - self.score], np.nan)
        return replace(self, author=self.position, own=np.ones(len(self.evaluators), int), score=first)


# ---------------------------------------------------------------------------------------------------------------
# Columns


def prompts(frame: pd.DataFrame) -> tuple[np.ndarray, str]:
    """Return cluster codes from prompt_id, else the prompt's text; where no row has any, the text itself (and a note).

    Some rows with a prompt and some without are an error: with texts as clusters for all, no cluster would hold both
    own and others' texts.
    """
    given = {name: frame[name].notna() & (frame[name] != "") for name in ("prompt_id", "prompt_used") if name in frame}
    for name, rows in given.items():
        if rows.all():
            return same_codes(frame[name]), ""
    for name, rows in given.items():
        if rows.any():
            empty = f"is empty in {(~rows).sum()} of {len(rows)} rows (the first is row {rows.argmin()})"
            raise InputError(f"Column `{name}` {empty}: give the prompt of all rows, or of none.")
    return same_codes(frame["text_id"]), "clusters_are_texts"


def _check_unique(frame: pd.DataFrame) -> None:
    """Raise on the first item that one evaluator has twice under one task and condition.

    Some files count texts anew per author or prompt: texts that differ in more than the id are different texts.
    """
    asked = ["task_type", "condition", "evaluator_model", *(name for name in ASKED if name in frame)]
    again = frame.assign(text_id=same_codes(frame["text_id"]))
    again = again[again.duplicated(asked, keep=False)]
    for row in again.index[again.duplicated([*asked, *(name for name in TEXT if name in frame)])][:1]:
        task, condition, evaluator, text = frame.loc[row, [*asked[:3], "text_id"]]
        twice = f"Evaluator {evaluator!r} has text_id {text} twice under task {task!r}, condition {condition!r}"
        raise InputError(f"{twice} (row {row}): say in `repeat` or in `condition` what tells the two apart.")


# ---------------------------------------------------------------------------------------------------------------
# Tallies


def tallies(predictions: pd.DataFrame | Iterable[Tally]) -> Iterator[Tally]:
    """Yield one Tally for each (task, condition) of the prediction records, in sorted order; tallies stay as they are.

    Of pairs it is that of the evaluators' own, then that of neutral judges, where there are any. Values are those that
    `read_predictions` has checked; here, that nothing is in the table twice.
    """
    if not isinstance(predictions, pd.DataFrame):
        yield from predictions
        return
    frame = predictions.reset_index(drop=True).assign(condition=conditions(predictions).array)
    _check_unique(frame)
    prompt, note = prompts(frame)
    frame = frame.reindex(columns=[*dict.fromkeys([*frame, *OPTIONAL])])
    named = frame["predicted_model"]
    rows = pd.DataFrame({
        "evaluator": frame["evaluator_model"], "author": frame["true_model"], "prompt": prompt, "pair": -1,
        "named": named.mask(named == ""), "score": shares(frame["score"], "score"),
        "position": pd.to_numeric(frame["position"], errors="coerce").where(lambda p: p.isin([1, 2]), 0).astype(int),
    })  # fmt: skip
    for (kind, condition), part in frame.groupby(["task_type", "condition"], observed=True):
        about, of = (str(kind), str(condition), note), rows.loc[part.index]
        if kind in NAMING:
            yield _tally(about, of.assign(answer=-1))
            continue
        of["answer"] = truth_codes(part["predicted_self"], "predicted_self")
        yield from _pair_tallies(about, of, part) if kind == PAIRWISE else [_tally(about, of)]


def _tally(about: tuple, rows: pd.DataFrame, **more) -> Tally:
    """Return the tally of rows, as codes of the evaluators, authors and prompts that occur in them."""
    (evaluator, evaluators), (author, authors), (prompt, seen) = (
        pd.factorize(rows[name].to_numpy(), sort=True) for name in ("evaluator", "author", "prompt")
    )
    answer = rows["answer"].to_numpy()
    if about[0] in NAMING:
        answer = pd.Index(authors).get_indexer(rows["named"])
        answer = np.where((answer < 0) & rows["named"].notna(), len(authors), answer)
    own = pd.Index(authors).get_indexer(pd.Index(evaluators))
    columns = (rows[name].to_numpy() for name in ("score", "position", "pair"))
    return Tally(*about, evaluators, authors, own, len(seen), prompt, evaluator, author, answer, *columns, **more)


def neutral_rows(frame: pd.DataFrame) -> pd.Series:
    """Return which rows are pairs of which their evaluator wrote neither text."""
    wrote = [frame[column] == frame["evaluator_model"] for column in ("true_model", "other_model") if column in frame]
    return (frame["task_type"] == PAIRWISE) & ~np.logical_or.reduce(wrote)


def _pair_tallies(about: tuple, rows: pd.DataFrame, part: pd.DataFrame) -> Iterator[Tally]:
    """Yield the tally of the evaluators' own pairs, then that of neutral judges, where there are any.

    A row is about the text of `text_id`, by `true_model`, and the other way round about the pair's other text, unless a
    neutral judge was asked for the text of `true_model` by name: then its answer is right or wrong, from either side.
    What was chosen of texts that `true_model` does not say to be the evaluator's, `predicted_model` says, if it is one
    of the two authors. Authors of whom there are neutral judgements alone have these as rows of their own.
    """
    rows = rows.astype({"evaluator": object, "author": object}).assign(other=part["other_model"].fillna(""))
    neutral = neutral_rows(part)
    says = (rows["author"] != rows["evaluator"]) & (
        (rows["named"] == rows["author"]) | (rows["named"] == rows["other"])
    )
    rows["answer"] = rows["answer"].mask(says, (rows["named"] == rows["author"]).astype(int))
    by_name = names_author(about[1])
    turned = rows.assign(author=rows["other"], other=rows["author"])
    turn = turned.index[~(neutral & by_name)]
    turned.loc[turn, "score"] = 1 - rows["score"]
    turned.loc[turn, "answer"] = rows["answer"].where(rows["answer"] < 0, 1 - rows["answer"])
    turned.loc[turn, "position"] = rows["position"].where(rows["position"] == 0, 3 - rows["position"])
    sides = pd.concat([rows, turned])
    texts = same_codes(pd.concat([part["text_id"], part["other_text_id"]]))
    texts = texts if (texts >= 0).all() else sides["prompt"]  # else the two authors' texts on a prompt
    text = pd.MultiIndex.from_arrays([sides["author"], texts]).factorize()[0].reshape(2, -1)
    sides["pair"] = np.tile(pd.MultiIndex.from_arrays(np.sort(text, 0)).factorize()[0], 2)
    own, judged, key = sides[sides["author"] == sides["evaluator"]], sides[np.tile(neutral, 2)], ["evaluator", "pair"]
    judged, against = judged.assign(evaluator=judged["author"]), None
    if len(own):
        judged = judged[pd.MultiIndex.from_frame(judged[key]).isin(pd.MultiIndex.from_frame(own[key]))]
        alone = rows[neutral & by_name & rows["evaluator"].isin(own["evaluator"])]
        yield _own_pairs(about, [own, judged, alone])
    elif not by_name:
        against = _own_pairs(about, [judged])
    if neutral.any():
        yield _tally(about, rows[neutral], neutral=True, against=against)


def _own_pairs(about: tuple, parts: list[pd.DataFrame]) -> Tally:
    """Return the tally of an evaluator's own pairs with those of the other parts, by rival: `against`, `as_neutral`."""
    every = pd.concat(parts).assign(author=lambda f: f["other"])
    every = _tally(about, every.assign(pair=every.groupby(["evaluator", "pair"]).ngroup()))
    ends = np.cumsum([len(part) for part in parts])
    own, *others = (every.kept(slice(end - len(part), end)) for part, end in zip(parts, ends, strict=True))
    named = zip(("against", "as_neutral"), others, strict=False)
    return replace(own, **{name: other for name, other in named if len(other.answer)})


def confusion(predictions: pd.DataFrame) -> pd.DataFrame:
    """Count answers: task, condition, evaluator, author, predicted, n; one row per combination that occurs.

    `predicted` is the name given (also one outside the candidates), "none" for no answer; in the binary task the
    evaluator's own id for "mine" and "not_self" for "not mine". Pairs are not in it.
    """
    frame = predictions.reindex(columns=[*dict.fromkeys([*predictions, *OPTIONAL])])
    frame = frame[frame["task_type"] != PAIRWISE]
    evaluator, binary = frame["evaluator_model"], frame["task_type"] == BINARY
    claimed, named = frame["predicted_self"], frame["predicted_model"].where(~binary)
    named = named.mask(binary & claimed.eq(True), evaluator).mask(binary & claimed.eq(False), NOT_SELF)
    named = named.mask(named.isna() | (named == ""), NONE)
    long = {"task": frame["task_type"], "condition": conditions(frame).astype(object), "evaluator": evaluator,
            "author": frame["true_model"], "predicted": named}  # fmt: skip
    return pd.DataFrame(long).groupby([*long], sort=True).size().rename("n").reset_index()
