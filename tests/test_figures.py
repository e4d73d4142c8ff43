"""Figures and tables: bytes equal on a second run, labels literal, intervals as given, gaps shown as gaps."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from selfeval import ROOT, figures
from selfeval.errors import InputError
from selfeval.figures import shares
from selfeval.stats import condition_contrasts, confusion, recognition_table, roc_points


def predictions(size: int, task: str = "exact_model", prompts: int = 8) -> pd.DataFrame:
    """Evaluator 0 knows, evaluator 1 always names itself, the others guess; evaluator 2 never saw author 0."""
    rng = np.random.default_rng(0)
    e, t, p = (x.ravel() for x in np.meshgrid(range(size), range(size), range(prompts), indexing="ij"))
    answer = np.where(e == 0, t, np.where(e == 1, 1, rng.integers(0, size, len(e))))
    ids = np.array([f"vendor/model-{i}" for i in range(size)], object)
    frame = pd.DataFrame({
        "text_id": t * prompts + p, "evaluator_model": ids[e], "true_model": ids[t], "task_type": task, "prompt_id": p,
        "predicted_model": ids[answer], "predicted_self": answer == e,
    })  # fmt: skip
    return frame[~((e == 2) & (t == 0))]


@pytest.fixture(scope="module")
def inputs():
    frame = predictions(4)
    return recognition_table(frame, n_resamples=100), confusion(frame)


DISPLAY = {"vendor/model-0": "Costs $$ & 100%_a^b", "vendor/model-1": "M1"}


@pytest.mark.parametrize(("name", "which"), [("advantage_and_discrimination", 0), ("accuracy_heatmap", 1)])
def test_a_second_run_writes_the_same_bytes(name, which, inputs, tmp_path):
    written = []
    for run in ("one", "two"):
        fig = getattr(figures, name)(inputs[which], DISPLAY)
        assert isinstance(fig, Figure)
        paths = figures.save(fig, tmp_path / run, "figure")
        assert [path.name for path in paths] == ["figure.pdf", "figure.png", "figure.svg"]
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]
    pdf, png, svg = written[0]
    assert b"/CreationDate" not in pdf and b"/Type3" not in pdf and b"Software" not in png and b"<dc:date>" not in svg


@pytest.mark.fault("hostile text")
def test_labels_are_literal_and_complete(inputs):
    fig = figures.advantage_and_discrimination(inputs[0], DISPLAY)
    labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    assert sorted(labels) == ["Costs $$ & 100%_a^b", "M1", "vendor/model-2", "vendor/model-3"]
    assert not any(text.get_parse_math() for text in fig.axes[0].get_yticklabels())


def test_intervals_are_drawn_as_given(inputs):
    table = inputs[0].copy()
    chosen = (table.statistic == "discrimination") & (table.author == "")
    table.loc[chosen, ["low", "high"]] = [-0.123, 0.876]
    lines = figures.advantage_and_discrimination(table).axes[1].collections[0].get_segments()
    assert {(x[0][0], x[1][0]) for x in lines} == {(-0.123, 0.876)}


def test_the_trap_is_visible(inputs):
    """Always-itself: full advantage, and its J is hollow, the interval holds 0; the one that knows has a filled J."""
    left, ax = figures.advantage_and_discrimination(inputs[0], DISPLAY).axes
    filled, hollow = ax.collections[1].get_offsets(), ax.collections[2].get_offsets()
    names = [text.get_text() for text in left.get_yticklabels()]
    assert [names[int(y)] for _, y in filled] == ["Costs $$ & 100%_a^b"]
    assert (0.0, "M1") in [(x, names[int(y)]) for x, y in hollow]
    assert (1.0, "M1") in [(x, names[int(y)]) for x, y in left.collections[1].get_offsets()]


def test_cells_without_texts_are_hatched_not_zero(inputs):
    fig = figures.accuracy_heatmap(inputs[1], DISPLAY)
    hatched = [p for p in fig.axes[0].patches if isinstance(p, Rectangle) and p.get_hatch()]
    assert [(p.get_x(), p.get_y()) for p in hatched] == [(-0.5, 1.5)]
    shown = fig.axes[0].images[0].get_array()
    assert shown.mask.sum() == 1 and shown[0, 0] == 1 and shown[1, 0] == 0


def test_accuracy_of_the_binary_task_counts_rejections():
    fig = figures.accuracy_heatmap(confusion(predictions(3, "binary_self")))
    shown = fig.axes[0].images[0].get_array()
    assert shown[0].tolist() == [1, 1, 1] and shown[1].tolist() == [0, 1, 0]


def test_claim_shares():
    counts = confusion(predictions(2))
    found = shares.claim_shares(counts)
    assert found.given.to_dict() == {"vendor/model-0": 0.25, "vendor/model-1": 0.75}
    assert set(found.wrote) == {0.5}
    binary = shares.claim_shares(confusion(predictions(2, "binary_self")))
    assert binary.given.to_dict() == {"vendor/model-0": 0.5, "vendor/model-1": 1.0}


def test_small_values_look_small(inputs):
    """A scale that ends at the largest cell would show .05 as dark as 1."""
    weak = inputs[0].assign(estimate=inputs[0]["estimate"] / 20)
    [image] = figures.discrimination_matrix(weak).axes[0].images
    assert (image.norm.vmin, image.norm.vmax) == (-0.5, 0.5)
    [image] = figures.discrimination_matrix(inputs[0]).axes[0].images
    assert image.norm.vmax == 1
    flat = inputs[1].assign(n=1).assign(predicted=[f"vendor/model-{k % 4}" for k in range(len(inputs[1]))])
    [image] = figures.prediction_heatmap(flat).axes[0].images
    assert image.norm.vmax >= 0.5


def test_prediction_panels(inputs):
    fig = figures.prediction_heatmap(inputs[1], DISPLAY, panels=True)
    assert sum(bool(ax.images) for ax in fig.axes) == 4
    with pytest.raises(InputError, match="needs a naming task"):
        figures.prediction_heatmap(confusion(predictions(2, "binary_self")))


def test_designs_are_not_mixed_in_a_figure(inputs):
    table = pd.concat([inputs[0], inputs[0].assign(condition="told=true")])
    with pytest.raises(InputError, match="one task and condition, got 2"):
        figures.advantage_and_discrimination(table)


def test_a_table_read_back_from_csv_draws_the_same(inputs, tmp_path):
    inputs[0].to_csv(tmp_path / "table.csv", index=False)
    again = figures.default_rows(pd.read_csv(tmp_path / "table.csv"), "discrimination")
    assert again.estimate.tolist() == pytest.approx(figures.default_rows(inputs[0], "discrimination").estimate.tolist())


def test_tables_are_escaped_and_ruled(tmp_path):
    frame = pd.DataFrame({"model_id": ["a_b & 100%", "c"], "J": [0.12345, np.nan]})
    csv, tex = figures.save_table(frame, tmp_path, "table")
    pd.testing.assert_frame_equal(pd.read_csv(csv), frame)
    text = tex.read_text()
    assert r"model\_id & J \\" in text and r"a\_b \& 100\% & 0.123 \\" in text and r"\toprule" in text


def test_latex_prints_what_data_say_with_the_notes_below(tmp_path):
    frame = pd.DataFrame({"name": ["[odd] $x$ ^ ~ \\", "< 0.001"], "J": ["-0.10 [-0.20, 0.30]", "GPT-4"]})
    text = figures.save_table(frame, tmp_path, "table", notes=["100 % of GPT_4"])[1].read_text()
    name = r"{[}odd] \$x\$ \textasciicircum{} \textasciitilde{} \textbackslash{}"
    assert f"{name} & \\textminus{{}}0.10 \\\\\n & {{\\scriptsize [\\textminus{{}}0.20, 0.30]}} \\\\\n" in text
    assert r"\textless{} 0.001 & GPT-4 \\" in text
    assert r"\item 100 \% of GPT\_4" in text and text.index("tablenotes") > text.index(r"\end{tabular}")


def test_what_rows_share_stands_above_them_and_long_heads_take_two_lines(tmp_path):
    frame = pd.DataFrame(
        {"task": ["a", "a", "b"], "model": ["x [1, 2]", "y", "x"], "own texts claimed": ["1", "", "< 2"]}
    )
    tex = figures.save_table(frame, tmp_path, "table", groups=["task"])[1].read_text().splitlines()
    assert [line for line in tex[tex.index("\\midrule") :] if "&" in line or "emph" in line] == [
        r"\multicolumn{2}{@{}l}{\emph{a}} \\", r"x [1, 2] & 1 \\", r"y &  \\",
        r"\multicolumn{2}{@{}l}{\emph{b}} \\", r"x & \textless{} 2 \\",
    ]  # fmt: skip
    assert r"{@{}lr@{}}" in tex[0] and r"model & \shortstack[r]{\strut own texts\\\strut claimed} \\" in tex


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_papers_tables_compile_and_fit_the_width_of_two_columns(tmp_path):
    tables = "\n".join(f"\\input{{{path}}}\\clearpage" for path in sorted((ROOT / "figures/tables").glob("*.tex")))
    (tmp_path / "all.tex").write_text(
        r"\documentclass{article}\usepackage[a4paper,textwidth=6.9in]{geometry}\usepackage[T1]{fontenc}"
        r"\usepackage{booktabs,threeparttable}\setlength{\parindent}{0pt}\begin{document}" + tables + r"\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0 and "Overfull \\hbox" not in said.stdout, said.stdout[-3000:]


def test_roc_and_contrasts_are_drawn_from_the_records():
    frame = predictions(3, "binary_self")
    own = frame["true_model"] == frame["evaluator_model"]
    fig = figures.roc(roc_points(frame.assign(score=own * 1.0)), DISPLAY)
    shown = [text.get_text() for ax in fig.axes for text in ax.texts]
    assert shown == ["AUC 1.00"] * 3
    known = recognition_table(frame.assign(score=own * 1.0), n_resamples=1).assign(low=0.9, high=1.0)
    fig = figures.roc(roc_points(frame.assign(score=own * 1.0)), DISPLAY, table=known)
    assert [ax.texts[0].get_text() for ax in fig.axes[:2]] == ["AUC 1.00 [0.90, 1.00]\nn 24"] * 2
    fig = figures.roc(roc_points(frame.assign(score=0.5)))
    assert [text.get_text() for ax in fig.axes for text in ax.texts] == ["AUC 0.50"] * 3
    with pytest.raises(InputError, match="no ROC curve"):
        figures.roc(roc_points(frame.assign(score=None)))
    both = pd.concat([frame.assign(condition=f"hints={h}") for h in ("false", "true")])
    fig = figures.contrasts(condition_contrasts(both))
    assert "hints: false → true" in fig.axes[0].get_title()
