"""Prediction records to integer codes and counts: what every statistic of recognition starts from.

Rows are never dropped: a question without an answer stays a row without an answer. Each distinct
(task, condition) is one `Tally`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from selfeval.condition import conditions, names_author
from selfeval.errors import InputError
from selfeval.records.columns import all_shown, as_shown, same_codes, shares, truth_codes
from selfeval.records.tasks import CLAIMS, LINEUPS, NAMING, PAIRS

NONE = "none"  # label in confusion tables: no answer
NOT_SELF = "not_self"  # label in confusion tables: the answer "not mine"
NO_REPLY = -2  # in place of an answer, where the records have no reply either
SCORED = 0.9  # share of an evaluator's rows that must have a score before one speaks of them
OTHER_TEXT = ["position", "other_model", "other_text_id"]  # of pairs
OPTIONAL = ["predicted_model", "predicted_self", "score", "reply", *OTHER_TEXT]
QUESTION = ["task_type", "condition", "evaluator_model", "text_id", *OTHER_TEXT, "repeat"]
TEXT = ["true_model", "prompt_id", "prompt_used", "sample", "text_full", "text_preview"]


@dataclass(frozen=True, eq=False)
class Tally:
    """The rows of one task under one condition, as codes.

    A row is one question to one evaluator about one text. An evaluator is the model, or the person,
    that was asked; an author is who wrote the text; `own` has each evaluator's index among the
    authors, -1 for one that wrote nothing. A cell is all rows of one prompt, evaluator and author,
    and `count` counts the rows of each cell.

    prompt, evaluator, author, answer, position: one integer per row. In naming tasks `answer` is
    the index of the author that was named, len(authors) for another name; in the others it is 1 for
    "mine" and 0 for "not mine". -1 is no answer, `NO_REPLY` neither answer nor reply.

    Pairs have `position` (1 or 2, where the own text stood, 0 unknown) and `pair`, one code for an
    evaluator and its two texts; their authors are the rivals. Rows of neutral judges, who wrote
    neither text, are a tally of their own (`neutral`); where such judges saw pairs of an evaluator,
    `against` has their rows as if they were the evaluator's. Where judges were asked for an author
    by name (`by_name`), their answers are 1 for that author's text, and `as_neutral` has the rows
    in which the evaluators themselves were neutral.
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
    def is_unlinked(self) -> bool:
        """Whether it is of lineups, and nothing says which texts stood in one.

        A name given to an own text is then mostly not given to another's, and nobody sees it.
        """
        return self.task in LINEUPS and self.note != ""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Prompts, evaluators, authors."""
        return self.n_prompts, len(self.evaluators), len(self.authors)

    @property
    def heard(self) -> np.ndarray:
        """Which evaluators gave any answer."""
        return np.bincount(self.evaluator, self.answer >= 0, len(self.evaluators)) > 0

    @property
    def scores_alone(self) -> np.ndarray:
        """Which evaluators have scores, and neither an answer nor a reply."""
        size = len(self.evaluators)
        replied = np.bincount(self.evaluator, self.answer != NO_REPLY, size) > 0
        return ~replied & (np.bincount(self.evaluator, ~np.isnan(self.score), size) > 0)

    def count(self, rows=None, weights=None) -> np.ndarray:
        """Count rows (a mask), or sum weights, by prompt, evaluator and author."""
        cell = np.ravel_multi_index((self.prompt, self.evaluator, self.author), self.shape)
        if rows is not None:
            cell = cell[rows]
        return np.bincount(cell, weights, minlength=np.prod(self.shape)).reshape(self.shape)

    def kept(self, rows) -> Tally:
        """Return the tally of some rows (a mask or indices), with all evaluators and authors."""
        columns = "prompt evaluator author answer score position pair".split()
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def scored(self) -> tuple[Tally, list]:
        """Return the tally without scores of evaluators that are partly scored, and a note on them.

        Where more than a tenth of an evaluator's rows have no score, the others are a selection by
        the replies.
        """
        size = len(self.evaluators)  # the last of them may have no rows here
        known = np.bincount(self.evaluator, ~np.isnan(self.score), size)
        rows = np.bincount(self.evaluator, minlength=size)
        partly = (known > 0) & (known < SCORED * rows)
        score = np.where(partly[self.evaluator], np.nan, self.score)
        return replace(self, score=score), [(partly, "partly_scored")]

    def by_place(self) -> Tally:
        """Return pairs as a task of scores: is the first text its own, where it is and is not."""
        score = np.choose(self.position, [np.nan, self.score, 1 - self.score])
        own = np.ones(len(self.evaluators), int)
        return replace(self, author=self.position, own=own, score=score)


# --------------------------------------------------------------------------------------------------
# Columns


def prompts(frame: pd.DataFrame) -> tuple[np.ndarray, str]:
    """Return the prompt of each row as a code, and a note where texts stand in for prompts.

    A prompt is known by prompt_id, else by its text; where no row has any, each text is one. What
    was shown decides: of the same words, or of all the same texts, two are one. Some rows with a
    prompt and some without are an error: with texts as clusters for all, no cluster would hold both
    own and others' texts.
    """
    problem = ""
    for name in ("prompt_id", "prompt_used"):
        if name not in frame:
            continue
        given = frame[name].notna() & (frame[name] != "")
        if given.all():
            return _as_shown(frame, same_codes(frame[name])), ""
        if given.any() and not problem:
            empty = f"is empty in {(~given).sum()} of {len(given)} rows"
            problem = f"Column `{name}` {empty} (the first is row {given.argmin()})"
    if problem:
        raise InputError(f"{problem}: give the prompt of all rows, or of none.")
    return _as_shown(frame, same_codes(frame["text_id"])), "clusters_are_texts"


def _as_shown(frame: pd.DataFrame, codes: np.ndarray) -> np.ndarray:
    """Return the codes of prompts, one for those of the same words, or of all the same texts."""
    prompt = pd.Series(codes, frame.index)
    if "prompt_used" in frame:
        prompt = as_shown(prompt, all_shown(prompt, frame["prompt_used"]))
    if "text_full" in frame:
        texts = (
            frame["true_model"].astype(str)
            + ": "
            + frame["text_full"].mask(frame["text_full"] == "")
        )
        prompt = as_shown(prompt, all_shown(prompt, texts))
    return prompt.to_numpy()


def _check_unique(frame: pd.DataFrame) -> None:
    """Raise on the first item that one evaluator has twice under one task and condition.

    Some files count texts anew per author or prompt: texts that differ in more than the id are
    different texts.
    """
    question = frame.columns.intersection(QUESTION)
    item = frame.columns.intersection(QUESTION + TEXT)
    coded = frame.assign(text_id=same_codes(frame["text_id"]))
    repeated = coded[coded.duplicated(question, keep=False)]
    for row in repeated.index[repeated.duplicated(item)]:
        task, condition, evaluator, text = frame.loc[row, QUESTION[:4]]
        twice = f"has text_id {text} twice under task {task!r}, condition {condition!r}"
        rule = "say in `repeat` or in `condition` what tells the two apart"
        raise InputError(f"Evaluator {evaluator!r} {twice} (row {row}): {rule}.")


# --------------------------------------------------------------------------------------------------
# Tallies


def tallies(predictions: pd.DataFrame | Iterable[Tally]) -> Iterator[Tally]:
    """Yield one Tally for each (task, condition) of the records, sorted; tallies stay as they are.

    Of pairs it is that of the evaluators' own, then that of neutral judges, where there are any.
    Values are those that `read_predictions` has checked; here, that nothing is in the table twice.
    """
    if not isinstance(predictions, pd.DataFrame):
        yield from predictions
        return
    frame = predictions.reset_index(drop=True).assign(condition=conditions(predictions).array)
    _check_unique(frame)
    prompt, note = prompts(frame)
    frame = _with_optional(frame)
    name = frame["predicted_model"]
    position = pd.to_numeric(frame["position"], errors="coerce")
    coded = pd.DataFrame(
        {
            "evaluator": frame["evaluator_model"],
            "author": frame["true_model"],
            "prompt": prompt,
            "pair": -1,
            "named": name.mask(name == ""),
            "score": shares(frame["score"], "score"),
            "no_reply": frame["reply"].isna(),
            "position": position.where(position.isin([1, 2]), 0).astype(int),
            "answer": -1,
        }
    )
    for (task, condition), records in frame.groupby(["task_type", "condition"], observed=True):
        design = {"task": str(task), "condition": str(condition), "note": note}
        rows = coded.loc[records.index]
        if task not in NAMING:
            rows["answer"] = truth_codes(records["predicted_self"], "predicted_self")
        if task in PAIRS:
            yield from _pair_tallies(design, rows, records)
        else:
            yield _tally(design, rows)


def _with_optional(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with all optional columns, empty where it had none."""
    return frame.reindex(columns=frame.columns.union(OPTIONAL, sort=False))


