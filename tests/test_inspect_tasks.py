"""Tasks of Inspect AI: what `inspect eval selfeval/...` asks and logs is what our own client would have."""

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points

import pandas as pd
import pytest
from fake_server import FakeServer

import selfeval as se
from selfeval.errors import InputError

log = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
if "selfeval" not in entry_points(group="inspect_ai").names:
    pytest.skip("this selfeval was installed without its tasks: pip install -e .", allow_module_level=True)

MODEL = "openai:gpt-4.1"
WORDS = {"rain": "It falls on the roofs", "snow": "It is white", "fog": "It is grey"}
TEXTS = [
    {"author": author, "prompt": prompt, "text": f"{words}, says {author}."}
    for prompt, words in WORDS.items()
    for author in (MODEL, "openai:gpt-4o")
]


def reply(body):
    """Answer by the length of the question: a name, YES or NO, or nothing that can be read."""
    asked = body["messages"][-1]["content"]
    names = [line[2:] for line in asked.splitlines() if line.startswith("- ")]
    options = names or (["YES", "NO"] if "YES or NO" in asked else ["I am GPT-4.1, by OpenAI.", "I am Claude."])
    return [*options, "hm"][len(asked) % (len(options) + 1)]


def evaluate(folder, server, *words):
    """Run `inspect eval` with the logs in a folder, and return these."""
    environment = os.environ | {"LAB_BASE_URL": server.url, "LAB_API_KEY": "x"}
    command = [sys.executable, "-m", "inspect_ai", "eval", *words, "--model", "openai-api/lab/x"]
    options = ["-T", f"model_id={MODEL}", "--display", "none", "--log-dir", str(folder / "logs")]
    subprocess.run([*command, *options], cwd=folder, env=environment, check=True, timeout=200)
    return {log.read_eval_log(str(file), header_only=True).eval.task: file for file in folder.glob("logs/*.eval")}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return the server, and the logs of recognition and identity, in which one text's questions failed."""
    folder = tmp_path_factory.mktemp("inspect")
    pd.DataFrame(TEXTS).to_csv(folder / "mine.csv", index=False)
    tasks = ["selfeval/recognise", "selfeval/identity"]
    how = ["-T", "corpus=mine.csv", "-T", "limit=2", "--epochs", "2", "--no-fail-on-error"]
    with FakeServer(reply, faults=lambda _, body: "400" if "white, says openai:gpt-4o" in str(body) else None) as fake:
        yield fake, evaluate(folder, fake, *tasks, *how)


def prompts(requests):
    return {json.dumps(entry["body"]["messages"]) for entry in requests}


def test_recognition_by_inspect_measures_what_our_own_run_does(study, monkeypatch):
    fake, logs = study
    by_inspect = [*fake.ledger]
    monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    own = se.collect_predictions(TEXTS, MODEL, limit=2, repeats=2, answer="free", score="none")
    assert prompts(fake.ledger[len(by_inspect) :]) < prompts(by_inspect)
    theirs = se.read_inspect(logs["selfeval/recognise"])
    assert {*theirs["status"]} == {"ok", "no_answer", "error"} and {*theirs["repeat"]} == {0, 1}
    spent = [sum(usage["prompt"] for usage in rows["usage"] if usage) for rows in (own, theirs)]
    assert spent[0] == spent[1] > 0
    ours, again = (se.measure_recognition(rows, n_resamples=50) for rows in (own, theirs))
    assert len(ours)
    by = ["task", "statistic"]
    pd.testing.assert_frame_equal(pd.DataFrame(again).sort_values(by), pd.DataFrame(ours).sort_values(by))


def test_identity_by_inspect_measures_what_our_own_run_does(study, monkeypatch):
    fake, logs = study
    monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    own = se.ask_identity(MODEL, limit=2, repeats=2)
    theirs = se.read_inspect(logs["selfeval/identity"])
    assert len(theirs) == len(own) > 10 and {*own["source"]} == {"reply", "readout"}
    ours, again = (se.measure_identity(rows, n_resamples=50) for rows in (own, theirs))
    pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(ours))


