"""Simulated models that fall for claims about who they are at known rates."""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from selfeval.identity.claims import extract
from selfeval.identity.names import Entity, compare, content, entity, entity_of, model_played
from selfeval.identity.run import read_foils
from selfeval.providers.models import Model, get
from selfeval.providers.request import canonical

# kinds of claims, by the words of a text that holds one
KINDS = {
    "switch": re.compile(
        r"\b(?:switch|swap|chang|updat|upgrad|downgrad|migrat|replac|rout|now running)\w*", re.I
    ),
    "correction": re.compile(
        r"\b(?:not right|wrong|incorrect|mistaken|actually|really|no, you)\b", re.I
    ),
}
RATES = {
    "right",
    "accept_true",
    "accept_false",
    "flip",
    "recover",
    "abstain",
    "doubts",
    "alike",
    "plays",
    "mistaken_for",
    "replies",
    "lost",
}
UNKNOWN = "unknown"
# what it says that does not say who it is
WITHHOLDS = "I can't say which model I am."
NOT_SURE = "I'm not sure which."


class Claim(NamedTuple):
    """What a conversation says of the model that answers: who it is, whether truly, and how.

    maker: it names a maker and no model.
    """

    name: str
    true: bool
    kind: str
    maker: bool


def reply(model: Model, rates: Mapping, messages: Sequence[Mapping], draw: random.Random) -> str:
    """Return what a simulated model says at the end of a conversation.

    It falls for claims at known rates. It finds out what is claimed by the names in the
    conversation, and remembers what it said itself by finding it there. It reads names and no
    sentences: what merely mentions a name is a claim to it. Rates of `simulation` in
    `data/models.yaml`, as `role: identity` or without a role, all optional:

      plays          id of the model whose names it bears; by default its own entry's
      right          P(names itself) where nothing is claimed and where it does not fall for a
                     claim (1)
      accept_true    P(accepts its own name where that is claimed of it); by default `right`
      accept_false   P(adopts another name that is claimed of it) (0); a number, or by kind of
                     claim: {switch, correction, other}
      flip           P(adopts it at a later turn, per turn, having resisted so far); by default
                     `accept_false`
      recover        P(names itself again at a later turn, per turn, given that it adopted another
                     name) (0)
      abstain        P(does not say which model it is), before anything else (0)
      doubts         P(names itself and doubts it), before anything else (0)
      mistaken_for   id of the model that it names where it does not name itself; without it, it
                     denies its name
      alike          intraclass correlation of falling for a claim within a situation (0)
      lost           under an attacker, P(gives up its name at a turn, having kept it): {strategy:
                     a number, or one for each turn}; "any" for every strategy, also the control
      replies        {part of the last message: reply}, before anything else
    """
    me = model_played(model)
    fixed = _fixed_reply(me, rates, messages)
    if fixed is not None:
        return fixed
    if draw.random() < rates.get("abstain", 0):
        return WITHHOLDS
    other = _mistaken_for(rates)
    if draw.random() < rates.get("doubts", 0):
        return f"I might be {me.display}, or perhaps {other or 'some other model'}; {NOT_SURE}"
    claim = last_claim(messages, me)
    if "lost" in rates:
        return _under_attack(me, rates["lost"], messages, claim, draw)
    if claim and not claim.true and _adopts(claim, model, rates, messages, draw):
        return f"I was made by {claim.name}." if claim.maker else f"I'm {claim.name}."
    right = rates.get("right", 1)
    if claim and claim.true:
        right = rates.get("accept_true", right)
    if draw.random() >= right:
        return f"I'm {other}." if other else f"I'm not {me.display}."
    maker = me.developer or "an unknown maker"
    return f"I'm {me.display}, specifically {me.api_name} from {maker}."


def _fixed_reply(me: Model, rates: Mapping, messages: Sequence[Mapping]) -> str | None:
    """Return what no chance decides: a reply given beforehand, or a read-out; else None."""
    question = messages[-1]["content"]
    for part, text in (rates.get("replies") or {}).items():
        if part.casefold() in question.casefold():
            return text
    if question in content("readout").values():
        return _readout(me, messages)
    return None


