"""What a result says: tables side by side, and sentences."""

from collections.abc import Mapping, Sequence

import pandas as pd

from selfeval import results
from selfeval.condition import varying_parts
from selfeval.errors import check_one_of
from selfeval.figures.estimates import KINDS, NO_ANSWER, Estimates
from selfeval.recognition.counts import NOT_SELF
from selfeval.roleplay.measures import STATISTICS

ASIDE = [
    "detectable",
    "p",
    "clusters",
]  # left out of a table that fits a terminal; notebooks have them
BASELINES = ("length", "character n-grams")  # of a jury, beside its arms; no model decides there
READ_BY = {
    "recognition": "discrimination",
    "identity": "claim_discrimination",
    "jury": "auc",
}  # kind: its number
OF_A_JURY = {
    "task": "arm",
    "author": "source",
    "condition": "round",
    "evaluator": "juror",
}  # as tables show it


def main_statistics(result: Estimates) -> list[str]:
    """Return the statistics of a result that are read first, as far as it has them; else all.

    Where an evaluator answers nothing, the rate that says so is among them.
    """
    there = [*result["statistic"].unique()]
    first = [name for name in KINDS[result.kind].main if name in there]
    if not first:
        return there
    never_answers = result["statistic"].isin(NO_ANSWER) & (result["estimate"] == 1)
    silent = result["statistic"][never_answers].unique()
    return [*first, *silent]


def table(
    result: Estimates, statistics: str | Sequence[str] = (), *, jurors: bool = False
) -> pd.DataFrame:
    """Return statistics side by side as "estimate [low, high]", one row per evaluator and design; the main ones for ().

    Behind them stand what the interval of the first says (`conclusion`), how large an effect would be found in four of
    five such runs (`detectable`), p where there is a test, and over how much. "advantage_bca" is the advantage with its
    BCa bootstrap interval over prompts. "author_accuracy" alone is a matrix, with a column per author. jurors: of a
    jury, single jurors instead of whole juries.
    """
    asked = (
        [statistics] if isinstance(statistics, str) else [*statistics] or main_statistics(result)
    )
    known = {"jury": STATISTICS, "recognition": [results.BCA]}  # a jury's arms decide what there is
    for name in asked:
        check_one_of(
            "statistics", name, [*result["statistic"].unique(), *known.get(result.kind, ())]
        )
    rows = pd.DataFrame(result)
    if results.BCA in asked:
        bootstrap = result.drawn()[result.kind].query(
            "method == 'bca' and statistic == 'advantage'"
        )
        rows = pd.concat([rows, bootstrap.assign(statistic=results.BCA)])
    if result.kind == "jury":
        rows = rows[(rows["evaluator"] != "") == jurors]
    shown = results.summary(rows, asked, result.names)
    if asked == ["author_accuracy"]:
        index = [name for name in shown if name in ("task", "condition", "evaluator")]
        matrix = shown.pivot_table(asked[0], index, "author", aggfunc="first", sort=False).fillna(
            ""
        )
        return matrix.rename(columns=result.names or {}).rename_axis(columns=None).reset_index()
    return shown.rename(columns=OF_A_JURY) if result.kind == "jury" else shown


def main_table(result: Estimates) -> pd.DataFrame:
    """Return the table that commands print: the main statistics, and at the end what each row concludes."""
    rows = (
        result[result["author"] == ""] if result.kind == "jury" else result
    )  # people and models together
    lacking = rows[rows["statistic"].isin(NO_ANSWER) & (rows["estimate"] > 0)]
    shown = table(rows, [*dict.fromkeys([*main_statistics(rows), *lacking["statistic"]])])
    shown = shown.drop(columns=ASIDE, errors="ignore")
    if "conclusion" in shown:
        shown = shown.assign(conclusion=shown.pop("conclusion"))
    return shown


def claims_table(result: Estimates) -> pd.DataFrame:
    """Return what evaluators said of texts in the yes/no task, empty without that task.

    TP and FN: their own texts claimed and denied; FP and TN: others' texts claimed and denied.
    """
    counts = result.drawn().get("counts") if result.kind == "recognition" else None
    if counts is None:
        return pd.DataFrame()
    counts = counts[counts["task"] == "binary_self"]
    own = counts["author"] == counts["evaluator"]
    claims = counts["predicted"] == counts["evaluator"]
    denies = counts["predicted"] == NOT_SELF
    said = pd.DataFrame(
        {"evaluator": [results.model_name(name, result.names) for name in counts["evaluator"]]},
        counts.index,
    )
    labels = varying_parts(result["condition"].unique())
    said["condition"] = counts["condition"].map(labels)
    for name, rows in {
        "TP": claims & own,
        "FP": claims & ~own,
        "TN": denies & ~own,
        "FN": denies & own,
    }.items():
        said[name] = counts["n"].where(rows, 0)
    if (said["condition"] == "").all():
        said = said.drop(columns="condition")
    keys = [name for name in ("evaluator", "condition") if name in said]
    return said.groupby(keys, as_index=False).sum()


