"""A sweep on a cluster of three hosts of which one is killed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

import psutil
import pytest
from conftest import FULL, KEY, is_loopback
from fake_server import FakeServer, default_reply
from local_cluster import three_hosts
from sweep_files import make_notebook, write

from selfeval import sweep
from selfeval.asking.store import Store
from selfeval.errors import InputError
from selfeval.sweep import cluster as clusters

# The cluster

ASK = """import json, pathlib
from selfeval.asking.client import Client
from selfeval.asking.request import Request
from selfeval.models import get
async with Client(IN_FLIGHT) as client:
    requests = [Request(get("openai:fake"), [{"role": "user", "content": f"{x} {i}"}]) for i in range(CALLS)]
    replies = await client.chat_all(requests)
pathlib.Path(out, "rows.json").write_text(json.dumps([reply.text for reply in replies]))"""
RUNS, CALLS, IN_FLIGHT = 4, 12, 2


@pytest.fixture(scope="module")
def asked():
    """A fake server that the notebooks ask, also those on the workers."""
    with FakeServer(latency=0.25) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", KEY)
        yield server


@pytest.fixture(scope="module")
def cluster(asked, tmp_path_factory):
    """Three hosts, one worker each, with a store each; all of it on loopback."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install -e .[cluster]")
    folder = tmp_path_factory.mktemp("hosts")
    with three_hosts(folder) as cluster:
        cluster.folder = folder
        yield cluster


@pytest.fixture
def swept(tmp_path, monkeypatch, asked):
    """A function that runs the sweep into a folder; it returns the exit status and the main store."""
    cell = ASK.replace("IN_FLIGHT", str(IN_FLIGHT)).replace("CALLS", str(CALLS))
    make_notebook(tmp_path / "ask.ipynb", cell, parameters='x: int = 0\nout: str = ""')
    path = write(tmp_path, {"notebook": "ask", "grid": {"x": list(range(RUNS))}})

    def swept(name, **options):
        monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "main.sqlite"))
        return sweep.run_file(path, out=tmp_path / name, **options), Store()

    return swept


def client_of(address):
    from distributed import Client

    return Client(address, set_as_default=False)


def kill_one(address, ledger, killed):
    """Kill a worker once the run on it has bought some of its replies."""
    with client_of(address) as client:
        while len(ledger) < 3 * CALLS // 2:
            time.sleep(0.05)
        at_work = {worker: folders for worker, folders in client.run(clusters.running).items() if folders}
        worker, [folder] = sorted(at_work.items())[0]
        killed.append(folder)
        os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)


@pytest.mark.fault("loopback")
def test_a_cluster_of_which_a_worker_is_killed_loses_nothing_and_buys_little_twice(swept, asked, cluster, tmp_path):
    for process in (each := psutil.Process(), *each.children(recursive=True)):
        assert all(is_loopback(c.laddr.ip) for c in process.net_connections() if c.status == "LISTEN")
    killed, ledger = [], asked.ledger
    ledger.clear()
    killer = threading.Thread(target=kill_one, args=(cluster.scheduler_address, ledger, killed))
    killer.start()
    status, store = swept("cluster", engine="ordinary", scheduler=cluster.scheduler_address)
    killer.join()
    assert status == 0 and len(killed) == 1
    bought = Counter(json.dumps(entry["body"]["messages"]) for entry in ledger)
    assert len(bought) == RUNS * CALLS
    assert sum(bought.values()) - len(bought) <= IN_FLIGHT, "more was bought twice than was in flight"
    assert len(list(store.rows())) == RUNS * CALLS
    stores = list(cluster.folder.rglob("store.sqlite"))
    assert len(stores) == 3 and all(0 < len(list(Store(path).rows())) < RUNS * CALLS for path in stores)
    manifests = [json.loads(file.read_text()) for file in (tmp_path / "cluster").rglob("manifest.json")]
    assert [each["status"] for each in manifests] == ["ok"] * RUNS
    assert {each["host"] for each in manifests} == {socket.gethostname()}
    assert not (tmp_path / "cluster" / "replies").exists()

    for x in range(RUNS):
        [file] = (tmp_path / "cluster" / "ask").glob(f"x-{x}_*/rows.json")
        messages = [[{"role": "user", "content": f"{x} {i}"}] for i in range(CALLS)]
        assert json.loads(file.read_text()) == [default_reply({"messages": each}) for each in messages]

    before = len(ledger)  # what the main store holds is free on every host
    assert swept("again", engine="ordinary", scheduler=cluster.scheduler_address, only=("ask/x-0*",))[0] == 0
    assert len(list((tmp_path / "again").rglob("rows.json"))) == 1 and len(ledger) == before
    assert swept("cluster")[0] == 0 and len(ledger) == before, "on one machine nothing is left to do"


@pytest.mark.parametrize("number", [signal.SIGTERM, *[signal.SIGKILL] * FULL])
def test_runs_on_workers_end_with_the_sweep(swept, asked, cluster, tmp_path, number):
    asked.ledger.clear()
    command = [sys.executable, "-c", "from selfeval.cli import main; main()", "sweep", "sweep.yaml", "--out", "out"]
    command += ["--scheduler", cluster.scheduler_address, "--only", "ask/x-0*", "--engine", "forked"]
    env = os.environ | {"SELFEVAL_STORE": str(tmp_path / "main.sqlite")}
    path = tmp_path / "ask.ipynb"
    path.write_text(path.read_text().replace("await client.chat_all", "await __import__('asyncio').sleep(60)"))
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    with client_of(cluster.scheduler_address) as client:
        family = wait_for(kernel)
        process.send_signal(number)
        said, _ = process.communicate(timeout=10)
        assert psutil.wait_procs(family, timeout=10)[1] == []
        assert wait_for(lambda: not any(client.run(clusters.running).values()))
    if number == signal.SIGTERM:
        assert process.returncode == 128 + number and "run the same command again" in said


def kernel():
    """Return the process that a worker's fork server has forked, once it is there."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # one that has ended meanwhile
            found += [each] * ("forkserver" in str(each.cmdline()) and "forkserver" in str(each.parent().cmdline()))
    return found


def wait_for(condition):
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("name", ["repository", "code", "addresses", "pandas"])
def test_a_host_that_cannot_run_the_sweep_is_refused_in_one_sentence(name):
    common = {"made": clusters.made_with()}
    assert clusters.problem(common) is None
    common["made"][name] = "another"
    assert clusters.problem(common).startswith(f"`{name}` is ") and "another here" in clusters.problem(common)


def test_no_scheduler_and_no_dask_are_said_in_one_sentence(tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install -e .[cluster]")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(InputError, match="no Dask scheduler answers at"):
            clusters.Cluster(f"tcp://127.0.0.1:{closed.getsockname()[1]}", tmp_path, patience=0.5)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match="--scheduler needs Dask"):
        clusters.Cluster("tcp://127.0.0.1:1", tmp_path)
