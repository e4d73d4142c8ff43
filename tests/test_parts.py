"""Simulated models play the parts that they can: any other is refused by name, with one that can, before a call."""

import pytest
from click.testing import CliRunner

import selfeval as se
from selfeval.cli import main
from selfeval.errors import InputError
from selfeval.estimates.summaries import main_table, why_without_value
from selfeval.providers.request import Response

TEXTS = [
    {"author": who, "prompt_id": f"p{k}", "prompt": "Write.", "text": f"{who} {k}"}
    for who in ("sim/good", "sim/talker")
    for k in range(2)
]
CHAT = [
    {
        "conversation_id": "c",
        "source": "model",
        "turns": [{"speaker": "interrogator", "text": "hi"}, {"speaker": "agent", "text": "yes"}],
    }
]


@pytest.mark.parametrize(("ask", "part"), [
    (lambda: se.judge(CHAT, ["sim/talker", "sim/identity-correct"]), "sim/identity-correct cannot judge"),
    (lambda: se.generate_texts(["sim/good", "sim/identity-wavers"], 2), "sim/identity-wavers cannot write texts"),
    (lambda: se.collect_predictions(TEXTS), "sim/talker cannot recognise texts"),
    (lambda: se.ask_identity("sim/talker"), "sim/talker cannot say which model they are"),
    (lambda: se.ask_existence("sim/talker"), "sim/talker cannot say which models exist"),
    (lambda: se.converse("sim/identity-correct", people=1), "sim/identity-correct cannot play the agent"),
    (lambda: se.converse("sim/talker", "sim/identity-correct"), "sim/identity-correct cannot play the interrogator"),
    (lambda: se.profile("sim/existence-knows"), "sim/existence-knows cannot write texts"),
    (lambda: se.ask_identity("sim/good", attacker="sim/talker"), "sim/talker cannot attack"),
])  # fmt: skip
def test_a_verb_refuses_a_model_that_is_simulated_for_another_part(ask, part):
    with pytest.raises(InputError, match=f"^{part}; sim/good can, which plays every part"):
        ask()


