"""Who takes part: the entries of `data/roleplay/`, who plays them, and who is of one family."""

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

# how a role is played: one of these; the script is ELIZA
PLAYED = ("prompt", "questions", "script", "typed")


@dataclass(frozen=True)
class Role:
    """A persona or a strategy.

    It is played by a model (prompt), a list of questions, a script, or a person (typed).
    """

    name: str
    title: str
    prompt: str = ""
    questions: Sequence[str] = ()
    script: str = ""
    typed: bool = False


def personas() -> dict[str, Role]:
    """Return the agents' personas by name."""
    return _roles("agents")


def strategies() -> dict[str, Role]:
    """Return the interrogators' strategies by name."""
    return _roles("interrogators")


def jurors() -> dict[str, dict]:
    """Return the jurors' personas: {name: {title, persona}}."""
    return _entries(_file("jurors"), ("persona",))


def role(name: str, known: dict[str, Role], parameter: str) -> Role:
    """Return the role of this name; raise `InputError` naming the parameter and what is known."""
    check_one_of(parameter, name, known)
    return known[name]


def _roles(file: str) -> dict[str, Role]:
    return {name: Role(name, **entry) for name, entry in _entries(_file(file), PLAYED).items()}


@cache
def _entries(path: Path, ways: tuple[str, ...]) -> dict[str, dict]:
    """Return the entries of a YAML file by name: each has a `title` and one of these ways.

    Raises `InputError` for anything else.
    """
    try:
        entries = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as YAML: {error}.") from error
    rule = f"{path} must give every name a `title` and one of {', '.join(ways)}"
    if not isinstance(entries, dict):
        raise InputError(f"{rule}, got {entries!r:.120}.")
    for name, entry in entries.items():
        fields = entry.keys() if isinstance(entry, dict) else set()
        if len(fields) != 2 or not {"title"} < fields <= {"title", *ways}:
            raise InputError(f"{rule}, got {name!r}: {entry!r:.120}.")
    return entries


def _file(name: str) -> Path:
    return shipped(f"roleplay/{name}.yaml")


def player(part: Role, model: Model | None, seed: int) -> Model:
    """Return who plays a part: the model, or the callable that needs none.

    A part that a person types is played by the model given where that is a callable, else by
    whoever sits at the keyboard. seed: of a script. Raises `InputError` where a model is missing.
    """
    if part.typed:
        if model is not None and model.call:
            return model
        return person()
    if part.script:
        return from_callable(eliza(seed), f"script/{part.script}", part.title)
    if part.questions:

        def ask(messages: list[dict], **_) -> str:
            asked = [message for message in messages if message["role"] == "assistant"]
            return part.questions[len(asked)]

        return from_callable(ask, f"script/{part.name}", part.title)
    if model is None:
        named = f"The part {part.name!r} ({part.title})"
        raise InputError(f"{named} is played by a model, and none is named.")
    return model


def person() -> Model:
    """Return a person as a model: it shows what the other side wrote, and reads a line.

    In the notebook or the terminal. Typing happens beside the other calls. A line that is empty
    counts as no reply; the end of the input ends the conversation; Ctrl-C takes effect at the next
    Enter.
    """

    async def type_(messages: list[dict], **_) -> Response:
        try:
            shown = f"\n{messages[-1]['content']}\n\nyou> "
            line = await asyncio.to_thread(input, shown)
        except EOFError:
            return Response(status="error", error="the input ended")
        return Response(line, "ok" if line.strip() else "empty")

    return from_callable(type_, "person", "Person at the keyboard")


def same_family(juror: str, agent: str) -> bool:
    """Tell whether a juror judges itself or a relative.

    That is one of equal id or family, or of equal developer where no family is known.
    """
    try:
        judge = get(juror)
        judged = get(agent)
    except InputError:  # of no registry, such as a script, a person, or "" for unknown
        return agent == juror
    if judge.id == judged.id:
        return True
    if judge.family or judged.family:
        return judge.family == judged.family
    if judge.developer and judged.developer:
        return judge.developer == judged.developer
    developer, slash, _ = judge.id.partition("/")
    return bool(slash) and judged.id.startswith(f"{developer}/")


def list_roles() -> pd.DataFrame:
    """Return who can take part in a role-play, one row each.

    Columns: side (agent, interrogator, juror), name, title, and what it is told.
    """
    rows = [("agent", role.name, role.title, role.prompt) for role in personas().values()]
    for strategy in strategies().values():
        rows.append(("interrogator", strategy.name, strategy.title, strategy.prompt))
    for name, entry in jurors().items():
        rows.append(("juror", name, entry["title"], entry["persona"]))
    return pd.DataFrame(rows, columns=["side", "name", "title", "told"])


# ELIZA


def eliza(seed: int) -> Callable:
    """Return a scripted support agent in the manner of ELIZA (Weizenbaum 1966).

    It understands nothing, and is the floor of the comparison: a jury that does not place it below
    people has not noticed what it read. Its script stands in `data/roleplay/eliza.yaml`; the same
    messages and seed have the same answer.
    """

    script = read_yaml(_file("eliza").read_text(encoding="utf-8"))

    def reply(messages: list[dict], **_) -> str:
        heard = [message["content"] for message in messages if message["role"] == "user"]
        draw = random.Random(f"{seed}\n" + "\n".join(heard))
        last = " ".join(heard[-1].replace("’", "'").split())
        for rule in script["rules"]:  # the first that fits answers
            match = re.search(rule["pattern"], last, re.I)
            if match:
                caught = match[1] if match.groups() else ""
                words = re.split(r"[.,;:!?]", caught)[0].split()
                # "my" is said as "your"
                reflected = [script["reflected"].get(word.lower(), word) for word in words]
                return draw.choice(rule["answers"]).format(" ".join(reflected) or "it")
        return draw.choice(script["anything"])

    return reply
