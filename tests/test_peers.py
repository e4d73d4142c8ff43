"""Claims of own texts against what the other evaluators say of the same texts: the word `recognises`."""

import numpy as np
import pandas as pd
import pytest
from recognition_records import FAST, binary, everybody, row, simulated

import selfeval as se
from selfeval import DATA
from selfeval.estimates.summaries import main_table
from selfeval.stats import recognition_table


def claims(rates, prompts=40, **columns) -> pd.DataFrame:
    """Return yes/no records of models a, b, ...: of the prompts, rates[evaluator][author] are claimed."""
    names = "abcdef"
    said = {
        (names[e], names[t]): [(p * 7 + 11 * t + 17 * e) % prompts < rate * prompts for p in range(prompts)]
        for e, of in enumerate(rates)
        for t, rate in enumerate(of)
    }
    return binary(said).assign(**columns)


def word(frame, evaluator="a", statistic="discrimination") -> tuple[str, str]:
    found = row(recognition_table(frame, **FAST), statistic, evaluator)
    return found["conclusion"], found["note"]


def words(result) -> dict[str, str]:
    return main_table(result).set_index("evaluator")["conclusion"].to_dict()


def test_a_taste_that_all_share_is_no_recognition_and_what_goes_beyond_it_is():
    everybody_likes_a = [[0.8, 0.3, 0.3, 0.3]] * 4
    said, note = word(claims(everybody_likes_a))
    assert said == "claims its own more" and "peers_p=" in note and "few_authors" not in note
    a_alone = [[0.8, 0.3, 0.3, 0.3], *[[0.3] * 4] * 3]
    said, note = word(claims(a_alone))
    assert said == "recognises" and "few_authors" in note
    assert word(claims([[0.1, 0.5, 0.5, 0.5], *[[0.3] * 4] * 3]))[0] == "avoids"


def test_a_taste_is_a_taste_whatever_the_habit():
    """On the scale of rates the first, who claims half of all texts, is far beyond peers that claim few."""
    rates = [[0.85, 0.5, 0.5, 0.5], *[[0.225, 0.05, 0.05, 0.05]] * 3]
    table = recognition_table(claims(rates, prompts=80), **FAST)
    assert row(table, "peer_corrected")["low"] > 0
    assert row(table, "discrimination")["conclusion"] == "claims its own more"


def test_peer_corrected_of_claims_by_hand():
    rates = [[0.75, 0.25, 0.5], [0.5, 0.75, 0.25], [0.25, 0.5, 0.75]]
    table = recognition_table(claims(rates), **FAST)
    # b claims a's texts .5 and c's .25; c claims a's .25 and b's .5.
    expected = 0.75 - (0.25 + 0.5) / 2 - ((0.5 - 0.25) + (0.25 - 0.5)) / 2
    assert row(table, "peer_corrected")["estimate"] == pytest.approx(expected)


@pytest.mark.parametrize("rates", [
    [[0.9, 0.2, 0.2]],  # nobody else was asked
    [[0.9, 0.2], [0.2, 0.9]],  # no third author
    [[0.9, 0.2, 0.2], [0, 0, 0], [1, 1, 1]],  # of constant answers nothing is learned
])  # fmt: skip
def test_without_peers_the_word_says_so(rates):
    said, note = word(claims(rates))
    assert said == "claims its own more (no peers)" and "no_peers" in note


def test_who_all_know_their_own_texts_are_each_others_peers():
    found = recognition_table(claims(np.eye(4)), **FAST)
    assert {row(found, "discrimination", name)["conclusion"] for name in "abcd"} == {"recognises"}


def test_one_of_several_must_be_beyond_its_peers_after_holm():
    """The first is so at .05 alone, among nine evaluators that claim a third of everything."""
    rng = np.random.default_rng(4)
    frame = everybody(9, 40, lambda *_: None).assign(task_type="binary_self")
    own = (frame["evaluator_model"] == "m0") & (frame["true_model"] == "m0")
    frame["predicted_self"] = rng.random(len(frame)) < np.where(own, 0.8, 0.33)
    table = recognition_table(frame, **FAST)
    p = float(row(table, "discrimination", "m0")["note"].partition("peers_p=")[2].partition(";")[0])
    expected = "recognises" if 9 * p <= 0.05 else "recognises alone, not after Holm"
    assert row(table, "discrimination", "m0")["conclusion"] == expected


def test_who_know_all_authors_alike_know_themselves_no_better():
    table = recognition_table(simulated(0, n_models=4, n_prompts=60, know=0.6), **FAST)
    said = [row(table, "discrimination", f"m{k}")["conclusion"] for k in range(4)]
    assert {*said} == {"claims its own more"}


