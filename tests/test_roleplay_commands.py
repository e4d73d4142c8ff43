"""`selfeval roleplay` and `selfeval compare`: the files they write, and what a kill, a failure or a bad name leaves."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from conftest import FULL

from selfeval import DATA, cli
from selfeval.asking.store import Store
from selfeval.roleplay import cast

JURY = "openai:j1,openai:j2,openai:j3"
NEVER_EQUAL = ("request_id", "latency", "cost")


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))


def selfeval(*arguments, **options):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments], **options)


def arguments(out, **options):
    named = {"role-play-llm-model": "openai:a", "interrogator-llm-model": "openai:q", "jury-llm-models": JURY} | options
    return ["--output_file_path", str(out), *(part for k, v in named.items() for part in (f"--{k}", str(v)))]


def reply(body):
    """Return a juror's verdict or a message; equal requests have equal replies."""
    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    if "response_format" in body:
        return json.dumps({"reason": f"because {digest[:4]}", "human_score": f"{int(digest[:2], 16) % 11 / 10:g}"})
    return f"message {digest[:6]}"


def comparable(value):
    """Return a file's content without what no two runs share."""
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items() if k not in NEVER_EQUAL}
    return [comparable(v) for v in value] if isinstance(value, list) else value


def test_the_role_play_writes_the_published_file(server, tmp_path, monkeypatch):
    fake = server(reply=reply)
    monkeypatch.chdir(tmp_path)
    result = selfeval("roleplay", *arguments("bare.json", **{"max-turns": 3, "debate-rounds": 2}))
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "bare.json").read_text())
    assert list(found)[:4] == ["role_play_llm_model", "interrogator_llm_model", "jury", "interaction"]
    assert found["role_play_llm_model"] == "openai:a" and found["jury"] == JURY.split(",")
    assert [list(row)[:4] for row in found["interaction"]] == [["turn", "question", "answer", "jury_scores"]] * 3
    for number, row in enumerate(found["interaction"], 1):
        assert row["turn"] == number and row["question"].startswith("message") and row["answer"].startswith("message")
        assert [len(statements) for statements in row["rounds"]] == [3, 3]
        last = {statement["juror"]: statement["score"] for statement in row["rounds"][-1]}
        assert row["jury_scores"] == [last[model] for model in found["jury"]]
        assert row["avg_human_score"] == pytest.approx(sum(row["jury_scores"]) / 3)
    assert len(fake.ledger) == 3 * (2 + 2 * 3)
    assert "turn 3  chateval_debate_one_by_one" in result.output and "24 model calls" in result.output
    assert "jury on answer 3, debate: " in result.output
    before = (tmp_path / "bare.json").read_bytes()
    again = selfeval("roleplay", *arguments("bare.json", **{"max-turns": 3, "debate-rounds": 2}))
    assert again.exit_code == 0 and (tmp_path / "bare.json").read_bytes() == before and len(fake.ledger) == 24


