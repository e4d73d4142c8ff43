"""The existence test: what a model says of real models against what it says of invented ones."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.engine import Rate, Settings
from selfeval.stats.inference import rearranged_p
from selfeval.stats.table import Measure, adjusted, write
from selfeval.stats.tallies import check_frame, ids, same_codes, shares, truth_codes

FEW_NAMES = 20


def existence_table(records: pd.DataFrame) -> pd.DataFrame:
    """Estimate, per evaluator and way of answering, the mean score of real and invented names, and their difference.

    records: as `existence.collect_existence` makes them; needs evaluator, target_model, exists, existence_score,
    answer_type; uses asked_reasoning, and template_id, question and iteration to find a question that is there twice.
    The sampled unit is the name: all questions about one come along. Real and invented names are independent samples.
    A model that says yes to every name has discrimination 0.

    Returns `stats.COLUMNS` with the statistics score_real, score_invented, discrimination (p by permutation of which
    names are real, all questions about one together) and no_answer_rate. No answer is left out of the scores. Notes:
    not_estimable; constant_answer; no_answer (it gave none); few_names (below 20: the interval is optimistic);
    least_p=P.
    """
    measures = []
    groups = _checked(records).groupby(["answer_type", "asked_reasoning", "evaluator"], sort=False)
    for (answer, reasoned, evaluator), group in groups:
        labels = {"evaluator": evaluator, "condition": f"answer={answer};reasoning={str(bool(reasoned)).lower()}"}
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
    return adjusted(write(measures, how, task="existence"), ["condition", "statistic"])


def _permuted(name, score, exists, seed: int) -> tuple[float, float]:
    """Return p and the least p of no difference, by permutation of which names are real."""
    n = np.bincount(name)
    total = np.bincount(name, score - score.mean() if len(score) else score)
    real = np.bincount(name, exists, len(n)) > 0
    return rearranged_p([], total[real].sum(), total[n > 0], int(real.sum()), seed=seed)


def _checked(records: pd.DataFrame) -> pd.DataFrame:
    """Return the fields that count, `exists` and `asked_reasoning` as booleans; every question is there once."""
    check_frame(records, "Existence records")
    missing = {"evaluator", "target_model", "exists", "existence_score", "answer_type"} - set(records)
    if missing:
        raise InputError(f"Existence records need the fields {', '.join(sorted(missing))}.")
    frame = records.assign(asked_reasoning=records.get("asked_reasoning", False)).reset_index(drop=True)
    for name in ("evaluator", "target_model", "answer_type"):
        ids(frame, name)
    for name in ("exists", "asked_reasoning"):
        codes = truth_codes(frame[name], name)
        if (codes < 0).any():
            raise InputError(f"Column `{name}` must hold true or false, but row {int(np.argmax(codes < 0))} is null.")
        frame[name] = codes == 1
    frame["existence_score"] = shares(frame["existence_score"], "existence_score")
    sides = frame.groupby("target_model", sort=False)["exists"].nunique()
    if (sides > 1).any():
        raise InputError(f"The target {sides.idxmax()!r} is both real and invented in the records; correct `exists`.")
    if "template_id" in frame:  # without it, questions about one name cannot be told apart
        key = ["evaluator", "target_model", "answer_type", "asked_reasoning", "template_id", "question", "iteration"]
        twice = pd.DataFrame({name: same_codes(frame[name], name) for name in key if name in frame}).duplicated()
        if twice.any():
            row = frame.loc[twice.idxmax()]
            raise InputError(
                f"Evaluator {row['evaluator']!r} was asked about {row['target_model']!r} twice by the template "
                f"{row['template_id']!r} (row {twice.idxmax()}); keep one, or number them by `iteration`."
            )
    return frame


def _rate(name: np.ndarray, score: np.ndarray, use: np.ndarray) -> Rate:
    """Return the mean score of the rows in use, with names as clusters."""
    size = name.max() + 1
    return Rate.of(np.bincount(name[use], score[use], size), np.bincount(name[use], minlength=size))
