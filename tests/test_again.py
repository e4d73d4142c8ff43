"""Thinking models, and empty replies asked for again: from outside."""

import json

import fake_server
import pytest
from test_client import ask, within

from selfeval.errors import InputError, ReplayMiss
from selfeval.providers import models
from selfeval.providers.client import Client
from selfeval.providers.dry_runs import prices
from selfeval.providers.request import Request, choice_format, user
from selfeval.providers.store import Store
from selfeval.recognition.texts import generate_texts
from selfeval.records.tables import data_path
from selfeval.records.texts import read_prompts

ALL = "empty,filtered,length"


def questions(count, **more):
    return [Request(models.get("openai:m"), user(f"question {i}"), {"max_tokens": 64}, **more) for i in range(count)]


def statuses(responses):
    return [(response.status, response.earlier) for response in responses]


def stored(store):
    """Return what the store's file holds: [(key, the response's text)]."""
    return [(key, json.loads(response)["text"]) for key, _, response in store.rows()]


# thinking -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def thinker(server):
    """A server whose model writes only where it has `needs` tokens, and else spends all on thinking."""
    fake = server(faults=lambda i, body: "length" if most(body) < fake.needs else None)
    fake.needs = 1000
    return fake


def most(body):
    return body.get("max_tokens") or body.get("max_completion_tokens") or 10**6


def written(store, count=12):
    prompts = read_prompts(data_path("prompts.jsonl"), count)

    async def work(client):
        return await generate_texts(client, [models.get("openai:m")], prompts, words=60), client.tally

    return within(store, work)


def test_a_model_that_thinks_its_allowance_away_writes_all_texts_with_one_request_more(thinker, store, tmp_path):
    (texts, failures), tally = written(store)
    assert len(texts) == 12 and not failures
    assert len(thinker.ledger) == tally.calls == 13 and tally.again == 1 and "1 of them asked again" in str(tally)
    assert [most(entry["body"]) for entry in thinker.ledger] == [256] + [256 + 16_000] * 12
    assert store.outcomes() == {"thinking": 1}
    assert {text["parameters"]["max_tokens"] for text in texts} == {256}  # what identifies a request
    assert {json.loads(response)["adapted"]["max_tokens"] for *_, response in store.rows()} == {16_256}
    thinker.needs, plain = 0, Store(tmp_path / "plain.sqlite")
    written(plain)  # a run in which it never happened
    assert [key for key, _ in stored(plain)] == [key for key, _ in stored(store)]


def test_a_model_marked_as_reasoning_has_its_own_allowance_from_the_start(server, store, registry):
    registry("models:\n  - {id: 'openai:m', display: M, reasoning: true, reasoning_tokens: 900}\n")
    fake = server(faults=lambda i, body: "400-max_tokens" if "max_tokens" in body else None)
    [response], tally = ask(store, questions(1))
    assert (response.status, tally.again) == ("ok", 0) and fake.ledger[-1]["body"]["max_completion_tokens"] == 964
    assert response.adapted == {"max_tokens": "max_completion_tokens", "max_completion_tokens": 964}


def test_where_a_server_has_no_room_a_model_is_asked_without_from_then_on(server, store):
    fake = server(faults=lambda i, body: "400" if most(body) > 64 else "length")
    responses, tally = ask(store, questions(2), concurrency=1)
    assert statuses(responses) == [("length", [])] * 2 and tally.failed == 0
    assert [most(entry["body"]) for entry in fake.ledger] == [64, 16_064, 64, 64]


def test_thinking_between_tags_is_no_part_of_a_reply(server, store):
    said = {
        "<think>Hm.\nWell.</think>\n\nA text.": ("A text.", "Hm.\nWell.", "ok"),
        "Hm, well.</think>A text.": ("A text.", "Hm, well.", "ok"),
        "<think>Hm": ("", "Hm", "empty"),
        "a <b>text</b>": ("a <b>text</b>", None, "ok"),
        "<THINKING>Of <think> tags.</THINKING>A text.": ("A text.", "Of <think> tags.", "ok"),
        "\n" * 100_000: ("\n" * 100_000, None, "empty"),  # read at once: constrained replies can end so
    }
    server(reply=[*said])
    responses, _ = ask(store, questions(len(said)), concurrency=1)
    assert [(r.text, r.reasoning, r.status) for r in responses] == [*said.values()]


@pytest.mark.parametrize("apart", [False, True])
def test_the_tokens_of_thinking_are_not_taken_for_those_of_the_reply(apart, server, store, monkeypatch):
    split = fake_server.message(content="YES", reasoning_content="<think>NO or YES?</think>")
    monkeypatch.setitem(fake_server.EDITS, "cut", split)
    server(reply="<think>NO or YES?</think> YES", faults=["cut"] * apart)
    request = Request(models.get("openai:m"), user("q"), {"logprobs": True, "top_logprobs": 2})
    [response], _ = ask(store, [request])
    assert response.status == "ok" and [token for token, *_ in response.logprobs] == [" YES"]


# asking again ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def hiccup(server):
    """A server that meets the first attempt at some questions with a fault: {number of the question: fault}."""
    fake = server(faults=lambda i, body: fake.first.pop(int(body["messages"][-1]["content"].split()[-1]), None))
    fake.first = {}
    return fake


