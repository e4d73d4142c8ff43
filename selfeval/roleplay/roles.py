"""Who takes part: the entries of `data/roleplay/`, who plays a persona or strategy, and who is of one family."""

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from selfeval.bounds import read_yaml
from selfeval.errors import InputError, check_one_of
from selfeval.paths import shipped
from selfeval.providers.models import Model, from_callable, get
from selfeval.providers.request import Response

PLAYED = {
    "prompt",
    "questions",
    "script",
    "typed",
}  # how a role is played: one of these; the script is ELIZA


@dataclass(frozen=True)
class Role:
    """A persona or a strategy: played by a model (prompt), a list of questions, a script, or a person (typed)."""

    name: str
    title: str
    prompt: str = ""
    questions: Sequence[str] = ()
    script: str = ""
    typed: bool = False


def personas() -> dict[str, Role]:
    """Return the agents' personas by name."""
    return _roles(_file("agents"))


def strategies() -> dict[str, Role]:
    """Return the interrogators' strategies by name."""
    return _roles(_file("interrogators"))


def jurors() -> dict[str, dict]:
    """Return the jurors' personas: {name: {title, persona}}."""
    return _entries(_file("jurors"), ("title", "persona"))


def rubrics() -> dict[str, dict]:
    """Return what a juror decides: {name: {tag, asks, zero, one}}; `human` is the verdict."""
    return _entries(_file("rubrics"), ("tag", "asks", "zero", "one"))


def role(name: str, known: dict[str, Role], parameter: str) -> Role:
    """Return the role of this name; raise `InputError` naming the parameter and what is known."""
    check_one_of(parameter, name, known)
    return known[name]


@cache
def _entries(path: Path, texts: tuple[str, ...]) -> dict[str, dict]:
    """Return the entries of a file by name, each with these texts; raise `InputError` for any other."""
    entries = _read(path)
    for name, entry in entries.items():
        if not all(isinstance(entry.get(field), str) for field in texts):
            raise InputError(
                f"{path} must give {name!r} the texts {', '.join(texts)}, got {entry!r:.120}."
            )
    return entries


def _read(path: Path) -> dict:
    """Return what a file of names holds; raise `InputError` for one that is no YAML, or without names."""
    try:
        entries = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as YAML: {error}.") from error
    if not isinstance(entries, dict) or not all(
        isinstance(entry, dict) for entry in entries.values()
    ):
        raise InputError(f"{path} must give every name its fields, got {entries!r:.120}.")
    return entries


def _file(name: str) -> Path:
    return shipped(f"roleplay/{name}.yaml")


@cache
def _roles(path: Path) -> dict[str, Role]:
    roles = {}
    for name, entry in _entries(path, ("title",)).items():
        if len(entry) != 2 or not entry.keys() <= {"title", *PLAYED}:
            known = f"one of {', '.join(sorted(PLAYED))}"
            raise InputError(
                f"{path.name} must give {name!r} a `title` and {known}, got {entry!r:.120}."
            )
        roles[name] = Role(name, **entry)
    return roles


def player(part: Role, model: Model | None, seed: int) -> Model:
    """Return who plays a part: the model, or the callable that needs none.

    A part that a person types is played by the model given where that is a callable (`person` with
    another reader), else by whoever sits at the keyboard. seed: of a script. Raises `InputError`
    where a model is missing.
    """
    if part.typed:
        return model if model is not None and model.call else person()
    if part.script:
        return from_callable(eliza(seed), f"script/{part.script}", part.title)
    if part.questions:

        def ask(messages: list[dict], **_) -> str:
            return part.questions[sum(message["role"] == "assistant" for message in messages)]

        return from_callable(ask, f"script/{part.name}", part.title)
    if model is None:
        raise InputError(
            f"The part {part.name!r} ({part.title}) is played by a model, and none is named."
        )
    return model


def person(read: Callable[[str], str] | None = None) -> Model:
    """Return a person as a model: shows what the other side wrote and reads a line, in the notebook or the terminal.

    read: takes what is shown and returns the line; by default `input`. Typing happens beside the
    other calls. A line that is empty counts as no reply; the end of the input ends the
    conversation; Ctrl-C takes effect at the next Enter.
    """

    async def type_(messages: list[dict], **_) -> Response:
        try:
            line = await asyncio.to_thread(read or input, f"\n{messages[-1]['content']}\n\nyou> ")
        except EOFError:
            return Response(status="error", error="the input ended")
        return Response(line, "ok" if line.strip() else "empty")

    return from_callable(type_, "person", "Person at the keyboard")


def seat_names(names: Sequence[str]) -> list[str]:
    """Return jurors' ids with a number where one is named again: "m", "m #2", "m #3"."""
    return [
        f"{name} #{again}" if (again := names[: k + 1].count(name)) > 1 else name
        for k, name in enumerate(names)
    ]


def same_family(juror: str, agent: str) -> bool:
    """Tell whether a juror judges itself or a relative: equal id, family, or developer where no family is known."""
    try:
        one, other = get(juror), get(agent)
    except (
        InputError
    ):  # one that is no model of the registry, such as a script, a person, or "" for unknown
        return agent == juror
    if one.family or other.family or one.id == other.id:
        return one.id == other.id or one.family == other.family
    return "/" in one.id and other.id.startswith(f"{one.id.partition('/')[0]}/")


def list_roles() -> pd.DataFrame:
    """Return who can take part in a role-play: side (agent, interrogator, juror), name, title, and what it is told."""
    sides = {"agent": personas(), "interrogator": strategies()}
    rows = [
        (side, role.name, role.title, role.prompt)
        for side, roles in sides.items()
        for role in roles.values()
    ]
    rows += [("juror", name, entry["title"], entry["persona"]) for name, entry in jurors().items()]
    return pd.DataFrame(rows, columns=["side", "name", "title", "told"])


# ELIZA ----------------------------------------------------------------------------------------------------------------


def eliza(seed: int) -> Callable:
    """Return a scripted support agent in the manner of ELIZA (Weizenbaum 1966), which understands nothing.

    It is the floor of the comparison: a jury that does not place it below people has not noticed
    what it read. Its script stands in `data/roleplay/eliza.yaml`; the same messages and seed have
    the same answer.
    """

    script = read_yaml(_file("eliza").read_text(encoding="utf-8"))

    def reply(messages: list[dict], **_) -> str:
        heard = [message["content"] for message in messages if message["role"] == "user"]
        draw, plain = (
            random.Random(f"{seed}\n" + "\n".join(heard)),
            " ".join(heard[-1].replace("’", "'").split()),
        )
        for rule in script["rules"]:  # the first that fits answers; "my" is said as "your"
            if found := re.search(rule["pattern"], plain, re.I):
                caught = re.split(r"[.,;:!?]", found[1])[0].split() if found.groups() else []
                said = " ".join(script["reflected"].get(word.lower(), word) for word in caught)
                return draw.choice(rule["answers"]).format(said or "it")
        return draw.choice(script["anything"])

    return reply
