"""The bootstrap over clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from selfeval.errors import check_whole
from selfeval.statistics.intervals import Statistic, check_level

# Numbers drawn at a time in resampling: more need memory and time.
CHUNK = 4_000_000
# Samples this close are one number: they are in single precision.
TIE = 2e-6


@dataclass
class Settings:
    """What one table uses throughout.

    unit: what a cluster is; few: below how many of them a note warns.
    """

    n_resamples: int = 10_000
    level: float = 0.95
    seed: int = 0
    unit: str = "prompt"
    few: int = 40

    def __post_init__(self):
        self.z = check_level(self.level)
        check_whole("n_resamples", self.n_resamples, 1, np.inf)
        # A table's column takes no more.
        check_whole("seed", self.seed, 0, 2**63 - 1)

    def weights(self, clusters: int) -> Iterator[np.ndarray]:
        """Yield the bootstrap's weights (clusters, B): how often each resample holds each cluster.

        They are the same every time. Counting integer draws is eight times faster than
        `rng.multinomial`.
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
    """Return the percentile interval (2, ...) of each statistic over the same clusters.

    From `how.n_resamples` resamples of clusters, to six digits; NaN without any number.
    """
    if not statistics:
        return []
    drawn = [[] for _ in statistics]
    for weights in how.weights(len(statistics[0].contrib)):
        for samples, statistic in zip(drawn, statistics, strict=True):
            samples.append(np.asarray(statistic.at(weights), np.float32))
    return [_percentiles(np.concatenate(samples, -1), how.z) for samples in drawn]


def _percentiles(samples: np.ndarray, z: float) -> np.ndarray:
    """Return the percentiles (2, ...) of samples (..., B) at the normal quantiles -z and z."""
    is_finite = np.isfinite(samples)
    last = np.maximum(is_finite.sum(-1, keepdims=True) - 1, 0)
    # NaN are sorted last; without any number they stay.
    samples = np.sort(np.where(is_finite, samples, np.float32(np.nan)), -1)
    bounds = []
    for tail in ndtr([-z, z]):
        position = tail * last
        below = np.floor(position).astype(int)
        low = np.take_along_axis(samples, below, -1).astype(float)
        high = np.take_along_axis(samples, np.minimum(below + 1, last), -1).astype(float)
        bounds.append((low + (high - low) * (position - below))[..., 0])
    return np.round(bounds, 6)
