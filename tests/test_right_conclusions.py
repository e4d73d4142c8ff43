"""What the sentences of 03 and 06 say: probabilities beside words, a p that fits its interval, habits named as such.

Prediction records or scores in, tables and sentences out.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps

from selfeval.figures import tables
from selfeval.roleplay import report
from selfeval.stats import recognition_table
from selfeval.stats.jury import baseline_auc

FAST = {"n_resamples": 50}


def asked(answers, task="binary_self"):
    """Build records: {(evaluator, author): [(answer, score) of prompt 0, 1, ...]}."""
    rows = [
        {"text_id": f"{author}-{prompt}", "true_model": author, "evaluator_model": evaluator, "task_type": task,
         "predicted_self": answer if task == "binary_self" else None, "prompt_id": prompt, "score": score,
         "predicted_model": answer if task == "exact_model" else None}
        for (evaluator, author), given in answers.items() for prompt, (answer, score) in enumerate(given)
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"predicted_self": object, "predicted_model": object})


def ranked(apart, prompts=40, says=lambda score: score > 0.9):
    """An evaluator that says yes above .9 alone, and whose scores of own texts are `apart` higher on average."""
    rng = np.random.default_rng(4)
    own, others = (np.clip(0.5 + shift + 0.15 * rng.normal(size=prompts), 0, 0.89) for shift in (apart, 0.0))
    return {("a", who): [(says(s), s) for s in scores] for who, scores in (("a", own), ("b", others))}


def default(table, statistic):
    return table[table["statistic"] == statistic].iloc[0]


# ---------------------------------------------------------------------------------------------------------------
# AUC beside J


def test_an_evaluator_that_seldom_says_yes_is_heard_by_its_probabilities():
    """AUC .9, J = 0: "no evidence of recognition" was all that was said."""
    table = recognition_table(asked(ranked(0.2)), **FAST)
    assert default(table, "discrimination")["estimate"] == 0 and default(table, "auc")["low"] > 0.6
    [sentence] = tables.conclusions(table)
    assert "Its probabilities order its own texts above others': AUC = 0." in sentence and "p < 0.001" in sentence
    some = ranked(0.2, says=lambda score: score > 0.88)  # a few claims: no constant answer, and still no J
    [sentence] = tables.conclusions(recognition_table(asked(some), **FAST))
    assert "its words do not show recognition (J = " in sentence
    assert "but its probabilities order its own texts above others': AUC = 0." in sentence
    below = {("a", who): [(s > 0.88, 1 - s) for _, s in given] for (_, who), given in some.items()}
    assert "order its own texts below others'" in tables.conclusions(recognition_table(asked(below), **FAST))[0]


def test_probabilities_that_show_nothing_are_said_to_show_nothing():
    [sentence] = tables.conclusions(recognition_table(asked(ranked(0.0)), **FAST))
    assert "Its probabilities do not show that it tells them apart: AUC = 0." in sentence and "above" not in sentence


def test_a_file_of_scores_without_answers_gets_its_conclusion_from_them():
    """It was "nothing can be said, it answered nothing"."""
    for apart, said in ((0.2, "order its own texts above others'"), (0.0, "no evidence of recognition")):
        silent = ranked(apart, says=lambda score: None)
        [sentence] = tables.conclusions(recognition_table(asked(silent), **FAST))
        assert "it has probabilities and no answers" in sentence and said in sentence and "AUC = 0." in sentence
        assert "nothing can be said" not in sentence
    nothing = {key: [(None, None)] * 40 for key in ranked(0)}
    assert "it answered nothing" in tables.conclusions(recognition_table(asked(nothing), **FAST))[0]


# ---------------------------------------------------------------------------------------------------------------
# p of AUC


def by_hand(frame):
    """Return p of AUC over every choice of who is "own" on each prompt, all of an author's rows together."""
    rank = sps.rankdata(frame["score"]) - (len(frame) + 1) / 2
    sums = frame.assign(rank=rank).groupby(["prompt_id", "true_model"])["rank"].sum().unstack()
    totals = np.array([sum(one) for one in itertools.product(*sums.to_numpy())])
    distance = np.abs(totals - sums.mean(axis=1).sum())
    return (distance >= abs(sums["a"].sum() - sums.mean(axis=1).sum()) - 1e-9).mean()


