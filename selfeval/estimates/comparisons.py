"""Paired differences of evaluators and of conditions."""

import pandas as pd

from selfeval.errors import InputError, check_one_of
from selfeval.figures.estimates import Estimates, check_measured, estimates_of
from selfeval.providers.client import verb


@verb
def compare(result: Estimates, by: str = "evaluator", other: str = "") -> Estimates:
    """Return paired differences with p adjusted by Holm: of evaluators, or of conditions.

    by: "evaluator" (first minus second), "condition" (self-recognition alone), or one part of the
    conditions that differs, such as "told"; or two evaluators, `by` and `other`. Pairs are made by
    prompt or template, over those that both have, so that what is easy or hard for all cancels. Two
    results, such as of May and of November, are compared where their records are measured as one,
    with what tells them apart in the condition: `{"may.jsonl": {"month": "May"}}`.
    """
    check_measured("compare", result)
    contrasts = result.tables.get("contrasts", pd.DataFrame(columns=["field"]))
    parts = contrasts["field"].unique()
    if other:
        ids = {name: model for model, name in (result.names or {}).items()}
        pair = {ids.get(by, by), ids.get(other, other)}
        pairs = compare(result)
        is_pair = [set(names.split(" - ")) == pair for names in pairs["evaluator"]]
        if not any(is_pair):
            raise InputError(f"{by!r} and {other!r} are no pair; {', '.join(ids)} are evaluators.")
        return pairs.loc[is_pair]
    check_one_of("by", by, ["evaluator", "condition", *parts])
    table = "paired" if by == "evaluator" else "contrasts"
    if table not in result.tables:
        raise InputError(f"Results of kind {result.kind!r} have no comparison by {by!r}.")
    differences = result.tables[table]
    if by in parts:
        differences = differences[differences["field"] == by]
    return estimates_of(result.kind, differences, {}, result.records, result.names)
