"""Committed samples are replaced by nobody who changes a parameter, and nbval sees a decimal that changed."""

import ast
import json
import re
import subprocess
import sys

import nbformat
import pytest
import yaml
from conftest import QUICK
from papermill import inspect_notebook
from sweep_files import make_notebook, write
from written_files import run_notebook

from selfeval import DATA, ROOT, sweep
from selfeval.errors import InputError

FREE = {"concurrency"}  # changes no record
WRITING = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path.stem != "00_tour"}


def defaults(stem):
    return {name: ast.literal_eval(p["default"]) for name, p in inspect_notebook(str(WRITING[stem])).items()}


def first_cell(stem):
    """Return the first code cell after the parameters."""
    return [cell.source for cell in nbformat.read(WRITING[stem], as_version=4).cells if cell.cell_type == "code"][1]


def keep_samples(stem, **changed):
    """Execute the line that protects the sample, alone, on the defaults and what is changed: nothing is written."""
    line = f"import selfeval as se\nse.keep_samples('{stem}', globals())"
    exec(line, defaults(stem) | changed)


@pytest.mark.parametrize("stem", WRITING)
def test_every_parameter_that_changes_records_protects_the_sample(stem, monkeypatch):
    """Nothing but imports stands before the line, so nothing is asked, read or written before it."""
    on_file = yaml.safe_load((ROOT / "notebooks" / "defaults.yaml").read_text("utf-8"))
    known = {name: value for name, value in defaults(stem).items() if name not in FREE}
    assert on_file[stem] == known and list(on_file) == list(WRITING)  # a new parameter belongs there
    statements = ast.parse(first_cell(stem)).body
    code = next(s for s in statements if not isinstance(s, ast.Import | ast.ImportFrom))
    assert ast.unparse(code) in [f"{front}keep_samples('{stem}', globals())" for front in ("", "se.")]
    target = "corpus" if stem == "01_generate_texts" else "out"
    keep_samples(stem, concurrency=99)
    assert len(known) > 3
    for name in known.keys() - {target}:
        with pytest.raises(InputError, match=rf"\(`{name}` differs\): set `{target}` to a name of your own"):
            keep_samples(stem, **{name: ["another"]})
        for own in ("of-my-own", f"/tmp/sample/{stem}"):
            keep_samples(stem, **{name: ["another"], target: own})
    monkeypatch.setenv("SELFEVAL_REPLACE_SAMPLES", "1")
    keep_samples(stem, **{name: ["another"]})


PLACES = [
    "predictions/sample-untold/mine",
    "results/demo/recognition",
    "./results/x/../sample",
    str(DATA / "results/demo"),
]


@pytest.mark.parametrize("place", PLACES)
def test_another_committed_place_is_refused_in_each_spelling(place, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(DATA / place)
    for target in (place, str(link)):
        with pytest.raises(InputError, match=r"`out` is .* made with other parameters \(`out` differs\): set `out` to"):
            keep_samples("02_collect_predictions", out=target)
    for own in ("../elsewhere/sample", str(tmp_path / "sample"), "predictions/sample-of-mine"):
        keep_samples("02_collect_predictions", out=own)
        keep_samples("02_collect_predictions", out="runs/demo/answers")


def test_a_target_of_ones_own_is_written(tmp_path):
    run_notebook("01_generate_texts", models=["sim/good", "sim/first"], limit=2, corpus=str(tmp_path / "demo" / "mine"))
    assert len((tmp_path / "demo" / "mine" / "texts.jsonl").read_text("utf-8").splitlines()) == 4


def test_the_demo_sweep_may_and_another_one_says_so_first(tmp_path):
    parameters = "\n".join(f"{name} = {value!r}" for name, value in defaults("07_existence").items())
    guarded = 'from selfeval.files import keep_samples\nkeep_samples("07_existence", globals())'
    write_row = 'import pathlib\npathlib.Path(mark).write_text("ran")'
    parameters += f'\nmark = "{tmp_path / "ran"}"\n'
    make_notebook(tmp_path / "guarded.ipynb", guarded, write_row, parameters=parameters)
    file = write(tmp_path, {"notebook": "guarded", "parameters": {"out": "results/demo/existence", "names": 4}})
    assert sweep.run_file(file, 1, tmp_path / "refused", "forked") == 1 and not (tmp_path / "ran").exists()
    [said] = (tmp_path / "refused").rglob("log.txt")
    assert "(`names`, `out` differ): set `out` to a name of your own." in said.read_text("utf-8")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"replaces_samples": True}))
    assert sweep.run_file(file, 1, tmp_path / "may", "forked") == 0 and (tmp_path / "ran").exists()
    demo = yaml.safe_load((ROOT / "notebooks" / "sweeps" / "demo.yaml").read_text("utf-8"))
    assert demo["replaces_samples"] is True


def test_recording_may_replace_the_samples():
    command = ["make", "--dry-run", "--assume-old=.venv/.ready", "notebooks", "record-part", "PART=recognition"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = made.replace("\\\n", " ").splitlines()
    recording = [line for line in lines if "papermill" in line or "--output-dir" in line]
    assert len(recording) == 3 and all("SELFEVAL_REPLACE_SAMPLES=1" in line for line in recording)
    [refreshed] = [line for line in lines if "--inplace" in line and line not in recording]
    assert "REPLACE_SAMPLES" not in refreshed  # a changed default is refused there


def test_nbval_names_the_cell_in_which_one_decimal_changed(tmp_path, monkeypatch):
    """All other cells pass as committed. The replies are replayed, and the records go to a folder of the test's own."""
    notebook = nbformat.read(WRITING["07_existence"], as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    cells[0].source = re.sub(r'^(out: str = ")[^"]*', rf"\g<1>{tmp_path / 'out'}", cells[0].source, flags=re.M)
    decimal, form = re.compile(r"(\d\.\d*)(\d)"), "text/plain"
    found = [(number, output.data) for number, cell in enumerate(cells) for output in cell.outputs
             if output.output_type == "execute_result" and decimal.search(output.data[form])]  # fmt: skip
    number, data = found[-1]
    data[form] = decimal.sub(lambda match: match[1] + str((int(match[2]) + 1) % 10), data[form], count=1)
    changed = tmp_path / "changed.ipynb"
    nbformat.write(notebook, changed)
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    options = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", str(ROOT / "tests" / "nbval.cfg")]
    code = QUICK + "import pytest; sys.exit(pytest.main())"
    command = [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *options, str(changed)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"1 failed, {len(cells) - 1} passed" in result.stdout, result.stdout[-3000:]
    assert re.findall(r"^FAILED .*::Cell (\d+)", result.stdout, re.M) == [str(number)] and form in result.stdout
