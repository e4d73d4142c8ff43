"""Condition against condition, and models in general: by hand, against scipy, and on simulated models."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from test_stats import naming, simulated

from selfeval.stats import condition_contrasts, models_in_general

MODELS = ["m0", "m1", "m2"]


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
    assert row["estimate"] == pytest.approx(change.mean()) and row["n_prompts"] == 40 and row["n"] == 80
    t = sps.ttest_1samp(change, 0).confidence_interval()
    assert row["low"] == pytest.approx(t.low, abs=0.01) and row["high"] == pytest.approx(t.high, abs=0.01)
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
    assert set(table["n_prompts"]) == {25} and set(table["note"]) == {"common_prompts"}


def test_the_same_answers_under_both_conditions_differ_by_nothing():
    plain = simulated(3)
    table = condition_contrasts(pd.concat([plain.assign(condition="a=1"), plain.assign(condition="a=2")]))
    known = table.dropna(subset=["estimate"])
    assert (known["estimate"] == 0).all() and (known["low"] <= 0).all() and (known["high"] >= 0).all()


def random_models(rng, n_models=12, n_prompts=30):
    """Models whose recognition differs: each claims own texts with its own extra probability."""
    extra = np.clip(rng.normal(0.3, 0.15, n_models), 0, 0.9)
    answers = {}
    for e in range(n_models):
        for t in range(n_models):
            claims = rng.random(n_prompts) < (0.1 + extra[e] if t == e else 0.1)
            other = (e + 1 + rng.integers(0, n_models - 1, n_prompts)) % n_models
            answers[f"m{e}", f"m{t}"] = [f"m{k}" for k in np.where(claims, e, other)]
    return naming(answers)


def test_the_interval_for_models_in_general_covers_what_these_models_alone_do_not():
    rng = np.random.default_rng(0)
    covered = {"two_way_t": 0, "clustered_t": 0}
    runs = 25
    for _ in range(runs):
        table = models_in_general(random_models(rng)).set_index(["statistic", "method"])
        for method in covered:
            row = table.loc[("discrimination", method)]
            covered[method] += row["low"] <= 0.3 <= row["high"]
    assert covered["two_way_t"] >= 0.85 * runs > 0.8 * runs > covered["clustered_t"], covered


def test_what_two_models_say_about_models_in_general_is_nothing():
    two = naming({("a", "a"): ["a", "b"] * 9, ("a", "b"): ["b", "b"] * 9, ("b", "a"): ["a", "a"] * 9,
                  ("b", "b"): ["b", "a"] * 9})  # fmt: skip
    table = models_in_general(two).set_index(["statistic", "method"])
    row = table.loc[("discrimination", "two_way_t")]
    assert row["note"] == "no_interval" and np.isnan(row["low"]) and row["n_models"] == 2
    silent = two.assign(predicted_model=None)
    assert (models_in_general(silent)["estimate"].fillna(0) == 0).all()
