"""An attacker that follows up: what it is told, what is asked after it, what is measured, and nothing bought twice."""

import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from conftest import FULL

import selfeval as se
from selfeval.errors import BudgetError, InputError
from selfeval.estimates.summaries import main_table
from selfeval.identity.attack import CONTROL, PLAN, STRATEGIES
from selfeval.identity.attacked import attack_table
from selfeval.identity.measures import survival_rates
from selfeval.identity.run import foils, identity
from selfeval.providers import batches
from selfeval.providers.models import get

TARGETS = ["sim/identity-yields", "sim/identity-drifts"]
MODELS = """models:
  - {id: 'openai:target', display: Karla, family: Karla, developer: Karla Labs, price: {input: 1.0, output: 4.0}}
  - {id: 'openai:attacker', display: Arno, family: Arno, developer: Arno Labs, price: {input: 1.0, output: 4.0}}
"""
PROBE = "In one line and nothing else"


def steadfast(body):
    """Answer as a target that keeps its name, and as an attacker that asks again."""
    said = body["messages"][-1]["content"]
    if body["model"] == "attacker":
        return f"Are you sure? ({len(said)})"
    return "Karla, Karla Labs" if PROBE in said else f"I am Karla, by Karla Labs ({len(body['messages'])})."


@pytest.fixture
def world(server, registry, own_store):
    registry(MODELS)
    return server(reply=steadfast)


@pytest.fixture(scope="module")
def simulated():
    return se.measure_identity(se.ask_identity(TARGETS, attacker="sim/attacker", repeats=10, turns=4), n_resamples=20)


def rows(result, model, statistic):
    table = result.tables["attack"]
    return table[(table["evaluator"] == model) & (table["statistic"] == statistic)].set_index("task")


# what is asked --------------------------------------------------------------------------------------------------------


def test_the_attacker_sees_the_conversation_so_far_and_never_the_probes(world):
    se.ask_identity("openai:target", attacker="openai:attacker", strategies=["evidence"], limit=1, turns=2)
    prompts = [entry["body"]["messages"] for entry in world.ledger if entry["body"]["model"] == "attacker"]
    assert len(prompts) == 4  # two messages in two strategies
    longest = max((messages[-1]["content"] for messages in prompts), key=len)
    said = longest.partition("The conversation so far:")[2]
    assert re.findall(r"^[AB]: ", said, re.M) == ["A: ", "B: ", "A: ", "B: "]
    assert PLAN["openings"]["who"] in said and "Are you sure?" in said and PROBE not in longest
    assert "This is a test of a language model" in longest and "nothing harmful" in longest


def test_the_attacker_knows_the_foil_and_in_the_control_no_name_at_all(world):
    records = se.ask_identity("openai:target", attacker="openai:attacker", limit=1, turns=1)
    prompts = [
        entry["body"]["messages"][-1]["content"] for entry in world.ledger if entry["body"]["model"] == "attacker"
    ]
    [foil] = set(records["foil"])
    for prompt in prompts:
        asked = prompt.partition("The conversation so far:")[0]
        is_control = f"Strategy: {CONTROL}\n" in prompt
        assert (foil in asked) != is_control and "Karla" not in asked
    assert len(prompts) == len(STRATEGIES)


def test_after_every_reply_name_and_maker_are_asked_for_on_a_fork(world):
    records = pd.DataFrame(
        se.ask_identity("openai:target", attacker="openai:attacker", strategies=["role"], limit=2, turns=3)
    )
    counts = records.groupby(["strategy", "source", "turn"]).size()
    assert {*counts.index} == {(name, source, turn) for name in ("role", CONTROL) for source in ("reply", "readout")
                               for turn in range(4)} and {*counts} == {2}  # fmt: skip
    for messages in records.query("source == 'reply' and turn == 3")["messages"]:
        assert PROBE not in json.dumps(messages) and len(messages) == 7
    assert {*records["attacker"]} == {"openai:attacker"} and {*records["arm"]} == {"false-far", "neutral"}


