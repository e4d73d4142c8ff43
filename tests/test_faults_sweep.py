"""Sweeps that are killed, stopped, refused, out of room or off the net: what was bought stays, and all can go on."""

import contextlib
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys

import papermill
import psutil
import pytest
from click.testing import CliRunner
from conftest import FULL, wait_for
from fake_server import FakeServer
from sweep_files import CLIENT, make_notebook, write

from selfeval import ROOT
from selfeval.cli import main
from selfeval.providers.store import Store
from selfeval.records.tables import read_jsonl

IN_FLIGHT = 4  # calls of one kernel
PARAMETERS = """model: str = "openai:a"  # whom to ask
count: int = 60
folders: list = []
out: str = ""
"""
ASK = (
    f"{CLIENT}\nfrom pathlib import Path\n"
    + """from selfeval.records.tables import read_jsonl, write_jsonl
said = [row["text"] for folder in folders for row in read_jsonl(Path(folder) / "replies.jsonl")]
asked = [Request(get(model), [{"role": "user", "content": f"question {i} {said[i::count]}"}]) for i in range(count)]"""
)
SEND = f"""async with Client({IN_FLIGHT}) as client:
    replies = await client.chat_all(asked)"""
SAVE = 'write_jsonl(Path(out) / "replies.jsonl", [reply.to_dict() for reply in replies])'
UNEQUAL = ("request_id", "latency", "cost", "attempts")  # what equal runs may differ in
CLI = "from selfeval.cli import main; main()"


