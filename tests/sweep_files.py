"""Sweep files and tiny notebooks for the tests of sweeps."""

import json

import nbformat
import pytest
from fake_server import default_reply, instance

from selfeval import sweep
from selfeval.errors import InputError

PARAMETERS = """models: list = ["sim/perfect"]  # one id or several
limit: int = 0
temperature: float = 0.7
name: str = "x"
tables: list = []
seed: int = 7
out: str = ""
"""
REPORT = """import json, os, pathlib
pathlib.Path(os.environ["SELFEVAL_PROGRESS"]).write_text(json.dumps(
    dict(label="a", done=4, total=4, calls=3, stored=1, failed=0, tokens=50, cost=0.5)))"""
SAVE = 'pathlib.Path(out, "rows.csv").write_text(str(models))'
CLIENT = """from selfeval.providers.client import Client
from selfeval.providers.request import Request
from selfeval.providers.models import get"""
READ = 'import pathlib\nassert all(pathlib.Path(t, "rows.csv").exists() for t in tables)'


def make_notebook(path, *code, parameters=PARAMETERS):
    cells = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    cells += [nbformat.v4.new_code_cell(source) for source in code]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def keep_parameters(folder, **parameters):
    """Write what papermill notes of a run with these parameters into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    executed = {"cells": [], "metadata": {"papermill": {"parameters": parameters}}}
    (folder / "notebook.ipynb").write_text(json.dumps(executed))


def write(folder, *stages, name="demo"):
    path = folder / "sweep.yaml"
    path.write_text(json.dumps({"name": name, "stages": stages}))
    return path


def check(folder, text):
    """Return the InputError's text for a sweep file of this text."""
    path = folder / "sweep.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        sweep.load(path, folder / "out")
    path.unlink()  # it may hold what looks like a key
    return str(caught.value)


def reply(body):
    """Return what a model says to a request, another text for each model."""
    form = (body.get("response_format") or {}).get("json_schema")
    return json.dumps(instance(form["schema"])) if form else f"{body['model']} {default_reply(body)}"
