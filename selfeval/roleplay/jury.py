"""A jury over conversations: independent votes, controls, and debates (ChatEval, arXiv 2308.07201, section 2).

An arm says what a juror sees besides rubric and conversation when it speaks:

  independent           nothing, and it has no persona
  personas              nothing; the private vote before a debate
  reask                 its own earlier statements, and nobody else's
  sham                  its own, and what jurors said in a debate on another conversation
  debate                every statement made so far; jurors speak one by one
  simultaneous          every statement of the rounds before; jurors speak at once
  simultaneous_summary  a running summary of the rounds before

RECORD, one row per statement (JSON lines, `verdicts.jsonl`):
`conversation_id`, `source` (human | model), `turn`, `scope`, `arm`, `role` (juror | summary | judge), `round` (from 1;
a blind vote and a judge come after the others), `blind` (nobody saw this vote), `position` (speaking order, from 1),
`juror` (model id), `persona` (name or null), `agent` (id of the model judged, "human", or "" where unknown),
`same_family` (bool), `score` (0..1 or null), `status` (ok | no_answer | refusal | filtered | length | empty | error),
`dimensions` ({name: score or null}), `statement` (as other jurors see it), `reply` (raw, or the error), `repaired` (a
second call asked for the score alone), `repair_reply`, `usage`, `cost`, `latency` (of both calls), `request_id`,
`served_model`; of jurors also `peer_mean` (mean of the others' latest scores that it was shown, or null). `pair` is the
human conversation that this one is matched with. Statistics take the rows with `role` = "juror".
"""

import asyncio
import random
from collections.abc import Sequence
from functools import cache

from selfeval import DATA
from selfeval.client import Client, Progress
from selfeval.errors import InputError
from selfeval.models import Model
from selfeval.providers import Response, is_computed
from selfeval.records import read_jsonl
from selfeval.roleplay import prompts, verdicts
from selfeval.roleplay.panel import ARMS, SINGLE, Jury, Seat, personas, same_family
from selfeval.roleplay.transcripts import Conversation, Exchange

REPAIRED = ("ok", "empty", "length")  # what a second call may mend; a refusal is an answer of its own


async def verdict(
    client: Client, jury: Jury, conversation: Conversation, arm: str, *, turn: int = 0, index: int = 0,
    peers: Sequence[dict] = (), step=lambda: None,
) -> list[dict]:  # fmt: skip
    """Return the records of one verdict, in order of round and position; [] where the answer judged is empty.

    Start it as a task as soon as the turn's answer exists: nothing after that turn is looked at. turn: the turn judged,
    0 = the last. index: the conversation's number in the run (from 0), for the Latin squares. peers: records of a
    debate on another conversation, which the arm `sham` shows. step: called after every statement. A failed call is a
    record without a score.
    """
    if arm not in ARMS:
        raise InputError(f"Unknown arm {arm!r}; known are {', '.join(ARMS)}.")
    if arm == "sham" and not peers:
        raise InputError("The arm `sham` needs `peers`, the records of a debate on another conversation.")
    turn = turn or len(conversation.exchanges())
    if not judged_turns(jury, conversation, turn):
        return []
    exchanges = conversation.context(turn) if jury.scope == "turn" else conversation.exchanges()[:turn]
    return await _Hearing(client, jury, conversation, exchanges, arm, index, peers, step).run()


def judged_turns(jury: Jury, conversation: Conversation, turn: int = 0) -> list[int]:
    """Return the turns on which there is a verdict (turn: only that one, if there is): those with an answer.

    With the scope `conversation` it is the last one, if there is an answer anywhere.
    """
    exchanges = conversation.exchanges()
    answered = [e.turn for e in exchanges if e.answer.strip()]
    if jury.scope == "conversation" and answered:
        answered = [turn or len(exchanges)]
    return [t for t in answered if not turn or t == turn]


