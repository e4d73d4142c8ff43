"""The whole path against a server that misbehaves."""

import contextlib
import json

from conftest import FULL
from fake_server import FAULTS, FakeServer
from written_files import run_notebook

from selfeval.errors import ProviderError
from selfeval.records import tables as record_files

# Faults that a later request need not meet; the others are answers of the model, or stop it for the run by design.
PASSING = ["429", "500", "drop", "truncated", "html", "200-error", "choices-empty", "empty"]
ANSWERS = {"empty-content", "null-content", "length", "cut", "filtered", "refusal", "surrogate", "nul"}


def test_a_server_that_misbehaves_changes_no_result(tmp_path, registry, monkeypatch):
    """In full, a tenth of the requests are broken in every way: what fails is run again until all is done."""
    ids = [f"flaky:{name}" for name in "abcd"]
    own = {
        "providers": {"flaky": {"base_url_env": "FLAKY_URL", "deadline": 6 if FULL else 20, "json_schema": True}},
        "models": [{"id": name, "display": f"Model {name[-1]}", "developer": "D", "family": "f"} for name in ids],
    }
    registry(json.dumps(own))
    faults = sorted({*FAULTS} - ANSWERS) if FULL else PASSING
    options = {"fault_names": faults, "seed": 3, "retry_after": 0.1, "hang": 8}
    results = {}
    for name, rate in (("calm", 0.0), ("stormy", 0.1 if FULL else 0.2)):
        corpus, out, exists = (str(tmp_path / name / part) for part in ("corpus", "out", "existence"))
        monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / name / "store.sqlite"))
        with FakeServer(fault_rate=rate, **options) as server:
            monkeypatch.setenv("FLAKY_URL", server.url)
            until_done("01_generate_texts", models=ids, limit=4, corpus=corpus)
            until_done("02_collect_predictions", models=ids[:2], corpus=corpus, out=out)
            until_done("07_existence", models=ids[2:], names=4, iterations=1, out=exists)
            struck = [entry["fault"] for entry in server.ledger if entry["fault"]]
        assert (len(struck) > 10) == (rate > 0)
        files = sorted(tmp_path.rglob(f"{name}/**/*.jsonl"))
        rows = [row for file in files for row in record_files.read_jsonl(file)]
        results[name] = [{k: v for k, v in row.items() if k not in UNEQUAL} for row in rows]
    differing = sum(calm != stormy for calm, stormy in zip(results["calm"], results["stormy"], strict=True))
    assert len(results["calm"]) > 200 and differing == 0


UNEQUAL = ("request_id", "latency", "cost", "attempts", "served_by", "adapted")  # a refused parameter goes


def until_done(stem, **parameters):
    """Run a notebook again while its last cell says that calls failed."""
    for _ in range(12):
        with contextlib.suppress(AssertionError, ProviderError):
            return run_notebook(stem, **parameters)
    raise AssertionError(f"{stem} does not come to its end")
