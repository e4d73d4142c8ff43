"""Statistics of recognition: by hand, in degenerate cases, against outside references."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps

from selfeval.errors import InputError
from selfeval.stats import COLUMNS, confusion, recognition_table
from selfeval.stats.engine import Area, Rate, Settings, Statistic, bootstrap, mover, wilson
from selfeval.stats.recognition import measures_of
from selfeval.stats.records import condition_label, tallies
from selfeval.stats.tests import detectable_difference, holm, inverted_p, power

# Yes/no self-recognition of ten judges, 16 own and 160 other texts each: Davidson et al. 2024 ("Self-Recognition in
# Language Models", example configuration of their repository, licence MIT); counts recomputed from their raw data.
DAVIDSON = Path(__file__).parent / "data" / "davidson_yesno_counts.csv"
FAST = {"n_resamples": 200}
Z = sps.norm.ppf(0.975)


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
    """Return one number of the first row that fits: the default."""
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
    assert table.seed.notna().eq(table.method.isin(["percentile", "bca"])).all()
    assert set(table[table.author != ""].method) == {"wilson_effective_n", "mover"}  # no bootstrap per author
    assert set(table.cluster_unit) == {"prompt"} and set(table.clusters) == {30}


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


def kappa(rows, evaluator):
    """Return Cohen's kappa from the joint table of truth and answer; no answer is an answer of its own."""
    rows = rows[rows.evaluator_model == evaluator]
    expected = sum((rows.true_model == k).mean() * (rows.predicted_model == k).mean() for k in rows.true_model.unique())
    return ((rows.predicted_model == rows.true_model).mean() - expected) / (1 - expected)


@pytest.mark.parametrize("drop", [0, 0.3])
def test_kappa_and_overall_accuracy(drop):
    frame = simulated(4, drop=drop, none=0.2)
    table, rows = recognition_table(frame, **FAST), frame[frame.evaluator_model == "m0"]
    assert value(table, "overall_accuracy", "m0", policy="all") == (rows.predicted_model == rows.true_model).mean()
    assert value(table, "kappa", "m0", policy="all") == pytest.approx(kappa(frame, "m0"))
    answered = frame[frame.predicted_model.notna()]
    assert value(table, "kappa", "m0") == pytest.approx(kappa(answered, "m0"))


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
    assert np.isnan(value(table, "self_accuracy", "a", column="low"))
    assert np.isnan(value(table, "discrimination", "a"))
    assert table[table.statistic == "discrimination"].note.str.contains("not_estimable").all()
    assert {"no_interval", "few_prompts"} <= {*value(table, "self_accuracy", "a", column="note").split("; ")}


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


def test_clusters_fall_back_to_the_prompt_text():
    frame = simulated(0, n_prompts=5)
    by_text = frame.drop(columns="prompt_id").assign(prompt_used="p" + frame.prompt_id.astype(str))
    pd.testing.assert_frame_equal(recognition_table(by_text, **FAST), recognition_table(frame, **FAST))


def test_confusion_counts_every_row_once():
    frame = naming({("a", "a"): ["a", None, "x"], ("a", "b"): ["a", "b", ""]})
    counts = confusion(frame)
    assert list(counts) == ["task", "condition", "evaluator", "author", "predicted", "n"]
    assert dict(zip(zip(counts.author, counts.predicted, strict=True), counts.n, strict=True)) == {
        ("a", "a"): 1, ("a", "none"): 1, ("a", "x"): 1, ("b", "a"): 1, ("b", "b"): 1, ("b", "none"): 1,
    }  # fmt: skip
    yes = confusion(binary({("a", "a"): [True, False, None]}))
    assert list(yes.predicted) == ["a", "none", "not_self"]


def test_spaces_around_a_name_do_not_count():
    answers = {("a", "a"): ["a ", " b", " "], ("a", "b"): ["b\n", "a", None]}
    plain = {key: [value and value.strip() for value in values] for key, values in answers.items()}
    pd.testing.assert_frame_equal(confusion(naming(answers)), confusion(naming(plain)))
    pd.testing.assert_frame_equal(recognition_table(naming(answers), **FAST), recognition_table(naming(plain), **FAST))


