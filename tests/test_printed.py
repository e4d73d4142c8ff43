"""Every command line that README and docs print, typed as it stands there: ids, files, options and shell syntax.

Each page has a folder of its own with the files that it speaks of, and a registry (`SELFEVAL_MODELS`) in which the
providers are a server on this machine; nothing of a line is replaced. What asks before it buys is answered "y".
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from conftest import KEY
from fake_server import default_reply
from sweep_files import reply
from test_cli import selfeval
from test_pages import PAGES, README, THEIRS, blocks, commands

from selfeval import DATA, ROOT

A_NAME = "it names the command in a sentence"
A_FILE = "FILE and ID stand for the reader's own"
LEFT_OUT = {
    "selfeval doctor": "it looks at this machine (test_cli.py)",
    "selfeval sweep notebooks/sweeps/demo.yaml --scheduler tcp://10.0.0.1:8786": "needs a scheduler (test_cluster.py)",
    "selfeval sweep curve.yaml": "test_pooled.py runs it",
    "selfeval sweep mine.yaml --dry-run": "the next line of the page runs all that it would count",
    "selfeval store export FILE": A_FILE,
    "selfeval store import FILE": A_FILE,
    "selfeval store forget-batch ID": A_FILE,
    "selfeval recognise --models gguf:/models/my-model.gguf,local/smollm2-135m": "the file is the reader's own",
    'papermill notebooks/07_existence.ipynb "out/$model.ipynb" -p models "sim/existence-$model" -p out "runs/$model"': (
        "it stands in a loop (test_sweep.py)"
    ),
    "selfeval recognise": A_NAME,
    "selfeval jury": A_NAME,
    "selfeval compare": A_NAME,
}
DOCS = [page for page in PAGES if page.parent.name == "docs"]


def lines_of(page):
    """Return what a page has one type, once each, without what is left out."""
    printed = dict.fromkeys(line for line in commands(page) if line.startswith(("selfeval ", "papermill ")))
    return [line for line in printed if line not in LEFT_OUT]


ONE_BY_ONE = [[line] for line in lines_of(README)]  # they do not need each other
IN_ORDER = [lines_of(page) for page in DOCS if lines_of(page)]  # a later line reads what an earlier one wrote


@pytest.fixture
def folder(tmp_path, server):
    """A folder with the files that the pages name, and its environment: providers on loopback, data/ of its own."""
    for given in DATA.rglob("*"):  # read as they are; what is written lies beside them
        place = given.relative_to(DATA)
        if given.is_file() and place.parts[0] not in ("runs", "store", "report"):
            (tmp_path / "data" / place).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "data" / place).symlink_to(given)
    for given in (*THEIRS.iterdir(), ROOT / "notebooks"):
        (tmp_path / given.name).symlink_to(given)
    authors = ("GPT-4.1", "Claude Sonnet 4")
    rows = [(author, prompt, f"{author} on {prompt}") for author in authors for prompt in ("rain", "snow")]
    pd.DataFrame(rows, columns=["author", "prompt", "text"]).to_csv(tmp_path / "my.csv", index=False)
    for page in DOCS:
        for block in blocks(page, "yaml"):
            if name := re.match(r"name: (\w+)", block):
                (tmp_path / f"{name[1]}.yaml").write_text(block, encoding="utf-8")

    def says(body):  # a name where nothing else is asked for, so that questions about identity are answered
        said = reply(body)
        return "I'm GPT-4.1." if said.endswith(default_reply(body)) and "Write about" not in str(body) else said

    fake = server(reply=says)
    ours = yaml.safe_load((DATA / "models.yaml").read_text(encoding="utf-8"))["providers"]
    led = {}
    for name in ("openrouter", "openai", "anthropic", "local"):
        led[name] = {field: value for field, value in ours[name].items() if field not in ("base_url_env", "embedded")}
        led[name]["base_url"] = fake.url
    (tmp_path / "providers.yaml").write_text(json.dumps({"providers": led}))
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": programs, "PYTHONPATH": str(ROOT), "SELFEVAL_DATA": str(tmp_path / "data")}
    environment |= {"SELFEVAL_MODELS": str(tmp_path / "providers.yaml"), "SELFEVAL_STORE": str(tmp_path / "s.sqlite")}
    environment |= {"OPENROUTER_API_KEY": KEY, "TQDM_DISABLE": "1", "COLUMNS": "120"}
    return tmp_path, environment, fake


@pytest.mark.parametrize("lines", [*ONE_BY_ONE, *IN_ORDER], ids=lambda lines: re.sub(r"\W+", "-", lines[0])[:40])
def test_lines_that_a_page_prints_run_as_they_stand(lines, folder):
    where, environment, fake = folder
    for line in lines:
        how = {"cwd": where, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        typed = subprocess.run(line, shell=True, input="y\n", text=True, **how)
        said = typed.stdout
        assert typed.returncode == 0 and "Traceback" not in said, f"{line}\n{said[-3000:]}"
        if "Make " in said:  # the calls and their price stand before the question
            shown = "page: " if " profile " in line else "report: "
            assert fake.ledger and shown in said and "There is no" not in said, f"{line}\n{said[-3000:]}"
            assert "price unknown" not in said and " USD for replies of typical length" in said


def test_what_is_left_out_is_on_a_page():
    printed = {line for page in (README, *DOCS) for line in commands(page)}
    assert LEFT_OUT.keys() <= printed


def test_a_dry_run_of_the_readmes_jury_ends_well(folder, monkeypatch):
    """It alone has three jurors, whose means must not depend on the order of their scores."""
    where, environment, fake = folder
    monkeypatch.chdir(where)
    for name in ("SELFEVAL_MODELS", "SELFEVAL_STORE", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, environment[name])
    [line] = [line for line in lines_of(README) if line.startswith("selfeval jury")]
    dry = selfeval(*shlex.split(line)[1:], "--dry-run")
    assert dry.exit_code == 0 and not fake.ledger, dry.output
