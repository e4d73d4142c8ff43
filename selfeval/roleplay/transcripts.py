"""Conversations as data: who said what, the exchanges that a jury judges, their files, and how they are shown."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from selfeval.errors import InputError
from selfeval.reading import thinking
from selfeval.records.tables import (
    Rows,
    are_files,
    data_path,
    files_of,
    is_file,
    rows_of,
    tell_several,
)
from selfeval.results import Card, Records, display
from selfeval.roleplay import roles
from selfeval.roleplay.scoring import decide

SOURCES = ("model", "human")
TYPED = "person"  # what outputs call somebody who types
PUBLISHED = {  # what a conversation's meta calls the fields of an output
    "agent_model": "role_play_llm_model",
    "interrogator_model": "interrogator_llm_model",
    "persona": "agent_persona",
    "strategy": "strategy",
    "seed": "seed",
}
UNKNOWN = (
    "reply",
    "repaired",
    "usage",
    "cost",
    "latency",
    "request_id",
    "served_model",
    "peer_mean",
    "asked_again",
)


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

    def exchanges(self) -> list[Exchange]:
        """Return what was asked and answered, turn by turn.

        Speakers are read, not assumed to alternate: messages in a row of one side are joined by
        line breaks, and all speakers but the agent ask. An agent who speaks first answers the
        question "". A question that nobody answered is no exchange.
        """
        found, question = [], ""
        for is_answer, turns in groupby(self.turns, lambda turn: turn.speaker == self.agent):
            *_, last = turns = list(turns)
            text = "\n".join(turn.text for turn in turns if turn.text.strip())
            if is_answer:
                found.append(Exchange(len(found) + 1, question, text, last.status))
            question = text
        return found

    def context(self, turn: int) -> list[Exchange]:
        """Return the exchanges up to a turn as a judge of that turn sees them, the turn itself last.

        They are the conversation's own, except in forced context (`conversation.forced_context`):
        there a turn says what the person had answered (`instead_of`), and what was asked next
        followed from that.
        """
        said = [turn.more.get("instead_of") for turn in self.turns if turn.speaker == self.agent]
        found = self.exchanges()[:turn]
        if any(said):
            found[:-1] = [
                e._replace(answer=s, status="ok") for e, s in zip(found[:-1], said, strict=False)
            ]
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
        row = {
            name: getattr(self, name) for name in ("conversation_id", "source", "agent", "status")
        }
        return row | {"turns": [turn.to_dict() for turn in self.turns]} | self.meta


def read_conversations(paths: Rows | Sequence[str | Path]) -> list[Conversation]:
    """Return the conversations of files: rows {conversation_id, turns: [{speaker, text}], source}, or output files of
    `selfeval roleplay` and `selfeval compare`, also published ones, whose conversation is named
    after the file. Turns may also be `messages`, with `role` for speaker, and `content` for text: a
    text, or a list of parts with text.

    A row may name its `agent`, the speaker under judgement; else it is the speaker called "agent",
    else the second one to speak. `source` is not guessed: an output file says it by its
    `role_play_llm_model` (a person is called "person" there), any other row by itself. Relative
    paths lie below `data/`. A conversation that is given twice counts once. Raises `InputError`
    naming file and row for what is not of this form.
    """
    return _distinct(_conversation(where, row) for where, row in _records("conversations", paths))


def _from_messages(row: dict, field: str) -> dict:
    """Return a row with `turns` for one with chat messages in a field; what the system said is no turn.

    The assistant is the agent under judgement: a model, unless `source` or `author` says that it is
    a person.
    """
    said = [one for one in row[field] if one.get("role") != "system"]
    source = "human" if row.get("author") == "human" else "model"
    more = {name: value for name, value in row.items() if name != field}
    if more.get("agent") == "assistant":
        more["agent"] = "agent"
    return {"source": source} | more | {"turns": said}


def _messages_in(row: Mapping) -> str:
    """Return which field of a row has chat messages: `messages`, or `turns` that have a role; "" for none."""
    if _are_messages(row.get("messages"), {"role", "speaker"}):
        return "messages"
    return "turns" if _are_messages(row.get("turns"), {"role"}) else ""


def _are_messages(given, who: set[str]) -> bool:
    is_list = isinstance(given, list | tuple) and len(given) > 0
    return is_list and all(_is_said(one, who) for one in given)


def _is_said(given, who: set[str]) -> bool:
    """Tell whether an object is one message: who said it, and what."""
    return (
        isinstance(given, Mapping)
        and not who.isdisjoint(given)
        and not {"content", "text"}.isdisjoint(given)
    )


def together(*groups: Iterable[Conversation]) -> list[Conversation]:
    """Return the conversations of all groups, equal ones once.

    Raises `InputError` where there is none, or where two differ and share an id.
    """
    found = _distinct(chain(*groups))
    if not found:
        raise InputError("There is no conversation: name files in `transcripts`, or ask for some.")
    return found


def _distinct(conversations: Iterable[Conversation]) -> list[Conversation]:
    found: dict[str, Conversation] = {}
    for one in conversations:
        if found.setdefault(one.conversation_id, one) != one:
            raise InputError(
                f"Two conversations differ and have the `conversation_id` {one.conversation_id!r}."
            )
    return list(found.values())


def read_verdicts(paths: Rows | Sequence[str | Path]) -> tuple[list[dict], list[Conversation]]:
    """Return the statements of files, as in `jury`, and the conversations beside them in output files.

    A file is a `verdicts.jsonl`, or an output of `selfeval roleplay` or `selfeval compare`. A
    published one says the jurors' last scores alone: the position is then the place on the list,
    the round of a debate is `debate_rounds` (2, the published default, where the file does not
    say), and everything else that is not known is null. Statements that are given twice count once.
    Raises `InputError` naming file and row for what is not of this form.
    """
    statements, conversations = [], []
    for where, row in _records("verdicts", paths):
        if "juror" in row:
            statements.append(_statement(where, row))
        else:
            _need(
                _is_output(row),
                where,
                "this is neither a verdict, which has a `juror`, nor an output of a command",
            )
            conversations.append(_conversation(where, row))
            statements += _statements_of(where, row, conversations[-1])
    equal = {json.dumps(row, sort_keys=True): row for row in statements}
    return list(equal.values()), _distinct(conversations)


def read_judgements(
    verdicts: Rows,
    conversations: Rows = (),
    *,
    controls: Rows = (),
    limit: int = 0,
    max_turns: int = 0,
) -> tuple[list[Conversation], list[dict]]:
    """Return verdicts that exist, in files, rows or a frame, as (conversations, statements).

    The conversations are those that the statements are about, as far as they are found in the
    verdicts' files, beside them, or in `conversations` or `controls`, in this order. limit: only
    the first `limit` of them, and all of `controls`. max_turns: only the first `max_turns` answers
    of each; 0 = all.
    """
    statements, found = read_verdicts(verdicts)
    if not statements:
        raise InputError(
            "There are no verdicts to analyse: give what `judge` returned, or its file verdicts.jsonl."
        )
    files = _files("verdicts", verdicts) if are_files(verdicts) else []
    beside = dict.fromkeys(file.with_name("conversations.jsonl") for file in files)
    whole = read_conversations(controls)
    more = (
        read_conversations([file for file in beside if file.is_file()])
        + read_conversations(conversations)
        + whole
    )
    texts = {one.conversation_id: one for one in reversed([*found, *more])}
    judged = list(dict.fromkeys(row["conversation_id"] for row in statements))
    stay = {one.conversation_id for one in whole}
    cut = [name for name in judged if name not in stay][limit or len(judged) :]
    judged = [name for name in judged if name not in cut]
    kept = [
        r
        for r in statements
        if r["conversation_id"] in judged and r["turn"] <= (max_turns or r["turn"])
    ]
    if not any(row["role"] == "juror" for row in kept):
        raise InputError(
            "There is no juror's verdict on the answers to analyse; raise `limit` and `max_turns`."
        )
    return [texts[name].first(max_turns) for name in judged if name in texts], kept


def check_not_read(out: str | Path, conversations: Rows, controls: Rows, verdicts: Rows) -> None:
    """Raise `InputError` where `out` is a folder that one of these files is in, since files are written there."""
    sources = [
        ("conversations", conversations),
        ("conversations", controls),
        ("verdicts", verdicts),
    ]
    files = [file for kind, source in sources if are_files(source) for file in _files(kind, source)]
    if out and data_path(out).resolve() in [file.parent for file in files]:
        raise InputError(
            f"`out` {str(out)!r} is a folder that is read here; choose another one for `out`."
        )


def _need(met: object, where: str, sentence: str) -> None:
    if not met:
        raise InputError(f"{where}: {sentence}.")


def _files(kind: str, paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files that are named, or that are below folders that are named, each once."""
    named = [paths] if is_file(paths) else paths
    return [*dict.fromkeys(file for path in named for file in files_of(kind, path))]


