"""Statistics of juries: verdict records in, one long table of estimates with intervals out.

`jury_table` is the front door. The sampled unit is the conversation (or matched pair), never the turn or the juror.
The effect of debate is debate - reask: both arms speak equally often, only one hears its peers. The published
difference, debate - independent, also holds personas and the second look. A high score proves nothing without human
controls: read `auc` and `paired_accuracy` (can the jury tell?) before `mean_score`.

    no_answer_rate      statements without a valid score; mean_score_if_0, _if_1: bounds on the mean, whatever they were
    mean_score          mean over conversations of the verdict (mean of the jurors' last scores), per source
    difference          between two arms, on the answers and jurors that both have; equivalence: TOST within +-margin
    alpha, icc_a1, icc_c1, fleiss_kappa (score above .5 or not), effective_votes    per round. While nobody has heard
                        the others it is reliability, afterwards consensus; the note says which
    shift, absolute_shift, crossing   change since the round before: signed, absolute, share that changes sides of .5
    conformity          slope of a juror's change on the distance to its peers' mean; 1 = adopts it. In the arm reask
                        the peers are unheard: what the slope shows there is regression to the mean.
                        conformity_minus_sham, conformity_minus_reask: less the slope of that arm
    first_speaker_weight   of its private vote in the jury's last verdict; first_speaker_excess: minus another juror's
    leniency            of a juror over the others, on the same answers; family_gap: of the agent's own family
    discrimination      mean score of people minus that of models; auc, paired_accuracy (within conversation and turn)
    auc_difference      between two arms, on the same answers
    brier, brier_skill (1 = perfect, 0 = the base rate), calibration_offset (mean score minus share of people),
    calibration_slope (of truth on score; 1 = calibrated, 0 = knows nothing)
    ..._tokens, cost, seconds, critical_seconds   per verdict; the last counts what has to wait for something else
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats as sps
from scipy.special import ndtri

from selfeval.errors import InputError
from selfeval.stats import agreement
from selfeval.stats.intervals import BOUND, Estimate, holm, ratio
from selfeval.stats.resampled import Statistic, auc, contrast_of, difference_of, mean_of, slope_of, slope_parts
from selfeval.stats.table import Settings
from selfeval.stats.votes import ONE_BY_ONE, Units, Votes, mean_of_others, mean_over, read_votes

COLUMNS = (
    "arm", "source", "round", "juror", "statistic", "estimate", "low", "high", "level", "method", "p", "p_holm", "n",
    "n_conversations", "seed", "note",
)  # fmt: skip
CONTRASTS = (
    ("debate", "reask"), ("debate", "independent"), ("debate", "personas"), ("debate", "sham"), ("sham", "reask"),
    ("reask", "personas"), ("personas", "independent"), ("simultaneous", "reask"), ("simultaneous_summary", "reask"),
)  # fmt: skip
DEBATES = ("debate", "simultaneous", "simultaneous_summary")
FEW = 40  # conversations


class Row(NamedTuple):
    """A statistic and where it stands in the table."""

    arm: str
    statistic: str
    value: Statistic
    source: str = ""
    round: float | None = None
    juror: str = ""
    note: str = ""


def jury_table(
    records: pd.DataFrame, *, n_resamples: int = 10_000, level: float = 0.95, seed: int = 0, margin: float = 0.05
) -> pd.DataFrame:
    """Compute all statistics of a jury with intervals and tests, one row per statistic and method.

    records: verdict records, one row per statement. Needs `conversation_id`, `arm`, `juror`, `score` (0 to 1 or null);
    uses `source` (human | model), `agent`, `turn`, `round`, `position`, `persona`, `same_family`, `usage`, `cost`,
    `latency`, `role` (rows that are not "juror" are left out), `pair` (what a conversation with a person and the same
    one with a model have in common) and `peer_mean` (mean of the peers' scores that the juror was shown; needed for
    the arm sham, computed for the debates) where present. margin: differences within +-margin count as none.

    Returns the columns `COLUMNS`; "" in arm, source and juror means all. The first row of a statistic is the default:
    t over conversations on the jackknife, Wilson at the effective sample size for rates and areas; then `percentile`
    and `bca` (`seed`). p tests no effect (.5 for auc and paired_accuracy); p_holm adjusts it within statistic and
    source. In `equivalence`, p is that of the two one-sided tests and the interval has level 2 * level - 1.

    Notes: not_estimable with the reason; few_conversations (below 40: intervals are optimistic); constant;
    bca_fallback_percentile; reliability, consensus; openings_seen (no private votes: the first round stands in);
    no_verdict=K (answers judged without any score in the last round).
    """
    how = Settings(n_resamples, level, seed)
    if not 0 < margin < 1:
        raise InputError(f"`margin` must lie between 0 and 1, got {margin!r}.")
    votes = read_votes(records)
    rows = [
        row
        for arm in votes.values()
        for part in (answering, means, leniency, agreements, shifts, against_humans, spending)
        for row in part(arm)
    ]
    rows += [*peers(votes), *differences(votes)]
    lines = [line for row in rows for line in _lines(row, how)]
    lines += [line for row in rows if row.statistic == "difference" for line in [_equivalence(row, level, margin)]]
    return _table(lines, level, seed)


def baseline_auc(
    scores, human, cluster, turn=None, *, n_resamples: int = 10_000, level: float = 0.95, seed: int = 0,
    name: str = "baseline",
) -> pd.DataFrame:  # fmt: skip
    """Return the rows auc and paired_accuracy of any score of the same answers, as in `jury_table`; `name` is the arm.

    scores: one per answer, higher where it speaks for a person (length in words, P(human) of a classifier that did not
    see the conversation); NaN is left out. human: true or false. cluster: the conversation or pair. turn: pairs share
    it; without it every person's answer is compared with every model's of its cluster.
    """
    scores, human, cluster = np.asarray(scores, float), np.asarray(human, bool), np.asarray(cluster).astype(str)
    turn = np.zeros(len(scores), int) if turn is None else np.asarray(turn)
    if not len(scores) == len(human) == len(cluster) == len(turn):
        raise InputError("`scores`, `human`, `cluster` and `turn` must have one value per answer each.")
    pair = pd.DataFrame({"c": cluster, "t": turn}).groupby(["c", "t"]).ngroup().to_numpy()
    how, units = Settings(n_resamples, level, seed), Units(cluster, human, pair)
    rows = [Row(name, statistic, value) for statistic, value in discriminating(scores, units)]
    return _table([line for row in rows for line in _lines(row, how)], level, seed)


def calibration_bins(records: pd.DataFrame, bins: int = 10) -> pd.DataFrame:
    """Return per arm and bin of the verdict: low, high, mean score, share of people, n; for a reliability diagram."""
    frames = []
    for arm in read_votes(records).values():
        frame = pd.DataFrame({"score": arm.verdict, "human": arm.units.human}).dropna()
        at = np.minimum((frame["score"] * bins).astype(int), bins - 1)
        found = frame.groupby(at).agg(mean_score=("score", "mean"), share_human=("human", "mean"), n=("human", "size"))
        frames.append(found.assign(arm=arm.arm, low=found.index / bins, high=(found.index + 1) / bins))
    return pd.concat(frames)[["arm", "low", "high", "mean_score", "share_human", "n"]].reset_index(drop=True)


def conversations_needed(difference: float = 0.05, sd: float = 0.15, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return how many conversations show a paired difference (normal approximation, two-sided).

    sd: of the per-conversation difference. For .05: 32, 71, 126 at sd .10, .15, .20.
    """
    if not (sd > 0 and 0 < power < 1 and 0 < alpha < 1 and difference != 0):
        raise InputError(
            f"A size needs a difference other than 0, sd > 0, power and alpha between 0 and 1; got {difference!r}, "
            f"{sd!r}, {power!r}, {alpha!r}."
        )
    return int(np.ceil(((ndtri(1 - alpha / 2) + ndtri(power)) * sd / difference) ** 2))


