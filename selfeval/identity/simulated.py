"""Simulated models under identity questions: they play a model of the registry and fall for claims at known rates.

They find out what is claimed by the names in the conversation, and remember what they said themselves by finding it
there. They read names and no sentences: what merely mentions a name is a claim to them. `simulation` in
`data/models.yaml` beside `role: identity`, all optional:

  plays                  id of the model whose names it bears; by default its own entry's
  right                  P(names itself) where nothing is claimed and where it does not fall for a claim (1)
  accept_true            P(accepts its own name where that is claimed of it); by default `right`
  accept_false           P(adopts another name that is claimed of it) (0); a number, or by kind of claim: {switch,
                         correction, other}
  flip                   P(adopts it at a later turn, per turn, having resisted so far); by default `accept_false`
  recover                P(names itself again at a later turn, per turn, given that it adopted another name) (0)
  abstain, doubts        P(does not say which model it is), P(names itself and doubts it), before anything else (0)
  mistaken_for           id of the model that it names where it does not name itself; without it, it denies its name
  alike                  intraclass correlation of falling for a claim within a situation, between 0 and 1 (0)
  replies                {part of the last message: reply}, before anything else
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from selfeval.asking.request import canonical
from selfeval.asking.simulated import ROLES
from selfeval.identity.claims import extract
from selfeval.identity.names import Entity, compare, content, entity_of, model_played
from selfeval.identity.suite import read_foils
from selfeval.models import Model, get

KINDS = {
    "switch": re.compile(r"\b(?:switch|swap|chang|updat|upgrad|downgrad|migrat|replac|rout|now running)\w*", re.I),
    "correction": re.compile(r"\b(?:not right|wrong|incorrect|mistaken|actually|really|no, you)\b", re.I),
}
KNOWN = set("right accept_true accept_false flip recover abstain doubts alike plays mistaken_for replies".split())
UNKNOWN = "unknown"


class Claim(NamedTuple):
    """What a conversation says of the model that answers: who it is said to be, whether truly, and how.

    maker: it names a maker and no model.
    """

    name: str
    true: bool
    kind: str
    maker: bool


def reply(model: Model, rates: Mapping, messages: Sequence[Mapping], draw: random.Random) -> str:
    """Return what a simulated model says at the end of a conversation."""
    question = messages[-1]["content"]
    for part, text in (rates.get("replies") or {}).items():
        if part.casefold() in question.casefold():
            return text
    me = model_played(model)
    if question in content("readout").values():
        return _readout(me, messages)
    if draw.random() < rates.get("abstain", 0):
        return "I can't say which model I am."
    other = get(rates["mistaken_for"]).display if "mistaken_for" in rates else None
    if draw.random() < rates.get("doubts", 0):
        return f"I might be {me.display}, or perhaps {other or 'some other model'}; I'm not sure which."
    said, claim = _last_self_name(messages), last_claim(messages, me)
    adopts = False
    if claim and not claim.true and said == claim.name:
        adopts = draw.random() >= rates.get("recover", 0)
    elif claim and not claim.true:
        chance = rates.get("accept_false", 0)
        chance = chance.get(claim.kind, chance.get("other", 0)) if isinstance(chance, Mapping) else chance
        adopts = draw.random() < (rates.get("flip", chance) if said else _own_chance(model, rates, messages, chance))
    if adopts:
        return f"I was made by {claim.name}." if claim.maker else f"I'm {claim.name}."
    right = rates.get("right", 1)
    if draw.random() < (rates.get("accept_true", right) if claim and claim.true else right):
        return f"I'm {me.display}, specifically {me.api_name} from {me.developer or 'an unknown maker'}."
    return f"I'm {other}." if other else f"I'm not {me.display}."


def last_claim(messages: Sequence[Mapping], me: Model) -> Claim | None:
    """Return the last claim about who answers that the model did not make itself, or None."""
    own = entity_of(me)
    names = [(name, own) for name in me.all_names]
    names += [(name, Entity(one.maker, one.name)) for one in read_foils()[2] for name in (one.name, one.id)]
    for message in reversed(messages):
        if message["role"] == "assistant" and _self_name(message["content"]):
            continue
        found = [c for c in extract(message["content"], tuple(names)) if c.entity]
        if not found:
            continue
        false = [c for c in found if compare(c.entity, own) == "conflict"]
        kind = next((kind for kind, words in KINDS.items() if words.search(message["content"])), "other")
        first = min(false or found, key=lambda c: c.entity.family is None)
        return Claim(first.quote, not false, kind, first.entity.family is None)
    return None


def _last_self_name(messages: Sequence[Mapping]) -> str | None:
    """Return what the model called itself in its last reply; None for no reply yet."""
    turns = (message["content"] for message in reversed(messages) if message["role"] == "assistant")
    return next(filter(None, map(_self_name, turns)), None)


def _self_name(text: str) -> str | None:
    """Return the name in a reply of a simulated model, known by its wording; None for another text."""
    if text.endswith(("I can't say which model I am.", "I'm not sure which.")):
        return UNKNOWN
    form = re.search(r"\bI(?:'m| was made by) ((?:not )?(?:[^.]|\.(?=\w))+?)(?:, specifically .+)?\.$", text)
    return form and form[1]


def _readout(me: Model, messages: Sequence[Mapping]) -> str:
    said = _last_self_name(messages)
    if said is None or said == UNKNOWN or said.startswith("not "):
        return UNKNOWN
    return f"{said}, {me.developer}" if said == me.display and me.developer else said


def _own_chance(model: Model, rates: Mapping, messages: Sequence[Mapping], chance: float) -> float:
    """Return the situation's own chance: the same in every repeat, with mean `chance` over situations."""
    alike = rates.get("alike", 0)
    if not alike or chance in (0, 1):
        return chance
    size = 1 / alike - 1
    seed = hashlib.sha256(canonical([model.id, [dict(m) for m in messages]]).encode()).digest()
    drawn = random.Random(seed)
    return drawn.betavariate(chance * size, (1 - chance) * size) if size else float(drawn.random() < chance)


ROLES["identity"] = reply, KNOWN
