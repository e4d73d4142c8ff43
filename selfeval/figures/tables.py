"""Small tables and sentences for a reader, made from the long result table and the counts of `selfeval.stats`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import scipy.stats as sps

from selfeval.figures.rows import BESIDE, bootstrapped, default_rows, renamed, words
from selfeval.keys import visible
from selfeval.scoring import DOUBTFUL
from selfeval.stats import detectable_difference, recognition_table
from selfeval.stats.records import BINARY, NAMING, PAIRWISE, condition_label, neutral_rows, tallies, varying_parts
from selfeval.stats.serving import WORTH_SAYING, asked_again, first_attempts

DESIGN = ["task", "condition"]
ROW = [*DESIGN, "evaluator"]
BOUNDS = ["estimate", "low", "high"]
NO_PROMPTS = "; the file names no prompts, so each text is a cluster of its own"
TESTED = ("discrimination", "self_accuracy", "own_minus_neutral", "mean_probability", "auc")  # p is shown beside these
ALL = "all evaluators"  # what a reader sees where `evaluator` is empty: a value pooled over them
CLAIMED = ["self_accuracy", "false_claim_rate", "discrimination"]
ENOUGH = 40  # clusters, from which on planning takes the standard deviation from the data
SD = 0.55  # of J per prompt with one text per prompt and author, as far as data do not say it

# views of records ---------------------------------------------------------------------------------------------------


def overview(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count per design and evaluator the questions, the prompts behind them, and the share without an answer.

    Pairs of which an evaluator wrote neither text have a row of their own, `role` neutral judge. Where something was
    asked again, also its share of the questions; where `rescore` found answers that no raw reply holds, also their
    share of the answers (unverified).
    """
    parts = []
    for tally in tallies(records):
        asked, silent = (np.bincount(tally.evaluator, x, len(tally.evaluators)) for x in (None, tally.answer < 0))
        part = pd.DataFrame({"task": tally.task, "condition": tally.condition, "evaluator": tally.evaluators})
        part["role"] = "neutral judge" if tally.neutral else ""
        part["texts (no prompts named)" if tally.note else "prompts"] = tally.n_prompts
        parts.append(part.assign(questions=asked, **{"no answer": (silent / asked).round(3)}))
    table = pd.concat(parts, ignore_index=True)
    again, counted = _asked_again(records), _unverified(records)
    if again.any():
        table = table.merge(again.round(3), how="left", left_on=[*ROW, "role"], right_index=True)
    table = table if table["role"].any() else table.drop(columns="role")
    if counted["unverified"].any():
        share = (counted["unverified"] / counted["answers"]).round(3).rename("unverified")
        table = table.merge(share, how="left", left_on=ROW, right_index=True)
    return _readable(table, display)


def _conditions(records: pd.DataFrame) -> pd.Series:
    return records["condition"].map(condition_label) if "condition" in records else pd.Series("", records.index)


def _asked_again(records: pd.DataFrame) -> pd.Series:
    """Return the share of questions asked again per task, condition, evaluator and role, as `overview` tells them."""
    if "asked_again" not in records or records["asked_again"].isna().all():
        return pd.Series(dtype=float)
    role = np.where(neutral_rows(records), "neutral judge", "")
    records = records.assign(condition=_conditions(records), role=role)
    return asked_again(records, ["task_type", "condition", "evaluator_model", "role"]).rename("asked again")


