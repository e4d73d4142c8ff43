"""Tables for a reader, and what stands in them where there is little or nothing to say."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import get_data_path
from PIL import ImageFont
from recognition_records import naming

import selfeval as se
from selfeval import ROOT, results, stats


def result(answers):
    return stats.recognition_table(naming(answers), n_resamples=1)


HABIT = {("a", "a"): ["a"] * 50, ("a", "b"): ["a"] * 50, ("b", "a"): ["a"] * 45 + ["b"] * 5, ("b", "b"): ["b"] * 50}


# tables ---------------------------------------------------------------------------------------------------------------


def test_estimates_are_texts_of_two_digits_and_what_is_not_there_is_empty():
    nan = np.nan
    shown = [
        results.estimate_text(*each) for each in ((0.5, 0.1, 0.9), (-0.0001, nan, 1), (nan, 0, 1), (250, nan, nan))
    ]
    assert shown == ["0.50 [0.10, 0.90]", "0.00", "", "250"]
    assert [results.p_text(p) for p in (0.0004, 0.001, 0.0344, 1, nan)] == ["< 0.001", "0.001", "0.034", "1.000", ""]


def test_the_summary_shows_estimates_what_they_say_and_over_how_much():
    table = result(HABIT).query("author == ''")
    shown = results.summary(table, ["advantage", "discrimination"], {"a": "Always", "b": "Reader"})
    names = ["task", "condition", "evaluator", "advantage", "discrimination", "conclusion", "detectable", "p"]
    assert list(shown.columns) == [name for name in names if name != "condition"] + ["n", "clusters"]
    always, reader = shown.iloc[0], shown.iloc[1]
    assert always["advantage"].startswith("1.00 [") and always["discrimination"].startswith("0.00 [-")
    assert (always["conclusion"], always["p"]) == ("constant answer", "1.000"), "of J, though A is named first"
    assert reader["discrimination"].startswith("0.90 [0.7") and reader["p"] == "< 0.001"
    assert (reader["conclusion"], reader["clusters"]) == ("claims its own more (no peers)", 50) and float(
        reader["detectable"]
    ) < 0.5


def test_a_value_over_all_evaluators_alone_has_them_named():
    table = result(HABIT).query("author == '' and evaluator == 'b'").assign(evaluator="", task="")
    shown = results.summary(table, ["discrimination"])
    assert [*shown.columns[:2]] == ["evaluator", "discrimination"] and [*shown["evaluator"]] == ["all evaluators"]


def test_a_row_without_the_first_statistic_has_p_and_size_of_the_next():
    table = result(HABIT).query("author == ''").copy()
    lost = table["statistic"].eq("discrimination") & table["evaluator"].eq("b")
    table.loc[lost, ["estimate", "low", "high", "p"]] = np.nan
    table.loc[lost, "conclusion"] = ""
    row = results.summary(table, ["discrimination", "false_claim_rate"]).set_index("evaluator").loc["b"]
    rate = table[table["statistic"].eq("false_claim_rate") & table["evaluator"].eq("b")].iloc[0]
    assert row["discrimination"] == "" and row["p"] == "" and (row["n"], row["clusters"]) == (rate.n, rate.clusters)


# for papers -----------------------------------------------------------------------------------------------------------

ROWS = pd.DataFrame(
    {"task": ["Yes or no?"] * 2, "model": ["A_1 & B", "C"], "J": ["-0.12 [-0.30, 0.06]", "0.5"], "p": ["< 0.001", ""]}
)


def test_each_group_of_a_paper_table_has_its_heading_above_its_rows():
    rows = pd.DataFrame({"model": ["a", "b", "c"], "form": ["yes or no", "yes or no", "JSON"]})
    text = se.figures.latex(rows, label="t", caption="c", note="n", group="form")
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    headings = [k for k, line in enumerate(lines) if "textit" in line]
    assert [re.search(r"textit\{(.+?)\}", lines[k])[1] for k in headings] == ["yes or no", "JSON"]
    assert [line.split()[0] for line in lines[headings[0] + 1 : headings[1]]] == ["a", "b"]


def test_a_jurys_table_has_whole_juries_or_its_jurors():
    [result] = se.read_results("results/demo/jury")
    juries, jurors = se.table(result, "auc"), se.table(result, "leniency", jurors=True)
    arms = {task for task in result["task"] if " - " not in task}
    assert "juror" not in juries and sorted(juries["arm"]) == sorted(arms)
    assert jurors.groupby("arm")["juror"].nunique().min() > 1


def test_a_table_for_a_paper_has_caption_label_note_and_estimates_apart_from_their_intervals():
    text = se.figures.latex(ROWS, label="j", caption='100 % of "yes"', note="n: 3", group="task", column=True)
    lines = text.splitlines()
    assert [lines[0], lines[-1]] == [r"\begin{table}", r"\end{table}"]
    assert (
        r"\caption{100 \% of ``yes''}" in lines and r"\label{tab:j}" in lines and r"{\footnotesize n: 3\par}" in lines
    )
    assert r"\begin{tabular}{lr@{ }ll}" in lines and r"model & \multicolumn{2}{c}{J} & p \\" in lines
    assert r"A\_1 \& B & $-$0.12 & [$-$0.30, 0.06] & $<$ 0.001 \\" in lines and r"C & 0.5 &  &  \\" in lines
    assert lines.count(r"\multicolumn{4}{@{}l}{\textit{Yes or no?}} \\") == 1, "a line of its own above its rows"


def points(text, size):
    """Return the width of a cell in Computer Modern, which LaTeX sets tables in."""
    font = ImageFont.truetype(Path(get_data_path()) / "fonts/ttf/cmr10.ttf", 20 * size)
    shown = re.sub(r"\\\w+\{([^}]*)\}", r"\1", text.replace("$-$", "–").replace("$<$", "=").replace("\\", ""))
    return font.getlength(shown) / 20


def width(text):
    """Return the width of a table in points: its widest cells, heads of two columns, and the space between columns."""
    size = 9 if r"\small" in text else 8
    columns = {}
    body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
    rows = [line.removesuffix(r" \\").split(" & ") for line in body.splitlines() if " & " in line]
    heads, *rows = rows
    for row in rows:
        for place, cell in enumerate(row):
            columns[place] = max(columns.get(place, 0), points(cell, size))
    place = 0
    for head in heads:
        both = re.fullmatch(r"\\multicolumn\{2\}\{c\}\{(.*)\}", head)
        if both:
            missing = points(both[1], size) - columns[place] - columns[place + 1]
            columns[place + 1] += max(missing, 0)
        else:
            columns[place] = max(columns[place], points(head, size))
        place += 2 if both else 1
    return sum(columns.values()) + 8 * len(columns)


@pytest.mark.parametrize("path", sorted((ROOT / "figures/tables").glob("*.tex")), ids=lambda path: path.stem)
def test_the_committed_tables_fit_a_page_or_a_column(path):
    text = path.read_text(encoding="utf-8")
    assert 100 < width(text) <= (506 if r"\begin{table*}" in text else 244)
    assert rf"\label{{tab:{path.stem}}}" in text and "conclusion" not in text
    assert not re.search(r"binary|exact.model|answer=|reading=|reask", text), "tasks and conditions in words"


def test_of_a_filtered_result_its_own_conditions_alone_are_shown():
    texts = se.generate_texts(["sim/good", "sim/chance"], 4)
    shown, hidden = (se.collect_predictions(texts, tasks="binary_self", show_prompt=told) for told in (True, False))
    result = se.measure_recognition(pd.concat([shown, hidden]), n_resamples=20)
    one = result[result["condition"] == result["condition"].iloc[0]]
    assert len(se.table(result, "advantage_bootstrap")) == 4 and len(se.table(one, "advantage_bootstrap")) == 2
