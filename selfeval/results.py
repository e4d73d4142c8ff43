"""Estimates as a reader wants them: as text, side by side, with what they say; and the DataFrames that verbs return."""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd

from selfeval.condition import varying_parts
from selfeval.providers.models import models
from selfeval.reading.parsing import DOUBTFUL
from selfeval.secrets import redact, visible
from selfeval.statistics.table import default_rows

BOUNDS = ["estimate", "low", "high"]
LABELS = ["task", "condition", "change", "author", "evaluator"]  # of a row for print, from the left
BCA = "advantage_bca"  # the advantage with its BCa bootstrap interval
ALL = "all evaluators"  # what a reader sees where `evaluator` is empty: a value pooled over them

KEPT = {  # what was made of answers on record that are not in the raw replies
    "as recorded": "They are kept, unverified; where names were filled in for no answer, set `reread: yes`.",
    "as read": "They are taken back; where the replies were cut off when stored, set `reread: no`.",
}


def estimate_text(estimate: float, low: float, high: float) -> str:
    """Return "0.12 [-0.01, 0.25]"; empty without an estimate, without brackets where there is no interval."""
    if pd.isna(estimate):
        return ""
    estimate, low, high = (float(f"{number:.6g}") for number in (estimate, low, high))  # as files keep them: -.075
    whole = f"{estimate:z.2f}" if abs(estimate) < 10 else f"{estimate:.0f}"
    return whole if pd.isna(low) or pd.isna(high) else f"{whole} [{low:z.2f}, {high:z.2f}]"


def p_text(p: float) -> str:
    """Return "0.034" or "< 0.001"."""
    return "" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def label(name: str, display: Mapping[str, str] | None) -> str:
    """Return how a model, or a pair of them ("first - second"), is called."""
    known = display or {}
    return visible(known.get(name) or " - ".join(known.get(part, part) for part in name.split(" - ")))


def in_order(names: Iterable[str]) -> list[str]:
    """Return names each once, in the one order of rows: models as the registry lists them, others, simulated ones."""
    place = {name: k for k, name in enumerate(models())}
    return sorted(dict.fromkeys(names), key=lambda name: (name.startswith("sim/"), place.get(name, len(place))))


REMARKS = {"conclusion": str, "detectable": "{:.2f}".format, "p": p_text, "p_holm": p_text}  # behind estimates


def texts_behind(rows: pd.DataFrame, *without: str) -> dict[str, list[str]]:
    """Return as texts what stands behind estimates, as far as there is something to say."""
    names = [name for name in REMARKS if name in rows and name not in without]
    found = {name: [REMARKS[name](value) if pd.notna(value) else "" for value in rows[name]] for name in names}
    return {name: texts for name, texts in found.items() if any(texts)}


class Table(pd.DataFrame):
    """A table that is shown with all its columns, and without an index that says nothing."""

    @property
    def _constructor(self):
        return type(self)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return html(self)


def summary(table: pd.DataFrame, statistics: Sequence[str], display: Mapping[str, str] | None = None) -> Table:
    """Show statistics side by side as "estimate [low, high]", one row per evaluator and design, with what they say.

    Takes each statistic's default method and policy. Behind the estimates stand `conclusion`, `detectable`, p, n and
    clusters of one of them: of the first that a conclusion is drawn from, else that was tested, else that the row has.
    Of contrasts of conditions a row is a `change` from one to the other.
    """
    rows = default_rows(table, *statistics)
    if "field" in rows:
        rows = rows.assign(change=rows["field"] + ": " + rows["first"] + " → " + rows["second"])
    rows["condition"] = rows["condition"].map(varying_parts(rows["condition"].unique()))
    index = [name for name in LABELS if name in rows and rows[name].fillna("").ne("").any()] or ["evaluator"]
    rows = rows.assign(**{name: rows[name].fillna("") for name in index})
    place = {name: k for k, name in enumerate(in_order(rows["evaluator"]))}
    design = rows.groupby([name for name in index if name != "evaluator"] or "level", sort=False).ngroup()
    rows = rows.iloc[np.lexsort((rows["evaluator"].map(place), design))]
    rows = rows.assign(shown=[estimate_text(*bounds) for bounds in rows[BOUNDS].itertuples(index=False)])
    wide = rows.pivot_table(index=index, columns="statistic", values="shown", aggfunc="first", sort=False)
    wide = wide.reindex(columns=[name for name in statistics if name in wide]).fillna("").rename_axis(columns=None)
    told = rows["estimate"].notna() | rows.get("conclusion", pd.Series("", rows.index)).ne("")
    found = {name: rows[(rows["statistic"] == name) & told] for name in statistics}
    ranked = sorted(found.values(), key=lambda part: (not any(part.get("conclusion", ())), part["p"].isna().all()))
    main = pd.concat([*ranked, rows]).drop_duplicates(index).set_index(index).reindex(wide.index)
    wide = wide.assign(**texts_behind(main, "p_holm"))
    wide[["n", "clusters"]] = main[["n", "clusters"]]
    wide = wide.reset_index()
    if "evaluator" in wide:
        wide["evaluator"] = [label(name, display) or ALL for name in wide["evaluator"]]
    return Table(wide)