def _records(kind: str, paths: Rows | Sequence[str | Path]) -> Iterator[tuple[str, dict]]:
    """Yield where each record of the files stands, and the record; an output file that has no id is named by its file.

    A file holds JSON lines, one list, or one object over many lines, as the commands write it. Rows
    are records, too.
    """
    if isinstance(paths, pd.DataFrame) and paths.empty:
        return
    if not are_files(paths):
        for number, row in enumerate(rows_of(paths), 1):
            named = {"conversation_id": row.get("id", f"conversation {number}")}
            yield f"record {number}", named | row if _messages_in(row) else row
        return
    files = _files(kind, paths)
    tell_several([paths] if is_file(paths) else paths, files)
    for path in files:
        rows = rows_of(path)
        for number, row in enumerate(rows, 1):
            named = {"conversation_id": path.stem if len(rows) == 1 else f"{path.stem} {number}"}
            told = _is_output(row) or _messages_in(row)
            unnamed = told and row.get("conversation_id") is None
            yield f"{path}, record {number}", row | named if unnamed else row


# conversations --------------------------------------------------------------------------------------------------------


def _is_output(row: dict) -> bool:
    """Tell whether a record is an output of `selfeval roleplay` or `selfeval compare`, also a published one."""
    return row.get("interaction") is not None or isinstance(row.get("config"), dict)


