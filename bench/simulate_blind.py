"""How often the tests reject, and the intervals hold, for evaluators that do not look at who wrote a text.

Answers go together as real ones do: on a prompt, on an author's texts for a prompt, and over repeats of a question.
What is measured is what `recognition_table` reports of a file's worth of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from selfeval.recognition.counts import tallies
from selfeval.recognition.measures import measures_of
from selfeval.statistics.intervals import Difference, Rate, check_level

ALPHA = 0.05
AUTHORS = 4
TOGETHER = 0.2  # share of answers that follow their prompt, and as many that follow the author's texts on the prompt
NAMES = (0.4, 0.2, 0.2, 0.2)  # how often it names itself, and the others; asked yes or no, it says yes as often
FIRST = 0.6  # how often it chooses the first of a pair
BY_CONTENT = 0.5  # share of pairs in which it chooses by what the texts are like, whoever wrote them


@dataclass(frozen=True)
class Cell:
    """One design: alike is the share of repeats that equal the first answer; silent, the share without an answer."""

    task: str
    repeats: int
    alike: float
    samples: int
    silent: float

    @property
    def statistic(self) -> tuple[str, float]:
        """The statistic that is tested, and its value for a blind evaluator."""
        return ("self_accuracy", 0.5) if self.task == "pairwise_self" else ("discrimination", 0.0)


def cells() -> list[Cell]:
    """Return every design: three tasks, repeats and how much they are alike, samples, with and without silence."""
    repeated = [(1, 0.0), *((r, alike) for r in (2, 5) for alike in (0.0, 0.8, 1.0))]
    return [
        Cell(task, repeats, alike, samples, silent)
        for task in ("exact_model", "binary_self", "pairwise_self")
        for repeats, alike in repeated
        for samples in (1, 3)
        for silent in (0.0, 0.25)
    ]


def shape_of(cell: Cell, prompts: int) -> tuple[int, ...]:
    """Return prompts, authors (of pairs rivals), samples, orders, repeats."""
    pairs = cell.task == "pairwise_self"
    return prompts, AUTHORS - pairs, cell.samples, 1 + pairs, cell.repeats


def tables(cell: Cell, number: int, rng: np.random.Generator, prompts: int = 30) -> Iterator[pd.DataFrame]:
    """Yield the prediction records of blind evaluators on the texts of four authors; they are these four.

    Nothing in an evaluator's discrimination comes from another evaluator, so each counts as a table of its own.
    """
    pairs, shape = cell.task == "pairwise_self", shape_of(cell, prompts)
    p, t, s, order, r = (at.ravel() for at in np.indices(shape))
    names = np.array([f"m{k}" for k in range(AUTHORS)], object)

    def text(author):
        return (p * AUTHORS + author) * cell.samples + s

    asked = []
    for e, name in enumerate(names):
        rows = {"evaluator_model": name, "task_type": cell.task, "prompt_id": p, "sample": s, "repeat": r}
        if pairs:
            rival = np.delete(np.arange(AUTHORS), e)[t]
            rows |= {"text_id": text(e), "true_model": name, "position": order + 1}
            rows |= {"other_model": names[rival], "other_text_id": text(rival)}
        else:
            rows |= {"text_id": text(t), "true_model": names[t]}
        asked.append(pd.DataFrame(rows))
    records = pd.concat(asked, ignore_index=True)
    for _ in range(-(-number // AUTHORS)):
        said = []
        for _ in names:
            reply, answered = answers(cell, shape, rng)
            said.append(np.where(answered, reply, -1).ravel())
        claims = np.array([True, False, None], object)[np.where(np.less(said, 0), 2, np.greater(said, 0)).ravel()]
        named = np.array([np.append(np.roll(names, -e), None)[codes] for e, codes in enumerate(said)], object).ravel()
        yield records.assign(predicted_model=named if cell.task == "exact_model" else None, predicted_self=claims)


def answers(cell: Cell, shape: tuple, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw what is said (0: itself, its own text) and whether there is an answer."""
    again = rng.random(shape) < cell.alike
    again[..., 0] = True

    def repeated(first):  # first: of each question
        fresh = np.broadcast_to(first, shape) if cell.alike == 1 else together(shape, rng)
        return np.where(again, first, fresh)

    u = repeated(together((*shape[:-1], 1), rng))
    answered = repeated(together((*shape[:-1], 1), rng)) >= cell.silent
    if cell.task != "pairwise_self":
        return np.searchsorted(np.cumsum(NAMES)[:-1], u, "right"), answered
    first = np.arange(2)[:, None] == 0  # the own text stands first
    by_place = (u < FIRST) == first
    liked = rng.random((shape[0], 1, shape[2], 1, 1)) > rng.random((*shape[:3], 1, 1))
    content = rng.random((*shape[:3], 1, 1)) < BY_CONTENT
    return np.where(np.where(content, liked, by_place), 0, 1), answered


