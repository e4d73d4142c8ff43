"""Pairs: missing answers are no choice of the other text, and a judge who wrote neither text is neutral.

Prediction records in, tables out.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from recognition_records import FAST, row

from selfeval.recognition.scoring import rescore, score
from selfeval.stats import condition_contrasts, recognition_table, roc_points


def pair(prompt, judge, wrote, rival, place, chosen, **more):
    """Return one record; place: of the text by `wrote`; chosen: an author or None."""
    ids = {author: 100 * prompt + k for k, author in enumerate("abcd")}
    return {
        "text_id": ids[wrote], "other_text_id": ids[rival], "true_model": wrote, "other_model": rival,
        "evaluator_model": judge, "task_type": "pairwise_self", "position": place, "prompt_id": f"p{prompt}",
        "predicted_model": chosen, "predicted_self": None if chosen is None else chosen == wrote,
        "condition": "question=better",
    } | more  # fmt: skip


def both_orders(answers, judge="a", wrote="a", rival="b", **more):
    """Build records from answers of prompt 0, 1, ...: what was chosen with the text by `wrote` first, and second."""
    rows = [
        pair(p, judge, wrote, rival, place, chosen, **more)
        for p, given in enumerate(answers)
        for place, chosen in zip((1, 2), given, strict=True)
    ]
    return pd.DataFrame(rows).astype({"predicted_self": object, "predicted_model": object})


# ---------------------------------------------------------------------------------------------------------------
# Missing answers, the test against one half


def test_an_evaluator_that_leaves_a_fifth_unanswered_does_not_avoid_its_own_texts():
    """Own in 39 of 100, the other in 39, no answer in 22: it was said to avoid its own (.39 [.34, .44])."""
    kinds = [("a", "b"), ("b", "a"), (None, "a"), ("b", None), ("a", None), (None, "b"), ("a", "b"), ("b", "a")]
    table = recognition_table(both_orders([kinds[k % 8] for k in np.random.default_rng(1).permutation(96)]), **FAST)
    headline = row(table, "self_accuracy")
    assert headline["policy"] == "answered" and headline["estimate"] == pytest.approx(0.5) and headline["p"] > 0.5
    of_all = row(table, "self_accuracy", policy="all")
    assert of_all["estimate"] == pytest.approx(0.375) and np.isnan(of_all["p"])
    assert row(table, "no_answer_rate")["estimate"] == pytest.approx(0.25)


def test_contrasts_of_pairs_leave_no_answer_out():
    every = both_orders([("a", "b"), ("b", "a")] * 15, condition="hints=false")
    some = both_orders([("a", None), (None, "b"), ("b", None), (None, "a")] * 8, condition="hints=true")
    change = condition_contrasts(pd.concat([every, some]))
    assert set(change["statistic"]) == {"self_accuracy"}
    assert change["estimate"].iloc[0] == pytest.approx(0, abs=0.02) and change["p"].iloc[0] > 0.5


def test_p_of_pairs_is_a_sign_test_over_prompts_whatever_is_repeated():
    """Nine of ten prompts choose the own text in both orders: 22 of 1,024 sign patterns are as far from one half."""
    answers = [("a", "a")] * 9 + [("b", "b")]
    for repeats in (1, 5):
        frame = pd.concat([both_orders(answers, repeat=k) for k in range(repeats)])
        found = row(recognition_table(frame, **FAST), "self_accuracy")
        assert found["p"] == pytest.approx(sps.binomtest(9, 10).pvalue) == pytest.approx(22 / 1024)
        assert (found["n"], found["clusters"]) == (20 * repeats, 10)
    few = row(recognition_table(both_orders([("a", "a")] * 4, condition="question=authored"), **FAST), "self_accuracy")
    assert few["p"] == 0.125 and "least_p=0.125" in few["note"] and few["conclusion"] == "too few answers"
    preferred = row(recognition_table(both_orders([("a", "a")] * 4), **FAST), "self_accuracy")
    assert preferred["conclusion"] == ""  # which text is better is no question of recognition


def test_what_cannot_be_estimated_has_no_p():
    """One prompt holds 60 of 62 rows: worth less than two prompts."""
    frame = pd.concat([both_orders([("a", "a")] * 2), *(both_orders([("a", "a")], repeat=k) for k in range(1, 30))])
    found = row(recognition_table(frame, **FAST), "self_accuracy")
    assert "few_prompts_dominate" in found["note"] and np.isnan([found["estimate"], found["p"], found["p_holm"]]).all()


def test_a_habit_of_place_is_no_preference():
    table = recognition_table(both_orders([("a", "b")] * 30), **FAST)
    assert row(table, "self_accuracy")["estimate"] == 0.5 and row(table, "self_accuracy")["p"] == 1
    assert row(table, "position_bias")["estimate"] == 0.5
    assert row(table, "position_consistency")["estimate"] == 0
    once = both_orders([("a", "b")] * 32)
    once = once[(once["position"] == 1) == (once.index // 2 < 24)]  # each prompt in one order, more often first
    found = row(recognition_table(once, **FAST), "self_accuracy")
    assert (found["estimate"], found["p"], found["clusters"]) == (0.5, 1, 32)  # of either order
    one_place = both_orders([("a", "a")] * 30, condition="").query("position == 1")
    table = recognition_table(one_place, **FAST)
    assert np.isnan(row(table, "self_accuracy")["p"]) and "one_order" in row(table, "self_accuracy")["note"]
    assert row(table, "self_accuracy")["conclusion"] == "no evidence"
    assert np.isnan(row(table, "position_bias")["estimate"])  # at one place bias and preference look the same


def test_pairs_answered_alike_in_both_orders():
    """Of four pairs with both answers three agree, two of them on the other text."""
    frame = both_orders([("a", "a"), ("b", "b"), ("b", "b"), ("a", "b"), ("a", None)])
    alike = row(recognition_table(frame, **FAST), "position_consistency")
    assert (alike["estimate"], alike["n"], alike["clusters"]) == (0.75, 4, 4)


def test_pairs_of_which_some_texts_have_no_id_are_known_by_author_and_prompt():
    frame = both_orders([("a", "a"), ("b", "b"), ("a", "b"), ("a", "b")])
    frame = frame.astype({"text_id": object, "other_text_id": object})
    frame.loc[frame["prompt_id"].isin(["p0", "p1"]), ["text_id", "other_text_id"]] = None
    alike = row(recognition_table(frame, **FAST), "position_consistency")
    assert (alike["estimate"], alike["n"], alike["clusters"]) == (0.5, 4, 4)


@pytest.mark.parametrize(("gap", "area", "least"), [(0.1, 1, True), (0, 0.5, False)])
def test_probabilities_of_pairs_show_what_a_habit_of_place_hides(gap, area, least):
    """It always takes the first text, with .8 where that is its own and .6 where it is not; or with .8 in both."""
    frame = both_orders([("a", "b")] * 12)
    frame["score"] = 0.5 + np.where(frame["position"] == 1, 0.3, -0.3) + gap
    table = recognition_table(frame, **FAST)
    assert row(table, "self_accuracy")["estimate"] == 0.5
    for statistic, estimate, test in (("mean_probability", 0.5 + gap, "p"), ("auc", area, "p_permutation")):
        found = row(table, statistic)
        assert found["estimate"] == pytest.approx(estimate)
        assert found[test] == pytest.approx(2 / 2**12 if least else 1) and (found["p"] < 0.001) == least
    assert roc_points(frame).empty  # a score is of two texts


# ---------------------------------------------------------------------------------------------------------------
# Neutral judges


def with_neutral(turned=False, named=True):
    """a and b judge their own 20 pairs, c the same ones: it takes a's in 12 prompts, a in 16, b takes its own in 14."""
    judged = both_orders([("a", "a")] * 12 + [("b", "b")] * 8, "c", *("ba" if turned else "ab"))
    frames = [
        both_orders([("a", "a")] * 16 + [("b", "b")] * 4),
        both_orders([("b", "b")] * 14 + [("a", "a")] * 6, "b", "b", "a"),
        judged if named else judged.assign(predicted_model=None),
    ]
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize(("turned", "named"), [(False, True), (True, True), (True, False)])
def test_own_minus_neutral_is_over_the_same_pairs_whichever_text_a_row_names_first(turned, named):
    table = recognition_table(with_neutral(turned, named), **FAST)
    for evaluator, own, judged in (("a", 0.8, 0.6), ("b", 0.7, 0.4)):
        assert row(table, "self_accuracy", evaluator)["estimate"] == pytest.approx(own)
        assert row(table, "neutral_rate", evaluator)["estimate"] == pytest.approx(judged)
        gap = row(table, "own_minus_neutral", evaluator)
        assert gap["estimate"] == pytest.approx(own - judged) and gap["low"] < gap["estimate"] < gap["high"]
        assert 0 < gap["p"] < 1 and (gap["n"], gap["clusters"], gap["method"]) == (80, 20, "mover")