def reading(records: pd.DataFrame, changes: pd.DataFrame, display: Mapping[str, str] | None = None) -> list[str]:
    """Say what reading left out, took for something else or took back: lines to stand above the first table.

    records, changes: of `answers.rescore`. Where more than a fifth of an evaluator's recorded answers are not in its
    raw replies, five of these replies follow.
    """
    lines = list(records.attrs.get("notes", ()))
    for change in changes.to_dict("records"):
        had, taken = change["on record"], change["removed"] + change["changed"]
        if taken <= DOUBTFUL * had:
            continue
        task, evaluator = change["task_type"], change["evaluator_model"]
        lines.append(
            f"{task}, {label(evaluator, display)}: {taken} of {had} answers on record ({taken / had:.0%}) are not in "
            f"the raw replies. {KEPT[change['answers']]} Five of the replies:"
        )
        lost = (records["task_type"] == task) & (records["evaluator_model"] == evaluator) & records["recorded"].notna()
        for answer, reply in records.loc[lost, ["recorded", "reply"]].head(5).to_numpy():
            lines.append(f"    {answer!r} on record, reply: {' '.join(visible(reply).split())[:200]!r}")
    return lines


# DataFrames that show what a reader looks for first: records by their main fields, estimates as text ------------------


MAIN = (  # of records: what a reader looks for first
    "author_display", "conversation_id", "source", "model", "evaluator_model", "evaluator_display", "juror", "persona",
    "task_type", "family", "arm", "turn", "round", "prompt_id", "true_model", "truth", "foil", "target_display",
    "answer_type", "status", "words", "predicted_model", "predicted_self", "stance", "existence_score", "score", "text",
    "reply", "statement", "raw_response", "question", "answer",
)  # fmt: skip
FIRST, WIDTH = 8, 70
TEXTS = str | list | dict  # cells that are shown in short
SHOWN = {  # of each kind of result: what is read first, in the order of columns
    "recognition": ("self_accuracy", "false_claim_rate", "advantage", "discrimination"),
    "identity": ("claim_discrimination", "accept_true", "accept_false"),
    "jury": ("auc", "paired_accuracy", "difference"),
}
NO_ANSWER = ("no_answer_rate", "error_rate")  # how often there is no answer, by kind of result
KINDS = {  # kind of a result: its tables, first that of its estimates
    "recognition": ("recognition", "counts", "roc", "contrasts", "paired"),
    "implicit": ("implicit", "gaps"),
    "identity": ("identity", "paired", "foils"),
    "jury": ("jury", "verdicts"),
    "existence": ("existence",),
    "log": ("log", "paired"),
}
CSV = {"log": "inspect_log", "recognition": "self_recognition", "verdicts": "verdict_scores"}  # whose file is another
TEXT = {  # columns that hold text, empty where there is nothing to say
    *"evaluator author task condition policy statistic method cluster_unit note conclusion field first second".split(),
    *"predicted source arm conversation_id agent".split(),
}
ESTIMATES = {*BOUNDS, "statistic", "evaluator", "p", "p_holm", "n", "clusters"}


class Records(pd.DataFrame):
    """Records, one a row: an ordinary DataFrame.

    failures: requests that returned nothing. conversations: what verdicts are about, one a row.
    """

    _metadata = ["failures", "conversations"]  # noqa: RUF012  what pandas carries from frame to frame
    failures: Sequence[Mapping] = ()
    conversations: Sequence | pd.DataFrame = ()

    @property
    def _constructor(self):
        return type(self)

    def _main(self) -> pd.DataFrame:
        """Return the first records by their main fields; a table made from records, such as a pivot, as it is."""
        main = [name for name in MAIN if name in self] if self.shape[1] > FIRST else []  # a few were chosen by hand
        return pd.DataFrame(self) if says(self.index) else pd.DataFrame(self)[main or list(self)].head(FIRST)

    def _left_out(self, shown: pd.DataFrame) -> str:
        left = f"{len(self)} rows, {self.shape[1]} columns; the first {len(shown)} and the main ones are shown"
        return f"{left}; selfeval.show(frame) shows whole records." * (self.shape != shown.shape)

    def __repr__(self) -> str:
        shown = self._main()
        return as_text(shown) + f"\n{self._left_out(shown)}".rstrip()

    def _repr_html_(self) -> str:
        shown = self._main()
        return html(shown) + (f"<p>{left}</p>" if (left := self._left_out(shown)) else "")


