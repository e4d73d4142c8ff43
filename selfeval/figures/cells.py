"""Heat maps: a share or a difference in each cell, hatched where there is nothing."""

from dataclasses import replace

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from selfeval.figures.style import DOUBLE, PAGE, SMALLEST, STYLE, Look, finish, grid, size_of, wrapped


def cells(
    values: pd.DataFrame, look: Look, label: str, rows: str, columns: str, texts=None, centred=False, frame=True
) -> Figure | None:
    """Draw a table of numbers as colours, with the numbers in the cells while they fit; nothing without any.

    label: what a colour means. rows, columns: what a row and a column are. texts: what stands in the cells, where that
    is more than the number. centred: from -1 to 1 around 0, else from 0 to 1, so that small values look small. frame:
    mark the cell in which row and column are the same. Without room for its columns a figure takes two of print.
    """
    if values.isna().all(axis=None):
        return None
    count, across = values.shape
    if (look.width - 1.6) / across * 72 < SMALLEST:
        look = replace(look, width=DOUBLE)
    beside, below = look.names(values.index, 26), look.names(values.columns, 26)
    wide = (look.width - 0.75 - 0.055 * max(map(len, beside))) / across
    if texts is None:
        texts = values.map(lambda value: "" if pd.isna(value) else f"{value:.2f}".replace("-", "−"))
    lines = [line for text in texts.to_numpy().ravel() for line in text.split("\n")]
    deep = -(-len(lines) // texts.size)
    high = min(max(0.17 if count < 20 else 0.12, 0.1 * deep + 0.08, min(0.34, wide)), (PAGE - 2.2) / count)
    size = size_of(wide)
    upright = max(map(len, below)) * size * 0.62 > wide * 72
    foot = 0.0085 * size * max(map(len, below)) if upright else 0.15
    fig, axes = grid([""], look, 1, high * count + foot, 0.6)
    ax = axes[0, 0]
    inside = max(SMALLEST, min(6, wide * 72 / max(map(len, lines)) / 0.62))
    bar = {"label": wrapped(label, max(1.1, 0.9 * high * count)), "shrink": 0.8, "aspect": 18, "ticks": [-1, 0, 1]}
    said = {"annot": texts.to_numpy() if wide > 0.3 and high > 0.12 else None, "annot_kws": {"size": inside}, "fmt": ""}
    named = {"xticklabels": below, "yticklabels": beside, "cmap": "vlag" if centred else "Blues", "cbar_kws": bar}
    with mpl.rc_context(STYLE):
        ax.patch.set(facecolor="white", edgecolor="0.6", hatch="/////")
        sns.heatmap(values.astype(float), vmin=-centred, vmax=1, ax=ax, **said, **named)
        for k, name in enumerate(values.index if frame else ()):
            if name in values.columns:
                edge = {"fill": False, "edgecolor": "black", "linewidth": max(0.4, 2.5 * min(wide, high))}
                ax.add_patch(Rectangle((values.columns.get_loc(name), k), 1, 1, **edge))
        ax.tick_params(length=0)
        ax.tick_params(axis="x", labelsize=size, labelrotation=90 if upright else 0)
        ax.tick_params(axis="y", labelsize=size_of(high), labelrotation=0)
        ax.set(xlabel="", ylabel="")
    return finish(fig, columns, rows)
