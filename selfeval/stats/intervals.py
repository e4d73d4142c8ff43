"""Intervals, tests and power for rates measured in clusters: arrays in, arrays out.

The unit that was sampled is the cluster (a writing prompt with all its texts), so variances, resamples and
degrees of freedom count clusters, never rows. Everything works on many statistics at once: a value has shape
(...), its `contrib` has shape (clusters, ...) and sums to zero over clusters; under cluster weights w the
statistic is value + sum of w * contrib, exactly so in a balanced design and to first order otherwise.

Estimate            what every interval function returns
Rate, Difference    boundary-safe intervals: Wilson at the effective sample size, MOVER for differences
clustered_t         t interval on the cluster contributions
cluster_weights, bootstrap_estimates    percentile and BCa from one product of weights and counts
inverted_p, permutation_p, holm         tests
power, detectable_difference            planning
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import stats as sps
from scipy.special import ndtr, ndtri, stdtrit

from selfeval.display import Rich
from selfeval.errors import InputError

BOUND = 1e-12  # a rate this close to 0 or 1 is at it


class Estimate(NamedTuple):
    """Hold values with their intervals: arrays of one shape, or floats.

    `n` counts rows, `n_prompts` clusters; `note` is empty or says what limits the interval.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float
    n: np.ndarray
    n_prompts: np.ndarray
    method: str
    note: np.ndarray | str = ""

    _repr_html_ = Rich._repr_html_
    _repr_pretty_ = Rich._repr_pretty_


def check_level(level: float) -> float:
    """Return the two-sided normal quantile of a confidence level."""
    if not 0 < level < 1:
        raise InputError(f"`level` must lie between 0 and 1, got {level!r}.")
    return float(ndtri((1 + level) / 2))


def ratio(a, b):
    """Divide, with NaN where the denominator is 0."""
    b = np.asarray(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b == 0, np.nan, np.asarray(a) / b)


# ---------------------------------------------------------------------------------------------------------------
# The default: Wilson at the effective sample size, MOVER for differences


