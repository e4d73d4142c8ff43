"""The face of the package: one study two ways, what may go in, dry runs, ceilings, and interrupts."""

import asyncio
import inspect
import json
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import matplotlib.pyplot
import pandas as pd
import pytest
from conftest import KEY, wait_for
from fake_server import default_reply

import selfeval as se
from selfeval import ROOT
from selfeval.errors import InputError, SelfevalError
from selfeval.providers.client import Asking

FLEET = ["sim/perfect", "sim/always-itself", "sim/chance"]
TWO = [{"author": author, "prompt": "rain", "text": f"{author} on rain"} for author in FLEET[:2]]
ASKING = {name: getattr(se, name) for name in se.ASKING}


@pytest.fixture(scope="module")
def texts():
    return se.generate_texts(FLEET, prompts=8)


@pytest.fixture(scope="module")
def answers(texts):
    return se.collect_predictions(texts)


@pytest.fixture(scope="module")
def result(answers):
    return se.measure_recognition(answers, n_resamples=200)


# one study, two ways --------------------------------------------------------------------------------------------------


def test_a_study_is_the_same_in_a_script_and_in_a_running_loop(answers, result):
    async def inside():  # as in a notebook, whose cells run in a loop
        return se.collect_predictions(se.generate_texts(FLEET, prompts=8))

    pd.testing.assert_frame_equal(asyncio.run(inside()), answers)
    rows = result[result["task"] == "exact_model"].set_index(["evaluator", "statistic"])["estimate"]
    assert rows["sim/perfect", "discrimination"] == 1 and rows["sim/perfect", "advantage"] == 0
    assert rows["sim/always-itself", "discrimination"] == 0 and rows["sim/always-itself", "advantage"] == 1


def test_identity_jury_and_existence_go_from_ids_to_estimates_a_figure_and_files(tmp_path):
    replies = se.ask_identity("sim/identity-susceptible", limit=4)
    talks = se.converse("sim/talker", "sim/talker", turns=1, people=2, exchanges=1)
    verdicts = se.judge(talks, ["sim/juror-lenient", "sim/juror-stern"], arms=["independent", "debate"])
    unknown = se.ask_existence(lambda messages: "Who knows?", names=2, templates=1)
    measured = [se.measure_identity(replies, n_resamples=50), se.measure_jury(verdicts), se.measure_existence(unknown)]
    assert talks["source"].value_counts().to_dict() == {"model": 3, "human": 2}
    for kind, one in zip(("identity", "jury", "existence"), measured, strict=True):
        assert se.save(one, tmp_path / kind) == tmp_path / kind
        [again] = se.read_results(tmp_path / kind)
        assert (one.kind, again.kind) == (kind, kind) and len(again) == len(one)
        assert (tmp_path / kind / f"{kind}.pdf").exists() == (kind != "existence"), "of no answer there is no figure"
    arms = se.table(measured[1], ["mean_score", "auc"])
    assert {"arm", "source"} <= {*arms} and {"independent", "debate", "length"} <= {*arms["arm"]}
    assert {*se.table(measured[1], "no_answer_rate", jurors=True)["juror"]} == {"Lenient juror", "Stern juror"}
    file = tmp_path / "existence" / "existence.jsonl"
    assert json.loads(file.read_text().splitlines()[0], parse_constant=pytest.fail)["existence_score"] is None


def test_a_result_is_a_frame_that_can_be_cut_and_drawn(result):
    assert isinstance(result, pd.DataFrame) and "<script" not in result._repr_html_()
    one = result.query("task == 'exact_model' and evaluator != 'sim/chance'")
    assert "recognises" in one._repr_html_() and "<th>detectable</th>" in one._repr_html_()
    assert len(se.plot(one).axes) == 1 and len(se.plot(result).axes) == 2, "a panel for each question"
    beside = se.table(result, ["advantage", "advantage_bootstrap"])
    assert (beside["advantage"] != beside["advantage_bootstrap"]).any(), "the bootstrap stands beside the default"
    assert len(se.table(pd.concat([one, one]), ["discrimination"])) == len(se.table(one, ["discrimination"]))
    pairs = se.compare(one)
    assert pairs["evaluator"].str.contains(" - ").all() and pairs["p_holm"].notna().any()


