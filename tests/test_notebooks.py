"""The committed notebooks: executed, with parameters that papermill sees."""

import re

import nbformat
import pytest
from nbclient import NotebookClient
from papermill import inspect_notebook

from selfeval import ROOT
from selfeval.sweep.kernels import KernelManager

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PARAMETERS = {  # names that papers and scripts rely on
    "01_generate_texts": "models prompts samples words temperature limit corpus seed concurrency",
    "02_collect_predictions": "evaluators corpus tasks answer told labels hints show_prompt prevalence tell_prevalence "
    "score question control paraphraser temperature repeats limit seed concurrency out",
    "03_self_recognition": "predictions n_resamples level seed out",
    "04_identity": "models suite arms repeats turns scoring judge limit seed concurrency out",
    "05_role_play": "agent interrogator strategy persona turns n_conversations transcripts replay seed concurrency out",
    "06_jury": "conversations limit max_turns verdicts jurors personas arms rounds scope humans seed concurrency out",
    "07_existence": "evaluators targets names answer_types templates reasoning constrained iterations seed out",
    "08_validation": "folder from_prompts promise out",
    "09_paper_figures": "results only out command",
}
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@by_name
def test_every_cell_was_executed_in_order_and_without_error(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]


@by_name
def test_papermill_sees_every_parameter(path):
    [parameters] = [cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", [])]
    written = re.findall(r"^(\w+): .* = ", parameters.source, re.M)
    seen = inspect_notebook(str(path))
    assert list(seen) == written and len(written) == len(parameters.source.splitlines())
    assert all(seen[name]["help"] for name in written)
    assert set(PARAMETERS.get(path.stem, "").split()) <= set(written)


@by_name
def test_nothing_of_the_machine_that_ran_it_is_kept(path):
    notebook = nbformat.read(path, as_version=4)
    assert notebook.metadata["kernelspec"]["name"] == "python3" and notebook.metadata["language_info"] == {
        "name": "python"
    }
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text and "PosixPath" not in text and '"iopub' not in text


def test_the_tour_shows_a_progress_bar_for_each_round_of_questions_and_says_what_is_committed(monkeypatch):
    """As in JupyterLab: nbval executes it without bars."""
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    tour = nbformat.read(NOTEBOOKS[0], as_version=4)
    NotebookClient(
        tour, kernel_manager_class=KernelManager, resources={"metadata": {"path": NOTEBOOKS[0].parent}}
    ).execute()
    cells = [cell for cell in tour.cells if cell.cell_type == "code"]
    kinds = [kind for cell in cells for output in cell.outputs for kind in output.get("data", {})]
    assert kinds.count("text/html") >= 3 and kinds.count("image/png") == 1
    assert kinds.count("application/vnd.jupyter.widget-view+json") == 5
    assert [printed(cell) for cell in cells] == [printed(cell) for cell in code_cells(NOTEBOOKS[0])]


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")
