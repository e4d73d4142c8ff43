"""What a reader is told: tables and sentences made from records and result tables, and the p of an area in them."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps

import selfeval as se
from selfeval import stats
from selfeval.figures import tables
from selfeval.identity import report as identity
from selfeval.roleplay import report
from selfeval.stats.jury import baseline_auc


def records(answers, task="exact_model", condition="answer=free"):
    """Make prediction records: answers is {(evaluator, author): [answer, or (answer, score), of prompt 0, 1, ...]}."""
    rows = []
    for (evaluator, author), given in answers.items():
        for prompt, each in enumerate(given):
            answer, score = each if isinstance(each, tuple) else (each, None)
            own = answer if task == "binary_self" or answer is None else answer == evaluator
            rows.append(
                {"text_id": f"{author}-{prompt}", "true_model": author, "evaluator_model": evaluator, "score": score,
                 "task_type": task, "predicted_model": answer if task == "exact_model" else None, "predicted_self": own,
                 "prompt_id": prompt, "condition": condition, "candidates": ["a", "b"], "status": "ok"}
            )  # fmt: skip
    return pd.DataFrame(rows).astype({"predicted_self": object, "predicted_model": object})


def result(answers, task="exact_model"):
    return stats.recognition_table(records(answers, task), n_resamples=1)


def said(answers, task="exact_model"):
    """Return the sentence about evaluator a."""
    return tables.conclusions(result(answers, task))[0]


def default(table, statistic):
    return table[table["statistic"] == statistic].iloc[0]


NOTHING = ("no evidence", "not shown", "is open")  # how sentences say that an interval includes the value
HABIT = {("a", "a"): ["a"] * 50, ("a", "b"): ["a"] * 50, ("b", "a"): ["a"] * 45 + ["b"] * 5, ("b", "b"): ["b"] * 50}


def ranked(apart, says=lambda score: score > 0.9):
    """An evaluator that says yes above .9 alone, and whose scores of own texts are `apart` higher on average."""
    rng = np.random.default_rng(4)
    own, others = (np.clip(0.5 + shift + 0.15 * rng.normal(size=40), 0, 0.89) for shift in (apart, 0.0))
    return {("a", who): [(says(s), s) for s in scores] for who, scores in (("a", own), ("b", others))}


# tables ---------------------------------------------------------------------------------------------------------------


def test_the_summary_shows_estimates_with_intervals_and_p():
    shown = tables.summary(result(HABIT), ["advantage", "discrimination"], {"a": "Always", "b": "Reader"})
    assert list(shown.columns) == ["task", "evaluator", "advantage", "discrimination", "p"]
    always, reader = shown.iloc[0], shown.iloc[1]
    assert always["advantage"].startswith("1.00 [") and always["discrimination"].startswith("0.00 [-")
    assert reader["discrimination"].startswith("0.90 [0.7") and reader["p"] == "< 0.001"


def test_no_answer_is_counted_per_design_and_evaluator():
    answers = HABIT | {("a", "b"): [None] * 20 + ["a"] * 30}
    both = pd.concat([records(answers), records(HABIT, condition="answer=constrained;told=true")], ignore_index=True)
    seen = tables.overview(both).set_index(["condition", "evaluator"])
    assert seen.loc[("answer=free", "a")].tolist()[-3:] == [50, 100, 0.2]
    assert seen.loc[("answer=constrained;told=true", "a"), "no answer"] == 0


def test_claims_set_names_beside_texts_and_positions_the_place_chosen():
    claimed = tables.claims(stats.confusion(records(HABIT))).set_index("name")
    assert claimed.loc["a"].to_list()[-2:] == [0.725, 0.5]
    place = tables.positions(records(HABIT)).set_index("evaluator")
    assert place.loc["a", ["1"]].to_list() == [1.0] and place.loc["b", "2"] == 0.55
    assert tables.positions(records(HABIT).drop(columns="candidates")).empty


def test_claims_by_developer_are_shares_of_questions_and_texts_and_people_are_their_own():
    gpt, mini, claude = "openai/gpt-4.1", "openai:gpt-4.1-mini", "anthropic/claude-sonnet-4"
    says = {gpt: [mini, gpt], mini: [gpt, None], claude: [gpt, claude], "human": [claude, mini]}
    counts = stats.confusion(records({(gpt, author): given for author, given in says.items()}))
    shown = tables.claims_by_developer(counts).set_index("developer")
    assert shown.loc["OpenAI", ["named", "wrote"]].tolist() == [0.625, 0.5]
    assert shown.loc["Anthropic", ["named", "wrote"]].tolist() == [0.25, 0.25]
    assert shown.loc["human", ["named", "wrote"]].tolist() == [0, 0.25] and shown.loc["none", "named"] == 0.125
    assert tables.claims_by_developer(counts[counts["author"] != claude]).empty  # one developer, and people
    assert tables.claims_by_developer(stats.confusion(records(HABIT))).empty


def test_leaks_are_left_out_beside_all_texts():
    frame = records(HABIT).assign(leak=False)
    assert tables.leaking(frame).empty
    frame.loc[(frame["prompt_id"] >= 45) & (frame["true_model"] == "a"), "leak"] = True  # which b took for its own
    shown = tables.leaking(frame).set_index("evaluator").loc["b"]
    assert shown["all texts"].startswith("0.90 [") and shown["without leaks"].startswith("1.00 [")


def test_changes_and_models_in_general_are_readable_or_empty():
    frame = records(HABIT)
    both = pd.concat([frame.assign(condition="hints=false"), frame.assign(condition="hints=true")])
    shown = tables.summary(stats.condition_contrasts(both), ["discrimination"])
    assert set(shown["change"]) == {"hints: false → true"} and shown["discrimination"].str.startswith("0.00 [").all()
    assert tables.summary(stats.condition_contrasts(frame), ["discrimination"]).empty
    general = tables.in_general(stats.models_in_general(frame))
    assert {"these models", "models like these"} == set(general["about"])


def test_with_two_authors_the_corrected_advantage_is_said_to_be_0_by_construction():
    two = records(HABIT)
    assert default(result(HABIT), "corrected_advantage")["estimate"] == 0 and len(tables.two_authors(two)) == 1
    assert not tables.two_authors(two.assign(candidates=[["a", "b", "c"]] * len(two)))


def test_planning_says_what_a_null_could_hide():
    [sentence] = tables.planning(result(HABIT))
    assert sentence.startswith("exact_model: with 50 prompts and a standard deviation of 0.")
    assert "(the largest of these evaluators)" in sentence
    for prompts, validated in ((20, True), (10, False)):
        fewer = records({k: v[:prompts] for k, v in HABIT.items()})
        both = pd.concat([fewer.assign(condition=f"hints={hints}") for hints in ("false", "true")])
        [few] = tables.planning(stats.recognition_table(both, n_resamples=1))  # one sentence: the prompts decide
        assert "(hints=false), exact_model (hints=true)" in few and f"only {prompts} prompts: a wide interval" in few
        assert "standard deviation of 0.55 per prompt (assumed" in few
        assert ("coverage was tested from 20 prompts up" not in few) == validated


# sentences ------------------------------------------------------------------------------------------------------------


def test_the_sentences_tell_habit_from_recognition():
    always, reader = tables.conclusions(result(HABIT), {"a": "Always"})
    assert "Always: claims 100% of its own and 100% of others' texts: a constant answer" in always
    assert "A = +1.00: an A of this size can arise from naming habits alone" in always
    assert "b: claims 100% of its own and 10% of others' texts, so it tells them apart: J = 0.90" in reader


def test_no_answer_is_no_habit():
    """All answers null was called a constant answer."""
    assert "it answered nothing" in said({("a", "a"): [None] * 50, ("a", "b"): [None] * 50})
    assert "nothing can be said" in said({("c", "a"): ["a"] * 3, ("c", "b"): ["a"] * 3})  # no text of its own


def lines(draw, *about):
    """Return rows of a result table, one for each (statistic, evaluator): estimates, intervals and p unrelated."""
    ends = np.sort(draw.uniform(-1, 1, (len(about), 3)), axis=1).T
    ends = (ends + 1) / 2 if about[0][0] in ("auc", "auc_within_prompt") else ends
    low, estimate, high = ends
    names = pd.DataFrame([*about], columns=["statistic", "evaluator"])
    blank = dict.fromkeys(["author", "task", "condition", "policy", "note"], "") | {"level": 0.95, "clusters": 30}
    tested = {"p": draw.uniform(size=len(about)) ** 4, "p_holm": 1.0, "cluster_unit": "prompt", "method": "mover"}
    return names.assign(estimate=estimate, low=low, high=high, n=60, **blank, **tested)


def sentences_of(draw, kind):
    """Return (a row whose interval decides, the value without an effect, the sentence about it), drawn at random."""
    if kind == "recognition":
        rates = lines(draw, *((name, "a") for name in ("self_accuracy", "false_claim_rate", "advantage")))
        row = lines(draw, ("discrimination", "a")).assign(note=draw.choice(["", "few_prompts"]))
        return row, 0, tables.conclusions(pd.concat([rates.assign(estimate=0.5), row]).assign(task="exact_model"))
    if kind == "pairs":
        row = lines(draw, ("self_accuracy", "a")).assign(task="pairwise_self")
        return row, 0.5, tables.conclusions(row)
    if kind == "identity":
        rates = lines(draw, *((name, "a") for name in ("accept_true", "accept_false", "neutral_right")))
        row = lines(draw, ("claim_discrimination", "a"))
        return row, 0, identity.conclusions(pd.concat([rates, row]))
    if kind == "existence":
        row = lines(draw, ("discrimination", "a")).assign(condition="answer=yes_no;reasoning=false")
        answered = lines(draw, ("no_answer_rate", "a")).assign(estimate=0.1, condition=row["condition"])
        return row, 0, tables.about_names(pd.concat([row, answered]))
    if kind == "readings":
        rows = lines(draw, *[("auc_within_prompt", "a")] * 2)
        rows["condition"] = ["reading=own likelihood", "reading=style"]
        rows.loc[0, ["low", "estimate", "high"]] = [0.8, 0.9, 1.0]
        row = lines(draw, ("gap", "a")).assign(statistic="auc_within_prompt", first="style")
        return row, 0, [tables.about_readings(rows, row)[0].split(": ")[-1]]
    row = lines(draw, ("auc", "")).assign(task="debate") if kind == "jury" else lines(draw, ("difference", ""))
    row = row if kind == "jury" else row.assign(task="debate - reask")
    return (
        row,
        0.5 * (kind == "jury"),
        report.conclusions(pd.concat([row, lines(draw, ("auc", "")).assign(task="sham")])),
    )


@pytest.mark.parametrize("kind", "recognition pairs identity existence readings jury debate".split())
def test_a_sentence_never_contradicts_the_interval_that_it_prints(kind):
    """At H .25 and F .05 a third of the tables gave "no evidence of recognition: J = 0.28 [-0.08, 0.52], p = 0.007"."""
    draw, seen = np.random.default_rng(5), set()
    for _ in range(100):
        row, value, said = sentences_of(draw, kind)
        [row] = row.itertuples()
        found = stats.conclusion(row, value)
        nothing = any(words in said[-1] if kind == "debate" else words in said[0] for words in NOTHING)
        assert (found == "no evidence") == nothing == (row.low <= value <= row.high), (row, said)
        seen.add(found)
    assert seen == {"recognises", "avoids", "no evidence"}


def test_the_interval_decides_what_is_concluded():
    row = lines(np.random.default_rng(0), ("discrimination", "a")).assign(low=0.1, high=0.5, estimate=0.3)
    row, constant = row.iloc[0], row.assign(low=-0.1, note="few_prompts; constant_answer").iloc[0]
    assert stats.conclusion(row) == "recognises" and stats.conclusion(row, 0.2) == "no evidence"
    assert stats.conclusion(constant) == "constant answer" and stats.conclusion(constant, 0.7) == "avoids"
    assert stats.conclusion(pd.Series({**row, "low": np.nan, "high": np.nan})) == "too few answers"


@pytest.mark.parametrize("task", ["exact_model", "binary_self"])
def test_one_prompt_allows_no_conclusion(task):
    """It said "no evidence of recognition: J = 1.00; only 1 prompts: a wide interval" of the prompt that it knew."""
    own, other = ("a", "b") if task == "exact_model" else ((True, 0.9), (False, 0.1))
    sentence = said({("a", "a"): [own], ("a", "b"): [other]}, task)
    assert "; one prompt allows no interval, so nothing can be concluded: J = 1.00." in sentence
    assert not any(words in sentence for words in ("no evidence", "1 prompts", "a wide interval", "do not show"))
    assert ("Of its probabilities, AUC = 1.00: one prompt" in sentence) == (task == "binary_self")


def test_one_pair_of_conversations_allows_no_conclusion():
    table = baseline_auc([9, 1], [1, 0], ["a", "a"], name="style").assign(task="debate")
    [told] = report.conclusions(table)
    assert told == (
        "debate: one conversation allows no interval, so nothing can be concluded (AUC 1.00, 1 conversation or pair)."
    )


def test_sentences_say_where_a_few_prompts_hold_most_of_the_answers():
    even = records(HABIT)
    uneven = pd.concat([even, *(even[even["prompt_id"] < 2].assign(repeat=k) for k in range(1, 30))])
    sentences = {}
    for name, frame in (("even", even.assign(repeat=0)), ("uneven", uneven.fillna({"repeat": 0}))):
        found = se.measure_recognition(frame.astype({"repeat": int}), n_resamples=1, reread="no")
        sentences[name] = [*se.conclude(found), *se.notes(found)]
    assert not any("hold most" in sentence for sentence in sentences["even"])
    *told, _, note = sentences["uneven"]
    assert len(told) == 2 and all("; a few prompts hold most of the answers" in sentence for sentence in told)
    assert note == "a, b: a few prompts hold most of the answers."


def test_an_advantage_whose_interval_includes_0_is_not_called_a_habit():
    """A = +.25 [-.21, .62] on six prompts was called a habit of naming."""
    answers = {("a", "a"): ["a"] * 5 + ["b"], ("a", "b"): ["b", "b", "a", "b", "a", "a"]}
    a = default(result(answers), "advantage")
    assert a["estimate"] > 0.2 and a["low"] < 0 and "habit" not in said(answers)


def test_an_evaluator_whose_every_call_failed_has_no_numbers():
    frame = records(HABIT | {("c", author): [None] * 50 for author in "abc"})
    frame.loc[frame["evaluator_model"] == "c", "status"] = "error"
    table = stats.recognition_table(frame, n_resamples=100)
    failed = table[table["evaluator"] == "c"]
    numbers = failed[failed["statistic"] != "no_answer_rate"]
    assert numbers[["estimate", "low", "high", "p", "p_holm", "p_permutation"]].isna().all(axis=None)
    assert numbers["note"].str.contains("no_answer").all() and not numbers.duplicated(["statistic", "author"]).any()
    assert (failed.loc[failed["statistic"] == "no_answer_rate", "estimate"] == 1).all()
    assert "it answered nothing" in tables.conclusions(table)[-1]
    frame.loc[frame["evaluator_model"] == "c", "status"] = "refusal"
    pd.testing.assert_frame_equal(stats.recognition_table(frame, n_resamples=100), table)  # nor are refusals answers


def test_pairs_have_a_sentence_of_their_own(capsys):
    rows = [
        {"text_id": p, "true_model": "a", "evaluator_model": "a", "task_type": "pairwise_self", "other_model": "b",
         "other_text_id": 100 + p, "position": place, "predicted_self": True, "prompt_id": p}
        for p in range(20) for place in (1, 2)
    ]  # fmt: skip
    [sentence] = tables.conclusions(stats.recognition_table(pd.DataFrame(rows), n_resamples=10))
    assert "chooses its own text in 1.00" in sentence and "it knows its own" in sentence
    first = [row | {"predicted_self": row["position"] == 1} for row in rows]
    [sentence] = tables.conclusions(stats.recognition_table(pd.DataFrame(first), n_resamples=10))
    assert "no evidence that it tells them apart" in sentence
    tables.show_table(pd.DataFrame(), "No pairs were asked.")
    assert capsys.readouterr().out == "No pairs were asked.\n"


@pytest.mark.parametrize(("says", "claims"), [(lambda s: s > 0.9, "constant"), (lambda s: s > 0.88, "words show no"),
                                              (lambda s: None, "has probabilities and no answers")])  # fmt: skip
def test_probabilities_are_heard_beside_words(says, claims):
    """AUC .9, J = 0: "no evidence of recognition" was all that was said, or "it answered nothing"."""
    sentence = said(ranked(0.2, says), "binary_self")
    assert claims in sentence and "p < 0.001" in sentence
    assert "Its probabilities order its own texts above others': AUC = 0." in sentence
    below = {key: [(yes, 1 - s) for yes, s in given] for key, given in ranked(0.2, says).items()}
    assert "order its own texts below others'" in said(below, "binary_self")
    nothing = said(ranked(0.0, says), "binary_self")
    assert "Its probabilities do not show that it tells them apart: AUC = 0." in nothing and "above" not in nothing


# p of areas -----------------------------------------------------------------------------------------------------------


def by_hand(frame):
    """Return p of AUC over every choice of who is "own" on each prompt."""
    rank = sps.rankdata(frame["score"]) - (len(frame) + 1) / 2
    sums = frame.assign(rank=rank).groupby(["prompt_id", "true_model"])["rank"].sum().unstack()
    totals = np.array([sum(one) for one in itertools.product(*sums.to_numpy())])
    distance = np.abs(totals - sums.mean(axis=1).sum())
    return (distance >= abs(sums["a"].sum() - sums.mean(axis=1).sum()) - 1e-9).mean()


def test_p_permutation_of_auc_exchanges_the_authors_of_a_prompt_and_is_empty_with_several_rows_of_one():
    rng = np.random.default_rng(3)
    frame = records({("a", t): [(None, s) for s in rng.random(6)] for t in "abc"}, "binary_self")
    samples = [frame.assign(text_id=frame["text_id"] + str(k), score=(frame["score"] + 0.01 * k).clip(0, 1))
               for k in range(3)]  # fmt: skip
    repeats = [frame.assign(repeat=k) for k in range(5)]
    area = default(stats.recognition_table(frame, n_resamples=1), "auc")
    assert area["p_permutation"] == pytest.approx(by_hand(frame)) and area["p_holm"] == area["p"]
    for each in (pd.concat(samples), pd.concat(repeats)):
        table = stats.recognition_table(each, n_resamples=1)
        assert table["p_permutation"].isna().all() and default(table, "auc")["p"] > 0.05


def test_the_draws_of_p_follow_the_seed_of_the_table():
    frame = records(ranked(0.03), "binary_self")
    first, again, other = (
        default(stats.recognition_table(frame, seed=s, n_resamples=1), "auc")["p_permutation"] for s in (1, 1, 2)
    )
    assert first == again != other and abs(first - other) < 0.05
    assert (first * 10_000) % 1 == pytest.approx(0, abs=1e-6)  # (1 + count) / (1 + 9,999)


def test_the_jurys_auc_is_tested_by_its_interval():
    """Three pairs and two further models: the pairs bound what can be said, though every comparison is won."""
    human, cluster = [1, 1, 1, 0, 0, 0, 0, 0], list("abcabcde")
    table = baseline_auc([9, 8, 7, 1, 2, 3, 4, 5], human, cluster, name="style")
    area, paired = (default(table, name) for name in ("auc", "paired_accuracy"))
    assert area["estimate"] == 1 and area["low"] == pytest.approx(3 / (3 + 1.96**2), abs=1e-3)
    assert area["p"] == paired["p"] == pytest.approx(2 * sps.norm.sf(np.sqrt(3)))  # where 3 / (3 + z^2) is one half
    told = report.conclusions(pd.concat([table.assign(task="debate"), table]))
    assert told[0].startswith("debate: is not shown to tell people from models (AUC 1.00 [")
    table = baseline_auc([*range(10, 20), *range(10)], [1] * 10 + [0] * 10, [*range(10), *range(10)])
    assert default(table, "auc")["p"] < 0.05
    assert "tells people from models (AUC 1.00" in report.conclusions(table.assign(task="debate"))[0]
