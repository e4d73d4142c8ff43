"""The page of a profile: three rows a model, a figure, quotes, and what was asked."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import pandas as pd

from selfeval.profiles.measures import QUESTIONS, SENSITIVITIES, hardly, said
from selfeval.providers.models import display_names
from selfeval.results import BOUNDS, estimate_text, p_text, shortened
from selfeval.secrets import redact, visible

if TYPE_CHECKING:
    from selfeval.figures.style import Drawing

# kinds of replies, by whether they are right
KINDS = {True: "right", False: "wrong", None: "no answer"}
QUOTED = 300  # characters of a reply, and of what it answers
HEADS = ("", "estimate and 95 % interval", "answer", "would be found", "n", "no answer")
SCALE = "0 is chance, 1 is perfect (of the jury: 2 AUC − 1)"
PAGE = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))


def clean(text) -> str:
    """Return a text as HTML without keys; what would be hidden is shown."""
    return escape(visible(redact(str(text))))


def cells(row: Mapping) -> list[str]:
    """Return what a row says, as texts under `HEADS`."""
    form = QUESTIONS[row["question"]]
    bounds = estimate_text(*(row[name] for name in BOUNDS))
    found = ""
    if pd.notna(row["detectable"]):
        found = f"{form['chance'] + row['detectable']:.2f}"
    number = row["n"]
    units = row["clusters"]
    size = "" if pd.isna(number) else f"{number:.0f} ({units:.0f} {form['unit']})"
    silent = "" if pd.isna(row["no_answer_rate"]) else f"{row['no_answer_rate']:.0%}"
    question = f"{form['question']} {hardly(row)}".rstrip()
    return [question, f"{form['number']} {bounds}", said(row), found, size, silent]


def as_text(rows: pd.DataFrame, changes: pd.DataFrame) -> str:
    """Return the rows for a terminal, under each model's name, then what has changed."""
    lines = []
    for name, of_model in rows.groupby("display", sort=False):
        lines.append(name)
        for row in of_model.to_dict("records"):
            question, estimate, sentence, *_ = cells(row)
            lines.append(f"  {question}")
            lines.append(f"    {estimate}")
            lines.append(f"    {sentence}")
    if len(changes):
        lines.append("now − earlier")
    for row in changes.to_dict("records"):
        number, model, bounds, p = _change(row)
        lines.append(f"  {model}, {number}: {bounds}" + (f", p {p}" if p else ""))
    return visible("\n".join(lines))


def _change(row: Mapping) -> list[str]:
    """Return a change as texts: the number, the model, the difference, and p after Holm."""
    bounds = estimate_text(*(row[name] for name in BOUNDS))
    names = display_names([row["model"]])
    model = names.get(row["model"], row["model"])
    number = SENSITIVITIES.get(row["statistic"], QUESTIONS[row["question"]]["number"])
    return [number, model, bounds, p_text(row["p_holm"])]


def table(rows: pd.DataFrame) -> str:
    """Return the rows as an HTML table, those of several models under their names."""
    lines = []
    for name, of_model in rows.groupby("display", sort=False):
        if rows["model"].nunique() > 1:
            lines.append(f'<tr><td colspan="{len(HEADS)}"><b>{clean(name)}</b></td></tr>')
        lines += [_line(HEADS, cells(row)) for row in of_model.to_dict("records")]
    return _table(HEADS, lines)


def _table(heads: Sequence[str], lines: Iterable[str]) -> str:
    shown = "".join(f"<th>{clean(head)}</th>" for head in heads)
    return f"<table><thead><tr>{shown}</tr></thead>\n<tbody>{''.join(lines)}</tbody></table>"


def _line(heads: Sequence[str], texts: Sequence[str]) -> str:
    """Return a row of a table; on a narrow screen each cell stands on a line, after its head."""
    shown = []
    for head, text in zip(heads, texts, strict=True):
        title = f' title="{clean(head)}"' if head else ""
        shown.append(f"<td{title}>{clean(text)}</td>")
    return f"<tr>{''.join(shown)}</tr>\n"


