"""Small designs: few prompts, one row a side, missing answers, several evaluators; and the simulations behind them."""

import numpy as np
import pandas as pd
import pytest
import simulate_small
from recognition_records import row
from scipy.optimize import brentq
from scipy.stats import t

import selfeval as se
from selfeval import DATA
from selfeval.statistics.intervals import Rate, check_level
from selfeval.stats import condition_contrasts, recognition_table

Z = check_level(0.95)
FAST = {"n_resamples": 10}


def yes_or_no(own, *others, **columns) -> pd.DataFrame:
    """Return an evaluator's answers about its own texts and those of others, one per prompt each; None is no answer."""
    rows = [
        {"text_id": f"{author}-{prompt}", "prompt_id": prompt, "true_model": f"m{author}", "predicted_self": said}
        for author, answers in enumerate([own, *others])
        for prompt, said in enumerate(answers)
    ]
    return pd.DataFrame(rows).assign(**{"evaluator_model": "m0", "task_type": "binary_self"} | columns)


def of(table, statistic="discrimination"):
    return row(table, statistic, "m0")


# what a small design may say ------------------------------------------------------------------------------------------


def test_four_of_six_own_texts_and_none_of_six_others_is_no_recognition():
    found = of(recognition_table(yes_or_no([True] * 4 + [False] * 2, [False] * 6), **FAST))
    assert found["p_permutation"] == 0.125 and found["p"] > 0.05 and found["low"] < 0
    assert found["conclusion"] == "no evidence"


@pytest.mark.parametrize(("right", "word"), [(11, "claims its own more (no peers)"), (9, "no evidence"), (1, "avoids")])
def test_eleven_of_twelve_pairs_ranked_rightly_are_above_chance(right, word):
    frame = yes_or_no([True] * 12, [True] * 12)
    scores = np.where(np.arange(12) < right, 0.9, 0.1)
    found = of(recognition_table(frame.assign(score=[*scores, *1 - scores]), **FAST), "auc_within_prompt")
    assert found["estimate"] == pytest.approx(right / 12) and found["conclusion"] == word
    assert (found["n"], found["clusters"], found["method"]) == (24, 12, "wilson_effective_n")


def test_one_hit_more_never_lowers_an_end():
    rng = np.random.default_rng(0)
    for prompts in (6, 8, 12, 20, 40):
        for others in (1, 2, 5):
            for _ in range(40):
                own, claims = rng.random(prompts) < 0.4, rng.random((prompts, others)) < 0.4
                own[0] = False
                f = Rate.of(claims.sum(1)[:, None], np.full((prompts, 1), others))
                more = np.append(True, own[1:])
                h, one_more = (Rate.of(hits[:, None].astype(float), np.ones((prompts, 1))) for hits in (own, more))
                for before, after in ((h, one_more), (h - f, one_more - f)):
                    assert (np.ravel(after.interval(Z)) >= np.ravel(before.interval(Z)) - 1e-12).all()


def test_what_would_be_found_is_that_of_a_plan_by_hand_at_holms_first_level():
    """Claims one half of all: of who knows a share d the rates are .5 + d / 2 and .5 - d / 2."""
    first = yes_or_no([True, False] * 10, [True, False] * 10)
    second = first.assign(evaluator_model="m1")
    for frame, level in ((first, 0.05), (pd.concat([first, second]), 0.025)):

        def missing(d, level=level):
            of_test, of_runs = np.sqrt(0.93 / 2), np.sqrt(0.93 * (1 - d**2) / 2)
            return d * np.sqrt(20) - t.ppf(1 - level / 2, 19) * of_test - t.ppf(0.8, 19) * of_runs

        found = of(recognition_table(frame, **FAST))["detectable"]
        assert found == pytest.approx(brentq(missing, 0, 1), abs=0.001)


def test_where_nothing_could_be_found_no_number_stands():
    found = of(recognition_table(yes_or_no([True, False, True], [False, True, False]), **FAST))
    assert np.isnan(found["detectable"])


# no answer by author --------------------------------------------------------------------------------------------------


def test_a_yes_sayer_that_skips_others_texts_gets_a_note_and_no_conclusion():
    own, others = [True] * 98 + [None] * 2, [True] * 70 + [None] * 30
    frame = yes_or_no(own, others)
    found = of(recognition_table(frame, **FAST))
    assert found["estimate"] == pytest.approx(0.28) and found["low"] > 0
    assert found["conclusion"] == "depends on no answers"
    assert {"answers_differ", "depends_on_no_answers"} <= {*found["note"].split("; ")}
    both = pd.concat(
        [frame.assign(condition="told=false"), yes_or_no([True] * 100, [True] * 100, condition="told=true")]
    )
    assert "depends_on_no_answers" in of(condition_contrasts(both))["note"]


def test_who_skips_both_alike_has_neither_note():
    skipping = [True, False, None, True] * 10
    assert of(recognition_table(yes_or_no(skipping, skipping), **FAST))["note"] == "few_answers"


# several evaluators ---------------------------------------------------------------------------------------------------


