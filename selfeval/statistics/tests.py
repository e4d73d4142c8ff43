"""Tests: by inversion of an interval and by permutation, their correction for many, and power."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr, ndtri, stdtrit

from selfeval.statistics.intervals import Difference, Statistic, ratio

# Arrangements drawn where there are more; with the observed one p is at least .0001.
DRAWS = 9_999
# Clusters drawn at a time.
BLOCK = 200
# Of Newton's method; some ten are taken.
STEPS = 50
# Tried as true differences.
DIFFERENCES = np.linspace(0.001, 1, 1000)
# Planned correlation of the replies of a cluster.
TOGETHER = 0.07


def inverted_p(statistic: Statistic, null: float, z: float) -> np.ndarray:
    """Return the two-sided p-value whose interval just touches `null`; NaN without an interval.

    z: the normal quantile of the printed interval. It is looked at first, so that p and this
    interval never disagree, also where an interval does not grow evenly with its level.
    """
    shape = np.shape(statistic.value)
    # The quantiles at which the interval holds `null`, and does not; between them the search goes.
    inside = np.full(shape, 40.0)
    outside = np.zeros(shape)
    middle: Any = z
    for _ in range(45):
        low, high = statistic.interval(middle)
        holds = (low <= null) & (high >= null)
        inside = np.where(holds, middle, inside)
        outside = np.where(holds, outside, middle)
        middle = (inside + outside) / 2
    has_interval = ~np.isnan(statistic.interval(z)[0])
    return np.where(has_interval, 2 * ndtr(-outside), np.nan)


def one_sided_p(statistic: Statistic, z: float) -> np.ndarray:
    """Return the p-value of a statistic above 0 by its default interval; z: as of `inverted_p`."""
    p = inverted_p(statistic, 0, z)
    return np.where(statistic.value > 0, p / 2, 1 - p / 2)


def cell_p(hits, n, used, row: int, column: int) -> float:
    """Return the one-sided p-value of a cell that is higher than its row and column explain.

    hits, n: (clusters, rows, columns), such as texts claimed and texts shown by prompt, evaluator
    and author; used: which cells (rows, columns) count. Under the null the log odds of a hit are a
    habit of the row plus a taste for the column that all rows share (quasi-independence, Goodman
    1968); every cell has one half more of either answer. It is the score test with the variance of
    its clusters about 0 (Boos 1992), so no cluster says more than its share.
    """
    all_hits = (hits.sum(0) + 0.5) * used
    total = (n.sum(0) + 1) * used
    rows, columns = used.shape
    effects = np.zeros(rows + columns)
    for _ in range(STEPS):
        rate = expit(effects[:rows, None] + effects[rows:])
        weight = total * rate * (1 - rate)
        by_row = np.diag(weight.sum(1))
        by_column = np.diag(weight.sum(0))
        information = np.block([[by_row, weight], [weight.T, by_column]])
        # One effect is free, and rows and columns without a cell have none.
        information += 1e-9 * np.eye(len(effects))
        left_over = all_hits - total * rate
        score = np.concatenate([left_over.sum(1), left_over.sum(0)])
        step = np.linalg.solve(information, score).clip(-2, 2)
        effects += step
        if np.abs(step).max() < 1e-6:
            break

    of_cell = np.zeros(len(effects))
    of_cell[[row, rows + column]] = weight[row, column]
    explained = np.linalg.solve(information, of_cell)
    direction = -(explained[:rows, None] + explained[rows:])
    direction[row, column] += 1
    direction *= used
    scores = np.tensordot(hits, direction) - np.tensordot(n, direction * rate)
    scores += (direction * (0.5 - rate)).sum() / len(scores)
    return float(ndtr(-scores.sum() / np.sqrt((scores**2).sum())))


def permutation_p(values, prompt, author, own: int, *, seed: int = 0) -> float:
    """Return the two-sided p-value of permuting, within each prompt, which author is the evaluator.

    values: a number per row (a claim, the rank of a score), whose sum over the evaluator's own
    texts is the statistic; prompt, author: codes. All rows of an author on a prompt move together.
    Of one claim each it is the conditional Cochran-Mantel-Haenszel test (Birch 1964). NaN where the
    authors of a prompt have unequal numbers of rows, and without a prompt that has own and other
    texts.
    """
    rows = pd.DataFrame({"prompt": prompt, "author": author, "value": values})
    if own < 0 or own not in rows["author"].array:
        return np.nan
    by_author = rows.groupby(["prompt", "author"])["value"]
    number = by_author.size().unstack()
    if (number.max(axis=1) != number.min(axis=1)).any():
        return np.nan
    total = by_author.sum().unstack()
    has_others = total.notna().sum(axis=1) > 1
    has_own = total[own].notna()
    compared = total[has_own & has_others]
    if compared.empty:
        return np.nan
    p, _ = rearranged_p(compared.to_numpy(), compared[own].sum(), seed=seed)
    return p


def rearranged_p(
    options, observed: float, values=(), size: int = 0, *, seed: int = 0
) -> tuple[float, float]:
    """Return the two-sided p of a sum over clusters under rearrangement, and the least p possible.

    options: (clusters, most): what each cluster would give under each way of its labels, NaN where
    there are fewer ways; values: what further clusters give if they are among the `size` that have
    the label. p is the share of arrangements whose sum is at least as far from their mean as
    `observed`: of all if there are at most `DRAWS`, else of as many drawn with `seed`, the observed
    one counted in (Phipson and Smyth 2010). NaN where nothing can change.
    """
    options = np.asarray(options, float)
    if not len(options):
        options = np.zeros((0, 1))
    values = np.asarray(values, float)
    ways = np.isfinite(options).sum(1)
    choices = math.comb(len(values), size)
    if choices * math.prod(ways.tolist()) < 2:
        return np.nan, 1.0

    is_moving = np.nanmax(options, 1) > np.nanmin(options, 1)
    fixed = np.nanmax(options[~is_moving], 1).sum()
    centre = (np.nansum(options, 1) / ways).sum()
    if len(values):
        centre += size * values.mean()
    are_few = choices * math.prod(ways[is_moving].tolist()) <= DRAWS
    if are_few:
        sums = fixed + _all_sums(options[is_moving], values, size)
    else:
        sums = fixed + _drawn_sums(options[is_moving], values, size, seed)

    distance = np.abs(sums - centre)
    tie = 1e-9 * max(distance.max(), 1)
    beyond = (distance >= abs(observed - centre) - tie).sum()
    if are_few:
        return beyond / len(sums), float((distance >= distance.max() - tie).mean())
    return (1 + beyond) / (1 + DRAWS), 1 / (1 + DRAWS)


def _all_sums(options: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Return the sums of all arrangements."""
    choices = combinations(range(len(values)), size)
    sums = np.array([values[list(chosen)].sum() for chosen in choices])
    for row in options:
        sums = (sums[:, None] + row[np.isfinite(row)]).ravel()
    return sums


