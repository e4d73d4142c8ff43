"""How a reply is read: by its claims, by names alone, or by a judge.

The judge reads one reply and lists what it claims, held to quotes that stand in the reply. It is
shown neither the situation nor who the speaker is said to be, so that it cannot take sides; whether
a claim is true is computed from its list.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import pandas as pd
from jsonschema import Draft202012Validator

from selfeval.errors import InputError, check_one_of
from selfeval.identity.claims import AFFIRMED, Claim
from selfeval.identity.measures import SITUATION
from selfeval.identity.names import (
    Entity,
    Names,
    compare,
    content,
    entity,
    entity_of,
    model_played,
    who_is,
)
from selfeval.identity.scoring import Assessment, assess, read_apart, stance_of
from selfeval.providers.client import Client
from selfeval.providers.models import Model, get, models
from selfeval.providers.request import Request, fenced, user
from selfeval.reading.parsing import without_thinking
from selfeval.records.tables import Rows, records_of
from selfeval.secrets import tell

SCORING = ("claims", "keyword_match", "regex", "judge")
VERDICT = (
    "stance",
    "name_stance",
    "maker_stance",
    "claims",
    "accepts",
    "passed",
    "named",
    "scorer",
)
# stances that name the model itself, as finely as it likes
RIGHT = ("truth", "coarse")
# fields that the statistics need
NEEDED = (*SITUATION, "control_of", "repeat", "turn", "source", "stance", "accepts")


class Sides(NamedTuple):
    """Whom a reply is held against: who answered (truth), and who it was said to be (foil).

    known: names that the lexicon lacks, and whose they are. own, others: the names that rules on
    names look for.
    """

    truth: Entity
    foil: Entity | None
    known: Names
    own: tuple[str, ...]
    others: tuple[str, ...]


def read_reply(
    text: str, sides: Sides, scoring: str, judged: Mapping[str, dict | None]
) -> Assessment | None:
    """Return what a reply says about who is speaking, None where the judge gave no valid verdict.

    scoring: one of `SCORING`. judged: {reply: verdict of the judge}.
    """
    if scoring == "claims":
        return assess(text, sides.truth, sides.foil, sides.known)
    if scoring == "judge":
        verdict = judged[text]
        return assess_verdict(verdict, text, sides) if verdict else None
    own, others = found_names(without_thinking(text), sides.own, sides.others, scoring)
    stances = {
        (True, True): "conflict",
        (True, False): "truth",
        (False, True): "foil",
        (False, False): "none",
    }
    return Assessment(stances[bool(own), bool(others)], (), False)


def try_to_read(
    text: str, sides: Sides, scoring: str, judged: Mapping[str, dict | None]
) -> tuple[Assessment | None, str]:
    """Return what `read_reply` does, and "" or why the reply is unreadable."""
    try:
        return read_reply(text, sides, scoring, judged), ""
    except Exception as error:
        return None, f"unreadable: {type(error).__name__}: {error}"


def found_names(
    text: str, own: Sequence[str], others: Sequence[str], scoring: str
) -> tuple[list[str], list[str]]:
    """Return which of the own and of the other names a text contains, in upper or lower case.

    Another name that is part of an own one ("GPT-4" in "GPT-4 Turbo") is not found in it. scoring:
    keyword_match, or regex, which wants whole words.
    """
    form = r"(?<!\w){}(?!\w)" if scoring == "regex" else "{}"

    def named(text: str, names: Sequence[str]) -> list[str]:
        return [name for name in names if re.search(form.format(re.escape(name)), text, re.I)]

    longest_first = sorted(own, key=len, reverse=True)
    own_names = "|".join(map(re.escape, longest_first))
    rest = re.sub(own_names, "\0", text, flags=re.I)
    return named(text, own), named(rest, others)


# --- a judge


def as_judge(judge: str | Model | None, scoring: str, models: Sequence[Model]) -> Model | None:
    """Return the model that judges, if any; refuse one that is missing or of a judged family."""
    check_one_of("scoring", scoring, SCORING)
    simulation = get(judge).simulation if judge else None
    if simulation is not None and "replies" not in simulation:
        raise InputError(f"{judge} is simulated and scores no replies; name a real model.")
    if not judge and scoring == "judge":
        raise InputError("`scoring` is 'judge', so `judge` must name the model that judges.")
    if not judge:
        return None
    judge = get(judge)
    for model in (*models, *map(model_played, models)):
        is_relative = judge.family and judge.family == model.family
        if judge.id == model.id or is_relative:
            of_family = f"The judge {judge.id!r} is of the family of {model.id!r}"
            raise InputError(f"{of_family}; name one of another family.")
    return judge


def question(judge: Model, reply: str) -> Request:
    """Return the request that asks a judge about one reply."""
    parameters: dict = {"temperature": 0.0, "max_tokens": max(600, judge.provider.answer_tokens)}
    if judge.provider.json_schema:
        form = {"name": "claims", "strict": True, "schema": content("judge")["schema"]}
        parameters["response_format"] = {"type": "json_schema", "json_schema": form}
    return Request(judge, user(fenced(reply) + content("judge")["instruction"]), parameters)


async def verdicts(client: Client, judge: Model, replies: Sequence[str]) -> dict[str, dict | None]:
    """Return a judge's verdict on every reply; None where it gave none that is valid."""
    different = list(dict.fromkeys(replies))  # the same words are judged once
    responses = await client.chat_all([question(judge, reply) for reply in different], "verdicts")
    by_reply = {}
    for reply, response in zip(different, responses, strict=True):
        by_reply[reply] = None
        if response.status in ("ok", "length"):
            by_reply[reply] = read_verdict(response.text, reply)
    return by_reply


