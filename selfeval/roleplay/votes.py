"""Verdict records as arrays, arm by arm, and how far raters and scorers agree.

A unit is one thing judged: the answer of a turn, a prefix or a whole conversation. Scores have
shape (units, seats, rounds), NaN where there is none; a seat is a juror of the jury. The sampled
unit is the conversation, or the matched pair of conversations (column `pair`): the same one with a
person's and with a model's answers.

Agreement takes a matrix (units, raters), NaN where there is no rating, and the clusters
(conversations) that hold the units; what is not defined is NaN. It has no interval: with skewed
scores that of t on the jackknife held the truth in as few as .81 of tables, with scores of 0 and 1
in .77.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.records.columns import as_shown, check_once, shares
from selfeval.roleplay.transcripts import as_id
from selfeval.statistics.intervals import BOUND, Count, Function, Rate, ratio
from selfeval.statistics.resampling import Settings
from selfeval.statistics.table import FEW, Measure, write

ARMS = ("independent", "personas", "reask", "sham", "debate")
HUMAN, MODEL = SOURCES = ("human", "model")
DEFAULTS = {
    "source": MODEL,
    "turn": 1,
    "round": 1,
    "agent": None,
    "persona": None,
    "pair": None,
    "peer_mean": None,
    "words": None,
}
TEXTS = ["conversation_id", "pair", "agent", "juror", "persona"]
UNIT = ["cluster", "conversation_id", "source", "agent", "turn"]


@dataclass(eq=False)
class Units:
    """The things judged, in every arm the same: one row each."""

    cluster: np.ndarray
    human: np.ndarray
    pair: np.ndarray  # units of one cluster and turn have one number

    def of(self, source: str) -> np.ndarray:
        """Return which units are of a source; "" means all."""
        if not source:
            return np.ones(len(self.human), bool)
        return self.human == (source == HUMAN)

    @property
    def sources(self) -> list[str]:
        return [source for source in SOURCES if self.of(source).any()]


@dataclass(eq=False)
class Votes:
    """The votes of one arm.

    score, asked (there is a record), shown (mean of the peers' scores that the juror saw, NaN
    unknown): (units, seats, rounds). seats: labels; juror: the model of each seat.
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
        """The jury's score per unit: the mean of its last round; NaN without any score.

        Means are rounded so that equal ones are ties, whoever of the jury gave which score: a tie
        counts as half in an AUC.
        """
        return np.round(mean_over(self.last, 1), 12)

    def by_juror(self) -> pd.DataFrame:
        """Return the mean last score of each model on the jury, (models, units)."""
        return pd.DataFrame(self.last.T).groupby(self.juror).mean()


def mean_over(values, axis: int) -> np.ndarray:
    """Return the mean of what is not NaN; NaN where nothing is."""
    number = (~np.isnan(values)).sum(axis)
    return ratio(np.nansum(values, axis), number)


def mean_of_others(scores) -> np.ndarray:
    """Return for each column of (units, seats) the mean of the other columns' known values."""
    known = ~np.isnan(scores)
    filled = np.nan_to_num(scores)
    total_of_others = filled.sum(1, keepdims=True) - filled
    number_of_others = known.sum(1, keepdims=True) - known
    return ratio(total_of_others, number_of_others)


def read_votes(records: pd.DataFrame) -> dict[str, Votes]:
    """Return the votes of each arm that occurs, in the order of `ARMS`, over one list of units.

    Raises `InputError` for an unknown arm or source, a score that is no number from 0 to 1, and
    one statement given twice.
    """
    frame = _check(records)
    frame["unit"] = frame.groupby(UNIT).ngroup()
    units = units_of(frame.sort_values("unit").drop_duplicates("unit"))
    rows_of = dict(list(frame.groupby("arm")))
    return {arm: _votes(arm, rows_of[arm], units) for arm in ARMS if arm in rows_of}


def units_of(judged: pd.DataFrame) -> Units:
    """Return the things judged, one in each row with its cluster, source and turn."""
    return Units(
        cluster=judged["cluster"].to_numpy(),
        human=(judged["source"] == HUMAN).to_numpy(),
        pair=judged.groupby(["cluster", "turn"]).ngroup().to_numpy(),
    )


def _check(records: pd.DataFrame) -> pd.DataFrame:
    """Return the jurors' rows with every column that is read, checked."""
    frame = pd.DataFrame(records).reset_index(drop=True)
    if "role" in frame:
        frame = frame[frame["role"] == "juror"]
    frame = frame.assign(**{name: DEFAULTS[name] for name in DEFAULTS if name not in frame})
    for column, known in (("arm", ARMS), ("source", SOURCES)):
        wrong = frame.loc[~frame[column].isin(known), column]
        if len(wrong):
            rule = f"must be one of {', '.join(known)}"
            raise InputError(f"Column `{column}` {rule}, got {wrong.iloc[0]!r}.")
    for column in TEXTS:
        frame[column] = frame[column].map(as_id).astype(object)
    frame["cluster"] = frame["pair"].where(frame["pair"] != "", frame["conversation_id"])
    frame["cluster"] = as_shown(frame["cluster"], frame["words"])
    frame["score"] = shares(frame["score"], "score")
    frame["peer_mean"] = pd.to_numeric(frame["peer_mean"], errors="coerce").astype(float)
    frame["round"] = frame["round"].astype(float)
    frame["turn"] = frame["turn"].fillna(0)
    shown = ["juror", "arm", "round", "conversation_id", "turn"]
    check_once(frame, [*UNIT, "juror", "arm", "round", "persona"], shown)
    return frame


