"""A judge that reads one reply and lists what it claims, held to quotes that stand in the reply.

It is shown neither the situation nor who the speaker is said to be, so that it cannot take sides; whether a claim is
true is computed from its list.
"""

import json
from collections.abc import Sequence
from functools import cache

import yaml
from jsonschema import Draft202012Validator

from selfeval.asking.client import Client
from selfeval.asking.request import Request, fenced, user
from selfeval.errors import InputError
from selfeval.identity.claims import Assessment, Claim, stance_of
from selfeval.identity.names import Entity, Names, entity
from selfeval.models import Model, get
from selfeval.records import data_path


@cache
def _asked() -> dict:
    """Return instruction and schema of `data/identity/judge.yaml`."""
    return yaml.safe_load(data_path("identity/judge.yaml").read_text(encoding="utf-8"))


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
        form = {"name": "claims", "strict": True, "schema": _asked()["schema"]}
        parameters["response_format"] = {"type": "json_schema", "json_schema": form}
    return Request(judge, user(fenced(reply) + _asked()["instruction"]), parameters)


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
    try:
        verdict, _ = json.JSONDecoder().raw_decode(answer[max(answer.find("{"), 0) :])
    except (ValueError, RecursionError):
        return None
    form = json.loads(json.dumps(_asked()["schema"]).replace("false", "true"))  # some judges add a reason
    if not Draft202012Validator(form).is_valid(verdict):
        return None
    return verdict if all(c["quote"].strip() and c["quote"] in reply for c in verdict["claims"]) else None


def assess_verdict(
    verdict: dict, reply: str, truth: Entity, foil: Entity | None = None, names: Names = ()
) -> Assessment:
    """Return the stance that a verdict gives a reply, in the words of `claims.assess`."""
    names = (*((one.name, one) for one in (truth, foil) if one), *names)
    claims = tuple(_claim(entry, reply, names) for entry in verdict["claims"] if entry["subject"] == "speaker")
    return Assessment(stance_of(claims, verdict["abstains"], truth, foil), claims, verdict["abstains"])


def _claim(entry: dict, reply: str, names: Names) -> Claim:
    start = reply.index(entry["quote"])
    name = entry["entity"].strip() or entry["maker"].strip()
    who = entity(entry["entity"], names) or (None if entry["entity"].strip() else entity(entry["maker"], names))
    return Claim(entry["quote"], start, start + len(entry["quote"]), who, name, entry["polarity"])
