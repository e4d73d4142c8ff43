"""Pairs: which of two texts on one prompt is its own; of their authors, and of neutral judges.

    self_accuracy          own text chosen: the mean of two rates, where it stood first and where
                           second, so that a habit of place gets 1/2 (`one_order`: it always stood
                           at the same place, so nothing tells the two apart)
    position_bias          P(first) - 1/2 among answers, both orders weighing alike, so that
                           recognition cancels out
    position_consistency   the same text is chosen in both orders (Zheng et al. 2023), of pairs
                           answered in both
    mean_probability       mean of `score`, P(own)
    auc, auc_within_prompt does P(the first text is its own) rank own-first pairs above the others?
    neutral_rate           how often judges that wrote neither text choose the evaluator's, in the
                           same pairs; in all their pairs, of each author, where nobody was asked
                           about a text of its own
    own_minus_neutral      its own rate less theirs; pairs and orders weigh alike on both sides
    neutral_no_answer_rate of a neutral judge itself: its pairs without an answer

Whose text a neutral judge was asked for, the condition says. With `question=better` (which is
better?) and `question=authored` (which did you write?, of which it wrote neither) it was asked for
nobody's, and has chosen one of the two. Else it was asked for that of `true_model` by name, and is
right or wrong:

    neutral_accuracy       of a neutral judge itself: the text of the author asked for chosen, over
                           both orders
    judge_fixed            an evaluator's accuracy on its own texts less its accuracy as a neutral
                           judge: the same judge, other pairs
    pair_fixed             its accuracy on its own texts less that of neutral judges (neutral_rate,
                           here how often these are right): the same pairs, other judges. Without an
                           evaluator: the mean over evaluators, whose n add up. In place of
                           own_minus_neutral

Chance is 1/2 only among answers: no answer is not the choice of the other text. So policy
`answered` is the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from selfeval.recognition.counts import Tally
from selfeval.statistics.intervals import Rate, Statistic, check_level, ratio
from selfeval.statistics.table import INVERTED, Measure
from selfeval.statistics.tests import one_sided_p, rearranged_p

ORDERS = (0, 1, 2)  # where the own text stood; 0: not known
BESIDE_NEUTRAL = ("own_minus_neutral", "pair_fixed")


def pair_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of evaluators in pairs of their own, with prompts of either order."""
    is_answered = tally.answer >= 0
    counted = is_answered
    if policy == "all":
        counted = tally.heard[tally.evaluator]
    accuracy = _accuracy("self_accuracy", tally, counted)
    accuracy.notes = [*accuracy.notes, (~tally.heard, "no_answer")]
    measures = [accuracy]
    if policy != "all" or is_answered.all():
        accuracy.test = _chance_test(tally, is_answered, tally.answer == 1)
        measures += habits(tally)
        if tally.against is not None:
            measures += _beside_neutral(tally, tally.against)
        accuracy.beyond = lambda where: beyond_neutral(tally, measures)
        if tally.as_neutral is not None:
            other = tally.as_neutral
            as_neutral = over_orders(other, other.answer >= 0, other.answer == 1)
            measures += _less(accuracy.of, as_neutral, "judge_fixed", tally, other)[1:]
    if not np.isnan(tally.score).all():
        measures.append(_mean_probability(tally))
    return measures


