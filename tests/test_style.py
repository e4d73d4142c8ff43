"""The style classifier finds what texts give away, on prompts it has not seen, and nothing where there is nothing."""

import random

import pytest

from selfeval import stats
from selfeval.errors import InputError
from selfeval.figures import tables
from selfeval.stats import classifier

WORDS = "river stone light paper window garden morning letter signal coffee".split()


def texts(mark, n_prompts=12):
    """Two authors on the same prompts; mark: the word that the second one always adds."""
    draw = random.Random(0)
    rows = []
    for p in range(n_prompts):
        for author in ("x/one", "x/two"):
            words = draw.choices(WORDS, k=30) + [mark] * 3 * (author == "x/two")
            rows.append({"text_id": len(rows), "prompt_id": f"p{p}", "author": author, "text": " ".join(words)})
    return rows


def discrimination(rows):
    table = stats.recognition_table(classifier.predict_authors(rows), n_resamples=1)
    return table[(table["statistic"] == "discrimination") & (table["author"] == "x/two")].iloc[0]


def test_a_mark_of_style_is_found_on_prompts_not_seen():
    found = discrimination(texts("zylophone"))
    assert found["estimate"] == 1 and found["low"] > 0.5


def test_texts_without_a_difference_give_nothing_away():
    found = discrimination(texts("", 40))
    assert found["low"] < 0 < found["high"]


def test_groups_are_never_split_and_every_text_has_chances_that_sum_to_one():
    rows = texts("zylophone")
    copied = [{**row, "text": f"{row['text']} {row['prompt_id']}"} for row in rows]
    chances = classifier.out_of_fold(*([row[k] for row in copied] for k in ("text", "author", "prompt_id")))
    assert chances.shape == (24, 2) and chances.sum(axis=1).round(9).eq(1).all()
    with pytest.raises(InputError, match="two labels and two groups of texts, got 2 and 1"):
        classifier.out_of_fold(["a", "b"], ["x", "y"], ["p", "p"])


def test_the_ceiling_stands_beside_the_authors_own_discrimination():
    rows = texts("zylophone")
    records = classifier.predict_authors(rows).assign(evaluator_model="x/two")
    table = stats.recognition_table(records, n_resamples=1)
    by_style = stats.recognition_table(classifier.predict_authors(rows), n_resamples=1)
    shown = tables.ceiling(table, by_style, {"x/two": "Two"})
    assert shown["evaluator"].tolist() == ["Two"] and shown["classifier"].tolist() == shown["itself"].tolist()