def _tally(design: dict, rows: pd.DataFrame) -> Tally:
    """Return the tally of rows, as codes of the evaluators, authors and prompts in them.

    design: the task, the condition and the note of the tally.
    """
    evaluator, evaluators = pd.factorize(rows["evaluator"].to_numpy(), sort=True)
    author, authors = pd.factorize(rows["author"].to_numpy(), sort=True)
    prompt, seen_prompts = pd.factorize(rows["prompt"].to_numpy(), sort=True)
    index = pd.Index(authors)
    answer = rows["answer"].to_numpy()
    if design["task"] in NAMING:
        answer = index.get_indexer(rows["named"])
        is_another_name = (answer < 0) & rows["named"].notna()
        answer = np.where(is_another_name, len(authors), answer)
    answer = np.where((answer < 0) & rows["no_reply"], NO_REPLY, answer)
    return Tally(
        **design,
        evaluators=evaluators,
        authors=authors,
        own=index.get_indexer(pd.Index(evaluators)),
        n_prompts=len(seen_prompts),
        prompt=prompt,
        evaluator=evaluator,
        author=author,
        answer=answer,
        score=rows["score"].to_numpy(),
        position=rows["position"].to_numpy(),
        pair=rows["pair"].to_numpy(),
    )


# --------------------------------------------------------------------------------------------------
# Pairs


