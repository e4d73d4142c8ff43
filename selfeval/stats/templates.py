"""What statistics over identity templates share: checked records, means over templates, rows of a result.

The template is what was sampled; its paraphrases, foils, languages and repeats come along. Every template counts
alike, so a statistic is a mean over templates of what each of them gives: a model that ignores the claim in a
question has claim discrimination 0 however unevenly replies were lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.bootstrap import bootstrap_intervals
from selfeval.stats.counts import truth_codes
from selfeval.stats.intervals import BOUND, Rate, ratio
from selfeval.stats.measures import Measure
from selfeval.stats.serving import first_attempts, served_by_several
from selfeval.stats.table import Settings, estimates

ARMS = ("neutral", "false-far", "false-near", "placebo", "true", "mention")
FALSE = ("false-far", "false-near")
STANCES = ("truth", "coarse", "foil", "other", "denied", "conflict", "abstain", "none")
SITUATION = ("model", "family", "condition", "template_id", "arm", "language", "truth", "foil")
LABELS = ("model", "family", "condition")
COLUMNS = (
    *LABELS, "source", "statistic", "estimate", "low", "high", "level", "method", "p", "p_holm", "n", "n_templates",
    "seed", "note",
)  # fmt: skip
VERDICT = ("stance", "accepts", "passed", "named")  # what a reply is read as
FEW_TEMPLATES = 20


def settings(n_resamples: int, level: float, seed: int) -> Settings:
    """Return the settings of a table over templates."""
    return Settings(n_resamples, level, seed, FEW_TEMPLATES, "few_templates")


# ---------------------------------------------------------------------------------------------------------------
# Records


@dataclass(frozen=True, eq=False)
class Replies:
    """Replies as codes, one per row; `size` templates.

    arm, stance: index in ARMS and STANCES (stance -1: error); accepted, passed: 1, 0 or -1 for null; foil, named:
    -1 for null; repeats of a situation are its conversations; final: the last turn of the conversation.
    """

    template: np.ndarray
    arm: np.ndarray
    stance: np.ndarray
    accepted: np.ndarray
    passed: np.ndarray
    foil: np.ndarray
    named: np.ndarray
    language: np.ndarray
    situation: np.ndarray
    conversation: np.ndarray
    turn: np.ndarray
    final: np.ndarray
    size: int
    languages: tuple[str, ...]

    def where(self, rows: np.ndarray) -> Replies:
        """Return the replies of a mask, or at the places of an index."""
        return Replies(**{f.name: v[rows] if isinstance(v := getattr(self, f.name), np.ndarray) else v
                          for f in fields(self)})  # fmt: skip

    def in_arm(self, *names: str) -> np.ndarray:
        """Return a mask of the rows in these arms."""
        return np.isin(self.arm, [ARMS.index(name) for name in names])

    def says(self, *names: str) -> np.ndarray:
        """Return a mask of the rows with one of these stances."""
        return np.isin(self.stance, [STANCES.index(name) for name in names])

    @property
    def answered(self) -> np.ndarray:
        return self.stance >= 0

    @property
    def right(self) -> np.ndarray:
        return self.says("truth", "coarse")

    def share(self, success: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return per template the share of successes among the rows of a mask (NaN without any), and their number."""
        return shares(success, among, self.template, self.size)


