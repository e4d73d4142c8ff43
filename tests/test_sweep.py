"""Sweeps on tiny notebooks that the test makes: what is checked before the start, what runs, resumes, fails, stops."""

import contextlib
import fcntl
import json
import os
import threading
from concurrent.futures import Future
from datetime import UTC, datetime

import nbformat
import pytest
from papermill import PapermillExecutionError
from sweep_files import CLIENT, READ, REPORT, SAVE, check, make_notebook, write

from selfeval import ROOT, sweep
from selfeval.errors import InputError
from selfeval.sweep import execute, file


@pytest.fixture
def folder(tmp_path):
    """The folder of `rows`, which writes a table, and `read`, which reads tables."""
    make_notebook(tmp_path / "rows.ipynb", REPORT, SAVE)
    make_notebook(tmp_path / "read.ipynb", READ)
    return tmp_path


# The file


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("parameters: {limt: 3}", "no parameter 'limt'; did you mean 'limit'?"),
        ("parameters: {api_key: abc}", "`api_key` looks like a secret"),
        (f"parameters: {{name: sk-{'a1' * 12}}}", "`name` looks like a secret"),
        ("parameters: {models: {openAIToken: abc}}", "`models` looks like a secret"),
        ("parameters: {tables: '{rowz}'}", "`tables` refers to '{rowz}'"),
        ("parameters: {tables: ['{first}', x]}", "`tables` refers to ['{first}', 'x']"),
        ("name: first", "the name is used twice"),
        ("parameter: {}", "unknown field; did you mean 'parameters'?"),
        ("zip: {limit: [1], name: [a, b]}", "the lists of `zip` differ in length"),
        ("grid: {limit: [1]}, zip: {name: [a]}", "there is `grid` or `zip`"),
        ("grid: {limit: [1]}, parameters: {limit: 2}", "'limit' is both fixed and varying"),
        ("grid: {limit: [1, 2]}, parameters: {out: x}", "write to one 'out', 'x'"),
        ("after: [frist]", "`after` names 'frist'"),
    ],
)
def test_a_stage_that_breaks_a_rule_is_named(folder, stage, message):
    text = check(folder, f"name: a\nstages: [{{notebook: rows, name: first}}, {{notebook: rows, {stage}}}]")
    assert message in text and "a1a1" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nstages: !!python/object/apply:os.system ['touch pwned']\n", "as plain YAML in line 2"),
        ("name: a\nname: b\nstages: []\n", "the key 'name' twice"),
        ("name: ../a\nstages: [{notebook: rows}]", "the name '../a' must be letters"),
        ("name: a\nstages: [{notebook: rowz}]", "there is no notebook 'rowz'"),
        (
            "name: a\nstages: [{notebook: 01_generate_texts, parameters: {corpus: mine}, grid: {seed: [0, 1]}}]",
            "write to one 'corpus', 'mine'",
        ),
        ("name: a\nstages: [{notebook: 01_generate_texts, parameters: {limit: 3}}]", "give `corpus`"),
    ],
)
def test_a_file_that_breaks_a_rule_is_named_and_nothing_runs(folder, text, message, monkeypatch):
    monkeypatch.chdir(folder)
    assert message in check(folder, text)
    assert not (folder / "pwned").exists() and not (folder / "out").exists()


def test_the_documented_file_and_the_repositorys_own_pass_the_checks(tmp_path):
    text = file.__doc__
    (tmp_path / "x.yaml").write_text(text[text.index("name: demo") : text.index("Runs of one notebook")])
    loaded = sweep.load(tmp_path / "x.yaml", tmp_path / "out")
    assert [len(runs) for runs in loaded.stages.values()] == [1, 4, 2, 1]
    assert len(sweep.load(ROOT / "notebooks/sweeps/demo.yaml", tmp_path / "out").runs) == 15


