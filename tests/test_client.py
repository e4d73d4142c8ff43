"""The client from outside: every fault of the fake server, limits, deadlines, keys, order, and what is never sent."""

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import httpx2
import openai  # noqa: F401  its import takes half a second, which is no part of a deadline
import pytest
from aiohttp import web
from conftest import KEY
from fake_server import FAULTS, FakeServer, completion, error

import selfeval as se
from selfeval.errors import InputError, ProviderError, StoreError
from selfeval.providers import askers, calls, client, endpoint, replies
from selfeval.providers.client import gather
from selfeval.providers.models import from_callable, get
from selfeval.providers.request import Request, Response, canonical, key_of, user
from selfeval.secrets import redact
from selfeval.simulated import Client


def ask(store, requests, concurrency=16, **options):
    """Return the responses to requests and the client's tally."""

    async def work(client):
        return await client.chat_all(requests, label=None), client.tally

    return within(store, work, concurrency, **options)


ASKING = """if True:
    import asyncio, sys
    from selfeval.providers.client import Client
    from selfeval.providers.request import Request, user
    from selfeval.errors import BudgetError
    from selfeval.providers.models import get
    async def run():
        async with Client(int(sys.argv[2])) as client:
            asked = [Request(get(sys.argv[1]), user(f"question {i}")) for i in map(int, sys.argv[3:])]
            try:
                print(sum(r.status == "ok" for r in await client.chat_all(asked, label=None)))
            except BudgetError:
                print("ceiling")
    asyncio.run(run())"""


def process(store, numbers, model="openai:m", concurrency=8, first="", **options):
    """Start a process that asks questions of these numbers, with a store at this path; `first` is code before it."""
    environment = os.environ | {"SELFEVAL_STORE": str(store)}
    command = [sys.executable, "-c", first + ASKING, model, str(concurrency), *map(str, numbers)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options)


def within(store, work, concurrency=16, **options):
    """Return what `work(client)` returns."""

    async def run():
        async with Client(concurrency, store, **options) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(run(), 60))


def questions(model, count, **parameters):
    return [Request(model, user(f"question {i}"), parameters) for i in range(count)]


def said(body):
    return body["messages"][-1]["content"]


def mine(registry, server, deadline=3, more=""):
    """Return a model of a provider of one's own with a short deadline."""
    registry(f"providers:\n  mine: {{base_url: '{server.url}', deadline: {deadline}{more}}}\n")
    return get("mine:m")


class Flying:
    """Counts the calls between their arrival (`faults=flying.arrives`) and their answer (`reply=flying.leaves`)."""

    def __init__(self, places=10_000, fault=None, then=lambda flying: None):
        self.now, self.most, self.places, self.fault, self.then = 0, 0, places, fault, then

    def arrives(self, i, body):
        if self.now >= self.places:
            return self.fault
        self.now += 1
        self.most = max(self.most, self.now)
        return self.then(self)

    def leaves(self, body):
        self.now -= 1
        return "x"


class Clock:
    """A time that passes while somebody sleeps, and only then."""

    def __init__(self):
        self.now = self.began = time.time()

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def slept(self):
        return self.now - self.began

    def put_into(self, monkeypatch, *modules):
        """Make modules live in this time."""
        for module in modules:
            same = {name: getattr(asyncio, name) for name in dir(asyncio) if not name.startswith("_")}
            if hasattr(module, "asyncio"):
                monkeypatch.setattr(module, "asyncio", SimpleNamespace(**same | {"sleep": self.sleep}))
            if hasattr(module, "time"):
                monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now))


# faults ---------------------------------------------------------------------------------------------------------------

SLOW = ["hang", "trickle"]  # end at the deadline, whatever the number of attempts
NO_ANSWER = """500 503 empty html bad-utf8 200-error choices-empty finish-error drop short
truncated""".split()
STATUS = {"empty-content": "empty", "null-content": "empty", "length": "length", "cut": "length"}
STATUS |= {"filtered": "filtered", "refusal": "refusal", "surrogate": "ok", "nul": "ok", "400": "error"}
STATUS |= dict.fromkeys(NO_ANSWER + SLOW, "error")


