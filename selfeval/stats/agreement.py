"""Agreement among raters: Krippendorff's alpha, intraclass correlations, effective votes.

Ratings are a matrix (units, raters), NaN where there is none. Every function returns a `Function` over the clusters
(conversations) that hold the units, by default every unit one; what is not defined is NaN. A coefficient of J raters
lies between -1 / (J - 1), where they disagree as much as J can, and 1: so do its intervals. ICC(A,1) of a handful of
units can fall below; then it has no interval.
"""

from __future__ import annotations

import numpy as np

from selfeval.stats.engine import Function, Mapped, by_cluster


def krippendorff_alpha(ratings, cluster=None) -> Function:
    """Build alpha = 1 - observed / expected disagreement of pairs of ratings (Krippendorff 2004, chapter 11).

    Disagreement is the squared difference. Units with a single rating say nothing about agreement and do not count.
    Undefined where no unit has two ratings or all ratings are equal.
    """
    ratings, cluster = _matrix(ratings, cluster)
    given = ~np.isnan(ratings)
    ratings, given, cluster = (x[given.sum(1) > 1] for x in (ratings, given, cluster))
    size = given.sum(1)
    # Everything from counts, sums and squares, however many distinct values there are.
    x = np.where(given, ratings - (ratings[given].mean() if len(ratings) else 0), 0)
    total, square = x.sum(1), (x**2).sum(1)
    parts = np.stack([size, total, square, 2 * (size * square - total**2) / np.maximum(size - 1, 1)], 1)

    def alpha(sums):
        n, total, square, observed = np.moveaxis(sums, -1, 0)
        return _defined(1 - observed * (n - 1) / (2 * (n * square - total**2)), square - total**2 / n, square)

    return Function.of(by_cluster(parts, cluster), alpha, size.sum(), within=_within(size.min(initial=9)))


def icc(ratings, kind: str = "A", cluster=None) -> Function:
    """Build the intraclass correlation of single ratings, two-way: ICC(A,1) or ICC(C,1) (McGraw and Wong 1996).

    kind: "A" absolute agreement, ICC(2,1) of Shrout and Fleiss 1979; "C" consistency, ICC(3,1): differences in the
    raters' leniency do not count. Only units that every rater rated are used. Undefined with fewer than two such
    units or raters, and where nothing varies.
    """
    ratings, cluster = _matrix(ratings, cluster)
    whole = ~np.isnan(ratings).any(1)
    x, k = ratings[whole], ratings.shape[1]
    centred = x - x.mean() if x.size else x
    parts = np.column_stack([np.ones(len(x)), (centred**2).sum(1), centred.sum(1) ** 2, centred])

    def correlation(sums):
        n, square, row_square, column = sums[..., 0], sums[..., 1], sums[..., 2], sums[..., 3:]
        centre = column.sum(-1) ** 2 / (n * k)
        rows, columns = row_square / k - centre, (column**2).sum(-1) / n - centre
        ms_rows, ms_columns = rows / (n - 1), columns / (k - 1)
        ms_error = np.maximum(square - centre - rows - columns, 0) / ((n - 1) * (k - 1))
        bias = k / n * (ms_columns - ms_error) if kind == "A" else 0
        return _defined((ms_rows - ms_error) / (ms_rows + (k - 1) * ms_error + bias), square - centre, square)

    return Function.of(by_cluster(parts, cluster[whole]), correlation, x.size, within=_within(max(k, 2)))


def effective_votes(ratings, cluster=None) -> Mapped:
    """Build J / (1 + (J - 1) r) with r = ICC(C,1): how many independent votes J correlated ones are worth.

    Kish's design effect, reversed. An r below 0 counts as 0, in the estimate and in the bounds: correlated votes are
    worth at most J. Its interval is that of r, mapped.
    """
    votes = np.asarray(ratings).shape[1]
    return icc(ratings, "C", cluster).mapped(lambda r: votes / (1 + (votes - 1) * np.maximum(r, 0)))


def _matrix(ratings, cluster) -> tuple[np.ndarray, np.ndarray]:
    """Return ratings as floats (units, raters) and one cluster per unit."""
    ratings = np.asarray(ratings, float)
    return ratings, np.arange(len(ratings)) if cluster is None else np.asarray(cluster)


def _within(raters: int) -> tuple[float, float]:
    """Return the range of a coefficient of agreement."""
    return -1 / (raters - 1), 1.0


def _defined(value, spread, square):
    """Return the value, or NaN where the ratings (of a resample too) have no spread beyond rounding."""
    return np.where(spread > 1e-12 * square, value, np.nan)
