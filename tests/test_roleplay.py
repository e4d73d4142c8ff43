"""Conversations from outside: who says what, what failures leave, files in, files and tables out.

What each side is asked word by word is frozen in `tests/golden/keys.json`.
"""

import asyncio
import json
import re
import threading

import pandas as pd
import pytest
from click.testing import CliRunner
from conftest import KEY
from written_files import run_notebook, without_pictures

from selfeval import cli
from selfeval.asking.client import Client
from selfeval.asking.request import Response
from selfeval.errors import InputError, ProviderError
from selfeval.models import from_callable, get
from selfeval.roleplay import cast
from selfeval.roleplay.conversation import NO_REPLY, OPENING, converse, messages
from selfeval.roleplay.humans import forced_context, human_conversations
from selfeval.roleplay.transcripts import (
    Conversation,
    Exchange,
    Turn,
    read_conversations,
    read_verdicts,
    write_conversations,
)

JURY = "openai:j1,openai:j2,openai:j3"
ASKED = "model calls"  # the line of a notebook that asked


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    without_pictures(monkeypatch)


def run(function, store, *arguments, concurrency=16, **options):
    """Return what an asynchronous function of a client returns."""

    async def main():
        async with Client(concurrency, store) as client:
            return await function(client, *arguments, **options)

    return asyncio.run(asyncio.wait_for(main(), 60))


def talk(store, asks, answers, **options):
    """Return the conversations of two callables, plain texts or models."""
    sides = [from_callable(side, f"test/{k}") if callable(side) else side for k, side in enumerate((asks, answers))]
    return run(converse, store, *sides, **options)


# conversations --------------------------------------------------------------------------------------------------------


def test_many_conversations_share_the_places_are_bought_once_and_a_larger_number_begins_with_them(store, server):
    fake, told = server(reply=lambda body: f"said {len(body['messages'])}", latency=0.01), []
    model = get("openai:m")

    def held(number):
        return run(
            converse, store, model, model, turns=3, conversations=number, concurrency=4,
            on_exchange=lambda one: told.append((len(one.exchanges()), len(fake.ledger))),
        )  # fmt: skip

    made = held(10)
    assert [len(c.exchanges()) for c in made] == [3] * 10 and len({c.conversation_id for c in made}) == 10
    assert len(fake.ledger) == 60 and len(told) == 30
    assert min(calls for turn, calls in told if turn == 1) < 60 / 2  # told of an answer long before all are there
    assert held(10) == made and len(fake.ledger) == 60
    assert held(12)[:10] == made and len(fake.ledger) == 72