class Plotting(pd.plotting.PlotAccessor):
    """`result.plot()` is our figure of a result; `result.plot.scatter(...)` and plots of other frames are pandas'.

    draw: `selfeval.plot`, which stands above this module.
    """

    draw: Callable

    def __call__(self, *args, **how):
        """Draw as `selfeval.plot` does; with the name of a pandas plot, or x and y, as pandas does."""
        frame, asked = self._parent, {*args, *how, how.get("kind")}
        ours = frame.tables and {*frame} >= ESTIMATES and asked.isdisjoint({"x", "y", *self._all_kinds})
        return self.draw(frame, *args, **how) if ours else super().__call__(*args, **how)


class Estimates(Records):
    """Estimates, one statistic a row (`stats.COLUMNS`): an ordinary DataFrame that knows what it was measured on.

    kind: of `KINDS`. tables: all rows by name, with every policy and method, as they are saved.
    records: what was measured. names: {model id: display name}. conversations: of a jury.
    """

    _metadata = ["kind", "tables", "records", "names", "conversations"]  # noqa: RUF012
    kind: str = ""
    tables: Mapping[str, pd.DataFrame] | None = None
    records: pd.DataFrame | None = None
    names: Mapping[str, str] | None = None

    @property
    def plot(self) -> Plotting:
        """Draw the result: `result.plot()`, `result.plot("roc", ax=ax)`."""
        return Plotting(self)

    def __repr__(self) -> str:
        first = self["statistic"].isin(SHOWN.get(self.kind, ())) if "statistic" in self else pd.Series(dtype=bool)
        if first.all() or not first.any():
            return as_text(self.short())
        return f"{as_text(self[first].short())}\n{first.sum()} of {len(self)} rows; pd.DataFrame(result) shows all."

    def _repr_html_(self) -> str:
        return html(self.short())

    def short(self) -> pd.DataFrame:
        """Return what a reader looks for: labels that are there, estimates and p as texts, and over how much."""
        rows = pd.DataFrame(self)
        if not {*rows} >= ESTIMATES:
            return rows
        if "condition" in rows:
            rows = rows.assign(
                condition=rows["condition"].fillna("").map(varying_parts(rows["condition"].dropna().unique()))
            )
        labels = ["evaluator", "author", "task", "condition", "field", "first", "second"]
        shown = rows[[name for name in labels if name in rows and rows[name].fillna("").ne("").any()]]
        if "evaluator" in shown:
            shown = shown.assign(evaluator=[label(name, self.names) for name in shown["evaluator"]])
        text = [estimate_text(*bounds) for bounds in rows[BOUNDS].itertuples(index=False)]
        pairs = rows["evaluator"].str.contains(" - ", regex=False).any()
        told = texts_behind(rows) if pairs else texts_behind(rows, "p_holm")
        return shown.assign(statistic=rows["statistic"], estimate=text, **told, n=rows["n"], clusters=rows["clusters"])

    def drawn(self) -> dict[str, pd.DataFrame]:
        """Return the tables to draw: of the main one all methods and policies of what is in these rows."""
        (main, table), *_ = self.tables.items()
        keys = ["evaluator"] if self.kind == "identity" else ["evaluator", "task", "condition"]  # families are drawn
        here = pd.MultiIndex.from_frame(self[keys].fillna(""))
        return self.tables | {main: table[pd.MultiIndex.from_frame(table[keys].fillna("")).isin(here)]}


def says(index: pd.Index) -> bool:
    """Tell whether an index is more than the places of its rows: a reader of a pivot table needs it."""
    return any(name is not None for name in index.names) or not pd.api.types.is_integer_dtype(index)


def shortened(text: str, width: int = WIDTH) -> str:
    """Return a text of `width` characters at most: a longer one ends behind a word, with " …"."""
    if len(text) <= width:
        return text
    head = text[: width - 1]
    whole_words = head.rpartition(" ")[0] or head
    return f"{whole_words.rstrip()} …"


def as_text(frame: pd.DataFrame) -> str:
    """Return a table as text with all its columns and short cells, and its index if it `says` something."""

    def short(cell):
        if not isinstance(cell, TEXTS):
            return cell
        return shortened(" ".join(visible(str(cell)).split()))

    shown = frame.map(short)
    return shown.to_string(index=says(frame.index), float_format="{:.3g}".format, na_rep="", max_rows=60)