def test_auc_of_a_selection_by_the_replies_is_not_estimated():
    """Names that begin alike left P(self) null for most replies, and an AUC stood on the rest."""
    frame = simulated(5, task="binary_self")
    rng = np.random.default_rng(0)
    scored = frame.assign(score=rng.random(len(frame)))
    assert not np.isnan(value(recognition_table(scored, **FAST), "auc", "m0"))
    few = scored.assign(score=scored["score"].where(rng.random(len(frame)) < 0.5))
    table = recognition_table(few, **FAST)
    assert np.isnan(value(table, "auc", "m0")) and "partly_scored" in value(table, "auc", "m0", column="note")


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
# The default interval: a rate, a difference, an area


def test_wilson_at_one_row_per_cluster_is_that_of_statsmodels():
    """Ten prompts, one row each, seven hits: contributions of .03 and -.07, size 9, Satterthwaite's m by hand."""
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    rate = Rate.of(np.r_[np.ones(7), np.zeros(3)][:, None], np.ones((10, 1)))
    df = 2 * (7 * 0.03**2 + 3 * 0.07**2) ** 2 / (7 * 0.03**4 + 3 * 0.07**4)
    m = max(9 * (Z / sps.t.ppf(0.975, min(df, 9))) ** 2, 5)
    assert np.ravel(rate.interval(Z)) == pytest.approx(proportion.proportion_confint(0.7 * m, m, method="wilson"))
    at_the_end = Rate.of(np.ones((10, 1)), np.ones((10, 1)))
    assert np.ravel(at_the_end.interval(Z)) == pytest.approx(proportion.proportion_confint(10, 10, method="wilson"))


def test_the_size_of_a_rate_from_unequal_clusters_by_hand():
    """3 of 4, 1 of 4, 0 of 2 and 2 of 2: p = 1/2, contributions .1, -.1, -.1 and .1."""
    rate = Rate.of(np.array([[3.0], [1], [0], [2]]), np.array([[4.0], [4], [2], [2]]))
    assert rate.value[0] == 0.5 and rate.contrib[:, 0] * 12 == pytest.approx([1, -1, -1, 1])
    n = 0.25 / (4 / 3 * 4 / 144)  # 6.75, within 2 and 12
    m = n * (Z / sps.t.ppf(0.975, 3)) ** 2  # of 2 * 4² / 4 = 8 degrees of freedom, the clusters leave 3
    assert m > 2
    assert np.ravel(rate.interval(Z)) == pytest.approx(np.ravel(wilson(0.5, m, Z)))


@pytest.mark.parametrize("prompts", [20, 50])
def test_the_default_covers_near_one_where_t_does_not(prompts):
    """Five texts a prompt, nearly copies of each other (intraclass correlation .3), a true rate of .97."""
    rng = np.random.default_rng(1)
    common, shared = rng.random((prompts, 1, 4000)), rng.random((prompts, 5, 4000)) < np.sqrt(0.3)
    hits = np.where(shared, common, rng.random(shared.shape)) < 0.97
    rate = Rate.of(hits.sum(1), np.full((prompts, 4000), 5.0))
    covered, of_t = (np.mean((low <= 0.97) & (high >= 0.97)) for low, high in (
        rate.interval(Z), Statistic.interval(rate, Z)))  # fmt: skip
    assert covered >= 0.93 and of_t < 0.9


def test_mover_against_newcombe():
    """Newcombe 1998, Statistics in Medicine 17:873, table II, example (a), method 10: 56/70 - 48/80."""
    a, b = wilson(56 / 70, 70, 1.959964), wilson(48 / 80, 80, 1.959964)
    assert mover(56 / 70, *a, 48 / 80, *b) == pytest.approx((0.0524, 0.3339), abs=1e-4)


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
    assert area.value == pytest.approx(wins.mean())
    assert area.variance == pytest.approx(expected, rel=1e-9)
    bounds = np.array(area.interval(Z))
    half = sps.t.ppf(0.975, df) * np.sqrt(area.variance) / (area.value * (1 - area.value))
    assert np.log(bounds / (1 - bounds)) == pytest.approx(
        np.log(area.value / (1 - area.value)) + np.array([-half, half])
    )


