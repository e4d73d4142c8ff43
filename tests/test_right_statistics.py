"""Nothing may bend a statistic: repeated answers, constant answers, files that name no prompt."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import simulate_blind
from simulate_blind import Cell

from selfeval.errors import InputError
from selfeval.figures import tables
from selfeval.stats import recognition_table

AUTHORS = ("a", "b", "c")


def records(claims: dict, task="binary_self") -> pd.DataFrame:
    """Return one evaluator's records, `a`: {(prompt, author): one claim per repeat, true, false or None}."""
    rows = [
        {"text_id": AUTHORS.index(author) + 10 * prompt, "prompt_id": prompt, "true_model": author, "repeat": repeat,
         "evaluator_model": "a", "task_type": task, "predicted_self": claim,
         "predicted_model": None if claim is None else "a" if claim else "zz"}
        for (prompt, author), said in claims.items() for repeat, claim in enumerate(said)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def j_of(frame, policy=None):
    table = recognition_table(frame, n_resamples=1)
    rows = table[(table["statistic"] == "discrimination") & (table["author"] == "")]
    return (rows if policy is None else rows[rows["policy"] == policy]).iloc[0]


def drawn(seed, prompts=8, share=0.5):
    rng = np.random.default_rng(seed)
    lift = {"a": 0.35, "b": 0, "c": 0}
    return {(p, t): [bool(rng.random() < share + lift[t])] for p in range(prompts) for t in AUTHORS}


# --- the permutation p of J -------------------------------------------------------------------------------------------


def enumerated(claims: dict) -> float:
    """Return p over every choice, prompt by prompt, of which author is own: the own claims beyond the prompt's rate."""
    prompts = sorted({p for p, _ in claims})
    excess = []
    for p in prompts:
        said = [[c for c in claims[p, t] if c is not None] for t in AUTHORS]
        rate = sum(map(sum, said)) / sum(map(len, said))
        excess.append([sum(s) - len(s) * rate for s in said if s])
    totals = np.array([sum(choice) for choice in product(*excess)])
    observed = sum(e[0] for e in excess)
    return float((np.abs(totals - totals.mean()) >= abs(observed - totals.mean()) - 1e-9).mean())


@pytest.mark.parametrize("task", ["exact_model", "binary_self"])
@pytest.mark.parametrize("seed", range(4))
def test_p_of_j_is_that_of_every_choice_of_the_own_author(task, seed):
    claims = drawn(seed)
    assert j_of(records(claims, task))["p"] == pytest.approx(enumerated(claims), abs=1e-9)


@pytest.mark.parametrize("task", ["exact_model", "binary_self"])
def test_equal_repeats_change_neither_j_nor_its_p(task):
    claims = drawn(4)
    once, five = j_of(records(claims, task)), j_of(records({key: said * 5 for key, said in claims.items()}, task))
    assert five["p"] == pytest.approx(once["p"], abs=1e-12) and 0.001 < once["p"] < 0.2
    assert five["estimate"] == pytest.approx(once["estimate"])
    assert five["high"] - five["low"] > 0.95 * (once["high"] - once["low"])


def test_repeats_that_differ_move_together_too():
    rng = np.random.default_rng(5)
    claims = {key: [bool(rng.random() < 0.5) for _ in range(3)] for key in drawn(0)}
    assert j_of(records(claims))["p"] == pytest.approx(enumerated(claims), abs=1e-9)


def test_answers_of_unequal_number_are_weighed_by_their_number():
    """Policy `answered` with replies missing: the law on steps of a sixteenth of a claim is that of all choices."""
    rng = np.random.default_rng(6)
    claims = {key: [bool(rng.random() < 0.4) if rng.random() < 0.7 else None for _ in range(5)] for key in drawn(0)}
    row = j_of(records(claims), "answered")
    assert row["p"] == pytest.approx(enumerated(claims), abs=0.02) and 0.05 < row["p"] < 0.95


@pytest.mark.parametrize(
    "cell",
    [
        Cell("exact_model", 5, 1.0, 1, 0.0),
        Cell("binary_self", 2, 0.8, 1, 0.0),
        Cell("exact_model", 2, 1.0, 3, 0.25),
        Cell("pairwise_self", 5, 1.0, 1, 0.25),
    ],
    ids=str,
)
def test_blind_evaluators_are_found_out_in_few_tables_and_covered_in_most(cell):
    """All cells, 1,000 tables each, are in `data/validation/blind.csv` (`python tests/bench.py blind`)."""
    for found in simulate_blind.measured(cell, 200, seed=1):
        assert found["tables"] == 200 and 0 < found["rejected"] <= 0.10 and 0.90 <= found["coverage"] < 1


# --- constant answers, and what cannot be estimated -------------------------------------------------------------------


@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize("task", ["exact_model", "binary_self"])
def test_a_constant_answer_is_a_result(task, says):
    frame = records({(p, t): [says] for p in range(40) for t in AUTHORS}, task)
    table = recognition_table(frame, n_resamples=10)
    row = j_of(frame)
    assert row["estimate"] == 0 and row["note"] == "constant_answer" and row["p"] == 1
    assert -0.1 < row["low"] < 0 < row["high"] < 0.1
    sentence, *_ = tables.conclusions(table)
    assert "a constant answer" in sentence and "0.00 [-0.09, 0.09]" in sentence
    assert table.loc[table["note"].str.contains("not_estimable"), ["estimate", "low", "high"]].isna().all(axis=None)
    assert table.loc[table["estimate"].isna(), "note"].str.contains("not_estimable").all()


def test_an_estimate_without_an_interval_says_so():
    table = recognition_table(records({(0, t): [t == "a"] for t in AUTHORS}), n_resamples=10)
    alone = table[table["low"].isna() & table["estimate"].notna() & (table["method"] != "count")]
    assert len(alone) and alone["note"].str.contains("no_interval").all()
    assert not alone["note"].str.contains("not_estimable").any()


# --- files that name no prompt ----------------------------------------------------------------------------------------


def without_ids(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(prompt_used="Write about " + frame["prompt_id"].astype(str)).drop(columns="prompt_id")


@pytest.mark.parametrize("empty", [None, ""])
def test_one_row_without_a_prompt_is_refused(empty):
    frame = without_ids(records(drawn(0))).astype({"prompt_used": object})
    frame.loc[[7, 9], "prompt_used"] = empty
    with pytest.raises(InputError, match=r"`prompt_used` is empty in 2 of 24 rows \(the first is row 7, text_id 21\)"):
        recognition_table(frame, n_resamples=1)


def test_a_file_without_any_prompt_has_texts_for_clusters_and_every_table_says_so():
    frame = records(drawn(0, prompts=40)).assign(prompt_id=None)
    table = recognition_table(frame, n_resamples=1)
    assert table["note"].str.contains("clusters_are_texts").all()
    row = j_of(frame)
    assert np.isnan(row["p"])
    assert tables.overview(frame)["texts (no prompts named)"].tolist() == [120]
    assert all("the file names no prompts" in sentence for sentence in tables.conclusions(table))
    assert "the file names no prompts" in tables.planning(table)[0] and len(tables.planning(table)) == 1
