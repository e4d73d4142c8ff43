"""Committed samples are replaced by nobody who changes a parameter, and nbval sees a decimal that changed."""

import ast
import json
import re
import subprocess
import sys

import nbformat
import pytest
import yaml
from conftest import FULL, QUICK
from papermill import inspect_notebook
from sweep_files import make_notebook, write
from written_files import run_notebook

from selfeval import DATA, ROOT, sweep
from selfeval.errors import InputError

FREE = {"concurrency"}  # changes no record
WRITING = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path.stem != "00_tour"}
TARGET = {stem: "corpus" if stem == "01_generate_texts" else "out" for stem in WRITING}
each = pytest.mark.parametrize("stem", WRITING)


def defaults(stem):
    return {name: ast.literal_eval(p["default"]) for name, p in inspect_notebook(str(WRITING[stem])).items()}


def other(value):
    """Return a value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, dict):
        return value | {"x": "x"}
    return {str: f"{value}x", list: [*value, "x"]}[type(value)] if isinstance(value, str | list) else value + 1


def first_cell(stem):
    """Return the first code cell after the parameters."""
    return [cell.source for cell in nbformat.read(WRITING[stem], as_version=4).cells if cell.cell_type == "code"][1]


def line_of(stem):
    """Return a function that executes the line alone, on the defaults and what is changed: nothing is written."""
    [line] = [line for line in first_cell(stem).splitlines() if line.startswith("keep_samples(")]

    def run(**changed):
        exec(f"from selfeval.files import keep_samples\n{line}", defaults(stem) | changed)

    return run


def committed():
    return {
        path: path.stat().st_mtime_ns for path in DATA.rglob("*") if {"sample", "sample-untold", "demo"} & {*path.parts}
    }


@each
def test_the_defaults_on_file_are_those_of_the_parameters_cell(stem):
    """A parameter that is new in a notebook belongs into notebooks/defaults.yaml."""
    on_file = yaml.safe_load((ROOT / "notebooks" / "defaults.yaml").read_text("utf-8"))
    assert on_file[stem] == {name: value for name, value in defaults(stem).items() if name not in FREE}
    assert list(on_file) == list(WRITING)


@each
def test_every_parameter_that_changes_records_protects_the_sample(stem, monkeypatch):
    """Nothing but imports stands before the line, so nothing is asked, read or written before it."""
    statements = ast.parse(first_cell(stem)).body
    code = next(s for s in statements if not isinstance(s, ast.Import | ast.ImportFrom))
    assert ast.unparse(code) == f"keep_samples('{stem}', globals())"
    target, seen, run = TARGET[stem], [], line_of(stem)
    run()
    run(**{name: other(value) for name, value in defaults(stem).items() if name in FREE})
    for name, value in defaults(stem).items():
        if name in FREE | {target}:
            continue
        with pytest.raises(InputError) as caught:
            run(**{name: other(value)})
        seen.append(name)
        assert f"set `{target}` to a name of your own" in str(caught.value) and f"(`{name}` differs)" in str(
            caught.value
        )
        run(**{name: other(value), target: "of-my-own"})
        run(**{name: other(value), target: f"/tmp/sample/{stem}"})
        monkeypatch.setenv("SELFEVAL_REPLACE_SAMPLES", "1")
        run(**{name: other(value)})
        monkeypatch.delenv("SELFEVAL_REPLACE_SAMPLES")
    assert len(seen) >= 3


@pytest.mark.parametrize("place", [
    "predictions/sample-untold", "predictions/sample-untold/mine", "results/demo/recognition", "predictions/demo",
    "../data/predictions/sample", str(DATA / "predictions" / "sample-untold"), "./results/x/../sample",
])  # fmt: skip
def test_another_committed_place_is_refused_in_each_spelling(place, tmp_path):
    run, link = line_of("02_collect_predictions"), tmp_path / "link"
    link.symlink_to(DATA / place)
    for target in (place, str(link)):
        with pytest.raises(InputError, match=r"`out` is .* made with other parameters \(`out` differs\): set `out` to"):
            run(out=target)
    run(out="../elsewhere/sample")
    run(out=str(tmp_path / "sample"))
    run(out="predictions/sample-of-mine")


def test_a_parameters_cell_that_was_edited_stops_before_the_first_call(tmp_path, server):
    """As in JupyterLab: the edited value is the only one in the notebook, and no injected cell tells."""
    asked, before = server(), committed()
    text = WRITING["01_generate_texts"].read_text("utf-8")
    edited = tmp_path / "01_generate_texts.ipynb"
    edited.write_text(text.replace("limit: int = 10 ", "limit: int = 3 "))
    sources = [cell.source for cell in nbformat.read(edited, as_version=4).cells if cell.cell_type == "code"]
    assert "limit: int = 3 " in sources[0]
    space = {}
    with pytest.raises(InputError) as caught:
        for source in sources:
            exec(source, space)
    assert str(caught.value) == (
        "`corpus` is 'sample', which holds a committed sample made with other parameters (`limit` differs): "
        "set `corpus` to a name of your own."
    )
    assert "authors" not in space and not asked.ledger and committed() == before


def test_a_target_of_ones_own_is_written(tmp_path):
    run_notebook("01_generate_texts", models=["sim/good", "sim/first"], limit=2, corpus=str(tmp_path / "demo" / "mine"))
    assert len((tmp_path / "demo" / "mine" / "texts.jsonl").read_text("utf-8").splitlines()) == 4


def test_the_demo_sweep_may_and_another_one_says_so_first(tmp_path):
    parameters = "\n".join(f"{name} = {value!r}" for name, value in defaults("07_existence").items())
    guarded = 'from selfeval.files import keep_samples\nkeep_samples("07_existence", globals())'
    write_row = 'import pathlib\npathlib.Path(mark).write_text("ran")'
    make_notebook(
        tmp_path / "guarded.ipynb", guarded, write_row, parameters=f'{parameters}\nmark = "{tmp_path / "ran"}"\n'
    )
    stage = {"notebook": "guarded", "parameters": {"out": "results/demo/existence", "names": 4}}
    file = write(tmp_path, stage)
    assert sweep.run_file(file, 1, tmp_path / "refused", "forked") == 1 and not (tmp_path / "ran").exists()
    [said] = (tmp_path / "refused").rglob("log.txt")
    assert "(`names`, `out` differ): set `out` to a name of your own." in said.read_text("utf-8")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"replaces_samples": True}))
    assert sweep.run_file(file, 1, tmp_path / "may", "forked") == 0 and (tmp_path / "ran").exists()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"replaces_samples": "yes"}))
    with pytest.raises(InputError, match='`replaces_samples` is "yes", but must be bool'):
        sweep.load(file)
    demo = yaml.safe_load((ROOT / "notebooks" / "sweeps" / "demo.yaml").read_text("utf-8"))
    assert demo["replaces_samples"] is True


def test_recording_may_replace_the_samples():
    """The answers of evaluators that are not told lie beside the sample, made with `told: False`."""
    made = subprocess.run(
        ["make", "--dry-run", "--assume-old=.venv/.ready", "notebooks", "record-part", "PART=recognition"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    lines = [line for line in made.replace("\\\n", " ").splitlines() if "papermill" in line or "--output-dir" in line]
    assert len(lines) == 3 and all("SELFEVAL_REPLACE_SAMPLES=1" in line for line in lines)
    refreshed = [line for line in made.replace("\\\n", " ").splitlines() if "--inplace" in line and line not in lines]
    assert len(refreshed) == 1 and "REPLACE_SAMPLES" not in refreshed[0]  # a changed default is refused there


# nbval ----------------------------------------------------------------------------------------------------------------


FORMS = [("07_existence", "text/plain"), *[("05_role_play", "text/html")] * FULL]


@pytest.mark.parametrize(("stem", "form"), FORMS)
def test_nbval_names_the_cell_in_which_one_decimal_changed(stem, form, tmp_path, monkeypatch):
    """All other cells pass as committed. The replies are replayed, and the records go to a folder of the test's own."""
    notebook = nbformat.read(WRITING[stem], as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    cells[0].source = re.sub(r'^(out: str = ")[^"]*', rf"\g<1>{tmp_path / 'out'}", cells[0].source, flags=re.M)
    decimal = re.compile(r"(\d\.\d*)(\d)")
    found = [
        (number, output.data)
        for number, cell in enumerate(cells)
        for output in cell.outputs
        if output.output_type == "execute_result" and decimal.search(output.data.get(form, ""))
    ]
    number, data = found[-1]
    data[form] = decimal.sub(lambda match: match[1] + str((int(match[2]) + 1) % 10), data[form], count=1)
    changed = tmp_path / f"{stem}.ipynb"
    nbformat.write(notebook, changed)
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    options = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", str(ROOT / "tests" / "nbval.cfg")]
    code = QUICK + "import pytest; sys.exit(pytest.main())"
    command = [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *options, str(changed)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"1 failed, {len(cells) - 1} passed" in result.stdout, result.stdout[-3000:]
    assert re.findall(r"^FAILED .*::Cell (\d+)", result.stdout, re.M) == [str(number)] and form in result.stdout
