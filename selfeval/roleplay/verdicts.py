"""Files of verdicts: what jurors said of conversations, ours and the published ones."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from selfeval.errors import InputError
from selfeval.records.tables import Rows, are_files, data_path
from selfeval.roleplay import roles
from selfeval.roleplay.transcripts import (
    Conversation,
    as_id,
    check_source,
    config_of,
    conversation_of,
    distinct,
    files_named,
    is_output,
    need,
    read_conversations,
    records_in,
    turns_of,
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


def read_verdicts(paths: Rows | Sequence[str | Path]) -> tuple[list[dict], list[Conversation]]:
    """Return the statements of files, as in `run`, and the conversations beside them in outputs.

    A file is a `verdicts.jsonl`, or an output of `selfeval roleplay` or `selfeval compare`. A
    published one says the jurors' last scores alone: the position is then the place on the list,
    the round of a debate is `debate_rounds` (2, the published default, where the file does not
    say), and everything else that is not known is null. What earlier versions kept of others than
    jurors is left out. Raises `InputError` naming file and row for what is not of this form.
    """
    statements = []
    conversations = []
    for where, row in records_in("verdicts", paths):
        if "juror" in row:
            statements.append(_statement(where, row))
            continue
        rule = "this is neither a verdict, which has a `juror`, nor an output of a command"
        need(is_output(row), where, rule)
        conversation = conversation_of(where, row)
        conversations.append(conversation)
        statements += _statements_of(where, row, conversation)
    return [row for row in statements if row["role"] == "juror"], distinct(conversations)


def read_judgements(
    verdicts: Rows, conversations: Rows = (), controls: Rows = ()
) -> tuple[list[Conversation], list[dict]]:
    """Return verdicts that exist, in files, rows or a frame, as (conversations, statements).

    The conversations are those that the statements are about, as far as they are found in the
    verdicts' files, beside them, or in `conversations` or `controls`, in this order.
    """
    statements, in_outputs = read_verdicts(verdicts)
    if not statements:
        remedy = "give what `judge` returned, or its file verdicts.jsonl"
        raise InputError(f"There are no jurors' verdicts to analyse: {remedy}.")
    known = in_outputs + _beside(verdicts)
    known += read_conversations(conversations) + read_conversations(controls)
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


def _statements_of(where: str, output: dict, conversation: Conversation) -> Iterator[dict]:
    """Yield the statements of an output; of a published one what its scores say."""
    config = config_of(output)
    about = {
        "conversation_id": conversation.conversation_id,
        "source": conversation.source,
        "agent": conversation.agent_model,
    }
    for number, turn in enumerate(turns_of(where, output), 1):
        by_arm = {"independent": turn.get("old_eval"), "debate": turn.get("new_eval", turn)}
        for arm, judgement in by_arm.items():
            if not isinstance(judgement, dict):
                continue
            if isinstance(judgement.get("rounds"), list):  # every statement: our own
                rows = [row for of_round in judgement["rounds"] for row in of_round]
            else:
                rows = _published(where, config, judgement, arm, number, about["agent"])
            for row in rows:
                yield _statement(where, row | about)


def _published(
    where: str, config: dict, judgement: dict, arm: str, turn: int, agent: str
) -> list[dict]:
    """Return the statements behind the scores of a published judgement."""
    number = 1
    if arm == "debate":
        number = judgement.get("debate_rounds", config.get("debate_rounds", 2))
    rows = []
    for position, (juror, score) in enumerate(_scores(where, config, judgement), 1):
        model = juror.partition(" #")[0]
        row = {
            "turn": turn,
            "arm": arm,
            "round": number,
            "position": position,
            "juror": juror,
            "score": score,
            "same_family": roles.same_family(model, agent),
        }
        rows.append(row)
    return rows


def _scores(where: str, config: dict, judgement: dict) -> list[tuple]:
    """Return who gave each of the last scores, and the score; one juror alone gave all of them."""
    jury: Any = config.get("jury")
    scores = judgement.get("jury_scores", judgement.get("per_juror_scores", []))
    are_lists = isinstance(scores, list) and isinstance(jury, list)
    are_names = are_lists and all(isinstance(name, str) for name in jury)
    fit = are_names and (not scores or len(jury) in (1, len(scores)))
    rule = "scores need as many names in `jury`, or one"
    need(fit, where, f"{rule}, got {scores!r:.80} and {jury!r:.80}")
    if len(jury) != len(scores):
        jury = jury[:1] * len(scores)
    return list(zip(roles.seat_names(jury), scores, strict=True))
