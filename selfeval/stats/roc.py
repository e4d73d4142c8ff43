"""ROC curves: how well a probability tells own texts from others', over all thresholds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from selfeval.stats.records import PAIRWISE, conditions

DESIGN = ["task_type", "condition", "evaluator_model"]
POINTS = ["task", "condition", "evaluator", "false_claims", "hits", "area"]


def roc_points(records: pd.DataFrame, table: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the ROC curve of each evaluator's `score` for its own texts, a row per threshold, falling.

    Columns: task, condition, evaluator, false_claims (share of others' texts at or above the threshold), hits (of own
    texts), area. table: a result table; then only evaluators whose AUC it estimates, for replies without a score would
    choose the texts otherwise. Empty without scores for own and others' texts.
    """
    if "score" not in records:
        return pd.DataFrame(columns=POINTS)
    frame = records.assign(condition=conditions(records).astype(object))
    frame = frame[frame["score"].notna() & (frame["task_type"] != PAIRWISE)]  # there a score is of two texts
    if table is not None:
        known = table[(table["statistic"] == "auc") & table["estimate"].notna()]
        known = pd.MultiIndex.from_frame(known[["task", "condition", "evaluator"]])
        frame = frame[pd.MultiIndex.from_frame(frame[DESIGN]).isin(known)]
    parts = []
    for key, rows in frame.groupby(DESIGN, sort=False):
        own = (rows["true_model"] == rows["evaluator_model"]).to_numpy()
        if own.any() and not own.all():
            parts.append(
                pd.DataFrame(dict(zip(POINTS, [*key, *_curve(rows["score"].to_numpy(float), own)], strict=True)))
            )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=POINTS)


def _curve(score: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return false-positive and true-positive rates over falling thresholds, and the area under them."""
    order = np.argsort(-score, kind="stable")
    last = np.r_[np.diff(score[order]) != 0, True]  # ties are one step
    x, y = (np.r_[0, np.cumsum(side[order])[last] / side.sum()] for side in (~own, own))
    return x, y, float(np.trapezoid(y, x))
