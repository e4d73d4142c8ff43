"""Intervals are right: within their range, neither too narrow nor too wide. By hand, against scipy, simulated."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from planted_jury import planted_records

from selfeval.stats import models_in_general, recognition_table
from selfeval.stats.agreement import effective_votes, icc, krippendorff_alpha
from selfeval.stats.engine import within_range
from selfeval.stats.jury import baseline_auc, jury_table

Z, SEED = sps.norm.ppf(0.975), 12  # the seed was fixed before the first run


def yes_no(claims: dict[tuple[str, str], list], per_prompt: int = 1) -> pd.DataFrame:
    """Return yes/no records: {(evaluator, author): its claims, prompt by prompt, `per_prompt` texts each}."""
    rows = [
        {"evaluator_model": evaluator, "true_model": author, "task_type": "binary_self", "predicted_model": None,
         "predicted_self": bool(claim), "prompt_id": k // per_prompt, "text_id": f"{author}-{k}"}
        for (evaluator, author), given in claims.items() for k, claim in enumerate(given)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def verdicts(scores: dict[str, list], source: str = "human") -> pd.DataFrame:
    """Return verdict records: {juror: its score, or scores per turn, of each conversation}."""
    rows = [
        {"conversation_id": f"c{c}", "arm": "independent", "juror": juror, "source": source, "turn": turn, "round": 1,
         "score": score}
        for juror, given in scores.items() for c, of in enumerate(given) for turn, score in enumerate(np.atleast_1d(of))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def line(table: pd.DataFrame, statistic: str, **where) -> pd.Series:
    """Return the first (default) row of a statistic."""
    rows = table[table["statistic"] == statistic]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.iloc[0]


def half(p: float, n: float, z: float = Z) -> float:
    """Return half the width of Wilson's interval."""
    return z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))


# ---------------------------------------------------------------------------------------------------------------
# Within the range, by construction


def test_a_mean_score_bends_before_1_instead_of_being_cut_there():
    """Five conversations, mean .86, standard error .117: t (2.776) reaches 1.18, and cut it was [.54, 1]."""
    row = line(jury_table(verdicts({"a": [1, 1, 1, 0.9, 0.4]}), n_resamples=50), "mean_score")
    assert row["estimate"] == pytest.approx(0.86)
    assert (row["low"], row["high"]) == (pytest.approx(0.40, abs=0.03), pytest.approx(0.98, abs=0.012))
    flipped = line(jury_table(verdicts({"a": [0, 0, 0, 0.1, 0.6]}), n_resamples=50), "mean_score")
    assert (flipped["low"], flipped["high"]) == (pytest.approx(1 - row["high"]), pytest.approx(1 - row["low"]))


def test_a_mean_score_in_the_middle_keeps_the_interval_of_t():
    scores = np.random.default_rng(SEED).uniform(0.4, 0.6, 30)
    row = line(jury_table(verdicts({"a": list(scores)}), n_resamples=50), "mean_score")
    t = sps.ttest_1samp(scores, 0).confidence_interval()
    assert (row["low"], row["high"]) == (pytest.approx(t.low, abs=1e-3), pytest.approx(t.high, abs=1e-3))


def test_scores_that_are_missing_bound_the_mean_within_0_and_1():
    given = {"a": [0.9, 1, 0.8, None, 1, None], "b": [1, 1, 0.9, 0.9, 1, None]}
    table = jury_table(verdicts(given), n_resamples=50)
    for name in ("mean_score_if_0", "mean_score", "mean_score_if_1"):
        row = line(table, name)
        assert 0 < row["low"] < row["estimate"] < row["high"] < 1, name


@pytest.mark.parametrize("noise", [0.01, 0.06, 0.3])
def test_agreement_of_few_conversations_stays_within_its_range(noise):
    """With six conversations t reached 1.2; effective votes were cut at 1 votes."""
    jurors = {"a": (0.1, 0, 0), "b": (0, 0, 0), "c": (-0.1, 0, 0)}
    for seed in range(5):
        records = planted_records(seed, conversations=6, jurors=jurors, noise=noise, wanted=("independent",))
        table = jury_table(records, n_resamples=50)
        for name in ("alpha", "icc_a1"):
            row = line(table, name)
            assert -0.5 < row["low"] < row["estimate"] < row["high"] < 1, (name, seed)
        row = line(table, "effective_votes")
        assert 1 < row["low"] < row["estimate"] <= row["high"] <= 3, seed


