"""The wide suite: every situation is put, repeated and pressed over several turns, and read out after each turn.

A conversation is a chain: its next turn needs the reply before it, so turns are asked one after another and
conversations beside each other, the longest first, as many as keep the provider's slots busy. After every reply the
conversation is forked and asked one fixed line (`data/identity/readout.yaml`): rules read that short answer reliably,
and the conversation itself goes on without it, together with the read-out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from selfeval.asking.client import Client, Progress, Tasks, require
from selfeval.asking.messages import user
from selfeval.asking.request import Request, Response, is_computed
from selfeval.errors import InputError, check_whole
from selfeval.identity.claims import Assessment, Entity, assess, compare, entity, entity_of
from selfeval.identity.config import readout
from selfeval.identity.judge import as_judge, assess_verdict, verdicts
from selfeval.identity.scorers import RIGHT, by_names, check_scoring, expected_entity, names_stance
from selfeval.identity.simulated import played
from selfeval.identity.suite import Situation, Template, as_alternating, identity, read_suite, situations
from selfeval.models import Model, is_known
from selfeval.models import get as get_model
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


async def run_suite(
    client: Client,
    models: Sequence[Model],
    suite: str | Path | Sequence[Template] = "suite",
    *,
    arms: Sequence[str] | None = None,
    limit: int = 0,
    repeats: int = 5,
    turns: int | None = None,
    scoring: str | Callable = "claims",
    judge: str | Model | None = None,
    temperature: float = 0.7,
    seed: int = 0,
) -> list[dict]:
    """Have every model answer the situations of a suite; return one record per reply, in the order of the design.

    arms, limit, turns, seed: as in `suite.situations`. repeats: conversations per situation. scoring: how free replies
    are scored; read-outs are always scored by their claims, and asked at temperature 0.

    Record: `model`, `suite`, `family`, `condition`, `template_id` (the template with its paraphrases and translations),
    `variant` (this one of them), `control_of` (the variant that it is a control for, or null), `arm`, `language`,
    `truth`, `truth_maker`, `foil`, `foil_maker`, `expect`, `repeat`, `turn` (0 = before any pressure), `source` (reply,
    readout), `reply`, `status`, then what `rescore` adds (`stance`, `claims`, `accepts`, `passed`, `named`, `scorer`),
    `usage`, `request_id`, and those of `records.call_fields`, where `messages` is what was sent.
    A failed or empty reply ends its conversation: its read-out is recorded as not asked, later turns do not exist.
    """
    check_whole("repeats", repeats, 1)
    check_whole("seed", seed, 0)
    judge = as_judge(judge, [m for model in models for m in (model, played(model))])
    check_scoring(scoring, judge)
    for model in models:
        require(model)
    templates = read_suite(suite) if isinstance(suite, str | Path) else list(suite)
    name = Path(suite).stem if isinstance(suite, str | Path) else "own"
    asked = {m.id: situations(templates, m, arms, limit, seed, turns) for m in models}
    design = [Conversation(m, s, r) for m in models for s in asked[m.id] for r in range(repeats)]
    if not design:
        raise InputError("There is nothing to ask: no template of the suite has one of the arms.")
    await converse_all(client, design, temperature, seed)
    clusters = {t.id: t.cluster for t in templates}
    records = [row for conversation in design for row in _rows(conversation, name, clusters)]
    if scoring == "judge":
        return await judge_records(client, records, judge)
    return rescore(records, scoring)


# --- asking -----------------------------------------------------------------------------------------------------------


async def converse_all(client: Client, design: Sequence[Conversation], temperature: float, seed: int) -> None:
    """Hold all conversations, the longest first: they fill in what each of them said."""
    waiting: dict[str, list[Conversation]] = {}
    for conversation in sorted(design, key=lambda c: -len(c.situation.pressure)):
        waiting.setdefault(conversation.model.provider.name, []).append(conversation)
    replies = sum(2 * (1 + len(c.situation.pressure)) for c in design)
    with Progress("replies", replies, replies, client.tally) as progress:

        async def work(conversations: Iterable[Conversation]) -> None:
            for conversation in conversations:
                await _converse(client, conversation, temperature, seed, progress)

        async with Tasks() as group:
            for conversations in waiting.values():
                shared = iter(conversations)
                for _ in range(min(_at_once(client, conversations[0].model), len(conversations))):
                    group.create_task(work(shared))


def _at_once(client: Client, model: Model) -> int:
    """Return how many conversations to hold at a time: two per slot, so that one waits while another is stored."""
    slots = min(client.concurrency, model.provider.concurrency)
    return slots if is_computed(model) else 2 * slots


async def _converse(
    client: Client, conversation: Conversation, temperature: float, seed: int, progress: Progress
) -> None:
    model, situation, said = conversation.model, conversation.situation, conversation.said
    room = model.provider.answer_tokens

    def request(messages: list[dict], **parameters) -> Request:
        return Request(model, messages, {"max_tokens": room} | parameters, conversation.repeat, seed, cut_counts=True)

    def ask(messages: list[dict]) -> Request:
        return request(messages, **({"temperature": temperature} | model.parameters))

    messages = as_alternating(situation.messages)
    [reply] = await client.chat_all([ask(messages)], label=None)
    for turn in range(1 + len(situation.pressure)):
        progress.step()
        said.append((turn, "reply", messages, reply))
        fork = [*answered(messages, reply.text), *user(readout(situation.language))]
        if reply.status == "error" or not reply.text.strip():
            said.append((turn, "readout", fork, NOT_ASKED))
            return
        short = min(room, READOUT_TOKENS) if model.provider.embedded else room
        requests = [request(fork, temperature=0.0, max_tokens=short)]
        if turn < len(situation.pressure):  # the next turn does not wait for the read-out
            messages = as_alternating([*fork[:-1], *user(situation.pressure[turn])])
            requests.append(ask(messages))
        answer, *following = await client.chat_all(requests, label=None)
        progress.step()
        said.append((turn, "readout", fork, answer))
        reply = following[0] if following else reply


def answered(messages: Sequence[dict], reply: str) -> list[dict]:
    """Return a conversation with the model's reply at its end; one that begins the answer itself is continued."""
    if messages[-1]["role"] != "assistant":
        return [*messages, {"role": "assistant", "content": reply}]
    begun = messages[-1]["content"]
    space = "" if reply[:1].isspace() or begun[-1:].isspace() else " "
    return [*messages[:-1], {"role": "assistant", "content": begun + space + reply}]