def test_a_limit_leaves_the_controls_whole():
    held = se.converse("sim/talker", "sim/talker", turns=2, conversations=3)
    controls = se.converse("sim/talker", people=2, exchanges=1)
    given = {"jurors": "sim/juror-stern", "arms": "independent", "controls": controls, "limit": 1, "max_turns": 1}
    new = se.judge(held, **given)
    wanted = {held["conversation_id"].iloc[0], *controls["conversation_id"]}
    assert set(new["conversation_id"]) == set(new.conversations["conversation_id"]) == wanted
    assert {*new["turn"]} == {1}


def test_of_verdicts_that_exist_all_are_returned_with_what_they_are_about():
    held = se.converse("sim/talker", "sim/talker", turns=2, conversations=2)
    controls = se.converse("sim/talker", people=2, exchanges=1)
    given = {"jurors": "sim/juror-stern", "arms": "independent", "controls": controls}
    new = se.judge(held, **given)
    old = se.judge(held, **given, verdicts=new.iloc[::-1])
    assert old["reply"].tolist() == new["reply"].tolist()[::-1]
    assert set(old.conversations["conversation_id"]) == set(new.conversations["conversation_id"])


# natural first tries --------------------------------------------------------------------------------------------------

WORKS = {
    "prompts as a file": lambda c: se.generate_texts(FLEET, "prompts.jsonl", limit=2),
    "texts as records": lambda c: se.collect_predictions(c.texts.to_dict("records"), limit=1),
    "texts as a file": lambda c: se.collect_predictions(c.path, limit=1),
    "a corpus by name": lambda c: se.collect_predictions("sample", FLEET[0], allow_strangers=True, limit=1),
    "functions, each its own author": lambda c: se.collect_predictions(se.generate_texts([echo, shout], 2)),
    "a function about itself": lambda c: se.measure_identity(se.ask_identity(echo, limit=2), n_resamples=2),
    "who is who, and no models": lambda c: se.collect_predictions(c.anna, authors={"Anna": FLEET[0]}, limit=1),
    "models in the text of a list": lambda c: se.generate_texts('["sim/good", "sim/chance"]', 1),
    "models in a Series": lambda c: se.generate_texts(pd.Series(FLEET), 1),
    "prompts in a Series": lambda c: se.generate_texts(FLEET[0], pd.Series(["Describe rain.", "Describe snow."])),
    "chat messages": lambda c: se.judge([{"messages": TALK}], [echo, echo], "independent"),
}
REFUSED = {
    "an unknown keyword": (lambda c: se.ask_existence(FLEET, zzz=2), "takes no keyword 'zzz'; it takes models, "),
    "a keyword of before": (lambda c: se.collect_predictions(c.texts, evaluators=FLEET), "did you mean 'models'?"),
    "no author that is a model": (lambda c: se.collect_predictions(c.anna.head(1)), "'Anna'"),
    "two functions of one name": (lambda c: se.generate_texts([lambda m: "a", lambda m: "b"], 1), "{name: function}"),
    "a function of a text": (lambda c: se.generate_texts(lambda prompt: prompt + "!", 1), "is given messages"),
    "axes that are none": (lambda c: c.result.plot(ax=3), "plt.subplots()"),
    "answers for texts": (lambda c: se.collect_predictions(c.answers), "`author`"),
    "answers to compare": (lambda c: se.compare(c.answers), "measure it first"),
    "answers to save": (lambda c: se.save(c.answers, c.path.parent), "measure it first"),
    "two kinds in one folder": (lambda c: [se.save(each, c.path.parent) for each in (c.identity, c.result)], "replace"),
    "an unknown statistic": (lambda c: se.measure_recognition(c.answers, statistics="advantag"), "advantage"),
    "a text that only begins as a list": (
        lambda c: se.generate_texts('["sim/good", ', 1),
        "which is no list; write it",
    ),
    "texts by author": (
        lambda c: se.collect_predictions({name: {"p": "A."} for name in FLEET}),
        "must be a DataFrame, dictionaries or a file",
    ),
    "texts in a Series": (
        lambda c: se.collect_predictions(c.texts["text"]),
        "must be a DataFrame, dictionaries or a f",
    ),
    "no verdicts": (lambda c: se.measure_jury(pd.DataFrame()), "give what `judge` returned"),
    "texts as existence": (lambda c: se.measure_existence(c.texts), "need the fields answer_type"),
    "a conversation without its source": (lambda c: se.judge([CHAT], FLEET), "source"),
}
TALK = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi?"}]
TALK += [{"role": "assistant", "content": "Yes."}]
CHAT = {"conversation_id": "c", "turns": [{"speaker": "q", "text": "Hi?"}, {"speaker": "agent", "text": "Yes."}]}


