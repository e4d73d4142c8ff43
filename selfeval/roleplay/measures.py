"""Statistics of juries: verdict records in, one long table of estimates with intervals out.

`jury_table` is the front door. The sampled unit is the conversation (or matched pair), never the turn or the juror.
The effect of debate is `debate - reask`: both arms speak equally often, only one hears its peers. The published
difference, debate - independent, also holds personas and the second look. A high score proves nothing without human
controls: read `auc` and `paired_accuracy` (can the jury tell?) before `mean_score`.

    no_answer_rate      statements without a valid score; mean_score_if_0, _if_1: bounds on the mean
    mean_score          mean over conversations of the verdict (mean of the jurors' last scores), per source
    difference          between two arms, on the answers and jurors that both have; equivalence: TOST within +-.05
    alpha, icc_a1, effective_votes    per round. While nobody has heard the others it is reliability, afterwards
                        consensus; the note says which
    shift, absolute_shift, crossing   change since the round before: signed, absolute, share that changes sides of .5
    conformity          slope of the jurors' changes on the distance to their peers' mean (weight of advice); 1 = they
                        adopt it. In the arm `reask` the peers are unheard: what the slope shows there is regression to
                        the mean. conformity_minus_sham, conformity_minus_reask: less the slope of that arm
    leniency            of a juror over the others, on the same answers
    discrimination      mean score of people minus that of models; auc, paired_accuracy (within conversation and turn)
    identity_mean_score, identity_discrimination    the same of a further dimension that jurors scored, by its name
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats as sps
from scipy.special import ndtr, ndtri

from selfeval.roleplay.votes import AGREEMENT, DEBATES, ONE_BY_ONE, Units, Votes, mean_of_others, mean_over, read_votes
from selfeval.statistics.intervals import BOUND, Area, Function, Rate, Settings, Statistic, by_cluster, ratio, two_sides
from selfeval.statistics.table import HALF, INVERTED, Measure, adjust_p, write

CONTRASTS = (
    ("debate", "reask"), ("debate", "independent"), ("debate", "personas"), ("debate", "sham"), ("sham", "reask"),
    ("reask", "personas"), ("personas", "independent"), ("simultaneous", "reask"), ("simultaneous_summary", "reask"),
)  # fmt: skip
CONTROLS = ("sham", "reask")  # arms whose conformity is no answer to peers
STATISTICS = (
    "no_answer_rate", "mean_score", "mean_score_if_0", "mean_score_if_1", "difference", "equivalence", "leniency",
    "alpha", "icc_a1", "effective_votes", "shift", "absolute_shift", "crossing", "conformity", "conformity_minus_sham",
    "conformity_minus_reask", "discrimination", "auc", "paired_accuracy",
)  # fmt: skip
SHARE = (0.0, 1.0)
MARGIN = 0.05  # differences within +-MARGIN count as none


def jury_table(records: pd.DataFrame) -> pd.DataFrame:
    """Compute all statistics of a jury with intervals and tests, one row per statistic.

    records: verdict records, one row per statement. Needs `conversation_id`, `arm`, `juror`, `score` (0 to 1 or null);
    uses `source` (human | model), `agent`, `turn`, `round`, `persona`, `role` (rows that are not "juror" are left out),
    `pair` (what a conversation with a person and the same one with a model have in common), `peer_mean` (mean of the
    peers' scores that the juror was shown, for conformity) and `dimensions` ({name: further score}) where present.

    Returns `stats.COLUMNS`: `task` is the arm (or `debate - reask`), `evaluator` the juror ("" the jury), `author`
    whose answers (human | model, "" both), `condition` the round ("round=2"). Intervals: t over conversations on the
    jackknife, within 0 and 1 for mean scores and within their range for agreement; Wilson at the effective sample size
    for rates; t on the logit scale for areas. Where people and models are no pairs, each side counts its own
    conversations (Obuchowski 1997, Welch 1947). p tests no effect (of auc and paired_accuracy
    that is .5) and inverts the interval; p_holm adjusts it within statistic and source. In `equivalence`, p is that of
    the two one-sided tests and the interval has level .9. conclusion and detectable: see `stats.table`.

    Notes: not_estimable or no_interval; no_answer (not one score); one_source, no_pairs, peers_unknown (why);
    few_conversations (below 40: intervals are optimistic); reliability, consensus; no_verdict=K (answers
    judged without any score in the last round); few_conversations_dominate (as many that weigh alike would be below
    10).
    """
    votes = read_votes(records)
    measures = [m for arm in votes.values() for part in PARTS for m in part(arm)]
    measures += [*conformity(votes), *differences(votes), *dimensions(records)]
    return adjust_p(write(measures, Settings(unit="conversation")), ["statistic", "author"])


def dimensions(records: pd.DataFrame) -> Iterator[Measure]:
    """Yield the jury's mean score of each further dimension per source, and people's minus models'."""
    scores = [each if isinstance(each, dict) else {} for each in records.get("dimensions", ())]
    for name in dict.fromkeys(name for each in scores for name in each):
        of_dimension = records.assign(score=[each.get(name) for each in scores])
        for votes in read_votes(of_dimension).values():
            for m in (*means(votes), *against_humans(votes)):
                of_the_jury = m.labels.get("evaluator", "") == ""
                if of_the_jury and m.statistic in ("mean_score", "discrimination"):
                    yield replace(m, statistic=f"{name}_{m.statistic}")


def baseline_auc(scores, human, cluster, turn, *, name: str) -> pd.DataFrame:
    """Return the rows auc and paired_accuracy of any score of the same answers, as in `jury_table`; `name` is the arm.

    scores: one per answer, higher where it speaks for a person (length in words, P(human) of a classifier that did not
    see the conversation); NaN is left out. human: true or false. cluster: the conversation or pair, turn: what pairs
    share.
    """
    scores, human, cluster = np.asarray(scores, float), np.asarray(human, bool), np.asarray(cluster).astype(str)
    pair = pd.DataFrame({"c": cluster, "t": np.asarray(turn)}).groupby(["c", "t"]).ngroup().to_numpy()
    measures = areas(scores, Units(cluster, human, pair), {"task": name})
    return adjust_p(write(measures, Settings(unit="conversation")), ["statistic"])


# ---------------------------------------------------------------------------------------------------------------
# Means, shares and slopes over conversations


def per_conversation(x, cluster) -> np.ndarray:
    """Return what each unit adds to the sum of its conversation's mean of x, and to the count of conversations."""
    known, codes = ~np.isnan(x), np.unique(cluster, return_inverse=True)[1]
    weight = known / np.maximum(np.bincount(codes, known)[codes], 1)
    return np.stack([np.where(known, x, 0) * weight, weight], 1)


def conversation_mean(x, cluster, n=None, within=None) -> Function:
    """Build the mean over conversations of the mean of x over their units (NaN left out)."""
    n = (~np.isnan(x)).sum() if n is None else n
    return Function.of(by_cluster(per_conversation(x, cluster), cluster), _mean, n, within=within)


def _mean(sums):
    return sums[..., 0] / sums[..., 1]


def share(yes, known, cluster) -> Rate:
    """Build a rate over statements: yes and known are true or false, (units, ...)."""
    counts = np.stack([np.reshape(x, (len(cluster), -1)).sum(1) for x in (known, yes & known)], 1)
    known, yes = by_cluster(counts, cluster).T
    return Rate.of(yes, known)


def slope(parts, cluster, formula: Callable | None = None) -> Function:
    """Build a least-squares slope from the parts of `slope_parts`, or a formula of their sums.

    Its t has the effective number of clusters as degrees of freedom, less one (Carter, Schnepel and Steigerwald 2017):
    a few conversations in which x varies most decide a slope. With 24 conversations that is about 14.
    """
    sums = by_cluster(parts, cluster)
    found = Function.of(sums, formula or _slope, int(parts[:, ::5].sum()))
    found.df = max(min(_effective(sums[:, k : k + 5]) for k in range(0, sums.shape[1], 5)) - 1, 1)
    return found


def slope_parts(x, y) -> np.ndarray:
    """Return per unit (n, x, y, x², xy) for a slope with intercept; zeros where x or y is missing."""
    parts = np.stack([np.ones_like(x), x, y, x * x, x * y], -1)
    return np.where(np.isnan(parts).any(-1, keepdims=True), 0, parts)


def _slope(sums):
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = xx - x * x / n
    return np.where(spread > 1e-9 * np.maximum(xx, 1e-9), (xy - x * y / n) / spread, np.nan)


def _effective(sums) -> float:
    """Return (sum of v)² / sum of v², v being each cluster's share in the variation of x."""
    n, x, _, xx, _ = sums.T
    mean = x.sum() / max(n.sum(), 1)
    v = xx - 2 * mean * x + n * mean**2
    return float(v.sum() ** 2 / max((v**2).sum(), BOUND**2))


class Equivalence(Statistic):
    """Two one-sided t tests of a difference within +-MARGIN (Schuirmann 1987), with an interval of level .9."""

    method = "tost_t"

    def interval(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return low and high of the narrower level."""
        return super().interval(ndtri(2 * ndtr(z) - 1))

    def test(self, seed: int) -> tuple[np.ndarray, float]:
        """Return p, and 0 as the least p possible."""
        spread = np.sqrt(np.where(self.variance > BOUND**2, self.variance, np.nan))
        return sps.t.sf((MARGIN - abs(self.value)) / spread, self.df), 0.0


# ---------------------------------------------------------------------------------------------------------------
# What there is to say about one arm: each function takes its votes and yields measures


def no_answers(votes: Votes) -> Iterator[Measure]:
    """Yield how often there is no score: of the jury, and of each juror."""
    none = np.isnan(votes.score)
    for name, seats in [("", slice(None)), *((name, votes.seats == name) for name in votes.seats)]:
        silent = share(none[:, seats], votes.asked[:, seats], votes.units.cluster)
        yield Measure("no_answer_rate", silent, {"task": votes.arm, "evaluator": name})


def means(votes: Votes) -> Iterator[Measure]:
    """Yield the mean verdict per source, and its bounds if every juror had answered."""
    last, asked = votes.last, votes.asked[:, :, -1]
    for source in votes.units.sources:
        of, labels = votes.units.of(source), {"task": votes.arm, "author": source}
        cluster = votes.units.cluster[of]
        missing = int((np.isnan(votes.verdict) & votes.asked.any((1, 2)))[of].sum())
        verdict = conversation_mean(votes.verdict[of], cluster, within=SHARE)
        yield Measure("mean_score", verdict, labels, notes=[(missing > 0, f"no_verdict={missing}")])
        if (np.isnan(last) & asked)[of].any():
            for bound in (0, 1):
                filled = mean_over(np.where(np.isnan(last) & asked, bound, last), 1)[of]
                yield Measure(f"mean_score_if_{bound}", conversation_mean(filled, cluster, within=SHARE), labels)


def leniency(votes: Votes) -> Iterator[Measure]:
    """Yield for each juror its mean last score minus that of the other jurors, on the same answers."""
    gap = votes.last - mean_of_others(votes.last)
    for k, name in enumerate(votes.seats if len(votes.seats) > 1 else ()):
        value = conversation_mean(gap[:, k], votes.units.cluster)
        yield Measure("leniency", value, {"task": votes.arm, "evaluator": name}, test=INVERTED)


def agreements(votes: Votes) -> Iterator[Measure]:
    """Yield the measures of agreement per round."""
    for k, number in enumerate(votes.rounds):
        heard = votes.arm == ONE_BY_ONE or (votes.arm in DEBATES and k > 0)
        labels = {"task": votes.arm, "condition": f"round={number:g}"}
        for name, build in AGREEMENT.items():
            value = build(votes.score[:, :, k], votes.units.cluster)
            yield Measure(name, value, labels, notes=[(True, "consensus" if heard else "reliability")])


def shifts(votes: Votes) -> Iterator[Measure]:
    """Yield how opinions move from each round to the next."""
    for k in range(1, len(votes.rounds)):
        before, after = votes.score[:, :, k - 1], votes.score[:, :, k]
        change, cluster = after - before, votes.units.cluster
        known, labels = ~np.isnan(change), {"task": votes.arm, "condition": f"round={votes.rounds[k]:g}"}
        signed = conversation_mean(mean_over(change, 1), cluster, known.sum())
        absolute = conversation_mean(mean_over(np.abs(change), 1), cluster, known.sum())
        yield Measure("shift", signed, labels, test=INVERTED)
        yield Measure("absolute_shift", absolute, labels)
        yield Measure("crossing", share((before - 0.5) * (after - 0.5) < 0, known, cluster), labels)


def areas(score, units: Units, labels: Mapping) -> list[Measure]:
    """Return auc and paired_accuracy of one score per unit."""
    known = ~np.isnan(score)
    human, model = known & units.human, known & ~units.human
    area = Area.of(score[human], units.cluster[human], score[model], units.cluster[model])
    people = pd.DataFrame({"pair": units.pair[human], "h": score[human], "cluster": units.cluster[human]})
    both = people.merge(pd.DataFrame({"pair": units.pair[model], "m": score[model]}), on="pair")
    wins = (np.sign(both["h"] - both["m"]) + 1) / 2
    counts = both.assign(wins=wins, n=1.0).groupby("cluster")[["wins", "n"]].sum()
    pairs = Area.within(Rate.of(counts["wins"], counts["n"]))
    sources = not (human.any() and model.any())
    silent = not known.any(), "no_answer"
    return [
        Measure("auc", area, labels, test=HALF, notes=[silent, (sources, "one_source")]),
        Measure("paired_accuracy", pairs, labels, test=HALF, notes=[silent, (not len(both), "no_pairs")]),
    ]


def against_humans(votes: Votes) -> Iterator[Measure]:
    """Yield whether the jury and each juror tell people from models."""
    units, cluster = votes.units, votes.units.cluster
    judges = [("", votes.verdict), *(zip(votes.seats, votes.last.T, strict=True) if len(votes.seats) > 1 else ())]
    for name, score in judges:
        known, labels = ~np.isnan(score), {"task": votes.arm, "evaluator": name}
        one_source = [(len({*units.human[known]}) < 2, "one_source")]
        sides = [np.where(side, score, np.nan) for side in (units.human, ~units.human)]
        gap = _gap(sides, cluster, known.sum())
        yield Measure("discrimination", gap, labels, test=INVERTED, notes=one_source)
        yield from areas(score, units, labels)


def _gap(sides, cluster, n) -> Function:
    """Return the mean over conversations of the first scores minus that of the second."""
    sums = by_cluster(np.hstack([per_conversation(x, cluster) for x in sides]), cluster)
    found = Function.of(sums, lambda s: _mean(s[..., :2]) - _mean(s[..., 2:]), n)
    total, there = sums.sum(0), sums[:, 1::2] > 0
    shares = (sums[:, ::2] - sums[:, 1::2] * ratio(total[::2], total[1::2])) / np.maximum(total[1::2], 1)
    found.contrib, found.df, _ = two_sides(*(shares * [1, -1]).T, *there.T)
    return found


PARTS = (no_answers, means, leniency, agreements, shifts, against_humans)


# ---------------------------------------------------------------------------------------------------------------
# What a debate does: from the votes of all arms


def _heard(votes: Votes) -> np.ndarray:
    """Return the mean of the peers' scores that each juror was shown before each later score, (units, seats, rounds).

    In the arm `reask`, of the peers' scores of the round before, which nobody was shown.
    """
    if votes.arm != "reask":
        return votes.shown[:, :, 1:]
    return np.stack([mean_of_others(now) for now in np.moveaxis(votes.score[:, :, :-1], 2, 0)], 2)


def conformity(votes: dict[str, Votes]) -> Iterator[Measure]:
    """Yield the slope of the jurors' changes on the distance to their peers' mean, and that less a control's."""
    parts = {
        name: slope_parts(_heard(v) - v.score[:, :, :-1], np.diff(v.score, axis=2)).sum((1, 2))
        for name, v in votes.items() if name in (*DEBATES, *CONTROLS) and len(v.rounds) > 1 and len(v.seats) > 1
    }  # fmt: skip
    for arm, mine in parts.items():
        cluster, labels = votes[arm].units.cluster, {"task": arm}
        # Not tested: jurors who vote anew move towards their peers by regression to the mean alone.
        yield Measure("conformity", slope(mine, cluster), labels, notes=[(not mine.any(), "peers_unknown")])
        for control in (name for name in CONTROLS if name in parts and arm in DEBATES):
            both = np.hstack([mine, parts[control]])
            value = slope(both, cluster, lambda sums: _slope(sums[..., :5]) - _slope(sums[..., 5:]))
            unknown = [(not (mine.any() and parts[control].any()), "peers_unknown")]
            yield Measure(f"conformity_minus_{control}", value, labels, test=INVERTED, notes=unknown)


def differences(votes: dict[str, Votes]) -> Iterator[Measure]:
    """Yield what each pair of arms differs by on the same answers and jurors, per source and over all."""
    for a, b in CONTRASTS:
        if a not in votes or b not in votes:
            continue
        cells = (votes[a].by_juror() - votes[b].by_juror()).to_numpy().T
        gap, units = mean_over(cells, 1), votes[a].units
        for source in ("", *(units.sources if len(units.sources) > 1 else ())):
            of, labels = units.of(source), {"task": f"{a} - {b}", "author": source}
            value = conversation_mean(gap[of], units.cluster[of], (~np.isnan(cells[of])).sum())
            yield Measure("difference", value, labels, test=INVERTED)
            same = Equivalence(value.value, value.contrib, value.n, value.clusters, value.at)
            labels, notes = labels | {"level": 2 * 0.95 - 1}, [(True, f"margin={MARGIN:g}")]
            yield Measure("equivalence", same, labels, test=same.test, notes=notes)
