"""Messages: what every evaluation puts its questions together from."""

import hashlib
import re
from collections.abc import Mapping, Sequence

_BLOCK = re.compile(
    r"^(?:Read the text|(?P<title>[^\n]+),) between the two lines (?P<mark>TEXT [0-9a-f]{8})[.:]\n\n"
    r"(?P=mark)\n(?P<text>.*?)\n(?P=mark)$",
    re.M | re.S,
)


def user(text: str) -> list[dict]:
    """Return a conversation of one user turn."""
    return [{"role": "user", "content": text}]


def mark_of(text: str) -> str:
    """Return a line that a text cannot contain, since it holds the text's own hash."""
    return f"TEXT {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def fenced(text: str) -> str:
    """Return a text between two equal lines that it cannot contain."""
    mark = mark_of(text)
    return f"Read the text between the two lines {mark}.\n\n{mark}\n{text}\n{mark}\n\n"


def titled(title: str, text: str) -> str:
    """Return a text with its title, between two equal lines that it cannot contain."""
    return f"{title}, between the two lines {mark_of(text)}:\n\n{mark_of(text)}\n{text}\n{mark_of(text)}\n\n"


def blocks(question: str) -> list[tuple[str, str]]:
    """Return (title, text) of every text that a question shows; the title of a lone text is empty."""
    return [(m["title"] or "", m["text"]) for m in _BLOCK.finditer(question)]


def choice_format(choices: Mapping[str, Sequence]) -> dict:
    """Return a `response_format` whose reply is a JSON object with one of the options for each field."""
    kinds = {str: "string", int: "integer"}
    schema = {
        "type": "object",
        "properties": {f: {"type": kinds[type(options[0])], "enum": list(options)} for f, options in choices.items()},
        "required": list(choices),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": next(iter(choices)), "strict": True, "schema": schema}}
