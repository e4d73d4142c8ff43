"""Figures and tables for print: one style, sizes in inches as printed, files that are equal on a second run.

Functions take the result table of `selfeval.stats.recognition_table` or the counts of `selfeval.stats.confusion` (of
one task and condition) and return a Figure; intervals are drawn from the columns low and high as given. `display`
maps a model id to its label; ids without one are shown as they are.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from selfeval.errors import InputError
from selfeval.stats.counts import BINARY, NAMING, NONE, NOT_SELF, varying_parts

SINGLE, DOUBLE = 3.4, 7.0  # column widths in inches
PALETTE = sns.color_palette("colorblind")
STYLE = {
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "selfeval",
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "figure.titlesize": 9, "axes.linewidth": 0.6, "lines.linewidth": 1.0,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "grid.linewidth": 0.4, "hatch.linewidth": 0.4, "figure.dpi": 130, "savefig.dpi": 200, "text.parse_math": False,
}  # fmt: skip
SYMBOLS = {
    "self_accuracy": "Self accuracy H", "cross_accuracy": "Cross accuracy", "advantage": "Advantage A",
    "false_claim_rate": "False-claim rate F", "discrimination": "Discrimination J",
    "corrected_advantage": "Corrected advantage Δ", "peer_corrected": "Peer-corrected D",
    "peer_baseline": "Peer baseline S", "interaction": "Interaction DD", "d_prime": "d′",
}  # fmt: skip
OTHER = "other"
EXTRA = {NONE: "no answer", OTHER: "other name"}


def use_style() -> None:
    """Set the project's style for everything drawn from here on."""
    sns.set_theme(context="paper", style="ticks", palette="colorblind", rc=STYLE)


def save(fig: Figure, folder: Path | str, name: str) -> list[Path]:
    """Write name.pdf and name.png to a folder, without dates, so that a second run gives the same bytes."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    with mpl.rc_context(STYLE):
        fig.savefig(paths[0], metadata={"CreationDate": None})
        fig.savefig(paths[1], dpi=200, metadata={"Software": None})
    return paths


def save_table(df: pd.DataFrame, folder: Path | str, name: str, precision: int = 3) -> list[Path]:
    """Write name.csv (full precision) and name.tex (booktabs, rounded); the index is left out."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv", folder / f"{name}.tex"]
    df.to_csv(paths[0], index=False)
    styler = df.style.format(escape="latex", precision=precision, na_rep="").format_index(escape="latex", axis=1)
    paths[1].write_text(styler.hide(axis="index").to_latex(hrules=True), encoding="utf-8")
    return paths


# ---------------------------------------------------------------------------------------------------------------
# Reading the inputs


def default_rows(table: pd.DataFrame, statistic: str, per_author: bool = False) -> pd.DataFrame:
    """Return a statistic's default row (first method, first policy) per evaluator, or per evaluator and author."""
    _one_design(table)
    rows = table[table["statistic"] == statistic]
    author = rows["author"].astype(object).fillna("").astype(str)
    rows = rows[(author != "") == per_author]
    rows = rows.drop_duplicates(["evaluator", "author"] if per_author else ["evaluator"])
    if rows.empty:
        raise InputError(f"The table has no rows of statistic {statistic!r}{' per author' if per_author else ''}.")
    return rows


def _one_design(frame: pd.DataFrame) -> None:
    """Raise unless the rows are of one task and condition: a figure never mixes designs."""
    found = frame[["task", "condition"]].astype(object).fillna("").drop_duplicates()
    if len(found) > 1:
        some = "; ".join(f"{task} {condition}".strip() for task, condition in found.head(4).itertuples(index=False))
        raise InputError(f"A figure shows one task and condition, got {len(found)} ({some}); select one first.")


def _labels(ids, display: Mapping[str, str] | None, longest: int = 30) -> list[str]:
    """Return the labels of ids, the middle of a very long one left out."""
    names = [str((display or {}).get(i, i)) for i in ids]
    head = longest * 2 // 3
    return [n if len(n) <= longest else f"{n[:head]}…{n[head + 1 - longest :]}" for n in names]


def _plain(fig: Figure) -> Figure:
    """Make every text literal: labels come from data, and "$$" is not mathematics."""
    for text in fig.findobj(Text):
        text.set_parse_math(False)
    return fig