def html(frame: pd.DataFrame) -> str:
    """Return a table as HTML with short, escaped cells, and its index if it `says` something.

    pandas' `display.max_colwidth` says how short, where it is a number above `WIDTH`.
    """
    width = max(WIDTH, pd.get_option("display.max_colwidth") or WIDTH)

    def short(cell):
        return shortened(visible(str(cell)), width) if isinstance(cell, TEXTS) else cell

    shown = frame.map(short).rename(index=short, columns=short)
    how = {"na_rep": "", "border": 0, "max_rows": 60}
    with pd.option_context("display.html.use_mathjax", False, "display.max_colwidth", None):
        return shown.to_html(index=says(frame.index), float_format="{:.3g}".format, **how)


# single records as cards ----------------------------------------------------------------------------------------------


SHORT = 100  # characters of a text that is a fact; a longer one is a passage
ABOUT = ("role", "speaker", "test_id", "test_type", "status")  # of one message, turn or test
LEFT = "text-align:left;vertical-align:top;word-break:normal"  # a word stays whole, also in JupyterLab
LABEL = f'<th align="left" valign="top" width="150" style="{LEFT};font-weight:normal">{{}}</th>'
SCROLLS = "max-height:26em;overflow:auto;white-space:pre-wrap;overflow-wrap:break-word"
PASSAGE = f'<td align="left" style="{LEFT}"><div style="{SCROLLS}">{{}}</div></td>'
CARD = '<p><b>{}</b></p>\n<table style="max-width:64em">\n{}\n</table>'


def as_lines(text: str) -> str:
    """Return a text as HTML that keeps its lines also where styles are stripped, as on GitHub."""
    return escape(visible(text)).replace("\n", "<br>")


@dataclasses.dataclass
class Card:
    """What is shown of a record. parts: (label, text)."""

    title: str
    parts: list[tuple[str, str]]

    def _repr_html_(self) -> str:
        rows = []
        for label, text in self.parts:
            cells = LABEL.format(as_lines(label)) + PASSAGE.format(as_lines(text))
            rows.append(f"<tr>{cells}</tr>")
        return CARD.format(as_lines(self.title), "\n".join(rows))

    def __repr__(self) -> str:
        lines = [self.title]
        for label, text in self.parts:
            if len(text) <= SHORT and "\n" not in text:
                lines.append(f"  {label}: {text}")
            else:
                lines += [f"  {label}:", *(f"  | {line}" for line in visible(text).split("\n"))]
        return "\n".join(map(visible, lines))


def card(record) -> Card:
    """Return what is shown of a record or object: its fields, with messages and turns one by one."""
    title, row = type(record).__name__, record
    if not isinstance(record, Mapping):
        row = record.to_dict() if hasattr(record, "to_dict") else vars(record)
    parts = []
    for name, value in row.items():
        empty = isinstance(value, str | list | tuple | dict) and not value
        if not empty and not (pd.api.types.is_scalar(value) and pd.isna(value)) and name != "logprobs":
            whole = isinstance(value, str) and (len(value) > SHORT or "\n" in value)
            shown = value if whole else redact(brief(value))  # an address may hold a password
            parts += passages(value) or [(str(name).replace("_", " "), shown)]
    return Card("Record" if title in ("dict", "Series") else title, parts)


def passages(value) -> list[tuple[str, str]]:
    """Return messages, turns, texts or results of tests as (who or what, text); [] for anything else."""
    found = []
    for part in value if isinstance(value, list | tuple) else ():
        name = isinstance(part, Mapping) and next((n for n in ("content", "text", "response") if n in part), None)
        if not name:
            return []
        about = ", ".join(str(part[n]) for n in ABOUT if part.get(n) not in (None, "", "ok"))
        found.append((about, str(part[name] or "")))
    return found


def brief(value) -> str:
    """Return a value in a few words; facts have no room for more."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={brief(part)}" for name, part in value.items() if part not in (None, ""))
    text = ", ".join(map(brief, value)) if isinstance(value, list | tuple) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 2 * SHORT else text[: 2 * SHORT] + " …"


def display(shown) -> None:
    """Display an object in a notebook, and print it elsewhere, where IPython may not be installed."""
    shell = sys.modules.get("IPython.display")
    (shell.display if shell else print)(shown)


def show(*records, limit: int = 5) -> None:
    """Show records of any kind as cards; of a list or table of records the first `limit`.

    A record is a row of any file of this project (a dictionary, a row of a DataFrame), a reply, a request, a
    conversation, or any other object of this package.
    """
    for record in records:
        table = isinstance(record, pd.DataFrame)
        many = record.to_dict("records") if table else record if isinstance(record, list) else [record]
        for one in many[:limit]:
            display(card(one))
        if len(many) > limit:
            print(f"… and {len(many) - limit} more; `limit` shows more of them.")