def environment(server, folder):
    keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x" * 8, "SELFEVAL_STORE": f"{folder}/store.sqlite"}
    return os.environ | keys | {"TQDM_DISABLE": "1"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A function that runs a command in this process, which has its imports done."""

    def here(server, *arguments, folder=tmp_path):
        for name, value in environment(server, folder).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        return CliRunner().invoke(main, [*map(str, arguments)])

    return here


def family_of(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def asked(request):
    return request["model"], json.dumps(request["messages"], sort_keys=True)


def stored(folder):
    """Return what a store has replies to."""
    if not (folder / "store.sqlite").exists():
        return set()
    with contextlib.closing(Store(folder / "store.sqlite")) as store:
        return {asked(json.loads(request)) for _, request, _ in store.rows()}


def sent(server, since=0):
    """Return what a server was asked."""
    return [asked(entry["body"]) for entry in server.ledger[since:]]


# kills ----------------------------------------------------------------------------------------------------------------


def records(folder):
    """Return what the runs wrote, without what may differ between equal runs."""
    rows = {path.relative_to(folder): read_jsonl(path) for path in sorted(folder.rglob("replies.jsonl"))}
    return {path: [{k: v for k, v in row.items() if k not in UNEQUAL} for row in each] for path, each in rows.items()}


def strike(process, ledger, draw):
    """Kill the sweep, or one of its processes, after some more calls; return whether it was still there."""
    enough = len(ledger) + draw.randrange(1, 40)
    wait_for(lambda: len(ledger) >= enough or process.poll() is not None)
    family, hit = family_of(process), process.poll() is None
    with contextlib.suppress(psutil.Error):  # it ended meanwhile
        me = psutil.Process(process.pid)
        draw.choice([me, draw.choice([me, *family])]).kill()
    process.wait()  # a sweep that lost a kernel goes on with the other runs
    psutil.wait_procs(family)
    return hit


def live_through(path, folder, server, kills, draw):
    """Run one sweep to its end over at most so many kills; return how many there were."""
    server.ledger.clear()
    folder.mkdir()
    killed, process = 0, None
    while process is None or process.returncode:
        before, since = stored(folder), len(server.ledger)
        command = [sys.executable, "-c", CLI, "sweep", path, "--out", folder / "runs"]
        process = subprocess.Popen(command, env=environment(server, folder), stdout=subprocess.DEVNULL, cwd=folder)
        if killed < kills:
            killed += strike(process, server.ledger, draw)
        assert process.wait() in (0, 1, -9)
        assert not before & {*sent(server, since)}, "a stored reply was bought again"
    return killed


def test_a_sweep_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path, here):
    """Kill at random times until there are enough kills; whenever a sweep got through, begin another from nothing."""
    make_notebook(tmp_path / "ask.ipynb", ASK, SEND, SAVE, parameters=PARAMETERS)
    again = {"folders": "{ask}", "model": "openai:c", "count": 30}
    stages = [{"notebook": "ask", "grid": {"model": ["openai:a", "openai:b"]}}]
    path = write(tmp_path, *stages, {"notebook": "ask", "name": "again", "parameters": again})
    most, draw, total, sweeps = 25 if FULL else 2, random.Random(6), 0, 0
    with FakeServer(latency=0.05) as server:
        assert here(server, "sweep", path, "--out", tmp_path / "w/runs", folder=tmp_path / "w").exit_code == 0
        expected = records(tmp_path / "w")
        assert [len(rows) for rows in expected.values()] == [30, 60, 60]
        while total < most:
            folder, sweeps = tmp_path / f"killed-{sweeps}", sweeps + 1
            kills = live_through(path, folder, server, most - total, draw)
            calls, requests = len({*sent(server)}), len(server.ledger)
            assert records(folder) == expected and calls == len(stored(folder)) == 150
            assert requests - calls <= kills * 2 * IN_FLIGHT, "more than was in flight came twice"
            total += kills


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_from_the_terminal_it_ends_at_once_and_goes_on_later(number, tmp_path):
    """Signal the whole process group, as Ctrl-C does. Before that, nothing of it listens but on loopback.

    No request after the first is answered before everything has ended.
    """
    make_notebook(tmp_path / "ask.ipynb", ASK, SEND, SAVE, parameters=PARAMETERS)
    path = write(tmp_path, {"notebook": "ask", "parameters": {"count": 12}})
    command = [sys.executable, "-c", CLI, "sweep", path, "--out", tmp_path / "runs"]
    with FakeServer(faults=lambda i, body: i == 1 and server.open.clear()) as server:
        options = {"cwd": tmp_path, "env": environment(server, tmp_path), "text": True, "start_new_session": True}
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, **options)
        wait_for(lambda: len(server.ledger) >= 2 or process.poll() is not None)
        family = family_of(process)
        listening = [c.laddr.ip for each in family for c in each.net_connections("inet") if c.status == "LISTEN"]
        assert {*listening} <= {"127.0.0.1"}
        os.killpg(process.pid, number)
        told, _ = process.communicate()
        psutil.wait_procs(family)
        assert process.returncode == 130
        assert "stopped; run the same command again" in told and "Traceback" not in told
        kept, since = stored(tmp_path), len(server.ledger)
        assert len(kept) == 1
        server.open.set()
        done = subprocess.run(command, **options)
        assert done.returncode == 0, done.stdout
        assert not kept & {*sent(server, since)} and len({*sent(server)}) == 12
        assert len(server.ledger) - 12 <= IN_FLIGHT


# disk -----------------------------------------------------------------------------------------------------------------


def test_a_sweep_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path, here):
    """Every process of the sweep may write files of at most 600 kB; the notebook shows more than that."""
    make_notebook(tmp_path / "ask.ipynb", ASK, SEND, SAVE, 'print("shown " * 200_000)', parameters=PARAMETERS)
    arguments = ["sweep", write(tmp_path, {"notebook": "ask", "parameters": {"count": 10}}), "--out", tmp_path / "runs"]
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000)); {CLI}"
    with FakeServer() as server:
        options = {"env": environment(server, tmp_path), "capture_output": True, "text": True, "cwd": tmp_path}
        full = subprocess.run([sys.executable, "-c", limited, *arguments], **options)
        assert full.returncode == 1 and "Traceback" not in full.stdout + full.stderr
        assert re.search(r"failed: ask/\w+: .*(File too large|No space)", full.stdout), full.stdout
        assert "/runs/ask/" in full.stdout and "run the same command again" in full.stdout
        bought = len(server.ledger)
        again = here(server, *arguments)
        assert again.exit_code == 0 and bought == len(server.ledger) == 10, again.output


# who listens, and who is called ---------------------------------------------------------------------------------------


@pytest.fixture
def trap():
    """A service that takes any connection, and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        yield service


def test_a_replayed_notebook_asks_nobody_and_a_miss_names_the_model(tmp_path, trap, monkeypatch):
    """Every address that the environment can name is a trap, and so is the proxy of every other one."""
    address = f"127.0.0.1:{trap.getsockname()[1]}"
    env = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), f"http://{address}")
    env |= {"OPENAI_BASE_URL": f"http://{address}/v1", "OPENAI_API_KEY": "x" * 9, "OPENROUTER_API_KEY": "x" * 9}
    env |= {"NO_PROXY": "", "no_proxy": "", "SELFEVAL_REPLAY": "1", "SELFEVAL_STORE": f"{tmp_path}/s"}
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    def run(**changed):
        given = [ROOT / "notebooks" / "01_generate_texts.ipynb", tmp_path / "out.ipynb"]
        parameters = {"corpus": f"{tmp_path}/c", **changed}
        papermill.execute_notebook(*given, parameters, progress_bar=False)

    run()
    with pytest.raises(papermill.PapermillExecutionError, match="ReplayMiss") as missed:
        run(temperature=0.123)
    assert "smollm2-135m" in str(missed.value) and "make record" in str(missed.value)
    assert not select.select([trap], [], [], 0)[0], "somebody came"
    assert not (tmp_path / "s").exists()
