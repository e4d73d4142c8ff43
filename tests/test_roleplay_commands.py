"""`selfeval roleplay` and `selfeval compare`: the files they write, and what a failure or a bad name leaves.

The file of `compare` is frozen in `tests/golden/roleplay`.
"""

import hashlib
import json
import re
from functools import partial

import pytest
from click.testing import CliRunner

from selfeval import cli
from selfeval.cli import conversations
from selfeval.errors import InputError
from selfeval.providers import dry_runs
from selfeval.providers.client import ask
from selfeval.roleplay.run import Jury, hold
from selfeval.roleplay.transcripts import Conversation, Turn

JURY = "openai:j1,openai:j2,openai:j3"
JUDGED = re.compile("Judge B's answer in turn (\\d)")


pytestmark = pytest.mark.usefixtures("own_store")


def selfeval(name, out, *more, typed=None, **options):
    named = {"role_play_llm_model": "openai:a", "interrogator_llm_model": "openai:q", "jury_llm_models": JURY} | options
    parts = [str(part) for key, value in named.items() for part in (f"--{key.replace('_', '-')}", value)]
    return CliRunner().invoke(cli.main, [name, "--yes", "--output_file_path", str(out), *more, *parts], input=typed)


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
    monkeypatch.setattr(conversations, "_play", lambda arms, **options: seen.append(options))
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
    seats = written(tmp_path / "c.json")["seats"]["independent"]
    assert [seat["juror"] for seat in seats] == ["openai:j1", "openai:j1 #2", "openai:j1 #3"]
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


def test_what_a_person_typed_is_never_lost(server, tmp_path):
    fake, out, options = server(reply=reply), tmp_path / "r.json", {"agent_persona": "person", "max_turns": 3}
    stopped = selfeval("roleplay", out, **options, typed="one\ntwo\n")
    assert stopped.exit_code == 1 and "the agent's message is error: the input ended" in stopped.stderr
    assert [row["answer"] for row in written(out)["interaction"]] == ["one", "two", ""]
    before, calls = out.read_bytes(), len(fake.ledger)
    again = selfeval("roleplay", out, **options, typed="three\n")
    assert again.exit_code == 1 and "holds what a person typed; choose another name" in again.output
    assert out.read_bytes() == before and len(fake.ledger) == calls


@pytest.mark.parametrize("content", ["mine", "[]", '{"messages": 5}', "[" * 10_000])
def test_no_file_of_others_is_overwritten(server, tmp_path, content):
    fake, out = server(reply=reply), tmp_path / "notes.txt"
    out.write_text(content)
    before, calls = out.read_bytes(), len(fake.ledger)
    for name in ("roleplay", "compare"):
        result = selfeval(name, out, max_turns=1, seed=7)
        assert result.exit_code == 1 and "nothing is replaced that this tool did not write" in result.output
    assert "cannot be written" in selfeval("roleplay", tmp_path).output
    assert out.read_bytes() == before and len(fake.ledger) == calls


# the price, longer talks, longer statements ---------------------------------------------------------------------------


def asked(name, out, typed=None, **options):
    """Run a command as a person does, who is asked before anything is bought."""
    named = {"role_play_llm_model": "openai:a", "interrogator_llm_model": "openai:q", "jury_llm_models": JURY} | options
    parts = [str(part) for key, value in named.items() for part in (f"--{key.replace('_', '-')}", value)]
    return CliRunner().invoke(cli.main, [name, "--output_file_path", str(out), *parts], input=typed)


@pytest.mark.parametrize(("name", "turns", "calls"), [("roleplay", 2, 2 * (2 + 6)), ("compare", 1, 2 + 3 + 6)])
def test_a_dry_run_counts_what_is_bought_and_writes_nothing(server, tmp_path, name, turns, calls):
    fake, out = server(reply=reply), tmp_path / "new" / "r.json"
    parts = ["--output_file_path", out, "--jury-llm-models", JURY, "--max-turns", turns, "--dry-run"]
    parts += ["--role-play-llm-model", "openai:a", "--interrogator-llm-model", "openai:q"]
    dry = CliRunner().invoke(cli.main, [name, *map(str, parts)])
    assert dry.exit_code == 0 and f"0 replies are stored, {calls} to buy" in dry.stdout, dry.output
    assert fake.ledger == [] and not out.parent.exists()
    assert selfeval(name, out, max_turns=turns).exit_code == 0
    assert len(fake.ledger) == calls


