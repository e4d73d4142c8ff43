"""Condition against condition, and models in general: by hand, against scipy, and on simulated models."""

import pandas as pd
import pytest
import scipy.stats as sps
from recognition_records import binary, row, simulated

from selfeval import DATA
from selfeval.stats import condition_contrasts, default_rows, paired_models, recognition_table


def two_conditions(n_prompts=40):
    """The same models with and without hints; with hints m0 names itself on its own texts of every prompt."""
    plain, hinted = (simulated(seed, n_prompts=n_prompts, know=0.3) for seed in (1, 2))
    own = (hinted["evaluator_model"] == "m0") & (hinted["true_model"] == "m0")
    hinted.loc[own, "predicted_model"] = "m0"
    labelled = [f.assign(condition=f"hints={on};told=true") for f, on in ((plain, "false"), (hinted, "true"))]
    return pd.concat(labelled)


def test_a_contrast_is_the_paired_difference_by_prompt():
    frame = two_conditions()
    table = condition_contrasts(frame)
    found = row(table, "self_accuracy", "m0")
    own = frame[(frame["evaluator_model"] == "m0") & (frame["true_model"] == "m0")]
    own = own.assign(right=(own["predicted_model"] == "m0").astype(float))
    right = own.pivot(index="prompt_id", columns="condition", values="right")
    change = right["hints=true;told=true"] - right["hints=false;told=true"]
    assert found["estimate"] == pytest.approx(change.mean()) and (found["clusters"], found["n"]) == (40, 80)
    t = sps.ttest_1samp(change, 0).confidence_interval()
    assert (found["low"], found["high"]) == pytest.approx(tuple(t), abs=0.015)
    assert found[["field", "first", "second", "condition"]].tolist() == ["hints", "false", "true", "told=true"]
    assert found["p"] < 0.001 and found["p_holm"] == pytest.approx(3 * found["p"])


def test_only_conditions_that_differ_in_one_thing_are_compared_and_on_common_prompts():
    frame = two_conditions()
    both = frame["condition"].str.replace("hints=true;told=true", "hints=true;told=false")
    assert condition_contrasts(frame.assign(condition=both)).empty
    assert condition_contrasts(frame[frame["condition"] == "hints=true;told=true"]).empty
    kept = (frame["condition"] == "hints=true;told=true") | (frame["prompt_id"] < 25)
    table = condition_contrasts(frame[kept])
    assert set(table["clusters"]) == {25} and set(table["note"]) == {"common_prompts; few_prompts"}
    rows = condition_contrasts(frame[kept | (frame["evaluator_model"] != "m0")])  # m0 alone lacks prompts
    found, alone = (row(each, "discrimination", "m0")[["estimate", "clusters", "note"]] for each in (rows, table))
    assert found.equals(alone)


def test_paired_models_are_the_paired_difference_by_prompt():
    frame = two_conditions().query("condition == 'hints=true;told=true'")
    table, alone = paired_models(frame), default_rows(recognition_table(frame, n_resamples=1))
    found = row(table, "discrimination", "m0 - m1")
    first, second = (row(alone, "discrimination", name)["estimate"] for name in ("m0", "m1"))
    assert found["estimate"] == pytest.approx(first - second) and found["low"] < first - second < found["high"]
    assert found["p"] < 0.005 and found["p_holm"] >= found["p"] and len(table) == 6
    fewer, common = (frame[(frame["evaluator_model"] != who) | (frame["prompt_id"] < 25)] for who in ("m0", ""))
    common = paired_models(common.query("prompt_id < 25")).drop(columns=["p_holm", "note"])
    shared = row(paired_models(fewer), "discrimination", "m0 - m1")[common.columns].to_frame().T
    pd.testing.assert_frame_equal(shared.reset_index(drop=True), common.head(1), check_dtype=False, rtol=1e-12)


def test_scores_are_read_where_the_last_evaluator_shares_no_prompt_with_a_pair():
    frame = two_conditions().query("condition == 'hints=true;told=true'").assign(score=0.5)
    is_last = frame["evaluator_model"] == "m2"
    apart = frame[(frame["prompt_id"] < 20) != is_last]  # m0 and m1 saw the first prompts, m2 the others
    table = paired_models(apart)
    assert {*table.dropna(subset="estimate")["evaluator"]} == {"m0 - m1"}
    without = paired_models(apart[apart["evaluator_model"] != "m2"])
    assert table[table["evaluator"] == "m0 - m1"]["estimate"].tolist() == without["estimate"].tolist()


# what habits do to J --------------------------------------------------------------------------------------------------

