"""The existence test: what a model says of real models against what it says of invented ones."""

from __future__ import annotations

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.intervals import Difference, Rate, check_level
from selfeval.stats.testing import holm, inverted_p

FEW_TARGETS = 20


def existence_table(records: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Estimate, per evaluator and way of answering, the mean score of real and invented names, and their difference.

    records: as `existence.collect_existence` makes them; needs evaluator, target_model, exists, existence_score,
    answer_type, asked_reasoning. The sampled unit is the target: all questions about one name come along. Real and
    invented names are independent samples. A model that says yes to every name has discrimination 0.

    Returns evaluator, author (empty), task, condition, statistic (score_real, score_invented, discrimination,
    no_answer_rate), estimate, low, high, level, method, p, p_holm (over evaluators), n, n_targets, note. No answer is
    left out of the scores. Notes: not_estimable; few_targets (below 20: the interval is optimistic).
    """
    z = check_level(level)
    missing = {"evaluator", "target_model", "exists", "existence_score", "answer_type"} - set(records)
    if missing or records.empty:
        raise InputError(f"Existence records need the fields {', '.join(sorted(missing)) or 'and a row'}.")
    rows = []
    reasoning = records["asked_reasoning"] if "asked_reasoning" in records else pd.Series(False, records.index)
    groups = records.groupby(["answer_type", reasoning.rename("reasoning"), "evaluator"], sort=False)
    for (answer, reasoned, evaluator), group in groups:
        condition = f"answer={answer};reasoning={str(bool(reasoned)).lower()}"
        target = pd.factorize(group["target_model"])[0]
        score = pd.to_numeric(group["existence_score"]).to_numpy(float)
        exists = group["exists"].to_numpy(bool)
        real, invented = (_rate(target, score, side & ~np.isnan(score)) for side in (exists, ~exists))
        silent = Rate.of(np.bincount(target, np.isnan(score)), np.bincount(target))
        measures = {"score_real": real, "score_invented": invented, "discrimination": Difference(real, invented),
                    "no_answer_rate": silent}  # fmt: skip
        for name, measured in measures.items():
            low, high = measured.interval(z)
            clusters = int(real.clusters + invented.clusters) if name == "discrimination" else int(measured.clusters)
            unknown = np.isnan(measured.value)
            rows.append({
                "evaluator": evaluator, "author": "", "task": "existence", "condition": condition, "statistic": name,
                "estimate": float(measured.value), "low": float(low), "high": float(high), "level": level,
                "method": measured.method, "p": float(inverted_p(measured)) if name == "discrimination" else np.nan,
                "n": int(measured.trials), "n_targets": clusters,
                "note": "not_estimable" if unknown else "few_targets" if clusters < FEW_TARGETS else "",
            })  # fmt: skip
    table = pd.DataFrame(rows)
    tested = table.groupby(["condition", "statistic"], sort=False)["p"].transform(lambda p: holm(p.to_numpy()))
    table.insert(table.columns.get_loc("p") + 1, "p_holm", tested)
    return table


def _rate(target: np.ndarray, score: np.ndarray, use: np.ndarray) -> Rate:
    """Return the mean score of the rows in use, with targets as clusters."""
    size = target.max(initial=-1) + 1
    total = np.bincount(target[use], np.nan_to_num(score)[use], minlength=size)
    return Rate.of(total, np.bincount(target[use], minlength=size))
