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
`served_model`, `served_by`, `reasoning`, `adapted` (of the reply that counts), `messages` (of the first call, as sent),
`asked_again` (statuses of earlier replies to it, or null); of jurors also `peer_mean` (mean of the others' latest
scores that it was shown, or null). `pair` is the human conversation that this one is matched with. Statistics take the
rows with `role` = "juror".
"""

import asyncio
import random
from collections.abc import Sequence
from functools import cache

from selfeval import DATA
from selfeval.asking.client import Client, Progress, Tasks
from selfeval.asking.request import is_computed
from selfeval.errors import InputError
from selfeval.records import read_jsonl
from selfeval.roleplay.hearing import judged_turns, verdict
from selfeval.roleplay.panel import SINGLE, Jury
from selfeval.roleplay.transcripts import Conversation
from selfeval.stats.votes import ARMS

__all__ = ["decide", "hold", "judged_turns", "last_round", "recorded_statements", "verdict"]


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
    if not design:
        raise InputError("There is nothing to judge: no conversation, or none with an answer of its agent.")
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
        async with Tasks() as group:
            for key in design:
                tasks[key] = group.create_task(one(*key, progress.step))
    return [row for key in design for row in tasks[key].result()]


def _check_arms(arms: Sequence[str], conversations: Sequence[Conversation]) -> None:
    if isinstance(arms, str) or not arms:
        raise InputError(f"`arms` must be a list of arms ({', '.join(ARMS)}), got {arms!r}.")
    for arm in arms:
        if arm not in ARMS or list(arms).count(arm) > 1:
            raise InputError(f"Unknown arm {arm!r}, or given twice; known are {', '.join(ARMS)}.")
    if "sham" in arms and "debate" not in arms and len(conversations) > 1:
        raise InputError("The arm `sham` shows statements of a debate on another conversation: add `debate` to `arms`.")


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
