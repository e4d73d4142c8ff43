"""Records made elsewhere, as people have them: a file or a frame goes in, a table or one sentence comes out."""

import itertools
import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import selfeval as se
from selfeval.errors import InputError
from selfeval.stats import default_rows

AUTHORS = ("GPT", "Claude", "Llama")
HIT, FALSE = 0.8, 0.15  # J = .65
FEW = {"n_resamples": 10}


def asked(task, prompt, author, evaluator):
    text = {"text_id": f"{author}{prompt}", "true_model": author, "prompt_id": prompt}
    return text | {"evaluator_model": evaluator, "task_type": task}


def named(words=None, field="predicted_model", **more):
    """Make answers to "who wrote it?" in the words of a file: {author: what answers call it}."""
    draw, words, rows = random.Random(1), words or {}, []
    for who in itertools.product(range(60), AUTHORS, AUTHORS):
        claims = draw.random() < (HIT if who[1] == who[2] else FALSE)
        said = who[2] if claims else draw.choice([other for other in AUTHORS if other != who[2]])
        rows.append(asked("exact_model", *who) | {field: words.get(said, said)})
    return pd.DataFrame(rows).assign(**{name: [value] * len(rows) for name, value in more.items()})


def claimed(yes, no, field="reply", n=60):
    """Make answers to "did you write it?" in the form of a file."""
    draw = random.Random(1)
    rows = [asked("binary_self", *who) for who in itertools.product(range(n), AUTHORS, AUTHORS)]
    own = (row["true_model"] == row["evaluator_model"] for row in rows)
    said = [yes if draw.random() < (HIT if mine else FALSE) else no for mine in own]
    return pd.DataFrame([row | {field: answer} for row, answer in zip(rows, said, strict=True)])


def chosen(words, n=40, field="predicted_model", **more):
    """Make answers to "which of the two is yours?", .75 of them right; words: what they say of own and other."""
    draw, rows = random.Random(2), []
    for prompt, (own, other), place in itertools.product(range(n), itertools.permutations(AUTHORS, 2), (1, 2)):
        said = words(own, other, place, draw.random() < 0.75)
        pair = {"other_text_id": f"{other}{prompt}", "other_model": other, "position": place, field: said}
        rows.append(asked("pairwise_self", prompt, own, own) | pair)
    return pd.DataFrame(rows).assign(**more)


def forms(frame, folder):
    """Return a frame and the files that it becomes."""
    frame.to_json(folder / "theirs.jsonl", orient="records", lines=True)
    frame.to_csv(folder / "theirs.csv", index=False)
    return frame, folder / "theirs.jsonl", folder / "theirs.csv"


def estimates(source, statistic="discrimination", **how):
    result = se.measure_recognition(source, **FEW, **how)
    return result[result["statistic"] == statistic].set_index("evaluator")["estimate"]


def refused(source, **how):
    with pytest.raises(InputError) as caught:
        se.measure_recognition(source, **FEW, **how)
    return str(caught.value)


# scores and conditions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("score", "is_share"), [(0, True), (1, True), (0.5, True), (-0.01, False), (1.01, False)])
def test_a_score_is_a_share_and_its_ends_are_shares_too(score, is_share):
    frame = claimed(True, False, "predicted_self", n=4)
    frame["score"] = frame["predicted_self"].astype(float)
    frame.loc[5, "score"] = score
    if is_share:
        assert se.measure_recognition(frame, **FEW).records["score"][5] == score
    else:
        assert "record 6: `score`" in refused(frame)


@pytest.mark.parametrize("forms", [
    ("b=2;a=1", "a=1;b=2"), ({"b": 2, "a": 1}, {"a": 1, "b": 2}), ("b=2; a=True", {"a": True, "b": 2}),
])  # fmt: skip
def test_the_order_of_a_conditions_parts_makes_no_second_condition(forms):
    frame = claimed("YES", "NO", n=4)
    frame["condition"] = [forms[n % 2] for n in range(len(frame))]
    assert se.measure_recognition(frame, **FEW)["condition"].nunique() == 1


@pytest.mark.parametrize("said", ["true", "True", "TRUE"])
def test_what_a_file_says_of_its_condition_may_be_said_again_and_not_otherwise(said, tmp_path):
    path = str(tmp_path / "a.csv")
    claimed("YES", "NO", n=4).assign(condition=f"hints={said}").to_csv(path, index=False)
    assert {*se.measure_recognition({path: {"hints": True}}, **FEW)["condition"]} == {"hints=true"}
    assert "and `predictions` says False" in refused({path: {"hints": False}})


# names ----------------------------------------------------------------------------------------------------------------