def test_a_lasting_fault_ends_as_its_status_after_few_attempts_and_is_never_stored(
    store, server, registry, monkeypatch
):
    """What hangs does so for ten times as long as this test may wait."""
    fake = server(faults=lambda i, body: said(body) if said(body) in FAULTS else None, hang=600)
    without_pauses(monkeypatch)
    monkeypatch.setattr(calls, "IN_A_ROW", 10_000)
    places = f"base_url: '{fake.url}', deadline"
    registry(f"providers: {{mine: {{{places}: 60}}, slow: {{{places}: 1.5}}}}")
    asked = [(get("slow:m" if text in SLOW else "mine:m"), text) for text in ("first", *STATUS)]
    responses, tally = ask(store, [Request(model, user(text)) for model, text in asked], concurrency=64)
    got = dict(zip(STATUS, responses[1:], strict=True))
    assert {fault: response.status for fault, response in got.items()} == STATUS
    asked = [said(entry["body"]) for entry in fake.ledger]
    for fault, response in got.items():
        if fault not in SLOW:
            assert asked.count(fault) == (askers.ATTEMPTS if fault in NO_ANSWER else 1)
        assert bool(response.error) == (response.status == "error")
    assert {fault: r.text for fault, r in got.items() if r.text} == {
        "cut": "An answer that was cut o",
        "refusal": "I'm sorry, I can't help with that.",
        "surrogate": "lone \ufffd surrogate",
        "nul": "before\0after",
    }
    assert all("no complete reply within" in got[fault].error for fault in SLOW)
    assert tally.failed == len(NO_ANSWER + SLOW) + 1
    assert len(list(store.rows())) == 1 + len(STATUS) - tally.failed
    assert {*store.outcomes()} == {"rejected", "transient"} and store.outcomes()["rejected"] == 1


def without_pauses(monkeypatch):
    """Make the pauses nothing that the client takes by itself."""
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)


def test_a_service_that_never_answers_is_given_up_after_three_calls(store, server, registry, monkeypatch):
    without_pauses(monkeypatch)
    fake = server(faults=lambda i, body: "drop")
    responses, tally = ask(store, questions(mine(registry, fake, deadline=60), 200))
    assert tally.failed == 200 and "connection failed" in responses[0].error
    assert store.outcomes()["transient"] == len(fake.ledger) == 3 * askers.ATTEMPTS


WHAT = {
    "a web page": (200, "<!doctype html><p>Log in to continue</p>"),
    "a web page ": (400, "<html><h1>400 Bad Request</h1></html>"),
    "a stream of events": (200, 'data: {"choices": [{"delta": {"content": "4"}}]}\n\ndata: [DONE]\n\n'),
    "JSON": (200, '{"status": "up", "version": 3}'),
    "JSON ": (200, '[{"name": "m"}, {"name": "n"}]'),
    "JSON  ": (200, '"up"'),
    "a text": (200, "Ollama is running"),
    "takes no chat requests": (405, '{"detail": "Method Not Allowed"}'),
    "redirection": (304, ""),
    "page not found": (404, "page not found"),
    "no route": (404, '{"error": {"message": "no route"}}'),
}


class Elsewhere(FakeServer):
    """Gives one answer, (status, body), to everything, and a good one to `first`."""

    async def _handle(self, request):
        self.ledger.append(body := await request.json())
        status, text = self.reply
        if "messages" in body and said(body) == "first":
            status, text = 200, json.dumps(completion(body, "4"))
        return web.Response(status=status, body=text.encode(), content_type="text/html")


@pytest.mark.parametrize("said_of_it", WHAT)
def test_what_is_no_chat_endpoint_costs_one_attempt_and_a_sentence_with_the_remedy(store, registry, said_of_it):
    with Elsewhere(WHAT[said_of_it]) as fake:
        address = fake.url.removesuffix("/v1")
        registry(f"providers: {{mine: {{base_url: '{address}', base_url_env: MINE_URL}}}}")
        responses, tally = ask(store, questions(get("mine:m"), 40))
    assert len(fake.ledger) == 1 and tally.failed == 40
    for part in (said_of_it.strip(), f"MINE_URL (its `base_url`), which is {address}", "/v1 at its end"):
        assert part in responses[0].error
    if WHAT[said_of_it][0] == 200:
        assert WHAT[said_of_it][1][:20] in responses[0].error


def test_a_web_page_of_an_endpoint_that_did_answer_is_asked_again(store, registry, monkeypatch):
    without_pauses(monkeypatch)
    with Elsewhere(WHAT["a web page"]) as fake:
        model = mine(registry, fake, deadline=60)
        responses, _ = ask(store, [Request(model, user(text)) for text in ("first", "second")], concurrency=1)
    assert responses[0].text == "4" and "a web page" in responses[1].error
    assert len(fake.ledger) == 1 + askers.ATTEMPTS


