"""The four forms of all figures: `dots` (estimates with intervals), `against`, `cells` (heat maps), `steps` (curves).

Each takes one table of what is drawn, a row per mark, and returns a figure, or None where there is nothing to draw.
Columns that all have: `panel` (a title, optional) and, of dots and cells, `line` (what a row of the figure is, models
by their ids). names: {id: label}. In dots a colour is a reading or a source (`side`, of `style.SIDES`), never a model.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.patches import Rectangle

from selfeval.figures.style import (
    BLUE,
    COLUMN,
    DARK,
    INK,
    PAGE,
    SIDES,
    SMALLEST,
    STYLE,
    WIDTH,
    Drawing,
    _figure,
    finish,
    grid,
    labels,
    size_of,
    wrapped,
)
from selfeval.results import in_order

LINE, LABEL = 0.17, 0.13  # inches of a row, where the page has room, and of a label of a side
SIMULATED = "simulated:"
DAY, NIGHT = (BLUE, "0.45", "0.92"), ("#58a6ff", "0.62", "#21262d")  # what is found, what is not, the band at 0
Names = Mapping[str, str]


# dots -----------------------------------------------------------------------------------------------------------------


def dots(
    rows: pd.DataFrame,
    label: str,
    *,
    names: Names | None = None,
    null: float | None = 0.0,
    limits: tuple[float, float] | None = None,
    sides: Mapping[str, str] | None = None,
    wide: float = WIDTH,
) -> Drawing | None:
    """Draw estimates with their intervals on one scale, a panel each, a row per model or arm.

    rows: line, estimate, low, high; sides share a row, in their colours, and one that `style.SIDES` does not have is in
    ink; simulated models stand apart, below. label: of the axis.
    null: a mark is hollow where its interval includes this value of no effect, and grey where there is no interval;
    rows may have a `null` each, NaN where there is no such value. Where some have one and others none, no mark is
    hollow: intervals and lines at the null say it already. limits: of the axis. A column `block` puts its rows
    together, in the order given, under a line that names it.
    sides: {side: label}, written at the marks of the first row instead of a legend; no mark is hollow then.
    wide: inches.
    """
    if rows["estimate"].isna().all():
        return None
    rows = _with_defaults(rows, null, told_by_face=sides is None)
    panels = list(dict.fromkeys(rows["panel"]))
    order = _in_blocks(rows) if "block" in rows else _apart(in_order(rows["line"]))
    called = labels(order, names or {}, 30)
    limits = limits or scale(rows)
    across = min(len(panels), int(wide / 1.6))
    inches = (wide - 0.4 - 0.055 * max(map(len, called))) / across
    written = _places(rows, order, sides or {}, limits, inches)
    levels = [place.level + 1 for place in written if place.row == 0]
    room = LABEL * max(levels, default=0)  # inches above the first row
    heads = room + 0.45 + 0.12 * max(title.count("\n") for title in panels)
    high = _row_height(rows, -(-len(panels) // across), heads, len(order))
    fig, axes = grid(panels, across, heads + high * max(len(order), 3), 0.6, wide)
    with mpl.rc_context(STYLE):
        for ax, panel in zip(axes.flat, panels, strict=False):
            here = rows[rows["panel"] == panel]
            _panel(ax, here, order)
            if "block" not in rows:
                _say_missing(ax, order, here, size_of(high, 6))
            for place in written:
                if place.panel == panel:
                    _write_side(ax, place, _offsets(here)[place.side], LABEL / high)
        _label_rows(axes, order, called, size_of(high))
        axes[0, 0].set(ylim=(0.4 - len(order), 0.6 + room / high), xlim=limits)
        nbins, steps = (5, [1, 2, 5, 10]) if wide / across > 2.4 else (3, [1, 2, 4, 5, 10])
        axes[0, 0].xaxis.set_major_locator(mpl.ticker.MaxNLocator(nbins, steps=steps))
    return finish(fig, label, legend=sides is None)


def _with_defaults(rows: pd.DataFrame, null: float | None, told_by_face: bool) -> pd.DataFrame:
    """Return rows with all columns that `dots` reads.

    told_by_face: whether a mark's face says what its interval excludes, where all marks have a null.
    """
    rows = rows.reset_index(drop=True)
    nulls = rows.get("null", float("nan") if null is None else null)
    rows = rows.assign(panel=rows.get("panel", ""), side=rows.get("side", ""), null=nulls)
    rows["side"] = rows["side"].where(rows["side"].isin([*SIDES]), "")
    has_null = rows.loc[rows["estimate"].notna(), "null"].notna()
    rows["told_by_face"] = rows["null"] if told_by_face and has_null.all() else float("nan")
    return rows


def _row_height(rows: pd.DataFrame, down: int, heads: float, count: int) -> float:
    """Return the inches of a row, where so many panels stand one below another on a page."""
    beside = rows.groupby("panel")["side"].nunique().max()
    wanted = LINE * max(1 + (beside > 1), 0.7 * beside)
    there = (PAGE - 0.6) / down - heads
    return min(wanted, there / (count + 1))


def _panel(ax, rows: pd.DataFrame, order: Sequence[str]) -> None:
    """Draw the marks of one panel, and lines at their nulls."""
    for value in rows["null"].dropna().unique():
        ax.axvline(value, color="0.35", linewidth=0.8, zorder=1)
    for side, above in _offsets(rows).items():
        part = rows[rows["side"] == side]
        _marks(ax, part, above - part["line"].map(order.index), side)
    ax.grid(axis="both")
    ax.tick_params(axis="y", length=0)
    sns.despine(ax=ax, left=True)


def _label_rows(axes, order: Sequence[str], called: Sequence[str], size: float) -> None:
    """Name the rows left of the panels; lines that name a block are bold."""
    axes[0, 0].set_yticks(-np.arange(len(order)), called)
    for first in axes[:, 0]:
        first.tick_params(axis="y", labelsize=size)
        for name, text in zip(order, first.get_yticklabels(), strict=True):
            text.set_fontweight("bold" if name.endswith(":") else "normal")


def _offsets(rows: pd.DataFrame) -> dict[str, float]:
    """Return how far above the middle of a row the marks of each side stand, in rows."""
    drawn = [side for side in ["", *SIDES] if side in {*rows["side"]}]
    step = min(0.3, 0.8 / len(drawn))
    return {side: ((len(drawn) - 1) / 2 - k) * step for k, side in enumerate(drawn)}


@dataclass
class _Place:
    """Where the label of a side stands: at which mark, in which line above it, and its middle."""

    panel: str
    side: str
    text: str
    row: int
    mark: float
    level: int
    middle: float


def _labelled(rows: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return the marks to label: of the first row with all sides, where they are furthest apart."""
    known = rows.dropna(subset="estimate")
    spread = known.groupby(["line", "panel"])["estimate"].agg(["size", "min", "max"]).reset_index()
    full = spread[spread["size"] == spread["size"].max()]
    place = full["line"].map(order.index)
    first = full[place == place.min()]
    best = first.loc[(first["max"] - first["min"]).idxmax()]
    return known[(known["line"] == best["line"]) & (known["panel"] == best["panel"])]