@pytest.fixture(scope="module")
def case(texts, answers, result, tmp_path_factory):
    """What there is in a study: texts, answers, their statistics, and a CSV of the texts."""
    path = tmp_path_factory.mktemp("mine") / "texts.csv"
    texts[["author", "prompt", "text"]].to_csv(path, index=False)
    anna = texts.replace({"author": {FLEET[0]: "Anna"}, "author_display": {"Perfect": "Anna"}})
    identity = se.measure_identity(se.ask_identity("sim/identity-wavers", limit=2), n_resamples=2)
    return SimpleNamespace(texts=texts, answers=answers, result=result, path=path, anna=anna, identity=identity)


def echo(messages):
    return messages[-1]["content"][:20]


async def shout(messages, temperature):
    return f"{messages[-1]['content'][:20]} {temperature}!"


@pytest.mark.parametrize("name", WORKS)
def test_natural_tries_work(name, case):
    assert len(WORKS[name](case))


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_input_is_one_sentence_with_the_remedy(name, case):
    attempt, remedy = REFUSED[name]
    with pytest.raises(SelfevalError, match=re.escape(remedy)) as caught:
        attempt(case)
    assert "\n" not in str(caught.value)


EMPTY = {
    "generate_texts": lambda rows: se.generate_texts(FLEET, rows), "collect_predictions": se.collect_predictions,
    "likelihoods": se.likelihoods, "controls": se.controls, "measure_recognition": se.measure_recognition,
    "measure_implicit": lambda rows: se.measure_implicit(rows, rows), "measure_identity": se.measure_identity,
    "measure_existence": se.measure_existence, "measure_jury": se.measure_jury,
    "judge": lambda rows: se.judge(rows, "sim/juror-stern"),
    "converse": lambda rows: se.converse("sim/talker", transcripts=rows, replay=True),
}  # fmt: skip


@pytest.mark.parametrize("verb", EMPTY)
def test_no_rows_are_one_sentence_and_nothing_is_asked(verb):
    for rows in ([], (), pd.DataFrame(), pd.DataFrame({"author": []}), pd.DataFrame({"prompt": [None, " "]})):
        with pytest.raises(InputError) as caught:
            EMPTY[verb](rows)
        assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)
    with pytest.raises(SelfevalError):
        EMPTY[verb](None)


def test_a_figure_is_drawn_at_the_place_of_axes(result):
    fig, (left, right) = matplotlib.pyplot.subplots(1, 2)
    assert result.plot("claimed", ax=right) is right and left.figure.subfigs[0].axes[0].get_title()
    fig.draw_without_rendering()
    assert isinstance(result.plot(), matplotlib.figure.Figure)
    matplotlib.pyplot.close("all")


def test_rows_without_what_makes_them_estimates_have_no_figure(result):
    with pytest.raises(InputError, match=r"`plot` takes what `measure_\.\.\.` returned, with all its columns"):
        result[["estimate"]].plot()


# what it costs, and how it ends ---------------------------------------------------------------------------------------


CALL = 'import selfeval as se; se.generate_texts("openai:slow", prompts=4, concurrency=2)'


INSIDE = f"import asyncio\nasync def cell():\n    {CALL}\nasyncio.run(cell())"


