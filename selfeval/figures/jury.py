"""Figures of a jury, in the style of `selfeval.figures`: verdicts by turn and source, arms side by side, shifts, areas.

Functions take verdicts (`report.verdicts`) or the table of `selfeval.stats.jury.jury_table`; intervals are the table's.
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from selfeval.figures.style import DOUBLE, PALETTE, STYLE, hide_rest, new_figure, plain
from selfeval.stats.jury import default_rows
from selfeval.stats.votes import ARMS

COLOURS = {"human": PALETTE[0], "model": PALETTE[1], "": "0.25"}
MARKERS = {"human": "o", "model": "s", "": "D"}
NAMES = {"human": "people", "model": "models", "": "all"}
CONTRASTS = ("debate - reask", "debate - independent", "debate - personas", "debate - sham", "reask - personas")


def jury_figures(found: pd.DataFrame, table: pd.DataFrame, width: float = DOUBLE) -> dict[str, Figure]:
    """Draw every figure that the data allow: {"<kind>_jury": figure}, kinds as the functions below.

    found: `report.verdicts`. table: `jury_table`, with the rows of the judges that understand nothing below it.
    """
    drawn = {"arms_jury": arms(table, width), "turns_jury": turns(found, width)}
    if found["score"].notna().any():
        drawn["distributions_jury"] = distributions(found, table, width)
    if len(default_rows(table, "shift")):
        drawn["shifts_jury"] = shifts(table, width)
    if default_rows(table, "auc")["estimate"].notna().any():
        drawn["areas_jury"] = areas(table, width)
    return drawn


def arms(table: pd.DataFrame, width: float = DOUBLE, margin: float = 0.05) -> Figure:
    """Draw each arm's mean score for people and models, and beside it the paired differences of arms with +-margin."""
    means, differences = default_rows(table, "mean_score"), default_rows(table, "difference")
    differences = differences[(differences["source"] == "") & (differences["juror"] == "")]
    pairs = [name for name in CONTRASTS if name in set(differences["arm"])]
    pairs += [name for name in differences["arm"].unique() if name not in pairs]
    rows = max(means["arm"].nunique(), len(pairs), 2)
    if width >= DOUBLE:
        fig, axes = new_figure(width, 0.9 + 0.26 * rows, 1, 2)
    else:
        high = [means["arm"].nunique() + 1, len(pairs) + 1]
        fig, axes = new_figure(width, 1.3 + 0.2 * sum(high), 2, 1, height_ratios=high)
    with mpl.rc_context(STYLE):
        left, right = axes.flat
        _rows(left, means, _ordered(means["arm"]))
        left.set(xlim=(-0.03, 1.03), xlabel="mean score: 0 a program, 1 a person")
        left.axvline(0.5, color="0.8", linewidth=0.8, zorder=0)
        if pairs:
            right.axvspan(-margin, margin, color="0.93", zorder=0)
            right.axvline(0, color="0.35", linewidth=0.8, zorder=1)
            _rows(right, differences, pairs)
            right.set_xlabel(f"difference of scores; grey: within {margin:g}")
        else:
            right.set_axis_off()
        for ax in (left, right) if width < DOUBLE else ():
            ax.xaxis.label.set_fontsize(7)
        _sources(fig, left, means["source"].unique())
    return plain(fig)


def turns(found: pd.DataFrame, width: float = DOUBLE) -> Figure:
    """Draw the verdict on every turn: a thin line per conversation, a thick one for the mean, a panel per arm.

    The thick line joins turns on which the same conversations were judged: where some have ended, or a score is
    lacking, a mean of other conversations is no change of the first ones.
    """
    names = _ordered(found["arm"])
    fig, axes = _grid(names, width)
    with mpl.rc_context(STYLE):
        for ax, name in zip(axes, names, strict=True):
            for source, part in found[found["arm"] == name].groupby("source", sort=True):
                for _, line in part.groupby("conversation_id"):
                    ax.plot(line["turn"], line["score"], color=COLOURS[source], linewidth=0.5, alpha=0.35)
                look = {"color": COLOURS[source], "marker": MARKERS[source], "linewidth": 1.8, "markersize": 4}
                for mean in _of_the_same(part):
                    ax.plot(mean.index, mean, **look, zorder=3)
            ax.set(title=name.replace("_", " "), ylim=(-0.03, 1.03))
            ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(6, integer=True))
            ax.set_xlim(found["turn"].min() - 0.3, found["turn"].max() + 0.3)
            _quiet(ax)
            ax.set_xlabel("turn")
        _sources(fig, axes[0], found["source"].unique())
    return plain(fig)


def _of_the_same(part: pd.DataFrame) -> list[pd.Series]:
    """Return the mean score by turn, in pieces of successive turns with the same conversations."""
    turns = part.dropna(subset=["score"]).groupby("turn")
    who = turns["conversation_id"].agg(frozenset)
    mean = turns["score"].mean()
    return [piece for _, piece in mean.groupby((who != who.shift()).cumsum())]


def distributions(found: pd.DataFrame, table: pd.DataFrame, width: float = DOUBLE) -> Figure:
    """Draw all verdicts on people beside those on models, a panel per arm; the bar is the mean score of `jury_table`.

    That mean weighs conversations equally, so it is not the mean of the dots where some have more turns than others.
    """
    found = found.dropna(subset=["score"])
    means = default_rows(table, "mean_score")
    means = means[means["juror"] == ""].set_index(["arm", "source"])["estimate"].to_dict()
    names = _ordered(found["arm"])
    fig, axes = _grid(names, width)
    sources = sorted(found["source"].unique())
    with mpl.rc_context(STYLE):
        for ax, name in zip(axes, names, strict=True):
            for at, source in enumerate(sources):
                scores = found[(found["arm"] == name) & (found["source"] == source)]["score"].to_numpy(float)
                across = at + _beside(scores)
                look = {"facecolor": COLOURS[source], "edgecolor": "white", "linewidth": 0.3, "alpha": 0.8}
                ax.scatter(across, scores, 14, marker=MARKERS[source], **look)
                if (mean := means.get((name, source))) is not None:
                    ax.hlines(mean, at - 0.38, at + 0.38, color="0.15", linewidth=1.5, zorder=3)
            ax.set(title=name.replace("_", " "), ylim=(-0.03, 1.03), xlim=(-0.6, len(sources) - 0.4))
            ax.set_xticks(range(len(sources)), [NAMES[source] for source in sources])
            _quiet(ax)
    return plain(fig)


