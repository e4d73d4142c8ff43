"""What one verb wrote to a folder is read by every verb and command that reads such records, by folder and by file."""

import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from test_likelihood import known
from written_files import run_notebook

import selfeval as se
from selfeval.cli import main
from selfeval.errors import InputError
from selfeval.records import tables as record_files

MODELS = ["sim/good", "sim/chance"]
QUICK = {"n_resamples": 10}
FILES = {  # folder of the study below: the file in it that a reader can be given instead
    "texts": "texts.jsonl", "answers": "predictions_exact_model.jsonl", "likelihoods": "likelihoods.jsonl",
    "talks": "conversations.jsonl", "verdicts": "verdicts.jsonl", "identity": "identity.jsonl",
    "existence": "existence.jsonl", "measured": "self_recognition.csv",
}  # fmt: skip
READERS = {  # what reads: (the folder that it is given, how)
    "collect_predictions": ("texts", lambda at, s: se.collect_predictions(at, MODELS, tasks="binary_self", limit=1)),
    "controls": ("texts", lambda at, s: se.controls(at)),
    "measure_recognition": ("answers", lambda at, s: se.measure_recognition(at, **QUICK)),
    "measure_recognition of a list": ("answers", lambda at, s: se.measure_recognition([at], **QUICK)),
    "measure_implicit": ("likelihoods", lambda at, s: se.measure_implicit(at, s / "own", **QUICK)),
    "measure_implicit's predictions": ("own", lambda at, s: se.measure_implicit(s / "likelihoods", at, **QUICK)),
    "measure_implicit's texts": (
        "texts",
        lambda at, s: se.measure_implicit(s / "likelihoods", s / "own", Path(at), **QUICK),
    ),
    "judge": ("talks", lambda at, s: se.judge(at, "sim/juror-stern", "independent")),
    "judge of judged": ("verdicts", lambda at, s: se.judge(s / "verdicts", "sim/juror-stern", "independent")),
    "judge's controls": ("talks", lambda at, s: se.judge((), "sim/juror-stern", "independent", controls=at)),
    "judge's verdicts": ("verdicts", lambda at, s: se.judge((), "sim/juror-stern", verdicts=at)),
    "measure_jury": ("verdicts", lambda at, s: se.measure_jury(at)),
    "converse": ("talks", lambda at, s: se.converse("sim/talker", transcripts=at)),
    "exchanges": ("talks", lambda at, s: se.exchanges(at)),
    "measure_identity": ("identity", lambda at, s: se.measure_identity(at, **QUICK)),
    "measure_existence": ("existence", lambda at, s: se.measure_existence(at)),
    "read_results": ("measured", lambda at, s: se.read_results(at)),
    "runs": ("measured", lambda at, s: se.runs(at)),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a folder with a folder of each kind of records, each written by the verb that a user would take."""
    folder = tmp_path_factory.mktemp("study")
    out = {name: str(folder / name) for name in FILES}
    texts = se.generate_texts(MODELS, 4, corpus=out["texts"])
    answers = se.collect_predictions(texts, out=out["answers"])
    likelihoods, own = known()  # what servers that give likelihoods would have said
    record_files.write_jsonl(folder / "likelihoods" / "likelihoods.jsonl", likelihoods)
    record_files.write_jsonl(folder / "own" / "predictions_binary_self.jsonl", own)
    talks = se.converse("sim/talker", "sim/talker", turns=1, people=2, exchanges=1, out=out["talks"])
    se.judge(talks, ["sim/juror-stern", "sim/juror-lenient"], "independent", out=out["verdicts"])
    se.save(se.measure_identity(se.ask_identity("sim/identity-wavers", limit=2), **QUICK), out["identity"])
    se.save(se.measure_existence(se.ask_existence("sim/existence-knows", names=2, templates=1)), out["existence"])
    result = se.measure_recognition(answers, **QUICK)
    se.save(result, out["measured"])
    return folder


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_takes_the_folder_by_path_and_by_name_and_its_file(reader, study, monkeypatch):
    name, read = READERS[reader]
    whole = read(study / name, study)
    assert len(whole)
    if name in FILES:
        assert len(read(study / name / FILES[name], study))
    monkeypatch.chdir(study)
    by_name = read(name, study)  # as one names it from the folder that it is in
    if isinstance(whole, pd.DataFrame):
        pd.testing.assert_frame_equal(pd.DataFrame(by_name), pd.DataFrame(whole))


def test_a_command_takes_a_folder_too(study):
    recognise = ["recognise", str(study / "texts"), "--models", "sim/good,sim/chance", "--dry-run"]
    said = CliRunner().invoke(main, recognise)
    assert said.exit_code == 0, said.output


def test_a_folder_without_such_records_is_refused_by_its_name_and_with_what_writes_them(study, tmp_path):
    assert {*record_files.HELD_IN} == {*record_files.WRITERS}
    (tmp_path / "notes.md").write_text("Nothing to read.")
    for kind in record_files.HELD_IN:
        with pytest.raises(InputError) as refused:
            record_files.files_of(kind, tmp_path)
        for part in (str(tmp_path), record_files.HELD_IN[kind][0], record_files.WRITERS[kind], "it holds notes.md."):
            assert part in str(refused.value)
    for reader in (se.measure_identity, se.measure_existence, se.measure_jury, se.exchanges, se.controls):
        with pytest.raises(InputError, match=str(tmp_path)):
            reader(tmp_path)


def test_a_folder_above_several_is_read_whole_aloud_and_of_corpora_one_is_to_be_named(study, tmp_path, capsys):
    rows = record_files.read_jsonl(study / "identity" / "identity.jsonl")
    for model in ("first", "second"):
        record_files.write_jsonl(tmp_path / model / "identity.jsonl", [row | {"model": model} for row in rows])
        texts = record_files.read_jsonl(study / "texts" / "texts.jsonl")
        record_files.write_jsonl(tmp_path / model / "texts.jsonl", texts)
    assert {*se.measure_identity(tmp_path, **QUICK)["evaluator"]} == {"first", "second"}
    assert "Read together: " in capsys.readouterr().out
    with pytest.raises(InputError, match=r"holds 2 corpora \(first, second\); name one of these folders"):
        se.controls(tmp_path)
    (tmp_path / "second" / "texts.jsonl").unlink()
    assert len(se.controls(tmp_path)) == len(se.controls(study / "texts"))


def test_a_folder_that_is_read_is_not_written_to(study):
    with pytest.raises(InputError, match="is a folder that is read here"):
        se.judge(study / "talks", "sim/juror-stern", out=str(study / "talks"))


def test_notebook_06_takes_the_folder_that_05_wrote_and_its_own(tmp_path):
    talks, judged = str(tmp_path / "talks"), str(tmp_path / "judged")
    parts = {"agent": "sim/talker", "interrogator": "sim/talker", "n_conversations": 2, "turns": 1}
    run_notebook("05_role_play", until=re.compile(r"se\.converse\("), **parts, out=talks)
    jury = {"agent": "sim/talker", "jurors": ["sim/juror-stern"], "humans": 0, "arms": ["independent"]}
    cell = re.compile(r"se\.judge\(")
    run_notebook("06_jury", until=cell, **jury, conversations=[talks], out=judged)
    run_notebook("06_jury", until=cell, **jury, verdicts=judged, out=str(tmp_path / "again"))
    for name in ("conversations.jsonl", "verdicts.jsonl"):
        first, again = (record_files.read_jsonl(tmp_path / folder / name) for folder in ("judged", "again"))
        assert len(first) >= 2 and first == again
