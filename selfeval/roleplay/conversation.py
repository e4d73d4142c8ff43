"""The interrogator asks, the agent answers: any number of conversations at once, each a chain of calls.

Rules for replies that are none. A reply that was cut off, or a refusal in words, is what the other side reads, and the
conversation goes on. An answer without any text stays in the record as such; both sides see NO_REPLY in its place and
the conversation goes on. Where an answer failed (no reply from the provider), or the interrogator has nothing to ask,
the conversation ends with that status. What was said until then is kept, and the other conversations go on.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from selfeval.asking.client import Client, Progress, gather, require
from selfeval.asking.request import Request, Response, is_computed
from selfeval.errors import InputError, check_at_least, check_whole
from selfeval.models import Model
from selfeval.roleplay import cast
from selfeval.roleplay.transcripts import Conversation, Exchange, Turn
from selfeval.scoring import THOUGHT

OPENING = "(The chat is open. Write your first message.)"
NO_REPLY = "(no reply)"
KEPT = (
    "usage", "cost", "latency", "finish_reason", "served_model", "served_by", "request_id", "reasoning", "adapted",
    "error",
)  # fmt: skip

OnExchange = Callable[[Conversation, Exchange], None]
Feedback = Callable[[Conversation, Exchange], Awaitable[str]]


@dataclass(frozen=True)
class Side:
    """One side of a conversation: its label, who plays it, and with what."""

    label: str
    model: Model
    system: str
    parameters: dict

    def request(self, turns: Sequence[Turn], sample: int, seed: int) -> Request:
        """Return the request for this side's next message."""
        said_so_far = messages(turns, self.label, self.system)
        return Request(self.model, said_so_far, self.parameters, sample, seed, cut_counts=True)


def messages(turns: Sequence[Turn], me: str, system: str = "") -> list[dict]:
    """Return a conversation as one of its speakers sees it; what it said is "assistant", all else "user".

    Messages in a row of one role are joined by line breaks, since many chat templates take no two of them. A note that
    is only for this speaker (`feedback`) follows the message that it is about.
    """
    found = [{"role": "system", "content": system}] if system else []
    if not turns or turns[0].speaker == me:
        found.append({"role": "user", "content": OPENING})
    for turn in turns:
        role = "assistant" if turn.speaker == me else "user"
        text = turn.text if turn.text.strip() else NO_REPLY
        if role == "user" and turn.more.get("feedback"):
            text = f"{text}\n\n({turn.more['feedback']})"
        if found and found[-1]["role"] == role:
            found[-1] = {"role": role, "content": f"{found[-1]['content']}\n{text}"}
        else:
            found.append({"role": role, "content": text})
    return found


def said(speaker: str, response: Response) -> Turn:
    """Return a reply as a turn: its text without reasoning, with its status and what it cost."""
    # not `without_thinking`, which also takes what stands before a lone </think>: requests would have other keys
    text = THOUGHT.sub("", response.text).strip() if response.status != "error" else ""
    status = "empty" if response.status == "ok" and not text else response.status
    more = {name: value for name in KEPT if (value := getattr(response, name)) not in (None, {})}
    if response.earlier:
        more["asked_again"] = response.earlier
    if text != response.text.strip():
        more["reply"] = response.text
    return Turn(speaker, text, status, more)


