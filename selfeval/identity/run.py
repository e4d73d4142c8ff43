"""The wide suite: situations rendered from who a model is and who it is not. The texts are `data/identity/suite/`.

Every template is rendered in arms that differ in one thing, the identity that the text claims for
the model. Names come into a text by placeholders alone, so an arm says what it claims to say; that
is checked when a suite is read.
"""

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from operator import itemgetter
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
from selfeval.identity.replies import VERDICT, as_judge, embed_records, judge_records, rescore
from selfeval.identity.scorers import Scorer, as_scorer
from selfeval.identity.similarity import METHOD
from selfeval.paths import shipped
from selfeval.providers.client import Client
from selfeval.providers.models import Model, get
from selfeval.providers.request import Request, Response, user
from selfeval.records.tables import call_fields, fields_of

FALSE_ARMS = (*FALSE, "placebo")  # the text claims that the model is its foil
PLACEHOLDER = re.compile(r"\{((?:claimed_)?(?:name|maker|family|id))\}")
FEW = 3  # so many siblings of its own family are enough, and so many models of one maker are far foils
READOUT_TOKENS = 32  # room for a name and a maker, where the model does not think before it answers
NOT_ASKED = Response(status="error", error="not asked: the reply before it failed or is empty")


class Identity(NamedTuple):
    """Who a model is, or is said to be. family as in a text ("Claude"); id: for its maker's API."""

    name: str
    maker: str
    family: str
    id: str


@dataclass(frozen=True)
class Template:
    """One situation before it is rendered; the fields are described in `data/identity/suite/README.md`."""

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


# --- reading ----------------------------------------------------------------------------------------------------------


def check_form(where: object, given: object, kind: str) -> None:
    """Raise `InputError` that names place and rule where what is given breaks the schema `kind` of `schema.yaml`."""
    if error := best_match(Draft202012Validator(content("schema")[kind]).iter_errors(given)):
        place = error.json_path.lstrip("$.")
        shown = repr(error.instance)[:200]
        rule = error.schema.get("description", error.message)
        raise InputError(f"{where}{f', {place},' if place else ''} {rule}, got {shown}.")


def read_suite(path: str | Path = "suite") -> list[Template]:
    """Return the templates of a suite: a file, a folder of files, or a name below `data/identity/`.

    Raises `InputError` that names file, place and the rule it breaks.
    """
    where = Path(path).expanduser()
    where = where if where.exists() else shipped(Path("identity", path))
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
                raise InputError(
                    f"{file}: the `id` {template.id!r} is used twice; each template needs its own."
                )
            if broken := _broken_rule(template):
                raise InputError(f"{file}, template {template.id!r}: {broken}.")
            templates[template.id] = template
    for one in templates.values():
        for key in ("control_of", "twin", "paraphrase_of"):
            name = getattr(one, key)
            if name is not None and (name not in templates or name == one.id):
                raise InputError(
                    f"{where}, template {one.id!r}: `{key}` names no other template: {name!r}."
                )
    return list(templates.values())


def _broken_rule(template: Template) -> str | None:
    """Return the rule that a template breaks beyond its form, or None."""
    roles = [turn["role"] for turn in template.turns]
    if (
        "system" in roles[1:]
        or (roles[-1] == "assistant") != (template.condition == "prefill")
        or roles == ["system"]
    ):
        return "a system turn must be the first one, the last the user's (the assistant's in the condition `prefill`)"
    for wording in sorted({_wording(arm) for arm in template.arms}):
        texts = [_turn_text(turn, wording) for turn in (*template.turns, *template.pressure)]
        if None in texts:
            return f"a turn lacks the wording `{wording}` that its arms need"
        whole = "\n".join(texts)
        if named := mentions(fold(PLACEHOLDER.sub("", whole))):
            return f"names come by placeholders alone, but `{wording}` has one of {named[0].entity}"
        used = set(PLACEHOLDER.findall(whole))
        claimed = {name for name in used if name.startswith("claimed_")}
        if used if wording == "neutral" else not claimed:
            return f"the neutral wording names nobody, every other one has a {{claimed_...}}; not so `{wording}`"
        if used - claimed and not template.gives_truth:
            return (
                f"`{wording}` states the truth beside the claim; allow it with `gives_truth: true`"
            )
        if (
            wording == "claim"
            and "false-near" in template.arms
            and not claimed & {"claimed_name", "claimed_id"}
        ):
            return "a sibling has the same maker and family; `false-near` needs {claimed_name} or {claimed_id}"
    return None


