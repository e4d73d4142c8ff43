"""Records and objects as a reader wants them: a card in a notebook, text in a terminal.

What is shown comes from models and files, so all of it is escaped. Nothing large is imported here.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape

from selfeval.keys import redact, visible

SHORT = 100  # characters of a text that is a fact; a longer one is a passage
MOST = 4000  # characters of a passage in a terminal
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
    """Return what is shown of a record or object: its fields, with messages and turns one by one."""
    title, row = type(record).__name__, record
    for form in (lambda it: it._asdict(), lambda it: it.to_dict(), vars):
        with suppress(AttributeError, TypeError):
            row = row if isinstance(row, Mapping) else form(row)
    parts = []
    for name, value in (row if isinstance(row, Mapping) else {"text": str(record)}).items():
        if not missing(value) and name != "logprobs" and not str(name).startswith("_"):
            whole = isinstance(value, str) and (len(value) > SHORT or "\n" in value)
            shown = value if whole else redact(short(value))  # an address may hold a password
            parts += said(value) or [(str(name).replace("_", " "), shown)]
    return Card("Record" if title in ("dict", "Series", "str") else title, parts)


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
    conversation, or any other object of this package.
    """
    from IPython.display import display  # which prints outside of a notebook

    for record in records:
        table = hasattr(record, "to_dict") and hasattr(record, "columns")
        many = record.to_dict("records") if table else record if isinstance(record, list) else [record]
        for one in many[:limit]:
            display(card(one))
        if len(many) > limit:
            print(f"… and {len(many) - limit} more; `limit` shows more of them.")