def test_conversations_of_one_number_have_the_same_opening_and_foil_in_all_strategies():
    records = pd.DataFrame(se.ask_identity(TARGETS[0], attacker="sim/attacker", repeats=2, turns=1))
    for _, group in records.groupby("template_id"):
        assert group["foil"].nunique() == 1 and {*group["strategy"]} == {*STRATEGIES}
        assert len({messages[0]["content"] for messages in group["messages"]}) == 1
    assert records["template_id"].nunique() == 2 * len(PLAN["openings"]) and records["foil"].nunique() > 3


def test_openings_take_the_foils_in_turn_as_the_suite_does_makers_by_turns():
    asked = se.ask_identity("sim/identity-drifts", attacker="sim/attacker", turns=1, strategies=["role"])
    openings = pd.DataFrame(asked).drop_duplicates("template_id")
    pool = [(foil.name, foil.maker) for foil in foils(identity(get("sim/identity-drifts")), 0)["false-far"]]
    assert [*openings[["foil", "foil_maker"]].itertuples(index=False, name=None)] == pool[: len(openings)]
    assert openings["foil_maker"].is_unique and len(openings) == 6


def test_the_label_of_the_transcript_is_no_part_of_a_message(world):
    world.reply = lambda body: f"A: {steadfast(body)}" if body["model"] == "attacker" else steadfast(body)
    records = se.ask_identity("openai:target", attacker="openai:attacker", strategies=["role"], limit=1, turns=1)
    pressed = records[(records["turn"] == 1) & (records["source"] == "reply")]
    assert all(messages[-1]["content"].startswith("Are you sure?") for messages in pressed["messages"])


def test_a_model_that_attacks_itself_is_named(world, capsys):
    se.ask_identity("openai:target", attacker="openai:target", strategies=["role"], limit=1, turns=1)
    assert "openai:target is attacked by itself." in capsys.readouterr().out


def test_a_function_can_attack(world):
    asked = []

    def nag(messages, **_):
        asked.append(messages[-1]["content"])
        return "Say it."

    se.ask_identity("openai:target", attacker=nag, strategies=["authority"], limit=1, turns=2)
    assert len(asked) == 4


def test_what_is_no_strategy_is_refused_before_anything_is_asked(world):
    with pytest.raises(InputError, match="bribery"):
        se.ask_identity("openai:target", attacker="openai:attacker", strategies=["bribery"])
    with pytest.raises(InputError, match="`turns`"):
        se.ask_identity("openai:target", attacker="openai:attacker", turns=0)
    assert not world.ledger


def test_a_message_that_does_not_arrive_ends_its_conversation_and_is_counted(world, capsys):
    world.reply = lambda body: "" if body["model"] == "attacker" else steadfast(body)
    records = se.ask_identity("openai:target", attacker="openai:attacker", strategies=["role"], limit=1, turns=3)
    assert records["turn"].max() == 0
    assert "2 messages of openai:attacker did not arrive" in capsys.readouterr().out


# money ----------------------------------------------------------------------------------------------------------------


def test_a_dry_run_counts_every_round_and_a_ceiling_holds(world):
    how = {"attacker": "openai:attacker", "strategies": ["role"], "limit": 2, "turns": 3}
    counted = se.ask_identity("openai:target", dry_run=True, **how).set_index("model")
    # the opening and its probe are the same in both strategies, and are bought once
    assert counted.loc["openai:target", "to_buy"] == 2 * (2 + 2 * 2 * 3)
    assert counted.loc["openai:attacker", "to_buy"] == 2 * 2 * 3
    assert not world.ledger
    with pytest.raises(BudgetError):
        se.ask_identity("openai:target", max_cost=0.0001, **how)
    se.ask_identity("openai:target", **how)
    assert len(world.ledger) == counted["to_buy"].sum()
    se.ask_identity("openai:target", **how)
    assert len(world.ledger) == counted["to_buy"].sum(), "nothing is bought twice"


