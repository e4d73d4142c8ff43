"""A jury over conversations: independent votes, controls, and debates (ChatEval, arXiv 2308.07201, section 2).

An arm says what a juror sees besides rubric and conversation when it speaks:

  independent           nothing, and it has no persona
  personas              nothing; the private vote before a debate
  reask                 its own earlier statements, and nobody else's
  sham                  its own, and what jurors said in a debate on another conversation
  debate                every statement made so far; jurors speak one by one
  simultaneous          every statement of the rounds before; jurors speak at once
  simultaneous_summary  a running summary of the rounds before, by the first juror

RECORD, one row per statement (JSON lines, `verdicts.jsonl`):
`conversation_id`, `source` (human | model), `turn`, `scope`, `arm`, `role` (juror | summary | judge), `round` (from 1;
a blind vote and a judge come after the others), `blind` (nobody saw this vote), `position` (speaking order, from 1),
`juror` (model id), `persona` (name or null), `agent` (id of the model judged, "human", or "" where unknown),
`same_family` (bool), `score` (0..1 or null), `status` (ok | no_answer | refusal | filtered | length | empty | error),
`dimensions` ({name: score or null}), `statement` (as other jurors see it), `reply` (raw, or the error), `repaired` (a
second call asked for the score alone), `repair_reply`, `usage`, `cost`, `latency` (of both calls), `request_id`,
`served_model`, `served_by`, `reasoning`, `adapted` (of the reply that counts), `messages` (of the first call, as sent),
`asked_again` (statuses of earlier replies to it, or null); of jurors also `peer_mean` (mean of the others' latest
scores that it was shown, or null). `pair` is the human conversation that this one is matched with. Statistics take the
rows with `role` = "juror".
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from selfeval.errors import (
    InputError,
    check_at_least,
    check_flag,
    check_names,
    check_one_of,
    check_whole,
)
from selfeval.providers.client import Client, Tasks, gather, progress
from selfeval.providers.models import Model, check_part, get
from selfeval.providers.request import Request, Response
from selfeval.reading import parsing
from selfeval.records.tables import call_fields
from selfeval.roleplay import prompts as jury_prompts
from selfeval.roleplay import roles
from selfeval.roleplay import scoring as verdicts
from selfeval.roleplay.transcripts import Conversation
from selfeval.roleplay.votes import ARMS

SINGLE = ("independent", "personas")  # arms of one round
PUBLISHED = ("linguist", "psychologist", "manager")  # the personas of the published framework
REPAIRED = (
    "ok",
    "empty",
    "length",
)  # what a second call may mend; a refusal is an answer of its own


@dataclass(frozen=True)
class Seat:
    """One juror of one verdict: a model in a persona (None: without); number: its how many-th seat this is, from 1.

    Votes of one model in several seats are samples of it, each with the sample number of its seat.
    """

    model: Model
    persona: str | None = None
    number: int = 1

    @property
    def name(self) -> str:
        """Return what records call this juror."""
        return roles.seat_names([self.model.id] * self.number)[-1]


@dataclass(frozen=True)
class Jury:
    """Who judges, and how; one object for all conversations of a run.

    jurors: models or their ids; one alone takes all personas, one named k times takes k seats. personas: names
    in data/roleplay/jurors.yaml. rounds: of the arms in which jurors speak more than once. scope: what a
    verdict is about: the answer of one `turn`, all answers up to a turn (`prefix`), or the whole `conversation`
    once. words: how long a juror argues before its score; 0 is one short sentence, as in version 0.1. context:
    what is shown for a turn: the conversation so far (`rolling`) or its exchange alone (`isolated`). blind: one
    more round whose statements nobody sees. dimensions: further rubrics of data/roleplay/rubrics.yaml. judge:
    the model that decides after the jury ("": none). temperature, seed: of the jurors. Raises `InputError`
    naming the field that breaks a rule.
    """

    jurors: Sequence[Model | str]
    _: KW_ONLY
    personas: Sequence[str] = PUBLISHED
    rounds: int = 2
    words: int = 60
    scope: str = "turn"
    context: str = "rolling"
    blind: bool = False
    dimensions: Sequence[str] = ()
    judge: Model | str = ""
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self):
        check_one_of("scope", self.scope, jury_prompts.SCOPES)
        check_one_of("context", self.context, ("rolling", "isolated"))
        check_flag("blind", self.blind)
        check_whole("rounds", self.rounds, 1)
        check_whole("words", self.words, 0, jury_prompts.MOST_WORDS)
        check_whole("seed", self.seed)
        check_at_least("temperature", self.temperature)
        jurors = (
            [self.jurors]
            if isinstance(self.jurors, str | Model) or callable(self.jurors)
            else list(self.jurors)
        )
        for name, given in (("jurors", jurors), ("personas", self.personas)):
            if not given:
                raise InputError(f"`{name}` must name at least one, got {given!r}.")
        check_names("personas", self.personas, roles.jurors())
        check_names(
            "dimensions", self.dimensions, [name for name in roles.rubrics() if name != "human"]
        )
        object.__setattr__(
            self, "jurors", tuple(check_part(get(juror), "judge") for juror in jurors)
        )
        if self.judge:
            object.__setattr__(self, "judge", check_part(get(self.judge), "judge"))

    def members(self, arm: str, index: int) -> list[Seat]:
        """Return the jurors of the index-th conversation (from 0) as they are named.

        Several models: each takes one persona per conversation, and over max(jurors, personas) conversations every
        model plays every persona equally often. One model: it takes every persona, and votes once in `independent`.
        """
        ids = [model.id for model in self.jurors]
        seats = [
            Seat(model, number=ids[:k].count(model.id) + 1) for k, model in enumerate(self.jurors)
        ]
        if arm == "independent":
            return seats
        if len(seats) == 1:
            return [Seat(self.jurors[0], persona) for persona in self.personas]
        size = max(len(seats), len(self.personas))
        names = [
            self.personas[k % len(self.personas)]
            for k in latin_row(size, "persona", index, 0, self.seed)
        ]
        return [replace(seat, persona=name) for seat, name in zip(seats, names, strict=False)]

    def seats(self, arm: str, index: int, turn: int) -> list[Seat]:
        """Return the jurors in speaking order for a turn (from 1) of the index-th conversation (from 0)."""
        members = self.members(arm, index)
        return [members[k] for k in latin_row(len(members), "order", index, turn - 1, self.seed)]


def warnings(jury: Jury, agents: Iterable[str], arms: Sequence[str]) -> list[str]:
    """Return a sentence for what weakens a jury of these agents: one model in many seats, an agent's family."""
    seats, found = Counter(model.id for model in jury.jurors), []
    itself = "its votes are samples of one opinion, and what looks like a debate is one model with itself"
    for juror, n in seats.items():
        if n > 1 or (len(seats) == 1 and {*arms} != {"independent"}):
            found.append(
                f"One model, {juror}, sits in several seats: {itself}. Name models of different families."
            )
    for agent in dict.fromkeys(agents):
        if family := ", ".join(juror for juror in seats if roles.same_family(juror, agent)):
            found.append(
                f"The agent {agent} is judged by its own family ({family}): see `same_family`."
            )
    return found


