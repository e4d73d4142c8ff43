"""Who is taken for whom: heat maps of accuracy, discrimination and names given, and bars of claims."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from selfeval.errors import InputError
from selfeval.figures.intervals import default_rows, one_design
from selfeval.figures.style import (
    DOUBLE,
    PAGE,
    PALETTE,
    SINGLE,
    SMALLEST,
    STYLE,
    names_shown,
    new_figure,
    pitch,
    plain,
    size_of,
)  # fmt: skip
from selfeval.stats.counts import BINARY, NAMING, NONE, NOT_SELF

OTHER = "other"
EXTRA = {NONE: "no answer", OTHER: "other name"}


def accuracy_heatmap(counts: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE) -> Figure:
    """Draw the accuracy of each evaluator on each author's texts; own texts are framed, empty cells hatched.

    No answer counts as not correct, as in the published tables.
    """
    one_design(counts)
    right = (counts["predicted"] == counts["author"]) | (
        (counts["predicted"] == NOT_SELF) & (counts["author"] != counts["evaluator"])
    )
    pair = [counts["evaluator"], counts["author"]]
    n, hits = counts["n"].groupby(pair).sum().unstack(), (counts["n"] * right).groupby(pair).sum().unstack()
    order = _order(n.index, n.columns)
    share = (hits / n).reindex(index=order[0], columns=order[1])
    return _heatmap_figure(share, display, "accuracy", ("evaluator", "author of the text"), width)


def discrimination_matrix(
    table: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE
) -> Figure:
    """Draw J of every evaluator for every author's name; the diagonal (its own name) is framed."""
    rows = default_rows(table, "discrimination", per_author=True)
    j = rows.pivot(index="evaluator", columns="author", values="estimate")
    order = _order(j.index, j.columns)
    j = j.reindex(index=order[0], columns=order[1])
    return _heatmap_figure(j, display, "discrimination J", ("evaluator", "author named"), width, centred=True)


def prediction_heatmap(
    counts: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = DOUBLE, *, panels: bool = False
) -> Figure:
    """Draw which name is given to whose texts (rows sum to 1), pooled, or one panel per evaluator.

    A panel frames the evaluator's own column. Names outside the authors are "other".
    """
    one_design(counts)
    if not set(counts["task"]) <= set(NAMING):
        task = counts["task"].iloc[0]
        raise InputError(f"A prediction heat map needs a naming task ({', '.join(NAMING)}), got {task}.")
    authors = sorted(counts["author"].unique())
    evaluators = sorted(counts["evaluator"].unique()) if panels else [None]
    tables = [_shares(counts if e is None else counts[counts["evaluator"] == e], authors) for e in evaluators]
    named = [c for c in tables[0] if c in authors or any(t[c].gt(0).any() for t in tables)]
    if not panels:
        display = EXTRA | dict(display or {})
        axis_names = "author of the text", "name given"
        return _heatmap_figure(tables[0][named], display, "share of texts", axis_names, width, frame=False)
    return _panels(tables, named, evaluators, display)


def _shares(counts: pd.DataFrame, authors: list[str]) -> pd.DataFrame:
    """Return author x name shares, names outside the authors as OTHER, no answer as NONE."""
    name = counts["predicted"].where(counts["predicted"].isin([*authors, NONE]), OTHER)
    table = counts.assign(name=name).pivot_table(
        index="author", columns="name", values="n", aggfunc="sum", fill_value=0
    )
    table = table.reindex(columns=[*authors, OTHER, NONE], fill_value=0)
    return table.div(table.sum(axis=1), axis=0).reindex(index=authors)