def test_the_viewer_has_the_reply_and_a_mean_by_task_without_what_has_no_answer(study):
    read = log.read_eval_log(str(study[1]["selfeval/recognise"]))
    for task in ("exact_model", "binary_self"):
        of_task = [sample for sample in read.samples if sample.id.startswith(task) and sample.scores]
        records = [record for sample in of_task for record in sample.metadata["records"]]
        verdicts = [float(record["is_correct"]) for record in records if record["is_correct"] is not None]
        assert read.results.scores[0].metrics[task].value == pytest.approx(sum(verdicts) / len(verdicts))
        assert [sample.output.completion for sample in of_task] == [record["reply"] for record in records]
        assert f"{task} stderr" in read.results.scores[0].metrics


def test_texts_that_inspect_had_written_are_asked_about(tmp_path, monkeypatch):
    with FakeServer(lambda body: "Words on " + body["messages"][0]["content"][:20]) as fake:
        [file] = evaluate(tmp_path, fake, "selfeval/write", "-T", "prompts=3").values()
        texts = se.read_inspect(file)
        assert {*texts["author"]} == {MODEL} and texts["text"].str.startswith("Words on").all()
        others = texts[["prompt_id", "prompt", "text"]].assign(author="somebody")
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        answers = se.collect_predictions(pd.concat([texts, others]), MODEL, tasks="exact_model")
    assert answers.groupby("true_model").size().to_dict() == {MODEL: 3, "somebody": 3}


def changed(file, folder, name, **fields):
    """Write a log with other fields of its evaluation, and return its path."""
    read = log.read_eval_log(str(file))
    for field, value in fields.items():
        holder = read if field in ("status", "invalidated") else read.eval
        setattr(holder, field, value)
    log.write_eval_log(read, str(folder / name))
    return folder / name


def test_logs_of_one_evaluation_are_read_together_and_others_are_refused_by_name(study, tmp_path):
    file = study[1]["selfeval/recognise"]
    arguments = log.read_eval_log(str(file), header_only=True).eval.task_args
    other = changed(file, tmp_path, "other.eval", task_args=arguments | {"model_id": "openai:gpt-4o"})
    assert len(se.read_inspect([file, other])) == 2 * len(se.read_inspect(file))
    hinted = changed(other, tmp_path, "hinted.eval", task_args=arguments | {"model_id": "m", "hints": True})
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.eval").write_text("no log")
    foreign = log.read_eval_log(str(file))
    for sample in foreign.samples:
        sample.metadata = {}
    log.write_eval_log(foreign, str(tmp_path / "foreign.eval"))
    cases = [
        ([file, study[1]["selfeval/identity"]], "task is 'selfeval/recognise' and 'selfeval/identity'"),
        ([file, hinted], "are of different evaluations: hints is False and True; read them apart"),
        ([file, changed(file, tmp_path, "same.eval")], f"are both of '{MODEL}'"),
        (changed(file, tmp_path, "ended.eval", status="error"), "the status 'error'; `inspect eval-retry`"),
        (changed(file, tmp_path, "marked.eval", invalidated=True), "has invalidated samples"),
        (tmp_path / "foreign.eval", "has no records of ours"),
        (tmp_path / "broken.eval", "cannot be read as a log of Inspect"),
        (tmp_path / "empty", "has no log of Inspect"),
    ]
    for logs, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            se.read_inspect(logs)


def test_without_inspect_and_of_a_log_that_unpacks_to_too_much_a_sentence_is_said(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.eval", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", b" " * 3_000_000)
    monkeypatch.setattr("selfeval.bounds.UNPACKED", 1_000_000)
    with pytest.raises(InputError, match="unpacks to more than 1 MB"):
        se.read_inspect(tmp_path / "a.eval")
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(InputError, match=r"inspect-ai, which is not installed: pip install 'selfeval\[inspect\]'"):
        se.read_inspect(tmp_path / "a.eval")
