"""Claims: which models and makers does a reply claim to be, deny to be, or merely mention?

Names come from the lexicon (`data/identity/lexicon.yaml`, `selfeval.identity.lexicon`), what ties them to the speaker
from the rule tables of `selfeval.identity.frames`, applied in `selfeval.identity.reading`: a head ("I am", "my maker
is", "Name:") opens a statement; a walk over link words ("a large language model made by") leads to the first name and
on to further ones; rules on the words around decide the polarity. A name that no walk reaches is a mention.
On replies that the rules had not seen, claims and denials had precision .91 and recall .85 (see the tests).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from selfeval.identity import frames
from selfeval.identity.lexicon import Entity, compare, entity, entity_of
from selfeval.identity.plain import fold
from selfeval.identity.reading import AFFIRMED, Reading

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
    reading = Reading(text, known)
    found = []
    for start, end, one, polarity in reading.claims():
        begin, stop = reading.plain.origin(start, end)
        quote = text[begin:stop]
        found.append(Claim(quote, begin, stop, one, one.name if one else quote, polarity))
    return found


def abstains(text: str) -> bool:
    """Tell whether a reply says that it does not know, or will not say, who is speaking, and affirms no name."""
    return _abstains(text, extract(text))


def _abstains(text: str, claims: Sequence[Claim]) -> bool:
    if any(c.polarity in AFFIRMED for c in claims):
        return False
    plain = fold(text)
    low = plain.low
    if frames.UNKNOWN_ONLY.fullmatch(low.strip()):
        return True
    open_claims = sorted(c.start for c in claims if c.polarity in ("hedge", "attributed", "hypothetical", "question"))
    begin = before = 0  # a claim left open in this sentence or the one before
    for end in [*(m.end() for m in frames.SENTENCE_END.finditer(low)), len(low)]:
        sentence = low[begin : min(end, begin + 400)]
        if sentence.strip() and frames.WITHHOLDS.search(sentence):
            first, last = plain.origin(before, before + 1)[0], plain.origin(end - 1, end)[1]
            near = bisect_left(open_claims, first) < bisect_left(open_claims, last)
            if near or frames.ON_IDENTITY.search(sentence):
                return True
        begin, before = end, begin
    return False


def assess(text: str, truth: Entity, foil: Entity | None = None) -> Assessment:
    """Return the stance of a reply.

    "truth" (equal, or only without the snapshot) | "coarse" (coarser but consistent) | "foil" | "other" (a conflicting
    identity that is not the foil, or an unknown name) | "denied" (denies the truth and affirms at most a coarser name)
    | "conflict" (affirms the truth and a conflicting identity) | "abstain" | "none" (says nothing about who it is).
    A coarser name beside a conflicting finer one ("I'm Claude, Claude Opus 4") belongs to the conflicting one, and the
    foil's maker beside another model or an unknown name ("GPT-4, OpenAI" where the foil is GPT-5 mini) is no foil. What
    a reply takes back ("I am X. On reflection I am not X.") it does not claim.
    """
    claims = tuple(extract(text, [e for e in (truth, foil) if e]))
    abstained = _abstains(text, claims)
    return Assessment(stance_of(claims, abstained, truth, foil), claims, abstained)


def stance_of(claims: Sequence[Claim], abstained: bool, truth: Entity, foil: Entity | None = None) -> str:
    """Return the stance, as `assess` does, of claims about the speaker that anybody read (the extractor, a judge)."""
    claims = _last_words(claims)
    said = [c.entity for c in claims if c.polarity in AFFIRMED]
    wrong = [e for e in said if e is None or compare(e, truth) == "conflict" or _is_foil(e, truth, foil)]
    right = [e for e in said if e not in wrong]
    denies = any(c.polarity == "deny" and c.entity and compare(c.entity, truth) in ("equal", "coarser") for c in claims)
    exact = any(_names(e, truth) for e in right)
    if wrong:
        apart = any(not any(w and compare(e, w) == "coarser" for w in wrong) for e in right)
        return "conflict" if exact or apart else "foil" if foil and _state(wrong, foil) else "other"
    if exact:
        return "conflict" if denies else "truth"
    if denies:
        return "denied"
    if right:
        return "coarse"
    return "abstain" if abstained or any(c.polarity == "hedge" for c in claims) else "none"


def _last_words(claims: Sequence[Claim]) -> list[Claim]:
    """Leave out what a later claim takes back: "At first glance I am X. On reflection I am not X." ends as a denial."""

    def unsaid(one: Claim, later: Claim) -> bool:
        if one.entity is None or later.entity is None:
            return False
        if one.polarity in AFFIRMED and later.polarity == "deny":
            broad = not (later.entity.version or later.entity.tier)  # "not made by OpenAI", of GPT-4
            return (found := compare(later.entity, one.entity)) == "equal" or (found == "coarser" and broad)
        return one.polarity == "deny" and later.polarity in AFFIRMED and compare(later.entity, one.entity) == "equal"

    return [c for i, c in enumerate(claims) if not any(unsaid(c, later) for later in claims[i + 1 :])]


def _state(wrong: Sequence[Entity | None], foil: Entity) -> bool:
    """Tell whether names that are not the truth state the foil.

    A coarser one does (its maker) where no other name contradicts the foil: "GPT-4, OpenAI" is not GPT-5 mini.
    """
    relations = {e and compare(e, foil) for e in wrong}
    return bool(relations & {"equal", "finer"}) or relations == {"coarser"}


def _is_foil(claimed: Entity, truth: Entity, foil: Entity | None) -> bool:
    """Tell whether a claim states a foil that differs from the truth: GPT-4.1 for GPT-4.1 mini is no coarse truth."""
    return foil is not None and compare(foil, truth) == "conflict" and _names(claimed, foil)


def _names(claimed: Entity, truth: Entity) -> bool:
    """Tell whether a claim names the truth: nothing open but the snapshot."""
    whole = Entity(truth.developer, truth.family, truth.version, truth.tier, claimed.snapshot and truth.snapshot)
    return compare(claimed, whole) in ("equal", "finer")
