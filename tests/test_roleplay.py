"""Conversations from outside: who sees what, what failures leave, files of transcripts, people and their controls."""

import asyncio
import json
import random
import re
import time
from collections import Counter

import pytest
from conftest import KEY

from selfeval.asking.client import Client
from selfeval.asking.request import Response
from selfeval.errors import InputError, ProviderError
from selfeval.models import from_callable, get
from selfeval.recognition.texts import generate_texts, writing_prompts
from selfeval.roleplay import cast
from selfeval.roleplay.conversation import NO_REPLY, OPENING, converse, messages
from selfeval.roleplay.humans import forced_context, human_conversations
from selfeval.roleplay.transcripts import Conversation, Exchange, Turn, read_conversations, write_conversations


def run(function, store, *arguments, concurrency=16, **options):
    """Return what an asynchronous function of a client returns."""

    async def main():
        async with Client(concurrency, store) as client:
            return await function(client, *arguments, **options)

    return asyncio.run(asyncio.wait_for(main(), 60))


def talk(store, asks, answers, **options):
    """Return the conversations of two callables, plain texts or models."""
    sides = [from_callable(side, f"test/{k}") if callable(side) else side for k, side in enumerate((asks, answers))]
    return run(converse, store, *sides, label=None, **options)


def texts(conversation):
    return [(turn.speaker, turn.text) for turn in conversation.turns]


# conversations --------------------------------------------------------------------------------------------------------


def test_each_side_reads_the_other_as_the_user_and_itself_as_the_assistant(store):
    seen = {"asks": [], "answers": []}

    def side(name):
        def reply(heard, **_):
            seen[name].append(heard)
            return f"{name} {len(heard)}"

        return reply

    [conversation] = talk(store, side("asks"), side("answers"), turns=2, strategy="customer", persona="terse")
    roles = cast.strategies()["customer"].prompt, cast.personas()["terse"].prompt
    assert seen["asks"][1] == [
        {"role": "system", "content": roles[0]},
        {"role": "user", "content": OPENING},
        {"role": "assistant", "content": "asks 2"},
        {"role": "user", "content": "answers 2"},
    ]
    assert seen["answers"][1] == [
        {"role": "system", "content": roles[1]},
        {"role": "user", "content": "asks 2"},
        {"role": "assistant", "content": "answers 2"},
        {"role": "user", "content": "asks 4"},
    ]
    assert conversation.exchanges() == [Exchange(1, "asks 2", "answers 2"), Exchange(2, "asks 4", "answers 4")]
    assert conversation.agent_model == "test/1" and conversation.meta["persona"] == "terse"


def test_many_conversations_at_once_share_the_places_and_take_two_steps_per_turn(store, server):
    flying = most = 0

    def reply(body):
        nonlocal flying
        flying -= 1
        return f"said {len(body['messages'])} {body['messages'][-1]['content'][-9:]}"

    def arrived(i, body):
        nonlocal flying, most
        flying += 1
        most = max(most, flying)

    fake, told = server(reply=reply, faults=arrived, latency=0.02), []
    model = get("openai:m")
    made = run(
        converse, store, model, model, turns=3, conversations=10, concurrency=4, label=None,
        on_exchange=lambda one: told.append((one.conversation_id, len(one.exchanges()), len(fake.ledger))),
    )  # fmt: skip
    assert [len(c.exchanges()) for c in made] == [3] * 10 and len({c.conversation_id for c in made}) == 10
    assert most == 4 and len(fake.ledger) == 60
    first = {name: calls for name, turn, calls in told if turn == 1}
    assert Counter(name for name, _, _ in told) == dict.fromkeys(first, 3)
    assert min(first.values()) < 60 / 2  # told of an answer long before all are there
    again = run(converse, store, model, model, turns=3, conversations=10, label=None)
    assert [c.to_dict() for c in again] == [c.to_dict() for c in made] and len(fake.ledger) == 60
    more = run(converse, store, model, model, turns=3, conversations=12, label=None)
    assert [c.to_dict() for c in more][:10] == [c.to_dict() for c in made] and len(fake.ledger) == 72