@pytest.mark.parametrize("samples", [1, 3])
def test_p_of_auc_exchanges_whole_authors_of_a_prompt(samples):
    rng = np.random.default_rng(3)
    frame = asked({("a", t): [(None, s) for s in rng.random(6)] for t in "abc"})
    again = pd.concat([
        frame.assign(text_id=frame["text_id"] + str(k), score=(frame["score"] + 0.01 * k).clip(0, 1))
        for k in range(samples)
    ])  # fmt: skip
    area = default(recognition_table(again, **FAST), "auc")
    assert area["p"] == pytest.approx(by_hand(again)) and area["p_holm"] == area["p"]
    assert not np.isnan(default(recognition_table(again, **FAST), "auc_within_prompt")["p"])


def test_repeats_of_an_answer_make_auc_no_surer():
    rng = np.random.default_rng(8)
    frame = asked({("a", t): [(None, s) for s in rng.random(7)] for t in "ab"})
    five = pd.concat([frame.assign(repeat=k) for k in range(5)])
    once, again = (default(recognition_table(x, **FAST), "auc") for x in (frame, five))
    assert again["p"] == once["p"] == pytest.approx(by_hand(frame))
    assert again["estimate"] == pytest.approx(once["estimate"])


def test_the_draws_of_p_follow_the_seed_of_the_table():
    frame = asked(ranked(0.03, prompts=30))
    first, again, other = (default(recognition_table(frame, seed=s, **FAST), "auc")["p"] for s in (1, 1, 2))
    assert first == again != other and abs(first - other) < 0.05
    assert (first * 10_000) % 1 == pytest.approx(0, abs=1e-6)  # (1 + count) / (1 + 9,999)


def test_few_prompts_say_that_they_allow_no_small_p():
    frame = asked({("a", "a"): [(True, 0.8), (True, 0.9), (False, 0.7)], ("a", "b"): [(False, 0.1)] * 3})
    table = recognition_table(frame, **FAST)
    area = default(table, "auc")
    assert area["estimate"] == 1 and area["p"] == 0.25 and "least_p=0.25" in area["note"]
    assert "p = 0.250, the least that so few prompts allow" in tables.conclusions(table)[0]


def test_p_of_auc_holds_its_level_where_texts_differ_and_nobody_knows_whose_they_are():
    """Scores that go by the text, five samples alike per author: shuffled row by row they reject in most tables."""
    rng, p = np.random.default_rng(5), []
    for _ in range(20):
        quality = np.clip(0.5 + 0.15 * rng.normal(size=(12, 3)), 0, 1)
        frame = asked({("a", t): [(None, q) for q in quality[:, k]] for k, t in enumerate("abc")})
        many = pd.concat([frame.assign(repeat=k, score=frame["score"]) for k in range(5)])
        p.append(default(recognition_table(many, n_resamples=1), "auc")["p"])
    assert not np.isnan(p).any() and np.less_equal(p, 0.05).sum() <= 4  # the chance of more is .01 at .071


# ---------------------------------------------------------------------------------------------------------------
# The jury's AUC


def test_the_jurys_auc_is_tested_by_exchanging_people_and_models():
    """Three twins change places, two further models stay models: 8 arrangements, so .25 stands, and is explained."""
    human, cluster = [1, 1, 1, 0, 0, 0, 0, 0], list("abcabcde")
    table = baseline_auc([9, 8, 7, 1, 2, 3, 4, 5], human, cluster, name="style")
    area, paired = (default(table, name) for name in ("auc", "paired_accuracy"))
    assert area["estimate"] == 1 and area["low"] == pytest.approx(3 / (3 + 1.96**2), abs=1e-3) and area["p"] == 0.25
    assert "least_p=0.25" in area["note"] and "least_p=0.25" in paired["note"] and paired["p"] == 0.25
    said = report.conclusions(table.assign(task="debate"), table)
    assert said[0].startswith("debate: is not shown to tell people from models (AUC 1.00 [")
    assert "p = 0.250, the least that exchanging so few can give" in said[0]
    assert "p = 0.250, the least that exchanging so few can give" in said[1]


