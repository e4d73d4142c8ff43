"""Conversations from outside: who says what, what failures leave, files in, files and tables out.

What each side is asked word by word is frozen in `tests/golden/keys.json`.
"""

import json
import re
import threading

import pandas as pd
import pytest
from test_client import within

import selfeval as se
from selfeval.errors import InputError, ProviderError
from selfeval.providers.models import from_callable, get
from selfeval.providers.request import Response
from selfeval.roleplay import roles
from selfeval.roleplay.conversation import NO_REPLY, OPENING, converse, forced_context, human_conversations, messages
from selfeval.roleplay.transcripts import Conversation, Exchange, Turn, read_conversations
from selfeval.roleplay.verdicts import read_verdicts


def run(function, store, *arguments, **options):
    """Return what an asynchronous function of a client returns."""
    return within(store, lambda client: function(client, *arguments, **options))


def talk(store, asks, answers, **options):
    """Return the conversations of two callables, plain texts or models."""
    sides = [from_callable(side, f"test/{k}") if callable(side) else side for k, side in enumerate((asks, answers))]
    return run(converse, store, *sides, **options)


# conversations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "side", "status", "exchanges", "last"),
    [("filtered", "agent", "ok", 3, "filtered"), ("empty-content", "interrogator", "empty", 1, "empty")],
)
def test_a_reply_that_is_none_is_recorded(store, server, fault, side, status, exchanges, last):
    """The second question or answer fails; the rules stand in the module's docstring."""

    def strikes(i, body):
        asking = OPENING in [message["content"] for message in body["messages"]]
        second = sum(message["role"] == "assistant" for message in body["messages"]) == 1
        return fault if second and asking == (side == "interrogator") else None

    fake = server(reply=lambda body: f"said {len(body['messages'])}", faults=strikes)
    [made] = run(converse, store, get("openai:m"), get("openai:m"), turns=3)
    assert made.status == status and len(made.exchanges()) == exchanges
    [odd] = [turn for turn in made.turns if turn.status != "ok"]
    assert odd.status == last and odd.speaker == side
    if fault == "filtered":
        assert made.exchanges()[1] == Exchange(2, "said 4", "", "filtered")
        read = [m for e in fake.ledger for m in e["body"]["messages"] if m["content"] == NO_REPLY]
        assert {message["role"] for message in read} == {"user", "assistant"}


def test_a_missing_key_is_told_before_anything_is_paid_for(store, server, registry):
    fake, model = server(), get("openai:m")
    registry("providers:\n  locked: {base_url: 'http://127.0.0.1:9/v1', keys: [NO_SUCH_KEY]}\n")
    for sides, also in (([model, get("locked:m")], []), ([model, model], [get("locked:m")])):
        with pytest.raises(ProviderError, match="set NO_SUCH_KEY"):
            run(converse, store, *sides, turns=1, also=also)
    assert fake.ledger == []


def test_reasoning_is_not_said_and_a_reply_of_nothing_else_is_empty(store):
    answers = iter(["<think>I am a model</think> Hello!", "<think>never closed"])
    [conversation] = talk(store, lambda heard, **_: "hi", lambda heard, **_: next(answers), turns=2)
    first, second = conversation.turns[1], conversation.turns[3]
    assert (first.text, first.status, first.more["reply"]) == ("Hello!", "ok", "<think>I am a model</think> Hello!")
    assert (second.text, second.status) == ("", "empty")


def test_a_person_types_either_side_beside_the_other_calls_and_an_empty_line_is_no_reply(store, monkeypatch):
    shown, lines = [], iter(["hello?", "", "still there?"])

    def read(text):
        shown.append(text)
        assert threading.current_thread() is not threading.main_thread()  # a line may take minutes
        return next(lines)

    monkeypatch.setattr("builtins.input", read)
    [made] = talk(store, None, None, strategy="fixed", persona="person", turns=3)
    questions = roles.strategies()["fixed"].questions
    assert all(question in text for question, text in zip(questions[:3], shown, strict=True))
    assert [tuple(e)[2:] for e in made.exchanges()] == [("hello?", "ok"), ("", "empty"), ("still there?", "ok")]


def test_bad_values_are_one_sentence_before_anything_is_asked(store):
    asked, wrong = [], {"`turns` is 11": {"strategy": "fixed", "turns": 11}, "`temperature`": {"temperature": -1}}
    for sentence, options in wrong.items():
        with pytest.raises(InputError, match=re.escape(sentence)):
            talk(store, lambda heard, **_: asked.append(1), lambda heard, **_: asked.append(1), **options)
    assert asked == []


def test_eliza_answers_by_pattern_and_reflection_the_same_for_the_same_seed(store):
    heard = [{"role": "user", "content": "I can't open my file because you broke it"}]
    answers = {roles.eliza(seed)(heard) for seed in range(9)}
    assert any("open your file" in text or "I broke it" in text for text in answers)
    played = {"persona": "eliza", "strategy": "fixed", "turns": 8}
    made = [run(converse, store, None, None, seed=seed, **played)[0].exchanges() for seed in (0, 0, 1)]
    assert made[0] == made[1] != made[2]
    assert all(said.answer.strip() and "{" not in said.answer for said in made[0])