def _places(rows, order, sides: Mapping[str, str], limits, inches: float) -> list[_Place]:
    """Return where labels of sides stand, none on another; limits: of an axis so many inches long."""
    if not sides:
        return []
    unit = (limits[1] - limits[0]) / inches
    places, ends = [], []  # ends: of each line of labels, where its last label ends
    marks = _labelled(rows, order).sort_values("estimate")
    for panel, line, side, mark in marks[["panel", "line", "side", "estimate"]].to_numpy():
        half = 0.031 * unit * len(sides[side])
        middle = min(max(mark, limits[0] + half), limits[1] - half)
        free = [level for level, end in enumerate(ends) if end < middle - half]
        level = free[0] if free else len(ends)
        ends[level : level + 1] = [middle + half + 0.08 * unit]
        row = order.index(line)
        places.append(_Place(panel, side, sides[side], row, mark, level, middle))
    return places


def _write_side(ax, place: _Place, above: float, line: float) -> None:
    """Write the label of a side above its mark; line: from one line of labels to the next, in rows."""
    colour = SIDES[place.side][0]
    foot = 0.55 - place.row + place.level * line
    ax.vlines(place.mark, above - place.row, foot, color=colour, linewidth=0.4, zorder=1)
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    how = {"ha": "center", "va": "bottom", "fontsize": 7, "color": colour, "zorder": 4}
    ax.text(place.middle, foot, place.text, bbox=ground, **how)


