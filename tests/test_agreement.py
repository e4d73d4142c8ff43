"""Agreement among raters: published values, what is not defined, and weights as counts of clusters."""

import numpy as np
import pytest

from selfeval.stats.engine import Area
from selfeval.stats.votes import effective_votes, icc, krippendorff_alpha

NAN, Z = np.nan, 1.959964
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", part E: four observers, twelve units.
KRIPPENDORFF = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]).T  # fmt: skip
# Shrout and Fleiss 1979, table 2: four judges' ratings of six targets.
SHROUT = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])


def test_published_coefficients():
    """Krippendorff's .849; Shrout and Fleiss' ICC(2,1) = .29 and ICC(3,1) = .71, from units that all have rated."""
    ratings = np.vstack([SHROUT, [NAN, 1, 2, 3]])
    assert round(float(krippendorff_alpha(KRIPPENDORFF).value), 3) == 0.849
    assert [round(float(icc(ratings, kind).value), 2) for kind in "AC"] == [0.29, 0.71]
    shifted = SHROUT[:, :1] + np.array([0, 1, 2, 3])  # leniency counts against absolute agreement alone
    assert icc(shifted, "C").value == pytest.approx(1) and icc(shifted, "A").value < 0.9


def test_effective_votes():
    """J / (1 + (J - 1) r), the interval that of r turned round; votes that agree by chance are worth J at most."""
    r, votes = icc(SHROUT, "C"), effective_votes(SHROUT)
    low, high = r.interval(Z)
    assert votes.value == pytest.approx(4 / (1 + 3 * r.value)) and 0 < low < high < 1
    assert votes.interval(Z) == pytest.approx((4 / (1 + 3 * high), 4 / (1 + 3 * low)))
    assert effective_votes(np.random.default_rng(1).random((40, 3))).interval(Z)[1] == 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("statistic", [
    krippendorff_alpha([[1, NAN], [NAN, 2]]), krippendorff_alpha(np.full((5, 3), 0.1)),
    krippendorff_alpha(np.empty((0, 3))), icc(np.full((5, 3), 0.1)), icc([[0.1], [0.2]]), icc([[0.1, 0.2]]),
    effective_votes([[0.1, 0.2]]),
])  # fmt: skip
def test_what_is_not_defined_is_nan(statistic):
    """No two ratings, constant ones, no unit, one rater, a single complete unit."""
    assert np.isnan([statistic.value, *statistic.interval(Z)]).all()


@pytest.mark.parametrize("build", [krippendorff_alpha, icc])
def test_agreement_that_hangs_on_one_answer_has_no_interval(build):
    """Without the third answer all ratings are .1: rounding made that a coefficient, and an interval."""
    found = build([[0.1, 0.1], [0.1, 0.1], [0.1, 0.9]])
    assert found.value == pytest.approx(0, abs=1e-9) and np.isnan(found.interval(Z)).all()


@pytest.mark.parametrize(
    "build",
    [krippendorff_alpha, icc, effective_votes, lambda x, cluster: Area.of(x[:, 0], cluster, x[:, 1], cluster)],
    ids=["alpha", "icc", "effective_votes", "auc"],
)
def test_a_weighted_statistic_is_that_of_the_repeated_clusters(build):
    """The bootstrap rests on this: weights are counts of whole clusters."""
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(8), 3)
    x = rng.random((24, 3)) + cluster[:, None] / 10
    weights = np.array([2, 0, 1, 3, 1, 0, 1, 1])
    rows = np.concatenate([np.flatnonzero(cluster == c) for c in np.repeat(np.arange(8), weights)])
    [weighted] = build(x, cluster=cluster).at(weights[:, None].astype(float))
    assert weighted == pytest.approx(build(x[rows], cluster=np.arange(len(rows))).value)
