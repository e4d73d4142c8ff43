"""What a debate does: conformity to the peers heard, the first speaker's weight, and differences between arms.

The functions take the votes of all arms and yield rows of `selfeval.stats.jury.jury_table`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from selfeval.stats.panel import Row, conversation_mean
from selfeval.stats.resampled import Statistic, auc, difference_of, effective_clusters, slope, slope_of, slope_parts
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


def conformity_parts(votes: Votes, seat: str = "") -> np.ndarray:
    """Return per unit the sums for the slope of change on distance to the peers heard, of one seat or of all."""
    seats = votes.seats == seat if seat else np.ones(len(votes.seats), bool)
    own = votes.score[:, seats, :-1]
    change, distance = votes.score[:, seats, 1:] - own, peer_means(votes)[:, seats, 1:] - own
    return slope_parts(distance, change).sum((1, 2))


def peers(votes: dict[str, Votes]) -> Iterator[Row]:
    """Yield conformity, of the jury and of each juror, and the first speaker's weight."""
    controls = [name for name in ("sham", "reask") if name in votes]
    for arm in (*DEBATES, *controls):
        if arm not in votes or len(votes[arm].rounds) < 2 or len(votes[arm].seats) < 2:
            continue
        mine, cluster = votes[arm], votes[arm].units.cluster
        for name in ("", *mine.seats):
            parts = conformity_parts(mine, name)
            reason = "" if parts.any() else "peers_unknown"
            yield Row(arm, "conformity", slope(parts, cluster, null=0, reason=reason), juror=name)
            for control in controls if arm in DEBATES else ():
                theirs = votes[control]
                base = conformity_parts(theirs, name)
                known = "" if parts.any() and base.any() else "peers_unknown"
                value = Statistic.of_sums(
                    np.hstack([parts, base]), difference_of(slope_of, 5, slope_of), cluster,
                    int(parts[:, 0].sum() + base[:, 0].sum()), null=0, reason=known,
                    effective=min(effective_clusters(x, cluster) for x in (parts, base)),
                )  # fmt: skip
                yield Row(arm, f"conformity_minus_{control}", value, juror=name)
        if arm in DEBATES:
            yield first_speaker(mine, votes.get("personas"))


def first_speaker(votes: Votes, private: Votes | None) -> Row:
    """Return the weight of the first speaker in the jury's verdict; 1 / J is its fair share.

    From who happens to speak first (jurors take turns): where the lenient ones open and the verdict follows, openings
    weigh more. s is the slope of the verdict, less the mean private vote, on the opener's leniency (its mean private
    vote less the jury's, held fixed); a weight w, the others sharing 1 - w, gives s = (J w - 1) / (J - 1).
    """
    seats = len(votes.seats)
    shared = private is not None and list(private.seats) == list(votes.seats)
    before = private.last if shared else votes.score[:, :, 0]
    lenient = mean_over(before, 0) - mean_over(before, (0, 1))
    place = votes.place[:, :, 0]
    known = ~np.isnan(place).all(1)
    opener = np.where(known, lenient[np.where(np.isnan(place), np.inf, place).argmin(1)], np.nan)
    parts = slope_parts(opener, votes.verdict - mean_over(before, 1))
    value = slope(parts, votes.units.cluster, lambda sums: (1 + slope_of(sums) * (seats - 1)) / seats, null=1 / seats)
    note = "" if shared or votes.arm != ONE_BY_ONE else "openings_seen"
    return Row(votes.arm, "first_speaker_weight", value, note="; ".join(filter(None, [f"fair={1 / seats:.3f}", note])))


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
