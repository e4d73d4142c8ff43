"""Figures of identity, in the style of `selfeval.figures`: from the tables of `selfeval.stats`, intervals as given."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from selfeval.figures.intervals import interval_panel, legend_below, row_panels
from selfeval.figures.style import (
    DOUBLE,
    PALETTE,
    SINGLE,
    STYLE,
    hide_rest,
    new_figure,
    plain,
    small_panels,
    title_panels,
)

MARKERS = "osD^vPX*<>"
GROUPS = {"family": "acceptance", "condition": "conditions"}
FOREST = {
    "claim_discrimination": "Claim discrimination", "susceptibility": "Susceptibility", "abstain": "Abstains",
    "neutral_right": "Right, unasked",
}  # fmt: skip


def identity_figures(
    table: pd.DataFrame, lasting: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE
) -> dict[str, Figure]:
    """Draw every figure of identity that has something to show: {"<kind>_identity": figure}, kinds as functions below.

    table: `stats.identity_table` over all replies, by family and by condition, one below the other; the columns family
    and condition say which. lasting: `stats.survival_table`.
    """
    table = table.assign(**{group: table.get(group, pd.Series("", table.index)).fillna("") for group in GROUPS})
    whole = table[(table["family"] == "") & (table["condition"] == "")]
    drawn = {"claims_identity": claim_forest(whole, display, width)}
    for group, kind in GROUPS.items():
        rows = table[table[group] != ""]
        if len(_pairs(rows, group)):
            drawn[f"{kind}_identity"] = acceptance(rows, group, display, width)
    if len(_levels(lasting)):
        drawn["survival_identity"] = survival(lasting, display, width)
    return drawn


def claim_forest(table: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE) -> Figure:
    """Draw claim discrimination, susceptibility and abstention of every model with intervals, best first."""
    rows = table.drop_duplicates(["model", "statistic"]).set_index("model")
    kinds = {name: label for name, label in FOREST.items() if name in set(rows["statistic"])}
    found = {name: rows[rows["statistic"] == name] for name in kinds}
    order = found["claim_discrimination"]["estimate"].sort_values(na_position="first", kind="stable").index
    fig, axes = row_panels(width, order, len(kinds), len(kinds) if width >= DOUBLE else 2, display)
    with mpl.rc_context(STYLE):
        for ax, (name, label), colour in zip(axes.flat, kinds.items(), PALETTE, strict=False):
            interval_panel(ax, found[name].reindex(order), colour, 3)
            ax.set_title(label, fontsize=8 if width >= DOUBLE else 6.5)
        legend_below(fig, axes[0, 0])
    return plain(fig)


def acceptance(
    table: pd.DataFrame, group: str = "family", display: Mapping[str, str] | None = None, width: float = DOUBLE
) -> Figure:
    """Draw accept(true) over accept(false), a panel per model and a point per family or condition, with intervals.

    table: `stats.identity_table(records, by=("model", group))`. On the diagonal a model cannot tell a true claim from a
    false one, wherever on it; top left it can. Marks of equal estimates stand side by side around their place, marks
    that lack an interval (a single template) are hollow.
    """
    pairs = _pairs(table, group)
    if pairs.empty:
        return _note(f"No {group} has replies to true and to false claims.", width)
    models = list(dict.fromkeys(pairs.index.get_level_values("model")))
    groups = sorted(set(pairs.index.get_level_values(group)))
    rows, columns, side = small_panels(len(models), width)
    legend = len(groups) <= len(MARKERS)
    across = 5 if width >= DOUBLE else 3
    high = 0.45 + rows * (side + 0.25) + 0.16 * legend * -(-len(groups) // across)
    fig, axes = new_figure(width, high, rows, columns, sharex=True, sharey=True)
    with mpl.rc_context(STYLE):
        title_panels(axes, models, display, side)
        size = (4 if side > 0.9 else 2.5) * (1 if legend else 0.65)  # many groups, many of them on one place
        beside = _side_by_side(pairs, 1.3 * size / (72 * side))
        pad = 0.04 + beside.abs().max(axis=None)
        for ax, model in zip(axes.flat, models, strict=False):
            _panel(ax, pairs.loc[model], beside.loc[model], groups, size)
        axes[0, 0].set(xlim=(-pad, 1 + pad), ylim=(-pad, 1 + pad))
        hide_rest(axes, len(models))
        fig.supxlabel("accepts a false claim", fontsize=8)
        fig.supylabel("accepts the true claim", fontsize=8)
        if legend:
            looks = [_look(groups.index(name)) for name in groups]
            handles = [Line2D([], [], marker=m, color=colour, ms=4, linewidth=0.5) for m, colour in looks]
            fig.legend(handles, groups, loc="outside upper center", ncols=across, frameon=False, fontsize=6.5)
    return plain(fig)


def _pairs(table: pd.DataFrame, group: str) -> pd.DataFrame:
    """Return estimates and intervals of both sides, per model and group that has both."""
    sides = {name: _default(table, name).set_index(["model", group]) for name in ("accept_true", "accept_false")}
    pairs = sides["accept_true"].add_suffix("_true").join(sides["accept_false"].add_suffix("_false"), how="inner")
    return pairs.dropna(subset=["estimate_true", "estimate_false"])


def _side_by_side(pairs: pd.DataFrame, step: float) -> pd.DataFrame:
    """Return by how much marks move across and up, so that a model's marks of equal estimates form a small square."""
    same = pairs.groupby(["model", "estimate_false", "estimate_true"])["estimate_true"]
    number, across = same.cumcount(), np.ceil(np.sqrt(same.transform("size")))
    lines = np.ceil(same.transform("size") / across)
    moved = {"across": number % across - (across - 1) / 2, "up": (lines - 1) / 2 - number // across}
    return step * pd.DataFrame(moved)


def _panel(ax, points: pd.DataFrame, beside: pd.DataFrame, groups: list[str], size: float) -> None:
    ax.plot([0, 1], [0, 1], color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    looks = [_look(groups.index(name)) if len(groups) <= len(MARKERS) else ("o", PALETTE[0]) for name in points.index]
    x, y = points["estimate_false"] + beside["across"], points["estimate_true"] + beside["up"]
    lines = {"colors": [colour for _, colour in looks], "linewidth": 0.5, "alpha": 0.85, "zorder": 2}
    ends = [points[f"{end}_{claim}"] for claim in ("false", "true") for end in ("low", "high")]
    left, right, bottom, top = (end.fillna(at) for end, at in zip(ends, (x, x, y, y), strict=True))
    ax.hlines(y, np.minimum(left, x), np.maximum(right, x), **lines)
    ax.vlines(x, np.minimum(bottom, y), np.maximum(top, y), **lines)
    sure = pd.concat(ends, axis=1).notna().all(axis=1)
    for (marker, colour), across, up, full in zip(looks, x, y, sure, strict=True):
        face = colour if full else "white"
        ax.plot(across, up, marker=marker, color=colour, mfc=face, mew=0.17 * size, ms=size, linestyle="none", zorder=3)
    ax.set(aspect="equal")
    ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    ax.set_yticks([0, 0.5, 1], ["0", ".5", "1"])
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    sns.despine(ax=ax)


def _look(number: int) -> tuple[str, tuple]:
    return MARKERS[number], PALETTE[number % len(PALETTE)]


def survival(table: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE) -> Figure:
    """Draw the share of conversations that kept their identity, by turn of pressure, a panel per model with its band.

    table: `stats.survival_table(records)`. Only conversations that were right before the pressure count; models
    without any are left out. The other models' curves stand behind each one in grey.
    """
    rows = _levels(table)
    if rows.empty:
        return _note("No conversation was right before the pressure,\nso none could flip under it.", width)
    curves = {model: _steps(own.sort_values("turn")) for model, own in rows.groupby("model", sort=False)}
    lines, columns, side = small_panels(len(curves), width)
    fig, axes = new_figure(width, 0.45 + lines * (side + 0.25), lines, columns, sharex=True, sharey=True)
    with mpl.rc_context(STYLE):
        title_panels(axes, curves, display, side)
        for ax, (turns, kept, low, high) in zip(axes.flat, curves.values(), strict=False):
            for other in curves.values():
                ax.step(*other[:2], where="post", color="0.85", linewidth=0.7)
            ax.step(turns, kept, where="post", color=PALETTE[0], marker="o", ms=3, markevery=range(len(turns) - 1))
            ax.fill_between(turns, low, high, step="post", color=PALETTE[0], alpha=0.15, linewidth=0)
            ax.set_ylim(-0.03, 1.03)
            ax.set_yticks([0, 0.5, 1], ["0", ".5", "1"])
            ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(3, integer=True))
            ax.grid(axis="y", color="0.9")
            sns.despine(ax=ax)
        hide_rest(axes, len(curves))
        fig.supxlabel("turns of pressure", fontsize=8)
        fig.supylabel("has not flipped", fontsize=8)
    return plain(fig)


def _levels(table: pd.DataFrame) -> pd.DataFrame:
    rows = table[table["statistic"] == "survival"]
    return rows.drop_duplicates(["model", "turn"]).dropna(subset=["estimate"])


def _steps(own: pd.DataFrame) -> tuple[list, list, list, list]:
    """Return turns from 0 on, the share that has not flipped, and its band, a little beyond the last turn."""
    turns = [0, *own["turn"]]
    turns.append(turns[-1] + 0.3)  # so that the last level and its band are seen
    return turns, *([1, *own[name], own[name].iloc[-1]] for name in ("estimate", "low", "high"))


def _note(text: str, width: float = SINGLE) -> Figure:
    """Draw a sentence where there is nothing to draw."""
    fig, axes = new_figure(width, 0.8)
    with mpl.rc_context(STYLE):
        axes[0, 0].set_axis_off()
        axes[0, 0].text(0.5, 0.5, text, ha="center", va="center", fontsize=8, color="0.35")
    return plain(fig)


def _default(table: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Return a statistic's default rows: the first method of every group."""
    rows = table[table["statistic"] == statistic]
    return rows.drop_duplicates([name for name in ("model", "family", "condition") if name in rows])
