"""Verdict records as arrays, who voted what about which answer, arm by arm; and how far raters agree.

A unit is one thing judged: the answer of a turn, a prefix or a whole conversation. Scores have shape (units, seats,
rounds), NaN where there is none; a seat is a juror of the jury. The sampled unit is the conversation, or the matched
pair of conversations (column `pair`): the same one with a person's and with a model's answers.

Agreement takes a matrix (units, raters), NaN where there is no rating, and returns a `Function` over the clusters
(conversations) that hold the units, by default every unit one; what is not defined is NaN. A coefficient of J raters
lies between -1 / (J - 1), where they disagree as much as J can, and 1: so do its intervals. ICC(A,1) of a handful of
units can fall below; then it has no interval.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.engine import Function, Mapped, by_cluster, ratio
from selfeval.stats.tallies import ids, shares

ARMS = ("independent", "personas", "reask", "sham", "debate", "simultaneous", "simultaneous_summary")
ONE_BY_ONE = "debate"
DEBATES = ("debate", "simultaneous", "simultaneous_summary")
HUMAN, MODEL = "human", "model"
NEEDED = ("conversation_id", "arm", "juror", "score")
EMPTY = {"source": MODEL, "turn": 1, "round": 1, **dict.fromkeys(("agent", "persona", "pair", "peer_mean"))}
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

    score, asked (there is a record), shown (mean of the peers' scores that the juror saw, NaN unknown): (units, seats,
    rounds). seats: labels; juror: the model of each seat.
    """

    arm: str
    units: Units
    rounds: np.ndarray
    seats: np.ndarray
    juror: np.ndarray
    score: np.ndarray
    asked: np.ndarray
    shown: np.ndarray

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
    frame = _check(records)
    frame["unit"] = frame.groupby(UNIT).ngroup()
    first = frame.sort_values("unit").drop_duplicates("unit")
    human = (first["source"] == HUMAN).to_numpy()
    units = Units(first["cluster"].to_numpy(), human, first.groupby(["cluster", "turn"]).ngroup().to_numpy())
    return {name: _arm(name, part, units) for name in ARMS if len(part := frame[frame["arm"] == name])}


def _check(records: pd.DataFrame) -> pd.DataFrame:
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
    columns = {"peer_mean": pd.to_numeric(frame["peer_mean"], errors="coerce").astype(float)}
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

    models = np.empty(len(seats), object)
    models[seat] = juror
    scores, shown = spread(frame["score"]), spread(frame["peer_mean"])
    return Votes(name, units, rounds, np.asarray(seats, object), models, scores, spread(True, False), shown)


# ---------------------------------------------------------------------------------------------------------------
# How far raters agree


def krippendorff_alpha(ratings, cluster=None) -> Function:
    """Build alpha = 1 - observed / expected disagreement of pairs of ratings (Krippendorff 2004, chapter 11).

    Disagreement is the squared difference. Units with a single rating say nothing about agreement and do not count.
    Undefined where no unit has two ratings or all ratings are equal.
    """
    ratings, cluster = _matrix(ratings, cluster)
    given = ~np.isnan(ratings)
    ratings, given, cluster = (x[given.sum(1) > 1] for x in (ratings, given, cluster))
    size = given.sum(1)
    # Everything from counts, sums and squares, however many distinct values there are.
    x = np.where(given, ratings - (ratings[given].mean() if len(ratings) else 0), 0)
    total, square = x.sum(1), (x**2).sum(1)
    parts = np.stack([size, total, square, 2 * (size * square - total**2) / np.maximum(size - 1, 1)], 1)

    def alpha(sums):
        n, total, square, observed = np.moveaxis(sums, -1, 0)
        return _or_nan(1 - observed * (n - 1) / (2 * (n * square - total**2)), square - total**2 / n, square)

    return Function.of(by_cluster(parts, cluster), alpha, size.sum(), within=_within(size.min(initial=9)))


def icc(ratings, kind: str = "A", cluster=None) -> Function:
    """Build the intraclass correlation of single ratings, two-way: ICC(A,1) or ICC(C,1) (McGraw and Wong 1996).

    kind: "A" absolute agreement, ICC(2,1) of Shrout and Fleiss 1979; "C" consistency, ICC(3,1): differences in the
    raters' leniency do not count. Only units that every rater rated are used. Undefined with fewer than two such
    units or raters, and where nothing varies.
    """
    ratings, cluster = _matrix(ratings, cluster)
    whole = ~np.isnan(ratings).any(1)
    x, k = ratings[whole], ratings.shape[1]
    centred = x - x.mean() if x.size else x
    parts = np.column_stack([np.ones(len(x)), (centred**2).sum(1), centred.sum(1) ** 2, centred])

    def correlation(sums):
        n, square, row_square, column = sums[..., 0], sums[..., 1], sums[..., 2], sums[..., 3:]
        centre = column.sum(-1) ** 2 / (n * k)
        rows, columns = row_square / k - centre, (column**2).sum(-1) / n - centre
        ms_rows, ms_columns = rows / (n - 1), columns / (k - 1)
        ms_error = np.maximum(square - centre - rows - columns, 0) / ((n - 1) * (k - 1))
        bias = k / n * (ms_columns - ms_error) if kind == "A" else 0
        return _or_nan((ms_rows - ms_error) / (ms_rows + (k - 1) * ms_error + bias), square - centre, square)

    return Function.of(by_cluster(parts, cluster[whole]), correlation, x.size, within=_within(max(k, 2)))


def effective_votes(ratings, cluster=None) -> Mapped:
    """Build J / (1 + (J - 1) r) with r = ICC(C,1): how many independent votes J correlated ones are worth.

    Kish's design effect, reversed. An r below 0 counts as 0, in the estimate and in the bounds: correlated votes are
    worth at most J. Its interval is that of r, mapped.
    """
    votes = np.asarray(ratings).shape[1]
    return icc(ratings, "C", cluster).mapped(lambda r: votes / (1 + (votes - 1) * np.maximum(r, 0)))


def _matrix(ratings, cluster) -> tuple[np.ndarray, np.ndarray]:
    """Return ratings as floats (units, raters) and one cluster per unit."""
    ratings = np.asarray(ratings, float)
    return ratings, np.arange(len(ratings)) if cluster is None else np.asarray(cluster)


def _within(raters: int) -> tuple[float, float]:
    """Return the range of a coefficient of agreement."""
    return -1 / (raters - 1), 1.0


def _or_nan(value, spread, square):
    """Return the value, or NaN where the ratings (of a resample too) have no spread beyond rounding."""
    return np.where(spread > 1e-12 * square, value, np.nan)


AGREEMENT = {"alpha": krippendorff_alpha, "icc_a1": icc, "effective_votes": effective_votes}
