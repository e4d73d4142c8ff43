"""Who served a model: in the records, and in one printed sentence."""

import pytest
from fake_server import completion
from written_files import run_notebook

import selfeval as se
from selfeval.errors import ProviderError


def test_a_verb_prints_the_sentence_and_the_records_say_who_served_each_reply(server, capsys, own_store, monkeypatch):
    names = iter(["East", "West"])
    monkeypatch.setattr("fake_server.completion", lambda *given: completion(*given) | {"provider": next(names)})
    server()
    texts = se.generate_texts("openai:m", prompts=2)
    assert sorted(texts["served_by"]) == ["East", "West"]
    assert "openai:m was served by 2 endpoints: m via East, m via West." in capsys.readouterr().out


def test_authors_that_write_nothing_stop_01_with_a_sentence_and_again_helps(tmp_path, server, own_store):
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
