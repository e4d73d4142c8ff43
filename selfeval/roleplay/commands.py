"""What `selfeval roleplay` and `selfeval compare` do: hold one conversation, have it judged, write the published file.

The file is written whole after every answer and at the end. Every reply is in the store, so that the same command run
again resumes and ends with an equal file; what a person typed is read from the file.
"""

import contextlib
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from selfeval.asking.client import Client
from selfeval.errors import InputError
from selfeval.models import get
from selfeval.paths import check_writable, write_whole
from selfeval.roleplay import cast
from selfeval.roleplay.conversation import converse
from selfeval.roleplay.hearing import Jury, hold, judged_turns
from selfeval.roleplay.transcripts import Conversation, Exchange
from selfeval.roleplay.verdicts import decide, last_round

METHODS = {"independent": "independent", "debate": "chateval_debate_one_by_one"}  # arms, as published files call them


async def run(client: Client, out: Path, arms: Sequence[str], config: dict) -> tuple[Conversation, list[dict]]:
    """Hold a conversation and have juries of these arms judge each answer; return it with their statements.

    config: what was asked for, by the names of the published file; the ids of both sides are set here. Raises
    `InputError` where `out` cannot be written, or is not what this command writes with this config.
    """
    jury = Jury(config["jury_llm_models"], rounds=config["debate_rounds"], seed=config["seed"])
    persona = cast.role(config["agent_persona"], cast.personas(), "agent-persona")
    strategy = cast.role(config["strategy"], cast.strategies(), "strategy")
    typist = cast.person(lambda shown: next(typed, None) or input(shown))
    sides = {"role_play_llm_model": persona, "interrogator_llm_model": strategy}
    for name, part in sides.items():
        sides[name] = cast.player(part, typist if part.typed else get(config[name]), config["seed"])
        config[name] = sides[name].id
    interrogator, agent = sides["interrogator_llm_model"], sides["role_play_llm_model"]
    before = _before(out, arms, config)
    speaking = {"interrogator": interrogator, "agent": agent}
    typed = iter([turn["text"] for turn in before if speaking[turn["speaker"]] is typist])

    def write(held: Conversation, said: Sequence[dict] = ()) -> None:
        write_whole(out, json.dumps(_output(held, said, jury, arms, config), indent=2, ensure_ascii=False) + "\n")

    [held] = await converse(
        client, interrogator, agent, strategy=strategy.name, persona=persona.name, turns=config["max_turns"],
        temperature=config["temperature"], tokens=config["max_tokens"], seed=config["seed"], also=jury.jurors,
        on_exchange=lambda so_far: write(so_far) if len(so_far.turns) > len(before) else None,
    )  # fmt: skip
    said = await hold(client, jury, [held], arms) if judged_turns(jury.scope, held) else []
    if len(held.turns) >= len(before):  # else the file has more, perhaps lines that a person typed
        write(held, said)
    return held, said


def _before(out: Path, arms: Sequence[str], config: dict) -> list[dict]:
    """Return the messages of a run of this command that was stopped or has ended; [] without a file."""
    check_writable(out)
    if not out.exists():
        return []
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = json.loads(out.read_text(encoding="utf-8"))
        if found["config"] == config and [*found["seats"]] == [METHODS[arm] for arm in arms]:
            return [turn for turn in found["messages"] if turn["status"] != "error"]
    raise InputError(f"{out} exists and is no output of this command with these options; choose another name.")


def _output(held: Conversation, said: Sequence[dict], jury: Jury, arms: Sequence[str], config: dict) -> dict:
    """Return what the command writes: the published fields first."""
    judged = [_row(exchange, said, jury, arms) for exchange in held.exchanges()]
    about = {"config": config, "seats": {METHODS[arm]: _seats(jury, arm) for arm in arms}}
    about |= {"conversation_id": held.conversation_id, "status": held.status}
    about |= {"messages": [turn.to_dict() for turn in held.turns]}
    if len(arms) > 1:
        return {"config": config, "summary": _summary(judged), "turns": judged} | about
    first = {name: config[name] for name in ("role_play_llm_model", "interrogator_llm_model")}
    return first | {"jury": config["jury_llm_models"], "interaction": judged} | about


def _row(exchange: Exchange, said: Sequence[dict], jury: Jury, arms: Sequence[str]) -> dict:
    """Return a question and its answer with what each arm said of it."""
    found = {}
    for arm in arms:
        rows = [row for row in said if (row["turn"], row["arm"]) == (exchange.turn, arm)]
        scores = {(row["juror"], row["persona"]): row["score"] for row in last_round(rows)}
        shown = [{name: value for name, value in row.items() if name != "messages"} for row in rows]
        found[arm] = {"method": METHODS[arm]} | ({"debate_rounds": jury.rounds} if arm == "debate" else {})
        found[arm]["per_juror_scores"] = [scores.get(tuple(seat.values())) for seat in _seats(jury, arm)]
        found[arm]["avg_human_score"] = decide(rows)
        found[arm]["rounds"] = [[*part] for _, part in groupby(shown, lambda row: row["round"])]
    if len(arms) == 1:
        return exchange._asdict() | {"jury_scores": found["debate"]["per_juror_scores"]} | found["debate"]
    old, new = (found[arm]["avg_human_score"] for arm in arms)
    evals = {"old_eval": found["independent"], "new_eval": found["debate"]}
    return exchange._asdict() | evals | {"score_delta": None if None in (old, new) else new - old}


def _seats(jury: Jury, arm: str) -> list[dict]:
    """Return the jurors of an arm in the order in which they and their personas are named."""
    names, personas = cast.seat_names([model.id for model in jury.jurors]), [None, *jury.personas]
    seats = sorted(jury.seats(arm, 0, 1), key=lambda seat: (names.index(seat.name), personas.index(seat.persona)))
    return [{"juror": seat.name, "persona": seat.persona} for seat in seats]


def _summary(judged: Sequence[dict]) -> dict:
    """Return the averages over the turns that have that jury's score; the overall delta over those that have both."""
    scores = {f"{one}_avg": [row[one]["avg_human_score"] for row in judged] for one in ("old_eval", "new_eval")}
    scores["overall_delta"] = [row["score_delta"] for row in judged]
    known = {name: [value for value in values if value is not None] for name, values in scores.items()}
    return {name: sum(values) / len(values) if values else None for name, values in known.items()}