def test_a_name_that_nobody_bears_is_refused_until_it_is_said_who_that_is(tmp_path):
    truth = estimates(named())
    assert truth["GPT"] == pytest.approx(HIT - FALSE, abs=0.12)
    frame, lines, csv = forms(named({"GPT": "ChatGPT"}), tmp_path)
    for source in (frame, lines, csv):
        said = refused(source)
        assert "Answers name 'ChatGPT' (180 times), and the authors are Claude, GPT, Llama" in said
        assert "authors={'ChatGPT': 'GPT'}" in said and "authors={'ChatGPT': None} for somebody else" in said
        assert "no author of the records" in refused(source, authors={"ChatGPT": "GTP"})
    assert estimates(csv, authors={"CHATGPT": "GPT"}).to_dict() == truth.to_dict()
    assert estimates(lines, authors={"ChatGPT": None})["GPT"] <= 0
    assert "must be of the form" in refused(named(), authors=["ChatGPT"])


def test_names_of_authors_are_known_by_case_and_by_the_registry_and_others_are_refused():
    truth = estimates(named())
    pd.testing.assert_series_equal(estimates(named({"GPT": "gpt", "Llama": "LLAMA"})), truth)
    ids = {"GPT": "openai/gpt-4.1"}
    frame = named({"GPT": "GPT 4.1"}).replace({"true_model": ids, "evaluator_model": ids})
    assert estimates(frame)["openai/gpt-4.1"] == truth["GPT"]
    assert "Answers name 'openai/gpt-4.1' (180 times)" in refused(named({"GPT": "openai/gpt-4.1"}))


def test_authors_maps_names_in_every_field():
    truth = estimates(named())
    frame = named({"GPT": "ChatGPT"}).replace({"evaluator_model": {"GPT": "gpt-x"}, "true_model": {"GPT": "the-gpt"}})
    said = {"gpt-x": "the-gpt", "ChatGPT": "the-gpt"}
    assert estimates(frame, authors=said).to_dict() == {**truth.drop("GPT").to_dict(), "the-gpt": truth["GPT"]}
    pairs = chosen(lambda own, other, place, right: own if right else other)
    odd = pairs.replace({"other_model": {"GPT": "ChatGPT"}})
    for statistic in ("self_accuracy", "no_answer_rate"):
        expected = estimates(pairs, statistic)
        pd.testing.assert_series_equal(estimates(odd, statistic, authors={"ChatGPT": "GPT"}), expected)


def test_letters_are_no_names_unless_authors_are_called_so():
    letters = dict(zip(AUTHORS, ("A", "(b)", "Option C"), strict=True))
    assert "'A' (180 times)" in refused(named(letters, candidates=[*AUTHORS]))
    own = {author: "ABC"[k] for k, author in enumerate(AUTHORS)}
    frame = named(own, candidates=["B", "C", "A"]).replace({"true_model": own, "evaluator_model": own})
    assert estimates(frame).tolist() == estimates(named()).loc[list(AUTHORS)].tolist()


def test_a_letter_that_is_a_candidates_name_is_that_name_and_no_place():
    frame = named(candidates=["B", *AUTHORS]).assign(predicted_model="B")
    assert {*se.measure_recognition(frame, **FEW).records["predicted_model"]} == {"B"}


def test_the_answer_to_a_pair_is_one_of_its_authors_and_a_third_name_is_refused():
    letters = chosen(lambda own, other, place, right: "AB"[(place == 2) == right])
    assert "Answers name 'A' (243 times), 'B' (237 times)" in refused(letters)
    third = chosen(lambda own, other, place, right: own if right else "ChatGPT")
    assert "'ChatGPT'" in refused(third)
    assert (estimates(third, "no_answer_rate", authors={"ChatGPT": None}) > 0).all()


def test_of_many_stray_names_the_nine_most_frequent_are_shown_and_the_others_counted():
    frame = named()
    names = [f"Bard{chr(97 + n)}" for n in range(12)]
    frame.loc[range(13), "predicted_model"] = [*names, names[-1]]
    [said] = re.findall(r"Answers name (.+?), and the authors", refused(frame))
    shown = ["'Bardl' (2 times)", *(f"{name!r} (1 time)" for name in names[:8])]
    assert said == f"{', '.join(shown)} and 3 more"


def test_a_name_of_no_author_in_replies_is_said_with_what_to_do(capsys):
    frame = named({"GPT": "ChatGPT"}, "reply", candidates=list(AUTHORS))
    assert estimates(frame)["GPT"] == 0
    sentence = "Replies without an answer: 'ChatGPT' (180 times)"
    assert f"{sentence}; if that is a name, say whose: authors={{'ChatGPT': 'GPT'}}" in capsys.readouterr().out
    truth = estimates(named(field="reply", candidates=list(AUTHORS)))
    assert estimates(frame, authors={"ChatGPT": "GPT"}).to_dict() == truth.to_dict()
    estimates(frame, authors={"ChatGPT": None})
    estimates(frame, authors={"ChatGPT": "no answer"})
    assert "Replies without an answer" not in capsys.readouterr().out