# of 120 prompts with an own and another's text: own texts claimed, others' claimed
BOLD, SHY, EAGER, BLIND, NEVER = (101, 60), (18, 2), (119, 108), (40, 36), (0, 0)


def claiming(**evaluators) -> pd.DataFrame:
    """Return yes/no records of evaluators {name: (own texts claimed, others' claimed)}, in 120 prompts of two texts."""
    said = {}
    for number, (name, (own, others)) in enumerate(evaluators.items()):
        for author, claimed in ((name, own), ("z", others)):
            shift = 37 * number + 61 * (author == "z")
            said[name, author] = [(p * 7 + shift) % 120 < claimed for p in range(120)]
    return binary(said)


@pytest.mark.parametrize(("one", "other", "said"), [
    (BOLD, SHY, "habits may explain it"),  # d' of 1: J of .34 and .13
    (BOLD, EAGER, "habits may explain it"),  # J of .34 and .09
    (BOLD, BLIND, "differ"),
    (BOLD, BOLD, "no evidence"),
    (BOLD, NEVER, "habits may explain it"),  # a constant answer says nothing of its sensitivity
    (BLIND, NEVER, "no evidence"),
])  # fmt: skip
def test_a_comparison_says_whether_more_than_habits_differ(one, other, said):
    frame = claiming(a=one, b=other)
    of_models = row(paired_models(frame), "sensitivity_d_prime", "a - b")
    assert of_models["conclusion"] == said
    frame["condition"] = frame["evaluator_model"].map({"a": "told=false", "b": "told=true"})
    alone = frame.assign(evaluator_model="a", true_model=frame["true_model"].replace("b", "a"))
    of_conditions = row(condition_contrasts(alone), "sensitivity_d_prime", "a")
    assert of_conditions["conclusion"] == said
    assert of_conditions["estimate"] == pytest.approx(-of_models["estimate"])
    assert set(paired_models(frame.drop(columns="condition")).query("statistic == 'discrimination'")["conclusion"]) == {
        ""
    }


def test_where_both_have_scores_their_areas_are_compared():
    frame = claiming(a=BOLD, b=SHY)
    is_own = frame["true_model"] == frame["evaluator_model"]
    rank = frame["prompt_id"].astype(int) % 10
    for knows, said in (("ab", "habits may explain it"), ("a", "differ")):
        orders = frame["evaluator_model"].isin([*knows]) & (rank < 8)
        score = 0.5 + 0.1 * (is_own & orders) + 0.001 * ((rank + 3 * is_own) % 7)
        table = paired_models(frame.assign(score=score))
        assert row(table, "sensitivity_auc", "a - b")["conclusion"] == said
        assert "sensitivity_d_prime" not in set(table["statistic"])
    partly = frame.assign(score=score.where(frame["evaluator_model"] == "a"))
    assert "sensitivity_auc" not in set(paired_models(partly)["statistic"])


def test_equally_sensitive_evaluators_are_seldom_said_to_differ():
    """The committed run of bench/simulate_small.py."""
    table = pd.read_csv(DATA / "validation" / "habits.csv")
    equal = table[table["first"] == table["second"]]
    assert (equal["differ"] <= 0.06).all() and equal["j_differs"].max() > 0.9
    assert (table["coverage"] >= 0.94).all()


# lineups --------------------------------------------------------------------------------------------------------------


def test_a_name_given_once_a_lineup_is_seen_where_nothing_says_what_stood_together():
    """32 of 120 own texts are given the own name, and so are 88 of 480 others': by Fisher's exact test p is .055."""
    lineup = [number // 5 for number in range(600)]
    own = [number % 5 == 0 for number in range(600)]
    named = [
        k < 32 if is_own else k >= 32 and number % 5 == 1
        for number, (k, is_own) in enumerate(zip(lineup, own, strict=True))
    ]
    frame = pd.DataFrame({
        "text_id": range(600), "true_model": [f"m{number % 5}" for number in range(600)], "evaluator_model": "m0",
        "task_type": "lineup", "predicted_model": ["m0" if is_named else "m4" for is_named in named],
    })  # fmt: skip
    unlinked, linked, alone = (
        row(recognition_table(each, n_resamples=1), "discrimination", "m0")
        for each in (frame, frame.assign(prompt_id=lineup), frame.assign(task_type="exact_model"))
    )
    assert unlinked["estimate"] == pytest.approx(32 / 120 - 88 / 480) and unlinked["conclusion"] == "no evidence"
    assert (unlinked["low"], unlinked["high"]) == pytest.approx((linked["low"], linked["high"]), abs=0.005)
    assert alone["low"] > 0
