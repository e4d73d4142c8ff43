"""Ceilings and the circuit breaker from outside: what the fake server's ledger saw, and what was stored."""

import asyncio
import socket
import time

import pytest
from conftest import wait_for
from test_client import Flying, ask, mine, process, questions, within

from selfeval.errors import BudgetError, InputError
from selfeval.providers import askers, calls
from selfeval.providers.budget import Ceiling, share
from selfeval.providers.client import Client
from selfeval.providers.models import get
from selfeval.providers.request import Request, user


def at_first_call(model, store, fake):
    """Return a process that has its first call in flight."""
    started = process(store, range(20), model)
    wait_for(lambda: fake.ledger or started.poll() is not None)
    return started


def three_processes(model, store):
    """Return what three processes with the same store print."""
    started = [process(store.path, range(20 * k, 20 * k + 20), model, 16) for k in range(3)]
    return [each.communicate()[0].strip() for each in started]


# ceilings -------------------------------------------------------------------------------------------------------------


def test_a_call_that_costs_less_than_a_hundredth_of_a_cent_is_not_said_to_cost_nothing(store, server, registry):
    registry(DEAR.format(server().url).replace("10_000", "0.001"))  # a call may cost a millionth of a dollar
    with pytest.raises(BudgetError, match=r"may cost \$0.0001, and \$0.0000 of the ceiling of \$0 are spent"):
        ask(store, questions(get("dear"), 1), max_cost=0)


def test_a_ceiling_stops_cleanly_and_a_higher_one_goes_on(store, server, registry, monkeypatch):
    fake = server(cost=0.01, latency=0.05)
    asked = questions(mine(registry, fake), 40)
    monkeypatch.setenv("SELFEVAL_MAX_COST", "0.105")
    with pytest.raises(BudgetError, match=r"may cost \$0.0100, and \$0.1000 of the ceiling of \$0.105 are spent"):
        ask(store, asked)
    assert len(fake.ledger) == len(list(store.rows())) == 10
    monkeypatch.setenv("SELFEVAL_MAX_COST", "1")
    responses, tally = ask(store, asked)
    assert (tally.stored, tally.calls) == (10, 30) and len(fake.ledger) == 40
    monkeypatch.setenv("SELFEVAL_MAX_COST", "0")  # what is stored costs nothing
    assert ask(store, asked)[0] == responses


def test_without_a_price_the_next_reply_may_cost_as_much_as_the_dearest_so_far(store, server, registry):
    fake = server(cost=0.05)
    fake.faults = lambda i, body: setattr(fake, "cost", 0.05 if i == 0 else 0.01)
    with pytest.raises(BudgetError, match=r"may cost \$0.0500, and \$0.0600 of the ceiling of \$0.1 are spent"):
        ask(store, questions(mine(registry, fake), 4), max_cost=0.1, concurrency=1)
    assert len(fake.ledger) == 2


def test_a_price_bounds_what_is_in_flight(store, server, registry, monkeypatch):
    flying = Flying()
    fake = server(reply=flying.leaves, faults=flying.arrives, latency=0.05)
    registry(DEAR.format(fake.url))
    monkeypatch.setenv("SELFEVAL_MAX_COST", "25")  # each call may cost 10 and costs far less
    responses, _ = ask(store, questions(get("dear"), 12))
    assert all(r.status == "ok" for r in responses)
    assert flying.most <= 2


def test_processes_share_a_ceiling_by_its_name(store, server, registry, monkeypatch):
    fake = server(cost=0.01, latency=0.02)
    mine(registry, fake)
    monkeypatch.setenv("SELFEVAL_MAX_COST", "night:0.30")
    assert "ceiling" in three_processes("mine:m", store)
    # Nobody knows what a first reply costs: each process may overdraw by its first one.
    assert 30 <= len(fake.ledger) <= 32 and len(list(store.rows())) == len(fake.ledger)
    assert spent(store, "night") == pytest.approx(len(fake.ledger) / 100)


def spent(store, name):
    with store.read() as ledger:
        return ledger.execute("SELECT spent FROM purses WHERE name = ?", (name,)).fetchone()[0]


DEAR = """providers: {{mine: {{base_url: '{}', hosted: true, answer_tokens: 1000}}}}
models: [{{id: 'dear', provider: mine, display: Dear, price: {{input: 0, output: 10_000}}}}]"""


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_each_host_of_a_sweep_has_its_part_of_the_ceiling(hosts, monkeypatch, capsys):
    for name, value in share(20, hosts).items():
        monkeypatch.setenv(name, value)
    assert Ceiling.of().most == 20 / hosts and "20 USD" in capsys.readouterr().out


