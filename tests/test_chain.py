"""The whole path: from recordings, and against a server that misbehaves."""

import contextlib
import json
import subprocess

import pytest
from conftest import FULL, PAPERMILL
from fake_server import FAULTS, FakeServer
from written_files import run_notebook

from selfeval import DATA, ROOT, records
from selfeval.errors import ProviderError

# Faults that a later request need not meet; the others are answers of the model, or stop it for the run by design.
PASSING = ["429", "500", "drop", "truncated", "html", "200-error", "choices-empty", "empty"]
ANSWERS = {"empty-content", "null-content", "length", "cut", "filtered", "refusal", "surrogate", "nul"}


@pytest.mark.fault("storm")
def test_a_server_that_misbehaves_changes_no_result(tmp_path, monkeypatch, counted):
    """In full, a tenth of the requests are broken in every way: what fails is run again until all is done."""
    ids = [f"flaky:{name}" for name in "abcd"]
    own = {
        "providers": {"flaky": {"base_url_env": "FLAKY_URL", "deadline": 6 if FULL else 20, "json_schema": True}},
        "models": [{"id": name, "display": f"Model {name[-1]}", "developer": "D", "family": "f"} for name in ids],
    }
    (tmp_path / "models.yaml").write_text(json.dumps(own))
    monkeypatch.setenv("SELFEVAL_MODELS", str(tmp_path / "models.yaml"))
    options = {
        "fault_names": sorted({*FAULTS} - ANSWERS) if FULL else PASSING,
        "seed": 3,
        "retry_after": 0.1,
        "hang": 8,
    }
    results = {}
    for name, rate in (("calm", 0.0), ("stormy", 0.1 if FULL else 0.2)):
        corpus, out, exists = (str(tmp_path / name / part) for part in ("corpus", "out", "existence"))
        monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / name / "store.sqlite"))
        with FakeServer(fault_rate=rate, **options) as server:
            monkeypatch.setenv("FLAKY_URL", server.url)
            until_done("01_generate_texts", models=ids, limit=4, corpus=corpus)
            until_done("02_collect_predictions", evaluators=ids[:2], corpus=corpus, out=out)
            until_done("07_existence", evaluators=ids[2:], names=4, iterations=1, out=exists)
            struck = [entry["fault"] for entry in server.ledger if entry["fault"]]
        assert (len(struck) > 10) == (rate > 0)
        files = [file for file in sorted(tmp_path.rglob(f"{name}/**/*.jsonl")) if "store" not in file.name]
        rows = [row for file in files for row in records.read_jsonl(file)]
        results[name] = [{k: v for k, v in row.items() if k not in UNEQUAL} for row in rows]
    differing = sum(calm != stormy for calm, stormy in zip(results["calm"], results["stormy"], strict=True))
    counted(calls=len(results["calm"]), requests=len(server.ledger), lost=differing)
    assert len(results["calm"]) > 200 and differing == 0


UNEQUAL = ("request_id", "latency", "cost", "attempts", "served_by", "adapted")  # a refused parameter goes


def until_done(stem, **parameters):
    """Run a notebook again while its last cell says that calls failed."""
    for _ in range(12):
        with contextlib.suppress(AssertionError, ProviderError):
            return run_notebook(stem, **parameters)
    raise AssertionError(f"{stem} does not come to its end")


def test_bad_input_is_a_failing_exit_status_of_papermill(tmp_path):
    """From another folder and with absolute paths, as a user does."""
    paths = [ROOT / "notebooks" / "01_generate_texts.ipynb", tmp_path / "out.ipynb"]
    command = [*PAPERMILL, *paths, "-p", "limit", "-1", "-p", "corpus", tmp_path / "corpus"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
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
