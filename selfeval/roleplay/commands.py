"""What `selfeval roleplay` and `selfeval compare` do: one conversation, judged while it goes on, as published files.

The file is written anew, whole, whenever an answer or a verdict arrives. Every reply is in the store, so that the same
command run again goes on where it was stopped and ends with an equal file; what a person typed is read from the file.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from selfeval.asking.client import Client, Tasks
from selfeval.errors import InputError
from selfeval.files import check_writable, write_whole
from selfeval.models import Model, get
from selfeval.roleplay import cast
from selfeval.roleplay.conversation import converse
from selfeval.roleplay.hearing import Jury, verdict
from selfeval.roleplay.transcripts import TYPED, Conversation, Exchange, render
from selfeval.roleplay.verdicts import decide, last_round

JUDGING = ("personas", "scope", "context", "blind", "aggregation", "dimensions", "judge")  # of the jury
METHODS = {"independent": "independent", "debate": "chateval_debate_one_by_one"}  # arms, as published files call them
RARE = ("served_by", "reasoning", "adapted", "asked_again")  # of statements: in the file where there is one


@dataclass
class Play:
    """One run of a command, and what it has brought so far.

    out: the file. arms: the juries that judge every answer. config: what was asked for, by the names of the published
    file and then ours; the ids of who plays are set here, and how the jury judges, where that is not the default.
    force: also overwrite a file of another set-up. verdicts: the statements by turn and arm.
    """

    out: Path
    jury: Jury
    arms: tuple[str, ...]
    config: dict
    force: bool = False
    conversation: Conversation | None = None
    verdicts: dict[tuple[int, str], list[dict]] = field(default_factory=dict)

    def __post_init__(self):
        persona = cast.role(self.config["agent_persona"], cast.personas(), "agent-persona")
        strategy = cast.role(self.config["strategy"], cast.strategies(), "strategy")
        self.agent = cast.player(persona, get(self.config["role_play_llm_model"]), self.config["seed"])
        self.interrogator = cast.player(strategy, get(self.config["interrogator_llm_model"]), self.config["seed"])
        self.config["role_play_llm_model"] = self.agent.id
        self.config["interrogator_llm_model"] = self.interrogator.id
        usual = _judging(Jury)
        self.config |= {name: value for name, value in _judging(self.jury).items() if value != usual[name]}
        if self.config["feedback"] and self.jury.scope == "conversation":
            raise InputError(
                "`feedback` tells verdicts on the way, and `scope` is conversation; leave out one of them."
            )

    def seats(self, arm: str) -> list[dict]:
        """Return the jurors of an arm in the order in which they and their personas are named."""
        names, personas = cast.numbered(self.config["jury_llm_models"]), [None, *self.jury.personas]
        seats = self.jury.seats(arm, 0, 1)
        seats.sort(key=lambda seat: (names.index(seat.name), personas.index(seat.persona)))
        return [{"juror": seat.name, "persona": seat.persona} for seat in seats]

    def evaluation(self, turn: int, arm: str) -> dict:
        """Return what an arm said of an answer: scores in the order of the seats (null before the verdict), its rounds.

        A statement stands there without what was sent, since the file is written often.
        """
        rows = self.verdicts.get((turn, arm), [])
        found = {(row["juror"], row["persona"]): row["score"] for row in last_round(rows)}
        kept = [
            {name: value for name, value in row.items() if name != "messages" and (value or name not in RARE)}
            for row in rows
        ]
        return {
            "method": METHODS[arm],
            **({"debate_rounds": self.jury.rounds} if arm == "debate" else {}),
            "per_juror_scores": [found.get((seat["juror"], seat["persona"])) for seat in self.seats(arm)],
            "avg_human_score": decide(rows, self.jury.aggregation),
            "rounds": [list(part) for _, part in groupby(kept, lambda row: row["round"])],
        }

    def output(self) -> dict:
        """Return what the command writes: the published fields first."""
        judged = [self._judged(exchange) for exchange in self.conversation.exchanges()]
        seats, config = {METHODS[arm]: self.seats(arm) for arm in self.arms}, dict(self.config)
        if self.arms == ("debate",):
            first = {name: config.pop(name) for name in ("role_play_llm_model", "interrogator_llm_model")}
            first |= {"jury": config.pop("jury_llm_models"), "interaction": judged}
            found = first | {"seats": seats[METHODS["debate"]]} | config
        else:
            found = {"config": config, "summary": _summary(judged), "turns": judged, "seats": seats}
        return found | {
            "conversation_id": self.conversation.conversation_id,
            "status": self.conversation.status,
            "messages": [turn.to_dict() for turn in self.conversation.turns],
        }

    def _judged(self, exchange: Exchange) -> dict:
        """Return question and answer of a turn with what was said of it, as the command writes it."""
        turn, question, answer, status = exchange
        said = {"turn": turn, "question": question, "answer": answer}
        found = [self.evaluation(turn, arm) for arm in self.arms]
        if len(found) == 1:
            scores = {"jury_scores": found[0]["per_juror_scores"], "avg_human_score": found[0]["avg_human_score"]}
            return said | scores | {"status": status, "rounds": found[0]["rounds"]}
        old, new = (one["avg_human_score"] for one in found)
        delta = None if old is None or new is None else new - old
        return said | {"old_eval": found[0], "new_eval": found[1], "score_delta": delta, "status": status}


def _judging(jury: Jury | type[Jury]) -> dict:
    """Return how a jury judges as plain values, or how it usually does."""
    values = {name: getattr(jury, name) for name in JUDGING}
    return {n: list(v) if isinstance(v, list | tuple) else getattr(v, "id", v) for n, v in values.items()}


def _summary(turns: Sequence[dict]) -> dict:
    """Return the averages over the turns that have that jury's score; the overall delta over those that have both."""
    deltas = [turn["score_delta"] for turn in turns]
    old, new = ([turn[name]["avg_human_score"] for turn in turns] for name in ("old_eval", "new_eval"))
    return {"old_eval_avg": _mean(old), "new_eval_avg": _mean(new), "overall_delta": _mean(deltas)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


async def run(client: Client, play: Play, tell: Callable[[str], None]) -> Conversation:
    """Hold the conversation, have every arm judge each answer as soon as it exists, and write the file all the while.

    tell: takes one line per verdict, and at the end the conversation as text. Returns the conversation; its status says
    whether all turns were held.
    """
    judging = {}
    config, (reader, held) = play.config, _reader(play)
    agent, interrogator = (reader if model.id == TYPED else model for model in (play.agent, play.interrogator))

    def write() -> None:
        if len(play.conversation.turns) >= held:  # else the file has more, perhaps lines that a person typed
            write_whole(play.out, json.dumps(play.output(), indent=2, ensure_ascii=False) + "\n")

    async def judge(conversation: Conversation, turn: int, arm: str) -> None:
        play.verdicts[turn, arm] = await verdict(client, play.jury, conversation, arm, turn)
        write()
        score = decide(play.verdicts[turn, arm], play.jury.aggregation)
        tell(f"turn {turn}  {METHODS[arm]}: {'no score' if score is None else f'{score:.2f}'}")

    async with Tasks() as group:

        def on_exchange(conversation: Conversation) -> None:
            play.conversation = conversation
            write()
            if play.jury.scope != "conversation":
                hear(conversation)

        def hear(conversation: Conversation) -> None:
            turn = len(conversation.exchanges())
            for arm in play.arms:
                judging[turn, arm] = group.create_task(judge(conversation, turn, arm))

        async def feedback(conversation: Conversation) -> str:
            turn = len(conversation.exchanges())
            await judging[turn, play.arms[-1]]
            score = decide(play.verdicts[turn, play.arms[-1]], play.jury.aggregation)
            said = "gave no score" if score is None else f"gave the last answer {score:.2f}"
            return f"The jury that reads along {said}, on a scale from 0, surely a program, to 1, surely a human being."

        [play.conversation] = await converse(
            client, interrogator, agent, strategy=config["strategy"], persona=config["agent_persona"],
            turns=config["max_turns"], temperature=config["temperature"], tokens=config["max_tokens"],
            seed=config["seed"], on_exchange=on_exchange, feedback=feedback if config["feedback"] else None,
            also=play.jury.jurors, label=None,
        )  # fmt: skip
        if play.jury.scope == "conversation":
            hear(play.conversation)
    write()
    tell(str(render(play.conversation, [row for rows in play.verdicts.values() for row in rows])))
    return play.conversation


def _reader(play: Play) -> tuple[Model, int]:
    """Return a person who types, and who need not type again what the file of a stopped run has already, and how many
    messages that file has.

    With a person on both sides the lines of the file are theirs in turn. Raises `InputError` where the file cannot be
    written, is no output of these commands, or is one of another set-up and nobody said to overwrite it.
    """
    check_writable(play.out)
    if not play.out.exists():
        return cast.person(), 0
    default = dict.fromkeys(JUDGING)
    now = default | play.config
    try:
        found = json.loads(play.out.read_text(encoding="utf-8"))
        before = default | (found.get("config") or {"jury_llm_models": found["jury"]} | found)
        differs = [f"`{n}` {before[n]!r} there and {now[n]!r} here" for n in now if before[n] != now[n]]
        differs += ["the other command"] * (("config" in found) != (len(play.arms) > 1))
        messages = [turn for turn in found["messages"] if turn["status"] != "error"]
        typed = {"agent": play.agent.id == TYPED, "interrogator": play.interrogator.id == TYPED}
        left = iter([turn["text"] for turn in messages if typed[turn["speaker"]]])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{play.out} exists and is no file of this command; choose another name.") from error
    if differs and not play.force:
        other = f"is the output of another set-up ({'; '.join(differs)})"
        raise InputError(f"{play.out} {other}; choose another name, or add --force to overwrite it.")
    if differs:
        return cast.person(), 0
    return cast.person(lambda shown: next(left, None) or input(shown)), len(messages)