def neutral_rows(frame: pd.DataFrame) -> pd.Series:
    """Return which rows are pairs of which their evaluator wrote neither text."""
    wrote = frame["true_model"] == frame["evaluator_model"]
    if "other_model" in frame:
        wrote |= frame["other_model"] == frame["evaluator_model"]
    return (frame["task_type"].isin(PAIRS)) & ~wrote


def _pair_tallies(design: dict, rows: pd.DataFrame, records: pd.DataFrame) -> Iterator[Tally]:
    """Yield the tally of the evaluators' own pairs, then that of neutral judges.

    Each row stands here twice: about the text of `text_id`, by `true_model`, and turned, about the
    pair's other text. Own pairs are the rows about the evaluator's text. What neutral judges said
    of an evaluator's pairs are their rows about its text. Authors of whom there are neutral
    judgements alone have these as rows of their own.
    """
    is_neutral = neutral_rows(records)
    by_name = names_author(design["condition"])
    rows = rows.astype({"evaluator": object, "author": object})
    rows["other"] = records["other_model"].fillna("")
    rows["answer"] = _choice(rows)
    sides = pd.concat([rows, _turned(rows, is_neutral & by_name)])
    sides["pair"] = np.tile(_pair_codes(sides, records), 2)
    own = sides[sides["author"] == sides["evaluator"]]
    judged = sides[np.tile(is_neutral, 2)]
    judged = judged.assign(evaluator=judged["author"])
    against = None
    if len(own):
        key = ["evaluator", "pair"]
        own_pairs = pd.MultiIndex.from_frame(own[key])
        judged = judged[pd.MultiIndex.from_frame(judged[key]).isin(own_pairs)]
        has_own = rows["evaluator"].isin(own["evaluator"])
        yield _own_tally(design, own, judged, rows[is_neutral & by_name & has_own])
    elif not by_name:
        against = _tally(design, _by_rival(judged))
    if is_neutral.any():
        yield replace(_tally(design, rows[is_neutral]), neutral=True, against=against)


