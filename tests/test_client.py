"""The client from outside: every fault of the fake server, limits, deadlines, keys, order, and what is never sent."""

import asyncio
import contextlib
import json
import re
import sqlite3
import time
from pathlib import Path

import openai  # noqa: F401  its import takes half a second, which is no part of a deadline
import pytest
from aiohttp import web
from conftest import AT_ONCE, FULL, KEY
from fake_server import ANSWERS, FAULTS, FakeServer, completion, error

from selfeval import models
from selfeval.asking import endpoint
from selfeval.asking.client import Client, gather
from selfeval.asking.messages import user
from selfeval.asking.request import Request, Response
from selfeval.errors import InputError, ProviderError, StoreError
from selfeval.models import from_callable, get


def ask(store, requests, concurrency=16):
    """Return the responses to requests and the client's tally."""

    async def work(client):
        return await client.chat_all(requests, label=None), client.tally

    return within(store, work, concurrency)


def within(store, work, concurrency=16):
    """Return what `work(client)` returns."""

    async def run():
        async with Client(concurrency, store) as client:
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


# faults ---------------------------------------------------------------------------------------------------------------

NO_ANSWER = """500 502 503 empty html bad-utf8 200-error null choices-null choices-empty finish-error drop short
truncated hang trickle""".split()
STATUS = {"empty-content": "empty", "null-content": "empty", "length": "length", "cut": "length"}
STATUS |= {"filtered": "filtered", "refusal": "refusal", "surrogate": "ok", "nul": "ok", "400": "error"}
STATUS |= dict.fromkeys(NO_ANSWER, "error")


def test_every_fault_has_a_test():
    assert {*FAULTS} - {*STATUS} == {
        *("429", "429-date", "429-ms", "429-none", "429-hour", "429-quota", "401", "402", "403", "404"),
        *("400-temperature", "400-max_tokens"),
    }


@pytest.mark.fault("broken reply")
@pytest.mark.fault("no answer")
def test_a_lasting_fault_ends_as_its_status_after_few_attempts_and_is_never_stored(store, server, registry):
    fake = server(faults=lambda i, body: said(body) if said(body) in FAULTS else None, hang=20)
    model = mine(registry, fake, deadline=1.5)
    started = time.monotonic()
    responses, tally = ask(store, [Request(model, user(text)) for text in ("first", *STATUS)], concurrency=64)
    assert time.monotonic() - started < 15
    got = dict(zip(STATUS, responses[1:], strict=True))
    assert {fault: response.status for fault, response in got.items()} == STATUS
    asked = [said(entry["body"]) for entry in fake.ledger]
    for fault, response in got.items():
        if response.status == "error":
            assert response.text == "" and response.error
            assert asked.count(fault) == 1 if fault == "400" else 2 <= asked.count(fault) <= 6
        else:
            assert asked.count(fault) == 1
    assert {fault: r.text for fault, r in got.items() if r.text} == {
        "cut": "An answer that was cut o",
        "refusal": "I'm sorry, I can't help with that.",
        "surrogate": "lone \ufffd surrogate",
        "nul": "before\0after",
    }
    assert tally.failed == len(NO_ANSWER) + 1
    assert len(list(store.rows())) == 1 + len(STATUS) - tally.failed
    assert store.outcomes() == {"rejected": 1, "transient": sum(asked.count(fault) for fault in NO_ANSWER)}


@pytest.mark.fault("broken reply")
def test_a_fault_that_passes_costs_one_more_attempt(store, server, registry):
    seen = set()

    def once(i, body):
        text = said(body)
        return None if text in seen or text not in NO_ANSWER else seen.add(text) or text

    fake = server(faults=once, hang=20)
    responses, tally = ask(store, [Request(mine(registry, fake, 2), user(t)) for t in ("first", *NO_ANSWER)], 64)
    assert {(r.status, r.attempts) for r in responses[1:]} == {("ok", 2)}
    assert all(r.text.startswith("reply-") for r in responses) and tally.failed == 0


def test_a_service_that_never_answers_is_given_up_after_three_calls(store, server, registry):
    fake = server(faults=lambda i, body: "drop")
    responses, tally = ask(store, questions(mine(registry, fake, deadline=0.4), 200))
    assert tally.failed == 200 and all("connection failed" in r.error for r in responses)
    assert store.outcomes()["transient"] <= 3 * 6


