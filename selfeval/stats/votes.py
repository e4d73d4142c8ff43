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
from selfeval.stats.engine import ratio
from selfeval.stats.tallies import ids, shares

ARMS = ("independent", "personas", "reask", "sham", "debate", "simultaneous", "simultaneous_summary")
ONE_BY_ONE = "debate"
DEBATES = ("debate", "simultaneous", "simultaneous_summary")
HUMAN, MODEL = "human", "model"
NEEDED = ("conversation_id", "arm", "juror", "score")
NUMBERS = ("peer_mean", "latency", "cost")
EMPTY = {"source": MODEL, "turn": 1, "round": 1, "usage": None, **dict.fromkeys(("agent", "persona", "pair", *NUMBERS))}
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

    score, asked (there is a record), shown (mean of the peers' scores that the juror saw, NaN unknown), latency:
    (units, seats, rounds). seats: labels; juror: the model of each seat. spent: per unit the sums over all its records.
    """

    arm: str
    units: Units
    rounds: np.ndarray
    seats: np.ndarray
    juror: np.ndarray
    score: np.ndarray
    asked: np.ndarray
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

    def by_juror(self) -> pd.DataFrame:
        """Return the mean last score of each model on the jury, (models, units)."""
        return pd.DataFrame(self.last.T).groupby(self.juror).mean()


def mean_over(x, axis: int) -> np.ndarray:
    """Return the mean of what is not NaN; NaN where nothing is."""
    return ratio(np.nansum(x, axis), (~np.isnan(x)).sum(axis))


def mean_of_others(x) -> np.ndarray:
    """Return for each column of (units, seats) the mean of the other columns' known values."""
    known, filled = ~np.isnan(x), np.nan_to_num(x)
    return ratio(filled.sum(1, keepdims=True) - filled, known.sum(1, keepdims=True) - known)


def read_votes(records: pd.DataFrame) -> dict[str, Votes]:
    """Return the votes of each arm that occurs, in the order of `ARMS`, over one list of units.

    Raises `InputError` for a missing column, an unknown arm or source, a score that is no number from 0 to 1, and one
    statement given twice.
    """
    frame = _checked(records)
    frame["unit"] = frame.groupby(UNIT).ngroup()
    first = frame.sort_values("unit").drop_duplicates("unit")
    human = (first["source"] == HUMAN).to_numpy()
    units = Units(first["cluster"].to_numpy(), human, first.groupby(["cluster", "turn"]).ngroup().to_numpy())
    return {name: _arm(name, part, units) for name in ARMS if len(part := frame[frame["arm"] == name])}


def _checked(records: pd.DataFrame) -> pd.DataFrame:
    """Return the jurors' rows with every column that is read, checked."""
    frame = pd.DataFrame(records).reset_index(drop=True)
    for name in NEEDED:
        if name not in frame:
            raise InputError(f"The verdict records have no column `{name}`; {', '.join(NEEDED)} are needed.")
    frame = frame[frame["role"] == "juror"] if "role" in frame else frame
    if frame.empty:
        raise InputError("There are no verdict records to analyse.")
    frame = frame.assign(**{name: value for name, value in EMPTY.items() if name not in frame})
    for name in ("conversation_id", "juror", "round"):
        ids(frame, name)
    for name, known in (("arm", ARMS), ("source", (HUMAN, MODEL))):
        wrong = frame.loc[~frame[name].isin(known), name]
        if len(wrong):
            raise InputError(f"Column `{name}` must be one of {', '.join(known)}, got {wrong.iloc[0]!r}.")
    columns = {name: pd.to_numeric(frame[name], errors="coerce").astype(float) for name in NUMBERS}
    columns |= {name: _text(frame[name]) for name in ("conversation_id", "pair", "agent", "juror", "persona")}
    cluster = columns["pair"].where(columns["pair"] != "", columns["conversation_id"])
    score, turn = shares(frame["score"], "score"), frame["turn"].fillna(0)
    frame = frame.assign(**columns, score=score, round=frame["round"].astype(float), turn=turn, cluster=cluster)
    twice = frame.duplicated([*UNIT, "arm", "round", "juror", "persona"])
    if twice.any():
        row = frame.loc[twice.idxmax(), ["juror", "arm", "round", "conversation_id", "turn"]]
        raise InputError(f"The records have {', '.join(f'{name} {x}' for name, x in row.items())} twice; keep one.")
    return frame


def _text(values: pd.Series) -> pd.Series:
    """Return ids and names as text, "" for null; 1, 1.0 and "1" are one, as a column with nulls has them."""
    return values.map(
        lambda v: "" if pd.isna(v) else str(int(v)) if isinstance(v, float) and v.is_integer() else str(v)
    ).astype(object)


def _arm(name: str, frame: pd.DataFrame, units: Units) -> Votes:
    juror = frame["juror"]
    several = juror.isin(juror[frame.duplicated(["unit", "round", "juror"])])  # seats, told apart by their personas
    seat, seats = pd.factorize(juror.where(~several, juror + " (" + frame["persona"] + ")"), sort=True)
    unit = frame["unit"].to_numpy()
    rounds, at = np.unique(frame["round"], return_inverse=True)
    shape = (len(units.human), len(seats), len(rounds))
    where = (unit, seat, at)

    def spread(values, empty=np.nan):
        out = np.full(shape, empty)
        out[where] = values
        return out

    usage = [x if isinstance(x, dict) else {} for x in frame["usage"]]
    columns = {f"{kind}_tokens": [x.get(kind) for x in usage] for kind in ("prompt", "completion")}
    columns |= {"cost": frame["cost"], "statements": np.ones(len(frame))}
    held = np.bincount(unit, minlength=shape[0]) > 0
    spent = {  # one unknown makes the sum unknown
        kind: np.where(held, np.bincount(unit, np.asarray(values, float), shape[0]), np.nan)
        for kind, values in columns.items()
    }
    models = np.empty(len(seats), object)
    models[seat] = juror
    return Votes(
        name, units, rounds, np.asarray(seats, object), models, spread(frame["score"]), spread(True, False),
        spread(frame["peer_mean"]), spread(frame["latency"]), spent,
    )  # fmt: skip
