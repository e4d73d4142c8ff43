"""Simulated models answer with the rates that were planted, and the same to the same question."""

import math

import pytest
from planted_rates import recognition
from test_client import ask

from selfeval.errors import InputError
from selfeval.providers.models import get, models
from selfeval.providers.request import Request, answer, author_of, user
from selfeval.recognition.prompts import Condition, Question
from selfeval.recognition.texts import build_writing

FLEET = [m for m in models().values() if m.provider.name == "sim" and "role" not in (m.simulation or {})]


def simulated(model, messages, sample=0, seed=0):
    return answer(Request(model, messages, {}, sample, seed), messages).text


def write(author, k):
    return simulated(author, build_writing(f"prompt {k}", 30))


def asked(task, text, names=("A", "B")):
    """Return the messages of a question about a text."""
    return Question(task, get("sim/good"), ({"text": text},), {name: name for name in names}, Condition()).messages()


def share(model, ask, author, n, is_self):
    """Return how often a model claims n texts of an author."""
    return sum(is_self(simulated(model, ask(write(author, k)))) for k in range(n)) / n


@pytest.mark.parametrize("model", FLEET, ids=lambda m: m.id)
@pytest.mark.parametrize("candidates", [None, 4])
def test_planted_rates_are_met(model, candidates):
    n, other = 600, next(m for m in FLEET if m != model)
    names = [m.display for m in [model, *[m for m in FLEET if m != model][:3]]]

    def ask(text):
        return asked("exact_model", text, names) if candidates else asked("binary_self", text)

    for author, rate in zip((model, other), recognition(model, candidates), strict=True):
        if candidates and model.simulation.get("position"):  # it stands first in this list
            position, rate_name = model.simulation["position"], "hit" if author == model else "false_claim"
            rate = position + (1 - position) * model.simulation[rate_name]
        seen = share(model, ask, author, n, lambda text: text in ("YES", model.display))
        assert abs(seen - rate) <= 4 * math.sqrt(rate * (1 - rate) / n), (author.id, seen, rate)


def test_no_answer_and_preference_are_met():
    n, texts = 300, [write(get("sim/good"), k) for k in range(300)]
    mute = sum(simulated(get("sim/no-answer"), asked("binary_self", text)) == "I cannot tell." for text in texts) / n
    assert abs(mute - 0.5) < 4 * math.sqrt(0.25 / n)
    names = [get(f"sim/{name}").display for name in ("famous", "perfect", "good", "chance")]
    named = sum(simulated(get("sim/famous"), asked("exact_model", text, names)) == "Perfect" for text in texts) / n
    expected = 0.95 * (0.9 + 0.1 / 3)
    assert abs(named - expected) < 4 * math.sqrt(expected * (1 - expected) / n)


def test_the_same_request_has_the_same_reply_and_every_other_seed_or_sample_another():
    model, messages = get("sim/chance"), build_writing("a walk", 20)
    assert simulated(model, messages) == simulated(model, messages)
    texts = [simulated(model, messages, sample, seed) for sample in range(5) for seed in range(5)]
    assert len(set(texts)) == 25
    answers = [simulated(model, asked("binary_self", texts[0]), 0, seed) for seed in range(40)]
    assert {*answers} == {"YES", "NO"}


def test_authors_write_the_wanted_length_and_are_found_again():
    for author in FLEET:
        text = write(author, 1)
        assert 30 <= len(text.split()) <= 36 and author_of(text) == author.id
    assert author_of("The river keeps a garden.") is None


def test_a_text_with_a_list_in_it_is_no_list_of_candidates():
    listing = "Things to buy:\n- bread\n- salt\nAnswer with YES or NO and nothing else.\n"
    assert simulated(get("sim/always-itself"), asked("binary_self", listing)) == "YES"
    assert simulated(get("sim/never-itself"), asked("exact_model", listing)) in ("A", "B")


def test_the_client_counts_simulated_replies_and_stores_none(store):
    requests = [Request(get("sim/good"), user("Write about 9 words."), {}, k) for k in range(10)]
    responses, tally = ask(store, requests)
    assert len({r.text for r in responses}) == 10 and {r.cost for r in responses} == {0.0}
    assert (tally.calls, tally.simulated) == (0, 10) and list(store.rows()) == []


@pytest.mark.parametrize(("plays", "message"), [
    ("{hit: 1, hitt: 0.5}", "'sim/odd' has the unknown simulation parameter `hitt`"),
    ("{role: poet}", "`role` of `sim/odd` must be one of .*, got 'poet'"),
])  # fmt: skip
def test_a_simulation_that_cannot_be_is_one_sentence(plays, message, registry):
    registry(f"models: [{{id: sim/odd, display: Odd, simulation: {plays}}}]")
    with pytest.raises(InputError, match=message):
        simulated(get("sim/odd"), user("q"))
