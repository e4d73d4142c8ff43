"""Comparisons beyond one evaluator in one condition: condition against condition, and models in general.

condition_contrasts   the same evaluators under two conditions, as differences paired by prompt
models_in_general     the mean over evaluators, with models as a sample too (two-way clustering)
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from selfeval.stats.binary import Binary, binary_measures
from selfeval.stats.counts import BINARY, PAIRWISE, Tally, condition_label, neutral_rows, tallies
from selfeval.stats.intervals import Difference, check_level, cluster_variance, within_range
from selfeval.stats.measures import Measure
from selfeval.stats.naming import Naming, naming_measures
from selfeval.stats.pairs import pairwise_measures
from selfeval.stats.serving import NOTE, flagged, of_predictions
from selfeval.stats.testing import holm, inverted_p

CONTRASTED = ("self_accuracy", "false_claim_rate", "discrimination", "advantage", "cross_accuracy", "accuracy",
              "overall_accuracy", "corrected_advantage", "peer_corrected")  # fmt: skip
GENERAL = ("self_accuracy", "false_claim_rate", "advantage", "discrimination")
FEW_MODELS = 10
DESIGN = ["task", "condition"]


def _measures(tally: Tally) -> dict[str, Measure]:
    """Return the measures per evaluator that have a boundary-safe interval, under policy `all`, of pairs `answered`."""
    if tally.task == PAIRWISE:
        found, _ = pairwise_measures(tally, "answered")
    elif tally.task == BINARY:
        found, _ = binary_measures(Binary.of(tally, "all"))
    else:
        found, _ = naming_measures(Naming.of(tally, "all"))
    return {m.name: m for m in found if m.safe is not None and m.transform is None}


def condition_contrasts(predictions: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Compare every two conditions of a task that differ in one thing: second minus first, paired by prompt.

    predictions: prediction records, as for `recognition_table`; only prompts and evaluators that both conditions have
    are compared (note `common_prompts` where that leaves some out). Policy `all`: no answer is no claim; of pairs
    `answered`, and neutral judges are left out.

    Returns one row per task, pair, evaluator and statistic: `field` (what differs), `first`, `second`, `condition`
    (what does not), estimate, low, high, level, method, p, p_holm (over evaluators), n, n_prompts, note (also
    `several_endpoints`). The interval is MOVER over the two estimates with the correlation of their prompts; p is its
    inversion. Empty without such pairs.
    """
    z = check_level(level)
    frame = predictions.reset_index(drop=True)
    labels = pd.Series([condition_label(c) for c in frame["condition"]] if "condition" in frame else "", frame.index)
    rows = []
    frame = frame[~neutral_rows(frame)]
    for task, of_task in frame.groupby("task_type", sort=True):
        found = sorted(labels[of_task.index].unique())
        for first, second in combinations(found, 2):
            differs = set(first.split(";")) ^ set(second.split(";"))
            fields = {part.partition("=")[0] for part in differs}
            if len(fields) == 1:
                rows += _contrast(of_task, labels, task, first, second, fields.pop(), z, level)
    columns = ["evaluator", "task", "field", "first", "second", "condition", "statistic", "estimate", "low", "high",
               "level", "method", "p", "p_holm", "n", "n_prompts", "note"]  # fmt: skip
    return flagged(pd.DataFrame(rows, columns=columns), of_predictions(predictions), ["evaluator"])


def _contrast(frame, labels, task, first, second, field, z, level) -> list[dict]:
    sides = [frame[labels[frame.index] == label] for label in (first, second)]
    key = next(k for k in ("prompt_id", "prompt_used", "text_id") if k in frame and frame[k].notna().all())
    prompts, evaluators = (set(sides[0][k]) & set(sides[1][k]) for k in (key, "evaluator_model"))
    common = [s[s[key].isin(prompts) & s["evaluator_model"].isin(evaluators)] for s in sides]
    if any(side.empty for side in common):
        return []
    both = {t.condition: t for t in tallies(pd.concat(common))}
    one, two = (_measures(both[label]) for label in (first, second))
    parts = [dict(part.partition("=")[::2] for part in label.split(";")) for label in (first, second)]
    values = [part.get(field, "not set") for part in parts]  # `effort` is there only where it was asked for
    rest = ";".join(part for part in first.split(";") if part.partition("=")[0] != field)
    note = "" if all(set(side[key]) == prompts for side in sides) else "common_prompts"
    rows = []
    for name in CONTRASTED:
        if name not in one or name not in two:
            continue
        change = Difference(two[name].safe, one[name].safe)
        low, high = change.interval(z)
        p = inverted_p(change)
        adjusted = holm(p)
        for e, evaluator in enumerate(both[first].evaluators):
            unknown = np.isnan(change.value[e])
            rows.append({
                "evaluator": evaluator, "task": task, "field": field, "first": values[0], "second": values[1],
                "condition": rest, "statistic": name, "estimate": change.value[e], "low": low[e], "high": high[e],
                "level": level, "method": change.method, "p": p[e], "p_holm": adjusted[e],
                "n": int(one[name].rows[e] + two[name].rows[e]), "n_prompts": int(change.clusters[e]),
                "note": "not_estimable" if unknown else note,
            })  # fmt: skip
    return rows