# forms of replies -----------------------------------------------------------------------------------------------------

FORMS = [(True, False), (1, 0), ("1", "0"), ("Y", "N"), ("self", "other"), ("T", "F"), ("mine", "not mine")]
OBJECTS = [
    ({"answer": 1}, {"answer": 0}), ('{"answer": 1}', '{"answer": 0}'), ({"answer": True}, {"answer": False}),
    ({"answer": "YES"}, {"answer": "NO"}), ('{"answer": "YES"}', '{"answer": "NO"}'),
]  # fmt: skip


@pytest.fixture(scope="module")
def truth():
    found = estimates(claimed("YES", "NO"))
    assert found.min() > 0.5
    return found


@pytest.mark.parametrize("field", ["reply", "predicted_self"])
@pytest.mark.parametrize(("yes", "no"), [*FORMS, *OBJECTS], ids=str)
def test_yes_and_no_are_read_in_the_forms_that_files_have(yes, no, field, truth, tmp_path):
    kind = [*FORMS, *OBJECTS].index((yes, no)) % 2  # all kinds of all forms take a minute
    source = forms(claimed(yes, no, field), tmp_path)[kind]
    if (field == "predicted_self" and (yes, no) in OBJECTS) or (field == "reply" and not isinstance(yes, str)):
        assert f"`{field}`" in refused(source)
    else:
        pd.testing.assert_series_equal(estimates(source), truth)


@pytest.mark.parametrize("value", [3.7, [1, 2], {"answer": True}, True])
def test_a_reply_that_is_no_text_is_refused_with_row_column_value_and_remedy(value, tmp_path):
    for frame in (claimed("YES", "NO"), named(field="reply")):
        frame["reply"] = frame["reply"].astype(object)
        frame.at[6, "reply"] = value
        frame.to_json(tmp_path / "theirs.jsonl", orient="records", lines=True)
        for source in (frame, tmp_path / "theirs.jsonl"):
            said = refused(source)
            assert f" 7: `reply` is {value!r}, and must be the words of a reply" in said
            assert "`predicted_self` takes true, `predicted_model` a name" in said


@pytest.mark.parametrize("form", [str, '{{"answer": {}}}'.format])
def test_places_of_a_pair_may_be_numbers(form, tmp_path):
    own = chosen(lambda own, other, place, right: form(place if right else 3 - place), field="reply")
    truth = estimates(chosen(lambda own, other, place, right: own if right else other), "self_accuracy")
    pd.testing.assert_series_equal(estimates(forms(own, tmp_path)[1], "self_accuracy"), truth)


def test_a_frame_may_hold_the_texts_of_numpy(truth):
    frame = claimed("YES", "NO")
    for name in ("reply", "true_model", "evaluator_model", "task_type"):
        frame[name] = pd.Series([*frame[name].to_numpy(str)], dtype=object)
    assert isinstance(frame["reply"][0], np.str_)
    pd.testing.assert_series_equal(estimates(frame.rename(columns=np.str_)), truth)


def test_probabilities_alone_pass_without_a_column_of_answers(tmp_path):
    draw, frame = random.Random(3), claimed(None, None).drop(columns="reply")
    own = frame["true_model"] == frame["evaluator_model"]
    frame["score"] = [min(max(draw.gauss(0.6 if mine else 0.4, 0.15), 0), 1) for mine in own]
    for source in forms(frame, tmp_path):
        assert (estimates(source, "auc") > 0.7).all() and estimates(source, "no_answer_rate").empty


# no answer ------------------------------------------------------------------------------------------------------------


def test_an_answer_beside_a_score_and_a_text_is_read_and_no_column_counts_twice():
    frame = claimed("Yes.", "no", "answer").assign(score=0.5, text="It rained.")
    pd.testing.assert_series_equal(estimates(frame), estimates(claimed("YES", "NO")))
    for wrong in (frame.head(0), pd.concat([frame, frame["answer"]], axis=1)):
        assert "must have records, and each column once" in refused(wrong)


def test_few_answers_are_a_note_and_a_conclusion():
    frame = claimed("YES", "NO")
    quiet = (frame["evaluator_model"] == "GPT") & (frame["prompt_id"] % 3 == 0)
    frame.loc[quiet, "reply"] = "The text is more concise, uses"

    def shown():
        return se.measure_recognition(frame, statistics="discrimination", **FEW).set_index("evaluator")

    assert "few_answers" in shown()["note"]["GPT"] and not shown()["note"].drop("GPT").str.contains("few_answers").any()
    frame.loc[frame["evaluator_model"] == "GPT", "reply"] = "Thank you."
    assert shown()["conclusion"]["GPT"] == "answers nothing" != shown()["conclusion"]["Claude"]


# pairs whose neutral judges were asked for an author by name; other forms ---------------------------------------------