def _choice(rows: pd.DataFrame) -> pd.Series:
    """Return the answer of each row: 1 for the text of `author`, 0 for that of `other`.

    Of texts that are not said to be the evaluator's, `predicted_model` says which was chosen, if it
    is one of the two authors.
    """
    names_author = rows["named"] == rows["author"]
    names_one = names_author | (rows["named"] == rows["other"])
    is_not_own = rows["author"] != rows["evaluator"]
    return rows["answer"].mask(is_not_own & names_one, names_author.astype(int))


def _turned(rows: pd.DataFrame, keeps_answer: pd.Series) -> pd.DataFrame:
    """Return the rows about the other text of each pair.

    keeps_answer: of neutral judges that were asked for the text of `true_model` by name; their
    answer is right or wrong from either side.
    """
    turned = rows.assign(author=rows["other"], other=rows["author"])
    turned["score"] = rows["score"].where(keeps_answer, 1 - rows["score"])
    turned["answer"] = rows["answer"].where(keeps_answer, rows["answer"].replace({0: 1, 1: 0}))
    other_position = rows["position"].replace({1: 2, 2: 1})
    turned["position"] = rows["position"].where(keeps_answer, other_position)
    return turned


def _pair_codes(sides: pd.DataFrame, records: pd.DataFrame) -> np.ndarray:
    """Return one code for the two texts of each record, whichever comes first.

    A text is known by its author and its id; where an id is missing, by its author and prompt.
    """
    text = same_codes(pd.concat([records["text_id"], records["other_text_id"]]))
    if (text < 0).any():
        text = sides["prompt"]
    codes, _ = pd.MultiIndex.from_arrays([sides["author"], text]).factorize()
    both = np.sort(codes.reshape(2, -1), axis=0)
    return pd.MultiIndex.from_arrays(both).factorize()[0]


def _by_rival(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the rival as author, and a code for an evaluator and its two texts."""
    return rows.assign(author=rows["other"], pair=rows.groupby(["evaluator", "pair"]).ngroup())


def _own_tally(design: dict, own, judged, as_neutral) -> Tally:
    """Return the tally of own pairs with the other two parts, under the same codes."""
    tally = _tally(design, _by_rival(pd.concat([own, judged, as_neutral])))
    part = np.repeat(["own", "against", "as_neutral"], [len(own), len(judged), len(as_neutral)])
    tallies_of: dict[str, Any] = {name: tally.kept(part == name) for name in np.unique(part)}
    return replace(tallies_of.pop("own"), **tallies_of)


def confusion(predictions: pd.DataFrame) -> pd.DataFrame:
    """Count answers: task, condition, evaluator, author, predicted, n; a row for each that occurs.

    `predicted` is the name given (also one outside the candidates), "none" for no answer; in the
    binary task the evaluator's own id for "mine" and "not_self" for "not mine". Without pairs.
    """
    frame = _with_optional(predictions)
    frame = frame[~frame["task_type"].isin(PAIRS)]
    is_binary = frame["task_type"].isin(CLAIMS)
    claims = frame["predicted_self"].eq(True)
    denies = frame["predicted_self"].eq(False)
    name = frame["predicted_model"].where(~is_binary)
    name = name.mask(is_binary & claims, frame["evaluator_model"])
    name = name.mask(is_binary & denies, NOT_SELF)
    answers = pd.DataFrame(
        {
            "task": frame["task_type"],
            "condition": conditions(frame).astype(object),
            "evaluator": frame["evaluator_model"],
            "author": frame["true_model"],
            "predicted": name.fillna("").replace("", NONE),
        }
    )
    return answers.groupby([*answers], sort=True).size().rename("n").reset_index()
