"""Statistics of juries: verdict records in, one long table of estimates with intervals out.

`jury_table` is the front door. The sampled unit is the conversation (or matched pair), never the
turn or the juror. The effect of debate is `debate - reask`: both arms speak equally often, only
one hears its peers. The published difference, debate - independent, also holds personas and the
second look. A high score proves nothing without human controls: read `auc` and `paired_accuracy`
(can the jury tell?) before `mean_score`.

    no_answer_rate      statements without a valid score
    mean_score          mean over conversations of the verdict (the mean of the jurors' last
                        scores), per source; mean_score_if_0, mean_score_if_1: its bounds
    difference          between two arms, on the answers and jurors that both have
    alpha, icc_a1       per round. While nobody has heard the others it is reliability, afterwards
                        consensus; the note says which
    shift, absolute_shift, crossing
                        change since the round before: signed, absolute, and the share of scores
                        that change sides of .5
    conformity          slope of the jurors' changes on the distance to their peers' mean (weight
                        of advice); 1 = they adopt it. In the arm `reask` the peers are unheard:
                        what the slope shows there is regression to the mean
    conformity_minus_sham, conformity_minus_reask
                        less the slope of that arm
    leniency            of a juror over the others, on the same answers
    auc, paired_accuracy
                        of people's scores against models'; within conversation and turn
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from selfeval.records.columns import as_shown
from selfeval.roleplay.transcripts import Conversation, judged_turns
from selfeval.roleplay.votes import (
    AGREEMENT,
    HUMAN,
    SOURCES,
    Units,
    Votes,
    mean_of_others,
    mean_over,
    read_votes,
    units_of,
)
from selfeval.statistics.classifier import out_of_fold
from selfeval.statistics.intervals import (
    BOUND,
    Area,
    Function,
    Rate,
    Statistic,
    by_cluster,
    check_level,
)
from selfeval.statistics.resampling import Settings
from selfeval.statistics.table import (
    HALF,
    INVERTED,
    Measure,
    adjust_p,
    answers_differ,
    write,
)
from selfeval.statistics.tests import detectable_difference, rearranged_p

CONTRASTS = (
    ("debate", "reask"),
    ("debate", "independent"),
    ("debate", "personas"),
    ("debate", "sham"),
    ("sham", "reask"),
    ("reask", "personas"),
    ("personas", "independent"),
)
CONTROLS = ("sham", "reask")  # arms whose conformity is no answer to peers
STATISTICS = tuple(
    """
    no_answer_rate mean_score mean_score_if_0 mean_score_if_1 difference leniency alpha icc_a1
    shift absolute_shift crossing conformity conformity_minus_sham conformity_minus_reask
    auc paired_accuracy
    """.split()
)
SHARE = (0.0, 1.0)
CHANCE = {"auc": HALF, "paired_accuracy": HALF}
# Conversations below which a mean difference is not tested.
LEAST = 20
Z = check_level(0.95)
PARTS = 5  # sums that a slope is made of: n, x, y, x², xy


def jury_table(records: pd.DataFrame) -> pd.DataFrame:
    """Compute all statistics of a jury with intervals and tests, one row per statistic.

    records: verdict records, one row per statement. Needs `conversation_id`, `arm`, `juror`,
    `score` (0 to 1 or null); uses `source` (human | model), `agent`, `turn`, `round`, `persona`,
    `role` (rows that are not "juror" are left out), `pair` (what a conversation with a person and
    the same one with a model have in common), `peer_mean` (mean of the peers' scores that the
    juror was shown, for conformity) and `words` (the whole conversation: those of the same words
    are one cluster) where present.

    Returns `stats.COLUMNS`: `task` is the arm (or `debate - reask`), `evaluator` the juror (""
    the jury), `author` whose answers (human | model, "" both), `condition` the round ("round=2").
    Intervals: t over conversations on the jackknife, within 0 and 1 for mean scores; Wilson at the
    effective sample size for rates; t on the logit scale for areas; none for agreement. Where
    people and models are no pairs, each side counts its own conversations (Obuchowski 1997, Welch
    1947). p of areas tests .5 and inverts the interval; of differences it tests 0 by changing the
    signs of whole conversations. p_holm adjusts it within statistic and source. conclusion and
    detectable: see `stats.table`.

    Notes: not_estimable or no_interval; no_answer (not one score); one_source, no_pairs,
    peers_unknown (why); few_conversations (below 40: intervals are optimistic); reliability,
    consensus; no_verdict=K (answers judged without any score in the last round);
    few_conversations_dominate (as many that weigh alike would be below 10); untested (a difference
    of fewer than 20 conversations, or with none in more than half); constant_answer;
    answers_differ, depends_on_no_answers (a juror leaves people and models without a score at
    different rates); too_few_conversations.
    """
    votes = read_votes(records)
    measures = []
    for of_arm in votes.values():
        measures += no_answers(of_arm)
        measures += means(of_arm)
        measures += leniency(of_arm)
        measures += agreements(of_arm)
        measures += shifts(of_arm)
        measures += against_humans(of_arm)
    measures += conformity(votes)
    measures += differences(votes)
    table = write(measures, Settings(unit="conversation"))
    table = adjust_p(table, ["statistic", "author"], chance=CHANCE)
    return table.assign(detectable=table["detectable"].where(table["p"].notna()))


def baselines(conversations: Sequence[Conversation], scope: str = "turn") -> pd.DataFrame:
    """Return AUC and paired accuracy of two judges that read nothing, as rows of `jury_table`.

    `length`: the longer, the more human; an area below .5 says that people write less, and tells
    them apart as well as one above. `character n-grams`: a classifier of style that saw none of the
    texts of the same conversation or pair. scope: of the verdicts. Empty without both sources, or
    with fewer than two conversations of each.
    """
    rows = []
    for conversation in conversations:
        answers = [exchange.answer for exchange in conversation.exchanges()]
        cluster = conversation.meta.get("pair") or conversation.conversation_id
        for turn in judged_turns(scope, conversation):
            judged = answers[turn - 1 : turn] if scope == "turn" else answers[:turn]
            text = "\n".join(judged)
            rows.append((text, conversation.source, cluster, turn, conversation.words))
    frame = pd.DataFrame(rows, columns=["text", "source", "cluster", "turn", "words"])
    frame["cluster"] = as_shown(frame["cluster"], frame["words"])
    clusters = frame.groupby("source")["cluster"].nunique()
    if clusters.reindex(SOURCES).fillna(0).min() < 2:
        return pd.DataFrame()
    units = units_of(frame)
    style = out_of_fold(frame["text"], frame["source"], frame["cluster"])
    scores = {"length": frame["text"].str.split().str.len(), "character n-grams": style[HUMAN]}
    measures = []
    for name, score in scores.items():
        measures += areas(score.to_numpy(float), units, {"task": name})
    table = write(measures, Settings(unit="conversation"))
    return adjust_p(table, ["statistic", "task"], chance=CHANCE)


# --------------------------------------------------------------------------------------------------
# Means, shares and slopes over conversations


def of_conversations(values, cluster) -> np.ndarray:
    """Return the mean of each conversation that has a value."""
    return pd.Series(values).groupby(cluster).mean().dropna().to_numpy()


def difference(name: str, values, cluster, labels: Mapping, n=None) -> Measure:
    """Return a mean difference over conversations, tested by changing the signs of whole ones.

    Without p (note `untested`) over fewer than 20 conversations, or where more than half of them
    have no difference: with rare large jumps the interval of t holds the truth too seldom.
    """
    gaps = of_conversations(values, cluster)
    is_zero = np.abs(gaps) < BOUND
    is_tested = len(is_zero) >= LEAST and is_zero.mean() <= HALF
    p = np.nan, 0.0
    if is_tested:
        p = rearranged_p(np.stack([gaps, -gaps], 1), gaps.sum())
    mean = conversation_mean(values, cluster, n)
    return Measure(name, mean, labels, test=lambda seed: p, notes=[(not is_tested, "untested")])


def conversation_mean(values, cluster, n=None, within=None) -> Function:
    """Build the mean over conversations of the mean over their units (NaN left out)."""
    if n is None:
        n = (~np.isnan(values)).sum()
    means = of_conversations(values, cluster)
    return Function.of(np.stack([means, np.ones_like(means)], 1), _mean, n, within=within)


def _mean(sums):
    return sums[..., 0] / sums[..., 1]


def share(yes, known, cluster) -> Rate:
    """Build a rate over statements: yes and known are true or false, (units, ...)."""
    codes = np.unique(cluster, return_inverse=True)[1]
    axes = tuple(range(1, known.ndim))
    size = codes.max(initial=-1) + 1
    hits = np.bincount(codes, (yes & known).sum(axes), size)
    return Rate.of(hits, np.bincount(codes, known.sum(axes), size))


def slope_parts(x, y) -> np.ndarray:
    """Return per unit (n, x, y, x², xy) for a slope with intercept; 0 where x or y is missing."""
    parts = np.stack([np.ones_like(x), x, y, x * x, x * y], -1)
    is_missing = np.isnan(parts).any(-1, keepdims=True)
    return np.where(is_missing, 0, parts)


def _slope(sums):
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = xx - x * x / n
    varies = spread > 1e-9 * np.maximum(xx, 1e-9)
    return np.where(varies, (xy - x * y / n) / spread, np.nan)


def _slope_difference(sums):
    return _slope(sums[..., :PARTS]) - _slope(sums[..., PARTS:])


def slope(parts, cluster, formula: Callable = _slope) -> Function:
    """Build a least-squares slope from the parts of `slope_parts`, or a difference of two.

    Its t has the effective number of clusters as degrees of freedom, less one (Carter, Schnepel
    and Steigerwald 2017): a few conversations in which x varies most decide a slope. With 24
    conversations that is about 14.
    """
    n = int(parts[:, ::PARTS].sum())
    sums = by_cluster(parts, cluster)
    value = Function.of(sums, formula, n)
    starts = range(0, sums.shape[1], PARTS)
    effective = min(_effective_clusters(sums[:, start : start + PARTS]) for start in starts)
    value.df = np.asarray(max(effective - 1, 1))
    return value


def _effective_clusters(sums) -> float:
    """Return (sum of v)² / sum of v², v being each cluster's share in the variation of x."""
    n, x, _, xx, _ = sums.T
    mean = x.sum() / max(n.sum(), 1)
    variation = xx - 2 * mean * x + n * mean**2
    squares = (variation**2).sum()
    return float(variation.sum() ** 2 / max(squares, BOUND**2))


