"""Sweeps on tiny notebooks that the test makes: what is checked before the start, what runs, resumes, fails, stops."""

import json

import nbformat
import pytest
from sweep_files import CORPUS, READ, REPORT, SAVE, check, make_notebook, reasons, write

from selfeval import ROOT, sweep
from selfeval.errors import InputError
from selfeval.sweep import execute, file, runs
from selfeval.sweep.show import Line, main_figure


@pytest.fixture
def folder(tmp_path):
    """The folder of `rows`, which writes a table and a corpus, and `read`, which reads tables."""
    make_notebook(tmp_path / "rows.ipynb", REPORT, SAVE, CORPUS)
    make_notebook(tmp_path / "read.ipynb", READ)
    return tmp_path


@pytest.fixture(autouse=True)
def fixed_code(monkeypatch):
    monkeypatch.setattr(runs, "code_version", lambda: {"commit": "test", "hash": "test"})


# The file


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("parameters: {limt: 3}", "no parameter 'limt'; did you mean 'limit'?"),
        ("parameters: {temperature: .nan}", "`temperature` has nan, which is no plain literal"),
        ("parameters: {name: 2026-01-31}", "`name` has 2026-01-31, which is no plain literal"),
        ("parameters: {'x=1;import os': 1}", "'x=1;import os' is no parameter name"),
        ("parameters: {class: 1}", "'class' is no parameter name"),
        ("parameters: {api_key: abc}", "`api_key` looks like a secret"),
        (f"parameters: {{name: sk-{'a1' * 12}}}", "`name` looks like a secret"),
        ("parameters: {models: [{openAIToken: abc}]}", "`models` looks like a secret"),
        ("parameters: {tables: '{rowz}'}", "`tables` refers to 'rowz'"),
        ("parameters: {tables: ['{first}', x]}", "`tables` refers to stages and other values"),
        ("name: first", "the name is used twice"),
        ("name: a/b", "the name 'a/b' must be letters"),
        ("parameter: {}", "unknown field; did you mean 'parameters'?"),
        ("zip: {limit: [1], name: [a, b]}", "the lists of `zip` differ in length"),
        ("grid: {limit: 1}", "is wrong at grid.limit"),
        ("grid: {limit: [1, 1]}", "the same parameters stand there twice"),
        ("grid: {limit: [1]}, zip: {name: [a]}", "of grid, zip and list there is one"),
        ("list: [{limit: 1}], parameters: {limit: 2}", "'limit' is both fixed and varying"),
        ("grid: {limit: [1, 2]}, parameters: {out: x}", "write to one `out`, 'x'"),
        ("list: []", "is wrong at list"),
        ("after: [frist]", "`after` names 'frist'"),
    ],
)
@pytest.mark.fault("no code")
def test_a_stage_that_breaks_a_rule_is_named(folder, stage, message):
    text = check(folder, f"name: a\nstages: [{{notebook: rows, name: first}}, {{notebook: rows, {stage}}}]")
    assert message in text and "a1a1" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nstages: !!python/object/apply:os.system ['touch pwned']\n", "as plain YAML in line 2"),
        ("name: a\nname: b\nstages: []\n", "the key 'name' twice"),
        ("&a [*a]", "as plain YAML: a value inside itself"),
        ("name: ../a\nstages: [{notebook: rows}]", "the name '../a' must be letters"),
        ("name: a\nstages: [{notebook: rowz}]", "there is no notebook 'rowz'"),
        ("name: a\nstages: [{notebook: 01_generate_texts, grid: {seed: [0, 1]}}]", "write to one `corpus`, 'sample'"),
    ],
)
@pytest.mark.fault("no code")
def test_a_file_that_breaks_a_rule_is_named_and_nothing_runs(folder, text, message, monkeypatch):
    monkeypatch.chdir(folder)
    assert message in check(folder, text)
    assert not (folder / "pwned").exists() and not (folder / "out").exists()


def test_the_documented_file_and_the_repositorys_own_pass_the_checks(tmp_path):
    text = file.__doc__
    (tmp_path / "x.yaml").write_text(text[text.index("name: demo") : text.index("Runs of one notebook")])
    assert [len(stage.runs) for stage in sweep.load(tmp_path / "x.yaml", tmp_path / "out").stages] == [1, 4, 2, 1]
    assert len(sweep.load(ROOT / "notebooks/sweeps/demo.yaml", tmp_path / "out").runs) == 15


