"""Tables for a reader, and what stands in them where there is little or nothing to say."""

import numpy as np
from recognition_records import naming

from selfeval import stats
from selfeval.figures import tables


def result(answers):
    return stats.recognition_table(naming(answers), n_resamples=1)


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
    rate = table[table["statistic"].eq("false_claim_rate") & table["evaluator"].eq("b")].iloc[0]
    assert row["discrimination"] == "" and row["p"] == "" and (row["n"], row["clusters"]) == (rate.n, rate.clusters)
