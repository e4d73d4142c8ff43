"""`selfeval roleplay` and `selfeval compare`: the files they write, and what a failure or a bad name leaves.

The files themselves are frozen in `tests/golden/roleplay`.
"""

import hashlib
import itertools
import json
import os

import pytest
from click.testing import CliRunner

from selfeval import cli
from selfeval.roleplay.transcripts import read_conversations

JURY = "openai:j1,openai:j2,openai:j3"


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))


def selfeval(name, out, *flags, typed=None, **options):
    named = {"role_play_llm_model": "openai:a", "interrogator_llm_model": "openai:q", "jury_llm_models": JURY} | options
    parts = [str(part) for key, value in named.items() for part in (f"--{key.replace('_', '-')}", value)]
    return CliRunner().invoke(cli.main, [name, "--output_file_path", str(out), *parts, *flags], input=typed)


def written(path):
    return json.loads(path.read_text(encoding="utf-8"))


def reply(body):
    """Return a juror's verdict or a message; equal requests have equal replies."""
    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    if "response_format" in body:
        return json.dumps({"reason": f"because {digest[:4]}", "human_score": f"{int(digest[:2], 16) % 11 / 10:g}"})
    return f"message {digest[:6]}"


def test_the_file_holds_the_last_round_and_a_second_run_costs_nothing(server, tmp_path):
    fake, out = server(reply=reply), tmp_path / "r.json"
    result = selfeval("roleplay", out, max_turns=3)
    assert result.exit_code == 0, result.output
    found, before = written(out), out.read_bytes()
    assert list(found)[:4] == ["role_play_llm_model", "interrogator_llm_model", "jury", "interaction"]
    for row in found["interaction"]:
        last = {statement["juror"]: statement["score"] for statement in row["rounds"][-1]}
        assert row["jury_scores"] == [last[model] for model in found["jury"]] and len(row["rounds"]) == 2
        assert row["avg_human_score"] == pytest.approx(sum(row["jury_scores"]) / 3)
    assert "turn 3  chateval_debate_one_by_one" in result.output and "24 model calls" in result.output
    assert "jury on answer 3, debate: " in result.output and len(fake.ledger) == 3 * (2 + 2 * 3)
    assert selfeval("roleplay", out, max_turns=3).exit_code == 0
    assert out.read_bytes() == before and len(fake.ledger) == 24


