"""The one writer of result tables: measures in, rows with intervals, tests and notes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from selfeval.condition import condition_of
from selfeval.statistics.intervals import (
    BOUND,
    Settings,
    Statistic,
    bootstrap,
    detectable_difference,
    holm,
    inverted_p,
)

FEW = 20

LABELS = "evaluator author task condition policy".split()
NUMBERS = "estimate low high level method p p_holm p_permutation n clusters".split()
COLUMNS = (*LABELS, "statistic", *NUMBERS, *"cluster_unit conclusion detectable seed note".split())
DESIGN = [*LABELS[:4], "statistic"]
CHANGE = ["field", "first", "second"]  # what a contrast of two conditions has besides COLUMNS
RESAMPLED = ("percentile", "bca")
INVERTED = 0.0  # as `test`: p is the level at which the default interval just touches this value
HALF = 0.5
DOMINATE = 10  # Kish's number of clusters below which few of them decide
CHANCE = {  # what the concluded statistics are for who tells nothing apart
    "discrimination": 0.0,
    "claim_discrimination": 0.0,
    "auc": HALF,
    "auc_within_prompt": HALF,
    "paired_accuracy": HALF,
}
OF_PAIRS = {  # the same for pairs of texts, elsewhere these statistics mean something else
    "self_accuracy": HALF,
    "neutral_accuracy": HALF,
    "own_minus_neutral": 0.0,
    "pair_fixed": 0.0,
    "judge_fixed": 0.0,
}
PLANNED = {  # unit: statistic with a detectable effect, assumed sd, and below how many units
    "prompt": ("discrimination", 0.55, 40),
    "template": ("claim_discrimination", 0.55, 40),
    "conversation": ("difference", 0.15, 20),
}


@dataclass(eq=False)
class Measure:
    """A statistic and where it stands in the table.

    statistic, labels ({column: ...}): a text, or as many as there are values. n: rows behind it,
    if not `of.n`. test: the value that its interval is tested against; or p and the least p that
    is possible, for a seed. permutation: p by permutation, for a seed. notes: (where, text).
    resampled: rows of the bootstrap follow.
    """

    statistic: str | Sequence[str]
    of: Statistic
    labels: Mapping = field(default_factory=dict)
    n: np.ndarray | None = None
    test: Callable | float | None = None
    permutation: Callable | None = None
    notes: Sequence[tuple] = ()
    resampled: bool = False

    @property
    def value(self) -> np.ndarray:
        return np.asarray(self.of.value, float)

    @property
    def rows(self) -> np.ndarray:
        return self.of.n if self.n is None else self.n


def write(
    measures: Sequence[Measure],
    how: Settings,
    *,
    note: str = "",
    **constant: str,
) -> pd.DataFrame:
    """Return the rows of all measures in their order: default method, percentile, BCa.

    note: of all rows. constant: columns that are the same in all rows. p_holm, conclusion and
    detectable are left to `adjust_p`, because what is one family of tests differs.
    """
    resampled = [m for m in measures if m.resampled and len(m.of.contrib) > 1]
    bounds = bootstrap([m.of for m in resampled], how)
    bounds_of = dict(zip(map(id, resampled), bounds, strict=True))
    common = {**dict.fromkeys(LABELS, ""), "level": how.level, **constant}
    parts = []
    for measure in measures:
        parts += _rows(measure, how, common, note, bounds_of.get(id(measure)))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    table = pd.DataFrame(columns)
    seed = pd.Series(how.seed, table.index, "Int64")
    table = table.assign(
        seed=seed.where(table["method"].isin(RESAMPLED)),
        p_holm=np.nan,
        cluster_unit=how.unit,
        conclusion="",
        detectable=np.nan,
    )
    return table.astype({"n": int, "clusters": int})[list(COLUMNS)]


def adjust_p(
    table: pd.DataFrame,
    family: Sequence,
    few: int = 0,
    *,
    compared: bool = False,
) -> pd.DataFrame:
    """Return the table with p adjusted for the number of tests in each family (Holm 1979).

    family: columns or arrays. Of several tests the larger of p and p_permutation counts: far out
    in the tail, where Holm looks, p of rare claims is too small, and the permutation is exact. The
    table also gets `conclusion` and `detectable`, unless it is `compared`: of differences between
    models, conditions or readings. few: several tests over fewer clusters, without a permutation,
    get the note holm_few_prompts (or texts, ...).
    """
    is_tested = table["p"].notna()
    larger = table[["p", "p_permutation"]].max(axis=1).where(is_tested)
    families = table.assign(larger=larger).groupby(list(family), sort=False)
    is_one_of_several = is_tested & (families["p"].transform("count") > 1)
    adjusted = families["larger"].transform(holm)
    adjusted = adjusted.where(is_one_of_several, table["p"])

    rests_on_few = is_one_of_several & (table["clusters"] < few) & table["p_permutation"].isna()
    with_note = table["note"] + "; holm_few_" + table["cluster_unit"] + "s"
    note = table["note"].mask(rests_on_few, with_note.str.removeprefix("; "))
    table = table.assign(p_holm=adjusted, note=note)
    if compared:
        return table
    fails_holm = adjusted.fillna(1) > 1 - table["level"]
    return with_conclusions(table, is_one_of_several & fails_holm)


def _rows(
    measure: Measure,
    how: Settings,
    common: Mapping,
    note: str,
    bounds: np.ndarray | None,
) -> Iterator[dict]:
    """Yield the columns of a measure's default rows, then of its percentile and BCa."""
    statistic = measure.of
    value = measure.value
    few_decide = (statistic.kish < DOMINATE) & (statistic.kish <= 0.8 * statistic.clusters)
    is_dominated = few_decide & ~np.isnan(value)
    value = np.where(few_decide & (statistic.kish < 2 - BOUND), np.nan, value)
    is_known = ~np.isnan(value)
    low, high = (np.where(is_known, bound, np.nan) for bound in statistic.interval(how.z))
    p, least = _tested(measure, how)
    p = np.where(is_known, p, np.nan)
    least = np.where(np.isnan(p), 0, least)

    of_estimate = [(~is_known, "not_estimable"), *measure.notes, (note != "", note)]
    few = f"few_{how.unit}s"
    is_few = is_known & (statistic.clusters < how.few)
    of_clusters = [(is_few, few), (is_dominated, f"{few}_dominate")]
    too_high = np.unique(least[least > 1 - how.level])
    of_default = [
        *of_estimate,
        (is_known & np.isnan(low), "no_interval"),
        *of_clusters,
        *((least == lowest, f"least_p={lowest:.3g}") for lowest in too_high),
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
        "p_permutation": measure.permutation(how.seed) if measure.permutation else np.nan,
    }
    yield _vectors(columns, of_default, np.ones(value.shape, bool))
    if bounds is None:
        return

    is_fallback, is_flat = bounds[4:].astype(bool)
    notes = [*of_estimate, *of_clusters, (is_flat, "constant")]
    columns |= {"p": np.nan, "p_permutation": np.nan}
    columns |= {"low": bounds[0], "high": bounds[1], "method": "percentile"}
    yield _vectors(columns, notes, is_known)
    notes.append((is_fallback & ~is_flat, "bca_fallback_percentile"))
    columns |= {"low": bounds[2], "high": bounds[3], "method": "bca"}
    yield _vectors(columns, notes, is_known)


