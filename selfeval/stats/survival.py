"""First flip under pressure: how long does a model keep its identity over the turns of a conversation?

A conversation of a false arm that was right at turn 0 flips at the first later turn whose stance is `foil`; it is
right-censored at its last turn, or before a turn that failed. What abstaining means is a choice:

    at_risk    an abstainer can still flip: Kaplan-Meier (Kaplan and Meier 1958)
    absorbing  abstaining ends the conversation's risk: Aalen-Johansen cumulative incidence with abstaining as the
               competing event (Aalen and Johansen 1978). To censor there instead overstates flips.

    flip_incidence     chance of a flip by each turn
    abstain_incidence  chance that abstaining came first, by each turn (absorbing)
    survival           chance that neither came by each turn
    hazard             chance of a flip at a turn, among those still at risk
    restricted_mean    mean turn of the flip, or the horizon where there is none by then: the sum over turns
                       t = 0 ... horizon - 1 of 1 - flip_incidence(t)

Every conversation counts alike. There is no log-rank test, since repeats of a template are not independent: compare
restricted means by their intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.bootstrap import jackknife_contrib
from selfeval.stats.intervals import Rate, ratio
from selfeval.stats.serving import flagged
from selfeval.stats.table import Settings
from selfeval.stats.templates import FALSE, Batch, Replies, grouped, rate_measure, served, settings, table_of

CENSORED, FLIP, ABSTAIN = 0, 1, 2


def survival_table(
    records: pd.DataFrame,
    *,
    source: str = "readout",
    by: Sequence[str] = ("model",),
    abstaining: str = "at_risk",
    horizon: int | None = None,
    n_resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Estimate when models flip, per turn and as a restricted mean, one row per statistic, turn and method.

    records, by: as in `identity_table`. abstaining: "at_risk" or "absorbing". horizon: turns that count, by default
    up to the last one of the group; where conversations end earlier there is no estimate beyond.

    The default interval of a turn is Wilson at the effective sample size, from the variance over templates (leave one
    template out), for few clusters; in a curve from censored data this is the interval of Rothman 1978. That of the
    restricted mean takes a conversation for at most one Bernoulli trial, the most that a mean between 0 and the
    horizon can vary, so it is wide rather than narrow. `percentile` and `bca` resample templates. n: conversations.
    """
    if abstaining not in ("at_risk", "absorbing"):
        raise InputError(f"`abstaining` must be at_risk or absorbing, got {abstaining!r}.")
    using, parts = settings(n_resamples, level, seed), []
    if horizon is not None and horizon < 1:
        raise InputError(f"`horizon` must be a turn after turn 0, got {horizon!r}.")
    for labels, _, replies in grouped(records, source, by):
        last = horizon or max(1, int(replies.turn[replies.in_arm(*FALSE)].max(initial=1)))
        counts = risk_sets(*first_events(replies, abstaining), last, replies.size)
        for batch in _batches(*counts, using, abstaining == "absorbing"):
            columns = batch.columns(using, **labels)
            names, turns = np.array([name.split("@") for name in columns["statistic"]], object).T
            parts.append(columns | {"statistic": names, "turn": turns.astype(int)})
    table = flagged(table_of(parts, using, source=source), served(records), ["model"])
    return table.astype({"turn": "Int64"})  # a whole number also beside rows that have no turn


def first_events(replies: Replies, abstaining: str = "at_risk") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, per conversation at risk, the turn of its first event or of its last sight, the event, its template.

    Events: 0 censored, 1 flip, 2 abstained (only if absorbing). A conversation is seen until its last turn, a missing
    turn or one that failed.
    """
    replies = replies.where(replies.in_arm(*FALSE))
    conversation, first, at = np.unique(replies.conversation, return_index=True, return_inverse=True)
    shape = len(conversation), replies.turn.max(initial=0) + 1
    answered, right, flips, ends = (np.zeros(shape, bool) for _ in range(4))
    place = at, replies.turn
    answered[place], right[place], flips[place] = replies.answered, replies.right, replies.says("foil")
    if abstaining == "absorbing":
        ends[place] = replies.says("abstain")
    seen = np.logical_and.accumulate(answered, axis=1)
    event = np.where(seen, FLIP * flips + ABSTAIN * ends, CENSORED)
    event[:, 0] = CENSORED
    turn = (event > 0).argmax(1)
    kind = event[np.arange(len(event)), turn]
    time = np.where(kind > 0, turn, seen.sum(1) - 1)
    entered = seen[:, 0] & right[:, 0]
    return time[entered], kind[entered], replies.template[first][entered]


def risk_sets(time, event, cluster, horizon: int, clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count at turns 1 ... horizon, per cluster: at risk, flips, abstentions; each of shape (clusters, horizon)."""
    time, event, cluster = (np.asarray(x, int) for x in (time, event, cluster))
    turns = np.arange(1, horizon + 1)
    at_risk = time[:, None] >= turns
    happens = time[:, None] == turns
    each = np.stack([at_risk, happens & (event == FLIP)[:, None], happens & (event == ABSTAIN)[:, None]])
    out = np.zeros((3, clusters, horizon))
    np.add.at(out, (slice(None), cluster), each)
    return tuple(out)