def _wording(arm: str) -> str:
    return arm if arm in ("neutral", "mention") else "claim"


def _turn_text(turn: Mapping, wording: str) -> str | None:
    content = turn["content"]
    return content if isinstance(content, str) else content.get(wording)


# --- who is who -------------------------------------------------------------------------------------------------------


@cache
def read_foils() -> tuple[dict[str, str], tuple[Identity, ...], tuple[Identity, ...]]:
    """Return `data/identity/foils.yaml`: families as written in a text, real models, and invented ones."""
    given = content("foils")
    real = (
        Identity(**one | {"family": given["families"][one["family"]]}) for one in given["models"]
    )
    return given["families"], tuple(real), tuple(Identity(**one) for one in given["invented"])


def identity(model: Model | str) -> Identity:
    """Return who a model is by the registry; a simulated one is who it plays, "GPT-4.1 (terse)" is GPT-4.1.

    Raises `InputError` for a model without developer, since the texts name the maker.
    """
    model = model_played(get(model) if isinstance(model, str) else model)
    if not model.developer:
        remedy = "give its entry in the registry `display`, `family` and `developer`"
        raise InputError(
            f"The model {model.id!r} has no `developer`, and the texts must name its maker: {remedy}."
        )
    name = re.sub(r" \([^()]*\)$", "", model.display)
    return Identity(
        name,
        model.developer,
        read_foils()[0].get(model.family, name),
        model.api_name.rpartition("/")[2],
    )


def foils(
    truth: Identity, seed: int = 0, near: Sequence[Model | str] = ()
) -> dict[str, list[Identity]]:
    """Return who a model may be told that it is: {false-far, false-near, placebo: identities in a seeded order}.

    Far: another maker, makers taking turns, up to three models of each. Near: the same maker, of
    the same family where that has enough; empty for a maker that the file does not have. Placebo:
    nobody. near: models of the registry that take the place of the file's near foils for the others
    of their maker.
    """
    _, known, invented = read_foils()
    real = [one for one in known if contradict(truth, one)]
    own = [one for one in real if one.maker.casefold() == truth.maker.casefold()]
    family = [one for one in own if one.family == truth.family]
    siblings = [
        one for one in map(identity, near) if one.maker == truth.maker and contradict(truth, one)
    ]
    pools = {
        "false-far": [one for one in real if one not in own and one.maker != "selfeval"],
        "false-near": siblings or (family if len(family) >= FEW else own),
        "placebo": list(invented),
    }
    for arm, pool in pools.items():
        random.Random(f"{seed}/{arm}/{truth.name}").shuffle(pool)
    pools["false-far"] = _in_turns(pools["false-far"], "maker", FEW)
    return pools


def contradict(one: Identity, other: Identity) -> bool:
    """Tell whether a model cannot be both by their names; somebody who is GPT-4 Turbo may well say GPT-4."""
    a, b = (entity(x.name) or Entity(x.maker, x.name) for x in (one, other))
    return compare(a, b) == "conflict"


# --- rendering --------------------------------------------------------------------------------------------------------