def scale(rows: pd.DataFrame) -> tuple[float, float]:
    """Return an x scale around 0, all estimates and all ends of intervals."""
    ends = rows[["estimate", "low", "high"]].to_numpy(float)
    low, high = np.nanmin(ends, initial=-0.1), np.nanmax(ends, initial=0.1)
    return np.floor(low * 5) / 5 - 0.03, np.ceil(high * 5) / 5 + 0.03


def _apart(order: Sequence[str]) -> list[str]:
    """Put simulated models below the real ones, under a line that says so."""
    simulated = [name for name in order if name.startswith("sim/")]
    return [name for name in order if name not in simulated] + ([SIMULATED, *simulated] if simulated else [])


def _in_blocks(rows: pd.DataFrame) -> list[str]:
    """Put rows together by block, under a line that names it."""
    blocks = rows.groupby("block", sort=False)["line"].unique()
    return [line for block, lines in blocks.items() for line in (f"{block}:", *lines)]


def _marks(ax, rows: pd.DataFrame, y: pd.Series, side: str) -> None:
    """Draw lines from low to high and marks, whose faces say what is known of the null."""
    colour, marker, label = SIDES.get(side, (INK, "o", ""))
    ax.hlines(y, rows["low"], rows["high"], color=colour, linewidth=1.3 if marker not in "|x" else 0.7, zorder=2)
    if marker in "|x":  # which have no face, as they say nothing of the null
        ax.scatter(
            rows["estimate"],
            y,
            40 if marker == "|" else 20,
            marker=marker,
            color=colour,
            linewidth=1,
            zorder=3,
            label=label,
        )
        return
    rows, how = rows.dropna(subset="estimate"), {"marker": marker, "edgecolor": colour, "zorder": 3}
    drawn = [(said, face or colour, chosen) for said, face, chosen in _faces(rows) if chosen.any()]
    for said, face, chosen in drawn:
        ax.scatter(rows["estimate"][chosen], y[chosen.index[chosen]], 16, facecolor=face, label=said, **how)
    if label and drawn:
        ax.scatter([], [], 16, facecolor=drawn[0][1], label=label, **how)


def _faces(rows: pd.DataFrame) -> list[tuple[str, str, pd.Series]]:
    """Return (what a mark says, its face, "" for its own colour, and which rows have it)."""
    known = rows["low"].notna() & rows["high"].notna()
    found = [("", "", known & rows["told_by_face"].isna())]
    for null in rows["told_by_face"].dropna().unique():
        here = known & (rows["told_by_face"] == null)
        apart = (rows["low"] > null) | (rows["high"] < null)
        found += [
            (f"interval excludes {null:g}", "", here & apart),
            (f"interval includes {null:g}", "white", here & ~apart),
        ]
    return [*found, ("no interval", "0.8", ~known)]


def _say_missing(ax, order: Sequence[str], rows: pd.DataFrame, size: float) -> None:
    """Say in a panel which rows have no estimate."""
    how = {"fontsize": size, "color": "0.35", "ha": "center", "va": "center", "backgroundcolor": "white"}
    known = {*rows.dropna(subset="estimate")["line"], SIMULATED}
    for k in (k for k, name in enumerate(order) if name not in known):
        ax.text(0.5, -k, "no estimate", transform=ax.get_yaxis_transform(), **how)


# against --------------------------------------------------------------------------------------------------------------


