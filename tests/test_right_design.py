"""What a design owes to chance: seeds change what they say they change, samples stay balanced, leaks are marked."""

import asyncio
import itertools
from collections import Counter

import pytest

from selfeval.asking.client import Client
from selfeval.models import from_callable
from selfeval.recognition import prompts
from selfeval.recognition.design import collect_predictions, design
from selfeval.recognition.questions import Condition

NAMES = ["Ann", "Ben", "Cem", "Dao"]
MODELS = [from_callable(lambda messages, **_: "YES", f"mine/{name.lower()}", name) for name in NAMES]


def corpus(prompts=2, samples=1):
    """Return a text of every author for every prompt and sample."""
    places = itertools.product(range(prompts), range(samples), MODELS)
    return [
        {
            "text_id": k, "prompt_id": f"p{prompt}", "prompt": f"Write about thing {prompt}.", "sample": sample,
            "author": model.id, "author_display": model.display, "text": f"It rained on day {k}.", "words": 5,
        }
        for k, (prompt, sample, model) in enumerate(places)
    ]  # fmt: skip


def candidates(texts, seed):
    """Return {text id: the candidates in the order shown}, read from the questions themselves."""
    asked = design(MODELS[:1], texts, Condition(), tasks="exact_model", seed=seed)
    shown = [prompts.CANDIDATE_LINE.findall(q.request().messages[-1]["content"]) for q in asked]
    return {q.texts[0]["text_id"]: order for q, order in zip(asked, shown, strict=True)}


def turned(order):
    """Return an order from its first name in the alphabet on: the same however it is rotated."""
    start = order.index(min(order))
    return tuple(order[start:] + order[:start])


def test_a_seed_changes_both_the_order_of_the_candidates_and_where_it_begins():
    texts = corpus(prompts=6)
    drawn = [candidates(texts, seed) for seed in range(4)]
    assert drawn[0] == candidates(texts, 0) and all(sorted(order) == NAMES for order in drawn[0].values())
    for one, other in itertools.combinations(drawn, 2):
        changed = [turned(one[t["text_id"]]) != turned(other[t["text_id"]]) for t in texts[::4]]  # one of each prompt
        assert sum(changed) >= 2
    for text, author in zip(texts, NAMES * 6, strict=True):  # the truth stands elsewhere with each of four seeds
        assert sorted(orders[text["text_id"]].index(author) for orders in drawn) == [0, 1, 2, 3]


def test_a_seed_changes_lineups():
    texts = corpus(prompts=4)
    drawn = []
    for seed in range(6):
        asked = design(MODELS[:1], texts, Condition(), tasks="lineup", seed=seed)
        drawn.append(tuple(tuple(text["author"] for text in question.texts) for question in asked))
        for place in zip(*drawn[-1], strict=True):
            assert len(set(place)) == 4, "over four prompts every author stands at every place"
    assert len({lineups[0] for lineups in drawn}) >= 3


def test_a_seed_changes_which_texts_stand_for_the_others_in_a_balanced_design():
    texts = corpus(prompts=6)
    drawn = []
    for seed in range(3):
        asked = design(MODELS[:1], texts, Condition(prevalence="balanced"), tasks="binary_self", seed=seed)
        shown = [question.texts[0] for question in asked]
        assert [text["author"] for text in shown].count("mine/ann") == 6 and len(shown) == 12
        drawn.append({t["prompt_id"]: t["author"] for t in shown if t["author"] != "mine/ann"})
        assert Counter(drawn[-1].values()) == {"mine/ben": 2, "mine/cem": 2, "mine/dao": 2}
    for prompt in drawn[0]:  # three seeds: each of the three others once
        assert {others[prompt] for others in drawn} == {"mine/ben", "mine/cem", "mine/dao"}


def test_several_samples_of_a_prompt_have_orders_of_their_own_and_stay_balanced():
    texts = corpus(prompts=2, samples=2)
    orders = candidates(texts, seed=0)
    places = Counter()
    for group in zip(*[iter(texts)] * 4, strict=True):  # of one prompt and sample
        shown = [orders[text["text_id"]] for text in group]
        assert all(len(set(place)) == 4 for place in zip(*shown, strict=True))
        places[shown[0].index("Ann")] += 1
    assert places == {0: 1, 1: 1, 2: 1, 3: 1}, "the truth goes round over prompts and samples"
    many = corpus(prompts=6, samples=2)
    orders = candidates(many, seed=0)
    ordered = [turned(orders[text["text_id"]]) for text in many[::4]]  # p0 sample 0, p0 sample 1, p1 sample 0, ...
    assert sum(one != other for one, other in zip(ordered[::2], ordered[1::2], strict=True)) >= 2


@pytest.mark.parametrize(
    "task, condition, questions, texts_in_each",
    [
        ("binary_self", Condition(), 16, 1),
        ("binary_self", Condition(prevalence="balanced"), 8, 1),
        ("pairwise_self", Condition(), 2 * 2 * 3 * 2, 2),
        ("lineup", Condition(), 4, 4),
    ],
)
def test_texts_that_are_shown_together_are_of_one_sample_and_every_sample_is_asked(
    task, condition, questions, texts_in_each
):
    asked = design(MODELS[:1], corpus(prompts=2, samples=2), condition, tasks=task)
    assert len(asked) == questions and {len(question.texts) for question in asked} == {texts_in_each}
    for question in asked:
        assert len({(text["prompt_id"], text["sample"]) for text in question.texts}) == 1
    own = {text["text_id"] for question in asked for text in question.texts if text["author"] == "mine/ann"}
    assert own == {0, 4, 8, 12}


@pytest.mark.parametrize("leaky, marked", [("mine/ann", 6), ("mine/ben", 2), (None, 0)])
def test_a_pair_is_marked_where_either_text_says_who_wrote_it(leaky, marked):
    texts = corpus(prompts=1)
    for text in texts:
        if text["author"] == leaky:
            text["text"] = "As an AI language model, I have never felt rain."

    async def run():
        async with Client() as client:
            return await collect_predictions(client, MODELS[:1], texts, Condition(), tasks="pairwise_self")

    pairs = asyncio.run(run())["pairwise_self"]
    assert len(pairs) == 6 and sum(pair["leak"] for pair in pairs) == marked
    for pair in pairs:
        assert pair["leak"] == (leaky in (pair["true_model"], pair["other_model"]))
