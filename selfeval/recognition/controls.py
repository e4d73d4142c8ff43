"""Controls: the same question about texts that lack something, and what a text gives away by saying it."""

import random
import re
from collections.abc import Sequence
from functools import cache

from selfeval.errors import check_one_of
from selfeval.models import models

CONTROLS = ("none", "shuffled", "truncated")
# "as an AI", "I am a language model", "my training data": a model talks about itself, whichever it is
_SELF_TALK = re.compile(
    r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b"
    r"|\bi(?:'m| am) (?:just )?an? (?:ai|artificial intelligence|(?:large )?language model|chatbot)\b"
    r"|\bmy (?:training data|training|creators|developers|knowledge cutoff)\b"
    r"|\bi was (?:trained|created|developed) by\b",
    re.I,
)
_ORDINARY = {"sim", "selfeval"}  # families and developers that are no names outside this project


def changed(texts: Sequence[dict], control: str, seed: int = 0) -> list[dict]:
    """Return the text records as the evaluators are to see them; ids, authors and prompts stay.

    shuffled: the words in random order (seeded by text), which leaves vocabulary and length and takes the rest.
    truncated: cut to the number of words of the shortest text on the same prompt and sample, so that length says
    nothing.
    """
    check_one_of("control", control, CONTROLS)
    if control == "shuffled":
        return [_with_text(text, _shuffled(text["text"], f"{seed} {text['text_id']}")) for text in texts]
    if control == "truncated":
        shortest: dict = {}
        for text in texts:
            on = text["prompt_id"], text["sample"]
            shortest[on] = min(shortest.get(on, text["words"]), text["words"])
        return [_with_text(text, _first(text["text"], shortest[text["prompt_id"], text["sample"]])) for text in texts]
    return list(texts)


def _with_text(record: dict, text: str) -> dict:
    return record | {"text": text, "words": len(text.split())}


def _shuffled(text: str, seed: str) -> str:
    words = text.split()
    random.Random(seed).shuffle(words)
    return " ".join(words)


def _first(text: str, n: int) -> str:
    """Return the first n words, spaced as written."""
    match = re.match(rf"\s*(?:\S+\s+){{{n - 1}}}\S+", text) if n > 0 else None
    return match[0] if match else text


def leaks(text: str) -> list[str]:
    """Return what in a text names a model, a family, a maker, or says that an AI is writing; empty if nothing does.

    It is a flag, not a verdict: a text about llamas is flagged too. Names count as they are written in the registry
    (`Gemini`, not `gemini`), so that fewer ordinary words are.
    """
    return [match[0] for pattern in (_names(), _SELF_TALK) for match in pattern.finditer(text)]


@cache
def _names() -> re.Pattern[str]:
    listed = [m for m in models().values() if m.provider.name != "sim"]
    names = {name for m in listed for name in (m.display, *m.names, m.developer, m.family.title(), m.family.upper())}
    names = {re.escape(name) for name in names if name and name.casefold() not in _ORDINARY}
    return re.compile(rf"\b(?:{'|'.join(sorted(names, key=len, reverse=True))})\b")
