"""The style classifier finds what texts give away, on prompts it has not seen, and nothing where there is nothing."""

import random

import pytest

from selfeval import stats
from selfeval.errors import InputError
from selfeval.recognition import contrasts as classifier
from selfeval.statistics.classifier import out_of_fold

WORDS = "river stone light paper window garden morning letter signal coffee".split()


def predicted(mark, n_prompts=12):
    """Predict two authors on the same prompts; mark: the word that the second one always adds."""
    draw = random.Random(0)
    rows = []
    for p in range(n_prompts):
        for author in ("x/one", "x/two"):
            words = draw.choices(WORDS, k=30) + [mark] * 3 * (author == "x/two")
            rows.append({"text_id": len(rows), "prompt_id": f"p{p}", "author": author, "text": " ".join(words)})
    return classifier.read_for_authors(rows)


@pytest.mark.parametrize(("mark", "n_prompts", "found"), [("zylophone", 12, True), ("", 40, False)])
def test_a_mark_of_style_is_found_on_prompts_not_seen(mark, n_prompts, found):
    by_style = stats.recognition_table(predicted(mark, n_prompts), n_resamples=1)
    row = by_style.query("statistic == 'discrimination' and evaluator == 'x/two' and author == ''").iloc[0]
    assert (row["low"] > 0.5) == found and (row["low"] < 0 < row["high"]) != found


def test_groups_are_never_split_and_every_text_has_chances_that_sum_to_one():
    """Each text says its prompt: seen in another fold, it would give the author away."""
    texts, groups = [f"word {k // 2} prompt{k // 2}" for k in range(24)], [k // 2 for k in range(24)]
    chances = out_of_fold(texts, ["x", "y"] * 12, groups)
    assert chances.shape == (24, 2) and chances.sum(axis=1).round(9).eq(1).all()
    assert len(out_of_fold(texts, ["x", *"yy", *["x"] * 21], groups)) == 24
    with pytest.raises(InputError, match="two labels that each have two groups"):
        out_of_fold(["a", "b"], ["x", "y"], ["p", "p"])


@pytest.mark.parametrize("labels", [["x", "y"], ["y", "x"]])
def test_chances_stand_under_their_own_label_in_whatever_order_labels_come(labels):
    given = [label for _ in range(10) for label in labels]
    texts = [f"{WORDS[k // 2]} {'zylophone' if label == 'x' else 'quagmire'}" for k, label in enumerate(given)]
    chances = out_of_fold(texts, given, [k // 2 for k in range(20)])
    assert chances.idxmax(axis=1).tolist() == given
