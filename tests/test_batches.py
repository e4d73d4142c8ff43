"""Batches from outside: both forms, what goes wrong on the way, kills, and that nothing is bought twice."""

import asyncio
import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner
from conftest import FULL, wait_for
from test_client import ask, process, questions, said, within
from test_store import count, query

from selfeval.asking import batches, dryrun
from selfeval.asking.client import Client, gather
from selfeval.asking.request import Request, user
from selfeval.asking.store import Store
from selfeval.cli import main
from selfeval.errors import BudgetError, InputError, PriceError
from selfeval.models import from_callable, get

MODELS = """providers:
  inline: {{base_url: '{0}', hosted: true, batch: inline, answer_tokens: 100}}
  files: {{base_url: '{0}', hosted: true, batch: files, answer_tokens: 100}}
models:
  - {{id: 'inline:m', provider: inline, model: m, display: Inline, price: {{input: 1, output: 4}}}}
  - {{id: 'files:m', provider: files, model: m, display: Files, price: {{input: 1, output: 4}}}}"""
QUICK = "from selfeval.asking import batches\nbatches.POLL, batches.MOST = 0.02, {'inline': 40, 'files': 40}\n"


@pytest.fixture(params=["inline", "files"])
def batched(request, server, registry, monkeypatch):
    """A function that starts a server; returns it and a model that it serves in one form of batches."""
    monkeypatch.setattr(batches, "POLL", 0.02)
    monkeypatch.setattr(batches, "MOST", {"inline": 40, "files": 40})

    def start(faults=None, **how):
        fake = server(**how)
        fake.batch_faults = faults or {}
        registry(MODELS.format(fake.url))
        return fake, get(f"{request.param}:m")

    return start


def bought(fake):
    """Return how often each question was in a batch that was made."""
    return Counter(said(line["body"]) for batch in fake.batches for line in batch["lines"])


def test_a_study_in_batches_has_the_same_replies_as_one_without_at_half_the_price(store, batched, tmp_path):
    fake, model = batched({1: "500", 2: "429"})
    responses, tally = ask(store, questions(model, 100), batch=True)
    single, dear = ask(Store(tmp_path / "single.sqlite"), questions(model, 100))
    assert [r.text for r in responses] == [r.text for r in single] and {*bought(fake).values()} == {1}
    assert tally.cost == pytest.approx(fake.dollars) and 0.48 * dear.cost < tally.cost <= 0.52 * dear.cost
    assert len(fake.batches) == 3 and tally.calls == 100 and not count(store, "claims")
    assert ask(store, questions(model, 100))[1].stored == 100, "an ordinary call is the same request"


def test_a_failed_line_says_why_and_the_next_run_asks_it_again(store, batched):
    fake, model = batched({1: "expired", 2: "failed"})
    kinds = {"question 3": "drop", "question 5": "500", "question 7": "empty-content"}
    fake.faults = lambda i, body: kinds.get(said(body))
    responses, tally = ask(store, questions(model, 100), batch=True)
    why = Counter(r.error for r in responses if r.status == "error")
    assert why["This line failed"] == 1 and why["HTTP 500: The server had an error while processing your request."] == 1
    assert why["the batch batch-1 ended as expired: It took too long"] == 20 and responses[7].status == "empty"
    assert why["the batch batch-2 ended as failed: It took too long"] == 20 and tally.calls == 58
    kinds.clear()
    responses, tally = ask(store, questions(model, 100), batch=True, again="empty")
    assert {r.status for r in responses} == {"ok"} and (tally.calls, tally.stored, tally.again) == (43, 57, 1)
    assert sum(r["cost"] for r in map(json.loads, column(store, "response"))) == pytest.approx(fake.dollars)


def column(store, name):
    return [row[0] for row in query(store, f"SELECT {name} FROM replies")]


def test_what_a_model_refuses_is_left_out_in_the_next_batch(store, batched):
    fake, model = batched()
    fake.faults = lambda i, body: "400-temperature" if "temperature" in body else None
    responses, _ = ask(store, questions(model, 5, temperature=0.5), batch=True)
    assert {(r.status, *r.adapted) for r in responses} == {("ok", "temperature")} and len(fake.batches) == 2


@pytest.mark.parametrize("fault", ["lost", "unmade"])
def test_a_batch_whose_answer_was_lost_is_never_sent_again_unasked(store, batched, fault, monkeypatch):
    fake, model = batched({0: fault})
    responses, _ = ask(store, questions(model, 5), batch=True)
    if model.provider.batch == "files":
        assert {r.status for r in responses} == {"ok"} and len(fake.ledger) == 1 + (fault == "unmade")
    else:
        assert all("forget-batch" in r.error for r in [*responses, *ask(store, questions(model, 5))[0]])
        assert len(fake.ledger) == 1
        monkeypatch.setenv("SELFEVAL_STORE", str(store.path))
        printed = CliRunner().invoke(main, ["store", "forget-batch", query(store, "SELECT id FROM batches")[0][0]])
        assert printed.output.startswith("5 requests")
        assert {r.status for r in ask(store, questions(model, 5), batch=True)[0]} == {"ok"} and len(fake.ledger) == 2
    assert {*bought(fake).values()} == {2 if (fault, model.provider.batch) == ("lost", "inline") else 1}


