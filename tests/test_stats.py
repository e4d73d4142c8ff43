"""Statistics of recognition: hand-computed cases, degenerate cases, outside references, coverage and level."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps

from selfeval.errors import InputError
from selfeval.stats import COLUMNS, confusion, recognition_table
from selfeval.stats.bootstrap import bootstrap_intervals, cluster_weights, clustered_t
from selfeval.stats.counts import condition_label, tallies
from selfeval.stats.intervals import Difference, Rate, effective_n, mover, wilson
from selfeval.stats.naming import Naming, naming_measures, resample_naming
from selfeval.stats.testing import detectable_difference, holm, inverted_p, permutation_p, power

# Yes/no self-recognition of ten judges, 16 own and 160 other texts each: Davidson et al. 2024 ("Self-Recognition in
# Language Models", example configuration of their repository, licence MIT); counts recomputed from their raw data.
DAVIDSON = Path(__file__).parent / "data" / "davidson_yesno_counts.csv"
FAST = {"n_resamples": 200}


def naming(answers: dict[tuple[str, str], list], task="exact_model", **columns) -> pd.DataFrame:
    """Build records: {(evaluator, author): answer for prompt 0, 1, ...}."""
    rows = [
        {"text_id": f"{author}-{prompt}", "true_model": author, "evaluator_model": evaluator, "task_type": task,
         "predicted_model": answer, "predicted_self": None, "prompt_id": prompt}
        for (evaluator, author), given in answers.items() for prompt, answer in enumerate(given)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def binary(answers: dict[tuple[str, str], list]) -> pd.DataFrame:
    frame = naming(answers, "binary_self")
    return frame.assign(predicted_self=frame["predicted_model"], predicted_model=None)


def blind(n_authors: int, n_prompts: int, say) -> pd.DataFrame:
    """Every evaluator answers `say(evaluator index, author, prompt)`, over all authors."""
    ids = [f"m{i}" for i in range(n_authors)]
    return naming({(e, t): [say(e, t, p) for p in range(n_prompts)] for e in ids for t in ids})


def value(table, statistic, evaluator, author="", policy=None, method=None, column="estimate"):
    rows = table[(table.statistic == statistic) & (table.evaluator == evaluator) & (table.author == author)]
    rows = rows if policy is None else rows[rows.policy == policy]
    rows = rows if method is None else rows[rows.method == method]
    return rows[column].iloc[0]


def simulated(seed, n_models=3, n_prompts=30, samples=1, know=0.4, none=0.0, drop=0.0, task="exact_model"):
    rng = np.random.default_rng(seed)
    ids = np.array([f"m{i}" for i in range(n_models)] + [None], object)
    grid = np.meshgrid(*map(np.arange, (n_models, n_models, n_prompts, samples)), indexing="ij")
    e, t, p, s = (x.ravel() for x in grid)
    answer = np.where(rng.random(len(e)) < know, t, rng.integers(0, n_models, len(e)))
    answer = np.where(rng.random(len(e)) < none, -1, answer)
    mine = np.where(answer < 0, None, answer == e)
    frame = pd.DataFrame({
        "text_id": (t * n_prompts + p) * samples + s, "true_model": ids[t], "evaluator_model": ids[e],
        "task_type": task, "prompt_id": p, "predicted_model": ids[answer] if task != "binary_self" else None,
        "predicted_self": mine if task == "binary_self" else None,
    })  # fmt: skip
    return frame[rng.random(len(frame)) >= drop]


def brute(frame, evaluator, names):
    """Recompute the naming statistics of one evaluator straight from the definitions."""
    hit = {}
    for (e, t), rows in frame.groupby(["evaluator_model", "true_model"]):
        for k in names:
            hit[e, t, k] = (rows.predicted_model == k).mean()
    j = {(e, m): hit[e, m, m] - np.mean([hit[e, t, m] for t in names if t != m]) for e in names for m in names}
    others = [m for m in names if m != evaluator]
    e = evaluator
    own = hit[e, e, e]
    delta = j[e, e] - np.mean([j[e, m] for m in others])
    peers = [j[p, e] - np.mean([j[p, m] for m in names if m not in (e, p)]) for p in others]
    return {
        "self_accuracy": own,
        "false_claim_rate": np.mean([hit[e, t, e] for t in others]),
        "cross_accuracy": np.mean([hit[e, t, t] for t in others]),
        "advantage": own - np.mean([hit[e, t, t] for t in others]),
        "discrimination": j[e, e],
        "corrected_advantage": delta,
        "peer_baseline": own - np.mean([hit[p, e, e] for p in others]),
        "best_peer": own - max(hit[p, e, e] for p in others),
        "peer_corrected": j[e, e] - np.mean([j[p, e] for p in others]),
        "interaction": delta - np.mean(peers),
    }


# ---------------------------------------------------------------------------------------------------------------
# Values by hand


def test_worked_example_of_the_advantage():
    """Self .8, cross .6 and .4 give +.30 (the worked example of the metric's documentation)."""
    answers = {("a", "a"): ["a"] * 8 + ["b"] * 2, ("a", "b"): ["b"] * 6 + ["c"] * 4, ("a", "c"): ["c"] * 4 + ["b"] * 6}
    table = recognition_table(naming(answers), **FAST)
    assert value(table, "self_accuracy", "a") == pytest.approx(0.8)
    assert value(table, "cross_accuracy", "a") == pytest.approx(0.5)
    assert value(table, "advantage", "a") == pytest.approx(0.3)
    assert value(table, "author_accuracy", "a", "c") == pytest.approx(0.4)
    assert value(table, "discrimination", "a") == pytest.approx(0.8)  # nobody else is called "a"


def test_table_has_the_columns_of_the_contract_and_the_default_method_first():
    table = recognition_table(simulated(0), **FAST)
    assert tuple(table) == COLUMNS
    first = table.groupby(["evaluator", "author", "statistic", "policy"], sort=False).method.first()
    assert first.xs("discrimination", level="statistic").eq("mover").all()
    assert first.xs("corrected_advantage", level="statistic").eq("mover_nested").all()
    assert first.xs("self_accuracy", level="statistic").eq("wilson_effective_n").all()
    assert first.xs("interaction", level="statistic").eq("clustered_t").all()
    seeded = table.method.isin(["percentile", "bca"])
    assert table.seed.notna().eq(seeded).all()


def test_published_yes_no_counts():
    counts = pd.read_csv(DAVIDSON)
    answers = {}
    for row in counts.itertuples():
        answers[row.judge, row.judge] = [True] * row.hits + [False] * (row.n_own - row.hits)
        answers[row.judge, "others"] = [True] * row.false_yes + [False] * (row.n_other - row.false_yes)
    table = recognition_table(binary(answers), **FAST)
    expected = {
        "command-r-plus": -0.019, "claude-3-haiku": -0.013, "claude-3-opus": 0.281, "claude-3-sonnet": 0.038,
        "gemini-1.0-pro": 0.006, "llama-3-70b": 0.069, "llama-3-8b": -0.038, "mixtral-8x22b": 0.069,
        "gpt-3.5-turbo": -0.063, "gpt-4-turbo": 0.031,
    }  # fmt: skip
    for judge, j in expected.items():
        assert value(table, "discrimination", judge) == pytest.approx(j, abs=6e-4)
        assert value(table, "accuracy", judge) == pytest.approx(
            counts.set_index("judge").published_accuracy[judge], abs=6e-4
        )
        assert value(table, "advantage", judge) == pytest.approx(
            value(table, "self_accuracy", judge) - (1 - value(table, "false_claim_rate", judge))
        )


@pytest.mark.parametrize(("drop", "none"), [(0, 0), (0.1, 0), (0, 0.2)])
def test_naming_statistics_equal_their_definitions(drop, none):
    """In a crossed design, with rows missing, and with missing answers (policy `all` and `answered`)."""
    frame = simulated(3, n_models=4, drop=drop, none=none)
    names = [f"m{i}" for i in range(4)]
    table = recognition_table(frame, **FAST)
    for policy in ["all", "answered"] if none else ["all"]:
        rows = frame if policy == "all" else frame[frame.predicted_model.notna()]
        for evaluator in names:
            for statistic, expected in brute(rows, evaluator, names).items():
                assert value(table, statistic, evaluator, policy=policy) == pytest.approx(expected), statistic


def test_kappa_and_overall_accuracy():
    table = recognition_table(naming({("a", "a"): ["a", "a", "b", "a"], ("a", "b"): ["b", "a", "b", "a"]}), **FAST)
    assert value(table, "overall_accuracy", "a") == pytest.approx(5 / 8)
    assert value(table, "kappa", "a") == pytest.approx((5 / 8 - 1 / 2) / (1 - 1 / 2))


def test_binary_metrics_by_hand():
    answers = {("a", "a"): [True, True, False, None], ("a", "b"): [True, False, False, False]}
    table = recognition_table(binary(answers), **FAST)
    expected = {
        "tp": 2, "fn": 1, "fp": 1, "tn": 3, "accuracy": 5 / 7, "always_no_accuracy": 4 / 7, "precision": 2 / 3,
        "recall": 2 / 3, "f1": 2 / 3, "always_yes_f1": 6 / 10, "balanced_accuracy": (2 / 3 + 3 / 4) / 2,
        "mcc": (2 * 3 - 1) / np.sqrt(3 * 3 * 4 * 4),
    }  # fmt: skip
    for statistic, number in expected.items():
        assert value(table, statistic, "a", policy="answered") == pytest.approx(number), statistic
    first = table[table.statistic == "accuracy"].iloc[0]
    assert (first.policy, first.n) == ("answered", 7)
    assert value(table, "recall", "a", policy="all") == pytest.approx(1 / 2)  # no answer did not claim
    assert value(table, "discrimination", "a", policy="all") == pytest.approx(1 / 2 - 1 / 4)
    assert value(table, "no_answer_rate", "a") == pytest.approx(1 / 8)


def test_auc_against_pairs():
    rng = np.random.default_rng(5)
    frame = simulated(1, task="binary_self", samples=2)
    frame["score"] = 0.5 + rng.normal(frame.true_model == frame.evaluator_model, 1).round(1) / 10
    frame.loc[frame.index[:7], "score"] = np.nan
    table = recognition_table(frame, **FAST)
    rows = frame[(frame.evaluator_model == "m1") & frame.score.notna()]
    own, other = (rows[rows.true_model.eq("m1") == is_own] for is_own in (True, False))
    wins = np.sign(own.score.to_numpy()[:, None] - other.score.to_numpy()) / 2 + 0.5
    same = own.prompt_id.to_numpy()[:, None] == other.prompt_id.to_numpy()
    assert value(table, "auc", "m1") == pytest.approx(wins.mean())
    assert value(table, "auc_within_prompt", "m1") == pytest.approx(wins[same].mean())


def test_pairs_average_both_orders():
    def pair(rival, position, chosen):
        return [
            {"text_id": p, "other_text_id": 100 + p, "other_model": rival, "true_model": "a", "evaluator_model": "a",
             "task_type": "pairwise_self", "predicted_self": c, "position": position, "prompt_id": p}
            for p, c in enumerate(chosen)
        ]  # fmt: skip

    frame = pd.DataFrame(pair("b", 1, [True, True, True, True]) + pair("b", 2, [True, False, False, None]))
    table = recognition_table(frame, **FAST)
    assert value(table, "self_accuracy", "a", policy="all") == pytest.approx((1 + 1 / 4) / 2)
    assert value(table, "self_accuracy", "a", policy="answered") == pytest.approx((1 + 1 / 3) / 2)
    assert value(table, "author_accuracy", "a", "b", policy="all") == pytest.approx((1 + 1 / 4) / 2)
    assert value(table, "position_bias", "a") == pytest.approx((1 + 2 / 3) / 2 - 1 / 2)


def test_best_single_peer_is_named():
    answers = {(e, t): [t if (e, t) != ("c", "a") else "b"] * 4 for e in "abc" for t in "abc"}
    answers["b", "a"] = ["a", "a", "a", "b"]
    table = recognition_table(naming(answers), **FAST)
    assert value(table, "best_peer", "a") == pytest.approx(1 / 4)
    assert "peer=b" in value(table, "best_peer", "a", column="note")
    assert value(table, "peer_baseline", "a") == pytest.approx(1 - 3 / 8)


# ---------------------------------------------------------------------------------------------------------------
# Degenerate cases


def test_always_naming_itself_has_full_advantage_and_no_discrimination():
    table = recognition_table(blind(10, 45, lambda e, t, p: e), **FAST)
    assert value(table, "advantage", "m3") == 1
    assert value(table, "discrimination", "m3") == 0
    assert value(table, "d_prime", "m3") == pytest.approx(0, abs=1e-12)
    assert "constant_answer" in value(table, "discrimination", "m3", column="note")
    assert "constant_answer" in value(table, "d_prime", "m3", column="note")
    assert value(table, "discrimination", "m3", column="p") == 1
    assert value(table, "discrimination", "m3", column="low") < 0 < value(table, "discrimination", "m3", column="high")


def test_no_answer_at_all():
    table = recognition_table(blind(3, 5, lambda e, t, p: None), **FAST)
    assert value(table, "self_accuracy", "m0", policy="all") == 0
    assert np.isnan(value(table, "self_accuracy", "m0", policy="answered"))
    assert value(table, "no_answer_rate", "m0") == 1
    assert np.isnan(value(table, "overall_accuracy", "m0"))
    assert "not_estimable" in value(table, "overall_accuracy", "m0", column="note")
    assert not value(table, "discrimination", "m0", policy="all", column="p") < 1


def test_ceiling_has_a_one_sided_interval_and_constant_resamples():
    table = recognition_table(blind(3, 50, lambda e, t, p: t), **FAST)
    assert value(table, "discrimination", "m0") == 1
    assert value(table, "discrimination", "m0", column="low") < 0.95
    assert value(table, "discrimination", "m0", column="high") == 1
    assert "constant" in value(table, "discrimination", "m0", method="bca", column="note")
    assert value(table, "corrected_advantage", "m0", column="p") == 1


def test_one_prompt_one_author_one_evaluator():
    table = recognition_table(naming({("a", "a"): ["a"]}), **FAST)
    assert value(table, "self_accuracy", "a") == 1
    assert value(table, "self_accuracy", "a", column="low") == pytest.approx(wilson(1, 1, 1.96)[0], abs=1e-3)
    assert np.isnan(value(table, "discrimination", "a"))
    assert table[table.statistic == "discrimination"].note.str.contains("not_estimable").all()
    assert np.isnan(value(table, "self_accuracy", "a", method="clustered_t", column="low"))
    assert "few_prompts" in value(table, "self_accuracy", "a", column="note")


def test_evaluator_that_wrote_nothing_has_no_own_rate():
    frame = naming({("z", t): [t, t, "a"] for t in "ab"})
    table = recognition_table(frame, **FAST)
    assert np.isnan(value(table, "self_accuracy", "z"))
    assert value(table, "author_accuracy", "z", "b") == pytest.approx(2 / 3)
    assert value(table, "discrimination", "z", "a") == pytest.approx(1 - 1 / 3)
    assert value(table, "cross_accuracy", "z") == pytest.approx((1 + 2 / 3) / 2)


def test_unseen_author_is_left_out_not_zero():
    answers = {(e, t): [t, "a", t] for e in "abc" for t in "abc" if (e, t) != ("a", "c")}
    table = recognition_table(naming(answers), **FAST)
    assert np.isnan(value(table, "author_accuracy", "a", "c"))
    assert value(table, "cross_accuracy", "a") == pytest.approx(2 / 3)
    assert value(table, "false_claim_rate", "a") == pytest.approx(1 / 3)


def test_conditions_are_never_mixed():
    one, two = simulated(0, n_prompts=6), simulated(1, n_prompts=6)
    one["condition"], two["condition"] = "told=true", [{"told": False}] * len(two)
    both = recognition_table(pd.concat([one, two]), **FAST)
    alone = recognition_table(two, **FAST)
    pd.testing.assert_frame_equal(both[both.condition == "told=false"].reset_index(drop=True), alone)
    assert set(both.condition) == {"told=true", "told=false"}
    assert condition_label("b=1; a=True") == condition_label({"a": True, "b": 1}) == "a=true;b=1"


def test_names_outside_the_authors_are_answers_but_claim_nothing():
    frame = naming({(e, t): ["zz", e] for e in "ab" for t in "ab"})
    table = recognition_table(frame, **FAST)
    assert set(table[table.statistic == "no_answer_rate"].estimate) == {0}
    assert value(table, "overall_accuracy", "a") == pytest.approx(1 / 4)


def test_clusters_fall_back_to_the_prompt_text_then_to_the_text():
    frame = simulated(0, n_prompts=5)
    by_text = frame.drop(columns="prompt_id").assign(prompt_used="p" + frame.prompt_id.astype(str))
    pd.testing.assert_frame_equal(recognition_table(by_text, **FAST), recognition_table(frame, **FAST))
    alone = recognition_table(frame.drop(columns="prompt_id"), **FAST)
    assert alone.note.str.contains("clusters_are_texts").all()
    assert np.isnan(value(alone, "discrimination", "m0", column="p"))  # no prompt holds own and other texts


def test_confusion_counts_every_row_once():
    frame = naming({("a", "a"): ["a", None, "x"], ("a", "b"): ["a", "b", ""]})
    counts = confusion(frame)
    assert list(counts) == ["task", "condition", "evaluator", "author", "predicted", "n"]
    assert dict(zip(zip(counts.author, counts.predicted, strict=True), counts.n, strict=True)) == {
        ("a", "a"): 1, ("a", "none"): 1, ("a", "x"): 1, ("b", "a"): 1, ("b", "b"): 1, ("b", "none"): 1,
    }  # fmt: skip
    yes = confusion(binary({("a", "a"): [True, False, None]}))
    assert list(yes.predicted) == ["a", "none", "not_self"]


# ---------------------------------------------------------------------------------------------------------------
# Input errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="true_model"), "Column `true_model` is missing"),
        (lambda f: f.drop(columns="predicted_model"), "Column `predicted_model` is missing"),
        (lambda f: f.assign(task_type="guess"), "must be one of exact_model, lineup, binary_self, pairwise_self"),
        (lambda f: f.assign(evaluator_model=None), "Column `evaluator_model` must not be null"),
        (lambda f: f.assign(task_type="binary_self", predicted_self="perhaps"), "true, false or null, got 'perhaps'"),
        (lambda f: f.assign(predicted_model=[["m0"]] * len(f)), "`predicted_model` must hold texts, numbers or nulls"),
        (lambda f: f.assign(evaluator_model=[["m0"]] * len(f)), "`evaluator_model` must hold texts, numbers or nulls"),
        (lambda f: f.assign(text_id=[{}] * len(f)), "`text_id` must hold texts, numbers or nulls"),
        (lambda f: f.assign(score="0,9"), "`score` must hold numbers from 0 to 1 or null, got '0,9'"),
        (lambda f: f.assign(score=[[0.5]] * len(f)), "`score` must hold numbers from 0 to 1 or null, got [0.5]"),
        (lambda f: f.assign(score=17), "`score` must hold numbers from 0 to 1 or null, got 17"),
        (lambda f: f.assign(score=float("inf")), "`score` must hold numbers from 0 to 1 or null, got inf"),
        (lambda f: f.assign(position=0), "`position` must hold 1 or 2 (first or second) or null, got '0'"),
        (lambda f: f.assign(task_type="pairwise_self", position="third"), "or null, got 'third'"),
        (lambda f: f.assign(task_type="pairwise_self", position=3), "or null, got '3'"),
        (lambda f: pd.concat([f, f[["text_id"]]], axis=1), "have the column `text_id` twice"),
        (lambda f: f.to_dict("records"), "must be a pandas DataFrame, got list"),
        (lambda f: pd.concat([f, f.iloc[4:5].assign(text_id="4")]), "'m0' has text_id 4 twice"),
        (lambda f: f.iloc[:0], "no prediction records"),
        (lambda f: pd.concat([f, f.iloc[4:5]]), "'m0' has text_id 4 twice under task 'exact_model', condition ''"),
    ],
)
def test_bad_records_are_named(change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        recognition_table(change(simulated(0, n_prompts=5)), **FAST)


@pytest.mark.parametrize("options", [
    {"level": 0}, {"level": 1}, {"level": 95}, {"level": "0.9"}, {"n_resamples": 0}, {"seed": 10**40},
])  # fmt: skip
def test_bad_options_are_named(options):
    with pytest.raises(InputError, match=f"`{next(iter(options))}`"):
        recognition_table(simulated(0, n_prompts=5), **options)


# ---------------------------------------------------------------------------------------------------------------
# Intervals against outside references


def test_wilson_against_scipy():
    for k, n in ((0, 10), (3, 10), (10, 10), (96, 100)):
        reference = sps.binomtest(k, n).proportion_ci(method="wilson")
        assert wilson(k / n, n, sps.norm.ppf(0.975)) == pytest.approx((reference.low, reference.high))


def test_mover_against_newcombe():
    """Newcombe 1998, Statistics in Medicine 17:873, table II, example (a), method 10: 56/70 - 48/80."""
    a, b = wilson(56 / 70, 70, 1.959964), wilson(48 / 80, 80, 1.959964)
    assert mover(56 / 70, *a, 48 / 80, *b) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_independent_rows_have_their_own_number_as_effective_size():
    hits = np.random.default_rng(0).random((4000, 1)) < 0.3
    rate = Rate.of(hits, np.ones_like(hits))
    assert rate.n_eff == pytest.approx(4000, rel=1e-3)
    copies = Rate.of(5 * hits, 5 * np.ones_like(hits))
    assert copies.n_eff == pytest.approx(4000, rel=1e-3)  # five copies of a text are one observation


def test_a_size_above_the_number_of_clusters_has_to_be_earned():
    """Five texts a prompt, one missed in each of three of 50 prompts: the variance rests on three prompts."""
    hits = np.full((50, 1), 5.0)
    hits[:3] = 4
    rate = Rate.of(hits, np.full((50, 1), 5.0))
    believed = effective_n(rate.value, rate.variance, rate.clusters, rate.trials)
    assert believed == pytest.approx(250, rel=0.03) and 50 <= rate.n_eff < 0.7 * believed
    many = Rate.of(np.tile([5.0, 4, 3, 2, 1, 0], 100)[:, None], np.full((600, 1), 5.0))
    assert many.n_eff == pytest.approx(effective_n(many.value, many.variance, many.clusters, many.trials), rel=0.01)
    single = Rate.of(np.r_[np.zeros(3), np.ones(47)][:, None], np.ones((50, 1)))
    assert single.n_eff == effective_n(single.value, single.variance, single.clusters, single.trials)


@pytest.mark.parametrize("prompts", [20, 50])
def test_the_default_covers_near_one_with_near_copies_on_a_prompt(prompts):
    """Five texts a prompt, a true rate of .97, intraclass correlation .3: without that care .89 at 50 prompts."""
    rng = np.random.default_rng(1)
    common, shared = rng.random((prompts, 1, 4000)), rng.random((prompts, 5, 4000)) < np.sqrt(0.3)
    hits = np.where(shared, common, rng.random(shared.shape)) < 0.97
    low, high = Rate.of(hits.sum(1), np.full((prompts, 4000), 5.0)).interval(1.96)
    assert np.mean((low <= 0.97) & (high >= 0.97)) >= 0.93


def test_a_rate_from_rows_and_its_difference():
    success = np.array([True, False, True, True, False, True])
    rate = Rate.of_rows(success, ["a", "a", "b", "b", "c", "c"])
    estimate = rate.estimate(0.9)
    assert (estimate.value, estimate.n, estimate.n_prompts, estimate.level) == (4 / 6, 6, 3, 0.9)
    assert (estimate.low, estimate.high) == wilson(4 / 6, rate.n_eff, sps.norm.ppf(0.95))
    with pytest.raises(InputError, match="`level` must lie between 0 and 1, got 95"):
        rate.estimate(95)


def contrasts(frame, evaluator):
    """Per-prompt contrast whose mean is J in a balanced design."""
    rows = frame[frame.evaluator_model == evaluator]
    claim = (rows.predicted_model == evaluator).astype(float)
    own = claim[rows.true_model == evaluator].groupby(rows.prompt_id).mean()
    other = claim[rows.true_model != evaluator].groupby(rows.prompt_id).mean()
    return (own - other).to_numpy()


def test_bootstrap_against_scipy():
    frame = simulated(7, n_prompts=60, samples=2)
    table = recognition_table(frame, n_resamples=20_000)
    x = contrasts(frame, "m1")
    for ours, theirs in (("percentile", "percentile"), ("bca", "BCa")):
        reference = sps.bootstrap((x,), np.mean, n_resamples=20_000, method=theirs, rng=np.random.default_rng(1))
        for side in ("low", "high"):
            got = value(table, "discrimination", "m1", method=ours, column=side)
            assert got == pytest.approx(getattr(reference.confidence_interval, side), abs=0.008)


def test_bca_formula_against_scipy_on_equal_resamples():
    x = np.random.default_rng(0).exponential(size=40)
    drawn = sps.bootstrap((x,), np.mean, n_resamples=5_000, method="BCa", rng=np.random.default_rng(2))
    contrib = (x - x.mean())[:, None] / len(x)
    bounds = bootstrap_intervals(drawn.bootstrap_distribution[None].copy(), [x.mean()], contrib, 0.95)
    assert (bounds[2][0], bounds[3][0]) == pytest.approx(tuple(drawn.confidence_interval), abs=1e-12)
    assert not bounds[4][0]


def test_clustered_t_is_the_one_sample_t_of_the_contrasts():
    frame = simulated(8, n_prompts=45)
    reference = sps.ttest_1samp(contrasts(frame, "m2"), 0).confidence_interval(0.95)
    table = recognition_table(frame, **FAST)
    got = [value(table, "discrimination", "m2", method="clustered_t", column=side) for side in ("low", "high")]
    assert got == pytest.approx(tuple(reference))


def test_cluster_variance_against_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    frame = simulated(9, n_prompts=50, samples=3, drop=0.2)
    rows = frame[frame.evaluator_model == "m0"]
    y = (rows.predicted_model == rows.true_model).astype(float)
    fit = sm.OLS(y, np.ones(len(y))).fit(
        cov_type="cluster", cov_kwds={"groups": rows.prompt_id.to_numpy(), "df_correction": True}, use_t=True
    )
    table = recognition_table(frame, **FAST)
    got = [value(table, "overall_accuracy", "m0", method="clustered_t", column=s) for s in ("low", "high")]
    assert got == pytest.approx(fit.conf_int().to_numpy()[0], abs=2e-5)  # theirs also has (n - 1) / (n - k) = 1


@pytest.mark.parametrize(("drop", "none"), [(0, 0), (0.3, 0), (0, 0.2)])
def test_bootstrap_against_resampled_rows(drop, none):
    """The product of weights and counts equals copying the rows of the drawn prompts, for every statistic."""
    frame = simulated(11, n_models=4, n_prompts=12, samples=2, drop=drop, none=none)
    names, clusters = [f"m{i}" for i in range(4)], 12
    weights = cluster_weights(clusters, 5, np.random.default_rng(0))
    (tally,) = tallies(frame)
    for policy in ("all", "answered"):
        cells = Naming.of(tally, policy)
        found = {m.name: m for m in naming_measures(cells)[0]}
        resample_naming(cells, weights, found, lambda e, samples: None)
        rows = frame if policy == "all" else frame[frame.predicted_model.notna()]
        order = pd.unique(frame.prompt_id)
        for b in range(5):
            times = dict(zip(order, weights[:, b].astype(int), strict=True))
            copies = rows.loc[rows.index.repeat(rows.prompt_id.map(times))]
            if copies.groupby(["evaluator_model", "true_model"]).ngroups < 16:
                continue
            for e, name in enumerate(names):
                expected = brute(copies, name, names)
                expected.pop("best_peer")  # ours holds the peer fixed
                for statistic, number in expected.items():
                    assert found[statistic].samples[e, b] == pytest.approx(number, abs=2e-6), (statistic, policy)


def test_same_seed_same_table_other_seed_other_bootstrap():
    frame = simulated(2)
    one, again, other = (recognition_table(frame, n_resamples=500, seed=s) for s in (4, 4, 5))
    pd.testing.assert_frame_equal(one, again)
    assert not one.low.equals(other.low)
    default = ~one.method.isin(["percentile", "bca"])
    pd.testing.assert_frame_equal(one[default], other[default])


# ---------------------------------------------------------------------------------------------------------------
# Tests, power, multiplicity


def test_permutation_p_against_enumeration():
    """Two prompts of three items, one own: nine assignments of which item is own."""
    claims = np.array([[1, 0, 0], [1, 1, 0]])  # the first item of each prompt is own
    own = claims[:, 0]
    totals = [claims[0, i] + claims[1, k] for i in range(3) for k in range(3)]
    centre = claims.mean(1).sum()
    expected = np.mean([abs(t - centre) >= abs(own.sum() - centre) - 1e-9 for t in totals])
    got = permutation_p(claims[:, None], np.ones((2, 1, 3)), [0])
    assert got == pytest.approx(expected)


def test_permutation_test_holds_its_level():
    rng = np.random.default_rng(0)
    willing = rng.beta(1, 3, size=(40, 1, 2000))  # claims cluster by prompt
    claims = (rng.random((40, 6, 2000)) < willing).swapaxes(1, 2)
    p = permutation_p(claims, np.ones(claims.shape), np.zeros(2000, int))
    assert 0.03 < (p <= 0.05).mean() <= 0.06


def test_inverted_p_is_the_level_whose_interval_touches_zero():
    rate = Rate.of(np.array([[1.0], [0], [1], [1], [1], [0], [1], [1]]), np.ones((8, 1)))
    half = Difference(rate, Rate(np.array([0.3]), np.zeros((8, 1)), np.array([8]), np.array([8])))
    p = inverted_p(half)[0]
    low, _ = half.interval(sps.norm.isf(p / 2))
    assert low[0] == pytest.approx(0, abs=1e-9)


def test_holm():
    assert holm([0.01, 0.04, 0.03, np.nan]) == pytest.approx([0.03, 0.06, 0.06, np.nan], nan_ok=True)
    table = recognition_table(simulated(3), **FAST)
    tested = table[table.p.notna()]
    assert set(tested.statistic) == {"discrimination", "corrected_advantage", "peer_corrected"}
    assert tested.groupby("statistic").p.apply(lambda p: holm(p).tolist()).explode().tolist() == pytest.approx(
        tested.groupby("statistic").p_holm.apply(list).explode().tolist()
    )


def test_planned_power():
    assert detectable_difference([20, 50, 100, 200]).round(2).tolist() == [0.34, 0.22, 0.15, 0.11]
    assert detectable_difference(20, t=True) == pytest.approx(0.36, abs=0.005)
    assert power(detectable_difference(50), 50) == pytest.approx(0.8, abs=1e-3)
    assert power(0, 50) == pytest.approx(0.05)
    assert np.isnan(detectable_difference(1, t=True))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: detectable_difference(-5), "`n_prompts` must be a number of at least 1, got -5"),
    (lambda: detectable_difference([20, np.nan]), "`n_prompts` must be a number of at least 1, got [20, nan]"),
    (lambda: detectable_difference("many"), "`n_prompts` must be a number of at least 1, got 'many'"),
    (lambda: detectable_difference(20, alpha=2), "`alpha` must be a number between 0 and 1, got 2"),
    (lambda: detectable_difference(20, power=1), "`power` must be a number between 0 and 1, got 1"),
    (lambda: detectable_difference(20, sd=0), "`sd` must be a number above 0, got 0"),
    (lambda: power(0.2, 0), "`n_prompts` must be a number of at least 1, got 0"),
    (lambda: power(np.inf, 20), "`difference` must be a number that is finite, got inf"),
])  # fmt: skip
def test_a_plan_that_no_test_can_have_is_refused(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()


def test_spaces_around_a_name_do_not_count():
    answers = {("a", "a"): ["a ", " b", " "], ("a", "b"): ["b\n", "a", None]}
    plain = {key: [value and value.strip() for value in values] for key, values in answers.items()}
    pd.testing.assert_frame_equal(confusion(naming(answers)), confusion(naming(plain)))
    pd.testing.assert_frame_equal(recognition_table(naming(answers), **FAST), recognition_table(naming(plain), **FAST))


def test_clustered_t_alone_fails_where_the_default_holds():
    """A rate of .98 in 20 prompts: t intervals of constant samples have no width."""
    hits = np.random.default_rng(0).random((20, 3000)) < 0.98
    rate = Rate.of(hits, np.ones(hits.shape))
    covered = [np.mean((low <= 0.98) & (high >= 0.98)) for low, high in (
        rate.interval(1.96), clustered_t(rate.value, rate.contrib, rate.clusters, 0.95))]  # fmt: skip
    assert covered[0] > 0.93 > 0.6 > covered[1]


def test_many_pairs_have_no_bootstrap_of_their_own(monkeypatch):
    monkeypatch.setattr("selfeval.stats.table.MAX_PAIRS", 8)
    table = recognition_table(simulated(0, n_prompts=6), **FAST)
    assert set(table[table.author == "m0"].method) == {"wilson_effective_n", "mover", "clustered_t"}
    assert "bca" in set(table[(table.author == "") & (table.statistic == "discrimination")].method)


def test_auc_of_a_selection_by_the_replies_is_not_estimated():
    """Names that begin alike left P(self) null for most replies, and an AUC stood on the rest."""
    frame = simulated(5, task="binary_self")
    rng = np.random.default_rng(0)
    scored = frame.assign(score=rng.random(len(frame)))
    assert not np.isnan(value(recognition_table(scored, **FAST), "auc", "m0"))
    few = scored.assign(score=scored["score"].where(rng.random(len(frame)) < 0.5))
    table = recognition_table(few, **FAST)
    assert np.isnan(value(table, "auc", "m0")) and "partly_scored" in value(table, "auc", "m0", column="note")


def test_an_evaluator_that_nearly_always_names_itself_says_little_of_its_corrected_advantage():
    """Two answers in 120 were others: both sides agreed in two prompts, and the interval was +-.02."""

    def say(e, t, p):
        return t if (p, t) in {(0, "m1"), (1, "m2")} and e == "m0" else e

    table = recognition_table(blind(3, 40, say), **FAST)
    low, high = (value(table, "corrected_advantage", "m0", column=end) for end in ("low", "high"))
    assert low < -0.05 and high > 0.08
    assert value(table, "discrimination", "m0", column="high") > 0.08


@pytest.mark.parametrize(("apart", "prompts"), [(0, 6), (3, 12)])
def test_the_interval_of_an_area_covers_and_stays_within_0_and_1(apart, prompts):
    """The t interval covered .75 of such areas (.05 within prompts) and went beyond 1."""
    rng, held = np.random.default_rng(1), []
    truth = sps.norm.cdf(apart / np.sqrt(2))
    for _ in range(50):
        frame = blind(4, prompts, lambda e, t, p: f"m{t}").query("evaluator_model == 'm0'")
        own = frame["true_model"] == "m0"
        score = sps.norm.cdf(apart * own + rng.normal(size=len(frame)))
        frame = frame.assign(task_type="binary_self", predicted_self=own, predicted_model=None, score=score)
        table = recognition_table(frame, **FAST)
        for name in ("auc", "auc_within_prompt"):
            low, high = (value(table, name, "m0", column=end) for end in ("low", "high"))
            assert 0 <= low <= high <= 1
            held.append(low <= truth <= high)
    assert np.mean(held) > 0.9  # of 100; those of the t interval: .75 and .05


@pytest.mark.parametrize("seen", ["another pair", "no answer"])
def test_neutral_judges_that_share_no_answered_pair_are_compared_with_nobody(seen):
    pair = {"task_type": "pairwise_self", "true_model": "a", "other_model": "b", "position": 1, "predicted_self": True}
    judged = {"another pair": {"true_model": "b", "other_model": "c"}, "no answer": {"predicted_self": None}}[seen]
    rows = [
        pair | {"evaluator_model": who, "text_id": 10 * i, "other_text_id": 10 * i + 1, "prompt_id": str(i)} | also
        for i in range(10)
        for who, also in (("a", {}), ("c" if seen == "no answer" else "a", judged))
    ]
    table = recognition_table(pd.DataFrame(rows), n_resamples=1)
    own = table[(table["evaluator"] == "a") & (table["statistic"] == "self_accuracy")]
    assert own["estimate"].eq(1).all() and "own_minus_neutral" not in {*table["statistic"]}