@pytest.mark.parametrize("script", [CALL, INSIDE], ids=["plain", "in a loop"])
def test_an_interrupted_script_ends_and_buys_nothing_more(script, server, tmp_path, monkeypatch):
    fake = server(latency=60)
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE)
    wait_for(lambda: fake.ledger or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in said and KEY.encode() not in said
    assert 1 <= len(fake.ledger) <= 2


# names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [*ASKING.values(), se.measure_recognition, se.measure_identity, se.measure_jury])
def test_help_explains_every_keyword(verb):
    names = {*inspect.signature(verb).parameters}
    for name in names - {"asking"} | ({*Asking.__annotations__} if "asking" in names else set()):
        assert re.search(rf"\b{name}\b", verb.__doc__), f"{verb.__name__} says nothing of {name}"


@pytest.mark.parametrize(("verb", "guessed", "sentence"), [
    (se.generate_texts, "max_tokens", "did you mean 'words'?"), (se.generate_texts, "n", "did you mean 'samples'?"),
    (se.generate_texts, "num_samples", "did you mean 'samples'?"),
    (se.ask_identity, "scorer", "did you mean 'scoring'?"),
    (se.ask_identity, "num_samples", "did you mean 'repeats'?"),
    (se.generate_texts, "system_prompt", "add an entry with `system` to a registry of yours (docs/models.md)."),
    (se.judge, "system", "add an entry with `system` to a registry of yours (docs/models.md)."),
    (se.collect_predictions, "scoring", "put your `score` or answers beside the records"),
    (se.collect_predictions, "max_tokens", "is `answer_tokens` of a provider in a registry of yours (docs/models.md)."),
    (se.ask_existence, "num_samples", "did you mean 'iterations'?"),
    (se.converse, "timeout", "`deadline` seconds"), (se.judge, "api_key", "from a file `.env`"),
    (se.generate_texts, "base_url", "`base_url` of a provider in a registry of yours"),
    (se.measure_recognition, "n_bootstrap", "did you mean 'n_resamples'?"),
])  # fmt: skip
def test_a_keyword_that_other_programs_have_is_answered_with_ours(verb, guessed, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        verb("sim/good", **{guessed: 3})


def test_models_that_no_registry_lists_are_asked_about_the_texts_they_wrote(server, own_store):
    fake = server(reply=lambda body: f"{body['model']} writes {default_reply(body)}.")
    texts = se.generate_texts(["openai:new", "openai:newer"], 2)
    asked = se.collect_predictions(texts, tasks="binary_self", dry_run=True)
    assert [*zip(asked["model"], asked["to_buy"], strict=True)] == [("openai:new", 4), ("openai:newer", 4)]
    rows = texts[["author", "prompt", "text"]]  # as a table made elsewhere, in which nothing says that they are models
    with pytest.raises(InputError, match="None of the authors"):
        se.collect_predictions(rows)
    assert len(fake.ledger) == 4


@pytest.mark.parametrize(
    ("ask", "field", "name"),
    [
        (lambda arms: se.judge(se.converse("sim/talker", people=1), "sim/juror-stern", arms), "arm", "reask"),
        (lambda arms: se.ask_identity("sim/identity-wavers", arms=arms, limit=1), "arm", "neutral"),
        (lambda tasks: se.collect_predictions(TWO, tasks=tasks), "task_type", "lineup"),
        (lambda types: se.ask_existence("sim/existence-knows", answer_types=types, names=1), "answer_type", "likert"),
        (lambda names: se.judge(se.converse("sim/talker", people=1), "sim/juror-stern", "independent", personas=names),
         "persona", "linguist"),
        (lambda names: se.ask_identity("sim/identity-drifts", attacker="sim/attacker", limit=1, strategies=names),
         "strategy", "no pressure"),
    ],
)  # fmt: skip
def test_one_name_stands_for_a_list_of_one_also_as_papermill_passes_a_list(ask, field, name):
    for given in (name, [name], json.dumps([name])):
        assert {*ask(given)[field].dropna()} <= {name} and len(ask(given))


@pytest.mark.parametrize("words", [0, 150])
def test_the_ends_of_a_range_are_in_it(words):
    talks = se.converse("sim/talker", "sim/talker", turns=1)
    assert se.judge(talks, "sim/juror-stern", "independent", words=words)["score"].notna().all()


@pytest.mark.parametrize("words", [151, -1, 2.5, True, "many"])
def test_what_is_beyond_a_range_or_no_whole_number_is_refused(words):
    with pytest.raises(InputError, match=f"`words` must be a whole number .*at most 150, got {words!r}"):
        se.judge(se.converse("sim/talker", "sim/talker", turns=1), "sim/juror-stern", "independent", words=words)
