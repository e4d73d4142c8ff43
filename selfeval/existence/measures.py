"""The existence test measured: what a model says of real models against what it says of invented ones."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.records.columns import check_once, ids, shares
from selfeval.statistics.intervals import Rate, Settings, rearranged_p
from selfeval.statistics.table import Measure, adjust_p, write

FEW_NAMES = 20
ASKED = ["evaluator", "target_model", "answer_type", "template_id", "iteration"]  # what tells questions apart


def existence_table(records: pd.DataFrame) -> pd.DataFrame:
    """Estimate, per evaluator and way of answering, the mean score of real and invented names, and their difference.

    records: as `existence.collect_existence` makes them; needs evaluator, target_model, exists, existence_score,
    answer_type, asked_reasoning, template_id and iteration.
    The sampled unit is the name: all questions about one come along. Real and invented names are independent samples.
    A model that says yes to every name has discrimination 0.

    Returns `stats.COLUMNS` with the statistics score_real, score_invented, discrimination (p by permutation of which
    names are real, all questions about one together) and no_answer_rate. No answer is left out of the scores. Notes:
    not_estimable; constant_answer; no_answer (it gave none); few_names (below 20: the interval is optimistic);
    least_p=P.
    """
    measures = []
    groups = _check_answers(records).groupby(["answer_type", "asked_reasoning", "evaluator"], sort=False)
    for (answer, reasoned, evaluator), group in groups:
        labels = {"evaluator": evaluator, "condition": f"answer={answer};reasoning={str(reasoned).lower()}"}
        name = pd.factorize(group["target_model"])[0]
        score, exists = group["existence_score"].to_numpy(), group["exists"].to_numpy()
        known = ~np.isnan(score)
        real, invented = (_rate(name, score, side & known) for side in (exists, ~exists))
        gap = real - invented
        gap.clusters, gap.kish = real.clusters + invented.clusters, real.kish + invented.kish
        silent = Rate.of(np.bincount(name, ~known), np.bincount(name))
        permuted = partial(_permuted, name[known], score[known], exists[known])
        said = {*score[known]}
        notes = [(len(said) == 1, "constant_answer"), (not said, "no_answer")]
        measures += [
            Measure("score_real", real, labels),
            Measure("score_invented", invented, labels),
            Measure("discrimination", gap, labels, test=permuted, notes=notes),
            Measure("no_answer_rate", silent, labels),
        ]
    how = Settings(unit="name", few=FEW_NAMES)
    return adjust_p(write(measures, how, task="existence"), ["condition", "statistic"])


def _permuted(name, score, exists, seed: int) -> tuple[float, float]:
    """Return p and the least p of no difference, by permutation of which names are real."""
    n = np.bincount(name)
    total = np.bincount(name, score - score.mean() if len(score) else score)
    real = np.bincount(name, exists, len(n)) > 0
    return rearranged_p([], total[real].sum(), total[n > 0], int(real.sum()), seed=seed)


def _check_answers(records: pd.DataFrame) -> pd.DataFrame:
    """Return the fields that count, `exists` and `asked_reasoning` as booleans; every question is there once."""
    if missing := {*ASKED, "exists", "asked_reasoning", "existence_score"} - {*records}:
        raise InputError(f"Existence records need the fields {', '.join(sorted(missing))}.")
    frame = records.reset_index(drop=True)
    for name in ASKED:
        ids(frame, name)
    for name in ("exists", "asked_reasoning"):
        if not frame[name].isin([True, False]).all():
            raise InputError(f"Column `{name}` must hold true or false in every row of existence records.")
        frame[name] = frame[name].astype(bool)
    frame["existence_score"] = shares(frame["existence_score"], "existence_score")
    sides = frame.groupby("target_model", sort=False)["exists"].nunique()
    if (sides > 1).any():
        raise InputError(f"The target {sides.idxmax()!r} is both real and invented in the records; correct `exists`.")
    check_once(frame, [*ASKED, "asked_reasoning"], ASKED)
    return frame


def _rate(name: np.ndarray, score: np.ndarray, use: np.ndarray) -> Rate:
    """Return the mean score of the rows in use, with names as clusters."""
    size = name.max() + 1
    return Rate.of(np.bincount(name[use], score[use], size), np.bincount(name[use], minlength=size))
