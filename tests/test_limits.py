"""Rates, purses and the circuit breaker from outside: what the fake server's ledger saw, and what was stored."""

import asyncio
import contextlib
import itertools
import os
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from test_client import ask, mine, questions

from selfeval.asking import endpoint, sharing
from selfeval.asking.client import Client, gather
from selfeval.asking.messages import user
from selfeval.asking.request import Request
from selfeval.asking.store import Store
from selfeval.errors import BudgetError, InputError, PriceError, StoreError
from selfeval.models import get


@pytest.fixture(autouse=True)
def host(tmp_path, monkeypatch):
    """A folder of the host's own for each test."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def keeps(ledger, rate):
    """Tell whether at no time more requests had arrived than a rate a second allows, and what may be made up for.

    Counted from the first request: on a busy machine requests arrive late and then together, but never early.
    """
    times = sorted(entry["time"] for entry in ledger)
    return all(number <= rate * (at - times[0] + sharing.LAG) + 2 for number, at in enumerate(times, 1))


def most_in(ledger, seconds):
    """Return the largest number of requests that arrived within so many seconds."""
    times = sorted(entry["time"] for entry in ledger)
    return max(sum(start <= at < start + seconds for at in times) for start in times)


ASK = """if True:
    import asyncio, sys
    from selfeval.asking.client import Client
    from selfeval.asking.request import Request
    from selfeval.errors import BudgetError
    from selfeval.models import get
    from selfeval.asking.messages import user
    async def run():
        async with Client(16) as client:
            asked = [Request(get(sys.argv[1]), user(f"{sys.argv[2]} {i}")) for i in range(20)]
            try:
                print(sum(r.status == "ok" for r in await client.chat_all(asked, label=None)))
            except BudgetError:
                print("ceiling")
    asyncio.run(run())"""


def process(model, store, name):
    """Start a process with twenty questions."""
    environment = os.environ | {"SELFEVAL_STORE": str(store)}
    command = [sys.executable, "-c", ASK, model, name]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def three_processes(model, folder):
    """Return what three processes, two of them with the same store, print."""
    started = [process(model, folder / f"{k // 2}.sqlite", str(k)) for k in range(3)]
    return [each.communicate(timeout=60)[0].strip() for each in started]


# rates ----------------------------------------------------------------------------------------------------------------


def test_requests_keep_the_rate_whatever_the_concurrency(store, server, registry):
    fake = server()
    model = mine(registry, fake, more=", requests_per_minute: 1200")
    responses, _ = ask(store, questions(model, 50), concurrency=64)
    assert all(r.status == "ok" for r in responses) and len(fake.ledger) == 50
    assert keeps(fake.ledger, 20)


def test_processes_share_a_rate_whatever_their_stores(tmp_path, server, registry):
    fake = server()
    mine(registry, fake, more=", requests_per_minute: 1200")
    assert three_processes("mine:m", tmp_path) == ["20"] * 3
    assert len(fake.ledger) == 60 and keeps(fake.ledger, 20)


def test_attempts_count_against_the_rate_and_a_pause_still_holds_everybody_back(store, server, registry):
    fake = server(faults=["429-ms", None, "500"], retry_after=0.4)
    model = mine(registry, fake, more=", requests_per_minute: 1200")
    responses, _ = ask(store, questions(model, 20))
    times = [entry["time"] for entry in fake.ledger]
    assert all(r.status == "ok" for r in responses) and len(times) == 22
    assert times[1] - times[0] >= 0.4


def test_tokens_keep_their_rate_and_are_corrected_by_the_reply(store, server, registry):
    fake = server()  # a prompt of 3000 letters counts as 1000 and more before, and as 750 and a few after its reply
    model = mine(registry, fake, more=", tokens_per_minute: 60_000, answer_tokens: 100")
    asked = [Request(model, user(f"{i} " + "x" * 3000)) for i in range(5)]
    ask(store, asked)
    seconds = fake.ledger[-1]["time"] - fake.ledger[0]["time"]
    assert seconds >= 4 * 0.75 - sharing.LAG
    pace = sharing.Pace(model.provider)
    due = enter(pace, 0)
    pace.settle(-10_000_000)
    assert 0 <= due < 3 and enter(pace, 0) == 0


def enter(pace, tokens):
    return pace._ledger.write_now(lambda ledger: pace._enter(ledger, tokens))


def test_a_clock_that_was_set_back_stops_nobody(registry, server):
    provider = mine(registry, server(), more=", requests_per_minute: 1").provider
    pace = sharing.Pace(provider)
    with pace._ledger.change() as ledger:
        ledger.execute("INSERT INTO rates VALUES (?, 9e12, 9e12)", (pace.name,))
    assert enter(pace, 1) == 0 < enter(pace, 1) <= 61


def test_hosts_share_by_a_number(registry, server, monkeypatch):
    provider = mine(registry, server(), more=", requests_per_minute: 60").provider
    monkeypatch.setenv("SELFEVAL_SHARE", "4")
    assert sharing.Pace(provider).seconds == [pytest.approx(4 * 61 / 60), 0.0]
    assert sharing.Purse("p", 2.0).ceiling == 0.5
    for wrong in ("0", "-1", "two", "1.5", "10001", "9" * 5000):
        monkeypatch.setenv("SELFEVAL_SHARE", wrong)
        with pytest.raises(InputError, match="must be a whole number of hosts from 1 to 10,000, got"):
            sharing.share()


# purses ---------------------------------------------------------------------------------------------------------------


def test_a_ceiling_stops_cleanly_and_a_higher_one_goes_on(store, server, registry, monkeypatch):
    fake = server(cost=0.01, latency=0.05)
    asked = questions(mine(registry, fake), 40)
    monkeypatch.setenv("SELFEVAL_BUDGET", "0.105")
    with pytest.raises(BudgetError, match=r"may cost \$0.0100, and \$0.1000 of the ceiling of \$0.105 are spent"):
        ask(store, asked)
    assert len(fake.ledger) == len(list(store.rows())) == 10
    monkeypatch.setenv("SELFEVAL_BUDGET", "1")
    responses, tally = ask(store, asked)
    assert (tally.stored, tally.calls) == (10, 30) and len(fake.ledger) == 40
    monkeypatch.setenv("SELFEVAL_BUDGET", "0")  # what is stored costs nothing
    assert ask(store, asked)[0] == responses


def test_what_is_in_flight_at_the_ceiling_is_stored_also_for_chains_of_single_calls(
    store, server, registry, monkeypatch
):
    fake = server(cost=0.01, latency=0.3)
    model = mine(registry, fake)
    monkeypatch.setenv("SELFEVAL_BUDGET", "0.085")

    async def chain(client, name):
        for turn in range(10):
            await client.chat(model, user(f"{name} {turn}"))

    async def run():
        async with Client(8, store) as client:
            await gather(chain(client, k) for k in range(6))

    with pytest.raises(BudgetError):
        asyncio.run(asyncio.wait_for(run(), 60))
    assert len(fake.ledger) == len(list(store.rows())) == 8
    assert store.outcomes() == {}


def test_a_price_bounds_what_is_in_flight(store, server, registry, monkeypatch):
    fake = server(latency=0.2)
    registry(DEAR.format(fake.url))
    monkeypatch.setenv("SELFEVAL_BUDGET", "25")  # each call may cost 10 and costs far less
    responses, _ = ask(store, questions(get("dear"), 12))
    assert all(r.status == "ok" for r in responses)
    assert most_in(fake.ledger, 0.15) <= 2


def test_processes_share_a_purse_by_its_name_whatever_their_stores(tmp_path, server, registry, monkeypatch):
    fake = server(cost=0.01, latency=0.02)
    mine(registry, fake)
    monkeypatch.setenv("SELFEVAL_BUDGET", "night:0.30")
    assert "ceiling" in three_processes("mine:m", tmp_path)
    # Nobody knows what a first reply costs: each process may overdraw by its first one.
    kept = sum(len(list(Store(tmp_path / f"{k}.sqlite").rows())) for k in range(2))
    assert 30 <= len(fake.ledger) <= 32 and kept == len(fake.ledger)
    assert sharing.Purse("night", 1).spent() == pytest.approx(len(fake.ledger) / 100)


DEAR = """providers: {{mine: {{base_url: '{}', hosted: true, answer_tokens: 1000}}}}
models: [{{id: 'dear', provider: mine, display: Dear, price: {{input: 0, output: 10_000}}}}]"""


def test_what_a_killed_process_had_in_flight_counts_as_spent_and_is_not_asked_again(
    store, server, registry, monkeypatch
):
    fake = server(latency=60, cost=0.5)
    registry(DEAR.format(fake.url))  # a call may cost 10
    monkeypatch.setenv("SELFEVAL_BUDGET", "p:15")
    killed = process("dear", store.path, "x")
    while not fake.ledger and killed.poll() is None:
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    fake.latency = 0
    with pytest.raises(BudgetError, match=r"may cost \$10.0000, and \$10.0000 of the ceiling"):
        ask(store, questions(get("dear"), 3))
    monkeypatch.setenv("SELFEVAL_BUDGET", "p:25")
    ask(store, questions(get("dear"), 3))
    assert len(fake.ledger) == 4 and sharing.Purse("p", 1).spent() == pytest.approx(11.5)


def test_a_ceiling_waits_for_what_another_process_has_in_flight(store, server, registry, monkeypatch, tmp_path):
    fake = server(latency=0.1, cost=0.1)
    registry(DEAR.format(fake.url))
    monkeypatch.setenv("SELFEVAL_BUDGET", "p:15")
    other = process("dear", tmp_path / "other.sqlite", "x")
    while not fake.ledger and other.poll() is None:
        time.sleep(0.02)
    ask(store, questions(get("dear"), 3))
    other.kill()
    other.communicate()
    assert len(list(store.rows())) == 3


def test_a_ceiling_that_cannot_be_kept_stops_after_one_call(store, server, monkeypatch):
    fake = server()
    monkeypatch.setenv("SELFEVAL_BUDGET", "5")
    with pytest.raises(PriceError, match="`openai` does not say what a reply of 'openai:m' costs, and data/models"):
        ask(store, questions(get("openai:m"), 5))
    assert len(fake.ledger) == len(list(store.rows())) == 1


def test_an_endpoint_of_ones_own_without_a_price_is_free(store, server, registry, monkeypatch):
    monkeypatch.setenv("SELFEVAL_BUDGET", "0.01")
    _, tally = ask(store, questions(mine(registry, server()), 5))
    assert tally.calls == 5 and tally.cost == 0


@pytest.mark.parametrize("text", ["much", "-1", "night:", "night:nan", "inf", "x:1:2", ":5", " :5"])
def test_a_ceiling_is_a_number_of_dollars(store, text, monkeypatch):
    monkeypatch.setenv("SELFEVAL_BUDGET", text)
    with pytest.raises(
        InputError, match="SELFEVAL_BUDGET must be US dollars, or NAME:USD with a NAME without colons, got"
    ):
        Client(store=store)


# the shared file ------------------------------------------------------------------------------------------------------


def shared_file():
    return sharing.host_folder() / "limits.sqlite"


def test_a_reply_waits_for_the_shared_file_and_is_booked_without_holding_up_the_others(
    store, server, registry, monkeypatch
):
    def reply(body):
        if not locks:
            locks.append(sqlite3.connect(shared_file(), isolation_level=None, check_same_thread=False))
            locks[0].execute("BEGIN EXCLUSIVE")
            threading.Timer(1.5, locks[0].close).start()
        return "paid"

    locks, fake = [], server(reply="before", cost=0.25)
    model = mine(registry, fake, more=", tokens_per_minute: 6_000_000")
    monkeypatch.setenv("SELFEVAL_BUDGET", "night:1.1")

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def run():
        async with Client(4, store) as client:
            await client.chat(model, user("first"))
            fake.reply, ticking = reply, asyncio.create_task(tick())
            texts = [(await client.chat(model, user(f"question {i}"))).text for i in range(2)]
            ticking.cancel()
            return texts

    ticks = []
    assert asyncio.run(asyncio.wait_for(run(), 30)) == ["paid"] * 2
    stalls = [after - before for before, after in itertools.pairwise(ticks)]
    assert max(stalls, default=0) < 1  # a call in flight would meet its deadline meanwhile
    assert len(list(store.rows())) == len(fake.ledger) == 3
    assert sharing.Purse("night", 1.1).spent() == pytest.approx(0.75)
    with pytest.raises(BudgetError, match=r"\$1.0000 of the ceiling"):
        ask(store, questions(model, 5))


@pytest.mark.parametrize("trouble", ["locked", "garbage"])
@pytest.mark.parametrize("budget", ["night:5", ""])  # the purse, or the rates alone
def test_a_call_that_cannot_be_booked_ends_no_call_in_flight(store, server, registry, monkeypatch, budget, trouble):
    """What was in flight is stored, or with a ceiling put beside the store; no more is sent."""
    monkeypatch.setattr("selfeval.asking.ledger.PATIENCE", 0.3)
    monkeypatch.setenv("SELFEVAL_BUDGET", budget)
    fake, locks = server(cost=0.25), contextlib.ExitStack()
    model = mine(registry, fake, deadline=20, more=", requests_per_minute: 60_000")

    async def run():
        async with Client(8, store) as client:
            await client.chat(model, user("first"))
            fake.latency = 1.0
            flying = client.chat_all(questions(model, 3), label=None)

            async def late():
                await asyncio.sleep(0.5)
                if trouble == "garbage":
                    for end in ("", "-wal", "-shm"):
                        shared_file().with_name(shared_file().name + end).write_bytes(b"no database" * 5000)
                else:
                    other = locks.enter_context(contextlib.closing(sqlite3.connect(shared_file())))
                    other.execute("BEGIN EXCLUSIVE")
                await client.chat_all([Request(model, user(f"late {i}")) for i in range(4)], label=None)

            await gather([flying, late()])

    with (
        locks,
        pytest.raises(StoreError, match=r"cannot be (opened|written): (database is locked|file is not a datab)"),
    ):
        asyncio.run(asyncio.wait_for(run(), 30))
    for beside in store.path.parent.glob("*.jsonl"):
        assert budget and Store(store.path).import_file(beside)[0]
    assert len(fake.ledger) == len(list(Store(store.path).rows())) == 4
    assert Store(store.path).outcomes() == {}


OTHER_SCHEMA = "CREATE TABLE purses (name TEXT PRIMARY KEY, dollars REAL, note TEXT)"


@pytest.mark.parametrize("before", ["garbage", "another schema", "folder"])
def test_a_shared_file_of_another_kind_is_one_sentence_before_anything_is_bought(
    store, server, registry, monkeypatch, before
):
    path, fake = shared_file(), server(cost=0.01)
    if before == "garbage":
        path.write_bytes(b"no database" * 5000)
    elif before == "folder":
        path.mkdir()
    else:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(OTHER_SCHEMA)
    model = mine(registry, fake, more=", requests_per_minute: 6000")
    for budget in ("night:1", ""):
        monkeypatch.setenv("SELFEVAL_BUDGET", budget)
        sentence = f"The file of rates and ceilings {path} cannot be opened: .*(Move it away|it is no folder)"
        with pytest.raises(StoreError, match=sentence):
            ask(store, questions(model, 3))
    assert fake.ledger == []


# the breaker ----------------------------------------------------------------------------------------------------------


def outage(first, last):
    """Return faults: the questions of the model m fail while requests first to last arrive."""
    return lambda i, body: "500" if first <= i < last and body["model"] == "m" else None


def test_an_outage_costs_a_few_calls_and_the_rest_waits_for_its_end(store, server, registry, monkeypatch):
    monkeypatch.setattr(endpoint, "PAUSES", (0.1, 0.1, 0.1))
    monkeypatch.setitem(endpoint.ATTEMPTS, "transient", 1)
    fake = server(faults=outage(20, 20 + endpoint.IN_A_ROW + 2))
    _, tally = ask(store, questions(mine(registry, fake), 100), concurrency=4)
    assert tally.failed == endpoint.IN_A_ROW + 2 and tally.calls == 100 - tally.failed
    assert len(fake.ledger) == 100


def test_calls_in_flight_when_an_outage_begins_are_no_trials(store, server, registry, monkeypatch):
    monkeypatch.setattr(endpoint, "PAUSES", (0.1, 0.1, 0.1))
    monkeypatch.setitem(endpoint.ATTEMPTS, "transient", 1)
    fake = server(faults=outage(1, 1 + 30), latency=0.05)
    responses, tally = ask(store, questions(mine(registry, fake), 80), concurrency=30)
    assert tally.failed == 30 and [r.status for r in responses].count("ok") == 50


def test_a_model_that_does_not_come_back_is_given_up_and_the_others_go_on(store, server, registry, monkeypatch):
    monkeypatch.setattr(endpoint, "PAUSES", (0.1, 0.1, 0.1))
    monkeypatch.setitem(endpoint.ATTEMPTS, "transient", 1)
    fake = server(faults=outage(20, 10_000))
    bad = mine(registry, fake)
    responses, tally = ask(store, questions(bad, 60) + questions(get("mine:other"), 60), concurrency=4)
    asked = [entry["body"]["model"] for entry in fake.ledger]
    assert asked.count("m") <= 20 + endpoint.IN_A_ROW + 4 + len(endpoint.PAUSES) and asked.count("other") == 60
    assert all(r.status == "ok" for r in responses[60:])
    assert {r.error for r in responses[:60] if r.status == "error"} and tally.calls == 60 + 60 - tally.failed
