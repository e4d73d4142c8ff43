"""What a record was asked under: read from a mapping or text, compared and printed in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pandas as pd

LEFT_OUT = {"provenance": "quoted"}  # what conditions have only where it is another


def mapped(values: Sequence, of: Callable) -> list:
    """Return what a function makes of each value; it is called once for equal texts."""
    keys = values
    if not {*map(type, values)} <= {str, float, type(None)}:  # 1 is no True
        keys = [*map(id, values)]
    distinct = dict(zip(keys, values, strict=True))
    made = {key: of(value) for key, value in distinct.items()}
    return [made[key] for key in keys]


def condition_of(condition) -> dict:
    """Return a record's condition as a mapping; a file may have it as "key=value;..."."""
    if isinstance(condition, dict):
        return condition
    if not isinstance(condition, str):
        return {}
    read = {}
    for part in parts_of(condition):
        name, equals, value = part.partition("=")
        if equals:
            read[name.strip()] = value.strip()
    return read


def names_author(condition) -> bool:
    """Tell whether judges of pairs were asked for the text of `true_model` by name.

    Otherwise `question` says what all were asked alike: which text is `better`, or which they
    `authored` themselves.
    """
    return condition_of(condition).get("question") not in ("authored", "better")


def condition_label(condition) -> str:
    """Write a condition (mapping, "k=v;k=v" text or null) in one form.

    Keys are sorted, true and false are in lower case.
    """
    if isinstance(condition, dict):
        parts = [f"{name}={'' if value is None else value}" for name, value in condition.items()]
    elif pd.isna(condition):
        return ""
    else:
        stripped = [part.strip() for part in parts_of(condition)]
        parts = [part for part in stripped if part]
    return ";".join(sorted(map(_with_plain_truth, parts)))


def parts_of(label) -> list[str]:
    """Return the parts of a condition's label, each "name=value"."""
    return str(label).split(";")


def _with_plain_truth(part: str) -> str:
    name, equals, value = part.partition("=")
    if value in ("True", "False"):
        value = value.lower()
    return name + equals + value


def conditions(frame: pd.DataFrame) -> pd.Series:
    """Return the condition label of each row, as categories."""
    labels = [""] * len(frame)
    if "condition" in frame:
        labels = mapped(frame["condition"].tolist(), condition_label)
    return pd.Series(pd.Categorical(labels), frame.index)


def varying_parts(conditions: Iterable[str]) -> dict[str, str]:
    """Return {condition label: what of it is not the same in all of them}."""
    parts = {label: parts_of(label) for label in conditions}
    for name, usual in LEFT_OUT.items():
        lacking = [label for label in parts if f"{name}=" not in str(label)]
        if len(lacking) < len(parts):
            for label in lacking:
                parts[label].append(f"{name}={usual}")
    if not parts:
        return {}
    common = set.intersection(*map(set, parts.values()))
    common.discard("question=good")  # no claim
    differing = {}
    for label, of_label in parts.items():
        differing[label] = ";".join(part for part in of_label if part not in common)
    return differing
