"""Conversations to read: identity under pressure with its read-outs, and role-play with what the jury said."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from selfeval.errors import InputError
from selfeval.figures.cards import as_text
from selfeval.report.sources import Sources
from selfeval.report.tables import MOST, Table, chat, said
from selfeval.roleplay.transcripts import Conversation, read_conversations

COLUMNS = {
    "kind": "cell*", "model": "cell*", "situation": "cell*", "condition": "cell*", "arm": "cell*", "turns": "number",
    "outcome": "cell*", "status": "cell*", "score": "number", "conversation": "cell", "transcript": "chat",
    "language": "fact*", "truth": "fact", "foil": "fact", "repeat": "fact", "more": "fact", "run": "fact*",
}  # fmt: skip
IDENTITY = ("model", "suite", "variant", "arm", "language", "repeat")


def transcripts(found: Sources, most: int = MOST) -> Table:
    """Return all conversations, one row each, with their transcripts."""
    table = Table("conversation", COLUMNS, found.clean)
    for rows in (_identity(found), _roleplay(found)):
        for row in islice(rows, max(0, most - table.size)):
            table.add(**row)
        table.left_out += sum(1 for _ in rows)
    return table


def _identity(found: Sources) -> Iterator[dict]:
    """Yield the conversations of identity records: one per situation and repeat, its turns in order."""
    held: dict[tuple, list[dict]] = {}
    for file, row in found.rows("identity"):
        held.setdefault((found.run_of(file), *(row.get(name) for name in IDENTITY)), []).append(row)
    for (run, *_), rows in held.items():
        first, last = rows[0], rows[-1]
        out = [row for row in rows if row["source"] == "readout"] or rows
        yield {
            "kind": "identity", "model": first["model"], "condition": first.get("condition"), "arm": first["arm"],
            "situation": first.get("family"), "turns": 1 + max(int(row.get("turn") or 0) for row in rows),
            "outcome": _outcome(out[-1]), "status": last.get("status"), "language": first.get("language"),
            "conversation": first.get("variant"), "truth": first.get("truth"), "foil": first.get("foil"),
            "repeat": first.get("repeat"), "run": run, "transcript": _blocks(_pressed(rows)),
        }  # fmt: skip


def _outcome(row: Mapping) -> str:
    passed = {True: "passed", False: "failed"}.get(row.get("passed"), "open")
    return f"{passed}: {row.get('stance') or row.get('status')}"


def _pressed(rows: list[dict]) -> Iterator[tuple]:
    """Yield the messages, each reply where it came, and the fork that read it out."""
    shown = 0
    for row in rows:
        messages, thought = row["messages"], as_text(row.get("reasoning"))
        if row["source"] == "readout":
            about = f"read-out of turn {row.get('turn', 0)}"
            yield (about, row.get("reply") or "", _outcome(row), "", thought, as_text(messages[-1:]))
            continue
        yield from ((m["role"], m["content"]) for m in messages[shown:])
        yield (f"reply, turn {row.get('turn', 0)}", row.get("reply") or "", _outcome(row), "", thought)
        shown = len(messages) + (messages[-1]["role"] != "assistant")


def _blocks(blocks: Iterable[tuple]) -> list[tuple]:
    """Return blocks as a page has them: (who, text, note, raw), and (reasoning, as sent) where there is either."""
    return [block if any(block[4:]) else block[:4] for block in chat(blocks)]


def _roleplay(found: Sources) -> Iterator[dict]:
    """Yield the conversations that a jury judged with its statements, then those that none did.

    Statements belong to the conversation of their name in their own folder, else to the first of that name. A
    conversation that stands in several files is told once.
    """
    heard: dict[tuple[Path, str], list[dict]] = {}
    for file, row in found.rows("statements"):
        heard.setdefault((file.parent, str(row["conversation_id"])), []).append(row)
    there = {(file.parent, str(one.conversation_id)): one for file, one in _conversations(found)}
    first = {name: one for (_, name), one in reversed(there.items())}
    told = set()
    for (folder, name), rows in heard.items():
        one = there.get((folder, name)) or first.get(name)
        told.add(_told(one))
        one = one or Conversation(name, [], source=rows[0].get("source") or "model")
        yield _talk(found.run_of(folder / "verdicts"), one, rows)
    for (folder, _), one in there.items():
        if _told(one) not in told:
            told.add(_told(one))
            yield _talk(found.run_of(folder / "conversations"), one, [])


def _told(one: Conversation | None) -> tuple:
    return (one.conversation_id, *(turn.text for turn in one.turns)) if one else ()


def _conversations(found: Sources) -> Iterator[tuple[Path, Conversation]]:
    for file in found.files["conversations"]:
        try:
            yield from ((file, one) for one in read_conversations([file]))
        except InputError as error:
            found.problems[str(error)] = None


def _talk(run: str, one: Conversation, heard: list[dict]) -> dict:
    last = [row for row in heard if row["role"] == "juror" and row.get("score") is not None]
    rounds = {}
    for row in last:
        rounds[row["turn"], row["arm"]] = max(rounds.get((row["turn"], row["arm"]), 0), row["round"])
    final = [row["score"] for row in last if row["round"] == rounds[row["turn"], row["arm"]]]
    arms = dict.fromkeys(row["arm"] for row in heard)
    agent = one.agent_model or (heard[0].get("agent") if heard else "")
    taken = "" if not final else "taken for a person" if sum(final) / len(final) > 0.5 else "taken for a program"
    return {
        "kind": "role-play", "model": agent, "arm": ", ".join(arms),
        "situation": ", ".join(filter(None, [one.meta.get("persona"), one.meta.get("strategy")])) or one.source,
        "condition": f"asked by {asked}" if (asked := one.meta.get("interrogator_model")) else "",
        "turns": len(one.exchanges()) or len({row["turn"] for row in heard}), "status": one.status, "outcome": taken,
        "score": round(sum(final) / len(final), 3) if final else None, "conversation": one.conversation_id,
        "more": {k: v for k, v in one.meta.items() if isinstance(v, str | int | float)}, "run": run,
        "transcript": _blocks(_judged(one, heard)),
    }  # fmt: skip


def _judged(one: Conversation, heard: list[dict]) -> Iterator[tuple]:
    """Yield question and answer of every turn, then what the jury said of it."""
    exchanges, thoughts = {e.turn: e for e in one.exchanges()}, _thoughts(one)
    if not exchanges:
        yield ("", "The conversation itself is not among the files of this report; this is what the jury said of it.")
    for turn in sorted({*exchanges, *(row["turn"] for row in heard)}):
        if turn in exchanges:
            asked = exchanges[turn]
            status = "" if asked.status == "ok" else asked.status
            yield (f"question {turn}", asked.question, "", "", thoughts.get((turn, False), ""))
            yield (f"answer {turn}", asked.answer, status, "", thoughts.get((turn, True), ""))
        yield from _statements(row for row in heard if row["turn"] == turn)


def _thoughts(one: Conversation) -> dict[tuple[int, bool], str]:
    """Return {(turn, whether it is the agent's): reasoning} of a conversation whose speakers take turns, as ours do."""
    spoken = {agent: [t for t in one.turns if (t.speaker == one.agent) == agent] for agent in (False, True)}
    return {(k, agent): as_text(t.more.get("reasoning")) for agent in spoken for k, t in enumerate(spoken[agent], 1)}


def _statements(rows: Iterable[Mapping]) -> Iterator[tuple]:
    for row in rows:
        who = ", ".join(filter(None, [row["role"], row["juror"], row.get("persona")]))
        score = "no score" if row.get("score") is None else f"score {said(row['score'])}"
        note = f"{row['arm']}, round {row.get('round')}: {score}" + f", {row['status']}" * (row.get("status") != "ok")
        thought, sent = as_text(row.get("reasoning")), as_text(row.get("messages"))
        yield (who, row.get("statement") or "", note, row.get("reply") or "", thought, sent)
