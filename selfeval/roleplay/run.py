"""A jury over conversations: independent votes, controls, and debates (ChatEval).

ChatEval: arXiv 2308.07201, section 2.

An arm says what a juror sees besides rules and conversation when it speaks:

  independent  nothing, and it has no persona
  personas     nothing; the private vote before a debate
  reask        its own earlier statements, and nobody else's
  sham         its own, and what jurors said in a debate on another conversation
  debate       every statement made so far; jurors speak one by one

RECORD, one row per statement (JSON lines, `verdicts.jsonl`): `conversation_id`, `source` (human |
model), `turn`, `scope`, `arm`, `role` (juror), `round` (from 1), `position` (speaking order, from
1), `juror` (model id), `persona` (name or null), `agent` (id of the model judged, "human", or ""
where unknown), `same_family` (bool), `score` (0..1 or null), `status` (ok | no_answer | refusal |
filtered | length | empty | error), `statement` (as other jurors see it), `reply` (raw, or the
error), `repaired` (a second call asked for the score alone), `repair_reply`, `usage`, `cost`,
`latency` (of both calls), `request_id`, `served_model`, `served_by`, `reasoning`, `adapted` (of the
reply that counts), `messages` (of the first call, as sent), `asked_again` (statuses of earlier
replies to it, or null), `peer_mean` (mean of the others' latest scores that it was shown, or null).
`pair` is the human conversation that this one is matched with.
"""

import asyncio
import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from selfeval.errors import (
    InputError,
    check_at_least,
    check_names,
    check_one_of,
    check_whole,
)
from selfeval.providers.client import Client, Tasks, gather, progress
from selfeval.providers.models import Model, check_part, get, several
from selfeval.providers.request import Request, Response
from selfeval.reading import parsing
from selfeval.records.tables import call_fields
from selfeval.roleplay import prompts as jury_prompts
from selfeval.roleplay import roles
from selfeval.roleplay import scoring as verdicts
from selfeval.roleplay.transcripts import Conversation, judged_turns
from selfeval.roleplay.votes import ARMS

# arms of one round, in which nobody sees another juror's statement
SINGLE = ("independent", "personas")
# the personas of the published framework
PUBLISHED = ("linguist", "psychologist", "manager")
# statuses of a reply that a second call may mend; a refusal is an answer of its own
REPAIRED = ("ok", "empty", "length")


@dataclass(frozen=True)
class Seat:
    """One juror of one verdict: a model in a persona (None: without).

    number: its how many-th seat this is, from 1. Votes of one model in several seats are samples of
    it, each with the sample number of its seat.
    """

    model: Model
    persona: str | None = None
    number: int = 1

    @property
    def name(self) -> str:
        """Return what records call this juror."""
        return self.model.id if self.number == 1 else f"{self.model.id} #{self.number}"


