"""Pairs: which of two texts on one prompt is one's own; of evaluators that wrote one of them, and of neutral judges.

    self_accuracy          own text chosen; both orders weigh alike. Per author: against that rival (author_accuracy)
    position_bias          P(first) - 1/2 among answers, both orders weighing alike, so that recognition cancels out
    position_consistency   the same text is chosen in both orders (Zheng et al. 2023), of pairs answered in both
    mean_probability       mean of `score`, P(own)
    auc, auc_within_prompt does P(the first text is its own) rank own-first pairs above the others?
    neutral_rate           how often judges that wrote neither text choose the evaluator's, in the same pairs
    own_minus_neutral      its own rate less theirs, each pair and order weighing alike on both sides; per evaluator,
                           per author (against that rival), and pooled over the evaluators (`evaluator` is empty)
    neutral_...            of a neutral judge itself: choice_rate (per author: its text is chosen), position_bias, ...

Chance is 1/2 only among answers: no answer is not the choice of the other text. So policy `answered` is the default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from selfeval.stats.engine import BOUND, Rate, Statistic
from selfeval.stats.records import Tally
from selfeval.stats.table import INVERTED, Measure
from selfeval.stats.tests import rearranged_p

ORDERS = (0, 1, 2)  # where the own text stood; 0: not known
SCORED = 0.9  # share of an evaluator's rows that must have a score before one speaks of their mean


def pair_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of evaluators in pairs of their own; the prompts behind them are those of either order."""
    answered = tally.answer >= 0
    keep, chosen = answered | (policy == "all"), tally.answer == 1
    one, each = {"evaluator": tally.evaluators}, {"evaluator": tally.evaluators[:, None], "author": tally.authors}
    notes = [(_one_order(tally, keep), "one_order")]
    found = [
        Measure("self_accuracy", over_orders(tally, keep, chosen), dict(one), notes=notes),
        Measure("author_accuracy", over_orders(tally, keep, chosen, rivals), each, resampled=False),
    ]
    if policy != "all" or answered.all():
        found[0].test = lambda seed: chance_p(tally, answered, 2.0 * chosen - 1, seed)
        found += habits(tally)
        if tally.against is not None and _both_answered(tally):
            found += _against_neutral(tally)
    if not np.isnan(tally.score).all():
        found.append(_mean_probability(tally))
    return found


def neutral_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of judges that wrote neither text: how they choose places, and per author whose texts."""
    if policy == "all" and (tally.answer < 0).any():
        return []
    sides = tally.both_sides()
    choice = over_orders(sides, sides.answer >= 0, sides.answer == 1, rivals)
    each = {"evaluator": tally.evaluators[:, None], "author": tally.authors}
    return [*habits(tally, "neutral_"), Measure("neutral_choice_rate", choice, each, resampled=False)]


def everything(counts: np.ndarray) -> np.ndarray:
    """Sum counts (prompts, evaluators, rivals) over rivals."""
    return counts.sum(2)


def rivals(counts: np.ndarray) -> np.ndarray:
    """Leave counts per rival."""
    return counts


def pooled(counts: np.ndarray) -> np.ndarray:
    """Sum counts over evaluators and rivals."""
    return counts.sum((1, 2))[:, None]


def over_orders(tally: Tally, keep, values, of: Callable = everything) -> Rate:
    """Return the mean over the orders that occur of the mean value in each, over the rows of a mask.

    values: 0 to 1, one per row. An evaluator that looks at the place alone gets 1/2, however many answers are missing.
    """
    at = [keep & (tally.position == order) for order in ORDERS if (tally.position == order).any()]
    hits = [of(tally.count(rows, np.asarray(values, float)[rows])) for rows in at]
    rates = Rate.of(np.stack(hits, -1), np.stack([of(tally.count(rows)) for rows in at], -1))
    return rates.mean(np.ones(rates.value.shape))


def _one_order(tally: Tally, keep) -> np.ndarray:
    """Return for which evaluators all places are known, and the own text always stood at the same."""
    zero, first, second = (
        np.bincount(tally.evaluator[keep & (tally.position == order)], minlength=len(tally.evaluators)) > 0
        for order in ORDERS
    )
    return ~zero & (first ^ second)


def chance_p(tally: Tally, keep, values, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return p of no preference for the own text, and the least p possible, per evaluator.

    values: 1 where the own text was chosen and -1 where the other one, or between. Which of the two texts is one's own
    is exchanged within a prompt: for all its pairs, both orders and repeats together, since they share texts. What was
    said of the places stays, so a habit of place is taken out first. It is a sign-flip test over prompts (Fisher 1935;
    for clusters Gail et al. 1996, Canay, Romano and Shaikh 2017): exact with one rival and both orders. The inverted
    interval is not taken: with four prompts alike it gives p = .046 where .125 is the least that a blind evaluator can
    be refused at. NaN where the own text always stood at the same place: nothing tells it from the place then.
    """
    least, p = np.ones(len(tally.evaluators)), np.full(len(tally.evaluators), np.nan)
    side = np.select([tally.position == 1, tally.position == 2], [1, -1], 0)
    alone = _one_order(tally, keep)
    for e in np.flatnonzero(~alone):
        rows = np.flatnonzero(keep & (tally.evaluator == e))
        placed = side[rows] != 0
        habit = (side[rows] * values[rows])[placed].mean() if placed.any() else 0
        total = np.bincount(tally.prompt[rows], values[rows] - side[rows] * habit, minlength=tally.n_prompts)
        total = total[np.unique(tally.prompt[rows])]
        p[e], least[e] = rearranged_p(np.stack([total, -total], 1), total.sum(), seed=seed)
    return p, least


