"""Plain text: fold away how a reply is typed, and keep the way back to what was typed."""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

_MARKS = {  # one typed character -> what it means here
    "—": " - ",  # a dash between thoughts, never part of a name
    "―": " - ",
    **dict.fromkeys("‘’‚‛′´ʼ", "'"),
    **dict.fromkeys("“”„‟″«»「」『』", '"'),
    **dict.fromkeys("。．", ". "),
    **dict.fromkeys("，、", ", "),
    "！": "! ",
    "？": "? ",
    "：": ": ",
    "；": "; ",
    "（": " (",
    "）": ") ",
    "−": "-",
    "⁄": "/",
    "\u2028": "\n",
    "\u2029": "\n",
    "\x85": "\n",
}
_TYPED = re.compile(
    r"[^\x00-\x7f]"
    r"|\r\n?|[^\S\n]{2,}|[\t\v\f]"  # spacing
    r"|(?<![^\n])[ \t]{0,3}(?:#{1,6} +|[*+•] +)"  # headings; a bullet is no emphasis
    r"|\*+|(?<!`)`{1,2}(?!`)|~~"  # emphasis and code, but no fence
    r"|(?<![^\W_])_+|_+(?![^\W_])"
    r"|\]\([^()\s]{0,200}\)"  # the address of a link
    r"|&(?:#39|#x27|apos|quot|amp|nbsp);"
    r"|</?(?:b|i|em|strong|code|u|p|br|span) ?/?>",
    re.I,
)


@dataclass(frozen=True)
class Plain:
    """A folded text. `low` is `text` in lower case and as long; `origin` maps a span back to the typed text."""

    text: str
    low: str
    _at: tuple[int, ...]  # where runs of the folded text begin
    _from: tuple[tuple[int, int, bool], ...]  # the typed span of each run, and whether it was kept as it is

    @cached_property
    def lowercase(self) -> bool:
        """Tell whether the writer uses no capital letters at all."""
        return self.text == self.low

    def replaced(self, text: str, low: str) -> "Plain":
        """Return another text of the same length that maps back to the same typed one."""
        return replace(self, text=text, low=low)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the typed span of a folded one that is not empty."""
        return self._typed(start)[0], self._typed(end - 1)[1]

    def _typed(self, position: int) -> tuple[int, int]:
        run = bisect_right(self._at, position) - 1
        start, end, kept = self._from[run]
        offset = start + position - self._at[run]
        return (offset, offset + 1) if kept else (start, end)


def fold(text: str) -> Plain:
    """Fold width, hyphens, quotes, accents, invisible characters, markdown and spacing; case and line breaks stay.

    Characters are folded one at a time: NFKC over a whole text is quadratic where somebody piles up accents.
    """
    pieces: list[str] = []
    at: list[int] = []
    runs: list[tuple[int, int, bool]] = []
    length = last = 0

    def add(piece: str, start: int, end: int, kept: bool) -> None:
        nonlocal length
        if piece:
            at.append(length)
            runs.append((start, end, kept))
            pieces.append(piece)
            length += len(piece)

    for match in _TYPED.finditer(text):
        typed = match[0]
        piece = _folded(typed)
        if piece != typed:
            add(text[last : match.start()], last, match.start(), True)
            add(piece, match.start(), match.end(), False)
            last = match.end()
    add(text[last:], last, len(text), True)
    plain = "".join(pieces)
    low = plain.lower()
    if len(low) != len(plain):
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in plain)
    return Plain(plain, low, tuple(at), tuple(runs))


@lru_cache(maxsize=4096)
def _folded(typed: str) -> str:
    if typed.isascii():
        if typed[0] == "&":
            return {"&quot;": '"', "&amp;": "&", "&nbsp;": " "}.get(typed.lower(), "'")
        if typed[0] in "\r\n":
            return "\n"
        if typed.isspace():
            return " "
        return "- " if typed.lstrip()[:1] in {"*", "+"} and typed.endswith(" ") else ""
    if len(typed) > 1:  # a bullet, or spaces of several kinds
        return " " if typed.isspace() else "- "
    if typed in _MARKS:
        return _MARKS[typed]
    category = unicodedata.category(typed)
    if category in ("Cf", "Mn"):
        return ""
    if category == "Pd":
        return "-"
    if typed.isspace():
        return " "
    bare = unicodedata.normalize("NFKD", typed)
    return (
        bare[0] if bare[0].isascii() and len(bare) > 1 and bare[0].isalpha() else unicodedata.normalize("NFKC", typed)
    )