TIERS = Path(__file__).parent / "data" / "tiers_pairs.csv"
COLUMNS = {
    "prompt": "prompt_id", "judge": "evaluator_model", "asked_about": "true_model", "other": "other_model",
    "position_of_asked": "position", "chosen_position": "reply",
}  # fmt: skip
COLUMN, FAST = "chosen_position", {"n_resamples": 50}
ANIMALS = ("ant", "bee", "cat")


def measured(source, columns=COLUMNS, **how):
    """Return {(evaluator, statistic): default row} and all that was measured."""
    result = se.measure_recognition(source, columns=columns, **(FAST | how))
    return {(row.evaluator, row.statistic): row for row in result.itertuples()}, result


def pairs_of(judges=ANIMALS, prompts=24, right=lambda judge, target, prompt, place: True):
    """Return rows as a CSV has them: every judge about every pair, asked for its own text or in turn for either."""
    rows = []
    for prompt, judge, pair, place in itertools.product(
        range(prompts), judges, itertools.combinations(ANIMALS, 2), "AB"
    ):
        target = judge if judge in pair else pair[prompt % 2]
        [other] = {*pair} - {target}
        chosen = place if right(judge, target, prompt, place) else "AB".replace(place, "")
        rows.append([f"p{prompt}", judge, target, other, place, chosen])
    return pd.DataFrame(rows, columns=list(COLUMNS))


# questions for a named author -----------------------------------------------------------------------------------------


def test_the_published_differences_come_out_of_the_published_choices_with_columns_alone(capsys):
    """It said "own minus neutral is 0.56, it prefers its own more" of Haiku, where -.035 is published."""
    found, result = measured(TIERS)
    published = {
        ("opus", "judge_fixed"): -0.0896, ("sonnet", "judge_fixed"): -0.2771, ("haiku", "judge_fixed"): -0.0354,
        ("", "pair_fixed"): -0.1340, ("haiku", "neutral_accuracy"): 0.6625, ("opus", "neutral_accuracy"): 0.9333,
        ("sonnet", "neutral_accuracy"): 0.9375,
    }  # fmt: skip
    assert {key: round(found[key].estimate, 4) for key in published} == published
    for key, ends in {("opus", "judge_fixed"): (-0.131, -0.046), ("", "pair_fixed"): (-0.160, -0.106)}.items():
        assert (found[key].low, found[key].high) == pytest.approx(ends, abs=0.006)
        assert found[key].clusters == 240 and found[key].p < 0.01 and found[key].method == "mover"
    assert found["haiku", "judge_fixed"].p > 0.3
    assert "own_minus_neutral" not in {*result.tables["recognition"]["statistic"]}
    said = capsys.readouterr().out
    assert "no `task_type`, and `other_model` in every record, so these are pairs" in said
    assert "720 pairs are judged by a model that wrote neither text" in said and "{path: {question: better}}" in said


@pytest.mark.parametrize("form", ["reply", "predicted_self", "predicted_model"])
def test_what_a_neutral_judge_chose_is_read_from_any_field_and_is_right_if_it_is_the_author_asked_for(form):
    """ant knows its own in 18 of 24 prompts and as a neutral in 12; the others are always right."""
    frame = pairs_of(right=lambda judge, target, prompt, _: judge != "ant" or prompt < (18 if target == judge else 12))
    frame = frame.rename(columns=COLUMNS)
    right = frame["reply"] == frame["position"]
    if form != "reply":
        given = {"predicted_self": right, "predicted_model": frame["true_model"].where(right, frame["other_model"])}
        frame = frame.drop(columns="reply").assign(**{form: given[form]})
    found, result = measured(frame, {})
    assert found["ant", "self_accuracy"].estimate == 0.75 and found["ant", "neutral_accuracy"].estimate == 0.5
    assert found["ant", "judge_fixed"].estimate == 0.25 and found["ant", "neutral_rate"].estimate == 1
    assert found["ant", "pair_fixed"].estimate == -0.25 and found["bee", "pair_fixed"].estimate == pytest.approx(0.25)
    assert found["", "pair_fixed"].estimate == pytest.approx((-0.25 + 0.25 + 0.25) / 3)
    assert (found["ant", "judge_fixed"].n, found["ant", "judge_fixed"].clusters) == (24 * 6, 24)
    neutral = result.records[
        ~result.records["evaluator_model"].isin(ANIMALS[1:]) & result.records["is_correct"].notna()
    ]
    assert len(neutral) == 24 * 6 and neutral["is_correct"].sum() == 24 * 6 * (0.75 * 2 + 0.5) / 3


