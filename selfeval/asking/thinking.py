"""Thinking: what a model wrote for itself before it answered, in any wrapper that a server or a template leaves.

A wrapper that is never closed holds all that follows, and a closing mark that was never opened closes all that stands
before it. A mark in quotation marks or backticks is only spoken of.
"""

import re

_TAG = r"(?:\w{1,9}:)?(?:think(?:ing)?|thoughts?|reasoning)>"  # also "<seed:think>"
_ASSISTANT = r"(?:<\|end\|>\s*)?(?:<\|start\|>assistant)?<\|channel\|>"
_GLUED = "(?-i:analysis(?=[A-Z]))", "(?-i:assistantfinal)"  # of servers that drop the marks of gpt-oss's channels
WRAPPERS = (  # what opens thinking, and what closes it
    (f"<{_TAG}", f"</{_TAG}"),
    (r"\[think\]", r"\[/think\]"),  # Mistral
    ("◁think▷", "◁/think▷"),  # Kimi
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),  # Cohere
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|channel>thought\b", r"<channel\|>"),  # Gemma
    (
        rf"{_ASSISTANT}(?:analysis|commentary).{{0,60}}?<\|message\|>|\A\s*{_GLUED[0]}",
        rf"{_ASSISTANT}final.{{0,60}}?<\|message\|>|{_GLUED[1]}",
    ),
)
_MARK = re.compile("|".join(f"({mark})" for pair in WRAPPERS for mark in pair), re.I)
_QUOTES = frozenset("\"'`“”‘’«»")
# the end of a turn as chat templates write it: "<|im_end|>", "</s>", "<end_of_turn>", "<｜end▁of▁sentence｜>"
_ENDS = re.compile(r"(?:(?:<[|｜][\w▁]{1,40}[|｜]>|</s>|<end_of_turn>|<turn\|>|<eos>)\s*)+")
_REASONS = re.compile("reason|think|thought", re.I)  # in the type of a part
_THOUGHT_FIELDS = ("thinking", "reasoning", "summary", "text", "content")
_SAID_FIELDS = ("text", "value", "content")


def split(reply: str, anywhere: bool = False) -> tuple[str | None, str]:
    """Return (thinking, what is said), without the marks of either; thinking is None where there is none.

    anywhere: take thinking also for what it is behind the first words of a reply; a text may speak of such marks.
    """
    thought, said, at = [], [], 0
    for start, inner, outer, end in spans(reply, anywhere):
        said.append(reply[at:start])
        thought.append(reply[inner:outer].strip())
        at = end
    rest = "".join([*said, reply[at:]])
    if at:
        rest = rest.lstrip()
    return "\n\n".join(filter(None, thought)) or None, _without_end(rest)


def spans(reply: str, anywhere: bool = True) -> list[tuple[int, int, int, int]]:
    """Return where thinking stands: (start of the opening mark, its end, start of the closing mark, its end)."""
    found: list[tuple[int, int, int, int]] = []
    opened = kind = None
    for mark in _MARK.finditer(reply):
        this, closes = divmod(mark.lastindex - 1, 2)
        if _is_quoted(reply, mark):
            continue
        if opened:
            if closes and this == kind:
                found.append((*opened.span(), *mark.span()))
                opened = None
        elif not closes:
            before = reply[found[-1][-1] if found else 0 : mark.start()]
            if not anywhere and before.strip():
                break
            opened, kind = mark, this
        elif anywhere or not found:
            found = [(0, 0, *mark.span())]
    if opened:
        found.append((*opened.span(), len(reply), len(reply)))
    return found


def _is_quoted(reply: str, mark: re.Match[str]) -> bool:
    before, after = reply[max(mark.start() - 1, 0) : mark.start()], reply[mark.end() : mark.end() + 1]
    return before in _QUOTES and after in _QUOTES


def _without_end(text: str) -> str:
    """Return a text without the marks of a chat template at its end; `</s>` behind `<s>` is struck through."""
    last = None
    for marks in _ENDS.finditer(text):
        last = marks
    if last is None or last.end() < len(text) or ("</s>" in last[0] and "<s>" in text):
        return text
    return text[: last.start()].rstrip()


def of_parts(content, between: str = "") -> tuple[str | None, str]:
    """Return (thinking, what is said) of a message's content: a text, a part with its type, or a list of such.

    between: what stands between two parts that are said.
    """
    thought: list[str] = []
    said: list[str] = []
    left = [(content, False)]  # the next at the end
    while left:
        value, is_thought = left.pop()
        if isinstance(value, str):
            (thought if is_thought else said).append(value)
        elif isinstance(value, list):
            left += [(part, is_thought) for part in reversed(value)]
        elif isinstance(value, dict) and "tool" not in str(value.get("type")):
            is_thought |= value.get("thought") is True or bool(_REASONS.search(str(value.get("type"))))
            fields = _THOUGHT_FIELDS if is_thought else _SAID_FIELDS
            left.append((next((value[name] for name in fields if value.get(name)), None), is_thought))
    return "\n".join(filter(None, thought)) or None, between.join(filter(None, said))
