"""Estimates as a reader wants them: as text, side by side, with what they say."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from selfeval.keys import visible
from selfeval.models import models
from selfeval.scoring import DOUBTFUL
from selfeval.stats.table import default_rows
from selfeval.stats.tallies import varying_parts

BOUNDS = ["estimate", "low", "high"]
LABELS = ["task", "condition", "change", "author", "evaluator"]  # of a row for print, from the left
BCA = "advantage_bca"  # the advantage with its BCa bootstrap interval
ALL = "all evaluators"  # what a reader sees where `evaluator` is empty: a value pooled over them

KEPT = {  # what was made of answers on record that are not in the raw replies
    "as recorded": (
        "The answers on record are kept, unverified: right where the replies were cut off when stored; where names "
        "were filled in for replies without an answer, set `reread: yes`."
    ),
    "as read": (
        "They are taken back: right where names were filled in for replies without an answer; where the replies were "
        "cut off when stored, set `reread: no`."
    ),
}


def estimate_text(estimate: float, low: float, high: float) -> str:
    """Return "0.12 [-0.01, 0.25]"; empty without an estimate, without brackets where there is no interval."""
    if pd.isna(estimate):
        return ""
    estimate, low, high = (float(f"{number:.6g}") for number in (estimate, low, high))  # as files keep them: -.075
    whole = f"{estimate:z.2f}" if abs(estimate) < 10 else f"{estimate:.0f}"
    return whole if pd.isna(low) or pd.isna(high) else f"{whole} [{low:z.2f}, {high:z.2f}]"


def p_text(p: float) -> str:
    """Return "0.034" or "< 0.001"."""
    return "" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def label(name: str, display: Mapping[str, str] | None) -> str:
    """Return how a model, or a pair of them ("first - second"), is called."""
    known = display or {}
    return visible(known.get(name) or " - ".join(known.get(part, part) for part in name.split(" - ")))


def in_order(names: Iterable[str]) -> list[str]:
    """Return names each once, in the one order of rows: models as the registry lists them, others, simulated ones."""
    place = {name: k for k, name in enumerate(models())}
    return sorted(dict.fromkeys(names), key=lambda name: (name.startswith("sim/"), place.get(name, len(place))))


SAID = {"conclusion": str, "detectable": "{:.2f}".format, "p": p_text, "p_holm": p_text}  # behind estimates


def said(rows: pd.DataFrame, *without: str) -> dict[str, list[str]]:
    """Return as texts what stands behind estimates, as far as there is something to say."""
    names = [name for name in SAID if name in rows and name not in without]
    found = {name: [SAID[name](value) if pd.notna(value) else "" for value in rows[name]] for name in names}
    return {name: texts for name, texts in found.items() if any(texts)}


def side_by_side(rows: pd.DataFrame, index: Sequence[str], statistics: Sequence[str]) -> pd.DataFrame:
    """Return statistics that occur as columns, in their order, of texts, one row per group as they come."""
    rows = rows.assign(shown=[estimate_text(*bounds) for bounds in rows[BOUNDS].itertuples(index=False)])
    wide = rows.pivot_table(index=[*index], columns="statistic", values="shown", aggfunc="first", sort=False)
    return wide.reindex(columns=[name for name in statistics if name in wide]).fillna("").rename_axis(columns=None)


def summary(table: pd.DataFrame, statistics: Sequence[str], display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Show statistics side by side as "estimate [low, high]", one row per evaluator and design, with what they say.

    Takes each statistic's default method and policy. Behind the estimates stand `conclusion`, `detectable`, p, n and
    clusters of one of them: of the first that a conclusion is drawn from, else that was tested, else that the row has.
    Of contrasts of conditions a row is a `change` from one to the other.
    """
    rows = with_bootstrap(table, statistics)
    if "field" in rows:
        rows = rows.assign(change=rows["field"] + ": " + rows["first"] + " → " + rows["second"])
    rows["condition"] = rows["condition"].map(varying_parts(rows["condition"].unique()))
    index = [name for name in LABELS if name in rows and rows[name].fillna("").ne("").any()] or ["evaluator"]
    rows = rows.assign(**{name: rows[name].fillna("") for name in index})
    place = {name: k for k, name in enumerate(in_order(rows["evaluator"]))}
    design = rows.groupby([name for name in index if name != "evaluator"] or "level", sort=False).ngroup()
    rows = rows.iloc[np.lexsort((rows["evaluator"].map(place), design))]
    wide = side_by_side(rows, index, statistics)
    told = rows["estimate"].notna() | rows.get("conclusion", pd.Series("", rows.index)).ne("")
    found = {name: rows[(rows["statistic"] == name) & told] for name in statistics}
    ranked = sorted(found.values(), key=lambda part: (not any(part.get("conclusion", ())), part["p"].isna().all()))
    main = pd.concat([*ranked, rows]).drop_duplicates(index).set_index(index).reindex(wide.index)
    wide = wide.assign(**said(main, "p_holm"))
    wide[["n", "clusters"]] = main[["n", "clusters"]]
    wide = wide.reset_index()
    if "evaluator" in wide:
        wide["evaluator"] = [label(name, display) or ALL for name in wide["evaluator"]]
    return wide


def with_bootstrap(table: pd.DataFrame, statistics: Sequence[str]) -> pd.DataFrame:
    """Return the default rows of statistics; `BCA` among them is the advantage with its BCa interval."""
    rows = default_rows(table, *statistics)
    second = table[(table["method"] == "bca") & (table["statistic"] == "advantage")] if BCA in statistics else rows[:0]
    return pd.concat([rows, default_rows(second).assign(statistic=BCA)])


def reading(records: pd.DataFrame, changes: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say what reading left out, took for something else or took back: lines to stand above the first table.

    records, changes: of `answers.rescore`. Where more than a fifth of an evaluator's recorded answers are not in its
    raw replies, five of these replies follow.
    """
    lines = list(records.attrs.get("notes", ()))
    for change in changes.to_dict("records"):
        had, taken = change["on record"], change["removed"] + change["changed"]
        if taken <= DOUBTFUL * had:
            continue
        task, evaluator = change["task_type"], change["evaluator_model"]
        lines.append(
            f"{task}, {label(evaluator, display)}: {taken} of {had} answers on record ({taken / had:.0%}) are not in "
            f"the raw replies. {KEPT[change['answers']]} Five of the replies:"
        )
        lost = (records["task_type"] == task) & (records["evaluator_model"] == evaluator) & records["recorded"].notna()
        for answer, reply in records.loc[lost, ["recorded", "reply"]].head(5).to_numpy():
            lines.append(f"    {answer!r} on record, reply: {' '.join(visible(reply).split())[:200]!r}")
    return lines
