"""Any statistic of data in clusters, written once as a function of cluster weights.

Under weights of one it is the estimate, with one cluster's weight at 0 the jackknife, under multinomial weights the
bootstrap. So a statistic is one function, and its intervals cannot disagree about what is estimated. The default
interval is the t interval on the jackknife with clusters - 1 degrees of freedom; for rates (`bounded`) and for what has
a range (`within`) Wilson at the effective sample size; then percentile and BCa.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats as sps

from selfeval.stats.bootstrap import bootstrap_intervals, jackknife_contrib
from selfeval.stats.intervals import BOUND, Estimate, Rate, check_level, cluster_variance, within_range
from selfeval.stats.table import Settings
from selfeval.stats.testing import rearranged_p

CHUNK = 2_000_000  # weights (clusters x resamples) taken at a time


@dataclass(eq=False)
class Statistic:
    """One statistic: `of` takes weights (clusters, B) and returns values (B,).

    rows: rows used. null: the value of no effect, if a test makes sense. bounded: it is a rate between 0 and 1.
    within: the least and the greatest value of a statistic that is no rate but has a range; no interval leaves it.
    reason: why it cannot be estimated, where that is known beforehand. shown: a monotone function of it that is
    reported in its place, value and bounds; `value` and what follows from it are before that. effective: the number of
    clusters that counts for the degrees of freedom of t, where that is not all of them. rearranged: the test of `null`
    by exchanging people and models among the clusters: p for a seed, and the least p that this allows.
    """

    of: Callable[[np.ndarray], np.ndarray]
    clusters: int
    rows: int
    null: float | None = None
    bounded: bool = False
    within: tuple[float, float] | None = None
    reason: str = ""
    shown: Callable[[float], float] | None = None
    effective: float | None = None
    rearranged: Callable[[int], tuple[float, float]] | None = None

    @classmethod
    def of_sums(cls, parts, formula: Callable, cluster, rows: int | None = None, **more) -> Statistic:
        """Build a statistic that is a formula of sums over units.

        parts: (units, K); formula: (..., K) -> (...); cluster: (units,). Units whose parts are all 0 do not count.
        """
        parts = np.asarray(parts, float)
        used = (parts != 0).any(1)
        names, codes = np.unique(np.asarray(cluster)[used], return_inverse=True)
        sums = np.stack([np.bincount(codes, x, len(names)) for x in parts[used].T], 1)

        def of(weights):
            with np.errstate(divide="ignore", invalid="ignore"):
                return formula(weights.T @ sums)

        return cls(of, len(names), int(used.sum()) if rows is None else rows, **more)

    def __float__(self) -> float:
        return float(self.shown(self.value)) if self.shown else self.value

    @cached_property
    def value(self) -> float:
        value = float(self.of(np.ones((self.clusters, 1)))[0]) if self.clusters and not self.reason else np.nan
        return value if np.isfinite(value) else np.nan

    @cached_property
    def contrib(self) -> np.ndarray:
        """Contributions of the clusters by the jackknife; NaN where leaving one out leaves nothing to estimate."""
        if self.clusters < 2 or np.isnan(self.value):
            return np.full(self.clusters, np.nan)
        blocks = np.array_split(np.arange(self.clusters), -(-(self.clusters**2) // CHUNK))
        every = np.arange(self.clusters)[:, None]
        return jackknife_contrib(np.concatenate([self.of((every != block).astype(float)) for block in blocks]))

    @cached_property
    def variance(self) -> float:
        return float(cluster_variance(self.contrib, self.clusters)) if self.clusters > 1 else np.nan

    @property
    def rate(self) -> Rate:
        """The statistic as a proportion, for its boundary-safe interval."""
        value, clusters = np.asarray(self.value), np.asarray(self.clusters)
        return Rate(value, self.contrib, np.asarray(self.rows), clusters)

    def p(self, seed: int = 0) -> float:
        """Return the two-sided p-value of `null`: of its own test, else of the default interval; NaN without either."""
        return self.test(seed)[0]

    def test(self, seed: int = 0) -> tuple[float, float]:
        """Return `p` and the least p that is possible."""
        if self.null is None or not self._spread:
            return np.nan, 0.0
        if self.rearranged:
            return self.rearranged(seed)
        return self._t_p(), 0.0

    def _t_p(self) -> float:
        return float(2 * sps.t.sf(abs(self.value - self.null) / np.sqrt(self.variance), self.df))

    @property
    def _spread(self) -> bool:
        """Tell whether there is a variance to build an interval on."""
        if self.within and not self.within[0] < self.value < self.within[1]:
            return False
        return not np.isnan(self.variance) and (self.bounded or self.variance > BOUND**2)

    @property
    def note(self) -> str:
        if not np.isnan(self.value) and self._spread:
            return ""
        flat = not np.isnan(self.variance) and self.variance <= BOUND**2
        kind = "not_estimable" if np.isnan(self.value) else "no_interval"
        return "; ".join(filter(None, [kind, self.reason, "constant" if flat else ""]))

    def quantile(self, level: float) -> float:
        """Return the two-sided quantile of t."""
        return float(sps.t.ppf((1 + level) / 2, self.df))

    def half_width(self, level: float) -> float:
        """Return the half-width of the t interval."""
        return float(self.quantile(level) * np.sqrt(self.variance))

    @property
    def df(self) -> float:
        """Degrees of freedom of t."""
        return max((self.clusters if self.effective is None else self.effective) - 1, 1)

    @property
    def method(self) -> str:
        """How the default interval is made."""
        return self.rate.method if self.bounded or self.within else "clustered_t"

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return low and high of the default interval, NaN where there is none."""
        if self.note:
            return np.nan, np.nan
        if self.bounded:
            low, high = self.rate.interval(check_level(level))
        elif self.within:
            low, high = within_range(self.value, self.variance, self.quantile(level), *self.within)
        else:
            half = self.half_width(level)
            low, high = self.value - half, self.value + half
        return self._mapped(float(low), float(high))

    def _mapped(self, low: float, high: float) -> tuple[float, float]:
        if self.shown is None:
            return low, high
        low, high = sorted((float(self.shown(low)), float(self.shown(high))))
        return low, high

    def estimates(self, how: Settings) -> list[Estimate]:
        """Return the estimate with its default interval, then percentile, BCa, and t for rates."""
        common = {"level": how.level, "n": self.rows, "n_prompts": self.clusters, "note": self.note}
        found = [Estimate(float(self), *self.interval(how.level), method=self.method, **common)]
        if self.note or self.variance <= BOUND**2:
            return found
        bounds = bootstrap_intervals(self._samples(how)[None], np.array([self.value]), self.contrib[:, None], how.level)
        for method, k in (("percentile", 0), ("bca", 2)):
            more = common | ({"note": "bca_fallback_percentile"} if k and bounds[4][0] else {})
            low, high = self._mapped(float(bounds[k][0]), float(bounds[k + 1][0]))
            found.append(Estimate(float(self), low, high, method=method, **more))
        if self.bounded:
            half = self.half_width(how.level)
            found.append(Estimate(float(self), self.value - half, self.value + half, method="clustered_t", **common))
        return found

    def _samples(self, how: Settings) -> np.ndarray:
        weights = how.weights(self.clusters)
        blocks = np.array_split(weights, -(-weights.size // CHUNK), axis=1)
        samples = np.concatenate([self.of(block.astype(float)) for block in blocks])
        return np.where(np.isfinite(samples), samples, np.nan)


# ---------------------------------------------------------------------------------------------------------------
# Formulas of sums, on the last axis


def mean_of(sums):
    """Return x / n from sums (x, n)."""
    return sums[..., 0] / sums[..., 1]


def contrast_of(sums):
    """Return x / n - y / m from sums (x, n, y, m)."""
    return sums[..., 0] / sums[..., 1] - sums[..., 2] / sums[..., 3]


def slope_of(sums):
    """Return the least-squares slope of y on x, with intercept, from sums (n, x, y, x², xy)."""
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = xx - x * x / n
    return np.where(spread > 1e-9 * np.maximum(xx, 1e-9), (xy - x * y / n) / spread, np.nan)


def slope(parts, cluster, formula: Callable = slope_of, **more) -> Statistic:
    """Build a least-squares slope from the parts of `slope_parts`, or a formula of the slope.

    Its t has the effective number of clusters as degrees of freedom, less one (Carter, Schnepel and Steigerwald 2017):
    a few conversations in which x varies most decide a slope. With 24 conversations that is about 14.
    """
    return Statistic.of_sums(
        parts, formula, cluster, int(parts[:, 0].sum()), effective=effective_clusters(parts, cluster), **more
    )


def effective_clusters(parts, cluster) -> float:
    """Return (sum of v)² / sum of v², v being each cluster's share in the variation of x."""
    n, x, _, xx, _ = np.moveaxis(np.asarray(parts, float), -1, 0)
    mean = x.sum() / max(n.sum(), 1)
    share = np.bincount(np.unique(cluster, return_inverse=True)[1], xx - 2 * mean * x + n * mean**2)
    return float(share.sum() ** 2 / max((share**2).sum(), BOUND**2))


def slope_parts(x, y) -> np.ndarray:
    """Return per unit (n, x, y, x², xy) for `slope_of`; zeros where x or y is missing."""
    parts = np.stack([np.ones_like(x), x, y, x * x, x * y], -1)
    return np.where(np.isnan(parts).any(-1, keepdims=True), 0, parts)


def difference_of(first: Callable, size: int, second: Callable) -> Callable:
    """Return the formula of a difference: the first takes the first `size` sums, the second the others."""
    return lambda sums: first(sums[..., :size]) - second(sums[..., size:])


def auc(human, human_cluster, model, model_cluster, **more) -> Statistic:
    """Build P(a human's score is above a model's), ties half: the area under the ROC, over all pairs.

    The clusters may hold both kinds (matched pairs, which can change places) or one. Interval: Wilson at the effective
    sample size of the clustered variance, which stays within 0 and 1 (for the AUC in general Kottas, Kuss and Zapf
    2014). p: by permutation over clusters: where a cluster has both kinds they change places, all its scores together;
    which of the other clusters are people's is permuted.
    """
    human, model = np.asarray(human, float), np.asarray(model, float)
    names, codes = np.unique(np.concatenate([human_cluster, model_cluster]), return_inverse=True)
    h, m = codes[: len(human)], codes[len(human) :]
    wins = np.zeros((len(names), len(names)))
    for c in np.unique(h):
        own = np.sort(human[h == c])
        above = len(own) - (np.searchsorted(own, model, "left") + np.searchsorted(own, model, "right")) / 2
        wins[c] = np.bincount(m, above, len(names))
    n1, n0 = np.bincount(h, minlength=len(names)), np.bincount(m, minlength=len(names))

    def of(weights):
        with np.errstate(divide="ignore", invalid="ignore"):
            return ((wins @ weights) * weights).sum(0) / ((n1 @ weights) * (n0 @ weights))

    reason = "" if len(human) and len(model) else "one_source"

    def rearranged(seed):
        rank = sps.rankdata(np.concatenate([human, model])) - (len(codes) + 1) / 2  # AUC - 1/2 is as people's sum
        people, programs = (np.bincount(at, of_kind, len(names)) for at, of_kind in (
            (h, rank[: len(h)]), (m, rank[len(h) :])))  # fmt: skip
        both = (n1 > 0) & (n0 > 0)
        options = np.stack([people, programs], 1)[both]
        return rearranged_p(options, people.sum(), (people + programs)[~both], int(((n1 > 0) & ~both).sum()), seed=seed)

    return Statistic(of, len(names), len(codes), null=0.5, bounded=True, reason=reason, rearranged=rearranged, **more)
