"""The one engine of statistics: sums by cluster in, estimates with intervals out, all arrays.

The unit that was sampled is the cluster (a writing prompt with all its texts, a template, a
conversation), so variances, resamples and degrees of freedom count clusters, never rows. A
statistic has a `value` (...) and the contributions of its clusters, `contrib` (clusters, ...).
Rates and their differences also have `at(weights)`, the value under weights of the clusters
(clusters, B) as (..., B): weights of a resample give the bootstrap, exactly.

The default intervals, each at a normal quantile z:

    Rate        Wilson (1927) at the effective sample size of Korn and Graubard (1998), with
                Satterthwaite's (1946) degrees of freedom, as recommended by Franco, Little, Louis
                and Slud (2019); at the number of clusters, with one degree of freedom less, where
                each has one row. Clusters count by their weight (Kish 1965)
    Difference  method of variance estimates recovery (Zou and Donner 2008) with the correlation of
                the contributions, shrunk; for a difference of differences it is nested, which is
                an extension of ours
    Area        an AUC: the clustered variance of DeLong et al. (1988) and Obuchowski (1997), t on
                the logit scale; a share of pairs with one pair per cluster is a Rate
    Function    any smooth function of sums: t on the jackknife over clusters; bent within its
                range where it has one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri, stdtrit

from selfeval.errors import InputError

# A rate this close to 0 or 1 is at it.
BOUND = 1e-12
# Degrees of freedom of a rate, unless the clusters leave fewer.
LEAST_DF = 7


def check_level(level: float) -> float:
    """Return the two-sided normal quantile of a confidence level."""
    if not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise InputError(f"`level` must lie between 0 and 1, got {level!r}.")
    return float(ndtri((1 + level) / 2))


@np.errstate(divide="ignore", invalid="ignore")
def ratio(a, b):
    """Divide, with NaN where the denominator is 0."""
    a = np.asarray(a)
    b = np.asarray(b)
    missing = np.array(np.nan, np.result_type(a, b, np.float32))
    return np.where(b == 0, missing, a / b)


def kish_number(weight) -> np.ndarray:
    """Return (sum of weights)^2 / sum of squared weights over the first axis (Kish 1965).

    It is 0 without any weight.
    """
    weight = np.asarray(weight, float)
    squares = (weight**2).sum(0)
    return np.nan_to_num(ratio(weight.sum(0) ** 2, squares))


@np.errstate(divide="ignore", invalid="ignore")
def left_out(contrib, weight) -> np.ndarray:
    """Return contributions by what leaving a cluster out changes.

    A cluster that holds much of the rows pulls the mean towards itself, so that its own
    contribution is too small. Where all clusters weigh alike, contributions stay as they are.
    """
    changes = contrib * (1 - 1 / kish_number(weight)) / (1 - weight)
    return np.nan_to_num(changes, posinf=0, neginf=0)


@np.errstate(divide="ignore", invalid="ignore")
def wilson(p, n, z) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's score interval of a proportion p at sample size n (Wilson 1927).

    z: the normal quantile.
    """
    p = np.asarray(p, float)
    n = np.asarray(n, float)
    scale = 1 + z**2 / n
    centre = (p + z**2 / (2 * n)) / scale
    spread = p * (1 - p) / n + z**2 / (4 * n**2)
    half = z / scale * np.sqrt(spread)
    low = np.minimum(centre - half, p)
    high = np.maximum(centre + half, p)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def within_range(value, variance, t, least, most) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval value +- t sqrt(variance), bent to stay between `least` and `most`.

    Wilson's interval of the value's place in its range, at the effective sample size and with the
    quantile of t: as wide as that of t in the middle, bending near an end. NaN where the value lies
    outside the range.
    """
    width = most - least
    p = (np.asarray(value, float) - least) / width
    n = ratio(p * (1 - p) * width**2, variance)
    low, high = wilson(p, n, t)
    return least + width * low, least + width * high


def t_quantile(df, z) -> np.ndarray:
    """Return the quantile of t that has the tail of the normal quantile z."""
    return stdtrit(df, ndtr(z))


def mover(a, a_low, a_high, b, b_low, b_high, r=0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of a - b from the intervals of a and b.

    r: the correlation of the two estimates. Newcombe 1998 (method 10), Zou and Donner 2008.
    """

    def root(x, y):
        square = x**2 - 2 * r * x * y + y**2
        return np.sqrt(np.maximum(square, 0))

    return a - b - root(a - a_low, b_high - b), a - b + root(a_high - a, b - b_low)


