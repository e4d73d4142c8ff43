"""Figures and tables for print.

Functions take the result table of `selfeval.stats.recognition_table` or the counts of `selfeval.stats.confusion` (of
one task and condition) and return a Figure; intervals are drawn from the columns low and high as given. `display`
maps a model id to its label; ids without one are shown as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from selfeval.figures.curves import roc
from selfeval.figures.intervals import advantage_and_discrimination, contrasts, default_rows, forest
from selfeval.figures.shares import accuracy_heatmap, claim_bars, discrimination_matrix, prediction_heatmap
from selfeval.figures.style import DOUBLE, PALETTE, SINGLE, STYLE, save, save_table, show, use_style
from selfeval.figures.validation import coverage, power_curves
from selfeval.stats.counts import NAMING, condition_label, varying_parts

__all__ = [
    "DOUBLE", "PALETTE", "SINGLE", "STYLE", "accuracy_heatmap", "advantage_and_discrimination", "claim_bars",
    "contrasts", "coverage", "default_rows", "discrimination_matrix", "forest", "power_curves", "prediction_heatmap",
    "recognition_figures", "roc", "save", "save_table", "show", "use_style",
]  # fmt: skip


def recognition_figures(
    table: pd.DataFrame,
    counts: pd.DataFrame,
    display: Mapping[str, str] | None = None,
    records: pd.DataFrame | None = None,
    changes: pd.DataFrame | None = None,
) -> dict[str, Figure]:
    """Draw every figure that a result table and its counts allow: {"<kind>_<task>[_<condition>]": figure}.

    Kinds: advantage, accuracy; in naming tasks forest, matrix, predictions, claims; roc where the records (if given)
    have scores; contrasts where conditions differ (changes: `selfeval.stats.condition_contrasts`). The condition stands
    in the name where a task has several, as far as they differ.
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
                drawn[f"matrix_{name}"] = discrimination_matrix(rows, display)
                drawn[f"predictions_{name}"] = prediction_heatmap(cells, display)
                drawn[f"claims_{name}"] = claim_bars(cells, display)
            known = set(rows.loc[(rows["statistic"] == "auc") & rows["estimate"].notna(), "evaluator"])
            if records is not None and known:
                chosen = (records["task_type"] == task) & (records["condition"].map(condition_label) == condition)
                drawn[f"roc_{name}"] = roc(records[chosen & records["evaluator_model"].isin(known)], display)
    if changes is not None and "discrimination" in set(changes["statistic"]):
        drawn["contrasts"] = contrasts(changes, display)
    return drawn