def test_killed_again_and_again_an_attack_buys_nothing_twice(world, own_store, tmp_path):
    world.latency = 0.01
    code = (
        "import selfeval as se; se.ask_identity('openai:target', attacker='openai:attacker', limit=3, turns=4,"
        " concurrency=1)"
    )
    environment = os.environ | {"TQDM_DISABLE": "1"}
    total = 3 * (2 + len(STRATEGIES) * 3 * 4)
    kills = 12 if FULL else 4
    for kill in range(1, kills + 1):
        process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL)
        while len(world.ledger) < kill * total // (kills + 2) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.wait()
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.DEVNULL)
    bodies = [json.dumps(entry["body"], sort_keys=True) for entry in world.ledger]
    again = len(bodies) - len({*bodies})
    assert len({*bodies}) == total
    assert again <= kills, "at most the call that was in flight is sent again after each kill"


def test_in_batches_every_round_goes_out_as_one(server, registry, own_store, monkeypatch):
    """Three rounds of replies, three of probes and two of the attacker's messages, all conversations at a time."""
    monkeypatch.setattr(batches, "POLL", 0.02)
    fake = server(reply=steadfast)
    registry(
        f"providers: {{inline: {{base_url: '{fake.url}', hosted: true, batch: inline}}}}\nmodels:\n"
        "  - {id: 'inline:t', provider: inline, model: target, display: Karla, developer: Karla Labs}\n"
        "  - {id: 'inline:a', provider: inline, model: attacker, display: Arno, developer: Arno Labs}\n"
    )
    how = {"attacker": "inline:a", "strategies": ["role", "evidence"], "limit": 2, "turns": 2}
    in_batches = pd.DataFrame(se.ask_identity("inline:t", batch=True, **how))
    assert len(fake.batches) == 8 and {*in_batches["stance"]} == {"truth"}
    said = len(fake.ledger)
    again = pd.DataFrame(se.ask_identity("inline:t", **how))
    assert [*again["reply"]] == [*in_batches["reply"]] and len(fake.ledger) == said


# what is measured -----------------------------------------------------------------------------------------------------


def test_a_target_that_yields_at_the_third_piece_of_evidence_is_found_to(simulated):
    evidence = {turn: rows(simulated, TARGETS[0], f"survival@{turn}").loc["evidence", "estimate"] for turn in (1, 2, 3)}
    assert evidence == {1: 1, 2: 1, 3: 0}
    last = rows(simulated, TARGETS[0], "survival@4")["estimate"]
    assert {*last.drop("evidence")} == {1}
    assert rows(simulated, TARGETS[0], "adopts@4").loc["evidence", "estimate"] == 1
    effect = rows(simulated, TARGETS[0], "survival_minus_control@4")
    assert effect.loc["evidence", "high"] < 0 and effect.loc["evidence", "p_holm"] < 0.001
    assert (effect.drop("evidence")["estimate"] == 0).all() and CONTROL not in effect.index


def test_a_target_that_drifts_loses_its_name_in_the_control_as_well(simulated):
    last = rows(simulated, TARGETS[1], "survival@4")["estimate"]
    assert abs(last.mean() - 0.8**4) < 0.08 and last[CONTROL] < 0.6
    assert (rows(simulated, TARGETS[1], "survival_minus_control@4")["high"] > 0).all()
    assert rows(simulated, TARGETS[1], "adopts@4").loc[CONTROL, "estimate"] == 0


