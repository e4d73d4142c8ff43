"""Who plays: the personas and strategies of `data/roleplay/` as models, scripts, or a person who types."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from selfeval import DATA
from selfeval.asking.request import Response
from selfeval.errors import InputError, did_you_mean
from selfeval.models import Model, from_callable
from selfeval.roleplay import eliza

SCRIPTS = {"eliza": eliza.agent}


@dataclass(frozen=True)
class Role:
    """A persona or a strategy: played by a model (prompt), a list of questions, a script, or a person (typed)."""

    name: str
    title: str
    prompt: str = ""
    questions: tuple[str, ...] = ()
    script: str = ""
    typed: bool = False

    @property
    def needs_model(self) -> bool:
        """Tell whether a model plays this role."""
        return bool(self.prompt)


def personas() -> dict[str, Role]:
    """Return the agents' personas by name."""
    return _roles(DATA / "roleplay" / "agents.yaml")


def strategies() -> dict[str, Role]:
    """Return the interrogators' strategies by name."""
    return _roles(DATA / "roleplay" / "interrogators.yaml")


def role(name: str, known: dict[str, Role], parameter: str) -> Role:
    """Return the role of this name; raise `InputError` naming the parameter and what is known."""
    if name not in known:
        near = did_you_mean(name, known)
        raise InputError(f"`{parameter}` {name!r} is unknown{near}; known are {', '.join(known)}.")
    return known[name]


@cache
def _roles(path: Path) -> dict[str, Role]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"The roles {path} cannot be read: {error}.") from error
    if not isinstance(content, dict) or not content:
        raise InputError(f"The roles {path} must be entries by name, got {content!r:.80}.")
    return {str(name): _role(path, str(name), entry) for name, entry in content.items()}


def _role(path: Path, name: str, entry) -> Role:
    kinds = {"prompt": str, "questions": list, "script": str, "typed": bool}
    fields = {k: v for k, v in entry.items() if k != "title"} if isinstance(entry, dict) else {}
    [(kind, value)] = fields.items() if len(fields) == 1 else [(None, None)]
    if not (isinstance(value, kinds.get(kind, ())) and value and isinstance(entry.get("title"), str)):
        raise InputError(f"{path} must give {name!r} a `title` and one of {', '.join(kinds)}, got {entry!r:.120}.")
    if kind == "script" and value not in SCRIPTS:
        raise InputError(f"{path} gives {name!r} the unknown script {value!r}; known are {', '.join(SCRIPTS)}.")
    return Role(name, entry["title"], **{kind: tuple(map(str, value)) if kind == "questions" else value})


def source(persona: str) -> str:
    """Return what a speaker in this persona is: "human" where a person types, else "model"."""
    return "human" if role(persona, personas(), "persona").typed else "model"


def player(part: Role, model: Model | None, seed: int) -> Model:
    """Return who plays a part: the model, or the callable that needs none.

    A part that a person types is played by the model given where that is a callable (`person` with a reader of one's
    own), else by whoever sits at the keyboard. seed: of a script. Raises `InputError` where a model is missing.
    """
    if part.typed:
        return model if model is not None and model.call else person()
    if part.script:
        return from_callable(SCRIPTS[part.script](seed), f"script/{part.script}", part.title)
    if part.questions:
        return from_callable(_asks(part.questions), f"script/{part.name}", part.title)
    if model is None:
        raise InputError(f"The part {part.name!r} ({part.title}) is played by a model, and none is named.")
    return model


def _asks(questions: tuple[str, ...]) -> Callable:
    def ask(messages: list[dict], **_) -> str:
        return questions[sum(message["role"] == "assistant" for message in messages)]

    return ask


def person(read: Callable[[str], str] | None = None) -> Model:
    """Return a person as a model: shows what the other side wrote and reads a line, in the notebook or the terminal.

    read: takes what is shown and returns the line; by default `input`. Typing happens beside the other calls. A line
    that is empty counts as no reply; the end of the input ends the conversation; Ctrl-C takes effect at the next Enter.
    """

    async def type_(messages: list[dict], **_) -> Response:
        heard = messages[-1]["content"]
        try:
            line = await asyncio.to_thread(read or input, f"\n{heard}\n\nyou> ")
        except EOFError:
            return Response(status="error", error="the input ended")
        except Exception as error:
            if type(error).__name__ != "StdinNotImplementedError":  # of ipykernel: papermill, nbval, nbconvert
                raise
            raise InputError(
                "A person is to type, and nobody can here; open the notebook in JupyterLab or use the terminal."
            ) from None
        return Response(line, "ok" if line.strip() else "empty")

    return from_callable(type_, "person", "Person at the keyboard")