@pytest.mark.fault("model ids")
def test_hostile_model_ids_stay_inside_and_apart(folder):
    ids = ["a/b:free", "A/B:free", "a-b-free", "../../x", "x" * 300, "", "..", "/etc", "日本", "a\x00b", "~"]
    path = write(folder, {"notebook": "rows", "grid": {"models": ids}})
    loaded = sweep.load(path, folder / "out").runs
    assert len({run.folder.name.lower() for run in loaded}) == len(ids)
    for run, model in zip(loaded, ids, strict=True):
        assert run.folder.parent == folder / "out" / "rows" and len(run.folder.name) < 100
        assert run.parameters == {"models": model, "out": str(run.folder)}
    (folder / "out").mkdir()
    (folder / "out" / "rows").symlink_to(folder)
    with pytest.raises(InputError, match="leads out of"):
        sweep.load(path, folder / "out")


def test_a_list_is_one_run_for_each_set(folder):
    sets = [{"name": "x", "limit": 1}, {"name": "x"}, {"models": ["a/b"]}]
    loaded = sweep.load(write(folder, {"notebook": "rows", "parameters": {"temperature": 1.0}, "list": sets}))
    given = [{k: v for k, v in run.parameters.items() if k != "out"} for run in loaded.runs]
    assert given == [{"temperature": 1.0} | each for each in sets]


# Running


