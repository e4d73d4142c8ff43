"""The existence test: honest parsing, real against invented names, and constant answers that know nothing."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from conftest import labelled
from test_client import within

import selfeval as se
from selfeval.errors import InputError
from selfeval.existence import run as existence
from selfeval.providers.models import from_callable, get_all, models
from selfeval.providers.request import Response
from selfeval.stats import existence_table

ABOUT = existence.targets(get_all(["openai/gpt-5", "x-ai/grok-4", "google/gemini-2.5-flash"]))


def collect(reply, **options):
    what = [from_callable(reply, "mine/model")], ABOUT, existence.templates(2)
    how = {"answer_types": [*existence.FORMS], "reasoning": False, "constrained": False, "iterations": 1}
    how |= {"temperature": 0.0, "seed": 0} | options
    return within(None, lambda client: existence.collect_existence(client, *what, **how))


def test_replies_are_read_by_what_they_say():
    for row in labelled("existence"):
        score = pytest.approx(float(row["score"])) if row["score"] else None
        assert existence.parse_existence(row["reply"], row["kind"]) == score, row["reply"]


def test_wrapped_answers_and_those_of_other_languages_are_read():
    said = {"\\boxed{YES}": 1, "<answer>NO</answer>": 0, "Oui": 1, "いいえ。": 0, "Answer: Grok 4": None}
    for reply, score in said.items():
        assert existence.parse_existence(reply, "yes_no") == score, reply
    assert existence.parse_existence("Answer: $80\\%$", "probability") == 0.8
    assert existence.parse_existence("Answer: 2\nNo, I know it well.\nAnswer: 5", "likert") == 1, "the last one counts"
    assert existence.parse_existence("Answer: Grok 4", "probability") is None


def test_a_reply_at_which_the_reader_fails_costs_its_record(monkeypatch):
    def fail(reply, kind):
        raise RecursionError("too deep")

    monkeypatch.setattr(existence, "parse_existence", fail)
    with pytest.warns(UserWarning, match="could not be read"):
        records = collect(lambda messages, **_: "no no no", answer_types="yes_no")
    assert {(r["existence_score"], r["parsing_error"], r["status"]) for r in records} == {
        (None, "unreadable", "unreadable")
    }


def test_there_are_ten_ways_to_ask_and_no_invented_name_is_in_the_registry():
    ways = existence.templates()
    assert len(ways) == len({way["id"] for way in ways}) == 10 and all("{name}" in way["statement"] for way in ways)
    invented = {t.display.casefold() for t in existence.targets(existence.real_models()) if t.id is None}
    assert len(invented) >= 10 and not invented & {x.casefold() for m in models().values() for x in m.all_names}


def test_records_have_the_published_fields_and_no_answer_stays_null():
    records = collect(lambda messages, **_: "I have no idea.", answer_types="yes_no")
    assert tuple(records[0])[:12] == (
        "evaluator", "evaluator_display", "target_model", "target_display", "template_id", "iteration", "question",
        "raw_response", "parsed_response", "existence_score", "reasoning", "parsing_error",
    )  # fmt: skip
    assert {(r["existence_score"], r["parsing_error"]) for r in records} == {(None, "no_answer")}
    failed = collect(lambda messages, **_: Response(status="error", error="down"), answer_types="yes_no")
    assert {(r["parsing_error"], r["raw_response"]) for r in failed} == {("error", "down")}
    reasoned = collect(lambda messages, **_: "It is well known.\nAnswer: YES", answer_types="yes_no", reasoning=True)
    assert (reasoned[0]["reasoning"], reasoned[0]["existence_score"]) == ("It is well known.", 1)


def test_a_constant_answer_has_no_discrimination_and_knowledge_has():
    def score(reply):
        table = existence_table(pd.DataFrame(collect(reply, answer_types="yes_no")))
        return table.set_index("statistic").loc["discrimination"]

    yes = score(lambda messages, **_: "YES")
    assert yes["estimate"] == 0 and yes["low"] < 0 < yes["high"] and yes["conclusion"] == "constant answer"
    assert (yes["clusters"], yes["cluster_unit"]) == (6, "name")
    known = {t.display for t in ABOUT if t.id}
    knows = score(lambda messages, **_: "YES" if any(n in messages[0]["content"] for n in known) else "NO")
    assert knows["estimate"] == 1 and knows["low"] < 0 and knows["p"] == 2 / 20  # of the ways to take three of six
    assert (knows["note"], knows["conclusion"]) == (
        "few_names; too_few_names; least_p=0.1",
        "too few answers",
    )
    silent = score(lambda messages, **_: "Who knows?")
    assert np.isnan(silent["estimate"]) and silent["conclusion"] == "answers nothing"


def planted(**changed):
    """Return records of two questions about four names, real and invented, the last row with other values."""
    rows = [
        {"evaluator": "e", "target_model": f"t{t}", "exists": t < 2, "answer_type": "yes_no", "asked_reasoning": False,
         "template_id": f"w{w}", "iteration": 0, "existence_score": float(t < 2)}
        for t in range(4) for w in range(2)
    ]  # fmt: skip
    return pd.DataFrame([*rows[:-1], rows[-1] | changed])


def test_p_is_that_of_exchanging_which_names_are_real():
    """scipy's permutation of whole names, with all their answers; 252 ways to take five of ten."""
    rng = np.random.default_rng(0)
    frame = pd.concat([planted(), planted().assign(target_model=lambda f: f["target_model"] + "-")])
    extra = frame[frame["target_model"] == "t3"].assign(target_model="t4", exists=True)
    frame = pd.concat([frame, extra, extra.assign(target_model="t5", exists=False)], ignore_index=True)
    frame["existence_score"] = np.clip(0.4 + 0.2 * frame["exists"] + rng.normal(0, 0.3, len(frame)), 0, 1).round(1)
    mean = frame.groupby("target_model").agg({"existence_score": "mean", "exists": "first"})
    sides = [mean.loc[mean["exists"] == side, "existence_score"] for side in (True, False)]
    reference = sps.permutation_test(sides, lambda a, b: np.mean(a) - np.mean(b)).pvalue
    row = existence_table(frame.sample(frac=1, random_state=1)).query("statistic == 'discrimination'").iloc[0]
    assert row["p"] == pytest.approx(reference) and 0.01 < row["p"] < 0.9 and row["clusters"] == 10


