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
from selfeval.models import Model
from selfeval.roleplay import cast, jury
from selfeval.roleplay.conversation import converse
from selfeval.roleplay.transcripts import TYPED, Conversation, render
from selfeval.roleplay.verdicts import decide, last_round

METHODS = {"independent": "independent", "debate": "chateval_debate_one_by_one"}  # arms, as published files call them
COMMANDS = {("debate",): "roleplay", ("independent", "debate"): "compare"}  # by their arms
HEARD = ("role_play_llm_model", "interrogator_llm_model", "agent_persona", "strategy", "seed")  # what lines answer to
RARE = ("served_by", "reasoning", "adapted", "asked_again")  # of statements: in the file where there is one


@dataclass
class Play:
    """One run of a command, and what it has brought so far.

    arms: the juries that judge every answer. out: the file. force: also one of another set-up. The rest as in
    `converse`. verdicts: the statements by turn and arm.
    """

    out: Path
    agent: Model | None
    interrogator: Model | None
    jury: jury.Jury
    arms: tuple[str, ...]
    turns: int
    persona: str = "support"
    strategy: str = "probing"
    temperature: float = 0.7
    tokens: int = 0
    seed: int = 0
    feedback: bool = False
    force: bool = False
    conversation: Conversation | None = None
    verdicts: dict[tuple[int, str], list[dict]] = field(default_factory=dict)

    def players(self) -> tuple[Model, Model]:
        """Return agent and interrogator, also where the persona or strategy needs no model."""
        persona = cast.role(self.persona, cast.personas(), "agent-persona")
        strategy = cast.role(self.strategy, cast.strategies(), "strategy")
        return cast.player(persona, self.agent, self.seed), cast.player(strategy, self.interrogator, self.seed)

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

    def seats(self, arm: str) -> list[dict]:
        """Return the jurors of an arm in the order in which they and their personas are named."""
        seats = [(seat.name, seat.persona) for seat in self.jury.seats(arm, 0, 1)]
        names, personas = cast.numbered([model.id for model in self.jury.jurors]), [None, *self.jury.personas]
        seats.sort(key=lambda seat: (names.index(seat[0]), personas.index(seat[1])))
        return [{"juror": juror, "persona": persona} for juror, persona in seats]

    def score(self, turn: int, arm: str) -> float | None:
        """Return the verdict: the mean of the scores that there are."""
        return decide(self.verdicts.get((turn, arm), []), self.jury.aggregation)

    def evaluation(self, turn: int, arm: str) -> dict:
        """Return what an arm said of an answer: scores in the order of the seats (none before the verdict), its rounds.

        A statement stands there without what was sent, since the file is written often.
        """
        rows = self.verdicts.get((turn, arm), [])
        found = {(row["juror"], row["persona"]): row["score"] for row in last_round(rows)}
        seats = self.seats(arm) if (turn, arm) in self.verdicts else []
        kept = [
            {name: value for name, value in row.items() if name != "messages" and (value or name not in RARE)}
            for row in sorted(rows, key=lambda row: row["round"])
        ]
        return {
            "method": METHODS[arm],
            **({"debate_rounds": self.jury.rounds} if arm == "debate" else {}),
            "per_juror_scores": [found.get((seat["juror"], seat["persona"])) for seat in seats],
            "avg_human_score": self.score(turn, arm),
            "rounds": [list(part) for _, part in groupby(kept, lambda row: row["round"])],
        }

    def output(self) -> dict:
        """Return what the command writes: the published fields first."""
        said = [exchange._asdict() for exchange in self.conversation.exchanges()]
        seats = {METHODS[arm]: self.seats(arm) for arm in self.arms}
        known = {
            "conversation_id": self.conversation.conversation_id,
            "status": self.conversation.status,
            "messages": [turn.to_dict() for turn in self.conversation.turns],
        }
        if COMMANDS[self.arms] == "compare":
            turns = [self._compared(exchange) for exchange in said]
            return {"config": self.config(), "summary": _summary(turns), "turns": turns, "seats": seats, **known}
        config = self.config()
        return {
            "role_play_llm_model": config.pop("role_play_llm_model"),
            "interrogator_llm_model": config.pop("interrogator_llm_model"),
            "jury": config.pop("jury_llm_models"),
            "interaction": [self._judged(exchange) for exchange in said],
            "seats": seats[METHODS["debate"]],
            **config,
            **known,
        }

    def _judged(self, said: dict) -> dict:
        status, found = said.pop("status"), self.evaluation(said["turn"], "debate")
        scores = {"jury_scores": found["per_juror_scores"], "avg_human_score": found["avg_human_score"]}
        return said | scores | {"status": status, "rounds": found["rounds"]}

    def _compared(self, said: dict) -> dict:
        status = said.pop("status")
        old, new = (self.evaluation(said["turn"], arm) for arm in METHODS)
        scores = old["avg_human_score"], new["avg_human_score"]
        delta = None if None in scores else scores[1] - scores[0]
        return said | {"old_eval": old, "new_eval": new, "score_delta": delta, "status": status}


