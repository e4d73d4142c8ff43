"""What a record was asked under: read from a mapping or text, compared and printed in one way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import pandas as pd
import yaml

from selfeval.bounds import read_yaml
from selfeval.errors import InputError

LEFT_OUT = {"provenance": "quoted"}  # what conditions have only where it is another

OBJECT = re.compile(r"\s*\{\s*['\"]")  # how a mapping begins in a CSV, as JSON or as Python shows it


def mapped(values: Sequence, of: Callable) -> list:
    """Return what a function makes of each value; it is called once for equal texts, and for what is one object."""
    keys = values if {*map(type, values)} <= {str, float, type(None)} else [*map(id, values)]  # 1 is no True
    made = {key: of(value) for key, value in dict(zip(keys, values, strict=True)).items()}
    return [*map(made.get, keys)]


def condition_of(condition) -> dict:
    """Return a record's condition as a mapping; a file may have it as text: "key=value;...", or as `OBJECT`.

    Raises `InputError` where such an object cannot be read.
    """
    if isinstance(condition, str) and OBJECT.match(condition):
        return plain_yaml(condition.replace(": None", ": null"))
    if isinstance(condition, str):
        return dict(map(str.strip, part.split("=", 1)) for part in condition.split(";") if "=" in part)
    return condition if isinstance(condition, dict) else {}


def plain_yaml(cell: str):
    """Return the list or mapping that a cell of a table holds as JSON, YAML or Python shows it; else `InputError`."""
    try:
        return read_yaml(cell)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = str(getattr(error, "problem", None) or error).partition("\n")[0]
        raise InputError(f"is {cell!r:.80}, which cannot be read ({why}); write it as JSON.") from error


def names_author(condition) -> bool:
    """Tell whether judges of pairs were asked for the text of `true_model` by name.

    Otherwise `question` says what all were asked alike: which text is `better`, or which they `authored` themselves.
    """
    return condition_of(condition).get("question") not in ("authored", "better")


def condition_label(condition) -> str:
    """Write a condition (mapping, "k=v;k=v" text or null) in one form: keys sorted, true and false in lower case."""
    if isinstance(condition, dict):
        parts = [f"{k}={'' if v is None else v}" for k, v in condition.items()]
    elif pd.isna(condition):
        return ""
    else:
        parts = [part.strip() for part in str(condition).split(";") if part.strip()]
    pairs = [part.partition("=") for part in parts]
    return ";".join(sorted(k + s + (v.lower() if v in ("True", "False") else v) for k, s, v in pairs))


def conditions(frame: pd.DataFrame) -> pd.Series:
    """Return the condition label of each row, as categories."""
    labels = mapped(frame["condition"].tolist(), condition_label) if "condition" in frame else [""] * len(frame)
    return pd.Series(pd.Categorical(labels), frame.index)


def varying_parts(conditions: Iterable[str]) -> dict[str, str]:
    """Return {condition label: what of it is not the same in all of them}."""
    parts = {condition: str(condition).split(";") for condition in conditions}
    for name, usual in LEFT_OUT.items():
        if any(part.startswith(f"{name}=") for of in parts.values() for part in of):
            parts = {c: of if f"{name}=" in c else [*of, f"{name}={usual}"] for c, of in parts.items()}
    common = set.intersection(*map(set, parts.values())) - {"question=good"} if parts else set()  # no claim
    return {condition: ";".join(p for p in of if p not in common) for condition, of in parts.items()}
