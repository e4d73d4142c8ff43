"""Estimates with their intervals: points and lines from the columns estimate, low and high, drawn as given."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from selfeval.errors import InputError
from selfeval.figures.style import DOUBLE, PAGE, PALETTE, STYLE, names_shown, new_figure, pitch, plain, size_of

SYMBOLS = {
    "self_accuracy": "Self accuracy H", "cross_accuracy": "Cross accuracy", "advantage": "Advantage A",
    "false_claim_rate": "False-claim rate F", "discrimination": "Discrimination J",
    "corrected_advantage": "Corrected advantage Δ", "peer_corrected": "Peer-corrected D",
    "peer_baseline": "Peer baseline S", "interaction": "Interaction DD", "d_prime": "d′",
}  # fmt: skip


def default_rows(table: pd.DataFrame, statistic: str, per_author: bool = False) -> pd.DataFrame:
    """Return a statistic's default row (first method, first policy) per evaluator, or per evaluator and author."""
    one_design(table)
    rows = table[table["statistic"] == statistic]
    author = rows["author"].astype(object).fillna("").astype(str)
    rows = rows[(author != "") == per_author]
    rows = rows.drop_duplicates(["evaluator", "author"] if per_author else ["evaluator"])
    if rows.empty:
        raise InputError(f"The table has no rows of statistic {statistic!r}{' per author' if per_author else ''}.")
    return rows


def one_design(frame: pd.DataFrame) -> None:
    """Raise unless the rows are of one task and condition: a figure never mixes designs."""
    found = frame[["task", "condition"]].astype(object).fillna("").drop_duplicates()
    if len(found) > 1:
        some = "; ".join(f"{task} {condition}".strip() for task, condition in found.head(4).itertuples(index=False))
        raise InputError(f"A figure shows one task and condition, got {len(found)} ({some}); select one first.")


def advantage_and_discrimination(
    table: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE
) -> Figure:
    """Draw advantage A and discrimination J side by side per evaluator, highest J first.

    Where J's marker is hollow, own texts are not told from others', whatever A says.
    """
    return forest(table, display, ("advantage", "discrimination"), same_scale=True, width=width)


def forest(
    table: pd.DataFrame,
    display: Mapping[str, str] | None = None,
    statistics: tuple[str, ...] = ("advantage", "discrimination", "corrected_advantage", "peer_corrected"),
    order_by: str = "discrimination",
    same_scale: bool = False,
    width: float = DOUBLE,
) -> Figure:
    """Draw one panel per statistic with every evaluator's estimate and interval; hollow where it holds 0."""
    needed = dict.fromkeys([*statistics, order_by])
    rows = {name: default_rows(table, name).set_index("evaluator") for name in needed}
    order = rows[order_by]["estimate"].sort_values(ascending=True, na_position="first", kind="stable").index
    columns = len(statistics) if width >= DOUBLE else min(len(statistics), 2)
    fig, axes = row_panels(width, order, len(statistics), columns, display, sharex=same_scale)
    with mpl.rc_context(STYLE):
        for ax, name, colour in zip(axes.flat, statistics, PALETTE, strict=False):
            interval_panel(ax, rows[name].reindex(order), colour, 5 if width / columns > 3 else 3)
            ax.set_title(SYMBOLS.get(name, name), fontsize=8 if width >= DOUBLE else 6.5)
        legend_below(fig, axes[0, 0])
    return plain(fig)


