"""What `selfeval roleplay` and `selfeval compare` do: the two commands of the published system."""

import contextlib
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from selfeval.errors import InputError
from selfeval.paths import check_writable, write_whole
from selfeval.providers import dry_runs
from selfeval.providers.client import Client
from selfeval.providers.models import check_part, get
from selfeval.roleplay import roles
from selfeval.roleplay import scoring as verdicts
from selfeval.roleplay.conversation import converse
from selfeval.roleplay.run import Jury, hold, judged_turns
from selfeval.roleplay.transcripts import Conversation

METHODS = {
    "independent": "independent",
    "debate": "chateval_debate_one_by_one",
}  # arms, as published files call them


async def play(
    client: Client, out: Path, arms: Sequence[str], config: dict
) -> tuple[Conversation, list[dict]]:
    """Hold a conversation and have juries of these arms judge each answer; return it with their statements.

    The published file is written whole after every answer and at the end. Every reply is in the store, so that the same
    command run again resumes and ends with an equal file, and with more turns goes on with the conversation; what a
    person typed is read from the file.
    config: what was asked for, by the names of the published file; the ids of both sides are set here. Raises
    `InputError` where `out` cannot be written, or is not what this command writes with this config.
    """
    how = {"rounds": config["debate_rounds"], "words": config["words"], "seed": config["seed"]}
    jury = Jury(config["jury_llm_models"], **how)
    asks = roles.role(config["strategy"], roles.strategies(), "strategy")
    answers = roles.role(config["agent_persona"], roles.personas(), "agent-persona")
    typist = roles.person(lambda shown: next(typed, None) or input(shown))
    sides = {
        "interrogator": ("interrogator_llm_model", asks),
        "agent": ("role_play_llm_model", answers),
    }
    for side, (name, part) in sides.items():
        model = typist if part.typed else check_part(get(config[name]), f"play the {side}")
        sides[side] = roles.player(part, model, config["seed"])
        config[name] = sides[side].id
    before = _before(out, arms, config)
    typed = iter([turn["text"] for turn in before if sides[turn["speaker"]] is typist])

    def write(held: Conversation, said: Sequence[dict] = ()) -> None:
        # a file that has more, perhaps lines that a person typed, stays
        if len(held.turns) >= len(before) and not dry_runs.is_counting():
            write_whole(
                out,
                json.dumps(_output(held, said, jury, arms, config), indent=2, ensure_ascii=False)
                + "\n",
            )

    how = {
        "temperature": config["temperature"],
        "tokens": config["max_tokens"],
        "seed": config["seed"],
    }
    parts = {
        "strategy": asks.name,
        "persona": answers.name,
        "turns": config["max_turns"],
        "also": jury.jurors,
    }
    [held] = await converse(client, *sides.values(), on_exchange=write, **parts, **how)
    said = await hold(client, jury, [held], arms) if judged_turns(jury.scope, held) else []
    write(held, said)
    return held, said


def _before(out: Path, arms: Sequence[str], config: dict) -> list[dict]:
    """Return the messages of a run of this command that was stopped or has ended; [] without a file.

    It may have been asked for fewer turns. Statements were one short sentence where the file says nothing of `words`.
    """
    if not dry_runs.is_counting():
        check_writable(out)
    if not out.exists():
        return []
    with contextlib.suppress(
        OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError
    ):
        found = json.loads(out.read_text(encoding="utf-8"))
        then = {"words": 0} | found["config"]
        is_continued = then["max_turns"] <= config["max_turns"]
        then["max_turns"] = config["max_turns"]
        if is_continued and then == config and [*found["seats"]] == [METHODS[arm] for arm in arms]:
            return [turn for turn in found["messages"] if turn["status"] != "error"]
    raise InputError(
        f"{out} exists and is no output of this command with these options; choose another name."
    )


def _output(
    held: Conversation, said: Sequence[dict], jury: Jury, arms: Sequence[str], config: dict
) -> dict:
    """Return what the command writes: the published fields first."""
    seats = {
        arm: [{"juror": one.name, "persona": one.persona} for one in jury.members(arm, 0)]
        for arm in arms
    }
    judged = [
        exchange._asdict() | _judgement(exchange.turn, said, seats, jury.rounds)
        for exchange in held.exchanges()
    ]
    about = {"config": config, "seats": {METHODS[arm]: these for arm, these in seats.items()}}
    about |= {"conversation_id": held.conversation_id, "status": held.status}
    about |= {"messages": [turn.to_dict() for turn in held.turns]}
    if len(arms) == 1:
        first = {name: config[name] for name in ("role_play_llm_model", "interrogator_llm_model")}
        return first | {"jury": config["jury_llm_models"], "interaction": judged} | about
    scores = {
        f"{one}_avg": [row[one]["avg_human_score"] for row in judged]
        for one in ("old_eval", "new_eval")
    }
    scores["overall_delta"] = [row["score_delta"] for row in judged]  # of the turns that have both
    known = {
        name: [value for value in values if value is not None] for name, values in scores.items()
    }
    summary = {
        name: sum(values) / len(values) if values else None for name, values in known.items()
    }
    return {"config": config, "summary": summary, "turns": judged} | about


def _judgement(turn: int, said: Sequence[dict], seats: dict[str, list[dict]], rounds: int) -> dict:
    """Return what each arm said of an answer, as published files have it."""
    found = {}
    for arm, jurors in seats.items():
        rows = [row for row in said if (row["turn"], row["arm"]) == (turn, arm)]
        rows = [{name: value for name, value in row.items() if name != "messages"} for row in rows]
        scores = {(row["juror"], row["persona"]): row["score"] for row in verdicts.last_round(rows)}
        found[arm] = {"method": METHODS[arm]} | (
            {"debate_rounds": rounds} if arm == "debate" else {}
        )
        found[arm]["per_juror_scores"] = [scores.get(tuple(juror.values())) for juror in jurors]
        found[arm]["avg_human_score"] = verdicts.decide(rows)
        found[arm]["rounds"] = [[*part] for _, part in groupby(rows, lambda row: row["round"])]
    if len(seats) == 1:
        return {"jury_scores": found["debate"]["per_juror_scores"]} | found["debate"]
    old, new = (found[arm]["avg_human_score"] for arm in seats)
    delta = None if None in (old, new) else new - old
    return {"old_eval": found["independent"], "new_eval": found["debate"], "score_delta": delta}