def neutral_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return what neutral judges chose.

    Of judges asked for an author by name that is their accuracy; else, of authors without own
    pairs, how often their texts are chosen.
    """
    is_answered = tally.answer >= 0
    is_tested = policy != "all" or is_answered.all()
    if tally.by_name:
        accuracy = _accuracy("neutral_accuracy", tally, is_answered | (policy == "all"))
        if is_tested:
            accuracy.test = _chance_test(tally, is_answered, tally.answer == 1)
        return [accuracy]
    if tally.against is None or not is_tested:
        return []
    rate = over_orders(*_pair_means(tally.against))
    return [Measure("neutral_rate", rate, {"evaluator": tally.against.evaluators})]


def _accuracy(name: str, tally: Tally, counted) -> Measure:
    """Return how often the text asked for is chosen, over the rows of a mask."""
    rate = over_orders(tally, counted, tally.answer == 1)
    notes = [(_one_order(tally, counted), "one_order")]
    return Measure(name, rate, {"evaluator": tally.evaluators}, notes=notes)


def over_orders(tally: Tally, counted, values) -> Rate:
    """Return the mean over the orders that occur of the mean value in each, of the rows of a mask.

    values: 0 to 1, one per row. An evaluator that looks at the place alone gets 1/2, however many
    answers are missing.
    """
    values = np.asarray(values, float)
    sums = []
    sizes = []
    orders = np.unique(tally.position) if len(values) else [0]
    for order in orders:
        rows = counted & (tally.position == order)
        sums.append(tally.count(rows, values[rows]).sum(2))
        sizes.append(tally.count(rows).sum(2))
    rates = Rate.of(np.stack(sums, -1), np.stack(sizes, -1))
    return rates.mean(np.ones(rates.value.shape))


def _orders_seen(tally: Tally, rows) -> np.ndarray:
    """Return (evaluators, orders): whether any row of a mask has the own text at that place."""
    seen = np.zeros((len(tally.evaluators), len(ORDERS)), bool)
    seen[tally.evaluator[rows], tally.position[rows]] = True
    return seen


def _one_order(tally: Tally, counted) -> np.ndarray:
    """Return for which evaluators the own text is known to stand always at the same place."""
    unknown, first, second = _orders_seen(tally, counted).T
    return ~unknown & (first ^ second)


def _chance_test(tally: Tally, counted, chosen):
    """Return the test of no preference; chosen: per row 1 for the own text, 0 for the other."""
    return lambda seed: chance_p(tally, counted, 2.0 * chosen - 1, seed)


def chance_p(tally: Tally, counted, values, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return p of no preference for the own text, and the least p possible, per evaluator.

    values: 1 where the own text was chosen and -1 where the other one, or between. Which of the two
    texts is its own is exchanged within a prompt: for all its pairs, both orders and repeats
    together, since they share texts. What was said of the places stays, so a habit of place is
    taken out first. It is a sign-flip test over prompts (Fisher 1935; for clusters Gail et al.
    1996, Canay, Romano and Shaikh 2017): exact with one rival and both orders. The inverted
    interval is not taken: with four prompts alike it gives p = .046 where .125 is the least that a
    blind evaluator can be refused at. So p may disagree with the interval, and sentences, which go
    by that, leave it out. NaN where the own text always stood at the same place.
    """
    size = len(tally.evaluators)
    p = np.full(size, np.nan)
    least = np.ones(size)
    side = np.array([0, 1, -1])[tally.position]
    for e in np.flatnonzero(~_one_order(tally, counted)):
        rows = np.flatnonzero(counted & (tally.evaluator == e))
        towards_first = (side[rows] * values[rows])[side[rows] != 0]
        habit = 0
        if len(towards_first):
            habit = towards_first.mean()
        without_habit = values[rows] - side[rows] * habit
        by_prompt = np.bincount(tally.prompt[rows], without_habit, tally.n_prompts)
        total = by_prompt[np.unique(tally.prompt[rows])]
        p[e], least[e] = rearranged_p(np.stack([total, -total], 1), total.sum(), seed=seed)
    return p, least


def habits(tally: Tally) -> list[Measure]:
    """Return position bias and position consistency."""
    chosen = tally.answer == 1
    known = (tally.answer >= 0) & (tally.position > 0)
    has_both = _orders_seen(tally, known)[:, 1:].all(1)
    chose_first = chosen == (tally.position == 1)
    first_rate = over_orders(tally, known, chose_first).pick((slice(None),), has_both)
    bias = first_rate.mapped(lambda rate: rate - 0.5)
    who = {"evaluator": tally.evaluators}
    consistency = _consistency(tally, known, chosen)
    return [Measure("position_bias", bias, who), Measure("position_consistency", consistency, who)]


