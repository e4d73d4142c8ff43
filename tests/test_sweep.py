"""Sweeps on tiny notebooks that the test makes: what is checked before the start, what runs, resumes, fails, stops."""

import fcntl
import os
import re
import shutil

import nbformat
import pytest
from sweep_files import CLIENT, READ, REPORT, SAVE, check, make_notebook, write

from selfeval import ROOT, sweep
from selfeval.errors import InputError
from selfeval.sweep import file


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


@pytest.fixture
def go(folder, capsys):
    """A function that runs these stages; it returns the exit status, [(status, stage)] as told, and what was said."""

    def go(*stages, **options):
        status = sweep.run_file(write(folder, *stages), 2, folder / "out", **options)
        said = capsys.readouterr().out
        runs = {*re.findall(r"^(ok|failed|incomplete|not started): (\S+?)/(\w+)", said, re.M)}
        return status, sorted((how, stage) for how, stage, _ in runs), said

    return go


def test_what_is_done_is_executed_again_after_a_change_alone(folder, go):
    mine = folder / "mine.csv"
    mine.touch()
    rows = {"notebook": "rows", "grid": {"models": ["a/b:free", ["c", "d"]]}}
    stages = [rows, {"notebook": "read", "name": "end", "parameters": {"tables": "{rows}"}}]
    stages.append({"notebook": "rows", "name": "other", "after": [], "parameters": {"models": [str(mine)]}})
    status, ran, said = go(*stages)
    assert (status, ran) == (0, [("ok", "end"), ("ok", "other"), ("ok", "rows"), ("ok", "rows")])
    assert "runs: 4 ok\n9 model calls (150 tokens, $1.5000), 3 replies from the store" in said
    [end] = (folder / "out" / "end").glob("*/notebook.ipynb")
    made = nbformat.read(end, 4).metadata
    assert len(made["papermill"]["parameters"]["tables"]) == 2 and made["selfeval"]["version"]
    assert go(*stages)[:2] == (0, [])

    notebook = nbformat.read(folder / "read.ipynb", 4)
    notebook.cells += [nbformat.v4.new_markdown_cell("prose")]
    nbformat.write(notebook, folder / "read.ipynb")
    assert go(*stages)[1] == []
    make_notebook(folder / "read.ipynb", READ, "1 + 1")
    assert go(*stages)[1] == [("ok", "end")]
    mine.touch()
    assert go(*stages)[1] == [("ok", "other")]
    [first, _] = (folder / "out" / "rows").glob("*/notebook.ipynb")
    shutil.rmtree(first.parent)
    assert go(*stages)[1] == [("ok", "end"), ("ok", "rows")], "and what depends on it"


def test_a_file_added_to_a_folder_or_a_corpus_that_a_run_names_makes_it_stale(folder, go, monkeypatch):
    corpora = [folder / "mine", folder / "data" / "corpora" / "ours"]
    monkeypatch.setattr("selfeval.sweep.execute.DATA", folder / "data")
    for corpus in corpora:
        corpus.mkdir(parents=True)
        (corpus / "z.jsonl").touch()
    stages = [{"notebook": "read", "name": "a", "parameters": {"models": [str(corpora[0])]}}]
    stages += [{"notebook": "read", "name": "b", "after": [], "parameters": {"models": ["ours"]}}]
    assert go(*stages)[1] == [("ok", "a"), ("ok", "b")]
    for corpus, stage in zip(corpora, "ab", strict=True):
        (corpus / "m.jsonl").touch()
        os.utime(corpus / "z.jsonl", (0, 0))
        assert go(*stages)[1] == [("ok", stage)]


def test_a_failed_run_is_told_with_its_cause_and_stops_only_what_needs_it(folder, go):
    make_notebook(folder / "rows.ipynb", 'import os\nif name == "dead": os.kill(os.getpid(), 9)',
                  f'{REPORT}\nif name == "bad": raise ValueError("\\x1b[31mno such corpus")', SAVE)  # fmt: skip
    stages = [{"notebook": "rows", "grid": {"name": ["good", "bad", "dead"]}}]
    stages += [{"notebook": "read", "parameters": {"tables": "{rows}"}}, {"notebook": "read", "name": "last"}]
    stages += [{"notebook": "read", "name": "apart", "after": []}]
    status, ran, said = go(*stages)
    assert status == 1
    assert ran == [("failed", "rows")] * 2 + [("not started", "last"), ("not started", "read")] + [
        ("ok", "apart"), ("ok", "rows"),
    ]  # fmt: skip
    assert "6 model calls (100 tokens, $1.0000)" in said, "also those of a run that failed behind them"
    assert "ValueError: [31mno such corpus (see " in said and "DeadKernelError" in said
    assert "it needs rows, where a run failed" in said and "run the same command again to resume" in said
    assert not (folder / "out" / "read").exists()

    make_notebook(folder / "rows.ipynb", "import pathlib", SAVE.replace("rows.csv", "new.csv"))
    [good] = (folder / "out" / "rows").glob("good_*")
    assert go({"notebook": "rows", "grid": {"name": ["good"]}})[0] == 0
    assert (good / "new.csv").exists() and not (good / "rows.csv").exists(), "an older run's output stays"


def test_where_calls_failed_later_stages_go_on_and_the_next_time_these_runs_come_first(folder, go):
    text = "2 calls failed; run again to make only these. The first: HTTP 500"
    make_notebook(folder / "rows.ipynb", REPORT, SAVE, f'assert pathlib.Path("{folder}/up").exists(), "{text}"')
    stages = [{"notebook": "rows"}, {"notebook": "read", "parameters": {"tables": "{rows}"}}]
    status, ran, said = go(*stages)
    assert (status, ran) == (3, [("incomplete", "rows"), ("ok", "read")]) and f": AssertionError: {text}" in said
    (folder / "up").touch()
    assert go(*stages)[:2] == (0, [("ok", "read"), ("ok", "rows")]), "and the analysis anew"
    make_notebook(folder / "rows.ipynb", REPORT.replace("failed=0", "failed=3"))
    for _ in range(2):
        status, ran, said = go({"notebook": "rows"})
        assert (status, ran) == (3, [("incomplete", "rows")]) and "3 calls failed; run again" in said
    make_notebook(folder / "rows.ipynb", f'raise ValueError("{text}")')
    assert go({"notebook": "rows"})[:2] == (1, [("failed", "rows")])


def test_two_sweeps_do_not_share_a_folder(folder, go):
    (folder / "out").mkdir()
    with (folder / "out" / "lock").open("a") as file, pytest.raises(InputError, match="another sweep is at work"):
        fcntl.flock(file, fcntl.LOCK_EX)
        go({"notebook": "rows"})


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
    assert 0 < bought <= 6 and f"{bought} model calls" in said and f"${bought * 0.04:.4f}" in said
    assert sweep.run_file(path, 2, tmp_path / "out") == 0
    assert len(asked.ledger) == 12, "what was bought is not bought again"