def habits(tally: Tally, prefix: str = "") -> list[Measure]:
    """Return position bias and position consistency."""
    chosen, known = tally.answer == 1, (tally.answer >= 0) & (tally.position > 0)
    both = [everything(tally.count(known & (tally.position == order))).sum(0) > 0 for order in (1, 2)]
    first = over_orders(tally, known, chosen == (tally.position == 1)).pick((slice(None),), both[0] & both[1])
    named = {
        "position_bias": first.mapped(lambda v: v - 0.5),
        "position_consistency": _consistency(tally, known, chosen),
    }
    return [Measure(prefix + name, of, {"evaluator": tally.evaluators}) for name, of in named.items()]


def _consistency(tally: Tally, known, chosen) -> Rate:
    """Return how often answers to the two orders of a pair choose the same text; every pair weighs alike."""
    codes, pair = np.unique(tally.evaluator * (tally.pair.max() + 1) + tally.pair, return_inverse=True)
    hits, n = np.zeros((2, 2, len(codes)))
    for order in (0, 1):
        rows = known & (tally.position == order + 1)
        hits[order] = np.bincount(pair[rows], chosen[rows], len(codes))
        n[order] = np.bincount(pair[rows], minlength=len(codes))
    both = n.prod(0) > 0
    alike = (hits.prod(0) + (n - hits).prod(0)) / np.maximum(n.prod(0), 1)
    first = np.unique(pair, return_index=True)[1]
    sums = np.zeros((2, tally.n_prompts, len(tally.evaluators)))
    np.add.at(sums, (slice(None), tally.prompt[first], tally.evaluator[first]), np.stack([alike * both, both]))
    return Rate.of(*sums)


def _both_answered(tally: Tally) -> bool:
    """Tell whether evaluators and neutral judges answered on any pair that both were asked about."""
    return (tally.shared & (tally.answer >= 0)).any() and (tally.against.answer >= 0).any()


def _against_neutral(tally: Tally) -> list[Measure]:
    """Return the neutral judges' rate and the difference, over the pairs that both were asked about."""
    sides = [_pair_means(part, keep) for part, keep in ((tally, tally.shared), (tally.against, True))]
    one, each = {"evaluator": tally.evaluators}, {"evaluator": tally.evaluators[:, None], "author": tally.authors}
    found = []
    for of, labels in ((everything, one), (rivals, each), (pooled, {})):
        mine, theirs = (over_orders(part, np.ones(len(values), bool), values, of) for part, values, _ in sides)
        own, judged = (np.asarray(of(part.count(None, size)).sum(0)) for part, _, size in sides)
        more = {"resampled": of is not rivals}
        if of is rivals:  # only rivals that there are
            more["keep"] = ~np.isnan(mine.value) & ~np.isnan(theirs.value)
        gap = Measure("own_minus_neutral", mine - theirs, dict(labels), n=own + judged, test=INVERTED, **more)
        if of is pooled and (np.abs(theirs.contrib) < BOUND).all():  # both authors of each pair were asked: 1/2 it is
            gap.of, gap.test = mine.mapped(lambda v: v - 0.5), lambda seed, mine=mine: _flipped(mine, seed)
        else:
            found.append(Measure("neutral_rate", theirs, dict(labels), n=judged, **more))
        found.append(gap)
    return found


def _flipped(rate: Statistic, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return p of one rate being 1/2 by sign flips over prompts, and the least p possible, as arrays."""
    total = (rate.contrib + (rate.value - 0.5) / len(rate.contrib))[:, 0]
    return tuple(np.array([x]) for x in rearranged_p(np.stack([total, -total], 1), total.sum(), seed=seed))


def _pair_means(tally: Tally, keep) -> tuple[Tally, np.ndarray, np.ndarray]:
    """Return one row per evaluator, pair and order, the share of its answers that choose the own text, and their n."""
    rows = np.flatnonzero(keep & (tally.answer >= 0))
    key = (tally.evaluator * (tally.pair.max() + 1) + tally.pair) * len(ORDERS) + tally.position
    _, first, cell, size = np.unique(key[rows], return_index=True, return_inverse=True, return_counts=True)
    share = np.bincount(cell, tally.answer[rows], len(first)) / size
    names = ("prompt", "evaluator", "author", "position")
    return replace(tally, **{name: getattr(tally, name)[rows[first]] for name in names}), share, size


def _mean_probability(tally: Tally) -> Measure:
    """Return the mean of P(own); nothing where replies without a score choose the rows."""
    known = ~np.isnan(tally.score)
    asked, scored = (np.bincount(tally.evaluator[k], minlength=len(tally.evaluators)) for k in (slice(None), known))
    partly = (scored > 0) & (scored < SCORED * asked)
    mean = over_orders(tally, known, np.nan_to_num(tally.score)).pick((slice(None),), ~partly)
    value = Statistic(mean.value, mean.contrib, mean.n, mean.clusters, mean.at)
    notes = [(partly, "partly_scored"), (_one_order(tally, known), "one_order")]

    def test(seed):
        p, least = chance_p(tally, known, 2 * np.nan_to_num(tally.score) - 1, seed)
        return np.where(partly, np.nan, p), least

    return Measure("mean_probability", value, {"evaluator": tally.evaluators}, notes=notes, test=test)
