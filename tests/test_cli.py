"""The `selfeval` command: what it prints, and one sentence with exit status 1 for what is wrong."""

import contextlib
import importlib.metadata
import json
import sqlite3
import subprocess
import sys

import pytest
from click.testing import CliRunner

from selfeval import DATA, ROOT, cli
from selfeval.asking import embedded
from selfeval.asking.recordings import canonical, key_of


def selfeval(*arguments):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_models_lists_the_registry_and_says_which_key_is_missing():
    result = selfeval("models")
    assert result.exit_code == 0
    [line] = [line for line in result.output.splitlines() if line.startswith("openai/gpt-4.1 ")]
    assert line.split("  ")[-1].strip() == "no: set OPENROUTER_API_KEY"
    assert any(line.startswith("sim/perfect") and line.endswith("yes") for line in result.output.splitlines())


def test_export_import_and_statistics_of_the_store(tmp_path, monkeypatch):
    recording = DATA / "sample" / "recognition.jsonl"
    replies = len(recording.read_text(encoding="utf-8").splitlines())
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "a.sqlite"))
    assert f"{replies} new replies, 0 already stored" in selfeval("store", "import", recording).output
    assert f"0 new replies, {replies} already stored" in selfeval("store", "import", recording).output
    assert f"{replies} replies written" in selfeval("store", "export", tmp_path / "out.jsonl").output
    assert (tmp_path / "out.jsonl").read_bytes() == recording.read_bytes()
    assert ["local", "smollm2-135m", str(replies)] in [
        line.split()[:3] for line in selfeval("store", "stats").output.splitlines()
    ]


def test_statistics_show_no_number_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "a.sqlite"))
    rows = []
    for model, usage in (("counted", {"prompt": 7}), ("uncounted", {})):
        request = {"model": model, "messages": [], "provider": {"provider": "mine"}}
        rows.append({"key": key_of(canonical(request)), "request": request, "response": {"text": "x", "usage": usage}})
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert "2 new replies" in selfeval("store", "import", tmp_path / "rows.jsonl").output
    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("UPDATE replies SET response = '{\"cost\": Infinity}' WHERE request LIKE '%uncounted%'")
    lines = [line.split() for line in selfeval("store", "stats").output.splitlines()[1:3]]
    assert lines == [["mine", "counted", "1", "7", "?", "?"], ["mine", "uncounted", "1", "?", "?", "?"]]


DEMO = ROOT / "notebooks" / "sweeps" / "demo.yaml"
IDENTITY = ["identity", DATA / "identity" / "published.json", "--model", "sim/good", "--output", "x.json"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sweep", "nowhere.yaml"], "cannot read the sweep file"),
        (["store", "import", "BROKEN"], "line 1: not an exp"),
        (["scan", "x" * 300], "File name too long"),
        (["identity", "x" * 300, "--model", "sim/good", "--output", "x.json"], "File name too long"),
        (["identity", DATA / "identity" / "published.json", "--model", "sim/good", "--output", "x" * 300], "too long"),
        ([*IDENTITY, "--temperature", "nan"], "`temperature` must be a finite number of at least 0, got nan"),
        (["sweep", DEMO, "--max-cost", "inf"], "`max_cost` must be a finite number of at least 0, got inf"),
    ],
)
def test_an_error_is_one_sentence_and_exit_status_1(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "a.sqlite"))
    (tmp_path / "broken.jsonl").write_text("{}\n")
    result = selfeval(*[str(tmp_path / "broken.jsonl") if a == "BROKEN" else a for a in arguments])
    assert result.exit_code == 1 and sentence in result.output and "Traceback" not in result.output
    assert len(result.output.strip().splitlines()) == 1


PLAY = ["roleplay", "--output_file_path", "x.json"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([*IDENTITY, "--repeats", 99999999999999999999], "not in the range 1<=x<=10000"),
        ([*PLAY, "--temperature", "-1"], "not in the range x>=0"),
        (["sweep", "x.yaml", "--max-cost", "-1"], "not in the range x>=0"),
        (["sweep", "x.yaml", "--out", ""], "an empty text is no path"),
        (["report", "--out", ""], "an empty text is no path"),
        (["scan", ""], "an empty text is no path"),
    ],
)
def test_an_option_that_is_not_right_is_named_before_anything_runs(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = selfeval(*arguments)
    assert result.exit_code == 2 and sentence in " ".join(result.output.split()), result.output
    assert not list(tmp_path.iterdir())


def test_a_broken_registry_is_one_sentence(tmp_path, monkeypatch):
    own = tmp_path / "models.yaml"
    own.write_text("models:\n- {id: local/x, display: X, familly: y}\n")
    monkeypatch.setenv("SELFEVAL_MODELS", str(own))
    result = selfeval("models")
    assert result.exit_code == 1 and "did you mean 'family'?" in result.output


def test_doctor_names_what_is_missing_with_its_remedy(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "distributions", list)
    monkeypatch.setattr(embedded, "url", lambda provider: "http://127.0.0.1:1/v1")  # it takes seconds to start
    result = selfeval("doctor")
    assert result.exit_code == 1
    assert "MISSING  " in result.output and "pip install -r requirements.txt" in result.output
    assert "key of openrouter: not set (OPENROUTER_API_KEY)" in result.output


def test_a_clone_named_like_the_package_does_not_hide_it(tmp_path):
    (tmp_path / "selfeval" / "notebooks").mkdir(parents=True)
    command = [sys.executable, "-c", "import selfeval; print(selfeval.ROOT)"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert said.stdout.strip() == str(ROOT), said.stderr