# --------------------------------------------------------------------------------------------------
# Statistics


def not_resampled(weights: np.ndarray) -> np.ndarray:
    """Stand where a statistic has no value under weights."""
    raise TypeError("this statistic is not one of those that are resampled")


@dataclass(eq=False)
class Statistic:
    """One statistic, or many of one kind in an array.

    value (...); contrib (clusters, ...), which sum to 0 over clusters; n (...): rows behind it;
    clusters (...): how many hold any. at: its value under weights, of what is resampled. The
    interval of this class is the clustered t.
    """

    value: np.ndarray
    contrib: np.ndarray
    n: np.ndarray
    clusters: np.ndarray
    at: Callable[[np.ndarray], np.ndarray] = not_resampled
    method = "clustered_t"

    @cached_property
    def kish(self) -> np.ndarray:
        """Kish's (1965) number of clusters: so many that weigh alike would say as much."""
        return np.asarray(self.clusters, float)

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance from the contributions of clusters; NaN with a single cluster."""
        return _of_sample(self.kish) * _sum_of_products(self.contrib, self.contrib)

    @cached_property
    def df(self) -> np.ndarray:
        """Degrees of freedom of t: whole clusters, less one."""
        return np.maximum(np.floor(self.kish + 1e-9) - 1, 1)

    @property
    def varies(self) -> np.ndarray:
        """Whether clusters differ."""
        return self.variance > BOUND**2

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z; NaN where nothing varies."""
        variance = np.where(self.varies, self.variance, np.nan)
        half = t_quantile(self.df, z) * np.sqrt(variance)
        return self.value - half, self.value + half

    def best_low(self, z: float) -> np.ndarray:
        """Return the low end of the highest value there is, over these clusters."""
        return np.ones(np.shape(self.value))

    def can_show(self, z: float) -> np.ndarray:
        """Tell whether the clearest answers of so many clusters would lie beyond chance."""
        return self.best_low(z) > 0.5

    def __sub__(self, other: Statistic) -> Difference:
        return Difference(
            self.value - other.value,
            self.contrib - other.contrib,
            self.n + other.n,
            np.maximum(self.clusters, other.clusters),
            lambda weights: self.at(weights) - other.at(weights),
            a=self,
            b=other,
        )

    def mapped(self, function: Callable) -> Mapped:
        """Return a monotone function of it."""
        rise = function(self.value + 1e-6) - function(self.value - 1e-6)
        mapped = Mapped(
            value=function(self.value),
            contrib=self.contrib * (rise / 2e-6),
            n=self.n,
            clusters=self.clusters,
            base=self,
            function=function,
        )
        mapped.method = self.method
        mapped.kish = self.kish
        return mapped

    def pick(self, index, there=True) -> Statistic:
        """Return the statistics at an index of the value's axes; NaN where `there` is false."""
        return replace(
            self,
            value=np.where(there, self.value[index], np.nan),
            contrib=self.contrib[:, *index] * there,
            n=self.n[index],
            clusters=self.clusters[index],
            at=lambda weights: self.at(weights)[index],
        )


