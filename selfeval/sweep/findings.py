"""What the committed notebooks found, which runs with other parameters leave out."""

import ast
import contextlib
from collections.abc import Mapping

from selfeval.paths import committed_runs, own_parameters

# tag of a cell that says what a committed notebook found
FINDING = "committed"


def without_findings(notebook, given: Mapping | None = None):
    """Return a notebook without what the committed one found, unless it has its parameters.

    notebook: of nbformat. given: the parameters of a run, where the notebook does not hold them
    itself.
    """
    values = given_to(notebook) | dict(given or {})
    for committed in committed_runs().values():
        parameters = committed["parameters"]
        if parameters.keys() <= values.keys() and not own_parameters(parameters, values):
            return notebook
    kept = [cell for cell in notebook.cells if FINDING not in cell.metadata.get("tags", ())]
    notebook.cells = kept
    return notebook


def given_to(notebook) -> dict:
    """Return the values of a notebook's parameters: those in its cell, then papermill's."""
    values = {}
    for tag in ("parameters", "injected-parameters"):
        for cell in notebook.cells:
            if tag in cell.metadata.get("tags", ()):
                values |= _plain_values(cell.source)
    return values


def _plain_values(code: str) -> dict:
    """Return {name: value} of lines such as `name = value` and `name: type = value`."""
    values = {}
    with contextlib.suppress(SyntaxError):
        for statement in ast.parse(code).body:
            target = None
            if isinstance(statement, ast.Assign):
                target = statement.targets[0]
            elif isinstance(statement, ast.AnnAssign) and statement.value:
                target = statement.target
            if not isinstance(target, ast.Name):
                continue
            value = statement.value  # type: ignore[attr-defined]
            try:
                values[target.id] = ast.literal_eval(value)
            except ValueError:  # it is computed
                values[target.id] = ast.unparse(value)
    return values
