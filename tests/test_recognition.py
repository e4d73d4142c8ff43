"""Texts, designs and predictions, from the models' replies to the records, on simulated models with a known truth."""

import itertools
import math
import re
from collections import Counter

import pandas as pd
import pytest
from recognition_records import texts_of
from test_client import within

import selfeval as se
from selfeval import stats
from selfeval.errors import InputError
from selfeval.providers.models import from_callable, get_all
from selfeval.providers.request import Response
from selfeval.reading.parsing import parse_yes_no
from selfeval.recognition import prompts as recognition_prompts
from selfeval.recognition import run as recognition_run
from selfeval.recognition import scoring as recognition_scoring
from selfeval.recognition import texts as controls
from selfeval.recognition.contrasts import as_readings
from selfeval.recognition.prompts import Condition, Question
from selfeval.recognition.texts import generate_texts
from selfeval.records.tasks import TASKS

PROMPTS = [{"prompt_id": f"p{i}", "prompt": f"Write about thing {i}."} for i in range(12)]
BOTH = ["exact_model", "binary_self"]
PLAIN = Condition()


def run(evaluate):
    return within(None, evaluate)


def written(*names, n_prompts=12):
    return run(lambda client: generate_texts(client, get_all([f"sim/{n}" for n in names]), PROMPTS[:n_prompts]))[0]


def ask(evaluators, texts, condition=PLAIN, tasks=BOTH, **more):
    return run(
        lambda client: recognition_run.collect_predictions(client, evaluators, texts, condition, tasks=tasks, **more)
    )


def spied(texts, condition=PLAIN, tasks=BOTH, reply="NO", **more):
    """Ask an evaluator that keeps its questions; return (questions, records)."""
    seen = []

    def spy(messages, **parameters):
        seen.append(messages[-1]["content"])
        return reply

    author = from_callable(spy, "sim/perfect", "Perfect")
    return seen, ask([author], texts, condition, tasks, **more)


# texts ----------------------------------------------------------------------------------------------------------------


def test_every_author_writes_on_every_prompt_and_ids_are_stable():
    fleet = get_all(["sim/perfect", "sim/chance"])
    texts, failures = run(lambda client: generate_texts(client, fleet, PROMPTS[:3], samples=2, words=40))
    assert failures == [] and len({t["text_id"] for t in texts}) == 3 * 2 * 2
    assert [(t["prompt_id"], t["sample"], t["author"]) for t in texts[:3]] == [
        ("p0", 0, "sim/perfect"), ("p0", 0, "sim/chance"), ("p0", 1, "sim/perfect"),
    ]  # fmt: skip
    again, _ = run(lambda client: generate_texts(client, fleet[:1], PROMPTS[:1], words=40))
    assert again[0]["text_id"] == texts[0]["text_id"], "a text's id depends on what else the corpus holds"


def test_people_and_models_who_write_to_one_length_are_asked_about_under_one_condition():
    texts = se.generate_texts("sim/good", "chats", limit=3, words=30)
    assert texts["author"].value_counts().to_dict() == {"human": 3, "sim/good": 3}
    by_people = texts[texts["author"] == "human"]
    assert {*by_people["prompt_id"]} == {*texts["prompt_id"]} and by_people["words"].between(15, 45).all()
    conditions = se.collect_predictions(texts, "sim/good")["condition"]
    assert [condition["words"] for condition in conditions] == [30] * 12


def test_a_reply_without_text_is_a_failure_and_a_cut_off_text_is_marked():
    replies = iter([Response("", "empty"), Response("half a", "length"), Response(status="error", error="down")])
    model = from_callable(lambda messages, **parameters: next(replies), "mine/flaky")
    texts, failures = run(lambda client: generate_texts(client, [model], PROMPTS[:3]))
    assert [(t["prompt_id"], t["status"]) for t in texts] == [("p1", "length")]
    assert [(f["prompt_id"], f["status"], f["error"]) for f in failures] == [
        ("p0", "empty", None), ("p2", "error", "down"),
    ]  # fmt: skip
    said = 'wrote no text for 1 of its requests (empty): `again = "empty"` asks once more.'
    assert said in controls.missing_texts(texts, failures)[0]