def _sum_of_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sums of products over clusters, the first axis."""
    return np.einsum("p...,p...->...", a, b)


def _of_sample(k: np.ndarray) -> np.ndarray:
    """Return k / (k - 1), by which the variance of a sample of k is larger; NaN for one."""
    return ratio(k, np.maximum(k - 1, 0))


@dataclass(eq=False, kw_only=True)
class Rate(Statistic):
    """A proportion, or a mean of proportions.

    weight (clusters, ...): what each cluster weighs in it, with sum 1.
    """

    weight: np.ndarray
    method = "wilson_effective_n"

    @classmethod
    def of(cls, hits, n, rows=None) -> Rate:
        """Build the ratio of sums over clusters, shapes (clusters, ...).

        rows: how many are behind it, if not n. A resample that misses a cell altogether keeps its
        value there.
        """
        hits = np.asarray(hits, float)
        n = np.broadcast_to(np.asarray(n, float), hits.shape)
        total = n.sum(0)
        if rows is None:
            rows = total
        divisor = np.where(total == 0, 1, total)
        value = ratio(hits.sum(0), total)
        return cls(
            value,
            contrib=np.nan_to_num((hits - value * n) / divisor),
            n=rows,
            clusters=(n > 0).sum(0),
            at=_weighted_ratio(hits, n, value),
            weight=n / divisor,
        )

    @classmethod
    def of_rows(cls, success, cluster) -> Rate:
        """Build the rate of one column of successes (true or false, one per row)."""
        codes = np.unique(np.asarray(cluster), return_inverse=True)[1]
        hits = np.bincount(codes, np.asarray(success, float))
        return cls.of(hits, np.bincount(codes))

    def mean(self, weight, axis: int = -1) -> Rate:
        """Return the mean of the known rates that have weight (0 or 1, as the value).

        axis: the one that goes, counted from the end.
        """
        use = (np.asarray(weight) > 0) & ~np.isnan(self.value)
        w = use / np.maximum(use.sum(axis, keepdims=True), 1)
        total = (w * np.nan_to_num(self.value)).sum(axis)
        value = np.where(use.any(axis), total, np.nan)
        n = (np.broadcast_to(self.n, use.shape) * use).sum(axis)
        weight = (self.weight * w).sum(axis)
        single = np.moveaxis(w.astype(np.float32), axis, -1)

        @keep_last_result
        def at(weights):
            rates = np.moveaxis(self.at(weights), axis - 1, -2)
            return np.einsum("...mb,...m->...b", np.nan_to_num(rates), single)

        return Rate(value, (self.contrib * w).sum(axis), n, (weight > 0).sum(0), at, weight=weight)

    def pick(self, index, there=True) -> Rate:
        """Return the rates at an index of the value's axes; NaN where `there` is false."""
        picked: Any = super().pick(index, there)
        return replace(picked, weight=self.weight[:, *index])

    def complement(self) -> Rate:
        """Return 1 minus the rate."""
        at = lambda weights: 1 - self.at(weights)  # noqa: E731
        return replace(self, value=1 - self.value, contrib=-self.contrib, at=at)

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
        return _of_sample(self.kish) * self.square.sum(0)

    @cached_property
    @np.errstate(divide="ignore", invalid="ignore")
    def effective(self) -> tuple[np.ndarray, np.ndarray]:
        """Effective sample size and Satterthwaite's degrees of freedom.

        n = p (1 - p) / variance within [clusters / 2, rows]; degrees of freedom at most clusters -
        1 and at least half of the clusters, or 7, by Kish's number of clusters. The lower bounds
        are our stated choices: a single success would leave two degrees of freedom, and one success
        more gave a lower upper end.
        """
        k = self.kish
        n = self.value * (1 - self.value) / self.variance
        fourth_power = (self.square**2).sum(0)
        satterthwaite = 2 * ratio(self.square.sum(0) ** 2, fourth_power)
        most = np.maximum(k - 1, 1)
        least = np.minimum(np.maximum(k / 2, LEAST_DF), most)
        return np.clip(n, k / 2, self.n), np.clip(satterthwaite, least, most)

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return Wilson's interval at the effective sample size.

        The size shrinks by the squared ratio of normal and t quantiles, so that few clusters give a
        wide interval. With one row per cluster, and where nothing varies, it is Kish's number of
        clusters, with as many degrees of freedom less one: the normal quantile would find a blind
        evaluator out in .11 of designs with eight prompts. NaN below two clusters, by that number.
        """
        p = self.value
        k = self.kish
        n, df = self.effective
        nothing_varies = _at_an_end(p) | (self.variance <= BOUND**2)
        one_row_each = self.n == self.clusters
        least = np.minimum(n, k / 2)
        by_variance = np.fmax(n * _shrinkage(z, df), least)
        size = np.where(nothing_varies | one_row_each, self._size_by_clusters(z), by_variance)
        return wilson(p, np.where(_are_several(k), size, np.nan), z)

    def best_low(self, z: float) -> np.ndarray:
        """Return the low end of the rate 1, over these clusters."""
        return wilson(np.ones(self.value.shape), self._size_by_clusters(z), z)[0]

    def _size_by_clusters(self, z: float) -> np.ndarray:
        """Return Kish's number of clusters, less by what their t is wider than z."""
        return self.kish * _shrinkage(z, np.maximum(self.kish - 1, 1))


