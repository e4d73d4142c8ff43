"""The committed notebooks: executed, with parameters that papermill sees, and compared by nbval."""

import re
import subprocess
import sys

import nbformat
import pytest
from papermill import inspect_notebook
from written_files import run_kernel

from selfeval import ROOT
from selfeval.sweep.execute import FINDING

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@by_name
def test_every_cell_was_executed_in_order_and_nothing_of_the_machine_that_did_it_is_kept(path):
    notebook, text = nbformat.read(path, as_version=4), path.read_text(encoding="utf-8")
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert notebook.metadata["language_info"] == {"name": "python"}
    assert str(ROOT) not in text and "PosixPath" not in text and '"iopub' not in text


@by_name
def test_papermill_sees_every_parameter_and_they_are_few(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    [parameters] = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    seen = inspect_notebook(str(path))
    assert [*seen] == re.findall(r"^(\w+): \w+ = ", parameters.source, re.M) and len(seen) <= 14
    assert all(each["help"] for each in seen.values())
    parts = re.findall(r"^    .*", parameters.source, re.M)  # of parameters that are dicts, a line each
    assert all("  # " in part for part in parts)


WITH_ANSWER = [path for path in NOTEBOOKS if path.stem != "09_paper_figures"]  # it draws what the others find


@pytest.mark.parametrize("path", WITH_ANSWER, ids=lambda path: path.stem)
def test_the_answer_stands_below_the_title_in_a_cell_that_reports_of_other_runs_leave_out(path):
    title, answer, *others = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    assert title.source.startswith("# ")
    assert answer.source.startswith("**Answer** (") and FINDING in answer.metadata.tags
    assert not [cell.id for cell in others if "**Answer**" in cell.source]
    assert not [cell.id for cell in (title, answer, *others) if "committed run" in cell.source], "say which data"


@by_name
def test_the_foot_leads_to_the_notebooks_before_and_behind(path):
    foot = nbformat.read(path, as_version=4).cells[-1]
    names = [each.stem for each in NOTEBOOKS]
    place = names.index(path.stem)
    around = {"back": names[max(place - 1, 0)], "next": names[min(place + 1, len(names) - 1)]}
    linked = {way: name for way, name in around.items() if name != path.stem}
    assert foot.cell_type == "markdown" and FINDING in foot.metadata.tags, "a report has no such pages"
    assert dict(re.findall(r"(\w+): \[\w+\]\((\w+)\.ipynb\)", foot.source)) == linked


def test_a_progress_bar_is_shown_for_each_round_of_questions():
    """As in JupyterLab: nbval executes the notebooks without bars."""
    code = "import selfeval as se\n_ = se.collect_predictions(se.generate_texts(['sim/good', 'sim/chance'], 2))"
    [cell] = run_kernel(code)
    kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
    assert kinds.count("application/vnd.jupyter.widget-view+json") == 2


LIBRARIES = {
    "selfeval",
    "pandas",
    "numpy",
    "scipy",
    "matplotlib",
    "seaborn",
    "IPython",
    "re",
    "difflib",
    "hashlib",
    "textwrap",
    "yaml",  # of captions
}


@by_name
def test_a_notebook_is_short_and_imports_little(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    code = "\n".join(cell.source for cell in cells)
    imported = set(re.findall(r"^(?:import|from) (\S+)", code, re.M))
    assert {name if "selfeval." in name else name.partition(".")[0] for name in imported} <= LIBRARIES
    pictures = sum("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert len(cells) <= 24 and pictures <= 14 and path.stat().st_size < 400_000


def test_nbval_names_the_cell_in_which_one_decimal_changed(tmp_path):
    shown = nbformat.v4.new_output("execute_result", {"text/plain": "0.124"}, execution_count=2)
    cells = [nbformat.v4.new_code_cell(source, execution_count=1) for source in ("x = 0.123", "x")]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": ""}})
    cells[1].outputs = [shown]
    nbformat.write(notebook, tmp_path / "changed.ipynb")
    options = ["--nbval", "--nbval-current-env", "--nbval-sanitize-with", str(ROOT / "tests" / "nbval.cfg")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "changed.ipynb"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 failed, 1 passed" in result.stdout and "::Cell 1 - " in result.stdout, result.stdout