def test_p_of_the_jurys_auc_counts_arrangements():
    """Six conversations, three with people: of the 20 ways two are as far from one half."""
    scores, cluster = [0.9, 0.8, 0.7, 0.6, 0.65, 0.2, 0.3, 0.1], list("aabcdeef")
    human = [1, 1, 1, 1, 0, 0, 0, 0]
    rank = sps.rankdata(scores) - 4.5
    sums = pd.Series(rank).groupby(cluster).sum().to_numpy()
    totals = np.array([sum(c) for c in itertools.combinations(sums, 3)])
    centre = 3 * sums.mean()
    by_hand = (np.abs(totals - centre) >= abs(sums[:3].sum() - centre) - 1e-9).mean()
    area = default(baseline_auc(scores, human, cluster), "auc")
    assert area["p"] == pytest.approx(by_hand) and 0 < by_hand < 0.3


def test_ten_twins_that_are_told_apart_are_told_apart():
    human = [1] * 10 + [0] * 10
    table = baseline_auc([*range(10, 20), *range(10)], human, [*range(10), *range(10)])
    assert default(table, "auc")["p"] == pytest.approx(2 / 2**10) and "least_p" not in default(table, "auc")["note"]
    assert "tells people from models (AUC 1.00" in report.conclusions(table)[0]


# ---------------------------------------------------------------------------------------------------------------
# The wording about A


def naming(q, prompts=40):
    """An evaluator that names itself on a share q of all texts, whoever wrote them, and the others in turn."""
    rng = np.random.default_rng(2)
    given = np.where(rng.random((4, prompts)) < q, 0, rng.integers(1, 4, (4, prompts)))
    return asked({("a", t): [("abcd"[k], None) for k in given[i]] for i, t in enumerate("abcd")}, "exact_model")


def test_a_large_advantage_is_said_to_be_what_habits_alone_can_give():
    [sentence] = tables.conclusions(recognition_table(naming(0.8), **FAST))
    assert (
        "no evidence of recognition" in sentence and "an A of this size can arise from naming habits alone" in sentence
    )
    assert "not recognition" not in sentence


def test_an_advantage_whose_interval_includes_0_is_not_called_a_habit():
    """A = +.25 [-.21, .62] on six prompts was called a habit of naming."""
    answers = {("a", "a"): ["a", "a", "a", "a", "b", "b"], ("a", "b"): ["b", "b", "a", "b", "a", "a"]}
    frame = asked({key: [(x, None) for x in given] for key, given in answers.items()}, "exact_model")
    table = recognition_table(frame, **FAST)
    a = default(table, "advantage")
    assert a["estimate"] == pytest.approx(1 / 6) and a["low"] < 0 < a["high"]
    assert "habit" not in tables.conclusions(table)[0]
    more = frame.assign(predicted_model=["a"] * 5 + ["b"] + ["b", "b", "a", "b", "a", "a"])
    table = recognition_table(more, **FAST)
    assert default(table, "advantage")["estimate"] > 0.2 and default(table, "advantage")["low"] < 0
    assert "habit" not in tables.conclusions(table)[0]


def test_an_advantage_that_no_habit_gives_is_not_called_one():
    """It names all others rightly and never itself: A = -1, where habits give -1/3 at the least with four authors."""
    given = {("a", t): [(t if t != "a" else "bcd"[p % 3], None) for p in range(40)] for t in "abcd"}
    table = recognition_table(asked(given, "exact_model"), **FAST)
    assert default(table, "advantage")["estimate"] == -1 and "habit" not in tables.conclusions(table)[0]
    never = {("a", t): [("bcd"[(p + k) % 3], None) for p in range(39)] for k, t in enumerate("abcd")}
    table = recognition_table(asked(never, "exact_model"), **FAST)
    assert default(table, "advantage")["estimate"] == pytest.approx(-1 / 3)
    assert "A = -0.33: an A of this size can arise from naming habits alone" in tables.conclusions(table)[0]