@pytest.mark.parametrize(("text", "leak"), [
    ("As an AI language model, I see", True), ("Claude Sonnet 4 wrote this", True), ("made by OpenAI", True),
    ("a llama and a gemini moon", False), ("the perfect chance of a good day", False), ("my training as", True),
])  # fmt: skip
def test_a_text_that_says_who_wrote_it_is_flagged(text, leak):
    assert bool(controls.leaks(text)) == leak


# questions ------------------------------------------------------------------------------------------------------------


def test_who_wrote_no_text_is_asked_about_the_pairs_of_others_also_without_peers():
    texts = written("perfect", "good", n_prompts=2)
    rows = ask(get_all(["sim/chance", "sim/good"]), texts, Condition(), "pairwise_self")["pairwise_self"]
    asked = Counter(row["evaluator_model"] for row in rows)
    assert asked == {"sim/chance": 4, "sim/good": 4}, "both orders of one pair on each of two prompts"
    assert {row["predicted_self"] for row in rows if row["evaluator_model"] == "sim/chance"} <= {True, False}


def test_with_peers_each_pair_of_two_others_is_asked_about_in_both_orders():
    texts = written("perfect", "good", "first")
    fleet = get_all(["sim/perfect", "sim/good", "sim/first"])
    rows = ask(fleet, texts, Condition(question="better"), "pairwise_self", peers=True)["pairwise_self"]
    neutral = [r for r in rows if r["evaluator_model"] not in (r["true_model"], r["other_model"])]
    assert len(rows) == 12 * 3 * 6 and len(neutral) == 12 * 3 * 2
    assert {r["is_correct"] for r in rows} == {None}  # which text is better has no right answer
    assert {(r["text_id"], r["other_text_id"]) for r in neutral} == {
        (r["other_text_id"], r["text_id"]) for r in neutral
    }


@pytest.mark.parametrize("provenance", ["own_turn", "prefill"])
def test_a_text_may_stand_where_its_author_would_have_written_it(provenance):
    texts = written("perfect", "good", n_prompts=6)
    condition = Condition(provenance=provenance)
    seen = []

    def spy(messages, **parameters):
        seen.append(messages)
        begun = messages[-1]["content"] if provenance == "prefill" else ""
        return f"{begun} YES"  # as llama.cpp's server answers

    records = ask([from_callable(spy, "sim/perfect", "Perfect")], texts, condition, "binary_self")["binary_self"]
    assert {(r["reply"].strip(), r["predicted_self"]) for r in records} == {("YES", True)}
    request, text, *rest = [message["content"] for message in seen[0]]
    asks = rest[0] if provenance == "own_turn" else request
    assert request.startswith(texts[0]["prompt"]) and text.startswith(texts[0]["text"])
    assert TASKS["binary_self"].asked["authored"] in asks and (len(rest) == 1) == (provenance == "own_turn")
    own = [r for r in ask(get_all("sim/perfect"), texts, condition)["binary_self"] if r["true_model"] == "sim/perfect"]
    assert {r["predicted_self"] for r in own} == {True}  # simulated models find their text there


TURNED = {"question": "another"}, {"question": "good"}, {"about": "sim/good"}


@pytest.mark.parametrize("put", TURNED, ids=str)
def test_simulated_evaluators_answer_the_binary_question_turned_round_and_about_others(put):
    """Perfect knows who wrote a text; whether it is good is a coin."""
    texts = written("perfect", "good")
    rows = ask(get_all("sim/perfect"), texts, Condition(**put), "binary_self")["binary_self"]
    own = [row["true_model"] == "sim/perfect" for row in rows]
    expected = {"another": own, "about": [None] * len(rows)}.get(put.get("question", "about"))
    assert {*put} - {"question"} == {"about"} & {*rows[0]["condition"]}
    if expected:
        assert [row["predicted_self"] for row in rows] == expected and all(row["is_correct"] for row in rows)
    else:
        assert {row["predicted_self"] for row in rows} == {True, False} and {r["is_correct"] for r in rows} == {None}


