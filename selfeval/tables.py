"""Small tables and sentences for a reader, made from the long result table and the counts of `selfeval.stats`."""

from collections.abc import Mapping, Sequence

import pandas as pd

from selfeval.stats import confusion
from selfeval.stats.counts import NAMING, NONE, condition_label, varying_parts

DESIGN = ["task", "condition"]


def overview(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count per design and evaluator the questions, the prompts behind them, and the share without an answer."""
    counts = _readable(confusion(records), display)
    counts["unanswered"] = counts["n"].where(counts["predicted"] == NONE, 0)
    table = counts.groupby([*DESIGN, "evaluator"], sort=False)[["n", "unanswered"]].sum().reset_index()
    table["no answer"] = (table.pop("unanswered") / table["n"]).round(3)
    return _tidy(table.rename(columns={"n": "questions"}))


def summary(table: pd.DataFrame, statistics: Sequence[str], display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Show statistics side by side as "estimate [low, high]", one row per design and evaluator.

    Takes each statistic's default method and policy, and the p of discrimination where that is among them. Designs
    that have none of the statistics are left out.
    """
    rows = default_rows(table)
    rows = _readable(rows[rows["statistic"].isin(statistics)], display)
    rows["shown"] = [estimate_text(*row) for row in rows[["estimate", "low", "high"]].itertuples(index=False)]
    index = [*DESIGN, "evaluator"]
    wide = rows.pivot(index=index, columns="statistic", values="shown").reindex(rows[index].drop_duplicates())
    wide = wide.reindex(columns=[name for name in statistics if name in wide]).fillna("")
    if "discrimination" in wide:
        tested = rows[rows["statistic"] == "discrimination"].set_index(index)["p"].reindex(wide.index)
        wide["p"] = ["" if pd.isna(p) else p_text(p) for p in tested]
    return _tidy(wide.reset_index().rename_axis(columns=None))


def claims(counts: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set, for each name, the share of questions that got it beside the share of texts that it wrote."""
    counts = counts[counts["task"].isin(NAMING)]
    total = counts.groupby(DESIGN)["n"].transform("sum")
    given = (counts["n"] / total).groupby([counts[c] for c in (*DESIGN, "predicted")]).sum().rename("named")
    wrote = (counts["n"] / total).groupby([counts[c] for c in (*DESIGN, "author")]).sum().rename("wrote")
    wrote.index = wrote.index.set_names("predicted", level="author")
    both = pd.concat([given, wrote], axis=1).fillna(0).round(3).reset_index()
    both = _readable(both.rename(columns={"predicted": "name"}), display)
    return _tidy(both.sort_values([*DESIGN, "named"], ascending=[True, True, False], ignore_index=True))


def positions(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return how often each place of the shown list was chosen, as shares of the answers, per design and evaluator."""
    shown = records["candidates"].notna() if "candidates" in records else False
    chosen = records[records["task_type"].isin(NAMING) & records["predicted_model"].notna() & shown]
    if chosen.empty:
        return pd.DataFrame()  # files made elsewhere do not say in which order the candidates were listed
    chosen = chosen.rename(columns={"task_type": "task", "evaluator_model": "evaluator"})
    chosen = chosen.assign(condition=chosen["condition"].map(condition_label))
    chosen = _readable(chosen[[*DESIGN, "evaluator", "candidates", "predicted_model"]], display)
    place = [
        list(shown).index(name) + 1 for shown, name in zip(chosen["candidates"], chosen["predicted_model"], strict=True)
    ]
    shares = pd.crosstab([chosen[c] for c in (*DESIGN, "evaluator")], pd.Series(place, chosen.index), normalize="index")
    return _tidy(shares.round(3).reset_index().rename_axis(columns=None).rename(columns=str))


def conclusions(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say for each design and evaluator, in one sentence each, what discrimination and advantage allow to say."""
    rows = _readable(default_rows(table), display)
    rows = rows[
        rows["statistic"].isin(["self_accuracy", "false_claim_rate", "advantage", "discrimination", "no_answer_rate"])
    ]
    sentences = []
    for (task, condition, evaluator), group in rows.groupby([*DESIGN, "evaluator"], sort=False):
        found = {row.statistic: row for row in group.itertuples()}
        where = f"{task}{f' ({condition})' if condition else ''}, {evaluator}"
        sentences.append(f"{where}: {_conclusion(found)}")
    return sentences


def _conclusion(found: dict) -> str:
    j = found.get("discrimination")
    if j is None or pd.isna(j.estimate):
        return "nothing can be said, it wrote no text here or answered nothing."
    shown = f"J = {estimate_text(j.estimate, j.low, j.high)}" + ("" if pd.isna(j.p) else f", p {p_text(j.p)}")
    rates = found["self_accuracy"].estimate, found["false_claim_rate"].estimate
    claimed = f"claims {rates[0]:.0%} of its own and {rates[1]:.0%} of others' texts"
    few = "; few prompts, so the interval is optimistic" if "few_prompts" in str(j.note) else ""
    silent = found.get("no_answer_rate")
    if silent is not None and silent.estimate == 1:
        return "nothing can be said, it answered nothing."
    tested = pd.isna(j.p) or j.p < 1 - j.level  # the interval and the test by permutation have to agree
    if j.low > 0 and tested:
        return f"{claimed}, so it tells them apart: {shown}{few}."
    if j.high < 0 and tested:
        return f"{claimed}, so it disowns its own texts: {shown}{few}."
    a = found["advantage"].estimate
    trap = f" Its advantage A = {a:+.2f} is a habit of naming, not recognition." if abs(a) > 0.2 else ""
    if "not_estimable" in str(j.note):
        return f"{claimed}: a constant answer, from which no recognition can be estimated.{trap}"
    return f"{claimed}; no evidence of recognition: {shown}{few}.{trap}"


def default_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the default row of every statistic (first method, first policy), without those per author."""
    rows = table[table["author"] == ""]
    return rows.drop_duplicates([*DESIGN, "evaluator", "statistic"])


def estimate_text(estimate: float, low: float, high: float) -> str:
    """Return "0.12 [-0.01, 0.25]"; empty without an estimate, without brackets where there is no interval."""
    if pd.isna(estimate):
        return ""
    whole = f"{estimate:z.2f}" if abs(estimate) < 10 else f"{estimate:.0f}"
    return whole if pd.isna(low) or pd.isna(high) else f"{whole} [{low:z.2f}, {high:z.2f}]"


def p_text(p: float) -> str:
    """Return "= 0.034" or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out the column of conditions where nothing differs between them."""
    return table if table["condition"].any() else table.drop(columns="condition")


def _readable(frame: pd.DataFrame, display: Mapping[str, str] | None) -> pd.DataFrame:
    """Return a copy with display names, and conditions cut down to what differs between them."""
    frame = frame.copy()
    for column in {"evaluator", "author", "name"} & set(frame.columns):
        frame[column] = frame[column].map(lambda i: (display or {}).get(i, i))
    frame["condition"] = frame["condition"].map(varying_parts(frame["condition"].unique()))
    return frame
