"""Small tables and sentences for a reader, made from the long result table and the counts of `selfeval.stats`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import scipy.stats as sps

from selfeval.figures.rows import BESIDE, bootstrapped, default_rows, renamed, with_bootstrap, words
from selfeval.keys import visible
from selfeval.models import grouped
from selfeval.scoring import DOUBTFUL
from selfeval.stats import conclusion, detectable_difference, recognition_and_preference, recognition_table
from selfeval.stats.readings import ORACLE, OWN, STYLE
from selfeval.stats.records import NAMING, PAIRWISE, condition_label, varying_parts
from selfeval.stats.serving import asked_again

DESIGN = ["task", "condition"]
ROW = [*DESIGN, "evaluator"]
BOUNDS = ["estimate", "low", "high"]
NO_PROMPTS = "; the file names no prompts, so each text is a cluster of its own"
TESTED = (  # p is shown beside these
    "discrimination", "self_accuracy", "own_minus_neutral", "neutral_accuracy", "judge_fixed", "pair_fixed",
    "mean_probability", "auc",
)  # fmt: skip
J, AUC = "discrimination", "auc_within_prompt"
MAIN = (J, "self_accuracy", "neutral_accuracy", "auc", "claim_discrimination")  # what sentences conclude from
ALL = "all evaluators"  # what a reader sees where `evaluator` is empty: a value pooled over them
ENOUGH = 40  # clusters, from which on planning takes the standard deviation from the data
SD = 0.55  # of J per prompt with one text per prompt and author, as far as data do not say it

# views of records ---------------------------------------------------------------------------------------------------


def overview(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count per design and evaluator the questions, the prompts behind them, and the share without an answer.

    Where replies were asked for again, also their share of the questions; where `rescore` found answers that no raw
    reply holds, also their share of the answers (unverified).
    """
    given = [
        name
        for name in ("prompt_id", "prompt_used")
        if name in records and records[name].replace("", None).notna().any()
    ]
    unit, clusters = ("prompts", given[0]) if given else ("texts (no prompts named)", "text_id")
    answers = records.reindex(columns=["predicted_model", "predicted_self"])
    answered = answers["predicted_model"].where(records["task_type"].isin(NAMING), answers["predicted_self"]).notna()
    told = _designs(records).assign(**{unit: records[clusters].astype(str), "no answer": ~answered})
    groups = told.groupby(ROW)
    table = groups.agg(**{unit: (unit, "nunique"), "questions": (unit, "size"), "no answer": ("no answer", "mean")})
    shares = {"asked again": asked_again(told, ROW)}
    if "unverified" in records:
        shares["unverified"] = groups["unverified"].sum() / answered.groupby([told[name] for name in ROW]).sum()
    table = table.assign(**{name: share for name, share in shares.items() if share.any()}).round(3)
    return _readable(table.reset_index(), display)


def _designs(records: pd.DataFrame) -> pd.DataFrame:
    """Return records with the columns of a design and its evaluator, as tables of estimates have them."""
    condition = records["condition"].map(condition_label) if "condition" in records else ""
    return records.assign(task=records["task_type"], condition=condition, evaluator=records["evaluator_model"])


def leaking(records: pd.DataFrame, display: Mapping[str, str] | None = None, *, seed: int = 0) -> pd.DataFrame:
    """Set discrimination on all texts beside that without texts that name a model or a maker; empty without leaks."""
    leaks = records["leak"].eq(True) if "leak" in records else pd.Series(False, records.index)
    if not leaks.any() or leaks.all():
        return pd.DataFrame()
    parts = {"all texts": records, "without leaks": records[~leaks]}
    found = {name: recognition_table(part, n_resamples=1, seed=seed) for name, part in parts.items()}
    rows = pd.concat(default_rows(table, J).assign(statistic=name) for name, table in found.items())
    return _readable(side_by_side(rows.sort_values(ROW, kind="stable"), ROW, [*parts]).reset_index(), display)


