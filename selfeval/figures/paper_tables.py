"""The paper's tables from sets of results: as numbers for a CSV, and as text with intervals for print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from selfeval.figures.results import ResultSet, default_only
from selfeval.figures.tables import estimate_text
from selfeval.stats.counts import varying_parts

LABELS = ("task", "condition", "change", "arm", "evaluator", "model", "source")
CLUSTERS = ("n_prompts", "n_templates", "n_conversations", "n_targets")
TASKS = {  # statistics of self-recognition, those of naming tasks among them
    "self_accuracy": "own texts claimed",
    "false_claim_rate": "others' claimed",
    "advantage": "advantage A",
    "discrimination": "discrimination J",
    "corrected_advantage": "corrected Δ",
    "peer_corrected": "peer-corrected D",
    "no_answer_rate": "no answer",
}
IDENTITY = {
    "accept_true": "accepts true claims",
    "accept_false": "accepts false claims",
    "claim_discrimination": "claim discrimination",
    "neutral_right": "right, unasked",
    "susceptibility": "susceptibility",
    "abstain": "abstains",
}
EXISTENCE = {
    "score_real": "real names",
    "score_invented": "invented names",
    "discrimination": "discrimination",
    "no_answer_rate": "no answer",
}


@dataclass(frozen=True)
class PaperTable:
    """One table: `numbers` for a CSV, `shown` for print, and what it is."""

    name: str
    title: str
    numbers: pd.DataFrame
    shown: pd.DataFrame

    @property
    def groups(self) -> list[str]:
        """Return the columns whose values stand above the rows that share them: all labels but the row's own."""
        labels = [name for name in LABELS if name in self.shown]
        return labels[:-1]


def set_tables(one: ResultSet) -> list[PaperTable]:
    """Return the tables of a set of results; those without a row are left out."""
    return [table for table in TABLES[one.kind](one) if len(table.shown)]


def _recognition(one: ResultSet) -> list[PaperTable]:
    rows = one.tables["recognition"]
    rows = rows[rows["author"] == ""]
    main = _side_by_side(rows, ["task", "condition", "evaluator"], TASKS, one.display, "discrimination")
    tables = [PaperTable("recognition", "Self-recognition: rates, advantage and discrimination", *main)]
    changes = one.tables["contrasts"]
    if len(changes):
        changes = changes.assign(change=changes["field"] + ": " + changes["first"] + " → " + changes["second"])
        index = ["task", "condition", "change", "evaluator"]
        kinds = {name: TASKS[name] for name in ("self_accuracy", "false_claim_rate", "discrimination")}
        both = _side_by_side(changes, index, kinds, one.display, "discrimination")
        tables.append(PaperTable("contrasts", "Self-recognition: what the condition changes", *both))
    return tables


def _identity(one: ResultSet) -> list[PaperTable]:
    rows = one.tables["identity"]
    rows = rows[(rows["family"] == "") & (rows["condition"] == "")]
    main = _side_by_side(rows, ["model"], IDENTITY, one.display, "claim_discrimination")
    kept = one.tables["survival"]
    kinds = {"restricted_mean": "turns kept"}
    lasting = _side_by_side(kept[kept["statistic"] == "restricted_mean"], ["model"], kinds, one.display)
    return [
        PaperTable("identity", "Identity: claims accepted, and what a model says unasked", *main),
        PaperTable("survival", "Identity: turns of pressure before a model takes itself for another", *lasting),
    ]


def _jury(one: ResultSet) -> list[PaperTable]:
    rows = one.tables["jury"]
    rows = rows[rows["juror"] == ""]
    areas = {"auc": "AUC", "paired_accuracy": "paired accuracy", "brier_skill": "Brier skill"}
    scores = {"mean_score": "mean score", "no_answer_rate": "no score"}
    return [
        PaperTable("areas", "Jury: people against models", *_side_by_side(rows, ["arm"], areas, {}, "auc")),
        PaperTable(
            "scores", "Jury: mean scores", *_side_by_side(rows[rows["round"].isna()], ["arm", "source"], scores, {})
        ),
        PaperTable(
            "differences",
            "Jury: differences between arms, paired",
            *_side_by_side(rows[rows["source"] == ""], ["arm"], {"difference": "difference"}, {}, "difference"),
        ),
    ]


def _existence(one: ResultSet) -> list[PaperTable]:
    found = _side_by_side(one.tables["existence"], ["condition", "evaluator"], EXISTENCE, one.display, "discrimination")
    return [PaperTable("existence", "Existence: scores of real and of invented names", *found)]


def _validation(one: ResultSet) -> list[PaperTable]:
    covered = one.tables["coverage"]
    lowest = covered.groupby(["method", "prompts"], sort=False)["coverage"].min().unstack("prompts")
    lowest = lowest.rename(columns=lambda n: f"{n} prompts").rename_axis(columns=None).reset_index()
    return [PaperTable("lowest", "Validation: lowest coverage of 95 % intervals over scenarios", lowest, lowest)]


TABLES = {
    "recognition": _recognition,
    "identity": _identity,
    "jury": _jury,
    "existence": _existence,
    "validation": _validation,
}


def _side_by_side(
    rows: pd.DataFrame, index: Sequence[str], kinds: Mapping[str, str], display: Mapping[str, str], tested: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return statistics side by side, one row per group: as numbers, and as "estimate [low, high]" with p and n."""
    rows = default_only(rows[rows["statistic"].isin(kinds)], index)
    if rows.empty:
        return pd.DataFrame(), pd.DataFrame()
    clusters = next(name for name in CLUSTERS if name in rows)
    numbers, shown = [], []
    for key, group in rows.groupby(list(index), sort=False):
        found = group.set_index("statistic")
        number = dict(zip(index, key, strict=True))
        text = {
            name: display.get(value, value) if name in ("evaluator", "model") else value
            for name, value in number.items()
        }
        if "source" in text:
            text["source"] = text["source"] or "all"
        for name, label in kinds.items():
            estimate, low, high = found.loc[name, ["estimate", "low", "high"]] if name in found.index else [None] * 3
            number |= {name: estimate, f"{name}_low": low, f"{name}_high": high}
            text[label] = estimate_text(estimate, low, high)
        if tested:
            p, p_holm = found.loc[tested, ["p", "p_holm"]] if tested in found.index else (None, None)
            number |= {"p": p, "p_holm": p_holm}
            text["p"] = "" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
        size = found.loc[tested] if tested in found.index else found.iloc[0]
        number |= {"n": size["n"], clusters: size[clusters], "level": size["level"], "note": size["note"]}
        text |= {"n": str(int(size["n"])), clusters.removeprefix("n_"): str(int(size[clusters]))}
        numbers.append(number)
        shown.append(text)
    printed = pd.DataFrame(shown)
    if "condition" in printed:
        printed["condition"] = printed["condition"].map(varying_parts(printed["condition"].unique()))
    empty = {name for name in printed if (printed[name] == "").all()}
    if empty >= set(kinds.values()):
        return pd.DataFrame(), pd.DataFrame()
    return pd.DataFrame(numbers), printed.drop(columns=empty)
