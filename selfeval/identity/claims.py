"""Claims: which models and makers does a reply claim to be, deny to be, or merely mention?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from selfeval.identity.lexicon import Entity, compare, entity, entity_of, mentions
from selfeval.identity.plain import fold

__all__ = ["Assessment", "Claim", "Entity", "abstains", "assess", "compare", "entity", "entity_of", "extract"]


@dataclass(frozen=True)
class Claim:
    """One name in a reply and what the reply says with it; `text[start:end] == quote`.

    entity: None = an unknown name in an identity frame. polarity: affirm, deny, adopt ("from now on I am X"),
    attributed ("you said I am X"), quoted, fiction, hypothetical, question, hedge or mention.
    """

    quote: str
    start: int
    end: int
    entity: Entity | None
    name: str
    polarity: str


@dataclass(frozen=True)
class Assessment:
    """What a reply says about who is speaking, held against the truth; the stances stand at `assess`."""

    stance: str
    claims: tuple[Claim, ...]
    abstains: bool


def extract(text: str, known: Sequence[Entity] = ()) -> list[Claim]:
    """Return every claim in the order of the text. known: further models, matched by their names (invented foils)."""
    plain = fold(text)
    found = []
    for m in mentions(plain, known):
        start, end = plain.origin(m.start, m.end)
        denied = re.search(r"\bnot\b|n't\b", plain.low[max(0, m.start - 12) : m.start])
        name = m.entity.name if m.entity else text[start:end]
        found.append(Claim(text[start:end], start, end, m.entity, name, "deny" if denied else "affirm"))
    return found


def abstains(text: str) -> bool:
    """Tell whether a reply says that it does not know, or will not say, who is speaking."""
    return bool(
        re.search(r"\b(?:unknown|i (?:do not|don't) know|can(?:no|')t (?:say|tell|share|disclose))\b", text, re.I)
    )


def assess(text: str, truth: Entity, foil: Entity | None = None) -> Assessment:
    """Return the stance of a reply.

    "truth" (equal) | "coarse" (coarser but consistent) | "foil" | "other" (a conflicting identity that is not the foil,
    or an unknown name) | "denied" (denies the truth, names nobody) | "conflict" (affirms the truth and a conflicting
    identity) | "abstain" | "none" (says nothing about who is speaking).
    """
    claims = tuple(extract(text, [e for e in (truth, foil) if e]))
    said = [c for c in claims if c.polarity in ("affirm", "adopt")]
    relations = {compare(c.entity, truth) if c.entity else "conflict" for c in said}
    if "conflict" in relations:
        stance = "conflict" if relations - {"conflict"} else "foil" if foil and said[0].entity == foil else "other"
    elif relations:
        stance = "coarse" if relations == {"coarser"} else "truth"
    elif any(c.polarity == "deny" and c.entity and compare(c.entity, truth) in ("equal", "coarser") for c in claims):
        stance = "denied"
    else:
        stance = "abstain" if abstains(text) else "none"
    return Assessment(stance, claims, abstains(text))