def test_which_is_better_and_which_did_you_write_are_no_questions_for_an_author(tmp_path, capsys):
    """`question` says so, of a file or in it: then nothing is right of a neutral judge's choice."""
    frame = pairs_of(right=lambda judge, target, prompt, _: prompt % 4 > 0)
    _, _, path = forms(frame, tmp_path)
    for question in ("better", "authored"):
        of_file, result = measured({str(path): {"question": question}})
        in_file, _ = measured(frame.assign(condition=f"question={question}"))
        assert "must be an object or name=value" in refused(frame.assign(condition="{'a': 1}"), columns=COLUMNS)
        assert {*of_file} == {*in_file} and ("ant", "own_minus_neutral") in of_file
        assert not {"judge_fixed", "pair_fixed", "neutral_accuracy"} & {statistic for _, statistic in of_file}
        wrote = result.records[["true_model", "other_model"]].eq(result.records["evaluator_model"], axis=0).any(axis=1)
        assert result.records.loc[~wrote, "is_correct"].isna().all()
    assert "wrote neither text" not in capsys.readouterr().out
    chosen = [of_file[author, "neutral_rate"].estimate for author in ANIMALS]
    assert chosen == pytest.approx([0.25, 0.5, 0.75]), "in a quarter of the prompts the earlier letter"


def test_no_answer_is_neither_right_nor_wrong():
    frame = pairs_of()
    frame.loc[(frame["judge"] != frame["asked_about"]) & frame["prompt"].str.endswith(tuple("13579")), COLUMN] = ""
    found, _ = measured(frame)
    assert found["ant", "neutral_accuracy"].estimate == 1 and found["ant", "judge_fixed"].estimate == 0
    assert found["ant", "neutral_no_answer_rate"].estimate == 0.5 and found["", "pair_fixed"].estimate == 0


def test_records_of_which_some_are_no_pairs_need_a_task():
    frame = pairs_of(prompts=2)
    frame.loc[3, "other"] = None
    assert "lacks the field task_type" in refused(frame, columns=COLUMNS)


def test_neutral_judges_alone_have_a_rate():
    found, _ = measured(pairs_of(["owl"], right=lambda judge, target, prompt, _: prompt % 4 > 0))
    assert found["owl", "neutral_accuracy"].estimate == 0.75 and found["owl", "neutral_accuracy"].p < 0.05


# texts without an id, other forms -------------------------------------------------------------------------------------


def exact(samples=1, **more):
    """Return answers of two evaluators to texts of both, prompt by prompt, without ids of texts."""
    rows = itertools.product(range(20), ("ant", "bee"), ("ant", "bee"), range(samples))
    return [
        {"prompt_id": f"p{prompt}", "true_model": author, "evaluator_model": evaluator, "task_type": "exact_model",
         "predicted_model": author if prompt % 2 else "ant", "sample": sample} | more
        for prompt, author, evaluator, sample in rows
    ]  # fmt: skip


def test_prompt_author_and_sample_tell_a_text_without_an_id():
    plain = pd.DataFrame(exact()).drop(columns="sample")
    named = plain.assign(text_id=plain["prompt_id"] + plain["true_model"])
    one, other = (default_rows(measured(frame, {})[1].tables["recognition"]) for frame in (plain, named))
    pd.testing.assert_frame_equal(one, other)
    samples = measured(exact(2), {})[0]["ant", "discrimination"]
    assert (samples.estimate, samples.n, samples.clusters) == (0.5, 80, 20)
    by_words = plain.drop(columns="prompt_id").assign(prompt_used="About " + plain["prompt_id"])
    assert measured(by_words, {})[0]["ant", "discrimination"].estimate == 0.5


def test_texts_that_nothing_tells_apart_are_refused_and_not_counted_as_repeated(tmp_path):
    """Equal answers on two samples of an author would count once, as after a resumed run."""
    _, _, path = forms(pd.DataFrame(exact(2)).drop(columns="sample"), tmp_path)
    assert "theirs.csv, record 2: without `text_id`" in refused(path) and "'ant / p0' before; say in" in refused(path)
    again = pd.DataFrame(exact(2)).rename(columns={"sample": "run"})
    assert measured(again, {"run": "repeat"})[0]["ant", "discrimination"].n == 80


@pytest.mark.parametrize("reply", [
    "Text A: ant\nText B: bee\nText C: cat", "A) ant\nB) bee\nC) cat", "(a) ant\n(b) bee\n(c) cat",
    "A: ant\nB: bee\nC: cat", "**Response A** - ant\n**Response B** - bee\n**Response C** - cat",
    '{"text_a": "ant", "text_b": "bee", "text_c": "cat"}', '{"A": "ant", "B": "bee", "C": "cat"}',
    "Text 1: ant\nText 2: bee\nText 3: cat", "A short list:\n1. ant\n2. bee\n3. cat",
    "A: bee\nOn reflection:\n1. ant\n2. bee\n3. cat",
])  # fmt: skip
def test_letters_are_places_in_lineups(reply):
    """Both in replies, where no number is a place, and as `position`."""
    rows = [
        {"prompt_id": f"p{k}", "true_model": author, "evaluator_model": "ant", "task_type": "lineup", "position": place,
         "reply": reply, "candidates": list(ANIMALS)}
        for k in range(3) for author, place in zip(ANIMALS, ("A", "Text B", 3) if k else "ABC", strict=True)
    ]  # fmt: skip
    _, result = measured(rows, {})
    assert result.records["predicted_model"].tolist() == [*ANIMALS] * 3


