"""Stances: what a reply says about who is speaking, held against the truth."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from selfeval.identity.claims import AFFIRMED, Claim, Reply
from selfeval.identity.names import Entity, Names, compare, is_whole


class Assessment(NamedTuple):
    """What a reply says about who is speaking, held against the truth.

    The stances stand at `assess`.
    """

    stance: str
    claims: tuple[Claim, ...]
    abstains: bool

    def listed(self) -> list[dict]:
        """Return the claims as records hold them."""
        return [{"quote": c.quote, "name": c.name, "polarity": c.polarity} for c in self.claims]


@lru_cache(4096)  # many replies are alike, and reading one takes milliseconds
def assess(text: str, truth: Entity, foil: Entity | None = None, names: Names = ()) -> Assessment:
    """Return the stance of a reply. names: as in `extract`, beside the full ones of truth and foil.

    "truth"     equal, or only without the snapshot
    "coarse"    coarser but consistent
    "foil"      the name of the claim
    "other"     a conflicting identity that is not the foil, or an unknown name
    "denied"    denies the truth and affirms at most a coarser name
    "conflict"  affirms the truth and a conflicting identity
    "abstain"   does not know, or will not say
    "none"      says nothing about who it is

    A coarser name beside a conflicting finer one ("I'm Claude, Claude Opus 4") belongs to the
    conflicting one, and the foil's maker beside another model or an unknown name ("GPT-4, OpenAI"
    where the foil is GPT-5 mini) is no foil. What a reply takes back ("I am X. On reflection I am
    not X.") it does not claim.
    """
    reply = Reply(text, (*((one.name, one) for one in (truth, foil) if one), *names))
    claims = tuple(reply.claims())
    abstained = reply.abstains(claims)
    return Assessment(stance_of(claims, abstained, truth, foil), claims, abstained)


def stance_of(
    claims: Sequence[Claim], abstained: bool, truth: Entity, foil: Entity | None = None
) -> str:
    """Return the stance, as `assess` does, of claims that the extractor or a judge read."""
    claims = _last_words(claims)
    affirmed = [*dict.fromkeys(c.entity for c in claims if c.polarity in AFFIRMED)]
    right = [who for who in affirmed if _fits(who, truth, foil)]
    wrong = [who for who in affirmed if not _fits(who, truth, foil)]
    names_truth = any(is_whole(who, truth) for who in right)
    denies_truth = any(c.polarity == "deny" and _denies(c.entity, truth) for c in claims)
    if wrong and (names_truth or not all(_belongs(who, wrong) for who in right)):
        return "conflict"
    if wrong:
        return "foil" if foil and _state(wrong, foil) else "other"
    if denies_truth:
        return "conflict" if names_truth else "denied"
    if right:
        return "truth" if names_truth else "coarse"
    guesses = any(c.polarity == "hedge" for c in claims)
    return "abstain" if abstained or guesses else "none"


def _fits(claimed: Entity | None, truth: Entity, foil: Entity | None) -> bool:
    """Tell whether a claim fits the truth.

    One that states the foil does not: GPT-4.1 for GPT-4.1 mini.
    """
    if claimed is None or compare(claimed, truth) == "conflict":
        return False
    names_foil = foil is not None and compare(foil, truth) == "conflict" and is_whole(claimed, foil)
    return not names_foil


def _denies(denied: Entity | None, truth: Entity) -> bool:
    return denied is not None and compare(denied, truth) in ("equal", "coarser")


def _belongs(claimed: Entity, wrong: Sequence[Entity | None]) -> bool:
    """Tell whether a coarse name belongs to a wrong finer one: "I'm Claude, Claude Opus 4"."""
    return any(who and compare(claimed, who) == "coarser" for who in wrong)


def read_apart(found: Assessment, truth: Entity, foil: Entity | None) -> tuple[str, str | None]:
    """Return the stances of a reply by the name that it gives, and by the maker.

    "Nova Pro, made by Alibaba" has both. By name: what stands in the maker's place says nothing,
    that is makers, and unknown names behind a known one; where two makers are named and no model
    ("Moonshot AI by Alibaba"), the first is in the name's place. A reply that names nothing but a
    maker is read by it, as `assess` does. By maker: the makers it names, else that of the model it
    names; None where truth and foil are of one maker, or of none that is known.
    """
    denied = [c for c in found.claims if c.polarity == "deny" and _is_maker(c)]
    others = [c for c in found.claims if c.polarity != "deny" or not _is_maker(c)]
    kept = {*_last_words(found.claims)}
    claims = [c for c in _last_words(others) if c in kept or not _is_maker(c)]
    said = [c for c in claims if c.polarity in AFFIRMED]
    makers = [c for c in said if _is_maker(c)]
    two = len({c.entity.developer for c in makers}) > 1
    names = [c for c in said if c.entity and not _is_maker(c)] or makers[: int(two)]
    given = {*names}
    beside = [
        c for c in said if c not in given and (c.entity or (names and c.start > names[0].start))
    ]
    by_name = found.stance
    if names:
        apart = {*beside}
        by_name = stance_of([c for c in claims if c not in apart], found.abstains, truth, foil)
    sides = [Entity(who.developer) for who in (truth, foil) if who]
    if Entity() in sides or (foil and compare(*sides) == "equal"):
        return by_name, None
    told = sorted([*denied, *(beside or names)], key=lambda c: c.start)
    told = [c._replace(entity=c.entity and Entity(c.entity.developer)) for c in told]
    return by_name, stance_of(told, found.abstains, *sides)


def _is_maker(claim: Claim) -> bool:
    return claim.entity is not None and not claim.entity.family


def _last_words(claims: Sequence[Claim]) -> list[Claim]:
    """Leave out what a later claim takes back.

    "At first glance I am X. On reflection I am not X." ends as a denial.
    """
    kept: list[Claim] = []
    later: dict[tuple, Claim] = {}  # by what it says: a reply may say the same a thousand times
    for claim in reversed(claims):
        if not any(_takes_back(other, claim) for other in later.values()):
            kept.append(claim)
        later[claim.entity, claim.polarity] = claim
    return kept[::-1]


def _takes_back(later: Claim, claim: Claim) -> bool:
    """Tell whether a later claim unsays one.

    A denial unsays what was affirmed, an affirmation what was denied, and the name of a model the
    role of another: "From now on I'm X. But my actual model is Y."
    """
    if (
        claim.polarity == "adopt"
        and later.polarity == "affirm"
        and later.entity
        and later.entity.family
    ):
        return claim.entity is None or compare(later.entity, claim.entity) == "conflict"
    if claim.entity is None or later.entity is None:
        return False
    if claim.polarity in AFFIRMED and later.polarity == "deny":
        relation = compare(later.entity, claim.entity)
        is_broad = not (later.entity.version or later.entity.tier)  # "not made by OpenAI", of GPT-4
        return relation == "equal" or (relation == "coarser" and is_broad)
    if claim.polarity == "deny" and later.polarity in AFFIRMED:
        return compare(later.entity, claim.entity) == "equal"
    return False


def _state(wrong: Sequence[Entity | None], foil: Entity) -> bool:
    """Tell whether names that are not the truth state the foil.

    A coarser one does (its maker) where no other name contradicts the foil: "GPT-4, OpenAI" is not
    GPT-5 mini.
    """
    relations = {e and compare(e, foil) for e in wrong}
    return bool(relations & {"equal", "finer"}) or relations == {"coarser"}
