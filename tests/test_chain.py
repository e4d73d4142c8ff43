"""The whole path: with the embedded model, from recordings, and against a server that misbehaves."""

import json
import re
import subprocess

import pytest
from conftest import PAPERMILL
from fake_server import FakeServer
from written_files import run_notebook

from selfeval import DATA, ROOT, models, records
from selfeval.asking import embedded
from selfeval.errors import InputError, ProviderError

LOCAL = ["local/smollm2-135m", "local/smollm2-135m-captain"]


def papermill(folder, notebook, *options):
    """Run papermill as a user does, from another folder and with absolute paths."""
    paths = [str(ROOT / "notebooks" / f"{notebook}.ipynb"), str(folder / f"{notebook}.ipynb")]
    command = [*PAPERMILL, *paths, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.model
def test_texts_and_answers_with_the_embedded_model(tmp_path, monkeypatch):
    try:
        embedded.model_file(models.providers()["local"])
    except ProviderError as missing:
        pytest.skip(str(missing))
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    corpus, out = str(tmp_path / "corpus"), str(tmp_path / "out")
    # What the model says to these is short, and the same every time: it would go on for 256 tokens to most others.
    told = ("Describe the 2. shop in a street.", "Name an animal.")
    prompts = [{"prompt_id": f"new-{i}", "prompt": text} for i, text in enumerate(told)]
    records.write_jsonl(tmp_path / "prompts.jsonl", prompts)
    run_notebook("01_generate_texts", models=LOCAL, prompts=str(tmp_path / "prompts.jsonl"), words=8, corpus=corpus)
    texts = records.read_texts(corpus)
    assert [text["author"] for text in texts] == LOCAL * 2 and all(text["usage"]["completion"] for text in texts)

    asked = {"evaluators": LOCAL[:1], "corpus": corpus, "out": out}
    run_notebook("02_collect_predictions", **asked)
    found = records.read_predictions(out)
    assert len(found) == 4 * 2 and set(found["status"]) <= {"ok", "no_answer", "length"}
    assert found["score"].dropna().between(0, 1).all()
    assert "0 model calls, 8 replies from the store" in run_notebook("02_collect_predictions", **asked)


@pytest.mark.fault("storm")
def test_a_server_that_misbehaves_changes_no_result(tmp_path, monkeypatch):
    """In this process; `make faults` has a sweep of three notebooks in the same storm."""
    ids = [f"flaky:{name}" for name in "abc"]
    own = {
        "providers": {"flaky": {"base_url_env": "FLAKY_URL", "deadline": 20, "json_schema": True}},
        "models": [{"id": name, "display": f"Model {name[-1]}"} for name in ids],
    }
    (tmp_path / "models.yaml").write_text(json.dumps(own))
    monkeypatch.setenv("SELFEVAL_MODELS", str(tmp_path / "models.yaml"))
    faults = ["429", "500", "drop", "truncated", "html", "200-error", "choices-empty", "empty"]
    results = {}
    for name, rate in (("calm", 0.0), ("stormy", 0.2)):
        corpus, out = str(tmp_path / name / "corpus"), str(tmp_path / name / "out")
        monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / name / "store.sqlite"))
        with FakeServer(fault_rate=rate, fault_names=faults, seed=1, retry_after=0.1) as server:
            monkeypatch.setenv("FLAKY_URL", server.url)
            run_notebook("01_generate_texts", models=ids, limit=5, corpus=corpus)
            run_notebook("02_collect_predictions", evaluators=ids[:2], corpus=corpus, out=out)
            struck = sum(entry["fault"] is not None for entry in server.ledger)
        assert (struck > 10) == (rate > 0)
        rows = records.read_predictions(out)
        results[name] = rows.drop(columns=["request_id"]).to_dict("records")
        assert len(rows) == 2 * 15 * 2
    assert results["calm"] == results["stormy"]


@pytest.mark.parametrize(("given", "error", "sentence"), [
    ({"models": ["gpt-4.1"]}, InputError, "Unknown model 'gpt-4.1'; did you mean 'openai/gpt-4.1'?"),
    ({"models": ["openai/gpt-4.1"]}, ProviderError, "set OPENROUTER_API_KEY"),
])  # fmt: skip
def test_bad_input_is_one_sentence_before_anything_is_written(tmp_path, given, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        run_notebook("01_generate_texts", **given, corpus=str(tmp_path / "corpus"))
    assert not (tmp_path / "corpus").exists()


def test_bad_input_is_a_failing_exit_status_of_papermill(tmp_path):
    result = papermill(tmp_path, "01_generate_texts", "-p", "limit", "-1", "-p", "corpus", str(tmp_path / "corpus"))
    assert result.returncode == 1 and "`limit` must be a whole number of at least 0, got -1" in result.stderr
    assert not (tmp_path / "corpus").exists()


def test_the_replies_of_the_sample_reproduce_the_committed_records(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_REPLAY", "1")
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    run_notebook("01_generate_texts", corpus=str(corpus))
    assert (corpus / "texts.jsonl").read_bytes() == (DATA / "corpora" / "sample" / "texts.jsonl").read_bytes()
    run_notebook("02_collect_predictions", corpus=str(corpus), out=str(out))
    made = sorted(path.name for path in out.iterdir())
    assert made == ["predictions_binary_self.jsonl", "predictions_exact_model.jsonl"]
    for name in made:
        assert (out / name).read_bytes() == (DATA / "predictions" / "sample" / name).read_bytes()
