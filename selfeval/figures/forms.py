"""The three forms of all figures: `dots` (estimates), `cells` (heat maps), `steps`.

Each takes one table of what is drawn, a row per mark, and returns a figure, or None where there is
nothing to draw. Columns that all have: `panel` (a title, optional) and, of dots and cells, `line`
(what a row of the figure is, models by their ids). names: {id: label}. In dots a colour is a
reading or a source (`side`, of `style.SIDES`), never a model.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from selfeval.figures.style import (
    INK,
    PAGE,
    SIDES,
    SMALLEST,
    STYLE,
    WIDTH,
    Drawing,
    finish,
    grid,
    labels,
    size_of,
    wrapped,
)
from selfeval.results import in_order

LINE = 0.17  # inches of a row, where the page has room
LABEL = 0.13  # inches of a label of a side
SIMULATED = "simulated:"


# dots


def dots(
    rows: pd.DataFrame,
    label: str,
    *,
    names: Mapping[str, str] | None = None,
    null: float | None = 0.0,
    limits: tuple[float, float] | None = None,
    sides: Mapping[str, str] | None = None,
    wide: float = WIDTH,
) -> Drawing | None:
    """Draw estimates with their intervals on one scale, a panel each, a row per model or arm.

    rows: line, estimate, low, high; sides share a row, in their colours, and one that `style.SIDES`
    does not have is in ink; simulated models stand apart, below. label: of the axis.
    null: a mark is hollow where its interval includes this value of no effect, and grey where there
    is no interval. A column `null` takes its place, NaN where a row has no such value; where some
    rows have one and others do not, no mark is hollow, since intervals and the lines at the nulls
    say it already. limits: of the axis. A column `block` puts its rows together, in the order
    given, under a line that names it.
    sides: {side: label}, written at the marks of the first row instead of a legend; no mark is
    hollow then. wide: inches.
    """
    if rows["estimate"].isna().all():
        return None
    rows = _with_defaults(rows, null, may_be_hollow=sides is None)
    panels = list(rows["panel"].unique())
    order = _in_blocks(rows) if "block" in rows else _apart(in_order(rows["line"]))
    called = labels(order, names, 30)
    limits = limits or scale(rows)
    across = min(len(panels), int(wide / 1.6))
    inches = (wide - 0.4 - 0.055 * max(map(len, called))) / across
    written = _places(rows, order, sides or {}, limits, inches)
    lines_above = [place.level + 1 for place in written if place.row == 0]
    room = LABEL * max(lines_above, default=0)  # inches above the first row
    heads = room + 0.45 + _extra_lines(panels)
    down = math.ceil(len(panels) / across)
    row_height = _row_height(rows, down, heads, len(order))
    fig, axes = grid(panels, across, heads + row_height * max(len(order), 3), wide)
    with mpl.rc_context(STYLE):
        for ax, panel in zip(axes.flat, panels, strict=False):
            here = rows[rows["panel"] == panel]
            _panel(ax, here, order)
            if "block" not in rows:
                _write_missing(ax, here, order, size_of(row_height, 6))
            for place in written:
                if place.panel == panel:
                    _write_side(ax, place, _offsets(here)[place.side], LABEL / row_height)
        _label_rows(axes, order, called, size_of(row_height))
        first = axes[0, 0]
        first.set(ylim=(0.4 - len(order), 0.6 + room / row_height), xlim=limits)
        ticks = MaxNLocator(3, steps=[1, 2, 4, 5, 10])
        if wide / across > 2.4:
            ticks = MaxNLocator(5, steps=[1, 2, 5, 10])
        first.xaxis.set_major_locator(ticks)
    return finish(fig, label, legend=sides is None)


def _with_defaults(rows: pd.DataFrame, null: float | None, *, may_be_hollow: bool) -> pd.DataFrame:
    """Return rows with all columns that `dots` reads.

    `hollow_at` is the value at which a mark is hollow if its interval includes it: the null where
    all rows that are drawn have one, else NaN. may_be_hollow: whether any mark is.
    """
    rows = rows.reset_index(drop=True)
    for name, value in {"panel": "", "side": "", "null": null}.items():
        if name not in rows:
            rows[name] = value
    rows["side"] = rows["side"].where(rows["side"].isin([*SIDES]), "")
    has_null = rows["null"].notna() | rows["estimate"].isna()
    rows["hollow_at"] = rows["null"] if may_be_hollow and has_null.all() else np.nan
    return rows


def _extra_lines(titles: Sequence[str]) -> float:
    """Return the inches of the lines of a title below its first."""
    return 0.12 * max(title.count("\n") for title in titles)


def _row_height(rows: pd.DataFrame, down: int, heads: float, count: int) -> float:
    """Return the inches of a row, where so many panels stand one below another on a page."""
    beside = rows.groupby("panel")["side"].nunique().max()
    wanted = LINE
    if beside > 1:
        wanted *= max(2, 0.7 * beside)
    there = (PAGE - 0.6) / down - heads
    return min(wanted, there / (count + 1))


def _panel(ax, rows: pd.DataFrame, order: Sequence[str]) -> None:
    """Draw the marks of one panel, and lines at their nulls."""
    for value in rows["null"].dropna().unique():
        ax.axvline(value, color="0.35", linewidth=0.8, zorder=1)
    for side, above in _offsets(rows).items():
        marks = rows[rows["side"] == side]
        _marks(ax, marks.assign(y=above - marks["line"].map(order.index)), side)
    ax.grid(axis="both")
    ax.tick_params(axis="y", length=0)
    sns.despine(ax=ax, left=True)


def _label_rows(axes, order: Sequence[str], called: Sequence[str], size: float) -> None:
    """Name the rows left of the panels; lines that name a block are bold."""
    axes[0, 0].set_yticks(-np.arange(len(order)), called)
    for ax in axes[:, 0]:
        ax.tick_params(axis="y", labelsize=size)
        for name, text in zip(order, ax.get_yticklabels(), strict=True):
            text.set_fontweight("bold" if name.endswith(":") else "normal")


def _offsets(rows: pd.DataFrame) -> dict[str, float]:
    """Return how far above the middle of a row the marks of each side stand, in rows."""
    sides = [side for side in ["", *SIDES] if side in set(rows["side"])]
    step = min(0.3, 0.8 / len(sides))
    middle = (len(sides) - 1) / 2
    return {side: (middle - number) * step for number, side in enumerate(sides)}


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
    """Return the marks to label: of the first row with all sides, where they are far apart."""
    known = rows.dropna(subset="estimate")
    by_row = known.groupby(["line", "panel"])["estimate"]
    spread = by_row.agg(["size", "min", "max"]).reset_index()
    full = spread[spread["size"] == spread["size"].max()]
    place = full["line"].map(order.index)
    first = full[place == place.min()]
    best = first.loc[(first["max"] - first["min"]).idxmax()]
    return known[(known["line"] == best["line"]) & (known["panel"] == best["panel"])]


def _places(
    rows: pd.DataFrame,
    order: Sequence[str],
    sides: Mapping[str, str],
    limits: tuple[float, float],
    inches: float,
) -> list[_Place]:
    """Return where labels of sides stand, none on another; limits: of an axis of so many inches."""
    if not sides:
        return []
    unit = (limits[1] - limits[0]) / inches
    ends: list[float] = []  # of each line of labels, where its last label ends
    places = []
    for mark in _labelled(rows, order).sort_values("estimate").itertuples():
        text = sides[mark.side]
        half = 0.031 * unit * len(text)
        middle = min(max(mark.estimate, limits[0] + half), limits[1] - half)
        free = [level for level, end in enumerate(ends) if end < middle - half]
        level = free[0] if free else len(ends)
        ends[level : level + 1] = [middle + half + 0.08 * unit]
        row = order.index(mark.line)
        place = _Place(mark.panel, mark.side, text, row, mark.estimate, level, middle)
        places.append(place)
    return places


def _write_side(ax, place: _Place, above: float, line: float) -> None:
    """Write the label of a side above its mark; line: the height of a line of labels, in rows."""
    colour, *_ = SIDES[place.side]
    foot = 0.55 - place.row + place.level * line
    ax.vlines(place.mark, above - place.row, foot, color=colour, linewidth=0.4, zorder=1)
    ax.text(
        place.middle,
        foot,
        place.text,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        ha="center",
        va="bottom",
        fontsize=7,
        color=colour,
        zorder=4,
    )


def scale(rows: pd.DataFrame) -> tuple[float, float]:
    """Return an x scale around 0, all estimates and all ends of intervals."""
    ends = rows[["estimate", "low", "high"]].to_numpy(float)
    low = np.nanmin(ends, initial=-0.1)
    high = np.nanmax(ends, initial=0.1)
    return np.floor(low * 5) / 5 - 0.03, np.ceil(high * 5) / 5 + 0.03


def _apart(order: list[str]) -> list[str]:
    """Put simulated models, which are last, under a line that says so."""
    simulated = [name for name in order if name.startswith("sim/")]
    if not simulated:
        return order
    return [*order[: -len(simulated)], SIMULATED, *simulated]


def _in_blocks(rows: pd.DataFrame) -> list[str]:
    """Put rows together by block, under a line that names it."""
    order = []
    for block, lines in rows.groupby("block", sort=False)["line"]:
        order += [f"{block}:", *lines.unique()]
    return order


def _marks(ax, rows: pd.DataFrame, side: str) -> None:
    """Draw lines from low to high and marks, whose faces say what is known of the null."""
    colour, marker, label = SIDES.get(side, (INK, "o", ""))
    has_face = marker not in "|x"
    width = 1.3 if has_face else 0.7
    ax.hlines(rows["y"], rows["low"], rows["high"], color=colour, linewidth=width, zorder=2)
    if not has_face:
        size = 40 if marker == "|" else 20
        how = {"marker": marker, "color": colour, "linewidth": 1, "zorder": 3, "label": label}
        ax.scatter(rows["estimate"], rows["y"], size, **how)
        return
    how = {"marker": marker, "edgecolor": colour, "zorder": 3}
    first_face = ""  # that of the side in the legend
    for said, face, marks in _faces(rows.dropna(subset="estimate"), colour):
        if len(marks):
            ax.scatter(marks["estimate"], marks["y"], 16, facecolor=face, label=said, **how)
            first_face = first_face or face
    if label and first_face:
        ax.scatter([], [], 16, facecolor=first_face, label=label, **how)


def _faces(rows: pd.DataFrame, colour: str) -> list[tuple[str, str, pd.DataFrame]]:
    """Return (what a mark says, its face, the rows that have it)."""
    is_known = rows["low"].notna() & rows["high"].notna()
    known = rows[is_known]
    found = [("", colour, known[known["hollow_at"].isna()])]
    for null, marks in known.groupby("hollow_at", sort=False):
        excludes = (marks["low"] > null) | (marks["high"] < null)
        found.append((f"interval excludes {null:g}", colour, marks[excludes]))
        found.append((f"interval includes {null:g}", "white", marks[~excludes]))
    return [*found, ("no interval", "0.8", rows[~is_known])]


def _write_missing(ax, rows: pd.DataFrame, order: Sequence[str], size: float) -> None:
    """Say in a panel which rows have no estimate."""
    known = {*rows.dropna(subset="estimate")["line"], SIMULATED}
    for number, name in enumerate(order):
        if name not in known:
            ax.text(
                0.5,
                -number,
                "no estimate",
                transform=ax.get_yaxis_transform(),
                fontsize=size,
                color="0.35",
                ha="center",
                va="center",
                backgroundcolor="white",
            )


# cells


def cells(
    rows: pd.DataFrame,
    label: str,
    axes_labels: tuple[str, str],
    *,
    names: Mapping[str, str] | None = None,
    wide: float = WIDTH,
) -> Drawing | None:
    """Draw shares as colours, a panel each, with numbers where they fit; hatched where none is.

    rows: line, column, value. label: what a colour means. axes_labels: what a row and a column are.
    Colours run from 0 to 1, so that small values look small. Cells of the same row and column are
    framed.
    """
    if rows.empty or rows["value"].isna().all():
        return None
    if "panel" not in rows:
        rows = rows.assign(panel="")
    lines = in_order(rows["line"])
    columns = in_order(rows["column"])
    panels = list(rows["panel"].unique())
    beside = labels(lines, names, 26)
    below = labels(columns, names, 26)
    room = wide - 0.75 - 0.055 * max(map(len, beside))
    across = max(1, min(len(panels), int(room / (0.28 * len(columns)))))
    cell = (room / across - 0.1) / len(columns)  # inches
    least = 0.17 if len(lines) < 20 else 0.12
    down = math.ceil(len(panels) / across)
    most = ((PAGE - 0.8) / down - 1.4) / len(lines)
    high = min(max(least, min(0.34, cell)), most)
    size = size_of(cell)
    below, angle, foot = _under_columns(below, cell, size)
    heads = _extra_lines(panels)
    if len(panels) > 1:
        heads += 0.3
    tall = high * len(lines) + foot + heads
    fig, axes = grid(panels, across, tall, wide)
    used = list(axes.flat[: len(panels)])
    for ax, panel in zip(used, panels, strict=True):
        here = rows[rows["panel"] == panel]
        values = here.pivot(index="line", columns="column", values="value")
        _heat_map(ax, values.reindex(index=lines, columns=columns), cell, high)
        ax.set_xticks(np.arange(len(columns)) + 0.5, below, fontsize=size, rotation=angle)
        ax.set_yticks(np.arange(len(lines)) + 0.5, beside, fontsize=size_of(high), rotation=0)
    with mpl.rc_context(STYLE):
        colours = used[0].collections[0]
        label = wrapped(label, down * tall + 0.4, 8)
        fig.colorbar(colours, ax=used, label=label, shrink=0.8, aspect=18, ticks=[0, 1])
    return finish(fig, axes_labels[1], axes_labels[0])


def _under_columns(names: list[str], cell: float, size: float) -> tuple[list[str], int, float]:
    """Return names as they stand under cells of so many inches, their angle, and their height."""
    letters = int(cell * 72 / size / 0.62)  # in a column
    longest_word = max(len(word) for name in names for word in name.split())
    if longest_word > letters:
        longest = max(map(len, names))
        return names, 90, 0.0085 * size * longest
    filled = [textwrap.fill(name, letters) for name in names]
    lines = 1 + max(name.count("\n") for name in filled)
    return filled, 0, 0.15 * lines


def _heat_map(ax, values: pd.DataFrame, wide: float, high: float) -> None:
    """Draw one panel of cells of so many inches."""
    numbers = None
    if wide > 0.3 and high > 0.12:  # where they fit
        numbers = values.map("{:.2f}".format, na_action="ignore").fillna("").to_numpy()
    with mpl.rc_context(STYLE):
        ax.patch.set(facecolor="white", edgecolor="0.6", hatch="/////")
        sns.heatmap(
            values.astype(float),
            ax=ax,
            annot=numbers,
            vmin=0,
            vmax=1,
            cmap="Blues",
            cbar=False,
            annot_kws={"size": max(SMALLEST, min(6, wide * 72 / 5 / 0.62))},
            fmt="",
        )
        width = max(0.4, 2.5 * min(wide, high))
        for row, name in enumerate(values.index):
            if name in values.columns:
                place = (values.columns.get_loc(name), row)
                frame = Rectangle(
                    place,
                    1,
                    1,
                    fill=False,
                    clip_on=False,
                    edgecolor="black",
                    linewidth=width,
                )
                ax.add_patch(frame)
        ax.tick_params(length=0)
        ax.set(xlabel="", ylabel="")


# steps


def steps(
    rows: pd.DataFrame,
    x: str,
    y: str,
    *,
    names: Mapping[str, str] | None = None,
    drawn: str = "-",
) -> Drawing | None:
    """Draw y over x, a panel each.

    rows: panel (a model's id, or a text), x, y; optional low and high (a band), text (stands in the
    panel), plan (a dotted curve). x, y: labels. drawn: "-" lines, "post" steps.
    """
    if rows.empty:
        return None
    panels = in_order(rows["panel"])
    across = min(len(panels), 4 if len(panels) <= 16 else 8)
    inches = min((WIDTH - 0.5) / across, 2.2)
    fig, axes = grid(labels(panels, names, 60), across, inches + 0.2)
    with mpl.rc_context(STYLE):
        for ax, panel in zip(axes.flat, panels, strict=False):
            here = rows[rows["panel"] == panel]
            _curve(ax, here, in_steps=drawn == "post")
            if "text" in here:
                _write_in_corner(ax, here["text"].iloc[0], inches)
            ax.grid(axis="y")
            sns.despine(ax=ax)
        first = axes[0, 0]
        first.set_ylim(-0.03, 1.03)
        ticks = 3 if inches > 0.8 else 1
        first.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    return finish(fig, x, y)


def _write_in_corner(ax, text: str, inches: float) -> None:
    """Write a text in a panel of so many inches; of several lines the first, where it is small."""
    shown = text if inches > 0.8 else text.split("\n")[0]
    size = 6 if inches > 1 else 5
    ax.text(
        0.97,
        0.03,
        shown,
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=size,
        linespacing=1,
    )


def _curve(ax, rows: pd.DataFrame, *, in_steps: bool) -> None:
    """Draw one curve with its intervals and its plan."""
    style = "steps-post" if in_steps else "default"
    ax.plot(rows["x"], rows["y"], color=INK, linewidth=1.3, drawstyle=style)
    if "low" in rows and in_steps:
        ax.fill_between(
            rows["x"],
            rows["low"],
            rows["high"],
            step="post",
            color=INK,
            alpha=0.15,
            linewidth=0,
        )
    if "plan" in rows:
        ax.plot(rows["x"], rows["plan"], linewidth=0.9, color="0.5", linestyle=":")
