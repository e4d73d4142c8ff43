"""Conversations as data: who said what, the exchanges that a jury judges, and the files that hold them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from selfeval.display import Rich
from selfeval.errors import InputError
from selfeval.records import data_path, read_jsonl, write_jsonl

SOURCES = ("model", "human")


@dataclass(frozen=True)
class Turn:
    """One message. status: `ok`, or how the model's reply ended (`empty`, `error`, `length`, `refusal`, `filtered`).

    more: what is known besides, e.g. the reply's usage, latency and cost, or a person's timestamp.
    """

    speaker: str
    text: str
    status: str = "ok"
    more: dict = field(default_factory=dict)

    def to_dict(self) -> dict:
        """Return the turn as it stands in a file."""
        return {"speaker": self.speaker, "text": self.text, "status": self.status} | self.more


class Exchange(NamedTuple):
    """A question and its answer; turn counts from 1. The answer is "" where none came, and status says why."""

    turn: int
    question: str
    answer: str
    status: str = "ok"


@dataclass(frozen=True)
class Conversation(Rich):
    """A conversation; `agent` is the label of the speaker under judgement, `source` what that speaker is.

    status: `ok`, or how the reply ended after which the conversation could not go on. meta: `agent_model`,
    `interrogator_model`, `persona`, `strategy`, `seed`, `pair` (the human conversation that it is matched with), and
    whatever else a file says about it.
    """

    conversation_id: str
    turns: list[Turn]
    source: str = "model"
    agent: str = "agent"
    status: str = "ok"
    meta: dict = field(default_factory=dict)

    def exchanges(self) -> list[Exchange]:
        """Return what was asked and answered, turn by turn.

        Speakers are read, not assumed to alternate: messages in a row of one side are joined by line breaks, and all
        speakers but the agent ask. An agent who speaks first answers the question "". A question that nobody answered
        is no exchange.
        """
        found, asked, answer = [], [], []

        def close() -> None:
            if answer:
                texts = [turn.text for turn in answer if turn.text.strip()]
                question = "\n".join(turn.text for turn in asked if turn.text.strip())
                found.append(Exchange(len(found) + 1, question, "\n".join(texts), answer[-1].status))

        for turn in self.turns:
            if turn.speaker == self.agent:
                answer.append(turn)
            elif answer:
                close()
                asked, answer = [turn], []
            else:
                asked.append(turn)
        close()
        return found

    def context(self, turn: int) -> list[Exchange]:
        """Return the exchanges up to a turn as a judge of that turn sees them, the turn itself last.

        They are the conversation's own, except in forced context (`humans.forced_context`): there a turn says what the
        person had answered (`instead_of`), and what was asked next followed from that.
        """
        said = [turn.more.get("instead_of") for turn in self.turns if turn.speaker == self.agent]
        forced = any(said)
        found = self.exchanges()[:turn]
        if forced:
            found[:-1] = [e._replace(answer=s, status="ok") for e, s in zip(found[:-1], said, strict=False)]
        return found

    @property
    def agent_model(self) -> str:
        """Return the id of the model that is judged, "human" for a person, "" where a file does not say."""
        return "human" if self.source == "human" else str(self.meta.get("agent_model", ""))

    def to_dict(self) -> dict:
        """Return the conversation as a row of a file."""
        return {
            "conversation_id": self.conversation_id,
            "source": self.source,
            "agent": self.agent,
            "status": self.status,
            "turns": [turn.to_dict() for turn in self.turns],
        } | self.meta


def write_conversations(path: str | Path, conversations: Iterable[Conversation]) -> None:
    """Write conversations as JSON lines, whole or not at all; a relative path lies below `data/`."""
    write_jsonl(data_path(path), [conversation.to_dict() for conversation in conversations])


def read_conversations(paths: str | Path | Sequence[str | Path]) -> list[Conversation]:
    """Return the conversations of files: JSON lines of {conversation_id, turns: [{speaker, text}], source}, or an
    output file of `selfeval roleplay` or `selfeval compare` (also a published one), whose conversation is named after
    the file.

    A row may name its `agent`, the speaker under judgement; else it is the speaker called "agent", else the second one
    to speak. Relative paths lie below `data/`. Raises `InputError` naming file and row for what is not of this form.
    """
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    found: dict[str, Conversation] = {}
    for path in dict.fromkeys(data_path(path).resolve() for path in paths):
        for number, row in enumerate(_rows(path), 1):
            conversation = _conversation(f"{path}, record {number}", row)
            if conversation.conversation_id in found:
                raise InputError(
                    f"{path}, record {number}: the `conversation_id` {conversation.conversation_id!r} exists already; "
                    "every conversation needs its own."
                )
            found[conversation.conversation_id] = conversation
    return list(found.values())


def _rows(path: Path) -> list[dict]:
    if path.suffix == ".json":
        try:
            content = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
        except ValueError as error:
            raise InputError(f"{path} is not valid JSON: {error}.") from error
        if isinstance(content, dict):
            return [content if "conversation_id" in content else _published(path, content)]
    return read_jsonl(path)


def _published(path: Path, content: dict) -> dict:
    """Return an output file of the role-play or the comparison as a row."""
    exchanges = content.get("interaction", content.get("turns"))
    if not isinstance(exchanges, list) or not all(
        isinstance(row, dict) and isinstance(row.get("question"), str) and isinstance(row.get("answer"), str | None)
        for row in exchanges
    ):
        raise InputError(f"{path} has no `interaction` and no `turns` with a `question` and an `answer` each.")
    turns = []
    for row in exchanges:
        turns.append({"speaker": "interrogator", "text": row["question"]})
        turns.append({"speaker": "agent", "text": row["answer"] or "", "status": row.get("status", "ok")})
    config = content.get("config") if isinstance(content.get("config"), dict) else content
    names = {"agent_model": "role_play_llm_model", "interrogator_model": "interrogator_llm_model"}
    meta = {ours: config[theirs] for ours, theirs in names.items() if theirs in config}
    return {"conversation_id": content.get("conversation", path.stem), "source": "model", "turns": turns} | meta


def _conversation(where: str, row: dict) -> Conversation:
    row = dict(row)
    conversation_id, turns = row.pop("conversation_id", None), row.pop("turns", None)
    if isinstance(conversation_id, bool) or not isinstance(conversation_id, str | int) or conversation_id == "":
        raise InputError(f"{where}: a conversation needs a `conversation_id`, got {conversation_id!r}.")
    if not isinstance(turns, list) or not turns:
        raise InputError(f"{where}: a conversation needs a list of `turns` that is not empty.")
    turns = [_turn(f"{where}, turn {number}", turn) for number, turn in enumerate(turns, 1)]
    source = row.pop("source", "model")
    if source not in SOURCES:
        raise InputError(f"{where}: `source` must be one of {', '.join(SOURCES)}, got {source!r}.")
    agent = _agent(where, row.pop("agent", None), list(dict.fromkeys(turn.speaker for turn in turns)))
    return Conversation(str(conversation_id), turns, source, agent, str(row.pop("status", "ok")), row)


def _turn(where: str, turn) -> Turn:
    if not isinstance(turn, dict) or not isinstance(turn.get("text"), str):
        raise InputError(f"{where}: a turn needs a `text`, got {turn!r}.")
    turn = dict(turn)
    speaker = turn.pop("speaker", None)
    if not isinstance(speaker, str) or not speaker.strip():
        raise InputError(f"{where}: a turn needs a `speaker`, got {speaker!r}.")
    return Turn(speaker, turn.pop("text"), str(turn.pop("status", "ok")), turn)


def _agent(where: str, named: str | None, speakers: list[str]) -> str:
    if named is not None and named not in speakers and len(speakers) > 1:
        raise InputError(f"{where}: the `agent` {named!r} says nothing; the speakers are {', '.join(speakers)}.")
    if named is not None or "agent" in speakers:
        return named or "agent"
    if len(speakers) != 2:
        raise InputError(
            f"{where}: {len(speakers)} speakers ({', '.join(speakers)}); name the one under judgement in `agent`."
        )
    return speakers[1]
