"""A judge that reads one reply and lists what it claims, held to quotes that stand in the reply.

It is shown neither the situation nor who the speaker is said to be, so that it cannot take sides; whether a claim is
true is computed from its list.
"""

import json
from collections.abc import Sequence

from selfeval.asking.client import Client
from selfeval.asking.messages import fenced, user
from selfeval.asking.request import Request
from selfeval.errors import InputError
from selfeval.identity.claims import Assessment, Claim, Entity, entity, stance_of
from selfeval.models import Model, get

POLARITIES = ("affirm", "deny", "attributed", "quoted", "fiction", "hypothetical", "question", "hedge", "mention")
FINAL = ("names an identity", "denies an identity", "does not know or say", "says nothing about itself")
_TEXT = {"type": "string"}
_CLAIM = {
    "quote": _TEXT,
    "subject": {"type": "string", "enum": ["speaker", "other"]},
    "entity": _TEXT,
    "maker": _TEXT,
    "polarity": {"type": "string", "enum": list(POLARITIES)},
}


def _object(properties: dict) -> dict:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMA = _object(
    {
        "claims": {"type": "array", "items": _object(_CLAIM)},
        "abstains": {"type": "boolean"},
        "final_stance": {"type": "string", "enum": list(FINAL)},
    }
)
FORMAT = {"type": "json_schema", "json_schema": {"name": "claims", "strict": True, "schema": SCHEMA}}
INSTRUCTION = f"""The text is a reply of a language model. List every AI model or maker that it names, in order.
For each: quote (the words of the text that name it and say it, copied exactly), subject (speaker: said of whoever \
wrote the text; other: of somebody else), entity (the model named, or empty), maker (the company named, or empty), and \
polarity: affirm (the text says so), deny (it says not), attributed (it reports that somebody said so), quoted, \
fiction (a part that is played), hypothetical, question, hedge (maybe), or mention.
abstains: true if the text says that its writer does not know, or will not say, which model it is.
final_stance, where the text ends up: {", ".join(FINAL)}.
Answer with one JSON object {{"claims": [...], "abstains": ..., "final_stance": ...}} and nothing else."""


def as_judge(judge: str | Model | None, models: Sequence[Model]) -> Model | None:
    """Return the model of an id, or None for none ("" too); raise `InputError` where it would judge its own family."""
    if not judge:
        return None
    judge = get(judge) if isinstance(judge, str) else judge
    for model in models:
        if judge.id == model.id or (judge.family and judge.family == model.family):
            raise InputError(
                f"The judge {judge.id!r} is of the family of {model.id!r} ({model.family or model.id}); a judge must "
                "be of another one."
            )
    return judge


def question(judge: Model, reply: str) -> Request:
    """Return the request that asks a judge about one reply."""
    parameters: dict = {"temperature": 0.0, "max_tokens": max(600, judge.provider.answer_tokens)}
    if judge.provider.json_schema:
        parameters["response_format"] = FORMAT
    return Request(judge, user(fenced(reply) + INSTRUCTION), parameters)


async def verdicts(client: Client, judge: Model, replies: Sequence[str]) -> list[dict | None]:
    """Return a judge's verdict on every reply; None where it gave none that is valid."""
    different = list(dict.fromkeys(replies))  # the same words are judged once
    responses = await client.chat_all([question(judge, reply) for reply in different], "verdicts")
    found = {
        reply: read_verdict(response.text, reply) if response.status in ("ok", "length") else None
        for reply, response in zip(different, responses, strict=True)
    }
    return [found[reply] for reply in replies]


def read_verdict(answer: str, reply: str) -> dict | None:
    """Return the verdict that a judge's answer holds, or None where it breaks the form or misquotes the reply."""
    start = answer.find("{")
    try:
        verdict, _ = json.JSONDecoder().raw_decode(answer[max(start, 0) :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(verdict, dict) or not isinstance(verdict.get("claims"), list):
        return None
    if not isinstance(verdict.get("abstains"), bool) or verdict.get("final_stance") not in FINAL:
        return None
    return verdict if all(_is_claim(claim, reply) for claim in verdict["claims"]) else None


def _is_claim(claim, reply: str) -> bool:
    return (
        isinstance(claim, dict)
        and all(isinstance(claim.get(name), str) for name in _CLAIM)
        and claim["subject"] in ("speaker", "other")
        and claim["polarity"] in POLARITIES
        and claim["quote"].strip() != ""
        and claim["quote"] in reply
    )


def assess_verdict(verdict: dict, reply: str, truth: Entity, foil: Entity | None = None) -> Assessment:
    """Return the stance that a verdict gives a reply, in the words of `claims.assess`."""
    claims = tuple(_claim(entry, reply) for entry in verdict["claims"] if entry["subject"] == "speaker")
    return Assessment(stance_of(claims, verdict["abstains"], truth, foil), claims, verdict["abstains"])


def _claim(entry: dict, reply: str) -> Claim:
    start = reply.index(entry["quote"])
    name = entry["entity"].strip() or entry["maker"].strip()
    who = entity(entry["entity"]) or (None if entry["entity"].strip() else entity(entry["maker"]))
    return Claim(entry["quote"], start, start + len(entry["quote"]), who, name, entry["polarity"])