def latin_row(size: int, name: str, row: int, column: int, seed: int) -> list[int]:
    """Return a permutation of range(size): row + column of a seeded Latin square, a new square per block of `size`.

    Over any aligned block of `size` rows every number stands at every place once, and so over columns.
    """
    draw = random.Random(f"{seed} {name} {size} {row // size} {column // size}")
    first, second = list(range(size)), list(range(size))
    draw.shuffle(first)
    draw.shuffle(second)
    return [first[(place + row + column) % size] for place in second]


# many verdicts --------------------------------------------------------------------------------------------------------


async def hold(
    client: Client,
    jury: Jury,
    conversations: Sequence[Conversation],
    arms: str | Sequence[str] = ("debate",),
) -> list[dict]:
    """Return the records of all verdicts on given conversations, in the order conversation, turn, arm.

    Verdicts are begun in this order, so that prompts which begin with the same text follow each other. The arm `sham`
    shows statements of the debate on another conversation of the run (same turn where it has that). What weakens the
    jury is printed before anybody is asked. Raises `InputError` for an unknown arm, an arm given twice, or `sham`
    without `debate` or a second conversation.
    """
    arms = [arms] if isinstance(arms, str) else list(arms)
    check_names("arms", arms, ARMS)
    turns = [judged_turns(jury.scope, conversation) for conversation in conversations]
    design = [
        (index, turn, arm) for index, judged in enumerate(turns) for turn in judged for arm in arms
    ]
    if not design:
        raise InputError(
            "There is nothing to judge: no conversation, or none with an answer of its agent."
        )
    if "sham" in arms and ("debate" not in arms or len({index for index, *_ in design}) < 2):
        said = "judge at least two, and have `debate` in `arms`"
        raise InputError(
            f"The arm `sham` shows statements of a debate on another conversation: {said}."
        )
    for sentence in warnings(
        jury, (one.agent_model for one in conversations), arms
    ):  # before a reply is paid for
        print(sentence, flush=True)
    places = asyncio.Semaphore(_places(client, jury))
    tasks: dict[tuple[int, int, str], asyncio.Task] = {}

    async def one(index: int, turn: int, arm: str) -> list[dict]:
        peers: Sequence[dict] = ()
        if arm == "sham":  # before a place is taken, which the debate may need
            peers = await tasks[*_donor(jury, turns, index, turn), "debate"]
        async with places:
            rows = await Hearing(client, jury, conversations[index], arm, turn, index, peers).run()
        bar.update()
        return rows

    with progress("verdicts", len(design)) as bar:
        async with Tasks() as group:
            for key in design:
                tasks[key] = group.create_task(one(*key))
    return [row for key in design for row in tasks[key].result()]