class _Hearing:
    """One verdict in the making."""

    def __init__(
        self, client: Client, jury: Jury, conversation: Conversation, exchanges: list[Exchange], arm: str, index: int,
        peers: Sequence[dict], step,
    ):  # fmt: skip
        self.client, self.jury, self.arm, self.step = client, jury, arm, step
        self.turn, self.rubrics = exchanges[-1].turn, jury.scores()
        shown = exchanges[-1:] if jury.scope == "turn" and jury.context == "isolated" else exchanges
        self.shared = prompts.conversation_part(self.rubrics, shown)
        self.judged = prompts.judged_part(jury.scope, self.turn)
        self.evidence = "\n".join(text for exchange in shown for text in (exchange.question, exchange.answer))
        self.seats = jury.seats(arm, index, self.turn)
        self.peers = [row for row in peers if row["role"] == "juror"]
        self.said: list[dict] = []
        self.summary: str | None = None
        self.conversation, self.agent = conversation, conversation.agent_model

    async def run(self) -> list[dict]:
        rows = []
        rounds = 1 if self.arm in SINGLE else self.jury.rounds
        for number in range(1, rounds + 1):
            rows += await self._round(number)
            if self.arm == "simultaneous_summary" and (number < rounds or self.jury.blind or self.jury.judge):
                rows.append(await self._summarise(number))
        if self.jury.blind and self.arm not in SINGLE:
            rounds += 1
            rows += await self._round(rounds, blind=True)
        if self.jury.judge:
            rows.append(await self._decide(rounds + 1))
        return rows

    async def _round(self, number: int, blind: bool = False) -> list[dict]:
        places = list(enumerate(self.seats, 1))
        if self.arm == "debate" and not blind:  # the only statements that wait for each other
            rows = []
            for position, seat in places:
                row = await self._speak(number, position, seat, blind)
                rows.append(row)
                self.said.append(row)
            return rows
        rows = await asyncio.gather(*(self._speak(number, position, seat, blind) for position, seat in places))
        self.said += rows
        return list(rows)

    def _heard(self, number: int, position: int, blind: bool) -> list[dict]:
        """Return the statements that a juror sees when it speaks."""
        if self.arm in SINGLE:
            return []
        if self.arm not in ("reask", "sham"):
            return self.said
        own = [row for row in self.said if row["position"] == position]
        if self.arm == "reask":
            return own
        earlier = [
            row
            for row in self.peers
            if row["position"] != position and (row["round"], row["position"] * (not blind)) < (number, position)
        ]
        return sorted([*own, *earlier], key=lambda row: (row["round"], row["position"]))

    async def _speak(self, number: int, position: int, seat: Seat, blind: bool) -> dict:
        constrained = self.jury.constrained(seat.model)
        heard = self._heard(number, position, blind)
        log = prompts.log_part(heard, self.summary)
        messages = prompts.statement(
            self.shared, log, self.judged, self.rubrics, position=position, constrained=constrained, blind=blind,
            persona=seat.persona and personas()[seat.persona]["persona"],
        )  # fmt: skip
        row = await self._record("juror", number, position, seat, messages, constrained, blind)
        return row | {"peer_mean": _peer_mean(heard, position)}

    async def _decide(self, number: int) -> dict:
        model = self.jury.judge
        log = prompts.log_part(self.said, self.summary)
        constrained = self.jury.constrained(model)
        messages = prompts.final_judgement(self.shared, log, self.judged, self.rubrics, constrained)
        return await self._record("judge", number, 1, Seat(model), messages, constrained, True)

    async def _record(
        self, role: str, number: int, position: int, seat: Seat, messages: list[dict], constrained: bool, blind: bool
    ) -> dict:
        """Ask for a statement, once more for its score where it has none, and return the row."""
        tags = [rubric["tag"] for rubric in self.rubrics.values()]
        first = await self._ask(seat.model, messages, constrained, reason=True)
        read = self._read(first, tags)
        reply, score = first, read.scores[tags[0]]
        second = None
        if score is None and first.status in REPAIRED:
            again = prompts.repair(messages, first.text, self.rubrics, constrained)
            second = await self._ask(seat.model, again, constrained, reason=False)
            if (found := self._read(second, tags)).scores[tags[0]] is not None:
                reply, score = second, found.scores[tags[0]]
                read = verdicts.Verdict(found.scores, read.reason)
        status = "ok" if score is not None else "no_answer" if first.status == "ok" else first.status
        self.step()
        return self._row(role, number, position, seat, blind) | {
            "score": score,
            "status": status,
            "dimensions": {name: read.scores[r["tag"]] for name, r in self.rubrics.items() if name != "human"},
            "statement": _statement(read.reason, score, tags[0]),
            **_costs(first, second, reply),
        }

    async def _summarise(self, number: int) -> dict:
        """Have the rounds so far summed up; the summary replaces what was said."""
        model = self.jury.summariser or self.jury.jurors[0]
        messages = prompts.summary(self.shared, prompts.log_part(self.said, self.summary))
        response = await self._send(model, messages, {})
        text = verdicts.shorten(verdicts.without_thinking(response.text))
        if response.status in ("ok", "length") and text:
            self.summary, self.said = text, []
        row = self._row("summary", number, 1, Seat(model), blind=False)
        return row | {"score": None, "status": response.status, "dimensions": {}, "statement": text} | _costs(response)

    def _row(self, role: str, number: int, position: int, seat: Seat, blind: bool) -> dict:
        return {
            "conversation_id": self.conversation.conversation_id,
            "pair": self.conversation.meta.get("pair"),
            "source": self.conversation.source,
            "turn": self.turn,
            "scope": self.jury.scope,
            "arm": self.arm,
            "role": role,
            "round": number,
            "blind": blind,
            "position": position,
            "juror": seat.model.id,
            "persona": seat.persona,
            "agent": self.agent,
            "same_family": same_family(seat.model, self.agent),
        }

    def _read(self, response: Response, tags: list[str]) -> verdicts.Verdict:
        if response.status != "ok":  # a reply that was cut off holds no score: the last one may be missing
            return verdicts.Verdict(dict.fromkeys(tags), _reason(response, tags))
        return verdicts.read(response.text, tags, self.evidence)

    async def _ask(self, model: Model, messages: list[dict], constrained: bool, reason: bool) -> Response:
        parameters = {}
        if constrained:
            longest = None if model.provider.hosted else 100
            form = prompts.score_format(self.rubrics, reason=reason, longest=longest)
            parameters["response_format"] = form
        return await self._send(model, messages, parameters)

    async def _send(self, model: Model, messages: list[dict], parameters: dict) -> Response:
        tokens = self.jury.tokens or max(prompts.SHORTEST, model.provider.answer_tokens)
        own = {"temperature": self.jury.temperature, "max_tokens": tokens}
        return await self.client.chat(model, messages, seed=self.jury.seed, **own, **parameters)