def _conversation(where: str, row: dict) -> Conversation:
    row = _as_row(where, row) if _is_output(row) else row
    field = _messages_in(row)
    row = _from_messages(row, field) if field else row
    row = {
        name: value for name, value in row.items() if value is not None
    }  # in a table, what others have
    row |= {"pair": _as_id(row["pair"])} if "pair" in row else {}
    name, turns, source = (row.pop(field, None) for field in ("conversation_id", "turns", "source"))
    _need(
        isinstance(turns, list) and turns,
        where,
        "a conversation needs a list of `turns`; see data/README.md",
    )
    _need(
        type(name) in (str, int) and name != "",
        where,
        f"a conversation needs a `conversation_id`, got {name!r}",
    )
    turns = [_turn(f"{where}, turn {number}", turn) for number, turn in enumerate(turns, 1)]
    _check_source(where, source)
    agent = _agent(
        where, row.pop("agent", None), list(dict.fromkeys(turn.speaker for turn in turns))
    )
    return Conversation(str(name), turns, source, agent, str(row.pop("status", "ok")), row)


def _turn(where: str, turn) -> Turn:
    given = dict(turn) if isinstance(turn, dict) else {}
    if "role" in given and "speaker" not in given:
        role = given.pop("role")
        given["speaker"] = "agent" if role == "assistant" else role
    if "content" in given and "text" not in given:
        given["text"] = given.pop("content")
    speaker, (thought, text) = given.pop("speaker", None), _text_of_parts(given.pop("text", None))
    _need(isinstance(text, str), where, f"a turn needs a `text`, got {turn!r}")
    _need(
        isinstance(speaker, str) and speaker.strip(),
        where,
        f"a turn needs a `speaker`, got {speaker!r}",
    )
    marked, text = thinking.split(text)
    if thought or marked:
        given.setdefault("reasoning", thought or marked)
    return Turn(speaker, text, str(given.pop("status", "ok")), given)


def _text_of_parts(text) -> tuple:
    """Return (thinking, what is said) of a list of parts that are text or thinking, else the value."""
    if not isinstance(text, list) or not text:
        return None, text
    if not all(any(thinking.of_parts(part)) or part == "" for part in text):
        return None, text
    return thinking.of_parts(text, between="\n")