# ---------------------------------------------------------------------------------------------------------------
# What each part of the table is made of


def per_conversation(x, cluster) -> np.ndarray:
    """Return the mean of x over each conversation, spread over its units: (mean / units, 1 / units) for `mean_of`."""
    known = ~np.isnan(x)
    _, codes = np.unique(cluster, return_inverse=True)
    size = np.bincount(codes, known)[codes]
    share = np.where(known, 1 / np.maximum(size, 1), 0)
    return np.stack([np.where(known, x, 0) * share, share], 1)


def conversation_mean(x, cluster, rows=None, **more) -> Statistic:
    """Build the mean over conversations of the mean of x over their units (NaN left out)."""
    rows = int((~np.isnan(x)).sum()) if rows is None else rows
    return Statistic.of_sums(per_conversation(x, cluster), mean_of, cluster, rows, **more)


def share(yes, known, cluster) -> Statistic:
    """Build a rate over statements: yes and known are true or false, (units, ...)."""
    counts = [np.reshape(x, (len(cluster), -1)).sum(1) for x in (yes & known, known)]
    return Statistic.of_sums(np.stack(counts, 1), mean_of, cluster, int(counts[1].sum()), bounded=True)


def answering(votes: Votes) -> Iterator[Row]:
    """Yield how often there is no score: of the jury, and of each juror."""
    none = np.isnan(votes.score)
    for name, seats in [("", slice(None)), *((name, votes.juror == name) for name in np.unique(votes.juror))]:
        value = share(none[:, seats], votes.asked[:, seats], votes.units.cluster)
        yield Row(votes.arm, "no_answer_rate", value, juror=name)