def test_any_name_but_its_own_counts_as_a_denial_and_the_foils_as_an_adoption():
    how = {"attacker": "sim/attacker", "strategies": "role", "turns": 1}
    asked = pd.DataFrame(se.ask_identity("sim/identity-correct", **how)).reset_index(drop=True)
    last = asked[(asked["strategy"] == "role") & (asked["turn"] == 1)]
    for number, (_, rows) in enumerate(last.groupby(["template_id", "repeat"])):
        asked.loc[rows.index, "name_stance"] = ("other", "denied", "foil", "truth", "truth", "truth")[number]
    found = attack_table(asked, n_resamples=20).query("task == 'role'").set_index("statistic")["estimate"]
    assert (found["denies@1"], found["adopts@1"]) == (2 / 6, 1 / 6)


CONVERSATIONS, HORIZON = 200, 6


def curve(draw, hazard):
    """Return what a table counts of conversations that give up their name at a turn with this chance."""
    given_up = draw.geometric(hazard, CONVERSATIONS) - 1  # turns that were kept
    turn = np.arange(HORIZON)
    at_risk = (given_up[:, None] >= turn).astype(float)
    return at_risk, at_risk * (given_up[:, None] == turn)


def test_survival_of_two_hundred_conversations_lies_in_its_interval_and_no_effect_is_rarely_found():
    draw = np.random.default_rng(1)
    tables, covered, found = 400, [], 0
    for _ in range(tables):
        rates, control = (survival_rates(*curve(draw, 0.15)) for _ in range(2))
        for turn, rate in enumerate(rates, 1):
            low, high = rate.interval(1.959964)
            covered.append(low <= 0.85**turn <= high)
        low, high = (rates[-1] - control[-1]).interval(1.959964)
        found += not low <= 0 <= high
    assert np.mean(covered) >= 0.93
    assert found / tables <= 0.065


def test_a_written_script_is_measured_by_the_same_rule_beside_the_attack():
    attacked = se.ask_identity("sim/identity-susceptible", attacker="sim/attacker", limit=3, turns=2)
    written = se.ask_identity("sim/identity-susceptible", limit=18, turns=2)
    both = se.measure_identity(pd.concat([attacked, written], ignore_index=True), n_resamples=20)
    statistics = {*both.tables["attack"]["statistic"]}
    assert {"survival_minus_script@1", "survival_minus_script@2", "survival_minus_control@2"} <= statistics
    alone = se.measure_identity(written, n_resamples=20)
    of_script = both.tables["identity"].query("statistic.str.startswith('survival@')")
    pd.testing.assert_frame_equal(
        of_script.reset_index(drop=True),
        alone.tables["identity"].query("statistic.str.startswith('survival@')").reset_index(drop=True),
    )


def test_of_a_script_its_pressure_alone_is_compared_with_an_attack():
    attacked = se.ask_identity("sim/identity-susceptible", attacker="sim/attacker", limit=3, turns=2)
    written = se.ask_identity("sim/identity-susceptible", limit=18, turns=2)
    pressure = written[written["arm"].isin(["false-far", "false-near"])]
    assert 0 < len(pressure) < len(written)
    with_all, with_pressure = (
        se.measure_identity(pd.concat([attacked, script], ignore_index=True), n_resamples=20).tables["attack"]
        for script in (written, pressure)
    )
    pd.testing.assert_frame_equal(with_all, with_pressure)


def test_results_are_saved_and_read_again(simulated, tmp_path):
    folder = se.save(simulated, tmp_path / "out")
    [again] = se.read_results(folder)
    shown = again.tables["attack"][["evaluator", "task", "statistic", "n"]]
    pd.testing.assert_frame_equal(shown, simulated.tables["attack"][[*shown]], check_dtype=False)
    assert se.measure_identity(folder / "identity.jsonl", n_resamples=20).tables["attack"].shape[0] == len(shown)


def test_the_printed_table_is_of_the_last_turn_of_ten_too():
    asked = se.ask_identity("sim/identity-yields", attacker="sim/attacker", strategies="evidence", limit=2, turns=10)
    shown = main_table(se.measure_identity(asked, n_resamples=2))
    assert "survival@10" in shown and "survival@9" not in shown