def _tested(measure: Measure, how: Settings) -> tuple[np.ndarray, np.ndarray]:
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
    return table.drop_duplicates([name for name in (*DESIGN, *CHANGE) if name in table])


def conclusion(row, chance: float = 0.0, alone: bool = False) -> str:
    """Return what the interval of a row says of a value such as 0 or chance.

    This is the only rule, and the only wording. "recognises" where the whole interval lies above
    chance and "avoids" where it lies below, with "alone, not after Holm" where it is one of
    several tests and does not pass Holm's; else "constant answer" of an evaluator that claims
    every text or none, and "no evidence" of others and of pairs in which the own text always stood
    at the same place. "depends on no answers" where both policies say different things. Without an
    interval "answers nothing" of an evaluator without a single answer, "too few answers" of
    others, and "" where the question does not arise. A model that never says which one it is
    ("only_abstains") answers nothing either.
    """
    notes = set(str(row.note).split("; "))
    if "only_abstains" in notes:
        return "answers nothing"
    if pd.isna(row.estimate) or pd.isna(row.low):
        return _without_interval(notes)
    if "depends_on_no_answers" in notes:
        return "depends on no answers"
    side = side_of(chance, row.low, row.high)
    if side and "one_order" not in notes:
        word = "recognises" if side > 0 else "avoids"
        return f"{word} alone, not after Holm" if alone else word
    return "constant answer" if "constant_answer" in notes else "no evidence"