def means(votes: Votes) -> Iterator[Row]:
    """Yield the mean verdict per source, what it could be had everybody answered, and the gap of the own family."""
    last, asked = votes.last, votes.asked[:, :, -1]
    for source in votes.units.sources:
        of = votes.units.of(source)
        cluster = votes.units.cluster[of]
        missing = int((np.isnan(votes.verdict) & votes.asked.any((1, 2)))[of].sum())
        note = f"no_verdict={missing}" if missing else ""
        yield Row(votes.arm, "mean_score", conversation_mean(votes.verdict[of], cluster), source, note=note)
        if (np.isnan(last) & asked)[of].any():
            for bound in (0, 1):
                filled = mean_over(np.where(np.isnan(last) & asked, bound, last), 1)[of]
                yield Row(votes.arm, f"mean_score_if_{bound}", conversation_mean(filled, cluster), source)
        if votes.family[of].any():
            own = mean_over(np.where(votes.family, last, np.nan), 1)
            others = mean_over(np.where(votes.family, np.nan, last), 1)
            yield Row(votes.arm, "family_gap", conversation_mean((own - others)[of], cluster, null=0), source)


def leniency(votes: Votes) -> Iterator[Row]:
    """Yield for each juror its mean last score minus that of the other jurors, on the same answers."""
    names, last = votes.by_juror()
    if len(names) > 1:
        gap = last - mean_of_others(last)
        for k, name in enumerate(names):
            value = conversation_mean(gap[:, k], votes.units.cluster, null=0)
            yield Row(votes.arm, "leniency", value, juror=name)


def agreements(votes: Votes) -> Iterator[Row]:
    """Yield the measures of agreement per round."""
    measures = {
        "alpha": agreement.krippendorff_alpha,
        "icc_a1": partial(agreement.icc, kind="A"),
        "icc_c1": partial(agreement.icc, kind="C"),
        "effective_votes": agreement.effective_votes,
    }
    for k, number in enumerate(votes.rounds):
        ratings, cluster = votes.score[:, :, k], votes.units.cluster
        heard = votes.arm == ONE_BY_ONE or (votes.arm in DEBATES and k > 0)
        note = "consensus" if heard else "reliability"
        sides = np.where(np.isnan(ratings), np.nan, ratings > 0.5)
        for name, build in measures.items():
            yield Row(votes.arm, name, build(ratings, cluster=cluster), round=number, note=note)
        yield Row(votes.arm, "fleiss_kappa", agreement.fleiss_kappa(sides, cluster), round=number, note=note)


def shifts(votes: Votes) -> Iterator[Row]:
    """Yield how opinions move from each round to the next."""
    for k in range(1, len(votes.rounds)):
        before, after = votes.score[:, :, k - 1], votes.score[:, :, k]
        change, cluster = after - before, votes.units.cluster
        known = ~np.isnan(change)
        at = {"round": votes.rounds[k]}
        signed = conversation_mean(mean_over(change, 1), cluster, int(known.sum()), null=0)
        yield Row(votes.arm, "shift", signed, **at)
        yield Row(votes.arm, "absolute_shift",
                  conversation_mean(mean_over(np.abs(change), 1), cluster, int(known.sum())), **at)  # fmt: skip
        yield Row(votes.arm, "crossing", share((before - 0.5) * (after - 0.5) < 0, known, cluster), **at)