def _drawn_sums(options: np.ndarray, values: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return the sums of `DRAWS` random arrangements."""
    rng = np.random.default_rng(seed)
    sums = np.zeros(DRAWS)
    # NaN are sorted last.
    options = np.sort(options, 1)
    ways = np.isfinite(options).sum(1, keepdims=True)
    low = options[:, :1]
    high = np.nanmax(options, 1, keepdims=True)
    rise = (high - low)[:, 0]
    is_high = options == high
    has_two_values = ((options == low) | is_high | np.isnan(options)).all()
    first_high = ways - is_high.sum(1, keepdims=True)
    for start in range(0, len(options), BLOCK):
        block = slice(start, start + BLOCK)
        place = rng.random((len(options[block]), DRAWS), np.float32)
        place *= ways[block].astype(np.float32)
        if has_two_values:
            # Claims: their sum is three times as fast as a look-up.
            is_high = place >= first_high[block].astype(np.float32)
            sums += low[block].sum()
            sums += rise[block] @ is_high.astype(float)
        else:
            chosen = np.take_along_axis(options[block], place.astype(np.intp), 1)
            sums += chosen.sum(0)
    if size == len(values):
        return sums + values.sum()
    if size > 0:
        shuffled = np.argsort(rng.random((DRAWS, len(values))), 1)
        chosen = shuffled[:, :size]
        sums += values[chosen].sum(1)
    return sums


def holm(p) -> np.ndarray:
    """Adjust p-values for the number of tests (Holm 1979); NaN is no test and stays NaN."""
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def detectable_difference(clusters, sd, sd_found=None, *, tests=1):
    """Return the true difference that a two-sided test at .05 finds with a chance of 80 %.

    clusters: over so many. sd: per cluster, as the test takes it; sd_found: as it is, if not the
    same. Quantiles of t with clusters - 1 degrees of freedom. tests: of several, at the first level
    of Holm's.
    """
    clusters = np.asarray(clusters, float)
    significant = stdtrit(clusters - 1, 1 - 0.025 / np.maximum(tests, 1))
    found = stdtrit(clusters - 1, 0.8)
    return (significant * sd + found * (sd if sd_found is None else sd_found)) / np.sqrt(clusters)


def detectable_rates(difference: Difference, of_peers: Difference | None = None, *, tests=1):
    """Return what four of five such runs find of a difference of two rates; NaN where not even 1.

    The sample size for two proportions (Fleiss 1981): the test has both at their mean. Who knows a
    share of the first kind to be its own, and as many of the second not to be, and claims the rest
    with one probability, has that share as the difference (Snodgrass and Corwin 1988). There is one
    reply per cluster and author; those of a cluster correlate by `TOGETHER`, our choice by
    simulation. of_peers: what is taken off for the word, by as many more replies. Without a false
    claim their interval counts clusters (`Rate.interval`).
    """
    own = difference.a
    others = difference.b
    hits = (own.value * own.n + 0.5) / (own.n + 1)
    false_claims = (others.value * others.n + 0.5) / (others.n + 1)
    guessing = false_claims / (1 - hits + false_claims)
    tried = DIFFERENCES.reshape(-1, *[1] * guessing.ndim)
    low = guessing * (1 - tried)
    high = tried + low
    share = ratio(own.n, others.n)
    share = share + (1 - share) * np.exp(-low * others.n)
    if of_peers is not None:
        peers = ratio(own.n, of_peers.a.n) + ratio(own.n, of_peers.b.n)
        share = share + np.where(np.isnan(of_peers.value), 0, peers)
    middle = (low + high) / 2
    together = (1 - TOGETHER) * middle * (1 - middle) * (1 + share)
    apart = (1 - TOGETHER) * (high * (1 - high) + share * low * (1 - low))
    needed = detectable_difference(difference.kish, np.sqrt(together), np.sqrt(apart), tests=tests)
    is_found = needed <= tried
    first = DIFFERENCES[is_found.argmax(0)]
    return np.where(is_found.any(0), first, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def z_scores(h, n1, f, n0):
    """Return d' and criterion with the correction in proportion to prevalence.

    They are exactly 0 at constant answers. The usual +0.5 / +1 (Hautus 1995) gives an evaluator
    that never claims a d' above 0 when n1 and n0 differ.
    """
    total = np.maximum(n0 + n1, 1)
    a = n1 / total
    b = n0 / total
    zh = ndtri(np.asarray((h + a) / (n1 + 2 * a)))
    zf = ndtri(np.asarray((f + b) / (n0 + 2 * b)))
    return zh - zf, -(zh + zf) / 2