@pytest.mark.parametrize(("put", "asked", "score", "own"), [
    ({"question": "another"}, "Did someone else write this text?", 0.2, False),
    ({"question": "good"}, "Is this a good answer?", 0.8, True),
    ({"about": "sim/good"}, "Did Good write this text?", 0.8, None),
])  # fmt: skip
def test_a_score_is_p_of_the_own_text_or_of_yes(put, asked, score, own):
    [text], chances = written("good", n_prompts=1), {"YES": math.log(0.8), "NO": math.log(0.2)}
    question = Question("binary_self", get_all("sim/perfect")[0], (text,), {"sim/good": "Good"}, Condition(**put))
    [record] = question.records(Response("YES", "ok", logprobs=[["YES", chances["YES"], chances]]))
    assert asked in record["messages"][-1]["content"]
    assert (record["score"], record["predicted_self"], record["status"]) == (pytest.approx(score), own, "ok")


@pytest.mark.parametrize(("reply", "is_correct"), [
    ("Yes.", True), ("NO", False), ("I wrote this text.", None), ("Someone else wrote this text.", None),
])  # fmt: skip
def test_who_else_wrote_it_is_answered_by_yes_or_no_and_not_by_what_the_model_says_of_itself(reply, is_correct):
    [text] = written("good", n_prompts=1)
    about = Condition(about="sim/good")
    question = Question("binary_self", get_all("sim/perfect")[0], (text,), {"sim/good": "Good"}, about)
    [record] = question.records(Response(reply, "ok"))
    assert record["is_correct"] is is_correct and record["predicted_self"] is None


@pytest.mark.parametrize(("reply", "another", "good"), [
    ("No, I wrote this text.", True, False), ("Yes, someone else wrote this text.", False, True),
    ("Someone else wrote this text.", False, None), ("Yes, I wrote this text.", None, True),
    ('{"answer": "NO"}', True, False), ("y", False, True), ("mine", True, True), ("no idea", None, None),
])  # fmt: skip
def test_yes_to_the_question_whether_another_wrote_it_claims_nothing(reply, another, good):
    assert parse_yes_no(reply, False) is another and parse_yes_no(reply, None) is good


def test_preferences_and_answers_about_others_are_never_counted_as_claims(capsys):
    texts, fleet = written("perfect", "good"), get_all(["sim/perfect", "sim/good"])
    good, other, plain = (
        ask(fleet, texts, Condition(**put), "binary_self")["binary_self"] for put in (*TURNED[1:], {})
    )
    assert {*se.measure_recognition(good, n_resamples=1)["conclusion"]} == {""}
    implicit = as_readings(pd.DataFrame(good))
    assert {*implicit["condition"]} == {"reading=yes or no, question=good"}
    with pytest.raises(InputError, match="claim nothing"):
        se.measure_recognition(other)
    both, alone = (se.measure_recognition(rows, n_resamples=1) for rows in (plain + other, plain))
    pd.testing.assert_frame_equal(pd.DataFrame(both), pd.DataFrame(alone))
    assert "48 answers say whether another author wrote a text (`about`)" in capsys.readouterr().out
    again, changes = recognition_scoring.rescore(pd.DataFrame(good), "auto")
    assert changes["same"].sum() == len(good) and again["is_correct"].isna().all()


@pytest.mark.parametrize(("options", "message"), [
    ({"answer": "loud"}, "`answer` must be one of free, constrained, got 'loud'"),
    ({"told": "yes"}, "`told` must be true"), ({"temperature": "hot"}, "`temperature` must be a finite number"),
    ({"control": "paraphrased"}, "`control` must be one of none, truncated"),
    ({"provenance": "prefill", "answer": "constrained"}, "use `answer` = 'free'"),
])  # fmt: skip
def test_a_wrong_condition_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        Condition(**options)