@pytest.mark.parametrize(
    ("fault", "side", "status", "exchanges", "last"),
    [
        ("empty-content", "agent", "ok", 3, "empty"),
        ("filtered", "agent", "ok", 3, "filtered"),
        ("cut", "agent", "ok", 3, "length"),
        ("refusal", "agent", "ok", 3, "refusal"),
        ("400", "agent", "error", 2, "error"),
        ("empty-content", "interrogator", "empty", 1, "empty"),
        ("400", "interrogator", "error", 1, "error"),
    ],
)
def test_a_reply_that_is_none_is_recorded_and_the_other_conversations_go_on(
    store, server, fault, side, status, exchanges, last
):
    """The second question or answer of one conversation fails; the rules stand in the module's docstring."""

    def strikes(i, body):
        said = [message["content"] for message in body["messages"]]
        asking = OPENING in said
        second = sum(message["role"] == "assistant" for message in body["messages"]) == 1
        return fault if second and asking == (side == "interrogator") and "hurt" in " ".join(said) else None

    opened = []

    def reply(body):
        if body["messages"][-1]["content"] != OPENING:
            return f"said {len(body['messages'])}"
        opened.append(1)
        return "hurt" if len(opened) == 2 else "fine"

    fake, models = server(reply=reply, faults=strikes), [get("openai:m")] * 2
    good, hurt = sorted(
        run(converse, store, *models, turns=3, conversations=2, label=None), key=lambda c: c.turns[0].text == "hurt"
    )
    assert good.status == "ok" and len(good.exchanges()) == 3
    assert hurt.status == status and len(hurt.exchanges()) == exchanges
    [odd] = [turn for turn in hurt.turns if turn.status != "ok"]
    assert odd.status == last and odd.speaker == side
    if fault in ("empty-content", "filtered") and side == "agent":
        assert hurt.exchanges()[1].answer == "" and hurt.exchanges()[1].status == last
        read = [m for e in fake.ledger for m in e["body"]["messages"] if m["content"] == NO_REPLY]
        assert {message["role"] for message in read} == {"user", "assistant"}
    if fault == "400":
        assert "HTTP 400" in odd.more["error"] and odd.text == ""


def test_a_missing_key_is_told_before_anything_is_paid_and_a_finished_run_needs_none(
    store, server, registry, monkeypatch
):
    fake = server()
    registry("providers:\n  locked: {base_url: 'http://127.0.0.1:9/v1', keys: [NO_SUCH_KEY]}\n")
    for options in ({}, {"also": [get("locked:m")]}):
        sides = [get("openai:m"), get("openai:m") if options else get("locked:m")]
        with pytest.raises(ProviderError, match="set NO_SUCH_KEY"):
            run(converse, store, *sides, turns=1, label=None, **options)
    assert fake.ledger == []
    model = get("openai:m")
    made = run(converse, store, model, model, turns=1, label=None)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert run(converse, store, model, model, turns=1, label=None) == made
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_feedback_is_off_by_default_and_goes_to_the_interrogator_alone(store):
    heard = {"asks": [], "answers": []}

    def side(name):
        return lambda said, **_: heard[name].append(said[-1]["content"]) or f"{name} {len(heard[name])}"

    async def note(conversation):
        return f"score of turn {len(conversation.exchanges())}"

    [conversation] = talk(store, side("asks"), side("answers"), turns=2, feedback=note)
    assert heard["asks"] == [OPENING, "answers 1\n\n(score of turn 1)"]
    assert heard["answers"] == ["asks 1", "asks 2"]
    assert conversation.turns[1].to_dict()["feedback"] == "score of turn 1"
    talk(store, side("asks"), side("answers"), turns=2)
    assert not any("score" in text for text in heard["asks"][2:])


