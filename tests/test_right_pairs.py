"""Pairs: missing answers are no choice of the other text, and a judge who wrote neither text is neutral.

Prediction records in, tables and sentences out.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps

from selfeval.errors import InputError
from selfeval.figures import tables
from selfeval.recognition.answers import rescore
from selfeval.stats import condition_contrasts, recognition_table, roc_points

FAST = {"n_resamples": 50}


def pair(prompt, judge, wrote, rival, place, chosen, **more):
    """Return one record; place: of the text by `wrote`; chosen: an author or None."""
    ids = {author: 100 * prompt + k for k, author in enumerate("abcd")}
    return {
        "text_id": ids[wrote], "other_text_id": ids[rival], "true_model": wrote, "other_model": rival,
        "evaluator_model": judge, "task_type": "pairwise_self", "position": place, "prompt_id": f"p{prompt}",
        "predicted_model": chosen, "predicted_self": None if chosen is None else chosen == wrote,
    } | more  # fmt: skip


def both_orders(answers, judge="a", wrote="a", rival="b", **more):
    """Build records from answers of prompt 0, 1, ...: what was chosen with the text by `wrote` first, and second."""
    rows = [
        pair(p, judge, wrote, rival, place, chosen, **more)
        for p, given in enumerate(answers)
        for place, chosen in zip((1, 2), given, strict=True)
    ]
    return pd.DataFrame(rows).astype({"predicted_self": object, "predicted_model": object})


def row(table, statistic, evaluator="a", author="", **where):
    """Return the first row of a statistic: its default."""
    for column, value in {"statistic": statistic, "evaluator": evaluator, "author": author, **where}.items():
        table = table[table[column] == value]
    return table.iloc[0]


# ---------------------------------------------------------------------------------------------------------------
# Missing answers, the test against one half


def test_an_evaluator_that_leaves_a_fifth_unanswered_does_not_avoid_its_own_texts():
    """Own in 39 of 100, the other in 39, no answer in 22: it was said to avoid its own (.39 [.34, .44])."""
    rng = np.random.default_rng(1)
    kinds = [("a", "b"), ("b", "a"), (None, "a"), ("b", None), ("a", None), (None, "b"), ("a", "b"), ("b", "a")]
    frame = both_orders([kinds[k % 8] for k in rng.permutation(96)])
    table = recognition_table(frame, **FAST)
    headline = row(table, "self_accuracy")
    assert headline["policy"] == "answered" and headline["estimate"] == pytest.approx(0.5)
    assert headline["p"] > 0.5 and headline["p_holm"] == headline["p"]
    assert row(table, "self_accuracy", policy="all")["estimate"] == pytest.approx(0.375)
    assert np.isnan(row(table, "self_accuracy", policy="all")["p"])
    assert row(table, "author_accuracy", author="b")["policy"] == "answered"
    assert row(table, "author_accuracy", author="b")["estimate"] == pytest.approx(0.5)
    assert row(table, "no_answer_rate")["estimate"] == pytest.approx(0.25)
    [sentence] = tables.conclusions(table)
    assert "chooses its own text in 0.50 [0.4" in sentence and "avoids" not in sentence
    assert "of the pairs that it answers, where 0.50 is chance" in sentence and "no evidence" in sentence
    shown = tables.summary(table, ["self_accuracy", "no_answer_rate"]).iloc[0]
    assert shown["self_accuracy"].startswith("0.50") and shown["no_answer_rate"].startswith("0.25")
    assert shown["p of self_accuracy"].startswith("= ")


def test_contrasts_of_pairs_leave_no_answer_out():
    every = both_orders([("a", "b"), ("b", "a")] * 15, condition="hints=false")
    some = both_orders([("a", None), (None, "b"), ("b", None), (None, "a")] * 8, condition="hints=true")
    change = condition_contrasts(pd.concat([every, some]))
    assert set(change["statistic"]) == {"self_accuracy"}
    assert change["estimate"].iloc[0] == pytest.approx(0, abs=0.02) and change["p"].iloc[0] > 0.5


def test_p_of_pairs_is_a_sign_test_over_prompts_whatever_is_repeated():
    """Nine of ten prompts choose the own text in both orders: 22 of 1,024 sign patterns are as far from one half."""
    answers = [("a", "a")] * 9 + [("b", "b")]
    once = row(recognition_table(both_orders(answers), **FAST), "self_accuracy")
    assert once["p"] == pytest.approx(sps.binomtest(9, 10).pvalue) == pytest.approx(22 / 1024)
    five = pd.concat([both_orders(answers, repeat=k) for k in range(5)])
    again = row(recognition_table(five, **FAST), "self_accuracy")
    assert again["p"] == pytest.approx(22 / 1024) and (again["n"], again["clusters"]) == (100, 10)
    few = row(recognition_table(both_orders([("a", "a")] * 4), **FAST), "self_accuracy")
    assert few["p"] == 0.125 and "least_p=0.125" in few["note"]  # though its interval excludes one half
    assert (
        "p = 0.125, the least that so few prompts allow"
        in tables.conclusions(recognition_table(both_orders([("a", "a")] * 4), **FAST))[0]
    )


def test_a_habit_of_place_is_no_preference():
    table = recognition_table(both_orders([("a", "b")] * 30), **FAST)
    assert row(table, "self_accuracy")["estimate"] == 0.5 and row(table, "self_accuracy")["p"] == 1
    assert row(table, "position_bias")["estimate"] == 0.5
    assert row(table, "position_consistency")["estimate"] == 0
    often_first = both_orders([("a", "b")] * 32)
    often_first = often_first[(often_first["position"] == 1) == (often_first.index // 2 < 24)]  # once per prompt
    found = row(recognition_table(often_first, **FAST), "self_accuracy")
    assert (found["estimate"], found["p"], found["clusters"]) == (0.5, 1, 32)
    one_place = both_orders([("a", "a")] * 30).query("position == 1")
    found = row(recognition_table(one_place, **FAST), "self_accuracy")
    assert np.isnan(found["p"]) and "one_order" in found["note"]
    [sentence] = tables.conclusions(recognition_table(one_place, **FAST))
    assert "always stood at the same place" in sentence and "favours" not in sentence


def test_prompts_of_pairs_are_those_of_either_order():
    """Each of 60 prompts was asked in one order; 30 were reported."""
    frame = both_orders([("a", "b")] * 60)
    asked = frame[(frame.index // 2 % 2 == 0) == (frame["position"] == 1)]
    assert len(asked) == 60
    table = recognition_table(asked, **FAST)
    assert row(table, "self_accuracy")["clusters"] == 60
    assert row(table, "author_accuracy", author="b")["clusters"] == 60
    assert "few_prompts" not in row(table, "self_accuracy")["note"]


def blind(rng, prompts, rivals, repeats, alike, none):
    """Choose by content alone: the better text, all answers to a pair alike to `alike`, in both orders."""
    quality = rng.normal(size=(prompts, rivals + 1))
    rows = []
    for p in range(prompts):
        for r in range(rivals):
            for place in (1, 2):
                settled = quality[p, 0] > quality[p, r + 1]
                for k in range(repeats):
                    own = settled if rng.random() < alike else rng.random() < 0.5
                    chosen = None if rng.random() < none else "a" if own else "bcd"[r]
                    rows.append(pair(p, "a", "a", "bcd"[r], place, chosen, repeat=k))
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("repeats", "alike", "none"), [(1, 1, 0), (3, 0.8, 0.25)])
def test_p_of_pairs_holds_its_level_where_texts_are_chosen_by_content(repeats, alike, none):
    """A test that takes rows for independent rejects far more: these answers go together within a prompt."""
    rng = np.random.default_rng(12)
    frames = [blind(rng, 16, 3, repeats, alike, none) for _ in range(20)]
    p = [row(recognition_table(frame, n_resamples=1), "self_accuracy")["p"] for frame in frames]
    assert not np.isnan(p).any() and np.less_equal(p, 0.05).sum() <= 4  # the chance of more is .01 at .071


# ---------------------------------------------------------------------------------------------------------------
# Neutral judges


def with_neutral(turned=False, named=True):
    """a and b judge their own 20 pairs, c the same ones: it takes a's in 12 prompts, a in 16, b takes its own in 14."""
    frames = [
        both_orders([("a", "a")] * 16 + [("b", "b")] * 4),
        both_orders([("b", "b")] * 14 + [("a", "a")] * 6, "b", "b", "a"),
        both_orders([("a", "a")] * 12 + [("b", "b")] * 8, "c"),
    ]
    if turned:
        frames[2] = both_orders([("a", "a")] * 12 + [("b", "b")] * 8, "c", "b", "a")
    if not named:
        frames[2] = frames[2].assign(predicted_model=None)
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize(("turned", "named"), [(False, True), (True, True), (False, False), (True, False)])
def test_own_minus_neutral_is_over_the_same_pairs_whichever_text_a_row_names_first(turned, named):
    table = recognition_table(with_neutral(turned, named), **FAST)
    for evaluator, own, judged in (("a", 0.8, 0.6), ("b", 0.7, 0.4)):
        rival = {"a": "b", "b": "a"}[evaluator]
        assert row(table, "self_accuracy", evaluator)["estimate"] == pytest.approx(own)
        for author in ("", rival):
            assert row(table, "neutral_rate", evaluator, author)["estimate"] == pytest.approx(judged)
            gap = row(table, "own_minus_neutral", evaluator, author)
            assert gap["estimate"] == pytest.approx(own - judged) and gap["low"] < gap["estimate"] < gap["high"]
            assert 0 < gap["p"] < 1 and (gap["n"], gap["clusters"], gap["method"]) == (80, 20, "mover")
    both = row(table, "own_minus_neutral", "")
    assert both["estimate"] == pytest.approx(0.25) and 0 < both["p"] < 0.05 and both["clusters"] == 20
    assert both["low"] < 0.25 < both["high"]


