"""Notebooks and commands, run in the test's own process."""

import ast
import asyncio
import contextlib
import importlib
import io
import sys

import matplotlib
import matplotlib.pyplot
import nbformat
from click.testing import CliRunner
from IPython.display import display
from nbclient import NotebookClient

from selfeval import DATA, ROOT
from selfeval.cli import main


def run_notebook(stem, until=None, shown=None, **parameters):
    """Run the code cells of a notebook in this process, with other parameters; return what they printed.

    until: a pattern; the last statement that matches is the last that runs. shown: a function that makes a text of what
    stands at the end of a cell, which is then printed, too.
    """
    cells = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4).cells
    cells = [cell for cell in cells if cell.cell_type == "code"]
    if until:
        cells = cells[: 1 + max(number for number, cell in enumerate(cells) if until.search(cell.source))]
        cells[-1].source = cut_after(cells[-1].source, until)
    space, printed = {"__name__": stem, "display": display}, io.StringIO()
    if shown:
        space |= {"display": print, SHOW: lambda value: print(shown(value))}
    with asyncio.Runner() as runner, contextlib.redirect_stdout(printed), matplotlib.rc_context():
        for cell in cells:
            tree = with_end_shown(cell.source) if shown else cell.source
            code = compile(tree, stem, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waiting = eval(code, space)
            if asyncio.iscoroutine(waiting):
                runner.run(waiting)
            if "parameters" in cell.metadata.get("tags", []):
                set_parameters(space, parameters)
    matplotlib.pyplot.close("all")
    return printed.getvalue()


def cut_after(source, pattern):
    """Return the code of a cell up to the end of its last statement that matches."""
    statements = ast.parse(source).body
    last = [each for each in statements if pattern.search(ast.get_source_segment(source, each))][-1]
    return "".join(source.splitlines(keepends=True)[: last.end_lineno])


SHOW = "_show"  # the name of what prints the end of a cell


def with_end_shown(source):
    """Return the code of a cell with its last expression handed to `SHOW`."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        last.value = ast.Call(ast.Name(SHOW, ast.Load()), [last.value], [])
    return ast.fix_missing_locations(tree)


def set_parameters(space, parameters):
    """Set parameters of a notebook; those that stand together in a dictionary by their own names."""
    for name, value in parameters.items():
        groups = [group for group in space.values() if isinstance(group, dict) and name in group]
        assert name in space or groups, f"no parameter {name}"
        (space if name in space else groups[0])[name] = value


def run_kernel(*sources, folder=None):
    """Run cells in a kernel as Jupyter does, on past errors; return them with their outputs."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, allow_errors=True).execute(cwd=folder)
    return notebook.cells


def run_command(*arguments):
    """Run the `selfeval` command in this process; raise where it fails."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, f"selfeval {arguments}: {result.output} {result.exception}"
    return result.output


def stand_in(patch, folder):
    """Put a folder in the place of data/ for all that the package writes and reads in this process."""
    importlib.import_module("selfeval.api")  # what it imports reads data/ of its own
    for name, module in [*sys.modules.items()]:
        if name.split(".")[0] == "selfeval" and getattr(module, "DATA", None) == DATA:
            patch.setattr(module, "DATA", folder)