def test_reasoning_is_not_said_and_a_reply_of_nothing_else_is_empty(store):
    answers = iter(["<think>I am a model</think> Hello!", "<think>never closed"])
    [conversation] = talk(store, lambda heard, **_: "hi", lambda heard, **_: next(answers), turns=2)
    first, second = conversation.turns[1], conversation.turns[3]
    assert (first.text, first.status, first.more["reply"]) == ("Hello!", "ok", "<think>I am a model</think> Hello!")
    assert (second.text, second.status) == ("", "empty")


def test_a_person_types_either_side_and_an_empty_line_is_no_reply(store):
    shown, lines = [], iter(["hello?", "", "still there?"])

    def read(text):
        shown.append(text)
        return next(lines, None) or ""

    [conversation] = talk(store, None, cast.person(read), strategy="fixed", persona="person", turns=3)
    questions = cast.strategies()["fixed"].questions
    assert [q in text for q, text in zip(questions, shown, strict=False)] == [True] * 3
    assert [(e.answer, e.status) for e in conversation.exchanges()] == [
        ("hello?", "ok"), ("", "empty"), ("still there?", "ok"),
    ]  # fmt: skip

    def ended(text):
        raise EOFError

    [conversation] = talk(store, cast.person(ended), lambda heard, **_: "yes", strategy="person", turns=3)
    assert conversation.status == "error" and conversation.exchanges() == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"turns": 0}, "`turns` must be a whole number of at least 1, got 0"),
        ({"conversations": True}, "`conversations` must be a whole number"),
        ({"persona": "suport"}, "`persona` 'suport' is unknown; did you mean 'support'?"),
        ({"strategy": "x"}, "`strategy` 'x' is unknown; known are probing, customer, fixed, person."),
        ({"strategy": "fixed", "turns": 11}, "has 10 questions, and `turns` is 11"),
        ({"temperature": float("nan")}, "`temperature` must be a finite number of at least 0, got nan"),
        ({"persona": "person", "conversations": 2}, "one conversation at a time"),
    ],
)
def test_bad_values_are_one_sentence_before_anything_is_asked(store, options, sentence):
    asked = []
    with pytest.raises(InputError, match=re.escape(sentence)):
        talk(store, lambda heard, **_: asked.append(1), lambda heard, **_: asked.append(1), **options)
    assert asked == []


def test_every_role_is_playable(store):
    echo = from_callable(lambda heard, **_: "words", "test/echo")
    for persona in cast.personas():
        for strategy in cast.strategies():
            if "person" not in (persona, strategy):
                [made] = run(converse, store, echo, echo, persona=persona, strategy=strategy, turns=2, label=None)
                assert made.status == "ok" and len(made.exchanges()) == 2


def test_eliza_answers_by_pattern_and_reflection_the_same_for_the_same_seed(store):
    answers = {cast.eliza_answer("I can't open my file because you broke it", random.Random(s)) for s in range(9)}
    assert any("open your file" in text or "I broke it" in text for text in answers)
    made = [
        texts(run(converse, store, None, None, persona="eliza", strategy="fixed", turns=8, seed=seed, label=None)[0])
        for seed in (0, 0, 1)
    ]
    assert made[0] == made[1] != made[2]
    assert all(text.strip() and "{" not in text for _, text in made[0])


# transcripts ----------------------------------------------------------------------------------------------------------


def test_speakers_are_read_and_messages_in_a_row_are_one():
    turns = "agent:hi user:one user: user:two agent:a agent:b other:three agent:c user:last".split()
    conversation = Conversation("x", [Turn(*turn.split(":")) for turn in turns])
    assert conversation.exchanges() == [
        Exchange(1, "", "hi"), Exchange(2, "one\ntwo", "a\nb"), Exchange(3, "three", "c"),
    ]  # fmt: skip
    heard = messages(conversation.turns, "agent", "be kind")
    assert [m["role"] for m in heard] == ["system", *["user", "assistant"] * 3, "user"]
    assert heard[1]["content"] == OPENING and heard[3]["content"] == f"one\n{NO_REPLY}\ntwo"