def _reason(response: Response, tags: list[str]) -> str:
    """Return what a juror said before its reply was cut off; of a refusal, its words; of an error, nothing."""
    if response.status == "error":
        return ""
    text = verdicts.read(response.text, tags).reason
    opened = text.removeprefix("{").lstrip().removeprefix('"reason"').lstrip(" :")
    return opened.strip('" ') if opened != text else text


def _peer_mean(heard: Sequence[dict], me: int) -> float | None:
    """Return the mean of the latest scores of the other jurors that a juror was shown."""
    latest = {row["position"]: row["score"] for row in heard if row["position"] != me and row["score"] is not None}
    return sum(latest.values()) / len(latest) if latest else None


def _statement(reason: str, score: float | None, tag: str) -> str:
    """Return what other jurors see: the reason, and the score on a line of its own where there is one."""
    return "\n".join(filter(None, [reason, "" if score is None else f"{tag}={score:g}"]))


def _costs(first: Response, second: Response | None = None, reply: Response | None = None) -> dict:
    both = [first, second] if second else [first]
    known = [r.cost for r in both if r.cost is not None]
    return {
        "reply": first.text if first.status != "error" else first.error,
        "repaired": second is not None,
        "repair_reply": second and (second.text if second.status != "error" else second.error),
        "usage": {k: sum(r.usage.get(k, 0) for r in both) for k in dict.fromkeys(k for r in both for k in r.usage)},
        "cost": sum(known) if len(known) == len(both) else None,
        "latency": round(sum(r.latency for r in both), 3),
        "request_id": (reply or first).request_id,
        "served_model": (reply or first).served_model,
    }


async def hold(
    client: Client, jury: Jury, conversations: Sequence[Conversation], arms: Sequence[str] = ("debate",),
    label: str | None = "statements",
) -> list[dict]:  # fmt: skip
    """Return the records of all verdicts on given conversations, in the order conversation, turn, arm.

    Verdicts are begun in this order, so that prompts which begin with the same text follow each other. The arm `sham`
    shows statements of the debate on another conversation of the run (same turn where it has that), or the recorded
    ones where there is one conversation. Raises `InputError` for an unknown arm, an arm given twice, or `sham` on
    several conversations without `debate`.
    """
    _check_arms(arms, conversations)
    design = [
        (index, turn, arm)
        for index, conversation in enumerate(conversations)
        for turn in judged_turns(jury, conversation)
        for arm in arms
    ]
    places = asyncio.Semaphore(_places(client, jury))
    tasks: dict[tuple[int, int, str], asyncio.Task] = {}

    async def one(index: int, turn: int, arm: str, step) -> list[dict]:
        peers: Sequence[dict] = ()
        if arm == "sham":  # before a place is taken, which the debate may need
            donor = _donor(jury, conversations, index, turn)
            peers = await tasks[*donor, "debate"] if donor else _recorded(jury)
        async with places:
            return await verdict(
                client, jury, conversations[index], arm, turn=turn, index=index, peers=peers, step=step
            )

    total = sum(_statements(jury, arm) for _, _, arm in design)
    with Progress(label, total, total, client.tally) as progress:
        try:
            async with asyncio.TaskGroup() as group:
                for key in design:
                    tasks[key] = group.create_task(one(*key, progress.step))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
    return [row for key in design for row in tasks[key].result()]


