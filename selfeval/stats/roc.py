"""ROC curves: how well a probability tells own texts from others', over all thresholds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from selfeval.stats.records import PAIRWISE, condition_label

POINTS = ["task", "condition", "evaluator", "false_claims", "hits", "area"]


def roc_points(records: pd.DataFrame, table: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the ROC curve of each evaluator's `score` for its own texts, a row per threshold, falling.

    Columns: task, condition, evaluator, false_claims (share of others' texts at or above the threshold), hits (of own
    texts), area. table: a result table; then only evaluators whose AUC it estimates, for replies without a score would
    choose the texts otherwise. Empty without scores for own and others' texts.
    """
    if "score" not in records:
        return pd.DataFrame(columns=POINTS)
    frame = records[records["score"].notna() & (records["task_type"] != PAIRWISE)]  # there a score is of two texts
    condition = frame["condition"].map(condition_label) if "condition" in frame else pd.Series("", frame.index)
    known = None
    if table is not None:
        known = table[(table["statistic"] == "auc") & table["estimate"].notna()]
        known = set(known[["task", "condition", "evaluator"]].itertuples(index=False, name=None))
    parts = []
    for key, rows in frame.groupby([frame["task_type"], condition, frame["evaluator_model"]], sort=False):
        curve = _curve(rows) if known is None or key in known else None
        if curve is not None:
            x, y, area = curve
            design = dict(zip(POINTS, key, strict=False))
            parts.append(pd.DataFrame(design | {"false_claims": x, "hits": y, "area": area}))
    return pd.concat(parts, ignore_index=True)[POINTS] if parts else pd.DataFrame(columns=POINTS)


def _curve(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return false-positive and true-positive rates over falling thresholds, and the area under them."""
    own = (rows["true_model"] == rows["evaluator_model"]).to_numpy()
    if own.all() or not own.any():
        return None
    score = rows["score"].to_numpy(float)
    order = np.argsort(-score, kind="stable")
    last = np.r_[np.diff(score[order]) != 0, True]  # ties are one step
    x, y = (np.r_[0, np.cumsum(side[order])[last] / side.sum()] for side in (~own, own))
    return x, y, float(np.trapezoid(y, x))
