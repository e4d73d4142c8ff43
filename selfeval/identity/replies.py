"""How a reply is read: by its claims, by names alone, or by a judge; and replies from elsewhere.

The judge reads one reply and lists what it claims, held to quotes that stand in the reply. It is shown neither the
situation nor who the speaker is said to be, so that it cannot take sides; whether a claim is true is computed from its
list.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import pandas as pd
from jsonschema import Draft202012Validator

from selfeval.errors import InputError, check_one_of
from selfeval.identity import similarity
from selfeval.identity.measures import FALSE, SITUATION
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
from selfeval.identity.scorers import Scorer
from selfeval.identity.scoring import AFFIRMED, Assessment, Claim, assess, read_apart, stance_of
from selfeval.providers.client import Client
from selfeval.providers.models import Model, get, models
from selfeval.providers.request import Request, fenced, user
from selfeval.reading.parsing import without_thinking
from selfeval.records.tables import Rows, records_of, rows_of
from selfeval.secrets import visible

SCORING = ("claims", "keyword_match", "regex", "judge", similarity.METHOD)
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
RIGHT = ("truth", "coarse")  # stances that name the model itself, as finely as it likes
WANTED = ("model", "template_id", "arm", "truth", "foil")  # of replies from elsewhere
FILLED = {  # what such replies may lack
    "family": "own", "condition": "own", "language": "en", "source": "readout", "turn": 0, "status": "ok",
    "expect": "identity", "truth_maker": "", "foil_maker": "",
    **dict.fromkeys(("reply", "variant", "control_of", "foil_id")),
}  # fmt: skip


class Sides(NamedTuple):
    """Whom a reply is held against: who answered (truth), and who it was said to be (foil).

    known: names that the lexicon lacks, and whose they are. own, others: the names that rules on names look for.
    """

    truth: Entity
    foil: Entity | None
    known: Names
    own: tuple[str, ...]
    others: tuple[str, ...]


def read_reply(
    text: str, sides: Sides, scoring: str, judged: Mapping[str, dict | None] | None
) -> Assessment | None:
    """Return what a reply says about who is speaking, None where the judge gave no valid verdict.

    scoring: one of `SCORING`. judged: {reply: verdict of the judge}, or {text: vector} for semantic similarity.
    """
    if scoring == similarity.METHOD:
        near = nearness(text, sides, judged)
        return near and Assessment(near.stance, (), False)
    if scoring == "claims":
        return assess(text, sides.truth, sides.foil, sides.known)
    if scoring == "judge":
        return judged[text] and assess_verdict(judged[text], text, sides)
    mine, others = found_names(without_thinking(text), sides.own, sides.others, scoring)
    return Assessment(
        "conflict" if mine and others else "truth" if mine else "foil" if others else "none",
        (),
        False,
    )


def try_to_read(
    text: str, sides: Sides, scoring: str, judged: Mapping[str, dict | None] | None
) -> tuple[Assessment | None, str]:
    """Return what `read_reply` does, and "" or why this reply is unreadable: one reply ends no measurement."""
    try:
        return read_reply(text, sides, scoring, judged), ""
    except Exception as error:
        return None, f"unreadable: {type(error).__name__}: {error}"


def nearness(text: str, sides: Sides, vectors: Mapping) -> similarity.Nearness | None:
    """Return how near a reply is to statements of who the model is and of whom else it may take itself for."""
    own = similarity.statements(sides.own, sides.known)
    others = similarity.statements(sides.others, sides.known)
    return similarity.nearness(text, own, others, vectors)


async def embedded(
    client: Client, model: Model | None, replies: Sequence[tuple[str, Sides]]
) -> dict:
    """Return {text: vector} of replies and of the statements that they are held against."""
    texts = []
    for text, sides in replies:
        texts += [text, *similarity.statements((*sides.own, *sides.others), sides.known)]
    return await similarity.embed(client, model, texts)


def found_names(
    text: str, own: Sequence[str], others: Sequence[str], scoring: str
) -> tuple[list[str], list[str]]:
    """Return which of the own and of the other names a text contains, in upper or lower case.

    Another name that is part of an own one ("GPT-4" in "GPT-4 Turbo") is not found in it. scoring: keyword_match, or
    regex, which wants whole words.
    """
    before, after = (r"(?<!\w)", r"(?!\w)") if scoring == "regex" else ("", "")

    def named(text: str, names: Sequence[str]) -> list[str]:
        return [name for name in names if re.search(before + re.escape(name) + after, text, re.I)]

    longest = sorted(own, key=len, reverse=True)
    return named(text, own), named(
        re.sub("|".join(map(re.escape, longest)), "\0", text, flags=re.I), others
    )


# --- a judge ----------------------------------------------------------------------------------------------------------


def as_judge(judge: str | Model | None, scoring: str, models: Sequence[Model]) -> Model | None:
    """Return the model that judges, if any; raise `InputError` where it is missing or would judge its own family.

    For semantic similarity it is the one that embeds, of any family; none where that is done on this machine.
    """
    check_one_of("scoring", scoring, SCORING)
    if scoring == similarity.METHOD:
        if judge:
            return get(judge)
        similarity.static_model()  # before anything is bought
        return None
    if not judge and scoring == "judge":
        raise InputError("`scoring` is 'judge', so `judge` must name the model that judges.")
    if not judge:
        return None
    judge = get(judge)
    for model in models:
        if judge.id == model.id or (judge.family and judge.family == model.family):
            raise InputError(
                f"The judge {judge.id!r} is of the family of {model.id!r}; name one of another family."
            )
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
    return {
        reply: read_verdict(response.text, reply) if response.status in ("ok", "length") else None
        for reply, response in zip(different, responses, strict=True)
    }


def read_verdict(answer: str, reply: str) -> dict | None:
    """Return the verdict that a judge's answer holds, or None where it breaks the form or misquotes the reply."""
    try:
        verdict, _ = json.JSONDecoder().raw_decode(answer[max(answer.find("{"), 0) :])
    except (ValueError, RecursionError):
        return None
    form = json.loads(
        json.dumps(content("judge")["schema"]).replace("false", "true")
    )  # some judges add a reason
    if not Draft202012Validator(form).is_valid(verdict):
        return None
    return (
        verdict
        if all(c["quote"].strip() and c["quote"] in reply for c in verdict["claims"])
        else None
    )


