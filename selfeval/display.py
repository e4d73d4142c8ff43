"""Records and objects as a reader wants them: a card in a notebook, text in a terminal.

  show      any record: a text, a prediction, an identity reply, a conversation, a juror's statement, a stored reply
  Card      what is shown of it: a title, short facts and passages (`cards` makes it)
  Rich      base of the classes that show themselves as a card
  columns   rows as text in columns of equal width
  visible   a text whose control and direction characters can be seen

What is shown comes from models and files, so all of it is escaped.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from selfeval import ROOT

SHORT = 100  # characters of a text that is a fact; a longer one is a passage
MOST = 4000  # characters of a passage in a terminal
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_NAMES = {"\0": "‹NUL›", "\r": "‹CR›", "\x1b": "‹ESC›"}
_COUNT = re.compile(r"[\d$?][\d.,?+/$ –-]*")
_FACT = '<span style="margin-right:1.4em"><span style="opacity:.65">{}</span> {}</span>'
_PASSAGE = (
    '<div style="opacity:.65;margin-top:6px">{}</div><pre style="white-space:pre-wrap;overflow-wrap:anywhere;'
    "word-break:normal;max-height:26em;overflow:auto;margin:0;padding:2px 0 2px .8em;"
    'border-left:3px solid rgba(128,128,128,.5);background:none;text-align:left">{}</pre>'
)
_CARD = (
    '<div style="border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:8px 14px;margin:4px 0;max-width:64em">'
    "<b>{}</b>{}</div>"
)


def visible(text) -> str:
    """Return a text in which control characters, escapes, direction marks and lone surrogates can be seen."""
    return _HIDDEN.sub(_mark, str(text).replace("\r\n", "\n"))


def _mark(match: re.Match) -> str:
    return _NAMES.get(match[0]) or f"‹U+{ord(match[0]):04X}›"


def columns(rows: Sequence[Sequence]) -> str:
    """Return rows of cells, the first one their heads, as lines with columns of equal width; counts to the right."""
    cells = [[" ".join(visible(cell).split()) for cell in row] for row in rows]
    lines = list(zip(*cells, strict=True))
    for i, (_, *body) in enumerate(lines):
        width = max(map(len, lines[i]))
        right = body and all(_COUNT.fullmatch(cell) for cell in body)
        lines[i] = [cell.rjust(width) if right else cell.ljust(width) for cell in lines[i]]
    return "\n".join("  ".join(line).rstrip() for line in zip(*lines, strict=True))


@dataclass
class Card:
    """What is shown of a record. facts: (label, short text); passages: (label, text)."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    passages: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self):
        self.title = short(self.title)

    def _repr_html_(self) -> str:
        parts = [_FACT.format(_html(label), _html(text)) for label, text in self.facts]
        body = f'<div style="line-height:1.7">{"".join(parts)}</div>' * bool(parts)
        body += "".join(_PASSAGE.format(_html(label), _html(text)) for label, text in self.passages)
        return _CARD.format(_html(self.title), body)

    def __str__(self) -> str:
        lines = [self.title]
        lines += [f"  {label}: {text}" for label, text in self.facts]
        for label, text in self.passages:
            cut = f"\n… ({len(text) - MOST:,} more characters)" if len(text) > MOST else ""
            lines += [f"  {label}:", *(f"  | {line}" for line in visible(text[:MOST] + cut).split("\n"))]
        return "\n".join(map(visible, lines))

    __repr__ = __str__


class Rich:
    """Base of a class that a notebook shows as a card, and IPython in a terminal as the card's text."""

    def __init_subclass__(cls):
        cls._repr_pretty_ = Rich._repr_pretty_  # IPython prefers a class's own `__repr__`, which dataclasses have

    def _repr_html_(self) -> str:
        return _card(self)._repr_html_()

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        printer.text(str(_card(self)) if len(printer.stack) < 2 else repr(self))  # in a list there is no room for it


def _card(record) -> Card:
    from selfeval.cards import card

    return card(record)


def show(*records, limit: int = 5) -> None:
    """Show records of any kind as cards; of a list or table of records the first `limit`.

    A record is a row of any file of this project (a dictionary, a row of a DataFrame), a reply, a request, a
    conversation, a stored reply, or any other object of this package.
    """
    from IPython.display import display  # which prints outside of a notebook

    for record in records:
        many = _several(record)
        chosen = [record] if many is None else many[:limit]
        for one in chosen:
            display(_card(one))
        if many is not None and len(many) > limit:
            print(f"… and {len(many) - limit} more; `limit` shows more of them.")


def _several(records) -> list | None:
    """Return the records of a table or list, None for a single record."""
    if hasattr(records, "to_dict") and hasattr(records, "columns"):
        return records.to_dict("records")
    plain = type(records) in (list, tuple) and records and not isinstance(records[0], str)
    return list(records) if plain and not is_messages(records) else None


# --- pieces -----------------------------------------------------------------------------------------------------------


def short(value) -> str:
    """Return a value in a few words; tables and facts have no room for more."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={short(part)}" for name, part in value.items() if not missing(part))
    if isinstance(value, list | tuple | set):
        text = ", ".join(map(short, value))
    elif type(value).__name__ == "Model":
        text = value.id
    else:
        text = "" if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 2 * SHORT else text[: 2 * SHORT] + " …"


def missing(value) -> bool:
    """Tell whether a field holds nothing: null, NaN, or empty."""
    empty = value is None or (isinstance(value, str | list | tuple | dict) and not value)
    return empty or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))


def is_messages(value) -> bool:
    """Tell whether this is a conversation as a model gets it."""
    many = isinstance(value, list | tuple) and value
    return bool(many) and all(isinstance(m, Mapping) and {"role", "content"} <= {*m} for m in value)


def _html(text) -> str:
    return escape(visible(text))


def below_root(path: Path | str) -> str:
    """Return a path without what is above the repository; outside of it the name alone."""
    path = Path(path)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
