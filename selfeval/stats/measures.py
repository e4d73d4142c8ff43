"""What a statistic of recognition is before it has an interval, and the means it is made of.

Counts have shape (prompts, evaluators, authors); rates (evaluators, authors). `naming` and `binary` build the
statistics of their tasks from these; formulas stand in `selfeval.stats`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from selfeval.stats.bootstrap import jackknife_contrib
from selfeval.stats.intervals import Difference, Estimate, Rate, stratified_size


@dataclass(eq=False)
class Measure:
    """One statistic: `value` (S,), or (E, T) when it is per author; contrib (prompts, S) or (prompts, E, T).

    safe: the Rate or Difference whose interval is the default, mapped by `transform`; None if there is none.
    rows: rows used. samples: (S, resamples) and boot (what `bootstrap_intervals` returns) are filled by the bootstrap.
    p: the test of no recognition, if it has one; invert: it is the inversion of the default interval; test: what
    returns it, with the least p that its arrangements allow, for a seed. pooled: one value over all evaluators.
    second: not the statistic's default policy; keep: which values are worth a row, None for all.
    """

    name: str
    value: np.ndarray
    rows: np.ndarray
    clusters: np.ndarray
    contrib: np.ndarray | None = None
    safe: Rate | Difference | None = None
    transform: Callable | None = None
    samples: np.ndarray | None = None
    p: np.ndarray | None = None
    invert: bool = False
    test: Callable[[int], tuple[np.ndarray, np.ndarray]] | None = None
    pooled: bool = False
    notes: list[tuple[np.ndarray, str]] = field(default_factory=list)
    boot: list[np.ndarray] | None = None
    estimates: list[Estimate] = field(default_factory=list)
    second: bool = False
    keep: np.ndarray | None = None

    @property
    def per_author(self) -> bool:
        return np.ndim(self.value) == 2


def measure(name: str, safe: Rate | Difference, rows, transform: Callable | None = None, **more) -> Measure:
    """Build the measure of a Rate or Difference."""
    value = transform(safe.value) if transform else safe.value
    return Measure(name, value, rows, safe.clusters, safe.contrib, safe, transform, **more)


# ---------------------------------------------------------------------------------------------------------------
# Means of rates over authors and over peers


@dataclass(eq=False)
class Cells:
    """Counts of one task: n rows, `present` where there are any, own author index of each evaluator (-1: none)."""

    n: np.ndarray
    own: np.ndarray

    def __post_init__(self):
        self.n = np.asarray(self.n, float)
        self.present = self.n > 0
        self.total = self.n.sum(0)
        self.valid = self.total > 0
        self.wrote = self.own >= 0
        self.at = np.maximum(self.own, 0)
        self.e = np.arange(len(self.own))
        self.is_own = (np.arange(self.n.shape[2]) == self.own[:, None]) & self.wrote[:, None]
        self.crossed = bool((self.n == self.n[:, :, :1]).all())

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n.shape

    def of_own(self, rate: Rate) -> Rate:
        """Return each evaluator's rate for its own name; NaN where it wrote nothing."""
        pick = lambda x: x[..., self.e, self.at]  # noqa: E731
        value = np.where(self.wrote, pick(rate.value), np.nan)
        return Rate(value, pick(rate.contrib) * self.wrote, pick(rate.trials), pick(rate.clusters))

    def over_others(self, rate: Rate) -> Rate:
        """Return each evaluator's mean over the authors other than itself."""
        use = self.valid & ~self.is_own & ~np.isnan(rate.value)
        weight = use / np.maximum(use.sum(1, keepdims=True), 1)
        value = np.where(use.any(1), (weight * np.nan_to_num(rate.value)).sum(1), np.nan)
        contrib = np.einsum("pet,et->pe", rate.contrib, weight)
        most = stratified_size(rate.value, rate.trials, weight, 1)
        return Rate(value, contrib, (use * rate.trials).sum(1), (self.present & use).any(2).sum(0), most)

    def over_peers(self, rate: Rate) -> Rate:
        """Return for each evaluator e the mean over the other evaluators j of j's rate for e's name."""
        value, trials = rate.value[:, self.at], rate.trials[:, self.at]
        use = (self.e[:, None] != self.e) & self.wrote & ~np.isnan(value)
        weight = use / np.maximum(use.sum(0), 1)
        mean = np.where(use.any(0), (weight * np.nan_to_num(value)).sum(0), np.nan)
        contrib = np.einsum("pje,je->pe", rate.contrib[:, :, self.at], weight)
        clusters = np.max(np.where(use, rate.clusters[:, self.at], 0), axis=0, initial=0)
        return Rate(mean, contrib, (use * trials).sum(0), clusters, stratified_size(value, trials, weight, 0))

    def best_peer(self, rate: Rate) -> tuple[Rate, np.ndarray]:
        """Return for each evaluator the highest rate of a peer for its name, and which peer (-1: none)."""
        value = rate.value[:, self.at].copy()
        value[(self.e[:, None] == self.e) | ~self.wrote | np.isnan(value)] = -np.inf
        best = value.argmax(0)
        some = np.isfinite(value.max(0))
        pick = lambda x: x[..., best, self.at]  # noqa: E731
        value = np.where(some, pick(rate.value), np.nan)
        return Rate(value, pick(rate.contrib), pick(rate.trials), pick(rate.clusters)), np.where(some, best, -1)

    def third_parties(self) -> np.ndarray:
        """Return the operator (E, T, T) from j's rates to: rate for t minus the mean over authors not t and not j."""
        others = self.valid & ~self.is_own
        use = others[:, None, :] & ~np.eye(self.shape[2], dtype=bool)
        return np.eye(self.shape[2]) - use / np.maximum(use.sum(2, keepdims=True), 1)


def z_scores(h, n1, f, n0):
    """Return d' and criterion with the correction in proportion to prevalence: exactly 0 at constant answers.

    The usual +0.5 / +1 (Hautus 1995) gives an evaluator that never claims a d' above 0 when n1 and n0 differ.
    """
    total = np.maximum(n0 + n1, 1)
    a, b = n1 / total, n0 / total
    with np.errstate(divide="ignore", invalid="ignore"):
        zh, zf = ndtri(np.asarray((h + a) / (n1 + 2 * a))), ndtri(np.asarray((f + b) / (n0 + 2 * b)))
    return zh - zf, -(zh + zf) / 2


def sensitivity(hits, n1, claims, n) -> list[Measure]:
    """Return d' and criterion from counts (prompts, E): claims on own texts, own texts, claims on all, all texts."""
    parts = [hits, n1, claims - hits, n - n1]
    total = [x.sum(0) for x in parts]
    values = z_scores(*total)
    leave_out = z_scores(*(t - x for t, x in zip(total, parts, strict=True)))
    h, _, f, _ = total
    flat = ((h + f == 0) | (h + f == n.sum(0))) & ~np.isnan(values[0])
    notes = [(flat, "constant_answer"), ((h < 10) | (f < 10), "few_expected")]
    clusters = (n > 0).sum(0)
    return [
        Measure(name, value, n.sum(0), clusters, jackknife_contrib(np.nan_to_num(out)), notes=notes)
        for name, value, out in zip(("d_prime", "criterion"), values, leave_out, strict=True)
    ]


def resampled_rate(hits, n, full):
    """Divide resampled counts; a cell without rows keeps its full-sample rate."""
    if n.all():
        return hits / n
    return np.where(n > 0, hits / np.where(n > 0, n, 1), full).astype(hits.dtype)
