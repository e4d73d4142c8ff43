"""Simulated models: real answers to the real prompts, drawn from rates that are known.

Each evaluation plays a role of `simulation` in `data/models.yaml` and puts it into `ROLES` when it is imported: the
packages `selfeval.recognition` (entries without a `role`), `selfeval.identity` and `selfeval.roleplay` do.
Here is what they share. Every draw is seeded by the request, so the same request always has the same reply; what a
simulated model writes carries its tell, a word that no other writes.
"""

import hashlib
import random
import re
from collections.abc import Callable, Collection
from functools import cache

from selfeval.asking.request import Request, Response, canonical
from selfeval.errors import InputError, check_one_of
from selfeval.models import Model, models

Play = Callable[[Model, dict, list[dict], random.Random], str]  # (model, rates, messages, draw) -> reply
ROLES: dict[str, tuple[Play, Collection[str]]] = {}  # role: who plays it, and the rates it knows
WORDS = (
    "river morning engine garden letter window market silver quiet bridge winter forest story paper coffee signal "
    "teacher harbour village copper music season number corner shadow candle journey kitchen planet winding gentle "
    "narrow early patient bright hollow distant common curious steady open careful plain sudden ordinary"
).split()
VERBS = "keeps follows carries changes opens remembers crosses gathers measures answers leaves repeats".split()


def answer(request: Request, messages: list[dict], **parameters) -> Response:
    """Return what a simulated model answers to the messages of a request."""
    model = request.model
    rates = dict(model.simulation or {})
    role = rates.pop("role", None) or "recognition"
    check_one_of(f"role` of `{model.id}", role, ROLES)
    reply, known = ROLES[role]
    if unknown := set(rates) - set(known):
        raise InputError(f"The model {model.id!r} has the unknown simulation parameter `{min(unknown)}`.")
    seed = canonical({"m": model.id, "x": messages, "s": request.sample, "seed": request.seed})
    draw = random.Random(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]))
    text = reply(model, rates, messages, draw)
    usage = {"prompt": len(messages[-1]["content"].split()), "completion": len(text.split())}
    return Response(text, finish_reason="stop", usage=usage, cost=0.0, served_model=model.id)


def write(model: Model, question: str, draw: random.Random) -> str:
    """Write a text with the model's tell, of as many words as the question asks for."""
    wanted = re.search(r"(\d+) words", question)
    words: list[str] = []
    while len(words) < (int(wanted[1]) if wanted else 60):
        first, second, third = draw.sample(WORDS, 3)
        words += ["The", first, second, draw.choice(VERBS), "a", third, tell(model.id) + "."]
    return " ".join(words)


@cache
def tell(author: str) -> str:
    """Return the word that an author's texts carry: four syllables from a hash of its id."""
    digest = hashlib.sha256(author.encode()).digest()
    return "".join("bdfgklmnprstvz"[digest[i] % 14] + "aeiou"[digest[i + 1] % 5] for i in range(0, 8, 2))


def author_of(text: str) -> str | None:
    """Return the id of the simulated author whose tell stands in a text, or None."""
    return next((m.id for m in models().values() if m.provider.name == "sim" and tell(m.id) in text), None)