# --------------------------------------------------------------------------------------------------
# What there is to say about one arm


def no_answers(votes: Votes) -> Iterator[Measure]:
    """Yield how often there is no score: of the jury, and of each juror."""
    no_score = np.isnan(votes.score)
    for evaluator in ("", *votes.seats):
        seats = (votes.seats == evaluator) | (evaluator == "")
        rate = share(no_score[:, seats], votes.asked[:, seats], votes.units.cluster)
        yield Measure("no_answer_rate", rate, {"task": votes.arm, "evaluator": evaluator})


def means(votes: Votes) -> Iterator[Measure]:
    """Yield the mean verdict per source, and its bounds if every juror had answered."""
    is_missing = np.isnan(votes.last) & votes.asked[:, :, -1]
    has_no_verdict = np.isnan(votes.verdict) & votes.asked.any((1, 2))
    for source in votes.units.sources:
        chosen = votes.units.of(source)
        cluster = votes.units.cluster[chosen]
        labels = {"task": votes.arm, "author": source}
        missing = has_no_verdict[chosen].sum()
        mean = conversation_mean(votes.verdict[chosen], cluster, within=SHARE)
        yield Measure("mean_score", mean, labels, notes=[(missing > 0, f"no_verdict={missing}")])
        if not is_missing[chosen].any():
            continue
        for bound in (0, 1):
            filled = np.where(is_missing, bound, votes.last)[chosen]
            mean = conversation_mean(mean_over(filled, 1), cluster, within=SHARE)
            yield Measure(f"mean_score_if_{bound}", mean, labels)