MUTANTS = (None, 5, -1, 1.5, True, "", "x", [], ["x"], [None], {}, {"x": 1}, [[["y"]]])


@pytest.mark.fault("broken reply")
def test_a_reply_of_any_shape_is_a_typed_status(store, registry, monkeypatch):
    """Put each of many odd values into each place of a good body: never an exception after the call was paid."""
    good = completion({"model": "m", "logprobs": True, "top_logprobs": 2}, "YES")
    good["choices"][0]["message"]["reasoning"] = "because"

    def places(node, path=()):
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            yield (*path, key)
            yield from places(node[key], (*path, key))

    bodies = []
    for path in places(good):
        for mutant in MUTANTS:
            body = node = json.loads(json.dumps(good))
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = mutant
            bodies.append(json.dumps(body))
    bodies += ["NaN", "[" * 100_000, '{"a":' * 5_000, "9" * 5_000, json.dumps(good).replace("-0.1", "-Infinity")]
    bodies += [json.dumps(good | {"error": {"code": 503, "metadata": odd}}) for odd in ("x", [], {"headers": "x"})]

    class Raw(FakeServer):
        async def _handle(self, request):
            return web.Response(body=bodies.pop().encode(), content_type="application/json")

    monkeypatch.setitem(endpoint.ATTEMPTS, "transient", 1)
    monkeypatch.setattr(endpoint, "UNPROVEN", 10_000)
    monkeypatch.setattr(endpoint, "IN_A_ROW", 10_000)
    with Raw() as fake:
        responses, _ = ask(store, questions(mine(registry, fake), len(bodies)), concurrency=8)
    kept = [r for r in responses if r.status != "error"]
    assert {r.status for r in kept} == {"ok", "empty", "refusal"} and len(kept) > 300
    assert all(isinstance(r.text, str) for r in responses)
    assert store.statistics()[0]["replies"] == len(kept)


HUGE = "9" * 400
COSTS = {"0.25": 0.25, "0": 0.0, "3": 3.0} | dict.fromkeys(
    ["1e999", "-1", "-0.5", "true", "NaN", "Infinity", '"1"', "[1]", HUGE, "9" * 5000, "1" + HUGE]
)


@pytest.mark.fault("broken reply")
def test_a_cost_or_count_that_is_none_is_unknown_and_the_reply_is_kept(store, registry):
    counts = {"5": 5, "0": 0} | dict.fromkeys(["-1", "true", "1.5", str(2**53), HUGE, "1e999", '"5"'])
    good = json.dumps(completion({"model": "m"}, "YES", cost="COST") | {"x": "y"})
    bodies = [good.replace('"COST"', cost) for cost in COSTS]
    bodies += [
        good.replace('"COST"', "1").replace('"completion_tokens": 2', f'"completion_tokens": {n}') for n in counts
    ]
    bodies += [good.replace('"logprobs": null', '"logprobs": {"content": [{"token": "a", "logprob": -1e999}]}')]

    class Raw(FakeServer):
        async def _handle(self, request):
            index = int(said(await request.json()).split()[1])
            return web.Response(body=bodies[index].encode(), content_type="application/json")

    with Raw() as fake:
        responses, _ = ask(store, questions(mine(registry, fake), len(bodies)))
    assert [r.text for r in responses] == ["YES"] * len(bodies) and len(list(store.rows())) == len(bodies)
    assert [r.cost for r in responses[: len(COSTS)]] == list(COSTS.values())
    assert [r.usage.get("completion") for r in responses[len(COSTS) : -1]] == list(counts.values())
    assert responses[-1].logprobs == [("a", None, {})]
    [row] = store.statistics()
    assert row["cost"] == 3.25 + len(counts)


# limits of rate -------------------------------------------------------------------------------------------------------


class Limited:
    """Faults of a server that lets so many requests through per window, and the bounds that a ledger must keep."""

    def __init__(self, fault, per_window, window):
        self.fault, self.per_window, self.window = fault, per_window, window
        self.began, self.used = 0.0, 0

    def __call__(self, i, body):
        now = time.monotonic()
        if now - self.began > self.window:
            self.began, self.used = now, 0
        self.used += 1
        return self.fault if self.used > self.per_window else None


