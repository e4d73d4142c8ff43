"""The suite: situations rendered from who a model is and who it is not.

The texts are `data/identity/suite/`.

Every template is rendered in arms that differ in one thing, the identity that the text claims for
the model. Names come into a text by placeholders alone, so an arm says what it claims to say; that
is checked when a suite is read.
"""

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from selfeval.bounds import read_yaml
from selfeval.errors import InputError, check_whole
from selfeval.identity.measures import ARMS, FALSE
from selfeval.identity.names import (
    Entity,
    compare,
    content,
    entity,
    fold,
    mentions,
    model_played,
)
from selfeval.identity.replies import VERDICT, as_judge, judge_records, rescore
from selfeval.paths import shipped
from selfeval.providers.client import Client
from selfeval.providers.models import Model, get, several
from selfeval.providers.request import Request, Response, user
from selfeval.records.tables import call_fields, fields_of

# arms whose text claims that the model is its foil
FALSE_ARMS = (*FALSE, "placebo")
PLACEHOLDER = re.compile(r"\{((?:claimed_)?(?:name|maker|family|id))\}")
# so many siblings of its own family are enough, and so many models of one maker are far foils
FEW = 3
# room for a name and a maker, where the model does not think before it answers
READOUT_TOKENS = 32
NOT_ASKED = Response(status="error", error="not asked: the reply before it failed or is empty")


class Identity(NamedTuple):
    """Who a model is, or is said to be. family as in a text ("Claude"); id: for its maker's API."""

    name: str
    maker: str
    family: str
    id: str


@dataclass(frozen=True)
class Template:
    """One situation before it is rendered; data/identity/suite/README.md has the fields."""

    id: str
    family: str
    condition: str
    arms: tuple[str, ...]
    turns: Sequence[Mapping]
    pressure: Sequence[Mapping] = ()
    language: str = "en"
    expect: str = "identity"
    gives_truth: bool = False
    control_of: str | None = None
    twin: str | None = None
    paraphrase_of: str | None = None


class Situation(NamedTuple):
    """A template rendered for one model in one arm.

    messages: the conversation up to the model's first reply; pressure: the user turns after it, one
    per step, each sent after the model's real reply to what came before. foil: who the text says
    the model is (false arms, placebo) or merely names (mention); in the neutral and the true arm
    the far foil of the template's other arms, which is not in the text, so that P(foil) can be
    compared.
    """

    template: Template
    arm: str
    foil: Identity
    messages: list[dict]
    pressure: tuple[str, ...]


# --- reading


def check_form(where: object, given: object, kind: str) -> None:
    """Refuse what breaks the schema `kind` of `schema.yaml`, naming place and rule."""
    validator = Draft202012Validator(content("schema")[kind])
    error = best_match(validator.iter_errors(given))
    if not error:
        return
    place = error.json_path.lstrip("$.")
    if place:
        where = f"{where}, {place},"
    rule = error.schema.get("description", error.message)
    raise InputError(f"{where} {rule}, got {repr(error.instance)[:200]}.")


