"""Figures and tables: bytes equal on a second run, labels literal, intervals as given, gaps shown as gaps."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from selfeval import ROOT, figures
from selfeval.figures import printed
from selfeval.figures.results import BY_FAMILY
from selfeval.figures.rows import COLUMNS
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


DISPLAY = {"vendor/model-0": "Costs $$ & 100%_a^b", "vendor/model-1": "M1"}


def inputs(frame, **more):
    table = recognition_table(frame, n_resamples=50)
    return {"recognition": table, "counts": confusion(frame), "roc": roc_points(frame)} | more


@pytest.fixture(scope="module")
def found():
    return inputs(predictions(4))


def drawn(found, name, **options):
    """Draw one figure of self-recognition; return its panels."""
    return figures.draw("recognition", found, DISPLAY, only=[name], **options)[name].axes


def points(ax):
    """Return {label of the line: (x, whether its mark is hollow)} of a panel of estimates."""
    names = {round(at): label.get_text() for at, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}
    marks = [marks for marks in ax.collections if marks.get_label().startswith("interval")]
    return {names[round(y)]: (x, bool((mark.get_facecolor()[0] == 1).all())) for mark in marks
            for x, y in mark.get_offsets()}  # fmt: skip


def test_a_second_run_writes_the_same_bytes(found, tmp_path):
    written = []
    for run in ("one", "two"):
        paths = []
        for name, figure in figures.draw("recognition", found, DISPLAY).items():
            paths += figures.save(figure, tmp_path / run, name)
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1] and [path.suffix for path in paths[:3]] == [".pdf", ".png", ".svg"]
    pdf, png, svg = written[0][:3]
    assert b"/CreationDate" not in pdf and b"/Type3" not in pdf and b"Software" not in png and b"<dc:date>" not in svg


@pytest.mark.fault("hostile text")
def test_labels_are_literal_and_complete(found):
    [ax] = drawn(found, "advantage_exact_model")
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert sorted(labels) == ["Costs $$ & 100%_a^b", "M1", "vendor/model-2", "vendor/model-3"]
    assert not any(text.get_parse_math() for text in ax.figure.findobj(Text))
    assert ax.figure._supxlabel.get_text() == "discrimination J (point), policy all; 95 % intervals over prompts"


def test_intervals_are_drawn_as_given_and_the_bootstrap_beside_them(found):
    table = found["recognition"].copy()
    chosen = (table["statistic"] == "discrimination") & (table["author"] == "")
    table.loc[chosen, ["low", "high"]] = [-0.123, 0.876]
    table.loc[chosen & (table["method"] == "bca"), ["low", "high"]] = [0.05, 0.5]
    [ax] = drawn({"recognition": table}, "advantage_exact_model")
    ends = [{tuple(line[:, 0]) for line in lines.get_segments()} for lines in ax.collections
            if hasattr(lines, "get_segments")]  # fmt: skip
    assert {(-0.123, 0.876)} in ends and {(0.05, 0.5)} in ends


def test_the_trap_is_visible(found):
    """Always-itself: a full usual score, and its J is hollow, the interval includes 0; the one that knows is filled."""
    [ax] = drawn(found, "advantage_exact_model")
    shown = points(ax)
    assert shown["M1"] == (0, True) and shown["Costs $$ & 100%_a^b"] == (1, False)
    usual = next(marks for marks in ax.collections if marks.get_label().startswith("usual score"))
    assert max(x for x, _ in usual.get_offsets()) == 1


def test_simulated_models_stand_apart_in_the_same_order_on_the_same_scale(found):
    """Two conditions, a model of each kind in the wrong order: real ones first, all figures alike."""
    frame = predictions(4).replace("vendor/model-0", "sim/knows")
    both = pd.concat([frame.assign(condition=f"hints={h}") for h in ("false", "true")])
    made = figures.draw("recognition", inputs(both, contrasts=condition_contrasts(both)), DISPLAY)
    panels = [made[name].axes[0] for name in made if name.startswith(("advantage", "forest", "contrasts"))]
    labels = {tuple(text.get_text() for text in ax.get_yticklabels()) for ax in panels}
    assert len(panels) == 5 and len({ax.get_xlim() for ax in panels}) == 1 and len(labels) == 1
    assert next(iter(labels))[-2:] == ("simulated:", "sim/knows")
    assert "hints: false → true" in made["contrasts_exact_model"].axes[0].get_title()


def heat(ax):
    return ax.collections[0].get_array()


def test_a_habit_is_a_dark_row_recognition_a_dark_diagonal_and_no_texts_a_hatched_cell(found):
    ax = drawn(found, "claimed_exact_model")[0]
    shown = dict(zip([text.get_text() for text in ax.get_yticklabels()], heat(ax), strict=True))
    assert shown["M1"].tolist() == [1, 1, 1, 1] and sorted(shown["Costs $$ & 100%_a^b"]) == [0, 0, 0, 1]
    assert np.ma.getmaskarray(heat(ax)).sum() == 1 and ax.patch.get_hatch()
    assert sorted(heat(drawn(inputs(predictions(3, "binary_self")), "claimed_binary_self")[0])[0]) == [0, 0, 1]


def test_a_map_without_a_single_number_is_not_drawn(found):
    silent = found["recognition"].assign(estimate=np.nan, low=np.nan, high=np.nan)
    assert not {name.partition("_")[0] for name in figures.draw("recognition", {"recognition": silent})}


def test_small_values_look_small(found):
    """A scale that ends at the largest cell would show .05 as dark as 1."""
    for name, low in (("claimed", 0), ("matrix", -1), ("predictions", 0)):
        mesh = drawn(found, f"{name}_exact_model")[0].collections[0]
        assert (mesh.norm.vmin, mesh.norm.vmax) == (low, 1)


def test_roc_curves_have_the_area_of_the_table_with_its_interval():
    frame = predictions(3, "binary_self")
    own = frame["true_model"] == frame["evaluator_model"]
    for score, texts in ((own * 1.0, "AUC 1.00\n[0."), (0.5, "AUC 0.50\n[0.50, 0.50]"), (None, None)):
        made = figures.draw("recognition", inputs(frame.assign(score=score)), DISPLAY)
        assert ("roc_binary_self" in made) == (texts is not None)
        if texts:
            assert all(ax.texts[0].get_text().startswith(texts[:8]) for ax in made["roc_binary_self"].axes[:3])


def test_identity_is_a_map_of_models_by_families_and_nothing_is_drawn_from_nothing():
    rows = [{"model": "m", "family": family, "condition": "", "source": "readout", "statistic": name, "estimate": rate,
             "low": 0.0, "high": 1.0, "level": 0.95, "method": "mover", "n": 9, "n_templates": n, "note": ""}
            for family, n in (("", 9), ("a", 7), ("b", 2))
            for name, rate in zip(BY_FAMILY, (0.75, 0.25, 0.5), strict=True)]  # fmt: skip
    made = figures.draw("identity", {"identity": pd.DataFrame(rows)})
    assert set(made) == {"claims_identity", "acceptance_identity"}
    assert [text.get_text() for text in made["acceptance_identity"].axes[0].texts] == [
        ".75 − .25\nn 7",
        ".75 − .25\nn 2",
    ]
    assert heat(made["acceptance_identity"].axes[0]).tolist() == [[0.5, 0.5]]
    lasting = pd.DataFrame(rows[:1]).assign(statistic="survival", turn=2, estimate=0.5)
    more = figures.draw("identity", {"identity": pd.concat([pd.DataFrame(rows), lasting])})
    assert "survival_identity" in more


def test_means_by_turn_have_t_intervals_over_the_conversations_judged_on_it():
    rows = [("a", 1, 0.2), ("b", 1, 0.4), ("a", 2, 1.0), ("b", 2, None)]
    verdicts = pd.DataFrame(rows, columns=["conversation_id", "turn", "score"]).assign(arm="reask", source="model")
    nothing = pd.DataFrame(columns=COLUMNS)
    [ax] = figures.draw("jury", {"jury": nothing, "verdicts": verdicts})["turns_jury"].axes
    assert ax.get_title() == "second look" and [*ax.lines[0].get_ydata()] == pytest.approx([0.3, 1.0])
    [bar] = [line for line in ax.collections[0].get_segments() if len(line)]  # one conversation has no interval
    assert bar[:, 1].tolist() == [0, 1]  # t with one degree of freedom


def test_coverage_is_the_lowest_of_each_method_and_power_stands_on_its_plan():
    about = {"statistic": "discrimination", "mc_error": 0.01}
    covered = pd.DataFrame([about | {"scenario": s, "prompts": n, "method": m, "coverage": 0.9 + k / 100}
                            for k, s in enumerate("ab") for n in (20, 50) for m in ("BCa", "default")])  # fmt: skip
    power = pd.DataFrame({"difference": [0, 0.2] * 2, "prompts": [20, 20, 50, 50], "power": [0.05, 0.5, 0.04, 0.8],
                          "mc_error": 0.01, "planned_sd": [0.05, 0.4, 0.05, 0.7]})  # fmt: skip
    made = figures.draw("validation", {"coverage": covered, "power": power})
    [ax] = made["coverage_validation"].axes
    assert ax.get_title() == "Discrimination J" and [*ax.lines[0].get_ydata()] == [0.9, 0.9]
    lines = [[*line.get_ydata()] for line in made["power_validation"].axes[0].lines]
    assert lines == [[0.05, 0.5], [0.05, 0.4], [0.04, 0.8], [0.05, 0.7]]


# tables ---------------------------------------------------------------------------------------------------------------


def test_latex_prints_what_data_say_with_rules_and_the_notes_below(tmp_path):
    frame = pd.DataFrame(
        {"name": ["[odd] $x$ ^ ~ \\", "a_b"], "J": ["-0.10 [-0.20, 0.30]", "< 0.001"], "n": [0.12345, np.nan]}
    )
    csv, tex = figures.save_table(frame, tmp_path, "table", notes=["100 % of GPT_4"])
    pd.testing.assert_frame_equal(pd.read_csv(csv), frame)
    text = tex.read_text()
    name = r"{[}odd] \$x\$ \textasciicircum{} \textasciitilde{} \textbackslash{}"
    assert name in text and r"{\scriptsize {[}\textminus{}0.20, 0.30]}} & 0.123 \\" in text and r"\toprule" in text
    assert r"a\_b & \textless{} 0.001 &  \\" in text
    assert r"\item 100 \% of GPT\_4" in text and text.index("tablenotes") > text.index(r"\end{tabular}")


def test_what_rows_share_stands_above_them_and_long_heads_take_two_lines():
    frame = pd.DataFrame({"task": ["a", "a", "b"], "model": ["x", "y", "x"], "own texts claimed": ["1", "", "< 2"]})
    tex = printed.latex(frame, groups=["task"]).splitlines()
    assert tex[tex.index("\\midrule") + 1 : -2] == [
        r"\rlap{\emph{a}} &  \\", r"x & 1 \\", r"y &  \\", r"\rlap{\emph{b}} &  \\", r"x & \textless{} 2 \\"
    ]  # fmt: skip
    assert r"{@{}lc@{}}" in tex[0] and r"model & \shortstack{\strut own texts\\\strut claimed} \\" in "".join(tex)


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
