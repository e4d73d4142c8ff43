"""How results show themselves: estimates as text and side by side, records as tables and cards."""

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import pandas as pd

from selfeval.condition import varying_parts
from selfeval.providers.models import models
from selfeval.reading.parsing import DOUBTFUL
from selfeval.secrets import redact, visible
from selfeval.statistics.table import default_rows

BOUNDS = ["estimate", "low", "high"]
LABELS = ["task", "condition", "change", "author", "evaluator"]  # of a row for print, from the left
# The advantage with its percentile bootstrap interval.
BOOTSTRAP = "advantage_bootstrap"
ALL = "all evaluators"  # what a reader sees where `evaluator` is empty: a value pooled over them

FILLED_IN = "where names were filled in for no answer, set `reread: yes`."
KEPT = {  # what was made of answers on record that are not in the raw replies
    "as recorded": f"They are kept, unverified; {FILLED_IN}",
    "as read": "They are taken back; where the replies were cut off when stored, set `reread: no`.",
}


# estimates as text


def estimate_text(estimate: float, low: float, high: float) -> str:
    """Return "0.12 [-0.01, 0.25]"; empty without an estimate, no brackets without an interval."""
    if pd.isna(estimate):
        return ""
    # As files keep them: -.075.
    estimate, low, high = (float(f"{number:.6g}") for number in (estimate, low, high))
    whole = f"{estimate:.0f}"
    if abs(estimate) < 10:
        whole = f"{estimate:z.2f}"
    if pd.isna(low) or pd.isna(high):
        return whole
    return f"{whole} [{low:z.2f}, {high:z.2f}]"


