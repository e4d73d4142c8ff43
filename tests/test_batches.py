"""Batches from outside: both forms, what goes wrong on the way, kills, and that nothing is bought twice."""

import asyncio
import gzip
import json
import random
import signal
import time
from collections import Counter
from dataclasses import replace

import pytest
from aiohttp import web
from click.testing import CliRunner
from conftest import FULL, wait_for
from fake_server import error
from test_client import ask, process, questions, said, within
from test_store import count, query

from selfeval.cli import main
from selfeval.errors import BudgetError
from selfeval.providers import batches, client
from selfeval.providers.models import get
from selfeval.providers.request import user
from selfeval.providers.store import Store

MODELS = "providers: {{{0}: {{base_url: '{1}', hosted: true, batch: {0}, answer_tokens: 100}}}}\n" + (
    "models: [{{id: '{0}:m', provider: {0}, model: m, display: M, price: {{input: 1, output: 4}}}}]"
)
SMALL = "from selfeval.providers import batches\nbatches.POLL, batches.MOST = 0.02, {{'inline': {0}, 'files': {0}}}\n"


@pytest.fixture(params=["inline", "files"])
def batched(request, server, registry, monkeypatch):
    """A function that starts a server with faults of batches; returns it and a model of its in one form of batches."""
    monkeypatch.setattr(batches, "POLL", 0.02)
    monkeypatch.setattr(batches, "MOST", {"inline": 40, "files": 40})

    def start(faults=None, **how):
        fake = server(**how)
        fake.batch_faults = faults or {}
        registry(MODELS.format(request.param, fake.url))
        return fake, get(f"{request.param}:m")

    return start


def bought(fake):
    """Return how often each question was in a batch that was made."""
    return Counter(said(line["body"]) for batch in fake.batches for line in batch["lines"])


def cost(store):
    return sum(json.loads(response)["cost"] for [response] in query(store, "SELECT response FROM replies"))


def leave_a_batch(fake, store, model, monkeypatch):
    """Interrupt somebody who waits for a batch of five questions, whose replies come from now on."""
    monkeypatch.setenv("SELFEVAL_BATCH", "1")
    waiting = process(store.path, range(5), model.id, first=SMALL.format(40))
    wait_for(lambda: fake.batches and fake.batches[0]["looks"] > 2)
    waiting.send_signal(signal.SIGINT)
    waiting.communicate()
    fake.batch_faults.clear()


def test_a_study_in_batches_has_the_same_replies_as_one_without_at_half_the_price(store, batched, tmp_path):
    fake, model = batched({1: "500"})
    responses, tally = ask(store, questions(model, 100), batch=True)
    single, dear = ask(Store(tmp_path / "single.sqlite"), questions(model, 100))
    assert [r.text for r in responses] == [r.text for r in single] and {*bought(fake).values()} == {1}
    assert tally.cost == pytest.approx(fake.dollars) and 0.48 * dear.cost < tally.cost <= 0.52 * dear.cost
    assert len(fake.batches) == 3 and tally.calls == 100 and not count(store, "claims")
    assert ask(store, questions(model, 100))[1].stored == 100, "an ordinary call is the same request"


def test_a_failed_line_says_why_and_the_next_run_asks_it_again(store, batched):
    fake, model = batched({1: "expired", 2: "failed"})
    kinds = {"question 3": "drop", "question 5": "500", "question 7": "empty-content"}
    fake.faults = lambda i, body: kinds.get(said(body)) or ("400-temperature" if "42" in said(body) else None)
    responses, tally = ask(store, questions(model, 100, temperature=0), batch=True)
    why = Counter(r.error for r in responses if r.status == "error")
    assert why["This line failed"] == 1 and why["HTTP 500: The server had an error while processing your request."] == 1
    assert why["the batch batch-1 ended as expired: It took too long"] == 20
    assert why["the batch batch-2 ended as failed: It took too long"] == 20
    assert responses[7].status == "empty" and responses[42].adapted == {"temperature": None} and tally.calls == 58
    kinds.clear()
    responses, tally = ask(store, questions(model, 100, temperature=0), batch=True, again="empty")
    assert {r.status for r in responses} == {"ok"} and cost(store) == pytest.approx(fake.dollars)
    fake.batch_faults[len(fake.ledger)] = "429"
    assert "Rate limit reached" in ask(store, questions(model, 101, temperature=0), batch=True)[0][-1].error
    assert ask(store, questions(model, 101, temperature=0), batch=True)[1].calls == 1