@pytest.mark.parametrize(
    ("fault", "side", "status", "exchanges", "last"),
    [
        ("filtered", "agent", "ok", 3, "filtered"),
        ("cut", "agent", "ok", 3, "length"),
        ("400", "agent", "error", 2, "error"),
        ("empty-content", "interrogator", "empty", 1, "empty"),
    ],
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


def test_a_missing_key_is_told_before_anything_is_paid_and_a_finished_run_needs_none(
    store, server, registry, monkeypatch
):
    fake, model = server(), get("openai:m")
    registry("providers:\n  locked: {base_url: 'http://127.0.0.1:9/v1', keys: [NO_SUCH_KEY]}\n")
    for sides, also in (([model, get("locked:m")], []), ([model, model], [get("locked:m")])):
        with pytest.raises(ProviderError, match="set NO_SUCH_KEY"):
            run(converse, store, *sides, turns=1, also=also)
    assert fake.ledger == []
    made = run(converse, store, model, model, turns=1)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert run(converse, store, model, model, turns=1) == made
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_reasoning_is_not_said_and_a_reply_of_nothing_else_is_empty(store):
    answers = iter(["<think>I am a model</think> Hello!", "<think>never closed"])
    [conversation] = talk(store, lambda heard, **_: "hi", lambda heard, **_: next(answers), turns=2)
    first, second = conversation.turns[1], conversation.turns[3]
    assert (first.text, first.status, first.more["reply"]) == ("Hello!", "ok", "<think>I am a model</think> Hello!")
    assert (second.text, second.status) == ("", "empty")


def test_a_person_types_either_side_beside_the_other_calls_and_an_empty_line_is_no_reply(store):
    shown, lines = [], iter(["hello?", "", "still there?"])

    def read(text):
        shown.append(text)
        assert threading.current_thread() is not threading.main_thread()  # a line may take minutes
        return next(lines)

    [made] = talk(store, None, cast.person(read), strategy="fixed", persona="person", turns=3)
    questions = cast.strategies()["fixed"].questions
    assert all(question in text for question, text in zip(questions[:3], shown, strict=True))
    assert [tuple(e)[2:] for e in made.exchanges()] == [("hello?", "ok"), ("", "empty"), ("still there?", "ok")]

    def ended(text):
        raise EOFError

    [made] = talk(store, cast.person(ended), lambda heard, **_: "yes", strategy="person", turns=3)
    assert made.status == "error" and made.exchanges() == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
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
    for persona in cast.personas().keys() - {"person"}:
        for strategy in cast.strategies().keys() - {"person"}:
            [made] = run(converse, store, echo, echo, persona=persona, strategy=strategy, turns=2)
            assert made.status == "ok" and len(made.exchanges()) == 2


def test_eliza_answers_by_pattern_and_reflection_the_same_for_the_same_seed(store):
    heard = [{"role": "user", "content": "I can't open my file because you broke it"}]
    answers = {cast.eliza(seed)(heard) for seed in range(9)}
    assert any("open your file" in text or "I broke it" in text for text in answers)
    played = {"persona": "eliza", "strategy": "fixed", "turns": 8}
    made = [run(converse, store, None, None, seed=seed, **played)[0].exchanges() for seed in (0, 0, 1)]
    assert made[0] == made[1] != made[2]
    assert all(said.answer.strip() and "{" not in said.answer for said in made[0])


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("a: {prompt: p}", "must give 'a' the texts title, got"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_broken_file_of_roles_is_one_sentence(tmp_path, monkeypatch, entry, sentence):
    (tmp_path / "roleplay").mkdir()
    (tmp_path / "roleplay" / "agents.yaml").write_text(entry)
    monkeypatch.setattr("selfeval.paths.DATA", tmp_path)
    with pytest.raises(InputError, match=re.escape(sentence)):
        cast.personas()


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


def test_forced_context_survives_failures_files_and_a_person_who_speaks_first(store, tmp_path):
    turns = [Turn("B", "me first"), Turn("A", "q"), Turn("B", "one"), Turn("B", "two"), Turn("A", "unanswered")]
    human = Conversation("h", turns, "human", "B")
    replies = iter([Response(status="error", error="gone"), "fine"])
    [made] = run(forced_context, store, from_callable(lambda heard, **_: next(replies), "test/a"), [human])
    assert [tuple(e) for e in made.exchanges()] == [(1, "", "", "error"), (2, "q", "fine", "ok")]
    write_conversations(tmp_path / "c.jsonl", [made, human])
    [read, _] = read_conversations(tmp_path / "c.jsonl")
    assert read.context(2) == [Exchange(1, "", "me first"), Exchange(2, "q", "fine")]


# files ----------------------------------------------------------------------------------------------------------------

PUBLISHED = {
    "role_play_llm_model": "openai/gpt-4o",
    "interrogator_llm_model": "x/y",
    "jury": ["a/one", "b/two"],
    "interaction": [
        {"turn": 1, "question": "Who?", "answer": "Jenny.", "jury_scores": [0.2, 0.4]},
        {"turn": 2, "question": "Where?", "answer": "", "jury_scores": [0.6, None]},
    ],
}
COMPARED = {
    "config": {k: PUBLISHED[k] for k in list(PUBLISHED)[:2]} | {"jury_llm_models": ["a/one", "b/two"]},
    "summary": {},
    "turns": [
        {"turn": 1, "question": "Who?", "answer": "Jenny.",
         "old_eval": {"method": "independent", "per_juror_scores": [0.1, 0.3]},
         "new_eval": {"method": "chateval_debate_one_by_one", "debate_rounds": 3, "per_juror_scores": [0.5, 0.7]}},
    ],
}  # fmt: skip
TALK = {"conversation_id": "t", "turns": [{"speaker": "A", "text": "q"}, {"speaker": "B", "text": "r"}]}
VERDICT = {"conversation_id": "c", "turn": 1, "arm": "independent", "juror": "a/one", "score": 0.25}
FIRST = PUBLISHED["interaction"][0]


def command(name, out, **options):
    named = {"role-play-llm-model": "openai:a", "interrogator-llm-model": "openai:q", "jury-llm-models": JURY}
    named |= {"max-turns": 2} | options
    parts = [str(part) for key, value in named.items() for part in (f"--{key}", value)]
    result = CliRunner().invoke(cli.main, [name, "--output_file_path", str(out), *parts])
    assert result.exit_code == 0, result.output


def said(body):
    """Reply as juror (j1 .1, j2 .2, j3 .3, and .4 more after hearing others), as interrogator or as agent."""
    if "response_format" in body:
        score = int(body["model"][-1]) / 10 + 0.4 * ("\nJURY\n" in body["messages"][0]["content"])
        return json.dumps({"reason": "It is short.", "human_score": f"{score:.2f}"})
    return f"{'Answer' if body['model'] == 'a' else 'Question'} {len(body['messages'])}"


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def save(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def estimates(folder, statistic):
    """Return {arm: estimate} of a statistic in the table of `06_jury`."""
    table = pd.read_csv(folder / "jury.csv", keep_default_na=False)
    rows = table[(table["statistic"] == statistic) & (table["evaluator"] == "")].drop_duplicates("task")
    return {row.task: pytest.approx(float(row.estimate)) for row in rows.itertuples()}


def judge(out, **parameters):
    return run_notebook("06_jury", conversations=[], humans=0, n_resamples=20, out=str(out), **parameters)


def play(out, **parameters):
    return run_notebook(
        "05_role_play", **{"agent": "sim/talker", "interrogator": "sim/talker"} | parameters, out=str(out)
    )


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
    odd = [Turn("agent", "x\ny", "length", {"usage": {"prompt": 3}}), Turn("B", "\ud800")]
    people = [Turn("Ann", "hi"), Turn("Bob", "ho")]
    made = [Conversation("a", odd, meta={"k": 1}), Conversation("b", people, "human", "Bob", "error")]
    write_conversations(tmp_path / "c.jsonl", made)
    assert read_conversations(tmp_path / "c.jsonl") == made == read_conversations([tmp_path / "c.jsonl"] * 2)


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


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (TALK, "record 1: `source` must be one of model, human, got None: it says who is on the agent's side"),
        (TALK | {"conversation_id": None}, "record 1: a conversation needs a `conversation_id`"),
        ({"anything": 1}, "record 1: a conversation needs a list of `turns`"),
        (TALK | {"turns": [TALK["turns"][0], {"speaker": "B"}]}, "record 1, turn 2: a turn needs a `text`"),
        (TALK | {"turns": [{"text": "t"}]}, "record 1, turn 1: a turn needs a `speaker`, got None"),
        (PUBLISHED | {"interaction": [{"question": 1}]}, "needs turns with a `question` and an `answer` each"),
    ],
)
def test_a_conversation_that_is_none_is_named(tmp_path, row, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)) as error:
        read_conversations(save(tmp_path / "t.jsonl", row))
    assert str(error.value).startswith(f"{tmp_path / 't.jsonl'}, record 1")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (VERDICT, "record 1: `source` must be one of model, human, got None"),
        ({"anything": 1}, "record 1: this is neither a verdict, which has a `juror`, nor an output of a command"),
        ({"juror": "a/one"}, "a verdict needs `conversation_id`, `turn`, `arm`, `juror` and `score`"),
        (PUBLISHED | {"interaction": [FIRST | {"jury_scores": [0.2, 85]}]}, "from 0 to 1 or null, got 85"),
        (PUBLISHED | {"jury": ["a/one", "b/two", "c/three"]}, "scores need as many names in `jury`, or one"),
    ],
)
def test_verdicts_that_nobody_can_mean_are_one_sentence(tmp_path, row, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        judge(tmp_path / "out", verdicts=save(tmp_path / "p.json", row))


def test_verdicts_of_your_own_need_no_texts(tmp_path):
    judge(tmp_path / "out", verdicts=save(tmp_path / "v.jsonl", VERDICT | {"source": "model"}))
    assert estimates(tmp_path / "out", "mean_score") == {"independent": 0.25}
    about = json.loads((tmp_path / "out" / "paper" / "about.json").read_text())["settings"]
    assert about["jurors"] == ["a/one"] and about["personas"] == [] and "temperature" not in about
    two = [VERDICT | {"source": "human", "agent": "human"}, VERDICT | {"source": "model", "conversation_id": "d"}]
    judge(tmp_path / "both", verdicts=save(tmp_path / "two.jsonl", two))
    about = json.loads((tmp_path / "both" / "paper" / "about.json").read_text())["settings"]
    assert about["agents"] == []  # nobody knows which model was judged, and people are none


def test_two_conversations_of_one_id_and_none_at_all_are_one_sentence(tmp_path):
    rows = [TALK | {"source": source} for source in ("model", "human")]
    with pytest.raises(InputError, match="Two conversations differ and have the `conversation_id` 't'"):
        read_conversations(save(tmp_path / "c.json", rows))
    with pytest.raises(InputError, match="There is no conversation: name files in `transcripts`"):
        play(tmp_path, replay=True)


def test_what_the_commands_write_is_replayed_and_analysed_without_a_call(server, tmp_path):
    fake, files = server(reply=said), [str(tmp_path / "play.json"), str(tmp_path / "both.txt")]
    command("roleplay", files[0])
    command("compare", files[1], seed=1)
    calls = len(fake.ledger)
    play(
        tmp_path / "same", agent="openai:a", interrogator="openai:q", turns=2, n_conversations=1
    )  # as the command held
    printed = play(tmp_path / "talks", transcripts=files, replay=True)
    assert ASKED not in printed and "conversations.jsonl: 2 conversations, 4 answers" in printed
    talks = rows_of(tmp_path / "talks" / "conversations.jsonl")
    assert rows_of(tmp_path / "same" / "conversations.jsonl") == talks[:1]
    assert [talk["source"] for talk in talks] == ["model"] * 2 and [talk["seed"] for talk in talks] == [0, 1]
    assert [turn["text"] for turn in talks[0]["turns"]] == ["Question 2", "Answer 2", "Question 4", "Answer 4"]
    for name, verdicts in (("both", files), ("again", [str(tmp_path / "both" / "verdicts.jsonl")])):
        printed = judge(tmp_path / name, verdicts=verdicts)
        assert ASKED not in printed and "30 statements, 6 verdicts" in printed
        # debate: the first to speak has heard nobody in round 1, all have in round 2
        assert estimates(tmp_path / name, "mean_score") == {"independent": 0.2, "debate": 0.6}
        assert estimates(tmp_path / name, "difference") == {"debate - independent": 0.4}
        assert len(rows_of(tmp_path / name / "conversations.jsonl")) == 2
    assert len(fake.ledger) == calls
    assert rows_of(tmp_path / "both" / "verdicts.jsonl") == rows_of(tmp_path / "again" / "verdicts.jsonl")


def test_published_files_without_our_keys_mean_what_they_can(tmp_path):
    path = save(tmp_path / "pub.json", PUBLISHED)
    [talk] = read_conversations(path)
    assert (talk.conversation_id, talk.source, talk.agent_model) == ("pub", "model", "openai/gpt-4o")
    assert [turn.text for turn in talk.turns] == ["Who?", "Jenny.", "Where?", ""]
    assert ASKED not in judge(tmp_path / "one", verdicts=path)
    assert estimates(tmp_path / "one", "mean_score") == {"debate": 0.45}  # (.3 + .6) / 2, null is no vote and no 0
    alone = COMPARED | {"config": COMPARED["config"] | {"jury_llm_models": ["openai/gpt-4.1"]}}  # it took all seats
    rows, _ = read_verdicts([path, save(tmp_path / "both.json", [COMPARED, alone])])
    assert [(r["conversation_id"], r["arm"], r["round"], r["juror"], r["score"], r["status"]) for r in rows[3::2]] == [
        ("pub", "debate", 2, "b/two", None, "no_answer"), ("both 1", "independent", 1, "b/two", 0.3, "ok"),
        ("both 1", "debate", 3, "b/two", 0.7, "ok"), ("both 2", "independent", 1, "openai/gpt-4.1 #2", 0.3, "ok"),
        ("both 2", "debate", 3, "openai/gpt-4.1 #2", 0.7, "ok"),
    ]  # fmt: skip
    assert all(row["cost"] is None and row["usage"] is None and row["reply"] is None for row in rows)
    assert [row["same_family"] for row in rows] == [False] * 8 + [True] * 4


def test_a_jury_judges_the_first_answers_of_the_first_conversations(server, tmp_path):
    fake = server(reply=said)
    play(tmp_path / "t", turns=3, n_conversations=3)
    jury = {"jurors": JURY.split(","), "rounds": 1, "arms": ["personas"], "agent": "sim/talker", "humans": 0}
    jury |= {"conversations": [str(tmp_path / "t" / "conversations.jsonl")], "n_resamples": 20}
    run_notebook("06_jury", **jury, out=str(tmp_path / "whole"))
    assert len(fake.ledger) == 3 * 3 * 3
    printed = run_notebook("06_jury", **jury, limit=2, max_turns=1, out=str(tmp_path / "part"))
    assert "0 model calls, 6 replies from the store" in printed and "6 statements, 2 verdicts" in printed
    whole, part = (rows_of(tmp_path / name / "verdicts.jsonl") for name in ("whole", "part"))
    names = [*dict.fromkeys(row["conversation_id"] for row in whole)]
    assert part == [row for row in whole if row["conversation_id"] in names[:2] and row["turn"] == 1]
    assert [len(talk["turns"]) for talk in rows_of(tmp_path / "part" / "conversations.jsonl")] == [2, 2]
    cut = {"verdicts": [str(tmp_path / "whole" / "verdicts.jsonl")], "limit": 2, "max_turns": 1}
    assert ASKED not in judge(tmp_path / "cut", **cut) and rows_of(tmp_path / "cut" / "verdicts.jsonl") == part
    with pytest.raises(InputError, match="is a folder that is read here; choose another one"):
        judge(tmp_path / "whole", **cut)
    assert rows_of(tmp_path / "whole" / "verdicts.jsonl") == whole
