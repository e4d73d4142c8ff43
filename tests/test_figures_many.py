"""Figures of 3, 10 and 40 models, as wide as one and as two columns of print: no text on another, none cut off."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from selfeval import figures
from selfeval.figures import DOUBLE, SINGLE
from selfeval.figures.rows import COLUMNS, renamed
from selfeval.stats import confusion, recognition_table, roc_points
from selfeval.stats.votes import ARMS

ODD = [
    "Costs $5 & 100%_a^b $x$",
    "A display name of sixty characters, which is rather long, yes",
    "Größe 7B (instruct)",
]


def boxes(fig):
    """Return (tick labels per axis, other texts) with the boxes that they are drawn in."""
    renderer = fig._get_renderer()
    panels = [ax for ax in fig.axes if ax.axison]

    def shown(texts):
        return [
            (t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_visible() and t.get_text().strip()
        ]

    ticks = []
    for axis in (axis for ax in panels for axis in (ax.xaxis, ax.yaxis) if axis.get_visible()):
        low, high = sorted(axis.get_view_interval())
        inside = [tick.label1 for tick in axis.get_major_ticks() if low - 1e-9 <= tick.get_loc() <= high + 1e-9]
        ticks.append(shown(inside))
    others = [text for ax in panels for text in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    others += [*fig.texts, *(text for legend in fig.legends for text in legend.get_texts())]
    return ticks, shown(dict.fromkeys([*others, *filter(None, (fig._supxlabel, fig._supylabel))]))


def overlapping(one, other):
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    return across > 1 and min(one.y1, other.y1) - max(one.y0, other.y0) > 1  # a pixel is no overlap


def faults(fig):
    """Return what a reader would complain of: texts on each other, and texts that leave the page."""
    fig.draw_without_rendering()
    ticks, others = boxes(fig)
    found = [f"{a!r} on {b!r}" for axis in ticks for (a, x), (b, y) in pairwise(axis)
             if overlapping(x, y)]  # fmt: skip
    every = [*others, *(label for axis in ticks for label in axis)]
    found += [f"{a!r} on {b!r}" for k, (a, x) in enumerate(others) for b, y in every[k + 1 :] if overlapping(x, y)]
    wide, high = fig.bbox.size
    return found + [f"{a!r} cut off" for a, x in every
                    if x.x0 < -1 or x.y0 < -1 or x.x1 > wide + 1 or x.y1 > high + 1]  # fmt: skip


def labels(size):
    names = [f"{family} {version}" for version in ("3", "4.5 Flash", "235B A22B 2507", "R1 Instruct", "mini")
             for family in ("Llama", "Claude", "Gemini", "DeepSeek", "Grok", "Kimi", "GLM", "Mistral")]  # fmt: skip
    names[: len(ODD)] = ODD
    return {f"vendor/model-{k}": name for k, name in enumerate(names[:size])}


def recognition(size, width):
    rng, prompts = np.random.default_rng(0), 4
    e, t, p = (x.ravel() for x in np.meshgrid(range(size), range(size), range(prompts), indexing="ij"))
    answer = np.where(e == 0, t, rng.integers(0, size, len(e)))
    ids = np.array([*labels(size)], object)
    frame = pd.DataFrame({
        "text_id": t * prompts + p, "evaluator_model": ids[e], "true_model": ids[t], "task_type": "exact_model",
        "prompt_id": p, "predicted_model": ids[answer], "predicted_self": answer == e, "score": rng.random(len(e)),
    })[~((e == 2) & (t == 0))]  # fmt: skip
    table = renamed(recognition_table(frame, n_resamples=1))
    human = confusion(frame).assign(author=lambda c: c["author"].mask(c["author"] == ids[-1], "human"))
    changes = table[(table["statistic"] == "discrimination") & (table["author"] == "")]
    changes = changes.assign(field="hints", first="false", second="true")
    found = {"recognition": table, "counts": human, "roc": roc_points(frame), "contrasts": changes}
    return figures.draw("recognition", found, labels(size) | {"human": "Human"}, width)


def estimates(keys, statistics, unit="template"):
    """Make rows of a result table: a statistic for each key, some of them without an estimate."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame([dict.fromkeys(COLUMNS, "") | key | {"statistic": s} for key in keys for s in statistics])
    value = rng.random(len(frame))
    value[::17] = np.nan
    ends = {"estimate": value, "low": (value - 0.2).clip(0), "high": (value + 0.2).clip(0, 1)}
    return frame.assign(**ends, level=0.95, clusters=20, cluster_unit=unit, method="mover")


