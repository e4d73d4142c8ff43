"""Condition against condition, and models in general: by hand, against scipy, and on simulated models."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from recognition_records import binary, naming, row, simulated

from selfeval.stats import condition_contrasts, default_rows, models_in_general, paired_models, recognition_table


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
    assert found["p"] < 0.005 and found["p_holm"] >= found["p"] and len(table) == 3
    fewer, common = (frame[(frame["evaluator_model"] != who) | (frame["prompt_id"] < 25)] for who in ("m0", ""))
    common = paired_models(common.query("prompt_id < 25")).drop(columns=["p_holm", "note"])
    shared = row(paired_models(fewer), "discrimination", "m0 - m1")[common.columns].to_frame().T
    pd.testing.assert_frame_equal(shared.reset_index(drop=True), common.head(1), check_dtype=False, rtol=1e-12)


def test_scores_are_read_where_the_last_evaluator_shares_no_prompt_with_a_pair():
    frame = two_conditions().query("condition == 'hints=true;told=true'").assign(score=0.5)
    is_last = frame["evaluator_model"] == "m2"
    apart = frame[(frame["prompt_id"] < 20) != is_last]  # m0 and m1 saw the first prompts, m2 the others
    table = paired_models(apart)
    assert table.dropna(subset="estimate")["evaluator"].tolist() == ["m0 - m1"]
    without = paired_models(apart[apart["evaluator_model"] != "m2"])
    assert table[table["evaluator"] == "m0 - m1"]["estimate"].tolist() == without["estimate"].tolist()


# ---------------------------------------------------------------------------------------------------------------
# Models in general


def general(claims: dict, method: str, **options) -> pd.Series:
    return row(models_in_general(binary(claims), **options), "discrimination", "", method=method)


def recognising(always: int, on_even_prompts: int, models: int = 8, prompts: int = 30) -> dict:
    """Return claims of models that claim own texts always, or on even prompts, or never, and nothing else."""
    names = [f"m{k}" for k in range(models)]
    kinds = [[True] * prompts] * always + [[p % 2 == 0 for p in range(prompts)]] * on_even_prompts
    kinds += [[False] * prompts] * (models - len(kinds))
    return {(e, t): kinds[k] if e == t else [False] * prompts for k, e in enumerate(names) for t in names}


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
    """t on prompts + models - cells with Satterthwaite's degrees of freedom, bent within -1 and 1.

    Of these models alone: t with 29 degrees of freedom on prompts.
    """
    found, t = general(recognising(always, on_even), "two_way_t"), sps.t.ppf(0.975, df)
    # Wilson's interval of the place (1 + J) / 2 in the range, at the size (1 - J²) / variance
    p, n = (1 + mean) / 2, (1 - mean**2) / variance
    width = 4 * t / (1 + t**2 / n) * np.sqrt(p * (1 - p) / n + t**2 / (4 * n**2))
    assert found["estimate"] == pytest.approx(mean) and (found["clusters"], found["cluster_unit"]) == (8, "model")
    assert found["high"] - found["low"] == pytest.approx(width, rel=0.005)
    assert -1 < found["low"] < mean < found["high"] < 1
    if (always, on_even) == (4, 4):
        these = general(recognising(4, 4), "clustered_t")
        assert these["high"] - these["low"] == pytest.approx(2 * sps.t.ppf(0.975, 29) * np.sqrt(0.0625 / 29), rel=0.03)


def test_p_of_models_in_general_is_that_of_their_interval():
    claims = recognising(4, 0)
    p = general(claims, "two_way_t")["p"]
    assert general(claims, "two_way_t", level=1 - p)["low"] == pytest.approx(0, abs=1e-6) and 0.03 < p < 0.08


def test_what_two_models_say_about_models_in_general_is_nothing():
    answers = {("a", "a"): "ab" * 9, ("a", "b"): "bb" * 9, ("b", "a"): "aa" * 9, ("b", "b"): "ba" * 9}
    two = naming({key: [*said] for key, said in answers.items()})
    found = row(models_in_general(two), "discrimination", "", method="two_way_t")
    assert found[["note", "clusters", "cluster_unit"]].tolist() == ["no_interval", 2, "model"] and np.isnan(
        found["low"]
    )
    assert (models_in_general(two.assign(predicted_model=None))["estimate"].fillna(0) == 0).all()
