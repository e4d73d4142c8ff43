"""Plain text: fold away how a reply is typed, keep the way back to what was typed, and find what is only quoted."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

_MARKS = {  # one typed character -> what it means here
    "—": " - ",  # a dash between thoughts, never part of a name
    "―": " - ",
    **dict.fromkeys("‘’‚‛′´ʼ", "'"),
    **dict.fromkeys("“”„‟″«»「」『』", '"'),
    "。": ". ",
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
    r"(?<![^\n])[ \t]{0,3}(?:#{1,6} +|[*+•] +)"  # headings; a bullet is no emphasis
    r"|[^\x00-\x7f]"
    r"|\r\n?|[^\S\n]{2,}|[\t\v\f]"  # spacing
    r"|\*+|(?<!`)`{1,2}(?!`)|~~"  # emphasis and code, but no fence
    r"|(?<![^\W_])_+|_+(?![^\W_])"
    r"|\]\([^()\s]{0,200}\)"  # the address of a link
    r"|(?i:&(?:#39|#x27|apos|quot|amp|nbsp);)"
    r"|(?i:</?(?:b|i|em|strong|code|u|p|br|span) ?/?>)"
)


# a line that somebody else speaks: "ROBOT: I am X", "User: you are X"
_SPEAKER = re.compile(
    r"^(?:(?!(?:NAME|MODEL|MAKER|ID|AI|ASSISTANT|ANSWER)\b)[A-Z]{3,}|User|Human|System|Robot|Narrator): "
)
# a value that speaks for the reply: {"name": "I am X"}; not {"said": "I am X"}
_OWN_FIELD = re.compile(
    r"(?<![a-z])(?:name|model|id|identity|maker|developer|creator|provider|company|vendor|version|family|answer|reply|response"
    r"|content|output|text|message|by)\" ?[:=] ?$"
)
_SINGLE = re.compile(r"(?<![\w'])'(?=\w)[^'\n]{3,200}(?:'\w[^'\n]{0,200}){0,5}(?<=[\w.!?,])'(?!\w)")


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
        if piece[:1] == " " and pieces and pieces[-1][-1] == " ":  # "，" and a space are one space
            piece, start = piece[1:], start + kept
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
    parts = unicodedata.normalize("NFKD", typed)
    accented = len(parts) == 2 and parts[0].isascii() and unicodedata.combining(parts[1])
    return parts[0] if accented else unicodedata.normalize("NFKC", typed)


def without_thoughts(plain: Plain) -> Plain:
    """Blank out reasoning between think tags (from an unclosed one on), at the same length."""
    if "<think" not in plain.low and "</think" not in plain.low:
        return plain
    kept, thinking = [], False
    for piece in re.split(r"(</?think(?:ing)?>)", plain.low):
        if piece.startswith("<think"):
            thinking = True
        elif piece.startswith("</think"):
            if not thinking:  # closed and never opened: all before it was thought
                kept = ["\n" * sum(map(len, kept))]
            thinking = False
        kept.append("\n" * len(piece) if thinking or piece.startswith("</think") else piece)
    low = "".join(kept)
    text = "".join("\n" if blank == "\n" else char for char, blank in zip(plain.text, low, strict=True))
    return replace(plain, text=text, low=low)


def quotations(plain: Plain) -> list[tuple[int, int]]:
    """Return the spans of what is given as text: in quotation marks, block quotes, code, by another speaker.

    The names and answers of a JSON object are none.
    """
    low, spans, fence, at = plain.low, [], None, 0
    for line, typed in zip(low.split("\n"), plain.text.split("\n"), strict=True):
        if line.lstrip().startswith("```"):
            if fence is not None:
                spans.append((fence, at))
            fence = at if fence is None else None
        elif fence is None and (line.startswith(">") or _SPEAKER.match(typed)):
            spans.append((at, at + len(line)))
        elif fence is None:
            spans += [(at + begin, at + end) for begin, end in _quoted_in(line)]
        at += len(line) + 1
    if fence is not None:
        spans.append((fence, len(low)))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if re.match(r"```\w*\s*\{", low[start : start + 20]):
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _quoted_in(line: str) -> Iterator[tuple[int, int]]:
    marks = [m.start() for m in re.finditer(r'"', line)]
    in_json = line.lstrip().startswith(("{", '"'))
    for opening, closing in zip(marks[::2], [*marks[1::2], len(line)], strict=False):
        own = _OWN_FIELD.search(line[max(0, opening - 24) : opening])
        key = re.match(r'" ?:', line[closing : closing + 3])
        if not (in_json and (own or key)):
            yield opening, min(closing + 1, len(line))
    for match in _SINGLE.finditer(line):
        yield match.span()