def _without_interval(notes: set[str]) -> str:
    """Return the conclusion of a row without an interval."""
    is_silent = "no_answer" in notes
    has_one_side = bool(notes & {"one_source", "no_pairs"})
    if is_silent and has_one_side:  # of a jury: there was no score at all
        return "answers nothing"
    if has_one_side or notes & {"wrote_nothing", "no_scores"}:
        return ""
    return "answers nothing" if is_silent else "too few answers"


def side_of(chance: float, low, high):
    """Return 1 where the interval lies above chance, -1 below, else 0; NaN without one."""
    is_above = np.sign(np.asarray(low) - chance).clip(0)
    is_below = np.sign(chance - np.asarray(high)).clip(0)
    return is_above - is_below


def with_conclusions(table: pd.DataFrame, alone: Sequence[bool] | bool = False) -> pd.DataFrame:
    """Return a table with `conclusion` and `detectable`.

    conclusion: of J, areas, claim discrimination and rates of pairs, by the default interval;
    empty elsewhere, and where the question is which text of a pair is better, or whether a text is
    good. alone: rows that are one of several tests and do not pass Holm's. detectable: see
    `_detectable`.
    """
    statistic = table["statistic"]
    of_pairs = statistic.map(OF_PAIRS).where(table["task"] == "pairwise_self")
    chance = statistic.map(CHANCE).fillna(of_pairs)
    question = table["condition"].map(lambda condition: condition_of(condition).get("question"))
    is_passed_over = question.isin(["better", "good"]) | table["method"].isin(RESAMPLED)
    is_concluded = chance.notna() & ~is_passed_over
    alone = pd.Series(alone, table.index)
    conclusions = pd.Series("", table.index, object)
    for row in table[is_concluded].itertuples():
        conclusions[row.Index] = conclusion(row, chance[row.Index], alone[row.Index])
    return table.assign(conclusion=conclusions, detectable=_detectable(table))


def _detectable(table: pd.DataFrame) -> pd.Series:
    """Return the J, or the difference of two arms of a jury, that would be detected; else NaN.

    It is what four of five such runs detect (`detectable_difference`, 80 % power at two-sided
    .05): by the normal approximation, with quantiles of t where there are fewer than 40 units (of
    juries 20). Of so few the sd per unit is assumed: .55, as in earlier data with one text per
    prompt and author (of juries .15). Else it is the largest of the design's evaluators, by the
    default intervals. At most 1, the largest that such a difference can be. NaN where no prompts
    are named, and of real against invented names, which are no pairs.
    """
    detectable = pd.Series(np.nan, table.index)
    is_estimated = table["estimate"].notna() & (table["clusters"] > 1)
    for unit, (statistic, assumed_sd, enough) in PLANNED.items():
        of_unit = (table["cluster_unit"] == unit) & (table["statistic"] == statistic)
        rows = table[of_unit & is_estimated]
        clusters = rows["clusters"].astype(float)
        is_enough = clusters >= enough
        t = stdtrit(clusters - 1, 0.5 + rows["level"].astype(float) / 2)
        sd = (rows["high"] - rows["low"]) / 2 * np.sqrt(clusters) / t
        is_default = ~rows["method"].isin(RESAMPLED)
        is_known = is_enough & is_default & (sd > 0)
        rows = rows.assign(sd=sd.where(is_known))
        largest = rows.groupby(["task", "condition", "policy", "author"])["sd"].transform("max")
        sd = largest.where(is_enough).fillna(assumed_sd)
        by_normal = detectable_difference(clusters, sd=sd)
        by_t = detectable_difference(clusters, sd=sd, t=True)
        detectable[rows.index] = by_normal.where(is_enough, by_t).clip(upper=1)
    return detectable