def _agent(where: str, named: str | None, speakers: list[str]) -> str:
    """Return the speaker under judgement: the one named, else "agent", else the second of two."""
    second = speakers[1] if len(speakers) == 2 and "agent" not in speakers else "agent"
    agent = named or second
    speaks = agent in speakers or (
        named and len(speakers) == 1
    )  # in a conversation that ended before the first answer
    _need(
        speaks,
        where,
        f"`agent` must name the speaker under judgement ({', '.join(speakers)}), got {named!r}",
    )
    return agent


def _check_source(where: str, source) -> None:
    known = f"`source` must be one of {', '.join(SOURCES)}, got {source!r:.80}"
    _need(
        source in SOURCES,
        where,
        f"{known}: it says who is on the agent's side; add it to the record",
    )


def _config(output: dict) -> dict:
    """Return what an output says of its set-up: the comparison in an object of its own, the role-play beside it."""
    return output["config"] if isinstance(output.get("config"), dict) else output


def _as_row(where: str, output: dict) -> dict:
    """Return the conversation of an output as a row of its own."""
    config, turns = _config(output), []
    for row in _rows_of(where, output):
        turns.append({"speaker": "interrogator", "text": row["question"]})
        turns.append(
            {"speaker": "agent", "text": row["answer"] or "", "status": row.get("status", "ok")}
        )
    meta = {ours: config[theirs] for ours, theirs in PUBLISHED.items() if theirs in config}
    agent = meta.get("agent_model")
    source = output.get("source", agent and ("human" if agent == TYPED else "model"))
    known = {
        "conversation_id": output["conversation_id"],
        "source": source,
        "turns": output.get("messages") or turns,
    }
    meta |= {"sample": 0} if "messages" in output else {}
    return known | {"agent": "agent", "status": output.get("status", "ok")} | meta


def _rows_of(where: str, output: dict) -> list[dict]:
    """Return the turns of an output: question, answer, and what the jury made of it."""
    turns = output.get("interaction", output.get("turns"))
    rows = (
        [row if isinstance(row, dict) else {} for row in turns] if isinstance(turns, list) else []
    )
    said = all(
        isinstance(row.get("question"), str) and isinstance(row.get("answer", 0), str | None)
        for row in rows
    )
    _need(
        rows and said,
        where,
        "`interaction`, or `turns`, needs turns with a `question` and an `answer` each",
    )
    return rows


# verdicts -------------------------------------------------------------------------------------------------------------


def _statement(where: str, row: dict) -> dict:
    """Return a row of verdicts with all fields; what it does not say is null, or empty."""
    needed = ("conversation_id", "turn", "arm", "juror")
    given = "score" in row and all(row.get(name) is not None for name in needed)
    _need(
        given,
        where,
        f"a verdict needs `{'`, `'.join(needed)}` and `score`; data/README.md has the fields",
    )
    _check_source(where, row.get("source"))
    score = row["score"]
    valid = score is None or (type(score) in (int, float) and 0 <= score <= 1)
    _need(valid, where, f"a score must be a number from 0 to 1 or null, got {score!r:.80}")
    known = {"pair": None, "scope": "turn", "role": "juror", "round": 1, "blind": False, "position": None,
             "persona": None, "agent": "", "same_family": False, "status": "no_answer" if score is None else "ok",
             "dimensions": {}, "statement": "", "repair_reply": None} | dict.fromkeys(UNKNOWN)  # fmt: skip
    missing = {name: value for name, value in known.items() if row.get(name) is None}
    paired = {} if row.get("pair") is None else {"pair": _as_id(row["pair"])}
    return row | missing | {"conversation_id": str(row["conversation_id"])} | paired


def _as_id(value) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def _statements_of(where: str, output: dict, conversation: Conversation) -> Iterator[dict]:
    """Yield the statements of an output; of a published one what its scores say."""
    config, agent = _config(output), conversation.agent_model
    of = {
        "conversation_id": conversation.conversation_id,
        "source": conversation.source,
        "agent": agent,
    }
    for number, turn in enumerate(_rows_of(where, output), 1):
        arms = {"independent": turn.get("old_eval"), "debate": turn.get("new_eval", turn)}
        for arm, scored in arms.items():
            if not isinstance(scored, dict):
                continue
            if isinstance(scored.get("rounds"), list):  # every statement: our own
                yield from (
                    _statement(where, row | of) for rows in scored["rounds"] for row in rows
                )
                continue
            jury, scores = _jury(where, config, scored)
            rounds = (
                scored.get("debate_rounds", config.get("debate_rounds", 2))
                if arm == "debate"
                else 1
            )
            for place, (juror, score) in enumerate(zip(jury, scores, strict=True), 1):
                at = {
                    "turn": number,
                    "arm": arm,
                    "round": rounds,
                    "position": place,
                    "juror": juror,
                    "score": score,
                }
                yield _statement(
                    where,
                    of | at | {"same_family": roles.same_family(juror.partition(" #")[0], agent)},
                )


