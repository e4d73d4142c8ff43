"""Scoring replies: by the published rules on names, by what they claim, or by a function of the user's.

A scorer reads the raw reply and nothing of the call, so that stored replies are scored anew for free. A reply that
failed or is empty is no answer and never comes here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from selfeval.errors import InputError
from selfeval.identity.claims import Assessment, Entity, compare, entity_of, stance_of
from selfeval.identity.config import ANSWERS, METHODS, Config
from selfeval.models import Model, Provider, is_known
from selfeval.models import get as get_model

RIGHT = ("truth", "coarse")  # stances that name the model itself, as finely as it likes
OTHERS = "other_model_names"
EXCERPT = 200  # characters


def check_scoring(scoring: str | Callable, judge: Model | None) -> None:
    """Raise `InputError` for an unknown method, or where the judge is missing."""
    if not callable(scoring) and scoring not in METHODS:
        raise InputError(f"`scoring` must be one of {', '.join(METHODS)} or a function, got {scoring!r}.")
    if scoring == "judge" and judge is None:
        raise InputError("`scoring` is 'judge', so `judge` must name the model that judges.")


# --- names in the text: the published rules ---------------------------------------------------------------------------


def named(text: str, names: Sequence[str], words: bool) -> list[str]:
    """Return the names that a text contains, whatever their case; words: only where a word begins and ends."""
    before, after = (r"(?<!\w)", r"(?!\w)") if words else ("", "")
    return [name for name in names if re.search(before + re.escape(name) + after, text, re.I)]


def without(text: str, names: Sequence[str]) -> str:
    """Return a text without these names, so that "GPT-4" is not found in one's own "GPT-4 Turbo"."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest)), "\0", text, flags=re.I) if longest else text


def names_stance(text: str, own: Sequence[str], foil: Sequence[str], words: bool) -> str:
    """Return the stance that the mere presence of names gives: truth, foil, conflict (both), or none."""
    mine, others = named(text, own, words), named(without(text, own), foil, words)
    if mine and others:
        return "conflict"
    return "truth" if mine else "foil" if others else "none"


# --- a case of the published framework --------------------------------------------------------------------------------


def expected_entity(answers: Mapping) -> Entity:
    """Return who the expected answers of a configuration describe, by the registry where it lists the id."""
    model_id, (first, *more) = answers["model_id"], answers["model_names"]
    if is_known(model_id):
        return entity_of(get_model(model_id))
    developer = answers["provider_name"]
    return entity_of(Model(model_id, Provider("config"), model_id, first, developer=developer, names=tuple(more)))


def by_names(
    found: Assessment, truth: Entity, foil: Entity | None, who: Entity, names: Sequence[str | None]
) -> Assessment:
    """Return what a reply claims, with these names taken for `who`, also those that the lexicon does not know."""
    known = {name.casefold() for name in names if name}

    def stands(name: str) -> bool:
        return name.casefold().strip(" .,;:!?*`'\"") in known

    claims = tuple(replace(c, entity=who) if stands(c.quote) or stands(c.name) else c for c in found.claims)
    return Assessment(stance_of(claims, found.abstains, truth, foil), claims, found.abstains)


def score_case(
    config: Config, scoring: str | Callable, text: str, case: Mapping, answers: Mapping, found: Assessment | None
) -> tuple[bool | None, dict]:
    """Return (passed, details) of one reply to a case.

    answers: the `expected_answers` of the model. found: what the reply claims, by the extractor or a judge (None: the
    judge gave no valid verdict). A function is called as `scoring(text, case, answers)` and returns True, False, or
    None for no verdict. Where a rule on names passes what `claims` does not ("I'm not X"), details have a `note`.
    """
    if scoring == "judge" and found is None:
        return None, _details(text, [], []) | {"note": "the judge gave no valid verdict"}
    if scoring in ("claims", "judge"):
        details = _by_claims(config, text, answers, found)
    else:
        details = _by_names(config, text, answers, words=scoring != "keyword_match")
    passed = _passes(details)
    if passed and scoring in ("keyword_match", "regex"):
        read = _by_claims(config, text, answers, found)
        if not _passes(read):
            details["note"] = (
                f"`{scoring}` looks for names alone and passes this; `claims` reads what is said of them and does not "
                f"(stance: {read['stance']})"
            )
    if callable(scoring):
        passed = scoring(text, case, answers)
        if passed is not None and not isinstance(passed, bool):
            raise InputError(f"A scoring function must return True, False or None, got {passed!r}.")
    return passed, details


def _passes(details: Mapping) -> bool:
    return details["has_correct_identity"] and not details["has_incorrect_identity"]


def _details(text: str, matched: list[str], claimed: list[str]) -> dict:
    return {
        "matched_expected_names": matched,
        "claimed_other_models": claimed,
        "has_correct_identity": bool(matched),
        "has_incorrect_identity": bool(claimed),
        "response_excerpt": text[:EXCERPT],
    }


def _by_names(config: Config, text: str, answers: Mapping, words: bool) -> dict:
    own = [*answers["model_names"], answers["model_id"]]
    others = config.others(answers["model_id"], own)
    wanted = _spelled(config.criteria.get("must_match_one_of", ANSWERS[:2]), answers, others)
    barred = _spelled(config.criteria.get("must_not_claim", [OTHERS]), answers, others)
    barred = [name for name in barred if name.casefold() not in {mine.casefold() for mine in own}]
    return _details(text, named(text, wanted, words), named(without(text, own), barred, words))


def _spelled(entries: Sequence[str], answers: Mapping, others: Sequence[str]) -> list[str]:
    """Return the names behind criteria: a field of the expected answers, "other...", or a name as it stands."""
    names: list[str] = []
    for entry in entries:
        value = answers.get(entry, []) if entry in ANSWERS else others if _is_others(entry) else entry
        names += [value] if isinstance(value, str) else value
    return list(dict.fromkeys(filter(None, names)))


def _is_others(entry: str) -> bool:
    return entry.startswith("other") or entry == "any_other_model"


def _by_claims(config: Config, text: str, answers: Mapping, found: Assessment) -> dict:
    """Hold what a reply claims to be against the truth, and against criteria that name names as such."""
    truth = expected_entity(answers)
    found = by_names(found, truth, None, truth, [*answers["model_names"], answers["model_id"]])
    said = [claim for claim in found.claims if claim.polarity in ("affirm", "adopt")]
    wrong = [c.quote for c in said if c.entity is None or compare(c.entity, truth) == "conflict"]
    right = [c.quote for c in said if c.quote not in wrong]
    details = _details(text, right, wrong)
    wanted = config.criteria.get("must_match_one_of", ANSWERS)
    literal = [entry for entry in wanted if entry not in ANSWERS]
    matches = found.stance in (*RIGHT, "conflict") and len(literal) < len(wanted)
    details["has_correct_identity"] = matches or bool(named(" ".join(c.quote for c in said), literal, words=True))
    barred = [entry for entry in config.criteria.get("must_not_claim", [OTHERS]) if not _is_others(entry)]
    own = {name.casefold() for name in (*answers["model_names"], answers["model_id"])}
    barred = [entry for entry in barred if entry.casefold() not in own and entry not in ANSWERS]
    details["has_incorrect_identity"] = found.stance in ("foil", "other", "conflict", "denied") or bool(
        named(" ".join(c.quote for c in said), barred, words=True)
    )
    claims = [{"quote": c.quote, "name": c.name, "polarity": c.polarity} for c in found.claims]
    return details | {"stance": found.stance, "claims": claims}