def _at_an_end(p: np.ndarray) -> np.ndarray:
    """Tell which proportions are 0 or 1."""
    return (p <= BOUND) | (p >= 1 - BOUND)


def _are_several(clusters: np.ndarray) -> np.ndarray:
    """Tell which numbers of clusters are two or more."""
    return clusters > 2 - BOUND


def _shrinkage(z: float, df: np.ndarray) -> np.ndarray:
    """Return the squared ratio of the normal quantile z to that of t with the same tail."""
    # Below, scipy's t quantiles lose their digits, and the ratio no longer changes.
    z = np.maximum(z, 1e-3)
    squared = (z / t_quantile(df, z)) ** 2
    # Above 8, t is infinite; the interval is everything.
    return np.maximum(squared, BOUND)


def keep_last_result(at: Callable) -> Callable:
    """Keep the last result of a function of weights, for statistics that share a part."""
    last_weights = None
    last_result = None

    def kept(weights):
        nonlocal last_weights, last_result
        if weights is not last_weights:
            last_result = at(weights)
            last_weights = weights
        return last_result

    return kept


def _weighted_ratio(hits, n, value) -> Callable:
    """Return the function that divides weighted sums."""

    def sums_of(counts):
        return np.ascontiguousarray(counts.reshape(len(counts), value.size).T, np.float32)

    hits = sums_of(hits)
    n = sums_of(n)
    whole = np.asarray(value, np.float32).reshape(-1, 1)

    @keep_last_result
    def at(weights):
        total = n @ weights
        is_seen = total > 0
        rate = (hits @ weights) / np.where(is_seen, total, 1)
        return np.where(is_seen, rate, whole).reshape(*value.shape, -1)

    return at


@dataclass(eq=False, kw_only=True)
class Difference(Statistic):
    """A difference of two rates, or of two such differences."""

    a: Statistic
    b: Statistic

    @property
    def method(self) -> str:  # type: ignore[override]
        if isinstance(self.a, Difference):
            return "mover_nested"
        return "mover"

    @cached_property
    def kish(self) -> np.ndarray:
        """The lesser of the two sides' numbers of clusters."""
        return np.minimum(self.a.kish, self.b.kish)

    def pick(self, index, there=True) -> Difference:
        """Return the differences at an index of the value's axes; NaN where `there` is false."""
        return self.a.pick(index, there) - self.b.pick(index, there)

    @cached_property
    def correlation(self) -> np.ndarray:
        """Correlation of the two sides over clusters, shrunk by 1 - 3 / clusters.

        Few clusters give two unrelated sides a correlation by chance, which would narrow the
        interval, and sides that agree in every cluster seen would leave it without width. The 3 is
        our stated choice, by simulation: with less, blind evaluators are found out too often at 8
        prompts, and one claim more can lower an end. 0 where a side does not vary.
        """
        a = self.a.contrib
        b = self.b.contrib
        norm = np.sqrt(_sum_of_products(a, a) * _sum_of_products(b, b))
        plain = _sum_of_products(a, b) / np.where(norm > 0, norm, 1)
        shrinkage = 1 - 3 / np.maximum(self.kish, 3)
        return np.where(norm > BOUND**2, plain, 0) * shrinkage

    def can_show(self, z: float) -> np.ndarray:
        """Tell whether 1 - 0 over these clusters would lie beyond 0."""
        a_below = 1 - self.a.best_low(z)
        b_above = 1 - self.b.best_low(z)
        return np.hypot(a_below, b_above) < 1

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z."""
        a_bounds = self.a.interval(z)
        b_bounds = self.b.interval(z)
        return mover(self.a.value, *a_bounds, self.b.value, *b_bounds, self.correlation)


def oppose(difference: Difference) -> Difference:
    """Return a difference of which one side takes from the other, unseen: its widest interval."""
    opposed = replace(difference)
    opposed.correlation = np.full(np.shape(difference.value), -1.0)
    return opposed


@dataclass(eq=False, kw_only=True)
class Mapped(Statistic):
    """A monotone function of a statistic, shown in its place: the bounds are mapped too."""

    base: Statistic
    function: Callable

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z."""
        low, high = map(self.function, self.base.interval(z))
        return np.minimum(low, high), np.maximum(low, high)


