"""The whole path, notebooks executed by papermill: with the embedded model, and against a server that misbehaves."""

import json
import subprocess
import sys

import pandas as pd
import pytest
from fake_server import FakeServer

from selfeval import ROOT, models, records, sweep
from selfeval.asking import embedded
from selfeval.errors import ProviderError

NOTEBOOKS = ROOT / "notebooks"
LOCAL = ["local/smollm2-135m", "local/smollm2-135m-captain"]


def papermill(folder, notebook, *options):
    """Run papermill as a user does, from another folder and with absolute paths."""
    command = [
        sys.executable,
        "-m",
        "papermill",
        str(NOTEBOOKS / f"{notebook}.ipynb"),
        str(folder / f"{notebook}.ipynb"),
    ]
    return subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True)


@pytest.mark.model
def test_texts_answers_and_results_with_the_embedded_model(tmp_path, monkeypatch):
    try:
        embedded.model_file(models.providers()["local"])
    except ProviderError as missing:
        pytest.skip(str(missing))
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    prompts = [{"prompt_id": f"new-{i}", "prompt": f"Describe the {i + 1}. shop in a small street."} for i in range(2)]
    records.write_jsonl(tmp_path / "prompts.jsonl", prompts)
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    options = ["-y", f"models: {LOCAL}", "-p", "prompts", str(tmp_path / "prompts.jsonl"), "-p", "corpus", str(corpus)]
    first = papermill(tmp_path, "01_generate_texts", *options, "-p", "words", "20")
    assert first.returncode == 0, first.stderr[-2000:]
    texts = records.read_texts(str(corpus))
    assert [text["author"] for text in texts] == LOCAL * 2 and all(text["usage"]["completion"] for text in texts)

    options = ["-y", f"evaluators: {LOCAL}", "-p", "corpus", str(corpus), "-p", "out", str(out)]
    second = papermill(tmp_path, "02_collect_predictions", *options)
    assert second.returncode == 0, second.stderr[-2000:]
    found = records.read_predictions(out)
    assert len(found) == 2 * 4 * 2 and set(found["status"]) <= {"ok", "no_answer", "length"}
    assert found["score"].dropna().between(0, 1).all()
    again = papermill(tmp_path, "02_collect_predictions", *options)
    assert (
        again.returncode == 0
        and "0 model calls, 16 replies from the store" in (tmp_path / "02_collect_predictions.ipynb").read_text()
    )

    third = papermill(
        tmp_path, "03_self_recognition", "-p", "predictions", str(out), "-p", "out", str(tmp_path / "results")
    )
    assert third.returncode == 0, third.stderr[-2000:]
    table = pd.read_csv(tmp_path / "results" / "self_recognition.csv")
    assert set(table["evaluator"]) == set(LOCAL) and (table["n_prompts"] <= 2).all()
    assert {path.suffix for path in (tmp_path / "results").iterdir()} >= {".csv", ".pdf", ".png"}


@pytest.mark.fault("storm")
def test_a_server_that_misbehaves_changes_no_result(tmp_path, monkeypatch):
    own = {
        "providers": {"flaky": {"base_url_env": "FLAKY_URL", "deadline": 20, "json_schema": True}},
        "models": [{"id": f"flaky:{name}", "display": f"Model {name}"} for name in "abc"],
    }
    (tmp_path / "models.yaml").write_text(json.dumps(own))
    stages = [
        {"notebook": "01_generate_texts", "parameters": {"models": [m["id"] for m in own["models"]], "limit": 8}},
        {"notebook": "02_collect_predictions", "grid": {"evaluators": [m["id"] for m in own["models"][:2]]}},
    ]
    faults = ["429", "500", "drop", "truncated", "html", "200-error", "choices-empty", "empty"]
    results = {}
    for name, rate in (("calm", 0.0), ("stormy", 0.2)):
        folder = tmp_path / name
        stages[0]["parameters"]["corpus"] = stages[1].setdefault("parameters", {})["corpus"] = str(folder / "corpus")
        (tmp_path / "sweep.yaml").write_text(json.dumps({"name": name, "stages": stages}))
        with FakeServer(fault_rate=rate, fault_names=faults, seed=1, retry_after=0.2) as server:
            environment = {
                "FLAKY_URL": server.url,
                "SELFEVAL_MODELS": tmp_path / "models.yaml",
                "SELFEVAL_STORE": folder / "s",
            }
            for key, value in environment.items():
                monkeypatch.setenv(key, str(value))
            assert sweep.run_file(tmp_path / "sweep.yaml", 2, folder / "runs") == 0
            struck = sum(entry["fault"] is not None for entry in server.ledger)
        assert (struck > 10) == (rate > 0)
        rows = records.read_predictions(folder / "runs")
        results[name] = rows.drop(columns=["request_id"]).to_dict("records")
        assert len(rows) == 2 * 24 * 2
    assert results["calm"] == results["stormy"]


@pytest.mark.parametrize(("options", "sentence"), [
    (["-y", "models: [gpt-4.1]"], "Unknown model 'gpt-4.1': did you mean 'openai/gpt-4.1'?"),
    (["-y", "models: [openai/gpt-4.1]"], "set OPENROUTER_API_KEY"),
    (["-p", "limit", "-1"], "`limit` must be a number of prompts or 0 for all, got -1"),
])  # fmt: skip
def test_bad_input_is_one_sentence_and_a_failing_exit_status(tmp_path, options, sentence):
    result = papermill(tmp_path, "01_generate_texts", *options, "-p", "corpus", str(tmp_path / "corpus"))
    assert result.returncode == 1 and sentence in result.stderr
    assert not (tmp_path / "corpus").exists()


def test_the_replies_of_the_sample_reproduce_the_committed_records(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    assert papermill(tmp_path, "01_generate_texts", "-p", "corpus", str(corpus)).returncode == 0
    committed = ROOT / "data" / "corpora" / "sample" / "texts.jsonl"
    assert (corpus / "texts.jsonl").read_bytes() == committed.read_bytes()
    assert (
        papermill(tmp_path, "02_collect_predictions", "-p", "corpus", str(corpus), "-p", "out", str(out)).returncode
        == 0
    )
    assert sorted(made.name for made in out.iterdir()) == [
        "predictions_binary_self.jsonl",
        "predictions_exact_model.jsonl",
    ]
    for made in out.iterdir():
        assert made.read_bytes() == (ROOT / "data" / "predictions" / "sample" / made.name).read_bytes()