def _figure(width: float, height: float, rows: int = 1, columns: int = 1, **options):
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(width, height), layout="constrained")
        return fig, fig.subplots(rows, columns, squeeze=False, **options)


# ---------------------------------------------------------------------------------------------------------------
# Intervals


def advantage_and_discrimination(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> Figure:
    """Draw advantage A and discrimination J side by side per evaluator, highest J first.

    Where J's marker is hollow, own texts are not told from others', whatever A says.
    """
    return forest(table, display, ("advantage", "discrimination"), same_scale=True)


def forest(
    table: pd.DataFrame,
    display: Mapping[str, str] | None = None,
    statistics: tuple[str, ...] = ("advantage", "discrimination", "corrected_advantage", "peer_corrected"),
    order_by: str = "discrimination",
    same_scale: bool = False,
) -> Figure:
    """Draw one panel per statistic with every evaluator's estimate and interval; hollow where it holds 0."""
    needed = dict.fromkeys([*statistics, order_by])
    rows = {name: default_rows(table, name).set_index("evaluator") for name in needed}
    order = rows[order_by]["estimate"].sort_values(ascending=True, na_position="first", kind="stable").index
    height = 0.95 + 0.17 * max(len(order), 3)
    width = SINGLE if len(statistics) == 1 else DOUBLE
    fig, axes = _figure(width, height, 1, len(statistics), sharey=True, sharex=same_scale)
    with mpl.rc_context(STYLE):
        for ax, name, colour in zip(axes[0], statistics, PALETTE, strict=False):
            _interval_panel(ax, rows[name].reindex(order), colour, 5 if len(statistics) < 3 else 3)
            ax.set_title(SYMBOLS.get(name, name))
        axes[0, 0].set_yticks(range(len(order)), _labels(order, display))
        axes[0, 0].set_ylim(-0.7, len(order) - 0.3)
        _legend_below(fig, axes[0, 0])
    return _plain(fig)


def _interval_panel(ax, rows: pd.DataFrame, colour, ticks: int) -> None:
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
    ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    ax.grid(axis="both", color="0.9")
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    sns.despine(ax=ax, left=True)


def _legend_below(fig: Figure, ax) -> None:
    look = {"edgecolor": "0.25", "linewidth": 1}
    handles = [ax.scatter([], [], 16, marker=m, facecolor=f, **look) for m, f in (("o", "0.25"), ("s", "white"))]
    labels = ["interval excludes 0", "interval holds 0"]
    fig.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)


# ---------------------------------------------------------------------------------------------------------------
# Heat maps


def accuracy_heatmap(counts: pd.DataFrame, display: Mapping[str, str] | None = None) -> Figure:
    """Draw the accuracy of each evaluator on each author's texts; own texts are framed, empty cells hatched.

    No answer counts as not correct, as in the published tables.
    """
    _one_design(counts)
    right = (counts["predicted"] == counts["author"]) | (
        (counts["predicted"] == NOT_SELF) & (counts["author"] != counts["evaluator"])
    )
    pair = [counts["evaluator"], counts["author"]]
    n, hits = counts["n"].groupby(pair).sum().unstack(), (counts["n"] * right).groupby(pair).sum().unstack()
    order = _order(n.index, n.columns)
    share = (hits / n).reindex(index=order[0], columns=order[1])
    return _heatmap_figure(share, display, "accuracy", ("evaluator", "author of the text"))