def models_in_general(predictions: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Estimate the mean over evaluators, for these models and for models like them.

    Models are fixed by default: method `clustered_t` then speaks of these evaluators on prompts like these. Method
    `two_way_t` takes models as a sample too: the variance over prompts plus that over models, minus that of their
    cells (Cameron, Gelbach and Miller 2011); a model is author and evaluator at once, so the jackknife leaves it out
    as both. Degrees of freedom: the smaller number of clusters minus 1. Both intervals stay within the statistic's
    range, 0 to 1 or -1 to 1 (`intervals.within_range`), and p is the inversion. On simulated models whose
    discrimination differs (400 tables of 30 prompts, `python tests/bench.py general`) `two_way_t` holds the mean of all
    such models in .98, .95, .94 and .95 of cases with 4, 6, 10 and 20 models, where `clustered_t` holds it in .64 to
    .71.

    Returns per task and condition one row per statistic and method: estimate, low, high, level, p (that the mean
    discrimination is 0), n_models, n_prompts, note (`few_models` below 10: few to stand for all;
    `no_interval` with fewer than three models that wrote and judged; `several_endpoints` where that is so of one of
    them).
    """
    check_level(level)
    rows, tallied = [], [tally for tally in tallies(predictions) if tally.task != PAIRWISE]
    several = of_predictions(predictions)
    for tally in tallied:
        mixed = not {*tally.evaluators, *tally.authors}.isdisjoint(several)
        rows += _general(tally, level, NOTE * mixed)
    return pd.DataFrame(rows)


def _general(tally: Tally, level: float, mixed: str) -> list[dict]:
    whole = _measures(tally)
    both = [e for e in range(len(tally.evaluators)) if tally.own[e] >= 0]
    without = [_measures(_left_out(tally, e)) for e in both] if len(both) > 2 else []
    rows = []
    for name in (name for name in GENERAL if name in whole):
        m = whole[name]
        known = ~np.isnan(m.value)
        size, prompts = int(known.sum()), int(m.clusters.max(initial=0))
        mean, least = _mean(m.value), 0.0 if name in ("self_accuracy", "false_claim_rate") else -1.0
        cells = m.contrib[:, known] / max(size, 1)
        over_prompts = float(cluster_variance(cells.sum(1), prompts))
        left = np.array([_mean(other[name].value) for other in without])
        over_models = (size - 1) / size * ((left - left.mean()) ** 2).sum() if len(left) > 2 else np.nan
        two_way = max(over_prompts + over_models - (cells**2).sum(), over_prompts, over_models)
        for method, variance, clusters in (
            ("two_way_t", two_way if len(left) > 2 else np.nan, min(size, prompts)),
            ("clustered_t", over_prompts, prompts),
        ):
            sure = np.isfinite(variance) and variance > 0 and clusters > 1 and least < mean < 1
            low = high = p = np.nan
            if sure:
                low, high = within_range(mean, variance, stdtrit(clusters - 1, (1 + level) / 2), least)
            if sure and name == "discrimination":  # the level whose interval ends at 0
                p = 2 * stdtr(clusters - 1, -abs(mean) * np.sqrt((1 - mean**2) / variance))
            few = "few_models" if method == "two_way_t" and size < FEW_MODELS else ""
            nothing = "not_estimable" if np.isnan(mean) else "no_interval"
            rows.append({
                "task": tally.task, "condition": tally.condition, "statistic": name, "estimate": mean,
                "low": float(low), "high": float(high), "level": level, "method": method, "p": float(p),
                "n_models": size, "n_prompts": prompts,
                "note": "; ".join(filter(None, [few if sure else nothing, mixed])),
            })  # fmt: skip
    return rows


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def _left_out(tally: Tally, e: int) -> Tally:
    """Return the tally without one model, as evaluator and as author; its name becomes one outside the candidates."""
    author = tally.own[e]
    keep = (tally.evaluator != e) & (tally.author != author)
    answer = tally.answer[keep]
    others = np.flatnonzero(np.arange(len(tally.authors)) != author)
    if tally.task != BINARY:
        recode = np.full(len(tally.authors) + 2, len(others))
        recode[others], recode[-1] = np.arange(len(others)), -1
        answer = recode[answer]
    new_author = np.cumsum(np.arange(len(tally.authors)) != author) - 1
    stay = np.arange(len(tally.evaluators)) != e
    own = np.where(tally.own < 0, -1, new_author[tally.own])[stay]
    return Tally(
        tally.task, tally.condition, tally.evaluators[stay], tally.authors[others], own, tally.n_prompts,
        tally.prompt[keep], (np.cumsum(stay) - 1)[tally.evaluator[keep]], new_author[tally.author[keep]], answer,
        tally.score[keep], tally.other[keep], tally.position[keep], tally.note,
    )  # fmt: skip
