"""Verdict records as arrays: who voted what about which answer, arm by arm.

A unit is one thing judged: the answer of a turn, a prefix or a whole conversation. Scores have shape (units, seats,
rounds), NaN where there is none; a seat is a juror of the jury. The sampled unit is the conversation, or the matched
pair of conversations (column `pair`): the same one with a person's and with a model's answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from selfeval.errors import InputError

ARMS = ("independent", "personas", "reask", "sham", "debate", "simultaneous", "simultaneous_summary")
ONE_BY_ONE = "debate"
DEBATES = ("debate", "simultaneous", "simultaneous_summary")
HUMAN, MODEL = "human", "model"
UNIT = ["cluster", "conversation_id", "source", "agent", "turn"]


@dataclass(eq=False)
class Units:
    """The things judged, in every arm the same: one row each."""

    cluster: np.ndarray
    human: np.ndarray
    pair: np.ndarray  # units of one cluster and turn have one number

    def of(self, source: str) -> np.ndarray:
        """Return which units are of a source; "" means all."""
        return np.ones(len(self.human), bool) if not source else self.human == (source == HUMAN)

    @property
    def sources(self) -> list[str]:
        return [name for name in (HUMAN, MODEL) if self.of(name).any()]


@dataclass(eq=False)
class Votes:
    """The votes of one arm.

    score, asked (there is a record), place (speaking order, NaN unknown), shown (mean of the peers' scores that the
    juror saw, NaN unknown), latency: (units, seats, rounds). seats: labels; juror: the model of each seat. spent:
    per unit the sums over all its records.
    """

    arm: str
    units: Units
    rounds: np.ndarray
    seats: np.ndarray
    juror: np.ndarray
    score: np.ndarray
    asked: np.ndarray
    place: np.ndarray
    shown: np.ndarray
    latency: np.ndarray
    spent: dict[str, np.ndarray]

    @property
    def last(self) -> np.ndarray:
        """Scores of the last round, (units, seats)."""
        return self.score[:, :, -1]

    @property
    def verdict(self) -> np.ndarray:
        """The jury's score per unit: the mean of its last round; NaN without any score."""
        return mean_over(self.last, 1)

    def by_juror(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the models on the jury and the mean last score of each, (units, models)."""
        names = np.unique(self.juror)
        return names, np.stack([mean_over(self.last[:, self.juror == name], 1) for name in names], 1)


def mean_over(x, axis: int) -> np.ndarray:
    """Return the mean of what is not NaN; NaN where nothing is."""
    known = (~np.isnan(x)).sum(axis)
    return np.where(known > 0, np.nansum(x, axis) / np.maximum(known, 1), np.nan)


def mean_of_others(x) -> np.ndarray:
    """Return for each column of (units, seats) the mean of the other columns' known values."""
    known = ~np.isnan(x)
    filled = np.where(known, x, 0)
    others = known.sum(1, keepdims=True) - known
    return np.where(others > 0, (filled.sum(1, keepdims=True) - filled) / np.maximum(others, 1), np.nan)


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


def read_votes(records: pd.DataFrame) -> dict[str, Votes]:
    """Return the votes of each arm that occurs, in the order of `ARMS`, over one list of units.

    Raises `InputError` for a missing column, an unknown arm or source, a score that is no number from 0 to 1, and one
    statement given twice.
    """
    frame = _checked(records)
    table = frame[UNIT].drop_duplicates().sort_values(UNIT, ignore_index=True)
    unit = pd.MultiIndex.from_frame(table).get_indexer(pd.MultiIndex.from_frame(frame[UNIT]))
    human = (table["source"] == HUMAN).to_numpy()
    units = Units(table["cluster"].to_numpy(), human, table.groupby(["cluster", "turn"]).ngroup().to_numpy())
    arm = frame["arm"].to_numpy()
    return {name: _arm(name, frame[arm == name], unit[arm == name], units) for name in ARMS if (arm == name).any()}


def _checked(records: pd.DataFrame) -> pd.DataFrame:
    """Return the jurors' rows with every column that is read, checked."""
    frame = pd.DataFrame(records).reset_index(drop=True)
    for name in ("conversation_id", "arm", "juror", "score"):
        if name not in frame:
            raise InputError(
                f"The verdict records have no column `{name}`; conversation_id, arm, juror and score are needed."
            )
    frame = frame[frame["role"] == "juror"] if "role" in frame else frame
    if frame.empty:
        raise InputError("There are no verdict records to analyse.")
    empty = {"source": MODEL, "agent": "", "turn": 1, "round": 1, "persona": "", "position": np.nan,
             "peer_mean": np.nan, "latency": np.nan, "cost": np.nan, "usage": None}  # fmt: skip
    frame = frame.assign(**{name: value for name, value in empty.items() if name not in frame})
    for name, known in (("arm", ARMS), ("source", (HUMAN, MODEL))):
        wrong = frame.loc[~frame[name].isin(known), name]
        if len(wrong):
            raise InputError(f"Column `{name}` must be one of {', '.join(known)}, got {wrong.iloc[0]!r}.")
    numbers = ("score", "round", "position", "peer_mean", "latency", "cost")
    given = {name: frame[name] for name in numbers}
    frame = frame.assign(**{name: pd.to_numeric(frame[name], errors="coerce").astype(float) for name in numbers})
    bad = given["score"].notna() & ~frame["score"].between(0, 1)
    if bad.any():
        raise InputError(
            f"Column `score` must hold numbers from 0 to 1 or null, got {given['score'][bad].tolist()[0]!r}."
        )
    if frame["round"].isna().any():
        raise InputError(
            f"Column `round` must hold numbers, got {given['round'][frame['round'].isna()].tolist()[0]!r}."
        )
    text = {name: frame[name].fillna("").astype(str) for name in ("conversation_id", "agent", "juror", "persona")}
    turn = frame["turn"].fillna(0)
    pair = frame["pair"] if "pair" in frame else pd.Series(None, frame.index, object)
    frame = frame.assign(**text, turn=turn, cluster=pair.fillna(text["conversation_id"]).astype(str))
    key = [*UNIT, "arm", "round", "juror", "persona", "position"]
    twice = frame.duplicated(key)
    if twice.any():
        row = frame[twice].iloc[0]
        raise InputError(
            f"The statement of {row['juror']!r} in arm {row['arm']!r}, round {row['round']:g}, about conversation "
            f"{row['conversation_id']!r}, turn {row['turn']}, is given twice; keep one."
        )
    return frame


def _seats(frame: pd.DataFrame, unit: np.ndarray) -> pd.Series:
    """Name the seats: the juror, with its persona where it sits twice, with a number where that is not enough."""
    seat = frame["juror"]
    for more in (" (" + frame["persona"].where(frame["persona"] != "", "no persona") + ")", None):
        key = [unit, frame["round"].to_numpy(), seat.to_numpy()]
        again = pd.DataFrame(dict(enumerate(key)), frame.index)
        twice = seat.isin(set(seat[again.duplicated(keep=False)]))
        if not twice.any():
            break
        if more is None:
            order = frame["position"].argsort(kind="stable")
            number = again.iloc[order].groupby([0, 1, 2]).cumcount().sort_index() + 1
            more = " #" + number.astype(str)
        seat = seat.where(~twice, seat + more)
    return seat


def _arm(name: str, frame: pd.DataFrame, unit: np.ndarray, units: Units) -> Votes:
    seat, seats = pd.factorize(_seats(frame, unit), sort=True)
    rounds, at = np.unique(frame["round"], return_inverse=True)
    shape = (len(units.human), len(seats), len(rounds))
    where = (unit, seat, at)

    def spread(values, empty=np.nan):
        out = np.full(shape, empty)
        out[where] = values
        return out

    usage = [x if isinstance(x, dict) else {} for x in frame["usage"]]
    columns = {f"{kind}_tokens": [x.get(kind) for x in usage] for kind in ("prompt", "completion", "cached")}
    columns |= {"cost": frame["cost"], "statements": np.ones(len(frame))}
    spent = {}
    for kind, values in columns.items():  # one unknown makes the sum unknown
        total = np.bincount(unit, np.asarray(values, float), len(units.human))
        spent[kind] = np.where(np.bincount(unit, minlength=len(total)) > 0, total, np.nan)
    juror = np.empty(len(seats), object)
    juror[seat] = frame["juror"].to_numpy()
    return Votes(
        name, units, rounds, np.asarray(seats, object), juror, spread(frame["score"]), spread(True, False),
        spread(frame["position"]), spread(frame["peer_mean"]), spread(frame["latency"]), spent,
    )  # fmt: skip