def judged_turns(scope: str, conversation: Conversation) -> list[int]:
    """Return the turns on which there is a verdict: those with an answer.

    With the scope `conversation` it is the last one, if there is an answer anywhere.
    """
    exchanges = conversation.exchanges()
    answered = [e.turn for e in exchanges if e.answer.strip()]
    return [len(exchanges)] if answered and scope == "conversation" else answered


def _places(client: Client, jury: Jury) -> int:
    """Return how many verdicts are in the making at a time.

    Twice as many as calls are in flight, so that a place never waits for a disk; one for the embedded model, whose
    server has the next prompt's beginning at hand while nothing else comes between.
    """
    if client.batch:
        return 1_000_000  # a batch takes all that wait
    embedded = [model.provider.embedded for model in jury.jurors if model.provider.embedded]
    return embedded[0]["settings"]["slots"] if embedded else 2 * client.concurrency


def _donor(jury: Jury, turns: Sequence[list[int]], index: int, turn: int) -> tuple[int, int]:
    """Return index and turn of the other conversation whose statements are shown.

    The next one in a seeded order of all: what its source is does not depend on whose statements it replaces. turns:
    those judged of each conversation.
    """
    order = list(range(len(turns)))
    random.Random(f"{jury.seed} sham").shuffle(order)
    place = order.index(index)
    donor = next(other for other in order[place + 1 :] + order[:place] if turns[other])
    return donor, turn if turn in turns[donor] else turns[donor][min(turn, len(turns[donor])) - 1]


# one verdict ----------------------------------------------------------------------------------------------------------


