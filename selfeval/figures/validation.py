"""Coverage and power in simulation: the tables in `data/validation/` (made by `make bench`)."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from selfeval.figures.intervals import SYMBOLS
from selfeval.figures.style import DOUBLE, PALETTE, SINGLE, STYLE, new_figure, plain

MIDDLE = (0.1, 0.9)  # between these all rates of a mid-range scenario lie
LOOKS = {True: (PALETTE[0], "o", "all rates in [.1, .9]"), False: (PALETTE[1], "s", "some rates near 0 or 1")}


def mid_range(table: pd.DataFrame) -> pd.Series:
    """Return where all rates that enter a row's statistic lie in the middle (`lowest_rate`, `highest_rate`)."""
    low, high = MIDDLE
    return (table["lowest_rate"] >= low - 1e-6) & (table["highest_rate"] <= high + 1e-6)


def validation_figures(
    covered: pd.DataFrame, power: pd.DataFrame, promise: float = 0.93, width: float = DOUBLE
) -> dict[str, Figure]:
    """Draw coverage and power: {"<kind>_validation": figure}."""
    return {
        "coverage_validation": coverage(covered, promise=promise, width=width),
        "power_validation": power_curves(power, width),
    }


def coverage(table: pd.DataFrame, level: float = 0.95, promise: float = 0.93, width: float = DOUBLE) -> Figure:
    """Draw coverage by number of prompts: a column per method, a row per statistic, a line per scenario; in a single
    column of print methods are the rows.

    table: scenario, prompts, statistic, method, coverage, mc_error, lowest_rate, highest_rate. Bars are 95 % of the
    Monte Carlo error; the dashed line is the level, the shaded band begins at what the default promises.
    """
    methods, statistics = (list(table[name].drop_duplicates()) for name in ("method", "statistic"))
    sizes = sorted(table["prompts"].unique())
    across = width >= DOUBLE
    grid = (len(statistics), len(methods)) if across else (len(methods), len(statistics))
    fig, axes = new_figure(width, 0.9 + 1.35 * grid[0], *grid, sharex=True, sharey=True)
    axes = axes if across else axes.T  # from here on a row is a statistic
    table = table.assign(middle=mid_range(table))
    scenarios = list(table["scenario"].drop_duplicates())
    with mpl.rc_context(STYLE):
        for (row, column), ax in np.ndenumerate(axes):
            ax.axhspan(promise, 1.005, color="0.93", zorder=0)
            ax.axhline(level, color="0.35", linestyle="--", linewidth=0.8, zorder=1)
            shown = table[(table["statistic"] == statistics[row]) & (table["method"] == methods[column])]
            for name, line in shown.groupby("scenario", sort=False):
                colour, marker, _ = LOOKS[bool(line["middle"].iloc[0])]
                line = line.sort_values("prompts")
                at = np.searchsorted(sizes, line["prompts"]) + 0.05 * (scenarios.index(name) - len(scenarios) / 2)
                error = 1.96 * line["mc_error"]
                look = {"color": colour, "marker": marker, "markersize": 2.2, "linewidth": 0.7, "elinewidth": 0.7}
                ax.errorbar(at, line["coverage"], error, **look, zorder=3)
            if across and not row:
                ax.set_title(methods[column])
            elif not across and not row:
                ax.set_ylabel(methods[column])
            ax.set_xticks(range(len(sizes)), [str(size) for size in sizes], fontsize=7 if across else 6)
            ax.set_xlim(-0.5, len(sizes) - 0.5)
        for ax, name in zip(axes[:, 0], statistics, strict=True):
            label = SYMBOLS.get(name, name)
            ax.set_ylabel(label) if across else ax.set_title(label, fontsize=5.5)
        axes[0, 0].set_ylim(min(0.9, np.floor(20 * table["coverage"].min()) / 20), 1.005)
        fig.supxlabel("prompts", fontsize=8)
        fig.supylabel("share of intervals that hold the truth", fontsize=8)
        handles = [
            axes[0, 0].plot([], [], color=c, marker=m, markersize=3, label=text)[0] for c, m, text in LOOKS.values()
        ]
        fig.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return plain(fig)


def power_curves(table: pd.DataFrame, width: float = SINGLE) -> Figure:
    """Draw the power of the test of J in simulation (points) on what was planned for it (lines), per number of prompts.

    table: difference, prompts, power, mc_error, planned (sd .55) and planned_sd (with the simulation's own sd).
    """
    fig, axes = new_figure(width, 2.7)
    ax = axes[0, 0]
    with mpl.rc_context(STYLE):
        for colour, marker, (size, line) in zip(PALETTE, "os^D", table.groupby("prompts"), strict=False):
            line = line.sort_values("difference")
            ax.plot(line["difference"], line["planned"], color=colour, linestyle=":", linewidth=0.9)
            ax.plot(line["difference"], line["planned_sd"], color=colour, linewidth=0.9)
            look = {"color": colour, "marker": marker, "markersize": 3, "linestyle": "none", "elinewidth": 0.8}
            ax.errorbar(line["difference"], line["power"], 1.96 * line["mc_error"], **look, label=str(size))
        ax.set(xlabel="true discrimination J", ylabel="share of tables with p ≤ .05", ylim=(0, 1.03))
        fig.legend(title="prompts", title_fontsize=7, loc="outside upper center", ncols=4, frameon=False)
    return plain(fig)
