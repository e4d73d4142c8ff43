"""Tables for a reader, and what stands in them where there is little or nothing to say."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps

from selfeval import stats
from selfeval.figures import tables
from selfeval.stats.jury import baseline_auc


def records(answers, task="exact_model", condition="answer=free"):
    """Make prediction records: answers is {(evaluator, author): [answer, or (answer, score), of prompt 0, 1, ...]}."""
    rows = []
    for (evaluator, author), given in answers.items():
        for prompt, each in enumerate(given):
            answer, score = each if isinstance(each, tuple) else (each, None)
            own = answer if task == "binary_self" or answer is None else answer == evaluator
            rows.append(
                {"text_id": f"{author}-{prompt}", "true_model": author, "evaluator_model": evaluator, "score": score,
                 "task_type": task, "predicted_model": answer if task == "exact_model" else None, "predicted_self": own,
                 "prompt_id": prompt, "condition": condition, "candidates": ["a", "b"], "status": "ok"}
            )  # fmt: skip
    return pd.DataFrame(rows).astype({"predicted_self": object, "predicted_model": object})


def result(answers, task="exact_model"):
    return stats.recognition_table(records(answers, task), n_resamples=1)


def default(table, statistic):
    return table[table["statistic"] == statistic].iloc[0]


HABIT = {("a", "a"): ["a"] * 50, ("a", "b"): ["a"] * 50, ("b", "a"): ["a"] * 45 + ["b"] * 5, ("b", "b"): ["b"] * 50}


# tables ---------------------------------------------------------------------------------------------------------------


def test_estimates_are_texts_of_two_digits_and_what_is_not_there_is_empty():
    nan = np.nan
    shown = [tables.estimate_text(*each) for each in ((0.5, 0.1, 0.9), (-0.0001, nan, 1), (nan, 0, 1), (250, nan, nan))]
    assert shown == ["0.50 [0.10, 0.90]", "0.00", "", "250"]
    assert [tables.p_text(p) for p in (0.0004, 0.0344, 1, nan)] == ["< 0.001", "0.034", "1.000", ""]


def test_the_summary_shows_estimates_what_they_say_and_over_how_much():
    table = result(HABIT).query("author == ''")
    shown = tables.summary(table, ["advantage", "discrimination"], {"a": "Always", "b": "Reader"})
    names = ["task", "condition", "evaluator", "advantage", "discrimination", "conclusion", "detectable", "p"]
    assert list(shown.columns) == [name for name in names if name != "condition"] + ["n", "clusters"]
    always, reader = shown.iloc[0], shown.iloc[1]
    assert always["advantage"].startswith("1.00 [") and always["discrimination"].startswith("0.00 [-")
    assert (always["conclusion"], always["p"]) == ("constant answer", "1.000"), "of J, though A is named first"
    assert reader["discrimination"].startswith("0.90 [0.7") and reader["p"] == "< 0.001"
    assert (reader["conclusion"], reader["clusters"]) == ("recognises", 50) and float(reader["detectable"]) < 0.5


def test_a_row_without_the_first_statistic_has_p_and_size_of_the_next():
    table = result(HABIT).query("author == ''").copy()
    lost = table["statistic"].eq("discrimination") & table["evaluator"].eq("b")
    table.loc[lost, ["estimate", "low", "high", "p"]] = np.nan
    table.loc[lost, "conclusion"] = ""
    row = tables.summary(table, ["discrimination", "false_claim_rate"]).set_index("evaluator").loc["b"]
    rate = default(table[table["evaluator"] == "b"], "false_claim_rate")
    assert row["discrimination"] == "" and row["p"] == "" and (row["n"], row["clusters"]) == (rate.n, rate.clusters)


def test_changes_are_readable_or_empty():
    frame = records(HABIT)
    both = pd.concat([frame.assign(condition="hints=false"), frame.assign(condition="hints=true")])
    shown = tables.summary(stats.condition_contrasts(both), ["discrimination"])
    assert set(shown["change"]) == {"hints: false → true"} and shown["discrimination"].str.startswith("0.00 [").all()
    assert tables.summary(stats.condition_contrasts(frame), ["discrimination"]).empty


def test_an_evaluator_whose_every_call_failed_has_no_numbers():
    frame = records(HABIT | {("c", author): [None] * 50 for author in "abc"})
    frame.loc[frame["evaluator_model"] == "c", "status"] = "error"
    table = stats.recognition_table(frame, n_resamples=100)
    failed = table[table["evaluator"] == "c"]
    numbers = failed[failed["statistic"] != "no_answer_rate"]
    assert numbers[["estimate", "low", "high", "p", "p_holm", "p_permutation"]].isna().all(axis=None)
    assert numbers["note"].str.contains("no_answer").all() and not numbers.duplicated(["statistic", "author"]).any()
    assert (failed.loc[failed["statistic"] == "no_answer_rate", "estimate"] == 1).all()
    frame.loc[frame["evaluator_model"] == "c", "status"] = "refusal"
    pd.testing.assert_frame_equal(stats.recognition_table(frame, n_resamples=100), table)  # nor are refusals answers


def test_the_jurys_auc_is_tested_by_its_interval():
    """Three pairs and two further models: the pairs bound what can be said, though every comparison is won."""
    human, cluster = [1, 1, 1, 0, 0, 0, 0, 0], list("abcabcde")
    table = baseline_auc([9, 8, 7, 1, 2, 3, 4, 5], human, cluster, name="style")
    area, paired = (default(table, name) for name in ("auc", "paired_accuracy"))
    assert area["estimate"] == 1 and area["low"] == pytest.approx(3 / (3 + 1.96**2), abs=1e-3)
    assert area["p"] == paired["p"] == pytest.approx(2 * sps.norm.sf(np.sqrt(3)))  # where 3 / (3 + z^2) is one half
    table = baseline_auc([*range(10, 20), *range(10)], [1] * 10 + [0] * 10, [*range(10), *range(10)])
    assert default(table, "auc")["p"] < 0.05
