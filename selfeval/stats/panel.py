"""What there is to say about one arm of a jury: answers, means, agreement, shifts, people against models, cost.

Each function takes the votes of an arm and yields rows of `selfeval.stats.jury.jury_table`, where the statistics are
explained. Means are means over conversations of the mean over their answers: the conversation is what was sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from selfeval.stats import agreement
from selfeval.stats.resampled import Statistic, auc, contrast_of, mean_of, slope, slope_parts
from selfeval.stats.testing import rearranged_p
from selfeval.stats.votes import DEBATES, ONE_BY_ONE, Units, Votes, mean_of_others, mean_over


class Row(NamedTuple):
    """A statistic and where it stands in the table."""

    arm: str
    statistic: str
    value: Statistic
    source: str = ""
    round: float | None = None
    juror: str = ""
    note: str = ""


def per_conversation(x, cluster) -> np.ndarray:
    """Return the mean of x over each conversation, spread over its units: (mean / units, 1 / units) for `mean_of`."""
    known = ~np.isnan(x)
    _, codes = np.unique(cluster, return_inverse=True)
    size = np.bincount(codes, known)[codes]
    share = np.where(known, 1 / np.maximum(size, 1), 0)
    return np.stack([np.where(known, x, 0) * share, share], 1)


def conversation_mean(x, cluster, rows=None, **more) -> Statistic:
    """Build the mean over conversations of the mean of x over their units (NaN left out)."""
    rows = int((~np.isnan(x)).sum()) if rows is None else rows
    return Statistic.of_sums(per_conversation(x, cluster), mean_of, cluster, rows, **more)


def share(yes, known, cluster) -> Statistic:
    """Build a rate over statements: yes and known are true or false, (units, ...)."""
    counts = [np.reshape(x, (len(cluster), -1)).sum(1) for x in (yes & known, known)]
    return Statistic.of_sums(np.stack(counts, 1), mean_of, cluster, int(counts[1].sum()), bounded=True)


def answering(votes: Votes) -> Iterator[Row]:
    """Yield how often there is no score: of the jury, and of each juror."""
    none = np.isnan(votes.score)
    for name, seats in [("", slice(None)), *((name, votes.seats == name) for name in votes.seats)]:
        value = share(none[:, seats], votes.asked[:, seats], votes.units.cluster)
        yield Row(votes.arm, "no_answer_rate", value, juror=name)


def means(votes: Votes) -> Iterator[Row]:
    """Yield the mean verdict per source, what it could be had everybody answered, and the gap of the own family."""
    last, asked = votes.last, votes.asked[:, :, -1]
    for source in votes.units.sources:
        of = votes.units.of(source)
        cluster = votes.units.cluster[of]
        missing = int((np.isnan(votes.verdict) & votes.asked.any((1, 2)))[of].sum())
        note = f"no_verdict={missing}" if missing else ""
        verdict = conversation_mean(votes.verdict[of], cluster, within=(0, 1))
        yield Row(votes.arm, "mean_score", verdict, source, note=note)
        if (np.isnan(last) & asked)[of].any():
            for bound in (0, 1):
                filled = mean_over(np.where(np.isnan(last) & asked, bound, last), 1)[of]
                value = conversation_mean(filled, cluster, within=(0, 1))
                yield Row(votes.arm, f"mean_score_if_{bound}", value, source)
        if votes.family[of].any():
            own = mean_over(np.where(votes.family, last, np.nan), 1)
            others = mean_over(np.where(votes.family, np.nan, last), 1)
            yield Row(votes.arm, "family_gap", conversation_mean((own - others)[of], cluster, null=0), source)


def leniency(votes: Votes) -> Iterator[Row]:
    """Yield for each juror its mean last score minus that of the other jurors, on the same answers."""
    if len(votes.seats) > 1:
        gap = votes.last - mean_of_others(votes.last)
        for k, name in enumerate(votes.seats):
            value = conversation_mean(gap[:, k], votes.units.cluster, null=0)
            yield Row(votes.arm, "leniency", value, juror=name)


def agreements(votes: Votes) -> Iterator[Row]:
    """Yield the measures of agreement per round."""
    measures = {
        "alpha": agreement.krippendorff_alpha,
        "icc_a1": partial(agreement.icc, kind="A"),
        "icc_c1": partial(agreement.icc, kind="C"),
        "effective_votes": agreement.effective_votes,
    }
    for k, number in enumerate(votes.rounds):
        ratings, cluster = votes.score[:, :, k], votes.units.cluster
        heard = votes.arm == ONE_BY_ONE or (votes.arm in DEBATES and k > 0)
        note = "consensus" if heard else "reliability"
        sides = np.where(np.isnan(ratings), np.nan, ratings > 0.5)
        for name, build in measures.items():
            yield Row(votes.arm, name, build(ratings, cluster=cluster), round=number, note=note)
        yield Row(votes.arm, "fleiss_kappa", agreement.fleiss_kappa(sides, cluster), round=number, note=note)


def shifts(votes: Votes) -> Iterator[Row]:
    """Yield how opinions move from each round to the next."""
    for k in range(1, len(votes.rounds)):
        before, after = votes.score[:, :, k - 1], votes.score[:, :, k]
        change, cluster = after - before, votes.units.cluster
        known = ~np.isnan(change)
        at = {"round": votes.rounds[k]}
        signed = conversation_mean(mean_over(change, 1), cluster, int(known.sum()), null=0)
        yield Row(votes.arm, "shift", signed, **at)
        yield Row(votes.arm, "absolute_shift",
                  conversation_mean(mean_over(np.abs(change), 1), cluster, int(known.sum())), **at)  # fmt: skip
        yield Row(votes.arm, "crossing", share((before - 0.5) * (after - 0.5) < 0, known, cluster), **at)


def discriminating(score, units: Units) -> Iterator[tuple[str, Statistic]]:
    """Yield auc and paired_accuracy of one score per unit."""
    known = ~np.isnan(score)
    human, model = known & units.human, known & ~units.human
    yield "auc", auc(score[human], units.cluster[human], score[model], units.cluster[model])
    people = pd.DataFrame({"pair": units.pair[human], "h": score[human], "cluster": units.cluster[human]})
    both = people.merge(pd.DataFrame({"pair": units.pair[model], "m": score[model]}), on="pair")
    wins = (np.sign(both["h"] - both["m"]) + 1) / 2
    reason = "" if len(both) else "no_pairs"
    parts = np.stack([wins, np.ones(len(both))], 1)
    over = both.assign(gap=wins - 0.5).groupby("cluster")["gap"].sum().to_numpy()  # each cluster's sides change places
    more = {"null": 0.5, "bounded": True, "reason": reason}
    more["rearranged"] = lambda seed: rearranged_p(np.stack([over, -over], 1), over.sum(), seed=seed)
    yield "paired_accuracy", Statistic.of_sums(parts, mean_of, both["cluster"], **more)


def against_humans(votes: Votes) -> Iterator[Row]:
    """Yield whether the jury and each juror tell people from models, and how good their scores are as probabilities."""
    units, cluster, truth = votes.units, votes.units.cluster, votes.units.human.astype(float)
    reason = "" if len(units.sources) == 2 else "one_source"
    judges = [("", votes.verdict), *(zip(votes.seats, votes.last.T, strict=True) if len(votes.seats) > 1 else ())]
    for name, score in judges:
        at = {"juror": name}
        sides = [per_conversation(np.where(side, score, np.nan), cluster) for side in (units.human, ~units.human)]
        rows = int((~np.isnan(score)).sum())
        gap = Statistic.of_sums(np.hstack(sides), contrast_of, cluster, rows, null=0, reason=reason)
        yield Row(votes.arm, "discrimination", gap, **at)
        for statistic, value in discriminating(score, units):
            yield Row(votes.arm, statistic, value, **at)
        known = ~np.isnan(score)
        sums = np.stack([np.ones(len(score)), (score - truth) ** 2, score, truth], 1)
        sums = np.where(known[:, None], sums, 0)
        formulas = {
            "brier": lambda s: s[..., 1] / s[..., 0],
            "brier_skill": lambda s: 1 - s[..., 1] / s[..., 0] / _base_rate_brier(s),
            "calibration_offset": lambda s: (s[..., 2] - s[..., 3]) / s[..., 0],
        }
        for statistic, formula in formulas.items():
            null = 0 if statistic == "calibration_offset" else None
            value = Statistic.of_sums(sums, formula, cluster, rows, null=null, reason=reason)
            yield Row(votes.arm, statistic, value, **at)
        value = slope(slope_parts(score, truth), cluster, null=0, reason=reason)
        yield Row(votes.arm, "calibration_slope", value, **at)


def _base_rate_brier(sums):
    rate = sums[..., 3] / sums[..., 0]
    return rate * (1 - rate)


def spending(votes: Votes) -> Iterator[Row]:
    """Yield what a verdict takes: statements, tokens, cost, seconds, and seconds on the critical path."""
    cluster, latency = votes.units.cluster, np.where(votes.asked, votes.latency, 0)
    held = votes.asked.any((1, 2))
    if votes.arm == ONE_BY_ONE:
        path = latency.sum((1, 2))
    elif votes.arm in DEBATES:
        path = latency.max(1).sum(1)
    else:
        path = latency.sum(2).max(1)
    seconds = {"seconds": latency.sum((1, 2)), "critical_seconds": path}
    for name, value in (votes.spent | seconds).items():
        value = np.where(held, value, np.nan)
        if not np.isnan(value).all():
            yield Row(votes.arm, f"{name}_per_verdict", conversation_mean(value, cluster))


PARTS = (answering, means, leniency, agreements, shifts, against_humans, spending)
