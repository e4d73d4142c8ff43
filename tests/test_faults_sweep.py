"""Sweeps that are killed, stopped and resumed: what was bought stays bought, and the records are the same."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest
from conftest import AT_ONCE, FULL
from fake_server import FakeServer
from test_sweep import make_notebook

from selfeval.asking.store import Store
from selfeval.records import read_jsonl
from selfeval.sweep import run_file

IN_FLIGHT = 4  # calls of one kernel
PARAMETERS = """model: str = "openai:a"  # whom to ask
count: int = 60
folders: list = []
out: str = ""
"""
ASK = """from pathlib import Path
from selfeval.asking.client import Client
from selfeval.asking.request import Request
from selfeval.models import get
from selfeval.records import read_jsonl, write_jsonl
said = [row["text"] for folder in folders for row in read_jsonl(Path(folder) / "replies.jsonl")]
asked = [Request(get(model), [{"role": "user", "content": f"question {i} {said[i::count]}"}]) for i in range(count)]"""
SEND = f"""async with Client({IN_FLIGHT}) as client:
    replies = await client.chat_all(asked)"""
SAVE = 'write_jsonl(Path(out) / "replies.jsonl", [reply.to_dict() for reply in replies])'
UNEQUAL = ("request_id", "latency", "cost", "attempts")  # what equal runs may differ in


@pytest.fixture
def sweep(tmp_path):
    """A function that starts the sweep of two models and a stage that reads what they said."""
    make_notebook(tmp_path / "ask.ipynb", ASK, SEND, SAVE, parameters=PARAMETERS)
    stages = [
        {"notebook": "ask", "grid": {"model": ["openai:a", "openai:b"]}},
        {"notebook": "ask", "name": "again", "parameters": {"folders": "{ask}", "model": "openai:c", "count": 30}},
    ]
    (tmp_path / "sweep.yaml").write_text(json.dumps({"name": "kill", "stages": stages}))
    processes = []

    def start(folder, url):
        folder.mkdir(exist_ok=True)
        environment = os.environ | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "x" * 8, "SELFEVAL_STORE": f"{folder}/s"}
        code = "from selfeval.cli import main; main()"
        engine = ["--engine", ("ordinary", "forked")[len(processes) % 2]]  # by turns
        command = [sys.executable, "-c", code, "sweep", f"{tmp_path}/sweep.yaml", "--out", f"{folder}/runs", *engine]
        with (folder / "said.txt").open("ab") as said:
            process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, cwd=tmp_path)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            end_family(process)


def end_family(process):
    """Kill a process of ours and all below it."""
    for each in (*family_of(process), process):
        with contextlib.suppress(psutil.Error):
            each.kill()
    process.wait(10)


def whole(folder, url):
    """Return the records of a sweep that nothing breaks off."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", url)
        patch.setenv("OPENAI_API_KEY", "x" * 8)
        patch.setenv("SELFEVAL_STORE", f"{folder}/s")
        assert run_file(folder.with_name("sweep.yaml"), 2, folder / "runs", "forked") == 0
    return records(folder)