def test_the_defaults_are_the_published_ones(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(cli, "_play", lambda arms, **options: seen.append(options))
    for command in ("roleplay", "compare"):
        CliRunner().invoke(cli.main, [command, "--output_file_path", str(tmp_path / "x.json")])
    names = ("role_play_llm_model", "interrogator_llm_model", "max_turns", "debate_rounds")
    assert [tuple(options[name] for name in names) for options in seen] == [
        ("deepseek/deepseek-v3.2", "openai/gpt-4o", 7, 2),
        ("meta-llama/llama-3.1-8b-instruct", "meta-llama/llama-3.1-8b-instruct", 3, 2),
    ]
    assert "openai/chatgpt-4o-latest" in seen[0]["jury"] and [options["jury"].count(",") for options in seen] == [2, 2]


def test_a_jury_without_any_score_has_no_average(server, tmp_path):
    server(reply=lambda body: "no" if "response_format" in body else reply(body))
    result = selfeval("compare", tmp_path / "d.json", max_turns=1, jury_llm_models="openai:k")
    found = written(tmp_path / "d.json")
    assert result.exit_code == 0 and found["summary"] == dict.fromkeys(found["summary"], None)
    assert found["turns"][0]["new_eval"]["per_juror_scores"] == [None] * 3


def test_one_juror_takes_three_personas_and_is_warned_of_as_are_relatives(server, tmp_path):
    server(reply=reply)
    result = selfeval("roleplay", tmp_path / "r.json", max_turns=1, jury_llm_models="openai:a")
    found = written(tmp_path / "r.json")
    assert result.exit_code == 0 and found["jury"] == ["openai:a"] and len(found["interaction"][0]["jury_scores"]) == 3
    assert [seat["persona"] for seat in found["seats"]] == ["linguist", "psychologist", "manager"]
    assert "one model with itself" in result.stderr and "judged by its own family" in result.stderr


def test_a_model_named_three_times_takes_three_seats(server, tmp_path):
    """Its votes are samples of their own: three calls, not one reply three times."""
    replies = itertools.count()

    def numbered(body):
        score = {"reason": "So.", "human_score": f"{next(replies) % 10 / 10:.2f}"}
        return json.dumps(score) if "response_format" in body else reply(body)

    server(reply=numbered)
    result = selfeval("compare", tmp_path / "c.json", max_turns=1, jury_llm_models=",".join(["openai:j1"] * 3))
    assert "One model, openai:j1, takes 3 of 3 seats: its votes are samples of one opinion" in result.stderr
    found, names = written(tmp_path / "c.json"), ["openai:j1", "openai:j1 #2", "openai:j1 #3"]
    assert [seat["juror"] for seat in found["seats"]["independent"]] == names
    [turn] = found["turns"]
    assert len(set(turn["old_eval"]["per_juror_scores"])) == 3
    assert sorted(row["juror"] for row in turn["new_eval"]["rounds"][1]) == names


def test_an_answer_without_text_has_null_scores_and_costs_no_jury(server, tmp_path):
    def strikes(i, body):
        return "empty-content" if body["model"] == "a" and len(body["messages"]) == 2 else None

    fake = server(reply=reply, faults=strikes)
    assert selfeval("roleplay", tmp_path / "r.json", max_turns=2).exit_code == 0
    first, second = written(tmp_path / "r.json")["interaction"]
    assert (first["status"], first["answer"], first["rounds"]) == ("empty", "", [])
    assert first["jury_scores"] == [None] * 3 and first["avg_human_score"] is None
    assert len(second["jury_scores"]) == 3 and len(fake.ledger) == 4 + 6


def test_a_conversation_that_cannot_go_on_is_kept_told_and_tried_again(server, tmp_path):
    def strikes(i, body):
        return "400" if body["model"] == "q" and len(body["messages"]) > 2 else None

    fake = server(reply=reply, faults=strikes)
    result, calls = selfeval("roleplay", tmp_path / "r.json", max_turns=2), len(fake.ledger)
    found = written(tmp_path / "r.json")
    assert result.exit_code == 1 and "the interrogator's message is error: HTTP 400" in result.stderr
    assert found["status"] == "error" and [len(row["jury_scores"]) for row in found["interaction"]] == [3]
    fake.faults = ()
    assert selfeval("roleplay", tmp_path / "r.json", max_turns=2).exit_code == 0
    assert len(written(tmp_path / "r.json")["interaction"]) == 2 and len(fake.ledger) == calls + 8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"agent_persona": "suport"}, "`agent-persona` 'suport' is unknown; did you mean 'support'?"),
        ({"jury_llm_models": " , "}, "must name at least one, got []"),
        ({"jury_llm_models": "openai:a,anthropic:b"}, "set ANTHROPIC_API_KEY"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_costs_nothing(server, tmp_path, options, sentence):
    fake = server(reply=reply)
    result = selfeval("compare", tmp_path / "c.json", **options)
    assert result.exit_code == 1 and sentence in result.output and "Traceback" not in result.output
    assert fake.ledger == [] and not (tmp_path / "c.json").exists()


def test_a_script_needs_no_model_and_feedback_reaches_the_interrogator_alone(server, tmp_path):
    fake = server(reply=reply)
    assert selfeval("roleplay", tmp_path / "r.json", "--feedback", agent_persona="eliza", max_turns=2).exit_code == 0
    found = written(tmp_path / "r.json")
    assert found["role_play_llm_model"] == "script/eliza"
    asked = [entry["body"]["messages"][-1]["content"] for entry in fake.ledger if entry["body"]["model"] == "q"]
    score = found["interaction"][0]["avg_human_score"]
    assert len(asked) == 2 and f"gave the last answer {score:.2f}" in asked[1]
    assert sum("gave the last answer" in json.dumps(entry["body"]) for entry in fake.ledger) == 1


# files that are there -------------------------------------------------------------------------------------------------


def test_what_a_person_typed_is_not_asked_for_again_and_never_lost(server, tmp_path, monkeypatch):
    fake, out = server(reply=reply), tmp_path / "r.json"
    options = {"agent_persona": "person", "max_turns": 3}
    stopped = selfeval("roleplay", out, **options, typed="one\ntwo\n")
    assert stopped.exit_code == 1 and "the agent's message is error: the input ended" in stopped.stderr
    before, store = out.read_bytes(), os.environ["SELFEVAL_STORE"]
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "another.sqlite"))
    fake.faults = lambda i, body: "400" if body["model"] == "q" and len(body["messages"]) > 2 else None
    assert selfeval("roleplay", out, **options, typed="").exit_code == 1  # it does not come as far
    assert out.read_bytes() == before
    monkeypatch.setenv("SELFEVAL_STORE", store)
    fake.faults, calls = (), len(fake.ledger)
    assert selfeval("roleplay", out, **options, typed="three\n").exit_code == 0
    assert [row["answer"] for row in written(out)["interaction"]] == ["one", "two", "three"]
    assert len(fake.ledger) == calls + 6
    [talk] = read_conversations(out)
    assert (talk.source, talk.agent_model) == ("human", "human")  # who types is no model
    assert written(out)["interaction"][0]["rounds"][0][0]["agent"] == "human"


def test_a_file_of_another_set_up_is_overwritten_with_force_alone(server, tmp_path):
    fake, out = server(reply=reply), tmp_path / "r.json"
    assert selfeval("roleplay", out, max_turns=1).exit_code == 0
    before, calls = out.read_bytes(), len(fake.ledger)
    for other, change, said in (
        ("roleplay", {"seed": 7}, "`seed` 0 there and 7 here"),
        ("roleplay", {"role_play_llm_model": "openai:b"}, "`role_play_llm_model` 'openai:a' there and 'openai:b' here"),
        ("compare", {}, "the other command"),
    ):
        result = selfeval(other, out, **{"max_turns": 1} | change)
        assert result.exit_code == 1 and said in result.output and "add --force to overwrite it" in result.output
    assert out.read_bytes() == before and len(fake.ledger) == calls
    assert selfeval("compare", out, "--force", max_turns=1).exit_code == 0 and "old_eval" in out.read_text()


@pytest.mark.parametrize("content", ["mine", "[]", '{"messages": 5}', "[" * 10_000])
def test_a_file_of_somebody_elses_is_never_overwritten(server, tmp_path, content):
    fake, notes = server(reply=reply), tmp_path / "notes.txt"
    notes.write_text(content)
    other = selfeval("roleplay", notes, "--force")
    assert other.exit_code == 1 and "no file of this command" in other.output
    assert notes.read_text() == content and fake.ledger == []


def test_an_output_that_cannot_be_written_is_said_before_anything_is_asked(server, tmp_path):
    fake = server(reply=reply)
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file" / "r.json", tmp_path / ("x" * 250)):
        result = selfeval("roleplay", out)
        assert result.exit_code == 1 and "cannot be written" in result.output and "Traceback" not in result.output
    assert fake.ledger == []
