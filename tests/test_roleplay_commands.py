"""`selfeval roleplay` and `selfeval compare`: the files they write, and what a failure or a bad name leaves.

The file of `compare` is frozen in `tests/golden/roleplay`.
"""

import hashlib
import json

import pytest
from click.testing import CliRunner

from selfeval import cli
from selfeval.roleplay.transcripts import read_conversations, read_verdicts

JURY = "openai:j1,openai:j2,openai:j3"


pytestmark = pytest.mark.usefixtures("own_store")


def selfeval(name, out, typed=None, **options):
    named = {"role_play_llm_model": "openai:a", "interrogator_llm_model": "openai:q", "jury_llm_models": JURY} | options
    parts = [str(part) for key, value in named.items() for part in (f"--{key.replace('_', '-')}", value)]
    return CliRunner().invoke(cli.main, [name, "--yes", "--output_file_path", str(out), *parts], input=typed)


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
    assert [len(options["jury_llm_models"]) for options in seen] == [3, 3]


def test_a_jury_of_one_without_any_score_has_no_average(server, tmp_path):
    server(reply=lambda body: "no" if "response_format" in body else reply(body))
    result = selfeval("compare", tmp_path / "d.json", max_turns=1, jury_llm_models="openai:a")
    found = written(tmp_path / "d.json")
    assert result.exit_code == 0 and found["summary"] == dict.fromkeys(found["summary"], None)
    assert found["turns"][0]["new_eval"]["per_juror_scores"] == [None] * 3
    assert found["seats"]["chateval_debate_one_by_one"][0]["persona"] == "linguist"


def test_a_model_named_three_times_takes_three_seats(server, tmp_path):
    """Its votes are samples of their own: three calls, not one reply three times."""
    fake = server(reply=reply)
    result = selfeval("compare", tmp_path / "c.json", max_turns=1, jury_llm_models=",".join(["openai:j1"] * 3))
    assert "One model, openai:j1, sits in several seats: its votes are samples of one opinion" in result.stdout
    rows, _ = read_verdicts(tmp_path / "c.json")
    assert {row["juror"] for row in rows} == {"openai:j1", "openai:j1 #2", "openai:j1 #3"}
    assert len(fake.ledger) == 2 + 3 + 6


def test_an_answer_without_text_costs_no_jury_and_a_failed_one_is_tried_again(server, tmp_path):
    fake = server(reply=reply, faults=lambda i, body: "empty-content" if body["model"] == "a" and i < 2 else None)
    assert selfeval("roleplay", tmp_path / "r.json", max_turns=2).exit_code == 0
    first, second = written(tmp_path / "r.json")["interaction"]
    assert (first["status"], first["answer"], first["rounds"]) == ("empty", "", [])
    assert first["jury_scores"] == [None] * 3 and first["avg_human_score"] is None and len(second["jury_scores"]) == 3
    fake.faults = lambda i, body: "400" if body["model"] == "q" and len(body["messages"]) > 2 else None
    result, calls = selfeval("roleplay", tmp_path / "s.json", max_turns=2, strategy="customer"), len(fake.ledger)
    assert result.exit_code == 1 and "the interrogator's message is error: HTTP 400" in result.stderr
    assert written(tmp_path / "s.json")["status"] == "error"
    fake.faults = ()
    assert selfeval("roleplay", tmp_path / "s.json", max_turns=2, strategy="customer").exit_code == 0
    assert len(written(tmp_path / "s.json")["interaction"]) == 2 and len(fake.ledger) == calls + 8


def test_what_is_wrong_is_one_sentence_and_costs_nothing(server, tmp_path):
    fake, wrong = server(reply=reply), {"`agent-persona` must be one of support, ": {"agent_persona": "suport"}}
    wrong |= {"`jurors` must name": {"jury_llm_models": " , "}}
    wrong |= {"set ANTHROPIC_API_KEY": {"jury_llm_models": "openai:a,anthropic:b"}}
    for sentence, options in wrong.items():
        result = selfeval("compare", tmp_path / "c.json", **options)
        assert result.exit_code == 1 and sentence in result.output and "Traceback" not in result.output
    assert fake.ledger == [] and not (tmp_path / "c.json").exists()


# files that are there -------------------------------------------------------------------------------------------------


def test_what_a_person_typed_is_not_asked_for_again_and_never_lost(server, tmp_path):
    fake, out, options = server(reply=reply), tmp_path / "r.json", {"agent_persona": "person", "max_turns": 3}
    stopped = selfeval("roleplay", out, **options, typed="one\ntwo\n")
    assert stopped.exit_code == 1 and "the agent's message is error: the input ended" in stopped.stderr
    before, calls = out.read_bytes(), len(fake.ledger)
    assert selfeval("roleplay", out, **options, typed="three\n").exit_code == 0
    assert [row["answer"] for row in written(out)["interaction"]] == ["one", "two", "three"]
    assert len(fake.ledger) == calls + 6 and before != out.read_bytes()
    [talk] = read_conversations(out)
    assert (talk.source, talk.agent_model) == ("human", "human")  # who types is no model


@pytest.mark.parametrize("content", ["mine", "[]", '{"messages": 5}', "[" * 10_000, None])
def test_no_other_file_is_ever_overwritten(server, tmp_path, content):
    """Somebody else's, one of another set-up, and a folder."""
    fake, out = server(reply=reply), tmp_path / "notes.txt"
    if content is None:
        assert selfeval("roleplay", out, max_turns=1).exit_code == 0
    else:
        out.write_text(content)
    before, calls = out.read_bytes(), len(fake.ledger)
    for name in ("roleplay", "compare"):
        result = selfeval(name, out, max_turns=1, seed=7)
        assert result.exit_code == 1 and "is no output of this command with these options" in result.output
    assert "cannot be written" in selfeval("roleplay", tmp_path).output
    assert out.read_bytes() == before and len(fake.ledger) == calls
