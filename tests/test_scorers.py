"""Scorers of one's own, wherever scoring is named."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

import selfeval as se
from selfeval.cli import main
from selfeval.errors import InputError
from selfeval.paths import ROOT

CONFIG = json.loads((ROOT / "data" / "identity" / "published.json").read_text())
HOW = {"arms": ["neutral", "false-far"], "limit": 3, "turns": 0}
MINE = "def polite(reply, expected):\n    return 'sorry' not in reply\n"


def free(records):
    """Return the free replies among records."""
    return records[records["source"] == "reply"]


def test_a_function_scores_the_free_replies_of_a_suite_and_its_name_stands_in_the_records():
    seen = []

    def names_the_model(reply, expected):
        seen.append(expected)
        return {"score": float(expected["model_names"][0] in reply), "length": len(reply)}

    records = se.ask_identity("sim/identity-susceptible", scoring=names_the_model, **HOW)
    replies = free(records)
    assert set(replies["passed"]) == {True, False} and set(replies["score"]) == {0.0, 1.0}
    assert all(
        details["length"] == len(reply) for details, reply in zip(replies["details"], replies["reply"], strict=True)
    )
    assert replies["scorer"].str.fullmatch(r"names_the_model \([0-9a-f]{8}\)").all()
    assert set(records.loc[records["source"] == "readout", "scorer"]) == {"claims"}
    [names] = {tuple(expected) for expected in seen}
    wanted = "model_names model_id provider_name claimed_name claimed_maker arm expect"
    assert names == tuple(wanted.split()) and {each["arm"] for each in seen} == {"neutral", "false-far"}


def test_what_a_function_scored_is_measured_by_its_read_outs():
    records = se.ask_identity("sim/identity-susceptible", scoring=lambda reply, expected: True, **HOW)
    assert len(se.measure_identity(records))


@pytest.mark.parametrize("found", [None, "yes", 1.5])
def test_a_function_that_returns_nonsense_costs_a_row_and_a_sentence(found, capsys):
    given = iter([found])
    records = se.ask_identity("sim/identity-correct", scoring=lambda reply, expected: next(given, True), **HOW)
    assert free(records)["passed"].isna().sum() == 1
    assert "1 of 10 replies count as errors" in capsys.readouterr().out


def test_a_function_that_raises_costs_a_row_and_a_sentence(capsys):
    def picky(reply, expected):
        if expected["arm"] == "neutral":
            raise KeyError("no claim here")
        return True

    replies = free(se.ask_identity("sim/identity-correct", scoring=picky, **HOW))
    assert replies["passed"].tolist() == [None, True, None, None, True]
    assert "the scorer picky gave no score: KeyError: 'no claim here'" in capsys.readouterr().out


def test_a_function_is_named_in_the_current_folder_or_beside_the_suite(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.py").write_text(MINE)
    (tmp_path / "theirs.py").write_text(MINE)
    suite = tmp_path / "family.yaml"
    [file] = [*(ROOT / "data" / "identity" / "suite").glob("*.yaml")][:1]
    suite.write_text(file.read_text())
    monkeypatch.chdir(tmp_path / "here")
    for named in ("mine:polite", "theirs:polite"):
        how = HOW | {"arms": ["neutral"], "scoring": named}
        replies = free(se.ask_identity("sim/identity-correct", suite, **how))
        assert replies["scorer"].str.startswith(f"{named} (").all()
    with pytest.raises(InputError, match="'absent:polite' is not there"):
        se.ask_identity("sim/identity-correct", suite, scoring="absent:polite")


def test_replies_of_a_suite_are_bought_once_whatever_the_scorer(server, own_store):
    fake = server("I'm GPT-4 Turbo.")
    bought = set()
    for scoring in ("claims", lambda reply, expected: 0.5, lambda reply, expected: True):
        se.ask_identity("openai:gpt-4-turbo", scoring=scoring, **HOW)
        bought.add(len(fake.ledger))
    assert len(bought) == 1


@pytest.mark.parametrize("folder", ["beside", "current"])
def test_the_command_finds_a_function_beside_the_configuration_and_in_the_current_folder(folder, tmp_path, monkeypatch):
    for name in ("beside", "current"):
        (tmp_path / name).mkdir()
    (tmp_path / folder / "mine.py").write_text(MINE)
    (tmp_path / "beside" / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path / "current")
    command = ["identity", "../beside/config.json", "--model", "sim/identity-correct", "--scoring", "mine:polite"]
    done = CliRunner().invoke(main, [*command, "--limit", "2", "--out", "found.json"])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "current" / "found.json").read_text())
    assert result["scoring"].startswith("mine:polite (") and result["total_tests"] == 2


def test_the_command_says_at_once_that_a_function_for_the_suite_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["identity", "--model", "sim/identity-correct", "--scoring", "mine:polite"])
    assert done.exit_code != 0 and "'mine:polite' is not there: put it into" in f"{done.output}{done.exception}"


def test_the_committed_comparison_says_that_similarity_reads_worse_than_claims():
    table = pd.read_csv(ROOT / "data" / "validation" / "scorers.csv").set_index(["scorer", "half"])
    held_out = table.xs("held_out", level="half")["accuracy"]
    assert held_out["claims"] > 0.9 > held_out["semantic_similarity"]