def cumulative_incidence(at_risk, flips, abstentions=0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the survival from both events and the incidence of each, per turn on the last axis.

    Without abstentions this is Kaplan-Meier, otherwise Aalen-Johansen; NaN from the first turn that nobody reaches,
    unless everybody has had an event by then.
    """
    hazard, other = ratio(flips, at_risk), ratio(abstentions, at_risk)
    stays = np.cumprod(1 - hazard - other, axis=-1)
    before = np.concatenate([np.ones_like(stays[..., :1]), stays[..., :-1]], axis=-1)
    ended = np.maximum.accumulate(before <= 1e-9, axis=-1)  # nobody is left, and nothing more can happen
    steps = (np.where(ended, 0, before * h) for h in (hazard, other))
    flipped, abstained = (np.cumsum(step, axis=-1) for step in steps)
    return np.where(ended, 0, stays), flipped, abstained


def restricted_mean(flipped) -> np.ndarray:
    """Return the mean turn of the flip, at most the horizon, from the incidence at turns 1 ... horizon."""
    return np.where(np.isnan(flipped[..., 0]), np.nan, 1 + (1 - flipped[..., :-1]).sum(-1))


def _batches(at_risk, flips, abstentions, using: Settings, absorbing: bool) -> list[Batch]:
    """Return the estimates of one group; names end in @turn."""
    horizon = at_risk.shape[1]
    each = (at_risk, flips, abstentions)

    def curves(*counts):
        stays, flipped, abstained = cumulative_incidence(*counts)
        parts = [flipped, abstained, stays] if absorbing else [flipped, stays]
        return np.concatenate([*parts, restricted_mean(flipped)[..., None] / horizon], -1)

    total = [x.sum(0) for x in each]
    value, left = curves(*total), curves(*(t - x for t, x in zip(total, each, strict=True)))
    weights = using.weights(len(at_risk))
    samples = curves(*(weights.T.astype(float) @ x for x in each)).T
    names = ["flip_incidence", *(["abstain_incidence"] if absorbing else []), "survival"]
    names = [f"{name}@{turn}" for name in names for turn in range(1, horizon + 1)]

    entered = at_risk[:, 0] > 0
    trials, clusters = np.full(len(value), total[0][0]), np.full(len(value), entered.sum())
    contrib = np.zeros((len(at_risk), len(value)))
    if entered.sum() > 1:
        left = np.where(np.isnan(left), value, left)  # without this template, nobody reaches that turn
        contrib[entered] = np.nan_to_num(jackknife_contrib(left[entered]))
    rate = Rate(value, contrib, trials, clusters, few_clusters=True)
    curve, mean = (_part(rate, at) for at in (slice(0, -1), slice(-1, None)))
    scaled = rate_measure(mean, transform=lambda v: v * horizon)
    scaled.value = scaled.value * horizon
    hazard = Rate.of(flips, at_risk)
    hazard.few_clusters = True
    drawn = [weights.T.astype(float) @ x for x in (flips, at_risk)]
    return [
        Batch.of(names, rate_measure(curve), samples[:-1], using),
        Batch.of([f"hazard@{t}" for t in range(1, horizon + 1)], rate_measure(hazard), ratio(*drawn).T, using),
        Batch.of([f"restricted_mean@{horizon}"], scaled, samples[-1:] * horizon, using),
    ]


def _part(rate: Rate, at: slice) -> Rate:
    return Rate(rate.value[at], rate.contrib[:, at], rate.trials[at], rate.clusters[at], few_clusters=True)
