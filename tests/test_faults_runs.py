"""Whole sweeps and commands against full disks, refusals, storms, no network; and who listens where."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import papermill
import pytest
from click.testing import CliRunner
from conftest import FULL, small_disk
from fake_server import FAULTS, FakeServer
from matplotlib.figure import Figure
from test_client import Limited, too_early
from test_faults_sweep import ASK, PARAMETERS, SAVE, SEND
from test_sweep import make_notebook

from selfeval import ROOT, figures, records
from selfeval.cli import main
from selfeval.errors import InputError

CODE = "from selfeval.cli import main; main()"
NEED_ALL = 'assert all(r.status == "ok" for r in replies), next(r.error for r in replies if r.status == "error")'


def environment(server, folder, **more):
    keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x" * 8, "SELFEVAL_STORE": f"{folder}/store.sqlite"}
    return os.environ | keys | {"TQDM_DISABLE": "1"} | {name: str(value) for name, value in more.items()}


def write_sweep(folder, *stages):
    (folder / "sweep.yaml").write_text(json.dumps({"name": "runs", "stages": stages}))
    return folder / "sweep.yaml"


def selfeval(folder, env, *arguments, code=CODE, timeout=200):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A function that runs a command in this process, whose fork server is warm."""

    def here(server, *arguments):
        for name, value in environment(server, tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        return CliRunner().invoke(main, [*map(str, arguments), "--engine", "forked"])

    return here


# disk -----------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("disk full")
def test_a_figure_table_or_record_that_finds_no_room_is_named_and_the_old_one_stays(tmp_path):
    figure, rows = Figure(), [{"text": "x" * 5000}]
    figure.subplots().plot([0, 1])
    records.write_jsonl(tmp_path / "rows.jsonl", [{"text": "old"}])
    old = figures.save(figure, tmp_path, "figure")[0].read_bytes()
    with small_disk(1000):
        with pytest.raises(InputError, match=r"figure\.pdf cannot be written: File too large; make room"):
            figures.save(figure, tmp_path, "figure")
        with pytest.raises(InputError, match=r"rows\.jsonl cannot be written: File too large; make room"):
            records.write_jsonl(tmp_path / "rows.jsonl", rows)
        with pytest.raises(InputError, match=r"t\.csv cannot be written"):
            figures.save_table(__import__("pandas").DataFrame(rows), tmp_path, "t")
    assert (tmp_path / "figure.pdf").read_bytes() == old and not [*tmp_path.glob("*.part")]
    assert records.read_jsonl(tmp_path / "rows.jsonl") == [{"text": "old"}]


@pytest.mark.fault("disk full")
def test_a_sweep_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path, here, counted):
    """Every process of the sweep may write files of at most 600 kB; the notebook shows more than that."""
    make_notebook(tmp_path / "ask.ipynb", ASK, SEND, SAVE, 'print("shown " * 200_000)', parameters=PARAMETERS)
    path = write_sweep(tmp_path, {"notebook": "ask", "parameters": {"count": 10}})
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000)); {CODE}"
    with FakeServer() as server:
        env = environment(server, tmp_path)
        full = selfeval(tmp_path, env, "sweep", path, "--out", tmp_path / "runs", code=limited)
        assert full.returncode == 1 and "Traceback" not in full.stdout + full.stderr
        assert re.search(r"failed: ask/\w+: .*(File too large|No space)", full.stdout), full.stdout
        assert "notebook.ipynb" in full.stdout and "run the same command again" in full.stdout
        bought = len(server.ledger)
        again = here(server, "sweep", path, "--out", tmp_path / "runs")
        assert again.exit_code == 0 and bought == len(server.ledger) == 10, again.output
    counted(calls=10, requests=10, lost=0)


# refusals, storms -----------------------------------------------------------------------------------------------------