def test_a_page_about_one_text_costs_that_text_alone(store, registry):
    with Elsewhere(WHAT["a web page "]) as fake:
        requests = [Request(mine(registry, fake), user(text)) for text in ("first", "second", "first", "third")]
        responses, _ = ask(store, requests, concurrency=1)
    assert [response.status for response in responses] == ["ok", "error", "ok", "error"]
    assert len(fake.ledger) == 3, "one attempt for each text; the first is stored"


NO_MODEL = '{"object": "error", "message": "The model m does not exist."}'


@pytest.mark.parametrize(("text", "is_address"), [
    ("<html>Not Found</html>", True), ('{"detail": "Not Found"}', True), (NO_MODEL, False),
])  # fmt: skip
def test_a_404_names_the_address_where_no_api_says_what_is_missing(text, is_address, store, registry):
    with Elsewhere((404, text)) as fake:
        responses, _ = ask(store, questions(mine(registry, fake), 20))
    assert len(fake.ledger) == 1
    assert (f"correct its `base_url`, which is {fake.url}" in responses[0].error) == is_address


@pytest.mark.parametrize("before", ["\ufeff", "\n\n  ", "\ufeff\n"])
def test_a_completion_behind_a_mark_or_blank_lines_is_read(store, registry, before):
    with Elsewhere((200, before + json.dumps(completion({"model": "m", "messages": []}, "4")))) as fake:
        registry(f"providers: {{mine: {{base_url: '{fake.url}'}}}}")
        [response], _ = ask(store, questions(get("mine:m"), 1))
    assert response.text == "4" and len(fake.ledger) == 1


@pytest.mark.parametrize("body", ["<html>Log in</html>", '{"status": "up"}', "[1, 2]"])
def test_a_tokenizer_that_is_none_costs_one_attempt(body, store, registry):
    with Elsewhere((200, body)) as fake:
        model = mine(registry, fake, more=", likelihood: grammar")
        asked = [
            Request(model, [*user("q"), {"role": "assistant", "content": f"text {k}"}], {"likelihood": "grammar"})
            for k in range(9)
        ]
        responses, _ = ask(store, asked)
    assert len(fake.ledger) == 1 and "no tokens of a text" in responses[0].error
    assert "correct its `base_url`" in responses[0].error


def test_a_verb_says_why_a_model_is_not_asked_any_more(registry, own_store, capsys):
    with Elsewhere(WHAT["a web page"]) as fake:
        model = mine(registry, fake)
        rows = [{"author": who, "prompt": f"p{k}", "text": f"{who} {k}"} for who in (model.id, "other") for k in "ab"]
        se.collect_predictions(rows, model.id, allow_strangers=True, answer="free")
    assert f"{model.id} is not asked any more: HTTP 200: a web page" in capsys.readouterr().out


def test_the_variable_whose_key_is_refused_is_named(store, registry, server, monkeypatch):
    monkeypatch.setenv("SECOND_API_KEY", KEY)
    for fault, number in (("401", 2), ("403", 1)):
        fake = server(faults=[fault])
        registry(f"providers: {{mine: {{base_url: '{fake.url}', keys: [FIRST_API_KEY, SECOND_API_KEY]}}}}")
        responses, _ = ask(store, questions(get("mine:m"), number))
        assert len(fake.ledger) == 1 and "SECOND_API_KEY" in responses[0].error and KEY not in responses[0].error


MUTANTS = (None, 5, -1, 1.5, True, "x", [], [None], {"x": 1}, [[["y"]]])


class Raw(FakeServer):
    """Answers question k with the k-th of some bodies."""

    async def _handle(self, request):
        body = self.reply[int(said(await request.json()).split()[1])]
        return web.Response(body=body.encode(), content_type="application/json")


def test_a_reply_of_any_shape_is_a_typed_status(store, registry, monkeypatch):
    """Put each of many odd values into each place of a good body: never an exception after the call was paid."""
    good = completion({"model": "m", "logprobs": True, "top_logprobs": 2}, "YES")
    good["choices"][0]["message"]["reasoning"] = "because"

    def places(node, path=()):
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            yield (*path, key)
            yield from places(node[key], (*path, key))

    bodies = ["[" * 100_000, json.dumps(good).replace("-0.1", "-Infinity")]
    for path, mutant in itertools.product(places(good), MUTANTS):
        body = node = json.loads(json.dumps(good))
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = mutant
        bodies.append(json.dumps(body))
    monkeypatch.setattr(askers, "ATTEMPTS", 1)
    monkeypatch.setattr(calls, "UNPROVEN", 10_000)
    monkeypatch.setattr(calls, "IN_A_ROW", 10_000)
    with Raw(bodies) as fake:
        responses, _ = ask(store, questions(mine(registry, fake), len(bodies)), concurrency=8)
    kept = [r for r in responses if r.status != "error"]
    assert {r.status for r in kept} == {"ok", "empty", "refusal"} and len(kept) > 250
    assert all(isinstance(r.text, str) for r in responses)
    assert store.statistics()[0]["replies"] == len(kept)


