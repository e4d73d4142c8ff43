"""The one engine of statistics: sums by cluster in, estimates with intervals out; arrays in, arrays out.

The unit that was sampled is the cluster (a writing prompt with all its texts, a template, a conversation), so
variances, resamples and degrees of freedom count clusters, never rows. A statistic has a `value` (...) and the
contributions of its clusters, `contrib` (clusters, ...). Rates and their differences also have `at(weights)`, the value
under weights of the clusters (clusters, B) as (..., B): weights of a resample give the bootstrap, exactly.

The default intervals, each at a normal quantile z:

    Rate         Wilson (1927) at the effective sample size of Korn and Graubard (1998), with Satterthwaite's (1946)
                 degrees of freedom, as recommended by Franco, Little, Louis and Slud (2019); at the number of clusters,
                 with one degree of freedom less, where each has one row. Clusters count by their weight (Kish 1965)
    Difference   method of variance estimates recovery (Zou and Donner 2008) with the correlation of the contributions,
                 shrunk; for a difference of differences it is nested, which is an extension of ours
    Area         an AUC: the clustered variance of DeLong et al. (1988) and Obuchowski (1997), t on the logit scale;
                 a share of pairs with one pair per cluster is a Rate
    Function     any smooth function of sums: t on the jackknife over clusters; bent within its range where it has one
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, ndtri, stdtrit

from selfeval.errors import InputError, check_whole

BOUND = 1e-12  # a rate this close to 0 or 1 is at it
CHUNK = 4_000_000  # numbers drawn at a time in resampling: more need memory and time
TIE = 2e-6  # samples this close are one number: they are in single precision
LEAST_DF = 7  # degrees of freedom of a rate, unless the clusters leave fewer
DRAWS = 9_999  # arrangements drawn where there are more; with the observed one p is at least .0001
BLOCK = 200  # clusters drawn at a time


def check_level(level: float) -> float:
    """Return the two-sided normal quantile of a confidence level."""
    if not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise InputError(f"`level` must lie between 0 and 1, got {level!r}.")
    return float(ndtri((1 + level) / 2))


def ratio(a, b):
    """Divide, with NaN where the denominator is 0."""
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b == 0, np.array(np.nan, np.result_type(a, b, np.float32)), a / b)


def kish_number(weight) -> np.ndarray:
    """Return (sum of weights)^2 / sum of squared weights over the first axis, 0 without any (Kish 1965)."""
    weight = np.asarray(weight, float)
    return np.nan_to_num(ratio(weight.sum(0) ** 2, (weight**2).sum(0)))


def left_out(contrib, weight) -> np.ndarray:
    """Return contributions by what leaving a cluster out changes: as they are where all clusters weigh alike.

    A cluster that holds much of the rows pulls the mean towards itself, so that its own contribution is too small.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(
            contrib * (1 - 1 / kish_number(weight)) / (1 - weight), posinf=0, neginf=0
        )


def wilson(p, n, z) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval of a proportion p at sample size n (Wilson 1927), z the normal quantile."""
    p, n = np.asarray(p, float), np.asarray(n, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return np.clip(np.minimum(centre - half, p), 0, 1), np.clip(np.maximum(centre + half, p), 0, 1)


def within_range(value, variance, t, least, most) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval value +- t sqrt(variance), bent so that it stays between `least` and `most`.

    Wilson's interval of the value's place in its range, at the effective sample size and with the quantile of t: as
    wide as that of t in the middle, bending near an end. NaN where the value lies outside the range.
    """
    width = most - least
    p = (np.asarray(value, float) - least) / width
    low, high = wilson(p, ratio(p * (1 - p) * width**2, variance), t)
    return least + width * low, least + width * high


