"""The store from outside: several processes, kills, a full disk, cancellation, odd texts, export, import, replay."""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest
from conftest import small_disk, wait_for
from fake_server import default_reply
from test_client import ask, process, questions, said, within

from selfeval import ROOT
from selfeval.errors import InputError, ReplayMiss, StoreError
from selfeval.providers.budget import Ceiling
from selfeval.providers.leases import OTHER_HOST_SECONDS, own_name
from selfeval.providers.models import get
from selfeval.providers.request import Request, canonical, key_of, user
from selfeval.providers.store import Store


def stored(store):
    """Return the questions that the store has an answer to."""
    return {json.loads(request)["messages"][0]["content"] for _, request, _ in store.rows()}


def test_a_call_is_one_claim_and_one_put(store, server, registry):
    server()
    statements = []

    async def work(client):
        client.store._connect().set_trace_callback(statements.append)
        return await client.chat_all(questions(get("openai:m"), 10), None)

    assert {reply.status for reply in within(store, work)} == {"ok"}
    assert len([text for text in statements if "INSERT" in text]) == 20
    assert len(statements) <= 5 * 10 + 5, "and one reading and one checkpoint of all"


def query(store, text, *values):
    """Ask the file itself."""
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        return connection.execute(text, values).fetchall()


def count(store, table):
    return query(store, f"SELECT count(*) FROM {table}")[0][0]


@contextlib.contextmanager
def locked(path):
    """Hold a file as another process would; end it by closing what this yields."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


# several processes, kills ---------------------------------------------------------------------------------------------


def test_four_processes_with_the_same_requests_buy_each_once(store, server):
    fake = server(latency=0.05)
    processes = [process(store.path, range(50)) for _ in range(4)]
    assert [int(p.communicate()[0]) for p in processes] == [50] * 4
    assert sorted(map(said, (entry["body"] for entry in fake.ledger))) == sorted(f"question {i}" for i in range(50))
    assert count(store, "replies") == 50 and count(store, "claims") == 0


def test_no_stored_reply_is_bought_again_after_kills(store, server):
    """A few requests after the one at which it is to be killed, a process gets no more answers."""

    def arrives(i, body):
        if i >= enough + 4:
            fake.open.clear()

    draw, enough, fake, kills = random.Random(5), 0, server(faults=arrives, latency=0.01), []
    for _ in range(3):
        enough = len(fake.ledger) + draw.randrange(1, 9)
        fake.open.set()
        victim = process(store.path, range(60))
        wait_for(lambda enough=enough: len(fake.ledger) >= enough)
        victim.kill()
        assert victim.wait() == -signal.SIGKILL
        victim.stdout.close()
        kills.append((stored(store), len(fake.ledger)))
    enough = 1000
    fake.open.set()
    last = process(store.path, range(60))
    assert int(last.communicate()[0]) == 60
    for kept, before in kills:
        assert not kept & {said(entry["body"]) for entry in fake.ledger[before:]}
    repeats = len(fake.ledger) - 60
    assert 0 <= repeats <= store.outcomes().get("abandoned", 0) <= 3 * 8
    assert count(store, "replies") == 60 and count(store, "claims") == 0
    assert query(store, "PRAGMA integrity_check") == [("ok",)]


def test_a_claim_of_a_process_that_ended_is_taken_over_and_counted(store, server):
    """Ended, also where its number is another one's by now; and of another host after a while."""
    fake, host = server(), socket.gethostname()
    child = subprocess.Popen(["true"])
    child.wait()
    owners = [f"{host}:{child.pid}:1.00", f"{host}:{os.getppid()}:1.00", "elsewhere:1:1.00", own_name()]
    asked = questions(get("openai:m"), 4)
    list(store.rows())
    for request, owner in zip(asked, owners, strict=True):
        values = (request.key, owner, time.time() - OTHER_HOST_SECONDS - 1)
        query(store, "INSERT INTO claims VALUES (?, ?, ?, 0, NULL)", *values)
    responses, _ = ask(store, asked)
    assert {r.status for r in responses} == {"ok"} and len(fake.ledger) == 4 and store.outcomes() == {"abandoned": 4}


@pytest.mark.parametrize("ends", ["replied", "given back"])
def test_a_claim_of_another_host_is_waited_for_while_it_may_be_at_work(store, server, ends):
    fake = server()
    first, claimed, last = questions(get("openai:m"), 3)

    async def work(client):
        await client.chat_all([first], label=None)
        values = (claimed.key, "elsewhere:1:1.00", time.time() - OTHER_HOST_SECONDS / 2)
        query(store, "INSERT INTO claims VALUES (?, ?, ?, 0, NULL)", *values)
        task = asyncio.create_task(client.chat_all([claimed], label=None))
        await client.chat_all([last], label=None)
        assert [said(entry["body"]) for entry in fake.ledger] == ["question 0", "question 2"] and not task.done()
        if ends == "replied":
            await store.put(claimed.key, claimed.identity, {"text": "theirs"})
        query(store, "DELETE FROM claims")
        [response] = await task
        return response.text

    assert (within(store, work) == "theirs") == (ends == "replied")
    assert len(fake.ledger) == (2 if ends == "replied" else 3) and store.outcomes() == {}


