"""Who sits on the jury, and in which order they speak: models crossed with personas by seeded Latin squares."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import yaml

from selfeval import DATA
from selfeval.errors import InputError, check_at_least, check_whole
from selfeval.models import Model, get

SINGLE = ("independent", "personas")  # arms of one round
SCOPES = ("turn", "prefix", "conversation")
PUBLISHED = ("linguist", "psychologist", "manager")  # the personas of the published framework


@dataclass(frozen=True)
class Seat:
    """One juror of one verdict: a model in a persona (None: without); number: its how many-th seat this is, from 1.

    Votes of one model in several seats are samples of it, each with the sample number of its seat.
    """

    model: Model
    persona: str | None = None
    number: int = 1

    @property
    def name(self) -> str:
        """Return what records call this juror."""
        return numbered([self.model.id] * self.number)[-1]


@dataclass(frozen=True)
class Jury:
    """Who judges, and how; one object for all conversations of a run.

    jurors: models or their ids; one alone takes all personas, one named k times takes k seats. personas: names in
    data/roleplay/jurors.yaml. rounds: of the arms in which jurors speak more than once. scope: what a verdict is about:
    the answer of one `turn`, all answers up to a turn (`prefix`), or the whole `conversation` once. context: what is
    shown for a turn: the conversation so far (`rolling`) or its exchange alone (`isolated`). blind: one more round
    whose statements nobody sees. aggregation: `mean` or `majority` of the last round. dimensions: further rubrics of
    data/roleplay/rubrics.yaml. summariser, judge: the model that writes summaries (None: the first juror) and the one
    that decides after the jury (None: none). answer: `auto` (JSON where the provider can constrain it), `constrained`
    or `free`. tokens: most tokens of a statement, 0 = the provider's own. temperature, seed: of the jurors.

    Raises `InputError` naming the field that breaks a rule.
    """

    jurors: tuple[Model | str, ...]
    personas: tuple[str, ...] = PUBLISHED
    rounds: int = 2
    scope: str = "turn"
    context: str = "rolling"
    blind: bool = False
    aggregation: str = "mean"
    dimensions: tuple[str, ...] = ()
    summariser: Model | None = None
    judge: Model | None = None
    answer: str = "auto"
    tokens: int = 0
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self):
        for name, known in (
            ("scope", SCOPES), ("context", ("rolling", "isolated")), ("aggregation", ("mean", "majority")),
            ("answer", ("auto", "constrained", "free")),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                raise InputError(f"`{name}` must be one of {', '.join(known)}, got {getattr(self, name)!r}.")
        for name, least in (("rounds", 1), ("tokens", 0), ("seed", 0)):
            check_whole(name, getattr(self, name), least)
        check_at_least("temperature", self.temperature, 0)
        if not isinstance(self.blind, bool):
            raise InputError(f"`blind` must be true or false, got {self.blind!r}.")
        jurors = [self.jurors] if isinstance(self.jurors, str | Model) else self.jurors
        object.__setattr__(self, "jurors", [get(juror) if isinstance(juror, str) else juror for juror in jurors])
        if not self.jurors:
            raise InputError("`jurors` must name at least one model, got [].")
        for field in ("jurors", "personas", "dimensions"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        _known("personas", self.personas, personas(), at_least_one=True)
        _known("dimensions", self.dimensions, set(rubrics()) - {"human"})
        for model in self.jurors:
            if self.answer == "constrained" and not model.provider.json_schema:
                raise InputError(
                    f"The provider `{model.provider.name}` of the juror {model.id!r} has no `json_schema` in the "
                    "registry, so its answers cannot be constrained; use answer = 'auto'."
                )

    def constrained(self, model: Model) -> bool:
        """Tell whether this model is asked for JSON."""
        return self.answer != "free" and model.provider.json_schema

    def scores(self) -> dict[str, dict]:
        """Return the rubrics of a verdict, that of the human score first."""
        return {name: rubrics()[name] for name in ("human", *self.dimensions)}

    def named(self) -> list[Seat]:
        """Return a seat for every juror, in the order in which they are named."""
        ids = [model.id for model in self.jurors]
        return [Seat(model, number=ids[:k].count(model.id) + 1) for k, model in enumerate(self.jurors)]

    def seats(self, arm: str, index: int, turn: int) -> list[Seat]:
        """Return the jurors in speaking order for a turn (from 1) of the index-th conversation (from 0).

        Several models: each takes one persona per conversation, and over max(jurors, personas) conversations every
        model plays every persona equally often. One model: it takes every persona, and votes once in `independent`.
        """
        if arm == "independent":
            seats = self.named()
        elif len(self.jurors) == 1:
            seats = [Seat(self.jurors[0], persona) for persona in self.personas]
        else:
            size = max(len(self.jurors), len(self.personas))
            names = [self.personas[k % len(self.personas)] for k in latin_row(size, "persona", index, 0, self.seed)]
            seats = [replace(seat, persona=name) for seat, name in zip(self.named(), names, strict=False)]
        return [seats[k] for k in latin_row(len(seats), "order", index, turn - 1, self.seed)]


def numbered(jurors: Sequence[str]) -> list[str]:
    """Return the jurors' ids with a number where one is named again: "m", "m #2", "m #3"."""
    return [f"{name} #{again}" if (again := jurors[: k + 1].count(name)) > 1 else name for k, name in enumerate(jurors)]