def _jury(where: str, config: dict, scored: dict) -> tuple[list[str], list]:
    """Return who gave the last scores, a juror each or the only one all of them, and the scores."""
    jury = config.get("jury", config.get("jury_llm_models"))
    scores = scored.get("jury_scores", scored.get("per_juror_scores", []))
    lists = (
        isinstance(scores, list)
        and isinstance(jury, list)
        and all(isinstance(name, str) for name in jury)
    )
    fit = lists and (not scores or len(jury) in (1, len(scores)))
    _need(
        fit,
        where,
        f"scores need as many names in `jury`, or one, got {scores!r:.80} and {jury!r:.80}",
    )
    return roles.seat_names(jury if len(jury) == len(scores) else jury[:1] * len(scores)), scores


# for readers ----------------------------------------------------------------------------------------------------------


def exchanges(conversations: Rows) -> Records:
    """Return the questions of conversations with their answers, one row each.

    conversations: a frame, rows or files. Columns: conversation_id, `chat` (what a chat between
    people and its twin share), source, agent (the model that answers, or "human"), turn (from 1),
    question, answer, status.
    """
    names = ["conversation_id", "chat", "source", "agent", "turn", "question", "answer", "status"]
    rows = [
        (
            one.conversation_id,
            one.meta.get("pair") or one.conversation_id,
            one.source,
            one.agent_model,
            *exchange,
        )
        for one in read_conversations(conversations)
        for exchange in one.exchanges()
    ]
    return Records(rows, columns=names).astype({"turn": int})


def render(
    conversation: Conversation,
    statements: Iterable[Mapping] = (),
    display: Mapping[str, str] | None = None,
) -> Card:
    """Return a conversation, and below each answer what every arm of the jury made of it: HTML, or as `str` plain text.

    statements: records as in `jury`; those on other conversations are left out. display: names of
    models by id.
    """
    display, passages = display or {}, []
    mine = [row for row in statements if row["conversation_id"] == conversation.conversation_id]
    for turn, question, answer, status in conversation.exchanges():
        passages += [
            (f"A, question {turn}", question),
            (f"B, answer {turn}", answer or f"({status})"),
        ]
        for arm in dict.fromkeys(row["arm"] for row in mine if row["turn"] == turn):
            heard = [row for row in mine if (row["turn"], row["arm"]) == (turn, arm)]
            said = "\n".join(_line(row, display) for row in heard)
            passages.append((f"jury on answer {turn}, {arm}: {_number(decide(heard))}", said))
    agent = conversation.agent_model or "a model"
    facts = [("B is", "a person" if agent == "human" else display.get(agent, agent))]
    return Card(f"Conversation {conversation.conversation_id}", facts + passages)


def _line(row: Mapping, display: Mapping[str, str]) -> str:
    """Return a statement as a line: the round, who, the score and the reason."""
    model, seat, number = row["juror"].partition(" #")
    who = [
        f"round {row['round']}",
        row["role"] if row["role"] != "juror" else "",
        display.get(model, model),
    ]
    reason = " ".join(line for line in row["statement"].split("\n") if "_SCORE=" not in line)
    named = ", ".join(filter(None, [*who, row["persona"]])) + seat + number
    return f"{named}: {_number(row['score'])}" + f" - {reason}" * bool(reason)


def _number(score: float | None) -> str:
    return "no score" if score is None else f"{score:.2f}"


def hearings(result: Records, limit: int = 1) -> None:
    """Show the first `limit` conversations of a jury with what it made of each answer, arm by arm."""
    statements = rows_of(result.records)
    for one in result.conversations[:limit]:
        display(render(one, statements, result.names))