def leniency(votes: Votes) -> Iterator[Measure]:
    """Yield each juror's mean last score less that of the other jurors, on the same answers."""
    if len(votes.seats) < 2:
        return
    gap = votes.last - mean_of_others(votes.last)
    for seat, evaluator in enumerate(votes.seats):
        labels = {"task": votes.arm, "evaluator": evaluator}
        yield difference("leniency", gap[:, seat], votes.units.cluster, labels)


def agreements(votes: Votes) -> Iterator[Measure]:
    """Yield the measures of agreement per round."""
    meaning = "consensus" if votes.arm == "debate" else "reliability"
    for index, number in enumerate(votes.rounds):
        labels = {"task": votes.arm, "condition": f"round={number:g}"}
        for name, build in AGREEMENT.items():
            coefficient = build(votes.score[:, :, index], votes.units.cluster)
            yield Measure(name, coefficient, labels, notes=[(True, meaning)])


def shifts(votes: Votes) -> Iterator[Measure]:
    """Yield how opinions move from each round to the next."""
    cluster = votes.units.cluster
    for index, number in enumerate(votes.rounds[1:], 1):
        before = votes.score[:, :, index - 1]
        after = votes.score[:, :, index]
        change = after - before
        is_known = ~np.isnan(change)
        n = is_known.sum()
        labels = {"task": votes.arm, "condition": f"round={number:g}"}
        absolute = conversation_mean(mean_over(np.abs(change), 1), cluster, n)
        changes_sides = (before - 0.5) * (after - 0.5) < 0
        yield difference("shift", mean_over(change, 1), cluster, labels, n)
        yield Measure("absolute_shift", absolute, labels)
        yield Measure("crossing", share(changes_sides, is_known, cluster), labels)