def discriminating(score, units: Units) -> Iterator[tuple[str, Statistic]]:
    """Yield auc and paired_accuracy of one score per unit."""
    known = ~np.isnan(score)
    human, model = known & units.human, known & ~units.human
    yield "auc", auc(score[human], units.cluster[human], score[model], units.cluster[model])
    people = pd.DataFrame({"pair": units.pair[human], "h": score[human], "cluster": units.cluster[human]})
    both = people.merge(pd.DataFrame({"pair": units.pair[model], "m": score[model]}), on="pair")
    wins = (np.sign(both["h"] - both["m"]) + 1) / 2
    reason = "" if len(both) else "no_pairs"
    parts = np.stack([wins, np.ones(len(both))], 1)
    more = {"null": 0.5, "bounded": True, "reason": reason}
    yield "paired_accuracy", Statistic.of_sums(parts, mean_of, both["cluster"], **more)


def against_humans(votes: Votes) -> Iterator[Row]:
    """Yield whether the jury and each juror tell people from models, and how good their scores are as probabilities."""
    units, cluster, truth = votes.units, votes.units.cluster, votes.units.human.astype(float)
    reason = "" if len(units.sources) == 2 else "one_source"
    names, last = votes.by_juror()
    judges = [("", votes.verdict), *(zip(names, last.T, strict=True) if len(names) > 1 else ())]
    for name, score in judges:
        at = {"juror": name}
        sides = [per_conversation(np.where(side, score, np.nan), cluster) for side in (units.human, ~units.human)]
        rows = int((~np.isnan(score)).sum())
        gap = Statistic.of_sums(np.hstack(sides), contrast_of, cluster, rows, null=0, reason=reason)
        yield Row(votes.arm, "discrimination", gap, **at)
        for statistic, value in discriminating(score, units):
            yield Row(votes.arm, statistic, value, **at)
        known = ~np.isnan(score)
        sums = np.stack([np.ones(len(score)), (score - truth) ** 2, score, truth], 1)
        sums = np.where(known[:, None], sums, 0)
        formulas = {
            "brier": lambda s: s[..., 1] / s[..., 0],
            "brier_skill": lambda s: 1 - s[..., 1] / s[..., 0] / _base_rate_brier(s),
            "calibration_offset": lambda s: (s[..., 2] - s[..., 3]) / s[..., 0],
        }
        for statistic, formula in formulas.items():
            null = 0 if statistic == "calibration_offset" else None
            value = Statistic.of_sums(sums, formula, cluster, rows, null=null, reason=reason)
            yield Row(votes.arm, statistic, value, **at)
        slope = Statistic.of_sums(slope_parts(score, truth), slope_of, cluster, rows, null=0, reason=reason)
        yield Row(votes.arm, "calibration_slope", slope, **at)


def _base_rate_brier(sums):
    rate = sums[..., 3] / sums[..., 0]
    return rate * (1 - rate)


def spending(votes: Votes) -> Iterator[Row]:
    """Yield what a verdict takes: statements, tokens, cost, seconds, and seconds on the critical path."""
    cluster, latency = votes.units.cluster, np.where(votes.asked, votes.latency, 0)
    held = votes.asked.any((1, 2))
    if votes.arm == ONE_BY_ONE:
        path = latency.sum((1, 2))
    elif votes.arm in DEBATES:
        path = latency.max(1).sum(1)
    else:
        path = latency.sum(2).max(1)
    seconds = {"seconds": latency.sum((1, 2)), "critical_seconds": path}
    for name, value in (votes.spent | seconds).items():
        value = np.where(held, value, np.nan)
        if not np.isnan(value).all():
            yield Row(votes.arm, f"{name}_per_verdict", conversation_mean(value, cluster))