def shifts(table: pd.DataFrame, width: float = DOUBLE) -> Figure:
    """Draw how scores move from round to round: signed, in size, and the share that changes sides of .5."""
    kinds = {"shift": "shift", "absolute_shift": "size of the shift", "crossing": "share that crosses .5"}
    rows = default_rows(table, *kinds)
    rows = rows[(rows["juror"] == "") & (rows["source"] == "")]
    labels = rows["arm"].str.replace("_", " ") + np.where(
        rows["round"].nunique() > 1, " " + rows["round"].astype(str), ""
    )
    rows = rows.assign(arm=labels)
    names = list(dict.fromkeys(rows["arm"]))
    fig, axes = _stacked(width, names, 3)
    with mpl.rc_context(STYLE):
        for ax, (kind, title) in zip(axes.flat, kinds.items(), strict=True):
            ax.axvline(0, color="0.35", linewidth=0.8, zorder=1)
            _rows(ax, rows[rows["statistic"] == kind], names)
            ax.set_title(title)
    return plain(fig)


def areas(table: pd.DataFrame, width: float = DOUBLE) -> Figure:
    """Draw AUC and paired accuracy of every arm, above those of judges that understand nothing; .5 is chance."""
    kinds = {"auc": "AUC, people against models", "paired_accuracy": "the person scores higher"}
    rows = default_rows(table, *kinds)
    rows = rows[rows["juror"] == ""]
    names = _ordered(rows["arm"])
    fig, axes = _stacked(width, names, 2)
    with mpl.rc_context(STYLE):
        for ax, (kind, title) in zip(axes.flat, kinds.items(), strict=True):
            ax.axvline(0.5, color="0.35", linewidth=0.8, zorder=1)
            _rows(ax, rows[rows["statistic"] == kind], names)
            ax.set(xlim=(-0.03, 1.03), title=title)
    return plain(fig)


def _rows(ax, rows: pd.DataFrame, names: list[str]) -> None:
    """Draw estimates with their intervals, one line of the panel per arm, sources slightly apart; first on top."""
    sources = sorted(rows["source"].unique())
    for k, source in enumerate(sources):
        part = rows[rows["source"] == source].set_index("arm").reindex(names)
        y = np.arange(len(names))[::-1] + (len(sources) - 1) * 0.12 - 0.24 * k
        ax.hlines(y, part["low"], part["high"], color=COLOURS[source], linewidth=1.3, zorder=2)
        look = {"facecolor": COLOURS[source], "edgecolor": "white", "linewidth": 0.4, "zorder": 3}
        ax.scatter(part["estimate"], y, 20, marker=MARKERS[source], **look)
        for at in y[part["estimate"].isna().to_numpy()]:
            ax.text(0.5, at, "not estimable", fontsize=6, color="0.35", ha="center", va="center",
                    transform=ax.get_yaxis_transform())  # fmt: skip
    labels = [name.replace("_", " ").replace(" - ", " − ") for name in names]
    ax.set_yticks(np.arange(len(names))[::-1], labels)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, steps=[1, 2, 5, 10]))
    _quiet(ax)
    ax.tick_params(axis="y", length=0)


def _quiet(ax) -> None:
    ax.grid(axis="both", color="0.92")
    ax.set_axisbelow(True)
    sns.despine(ax=ax)


def _stacked(width: float, names: list[str], panels: int):
    """Return a figure of panels with the same rows: side by side, or one above the other in a single column."""
    rows = max(len(names), 2)
    if width >= DOUBLE:
        return new_figure(width, 0.8 + 0.24 * rows, 1, panels, sharey=True)
    return new_figure(width, 0.2 + panels * (0.45 + 0.18 * rows), panels, 1)


def _grid(names: list[str], width: float):
    """Return a figure with one panel per arm, in one row or in several where there are many."""
    most = 5 if width >= DOUBLE else 2
    columns = len(names) if len(names) <= most else most - (width >= DOUBLE)
    rows = -(-len(names) // columns)
    fig, axes = new_figure(width, 0.5 + 1.5 * rows, rows, columns, sharex=True, sharey=True)
    hide_rest(axes, len(names))
    for ax in axes[:, 0]:
        ax.set_ylabel("score")
    return fig, axes.flat[: len(names)]


def _sources(fig: Figure, ax, sources) -> None:
    handles = [ax.scatter([], [], 20, marker=MARKERS[s], facecolor=COLOURS[s], label=NAMES[s]) for s in sorted(sources)]
    fig.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)


def _beside(scores: np.ndarray) -> np.ndarray:
    """Return sideways places so that equal scores stand side by side."""
    out = np.zeros(len(scores))
    for value in np.unique(np.round(scores, 2)):
        at = np.flatnonzero(np.round(scores, 2) == value)
        step = min(0.08, 0.7 / max(len(at), 1))
        out[at] = (np.arange(len(at)) - (len(at) - 1) / 2) * step
    return out


def _ordered(names) -> list[str]:
    found = set(names)
    return [arm for arm in ARMS if arm in found] + sorted(found - set(ARMS))