@pytest.mark.parametrize("fault", [None, "400"])
def test_a_claim_that_another_process_has_by_now_is_not_ended_by_ours(store, server, fault):
    def taken(i, body):
        query(store, "UPDATE claims SET owner = 'elsewhere:1:1.00'")
        return fault

    server(faults=taken)
    ask(store, questions(get("openai:m"), 1))
    assert query(store, "SELECT owner FROM claims") == [("elsewhere:1:1.00",)]


# cancellation, closing, errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrived", [0, 1, 10])
def test_a_cancelled_task_leaves_no_claim_and_the_store_goes_on(store, server, arrived):
    fake = server(latency=0.05)

    async def work(client):
        task = asyncio.create_task(client.chat_all(questions(get("openai:m"), 30), label=None))
        while len(fake.ledger) < arrived:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await client.chat_all(questions(get("openai:m"), 12), label=None)

    assert [r.status for r in within(store, work, 8)] == ["ok"] * 12
    assert count(store, "claims") == 0
    asked = [said(entry["body"]) for entry in fake.ledger]
    assert len(asked) - len({*asked}) <= store.outcomes().get("abandoned", 0) <= 8  # a repeat is counted


def test_a_full_disk_is_one_sentence_and_costs_nothing_that_was_paid(store, server):
    """The process may write files of at most 400 kB for a while: SQLite meets a real write error."""
    fake = server(reply=lambda body: default_reply(body) + "x" * 6_000)
    asked = questions(get("openai:m"), 100)
    ask(store, asked[:5])
    with (
        small_disk(400_000),
        pytest.raises(StoreError, match=f"{store.path} cannot be written: .* Make room") as caught,
    ):
        ask(store, asked, concurrency=4)
    with small_disk(50_000), pytest.raises(InputError, match=r"/out\.jsonl cannot be written: "):
        store.export_file(store.path.with_name("out.jsonl"))
    before = len(fake.ledger)
    beside = [*store.path.parent.glob("store.sqlite.unwritten-*.jsonl")]
    assert not beside or "`selfeval store import " in str(caught.value)  # else the claim found no room
    for file in beside:
        store.import_file(file)
    assert 5 < len(stored(store)) == before < 100
    responses, tally = ask(store, asked, concurrency=4)  # at once: no claim is left over
    assert all(r.text.startswith("reply-") for r in responses) and tally.stored == before and len(fake.ledger) == 100
    assert query(store, "PRAGMA integrity_check") == [("ok",)]


def put(store, text, reply=""):
    """Store a reply; return its key."""
    request = canonical({"model": text[:9], "messages": []})
    asyncio.run(store.put(key_of(request), request, {"text": reply or text}))
    return key_of(request)


def test_a_reply_that_is_stored_twice_is_booked_once(store):
    request = canonical({"model": "m", "messages": []})
    for _ in range(2):
        asyncio.run(store.put(key_of(request), request, {"text": "x", "cost": 0.5}, Ceiling("shared", 9.0)))
    assert query(store, "SELECT spent FROM purses") == [(0.5,)]


def test_a_reply_waits_for_a_locked_store_and_goes_beside_it_in_the_end(store, server, monkeypatch):
    locks = contextlib.ExitStack()

    def reply(body):
        if held:
            other = locks.enter_context(locked(store.path))
            if for_a_while := held.pop():
                threading.Timer(for_a_while, other.close).start()
        return "paid"

    held, fake = [0.5], server(reply=reply)
    with locks:
        responses, _ = ask(store, questions(get("openai:m"), 3), concurrency=1)
    assert [r.text for r in responses] == ["paid"] * 3 == [json.loads(row[2])["text"] for row in store.rows()]
    store.close()
    monkeypatch.setattr("selfeval.providers.store.PATIENCE", 0.3)
    held.append(None)
    with locks, pytest.raises(StoreError, match=r"locked\. Another process holds it: end .*`selfeval store import"):
        ask(store, questions(get("openai:n"), 9), concurrency=1)
    assert len(fake.ledger) == 4, "sending stops at the first write that fails"
    [beside] = store.path.parent.glob("*.jsonl")
    assert store.import_file(beside) == (1, 0)
    assert ask(store, questions(get("openai:n"), 1))[1].stored == 1


