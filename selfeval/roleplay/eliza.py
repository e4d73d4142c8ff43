"""A scripted support agent in the manner of ELIZA (Weizenbaum 1966): patterns and reflections, nothing understood.

It is the floor of the comparison: a jury that does not place it below people has not noticed what it read. Its script
stands in `data/roleplay/eliza.yaml`.
"""

import random
import re
from collections.abc import Callable
from functools import cache

import yaml

from selfeval import DATA


@cache
def _script() -> dict:
    return yaml.safe_load((DATA / "roleplay" / "eliza.yaml").read_text(encoding="utf-8"))


def reflect(words: str) -> str:
    """Return words of the customer as said to the customer: "my file" becomes "your file"."""
    return " ".join(_script()["reflected"].get(word.lower(), word) for word in words.split())


def answer(text: str, draw: random.Random) -> str:
    """Return an answer to one message: that of the first rule which fits, its variant drawn."""
    plain = " ".join(text.replace("’", "'").split())
    for rule in _script()["rules"]:
        if found := re.search(rule["pattern"], plain, re.I):
            part = re.split(r"[.,;:!?]", found[1])[0].strip() if found.groups() else ""
            return draw.choice(rule["answers"]).format(reflect(part) or "it")
    return draw.choice(_script()["anything"])


def agent(seed: int) -> Callable:
    """Return ELIZA as a callable on messages; the same messages and seed have the same answer."""

    def reply(messages: list[dict], **_) -> str:
        heard = [message["content"] for message in messages if message["role"] == "user"]
        return answer(heard[-1], random.Random(f"{seed}\n" + "\n".join(heard)))

    return reply