def peer_means(votes: Votes) -> np.ndarray:
    """Return for each score the mean of the peers' latest scores that the juror had heard, (units, seats, rounds).

    As recorded (`peer_mean`); otherwise computed: one by one, from those who spoke before in this round and the others'
    scores of the round before; else from the round before. The peers of the arm sham are known to the record only.
    """
    if votes.arm == "sham":
        return votes.shown
    heard = np.full(votes.score.shape, np.nan)
    for k in range(1, len(votes.rounds)):
        before, now, place = votes.score[:, :, k - 1], votes.score[:, :, k], votes.place[:, :, k]
        if votes.arm != ONE_BY_ONE:
            heard[:, :, k] = mean_of_others(before)
            continue
        spoke = place[:, None, :] < place[:, :, None]  # (units, listener, speaker)
        latest = np.where(spoke, now[:, None, :], before[:, None, :])
        latest[:, np.arange(len(votes.seats)), np.arange(len(votes.seats))] = np.nan
        heard[:, :, k] = mean_over(latest, 2)
    return np.where(np.isnan(votes.shown), heard, votes.shown)


def conformity_parts(votes: Votes, seats) -> np.ndarray:
    """Return per unit the sums for the slope of a juror's change on its distance to the peers it had heard."""
    own = votes.score[:, seats, :-1]
    change, distance = votes.score[:, seats, 1:] - own, peer_means(votes)[:, seats, 1:] - own
    return slope_parts(distance, change).sum((1, 2))


def peers(votes: dict[str, Votes]) -> Iterator[Row]:
    """Yield conformity, of the jury and of each juror, and the first speaker's weight."""
    controls = [name for name in ("sham", "reask") if name in votes]
    for arm in (*DEBATES, *controls):
        if arm not in votes or len(votes[arm].rounds) < 2 or len(votes[arm].seats) < 2:
            continue
        mine = votes[arm]
        names = np.unique(mine.juror)
        for name in ("", *(names if len(names) > 1 else ())):
            parts = conformity_parts(mine, np.ones(len(mine.seats), bool) if not name else mine.juror == name)
            reason = "" if parts.any() else "peers_unknown"
            yield Row(arm, "conformity", _slope(parts, mine, reason), juror=name)
            for control in controls if arm in DEBATES else ():
                theirs = votes[control]
                seats = np.ones(len(theirs.seats), bool) if not name else theirs.juror == name
                base = conformity_parts(theirs, seats)
                known = "" if parts.any() and base.any() else "peers_unknown"
                both = np.hstack([parts, base])
                formula = difference_of(slope_of, 5, slope_of)
                value = Statistic.of_sums(
                    both, formula, mine.units.cluster, int(both[:, [0, 5]].sum()), null=0, reason=known
                )
                yield Row(arm, f"conformity_minus_{control}", value, juror=name)
        if arm in DEBATES:
            yield from first_speaker(mine, votes.get("personas"))


def _slope(parts, votes: Votes, reason: str) -> Statistic:
    return Statistic.of_sums(parts, slope_of, votes.units.cluster, int(parts[:, 0].sum()), null=0, reason=reason)


def first_speaker(votes: Votes, private: Votes | None) -> Iterator[Row]:
    """Yield the first speaker's weight: the slope of the jury's verdict on its private vote, given the others' mean.

    excess: that slope minus the others' slope divided by their number; 0 where order does not matter and jurors take
    turns at speaking first, however noisy the votes are.
    """
    seats = len(votes.seats)
    shared = private is not None and list(private.seats) == list(votes.seats)
    votes_before = private.last if shared else votes.score[:, :, 0]
    note = "" if shared or votes.arm != ONE_BY_ONE else "openings_seen"
    place = np.where(np.isnan(votes.place[:, :, 0]), np.inf, votes.place[:, :, 0])
    first = place.argmin(1)
    at = np.arange(len(first))
    x, z, y = votes_before[at, first], mean_of_others(votes_before)[at, first], votes.verdict
    z = np.where(np.isfinite(place[at, first]), z, np.nan)
    parts = np.stack([np.ones_like(x), x, z, y, x * x, z * z, x * z, x * y, z * y], 1)
    parts = np.where(np.isnan(parts).any(1, keepdims=True), 0, parts)

    def slopes(sums):
        n, x, z, y, xx, zz, xz, xy, zy = np.moveaxis(sums, -1, 0)
        sxx, szz, sxz, sxy, szy = xx - x * x / n, zz - z * z / n, xz - x * z / n, xy - x * y / n, zy - z * y / n
        det = sxx * szz - sxz**2
        det = np.where(det > 1e-9 * np.maximum(sxx * szz, BOUND), det, np.nan)
        return (sxy * szz - szy * sxz) / det, (szy * sxx - sxy * sxz) / det

    cluster = votes.units.cluster
    yield Row(votes.arm, "first_speaker_weight",
              Statistic.of_sums(parts, lambda sums: slopes(sums)[0], cluster), note=note)  # fmt: skip
    yield Row(votes.arm, "first_speaker_excess",
              Statistic.of_sums(parts, lambda sums: slopes(sums)[0] - slopes(sums)[1] / (seats - 1), cluster, null=0),
              note=note)  # fmt: skip


