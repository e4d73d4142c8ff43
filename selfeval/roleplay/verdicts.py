"""Files of verdicts: what jurors said of conversations."""

from collections.abc import Sequence
from pathlib import Path

from selfeval.errors import InputError
from selfeval.records.tables import Rows, are_files, data_path
from selfeval.roleplay.transcripts import (
    Conversation,
    as_id,
    check_source,
    files_named,
    need,
    read_conversations,
    records_in,
)

# what every statement says
NEEDED = ("conversation_id", "turn", "arm", "juror")
# what a statement says that does not say otherwise
UNSAID = {
    "pair": None,
    "scope": "turn",
    "role": "juror",
    "round": 1,
    "position": None,
    "persona": None,
    "agent": "",
    "same_family": False,
    "statement": "",
    "reply": None,
    "repaired": None,
    "repair_reply": None,
    "usage": None,
    "cost": None,
    "latency": None,
    "request_id": None,
    "served_model": None,
    "peer_mean": None,
    "asked_again": None,
}


def read_verdicts(paths: Rows | Sequence[str | Path]) -> list[dict]:
    """Return the statements of files or rows of verdicts, as in `run`.

    What is not known is null. What earlier versions kept of others than jurors is left out. Raises
    `InputError` naming file and row for what is not of this form.
    """
    statements = [_statement(where, row) for where, row in records_in("verdicts", paths)]
    return [row for row in statements if row["role"] == "juror"]


def read_judgements(
    verdicts: Rows, conversations: Rows = (), controls: Rows = ()
) -> tuple[list[Conversation], list[dict]]:
    """Return verdicts that exist, in files, rows or a frame, as (conversations, statements).

    The conversations are those that the statements are about, as far as they are found beside the
    verdicts' files, or in `conversations` or `controls`, in this order.
    """
    statements = read_verdicts(verdicts)
    if not statements:
        remedy = "give what `judge` returned, or its file verdicts.jsonl"
        raise InputError(f"There are no jurors' verdicts to analyse: {remedy}.")
    known = _beside(verdicts) + read_conversations(conversations) + read_conversations(controls)
    by_id = {talk.conversation_id: talk for talk in reversed(known)}
    judged = dict.fromkeys(row["conversation_id"] for row in statements)
    return [by_id[name] for name in judged if name in by_id], statements


def _beside(verdicts: Rows) -> list[Conversation]:
    """Return the conversations that stand in files beside those of verdicts."""
    if not are_files(verdicts):
        return []
    files = [file.with_name("conversations.jsonl") for file in files_named("verdicts", verdicts)]
    return read_conversations([file for file in dict.fromkeys(files) if file.is_file()])


def check_not_read(out: str | Path, conversations: Rows, controls: Rows, verdicts: Rows) -> None:
    """Raise `InputError` where `out` is the folder of a file that is read here."""
    if not out:
        return
    sources = [
        ("conversations", conversations),
        ("conversations", controls),
        ("verdicts", verdicts),
    ]
    folder = data_path(out).resolve()
    for kind, source in sources:
        if are_files(source) and folder in [file.parent for file in files_named(kind, source)]:
            rule = f"`out` {str(out)!r} is a folder that is read here"
            raise InputError(f"{rule}; choose another one for `out`.")


def _statement(where: str, row: dict) -> dict:
    """Return a row of verdicts with all fields; what it does not say is null, or empty."""
    has_needed = "score" in row and all(row.get(name) is not None for name in NEEDED)
    rule = f"a verdict needs `{'`, `'.join(NEEDED)}` and `score`"
    need(has_needed, where, f"{rule}; data/README.md has the fields")
    check_source(where, row.get("source"))
    statement = dict(row)
    usual = UNSAID | {"status": "no_answer" if row["score"] is None else "ok"}
    for name, value in usual.items():
        if statement.get(name) is None:
            statement[name] = value
    statement["conversation_id"] = as_id(row["conversation_id"])
    if row.get("pair") is not None:
        statement["pair"] = as_id(row["pair"])
    return statement
