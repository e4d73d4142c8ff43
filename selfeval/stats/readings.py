"""Readings of the same texts side by side: what a model says, what its weights hold, what others can see.

A reading is a way to tell an evaluator's own texts from others': its answers, the likelihood under its own weights,
that likelihood against all other candidates' (the oracle, which no single model can compute), a classifier of style
that knows no model. Each is a condition of prediction records, `reading=<name>`; each has an AUC within prompts and,
but for the own likelihood, J. The gap is the AUC of the own likelihood minus another reading's, paired by prompt.
"""

from __future__ import annotations

import pandas as pd

from selfeval.stats.contrasts import FIELDS, common_rows
from selfeval.stats.engine import Settings, Statistic
from selfeval.stats.recognition import measures_of
from selfeval.stats.table import COLUMNS, INVERTED, Measure, adjusted, write
from selfeval.stats.tallies import BINARY, Tally, conditions, prompts, tallies, varying_parts

ORACLE, OWN, STYLE = "oracle", "own likelihood", "style"
COMPARED = "auc_within_prompt"
TOLD = {"told=true": "told", "told=false": "untold", ";": ", "}
SAID = {BINARY: "yes or no"}  # other tasks: "names the author"


def as_readings(answers: pd.DataFrame) -> pd.DataFrame:
    """Return prediction records of the exact and yes/no tasks with their reading as `condition`."""
    frame = answers[answers["task_type"].isin(["exact_model", BINARY])]
    labels, parts = conditions(frame).astype(object), []
    for task, of_task in frame.groupby("task_type", sort=True):
        varying = varying_parts(labels[of_task.index].unique())
        said = labels[of_task.index].map(varying).replace(TOLD, regex=True)
        name = SAID.get(task, "names the author")
        parts.append(of_task.assign(condition="reading=" + name + said.where(said == "", ", " + said)))
    return pd.concat(parts)


def reading_gaps(readings: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Return the AUC within prompts of a model's own likelihood minus that of its words, and of the style.

    readings: prediction records with `reading=...` as condition, one of them `reading=own likelihood`. Only prompts and
    evaluators of both are compared (note `common_prompts`). Intervals are MOVER over the two with the correlation of
    their prompts, p is its inversion, p_holm over evaluators. Returns `stats.COLUMNS`, `field` ("reading"), `first`
    (the other reading) and `second`; empty where no other reading is of the same prompts.
    """
    frame, parts = readings.reset_index(drop=True), []
    frame = frame.assign(unit=prompts(frame)[0], reading=frame["condition"].str.removeprefix("reading="))
    weights = frame[frame["reading"] == OWN]
    for (task, name), other in frame.groupby(["task_type", "reading"], sort=False):
        sides = common_rows([other, weights], ("unit", "evaluator_model"))
        if name in (OWN, ORACLE) or any(side.empty for side in sides):
            continue
        both = {tally.condition: _by_evaluator(tally) for tally in tallies(pd.concat(sides))}  # which have one order
        one, two = both[f"reading={name}"], both[f"reading={OWN}"]
        found = [
            Measure(COMPARED, two[name] - one[name], {"evaluator": name, "policy": "all"}, test=INVERTED)
            for name in one if name in two
        ]  # fmt: skip
        if not found:
            continue  # no answer has a probability
        whole = max(side["unit"].nunique() for side in (other, weights))
        note = "common_prompts" * (sides[0]["unit"].nunique() < whole)
        table = adjusted(write(found, Settings(level=level), task=task, note=note), ["statistic"], compared=True)
        parts.append(table.assign(**dict(zip(FIELDS, ["reading", name, OWN], strict=True))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, *FIELDS])


def _by_evaluator(tally: Tally) -> dict[str, Statistic]:
    """Return {evaluator: its AUC within prompts} of one reading."""
    return {m.labels["evaluator"]: m.of for m in measures_of(tally, "all") if m.statistic == COMPARED}