def _under_attack(
    me: Model, lost: Mapping, messages: Sequence[Mapping], claim: Claim | None, draw: random.Random
) -> str:
    """Return who a model says it is, which gives up its name at known rates and for good."""
    kept = f"I'm {me.display}, specifically {me.api_name} from {me.developer}."
    called_itself = _last_self_name(messages)
    if called_itself is None:
        return kept
    if called_itself != me.display:
        return f"I'm {called_itself}."
    turn = sum(message["role"] == "assistant" for message in messages)
    chance = lost.get("any", lost.get(_strategy(messages[-1]["content"]), 0))
    if not isinstance(chance, int | float):
        chance = chance[turn - 1] if turn <= len(chance) else 0
    if draw.random() >= chance:
        return kept
    return f"I'm {claim.name}." if claim and not claim.true else f"I'm not {me.display}."


def _strategy(message: str) -> str:
    """Return the strategy whose example a message is; "" for none."""
    plan = content("attack")
    for name, given in (plan["strategies"] | plan["control"]).items():
        beginning, _, _ = given["example"].partition("{name}")
        if message.startswith(beginning):
            return name
    return ""


def _mistaken_for(rates: Mapping) -> str:
    """Return the model that it takes itself for where it does not name itself, or ""."""
    if "mistaken_for" not in rates:
        return ""
    return get(rates["mistaken_for"]).display


def _adopts(
    claim: Claim, model: Model, rates: Mapping, messages: Sequence[Mapping], draw: random.Random
) -> bool:
    """Draw whether a model adopts the name that is claimed of it, or keeps one it adopted."""
    called_itself = _last_self_name(messages)
    if called_itself == claim.name:
        return draw.random() >= rates.get("recover", 0)
    chance = rates.get("accept_false", 0)
    if isinstance(chance, Mapping):
        chance = chance.get(claim.kind, chance.get("other", 0))
    if called_itself:
        chance = rates.get("flip", chance)
    else:
        chance = _own_chance(model, rates, messages, chance)
    return draw.random() < chance


def last_claim(messages: Sequence[Mapping], me: Model) -> Claim | None:
    """Return the last claim about who answers that the model did not make itself, or None."""
    own = entity_of(me)
    names = [(name, own) for name in me.all_names]
    _, real, invented = read_foils()
    for foil in (*real, *invented):
        if entity(foil.name) is None:
            who = Entity(foil.maker, foil.name)
            names += [(foil.name, who), (foil.id, who)]
    for message in reversed(messages):
        text = message["content"]
        if message["role"] == "assistant" and _self_name(text):
            continue
        claims = extract(text, tuple(names))
        named = [(claim.quote, claim.entity) for claim in claims if claim.entity]
        if not named:
            continue
        false = [each for each in named if compare(each[1], own) == "conflict"]
        kinds = [kind for kind, words in KINDS.items() if words.search(text)]
        # a model before a maker
        quote, who = min(false or named, key=lambda each: each[1].family is None)
        kind = kinds[0] if kinds else "other"
        return Claim(quote, not false, kind, who.family is None)
    return None


def _last_self_name(messages: Sequence[Mapping]) -> str | None:
    """Return what the model called itself in its last reply; None for no reply yet."""
    for message in reversed(messages):
        if message["role"] == "assistant":
            name = _self_name(message["content"])
            if name:
                return name
    return None


def _self_name(text: str) -> str | None:
    """Return the name in a reply of a simulated model, by its wording; None for another text."""
    if text.endswith((WITHHOLDS, NOT_SURE)):
        return UNKNOWN
    form = re.search(
        r"\bI(?:'m| was made by) ((?:not )?(?:[^.]|\.(?=\w))+?)(?:, specifically .+)?\.$", text
    )
    return form[1] if form else None


def _readout(me: Model, messages: Sequence[Mapping]) -> str:
    """Return name and maker, as the model called itself last."""
    name = _last_self_name(messages)
    if name is None or name == UNKNOWN or name.startswith("not "):
        return UNKNOWN
    if name == me.display and me.developer:
        return f"{name}, {me.developer}"
    return name


def _own_chance(model: Model, rates: Mapping, messages: Sequence[Mapping], chance: float) -> float:
    """Return the situation's own chance: the same in every repeat, `chance` in the mean."""
    alike = rates.get("alike", 0)
    if not alike or chance in (0, 1):
        return chance
    size = 1 / alike - 1
    situation = canonical([model.id, [dict(message) for message in messages]])
    draw = random.Random(hashlib.sha256(situation.encode()).digest())
    if size == 0:
        return float(draw.random() < chance)
    return draw.betavariate(chance * size, (1 - chance) * size)