def render(
    template: Template, truth: Identity, foil: Identity, arm: str, turns: int | None = None
) -> Situation:
    """Return the situation of a template in an arm, with at most so many turns of pressure."""
    claimed = truth if arm == "true" else foil
    values = truth._asdict() | {
        f"claimed_{level}": name for level, name in claimed._asdict().items()
    }

    def fill(turn: Mapping) -> str:
        return PLACEHOLDER.sub(
            lambda match: values[match[1]], _turn_text(turn, _wording(arm))
        ).strip()

    messages = [{"role": turn["role"], "content": fill(turn)} for turn in template.turns]
    return Situation(template, arm, foil, messages, tuple(map(fill, template.pressure[:turns])))


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
    arms = ARMS if arms is None else arms
    if not set(arms) or not set(arms) <= set(ARMS):
        raise InputError(
            f"`arms` must be of {', '.join(ARMS)}, got {arms!r}; in YAML the arm true stands in quotes."
        )
    truth, made = identity(model), []
    pools = foils(truth, seed, near)
    wanted = [
        (number, t)
        for number, t in enumerate(_in_turns(templates, "family"))
        if set(t.arms) & set(arms)
    ]
    for number, template in wanted[: limit or None]:
        for arm in (arm for arm in template.arms if arm in arms):
            pool = pools[arm if arm in FALSE_ARMS else "false-far"]
            if not pool:
                who = f"{truth.name!r} by {truth.maker!r}"
                raise InputError(
                    f"{who} has no sibling for the arm {arm!r}; add one in data/identity/foils.yaml."
                )
            made.append(render(template, truth, pool[number % len(pool)], arm, turns))
    return made


def _in_turns(items: Sequence, group: str, most: float = math.inf) -> list:
    """Return items with their groups taking turns, so that any limit has some of each; at most so many of a group."""
    groups = pd.Series([getattr(item, group) for item in items], dtype=object)
    rank = groups.groupby(groups).cumcount()
    return [items[number] for number in rank[rank < most].sort_values(kind="stable").index]


def as_alternating(messages: Sequence[dict]) -> list[dict]:
    """Return the messages with turns of one role in a row merged by a blank line.

    Some providers refuse two turns of one role in a row, others join them in ways of their own.
    """
    turns = groupby(messages, key=itemgetter("role"))
    return [
        {"role": role, "content": "\n\n".join(turn["content"] for turn in said)}
        for role, said in turns
    ]


# --- the run ----------------------------------------------------------------------------------------------------------


@dataclass
class Conversation:
    """One repeat of one situation with one model, and what was said so far: (turn, source, messages, response)."""

    model: Model
    situation: Situation
    repeat: int
    said: list[tuple[int, str, list[dict], Response]] = field(default_factory=list)


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
    """Have every model answer the situations of a suite; return one record per reply, in the order of the design.

    Defaults stand in `selfeval.ask_identity`. which (arms, limit, turns, near), seed: as in
    `situations`. repeats: conversations per situation. scoring: how free replies are scored, of
    `replies.SCORING` or a function of the user's (`identity.scorers`), which adds `score` and
    `details`; read-outs are always scored by their claims, and asked at temperature 0.

    Record: `model`, `suite`, `family`, `condition`, `template_id` (the template with its
    paraphrases and translations), `variant` (this one of them), `control_of` (the variant that it
    is a control for, or null), `arm`, `language`, `truth`, `truth_maker`, `foil`, `foil_maker`,
    `expect`, `repeat`, `turn` (0 = before any pressure), `source` (reply, readout), `reply`,
    `status`, then what `rescore` adds (`VERDICT`), `usage`, `request_id`, and those of
    `records.call_fields`, where `messages` is what was sent. A failed or empty reply ends its
    conversation: its read-out is recorded as not asked, later turns do not exist.
    """
    check_whole("repeats", repeats, 1)
    check_whole("seed", seed, 0)
    scoring = as_scorer(scoring, Path(suite).parent)
    if not isinstance(scoring, Scorer):
        judge = as_judge(
            judge, scoring, [m for model in models for m in (model, model_played(model))]
        )
    templates = read_suite(suite)
    asked = {m.id: situations(templates, m, seed=seed, **which) for m in models}
    design = [Conversation(m, s, r) for m in models for s in asked[m.id] for r in range(repeats)]
    if not design:
        raise InputError("There is nothing to ask: no template of the suite has one of the arms.")
    await hold(client, design, temperature, seed)
    clusters = {t.id: t.paraphrase_of or t.id for t in templates}  # what is resampled together
    records = [
        row for conversation in design for row in _rows(conversation, Path(suite).stem, clusters)
    ]
    if scoring == METHOD:
        return await embed_records(client, records, judge)
    return (
        await judge_records(client, records, judge)
        if scoring == "judge"
        else rescore(records, scoring)
    )


