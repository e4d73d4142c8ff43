"""Estimates, as the `measure_...` verbs return them: their kinds, and how they are drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from selfeval.condition import varying_parts
from selfeval.errors import InputError, check_one_of
from selfeval.providers.client import verb
from selfeval.results import (
    BOUNDS,
    Records,
    as_text,
    estimate_text,
    html,
    labels_said,
    model_name,
    texts_behind,
)
from selfeval.statistics.table import default_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from selfeval.figures.style import Drawing


@dataclass(frozen=True)
class Kind:
    """A kind of result.

    tables: their names; the first, of the estimates, is that of the kind. main: the statistics that
    are read first, in the order of columns.
    """

    tables: tuple[str, ...]
    main: tuple[str, ...] = ()


KINDS = {
    "recognition": Kind(
        ("recognition", "counts", "roc", "contrasts", "paired"),
        (
            *("self_accuracy", "false_claim_rate", "advantage", "discrimination"),
            *("peer_corrected", "own_minus_neutral", "pair_fixed"),
            *("sensitivity_auc", "sensitivity_d_prime"),  # of comparisons
        ),
    ),
    "implicit": Kind(("implicit", "gaps")),
    "identity": Kind(
        ("identity", "paired", "foils", "attack"),
        ("claim_discrimination", "accept_true", "accept_false"),
    ),
    "jury": Kind(("jury", "verdicts"), ("auc", "paired_accuracy", "difference")),
    "existence": Kind(("existence",)),
}
FILES = {"recognition": "self_recognition", "verdicts": "verdict_scores"}
NO_ANSWER = ("no_answer_rate", "error_rate")  # how often there is no answer, by kind of result
TEXT = {  # columns that hold text, empty where there is nothing to say
    *"evaluator author task condition policy statistic method cluster_unit note conclusion".split(),
    *"field first second predicted source arm conversation_id agent".split(),
}
LABELS = ["evaluator", "author", "task", "condition", "field", "first", "second"]
NEEDED = {*BOUNDS, "statistic", "evaluator", "p", "p_holm", "n", "clusters"}


def file_of(table: str) -> str:
    """Return the name of the file that keeps a table, without its ending."""
    return FILES.get(table, table)


class Estimates(Records):
    """Estimates, one statistic a row (`stats.COLUMNS`): a DataFrame that knows what was measured.

    kind: of `KINDS`. tables: all rows by name, with every policy and method, as they are saved.
    records: what was measured. names: {model id: display name}. conversations: of a jury.
    """

    _metadata = ["kind", "tables", "records", "names", "conversations"]  # noqa: RUF012
    kind: str = ""
    tables: dict[str, pd.DataFrame] = {}  # noqa: RUF012 - replaced as a whole
    records: pd.DataFrame | None = None
    names: Mapping[str, str] | None = None

    @property
    def plot(self) -> Callable:
        """Draw the result: `result.plot()`, `result.plot("roc", ax=ax)`."""
        return partial(plot, self)

    def __repr__(self) -> str:
        main = KINDS[self.kind].main if self.kind else ()
        is_main = self["statistic"].isin(main) if "statistic" in self else pd.Series(dtype=bool)
        if is_main.all() or not is_main.any():
            return as_text(self.short())
        rows = f"{is_main.sum()} of {len(self)} rows"
        return f"{as_text(self[is_main].short())}\n{rows}; pd.DataFrame(result) shows all."

    def _repr_html_(self) -> str:
        return html(self.short())

    def is_complete(self) -> bool:
        """Tell whether the columns that make estimates are all there."""
        return {*self} >= NEEDED

    def short(self) -> pd.DataFrame:
        """Return what a reader looks for: labels that say something, estimates as texts, n."""
        rows = pd.DataFrame(self)
        if not self.is_complete():
            return rows
        if "condition" in rows:
            varying = varying_parts(rows["condition"].dropna().unique())
            rows = rows.assign(condition=rows["condition"].map(varying))
        shown = rows[labels_said(rows, LABELS)]
        if "evaluator" in shown:
            evaluators = [model_name(name, self.names) for name in shown["evaluator"]]
            shown = shown.assign(evaluator=evaluators)
        of_pairs = rows["evaluator"].str.contains(" - ", regex=False).any()
        return shown.assign(
            statistic=rows["statistic"],
            estimate=[estimate_text(*bounds) for bounds in rows[BOUNDS].to_numpy()],
            **texts_behind(rows, adjusted=of_pairs),
            n=rows["n"],
            clusters=rows["clusters"],
        )

    def drawn(self) -> dict[str, pd.DataFrame]:
        """Return the tables to draw: the main one with all methods and policies of these rows."""
        keys = ["evaluator", "task", "condition"]
        table = self.tables[self.kind]
        here = pd.MultiIndex.from_frame(self[keys].fillna(""))
        of_table = pd.MultiIndex.from_frame(table[keys].fillna(""))
        return self.tables | {self.kind: table[of_table.isin(here)]}


def check_measured(verb: str, result) -> None:
    """Raise `InputError` for what is no result, such as the answers behind one."""
    if not isinstance(result, Estimates) or not result.is_complete():
        given = type(result).__name__
        taken = "what `measure_...` returned, with all its columns"
        raise InputError(f"`{verb}` takes {taken}, got {given}; measure it first.")


@verb
def plot(result: Estimates, kind: str = "", *, ax: "Axes | None" = None) -> "Drawing | Axes | None":
    """Draw a result: its main figure, or that of a kind ("claimed", "roc", "survival", ...).

    `result.plot()` does the same. The figure shows itself in a notebook, and elsewhere by its
    `show()`; its `save("figure.pdf")` writes PDF, SVG and PNG. ax: of `plt.subplots()`, to draw at
    their place in a figure of yours; these are then returned. Where a result has nothing to draw, a
    sentence says so.
    """
    check_measured("plot", result)
    from selfeval.figures import plots, style  # matplotlib, not before a figure is wanted

    kinds = plots.PLOTS[result.kind]
    kind = kind or next(iter(kinds))
    check_one_of("kind", kind, kinds)
    before = style.PLACE.set(ax)
    try:
        drawn = kinds[kind](result.drawn(), result.names or {})
    finally:
        style.PLACE.reset(before)
    if drawn is None:
        print(f"This result has nothing to draw as {kind!r}.")
    return drawn if ax is None else ax


def estimates_of(kind, table, more, frame, names, statistics=()) -> Estimates:
    """Return the default rows of a table, of a jury with those of each source.

    They keep all that was measured: the table itself and `more`, the records and display names.
    """
    for name in statistics:
        check_one_of("statistics", name, table["statistic"].unique())
    rows = table
    if kind != "jury":
        rows = table[table["author"] == ""]
    estimates = Estimates(default_rows(rows, *statistics).reset_index(drop=True))
    estimates.kind = kind
    estimates.tables = {kind: table, **more}
    estimates.records = frame
    estimates.names = names
    return estimates
