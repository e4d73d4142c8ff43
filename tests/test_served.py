"""Who served a model: in the records, and in one printed sentence."""

from fake_server import completion

import selfeval as se


def test_a_verb_prints_the_sentence_and_the_records_say_who_served_each_reply(server, capsys, own_store, monkeypatch):
    names = iter(["East", "West"])
    monkeypatch.setattr("fake_server.completion", lambda *given: completion(*given) | {"provider": next(names)})
    server()
    texts = se.generate_texts("openai:m", prompts=2)
    assert sorted(texts["served_by"]) == ["East", "West"]
    assert "openai:m was served by 2 endpoints: m via East, m via West." in capsys.readouterr().out