@pytest.mark.parametrize(
    ("build", "t_low", "low", "high"), [(krippendorff_alpha, 0.69, 0.36, 0.993), (icc, 0.72, 0.41, 0.994)]
)
def test_agreement_near_1_by_hand(build, t_low, low, high):
    """Two jurors agree on five answers of six: the jackknife's t interval ends beyond 1, ours between it and 1."""
    ratings = np.array([[0.1, 0.1], [0.3, 0.3], [0.5, 0.8], [0.7, 0.7], [0.9, 0.9], [0.2, 0.2]])
    found = build(ratings)
    value = found.value
    left_out = np.array([build(np.delete(ratings, k, 0)).value for k in range(6)])
    variance = 5 / 6 * ((left_out - left_out.mean()) ** 2).sum()
    t = sps.t.ppf(0.975, 5)
    assert value + t * np.sqrt(variance) > 1 and value - t * np.sqrt(variance) == pytest.approx(t_low, abs=0.01)
    assert found.interval(Z) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.003))


def test_jurors_that_agree_by_chance_are_worth_their_number_at_most():
    ratings = np.random.default_rng(SEED).random((40, 3))
    r, votes = icc(ratings, "C"), effective_votes(ratings)
    (r_low, r_high), (low, high) = r.interval(Z), votes.interval(Z)
    assert r_low < 0 < r_high
    assert (low, high) == (pytest.approx(3 / (1 + 2 * r_high)), 3)


def test_agreement_below_its_range_has_no_interval():
    """Three answers whose raters' and answers' means are all alike: ICC(A,1) is below -1/2 by its formula."""
    found = icc(np.array([[0, 0.5, 1], [0.5, 1, 0], [1, 0, 0.51]]))
    assert found.value < -0.5 and np.isnan(found.interval(Z)).all()


# ---------------------------------------------------------------------------------------------------------------
# Models in general


def general(claims: dict, method: str, statistic: str = "discrimination") -> pd.Series:
    return line(models_in_general(yes_no(claims)), statistic, method=method)


def recognising(always: int, on_even_prompts: int, models: int = 8, prompts: int = 30) -> dict:
    """Return claims of models that claim own texts always, or on even prompts, or never, and nothing else."""
    names = [f"m{k}" for k in range(models)]
    kinds = [np.ones(prompts)] * always + [np.arange(prompts) % 2 == 0] * on_even_prompts
    kinds += [np.zeros(prompts)] * (models - len(kinds))
    return {
        (e, t): kinds[k] if e == t else np.zeros(prompts) for k, e in enumerate(names) for t in names
    }  # fmt: skip


@pytest.mark.parametrize(
    ("always", "on_even", "mean", "variance", "df"),
    [
        # Half of the models always, half never: all variance is over models, s²/8 = .25 * 8/7 / 8.
        (4, 0, 0.5, 0.25 / 7, 7),
        # All on even prompts: all variance is over prompts, .25 / 29.
        (0, 8, 0.5, 0.25 / 29, 29),
        # Half always, half on even prompts: J is 1 or .5 over models (.0625 / 7); 1 or .5 over prompts (.0625 / 29);
        # less what is left in the cells, +-.25 everywhere, with 7 * 29 degrees of freedom.
        (4, 4, 0.75, 0.0625 / 7 + 0.0625 / 29 - 0.0625 / 203, 10.05),
    ],
)
def test_the_interval_of_models_like_these_by_hand(always, on_even, mean, variance, df):
    """t on prompts + models - cells with Satterthwaite's degrees of freedom, bent within -1 and 1."""
    row, t = general(recognising(always, on_even), "two_way_t"), sps.t.ppf(0.975, df)
    # Wilson's interval of the place (1 + J) / 2 in the range, at the size (1 - J²) / variance
    width = 4 * half((1 + mean) / 2, (1 - mean**2) / variance, t)
    assert row["estimate"] == pytest.approx(mean) and (row["clusters"], row["cluster_unit"]) == (8, "model")
    assert row["high"] - row["low"] == pytest.approx(width, rel=0.02)
    assert 0.9 < width / (2 * t * np.sqrt(variance)) < 1.02  # of the width of t itself
    assert -1 < row["low"] < mean < row["high"] < 1