def identity(size, width):
    models = [*labels(size)]
    whole = ["claim_discrimination", "susceptibility", "abstain", "neutral_right", "survival@1", "survival@2"]
    parts = [estimates([{"evaluator": m} for m in models], whole),
             estimates([{"evaluator": m, "task": f"family-{k}"} for m in models for k in range(9)],
                       ["claim_discrimination", "accept_true", "accept_false"])]  # fmt: skip
    return figures.draw("identity", {"identity": pd.concat(parts)}, labels(size), width)


def existence(size, width):
    keys = [{"evaluator": m, "task": "existence", "condition": f"answer={form};reasoning=false"} for m in labels(size)
            for form in ("yes_no", "true_false", "probability", "likert")]  # fmt: skip
    table = estimates(keys, ["score_real", "score_invented", "discrimination"], "name")
    return figures.draw("existence", {"existence": table}, labels(size), width)


def jury(size, width):
    rows = [{"conversation_id": f"{source}{k}", "turn": turn, "arm": arm, "source": source, "score": (k % 5) / 4}
            for arm in ARMS for source in ("human", "model") for k in range(size) for turn in (1, 2, 3)]  # fmt: skip
    arms = [{"task": a} for a in (*ARMS, "length", "character n-grams")]
    parts = [
        estimates([arm | {"author": s} for arm in arms[: len(ARMS)] for s in ("human", "model")], ["mean_score"]),
        estimates([{"task": f"debate - {a}"} for a in ARMS[:4]], ["difference"]),
        estimates([arm | {"condition": f"round={r}"} for arm in arms[2:5] for r in (2, 3)],
                  ["shift", "absolute_shift", "crossing"]),
        estimates(arms, ["auc", "paired_accuracy"]),
    ]  # fmt: skip
    return figures.draw("jury", {"jury": pd.concat(parts), "verdicts": pd.DataFrame(rows)}, {}, width)


@pytest.mark.filterwarnings("error::UserWarning")  # matplotlib warns where a layout collapses
@pytest.mark.parametrize(("draw", "size", "width"), [
    (recognition, 3, SINGLE), (recognition, 10, DOUBLE), (recognition, 40, SINGLE), (identity, 3, SINGLE),
    (identity, 40, DOUBLE), (existence, 3, SINGLE), (existence, 40, DOUBLE), (jury, 3, SINGLE), (jury, 3, DOUBLE),
])  # fmt: skip
def test_every_label_is_readable(draw, size, width):
    drawn = draw(size, width)
    assert len(drawn) >= 2
    complaints = {name: faults(fig) for name, fig in drawn.items()}
    assert {name: found for name, found in complaints.items() if found} == {}
    for name, fig in drawn.items():
        fits = size < 40 or not name.startswith(("claimed", "matrix", "predictions"))  # these need two columns of print
        assert fig.get_size_inches()[0] == (width if fits else DOUBLE) and fig.get_size_inches()[1] <= 9.01


def test_the_check_finds_labels_on_each_other_and_labels_cut_off():
    fig = existence(3, DOUBLE)["discrimination_existence"]
    assert faults(fig) == []
    fig.axes[0].set_title("a title that is far too long for the panel " * 3)
    fig.axes[0].set_yticks([0, -0.05], ["one label", "another"])
    assert any("cut off" in found for found in faults(fig)) and "'one label' on 'another'" in faults(fig)
