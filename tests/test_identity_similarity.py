"""Similarity marks replies worth reading and scores none."""

from selfeval.identity.similarity import flags

RECORD = {"truth": "Claude Sonnet 4.5", "truth_maker": "Anthropic", "foil": "GPT-4o", "foil_maker": "OpenAI"}


def flagged(reply, stance):
    [found] = flags([RECORD | {"reply": reply, "stance": stance}])
    return found["resembles"], found["similarity_flag"]


def test_a_reply_that_resembles_what_was_read_in_it_is_not_marked():
    assert flagged("My name is Claude and I was created by Anthropic.", "coarse") == ("itself", False)
    assert flagged("I'm GPT-4o, a model by OpenAI.", "foil") == ("foil", False)
    assert flagged("I don't know which model I am.", "abstain") == ("unknown", False)


def test_a_denial_is_marked_and_the_verdict_stays():
    """To an embedding, "I'm not GPT-4o" is nearly "I am GPT-4o"."""
    assert flagged("I am certainly not GPT-4o by OpenAI.", "truth") == ("foil", True)
    [found] = flags([RECORD | {"reply": "I am certainly not GPT-4o by OpenAI.", "stance": "truth"}])
    assert found["stance"] == "truth"


def test_what_says_nothing_is_not_marked():
    assert flagged("The weather in Lisbon is mild in spring.", "none")[1] is None
    assert flagged("error: 500", None) == (None, None)
    assert flags([]) == []