def test_with_several_evaluators_the_word_is_adjusted():
    """Each of ten has p .02 alone: none passes Holm's."""
    own, others = [True] * 15 + [False] * 5, [True] * 4 + [False] * 16
    alone = of(recognition_table(yes_or_no(own, others[::-1]), **FAST))
    assert alone["conclusion"] == "claims its own more (no peers)" and 0.01 < alone["p"] < 0.05
    ten = []
    for number in range(10):
        frame = yes_or_no(own, others[::-1])
        names = {"m0": f"m{number}", "m1": f"m{(number + 1) % 10}"}
        ten.append(frame.assign(evaluator_model=f"m{number}", true_model=frame["true_model"].map(names)))
    ten = pd.concat(ten).assign(text_id=range(400))
    table = recognition_table(ten, **FAST).query("statistic == 'discrimination' and method == 'mover'")
    assert {*table["conclusion"]} == {"claims its own more (no peers) alone, not after Holm"} and (
        table["p_holm"] > 0.05
    ).all()


# which of these is yours? ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "word"), [(14, "claims its own more (no peers)"), (6, "no evidence")])
def test_a_choice_of_one_own_text_among_five_is_held_against_one_fifth(hits, word):
    """As docs/statistics.md says: a row per text shown, true for the one that was chosen."""
    chosen = [0] * hits + [1 + k % 4 for k in range(24 - hits)]
    frame = yes_or_no(*[[author == one for one in chosen] for author in range(5)])
    found = of(se.measure_recognition(frame, statistics="discrimination", n_resamples=10))
    assert found["estimate"] == pytest.approx((5 * hits / 24 - 1) / 4) and found["conclusion"] == word


# a regression with skewed predictors ----------------------------------------------------------------------------------


def test_the_wild_cluster_bootstrap_finds_what_is_there_and_little_else():
    rng = np.random.default_rng(1)
    prompt = np.repeat(np.arange(12), 3)

    def centred(values):
        return values - (np.bincount(prompt, values) / 3)[prompt]

    def p(effect):
        skewed = rng.lognormal(0, 1.5, 36)
        said = effect * skewed + rng.normal(size=36) * (1 + 0.5 * skewed / skewed.std())
        predictors = np.column_stack([centred(skewed), centred(rng.normal(size=36))])
        return simulate_small.wild_cluster_p(predictors, centred(said), prompt)

    assert np.mean([p(0) <= 0.05 for _ in range(40)]) <= 0.1 and np.median([p(2) for _ in range(5)]) < 0.05


# the committed simulations --------------------------------------------------------------------------------------------


def committed(name):
    return pd.read_csv(DATA / "validation" / f"{name}.csv")


def test_blind_evaluators_are_found_out_in_at_most_six_of_a_hundred_small_tables():
    table = committed("small")
    blind = table[(table["statistic"] != "auc_within_prompt") | (table["truth"] == 0.5)]
    assert (table["tables"] == 4000).all() and len(blind) == 810
    assert blind["rejected"].max() <= 0.06 and blind["coverage"].min() >= 0.93
    twelve = table.query("statistic == 'auc_within_prompt' and truth == 0.92 and prompts == 12")
    assert twelve["rejected"].min() >= 0.85, "power"
    assert committed("family")["family_wise"].max() <= 0.06


def test_four_of_five_runs_find_what_is_printed_as_detectable():
    table = committed("power").dropna(subset="power")
    peers_claim_nothing = (table["authors"] == 3) & (table["habit"] == 0.05)
    power = table.loc[~peers_claim_nothing, "power"]
    assert power.between(0.7, 0.95).all() and power.between(0.75, 0.9).mean() > 0.9
    assert table["mc_error"].max() < 0.025 and table["detectable"].max() <= 1 and len(power) > 250


def test_the_simulation_finds_what_the_committed_one_did():
    plan = simulate_small.Plan("recognition", 4, 3, 20, 0.2, "alone")
    [kept] = (
        committed("power")
        .query("authors == 4 and evaluators == 3 and prompts == 20 and habit == 0.2")
        .to_dict("records")[:1]
    )
    found = plan.first(kept["detectable"], 60, np.random.default_rng(1))
    assert found["detectable"].median() == pytest.approx(kept["detectable_found"], abs=0.02)
    assert (found["conclusion"] == "recognises").mean() == pytest.approx(kept["power"], abs=0.15)


def test_silence_about_others_texts_is_hardly_ever_called_recognition():
    table = committed("unanswered")
    assert table["recognises"].max() <= 0.06
    uneven = table.query("prompts == 100 and unanswered_others == 0.3")
    assert uneven["noted"].min() > 0.9


def test_the_simulation_measures_what_the_committed_one_did():
    table = committed("small").query("authors == 2 and rows == 1 and prompts == 12 and together == 'by text'")
    rng = np.random.default_rng([5])
    claims = simulate_small.draws((12, 2000, 2, 1), *simulate_small.TOGETHER["by text"], rng) < 0.3
    found = simulate_small.outcome(simulate_small.discrimination(claims), 0, 0)
    kept = table[(table["statistic"] == "discrimination") & (table["truth"] == 0.3)].iloc[0]
    assert found["mean_width"] == pytest.approx(kept["mean_width"], abs=0.02)
    assert found["rejected"] == pytest.approx(kept["rejected"], abs=0.02)


def test_the_words_of_the_simulation_are_those_of_the_table():
    for cell in (simulate_small.Cell("all", 0.5, "bold", 4, 40), simulate_small.Cell("none", 0.5, "equal", 4, 40)):
        words = cell.words(3, np.random.default_rng(5))
        rng = np.random.default_rng(5)
        drawn = [cell.claims(rng) for _ in range(3)]
        assert [
            simulate_small.said_of(simulate_small.records_of(claims, "", rng)) for claims in drawn
        ] == words.tolist()
