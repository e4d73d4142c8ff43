"""Condition against condition, and models in general: by hand, against scipy, and on simulated models."""

import pandas as pd
import pytest
import scipy.stats as sps
from recognition_records import row, simulated

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