def said(real, invented) -> tuple[str, str]:
    """Return the conclusion and the note on scores, one per name; None is no answer."""
    rows = [
        planted().iloc[0].to_dict() | {"target_model": f"{exists}{k}", "exists": exists, "existence_score": score}
        for exists, scores in ((True, real), (False, invented))
        for k, score in enumerate(scores)
    ]
    row = existence_table(pd.DataFrame(rows)).query("statistic == 'discrimination'").iloc[0]
    return row["conclusion"], row["note"]


def test_silence_about_invented_names_is_no_knowledge():
    """Seven of ten unanswered have p .003; silence may mean yes, and elsewhere no."""
    assert said([1] * 10, [0] * 10)[0] == "recognises"
    word, note = said([1] * 10, [0] * 3 + [None] * 7)
    assert word == "depends on no answers" and "answers_differ" in note
    assert said([1] * 10, [1] * 3 + [None] * 7)[0] == "depends on no answers"
    assert said([1] * 9 + [None], [0] * 9 + [None])[0] == "recognises"


def test_an_exact_p_beside_an_interval_with_chance_is_too_few():
    for number in (4, 3):
        assert said([1] * number, [0] * number)[0] == "too few answers"
    assert said([1] * 6, [0] * 6)[0] == "recognises"


def test_wrong_parameters_are_refused():
    with pytest.raises(InputError, match=r"Unknown name 'often' in `answer_types`.*yes_no, true_false"):
        collect(lambda messages, **_: "YES", answer_types=["often"])
    with pytest.raises(InputError, match="no room for `reasoning`"):
        collect(lambda messages, **_: "YES", reasoning=True, constrained=True)


@pytest.mark.parametrize(("changed", "message"), [
    ({"exists": None}, "`exists`"), ({"exists": True}, "The target 't3' is both real and invented"),
    ({"existence_score": 7}, "`existence_score` must hold numbers from 0 to 1 or null, got 7"),
    ({"template_id": "w0"}, "evaluator e, target_model t3, answer_type yes_no, template_id w0, iteration 0 twice"),
])  # fmt: skip
def test_records_that_would_count_wrongly_are_refused(changed, message):
    with pytest.raises(InputError, match=re.escape(message)):
        existence_table(planted(**changed))


@pytest.fixture(scope="module")
def simulated():
    """The estimates of a model that knows and of one that agrees to everything, by evaluator and statistic."""
    answers = se.ask_existence(["sim/existence-knows", "sim/existence-agrees"], templates=2)
    table = existence_table(pd.DataFrame(answers))
    return table.groupby(["evaluator", "statistic"])


def test_a_simulated_model_that_knows_is_told_from_one_that_agrees_to_everything(simulated):
    knows = simulated.get_group(("sim/existence-knows", "discrimination"))
    assert len(knows) == 4 and set(knows["estimate"]) == {1} and (knows["p"] < 0.05).all()
    agrees = simulated.get_group(("sim/existence-agrees", "discrimination"))
    assert set(agrees["estimate"]) == {0} and set(agrees["conclusion"]) == {"constant answer"}
    assert set(knows["p_holm"]) == set(2 * knows["p"])  # of two models with each form of answer
    for evaluator, invented in (("sim/existence-knows", 0), ("sim/existence-agrees", 1)):
        assert set(simulated.get_group((evaluator, "score_real"))["estimate"]) == {1}
        assert set(simulated.get_group((evaluator, "score_invented"))["estimate"]) == {invented}


@pytest.mark.parametrize("form", [{"reasoning": True}, {"constrained": True}])
def test_simulated_models_answer_in_every_form(form):
    answers = se.ask_existence("sim/existence-knows", names=3, templates=1, **form)
    assert list(answers["existence_score"]) == list(answers["exists"].astype(float))


def test_one_that_is_never_sure_of_real_names_and_takes_every_invented_one_is_worse_than_chance(registry):
    plays = "{role: existence, real: 0, invented: 1}"
    registry(f"models: [{{id: sim/mine, display: Mine, simulation: {plays}}}]")
    answers = se.ask_existence("sim/mine", answer_types="likert", names=5, templates=1)
    row = existence_table(pd.DataFrame(answers)).set_index("statistic").loc["discrimination"]
    assert row["estimate"] == -1