def test_areas_are_held_against_the_scores_of_peers():
    rng = np.random.default_rng(0)
    frame = claims([[0.5] * 4] * 4)
    likes_a = frame["true_model"] == "a"
    knows = likes_a & (frame["evaluator_model"] == "a")
    for liked, said in ((likes_a, "claims its own more"), (knows, "recognises")):
        scored = frame.assign(score=(0.5 + 0.1 * liked + 0.05 * rng.normal(size=len(frame))).clip(0, 1))
        for statistic in ("auc", "auc_within_prompt"):
            assert word(scored, statistic=statistic)[0] == said
    table = recognition_table(scored, **FAST)
    mean_of_peers = row(table, "auc_within_prompt")["estimate"] - row(table, "auc_peer_corrected")["estimate"]
    assert mean_of_peers == pytest.approx(0.5, abs=0.06)


def test_pairs_are_held_against_judges_that_wrote_neither_text():
    texts = se.generate_texts(["sim/good", "sim/perfect", "sim/chance"], prompts=20)
    asked = {"tasks": "pairwise_self"}
    claims, no_evidence = "claims its own more (no peers)", "no evidence"
    alone = se.measure_recognition(se.collect_predictions(texts, **asked))
    assert words(alone) == {"Good": claims, "Perfect": claims, "Chance": no_evidence}
    beside = se.measure_recognition(se.collect_predictions(texts, peers=True, **asked))
    assert words(beside) == {"Good": "recognises", "Perfect": "recognises", "Chance": no_evidence}


# missing answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answered", [0, 1])
def test_who_answers_for_its_own_texts_alone_recognises_nothing(answered):
    """40 of 40 own claimed, others' unanswered, or one of them claimed: J 1.00 [.87, 1.00]."""
    own = {("a", "a"): [True] * 40}
    others = {("a", t): [True] * (answered if t == "b" else 0) + [None] * (40 - answered * (t == "b")) for t in "bcd"}
    peers = {(e, t): [True, False] * 20 for e in "bcd" for t in "abcd"}
    said, note = word(binary(own | others | peers))
    assert said == "depends on no answers" and "depends_on_no_answers" in note


def test_one_answer_is_no_constant_answer():
    silent = {("a", "a"): [False] + [None] * 39, ("a", "b"): [None] * 40}
    said, note = word(binary(silent))
    assert said == "too few answers" and "too_few_answers" in note


def test_silence_about_others_texts_is_not_beyond_the_peers():
    """All like a's texts, and each leaves two in five of others' texts unanswered and none of its own."""
    frame = claims([[0.8, 0.3, 0.3, 0.3]] * 4)
    prompt = frame["prompt_id"].astype(int)
    silent = (frame["true_model"] != frame["evaluator_model"]) & (prompt % 5 < 2)
    frame["predicted_self"] = frame["predicted_self"].astype(object).mask(silent, None)
    assert word(frame)[0] == "claims its own more"


# what was shown -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["prompt_used", "text_full"])
def test_the_same_texts_under_other_ids_are_the_same_prompts(column):
    frame = claims([[0.8, 0.3, 0.3, 0.3]] * 4, prompts=10)
    shown = frame["prompt_id"].astype(str)
    frame[column] = shown if column == "prompt_used" else shown + " by " + frame["true_model"]
    copies = [
        frame.assign(text_id=frame["text_id"] + f"-{k}", prompt_id=100 * k + frame["prompt_id"]) for k in range(8)
    ]
    once, often = (row(recognition_table(of, **FAST), "discrimination") for of in (frame, pd.concat(copies)))
    assert (often["clusters"], often["n"]) == (10, 8 * once["n"])
    assert often["high"] - often["low"] > 0.8 * (once["high"] - once["low"])


def test_own_and_others_texts_on_other_prompts_are_compared_where_they_meet():
    """Own texts on hard prompts and others' on easy ones."""
    frame = claims([[0.9, 0.2, 0.2]], prompts=40)
    prompt = frame["prompt_id"].astype(int)
    is_own = frame["true_model"] == "a"
    for shared, note in ((12, "shared_prompts"), (5, "few_shared_prompts")):
        part = frame[(prompt < shared) | (is_own == (prompt % 2 == 0))]
        found = row(recognition_table(part, **FAST), "discrimination")
        assert note in found["note"].split("; ")
        assert (found["clusters"] == shared) == (shared == 12)
    assert found["conclusion"] == "too few answers"


# simulations ----------------------------------------------------------------------------------------------------------


def test_blind_evaluators_seldom_get_the_word_and_real_ones_do():
    """The committed run of bench/simulate_small.py."""
    table = pd.read_csv(DATA / "validation" / "words.csv").fillna({"special": ""})
    blind = table[(table["real"] == "none") & (table["own_taste"] == 0) & (table["special"] != "twice the taste")]
    assert (blind["blind_recognises"] <= 0.06).all() and blind["blind_claims_more"].max() > 0.5
    real = table[(table["real"] != "none") & (table["taste"] == 0) & (table["authors"] == 4)]
    power = real.groupby("prompts")["power"].min()
    assert power[40] > 0.5 and power[120] > 0.85