def statuses(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count replies by status per task and evaluator; where something was asked again, with its share."""
    counts = counted(records.sort_values(["task_type", "evaluator_model"]), ["task_type", "evaluator_model"], "status")
    return counts.rename(index=display or {}, level="evaluator_model")


def counted(records: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Count the values of a column by group; where replies were asked for again, with their share."""
    counts = records.groupby(by, sort=False)[column].value_counts().unstack(fill_value=0)
    again = asked_again(records, by)
    return counts.assign(**{"asked again": again.round(3)}) if again.any() else counts


def reading(records: pd.DataFrame, changes: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say what reading left out, took for something else or took back: lines to stand above the first table.

    records, changes: of `answers.rescore`. Where more than a fifth of an evaluator's recorded answers are not in its
    raw replies, five of these replies follow.
    """
    lines, said = list(records.attrs.get("notes", ())), words()["sentences"]
    for change in changes.to_dict("records"):
        had, taken, use = change["on record"], change["removed"] + change["changed"], change["answers"]
        if taken <= DOUBTFUL * had:
            continue
        task, evaluator = change["task_type"], change["evaluator_model"]
        who = f"{task}, {label(evaluator, display)}"
        lines.append(said["lost"].format(who=who, taken=taken, had=had, share=taken / had, kept=said[use]))
        lost = (records["task_type"] == task) & (records["evaluator_model"] == evaluator) & records["recorded"].notna()
        for answer, reply in records.loc[lost, ["recorded", "reply"]].head(5).to_numpy():
            lines.append(f"    {answer!r} on record, reply: {' '.join(visible(reply).split())[:200]!r}")
    return lines


def few_answers(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say which evaluators left more than a fifth of their questions, or all, without an answer."""
    rates = table[table["statistic"].str.endswith("no_answer_rate") & (table["estimate"] > DOUBTFUL)]
    lines, said = {}, words()["sentences"]
    for row in rates.to_dict("records"):
        design = ", ".join(filter(None, [row["task"], varying_parts(table["condition"])[row["condition"]]]))
        who = f"{design}, {label(row['evaluator'], display)}"
        sentence = said["no_answers" if row["estimate"] == 1 else "few_answers"]
        lines[sentence.format(who=who, rate=row["estimate"], n=row["n"])] = None
    return [*lines]


def two_authors(records: pd.DataFrame) -> list[str]:
    """Say that with two authors to name the corrected advantage is 0 by construction; nothing with more."""
    named = records[records["task_type"].isin(NAMING)]
    shown = named["candidates"].dropna() if "candidates" in named else []
    two = named["true_model"].nunique() == 2 and all(len(names) == 2 for names in shown)
    return [words()["sentences"]["two_authors"]] * two


def positions(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return how often each place of the shown list was chosen, as shares of the answers, per design and evaluator."""
    shown = records["candidates"].notna() if "candidates" in records else False
    chosen = _designs(records[records["task_type"].isin(NAMING) & records["predicted_model"].notna() & shown])
    if chosen.empty:
        return pd.DataFrame()  # files made elsewhere do not say in which order the candidates were listed
    place = [str([*names].index(name) + 1) for names, name in chosen[["candidates", "predicted_model"]].to_numpy()]
    shares = pd.crosstab([chosen[name] for name in ROW], np.array(place), normalize="index")
    return _readable(shares.round(3).reset_index().rename_axis(columns=None), display)


# views of estimates -------------------------------------------------------------------------------------------------


def summary(table: pd.DataFrame, statistics: Sequence[str], display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Show statistics side by side as "estimate [low, high]", one row per design and evaluator.

    Takes each statistic's default method and policy, and the p of discrimination where that is among them, of the
    others in `TESTED` as "p of ...". Designs that have none of the statistics are left out. Of contrasts of conditions
    a row is a `change` from one to the other. "advantage_bca" is the advantage with its BCa bootstrap interval.
    """
    rows = with_bootstrap(table, *statistics)
    if rows.empty:
        return pd.DataFrame()
    index = ROW
    if "field" in rows:
        rows = rows.assign(change=rows["field"] + ": " + rows["first"] + " → " + rows["second"])
        index = [*DESIGN, "change", "evaluator"]
    wide = side_by_side(rows, index, statistics)
    for name in TESTED:
        tested = rows[rows["statistic"] == name].set_index(index)["p"].reindex(wide.index)
        if (name == "discrimination" and name in wide) or (tested.notna().any() and "p" not in wide):
            column = "p" if name == "discrimination" else f"p of {name}"
            wide[column] = ["" if pd.isna(p) else p_text(p) for p in tested]
    return _readable(wide.reset_index(), display)


def beside_bootstrap(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set the BCa bootstrap intervals of advantage and discrimination beside the default ones."""
    second = bootstrapped(table)
    rows = pd.concat([default_rows(table, *BESIDE), second.assign(statistic=second["statistic"] + ", BCa")])
    names = [name for statistic in BESIDE for name in (statistic, f"{statistic}, BCa")]
    return _readable(side_by_side(rows, ROW, names).reset_index(), display)


def which_interval(table: pd.DataFrame) -> str:
    """Say where the BCa interval differs from the default one, and which to quote."""
    both = default_rows(table, *BESIDE).merge(bootstrapped(table), on=[*ROW, "statistic"])
    both = both.dropna(subset=["low_x", "low_y"])
    apart = ((both["low_x"] - both["low_y"]).abs() > 0.05) | ((both["high_x"] - both["high_y"]).abs() > 0.05)
    return words()["sentences"]["bootstrap"].format(apart=apart.sum(), all=len(both))


def about_intervals(table: pd.DataFrame, named: bool = True) -> str:
    """Say once over how much estimates are, and name their interval methods as they are cited, with the policy."""
    rows = default_rows(table, author=None).dropna(subset="low")
    rows = rows[(rows["author"] == "") | (rows["cluster_unit"] == "conversation")]  # of juries it says whose answers
    if rows.empty:
        return ""
    units = " and ".join(f"{unit}s" for unit in rows["cluster_unit"].unique())
    counts, models = rows["clusters"].astype(int), rows["evaluator"].replace("", None).nunique()
    span = " to ".join(map(str, dict.fromkeys([counts.min(), counts.max()])))
    who = f"{models} model{'s' * (models > 1)}, " * (models > 0)
    sizes = f"n: {who}{span} {units}."
    if not named:
        return sizes
    made = [name for name in rows["method"].unique() if name != "clustered_t" or "bounded_t" not in set(rows["method"])]
    methods = [words()["methods"].get(name, name).format(units=units) for name in made]
    policies = " and ".join(name for name in rows["policy"].unique() if name)
    level = f"{rows['level'].iloc[0] * 100:g} % intervals: {'; '.join(methods)}."
    return f"{sizes} {level}" + f" Policy {policies}." * bool(policies)


def about_dominated(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> str:
    """Say whose main estimates rest on a few clusters that hold most of the answers."""
    rows = default_rows(table, *MAIN)
    rows = rows[rows["note"].astype(str).str.contains("s_dominate", regex=False)]
    if rows.empty:
        return ""
    units = " or ".join(f"{unit}s" for unit in rows["cluster_unit"].unique())
    who = ", ".join(dict.fromkeys(label(name, display) or ALL for name in rows["evaluator"]))
    return f"{who}: a few {units} hold most of the answers."


def side_by_side(rows: pd.DataFrame, index: Sequence[str], statistics: Sequence[str]) -> pd.DataFrame:
    """Return statistics that occur as columns, in their order, of texts (`shown`), one row per group as they come."""
    if "shown" not in rows:
        rows = rows.assign(shown=[estimate_text(*row) for row in rows[BOUNDS].itertuples(index=False)])
    wide = rows.pivot_table(index=[*index], columns="statistic", values="shown", aggfunc="first", sort=False)
    return wide.reindex(columns=[name for name in statistics if name in wide]).fillna("").rename_axis(columns=None)


def claims(counts: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set, for each name, the share of questions that got it beside the share of texts that it wrote."""
    counts = counts[counts["task"].isin(NAMING)]
    share = counts["n"] / counts.groupby(DESIGN)["n"].transform("sum")
    sides = {"named": "predicted", "wrote": "author"}
    sums = {
        side: share.groupby([*(counts[c] for c in DESIGN), counts[of].rename("name")]).sum()
        for side, of in sides.items()
    }
    both = pd.DataFrame(sums).fillna(0).round(3).reset_index()
    return _readable(both.sort_values([*DESIGN, "named"], ascending=[True, True, False], ignore_index=True), display)


def claims_by_developer(counts: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set, for each developer, the share of questions that got a name of its models beside the share that they wrote.

    Developers are the registry's; empty where it lists fewer than two of the authors' ones.
    """
    made_by = grouped({*counts["author"], *counts["predicted"]}, "developer")
    if counts["author"].map(made_by).nunique() < 2:
        return pd.DataFrame()
    found = claims(counts.replace({"author": made_by, "predicted": made_by}), display)
    return found.rename(columns={"name": "developer"})


def families(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set discrimination of its family's name beside that of its own, of each evaluator that has both; maybe empty."""
    of_family = default_rows(table, "family_discrimination")
    own = default_rows(table, J).merge(of_family[ROW])
    shown = summary(pd.concat([own, of_family]), [J, "family_discrimination"], display)
    return shown.rename(columns={"p": f"p of {J}"})


def preference(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Show recognition beside own-preference and its baseline (`stats.recognition_and_preference`); maybe empty."""
    shown = ["recognition", "own_rate", "neutral_rate", "own_minus_neutral", "correlation"]
    return summary(recognition_and_preference(table), shown, display)


def ceiling(table: pd.DataFrame, style: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set each author's own discrimination beside that of a style classifier (`selfeval.controls`), in naming tasks."""
    if "style" not in style:
        return pd.DataFrame()
    bounds = {"style": "estimate", "style_low": "low", "style_high": "high", "author": "evaluator"}
    style = style.rename(columns=bounds).assign(statistic="classifier")
    own = default_rows(table, J).assign(statistic="itself")
    own = own[own["task"].isin(NAMING) & own["evaluator"].isin(style["evaluator"])]
    style = own[ROW].merge(style, on="evaluator")
    both = side_by_side(pd.concat([own, style]), ROW, ["classifier", "itself"])
    return _readable(both.reset_index(), display)


def in_general(table: pd.DataFrame) -> pd.DataFrame:
    """Show the mean over models, for these models and for models like them, as estimates with intervals."""
    rows = renamed(table)
    about = rows["method"].map({"two_way_t": "models like these"}).fillna("these models")
    shown = summary(rows.assign(evaluator=about, author=""), list(rows["statistic"].unique()))
    return shown.rename(columns={"evaluator": "about"})


def show_table(table: pd.DataFrame, otherwise: str) -> None:
    """Display a table in a notebook, or say in a sentence why there is none."""
    from IPython.display import display

    print(otherwise) if table.empty else display(table)


# sentences ----------------------------------------------------------------------------------------------------------


def paired(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Show differences between two models (`stats.paired_models`, `stats.paired_comparison`), p adjusted by Holm."""
    rows = _readable(default_rows(table), display)
    shown = rows[[name for name in (*DESIGN, "evaluator", "statistic") if name in rows]]
    text = [estimate_text(*bounds) for bounds in rows[["estimate", "low", "high"]].itertuples(index=False)]
    return shown.assign(difference=text, p_holm=rows["p_holm"].map(p_text), clusters=rows["clusters"])


def planning(table: pd.DataFrame) -> list[str]:
    """Say how large a discrimination so many prompts would have found, before anybody reads a null as "none".

    The standard deviation per prompt is the largest of the evaluators where there are `ENOUGH` prompts, else `SD`.
    """
    sentences: dict[str, list[str]] = {}
    rows = default_rows(table, "discrimination")
    varying = varying_parts(rows["condition"].unique())
    for (task, condition), group in rows.groupby(DESIGN, sort=False):
        clusters = int(group["clusters"].max())
        if (group["cluster_unit"] == "text").any():
            return [f"What this design could find cannot be planned{NO_PROMPTS}."]
        if clusters < 2:
            continue
        half = (group["high"] - group["low"]).max() / 2
        found = half * clusters**0.5 / sps.t.ppf(0.5 + group["level"].iloc[0] / 2, clusters - 1)
        sd, assumed, t = SD, "assumed, as in earlier data", clusters < ENOUGH
        if not t and found > 0:
            sd, assumed = found, "the largest of these evaluators"
        least = detectable_difference(clusters, sd=sd, t=t)
        about = {"clusters": clusters, "sd": sd, "assumed": assumed, "least": least, "few": _few(clusters)}
        said = words()["sentences"]["planned"].format(**about)
        sentences.setdefault(said, []).append(f"{task}{f' ({varying[condition]})' if varying[condition] else ''}")
    return [f"{', '.join(designs)}: {said}" for said, designs in sentences.items()]


def conclusions(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say for each design and evaluator what discrimination, AUC and advantage (of pairs: choices) show."""
    sentences = {}
    for key, group in default_rows(table).groupby(ROW, sort=False):
        found = {row.statistic: row for row in group.itertuples()}
        main = found.get("self_accuracy", found.get(J))
        if main is None:  # a neutral judge of pairs, which wrote neither text, or what all have in common
            sentences |= {key: said} if (said := _of_neutral(found)) else {}
        else:
            sentences[key] = _of_pairs(found) if key[0] == PAIRWISE else _of_texts(found)
    keys = _readable(pd.DataFrame([*sentences], columns=ROW), display).to_dict("records")
    return [f"{_where(key)}: {said}" for key, said in zip(keys, sentences.values(), strict=True)]


def about_names(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say for each evaluator and form of answer (`stats.existence_table`) whether it tells real names from invented."""
    sentences = []
    for evaluator, rows in default_rows(table).groupby("evaluator", sort=False):
        name, silent = label(evaluator, display), rows[rows["statistic"] == "no_answer_rate"]["estimate"]
        if silent.eq(1).all():
            why = " Simulated models cannot answer these questions." * evaluator.startswith("sim/")
            sentences.append(f"{name} gave no usable answer, so nothing can be said.{why}")
            continue
        for condition, group in rows.groupby("condition", sort=False):
            form = condition.removeprefix("answer=").split(";")[0].replace("_", " or ")
            form += ", with reasons" * ("reasoning=true" in condition)
            [j] = group[group["statistic"] == J].itertuples()
            said = "too few usable answers, so nothing can be said"
            if not pd.isna(j.estimate):
                verdicts = "it tells real names from invented ones", "it believes invented names more than real ones"
                verdict = _side(j, 0, *verdicts, "no evidence that it tells real names from invented ones")
                few = f"; only {j.clusters:.0f} names: a wide interval" * ("few_names" in j.note and pd.notna(j.low))
                said = f"{verdict} (discrimination {_tested(j)}{few})"
            sentences.append(f"{name}, {form}: {said}.")
    return sentences


def about_readings(table: pd.DataFrame, gaps: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say for each evaluator what its weights and other readings tell apart (`stats.readings`), and how they differ."""
    sentences = []
    for evaluator, rows in default_rows(table, AUC).groupby("evaluator", sort=False):
        found = {row.condition.removeprefix("reading="): row for row in rows.itertuples()}
        if OWN not in found or pd.isna(found[OWN].estimate):
            continue
        own = gaps[(gaps["evaluator"] == evaluator) & (gaps["statistic"] == AUC)].set_index("first")
        said = [f"{label(evaluator, display)}: by its weights {_told_apart(found[OWN])}"]
        for name, row in found.items():
            if name == ORACLE:
                said.append(f"by a reader with all candidates {_told_apart(row)}")
            elif name in own.index and not pd.isna(row.estimate):
                gap = next(own.loc[[name]].itertuples())
                verdict = _side(gap, 0, "less than the weights", "more than the weights", "no evidence of a gap")
                whose = "by style alone" if name == STYLE else f"in words ({name})"
                said.append(f"{whose} {_told_apart(row)}: {verdict} (gap {_tested(gap)})")
        sentences.append("; ".join(said) + ".")
    return sentences


def _told_apart(row) -> str:
    verdicts = "its texts are told apart", "its texts are taken for the others'", "no evidence that they are told apart"
    return f"{_side(row, 0.5, *verdicts)}, AUC within prompts {estimate_text(row.estimate, row.low, row.high)}"


def _of_texts(found: dict) -> str:
    j = found.get(J)
    if "no_answer_rate" in found and found["no_answer_rate"].estimate == 1:
        return _by_scores(found)
    if j is None or pd.isna(j.estimate):
        return "nothing can be said, it wrote no text here or has no usable answer."
    shown, ranking, verdict = f"J = {_tested(j)}{_weak(j)}", _ranking(found), conclusion(j)
    rates = found["self_accuracy"].estimate, found["false_claim_rate"].estimate
    claimed = f"claims {rates[0]:.0%} of its own and {rates[1]:.0%} of others' texts"
    if apart := {"recognises": "tells them apart", "avoids": "disowns its own texts"}.get(verdict):
        return f"{claimed}, so it {apart}: {shown}.{ranking}"
    if verdict == "too few answers":
        return f"{claimed}; {no_interval(j)}: {shown}.{ranking}"
    if verdict == "constant answer":
        said = f"{claimed}: a constant answer, which shows no recognition: {shown}.{ranking}"
    else:
        by_rank = "auc" in found and conclusion(found["auc"], 0.5) in ("recognises", "avoids")
        none = "its words show no" if by_rank else "no evidence of"
        said = f"{claimed}; {none} recognition: {shown}.{ranking}"
    a = found["advantage"]
    return said + words()["sentences"]["habit"].format(a=a.estimate) * (conclusion(a) == "recognises")


def _tested(row) -> str:
    """Return "0.12 [-0.01, 0.25], p = 0.034"."""
    shown = estimate_text(row.estimate, row.low, row.high)
    return shown if pd.isna(row.p) else f"{shown}, p {_p(row)}"


def _p(row) -> str:
    """Return p; where so few prompts allow no smaller one, say so."""
    few = f"least_p={row.p:.3g}" in str(row.note).split("; ")
    return equals(row.p) + f", the least that so few {row.cluster_unit}s allow" * few


def _side(row, null: float, above: str, below: str, neither: str) -> str:
    """Return which of three things an estimate says, or that it says none of them."""
    said = {"recognises": above, "avoids": below, "too few answers": no_interval(row)}
    return said.get(conclusion(row, null), neither)


def no_interval(row) -> str:
    """Say why an estimate without an interval allows no conclusion."""
    unit, n = row.cluster_unit, row.clusters
    why = f"one {unit} allows" if n == 1 else f"these {n:.0f} {unit}s allow"
    return f"{why} no interval, so nothing can be concluded"


def _ranking(found: dict) -> str:
    """Say what AUC shows, as a sentence of its own; nothing without one."""
    if "auc" not in found or pd.isna(found["auc"].estimate):
        return ""
    area, none = found["auc"], "do not show that it tells them apart"
    if conclusion(area, 0.5) == "too few answers":
        return f" Of its probabilities, AUC = {_tested(area)}: {no_interval(area)}."
    order = _side(area, 0.5, *(f"order its own texts {side} others'" for side in ("above", "below")), none)
    return f" Its probabilities {order}: AUC = {_tested(area)}."


def _by_scores(found: dict) -> str:
    """Conclude from probabilities alone, where there is no answer in words."""
    if ranking := _ranking(found):
        return f"it has probabilities and no answers{_weak(found['auc'])}.{ranking}"
    return "nothing can be said, it answered nothing."


def _of_pairs(found: dict) -> str:
    chosen, gap = found["self_accuracy"], found.get("own_minus_neutral")
    if pd.isna(chosen.estimate):
        return _by_scores(found)
    rate = estimate_text(chosen.estimate, chosen.low, chosen.high)
    said = f"chooses its own text in {rate} of the pairs that it answers"
    better = "question=better" in str(chosen.condition)  # else it was asked which one it wrote
    if "one_order" in str(chosen.note):
        place = "its own text always stood at the same place: a habit of place would look the same"
        return f"{said}, but {place}{_weak(chosen)}."
    if "position_bias" in found and not pd.isna(found["position_bias"].estimate):
        said += " (the mean of both orders)"
    verdicts = "it knows its own", "it takes others' for its own"
    if better:
        verdicts = "it favours its own", "it avoids its own"
    verdict = _side(chosen, 0.5, *verdicts, "no evidence that it tells them apart")
    said += f", where 0.50 is chance: {verdict}{_weak(chosen)}.{_ranking(found)}" + _by_name(found)
    if gap is None or pd.isna(gap.estimate):
        return said
    chooses = "prefers" if better else "chooses"
    verdicts = (f"it {chooses} its own {more} than they do" for more in ("more", "less"))
    verdict = _side(gap, 0, *verdicts, f"no evidence that it {chooses} its own more than they do")
    rate = found["neutral_rate"].estimate
    return said + words()["sentences"]["neutral"].format(rate=rate, gap=_tested(gap), verdict=verdict)


def _by_name(found: dict) -> str:
    """Say how the accuracy on own texts differs from that of neutral judges, and from its own as one of them."""
    said = ""
    sides = ("pair_fixed", "neutral_rate", "than they are"), ("judge_fixed", "neutral_accuracy", "on its own texts")
    for name, rate, than in sides:
        if name in found and not pd.isna(found[name].estimate):
            verdicts = (f"it is {more} accurate {than}" for more in ("more", "less"))
            verdict = _side(found[name], 0, *verdicts, "no evidence of a difference")
            about = {"rate": found[rate].estimate, "gap": _tested(found[name]), "verdict": verdict}
            said += words()["sentences"][name].format(**about)
    return said


def _of_neutral(found: dict) -> str:
    """Say what a judge that wrote no text of its pairs gets right, or how often such judges choose an author's."""
    if (right := found.get("neutral_accuracy")) is not None and not pd.isna(right.estimate):
        verdict = _side(right, 0.5, "it knows them", "it takes the one for the other", "no evidence that it knows them")
        rate = estimate_text(right.estimate, right.low, right.high)
        said = f"names the text of the author asked for in {rate} of the pairs that it answers, where 0.50 is chance"
        return f"{said}: {verdict}{_weak(right)}."
    if (chosen := found.get("neutral_rate")) is None or pd.isna(chosen.estimate):
        return ""
    rate = estimate_text(chosen.estimate, chosen.low, chosen.high)
    return f"judges who wrote neither text choose its text in {rate} of the pairs{_weak(chosen)}."


def _weak(row) -> str:
    """Say what weakens an estimate: few prompts, a few that decide, or none named."""
    notes = [] if pd.isna(row.low) else str(row.note).split("; ")
    few = _few(row.clusters, row.cluster_unit) if f"few_{row.cluster_unit}s" in notes else ""
    return few + dominated(row) + NO_PROMPTS * (row.cluster_unit == "text")


def dominated(row) -> str:
    """Say that a few clusters hold most of the answers, where they do."""
    return f"; a few {row.cluster_unit}s hold most of the answers" * ("s_dominate" in str(row.note))


def _few(clusters: int, unit: str = "prompt") -> str:
    """Say what few clusters do to a default interval; the simulations of `08_validation` begin at 20 prompts."""
    wide = f"; only {clusters} {unit}s: a wide interval"
    return f"{wide}; coverage was tested from 20 {unit}s up" if clusters < 20 else wide * (clusters < ENOUGH)


# texts --------------------------------------------------------------------------------------------------------------


def estimate_text(estimate: float, low: float, high: float) -> str:
    """Return "0.12 [-0.01, 0.25]"; empty without an estimate, without brackets where there is no interval."""
    if pd.isna(estimate):
        return ""
    estimate, low, high = (float(f"{number:.6g}") for number in (estimate, low, high))  # as tables are kept: -.075
    whole = f"{estimate:z.2f}" if abs(estimate) < 10 else f"{estimate:.0f}"
    return whole if pd.isna(low) or pd.isna(high) else f"{whole} [{low:z.2f}, {high:z.2f}]"


def p_text(p: float) -> str:
    """Return "0.034" or "< 0.001", for a table."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def equals(p: float) -> str:
    """Return "= 0.034" or "< 0.001", for a sentence."""
    return p_text(p) if p < 0.001 else f"= {p_text(p)}"


def _where(row: Mapping) -> str:
    condition = f" ({row['condition']})" if row.get("condition") else ""
    return f"{row['task']}{condition}, {row['evaluator']}"


def label(name: str, display: Mapping[str, str] | None) -> str:
    """Return how a model, or a pair of them ("first - second"), is called."""
    known = display or {}
    return visible(known.get(name) or " - ".join(known.get(part, part) for part in name.split(" - ")))


def _readable(frame: pd.DataFrame, display: Mapping[str, str] | None) -> pd.DataFrame:
    """Return a copy with display names, and conditions cut down to what differs between them, if anything does."""
    frame = frame.copy()
    for column in {"evaluator", "name"} & {*frame}:
        frame[column] = frame[column].map(lambda i: label(i, display))
    if "evaluator" in frame:
        frame["evaluator"] = frame["evaluator"].replace("", ALL)
    frame["condition"] = frame["condition"].map(varying_parts(frame["condition"].unique()))
    return frame if frame["condition"].any() else frame.drop(columns="condition")