def test_a_batch_that_stays_is_waited_for_by_whoever_asks_next(store, batched):
    fake, model = batched({0: "stays"})

    async def interrupted(client):
        task = asyncio.create_task(client.chat_all(questions(model, 5)))
        while not (fake.batches and fake.batches[0]["looks"] > 2):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    within(store, interrupted, batch=True)
    assert count(store, "claims") == 5
    fake.batch_faults.clear()
    responses, tally = ask(store, questions(model, 5))  # not in batches
    assert {r.status for r in responses} == {"ok"} and len(fake.ledger) == 1
    assert tally.cost == pytest.approx(fake.dollars) and not count(store, "claims")


@pytest.mark.fault("kill")
def test_kills_lose_no_reply_and_buy_none_twice(store, batched, monkeypatch):
    """Each life ends a little after the server has seen something of it."""
    monkeypatch.setenv("SELFEVAL_BATCH", "1")
    many, kills, draw = (2000, 12, random.Random(1)) if FULL else (200, 4, random.Random(1))
    fake, model = batched()
    unknown, lives, asking = 0, 0, {"model": model.id, "first": QUICK.replace("40", str(many // 20))}
    while True:
        victim = process(store.path, range(many), **asking)
        seen = looks(fake) + draw.randrange(1, 12)
        wait_for(lambda seen=seen, victim=victim: looks(fake) >= seen or victim.poll() is not None)
        if lives < kills:
            victim.kill()
        lives += 1
        if victim.communicate() and lives > kills and victim.returncode == 0:
            break
    for [batch] in query(store, "SELECT id FROM batches WHERE there IS NULL AND state = 'sending'"):
        unknown += store.forget_batch(batch)
    responses, _ = ask(store, questions(model, many), batch=True)
    assert {r.status for r in responses} == {"ok"} and not count(store, "claims") and len(bought(fake)) == many
    assert sum(bought(fake).values()) - many <= unknown and (unknown == 0 or model.provider.batch == "inline")
    costs = sum(r["cost"] for r in map(json.loads, column(store, "response")))
    assert unknown or costs == pytest.approx(fake.dollars)


def looks(fake):
    return len(fake.ledger) + sum(batch["looks"] for batch in fake.batches)


def test_rounds_go_out_together_and_equal_questions_once(store, batched):
    fake, model = batched()

    async def chain(client, k):
        said = "begin"
        for _ in range(3):
            said = (await client.chat(model, user(f"{k} {said}"))).text
        return said

    async def work(client):
        return await gather(chain(client, k // 2) for k in range(20))

    assert len({*within(store, work, batch=True)}) == 10 and len(bought(fake)) == 30 == sum(bought(fake).values())
    assert len(fake.batches) == 3


def test_a_ceiling_sends_what_it_has_room_for_and_a_dry_run_says_half_the_price(store, batched, registry):
    fake, model = batched(reply="so " * 50)
    dear = asyncio.run(counted(store, model, batch=False))
    half = asyncio.run(counted(store, model, batch=True))
    assert half["usd_high"] == pytest.approx(dear["usd_high"] / 2) and half["in_batches"] == 100 and not fake.ledger
    with pytest.raises(BudgetError):
        ask(store, questions(model, 100), batch=True, max_cost=half["usd_high"] / 4)
    assert 20 < len(bought(fake)) < 100 and not count(store, "claims") and len(fake.batches) > 2
    unpriced = replace(model, price=None)
    with pytest.raises(PriceError):
        ask(store, questions(unpriced, 200), batch=True, max_cost=5)


async def counted(store, model, **how):
    with dryrun.counting() as folder:
        async with Client(store=store, **how) as client:
            await client.chat_all(questions(model, 100))
        return dryrun.prices(folder).to_dict("records")[0]


def test_a_provider_without_batches_is_refused_and_what_is_computed_runs(store, server, registry):
    fake = server()
    registry(f"providers:\n  plain: {{base_url: '{fake.url}'}}\n")
    with pytest.raises(InputError, match=r"provider `plain` of 'plain:m' has no `batch` in data/models.yaml"):
        ask(store, [*questions(get("openai:m"), 2), *questions(get("plain:m"), 2)], batch=True)
    assert (
        ask(store, questions(from_callable(lambda messages: "x", "mine"), 3), batch=True)[1].simulated == 3
        and not fake.ledger
    )


def test_what_jurors_share_is_marked_for_a_cache_and_changes_no_identity(store, server, registry):
    fake = server()
    registry(
        MODELS.format(fake.url).replace("price: {input: 1,", "cache_control: true, price: {cached: 0.1, input: 1,")
    )
    plain, marked = (Request(get("inline:m"), user("shared, own"), shared=n) for n in (0, 6))
    assert plain.key == marked.key
    [response], tally = ask(store, [marked])
    shared, own = fake.ledger[0]["body"]["messages"][0]["content"]
    assert shared == {"type": "text", "text": "shared", "cache_control": {"type": "ephemeral"}}
    assert own["text"] == ", own" and "of them cached" in str(tally)
    prompt, cached, written = (response.usage[part] for part in ("prompt", "cached", "completion"))
    assert response.cost == pytest.approx((prompt - cached + 0.1 * cached + 4 * written) / 1e6) and cached