def test_a_file_of_conversations_is_read_as_it_was_written(tmp_path):
    made = [
        Conversation(
            "a", [Turn("agent", "x\ny", "length", {"usage": {"prompt": 3}}), Turn("B", "\ud800")], meta={"k": 1}
        ),
        Conversation("b", [Turn("Ann", "hi"), Turn("Bob", "ho")], "human", "Bob", "error"),
    ]
    write_conversations(tmp_path / "c.jsonl", made)
    assert read_conversations(tmp_path / "c.jsonl") == made == read_conversations([tmp_path / "c.jsonl"] * 2)


def test_the_agent_is_the_one_named_so_or_the_second_to_speak(tmp_path):
    def agent(row):
        rows = {"conversation_id": "a", "turns": [{"speaker": s, "text": "t"} for s in row.pop("speakers")]} | row
        rows |= {"source": "human"}
        (tmp_path / "c.jsonl").write_text(json.dumps(rows))
        return read_conversations(tmp_path / "c.jsonl")[0].agent

    assert agent({"speakers": ["Ann", "Bob", "Ann"]}) == "Bob"
    assert agent({"speakers": ["agent", "Bob"]}) == "agent"
    assert agent({"speakers": ["Ann", "Bob", "Cy"], "agent": "Ann"}) == "Ann"
    with pytest.raises(InputError, match=r"3 speakers \(Ann, Bob, Cy\); name the one under judgement"):
        agent({"speakers": ["Ann", "Bob", "Cy"]})
    with pytest.raises(InputError, match="the `agent` 'Di' says nothing, but Ann, Bob do"):
        agent({"speakers": ["Ann", "Bob"], "agent": "Di"})


TURN = {"speaker": "A", "text": "t"}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"turns": [TURN]}, "record 2: a conversation needs a `conversation_id`"),
        ({"conversation_id": "x", "turns": []}, "record 2: a conversation needs a list of `turns`"),
        ({"conversation_id": "x", "turns": [TURN, {"speaker": "B"}]}, "record 2, turn 2: a turn needs a `text`"),
        ({"conversation_id": "x", "turns": [{"text": "t"}]}, "record 2, turn 1: a turn needs a `speaker`, got None"),
        ({"conversation_id": "x", "turns": [TURN], "source": "dog"}, "`source` must be one of model, human, got 'dog'"),
        ({"conversation_id": "first", "turns": [TURN, {"speaker": "B", "text": ""}]}, "Two conversations differ and"),
    ],
)
def test_a_broken_row_is_named(tmp_path, row, sentence):
    good = {"conversation_id": "first", "turns": [TURN, {"speaker": "B", "text": "u"}], "source": "model"}
    (tmp_path / "c.jsonl").write_text(json.dumps(good) + "\n" + json.dumps({"source": "model"} | row))
    with pytest.raises(InputError, match=re.escape(sentence)):
        read_conversations(tmp_path / "c.jsonl")


# people ---------------------------------------------------------------------------------------------------------------


def test_a_sample_of_people_is_seeded_and_a_larger_one_begins_with_it():
    small, large = human_conversations(3, seed=4), human_conversations(6, seed=4)
    assert large[:3] == small and human_conversations(3, seed=5) != small
    for conversation in large:
        assert len(conversation.exchanges()) == 4 and conversation.source == conversation.agent_model == "human"
        assert all(e.question and e.answer for e in conversation.exchanges())
    with pytest.raises(InputError, match="chats have 8 turns or more, and 9999 were asked for"):
        human_conversations(9999)