@dataclass(frozen=True)
class Jury:
    """Who judges, and how; one object for all conversations of a run.

    jurors: models or their ids; one alone takes all personas, one named k times takes k seats.
    personas: names in data/roleplay/jurors.yaml. rounds: of the arms in which jurors speak more
    than once. scope: what a verdict is about: the answer of one `turn`, or the whole `conversation`
    once. words: how long a juror argues before its score; 0 is one short sentence, as in version
    0.1. context: what is shown for a turn: the conversation so far (`rolling`) or its exchange
    alone (`isolated`). temperature, seed: of the jurors. Raises `InputError` naming the field that
    breaks a rule.
    """

    jurors: Any
    _: KW_ONLY
    personas: Sequence[str] = PUBLISHED
    rounds: int = 2
    words: int = 60
    scope: str = "turn"
    context: str = "rolling"
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self):
        check_one_of("scope", self.scope, jury_prompts.SCOPES)
        check_one_of("context", self.context, ("rolling", "isolated"))
        check_whole("rounds", self.rounds, 1)
        check_whole("words", self.words, 0, jury_prompts.MOST_WORDS)
        check_whole("seed", self.seed)
        check_at_least("temperature", self.temperature)
        jurors = self.jurors
        if isinstance(jurors, str | Model) or callable(jurors):
            jurors = [jurors]
        jurors = list(jurors)
        object.__setattr__(self, "personas", tuple(several(self.personas, "personas")))
        for name, values in (("jurors", jurors), ("personas", self.personas)):
            if not values:
                raise InputError(f"`{name}` must name at least one, got {values!r}.")
        check_names("personas", self.personas, roles.jurors())
        models = tuple(check_part(get(juror), "judge") for juror in jurors)
        object.__setattr__(self, "jurors", models)

    def members(self, arm: str, index: int) -> list[Seat]:
        """Return the jurors of the index-th conversation (from 0) as they are named.

        Several models: each takes one persona per conversation, and over max(jurors, personas)
        conversations every model plays every persona equally often. One model: it takes every
        persona, and votes once in `independent`.
        """
        seats = []
        seats_of = Counter()
        for model in self.jurors:
            seats_of[model.id] += 1
            seats.append(Seat(model, number=seats_of[model.id]))
        if arm == "independent":
            return seats
        if len(seats) == 1:
            return [Seat(self.jurors[0], persona) for persona in self.personas]
        size = max(len(seats), len(self.personas))
        row = latin_row(size, "persona", index, 0, self.seed)
        personas = [self.personas[number % len(self.personas)] for number in row]
        return [replace(seat, persona=name) for seat, name in zip(seats, personas, strict=False)]

    def seats(self, arm: str, index: int, turn: int) -> list[Seat]:
        """Return the jurors in speaking order for a turn (from 1) of a conversation (from 0)."""
        members = self.members(arm, index)
        order = latin_row(len(members), "order", index, turn - 1, self.seed)
        return [members[number] for number in order]


def warnings(jury: Jury, agents: Iterable[str], arms: Sequence[str]) -> list[str]:
    """Return sentences on what weakens a jury: one model in many seats, an agent's family."""
    seats = Counter(model.id for model in jury.jurors)
    plays_all_personas = len(seats) == 1 and {*arms} != {"independent"}
    sentences = []
    for juror, count in seats.items():
        if count > 1 or plays_all_personas:
            sentences.append(
                f"One model, {juror}, sits in several seats: its votes are samples of one opinion, "
                "and what looks like a debate is one model with itself. "
                "Name models of different families."
            )
    for agent in dict.fromkeys(agents):
        family = [juror for juror in seats if roles.same_family(juror, agent)]
        if family:
            judges = f"is judged by its own family ({', '.join(family)})"
            sentences.append(f"The agent {agent} {judges}: see `same_family`.")
    return sentences


def latin_row(size: int, name: str, row: int, column: int, seed: int) -> list[int]:
    """Return a permutation of range(size): row + column of a seeded Latin square.

    There is a new square per block of `size`. Over any aligned block of `size` rows every number
    stands at every place once, and so over columns.
    """
    draw = random.Random(f"{seed} {name} {size} {row // size} {column // size}")
    symbols = list(range(size))
    places = list(range(size))
    draw.shuffle(symbols)
    draw.shuffle(places)
    return [symbols[(place + row + column) % size] for place in places]


# many verdicts


async def hold(
    client: Client,
    jury: Jury,
    conversations: Sequence[Conversation],
    arms: str | Sequence[str] = ("debate",),
) -> list[dict]:
    """Return the records of all verdicts on conversations, in the order conversation, turn, arm.

    Verdicts are begun in this order, so that prompts which begin with the same text follow each
    other. The arm `sham` shows statements of the debate on another conversation of the run (same
    turn where it has that). What weakens the jury is printed before anybody is asked. Raises
    `InputError` for an unknown arm, an arm given twice, or `sham` without `debate` or a second
    conversation.
    """
    arms = several(arms, "arms")
    check_names("arms", arms, ARMS)
    turns = [judged_turns(jury.scope, conversation) for conversation in conversations]
    judged = [index for index, of_conversation in enumerate(turns) if of_conversation]
    if not judged or not arms:
        what = "no conversation, or none with an answer of its agent"
        raise InputError(f"There is nothing to judge: {what}.")
    if "sham" in arms and ("debate" not in arms or len(judged) < 2):
        shows = "The arm `sham` shows statements of a debate on another conversation"
        remedy = "judge at least two, and have `debate` in `arms`"
        raise InputError(f"{shows}: {remedy}.")
    agents = [conversation.agent_model for conversation in conversations]
    for sentence in warnings(jury, agents, arms):
        print(sentence, flush=True)
    design = [(index, turn, arm) for index in judged for turn in turns[index] for arm in arms]
    slots = asyncio.Semaphore(_in_the_making(client, jury))
    tasks: dict[tuple[int, int, str], asyncio.Task] = {}

    async def judge(index: int, turn: int, arm: str) -> list[dict]:
        shown: Sequence[dict] = ()
        if arm == "sham":  # before a slot is taken, which the debate may need
            shown = await tasks[*_donor(jury, turns, index, turn), "debate"]
        async with slots:
            hearing = Hearing(client, jury, conversations[index], arm, turn, index, shown)
            rows = await hearing.run()
        bar.update()
        return rows

    with progress("verdicts", len(design)) as bar:
        async with Tasks() as group:
            for key in design:
                tasks[key] = group.create_task(judge(*key))
    records = []
    for key in design:
        records += tasks[key].result()
    return records