@pytest.mark.fault("refused")
@pytest.mark.parametrize("fault", ["401", "402", "403", "404", "429-quota", "429-hour"] if FULL else ["402"])
def test_a_sweep_in_which_one_model_is_refused_finishes_the_others_and_says_so(tmp_path, here, counted, fault):
    make_notebook(tmp_path / "ask.ipynb", ASK, SEND, NEED_ALL, SAVE, parameters=PARAMETERS)
    stage = {"notebook": "ask", "grid": {"model": ["openai:bad", "openai:good"]}, "parameters": {"count": 20}}
    path, refusing = write_sweep(tmp_path, stage), True
    with FakeServer(faults=lambda i, body: fault if refusing and body["model"] == "bad" else None) as server:
        result = here(server, "sweep", path, "--out", tmp_path / "runs")
        assert result.exit_code == 1 and "1 ok, 1 failed" in result.output
        assert f"HTTP {fault[:3]}" in result.output and "Traceback" not in result.output
        models = [entry["body"]["model"] for entry in server.ledger]
        assert models.count("bad") <= 2 and models.count("good") == 20
        refusing = False
        assert here(server, "sweep", path, "--out", tmp_path / "runs").exit_code == 0
        counted(calls=40, requests=len(server.ledger), lost=len(server.ledger) - models.count("bad") - 40)


@pytest.mark.fault("throttled")
@pytest.mark.parametrize(("fault", "wait"), [("429-ms", 0.5)] + [("429", 1), ("429-date", 1), ("429-none", 0)] * FULL)
def test_three_processes_in_a_storm_of_refusals_lose_nothing(tmp_path, counted, fault, wait):
    code = """if True:
        import asyncio, sys
        from selfeval.asking.client import Client
        from selfeval.asking.request import Request
        from selfeval.models import get
        from selfeval.asking.messages import user
        async def run():
            async with Client(16) as client:
                asked = [Request(get("openai:m"), user(f"{sys.argv[1]} {i}")) for i in range(40)]
                print(sum(r.status == "ok" for r in await client.chat_all(asked, label=None)))
        asyncio.run(run())"""
    with FakeServer(faults=Limited(fault, 30, wait or 0.8), retry_after=wait) as server:
        env = environment(server, tmp_path)
        pipes = {"env": env, "stdout": subprocess.PIPE}
        processes = [subprocess.Popen([sys.executable, "-c", code, str(k)], **pipes) for k in range(3)]
        assert [int(process.communicate(timeout=120)[0]) for process in processes] == [40] * 3
    assert 120 < len(server.ledger) <= 2.5 * 120
    for k in range(3):  # a process that was not refused itself may go on: the limit is its provider's, not ours
        own = [entry for entry in server.ledger if entry["body"]["messages"][0]["content"].startswith(f"{k} ")]
        assert too_early(own, wait) == 0
    counted(calls=120, requests=len(server.ledger), lost=0)


PASSING = [name for name in FAULTS if name not in (
    # replies of their own, stored as what they are
    "empty-content", "null-content", "length", "cut", "filtered", "refusal", "surrogate", "nul",
)]  # fmt: skip
UNEQUAL = ("request_id", "latency", "cost", "attempts", "served_by")


def without(value, names=UNEQUAL):
    """Return records without what may differ between equal runs."""
    if isinstance(value, dict):
        return {name: without(part) for name, part in value.items() if name not in names}
    return [without(part) for part in value] if isinstance(value, list) else value


@pytest.mark.fault("storm")
@pytest.mark.skipif(not FULL, reason="`make faults`; tests/test_chain.py has a shorter form")
def test_a_sweep_in_a_storm_of_every_fault_ends_as_in_calm(tmp_path, counted):
    """Three notebooks, four models, 5 % of the requests broken in every way that a later request need not meet.

    401, 402, 403, 404, an exhausted quota and an hour's pause stop a model for the run by design, and a 400 gives up
    its request: such a run fails, and the same command is repeated until all are done. Replies that are empty, cut
    off, filtered or refusals are answers of the model, stored as such, and so not among these faults.
    """
    ids = [f"flaky:{name}" for name in "abcd"]
    own = {
        "providers": {"flaky": {"base_url_env": "FLAKY_URL", "deadline": 6, "json_schema": True}},
        "models": [{"id": name, "display": f"Model {name[-1]}", "developer": "D", "family": "f"} for name in ids],
    }
    (tmp_path / "models.yaml").write_text(json.dumps(own))
    results, rounds, requests = {}, 0, 0
    for name, rate in (("calm", 0.0), ("stormy", 0.05)):
        folder = tmp_path / name
        folder.mkdir()
        corpora = [f"{folder}/corpus-{model[-1]}" for model in ids]
        asks, judge = {"grid": {"evaluators": ids}}, {"tasks": ["binary_self"], "answer": "free"}
        path = write_sweep(
            folder,
            {"notebook": "01_generate_texts", "zip": {"models": ids, "corpus": corpora}, "parameters": {"limit": 8}},
            {"notebook": "02_collect_predictions", **asks, "parameters": judge | {"allow_strangers": True}},
            {"notebook": "07_existence", **asks, "parameters": {"iterations": 1}},
        )
        faults = {"fault_rate": rate, "fault_names": PASSING, "seed": 3, "retry_after": 0.3, "hang": 8}
        with FakeServer(**faults) as server:
            env = environment(server, folder, FLAKY_URL=server.url, SELFEVAL_MODELS=tmp_path / "models.yaml")
            status, tries = 1, 0
            while status and tries < 12:
                result = selfeval(folder, env, "sweep", path, "--out", folder / "runs", timeout=400)
                status, tries = result.returncode, tries + 1
            assert status == 0, result.stdout[-3000:]
            struck = {entry["fault"] for entry in server.ledger} - {None}
            requests, rounds = len(server.ledger), tries
        assert bool(struck) == bool(rate)
        files = [*folder.rglob("texts.jsonl"), *folder.rglob("predictions_*.jsonl"), *folder.rglob("existence.jsonl")]
        assert len(files) == 12
        results[name] = {str(f.relative_to(folder)): without(records.read_jsonl(f)) for f in sorted(files)}
    differing = [name for name in results["calm"] if results["calm"][name] != results["stormy"][name]]
    assert results["calm"].keys() == results["stormy"].keys() and not differing
    assert len(struck) > 8
    print(f"{rounds} rounds, {len(struck)} kinds of faults")
    counted(calls=sum(map(len, results["calm"].values())), requests=requests, lost=len(differing))