@pytest.mark.fault("changed")
def test_stages_run_in_order_and_a_second_time_makes_no_call(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    stages = [{"notebook": "rows", "grid": {"models": ["a/b:free", ["c", "d"]]}}]
    stages += [{"notebook": "read", "name": "end", "parameters": {"tables": "{rows}"}}]
    path, out = write(folder, *stages), folder / "out"
    assert sweep.run_file(path, 2, out, "forked") == 0
    said = capsys.readouterr().out
    assert "rows  2 ok, 0 failed" in said and "6 calls (100 tokens), 1.0000 USD, 2 replies from the store" in said
    assert "outputs: out" in said and said.splitlines()[-1].startswith("selfeval report out writes")
    *first, last = sweep.load(path, out).runs
    made = json.loads((first[1].folder / "manifest.json").read_text())
    assert made["status"] == "ok" and made["parameters"]["models"] == ["c", "d"]
    assert made["outputs"] == ["notebook.ipynb", "rows.csv"] and made["packages"]["papermill"]
    assert made["counts"]["calls"] == 3 and made["seeds"] == {"seed": 7}
    assert made["attempt"] == 1 and made["started"] < made["ended"]
    assert last.parameters["tables"] == [str(run.folder) for run in first]

    assert sweep.run_file(path, 2, out) == 0
    said = capsys.readouterr().out
    assert "rows  0 ok, 2 skipped, 0 failed" in said and "\n0 calls (0 tokens), 0.0000 USD, 0 replies" in said

    assert reasons(path, out) == ["", "", ""]
    (first[1].folder / "rows.csv").unlink()
    make_notebook(folder / "read.ipynb", "1 + 1")
    assert reasons(path, out) == ["", "its rows.csv is gone", "the notebook's code has changed"]
    (out / "corpus.jsonl").write_text("by hand")
    assert reasons(path, out)[0] == f"{out}/corpus.jsonl, which it wrote, has changed"
    monkeypatch.setattr(runs, "code_version", lambda: {"commit": "test", "hash": "other"})
    assert reasons(path, out)[0] == "the package or the data it reads have changed"


def test_code_version_changes_with_the_package(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    monkeypatch.setattr(runs, "DATA", tmp_path / "data")
    before = runs.code_version()
    (tmp_path / "selfeval").mkdir()
    (tmp_path / "selfeval" / "a.py").write_text("x = 1\n")
    assert runs.code_version()["hash"] != before["hash"]


def test_a_failed_run_is_named_with_its_cause_and_stops_what_needs_it(folder, capsys):
    make_notebook(folder / "rows.ipynb", 'import os\nif name == "dead": os.kill(os.getpid(), 9)',
                  f'{REPORT}\nif name == "bad": raise ValueError("\\x1b[31mno such corpus")', SAVE)  # fmt: skip
    stages = [{"notebook": "rows", "grid": {"name": ["good", "bad", "dead"]}}]
    stages += [{"notebook": "read", "parameters": {"tables": "{rows}"}}]
    out = folder / "out"
    assert sweep.run_file(write(folder, *stages), 2, out) == 1
    said = capsys.readouterr().out
    assert "rows  1 ok, 2 failed" in said
    assert "ValueError: [31mno such corpus\n" in said and "DeadKernelError" in said
    assert "not started because rows/bad" in said and "run the same command again" in said
    assert not (out / "read").exists()

    make_notebook(folder / "rows.ipynb", "import pathlib", SAVE.replace("rows.csv", "new.csv"))
    [good] = (out / "rows").glob("good_*")
    assert sweep.run_file(write(folder, {"notebook": "rows", "grid": {"name": ["good"]}}), 1, out) == 0
    assert (good / "new.csv").exists() and not (good / "rows.csv").exists(), "an older run's output stays"


@pytest.mark.fault("hostile text")
def test_the_live_line_counts_calls_and_is_safe_to_print(folder):
    loaded = sweep.load(write(folder, {"notebook": "rows", "grid": {"limit": [1, 2]}}), folder / "out")
    run = loaded.runs[0]
    run.folder.mkdir(parents=True)
    run.status = "running"
    line = Line(loaded, 5)
    counts = {"label": "\x1b[31m", "done": 3, "total": 12, "calls": 2, "stored": 1, "failed": 1, "cost": 0.25}
    (run.folder / "progress.json").write_text(json.dumps(counts))
    shown = "rows: 0/2 runs, now 3/12 replies · 0.2500 USD of 5 · 2 calls, 1 stored, 1 failed"
    assert line.text() == shown
    (run.folder / "progress.json").write_text('{"done":')
    assert "0 calls" in line.text()


def test_a_sweep_names_the_figure_that_answers_its_question(tmp_path):
    drawn = "log.txt accuracy.png advantage_binary_self.png advantage_exact_model.pdf advantage_exact_model.png".split()
    files = [tmp_path / name for name in (*drawn, "claims.png")]
    assert main_figure(files).name == "advantage_exact_model.png" and main_figure(files[:1]) is None


# What is executed, in which order, and how it ends: with a launcher that only says how each run ended


class Scripted:
    """A launcher without processes: a run ends at the second look, as `ends` says by its `name` or its stage.

    An end is an exit code, a dict of counts, or (exception, text) of the last cell.
    """

    def __init__(self, **ends):
        self.ends, self.log, self.looked, self.variables = ends, [], set(), {}

    def __call__(self, *_):
        return self

    def start(self, run):
        self.log.append(f"+{run.stage}")
        self.variables = run.variables

    def poll(self, run):
        if run.name not in self.looked:
            return self.looked.add(run.name)
        self.log.append(f"-{run.stage}")
        end = self.ends.get(str(run.parameters.get("name")), self.ends.get(run.stage, 0))
        cell = nbformat.v4.new_code_cell("1")
        counts = end if isinstance(end, dict) else {}
        if isinstance(end, tuple):
            cell.outputs = [nbformat.v4.new_output("error", ename=end[0], evalue=end[1])]
            counts = {"failed": 1}
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), run.folder / "notebook.ipynb")
        (run.folder / "progress.json").write_text(json.dumps(counts))
        return end if isinstance(end, int) else int(isinstance(end, tuple))

    def end(self, runs):
        assert not runs

    def close(self):
        self.log.append("closed")


def go(path, launcher=None, workers=1, **options):
    """Return the exit status and what became of each run."""
    loaded = sweep.load(path, path.parent / "out")
    return sweep.run(loaded, workers, launcher or Scripted(), **options), [run.status for run in loaded.runs]


def test_two_sweeps_do_not_share_a_folder(folder):
    path = write(folder, {"notebook": "rows"})
    (folder / "out").mkdir()
    with execute.lock(folder / "out"), pytest.raises(InputError, match="another sweep is at work"):
        go(path)


