"""What somebody types in the first hour (tries.md): it works, or a sentence says how."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from conftest import FULL

from selfeval import DATA, ROOT
from selfeval.errors import SelfevalError
from selfeval.providers.models import providers

TRY = re.compile(r"^### ([NW]\d+)\n.*?^```(python|bash)\n(.*?)^```$", re.M | re.S)
PAGE = Path(__file__).with_name("tries.md").read_text("utf-8")
TRIES = {name: (kind, code) for name, kind, code in TRY.findall(PAGE)}
OWN = shutil.ignore_patterns("runs", "store", "recorded", "results", "published", "sample", "weights", "report")
SAID = {  # a try that does not do what was meant: the sentence that helps; W12 and W14 print theirs
    "N6": "'model'", "N7": "'model'",  # frames are ordinary ones: a column that is not there is pandas' own KeyError
    "N10": "did you mean 'converse'?",
    "N14": "set `allow_strangers`", "N16": "'module' object is not callable",  # se.list_models() is the verb
    "N24": "did you mean 'judge'?", "N32": "selfeval sweep has --workers, --out, --set",
    "W1": "did you mean 'sim/good'?", "W2": "did you mean 'openai/gpt-4.1'?", "W3": "set OPENROUTER_API_KEY",
    "W4": "set OPENROUTER_API_KEY", "W5": "did you mean 'prompts'?", "W6": "there is no `prompt`",
    "W7": "my.csv, record 2: `text` is empty; fill it in", "W8": "did you mean 'my_texts.csv'?",
    "W9": "my.csv cannot be read", "W10": "dup.csv, record 2: the text 'Rain falls.' has the same `text_id`",
    "W11": "-1 is not in the range", "W12": "`prompts` must be a whole number of at least 1, got 0",
    "W13": "must be one of advantage, claimed, predictions, roc", "W14": "with `collect_predictions` first",
    "W15": "no parameter 'model'; did you mean 'models'?", "W16": "Did you mean 'recognise'?",
    "W17": "written as pdf, png, svg, got 'mine.docx'", "W18": "the function must return a text",
}  # fmt: skip


def run_python(code):
    """Run a try as a program that was typed; return what ended it."""
    try:
        exec(compile(code, "try.py", "exec"), {"__name__": "__main__"})
    except (SelfevalError, AttributeError, KeyError, TypeError) as error:
        return f"{error}"
    finally:
        plt.close("all")
    return ""


def run_shell(code, folder):
    """Run a try in a shell, with this Python's commands and without keys; return what it said and how it ended."""
    keys = {key for provider in providers().values() for key in provider.keys}
    env = {name: value for name, value in os.environ.items() if name not in keys}
    shutil.copytree(DATA, folder / "data", ignore=OWN)  # results of notebooks lie there
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env |= {"REPO": str(ROOT), "PATH": path, "SELFEVAL_DATA": str(folder / "data")}
    done = subprocess.run(["bash", "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=280)
    return done.stdout + done.stderr, done.returncode


def test_the_54_tries_are_there():
    assert len(TRIES) == 54 and sum(name.startswith("N") for name in TRIES) == 36
    assert sum(name.startswith("N") for name in SAID) <= 36 - 29


@pytest.mark.parametrize("name", [name for name, (kind, _) in TRIES.items() if kind == "python" and name != "N36"])
def test_a_line_of_python_works_or_a_sentence_says_how(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for key in {key for provider in providers().values() for key in provider.keys}:
        monkeypatch.delenv(key, raising=False)
    ended = run_python(TRIES[name][1])
    assert SAID.get(name, "") in ended + capsys.readouterr().out
    assert bool(ended) == (name in SAID and name != "W12"), ended


SHELL = [name for name, (kind, _) in TRIES.items() if kind == "bash"] + ["N36"]
QUICK = ("N25", "N31", "W2", "W7", "W11", "W15", "W16")  # without notebooks, or before they begin


@pytest.mark.parametrize("name", SHELL if FULL else QUICK)
def test_a_command_works_or_a_sentence_says_how(name, tmp_path):
    kind, code = TRIES[name]
    said, status = run_shell(code if kind == "bash" else f"python - <<'END'\n{code}END\n", tmp_path)
    assert SAID.get(name, "") in said and ("Traceback" not in said or "papermill.exceptions" in said), said
    assert status == 0 or name in {*SAID, "N25", "N33", "N34"}, said  # the help alone, and `ls` of what is below data/
    if name in ("N33", "N34"):
        assert [*(tmp_path / "data").rglob("*my-corpus*")] and "Exception" not in said
