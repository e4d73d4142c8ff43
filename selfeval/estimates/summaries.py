"""What a result says: its statistics side by side, and its conclusion in a sentence."""

from collections.abc import Sequence

import pandas as pd

from selfeval import results
from selfeval.errors import check_one_of
from selfeval.figures.estimates import KINDS, NO_ANSWER, Estimates
from selfeval.roleplay.measures import STATISTICS

# columns that a terminal has no room for; notebooks show them
ASIDE = ["detectable", "p", "clusters"]
# rows of a jury's table that no model decides
BASELINES = ("length", "character n-grams")
# the number that each kind of result is read by
MAIN_NUMBER = {
    "recognition": "discrimination",
    "identity": "claim_discrimination",
    "jury": "auc",
}
# what the columns of a jury's table hold
JURY_COLUMNS = {
    "task": "arm",
    "author": "source",
    "condition": "round",
    "evaluator": "juror",
}
# what it means that somebody answers nothing, where it is not that no reply can be read
SILENT = {"identity": "no probe says who it is"}
UNREAD = "no reply holds an answer that can be read"
# why a number is missing, by its note
MISSING = {
    "no_answer": "no question was answered",
    "wrote_nothing": (
        "it compares a model's own texts with others', "
        "and no model that was asked wrote any of these"
    ),
    "one_source": "it compares people with the model, and only one of the two has scores",
}
# what is asked for by these names need not be among a result's rows
ALWAYS_KNOWN = {"jury": STATISTICS, "recognition": [results.BOOTSTRAP]}


def main_statistics(result: Estimates) -> list[str]:
    """Return the statistics of a result that are read first, as far as it has them; else all.

    Where an evaluator has scores alone, the AUC is among them.
    """
    has_peers = (result["statistic"] != "peer_corrected") | result["estimate"].notna()
    statistics = list(result["statistic"][has_peers].unique())
    main = [name for name in KINDS[result.kind].main if name in statistics]
    if not main:
        return statistics
    scored = result.loc[result["statistic"] == "auc", "evaluator"]
    read = result.loc[result["statistic"].isin(main), "evaluator"]
    return main if scored.isin(read).all() else [*main, "auc"]


def table(
    result: Estimates, statistics: str | Sequence[str] = (), *, jurors: bool = False
) -> pd.DataFrame:
    """Return statistics side by side as "estimate [low, high]", a row per evaluator and design.

    statistics: their names; the main ones unless given. jurors: of a jury, single jurors instead of
    whole juries. Further columns: what the interval of the first statistic says (`conclusion`), how
    large an effect would be found in four of five such runs (`detectable`), p where there is a
    test, and over how much. "advantage_bootstrap" is the advantage with its percentile bootstrap
    interval over prompts.
    """
    if isinstance(statistics, str):
        statistics = [statistics]
    statistics = list(statistics) or main_statistics(result)
    known = [*result["statistic"].unique(), *ALWAYS_KNOWN.get(result.kind, ())]
    for name in statistics:
        check_one_of("statistics", name, known)
    rows = pd.DataFrame(result)
    if results.BOOTSTRAP in statistics:
        measured = result.drawn()[result.kind]
        bootstrap = measured.query("method == 'percentile' and statistic == 'advantage'")
        rows = pd.concat([rows, bootstrap.assign(statistic=results.BOOTSTRAP)])
    if result.kind == "jury":
        is_juror = rows["evaluator"] != ""
        rows = rows[is_juror == jurors]
    shown = results.summary(rows, statistics, result.names)
    if result.kind == "jury":
        shown = shown.rename(columns=JURY_COLUMNS)
    return shown


def main_table(result: Estimates) -> pd.DataFrame:
    """Return the table that commands print: the main statistics, then what each row concludes."""
    if "attack" in result.tables:
        return attack_table(result)
    rows = result
    if result.kind == "jury":  # people and models together
        rows = result[result["author"] == ""]
    lacks_answers = rows["statistic"].isin(NO_ANSWER) & (rows["estimate"] > 0)
    lacking = rows["statistic"][lacks_answers]
    statistics = dict.fromkeys([*main_statistics(rows), *lacking])
    shown = table(rows, [*statistics]).drop(columns=ASIDE, errors="ignore")
    if "conclusion" in shown:
        conclusions = shown.pop("conclusion")
        shown["conclusion"] = conclusions
    return shown


def attack_table(result: Estimates) -> pd.DataFrame:
    """Return what became of attacked conversations by their last turn, a row per strategy."""
    rows = result.tables["attack"]
    turns = rows["statistic"].str.extract(r"^survival@(\d+)$")[0].dropna()
    last = turns.astype(int).max()
    names = ("survival", "adopts", "denies", "survival_minus_control")
    shown = results.summary(rows, [f"{name}@{last}" for name in names], result.names)
    return shown.rename(columns={"task": "strategy"}).drop(columns=ASIDE, errors="ignore")


def why_without_value(result: Estimates) -> str:
    """Return why a result has no value of its kind's main number; "" where it has one."""
    number = MAIN_NUMBER.get(result.kind, "")
    rows = result[(result["statistic"] == number) & ~result["task"].isin(BASELINES)]
    if rows.empty or rows["estimate"].notna().any():
        return ""
    for note, why in MISSING.items():
        if rows["note"].str.contains(note).all():
            return f"There is no {number} here: {why}."
    return f"There is no {number} here: too few replies hold an answer that can be read."


def silence(result: Estimates) -> list[str]:
    """Return a sentence on the evaluators that never answer; [] without any.

    Who has a value of the main number does: in identity, whoever denies its name outside probes.
    """
    rates = result[result["statistic"] == "no_answer_rate"]
    lowest = rates.groupby("evaluator")["estimate"].min()
    is_main = result["statistic"] == MAIN_NUMBER.get(result.kind)
    answering = result.loc[is_main & result["estimate"].notna(), "evaluator"]
    names = result.names or {}
    silent = lowest.index[lowest == 1].difference(answering)
    who = ", ".join(names.get(name, name) for name in silent if name)
    if not who:
        return []
    return [f"{who}: {SILENT.get(result.kind, UNREAD)} (no answer: 100 %)."]


def answer(result: Estimates) -> str:
    """Return the answer of a recognition result in a sentence; "" for other kinds, and for none.

    A model that recognises its texts in one task or condition of several is said to, with how many
    they are.
    """
    shown = main_table(result)
    if result.kind != "recognition" or "conclusion" not in shown:
        return ""
    concluded = shown[shown["conclusion"] != ""]
    if concluded.empty:
        return ""
    recognises = concluded["conclusion"] == "recognises"
    rows = recognises.groupby(concluded["evaluator"]).agg(["sum", "size"])
    found = rows[rows["sum"] > 0]
    if found.empty:
        return "No model is shown to recognise its own texts."
    names = []
    for name, number, of in found.itertuples():
        names.append(name if number == of else f"{name} (in {number} of {of} rows)")
    verb = "recognises" if len(names) == 1 else "recognise"
    sentence = f"{' and '.join(names)} {verb} texts of their own."
    others = rows.index.difference(found.index, sort=False)
    if others.empty:
        return sentence
    return f"{sentence} This is not shown for {', '.join(others)}."
