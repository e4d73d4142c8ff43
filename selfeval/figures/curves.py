"""Curves: how well a probability tells own texts from others'."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from selfeval.errors import InputError
from selfeval.figures.style import DOUBLE, PALETTE, STYLE, names_shown, new_figure, plain


def roc(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> Figure:
    """Draw the ROC curve of each evaluator's score for its own texts, a panel each, the others' curves in grey.

    records: prediction records of one task and condition with `score`. The diagonal is a score that knows nothing.
    """
    scored = records.dropna(subset=["score"])
    curves = {evaluator: _curve(rows) for evaluator, rows in scored.groupby("evaluator_model", sort=False)}
    curves = {evaluator: curve for evaluator, curve in curves.items() if curve is not None}
    if not curves:
        raise InputError("No evaluator has a `score` for both own and others' texts, so there is no ROC curve.")
    columns = min(len(curves), 5)
    rows = -(-len(curves) // columns)
    side = min((DOUBLE - 0.6) / columns, 2.0)
    fig, axes = new_figure(0.6 + side * columns, 0.4 + rows * (side + 0.2), rows, columns, sharex=True, sharey=True)
    with mpl.rc_context(STYLE):
        for ax, (evaluator, (x, y, area)) in zip(axes.flat, curves.items(), strict=False):
            for other in curves.values():
                ax.plot(other[0], other[1], color="0.85", linewidth=0.7)
            ax.plot([0, 1], [0, 1], color="0.5", linestyle=":", linewidth=0.8)
            ax.plot(x, y, color=PALETTE[0], linewidth=1.4)
            ax.set_title(names_shown([evaluator], display, int(side * 17))[0], fontsize=7)
            ax.text(0.96, 0.05, f"AUC {area:.2f}", ha="right", fontsize=6)
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        for ax in axes.flat[len(curves) :]:
            ax.set_axis_off()
        fig.supxlabel("others' texts above the threshold", fontsize=8)
        fig.supylabel("own texts above", fontsize=8)
    return plain(fig)


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