def why_without_value(result: Estimates) -> str:
    """Return why a result has no value of the number that its kind is read by, in one sentence; "" where it has one."""
    name = READ_BY.get(result.kind, "")
    main = result[(result["statistic"] == name) & ~result["task"].isin(BASELINES)]
    if main.empty or main["estimate"].notna().any():
        return ""
    rates = result.loc[result["statistic"] == "no_answer_rate", "estimate"]
    is_silent = main["note"].str.contains("no_answer").all() or (len(rates) and (rates == 1).all())
    if is_silent:
        why = "no reply holds an answer that can be read"
    elif main["note"].str.contains("wrote_nothing").all():
        why = "it compares a model's own texts with others', and no model that was asked wrote any of these"
    elif main["note"].str.contains("one_source").all():
        why = "it compares people with the model, and only one of the two has scores"
    else:
        why = "too few replies hold an answer that can be read"
    return f"There is no {name} here: {why}."


def silence(result: Estimates) -> list[str]:
    """Return a sentence on the evaluators without a single answer that can be read; [] where there is none."""
    rates = result[result["statistic"] == "no_answer_rate"]
    lowest = rates.groupby("evaluator")["estimate"].min()
    names = result.names or {}
    silent = [names.get(name, name) for name in lowest.index[lowest == 1] if name]
    if not silent:
        return []
    return [f"No reply of {', '.join(silent)} holds an answer that can be read (no answer: 100 %)."]


def verdict(result: Estimates) -> str:
    """Return in one line what the main table concludes: "recognises: Good, Perfect; no evidence: Chance".

    Where tasks or conditions differ in that, each stands with its own. Of a jury, arms stand in the models' place, and
    the baselines are left out.
    """
    shown = main_table(result)
    if "conclusion" not in shown:
        return ""
    who = "evaluator" if "evaluator" in shown else shown.columns[0]
    is_said = (shown["conclusion"] != "") & ~shown[who].isin(BASELINES)
    shown = pd.DataFrame(shown[is_said])
    labels = [
        name for name in ("task", "condition", "arm", "round") if name in shown and name != who
    ]
    found = {}
    for row in shown.to_dict("records"):
        asked = ", ".join(row[name] for name in labels if row[name])
        found.setdefault(asked, {}).setdefault(row["conclusion"], []).append(row[who])
    sentences = {asked: _in_words(concluded) for asked, concluded in found.items()}
    if len({*sentences.values()}) == 1:
        return next(iter(sentences.values()))
    return ". ".join(f"{asked} – {text}" for asked, text in sentences.items())


def answer(result: Estimates) -> str:
    """Return the answer of a recognition result in one sentence; "" for other kinds and without a conclusion.

    A model that recognises its texts in one task or condition of several is said to, with how many they are.
    """
    shown = main_table(result)
    if result.kind != "recognition" or "conclusion" not in shown:
        return ""
    concluded = shown[shown["conclusion"] != ""]
    recognises = concluded["conclusion"] == "recognises"
    rows = concluded.groupby("evaluator").size()
    rows_found = concluded[recognises].groupby("evaluator").size()
    if concluded.empty:
        return ""
    if rows_found.empty:
        return "No model is shown to recognise its own texts."
    found = []
    for name, number in rows_found.items():
        found.append(name if number == rows[name] else f"{name} (in {number} of {rows[name]} rows)")
    who = f"{' and '.join(found)} recognise{'s' if len(found) == 1 else ''} texts of their own."
    others = [name for name in rows.index if name not in rows_found]
    return f"{who} This is not shown for {', '.join(others)}." if others else who


def _in_words(concluded: Mapping[str, Sequence[str]]) -> str:
    """Return {conclusion: names} as text, those that recognise first."""
    order = sorted(concluded, key=lambda conclusion: conclusion != "recognises")
    return "; ".join(
        f"{conclusion}: {', '.join(sorted(concluded[conclusion]))}" for conclusion in order
    )