def against_humans(votes: Votes) -> Iterator[Measure]:
    """Yield whether the jury and each juror tell people from models."""
    all_seats = np.ones(len(votes.seats), bool)
    seats_of = {"": all_seats}
    if len(votes.seats) > 1:
        seats_of |= {name: votes.seats == name for name in votes.seats}
    for evaluator, seats in seats_of.items():
        scores = votes.verdict if evaluator == "" else votes.last[:, seats][:, 0]
        labels = {"task": votes.arm, "evaluator": evaluator}
        measures = areas(scores, votes.units, labels)
        if np.isnan(votes.last[:, seats]).any():
            _note_silence(measures, votes, seats)
        yield from measures


def areas(scores, units: Units, labels: Mapping) -> list[Measure]:
    """Return auc and paired_accuracy of one score per unit."""
    known = ~np.isnan(scores)
    human = known & units.human
    model = known & ~units.human
    area = Area.of(scores[human], units.cluster[human], scores[model], units.cluster[model])
    accuracy = _paired_accuracy(scores, units, known)
    no_answer = (not known.any(), "no_answer")
    constant = (len(np.unique(scores[known])) == 1, "constant_answer")
    one_source = (not (human.any() and model.any()), "one_source")
    no_pairs = (accuracy.n == 0, "no_pairs")
    notes = [no_answer, constant]
    return [
        Measure("auc", area, labels, test=HALF, notes=[*notes, one_source]),
        Measure("paired_accuracy", accuracy, labels, test=HALF, notes=[*notes, no_pairs]),
    ]


def _paired_accuracy(scores, units: Units, known) -> Statistic:
    """Return the share of pairs of one conversation and turn in which the person wins, ties half.

    known: which units have a score.
    """
    frame = pd.DataFrame({"pair": units.pair, "unit": np.arange(len(known))})
    people = frame[known & units.human]
    at = people.merge(frame[known & ~units.human], on="pair", suffixes=["", "_of_model"])
    gaps = np.round(scores[at["unit"]] - scores[at["unit_of_model"]], 12)
    wins = pd.Series((np.sign(gaps) + 1) / 2)
    wins_of = wins.groupby(units.cluster[at["unit"]])
    return Area.within(Rate.of(wins_of.sum(), wins_of.size()))


