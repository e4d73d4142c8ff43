"""The one writer of result tables: statistics with their labels in, rows with intervals, tests and notes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from selfeval.stats.engine import BOUND, Settings, Statistic, bootstrap
from selfeval.stats.tests import detectable_difference, holm, inverted_p

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

    of: values of shape (...), or numbers without interval (counts). labels: {column: text or array of the shape}.
    n: rows behind it, if not `of.n`. test: the value that its interval is tested against; or p and the least p that is
    possible, for a seed. permutation: p by permutation, for a seed. notes: (where, text). resampled: bootstrap rows
    follow.
    """

    statistic: str
    of: Statistic | np.ndarray
    labels: Mapping = field(default_factory=dict)
    n: np.ndarray | None = None
    test: Callable | float | None = None
    permutation: Callable | None = None
    notes: Sequence[tuple] = ()
    resampled: bool = True
    clusters: np.ndarray | None = None

    @property
    def value(self) -> np.ndarray:
        return np.asarray(self.of.value if isinstance(self.of, Statistic) else self.of, float)

    @property
    def rows(self) -> np.ndarray:
        return np.broadcast_to(self.of.n if self.n is None else self.n, self.value.shape)


def write(
    measures: Iterable[Measure], how: Settings, *, width: int = 1, note: str = "", **constant: str
) -> pd.DataFrame:
    """Return the rows of all measures, in their order; default method first, then percentile and BCa.

    width: see `Settings.weights`. note: of all rows. constant: columns that are the same in all rows. p_holm,
    conclusion and detectable are left to `adjusted`, for what is one family of tests differs.
    """
    measures = list(measures)
    groups: dict[int, list[Measure]] = {}
    for m in measures:
        if isinstance(m.of, Statistic) and m.resampled:
            groups.setdefault(len(m.of.contrib), []).append(m)
    bounds = {
        id(m): found
        for clusters, group in groups.items()
        if clusters > 1
        for m, found in zip(group, bootstrap([m.of for m in group], how, width), strict=True)
    }
    given = dict.fromkeys(COLUMNS[:5], "") | {"level": how.level} | constant
    parts = [part for m in measures for part in _rows(m, how, given, bounds.get(id(m)), note)]
    table = pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    table["p_holm"] = np.nan
    table["seed"] = pd.Series(how.seed, table.index, "Int64").where(table["method"].isin(RESAMPLED))
    table["cluster_unit"] = how.unit
    table = table.assign(conclusion="", detectable=np.nan)
    return table.astype({"n": int, "clusters": int})[list(COLUMNS)]


def adjusted(table: pd.DataFrame, family: Sequence, few: int = 0, *, compared: bool = False) -> pd.DataFrame:
    """Return the table with p adjusted for the number of tests within each family (Holm 1979), columns or arrays.

    It also gets `conclusion` and `detectable`, unless it is `compared`: of differences between models, conditions or
    readings. few: several tests over fewer clusters get the note holm_few_prompts (or texts, ...).
    """
    each = table.groupby(list(family), sort=False)["p"]
    weak = table["p"].notna() & (each.transform("count") > 1) & (table["clusters"] < few)
    note = (table["note"] + "; holm_few_" + table["cluster_unit"] + "s").str.removeprefix("; ")
    table = table.assign(p_holm=each.transform(holm), note=table["note"].mask(weak, note))
    return table if compared else concluded(table)


def _rows(m: Measure, how: Settings, given: Mapping, bounds, note: str) -> Iterable[dict]:
    """Yield the columns of the default rows of a measure, then of its percentile and BCa."""
    value, shape = m.value, m.value.shape
    dominated, too_few = _dominated(m)
    value = np.where(too_few, np.nan, value)
    known = ~np.isnan(value)
    p, least = (np.where(known, x, blank) for x, blank in zip(_tested(m, how), (np.nan, 0), strict=True))
    notes = [(~known, "not_estimable"), *m.notes, (bool(note), note)]
    if not isinstance(m.of, Statistic):
        low = high = np.full(shape, np.nan)
        method, clusters = "count", m.clusters
    else:
        low, high = (np.where(known, side, np.nan) for side in m.of.interval(how.z))
        method, clusters = m.of.method, m.of.clusters
        notes += [(known & np.isnan(low), "no_interval"), (known & (clusters < how.few), f"few_{how.unit}s")]
        notes.append((dominated, f"few_{how.unit}s_dominate"))
    labels = {name: np.asarray(label, object) for name, label in m.labels.items()}
    common = {**given, **labels, "statistic": m.statistic, "estimate": value, "n": m.rows, "clusters": clusters}
    few = [
        (~np.isnan(p) & (least == bound), f"least_p={bound:.3g}") for bound in np.unique(least[least > 1 - how.level])
    ]
    permuted = np.nan if m.permutation is None else m.permutation(how.seed)
    line = {"low": low, "high": high, "method": method, "p": p, "p_permutation": permuted,
            "note": _joined(shape, [*notes, *few])}  # fmt: skip
    yield _flat(common | line, np.ones(shape, bool))
    if bounds is None:
        return
    flat = bounds[5].astype(bool)
    notes = [(where, text) for where, text in notes if text != "no_interval"] + [(flat, "constant")]
    fallback = (bounds[4].astype(bool) & ~flat, "bca_fallback_percentile")
    for method, (low, high), more in (("percentile", bounds[:2], []), ("bca", bounds[2:4], [fallback])):
        line = {"low": low, "high": high, "method": method, "p": np.nan, "p_permutation": np.nan,
                "note": _joined(shape, [*notes, *more])}  # fmt: skip
        yield _flat(common | line, known)