def too_early(ledger, wait):
    """Count requests between a volley's refusal and the end of the pause that it asked for."""
    refused = [entry["time"] for entry in ledger if entry["fault"]]
    return sum(any(t + 0.2 < entry["time"] < t + wait - 0.005 for t in refused) for entry in ledger)


@pytest.mark.parametrize("fault, wait", [("429-ms", 0.6), ("429-none", 0)] + [("429", 1), ("429-date", 0.6)] * FULL)
@pytest.mark.fault("throttled")
def test_a_rate_limit_costs_time_and_no_reply(store, server, fault, wait):
    fake = server(faults=Limited(fault, 15, wait or 0.8), retry_after=wait, latency=0.01)
    responses, tally = ask(store, questions(get("openai:m"), 40), concurrency=32)
    assert [r.status for r in responses] == ["ok"] * 40 and tally.calls == 40
    assert any(entry["fault"] for entry in fake.ledger)
    assert len(fake.ledger) <= 2.5 * 40
    assert too_early(fake.ledger, wait) == 0
    assert store.outcomes() == {"throttled": len(fake.ledger) - 40}


@pytest.mark.parametrize("fault", ["401", "402", "403", "404", "429-quota", "429-hour"])
@pytest.mark.fault("refused")
def test_a_refused_model_stops_and_the_others_go_on(store, server, fault):
    fake = server(faults=lambda i, body: fault if body["model"] == "bad" else None)
    asked = [r for pair in zip(questions(get("openai:bad"), 20), questions(get("openai:good"), 20)) for r in pair]  # noqa: B905
    started = time.monotonic()
    responses, tally = ask(store, asked)
    assert time.monotonic() - started < 15
    assert [r.status for r in responses] == ["error", "ok"] * 20
    assert sum(entry["body"]["model"] == "bad" for entry in fake.ledger) <= 2
    assert (tally.calls, tally.failed) == (20, 20)
    assert all(r.error.startswith(f"HTTP {fault[:3]}: ") for r in responses[::2])


@pytest.mark.fault("refused")
def test_a_model_refused_in_the_middle_stops_also_for_the_calls_that_wait(store, server):
    fake = server(faults=lambda i, body: "402" if i >= 10 else None, latency=0.02)

    model = get("openai:m")
    responses = within(store, lambda client: gather(client.chat(model, user(f"q {i}")) for i in range(100)), 2)
    assert [r.status for r in responses].count("ok") == 10
    assert len(fake.ledger) <= 10 + 2


@pytest.mark.parametrize(
    "message", ["nobody/x is not a valid model ID", "API key not valid. Please pass a valid API key."]
)
@pytest.mark.fault("refused")
def test_a_400_about_the_model_or_the_key_stops_the_model(store, server, monkeypatch, message):
    monkeypatch.setitem(ANSWERS, "400", (400, error(message, 400), None))
    fake = server(faults=lambda i, body: "400")
    responses, _ = ask(store, questions(get("openai:x"), 30))
    assert len(fake.ledger) == 1 and all(message in r.error for r in responses)


@pytest.mark.parametrize("fault", ["hang", "trickle"])
@pytest.mark.fault("deadline")
def test_a_call_ends_at_its_deadline(store, server, registry, fault):
    fake = server(faults=lambda i, body: fault if i else None, hang=20)
    model = mine(registry, fake, deadline=1)

    async def work(client):
        await client.chat(model, user("first"))
        started = time.monotonic()
        return await client.chat(model, user("q")), time.monotonic() - started

    response, seconds = within(store, work)
    assert 0.9 < seconds < 1 + AT_ONCE
    assert response.status == "error" and "no complete reply within" in response.error
    assert len(fake.ledger) == 1 + 2  # half of the time each


