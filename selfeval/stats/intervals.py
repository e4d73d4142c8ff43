"""Intervals for rates measured in clusters that hold near 0 and 1 too: arrays in, arrays out.

The unit that was sampled is the cluster (a writing prompt with all its texts), so variances, resamples and
degrees of freedom count clusters, never rows. Everything works on many statistics at once: a value has shape
(...), its `contrib` has shape (clusters, ...) and sums to zero over clusters; under cluster weights w the
statistic is value + sum of w * contrib, exactly so in a balanced design and to first order otherwise.

Estimate            what every interval function returns
Rate, Difference    boundary-safe intervals: Wilson at the effective sample size, MOVER for differences

`bootstrap` has the clustered t, percentile and BCa beside them, `testing` the tests and the power.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

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


def check_level(level: float) -> float:
    """Return the two-sided normal quantile of a confidence level."""
    if not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise InputError(f"`level` must lie between 0 and 1, got {level!r}.")
    return float(ndtri((1 + level) / 2))


def ratio(a, b):
    """Divide, with NaN where the denominator is 0."""
    b = np.asarray(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b == 0, np.nan, np.asarray(a) / b)


def wilson(p, n, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval of a proportion p at sample size n (Wilson 1927), z the normal quantile."""
    p, n = np.asarray(p, float), np.asarray(n, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return np.clip(np.minimum(centre - half, p), 0, 1), np.clip(np.maximum(centre + half, p), 0, 1)


def within_range(value, variance, t, least, most=1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval value +- t sqrt(variance) bent so that it stays between `least` and `most`.

    Wilson's interval of the value's place p in its range, at the effective sample size p (1 - p) / variance (Korn and
    Graubard 1998) and with the quantile of t for that of the normal: no row bounds the size, so the interval is as wide
    as that of t in the middle and bends near an end. NaN where the value lies outside the range.
    """
    width = most - least
    p = (np.asarray(value) - least) / width
    low, high = wilson(p, ratio(p * (1 - p) * width**2, variance), t)
    return least + width * low, least + width * high


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

        At most 1 - 1 / clusters: sides that agree in every cluster seen would leave an interval without width. Of
        differences at most 1 - 1 / clusters that carry it, (sum of ab)^2 / sum of (ab)^2: near 0 and 1 those are the
        few that hold the rarer answer, and what agrees in two or three of them says little.
        """
        a, b = self.a.contrib, self.b.contrib
        cross = np.einsum("p...,p...->...", a, b)
        norm = np.sqrt(np.einsum("p...,p...->...", a, a) * np.einsum("p...,p...->...", b, b))
        r = np.where(norm > BOUND**2, cross / np.where(norm > 0, norm, 1), 0)
        behind = self.clusters
        if isinstance(self.a, Difference):
            carrying = ratio(np.einsum("p...,p...->...", np.abs(a), np.abs(b)) ** 2, ((a * b) ** 2).sum(0))
            behind = np.fmin(behind, carrying)
        return np.clip(r, -1, 1 - 1 / np.maximum(behind, 1))

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