def row_panels(width: float, order, panels: int, columns: int, display, title: float = 0.24, **options):
    """Return a figure of panels whose rows are the same names, as high as the rows need and a page allows."""
    lines, rows = -(-panels // columns), max(len(order), 3)
    row = pitch(rows, (PAGE - 0.35 - lines * (title + 0.3)) / lines)
    fig, axes = new_figure(width, 0.35 + lines * (title + 0.3 + row * rows), lines, columns, sharey=True, **options)
    labels = names_shown(order, display, 30 if width >= DOUBLE else 20)
    for ax in axes.flat[panels:]:
        ax.set_axis_off()
    axes[0, 0].set_yticks(range(len(order)), labels)
    axes[0, 0].set_ylim(-0.7, len(order) - 0.3)
    for ax in axes[:, 0]:
        ax.tick_params(axis="y", labelsize=size_of(row))
    return fig, axes


def interval_panel(ax, rows: pd.DataFrame, colour, ticks: int) -> None:
    """Draw points and low-high lines over row numbers; filled where the interval excludes 0."""
    y = np.arange(len(rows))
    value, low, high = (rows[c].to_numpy(float) for c in ("estimate", "low", "high"))
    tells = (low > 0) | (high < 0)
    ax.axvline(0, color="0.35", linewidth=0.8, zorder=1)
    ax.hlines(y, low, high, color=colour, linewidth=1.3, zorder=2)
    for chosen, face, marker in ((tells, colour, "o"), (~tells, "white", "s")):
        ax.scatter(value[chosen], y[chosen], 16, marker=marker, facecolor=face, edgecolor=colour, linewidth=1, zorder=3)
    for at in y[np.isnan(value)]:
        ax.text(0, at, "not estimable", fontsize=6, color="0.35", ha="center", va="center", backgroundcolor="white")
    ends = np.concatenate([low, high, value, [0]])
    ends = ends[np.isfinite(ends)]
    pad = 0.06 * max(np.ptp(ends), 0.2)
    ax.update_datalim([(min(ends.min() - pad, -0.12), 0), (max(ends.max() + pad, 0.12), 0)])
    ax.margins(x=0)
    ax.autoscale_view(scaley=False)
    ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(ticks, steps=[1, 2, 4, 5, 10]))
    ax.grid(axis="both", color="0.9")
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    sns.despine(ax=ax, left=True)


def legend_below(fig: Figure, ax, side: str = "lower") -> None:
    """Explain filled and hollow marks below (or above) all panels."""
    look = {"edgecolor": "0.25", "linewidth": 1}
    handles = [ax.scatter([], [], 16, marker=m, facecolor=f, **look) for m, f in (("o", "0.25"), ("s", "white"))]
    labels = ["interval excludes 0", "interval holds 0"]
    fig.legend(handles, labels, loc=f"outside {side} center", ncols=2, frameon=False)


def contrasts(
    table: pd.DataFrame,
    display: Mapping[str, str] | None = None,
    statistic: str = "discrimination",
    width: float = DOUBLE,
) -> Figure:
    """Draw the change of a statistic between two conditions per evaluator, one panel per pair of conditions.

    table: what `selfeval.stats.condition_contrasts` returns; a point to the right of 0 is a rise in the second.
    """
    rows = table[table["statistic"] == statistic]
    if rows.empty:
        raise InputError(f"The contrasts have no rows of statistic {statistic!r}.")
    pairs = list(rows.groupby(["task", "field", "first", "second", "condition"], sort=False))
    order = list(dict.fromkeys(rows["evaluator"]))[::-1]
    columns = min(len(pairs), 3 if width >= DOUBLE else 2)
    fig, axes = row_panels(width, order, len(pairs), columns, display, title=0.36)
    with mpl.rc_context(STYLE):
        for ax, ((task, field, first, second, _), part) in zip(axes.flat, pairs, strict=False):
            interval_panel(ax, part.set_index("evaluator").reindex(order), PALETTE[0], 4 if width >= DOUBLE else 3)
            ax.set_title(f"{task}\n{field}: {first} → {second}", fontsize=7 if width >= DOUBLE else 6)
        for ax in axes.flat[: len(pairs)][-columns:]:
            ax.set_xlabel(f"change of {SYMBOLS.get(statistic, statistic)}", fontsize=8 if width >= DOUBLE else 6.5)
        legend_below(fig, axes[0, 0])
    return plain(fig)
