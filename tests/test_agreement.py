"""Agreement among raters: published values, hand-computed cases, outside references, and what is not defined."""

import numpy as np
import pytest

from selfeval.stats.agreement import effective_votes, icc, krippendorff_alpha
from selfeval.stats.engine import Area

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


def test_alpha_of_the_published_example_and_by_hand():
    assert round(float(krippendorff_alpha(KRIPPENDORFF).value), 3) == 0.849
    # Units (0, 1) and (1, 1): 4 ratings, 2 of 4 pairs disagree; of all pairs 2 * 1 * 3 / (4 * 3) = 1/2: alpha = 0.
    assert krippendorff_alpha([[0, 1], [1, 1]]).value == pytest.approx(0)
    assert krippendorff_alpha([[0, 0], [1, 1]]).value == pytest.approx(1)
    # A unit with one rating changes nothing.
    assert krippendorff_alpha([[0, 1], [1, 1], [5, NAN]]).value == pytest.approx(0)


def test_alpha_is_one_minus_observed_over_expected_pairs():
    rng = np.random.default_rng(3)
    x = rng.random((25, 4))
    x[rng.random(x.shape) < 0.3] = NAN
    units = [row[~np.isnan(row)] for row in x]
    units = [row for row in units if len(row) > 1]
    values = np.concatenate(units)
    observed = sum(np.sum((u[:, None] - u) ** 2) / (len(u) - 1) for u in units) / len(values)
    expected = np.sum((values[:, None] - values) ** 2) / (len(values) * (len(values) - 1))
    assert krippendorff_alpha(x).value == pytest.approx(1 - observed / expected)


def test_icc_of_shrout_and_fleiss():
    """ICC(2,1) = .29 and ICC(3,1) = .71: McGraw and Wong's (A,1) and (C,1), from the published mean squares."""
    between, judges, residual = 56.2083 / 5, 97.4583 / 3, 15.2917 / 15
    consistent = (between - residual) / (between + 3 * residual)
    absolute = (between - residual) / (between + 3 * residual + 4 * (judges - residual) / 6)
    assert (round(absolute, 2), round(consistent, 2)) == (0.29, 0.71)
    assert icc(SHROUT, "A").value == pytest.approx(absolute, abs=1e-4)
    assert icc(SHROUT, "C").value == pytest.approx(consistent, abs=1e-4)
    assert icc(np.vstack([SHROUT, [NAN, 1, 2, 3]])).value == icc(SHROUT).value  # complete units alone
    shifted = SHROUT[:, :1] + np.array([0, 1, 2, 3])  # leniency counts against absolute agreement alone
    assert icc(shifted, "C").value == pytest.approx(1) and icc(shifted, "A").value < 0.9


def test_effective_votes():
    """J / (1 + (J - 1) r), the interval that of r turned round; votes that agree by chance are worth J at most."""
    r, votes = icc(SHROUT, "C"), effective_votes(SHROUT)
    low, high = r.interval(Z)
    assert votes.value == pytest.approx(4 / (1 + 3 * r.value)) and 0 < low < high < 1
    assert votes.interval(Z) == pytest.approx((4 / (1 + 3 * high), 4 / (1 + 3 * low)))
    # Two jurors at the ICC of .92 to .99 that debates end with: 1.04 to 1.01 votes.
    two = effective_votes(SHROUT[:, :2]).function
    assert [round(float(two(r)), 2) for r in (0.92, 0.99, 0, -0.5, 1)] == [1.04, 1.01, 2, 2, 1]
    chance = effective_votes(np.random.default_rng(1).random((40, 3)))
    assert chance.interval(Z)[1] == 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("statistic", [
    krippendorff_alpha([[1, NAN], [NAN, 2]]), krippendorff_alpha(np.full((5, 3), 0.1)),
    krippendorff_alpha(np.empty((0, 3))), icc(np.full((5, 3), 0.1)), icc([[0.1], [0.2]]), icc([[0.1, 0.2]]),
    icc(np.empty((0, 2))), effective_votes([[0.1, 0.2]]),
])  # fmt: skip
def test_what_is_not_defined_is_nan(statistic):
    """No two ratings, constant ones, no unit, one rater, a single complete unit."""
    assert np.isnan([statistic.value, *statistic.interval(Z)]).all()


@pytest.mark.parametrize("build", [krippendorff_alpha, icc])
def test_agreement_that_hangs_on_one_answer_has_no_interval(build):
    """Without the third answer all ratings are .1: rounding made that a coefficient, and an interval."""
    found = build([[0.1, 0.1], [0.1, 0.1], [0.1, 0.9]])
    assert found.value == pytest.approx(0, abs=1e-9) and np.isnan(found.interval(Z)).all()
    assert np.isnan(found.at(np.array([[1.0], [2.0], [0.0]]))).all()


@pytest.mark.parametrize(
    "build",
    [
        krippendorff_alpha,
        lambda x, cluster: icc(x, "A", cluster),
        lambda x, cluster: icc(x, "C", cluster),
        lambda x, cluster: Area.of(x[:, 0], cluster, x[:, 1], cluster),
    ],
    ids=["alpha", "icc_a", "icc_c", "auc"],
)
def test_a_weighted_statistic_is_that_of_the_repeated_clusters(build):
    """The bootstrap and the jackknife rest on this: weights are counts of whole clusters."""
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(8), 3)
    x = rng.random((24, 3)) + cluster[:, None] / 10
    whole = build(x, cluster=cluster)
    weights = np.array([[2, 0, 1, 3, 1, 0, 1, 1], 1 - np.eye(8)[2]], float).T
    for column, value in zip(weights.T, whole.at(weights), strict=True):
        rows = np.concatenate([np.flatnonzero(cluster == c) for c in range(8) for _ in range(int(column[c]))])
        assert value == pytest.approx(build(x[rows], cluster=np.arange(len(rows))).value)
    if not isinstance(whole, Area):
        leave_out = [build(x[cluster != c], cluster=cluster[cluster != c]).value for c in range(8)]
        assert whole.variance == pytest.approx(7 * np.var(leave_out))
