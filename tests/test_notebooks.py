"""The committed notebooks: executed, with parameters that papermill sees."""

import re

import nbformat
import pytest
from nbclient import NotebookClient
from papermill import inspect_notebook

from selfeval import ROOT
from selfeval.sweep.kernels import KernelManager

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
def test_papermill_sees_every_parameter(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    [parameters] = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    seen = inspect_notebook(str(path))
    assert [*seen] == re.findall(r"^(\w+): .* = ", parameters.source, re.M)
    assert len(seen) == len(parameters.source.splitlines()) and all(each["help"] for each in seen.values())


def test_the_tour_shows_a_progress_bar_for_each_round_of_questions(monkeypatch):
    """As in JupyterLab: nbval executes it without bars."""
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    tour, folder = nbformat.read(NOTEBOOKS[0], as_version=4), {"metadata": {"path": ROOT / "notebooks"}}
    NotebookClient(tour, kernel_manager_class=KernelManager, resources=folder).execute()
    kinds = [kind for cell in code_cells(tour) for output in cell.outputs for kind in output.get("data", {})]
    assert kinds.count("text/html") >= 3 and kinds.count("image/png") == 1
    assert kinds.count("application/vnd.jupyter.widget-view+json") == 5


LIBRARIES = {"selfeval", "pandas", "numpy", "scipy", "seaborn", "matplotlib", "IPython.display"}


@by_name
def test_a_notebook_uses_the_face_and_nothing_deeper_and_is_short(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    code = "\n".join(cell.source for cell in cells)
    assert set(re.findall(r"^(?:import|from) (\S+)", code, re.M)) <= LIBRARIES
    assert not re.search(r"\bse\.\w+\.\w+\.\w", code) and not re.search(
        r"\bse\.(?!stats|figures|models)\w+\.\w+\(", code
    )
    pictures = sum("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert len(cells) <= 20 and pictures <= 8 and path.stat().st_size < 300_000
