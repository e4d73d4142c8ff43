"""Small tables and sentences for a reader, made from the long result table and the counts of `selfeval.stats`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from selfeval.keys import visible
from selfeval.scoring import DOUBTFUL
from selfeval.stats import detectable_difference, recognition_table
from selfeval.stats.counts import BINARY, NAMING, PAIRWISE, condition_label, neutral_rows, tallies, varying_parts
from selfeval.stats.serving import WORTH_SAYING, asked_again, first_attempts

DESIGN = ["task", "condition"]
TAKEN = ["removed", "changed"]  # of the answers on record, by reading the raw replies
BOUNDS = ["estimate", "low", "high"]
NO_PROMPTS = "; the file names no prompts, so each text is a cluster of its own"
TESTED = ("discrimination", "self_accuracy", "own_minus_neutral", "mean_probability", "auc")  # p is shown beside these
ALL = "all evaluators"  # what a reader sees where `evaluator` is empty: a value pooled over them
ANSWERS = ("predicted_model", "predicted_self", "score")
CLAIMED = ["self_accuracy", "false_claim_rate", "discrimination"]


def overview(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count per design and evaluator the questions, the prompts behind them, and the share without an answer.

    Pairs of which an evaluator wrote neither text have a row of their own, `role` neutral judge. Where something was
    asked again, also its share of the questions; where `rescore` found answers that no raw reply holds, also their
    share of the answers (unverified).
    """
    parts = []
    for tally in tallies(records):
        asked, silent = (np.bincount(tally.evaluator, x, len(tally.evaluators)) for x in (None, tally.answer < 0))
        counted = {"questions": asked, "no answer": (silent / asked).round(3)}
        design = {"task": tally.task, "condition": tally.condition, "evaluator": tally.evaluators}
        role = {"role": "neutral judge" if tally.neutral else ""}
        clusters = {f"{unit(tally.note)}{' (no prompts named)' * bool(tally.note)}": tally.n_prompts}
        parts.append(pd.DataFrame(design | role | clusters | counted))
    table = pd.concat(parts, ignore_index=True)
    again = _asked_again(records)
    if again.any():
        table = table.merge(again.round(3), how="left", left_on=[*DESIGN, "evaluator", "role"], right_index=True)
    table = table if table["role"].any() else table.drop(columns="role")
    counted = _unverified(records)
    if counted["unverified"].any():
        share = (counted["unverified"] / counted["answers"]).round(3).rename("unverified")
        table = table.merge(share, how="left", left_on=[*DESIGN, "evaluator"], right_index=True)
    return _tidy(_readable(table, display))


def _asked_again(records: pd.DataFrame) -> pd.Series:
    """Return the share of questions asked again per task, condition, evaluator and role, as `overview` tells them."""
    if "asked_again" not in records or records["asked_again"].isna().all():
        return pd.Series(dtype=float)
    conditions = records["condition"].map(condition_label) if "condition" in records else ""
    role = np.where(neutral_rows(records), "neutral judge", "")
    by = ["task_type", "condition", "evaluator_model", "role"]
    return asked_again(records.assign(condition=conditions, role=role), by).rename("asked again")


