"""Sweeps of notebooks that ask a server: what has changed between two of them, and a ceiling that all runs share."""

import json

import pytest
from sweep_files import make_notebook, reasons, write

from selfeval import sweep
from selfeval.sweep import runs

PARAMETERS = 'corpus: str = ""\nname: str = "x"\ncalls: int = 1\nout: str = ""\n'
READ = """from selfeval import Client, Request
from selfeval.models import get
from selfeval.records import data_path, read_jsonl, write_jsonl
rows = read_jsonl(data_path(corpus))"""
ASK = """requests = [Request(get("openai:m"), [{"role": "user", "content": f"{name} {i}"}]) for i in range(calls)]
async with Client(1) as client:
    said = await client.chat_all(requests)
write_jsonl(data_path(out) / "said.jsonl", [{"text": one.text} for one in said])"""
REGISTRY = (
    'models: [{{id: "openai:m", display: M, price: {{input: 0.0, output: {price}}}, parameters: {{top_p: {p}}}}}]'
)


@pytest.fixture
def asking(tmp_path, server, registry, monkeypatch):
    """The folder of a notebook that reads a corpus and asks a model, and the server that answers."""
    registry(REGISTRY.format(price=8000, p=0.5))
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store" / "store.sqlite"))
    monkeypatch.setattr(runs, "code_version", lambda: {"commit": "test", "hash": "test"})
    make_notebook(tmp_path / "ask.ipynb", READ, ASK, parameters=PARAMETERS)
    (tmp_path / "corpus.jsonl").write_text('{"a": 1}\n')
    return tmp_path, server(reply="four words of reply")


@pytest.mark.fault("changed")
def test_a_resume_after_a_change_runs_anew_and_never_mixes(asking, tmp_path, monkeypatch):
    folder, server = asking
    out, corpus = folder / "out", str(folder / "corpus.jsonl")
    path = write(folder, {"notebook": "ask", "parameters": {"corpus": corpus}})
    assert sweep.run_file(path, 1, out, "forked") == 0 and len(server.ledger) == 1
    assert reasons(path, out) == [""]

    (folder / "corpus.jsonl").write_text('{"a": 2}\n')
    assert reasons(path, out) == [f"{corpus}, which it read, has changed"]
    (folder / "corpus.jsonl").write_text('{"a": 1}\n')
    [own] = folder.glob("models-*.yaml")
    before = own.read_text()
    own.write_text(REGISTRY.format(price=8000, p=0.9))
    assert reasons(path, out) == ["the models or their addresses have changed"]
    assert sweep.run_file(path, 1, out, "forked") == 0
    assert [entry["body"]["top_p"] for entry in server.ledger] == [0.5, 0.9], "no reply of the other parameters"
    own.write_text(before)
    assert reasons(path, out) == ["the models or their addresses have changed"]
    own.write_text(REGISTRY.format(price=8000, p=0.9))
    assert reasons(path, out) == [""]

    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert reasons(path, out) == ["the models or their addresses have changed"]
    made = json.loads(next(out.glob("ask/*/manifest.json")).read_text())
    assert made["environment"]["addresses"]["openai"] == server.url
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    path = write(folder, {"notebook": "ask", "parameters": {"corpus": corpus, "calls": 2}})
    assert reasons(path, out) == ["new"]


def test_all_runs_share_the_ceiling_and_the_next_command_goes_on(asking, capsys):
    folder, server = asking
    corpus = str(folder / "corpus.jsonl")
    stage = {"notebook": "ask", "parameters": {"corpus": corpus, "calls": 6}, "grid": {"name": ["a", "b"]}}
    path, out = write(folder, stage), folder / "out"
    # A reply costs 5 tokens, 0.04 USD; before it, 2,000 tokens or 16 USD may be asked for.
    assert sweep.run_file(path, 2, out, "forked", max_cost=16.2) == 4
    said = capsys.readouterr().out
    bought = len(server.ledger)
    assert 0 < bought <= 6  # the seventh could not be paid for: 0.24 are spent
    assert f"{bought} calls" in said and f"{bought * 0.04:.4f} USD of 16.2" in said and "BudgetError" in said
    assert sweep.run_file(path, 2, out, "forked") == 0
    assert len(server.ledger) == 12, "what was bought is not bought again"
