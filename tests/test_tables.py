"""What a reader sees: tables and sentences made from the result table."""

import pandas as pd

from selfeval import stats
from selfeval.figures import tables


def records(answers, condition="answer=free"):
    """Make prediction records: answers is {(evaluator, author): [predicted id or None per prompt]}."""
    rows = []
    for (evaluator, author), given in answers.items():
        for prompt, predicted in enumerate(given):
            own = None if predicted is None else predicted == evaluator
            correct = None if predicted is None else predicted == author
            rows.append(
                {"text_id": hash((author, prompt)), "true_model": author, "evaluator_model": evaluator,
                 "task_type": "exact_model", "predicted_model": predicted, "predicted_self": own, "is_correct": correct,
                 "prompt_id": str(prompt), "condition": condition, "candidates": ["a", "b"], "status": "ok"}
            )  # fmt: skip
    return pd.DataFrame(rows)


HABIT = {("a", "a"): ["a"] * 50, ("a", "b"): ["a"] * 50, ("b", "a"): ["a"] * 45 + ["b"] * 5, ("b", "b"): ["b"] * 50}


def test_the_summary_shows_estimates_with_intervals_and_p():
    table = stats.recognition_table(records(HABIT), n_resamples=100)
    shown = tables.summary(table, ["advantage", "discrimination"], {"a": "Always", "b": "Reader"})
    assert list(shown.columns) == ["task", "evaluator", "advantage", "discrimination", "p"]
    always, reader = shown.iloc[0], shown.iloc[1]
    assert always["advantage"].startswith("1.00 [") and always["discrimination"].startswith("0.00 [-")
    assert reader["discrimination"].startswith("0.90 [0.7") and reader["p"] == "< 0.001"


def test_the_sentences_tell_habit_from_recognition():
    always, reader = tables.conclusions(stats.recognition_table(records(HABIT), n_resamples=100), {"a": "Always"})
    assert "Always: claims 100% of its own and 100% of others' texts: a constant answer" in always
    assert "A = +1.00: an A of this size can arise from naming habits alone" in always
    assert "b: claims 100% of its own and 10% of others' texts, so it tells them apart: J = 0.90" in reader


def test_no_answer_is_counted_per_design_and_evaluator():
    answers = HABIT | {("a", "b"): [None] * 20 + ["a"] * 30}
    both = pd.concat([records(answers), records(HABIT, "answer=constrained;told=true")], ignore_index=True)
    seen = tables.overview(both).set_index(["condition", "evaluator"])["no answer"]
    assert seen["answer=free", "a"] == 0.2 and seen["answer=constrained;told=true", "a"] == 0


def test_claims_set_names_beside_texts_and_positions_the_place_chosen():
    claimed = tables.claims(stats.confusion(records(HABIT))).set_index("name")
    assert claimed.loc["a"].to_list()[-2:] == [0.725, 0.5]
    place = tables.positions(records(HABIT)).set_index("evaluator")
    assert place.loc["a", ["1"]].to_list() == [1.0] and place.loc["b", "2"] == 0.55
    assert tables.positions(records(HABIT).drop(columns="candidates")).empty


def test_silence_is_no_habit_and_the_interval_needs_the_test():
    """All answers null was called a constant answer, and J = .62 [.12, .83] with p = .074 was called recognition."""
    silent = records({("a", "a"): [None] * 50, ("a", "b"): [None] * 50})
    assert "it answered nothing" in tables.conclusions(stats.recognition_table(silent, n_resamples=10))[0]
    few = {("a", "a"): ["a"] * 4, ("a", "b"): ["a", "b", "b", "b"]}
    table = stats.recognition_table(records(few), n_resamples=10)
    j = tables.default_rows(table).set_index("statistic").loc["discrimination"]
    assert j["low"] > 0 and j["p"] > 0.05
    assert "no evidence of recognition" in tables.conclusions(table)[0]


def test_an_evaluator_without_texts_of_its_own_has_nothing_to_say():
    [sentence] = tables.conclusions(stats.recognition_table(records({("c", "a"): ["a"] * 3, ("c", "b"): ["a"] * 3})))
    assert "nothing can be said" in sentence