def test_a_neutral_judge_is_named_so_and_never_pooled_with_own_pairs():
    """Its rows were "its own": 20 questions with self_accuracy .60, and a sentence that said what it favours."""
    frame = with_neutral()
    third = both_orders([("c", "c")] * 20, "c", "c", "a")  # c judges pairs of its own too
    table = recognition_table(pd.concat([frame, third], ignore_index=True), **FAST)
    assert row(table, "self_accuracy", "c")["estimate"] == 1 and row(table, "self_accuracy", "c")["n"] == 40
    assert row(table, "neutral_choice_rate", "c", "a")["estimate"] == pytest.approx(0.6)
    assert row(table, "neutral_choice_rate", "c", "b")["estimate"] == pytest.approx(0.4)
    assert row(table, "neutral_position_consistency", "c")["estimate"] == 1
    assert row(table, "neutral_position_bias", "c")["estimate"] == 0
    assert row(table, "neutral_no_answer_rate", "c")["estimate"] == 0
    alone = recognition_table(frame, **FAST)
    of_judge = alone[alone["evaluator"] == "c"]["statistic"]
    assert len(of_judge) and of_judge.str.startswith("neutral_").all()
    said = dict(sentence.removeprefix("pairwise_self, ").split(": ", 1) for sentence in tables.conclusions(alone))
    assert {*said} == {"a", "b"}
    assert "Judges who wrote neither text choose it in 0.60 of the same pairs" in said["a"]
    assert list(tables.overview(frame)["questions"]) == [40, 40, 40]


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


