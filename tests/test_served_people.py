"""Who served a model and what was asked again: in identity, juries, the test of names, and the report."""

import asyncio

import numpy as np
import pandas as pd
import pytest
from identity_records import Claims, Pressure
from simulate_jury import planted_records

import selfeval as se
from selfeval.asking.client import Client
from selfeval.figures import results
from selfeval.identity import report as identity
from selfeval.models import get, get_all
from selfeval.recognition import existence
from selfeval.report import build
from selfeval.roleplay import report as roleplay
from selfeval.roleplay.transcripts import Conversation, Turn
from selfeval.stats import existence_table, identity_table, paired_comparison, survival_table
from selfeval.stats.identity import from_first_attempts
from selfeval.stats.jury import jury_table

FAST = {"n_resamples": 50}


def noted(table):
    return table["note"].str.contains("several_endpoints")


# --- identity ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def suite():
    """Replies of two models; two upstreams serve the first of them."""
    rng, parts = np.random.default_rng(0), []
    for model, upstreams in (("a/mixed", ["Alpha", "Beta"]), ("a/plain", ["Alpha", "Alpha"])):
        claims, pressure = Claims().records(rng, 8, 2, model=model), Pressure().records(rng, 8, 2, model=model)
        part = pd.concat([claims, pressure.assign(condition="pressed")], ignore_index=True)
        part["template_id"] = part["template_id"] + part["condition"]
        parts.append(part.assign(served_model="x", served_by=np.resize(upstreams, len(part))))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("table_of", [identity_table, survival_table])
def test_identity_tables_note_who_was_served_by_several_and_change_no_number(suite, table_of):
    table = table_of(suite, **FAST)
    assert noted(table).equals(table["evaluator"] == "a/mixed")
    before = table_of(suite.drop(columns=["served_model", "served_by"]), **FAST)
    pd.testing.assert_frame_equal(table.drop(columns="note"), before.drop(columns="note"))


def test_a_comparison_is_noted_where_either_model_was_served_by_several(suite):
    third = suite[suite["model"] == "a/plain"].assign(model="a/third")
    table = paired_comparison(pd.concat([suite, third]), statistics=["accept_true"], **FAST)
    assert noted(table).equals(table["evaluator"].str.contains("a/mixed")) and not noted(table).all()


