"""What statistics over identity templates share: checked records, means over templates, rows of a result.

The template is what was sampled; its paraphrases, foils, languages and repeats come along. Every template counts
alike, so a statistic is a mean over templates of what each of them gives: a model that ignores the claim in a
question has claim discrimination 0 however unevenly replies were lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.counts import truth_codes
from selfeval.stats.intervals import BOUND, Rate, bootstrap_intervals, ratio
from selfeval.stats.measures import Measure
from selfeval.stats.table import Settings, estimates

ARMS = ("neutral", "false-far", "false-near", "placebo", "true", "mention")
FALSE = ("false-far", "false-near")
STANCES = ("truth", "coarse", "foil", "other", "denied", "conflict", "abstain", "none")
RIGHT = ("truth", "coarse")
SITUATION = ("model", "family", "condition", "template_id", "arm", "language", "truth", "foil")
VARIANT = ("variant", "paraphrase", "situation_id", "case_id")  # where present, these tell situations apart too
LABELS = ("model", "family", "condition")
COLUMNS = (
    *LABELS, "source", "statistic", "estimate", "low", "high", "level", "method", "p", "p_holm", "n", "n_templates",
    "seed", "note",
)  # fmt: skip
FEW_TEMPLATES = 20


def settings(n_resamples: int, level: float, seed: int) -> Settings:
    """Return the settings of a table over templates."""
    return Settings(n_resamples, level, seed, FEW_TEMPLATES, "few_templates")


def prepare(records: pd.DataFrame, source: str) -> pd.DataFrame:
    """Check identity records and return those of one source, with what all statistics ask of them.

    `template_id` is the cluster, or column `cluster` where present (a template with its paraphrases); a translation
    is in the cluster of the English template that column `twin` names. Adds `conversation` and `situation` (codes;
    repeats of a situation are its conversations), `final` (its last turn), `answered` (there is a stance: no error),
    `right` (truth or coarse) and `accepted` (1, 0 or -1 for null).
    """
    needed = (*SITUATION, "repeat", "turn", "source", "stance", "accepts")
    missing = [name for name in needed if name not in records]
    if missing:
        raise InputError(f"Column `{missing[0]}` is missing from the records; found {', '.join(map(str, records))}.")
    frame = records[records["source"] == source].reset_index(drop=True)
    if frame.empty:
        raise InputError(
            f"There are no records with source {source!r}; found {sorted(set(map(str, records['source'])))}."
        )
    for name, allowed in (("arm", ARMS), ("stance", STANCES)):
        unknown = set(frame[name].dropna()) - set(allowed)
        if unknown:
            raise InputError(f"Column `{name}` must hold one of {', '.join(allowed)}, got {min(map(str, unknown))!r}.")
    for name in ("model", "family", "condition", "template_id", "arm", "turn"):
        if frame[name].isna().any():
            raise InputError(f"Column `{name}` must not be null, but row {int(frame[name].isna().argmax())} is.")
    key = [*SITUATION, *(name for name in VARIANT if name in frame)]
    frame["situation"] = frame.groupby(key, dropna=False, sort=False).ngroup()
    frame["conversation"] = frame.groupby(["situation", "repeat"], dropna=False, sort=False).ngroup()
    twice = frame.duplicated(["conversation", "turn"])
    if twice.any():
        row = frame[twice].iloc[0]
        raise InputError(
            f"Model {row['model']!r} has template {row['template_id']!r}, arm {row['arm']!r}, "
            f"repeat {row['repeat']!r}, turn {row['turn']!r} twice; keep one."
        )
    frame["cluster"] = _clusters(frame)
    frame["final"] = frame["turn"] == frame.groupby("conversation")["turn"].transform("max")
    frame["answered"] = frame["stance"].notna()
    frame["right"] = frame["stance"].isin(RIGHT)
    frame["accepted"] = np.where(frame["answered"], truth_codes(frame["accepts"], "accepts"), -1)
    return frame


def _clusters(frame: pd.DataFrame) -> pd.Series:
    """Return what is sampled with each row: its template, with paraphrases and translations."""
    cluster = frame["cluster"].fillna(frame["template_id"]) if "cluster" in frame else frame["template_id"]
    if "twin" not in frame:
        return cluster
    of_template = dict(zip(frame["template_id"], cluster, strict=True))
    return cluster.where(frame["twin"].isna(), frame["twin"].map(lambda twin: of_template.get(twin, twin)))


def groups(frame: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[dict, pd.DataFrame]]:
    """Yield the labels and rows of each group, with the code of each row's template in column `template`."""
    by = [by] if isinstance(by, str) else list(by)
    unknown = [name for name in by if name not in frame]
    if unknown or not by:
        raise InputError(f"`by` must name columns of the records, got {by!r}.")
    for key, rows in frame.groupby(by, sort=True, dropna=False):
        yield dict(zip(by, key, strict=True)), rows.assign(template=pd.factorize(rows["cluster"])[0])


