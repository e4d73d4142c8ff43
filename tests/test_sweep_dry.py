"""A dry run of a sweep: the runs and calls that it tells are those of the real one, and it leaves nothing behind."""

import re

import pytest
from sweep_files import make_notebook, reply, write

import selfeval as se
from selfeval import DATA, sweep
from selfeval.providers.dry_runs import dollars, inside

MODELS = """
models:
  - {id: "openai:a", display: Anna, price: {input: 1.0, output: 4.0}}
  - {id: "openai:b", display: Bert}
"""
LOOK = """import os
from selfeval.providers.client import Client
from selfeval.records.tables import data_path, read_jsonl, write_jsonl
data_path(kept).write_text("changed")
write_jsonl(data_path(out) / "rows.jsonl", [{"a": 1}])
write_jsonl(data_path("corpora/new/texts.jsonl"), [{"a": 1}])
sample = data_path("corpora/sample/texts.jsonl")
sample.write_text(sample.read_text()[:10])"""
SEEN = """assert data_path(kept).read_text() == "changed" and read_jsonl(data_path(out) / "rows.jsonl") == [{"a": 1}]
assert len(sample.read_text()) == 10 and not os.environ["OPENAI_API_KEY"]"""


def files(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def chain(tmp_path, server, registry, own_store):
    """A sweep of texts, answers and an analysis on a fake server, as (file, folder, server)."""
    registry(MODELS)
    make_notebook(tmp_path / "analysis.ipynb", "1 / 0", parameters="tables: list = []\nout: str = ''\n")
    both = {"models": ["openai:a", "openai:b"], "corpus": str(tmp_path / "corpus")}
    stages = [
        {"notebook": "01_generate_texts", "parameters": both | {"limit": 3}},
        {"notebook": "02_collect_predictions", "parameters": both | {"tasks": ["binary_self"]}},
        {"notebook": "analysis", "parameters": {"tables": "{02_collect_predictions}"}},
    ]
    return write(tmp_path, *stages), tmp_path, server(reply=reply)


def dry(path, capsys, **options):
    """Return the exit status of a dry run, what it said, and its figures (stored, to buy)."""
    status = sweep.run_file(path, 2, path.parent / "out", dry_run=True, **options)
    said = capsys.readouterr().out
    return status, said, tuple(map(int, re.search(r"(\d+) replies are stored, (\d+) to buy", said).groups()))


def test_a_dry_run_tells_the_calls_of_both_stages_and_buys_nothing(chain, capsys):
    path, folder, server = chain
    before = files(folder)
    status, said, figures = dry(path, capsys)
    assert (status, figures, server.ledger) == (0, (0, 3 * 2 + 3 * 2 * 2), [])
    assert files(folder) == before, "nothing is written, not even a store"
    assert re.search(r"openai:a +0 +9( +\d+){4} +0\.\d+ +0\.\d+\n", said)
    assert re.search(r"openai:b +0 +9.+ \? +\?\n", said) and said.count("to do ") == 3
    assert re.search(r"^price unknown for 9 calls \(openai:b\); for the other 9: 0\.\d+ USD for replies of", said, re.M)

    assert sweep.run_file(path, 2, folder / "out") == 1, "the analysis divides by zero"
    assert len(server.ledger) == 18
    money = r"^18 model calls \(\d+ tokens.*, price unknown for 9 calls, \$0\.\d+ for the other 9\)"
    assert re.search(money, capsys.readouterr().out, re.M)
    status, said, figures = dry(path, capsys)
    assert (status, figures) == (0, (0, 0)) and len(re.findall("^done  ", said, re.M)) == 2


def test_a_verb_says_for_how_many_calls_nobody_knows_the_price(server, registry, own_store, capsys):
    registry(MODELS)
    server(reply=reply)
    counted = se.generate_texts(["openai:a", "openai:b"], 2, dry_run=True)
    assert counted["usd_low"].isna().tolist() == [False, True]
    assert "price unknown for 2 calls (openai:b); for the other 2: 0." in capsys.readouterr().out
    se.generate_texts("openai:b", 2)
    said = capsys.readouterr().out
    assert "2 model calls (" in said and "price unknown for 2 calls)" in said and "$" not in said
    se.generate_texts("openai:a", 1, dry_run=True)
    assert "unknown" not in capsys.readouterr().out


@pytest.mark.parametrize(("amount", "shown"), [(0, "0.0000"), (1e-5, "0.0001"), (0.1426, "0.1426"), (7.1, "7.1000")])
def test_what_costs_anything_is_not_shown_as_nothing(amount, shown):
    assert dollars(amount) == shown


def test_what_a_notebook_writes_lies_in_the_shadow_alone(tmp_path, capsys, server):
    server()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").write_text("kept")
    make_notebook(tmp_path / "rows.ipynb", LOOK, SEEN, parameters="kept: str = ''\nout: str = ''\n")
    path = write(tmp_path, {"notebook": "rows", "parameters": {"kept": str(tmp_path / "folder" / "kept")}})
    before, data = files(tmp_path), files(DATA / "corpora") | files(DATA / "predictions")
    status, said, _ = dry(path, capsys)
    assert (status, "at least" in said) == (0, False), said
    assert files(tmp_path) == before and files(DATA / "corpora") | files(DATA / "predictions") == data


def test_a_notebook_that_fails_already_is_named(tmp_path, capsys):
    make_notebook(
        tmp_path / "rows.ipynb", "from selfeval.providers.client import Client", "raise ValueError('no corpus')"
    )
    path = write(tmp_path, {"notebook": "rows"}, {"notebook": "rows", "name": "later"})
    status, said, _ = dry(path, capsys)
    assert status == 1 and "ValueError: no corpus" in said
    assert re.search(r"to do +rows/\w+\nto do +later/", said)


def test_a_dry_run_leads_whole_paths_and_those_of_the_home_into_its_shadow(tmp_path, monkeypatch):
    home, root = tmp_path / "home" / "ann", tmp_path / "shadow"
    (home / "mine").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert inside(f"{home}/mine/out", root) == inside("~/mine/out", root) == f"{root}{home}/mine/out"
    assert inside(["~/mine", "demo", 7], root) == [f"{root}{home}/mine", "demo", 7]
