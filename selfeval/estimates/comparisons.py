"""Paired differences of evaluators, conditions and results."""

from collections.abc import Sequence

import pandas as pd

from selfeval import inspect_logs, stats
from selfeval.errors import InputError, check_one_of
from selfeval.figures.estimates import Estimates, check_measured, estimates_of
from selfeval.identity.measures import RATES, READINGS
from selfeval.providers.client import verb
from selfeval.secrets import tell


@verb
def compare(result: Estimates, by: str | Estimates = "evaluator", other: str = "") -> Estimates:
    """Return paired differences with p adjusted by Holm: of two evaluators, two conditions, or two results.

    by: "evaluator" (first minus second), "condition" (self-recognition alone), or one part of the conditions that
    differs, such as "told"; or one evaluator, to see its pairs alone, or that with `other`; or a second result, such as
    the same models in November and in May: each evaluator that both have, `result` minus the second. Pairs are made by
    prompt, template or sample, over those that both have, so that what is easy or hard for all cancels.
    """
    check_measured("compare", result)
    if isinstance(by, pd.DataFrame):
        check_measured("compare", by)
        if other:
            raise InputError(
                f"`other` names an evaluator, and beside two results there is none, got {other!r}."
            )
        return _compare_results(result, by)
    ids = {called: name for name, called in (result.names or {}).items()}
    evaluators = [*result["evaluator"].unique()]
    if other or ids.get(by, by) in evaluators:
        found = compare(result)
        for keyword, name in {"by": by, "other": other or by}.items():
            check_one_of(keyword, name := ids.get(name, name), evaluators)
            has_name = [name in pair.split(" - ") for pair in found["evaluator"]]
            found = found.loc[pd.Series(has_name, found.index, bool)]
        return found
    parts = result.tables.get("contrasts", pd.DataFrame(columns=["field"]))["field"].unique()
    check_one_of("by", by, ["evaluator", "condition", *parts])
    kept = result.tables.get("paired" if by == "evaluator" else "contrasts")
    if kept is None:
        raise InputError(f"Results of kind {result.kind!r} have no comparison by {by!r}.")
    kept = kept[kept["field"] == by] if by in parts else kept
    return estimates_of(result.kind, kept, {}, result.records, result.names)


PAIRED_BY = {  # kinds of results that can be paired with another: the column of evaluators, and what pairs are made by
    "recognition": (
        "evaluator_model",
        "prompt",
        ("prompt_id", "prompt_used", "text_id"),
    ),  # the first that all have
    "identity": ("model", "template", ("template_id",)),
    "log": ("model", "sample", ("cluster",)),
}


def _compare_results(first: Estimates, second: Estimates) -> Estimates:
    """Return the paired differences of two results of one kind, first minus second, and say what both do not have."""
    _check_comparable(first, second)
    column, unit, identifiers = PAIRED_BY[first.kind]
    frames = [first.records, second.records]
    evaluators = [{*frame[column]} for frame in frames]
    both = evaluators[0] & evaluators[1]
    if not both:
        lists = [", ".join(sorted(names)) for names in evaluators]
        raise InputError(
            f"The two results share no evaluator: the first has {lists[0]}, the second {lists[1]}."
        )
    told = []
    if alone := sorted(evaluators[0] ^ evaluators[1]):
        told.append(f"In one result alone, and left out: {', '.join(alone)}.")
    frames = [frame[frame[column].isin(both)] for frame in frames]
    units = [{*map(str, frame[_identifier(identifiers, frames)])} for frame in frames]
    common = units[0] & units[1]
    if not common:
        raise InputError(
            f"The two results share no {unit}, so nothing can be paired; ask both about the same ones."
        )
    if left := len(units[0] ^ units[1]):
        told.append(
            f"Compared over the {unit}s that both results have, {len(common)}; {left} in one alone are left out."
        )
    level = float(first["level"].iloc[0])
    if first.kind == "recognition":
        table, sentences = stats.result_contrasts(*frames, level=level)
    elif first.kind == "log":
        table, sentences = inspect_logs.log_differences(*frames, level)
    else:
        asked = [frame[frame["control_of"].isna()] for frame in frames]
        claims = [f"claim_discrimination{by}" for by in READINGS]
        statistics = [*claims, "susceptibility", *RATES]
        table, sentences = stats.result_comparison(*asked, statistics), []
    if table.empty:
        raise InputError(
            f"Nothing is paired: {' '.join([*told, *sentences]) or 'no evaluator has a common prompt.'}"
        )
    tell(told + sentences)
    names = (second.names or {}) | (first.names or {})
    return estimates_of(first.kind, table, {}, pd.concat(frames, ignore_index=True), names)


def _identifier(columns: Sequence[str], frames: Sequence[pd.DataFrame]) -> str:
    """Return the first of these columns that is filled in every frame, else the last."""
    for column in columns:
        if all(column in frame and frame[column].notna().all() for frame in frames):
            return column
    return columns[-1]


def _check_comparable(first: Estimates, second: Estimates) -> None:
    """Raise `InputError` for results of different kinds, of a kind that is not paired, or without their records."""
    if first.kind != second.kind:
        raise InputError(
            f"The results are of different kinds, {first.kind!r} and {second.kind!r}; give two of one."
        )
    if first.kind not in PAIRED_BY:
        raise InputError(
            f"Results of kind {first.kind!r} are not paired with another; {', '.join(PAIRED_BY)} are."
        )
    for place, result in (("first", first), ("second", second)):
        if result.records is None:
            raise InputError(
                f"The {place} result was read from CSV, without the records that are paired; measure them again."
            )