def first_beside(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set the last replies' claims beside those of first attempts, where more than 2 % of them were asked again."""
    again = _asked_again(records)
    again = again[again > WORTH_SAYING]
    if again.empty:
        return pd.DataFrame()
    first = first_attempts(records, [name for name in ANSWERS if name in records])
    parts = []
    for name, part in {"last": records, "first": first}.items():
        rows = default_rows(recognition_table(part, n_resamples=1)).assign(attempt=name, role="")
        parts.append(rows[rows["statistic"].isin(CLAIMED)])
    rows = pd.concat(parts).merge(again.round(3), how="left", left_on=[*DESIGN, "evaluator", "role"], right_index=True)
    rows = _readable(rows, display)
    rows = rows[rows["asked again"].notna()]
    index = [*DESIGN, "evaluator", "asked again", "attempt"]
    return _tidy(side_by_side(rows.sort_values(index, kind="stable"), index, CLAIMED).reset_index())


def statuses(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count replies by status per task and evaluator; where something was asked again, with its share."""
    counts = counted(records.sort_values(["task_type", "evaluator_model"]), ["task_type", "evaluator_model"], "status")
    return counts.rename(index=display or {}, level="evaluator_model")


def counted(records: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Count the values of a column by group; where replies were asked for again, with their share."""
    counts = records.groupby(by, sort=False)[column].value_counts().unstack(fill_value=0)
    again = asked_again(records, by)
    if again.any():
        counts["asked again"] = again.round(3)
    return counts


def _unverified(records: pd.DataFrame) -> pd.DataFrame:
    """Count per task, condition and evaluator the answers, and those among them that no raw reply holds."""
    if "unverified" not in records or not records["unverified"].any():
        return pd.DataFrame({"answers": [], "unverified": []})
    naming = records["task_type"].isin(NAMING)
    answers = records["predicted_model"].where(naming, records["predicted_self"]).notna()
    conditions = records["condition"].map(condition_label) if "condition" in records else pd.Series("", records.index)
    counts = pd.DataFrame({"answers": answers, "unverified": records["unverified"]})
    return counts.groupby([records["task_type"], conditions, records["evaluator_model"]]).sum()


def unverified(records: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say whose answers rest on the file's word alone, one sentence each: no raw reply holds them."""
    counts = _unverified(records)
    if counts.empty:
        return []
    counts = counts[counts["unverified"] > 0].reset_index(names=[*DESIGN, "evaluator"])
    return [
        f"{row.task}{f' ({row.condition})' if row.condition else ''}, {row.evaluator}: {row.unverified} of "
        f"{row.answers} answers are unverified: no raw reply holds them, so this rests on the answers on record."
        for row in _readable(counts, display).itertuples()
    ]


def reading(records: pd.DataFrame, changes: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say what reading left out, took for something else or took back: lines to stand above the first table.

    records, changes: of `answers.rescore`. Where more than a fifth of an evaluator's recorded answers are not in its
    raw replies, five of these replies follow.
    """
    lines = list(records.attrs.get("notes", ()))
    for task, evaluator, had, *found in changes[
        ["task_type", "evaluator_model", "on record", *TAKEN, "answers"]
    ].values:
        taken = sum(found[:2])
        if taken <= DOUBTFUL * had:
            continue
        rows = (records["task_type"] == task) & (records["evaluator_model"] == evaluator) & records["recorded"].notna()
        rows = records[rows].sort_values("status", key=lambda status: status == "error", kind="stable")
        failed = int((rows["status"] == "error").sum())
        who = f"{task}, {visible((display or {}).get(evaluator, evaluator))}"
        lines.append(_taken_back(who, taken, had, failed, found[2] == "as recorded"))
        answers = rows["recorded"].map({True: "its own", False: "not its own"}).fillna(rows["recorded"])
        lines += [
            f"    {said!r} on record, reply: {_ends(reply)}"
            for said, reply in zip(answers[:5], rows["reply"][:5], strict=True)
        ]
    return lines


def _taken_back(who: str, taken: int, had: int, failed: int, kept: bool) -> str:
    """Say what became of recorded answers that the replies do not hold, and how to have it otherwise."""
    lost = f"{who}: {taken} of {had} answers on record ({taken / had:.0%}) are not in the raw replies"
    if failed:
        lost += f", {failed} of them beside an error message, which is no answer unless `reread` is no"
    if kept:
        return (
            f"{lost}. The answers on record are kept, unverified: right where the replies were cut off when stored; "
            "where names were filled in for replies without an answer, set `reread: yes`. Five of the replies:"
        )
    return (
        f"{lost}. They are taken back: right where names were filled in for replies without an answer; where the "
        "replies were cut off when stored, set `reread: no`. Five of the replies:"
    )


def _ends(reply: str) -> str:
    """Return a reply in a line, of a long one its beginning and its end, where the answer stands."""
    line = " ".join(visible(reply).split())
    return repr(line if len(line) < 200 else f"{line[:90]} ... {line[-90:]}")


def summary(table: pd.DataFrame, statistics: Sequence[str], display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Show statistics side by side as "estimate [low, high]", one row per design and evaluator.

    Takes each statistic's default method and policy, and the p of discrimination where that is among them, of the
    others in `TESTED` as "p of ...". Designs that have none of the statistics are left out.
    """
    rows = default_rows(table)
    rows = _readable(rows[rows["statistic"].isin(statistics)], display)
    if rows.empty:
        return pd.DataFrame()
    index = [*DESIGN, "evaluator"]
    wide = side_by_side(rows, index, statistics)
    for name in TESTED:
        tested = rows[rows["statistic"] == name].set_index(index)["p"].reindex(wide.index)
        if (name == "discrimination" and name in wide) or (tested.notna().any() and "p" not in wide):
            column = "p" if name == "discrimination" else f"p of {name}"
            wide[column] = ["" if pd.isna(p) else p_text(p) for p in tested]
    return _tidy(wide.reset_index())


def side_by_side(rows: pd.DataFrame, index: Sequence[str], statistics: Sequence[str]) -> pd.DataFrame:
    """Return statistics that occur as columns, in their order, of texts (`shown`), one row per group as they come."""
    if "shown" not in rows:
        rows = rows.assign(shown=_texts(rows))
    wide = rows.pivot_table(index=index, columns="statistic", values="shown", aggfunc="first", sort=False)
    return wide.reindex(columns=[name for name in statistics if name in wide]).fillna("").rename_axis(columns=None)


def _texts(rows: pd.DataFrame) -> list[str]:
    return [estimate_text(*row) for row in rows[BOUNDS].itertuples(index=False)]


def beside_neutral(table: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set own choices in pairs beside those of judges who wrote neither text; empty where none saw the same pairs."""
    if "own_minus_neutral" not in set(table["statistic"]):
        return pd.DataFrame()
    pairs = table[table["task"] == PAIRWISE]
    return summary(pairs, ["self_accuracy", "neutral_rate", "own_minus_neutral"], display)


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
    """Say for each design and evaluator what discrimination, AUC and advantage (of pairs: choices) allow to say."""
    rows = _readable(default_rows(table), display)
    sentences = []
    for (task, condition, evaluator), group in rows.groupby([*DESIGN, "evaluator"], sort=False):
        found = {row.statistic: row for row in group.itertuples()}
        where = f"{task}{f' ({condition})' if condition else ''}, {evaluator}"
        if not {"discrimination", "self_accuracy", "own_minus_neutral"} & set(found):
            said = "a neutral judge, which wrote neither text of its pairs: there is nothing of its own to recognise."
        elif task == PAIRWISE:
            said = _of_pairs(found) if "self_accuracy" in found else _pooled(found)
        else:
            design = (table["task"] == group["task"].iloc[0]) & (table["author"] != "")
            said = _conclusion(found, table.loc[design, "author"].nunique())
        sentences.append(f"{where}: {said}")
    return sentences


def _conclusion(found: dict, authors: int) -> str:
    j, area = found.get("discrimination"), found.get("auc")
    if j is not None and "no_reply" in str(j.note):
        return "nothing can be said, every call to it failed; collect its predictions again."
    if j is None or pd.isna(j.estimate):
        return "nothing can be said, it wrote no text here or answered nothing."
    if _silent(found) == 1:
        return _by_scores(found) or "nothing can be said, it answered nothing."
    shown = f"J = {_tested(j)}{_weak(j)}"
    rates = found["self_accuracy"].estimate, found["false_claim_rate"].estimate
    claimed = f"claims {rates[0]:.0%} of its own and {rates[1]:.0%} of others' texts"
    if _differs(j, 0):  # the interval and the test by permutation have to agree
        verdict = "tells them apart" if j.low > 0 else "disowns its own texts"
        return f"{claimed}, so it {verdict}: {shown}.{_ranking(found)}"
    a = found["advantage"]
    habits = a.low > 0 or (a.high < 0 and (j.task == BINARY or a.estimate >= -1 / max(authors - 1, 1) - 1e-9))
    trap = f" Its advantage is A = {a.estimate:+.2f}: an A of this size can arise from naming habits alone." * habits
    if "constant_answer" in str(j.note):
        return f"{claimed}: a constant answer, which shows no recognition: {shown}.{_ranking(found)}{trap}"
    if area is not None and _differs(area, 0.5):
        side = "above" if area.low > 0.5 else "below"
        return (
            f"{claimed}; its words do not show recognition ({shown}), but its probabilities order its own texts {side} "
            f"others': AUC = {_tested(area)}.{trap}"
        )
    return f"{claimed}; no evidence of recognition: {shown}.{_ranking(found)}{trap}"


def _differs(row, null: float) -> bool:
    """Tell whether an estimate differs from a value: by its interval and, where there is one, by its test."""
    return (row.low > null or row.high < null) and (pd.isna(row.p) or row.p < 1 - row.level)


def _tested(row) -> str:
    """Return "0.12 [-0.01, 0.25], p = 0.034"; where so few prompts allow no small p, say so."""
    shown = estimate_text(row.estimate, row.low, row.high)
    return shown if pd.isna(row.p) else f"{shown}, p {_p(row)}"


def _p(row) -> str:
    """Return "= 0.034"; where so few prompts allow no small p, say so."""
    few = ", the least that so few prompts allow" if f"least_p={row.p:.3g}" in str(row.note).split("; ") else ""
    return f"{p_text(row.p)}{few}"


def _silent(found: dict) -> float:
    """Return the share of questions without an answer."""
    return found["no_answer_rate"].estimate if "no_answer_rate" in found else 0.0


def _ranking(found: dict) -> str:
    """Say what AUC shows, as a sentence of its own; nothing without one."""
    area = found.get("auc")
    if area is None or pd.isna(area.estimate):
        return ""
    if not _differs(area, 0.5):
        return f" Its probabilities do not show that it tells them apart: AUC = {_tested(area)}."
    return (
        f" Its probabilities order its own texts {'above' if area.low > 0.5 else 'below'} others': "
        f"AUC = {_tested(area)}."
    )


def _by_scores(found: dict) -> str:
    """Conclude from probabilities alone, where there is no answer in words; nothing without them."""
    area = found.get("auc")
    if area is None or pd.isna(area.estimate):
        return ""
    few = _weak(area)
    verdict = "no evidence of recognition"
    if _differs(area, 0.5):
        verdict = f"its probabilities order its own texts {'above' if area.low > 0.5 else 'below'} others'"
    return f"it has probabilities and no answers; {verdict}: AUC = {_tested(area)}{few}."


def planning(table: pd.DataFrame) -> list[str]:
    """Say how large a discrimination so many prompts would have found, before anybody reads a null as "none"."""
    designs: dict[int, list[str]] = {}
    rows = default_rows(table)
    for (task, condition), group in _readable(rows, None).groupby(DESIGN, sort=False):
        prompts = int(group["n_prompts"].max())
        if group["note"].map(unit).eq("texts").any():
            return [f"What this design could find cannot be planned{NO_PROMPTS}."]
        if prompts < 2 or "discrimination" not in set(group["statistic"]):
            continue
        designs.setdefault(prompts, []).append(f"{task}{f' ({condition})' if condition else ''}")
    return [
        f"{', '.join(where)}: with {prompts} prompts, a true J of {detectable_difference(prompts, t=prompts < 40):.2f} "
        f"is detected in four of five such runs (5 %, two-sided, one text per prompt and author){_few(prompts)}."
        for prompts, where in designs.items()
    ]


def unit(note: str) -> str:
    """Return what was sampled: prompts, or texts where the file names no prompt."""
    return "texts" if "clusters_are_texts" in str(note) else "prompts"


def _weak(row) -> str:
    """Say what weakens an estimate: few prompts, or none named."""
    few = _few(row.n_prompts) if "few_prompts" in str(row.note) else ""
    return few + NO_PROMPTS * (unit(row.note) == "texts")


def _few(prompts: int) -> str:
    """Say what few prompts do to a default interval; the simulations of `08_validation` begin at 20."""
    wide = "; few prompts: a wide interval"
    return f"{wide}, not validated below 20" if prompts < 20 else wide * (prompts < 40)


def leaking(records: pd.DataFrame, display: Mapping[str, str] | None = None, *, seed: int = 0) -> pd.DataFrame:
    """Set discrimination on all texts beside that without texts that name a model or a maker; empty without leaks."""
    if "leak" not in records or not records["leak"].eq(True).any() or records["leak"].eq(True).all():
        return pd.DataFrame()
    parts = {"all texts": records, "without leaks": records[~records["leak"].eq(True)]}
    shown = []
    for name, part in parts.items():
        rows = _readable(default_rows(recognition_table(part, n_resamples=1, seed=seed)), display)
        rows = rows[rows["statistic"] == "discrimination"].set_index([*DESIGN, "evaluator"])
        shown.append(pd.Series(_texts(rows), rows.index, name=name))
    return _tidy(pd.concat(shown, axis=1).fillna("").reset_index())


def ceiling(table: pd.DataFrame, style_table: pd.DataFrame, display: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Set each author's own discrimination beside that of a style classifier for the author's name, in naming tasks."""
    per_author = style_table[(style_table["statistic"] == "discrimination") & (style_table["author"] != "")]
    style = per_author.drop_duplicates("author").set_index("author")[BOUNDS]
    own = default_rows(table)
    own = own[(own["statistic"] == "discrimination") & own["task"].isin(NAMING) & own["evaluator"].isin(style.index)]
    own = own.assign(classifier=_texts(style.loc[own["evaluator"]]), itself=_texts(own))
    return _tidy(_readable(own, display)[[*DESIGN, "evaluator", "classifier", "itself"]].reset_index(drop=True))


def changes(
    contrasts: pd.DataFrame, statistics: Sequence[str], display: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Show contrasts of conditions as "change [low, high]", one row per pair of conditions and evaluator."""
    rows = contrasts[contrasts["statistic"].isin(statistics)].copy()
    if rows.empty:
        return pd.DataFrame()
    rows["evaluator"] = rows["evaluator"].map(lambda i: visible((display or {}).get(i, i)))
    rows["condition"] = rows["condition"].map(varying_parts(rows["condition"].unique()))
    rows["change"] = rows["field"] + ": " + rows["first"] + " → " + rows["second"]
    return _tidy(side_by_side(rows, ["task", "condition", "change", "evaluator"], statistics).reset_index())


def in_general(table: pd.DataFrame) -> pd.DataFrame:
    """Show the mean over models, for these models and for models like them, as estimates with intervals."""
    rows = table.copy()
    if rows.empty:
        return pd.DataFrame()
    names = {"clustered_t": "these models", "two_way_t": "models like these"}
    rows["about"] = rows["method"].map(names)
    rows["condition"] = rows["condition"].map(varying_parts(rows["condition"].unique()))
    without = rows["note"].str.contains("no_interval").map({True: " (no interval)", False: ""})
    rows["shown"] = pd.Series(_texts(rows), rows.index) + without
    index = [*DESIGN, "about", "n_models", "n_prompts"]
    return _tidy(side_by_side(rows, index, rows["statistic"].unique()).reset_index())


def show(table: pd.DataFrame, otherwise: str) -> None:
    """Display a table in a notebook, or say in a sentence why there is none."""
    from IPython.display import display

    if table.empty:
        print(otherwise)
    else:
        display(table)


def _of_pairs(found: dict) -> str:
    chosen, bias, silent = found["self_accuracy"], found.get("position_bias"), _silent(found)
    if "no_reply" in str(chosen.note):
        return "nothing can be said, every call to it failed; collect its predictions again."
    if pd.isna(chosen.estimate):
        return _by_scores(found) or "nothing can be said, it answered nothing."
    shown = f"chooses its own text in {estimate_text(chosen.estimate, chosen.low, chosen.high)} of the pairs" + (
        f" that it answers ({silent:.0%} have no answer)" if silent else ""
    )
    tested = "" if pd.isna(chosen.p) else f" (p {_p(chosen)})"
    few = _weak(chosen)
    if "one_order" in str(chosen.note):
        return f"{shown}, but its own text always stood at the same place: a habit of place would look the same{few}."
    habit = ""
    if bias is not None and not pd.isna(bias.low) and (bias.low > 0 or bias.high < 0):
        habit = f" It favours the {'first' if bias.estimate > 0 else 'second'} text whatever it is."
    verdict = "no evidence that it tells them apart"
    if _differs(chosen, 0.5):
        verdict = f"it {'favours' if chosen.low > 0.5 else 'avoids'} its own"
    return f"{shown}, where 0.50 is chance{tested}: {verdict}{few}.{habit}{_ranking(found)}{_beside_neutral(found)}"


def _pooled(found: dict) -> str:
    """Say what the evaluators of a design have in common over neutral judges."""
    gap = found["own_minus_neutral"]
    if pd.isna(gap.estimate):
        return "nothing can be said beside neutral judges, who answered nothing."
    verdict = "no evidence that authors prefer their own more than judges who wrote neither text do"
    if _differs(gap, 0):
        verdict = f"authors prefer their own {'more' if gap.low > 0 else 'less'} than judges who wrote neither text do"
    return f"own minus neutral is {_tested(gap)}: {verdict}."


def _beside_neutral(found: dict) -> str:
    """Say how the own choice compares with that of judges who wrote neither text; nothing without them."""
    gap, theirs = found.get("own_minus_neutral"), found.get("neutral_rate")
    if gap is None or pd.isna(gap.estimate):
        return ""
    judged = f"choose it in {theirs.estimate:.2f} of the same pairs"
    verdict = "no evidence that it prefers its own more than they do"
    if _differs(gap, 0):
        verdict = f"it prefers its own {'more' if gap.low > 0 else 'less'} than they do"
    return f" Judges who wrote neither text {judged}; own minus neutral is {_tested(gap)}: {verdict}."


def default_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the default row of every statistic (first method, first policy), without those per author."""
    rows = table[table["author"] == ""]
    return rows.drop_duplicates([*DESIGN, "evaluator", "statistic"])


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


def _tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out the column of conditions where nothing differs between them."""
    return table if table["condition"].any() else table.drop(columns="condition")


def _readable(frame: pd.DataFrame, display: Mapping[str, str] | None) -> pd.DataFrame:
    """Return a copy with display names, and conditions cut down to what differs between them."""
    frame = frame.copy()
    for column in {"evaluator", "author", "name"} & set(frame.columns):
        frame[column] = frame[column].map(lambda i: visible((display or {}).get(i, i)))
    if "evaluator" in frame:
        frame["evaluator"] = frame["evaluator"].replace("", ALL)
    frame["condition"] = frame["condition"].map(varying_parts(frame["condition"].unique()))
    return frame
