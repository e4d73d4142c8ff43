"""Figures of identity, in the style of `selfeval.figures`: from the tables of `selfeval.stats`, intervals as given."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from selfeval.figures.style import DOUBLE, PALETTE, SINGLE, STYLE, names_shown, new_figure, plain

MARKERS = "osD^vPX*<>"


def acceptance(table: pd.DataFrame, group: str = "family", display: Mapping[str, str] | None = None) -> Figure:
    """Draw accept(true) over accept(false), a panel per model and a point per family or condition, with intervals.

    table: `stats.identity_table(records, by=("model", group))`. On the diagonal a model cannot tell a true claim from a
    false one, wherever on it; top left it can.
    """
    sides = {name: _default(table, name).set_index(["model", group]) for name in ("accept_true", "accept_false")}
    pairs = sides["accept_true"].add_suffix("_true").join(sides["accept_false"].add_suffix("_false"), how="inner")
    pairs = pairs.dropna(subset=["estimate_true", "estimate_false"])
    if pairs.empty:
        return _note(f"No {group} has replies to true and to false claims.")
    models = list(dict.fromkeys(pairs.index.get_level_values("model")))
    groups = sorted(set(pairs.index.get_level_values(group)))
    columns = 3 if len(models) in (5, 6, 9) else min(len(models), 4)
    rows = -(-len(models) // columns)
    width = SINGLE if columns < 2 else DOUBLE
    fig, axes = new_figure(
        width, 0.85 + rows * min(0.95 * width / columns, 2.6), rows, columns, sharex=True, sharey=True
    )
    with mpl.rc_context(STYLE):
        for ax, model, label in zip(axes.flat, models, names_shown(models, display), strict=False):
            _panel(ax, pairs.loc[model], groups)
            ax.set_title(label)
        for ax in axes.flat[len(models) :]:
            ax.set_axis_off()
        fig.supxlabel("accepts a false claim", fontsize=8)
        fig.supylabel("accepts the true claim", fontsize=8)
        if len(groups) <= len(MARKERS):
            looks = [_look(groups.index(name)) for name in groups]
            handles = [axes[0, 0].errorbar([], [], fmt=marker, color=colour, ms=4) for marker, colour in looks]
            fig.legend(handles, groups, loc="outside upper center", ncols=5 if columns > 1 else 3, frameon=False)
    return plain(fig)


def _panel(ax, points: pd.DataFrame, groups: list[str]) -> None:
    ax.plot([0, 1], [0, 1], color="0.35", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    for name, point in points.iterrows():
        marker, colour = _look(groups.index(name)) if len(groups) <= len(MARKERS) else ("o", PALETTE[0])
        x, y = point["estimate_false"], point["estimate_true"]
        spread = [_reach(point, "false"), _reach(point, "true")]
        ax.errorbar(x, y, xerr=spread[0], yerr=spread[1], fmt=marker, color=colour, ms=4, elinewidth=0.5, alpha=0.85)
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
    ax.set_xticks([0, 0.5, 1])
    ax.set_yticks([0, 0.5, 1])
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    sns.despine(ax=ax)


def _reach(point: pd.Series, side: str) -> np.ndarray:
    """Return how far the interval reaches below and above the estimate; nowhere without an interval."""
    low, value, high = (point[f"{end}_{side}"] for end in ("low", "estimate", "high"))
    return np.nan_to_num([[value - low], [high - value]], nan=0.0).clip(0)


def _look(number: int) -> tuple[str, tuple]:
    return MARKERS[number], PALETTE[number % len(PALETTE)]


def survival(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> Figure:
    """Draw the share of conversations that kept their identity, by turn of pressure, with bands per model.

    table: `stats.survival_table(records)`. Only conversations that were right before the pressure count; models
    without any are left out.
    """
    rows = table[table["statistic"] == "survival"]
    rows = rows.drop_duplicates(["model", "turn"]).dropna(subset=["estimate"])
    if rows.empty:
        return _note("No conversation was right before the pressure,\nso none could flip under it.")
    fig, axes = new_figure(SINGLE, 2.4)
    ax = axes[0, 0]
    models = list(dict.fromkeys(rows["model"]))
    with mpl.rc_context(STYLE):
        for number, (model, label) in enumerate(zip(models, names_shown(models, display), strict=True)):
            own = rows[rows["model"] == model].sort_values("turn")
            turns = [0, *own["turn"]]
            turns.append(turns[-1] + 0.3)  # so that the last level and its band are seen
            kept, low, high = ([1, *own[name], own[name].iloc[-1]] for name in ("estimate", "low", "high"))
            marker, colour = _look(number % len(MARKERS))
            at = list(range(len(own) + 1))
            ax.step(turns, kept, where="post", color=colour, marker=marker, ms=3.5, markevery=at, label=label)
            ax.fill_between(turns, low, high, step="post", color=colour, alpha=0.13, linewidth=0)
        ax.set(ylim=(-0.03, 1.03), xlabel="turns of pressure", ylabel="has not flipped")
        ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
        ax.grid(axis="y", color="0.9")
        fig.legend(loc="outside lower center", ncols=2, frameon=False)
        sns.despine(ax=ax)
    return plain(fig)


def _note(text: str) -> Figure:
    """Draw a sentence where there is nothing to draw."""
    fig, axes = new_figure(SINGLE, 0.8)
    with mpl.rc_context(STYLE):
        axes[0, 0].set_axis_off()
        axes[0, 0].text(0.5, 0.5, text, ha="center", va="center", fontsize=8, color="0.35")
    return plain(fig)


def _default(table: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Return a statistic's default rows: the first method of every group."""
    rows = table[table["statistic"] == statistic]
    return rows.drop_duplicates([name for name in ("model", "family", "condition") if name in rows])