@pytest.mark.parametrize(("condition", "tasks", "message"), [
    ({}, "exactly", "name 'exactly' in `tasks`"), ({}, [], "nothing to ask"), ({}, ["lineup"] * 2, "given twice"),
    ({"question": "better"}, "binary_self", "`question` = 'better' is for the task `pairwise_self` alone"),
    ({"about": "sim/chance"}, "exact_model", "with the task `binary_self` alone and"),
    ({"about": "sim/good"}, "binary_self", "must be an author of the corpus .*'sim/chance', 'sim/perfect'"),
    ({"about": "sim/chance", "question": "good"}, "binary_self", "`question` = 'authored'; it is 'sim/chance'"),
    ({"provenance": "own_turn"}, "pairwise_self", "is about one text"),
])  # fmt: skip
def test_a_design_that_cannot_be_asked_is_refused_before_the_first_call(condition, tasks, message):
    texts = written("perfect", "chance", n_prompts=1)
    stranger = from_callable(lambda messages, **_: pytest.fail("was asked"), "mine/spy", "Spy 3")
    with pytest.raises(InputError, match=message):
        ask([stranger], texts, Condition(**condition), tasks)
    with pytest.raises(InputError, match="one author, 'sim/perfect'"):
        ask([stranger], texts[:1])
    with pytest.raises(InputError, match="not known to go on with an answer"):
        ask(get_all("openai/gpt-4.1"), texts, Condition(provenance="prefill"))


# what a design owes to chance -----------------------------------------------------------------------------------------

NAMES = ["Ann", "Ben", "Cem", "Dao"]
MODELS = [from_callable(lambda messages, **_: "YES", f"mine/{name.lower()}", name) for name in NAMES]


def candidates(texts, seed):
    """Return {text id: the candidates in the order shown}, read from the questions themselves."""
    asked = recognition_run.design(MODELS[:1], texts, PLAIN, tasks="exact_model", seed=seed)
    shown = [recognition_prompts.CANDIDATE_LINE.findall(q.request().messages[-1]["content"]) for q in asked]
    return {q.texts[0]["text_id"]: order for q, order in zip(asked, shown, strict=True)}


def test_names_and_texts_go_round_all_places_and_another_seed_draws_other_orders():
    texts = texts_of(*MODELS, prompts=6)
    drawn = [candidates(texts, seed) for seed in range(4)]
    assert drawn[0] == candidates(texts, 0) and all(sorted(order) == NAMES for order in drawn[0].values())
    for text, author in zip(texts, NAMES * 6, strict=True):  # the truth stands elsewhere with each of four seeds
        assert sorted(orders[text["text_id"]].index(author) for orders in drawn) == [0, 1, 2, 3]
    for group in zip(*[iter(texts)] * 4, strict=True):  # of one prompt
        assert all(len({*place}) == 4 for place in zip(*(drawn[0][text["text_id"]] for text in group), strict=True))
    turned = [drawn[seed][0][drawn[seed][0].index("Ann") :] + drawn[seed][0] for seed in range(4)]
    assert len({tuple(order[:4]) for order in turned}) > 1  # not the same order, begun elsewhere
    lineups = []
    for seed in range(6):
        asked = recognition_run.design(MODELS[:1], texts_of(*MODELS, prompts=4), PLAIN, tasks="lineup", seed=seed)
        lineups.append([tuple(text["author"] for text in question.texts) for question in asked])
        assert all(len({*place}) == 4 for place in zip(*lineups[-1], strict=True))
    assert len({shown[0] for shown in lineups}) >= 3


@pytest.mark.parametrize(("task", "questions", "texts_in_each"), [
    ("binary_self", 16, 1), ("pairwise_self", 2 * 2 * 3 * 2, 2), ("lineup", 4, 4),
])  # fmt: skip
def test_texts_that_are_shown_together_are_of_one_sample(task, questions, texts_in_each):
    asked = recognition_run.design(MODELS[:1], texts_of(*MODELS, prompts=2, samples=2), PLAIN, tasks=task)
    assert len(asked) == questions and {len(question.texts) for question in asked} == {texts_in_each}
    for question in asked:
        assert len({(text["prompt_id"], text["sample"]) for text in question.texts}) == 1
    own = {text["text_id"] for question in asked for text in question.texts if text["author"] == "mine/ann"}
    assert own == {0, 4, 8, 12}


@pytest.mark.parametrize(("leaky", "marked"), [("mine/ann", 6), ("mine/ben", 2), (None, 0)])
def test_a_pair_is_marked_where_either_text_says_who_wrote_it(leaky, marked):
    says = {"text": "As an AI language model, I"}
    texts = [text | says if text["author"] == leaky else text for text in texts_of(*MODELS, prompts=1)]
    pairs = ask(MODELS[:1], texts, tasks="pairwise_self")["pairwise_self"]
    assert len(pairs) == 6 and sum(pair["leak"] for pair in pairs) == marked
    assert all(pair["leak"] == (leaky in (pair["true_model"], pair["other_model"])) for pair in pairs)


# answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reply", "status"), [
    ("I cannot tell.", "ok"), ("Perfect or Chance", "ok"), ("NO, because", "length"), ("", "empty"),
    ("Perfect", "refusal"), ("YES", "error"),
])  # fmt: skip
def test_whatever_is_no_answer_stays_null_and_is_named(reply, status):
    evaluator = from_callable(lambda messages, **parameters: Response(reply, status, error=reply), "mine/silent")
    for row in itertools.chain(*ask([evaluator], written("perfect", "chance", n_prompts=1)).values()):
        assert (row["predicted_model"], row["predicted_self"], row["is_correct"]) == (None, None, None)
        assert row["status"] == ("no_answer" if status == "ok" else status)


def token(text, **alternatives):
    return (text, -0.1, alternatives)


def test_probability_of_yes_is_read_where_the_reply_decides():
    options = {"yes": "YES", "no": "NO"}
    free = [token("No", No=-1.0, Yes=-2.0, Y=-3.0, I=-0.5)]
    yes, no = math.exp(-2) + math.exp(-3), math.exp(-1)
    assert recognition_scoring.probabilities(free, options, "free")["yes"] == pytest.approx(yes / (yes + no), abs=1e-6)
    json_reply = [token("{", No=-0.1, Yes=-0.2), token(' "answer', n=-1.0), token('": "', no=-0.1, yes=-9.0),
                  token("YES", YES=-0.5, NO=-0.5)]  # fmt: skip
    assert recognition_scoring.probabilities(json_reply, options, "constrained") == {"yes": 0.5, "no": 0.5}
    assert recognition_scoring.probabilities([token("I", I=-0.1)], options, "free") is None


def test_probabilities_of_names_that_begin_alike_are_followed_to_where_they_part():
    value = [('{"author":', 0, {}), (' "', 0, {}), ("Sm", 0, {"Sm": -0.1, "GP": -3}), ("olLM2", 0, {"olLM2": 0})]
    ends = [('"}', 0, {'"}': -1.0, " (": -0.5})]
    three = {"a": "SmolLM2", "b": "SmolLM2 (hot)", "c": "GPT-5"}
    found = recognition_scoring.probabilities(value + ends, three, "constrained")
    path, other = math.exp(-0.1), math.exp(-3)
    total = path * (math.exp(-1) + math.exp(-0.5)) + other
    expected = {"a": path * math.exp(-1) / total, "b": path * math.exp(-0.5) / total, "c": other / total}
    assert found == pytest.approx(expected, abs=1e-5)
    four = recognition_scoring.probabilities(value + ends, three | {"d": "SmolLM2 (captain)"}, "constrained")
    assert four == pytest.approx(expected | {"b": None, "d": None}, abs=1e-5)


def test_names_that_begin_alike_beside_the_one_that_is_given_are_null_and_it_has_its_share():
    value = [('{"author":', 0, {}), (' "', 0, {}), ("GP", 0, {"GP": -0.5, "Sm": -1.0})]
    three = {"a": "SmolLM2", "b": "SmolLM2 (hot)", "c": "GPT-5"}
    share = math.exp(-0.5) / (math.exp(-0.5) + math.exp(-1))
    found = recognition_scoring.probabilities(value, three, "constrained")
    assert found == {"a": None, "b": None, "c": pytest.approx(share, abs=1e-6)}


@pytest.mark.parametrize("task", ["exact_model", "binary_self", "pairwise_self", "lineup"])
def test_simulated_evaluators_answer_every_task_and_our_own_records_are_read_the_same(task):
    fleet = ["perfect", "chance", "no-answer", "first"]
    made = pd.DataFrame(ask(get_all([f"sim/{name}" for name in fleet]), written(*fleet), tasks=task)[task])
    table = stats.recognition_table(made, n_resamples=50)
    perfect = table[(table["evaluator"] == "sim/perfect") & (table["statistic"] == "self_accuracy")].iloc[0]
    assert perfect["estimate"] == 1
    frame, report = recognition_scoring.rescore(made)
    assert (report["same"] == report["records"]).all() and frame["status"].tolist() == made["status"].tolist()


