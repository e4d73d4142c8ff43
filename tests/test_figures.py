"""Figures, tables for print and sets of results: intervals as given, gaps as gaps, labels readable, bytes equal."""

import json
import shutil
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from selfeval.figures.results import BY_FAMILY, find, save

from selfeval import DATA, figures
from selfeval.errors import InputError
from selfeval.figures import paper, printed, results
from selfeval.figures.rows import COLUMNS, renamed
from selfeval.figures.style import DOUBLE, SINGLE
from selfeval.figures.tables import estimate_text
from selfeval.stats import condition_contrasts, confusion, recognition_table, roc_points

ODD = ["Costs $$ & 100%_a^b", "A display name of sixty characters, which is rather long, yes", "Größe 7B (instruct)"]


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


DISPLAY = {"vendor/model-0": ODD[0], "vendor/model-1": "M1"}


def inputs(frame, **more):
    table = recognition_table(frame, n_resamples=50)
    return {"recognition": table, "counts": confusion(frame), "roc": roc_points(frame)} | more


@pytest.fixture(scope="module")
def found():
    return inputs(predictions(4))


def drawn(found, name):
    """Draw one figure of self-recognition; return its panels."""
    return figures.draw("recognition", found, DISPLAY, only=[name])[name].axes


def labels(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def heat(ax):
    return ax.collections[0].get_array()


# what is drawn --------------------------------------------------------------------------------------------------------


@pytest.mark.fault("hostile text")
def test_labels_are_literal_and_complete(found):
    [ax] = drawn(found, "advantage_exact_model")
    assert sorted(labels(ax)) == [ODD[0], "M1", "vendor/model-2", "vendor/model-3"]
    assert not any(text.get_parse_math() for text in ax.figure.findobj(Text))
    said = "discrimination J (point), advantage A (diamond), policy all; 95 % intervals over prompts"
    assert ax.figure._supxlabel.get_text() == said


def with_ends(found, statistic, low, high, method=""):
    """Return tables in which a statistic has this interval for every evaluator, by all methods or one."""
    table = found["recognition"].copy()
    chosen = (table["statistic"] == statistic) & (table["author"] == "") & table["method"].str.contains(method)
    table.loc[chosen, ["low", "high"]] = [low, high]
    return found | {"recognition": table}


def test_intervals_are_drawn_as_given_that_of_the_advantage_is_its_bootstrap(found):
    given = with_ends(with_ends(found, "discrimination", -0.123, 0.876), "advantage", -1.35, 0.5, "bca")
    [ax] = drawn(given, "advantage_exact_model")
    lines = [lines for lines in ax.collections if hasattr(lines, "get_segments")]
    ends = [{tuple(line[:, 0]) for line in each.get_segments()} for each in lines]
    assert ends == [{(-1.35, 0.5)}, {(-0.123, 0.876)}] and ax.get_xlim()[0] < -1.35, "inside of the picture"
    below, point = (lines[k].get_segments()[0][0, 1] for k in (0, 1))
    assert 0.2 < point - below < 0.5, "on a line of its own, nearer to its evaluator than to the next"


ENDS = {(0.1, 0.3): "interval excludes 0", (-0.3, -0.1): "interval excludes 0", (-0.1, 0.3): "interval includes 0",
        (0, 0.3): "interval includes 0", (-0.3, 0): "interval includes 0", (np.nan, np.nan): "no interval"}  # fmt: skip


@pytest.mark.parametrize(("ends", "said"), ENDS.items())
def test_both_ends_of_an_interval_say_whether_a_mark_is_filled_hollow_or_grey(found, ends, said):
    [ax] = drawn(with_ends(found, "discrimination", *ends), "advantage_exact_model")
    marks = {mark.get_label(): mark for mark in ax.collections if mark.get_label() in ENDS.values()}
    assert [*marks] == [said] and len(marks[said].get_offsets()) == 4
    assert said in [text.get_text() for text in ax.figure.legends[0].get_texts()]
    [face], [edge, *_] = marks[said].get_facecolor()[:1].tolist(), marks[said].get_edgecolor().tolist()
    assert face == {"interval excludes 0": edge, "interval includes 0": [1] * 4}.get(said, [0.8] * 3 + [1])


def faces(ax):
    """Return {the estimate of a mark: whether it is hollow}."""
    marks = [mark for mark in ax.collections if not hasattr(mark, "get_segments")]
    return {float(x): bool((mark.get_facecolor() == 1).all()) for mark in marks for x, _ in mark.get_offsets()}


def test_the_reference_of_readings_is_a_half_for_areas_and_0_for_differences():
    """All tables have the same four intervals; which of them is hollow depends on the line alone."""
    [one] = find("results/families", only="implicit")
    ends = np.array([[0.1, 0.4], [0.6, 0.9], [-0.2, 0.3], [0.3, 0.7]])
    for name, area, hollow in (("readings", 0.5, [0.5]), ("gaps", 0.0, [0.05])):
        table = one.tables["implicit" if name == "readings" else "gaps"]
        rows = table[table["statistic"] == "auc_within_prompt"].iloc[:4]
        rows = rows.assign(low=ends[:, 0], high=ends[:, 1], estimate=ends.mean(1), evaluator=[*"abcd"])
        tables = {"implicit": rows, "gaps": rows if name == "gaps" else one.tables["gaps"]}
        ax = figures.draw("implicit", tables)[f"{name}_implicit"].axes[0]
        assert [*ax.lines[0].get_xdata()] == [area, area]
        assert [x for x, is_hollow in faces(ax).items() if is_hollow] == pytest.approx(hollow)
        assert f"interval includes {area:g}" in [text.get_text() for text in ax.figure.legends[0].get_texts()]


def test_the_trap_is_visible(found):
    """Always-itself: a full usual score, and its J is hollow, the interval includes 0; the one that knows is filled."""
    [ax] = drawn(found, "advantage_exact_model")
    names = dict(zip(ax.get_yticks(), labels(ax), strict=True))
    marks = {marks.get_label(): marks for marks in ax.collections}
    hollow, filled = (marks[f"interval {does} 0"] for does in ("includes", "excludes"))
    assert (0, "M1") in [(x, names[y]) for x, y in hollow.get_offsets()] and (hollow.get_facecolor() == 1).all()
    assert [(x, names[y]) for x, y in filled.get_offsets()] == [(1, ODD[0])]
    usual = next(mark for label, mark in marks.items() if label.startswith("advantage A"))
    assert (1, "M1") in [(x, names[round(y)]) for x, y in usual.get_offsets()]


def test_simulated_models_stand_apart_in_the_same_order_on_the_same_scale():
    """Two conditions, a model of each kind in the wrong order: real ones first, all figures alike."""
    frame = predictions(4).replace("vendor/model-0", "sim/knows")
    both = pd.concat([frame.assign(condition=f"hints={h}") for h in ("false", "true")])
    made = figures.draw("recognition", inputs(both, contrasts=condition_contrasts(both)), DISPLAY)
    panels = [made[name].axes[0] for name in made if name.startswith(("advantage", "forest", "contrasts"))]
    assert len(panels) == 5 and len({ax.get_xlim() for ax in panels}) == 1
    [order] = {tuple(labels(ax)) for ax in panels}
    assert order[-2:] == ("simulated:", "sim/knows")
    assert "hints: false → true" in made["contrasts_exact_model"].axes[0].get_title()


def test_a_habit_is_a_dark_row_recognition_a_dark_diagonal_and_no_texts_a_hatched_cell(found):
    ax = drawn(found, "claimed_exact_model")[0]
    shown = dict(zip(labels(ax), heat(ax), strict=True))
    assert shown["M1"].tolist() == [1, 1, 1, 1] and sorted(shown[ODD[0]]) == [0, 0, 0, 1]
    assert np.ma.getmaskarray(heat(ax)).sum() == 1 and ax.patch.get_hatch()
    assert sorted(heat(drawn(inputs(predictions(3, "binary_self")), "claimed_binary_self")[0])[0]) == [0, 0, 1]
    for name, low in (("claimed", 0), ("matrix", -1), ("predictions", 0)):  # so that small values look small
        mesh = drawn(found, f"{name}_exact_model")[0].collections[0]
        assert (mesh.norm.vmin, mesh.norm.vmax) == (low, 1)


def test_nothing_is_drawn_from_nothing(found):
    silent = found["recognition"].assign(estimate=np.nan, low=np.nan, high=np.nan)
    assert figures.draw("recognition", {"recognition": silent}) == {}


SCORES = {  # (of own texts, of others' texts): the curve that they make, ties being one step
    "good": ([0.9, 0.5, 0.5, 0.5], [0.5, 0.5, 0.1, 0.1], [(0, 0), (0, 0.25), (0.5, 1), (1, 1)]),
    "flat": ([0.7, 0.7, 0.7, 0.7], [0.7, 0.7, 0.7, 0.7], [(0, 0), (1, 1)]),
    "back": ([0.1, 0.1, 0.1, 0.1], [0.8, 0.8, 0.9, 0.9], [(0, 0), (0.5, 0), (1, 0), (1, 1)]),
}


@pytest.mark.parametrize("own_first", [True, False])
def test_each_roc_curve_stands_in_the_panel_of_its_evaluator_and_ties_are_one_step(own_first):
    """By discrimination the evaluators stand neither in the order of their names nor in that of their areas."""
    rows = []
    for name, (own, others, _) in SCORES.items():
        for author in sorted(("me", "you"), reverse=not own_first):
            for prompt, score in enumerate(own if author == "me" else others):
                says = {"good": False, "flat": author == "me", "back": author == "me" and prompt < 2}[name]
                rows.append({"text_id": f"{author}{prompt}", "prompt_id": prompt, "task_type": "binary_self",
                             "evaluator_model": name, "true_model": name if author == "me" else "other",
                             "predicted_self": says, "score": score})  # fmt: skip
    titles = {"good": "The good one", "back": "The one that is back to front"}
    axes = figures.draw("recognition", inputs(pd.DataFrame(rows)), titles)["roc_binary_self"].axes
    assert [ax.get_title() for ax in axes] == ["flat", "The one that is back to front", "The good one"]
    colours = set()
    for ax, name in zip(axes, ("flat", "back", "good"), strict=True):
        curve = max(ax.lines, key=lambda line: line.get_linewidth())
        assert [*zip(*curve.get_data(), strict=True)] == SCORES[name][2]
        area = np.trapezoid(curve.get_ydata(), curve.get_xdata())
        assert ax.texts[0].get_text().startswith(f"AUC {area:.2f}\n[") and ax.texts[0].get_text().endswith("n 8")
        colours.add(curve.get_color())
    assert len(colours) == 3
    unscored = pd.DataFrame(rows).drop(columns="score")
    assert "roc_binary_self" not in figures.draw("recognition", inputs(unscored))


def test_identity_is_a_map_of_models_by_families():
    rows = [{"model": "m", "family": family, "condition": "", "source": "readout", "statistic": name, "estimate": rate,
             "low": 0.0, "high": 1.0, "level": 0.95, "method": "mover", "n": 9, "n_templates": n, "note": ""}
            for family, n in (("", 9), ("a", 7), ("b", 2))
            for name, rate in zip(BY_FAMILY, (0.75, 0.25, 0.5), strict=True)]  # fmt: skip
    rows.append(rows[0] | {"statistic": "survival", "turn": 2, "estimate": 0.5})
    made = figures.draw("identity", {"identity": pd.DataFrame(rows)})
    assert set(made) == {"claims_identity", "acceptance_identity", "survival_identity"}
    ax = made["acceptance_identity"].axes[0]
    assert [text.get_text() for text in ax.texts] == [".75 − .25\nn 7", ".75 − .25\nn 2"]
    assert heat(ax).tolist() == [[0.5, 0.5]]


def test_means_by_turn_have_t_intervals_over_the_conversations_judged_on_it():
    rows = [("a", 1, 0.2), ("b", 1, 0.4), ("a", 2, 1.0), ("b", 2, None)]
    verdicts = pd.DataFrame(rows, columns=["conversation_id", "turn", "score"]).assign(arm="reask", source="model")
    nothing = pd.DataFrame(columns=COLUMNS)
    [ax] = figures.draw("jury", {"jury": nothing, "verdicts": verdicts})["turns_jury"].axes
    assert ax.get_title() == "second look" and [*ax.lines[0].get_ydata()] == pytest.approx([0.3, 1.0])
    [bar] = [line for line in ax.collections[0].get_segments() if len(line)]  # one conversation has no interval
    assert bar[:, 1].tolist() == [0, 1]  # t with one degree of freedom


def test_coverage_has_every_scenario_with_its_error_and_power_stands_on_its_plan():
    covered = pd.DataFrame(
        {"scenario": ["a", "a", "b", "b"], "prompts": [20, 50] * 2, "coverage": [0.9, 0.95, 0.91, 0.96]}
    )
    covered = covered.assign(statistic="discrimination", method="default", mc_error=0.01)
    covered = pd.concat([covered, covered.assign(method="BCa", coverage=0.5)])
    power = pd.DataFrame({"difference": [0, 0.2] * 2, "prompts": [20, 20, 50, 50], "power": [0.05, 0.5, 0.04, 0.8],
                          "mc_error": 0.01, "planned_sd": [0.05, 0.4, 0.05, 0.7]})  # fmt: skip
    made = figures.draw("validation", {"coverage": covered, "power": power})
    few, more = made["coverage_validation"].axes
    assert [ax.get_title() for ax in (few, more)] == ["20 prompts", "50 prompts"]
    assert [text.get_text() for text in few.get_yticklabels()] == ["a", "b"]
    drawn = {round(float(x), 3) for points in few.collections for x, _ in points.get_offsets()}
    assert {0.9, 0.91} <= drawn and 0.5 not in drawn
    lines = [[*line.get_ydata()] for line in made["power_validation"].axes[0].lines]
    assert lines == [[0.05, 0.5], [0.05, 0.4], [0.04, 0.8], [0.05, 0.7]]


# with 3 and with 40 models: no text on another, none cut off ----------------------------------------------------------


def faults(fig):
    """Return what a reader would complain of: texts on each other, and texts that leave the page."""
    fig.draw_without_rendering()
    panels = [ax for ax in fig.axes if ax.axison]
    texts = [*fig.texts, fig._supxlabel, fig._supylabel, *(t for legend in fig.legends for t in legend.get_texts())]
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
    """Return tables and labels of a kind's results with so many models, as committed or like the first of these."""
    names = dict.fromkeys((f"vendor/model-{k}" for k in range(size)), "DeepSeek R1 Instruct 235B")
    names = {i: ODD[k] if k < len(ODD) else f"{name} {k}" for k, (i, name) in enumerate(names.items())}
    if kind == "recognition":
        frame = predictions(size, prompts=3)
        return inputs(frame.assign(score=np.random.default_rng(0).random(len(frame)))), names
    [one] = find("results/demo", only=kind)
    rows = one.tables[kind]
    if kind != "jury":
        rows = pd.concat(rows[rows["evaluator"] == rows["evaluator"].iloc[0]].assign(evaluator=i) for i in names)
    return one.tables | {kind: rows}, names


@pytest.mark.filterwarnings("error::UserWarning")  # matplotlib warns where a layout collapses
@pytest.mark.parametrize(("kind", "size", "width"), [
    ("recognition", 3, SINGLE), ("recognition", 40, SINGLE), ("identity", 3, SINGLE), ("identity", 40, DOUBLE),
    ("existence", 3, SINGLE), ("existence", 40, DOUBLE), ("jury", 3, SINGLE),
])  # fmt: skip
def test_every_label_is_readable(kind, size, width):
    made = figures.draw(kind, *of_many(kind, size), width)
    assert len(made) >= 2 and {name: said for name, fig in made.items() if (said := faults(fig))} == {}
    for name, fig in made.items():
        fits = size < 40 or not name.startswith(("claimed", "matrix", "predictions"))  # these need two columns of print
        assert fig.get_size_inches()[0] == (width if fits else DOUBLE) and fig.get_size_inches()[1] <= 9.01
    fig.axes[0].set_title("a title that is far too long for the panel " * 9)
    assert any("cut off" in found for found in faults(fig))


# tables for print -----------------------------------------------------------------------------------------------------


def test_latex_prints_what_data_say_with_rules_and_the_notes_below(tmp_path):
    intervals = ["-0.10 [-0.20, 0.30]", "< 0.001"]
    frame = pd.DataFrame({"name": ["[odd] $x$ ^ ~ \\", "a_b"], "J": intervals, "n": [0.12345, np.nan]})
    csv, tex = figures.save_table(frame, tmp_path, "table", notes=["100 % of GPT_4"])
    pd.testing.assert_frame_equal(pd.read_csv(csv), frame)
    text = tex.read_text()
    name = r"{[}odd] \$x\$ \textasciicircum{} \textasciitilde{} \textbackslash{}"
    assert name in text and r"{\scriptsize {[}\textminus{}0.20, 0.30]}} & 0.123 \\" in text and r"\toprule" in text
    assert r"a\_b & \textless{} 0.001 &  \\" in text
    assert r"\item 100 \% of GPT\_4" in text and text.index("tablenotes") > text.index(r"\end{tabular}")


def test_a_pivot_table_is_printed_with_the_names_of_its_rows(tmp_path):
    frame = pd.DataFrame({"author": ["Ann", "Bob"], "candidate": ["x", "x"], "words": [1.5, 2.0]})
    pivot = frame.pivot_table(index="author", columns="candidate", values="words")
    csv, tex = figures.save_table(pivot, tmp_path, "table")
    assert csv.read_text() == "author,x\nAnn,1.5\nBob,2.0\n" and "Ann & 1.500" in tex.read_text()
    csv, _ = figures.save_table(frame[frame["author"] == "Bob"], tmp_path, "table")
    assert csv.read_text() == "author,candidate,words\nBob,x,2.0\n"


def test_what_rows_share_stands_above_them_and_long_heads_take_two_lines():
    frame = pd.DataFrame({"task": ["a", "a", "b"], "model": ["x", "y", "x"], "own texts claimed": ["1", "", "< 2"]})
    tex = printed.latex(frame, groups=["task"])
    assert "\n\\rlap{\\emph{a}} &  \\\\\nx & 1 \\\\\ny &  \\\\\n\\rlap{\\emph{b}} &  \\\\\nx & " in tex
    assert r"{@{}lc@{}}" in tex and r"model & \shortstack{\strut own texts\\\strut claimed} \\" in tex


# sets of results ------------------------------------------------------------------------------------------------------

RECORDS = pd.DataFrame({"evaluator": ["a/b"], "served_model": ["b-2026"]})


def keep(folder, table):
    return save(folder, "existence", RECORDS, {"existence": table}, {}, {"temperature": 0.0}, {"a/b": "A <b> | $x$"})


@pytest.fixture
def existence():
    rows = [{"evaluator": "a/b", "author": "", "task": "existence", "condition": "answer=yes_no;reasoning=false",
             "statistic": name, "estimate": 1 / 3, "low": 0.1, "high": 0.9, "level": 0.95, "method": "mover", "p": p,
             "p_holm": p, "n": 4, "clusters": 3, "cluster_unit": "name", "note": "few_targets", "policy": ""}
            for name, p in (("score_real", None), ("score_invented", None), ("discrimination", 0.0001))]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_mean_without_an_interval_is_not_drawn_as_if_it_were_certain(existence):
    def explained(table):
        [legend] = figures.draw("existence", {"existence": table})["scores_existence"].legends
        return [text.get_text() for text in legend.get_texts()]

    assert explained(existence) == ["real names", "invented names"]
    alone = existence.assign(low=existence["low"].where(existence["statistic"] != "score_real"))
    assert explained(alone) == ["real names", "invented names", "no interval"]


@pytest.fixture
def kept(existence, tmp_path):
    keep(tmp_path / "in" / "names", existence)
    return tmp_path / "in"


def test_a_set_read_again_is_what_was_kept_and_its_date_that_of_the_first_time(kept, existence):
    [one] = find(str(kept))
    assert (one.name, one.kind, one.display) == ("names", "existence", {"a/b": "A <b> | $x$"})
    pd.testing.assert_frame_equal(one.tables["existence"][existence.columns], existence, check_dtype=False, rtol=1e-5)
    about = kept / "names" / "paper" / "about.json"
    assert "0.333333," in about.with_name("existence.csv").read_text()
    first = json.loads(about.read_text())
    about.write_text(json.dumps(first | {"date": "2020-02-02"}))
    for table, date in ((existence, "2020-02-02"), (existence.assign(estimate=0.5), first["date"])):
        keep(kept / "names", table)
        assert json.loads(about.read_text())["date"] == date


def test_a_second_run_writes_the_same_bytes_and_says_what_made_them(kept, tmp_path):
    written = []
    for out in (tmp_path / "one", tmp_path / "two"):
        index = paper.make(find(str(kept)), out, "make it")
        files = {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*.*"))}
        assert {*files} == {"README.md", "index.json", *(file for entry in index for file in entry["files"])}
        written.append(files)
    assert written[0] == written[1] and len([name for name in files if name.endswith(".svg")]) == 4
    pdf, png, svg = (files[f"names_scores.{kind}"] for kind in ("pdf", "png", "svg"))
    assert b"/CreationDate" not in pdf and b"/Type3" not in pdf and b"Software" not in png and b"<dc:date>" not in svg
    first, table = index[0], next(entry for entry in index if entry["type"] == "table")
    assert (first["name"], first["notebook"], first["paper"]) == ("names_discrimination", "07_existence", True)
    assert "n: 1 model, 3 names. 95 % intervals: differences by MOVER (Zou and Donner 2008)." in first["caption"]
    assert "single/names_discrimination.pdf" in first["files"]
    assert table["notes"][0] == "A <b> | $x$ is a/b (answered by b-2026)."
    assert "0.33 [0.10, 0.90]" in table["rows"][0] and "< 0.001" in table["rows"][0]
    readme = files["README.md"].decode()
    assert "(`make it`)" in readme and "A \\<b\\> \\| $x$" in readme and "(names_scores.png)" in readme
    numbers = pd.read_csv(out / "tables" / "names_existence.csv")
    assert numbers.loc[0, ["discrimination_low", "p", "n", "clusters"]].tolist() == [0.1, 0.0001, 4, 3]


def test_what_cannot_be_read_is_said_in_one_sentence(kept, tmp_path):
    with pytest.raises(InputError, match="no results for figures below"):
        find(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="There is no set of results 'x'; found names"):
        find(str(kept), only="x")
    shutil.copytree(kept / "names", tmp_path / "more" / "names")
    with pytest.raises(InputError, match="Two sets of results are called 'names'"):
        find([str(kept), str(tmp_path / "more")])
    (kept / "names" / "paper" / "existence.csv").unlink()
    with pytest.raises(InputError, match=r"cannot be read .* run their notebook again"):
        find(str(kept))


def test_the_committed_results_are_small_and_complete():
    for folders in (["sample"], ["families", "demo"]):
        assert {one.kind for one in find([f"results/{folder}" for folder in folders])} == set(results.KINDS)
    for folder in ("sample", "families", "demo"):
        assert sum(path.stat().st_size for path in DATA.glob(f"results/{folder}/*/paper/*")) < 1_500_000


OLD = [  # a row as up to 0.1, and what it is now
    ({"evaluator": "a", "n_prompts": 4, "note": "clusters_are_texts"}, {"clusters": 4, "cluster_unit": "text"}),
    ({"evaluator": "a", "n_targets": 3}, {"clusters": 3, "cluster_unit": "name", "policy": ""}),
    (
        {"model": "a", "family": "f", "source": "readout", "turn": 2, "statistic": "survival", "n_templates": 4},
        {"evaluator": "a", "task": "f", "policy": "readout", "statistic": "survival@2", "cluster_unit": "template"},
    ),
    ({"model": "a", "turn": 2, "statistic": "restricted_mean", "n_templates": 4}, {"statistic": "restricted_mean"}),
    (
        {"arm": "debate", "source": "human", "round": 2.0, "juror": None, "n_conversations": 3},
        {"task": "debate", "author": "human", "condition": "round=2", "evaluator": "", "cluster_unit": "conversation"},
    ),
]


@pytest.mark.parametrize(("old", "new"), OLD)
def test_tables_of_0_1_are_read_in_the_columns_of_today(old, new):
    table = renamed(pd.DataFrame([{"statistic": "x"} | old]))
    assert [*table][: len(COLUMNS)] == [*COLUMNS] and {name: table[name].iloc[0] for name in new} == new


def test_a_set_keeps_default_rows_and_the_bca_rows_that_are_shown(found, tmp_path):
    empty = pd.DataFrame(columns=["task", "condition"])
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "survival.csv").touch()  # of 0.1, which would be read too
    save(tmp_path, "recognition", RECORDS, found | {"contrasts": empty}, {}, {}, {})
    assert not (tmp_path / "paper" / "survival.csv").exists()
    rows = pd.read_csv(tmp_path / "paper" / "recognition.csv").query("author.isna() and statistic == 'self_accuracy'")
    assert rows["method"].unique().tolist() == ["wilson_effective_n"] and rows["policy"].unique().tolist() == ["all"]
    kept = pd.read_csv(tmp_path / "paper" / "recognition.csv").query("method == 'bca'")
    assert set(kept["statistic"]) == {"advantage", "discrimination"}
    assert len(pd.read_csv(tmp_path / "self_recognition.csv")) == len(found["recognition"])


def test_the_papers_table_and_figure_have_the_advantage_with_its_bootstrap_and_say_so(found, tmp_path):
    nothing = {"contrasts": condition_contrasts(predictions(4))}
    for name, settings in (("told", {"n_resamples": 50}), ("untold", {})):
        save(tmp_path / name, "recognition", RECORDS, found | nothing, {}, settings, {})
    told, untold = find(str(tmp_path))
    [(_, numbers, shown)] = figures.set_tables(told).values()
    rows = found["recognition"].query("statistic == 'advantage' and author == ''").set_index("evaluator")
    bca, default = (rows[rows["method"] == method] for method in ("bca", "mover"))
    assert numbers["advantage_bca_low"].tolist() == pytest.approx(bca["low"].tolist(), abs=1e-5)
    assert numbers["advantage_low"].tolist() == pytest.approx(default["low"].tolist(), abs=1e-5)
    for cell, row in zip(shown["advantage A [BCa]"], bca.itertuples(), strict=True):
        assert cell == estimate_text(row.estimate, row.low, row.high)
    for text in (paper.caption(told, "advantage_exact_model"), " ".join(paper.notes(told))):
        assert "BCa bootstrap over prompts (Efron 1987)" in text and "The bootstrap, of 50 resamples, has no" in text
        assert "A is (Nq − 1) / (N − 1)" in text and "n_resamples" not in text.replace(" ", "_")
    assert "The bootstrap has no width" in paper.caption(untold, "advantage_exact_model")


def test_a_caption_counts_the_prompts_of_its_own_condition(tmp_path):
    frame = predictions(3)
    both = [frame.assign(condition="hints=false"), frame[frame["prompt_id"] < 4].assign(condition="hints=true")]
    tables = inputs(pd.concat(both), contrasts=condition_contrasts(pd.concat(both)))
    save(tmp_path / "both", "recognition", RECORDS, tables, {}, {}, {})
    [one] = find(str(tmp_path))
    for condition, prompts in (("false", 8), ("true", 4)):
        said = paper.caption(one, f"forest_exact_model_hints-{condition}")
        assert f"n: 3 models, {prompts} prompts." in said
    assert "n: 3 models, 4 prompts." in paper.caption(one, "contrasts_exact_model")