def test_a_broken_file_of_roles_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "roleplay").mkdir()
    (tmp_path / "roleplay" / "agents.yaml").write_text("a: {prompt: p}")
    monkeypatch.setattr("selfeval.paths.DATA", tmp_path)
    rule = "must give every name a `title` and one of prompt, questions, script, typed, got 'a'"
    with pytest.raises(InputError, match=rule):
        roles.personas()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a: &a [x, x]\nb: &b [" + "*a, " * 400 + "]\nc: [" + "*b, " * 400 + "]", "more than 100,000 values"),
        ("a: [1", "cannot be read as YAML"),
        ("- a", r"must give every name a `title` and one of persona, got \['a'\]"),
        ("a: b", "must give every name a `title` and one of persona, got 'a': 'b'"),
        ("", "must give every name a `title` and one of persona, got None"),
    ],
)
def test_a_file_of_roles_is_read_within_bounds(tmp_path, monkeypatch, content, why):
    (tmp_path / "roleplay").mkdir()
    (tmp_path / "roleplay" / "jurors.yaml").write_text(content)
    monkeypatch.setattr("selfeval.paths.DATA", tmp_path)
    with pytest.raises(InputError, match=why):
        roles.jurors()


# people ---------------------------------------------------------------------------------------------------------------


def test_a_sample_of_people_is_seeded_and_a_larger_one_begins_with_it():
    small, large = human_conversations(3, seed=4), human_conversations(6, seed=4)
    assert large[:3] == small and human_conversations(3, seed=5) != small
    for conversation in large:
        assert len(conversation.exchanges()) == 4 and conversation.source == conversation.agent_model == "human"
        assert all(e.question and e.answer for e in conversation.exchanges())
    with pytest.raises(InputError, match="chats have 8 turns or more, and 9999 were asked for"):
        human_conversations(9999)


def test_the_seed_of_a_conversation_chooses_the_chats_between_people():
    drawn = [se.converse("sim/talker", people=3, exchanges=2, seed=seed) for seed in (0, 0, 1)]
    first, again, other = [{*rows.loc[rows["source"] == "human", "conversation_id"]} for rows in drawn]
    assert first == again != other and len(other) == 3


def test_in_forced_context_only_the_answer_differs_and_each_is_written_after_the_persons_own(store):
    people, seen = human_conversations(3, exchanges=2), []

    def answer(heard, **_):
        seen.append(heard)
        return f"answer {len(seen)}"

    made = run(forced_context, store, from_callable(answer, "test/agent"), people)
    for human, model in zip(people, made, strict=True):
        assert [e.question for e in model.exchanges()] == [e.question for e in human.exchanges()]
        assert model.source == "model" and model.meta["pair"] == human.conversation_id
        first, second = model.context(2)
        assert first == human.exchanges()[0] and second == model.exchanges()[1]
    assert [e.answer for m in made for e in m.exchanges()] == [f"answer {k}" for k in range(1, 7)]
    human = people[0].exchanges()
    assert [m["content"] for m in seen[1][1:]] == [human[0].question, human[0].answer, human[1].question]
    assert people[0].meta["topic"] in seen[1][0]["content"] and "stranger" in seen[1][0]["content"]


def test_forced_context_survives_failures_files_and_a_person_who_speaks_first(store):
    turns = [Turn("B", "me first"), Turn("A", "q"), Turn("B", "one"), Turn("B", "two"), Turn("A", "unanswered")]
    human = Conversation("h", turns, "human", "B")
    replies = iter([Response(status="error", error="gone"), "fine"])
    [made] = run(forced_context, store, from_callable(lambda heard, **_: next(replies), "test/a"), [human])
    assert [tuple(e) for e in made.exchanges()] == [(1, "", "", "error"), (2, "q", "fine", "ok")]
    [read, _] = read_conversations([made.to_dict(), human.to_dict()])
    assert read.context(2) == [Exchange(1, "", "me first"), Exchange(2, "q", "fine")]


# files ----------------------------------------------------------------------------------------------------------------

TALK = {"conversation_id": "t", "turns": [{"speaker": "A", "text": "q"}, {"speaker": "B", "text": "r"}]}
VERDICT = {"conversation_id": "c", "turn": 1, "arm": "independent", "juror": "a/one", "score": 0.25}


