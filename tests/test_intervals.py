"""Intervals are right: within their range, neither too narrow nor too wide. By hand, against outside references."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from recognition_records import binary, naming, row, simulated

from selfeval.recognition.counts import tallies
from selfeval.recognition.measures import measures_of
from selfeval.statistics.intervals import Area, Function, Rate, Statistic, mover, wilson
from selfeval.stats import recognition_table

Z = sps.norm.ppf(0.975)


def measures(frame) -> dict:
    (tally,) = tallies(frame)
    return {m.statistic: m.of for m in reversed(measures_of(tally, "all"))}


# ---------------------------------------------------------------------------------------------------------------
# A rate


def test_wilson_at_one_row_per_cluster_is_that_of_statsmodels_with_quantiles_of_t():
    """At 0, 1, 7 and 10 of ten, at the level at which the normal quantile is that of t with nine degrees of freedom."""
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    alpha = 2 * sps.norm.sf(sps.t.ppf(0.975, 9))
    for hits in (0, 1, 7, 10):
        rate = Rate.of((np.arange(10) < hits)[:, None], np.ones((10, 1)))
        ends = proportion.proportion_confint(hits, 10, alpha=alpha, method="wilson")
        assert np.ravel(rate.interval(Z)) == pytest.approx(ends, abs=1e-9)


def test_the_size_of_a_rate_from_unequal_clusters_by_hand():
    """3 of 4, 1 of 4, 0 of 2 and 2 of 2: p = 1/2, contributions .1, -.1, -.1 and .1."""
    rate = Rate.of(np.array([[3.0], [1], [0], [2]]), np.array([[4.0], [4], [2], [2]]))
    assert rate.value[0] == 0.5 and rate.contrib[:, 0] * 12 == pytest.approx([1, -1, -1, 1])
    k = 12**2 / (4**2 + 4**2 + 2**2 + 2**2)  # Kish's number of clusters, 3.6
    jackknife = (1 - 1 / k) * (2 * (12 / 8) ** 2 + 2 * (12 / 10) ** 2) / 144  # left out, a cluster moves the mean more
    n = 0.25 / jackknife  # 6.8, within 1.8 and 12
    m = n * (Z / sps.t.ppf(0.975, k - 1)) ** 2  # of 2 * 4² / 4 = 8 degrees of freedom, the clusters leave 2.6
    assert rate.kish[0] == pytest.approx(3.6) and m > k / 2
    assert np.ravel(rate.interval(Z)) == pytest.approx(np.ravel(wilson(0.5, m, Z)))
    two = np.array([[50.0], [0], *[[k % 2] for k in range(6)]]), np.array([[50.0], [50], *[[1]] * 6])
    k = 106**2 / (2 * 50**2 + 6)  # two of 8 clusters have it all
    assert np.ravel(Rate.of(*two).interval(Z)) == pytest.approx(np.ravel(wilson(0.5, k / 2, Z)))


def test_one_success_more_in_another_prompt_never_lowers_an_end():
    """All designs of up to 40 prompts with up to 8 rows each, hits in different prompts, and the same of misses.

    Satterthwaite's degrees of freedom fell to 2 with a single success: 1 of 40 gave [.001, .312], 2 of 40 [.010, .219].
    The exceptions are the two ends, where another rule stands: without a hit, and with one in every prompt, nothing
    varies, and the number of prompts takes the place of that of rows, which makes the interval wider.
    """
    for prompts, n in product(range(2, 41), range(1, 9)):
        hits = (np.arange(prompts)[:, None] < np.arange(prompts + 1)).astype(float)
        rate = Rate.of(hits, np.full(hits.shape, float(n)))
        for of, sign in ((rate, 1), (rate.complement(), -1)):
            for end in of.interval(Z):
                steps = sign * np.diff(end)
                assert n > 1 or (steps >= -1e-12).all()
                assert {*np.flatnonzero(steps < -1e-12)} <= {0, prompts - 1}, (prompts, n)


@pytest.mark.parametrize(("rows", "note", "estimated"), [
    ([20, 20, *[1] * 18], "few_prompts_dominate", True), ([300, *[1] * 19], "few_prompts_dominate", False),
    ([2, *[1] * 19], "", True), ([1] * 6, "", True)])  # fmt: skip
def test_few_prompts_that_hold_most_rows_count_as_few(rows, note, estimated):
    """Two of 20 prompts with 20 of 58 rows each are worth 4.1 prompts; below two nothing can be estimated."""
    rng = np.random.default_rng(0)
    frame = pd.concat(
        binary({("a", t): list(rng.random(n) < 0.5) for t in "ab"}).assign(prompt_id=p) for p, n in enumerate(rows)
    )
    table = recognition_table(frame.assign(text_id=[*map(str, range(len(frame)))]), n_resamples=1)
    for name in ("self_accuracy", "false_claim_rate", "discrimination", "advantage"):
        found = row(table, name)
        assert ("dominate" in found["note"]) == bool(note) and note in found["note"]
        assert (not np.isnan(found["estimate"])) == estimated == (not np.isnan(found["low"]))


# ---------------------------------------------------------------------------------------------------------------
# A difference


def test_mover_against_newcombe():
    """Newcombe 1998, Statistics in Medicine 17:873, table II, example (a), method 10: 56/70 - 48/80."""
    a, b = wilson(56 / 70, 70, 1.959964), wilson(48 / 80, 80, 1.959964)
    assert mover(56 / 70, *a, 48 / 80, *b) == pytest.approx((0.0524, 0.3339), abs=1e-4)


@pytest.mark.parametrize("prompts", [10, 100])
def test_sides_that_agree_in_every_prompt_keep_an_interval(prompts):
    """Both rates .5, r = 1, and an interval without width: with r shrunk by 1 - 3 / prompts it has one.

    Half-widths h of both rates at an effective size of prompts - 1, and J within +- h sqrt(6 / prompts); where both
    authors are swapped in every second prompt, both J are 0 +- 2 h.
    """
    m = prompts - 1
    h = Z / (1 + Z**2 / m) * np.sqrt(0.25 / m + Z**2 / (4 * m**2))
    same = binary({("a", t): [p % 2 == 0 for p in range(prompts)] for t in "abcdefgh"})
    swapped = naming({("a", t): ["ab"[(t == "b") ^ (p % 2)] for p in range(prompts)] for t in "ab"})
    for frame, statistic, width in ((same, "discrimination", h), (swapped, "corrected_advantage", 2 * h)):
        found = row(recognition_table(frame, n_resamples=1), statistic)
        assert found["estimate"] == 0 and found["clusters"] == prompts
        assert -found["low"] == pytest.approx(found["high"]) == pytest.approx(width * np.sqrt(6 / prompts), rel=0.12)


# ---------------------------------------------------------------------------------------------------------------
# An area


@pytest.mark.parametrize("together", [True, False])
def test_variance_of_an_area_is_obuchowskis(together):
    """Clusters that hold both kinds, with their covariance; a score a cluster: DeLong, and the t of Welch."""
    rng = np.random.default_rng(3)
    high, low = rng.normal(1, 1, 24).round(1), rng.normal(0, 1, 36).round(1)
    h, m = (np.arange(24) % 12, np.arange(36) % 12) if together else (np.arange(24), 24 + np.arange(36))
    area = Area.of(high, h, low, m)
    wins = (np.sign(high[:, None] - low) + 1) / 2
    a, b = wins.mean(1) - wins.mean(), wins.mean(0) - wins.mean()
    if together:
        sums = np.array([a[h == k].sum() / 24 + b[m == k].sum() / 36 for k in range(12)])
        expected, df = 12 / 11 * (sums**2).sum(), 11
    else:
        sides = a.var(ddof=1) / 24, b.var(ddof=1) / 36
        expected, df = sum(sides), sum(sides) ** 2 / (sides[0] ** 2 / 23 + sides[1] ** 2 / 35)  # DeLong et al. 1988
    assert area.value == pytest.approx(wins.mean()) and area.variance == pytest.approx(expected, rel=1e-9)
    bounds = np.array(area.interval(Z))
    half = sps.t.ppf(0.975, df) * np.sqrt(area.variance) / (area.value * (1 - area.value))
    middle = np.log(area.value / (1 - area.value))
    assert np.log(bounds / (1 - bounds)) == pytest.approx(middle + np.array([-half, half]))


# ---------------------------------------------------------------------------------------------------------------
# Other functions, within their range


def test_a_mean_bends_before_1_instead_of_being_cut_there():
    """Five conversations, mean .86, standard error .117: t (2.776) reaches 1.18, and cut it was [.54, 1]."""

    def bounds(scores):
        sums = np.stack([scores, np.ones(len(scores))], 1)
        return Function.of(sums, lambda s: s[..., 0] / s[..., 1], len(scores), within=(0, 1)).interval(Z)

    low, high = bounds(np.array([1, 1, 1, 0.9, 0.4]))
    assert (low, high) == (pytest.approx(0.40, abs=0.03), pytest.approx(0.98, abs=0.012))
    assert bounds(np.array([0, 0, 0, 0.1, 0.6])) == pytest.approx((1 - high, 1 - low))
    scores = np.random.default_rng(12).uniform(0.4, 0.6, 30)  # in the middle it is that of t
    assert bounds(scores) == pytest.approx(tuple(sps.ttest_1samp(scores, 0).confidence_interval()), abs=1e-3)


def test_an_evaluator_has_the_intervals_that_it_has_alone():
    """m0 answered on six of 30 prompts; what others were asked must not move its jackknife."""
    frame = simulated(2)
    few = frame[(frame.evaluator_model != "m0") | (frame.prompt_id < 6)]
    alone = few[few.evaluator_model == "m0"]
    for name in ("self_accuracy", "discrimination"):
        ours, its = (np.array(measures(part)[name].interval(Z))[:, 0] for part in (few, alone))
        assert ours == pytest.approx(its) and np.isfinite(ours).all(), name


# ---------------------------------------------------------------------------------------------------------------
# The clustered t and the bootstrap (what it draws: the definitions on copied rows, in test_stats)


def test_bootstrap_and_t_of_j_against_scipy():
    frame = simulated(7, n_prompts=60, samples=2)
    rows = frame[frame.evaluator_model == "m1"].assign(claim=lambda f: (f.predicted_model == "m1").astype(float))
    x = rows.assign(own=rows.true_model == "m1").groupby(["prompt_id", "own"]).claim.mean().unstack() @ [-1, 1]
    table = recognition_table(frame, n_resamples=20_000)
    reference = sps.bootstrap((x,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1))
    found = row(table, "discrimination", "m1", method="percentile")
    assert (found["low"], found["high"]) == pytest.approx(tuple(reference.confidence_interval), abs=0.008)
    low, high = Statistic.interval(measures(frame)["discrimination"], Z)
    assert (low[1], high[1]) == pytest.approx(tuple(sps.ttest_1samp(x, 0).confidence_interval()))
