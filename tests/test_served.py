"""Who served a model: in the records, and in one printed sentence."""

import pandas as pd
import pytest
from fake_server import completion
from written_files import run_notebook

import selfeval as se
from selfeval.asking.client import several_endpoints
from selfeval.errors import ProviderError


def answers(**columns):
    """Return answers of the evaluators a and b, two each, all served by one endpoint."""
    plain = {"evaluator_model": ["a", "a", "b", "b"], "true_model": list("abab"), "served_model": "one"}
    return pd.DataFrame(plain | {"served_by": None, "text_served_model": "one", "text_served_by": None} | columns)


def test_a_model_that_two_upstreams_served_is_named_as_evaluator_author_and_juror():
    assert several_endpoints(answers()) == []
    [said] = several_endpoints(answers(served_by=["East", "East", "East", "West"]))
    assert said.startswith("b was served by 2 endpoints: one via East, one via West.")
    [said] = several_endpoints(answers(text_served_model=["one", "two", "one", "two"]))
    assert said.startswith("b was served by 2 endpoints: one, two.")
    seats = pd.DataFrame({"juror": ["m", "m #2"], "served_model": "x", "served_by": ["Alpha", "Beta"]})
    assert [said.partition(".")[0] for said in several_endpoints(seats)] == [
        "m was served by 2 endpoints: x via Alpha, x via Beta"
    ]


def test_replies_that_do_not_say_who_served_them_show_nothing():
    assert several_endpoints(answers(served_by=["East", "East", "East", None])) == []  # kept by an older version
    assert several_endpoints(answers()[["evaluator_model", "true_model"]]) == []


def test_a_verb_prints_the_sentence_and_the_records_say_who_served_each_reply(server, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    names = iter(["East", "West"])
    monkeypatch.setattr("fake_server.completion", lambda *given: completion(*given) | {"provider": next(names)})
    server()
    texts = se.generate_texts("openai:m", prompts=2)
    assert sorted(texts["served_by"]) == ["East", "West"]
    assert "openai:m was served by 2 endpoints: m via East, m via West." in capsys.readouterr().out


def test_authors_that_write_nothing_stop_01_with_a_sentence_and_again_helps(tmp_path, server, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    said = [""]
    server(reply=lambda body: said[0])
    asked = {"models": ["openai:m"], "limit": 2, "corpus": str(tmp_path / "corpus")}
    with pytest.raises(
        ProviderError, match=r"^No author wrote a text. openai:m .* 2 of its requests \(empty\): `again"
    ):
        run_notebook("01_generate_texts", **asked)
    said[0] = "A text."
    printed = run_notebook("01_generate_texts", **asked, again="empty")
    assert "2 of them asked again" in printed and "no text: 0 of 2" in printed
