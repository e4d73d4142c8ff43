"""How a conversation is shown, with what a jury made of it."""

from collections.abc import Iterable, Mapping

from selfeval.records.tables import rows_of
from selfeval.results import Card, Records, display
from selfeval.roleplay.scoring import decide
from selfeval.roleplay.transcripts import Conversation


def hearings(result: Records, limit: int = 1) -> None:
    """Show the first `limit` conversations of a jury with what it made of each answer."""
    statements = rows_of(result.records)
    for conversation in result.conversations[:limit]:
        display(render(conversation, statements, result.names))


def render(
    conversation: Conversation,
    statements: Iterable[Mapping] = (),
    names: Mapping[str, str] | None = None,
) -> Card:
    """Return a conversation, and below each answer what every arm of the jury made of it.

    The card is HTML, or as `str` plain text. statements: records as in `run`; those on other
    conversations are left out. names: of models by id.
    """
    names = names or {}
    agent = conversation.agent_model or "a model"
    who = "a person" if agent == "human" else names.get(agent, agent)
    passages = [("B is", who)]
    mine = [row for row in statements if row["conversation_id"] == conversation.conversation_id]
    for turn, question, answer, status in conversation.exchanges():
        passages.append((f"A, question {turn}", question))
        passages.append((f"B, answer {turn}", answer or f"({status})"))
        of_turn = [row for row in mine if row["turn"] == turn]
        for arm in dict.fromkeys(row["arm"] for row in of_turn):
            rows = [row for row in of_turn if row["arm"] == arm]
            lines = [_line(row, names) for row in rows]
            passages.append(
                (f"jury on answer {turn}, {arm}: {_number(decide(rows))}", "\n".join(lines))
            )
    return Card(f"Conversation {conversation.conversation_id}", passages)


def _line(row: Mapping, names: Mapping[str, str]) -> str:
    """Return a statement as a line: the round, who, the score and the reason."""
    model, seat, number = row["juror"].partition(" #")
    parts = [f"round {row['round']}"]
    parts.append(names.get(model, model))
    if row["persona"]:
        parts.append(row["persona"])
    line = f"{', '.join(parts)}{seat}{number}: {_number(row['score'])}"
    said = [part for part in row["statement"].split("\n") if "_SCORE=" not in part]
    reason = " ".join(said)
    return f"{line} - {reason}" if reason else line


def _number(score: float | None) -> str:
    return "no score" if score is None else f"{score:.2f}"