def template_share(success, among, template, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, per template, the share of successes among the rows of a mask (NaN without any), and their number."""
    n = np.bincount(template[among], minlength=size)
    return ratio(np.bincount(template[among], success[among], minlength=size), n), n


def resampled_means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted means of (templates, S) values, NaN left out, under (templates, B) weights: (S, B)."""
    known = ~np.isnan(values)
    return ratio(np.where(known, values, 0).astype(weights.dtype).T @ weights, known.astype(weights.dtype).T @ weights)


@dataclass(eq=False)
class Batch:
    """Statistics of one group that are estimated together: their names and their Measure (value of shape (S,))."""

    names: Sequence[str]
    measure: Measure

    @classmethod
    def of(cls, names: Sequence[str], measure: Measure, samples: np.ndarray, using: Settings) -> Batch:
        """Fill in the estimates from the resampled values (S, resamples)."""
        m = measure
        m.notes = [*m.notes, (m.clusters < 2, "not_estimable")]
        m.boot = bootstrap_intervals(samples, m.value, m.contrib, using.level)
        m.estimates = estimates(m, using)
        return cls(names, m)

    def rows(self, using: Settings, **labels) -> pd.DataFrame:
        """Return the rows of the result, default method first; what cannot be estimated has one row."""
        m, parts = self.measure, []
        for rank, e in enumerate(m.estimates):
            keep = ~np.isnan(m.value) if rank else np.ones(m.value.shape, bool)
            seeded = e.method in ("percentile", "bca")
            parts.append(pd.DataFrame({
                **labels, "statistic": np.asarray(self.names, object), "estimate": _settled(e.value),
                "low": _settled(e.low), "high": _settled(e.high), "level": using.level, "method": e.method,
                "p": np.nan if m.p is None or rank else m.p, "p_holm": np.nan, "n": e.n.astype(int),
                "n_templates": e.n_prompts.astype(int),
                "seed": pd.array([using.seed if seeded else pd.NA] * len(m.value), "Int64"), "note": e.note,
                "_rank": rank, "_order": np.arange(len(m.value)),
            })[keep])  # fmt: skip
        table = pd.concat(parts, ignore_index=True).sort_values(["_order", "_rank"], kind="stable")
        return table.drop(columns=["_order", "_rank"])


def rate_measure(rate: Rate, name: str = "", **more) -> Measure:
    """Return the Measure of a Rate or Difference whose rows are its trials."""
    return Measure(name, rate.value, rate.trials, rate.clusters, rate.contrib, rate, **more)


def complete(table: pd.DataFrame, source: str, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Return a result with all columns in order; columns of `by` that are not among them stand after the labels."""
    table = table.assign(source=source, **{name: "" for name in LABELS if name not in table})
    extra = [name for name in table if name not in columns]
    return table[[*LABELS, *extra, *columns[len(LABELS) :]]].reset_index(drop=True)


def _settled(values: np.ndarray) -> np.ndarray:
    """Return values with what is 0 but for rounding as 0."""
    return np.where(np.abs(values) < BOUND, 0.0, values)
