"""Paired differences of evaluators, conditions and results."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from selfeval import stats
from selfeval.errors import InputError, check_one_of
from selfeval.figures.estimates import Estimates, check_measured, estimates_of
from selfeval.identity.measures import RATES, READINGS
from selfeval.providers.client import verb
from selfeval.secrets import tell


@verb
def compare(result: Estimates, by: str | Estimates = "evaluator", other: str = "") -> Estimates:
    """Return paired differences with p adjusted by Holm: of evaluators, conditions, or results.

    by: "evaluator" (first minus second), "condition" (self-recognition alone), or one part of the
    conditions that differs, such as "told"; or one evaluator, to see its pairs alone, or that with
    `other`; or a second result, such as the same models in November and in May: each evaluator that
    both have, `result` minus the second. Pairs are made by prompt or template, over those that both
    have, so that what is easy or hard for all cancels.
    """
    check_measured("compare", result)
    if isinstance(by, pd.DataFrame):
        check_measured("compare", by)
        if other:
            rule = "`other` names an evaluator, and beside two results there is none"
            raise InputError(f"{rule}, got {other!r}.")
        return _compare_results(result, by)
    ids = {name: model for model, name in (result.names or {}).items()}
    evaluators = list(result["evaluator"].unique())
    if other or ids.get(by, by) in evaluators:
        pairs = compare(result)
        for keyword, name in {"by": by, "other": other or by}.items():
            evaluator = ids.get(name, name)
            check_one_of(keyword, evaluator, evaluators)
            pairs = pairs.loc[_has_evaluator(pairs, evaluator)]
        return pairs
    contrasts = result.tables.get("contrasts", pd.DataFrame(columns=["field"]))
    parts = contrasts["field"].unique()
    check_one_of("by", by, ["evaluator", "condition", *parts])
    table = "paired" if by == "evaluator" else "contrasts"
    if table not in result.tables:
        raise InputError(f"Results of kind {result.kind!r} have no comparison by {by!r}.")
    differences = result.tables[table]
    if by in parts:
        differences = differences[differences["field"] == by]
    return estimates_of(result.kind, differences, {}, result.records, result.names)


def _has_evaluator(pairs: pd.DataFrame, evaluator: str) -> pd.Series:
    """Tell of each pair, called "first - second", whether an evaluator is in it."""
    names = pairs["evaluator"].str.split(" - ", regex=False)
    return pd.Series([evaluator in pair for pair in names], pairs.index, bool)


@dataclass(frozen=True)
class Pairing:
    """How the records of two results are paired.

    evaluator: the column of who answered. unit: what is paired, in words. identifiers: columns that
    say which unit; the first that all records have is used.
    """

    evaluator: str
    unit: str
    identifiers: tuple[str, ...]


PAIRINGS = {
    "recognition": Pairing("evaluator_model", "prompt", ("prompt_id", "prompt_used", "text_id")),
    "identity": Pairing("model", "template", ("template_id",)),
}


def _compare_results(first: Estimates, second: Estimates) -> Estimates:
    """Return the paired differences of two results of one kind, first minus second.

    Says what only one of them has.
    """
    _check_comparable(first, second)
    pairing = PAIRINGS[first.kind]
    frames, sentences = _of_common_evaluators([first.records, second.records], pairing)
    sentences += _check_units(frames, pairing)
    level = float(first["level"].iloc[0])
    ours, theirs = frames
    left_out: list[str] = []
    if first.kind == "recognition":
        table, left_out = stats.result_contrasts(ours, theirs, level=level)
    else:
        asked = [frame[frame["control_of"].isna()] for frame in frames]
        claims = [f"claim_discrimination{reading}" for reading in READINGS]
        statistics = [*claims, "susceptibility", *RATES]
        table = stats.result_comparison(asked[0], asked[1], statistics)
    sentences += left_out
    if table.empty:
        why = " ".join(sentences) or "no evaluator has a common prompt."
        raise InputError(f"Nothing is paired: {why}")
    tell(sentences)
    names = dict(second.names or {}) | dict(first.names or {})
    records = pd.concat(frames, ignore_index=True)
    return estimates_of(first.kind, table, {}, records, names)


def _of_common_evaluators(
    frames: list[pd.DataFrame], pairing: Pairing
) -> tuple[list[pd.DataFrame], list[str]]:
    """Return the records of the evaluators that both frames have, and who is left out."""
    first, second = [set(frame[pairing.evaluator]) for frame in frames]
    common = first & second
    if not common:
        lists = [", ".join(sorted(names)) for names in (first, second)]
        raise InputError(
            f"The two results share no evaluator: the first has {lists[0]}, the second {lists[1]}."
        )
    sentences = []
    if first != second:
        alone = ", ".join(sorted(first ^ second))
        sentences.append(f"In one result alone, and left out: {alone}.")
    return [frame[frame[pairing.evaluator].isin(common)] for frame in frames], sentences


def _check_units(frames: list[pd.DataFrame], pairing: Pairing) -> list[str]:
    """Return a sentence on the units that one frame has alone.

    Refuse frames without a common one.
    """
    column = _identifier(pairing.identifiers, frames)
    first, second = [set(frame[column].map(str)) for frame in frames]
    common = first & second
    alone = first ^ second
    if not common:
        rule = f"The two results share no {pairing.unit}, so nothing can be paired"
        raise InputError(f"{rule}; ask both about the same ones.")
    if not alone:
        return []
    over = f"Compared over the {pairing.unit}s that both results have, {len(common)}"
    return [f"{over}; {len(alone)} in one alone are left out."]


def _identifier(columns: Sequence[str], frames: Sequence[pd.DataFrame]) -> str:
    """Return the first of these columns that is filled in every frame, else the last."""
    for column in columns:
        if all(column in frame and frame[column].notna().all() for frame in frames):
            return column
    return columns[-1]


def _check_comparable(first: Estimates, second: Estimates) -> None:
    """Refuse results of different kinds, of a kind that is not paired, or without records."""
    if first.kind != second.kind:
        kinds = f"{first.kind!r} and {second.kind!r}"
        raise InputError(f"The results are of different kinds, {kinds}; give two of one.")
    if first.kind not in PAIRINGS:
        known = ", ".join(PAIRINGS)
        raise InputError(
            f"Results of kind {first.kind!r} are not paired with another; {known} are."
        )
    for place, result in (("first", first), ("second", second)):
        if result.records is None:
            rule = "was read from CSV, without the records that are paired"
            raise InputError(f"The {place} result {rule}; measure them again.")