def read_suite(path: str | Path = "suite") -> list[Template]:
    """Return the templates of a suite: a file, a folder of files, or a name below `data/identity/`.

    Raises `InputError` that names file, place and the rule it breaks.
    """
    where = Path(path).expanduser()
    if not where.exists():
        where = shipped(Path("identity", path))
    files = sorted(where.glob("*.yaml")) if where.is_dir() else [where]
    templates: dict[str, Template] = {}
    for file in files:
        try:
            family = read_yaml(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(f"{file} cannot be read as YAML: {error}.") from error
        check_form(file, family, "suite")
        for entry in family["templates"]:
            arms = tuple(arm for arm in ARMS if arm in entry["arms"])
            template = Template(**entry | {"family": family["family"], "arms": arms})
            if template.id in templates:
                rule = "is used twice; each template needs its own"
                raise InputError(f"{file}: the `id` {template.id!r} {rule}.")
            broken = _broken_rule(template)
            if broken:
                raise InputError(f"{file}, template {template.id!r}: {broken}.")
            templates[template.id] = template
    for template in templates.values():
        others = templates.keys() - {template.id}
        for key in ("control_of", "twin", "paraphrase_of"):
            name = getattr(template, key)
            if name is not None and name not in others:
                rule = f"`{key}` names no other template: {name!r}"
                raise InputError(f"{where}, template {template.id!r}: {rule}.")
    return list(templates.values())


def _broken_rule(template: Template) -> str | None:
    """Return the rule that a template breaks beyond its form, or None."""
    roles = [turn["role"] for turn in template.turns]
    ends_with_assistant = roles[-1] == "assistant"
    is_prefill = template.condition == "prefill"
    if "system" in roles[1:] or roles == ["system"] or ends_with_assistant != is_prefill:
        return (
            "a system turn must be the first one, "
            "the last the user's (the assistant's in the condition `prefill`)"
        )
    for wording in sorted({_wording(arm) for arm in template.arms}):
        broken = _broken_rule_of(wording, template)
        if broken:
            return broken
    return None


def _broken_rule_of(wording: str, template: Template) -> str | None:
    """Return the rule that one wording of a template breaks, or None."""
    texts = [_turn_text(turn, wording) for turn in (*template.turns, *template.pressure)]
    if None in texts:
        return f"a turn lacks the wording `{wording}` that its arms need"
    whole = "\n".join(text or "" for text in texts)
    named = mentions(fold(PLACEHOLDER.sub("", whole)))
    if named:
        return f"names come by placeholders alone, but `{wording}` has one of {named[0].entity}"
    used = set(PLACEHOLDER.findall(whole))
    claimed = {name for name in used if name.startswith("claimed_")}
    names_somebody = used if wording == "neutral" else claimed
    if bool(names_somebody) == (wording == "neutral"):
        rule = "the neutral wording names nobody, every other one has a {claimed_...}"
        return f"{rule}; not so `{wording}`"
    if used - claimed and not template.gives_truth:
        return f"`{wording}` states the truth beside the claim; allow it with `gives_truth: true`"
    needs_name = wording == "claim" and "false-near" in template.arms
    if needs_name and claimed.isdisjoint({"claimed_name", "claimed_id"}):
        rule = "`false-near` needs {claimed_name} or {claimed_id}"
        return f"a sibling has the same maker and family; {rule}"
    return None


def _wording(arm: str) -> str:
    """Return which wording of a turn an arm has."""
    return arm if arm in ("neutral", "mention") else "claim"


def _turn_text(turn: Mapping, wording: str) -> str | None:
    """Return a turn in a wording; some have the same text in all."""
    content = turn["content"]
    return content if isinstance(content, str) else content.get(wording)


# --- who is who


@cache
def read_foils() -> tuple[dict[str, str], tuple[Identity, ...], tuple[Identity, ...]]:
    """Return (families as written in a text, real models, invented ones) of foils.yaml."""
    file = content("foils")
    families = file["families"]
    real = []
    for entry in file["models"]:
        real.append(Identity(**entry | {"family": families[entry["family"]]}))
    invented = [Identity(**entry) for entry in file["invented"]]
    return families, tuple(real), tuple(invented)


def identity(model: Model | str) -> Identity:
    """Return who a model is by the registry.

    A simulated one is who it plays, "GPT-4.1 (terse)" is GPT-4.1. Raises `InputError` for a model
    without developer, since the texts name the maker.
    """
    model = model_played(get(model) if isinstance(model, str) else model)
    if not model.developer:
        raise InputError(without_developer(model))
    name = re.sub(r" \([^()]*\)$", "", model.display)
    families, _, _ = read_foils()
    family = families.get(model.family, name)
    return Identity(name, model.developer, family, model.api_name.rpartition("/")[2])


def without_developer(model: Model) -> str:
    """Return in a sentence what a model without developer needs: an entry, to be copied."""
    rule = f"The model {model.id!r} has no `developer`, and texts about identity name the maker"
    if model.call:
        return f"{rule}: give the function as {{name: function}}, which is then its maker's name."
    file = f", gguf: {model.gguf!r}" if model.gguf else ""
    about = f"display: {model.display}, family: FAMILY, developer: MAKER"
    entry = f"models: [{{id: {model.id!r}{file}, {about}}}]"
    return f"{rule}: put `{entry}`, filled in, into a file that SELFEVAL_MODELS names."


def foils(
    truth: Identity, seed: int = 0, near: Sequence[Model | str] = ()
) -> dict[str, list[Identity]]:
    """Return who a model may be told that it is, by arm, in a seeded order.

    The arms are false-far, false-near and placebo. Far: another maker, makers taking turns, up to
    three models of each. Near: the same maker, of the same family where that has enough; empty for
    a maker that the file does not have. Placebo: nobody. near: models of the registry that take the
    place of the file's near foils for the others of their maker.
    """
    _, known, invented = read_foils()
    real = [other for other in known if contradict(truth, other)]
    own = [other for other in real if other.maker.casefold() == truth.maker.casefold()]
    family = [other for other in own if other.family == truth.family]
    siblings = []
    for other in map(identity, near):
        if other.maker == truth.maker and contradict(truth, other):
            siblings.append(other)
    if not siblings:
        siblings = family if len(family) >= FEW else own
    pools = {
        "false-far": [other for other in real if other not in own and other.maker != "selfeval"],
        "false-near": siblings,
        "placebo": list(invented),
    }
    for arm, pool in pools.items():
        random.Random(f"{seed}/{arm}/{truth.name}").shuffle(pool)
    pools["false-far"] = _in_turns(pools["false-far"], "maker", FEW)
    return pools


def contradict(one: Identity, other: Identity) -> bool:
    """Tell whether a model cannot be both by their names; GPT-4 Turbo may well say GPT-4."""
    first = entity(one.name) or Entity(one.maker, one.name)
    second = entity(other.name) or Entity(other.maker, other.name)
    return compare(first, second) == "conflict"


# --- rendering


def render(
    template: Template, truth: Identity, foil: Identity, arm: str, turns: int | None = None
) -> Situation:
    """Return the situation of a template in an arm, with at most so many turns of pressure."""
    claimed = truth if arm == "true" else foil
    values = truth._asdict()
    for level, name in claimed._asdict().items():
        values[f"claimed_{level}"] = name

    def fill(turn: Mapping) -> str:
        text = _turn_text(turn, _wording(arm)) or ""
        return PLACEHOLDER.sub(lambda match: values[match[1]], text).strip()

    messages = [{"role": turn["role"], "content": fill(turn)} for turn in template.turns]
    pressure = tuple(fill(turn) for turn in template.pressure[:turns])
    return Situation(template, arm, foil, messages, pressure)


def situations(
    templates: Sequence[Template],
    model: Model | str,
    arms=None,
    limit=0,
    seed=0,
    turns=None,
    near=(),
) -> list[Situation]:
    """Return the situations of one model, template by template, the families taking turns.

    arms: only these (default: all that a template has). limit: only the first `limit` templates
    that have one of the arms; 0 = all. seed: of the choice of foils, which go round, so that
    neighbouring templates have different ones. turns: at most so many steps of pressure; None = all
    of a template. near: as in `foils`. Raises `InputError` for an unknown arm, and for a model that
    has no sibling where the arm false-near is wanted.
    """
    check_whole("limit", limit)
    check_whole("turns", turns or 0, 0)
    arms = ARMS if arms is None else several(arms, "arms")
    if not set(arms) or not set(arms) <= set(ARMS):
        rule = f"`arms` must be of {', '.join(ARMS)}, got {arms!r}"
        raise InputError(f"{rule}; in YAML the arm true stands in quotes.")
    truth = identity(model)
    pools = foils(truth, seed, near)
    in_turns = enumerate(_in_turns(templates, "family"))
    wanted = [(number, one) for number, one in in_turns if not set(arms).isdisjoint(one.arms)]
    rendered = []
    for number, template in wanted[: limit or None]:
        for arm in template.arms:
            if arm not in arms:
                continue
            pool = pools[arm if arm in FALSE_ARMS else "false-far"]
            if not pool:
                who = f"{truth.name!r} by {truth.maker!r} has no sibling for the arm {arm!r}"
                raise InputError(f"{who}; add one in data/identity/foils.yaml.")
            foil = pool[number % len(pool)]
            rendered.append(render(template, truth, foil, arm, turns))
    return rendered


def _in_turns(items: Sequence, group: str, most: float = math.inf) -> list:
    """Return items with their groups taking turns, so that any limit has some of each.

    most: at most so many of a group.
    """
    groups = pd.Series([getattr(item, group) for item in items], dtype=object)
    rank = groups.groupby(groups).cumcount()
    order = rank[rank < most].sort_values(kind="stable").index
    return [items[number] for number in order]


# --- the run


@dataclass
class Conversation:
    """One repeat of one situation with one model, and what was said so far."""

    model: Model
    situation: Situation
    repeat: int
    said: list["Reply"] = field(default_factory=list)


class Reply(NamedTuple):
    """What came back to some messages. turn: 0 is before any pressure. source: reply or readout."""

    turn: int
    source: str
    messages: list[dict]
    response: Response


class Asked(NamedTuple):
    """What a conversation is asked next; turn, source and messages as in `Reply`."""

    conversation: Conversation
    turn: int
    source: str
    messages: list[dict]


async def run_suite(
    client: Client,
    models: Sequence[Model],
    suite: str | Path,
    *,
    repeats,
    scoring,
    judge,
    temperature,
    seed,
    **which,
) -> list[dict]:
    """Have every model answer the situations of a suite; return one record per reply.

    They stand in the order of the design.

    Defaults stand in `selfeval.ask_identity`. which (arms, limit, turns, near), seed: as in
    `situations`. repeats: conversations per situation. scoring: one of `replies.SCORING`. judge:
    the model that judges. Read-outs are always scored by their claims, and asked at temperature 0.

    Record: `model`, `suite`, `family`, `condition`, `template_id` (the template with its
    paraphrases and translations), `variant` (this one of them), `control_of` (the variant that it
    is a control for, or null), `arm`, `language`, `truth`, `truth_maker`, `foil`, `foil_maker`,
    `expect`, `repeat`, `turn` (0 = before any pressure), `source` (reply, readout), `reply`,
    `status`, then what scoring fills in (`VERDICT`), `usage`, `request_id`, and those of
    `records.call_fields`, where `messages` is what was sent. A failed or empty reply ends its
    conversation: its read-out is recorded as not asked, later turns do not exist.
    """
    check_whole("repeats", repeats, 1)
    check_whole("seed", seed, 0)
    judge = as_judge(judge, scoring, models)
    templates = read_suite(suite)
    design = []
    for model in models:
        for situation in situations(templates, model, seed=seed, **which):
            design += [Conversation(model, situation, repeat) for repeat in range(repeats)]
    if not design:
        raise InputError("There is nothing to ask: no template of the suite has one of the arms.")
    await hold(client, design, temperature, seed)
    # what is resampled together
    clusters = {template.id: template.paraphrase_of or template.id for template in templates}
    records = []
    for conversation in design:
        records += records_of(conversation, Path(suite).stem, clusters)
    return await score(client, records, scoring, judge)


async def score(
    client: Client, records: list[dict], scoring: str, judge: Model | None
) -> list[dict]:
    """Return records with the verdicts on their replies; read-outs are scored by their claims."""
    if scoring == "judge" and judge:
        return await judge_records(client, records, judge)
    return rescore(records, scoring)


# --- asking


async def hold(
    client: Client,
    design: Sequence[Conversation],
    temperature: float,
    seed: int,
    read_out: bool = True,
) -> None:
    """Hold all conversations, turn by turn: they fill in what each of them said.

    The read-outs of a turn and the replies of the next one do not wait for each other. read_out:
    without it, a reply that is cut off is no reply.
    """

    asked = []
    for conversation in design:
        asked.append(Asked(conversation, 0, "reply", conversation.situation.messages))
    while asked:
        asked = await ask_all(client, asked, temperature, seed, read_out)


async def ask_all(
    client: Client, asked: Sequence[Asked], temperature: float, seed: int, read_out: bool = True
) -> list[Asked]:
    """Ask, fill in what conversations said, and return what is asked after their replies."""
    requests = [_request(one, temperature, seed, read_out) for one in asked]
    responses = await client.chat_all(requests)
    following = []
    for one, response in zip(asked, responses, strict=True):
        reply = Reply(one.turn, one.source, one.messages, response)
        one.conversation.said.append(reply)
        if one.source == "reply":
            following += _after(one, response, read_out)
    return following


def _request(asked: Asked, temperature: float, seed: int, read_out: bool) -> Request:
    """Return the request for a reply or a read-out.

    read_out: a reply that is cut off counts as one where there are read-outs.
    """
    model = asked.conversation.model
    room = model.provider.answer_tokens
    if asked.source == "reply":
        parameters = {"max_tokens": room, "temperature": temperature} | model.parameters
    else:
        if model.provider.embedded:
            room = min(room, READOUT_TOKENS)
        parameters = {"max_tokens": room, "temperature": 0.0}
    repeat = asked.conversation.repeat
    return Request(model, asked.messages, parameters, repeat, seed, cut_counts=read_out)


def _after(asked: Asked, response: Response, read_out: bool) -> list[Asked]:
    """Return what is asked after a reply: the read-out on a fork, and the next turn of pressure."""
    conversation = asked.conversation
    situation = conversation.situation
    said = with_reply(asked.messages, response.text)
    lines = content("readout")
    line = lines.get(situation.template.language, lines["en"])
    fork = [*said, *user(line)]
    if response.status == "error" or not response.text.strip():
        conversation.said.append(Reply(asked.turn, "readout", fork, NOT_ASKED))
        return []
    following = []
    if read_out:
        following.append(Asked(conversation, asked.turn, "readout", fork))
    if asked.turn < len(situation.pressure):
        pressed = [*said, *user(situation.pressure[asked.turn])]
        following.append(Asked(conversation, asked.turn + 1, "reply", pressed))
    return following


def with_reply(messages: Sequence[dict], reply: str) -> list[dict]:
    """Return a conversation with the model's reply at its end.

    One that begins the answer itself is continued.
    """
    if messages[-1]["role"] != "assistant":
        return [*messages, {"role": "assistant", "content": reply}]
    begun = messages[-1]["content"]
    space = "" if reply[:1].isspace() or begun[-1:].isspace() else " "
    return [*messages[:-1], {"role": "assistant", "content": begun + space + reply}]


def records_of(conversation: Conversation, suite: str, clusters: Mapping[str, str]) -> list[dict]:
    """Return the records of a conversation, not yet scored."""
    situation = conversation.situation
    template = situation.template
    foil = situation.foil
    truth = identity(conversation.model)
    about = {
        "model": conversation.model.id,
        "suite": suite,
        "family": template.family,
        "condition": template.condition,
        "template_id": clusters[template.twin or template.id],
        "variant": template.id,
        "control_of": template.control_of,
        "arm": situation.arm,
        "language": template.language,
        "truth": truth.name,
        "truth_maker": truth.maker,
        "foil": foil.name,
        "foil_maker": foil.maker,
        "foil_id": foil.id,
        "expect": template.expect,
        "repeat": conversation.repeat,
    }
    records = []
    for reply in sorted(conversation.said, key=lambda said: (said.turn, said.source == "readout")):
        response = reply.response
        record = {
            **about,
            "turn": reply.turn,
            "source": reply.source,
            "reply": response.error if response.status == "error" else response.text,
            "status": response.status,
            **dict.fromkeys(VERDICT),
            **fields_of(response, "usage", "request_id"),
            **call_fields(Request(conversation.model, reply.messages), response),
        }
        records.append(record)
    return records
