"""Two results against each other: paired by prompt or template, first minus second."""

import numpy as np
import pandas as pd
import pytest
from recognition_records import FAST, naming

import selfeval as se
from selfeval.errors import InputError

PROMPTS = 24
SIGNED = ["estimate", "low", "high"]


def recognition(own_right: int, first_prompt=0, condition="told=true", evaluators=("a", "b")):
    """Return a result in which `a` names itself on its first `own_right` texts, and nobody else ever does."""
    answers = {(evaluator, author): ["b"] * PROMPTS for evaluator in evaluators for author in "ab"}
    answers["a", "a"] = ["a"] * own_right + ["b"] * (PROMPTS - own_right)
    frame = naming({key: given for key, given in answers.items() if key[0] in evaluators}, condition=condition)
    frame["prompt_id"] += first_prompt
    frame["text_id"] = frame["true_model"] + "-" + frame["prompt_id"].astype(str)
    more = {"evaluator_model": "evaluator_model", "prompt_used": "", "is_correct": None, "text_preview": "a text"}
    display = {"true_model_display": frame["true_model"]}
    frame = frame.assign(**{name: value for name, value in more.items() if name not in frame}, **display)
    return se.measure_recognition(frame, **FAST)


@pytest.fixture(scope="module")
def may():
    return recognition(own_right=18)


def own(table: pd.DataFrame) -> pd.Series:
    return table[(table["evaluator"] == "a") & (table["statistic"] == "self_accuracy")].iloc[0]


def test_a_comparison_calls_models_by_the_names_of_both_results():
    may, june = recognition(18), recognition(9)
    may.names, june.names = {"a": "Anna"}, {"a": "Anna, June", "b": "Bert"}
    assert se.compare(may, june).names == {"a": "Anna", "b": "Bert"}


def test_a_result_compared_with_itself_has_no_difference(may, capsys):
    table = se.compare(may, may)
    assert len(table) and (table["estimate"].dropna() == 0).all() and (table["p"].dropna() == 1).all()
    assert capsys.readouterr().out == "", "nothing is left out"


def test_a_known_difference_is_first_minus_second_and_turns_with_their_order(may):
    november = recognition(own_right=12)
    table, turned = se.compare(may, november), se.compare(november, may)
    assert own(table)["estimate"] == pytest.approx((18 - 12) / PROMPTS) and own(table)["p"] < 0.05
    assert own(table)["p_holm"] >= own(table)["p"] and own(table)["clusters"] == PROMPTS
    np.testing.assert_allclose(table["estimate"], -turned["estimate"])
    np.testing.assert_allclose(table[["low", "high"]], -turned[["high", "low"]])
    assert set(table["field"]) == {"result"} and own(table)[["first", "second"]].tolist() == [
        "second result",
        "first result",
    ]


def test_prompts_in_one_result_alone_are_left_out_aloud(may, capsys):
    table = se.compare(may, recognition(own_right=12, first_prompt=4))
    assert "the prompts that both results have, 20; 8 in one alone are left out." in capsys.readouterr().out
    # On prompts 4 to 23 the first names itself on 4 to 17, the second on 4 to 15.
    assert own(table)["clusters"] == 20 and own(table)["estimate"] == pytest.approx((14 - 12) / 20)
    assert "common_prompts" in own(table)["note"]


def test_two_conditions_measured_apart_are_compared_and_named(may, capsys):
    untold = recognition(own_right=12, condition="told=false")
    assert own(se.compare(may, untold))["estimate"] == pytest.approx(0.25)
    assert "the first result has told=true, the second told=false; these are compared." in capsys.readouterr().out
    together = pd.concat([may.records, untold.records])
    contrast = own(se.compare(se.measure_recognition(together, **FAST), by="told"))  # true minus false
    assert own(se.compare(may, untold))[SIGNED].tolist() == contrast[SIGNED].tolist()


def test_replies_on_identity_are_paired_by_template(capsys):
    wavers, susceptible = models = ["sim/identity-wavers", "sim/identity-susceptible"]
    replies = se.ask_identity(models, limit=6, turns=0)
    both = se.measure_identity(replies, n_resamples=10)
    same = se.compare(both, both)
    assert {*same["evaluator"]} == {*models} and (same["estimate"].dropna() == 0).all()

    november = replies[replies["model"] == susceptible].assign(model=wavers)  # as if one model had changed
    changed = se.compare(both, se.measure_identity(november, n_resamples=10))
    assert f"left out: {susceptible}." in capsys.readouterr().out
    rates = both[both["statistic"] == "accept_false"].set_index("evaluator")["estimate"]
    [gap] = changed.loc[changed["statistic"] == "accept_false", "estimate"]
    assert gap == pytest.approx(rates[wavers] - rates[susceptible]) and gap != 0

    first_template = replies["template_id"].iloc[0]
    fewer = se.measure_identity(replies[replies["template_id"] != first_template], n_resamples=10)
    se.compare(both, fewer)
    assert "the templates that both results have" in capsys.readouterr().out


def test_controls_are_in_no_difference_of_two_results_on_identity():
    wavers, susceptible = models = ["sim/identity-wavers", "sim/identity-susceptible"]
    asked = se.ask_identity(models, limit=5, turns=0)
    is_control = asked["template_id"].isin(asked["template_id"].unique()[:2])
    asked = asked.assign(control_of=asked["control_of"].mask(is_control, "another"))
    may = asked[asked["model"] == wavers]
    june = asked[asked["model"].eq(susceptible) & is_control | asked["model"].eq(wavers) & ~is_control]
    changed = se.compare(*(se.measure_identity(rows.assign(model=wavers), n_resamples=2) for rows in (may, june)))
    assert len(changed) and (changed["estimate"].dropna() == 0).all()


def test_what_cannot_be_paired_is_refused(may, tmp_path):
    se.save(may, tmp_path / "saved")
    [read] = se.read_results(tmp_path / "saved")
    existence = se.measure_existence(se.ask_existence("sim/existence-knows", names=2, templates=1))
    cases = [
        ((may, existence), "different kinds, 'recognition' and 'existence'"),
        ((may, recognition(own_right=12, evaluators=("c",))), "share no evaluator: the first has a, b, the second c"),
        ((may, recognition(own_right=12, first_prompt=100)), "share no prompt"),
        ((may, read), "The second result was read from CSV, without the records"),
        ((existence, existence), "'existence' are not paired with another; recognition, identity are"),
        ((may, may.records), "measure it first"),
        ((may, may, "a"), "`other` names an evaluator"),
    ]
    for given, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            se.compare(*given)


def test_one_evaluator_alone_has_no_pairs_and_cut_frames_raise_as_pandas_does(may):
    alone = recognition(own_right=12, evaluators=("a",))
    pairs = se.compare(alone, "a")
    assert pairs.empty and "evaluator" in pairs and repr(pairs)
    assert se.compare(may, "a")["evaluator"].unique().tolist() == ["a - b"]
    for frame in (may[["evaluator", "estimate"]], may.records[["evaluator_model"]], se.compare(may)[["evaluator"]]):
        with pytest.raises(KeyError, match="low"):
            frame["low"]