def _dominated(m: Measure) -> tuple[np.ndarray, np.ndarray]:
    """Return where few clusters weigh so much that they decide, and where they leave nothing to estimate."""
    if not isinstance(m.of, Statistic):
        return np.array(False), np.array(False)
    dominated = (m.of.kish < DOMINATE) & (m.of.kish <= 0.8 * m.of.clusters)
    return dominated & ~np.isnan(m.value), dominated & (m.of.kish < 2 - BOUND)


def _tested(m: Measure, how: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Return p and the least p possible, NaN and 0 without a test."""
    if m.test is None:
        found = np.nan, 0
    else:
        found = m.test(how.seed) if callable(m.test) else (inverted_p(m.of, m.test, how.z), 0)
    return tuple(np.broadcast_to(x, m.value.shape) for x in found)


def _flat(columns: Mapping, keep: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns as vectors of the values that are kept."""
    return {
        name: np.broadcast_to(np.asarray(x, object if isinstance(x, str) else None), keep.shape)[keep]
        for name, x in columns.items()
    }


def _joined(shape: tuple, notes: Sequence[tuple]) -> np.ndarray:
    """Join, per value, the notes whose mask is set, each once."""
    out = np.full(shape, "", object)
    for where, text in notes:
        for at in np.argwhere(np.broadcast_to(where, shape)) if text else ():
            at = tuple(at)
            if text not in out[at].split("; "):
                out[at] = f"{out[at]}; {text}" if out[at] else text
    return out


def default_rows(table: pd.DataFrame, *statistics: str, by: Sequence[str] = (*DESIGN, *CHANGE)) -> pd.DataFrame:
    """Return the default row (first policy, first method) of every statistic, or of those that are named.

    by: the columns that say what a row is about, as far as the table has them.
    """
    rows = table[table["statistic"].isin(statistics)] if statistics else table
    return rows.drop_duplicates([name for name in by if name in rows])


def conclusion(row, chance: float = 0.0) -> str:
    """Return what the interval of a row says of a value such as 0 or chance: the only rule, and the only wording.

    "recognises" where the whole interval lies above it and "avoids" where it lies below; else "constant answer" of an
    evaluator that claims every text or none, and "no evidence" of others and of pairs in which the own text always
    stood at the same place. Without an interval "answers nothing" of an evaluator without a single answer, "too few
    answers" of others, and "" where the question does not arise.
    """
    notes = {*str(row.note).split("; ")}
    if pd.isna(row.estimate) or pd.isna(row.low):
        if notes & {"wrote_nothing", "one_source", "no_pairs"}:
            return ""
        return "answers nothing" if "no_answer" in notes else "too few answers"
    if (row.low > chance or row.high < chance) and "one_order" not in notes:
        return "recognises" if row.low > chance else "avoids"
    return "constant answer" if "constant_answer" in notes else "no evidence"


def concluded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with `conclusion` and `detectable`.

    conclusion: of J, areas, claim discrimination and rates of pairs, each by its own interval; empty elsewhere, and of
    pairs where the question is which text is better. detectable: see `_detectable`.
    """
    found = pd.Series("", table.index, object)
    preferred = table["condition"].astype(str).str.contains("question=better", regex=False)
    for statistics, which in ((CHANCE, ~preferred), (OF_PAIRS, (table["task"] == "pairwise_self") & ~preferred)):
        for row in table[which & table["statistic"].isin(statistics)].itertuples():
            found[row.Index] = conclusion(row, statistics[row.statistic])
    return table.assign(conclusion=found, detectable=_detectable(table))


def _detectable(table: pd.DataFrame) -> pd.Series:
    """Return the J, or of juries the difference of two arms, that four of five such runs would detect; else NaN.

    `detectable_difference`, at 80 % power and two-sided .05: the normal approximation, with quantiles of t where there
    are fewer than 40 units (of juries 20). Of so few the sd per unit is assumed: .55, as in earlier data with one text
    per prompt and author (of juries .15). Else it is the largest of the design's evaluators, by the default intervals.
    NaN where no prompts are named, and of real against invented names, which are no pairs.
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
    return pd.Series(least, rows.index).where((k > 1) & rows["estimate"].notna()).reindex(table.index)