def p_text(p: float) -> str:
    """Return "0.034" or "< 0.001"."""
    if pd.isna(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def model_name(name: str, display: Mapping[str, str] | None) -> str:
    """Return how a model, or a pair of them ("first - second"), is called."""
    known = display or {}
    pair = " - ".join(known.get(part, part) for part in name.split(" - "))
    return visible(known.get(name) or pair)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names once each in the order of all rows: the registry's, others, simulated ones."""
    place = {name: number for number, name in enumerate(models())}
    each_once = dict.fromkeys(names)
    listed_first = sorted(each_once, key=lambda name: place.get(name, len(place)))
    return sorted(listed_first, key=lambda name: name.startswith("sim/"))


def labels_said(rows: pd.DataFrame, labels: Sequence[str]) -> list[str]:
    """Return the labels that say something of some row."""
    said = rows.reindex(columns=labels).astype(object).fillna("").ne("").any()
    return said.index[said].tolist()


REMARKS = {"conclusion": str, "detectable": "{:.2f}".format, "p": p_text, "p_holm": p_text}


def texts_behind(rows: pd.DataFrame, *, adjusted: bool) -> dict[str, list[str]]:
    """Return as texts what stands behind estimates, where it says something.

    adjusted: also p after Holm's adjustment.
    """
    remarks = {}
    for name, written in REMARKS.items():
        if name not in rows or (name == "p_holm" and not adjusted):
            continue
        texts = rows[name].map(written, na_action="ignore")
        texts = texts.astype(object).fillna("")
        if any(texts):
            remarks[name] = texts.tolist()
    return remarks


class Table(pd.DataFrame):
    """A table that is shown with all its columns, and without an index that says nothing."""

    @property
    def _constructor(self):
        return type(self)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return html(self)


def summary(
    table: pd.DataFrame,
    statistics: Sequence[str],
    display: Mapping[str, str] | None = None,
) -> Table:
    """Show statistics side by side as "estimate [low, high]", a row per evaluator and design.

    Each statistic is taken by its default method and policy. Behind the estimates stand
    `conclusion`, `detectable`, p, n and clusters of one of them: the first that a conclusion is
    drawn from, else that was tested, else that the row has. Of contrasts of conditions a row is a
    `change` from one to the other.
    """
    rows = default_rows(table, *statistics)
    if "field" in rows:
        first = rows["field"] + ": " + rows["first"]
        rows["change"] = first + " → " + rows["second"]
    varying = varying_parts(rows["condition"].unique())
    rows["condition"] = rows["condition"].map(varying)
    index = labels_said(rows, LABELS) or ["evaluator"]
    rows[index] = rows[index].fillna("")
    rows["shown"] = [estimate_text(*bounds) for bounds in rows[BOUNDS].to_numpy()]
    rows = _by_design(rows, index)
    wide = rows.pivot_table("shown", index, "statistic", aggfunc="first", sort=False)
    known = [name for name in statistics if name in wide]
    wide = wide[known].fillna("").rename_axis(columns=None)
    behind = _behind(rows, statistics, index).reindex(wide.index)
    wide = wide.assign(**texts_behind(behind, adjusted=False))
    wide[["n", "clusters"]] = behind[["n", "clusters"]]
    wide = wide.reset_index()
    if "evaluator" in wide:
        wide["evaluator"] = [model_name(name, display) or ALL for name in wide["evaluator"]]
    return Table(wide)


def _by_design(rows: pd.DataFrame, index: Sequence[str]) -> pd.DataFrame:
    """Return rows design by design, in each the evaluators in their one order."""
    order = in_order(rows["evaluator"])
    place = {name: number for number, name in enumerate(order)}
    rows = rows.assign(design=0, place=rows["evaluator"].map(place))
    design = [name for name in index if name != "evaluator"]
    if design:
        rows["design"] = rows.groupby(design, sort=False).ngroup()
    return rows.sort_values(["design", "place"], kind="stable")


def _behind(rows: pd.DataFrame, statistics: Sequence[str], index: Sequence[str]) -> pd.DataFrame:
    """Return for each row of a summary the estimate whose conclusion, p and n it shows."""
    is_said = rows["estimate"].notna()
    if "conclusion" in rows:
        is_said |= rows["conclusion"] != ""
    said = rows[is_said]
    candidates = [said[said["statistic"] == name] for name in statistics]

    def rank(candidate):
        concludes = any(candidate.get("conclusion", ()))
        is_tested = candidate["p"].notna().any()
        return not concludes, not is_tested

    ranked = pd.concat([*sorted(candidates, key=rank), rows])
    return ranked.drop_duplicates(index).set_index(index)


def reading(
    records: pd.DataFrame,
    changes: pd.DataFrame,
    display: Mapping[str, str] | None = None,
) -> list[str]:
    """Say above the first table what reading left out, took for something else or took back.

    records, changes: of `scoring.rescore`.
    """
    lines = list(records.attrs.get("notes", ()))
    for change in changes.to_dict("records"):
        recorded = change["on record"]
        lost = change["removed"] + change["changed"]
        if lost <= DOUBTFUL * recorded:
            continue
        evaluator = model_name(change["evaluator_model"], display)
        lines.append(
            f"{change['task_type']}, {evaluator}: {lost} of {recorded} answers on record "
            f"({lost / recorded:.0%}) are not in the raw replies. {KEPT[change['answers']]} "
            "The records that have `recorded` show them."
        )
    return lines


# tables


MAIN = (  # fields of records that a reader looks for first
    "author_display conversation_id source model evaluator_model evaluator_display juror persona "
    "task_type family arm turn round prompt_id true_model truth foil target_display answer_type "
    "status words predicted_model predicted_self stance existence_score score text reply statement "
    "raw_response question answer"
).split()
FIRST = 8  # rows that are shown, and columns that are shown as they are
WIDTH = 70
TEXTS = str | list | dict  # cells that are shown in short


class Records(Table):
    """Records, one a row: an ordinary DataFrame.

    failures: requests that returned nothing. conversations: what verdicts are about, one a row.
    """

    _metadata = ["failures", "conversations"]  # noqa: RUF012  pandas carries these on
    failures: Sequence[Mapping] = ()
    conversations: Sequence | pd.DataFrame = ()

    def _shown(self) -> tuple[pd.DataFrame, str]:
        """Return the first records by their main fields, and a sentence on what is left out."""
        frame = pd.DataFrame(self)
        if says(self.index):  # a table made from records, such as a pivot
            return frame, ""
        columns = list(self)
        main = [name for name in MAIN if name in self]
        if main and len(columns) > FIRST:  # fewer were chosen by hand
            columns = main
        shown = frame[columns].head(FIRST)
        if shown.shape == frame.shape:
            return shown, ""
        size = f"{len(self)} rows, {self.shape[1]} columns"
        first = f"the first {len(shown)} and the main ones are shown"
        return shown, f"{size}; {first}; selfeval.show(frame) shows whole records."

    def __repr__(self) -> str:
        shown, left_out = self._shown()
        return as_text(shown) + f"\n{left_out}".rstrip()

    def _repr_html_(self) -> str:
        shown, left_out = self._shown()
        page = html(shown)
        if left_out:
            page += f"<p>{left_out}</p>"
        return page


def says(index: pd.Index) -> bool:
    """Tell whether an index is more than the numbers of rows, as that of a pivot table is."""
    has_name = any(name is not None for name in index.names)
    return has_name or not pd.api.types.is_integer_dtype(index)


def shortened(text: str, width: int = WIDTH) -> str:
    """Return a text of `width` characters at most: a longer one ends behind a word, with " …"."""
    if len(text) <= width:
        return text
    head = text[: width - 1]
    whole_words = head.rpartition(" ")[0] or head
    return f"{whole_words.rstrip()} …"


def as_text(frame: pd.DataFrame) -> str:
    """Return a table as text with all its columns, short cells, and its index if it `says`."""

    def short(cell):
        return shortened(_on_one_line(visible(cell))) if isinstance(cell, TEXTS) else cell

    return frame.map(short).to_string(
        index=says(frame.index),
        float_format="{:.3g}".format,
        na_rep="",
        max_rows=60,
    )


def html(frame: pd.DataFrame) -> str:
    """Return a table as HTML with short, escaped cells, and its index if it `says` something.

    pandas' `display.max_colwidth` says how short, where it is a number above `WIDTH`.
    """
    width = max(WIDTH, pd.get_option("display.max_colwidth") or WIDTH)

    def short(cell):
        return shortened(visible(cell), width) if isinstance(cell, TEXTS) else cell

    shown = frame.map(short).rename(index=short, columns=short)
    with pd.option_context("display.html.use_mathjax", False, "display.max_colwidth", None):
        return shown.to_html(
            index=says(frame.index),
            float_format="{:.3g}".format,
            na_rep="",
            border=0,
            max_rows=60,
        )


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


# single records as cards


SHORT = 100  # characters of a text that is a fact; a longer one is a passage
LONGEST = 200  # characters of any other value
SPOKEN = ("content", "text", "response")  # fields of a message, turn or test with what was said
ABOUT = ("role", "speaker", "test_id", "test_type", "status")  # of one message, turn or test
LEFT = "text-align:left;vertical-align:top;word-break:normal"  # keeps words whole in JupyterLab
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
            if is_passage(text):
                lines.append(f"  {label}:")
                lines += [f"  | {line}" for line in visible(text).split("\n")]
            else:
                lines.append(f"  {label}: {text}")
        return "\n".join(map(visible, lines))


def is_passage(text: str) -> bool:
    """Tell whether a text is too long for a line."""
    return len(text) > SHORT or "\n" in text


def card(record) -> Card:
    """Return what is shown of a record or object: its fields, messages and turns one by one."""
    if isinstance(record, Mapping):
        row = record
    elif hasattr(record, "to_dict"):
        row = record.to_dict()
    else:
        row = vars(record)
    parts = []
    for name, value in row.items():
        if name == "logprobs" or is_empty(value):
            continue
        parts += passages(value) or [(str(name).replace("_", " "), fact(value))]
    title = type(record).__name__
    if title in ("dict", "Series"):
        title = "Record"
    return Card(title, parts)


def is_empty(value) -> bool:
    """Tell whether a field of a record says nothing."""
    if isinstance(value, str | list | tuple | dict):
        return not value
    return pd.api.types.is_scalar(value) and pd.isna(value)


def fact(value) -> str:
    """Return a text as it is if it is long, and else a value on one line without a password."""
    if isinstance(value, str) and is_passage(value):
        return value
    text = _on_one_line(str(value))
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} …"
    return redact(text)