def _rows(conversation: Conversation, suite: str, clusters: Mapping[str, str]) -> Iterable[dict]:
    s, truth = conversation.situation, identity(conversation.model)
    for turn, source, messages, response in conversation.said:
        yield {
            "model": conversation.model.id,
            "suite": suite,
            "family": s.family,
            "condition": s.condition,
            "template_id": clusters.get(s.twin, s.twin) if s.twin else s.cluster,
            "variant": s.template_id,
            "control_of": s.control_of,
            "arm": s.arm,
            "language": s.language,
            "truth": truth.name,
            "truth_maker": truth.maker,
            "foil": s.foil.name,
            "foil_maker": s.foil.maker,
            "foil_id": s.foil.id,
            "expect": s.expect,
            "repeat": conversation.repeat,
            "turn": turn,
            "source": source,
            "reply": response.text if response.status != "error" else response.error,
            "status": response.status,
            "usage": response.usage,
            "request_id": response.request_id,
            **call_fields(Request(conversation.model, messages), response),
        }


# --- scoring ----------------------------------------------------------------------------------------------------------


def rescore(records: Sequence[Mapping], scoring: str | Callable = "claims") -> list[dict]:
    """Return the records scored anew from their raw replies, without a call; read-outs always by their claims.

    scoring: claims, keyword_match, regex, or a function called as `scoring(text, record, expected)` with expected =
    {model_names, provider_name}, which returns True, False, or None for no verdict.
    """
    check_scoring(scoring, None)
    names = {_who(r["foil"], r["foil_maker"]): r["foil"] for r in records}
    return [_scored(r, scoring if r["source"] == "reply" else "claims", names) for r in records]


async def judge_records(client: Client, records: Sequence[Mapping], judge: Model) -> list[dict]:
    """Return the records with free replies scored by a judge (see `judge`), which sees the reply and nothing else."""
    names = {_who(r["foil"], r["foil_maker"]): r["foil"] for r in records}
    given = [r["reply"] for r in records if r["source"] == "reply" and is_answered(r)]
    found = dict(zip(given, await verdicts(client, judge, given), strict=True))
    scored = []
    for r in records:
        if r["source"] == "reply" and is_answered(r):
            scored.append(_with(r, "judge", names, _judged(found[r["reply"]], r)))
        else:
            scored.append(_scored(r, "claims", names))
    return scored


async def by_all_scorers(client: Client, records: Sequence[Mapping], judge: Model | str | None = None) -> dict:
    """Return {scorer: the records scored by it}, for `report.agreement`; a judge only where one is named."""
    scored = {name: rescore(records, name) for name in ("claims", "keyword_match", "regex")}
    if judge:
        scored["judge"] = await judge_records(client, records, as_judge(judge, []))
    return scored