def shares(success, among, code, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, per code, the share of successes among the rows of a mask (NaN without any), and their number."""
    n = np.bincount(code[among], minlength=size)
    return ratio(np.bincount(code[among], success[among], minlength=size), n), n


def grouped(records: pd.DataFrame, source: str, by: Sequence[str]) -> Iterator[tuple[dict, np.ndarray, Replies]]:
    """Yield labels, models and replies of each group of the identity records of one source, checked.

    `template_id` is the cluster, a template with its paraphrases and translations; column `variant`, where present,
    says which of them.
    """
    frame = _checked(records, source)
    by = [by] if isinstance(by, str) else list(by)
    unknown = [name for name in by if name not in frame]
    if unknown or not by:
        raise InputError(f"`by` must name columns of the records, got {by!r}.")
    codes = _codes(frame)
    cluster, model = pd.factorize(frame["template_id"])[0], frame["model"].to_numpy()
    for key, rows in frame.groupby(by, sort=True, dropna=False).indices.items():
        labels = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        seen, template = np.unique(cluster[rows], return_inverse=True)
        mine = {name: code[rows] if isinstance(code, np.ndarray) else code for name, code in codes.items()}
        yield labels, model[rows], Replies(template, size=len(seen), **mine)


def served(records: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return the endpoints of the models that several of them served, from identity records."""
    return served_by_several(records, ("model", "served_model", "served_by"))


def from_first_attempts(records: pd.DataFrame) -> pd.DataFrame:
    """Return identity records as they would be had nothing been asked again.

    A reply that was asked for again was no answer at first. What followed from it is left out: its read-out was not
    asked (no stance), and the later turns of its conversation do not exist.
    """
    verdict = [name for name in VERDICT if name in records]
    first = first_attempts(records, verdict)
    conversation = first.groupby([*_situation(first), "repeat"], dropna=False, sort=False).ngroup()
    again = first["asked_again"].notna() & (first["source"] == "reply")
    ended = first["turn"].where(again).groupby(conversation).transform("min")  # NaN: it went on
    first[verdict] = first[verdict].where(first["turn"] != ended)
    return first[~(first["turn"] > ended)]


def _situation(frame: pd.DataFrame) -> list[str]:
    return [*SITUATION, *(name for name in ("variant",) if name in frame)]


def _checked(records: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return the records of one source; raise `InputError` on what no statistic could be right about."""
    needed = (*SITUATION, "repeat", "turn", "source", "stance", "accepts")
    missing = [name for name in needed if name not in records]
    if missing:
        raise InputError(f"Column `{missing[0]}` is missing from the records; found {', '.join(map(str, records))}.")
    frame = records[records["source"] == source].reset_index(drop=True)
    if frame.empty:
        found = sorted(set(map(str, records["source"])))
        raise InputError(f"There are no records with source {source!r}; found {', '.join(found) or 'no records'}.")
    for name, allowed in (("arm", ARMS), ("stance", STANCES)):
        unknown = set(frame[name].dropna()) - set(allowed)
        if unknown:
            raise InputError(f"Column `{name}` must hold one of {', '.join(allowed)}, got {min(map(str, unknown))!r}.")
    for name in ("model", "family", "condition", "template_id", "arm", "turn"):
        if frame[name].isna().any():
            raise InputError(f"Column `{name}` must not be null, but row {int(frame[name].isna().argmax())} is.")
    return frame


def _codes(frame: pd.DataFrame) -> dict:
    """Return what `Replies` holds of all rows, but for their templates."""
    situation = frame.groupby(_situation(frame), dropna=False, sort=False).ngroup()
    by_repeat = [situation, frame["repeat"]]
    conversation = frame.groupby(by_repeat, dropna=False, sort=False).ngroup()
    turn = frame["turn"].astype(int)
    twice = pd.DataFrame({"c": conversation, "t": turn}).duplicated()
    if twice.any():
        row = frame[twice].iloc[0]
        raise InputError(
            f"Model {row['model']!r} has template {row['template_id']!r}, arm {row['arm']!r}, "
            f"repeat {row['repeat']}, turn {row['turn']} twice; keep one."
        )
    names = pd.concat([frame["foil"], frame["named"] if "named" in frame else pd.Series(None, frame.index, object)])
    foil, named = np.split(pd.factorize(names)[0], 2)
    language, languages = pd.factorize(frame["language"].fillna("en").astype(str))
    stance = pd.Index(STANCES).get_indexer(frame["stance"])
    accepted = np.where(stance >= 0, truth_codes(frame["accepts"], "accepts"), -1)
    if "passed" in frame:
        passed = np.where(stance >= 0, truth_codes(frame["passed"], "passed"), -1)
    else:
        harmless = (accepted != 1) | (frame["arm"] == "true").to_numpy()
        passed = np.where(stance >= 0, np.isin(stance, (0, 1)) & harmless, -1)
    return {
        "arm": pd.Index(ARMS).get_indexer(frame["arm"]), "stance": stance, "accepted": accepted, "passed": passed,
        "foil": foil, "named": named, "language": language, "languages": tuple(languages),
        "situation": situation.to_numpy(), "conversation": conversation.to_numpy(), "turn": turn.to_numpy(),
        "final": (turn == turn.groupby(conversation).transform("max")).to_numpy(),
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------
# Values per template to rows of a result


def resampled_means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted means of (templates, S) values, NaN left out, under (templates, B) weights: (S, B)."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0).astype(weights.dtype).T @ weights
    return total / len(weights) if known.all() else ratio(total, known.astype(weights.dtype).T @ weights)


def rate_measure(rate: Rate, **more) -> Measure:
    """Return the Measure of a Rate or Difference whose rows are its trials."""
    return Measure("", rate.value, rate.trials, rate.clusters, rate.contrib, rate, **more)


@dataclass(eq=False)
class Batch:
    """Statistics of one group that are estimated together: their names and their Measure (value of shape (S,))."""

    names: Sequence[str]
    measure: Measure

    @classmethod
    def of(cls, names: Sequence[str], measure: Measure, samples: np.ndarray, using: Settings) -> Batch:
        """Fill in the estimates from the resampled values (S, resamples)."""
        m = measure
        m.notes = [*m.notes, ((m.clusters < 2) & ~np.isnan(m.value), "no_interval")]
        m.boot = bootstrap_intervals(samples, m.value, m.contrib, using.level)
        m.estimates = estimates(m, using)
        return cls(names, m)

    def columns(self, using: Settings, **labels) -> dict[str, np.ndarray]:
        """Return the rows of the result as columns, default method first; what has no estimate has one row."""
        m, parts = self.measure, []
        for rank, e in enumerate(m.estimates):
            at = np.flatnonzero(~np.isnan(m.value)) if rank else np.arange(len(m.value))
            seeded = e.method in ("percentile", "bca")
            parts.append({
                "order": at * len(m.estimates) + rank, "statistic": np.asarray(self.names, object)[at],
                "estimate": _settled(e.value)[at], "low": _settled(e.low)[at], "high": _settled(e.high)[at],
                "method": np.full(len(at), e.method, object),
                "p": np.full(len(at), np.nan) if m.p is None or rank else m.p[at],
                "n": e.n[at].astype(int), "n_templates": e.n_prompts[at].astype(int),
                "seeded": np.full(len(at), seeded), "note": e.note[at],
            })  # fmt: skip
        found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.argsort(found.pop("order"), kind="stable")
        found = {name: column[order] for name, column in found.items()}
        return {name: np.full(len(order), value, object) for name, value in labels.items()} | found


def table_of(parts: Sequence[dict], using: Settings, **constant) -> pd.DataFrame:
    """Join the columns of batches to a table: COLUMNS in order, with the labels' own ones after the first three."""
    found = pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    seeded = found.pop("seeded")
    found = found.assign(level=using.level, p_holm=np.nan, **constant)
    found["seed"] = pd.array(np.full(len(found), using.seed), "Int64")
    found.loc[~seeded, "seed"] = pd.NA
    found = found.assign(**{name: "" for name in LABELS if name not in found})
    extra = [name for name in found if name not in COLUMNS]
    names = [*LABELS, *extra, *COLUMNS[len(LABELS) :]]
    return found[[name for name in names if name in found]]


def _settled(values: np.ndarray) -> np.ndarray:
    """Return values with what is 0 but for rounding as 0."""
    return np.where(np.abs(values) < BOUND, 0.0, values)
