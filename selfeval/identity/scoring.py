"""Stances: what a reply says about who is speaking, held against the truth."""

from collections.abc import Iterable, Sequence
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
        fields = ("quote", "name", "polarity")
        return [{field: getattr(claim, field) for field in fields} for claim in self.claims]


@lru_cache(4096)  # many replies are alike, and reading one takes milliseconds
def assess(text: str, truth: Entity, foil: Entity | None = None, names: Names = ()) -> Assessment:
    """Return the stance of a reply. names: as in `extract`, beside the full ones of truth and foil.

    "truth"     equal, or only without the snapshot
    "coarse"    coarser but consistent
    "foil"      the identity that the prompt claims falsely
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
    known = [(entity.name, entity) for entity in (truth, foil) if entity]
    reply = Reply(text, (*known, *names))
    claims = tuple(reply.claims())
    abstained = reply.abstains(claims)
    return Assessment(stance_of(claims, abstained, truth, foil), claims, abstained)


def stance_of(
    claims: Iterable[Claim], abstained: bool, truth: Entity, foil: Entity | None = None
) -> str:
    """Return the stance, as `assess` does, of claims that the extractor or a judge read."""
    claims = _last_words([*claims])
    affirmed = dict.fromkeys(claim.entity for claim in claims if claim.polarity in AFFIRMED)
    right = [entity for entity in affirmed if entity and _is_consistent(entity, truth, foil)]
    wrong = [entity for entity in affirmed if not _is_consistent(entity, truth, foil)]
    denied = [claim.entity for claim in claims if claim.polarity == "deny"]
    names_truth = any(is_whole(entity, truth) for entity in right)
    denies_truth = any(_denies(entity, truth) for entity in denied)
    right_is_coarse_form = all(_is_coarse_form_of_one(entity, wrong) for entity in right)

    if wrong and (names_truth or not right_is_coarse_form):
        return "conflict"
    if wrong:
        return "foil" if foil and _name_the_foil(wrong, foil) else "other"
    if denies_truth and names_truth:
        return "conflict"
    if denies_truth:
        return "denied"
    if names_truth:
        return "truth"
    if right:
        return "coarse"
    has_guessed = any(claim.polarity == "hedge" for claim in claims)
    return "abstain" if abstained or has_guessed else "none"


def _is_consistent(claimed: Entity | None, truth: Entity, foil: Entity | None) -> bool:
    """Tell whether a claim fits the truth.

    One that states the foil does not: GPT-4.1 for GPT-4.1 mini.
    """
    if claimed is None or compare(claimed, truth) == "conflict":
        return False
    names_foil = foil is not None and compare(foil, truth) == "conflict" and is_whole(claimed, foil)
    return not names_foil


def _denies(denied: Entity | None, truth: Entity) -> bool:
    return denied is not None and compare(denied, truth) in ("equal", "coarser")


def _is_coarse_form_of_one(claimed: Entity, wrong: Sequence[Entity | None]) -> bool:
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
    denied_makers = []
    others = []
    for claim in found.claims:
        if claim.polarity == "deny" and _is_maker(claim):
            denied_makers.append(claim)
        else:
            others.append(claim)
    # a denied maker takes back what was said of makers, and not a name
    last = {*_last_words(found.claims)}
    claims = [claim for claim in _last_words(others) if claim in last or not _is_maker(claim)]
    names, makers = _names_and_makers(claims)

    by_name = found.stance
    if names:
        apart = {*makers}
        without_makers = [claim for claim in claims if claim not in apart]
        by_name = stance_of(without_makers, found.abstains, truth, foil)
    sides = [Entity(side.developer) for side in (truth, foil) if side]
    if Entity() in sides or (foil and compare(*sides) == "equal"):
        return by_name, None
    told = sorted([*denied_makers, *(makers or names)], key=lambda claim: claim.start)
    return by_name, stance_of(map(_of_maker, told), found.abstains, *sides)


def _names_and_makers(claims: Sequence[Claim]) -> tuple[list[Claim], list[Claim]]:
    """Return the affirmed claims that stand in the name's place, and those in the maker's."""
    affirmed = [claim for claim in claims if claim.polarity in AFFIRMED]
    named_makers = [claim for claim in affirmed if _is_maker(claim)]
    names = [claim for claim in affirmed if claim.entity and not _is_maker(claim)]
    if not names and len({claim.entity.developer for claim in named_makers if claim.entity}) > 1:
        names = named_makers[:1]
    makers = []
    given = {*names}
    for claim in affirmed:
        is_behind_name = bool(names) and claim.start > names[0].start
        if claim not in given and (claim.entity or is_behind_name):
            makers.append(claim)
    return names, makers


def _of_maker(claim: Claim) -> Claim:
    """Return a claim as one of the maker alone."""
    return claim._replace(entity=claim.entity and Entity(claim.entity.developer))


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
    names_a_model = later.entity is not None and bool(later.entity.family)
    if claim.polarity == "adopt" and later.polarity == "affirm" and names_a_model:
        return claim.entity is None or compare(later.entity, claim.entity) == "conflict"
    if claim.entity is None or later.entity is None:
        return False
    relation = compare(later.entity, claim.entity)
    if claim.polarity in AFFIRMED and later.polarity == "deny":
        is_broad = not (later.entity.version or later.entity.tier)  # "not made by OpenAI", of GPT-4
        return relation == "equal" or (relation == "coarser" and is_broad)
    if claim.polarity == "deny" and later.polarity in AFFIRMED:
        return relation == "equal"
    return False


def _name_the_foil(wrong: Sequence[Entity | None], foil: Entity) -> bool:
    """Tell whether names that are not the truth state the foil.

    A coarser one does (its maker) where no other name contradicts the foil: "GPT-4, OpenAI" is not
    GPT-5 mini.
    """
    relations = {entity and compare(entity, foil) for entity in wrong}
    return bool(relations & {"equal", "finer"}) or relations == {"coarser"}