HUGE = "9" * 400
COSTS = {"0.25": 0.25, "0": 0.0} | dict.fromkeys(["1e999", "-1", "true", "NaN", "Infinity", '"1"', HUGE])


def test_a_cost_or_count_that_is_none_is_unknown_and_the_reply_is_kept(store, registry):
    counts = {"5": 5} | dict.fromkeys(["-1", "true", "1.5", HUGE, '"5"'])
    good = json.dumps(completion({"model": "m"}, "YES", cost="COST"))
    bodies = [good.replace('"COST"', cost) for cost in COSTS]
    good = good.replace('"COST"', "1")
    bodies += [good.replace('"completion_tokens": 2', f'"completion_tokens": {n}') for n in counts]
    with Raw(bodies) as fake:
        responses, _ = ask(store, questions(mine(registry, fake), len(bodies)))
    assert [r.text for r in responses] == ["YES"] * len(bodies) and len(list(store.rows())) == len(bodies)
    assert [r.cost for r in responses[: len(COSTS)]] == list(COSTS.values())
    assert [r.usage.get("completion") for r in responses[len(COSTS) :]] == list(counts.values())
    assert store.statistics()[0]["cost"] == 0.25 + len(counts)


@pytest.mark.parametrize(("cost", "unknown"), [(0.0, 0), (0.25, 0), (None, 3)])
def test_a_reply_that_costs_nothing_has_a_price_and_one_without_has_none(store, server, cost, unknown):
    server(cost=cost)
    _, tally = ask(store, questions(get("openai:m"), 3))
    assert (tally.cost, tally.unpriced) == (3 * (cost or 0), unknown)
    assert ("price unknown for 3 calls" in str(tally)) == bool(unknown)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_that_stands_apart_from_the_text_is_kept(store, registry, field):
    body = completion({"model": "m"}, "YES")
    body["choices"][0]["message"][field] = "It sounds like me."
    with Raw([json.dumps(body)]) as fake:
        [response], _ = ask(store, questions(mine(registry, fake), 1))
    assert (response.text, response.reasoning) == ("YES", "It sounds like me.")


# limits of rate -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["429", "429-none"])
def test_a_rate_limit_costs_time_and_no_reply(store, server, monkeypatch, fault):
    """The server takes eight calls at a time; it answers none of them before it has refused one."""
    monkeypatch.setattr("random.uniform", lambda low, high: 0.02)
    flying = Flying(8, fault, lambda flying: fake.open.clear() if len(fake.ledger) == 2 else None)

    def arrives(i, body):
        refused = flying.arrives(i, body)
        if refused:
            fake.open.set()
        return refused

    fake = server(reply=flying.leaves, faults=arrives, retry_after=0.1)
    responses, tally = ask(store, questions(get("openai:m"), 60), concurrency=48)
    assert [r.status for r in responses] == ["ok"] * 60 and tally.calls == 60
    assert 60 < len(fake.ledger) <= 2.5 * 60
    assert store.outcomes() == {"throttled": len(fake.ledger) - 60}


NOW = 1_700_000_000.25
IN_A_BODY = {"metadata": {"headers": {"X-RateLimit-Reset": str(round(1000 * NOW) + 90_000)}}}  # OpenRouter's


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "90"}, {}, 90),
        ({}, IN_A_BODY, 90),
        ({"retry-after": "soon"}, {}, None),
        ({}, {}, None),
    ],
)
def test_each_form_of_a_wait_is_read(monkeypatch, headers, body, seconds):
    monkeypatch.setattr(replies, "time", SimpleNamespace(time=lambda: NOW))
    limited, overloaded = (replies.classify(status, error("Wait")["error"] | body, headers) for status in (429, 503))
    assert limited.wait == pytest.approx(seconds) and limited.outcome == "throttled"
    assert overloaded.outcome == ("transient" if seconds is None else "throttled")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (None, "transient"),
        ("bad_gateway", "transient"),
        ("429", "throttled"),
        (400, "rejected"),
        ("rate_limit_exceeded", "throttled"),
        ("insufficient_quota", "fatal"),
        ("invalid_api_key", "fatal"),
    ],
)
def test_an_error_that_travels_as_a_success_is_one_by_its_own_number_or_passes(code, outcome):
    response = httpx2.Response(200, json={"error": {"message": "Upstream failed.", "code": code}})
    with pytest.raises(replies.Failure) as failure:
        replies.read_body(response)
    assert failure.value.outcome == outcome


