"""DataFrames that a notebook shows with what a reader looks for: records by their main fields, estimates as text."""

from collections.abc import Mapping, Sequence

import pandas as pd

from selfeval.figures.tables import BOUNDS, estimate_text, label, said
from selfeval.keys import visible

MAIN = (  # of records: what a reader looks for first
    "author_display", "conversation_id", "source", "model", "evaluator_model", "evaluator_display", "juror", "persona",
    "task_type", "family", "arm", "turn", "round", "prompt_id", "true_model", "truth", "foil", "target_display",
    "answer_type", "status", "words", "predicted_model", "predicted_self", "stance", "existence_score", "score", "text",
    "reply", "statement", "raw_response", "question", "answer",
)  # fmt: skip
FIRST, WIDTH = 8, 70
KINDS = {  # kind of a result: its tables, first that of its estimates
    "recognition": ("recognition", "counts", "roc", "contrasts", "paired", "models_in_general"),
    "implicit": ("implicit", "gaps"),
    "identity": ("identity", "paired"),
    "jury": ("jury", "verdicts"),
    "existence": ("existence",),
}
CSV = {"recognition": "self_recognition", "verdicts": "verdict_scores"}  # tables whose file has another name
TEXT = {  # columns that hold text, empty where there is nothing to say
    *"evaluator author task condition policy statistic method cluster_unit note conclusion field first second".split(),
    *"predicted source arm conversation_id agent".split(),
}
ESTIMATES = {*BOUNDS, "statistic", "evaluator", "p", "p_holm", "n", "clusters"}


class Records(pd.DataFrame):
    """Records, one a row: an ordinary DataFrame.

    failures: what was asked for and did not come. conversations: what verdicts are about, one a row. settings: how
    verdicts were made.
    """

    _metadata = ["failures", "conversations", "settings"]  # noqa: RUF012  what pandas carries from frame to frame
    failures: Sequence[Mapping] = ()
    conversations: Sequence | pd.DataFrame = ()
    settings: Mapping | None = None

    @property
    def _constructor(self):
        return Records

    def _repr_html_(self) -> str:
        if says(self.index):
            return html(pd.DataFrame(self))  # a table made from records, such as a pivot
        main = [name for name in MAIN if name in self] if self.shape[1] > FIRST else []  # a few were chosen by hand
        shown = pd.DataFrame(self)[main or list(self)].head(FIRST)
        left = f"{len(self)} rows, {self.shape[1]} columns; the first {len(shown)} and the main ones are shown"
        return html(shown) + f"<p>{left}; selfeval.show(frame) shows whole records.</p>" * (len(self) > 0)


class Estimates(pd.DataFrame):
    """Estimates, one statistic a row (`stats.COLUMNS`): an ordinary DataFrame that knows what it was measured on.

    kind: of `KINDS`. tables: all rows by name, with every policy and method, as they are saved.
    records: what was measured. names: {model id: display name}. endpoints: sentences on models that several endpoints
    served. first_attempts: estimates without what was asked for again. conversations: of a jury. settings: how it was
    measured, as captions say it.
    """

    _metadata = [  # noqa: RUF012
        "kind", "tables", "records", "names", "endpoints", "first_attempts", "conversations", "settings",
    ]  # fmt: skip
    kind: str = ""
    tables: Mapping[str, pd.DataFrame] | None = None
    records: pd.DataFrame | None = None
    names: Mapping[str, str] | None = None
    endpoints: Sequence[str] = ()
    first_attempts: pd.DataFrame | None = None
    conversations: Sequence = ()
    settings: Mapping | None = None

    @property
    def _constructor(self):
        return Estimates

    def __repr__(self) -> str:
        return repr(self._short())

    def _repr_html_(self) -> str:
        return html(self._short())

    def _short(self) -> pd.DataFrame:
        """Return what a reader looks for: labels that are there, estimates and p as texts, and over how much."""
        rows = pd.DataFrame(self)
        if not {*rows} >= ESTIMATES:
            return rows
        labels = ["evaluator", "author", "task", "condition", "field", "first", "second"]
        shown = rows[[name for name in labels if name in rows and rows[name].fillna("").ne("").any()]]
        if "evaluator" in shown:
            shown = shown.assign(evaluator=[label(name, self.names) for name in shown["evaluator"]])
        text = [estimate_text(*bounds) for bounds in rows[BOUNDS].itertuples(index=False)]
        pairs = rows["evaluator"].str.contains(" - ", regex=False).any()
        told = said(rows) if pairs else said(rows, "p_holm")
        return shown.assign(statistic=rows["statistic"], estimate=text, **told, n=rows["n"], clusters=rows["clusters"])

    def drawn(self) -> dict[str, pd.DataFrame]:
        """Return the tables to draw: of the main one all methods and policies of what is in these rows."""
        if not self.tables:
            return {self.kind: pd.DataFrame(self)}
        (main, table), *_ = self.tables.items()
        keys = ["evaluator"] if self.kind == "identity" else ["evaluator", "task", "condition"]  # families are drawn
        here = pd.MultiIndex.from_frame(self[keys].fillna(""))
        return self.tables | {main: table[pd.MultiIndex.from_frame(table[keys].fillna("")).isin(here)]}


def says(index: pd.Index) -> bool:
    """Tell whether an index is more than the places of its rows: a reader of a pivot table needs it."""
    return any(name is not None for name in index.names) or not pd.api.types.is_integer_dtype(index)


def html(frame: pd.DataFrame) -> str:
    """Return a table as HTML with short, escaped cells, and its index if it `says` something; pandas says how short."""

    def short(cell):
        return visible(str(cell)[:width]) if isinstance(cell, str | list | dict) else cell

    width = max(WIDTH, pd.get_option("display.max_colwidth") or WIDTH)
    shown, how = frame.map(short).rename(index=short, columns=short), {"na_rep": "", "border": 0, "max_rows": 60}
    with pd.option_context("display.html.use_mathjax", False, "display.max_colwidth", width):
        return shown.to_html(index=says(frame.index), float_format="{:.3g}".format, **how)
