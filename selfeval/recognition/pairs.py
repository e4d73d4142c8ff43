"""Pairs: which of two texts on one prompt is its own; of evaluators that wrote one of them, and of neutral judges.

    self_accuracy          own text chosen: the mean of two rates, where it stood first and where second, so that a
                           habit of place gets 1/2 (`one_order`: it always stood at the same place, so nothing tells
                           the two apart).
    position_bias          P(first) - 1/2 among answers, both orders weighing alike, so that recognition cancels out
    position_consistency   the same text is chosen in both orders (Zheng et al. 2023), of pairs answered in both
    mean_probability       mean of `score`, P(own)
    auc, auc_within_prompt does P(the first text is its own) rank own-first pairs above the others?
    neutral_rate           how often judges that wrote neither text choose the evaluator's, in the same pairs; in all
                           their pairs, of each author, where nobody was asked about a text of its own
    own_minus_neutral      its own rate less theirs, each pair and order weighing alike on both sides
    neutral_no_answer_rate of a neutral judge itself: its pairs without an answer

Whose text a neutral judge was asked for, the condition says. With `question=better` (which is better?) and
`question=authored` (which did you write?, of which it wrote neither) it was asked for nobody's, and has chosen one of
the two. Else it was asked for that of `true_model` by name, and is right or wrong:

    neutral_accuracy       of a neutral judge itself: the text of the author asked for chosen, over both orders
    judge_fixed            an evaluator's accuracy on its own texts less its accuracy as a neutral judge: the same
                           judge, other pairs
    pair_fixed             its accuracy on its own texts less that of neutral judges (neutral_rate, here how often these
                           are right) on the same pairs: the same pairs, other judges. Without an evaluator: the mean
                           over evaluators, whose n add up. In place of own_minus_neutral

Chance is 1/2 only among answers: no answer is not the choice of the other text. So policy `answered` is the default.
"""

from __future__ import annotations

import numpy as np

from selfeval.recognition.counts import Tally
from selfeval.statistics.intervals import Rate, Statistic, ratio, rearranged_p
from selfeval.statistics.table import INVERTED, Measure

ORDERS = (0, 1, 2)  # where the own text stood; 0: not known


def pair_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of evaluators in pairs of their own; the prompts behind them are those of either order."""
    answered = tally.answer >= 0
    keep, chosen = answered | (policy == "all") & tally.heard[tally.evaluator], tally.answer == 1
    notes = [(_one_order(tally, keep), "one_order"), (~tally.heard, "no_answer")]
    own = over_orders(tally, keep, chosen)
    found = [Measure("self_accuracy", own, {"evaluator": tally.evaluators}, notes=notes)]
    if policy != "all" or answered.all():
        found[0].test = lambda seed: chance_p(tally, answered, 2.0 * chosen - 1, seed)
        found += habits(tally)
        if tally.against is not None:
            found += _beside_neutral(tally)
        if tally.as_neutral is not None:
            other = tally.as_neutral
            neutral = over_orders(other, other.answer >= 0, other.answer == 1)
            found += _less(own, neutral, "judge_fixed", tally, other)[1:]
    if not np.isnan(tally.score).all():
        found.append(_mean_probability(tally))
    return found


def over_orders(tally: Tally, keep, values) -> Rate:
    """Return the mean over the orders that occur of the mean value in each, over the rows of a mask.

    values: 0 to 1, one per row. An evaluator that looks at the place alone gets 1/2, however many answers are missing.
    """
    at = [keep & (tally.position == order) for order in ORDERS if (tally.position == order).any()] or [keep]
    hits = np.stack([tally.count(rows, np.asarray(values, float)[rows]).sum(2) for rows in at], -1)
    rates = Rate.of(hits, np.stack([tally.count(rows).sum(2) for rows in at], -1))
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

    values: 1 where the own text was chosen and -1 where the other one, or between. Which of the two texts is its own
    is exchanged within a prompt: for all its pairs, both orders and repeats together, since they share texts. What was
    said of the places stays, so a habit of place is taken out first. It is a sign-flip test over prompts (Fisher 1935;
    for clusters Gail et al. 1996, Canay, Romano and Shaikh 2017): exact with one rival and both orders. The inverted
    interval is not taken: with four prompts alike it gives p = .046 where .125 is the least that a blind evaluator can
    be refused at. So p may disagree with the interval, and sentences, which go by that, leave it out. NaN where the own
    text always stood at the same place: nothing tells it from the place then.
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


def habits(tally: Tally) -> list[Measure]:
    """Return position bias and position consistency."""
    chosen, known = tally.answer == 1, (tally.answer >= 0) & (tally.position > 0)
    both = np.all([tally.count(known & (tally.position == order)).sum((0, 2)) > 0 for order in (1, 2)], 0)
    first = over_orders(tally, known, chosen == (tally.position == 1)).pick((slice(None),), both)
    one = {"evaluator": tally.evaluators}
    return [
        Measure("position_bias", first.mapped(lambda v: v - 0.5), dict(one)),
        Measure("position_consistency", _consistency(tally, known, chosen), one),
    ]


def _consistency(tally: Tally, known, chosen) -> Rate:
    """Return how often answers to the two orders of a pair choose the same text; every pair weighs alike."""
    pairs, first = np.unique(tally.pair, return_index=True)
    hits, n = (
        [np.bincount(tally.pair, known * (tally.position == order) * x, pairs[-1] + 1)[pairs] for order in (1, 2)]
        for x in (chosen, 1)
    )
    one, other = ratio(hits, n)
    alike, each = one * other + (1 - one) * (1 - other), tally.kept(first)
    return Rate.of(*(each.count(None, x).sum(2) for x in (np.nan_to_num(alike), ~np.isnan(alike))))


def _beside_neutral(tally: Tally) -> list[Measure]:
    """Return the neutral judges' rate and the difference, over the pairs that both were asked about."""
    shared = tally.kept(np.isin(tally.pair, tally.against.pair))
    own, neutral = (over_orders(*_pair_means(part)) for part in (shared, tally.against))
    name = "pair_fixed" if tally.by_name else "own_minus_neutral"
    found = _less(own, neutral, name, tally, tally.against)
    if tally.by_name and len(found) and len(found[0].value) > 1:
        each = np.ones(len(found[0].value))
        found.append(
            Measure(name, found[1].of.a.mean(each) - found[1].of.b.mean(each), {"evaluator": ""}, test=INVERTED)
        )
    return found


