"""Conditions that differ are pooled only with a sentence: in answers of several corpora, and in one corpus."""

import re
import shutil

import pandas as pd
import pytest
from sweep_files import keep_parameters
from written_files import run_notebook, stand_in

import selfeval as se
from selfeval import ROOT, sweep

FLEET = ["sim/good", "sim/chance"]
GUIDE = (ROOT / "docs" / "sweeps.md").read_text("utf-8").partition("### One curve over temperature")[2]


def warm(messages, temperature):
    """A model whose texts depend on the temperature."""
    return f"{messages[-1]['content'][:25]} at {temperature}"


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """A folder in the place of data/."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("models.yaml", "prompts.jsonl", "existence.yaml"):
        shutil.copy(ROOT / "data" / name, folder)
    shutil.copytree(ROOT / "data" / "roleplay", folder / "roleplay")  # a simulated model plays these parts, too
    stand_in(monkeypatch, folder)
    return folder


def test_the_recipe_of_the_guide_gives_a_row_per_temperature(own_data, monkeypatch):
    monkeypatch.chdir(own_data.parent)
    file = own_data.parent / "curve.yaml"
    file.write_text(re.search(r"```yaml\n(.+?)```", GUIDE, re.S)[1])
    recipe = sweep.load(file, own_data / "runs" / "curve")
    for run in recipe.runs:  # as a sweep does, without its kernels
        keep_parameters(run.folder, **run.parameters)
        run_notebook(run.notebook.stem, **run.parameters)
    made = {}
    exec(re.search(r"```python\n(.+?)```", GUIDE, re.S)[1], made)
    rows = made["rows"]
    assert {*rows["temperature"]} == {0.0, 0.5, 1.0} and not rows["temperature"].map(type).eq(str).any()
    assert rows.groupby(["temperature", "evaluator"]).size().eq(1).all() and len(rows) == 6
    assert len(made["axes"].lines) >= 2


# answers of several corpora -------------------------------------------------------------------------------------------


def asked(folder, temperature):
    """Return the folder of answers about texts that a function wrote at a temperature."""
    texts = se.generate_texts([warm, cool], 4, temperature=temperature)
    se.collect_predictions(
        texts, [warm, cool], tasks="binary_self", answer="free", out=str(folder / f"at-{temperature}")
    )
    return str(folder / f"at-{temperature}")


def cool(messages, temperature):
    return f"cool {messages[-1]['content'][:20]} at {temperature}"


def test_answers_about_two_corpora_are_measured_as_one_with_a_sentence(tmp_path, capsys):
    places = [asked(tmp_path, temperature) for temperature in (0.0, 1.0)]
    capsys.readouterr()
    se.measure_recognition(places, n_resamples=10)
    said = capsys.readouterr().out
    assert re.search(
        r"at-0.0/\S+, at-1.0/\S+: 16 texts are different ones of the same authors on the same prompts", said
    )
    frame = pd.concat([pd.read_json(f"{place}/predictions_binary_self.jsonl", lines=True) for place in places])
    se.measure_recognition(frame, n_resamples=10)
    assert "16 texts are different ones" in capsys.readouterr().out, "in a frame, too"
    for place in places:
        se.measure_recognition(place, n_resamples=10)
    told = [{place: {"text_temperature": number}} for number, place in enumerate(places)]
    apart = se.measure_recognition(told, n_resamples=10)
    assert "different ones" not in capsys.readouterr().out
    assert apart["condition"].nunique() == 2


def test_the_same_answers_in_two_files_are_answers_about_one_corpus(tmp_path, capsys):
    place = asked(tmp_path, 0.0)
    again = shutil.copytree(place, tmp_path / "again")
    capsys.readouterr()
    se.measure_recognition([place, str(again)], n_resamples=10)
    said = capsys.readouterr().out
    assert "16 records repeat others" in said and "different ones" not in said


def test_a_corpus_of_texts_at_two_temperatures_is_asked_about_with_a_sentence(tmp_path, capsys):
    parts = [se.generate_texts(FLEET, 2, samples=number, temperature=number / 2) for number in (1, 2)]
    mixed = pd.concat([parts[0], parts[1][parts[1]["sample"] == 1]])
    se.collect_predictions(mixed, tasks="binary_self")
    assert "Texts of sim/good differ in their temperature (0.5, 1.0) and are measured as one" in capsys.readouterr().out
    se.collect_predictions(parts[1], tasks="binary_self")
    assert "measured as one" not in capsys.readouterr().out


def test_a_system_prompt_that_differs_within_an_author_is_said(capsys):
    rows = [
        {
            "author": "sim/good",
            "prompt": f"Write {n}.",
            "text": f"Text {n}.",
            "messages": [{"role": "system", "content": s}],
        }
        for n, s in enumerate(["Be brief.", "Be long."])
    ]
    rows.append({"author": "sim/chance", "prompt": "Write 0.", "text": "Another."})
    se.collect_predictions(rows, tasks="binary_self")
    assert "differ in their system prompt (Be brief., Be long.)" in capsys.readouterr().out
