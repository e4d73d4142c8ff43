"""The t interval and the bootstrap over clusters, percentile and BCa, for many statistics at once.

Shapes as in `intervals`: a value is (...), its contributions are (clusters, ...).
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from selfeval.stats.intervals import BOUND, cluster_variance


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