class Count(Statistic):
    """A number without an interval."""

    method = "count"

    @classmethod
    def of(cls, value, n, cluster) -> Count:
        """Build it of n rows in units of these clusters."""
        clusters = len(np.unique(cluster))
        return cls(np.asarray(value), np.zeros(clusters), np.asarray(n), np.asarray(clusters))


@dataclass(eq=False)
class Function(Statistic):
    """Any smooth function of sums over clusters.

    within: the range that its interval must not leave.
    """

    within: tuple[float, float] | None = None

    @classmethod
    @np.errstate(divide="ignore", invalid="ignore")
    def of(cls, sums, formula: Callable, n, clusters=None, within=None) -> Function:
        """Build formula(sums over clusters), sums (clusters, ..., parts).

        formula: (..., parts) -> (...). The contributions are those of the jackknife over the
        clusters that hold anything; where one leaves nothing to estimate when left out, they are
        NaN and there is no interval.
        """
        sums = np.asarray(sums, float)
        total = sums.sum(0)
        present = (np.abs(sums) > 0).any(-1)
        n_present = present.sum(0)
        if clusters is None:
            clusters = n_present
        k = np.maximum(n_present, 1)
        value = np.asarray(formula(total))
        left = np.where(present, formula(total - sums), 0)
        change = left - left.sum(0) / k
        contrib = np.where(present, -(k - 1) / k * change, 0)
        value = np.where(np.isfinite(value), value, np.nan)
        contrib = np.where(np.isfinite(contrib), contrib, np.nan)
        return cls(value, contrib, np.asarray(n), np.asarray(clusters), within=within)

    @property
    def method(self) -> str:  # type: ignore[override]
        return "bounded_t" if self.within else "clustered_t"

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high at normal quantile z.

        NaN where nothing varies or the value ends its range.
        """
        if self.within is None:
            return super().interval(z)
        least, most = self.within
        is_inside = (self.value > least) & (self.value < most) & self.varies
        t = t_quantile(self.df, z)
        low, high = within_range(self.value, self.variance, t, least, most)
        return np.where(is_inside, low, np.nan), np.where(is_inside, high, np.nan)


@dataclass(eq=False)
class Area(Statistic):
    """An area under the ROC curve, or a share of pairs ordered rightly.

    It is P(one score is above another), ties half.
    """

    method = "logit_t"

    @classmethod
    def of(cls, high, high_cluster, low, low_cluster, size: int | None = None) -> Area:
        """Build P(a score of `high` is above one of `low`) over all pairs.

        Clusters may hold both kinds or one. size: clusters are codes below it, and the
        contributions have a place for each of them.
        """
        high = np.asarray(high, float)
        low = np.asarray(low, float)
        high, low = _placements(high, low), 1 - _placements(low, high)
        clusters = np.concatenate([high_cluster, low_cluster])
        names, codes = np.unique(clusters, return_inverse=True)
        value: Any = np.float64(np.nan)
        if len(high) and len(low):
            value = np.float64(high.mean())

        k = len(names)
        high_codes = codes[: len(high)]
        low_codes = codes[len(high) :]
        of_high = np.bincount(high_codes, (high - value) / max(len(high), 1), k)
        of_low = np.bincount(low_codes, (low - value) / max(len(low), 1), k)
        n_high = np.bincount(high_codes, minlength=k)
        n_low = np.bincount(low_codes, minlength=k)
        contrib, df, kish, fewest = _two_sides(of_high, of_low, n_high, n_low)
        if size:
            of_names = contrib
            contrib = np.zeros(size)
            contrib[names] = of_names
        area = cls(value, contrib, np.array(len(codes)), np.array(k))
        area.df = df
        area.kish = kish
        area.fewest = fewest
        return area

    @classmethod
    def within(cls, rate: Rate) -> Statistic:
        """Take a rate of pairs ordered rightly, such as those within a prompt, for an area.

        With one pair per cluster it stays what it is, a rate of clusters, and has the interval of
        one.
        """
        if (rate.n == rate.clusters).all():
            return rate
        contrib = left_out(rate.contrib, rate.weight)
        area = cls(rate.value, contrib, rate.n, rate.clusters, rate.at)
        area.kish = rate.kish
        return area

    @np.errstate(divide="ignore", invalid="ignore")
    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return t on the logit scale.

        At 0 and 1, and where nothing varies, it is Wilson's at the number of clusters of the
        smaller side. NaN where a side has fewer than two clusters, by Kish's number.
        """
        p = np.clip(self.value, BOUND, 1 - BOUND)
        half = t_quantile(self.df, z) * np.sqrt(self.variance)
        half_of_logit = half / (p * (1 - p))
        centre = np.where(_are_several(self.kish), logit(p), np.nan)
        low, high = wilson(self.value, self._size, z)
        is_flat = _at_an_end(self.value) | (self.variance <= BOUND**2)
        low = np.where(is_flat, low, expit(centre - half_of_logit))
        high = np.where(is_flat, high, expit(centre + half_of_logit))
        return low, high

    def best_low(self, z: float) -> np.ndarray:
        """Return the low end of the area 1, over these clusters."""
        return wilson(1.0, self._size, z)[0]

    @property
    def _size(self) -> np.ndarray:
        """Number of clusters of the smaller side; NaN below two."""
        return np.where(_are_several(self.fewest), self.fewest, np.nan)

    @cached_property
    def fewest(self) -> np.ndarray:
        """Number of clusters of the smaller side: whole ones, by Kish's number."""
        return self.df + 1