def test_no_neutral_answer_is_no_choice():
    frame = with_neutral()
    lost = (frame["evaluator_model"] == "c") & (frame.index % 3 == 0)
    frame.loc[lost, ["predicted_model", "predicted_self"]] = None
    table = recognition_table(frame, **FAST)
    assert row(table, "neutral_no_answer_rate", "c")["estimate"] == pytest.approx(lost.sum() / 40)
    assert row(table, "neutral_choice_rate", "c", "a")["estimate"] == pytest.approx(0.6, abs=0.02)
    assert row(table, "neutral_rate", "a")["estimate"] == pytest.approx(0.6, abs=0.02)
    assert row(table, "neutral_choice_rate", "c", "a")["policy"] == "answered"


def test_a_pair_whose_other_author_is_unknown_is_refused_where_the_first_is_not_the_evaluator():
    frame = with_neutral()
    frame.loc[85, "other_model"] = None
    with pytest.raises(InputError, match="Row 85 is a pair whose `true_model` is not its evaluator, and `other_model`"):
        recognition_table(frame, **FAST)


def test_a_row_that_names_the_own_text_second_is_turned_round():
    straight = both_orders([("a", "a")] * 6 + [("b", "a")] * 14)
    turned = both_orders([("a", "a")] * 6 + [("a", "b")] * 14, "a", "b", "a")
    first, second = (recognition_table(frame, **FAST) for frame in (straight, turned))
    for statistic in ("self_accuracy", "position_bias", "position_consistency"):
        assert row(second, statistic)["estimate"] == pytest.approx(row(first, statistic)["estimate"])
    assert row(second, "self_accuracy")["estimate"] == pytest.approx(0.65)


