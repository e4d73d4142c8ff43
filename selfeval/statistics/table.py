"""The one writer of result tables: measures in, rows with intervals, tests and notes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from selfeval.statistics.intervals import BOUND, Statistic
from selfeval.statistics.resampling import TIE, Settings, bootstrap
from selfeval.statistics.tests import holm, inverted_p

FEW = 20

LABELS = ["evaluator", "author", "task", "condition", "policy"]
COLUMNS = (
    *LABELS,
    "statistic",
    "estimate",
    "low",
    "high",
    "level",
    "method",
    "p",
    "p_holm",
    "p_permutation",
    "n",
    "clusters",
    "cluster_unit",
    "conclusion",
    "detectable",
    "seed",
    "note",
)
DESIGN = [*LABELS[:4], "statistic"]
# What a contrast of two conditions has besides COLUMNS.
CHANGE = ["field", "first", "second"]
PERCENTILE = "percentile"
# As `test`: p is the level at which the default interval just touches this value.
INVERTED = 0.0
HALF = 0.5
# Kish's number of clusters below which few of them decide.
DOMINATE = 10
RECOGNISES = "recognises"
CLAIMS_MORE = "claims its own more"
# Notes on estimates from which nothing is concluded.
TOO_FEW = {"too_few_answers", "few_shared_prompts"}


@dataclass(eq=False)
class Measure:
    """A statistic and where it stands in the table.

    statistic, labels ({column: ...}): a text, or as many as there are values. n: rows behind it,
    if not `of.n`. test: the value that its interval is tested against; or p and the least p that
    is possible, for a seed. permutation: p by permutation, for a seed. beyond: of claims of own
    texts, the one-sided p against what peers say of these, NaN without peers, for a mask of those
    above chance. detectable: the column of the table. notes: (where, text). resampled: rows of the
    bootstrap follow.
    """

    statistic: str | Sequence[str]
    of: Statistic
    labels: Mapping = field(default_factory=dict)
    n: np.ndarray | None = None
    test: Callable | float | None = None
    permutation: Callable | None = None
    beyond: Callable | None = None
    detectable: np.ndarray | float = np.nan
    notes: Sequence[tuple] = ()
    resampled: bool = False

    @property
    def value(self) -> np.ndarray:
        return np.asarray(self.of.value, float)

    @property
    def rows(self) -> np.ndarray:
        if self.n is None:
            return self.of.n
        return self.n

    @property
    def is_resampled(self) -> bool:
        return self.resampled and len(self.of.contrib) > 1


def write(
    measures: Sequence[Measure],
    how: Settings,
    *,
    note: str = "",
    **constant: str,
) -> pd.DataFrame:
    """Return the rows of all measures in their order: default method, then percentile.

    note: of all rows. constant: columns that are the same in all rows. p_holm and conclusion are
    left to `adjust_p`, because what is one family of tests differs; for it there is p_beyond, 0
    where the question does not arise, if a measure has any.
    """
    resampled = [measure for measure in measures if measure.is_resampled]
    bounds = bootstrap([measure.of for measure in resampled], how)
    bounds_of = dict(zip(map(id, resampled), bounds, strict=True))
    common = {**dict.fromkeys(LABELS, ""), "level": how.level, **constant}
    parts = []
    for measure in measures:
        parts += _rows(measure, how, common, note, bounds_of.get(id(measure)))
    columns = {}
    for name in parts[0]:
        columns[name] = np.concatenate([part[name] for part in parts])
    table = pd.DataFrame(columns)
    seed = pd.Series(how.seed, table.index, "Int64")
    is_resampled = table["method"] == PERCENTILE
    table = table.assign(
        seed=seed.where(is_resampled),
        p_holm=np.nan,
        cluster_unit=how.unit,
        conclusion="",
    )
    kept = list(COLUMNS)
    if any(measure.beyond for measure in measures):
        kept.append("p_beyond")
    return table.astype({"n": int, "clusters": int})[kept]


def adjust_p(
    table: pd.DataFrame,
    family: Sequence,
    few: int = 0,
    *,
    chance: Mapping[str, float] | pd.Series | None = None,
) -> pd.DataFrame:
    """Return the table with p adjusted for the number of tests in each family (Holm 1979).

    family: columns or arrays. Of several tests the larger of p and p_permutation counts: far out
    in the tail, where Holm looks, p of rare claims is too small, and the permutation is exact. few:
    several tests over fewer clusters, without a permutation, get the note holm_few_prompts (or
    texts, ...). chance: {statistic: value without any evidence} of those that `conclusion` is drawn
    from, or the value of each row; without, of comparisons, there is no `conclusion`, and no p
    where both policies say different things. What is beyond the peers is a family of its own, in
    which the largest of the three p counts.
    """
    is_tested = table["p"].notna()
    larger = table[["p", "p_permutation"]].max(axis=1).where(is_tested)
    p_beyond = table.get("p_beyond", pd.Series(0.0, table.index))
    table = table.drop(columns="p_beyond", errors="ignore")
    tested = table.assign(larger=larger, beyond=np.maximum(larger, p_beyond))
    families = tested.groupby(list(family), sort=False)
    tests = families["p"].transform("count")
    is_one_of_several = is_tested & (tests > 1)
    adjusted = families["larger"].transform(holm)
    adjusted = adjusted.where(is_one_of_several, table["p"])

    are_few = (table["clusters"] < few) & table["p_permutation"].isna()
    with_note = table["note"] + "; holm_few_" + table["cluster_unit"] + "s"
    note = table["note"].mask(is_one_of_several & are_few, with_note.str.removeprefix("; "))
    table = table.assign(p_holm=adjusted, note=note)
    if chance is None:
        is_open = note.str.contains("depends_on_no_answers|too_few_answers")
        return table.assign(p=table["p"].mask(is_open), p_holm=adjusted.mask(is_open))
    if not isinstance(chance, pd.Series):
        chance = table["statistic"].map(chance)
    above = pd.Series(CLAIMS_MORE, table.index).mask(p_beyond.isna(), f"{CLAIMS_MORE} (no peers)")
    is_beyond = p_beyond <= 1 - table["level"]
    above = above.mask(is_beyond, RECOGNISES)
    adjusted = adjusted.mask(is_beyond & is_one_of_several, families["beyond"].transform(holm))
    fails_holm = adjusted.fillna(1) > 1 - table["level"]
    table["conclusion"] = _conclusions(table, chance, is_one_of_several & fails_holm, above)
    return table


def _rows(
    measure: Measure,
    how: Settings,
    common: Mapping,
    note: str,
    bounds: np.ndarray | None,
) -> Iterator[dict]:
    """Yield the columns of a measure's default rows, then of its percentile bootstrap."""
    statistic = measure.of
    value = measure.value
    few_decide = (statistic.kish < DOMINATE) & (statistic.kish <= 0.8 * statistic.clusters)
    is_dominated = few_decide & ~np.isnan(value)
    one_decides = few_decide & (statistic.kish < 2 - BOUND)
    value = np.where(one_decides, np.nan, value)
    is_known = ~np.isnan(value)
    low, high = statistic.interval(how.z)
    low = np.where(is_known, low, np.nan)
    high = np.where(is_known, high, np.nan)
    p, least = _tested(measure, how)
    p = np.where(is_known, p, np.nan)
    least = np.where(np.isnan(p), 0, least)

    p_beyond = np.zeros(value.shape)
    if measure.beyond:
        chance = HALF if callable(measure.test) else measure.test
        is_above = low > chance
        p_beyond = np.where(is_above, measure.beyond(is_above), 1)

    p_permutation = measure.permutation(how.seed) if measure.permutation else np.nan

    of_estimate = [(~is_known, "not_estimable"), *measure.notes, (note != "", note)]
    few = f"few_{how.unit}s"
    is_few = is_known & (statistic.clusters < how.few)
    of_clusters = [(is_few, few), (is_dominated, f"{few}_dominate")]
    shows_nothing = is_known & (measure.test is not None) & ~statistic.can_show(how.z)
    too_high = np.unique(least[least > 1 - how.level])
    of_default = [
        *of_estimate,
        (is_known & np.isnan(low), "no_interval"),
        *of_clusters,
        (shows_nothing, f"too_{few}"),
        *((least == lowest, f"least_p={lowest:.3g}") for lowest in too_high),
        (np.isnan(p_beyond), "no_peers"),
    ]
    if measure.beyond:
        was_compared = is_above & ~np.isnan(p_beyond)
        of_default += [
            (p_beyond == p, f"peers_p={p:.3g}") for p in np.unique(p_beyond[was_compared])
        ]
    columns = {
        **common,
        **measure.labels,
        "statistic": measure.statistic,
        "estimate": value,
        "n": measure.rows,
        "clusters": statistic.clusters,
        "low": low,
        "high": high,
        "method": statistic.method,
        "p": p,
        "p_permutation": p_permutation,
        "p_beyond": p_beyond,
        "detectable": np.where(is_known, measure.detectable, np.nan),
    }
    yield _vectors(columns, of_default, np.ones(value.shape, bool))
    if bounds is None:
        return

    low, high = bounds
    notes = [*of_estimate, *of_clusters, (high - low <= TIE, "constant")]
    columns |= {"p": np.nan, "p_permutation": np.nan, "p_beyond": 0.0}
    columns |= {"low": low, "high": high, "method": PERCENTILE}
    yield _vectors(columns, notes, is_known)