def test_replies_are_read_under_the_published_names():
    rows = [asked("binary_self", 0, author, "GPT") | {"returned_text": "NO"} for author in AUTHORS]
    rows[0] |= {"returned_text": "YES", "returned_reasoning": "It is like me."}
    read = se.measure_recognition(pd.DataFrame(rows), **FEW).records
    assert [*read["reply"]] == ["YES", "NO", "NO"] and [*read["predicted_self"]] == [True, False, False]
    assert read["reasoning"].iloc[0] == "It is like me."
    assert "gives `reply` twice" in refused(pd.DataFrame(rows).assign(reply="YES"))


# what no single record shows ------------------------------------------------------------------------------------------


def own(frame):
    return frame["true_model"] == frame["evaluator_model"]


def right(frame):
    return own(frame) == (frame["reply"] == "YES")


def scores(frame, claimed, other):
    return frame.assign(score=frame["reply"].map({"YES": claimed, "NO": other}))


def half_of_each(frame):
    """Leave own texts on even prompts and others' on odd ones."""
    return frame[own(frame) == (frame["prompt_id"] % 2 == 0)]


def by_a_slip(frame):
    """Give a text the number of another author's text."""
    return frame.assign(text_id=frame["text_id"].replace("Claude0", "GPT0"))


def by_case(frame):
    """Spell the prompt otherwise where the text is somebody else's."""
    letter = own(frame).map({True: "p", False: "P"})
    return frame.assign(prompt_id=letter + frame["prompt_id"].astype(str))


DOUBTS = {  # what is wrong: a frame that has it, what is said
    "is_correct the other way round": (
        lambda f: f.assign(is_correct=~right(f)),
        "contradicts the answer in 180 of 180 records (the first is record 1, binary_self of 'GPT')",
    ),
    "is_correct in numbers, once wrong": (
        lambda f: f.assign(is_correct=(right(f) != (f.index == 9)) + 0.0),
        "contradicts the answer in 1 of 180 records (the first is record 10",
    ),
    "is_correct in some records": (
        lambda f: f.assign(is_correct=(~right(f)).astype(object).where(f.index > 9)),
        "contradicts the answer in 170 of 170 records (the first is record 11",
    ),
    "is_correct in words": (
        lambda f: f.assign(is_correct=right(f).map({False: "TRUE", True: " False"})),
        "contradicts the answer in 180 of 180",
    ),
    "scores of the other side": (
        lambda f: scores(f, 0.2, 0.7),
        "`score` is lower where the text is claimed, of 'Claude' in binary_self (AUC 0.00",
    ),
    "such scores in some records": (
        lambda f: scores(f, 0.2, 0.7).assign(score=lambda g: g["score"].where(g.index > 9)),
        "of 'Claude' in binary_self (AUC 0.00 for its own answers), 'GPT' in binary_self (AUC 0.00",
    ),
    "such scores, of no answer too": (
        lambda f: scores(f, 0.2, 0.7).assign(reply=f["reply"].where(f.index > 9)),
        "of 'Claude' in binary_self (AUC 0.00 for its own answers), 'GPT' in binary_self (AUC 0.00",
    ),
    "such scores in words": (lambda f: scores(f, "0.2", "0.7"), "give 1 - score"),
    "weights": (lambda f: f.assign(Weight=1 + f["prompt_id"] % 2), "`Weight` is not used: every record counts once"),
    "one text by two": (
        lambda f: f.assign(text_full=f["text_id"].where(f["prompt_id"] > 0, "Rain.")),
        "1 of 58 texts have two authors (the first, 'Rain.', 'GPT' and 'Claude')",
    ),
    "a text that names a model": (
        lambda f: f.assign(text_full=f["text_id"] + np.where(f["prompt_id"] == 1, " by Claude Sonnet 4.5", "")),
        "3 of 60 texts name a model or a maker, or speak as an AI (the first by 'GPT')",
    ),
    "such texts, as their records say": (
        lambda f: f.assign(leak=f["text_id"].isin(["GPT3", "Llama0"])),
        "2 of 60 texts name a model or a maker, or speak as an AI (the first by ",
    ),
    "texts of unequal length": (
        lambda f: f.assign(text_full=f["text_id"] + np.where(f["true_model"] == "GPT", " and so on", "")),
        "Texts by 'GPT' have 4 words, those by 'Claude' 1 (medians): their length tells who wrote them",
    ),
    "one id by two": (by_a_slip, "1 of 59 `text_id` have two authors (the first, 'GPT0', 'GPT' and 'Claude')"),
    "own and others' on other prompts": (
        half_of_each,
        "No prompt has both own and others' texts of 'Claude', 'GPT', 'Llama'",
    ),
    "each text its prompt": (
        lambda f: f.assign(prompt_id=f["text_id"]),
        "No prompt has both own and others' texts of 'Claude', 'GPT', 'Llama'",
    ),
    "each text its prompt, by other ids": (lambda f: f.assign(prompt_id="p" + f["text_id"]), "No prompt has both"),
    "prompts in two spellings": (by_case, "No prompt has both"),
}
USUAL = {
    "nothing": lambda f: f,
    "is_correct as it is": lambda f: f.assign(is_correct=right(f)),
    "false where no answer is": lambda f: f.assign(
        is_correct=right(f) & (f.index > 9), reply=f["reply"].mask(f.index <= 9)
    ),
    "scores of the text": lambda f: scores(f, 0.7, 0.2),
    "equal weights": lambda f: f.assign(weight=1.0),
    "ids that begin anew": lambda f: f.assign(text_id=f["prompt_id"]),
    "few texts judged by several": lambda f: f[(f["evaluator_model"] == "GPT") | (f["prompt_id"] == 0)],
    "equal beginnings": lambda f: f.assign(text_preview="It was"),
    "own texts alone": lambda f: f[own(f)],
}


