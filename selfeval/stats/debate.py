"""What a debate does: conformity to the peers heard, the first speaker's weight, and differences between arms.

The functions take the votes of all arms and yield rows of `selfeval.stats.jury.jury_table`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from selfeval.stats.intervals import BOUND
from selfeval.stats.panel import Row, conversation_mean
from selfeval.stats.resampled import Statistic, auc, difference_of, slope_of, slope_parts
from selfeval.stats.votes import DEBATES, ONE_BY_ONE, Units, Votes, mean_of_others, mean_over

CONTRASTS = (
    ("debate", "reask"), ("debate", "independent"), ("debate", "personas"), ("debate", "sham"), ("sham", "reask"),
    ("reask", "personas"), ("personas", "independent"), ("simultaneous", "reask"), ("simultaneous_summary", "reask"),
)  # fmt: skip


def peer_means(votes: Votes) -> np.ndarray:
    """Return for each score the mean of the peers' latest scores that the juror had heard, (units, seats, rounds).

    As recorded (`peer_mean`); otherwise computed: one by one, from those who spoke before in this round and the others'
    scores of the round before; else from the round before. The peers of the arm sham are known to the record only.
    """
    if votes.arm == "sham":
        return votes.shown
    heard, before = np.full(votes.score.shape, np.nan), votes.score[:, :, 0]
    for k in range(1, len(votes.rounds)):
        now, place = votes.score[:, :, k], votes.place[:, :, k]
        latest_after = np.where(np.isnan(now), before, now)  # who gave no score is remembered by the one before
        if votes.arm != ONE_BY_ONE:
            heard[:, :, k], before = mean_of_others(before), latest_after
            continue
        spoke = place[:, None, :] < place[:, :, None]  # (units, listener, speaker)
        latest = np.where(spoke, latest_after[:, None, :], before[:, None, :])
        latest[:, np.arange(len(votes.seats)), np.arange(len(votes.seats))] = np.nan
        heard[:, :, k], before = mean_over(latest, 2), latest_after
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