def wilson(p, n, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval of a proportion p at sample size n (Wilson 1927), z the normal quantile."""
    p, n = np.asarray(p, float), np.asarray(n, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return np.clip(np.minimum(centre - half, p), 0, 1), np.clip(np.maximum(centre + half, p), 0, 1)


def cluster_variance(contrib, clusters) -> np.ndarray:
    """Return the variance of a statistic from its cluster contributions; NaN with a single cluster."""
    clusters = np.asarray(clusters, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(clusters > 1, clusters / (clusters - 1), np.nan) * np.einsum("p...,p...->...", contrib, contrib)


def effective_n(p, variance, clusters, rows) -> np.ndarray:
    """Return p (1 - p) / variance within [clusters / 2, rows]; the number of clusters where p is 0 or 1.

    Korn and Graubard 1998 (effective sample size for proportions in clusters); the bounds keep a variance that
    happens to be tiny or huge in few clusters from deciding the interval.
    """
    p = np.asarray(p, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = np.clip(p * (1 - p) / variance, np.asarray(clusters) / 2, rows)
    flat = (p <= BOUND) | (p >= 1 - BOUND) | ~np.isfinite(variance)
    return np.where(flat, clusters, n)


def earned_n(n, contrib, clusters) -> np.ndarray:
    """Take back what of an effective size above the number of clusters rests on few of them.

    Near 0 and 1 a variance rests on the few clusters that hold the rarer answer, and is as uncertain as they are few:
    about (sum c^2)^2 / sum c^4 of them, with twice as many degrees of freedom (Satterthwaite 1946). As in Korn and
    Graubard 1998 the size shrinks by the squared ratio of normal and t quantiles at 95 %, never below the clusters.
    """
    square = contrib**2
    carrying = ratio(square.sum(0) ** 2, (square**2).sum(0))
    shrunk = n * (ndtri(0.975) / stdtrit(2 * carrying, 0.975)) ** 2
    return np.fmax(np.minimum(n, clusters), shrunk)


def stratified_size(p, trials, weight, axis: int) -> np.ndarray:
    """Return the size at which one proportion is as precise as a weighted mean of independent ones.

    p, trials, weight: the proportions along `axis`. A mean of unlike rates (.9 and .1) varies less than a single rate
    of its height, so its effective size may exceed its trials. Rates are pulled to 1/2 by two trials and two successes
    (Agresti and Coull 1998), so that rates that happen to be 0 or 1 do not seem certain.
    """
    trials = np.maximum(trials, 1)
    p = np.nan_to_num(p)
    smooth = (p * trials + 2) / (trials + 4)
    variance = (weight**2 * smooth * (1 - smooth) / trials).sum(axis)
    mean, total = (weight * p).sum(axis), ((weight > 0) * trials).sum(axis)
    return np.maximum(total, mean * (1 - mean) / np.where(variance > 0, variance, np.inf))


def mover(a, a_low, a_high, b, b_low, b_high, r=0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a - b from the intervals of a and b, with r the correlation of the two estimates.

    Method of variance estimates recovery: Newcombe 1998 (method 10), Zou and Donner 2008.
    """

    def root(x, y):
        return np.sqrt(np.maximum(x**2 - 2 * r * x * y + y**2, 0))

    return a - b - root(a - a_low, b_high - b), a - b + root(a_high - a, b - b_low)


@dataclass(eq=False)
class Rate:
    """A proportion, or a mean of proportions, over clusters.

    value, trials (Bernoulli trials behind it), clusters: shape (...); contrib: (clusters, ...). most: the largest
    effective size that can be believed, by default the trials; see `stratified_size`. few_clusters: shrink the
    effective size by the ratio of normal and t quantiles, which a variance from few clusters needs (Korn and
    Graubard 1998); a single cluster then has no interval.
    """

    value: np.ndarray
    contrib: np.ndarray
    trials: np.ndarray
    clusters: np.ndarray
    most: np.ndarray | None = None
    few_clusters: bool = False

    @classmethod
    def of(cls, hits, n) -> Rate:
        """Build the ratio of sums over clusters from counts of shape (clusters, ...)."""
        hits, n = np.asarray(hits, float), np.asarray(n, float)
        total = n.sum(0)
        value = ratio(hits.sum(0), total)
        contrib = np.nan_to_num((hits - value * n) / np.where(total == 0, 1, total))
        return cls(value, contrib, total, (n > 0).sum(0))

    @classmethod
    def of_means(cls, values, trials) -> Rate:
        """Build the mean over clusters of their own rates, shape (clusters, ...), NaN where a cluster has none.

        Every cluster counts alike, however many trials are behind it. The interval is that for few clusters.
        """
        values, known = np.asarray(values, float), ~np.isnan(values)
        clusters = known.sum(0)
        value = ratio(np.where(known, values, 0).sum(0), clusters)
        contrib = np.where(known, values - value, 0) / np.maximum(clusters, 1)
        return cls(value, contrib, (trials * known).sum(0), clusters, few_clusters=True)

    @classmethod
    def of_rows(cls, success, cluster) -> Rate:
        """Build the rate of one column of successes (true or false, one per row) and its clusters."""
        _, codes = np.unique(np.asarray(cluster), return_inverse=True)
        return cls.of(np.bincount(codes, np.asarray(success, float)), np.bincount(codes))

    @cached_property
    def variance(self) -> np.ndarray:
        return cluster_variance(self.contrib, self.clusters)

    @cached_property
    def n_eff(self) -> np.ndarray:
        most = self.trials if self.most is None else self.most
        return earned_n(effective_n(self.value, self.variance, self.clusters, most), self.contrib, self.clusters)

    @property
    def method(self) -> str:
        return "wilson_effective_n"

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z."""
        return wilson(self.value, self._effective_n_at(z), z)

    def _effective_n_at(self, z: float) -> np.ndarray:
        if not self.few_clusters:
            return self.n_eff
        degrees, p = np.maximum(self.clusters - 1, 1), np.clip(self.value, 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            shrunk = p * (1 - p) / self.variance * (z / stdtrit(degrees, ndtr(z))) ** 2
        most = self.trials if self.most is None else self.most
        flat = (p <= BOUND) | (p >= 1 - BOUND)
        shrunk = np.where(self.variance > 0, shrunk, np.inf)  # clusters that happen to be alike
        n = np.where(flat, self.clusters, np.clip(shrunk, self.clusters / 2, most))
        return np.where(self.clusters > 1, n, np.nan)

    def estimate(self, level: float = 0.95) -> Estimate:
        """Return the rate with its interval."""
        return Estimate(self.value, *self.interval(check_level(level)), level, self.trials, self.clusters, self.method)

    def complement(self) -> Rate:
        """Return 1 minus the rate."""
        return Rate(1 - self.value, -self.contrib, self.trials, self.clusters, self.most, self.few_clusters)


@dataclass(eq=False)
class Difference:
    """A difference of two rates, or of two such differences; the interval is nested MOVER."""

    a: Rate | Difference
    b: Rate | Difference

    @cached_property
    def value(self) -> np.ndarray:
        return self.a.value - self.b.value

    @cached_property
    def contrib(self) -> np.ndarray:
        return self.a.contrib - self.b.contrib

    @cached_property
    def clusters(self) -> np.ndarray:
        return np.maximum(self.a.clusters, self.b.clusters)

    @cached_property
    def trials(self) -> np.ndarray:
        return self.a.trials + self.b.trials

    @cached_property
    def variance(self) -> np.ndarray:
        return cluster_variance(self.contrib, self.clusters)

    @cached_property
    def correlation(self) -> np.ndarray:
        """Correlation of the two sides over clusters; 0 where one of them does not vary.

        At most 1 - 1 / clusters: sides that agree in every cluster seen would leave an interval without width.
        """
        a, b = self.a.contrib, self.b.contrib
        cross = np.einsum("p...,p...->...", a, b)
        norm = np.sqrt(np.einsum("p...,p...->...", a, a) * np.einsum("p...,p...->...", b, b))
        r = np.where(norm > BOUND**2, cross / np.where(norm > 0, norm, 1), 0)
        return np.clip(r, -1, 1 - 1 / np.maximum(self.clusters, 1))

    @property
    def method(self) -> str:
        return "mover_nested" if isinstance(self.a, Difference) else "mover"

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z."""
        (a_low, a_high), (b_low, b_high) = self.a.interval(z), self.b.interval(z)
        return mover(self.a.value, a_low, a_high, self.b.value, b_low, b_high, self.correlation)

    def estimate(self, level: float = 0.95) -> Estimate:
        """Return the difference with its interval."""
        return Estimate(self.value, *self.interval(check_level(level)), level, self.trials, self.clusters, self.method)


def inverted_p(statistic: Rate | Difference, null: float = 0.0) -> np.ndarray:
    """Return the two-sided p-value whose interval just touches `null`; NaN where there is no interval."""
    shape = np.shape(statistic.value)
    inside, outside = np.full(shape, 40.0), np.zeros(shape)  # z at which the interval holds null, and does not
    for _ in range(50):
        z = (inside + outside) / 2
        low, high = statistic.interval(z)
        holds = (low <= null) & (null <= high)
        inside, outside = np.where(holds, z, inside), np.where(holds, outside, z)
    return np.where(np.isnan(statistic.interval(1.0)[0]), np.nan, 2 * ndtr(-outside))


# ---------------------------------------------------------------------------------------------------------------
# Clustered t and the bootstrap over clusters


def clustered_t(value, contrib, clusters, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the t interval with clusters - 1 degrees of freedom; NaN with a single cluster."""
    df = np.maximum(np.asarray(clusters) - 1, 1)
    half = stdtrit(df, (1 + level) / 2) * np.sqrt(cluster_variance(contrib, clusters))
    return value - half, value + half


def jackknife_contrib(leave_one_out) -> np.ndarray:
    """Return contributions from leave-one-cluster-out values, shape (clusters, ...): for any smooth statistic."""
    clusters = len(leave_one_out)
    return -(clusters - 1) / clusters * (leave_one_out - leave_one_out.mean(0))


def cluster_weights(clusters: int, n_resamples: int, rng: np.random.Generator, dtype=np.float32) -> np.ndarray:
    """Draw bootstrap weights, shape (clusters, n_resamples): how often each resample holds each cluster.

    Counting integer draws is four times faster than `rng.multinomial`.
    """
    weights = np.empty((clusters, n_resamples), dtype)
    step = max(1, 4_000_000 // clusters)
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        draws = rng.integers(clusters, size=(size, clusters), dtype=np.int32) * np.int64(size)
        draws += np.arange(size)[:, None]
        weights[:, start : start + size] = np.bincount(draws.ravel(), minlength=size * clusters).reshape(clusters, size)
    return weights


def _sort_rows(samples: np.ndarray) -> None:
    """Sort each row in place, large arrays in threads (numpy sorts outside the interpreter lock)."""
    if samples.size < 500_000:
        return samples.sort(axis=1)
    blocks = np.array_split(samples, os.cpu_count() or 1)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda block: block.sort(axis=1), blocks))


def _row_quantiles(ordered: np.ndarray, finite: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Interpolate linearly in rows sorted in place, NaN last; q has one probability per row."""
    at = np.nan_to_num(q) * np.maximum(finite - 1, 0)
    below = np.floor(at).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(finite - 1, 0))
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below].astype(float), ordered[rows, above].astype(float)
    return low + (high - low) * (at - below)


