"""Agreement among raters: published values, hand-computed cases, outside references, and what is not defined."""

import numpy as np
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from selfeval.errors import InputError
from selfeval.stats.agreement import effective_votes, fleiss_kappa, icc, krippendorff_alpha
from selfeval.stats.resampled import Statistic, auc
from selfeval.stats.table import Settings

NAN = np.nan
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", part E: four observers, twelve units.
KRIPPENDORFF = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]).T  # fmt: skip
# Shrout and Fleiss 1979, table 2: four judges' ratings of six targets.
SHROUT = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
# Fleiss 1971, table 1: six psychiatrists' diagnoses of 30 patients, counts of five categories.
DIAGNOSES = np.array([
    [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0], [2, 0, 4, 0, 0],
    [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6], [1, 0, 0, 5, 0], [1, 1, 0, 4, 0],
    [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1], [0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0],
    [0, 2, 0, 4, 0], [1, 0, 2, 0, 3], [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0],
    [1, 0, 0, 4, 1], [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
])  # fmt: skip
# Ten subjects, 14 raters, five categories: the worked example of the Wikipedia article "Fleiss' kappa".
FOURTEEN = np.array([
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
])  # fmt: skip


def ratings_of(counts):
    """Return a matrix of ratings with these counts; which rater gave which does not matter to the kappa."""
    return np.array([np.repeat(np.arange(counts.shape[1]), row) for row in counts])


def test_alpha_of_the_published_example():
    assert round(float(krippendorff_alpha(KRIPPENDORFF)), 3) == 0.849


def test_alpha_by_hand():
    # Units (0, 1) and (1, 1): 4 ratings, 2 of 4 pairs disagree; of all pairs 2 * 1 * 3 / (4 * 3) = 1/2: alpha = 0.
    assert float(krippendorff_alpha([[0, 1], [1, 1]])) == pytest.approx(0)
    assert float(krippendorff_alpha([[0, 0], [1, 1]])) == pytest.approx(1)
    # A unit with one rating changes nothing.
    assert float(krippendorff_alpha([[0, 1], [1, 1], [5, NAN]])) == pytest.approx(0)


def test_alpha_is_one_minus_observed_over_expected_pairs():
    rng = np.random.default_rng(3)
    x = rng.random((25, 4))
    x[rng.random(x.shape) < 0.3] = NAN
    units = [row[~np.isnan(row)] for row in x]
    units = [row for row in units if len(row) > 1]
    values = np.concatenate(units)
    observed = sum(np.sum((u[:, None] - u) ** 2) / (len(u) - 1) for u in units) / len(values)
    expected = np.sum((values[:, None] - values) ** 2) / (len(values) * (len(values) - 1))
    assert float(krippendorff_alpha(x)) == pytest.approx(1 - observed / expected)


def test_icc_of_shrout_and_fleiss():
    assert round(float(icc(SHROUT, "A")), 2) == 0.29
    assert round(float(icc(SHROUT, "C")), 2) == 0.71
    # From their mean squares: 11.24 between targets, 97.49 / 3 between judges, 1.02 residual.
    bms, jms, ems = 56.2083 / 5, 97.4583 / 3, 15.2917 / 15
    assert float(icc(SHROUT, "C")) == pytest.approx((bms - ems) / (bms + 3 * ems), abs=1e-4)
    assert float(icc(SHROUT, "A")) == pytest.approx((bms - ems) / (bms + 3 * ems + 4 * (jms - ems) / 6), abs=1e-4)


def test_icc_uses_complete_units_and_leniency_counts_against_agreement_alone():
    holes = np.vstack([SHROUT, [NAN, 1, 2, 3]])
    assert float(icc(holes)) == float(icc(SHROUT))
    shifted = SHROUT[:, :1] + np.array([0, 1, 2, 3])
    assert float(icc(shifted, "C")) == pytest.approx(1) and float(icc(shifted, "A")) < 0.9


@pytest.mark.parametrize(("counts", "published"), [(DIAGNOSES, 0.430), (FOURTEEN, 0.210)])
def test_fleiss_kappa_of_published_examples(counts, published):
    found = float(fleiss_kappa(ratings_of(counts)))
    assert round(found, 3) == published
    assert found == pytest.approx(statsmodels_kappa(counts))


def test_effective_votes():
    # Two jurors at the ICC of .92 to .99 that debates end with: 1.04 to 1.01 votes.
    for r, votes in ((0.92, 1.04), (0.99, 1.01), (0, 2), (-0.5, 2), (1, 1)):
        assert round(float(effective_votes(SHROUT[:, :2]).shown(r)), 2) == votes
    r = float(icc(SHROUT, "C"))
    votes, ratio = effective_votes(SHROUT), icc(SHROUT, "C").estimates(Settings(100, 0.95, 0))[0]
    found = votes.estimates(Settings(100, 0.95, 0))[0]
    assert float(votes) == found.value == pytest.approx(4 / (1 + 3 * r)) and 0 < ratio.low < ratio.high < 1
    assert (found.low, found.high) == pytest.approx((4 / (1 + 3 * ratio.high), 4 / (1 + 3 * ratio.low)))


@pytest.mark.parametrize(
    ("statistic", "reason"),
    [
        (krippendorff_alpha([[1, NAN], [NAN, 2]]), "no_unit_with_two_ratings"),
        (krippendorff_alpha(np.ones((5, 3))), "constant"),
        (krippendorff_alpha(np.empty((0, 3))), "no_unit_with_two_ratings"),
        (icc(np.ones((5, 3))), "constant"),
        (icc([[0.1], [0.2]]), "one_rater"),
        (icc([[0.1, 0.2]]), "fewer_than_two_complete_units"),
        (effective_votes([[0.1, 0.2]]), "fewer_than_two_complete_units"),
        (fleiss_kappa([[1], [0]]), "one_rater"),
        (fleiss_kappa([[1, NAN], [0, NAN]]), "no_complete_unit"),
        (fleiss_kappa(np.zeros((4, 2))), "constant"),
    ],
)
def test_what_is_not_defined_is_nan_with_its_reason(statistic, reason):
    [estimate] = statistic.estimates(Settings(100, 0.95, 0))
    assert np.isnan([estimate.value, estimate.low, estimate.high]).all()
    assert estimate.note == f"not_estimable; {reason}"


def test_wrong_arguments():
    with pytest.raises(InputError, match=r"`kind` must be 'A' .* got 'B'"):
        icc(SHROUT, "B")
    with pytest.raises(InputError, match="matrix of units by raters, got 1"):
        icc([1, 2])
    with pytest.raises(InputError, match="got 2 for 6 units"):
        icc(SHROUT, cluster=[1, 2])


@pytest.mark.parametrize(
    "build",
    [
        krippendorff_alpha,
        lambda x, cluster: icc(x, "A", cluster),
        lambda x, cluster: icc(x, "C", cluster),
        lambda x, cluster: fleiss_kappa(np.round(2 * x), cluster),
        lambda x, cluster: auc(x[:, 0], cluster, x[:, 1], cluster),
    ],
    ids=["alpha", "icc_a", "icc_c", "kappa", "auc"],
)
def test_a_weighted_statistic_is_that_of_the_repeated_clusters(build):
    """The bootstrap and the jackknife rest on this: weights are counts of whole clusters."""
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(8), 3)
    x = rng.random((24, 3)) + cluster[:, None] / 10
    whole: Statistic = build(x, cluster=cluster)
    weights = np.array([[2, 0, 1, 3, 1, 0, 1, 1], 1 - np.eye(8)[2]], float).T
    for column, value in zip(weights.T, whole.of(weights), strict=True):
        rows = np.concatenate([np.flatnonzero(cluster == c) for c in range(8) for _ in range(int(column[c]))])
        assert value == pytest.approx(build(x[rows], cluster=np.arange(len(rows))).value)
    leave_out = [build(x[cluster != c], cluster=cluster[cluster != c]).value for c in range(8)]
    assert whole.variance == pytest.approx(7 * np.var(leave_out))