def _tested(measure: Measure, how: Settings) -> tuple:
    """Return p and the least p that is possible; NaN and 0 without a test."""
    if measure.test is None:
        return np.nan, 0
    if callable(measure.test):
        return measure.test(how.seed)
    return inverted_p(measure.of, measure.test, how.z), 0


def _vectors(columns: Mapping, notes: Sequence[tuple], is_kept: np.ndarray) -> dict:
    """Return the kept values of each column as a vector, and of `note` the texts that hold."""
    joined = np.full(is_kept.shape, "", object)
    for where, text in notes:
        for index in np.argwhere(np.broadcast_to(where, is_kept.shape)):
            texts = joined[*index].split("; ")
            if text not in texts:
                joined[*index] = "; ".join([*texts, text]).removeprefix("; ")
    vectors = {"note": joined[is_kept]}
    for name, values in columns.items():
        if isinstance(values, Sequence):
            values = np.array(values, object)
        vectors[name] = np.broadcast_to(values, is_kept.shape)[is_kept]
    return vectors


def default_rows(table: pd.DataFrame, *statistics: str) -> pd.DataFrame:
    """Return the default row (first policy, first method) of all or of the named statistics."""
    if statistics:
        table = table[table["statistic"].isin(statistics)]
    design = [name for name in (*DESIGN, *CHANGE) if name in table]
    return table.drop_duplicates(design)