class Hearing:
    """One verdict in the making: who is asked in which round, what it sees, and the record of what it says.

    Run it as a task as soon as the turn's answer exists: nothing after that turn is looked at. index: the
    conversation's number in the run (from 0), for the Latin squares. peers: records of a debate on another
    conversation, which the arm `sham` shows. A failed call is a record without a score.
    """

    def __init__(
        self,
        client: Client,
        jury: Jury,
        conversation: Conversation,
        arm: str,
        turn: int,
        index=0,
        peers=(),
    ):
        self.client, self.jury, self.arm, self.seats = (
            client,
            jury,
            arm,
            jury.seats(arm, index, turn),
        )
        self.peers = [row for row in peers if row["role"] == "juror"]
        self.rubrics = {name: roles.rubrics()[name] for name in ("human", *jury.dimensions)}
        self.tags = [rubric["tag"] for rubric in self.rubrics.values()]
        shown = (
            conversation.context(turn) if jury.scope == "turn" else conversation.exchanges()[:turn]
        )
        if jury.scope == "turn" and jury.context == "isolated":
            shown = shown[-1:]
        self.shared = jury_prompts.conversation_part(self.rubrics, shown)
        self.judged = jury_prompts.SCOPES[jury.scope].format(turn)
        self.evidence = "\n".join(
            text for exchange in shown for text in (exchange.question, exchange.answer)
        )
        self.said: list[dict] = []
        self.summary = ""
        self.about = {
            "conversation_id": conversation.conversation_id,
            "pair": conversation.meta.get("pair"),
        }
        self.about |= {"source": conversation.source, "turn": turn, "scope": jury.scope, "arm": arm}
        self.about |= {"agent": conversation.agent_model}

    async def run(self) -> list[dict]:
        """Return the records of the verdict, in order of round and position."""
        rows, single = [], self.arm in SINGLE
        rounds, blind = (1, 0) if single else (self.jury.rounds, int(self.jury.blind))
        for number in range(1, rounds + blind + 1):
            rows += await self._round(number, number > rounds)
            more = number < rounds or blind or self.jury.judge
            if self.arm == "simultaneous_summary" and number <= rounds and more:
                rows.append(await self._summarise(number))
        if self.jury.judge:
            place = self._place("judge", rounds + blind + 1, 1, Seat(self.jury.judge), True)
            rows.append(
                await self._record(
                    place, Seat(self.jury.judge), self._prompt(self.said, self.jury.judge)
                )
            )
        return rows

    async def _round(self, number: int, blind: bool) -> list[dict]:
        places = list(enumerate(self.seats, 1))
        if self.arm != "debate" or blind:
            rows = await gather(
                self._speak(number, position, seat, blind) for position, seat in places
            )
            self.said += rows
            return rows
        for position, seat in places:  # the only statements that wait for each other
            self.said.append(await self._speak(number, position, seat, blind))
        return self.said[-len(places) :]

    def _heard(self, number: int, position: int, blind: bool) -> list[dict]:
        """Return the statements that a juror sees when it speaks."""
        if self.arm in SINGLE:
            return []
        if self.arm not in ("reask", "sham"):
            return self.said
        own = [row for row in self.said if row["position"] == position]
        if self.arm == "reask":
            return own
        others = [row for row in self.peers if row["position"] != position]
        earlier = [
            row
            for row in others
            if (row["round"], row["position"] * (not blind)) < (number, position)
        ]
        return sorted([*own, *earlier], key=lambda row: (row["round"], row["position"]))

    def _prompt(self, heard: Sequence[dict], model: Model, **juror) -> list[dict]:
        log = jury_prompts.log_part(heard, self.summary)
        how = {"constrained": model.provider.json_schema, "words": self.jury.words}
        return jury_prompts.statement(self.shared, log, self.judged, self.rubrics, **how, **juror)

    async def _speak(self, number: int, position: int, seat: Seat, blind: bool) -> dict:
        heard = self._heard(number, position, blind)
        persona = roles.jurors()[seat.persona]["persona"] if seat.persona else ""
        messages = self._prompt(heard, seat.model, position=position, persona=persona, blind=blind)
        others = [row for row in heard if row["position"] != position and row["score"] is not None]
        latest = {row["position"]: row["score"] for row in others}.values()
        row = await self._record(
            self._place("juror", number, position, seat, blind), seat, messages
        )
        return row | {"peer_mean": sum(latest) / len(latest) if latest else None}

    async def _record(self, place: dict, seat: Seat, messages: list[dict]) -> dict:
        """Ask for a statement, once more where its score is missing, and return the row."""
        constrained, tag = seat.model.provider.json_schema, self.tags[0]
        calls = [await self._ask(seat, messages, reason=True)]
        read, counts = self._read(calls[0]), calls[0]
        if read.scores[tag] is None and counts.status in REPAIRED:
            again = jury_prompts.repair(messages, counts.text, self.rubrics, constrained)
            calls.append(await self._ask(seat, again, reason=False))
            repaired = self._read(calls[1])
            if repaired.scores[tag] is not None:
                read, counts = verdicts.Verdict(repaired.scores, read.reason), calls[1]
        score = read.scores[tag]
        status = (
            "ok"
            if score is not None
            else "no_answer"
            if calls[0].status == "ok"
            else calls[0].status
        )
        dimensions = {
            name: read.scores[r["tag"]] for name, r in self.rubrics.items() if name != "human"
        }
        shown = "\n".join(filter(None, [read.reason, "" if score is None else f"{tag}={score:g}"]))
        said = {"score": score, "status": status, "dimensions": dimensions, "statement": shown}
        return place | said | _costs(seat.model, messages, calls, counts)

    async def _summarise(self, number: int) -> dict:
        """Have the rounds so far summed up; the summary replaces what was said."""
        seat = Seat(self.jury.jurors[0])
        messages = jury_prompts.summary(self.shared, jury_prompts.log_part(self.said, self.summary))
        response = await self._ask(seat, messages, reason=None)
        text = verdicts.shorten(parsing.without_thinking(response.text))
        if response.status in ("ok", "length") and text:
            self.summary, self.said = text, []
        said = {"score": None, "status": response.status, "dimensions": {}, "statement": text}
        place = self._place("summary", number, 1, seat, blind=False)
        return place | said | _costs(seat.model, messages, [response], response)

    def _place(self, role: str, number: int, position: int, seat: Seat, blind: bool) -> dict:
        """Return the fields of a record on who speaks, and when."""
        family = roles.same_family(seat.model.id, self.about["agent"])
        spoken = {"role": role, "round": number, "blind": blind, "position": position}
        return (
            self.about
            | spoken
            | {"juror": seat.name, "persona": seat.persona, "same_family": family}
        )

    def _read(self, response: Response) -> verdicts.Verdict:
        """Return what a reply says; one that was cut off has no score, since the last one may be missing."""
        nothing = verdicts.Verdict(dict.fromkeys(self.tags))
        if response.status == "error":
            return nothing
        evidence = self.evidence if response.status == "ok" else ""
        read, _ = parsing.attempt(verdicts.read, response.text, self.tags, evidence, failed=nothing)
        if response.status == "ok":
            return read
        reason = read.reason
        opened = (
            reason.removeprefix("{").lstrip().removeprefix('"reason"').lstrip(" :")
        )  # of JSON that was cut off
        return verdicts.Verdict(
            dict.fromkeys(self.tags), opened.strip('" ') if opened != reason else reason
        )

    async def _ask(self, seat: Seat, messages: list[dict], reason: bool | None) -> Response:
        """Return a reply: with a reason before its scores, with scores alone, or (None) in free words."""
        provider = seat.model.provider
        needed = jury_prompts.SHORTEST + jury_prompts.TOKENS * self.jury.words
        tokens = max(needed, provider.answer_tokens)
        how = {"temperature": self.jury.temperature, "max_tokens": tokens, "seed": self.jury.seed}
        if provider.json_schema and reason is not None:
            length = None if provider.hosted else jury_prompts.reason_length(self.jury.words)
            how["response_format"] = jury_prompts.score_format(
                self.rubrics, reason=reason, length=length
            )
        return await self.client.chat(
            seat.model, messages, sample=seat.number - 1, shared=len(self.shared), **how
        )


def _costs(model: Model, messages: list[dict], calls: Sequence[Response], counts: Response) -> dict:
    """Return the fields on the calls behind a statement, of which one counts; messages: of the first."""
    replies = [call.text if call.status != "error" else call.error for call in calls]
    costs = [call.cost for call in calls]
    usage = Counter()
    for call in calls:
        usage.update(call.usage)
    return {
        "reply": replies[0],
        "repaired": len(calls) > 1,
        "repair_reply": replies[1] if len(calls) > 1 else None,
        "usage": dict(usage),
        "cost": None if None in costs else sum(costs),
        "latency": round(sum(call.latency for call in calls), 3),
        "request_id": counts.request_id,
        **call_fields(Request(model, messages), counts),
        "asked_again": calls[0].earlier or None,
    }