def _in_the_making(client: Client, jury: Jury) -> int:
    """Return how many verdicts are in the making at a time.

    Twice as many as calls are in flight, so that a verdict never waits for a disk; one for the
    embedded model, whose server has the next prompt's beginning at hand while nothing else comes
    between.
    """
    for model in jury.jurors:
        if model.provider.embedded and not client.batch:
            return model.provider.embedded["settings"]["slots"]
    return 2 * client.concurrency


def _donor(jury: Jury, turns: Sequence[list[int]], index: int, turn: int) -> tuple[int, int]:
    """Return index and turn of the other conversation whose statements are shown.

    The next one in a seeded order of all: what its source is does not depend on whose statements it
    replaces. turns: those judged of each conversation.
    """
    order = list(range(len(turns)))
    random.Random(f"{jury.seed} sham").shuffle(order)
    place = order.index(index)
    donor = next(other for other in order[place + 1 :] + order[:place] if turns[other])
    if turn not in turns[donor]:
        last = min(turn, len(turns[donor]))
        turn = turns[donor][last - 1]
    return donor, turn


# one verdict


class Hearing:
    """One verdict in the making: who is asked in which round, what it sees, and what it says.

    Run it as a task as soon as the turn's answer exists: nothing after that turn is looked at.
    index: the conversation's number in the run (from 0), for the Latin squares. peers: records of a
    debate on another conversation, which the arm `sham` shows. A failed call is a record without a
    score.
    """

    def __init__(
        self,
        client: Client,
        jury: Jury,
        conversation: Conversation,
        arm: str,
        turn: int,
        index: int = 0,
        peers: Sequence[dict] = (),
    ):
        self.client = client
        self.jury = jury
        self.arm = arm
        self.seats = jury.seats(arm, index, turn)
        self.peers = peers
        shown = conversation.exchanges()[:turn]
        if jury.scope == "turn":
            shown = conversation.context(turn)
            if jury.context == "isolated":
                shown = shown[-1:]
        self.shared = jury_prompts.conversation_part(shown)
        self.judged = jury_prompts.SCOPES[jury.scope].format(turn)
        texts = []
        for exchange in shown:
            texts += [exchange.question, exchange.answer]
        self.evidence = "\n".join(texts)
        self.said: list[dict] = []
        self.about: dict[str, Any] = {
            "conversation_id": conversation.conversation_id,
            "pair": conversation.meta.get("pair"),
            "source": conversation.source,
            "turn": turn,
            "scope": jury.scope,
            "arm": arm,
            "agent": conversation.agent_model,
        }

    async def run(self) -> list[dict]:
        """Return the records of the verdict, in order of round and position."""
        rounds = 1 if self.arm in SINGLE else self.jury.rounds
        for number in range(1, rounds + 1):
            places = list(enumerate(self.seats, 1))
            if self.arm == "debate":
                for place in places:
                    self.said.append(await self._speak(number, *place))
            else:
                self.said += await gather(self._speak(number, *place) for place in places)
        return self.said

    def _heard(self, number: int, position: int) -> list[dict]:
        """Return the statements that a juror sees when it speaks."""
        if self.arm == "debate":
            return self.said
        heard = [row for row in self.said if row["position"] == position]
        for row in self.peers:  # of the arm `sham`
            is_earlier = (row["round"], row["position"]) < (number, position)
            if row["position"] != position and is_earlier:
                heard.append(row)
        return sorted(heard, key=lambda row: (row["round"], row["position"]))

    async def _speak(self, number: int, position: int, seat: Seat) -> dict:
        """Return the record of a juror's statement, with the mean score that it was shown."""
        heard = self._heard(number, position)
        messages = jury_prompts.statement(
            self.shared,
            jury_prompts.log_part(heard),
            self.judged,
            constrained=seat.model.provider.json_schema,
            words=self.jury.words,
            position=position,
            persona=roles.jurors()[seat.persona]["persona"] if seat.persona else "",
        )
        latest = {}
        for row in heard:
            if row["position"] != position and row["score"] is not None:
                latest[row["position"]] = row["score"]
        speaks = {
            "role": "juror",
            "round": number,
            "position": position,
            "juror": seat.name,
            "persona": seat.persona,
            "same_family": roles.same_family(seat.model.id, self.about["agent"]),
        }
        record = self.about | speaks | await self._record(seat, messages)
        record["peer_mean"] = None
        if latest:
            record["peer_mean"] = math.fsum(latest.values()) / len(latest)
        return record

    async def _record(self, seat: Seat, messages: list[dict]) -> dict:
        """Ask for a statement, once more where its score is missing; return what came of it."""
        first = await self._ask(seat, messages, reason=True)
        score, reason = self._read(first)
        calls = [first]
        counted = first
        if score is None and first.status in REPAIRED:
            constrained = seat.model.provider.json_schema
            repair = jury_prompts.repair(messages, first.text, constrained)
            second = await self._ask(seat, repair, reason=False)
            calls.append(second)
            score = self._read(second).score
            if score is not None:
                counted = second
        status = "ok"
        shown = [reason]
        if score is not None:
            shown.append(f"{verdicts.TAG}={score:g}")
        elif first.status == "ok":
            status = "no_answer"
        else:
            status = first.status
        return {
            "score": score,
            "status": status,
            "statement": "\n".join(filter(None, shown)),
            **_costs(seat.model, messages, calls, counted),
        }

    def _read(self, response: Response) -> verdicts.Verdict:
        """Return what a reply says; one that was cut off has no score, since its last may lack."""
        nothing = verdicts.Verdict()
        if response.status == "error":
            return nothing
        is_whole = response.status == "ok"
        evidence = self.evidence if is_whole else ""
        verdict, _ = parsing.attempt(verdicts.read, response.text, evidence, failed=nothing)
        if is_whole:
            return verdict
        reason = verdict.reason
        inside = reason.removeprefix("{").lstrip().removeprefix('"reason"').lstrip(" :")
        if inside != reason:  # JSON that was cut off
            reason = inside.strip('" ')
        return verdicts.Verdict(reason=reason)

    async def _ask(self, seat: Seat, messages: list[dict], reason: bool) -> Response:
        """Return a reply: a reason and a score, or the score alone."""
        jury = self.jury
        provider = seat.model.provider
        needed = jury_prompts.SHORTEST + jury_prompts.TOKENS * jury.words
        parameters: dict = {
            "temperature": jury.temperature,
            "max_tokens": max(needed, provider.answer_tokens),
            "seed": jury.seed,
        }
        if provider.json_schema:
            length = None
            if not provider.hosted:
                length = jury_prompts.reason_length(jury.words)
            parameters["response_format"] = jury_prompts.score_format(reason=reason, length=length)
        return await self.client.chat(seat.model, messages, sample=seat.number - 1, **parameters)


def _costs(
    model: Model, messages: list[dict], calls: Sequence[Response], counted: Response
) -> dict:
    """Return the fields on the calls behind a statement; messages: of the first.

    counted: the call whose reply counts.
    """
    replies = [call.error if call.status == "error" else call.text for call in calls]
    is_repaired = len(calls) > 1
    costs = [call.cost for call in calls]
    usage = Counter()
    for call in calls:
        usage.update(call.usage)
    return {
        "reply": replies[0],
        "repaired": is_repaired,
        "repair_reply": replies[1] if is_repaired else None,
        "usage": dict(usage),
        "cost": None if None in costs else sum(costs),
        "latency": round(sum(call.latency for call in calls), 3),
        "request_id": counted.request_id,
        **call_fields(Request(model, messages), counted),
        "asked_again": calls[0].earlier or None,
    }
