"""A sweep on a Dask cluster of three workers of which one is killed; what a cluster refuses."""

import contextlib
import json
import subprocess
import sys
import threading
from collections import Counter

import psutil
import pytest
from conftest import KEY, wait_for
from fake_server import FakeServer
from local_cluster import three_hosts
from sweep_files import CLIENT, make_notebook, write
from test_client import said

from selfeval import sweep
from selfeval.errors import InputError
from selfeval.providers.store import Store
from selfeval.sweep import execute

RUNS, CALLS, IN_FLIGHT = 4, 12, 2
ASK = f"""import json, os, pathlib
pathlib.Path(out, "worker").write_text(str(os.getppid()))
{CLIENT}
async with Client({IN_FLIGHT}) as client:
    requests = [Request(get("openai:fake"), [{{"role": "user", "content": f"{{x}} {{i}}"}}]) for i in range({CALLS})]
    replies = await client.chat_all(requests)
pathlib.Path(out, "rows.json").write_text(json.dumps([reply.text for reply in replies]))"""


@pytest.fixture(scope="module")
def asked():
    """A fake server that the notebooks ask, also those on the workers."""
    with FakeServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", KEY)
        yield server


@pytest.fixture(scope="module")
def cluster(asked, tmp_path_factory):
    """Three workers on loopback, which share a store as they share a host."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install -e .[cluster]")
    folder = tmp_path_factory.mktemp("hosts")
    with three_hosts(folder) as cluster:
        cluster.store = folder / "store.sqlite"
        yield cluster


def test_a_cluster_of_which_a_worker_is_killed_loses_nothing_and_buys_little_twice(asked, cluster, tmp_path):
    """Half of the calls are answered, the others when the worker is dead that has some of them in flight."""
    make_notebook(tmp_path / "ask.ipynb", ASK, parameters='x: int = 0\nout: str = ""')
    path = write(tmp_path, {"notebook": "ask", "grid": {"x": list(range(RUNS))}})
    there, ledger = {"scheduler": cluster.scheduler_address}, asked.ledger
    asked.faults = lambda i, body: asked.open.clear() if i == RUNS * CALLS // 2 else None
    killed = []

    def kill_one():
        """Kill the worker whose run sent the first call that nobody answers."""
        wait_for(lambda: len(ledger) > RUNS * CALLS // 2)
        run = said(ledger[RUNS * CALLS // 2]["body"]).split()[0]
        [noted] = (tmp_path / "out" / "ask").glob(f"x-{run}_*/worker")
        worker = psutil.Process(int(noted.read_text()))
        worker.kill()
        psutil.wait_procs([worker])
        killed.append(worker.pid)
        asked.open.set()

    threading.Thread(target=kill_one, daemon=True).start()
    assert sweep.run_file(path, out=tmp_path / "out", **there) == 0
    assert killed
    bought = Counter(said(entry["body"]) for entry in ledger)
    assert len(bought) == RUNS * CALLS
    assert sum(bought.values()) - len(bought) <= IN_FLIGHT, "more than was in flight came twice"
    with contextlib.closing(Store(cluster.store)) as store:
        assert len(list(store.rows())) == RUNS * CALLS
    before = len(ledger)
    assert sweep.run_file(path, out=tmp_path / "out") == 0 and len(ledger) == before, "here nothing is left to do"


def test_runs_on_workers_end_with_a_sweep_that_is_killed(cluster, tmp_path):
    sleep = "import os, pathlib, time\npathlib.Path(out, 'pid').write_text(str(os.getpid()))\ntime.sleep(3600)"
    make_notebook(tmp_path / "ask.ipynb", sleep, parameters='out: str = ""')
    path, cli = write(tmp_path, {"notebook": "ask"}), "from selfeval.cli import main; main()"
    command = [sys.executable, "-c", cli, "sweep", path]
    command += ["--out", tmp_path / "out", "--scheduler", cluster.scheduler_address]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    kernel = psutil.Process(int(wait_for(lambda: "".join(file.read_text() for file in tmp_path.rglob("pid")))))
    process.kill()
    process.communicate()
    assert psutil.wait_procs([kernel], timeout=60)[0]


def test_what_is_set_for_a_sweep_is_set_on_its_workers(cluster, tmp_path, monkeypatch):
    ours = {"SELFEVAL_REPLAY": "1", "SELFEVAL_MODELS": str(tmp_path / "models.yaml"), "SELFEVAL_BATCH": "1"}
    names = [*ours, "SELFEVAL_MAX_COST"]  # no others: some are keys
    show = f"import json, os, pathlib\ntold = {{name: os.environ[name] for name in {names}}}\n"
    show += "pathlib.Path(out, 'told.json').write_text(json.dumps(told))"
    make_notebook(tmp_path / "ask.ipynb", show, parameters='out: str = ""')
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    path = write(tmp_path, {"notebook": "ask"})
    assert sweep.run_file(path, out=tmp_path / "out", scheduler=cluster.scheduler_address, max_cost=9) == 0
    [file] = (tmp_path / "out").rglob("told.json")
    told = json.loads(file.read_text())
    assert {name: told[name] for name in ours} == ours and told["SELFEVAL_MAX_COST"].endswith(":3.0")  # of three hosts


def test_a_scheduler_that_does_not_answer_is_said_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "PATIENCE", 0.5)
    make_notebook(tmp_path / "ask.ipynb", "1")
    with pytest.raises(InputError, match="no Dask scheduler answers at"):
        sweep.run_file(write(tmp_path, {"notebook": "ask"}), out=tmp_path / "out", scheduler="tcp://127.0.0.1:1")