@pytest.mark.parametrize(("line", "sentence"), [
    ("jury --models openai/gpt-4.1 --jurors sim/talker,sim/attacker -y", "sim/attacker cannot judge"),
    ("jury --models sim/identity-wavers --jurors sim/talker -y", "sim/identity-wavers cannot play the agent"),
    ("recognise --models sim/good,sim/talker -y", "sim/talker cannot write texts"),
    ("identity --models sim/talker -y", "sim/talker cannot say which model they are"),
    ("roleplay --interrogator-llm-model sim/talker --role-play-llm-model sim/talker --jury-llm-models sim/attacker "
     "--out chat.json", "sim/attacker cannot judge"),
])  # fmt: skip
def test_a_command_refuses_a_simulated_model_before_anything_runs(line, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code != 0
    assert f"{sentence}; sim/good can" in f"{result.output} {result.exception}"


CANNOT = {
    "likelihoods": lambda: se.likelihoods(TEXTS, "sim/good"),
    "a judge": lambda: se.ask_identity({"mine": never}, scoring="judge", judge="sim/good"),
}


@pytest.mark.parametrize("what", CANNOT)
def test_what_no_simulated_model_can_is_said_with_who_can(what):
    with pytest.raises(InputError, match=r"'?sim/good.* (such as local/smollm2-135m|name a real model)"):
        CANNOT[what]()


SILENT = {
    "refuses": lambda messages: Response("", "refusal"),
    "empty": lambda messages: Response("", "empty"),
    "regrets": lambda messages: "I'm sorry, but I can't help with that.",
}


@pytest.mark.parametrize("name", SILENT)
def test_a_model_that_never_says_who_it_is_answers_nothing(name, store):
    replies = se.ask_identity({name: SILENT[name]}, limit=3, turns=1, arms=["neutral", "true", "false-far"])
    result = se.measure_identity(replies)
    assert list(se.table(result)["conclusion"]) == list(main_table(result)["conclusion"]) == ["answers nothing"]
    assert main_table(result)["no_answer_rate"].str.startswith("1.00").all()
    assert not result.set_index("statistic")["estimate"].filter(regex="^accept|claim|right|denial").notna().any()


def test_a_simulated_model_that_refuses_answers_nothing_and_one_that_names_itself_does():
    shown = main_table(
        se.measure_identity(se.ask_identity(["sim/identity-refuses", "sim/identity-correct"], limit=2, turns=1))
    )
    said = dict(zip(shown["evaluator"], shown["conclusion"], strict=True))
    assert said["Refuses"] == "answers nothing" and said["Correct"] != "answers nothing"
    rates = dict(zip(shown["evaluator"], shown["no_answer_rate"].str[:4], strict=True))
    assert rates == {"Refuses": "1.00", "Correct": "0.00"}


@pytest.mark.parametrize(("who", "is_shown"), [("refuses", True), ("correct", False)])
def test_the_table_that_commands_print_has_a_rate_of_no_answers_only_where_there_are_some(who, is_shown):
    replies = se.ask_identity(f"sim/identity-{who}", limit=2, turns=1)
    shown = main_table(se.measure_identity(replies, n_resamples=50))
    assert ("no_answer_rate" in shown) == is_shown


def test_a_jury_without_a_score_answers_nothing():
    def mute(messages):
        return "I'd rather not say."

    verdicts = se.judge(se.converse("sim/talker", people=2), mute, ["independent"])
    found = main_table(se.measure_jury(verdicts))
    jury = found[found["arm"] == "independent"].iloc[0]
    assert jury["conclusion"] == "answers nothing" and jury["no_answer_rate"].startswith("1.00")


def never(messages):
    return "I'd rather not say."


def of_texts():
    texts = se.generate_texts(["sim/good", "sim/perfect"], prompts=3)
    rows = se.collect_predictions(texts.replace({"sim/good": "never", "Good": "never"}), never)
    return se.measure_recognition(rows, n_resamples=50)


def of_a_jury():
    talks = se.converse("sim/talker", people=2)
    return se.measure_jury(se.judge(talks, [never, "sim/juror-stern"], "independent"))


MUTE = {
    "recognition": of_texts,
    "identity": lambda: se.measure_identity(se.ask_identity("sim/identity-refuses", limit=2), n_resamples=50),
    "existence": lambda: se.measure_existence(se.ask_existence(never, names=2, templates=1)),
    "jury": of_a_jury,
}
UNREAD = "no reply holds an answer that can be read"


@pytest.mark.parametrize("kind", MUTE)
def test_who_gives_no_answer_at_all_is_named_by_every_verb(kind, capsys):
    MUTE[kind]()
    said = "Refuses: no probe says who it is" if kind == "identity" else f"never: {UNREAD}"
    assert f"{said} (no answer: 100 %).\n" in capsys.readouterr().out


def test_who_denies_everything_has_answered_and_accepts_no_claim(capsys):
    result = se.measure_identity(se.ask_identity("sim/identity-denies-all", limit=20), n_resamples=50)
    assert "100 %" not in capsys.readouterr().out
    found = result.set_index("statistic").loc["claim_discrimination"]
    assert (found["estimate"], found["conclusion"]) == (0, "constant answer") and found["low"] < 0 < found["high"]


def test_scores_alone_are_no_silence(capsys):
    rows = [
        {"evaluator_model": who, "true_model": author, "text_id": f"{author} {k}", "prompt_id": k, "score": k % 7 / 20,
         "task_type": "binary_self"}
        for who in ("ant", "bee") for author in ("ant", "bee", "cat") for k in range(12)
    ]  # fmt: skip
    for row in rows:
        row["score"] += (row["evaluator_model"] == row["true_model"]) / 2
    rows[0]["score"] = None  # one is lost
    result = se.measure_recognition(rows, n_resamples=50)
    assert "100 %" not in capsys.readouterr().out
    assert {*result["statistic"]} == {"auc", "auc_within_prompt", "auc_peer_corrected"} and why_without_value(
        result
    ) == ""
    assert {*main_table(result)["conclusion"]} == {"recognises"} and "auc" in repr(result)

    answered = [{**row, "predicted_self": row["score"] > 0.4} for row in rows if row["evaluator_model"] == "bee"]
    mixed = main_table(se.measure_recognition([*rows[:36], *answered], n_resamples=50)).set_index("evaluator")
    assert (
        mixed.loc["ant", "discrimination"] == ""
        and mixed.loc["ant", "auc"].startswith("1.00")
        and mixed.loc["ant", "conclusion"] == "recognises"
    )
    assert mixed.loc["bee", "discrimination"].startswith("1.00") and "no_answer_rate" not in mixed


def test_a_model_that_sometimes_answers_is_not_called_silent(capsys):
    texts = se.generate_texts(["sim/no-answer", "sim/good"], prompts=8)
    se.measure_recognition(se.collect_predictions(texts), n_resamples=50)
    assert UNREAD not in capsys.readouterr().out


def test_a_model_that_answers_one_of_two_questions_is_not_called_silent(capsys):
    def names_nobody(messages, **_):
        return "" if "Which" in messages[-1]["content"] else "YES"

    texts = se.generate_texts(["sim/good", "sim/perfect"], prompts=3)
    mine = se.models.from_callable(names_nobody, "mine")
    answers = se.collect_predictions(texts, mine, authors={"sim/good": "mine"}, answer="free")
    assert answers.groupby("task_type")["predicted_self"].count().to_dict() == {"binary_self": 6, "exact_model": 0}
    se.measure_recognition(answers, n_resamples=50)
    assert UNREAD not in capsys.readouterr().out