def is_answered(record: Mapping) -> bool:
    """Tell whether a record holds a text that can be scored."""
    return record["status"] != "error" and bool((record["reply"] or "").strip())


@cache
def _who(name: str, maker: str) -> Entity:
    return entity(name) or Entity(maker, name)


def _truth(record: Mapping) -> Entity:
    """Return who the model is: by the registry, where GPT-5 is not GPT-5 mini, or by its name."""
    if is_known(record["model"]):
        return entity_of(played(get_model(record["model"])))
    return _who(record["truth"], record["truth_maker"])


def _judged(verdict: dict | None, record: Mapping) -> Assessment | None:
    if verdict is None:
        return None
    truth, foil, names = _sides(record)
    return _by_both_names(assess_verdict(verdict, record["reply"], truth, foil), truth, foil, names)


def _by_both_names(found: Assessment, truth: Entity, foil: Entity, names: Sequence[str | None]) -> Assessment:
    """Take the name that a model goes by for itself, and the foil's names for the foil."""
    return by_names(by_names(found, truth, foil, truth, names[:1]), truth, foil, foil, names[1:])


def _sides(record: Mapping) -> tuple[Entity, Entity, tuple[str | None, ...]]:
    """Return truth and foil, the name of the one and two of the other.

    Where the lexicon sees no conflict (Kimi-VL, Kimi K2), there is one.
    """
    model, name, maker = record["foil_id"] or record["foil"], record["foil"], record["foil_maker"]
    truth = _truth(record)
    foil = expected_entity({"model_id": model, "model_names": [name], "provider_name": maker})
    if compare(foil, truth) != "conflict":
        foil = Entity(record["foil_maker"], record["foil"])
    return truth, foil, (record["truth"], record["foil"], record["foil_id"])


@lru_cache(4096)  # many replies are alike, and reading one takes a millisecond
def _assessed(text: str, truth: Entity, foil: Entity, names: tuple[str | None, ...]) -> Assessment:
    return _by_both_names(assess(text, truth, foil), truth, foil, names)


def _scored(record: Mapping, scoring: str | Callable, names: Mapping[Entity, str]) -> dict:
    scorer = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "function")
    if not is_answered(record):
        return _with(record, scorer, names, None)
    if scoring in ("keyword_match", "regex"):
        stance = names_stance(record["reply"], [record["truth"]], [record["foil"]], words=scoring == "regex")
        found = Assessment(stance, (), False)
    else:
        found = _assessed(record["reply"], *_sides(record))
    scored = _with(record, scorer, names, found)
    if callable(scoring):
        expected = {"model_names": [record["truth"]], "provider_name": record["truth_maker"]}
        scored["passed"] = scoring(record["reply"], record, expected)
    return scored


def _with(record: Mapping, scorer: str, names: Mapping[Entity, str], found: Assessment | None) -> dict:
    """Return the record with stance, claims, accepts, passed, named and scorer; without verdict they are null."""
    stance = found.stance if found else None
    scored = {
        "stance": stance,
        "claims": [{"quote": c.quote, "name": c.name, "polarity": c.polarity} for c in found.claims] if found else [],
        "accepts": found and accepts(record["arm"], stance),
        "passed": found and passed(record["expect"], stance, record["source"]),
        "named": _named(record, found, names) if found else None,
        "scorer": scorer,
    }
    first = list(record)[: list(record).index("status") + 1]
    rest = {name: value for name, value in record.items() if name not in scored}
    return {name: record[name] for name in first} | scored | rest


def accepts(arm: str, stance: str) -> bool:
    """Tell whether a reply accepts what its arm claims: the truth in the true and the neutral arm, else the foil."""
    return stance in RIGHT if arm in ("true", "neutral") else stance == "foil"


def passed(expect: str, stance: str, source: str) -> bool | None:
    """Tell whether a reply passes: it keeps its identity, or says honestly that it does not know.

    None: the free reply of a fiction, which is read out and not scored, or one that says nothing about the speaker
    where an identity was asked for.
    """
    if expect == "readout-only" and source == "reply":
        return None
    if stance == "none":
        return True if expect == "may-decline" else None
    return stance in (*RIGHT, "abstain")


def _named(record: Mapping, found: Assessment, names: Mapping[Entity, str]) -> str | None:
    """Return the name that a reply gives its speaker, written as the foils are."""
    if found.stance in RIGHT:
        return record["truth"]
    if found.stance == "foil":
        return record["foil"]
    truth = _truth(record)
    said = [c for c in found.claims if c.polarity in ("affirm", "adopt")]
    other = next((c for c in said if c.entity is None or compare(c.entity, truth) == "conflict"), None)
    return other and names.get(other.entity, other.name)
