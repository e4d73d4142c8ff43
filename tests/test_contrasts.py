"""Condition against condition, and models in general: by hand, against scipy, and on simulated models."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from simulate_coverage import differing_models
from test_stats import naming, simulated

from selfeval.stats import condition_contrasts, models_in_general, paired_models, recognition_table


def two_conditions(change=None, n_prompts=40):
    """The same models with and without hints; with hints m0 names itself on its own texts of every prompt."""
    plain = simulated(1, n_prompts=n_prompts, know=0.3)
    hinted = simulated(2, n_prompts=n_prompts, know=0.3)
    own = (hinted["evaluator_model"] == "m0") & (hinted["true_model"] == "m0")
    hinted.loc[own, "predicted_model"] = "m0"
    return pd.concat(
        [plain.assign(condition="hints=false;told=true"), hinted.assign(condition="hints=true;told=true")]
    ).assign(**(change or {}))


def test_a_contrast_is_the_paired_difference_by_prompt():
    frame = two_conditions()
    table = condition_contrasts(frame)
    row = table[(table["evaluator"] == "m0") & (table["statistic"] == "self_accuracy")].iloc[0]
    own = frame[(frame["evaluator_model"] == "m0") & (frame["true_model"] == "m0")]
    right = own.assign(right=own["predicted_model"] == "m0").pivot(
        index="prompt_id", columns="condition", values="right"
    )
    change = right["hints=true;told=true"].astype(float) - right["hints=false;told=true"]
    assert row["estimate"] == pytest.approx(change.mean()) and row["clusters"] == 40 and row["n"] == 80
    t = sps.ttest_1samp(change, 0).confidence_interval()
    assert row["low"] == pytest.approx(t.low, abs=0.015) and row["high"] == pytest.approx(t.high, abs=0.015)
    assert (row["field"], row["first"], row["second"], row["condition"]) == ("hints", "false", "true", "told=true")
    assert row["p"] < 0.001 and row["p_holm"] == pytest.approx(3 * row["p"])
    others = table[(table["evaluator"] != "m0") & (table["statistic"] == "discrimination")]
    assert (others["low"] < 0).all() and (others["high"] > 0).all()


def test_only_conditions_that_differ_in_one_thing_are_compared_and_on_common_prompts():
    frame = two_conditions()
    both = frame["condition"].str.replace("hints=true;told=true", "hints=true;told=false")
    assert condition_contrasts(frame.assign(condition=both)).empty
    assert condition_contrasts(frame[frame["condition"] == "hints=true;told=true"]).empty
    part = frame[(frame["condition"] == "hints=true;told=true") | (frame["prompt_id"] < 25)]
    table = condition_contrasts(part)
    assert set(table["clusters"]) == {25} and set(table["note"]) == {"common_prompts; few_prompts"}


def test_the_same_answers_under_both_conditions_differ_by_nothing():
    plain = simulated(3)
    table = condition_contrasts(pd.concat([plain.assign(condition="a=1"), plain.assign(condition="a=2")]))
    known = table.dropna(subset=["estimate"])
    assert (known["estimate"] == 0).all() and (known["low"] <= 0).all() and (known["high"] >= 0).all()


def test_a_prompt_that_only_a_third_model_saw_under_one_condition_is_left_out():
    """Without hints m0 and m1 saw ten prompts and m2 the others; with hints m2 was not asked."""
    frame, of_m2 = two_conditions(), lambda f: f["evaluator_model"] == "m2"
    hinted = frame["condition"].str.startswith("hints=true")
    asked = frame[np.where(hinted, ~of_m2(frame), of_m2(frame) == (frame["prompt_id"] >= 10))]
    table, known = condition_contrasts(asked), asked[~of_m2(asked) & (asked["prompt_id"] < 10)]
    assert set(table["clusters"]) == {10} and set(table["evaluator"]) == {"m0", "m1"}
    pd.testing.assert_frame_equal(table.drop(columns="note"), condition_contrasts(known).drop(columns="note"))


def test_paired_models_are_the_paired_difference_by_prompt():
    frame = two_conditions().query("condition == 'hints=true;told=true'")
    table = paired_models(frame, ["self_accuracy", "discrimination"]).set_index(["statistic", "evaluator"])
    alone = recognition_table(frame, n_resamples=1).drop_duplicates(["evaluator", "author", "statistic"])
    alone = alone[alone["author"] == ""].set_index(["statistic", "evaluator"])
    for statistic, p in table.groupby("statistic")["p"]:
        row = table.loc[(statistic, "m0 - m1")]
        difference = alone.loc[(statistic, "m0"), "estimate"] - alone.loc[(statistic, "m1"), "estimate"]
        assert row["estimate"] == pytest.approx(difference) and row["low"] < difference < row["high"]
        assert row["p"] < 0.005 and row["p_holm"] >= row["p"] and len(p) == 3


def test_the_interval_for_models_in_general_covers_what_these_models_alone_do_not():
    rng = np.random.default_rng(0)
    covered = {"two_way_t": 0, "clustered_t": 0}
    runs = 25
    for _ in range(runs):
        table = models_in_general(differing_models(rng, 12, 30)).set_index(["statistic", "method"])
        for method in covered:
            row = table.loc[("discrimination", method)]
            covered[method] += row["low"] <= 0.3 <= row["high"]
    assert covered["two_way_t"] >= 0.85 * runs > 0.8 * runs >= covered["clustered_t"], covered


def test_what_two_models_say_about_models_in_general_is_nothing():
    two = naming({("a", "a"): ["a", "b"] * 9, ("a", "b"): ["b", "b"] * 9, ("b", "a"): ["a", "a"] * 9,
                  ("b", "b"): ["b", "a"] * 9})  # fmt: skip
    table = models_in_general(two).set_index(["statistic", "method"])
    row = table.loc[("discrimination", "two_way_t")]
    assert (
        row["note"] == "no_interval" and np.isnan(row["low"]) and (row["clusters"], row["cluster_unit"]) == (2, "model")
    )
    silent = two.assign(predicted_model=None)
    assert (models_in_general(silent)["estimate"].fillna(0) == 0).all()