# files of other versions, and of others -------------------------------------------------------------------------------


def test_a_store_of_a_newer_version_is_refused(store):
    list(store.rows())
    store.close()
    query(store, "PRAGMA user_version=99")
    with pytest.raises(StoreError, match=r"is one of a newer version of selfeval; update selfeval\.$"):
        list(store.rows())


@pytest.mark.parametrize("wrong", ["folder", "garbage", "another schema"])
def test_a_store_that_cannot_be_opened_is_one_sentence_before_anything_is_bought(store, server, wrong):
    fake = server()
    if wrong == "folder":
        store.path.mkdir()
    elif wrong == "garbage":
        store.path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    else:
        query(store, "CREATE TABLE replies (key, request, response, created, note)")
    with pytest.raises(StoreError, match=f"The response store {store.path} cannot be opened: "):
        ask(store, questions(get("openai:m"), 2))
    assert fake.ledger == []


def test_a_relative_store_is_one_file_from_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELFEVAL_STORE", "mine/s.sqlite")
    assert Store().path == ROOT / "mine/s.sqlite" == Store("mine/s.sqlite").path


# texts, export, import, replay ----------------------------------------------------------------------------------------

ODD = ["nul \0 byte", "\u202eright to left\u202c", "😀👩‍👩‍👧", "x" * 1_000_000, "\r\n\t\x1b[31m", "'; --"]


def test_odd_replies_come_back_as_they_were_and_survive_export_and_import(store, server, tmp_path):
    server(reply=[*ODD, "lone \ud800"])
    asked = [Request(get("openai:m"), user(text)) for text in [*ODD, "lone \ud800"]]
    bought, _ = ask(store, asked, concurrency=1)
    assert [r.text for r in bought] == [*ODD, "lone \ufffd"]
    exported, other = tmp_path / "export.jsonl", Store(tmp_path / "other.sqlite")
    assert store.export_file(exported) == len(asked)
    assert other.import_file(exported) == (len(asked), 0)
    assert other.import_file(exported) == (0, len(asked))
    assert list(other.rows()) == list(store.rows()) and ask(other, asked)[0] == bought
    with pytest.raises(InputError, match=r"export\.jsonl exists; name a new file for the replies"):
        store.export_file(exported)
    other.close()


