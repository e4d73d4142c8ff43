"""Comparisons beyond one evaluator in one condition: of conditions, models, results and readings.

J is 0 for whoever cannot tell its texts, but its size moves with the habit of claiming: at equal
sensitivity (d' of 1) it is .34, .21, .13 and .09 where .50, .05, .02 and .90 of others' texts are
claimed. So each difference of J comes with that of the sensitivity, and the conclusion is drawn
from it: `sensitivity_auc`, the AUC within prompts, where both sides have scores, otherwise
`sensitivity_d_prime`, d' of claims.

condition_contrasts   the same evaluators under two conditions, as differences paired by prompt
paired_models         two evaluators on the same prompts, as differences of their statistics
reading_gaps          the likelihood of a text under a model's own weights against what it says

A reading is a way to tell an evaluator's own texts from others': its answers, the likelihood under
its own weights, that likelihood against all other candidates' (the oracle, which no single model
can compute), a classifier of style that knows no model; and what the own likelihood must be above,
that of each other model and the length. Each is a condition of prediction records,
`reading=<name>`; each has an AUC within prompts and, but for likelihoods and length, J. The gap is
the AUC of the own likelihood minus another reading's, paired by prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from selfeval.condition import LEFT_OUT, conditions, parts_of, varying_parts
from selfeval.recognition import counts
from selfeval.recognition.counts import Tally
from selfeval.recognition.measures import (
    area_within_prompts,
    claims_apart,
    measures_of,
)
from selfeval.records.tasks import CLAIMS, PAIRS
from selfeval.statistics.classifier import out_of_fold
from selfeval.statistics.intervals import BOUND, Difference, Rate, oppose
from selfeval.statistics.resampling import Settings
from selfeval.statistics.table import (
    CHANGE,
    COLUMNS,
    HALF,
    INVERTED,
    Measure,
    adjust_p,
    policies_notes,
    write,
)

CONTRASTED = (
    "self_accuracy",
    "false_claim_rate",
    "discrimination",
    "advantage",
    "cross_accuracy",
    "accuracy",
    "overall_accuracy",
    "corrected_advantage",
    "peer_corrected",
)
# readings
ORACLE = "oracle"
OWN = "own likelihood"
LIKELIHOOD_OF = "likelihood of "  # and another model
LENGTH = "length"
STYLE = "style"
COMPARED = "auc_within_prompt"
# sensitivities
AREA = "sensitivity_auc"
D_PRIME = "sensitivity_d_prime"
TOLD = {"told=true": "told", "told=false": "untold", ";": ", "}
SAID = dict.fromkeys(CLAIMS, "yes or no")  # other tasks: "names the author"


def _measures(tally: Tally, policy: str) -> dict[Any, Measure]:
    """Return the rates and differences per evaluator under a policy."""
    measures = {}
    for measure in measures_of(tally, policy):
        is_by_author = measure.value.ndim > 1
        if isinstance(measure.of, Rate | Difference) and not is_by_author:
            measures[measure.statistic] = measure
    return measures


def _policy(task: str) -> str:
    """Return the policy of a comparison: in pairs, no answer is no choice."""
    return "answered" if task in PAIRS else "all"


def _note_policies(
    differences: Sequence[Measure], among_answers: Sequence[Measure], z: float
) -> None:
    """Note on differences what they say otherwise among answers alone."""
    for m, among in zip(differences, among_answers, strict=True):
        m.notes = [*m.notes, *policies_notes(m.of, [among.of], z)]


def d_prime(discrimination: Difference) -> Difference:
    """Return d', the difference of the two rates of J as normal quantiles.

    A rate of 0 or 1 is estimated with a claim and a denial more, in proportion to the texts of each
    side; its interval has no end there, for a habit may be as strict or lax as one likes.
    """
    own = discrimination.a
    others = discrimination.b
    more = 1 / np.maximum(own.n + others.n, 1)
    quantiles = []
    for rate in (own, others):
        quantile = rate.mapped(lambda p: ndtri((p + more) / (1 + 2 * more)))
        quantile.function = lambda p: ndtri(np.clip(p, BOUND, 1 - BOUND))
        quantiles.append(quantile)
    difference = quantiles[0] - quantiles[1]
    difference.correlation = discrimination.correlation
    return difference


def _paired(one: tuple[Tally, np.ndarray], other: tuple, policy: str) -> list[Measure]:
    """Return J, d' and the AUCs of one side less those of another, each a tally and evaluators.

    They are called "first - second", or by the name that both sides share.
    """
    names = [tally.evaluators[chosen] for tally, chosen in (one, other)]
    pairs = np.where(names[0] == names[1], names[0], names[0] + " - " + names[1])
    discriminations = []
    areas = []
    for tally, chosen in (one, other):
        j = claims_apart(tally, policy).pick((chosen,))
        discriminations.append(oppose(j) if tally.is_unlinked else j)
        scored = tally.scored()[0]
        of_side = [scored.evaluator == e for e in chosen]
        rows = [scored.kept(of_e & ~np.isnan(scored.score)) for of_e in of_side]
        areas.append([*map(area_within_prompts, rows, tally.own[chosen])])
    j, less_j = discriminations
    differences = [
        ("discrimination", j - less_j, pairs),
        (D_PRIME, d_prime(j) - d_prime(less_j), pairs),
        *((AREA, area - less, pair) for area, less, pair in zip(*areas, pairs, strict=True)),
    ]
    measures = []
    for name, difference, who in differences:
        labels = {"evaluator": who, "policy": policy}
        measures.append(Measure(name, difference, labels, test=INVERTED))
    return measures


def _concluded(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return differences with p adjusted, and what those of the sensitivity say.

    The sensitivity is that of scores where both sides have them, else d'. `habits may explain it`
    where J differs and the sensitivity is not shown to.
    """
    is_area = table["statistic"] == AREA
    is_known = is_area & table["estimate"].notna()
    has_area = table["evaluator"].isin(table["evaluator"][is_known])
    is_replaced = (table["statistic"] == D_PRIME) & has_area
    table = table[is_known | ~(is_area | is_replaced)].reset_index(drop=True)
    decides = table["statistic"].isin([AREA, D_PRIME])
    table = adjust_p(table, [table["statistic"].mask(decides, AREA)])

    rows = table[decides]
    of_j = table[table["statistic"] == "discrimination"].set_index("evaluator")
    of_j = of_j.loc[rows["evaluator"]].set_index(rows.index)
    notes = rows["note"] + ";" + of_j["note"]
    said = {
        "": of_j["estimate"].isna(),
        "depends on no answers": notes.str.contains("depends_on_no_answers"),
        "too few answers": notes.str.contains("too_few_answers") | rows["low"].isna(),
        "differ": rows["p_holm"] <= 1 - level,
        "habits may explain it": of_j["p_holm"] <= 1 - level,
    }
    table.loc[decides, "conclusion"] = np.select([*said.values()], [*said], "no evidence")
    return table


