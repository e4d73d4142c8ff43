"""Thinking: what a model wrote for itself before it answered, in any wrapper that is left of it.

A wrapper that is never closed holds all that follows, and a closing mark that was never opened
closes all that stands before it. A mark in quotation marks or backticks is only spoken of.
"""

import re
from typing import NamedTuple

_TAG = r"(?:\w{1,9}:)?(?:think(?:ing)?|thoughts?|reasoning)>"  # also "<seed:think>"
_CHANNEL = r"(?:<\|end\|>\s*)?(?:<\|start\|>assistant)?<\|channel\|>"
WRAPPERS = (  # what opens thinking, and what closes it
    (f"<{_TAG}", f"</{_TAG}"),
    (r"\[think\]", r"\[/think\]"),  # Mistral
    ("◁think▷", "◁/think▷"),  # Kimi
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),  # Cohere
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|channel>thought\b", r"<channel\|>"),  # Gemma
    (  # gpt-oss; some servers drop the marks around the names of its channels
        rf"{_CHANNEL}(?:analysis|commentary).{{0,60}}?<\|message\|>|\A\s*(?-i:analysis(?=[A-Z]))",
        rf"{_CHANNEL}final.{{0,60}}?<\|message\|>|(?-i:assistantfinal)",
    ),
)
_IN_MARKS = ("<", "[", "◁", "analysis", "assistantfinal")  # each mark has one of these
_MARK = re.compile("|".join(f"({mark})" for pair in WRAPPERS for mark in pair), re.I)
_QUOTES = frozenset("\"'`“”‘’«»")
# ends of a turn: "<|im_end|>", "</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>"
_ENDS = re.compile(r"(?:(?:<[|｜][\w▁]{1,40}[|｜]>|</s>|<end_of_turn>|<turn\|>|<eos>)\s*)+")
_REASONS = re.compile("reason|think|thought", re.I)  # in the type of a part
_THOUGHT_FIELDS = ("thinking", "reasoning", "summary", "text", "content")
_SAID_FIELDS = ("text", "value", "content")


class Span(NamedTuple):
    """Where thinking stands: from start to end with its marks, from inner to outer without."""

    start: int
    inner: int
    outer: int
    end: int


def split(reply: str, anywhere: bool = False) -> tuple[str | None, str]:
    """Return (thinking or None, what is said), both without marks.

    anywhere: thinking counts also behind the first words of a reply, as a reader of answers wants
    it; a text may speak of such marks.
    """
    if not _may_hold_marks(reply):
        return None, reply
    thought = []
    said = []
    at = 0
    for span in spans(reply, anywhere):
        said.append(reply[at : span.start])
        thought.append(reply[span.inner : span.outer].strip())
        at = span.end
    said.append(reply[at:])
    rest = "".join(said)
    if at:
        rest = rest.lstrip()
    return "\n\n".join(filter(None, thought)) or None, _without_end(rest)


def spans(reply: str, anywhere: bool = True) -> list[Span]:
    """Return where thinking stands, in order; anywhere: as in `split`."""
    found: list[Span] = []
    if not _may_hold_marks(reply):
        return found
    opened = None
    kind = -1
    for mark in _MARK.finditer(reply):
        this, closes = divmod((mark.lastindex or 1) - 1, 2)  # each wrapper has two groups
        if _is_quoted(reply, mark):
            continue
        if opened:
            if closes and this == kind:
                found.append(Span(*opened.span(), *mark.span()))
                opened = None
        elif not closes:
            before = reply[found[-1].end if found else 0 : mark.start()]
            if not anywhere and before.strip():
                break
            opened = mark
            kind = this
        elif anywhere or not found:
            found = [Span(0, 0, *mark.span())]
    if opened:
        found.append(Span(*opened.span(), len(reply), len(reply)))
    return found


def _may_hold_marks(reply: str) -> bool:
    """Tell whether a reply has what every mark has; most have not, and need no search."""
    return any(part in reply for part in _IN_MARKS)


def _is_quoted(reply: str, mark: re.Match[str]) -> bool:
    before = reply[max(mark.start() - 1, 0) : mark.start()]
    after = reply[mark.end() : mark.end() + 1]
    return before in _QUOTES and after in _QUOTES


def _without_end(text: str) -> str:
    """Return a text without a template's marks at its end; what is in <s></s> is struck through."""
    last = None
    for marks in _ENDS.finditer(text):
        last = marks
    if last is None or last.end() < len(text):
        return text
    if "</s>" in last[0] and "<s>" in text:
        return text
    return text[: last.start()].rstrip()


def of_parts(content, between: str = "") -> tuple[str | None, str]:
    """Return (thinking or None, what is said) of a message's content, as APIs write it.

    content: a text, a part with its type, or a list of such. between: stands between parts.
    """
    thought: list[str] = []
    said: list[str] = []
    left = [(content, False)]  # with whether it is thinking; the next one at the end
    while left:
        value, is_thought = left.pop()
        if isinstance(value, str):
            (thought if is_thought else said).append(value)
        elif isinstance(value, list):
            left += [(part, is_thought) for part in reversed(value)]
        elif isinstance(value, dict):
            left += _inside(value, is_thought)
    return "\n".join(filter(None, thought)) or None, between.join(filter(None, said))


def _inside(part: dict, is_thought: bool) -> list[tuple]:
    """Return what a part holds, and whether it is thinking; nothing for a call of a tool."""
    kind = str(part.get("type"))
    if "tool" in kind:
        return []
    is_thought = is_thought or part.get("thought") is True or bool(_REASONS.search(kind))
    fields = _THOUGHT_FIELDS if is_thought else _SAID_FIELDS
    return [(part[name], is_thought) for name in fields if part.get(name)][:1]