def test_only_what_depends_on_a_stage_waits_for_it(folder):
    stages = [{"notebook": "rows", "name": "a"}, {"notebook": "rows", "name": "b", "after": []}]
    stages += [{"notebook": "read", "name": "c", "after": [], "parameters": {"tables": "{a}"}}]
    stages += [{"notebook": "read", "name": "d"}]
    path, launcher, again = write(folder, *stages), Scripted(a=1), Scripted()
    assert go(path, launcher, 2) == (1, ["failed", "ok", "not started", "not started"])
    assert launcher.log == ["+a", "+b", "-a", "-b", "closed"], "independent stages side by side"
    assert go(path, again, 2) == (0, ["ok", "skipped", "ok", "ok"])
    assert again.log == ["+a", "-a", "+c", "-c", "+d", "-d", "closed"]


@pytest.mark.parametrize("last", ["a", "b"])
def test_a_stage_that_needs_several_waits_for_all_of_them_and_for_each_to_end_well(folder, last):
    class Held(Scripted):
        held = 3  # looks at the last one before it may end

        def poll(self, run):
            self.held -= run.stage == last
            return None if run.stage == last and self.held >= 0 else super().poll(run)

    stages = [{"notebook": "rows", "name": name, "after": []} for name in ("a", "b")]
    path = write(folder, *stages, {"notebook": "read", "name": "c", "after": ["a", "b"]})
    failed, launcher = Held(**{last: 1}), Held()
    assert go(path, failed, 3)[1][2] == "not started" and "+c" not in failed.log
    (folder / "out").rename(folder / "before")
    assert go(path, launcher, 3) == (0, ["ok", "ok", "ok"])
    assert launcher.log[-4:] == [f"-{last}", "+c", "-c", "closed"]


def test_calls_that_failed_make_a_run_incomplete_and_later_stages_use_it(folder, capsys):
    stages = [{"notebook": "rows", "grid": {"name": ["good", "some", "cell"]}}]
    stages += [{"notebook": "read", "parameters": {"tables": "{rows}"}}]
    path, text = write(folder, *stages), "2 calls failed; run again to make only these. The first: HTTP 500"
    ends = {"some": {"failed": 3}, "cell": ("AssertionError", text)}
    assert go(path, Scripted(**ends)) == (3, ["ok", "incomplete", "incomplete", "ok"])
    said = capsys.readouterr().out
    assert "rows  1 ok, 2 incomplete, 0 failed" in said and ": 3 calls failed\n" in said and f": {text}\n" in said
    assert go(path) == (0, ["skipped", "ok", "ok", "ok"])
    for failure in (("AssertionError", "assert rows == 3"), ("ValueError", "2 calls failed; run again")):
        assert go(write(folder, {"notebook": "rows"}), Scripted(rows=failure)) == (1, ["failed"])


def test_only_leaves_the_rest_alone(folder, capsys):
    path = write(folder, {"notebook": "rows", "grid": {"name": ["good", "bad", "late"]}}, {"notebook": "read"})
    assert go(path, Scripted(bad=1), only=["rows/[gb]*"]) == (1, ["ok", "failed", "left out", "left out"])
    assert go(path, only=["read"]) == (1, ["skipped", "left out", "left out", "not started"])
    assert "is left out and to do (failed)" in capsys.readouterr().out
    assert go(path, only=["rows"]) == (0, ["skipped", "ok", "ok", "left out"])
    assert go(path, only=["read"]) == (0, ["skipped", "skipped", "skipped", "ok"])
    with pytest.raises(InputError, match="--only 'raed' names no run"):
        go(path, only=["raed"])


@pytest.mark.parametrize("error", ["BudgetError", "PriceError"])
def test_a_ceiling_stops_cleanly_with_a_status_of_its_own(folder, capsys, error):
    path = write(folder, {"notebook": "rows", "grid": {"name": ["poor", "good", "third"]}}, {"notebook": "read"})
    launcher = Scripted(poor=(error, "spent"), good={"calls": 3, "cost": 0.3})
    ended = ["stopped", "ok", "not started", "left out"]
    assert go(path, launcher, 2, max_cost=1.5, only=["rows"]) == (4, ended)
    assert launcher.variables["SELFEVAL_MAX_COST"].endswith(":1.5")
    said = capsys.readouterr().out
    assert "0.3000 USD of 1.5" in said and "--max-cost" in said and "`price`" in said
    assert go(path) == (0, ["ok", "skipped", "ok", "ok"])