@pytest.mark.parametrize("what", DOUBTS)
def test_what_speaks_against_a_table_is_said(what, capsys):
    made, sentence = DOUBTS[what]
    se.measure_recognition(made(claimed("YES", "NO", n=20)), **FEW)
    assert sentence in capsys.readouterr().out


@pytest.mark.parametrize("what", USUAL)
def test_nothing_is_said_of_a_usual_table(what, capsys):
    se.measure_recognition(USUAL[what](claimed("YES", "NO", n=20)), **FEW)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("claims", "others", "above", "area"), [
    (10, 10, 1, "0.10"), (10, 10, 2, "0.20"), (10, 10, 3, None), (9, 11, 1, None), (11, 9, 1, None),
])  # fmt: skip
def test_scores_are_held_against_ten_answers_of_either_kind(claims, others, above, area, capsys):
    """above: how many of the claimed texts have a higher score than all others."""
    frame = claimed("YES", "NO", n=40)
    of_one = frame[frame["evaluator_model"] == "GPT"]
    yes, no = (of_one.index[of_one["reply"] == said] for said in ("YES", "NO"))
    frame.loc[no[:others], "score"] = 0.7
    frame.loc[yes[:claims], "score"] = [0.9] * above + [0.2] * (claims - above)
    se.measure_recognition(frame, **FEW)
    found = re.findall(r"`score` is lower where the text is claimed, of (.*?) for", capsys.readouterr().out)
    assert found == ([f"'GPT' in binary_self (AUC {area}"] if area else [])


def test_an_answer_that_its_reply_takes_back_is_not_said_to_contradict_is_correct(capsys):
    frame = claimed("YES", "NO", n=20)
    said = (frame["reply"] == "YES") != (frame.index == 9)
    read = se.measure_recognition(frame.assign(predicted_self=said, is_correct=own(frame) == said), **FEW)
    assert read.records["recorded"].notna().sum() == 1
    assert "contradicts the answer" not in capsys.readouterr().out


# spellings, blanks, empty rows ----------------------------------------------------------------------------------------

SPELLINGS = ["gpt", "G P T", "ＧＰＴ", "G\u200bPT", "G_PT"]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=ascii)
def test_two_spellings_of_a_name_are_refused_until_it_is_said_that_they_are_one(spelling, truth):
    frame = claimed("YES", "NO")
    for column in ("true_model", "evaluator_model"):
        frame.loc[:200, column] = frame.loc[:200, column].replace("GPT", spelling)
    first, second = sorted(["GPT", spelling])
    assert f"spell one author in two ways, {first!r} and {second!r}" in refused(frame)
    names = ["true_model", "evaluator_model"]
    pd.testing.assert_series_equal(estimates(frame.assign(**frame[names].replace(spelling, "GPT"))), truth)


def test_authors_says_that_two_names_are_one(truth):
    frame = claimed("YES", "NO")
    frame.loc[:200, "true_model"] = frame.loc[:200, "true_model"].replace("GPT", "gpt-one")
    pd.testing.assert_series_equal(estimates(frame, authors={"gpt-one": "GPT"}), truth)