def test_the_defaults_are_the_published_ones(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(cli, "_play", lambda arms, **options: seen.append(options))
    for command in ("roleplay", "compare"):
        assert selfeval(command, "--output_file_path", tmp_path / "x.json").exit_code == 0
    names = ("role_play_llm_model", "interrogator_llm_model", "max_turns", "debate_rounds")
    assert [tuple(options[name] for name in names) for options in seen] == [
        ("deepseek/deepseek-v3.2", "openai/gpt-4o", 7, 2),
        ("meta-llama/llama-3.1-8b-instruct", "meta-llama/llama-3.1-8b-instruct", 3, 2),
    ]
    assert "openai/chatgpt-4o-latest" in seen[0]["jury"] and [options["jury"].count(",") for options in seen] == [2, 2]
    assert selfeval("roleplay").exit_code == 2


def test_a_jury_without_any_score_has_no_average(server, tmp_path):
    server(reply=lambda body: "no" if "response_format" in body else reply(body))
    options = {"max-turns": 1, "seed": 1, "jury-llm-models": "openai:k"}
    result = selfeval("compare", *arguments(tmp_path / "d.json", **options))
    found = json.loads((tmp_path / "d.json").read_text())
    assert result.exit_code == 0 and found["summary"] == dict.fromkeys(found["summary"], None)
    assert found["turns"][0]["new_eval"]["per_juror_scores"] == [None] * 3


def test_one_juror_takes_three_personas_and_is_warned_of_as_are_relatives(server, tmp_path):
    server(reply=reply)
    result = selfeval("roleplay", *arguments(tmp_path / "r.json", **{"max-turns": 1, "jury-llm-models": "openai:a"}))
    found = json.loads((tmp_path / "r.json").read_text())
    assert result.exit_code == 0 and found["jury"] == ["openai:a"] and len(found["interaction"][0]["jury_scores"]) == 3
    assert [seat["persona"] for seat in found["seats"]] == ["linguist", "psychologist", "manager"]
    assert "one model with itself" in result.stderr and "judged by its own family" in result.stderr


def test_an_answer_without_text_has_null_scores_and_costs_no_jury(server, tmp_path):
    def strikes(i, body):
        return "empty-content" if body["model"] == "a" and len(body["messages"]) == 2 else None

    fake = server(reply=reply, faults=strikes)
    result = selfeval("roleplay", *arguments(tmp_path / "r.json", **{"max-turns": 2}))
    first, second = json.loads((tmp_path / "r.json").read_text())["interaction"]
    assert result.exit_code == 0 and first["status"] == "empty" and first["answer"] == ""
    assert first["jury_scores"] == [None] * 3 and first["avg_human_score"] is None and first["rounds"] == []
    assert len(second["jury_scores"]) == 3 and len(fake.ledger) == 4 + 6


def test_a_conversation_that_cannot_go_on_is_kept_told_and_tried_again(server, tmp_path):
    def strikes(i, body):
        return "400" if body["model"] == "q" and len(body["messages"]) > 2 else None

    fake = server(reply=reply, faults=strikes)
    result = selfeval("roleplay", *arguments(tmp_path / "r.json", **{"max-turns": 2}))
    found = json.loads((tmp_path / "r.json").read_text())
    assert result.exit_code == 1 and "the interrogator's message is error: HTTP 400" in result.stderr
    assert found["status"] == "error" and len(found["interaction"]) == 1
    assert len(found["interaction"][0]["jury_scores"]) == 3
    calls = len(fake.ledger)
    fake.faults = ()
    assert selfeval("roleplay", *arguments(tmp_path / "r.json", **{"max-turns": 2})).exit_code == 0
    assert len(json.loads((tmp_path / "r.json").read_text())["interaction"]) == 2 and len(fake.ledger) == calls + 8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"agent-persona": "suport"}, "`agent-persona` 'suport' is unknown; did you mean 'support'?"),
        ({"jury-llm-models": " , "}, "must name at least one, got []"),
        ({"role-play-llm-model": "nobody"}, "Unknown model 'nobody'"),
        ({"jury-llm-models": "openai:a,anthropic:b"}, "set ANTHROPIC_API_KEY"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_costs_nothing(server, tmp_path, options, sentence):
    fake = server(reply=reply)
    result = selfeval("compare", *arguments(tmp_path / "c.json", **options))
    assert result.exit_code == 1 and sentence in result.output and "Traceback" not in result.output
    assert fake.ledger == [] and not (tmp_path / "c.json").exists()


def test_a_script_needs_no_model_and_feedback_reaches_the_interrogator(server, tmp_path):
    fake = server(reply=reply)
    options = {"agent-persona": "eliza", "max-turns": 2}
    result = selfeval("roleplay", *arguments(tmp_path / "r.json", **options), "--feedback")
    found = json.loads((tmp_path / "r.json").read_text())
    assert result.exit_code == 0 and found["role_play_llm_model"] == "script/eliza"
    asked = [entry["body"]["messages"][-1]["content"] for entry in fake.ledger if entry["body"]["model"] == "q"]
    score = found["interaction"][0]["avg_human_score"]
    assert len(asked) == 2 and f"gave the last answer {score:.2f}" in asked[1]


def test_what_a_person_typed_is_not_asked_for_again(server, tmp_path):
    fake = server(reply=reply)
    options = {"agent-persona": "person", "strategy": "fixed", "max-turns": 3}
    stopped = selfeval("roleplay", *arguments(tmp_path / "r.json", **options), input="one\ntwo\n")
    assert stopped.exit_code == 1 and "the agent's message is error: the input ended" in stopped.stderr
    calls = len(fake.ledger)
    again = selfeval("roleplay", *arguments(tmp_path / "r.json", **options), input="three\n")
    found = json.loads((tmp_path / "r.json").read_text())
    assert again.exit_code == 0 and [row["answer"] for row in found["interaction"]] == ["one", "two", "three"]
    assert found["interaction"][0]["question"] == cast.strategies()["fixed"].questions[0]
    assert found["role_play_llm_model"] == "person" and len(fake.ledger) == calls + 6
    other = selfeval("roleplay", *arguments(tmp_path / "r.json", **options | {"seed": 1}), input="x\n")
    assert other.exit_code == 1 and "with what somebody typed; choose" in other.output


def test_what_a_person_typed_outlives_a_run_that_does_not_come_as_far(server, tmp_path, monkeypatch):
    fake, out = server(reply=reply), tmp_path / "r.json"
    options = {"agent-persona": "person", "max-turns": 3}
    selfeval("roleplay", *arguments(out, **options), input="one\ntwo\n")
    before = out.read_bytes()
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "another.sqlite"))
    fake.faults = lambda i, body: "400" if body["model"] == "q" and len(body["messages"]) > 2 else None
    assert selfeval("roleplay", *arguments(out, **options), input="").exit_code == 1
    assert out.read_bytes() == before and [row["answer"] for row in json.loads(before)["interaction"]][:2] == [
        "one",
        "two",
    ]