def test_a_neutral_judge_is_named_so_and_never_pooled_with_own_pairs():
    frame = with_neutral()
    third = both_orders([("c", "c")] * 20, "c", "c", "a")  # c judges pairs of its own too
    table = recognition_table(pd.concat([frame, third], ignore_index=True), **FAST)
    assert row(table, "self_accuracy", "c")["estimate"] == 1 and row(table, "self_accuracy", "c")["n"] == 40
    assert row(table, "neutral_no_answer_rate", "c")["estimate"] == 0
    alone = recognition_table(frame, **FAST)
    assert set(alone[alone["evaluator"] == "c"]["statistic"]) == {"neutral_no_answer_rate"}


def test_only_pairs_that_both_judged_are_compared():
    """The neutral judge saw the ten pairs of which the evaluator chose its own; in the other ten it did not."""
    own = both_orders([("a", "a")] * 10 + [("b", "b")] * 10)
    judged = both_orders([("a", "b")] * 10, "c")
    table = recognition_table(pd.concat([own, judged], ignore_index=True), **FAST)
    assert row(table, "self_accuracy")["estimate"] == 0.5
    gap = row(table, "own_minus_neutral")
    assert gap["estimate"] == pytest.approx(1 - 0.5) and (gap["n"], gap["clusters"]) == (40, 10)
    crowd = pd.concat([both_orders([("a", "a")], judge) for judge in "defg"])  # many judges of one pair weigh as one
    more = recognition_table(pd.concat([own, judged, crowd], ignore_index=True), **FAST)
    assert row(more, "neutral_rate")["estimate"] == pytest.approx((9 * 0.5 + (4 + 0.5) / 5) / 10)
    for others in (both_orders([("b", "c")] * 10, "a", "b", "c"), both_orders([(None, None)] * 10, "c")):
        table = recognition_table(pd.concat([own, others], ignore_index=True), **FAST)
        assert "own_minus_neutral" not in {*table["statistic"]}  # no answered pair in common