# who listens, and who is called ---------------------------------------------------------------------------------------


@pytest.mark.fault("loopback")
def test_no_source_names_an_address_of_all_interfaces():
    """The embedded server is started by tests of its own; here, that nothing is told to listen elsewhere."""
    files = [*(ROOT / "selfeval").rglob("*.py"), ROOT / "Makefile", *(ROOT / "notebooks").rglob("*.yaml")]
    assert not [f.name for f in files if re.search(r"0\.0\.0\.0|['\"]::['\"]|--ip[= ]", f.read_text("utf-8"))]
    embedded = (ROOT / "selfeval" / "asking" / "embedded.py").read_text("utf-8")
    assert 'hostnames, parameters.port = ["127.0.0.1"], 0' in embedded


@pytest.fixture
def trap():
    """The address of a service that takes any connection, and the list of who came."""
    came, service = [], socket.create_server(("127.0.0.1", 0))

    def take():
        while True:
            try:
                connection, _ = service.accept()
            except OSError:
                return
            came.append(connection.recv(200))
            connection.close()

    threading.Thread(target=take, daemon=True).start()
    yield f"127.0.0.1:{service.getsockname()[1]}", came
    service.close()


@pytest.mark.fault("replay")
def test_a_replayed_notebook_asks_nobody_and_a_miss_says_what_differs(tmp_path, trap, monkeypatch):
    """Every address that the environment can name is a trap, and so is the proxy of every other one."""
    address, came = trap
    env = {"SELFEVAL_REPLAY": "1", "TQDM_DISABLE": "1", "SELFEVAL_STORE": f"{tmp_path}/s"}
    env |= {
        name: f"http://{address}" for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy")
    }
    env |= {"OPENAI_BASE_URL": f"http://{address}/v1", "OPENAI_API_KEY": "x" * 9, "OPENROUTER_API_KEY": "x" * 9}
    env |= {"NO_PROXY": "", "no_proxy": ""}
    notebook = ROOT / "notebooks" / "01_generate_texts.ipynb"

    for name, value in env.items():
        monkeypatch.setenv(name, value)

    def run(**changed):
        """Execute it in a fresh kernel, to which it goes as from papermill's command."""
        given = {"corpus": f"{tmp_path}/c", **changed}
        papermill.execute_notebook(notebook, tmp_path / "out.ipynb", given, engine_name="forked", progress_bar=False)

    run()
    other = [({"models": ["openai:gpt-4.1"]}, "no recorded reply for this request to 'gpt-4.1'")] * FULL
    for changed, said in (*other, ({"temperature": 0.123}, "`parameters` is ...")):
        with pytest.raises(papermill.PapermillExecutionError, match="ReplayMiss") as missed:
            run(**changed)
        assert said in str(missed.value)
    time.sleep(0.1)
    assert came == [] and not (tmp_path / "s").exists()