def together(shape: tuple, rng: np.random.Generator) -> np.ndarray:
    """Draw uniform numbers that partly follow their prompt, and partly the author's texts on the prompt."""
    follows, own = rng.random(shape), rng.random(shape)
    prompt, author = rng.random((shape[0], *[1] * (len(shape) - 1))), rng.random((*shape[:2], *[1] * (len(shape) - 2)))
    return np.where(follows < TOGETHER, prompt, np.where(follows < 2 * TOGETHER, author, own))


def of_texts(cell: Cell, number: int, rng: np.random.Generator, prompts: int = 30) -> dict[str, Difference]:
    """Return {policy: J of so many tables}, drawn as `tables` draws them and put together as the package does."""
    counts = []
    for k in range(number):
        said, answered = (x.reshape(prompts, AUTHORS, -1) for x in answers(cell, shape_of(cell, prompts), rng))
        own_first = np.roll(np.stack([(said == 0) & answered, answered]), -(k % AUTHORS), 2)
        counts.append(own_first.sum(3))
    hits, given = np.stack(counts, 2)
    found = {}
    for policy, n in {"all": np.full(hits.shape, cell.samples * cell.repeats), "answered": given}.items():
        each = Rate.of(hits, n)
        others = each.pick((slice(None), slice(1, None)))
        found[policy] = each.pick((slice(None), 0)) - others.mean(np.ones(others.value.shape))
    return found


def of_pairs(cell: Cell, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return p and the ends of the interval of own texts chosen, (3, tables)."""
    outcomes = []
    for records in tables(cell, number, rng):
        (tally,) = tallies(records)
        measure = next(m for m in measures_of(tally, "answered") if m.statistic == cell.statistic[0])
        outcomes.append([measure.test(0)[0], *measure.of.interval(check_level(0.95))])
    return np.concatenate(outcomes, 1)[:, :number]


def measured(cell: Cell, number: int, seed: int) -> list[dict]:
    """Return how often p <= .05 and how often the default interval holds the truth, in so many tables of one design.

    One row per policy that a table would report, its default first; of pairs `answered` alone, since chance is .5 only
    among answers. p of J inverts the interval, so it is at most .05 where the interval leaves out 0.
    """
    rng = np.random.default_rng([seed, *map(ord, repr(cell))])
    statistic, truth = cell.statistic
    if cell.task == "pairwise_self":
        p, low, high = of_pairs(cell, number, rng)
        found = {"answered": (p <= ALPHA, (low <= truth) & (truth <= high))}
    else:
        found = {}
        for policy, j in of_texts(cell, number, rng).items():
            low, high = j.interval(check_level(0.95))
            found[policy] = (low > truth) | (high < truth), (low <= truth) & (truth <= high)
        found = found if cell.silent else {"all": found["all"]}
    design = asdict(cell)
    design["no_answer"] = design.pop("silent")
    return [
        design | {"statistic": statistic, "policy": policy, "rejected": float(rejected.mean()),
                  "coverage": float(covered.mean()), "tables": number, "seed": seed}
        for policy, (rejected, covered) in found.items()
    ]  # fmt: skip


def simulate(number: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """Return every design's rows."""
    return pd.DataFrame([row for cell in cells() for row in measured(cell, number, seed)])
