"""What was said: records hold what was sent, what was thought and who served it, for people and for other tools."""

from dataclasses import replace

import pytest
from test_client import within
from test_identity import put

from selfeval.condition import condition_label
from selfeval.errors import InputError
from selfeval.identity import EvalRunner
from selfeval.identity.replies import rescore
from selfeval.providers import models
from selfeval.providers.request import Response
from selfeval.recognition.prompts import Condition
from selfeval.recognition.run import collect_predictions
from selfeval.recognition.texts import generate_texts
from selfeval.records.tables import write_jsonl
from selfeval.records.texts import read_texts
from selfeval.roleplay.conversation import converse
from selfeval.roleplay.run import Jury, hold
from selfeval.roleplay.transcripts import Conversation, Turn
from selfeval.roleplay.verdicts import read_verdicts

CALL = ["served_model", "served_by", "reasoning", "messages", "adapted", "asked_again"]
SAID = Response("", served_model="m-2026", served_by="Acme", reasoning="Let me see.", adapted={"seed": None})
BO = "models:\n- {id: 'openai:m', display: Bo, developer: Bo Labs, family: bo, system: You are Bo.}\n"
PROMPTS = [{"prompt_id": f"p{i}", "prompt": f"Write about thing {i}."} for i in range(4)]


def thinker(reply="A reply.\nHUMAN_SCORE=0.4", name="own/thinker", **more):
    """A model of one's own whose every reply has all that a reply can have; asked again once."""
    said = vars(SAID) | {"text": reply, "earlier": ["empty"]} | more
    return models.from_callable(lambda messages, **parameters: Response(**said), name)


def texts_by(store, *authors):
    texts, failures = within(store, lambda client: generate_texts(client, authors, PROMPTS))
    assert not failures
    return texts


def asked(store, texts, condition, evaluators, tasks, **more):
    found = within(store, lambda client: collect_predictions(client, evaluators, texts, condition, tasks=tasks, **more))
    return [row for rows in found.values() for row in rows]


def of_call(row, messages):
    """Hold the fields of a record on its call against those of `thinker`."""
    expected = ["m-2026", "Acme", "Let me see.", messages, {"seed": None}, ["empty"]]
    assert [row[name] for name in CALL] == expected


# records --------------------------------------------------------------------------------------------------------------


def test_every_record_says_what_was_sent_what_was_thought_and_who_served_it(store, tmp_path):
    [text, *_] = texts = texts_by(store, thinker())
    asked_for = "Write about thing 0.\n\nWrite about 100 words of plain text, without a title."
    of_call(text, [{"role": "user", "content": asked_for}])
    write_jsonl(tmp_path / "texts.jsonl", texts)
    assert read_texts(str(tmp_path)) == texts
    corpus = texts_by(store, *models.get_all(["sim/good", "sim/first"]))
    rows = asked(store, corpus, Condition(), [thinker()], ["exact_model", "binary_self", "lineup"])
    for row in rows:  # of a lineup every line has the whole question
        of_call(row, row["messages"])
        assert row["text_preview"][:60] in row["messages"][-1]["content"]
    model = replace(thinker("I am Bo, made by Bo Labs."), developer="Bo Labs", family="bo", display="Bo")
    rows, _ = put(store, [model], arms=["neutral"], limit=1, repeats=1)
    of_call(rows[0], rows[0]["messages"])
    assert rescore(rows) == rows
    [one] = within(store, lambda client: converse(client, thinker(), thinker(), turns=1))
    of_call(one.turns[1].more | {"messages": []}, [])
    runner, told = EvalRunner("identity/published.json"), vars(SAID) | {"text": "I am GPT-4 Turbo."}
    details = runner.run(lambda messages, **_: Response(**told), model_id="gpt-4-turbo")["test_results"][0]["details"]
    assert (details["reasoning"], details["served_by"]) == ("Let me see.", "Acme") and "asked_again" not in details


def test_an_answer_has_the_question_as_sent_and_says_what_it_took_and_who_served_the_author(store, registry, server):
    registry(BO)
    fake = server(reply="<think>Mine, surely.</think>YES", faults=["empty-content"])
    texts = texts_by(store, thinker(), models.get("sim/good"))[:2]
    evaluators = [models.get("openai:m")]

    def ask(client):
        return collect_predictions(client, evaluators, texts, Condition(), tasks="binary_self")

    [first, second] = within(store, ask, again="empty", concurrency=1)["binary_self"]
    assert first["messages"] == fake.ledger[0]["body"]["messages"]
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert (first["text_served_model"], first["text_served_by"]) == ("m-2026", "Acme")
    assert (first["asked_again"], first["reply"], first["reasoning"]) == (["empty"], "YES", "Mine, surely.")
    assert (second["asked_again"], second["served_by"]) == (None, None)


def test_a_verdict_has_its_first_call_and_the_reasoning_of_the_reply_that_counts(store, tmp_path):
    turns = [Turn("customer", "Who is there?"), Turn("agent", "Jenny.")]
    replies = iter(
        [Response("Hm.", reasoning="First.", earlier=["empty"]), Response("HUMAN_SCORE=0.3", reasoning="2nd.")]
    )
    model = models.from_callable(lambda messages, **parameters: next(replies), "own/juror")
    jury = Jury((model,), personas=("linguist",))
    [row] = within(store, lambda client: hold(client, jury, [Conversation("one", turns)], ["personas"]))
    assert (row["score"], row["repaired"], row["reasoning"]) == (0.3, True, "2nd.")
    assert row["asked_again"] == ["empty"] and len(row["messages"]) == 1
    write_jsonl(tmp_path / "verdicts.jsonl", [row])
    assert read_verdicts(tmp_path / "verdicts.jsonl") == [row]


def test_a_verdict_that_took_one_reply_names_no_earlier_one(store):
    turns = [Turn("customer", "Who is there?"), Turn("agent", "Jenny.")]
    model = models.from_callable(lambda messages, **parameters: "HUMAN_SCORE=0.3", "own/juror")
    jury = Jury((model,), personas=("linguist",))
    [row] = within(store, lambda client: hold(client, jury, [Conversation("one", turns)], ["personas"]))
    assert row["asked_again"] is None


# effort ---------------------------------------------------------------------------------------------------------------


def test_effort_is_sent_where_the_provider_takes_it_and_stands_in_the_condition_where_it_is_set(
    store, server, registry
):
    fake = server(reply="YES")
    registry(f"providers:\n  plain: {{base_url: '{fake.url}', keys: []}}\n")
    texts = texts_by(store, models.get("sim/good"), models.get("sim/first"))[:3]
    fleet = models.get_all(["openai:m", "plain:m", "sim/good"])
    low, own = (asked(store, texts, Condition(effort=effort), fleet, ["binary_self"]) for effort in ("low", ""))
    sent = [(entry["authorized"], entry["body"].get("reasoning_effort")) for entry in fake.ledger]
    assert {*sent[:6]} == {(True, "low"), (False, None)} and {effort for _, effort in sent[6:]} == {None}
    assert {row["condition"].get("effort") for row in low} == {"low"}
    before = {name: value for name, value in low[0]["condition"].items() if name != "effort"}
    assert {condition_label(row["condition"]) for row in own} == {condition_label(before)}
    with pytest.raises(InputError, match="`effort` must be one of none, minimal, low, medium, high, xhigh, got"):
        Condition(effort="enormous")