def _check_arms(arms: Sequence[str], conversations: Sequence[Conversation]) -> None:
    if isinstance(arms, str) or not arms:
        raise InputError(f"`arms` must be a list of arms ({', '.join(ARMS)}), got {arms!r}.")
    for arm in arms:
        if arm not in ARMS or list(arms).count(arm) > 1:
            raise InputError(f"Unknown arm {arm!r}, or given twice; known are {', '.join(ARMS)}.")
    if "sham" in arms and "debate" not in arms and len(conversations) > 1:
        raise InputError("The arm `sham` shows statements of a debate on another conversation: add `debate` to `arms`.")
    if not conversations:
        raise InputError("There is nothing to judge: no conversation.")


def _places(client: Client, jury: Jury) -> int:
    """Return how many verdicts are in the making at a time.

    Twice as many as there are places at the jurors' providers, so that a place never waits for a disk; one for the
    embedded model, whose server has the next prompt's beginning at hand while nothing else comes between.
    """
    places = {}
    for model in jury.jurors:
        provider = model.provider
        most = client.concurrency if is_computed(model) else min(client.concurrency, provider.concurrency)
        places[provider.name] = provider.embedded["settings"]["slots"] if provider.embedded else 2 * most
    return sum(places.values())


def _statements(jury: Jury, arm: str) -> int:
    rounds = 1 if arm in SINGLE else jury.rounds + jury.blind
    return len(jury.seats(arm, 0, 1)) * rounds + bool(jury.judge)


def _donor(jury: Jury, conversations: Sequence[Conversation], index: int, turn: int) -> tuple[int, int] | None:
    """Return index and turn of the other conversation whose statements are shown; None where there is no other.

    The next one in a seeded order of all: what its source is does not depend on whose statements it replaces.
    """
    order = list(range(len(conversations)))
    random.Random(f"{jury.seed} sham").shuffle(order)
    place = order.index(index)
    for donor in order[place + 1 :] + order[:place]:
        if turns := judged_turns(jury, conversations[donor]):
            return donor, turn if turn in turns else turns[min(turn, len(turns)) - 1]
    return None


@cache
def recorded_statements() -> tuple[dict, ...]:
    """Return the records of a debate of the embedded model on a conversation that belongs to no run."""
    return tuple(read_jsonl(DATA / "roleplay" / "sham_statements.jsonl"))


def _recorded(jury: Jury) -> Sequence[dict]:
    seats, rounds = (max(row[field] for row in recorded_statements()) for field in ("position", "round"))
    if len(jury.seats("sham", 0, 1)) > seats or jury.rounds > rounds:
        raise InputError(
            f"With one conversation the arm `sham` shows recorded statements, and the recorded debate has {seats} "
            f"jurors and {rounds} rounds; judge two conversations or more, or use fewer."
        )
    return recorded_statements()


def last_round(records: Sequence[dict]) -> list[dict]:
    """Return the jurors' records of a verdict's last round, in speaking order."""
    rows = [row for row in records if row["role"] == "juror"]
    last = max((row["round"] for row in rows), default=0)
    return sorted((row for row in rows if row["round"] == last), key=lambda row: row["position"])


def decide(records: Sequence[dict], aggregation: str = "mean") -> float | None:
    """Return the jury's score of one verdict: the judge's if there is one, else from the jurors' last round.

    mean: of the valid scores. majority: 1 where more than half of them lie above .5, 0 where more than half lie below,
    else .5. None without a valid score: silence is no vote.
    """
    judge = [row["score"] for row in records if row["role"] == "judge"]
    if judge and judge[-1] is not None:
        return judge[-1]
    scores = [row["score"] for row in last_round(records) if row["score"] is not None]
    if not scores:
        return None
    if aggregation == "mean":
        return sum(scores) / len(scores)
    human, bot = (sum(score > 0.5 for score in scores), sum(score < 0.5 for score in scores))
    return 1.0 if human > len(scores) / 2 else 0.0 if bot > len(scores) / 2 else 0.5