def family_of(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def records(folder):
    """Return what the runs wrote, without what may differ between equal runs."""
    files = sorted((folder / "runs").rglob("replies.jsonl"))
    rows = {path.relative_to(folder): read_jsonl(path) for path in files}
    return {path: [{k: v for k, v in row.items() if k not in UNEQUAL} for row in each] for path, each in rows.items()}


def asked(request):
    return request["model"], json.dumps(request["messages"], sort_keys=True)


def state(path):
    """Return the requests whose replies a store holds, and how many calls are claimed, from the file itself."""
    if not path.exists():
        return set(), 0
    store = Store(path)
    kept = {asked(json.loads(request)) for _, request, _ in store.rows()}
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        claims = connection.execute("SELECT count(*) FROM claims").fetchone()[0]
    store.close()
    return kept, claims


def strike(process, ledger, draw):
    """Kill sweep, kernel or both at a random time; return how many sweeps were hit: 0 where it had ended before."""
    enough, end = len(ledger) + draw.randrange(1, 40), time.monotonic() + 30
    by_time = time.monotonic() + draw.uniform(0.1, 5) if draw.random() < 0.4 else end
    while time.monotonic() < min(end, by_time) and len(ledger) < enough and process.poll() is None:
        time.sleep(draw.uniform(0.001, 0.01))
    target, family = draw.choice(["sweep", "kernel", "both"]), family_of(process)
    parents = set()
    for each in family:
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            parents.add(each.ppid())
    leaves = [each for each in family if each.pid not in parents]
    victims = draw.sample(leaves, min(len(leaves), target != "sweep"))
    victims += [process] * (target != "kernel" and process.poll() is None)
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    process.wait(60)  # a sweep that lost a kernel goes on with the other runs
    left = psutil.wait_procs(family, timeout=10)[1]
    assert left == [], f"{left} outlived the sweep"
    return int(bool(victims))


def live_through(start, folder, server, kills, draw):
    """Run one sweep to its end over at most so many kills; return its counts."""
    server.ledger.clear()
    found, kept_at, process = Counter(), [], None
    while process is None or process.returncode:
        process = start(folder, server.url)
        if found["kills"] < kills:
            found["kills"] += strike(process, server.ledger, draw)
        assert process.wait(120) in (0, 1, -9)
        kept, claims = state(folder / "s")
        kept_at.append((kept, len(server.ledger)))
        found["flying"] += claims
    for kept, sent in kept_at:
        assert not kept & {asked(entry["body"]) for entry in server.ledger[sent:]}, "a stored reply was bought again"
    store = Store(folder / "s")
    found["abandoned"] = store.outcomes().get("abandoned", 0)
    store.close()
    found["calls"], found["requests"] = len({asked(entry["body"]) for entry in server.ledger}), len(server.ledger)
    found["repeats"] = found["requests"] - found["calls"]
    found["lost"] = found["calls"] - len(kept)
    return found


@pytest.mark.fault("kill")
def test_a_sweep_that_is_killed_again_and_again_ends_as_if_it_had_not_been(sweep, tmp_path, counted):
    """Kill at random times until there are enough kills; whenever a sweep got through, begin another from nothing."""
    kills, draw, total = 25 if FULL else 2, random.Random(6), Counter()
    with FakeServer(latency=0.05) as server:
        expected = whole(tmp_path / "whole", server.url)
        assert [len(rows) for rows in expected.values()] == [30, 60, 60]
        while total["kills"] < kills:
            folder = tmp_path / f"killed-{total['sweeps']}"
            found = live_through(sweep, folder, server, kills - total["kills"], draw)
            assert records(folder) == expected and found["calls"] == 150 and found["lost"] == 0
            assert found["repeats"] <= found["abandoned"] <= found["flying"], found
            total += found + Counter(sweeps=1)
    print(dict(total))
    counted(**{name: total[name] for name in ("kills", "calls", "requests", "repeats", "lost")})


def until(true, seconds=40):
    """Wait until something is true, or fail."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


@pytest.mark.fault("signal")
@pytest.mark.fault("loopback")
@pytest.mark.parametrize(
    ("command", "number"),
    [("sweep", signal.SIGINT), ("roleplay", signal.SIGTERM)]
    + [("sweep", signal.SIGTERM), ("roleplay", signal.SIGINT)] * FULL
    + [("papermill", signal.SIGTERM), ("papermill", signal.SIGINT)] * FULL,
)
def test_stopped_from_the_terminal_it_ends_at_once_and_goes_on_later(number, command, tmp_path, counted):
    """Signal the whole process group, as Ctrl-C does. papermill's own command has no message of ours.

    Before that, nothing of it listens but on loopback.
    """
    make_notebook(tmp_path / "ask.ipynb", ASK, SEND, SAVE, parameters=PARAMETERS)
    stage = {"notebook": "ask", "parameters": {"count": 12}}
    (tmp_path / "sweep.yaml").write_text(json.dumps({"name": "stop", "stages": [stage]}))
    player = {"agent": "role-play-llm-model", "asks": "interrogator-llm-model", "jury": "jury-llm-models"}
    play = [f"--{option}=openai:{name}" for name, option in player.items()]
    arguments = {
        "sweep": ["selfeval.cli", "sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "runs"],
        "papermill": [
            "papermill",
            tmp_path / "ask.ipynb",
            tmp_path / "o.ipynb",
            *f"-r out {tmp_path} -p count 12".split(),
        ],
        "roleplay": ["selfeval.cli", "roleplay", "--output_file_path", tmp_path / "r.json", "--max-turns=4", *play],
    }[command]
    code = "import runpy, sys; sys.argv.pop(0); runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    if arguments[0] == "selfeval.cli":
        code, arguments = "from selfeval.cli import main; main()", arguments[1:]
    with FakeServer(reply="It is.\nHUMAN_SCORE=0.5", latency=1) as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x" * 8, "SELFEVAL_STORE": f"{tmp_path}/s"}

        def start():
            return subprocess.Popen(
                [sys.executable, "-c", code, *map(str, arguments)],
                cwd=tmp_path, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, start_new_session=True,
            )  # fmt: skip

        process = start()
        until(lambda: len(server.ledger) > 1)
        family = family_of(process)
        listening = [c.laddr.ip for each in family for c in each.net_connections("inet") if c.status == "LISTEN"]
        assert {*listening} <= {"127.0.0.1"}
        began = time.monotonic()
        os.killpg(process.pid, number)
        said, _ = process.communicate(timeout=20)
        left = psutil.wait_procs(family, timeout=max(0.1, began + AT_ONCE - time.monotonic()))[1]
        assert left == [] and time.monotonic() - began < AT_ONCE
        assert process.returncode not in (0, None)
        if command != "papermill":
            assert process.returncode == 128 + number
            assert f"stopped by {number.name}; run the same command again" in said and "Traceback" not in said
        kept, sent = state(tmp_path / "s")[0], len(server.ledger)
        server.latency = 0.05
        process = start()
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert not kept & {asked(entry["body"]) for entry in server.ledger[sent:]}
        store = Store(tmp_path / "s")
        repeats = len(server.ledger) - len({asked(entry["body"]) for entry in server.ledger})
        assert repeats <= store.outcomes().get("abandoned", 0)
        store.close()
    counted(requests=len(server.ledger), repeats=repeats)