def test_hostile_model_ids_stay_inside_and_apart(folder):
    ids = ["a/b:free", "A/B:free", "a-b-free", "../../x", "x" * 300, "", "..", "/etc", "日本", "a\x00b", "~"]
    path = write(folder, {"notebook": "rows", "grid": {"models": ids}})
    loaded = sweep.load(path, folder / "out").runs
    assert len({run.folder.name.lower() for run in loaded}) == len(ids)
    for run, model in zip(loaded, ids, strict=True):
        assert run.folder.parent == folder / "out" / "rows" and len(run.folder.name) < 100
        assert run.parameters == {"models": model, "out": str(run.folder)}


# Running


def test_stages_run_in_order_and_what_is_done_is_executed_again_after_a_change_alone(folder, capsys):
    stages = [{"notebook": "rows", "grid": {"models": ["a/b:free", ["c", "d"]]}}]
    stages += [{"notebook": "read", "name": "end", "parameters": {"tables": "{rows}"}}]
    path, out = write(folder, *stages), folder / "out"
    assert sweep.run_file(path, 2, out) == 0
    said = capsys.readouterr().out
    assert "rows: 2 ok\nend: 1 ok\n6 calls (100 tokens), 1.0000 USD; 0 simulated, 2 from the store\n" in said
    *first, last = sweep.load(path, out).runs
    made = json.loads((first[1].folder / "manifest.json").read_text())
    assert made["status"] == "ok" and made["parameters"]["models"] == ["c", "d"] and made["selfeval"]
    assert made["counts"]["calls"] == 3 and made["started"] < made["ended"]
    assert last.parameters["tables"] == [str(run.folder) for run in first]
    assert to_do(path, out) == []

    notebook = nbformat.read(folder / "read.ipynb", 4)
    notebook.cells += [nbformat.v4.new_markdown_cell("prose")]
    nbformat.write(notebook, folder / "read.ipynb")
    assert to_do(path, out) == []
    make_notebook(folder / "read.ipynb", READ, "1 + 1")
    assert to_do(path, out) == ["end"]
    (first[1].folder / "manifest.json").unlink()
    assert to_do(path, out, only=["rows"]) == ["rows"]
    assert sweep.run_file(path, 2, out, only=["rows"]) == 0
    make_notebook(folder / "read.ipynb", READ)
    assert to_do(path, out) == ["end"], "a run that it depends on ended later"


def to_do(path, out, only=()):
    """Return the stages of the runs that are to be executed now."""
    loaded = sweep.load(path, out)
    chosen = execute.choose(loaded, only)
    for run in loaded.runs:
        run.status = "to do" if loaded.is_ready(run, chosen) else run.status
    return [run.stage for run in loaded.runs if run.status == "to do"]


def test_a_failed_run_is_named_with_its_cause_and_stops_what_needs_it(folder, capsys):
    make_notebook(folder / "rows.ipynb", 'import os\nif name == "dead": os.kill(os.getpid(), 9)',
                  f'{REPORT}\nif name == "bad": raise ValueError("\\x1b[31mno such corpus")', SAVE)  # fmt: skip
    stages = [{"notebook": "rows", "grid": {"name": ["good", "bad", "dead"]}}]
    stages += [{"notebook": "read", "parameters": {"tables": "{rows}"}}]
    out = folder / "out"
    assert sweep.run_file(write(folder, *stages), 2, out) == 1
    said = capsys.readouterr().out
    assert "rows: 1 ok, 2 failed" in said
    assert "6 calls (100 tokens), 1.0000 USD" in said, "also those of a run that failed behind them"
    assert "ValueError: [31mno such corpus (see " in said and "DeadKernelError" in said
    assert "it depends on rows/bad" in said and "run the same command again to resume" in said
    assert not (out / "read").exists()

    make_notebook(folder / "rows.ipynb", "import pathlib", SAVE.replace("rows.csv", "new.csv"))
    [good] = (out / "rows").glob("good_*")
    assert sweep.run_file(write(folder, {"notebook": "rows", "grid": {"name": ["good"]}}), 1, out) == 0
    assert (good / "new.csv").exists() and not (good / "rows.csv").exists(), "an older run's output stays"