def test_empty_replies_are_asked_for_once_more_on_request_and_stay_on_record(hiccup, store):
    hiccup.first = {0: "empty-content", 1: "filtered", 2: "cut", 3: "refusal"}
    before, tally = ask(store, questions(6))
    assert statuses(before) == [(s, []) for s in ("empty", "filtered", "length", "refusal", "ok", "ok")]
    again, tally = ask(store, questions(6))  # a stored reply is served, also an empty one
    assert statuses(again) == statuses(before) and tally.calls == 0
    after, tally = ask(store, questions(6), again=ALL)
    ok = [("ok", [status]) for status in ("empty", "filtered", "length")]
    assert statuses(after) == [*ok, ("refusal", []), ("ok", []), ("ok", [])]
    assert tally.again == tally.calls == 3 and tally.stored == 3
    assert len(stored(store)) == 9
    later, tally = ask(store, questions(6), again=ALL)
    assert statuses(later) == statuses(after) and tally.calls == 0
    assert statuses(ask(store, questions(6))[0]) == statuses(after)  # and without asking again


def test_a_text_that_was_cut_off_is_not_asked_for_again_where_it_counts(hiccup, store):
    hiccup.first = {0: "cut", 1: "empty-content"}
    responses, tally = ask(store, questions(2, cut_counts=True), again=ALL)
    assert statuses(responses) == [("length", []), ("ok", ["empty"])] and tally.again == 1


@pytest.mark.parametrize(("again", "asked"), [("empty", 2), ("empty, 3", 4), ("filtered,length", 1)])
def test_what_stays_empty_is_asked_for_once_more_or_as_often_as_said(again, asked, server, store):
    fake = server(faults=lambda i, body: "empty-content")
    for _ in range(2):  # over all runs
        [response], _ = ask(store, questions(1), again=again)
        assert statuses([response]) == [("empty", ["empty"] * (asked - 1))]
        assert len(fake.ledger) == asked


@pytest.mark.parametrize("again", ["refusal", "empty,0", "empty,10", "3", "empty,2,3"])
def test_what_cannot_be_asked_again_is_said(again, store):
    with pytest.raises(InputError, match="`again` must name statuses"):
        Client(store=store, again=again)


def test_a_call_that_fails_when_it_is_asked_again_loses_nothing(hiccup, store):
    hiccup.first = {0: "empty-content"}
    ask(store, questions(1))
    hiccup.first = {0: "400"}
    [response], tally = ask(store, questions(1), again=ALL)
    assert response.status == "error" and tally.failed == 1
    assert tally.again == 0  # it was not answered
    assert statuses(ask(store, questions(1))[0]) == [("empty", [])]
    assert statuses(ask(store, questions(1), again=ALL)[0]) == [("ok", ["empty"])]


def test_a_dry_run_counts_calls_tokens_and_dollars(hiccup, store, registry, tmp_path, monkeypatch):
    """10 prompts of 300 letters: 79 to 108 tokens each (a token has 3 to 4 letters); replies of 4 to 40 tokens."""
    registry("models: [{id: 'openai:m', display: M, price: {input: 3.0, output: 50.0}}]")
    hiccup.first = {0: "empty-content"}
    ask(store, questions(3))
    monkeypatch.setenv("SELFEVAL_PLAN", str(tmp_path))
    parameters = {"max_tokens": 40, "response_format": choice_format({"answer": ["YES", "NO"]})}
    texts = [f"{k:04d}" + 296 * "x" for k in [*range(10), 0, 1]]  # two of them twice: bought once
    asked = [Request(models.get("openai:m"), user(text), parameters) for text in texts]
    for again in ("empty", ""):
        ask(Store(store.path, recorded=tmp_path / "none"), asked + questions(3)[1:], again=again)
    [row] = prices(tmp_path).to_dict("records")
    assert (row["stored"], row["to_buy"]) == (2, 10) and len(hiccup.ledger) == 3
    assert (row["prompt_tokens_low"], row["prompt_tokens_high"]) == (790, 1080)
    assert (row["reply_tokens_low"], row["reply_tokens_high"]) == (40, 400)
    assert (row["usd_low"], row["usd_high"]) == pytest.approx((0.00437, 0.02324))
    for again in ("", "empty"):  # stored for one, and to be asked for again by another
        ask(Store(store.path, recorded=tmp_path / "none"), questions(1), again=again)
    [row] = prices(tmp_path).to_dict("records")
    assert (row["stored"], row["to_buy"]) == (2, 11)


def test_replay_export_and_import_keep_the_order_and_serve_the_last(hiccup, store, tmp_path):
    hiccup.first = {0: "empty-content", 1: "cut"}
    ask(store, questions(3))
    wanted = statuses(ask(store, questions(3), again=ALL)[0])
    (tmp_path / "recorded").mkdir()
    export = tmp_path / "recorded" / "export.jsonl"
    assert store.export_file(export) == 5
    imported = Store(tmp_path / "a.sqlite", recorded=tmp_path)
    for _ in range(2):
        imported.import_file(export)
    replaying = Store(tmp_path / "unused.sqlite", recorded=export.parent, replay=True)
    for each in (imported, replaying):
        responses, tally = ask(each, questions(3), again=ALL)
        assert statuses(responses) == wanted and tally.calls == 0
    assert stored(imported) == stored(store)
    with pytest.raises(ReplayMiss):
        ask(replaying, questions(4), again=ALL)