async def converse(
    client: Client,
    interrogator: Model | None,
    agent: Model | None,
    *,
    strategy: str = "probing",
    persona: str = "support",
    turns: int = 7,
    conversations: int = 1,
    first: str | None = None,
    temperature: float = 0.7,
    tokens: int = 0,
    seed: int = 0,
    on_exchange: OnExchange | None = None,
    feedback: Feedback | None = None,
    also: Sequence[Model] = (),
    label: str | None = "turns",
) -> list[Conversation]:
    """Have interrogator and agent talk for so many turns (a question and its answer each); return the conversations.

    strategy, persona: names in data/roleplay/; where one needs no model, its side's model may be None. conversations:
    so many with the same parts, or none; they differ by their sample number. first: the first question, instead of
    asking the interrogator for it. tokens: most tokens of a message, 0 = the provider's `answer_tokens`. on_exchange:
    told of every exchange as soon as its answer exists, with the conversation up to there, so that a jury can start.
    feedback: awaited after every exchange; its text goes to the interrogator alone, behind the answer, and the next
    turn waits for it. also: models that will be asked besides, checked with the two before the first call.

    The next request of a conversation is sent as soon as the one before has its reply; all conversations share the
    client's places. Raises `InputError` for bad values and `ProviderError` for a missing key before the first call.
    """
    for name, value, least in (("turns", turns, 1), ("conversations", conversations, 0), ("tokens", tokens, 0)):
        check_whole(name, value, least)
    asking, answering = sides(interrogator, agent, strategy, persona, temperature, tokens, seed)
    _check(strategy, persona, turns, conversations, first)
    if not conversations:
        return []
    opening = [Turn(asking.label, first)] if first else []
    check_models(
        client, (answering if opening else asking).request(opening, 0, seed), [asking.model, answering.model, *also]
    )
    meta = {"agent_model": answering.model.id, "interrogator_model": asking.model.id, "persona": persona}
    meta |= {"strategy": strategy, "seed": seed}

    async def talk(number: int, progress: Progress) -> Conversation:
        name = f"{answering.model.id} {persona}, {asking.model.id} {strategy}, {seed}.{number}"
        log, status = [*opening], "ok"

        def so_far() -> Conversation:
            source = cast.source(persona)
            return Conversation(name, [*log], source, answering.label, status, meta | {"sample": number})

        for turn in range(1, turns + 1):
            if turn > 1 or not opening:
                log.append(await say(client, asking, log, number, seed))
                if not log[-1].text:
                    status = log[-1].status
                    break
            log.append(await say(client, answering, log, number, seed))
            progress.step()
            if log[-1].status == "error":
                status = "error"
            exchange = so_far().exchanges()[-1]
            if on_exchange:
                on_exchange(so_far(), exchange)
            if status != "ok":
                break
            if feedback and turn < turns:
                note = await feedback(so_far(), exchange)
                log[-1] = replace(log[-1], more=log[-1].more | {"feedback": note})
        return so_far()

    total = turns * conversations
    with Progress(label, total, total, client.tally) as progress:
        return await gather(talk(number, progress) for number in range(conversations))


def sides(
    interrogator: Model | None,
    agent: Model | None,
    strategy: str,
    persona: str,
    temperature: float = 0.7,
    tokens: int = 0,
    seed: int = 0,
) -> tuple[Side, Side]:
    """Return who asks and who answers."""
    check_at_least("temperature", temperature)
    made = []
    for label, part, model in (
        ("interrogator", cast.role(strategy, cast.strategies(), "strategy"), interrogator),
        ("agent", cast.role(persona, cast.personas(), "persona"), agent),
    ):
        model = cast.player(part, model, seed)
        parameters = {"temperature": temperature, "max_tokens": tokens or model.provider.answer_tokens}
        made.append(Side(label, model, part.prompt, parameters | model.parameters))
    return made[0], made[1]


def _check(strategy: str, persona: str, turns: int, conversations: int, first: str | None) -> None:
    part = cast.strategies()[strategy]
    if part.questions and turns > len(part.questions):
        raise InputError(
            f"The strategy {strategy!r} has {len(part.questions)} questions, and `turns` is {turns}; add questions to "
            "data/roleplay/interrogators.yaml or ask for fewer turns."
        )
    if first is not None and (part.questions or not isinstance(first, str) or not first.strip()):
        raise InputError(f"`first` must be a text, and not beside a fixed list of questions, got {first!r}.")
    if conversations > 1 and (part.typed or cast.personas()[persona].typed):
        raise InputError(f"A person types in one conversation at a time, and `conversations` is {conversations}.")


def check_models(client: Client, first: Request, models: Sequence[Model]) -> None:
    """Raise `ProviderError` where one of the models cannot be asked, before the first of their calls is bought.

    Where the first reply is stored already, nothing is checked: a finished run is read again without key or network.
    """
    if client.store.replay or (not is_computed(first.model) and client.store.get(first.key) is not None):
        return
    for model in models:
        require(model)


async def say(client: Client, side: Side, turns: Sequence[Turn], sample: int, seed: int) -> Turn:
    """Return the next message of one side."""
    request = side.request(turns, sample, seed)
    [response] = await client.chat_all([request], label=None)
    return said(side.label, response)