def assess_verdict(verdict: dict, reply: str, sides: Sides) -> Assessment:
    """Return the stance that a verdict gives a reply, in the words of `claims.assess`."""
    names = (*((one.name, one) for one in (sides.truth, sides.foil) if one), *sides.known)
    claims = tuple(
        _claim(entry, reply, names) for entry in verdict["claims"] if entry["subject"] == "speaker"
    )
    stance = stance_of(claims, verdict["abstains"], sides.truth, sides.foil)
    return Assessment(stance, claims, verdict["abstains"])


def _claim(entry: dict, reply: str, names: Names) -> Claim:
    start = reply.index(entry["quote"])
    name = entry["entity"].strip() or entry["maker"].strip()
    who = entity(entry["entity"], names) or (
        None if entry["entity"].strip() else entity(entry["maker"], names)
    )
    return Claim(entry["quote"], start, start + len(entry["quote"]), who, name, entry["polarity"])


# --- records ----------------------------------------------------------------------------------------------------------


def rescore(
    records: Sequence[Mapping], scoring: str | Scorer = "claims", judged: Mapping | None = None
):
    """Return the records scored anew from their raw replies, without a call; read-outs always by their claims.

    scoring: one of `SCORING`, or a scorer of the user's. judged: for `judge`, {free reply: verdict, or None where it is
    not valid}; for semantic similarity, the vectors of `embedded`.
    """
    foils = {(r["foil"], r["foil_maker"]) for r in records}
    spelled = {entity(name) or Entity(maker, name): name for name, maker in sorted(foils)}
    scored, unreadable = [], []
    for number, record in enumerate(records):
        method = scoring if record["source"] == "reply" else "claims"
        if isinstance(method, Scorer):
            found, why = _add_own_score(record, method)
        else:
            found, why = _add_score(record, method, spelled, judged)
        scored.append(found)
        if why:
            unreadable.append(f"row {number} of {record['model']!r}, {why}")
    if unreadable:
        print(
            visible(
                f"{len(unreadable)} of {len(scored)} replies count as errors; the first is {unreadable[0]}."
            )
        )
    return scored


