"""The test of names: scores of real and of invented names, and their difference."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from selfeval.figures.intervals import interval_panel, legend_below, row_panels
from selfeval.figures.style import DOUBLE, PALETTE, STYLE, plain, size_of

SIDES = {"score_real": (PALETTE[0], "o", "real names"), "score_invented": (PALETTE[1], "s", "invented names")}


def existence_figures(
    table: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE
) -> dict[str, Figure]:
    """Draw scores and discrimination of every evaluator, a panel per form of answer: {"<kind>_existence": figure}."""
    rows = table.drop_duplicates(["evaluator", "condition", "statistic"])
    return {
        "scores_existence": _panels(rows, display, width, _scores, "mean score: 0 does not exist, 1 exists"),
        "discrimination_existence": _panels(rows, display, width, _difference, "score of real − of invented names"),
    }


def _panels(rows: pd.DataFrame, display, width: float, draw, label: str) -> Figure:
    forms = list(rows.groupby("condition", sort=False))
    order = list(dict.fromkeys(rows["evaluator"]))[::-1]
    fig, axes = row_panels(width, order, len(forms), min(len(forms), 4 if width >= DOUBLE else 2), display)
    with mpl.rc_context(STYLE):
        for ax, (condition, part) in zip(axes.flat, forms, strict=False):
            draw(ax, part, order)
            form = dict(piece.split("=", 1) for piece in condition.split(";") if "=" in piece)
            reason = ", with reasons" if form.get("reasoning") == "true" else ""
            ax.set_title(f"{form.get('answer', condition)}{reason}".replace("_", "/"), fontsize=7)
        fig.supxlabel(label, fontsize=8)
        if draw is _difference:
            legend_below(fig, axes[0, 0], "upper")
        else:
            handles = [axes[0, 0].scatter([], [], 16, color=c, marker=m) for c, m, _ in SIDES.values()]
            names = [name for *_, name in SIDES.values()]
            fig.legend(handles, names, loc="outside upper center", ncols=2, frameon=False)
    return plain(fig)


def _scores(ax, rows: pd.DataFrame, order: list[str]) -> None:
    for (statistic, (colour, marker, _)), shift in zip(SIDES.items(), (0.16, -0.16), strict=True):
        part = rows[rows["statistic"] == statistic].set_index("evaluator").reindex(order)
        y = np.arange(len(order)) + shift
        ax.hlines(y, part["low"], part["high"], color=colour, linewidth=1.1, zorder=2)
        ax.scatter(part["estimate"], y, 12, marker=marker, color=colour, zorder=3)
    known = rows[rows["statistic"].isin(SIDES)].dropna(subset=["estimate"])["evaluator"]
    for at in [k for k, name in enumerate(order) if name not in set(known)]:
        ax.text(0.5, at, "no answer", fontsize=size_of(0.1, 6), color="0.35", ha="center", va="center")
    ax.set_xlim(-0.03, 1.03)
    ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    ax.grid(axis="both", color="0.9")
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    sns.despine(ax=ax, left=True)


def _difference(ax, rows: pd.DataFrame, order: list[str]) -> None:
    part = rows[rows["statistic"] == "discrimination"].set_index("evaluator").reindex(order)
    interval_panel(ax, part, PALETTE[1], 3)