def _consistency(tally: Tally, known, chosen) -> Rate:
    """Return how often both orders of a pair get the same text chosen; pairs weigh alike."""
    pairs, first_row = np.unique(tally.pair, return_index=True)
    shares = []
    for order in (1, 2):
        is_known = known & (tally.position == order)
        hits = np.bincount(tally.pair, is_known & chosen)
        shares.append(ratio(hits, np.bincount(tally.pair, is_known))[pairs])
    one, other = shares
    alike = one * other + (1 - one) * (1 - other)
    each = tally.kept(first_row)
    sums = each.count(None, np.nan_to_num(alike)).sum(2)
    return Rate.of(sums, each.count(None, ~np.isnan(alike)).sum(2))


def _beside_neutral(tally: Tally, against: Tally) -> list[Measure]:
    """Return the neutral judges' rate and the difference, on pairs that both were asked about."""
    shared = tally.kept(np.isin(tally.pair, against.pair))
    own = over_orders(*_pair_means(shared))
    neutral = over_orders(*_pair_means(against))
    name = "own_minus_neutral"
    if tally.by_name:
        name = "pair_fixed"
    measures = _less(own, neutral, name, tally, against)
    if tally.by_name and measures and len(measures[1].value) > 1:
        gap: Any = measures[1].of
        each = np.ones(len(gap.value))
        mean = gap.a.mean(each) - gap.b.mean(each)
        measures.append(Measure(name, mean, {"evaluator": ""}, test=INVERTED))
    return measures


def beyond_neutral(tally: Tally, measures: Sequence[Measure]) -> np.ndarray:
    """Return the one-sided p of own texts chosen, beyond neutral judges; NaN without these."""
    p = dict.fromkeys(tally.evaluators, np.nan)
    for m in measures:
        if m.statistic in BESIDE_NEUTRAL and m.value.ndim:
            p |= zip(m.labels["evaluator"], one_sided_p(m.of, check_level(0.95)), strict=False)
    return np.array([p[evaluator] for evaluator in tally.evaluators])


def _less(own: Any, neutral: Any, name: str, *sides: Tally) -> list[Measure]:
    """Return the neutral rate and the difference, of evaluators that have both."""
    has_both = np.flatnonzero(~np.isnan(own.value - neutral.value))
    if not has_both.size:
        return []
    own = own.pick((has_both,))
    neutral = neutral.pick((has_both,))
    notes = []
    for side in sides:
        one_order = _one_order(side, side.answer >= 0)
        notes.append((one_order[has_both], "one_order"))
    who = {"evaluator": sides[0].evaluators[has_both]}
    gap = Measure(name, own - neutral, who, notes=notes, test=INVERTED)
    return [Measure("neutral_rate", neutral, who), gap]


def _pair_means(tally: Tally) -> tuple[Tally, np.ndarray, np.ndarray]:
    """Return one row per pair and order with an answer, a mask of all, the own text's share."""
    rows = np.flatnonzero(tally.answer >= 0)
    order = tally.pair[rows] * len(ORDERS) + tally.position[rows]
    _, first_row, cell = np.unique(order, return_index=True, return_inverse=True)
    share = np.bincount(cell, tally.answer[rows]) / np.bincount(cell)
    return tally.kept(rows[first_row]), np.ones(len(first_row), bool), share


def _mean_probability(tally: Tally) -> Measure:
    """Return the mean of P(own); nothing where replies without a score choose the rows."""
    tally, notes = tally.scored()
    known = ~np.isnan(tally.score)
    score = np.nan_to_num(tally.score)
    rate = over_orders(tally, known, score)
    mean = Statistic(rate.value, rate.contrib, rate.n, rate.clusters)
    notes.append((_one_order(tally, known), "one_order"))
    who = {"evaluator": tally.evaluators}
    test = _chance_test(tally, known, score)
    return Measure("mean_probability", mean, who, notes=notes, test=test)