@pytest.mark.parametrize(("apart", "prompts"), [(0, 6), (3, 12)])
def test_the_interval_of_an_area_covers_and_stays_within_0_and_1(apart, prompts):
    rng, truth = np.random.default_rng(1), sps.norm.cdf(apart / np.sqrt(2))
    clusters = np.arange(prompts)
    drawn = [(rng.normal(apart, 1, prompts), rng.normal(0, 1, 3 * prompts)) for _ in range(200)]
    bounds = np.array([Area.of(own, clusters, other, np.tile(clusters, 3)).interval(Z) for own, other in drawn])
    assert (bounds[:, 0] >= 0).all() and (bounds[:, 1] <= 1).all() and (np.diff(bounds) > 0.01).all()
    assert np.mean((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])) > 0.92


# ---------------------------------------------------------------------------------------------------------------
# The clustered t and the bootstrap


def measures(frame, policy="all") -> dict:
    (tally,) = tallies(frame)
    return {m.statistic: m.of for m in reversed(measures_of(tally, policy))}


def contrasts(frame, evaluator):
    """Return the contrast of each prompt whose mean is J in a balanced design."""
    rows = frame[frame.evaluator_model == evaluator]
    claim = (rows.predicted_model == evaluator).astype(float)
    own = claim[rows.true_model == evaluator].groupby(rows.prompt_id).mean()
    other = claim[rows.true_model != evaluator].groupby(rows.prompt_id).mean()
    return (own - other).to_numpy()


def test_bootstrap_and_t_of_j_against_scipy():
    frame = simulated(7, n_prompts=60, samples=2)
    table, x = recognition_table(frame, n_resamples=20_000), contrasts(frame, "m1")
    for ours, theirs in (("percentile", "percentile"), ("bca", "BCa")):
        reference = sps.bootstrap((x,), np.mean, n_resamples=20_000, method=theirs, rng=np.random.default_rng(1))
        for side in ("low", "high"):
            got = value(table, "discrimination", "m1", method=ours, column=side)
            assert got == pytest.approx(getattr(reference.confidence_interval, side), abs=0.008)
    t = sps.ttest_1samp(x, 0).confidence_interval()
    low, high = Statistic.interval(measures(frame)["discrimination"], Z)
    assert (low[1], high[1]) == pytest.approx(tuple(t))


def test_bca_formula_against_scipy_on_equal_resamples():
    x = np.random.default_rng(0).exponential(size=40)
    drawn = sps.bootstrap((x,), np.mean, n_resamples=5_000, method="BCa", rng=np.random.default_rng(2))
    contrib = (x - x.mean())[:, None] / len(x)
    at = lambda weights: drawn.bootstrap_distribution[None]  # noqa: E731
    of = Statistic(np.array([x.mean()]), contrib, np.array([40]), np.array([40]), at)
    (bounds,) = bootstrap([of], Settings(5_000))
    assert bounds[2:4, 0] == pytest.approx(tuple(drawn.confidence_interval), abs=2e-5)


def test_cluster_variance_against_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    frame = simulated(9, n_prompts=50, samples=3, drop=0.2)
    rows = frame[frame.evaluator_model == "m0"]
    y = (rows.predicted_model == rows.true_model).astype(float)
    fit = sm.OLS(y, np.ones(len(y))).fit(
        cov_type="cluster", cov_kwds={"groups": rows.prompt_id.to_numpy(), "df_correction": True}, use_t=True
    )
    low, high = Statistic.interval(measures(frame)["overall_accuracy"], Z)
    assert (low[0], high[0]) == pytest.approx(fit.conf_int().to_numpy()[0], abs=2e-5)  # theirs: (n - 1) / (n - k) too