@pytest.mark.parametrize("beside", ["message", "detail"])
def test_an_error_is_what_its_own_words_say_whatever_stands_beside_it(beside):
    body = {"error": {"message": "Add credits.", "code": "insufficient_quota"}, beside: "Slow down."}
    with pytest.raises(replies.Failure) as failure:
        replies.read_body(httpx2.Response(429, json=body))
    assert failure.value.outcome == "fatal" and "Add credits." in failure.value.detail


@pytest.mark.parametrize(("faults", "least", "most"), [(["429"], 599, 599.1), (["429-none"] * 3, 7, 10.6)])
def test_a_pause_is_kept_to_its_end_and_grows_where_none_is_asked_for(store, server, monkeypatch, faults, least, most):
    clock = Clock()
    clock.put_into(monkeypatch, askers, endpoint, replies)
    server(faults=faults, retry_after=599)
    [response], _ = ask(store, questions(get("openai:m"), 1))
    assert (response.status, response.attempts) == ("ok", 1 + len(faults))
    assert least <= clock.slept <= most


class Counted(FakeServer):
    """Keeps how many requests are there whenever another arrives."""

    async def _handle(self, request):
        self.there = [*getattr(self, "there", [0]), getattr(self, "now", 0) + 1]
        self.now = self.there[-1]
        try:
            return await super()._handle(request)
        finally:
            self.now -= 1


def test_after_a_refusal_half_as_many_calls_are_sent_at_once(store, registry):
    with Counted(faults={8: "429"}, retry_after=0, latency=0.2) as fake:
        ask(store, questions(mine(registry, fake), 40), concurrency=16)
    assert max(fake.there[-12:]) < 12, fake.there


def test_of_pauses_that_are_asked_for_at_once_the_longest_is_kept(store, server, monkeypatch):
    """Of twelve calls in flight one is refused with a second to wait, the others for a moment that nobody names."""
    monkeypatch.setattr("random.uniform", lambda low, high: 0.02)

    def arrives(i, body):
        if i == 12:
            fake.open.set()
        return {0: None, 1: "429"}.get(i, "429-none") if i <= 12 else None

    fake = server(faults=arrives, retry_after=1.0)
    asked = questions(get("openai:m"), 13)

    async def work(client):
        await client.chat_all(asked[:1], label=None)
        fake.open.clear()
        return await client.chat_all(asked, label=None)

    responses = within(store, work)
    assert [response.status for response in responses] == ["ok"] * 13
    refused, *again = (entry["time"] for entry in [fake.ledger[1], *fake.ledger[13:]])
    assert len(again) == 12 and min(again) - refused >= 1.0


@pytest.mark.parametrize("fault", ["401", "402", "403", "404", "429-quota", "429-hour", "no-such-model"])
def test_a_refused_model_stops_and_the_others_go_on(store, server, fault):
    fake = server(faults=lambda i, body: fault if body["model"] == "bad" else None)
    asked = [questions(get(f"openai:{name}"), 20)[k] for k in range(20) for name in ("bad", "good")]
    responses, tally = ask(store, asked)
    assert [r.status for r in responses] == ["error", "ok"] * 20
    assert sum(entry["body"]["model"] == "bad" for entry in fake.ledger) == 1
    assert (tally.calls, tally.failed) == (20, 20)
    assert all(r.error.startswith("HTTP 4") for r in responses[::2])


# keys -----------------------------------------------------------------------------------------------------------------