@pytest.mark.parametrize("fault", ["lost", "unmade"])
def test_a_batch_whose_answer_was_lost_is_never_sent_again_unasked(store, batched, fault, monkeypatch):
    fake, model = batched({0: fault})
    responses, _ = ask(store, questions(model, 5), batch=True)
    if model.provider.batch == "files":
        assert {r.status for r in responses} == {"ok"} and {*bought(fake).values()} == {1}
        return
    assert all("forget-batch" in r.error for r in [*responses, *ask(store, questions(model, 5))[0]])
    assert len(fake.ledger) == 1
    monkeypatch.setenv("SELFEVAL_STORE", str(store.path))
    [[batch]] = query(store, "SELECT id FROM batches")
    assert CliRunner().invoke(main, ["store", "forget-batch", batch]).output.startswith("5 requests")
    assert {r.status for r in ask(store, questions(model, 5), batch=True)[0]} == {"ok"} and len(fake.ledger) == 2


def test_a_lost_batch_is_found_behind_newer_ones_of_others(store, batched):
    fake, model = batched({0: "lost"})
    answer = fake._batched

    def listing(request, raw, rest):
        if request.method != "GET" or rest:
            return answer(request, raw, rest)
        theirs = {"id": "batch-9", "object": "batch", "created_at": int(time.time()), "metadata": None}
        return web.json_response({"object": "list", "data": [theirs, *fake.batches[::-1]], "has_more": False})

    fake._batched = listing
    ask(store, questions(model, 5), batch=True)
    assert len(fake.ledger) == 1


def test_a_batch_that_stays_is_waited_for_by_whoever_asks_next(store, batched, monkeypatch):
    fake, model = batched({0: "stays"})
    leave_a_batch(fake, store, model, monkeypatch)
    monkeypatch.setenv("SELFEVAL_BATCH", "")
    look, fake._look = fake._look, lambda batch: web.json_response(error("No such batch"), status=404)
    assert all(
        "No such batch; where" in r.error and "forget-batch" in r.error for r in ask(store, questions(model, 5))[0]
    )
    fake._look = look
    monkeypatch.setenv("SELFEVAL_MAX_COST", "night:5")

    async def both(first):
        async with client.Client(store=Store(store.path, store.recorded_folders[0])) as second:
            found = await client.gather(each.chat_all(questions(model, 5), None) for each in (first, second))
            return {r.status for r in found[0] + found[1]}

    assert within(store, both) == {"ok"} and len(fake.ledger) == 1 and not count(store, "claims")
    assert query(store, "SELECT spent FROM purses") == [(pytest.approx(fake.dollars),)], "booked once"


