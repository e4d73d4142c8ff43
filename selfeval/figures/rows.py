"""The one form of a table of estimates, and the words that readers of figures and tables are told.

Nothing large is imported here but pandas: sentences and tables need no matplotlib.
"""

from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from selfeval.stats import table as tables
from selfeval.stats.table import CHANGE, COLUMNS  # noqa: F401

BESIDE = ["advantage", "discrimination"]  # whose BCa interval is shown beside the default one
BCA = "advantage_bca"  # what a reader's tables call the advantage with its BCa interval


@cache
def words() -> dict:
    """Return what readers of figures and tables are told: captions, titles, labels, names of methods."""
    return yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))


def default_rows(table: pd.DataFrame, *statistics: str, author: str | None = "") -> pd.DataFrame:
    """Return the default row (first policy, first method) of every statistic of every group, or of some statistics.

    author: whose rows; "" for those over all authors, None for all of them.
    """
    rows = table if author is None else table[table["author"].fillna("") == author]
    return tables.default_rows(rows, *statistics)


def with_bootstrap(table: pd.DataFrame, *statistics: str, author: str | None = "") -> pd.DataFrame:
    """Return default rows of statistics; `BCA` among them is the advantage with its BCa interval."""
    rows = default_rows(table, *statistics, author=author)
    second = bootstrapped(table).query("statistic == 'advantage'") if BCA in statistics else ()
    return pd.concat([rows, second.assign(statistic=BCA)]) if len(second) else rows


def bootstrapped(table: pd.DataFrame) -> pd.DataFrame:
    """Return the BCa rows of advantage and discrimination, over all authors, first policy."""
    rows = table
    return default_rows(rows[rows["method"] == "bca"], *BESIDE)