# keys -----------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("key")
def test_the_key_is_in_no_error_and_no_file(store, server, tmp_path):
    fake = server(faults=["401"])
    [response], _ = ask(store, questions(get("openai:m"), 1))
    assert fake.ledger[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    assert response.error == "HTTP 401: Incorrect API key provided: [key]. (after 1 attempt)"
    ask(store, questions(get("openai:m"), 2))
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


def test_a_key_with_a_line_end_is_used_without_it_and_a_broken_one_is_refused(store, server, monkeypatch):
    fake = server()
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert ask(store, questions(get("openai:m"), 1))[0][0].status == "ok"
    assert fake.ledger[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-…")
    with pytest.raises(ProviderError, match="key in OPENAI_API_KEY has characters") as caught:
        ask(store, questions(get("openai:m"), 2))
    assert "…" not in str(caught.value)


@pytest.mark.parametrize(
    "fields", ["", "base_url: 'localhost:8000/v1'", "base_url: 'http://[::1'", "base_url: 'http://'"]
)
def test_no_address_is_an_error_and_not_another_providers(store, registry, fields):
    registry(f"providers:\n  mine: {{{fields}}}\n")
    with pytest.raises(ProviderError, match=r"`mine`, whose `base_url` must be an address like http://127\.0\.0\.1"):
        ask(store, questions(get("mine:m"), 1))


ODD_ANSWERS = [
    b"\0\1 hello\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 500 x\r\nContent-Type: application/json; charset=nonsense\r\nContent-Length: 3\r\n\r\n\xff\xfea",
]


@pytest.mark.fault("broken reply")
def test_what_is_hardly_http_is_a_failed_call(store, registry):
    async def serve(reader, writer):
        path = (await reader.read(10_000)).split()[1]
        writer.write(ODD_ANSWERS[int(path.split(b"/")[1])])
        await writer.drain()
        writer.close()

    async def run():
        service = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = service.sockets[0].getsockname()[1]
        own = (f"  p{k}: {{base_url: 'http://127.0.0.1:{port}/{k}', deadline: 1}}\n" for k in range(len(ODD_ANSWERS)))
        registry("providers:\n" + "".join(own))
        async with service, Client(2, store) as client:
            return await client.chat_all([Request(get(f"p{k}:m"), user("q")) for k in range(len(ODD_ANSWERS))], None)

    for response in asyncio.run(asyncio.wait_for(run(), 20)):
        assert response.status == "error" and re.search(r"\(after [2-6] attempts\)", response.error)  # as time allows


# what is sent and what comes back -------------------------------------------------------------------------------------


def test_responses_come_in_the_order_of_the_requests(store, server):
    server(reply=said, faults={3: "500", 7: "drop"})
    responses, _ = ask(store, questions(get("openai:m"), 60), concurrency=20)
    assert [r.text for r in responses] == [f"question {i}" for i in range(60)]
    again, tally = ask(store, questions(get("openai:m"), 61)[::-1], concurrency=20)
    assert [r.text for r in again] == [f"question {i}" for i in reversed(range(61))]
    assert (tally.calls, tally.stored) == (1, 60)


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


def test_who_waits_for_anothers_call_takes_no_turn_from_it_when_both_are_held_back(store, server):
    fake = server(faults=[None, "429-ms"], retry_after=0.2, latency=0.05)
    model = get("openai:m")

    async def work(client):
        await client.chat(model, user("first"))
        return await client.chat_all([*questions(model, 1), *questions(model, 1)], label=None)

    assert [r.status for r in within(store, work, 2)] == ["ok"] * 2 and len(fake.ledger) == 3


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


def test_system_prompts_and_parameters_are_merged(store, server, registry):
    fake = server()
    registry(
        "models:\n  - {id: 'openai:captain', display: Captain, system: Speak as a captain.,"
        " parameters: {temperature: null, top_p: 0.5, max_tokens: 7}}\n"
    )
    told = [{"role": "system", "content": "Be brief."}, *user("q")]
    given = {"temperature": 0.3, "max_tokens": 8, "seed": None}
    ask(store, [Request(get("openai:captain"), told, given), Request(get("openai:captain"), user("q"), {})])
    first, second = sorted((e["body"] for e in fake.ledger), key=lambda body: -body["max_tokens"])
    assert first["messages"] == [{"role": "system", "content": "Speak as a captain.\n\nBe brief."}, *user("q")]
    assert second["messages"][0]["content"] == "Speak as a captain." and told[0]["content"] == "Be brief."
    assert {k: v for k, v in first.items() if k != "messages"} == {"model": "captain", "top_p": 0.5, "max_tokens": 8}
    assert second["max_tokens"] == 7


@pytest.mark.fault("odd text")
def test_a_request_with_lone_surrogates_is_sent_and_found_again(store, server):
    server(reply="YES")
    request = Request(get("openai:m"), user("lone \ud800, nul \0, \U0001f600"))
    assert ask(store, [request])[0][0].text == "YES"
    assert ask(store, [request])[1].stored == 1


def test_callables_plain_asynchronous_and_failing(store):
    async def slow(messages, **parameters):
        await asyncio.sleep(0.01)
        return Response(f"{messages[0]['content']} {parameters}")

    def broken(messages):
        raise ValueError("no idea")

    cases = [(lambda messages, **_: "plain", "plain", "ok"), (slow, "q {'top_p': 1}", "ok")]
    for call, text, status in [*cases, (lambda messages, **_: " ", " ", "empty")]:
        [response], tally = ask(store, [Request(from_callable(call, "me"), user("q"), {"top_p": 1})])
        assert (response.text, response.status, tally.calls) == (text, status, 0)
    for call, text in ((lambda messages: "plain", "plain"), (lambda messages, top_p=0: f"{top_p}", "1")):
        [response], _ = ask(store, [Request(from_callable(call, "me"), user("q"), {"top_p": 1, "temperature": 0})])
        assert (response.text, response.status) == (text, "ok")
    [response], _ = ask(store, [Request(from_callable(lambda messages: "lone \ud800", "me"), user("q"))])
    assert response.text == "lone \ufffd"
    for value in (None, 5, {"text": "hi"}):
        [response], _ = ask(store, [Request(from_callable(lambda messages, value=value: value, "me"), user("q"))])
        assert (response.status, response.text) == ("error", "")
        assert response.error == f"TypeError: the function must return a text or a Response, got {value!r}"
    [response], tally = ask(store, [Request(from_callable(broken, "me"), user("q"))])
    assert (response.status, response.text, tally.failed) == ("error", "", 1)
    assert response.error == "ValueError: no idea"
    assert not list(store.rows())


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True, "8"])
def test_concurrency_is_a_whole_number(concurrency):
    with pytest.raises(InputError, match=re.escape(f"whole number of at least 1, got {concurrency!r}")):
        Client(concurrency)