def discrimination_matrix(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> Figure:
    """Draw J of every evaluator for every author's name; the diagonal (its own name) is framed."""
    rows = default_rows(table, "discrimination", per_author=True)
    j = rows.pivot(index="evaluator", columns="author", values="estimate")
    order = _order(j.index, j.columns)
    j = j.reindex(index=order[0], columns=order[1])
    return _heatmap_figure(j, display, "discrimination J", ("evaluator", "author named"), centred=True)


def prediction_heatmap(
    counts: pd.DataFrame, display: Mapping[str, str] | None = None, *, panels: bool = False
) -> Figure:
    """Draw which name is given to whose texts (rows sum to 1), pooled, or one panel per evaluator.

    A panel frames the evaluator's own column. Names outside the authors are "other".
    """
    _one_design(counts)
    if not set(counts["task"]) <= set(NAMING):
        task = counts["task"].iloc[0]
        raise InputError(f"A prediction heat map needs a naming task ({', '.join(NAMING)}), got {task}.")
    authors = sorted(counts["author"].unique())
    evaluators = sorted(counts["evaluator"].unique()) if panels else [None]
    tables = [_shares(counts if e is None else counts[counts["evaluator"] == e], authors) for e in evaluators]
    named = [c for c in tables[0] if c in authors or any(t[c].gt(0).any() for t in tables)]
    if not panels:
        display = EXTRA | dict(display or {})
        return _heatmap_figure(tables[0][named], display, "share of texts", ("author", "name given"), frame=False)
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
    fig, axes = _figure(DOUBLE, rows * (side + 0.25) + 1.2, rows, columns, sharex=True, sharey=True)
    extra = EXTRA | dict(display or {})
    with mpl.rc_context(STYLE):
        for ax, table, evaluator in zip(axes.flat, tables, evaluators, strict=False):
            image = _heat(ax, table[named], Normalize(0, 1), "Blues")
            ax.set_title(_labels([evaluator], display, int(side * 17))[0], fontsize=7)
            if evaluator in named:
                column = (named.index(evaluator) - 0.5, -0.5)
                ax.add_patch(Rectangle(column, 1, len(table), fill=False, edgecolor=PALETTE[3]))
        for ax in axes.flat[len(tables) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            _ticks(ax.yaxis, _labels(tables[0].index, display, 18), side)
        for ax in axes[-1]:  # panels above a gap in the last row share the columns of the rest
            _ticks(ax.xaxis, _labels(named, extra, 18), side)
        fig.supylabel("author of the text", fontsize=8)
        fig.supxlabel("name given", fontsize=8)
        fig.colorbar(image, ax=axes, shrink=0.6, label="share of the author's texts", pad=0.02)
    return _plain(fig)


def _order(evaluators, authors) -> tuple[list[str], list[str]]:
    """Return evaluators, and authors with the evaluators first in the same order: own cells on the diagonal."""
    evaluators = sorted(evaluators, key=lambda e: (e not in set(authors), str(e)))
    return evaluators, [e for e in evaluators if e in set(authors)] + sorted(set(authors) - set(evaluators))


def _heatmap_figure(values: pd.DataFrame, display, label: str, axis_names, *, centred=False, frame=True) -> Figure:
    """Draw a labelled heat map with a colour bar; annotated while cells are large enough."""
    rows, columns = values.shape
    labels = _labels(values.index, display, 24), _labels(values.columns, display, 24)
    beside, below = (max(map(len, names), default=0) for names in labels)
    room = 1.0 + 0.052 * beside  # inches beside the cells: names, axis label, colour bar
    width = SINGLE if (SINGLE - room) / columns >= 0.3 else DOUBLE
    cell = min(0.5, (width - room) / columns)
    height = cell * rows + 0.45 + _tick_size(cell) / 72 * 0.58 * below
    fig, axes = _figure(width, max(height, 1.6))
    ax = axes[0, 0]
    with mpl.rc_context(STYLE):
        limit = np.nanmax(np.abs(values.to_numpy(float)), initial=0.1)
        norm, colours = (Normalize(-limit, limit), "vlag") if centred else (Normalize(0, 1), "Blues")
        image = _heat(ax, values, norm, colours)
        if cell > 0.3:
            _annotate(ax, values, image)
        if frame:
            for r, evaluator in enumerate(values.index):
                if evaluator in values.columns:
                    at = (values.columns.get_loc(evaluator) - 0.5, r - 0.5)
                    ax.add_patch(Rectangle(at, 1, 1, fill=False, edgecolor="black", linewidth=max(0.6, 2.5 * cell)))
        _ticks(ax.yaxis, labels[0], cell * rows)
        _ticks(ax.xaxis, labels[1], cell * columns)
        ax.set_ylabel(axis_names[0])
        ax.set_xlabel(axis_names[1])
        fig.colorbar(image, ax=ax, shrink=0.8, aspect=18, label=label, pad=0.02)
    return _plain(fig)


def _heat(ax, values: pd.DataFrame, norm, cmap: str):
    """Draw cells of equal sides; NaN is hatched, never a colour of the scale."""
    grid = np.ma.masked_invalid(values.to_numpy(float))
    image = ax.imshow(grid, norm=norm, cmap=sns.color_palette(cmap, as_cmap=True), aspect="equal", interpolation="none")
    for r, c in np.argwhere(np.ma.getmaskarray(grid)):
        cell = (c - 0.5, r - 0.5)
        ax.add_patch(Rectangle(cell, 1, 1, facecolor="white", edgecolor="0.6", hatch="/////", linewidth=0))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return image


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


# ---------------------------------------------------------------------------------------------------------------
# Who gets named


def claim_bars(counts: pd.DataFrame, display: Mapping[str, str] | None = None) -> Figure:
    """Draw how often each name is given (bars) against the share of texts it wrote (ticks), over all evaluators.

    Binary task: how often each evaluator says "mine", against the share of its own texts among those it saw.
    """
    _one_design(counts)
    shares = _claim_shares(counts)
    labels = _labels(shares.index, EXTRA | dict(display or {}))
    fig, axes = _figure(SINGLE, 0.9 + 0.16 * max(len(shares), 3))
    ax, y = axes[0, 0], np.arange(len(shares))
    with mpl.rc_context(STYLE):
        colours = [PALETTE[0] if isinstance(w, float) and np.isfinite(w) else "0.6" for w in shares["wrote"]]
        ax.barh(y, shares["given"], 0.7, color=colours)
        wrote = shares["wrote"].to_numpy(float)
        tick = ax.vlines(wrote, y - 0.42, y + 0.42, color=PALETTE[3], linewidth=1.6)
        ax.set_yticks(y, labels)
        ax.set_ylim(-0.6, len(shares) - 0.4)
        ax.set_xlim(0, min(1.0, 1.08 * np.nanmax(shares.to_numpy(float), initial=0.1)))
        ax.set_xlabel("share of texts called its own" if _binary(counts) else "share of texts given this name")
        ax.tick_params(axis="y", length=0)
        fig.legend([tick], ["share of texts it wrote"], loc="outside upper right", frameon=False)
        sns.despine(ax=ax, left=True)
    return _plain(fig)


def _binary(counts: pd.DataFrame) -> bool:
    return set(counts["task"]) == {BINARY}


def _claim_shares(counts: pd.DataFrame) -> pd.DataFrame:
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


# ---------------------------------------------------------------------------------------------------------------
# All figures of an analysis


def recognition_figures(
    table: pd.DataFrame, counts: pd.DataFrame, display: Mapping[str, str] | None = None
) -> dict[str, Figure]:
    """Draw every figure that a result table and its counts allow: {"<kind>_<task>[_<condition>]": figure}.

    Kinds: advantage, forest (naming tasks), accuracy, predictions, claims (naming tasks). The condition stands in the
    name where a task has several, as far as they differ.
    """
    drawn = {}
    for task, conditions in table.groupby("task", sort=False)["condition"].unique().items():
        for condition, part in varying_parts(conditions).items():
            name = f"{task}_{re.sub(r'[^a-z0-9.]+', '-', part.lower())}" if part else task
            rows = table[(table["task"] == task) & (table["condition"] == condition)]
            cells = counts[(counts["task"] == task) & (counts["condition"] == condition)]
            if "advantage" in set(rows["statistic"]):
                drawn[f"advantage_{name}"] = advantage_and_discrimination(rows, display)
            if not cells.empty:
                drawn[f"accuracy_{name}"] = accuracy_heatmap(cells, display)
            if task in NAMING:
                drawn[f"forest_{name}"] = forest(rows, display)
                drawn[f"predictions_{name}"] = prediction_heatmap(cells, display)
                drawn[f"claims_{name}"] = claim_bars(cells, display)
    return drawn


def show(drawn: Mapping[str, Figure], kind: str) -> None:
    """Display the figures of one kind in a notebook, each under its name."""
    from IPython.display import Image, display

    for name, figure in drawn.items():
        if name.startswith(f"{kind}_"):
            print(name)
            picture = io.BytesIO()
            with mpl.rc_context(STYLE):
                figure.savefig(picture, format="png", dpi=130, metadata={"Software": None})
            display(Image(picture.getvalue()))