# --- asking -----------------------------------------------------------------------------------------------------------


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

    def request(c: Conversation, source: str, messages: list[dict]) -> Request:
        room = c.model.provider.answer_tokens
        if source == "reply":
            how = {"max_tokens": room, "temperature": temperature} | c.model.parameters
        else:
            how = {
                "max_tokens": min(room, READOUT_TOKENS) if c.model.provider.embedded else room,
                "temperature": 0.0,
            }
        return Request(c.model, messages, how, c.repeat, seed, cut_counts=read_out)

    lines = content("readout")
    asked = [(c, 0, "reply", as_alternating(c.situation.messages)) for c in design]
    while asked:
        responses = await client.chat_all(
            [request(c, source, messages) for c, _, source, messages in asked]
        )
        following = []
        for (c, turn, source, messages), response in zip(asked, responses, strict=True):
            c.said.append((turn, source, messages, response))
            if source == "readout":
                continue
            line = lines.get(c.situation.template.language, lines["en"])
            fork = [*with_reply(messages, response.text), *user(line)]
            if response.status == "error" or not response.text.strip():
                c.said.append((turn, "readout", fork, NOT_ASKED))
                continue
            if read_out:
                following.append((c, turn, "readout", fork))
            if turn < len(c.situation.pressure):
                pressed = as_alternating([*fork[:-1], *user(c.situation.pressure[turn])])
                following.append((c, turn + 1, "reply", pressed))
        asked = following


def with_reply(messages: Sequence[dict], reply: str) -> list[dict]:
    """Return a conversation with the model's reply at its end; one that begins the answer itself is continued."""
    if messages[-1]["role"] != "assistant":
        return [*messages, {"role": "assistant", "content": reply}]
    begun = messages[-1]["content"]
    space = "" if reply[:1].isspace() or begun[-1:].isspace() else " "
    return [*messages[:-1], {"role": "assistant", "content": begun + space + reply}]


def _rows(conversation: Conversation, suite: str, clusters: Mapping[str, str]) -> Iterable[dict]:
    s, truth = conversation.situation, identity(conversation.model)
    t = s.template
    about = {
        "model": conversation.model.id,
        "suite": suite,
        "family": t.family,
        "condition": t.condition,
    }
    about |= {
        "template_id": clusters[t.twin or t.id],
        "variant": t.id,
        "control_of": t.control_of,
        "arm": s.arm,
    }
    about |= {"language": t.language, "truth": truth.name, "truth_maker": truth.maker}
    about |= {"foil": s.foil.name, "foil_maker": s.foil.maker, "foil_id": s.foil.id}
    about |= {"expect": t.expect, "repeat": conversation.repeat}
    for turn, source, messages, response in sorted(
        conversation.said, key=lambda one: (one[0], one[1] == "readout")
    ):
        yield about | {
            "turn": turn,
            "source": source,
            "reply": response.text if response.status != "error" else response.error,
            "status": response.status,
            **dict.fromkeys(VERDICT),
            **fields_of(response, "usage", "request_id"),
            **call_fields(Request(conversation.model, messages), response),
        }