def test_what_all_attempts_took_stands_in_the_manifest(folder):
    """A resumed run showed the cost of its last attempt alone."""
    path = write(folder, {"notebook": "rows", "grid": {"name": ["dear"]}})
    for again in ({"calls": 3, "cost": 0.5, "failed": 1}, {"calls": 1, "cost": 0.25, "failed": 1}, {"calls": 2}):
        go(path, Scripted(dear=again))
    [file] = folder.glob("out/rows/*/manifest.json")
    made = json.loads(file.read_text())
    assert (made["before"]["cost"], made["counts"]["calls"], made["attempt"]) == (0.75, 2, 3)
    (file.parent / "progress.json").write_text(json.dumps({"calls": 7, "cost": 1, "done": 7, "total": 9}))
    killed = {"before": {"calls": 2}, "status": "running"}
    run = sweep.load(path, folder / "out").runs[0]
    assert run.paid(killed) == {"calls": 9, "tokens": 0, "cost": 1, "unpriced": 0}


# Notebooks that ask a server

PARAMETERS = 'corpus: str = ""\nname: str = "x"\ncalls: int = 1\nout: str = ""\n'
ROWS = """from selfeval.asking.client import Client
from selfeval.asking.request import Request
from selfeval.models import get
from selfeval.records import data_path, read_jsonl, write_jsonl
rows = read_jsonl(data_path(corpus))"""
ASK = """requests = [Request(get("openai:m"), [{"role": "user", "content": f"{name} {i}"}]) for i in range(calls)]
async with Client(1) as client:
    said = await client.chat_all(requests)
write_jsonl(data_path(out) / "said.jsonl", [{"text": one.text} for one in said])"""
REGISTRY = 'models: [{{id: "openai:m", display: M, price: {{input: 0.0, output: 8000}}, parameters: {{top_p: {p}}}}}]'


@pytest.fixture
def asking(tmp_path, server, registry, monkeypatch):
    """The folder of a notebook that reads a corpus and asks a model, and the server that answers."""
    registry(REGISTRY.format(p=0.5))
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store" / "store.sqlite"))
    make_notebook(tmp_path / "ask.ipynb", ROWS, ASK, parameters=PARAMETERS)
    (tmp_path / "corpus.jsonl").write_text('{"a": 1}\n')
    return tmp_path, server(reply="four words of reply"), str(tmp_path / "corpus.jsonl")


@pytest.mark.fault("changed")
def test_a_resume_after_a_change_runs_anew_and_never_mixes(asking, monkeypatch):
    folder, server, corpus = asking
    out, path = folder / "out", write(folder, {"notebook": "ask", "parameters": {"corpus": corpus}})
    assert sweep.run_file(path, 1, out, "forked") == 0 and len(server.ledger) == 1
    assert reasons(path, out) == [""]

    (folder / "corpus.jsonl").write_text('{"a": 2}\n')
    assert reasons(path, out) == [f"{corpus}, which it read, has changed"]
    (folder / "corpus.jsonl").write_text('{"a": 1}\n')
    [own] = folder.glob("models-*.yaml")
    own.write_text(REGISTRY.format(p=0.9))
    assert reasons(path, out) == ["the models, their addresses or what is replayed have changed"]
    assert sweep.run_file(path, 1, out, "forked") == 0
    assert [entry["body"]["top_p"] for entry in server.ledger] == [0.5, 0.9], "no reply of the other parameters"
    assert reasons(path, out) == [""]
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    assert reasons(path, out) == ["the models, their addresses or what is replayed have changed"]
    monkeypatch.setenv("SELFEVAL_REPLAY", "")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert reasons(path, out) == ["the models, their addresses or what is replayed have changed"]


def test_all_runs_share_the_ceiling_and_the_next_command_goes_on(asking, capsys):
    folder, server, corpus = asking
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
