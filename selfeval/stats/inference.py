"""Tests of rates measured in clusters, their correction for many of them, and power."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats as sps
from scipy.special import ndtr, ndtri

from selfeval.stats.engine import Statistic

DRAWS = 9_999  # arrangements drawn where there are more; with the observed one p is at least .0001
BLOCK = 200  # clusters drawn at a time


def inverted_p(statistic: Statistic, null: float, z: float) -> np.ndarray:
    """Return the two-sided p-value whose interval just touches `null`; NaN where there is no interval.

    z: the normal quantile of the printed interval. It is looked at first, so that p and this interval never disagree,
    also where an interval does not grow evenly with its level.
    """
    shape = np.shape(statistic.value)
    inside, outside, at = np.full(shape, 40.0), np.zeros(shape), z  # z at which the interval holds null, and does not
    for _ in range(45):
        low, high = statistic.interval(at)
        holds = (low <= null) & (high >= null)
        inside, outside = np.where(holds, at, inside), np.where(holds, outside, at)
        at = (inside + outside) / 2
    return np.where(np.isnan(statistic.interval(z)[0]), np.nan, 2 * ndtr(-outside))


def permutation_p(values, prompt, author, own: int, *, seed: int = 0) -> float:
    """Return the two-sided p-value of permuting, within each prompt, which author is the evaluator.

    values: a number per row (a claim, the rank of a score), whose sum over the evaluator's own texts is the statistic;
    prompt, author: codes. Of claims it is the conditional Cochran-Mantel-Haenszel test (Birch 1964). NaN where an
    author has several rows of a prompt, for these are alike and authors have not equally many, and without a prompt
    that has own and other texts.
    """
    rows = pd.DataFrame({"prompt": prompt, "author": author, "value": values})
    if own < 0 or rows.empty or rows.duplicated(["prompt", "author"]).any():
        return np.nan
    each = rows.pivot(index="prompt", columns="author", values="value")
    each = each[each[own].notna() & (each.notna().sum(axis=1) > 1)] if own in each else each.head(0)
    return rearranged_p(each.to_numpy(), each[own].sum(), seed=seed)[0] if len(each) else np.nan


def rearranged_p(options, observed: float, values=(), size: int = 0, *, seed: int = 0) -> tuple[float, float]:
    """Return the two-sided p of a sum over clusters under rearrangement, and the least p that is possible.

    options: (clusters, most): what each cluster would give under each way of its labels, NaN where there are fewer
    ways; values: what further clusters give if they are among the `size` that have the label. p is the share of
    arrangements whose sum is at least as far from their mean as `observed`: of all if there are at most `DRAWS`, else
    of as many drawn with `seed`, the observed one counted in (Phipson and Smyth 2010). NaN where nothing can change.
    """
    options = np.asarray(options, float) if len(options) else np.zeros((0, 1))
    values = np.asarray(values, float)
    picks, ways = math.comb(len(values), size), np.isfinite(options).sum(1)
    if picks * math.prod(ways.tolist()) < 2:
        return np.nan, 1.0
    moving = np.nanmax(options, 1) > np.nanmin(options, 1)
    still = np.nanmax(options[~moving], 1).sum()
    centre = (np.nansum(options, 1) / ways).sum() + size * (values.mean() if len(values) else 0)
    every = picks * math.prod(ways[moving].tolist()) <= DRAWS
    sums = still + (_all_sums if every else _drawn_sums)(options[moving], values, size, seed)
    distance, observed = np.abs(sums - centre), abs(observed - centre)
    tie = 1e-9 * max(distance.max(), 1)
    beyond = (distance >= observed - tie).sum()
    if not every:
        return (1 + beyond) / (1 + DRAWS), 1 / (1 + DRAWS)
    return beyond / len(sums), float((distance >= distance.max() - tie).mean())


def _all_sums(options: np.ndarray, values: np.ndarray, size: int, seed: int) -> np.ndarray:
    sums = np.array([values[list(chosen)].sum() for chosen in combinations(range(len(values)), size)])
    for row in options:
        sums = (sums[:, None] + row[np.isfinite(row)]).ravel()
    return sums


def _drawn_sums(options: np.ndarray, values: np.ndarray, size: int, seed: int) -> np.ndarray:
    rng, sums = np.random.default_rng(seed), np.zeros(DRAWS)
    options = np.sort(options, 1)  # NaN last
    ways = np.isfinite(options).sum(1, keepdims=True).astype(np.float32)
    for start in range(0, len(options), BLOCK):
        part = options[start : start + BLOCK]
        chosen = (rng.random((len(part), DRAWS), np.float32) * ways[start : start + BLOCK]).astype(np.intp)
        sums += np.take_along_axis(part, chosen, 1).sum(0)
    if 0 < size < len(values):
        sums += values[np.argsort(rng.random((DRAWS, len(values))), 1)[:, :size]].sum(1)
    return sums + (values.sum() if size == len(values) else 0)


def holm(p) -> np.ndarray:
    """Adjust p-values for the number of tests (Holm 1979); NaN is no test and stays NaN."""
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def detectable_difference(n_prompts, *, sd=0.55, t: bool = False):
    """Return the true difference that a two-sided test at .05 finds with a chance of 80 % over so many prompts.

    sd is that of the per-prompt contrast, about .55 for J with one text per prompt and author. Normal
    approximation; t=True uses t quantiles with n_prompts - 1 degrees of freedom, for few prompts.
    """
    n_prompts = np.asarray(n_prompts, float)
    bar, beyond = (sps.t.ppf(q, n_prompts - 1) if t else ndtri(q) for q in (0.975, 0.8))
    return (bar + beyond) * sd / np.sqrt(n_prompts)
