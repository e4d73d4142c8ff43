"""All figures of a recognition result, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from selfeval.figures.curves import roc
from selfeval.figures.intervals import advantage_and_discrimination, contrasts, forest
from selfeval.figures.shares import accuracy_heatmap, claim_bars, discrimination_matrix, prediction_heatmap
from selfeval.figures.style import DOUBLE
from selfeval.stats.counts import NAMING, varying_parts


def recognition_figures(
    table: pd.DataFrame,
    counts: pd.DataFrame,
    display: Mapping[str, str] | None = None,
    curves: pd.DataFrame | None = None,
    changes: pd.DataFrame | None = None,
    width: float = DOUBLE,
) -> dict[str, Figure]:
    """Draw every figure that a result table and its counts allow: {"<kind>_<task>[_<condition>]": figure}.

    Kinds: advantage, accuracy; in naming tasks forest, matrix, predictions, claims; roc where there are curves
    (`selfeval.stats.roc_points`); contrasts where conditions differ (changes: `selfeval.stats.condition_contrasts`).
    The condition stands in the name where a task has several, as far as they differ.
    """
    drawn, how = {}, {"display": display, "width": width}
    for name, (task, condition) in designs(table).items():
        rows, cells, points = (_of_design(frame, task, condition) for frame in (table, counts, curves))
        if "advantage" in set(rows["statistic"]):
            drawn[f"advantage_{name}"] = advantage_and_discrimination(rows, **how)
        if not cells.empty:
            drawn[f"accuracy_{name}"] = accuracy_heatmap(cells, **how)
        if task in NAMING:
            drawn[f"forest_{name}"] = forest(rows, **how)
            drawn[f"matrix_{name}"] = discrimination_matrix(rows, **how)
            drawn[f"predictions_{name}"] = prediction_heatmap(cells, **how)
            drawn[f"claims_{name}"] = claim_bars(cells, **how)
        if points is not None and not points.empty:
            drawn[f"roc_{name}"] = roc(points, table=rows, **how)
    if changes is not None:
        for task, rows in changes[changes["statistic"] == "discrimination"].groupby("task", sort=False):
            drawn[f"contrasts_{task}"] = contrasts(rows, **how)
    return drawn


def designs(table: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return {what figures of a design are called: (task, condition)}."""
    found = {}
    for task, conditions in table.groupby("task", sort=False)["condition"].unique().items():
        for condition, part in varying_parts(conditions).items():
            found[f"{task}_{re.sub(r'[^a-z0-9.]+', '-', part.lower())}" if part else task] = task, condition
    return found


def _of_design(frame: pd.DataFrame | None, task: str, condition: str) -> pd.DataFrame | None:
    return None if frame is None else frame[(frame["task"] == task) & (frame["condition"] == condition)]