def test_planning_says_what_a_null_could_hide():
    table = stats.recognition_table(records(HABIT), n_resamples=1)
    [sentence] = [s for s in tables.planning(table) if s.startswith("exact_model")]
    assert (
        "with 50 prompts and a standard deviation of 0." in sentence and "(the largest of these evaluators)" in sentence
    )
    for prompts, validated in ((20, True), (10, False)):
        fewer = records({k: v[:prompts] for k, v in HABIT.items()})
        both = pd.concat([fewer.assign(condition=f"hints={hints}") for hints in ("false", "true")])
        [few] = tables.planning(stats.recognition_table(both, n_resamples=1))  # one sentence: the prompts decide
        assert "(hints=false), exact_model (hints=true)" in few and f"only {prompts} prompts: a wide interval" in few
        assert "standard deviation of 0.55 per prompt (assumed" in few
        assert ("coverage was tested from 20 prompts up" not in few) == validated


def test_leaks_are_left_out_beside_all_texts():
    frame = records(HABIT).assign(leak=False)
    assert tables.leaking(frame).empty
    frame.loc[frame["text_id"] == frame["text_id"].iloc[0], "leak"] = True
    shown = tables.leaking(frame)
    assert {"all texts", "without leaks"} <= set(shown) and (shown["all texts"] != "").any()


def test_changes_and_models_in_general_are_readable_or_empty():
    frame = records(HABIT)
    both = pd.concat([frame.assign(condition="hints=false"), frame.assign(condition="hints=true")])
    shown = tables.summary(stats.condition_contrasts(both), ["discrimination"])
    assert set(shown["change"]) == {"hints: false → true"} and shown["discrimination"].str.startswith("0.00 [").all()
    assert tables.summary(stats.condition_contrasts(frame), ["discrimination"]).empty
    general = tables.in_general(stats.models_in_general(frame))
    assert {"these models", "models like these"} == set(general["about"])


def test_pairs_have_a_sentence_of_their_own(capsys):
    rows = [
        {"text_id": p, "true_model": "a", "evaluator_model": "a", "task_type": "pairwise_self", "other_model": "b",
         "other_text_id": 100 + p, "position": place, "predicted_self": True, "prompt_id": p}
        for p in range(20) for place in (1, 2)
    ]  # fmt: skip
    [sentence] = tables.conclusions(stats.recognition_table(pd.DataFrame(rows), n_resamples=10))
    assert "chooses its own text in 1.00" in sentence and "it favours its own" in sentence
    first = [row | {"predicted_self": row["position"] == 1} for row in rows]
    [sentence] = tables.conclusions(stats.recognition_table(pd.DataFrame(first), n_resamples=10))
    assert "no evidence that it tells them apart" in sentence and "favours the first text" in sentence
    tables.show(pd.DataFrame(), "No pairs were asked.")
    assert capsys.readouterr().out == "No pairs were asked.\n"


def test_an_evaluator_whose_every_call_failed_has_no_numbers():
    frame = records(HABIT | {("c", "a"): [None] * 50, ("c", "b"): [None] * 50, ("c", "c"): [None] * 50})
    frame.loc[frame["evaluator_model"] == "c", "status"] = "error"
    table = stats.recognition_table(frame, n_resamples=100)
    failed = table[table["evaluator"] == "c"]
    numbers = failed[failed["statistic"] != "no_answer_rate"]
    assert numbers[["estimate", "low", "high", "p", "p_holm"]].isna().all(axis=None) and set(numbers["note"]) == {
        "no_reply"
    }
    assert not numbers.duplicated(["statistic", "author"]).any()
    assert (failed.loc[failed["statistic"] == "no_answer_rate", "estimate"] == 1).all()
    assert "every call to it failed; collect its predictions again" in tables.conclusions(table)[-1]
    frame.loc[frame["evaluator_model"] == "c", "status"] = "refusal"
    table = stats.recognition_table(frame, n_resamples=100)
    rates = table[(table["evaluator"] == "c") & (table["statistic"] == "false_claim_rate")]
    assert rates["estimate"].tolist()[0] == 0, "a refusal is an answer that claims nothing"
