"""Sweeps on tiny notebooks that the test makes: what is checked before the start, what runs, resumes, fails, stops."""

import json

import pytest
from sweep_files import REPORT, SAVE, check, make_notebook, make_notebooks, reasons, write

from selfeval import ROOT, sweep
from selfeval.errors import InputError
from selfeval.sweep import execute, file, runs
from selfeval.sweep.show import Line


@pytest.fixture
def folder(tmp_path):
    return make_notebooks(tmp_path)


@pytest.fixture(autouse=True)
def fixed_code(monkeypatch):
    monkeypatch.setattr(runs, "code_version", lambda: {"commit": "test", "hash": "test"})


# The file


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("{limt: 3}", "the notebook has no parameter 'limt'; did you mean 'limit'?; it declares models, limit"),
        ("{temperature: .nan}", "`temperature` has nan, which is no plain literal"),
        ("{name: 2026-01-31}", "`name` has 2026-01-31, which is no plain literal; quote it if text is meant"),
        ("{'x=1;import os': 1}", "'x=1;import os' is no parameter name"),
        ("{class: 1}", "'class' is no parameter name"),
        ("{api_key: abc}", "`api_key` looks like a secret; keys come from the environment"),
        (f"{{name: sk-{'a1' * 12}}}", "`name` looks like a secret"),
        ("{models: [{openAIToken: abc}]}", "`models` looks like a secret"),
        ("{tables: '{rowz}'}", "`tables` refers to the unknown stage 'rowz'; did you mean 'rows'?; stages before"),
    ],
)
@pytest.mark.fault("no code")
def test_a_parameter_that_breaks_a_rule_is_named_with_its_remedy(folder, parameters, message):
    first = "{notebook: rows, grid: {limit: [1, 2]}}"
    text = check(folder, f"name: a\nstages:\n- {first}\n- {{notebook: read, parameters: {parameters}}}\n")
    assert message in text
    assert "abcdefghijklmnop" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: a\nstages: !!python/object/apply:os.system ['touch pwned']\n",
            "cannot read the sweep file as plain YAML in line 2: could not",
        ),
        ("name: a\nname: b\nstages: []\n", "the key 'name' twice"),
        ("name: [a\n", "cannot read the sweep file as plain YAML in line 2"),
        ("&a [*a]", "as plain YAML: a value inside itself"),
        ("just text", "sweep.yaml is wrong: Input should be a dictionary"),
        ("name: ../a\nstages: [{notebook: rows}]", "the name '../a' must be letters"),
        ("name: a\nstage: 1\nstages: [{notebook: rows}]", "unknown field; did you mean 'stages'?"),
        (
            "name: a\nstages: [{notebook: rows, parameter: {}}]",
            "unknown field; did you mean 'parameters'?",
        ),
        ("name: a\nstages: [{notebook: rowz}]", "there is no notebook 'rowz'"),
        ("name: a\nstages: [{notebook: rows}, {notebook: rows}]", "stage 'rows': the name is used twice"),
        ("name: a\nstages: [{notebook: rows, name: a/b}]", "stage 'a/b': the name 'a/b' must be letters"),
        ("name: a\nstages: [{notebook: rows, zip: {limit: [1], name: [a, b]}}]", "the lists of `zip` differ in length"),
        (
            "name: a\nstages: [{notebook: rows, grid: {limit: 1}}]",
            "is wrong at grid.limit: Input should be a valid list, got 1",
        ),
        ("name: a\nstages: [{notebook: rows, grid: {limit: [1, 1]}}]", "the same parameters stand there twice"),
        (
            "name: a\nstages: [{notebook: rows, grid: {limit: [1]}, zip: {name: [a]}}]",
            "of grid, zip and list there is one",
        ),
        ("name: a\nstages: [{notebook: rows, grid: {limit: [1]}, parameters: {limit: 2}}]", "both fixed and varying"),
        (
            "name: a\nstages: [{notebook: rows, grid: {limit: [1, 2]}, parameters: {out: x}}]",
            "write to one `out`, 'x': put models into one list",
        ),
        (
            "name: a\nstages: [{notebook: 01_generate_texts, grid: {seed: [0, 1]}}]",
            "write to one `corpus`, 'sample': put models into one list",
        ),
    ],
)
@pytest.mark.fault("no code")
def test_a_file_that_breaks_a_rule_is_one_clear_sentence(folder, text, message, monkeypatch):
    monkeypatch.chdir(folder)
    assert message in check(folder, text)
    assert not (folder / "pwned").exists() and not (folder / "out").exists()


def test_the_example_of_the_documentation_passes_the_checks(tmp_path):
    text = file.__doc__
    (tmp_path / "x.yaml").write_text(text[text.index("name: demo") : text.index("Runs of one notebook")])
    assert [len(stage.runs) for stage in sweep.load(tmp_path / "x.yaml", tmp_path / "out").stages] == [1, 4, 2, 1]


def test_all_problems_come_in_one_error(folder):
    text = check(folder, "name: a\nstages:\n- {notebook: rows, parameters: {limt: 1}}\n- {notebook: nope}\n")
    assert "limt" in text and "nope" in text
    assert text.count("\n  - ") == 2


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