def test_nothing_is_bought_without_a_yes_and_what_is_stored_needs_none(server, tmp_path):
    fake, out = server(reply=reply), tmp_path / "r.json"
    refused = asked("roleplay", out, "n\n", max_turns=1)
    assert refused.exit_code == 1 and "price unknown for 8 calls" in refused.stdout
    assert "Make 8 calls?" in refused.stdout and fake.ledger == [] and not out.exists()
    assert asked("roleplay", out, "y\n", max_turns=1).exit_code == 0 and len(fake.ledger) == 8
    again = asked("roleplay", out, max_turns=1)
    assert again.exit_code == 0 and "Make " not in again.stdout and len(fake.ledger) == 8


@pytest.mark.parametrize(("name", "calls_of_a_turn"), [("roleplay", 2 + 6), ("compare", 2 + 3 + 6)])
def test_a_talk_goes_on_from_what_is_stored(server, tmp_path, name, calls_of_a_turn):
    fake, out = server(reply=reply), tmp_path / "r.json"
    assert selfeval(name, out, max_turns=2).exit_code == 0
    before = written(out)["messages"]
    longer = asked(name, out, "y\n", max_turns=3)
    assert longer.exit_code == 0 and f"Make {calls_of_a_turn} calls?" in longer.stdout, longer.output
    assert len(fake.ledger) == 3 * calls_of_a_turn
    assert written(out)["messages"][:4] == before and len(written(out)["messages"]) == 6


def forms(fake):
    """Return what jurors were asked for: the end of the prompt, the bounds of the reason, and the room for it."""
    votes = [body for body in bodies(fake) if "response_format" in body]
    reasons = [body["response_format"]["json_schema"]["schema"]["properties"]["reason"] for body in votes]
    ends = [body["messages"][-1]["content"].rpartition("\nFirst ")[2] for body in votes]
    rooms = [body.get("max_tokens") or body["max_completion_tokens"] for body in votes]
    return list(zip(ends, reasons, rooms, strict=True))


@pytest.mark.parametrize(
    ("words", "said", "longest"),
    [(60, "an argument of about 60 words", 480), (25, "an argument of about 25 words", 200), (0, "one short", 80)],
)
def test_a_juror_argues_as_long_as_it_is_asked_to(server, tmp_path, words, said, longest):
    fake = server(reply=reply)
    options = {} if words == 60 else {"words": words}
    assert selfeval("roleplay", tmp_path / "r.json", max_turns=1, **options).exit_code == 0
    for end, reason, room in forms(fake):
        assert end.startswith(said) and reason.get("maxLength", longest) == longest
        assert room >= 128 + 3 * words
    assert written(tmp_path / "r.json")["config"]["words"] == words


@pytest.mark.parametrize("name", ["roleplay", "compare"])
@pytest.mark.parametrize(("more", "shown"), [([], ["2"]), (["--context"], ["1", "2"])])
def test_jurors_are_shown_the_one_exchange_or_the_conversation_so_far(server, tmp_path, name, more, shown):
    fake = server(reply=reply)
    assert selfeval(name, tmp_path / "r.json", *more, max_turns=2).exit_code == 0
    prompts = [body["messages"][0]["content"] for body in bodies(fake) if "response_format" in body]
    seen = {turn: re.findall(r"^Turn (\d), B", prompt, re.M) for prompt in prompts for turn in JUDGED.findall(prompt)}
    assert seen == {"1": ["1"], "2": shown} and len(prompts) == 2 * (6 if name == "roleplay" else 9)


@pytest.mark.parametrize(("limit", "sent"), [({}, set()), ({"max_tokens": 0}, set()), ({"max_tokens": 70}, {70})])
def test_messages_have_the_limit_that_is_asked_for_and_none_without(server, tmp_path, limit, sent):
    fake = server(reply=reply)
    assert selfeval("roleplay", tmp_path / "r.json", max_turns=1, **limit).exit_code == 0
    messages = [body for body in bodies(fake) if "response_format" not in body]
    assert len(messages) == 2 and {body[name] for body in messages for name in body if "max_" in name} == sent


def bodies(fake):
    return [entry["body"] for entry in fake.ledger]


@pytest.mark.parametrize("words", [-1, 151])
def test_a_length_that_others_would_not_read_is_refused(words):
    with pytest.raises(InputError, match=f"`words` must be a whole number of at least 0 and at most 150, got {words}"):
        Jury(["sim/juror-stern"], words=words)


def test_a_dry_run_counts_the_words_of_an_argument(server):
    server()
    talk = Conversation("one", [Turn("customer", "Hello?"), Turn("agent", "Jenny here.")])
    replies = []
    for words in (0, 60):
        jury = Jury(JURY.split(","), words=words)
        with dry_runs.counting() as counts:
            ask(partial(hold, jury=jury, conversations=[talk]), {})
            replies.append(dry_runs.prices(counts)["reply_tokens_low"].sum())
    assert replies[1] > 5 * replies[0]
