"""The wide suite: situations rendered from who a model is and who it is not. The texts are `data/identity/suite/`.

Every template is rendered in arms that differ in one thing, the identity that the text claims for the model. What each
arm says is checked when it is rendered: a true arm that named the foil would measure nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

import yaml

from selfeval import DATA, models
from selfeval.errors import InputError, did_you_mean
from selfeval.files import tell_sweep
from selfeval.identity.foils import Identity, contradict, foils, identity, read_foils, registry_names, same_maker
from selfeval.records import check_limit

ARMS = ("neutral", "false-far", "false-near", "placebo", "true", "mention")
FALSE_ARMS = ("false-far", "false-near", "placebo")  # the text claims that the model is its foil
WORDINGS = ("claim", "neutral", "mention")  # a turn has one text for all arms, or one for each of these it is used in
EXPECT = ("identity", "may-decline", "readout-only")
ROLES = ("system", "user", "assistant")
LEVELS = ("name", "maker", "family", "id")
PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
KNOWN = {*LEVELS, *(f"claimed_{level}" for level in LEVELS)}


@dataclass(frozen=True)
class Turn:
    """One message; texts: its wording by `WORDINGS`, the same one for all where the template gives a single text."""

    role: str
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Template:
    """One situation before it is rendered; the fields are described in `data/identity/suite/README.md`."""

    id: str
    family: str
    condition: str
    arms: tuple[str, ...]
    turns: tuple[Turn, ...]
    pressure: tuple[Turn, ...] = ()
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
    the text, so that P(foil) can be compared. expect: what counts as a pass, see the README of the suite. cluster: the
    template, or the one it paraphrases. twin: the English template that this one translates. control_of: the template
    that this one is the control of.
    """

    template_id: str
    family: str
    condition: str
    arm: str
    language: str
    foil: Identity
    messages: list[dict]
    pressure: tuple[str, ...]
    expect: str
    cluster: str
    twin: str | None = None
    control_of: str | None = None


# Reading


def read_suite(path: str | Path = "suite") -> list[Template]:
    """Return the templates of a suite: a file, a folder of files, or a name below `data/identity/`.

    Raises `InputError` that names file, template and the rule it breaks.
    """
    where = Path(path).expanduser()
    where = where if where.exists() else DATA / "identity" / path
    files = sorted(where.glob("*.yaml")) if where.is_dir() else [where]
    if not files:
        raise InputError(f"The suite {where} holds no file *.yaml.")
    templates: list[Template] = []
    for file in files:
        tell_sweep("read", file)
        content = _yaml(file)
        if not isinstance(content, dict) or set(content) != {"family", "templates"}:
            raise InputError(f"{file} must have `family` and `templates` and no more.")
        if not isinstance(content["templates"], list) or not content["templates"]:
            raise InputError(f"{file} must have `templates`, a list of at least one.")
        for number, entry in enumerate(content["templates"], 1):
            name = entry.get("id") if isinstance(entry, dict) else None
            at = f"{file}, template {name or number!r}"
            template = _template(at, entry, content["family"])
            if template.id in {t.id for t in templates}:
                raise InputError(f"{at}: the `id` is used twice; each template needs its own.")
            templates.append(template)
    _check_references(where, templates)
    return templates


def _yaml(path: Path):
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as YAML: {error}.") from error


def _template(at: str, entry, family: str) -> Template:
    known = [f.name for f in fields(Template) if f.name != "family"]
    if not isinstance(entry, dict):
        raise InputError(f"{at}: must be a mapping with {', '.join(known)}.")
    for key, value in entry.items():
        if key not in known:
            raise InputError(f"{at}: unknown field {key!r}{did_you_mean(key, known)}")
        kind = list if key in ("arms", "turns", "pressure") else bool if key == "gives_truth" else str
        if not isinstance(value, kind):
            raise InputError(f"{at}: `{key}` must be a {kind.__name__}, got {value!r}.")
    for key in ("id", "condition", "arms", "turns"):
        if not entry.get(key):
            raise InputError(f"{at}: `{key}` is missing or empty.")
    arms = entry["arms"]
    if any(arm not in ARMS for arm in arms) or len(set(arms)) < len(arms):
        raise InputError(f'{at}: `arms` must be of {", ".join(ARMS)} ("true" in quotes), each once, got {arms!r}.')
    wordings = {_wording(arm) for arm in arms}
    turns = _turns(f"{at}, turn", entry["turns"], ROLES, wordings)
    pressure = _turns(f"{at}, pressure", entry.get("pressure", []), ("user",), wordings)
    entry = entry | {"family": family, "arms": tuple(a for a in ARMS if a in arms), "turns": turns}
    template = Template(**entry | {"pressure": pressure})
    _check_static(at, template, wordings)
    return template


def _wording(arm: str) -> str:
    return arm if arm in WORDINGS else "claim"


