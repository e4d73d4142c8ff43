"""The wide suite: situations rendered from who a model is and who it is not. The texts are `data/identity/suite/`.

Every template is rendered in arms that differ in one thing, the identity that the text claims for the model. Names come
into a text by placeholders alone, so an arm says what it claims to say; that is checked when a suite is read.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from selfeval import models
from selfeval.errors import InputError, check_whole
from selfeval.identity.names import Entity, compare, entity, fold, mentions
from selfeval.paths import shipped
from selfeval.records import data_path

ARMS = ("neutral", "false-far", "false-near", "placebo", "true", "mention")
FALSE_ARMS = ("false-far", "false-near", "placebo")  # the text claims that the model is its foil
LEVELS = ("name", "maker", "family", "id")
PLACEHOLDER = re.compile(r"\{((?:claimed_)?(?:name|maker|family|id))\}")
FEW = 3  # so many siblings of its own family are enough, and so many models of one maker are far foils


@dataclass(frozen=True)
class Identity:
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

    @property
    def cluster(self) -> str:
        """Return what is resampled together: a template and its paraphrases."""
        return self.paraphrase_of or self.id


@dataclass(frozen=True)
class Situation:
    """A template rendered for one model in one arm.

    messages: the conversation up to the model's first reply; pressure: the user turns after it, one per step, each
    sent after the model's real reply to what came before. foil: who the text says the model is (false arms, placebo) or
    merely names (mention); in the neutral and the true arm the far foil of the template's other arms, which is not in
    the text, so that P(foil) can be compared.
    """

    template: Template
    arm: str
    foil: Identity
    messages: list[dict]
    pressure: tuple[str, ...]


# --- reading ----------------------------------------------------------------------------------------------------------


@cache
def readouts() -> dict[str, str]:
    """Return the line that reads out a conversation, by language (`data/identity/readout.yaml`)."""
    return yaml.safe_load(data_path("identity/readout.yaml").read_text(encoding="utf-8"))


@cache
def _schemas() -> dict[str, dict]:
    return yaml.safe_load(data_path("identity/schema.yaml").read_text(encoding="utf-8"))


def check_form(where: object, content: object, kind: str) -> None:
    """Raise `InputError` that names place and rule where content breaks the schema `kind` of `schema.yaml`."""
    if error := best_match(Draft202012Validator(_schemas()[kind]).iter_errors(content)):
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
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(f"{file} cannot be read as YAML: {error}.") from error
        check_form(file, content, "suite")
        for entry in content["templates"]:
            arms = tuple(arm for arm in ARMS if arm in entry["arms"])
            template = Template(**entry | {"family": content["family"], "arms": arms})
            if template.id in templates:
                raise InputError(f"{file}: the `id` {template.id!r} is used twice; each template needs its own.")
            if broken := _broken(template):
                raise InputError(f"{file}, template {template.id!r}: {broken}.")
            templates[template.id] = template
    for one in templates.values():
        for key in ("control_of", "twin", "paraphrase_of"):
            name = getattr(one, key)
            if name is not None and (name not in templates or name == one.id):
                raise InputError(f"{where}, template {one.id!r}: `{key}` names no other template: {name!r}.")
    if not templates:
        raise InputError(f"The suite {where} holds no template.")
    return list(templates.values())


def _broken(template: Template) -> str | None:
    """Return the rule that a template breaks beyond its form, or None."""
    roles = [turn["role"] for turn in template.turns]
    if "system" in roles[1:] or (roles[-1] == "assistant") != (template.condition == "prefill") or roles == ["system"]:
        return "a system turn must be the first one, the last the user's (the assistant's in the condition `prefill`)"
    for wording in sorted({_wording(arm) for arm in template.arms}):
        texts = [_text(turn, wording) for turn in (*template.turns, *template.pressure)]
        if None in texts:
            return f"a turn lacks the wording `{wording}` that its arms need"
        whole = "\n".join(texts)
        if named := mentions(fold(PLACEHOLDER.sub("", whole))):
            return f"names come by placeholders alone, but `{wording}` has one of {named[0].entity}"
        used = set(PLACEHOLDER.findall(whole))
        claimed = {name for name in used if name.startswith("claimed_")}
        if wording == "neutral" and used:
            return f"the neutral wording names nobody, but has {{{min(used)}}}"
        if wording != "neutral" and not claimed:
            return f"the wording `{wording}` has no placeholder {{claimed_...}}"
        if used - claimed and not template.gives_truth:
            return f"`{wording}` states the truth beside the claim; allow it with `gives_truth: true`"
        if wording == "claim" and "false-near" in template.arms and not claimed & {"claimed_name", "claimed_id"}:
            return "a sibling has the same maker and family; `false-near` needs {claimed_name} or {claimed_id}"
    return None


def _wording(arm: str) -> str:
    return arm if arm in ("neutral", "mention") else "claim"


def _text(turn: Mapping, wording: str) -> str | None:
    content = turn["content"]
    return content if isinstance(content, str) else content.get(wording)


# --- who is who -------------------------------------------------------------------------------------------------------


@cache
def read_foils() -> tuple[dict[str, str], tuple[Identity, ...], tuple[Identity, ...]]:
    """Return `data/identity/foils.yaml`: families as written in a text, real models, and invented ones."""
    content = yaml.safe_load(data_path("identity/foils.yaml").read_text(encoding="utf-8"))
    families = content["families"]
    real = (Identity(**one | {"family": families[one["family"]]}) for one in content["models"])
    return families, tuple(real), tuple(Identity(**one) for one in content["invented"])


def identity(model: models.Model | str) -> Identity:
    """Return who a model is by the registry; a simulated one is who it plays, "GPT-4.1 (terse)" is GPT-4.1.

    Raises `InputError` for a model without developer, since the texts name the maker.
    """
    model = models.get(model) if isinstance(model, str) else model
    if plays := (model.simulation or {}).get("plays"):
        return identity(plays)
    if not model.developer:
        raise InputError(
            f"The model {model.id!r} has no `developer`, and the texts must name its maker; list it in the registry "
            "(data/models.yaml, or the file that SELFEVAL_MODELS names) with `display`, `family` and `developer`."
        )
    name = re.sub(r" \([^()]*\)$", "", model.display)
    return Identity(name, model.developer, read_foils()[0].get(model.family, name), model.api_name.rpartition("/")[2])


def foils(truth: Identity, seed: int = 0) -> dict[str, list[Identity]]:
    """Return who a model may be told that it is: {false-far, false-near, placebo: identities in a seeded order}.

    Far: another maker, makers taking turns, up to three models of each. Near: the same maker, of the same family where
    that has enough; empty for a maker that the file does not have. Placebo: nobody.
    """
    _, known, invented = read_foils()
    real = [one for one in known if contradict(truth, one)]
    own = [one for one in real if same_maker(one, truth)]
    family = [one for one in own if one.family == truth.family]
    pools = {
        "false-far": [one for one in real if not same_maker(one, truth) and one.maker != "selfeval"],
        "false-near": family if len(family) >= FEW else own,
        "placebo": list(invented),
    }
    for arm, pool in pools.items():
        random.Random(f"{seed}/{arm}/{truth.name}").shuffle(pool)
    far = pools["false-far"]
    turn = {one: [x for x in far if x.maker == one.maker].index(one) for one in far}
    pools["false-far"] = sorted((one for one in far if turn[one] < FEW), key=turn.get)
    return pools


def same_maker(one: Identity, other: Identity) -> bool:
    """Tell whether two models are of one maker."""
    return one.maker.casefold() == other.maker.casefold()


def contradict(one: Identity, other: Identity) -> bool:
    """Tell whether a model cannot be both by their names; somebody who is GPT-4 Turbo may well say GPT-4."""
    a, b = (entity(x.name) or Entity(x.maker, x.name) for x in (one, other))
    return compare(a, b) == "conflict"


# --- rendering --------------------------------------------------------------------------------------------------------


def render(template: Template, truth: Identity, foil: Identity, arm: str, turns: int | None = None) -> Situation:
    """Return the situation of a template in an arm, with at most so many turns of pressure."""
    claimed = truth if arm == "true" else foil
    values = {level: getattr(truth, level) for level in LEVELS}
    values |= {f"claimed_{level}": getattr(claimed, level) for level in LEVELS}

    def fill(turn: Mapping) -> str:
        return PLACEHOLDER.sub(lambda match: values[match[1]], _text(turn, _wording(arm))).strip()

    messages = [{"role": turn["role"], "content": fill(turn)} for turn in template.turns]
    return Situation(template, arm, foil, messages, tuple(map(fill, template.pressure[:turns])))


def situations(
    templates: Sequence[Template],
    model: models.Model | str,
    arms: Sequence[str] | None = None,
    limit: int = 0,
    seed: int = 0,
    turns: int | None = None,
) -> list[Situation]:
    """Return the situations of one model, template by template, the families taking turns.

    arms: only these (default: all that a template has). limit: only the first `limit` templates that have one of the
    arms; 0 = all. seed: of the choice of foils, which go round, so that neighbouring templates have different ones.
    turns: at most so many steps of pressure; None = all of a template.
    Raises `InputError` for an unknown arm, and for a model that has no sibling where the arm false-near is wanted.
    """
    check_whole("limit", limit)
    check_whole("turns", turns or 0, 0)
    arms = ARMS if arms is None else arms
    if not set(arms) or not set(arms) <= set(ARMS):
        raise InputError(f"`arms` must be of {', '.join(ARMS)}, got {arms!r}; in YAML the arm true stands in quotes.")
    truth, made = identity(model), []
    pools = foils(truth, seed)
    wanted = [(number, t) for number, t in enumerate(_in_turns(templates)) if set(t.arms) & set(arms)]
    for number, template in wanted[: limit or None]:
        for arm in (arm for arm in template.arms if arm in arms):
            pool = pools[arm if arm in FALSE_ARMS else "false-far"]
            if not pool:
                raise InputError(
                    f"{truth.name!r} by {truth.maker!r} has no sibling in data/identity/foils.yaml for {arm!r}; "
                    "add one there, or leave the arm out."
                )
            made.append(render(template, truth, pool[number % len(pool)], arm, turns))
    return made


def _in_turns(templates: Sequence[Template]) -> list[Template]:
    """Return the templates with the families taking turns, so that any limit has some of each."""
    families: dict[str, list[Template]] = {}
    for template in templates:
        families.setdefault(template.family, []).append(template)
    return [t for t in chain.from_iterable(zip_longest(*families.values())) if t is not None]


def as_alternating(messages: Sequence[dict]) -> list[dict]:
    """Return the messages with turns of one role in a row merged by a blank line.

    Some providers refuse two turns of one role in a row, others join them in ways of their own.
    """
    merged: list[dict] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1] = message | {"content": f"{merged[-1]['content']}\n\n{message['content']}"}
        else:
            merged.append(dict(message))
    return merged