def test_whose_text_it_is_has_no_right_answer_for_a_neutral_judge():
    frame = with_neutral().assign(
        reply="Text 1", status="ok", text_preview="", true_model_display="", prompt_used="", is_correct=None
    )
    read, _ = rescore(frame, "yes")
    assert read.loc[frame["evaluator_model"] == "c", "is_correct"].isna().all()
    assert read.loc[frame["evaluator_model"] == "a", "is_correct"].tolist() == [True, False] * 20


# ---------------------------------------------------------------------------------------------------------------
# Probabilities, consistency


def scored(gap, prompts=12, first=0.3):
    """P(own) of an evaluator that gives the first text `first` more and its own text `gap` more."""
    rows = []
    for p in range(prompts):
        for place in (1, 2):
            likely = 0.5 + (first if place == 1 else -first) + gap + 0.001 * p
            rows.append(pair(p, "a", "a", "b", place, "a" if likely > 0.5 else "b", score=likely))
    return pd.DataFrame(rows)


def test_probabilities_of_pairs_show_what_a_habit_of_place_hides():
    """It always takes the first text, with .8 where that is its own and .6 where it is not."""
    table = recognition_table(scored(0.1), **FAST)
    assert row(table, "self_accuracy")["estimate"] == 0.5 and row(table, "position_bias")["estimate"] == 0.5
    mean = row(table, "mean_probability")
    assert mean["estimate"] == pytest.approx(0.6055) and mean["low"] > 0.6 and mean["p"] == pytest.approx(2 / 2**12)
    area = row(table, "auc")
    assert area["estimate"] == 1 and area["p"] == pytest.approx(2 / 2**12)
    assert "Its probabilities order its own texts above others'" in tables.conclusions(table)[0]
    assert row(table, "position_consistency")["estimate"] == 0


def test_a_habit_of_place_alone_moves_no_probability_of_pairs():
    """P(own) ties wherever the own text stands first, and wherever it stands second."""
    frame = scored(0)
    frame["score"] = np.where(frame["position"] == 1, 0.8, 0.2)
    table = recognition_table(frame, **FAST)
    assert row(table, "mean_probability")["estimate"] == pytest.approx(0.5) and row(table, "mean_probability")["p"] == 1
    assert row(table, "auc")["estimate"] == 0.5 and row(table, "auc")["p"] == 1


def test_pairs_answered_alike_in_both_orders():
    """Of four pairs with both answers three agree, two of them on the other text."""
    frame = both_orders([("a", "a"), ("b", "b"), ("b", "b"), ("a", "b"), ("a", None)])
    alike = row(recognition_table(frame, **FAST), "position_consistency")
    assert (alike["estimate"], alike["n"], alike["clusters"]) == (0.75, 4, 4)


def test_scores_of_pairs_make_no_curve_of_single_texts():
    third = both_orders([("c", "a")] * 20, "c", "c", "a")
    frame = pd.concat([with_neutral(), third], ignore_index=True)
    assert roc_points(frame.assign(score=np.linspace(0.1, 0.9, 160))).empty


def test_a_neutral_judge_that_claims_nothing_and_names_the_first_text_first():
    """Files made elsewhere: `predicted_self` false in every row, and each row named by the text that stood first."""
    frame = with_neutral()
    judged = (frame["evaluator_model"] == "c") & (frame["position"] == 2)
    names = {"text_id": "other_text_id", "true_model": "other_model"}
    turned = names | {second: first for first, second in names.items()}
    other = frame.assign(**{new: frame[old] for new, old in turned.items()}, position=1)
    frame = frame.where(~judged, other)
    frame.loc[frame["evaluator_model"] == "c", "predicted_self"] = False
    table = recognition_table(frame, **FAST)
    assert row(table, "neutral_choice_rate", "c", "a")["estimate"] == pytest.approx(0.6)
    assert row(table, "neutral_position_bias", "c")["estimate"] == 0
    assert row(table, "neutral_position_consistency", "c")["estimate"] == 1
    assert row(table, "own_minus_neutral")["estimate"] == pytest.approx(0.2)