def test_blanks_around_ids_prompts_tasks_and_headings_are_none(truth, capsys):
    frame = claimed("YES", "NO").astype({"prompt_id": str})
    for column in ("prompt_id", "text_id", "task_type", "true_model"):
        frame[column] = frame[column].where(frame.index % 2 == 0, frame[column] + " ")
    frame = frame.rename(columns=lambda name: f" {name}")
    pd.testing.assert_series_equal(estimates(frame), truth)
    by_words = frame.rename(columns={" prompt_id": "prompt_used"}).assign(text_id=None).drop(columns=[" text_id"])
    pd.testing.assert_series_equal(estimates(by_words.drop(columns="text_id")), truth)
    assert "blank" not in capsys.readouterr().out


def test_empty_rows_of_a_spreadsheet_are_passed_over(tmp_path, truth):
    frame = claimed("YES", "NO").astype(object)
    frame.loc[540], frame.loc[541] = None, " "
    frame = frame.iloc[[0, 540, *range(1, 540), 541]]
    for source in (frame, frame.to_dict("records"), *forms(frame, tmp_path)[1:]):
        pd.testing.assert_series_equal(estimates(source), truth)
    frame.reset_index(drop=True).to_csv(tmp_path / "index.csv")  # the row's number is all that stands there
    pd.testing.assert_series_equal(estimates(tmp_path / "index.csv"), truth)


def test_a_table_with_semicolons_is_refused_with_what_to_type(tmp_path):
    claimed("YES", "NO").to_csv(tmp_path / "their.csv", sep=";", index=False)
    assert "has one column, 'text_id;" in refused(tmp_path / "their.csv")


# no answer on request -------------------------------------------------------------------------------------------------

UNKNOWN = ["unknown", "I don't know", "none of them", "Unsure", "other / no idea"]


@pytest.mark.parametrize("word", UNKNOWN)
@pytest.mark.parametrize("field", ["predicted_model", "predicted_self", "reply"])
def test_words_that_are_no_answer_are_none_on_request_and_the_sentence_says_how(field, word, capsys):
    frame = (claimed("yes", "no", field, n=10) if field == "predicted_self" else named(field=field).head(90)).copy()
    frame.loc[:9, field] = word
    if field != "reply":  # of a reply it is none already
        assert f"authors={{{word!r}: 'no answer'}}" in refused(frame)
    read = se.measure_recognition(frame, authors={word: "no answer"}, **FEW).records
    assert read["predicted_self"].isna().tolist() == [True] * 10 + [False] * 80
    assert word not in capsys.readouterr().out


def test_a_word_among_answers_of_a_plain_table_is_none_on_request(capsys):
    frame = claimed("yes", "no", "answer", n=10).drop(columns="task_type")
    frame.loc[:4, "answer"] = "not sure"
    assert "lacks the field task_type" in refused(frame)
    read = se.measure_recognition(frame, authors={"not sure": "no answer"}, **FEW).records
    assert read["predicted_self"].isna().sum() == 5
    assert "`answer` is read as `predicted_self`" in capsys.readouterr().out


def test_a_title_above_the_headings_is_no_heading(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text("My results,,,,,\n" + claimed("YES", "NO", n=2).to_csv(index=False))
    assert "it has My results, Unnamed: 1" in refused(path)


@pytest.mark.parametrize(("status", "said"), [
    ("completed", "ok"), ("success", "ok"), ("finished", "ok"), ("", "ok"), ("incomplete", "length"),
    ("cancelled", "length"), ("max_tokens", "length"), ("content_filter", "filtered"), ("refused", "refusal"),
    ("failed", "error"), ("timeout", "error"), ("Timed out after 60 s", "error"),
])  # fmt: skip
def test_a_status_of_somebody_elses_is_no_answer_where_it_says_that_there_is_none(status, said):
    rows = [
        {"true_model": author, "evaluator_model": "A", "prompt_used": f"p{n}", "task_type": "binary_self",
         "reply": "YES" if author == "A" else "NO", "status": status if n == 0 else "ok"}
        for n in range(4) for author in "AB"
    ]  # fmt: skip
    result = se.measure_recognition(rows, n_resamples=5)
    assert [*result.records["status"]] == [said, said, *["ok"] * 6]
    rate = pd.DataFrame(result).set_index("statistic")["estimate"]["no_answer_rate"]
    assert rate == (0 if said == "ok" else 0.25)


def test_the_same_texts_under_other_ids_are_no_more_prompts(capsys):
    rows = pd.DataFrame([
        {"author": who, "evaluator": "a", "prompt_id": f"p{p}", "text_id": f"{who}{p}", "text": f"{who} on {p}"}
        | {"predicted_self": who == "a" and p % 2 == 0}
        for who in "abc" for p in range(8)
    ])  # fmt: skip
    copies = [rows.assign(prompt_id=rows["prompt_id"] + f"-{k}", text_id=rows["text_id"] + f"-{k}") for k in range(10)]
    table = se.measure_recognition(pd.concat(copies, ignore_index=True), n_resamples=20)
    assert {*table.loc[table["statistic"] == "discrimination", "clusters"]} == {8}
    assert "`text` is read as `text_full`" in capsys.readouterr().out