def test_in_forced_context_only_the_answer_differs_and_each_is_written_after_the_persons_own(store):
    people, seen = human_conversations(3, exchanges=2), []

    def answer(heard, **_):
        seen.append(heard)
        return f"answer {len(seen)}"

    made = run(forced_context, store, from_callable(answer, "test/agent"), people, label=None)
    for human, model in zip(people, made, strict=True):
        assert [e.question for e in model.exchanges()] == [e.question for e in human.exchanges()]
        assert model.source == "model" and model.meta["pair"] == human.conversation_id
        first, second = model.context(2)
        assert first == human.exchanges()[0] and second == model.exchanges()[1]
    assert [e.answer for m in made for e in m.exchanges()] == [f"answer {k}" for k in range(1, 7)]
    human = people[0].exchanges()
    assert [m["content"] for m in seen[1][1:]] == [human[0].question, human[0].answer, human[1].question]
    assert people[0].meta["topic"] in seen[1][0]["content"] and "stranger" in seen[1][0]["content"]


def test_forced_context_survives_failures_files_and_a_person_who_speaks_first(store, tmp_path):
    turns = [Turn("B", "me first"), Turn("A", "q"), Turn("B", "one"), Turn("B", "two"), Turn("A", "unanswered")]
    human = Conversation("h", turns, "human", "B")
    replies = iter([Response(status="error", error="gone"), "fine"])
    [made] = run(forced_context, store, from_callable(lambda heard, **_: next(replies), "test/a"), [human], label=None)
    assert [tuple(e) for e in made.exchanges()] == [(1, "", "", "error"), (2, "q", "fine", "ok")]
    write_conversations(tmp_path / "c.jsonl", [made, human])
    [read, _] = read_conversations(tmp_path / "c.jsonl")
    assert read.context(2) == [Exchange(1, "", "me first"), Exchange(2, "q", "fine")]
    assert run(forced_context, store, get("sim/perfect"), [], label=None) == []


def test_human_texts_are_records_of_recognition_that_models_can_answer_too(store):
    asked, records = writing_prompts("chats", 20, words=20, seed=3)
    assert (asked, records) == writing_prompts("chats", 20, words=20, seed=3)
    assert writing_prompts("chats", 5, words=20, seed=3)[0] == asked[:5]
    assert len({row["prompt_id"] for row in asked}) == len({row["text_id"] for row in records}) == 20
    assert all(10 <= row["words"] <= 30 and row["author"] == "human" for row in records)
    assert all(row["text"] not in prompt["prompt"] for row, prompt in zip(records, asked, strict=True))
    models = [get("sim/perfect")]
    texts, _ = run(generate_texts, store, models, asked, words=20)
    assert set(records[0]) <= set(texts[0]) and [t["prompt_id"] for t in texts] == [r["prompt_id"] for r in records]
    with pytest.raises(InputError, match="were asked for; ask for fewer"):
        writing_prompts("chats", 5000, words=100)


def test_typing_waits_beside_the_other_calls(store):
    """A person's line may take minutes; the loop has to go on meanwhile, or every call in flight would time out."""
    ticks = []

    async def main():
        async def tick():
            while True:
                ticks.append(1)
                await asyncio.sleep(0.005)

        async with Client(4, store) as client:
            other = asyncio.create_task(tick())
            slow = cast.person(lambda shown: time.sleep(0.1) or "line")
            await converse(client, None, slow, strategy="fixed", persona="person", turns=1, label=None)
            other.cancel()

    asyncio.run(main())
    assert len(ticks) > 3


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("a: {prompt: p}", "must give 'a' the texts title, got"),
        ("a: {title: A, prompt: p, typed: true}", "must give 'a' a `title` and one of prompt, questions, script"),
        ("a: {title: A, script: parry}", "(script: eliza), got"),
        ("- a", "must hold entries by name"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_broken_file_of_roles_is_one_sentence(tmp_path, monkeypatch, entry, sentence):
    (tmp_path / "roleplay").mkdir()
    (tmp_path / "roleplay" / "agents.yaml").write_text(entry)
    monkeypatch.setattr(cast, "DATA", tmp_path)
    with pytest.raises(InputError, match=re.escape(sentence)):
        cast.personas()