def _panels(tables, named, evaluators, display) -> Figure:
    """Draw small prediction heat maps with shared axes and one colour bar."""
    widest = min(len(evaluators), 2 if len(named) > 24 else 5)
    columns = min(range(max(1, widest - 2), widest + 1), key=lambda c: (-len(evaluators) % c, -c))  # few empty panels
    rows = -(-len(evaluators) // columns)
    side = min((DOUBLE - 1.9) / columns, 2.2)
    fig, axes = new_figure(DOUBLE, rows * (side + 0.25) + 1.2, rows, columns, sharex=True, sharey=True)
    extra = EXTRA | dict(display or {})
    with mpl.rc_context(STYLE):
        for ax, table, evaluator in zip(axes.flat, tables, evaluators, strict=False):
            image = _heat(ax, table[named], Normalize(0, 1), "Blues", "equal")
            ax.set_title(names_shown([evaluator], display, int(side * 17))[0], fontsize=7)
            if evaluator in named:
                column = (named.index(evaluator) - 0.5, -0.5)
                ax.add_patch(Rectangle(column, 1, len(table), fill=False, edgecolor=PALETTE[3]))
        for ax in axes.flat[len(tables) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            _ticks(ax.yaxis, names_shown(tables[0].index, display, 18), side)
        for ax in axes[-1]:  # panels above a gap in the last row share the columns of the rest
            _ticks(ax.xaxis, names_shown(named, extra, 18), side)
        fig.supylabel("author of the text", fontsize=8)
        fig.supxlabel("name given", fontsize=8)
        fig.colorbar(image, ax=axes, shrink=0.6, label="share of the author's texts", pad=0.02)
    return plain(fig)


def _order(evaluators, authors) -> tuple[list[str], list[str]]:
    """Return evaluators, and authors with the evaluators first in the same order: own cells on the diagonal."""
    evaluators = sorted(evaluators, key=lambda e: (e not in set(authors), str(e)))
    return evaluators, [e for e in evaluators if e in set(authors)] + sorted(set(authors) - set(evaluators))


def _heatmap_figure(
    values: pd.DataFrame, display, label: str, axis_names, width: float, *, centred=False, frame=True
) -> Figure:
    """Draw a labelled heat map with a colour bar; annotated while cells are large enough."""
    rows, columns = values.shape
    about = (width - (2.0 if width >= DOUBLE else 1.6)) / columns
    high = pitch(rows, PAGE - 1.9, min(max(1.4 * about, 0.17), 0.42))
    beside = names_shown(values.index, display, 26 if width >= DOUBLE else 18)
    room = 0.75 + 0.0085 * size_of(high) * max(map(len, beside))  # inches: names, axis label, colour bar
    wide = (width - room) / columns
    below, keyed = names_shown(values.columns, display, 24 if width >= DOUBLE else 18), wide * 72 < SMALLEST * 1.2
    if keyed:  # too narrow for names: columns are numbered like the rows
        beside, below, rest = _numbered(values, beside, below)
    size = size_of(wide, size_of(high)) if not keyed else 6
    upright = not keyed and max(map(len, below)) * size * 0.62 > wide * 72
    foot = 0.0085 * size * max(map(len, below)) if upright else 0.15
    fig, axes = new_figure(width, high * rows + foot + 0.45 + 0.12 * (keyed and bool(rest)))
    ax = axes[0, 0]
    with mpl.rc_context(STYLE):
        limit = np.nanmax(np.abs(values.to_numpy(float)), initial=0.5)  # never less: small values shall look small
        full = 1 if frame or limit > 0.6 else limit  # shares over many names are small
        norm, colours = (Normalize(-limit, limit), "vlag") if centred else (Normalize(0, full), "Blues")
        image = _heat(ax, values, norm, colours)
        if wide > 0.3 and high > 0.12:
            _annotate(ax, values, image)
        elif centred:
            _minus_signs(ax, values, limit)
        if frame:
            for r, evaluator in enumerate(values.index):
                if evaluator in values.columns:
                    at = (values.columns.get_loc(evaluator) - 0.5, r - 0.5)
                    thick = max(0.4, 2.5 * min(wide, high))
                    ax.add_patch(Rectangle(at, 1, 1, fill=False, edgecolor="black", linewidth=thick))
        ax.set_yticks(range(rows), beside, fontsize=size_of(high))
        ax.set_xticks(range(columns), below, fontsize=size)
        if upright:
            for text in ax.get_xticklabels():
                text.set(rotation=90, ha="center", va="top")
        ax.set_ylabel(axis_names[0])
        ax.set_xlabel(f"{axis_names[1]}, numbered as the rows{rest}" if keyed else axis_names[1], fontsize=8 - keyed)
        fig.colorbar(image, ax=ax, shrink=0.8, aspect=18, label=label, pad=0.02)
    return plain(fig)


def _numbered(values: pd.DataFrame, beside: list[str], below: list[str]) -> tuple[list[str], list[str], str]:
    """Return row labels with numbers, every fifth column's number, and the key of columns that are no row."""
    place = {column: k + 1 for k, column in enumerate(values.columns)}
    rows = [f"{name} {place[row]:>2}" if row in place else name for row, name in zip(values.index, beside, strict=True)]
    numbers = [str(k) if k % 5 == 0 or k == 1 else "" for k in place.values()]
    others = [f"{place[c]}: {name}" for c, name in zip(values.columns, below, strict=True) if c not in values.index]
    return rows, numbers, "".join(f"\n{', '.join(others[k : k + 2])}" for k in range(0, len(others), 2))


def _heat(ax, values: pd.DataFrame, norm, cmap: str, aspect: str = "auto"):
    """Draw cells; NaN is hatched, never a colour of the scale."""
    grid = np.ma.masked_invalid(values.to_numpy(float))
    image = ax.imshow(grid, norm=norm, cmap=sns.color_palette(cmap, as_cmap=True), aspect=aspect, interpolation="none")
    for r, c in np.argwhere(np.ma.getmaskarray(grid)):
        cell = (c - 0.5, r - 0.5)
        ax.add_patch(Rectangle(cell, 1, 1, facecolor="white", edgecolor="0.6", hatch="/////", linewidth=0))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return image


def _minus_signs(ax, values: pd.DataFrame, limit: float) -> None:
    """Mark clearly negative cells with a dash: without colour both ends of the scale are dark."""
    cells = np.argwhere(values.to_numpy(float) < -0.15 * limit)
    ax.add_collection(LineCollection([[(c - 0.25, r), (c + 0.25, r)] for r, c in cells], colors="white", linewidth=0.7))


def _annotate(ax, values: pd.DataFrame, image) -> None:
    """Write each value into its cell, in black or white by the cell's brightness."""
    for (r, c), value in np.ndenumerate(values.to_numpy(float)):
        if np.isfinite(value):
            red, green, blue, _ = image.cmap(image.norm(value))
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
            text = f"{value:.2f}".replace("-", "−")
            ax.text(c, r, text, ha="center", va="center", fontsize=6, color="black" if bright else "white")


def _tick_size(cell: float) -> float:
    """Return the font size in points for labels of cells of so many inches."""
    return float(np.clip(cell * 72 * 0.85, 3.5, 7))


def _ticks(axis, labels: list[str], length: float) -> None:
    """Label every cell, in the size that fits; long labels of the x axis stand upright."""
    size = _tick_size(length / max(len(labels), 1))
    axis.set_ticks(range(len(labels)), labels, fontsize=size)
    if axis.axis_name == "x" and (max(map(len, labels), default=0) * size * 0.6 > length / max(len(labels), 1) * 72):
        for text in axis.get_ticklabels():
            text.set(rotation=90, ha="center", va="top")


def claim_bars(counts: pd.DataFrame, display: Mapping[str, str] | None = None, width: float = SINGLE) -> Figure:
    """Draw how often each name is given (bars) against the share of texts it wrote (ticks), over all evaluators.

    Binary task: how often each evaluator says "mine", against the share of its own texts among those it saw.
    """
    one_design(counts)
    shares = claim_shares(counts)
    labels = names_shown(shares.index, EXTRA | dict(display or {}), 30 if width >= DOUBLE else 22)
    row = pitch(max(len(shares), 3))
    fig, axes = new_figure(width, 0.75 + row * max(len(shares), 3))
    ax, y = axes[0, 0], np.arange(len(shares))
    with mpl.rc_context(STYLE):
        wrote = shares["wrote"].to_numpy(float)
        for known, look in ((True, {"color": PALETTE[0]}), (False, {"color": "0.85", "hatch": "////"})):
            chosen = np.isfinite(wrote) == known
            ax.barh(y[chosen], shares["given"].to_numpy(float)[chosen], 0.7, edgecolor="0.4", linewidth=0.4, **look)
        tick = ax.vlines(wrote, y - 0.42, y + 0.42, color=PALETTE[3], linewidth=1.6)
        ax.set_yticks(y, labels, fontsize=size_of(row))
        ax.set_ylim(-0.6, len(shares) - 0.4)
        ax.set_xlim(0, min(1.0, 1.08 * np.nanmax(shares.to_numpy(float), initial=0.01)))
        ax.set_xlabel("share of texts called its own" if _binary(counts) else "share of texts given this name")
        ax.tick_params(axis="y", length=0)
        fig.legend([tick], ["share of texts it wrote"], loc="outside upper right", frameon=False)
        sns.despine(ax=ax, left=True)
    return plain(fig)


def _binary(counts: pd.DataFrame) -> bool:
    return set(counts["task"]) == {BINARY}


def claim_shares(counts: pd.DataFrame) -> pd.DataFrame:
    """Return per name the share of rows that give it and the share of texts it wrote, least given first."""
    if _binary(counts):
        mine, wrote = counts["predicted"] == counts["evaluator"], counts["author"] == counts["evaluator"]
        rows, given, own = ((counts["n"] * x).groupby(counts["evaluator"]).sum() for x in (1, mine, wrote))
        return pd.DataFrame({"given": given / rows, "wrote": own / rows}).sort_values("given", kind="stable")
    total = counts["n"].sum()
    wrote = counts.groupby("author")["n"].sum() / total
    name = counts["predicted"].where(counts["predicted"].isin([*wrote.index, NONE]), OTHER)
    given = counts.groupby(name)["n"].sum() / total
    shares = pd.DataFrame({"given": given, "wrote": wrote})
    shares["given"] = shares["given"].fillna(0)
    names = shares.loc[wrote.index].sort_values("given", kind="stable")
    return pd.concat([shares.reindex([n for n in (NONE, OTHER) if n in shares.index]), names])
