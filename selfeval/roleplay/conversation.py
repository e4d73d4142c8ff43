"""The interrogator asks, the agent answers: any number of conversations at once, each a chain of calls.

Rules for replies that are none. A reply that was cut off, or a refusal in words, is what the other
side reads, and the conversation goes on. An answer without any text stays in the record as such;
both sides see NO_REPLY in its place and the conversation goes on. Where an answer failed (no reply
from the provider), or the interrogator has nothing to ask, the conversation ends with that status.
What was said until then is kept, and the other conversations go on.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from selfeval.errors import InputError, check_at_least, check_whole
from selfeval.providers.client import Client, gather, progress
from selfeval.providers.embedded import require
from selfeval.providers.models import Model
from selfeval.providers.request import Request, Response, is_computed
from selfeval.reading import thinking
from selfeval.records.texts import chats
from selfeval.roleplay import roles
from selfeval.roleplay.transcripts import Conversation, Turn

OPENING = "(The chat is open. Write your first message.)"
NO_REPLY = "(no reply)"
SPEAKERS = {"A": "person A", "B": "person B"}  # of a chat between people
KEPT = (
    "usage", "cost", "latency", "finish_reason", "served_model", "served_by", "request_id", "reasoning", "adapted",
    "error",
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """One side of a conversation: its label, who plays it, and with what."""

    label: str
    model: Model
    system: str
    parameters: dict
    seed: int

    def request(self, turns: Sequence[Turn], sample: int = 0) -> Request:
        """Return the request for this side's next message."""
        said_so_far = messages(turns, self.label, self.system)
        return Request(self.model, said_so_far, self.parameters, sample, self.seed, cut_counts=True)


def messages(turns: Sequence[Turn], me: str, system: str = "") -> list[dict]:
    """Return a conversation as one of its speakers sees it; what it said is "assistant", all else "user".

    Messages in a row of one role are joined by line breaks, since many chat templates take no two
    of them.
    """
    found = [{"role": "system", "content": system}] if system else []
    if not turns or turns[0].speaker == me:
        found.append({"role": "user", "content": OPENING})
    for turn in turns:
        role = "assistant" if turn.speaker == me else "user"
        text = turn.text if turn.text.strip() else NO_REPLY
        if found and found[-1]["role"] == role:
            found[-1] = {"role": role, "content": f"{found[-1]['content']}\n{text}"}
        else:
            found.append({"role": role, "content": text})
    return found


def as_turn(speaker: str, response: Response) -> Turn:
    """Return a reply as a turn: its text without thinking, with its status and what it cost."""
    thought, text = thinking.split(response.text, anywhere=True)
    text = text.strip() if response.status != "error" else ""
    status = "empty" if response.status == "ok" and not text else response.status
    more = {name: value for name in KEPT if (value := getattr(response, name)) not in (None, {})}
    if response.earlier:
        more["asked_again"] = response.earlier
    if thought:
        more.setdefault("reasoning", thought)
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
    on_exchange: Callable[[Conversation], None] = lambda conversation: None,
    also: Sequence[Model] = (),
    **how,
) -> list[Conversation]:
    """Have interrogator and agent talk for so many turns (a question and its answer each); return the conversations.

    strategy, persona: names in data/roleplay/; where one needs no model, its side's model may be
    None. conversations: so many with the same parts, or none; they differ by their sample number.
    on_exchange: told of the conversation so far as soon as an answer exists, so that it can be
    kept. also: models that will be asked besides, checked with the two before the first call. how:
    temperature, tokens and seed of `side`.

    The next request of a conversation is sent as soon as the one before has its reply; all
    conversations share the client's places. Raises `InputError` for bad values and `ProviderError`
    for a missing key before the first call.
    """
    asks, answers = (
        roles.role(strategy, roles.strategies(), "strategy"),
        roles.role(persona, roles.personas(), "persona"),
    )
    check_whole("turns", turns, 1)
    check_whole("conversations", conversations)
    if asks.questions and turns > len(asks.questions):
        has = f"The strategy {asks.name!r} has {len(asks.questions)} questions"
        raise InputError(f"{has}, and `turns` is {turns}; ask for fewer turns.")
    sides = [side("interrogator", asks, interrogator, **how), side("agent", answers, agent, **how)]
    models, seed = [one.model for one in sides], sides[0].seed
    first, store = (
        sides[0].request([]),
        client.store,
    )  # where it is stored: a run is read again without key or network
    stored = store.replay or (
        not is_computed(first.model) and store.look_up({first.key: first.identity})
    )
    for model in () if stored or not conversations else (*models, *also):
        require(model)
    meta = {"agent_model": models[1].id, "interrogator_model": models[0].id, "persona": persona}
    meta |= {"strategy": strategy, "seed": seed}
    name = f"{models[1].id} {persona}, {models[0].id} {strategy}, {seed}"
    begun = [
        Conversation(
            f"{name}.{number}",
            [],
            "human" if answers.typed else "model",
            meta=meta | {"sample": number},
        )
        for number in range(conversations)
    ]
    with progress("turns" if conversations else None, turns * conversations) as bar:

        def heard(so_far: Conversation) -> None:
            bar.update()
            on_exchange(so_far)

        return await gather(_talk(client, sides, turns, one, heard) for one in begun)