def test_code_version_changes_with_the_package(monkeypatch, tmp_path):
    monkeypatch.undo()
    (tmp_path / "selfeval").mkdir()
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    monkeypatch.setattr(runs, "DATA", tmp_path / "data")
    before = runs.code_version()
    (tmp_path / "selfeval" / "a.py").write_text("x = 1\n")
    between = runs.code_version()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "models.yaml").write_text("models: []\n")
    assert len({version["hash"] for version in (before, between, runs.code_version())}) == 3


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
    loaded = sweep.load(path, out)
    made = json.loads((loaded.stages[0].runs[1].folder / "manifest.json").read_text())
    assert made["status"] == "ok" and made["parameters"]["models"] == ["c", "d"]
    assert made["outputs"] == ["notebook.ipynb", "rows.csv"]
    assert made["counts"] == {
        "calls": 3,
        "stored": 1,
        "simulated": 0,
        "failed": 0,
        "tokens": 50,
        "cost": 0.5,
        "unpriced": 0,
    }
    assert made["attempt"] == 1 and made["started"] < made["ended"]
    assert made["packages"]["papermill"] and made["code"] == {"commit": "test", "hash": "test"}
    assert loaded.stages[1].runs[0].parameters["tables"] == [str(run.folder) for run in loaded.stages[0].runs]

    assert sweep.run_file(path, 2, out) == 0
    said = capsys.readouterr().out
    assert "rows  0 ok, 2 skipped, 0 failed" in said and "\n0 calls, 0 replies from the store" in said

    assert reasons(path, out) == ["", "", ""]
    (loaded.stages[0].runs[1].folder / "rows.csv").unlink()
    make_notebook(folder / "read.ipynb", "1 + 1")
    assert reasons(path, out) == ["", "its rows.csv is gone", "the notebook's code has changed"]
    (out / "corpus.jsonl").write_text("by hand")
    assert reasons(path, out)[0] == f"{out}/corpus.jsonl, which it wrote, has changed"
    monkeypatch.setattr(runs, "code_version", lambda: {"commit": "test", "hash": "other"})
    assert reasons(path, out)[0] == "the package or the data it reads have changed"


def test_a_failed_run_is_named_with_its_cause_and_stops_what_needs_it(folder, capsys):
    make_notebook(folder / "rows.ipynb", 'import os\nif name == "dead": os.kill(os.getpid(), 9)',
                  f'{REPORT}\nif name == "bad": raise ValueError("\\x1b[31mno such corpus")', SAVE)  # fmt: skip
    stages = [{"notebook": "rows", "grid": {"name": ["good", "bad", "dead"]}}]
    stages += [{"notebook": "read", "parameters": {"tables": "{rows}"}}]
    path, out = write(folder, *stages), folder / "out"
    old = out / "rows"
    assert sweep.run_file(path, 2, out) == 1
    said = capsys.readouterr().out
    assert "rows  1 ok, 2 failed" in said
    assert "ValueError: [31mno such corpus\n" in said and "DeadKernelError" in said
    assert "not started because rows/bad" in said and "run the same command again" in said
    assert not (out / "read").exists() and len([*old.iterdir()]) == 3

    make_notebook(folder / "rows.ipynb", "import pathlib", SAVE.replace("rows.csv", "new.csv"))
    stages = [{"notebook": "rows", "grid": {"name": ["good"]}}]
    [good] = old.glob("good_*")
    assert sweep.run_file(write(folder, *stages), 1, out) == 0
    assert (good / "new.csv").exists() and not (good / "rows.csv").exists(), "an older run's output stays"


def test_two_sweeps_do_not_share_a_folder(folder, monkeypatch):
    loaded = sweep.load(write(folder, {"notebook": "rows"}), folder / "out")
    loaded.folder.mkdir()
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr(execute.time, "monotonic", lambda: next(clock))
    with execute.lock(loaded.folder), pytest.raises(InputError, match="another sweep is at work"):
        sweep.run(loaded, 1, execute.Notebooks)


@pytest.mark.fault("hostile text")
def test_the_live_line_counts_calls_and_is_safe_to_print(folder):
    loaded = sweep.load(write(folder, {"notebook": "rows", "grid": {"limit": [1, 2]}}), folder / "out")
    run = loaded.runs[0]
    run.folder.mkdir(parents=True)
    run.status = "running"
    line = Line(loaded, 2, 5)
    counts = {"label": "bin\x1b[31m\nary", "done": 3, "total": 12, "calls": 2, "stored": 1, "failed": 1, "tokens": 9}
    (run.folder / "progress.json").write_text(json.dumps(counts | {"cost": 0.25}))
    text = line.text()
    assert text == "rows: 0/2 runs, bin [31m ary 3/12 · 0.2500 USD of 5 · 2 calls, 1 stored, 1 failed · 9 tokens"
    for broken in ('{"calls": "many", "done": null}', "[]", "\x00", '{"done":'):
        (run.folder / "progress.json").write_text(broken)
        assert line.text() == "rows: 0/2 runs · 0 calls, 0 stored, 0 failed"


def test_the_repositorys_own_sweep_files_pass_the_checks(tmp_path):
    [path] = (ROOT / "notebooks" / "sweeps").glob("*.yaml")
    assert {stage.name: len(stage.runs) for stage in sweep.load(path, tmp_path / "out").stages} == {
        "texts": 3, "asked": 2, "asked-human": 1, "asked-fleet": 1, "recognition": 3, "identity": 1,
        "fleet-identity": 1, "jury": 1, "existence": 1, "validation": 1, "paper": 1,
    }  # fmt: skip