def passages(value) -> list[tuple[str, str]]:
    """Return messages, turns, texts or tests as (who or what, text); [] for anything else."""
    if not isinstance(value, list | tuple):
        return []
    texts = []
    for part in value:
        spoken = [name for name in SPOKEN if isinstance(part, Mapping) and name in part]
        if not spoken:
            return []
        about = [part.get(name) for name in ABOUT]
        label = ", ".join(str(fact) for fact in about if fact not in (None, "", "ok"))
        text = part[spoken[0]] or ""
        texts.append((label, str(text)))
    return texts


def display(shown) -> None:
    """Display an object in a notebook, and print it elsewhere, where IPython may be missing."""
    shell = sys.modules.get("IPython.display")
    if shell:
        shell.display(shown)
    else:
        print(shown)


def show(*records, limit: int = 5) -> None:
    """Show records of any kind as cards; of a list or table of records the first `limit`.

    A record is a row of any file of this project (a dictionary, a row of a DataFrame), a reply, a
    request, a conversation, or any other object of this package.
    """
    for record in records:
        rows = record if isinstance(record, list) else [record]
        if isinstance(record, pd.DataFrame):
            rows = record.to_dict("records")
        for row in rows[:limit]:
            display(card(row))
        if len(rows) > limit:
            print(f"… and {len(rows) - limit} more; `limit` shows more of them.")
