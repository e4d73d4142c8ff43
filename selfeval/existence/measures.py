"""The existence test measured: what a model says of real and of invented names."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from selfeval.condition import condition_label
from selfeval.errors import InputError
from selfeval.records.columns import check_once, ids, shares
from selfeval.statistics.intervals import Rate, check_level
from selfeval.statistics.resampling import Settings
from selfeval.statistics.table import Measure, adjust_p, answers_differ, policies_notes, write
from selfeval.statistics.tests import rearranged_p

FEW_NAMES = 20
Z = check_level(0.95)
QUESTION = ["evaluator", "target_model", "answer_type", "template_id", "iteration"]


def existence_table(records: pd.DataFrame) -> pd.DataFrame:
    """Estimate the mean score of real and of invented names, and their difference.

    There is one estimate per evaluator and way of answering. records: as those of
    `existence.collect_existence`, with evaluator, target_model, exists, existence_score,
    answer_type, asked_reasoning, template_id and iteration. The sampled unit is the name: all
    questions about one come along. Real and invented names are independent samples. A model that
    says yes to every name has discrimination 0.

    Returns `stats.COLUMNS` with the statistics score_real, score_invented, discrimination (p by
    permutation of which names are real, all questions about one together) and no_answer_rate.
    Questions without an answer are in no score. Notes: not_estimable; constant_answer; no_answer
    (it gave none); few_names (below 20: the interval is optimistic); least_p=P.
    """
    measures = []
    frame = _check_answers(records)
    groups = frame.groupby(["answer_type", "asked_reasoning", "evaluator"], sort=False)
    for (answer_type, reasoning, evaluator), answers in groups:
        condition = {"answer": answer_type, "reasoning": reasoning}
        labels = {"evaluator": evaluator, "condition": condition_label(condition)}
        name = pd.factorize(answers["target_model"])[0]
        score = answers["existence_score"].to_numpy()
        exists = answers["exists"].to_numpy()
        is_scored = ~np.isnan(score)

        real = _mean_score(name, score, is_scored & exists)
        invented = _mean_score(name, score, is_scored & ~exists)
        difference = real - invented
        difference.clusters = real.clusters + invented.clusters
        difference.kish = real.kish + invented.kish
        filled = []
        for answer in (0.0, 1.0):
            if_so = np.where(is_scored, score, answer)
            sides = [_mean_score(name, if_so, side) for side in (exists, ~exists)]
            filled.append(sides[0] - sides[1])
        silent = [_mean_score(name, ~is_scored, side) for side in (exists, ~exists)]
        permuted = partial(_permuted_p, name[is_scored], score[is_scored], exists[is_scored])
        different = len(set(score[is_scored]))
        notes = [
            (different == 1, "constant_answer"),
            (different == 0, "no_answer"),
            answers_differ(Z, *silent),
            *policies_notes(difference, filled, Z),
        ]
        measures += [
            Measure("score_real", real, labels),
            Measure("score_invented", invented, labels),
            Measure("discrimination", difference, labels, test=permuted, notes=notes),
            Measure("no_answer_rate", Rate.of_rows(~is_scored, name), labels),
        ]
    table = write(measures, Settings(unit="name", few=FEW_NAMES), task="existence")
    return adjust_p(table, ["condition", "statistic"], chance={"discrimination": 0.0})


def _mean_score(name: np.ndarray, score: np.ndarray, use: np.ndarray) -> Rate:
    """Return the mean score of the answers in use; names are its clusters."""
    total = np.bincount(name, np.where(use, score, 0))
    return Rate.of(total, np.bincount(name, use))


def _permuted_p(name, score, exists, seed: int) -> tuple[float, float]:
    """Return p of no difference and the least p possible, permuting which names are real."""
    if len(score):
        score = score - score.mean()
    total = np.bincount(name, score)
    is_asked = np.bincount(name) > 0
    is_real = np.bincount(name, exists) > 0
    return rearranged_p([], total[is_real].sum(), total[is_asked], is_real.sum(), seed=seed)


def _check_answers(records: pd.DataFrame) -> pd.DataFrame:
    """Return the records, `exists` and `asked_reasoning` as booleans and every question once."""
    if missing := {*QUESTION, "exists", "asked_reasoning", "existence_score"} - {*records}:
        raise InputError(f"Existence records need the fields {', '.join(sorted(missing))}.")
    frame = records.reset_index(drop=True)
    for column in QUESTION:
        ids(frame, column)
    for column in ("exists", "asked_reasoning"):
        if not frame[column].isin([True, False]).all():
            rule = "must hold true or false in every row of existence records"
            raise InputError(f"Column `{column}` {rule}.")
        frame[column] = frame[column].astype(bool)
    frame["existence_score"] = shares(frame["existence_score"], "existence_score")
    kinds = frame.groupby("target_model", sort=False)["exists"].nunique()
    if (kinds > 1).any():
        fault = f"The target {kinds.idxmax()!r} is both real and invented in the records"
        raise InputError(f"{fault}; correct `exists`.")
    check_once(frame, [*QUESTION, "asked_reasoning"], QUESTION)
    return frame