def test_kills_lose_no_reply_and_buy_none_twice(store, batched, monkeypatch):
    """Each life ends a little after the server has seen something of it."""
    monkeypatch.setenv("SELFEVAL_BATCH", "1")
    many, kills = (2000, 12) if FULL else (200, 4)
    (fake, model), draw = batched(), random.Random(1)

    def seen():
        return len(fake.ledger) + sum(batch["looks"] for batch in fake.batches)

    for _ in range(kills):
        enough = seen() + draw.randrange(1, 12)
        victim = process(store.path, range(many), model.id, first=SMALL.format(many // 20))
        wait_for(lambda enough=enough, victim=victim: seen() >= enough or victim.poll() is not None)
        victim.kill()
        victim.communicate()
    responses, _ = ask(store, questions(model, many))
    unknown = {r.error for r in responses if r.status == "error"}
    assert len(bought(fake)) >= many - many // 20 * len(unknown) and {*bought(fake).values()} == {1}
    assert cost(store) == pytest.approx(fake.dollars) and all("is unknown" in error for error in unknown)


def test_two_who_wait_for_one_batch_buy_nothing_twice(store, batched, monkeypatch):
    """The second meets a batch that is sent for longer than the deadline, and learns late what was refused."""
    fake, model = batched({1: "stays"})
    fake.faults = lambda i, body: "400-temperature" if "temperature" in body else None
    model = replace(model, provider=replace(model.provider, deadline=0.5))
    asked, other = questions(model, 5, temperature=0), Store(store.path, store.recorded_folders[0])
    send, look = batches.Batched._send_all, batches.Batched._look

    async def slow(*what):
        await asyncio.sleep(1)
        return await send(*what)

    async def late(self, there):
        while self.store is other and len(fake.batches) < 2:
            await asyncio.sleep(0.02)
            asyncio.get_running_loop().call_later(0.5, fake.batch_faults.clear)
        return await look(self, there)

    async def both(first):
        async with client.Client(store=other, batch=True) as second:
            one, two = await client.gather(each.chat_all(asked, None) for each in (first, second))
            return {r.status for r in one + two}

    monkeypatch.setattr(batches.Batched, "_send_all", slow)
    monkeypatch.setattr(batches.Batched, "_look", late)
    assert within(store, both, batch=True) == {"ok"} and len(fake.batches) == 2
    assert cost(store) == pytest.approx(fake.dollars) and not count(store, "claims")


def test_rounds_go_out_together_and_equal_questions_once(store, batched):
    fake, model = batched()

    async def chain(asked, k, said="begin"):
        for _ in range(3):
            said = (await asked.chat(model, user(f"{k} {said}"))).text
        return said

    found = within(store, lambda asked: client.gather(chain(asked, k // 2) for k in range(20)), batch=True)
    assert len({*found}) == 10 and len(bought(fake)) == 30 == sum(bought(fake).values()) and len(fake.batches) == 3


def test_a_ceiling_sends_what_it_has_room_for_and_a_dry_run_says_half_the_price(store, batched, monkeypatch):
    fake, model = batched(reply="so " * 50)
    monkeypatch.setenv("SELFEVAL_STORE", str(store.path))
    how = [{"dry_run": True, "batch": batch} for batch in (False, True)]
    dear, half = (client.ask(lambda asked: asked.chat_all(questions(model, 100)), each).loc[0] for each in how)
    assert half["usd_high"] == pytest.approx(dear["usd_high"] / 2) and half["in_batches"] == 100 and not fake.ledger
    with pytest.raises(BudgetError):
        ask(store, questions(model, 100), batch=True, max_cost=half["usd_high"] / 4)
    assert 20 < len(bought(fake)) < 100 and not count(store, "claims") and len(fake.batches) > 2
    with pytest.raises(BudgetError, match="does not say what"):
        ask(store, questions(replace(model, price=None), 200), batch=True, max_cost=5)


def test_a_ceiling_of_half_the_price_lets_a_batch_go_out_whole(store, batched, monkeypatch):
    fake, model = batched(reply="so " * 50)
    monkeypatch.setenv("SELFEVAL_STORE", str(store.path))
    counted = client.ask(lambda asked: asked.chat_all(questions(model, 100)), {"dry_run": True, "batch": True})
    responses, _ = ask(store, questions(model, 100), batch=True, max_cost=1.01 * counted.loc[0, "usd_high"])
    assert {each.status for each in responses} == {"ok"} and len(fake.batches) == 3, (
        "of forty at most, as without a ceiling"
    )


def test_new_questions_wait_for_the_room_that_a_batch_on_its_way_holds(store, batched, monkeypatch):
    fake, model = batched({0: "stays"}, reply="so " * 5)
    counts = client.ask(lambda asked: asked.chat_all(questions(model, 5)), {"dry_run": True, "batch": True})
    monkeypatch.setenv("SELFEVAL_MAX_COST", f"night:{1.2 * counts.loc[0, 'usd_high']}")
    leave_a_batch(fake, store, model, monkeypatch)
    responses, _ = ask(store, questions(model, 10)[::-1], batch=True)
    assert {r.status for r in responses} == {"ok"} and {*bought(fake).values()} == {1} and not count(store, "claims")


def test_a_batch_is_looked_at_early_and_then_with_patience(store, batched, monkeypatch):
    """2, 4, 8, 16 seconds, then every 20: the server here is ready at the eighth look."""
    fake, model = batched()
    fake.ready_at = 8
    monkeypatch.setattr(batches, "POLL", 20.0)
    waits, sleep = [], asyncio.sleep

    async def counted(seconds, *result):
        waits.append(seconds)
        return await sleep(0, *result)

    monkeypatch.setattr(asyncio, "sleep", counted)
    ask(store, questions(model, 3), batch=True)
    assert [seconds for seconds in waits if seconds >= batches.FIRST] == [2, 4, 8, 16, 20, 20, 20]


def replaced(fake, change):
    """Let a function change what the server sends of files and batches: (path, bytes) -> bytes."""
    answer = fake._batched

    def batched(request, raw, rest):
        sent = answer(request, raw, rest)
        return web.Response(body=change(request.path, sent.body), status=sent.status, headers=fake.packed)

    fake.packed = {}
    fake._batched = batched


LINES = [b"", b'{"custom_id": "', b'{"response": {}}', b"\xff\xfe", b"[1]", b"[" * 100_000, b'{"custom_id": []}']
LINES += [b'{"custom_id": {}, "response": {"status_code": ' + b"9" * 5000 + b"}}", b"null"]


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_damaged_line_costs_its_row_alone(store, batched, line):
    fake, model = batched()
    form = model.provider.batch

    def change(path, body):
        if form == "files" and path.endswith("/content"):
            _, *others = body.split(b"\n")
            return b"\n".join([line, *others[:1], *others])  # of another row there are two
        found = json.loads(body)
        if form == "inline" and found.get("results"):
            found["results"] = [line.decode("latin-1"), *found["results"][1:2], *found["results"][1:]]
        return json.dumps(found).encode()

    replaced(fake, change)
    responses, _ = ask(store, questions(model, 5), batch=True)
    assert Counter(r.status for r in responses) == {"ok": 4, "error": 1}
    assert "no reply to this request" in next(r.error for r in responses if r.error)
    assert not count(store, "claims") and ask(store, questions(model, 5))[1].calls == 1


@pytest.mark.parametrize("state", ["paused", None, ["completed"]])
def test_a_state_that_nobody_knows_is_said_and_the_batch_is_met_again(store, batched, state):
    fake, model = batched()
    states = [state]

    def change(path, body):
        found = {} if path.endswith("/content") else json.loads(body)
        return json.dumps(found | {"status": states[0]}).encode() if found.get("status") and states else body

    replaced(fake, change)
    responses, _ = ask(store, questions(model, 3), batch=True)
    assert all(f"in the state {str(state).lower()!r}" in r.error and "forget-batch" in r.error for r in responses)
    states.clear()
    assert {r.status for r in ask(store, questions(model, 3))[0]} == {"ok"} and len(fake.ledger) == 1


def test_results_beyond_a_bound_are_refused_in_a_sentence(store, batched, monkeypatch):
    fake, model = batched()
    monkeypatch.setattr(batches, "MOST_BYTES", 1_000_000)

    def change(path, body):
        if path.endswith("/content") or b'"completed"' in body:
            fake.packed = {"Content-Encoding": "gzip"}
            return gzip.compress(b" " * 2_000_000 + body)
        return body

    replaced(fake, change)
    responses, _ = ask(store, questions(model, 3), batch=True)
    assert all("more than 1 MB" in r.error and "forget-batch" in r.error for r in responses)
    assert count(store, "claims") == 3, "the batch may be read once the bound is larger"


def test_a_batch_that_the_store_has_lost_is_said_and_can_be_freed(store, batched):
    _, model = batched()
    ask(store, [])
    [asked] = questions(model, 1)
    with store.change() as connection:
        connection.execute("INSERT INTO claims VALUES (?, 'batch gone', 0, 0, NULL)", (asked.key,))
    [response], _ = ask(store, [asked])
    assert "the store has lost its batch gone; `selfeval store forget-batch gone`" in response.error
    assert batches.forget(store, "gone") == 1 and ask(store, [asked])[0][0].status == "ok"


def test_a_batch_of_a_provider_that_takes_none_any_more_is_not_bought_again(store, batched, monkeypatch):
    fake, model = batched({0: "stays"})
    leave_a_batch(fake, store, model, monkeypatch)
    monkeypatch.setenv("SELFEVAL_BATCH", "")
    plain = replace(model, provider=replace(model.provider, batch=None))
    assert all("put `batch` back into the entry" in r.error for r in ask(store, questions(plain, 5))[0])
    assert {r.status for r in ask(store, questions(model, 5))[0]} == {"ok"} and len(fake.ledger) == 1