def mover(a, a_low, a_high, b, b_low, b_high, r=0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a - b from the intervals of a and b, with r the correlation of the two estimates.

    Newcombe 1998 (method 10), Zou and Donner 2008.
    """

    def root(x, y):
        return np.sqrt(np.maximum(x**2 - 2 * r * x * y + y**2, 0))

    return a - b - root(a - a_low, b_high - b), a - b + root(a_high - a, b - b_low)


# ---------------------------------------------------------------------------------------------------------------
# Statistics


@dataclass(eq=False)
class Statistic:
    """One statistic, or many of one kind in an array.

    value (...); contrib (clusters, ...), which sum to 0 over clusters; n (...): rows behind it; clusters (...): how
    many hold any. at: its value under weights, of what is resampled. The interval of this class is the clustered t.
    """

    value: np.ndarray
    contrib: np.ndarray
    n: np.ndarray
    clusters: np.ndarray
    at: Callable[[np.ndarray], np.ndarray] | None = None
    method = "clustered_t"

    @cached_property
    def kish(self) -> np.ndarray:
        """Kish's (1965) number of clusters: so many that weigh alike would say as much."""
        return np.asarray(self.clusters, float)

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance from the contributions of clusters; NaN with a single cluster."""
        k = self.kish
        return ratio(k, np.maximum(k - 1, 0)) * np.einsum(
            "p...,p...->...", self.contrib, self.contrib
        )

    @cached_property
    def df(self) -> np.ndarray:
        """Degrees of freedom of t: whole clusters, less one."""
        return np.maximum(np.floor(self.kish + 1e-9) - 1, 1)

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z; NaN where nothing varies."""
        half = stdtrit(self.df, ndtr(z)) * np.sqrt(
            np.where(self.variance > BOUND**2, self.variance, np.nan)
        )
        return self.value - half, self.value + half

    def __sub__(self, other: Statistic) -> Difference:
        clusters = np.maximum(self.clusters, other.clusters)
        both = self.value - other.value, self.contrib - other.contrib, self.n + other.n, clusters
        return Difference(*both, lambda w: self.at(w) - other.at(w), self, other)

    def mapped(self, function: Callable) -> Mapped:
        """Return a monotone function of it."""
        slope = (function(self.value + 1e-6) - function(self.value - 1e-6)) / 2e-6
        found = Mapped(
            function(self.value), self.contrib * slope, self.n, self.clusters, None, self, function
        )
        found.method, found.kish = self.method, self.kish
        return found

    def pick(self, index, there=True) -> Statistic:
        """Return the statistics at an index of the value's axes; NaN where `there` is false."""
        value = np.where(there, self.value[index], np.nan)
        behind = (slice(None), *index)
        at = lambda w: self.at(w)[index]  # noqa: E731
        return replace(self, value=value, contrib=self.contrib[behind] * there, n=self.n[index],
                       clusters=self.clusters[index], at=at)  # fmt: skip


@dataclass(eq=False)
class Rate(Statistic):
    """A proportion, or a mean of proportions. weight (clusters, ...): what each cluster weighs in it, with sum 1."""

    weight: np.ndarray | None = None
    method = "wilson_effective_n"

    @classmethod
    def of(cls, hits, n, rows=None) -> Rate:
        """Build the ratio of sums over clusters, shapes (clusters, ...); rows: how many are behind it, if not n.

        A resample that misses a cell altogether keeps its value there.
        """
        hits, n = np.asarray(hits, float), np.asarray(n, float)
        n = np.broadcast_to(n, hits.shape)
        total = n.sum(0)
        value = ratio(hits.sum(0), total)
        contrib = np.nan_to_num((hits - value * n) / np.where(total == 0, 1, total))
        at = _weighted_ratio(hits, n, value)
        weight = n / np.where(total == 0, 1, total)
        return cls(
            value, contrib, total if rows is None else np.asarray(rows), (n > 0).sum(0), at, weight
        )

    @classmethod
    def of_rows(cls, success, cluster) -> Rate:
        """Build the rate of one column of successes (true or false, one per row) and its clusters."""
        codes = np.unique(np.asarray(cluster), return_inverse=True)[1]
        return cls.of(np.bincount(codes, np.asarray(success, float)), np.bincount(codes))

    def mean(self, weight, axis: int = -1) -> Rate:
        """Return the mean of the known rates that have weight (0 or 1, as the value), over one axis from the end."""
        use = (np.asarray(weight) > 0) & ~np.isnan(self.value)
        w = use / np.maximum(use.sum(axis, keepdims=True), 1)
        value = np.where(use.any(axis), (w * np.nan_to_num(self.value)).sum(axis), np.nan)
        single = np.moveaxis(w.astype(np.float32), axis, -1)

        @keep_last_result
        def at(weights):
            rates = np.moveaxis(self.at(weights), axis - 1, -2)
            return np.einsum("...mb,...m->...b", np.nan_to_num(rates), single)

        weight = (self.weight * w).sum(axis)
        n = (np.broadcast_to(self.n, use.shape) * use).sum(axis)
        return Rate(value, (self.contrib * w).sum(axis), n, (weight > 0).sum(0), at, weight)

    def pick(self, index, there=True) -> Rate:
        """Return the rates at an index of the value's axes; NaN where `there` is false."""
        found = super().pick(index, there)
        return replace(found, weight=self.weight[(slice(None), *index)])

    def complement(self) -> Rate:
        """Return 1 minus the rate."""
        return replace(
            self, value=1 - self.value, contrib=-self.contrib, at=lambda w: 1 - self.at(w)
        )

    @cached_property
    def kish(self) -> np.ndarray:
        """Kish's number of clusters, by their weights."""
        return kish_number(self.weight)

    @cached_property
    def square(self) -> np.ndarray:
        """Squared contributions (clusters, ...), those of the jackknife."""
        return left_out(self.contrib, self.weight) ** 2

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance from the contributions of clusters; NaN with a single cluster."""
        return ratio(self.kish, np.maximum(self.kish - 1, 0)) * self.square.sum(0)

    @cached_property
    def effective(self) -> tuple[np.ndarray, np.ndarray]:
        """Effective sample size and Satterthwaite's degrees of freedom.

        n = p (1 - p) / variance within [clusters / 2, rows]; degrees of freedom at most clusters - 1 and at least half
        of the clusters, or 7, by Kish's number of clusters. The lower bounds are our stated choices: a single success
        would leave two degrees of freedom, and one success more gave a lower upper end.
        """
        k, square = self.kish, self.square
        with np.errstate(divide="ignore", invalid="ignore"):
            n = np.clip(self.value * (1 - self.value) / self.variance, k / 2, self.n)
        most = np.maximum(k - 1, 1)
        return n, np.clip(
            2 * ratio(square.sum(0) ** 2, (square**2).sum(0)),
            np.minimum(np.maximum(k / 2, LEAST_DF), most),
            most,
        )

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return Wilson's interval at the effective sample size; none below two clusters, by Kish's number.

        The size shrinks by the squared ratio of normal and t quantiles, so that few clusters give a wide interval. With
        one row per cluster, and where nothing varies, it is Kish's number of clusters, with as many degrees of freedom
        less one: the normal quantile would find a blind evaluator out in .11 of designs with eight prompts.
        """
        p, k = self.value, self.kish
        n, df = self.effective
        nothing_varies = (p <= BOUND) | (p >= 1 - BOUND) | (self.variance <= BOUND**2)
        one_row_each = self.n == self.clusters
        by_clusters = k * _shrinkage(z, np.maximum(k - 1, 1))
        by_variance = np.fmax(n * _shrinkage(z, df), np.minimum(n, k / 2))
        size = np.where(nothing_varies | one_row_each, by_clusters, by_variance)
        return wilson(p, np.where(k > 2 - BOUND, size, np.nan), z)


def _shrinkage(z: float, df: np.ndarray) -> np.ndarray:
    """Return the squared ratio of the normal quantile z to that of t with the same tail."""
    z = np.maximum(
        z, 1e-3
    )  # below, scipy's t quantiles lose their digits, and the ratio no longer changes
    return np.maximum(
        (z / stdtrit(df, ndtr(z))) ** 2, BOUND
    )  # above 8, t is infinite; the interval is everything


def keep_last_result(at: Callable) -> Callable:
    """Keep the last result of a function of weights, for statistics that share a part."""
    kept = [None, None]

    def once(weights):
        if kept[0] is not weights:
            kept[:] = weights, at(weights)
        return kept[1]

    return once


def _weighted_ratio(hits, n, value) -> Callable:
    """Return the function that divides weighted sums."""
    k = len(hits)
    up, down = (np.ascontiguousarray(x.reshape(k, value.size).T, np.float32) for x in (hits, n))
    full = np.asarray(value, np.float32).reshape(-1, 1)

    @keep_last_result
    def at(weights):
        total = down @ weights
        rate = np.where(total > 0, (up @ weights) / np.where(total > 0, total, 1), full)
        return rate.reshape(*value.shape, -1)

    return at


@dataclass(eq=False)
class Difference(Statistic):
    """A difference of two rates, or of two such differences."""

    a: Statistic | None = None
    b: Statistic | None = None

    @property
    def method(self) -> str:
        return "mover_nested" if isinstance(self.a, Difference) else "mover"

    @cached_property
    def kish(self) -> np.ndarray:
        """The lesser of the two sides' numbers of clusters."""
        return np.minimum(self.a.kish, self.b.kish)

    def pick(self, index, there=True) -> Difference:
        """Return the differences at an index of the value's axes; NaN where `there` is false."""
        return self.a.pick(index, there) - self.b.pick(index, there)

    @cached_property
    def correlation(self) -> np.ndarray:
        """Correlation of the two sides over clusters, shrunk by 1 - 3 / clusters; 0 where one of them does not vary.

        Few clusters give two unrelated sides a correlation by chance, which would narrow the interval, and sides that
        agree in every cluster seen would leave it without width. The 3 is our stated choice, by simulation: with less,
        blind evaluators are found out too often at 8 prompts, and one claim more can lower an end.
        """
        a, b = self.a.contrib, self.b.contrib
        cross = np.einsum("p...,p...->...", a, b)
        norm = np.sqrt(np.einsum("p...,p...->...", a, a) * np.einsum("p...,p...->...", b, b))
        plain = np.where(norm > BOUND**2, cross / np.where(norm > 0, norm, 1), 0)
        return plain * (1 - 3 / np.maximum(self.kish, 3))

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z."""
        (a_low, a_high), (b_low, b_high) = self.a.interval(z), self.b.interval(z)
        return mover(self.a.value, a_low, a_high, self.b.value, b_low, b_high, self.correlation)


@dataclass(eq=False)
class Mapped(Statistic):
    """A monotone function of a statistic, shown in its place: the bounds are mapped too."""

    base: Statistic | None = None
    function: Callable | None = None

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z."""
        bounds = np.stack([self.function(side) for side in self.base.interval(z)])
        return bounds.min(0), bounds.max(0)


@dataclass(eq=False)
class Function(Statistic):
    """Any smooth function of sums over clusters; within: the range that its interval must not leave."""

    within: tuple[float, float] | None = None

    @classmethod
    def of(cls, sums, formula: Callable, n, clusters=None, within=None) -> Function:
        """Build formula(sums over clusters), sums (clusters, ..., parts); formula: (..., parts) -> (...).

        The contributions are those of the jackknife over the clusters that hold anything; where one leaves nothing to
        estimate when left out, they are NaN and there is no interval.
        """
        sums = np.asarray(sums, float)
        total, present = sums.sum(0), (np.abs(sums) > 0).any(-1)
        k = np.maximum(present.sum(0), 1)
        clusters = present.sum(0) if clusters is None else clusters
        with np.errstate(divide="ignore", invalid="ignore"):
            value, left = np.asarray(formula(total)), np.where(present, formula(total - sums), 0)
            contrib = np.where(present, -(k - 1) / k * (left - left.sum(0) / k), 0)
        value = np.where(np.isfinite(value), value, np.nan)
        contrib = np.where(np.isfinite(contrib), contrib, np.nan)
        return cls(value, contrib, np.asarray(n), np.asarray(clusters), within=within)

    @property
    def method(self) -> str:
        return "bounded_t" if self.within else "clustered_t"

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z; NaN where nothing varies or the value ends its range."""
        if self.within is None:
            return super().interval(z)
        least, most = self.within
        inside = (self.value > least) & (self.value < most) & (self.variance > BOUND**2)
        bounds = within_range(self.value, self.variance, stdtrit(self.df, ndtr(z)), least, most)
        return tuple(np.where(inside, side, np.nan) for side in bounds)


@dataclass(eq=False)
class Area(Statistic):
    """An area under the ROC curve, or a share of pairs ordered rightly: P(one score is above another), ties half."""

    method = "logit_t"

    @classmethod
    def of(cls, high, high_cluster, low, low_cluster, size: int | None = None) -> Area:
        """Build P(a score of `high` is above one of `low`) over all pairs; clusters may hold both kinds or one.

        size: clusters are codes below it, and the contributions have a place for each of them.
        """
        high, low = np.asarray(high, float), np.asarray(low, float)
        names, codes = np.unique(np.concatenate([high_cluster, low_cluster]), return_inverse=True)
        h, m, k = codes[: len(high)], codes[len(high) :], len(names)
        place = _placements(high, low), 1 - _placements(low, high)
        value = np.float64(place[0].mean()) if len(high) and len(low) else np.float64(np.nan)
        sides = [
            np.bincount(c, (x - value) / max(len(x), 1), k)
            for c, x in zip((h, m), place, strict=True)
        ]
        contrib, df, kish = two_sides(*sides, *(np.bincount(c, minlength=k) for c in (h, m)))
        whole, seen = (np.zeros(size), names) if size else (np.zeros(k), slice(None))
        whole[seen] = contrib
        area = cls(value, whole, np.array(len(codes)), np.array(k))
        area.df, area.kish = df, kish
        return area

    @classmethod
    def within(cls, rate: Rate) -> Statistic:
        """Take a rate of pairs ordered rightly, such as those within a prompt, for an area.

        With one pair per cluster it stays what it is, a rate of clusters, and has the interval of one.
        """
        if (rate.n == rate.clusters).all():
            return rate
        area = cls(rate.value, left_out(rate.contrib, rate.weight), rate.n, rate.clusters, rate.at)
        area.kish = rate.kish
        return area

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return t on the logit scale; NaN where one side has fewer than two clusters, by Kish's number.

        At 0 and 1, and where nothing varies, it is Wilson's at the number of clusters of the smaller side.
        """
        p = np.clip(self.value, BOUND, 1 - BOUND)
        with np.errstate(divide="ignore", invalid="ignore"):
            half = stdtrit(self.df, ndtr(z)) * np.sqrt(self.variance) / (p * (1 - p))
            bent = [
                np.where(self.kish > 2 - BOUND, expit(logit(p) + side), np.nan)
                for side in (-half, half)
            ]
        flat = (self.value <= BOUND) | (self.value >= 1 - BOUND) | (self.variance <= BOUND**2)
        fewest = np.minimum(self.df + 1, self.kish)
        flat_bounds = wilson(self.value, np.where(fewest > 2 - BOUND, fewest, np.nan), z)
        return tuple(
            np.where(flat, one, other) for one, other in zip(flat_bounds, bent, strict=True)
        )


def _placements(scores, others) -> np.ndarray:
    """Return for each score the share of the others below it, ties half."""
    others = np.sort(others)
    below = np.searchsorted(others, scores, "left") + np.searchsorted(others, scores, "right")
    return below / (2 * max(len(others), 1))


def two_sides(one, other, n_one, n_other) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the contributions of clusters to what sets two sides apart, the degrees of freedom of its t, and Kish's k.

    one, other: what each cluster contributes to either side (clusters,), each with sum 0; n_one, n_other: how much of
    it each cluster holds. The variance of a side counts the clusters of that side (Obuchowski 1997) by Kish's number,
    and so do the degrees of freedom (Welch 1947), at most k - 1: three people against fifty models are three.
    Where every cluster holds as much of both it is the plain clustered variance. NaN where a side has a single cluster.
    k: all clusters, less by what Kish's number takes from the side that fewer of them dominate.
    """
    clusters, n = len(one), np.stack([n_one, n_other], 1)
    sizes, sides = (
        kish_number(n),
        left_out(np.stack([one, other], 1), n / np.maximum(n.sum(0), 1)).T,
    )
    k = clusters * ratio(sizes, (n > 0).sum(0)).min()
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = sides * np.sqrt(sizes / (sizes - 1) * (k - 1) / k)[:, None]
        square = (scaled**2).sum(1)
        df = square.sum() ** 2 / (square**2 / (sizes - 1)).sum()
    return scaled.sum(0), np.clip(np.nan_to_num(df), sizes.min() - 1, max(k - 1, 0)), k


def by_cluster(parts, cluster) -> np.ndarray:
    """Return sums (clusters, P) of parts of units (units, P); units whose parts are all 0 do not count."""
    parts = np.asarray(parts, float)
    used = (parts != 0).any(1)
    names, codes = np.unique(np.asarray(cluster)[used], return_inverse=True)
    return np.stack([np.bincount(codes, x, len(names)) for x in parts[used].T], 1)


# ---------------------------------------------------------------------------------------------------------------
# Bootstrap over clusters


@dataclass
class Settings:
    """What one table uses throughout. unit: what a cluster is; few: below how many of them a note warns."""

    n_resamples: int = 10_000
    level: float = 0.95
    seed: int = 0
    unit: str = "prompt"
    few: int = 40

    def __post_init__(self):
        self.z = check_level(self.level)
        for name, least, most in (
            ("n_resamples", 1, np.inf),
            ("seed", 0, 2**63 - 1),
        ):  # a table's column takes no more
            check_whole(name, getattr(self, name), least, most)

    def weights(self, clusters: int):
        """Yield the bootstrap's weights (clusters, B): how often each resample holds each cluster; the same every time.

        Counting integer draws is eight times faster than `rng.multinomial`.
        """
        rng = np.random.default_rng(self.seed)
        step = int(np.clip(CHUNK // clusters, 1, self.n_resamples))
        for start in range(0, self.n_resamples, step):
            size = min(step, self.n_resamples - start)
            draws = rng.integers(clusters, size=(size, clusters), dtype=np.int32)
            times = np.empty((size, clusters), np.float32)
            for row, draw in zip(times, draws, strict=True):
                row[:] = np.bincount(draw, minlength=clusters)
            yield np.ascontiguousarray(times.T)


def bootstrap(statistics: Sequence[Statistic], how: Settings) -> list[np.ndarray]:
    """Return (6, ...) of each statistic over the same clusters: percentile, BCa, where BCa is not defined, no width.

    Both from `how.n_resamples` resamples of clusters. BCa: Efron 1987, ties counted half, acceleration from the
    contributions; where the resamples do not vary or all lie on one side of the value it is the percentile interval.
    """
    drawn = [[] for _ in statistics]
    for weights in how.weights(len(statistics[0].contrib)) if statistics else ():
        for samples, statistic in zip(drawn, statistics, strict=True):
            samples.append(np.asarray(statistic.at(weights), np.float32))
    return [
        _bounds(np.concatenate(samples, -1), statistic, how.level)
        for samples, statistic in zip(drawn, statistics, strict=True)
    ]


def _bounds(samples, statistic: Statistic, level: float) -> np.ndarray:
    shape = np.shape(statistic.value)
    samples = samples.reshape(-1, samples.shape[-1])
    samples = np.sort(np.where(np.isfinite(samples), samples, np.float32(np.nan)), 1)
    finite, tails = (
        np.isfinite(samples).sum(1),
        ndtri([[(1 - level) / 2], [(1 + level) / 2]]),
    )  # NaN are sorted last
    q, fallback = _bca(samples, finite, statistic, tails)
    plain = np.broadcast_to(ndtr(tails), q.shape)
    found = [
        np.round(_quantile(samples, finite, at), 6)
        for at in (*plain, *np.where(fallback, plain, q))
    ]
    return np.stack([*found, fallback, found[1] - found[0] <= TIE]).reshape(6, *shape)


def _bca(samples, finite, statistic: Statistic, tails) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of the samples that are BCa's ends, and where they are not defined."""
    value = np.ravel(statistic.value)
    contrib = statistic.contrib.reshape(len(statistic.contrib), value.size)
    below, upto = ((samples < (value + side * TIE)[:, None]).sum(1) for side in (-1, 1))
    square = (contrib**2).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias, accel = ndtri((below + upto) / (2 * finite)), (contrib**3).sum(0) / (6 * square**1.5)
        q = ndtr(bias + (tails + bias) / (1 - accel * (tails + bias)))
    return q, ~np.isfinite(q).all(0) | (square <= BOUND**2) | (upto - below >= finite)


def _quantile(samples, finite, q) -> np.ndarray:
    """Interpolate linearly in sorted rows, one probability for each; NaN for a row without numbers."""
    at = q * np.maximum(finite - 1, 0)
    below = np.floor(at).astype(int)
    above, rows = np.minimum(below + 1, np.maximum(finite - 1, 0)), np.arange(len(samples))
    low, high = samples[rows, below].astype(float), samples[rows, above].astype(float)
    return np.where(finite > 0, low + (high - low) * (at - below), np.nan)


# ---------------------------------------------------------------------------------------------------------------
# Tests, their correction for many of them, and power


def inverted_p(statistic: Statistic, null: float, z: float) -> np.ndarray:
    """Return the two-sided p-value whose interval just touches `null`; NaN where there is no interval.

    z: the normal quantile of the printed interval. It is looked at first, so that p and this interval never disagree,
    also where an interval does not grow evenly with its level.
    """
    shape = np.shape(statistic.value)
    inside, outside, at = (
        np.full(shape, 40.0),
        np.zeros(shape),
        z,
    )  # z at which the interval holds null, and does not
    for _ in range(45):
        low, high = statistic.interval(at)
        holds = (low <= null) & (high >= null)
        inside, outside = np.where(holds, at, inside), np.where(holds, outside, at)
        at = (inside + outside) / 2
    return np.where(np.isnan(statistic.interval(z)[0]), np.nan, 2 * ndtr(-outside))


def permutation_p(values, prompt, author, own: int, *, seed: int = 0) -> float:
    """Return the two-sided p-value of permuting, within each prompt, which author is the evaluator.

    values: a number per row (a claim, the rank of a score), whose sum over the evaluator's own texts is the statistic;
    prompt, author: codes. All rows of an author on a prompt move together. Of one claim each it is the conditional
    Cochran-Mantel-Haenszel test (Birch 1964). NaN where the authors of a prompt have unequal numbers of rows, and
    without a prompt that has own and other texts.
    """
    rows = pd.DataFrame({"prompt": prompt, "author": author, "value": values})
    if own < 0 or own not in rows["author"].array:
        return np.nan
    by_author = rows.groupby(["prompt", "author"])["value"]
    number = by_author.size().unstack()
    if (number.max(axis=1) != number.min(axis=1)).any():
        return np.nan
    total = by_author.sum().unstack()
    compared = total[total[own].notna() & (total.notna().sum(axis=1) > 1)]
    return (
        rearranged_p(compared.to_numpy(), compared[own].sum(), seed=seed)[0]
        if len(compared)
        else np.nan
    )


def rearranged_p(
    options, observed: float, values=(), size: int = 0, *, seed: int = 0
) -> tuple[float, float]:
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
    sums = np.array(
        [values[list(chosen)].sum() for chosen in combinations(range(len(values)), size)]
    )
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
    low, high = options[:, :1], np.nanmax(options, 1, keepdims=True)
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
            sums += low[block].sum() + (high - low)[block, 0] @ is_high.astype(float)
        else:
            sums += np.take_along_axis(options[block], place.astype(np.intp), 1).sum(0)
    if size == len(values):
        return sums + values.sum()
    if size > 0:
        chosen = np.argsort(rng.random((DRAWS, len(values))), 1)[:, :size]
        sums += values[chosen].sum(1)
    return sums


def wild_cluster_p(x, y, cluster, which: int = 0, *, draws: int = DRAWS, seed: int = 0) -> float:
    """Return the two-sided p of one least-squares coefficient by the wild cluster bootstrap (Cameron et al. 2008).

    x: predictors (rows, k) without an intercept, centred where one is meant; y: (rows,); which: the coefficient that is
    0 under the null. The residuals of the fit without it keep or change their signs cluster by cluster (Rademacher),
    `draws` times, and its cluster-robust t is compared with those of the draws. It holds where predictors are skewed
    and clusters few, and the t of the jackknife rejects too often.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    codes = np.unique(np.asarray(cluster), return_inverse=True)[1]
    k = codes.max() + 1
    cross = np.array([x[codes == g].T @ x[codes == g] for g in range(k)])
    inverse = np.linalg.inv(cross.sum(0))
    others = np.delete(x, which, axis=1)
    without = y - others @ np.linalg.lstsq(others, y, rcond=None)[0]
    scores = np.array([x[codes == g].T @ without[codes == g] for g in range(k)])

    def squared_t(signs):
        """Return t squared for each row of signs (draws, clusters)."""
        moved = signs @ scores @ inverse  # by how much each draw moves the coefficients
        left_over = signs * (scores @ inverse[which]) - moved @ (cross @ inverse[which]).T
        return ratio(moved[:, which] ** 2, (left_over**2).sum(1))

    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, k))
    observed = squared_t(np.ones((1, k)))[0]
    return float((1 + (squared_t(signs) >= observed - BOUND).sum()) / (1 + draws))


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
    bar, beyond = (stdtrit(n_prompts - 1, q) if t else ndtri(q) for q in (0.975, 0.8))
    return (bar + beyond) * sd / np.sqrt(n_prompts)


def z_scores(h, n1, f, n0):
    """Return d' and criterion with the correction in proportion to prevalence: exactly 0 at constant answers.

    The usual +0.5 / +1 (Hautus 1995) gives an evaluator that never claims a d' above 0 when n1 and n0 differ.
    """
    total = np.maximum(n0 + n1, 1)
    a, b = n1 / total, n0 / total
    with np.errstate(divide="ignore", invalid="ignore"):
        zh, zf = (
            ndtri(np.asarray((h + a) / (n1 + 2 * a))),
            ndtri(np.asarray((f + b) / (n0 + 2 * b))),
        )
    return zh - zf, -(zh + zf) / 2