def save(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_speakers_are_read_and_messages_in_a_row_are_one():
    turns = "agent:hi user:one user: user:two agent:a agent:b other:three agent:c user:last".split()
    conversation = Conversation("x", [Turn(*turn.split(":")) for turn in turns])
    assert conversation.exchanges() == [
        Exchange(1, "", "hi"), Exchange(2, "one\ntwo", "a\nb"), Exchange(3, "three", "c"),
    ]  # fmt: skip
    heard = messages(conversation.turns, "agent", "be kind")
    assert [m["role"] for m in heard] == ["system", *["user", "assistant"] * 3, "user"]
    assert heard[1]["content"] == OPENING and heard[3]["content"] == f"one\n{NO_REPLY}\ntwo"


@pytest.mark.parametrize(
    ("speakers", "named", "agent"),
    [("Ann Bob Ann", {}, "Bob"), ("agent Bob", {}, "agent"), ("Ann Bob Cy", {"agent": "Ann"}, "Ann"),
     ("Ann", {"agent": "Bob"}, "Bob"), ("Ann Bob Cy", {}, None), ("Ann Bob", {"agent": "Di"}, None)],
)  # fmt: skip
def test_the_agent_is_the_one_named_so_or_the_second_to_speak(tmp_path, speakers, named, agent):
    row = TALK | {"source": "human", "turns": [{"speaker": s, "text": "t"} for s in speakers.split()]} | named
    path = save(tmp_path / "c.jsonl", row)
    if agent:
        assert read_conversations(path)[0].agent == agent
    else:
        with pytest.raises(InputError, match=r"`agent` must name the speaker under judgement \(Ann, Bob"):
            read_conversations(path)


def test_own_transcripts_are_answered_by_the_persona_that_is_asked_for():
    heard = []
    agent = se.models.from_callable(lambda messages, **_: heard.append(messages[0]["content"]) or "Yes.", "mine/a")
    for persona in ("support", "terse"):
        se.converse(agent, transcripts=[TALK | {"source": "human"}], persona=persona)
    assert {*heard} == {roles.personas()[name].prompt for name in ("support", "terse")}


def test_what_has_no_id_is_named_by_its_file_and_number(tmp_path):
    row = {"source": "model", "turns": TALK["turns"]}
    two = [row, TALK | {"conversation_id": None, "source": "human"}, row | {"id": 7}]
    ids = [[talk.conversation_id for talk in read_conversations(given)] for given in (
        save(tmp_path / "chat.json", row), save(tmp_path / "chats.json", two), two,
    )]  # fmt: skip
    assert ids == [["chat"], ["chats 1", "chats 2", "7"], ["conversation 1", "conversation 2", "7"]]


def test_verdicts_may_be_a_table(tmp_path):
    rows = [VERDICT | {"source": "model", "conversation_id": f"c{score}", "score": score} for score in (0, 1)]
    (tmp_path / "v.csv").write_text(pd.DataFrame(rows).to_csv(index=False) + ",,\n")
    pd.testing.assert_frame_equal(
        pd.DataFrame(se.measure_jury(tmp_path / "v.csv")), pd.DataFrame(se.measure_jury(rows)), check_dtype=False
    )


WRONG = {  # what a sentence names: the record
    "record 1: `source` must be one of model, human": TALK,
    "record 1: a conversation needs a list of `turns`": {"question": 1},
    "record 1, turn 1: a turn needs a `text`": TALK | {"turns": [{"speaker": "B"}]},
    "a turn needs a `text`, got {'question'": TALK | {"turns": [{"question": "Who?", "answer": "Jenny."}]},
    "record 1: `source` must be one of": VERDICT,
    "a verdict needs `conversation_id`, `turn`, `arm`, `juror` and `score`": {"juror": "a/one"},
    "a verdict needs `conversation_id`": {"interaction": []},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_records_that_nobody_can_mean_are_named(tmp_path, sentence):
    of_verdicts = "verdict" in sentence or "score" in sentence or "juror" in WRONG[sentence]
    with pytest.raises(InputError, match=re.escape(sentence)) as error:
        (read_verdicts if of_verdicts else read_conversations)(save(tmp_path / "t.jsonl", WRONG[sentence]))
    assert str(error.value).startswith(f"{tmp_path / 't.jsonl'}, record 1")


def test_two_conversations_of_one_id_and_none_at_all_are_one_sentence(tmp_path):
    rows = [TALK | {"source": source} for source in ("model", "human")]
    with pytest.raises(InputError, match="Two conversations differ and have the `conversation_id` 't'"):
        read_conversations(save(tmp_path / "c.json", rows))
    with pytest.raises(
        InputError, match="There is no conversation: name an `interrogator`, a number of `people`, or files"
    ):
        se.converse("sim/talker", replay=True)


def test_verdicts_of_your_own_need_no_texts_and_may_be_a_part(tmp_path):
    rows = [VERDICT | {"source": "model", "conversation_id": name, "turn": turn} for name in "abc" for turn in (1, 2)]
    path = save(tmp_path / "v.json", rows)
    assert se.measure_jury(path).query("statistic == 'mean_score'")["estimate"].tolist() == [0.25]
    twins = [VERDICT | {"source": ["human", "model"][k // 4], "conversation_id": k, "pair": k % 4} for k in range(8)]
    assert se.measure_jury(twins).query("statistic == 'paired_accuracy'")["n"].tolist() == [4]
    wrong = [rows[0] | {"score": 85}, *rows[1:]]
    with pytest.raises(InputError, match="`score` must hold numbers from 0 to 1 or null, got 85"):
        se.measure_jury(wrong)
    with pytest.raises(InputError, match="`limit` and `max_turns` choose what is judged"):
        se.judge([], "sim/juror-stern", verdicts=path, limit=2)
    with pytest.raises(InputError, match="is a folder that is read here"):
        se.judge([], "sim/juror-stern", verdicts=path, out=str(tmp_path))
