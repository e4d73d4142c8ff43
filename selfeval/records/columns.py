"""Columns of records as codes and numbers, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from selfeval.errors import InputError

TRUTH = {"true": 1, "1": 1, "1.0": 1, "false": 0, "0": 0, "0.0": 0}


def truth_codes(values: pd.Series, column: str) -> np.ndarray:
    """Return 1, 0 or -1 (null) for true, false and null, as booleans, numbers or text."""
    codes, unique = pd.factorize(values)
    if wrong := [value for value in unique if str(value).lower() not in TRUTH]:
        raise InputError(f"Column `{column}` must hold true, false or null, got {wrong[0]!r}.")
    return np.array([*(TRUTH[str(value).lower()] for value in unique), -1])[codes]


def same_codes(values: pd.Series) -> np.ndarray:
    """Return one code per distinct value, -1 for null; 1, 1.0 and "1" are one value."""
    codes, unique = pd.factorize(values)
    if not pd.api.types.is_numeric_dtype(unique):
        names = [str(value).removesuffix(".0") for value in unique]
        codes = np.append(pd.factorize(np.array(names, object))[0], -1)[codes]
    return codes


def shares(values: pd.Series, column: str) -> np.ndarray:
    """Return a column of numbers in [0, 1], NaN for null."""
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
    wrong = values.notna() & ~((numbers >= 0) & (numbers <= 1))
    if wrong.any():
        got = values[wrong].tolist()[0]
        raise InputError(f"Column `{column}` must hold numbers from 0 to 1 or null, got {got!r}.")
    return numbers


def ids(frame: pd.DataFrame, name: str) -> pd.Categorical:
    """Return a column of ids as a categorical in sorted order; a null is an error."""
    codes, unique = pd.factorize(frame[name], sort=True)
    if (codes < 0).any():
        raise InputError(
            f"Column `{name}` must not be null, but row {int(np.argmax(codes < 0))} is."
        )
    return pd.Categorical.from_codes(codes, unique)


def as_shown(names: pd.Series, shown: pd.Series) -> pd.Series:
    """Return the ids of sampled units, the first of those of which the same was shown.

    shown: what was shown of the unit in each row, such as a chat; null is not known.
    """
    unit, units = pd.factorize(names)
    content, contents = pd.factorize(shown)
    is_known = content >= 0
    size = len(units) + len(contents)
    ends = unit[is_known], len(units) + content[is_known]
    links = coo_array((np.ones(is_known.sum()), ends), (size, size))
    group = connected_components(links)[1][unit]
    return names.groupby(group).transform("first")


def all_shown(names: pd.Series, shown: pd.Series) -> pd.Series:
    """Return all that was shown of the sampled unit of each row; null where a part is not known."""
    of_unit = shown.mask(shown == "").groupby(names)
    is_whole = of_unit.count() == of_unit.size()
    together = of_unit.agg(lambda parts: "\n".join(sorted({*parts.dropna()})))
    return names.map(together[is_whole])


def check_once(frame: pd.DataFrame, key: Sequence[str], shown: Sequence[str]) -> None:
    """Raise where two rows have the same key.

    shown: the columns that tell the user which row it is.
    """
    twice = frame.duplicated(key)
    if twice.any():
        row = frame.loc[twice.idxmax(), shown]
        said = [f"{name} {value}" for name, value in row.items()]
        raise InputError(f"The records have {', '.join(said)} twice; keep one.")