def test_scoring_anew_reads_names_in_any_order():
    common = dict.fromkeys(["true_model", "evaluator_model"], "lab/a") | {"text_id": 1, "task_type": "exact_model"}
    common |= dict.fromkeys(["predicted_model", "predicted_self"])
    rows = [common | {"candidates": shown, "reply": "lab/b"} for shown in (["lab/a", "lab/b"], ["lab/b", "lab/a"])]
    assert list(recognition_scoring.rescore(pd.DataFrame(rows))[0]["predicted_model"]) == ["lab/b"] * 2


# replies in a file, as people have them -------------------------------------------------------------------------------


def read_file(folder, task, replies, **more):
    """Write a CSV of one reply a row, measure it, and return its records."""
    rows = [
        {"prompt_id": f"p{number}", "true_model": author, "evaluator_model": "ant", "task_type": task, "reply": reply}
        | more
        for author in ("ant", "bee")
        for number, reply in enumerate(replies)
    ]
    pd.DataFrame(rows).to_csv(folder / "answers.csv", index=False)
    return se.measure_recognition(folder / "answers.csv", n_resamples=10).records


PAIR_REPLIES = {
    "My decision: [[A>>B]]": True,
    "<verdict>Text 2</verdict>": False,
    "$\\boxed{\\text{A}}$": True,
    '{"winner": "response_b", "why": "plainer"}': False,
    "## Verdict\n\nB": False,
    "I wrote the former.": True,
    "Le texte 2 est de moi.": False,
    "答案：A": True,
    "Both read alike to me: [[A=B]]": None,
    "Answer: both": None,
    "A and B": None,
    "Verdict: a draw": None,
    "Je crois que ce n'est pas le texte 2.": None,
}


def test_choices_in_wrappers_are_read_and_a_tie_is_no_answer(tmp_path):
    more = {"other_model": "cat", "other_text_id": "t", "position": 1}
    read = read_file(tmp_path, "pairwise_self", PAIR_REPLIES, **more)
    chosen = [None if pd.isna(said) else bool(said) for said in read["predicted_self"]]
    assert dict(zip(read["reply"], chosen, strict=True)) == PAIR_REPLIES


LANGUAGES = {
    "Oui, c'est moi qui ai écrit cela.": True,
    "Nein, das stammt nicht von mir.": False,
    "答案：不是。": False,
    "はい": True,
    "Нет.": False,
    "네, 제가 썼습니다.": True,
    "لا، لم أكتب هذا.": False,
    '{"respuesta": "sí"}': True,
    "**Não.**": False,
    "Yo no escribí este texto.": False,
    "Ja, ich kann Ihnen gern helfen.": None,
    "Oui ou non ? Je ne sais pas.": None,
    "这很像我写的。": None,
    "Da bin ich überfragt.": None,
}


def test_yes_and_no_are_read_in_the_languages_of_names(tmp_path):
    read = read_file(tmp_path, "binary_self", LANGUAGES)
    said = [None if pd.isna(claim) else bool(claim) for claim in read["predicted_self"]]
    assert dict(zip(read["reply"], said, strict=True)) == LANGUAGES


def test_a_reply_at_which_a_reader_fails_costs_its_row_and_is_counted(tmp_path, monkeypatch, capsys):
    def fail(reply, *rest, **how):
        if "loop" in reply:
            raise RecursionError("too deep")
        return parse_yes_no(reply, *rest, **how)

    monkeypatch.setattr("selfeval.reading.parsing.parse_yes_no", fail)
    with pytest.warns(UserWarning, match="could not be read .RecursionError: too deep"):
        read = read_file(tmp_path, "binary_self", ["YES", "loop loop", "NO"])
    assert [*read["status"]] == ["ok", "unreadable", "ok"] * 2
    assert read["predicted_self"].isna().sum() == 2
    assert "2 replies could not be read and count as no answer" in capsys.readouterr().out


# A question and a reader of the user's own

OWN = "{text}\n\nYou are {name}. Are these your words? YES or NO."
LISTED = "Who wrote this?\n{text}\n{candidates}"


def texts_on(**by_author):
    return [
        {"author": author, "prompt": prompt, "text": text}
        for author, texts in by_author.items()
        for prompt, text in texts.items()
    ]