def _joined(parts: list[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows of all tables; without any, an empty one with these columns."""
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True)


# --------------------------------------------------------------------------------------------------
# Two conditions


def condition_contrasts(predictions: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Compare every two conditions of a task that differ in one thing: second minus first.

    predictions: prediction records, as for `recognition_table`; only prompts and evaluators that
    both conditions have are compared (note `common_prompts` where that leaves some out). Policy
    `all`: no answer is no claim; of pairs `answered`, and neutral judges are left out.

    Returns `stats.COLUMNS` and `field` (what differs), `first`, `second` (its values); `condition`
    is what does not differ, p_holm is over evaluators. The interval is MOVER over the two estimates
    with the correlation of their prompts; p is its inversion. Empty without such pairs.
    """
    frame = _units(predictions.reset_index(drop=True))
    settings = Settings(level=level)
    parts = []
    for task, of_task in frame.groupby("task_type", sort=True):
        labels = sorted(of_task["label"].unique())
        for first, second in combinations(labels, 2):
            differing = {*parts_of(first)} ^ {*parts_of(second)}
            fields = {*map(_field_of, differing)}
            if len(fields) == 1:
                parts += _contrast(of_task, task, first, second, fields.pop(), settings)
    return _joined(parts, [*COLUMNS, *CHANGE])


def _field_of(part: str) -> str:
    """Return the field of a condition's part "field=value"."""
    return part.partition("=")[0]


def _units(records: pd.DataFrame) -> pd.DataFrame:
    """Return records without neutral judges, with prompt as `unit` and condition as `label`."""
    unit, _ = counts.prompts(records)
    frame = records.assign(unit=unit, label=conditions(records))
    return frame[~counts.neutral_rows(records)]


def _contrast(
    frame: pd.DataFrame, task: str, first: str, second: str, field: str, settings: Settings
) -> list[pd.DataFrame]:
    """Return the table of one contrast, second minus first; none without common prompts."""
    sides = [frame[frame["label"] == label] for label in (first, second)]
    common = common_rows(sides)
    if any(side.empty for side in common):
        return []
    tallies = {tally.condition: tally for tally in counts.tallies(pd.concat(common))}
    minuend = tallies[second]
    subtrahend = tallies[first]
    measures = _differences(minuend, subtrahend, _policy(task))
    no_answers = (minuend.answer < 0).any() or (subtrahend.answer < 0).any()
    if task not in PAIRS and no_answers:
        among_answers = _differences(minuend, subtrahend, "answered")
        _note_policies(measures, among_answers, settings.z)
    evaluators = common[0]["evaluator_model"]
    note = ""
    for side, common_side in zip(sides, common, strict=True):
        if side["evaluator_model"].isin(evaluators).sum() > len(common_side):
            note = "common_prompts"
    rest = [part for part in parts_of(first) if _field_of(part) != field]
    table = write(measures, settings, task=task, condition=";".join(rest), note=note)
    table = _concluded(table, settings.level)
    return [_with_change(table, field, _value(first, field), _value(second, field))]


def _differences(minuend: Tally, subtrahend: Tally, policy: str) -> list[Measure]:
    """Return the differences of the statistics that two tallies of the same evaluators have."""
    measures = _measures(minuend, policy)
    others = _measures(subtrahend, policy)
    who = {"evaluator": subtrahend.evaluators, "policy": policy}
    differences = []
    for name in CONTRASTED:
        if name in measures and name in others:
            difference = measures[name].of - others[name].of
            rows = measures[name].rows + others[name].rows
            differences.append(Measure(name, difference, who, n=rows, test=INVERTED))
    if "discrimination" in measures:
        everyone = np.arange(len(subtrahend.evaluators))
        _, *sensitivities = _paired((minuend, everyone), (subtrahend, everyone), policy)
        differences += sensitivities
    return differences


def _value(label: str, field: str) -> str:
    """Return a field's value in a condition's label."""
    for part in parts_of(label):
        if _field_of(part) == field:
            return part.partition("=")[2]
    return LEFT_OUT.get(field, "not set")


def _with_change(table: pd.DataFrame, field: str, first: str, second: str) -> pd.DataFrame:
    """Return a table of differences with what differs and its two values."""
    return table.assign(field=field, first=first, second=second)


def common_rows(sides: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Keep the rows on prompts that the same evaluator has on both sides."""
    first, second = sides
    key = ["evaluator_model", "unit"]
    first_keys, second_keys = (pd.MultiIndex.from_frame(side[key]) for side in sides)
    return [first[first_keys.isin(second_keys)], second[second_keys.isin(first_keys)]]


# --------------------------------------------------------------------------------------------------
# Two models


def paired_models(
    predictions: pd.DataFrame | Iterable[Tally],
    *,
    level: float = 0.95,
) -> pd.DataFrame:
    """Compare every two evaluators' discrimination in a task and condition: first minus second.

    Returns `stats.COLUMNS`: `evaluator` is "first - second", p inverts the interval (MOVER with the
    correlation over prompts), p_holm is over the pairs of evaluators. Policy `all`; pairs of texts
    are left out.
    """
    settings = Settings(level=level)
    parts = []
    for tally in counts.tallies(predictions):
        if tally.task in PAIRS or len(tally.evaluators) < 2:
            continue
        design = {"task": tally.task, "condition": tally.condition, "note": tally.note}
        table = write(_model_differences(tally, settings), settings, **design)
        parts.append(_concluded(table, level))
    return _joined(parts, COLUMNS)


def _model_differences(tally: Tally, settings: Settings) -> list[Measure]:
    """Return the differences of J and sensitivity of every two evaluators, on prompts of both.

    Pairs with the same prompts, mostly all, are computed together.
    """
    was_asked = np.asarray(tally.count().any(2))
    first, second = np.triu_indices(len(tally.evaluators), 1)
    is_partial = (was_asked[:, first] != was_asked[:, second]).any(0)
    names = tally.evaluators[first] + " - " + tally.evaluators[second]
    common, group = np.unique(
        was_asked[:, first] & was_asked[:, second], axis=1, return_inverse=True
    )
    measures = []
    for number, prompts in enumerate(common.T):
        pairs = group == number
        part = tally.kept(prompts[tally.prompt])
        sides = (part, first[pairs]), (part, second[pairs])
        found = _paired(*sides, "all")
        for m in found:
            is_one = np.isin(m.labels["evaluator"], names[is_partial])
            m.notes = [(is_one, "common_prompts")]
        if (tally.answer < 0).any():
            _note_policies(found, _paired(*sides, "answered"), settings.z)
        measures += found
    return measures


# --------------------------------------------------------------------------------------------------
# Readings of the same texts side by side


def as_readings(answers: pd.DataFrame) -> pd.DataFrame:
    """Return prediction records of the exact and yes/no tasks with their reading as `condition`."""
    frame = answers[answers["task_type"].isin(["exact_model", *CLAIMS])]
    labels = conditions(frame).astype(object)
    parts = []
    for task, of_task in frame.groupby("task_type", sort=True):
        of_rows = labels[of_task.index]
        varying = of_rows.map(varying_parts(of_rows.unique())).replace(TOLD, regex=True)
        reading = "reading=" + SAID.get(task, "names the author")
        reading += varying.where(varying == "", ", " + varying)
        parts.append(of_task.assign(condition=reading))
    return pd.concat(parts)


def reading_gaps(readings: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Return the AUC within prompts of a model's own likelihood minus that of other readings.

    readings: prediction records with `reading=...` as condition, one of them `reading=own
    likelihood`. Only prompts and evaluators of both are compared (note `common_prompts`). Intervals
    are MOVER over the two with the correlation of their prompts, p is its inversion, p_holm over
    evaluators. Returns `stats.COLUMNS`, `field` ("reading"), `first` (the other reading) and
    `second`; empty where no other reading is of the same prompts.
    """
    unit, _ = counts.prompts(readings)
    reading = readings["condition"].str.removeprefix("reading=")
    frame = readings.assign(unit=unit, reading=reading).reset_index(drop=True)
    weights = frame[frame["reading"] == OWN]
    settings = Settings(level=level)
    parts = []
    for (task, name), other in frame.groupby(["task_type", "reading"], sort=False):
        sides = common_rows([other, weights])
        if name.startswith(LIKELIHOOD_OF):
            texts = pd.MultiIndex.from_frame(other[["evaluator_model", "text_id"]])
            own = pd.MultiIndex.from_frame(sides[1][["evaluator_model", "text_id"]])
            sides[1] = sides[1][own.isin(texts)]
        if name in (OWN, ORACLE) or any(side.empty for side in sides):
            continue
        measures = _gaps(pd.concat(sides), name)
        if not measures:
            continue  # no answer has a probability
        most = max(other["unit"].nunique(), weights["unit"].nunique())
        note = ""
        if sides[0]["unit"].nunique() < most:
            note = "common_prompts"
        table = write(measures, settings, task=task, note=note)
        table = adjust_p(table, ["statistic"])
        parts.append(_with_change(table, "reading", name, OWN))
    return _joined(parts, [*COLUMNS, *CHANGE])


def _gaps(records: pd.DataFrame, reading: str) -> list[Measure]:
    """Return the AUC of the own likelihood minus that of another reading, by evaluator."""
    areas = {}
    for tally in counts.tallies(records):
        for m in measures_of(tally, "all"):
            if m.statistic == COMPARED:
                areas[tally.condition, m.labels["evaluator"]] = m.of
    gaps = []
    for (condition, evaluator), area in areas.items():
        own = areas.get((f"reading={OWN}", evaluator))
        if condition == f"reading={reading}" and own is not None:
            who = {"evaluator": evaluator, "policy": "all"}
            gaps.append(Measure(COMPARED, own - area, who, test=INVERTED))
    return gaps


def beyond_rivals(table: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """Return a table of readings in which the own likelihood is held against its rivals.

    gaps: of `reading_gaps`. The rivals of a model's likelihood of its texts are those of other
    models, for a text may be easy for all, and the length. It must be above each of them, so the
    largest of the one-sided p counts (`peers_p`). Nothing is concluded from rivals themselves.
    """
    reading = table["condition"].str.removeprefix("reading=")
    conclusion = table["conclusion"].mask(reading.map(is_rival), "")
    rivals = gaps[gaps["first"].map(is_rival) & gaps["estimate"].notna()]
    p = (rivals["p"] / 2).where(rivals["estimate"] > 0, 1 - rivals["p"] / 2).fillna(1)
    largest = p.groupby(rivals["evaluator"]).max()
    peers = rivals["evaluator"][rivals["first"] != LENGTH]
    rows = table[reading == OWN].drop(columns="conclusion")
    is_above = rows["low"] > HALF
    p_beyond = rows["evaluator"].map(largest).where(rows["evaluator"].isin(peers))
    rows["p_beyond"] = p_beyond.where(is_above, 1)
    said = p_beyond.astype(object).map("peers_p={:.3g}".format, na_action="ignore")
    said = said.fillna("no_peers")
    note = rows["note"].str.replace(r"(; )?(peers_p=[^;]*|no_peers)", "", regex=True)
    rows["note"] = note.where(~is_above, (note + "; " + said).str.removeprefix("; "))
    rows = adjust_p(rows, ["statistic"], chance=dict.fromkeys(rows["statistic"], HALF))
    table = table.assign(conclusion=conclusion)
    table.loc[rows.index, ["conclusion", "note"]] = rows[["conclusion", "note"]]
    return table


def is_rival(reading: str) -> bool:
    """Tell whether a reading is what a model's likelihood of its own texts must be above."""
    return reading == LENGTH or reading.startswith(LIKELIHOOD_OF)


# --------------------------------------------------------------------------------------------------
# The reader of style: a classifier on character n-grams, always asked about unseen groups


def read_for_authors(texts: Sequence[dict]) -> pd.DataFrame:
    """Return prediction records of the classifier as a reader for each author.

    texts: text records. It never sees another text on the same prompt; `score` is P(that author
    wrote it). What it recognises is in the texts, so its J (`stats.recognition_table`) is a floor
    of what there is to know, and a ceiling for readers of style.
    """
    frame = pd.DataFrame(texts)
    chances = out_of_fold(frame["text"], frame["author"], frame["prompt_id"])
    answers = pd.DataFrame(
        {
            "text_id": frame["text_id"],
            "prompt_id": frame["prompt_id"],
            "true_model": frame["author"],
            "task_type": "exact_model",
            "predicted_model": chances.idxmax(axis=1),
        }
    )
    readers = [answers.assign(evaluator_model=name, score=chances[name]) for name in chances]
    return pd.concat(readers, ignore_index=True)