def figure(rows: pd.DataFrame) -> "Drawing":
    """Draw all rows on one scale: a row per question, or of several models a panel per question.

    The jury's AUC is drawn as 2 AUC − 1, which is 0 for a jury that cannot tell.
    """
    from selfeval.figures import forms  # matplotlib, not before a figure is wanted

    drawn = rows[["model", "question", *BOUNDS]].copy()
    is_jury = drawn["question"] == "jury"
    drawn.loc[is_jury, BOUNDS] = 2 * drawn.loc[is_jury, BOUNDS] - 1
    asked = drawn["question"].map({name: form["short"] for name, form in QUESTIONS.items()})
    several = rows["model"].nunique() > 1
    names = dict(zip(rows["model"], rows["display"], strict=True))
    drawn["line"] = drawn["model"] if several else asked
    drawn["panel"] = asked if several else rows["display"].iloc[0]
    drawn["estimate"] = drawn["estimate"].astype(float)
    drawing: Any = forms.dots(drawn, SCALE, names=names, limits=(-1.05, 1.05))
    return drawing  # never None: there are rows


def write(
    rows: pd.DataFrame,
    quotes: pd.DataFrame,
    changes: pd.DataFrame,
    asked: Mapping[str, str],
    drawing: "Drawing | None",
) -> str:
    """Return the page: the rows first, then the figure, changes, quotes, and what was asked."""
    names = dict(zip(rows["model"], rows["display"], strict=True))
    heading = f"What does {_listed(list(names.values()))} know about itself?"
    if len(names) > 1:
        heading = f"What do {_listed(list(names.values()))} know about themselves?"
    parts = [f"<h1>{clean(heading)}</h1>", table(rows)]
    if drawing is not None:
        parts.append(_picture(drawing, rows))
    if len(changes):
        parts += ["<h2>Has it changed?</h2>", _changes(changes)]
    parts += ["<h2>Replies: right, wrong and no answer</h2>", *_quotes(quotes, names)]
    parts += ["<h2>What was asked</h2>", *_asked(asked)]
    return PAGE.substitute(title=clean(heading), body="\n".join(parts))


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _picture(drawing: "Drawing", rows: pd.DataFrame) -> str:
    content = io.BytesIO()
    drawing.savefig(content, format="png", dpi=200)
    encoded = base64.b64encode(content.getvalue()).decode()
    texts = [f"{row['display']}: {cells(row)[1]}" for row in rows.to_dict("records")]
    return f'<p><img alt="{clean("; ".join(texts))}" src="data:image/png;base64,{encoded}"></p>'


def _changes(changes: pd.DataFrame) -> str:
    """Return the changes as a table: now minus earlier."""
    heads = ("", "model", "now − earlier", "p (Holm)")
    return _table(heads, [_line(heads, _change(row)) for row in changes.to_dict("records")])


def _quotes(quotes: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return each quoted reply under what it answers."""
    parts = []
    for row in quotes.to_dict("records"):
        who = "The jury" if row["question"] == "jury" else names[row["model"]]
        if row["question"] == "jury" and len(names) > 1:
            who = f"The jury, of {names[row['model']]}"
        verdict = KINDS[row["is_right"]]
        parts.append(f"<p>{clean(_shown(row['asked']))}<br><b>{clean(who)}, {verdict}:</b></p>")
        parts.append(f"<blockquote>{clean(_shown(row['reply'] or '(empty)'))}</blockquote>")
    return parts


def _shown(text: str) -> str:
    return shortened(" ".join(str(text).split()), QUOTED)


def _asked(asked: Mapping[str, str]) -> list[str]:
    """Return the lines on what was asked, then what the numbers are."""
    lines = [f"<p><b>{clean(name)}</b>: {clean(text)}</p>" for name, text in asked.items() if text]
    for form in QUESTIONS.values():
        lines.append(f'<p class="small">{clean(form["number"])} = {clean(form["meaning"])}.</p>')
    found = "“Would be found” is the value that four of five such profiles would find."
    return [*lines, f'<p class="small">{found}</p>']