TAMPER = {
    "another question": lambda line: line.replace(b"question 1", b"question 9"),
    "no JSON": lambda line: line[:-20] + b"\n",
    "no response": lambda line: line.replace(b'"response"', b'"respons"'),
    "a bomb": lambda line: b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("tamper", TAMPER.values(), ids=TAMPER)
def test_a_tampered_line_is_named_and_nothing_is_imported(store, server, tmp_path, tamper):
    server()
    ask(store, questions(get("openai:m"), 3))
    path = tmp_path / "export.jsonl"
    store.export_file(path)
    lines = path.read_bytes().splitlines(keepends=True)
    [number] = [i for i, line in enumerate(lines) if b"question 1" in line]
    lines[number] = tamper(lines[number])
    path.write_bytes(b"".join(lines))
    other = Store(tmp_path / "other.sqlite")
    with pytest.raises(InputError, match=rf"export\.jsonl, line {number + 1}: "):
        other.import_file(path)
    assert list(other.rows()) == []
    other.close()


REQUEST = canonical({"model": "m", "messages": [], "provider": {}})
POISON = {  # what is behind the key, and a response as JSON: what the sentence says of it
    ("", '{"text": "x", "cost": 1e999}'): "the cost of a response is a finite number",
    ("", '{"text": "x", "usage": {"prompt": 1.5}}'): "the usage of a response holds whole numbers",
    ("", '{"text": "x", "logprobs": [1e999]}'): "not JSON compliant",
    ("", '{"text": "", "status": "error"}'): "the status of a response is one of ok, refusal",
    ("", "{}"): "`text` that is text",
    ("", '{"text": "x", "earlier": ["empty"]}'): "statuses in `earlier`",
    (" 1", '{"text": "x", "earlier": ["ok"]}'): "statuses in `earlier`",
    (" 10", '{"text": "x"}'): "is not that of its request",
}


@pytest.mark.parametrize(("reply", "sentence"), POISON.items(), ids=map("".join, POISON))
def test_a_response_that_no_client_stores_is_not_imported(store, tmp_path, reply, sentence):
    key, response = key_of(REQUEST) + reply[0], reply[1]
    line = f'{{"key": "{key}", "request": {REQUEST}, "response": {response}}}\n'
    (tmp_path / "x.jsonl").write_text(line)
    with pytest.raises(InputError, match=rf"x\.jsonl, line 1: .*{sentence}"):
        store.import_file(tmp_path / "x.jsonl")
    assert list(store.rows()) == []


@pytest.fixture
def recording(store, server, tmp_path):
    """A fake server, and the folder of what it replied to three questions."""
    fake = server()
    ask(store, questions(get("openai:m"), 3, temperature=0.5))
    (tmp_path / "recorded").mkdir()
    store.export_file(tmp_path / "recorded" / "replies.jsonl")
    fake.ledger.clear()
    return fake, tmp_path / "recorded"


def test_a_recorded_reply_is_free_and_a_miss_is_a_real_call(recording, tmp_path):
    fake, folder = recording
    second = Store(tmp_path / "second.sqlite", recorded=folder)
    _, tally = ask(second, questions(get("openai:m"), 4, temperature=0.5))
    assert (tally.stored, tally.calls, len(fake.ledger)) == (3, 1, 1)
    assert stored(second) == {"question 3"}


@pytest.mark.parametrize("hosted", [True, False])
def test_two_endpoints_of_ones_own_are_not_served_each_others_replies(hosted, store, server, registry):
    for _ in range(2):
        fake = server()
        if not hosted:
            registry(f"providers: {{mine: {{base_url: '{fake.url}'}}}}")
        for calls in (1, 0):
            [response], tally = ask(store, questions(get("openai:m" if hosted else "mine:m"), 1))
            assert response.status == "ok" and (tally.calls, len(fake.ledger)) == (calls, 1)


def test_replay_serves_the_recording_alone(recording, tmp_path, monkeypatch):
    fake, folder = recording
    monkeypatch.setenv("OPENAI_API_KEY", "")  # needs none
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    replay = Store(tmp_path / "second.sqlite", recorded=folder)
    responses, tally = ask(replay, questions(get("openai:m"), 3, temperature=0.5))
    assert tally.stored == 3 and responses[0].text.startswith("reply-")
    for other in (questions(get("openai:m"), 1, temperature=0.7), questions(get("openai:n"), 1, temperature=0.5)):
        with pytest.raises(ReplayMiss, match=f"no recorded reply for this request to '{other[0].model.api_name}'"):
            ask(replay, other)
    assert fake.ledger == [] and not (tmp_path / "second.sqlite").exists()
    monkeypatch.setenv("SELFEVAL_REPLAY", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"SELFEVAL_REPLAY must be 1 or a folder of recorded replies, got .*none'"):
        Store()
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    with pytest.raises(ReplayMiss, match="no recorded reply for this request to 'm'"):
        ask(Store(tmp_path / "x.sqlite", recorded=tmp_path / "none"), questions(get("openai:m"), 1))


def test_replay_reads_the_sample_first_and_the_other_recordings_for_what_it_lacks(recording, tmp_path, monkeypatch):
    fake, folder = recording  # with three replies
    (tmp_path / "sample").mkdir()
    lines = (folder / "replies.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "sample" / "some.jsonl").write_text(lines[0])
    monkeypatch.setattr("selfeval.providers.store.DATA", tmp_path)
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    replay = Store(tmp_path / "none.sqlite")
    assert ask(replay, questions(get("openai:m"), 3, temperature=0.5))[1].stored == 3
    (folder / "replies.jsonl").write_text("not one reply\n")
    key = json.loads(lines[0])["key"]
    assert Store(tmp_path / "none.sqlite").look_up({key: ""})  # of the sample, without a look at the others
    assert fake.ledger == []


def test_a_folder_is_replayed_with_its_compressed_exports_which_are_imported_too(
    recording, store, tmp_path, monkeypatch
):
    fake, folder = recording  # with three replies
    asked, more = questions(get("openai:m"), 5, temperature=0.5), tmp_path / "more" / "replies.jsonl.xz"
    ask(store, asked[:4])
    assert store.export_file(more) == 4 and more.read_bytes().startswith(b"\xfd7zXZ")
    ask(store, asked)
    monkeypatch.setenv("SELFEVAL_REPLAY", str(more.parent))
    replay = Store(store.path, recorded=folder)
    assert ask(replay, asked[:4])[1].stored == 4 and len(fake.ledger) == 2
    with pytest.raises(ReplayMiss):
        ask(replay, asked)
    assert replay.export_file(tmp_path / "rest.jsonl") == 1  # what the recordings lack
    other = Store(tmp_path / "other.sqlite", recorded=tmp_path / "none", replay=False)
    assert other.import_file(more) == (4, 0) and stored(other) == {f"question {i}" for i in range(4)}
    more.write_bytes(more.read_bytes()[:100])
    with pytest.raises(InputError, match=r"replies\.jsonl\.xz cannot be read"):
        other.import_file(more)
    other.close()