def against(
    rows: pd.DataFrame,
    x: str,
    y: str,
    *,
    title: str,
    notes: Sequence[tuple[float, float, str]] = (),
    wide: float = WIDTH,
    dark: bool = False,
) -> Drawing:
    """Draw estimates with their intervals against another number, both from -1 to 1, on a band at 0.

    rows: x, estimate, low, high, and `text`, a label left of the mark, "" for most; in one column
    of print up to its comma. Those above 0 are in blue and are counted. x, y: labels of the axes.
    notes: (x, y, text), which ends at x where x is above 0. wide: inches. dark: for dark pages.
    """
    found, other, band = NIGHT if dark else DAY
    size = 7.5 if wide > COLUMN else 6
    above = rows["low"] > 0
    with mpl.rc_context(STYLE | (DARK if dark else {})):
        fig = _figure(1.4 + 0.42 * wide, wide)
        fig.suptitle(wrapped(title, 0.85 * wide, size + 1.5), x=0.01, ha="left", size=size + 1.5, weight="bold")
        ax = fig.subplots()
        ax.axhspan(-0.1, 0.1, color=band, linewidth=0, zorder=0)
        ax.axhline(0, color=other, linewidth=0.6, zorder=1)
        for part, colour, marker in ((rows[~above], other, "o"), (rows[above], found, "D")):
            ax.vlines(part["x"], part["low"], part["high"], color=colour, linewidth=0.8, zorder=2)
            how = {"color": colour, "marker": marker, "linewidth": 0, "zorder": 3}
            ax.scatter(part["x"], part["estimate"], 2.4 * size, **how)
        count = f"blue: above 0, {above.sum()} of {len(rows)}"
        ax.text(-1.04, 0.85, count, color=found, size=size, va="center")
        for row in rows[rows["text"] != ""].itertuples():
            beside = {"textcoords": "offset points", "ha": "right", "va": "center"}
            text = row.text if wide > COLUMN else row.text.split(",")[0]
            ax.annotate(text, (row.x, row.estimate), (-0.8 * size, 0), size=size, **beside)
        for place, height, text in notes:
            ax.text(place, height, text, ha="right" if place > 0 else "left", va="center", size=size)
        low, high = rows["low"].min() - 0.05, rows["high"].max() + 0.03
        ax.set(xlim=(-1.06, 1.06), ylim=(min(low, -0.4), max(high, 0.9)), xticks=np.arange(-1, 1.1, 0.5))
        ax.set_xlabel(x, size=size + 0.5)
        ax.set_ylabel(y, size=size + 0.5)
        sns.despine(ax=ax)
        return finish(fig)


# cells ----------------------------------------------------------------------------------------------------------------


