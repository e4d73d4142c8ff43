"""The task with a yes or no (binary_self), and scores (AUC): statistics and their resamples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from selfeval.stats.bootstrap import jackknife_contrib
from selfeval.stats.counts import Tally
from selfeval.stats.intervals import Difference, Rate, ratio
from selfeval.stats.measures import Cells, Measure, measure, resampled_rate, sensitivity, z_scores
from selfeval.stats.testing import permutation_p, rearranged_p

AREAS = ("auc", "auc_within_prompt")
SCORED = 0.9  # share of an evaluator's rows that must have a score before one speaks of its AUC


@dataclass(eq=False)
class Binary(Cells):
    """Counts of the binary task: `claim` has the texts that the evaluator calls its own."""

    claim: np.ndarray

    @classmethod
    def of(cls, tally: Tally, policy: str) -> Binary:
        """Count the rows of a tally under a policy; under `all`, no answer is no claim."""
        keep = None if policy == "all" else tally.answer >= 0
        return cls(tally.count(keep), tally.own, tally.count(tally.answer == 1))

    def table(self) -> tuple[np.ndarray, ...]:
        """Return TP, FP, TN, FN per prompt and evaluator."""
        own = self.is_own
        tp, n1 = (self.claim * own).sum(2), (self.n * own).sum(2)
        fp, n0 = self.claim.sum(2) - tp, self.n.sum(2) - n1
        return tp, fp, n0 - fp, n1 - tp


def mcc_of(tp, fp, tn, fn):
    """Return Matthews' correlation; NaN where a margin is empty."""
    return ratio(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def binary_measures(cells: Binary) -> tuple[list[Measure], list[Measure]]:
    """Return the measures per evaluator and those per author."""
    claims = Rate.of(cells.claim, cells.n)
    h, f = cells.of_own(claims), cells.over_others(claims)
    x, j = f.complement(), Difference(h, f)
    table = cells.table()
    tp, fp, tn, fn = table
    n, n1 = cells.n.sum(2), tp + fn
    total, n_own = n.sum(0), n1.sum(0)
    flat = (tp + fp).sum(0) % np.maximum(total, 1) == 0
    p = permutation_p(cells.claim, cells.n, cells.own)
    clusters = (n > 0).sum(0)
    leave_out = mcc_of(*(part.sum(0) - part for part in table))
    own_share = ratio(n_own, total)
    found = [
        measure("self_accuracy", h, n_own),
        measure("cross_accuracy", x, total - n_own),
        measure("advantage", Difference(h, x), total),
        measure("false_claim_rate", f, total - n_own),
        measure("discrimination", j, total, p=p, notes=[(flat, "constant_answer")]),
        *sensitivity(tp, n1, tp + fp, n),
        *(Measure(k, v.sum(0), total, clusters) for k, v in zip(("tp", "fp", "tn", "fn"), table, strict=True)),
        measure("accuracy", Rate.of(tp + tn, n), total),
        Measure("always_no_accuracy", 1 - own_share, total, clusters),
        measure("balanced_accuracy", j, total, transform=lambda v: (1 + v) / 2),
        measure("precision", Rate.of(tp, tp + fp), (tp + fp).sum(0)),
        measure("recall", Rate.of(tp, n1), n_own),
        measure("f1", Rate.of(tp, tp + fp + fn), (tp + fp + fn).sum(0), transform=lambda v: 2 * v / (1 + v)),
        Measure("always_yes_f1", ratio(2 * own_share, 1 + own_share), total, clusters),
        Measure("mcc", mcc_of(*(part.sum(0) for part in table)), total, clusters,
                jackknife_contrib(np.nan_to_num(leave_out))),
    ]  # fmt: skip
    sign = np.where(cells.is_own, 1, -1)
    value = np.where(cells.is_own, claims.value, 1 - claims.value)
    right = Rate(value, sign * claims.contrib, claims.trials, claims.clusters)
    return found, [measure("author_accuracy", right, cells.total)]


def resample_binary(cells: Binary, weights: np.ndarray, found: dict[str, Measure], per_author_done: Callable) -> None:
    """Fill the measures' samples (weights: (prompts, B)); as `resample_naming`."""
    size, rate = weights.shape[1], ratio(cells.claim.sum(0), cells.total)
    resampled = [name for name, m in found.items() if m.contrib is not None]
    put = {name: np.full((len(cells.own), size), np.nan, np.float32) for name in resampled}
    for e in range(len(cells.own)):
        stack = np.concatenate([cells.n[:, e], cells.claim[:, e]], axis=1).astype(weights.dtype)
        n, claim = np.split(stack.T @ weights, 2)
        claims = resampled_rate(claim, n, rate[e][:, None])
        own, others = cells.is_own[e], cells.valid[e] & ~cells.is_own[e]
        h = claims[own][0] if own.any() else np.full(size, np.nan)
        f = claims[others].mean(0) if others.any() else np.full(size, np.nan)
        tp, n1 = claim[own].sum(0), n[own].sum(0)
        fp, n0 = claim[~own].sum(0), n[~own].sum(0)
        values = {
            "self_accuracy": h, "cross_accuracy": 1 - f, "advantage": h - (1 - f), "false_claim_rate": f,
            "discrimination": h - f, "balanced_accuracy": (1 + h - f) / 2, "accuracy": ratio(tp + n0 - fp, n1 + n0),
            "precision": ratio(tp, tp + fp), "recall": ratio(tp, n1), "f1": ratio(2 * tp, tp + fp + n1),
            "mcc": mcc_of(tp, fp, n0 - fp, n1 - tp),
        }  # fmt: skip
        values["d_prime"], values["criterion"] = z_scores(tp, n1, fp, n0)
        for name, value in values.items():
            put[name][e] = value
        per_author_done(e, {"author_accuracy": np.where(own[:, None], claims, 1 - claims)})
    for name, samples in put.items():
        found[name].samples = samples


def no_answer_measure(tally: Tally) -> Measure:
    """Return the share of rows without an answer."""
    rate = Rate.of(tally.count(tally.answer < 0).sum(2), tally.count().sum(2))
    return measure("no_answer_rate", rate, rate.trials)


def auc_measures(tally: Tally) -> list[Measure]:
    """Return the area under the ROC of the score for one's own texts, over all pairs and over pairs within a prompt.

    Contributions: placements summed by prompt (DeLong 1988; Obuchowski 1997 for clusters); the interval is Wilson's at
    their effective sample size, which stays within 0 and 1 (as `resampled.auc`). auc_within_prompt is the
    share of (own, other) pairs of one prompt that the score orders rightly: it is free of differences between prompts.
    p: by permutation of which author of a prompt is one's own, all its texts, samples and repeats together.
    Rows without a score are left out; where they are more than a tenth, what is left is a selection by the replies
    themselves and nothing is estimated (note `partly_scored`).
    """
    size = (tally.n_prompts, len(tally.evaluators))
    value, within = np.full(size[1], np.nan), np.full(size[1], np.nan)
    contrib, contrib_within = np.zeros(size), np.zeros(size)
    rows, clusters = np.zeros(size[1], int), np.zeros((2, size[1]), int)
    partly = np.zeros(size[1], bool)
    for e in range(size[1]):
        asked = tally.evaluator == e
        keep = np.flatnonzero(asked & ~np.isnan(tally.score))
        score, prompt, own = tally.score[keep], tally.prompt[keep], tally.author[keep] == tally.own[e]
        n1, n0 = own.sum(), (~own).sum()
        rows[e], clusters[0, e] = len(keep), len(np.unique(prompt))
        partly[e] = 0 < len(keep) < SCORED * asked.sum()
        if not n1 or not n0 or partly[e]:
            continue
        place = np.empty(len(keep))
        ranks = rankdata(score)
        place[own] = (ranks[own] - rankdata(score[own])) / n0
        place[~own] = 1 - (ranks[~own] - rankdata(score[~own])) / n1
        value[e] = place[own].mean()
        weight = np.where(own, 1 / n1, 1 / n0) * (place - value[e])
        contrib[:, e] = np.bincount(prompt, weight, minlength=size[0])
        pairs = np.bincount(prompt[own], minlength=size[0]) * np.bincount(prompt[~own], minlength=size[0])
        wins = _wins_within(score, prompt, own, size[0])
        rate = Rate.of(wins, pairs)
        within[e], contrib_within[:, e], clusters[1, e] = rate.value, rate.contrib, rate.clusters
    notes = [(partly, "partly_scored")]
    areas = Rate(value, contrib, rows, clusters[0]), Rate(within, contrib_within, rows, clusters[1])
    found = [measure(name, area, rows, notes=notes) for name, area in zip(AREAS, areas, strict=True)]
    for m in found:
        m.test = lambda seed, m=m: _author_permutation(tally, ~np.isnan(m.value), m.name == AREAS[1], seed)
    return found


def _author_permutation(tally: Tally, tested: np.ndarray, within: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return p of an AUC and the least p possible, per evaluator (NaN where `tested` is false).

    AUC - 1/2 is in proportion to the sum of the own texts' ranks about the mean rank, so what an author's texts on a
    prompt contribute to it, if that author is the evaluator, is one number. `within`: ranks within the prompt.
    """
    p, least = np.full(len(tested), np.nan), np.ones(len(tested))
    for e in np.flatnonzero(tested):
        rows = np.flatnonzero((tally.evaluator == e) & ~np.isnan(tally.score))
        score, prompt, author = tally.score[rows], tally.prompt[rows], tally.author[rows]
        rank = rankdata(score) - (len(rows) + 1) / 2
        if within:
            order = rankdata(prompt * 4.0 + score)  # scores lie within 0 and 1
            rank = order - (np.bincount(prompt, order) / np.maximum(np.bincount(prompt), 1))[prompt]
        cell = prompt * (author.max() + 1) + author
        shape = tally.n_prompts, author.max() + 1
        there = np.bincount(cell, minlength=np.prod(shape)).reshape(shape) > 0
        sums = np.where(there, np.bincount(cell, rank, np.prod(shape)).reshape(shape), np.nan)
        options = sums[there[:, tally.own[e]] & (there.sum(1) > 1)]
        p[e], least[e] = rearranged_p(options, options[:, tally.own[e]].sum(), seed=seed)
    return p, least


def _wins_within(score, prompt, own, n_prompts: int) -> np.ndarray:
    """Count, per prompt, pairs in which the own text scores higher, ties half."""
    order = np.lexsort((score, prompt))
    prompt, own = prompt[order], own[order]
    start = np.r_[True, (np.diff(prompt) != 0) | (np.diff(score[order]) != 0)]
    tie = np.cumsum(start) - 1
    others = np.cumsum(~own)
    first = np.flatnonzero(start)
    before = others[first] - ~own[first]
    until = others[np.r_[first[1:] - 1, len(own) - 1]]
    offset = before[np.searchsorted(prompt[first], np.arange(n_prompts))[prompt]]
    return np.bincount(prompt, own * ((before + until)[tie] / 2 - offset), minlength=n_prompts)