def first_beside(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set the last replies' claims beside those of first attempts, where more than 2 % of them were asked again."""
    again = _asked_again(records)
    if not (again > WORTH_SAYING).any():
        return pd.DataFrame()
    answers = [name for name in ("predicted_model", "predicted_self", "score") if name in records]
    rows = _of_parts({"first": first_attempts(records, answers), "last": records}, CLAIMED).assign(role="")
    rows = rows.merge(again[again > WORTH_SAYING].round(3), left_on=[*ROW, "role"], right_index=True)
    rows = rows.rename(columns={"part": "attempt"})
    return _readable(side_by_side(rows, [*ROW, "asked again", "attempt"], CLAIMED).reset_index(), display)


def leaking(records: pd.DataFrame, display: Mapping[str, str] | None = None, *, seed: int = 0) -> pd.DataFrame:
    """Set discrimination on all texts beside that without texts that name a model or a maker; empty without leaks."""
    leaks = records["leak"].eq(True) if "leak" in records else pd.Series(False, records.index)
    if not leaks.any() or leaks.all():
        return pd.DataFrame()
    parts = {"all texts": records, "without leaks": records[~leaks]}
    rows = _of_parts(parts, ["discrimination"], seed=seed).assign(statistic=lambda rows: rows["part"])
    return _readable(side_by_side(rows, ROW, [*parts]).reset_index(), display)


def _of_parts(parts: Mapping[str, pd.DataFrame], statistics: Sequence[str], **options) -> pd.DataFrame:
    """Return default rows of statistics from several selections of records, group by group; `part` names them."""
    tables = {name: recognition_table(records, n_resamples=1, **options) for name, records in parts.items()}
    rows = [default_rows(table, *statistics).assign(part=name) for name, table in tables.items()]
    return pd.concat(rows).sort_values(ROW, kind="stable")


def statuses(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count replies by status per task and evaluator; where something was asked again, with its share."""
    counts = counted(records.sort_values(["task_type", "evaluator_model"]), ["task_type", "evaluator_model"], "status")
    return counts.rename(index=display or {}, level="evaluator_model")


def counted(records: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Count the values of a column by group; where replies were asked for again, with their share."""
    counts = records.groupby(by, sort=False)[column].value_counts().unstack(fill_value=0)
    again = asked_again(records, by)
    return counts.assign(**{"asked again": again.round(3)}) if again.any() else counts


def _unverified(records: pd.DataFrame) -> pd.DataFrame:
    """Count per task, condition and evaluator the answers, and those among them that no raw reply holds."""
    if "unverified" not in records or not records["unverified"].any():
        return pd.DataFrame({"answers": [], "unverified": []})
    answers = records["predicted_model"].where(records["task_type"].isin(NAMING), records["predicted_self"]).notna()
    counts = pd.DataFrame({"answers": answers, "unverified": records["unverified"]})
    return counts.groupby([records["task_type"], _conditions(records), records["evaluator_model"]]).sum()


def unverified(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say whose answers rest on the file's word alone, one sentence each: no raw reply holds them."""
    counts = _unverified(records)
    if counts.empty:
        return []
    counts = _readable(counts[counts["unverified"] > 0].reset_index(names=ROW), display)
    said = words()["sentences"]["unverified"]
    return [said.format(where=_where(row), **row) for row in counts.to_dict("records")]


def reading(records: pd.DataFrame, changes: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say what reading left out, took for something else or took back: lines to stand above the first table.

    records, changes: of `answers.rescore`. Where more than a fifth of an evaluator's recorded answers are not in its
    raw replies, five of these replies follow.
    """
    lines, said = list(records.attrs.get("notes", ())), words()["sentences"]
    for change in changes.to_dict("records"):
        had, taken = change["on record"], change["removed"] + change["changed"]
        if taken <= DOUBTFUL * had:
            continue
        task, evaluator = change["task_type"], change["evaluator_model"]
        rows = records[(records["task_type"] == task) & (records["evaluator_model"] == evaluator)]
        rows = rows[rows["recorded"].notna()].sort_values("status", key=lambda s: s == "error", kind="stable")
        failed, who = int((rows["status"] == "error").sum()), f"{task}, {_label(evaluator, display)}"
        kept, beside = said["kept" if change["answers"] == "as recorded" else "taken"], ""
        if failed:
            beside = said["beside"].format(failed=failed)
        lines.append(said["lost"].format(who=who, taken=taken, had=had, share=taken / had, beside=beside, kept=kept))
        recorded = rows["recorded"].map({True: "its own", False: "not its own"}).fillna(rows["recorded"])
        for answer, reply in zip(recorded[:5], rows["reply"][:5], strict=True):
            line = " ".join(visible(reply).split())  # of a long one its beginning and its end, where the answer stands
            shown = line if len(line) < 200 else f"{line[:90]} ... {line[-90:]}"
            lines.append(f"    {answer!r} on record, reply: {shown!r}")
    return lines


def positions(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return how often each place of the shown list was chosen, as shares of the answers, per design and evaluator."""
    shown = records["candidates"].notna() if "candidates" in records else False
    chosen = records[records["task_type"].isin(NAMING) & records["predicted_model"].notna() & shown]
    if chosen.empty:
        return pd.DataFrame()  # files made elsewhere do not say in which order the candidates were listed
    place = [[*names].index(name) + 1 for names, name in chosen[["candidates", "predicted_model"]].to_numpy()]
    by = [chosen["task_type"].rename("task"), _conditions(chosen), chosen["evaluator_model"].rename("evaluator")]
    shares = pd.crosstab(by, pd.Series(place, chosen.index), normalize="index")
    return _readable(shares.round(3).reset_index().rename_axis(columns=None).rename(columns=str), display)


# views of estimates -------------------------------------------------------------------------------------------------


def summary(table: pd.DataFrame, statistics: Sequence[str], display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Show statistics side by side as "estimate [low, high]", one row per design and evaluator.

    Takes each statistic's default method and policy, and the p of discrimination where that is among them, of the
    others in `TESTED` as "p of ...". Designs that have none of the statistics are left out. Of contrasts of conditions
    a row is a `change` from one to the other.
    """
    rows = default_rows(table, *statistics)
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


def ceiling(table: pd.DataFrame, style_table: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set each author's own discrimination beside that of a style classifier for the author's name, in naming tasks."""
    style = default_rows(style_table, "discrimination", author=None)
    style = style[style["author"] != ""].assign(evaluator=lambda rows: rows["author"], statistic="classifier")
    own = default_rows(table, "discrimination").assign(statistic="itself")
    own = own[own["task"].isin(NAMING) & own["evaluator"].isin(style["author"])]
    style = own[ROW].merge(style.drop(columns=DESIGN), on="evaluator")
    both = side_by_side(pd.concat([own, style]), ROW, ["classifier", "itself"])
    return _readable(both.reset_index(), display)


def in_general(table: pd.DataFrame) -> pd.DataFrame:
    """Show the mean over models, for these models and for models like them, as estimates with intervals."""
    rows = renamed(table)
    about = rows["method"].map({"two_way_t": "models like these"}).fillna("these models")
    shown = summary(rows.assign(evaluator=about, author=""), list(rows["statistic"].unique()))
    return shown.rename(columns={"evaluator": "about"})


def show(table: pd.DataFrame, otherwise: str) -> None:
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
    """Say for each design and evaluator what discrimination, AUC and advantage (of pairs: choices) allow to say."""
    rows, sentences = default_rows(table), []
    authors = table[table["author"] != ""].groupby(DESIGN)["author"].nunique()
    for key, group in rows.groupby(ROW, sort=False):
        found = {row.statistic: row for row in group.itertuples()}
        main = found.get("self_accuracy", found.get("discrimination"))
        if not {"discrimination", "self_accuracy", "own_minus_neutral"} & set(found):
            said = "a neutral judge, which wrote neither text of its pairs: there is nothing of its own to recognise."
        elif main is not None and "no_reply" in str(main.note):
            said = "nothing can be said, every call to it failed; collect its predictions again."
        elif key[0] != PAIRWISE:
            said = _of_texts(found, authors.get(key[:2], 0))
        else:
            said = _of_pairs(found) if main is not None else _pooled(found["own_minus_neutral"])
        sentences.append(said)
    keys = _readable(rows.drop_duplicates(ROW)[ROW], display).to_dict("records")
    return [f"{_where(key)}: {said}" for key, said in zip(keys, sentences, strict=True)]


def _of_texts(found: dict, authors: int) -> str:
    j, area = found.get("discrimination"), found.get("auc")
    silent = "no_answer_rate" in found and found["no_answer_rate"].estimate == 1
    if j is None or pd.isna(j.estimate) or silent:
        reason = "it answered nothing" if j is not None and silent else "it wrote no text here or answered nothing"
        return (_by_scores(area) if silent else "") or f"nothing can be said, {reason}."
    shown, ranking = f"J = {_tested(j)}{_weak(j)}", _ranking(area)
    rates = found["self_accuracy"].estimate, found["false_claim_rate"].estimate
    claimed = f"claims {rates[0]:.0%} of its own and {rates[1]:.0%} of others' texts"
    if _differs(j, 0):  # the interval and the test by permutation have to agree
        return f"{claimed}, so it {'tells them apart' if j.low > 0 else 'disowns its own texts'}: {shown}.{ranking}"
    a = found["advantage"]
    trap = ""
    if a.low > 0 or (a.high < 0 and (j.task == BINARY or a.estimate >= -1 / max(authors - 1, 1) - 1e-9)):
        trap = words()["sentences"]["habit"].format(a=a.estimate)
    if "constant_answer" in str(j.note):
        return f"{claimed}: a constant answer, which shows no recognition: {shown}.{ranking}{trap}"
    if area is not None and _differs(area, 0.5):
        words_alone = f"{claimed}; its words do not show recognition ({shown})"
        return f"{words_alone}, but {_order(area, '')}: AUC = {_tested(area)}.{trap}"
    return f"{claimed}; no evidence of recognition: {shown}.{ranking}{trap}"


def _differs(row, null: float) -> bool:
    """Tell whether an estimate differs from a value: by its interval and, where there is one, by its test."""
    return (row.low > null or row.high < null) and (pd.isna(row.p) or row.p < 1 - row.level)


def _tested(row) -> str:
    """Return "0.12 [-0.01, 0.25], p = 0.034"; where so few prompts allow no small p, say so."""
    shown = estimate_text(row.estimate, row.low, row.high)
    return shown if pd.isna(row.p) else f"{shown}, p {_p(row)}"


def _p(row) -> str:
    few = f"least_p={row.p:.3g}" in str(row.note).split("; ")
    return f"{p_text(row.p)}{', the least that so few prompts allow' if few else ''}"


def _side(row, null: float, above: str, below: str, neither: str) -> str:
    """Return which of three things an estimate says."""
    return neither if not _differs(row, null) else above if row.low > null else below


def _order(area, neither: str) -> str:
    above, below = (f"its probabilities order its own texts {side} others'" for side in ("above", "below"))
    return _side(area, 0.5, above, below, neither)


def _ranking(area) -> str:
    """Say what AUC shows, as a sentence of its own; nothing without one."""
    if area is None or pd.isna(area.estimate):
        return ""
    said = _order(area, "its probabilities do not show that it tells them apart")
    return f" {said[0].upper()}{said[1:]}: AUC = {_tested(area)}."


def _by_scores(area) -> str:
    """Conclude from probabilities alone, where there is no answer in words; nothing without them."""
    if area is None or pd.isna(area.estimate):
        return ""
    said = _order(area, "no evidence of recognition")
    return f"it has probabilities and no answers; {said}: AUC = {_tested(area)}{_weak(area)}."


def _of_pairs(found: dict) -> str:
    chosen, bias, gap = found["self_accuracy"], found.get("position_bias"), found.get("own_minus_neutral")
    if pd.isna(chosen.estimate):
        return _by_scores(found.get("auc")) or "nothing can be said, it answered nothing."
    silent = found["no_answer_rate"].estimate if "no_answer_rate" in found else 0
    shown = f"chooses its own text in {estimate_text(chosen.estimate, chosen.low, chosen.high)} of the pairs"
    shown += f" that it answers ({silent:.0%} have no answer)" if silent else ""
    if "one_order" in str(chosen.note):
        place = "its own text always stood at the same place: a habit of place would look the same"
        return f"{shown}, but {place}{_weak(chosen)}."
    tested = "" if pd.isna(chosen.p) else f" (p {_p(chosen)})"
    verdict = _side(chosen, 0.5, "it favours its own", "it avoids its own", "no evidence that it tells them apart")
    said = f"{shown}, where 0.50 is chance{tested}: {verdict}{_weak(chosen)}."
    if bias is not None and (bias.low > 0 or bias.high < 0):
        said += f" It favours the {'first' if bias.estimate > 0 else 'second'} text whatever it is."
    said += _ranking(found.get("auc"))
    if gap is None or pd.isna(gap.estimate):
        return said
    verdicts = (f"it prefers its own {more} than they do" for more in ("more", "less"))
    verdict = _side(gap, 0, *verdicts, "no evidence that it prefers its own more than they do")
    rate = found["neutral_rate"].estimate
    return said + words()["sentences"]["neutral"].format(rate=rate, gap=_tested(gap), verdict=verdict)


def _pooled(gap) -> str:
    """Say what the evaluators of a design have in common over neutral judges."""
    if pd.isna(gap.estimate):
        return "nothing can be said beside neutral judges, who answered nothing."
    verdicts = (f"authors prefer their own {more} than judges who wrote neither text do" for more in ("more", "less"))
    none = "no evidence that authors prefer their own more than judges who wrote neither text do"
    return f"own minus neutral is {_tested(gap)}: {_side(gap, 0, *verdicts, none)}."


def _weak(row) -> str:
    """Say what weakens an estimate: few prompts, or none named."""
    few = _few(row.clusters, row.cluster_unit) if f"few_{row.cluster_unit}s" in str(row.note) else ""
    return few + NO_PROMPTS * (row.cluster_unit == "text")


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
    """Return "= 0.034" or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _where(row: Mapping) -> str:
    condition = f" ({row['condition']})" if row.get("condition") else ""
    return f"{row['task']}{condition}, {row['evaluator']}"


def _label(name: str, display: Mapping[str, str] | None) -> str:
    known = display or {}
    return visible(known.get(name) or " - ".join(known.get(part, part) for part in name.split(" - ")))


def _readable(frame: pd.DataFrame, display: Mapping[str, str] | None) -> pd.DataFrame:
    """Return a copy with display names, and conditions cut down to what differs between them, if anything does."""
    frame = frame.copy()
    for column in {"evaluator", "name"} & {*frame}:
        frame[column] = frame[column].map(lambda i: _label(i, display))
    if "evaluator" in frame:
        frame["evaluator"] = frame["evaluator"].replace("", ALL)
    frame["condition"] = frame["condition"].map(varying_parts(frame["condition"].unique()))
    return frame if frame["condition"].any() else frame.drop(columns="condition")