@pytest.mark.parametrize(("drop", "none"), [(0, 0), (0.3, 0), (0, 0.2)])
def test_bootstrap_is_that_of_copied_rows(drop, none):
    """Every statistic under weights is what its definition gives on the rows of the drawn prompts."""
    frame, names = simulated(11, n_models=4, n_prompts=12, samples=2, drop=drop, none=none), [f"m{i}" for i in range(4)]
    (weights,) = Settings(6).weights(12)
    assert (weights.sum(0) == 12).all()
    order, seen = pd.unique(frame.prompt_id), 0
    for policy in ("all", "answered"):
        found = {name: of.at(weights) for name, of in measures(frame, policy).items() if isinstance(of, Statistic)}
        rows = frame if policy == "all" else frame[frame.predicted_model.notna()]
        for b in range(6):
            times = dict(zip(order, weights[:, b].astype(int), strict=True))
            copies = rows.loc[rows.index.repeat(rows.prompt_id.map(times))]
            if copies.groupby(["evaluator_model", "true_model"]).ngroups < 16:
                continue  # a cell without rows keeps its value
            for e, name in enumerate(names):
                expected = brute(copies, name, names) | {"kappa": kappa(copies, name)}
                expected.pop("best_peer")  # ours holds the peer fixed
                for statistic, number in expected.items():
                    assert found[statistic][e, b] == pytest.approx(number, abs=2e-6), (statistic, policy)
                seen += 1
    assert seen >= 24


def test_an_evaluator_has_the_intervals_that_it_has_alone():
    """m0 answered on six of 30 prompts; what others were asked must not move its jackknife."""
    frame = simulated(2)
    few = frame[(frame.evaluator_model != "m0") | (frame.prompt_id < 6)]
    alone = few[few.evaluator_model == "m0"]
    for name in ("d_prime", "kappa", "self_accuracy", "discrimination"):
        ours, its = (np.array(measures(part)[name].interval(Z))[:, 0] for part in (few, alone))
        assert ours == pytest.approx(its) and np.isfinite(ours).all(), name


def test_same_seed_same_table_other_seed_other_bootstrap():
    frame = simulated(2)
    one, again, other = (recognition_table(frame, n_resamples=500, seed=s) for s in (4, 4, 5))
    pd.testing.assert_frame_equal(one, again)
    default = ~one.method.isin(["percentile", "bca"])
    assert not one.low.equals(other.low)
    pd.testing.assert_frame_equal(one[default], other[default])


# ---------------------------------------------------------------------------------------------------------------
# Tests, power, multiplicity; the exact p of J is held against enumeration in test_right_statistics


def test_inverted_p_is_the_level_whose_interval_touches_zero():
    frame = simulated(3)
    change = measures(frame)["corrected_advantage"]
    low, high = change.interval(sps.norm.isf(inverted_p(change) / 2))
    assert np.minimum(np.abs(low), np.abs(high)) == pytest.approx(0, abs=1e-8)
    nothing = measures(blind(3, 8, lambda e, t, p: [e, t][p % 2]))["discrimination"]
    assert (inverted_p(nothing - nothing) == 1).all()  # without a warning


def test_holm():
    assert holm([0.01, 0.04, 0.03, np.nan]) == pytest.approx([0.03, 0.06, 0.06, np.nan], nan_ok=True)
    tested = recognition_table(simulated(3), **FAST).query("p == p")
    assert set(tested.statistic) == {"discrimination", "corrected_advantage", "peer_corrected"}
    for _, rows in tested.groupby("statistic"):
        assert rows.p_holm.to_numpy() == pytest.approx(holm(rows.p))


def test_planned_power():
    assert detectable_difference([20, 50, 100, 200]).round(2).tolist() == [0.34, 0.22, 0.15, 0.11]
    assert detectable_difference(20, t=True) == pytest.approx(0.36, abs=0.005)
    assert power(detectable_difference(50), 50) == pytest.approx(0.8, abs=1e-3)
    assert power(0, 50) == pytest.approx(0.05)
    assert np.isnan(detectable_difference(1, t=True))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: detectable_difference([20, np.nan]), "`n_prompts` must be a number of at least 1, got [20, nan]"),
    (lambda: detectable_difference("many"), "`n_prompts` must be a number of at least 1, got 'many'"),
    (lambda: detectable_difference(20, alpha=2), "`alpha` must be a number between 0 and 1, got 2"),
    (lambda: detectable_difference(20, sd=0), "`sd` must be a number above 0, got 0"),
    (lambda: power(np.inf, 20), "`difference` must be a number that is finite, got inf"),
])  # fmt: skip
def test_a_plan_that_no_test_can_have_is_refused(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