def bootstrap_intervals(samples, value, contrib, level: float) -> tuple[np.ndarray, ...]:
    """Return percentile low, high, BCa low, high, and where BCa fell back to the percentile interval.

    samples: (statistics, resamples), overwritten by sorting; value: (statistics,); contrib: (clusters, statistics).
    Samples in single precision give bounds rounded to six decimals.
    BCa: Efron 1987, with ties counted half and the acceleration from the cluster contributions (those of the
    jackknife in a balanced design). It is undefined where the resamples do not vary or lie on one side of the value.
    """
    value = np.asarray(value, float)
    tie = 1e-9 if samples.dtype == np.float64 else 2e-6  # equal resamples differ in the last digit
    size = samples.shape[1]
    _sort_rows(samples)
    missing = np.isnan(samples[:, -1]).any()
    finite = size - np.isnan(samples).sum(1) if missing else np.full(len(samples), size)
    below = np.array([np.searchsorted(row, v - tie) for row, v in zip(samples, value, strict=True)])
    upto = np.array([np.searchsorted(row, v + tie, "right") for row, v in zip(samples, value, strict=True)])
    upto = np.minimum(upto, finite)
    tail = (1 - level) / 2
    low = _row_quantiles(samples, finite, np.full(len(samples), tail))
    high = _row_quantiles(samples, finite, np.full(len(samples), 1 - tail))
    square = np.einsum("ps,ps->s", contrib, contrib)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = ndtri((below + upto) / (2 * finite))
        accel = np.einsum("ps,ps,ps->s", contrib, contrib, contrib) / (6 * square**1.5)
        z = ndtri(np.array([[tail], [1 - tail]])) + bias
        q = ndtr(bias + z / (1 - accel * z))
    fallback = ~np.isfinite(q).all(0) | (square <= BOUND**2) | (upto - below >= finite)
    bca = [_row_quantiles(samples, finite, side) for side in q]
    bca = [np.where(fallback, plain, side) for plain, side in zip((low, high), bca, strict=True)]
    bounds = np.where(finite == 0, np.nan, [low, high, *bca])
    return (*(bounds if samples.dtype == np.float64 else bounds.round(6)), fallback)


