"""Agreement among raters: Krippendorff's alpha, intraclass correlations, Fleiss' kappa, effective votes.

Ratings are a matrix (units, raters), NaN where there is none. Every function returns a `Statistic`: `float()` gives
the value, `estimates()` intervals over the clusters (conversations) that hold the units; by default every unit is a
cluster. What is not defined is NaN and its `reason` says why. A coefficient of J raters lies between -1 / (J - 1),
where they disagree as much as J can, and 1: so do its intervals (`intervals.within_range`). ICC(A,1) of a handful of
units can fall below; then it has no interval (`no_interval`).
"""

from __future__ import annotations

import numpy as np

from selfeval.errors import InputError
from selfeval.stats.resampled import Statistic


def _matrix(ratings, cluster) -> tuple[np.ndarray, np.ndarray]:
    """Return ratings as floats (units, raters) and one cluster per unit."""
    ratings = np.asarray(ratings, float)
    if ratings.ndim != 2:
        raise InputError(f"`ratings` must be a matrix of units by raters, got {ratings.ndim} dimension(s).")
    cluster = np.arange(len(ratings)) if cluster is None else np.asarray(cluster)
    if len(cluster) != len(ratings):
        raise InputError(f"`cluster` must name one cluster per unit, got {len(cluster)} for {len(ratings)} units.")
    return ratings, cluster


def krippendorff_alpha(ratings, cluster=None) -> Statistic:
    """Build alpha = 1 - observed / expected disagreement of pairs of ratings (Krippendorff 2004, chapter 11).

    Disagreement is the squared difference. Units with a single rating say nothing about agreement and do not count.
    Undefined where no unit has two ratings or all ratings are equal.
    """
    ratings, cluster = _matrix(ratings, cluster)
    given = ~np.isnan(ratings)
    size = given.sum(1)
    ratings, given, cluster, size = (x[size > 1] for x in (ratings, given, cluster, size))
    if not len(ratings):
        return Statistic(None, 0, 0, reason="no_unit_with_two_ratings")
    reason = "constant" if np.ptp(ratings[given]) == 0 else ""
    rows, within = int(size.sum()), _within(size.min())
    # Everything from counts, sums and squares, however many distinct values there are.
    x = np.where(given, ratings, 0) - ratings[given].mean()
    x[~given] = 0
    total, square = x.sum(1), (x**2).sum(1)
    parts = np.stack([size, total, square, 2 * (size * square - total**2) / (size - 1)], 1)
    return Statistic.of_sums(parts, _interval_alpha, cluster, rows, within=within, reason=reason)


def _within(raters: int) -> tuple[float, float]:
    """Return the range of a coefficient of agreement."""
    return -1 / (raters - 1), 1.0


def _interval_alpha(sums):
    n, total, square, observed = np.moveaxis(sums, -1, 0)
    return 1 - observed * (n - 1) / (2 * (n * square - total**2))


def icc(ratings, kind: str = "A", cluster=None) -> Statistic:
    """Build the intraclass correlation of single ratings, two-way: ICC(A,1) or ICC(C,1) (McGraw and Wong 1996).

    kind: "A" absolute agreement, ICC(2,1) of Shrout and Fleiss 1979; "C" consistency, ICC(3,1): differences in the
    raters' leniency do not count. Only units that every rater rated are used. Undefined with fewer than two such
    units or raters, and where nothing varies.
    """
    if kind not in ("A", "C"):
        raise InputError(f"`kind` must be 'A' (absolute agreement) or 'C' (consistency), got {kind!r}.")
    ratings, cluster = _matrix(ratings, cluster)
    whole = ~np.isnan(ratings).any(1)
    x, k = ratings[whole], ratings.shape[1]
    if k < 2 or len(x) < 2:
        return Statistic(None, 0, 0, reason="one_rater" if k < 2 else "fewer_than_two_complete_units")
    reason = "constant" if np.ptp(x) == 0 else ""
    x = x - x.mean()
    parts = np.column_stack([np.ones(len(x)), (x**2).sum(1), x.sum(1) ** 2, x])

    def correlation(sums):
        n, square, row_square, column = sums[..., 0], sums[..., 1], sums[..., 2], sums[..., 3:]
        centre = column.sum(-1) ** 2 / (n * k)
        rows, columns = row_square / k - centre, (column**2).sum(-1) / n - centre
        ms_rows, ms_columns = rows / (n - 1), columns / (k - 1)
        ms_error = np.maximum(square - centre - rows - columns, 0) / ((n - 1) * (k - 1))
        bias = k / n * (ms_columns - ms_error) if kind == "A" else 0
        return (ms_rows - ms_error) / (ms_rows + (k - 1) * ms_error + bias)

    return Statistic.of_sums(parts, correlation, cluster[whole], int(x.size), within=_within(k), reason=reason)


def fleiss_kappa(ratings, cluster=None) -> Statistic:
    """Build Fleiss' kappa of categories (Fleiss 1971); only units that every rater rated are used.

    Undefined with fewer than two raters or with a single category in use.
    """
    ratings, cluster = _matrix(ratings, cluster)
    whole = ~np.isnan(ratings).any(1)
    x, k = ratings[whole], ratings.shape[1]
    if k < 2 or not len(x):
        return Statistic(None, 0, 0, reason="one_rater" if k < 2 else "no_complete_unit")
    count = (x[:, :, None] == np.unique(x)).sum(1).astype(float)
    reason = "constant" if count.shape[1] == 1 else ""
    parts = np.column_stack([np.ones(len(x)), (count * (count - 1)).sum(1) / (k * (k - 1)), count])

    def kappa(sums):
        n, agree, used = sums[..., 0], sums[..., 1], sums[..., 2:]
        chance = ((used / (n * k)[..., None]) ** 2).sum(-1)
        return (agree / n - chance) / (1 - chance)

    return Statistic.of_sums(parts, kappa, cluster[whole], int(x.size), within=_within(k), reason=reason)


def effective_votes(ratings, cluster=None) -> Statistic:
    """Build J / (1 + (J - 1) r) with r = ICC(C,1): how many independent votes J correlated ones are worth.

    Kish's design effect, reversed. An r below 0 counts as 0, in the estimate and in the bounds: correlated votes are
    worth at most J. Its interval is that of r, mapped.
    """
    correlation, votes = icc(ratings, "C", cluster), np.asarray(ratings).shape[1]
    correlation.shown = lambda r: votes / (1 + (votes - 1) * max(r, 0))
    return correlation