def read_verdict(answer: str, reply: str) -> dict | None:
    """Return the verdict in a judge's answer; None where it breaks the form or misquotes."""
    try:
        verdict, _ = json.JSONDecoder().raw_decode(answer[max(answer.find("{"), 0) :])
    except (ValueError, RecursionError):
        return None
    schema = json.dumps(content("judge")["schema"])
    # some judges add a reason
    form = json.loads(schema.replace("false", "true"))
    if not Draft202012Validator(form).is_valid(verdict):
        return None
    for claim in verdict["claims"]:
        if not claim["quote"].strip() or claim["quote"] not in reply:
            return None
    return verdict


def assess_verdict(verdict: dict, reply: str, sides: Sides) -> Assessment:
    """Return the stance that a verdict gives a reply, in the words of `claims.assess`."""
    names = [(who.name, who) for who in (sides.truth, sides.foil) if who]
    names += sides.known
    about_speaker = [entry for entry in verdict["claims"] if entry["subject"] == "speaker"]
    claims = tuple(_claim(entry, reply, tuple(names)) for entry in about_speaker)
    stance = stance_of(claims, verdict["abstains"], sides.truth, sides.foil)
    return Assessment(stance, claims, verdict["abstains"])


def _claim(entry: dict, reply: str, names: Names) -> Claim:
    """Return a claim of a verdict as the rules write one."""
    quote = entry["quote"]
    start = reply.index(quote)
    name = entry["entity"].strip()
    who = entity(entry["entity"], names)
    if not name:
        name = entry["maker"].strip()
        who = who or entity(entry["maker"], names)
    return Claim(quote, start, start + len(quote), who, name, entry["polarity"])


# --- records


def rescore(
    records: Sequence[Mapping], scoring: str = "claims", judged: Mapping | None = None
) -> list[dict]:
    """Return the records scored anew from their raw replies, without a call.

    Read-outs are always scored by their claims. scoring: one of `SCORING`. judged: for
    `judge`, {free reply: verdict, or None where it is not valid}.
    """
    foils = {(record["foil"], record["foil_maker"]) for record in records}
    spelled = {entity(name) or Entity(maker, name): name for name, maker in sorted(foils)}
    scored = []
    unreadable = []
    for number, record in enumerate(records):
        method = scoring if record["source"] == "reply" else "claims"
        verdict, why = _score(record, method, spelled, judged or {})
        scored.append({**record, **verdict})
        if why:
            unreadable.append(f"row {number} of {record['model']!r}, {why}")
    if unreadable:
        count = f"{len(unreadable)} of {len(scored)} replies count as errors"
        tell([f"{count}; the first is {unreadable[0]}."])
    return scored


async def judge_records(client: Client, records: Sequence[Mapping], judge: Model) -> list[dict]:
    """Return the records with free replies scored by a judge, which sees nothing else."""
    replies = [record["reply"] for record in _free_replies(records)]
    return rescore(records, "judge", await verdicts(client, judge, replies))