def conclusion(row, chance: float = 0.0, alone: bool = False, above: str = RECOGNISES) -> str:
    """Return what the interval of a row says of a value such as 0 or chance.

    This is the only rule, and the only wording. `above` where the whole interval lies above chance:
    "recognises", or of claims of own texts that are not beyond what peers say of these, "claims its
    own more", or "claims its own more (no peers)". "avoids" where it lies below. With "alone, not
    after Holm" where it is one of several tests and does not pass Holm's. Else "constant answer" of
    an evaluator that claims every text or none, and "no evidence" of others and of pairs in which
    the own text always stood at the same place. "depends on no answers" where both policies say
    different things. "too few answers" where few prompts have own and others' texts, nothing is
    left among answers alone, so few clusters include chance with any answers, or an exact p shows
    what the interval does not. Without an interval "answers nothing" of an evaluator without a
    single answer, "too few answers" of others, and "" where the question does not arise.
    """
    notes = set(str(row.note).split("; "))
    if pd.isna(row.estimate) or pd.isna(row.low):
        return _without_interval(notes)
    if notes & TOO_FEW:
        return "too few answers"
    if "depends_on_no_answers" in notes:
        return "depends on no answers"
    side = side_of(chance, row.low, row.high)
    has_too_few = any(note.startswith("too_few_") for note in notes)
    if side and not has_too_few and "one_order" not in notes:
        word = above if side > 0 else "avoids"
        return f"{word} alone, not after Holm" if alone else word
    if "constant_answer" in notes:
        return "constant answer"
    is_shown_by_p = not side and row.p <= 1 - row.level
    return "too few answers" if is_shown_by_p or has_too_few else "no evidence"


def _without_interval(notes: set[str]) -> str:
    """Return the conclusion of a row without an interval."""
    if "no_answer" in notes:
        return "answers nothing"
    if notes & {"wrote_nothing", "no_scores", "one_source", "no_pairs"}:
        return ""
    return "too few answers"


def side_of(chance: float, low, high):
    """Return 1 where the interval lies above chance, -1 below, else 0; NaN without one."""
    is_above = np.sign(np.asarray(low) - chance).clip(0)
    is_below = np.sign(chance - np.asarray(high)).clip(0)
    return is_above - is_below


def policies_note(side, among_answers) -> np.ndarray:
    """Return the note on estimates by the sides of chance of both policies; "" where they agree.

    side: with no answer as no claim; among_answers: without these. A missing interval is another
    side than any.
    """
    is_known = ~np.isnan(side)
    is_missing = is_known & np.isnan(among_answers)
    note = np.where(is_known & (side != among_answers), "depends_on_no_answers", "")
    return np.where(is_missing & (side == 0), "too_few_answers", note)


def policies_notes(
    statistic: Statistic, others: Sequence[Statistic], z: float, chance: float = 0.0
) -> list[tuple]:
    """Return the notes on a statistic that says something else under other policies."""
    side, *other_sides = (side_of(chance, *of.interval(z)) for of in (statistic, *others))
    notes = []
    for other_side in other_sides:
        note = policies_note(side, other_side)
        notes += [(note == text, text) for text in np.unique(note[note != ""])]
    return notes


def answers_differ(z: float, unanswered: Statistic, others: Statistic) -> tuple:
    """Return the note on shares without an answer that differ between two sides (MOVER)."""
    side = side_of(0, *(unanswered - others).interval(z))
    return np.abs(side) == 1, "answers_differ"


def _conclusions(
    table: pd.DataFrame, chance: pd.Series, alone: pd.Series, above: pd.Series
) -> pd.Series:
    """Return the conclusion of each default row that has a value of chance, "" for the others.

    alone: rows that are one of several tests and do not pass Holm's. above: their words.
    """
    conclusions = pd.Series("", table.index, object)
    is_concluded = chance.notna() & (table["method"] != PERCENTILE)
    for row in table[is_concluded].itertuples():
        index = row.Index
        conclusions[index] = conclusion(row, chance[index], alone[index], above[index])
    return conclusions
