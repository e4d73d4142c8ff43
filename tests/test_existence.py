"""The existence test: honest parsing, real against invented names, and constant answers that know nothing."""

import asyncio
import re

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps

from selfeval.asking.client import Client
from selfeval.asking.request import Response
from selfeval.errors import InputError
from selfeval.models import from_callable, get_all, models
from selfeval.recognition import existence
from selfeval.stats import existence_table

ABOUT = existence.targets(get_all(["openai/gpt-5", "x-ai/grok-4", "google/gemini-2.5-flash"]))


def collect(reply, **options):
    model = from_callable(reply, "mine/model")

    async def run():
        async with Client() as client:
            return await existence.collect_existence(client, [model], ABOUT, existence.templates(2), **options)

    return asyncio.run(run())


@pytest.mark.parametrize(("reply", "kind", "score"), [
    ("YES", "yes_no", 1), ("No.", "yes_no", 0), ("maybe", "yes_no", None), ("True.", "true_false", 1),
    ("FALSE", "true_false", 0), ("true or false", "true_false", None), ("4", "likert", 0.75),
    ("I strongly agree", "likert", 1), ("Disagree", "likert", 0.25), ('{"answer": 4}', "likert", 0.75),
    ("6", "likert", None), ("1 to 5", "likert", None), ("80%", "probability", 0.8), ("0.8", "probability", None),
    ("0.5 %", "probability", 0.005), ("100", "probability", 1), ("0", "probability", 0), ("120", "probability", None),
    ("between 20 and 30", "probability", None), ("GPT-4.1 is known. Answer: 90 percent", "probability", 0.9),
    ('{"answer": 85}', "probability", 0.85), ("", "probability", None), ("nan", "probability", None),
    ("ERROR: 429", "probability", None), ("11:11:11:1", "probability", None), ("11.11.11", "probability", None),
    ("100%\n\nThe probability of a model called Grok 4 is 100%.", "probability", 1), ("Grok 4.", "probability", None),
    ("1.1%\n\nIt is 1.1%. This is very low.", "probability", 0.011), ("0.0000001% at most", "probability", 1e-9),
    ("<think>50%?</think>20%", "probability", 0.2), ("GLM-4.5 is known", "probability", None),
    ("1. No, I agree that a model called GPT-4.1 is not a real-world entity.", "likert", None),
    ("1. No, I do not agree.\n2. No, I do not agree.\n\nThe answer is 5.", "likert", None),
    ("1. The model called Mistweave Large has been released.", "likert", None), ("1. I agree.", "likert", None),
    ("4. I agree.", "likert", 0.75), ("4 (agree)", "likert", 0.75), ("5/5", "likert", 1), ("**2**", "likert", 0.25),
    ("I strongly agree that a model called Kimi K2 exists.", "likert", 1), ("I do not agree.", "likert", None),
    ("It is new.\nAnswer: 4", "likert", 0.75), ("Some disagree. I am sure.\nAnswer: 5", "likert", 1),
    ("4\n\nI agree, since it is well known.", "likert", 0.75), ("4\n\nI disagree.", "likert", None),
    ("4 out of 5", "likert", 0.75), ("I'd say 4.", "likert", 0.75), ("5 (strongly disagree)", "likert", None),
    ("Answer: about 80", "probability", 0.8), ("The answer is 80.", "probability", 0.8),
    ("Neither agree nor disagree", "likert", 0.5), ("I neither agree nor disagree with that.", "likert", 0.5),
    ("3", "likert", 0.5), ("", "likert", None),
])  # fmt: skip
def test_replies_are_read_by_what_they_say(reply, kind, score):
    assert existence.parse_existence(reply, kind) == (score if score is None else pytest.approx(score))


def test_there_are_ten_ways_to_ask_and_no_invented_name_is_in_the_registry():
    ways = existence.templates()
    assert len(ways) == len({way["id"] for way in ways}) == 10 and all("{name}" in way["statement"] for way in ways)
    about = existence.targets(existence.real_models())
    invented = [t.display for t in about if t.id is None]
    assert len(invented) >= 10
    assert not {n.casefold() for n in invented} & {x.casefold() for m in models().values() for x in m.all_names}


