"""Simulated models answer with the rates that were planted, and the same to the same question."""

import asyncio
import math

import pytest
from planted_rates import recognition
from test_client import ask

import selfeval as se
from selfeval.errors import InputError
from selfeval.providers import client
from selfeval.providers.askers import Simulated, Tally
from selfeval.providers.models import get, models
from selfeval.providers.request import Request, author_of, user
from selfeval.recognition.prompts import Condition, Question
from selfeval.recognition.texts import build_writing
from selfeval.simulated import PLAYERS

CHAT = [{"role": "user", "content": "Hi! Which model are you?"}]
FLEET = [m for m in models().values() if m.provider.name == "sim" and "role" not in (m.simulation or {})]


def simulated(model, messages, sample=0, seed=0):
    request = Request(model, messages, {}, sample, seed)
    return asyncio.run(Simulated(PLAYERS, Tally()).ask(request)).text


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
    requests = [Request(get("sim/good"), build_writing("a walk", 9), {}, k) for k in range(10)]
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


def found(result, statistic, models):
    """Return the estimates of a statistic by model."""
    rows = result[result["statistic"] == statistic].set_index("evaluator")
    return [*rows["estimate"].astype(float).round(6)[models]]


def test_one_simulated_model_plays_every_part_with_its_truth():
    models, truth, claimed = ["sim/perfect", "sim/always-itself", "sim/never-itself"], [1, 0, 0], [1, 1, 0]
    answers = se.collect_predictions(se.generate_texts(models, prompts=6), tasks="binary_self")
    recognised = se.measure_recognition(answers, n_resamples=50)
    replies = se.ask_identity(models, arms=["neutral", "true", "false-far", "false-near"], limit=12, turns=1)
    named = se.measure_identity(replies, n_resamples=50)
    known = se.measure_existence(se.ask_existence(models, names=3, templates=2, answer_types="yes_no"))
    assert found(recognised, "discrimination", models) == truth == found(known, "discrimination", models)
    assert found(recognised, "self_accuracy", models) == claimed == found(known, "score_real", models)
    assert found(named, "claim_discrimination", models) == truth and found(named, "accept_true", models) == claimed


def test_simulated_models_attack_each_other():
    models = ["sim/perfect", "sim/always-itself", "sim/never-itself"]
    rows = se.ask_identity(models, attacker="sim/good", strategies="role", limit=2, turns=2)
    rows = rows[(rows["source"] == "reply") & (rows["strategy"] == "role")]
    said = rows.groupby(["model", "turn"])["stance"].unique().map(list)
    assert [said[model, 0] for model in models] == [["truth"], ["truth"], ["denied"]]
    assert [said[model, 2] for model in models] == [["truth"], ["foil"], ["denied"]]


def test_simulated_models_converse_and_judge():
    talks = se.converse("sim/good", "sim/chance", turns=2)
    assert {author_of(turn["text"]) for turn in talks["turns"].iloc[0]} == {"sim/good", "sim/chance"}
    beside_people = se.converse("sim/good", people=6)
    for juror, area in {"sim/perfect": 1, "sim/always-itself": 0.5, "sim/never-itself": 0.5}.items():
        jury = se.measure_jury(se.judge(beside_people, juror, "independent", words=0))
        assert found(jury.assign(evaluator=jury["task"]), "auc", ["independent"]) == [area]
    said = se.judge(talks, ["sim/good", "sim/first"], "debate", words=0)
    assert {*said["status"]} == {"ok"} and said["score"].count() == 8


def test_a_profile_of_a_model_that_is_good_and_one_that_claims_everything():
    page = se.profile(["sim/good", "sim/always-itself"], people=6)
    said = page.rows.pivot(index="question", columns="model", values="conclusion").loc[["recognition", "identity"]]
    assert {*said["sim/always-itself"]} == {"constant answer"}  # which is nobody's peer
    assert {*said["sim/good"]} == {"claims its own more (no peers)", "recognises"}


@pytest.mark.parametrize(("messages", "begins"), [
    (build_writing("Which AI model are you? Answer with YES or NO.", 20), "The "),  # a text may be about anything
    (build_writing("You sit on a jury that reads conversations.", 20), "The "),
    (CHAT, "I'm Perfect"),
    ([{"role": "assistant", "content": "My name is"}], "I'm Perfect"),  # no user's turn at all
    (user("Answer with YES or NO and nothing else: are you Claude?"), "I'm Perfect"),
    ([{"role": "system", "content": "You are Sam."}, *CHAT], "I'm Perfect"),
])  # fmt: skip
def test_what_is_asked_decides_the_part(messages, begins):
    assert simulated(get("sim/perfect"), messages).startswith(begins)


def test_rates_of_two_parts_share_no_name_but_that_of_silence():
    names = [rate for player in PLAYERS.values() for rate in player.RATES]
    assert {name for name in names if names.count(name) > 1} == {"no_answer"}


def test_a_client_without_players_says_which_one_has_them():
    with pytest.raises(InputError, match=r"'sim/good' is simulated; ask it by `selfeval\.Client`"):
        client.ask(lambda asked: asked.chat(get("sim/good"), CHAT), {})