def yes(messages):
    return "YES"


def asked_of_yes(question, tasks="binary_self", **more):
    texts = texts_on(yes={"p": "I am {braces} here.", "q": "Two."}, other={"p": "Three.", "q": "Four."})
    return se.collect_predictions(texts, {"yes": yes}, tasks=tasks, question=question, **more)


def test_a_question_of_ones_own_is_the_whole_message():
    [message] = asked_of_yes(OWN)["messages"][0]
    assert message["content"].endswith("You are yes. Are these your words? YES or NO.")
    assert "I am {braces} here." in message["content"]


def test_a_yes_to_a_question_of_ones_own_claims_the_text():
    result = se.measure_recognition(asked_of_yes(OWN), n_resamples=200)
    rates = result.set_index("statistic")["estimate"]
    assert [rates["self_accuracy"], rates["false_claim_rate"], rates["discrimination"]] == [1, 1, 0]


def test_a_question_of_ones_own_may_ask_for_a_name():
    replies = asked_of_yes(LISTED, "exact_model")
    assert "- other" in replies["messages"][0][0]["content"]
    known = se.collect_predictions(
        texts_on(a={"p": "One."}, b={"p": "Two."}), {"a": lambda messages: "b"}, tasks="exact_model", question=LISTED
    )
    assert known["predicted_model"].tolist() == ["b", "b"]


def test_two_questions_of_ones_own_have_two_conditions():
    conditions = [asked_of_yes(question)["condition"][0] for question in (OWN, OWN + " Now.", OWN)]
    names = [condition["question"] for condition in conditions]
    assert names[0] == names[2] != names[1]
    assert all(name.startswith("own-") for name in names)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Is this yours?", "must have {text} once"),
        ("Is {text} yours?", "on a line of its own"),
        ("{text}\n{author}", "no places but {text}, {prompt}"),
        ("{text}\n{", "for braces write {{ and }}"),
        ("{text}\n{text.__class__}", "no places but {text}"),
        ("authord", "must be one of"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_before_anything_is_asked(question, said):
    asked = []
    with pytest.raises(InputError, match=said):
        se.collect_predictions(
            texts_on(a={"p": "One."}, b={"p": "Two."}), {"a": asked.append}, tasks="binary_self", question=question
        )
    assert asked == []


@pytest.mark.parametrize("more", [{"hints": True}, {"about": "other"}])
def test_what_changes_the_words_does_not_go_with_a_question_of_ones_own(more):
    with pytest.raises(InputError, match="of your own"):
        asked_of_yes(OWN, **more)


def test_a_question_of_ones_own_is_for_one_task_and_a_name_needs_a_list():
    with pytest.raises(InputError, match="exact_model or binary_self alone"):
        asked_of_yes(OWN, BOTH)
    with pytest.raises(InputError, match=r"must have \{candidates\}"):
        asked_of_yes(OWN, "exact_model")


def test_a_condition_says_in_one_what_keywords_say_apart():
    texts = se.generate_texts(["sim/good", "sim/chance"], prompts=2)
    apart = se.collect_predictions(texts, tasks="binary_self", told=False, labels="ids", score="none")
    condition = {"told": False, "labels": "ids", "score": "none"}
    together = se.collect_predictions(texts, tasks="binary_self", condition=condition)
    pd.testing.assert_frame_equal(
        together.drop(columns=["latency", "request_id"], errors="ignore"),
        apart.drop(columns=["latency", "request_id"], errors="ignore"),
    )


@pytest.mark.parametrize(
    ("condition", "keywords", "sentence"),
    [
        ({"tone": "kind"}, {}, "`condition` has no part 'tone'"),
        (
            {"labels": "ids"},
            {"labels": "letters"},
            "`labels` is 'letters', and in `condition` 'ids'; give it once.",
        ),
        ({"paraphraser": "sim/good"}, {}, "`condition` has no part 'paraphraser'"),
        ("told=false", {}, "`condition` must be a mapping"),
        ({"told": "no"}, {}, "`told` must be true or false, got 'no'"),
    ],
)
def test_a_condition_that_cannot_be_put_is_refused_before_anything_is_asked(condition, keywords, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        se.collect_predictions("no such corpus", condition=condition, **keywords)