def test_the_interval_of_these_models_by_hand():
    """t with 29 degrees of freedom (2.045) on prompts alone, 1 or .5 on even and odd ones."""
    row = general(recognising(4, 4), "clustered_t")
    assert row["high"] - row["low"] == pytest.approx(2 * sps.t.ppf(0.975, 29) * np.sqrt(0.0625 / 29), rel=0.03)


def test_models_in_general_end_before_their_range():
    """Four models that know nearly all their texts: t ended at 1.08 and -.02, and was cut."""
    rng = np.random.default_rng(SEED)
    names = ["m0", "m1", "m2", "m3"]
    knows = dict(zip(names, (1, 1, 0.95, 0.6), strict=True))
    claims = {(e, t): rng.random(20) < (knows[e] if e == t else 0.02) for e in names for t in names}
    table = models_in_general(yes_no(claims))
    for row in table.itertuples():
        least = 0 if row.statistic in ("self_accuracy", "false_claim_rate") else -1
        assert least < row.low < row.estimate < row.high < 1, row
    row = line(table, "self_accuracy", method="two_way_t")
    assert (row["low"], row["high"]) == (pytest.approx(0.43, abs=0.05), pytest.approx(0.99, abs=0.01))


def test_p_of_models_in_general_is_that_of_their_interval():
    claims = recognising(4, 0)
    p = general(claims, "two_way_t")["p"]
    ends = line(models_in_general(yes_no(claims), level=1 - p), "discrimination", method="two_way_t")
    assert ends["low"] == pytest.approx(0, abs=1e-6) and 0.03 < p < 0.08


# ---------------------------------------------------------------------------------------------------------------
# Differences: the cap on the correlation


@pytest.mark.parametrize("prompts", [10, 30, 100])
def test_sides_that_agree_in_every_prompt_keep_an_interval(prompts):
    """Every text of every second prompt is claimed: J = 0, both rates .5, r = 1, and an interval without width.

    With r at most 1 - 1 / prompts: half-widths h of both rates at an effective size of prompts - 1, and J within
    +- h sqrt(2 / prompts).
    """
    claims = np.arange(prompts) % 2 == 0
    row = line(recognition_table(yes_no({("a", t): claims for t in "abcdefgh"}), n_resamples=50), "discrimination")
    by_hand = half(0.5, prompts - 1) * np.sqrt(2 / prompts)
    assert row["estimate"] == 0 and row["clusters"] == prompts
    assert -row["low"] == pytest.approx(row["high"]) == pytest.approx(by_hand, rel=0.12)


@pytest.mark.parametrize("prompts", [10, 30, 100])
def test_two_discriminations_that_agree_in_every_prompt_keep_an_interval(prompts):
    """Both authors are named rightly in every second prompt and swapped in the others: both J are 0 +- 2 h, r = 1."""
    rows = [
        {"evaluator_model": "a", "true_model": author, "task_type": "exact_model", "prompt_id": k,
         "predicted_model": author if k % 2 else other, "predicted_self": None, "text_id": f"{author}-{k}"}
        for author, other in ("ab", "ba") for k in range(prompts)
    ]  # fmt: skip
    row = line(recognition_table(pd.DataFrame(rows), n_resamples=50), "corrected_advantage")
    by_hand = 2 * half(0.5, prompts - 1) * np.sqrt(2 / prompts)
    assert row["estimate"] == 0 and -row["low"] == pytest.approx(row["high"]) == pytest.approx(by_hand, rel=0.12)


# ---------------------------------------------------------------------------------------------------------------
# BCa with ties