def _summary(turns: Sequence[dict]) -> dict:
    """Return the averages over the turns that have that jury's score; the overall delta over those that have both."""
    return {
        "old_eval_avg": _mean([turn["old_eval"]["avg_human_score"] for turn in turns]),
        "new_eval_avg": _mean([turn["new_eval"]["avg_human_score"] for turn in turns]),
        "overall_delta": _mean([turn["score_delta"] for turn in turns]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


async def run(
    client: Client, play: Play, *, read: Callable[[str], str] = input, tell: Callable[[str], None] = lambda line: None
) -> Conversation:
    """Hold the conversation, have every arm judge each answer as soon as it exists, and write the file all the while.

    read: what a person types with. tell: takes one line per verdict, and at the end the conversation as text. Returns
    the conversation; its status says whether all turns were held.
    """
    judging = {}
    reader, held = _reader(play, read)
    agent, interrogator = (reader if model.id == TYPED else model for model in play.players())

    def write() -> None:
        if len(play.conversation.turns) >= held:  # else the file has lines of a person that may never be said again
            write_whole(play.out, json.dumps(play.output(), indent=2, ensure_ascii=False) + "\n")

    async def judge(conversation: Conversation, turn: int, arm: str) -> None:
        play.verdicts[turn, arm] = await jury.verdict(client, play.jury, conversation, arm, turn)
        write()
        score = play.score(turn, arm)
        tell(f"turn {turn}  {METHODS[arm]}: {'no score' if score is None else f'{score:.2f}'}")

    async with Tasks() as group:

        def on_exchange(conversation: Conversation) -> None:
            play.conversation = conversation
            write()
            turn = len(conversation.exchanges())
            for arm in play.arms:
                judging[turn, arm] = group.create_task(judge(conversation, turn, arm))

        async def feedback(conversation: Conversation) -> str:
            turn = len(conversation.exchanges())
            await judging[turn, play.arms[-1]]
            score = play.score(turn, play.arms[-1])
            said = "gave no score" if score is None else f"gave the last answer {score:.2f}"
            return f"The jury that reads along {said}, on a scale from 0, surely a program, to 1, surely a human being."

        [play.conversation] = await converse(
            client, interrogator, agent, strategy=play.strategy, persona=play.persona, turns=play.turns,
            temperature=play.temperature, tokens=play.tokens, seed=play.seed, on_exchange=on_exchange,
            feedback=feedback if play.feedback else None, also=play.jury.jurors, label=None,
        )  # fmt: skip
    write()
    tell(str(render(play.conversation, [row for rows in play.verdicts.values() for row in rows])))
    return play.conversation


def _reader(play: Play, read: Callable[[str], str]) -> tuple[Model, int]:
    """Return a person who types, and who need not type again what the file of a stopped run has already, and how many
    messages that file has up to the person's last.

    With a person on both sides the lines of the file are theirs in turn. Raises `InputError` where the file cannot be
    written, is no output of these commands, or is one of another set-up and nobody said to overwrite it.
    """
    check_writable(play.out)
    if not play.out.exists():
        return cast.person(read), 0
    now = {"command": COMMANDS[play.arms]} | play.config()
    try:
        found = json.loads(play.out.read_text(encoding="utf-8"))
        before = (
            {"command": "roleplay", "jury_llm_models": found["jury"], **found}
            if "interaction" in found
            else {"command": "compare", **found["config"]}
        )
        messages = [(turn["speaker"], turn["text"]) for turn in found["messages"] if turn["status"] != "error"]
        differs = [
            f"`{name}` {before[name]!r} there and {now[name]!r} here" for name in now if before[name] != now[name]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{play.out} exists and is no file of this command; choose another name for the output."
        ) from error
    typed = {side for side, part in (("agent", "agent_persona"), ("interrogator", "strategy")) if before[part] == TYPED}
    places = [k for k, (speaker, _) in enumerate(messages) if speaker in typed]
    if differs and not play.force:
        people = ", with what somebody typed" * bool(places)
        raise InputError(
            f"{play.out} is the output of another set-up ({'; '.join(differs)}){people}; "
            "choose another name for the output, or add --force to overwrite it."
        )
    same = all(now[name] == before[name] for name in HEARD)
    lines = iter([messages[k][1] for k in places] if same else [])
    held = places[-1] + 1 if places and not differs else 0
    return cast.person(lambda shown: next(lines, None) or read(shown)), held