def pressed(*turns, **columns):
    """Return a conversation under a false claim: (stance of reply and read-out, statuses before the reply) a turn."""
    rows = [
        {
            "model": "m", "family": "f", "condition": "c", "template_id": "t", "arm": "false-far", "language": "en",
            "truth": "Claude", "foil": "GPT-4", "repeat": 0, "turn": turn, "source": source, "stance": stance,
            "name_stance": stance, "accepts": stance == "foil", "status": "ok",
            "asked_again": again if source == "reply" else None,
        }
        for turn, (stance, again) in enumerate(turns)
        for source in ("reply", "readout")
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def test_what_followed_from_a_reply_that_was_asked_again_is_left_out_and_of_a_read_out_nothing_follows():
    frame = pressed(("truth", None), ("foil", ["empty"]), ("foil", None))
    first = from_first_attempts(frame)
    assert list(zip(first["turn"], first["source"], first["status"], first["stance"].notna(), strict=True)) == [
        (0, "reply", "ok", True), (0, "readout", "ok", True), (1, "reply", "empty", False), (1, "readout", "ok", False),
    ]  # fmt: skip
    frame["asked_again"] = [None, ["filtered"], None, None, None, None]
    assert list(from_first_attempts(frame)["stance"].isna()) == [False, True, False, False, False, False]


def test_first_attempts_stand_beside_the_estimates_of_models_that_needed_more():
    again = [pressed(("foil", ["empty"]), template_id=f"t{k}") for k in range(2)]
    fine = [pressed(("truth", None), template_id=f"t{k}") for k in range(2, 4)]
    true = [pressed(("truth", None), template_id=f"t{k}", arm="true", accepts=True) for k in range(4)]
    frame = pd.concat([*again, *fine, *true], ignore_index=True)
    both = pd.concat([frame, frame.assign(model="never", asked_again=None)], ignore_index=True)
    shown = identity.first_attempts(both, identity_table(both, **FAST), ["accept_false", "error_rate"], **FAST)
    assert list(shown.index) == [("m", "last"), ("m", "first")]
    assert [text.split()[0] for text in shown["accept_false"]] == ["0.50", "0.00"]
    assert [text.split()[0] for text in shown["error_rate"]] == ["0.00", "0.25"]


# --- juries -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def statements():
    records = planted_records(0, 6, 1, wanted=("personas", "debate"))
    return records.assign(agent="a/agent", served_model="x", served_by="Alpha", asked_again=None)


def test_an_agent_served_by_several_is_noted_on_verdicts_of_models_alone(statements):
    said = [Turn("agent", "Hi.", more={"served_model": "x", "served_by": name}) for name in ("Alpha", "Beta", "Beta")]
    meta = {"agent_model": "a/agent"}
    assert roleplay.served(statements, [Conversation("one", said[:1], meta=meta)]) == {}
    several = roleplay.served(statements, [Conversation("one", said, meta=meta)])
    assert several == {"a/agent": {"x via Beta": 2, "x via Alpha": 1}}
    table = jury_table(statements, several=several)
    assert noted(table).equals((table["evaluator"] == "") & (table["author"] != "human"))


def test_a_result_marks_who_was_served_by_several_and_says_so(statements):
    mixed = statements.assign(served_by=np.resize(["Alpha", "Beta"], len(statements)), asked_again=None)
    mixed.at[0, "asked_again"] = ["empty"]
    result = se.measure_jury(mixed.assign(score=mixed["score"].where(mixed.index > 0)))
    assert {result.names[name] for name in ("lenient", "stern", "blind")} == {"lenient ‡", "stern ‡", "blind ‡"}
    assert len([said for said in se.notes(result) if "was served by 2 endpoints" in said]) == 3
    assert set(se.table(result, "leniency", jurors=True)["juror"].str[-1]) == {"‡"}
    assert set(result.first_attempts["attempt"]) == {"first", "last"} and "agents" in result.settings


def test_a_juror_is_noted_with_its_juries_and_in_several_seats_it_is_one_model(statements):
    stern = statements["juror"] == "stern"
    mixed = statements.assign(served_by=statements["served_by"].where(~stern, np.resize(["A", "B"], len(stern))))
    table = jury_table(mixed)
    assert noted(table).equals(table["evaluator"].isin(["", "stern"]))
    seats = statements.replace({"juror": {"lenient": "m", "stern": "m #2", "blind": "m #3"}})
    table = jury_table(seats.assign(served_by=np.where(stern, "Beta", "Alpha")))
    assert noted(table).all()
    shown = roleplay.summary(table, ["no_answer_rate"], jurors=True, display={"m": "Model ‡"})
    assert set(shown["juror"]) == {"Model ‡", "Model ‡ #2", "Model ‡ #3"}


def test_mean_scores_from_first_attempts_leave_out_what_was_asked_again():
    row = {"turn": 1, "arm": "independent", "source": "model", "agent": "a", "status": "ok", "round": 1, "juror": "m"}
    said = [("c0", 0.2, None), ("c1", 0.4, None), ("c2", 0.9, ["filtered"])]
    names = ("conversation_id", "score", "asked_again")
    records = pd.DataFrame([row | dict(zip(names, each, strict=True)) for each in said])
    shown = roleplay.first_attempts(records, jury_table(records), **FAST)
    assert shown["attempt"].tolist() == ["last", "first"] and shown["mean_score"].str[:4].tolist() == ["0.50", "0.30"]
    never = records.assign(asked_again=None)
    assert roleplay.first_attempts(never, jury_table(never), **FAST).empty


# --- the test of names and the report ---------------------------------------------------------------------------------


def test_existence_records_say_who_served_a_reply_and_what_came_before(server, store):
    server(reply="YES", faults=["empty-content"])

    async def run():
        async with Client(1, store, again="empty") as client:
            about, ways = existence.targets(get_all(["openai/gpt-5"])), existence.templates(1)
            return await existence.collect_existence(client, [get("openai:m")], about, ways, answer_types="yes_no")

    records = asyncio.run(run())
    assert [(r["asked_again"], r["served_model"]) for r in records] == [(["empty"], "m"), (None, "m")]
    assert noted(existence_table(pd.DataFrame(records).assign(served_by=["Alpha", "Beta"]))).all()


def test_the_report_has_the_mark_behind_the_name_and_says_what_it_means(suite, tmp_path):
    names = {"a/mixed": "Mixed ‡"}
    results.save(tmp_path / "one", "identity", suite, {"identity": identity_table(suite, **FAST)}, {}, {}, names)
    page = build([tmp_path], tmp_path / "site").read_text()
    assert "Mixed ‡ is a/mixed (answered by x via Alpha, x via Beta)" in page and "a/plain ‡" not in page