def test_the_key_is_in_no_error_no_reply_and_no_file(store, server, tmp_path):
    fake = server(reply=f"Your header says Bearer {KEY}.", faults=["401"])
    [response], _ = ask(store, questions(get("openai:m"), 1))
    assert fake.ledger[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    refused = "HTTP 401: Incorrect API key provided: [key]; the key is that of OPENAI_API_KEY"
    assert response.error == f"{refused} (after 1 attempt)"
    assert ask(store, questions(get("openai:m"), 1))[0][0].text == "Your header says Bearer [key]."
    assert store.outcomes() == {"fatal": 1}
    store.export_file(tmp_path / "export.jsonl")
    store.close()
    assert not [path for path in tmp_path.iterdir() if KEY.encode() in path.read_bytes()]


def test_a_missing_key_fails_before_the_first_call_of_any_model(store, server, registry, monkeypatch):
    fake = server()
    asked = [*questions(get("openai:m"), 3), *questions(get("openai/gpt-4o"), 1)]
    with pytest.raises(ProviderError, match=r"'openai/gpt-4o' .* set OPENROUTER_API_KEY in"):
        ask(store, asked)
    assert fake.ledger == []
    ask(store, asked[:3])
    monkeypatch.setenv("OPENAI_API_KEY", "")
    responses, tally = ask(store, asked[:3])  # all are stored: no key needed
    assert [r.status for r in responses] == ["ok"] * 3 and tally.stored == 3


@pytest.mark.parametrize("fields", ["", "base_url: 'localhost:8000/v1'"])
def test_no_address_is_an_error_and_not_another_providers(store, registry, fields):
    registry(f"providers:\n  mine: {{{fields}}}\n")
    with pytest.raises(ProviderError, match=r"`mine`, whose `base_url` must be an address"):
        ask(store, questions(get("mine:m"), 1))


def test_a_provider_of_ones_own_holds_for_listed_models_too(store, server, registry, monkeypatch):
    """The key went to the original host, though the user's own file says another."""
    original = server()  # where OPENAI_BASE_URL points to
    with FakeServer() as own:
        registry(f"providers: {{openai: {{base_url: '{own.url}', keys: [OUR_KEY]}}}}")
        monkeypatch.setenv("OUR_KEY", "our-own-key-123")
        asked = [Request(get(model), user("q")) for model in ("gpt-4-turbo", "openai:other")]  # listed, and not
        assert {response.status for response in ask(store, asked)[0]} == {"ok"}
        assert original.ledger == []
        assert [entry["headers"]["Authorization"] for entry in own.ledger] == ["Bearer our-own-key-123"] * 2


@pytest.mark.parametrize("name, where", [("ollama", "OLLAMA_BASE_URL"), ("mine", "`base_url`")])
def test_a_server_of_this_machine_that_is_not_there_is_said_at_once(store, registry, monkeypatch, name, where):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    registry(f"providers: {{mine: {{base_url: '{address}'}}}}")
    monkeypatch.setenv("OLLAMA_BASE_URL", address)
    responses, tally = ask(store, questions(get(f"{name}:m"), 30))
    assert tally.failed == 30
    assert all(f"nothing answers at {address}" in r.error and where in r.error for r in responses)
    assert store.outcomes() == {"fatal": 1}


def test_a_key_that_is_an_ordinary_word_changes_no_reply_and_no_message(store, server, monkeypatch):
    server(reply="the reply is EMPTY")
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    [response], _ = ask(store, questions(get("openai:m"), 1))
    assert response.text == redact(response.text) == "the reply is EMPTY"


# what is sent and what comes back -------------------------------------------------------------------------------------


def test_responses_come_in_the_order_of_the_requests(store, server):
    server(reply=said, faults={3: "500", 7: "drop"})
    responses, _ = ask(store, questions(get("openai:m"), 60), concurrency=20)
    assert [r.text for r in responses] == [f"question {i}" for i in range(60)]
    again, tally = ask(store, questions(get("openai:m"), 61)[::-1], concurrency=20)
    assert [r.text for r in again] == [f"question {i}" for i in reversed(range(61))]
    assert (tally.calls, tally.stored) == (1, 60)


@pytest.mark.parametrize("before", [["<think>", "so", "</think>", "\n\n"], ["<think>", "so", "</think>\n"], []])
def test_the_tokens_of_a_reply_begin_with_its_answer_whatever_was_thought_before(store, registry, before):
    tokens = [*before, "YES", "."]
    body = completion({"model": "m"}, "".join(tokens))
    rows = [{"token": token, "logprob": -0.5, "top_logprobs": []} for token in tokens]
    body["choices"][0]["logprobs"] = {"content": rows}
    with Raw([json.dumps(body)]) as fake:
        [response], _ = ask(store, questions(mine(registry, fake), 1))
    assert [token for token, *_ in response.logprobs] == ["YES", "."] and response.text == "YES."


def test_a_reply_carries_what_it_cost(store, server):
    fake = server(reply="YES", cost=0.25)
    model = get("openai:gpt-4.1-mini")
    [response], tally = ask(store, [Request(model, user("q"), {"logprobs": True, "top_logprobs": 2})])
    assert (response.status, response.cost, response.attempts, response.served_model) == ("ok", 0.25, 1, "gpt-4.1-mini")
    assert response.usage == {"prompt": 1, "completion": 2, "cached": 0, "reasoning": 0}
    assert response.logprobs == [("YES", -0.1, {"YES": -0.1, "NO": -1.1})]
    assert str(tally) == "1 model calls (3 tokens, $0.2500), 0 replies from the store, 0 failed"
    assert fake.ledger[0]["path"] == "/v1/chat/completions"


def test_equal_requests_of_one_batch_are_one_call(store, server):
    fake = server(latency=0.05)
    model = get("openai:m")
    responses, tally = ask(store, [*questions(model, 2), *questions(model, 2), *questions(model, 2, temperature=1)])
    assert len(fake.ledger) == 4 and (tally.calls, tally.stored) == (4, 2)
    assert responses[:2] == [r for r in responses[2:4]]


def test_a_refused_parameter_is_left_out_once_per_model_and_recorded(store, server):
    def picky(i, body):
        return "400-temperature" if "temperature" in body else "400-max_tokens" if "max_tokens" in body else None

    fake = server(faults=lambda i, body: picky(i, body) if body["model"] == "picky" else None)
    asked = questions(get("openai:picky"), 20, temperature=0.5, max_tokens=9)
    responses, _ = ask(store, [*asked, *questions(get("openai:other"), 1, temperature=0.5)])
    assert {r.status for r in responses} == {"ok"} and len(fake.ledger) == 2 + 20 + 1
    assert responses[0].adapted == {"temperature": None, "max_tokens": "max_completion_tokens"}
    sent = [entry["body"] for entry in fake.ledger if entry["body"]["model"] == "picky"][-1]
    assert sent["max_completion_tokens"] == 9 and not {"temperature", "max_tokens"} & {*sent}
    assert responses[-1].adapted is None
    again, tally = ask(store, asked)
    assert tally.calls == 0 and again[0].adapted == responses[0].adapted


def test_system_prompts_and_parameters_are_merged(registry):
    registry(
        "models: [{id: 'openai:captain', display: Captain, system: Speak as a captain.,"
        " parameters: {temperature: null, top_p: 0.5, max_tokens: 7}}]"
    )
    told, given = [{"role": "system", "content": "Be brief."}, *user("q")], {"temperature": 0.3, "max_tokens": 8}
    messages, parameters = Request(get("openai:captain"), told, given | {"seed": None}).full()
    assert messages == [{"role": "system", "content": "Speak as a captain.\n\nBe brief."}, *user("q")]
    assert parameters == {"top_p": 0.5, "max_tokens": 8} and told[0]["content"] == "Be brief."
    assert Request(get("openai:captain"), user("q")).full()[1]["max_tokens"] == 7


def test_callables_plain_asynchronous_and_failing(store):
    async def slow(messages, **parameters):
        await asyncio.sleep(0.01)
        return Response(f"{messages[0]['content']} {parameters}")

    def broken(messages):
        raise ValueError("no idea")

    cases = {
        slow: ("q {'top_p': 1}", "ok", None),
        lambda messages: "plain \ud800": ("plain \ufffd", "ok", None),
        lambda messages, top_p=0: f"{top_p}": ("1", "ok", None),
        lambda messages, **_: " ": (" ", "empty", None),
        lambda messages: Response(None): ("", "error", "ValueError: a response has a `text` that is text"),
        lambda messages: 5: ("", "error", "TypeError: the function must return a text or a Response, got 5"),
        broken: ("", "error", "ValueError: no idea"),
    }
    for call, answer in cases.items():
        [response], tally = ask(store, [Request(from_callable(call, "me"), user("q"), {"top_p": 1})])
        assert (response.text, response.status, response.error) == answer
        assert (tally.calls, tally.failed) == (0, answer[1] == "error")
    assert not list(store.rows())


def test_chains_of_single_calls_share_the_places_and_each_reply_is_on_disk_before_the_next_call(
    store, server, registry
):
    def then(flying):
        """Answer none of the calls after the first before there are seven."""
        if len(fake.ledger) == 2:
            fake.open.clear()
        if flying.now == 7:
            fake.open.set()

    async def chain(client, name):
        for step in range(3):
            request = Request(model, user(f"chain {name}, step {step}"))
            await client.chat(request.model, request.messages)
            assert store.look_up({request.key: ""})

    flying = Flying(then=then)
    fake = server(reply=flying.leaves, faults=flying.arrives)
    model = mine(registry, fake, deadline=60, more=", concurrency: 7")
    within(store, lambda client: gather(chain(client, name) for name in range(40)), 8)
    assert flying.most == 7
    assert within(store, lambda client: gather(chain(client, -name) for name in range(3))) == [None] * 3


def test_a_failure_is_raised_as_itself_and_without_a_group_that_kernels_cannot_show(store):
    def broken(messages, **parameters):
        raise StoreError("full")

    with pytest.raises(StoreError, match="full") as raised:
        ask(store, questions(from_callable(broken, "mine/broken"), 3))
    assert raised.value.__context__ is None


def test_progress_is_written_for_the_sweep(store, server, tmp_path, monkeypatch):
    server(cost=0.5)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setattr(client, "tallies", [])
    monkeypatch.setenv("SELFEVAL_PROGRESS", str(tmp_path / "progress.json"))
    for asked in (questions(get("openai:m"), 5), [Request(get("openai:m"), user("another notebook's client"))]):
        within(store, lambda client, asked=asked: client.chat_all(asked, label="questions"))
    state = json.loads((tmp_path / "progress.json").read_text())
    assert state.pop("tokens") > 0
    nothing = {"again": 0, "simulated": 0, "unpriced": 0, "stored": 0, "failed": 0}
    assert state == {"calls": 6, "cost": 3.0} | nothing


# identity -------------------------------------------------------------------------------------------------------------


def identity(model="openai:m", text="q", sample=0, seed=0, **parameters):
    return Request(get(model), user(text), parameters, sample, seed).key


def test_what_can_change_a_reply_changes_its_key_and_nothing_else_does(registry, monkeypatch):
    given = {"temperature": 1, "max_tokens": 5}
    base = identity(**given)
    assert base == identity(max_tokens=5.0, temperature=1.0) == identity(**given, top_p=None)
    assert base == identity(**given, seed=9)  # this provider takes no seed
    changes = {"temperature": [0.9], "max_tokens": [None], "sample": [1], "text": ["q "]}
    changes |= {"model": ["openai:n", "openrouter:openai/m"]}
    different = [identity(**given | {name: value}) for name, values in changes.items() for value in values]
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert base == identity(**given)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")  # no longer the provider's own address
    assert len({base, *different, identity(**given)}) == 2 + len(different)

    def own(url, fields=""):
        registry(f"providers:\n  own: {{base_url: '{url}'{fields}}}\n")
        return identity("own:m", seed=3)

    first = own("http://127.0.0.1:1/v1")
    assert first == own("http://me:hunter2@127.0.0.1:1/v1/", ", deadline: 5, concurrency: 3, keys: [X], logprobs: true")
    assert len({first, own("http://127.0.0.1:2/v1"), own("http://127.0.0.1:1/v1", ", seeded: true")}) == 3


def test_floats_have_the_same_key_on_every_python():
    asked = canonical({"temperature": [0.1 + 0.2, -0.0, 2.675, 1e-7, 5e-324, 1e16, 123456789.123456789]})
    values = "0.30000000000000004,0,2.675,1e-07,5e-324,10000000000000000,123456789.12345679"
    assert asked == f'{{"temperature":[{values}]}}'
    assert key_of(asked) == "4d49345fe62d26098e093261e19e64877a86ac20fc7b57cbcec8a5c10f8cc8e2"


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_a_request_that_is_no_json_is_one_sentence(store, server, value):
    fake = server()
    with pytest.raises(InputError, match="A request holds texts, finite numbers, lists and dictionaries alone"):
        ask(store, questions(get("openai:m"), 1, temperature=value))
    assert fake.ledger == []


# verbs ----------------------------------------------------------------------------------------------------------------


def test_a_verb_prints_the_sentence_and_the_records_say_who_served_each_reply(server, capsys, own_store, monkeypatch):
    names = iter(["East", "West"])
    monkeypatch.setattr("fake_server.completion", lambda *given: completion(*given) | {"provider": next(names)})
    server()
    texts = se.generate_texts("openai:m", prompts=2)
    assert sorted(texts["served_by"]) == ["East", "West"]
    assert "openai:m, served by m via East, m via West: its numbers mix them" in capsys.readouterr().out
