"""Conversations as data: who said what, the exchanges that a jury judges, and files of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from selfeval.errors import InputError
from selfeval.reading import thinking
from selfeval.records.tables import (
    Rows,
    are_files,
    files_of,
    is_file,
    rows_of,
    tell_several,
)
from selfeval.results import Records

SOURCES = ("model", "human")
# roles of chat messages that nobody says
UNSPOKEN = ("system", "developer", "tool")


@dataclass(frozen=True)
class Turn:
    """One message.

    status: `ok`, or how the model's reply ended (`empty`, `error`, `length`, `refusal`,
    `filtered`). more: what is known besides, e.g. the reply's usage, latency and cost, or a
    person's timestamp.
    """

    speaker: str
    text: str
    status: str = "ok"
    more: dict = field(default_factory=dict)

    def to_dict(self) -> dict:
        """Return the turn as it stands in a file."""
        return {"speaker": self.speaker, "text": self.text, "status": self.status} | self.more


class Exchange(NamedTuple):
    """A question and its answer; turn counts from 1.

    The answer is "" where none came, and status says why.
    """

    turn: int
    question: str
    answer: str
    status: str = "ok"


@dataclass(frozen=True)
class Conversation:
    """A conversation and who is judged in it.

    agent: the label of the speaker under judgement. source: what that speaker is, one of `SOURCES`.
    status: `ok`, or how the reply ended after which the conversation could not go on. meta:
    `agent_model`, `interrogator_model`, `persona`, `strategy`, `seed`, `pair` (the human
    conversation that it is matched with), and anything else that a file says about it.
    """

    conversation_id: str
    turns: list[Turn]
    source: str = "model"
    agent: str = "agent"
    status: str = "ok"
    meta: dict = field(default_factory=dict)

    @property
    def words(self) -> str:
        """All that was said in it."""
        return "\n".join(turn.text for turn in self.turns)

    def exchanges(self) -> list[Exchange]:
        """Return what was asked and answered, turn by turn.

        Speakers are read, not assumed to alternate: messages in a row of one side are joined by
        line breaks, and all speakers but the agent ask. An agent who speaks first answers the
        question "". A question that nobody answered is no exchange.
        """
        answered = []
        question = ""
        for is_answer, group in groupby(self.turns, lambda turn: turn.speaker == self.agent):
            turns = list(group)
            text = "\n".join(turn.text for turn in turns if turn.text.strip())
            if is_answer:
                number = len(answered) + 1
                answered.append(Exchange(number, question, text, turns[-1].status))
            question = text
        return answered

    def context(self, turn: int) -> list[Exchange]:
        """Return the exchanges up to a turn, itself the last, as a judge of that turn sees them.

        They are the conversation's own, except in forced context (`conversation.forced_context`):
        there a turn says what the person had answered (`instead_of`), and what was asked next
        followed from that.
        """
        shown = self.exchanges()[:turn]
        turns_of_agent = [turn for turn in self.turns if turn.speaker == self.agent]
        by_person: list[Any] = [turn.more.get("instead_of") for turn in turns_of_agent]
        if any(by_person):
            for place, answer in enumerate(by_person[: len(shown) - 1]):
                shown[place] = shown[place]._replace(answer=answer, status="ok")
        return shown

    def first(self, exchanges: int) -> "Conversation":
        """Return the conversation up to so many exchanges; 0 means all of it."""
        answered = 0
        for place, (before, turn) in enumerate(pairwise(self.turns), 1):
            if before.speaker == self.agent and turn.speaker != self.agent:
                answered += 1
            if answered == exchanges > 0:
                return replace(self, turns=self.turns[:place], status="ok")
        return self

    @property
    def agent_model(self) -> str:
        """Return the id of the model that is judged; "human", or "" where a file does not say."""
        if self.source == "human":
            return "human"
        return str(self.meta.get("agent_model", ""))

    def to_dict(self) -> dict:
        """Return the conversation as a row of a file."""
        return {
            "conversation_id": self.conversation_id,
            "source": self.source,
            "agent": self.agent,
            "status": self.status,
            "turns": [turn.to_dict() for turn in self.turns],
            **self.meta,
        }


def judged_turns(scope: str, conversation: Conversation) -> list[int]:
    """Return the turns on which there is a verdict: those with an answer.

    With the scope `conversation` it is the last one, if there is an answer anywhere.
    """
    exchanges = conversation.exchanges()
    answered = [exchange.turn for exchange in exchanges if exchange.answer.strip()]
    if answered and scope == "conversation":
        return [len(exchanges)]
    return answered


def read_conversations(paths: Rows | Sequence[str | Path]) -> list[Conversation]:
    """Return the conversations of files or rows.

    Rows are {conversation_id, turns: [{speaker, text}], source}, or chats {messages: [{role,
    content}]}, whose assistant is a model under judgement. What has no `conversation_id` has
    its `id`, or is named by its file and number.

    A row may name its `agent`, the speaker under judgement; else it is the speaker called "agent",
    else the second one to speak. `source` is not guessed. Relative paths lie below `data/`. A
    conversation that is given twice counts once. Raises `InputError` naming file and row for what
    is not of this form.
    """
    rows = records_in("conversations", paths)
    return distinct(conversation_of(where, row) for where, row in rows)


def together(*groups: Iterable[Conversation]) -> list[Conversation]:
    """Return the conversations of all groups, equal ones once.

    Raises `InputError` where there is none, or where two differ and share an id.
    """
    conversations = distinct(chain(*groups))
    if not conversations:
        ways = "name an `interrogator`, a number of `people`, or files in `transcripts`"
        raise InputError(f"There is no conversation: {ways}.")
    return conversations


def distinct(conversations: Iterable[Conversation]) -> list[Conversation]:
    """Return conversations once each; `InputError` where two differ and share an id."""
    by_id: dict[str, Conversation] = {}
    for conversation in conversations:
        name = conversation.conversation_id
        if by_id.setdefault(name, conversation) != conversation:
            raise InputError(f"Two conversations differ and have the `conversation_id` {name!r}.")
    return list(by_id.values())


def exchanges(conversations: Rows) -> Records:
    """Return the questions of conversations with their answers, one row each.

    conversations: a frame, rows or files. Columns: conversation_id, `chat` (what a chat between
    people and its twin share), source, agent (the model that answers, or "human"), turn (from 1),
    question, answer, status.
    """
    columns = ["conversation_id", "chat", "source", "agent", "turn", "question", "answer", "status"]
    rows = []
    for conversation in read_conversations(conversations):
        name = conversation.conversation_id
        chat = conversation.meta.get("pair") or name
        about = (name, chat, conversation.source, conversation.agent_model)
        rows += [(*about, *exchange) for exchange in conversation.exchanges()]
    return Records(rows, columns=columns).astype({"turn": int})


# files and rows


def records_in(kind: str, paths: Rows | Sequence[str | Path]) -> Iterator[tuple[str, dict]]:
    """Yield where each record of files or rows stands, and the record with its name.

    A file holds JSON lines, one list, or one object over many lines.
    """
    if isinstance(paths, pd.DataFrame) and paths.empty:
        return
    if not are_files(paths):
        yield from _named(rows_of(paths), "record", "conversation")
        return
    files = files_named(kind, paths)
    named: Any = [paths] if is_file(paths) else paths
    tell_several(named, files)
    for path in files:
        yield from _named(rows_of(path), f"{path}, record", path.stem)


def _named(rows: list[dict], where: str, name: str) -> Iterator[tuple[str, dict]]:
    """Yield where each row stands, and the row; a verdict says itself what it is about."""
    for number, row in enumerate(rows, 1):
        if row.get("conversation_id") in (None, "") and "juror" not in row:
            given = row.get("id")
            if given is None:
                given = name if len(rows) == 1 else f"{name} {number}"
            row = row | {"conversation_id": given}
        yield f"{where} {number}", row


def files_named(kind: str, paths: Rows | Sequence[str | Path]) -> list[Path]:
    """Return the files that are named, or that are below folders that are named, each once."""
    names: Any = [paths] if is_file(paths) else paths
    files = chain.from_iterable(files_of(kind, name) for name in names)
    return list(dict.fromkeys(files))


def need(is_met: object, where: str, sentence: str) -> None:
    """Raise `InputError` with a sentence on a record, unless what it says is met."""
    if not is_met:
        raise InputError(f"{where}: {sentence}.")


def check_source(where: str, source) -> None:
    """Raise `InputError` unless a record says what the agent is."""
    known = f"`source` must be one of {', '.join(SOURCES)}, got {source!r:.80}"
    remedy = "it says who is on the agent's side; add it to the record"
    need(source in SOURCES, where, f"{known}: {remedy}")


def as_id(value) -> str:
    """Return an id or name as text, "" for null; a column with nulls makes 7.0 of 7."""
    if pd.isna(value) is True:
        return ""
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def conversation_of(where: str, row: dict) -> Conversation:
    """Return the conversation in a record that stands somewhere."""
    # a table has all columns in all rows
    row = {name: value for name, value in row.items() if value is not None}
    if "turns" not in row and isinstance(row.get("messages"), list):
        row = _row_of_chat(where, row)
    if "pair" in row:
        row["pair"] = as_id(row["pair"])
    turns = row.pop("turns", None)
    rule = "a conversation needs a list of `turns`, or of `messages`"
    need(isinstance(turns, list) and turns, where, rule)
    turns = [_turn(f"{where}, turn {number}", turn) for number, turn in enumerate(turns, 1)]
    name = as_id(row.pop("conversation_id"))
    source = row.pop("source", None)
    check_source(where, source)
    speakers = dict.fromkeys(turn.speaker for turn in turns)
    agent = _agent(where, row.pop("agent", None), list(speakers))
    status = str(row.pop("status", "ok"))
    return Conversation(name, turns, source, agent, status, row)


def _row_of_chat(where: str, row: dict) -> dict:
    """Return a row with `turns` for a chat; its assistant is the agent, and a model."""
    turns = []
    for message in row.pop("messages"):
        need(isinstance(message, Mapping), where, f"a message needs a `role`, got {message!r:.80}")
        fields = dict(message)
        role = fields.pop("role", None)
        if role not in UNSPOKEN:
            fields["speaker"] = "agent" if role == "assistant" else role
            fields["text"] = fields.pop("content", None)
            turns.append(fields)
    return {"source": "model", **row, "turns": turns}


def _turn(where: str, turn) -> Turn:
    """Return a turn of a record."""
    fields = dict(turn) if isinstance(turn, Mapping) else {}
    speaker = fields.pop("speaker", None)
    text = fields.pop("text", None)
    need(isinstance(text, str), where, f"a turn needs a `text`, got {turn!r:.200}")
    is_name = isinstance(speaker, str) and speaker.strip()
    need(is_name, where, f"a turn needs a `speaker`, got {speaker!r}")
    thought, text = thinking.split(text)
    if thought:
        fields.setdefault("reasoning", thought)
    return Turn(speaker, text, str(fields.pop("status", "ok")), fields)


def _agent(where: str, named: str | None, speakers: list[str]) -> str:
    """Return the speaker under judgement: the one named, else "agent", else the second of two."""
    agent = named or "agent"
    if not named and len(speakers) == 2 and "agent" not in speakers:
        agent = speakers[1]
    ended_before_first_answer = named and len(speakers) == 1
    rule = f"`agent` must name the speaker under judgement ({', '.join(speakers)})"
    need(agent in speakers or ended_before_first_answer, where, f"{rule}, got {named!r}")
    return agent