def cells(
    rows: pd.DataFrame,
    label: str,
    axes_labels: tuple[str, str],
    *,
    names: Names | None = None,
    wide: float = WIDTH,
) -> Drawing | None:
    """Draw shares as colours, a panel each, with the numbers in the cells while they fit; hatched where none is.

    rows: line, column, value. label: what a colour means. axes_labels: what a row and a column are. Colours run from 0
    to 1, so that small values look small. Cells of the same row and column are framed.
    """
    if rows.empty or rows["value"].isna().all():
        return None
    rows = rows.assign(panel=rows.get("panel", ""))
    lines, columns, panels = in_order(rows["line"]), in_order(rows["column"]), list(dict.fromkeys(rows["panel"]))
    beside, below = labels(lines, names or {}, 26), labels(columns, names or {}, 26)
    room = wide - 0.75 - 0.055 * max(map(len, beside))
    across = max(1, min(len(panels), int(room / (0.28 * len(columns)))))
    cell = (room / across - 0.1) / len(columns)  # inches
    down = -(-len(panels) // across)
    high = min(max(0.17 if len(lines) < 20 else 0.12, min(0.34, cell)), ((PAGE - 0.8) / down - 1.4) / len(lines))
    size = size_of(cell)
    letters = int(cell * 72 / size / 0.62)  # in a column
    upright = max(len(word) for name in below for word in name.split()) > letters
    if not upright:
        below = [textwrap.fill(name, letters) for name in below]
    longest = max(map(len, below))
    foot = 0.0085 * size * longest if upright else 0.15 * (1 + max(name.count("\n") for name in below))
    heads = 0.3 * (len(panels) > 1) + 0.12 * max(title.count("\n") for title in panels)
    fig, axes = grid(panels, across, high * len(lines) + foot + heads, 0.6, wide)
    used = axes.flat[: len(panels)]
    for ax, panel in zip(used, panels, strict=True):
        part = rows[rows["panel"] == panel].pivot(index="line", columns="column", values="value")
        _heat_map(ax, part.reindex(index=lines, columns=columns), cell, high)
        ax.set_xticks(np.arange(len(columns)) + 0.5, below, fontsize=size, rotation=90 if upright else 0)
        ax.set_yticks(np.arange(len(lines)) + 0.5, beside, fontsize=size_of(high), rotation=0)
    with mpl.rc_context(STYLE):
        fig.colorbar(used[0].collections[0], ax=list(used), label=label, shrink=0.8, aspect=18, ticks=[0, 1])
    return finish(fig, axes_labels[1], axes_labels[0])


def _heat_map(ax, values: pd.DataFrame, wide: float, high: float) -> None:
    """Draw one panel of cells of so many inches."""
    texts = values.map(lambda value: "" if pd.isna(value) else f"{value:.2f}")
    inside = {"size": max(SMALLEST, min(6, wide * 72 / 5 / 0.62))}
    with mpl.rc_context(STYLE):
        ax.patch.set(facecolor="white", edgecolor="0.6", hatch="/////")
        fits = texts.to_numpy() if wide > 0.3 and high > 0.12 else None
        how = {"vmin": 0, "vmax": 1, "cmap": "Blues", "cbar": False, "annot_kws": inside, "fmt": ""}
        sns.heatmap(values.astype(float), ax=ax, annot=fits, **how)
        for k, name in enumerate(values.index):
            if name in values.columns:
                edge = {"fill": False, "clip_on": False, "edgecolor": "black"}
                place, width = (values.columns.get_loc(name), k), max(0.4, 2.5 * min(wide, high))
                ax.add_patch(Rectangle(place, 1, 1, linewidth=width, **edge))
        ax.tick_params(length=0)
        ax.set(xlabel="", ylabel="")


# steps ----------------------------------------------------------------------------------------------------------------


def steps(
    rows: pd.DataFrame,
    x: str,
    y: str,
    *,
    names: Names | None = None,
    drawn: str = "-",
) -> Drawing | None:
    """Draw y over x, a panel each.

    rows: panel (a model's id, or a text), x, y; optional low and high (a band), text (stands in the panel),
    plan (a dotted curve). x, y: labels. drawn: "-" lines, "post" steps.
    """
    if rows.empty:
        return None
    panels = in_order(rows["panel"])
    across = min(len(panels), 4 if len(panels) <= 16 else 8)
    inches = min((WIDTH - 0.5) / across, 2.2)
    fig, axes = grid(labels(panels, names or {}, 60), across, inches + 0.2, 0.6)
    with mpl.rc_context(STYLE):
        for ax, panel in zip(axes.flat, panels, strict=False):
            here = rows[rows["panel"] == panel]
            _curve(ax, here, drawn)
            if "text" in here:
                text, how = here["text"].iloc[0], {"fontsize": 6 if inches > 1 else 5, "linespacing": 1}
                text = text if inches > 0.8 else text.split("\n")[0]
                ax.text(0.97, 0.03, text, ha="right", va="bottom", transform=ax.transAxes, **how)
            ax.grid(axis="y")
            sns.despine(ax=ax)
        axes[0, 0].set_ylim(-0.03, 1.03)
        axes[0, 0].xaxis.set_major_locator(mpl.ticker.MaxNLocator(3 if inches > 0.8 else 1, steps=[1, 2, 5, 10]))
    return finish(fig, x, y)


def _curve(ax, rows: pd.DataFrame, drawn: str) -> None:
    """Draw one curve with its intervals and its plan."""
    ax.plot(rows["x"], rows["y"], color=INK, linewidth=1.3, drawstyle="steps-post" if drawn == "post" else "default")
    if "low" in rows and drawn == "post":
        ax.fill_between(rows["x"], rows["low"], rows["high"], step="post", color=INK, alpha=0.15, linewidth=0)
    if "plan" in rows:
        ax.plot(rows["x"], rows["plan"], linewidth=0.9, color="0.5", linestyle=":")