def test_a_call_that_is_stopped_while_it_waits_takes_no_place_from_the_others(store, server):
    fake = server(latency=0.1)

    async def work(client):
        calls = [asyncio.create_task(client.chat(get("openai:m"), user(f"q{k}"))) for k in range(5)]
        await asyncio.sleep(0.05)
        calls[1].cancel()
        calls[3].cancel()
        return [(await call).status for call in calls[::2]]

    assert within(store, work, 1) == ["ok"] * 3 and len(fake.ledger) == 3


def test_a_bound_of_the_registry_that_is_lower_than_asked_is_said(store, server, registry):
    model = mine(registry, server(), more=", concurrency: 2")
    with pytest.warns(UserWarning, match="At most 2 calls to `mine` are in flight at a time, and not 16"):
        ask(store, questions(model, 3))


def test_chains_of_single_calls_share_the_places_and_each_reply_is_on_disk_before_the_next_call(store, server):
    flying = most = claimed = 0

    def reply(body):
        nonlocal flying
        flying -= 1
        return "x"

    def arrived(i, body):
        nonlocal flying, most, claimed
        flying += 1
        most = max(most, flying)
        with contextlib.closing(sqlite3.connect(store.path)) as reader:
            claimed = max(claimed, reader.execute("SELECT count(*) FROM claims").fetchone()[0])

    async def chain(client, name):
        kept = []
        for step in range(3):
            request = Request(get("openai:m"), user(f"chain {name}, step {step}"))
            await client.chat(request.model, request.messages)
            kept.append(store.get(request.key) is not None)
        return kept

    server(reply=reply, faults=arrived, latency=0.02)
    kept = within(store, lambda client: gather(chain(client, name) for name in range(40)), 8)
    assert kept == [[True] * 3] * 40
    assert most == 8
    assert claimed <= 2 * 8  # in flight, or on the way to the disk


def test_a_failure_is_raised_as_itself_and_without_a_group_that_kernels_cannot_show(store):
    def broken(messages, **parameters):
        raise StoreError("full")

    with pytest.raises(StoreError, match="full") as raised:
        ask(store, questions(from_callable(broken, "mine/broken"), 3))
    assert raised.value.__context__ is None


