"""Conversations as data: who said what, the exchanges that a jury judges, and the files that hold them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from selfeval.errors import InputError
from selfeval.records import data_path, read_jsonl, write_jsonl
from selfeval.roleplay.panel import numbered, same_family

SOURCES = ("model", "human")
TYPED = "person"  # what outputs call somebody who types
UNKNOWN = ("reply", "repaired", "usage", "cost", "latency", "request_id", "served_model", "peer_mean")


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
class Conversation:
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

    def first(self, exchanges: int) -> "Conversation":
        """Return the conversation up to so many exchanges; 0 means all of it."""
        answered = 0
        for place, (before, turn) in enumerate(pairwise(self.turns), 1):
            answered += before.speaker == self.agent != turn.speaker
            if answered == exchanges > 0:
                return replace(self, turns=self.turns[:place], status="ok")
        return self

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
    """Return the conversations of files: rows {conversation_id, turns: [{speaker, text}], source}, or output files of
    `selfeval roleplay` and `selfeval compare`, also published ones, whose conversation is named after the file.

    A row may name its `agent`, the speaker under judgement; else it is the speaker called "agent", else the second one
    to speak. `source` is not guessed: an output file says it by its `role_play_llm_model` (a person is called "person"
    there), any other row by itself. Relative paths lie below `data/`. A conversation that is given twice counts once.
    Raises `InputError` naming file and row for what is not of this form.
    """
    found: dict[str, Conversation] = {}
    for where, row in _records(paths):
        _add(found, _conversation(where, row), f"{where}: the")
    return list(found.values())


def together(*groups: Iterable[Conversation]) -> list[Conversation]:
    """Return the conversations of all groups, equal ones once.

    Raises `InputError` where there is none, or where two differ and share an id.
    """
    found: dict[str, Conversation] = {}
    for one in (one for group in groups for one in group):
        _add(found, one, "The")
    if not found:
        raise InputError("There is no conversation: name files in `transcripts`, or have some held.")
    return list(found.values())


def _add(found: dict[str, Conversation], one: Conversation, the: str) -> None:
    if found.setdefault(one.conversation_id, one) != one:
        raise InputError(
            f"{the} `conversation_id` {one.conversation_id!r} exists already, with other content; every conversation "
            "needs its own."
        )


def read_verdicts(paths: str | Path | Sequence[str | Path]) -> tuple[list[dict], list[Conversation]]:
    """Return the statements of files, as in `jury`, and the conversations that stand beside them in output files.

    A file is a `verdicts.jsonl`, or an output of `selfeval roleplay` or `selfeval compare`. A published one says the
    jurors' last scores alone: the position is then the place on the list, the round of a debate is `debate_rounds` (2,
    the published default, where the file does not say), and everything else that is not known is null. Statements that
    are given twice count once. Raises `InputError` naming file and row for what is not of this form.
    """
    statements: list[dict] = []
    conversations: dict[str, Conversation] = {}
    for where, row in _records(paths):
        if "juror" in row:
            statements.append(_statement(where, row))
            continue
        if not _is_output(row):
            raise InputError(
                f"{where}: a verdict needs a `juror` and a `score`; this is neither one nor an output of `selfeval "
                "roleplay` or `selfeval compare`."
            )
        conversation = _conversation(where, row)
        _add(conversations, conversation, f"{where}: the")
        statements += _scored(where, row, conversation)
    equal = {json.dumps(row, sort_keys=True): row for row in statements}
    return list(equal.values()), list(conversations.values())


def _records(paths: str | Path | Sequence[str | Path]) -> Iterator[tuple[str, dict]]:
    """Yield where each record of the files stands, and the record; an output file that has no id is named by its file.

    A file holds JSON lines, one list, or one object over many lines, as the commands write it.
    """
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    for path in dict.fromkeys(data_path(path).resolve() for path in paths):
        rows = _rows(path)
        for number, row in enumerate(rows, 1):
            named = {"conversation_id": path.stem if len(rows) == 1 else f"{path.stem} {number}"}
            unnamed = _is_output(row) and row.get("conversation_id") is None
            yield f"{path}, record {number}", row | named if unnamed else row


def _rows(path: Path) -> list[dict]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        if path.suffix == ".json" and isinstance(error, json.JSONDecodeError):
            raise InputError(f"{path} is not valid JSON: {error}.") from error
        return read_jsonl(path)  # lines, or the sentence that says what is wrong with the file
    return [content] if isinstance(content, dict) else read_jsonl(path)


def _is_output(row: dict) -> bool:
    """Tell whether a record is an output of `selfeval roleplay` or `selfeval compare`, also a published one."""
    turns = row.get("turns")
    return "interaction" in row or (
        isinstance(turns, list) and any("question" in t for t in turns if isinstance(t, dict))
    )


def _config(output: dict) -> dict:
    """Return what an output says of its set-up: the comparison in an object of its own, the role-play beside it."""
    return output["config"] if isinstance(output.get("config"), dict) else output


def _judged(where: str, output: dict) -> list[dict]:
    """Return the turns of an output: question, answer, and what the jury made of it."""
    turns = output.get("interaction", output.get("turns"))
    if not (isinstance(turns, list) and turns) or not all(
        isinstance(row, dict) and isinstance(row.get("question"), str) and isinstance(row.get("answer"), str | None)
        for row in turns
    ):
        raise InputError(f"{where}: `interaction`, or `turns`, needs turns with a `question` and an `answer` each.")
    return turns


def _as_row(where: str, output: dict) -> dict:
    """Return the conversation of an output as a row of its own."""
    config, turns = _config(output), output.get("messages")
    if not turns:
        turns = [
            {"speaker": speaker, "text": row[name] or ""} | ({"status": row["status"]} if "status" in row and k else {})
            for row in _judged(where, output)
            for k, (speaker, name) in enumerate((("interrogator", "question"), ("agent", "answer")))
        ]
    names = {"agent_model": "role_play_llm_model", "interrogator_model": "interrogator_llm_model",
             "persona": "agent_persona", "strategy": "strategy", "seed": "seed"}  # fmt: skip
    meta = {ours: config[theirs] for ours, theirs in names.items() if theirs in config}
    meta |= {"sample": 0} if "messages" in output else {}
    agent = config.get("role_play_llm_model")
    source = output.get("source", agent and ("human" if agent == TYPED else "model"))
    known = {"conversation_id": output["conversation_id"], "source": source, "turns": turns, "agent": "agent"}
    return known | {"status": output.get("status", "ok")} | meta


def _statement(where: str, row: dict) -> dict:
    """Return a row of verdicts with all fields; what it does not say is null, or empty."""
    for name in ("conversation_id", "turn", "arm", "juror", "score"):
        if name not in row or (row[name] is None and name != "score"):
            raise InputError(
                f"{where}: a verdict needs a `{name}`, got {row.get(name)!r}; data/README.md has the fields."
            )
    _check_source(where, row.get("source"))
    score = _score(where, row["score"])
    known = {"pair": None, "scope": "turn", "role": "juror", "round": 1, "blind": False, "position": None,
             "persona": None, "agent": "", "same_family": False, "status": "no_answer" if score is None else "ok",
             "dimensions": {}, "statement": "", "repair_reply": None} | dict.fromkeys(UNKNOWN)  # fmt: skip
    return known | row | {"conversation_id": str(row["conversation_id"]), "score": score}


def _scored(where: str, output: dict, conversation: Conversation) -> Iterator[dict]:
    """Yield the statements of an output; of a published one what its scores say."""
    config = _config(output)
    of = {"conversation_id": conversation.conversation_id, "source": conversation.source}
    of |= {"agent": conversation.agent_model}
    for number, turn in enumerate(_judged(where, output), 1):
        for arm, scored in (("independent", turn.get("old_eval")), ("debate", turn.get("new_eval", turn))):
            if not isinstance(scored, dict):
                continue
            if isinstance(scored.get("rounds"), list):  # every statement: our own
                yield from (_statement(where, row | of) for rows in scored["rounds"] for row in rows)
                continue
            jury, scores = _jury(where, config, scored)
            rounds = scored.get("debate_rounds", config.get("debate_rounds", 2)) if arm == "debate" else 1
            for place, (juror, name, score) in enumerate(zip(jury, numbered(jury), scores, strict=True), 1):
                at = {"turn": number, "arm": arm, "round": rounds, "position": place, "juror": name, "score": score}
                yield _statement(where, of | at | {"same_family": same_family(juror, conversation.agent_model)})


def _jury(where: str, config: dict, scored: dict) -> tuple[list[str], list]:
    """Return who gave the last scores, a juror each or the only one all of them, and the scores."""
    jury, scores = (config.get("jury", config.get("jury_llm_models")),
                    scored.get("jury_scores", scored.get("per_juror_scores", [])))  # fmt: skip
    jury = [jury] if isinstance(jury, str) else jury
    if not isinstance(scores, list) or not isinstance(jury, list) or not all(isinstance(name, str) for name in jury):
        raise InputError(
            f"{where}: the scores and the names in `jury` must be lists, got {scores!r:.80}, {jury!r:.80}."
        )
    if scores and len(jury) not in (1, len(scores)):
        raise InputError(f"{where}: {len(scores)} scores need as many names in `jury`, or one, got {len(jury)}.")
    return (jury if len(jury) == len(scores) else jury[:1] * len(scores)), scores


def _score(where: str, value) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value <= 1):
        raise InputError(f"{where}: a score must be a number from 0 to 1 or null, got {value!r:.80}.")
    return value


def _check_source(where: str, source) -> None:
    if source not in SOURCES:
        raise InputError(
            f"{where}: `source` must be one of {', '.join(SOURCES)}, got {source!r:.80}: it says who is on the agent's "
            "side, which decides what the jury should have said; add it to the record."
        )


def _conversation(where: str, row: dict) -> Conversation:
    if "juror" in row:
        raise InputError(f"{where}: this is a verdict and no conversation; `06_jury` takes its file in `verdicts`.")
    row = _as_row(where, row) if _is_output(row) else dict(row)
    if "turns" not in row:
        raise InputError(
            f"{where}: no `turns` and no `interaction` among {', '.join(row) or 'its fields'}; a conversation needs "
            "`conversation_id`, `turns` and `source` (data/README.md), or is an output of `selfeval roleplay`."
        )
    conversation_id, turns = row.pop("conversation_id", None), row.pop("turns", None)
    if isinstance(conversation_id, bool) or not isinstance(conversation_id, str | int) or conversation_id == "":
        raise InputError(f"{where}: a conversation needs a `conversation_id`, got {conversation_id!r}.")
    if not isinstance(turns, list) or not turns:
        raise InputError(f"{where}: a conversation needs a list of `turns` that is not empty.")
    turns = [_turn(f"{where}, turn {number}", turn) for number, turn in enumerate(turns, 1)]
    source = row.pop("source", None)
    _check_source(where, source)
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