def latin_row(size: int, name: str, row: int, column: int, seed: int) -> list[int]:
    """Return a permutation of range(size): row + column of a seeded Latin square, a new square per block of `size`.

    Over any aligned block of `size` rows every number stands at every place once, and so over columns.
    """
    draw = random.Random(f"{seed} {name} {size} {row // size} {column // size}")
    first, second = list(range(size)), list(range(size))
    draw.shuffle(first)
    draw.shuffle(second)
    return [first[(place + row + column) % size] for place in second]


@cache
def _data(name: str) -> dict[str, dict]:
    path = DATA / "roleplay" / name
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    needed = {"jurors.yaml": ("title", "persona"), "rubrics.yaml": ("tag", "asks", "zero", "one")}[name]
    for entry, fields in entries.items():
        missing = [field for field in needed if not isinstance((fields or {}).get(field), str)]
        if missing:
            raise InputError(f"{path}: {entry!r} needs the text{'s' * (len(missing) > 1)} {', '.join(missing)}.")
    return entries


def personas() -> dict[str, dict]:
    """Return the jurors' personas of data/roleplay/jurors.yaml: {name: {title, persona}}."""
    return _data("jurors.yaml")


def rubrics() -> dict[str, dict]:
    """Return the dimensions of data/roleplay/rubrics.yaml: {name: {tag, asks, zero, one}}."""
    return _data("rubrics.yaml")


def _known(field: str, names: Sequence[str], known: Iterable[str], at_least_one: bool = False) -> None:
    if at_least_one and not names:
        raise InputError(f"`{field}` must name at least one, got [].")
    for name in names:
        if name not in known:
            raise InputError(f"Unknown name {name!r} in `{field}`; known are {', '.join(known)}.")
    if len(set(names)) < len(names):
        raise InputError(f"`{field}` names one twice: {', '.join(names)}.")


def same_family(juror: Model | str, agent: str) -> bool:
    """Tell whether a juror judges itself or a relative: equal id, family, or developer where no family is known."""
    if agent in ("human", ""):
        return False
    try:
        juror, other = get(juror) if isinstance(juror, str) else juror, get(agent)
    except InputError:  # one that is no model of the registry, such as a script
        return agent == (juror if isinstance(juror, str) else juror.id)
    if juror.family or other.family:
        return juror.id == other.id or juror.family == other.family
    return juror.id == other.id or ("/" in juror.id and juror.id.partition("/")[0] == other.id.partition("/")[0])


def warnings(jury: Jury, agents: Iterable[str] = (), arms: Sequence[str] = ("debate",)) -> list[str]:
    """Return a sentence for what weakens this jury: one model in many seats, jurors of an agent's family."""
    found = []
    if len(jury.jurors) == 1 and set(arms) - {"independent"}:
        found.append(
            f"One model, {jury.jurors[0].id}, plays all jurors ({', '.join(jury.personas)}): what looks like a debate "
            "is one model with itself. Name three models of different families in `jurors`."
        )
    for juror, seats in Counter(model.id for model in jury.jurors).items():
        if seats > 1:
            found.append(
                f"One model, {juror}, takes {seats} of {len(jury.jurors)} seats: its votes are samples of one opinion, "
                "and their debate is one model with itself. Name models of different families in `jurors`."
            )
    for agent in dict.fromkeys(agents):
        found += relatives(agent, [juror.id for juror in jury.jurors if same_family(juror, agent)])
    return found


def relatives(agent: str, jurors: Iterable[str]) -> list[str]:
    """Return the sentence about jurors that are of the agent's family; none where there are none."""
    names = ", ".join(dict.fromkeys(jurors))
    return [f"The agent {agent} is judged by its own family ({names}): see `same_family`."] if names else []