def test_what_a_killed_process_had_in_flight_counts_as_spent(store, server, registry, monkeypatch):
    fake = server(latency=60, cost=0.5)
    registry(DEAR.format(fake.url))  # a call may cost 10
    monkeypatch.setenv("SELFEVAL_MAX_COST", "p:15")
    killed = at_first_call("dear", store.path, fake)
    killed.kill()
    killed.communicate()
    fake.latency = 0
    with pytest.raises(BudgetError, match=r"may cost \$10.0000, and \$10.0000 of the ceiling"):
        ask(store, questions(get("dear"), 3))
    monkeypatch.setenv("SELFEVAL_MAX_COST", "p:25")
    ask(store, questions(get("dear"), 3))
    assert len(fake.ledger) == 4 and spent(store, "p") == pytest.approx(11.5)


def test_a_call_that_is_broken_off_counts_as_spent(store, server, registry, monkeypatch):
    fake = server(cost=0.5)
    fake.open.clear()
    registry(DEAR.format(fake.url))  # a call may cost 10
    monkeypatch.setenv("SELFEVAL_MAX_COST", "p:15")

    async def work(client):
        task = asyncio.create_task(client.chat_all(questions(get("dear"), 3), label=None))
        while not fake.ledger:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    within(store, work)
    assert len(fake.ledger) == 1 and spent(store, "p") == pytest.approx(10)
    with pytest.raises(BudgetError, match=r"may cost \$10.0000, and \$10.0000 of the ceiling"):
        ask(store, questions(get("dear"), 3))


def test_what_a_call_may_cost_includes_room_for_thinking(store, server, registry, monkeypatch):
    registry(DEAR.format(server().url).replace("price:", "reasoning: true, reasoning_tokens: 2000, price:"))
    monkeypatch.setenv("SELFEVAL_MAX_COST", "25")
    with pytest.raises(BudgetError, match=r"may cost \$30.0000"):
        ask(store, questions(get("dear"), 1))


def test_a_ceiling_waits_for_what_another_process_has_in_flight(store, server, registry, monkeypatch):
    fake = server(latency=0.1, cost=0.1)
    registry(DEAR.format(fake.url))
    monkeypatch.setenv("SELFEVAL_MAX_COST", "p:15")
    other = at_first_call("dear", store.path, fake)
    ask(store, [Request(get("dear"), user(f"ours {i}")) for i in range(3)])
    other.kill()
    other.communicate()
    assert sum("ours" in request for _, request, _ in store.rows()) == 3


def test_a_ceiling_that_cannot_be_kept_stops_after_one_call(store, server, monkeypatch):
    fake = server()
    monkeypatch.setenv("SELFEVAL_MAX_COST", "5")
    with pytest.raises(BudgetError, match="`openai` does not say what a reply of 'openai:m' costs; add its price"):
        ask(store, questions(get("openai:m"), 5))
    assert len(fake.ledger) == len(list(store.rows())) == 1


def test_an_endpoint_of_ones_own_without_a_price_is_free(store, server, registry, monkeypatch):
    monkeypatch.setenv("SELFEVAL_MAX_COST", "0.01")
    _, tally = ask(store, questions(mine(registry, server()), 5))
    assert tally.calls == 5 and tally.cost == 0


@pytest.mark.parametrize("text", ["much", "-1", "night:", "night:nan", "x:1:2", ":5"])
def test_a_ceiling_is_a_number_of_dollars(store, text, monkeypatch):
    monkeypatch.setenv("SELFEVAL_MAX_COST", text)
    with pytest.raises(InputError, match="SELFEVAL_MAX_COST must be US dollars, or NAME:USD"):
        Client(store=store)


# the breaker ----------------------------------------------------------------------------------------------------------


def test_a_model_that_does_not_come_back_is_given_up_and_the_others_go_on(store, server, registry, monkeypatch):
    monkeypatch.setattr(askers, "ATTEMPTS", 1)
    fake = server(faults=lambda i, body: "500" if i >= 20 and body["model"] == "m" else None)
    bad = mine(registry, fake)
    responses, tally = ask(store, questions(bad, 60) + questions(get("mine:other"), 60), concurrency=4)
    asked = [entry["body"]["model"] for entry in fake.ledger]
    assert asked.count("m") <= 20 + calls.IN_A_ROW + 4 and asked.count("other") == 60
    assert all(r.status == "ok" for r in responses[60:]) and tally.calls == 60 + 60 - tally.failed


def test_what_a_process_that_died_had_reserved_counts_as_spent_and_nobody_waits_for_it(store):
    """It may have been billed; a claim of a process that is at work would be waited for."""
    dead = f"{socket.gethostname()}:999999:1.00"
    with store.change() as connection:
        claim = ("theirs", dead, time.time(), 1.0, "shared")
        connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?, ?)", claim)
    with pytest.raises(BudgetError, match=r"\$1\.0000 of the ceiling of \$1 are spent"):
        asyncio.run(asyncio.wait_for(store.claim("ours", Ceiling("shared", 1.0), 0.4), 20))
