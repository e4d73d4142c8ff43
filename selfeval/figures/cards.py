"""Records and objects as a reader wants them: a card in a notebook, text in a terminal.

What is shown comes from models and files, so all of it is escaped. Nothing large is imported here.
"""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape

from selfeval.keys import redact, visible

SHORT = 100  # characters of a text that is a fact; a longer one is a passage
MOST = 4000  # characters of a passage in a terminal
TITLES = {  # a field that gives a record's kind away: its title
    "task_type": "{task_type}: asked of {evaluator_model}",
    "juror": "{juror} on turn {turn}",
    "truth": "{model} is {truth}",
    "pass_rate": "{model_id}: {pass_rate}",
    "turns": "Conversation {conversation_id}",
    "author_display": "Text by {author_display}",
    "response": "Stored reply of {model}",
}
ABOUT = ("role", "speaker", "test_id", "test_type", "passed", "status")  # of one message, turn or test
COUNT = re.compile(r"[\d$?][\d.,?+/$ –-]*")
PRE = "white-space:pre-wrap;overflow-wrap:anywhere;max-height:26em;overflow:auto;margin:0;text-align:left"
LABEL = '<div style="display:flex;gap:1em"><div style="opacity:.65;min-width:9em">{}</div>'
ROW = f'{LABEL}<pre style="{PRE};background:none">{{}}</pre></div>'
CARD = '<div style="border:1px solid rgba(128,128,128,.4);padding:8px 14px;max-width:64em"><b>{}</b>{}</div>'


@dataclasses.dataclass
class Card:
    """What is shown of a record. parts: (label, text)."""

    title: str
    parts: list[tuple[str, str]]

    def _repr_html_(self) -> str:
        rows = [ROW.format(escape(visible(label)), escape(visible(text))) for label, text in self.parts]
        return CARD.format(escape(visible(self.title)), "".join(rows))

    def __repr__(self) -> str:
        lines = [self.title]
        for label, text in self.parts:
            if len(text) <= SHORT and "\n" not in text:
                lines.append(f"  {label}: {text}")
                continue
            left = len(text) - MOST
            shown = text[:MOST] + (f"\n… ({left:,} more characters)" if left > 0 else "")
            lines += [f"  {label}:", *(f"  | {line}" for line in visible(shown).split("\n"))]
        return "\n".join(map(visible, lines))


def card(record) -> Card:
    """Return what is shown of a record or object: its fields, with messages and turns one by one.

    A longer text that another one quotes is left out.
    """
    row = _fields(record)
    kind = next((title for name, title in TITLES.items() if name in row), type(record).__name__)
    title = kind.format_map(defaultdict(lambda: "?", row))
    parts = []
    for name, value in row.items():
        if not missing(value) and name != "logprobs":
            whole = isinstance(value, str) and (len(value) > SHORT or "\n" in value)
            shown = value if whole else redact(short(value))  # an address may hold a password
            parts += said(value) or [(name.replace("_", " "), shown)]
    texts = [text for _, text in parts if len(text) > SHORT]
    return Card(short(title), [p for p in parts if p[1] not in texts or not any(p[1] in t for t in texts if t != p[1])])


def _fields(record) -> dict:
    """Return what a record or object has to show by name; a stored reply's request and response as one."""
    if is_messages(record):
        return {"messages": record}
    for form in (lambda it: it._asdict(), lambda it: it.to_dict(), vars):
        with suppress(AttributeError, TypeError):
            record = record if isinstance(record, Mapping) else form(record)
    row = record if isinstance(record, Mapping) else {"text": str(record)}
    for name in ("request", "response"):
        if isinstance(row.get(name), Mapping):
            row = {**row[name], **row, name: None}
    return {str(name): value for name, value in row.items() if not str(name).startswith("_")}


def said(value) -> list[tuple[str, str]]:
    """Return messages, turns, texts or results of tests as (who or what, text); [] for anything else."""
    found = []
    for part in value if isinstance(value, list | tuple) else ():
        name = isinstance(part, Mapping) and next((n for n in ("content", "text", "response") if n in part), None)
        if not name:
            return []
        about = [{True: n, False: f"not {n}"}.get(part.get(n), part.get(n)) for n in ABOUT]
        found.append((", ".join(str(each) for each in about if each not in (None, "", "ok")), str(part[name] or "")))
    return found


def short(value) -> str:
    """Return a value in a few words; tables and facts have no room for more."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={short(part)}" for name, part in value.items() if not missing(part))
    text = ", ".join(map(short, value)) if isinstance(value, list | tuple | set) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 2 * SHORT else text[: 2 * SHORT] + " …"


def missing(value) -> bool:
    """Tell whether a field holds nothing: null, NaN, or empty."""
    nothing = str(value) in ("None", "nan", "<NA>", "NaT") and not isinstance(value, str)
    return nothing or (isinstance(value, str | list | tuple | dict) and not value)


def is_messages(value) -> bool:
    """Tell whether this is a conversation as a model gets it."""
    many = isinstance(value, list | tuple) and value
    return bool(many) and all(isinstance(m, Mapping) and {"role", "content"} <= {*m} for m in value)


def columns(rows: Sequence[Sequence]) -> str:
    """Return rows of cells, the first one their heads, as lines with columns of equal width; counts to the right."""
    cells = [[" ".join(visible(cell).split()) for cell in row] for row in rows]
    lines = list(zip(*cells, strict=True))
    for i, (_, *body) in enumerate(lines):
        width = max(map(len, lines[i]))
        right = body and all(COUNT.fullmatch(cell) for cell in body)
        lines[i] = [cell.rjust(width) if right else cell.ljust(width) for cell in lines[i]]
    return "\n".join("  ".join(line).rstrip() for line in zip(*lines, strict=True))


# in a notebook --------------------------------------------------------------------------------------------------------


def show(*records, limit: int = 5) -> None:
    """Show records of any kind as cards; of a list or table of records the first `limit`.

    A record is a row of any file of this project (a dictionary, a row of a DataFrame), a reply, a request, a
    conversation, a stored reply, or any other object of this package.
    """
    from IPython.display import display  # which prints outside of a notebook

    for record in records:
        many = [record]
        if hasattr(record, "to_dict") and hasattr(record, "columns"):
            many = record.to_dict("records")
        elif type(record) in (list, tuple) and record and not isinstance(record[0], str) and not is_messages(record):
            many = list(record)
        for one in many[:limit]:
            display(card(one))
        if len(many) > limit:
            print(f"… and {len(many) - limit} more; `limit` shows more of them.")


def show_objects(shell, classes: Mapping[str, Sequence[str]]) -> None:
    """Let IPython show objects as cards. classes: {module: names}; nothing is imported for it."""

    def pretty(thing, printer, cycle: bool) -> None:
        printer.text(str(card(thing)) if len(printer.stack) < 2 else repr(thing))  # in a list there is no room for it

    forms = shell.display_formatter.formatters
    for module, name in ((module, name) for module, names in classes.items() for name in names):
        forms["text/html"].for_type_by_name(module, name, lambda thing: card(thing)._repr_html_())
        forms["text/plain"].for_type_by_name(module, name, pretty)