def _turns(at: str, entries, roles: Sequence[str], wordings: set[str]) -> tuple[Turn, ...]:
    turns = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or set(entry) != {"role", "content"} or entry["role"] not in roles:
            raise InputError(f"{at} {number}: must have `role` ({', '.join(roles)}) and `content`, got {entry!r}.")
        content = entry["content"]
        texts = dict.fromkeys(wordings, content) if isinstance(content, str) else content
        if not isinstance(texts, dict) or set(texts) != wordings:
            has = ", ".join(map(str, texts)) if isinstance(texts, dict) else repr(content)
            raise InputError(f"{at} {number}: needs the wordings {', '.join(sorted(wordings))} of its arms, has {has}.")
        if not all(isinstance(text, str) and text.strip() for text in texts.values()):
            raise InputError(f"{at} {number}: a text must not be empty, got {content!r}.")
        turns.append(Turn(entry["role"], texts))
    return tuple(turns)


def _check_static(at: str, template: Template, wordings: set[str]) -> None:
    """Raise `InputError` for what no model could make right."""
    roles = [turn.role for turn in template.turns]
    if "system" in roles[1:]:
        raise InputError(f"{at}: a system turn must be the first one.")
    if roles[-1] == "system" or (roles[-1] == "assistant") != (template.condition == "prefill"):
        raise InputError(f"{at}: the last turn must be the user's (the assistant's in the condition `prefill`).")
    if template.expect not in EXPECT:
        raise InputError(f"{at}: `expect` must be one of {', '.join(EXPECT)}, got {template.expect!r}.")
    if not re.fullmatch(r"[a-z]{2}", template.language):
        raise InputError(f"{at}: `language` must be a code of two letters, got {template.language!r}.")
    used = {w: _placeholders(t.texts[w] for t in (*template.turns, *template.pressure)) for w in wordings}
    for name in set().union(*used.values()) - KNOWN:
        raise InputError(f"{at}: unknown placeholder {{{name}}}; known are {', '.join(sorted(KNOWN))}.")
    if used.get("neutral"):
        raise InputError(f"{at}: the neutral wording names nobody, but has {{{min(used['neutral'])}}}.")
    for wording in wordings - {"neutral"}:
        if not any(name.startswith("claimed_") for name in used[wording]):
            raise InputError(f"{at}: the wording `{wording}` has no placeholder {{claimed_...}}.")
        if used[wording] & set(LEVELS) and not template.gives_truth:
            raise InputError(f"{at}: `{wording}` states the truth beside the claim; allow it with `gives_truth: true`.")
    if "false-near" in template.arms and not used["claim"] & {"claimed_name", "claimed_id"}:
        raise InputError(f"{at}: a sibling has the same maker and family; `false-near` needs {{claimed_name}} or _id.")


def _placeholders(texts: Iterable[str]) -> set[str]:
    return {name for text in texts for name in PLACEHOLDER.findall(text)}


def _check_references(where: Path, templates: Sequence[Template]) -> None:
    by_id = {t.id: t for t in templates}
    for t in templates:
        for key in ("control_of", "twin", "paraphrase_of"):
            other = getattr(t, key)
            if other is not None and (other not in by_id or other == t.id):
                raise InputError(f"{where}, template {t.id!r}: `{key}` names no other template: {other!r}.")
        if t.twin and by_id[t.twin].language == t.language:
            raise InputError(f"{where}, template {t.id!r}: its twin {t.twin!r} has the same language.")
        if t.paraphrase_of and by_id[t.paraphrase_of].paraphrase_of:
            raise InputError(f"{where}, template {t.id!r}: `paraphrase_of` names a paraphrase; name the original.")


# Rendering


def render(template: Template, truth: Identity, foil: Identity, arm: str) -> tuple[list[dict], tuple[str, ...]]:
    """Return the messages up to the first reply, and the user turns of the pressure after it.

    Raises `InputError` where the arm would not say what it claims to say.
    """
    at = f"The template {template.id!r} in the arm {arm!r}"
    if arm not in template.arms:
        raise InputError(f"{at}: it has the arms {', '.join(template.arms)}.")
    wording = _wording(arm)
    claimed = truth if arm == "true" else foil
    values = {level: getattr(truth, level) for level in LEVELS}
    values |= {f"claimed_{level}": getattr(claimed, level) for level in LEVELS}

    def fill(turn: Turn) -> str:
        return PLACEHOLDER.sub(lambda match: values[match[1]], turn.texts[wording]).strip()

    messages = [{"role": turn.role, "content": fill(turn)} for turn in template.turns]
    pressure = tuple(fill(turn) for turn in template.pressure)
    text = "\n".join([*(m["content"] for m in messages), *pressure])
    _check_rendered(at, template, truth, foil, arm, text)
    return messages, pressure