@pytest.mark.parametrize("content", ["mine", "[]", '{"messages": 5}', "[" * 10_000, '{"config": 5}'])
@pytest.mark.parametrize("persona", ["support", "person"])
def test_a_file_of_somebody_elses_is_never_overwritten(server, tmp_path, content, persona):
    fake, notes = server(reply=reply), tmp_path / "notes.txt"
    notes.write_text(content)
    other = selfeval("roleplay", *arguments(notes, **{"agent-persona": persona}), input="x\n")
    assert other.exit_code == 1 and "no file of this command" in other.output
    assert notes.read_text() == content and fake.ledger == []


def test_an_output_that_cannot_be_written_is_said_before_anything_is_asked(server, tmp_path):
    fake = server(reply=reply)
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file" / "r.json", tmp_path / ("x" * 250)):
        result = selfeval("roleplay", *arguments(out))
        assert result.exit_code == 1 and "cannot be written" in result.output and "Traceback" not in result.output
        identity = ["identity", DATA / "identity" / "published.json", "--model", "openai:gpt-4o", "--output", out]
        said = "is a directory" if out == tmp_path else "cannot be written"
        assert said in selfeval(*identity).output
    assert fake.ledger == []


# kills ----------------------------------------------------------------------------------------------------------------


def process(store, command, out, **options):
    environment = os.environ | {"SELFEVAL_STORE": str(store), "TQDM_DISABLE": "1"}
    code = "from selfeval.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, command, *arguments(out, **options)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def asked(request):
    return request["model"], json.dumps(request["messages"], sort_keys=True)


@pytest.mark.parametrize(("command", "times"), [("roleplay", 1)] + [("compare", 2)] * FULL)
@pytest.mark.fault("kill")
def test_killed_and_run_again_it_ends_with_an_equal_file_and_repeats_at_most_what_was_in_flight(
    command, times, server, tmp_path, monkeypatch
):
    options = {"max-turns": 3, "concurrency": 6}
    fake, draw, out = server(reply=reply, latency=0.03), random.Random(command), tmp_path / "out.json"
    assert selfeval(command, *arguments(tmp_path / "whole.json", **options)).exit_code == 0
    calls, kills, store = len(fake.ledger), [], Store(tmp_path / "killed.sqlite")
    for _ in range(times):
        victim, enough = process(store.path, command, out, **options), len(fake.ledger) + draw.randrange(3, 10)
        deadline = time.monotonic() + 30
        while len(fake.ledger) < enough and victim.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        victim.kill()
        assert victim.wait(30) == -signal.SIGKILL
        if out.exists():
            json.loads(out.read_text())  # whole at any time
        kills.append(({key for key, _, _ in store.rows()}, len(fake.ledger)))
    monkeypatch.setenv("SELFEVAL_STORE", str(store.path))
    assert selfeval(command, *arguments(out, **options)).exit_code == 0
    assert comparable(json.loads(out.read_text())) == comparable(json.loads((tmp_path / "whole.json").read_text()))
    keys = {asked(json.loads(request)): key for key, request, _ in store.rows()}
    for kept, before in kills:
        assert kept and not kept & {keys[asked(entry["body"])] for entry in fake.ledger[before:]}
    repeats = len(fake.ledger) - 2 * calls
    # At a kill six calls are in flight at most, and as many replies on their way to the disk.
    assert 0 <= repeats <= store.outcomes().get("abandoned", 0) <= times * 2 * 6
    store.close()