def test_no_neutral_answer_is_no_choice():
    frame = with_neutral()
    lost = (frame["evaluator_model"] == "c") & (frame.index % 3 == 0)
    frame.loc[lost, ["predicted_model", "predicted_self"]] = None
    table = recognition_table(frame, **FAST)
    assert row(table, "neutral_no_answer_rate", "c")["estimate"] == pytest.approx(lost.sum() / 40)
    for evaluator, rate in (("a", 0.6), ("b", 0.4)):
        assert row(table, "neutral_rate", evaluator)["estimate"] == pytest.approx(rate, abs=0.02)


def test_rows_that_name_the_own_text_second_are_turned():
    straight = both_orders([("a", "a")] * 6 + [("b", "a")] * 14)
    turned = both_orders([("a", "a")] * 6 + [("a", "b")] * 14, "a", "b", "a")
    first, second = (recognition_table(frame, **FAST) for frame in (straight, turned))
    for statistic in ("self_accuracy", "position_bias", "position_consistency"):
        assert row(second, statistic)["estimate"] == pytest.approx(row(first, statistic)["estimate"])
    assert row(second, "self_accuracy")["estimate"] == pytest.approx(0.65)


def test_whose_text_it_is_has_no_right_answer_for_a_neutral_judge():
    more = dict.fromkeys(("text_preview", "true_model_display", "prompt_used"), "")
    frame = with_neutral().assign(reply="Text 1", status="ok", is_correct=None, condition="question=authored", **more)
    read, _ = rescore(frame, "yes")
    assert read.loc[frame["evaluator_model"] == "c", "is_correct"].isna().all()
    assert read.loc[frame["evaluator_model"] == "a", "is_correct"].tolist() == [True, False] * 20


@pytest.mark.parametrize(("place", "chosen"), [(1, True), (2, False), (None, None)])
def test_a_place_that_is_chosen_says_nothing_where_nobody_knows_which_text_stood_there(place, chosen):
    record = pair(1, "a", "a", "b", place, None) | {"reply": "1", "status": "ok"}
    assert score(record)["predicted_self"] is chosen