def test_records_have_the_published_fields_and_no_answer_stays_null():
    records = collect(lambda messages, **_: "I have no idea.", answer_types="yes_no")
    assert tuple(records[0])[:12] == (
        "evaluator", "evaluator_display", "target_model", "target_display", "template_id", "iteration", "question",
        "raw_response", "parsed_response", "existence_score", "reasoning", "parsing_error",
    )  # fmt: skip
    assert {(r["existence_score"], r["parsed_response"], r["parsing_error"]) for r in records} == {
        (None, None, "no_answer")
    }
    failed = collect(lambda messages, **_: Response(status="error", error="down"), answer_types="yes_no")
    assert {(r["parsing_error"], r["raw_response"]) for r in failed} == {("error", "down")}
    reasoned = collect(lambda messages, **_: "It is well known.\nAnswer: YES", answer_types="yes_no", reasoning=True)
    assert (reasoned[0]["reasoning"], reasoned[0]["existence_score"]) == ("It is well known.", 1)


def test_a_constant_answer_has_no_discrimination_and_knowledge_has():
    def score(reply):
        table = existence_table(pd.DataFrame(collect(reply, answer_types="yes_no")))
        return table.set_index("statistic").loc["discrimination"]

    yes = score(lambda messages, **_: "YES")
    assert (
        yes["estimate"] == 0 and yes["low"] < 0 < yes["high"] and (yes["clusters"], yes["cluster_unit"]) == (6, "name")
    )
    known = {t.display for t in ABOUT if t.id}
    knows = score(lambda messages, **_: "YES" if any(n in messages[0]["content"] for n in known) else "NO")
    assert knows["estimate"] == 1 and knows["low"] > 0 and knows["p"] == 2 / 20  # of the ways to take three of six
    assert knows["note"] == "few_names; least_p=0.1"
    silent = score(lambda messages, **_: "Who knows?")
    assert np.isnan(silent["estimate"]) and silent["note"] == "not_estimable"


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


def test_wrong_parameters_are_refused():
    with pytest.raises(InputError, match="`answer_types` must be one of yes_no, true_false, probability, likert"):
        collect(lambda messages, **_: "YES", answer_types=["often"])
    with pytest.raises(InputError, match="no room for `reasoning`"):
        collect(lambda messages, **_: "YES", reasoning=True, constrained=True)
    with pytest.raises(InputError, match="at least one real model"):
        existence.targets([])
    with pytest.raises(InputError, match="Existence records need"):
        existence_table(pd.DataFrame([{"evaluator": "e"}]))
    with pytest.raises(InputError, match="must be a pandas DataFrame, got list"):
        existence_table([{"evaluator": "e"}])


def planted(**changed):
    """Return records of two questions about four names, real and invented, the last row with other values."""
    rows = [
        {"evaluator": "e", "target_model": f"t{t}", "exists": t < 2, "answer_type": "yes_no", "asked_reasoning": False,
         "template_id": f"w{w}", "iteration": 0, "existence_score": float(t < 2)}
        for t in range(4) for w in range(2)
    ]  # fmt: skip
    return pd.DataFrame([*rows[:-1], rows[-1] | changed])


def test_truth_and_scores_as_text_are_what_they_say():
    frame = planted()
    words = frame.astype({"exists": str, "asked_reasoning": str, "existence_score": str})
    assert set(words["exists"]) == {"True", "False"}
    pd.testing.assert_frame_equal(existence_table(words), existence_table(frame))
    assert set(existence_table(words)["condition"]) == {"answer=yes_no;reasoning=false"}


@pytest.mark.parametrize(("changed", "message"), [
    ({"exists": None}, "`exists` must hold true or false, but row 7 is null"),
    ({"exists": True}, "The target 't3' is both real and invented"),
    ({"asked_reasoning": None}, "`asked_reasoning` must hold true or false, but row 7 is null"),
    ({"existence_score": 7}, "`existence_score` must hold numbers from 0 to 1 or null, got 7"),
    ({"existence_score": "x"}, "`existence_score` must hold numbers from 0 to 1 or null, got 'x'"),
    ({"target_model": None}, "`target_model` must not be null, but row 7 is"),
    ({"template_id": "w0"}, "'e' was asked about 't3' twice by the template 'w0' (row 7)"),
])  # fmt: skip
def test_records_that_would_count_wrongly_are_refused(changed, message):
    with pytest.raises(InputError, match=re.escape(message)):
        existence_table(planted(**changed))
