"""The `selfeval` command: what it prints, and one sentence with exit status 1 for what is wrong."""

import contextlib
import json
import sqlite3
import sys

import pytest
from click.testing import CliRunner

from selfeval import ROOT, cli
from selfeval.cli.running import named_study
from selfeval.errors import InputError
from selfeval.providers import embedded
from selfeval.providers.request import canonical, key_of


def selfeval(*arguments, typed=None):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments], input=typed)


def test_models_lists_the_registry_and_says_which_key_is_missing():
    lines = selfeval("models").output.splitlines()
    [line] = [line for line in lines if line.startswith("openai/gpt-4.1 ")]
    assert line.endswith("set OPENROUTER_API_KEY") and any(line.startswith("sim/perfect") for line in lines)


def test_statistics_show_no_number_where_there_is_none(tmp_path, own_store):
    rows = []
    for model, usage in (("counted", {"prompt": 7, "completion": 2}), ("uncounted", {})):
        request = {"model": model, "messages": [], "provider": {"provider": "mine"}}
        rows.append({"key": key_of(canonical(request)), "request": request, "response": {"text": "x", "usage": usage}})
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert "2 new replies" in selfeval("store", "import", tmp_path / "rows.jsonl").output
    with contextlib.closing(sqlite3.connect(own_store)) as connection, connection:
        connection.execute("UPDATE replies SET response = '{\"cost\": Infinity}' WHERE request LIKE '%uncounted%'")
    lines = [line.split() for line in selfeval("store", "stats").output.splitlines()[1:3]]
    assert lines == [["mine", "counted", "1", "7", "2", "?", "1"], ["mine", "uncounted", "1", "?", "?", "?", "1"]]


@pytest.mark.parametrize(("arguments", "status", "sentence"), [
    (["sweep", "nowhere.yaml"], 1, "cannot read the sweep file"), (["store", "import", "broken"], 1, "line 1: not an"),
    (["sweep", ROOT / "notebooks/sweeps/demo.yaml", "--max-cost", "inf"], 1, "must be a finite number"),
    (["roleplay", "--output_file_path", "x.json", "--temperature", "-1"], 2, "not in the range x>=0"),
    (["report", "nowhere"], 1, "There is no notebook below nowhere to report; name a sweep's"),
    (["identity"], 2, "Missing option '--models'"),
    (["recognise", "nowhere.csv", "--models", "sim/good"], 1, "There is no file or corpus 'nowhere.csv'"),
    (["recognise", "--models"], 2, "Option '--models' requires an argument"),
    (["jury", "--models", "nobody/x", "--jurors", "sim/juror-stern"], 1, "`openrouter`, which needs an API key"),
    (["profile", "x-ai/grok-4", "--yes"], 1, "'x-ai/grok-4' is served by `openrouter`, which needs an API key"),
    (["store", "import", "nowhere.jsonl"], 2, "'nowhere.jsonl' does not exist"),
    (["store", "export", "broken"], 1, "broken exists; name a new file for the replies"),
    (["store", "forget-batch", "x"], 1, "The store has no batch 'x'"),
    (["doctor", "--strange"], 2, "No such option '--strange'."),
])  # fmt: skip
def test_what_is_wrong_is_said_before_anything_runs(arguments, status, sentence, tmp_path, own_store, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken").write_text("{}\n")
    result = selfeval(*arguments)
    assert result.exit_code == status and sentence in " ".join(result.output.split()), result.output
    assert "Traceback" not in result.output and (status == 2 or len(result.output.strip().splitlines()) == 1)
    assert {each.name for each in tmp_path.iterdir()} <= {"broken", "store"}


def test_doctor_names_what_is_missing_with_its_remedy(monkeypatch):
    def gone(provider):
        raise InputError("its weights are not installed; see docs/models.md")

    monkeypatch.setattr(embedded, "url", gone)
    result = selfeval("doctor")
    assert result.exit_code == 1
    assert "MISSING  local/smollm2-135m: its weights are not installed; see docs/models.md" in result.output


@pytest.mark.parametrize("there", [True, False])
def test_doctor_tells_of_every_embedded_model_and_does_not_miss_those_that_are_opt_in(there, tmp_path, monkeypatch):
    parts = {"first": tmp_path / "part" if there else None}
    monkeypatch.setattr(embedded, "_parts", lambda wanted: parts)
    monkeypatch.setattr(embedded, "_whole", lambda wanted: tmp_path / "whole.gguf")
    monkeypatch.setattr(embedded, "url", lambda provider: "http://127.0.0.1:1/v1")
    (tmp_path / "part").touch()
    result = selfeval("doctor")
    assert result.exit_code == 0
    optional = [line for line in result.output.splitlines() if "local/qwen2.5-coder" in line]
    for line, size in zip(optional, ("1.5b", "0.5b"), strict=True):
        assert line.startswith("ok       " if there else "optional ") and f"local/qwen2.5-coder-{size}" in line
        assert there == ("whole.gguf" in line) == ("docs/models.md" not in line)
        assert "model_part" not in line and "pandas_sns" not in line  # names of packages that mistrust would stop at


NEEDING = ("sweep x.yaml", "report", "recognise --models sim/good", "identity --models sim/identity-wavers")


@pytest.mark.parametrize("command", [*NEEDING, "jury --models sim/talker --jurors sim/juror-stern"])
def test_a_command_that_runs_notebooks_says_how_to_install_what_it_needs(command, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("selfeval.sweep")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "jupyter_client.manager", None)  # as if it were not installed
    result = selfeval(*command.split())
    assert result.exit_code == 1 and result.output.startswith("selfeval: this command needs `jupyter_client")
    assert result.output.endswith("run: pip install 'selfeval[lab]'\n")


def test_studies_of_the_same_models_that_ask_something_else_have_folders_of_their_own():
    asked = [[], ["pairwise_self"], ["pairwise_self", "limit=2"]]
    folders = {named_study("recognise", "mine.jsonl", ["sim/good"], None, each)[1] for each in asked}
    assert len(folders) == 3
