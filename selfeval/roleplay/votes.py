"""Verdict records as arrays, who voted what about which answer, arm by arm; and how far raters and scorers agree.

A unit is one thing judged: the answer of a turn, a prefix or a whole conversation. Scores have shape (units, seats,
rounds), NaN where there is none; a seat is a juror of the jury. The sampled unit is the conversation, or the matched
pair of conversations (column `pair`): the same one with a person's and with a model's answers.

Agreement takes a matrix (units, raters), NaN where there is no rating, and the clusters (conversations) that hold the
units, and returns a `Function` over these; what is not defined is NaN. A coefficient of J raters
lies between -1 / (J - 1), where they disagree as much as J can, and 1: so do its intervals. ICC(A,1) of a handful of
units can fall below; then it has no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.records.columns import check_once, shares, truth_codes
from selfeval.statistics.intervals import Function, Mapped, Rate, Settings, by_cluster, ratio
from selfeval.statistics.table import FEW, Measure, write

ARMS = ("independent", "personas", "reask", "sham", "debate", "simultaneous", "simultaneous_summary")
ONE_BY_ONE = "debate"
DEBATES = ("debate", "simultaneous", "simultaneous_summary")
HUMAN, MODEL = "human", "model"
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
        """The jury's score per unit: the mean of its last round; NaN without any score.

        Equal means are equal to the last digit, whoever of the jury gave which score: a tie counts as half in an AUC.
        """
        return np.round(mean_over(self.last, 1), 12)

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

    Raises `InputError` for an unknown arm or source, a score that is no number from 0 to 1, and one
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
    frame = frame[frame["role"] == "juror"] if "role" in frame else frame
    frame = frame.assign(**{name: value for name, value in EMPTY.items() if name not in frame})
    for name, known in (("arm", ARMS), ("source", (HUMAN, MODEL))):
        wrong = frame.loc[~frame[name].isin(known), name]
        if len(wrong):
            raise InputError(f"Column `{name}` must be one of {', '.join(known)}, got {wrong.iloc[0]!r}.")
    columns = {"peer_mean": pd.to_numeric(frame["peer_mean"], errors="coerce").astype(float)}
    columns |= {name: _as_text(frame[name]) for name in ("conversation_id", "pair", "agent", "juror", "persona")}
    cluster = columns["pair"].where(columns["pair"] != "", columns["conversation_id"])
    score, turn = shares(frame["score"], "score"), frame["turn"].fillna(0)
    frame = frame.assign(**columns, score=score, round=frame["round"].astype(float), turn=turn, cluster=cluster)
    said = ["juror", "arm", "round", "conversation_id", "turn"]
    check_once(frame, [*UNIT, *said[:3], "persona"], said)
    return frame


def _as_text(values: pd.Series) -> pd.Series:
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


def krippendorff_alpha(ratings, cluster) -> Function:
    """Build alpha = 1 - observed / expected disagreement of pairs of ratings (Krippendorff 2004, chapter 11).

    Disagreement is the squared difference. Units with a single rating say nothing about agreement and do not count.
    Undefined where no unit has two ratings or all ratings are equal.
    """
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


def icc(ratings, cluster, kind: str = "A") -> Function:
    """Build the intraclass correlation of single ratings, two-way: ICC(A,1) or ICC(C,1) (McGraw and Wong 1996).

    kind: "A" absolute agreement, ICC(2,1) of Shrout and Fleiss 1979; "C" consistency, ICC(3,1): differences in the
    raters' leniency do not count. Only units that every rater rated are used. Undefined with fewer than two such
    units or raters, and where nothing varies.
    """
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


def effective_votes(ratings, cluster) -> Mapped:
    """Build J / (1 + (J - 1) r) with r = ICC(C,1): how many independent votes J correlated ones are worth.

    Kish's design effect, reversed. An r below 0 counts as 0, in the estimate and in the bounds: correlated votes are
    worth at most J. Its interval is that of r, mapped.
    """
    votes = ratings.shape[1]
    return icc(ratings, cluster, "C").mapped(lambda r: votes / (1 + (votes - 1) * np.maximum(r, 0)))


def _within(raters: int) -> tuple[float, float]:
    """Return the range of a coefficient of agreement."""
    return -1 / (raters - 1), 1.0


def _or_nan(value, spread, square):
    """Return the value, or NaN where the ratings (of a resample too) have no spread beyond rounding."""
    return np.where(spread > 1e-12 * square, value, np.nan)


AGREEMENT = {"alpha": krippendorff_alpha, "icc_a1": icc, "effective_votes": effective_votes}


# ---------------------------------------------------------------------------------------------------------------
# Scorers of replies held against each other, and a rate corrected for the errors of its scorer


def cohen_kappa(a: Sequence, b: Sequence, cluster: Sequence) -> pd.DataFrame:
    """Compare two scorers' verdicts on the same replies: `kappa` (Cohen 1960) and `agreement`, the share of it.

    a, b: one verdict per reply, of any kind, both known. cluster: the template of each reply. Kappa depends on
    prevalence: read it beside both scorers' shares.

    Kappa is the agreement x mapped by (x - pe) / (1 - pe) with the expected agreement pe, and so is its interval:
    Wilson's of x, with the variance of kappa over templates (leave one out); at one reply per template with that of x.
    So it holds where scorers always agree.
    """
    verdict, found = pd.factorize(np.stack([np.asarray(a, object), np.asarray(b, object)], 1).ravel())
    size, template = len(found), pd.factorize(np.asarray(cluster))[0]
    counts = np.zeros((template.max() + 1, size, size))
    np.add.at(counts, (template, verdict[::2], verdict[1::2]), 1)
    total, n = counts.sum(0), np.array(len(template))
    expected = (total.sum(0) * total.sum(1)).sum() / n**2

    def formula(sums):
        table = sums.reshape(*sums.shape[:-1], size, size)
        rows = sums.sum(-1)
        chance = (table.sum(-1) * table.sum(-2)).sum(-1) / rows**2
        return (np.trace(table, axis1=-2, axis2=-1) / rows - chance) / (1 - chance)

    kappa = Function.of(counts.reshape(len(counts), -1), formula, n)
    agreement = Rate.of(np.trace(counts, axis1=1, axis2=2), counts.sum((1, 2)))
    beyond = Rate(agreement.value, kappa.contrib * (1 - expected), n, kappa.clusters, None, agreement.weight)
    shown = beyond.mapped(lambda x: (x - expected) / (1 - expected if expected < 1 else np.nan))
    return write([Measure("kappa", shown), Measure("agreement", agreement)], Settings(unit="template", few=FEW))


def rogan_gladen(scored: Sequence, labelled: Sequence, cluster: Sequence) -> pd.DataFrame:
    """Correct the rate at which a scorer says true for its errors: (rate + sp - 1) / (se + sp - 1), within [0, 1].

    scored: the scorer's verdict on every reply of a run, true or false. labelled: the true verdicts on a random sample
    of these same replies, null for the others; sensitivity and specificity of another run, or of replies picked by
    hand, do not carry over. cluster: the template of every reply. Raises `InputError` where the labels are of one kind.

    Returns `apparent_rate`, `sensitivity`, `specificity` and `corrected_rate` (Rogan and Gladen 1978). The interval of
    the corrected rate, by leaving out templates with their replies and labels, has the uncertainty of all three.
    Notes: not_estimable (the scorer is no better than chance), perfect_in_sample (no error of one kind among the
    labels: the interval is optimistic).
    """
    said = truth_codes(pd.Series(scored), "scored") == 1
    label, template = truth_codes(pd.Series(labelled), "labelled"), pd.factorize(np.asarray(cluster))[0]
    true, false = label == 1, label == 0
    if not (true.any() and false.any()):
        raise InputError("A correction needs labelled replies of both kinds, true and false.")
    cells = (said, true & said, false & ~said, np.ones(len(said)), true, false)
    counts = np.stack([np.bincount(template, cell) for cell in cells], 1)
    total = counts.sum(0)
    corrected = Function.of(counts, _corrected, total[3], within=(0, 1))
    perfect = total[1] == total[4] or total[2] == total[5]
    rates = np.array(["apparent_rate", "sensitivity", "specificity"], object)
    shown = [
        Measure(rates, Rate.of(counts[:, :3], counts[:, 3:])),
        Measure("corrected_rate", corrected, notes=[(perfect, "perfect_in_sample")]),
    ]
    return write(shown, Settings(unit="template", few=FEW))


def _corrected(sums):
    """Return the corrected rate from sums of: said true, hits, correct rejections, replies, labelled true and false."""
    said, hits, rejected, n, true, false = np.moveaxis(sums, -1, 0)
    specificity = rejected / false
    informed = hits / true + specificity - 1
    return np.clip((said / n + specificity - 1) / np.where(informed > 0, informed, np.nan), 0, 1)