# What is executed, in which order, and how it ends: with runs that only say how they ended


class Scripted:
    """What submits runs to nobody: each ends as `ends` says by its `name` or its stage, one of `late` a little later.

    An end is an exception, or how many calls failed.
    """

    def __init__(self, late=(), **ends):
        self.late, self.ends, self.log = late, ends, []

    @contextlib.contextmanager
    def __call__(self, max_cost):
        yield self.submit

    def submit(self, run):
        self.log.append(f"+{run.stage}")
        future = Future()
        threading.Timer(0.3 * (run.stage in self.late), self.end, (run, future)).start()
        return future

    def end(self, run, future):
        run.begin()
        end = self.ends.get(str(run.parameters.get("name")), self.ends.get(run.stage, 0))
        (run.folder / "notebook.ipynb").write_text("{}")
        (run.folder / "progress.json").write_text(json.dumps({"failed": end if isinstance(end, int) else 1}))
        self.log.append(f"-{run.stage}")
        future.set_result(run.settle(datetime.now(UTC), None if isinstance(end, int) else end))


def go(path, script=None, **options):
    """Return the exit status and what became of each run."""
    loaded = sweep.load(path, path.parent / "out")
    status = execute.run(loaded, script or Scripted(), **options)
    return status, [run.status for run in loaded.runs]


def failure(name, text):
    return PapermillExecutionError(0, 1, SAVE, name, text, [])


def test_two_sweeps_do_not_share_a_folder(folder):
    path = write(folder, {"notebook": "rows"})
    (folder / "out").mkdir()
    with (folder / "out" / "lock").open("a") as file, pytest.raises(InputError, match="another sweep is at work"):
        fcntl.flock(file, fcntl.LOCK_EX)
        go(path)


def test_only_what_depends_on_a_stage_waits_for_it(folder):
    stages = [{"notebook": "rows", "name": "a"}, {"notebook": "rows", "name": "b", "after": []}]
    stages += [{"notebook": "read", "name": "c", "after": [], "parameters": {"tables": "{a}"}}]
    stages += [{"notebook": "read", "name": "d"}]
    path, script, again = write(folder, *stages), Scripted(["a", "b"], a=ValueError("no")), Scripted()
    assert go(path, script) == (1, ["failed", "ok", "not started", "not started"])
    assert script.log[:2] == ["+a", "+b"], "independent stages side by side"
    assert go(path, again) == (0, ["ok", "done", "ok", "ok"])
    assert again.log == ["+a", "-a", "+c", "-c", "+d", "-d"]


def test_where_calls_failed_later_stages_go_on_and_the_next_time_these_runs_come_first(folder, capsys):
    stages = [{"notebook": "rows", "grid": {"name": ["good", "some", "cell"]}}]
    stages += [{"notebook": "read", "parameters": {"tables": "{rows}"}}]
    path, text = write(folder, *stages), "2 calls failed; run again to make only these. The first: HTTP 500"
    ends = {"some": 3, "cell": failure("AssertionError", text)}
    assert go(path, Scripted(**ends)) == (3, ["ok"] * 4)
    said = capsys.readouterr().out
    assert ": 3 calls failed\n" in said and f": {text}\n" in said
    assert go(path) == (0, ["done", "ok", "ok", "ok"]), "and the analysis anew"
    for wrong in (("AssertionError", "3 rows"), ("ValueError", text)):
        assert go(write(folder, {"notebook": "rows"}), Scripted(rows=failure(*wrong))) == (1, ["failed"])