def _votes(arm: str, rows: pd.DataFrame, units: Units) -> Votes:
    """Return one arm's votes; a juror who sits in several seats is told apart by its personas."""
    juror = rows["juror"]
    sits_again = rows.duplicated(["unit", "round", "juror"])
    has_several_seats = juror.isin(juror[sits_again])
    with_persona = juror + " (" + rows["persona"] + ")"
    seat, seats = pd.factorize(juror.mask(has_several_seats, with_persona), sort=True)
    rounds, round_code = np.unique(rows["round"], return_inverse=True)
    cell = (rows["unit"].to_numpy(), seat, round_code)

    def spread(values, empty=np.nan):
        cells = np.full((len(units.human), len(seats), len(rounds)), empty)
        cells[cell] = values
        return cells

    juror_of_seat = np.empty(len(seats), object)
    juror_of_seat[seat] = juror
    return Votes(
        arm,
        units,
        rounds,
        seats=np.asarray(seats, object),
        juror=juror_of_seat,
        score=spread(rows["score"]),
        asked=spread(True, False),
        shown=spread(rows["peer_mean"]),
    )


# --------------------------------------------------------------------------------------------------
# How far raters agree


def krippendorff_alpha(ratings, cluster) -> Count:
    """Build Krippendorff's alpha, 1 - observed / expected disagreement of pairs of ratings.

    Disagreement is the squared difference (Krippendorff 2004, chapter 11). Units with a single
    rating say nothing about agreement and do not count. Undefined where no unit has two ratings or
    all ratings are equal.
    """
    is_compared = (~np.isnan(ratings)).sum(1) > 1
    ratings = ratings[is_compared]
    given = ratings[~np.isnan(ratings)]
    n = (~np.isnan(ratings)).sum(1)
    within = n * np.nanvar(ratings, axis=1)
    observed = (within * n / (n - 1)).sum() / max(len(given), 1)
    alpha = _where_varied(given, lambda: 1 - observed / given.var(ddof=1))
    return Count.of(alpha, len(given), cluster[is_compared])


def icc(ratings, cluster) -> Count:
    """Build the intraclass correlation of single ratings, two-way with absolute agreement.

    ICC(A,1) of McGraw and Wong 1996, ICC(2,1) of Shrout and Fleiss 1979. Only units that every
    rater rated are used. Undefined with fewer than two such units or raters, and where nothing
    varies.
    """
    is_complete = ~np.isnan(ratings).any(1)
    ratings = ratings[is_complete]
    n, raters = ratings.shape

    def correlation():
        ms_units = raters * ratings.mean(1).var(ddof=1)
        ms_raters = n * ratings.mean(0).var(ddof=1)
        total = ratings.size * ratings.var()
        residual = total - (n - 1) * ms_units - (raters - 1) * ms_raters
        ms_error = max(residual, 0) / ((n - 1) * (raters - 1))
        leniency = raters / n * (ms_raters - ms_error)
        return (ms_units - ms_error) / (ms_units + (raters - 1) * ms_error + leniency)

    value = np.nan
    if min(n, raters) > 1:
        value = _where_varied(ratings, correlation)
    return Count.of(value, ratings.size, cluster[is_complete])


def _where_varied(ratings, value: Callable):
    """Return the value; NaN where ratings have no spread beyond rounding."""
    varies = ratings.size > 0 and np.ptp(ratings) > BOUND
    return value() if varies else np.nan


AGREEMENT = {"alpha": krippendorff_alpha, "icc_a1": icc}


# --------------------------------------------------------------------------------------------------
# Scorers of replies held against each other


def cohen_kappa(a: Sequence, b: Sequence, cluster: Sequence) -> pd.DataFrame:
    """Compare two scorers of the same replies: `kappa` (Cohen 1960) and `agreement`.

    a, b: one verdict per reply, of any kind, both known. cluster: the template of each reply.
    Agreement is the share of equal verdicts. Kappa depends on prevalence: read it beside both
    scorers' shares.

    Kappa is the agreement x mapped by (x - pe) / (1 - pe) with the expected agreement pe, and so
    is its interval: Wilson's of x, with the variance of kappa over templates (leave one out); at
    one reply per template with that of x. So it holds where scorers always agree.
    """
    pairs = np.stack([np.asarray(a, object), np.asarray(b, object)], 1)
    verdict, verdicts = pd.factorize(pairs.ravel())
    template = pd.factorize(np.asarray(cluster))[0]
    size = len(verdicts)
    counts = np.zeros((template.max() + 1, size, size))
    np.add.at(counts, (template, verdict[::2], verdict[1::2]), 1)

    def by_chance(tables):
        margins = tables.sum(-1) * tables.sum(-2)
        return margins.sum(-1) / tables.sum((-1, -2)) ** 2

    def kappa_of(sums):
        tables = sums.reshape(*sums.shape[:-1], size, size)
        observed = np.trace(tables, axis1=-2, axis2=-1) / sums.sum(-1)
        chance = by_chance(tables)
        return (observed - chance) / (1 - chance)

    n = np.array(len(template))
    kappa = Function.of(counts.reshape(len(counts), -1), kappa_of, n)
    agreement = Rate.of(np.trace(counts, axis1=1, axis2=2), counts.sum((1, 2)))
    expected = by_chance(counts.sum(0))
    contrib = kappa.contrib * (1 - expected)
    scaled = Rate(agreement.value, contrib, n, kappa.clusters, weight=agreement.weight)
    shown = scaled.mapped(lambda agreed: ratio(agreed - expected, 1 - expected))
    measures = [Measure("kappa", shown), Measure("agreement", agreement)]
    return write(measures, Settings(unit="template", few=FEW))
