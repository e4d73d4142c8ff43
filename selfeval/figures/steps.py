"""Curves: what changes along an axis, a panel each, the other models' in grey behind."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from selfeval.figures.style import DOUBLE, PALETTE, SIDES, STYLE, Look, finish, grid

MARKERS = "os^Dv"


def steps(
    rows: pd.DataFrame, look: Look, x: str, y: str, drawn: str = "-", level: float | None = None, limits=(-0.03, 1.03)
) -> Figure | None:
    """Draw y over x, a panel each; nothing without any rows.

    rows: panel, x, y; optional `line` (curves of one panel; without, a panel is a model, the others' curves stand
    behind in grey), low and high (a band, or bars), text (stands in the panel), plan (another curve). x, y:
    labels. drawn: "-" lines, "post" steps, "." points. level: a dashed line, and x as categories.
    """
    if rows.empty:
        return None
    panels = list(dict.fromkeys(rows["panel"]))
    lines = list(dict.fromkeys(rows["line"])) if "line" in rows else []
    few, many = (4, 8) if look.width >= DOUBLE else (3, 5)
    across = min(len(panels), few if len(panels) <= 4 * few else many)
    titles = panels if lines else look.names(panels, 36)
    side = min((look.width - 0.5) / across, 2.2)
    fig, axes = grid(titles, look, across, side + 0.2, 0.6)
    with mpl.rc_context(STYLE):
        if level is not None:
            places = sorted(rows["x"].unique())
            rows = rows.assign(x=np.searchsorted(places, rows["x"]))
            axes[0, 0].set_xticks(range(len(places)), [f"{place:g}" for place in places])
        for ax, panel in zip(axes.flat, panels, strict=False):
            for other in panels if not lines else ():
                _curve(ax, rows[rows["panel"] == other], drawn, color="0.87", linewidth=0.6)
            here = rows[rows["panel"] == panel]
            for k, line in enumerate(lines):
                colour, marker, label = SIDES.get(line, (PALETTE[k % 9], MARKERS[k % 5], line))
                part = here[here["line"] == line]
                part = part.assign(x=part["x"] + (0.08 * k - 0.04 if line in SIDES else 0))  # bars beside each other
                _curve(ax, part, drawn, color=colour, marker=marker, markersize=3.2, label=label)
            if not lines:
                _curve(ax, here, drawn, color=look.colours.get(panel, PALETTE[0]), linewidth=1.3)
            if level is not None:
                ax.axhline(level, color="0.35", linestyle="--", linewidth=0.8, zorder=1)
            if "text" in here:
                text, how = here["text"].iloc[0], {"fontsize": 6 if side > 1 else 5, "linespacing": 1}
                text = text if side > 0.8 else text.split("\n")[0]
                ax.text(0.97, 0.03, text, ha="right", va="bottom", transform=ax.transAxes, **how)
            ax.grid(axis="y")
            sns.despine(ax=ax)
        axes[0, 0].set_ylim(*limits)
        if level is None:
            axes[0, 0].xaxis.set_major_locator(mpl.ticker.MaxNLocator(3 if side > 0.8 else 1, steps=[1, 2, 5, 10]))
    return finish(fig, x, y)


def _curve(ax, rows: pd.DataFrame, drawn: str, **look) -> None:
    """Draw one curve; with its label also its intervals and its plan."""
    own = "label" in look or look["linewidth"] > 1
    how = {"drawstyle": "steps-post"} if drawn == "post" else {"linestyle": "none" if drawn == "." else "-"}
    ax.plot(rows["x"], rows["y"], **how, **look)
    if own and "low" in rows and drawn == "post":
        ax.fill_between(rows["x"], rows["low"], rows["high"], step="post", color=look["color"], alpha=0.15, linewidth=0)
    elif own and "low" in rows:
        ax.vlines(rows["x"], rows["low"], rows["high"], color=look["color"], linewidth=1.1)
    if own and "plan" in rows:
        known = {"color": look["color"]} if "label" in look else {"color": "0.5", "linestyle": ":"}
        ax.plot(rows["x"], rows["plan"], linewidth=0.9, **known)
