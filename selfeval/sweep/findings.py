"""What the committed notebooks found, which runs with other parameters leave out."""

import ast
import contextlib
from collections.abc import Mapping

from selfeval.paths import committed_runs, own_parameters

FINDING = "committed"  # tag of a cell that says what a committed notebook found


def without_findings(notebook, given: Mapping | None = None):
    """Return a notebook without what the committed one found, unless its parameters are those of the committed one.

    notebook: of nbformat. given: the parameters of a run, where the notebook does not hold them itself.
    """
    values = given_to(notebook) | dict(given or {})
    for known in committed_runs().values():
        if known["parameters"].keys() <= values.keys() and not own_parameters(
            known["parameters"], values
        ):
            return notebook
    notebook.cells = [
        cell for cell in notebook.cells if FINDING not in cell.metadata.get("tags", ())
    ]
    return notebook


def given_to(notebook) -> dict:
    """Return the values of a notebook's parameters: those that stand in its cell, then those that papermill gave it."""
    values = {}
    for tag in ("parameters", "injected-parameters"):
        for cell in notebook.cells:
            if tag in cell.metadata.get("tags", ()):
                values |= _plain_values(cell.source)
    return values


def _plain_values(code: str) -> dict:
    """Return {name: value} of the lines `name = value` and `name: type = value` with a plain value."""
    found = {}
    with contextlib.suppress(SyntaxError):
        for line in ast.parse(code).body:
            names = (
                line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
            )
            if not isinstance(names[0], ast.Name):
                continue
            try:
                found[names[0].id] = ast.literal_eval(line.value)
            except ValueError:  # it is computed
                found[names[0].id] = ast.unparse(line.value)
    return found