def _placements(scores, others) -> np.ndarray:
    """Return for each score the share of the others below it, ties half."""
    others = np.sort(others)
    below = np.searchsorted(others, scores, "left") + np.searchsorted(others, scores, "right")
    return below / (2 * max(len(others), 1))


@np.errstate(divide="ignore", invalid="ignore")
def _two_sides(one, other, n_one, n_other) -> tuple[np.ndarray, ...]:
    """Return contributions to an area, the degrees of freedom of its t, and Kish's k and least k.

    one, other: what each cluster contributes to either side (clusters,), each with sum 0; n_one,
    n_other: how much of it each cluster holds. The variance of a side counts the clusters of that
    side (Obuchowski 1997) by Kish's number, and so do the degrees of freedom (Welch 1947), at most
    k - 1: three people against fifty models are three. Where every cluster holds as much of both it
    is the plain clustered variance. NaN where a side has a single cluster. k: all clusters, less by
    what Kish's number takes from the side that fewer of them dominate; least k: the smaller side's.
    """
    n = np.stack([n_one, n_other], 1)
    sizes = kish_number(n)
    contrib = np.stack([one, other], 1)
    sides = left_out(contrib, n / np.maximum(n.sum(0), 1)).T
    k = len(one) * ratio(sizes, (n > 0).sum(0)).min()
    scale = np.sqrt(sizes / (sizes - 1) * (k - 1) / k)
    scaled = sides * scale[:, None]
    square = (scaled**2).sum(1)
    welch = square.sum() ** 2 / (square**2 / (sizes - 1)).sum()
    df = np.clip(np.nan_to_num(welch), sizes.min() - 1, max(k - 1, 0))
    return scaled.sum(0), df, k, sizes.min()


def by_cluster(parts, cluster) -> np.ndarray:
    """Return sums (clusters, P) of parts of units (units, P).

    Units whose parts are all 0 do not count.
    """
    parts = np.asarray(parts, float)
    used = (parts != 0).any(1)
    names, codes = np.unique(np.asarray(cluster)[used], return_inverse=True)
    sums = [np.bincount(codes, part, len(names)) for part in parts[used].T]
    return np.stack(sums, 1)