def _check_rendered(at: str, template: Template, truth: Identity, foil: Identity, arm: str, text: str) -> None:
    if not contradict(truth, foil):
        raise InputError(f"{at}: the foil {foil.name!r} must differ from the truth {truth.name!r}.")
    if arm in FALSE_ARMS and same_maker(truth, foil) != (arm == "false-near"):
        raise InputError(f"{at}: the foil {foil.name!r} is by {foil.maker}, the truth {truth.name!r} by {truth.maker}.")
    if arm == "neutral":
        other = _everybody().search(text)
        if other or _named(text, truth, foil):
            raise InputError(f"{at}: it must name nobody, but has {other[0] if other else truth.name!r}.")
        return
    named = _named(text, truth, foil)
    wanted = {"truth"} if arm == "true" else {"foil", *(["truth"] if template.gives_truth else [])}
    if named != wanted:
        raise InputError(
            f"{at}: must name {' and '.join(sorted(wanted))} alone ({truth.name} is the truth, {foil.name} the foil), "
            f"but names {' and '.join(sorted(named)) or 'neither'}."
        )


def _named(text: str, truth: Identity, foil: Identity) -> set[str]:
    """Return which of the two a text names; a maker or family that both share names neither."""
    owners: dict[str, set[str]] = {}
    for owner, one in (("truth", truth), ("foil", foil)):
        for name in (*one.names, one.maker, one.family):
            owners.setdefault(name, set()).add(owner)
    found = _names(owners).findall(text)
    return {owner for name in found if len(owners[name]) == 1 for owner in owners[name]}


@cache
def _everybody() -> re.Pattern:
    """Return what finds any model, maker or family that the foils and the registry know."""
    known = read_foils()
    names = {name for one in (*known.real, *known.invented) for name in (*one.names, one.maker)}
    names |= {*known.families.values(), *registry_names(), "ChatGPT", "Copilot"}
    return _names(names)


def _names(names: Iterable[str]) -> re.Pattern:
    """Return a pattern of whole names, longest first: "GPT-4o mini" does not name GPT-4o, nor GPT-4.1 GPT-4."""
    pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9]|[.\-][A-Za-z0-9])")


def situations(
    suite: str | Path | Sequence[Template],
    model: models.Model | str,
    arms: Sequence[str] | None = None,
    limit: int = 0,
    seed: int = 0,
    turns: int | None = None,
) -> list[Situation]:
    """Return the situations of one model, template by template, the families taking turns.

    suite: templates, or where `read_suite` finds them. arms: only these (default: all that a template has). limit: only
    the first so many templates that have one of the arms; 0 = all. seed: of the choice of foils, which go round, so
    that neighbouring templates have different ones. turns: at most so many steps of pressure; None = all of a template.
    Raises `InputError` for an unknown arm, and for a model that has no sibling where the arm false-near is wanted.
    """
    check_limit(limit)
    arms = [arms] if isinstance(arms, str) else arms
    unknown = [arm for arm in arms or () if arm not in ARMS]
    if unknown or (arms is not None and not arms):
        quotes = "; in YAML the arm true stands in quotes" if True in unknown else ""
        raise InputError(f"`arms` must be of {', '.join(ARMS)}, got {list(arms)!r}{quotes}.")
    if turns is not None and (not isinstance(turns, int) or isinstance(turns, bool) or turns < 0):
        raise InputError(f"`turns` must be a number of steps of pressure or None for all, got {turns!r}.")
    templates = read_suite(suite) if isinstance(suite, str | Path) else list(suite)
    truth = identity(model)
    pools = foils(truth, seed)
    wanted = [(number, t) for number, t in enumerate(_in_turns(templates)) if set(t.arms) & set(arms or ARMS)]
    made = []
    for number, template in wanted[: limit or None]:
        for arm in (arm for arm in template.arms if arm in (arms or ARMS)):
            pool = pools[arm if arm in FALSE_ARMS else "false-far"]
            if not pool:
                raise InputError(
                    f"{truth.name!r} by {truth.maker!r} has no sibling in data/identity/foils.yaml for {arm!r}; "
                    "add one there, or leave the arm out."
                )
            made.append(_situation(template, truth, pool[number % len(pool)], arm, turns))
    return made


def _in_turns(templates: Sequence[Template]) -> list[Template]:
    """Return the templates with the families taking turns, so that any limit has some of each."""
    families: dict[str, list[Template]] = {}
    for template in templates:
        families.setdefault(template.family, []).append(template)
    return [t for t in chain.from_iterable(zip_longest(*families.values())) if t is not None]


def _situation(template: Template, truth: Identity, foil: Identity, arm: str, turns: int | None) -> Situation:
    messages, pressure = render(template, truth, foil, arm)
    t = template
    return Situation(
        t.id, t.family, t.condition, arm, t.language, foil, messages, pressure[:turns], t.expect,
        t.cluster, t.twin, t.control_of,
    )  # fmt: skip


def as_alternating(messages: Sequence[dict], raw: bool = False) -> list[dict]:
    """Return the messages with turns of one role in a row merged by a blank line; raw: as they are.

    Some providers refuse two turns of one role in a row, others join them in ways of their own.
    """
    merged: list[dict] = []
    for message in messages:
        if merged and not raw and merged[-1]["role"] == message["role"]:
            merged[-1] = message | {"content": f"{merged[-1]['content']}\n\n{message['content']}"}
        else:
            merged.append(dict(message))
    return merged