def _note_silence(measures: Sequence[Measure], votes: Votes, seats: np.ndarray) -> None:
    """Note where a juror leaves people and models without a score at different rates.

    Then the areas are of answers that it chose, and say nothing of those that it left out.
    """
    differs = False
    for seat in np.flatnonzero(seats):
        no_score = np.isnan(votes.last[:, seat])
        asked = votes.asked[:, seat, -1]
        sides = [asked & votes.units.human, asked & ~votes.units.human]
        if all(side.any() for side in sides):
            unanswered = [share(no_score, side, votes.units.cluster) for side in sides]
            is_other, _ = answers_differ(Z, *unanswered)
            differs = differs or bool(is_other)
    notes = [(differs, "answers_differ"), (differs, "depends_on_no_answers")]
    for measure in measures:
        measure.notes = [*measure.notes, *notes]


# --------------------------------------------------------------------------------------------------
# What a debate does: from the votes of all arms


def conformity(votes: dict[str, Votes]) -> Iterator[Measure]:
    """Yield the slope of the jurors' changes on the distance to their peers' mean.

    For a debate also that less the slope of each control.
    """
    parts = {}
    for arm, of_arm in votes.items():
        can_move = len(of_arm.rounds) > 1 and len(of_arm.seats) > 1
        if can_move and arm in ("debate", *CONTROLS):
            parts[arm] = _conformity_parts(of_arm)
    for arm, own in parts.items():
        cluster = votes[arm].units.cluster
        labels = {"task": arm}
        unknown = [(not own.any(), "peers_unknown")]
        # Not tested: jurors who vote anew move towards their peers by regression to the mean alone.
        yield Measure("conformity", slope(own, cluster), labels, notes=unknown)
        if arm != "debate":
            continue
        for control in CONTROLS:
            if control not in parts:
                continue
            both = np.hstack([own, parts[control]])
            value = slope(both, cluster, _slope_difference)
            unknown = [(not (own.any() and parts[control].any()), "peers_unknown")]
            name = f"conformity_minus_{control}"
            yield Measure(name, value, labels, test=INVERTED, notes=unknown)


def _conformity_parts(votes: Votes) -> np.ndarray:
    """Return the parts of the slope per unit, over its seats and rounds."""
    distance = _heard(votes) - votes.score[:, :, :-1]
    change = np.diff(votes.score, axis=2)
    return slope_parts(distance, change).sum((1, 2))


def _heard(votes: Votes) -> np.ndarray:
    """Return the mean of the peers' scores that a juror was shown before each later score.

    In the arm `reask`, of the peers' scores of the round before, which nobody was shown. Shape
    (units, seats, rounds after the first).
    """
    if votes.arm != "reask":
        return votes.shown[:, :, 1:]
    rounds_before = np.moveaxis(votes.score[:, :, :-1], 2, 0)
    return np.stack([mean_of_others(scores) for scores in rounds_before], 2)


def differences(votes: dict[str, Votes]) -> Iterator[Measure]:
    """Yield what each pair of arms differs by on the same answers and jurors, per source."""
    contrasts = [arms for arms in CONTRASTS if {*arms} <= {*votes}]
    for first, second in contrasts:
        units = votes[first].units
        gaps = (votes[first].by_juror() - votes[second].by_juror()).to_numpy().T
        sources = units.sources if len(units.sources) > 1 else []
        for source in ("", *sources):
            chosen = units.of(source)
            n = (~np.isnan(gaps[chosen])).sum()
            labels = {"task": f"{first} - {second}", "author": source}
            of_units = mean_over(gaps[chosen], 1)
            measure = difference("difference", of_units, units.cluster[chosen], labels, n)
            yield replace(measure, detectable=_detectable(measure.of, len(contrasts)))


def _detectable(mean: Statistic, tests: int) -> np.ndarray:
    """Return the mean difference that four of five such runs find, NaN where none would do."""
    sd = np.sqrt(np.where(mean.varies, mean.variance * mean.kish, np.nan))
    found = detectable_difference(mean.kish, sd, tests=tests)
    return np.where(found <= 1, found, np.nan)