def test_a_run_is_done_until_a_file_that_it_names_changes(folder):
    table = folder / "mine.csv"
    path = write(folder, {"notebook": "rows", "parameters": {"tables": [str(table)]}})
    for _ in range(2):
        table.touch()
        assert [go(path)[1] for _ in range(2)] == [["ok"], ["done"]]


def test_a_file_added_to_a_folder_that_a_run_names_makes_it_stale_whatever_the_order_of_names(folder):
    corpus = folder / "corpus"
    corpus.mkdir()
    old = [corpus / f"{name}.jsonl" for name in "az"]
    for each in old:
        each.touch()
    path = write(folder, {"notebook": "rows", "parameters": {"tables": [str(corpus)]}})
    assert [go(path)[1] for _ in range(2)] == [["ok"], ["done"]]
    (corpus / "m.jsonl").touch()
    for each in old:
        os.utime(each, (0, 0))
    assert [go(path)[1] for _ in range(2)] == [["ok"], ["done"]]


def test_a_corpus_that_a_run_names_makes_it_stale_when_it_changes(folder, monkeypatch):
    corpus = folder / "data" / "corpora" / "mine"
    corpus.mkdir(parents=True)
    (corpus / "texts.jsonl").touch()
    monkeypatch.setattr("selfeval.sweep.runs.DATA", folder / "data")
    path = write(folder, {"notebook": "rows", "parameters": {"tables": ["mine"]}})
    assert [go(path)[1] for _ in range(2)] == [["ok"], ["done"]]
    (corpus / "texts.jsonl").touch()
    assert [go(path)[1] for _ in range(2)] == [["ok"], ["done"]]


def test_only_leaves_the_rest_alone(folder, capsys):
    path = write(folder, {"notebook": "rows", "grid": {"name": ["good", "bad", "late"]}}, {"notebook": "read"})
    first = Scripted(bad=ValueError("no"))
    assert go(path, first, only=["rows/[gb]*"]) == (1, ["ok", "failed", "left out", "left out"])
    assert go(path, only=["read"]) == (1, ["done", "left out", "left out", "not started"])
    assert "which has not finished (left out)" in capsys.readouterr().out
    assert go(path, only=["rows"]) == (0, ["done", "ok", "ok", "left out"])
    assert go(path, only=["read"]) == (0, ["done", "done", "done", "ok"])
    with pytest.raises(InputError, match="--only 'raed' names no STAGE"):
        go(path, only=["raed"])


# Notebooks that ask a server

PARAMETERS = 'name: str = "x"\ncalls: int = 1\nout: str = ""\n'
ASK = f"""{CLIENT}
requests = [Request(get("openai:m"), [{{"role": "user", "content": f"{{name}} {{i}}"}}]) for i in range(calls)]
async with Client(1) as client:
    said = await client.chat_all(requests)"""
REGISTRY = "models: [{id: 'openai:m', display: M, price: {input: 0.0, output: 8000}}]"


def test_all_runs_share_the_ceiling_and_the_next_command_goes_on(tmp_path, server, registry, own_store, capsys):
    registry(REGISTRY)
    make_notebook(tmp_path / "ask.ipynb", ASK, parameters=PARAMETERS)
    asked, path = server(reply="four words of reply"), write(
        tmp_path, {"notebook": "ask", "parameters": {"calls": 6}, "grid": {"name": ["a", "b"]}})  # fmt: skip
    # A reply costs 5 tokens, 0.04 USD; before it, 2,000 tokens or 16 USD may be asked for.
    assert sweep.run_file(path, 2, tmp_path / "out", max_cost=16.2) == 1
    said, bought = capsys.readouterr().out, len(asked.ledger)
    assert "at most 16.2 USD, plus at most what is in flight" in said and "BudgetError" in said
    assert 0 < bought <= 6 and f"{bought} calls" in said and f"{bought * 0.04:.4f} USD" in said
    assert sweep.run_file(path, 2, tmp_path / "out") == 0
    assert len(asked.ledger) == 12, "what was bought is not bought again"