def _less(own: Rate, neutral: Rate, name: str, *sides: Tally) -> list[Measure]:
    """Return the neutral rate and the difference, of evaluators that have both."""
    both = np.flatnonzero(~np.isnan(own.value - neutral.value))
    own, neutral, one = own.pick((both,)), neutral.pick((both,)), {"evaluator": sides[0].evaluators[both]}
    notes = [(_one_order(side, side.answer >= 0)[both], "one_order") for side in sides]
    gap = Measure(name, own - neutral, one, notes=notes, test=INVERTED)
    return [Measure("neutral_rate", neutral, one), gap] if len(both) else []


def neutral_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the accuracy of judges asked for an author by name; else, of authors without own pairs, the choices."""
    answered, right = tally.answer >= 0, tally.answer == 1
    keep, tested = answered | (policy == "all"), policy != "all" or answered.all()
    found = []
    if tally.by_name:
        notes = [(_one_order(tally, keep), "one_order")]
        of, one = over_orders(tally, keep, right), {"evaluator": tally.evaluators}
        found = [Measure("neutral_accuracy", of, one, notes=notes)]
        if tested:
            found[0].test = lambda seed: chance_p(tally, answered, 2.0 * right - 1, seed)
    elif tally.against is not None and tested:
        of = over_orders(*_pair_means(tally.against))
        found = [Measure("neutral_rate", of, {"evaluator": tally.against.evaluators})]
    return found


def _pair_means(tally: Tally) -> tuple[Tally, np.ndarray, np.ndarray]:
    """Return one row per pair and order that has an answer, all of them, and the share that choose the own text."""
    rows = np.flatnonzero(tally.answer >= 0)
    _, first, cell = np.unique(tally.pair[rows] * len(ORDERS) + tally.position[rows], True, True)
    share = np.bincount(cell, tally.answer[rows]) / np.bincount(cell)
    return tally.kept(rows[first]), np.ones(len(first), bool), share


def _mean_probability(tally: Tally) -> Measure:
    """Return the mean of P(own); nothing where replies without a score choose the rows."""
    tally, notes = tally.scored()
    known, score = ~np.isnan(tally.score), np.nan_to_num(tally.score)
    mean = over_orders(tally, known, score)
    value = Statistic(mean.value, mean.contrib, mean.n, mean.clusters)
    notes = [*notes, (_one_order(tally, known), "one_order")]
    test = lambda seed: chance_p(tally, known, 2 * score - 1, seed)  # noqa: E731
    return Measure("mean_probability", value, {"evaluator": tally.evaluators}, notes=notes, test=test)
