"""The wide suite: every situation is put, repeated and pressed over several turns, and read out after each turn.

Turns are asked one after another, all conversations beside each other. After every reply the conversation is forked and
asked one fixed line (`data/identity/readout.yaml`): rules read that short answer reliably, and the conversation itself
goes on without it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from selfeval.asking.client import Client, require
from selfeval.asking.request import Request, Response, user
from selfeval.errors import InputError, check_whole
from selfeval.identity.replies import SCORING, VERDICT, as_judge, check_scoring, judge_records, rescore
from selfeval.identity.simulated import played
from selfeval.identity.suite import Situation, as_alternating, identity, read_suite, readouts, situations
from selfeval.models import Model
from selfeval.records import call_fields

READOUT_TOKENS = 32  # room for a name and a maker, where the model does not think before it answers
NOT_ASKED = Response(status="error", error="not asked: the reply before it failed or is empty")


@dataclass
class Conversation:
    """One repeat of one situation with one model, and what was said so far: (turn, source, messages, response)."""

    model: Model
    situation: Situation
    repeat: int
    said: list[tuple[int, str, list[dict], Response]] = field(default_factory=list)

    @property
    def reply(self) -> Response:
        """Return the first reply."""
        return self.said[0][3]


async def run_suite(
    client: Client,
    models: Sequence[Model],
    suite: str | Path = "suite",
    *,
    arms: Sequence[str] | None = None,
    limit: int = 0,
    repeats: int = 5,
    turns: int | None = None,
    scoring: str = "claims",
    judge: str | Model | None = None,
    temperature: float = 0.7,
    seed: int = 0,
) -> list[dict]:
    """Have every model answer the situations of a suite; return one record per reply, in the order of the design.

    arms, limit, turns, seed: as in `suite.situations`. repeats: conversations per situation. scoring: how free replies
    are scored, of `SCORING`; read-outs are always scored by their claims, and asked at temperature 0.

    Record: `model`, `suite`, `family`, `condition`, `template_id` (the template with its paraphrases and translations),
    `variant` (this one of them), `control_of` (the variant that it is a control for, or null), `arm`, `language`,
    `truth`, `truth_maker`, `foil`, `foil_maker`, `expect`, `repeat`, `turn` (0 = before any pressure), `source` (reply,
    readout), `reply`, `status`, then what `rescore` adds (`VERDICT`), `usage`, `request_id`, and those of
    `records.call_fields`, where `messages` is what was sent.
    A failed or empty reply ends its conversation: its read-out is recorded as not asked, later turns do not exist.
    """
    check_whole("repeats", repeats, 1)
    check_whole("seed", seed, 0)
    judge = as_judge(judge, [m for model in models for m in (model, played(model))])
    check_scoring(scoring, judge, SCORING)
    for model in () if client.store.replay else models:
        require(model)
    templates = read_suite(suite)
    asked = {m.id: situations(templates, m, arms, limit, seed, turns) for m in models}
    design = [Conversation(m, s, r) for m in models for s in asked[m.id] for r in range(repeats)]
    if not design:
        raise InputError("There is nothing to ask: no template of the suite has one of the arms.")
    await hold(client, design, temperature, seed)
    clusters = {t.id: t.cluster for t in templates}
    records = [row for conversation in design for row in _rows(conversation, Path(suite).stem, clusters)]
    if scoring == "judge":
        return await judge_records(client, records, judge)
    return rescore(records, scoring)


# --- asking -----------------------------------------------------------------------------------------------------------


async def hold(
    client: Client, design: Sequence[Conversation], temperature: float, seed: int, read_out: bool = True
) -> None:
    """Hold all conversations, turn by turn: they fill in what each of them said.

    The read-outs of a turn and the replies of the next one do not wait for each other. read_out: without it, a reply
    that is cut off is no reply.
    """

    def request(c: Conversation, messages: list[dict], **parameters) -> Request:
        room = {"max_tokens": c.model.provider.answer_tokens}
        return Request(c.model, messages, room | parameters, c.repeat, seed, cut_counts=read_out)

    going = [(c, as_alternating(c.situation.messages)) for c in design]
    forked: list[tuple[Conversation, int, list[dict]]] = []
    turn = 0
    while going or forked:
        replies = [request(c, m, **({"temperature": temperature} | c.model.parameters)) for c, m in going]
        short = [request(c, m, temperature=0.0, **_short(c.model)) for c, _, m in forked]
        responses = await client.chat_all([*short, *replies])
        for (c, asked_at, fork), response in zip(forked, responses, strict=False):
            c.said.append((asked_at, "readout", fork, response))
        answered_now = list(zip(going, responses[len(forked) :], strict=True))
        going, forked = [], []
        for (c, messages), reply in answered_now:
            c.said.append((turn, "reply", messages, reply))
            line = readouts().get(c.situation.template.language, readouts()["en"])
            fork = [*answered(messages, reply.text), *user(line)]
            if reply.status == "error" or not reply.text.strip():
                c.said.append((turn, "readout", fork, NOT_ASKED))
                continue
            if read_out:
                forked.append((c, turn, fork))
            if turn < len(c.situation.pressure):
                going.append((c, as_alternating([*fork[:-1], *user(c.situation.pressure[turn])])))
        turn += 1


def _short(model: Model) -> dict:
    room = model.provider.answer_tokens
    return {"max_tokens": min(room, READOUT_TOKENS) if model.provider.embedded else room}


def answered(messages: Sequence[dict], reply: str) -> list[dict]:
    """Return a conversation with the model's reply at its end; one that begins the answer itself is continued."""
    if messages[-1]["role"] != "assistant":
        return [*messages, {"role": "assistant", "content": reply}]
    begun = messages[-1]["content"]
    space = "" if reply[:1].isspace() or begun[-1:].isspace() else " "
    return [*messages[:-1], {"role": "assistant", "content": begun + space + reply}]


def _rows(conversation: Conversation, suite: str, clusters: Mapping[str, str]) -> Iterable[dict]:
    s, truth = conversation.situation, identity(conversation.model)
    t = s.template
    order = {"reply": 0, "readout": 1}
    for turn, source, messages, response in sorted(conversation.said, key=lambda one: (one[0], order[one[1]])):
        yield {
            "model": conversation.model.id,
            "suite": suite,
            "family": t.family,
            "condition": t.condition,
            "template_id": clusters.get(t.twin, t.twin) if t.twin else t.cluster,
            "variant": t.id,
            "control_of": t.control_of,
            "arm": s.arm,
            "language": t.language,
            "truth": truth.name,
            "truth_maker": truth.maker,
            "foil": s.foil.name,
            "foil_maker": s.foil.maker,
            "foil_id": s.foil.id,
            "expect": t.expect,
            "repeat": conversation.repeat,
            "turn": turn,
            "source": source,
            "reply": response.text if response.status != "error" else response.error,
            "status": response.status,
            **dict.fromkeys(VERDICT),
            "usage": response.usage,
            "request_id": response.request_id,
            **call_fields(Request(conversation.model, messages), response),
        }