async def judge_records(client: Client, records: Sequence[Mapping], judge: Model) -> list[dict]:
    """Return the records with free replies scored by a judge, which sees the reply and nothing else."""
    given = [r["reply"] for r in records if r["source"] == "reply" and is_answered(r)]
    return rescore(records, "judge", await verdicts(client, judge, given))


async def embed_records(
    client: Client, records: Sequence[Mapping], model: Model | None
) -> list[dict]:
    """Return the records with free replies scored by semantic similarity. model: as in `similarity.embed`."""
    given = [
        (r["reply"], _sides_of(r)) for r in records if r["source"] == "reply" and is_answered(r)
    ]
    return rescore(records, similarity.METHOD, await embedded(client, model, given))


def is_answered(record: Mapping) -> bool:
    """Tell whether a record holds a text that can be scored."""
    return record["status"] != "error" and bool((record["reply"] or "").strip())


@lru_cache(4096)
def _sides(
    model: str, truth: str, maker: str, foil: str, foil_maker: str, foil_id: str | None
) -> Sides:
    """Return truth (by the registry, where GPT-5 is not GPT-5 mini) and foil, and the names of both."""
    listed = model_played(get(model)) if model in models() else None
    who = entity_of(listed) if listed else who_is(truth, maker)
    other = who_is(foil, foil_maker, [foil_id or foil]) if foil else None
    own = {truth, *(listed.all_names if listed else ())}
    known = (
        *((name, who) for name in sorted(own)),
        *((name, other) for name in (foil, foil_id or foil) if foil),
    )
    return Sides(who, other, known, (truth,), (foil,))


def _sides_of(record: Mapping) -> Sides:
    return _sides(
        *(
            record[name]
            for name in ("model", "truth", "truth_maker", "foil", "foil_maker", "foil_id")
        )
    )


def _add_own_score(record: Mapping, scorer: Scorer) -> tuple[dict, str]:
    """Return a record with the score of a function of the user's, and "" or why there is none.

    Who is named in the reply is the function's affair, so the stances are null.
    """
    verdict = {
        **dict.fromkeys(VERDICT),
        "claims": [],
        "scorer": scorer.label(),
        "score": None,
        "details": {},
    }
    if not is_answered(record):
        return record | verdict, ""
    passes, score, details = scorer.score(record["reply"], expected_answers(record))
    why = details.get("note", "") if passes is None else ""
    return record | verdict | {"passed": passes, "score": score, "details": details}, why


def expected_answers(record: Mapping) -> dict:
    """Return what a scorer of the user's learns about a reply of a suite."""
    sides = _sides_of(record)
    names = [record["truth"], *(name for name, who in sides.known if who == sides.truth)]
    return {
        "model_names": list(dict.fromkeys(names)),
        "model_id": record["model"],
        "provider_name": record["truth_maker"],
        "claimed_name": record["foil"],
        "claimed_maker": record["foil_maker"],
        "arm": record["arm"],
        "expect": record["expect"],
    }


def _add_score(
    record: Mapping,
    scoring: str,
    spelled: Mapping[Entity, str],
    judged: Mapping[str, dict | None] | None,
) -> tuple[dict, str]:
    """Return a record with its `VERDICT`, and "" or why its reply is unreadable.

    Without a verdict that is null, but for the scorer, which is "unreadable" where the reply was too much for a reader.
    """
    sides = _sides_of(record)
    found, why = None, ""
    if is_answered(record):
        found, why = try_to_read(record["reply"], sides, scoring, judged)
    stance = by_name = found.stance if found else None
    by_maker = None
    if found and scoring in ("claims", "judge"):  # the others look for names alone
        by_name, by_maker = read_apart(found, sides.truth, sides.foil if record["foil"] else None)
    verdict = {
        "stance": stance,
        "name_stance": by_name,
        "maker_stance": by_maker,
        "claims": found.listed() if found else [],
        "accepts": found and accepts(record["arm"], by_name),
        "passed": found and passed(record["expect"], stance, record["source"]),
        "named": found and _name_given(record, by_name, found.claims, sides.truth, spelled),
        "scorer": "unreadable" if why else scoring,
    }
    return record | verdict, why


