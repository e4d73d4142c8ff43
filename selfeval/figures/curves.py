"""Curves: how well a probability tells own texts from others'."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from selfeval.errors import InputError
from selfeval.figures.intervals import default_rows
from selfeval.figures.style import DOUBLE, PALETTE, STYLE, hide_rest, new_figure, plain, small_panels, title_panels


def roc(
    points: pd.DataFrame,
    display: Mapping[str, str] | None = None,
    width: float = DOUBLE,
    table: pd.DataFrame | None = None,
) -> Figure:
    """Draw the ROC curve of each evaluator's score for its own texts, a panel each, the others' curves in grey.

    points: what `selfeval.stats.roc_points` returns, of one task and condition. The diagonal is a score that knows
    nothing. table: the result table of the same design; then the AUC has its interval and the number of texts.
    """
    curves = dict(list(points.groupby("evaluator", sort=False)))
    if not curves:
        raise InputError("No evaluator has a `score` for both own and others' texts, so there is no ROC curve.")
    areas = default_rows(table, "auc").set_index("evaluator") if table is not None else pd.DataFrame()
    rows, columns, side = small_panels(len(curves), width)
    fig, axes = new_figure(width, 0.45 + rows * (side + 0.25), rows, columns, sharex=True, sharey=True)
    with mpl.rc_context(STYLE):
        title_panels(axes, curves, display, side)
        for ax, (name, curve) in zip(axes.flat, curves.items(), strict=False):
            for other in curves.values():
                ax.plot(other["false_claims"], other["hits"], color="0.85", linewidth=0.7)
            ax.plot([0, 1], [0, 1], color="0.5", linestyle=":", linewidth=0.8)
            line = 1.4 if side > 0.8 else 0.9  # thin where it may cross the numbers
            ax.plot(curve["false_claims"], curve["hits"], color=PALETTE[0], linewidth=line)
            area = areas.loc[name] if name in areas.index else pd.Series({"estimate": curve["area"].iloc[0]})
            how = {"fontsize": 6 if side > 0.9 else 5, "linespacing": 1, "zorder": 4}
            ax.text(0.98, 0.02, _area(area, side), ha="right", va="bottom", **how)
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            ax.set_xticklabels(["0", ".5", "1"])
            ax.set_yticklabels(["0", ".5", "1"])
        hide_rest(axes, len(curves))
        fig.supxlabel("others' texts above the threshold", fontsize=8)
        fig.supylabel("own texts above", fontsize=8)
    return plain(fig)


def _area(row: pd.Series, side: float) -> str:
    """Return what is known of an area, as far as a panel of so many inches has room: the number of texts goes first."""
    text = f"AUC {row['estimate']:.2f}"
    if pd.notna(row.get("low")):
        text += (" " if side > 1.1 else "\n") + f"[{row['low']:.2f}, {row['high']:.2f}]"
    return f"{text}\nn {row['n']:.0f}" if "n" in row and side > 0.8 else text