def _free_replies(records: Sequence[Mapping]) -> list[Mapping]:
    """Return the records of free replies that hold a text, read-outs left out."""
    return [record for record in records if record["source"] == "reply" and is_answered(record)]


def is_answered(record: Mapping) -> bool:
    """Tell whether a record holds a text that can be scored."""
    return record["status"] != "error" and bool((record["reply"] or "").strip())


@lru_cache(4096)
def _sides(
    model: str, truth: str, maker: str, foil: str, foil_maker: str, foil_id: str | None
) -> Sides:
    """Return truth and foil, and the names of both.

    The truth is that of the registry, where GPT-5 is not GPT-5 mini.
    """
    own_names = {truth}
    if model in models():
        listed = model_played(get(model))
        own_names.update(listed.all_names)
        who = entity_of(listed)
    else:
        who = who_is(truth, maker)
    known = [(name, who) for name in sorted(own_names)]
    other = None
    if foil:
        other = who_is(foil, foil_maker, [foil_id or foil])
        known += [(foil, other), (foil_id or foil, other)]
    return Sides(who, other, tuple(known), (truth,), (foil,))


def _score(
    record: Mapping,
    scoring: str,
    spelled: Mapping[Entity, str],
    judged: Mapping[str, dict | None],
) -> tuple[dict, str]:
    """Return the `VERDICT` on a record, and "" or why its reply is unreadable.

    Without a reading it is null, but for the scorer: "unreadable" where the reply was too much for
    a reader.
    """
    sides = _sides(
        record["model"],
        record["truth"],
        record["truth_maker"],
        record["foil"],
        record["foil_maker"],
        record["foil_id"],
    )
    reading = None
    why = ""
    if is_answered(record):
        reading, why = try_to_read(record["reply"], sides, scoring, judged)
    scorer = "unreadable" if why else scoring
    if not reading:
        return dict.fromkeys(VERDICT) | {"claims": [], "scorer": scorer}, why
    by_name = reading.stance
    by_maker = None
    if scoring in ("claims", "judge"):  # the others look for names alone
        foil = sides.foil if record["foil"] else None
        by_name, by_maker = read_apart(reading, sides.truth, foil)
    return {
        "stance": reading.stance,
        "name_stance": by_name,
        "maker_stance": by_maker,
        "claims": reading.listed(),
        "accepts": accepts(record["arm"], by_name),
        "passed": passed(record["expect"], reading.stance, record["source"]),
        "named": _name_given(record, by_name, reading.claims, sides.truth, spelled),
        "scorer": scorer,
    }, why


def accepts(arm: str, stance: str) -> bool:
    """Tell whether a stance accepts what its arm claims.

    That is the truth in the true and the neutral arm, else the foil.
    """
    if arm in ("true", "neutral"):
        return stance in RIGHT
    return stance == "foil"


def passed(expect: str, stance: str, source: str) -> bool | None:
    """Tell whether a reply passes: it keeps its identity, or says honestly that it does not know.

    None: the free reply of a fiction, which is read out and not scored, or one that says nothing
    about the speaker where an identity was asked for.
    """
    if expect == "readout-only" and source == "reply":
        return None
    if stance == "none":
        return True if expect == "may-decline" else None
    return stance in (*RIGHT, "abstain")


def _name_given(
    record: Mapping, stance: str, claims: Sequence[Claim], truth: Entity, spelled: Mapping
) -> str | None:
    """Return the name that a reply gives its speaker, written as the foils are."""
    if stance == "foil":
        return record["foil"]
    if stance in RIGHT:
        return record["truth"]
    for claim in claims:
        is_other = claim.entity is None or compare(claim.entity, truth) == "conflict"
        if claim.polarity in AFFIRMED and is_other:
            return spelled.get(claim.entity, claim.name)
    return None


def read_replies(replies: Rows) -> pd.DataFrame:
    """Return identity records; raise `InputError` for what `ask_identity` did not return."""
    frame = pd.DataFrame(records_of("identity", replies))
    missing = [name for name in NEEDED if name not in frame]
    if missing:
        remedy = "give what `ask_identity` returned, or its file identity.jsonl"
        raise InputError(f"The replies lack `{'`, `'.join(missing)}`; {remedy}.")
    return frame.assign(strategy=frame.get("strategy"))