async def _talk(
    client: Client,
    sides: Sequence[Side],
    turns: int,
    begun: Conversation,
    heard: Callable[[Conversation], None],
) -> Conversation:
    """Have two sides talk for so many turns, or until no reply comes or nothing is asked; tell of every exchange."""
    log = []
    for place in range(2 * turns):
        speaks, answers = sides[place % 2], place % 2 == 1
        [response] = await client.chat_all([speaks.request(log, begun.meta["sample"])], label=None)
        log.append(as_turn(speaks.label, response))
        ended = log[-1].status == "error" or not (answers or log[-1].text)
        so_far = replace(begun, turns=[*log], status=log[-1].status if ended else "ok")
        if answers:
            heard(so_far)
        if ended:
            break
    return so_far


def side(
    label: str, part: roles.Role, model: Model | None, *, temperature=0.7, tokens=0, seed=0
) -> Side:
    """Return one side of a conversation: who plays the part, and with what.

    tokens: most of a message, 0 = the provider's `answer_tokens`.
    """
    check_at_least("temperature", temperature)
    check_whole("tokens", tokens)
    model = roles.player(part, model, seed)
    parameters = {"temperature": temperature, "max_tokens": tokens or model.provider.answer_tokens}
    return Side(label, model, part.prompt, parameters | model.parameters, seed)


# people ---------------------------------------------------------------------------------------------------------------


def human_conversations(n: int, *, exchanges: int = 4, seed: int = 0) -> list[Conversation]:
    """Return a seeded sample of n chats between people (`records.chats`), each cut after so many exchanges.

    A larger n begins with the smaller one's chats. Person A spoke first and asks, person B is the
    one under judgement. `exchanges` is also the least that a chat must have; 4 of them are 8 turns.
    """
    check_whole("exchanges", exchanges, 1)
    turns = 2 * exchanges
    long = [chat for chat in chats() if len(chat["turns"]) >= turns]
    if n > len(long):
        raise InputError(
            f"{len(long)} chats have {turns} turns or more, and {n} were asked for; ask for fewer."
        )
    found = []
    for chat in random.Random(f"chats {seed}").sample(long, len(long))[:n]:
        said = [
            Turn(SPEAKERS[turn["speaker"]], turn["text"], more={"timestamp": turn["timestamp"]})
            for turn in chat["turns"][:turns]
        ]
        meta = {"topic": chat["topic"]}
        found.append(
            Conversation(f"chitchat {chat['chat_id']}", said, "human", SPEAKERS["B"], meta=meta)
        )
    return found


async def forced_context(
    client: Client,
    agent: Model | None,
    conversations: Sequence[Conversation],
    persona: str = "stranger",
    **how,
) -> list[Conversation]:
    """Have a model answer in the place of the speaker under judgement; return one conversation for each given.

    At every turn it reads the conversation as it was, with the answers that the person had given,
    and writes its own; so the questions of a pair are equal, and only the answers differ. The turn
    keeps the person's as `instead_of` (`Conversation.context` shows it to judges of later turns),
    and meta names the `pair`. No answer waits for another; one that fails is recorded as such. Your
    own transcripts are replayed in the same way. how: as in `side`.
    """
    part = roles.role(persona, roles.personas(), "persona")
    places = [
        (one, i, e)
        for one in conversations
        for i, e in zip(_last_before(one), one.exchanges(), strict=True)
    ]
    if not places:
        return []
    answering = side("agent", part, agent, **how)
    requests = []
    for one, place, _ in places:
        topic = one.meta.get("topic")
        system = (
            f"{answering.system} The topic proposed for the chat: {topic}"
            if topic
            else answering.system
        )
        requests.append(
            replace(answering, label=one.agent, system=system).request(one.turns[:place])
        )
    responses = await client.chat_all(requests, "answers")
    twins = {}
    for one in conversations:
        meta = {"agent_model": answering.model.id, "persona": persona, "seed": answering.seed}
        meta |= {"pair": one.conversation_id}
        name = f"{answering.model.id} {persona} in {one.conversation_id}"
        twins[one.conversation_id] = Conversation(
            name, [], "human" if part.typed else "model", meta=one.meta | meta
        )
    for (one, _, exchange), response in zip(places, responses, strict=True):
        turn = as_turn("agent", response)
        turn = replace(turn, more={"instead_of": exchange.answer} | turn.more)
        twins[one.conversation_id].turns.extend([Turn("interrogator", exchange.question), turn])
    return list(twins.values())


def _last_before(conversation: Conversation) -> list[int]:
    """Return for every exchange how many turns stand before its answer."""
    me, turns = conversation.agent, conversation.turns
    return [
        i
        for i, turn in enumerate(turns)
        if turn.speaker == me and (i == 0 or turns[i - 1].speaker != me)
    ]