@pytest.mark.parametrize("key", ["x", "EMPTY", "text"])
def test_a_key_that_is_an_ordinary_word_changes_no_reply(store, server, monkeypatch, key):
    server(reply=f"the text is {key}")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    [response], _ = ask(store, questions(get("openai:m"), 1))
    assert response.text == f"the text is {key}"


def test_progress_is_written_for_the_sweep(store, server, tmp_path, monkeypatch):
    server(cost=0.5)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setenv("SELFEVAL_PROGRESS", str(tmp_path / "progress.json"))

    def work(client):
        return client.chat_all(questions(get("openai:m"), 5), label="questions")

    within(store, work)
    state = json.loads((tmp_path / "progress.json").read_text())
    assert state.pop("tokens") > 0
    nothing = {"again": 0, "simulated": 0, "unpriced": 0, "stored": 0, "failed": 0}
    assert state == {"label": "questions", "done": 5, "total": 5, "calls": 5, "cost": 2.5} | nothing
    monkeypatch.setenv("SELFEVAL_PROGRESS", str(tmp_path / "gone" / "progress.json"))
    within(store, work)  # a place that cannot be written costs no reply


# identity -------------------------------------------------------------------------------------------------------------


def identity(model="openai:m", text="q", sample=0, seed=0, **parameters):
    return Request(get(model), user(text), parameters, sample, seed).key


@pytest.mark.fault("changed")
def test_what_can_change_a_reply_changes_its_key_and_nothing_else_does(registry, monkeypatch):
    base = identity(temperature=1, max_tokens=5)
    assert base == identity(max_tokens=5.0, temperature=1.0) == identity(temperature=1, max_tokens=5, top_p=None)
    assert base == identity(temperature=1, max_tokens=5, seed=9)  # this provider takes no seed
    different = [
        identity(temperature=0.9, max_tokens=5),
        identity(temperature=1),
        identity(temperature=1, max_tokens=5, sample=1),
        identity(temperature=1, max_tokens=5, text="q "),
        identity(temperature=1, max_tokens=5, model="openai:n"),
        identity(temperature=1, max_tokens=5, model="openrouter:openai/m"),
        identity(temperature=1, max_tokens=5, response_format={"type": "json_object"}),
    ]
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert base == identity(temperature=1, max_tokens=5)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")  # no longer the provider's own address
    different.append(identity(temperature=1, max_tokens=5))
    assert len({base, *different}) == 1 + len(different)

    def own(url, fields=""):
        registry(f"providers:\n  own: {{base_url: '{url}'{fields}}}\n")
        return identity("own:m", seed=3)

    first = own("http://127.0.0.1:1/v1")
    assert first == own("http://127.0.0.1:1/v1", ", deadline: 5, concurrency: 3, keys: [X], logprobs: true")
    assert first == own("http://127.0.0.1:1/v1/")
    assert len({first, own("http://127.0.0.1:2/v1"), own("http://127.0.0.1:1/v1", ", seeded: true")}) == 3


@pytest.mark.fault("key")
def test_an_address_with_a_password_is_not_stored_with_it(registry):
    registry("providers:\n  own: {base_url: 'https://me:hunter2@127.0.0.1:1/v1'}\n")
    assert "hunter2" not in Request(get("own:m"), user("q")).identity


def test_the_embedded_models_key_knows_no_port_but_the_weights(registry, monkeypatch):
    local = models.providers()["local"]
    request = Request(get("local/smollm2-135m"), user("q"), {}, 1, 2)
    assert json.loads(request.identity)["provider"] == {
        "provider": "local", "engine": local.embedded["engine"], "settings": local.embedded["settings"],
        "sha256": local.embedded["sha256"],
    }  # fmt: skip
    assert json.loads(request.identity)["parameters"] == {"seed": 2_000_001}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, Path("x")])
def test_a_request_that_is_no_json_is_one_sentence(store, server, value):
    fake = server()
    with pytest.raises(InputError, match="A request holds texts, finite numbers, lists and dictionaries alone"):
        ask(store, questions(get("openai:m"), 1, temperature=value))
    assert fake.ledger == []
