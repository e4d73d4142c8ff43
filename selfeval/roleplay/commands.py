"""What `selfeval roleplay` and `selfeval compare` do: one conversation, judged while it goes on, as published files.

The file is written anew, whole, whenever an answer or a verdict arrives. Every reply is in the store, so that the same
command run again goes on where it was stopped and ends with an equal file; what a person typed is read from the file.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from selfeval.asking.client import Client, Tasks
from selfeval.errors import InputError
from selfeval.files import check_writable, write_whole
from selfeval.models import Model
from selfeval.roleplay import cast, jury, panel
from selfeval.roleplay.conversation import converse
from selfeval.roleplay.transcripts import TYPED, Conversation, Exchange

INDEPENDENT, DEBATE = "independent", "debate"
METHODS = {INDEPENDENT: "independent", DEBATE: "chateval_debate_one_by_one"}  # names in the published file
HEARD = ("role_play_llm_model", "interrogator_llm_model", "agent_persona", "strategy", "seed")  # what lines answer to


@dataclass(frozen=True)
class Play:
    """One run of a command. arms: the juries that judge every answer. out: the file. force: also one of another
    set-up. The rest as in `converse`."""

    out: Path
    agent: Model | None
    interrogator: Model | None
    jury: panel.Jury
    arms: tuple[str, ...]
    turns: int
    persona: str = "support"
    strategy: str = "probing"
    temperature: float = 0.7
    tokens: int = 0
    seed: int = 0
    feedback: bool = False
    force: bool = False

    @property
    def command(self) -> str:
        """Return the command whose arms these are."""
        return "compare" if INDEPENDENT in self.arms else "roleplay"

    def config(self) -> dict:
        """Return what was asked for, by the published names and then ours."""
        agent, interrogator = self.players()
        return {
            "role_play_llm_model": agent.id,
            "interrogator_llm_model": interrogator.id,
            "jury_llm_models": [model.id for model in self.jury.jurors],
            "max_turns": self.turns,
            "debate_rounds": self.jury.rounds,
            "agent_persona": self.persona,
            "strategy": self.strategy,
            "temperature": self.temperature,
            "max_tokens": self.tokens,
            "seed": self.seed,
            "feedback": self.feedback,
        }

    def players(self) -> tuple[Model, Model]:
        """Return agent and interrogator, also where the persona or strategy needs no model."""
        persona = cast.role(self.persona, cast.personas(), "agent-persona")
        strategy = cast.role(self.strategy, cast.strategies(), "strategy")
        return cast.player(persona, self.agent, self.seed), cast.player(strategy, self.interrogator, self.seed)

    def warnings(self) -> list[str]:
        """Return a sentence for everything that weakens this jury."""
        return panel.warnings(self.jury, [self.players()[0].id], self.arms)


class Log:
    """What is known so far: the conversation, and the statements of every verdict that has been reached."""

    def __init__(self, play: Play):
        self.play, self.conversation, self.verdicts = play, None, {}

    def scores(self, turn: int, arm: str) -> list[float | None]:
        """Return the last round's scores in the jury's order, None for a juror without one; [] before the verdict."""
        if (turn, arm) not in self.verdicts:
            return []
        found = {(row["juror"], row["persona"]): row["score"] for row in jury.last_round(self.verdicts[turn, arm])}
        return [found.get(seat) for seat in self.seats(arm)]

    def score(self, turn: int, arm: str) -> float | None:
        """Return the verdict: the mean of the scores that there are, or what the jury aggregates by."""
        return jury.decide(self.verdicts.get((turn, arm), []), self.play.jury.aggregation)

    def seats(self, arm: str) -> list[tuple[str, str | None]]:
        """Return the jurors as (name, persona), in the order in which they are named."""
        seats = [(seat.name, seat.persona) for seat in self.play.jury.seats(arm, 0, 1)]
        names, personas = [seat.name for seat in self.play.jury.named()], [None, *self.play.jury.personas]
        return sorted(seats, key=lambda seat: (names.index(seat[0]), personas.index(seat[1])))

    def exchanges(self) -> list[Exchange]:
        """Return the exchanges so far."""
        return self.conversation.exchanges() if self.conversation else []

    def ending(self) -> str:
        """Return why the conversation could not go on."""
        last = self.conversation.turns[-1]
        return f"the {last.speaker}'s message is {last.status}: {last.more.get('error', 'no text')}"

    def rounds(self, turn: int, arm: str) -> list[list[dict]]:
        """Return every statement of a verdict, round by round, without what was sent: the file is written often."""
        rare = ("served_by", "reasoning", "adapted", "asked_again")
        rows = [
            {name: value for name, value in row.items() if name != "messages" and (value or name not in rare)}
            for row in self.verdicts.get((turn, arm), [])
        ]
        numbers = sorted({row["round"] for row in rows})
        return [[row for row in rows if row["round"] == number] for number in numbers]


def interaction(log: Log) -> dict:
    """Return the output of `selfeval roleplay`."""
    config = log.play.config()
    return {
        "role_play_llm_model": config.pop("role_play_llm_model"),
        "interrogator_llm_model": config.pop("interrogator_llm_model"),
        "jury": config.pop("jury_llm_models"),
        "interaction": [
            {
                "turn": exchange.turn,
                "question": exchange.question,
                "answer": exchange.answer,
                "jury_scores": log.scores(exchange.turn, DEBATE),
                "avg_human_score": log.score(exchange.turn, DEBATE),
                "status": exchange.status,
                "rounds": log.rounds(exchange.turn, DEBATE),
            }
            for exchange in log.exchanges()
        ],
        "seats": [{"juror": juror, "persona": persona} for juror, persona in log.seats(DEBATE)],
        **config,
        **_conversation(log),
    }


def comparison(log: Log) -> dict:
    """Return the output of `selfeval compare`.

    The averages are over the turns that have that jury's score; the overall delta is over the turns that have both.
    """
    turns = []
    for exchange in log.exchanges():
        old, new = (log.score(exchange.turn, arm) for arm in (INDEPENDENT, DEBATE))
        turns.append(
            {
                "turn": exchange.turn,
                "question": exchange.question,
                "answer": exchange.answer,
                "old_eval": _evaluation(log, exchange.turn, INDEPENDENT),
                "new_eval": _evaluation(log, exchange.turn, DEBATE),
                "score_delta": None if old is None or new is None else new - old,
                "status": exchange.status,
            }
        )
    return {
        "config": log.play.config(),
        "summary": {
            "old_eval_avg": _mean([turn["old_eval"]["avg_human_score"] for turn in turns]),
            "new_eval_avg": _mean([turn["new_eval"]["avg_human_score"] for turn in turns]),
            "overall_delta": _mean([turn["score_delta"] for turn in turns]),
        },
        "turns": turns,
        "seats": {
            METHODS[arm]: [{"juror": juror, "persona": persona} for juror, persona in log.seats(arm)] for arm in METHODS
        },
        **_conversation(log),
    }


def _evaluation(log: Log, turn: int, arm: str) -> dict:
    rounds = {"debate_rounds": log.play.jury.rounds} if arm == DEBATE else {}
    return {
        "method": METHODS[arm],
        **rounds,
        "per_juror_scores": log.scores(turn, arm),
        "avg_human_score": log.score(turn, arm),
        "rounds": log.rounds(turn, arm),
    }


def _conversation(log: Log) -> dict:
    """Return the conversation itself, with what every message cost, and how it ended."""
    if log.conversation is None:
        return {"conversation_id": None, "status": "ok", "messages": []}
    turns = [turn.to_dict() for turn in log.conversation.turns]
    return {"conversation_id": log.conversation.conversation_id, "status": log.conversation.status, "messages": turns}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


async def run(
    client: Client,
    play: Play,
    report: Callable[[Log], dict],
    *,
    read: Callable[[str], str] = input,
    tell: Callable[[str], None] = lambda line: None,
) -> Log:
    """Hold the conversation, have every arm judge each answer as soon as it exists, and write the file all the while.

    report: `interaction` or `comparison`. read: what a person types with. tell: takes one line per verdict. Returns
    the log; its conversation's status says whether all turns were held.
    """
    log, judging = Log(play), {}
    reader, held = _reader(play, read)
    agent, interrogator = (reader if model.id == TYPED else model for model in play.players())

    def write() -> None:
        if log.conversation is None or len(log.conversation.turns) < held:
            return  # the file holds lines of a person that are not repeated yet, and may never be
        write_whole(play.out, json.dumps(report(log), indent=2, ensure_ascii=False) + "\n")

    async def judge(conversation: Conversation, turn: int, arm: str) -> None:
        log.verdicts[turn, arm] = await jury.verdict(client, play.jury, conversation, arm, turn=turn)
        write()
        score, scores = log.score(turn, arm), log.scores(turn, arm)
        shown = " ".join("-" if one is None else f"{one:.2f}" for one in scores)
        tell(f"turn {turn}  {METHODS[arm]}: {'no score' if score is None else f'{score:.2f}'}  [{shown}]")

    async with Tasks() as group:

        def on_exchange(conversation: Conversation, exchange: Exchange) -> None:
            log.conversation = conversation
            write()
            for arm in play.arms:
                judging[exchange.turn, arm] = group.create_task(judge(conversation, exchange.turn, arm))

        async def feedback(conversation: Conversation, exchange: Exchange) -> str:
            await judging[exchange.turn, play.arms[-1]]
            return _feedback(log.score(exchange.turn, play.arms[-1]))

        [log.conversation] = await converse(
            client, interrogator, agent, strategy=play.strategy, persona=play.persona, turns=play.turns,
            temperature=play.temperature, tokens=play.tokens, seed=play.seed, on_exchange=on_exchange,
            feedback=feedback if play.feedback else None, also=play.jury.jurors, label=None,
        )  # fmt: skip
    write()
    return log


def _feedback(score: float | None) -> str:
    said = "gave no score" if score is None else f"gave the last answer {score:.2f}"
    return f"The jury that reads along {said}, on a scale from 0, surely a program, to 1, surely a human being."


def _reader(play: Play, read: Callable[[str], str]) -> tuple[Model, int]:
    """Return a person who types, and who need not type again what the file of a stopped run has already, and how many
    messages that file has up to the person's last.

    With a person on both sides the lines of the file are theirs in turn. Raises `InputError` where the file cannot be
    written, is no output of these commands, or is one of another set-up and nobody said to overwrite it.
    """
    check_writable(play.out)
    if not play.out.exists():
        return cast.person(read), 0
    now, (before, messages) = {"command": play.command} | play.config(), _found(play)
    differs = [f"`{name}` {before[name]!r} there and {now[name]!r} here" for name in now if before[name] != now[name]]
    typed = {side for side, part in (("agent", "agent_persona"), ("interrogator", "strategy")) if before[part] == TYPED}
    lines = [text for speaker, text in messages if speaker in typed]
    if differs and not play.force:
        people = ", with what somebody typed" * bool(lines)
        raise InputError(
            f"{play.out} is the output of another set-up ({'; '.join(differs)}){people}; "
            "choose another name for the output, or add --force to overwrite it."
        )
    held = 0 if differs else max((k for k, (speaker, _) in enumerate(messages, 1) if speaker in typed), default=0)
    lines = iter(lines if all(now[name] == before[name] for name in HEARD) else [])
    return cast.person(lambda shown: next(lines, None) or read(shown)), held


def _found(play: Play) -> tuple[dict, list[tuple[str, str]]]:
    """Return the set-up of the output that is there, and its messages as (speaker, text)."""
    try:
        content = json.loads(play.out.read_text(encoding="utf-8")) if play.out.is_file() else None
        if "interaction" in content:
            before = content | {"command": "roleplay", "jury_llm_models": content["jury"]}
        else:
            before = content["config"] | {"command": "compare"}
        before = {name: before[name] for name in ("command", *play.config())}
        return before, [(turn["speaker"], turn["text"]) for turn in content["messages"] if turn["status"] != "error"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{play.out} exists and is no file of this command; choose another name for the output."
        ) from error