def differences(votes: dict[str, Votes]) -> Iterator[Row]:
    """Yield what each pair of arms differs by on the same answers and jurors, per source and over all, and its AUC."""
    for a, b in CONTRASTS:
        if a not in votes or b not in votes:
            continue
        (names_a, last_a), (names_b, last_b) = votes[a].by_juror(), votes[b].by_juror()
        _, at_a, at_b = np.intersect1d(names_a, names_b, return_indices=True)
        cells = last_a[:, at_a] - last_b[:, at_b]
        gap, units = mean_over(cells, 1), votes[a].units
        for source in ("", *(units.sources if len(units.sources) > 1 else ())):
            of = units.of(source)
            rows = int((~np.isnan(cells[of])).sum())
            value = conversation_mean(gap[of], units.cluster[of], rows, null=0)
            yield Row(f"{a} - {b}", "difference", value, source)
        if len(units.sources) > 1:
            yield Row(f"{a} - {b}", "auc_difference", _auc_difference(votes[a].verdict, votes[b].verdict, units))


def _auc_difference(first, second, units: Units) -> Statistic:
    known = ~np.isnan(first) & ~np.isnan(second)
    human, model = known & units.human, known & ~units.human
    areas = [auc(s[human], units.cluster[human], s[model], units.cluster[model]) for s in (first, second)]
    return Statistic(
        lambda weights: areas[0].of(weights) - areas[1].of(weights), areas[0].clusters, areas[0].rows, 0.0,
        reason=areas[0].reason,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------
# Rows of the table


def _lines(row: Row, how: Settings) -> Iterator[dict]:
    """Yield the table's lines of a statistic, default method first."""
    for k, estimate in enumerate(row.value.estimates(how)):
        yield _line(row, estimate, np.nan if k else row.value.p())


def _line(row: Row, estimate: Estimate, p: float) -> dict:
    few = "few_conversations" if 0 < estimate.n_prompts < FEW and not np.isnan(estimate.value) else ""
    return {
        "arm": row.arm, "source": row.source, "round": row.round, "juror": row.juror, "statistic": row.statistic,
        "estimate": estimate.value, "low": estimate.low, "high": estimate.high, "level": estimate.level,
        "method": estimate.method, "p": p, "n": estimate.n, "n_conversations": estimate.n_prompts,
        "note": "; ".join(filter(None, [estimate.note, few, row.note])),
    }  # fmt: skip


def _equivalence(row: Row, level: float, margin: float) -> dict:
    """Return the line of two one-sided t tests (Schuirmann 1987): p small means that |difference| < margin."""
    found, df = row.value, row.value.clusters - 1
    low, high, p = np.nan, np.nan, np.nan
    if not found.note:
        error = np.sqrt(found.variance)
        half = sps.t.ppf(level, df) * error
        low, high = found.value - half, found.value + half
        p = float(sps.t.sf(ratio(margin - abs(found.value), error), df))
    estimate = Estimate(found.value, low, high, 2 * level - 1, found.rows, found.clusters, "tost_t", found.note)
    return _line(row._replace(statistic="equivalence", note=f"margin={margin:g}"), estimate, p)


def _table(lines: list[dict], level: float, seed: int) -> pd.DataFrame:
    table = pd.DataFrame(lines)
    table["p_holm"] = table.groupby(["statistic", "source"])["p"].transform(holm)
    resampled = table["method"].isin(["percentile", "bca"])
    table["seed"] = pd.Series(seed, table.index, "Int64").where(resampled)
    table["round"] = table["round"].astype("Int64")
    return table.loc[:, list(COLUMNS)]