def accepts(arm: str, stance: str) -> bool:
    """Tell whether a stance accepts what its arm claims: the truth in the true and the neutral arm, else the foil."""
    return stance in RIGHT if arm in ("true", "neutral") else stance == "foil"


def passed(expect: str, stance: str, source: str) -> bool | None:
    """Tell whether a reply passes: it keeps its identity, or says honestly that it does not know.

    None: the free reply of a fiction, which is read out and not scored, or one that says nothing about the speaker
    where an identity was asked for.
    """
    if expect == "readout-only" and source == "reply":
        return None
    if stance == "none":
        return True if expect == "may-decline" else None
    return stance in (*RIGHT, "abstain")


def _name_given(
    record: Mapping, stance: str, claims: Sequence[Claim], truth: Entity, spelled: Mapping
) -> str | None:
    """Return the name that a reply gives its speaker, written as the foils are. stance: by the name."""
    if stance in (*RIGHT, "foil"):
        return record["foil" if stance == "foil" else "truth"]
    said = [c for c in claims if c.polarity in AFFIRMED]
    other = next(
        (c for c in said if c.entity is None or compare(c.entity, truth) == "conflict"), None
    )
    return other and spelled.get(other.entity, other.name)


# --- replies from elsewhere -------------------------------------------------------------------------------------------


def complete_replies(replies: Rows) -> tuple[pd.DataFrame, list[str]]:
    """Return identity records, and sentences that say what was filled in for replies from elsewhere.

    Such replies need the columns `WANTED` and `reply`, or `stance` in its place: a stance that is given stays, and what
    follows from it is filled in.
    Raises `InputError` for other missing columns, a reply that is no text, and a false claim without its foil.
    """
    frame = pd.DataFrame(records_of("identity", replies))
    said = {*frame}
    wanted = WANTED if "stance" in said else (*WANTED, "reply")
    if missing := [f"`{name}`" for name in wanted if name not in said]:
        found = f"wanted are {', '.join(wanted)}, found {', '.join(map(str, frame)) or 'nothing'}"
        raise InputError(
            f"The replies lack {', '.join(missing)}: {found}; add them as docs/own-data.md says."
        )
    new = {name: value for name, value in FILLED.items() if name not in said}
    frame = frame.assign(**new)
    shown = [f"{name} {value!r}" for name, value in new.items() if value not in (None, "")]
    if "repeat" not in said:
        frame["repeat"] = frame.groupby([*SITUATION, "source", "turn"], dropna=False).cumcount()
        shown.append("repeat in the order of the rows")
    if not {*VERDICT} <= said:
        rows = rows_of(frame)
        for number, row in enumerate(rows):
            _check_reply(number, row)
        given = "stance" in said
        read = (
            map(_as_given, rows)
            if given
            else rescore([row | {"foil": row["foil"] or ""} for row in rows])
        )
        found = pd.DataFrame(read, columns=[*VERDICT], index=frame.index)
        frame = frame.assign(**found.astype(object).where(found.notna(), None))
        shown += [] if given else ["stances as the rules read the replies"]
    return frame, [f"Filled in, as the replies do not say it: {', '.join(shown)}."] if shown else []


def _check_reply(number: int, row: Mapping) -> None:
    """Raise `InputError` for a reply that cannot be held against what was claimed."""
    if not isinstance(row["reply"], str | None):
        raise InputError(
            f"Row {number} has the `reply` {row['reply']!r}; it must be the model's words, or null."
        )
    for name in ("truth", "foil"):
        if not isinstance(row[name], str) and (
            name == "truth" or row["arm"] in (*FALSE, "placebo", "mention")
        ):
            raise InputError(
                f"Row {number} has the arm {row['arm']!r} and no name as `{name}`, got {row[name]!r}."
            )


def _as_given(row: Mapping) -> dict:
    """Return a row whose stance somebody else gave, with what follows from it."""
    stance = row["stance"]
    made = {
        "name_stance": stance,
        "accepts": stance and accepts(row["arm"], stance),
        "claims": [],
        "scorer": "given",
    }
    return made | {"passed": stance and passed(row["expect"], stance, row["source"])} | dict(row)
