"""What `selfeval roleplay` and `selfeval compare` do: the two commands of the published system."""

import json
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from selfeval.errors import InputError
from selfeval.paths import check_begins, check_writable, write_whole
from selfeval.providers import dry_runs
from selfeval.providers.client import Client
from selfeval.providers.models import Model, check_part, get
from selfeval.roleplay import roles
from selfeval.roleplay import scoring as verdicts
from selfeval.roleplay.conversation import converse
from selfeval.roleplay.run import Jury, hold
from selfeval.roleplay.transcripts import Conversation, judged_turns

# arms, as published files call them
METHODS = {"independent": "independent", "debate": "chateval_debate_one_by_one"}


async def play(
    client: Client, out: Path, arms: Sequence[str], config: dict
) -> tuple[Conversation, list[dict]]:
    """Hold a conversation and have juries of these arms judge each answer; return both.

    The published file is written whole after every answer and at the end. Every reply is in the
    store, so that the same command run again resumes and ends with an equal file, and with more
    turns goes on with the conversation; what a person types is kept in the file alone. config: what
    was asked for, by the names of the published file; the ids of both sides are set here. Raises
    `InputError` where `out` cannot be written, is somebody else's, or holds what a person typed.
    """
    seed = config["seed"]
    jury = Jury(
        config["jury_llm_models"],
        rounds=config["debate_rounds"],
        words=config["words"],
        context=config["context"],
        seed=seed,
    )
    strategy = roles.role(config["strategy"], roles.strategies(), "strategy")
    persona = roles.role(config["agent_persona"], roles.personas(), "agent-persona")
    interrogator = _player(strategy, "interrogator", config)
    agent = _player(persona, "agent", config)
    config["interrogator_llm_model"] = interrogator.id
    config["role_play_llm_model"] = agent.id
    _check_out(out, arms, strategy.typed or persona.typed)

    def write(conversation: Conversation, statements: Sequence[dict] = ()) -> None:
        if dry_runs.is_counting():
            return
        content = _output(conversation, statements, jury, arms, config)
        write_whole(out, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    [conversation] = await converse(
        client,
        interrogator,
        agent,
        strategy=strategy.name,
        persona=persona.name,
        turns=config["max_turns"],
        also=jury.jurors,
        on_exchange=write,
        temperature=config["temperature"],
        tokens=config["max_tokens"] or None,
        seed=seed,
    )
    statements = []
    if judged_turns(jury.scope, conversation):
        statements = await hold(client, jury, [conversation], arms)
    write(conversation, statements)
    return conversation, statements


def _player(part: roles.Role, side: str, config: dict) -> Model:
    """Return who plays a side, as config says it."""
    name = "role_play_llm_model" if side == "agent" else "interrogator_llm_model"
    model = None
    if not part.typed:
        model = check_part(get(config[name]), f"play the {side}")
    return roles.player(part, model, config["seed"])


def _check_out(out: Path, arms: Sequence[str], is_typed: bool) -> None:
    """Refuse a place where the file cannot be written, or where one is that must stay."""
    if not dry_runs.is_counting():
        check_writable(out)
    check_begins(out, b'{ "role_play_llm_model"' if len(arms) == 1 else b'{ "config": {')
    if is_typed and out.exists():
        raise InputError(f"{out} holds what a person typed; choose another name.")


def _output(
    conversation: Conversation,
    statements: Sequence[dict],
    jury: Jury,
    arms: Sequence[str],
    config: dict,
) -> dict:
    """Return what the command writes: the published fields first."""
    seats = {}
    for arm in arms:
        members = jury.members(arm, 0)
        seats[arm] = [{"juror": seat.name, "persona": seat.persona} for seat in members]
    judged = []
    for exchange in conversation.exchanges():
        of_turn = [row for row in statements if row["turn"] == exchange.turn]
        judged.append(exchange._asdict() | _judgement(of_turn, seats, jury.rounds))
    about = {
        "config": config,
        "seats": {METHODS[arm]: jurors for arm, jurors in seats.items()},
        "conversation_id": conversation.conversation_id,
        "status": conversation.status,
        "messages": [turn.to_dict() for turn in conversation.turns],
    }
    if len(arms) == 1:
        return {
            "role_play_llm_model": config["role_play_llm_model"],
            "interrogator_llm_model": config["interrogator_llm_model"],
            "jury": config["jury_llm_models"],
            "interaction": judged,
            **about,
        }
    summary = {
        "old_eval_avg": _mean(row["old_eval"]["avg_human_score"] for row in judged),
        "new_eval_avg": _mean(row["new_eval"]["avg_human_score"] for row in judged),
        "overall_delta": _mean(row["score_delta"] for row in judged),
    }
    return {"config": config, "summary": summary, "turns": judged} | about


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are there, None without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _judgement(statements: Sequence[dict], seats: dict[str, list[dict]], rounds: int) -> dict:
    """Return what each arm said of an answer, as published files have it."""
    by_arm = {}
    for arm, jurors in seats.items():
        rows = []
        for statement in statements:
            if statement["arm"] == arm:
                rows.append({name: statement[name] for name in statement if name != "messages"})
        scores = {(row["juror"], row["persona"]): row["score"] for row in verdicts.last_round(rows)}
        judgement: dict = {"method": METHODS[arm]}
        if arm == "debate":
            judgement["debate_rounds"] = rounds
        judgement["per_juror_scores"] = [scores.get(tuple(juror.values())) for juror in jurors]
        judgement["avg_human_score"] = verdicts.decide(rows)
        judgement["rounds"] = [[*part] for _, part in groupby(rows, lambda row: row["round"])]
        by_arm[arm] = judgement
    if len(seats) == 1:  # of `selfeval roleplay`, which has no other arm
        debate = by_arm["debate"]
        return {"jury_scores": debate["per_juror_scores"]} | debate
    before = by_arm["independent"]
    after = by_arm["debate"]
    both = [before["avg_human_score"], after["avg_human_score"]]
    delta = None if None in both else both[1] - both[0]
    return {"old_eval": before, "new_eval": after, "score_delta": delta}
