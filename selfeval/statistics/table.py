"""The one writer of result tables: statistics with their labels in, rows with intervals, tests and notes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from selfeval.statistics.intervals import BOUND, Settings, Statistic, bootstrap, detectable_difference, holm, inverted_p

FEW = 20

COLUMNS = (
    "evaluator", "author", "task", "condition", "policy", "statistic", "estimate", "low", "high", "level", "method",
    "p", "p_holm", "p_permutation", "n", "clusters", "cluster_unit", "conclusion", "detectable", "seed", "note",
)  # fmt: skip
DESIGN = ["evaluator", "author", "task", "condition", "statistic"]
CHANGE = ["field", "first", "second"]  # what a contrast of two conditions has behind the other columns
RESAMPLED = ("percentile", "bca")
INVERTED, HALF = 0.0, 0.5  # as `test`: p is the level at which the default interval just touches this value
DOMINATE = 10  # Kish's number of clusters below which few of them decide
CHANCE = {  # what the concluded statistics are for who tells nothing apart
    "discrimination": 0.0, "claim_discrimination": 0.0, "auc": HALF, "auc_within_prompt": HALF, "paired_accuracy": HALF,
}  # fmt: skip
OF_PAIRS = {  # and of pairs of texts, where these have another meaning
    "self_accuracy": HALF, "neutral_accuracy": HALF, "own_minus_neutral": 0.0, "pair_fixed": 0.0, "judge_fixed": 0.0,
}  # fmt: skip
PLANNED = {  # unit: the statistic with a detectable effect, the sd that is assumed of it, and below how many units
    "prompt": ("discrimination", 0.55, 40),
    "template": ("claim_discrimination", 0.55, 40),
    "conversation": ("difference", 0.15, 20),
}


@dataclass(eq=False)
class Measure:
    """A statistic and where it stands in the table.

    labels: {column: text or array of the values' shape}. n: rows behind it, if not `of.n`. test: the value that its
    interval is tested against; or p and the least p that is possible, for a seed. permutation: p by permutation, for a
    seed. notes: (where, text). resampled: rows of the bootstrap follow.
    """

    statistic: str
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
        return np.broadcast_to(self.of.n if self.n is None else self.n, self.value.shape)


def write(measures: Iterable[Measure], how: Settings, *, note: str = "", **constant: str) -> pd.DataFrame:
    """Return the rows of all measures, in their order; default method first, then percentile and BCa.

    note: of all rows. constant: columns that are the same in all rows. p_holm,
    conclusion and detectable are left to `adjust_p`, for what is one family of tests differs.
    """
    measures = list(measures)
    drawn = [m for m in measures if m.resampled and len(m.of.contrib) > 1]
    bounds = dict(zip(map(id, drawn), bootstrap([m.of for m in drawn], how), strict=True))
    given = dict.fromkeys(COLUMNS[:5], "") | {"level": how.level} | constant
    parts = [part for m in measures for part in _rows(m, how, given, bounds.get(id(m)), note)]
    table = pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    table["seed"] = pd.Series(how.seed, table.index, "Int64").where(table["method"].isin(RESAMPLED))
    table = table.assign(p_holm=np.nan, cluster_unit=how.unit, conclusion="", detectable=np.nan)
    return table.astype({"n": int, "clusters": int})[list(COLUMNS)]


def adjust_p(table: pd.DataFrame, family: Sequence, few: int = 0, *, compared: bool = False) -> pd.DataFrame:
    """Return the table with p adjusted for the number of tests within each family (Holm 1979), columns or arrays.

    Of several tests the larger of p and p_permutation counts: far out in the tail, where Holm looks, p of rare claims
    is too small, and the permutation is exact. It also gets `conclusion` and `detectable`, unless it is `compared`: of
    differences between models, conditions or readings. few: several tests over fewer clusters, without a permutation,
    get the note holm_few_prompts (or texts, ...).
    """
    larger = table[["p", "p_permutation"]].max(axis=1).where(table["p"].notna())
    tests = table.assign(larger=larger).groupby(list(family), sort=False)
    several = table["p"].notna() & (tests["p"].transform("count") > 1)
    adjusted = tests["larger"].transform(holm).where(several, table["p"])
    note = (table["note"] + "; holm_few_" + table["cluster_unit"] + "s").str.removeprefix("; ")
    weak = several & (table["clusters"] < few) & table["p_permutation"].isna()
    table = table.assign(p_holm=adjusted, note=table["note"].mask(weak, note))
    return table if compared else with_conclusions(table, several & adjusted.fillna(1).gt(1 - table["level"]))


def _rows(m: Measure, how: Settings, given: Mapping, bounds, note: str) -> Iterable[dict]:
    """Yield the columns of the default rows of a measure, then of its percentile and BCa."""
    of, value, unit = m.of, m.value, how.unit
    dominated = (of.kish < DOMINATE) & (of.kish <= 0.8 * of.clusters) & ~np.isnan(value)
    value = np.where(dominated & (of.kish < 2 - BOUND), np.nan, value)
    known = ~np.isnan(value)
    low, high = (np.where(known, side, np.nan) for side in of.interval(how.z))
    p, least = _tested(m, how, known)
    notes = [
        (~known, "not_estimable"),
        *m.notes,
        (bool(note), note),
        (known & np.isnan(low), "no_interval"),
        (known & (of.clusters < how.few), f"few_{unit}s"),
        (dominated, f"few_{unit}s_dominate"),
    ]
    lowest = [(~np.isnan(p) & (least == x), f"least_p={x:.3g}") for x in np.unique(least[least > 1 - how.level])]
    labels = {name: np.asarray(label, object) for name, label in m.labels.items()}
    common = {**given, **labels, "statistic": m.statistic, "estimate": value, "n": m.rows, "clusters": of.clusters}
    permuted = np.nan if m.permutation is None else m.permutation(how.seed)
    line = {"low": low, "high": high, "method": of.method, "p": p, "p_permutation": permuted}
    yield _flat(common | line, [*notes, *lowest], np.ones(value.shape, bool))
    if bounds is None:
        return
    fallback, flat = bounds[4:].astype(bool)
    notes = [(where, text) for where, text in notes if text != "no_interval"] + [(flat, "constant")]
    fallback = [(fallback & ~flat, "bca_fallback_percentile")]
    for method, (low, high), more in (("percentile", bounds[:2], []), ("bca", bounds[2:4], fallback)):
        line = {"low": low, "high": high, "method": method, "p": np.nan, "p_permutation": np.nan}
        yield _flat(common | line, [*notes, *more], known)


def _tested(m: Measure, how: Settings, known: np.ndarray) -> Iterable[np.ndarray]:
    """Return p and the least p possible, NaN and 0 without a test or an estimate."""
    found = np.nan, 0
    if m.test is not None:
        found = m.test(how.seed) if callable(m.test) else (inverted_p(m.of, m.test, how.z), 0)
    return (np.where(known, x, blank) for x, blank in zip(found, (np.nan, 0), strict=True))


def _flat(columns: Mapping, notes: Sequence[tuple], keep: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns as vectors of the values that are kept, with `note`: of each the texts that hold, each once."""
    said = np.full(keep.shape, "", object)
    for where, text in notes:
        for at in map(tuple, np.argwhere(np.broadcast_to(where, keep.shape)) if text else ()):
            if text not in said[at].split("; "):
                said[at] = f"{said[at]}; {text}".removeprefix("; ")
    columns = columns | {"note": said}
    return {
        name: np.broadcast_to(np.asarray(x, object if isinstance(x, str) else None), keep.shape)[keep]
        for name, x in columns.items()
    }


def default_rows(table: pd.DataFrame, *statistics: str) -> pd.DataFrame:
    """Return the default row (first policy, first method) of every statistic, or of those that are named."""
    rows = table[table["statistic"].isin(statistics)] if statistics else table
    return rows.drop_duplicates([name for name in (*DESIGN, *CHANGE) if name in rows])


def conclusion(row, chance: float = 0.0, alone: bool = False) -> str:
    """Return what the interval of a row says of a value such as 0 or chance: the only rule, and the only wording.

    "recognises" where the whole interval lies above it and "avoids" where it lies below, with "alone, not after Holm"
    where it is one of several tests and does not pass Holm's; else "constant answer" of an evaluator that claims every
    text or none, and "no evidence" of others and of pairs in which the own text always stood at the same place.
    "depends on no answers" where both policies say different things. Without an interval "answers nothing" of an
    evaluator without a single answer, "too few answers" of others, and "" where the question does not arise.
    A model that never says which one it is ("only_abstains") answers nothing either.
    """
    notes = {*str(row.note).split("; ")}
    if "only_abstains" in notes:
        return "answers nothing"
    if pd.isna(row.estimate) or pd.isna(row.low):
        if "no_answer" in notes and notes & {"one_source", "no_pairs"}:  # of a jury: there was no score at all
            return "answers nothing"
        if notes & {"wrote_nothing", "no_scores", "one_source", "no_pairs"}:
            return ""
        return "answers nothing" if "no_answer" in notes else "too few answers"
    if "depends_on_no_answers" in notes:
        return "depends on no answers"
    word = {1: "recognises", -1: "avoids"}.get(side_of(chance, row.low, row.high))
    if word and "one_order" not in notes:
        return f"{word} alone, not after Holm" if alone else word
    return "constant answer" if "constant_answer" in notes else "no evidence"


def side_of(chance: float, low, high):
    """Return 1 where the whole interval lies above chance, -1 where it lies below, else 0; NaN without an interval."""
    side = np.sign(np.asarray(low) - chance).clip(0) - np.sign(chance - np.asarray(high)).clip(0)
    return side[()]


def with_conclusions(table: pd.DataFrame, alone: Sequence[bool] | bool = False) -> pd.DataFrame:
    """Return a table with `conclusion` and `detectable`.

    conclusion: of J, areas, claim discrimination and rates of pairs, by the default interval; empty elsewhere, and
    where the question is which text of a pair is better, or whether a text is good. alone: rows that are one of several
    tests and do not pass Holm's. detectable: see `_detectable`.
    """
    found = pd.Series("", table.index, object)
    alone = pd.Series(alone, table.index)
    preferred = table["condition"].astype(str).str.contains("question=better|question=good")
    concluded = ~preferred & ~table["method"].isin(RESAMPLED)
    for statistics, which in ((CHANCE, concluded), (OF_PAIRS, concluded & (table["task"] == "pairwise_self"))):
        for row in table[which & table["statistic"].isin(statistics)].itertuples():
            found[row.Index] = conclusion(row, statistics[row.statistic], alone[row.Index])
    return table.assign(conclusion=found, detectable=_detectable(table))


def _detectable(table: pd.DataFrame) -> pd.Series:
    """Return the J, or of juries the difference of two arms, that four of five such runs would detect; else NaN.

    `detectable_difference`, at 80 % power and two-sided .05: the normal approximation, with quantiles of t where there
    are fewer than 40 units (of juries 20). Of so few the sd per unit is assumed: .55, as in earlier data with one text
    per prompt and author (of juries .15). Else it is the largest of the design's evaluators, by the default intervals.
    At most 1, the largest that such a difference can be. NaN where no prompts are named, and of real against invented
    names, which are no pairs.
    """
    units = pd.DataFrame(PLANNED, ["statistic", "assumed", "enough"]).T
    rows = table[table["statistic"] == table["cluster_unit"].map(units["statistic"])]
    k, unit, tail = rows["clusters"].astype(float), rows["cluster_unit"], 0.5 + rows["level"].astype(float) / 2
    many, default = k >= unit.map(units["enough"]), ~rows["method"].isin(RESAMPLED)
    sd = (rows["high"] - rows["low"]) / 2 * np.sqrt(k) / stdtrit(k - 1, tail)
    design = [rows[name] for name in ("task", "condition", "policy", "author", "cluster_unit")]
    sd = sd.where(many & default & (sd > 0)).groupby(design, sort=False).transform("max")
    sd = sd.where(many).fillna(unit.map(units["assumed"])).astype(float)
    least = np.where(many, detectable_difference(k, sd=sd), detectable_difference(k, sd=sd, t=True))
    return pd.Series(least, rows.index).clip(upper=1).where((k > 1) & rows["estimate"].notna()).reindex(table.index)