@pytest.mark.parametrize("wins", [[1] * 21 + [0] * 3, [1] * 17 + [0.5] * 4 + [0] * 5, [0] * 26 + [1] * 2])
def test_bca_of_tied_values_is_that_of_scipy(wins):
    """A tenth to a third of the resamples equal the estimate: they count half for the bias correction."""
    wins = np.array(wins, float)
    pairs = np.arange(len(wins))
    table = baseline_auc(
        np.r_[wins, np.full(len(wins), 0.5)], np.r_[np.ones(len(wins)), np.zeros(len(wins))], np.r_[pairs, pairs],
        n_resamples=20_000,
    )  # fmt: skip
    row = line(table, "paired_accuracy", method="bca")
    drawn = sps.bootstrap((wins,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(SEED))
    ties = np.mean(np.abs(drawn.bootstrap_distribution - wins.mean()) < 1e-9)
    assert 0.08 < ties < 0.35
    assert (row["low"], row["high"]) == pytest.approx(tuple(drawn.confidence_interval), abs=0.006)


def test_bca_of_tied_claims_is_that_of_scipy():
    """The same for a table whose resamples are kept in single precision, in which 26/30 is not what it is in double."""
    claims = np.array([1] * 26 + [0] * 4, float)
    table = recognition_table(yes_no({("a", "a"): claims, ("a", "b"): np.zeros(30)}), n_resamples=20_000)
    row = line(table, "self_accuracy", method="bca")
    drawn = sps.bootstrap((claims,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(SEED))
    assert (row["low"], row["high"]) == pytest.approx(tuple(drawn.confidence_interval), abs=0.006)


# ---------------------------------------------------------------------------------------------------------------
# The effective size of unbalanced designs


UNBALANCED = [
    # 20 prompts with one text, 20 with nine: 200 rows, half of them claimed. Contributions to the rate are (hits - size
    # / 2) / 200, so +-.5 / 200 and +-d / 200: q = 20 (.25 + d²) / 200², variance 40/39 q, size .25 / variance.
    (9, 23.8),  # nine or none of nine: fewer than the 40 prompts
    (7, 71.0),  # seven or two of nine: 75 on 22 prompts' worth of variance, of which t keeps .94; not the 200 rows
]


def unbalanced(hits: int) -> list[list[int]]:
    """Return per prompt the claims of its texts: 1 or 0 of one, `hits` or 9 - `hits` of nine."""
    return [[k % 2] if k < 20 else [1] * (n := hits if k % 2 else 9 - hits) + [0] * (9 - n) for k in range(40)]


@pytest.mark.parametrize(("hits", "size"), UNBALANCED)
def test_the_effective_size_of_claims_by_hand(hits, size):
    rows = [
        {"evaluator_model": "a", "true_model": author, "task_type": "binary_self", "predicted_model": None,
         "predicted_self": bool(claim), "prompt_id": prompt, "text_id": f"{author}-{prompt}-{k}"}
        for author in "ab" for prompt, given in enumerate(unbalanced(hits)) for k, claim in enumerate(given)
    ]  # fmt: skip
    row = line(recognition_table(pd.DataFrame(rows), n_resamples=50), "self_accuracy")
    assert (row["estimate"], row["n"], row["clusters"]) == (0.5, 200, 40)
    assert row["high"] - row["estimate"] == pytest.approx(half(0.5, size), rel=0.035)
    assert row["estimate"] - row["low"] == pytest.approx(half(0.5, size), rel=0.035)


@pytest.mark.parametrize(("hits", "size"), UNBALANCED)
def test_the_effective_size_of_statements_without_a_score_by_hand(hits, size):
    """The same counts as missing scores: conversations of one and of nine turns."""
    scores = [[None if missing else 0.5 for missing in given] for given in unbalanced(hits)]
    row = line(jury_table(verdicts({"a": scores}), n_resamples=50), "no_answer_rate", evaluator="")
    assert (row["estimate"], row["n"], row["clusters"]) == (0.5, 200, 40)
    assert row["high"] - row["low"] == pytest.approx(2 * half(0.5, size), rel=0.05)


# ---------------------------------------------------------------------------------------------------------------
# Coverage from both sides


def sound(estimates, low, high, truth: float, df: int) -> None:
    """Check that intervals hold the truth often enough, and are not much wider than the spread of estimates asks."""
    covered, width = np.mean((low <= truth) & (truth <= high)), np.mean(high - low)
    asked = 2 * sps.t.ppf(0.975, df) * np.std(estimates, ddof=1)
    assert covered >= 0.92 and width <= 1.15 * asked, (covered, width / asked)


@pytest.mark.parametrize(
    ("own", "others", "prompts"), [(0.6, 0.4, 30), (0.85, 0.15, 30), (0.5, 0.5, 60)], ids=["near", "far", "blind"]
)
def test_rates_and_discrimination_are_covered_and_not_too_wide(own, others, prompts):
    """400 evaluators, each on texts of its own and of one other, 1 to 3 a prompt, which go together (icc .3)."""
    rng, found = np.random.default_rng([SEED, prompts]), []
    for _ in range(4):
        e, p, mine, sample = (x.ravel() for x in np.meshgrid(*map(np.arange, (100, prompts, 2, 3)), indexing="ij"))
        shared = rng.random((100, prompts))[e, p]
        draw = np.where(rng.random(len(e)) < np.sqrt(0.3), shared, rng.random(len(e)))
        frame = pd.DataFrame({
            "evaluator_model": e.astype(str), "true_model": ((e + 1 - mine) % 100).astype(str),
            "task_type": "binary_self", "predicted_model": None, "predicted_self": draw < np.where(mine, own, others),
            "prompt_id": p, "text_id": [f"{i}" for i in range(len(e))],
        })  # fmt: skip
        table = recognition_table(frame[sample <= (p + mine) % 3], n_resamples=1).query("author == ''")
        found.append(table.drop_duplicates(["evaluator", "statistic"]))
    table = pd.concat(found)
    for name, truth in (("self_accuracy", own), ("false_claim_rate", others), ("discrimination", own - others)):
        rows = table[table["statistic"] == name]
        assert len(rows) == 400
        sound(rows["estimate"], rows["low"], rows["high"], truth, prompts - 1)


@pytest.mark.parametrize("apart", [0.05, 0.2])
def test_agreement_is_covered_and_not_too_wide(apart):
    """400 juries of three on 24 conversations of three turns; answers differ by `apart`, jurors by .1."""
    rng = np.random.default_rng([SEED, int(100 * apart)])

    def draw(conversations: int) -> tuple[np.ndarray, np.ndarray]:
        mood = np.repeat(rng.normal(0, apart, conversations), 3) + rng.normal(0, apart / 2, 3 * conversations)
        ratings = 0.5 + mood[:, None] + [0.05, 0, -0.05] + rng.normal(0, 0.1, (3 * conversations, 3))
        return ratings, np.repeat(np.arange(conversations), 3)

    def consistency(ratings, cluster):
        return icc(ratings, "C", cluster)

    truth, tables = draw(60_000), [draw(24) for _ in range(400)]
    for build in (lambda *x: krippendorff_alpha(x[0], cluster=x[1]), consistency):
        found = [build(*table) for table in tables]
        low, high = np.transpose([f.interval(Z) for f in found])
        sound([f.value for f in found], low, high, build(*truth).value, 23)


@pytest.mark.parametrize(("mean", "conversations"), [(0.5, 12), (0.85, 24), (0.9, 40)])
def test_mean_scores_are_covered_and_not_too_wide(mean, conversations):
    """2,000 juries of one as vectors, the first of them as records too."""
    rng = np.random.default_rng([SEED, conversations])
    scores = rng.beta(8 * mean, 8 * (1 - mean), (conversations, 2_000))
    found, t = scores.mean(0), sps.t.ppf(0.975, conversations - 1)
    low, high = within_range(found, scores.var(0, ddof=1) / conversations, t, 0, 1)
    sound(found, low, high, mean, conversations - 1)
    row = line(jury_table(verdicts({"a": list(scores[:, 0])}), n_resamples=1), "mean_score")
    assert (row["low"], row["high"]) == (pytest.approx(low[0]), pytest.approx(high[0]))
