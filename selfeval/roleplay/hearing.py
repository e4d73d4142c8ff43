"""One verdict in the making: who is asked in which round, what it sees, and the record of what it says."""

from collections.abc import Sequence

from selfeval.asking.client import Client
from selfeval.asking.request import Request, Response
from selfeval.errors import InputError
from selfeval.records import call_fields
from selfeval.roleplay import prompts, verdicts
from selfeval.roleplay.conversation import gather
from selfeval.roleplay.panel import SINGLE, Jury, Seat, personas, same_family
from selfeval.roleplay.transcripts import Conversation, Exchange
from selfeval.scoring import without_thinking
from selfeval.stats.votes import ARMS

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
        rows = await gather(self._speak(number, position, seat, blind) for position, seat in places)
        self.said += rows
        return rows

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
        first = await self._ask(seat, messages, constrained, reason=True)
        read = self._read(first, tags)
        reply, score = first, read.scores[tags[0]]
        second = None
        if score is None and first.status in REPAIRED:
            again = prompts.repair(messages, first.text, self.rubrics, constrained)
            second = await self._ask(seat, again, constrained, reason=False)
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
            **_costs(Request(seat.model, messages), first, second, reply),
        }

    async def _summarise(self, number: int) -> dict:
        """Have the rounds so far summed up; the summary replaces what was said."""
        model = self.jury.summariser or self.jury.jurors[0]
        messages = prompts.summary(self.shared, prompts.log_part(self.said, self.summary))
        response = await self._send(Seat(model), messages, {})
        text = verdicts.shorten(without_thinking(response.text))
        if response.status in ("ok", "length") and text:
            self.summary, self.said = text, []
        row = self._row("summary", number, 1, Seat(model), blind=False)
        said = {"score": None, "status": response.status, "dimensions": {}, "statement": text}
        return row | said | _costs(Request(model, messages), response)

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
            "juror": seat.name,
            "persona": seat.persona,
            "agent": self.agent,
            "same_family": same_family(seat.model, self.agent),
        }

    def _read(self, response: Response, tags: list[str]) -> verdicts.Verdict:
        if response.status != "ok":  # a reply that was cut off holds no score: the last one may be missing
            return verdicts.Verdict(dict.fromkeys(tags), _reason(response, tags))
        return verdicts.read(response.text, tags, self.evidence)

    async def _ask(self, seat: Seat, messages: list[dict], constrained: bool, reason: bool) -> Response:
        parameters = {}
        if constrained:
            length = None if seat.model.provider.hosted else (20, 80)
            form = prompts.score_format(self.rubrics, reason=reason, length=length)
            parameters["response_format"] = form
        return await self._send(seat, messages, parameters)

    async def _send(self, seat: Seat, messages: list[dict], parameters: dict) -> Response:
        tokens = self.jury.tokens or max(prompts.SHORTEST, seat.model.provider.answer_tokens)
        own = {"temperature": self.jury.temperature, "max_tokens": tokens, "seed": self.jury.seed}
        return await self.client.chat(seat.model, messages, sample=seat.number - 1, **own, **parameters)


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


def _costs(request: Request, first: Response, second: Response | None = None, reply: Response | None = None) -> dict:
    """Return the fields on the calls behind a statement; request: of the first one. reply: the one that counts."""
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
        **call_fields(request, reply or first),
        "asked_again": first.earlier or None,
    }
