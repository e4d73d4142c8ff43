"""Figures by what they draw, and results as files: intervals as given, gaps as gaps, labels readable, bytes equal."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from sweep_files import keep_parameters

import selfeval as se
from selfeval import figures
from selfeval.errors import InputError
from selfeval.figures import style
from selfeval.figures.estimates import KINDS, Estimates
from selfeval.stats import condition_contrasts, confusion, recognition_table, roc_points

NAMES = ["Costs $$ & 100%_a^b", "A display name of sixty characters, which is rather long, yes", "Größe 7B (instruct)"]
DISPLAY = {"vendor/model-0": NAMES[0], "vendor/model-1": "M1"}


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


def result_of(kind, tables, names=None):
    """Return tables as a result."""
    rows = next(iter(tables.values()))
    found = Estimates(rows[rows["author"] == ""] if "author" in rows else rows)
    found.kind, found.tables, found.names = kind, tables, names or {}
    return found


def recognised(frame, names=None):
    table = recognition_table(frame, n_resamples=50)
    tables = {"recognition": table, "counts": confusion(frame), "roc": roc_points(frame)}
    tables |= {"contrasts": condition_contrasts(frame)}
    return result_of("recognition", tables, names)


@pytest.fixture(scope="module")
def found():
    return recognised(predictions(4), DISPLAY)


def labels(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def legend(fig):
    return [text.get_text() for one in fig.legends for text in one.get_texts()]


def ends(ax):
    """Return the ends of the intervals in a panel."""
    lines = [each.get_segments() for each in ax.collections if hasattr(each, "get_segments")]
    return {tuple(line[:, 0]) for segments in lines for line in segments}


def marks(ax):
    """Return {label: points} of the marks in a panel."""
    drawn = [each for each in ax.collections if not hasattr(each, "get_segments") and len(each.get_offsets())]
    return {each.get_label(): each for each in drawn}


# dots -----------------------------------------------------------------------------------------------------------------


def test_labels_are_literal_and_complete(found):
    [ax] = se.plot(found).axes
    assert sorted(labels(ax)) == [NAMES[0], "M1", "vendor/model-2", "vendor/model-3"]
    assert not any(text.get_parse_math() for text in ax.figure.findobj(Text))
    assert ax.figure._supxlabel.get_text() == "discrimination J, advantage A; 95 % intervals over prompts"


def rows_of(*ends, **more):
    rows = pd.DataFrame([*ends], columns=["low", "high"])
    return rows.assign(estimate=rows.mean(axis=1).fillna(0.2), line=[f"m{k}" for k in rows.index], **more)


def test_intervals_are_drawn_as_given_and_j_and_a_share_a_row(found):
    table = found.tables["recognition"].copy()
    j, a = ((table["statistic"] == name) & (table["author"] == "") for name in ("discrimination", "advantage"))
    table.loc[j, ["low", "high"]] = [-0.123, 0.876]
    table.loc[a & (table["method"] == "percentile"), ["low", "high"]] = [-1.35, 0.5]
    [ax] = se.plot(result_of("recognition", {**found.tables, "recognition": table})).axes
    assert ends(ax) == {(-1.35, 0.5), (-0.123, 0.876)} and ax.get_xlim()[0] < -1.35, "A has that of its bootstrap"
    assert {"discrimination J", "advantage A, percentile bootstrap interval"} <= {*legend(ax.figure)}
    points = marks(ax)["interval includes 0"].get_offsets()[:, 1], marks(ax)[legend(ax.figure)[1]].get_offsets()[:, 1]
    assert all(0.2 < j - a < 0.5 for j, a in zip(*map(sorted, points), strict=True)), "A stands below its J"


@pytest.mark.parametrize("null", [0.0, 0.5])
def test_both_ends_of_an_interval_say_whether_a_mark_is_filled_hollow_or_grey(null):
    given = np.array([(0.1, 0.3), (-0.3, -0.1), (-0.1, 0.3), (0, 0.3), (-0.3, 0), (np.nan, np.nan)]) + null
    fig = figures.dots(rows_of(*given), "x", null=null)
    found = marks(fig.axes[0])
    counts = {label: len(points.get_offsets()) for label, points in found.items()}
    assert counts == {f"interval excludes {null:g}": 2, f"interval includes {null:g}": 3, "no interval": 1}
    assert [*found] == legend(fig) and [*fig.axes[0].lines[0].get_xdata()] == [null, null]
    filled, hollow, grey = (points.get_facecolor()[0].tolist() for points in found.values())
    assert filled == found["no interval"].get_edgecolor()[0].tolist() and hollow == [1] * 4 and grey == [0.8] * 3 + [1]


@pytest.mark.parametrize("side", [None, "a stranger"])
def test_a_side_that_the_style_does_not_know_is_drawn_beside_those_it_knows(side):
    [ax] = figures.dots(rows_of((0.1, 0.3), (0.2, 0.4), side=["human", side]), "x").axes
    assert ends(ax) == {(0.1, 0.3), (0.2, 0.4)}


def test_rates_have_no_null_and_a_legend_names_only_what_is_drawn():
    rows = rows_of((0.1, 0.3), (0.2, 0.4), panel=["a", "b"], null=[0, np.nan], side=["human", "model"])
    fig = figures.dots(rows, "x")
    assert legend(fig) == ["people", "models"], "a filled mark would say `excludes 0` of a rate, too"
    assert [len(ax.lines) for ax in fig.axes] == [1, 0]
    alone = figures.dots(rows.assign(side="human").iloc[1:], "x")
    assert legend(alone) == ["people"] and figures.dots(rows.assign(estimate=np.nan), "x") is None


def test_models_are_rows_in_one_order_and_simulated_ones_stand_apart():
    ids = {"vendor/model-0": "sim/perfect", "vendor/model-1": "local/qwen2.5-coder-1.5b",
           "vendor/model-2": "local/smollm2-135m", "vendor/model-3": "mine"}  # fmt: skip
    frame = predictions(4).replace(ids)
    both = pd.concat([frame.assign(condition=f"hints={h}") for h in ("false", "true")])
    result = recognised(both)
    order = ["local/smollm2-135m", "local/qwen2.5-coder-1.5b", "mine", "simulated:", "sim/perfect"]
    [ax, _] = se.plot(result).axes
    assert labels(ax) == order and "hints" in ax.get_title(), "as the registry lists them, whatever they reach"
    shown = se.table(result, "discrimination")
    assert shown["evaluator"].tolist() == [*order[:3], "sim/perfect"] * 2


@pytest.mark.parametrize("side", [-1, 1])
def test_a_scale_has_0_on_it_whichever_side_all_intervals_are_on(side):
    [ax] = figures.dots(rows_of(sorted([0.5 * side, 0.7 * side])), "x").axes
    low, high = ax.get_xlim()
    assert low < 0 < high and low < 0.7 * side < high


# labels at the marks, the widths of print -----------------------------------------------------------------------------

TWO = {"human": "people", "model": "models"}


@pytest.mark.parametrize("wide", [6.9, 3.39])
def test_sides_are_named_at_their_marks_instead_of_in_a_legend(wide):
    rows = rows_of((0.1, 0.3), (0.12, 0.32), side=["human", "model"]).assign(line="m")
    fig = figures.dots(rows, "x", sides=TWO, wide=wide)
    names = [text for text in fig.axes[0].texts if text.get_text() in TWO.values()]
    assert sorted(text.get_text() for text in names) == ["models", "people"] and legend(fig) == []
    assert faults(fig) == [] and fig.get_size_inches()[0] == wide
    boxes = [text.get_window_extent() for text in names]
    assert not boxes[0].overlaps(boxes[1]), "though the marks are close together"
    marked = [points for points in marks(fig.axes[0]).values()]
    assert all(points.get_facecolor()[0].tolist() == points.get_edgecolor()[0].tolist() for points in marked)


def contrast(colour, ground="white"):
    """Return the contrast of two colours, 1 to 21, as WCAG defines it."""
    light = []
    for each in (colour, ground):
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(each)]
        light.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


def test_marks_stand_out_from_their_page_by_3_to_1():
    assert {side: colour for side, (colour, *_) in style.SIDES.items() if contrast(colour) < 3} == {}


def test_a_long_name_of_words_stands_upright_only_where_its_words_do_not_fit():
    cells = pd.DataFrame({"line": "a", "column": ["a", "Qwen2.5 Coder 1.5B"], "value": 0.5})
    [text] = [t for t in figures.cells(cells, "x", ("", "")).axes[0].get_xticklabels() if "Qwen" in t.get_text()]
    assert text.get_rotation() == 0


def test_cells_say_beside_them_what_a_row_and_below_what_a_column_is():
    shares = pd.DataFrame({"line": ["a", "a"], "column": ["b", "c"], "value": [0.2, 0.4]})
    fig = figures.cells(shares, "share claimed", ("evaluator", "author of the text"))
    assert (fig.get_supylabel(), fig.get_supxlabel()) == ("evaluator", "author of the text")


# cells and steps ------------------------------------------------------------------------------------------------------


def heat(ax):
    return ax.collections[0].get_array()


def test_a_habit_is_a_dark_row_recognition_a_dark_diagonal_and_no_texts_a_hatched_cell(found):
    ax = se.plot(found, "claimed").axes[0]
    shown = dict(zip(labels(ax), heat(ax), strict=True))
    assert shown["M1"].tolist() == [1, 1, 1, 1] and sorted(shown[NAMES[0]]) == [0, 0, 0, 1]
    assert np.ma.getmaskarray(heat(ax)).sum() == 1 and ax.patch.get_hatch()
    frames = [(patch.get_x(), patch.get_y()) for patch in ax.patches]
    assert frames == [(k, k) for k in range(4)], "its own texts are framed"
    norm = ax.collections[0].norm
    assert (norm.vmin, norm.vmax) == (0, 1), "so that small values look small"
    two = pd.concat([predictions(3), predictions(3, "binary_self")])
    panels = [ax for ax in se.plot(recognised(two), "claimed").axes if ax.get_title()]
    assert [ax.get_title() for ax in panels] == ["binary_self", "exact_model"]


def test_names_given_are_shares_of_texts_with_what_named_nobody_behind():
    frame = predictions(3)
    frame.loc[frame.index[:6], "predicted_model"] = None
    fig = se.plot(recognised(frame), "predictions")
    assert [text.get_text() for text in fig.axes[0].get_xticklabels()][-1] == "no answer"
    assert heat(fig.axes[0]).sum(axis=1).tolist() == pytest.approx([1, 1, 1])


SCORES = {  # (of own texts, of others' texts): the curve that they make, ties being one step
    "good": ([0.9, 0.5, 0.5, 0.5], [0.5, 0.5, 0.1, 0.1], [(0, 0), (0, 0.25), (0.5, 1), (1, 1)]),
    "flat": ([0.7, 0.7, 0.7, 0.7], [0.7, 0.7, 0.7, 0.7], [(0, 0), (1, 1)]),
    "back": ([0.1, 0.1, 0.1, 0.1], [0.8, 0.8, 0.9, 0.9], [(0, 0), (0.5, 0), (1, 0), (1, 1)]),
}


def test_each_roc_curve_stands_in_the_panel_of_its_evaluator_and_ties_are_one_step():
    rows = [
        {"text_id": f"{author}{prompt}", "prompt_id": prompt, "task_type": "binary_self", "evaluator_model": name,
         "true_model": name if author == "me" else "other", "predicted_self": author == "me", "score": score}
        for name, (own, others, _) in SCORES.items() for author, given in (("me", own), ("you", others))
        for prompt, score in enumerate(given)
    ]  # fmt: skip
    axes = se.plot(recognised(pd.DataFrame(rows), {"good": "The good one"}), "roc").axes
    assert {ax.get_title() for ax in axes} == {"flat", "back", "The good one"}
    for ax in axes:
        curve = max(ax.lines, key=lambda line: line.get_linewidth())
        name = {"The good one": "good"}.get(ax.get_title(), ax.get_title())
        assert [*zip(*curve.get_data(), strict=True)] == SCORES[name][2]
        area = np.trapezoid(curve.get_ydata(), curve.get_xdata())
        assert ax.texts[0].get_text().startswith(f"AUC {area:.2f}\n[") and ax.texts[0].get_text().endswith("n 8")
    assert se.plot(recognised(pd.DataFrame(rows).drop(columns="score")), "roc") is None


def test_what_is_written_in_a_panel_stands_in_its_corner_whatever_its_axes_measure():
    rows = pd.DataFrame({"panel": "a", "x": [0.0, 40.0], "y": [0.2, 0.9], "text": "n 8"})
    [ax] = figures.steps(rows, "x", "y").axes
    ax.figure.draw_without_rendering()
    box, panel = ax.texts[0].get_window_extent(), ax.bbox
    assert panel.x0 + panel.width / 2 < box.x0 and box.x1 <= panel.x1
    assert panel.y0 <= box.y0 and box.y1 < panel.y0 + panel.height / 2


def test_a_larger_share_is_a_darker_cell():
    shares = pd.DataFrame({"line": "a", "column": ["b", "c", "d"], "value": [0.1, 0.5, 0.9]})
    drawn = figures.cells(shares, "x", ("", "")).axes[0].collections[0]
    light = [sum(drawn.to_rgba(value)[:3]) for value in drawn.get_array().ravel()]
    assert light == sorted(light, reverse=True) and light[0] > light[-1]


def test_differences_of_identity_have_a_line_at_0_and_shares_have_none():
    [result] = se.read_results("results/demo/identity")
    lines = {ax.get_title(): len(ax.lines) for ax in se.plot(result).axes}
    assert lines == {"Claim discrimination": 1, "Susceptibility": 1, "Abstains": 0, "Right, unasked": 0}


# with 3 and with 40 models: no text on another, none cut off ----------------------------------------------------------


def faults(fig):
    """Return what a reader would complain of: texts on each other, and texts that leave the page."""
    fig.draw_without_rendering()
    panels = [ax for ax in fig.axes if ax.axison]
    texts = [*fig.texts, fig._supxlabel, fig._supylabel, *(t for one in fig.legends for t in one.get_texts())]
    texts += [text for ax in panels for text in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    for axis in (axis for ax in panels for axis in (ax.xaxis, ax.yaxis) if axis.get_visible()):
        low, high = sorted(axis.get_view_interval())
        texts += [tick.label1 for tick in axis.get_major_ticks() if low - 1e-9 <= tick.get_loc() <= high + 1e-9]
    texts = [t for t in dict.fromkeys(filter(None, texts)) if t.get_visible() and t.get_text().strip()]
    boxes, (wide, high) = {text: text.get_window_extent() for text in texts}, fig.bbox.size
    found = [f"{text.get_text()!r} cut off" for text, box in boxes.items()
             if box.x0 < -1 or box.y0 < -1 or box.x1 > wide + 1 or box.y1 > high + 1]  # fmt: skip
    for one, other in combinations(texts, 2):
        a, b = boxes[one], boxes[other]
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1:  # a pixel is no overlap
            found.append(f"{one.get_text()!r} on {other.get_text()!r}")
    return found


def of_many(kind, size):
    """Return a result of so many models: made here, or like the first of a committed one."""
    names = dict.fromkeys((f"vendor/model-{k}" for k in range(size)), "DeepSeek R1 Instruct 235B")
    names = {i: NAMES[k] if k < len(NAMES) else f"{name} {k}" for k, (i, name) in enumerate(names.items())}
    if kind == "recognition":
        frame = predictions(size, prompts=3)
        return recognised(frame.assign(score=np.random.default_rng(0).random(len(frame))), names)
    [one] = se.read_results(f"results/demo/{kind}")
    rows = one.tables[kind]
    if kind != "jury":
        rows = pd.concat(rows[rows["evaluator"] == rows["evaluator"].iloc[0]].assign(evaluator=i) for i in names)
    return result_of(kind, one.tables | {kind: rows}, names)


@pytest.mark.filterwarnings("error::UserWarning")  # matplotlib warns where a layout collapses
@pytest.mark.parametrize(("kind", "size"), [("recognition", 3), ("recognition", 40), ("identity", 40),
                                            ("existence", 40), ("jury", 3)])  # fmt: skip
def test_every_label_is_readable(kind, size):
    from selfeval.figures.plots import PLOTS

    result = of_many(kind, size)
    made = {name: each for name in PLOTS[kind] if (each := se.plot(result, name))}
    assert (
        len(made) >= 1 + (kind != "identity")
        and {name: said for name, fig in made.items() if (said := faults(fig))} == {}
    )
    assert all(fig.get_size_inches()[0] == 6.9 and fig.get_size_inches()[1] <= 9.01 for fig in made.values())
    fig = next(iter(made.values()))
    fig.axes[0].set_title("a title that is far too long for the panel " * 9)
    assert any("cut off" in found for found in faults(fig))


# files ----------------------------------------------------------------------------------------------------------------


def test_a_second_run_writes_the_same_bytes_without_dates(found, tmp_path):
    one, two = (se.plot(found).save(tmp_path / name / "mine.pdf") for name in ("one", "two"))
    assert [path.name for path in one] == ["mine.pdf", "mine.png", "mine.svg"]
    first, second = ([path.read_bytes() for path in paths] for paths in (one, two))
    pdf, png, svg = first
    assert first == second and b"/CreationDate" not in pdf and b"/Type3" not in pdf
    assert b"Software" not in png and b"<dc:date>" not in svg
    assert se.plot(found).save(tmp_path / "gpt-4.1")[0].name == "gpt-4.1.pdf"


def test_fonts_of_a_machine_change_nothing_but_letters_that_the_first_font_lacks(found, tmp_path, monkeypatch):
    written = []
    for fonts in (["DejaVu Sans"], ["DejaVu Sans", "DejaVu Serif", "DejaVu Sans Mono"]):
        monkeypatch.setattr(style, "FONTS", fonts)
        with mpl.rc_context():
            figures.use_style()
            paths = se.plot(found).save(tmp_path / str(len(fonts)) / "mine")
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]
    [name] = figures.dots(rows_of((0.1, 0.3)).assign(line="模型"), "x").axes[0].get_yticklabels()
    assert name.get_fontfamily() == fonts


def test_files_carry_the_title_that_they_are_given(found, tmp_path):
    pdf, png, svg = se.plot(found).save(tmp_path / "mine", "J is 0 for all")
    assert all(b"J is 0 for all" in path.read_bytes() for path in (pdf, png, svg))
    assert b"/Title (mine)" in se.plot(found).save(tmp_path / "mine")[0].read_bytes()


def test_the_axis_holds_all_ends_of_intervals_whatever_the_estimates():
    low, high = figures.dots(rows_of((-0.9, 0.1), (0.0, 0.95)), "x").axes[0].get_xlim()
    assert low <= -0.9 and high >= 0.95


def test_a_result_read_again_is_what_was_saved(found, tmp_path):
    se.save(found, tmp_path / "one")
    [again] = se.read_results(tmp_path)
    for name, table in found.tables.items():
        told, table = (each.drop(columns="seed", errors="ignore") for each in (again.tables[name], table))
        pd.testing.assert_frame_equal(told, table.reset_index(drop=True), check_dtype=False, rtol=1e-5)
    assert (tmp_path / "one" / "self_recognition.svg").exists()
    assert "0.333333," in (tmp_path / "one" / "self_recognition.csv").read_text()
    keep_parameters(tmp_path / "one", task=["exact_model"], words=60, kind="k", about="", out=str(tmp_path / "one"))
    keep_parameters(tmp_path, out="", of_another=1)  # kept nowhere, so nobody read it
    estimates = se.runs(tmp_path)
    assert {*estimates["result"], *estimates["kind"], *estimates["words"]} == {"one", "recognition", 60}
    assert "of_another" not in estimates
    with pytest.raises(InputError, match="no results below"):
        se.read_results(tmp_path / "nowhere")


def test_a_parameter_of_a_row_is_the_one_of_the_last_stage_that_had_it(found, tmp_path):
    stages = {
        "texts": {"models": ["a", "b"], "words": 60, "corpus": f"{tmp_path}/texts"},
        "answers": {"models": ["a"], "corpus": f"{tmp_path}/texts", "out": f"{tmp_path}/answers"},
        "result": {"predictions": [f"{tmp_path}/answers"], "out": f"{tmp_path}/result"},
    }
    se.save(found, tmp_path / "result")
    for stage, parameters in stages.items():
        keep_parameters(tmp_path / stage, **parameters)
    estimates = se.runs(tmp_path)
    assert {*estimates["models"]} == {"a"} and {*estimates["words"]} == {60}


def test_the_committed_results_are_small_and_of_every_kind():
    found = se.read_results("results/families") + se.read_results("results/demo")
    assert {one.kind for one in found} == {*KINDS} and all(len(one) for one in found)
    assert sum(path.stat().st_size for path in (se.DATA / "results").rglob("*.csv")) < 8_000_000


@pytest.mark.parametrize("place", ["panel", "line"])
def test_where_some_marks_have_no_null_no_mark_is_hollow(place):
    rows = rows_of((-0.1, 0.3), (0.0, 0.4), null=[0, np.nan])
    rows[place] = ["a difference", "a share"]
    drawn = [points for ax in figures.dots(rows, "x").axes for points in marks(ax).values()]
    assert len({tuple(face) for points in drawn for face in points.get_facecolor()}) == 1
    assert not any(label.startswith("interval") for ax in figures.dots(rows, "x").axes for label in marks(ax))