# ---------------------------------------------------------------------------------------------------------------
# Tests and planning


def permutation_p(own_hits, own_n, hits, n) -> np.ndarray:
    """Return the exact two-sided p-value of permuting, within each cluster, which items are one's own.

    own_hits, own_n, hits, n: (clusters, ...): claims and items among one's own, and among all. Given the claims of
    a cluster, the claims that fall on one's own items are hypergeometric; their sum over clusters is convolved
    exactly, so no draws and no seed. NaN where no cluster holds both own and other items.
    """
    shape = np.shape(own_hits)[1:]
    own_hits, own_n, hits, n = (np.asarray(x).reshape(len(x), -1).astype(int) for x in (own_hits, own_n, hits, n))
    possible = ((own_n > 0) & (own_n < n)).any(0)
    informative = (own_n > 0) & (own_n < n) & (hits > 0) & (hits < n)
    own_n, hits = np.where(informative, own_n, 0), np.where(informative, hits, 0)
    n = np.where(informative, n, 1)
    own_hits = np.where(informative, own_hits, 0)
    widest = own_n.max(initial=0)
    pmf = sps.hypergeom.pmf(np.arange(widest + 1)[:, None, None], n, own_n, hits)
    law = np.zeros((own_n.max(1, initial=0).sum() + 1, own_n.shape[1]))
    law[0] = 1
    filled = 1
    for p in np.flatnonzero(informative.any(1)):
        width = own_n[p].max()
        new = np.zeros((filled + width, own_n.shape[1]))
        for k in range(width + 1):
            new[k : k + filled] += law[:filled] * pmf[k, p]
        filled += width
        law[:filled] = new
    distance = np.abs(np.arange(len(law))[:, None] - (own_n * hits / n).sum(0))
    observed = np.abs(own_hits.sum(0) - (own_n * hits / n).sum(0))
    p = np.minimum((law * (distance >= observed - 1e-9)).sum(0), 1)
    return np.where(possible, p, np.nan).reshape(shape)


def holm(p) -> np.ndarray:
    """Adjust p-values for the number of tests (Holm 1979); NaN is no test and stays NaN."""
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def detectable_difference(n_prompts, *, sd: float = 0.55, power: float = 0.8, alpha: float = 0.05, t: bool = False):
    """Return the smallest true difference that a two-sided test finds with the given power.

    sd is that of the per-prompt contrast, about .55 for J with one text per prompt and author. Normal
    approximation; t=True uses t quantiles with n_prompts - 1 degrees of freedom, for few prompts.
    """
    n_prompts = np.asarray(n_prompts, float)
    if t:
        quantiles = sps.t.ppf(1 - alpha / 2, n_prompts - 1) + sps.t.ppf(power, n_prompts - 1)
    else:
        quantiles = ndtri(1 - alpha / 2) + ndtri(power)
    return quantiles * sd / np.sqrt(n_prompts)


def power(difference, n_prompts, *, sd: float = 0.55, alpha: float = 0.05):
    """Return the chance that a two-sided test finds a true difference (normal approximation)."""
    shift, bar = np.abs(difference) * np.sqrt(n_prompts) / sd, ndtri(1 - alpha / 2)
    return ndtr(shift - bar) + ndtr(-shift - bar)
