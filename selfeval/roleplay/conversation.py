"""The interrogator asks, the agent answers: many conversations at once, each a chain of calls.

Rules for replies that are none. What was cut off, and a refusal in words, is read by the other side
like any reply. Where the agent writes no text, both sides read NO_REPLY in its place and the
conversation goes on. It ends, with that reply's status, where the interrogator writes no text or
either side's reply failed (none came from the provider). What was said until then is kept, and the
other conversations go on.
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
from selfeval.records.tables import fields_of
from selfeval.records.texts import chats
from selfeval.roleplay import roles
from selfeval.roleplay.transcripts import Conversation, Turn

OPENING = "(The chat is open. Write your first message.)"
NO_REPLY = "(no reply)"
# of a chat between people
SPEAKERS = {"A": "person A", "B": "person B"}
# fields of a reply that its turn keeps
KEPT = (
    "usage",
    "cost",
    "latency",
    "finish_reason",
    "served_model",
    "served_by",
    "request_id",
    "reasoning",
    "adapted",
    "error",
)


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
    """Return a conversation as one of its speakers sees it: its own messages are "assistant".

    All others are "user". Messages in a row of one role are joined by line breaks, since many chat
    templates take no two of them.
    """
    seen = []
    if system:
        seen.append({"role": "system", "content": system})
    if not turns or turns[0].speaker == me:
        seen.append({"role": "user", "content": OPENING})
    for turn in turns:
        role = "assistant" if turn.speaker == me else "user"
        text = turn.text if turn.text.strip() else NO_REPLY
        if seen and seen[-1]["role"] == role:
            seen[-1]["content"] += f"\n{text}"
        else:
            seen.append({"role": role, "content": text})
    return seen


def as_turn(speaker: str, response: Response) -> Turn:
    """Return a reply as a turn: its text without thinking, with its status and what it cost."""
    thought, text = thinking.split(response.text, anywhere=True)
    text = text.strip()
    status = response.status
    if status == "error":
        text = ""
    elif status == "ok" and not text:
        status = "empty"
    kept = fields_of(response, *KEPT)
    more = {name: value for name, value in kept.items() if value not in (None, {})}
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
    """Have interrogator and agent talk for so many turns; return the conversations.

    turns: so many questions with their answers, of two messages each. strategy, persona: names in
    data/roleplay/; where one needs no model, its side's model may be None. conversations: so many
    with the same parts, or none; they differ by their sample number. on_exchange: told of the
    conversation so far as soon as an answer exists, so that it can be kept. also: models that will
    be asked besides, checked with the two before the first call. how: temperature, tokens and seed
    of `side`.

    The next request of a conversation is sent as soon as the one before has its reply; all
    conversations share the client's places. Raises `InputError` for bad values, and before the
    first call `ProviderError` for a missing key, unless the first question is stored: what is
    stored is read without a key.
    """
    asking = roles.role(strategy, roles.strategies(), "strategy")
    answering = roles.role(persona, roles.personas(), "persona")
    check_whole("turns", turns, 1)
    check_whole("conversations", conversations)
    if asking.questions and turns > len(asking.questions):
        has = f"The strategy {asking.name!r} has {len(asking.questions)} questions"
        raise InputError(f"{has}, and `turns` is {turns}; ask for fewer turns.")
    asks = side("interrogator", asking, interrogator, **how)
    answers = side("agent", answering, agent, **how)
    if conversations and not _is_stored(client, asks.request([])):
        for model in (asks.model, answers.model, *also):
            require(model)
    name = f"{answers.model.id} {persona}, {asks.model.id} {strategy}, {asks.seed}"
    source = "human" if answering.typed else "model"
    begun = []
    for number in range(conversations):
        meta = {
            "agent_model": answers.model.id,
            "interrogator_model": asks.model.id,
            "persona": persona,
            "strategy": strategy,
            "seed": asks.seed,
            "sample": number,
        }
        begun.append(Conversation(f"{name}.{number}", [], source, meta=meta))
    with progress("turns" if conversations else None, turns * conversations) as bar:

        def tell(so_far: Conversation) -> None:
            bar.update()
            on_exchange(so_far)

        return await gather(_talk(client, asks, answers, turns, one, tell) for one in begun)


def _is_stored(client: Client, first: Request) -> bool:
    """Tell whether the first reply is stored: such a run is read again without key or network."""
    if client.store.replay:
        return True
    if is_computed(first.model):
        return False
    return bool(client.store.look_up({first.key: first.identity}))


async def _talk(
    client: Client,
    asks: Side,
    answers: Side,
    turns: int,
    begun: Conversation,
    tell: Callable[[Conversation], None],
) -> Conversation:
    """Have two sides talk for so many turns, or until no reply comes or nothing is asked.

    tell: told of every exchange.
    """
    said: list[Turn] = []
    for _ in range(turns):
        for speaks in (asks, answers):
            request = speaks.request(said, begun.meta["sample"])
            [response] = await client.chat_all([request], label=None)
            turn = as_turn(speaks.label, response)
            said.append(turn)
            asks_nothing = speaks is asks and not turn.text
            has_ended = turn.status == "error" or asks_nothing
            status = turn.status if has_ended else "ok"
            so_far = replace(begun, turns=list(said), status=status)
            if speaks is answers:
                tell(so_far)
            if has_ended:
                return so_far
    return so_far


def side(
    label: str, part: roles.Role, model: Model | None, *, temperature=0.7, tokens=0, seed=0
) -> Side:
    """Return one side of a conversation: who plays the part, and with what.

    tokens: most of a message, 0 = the provider's `answer_tokens`, None = no limit is sent, except
    to an embedded model, which has no other end.
    """
    check_at_least("temperature", temperature)
    model = roles.player(part, model, seed)
    provider = model.provider
    if tokens is not None:
        check_whole("tokens", tokens)
    if tokens == 0 or (tokens is None and provider.embedded):
        tokens = provider.answer_tokens
    parameters = {"temperature": temperature, "max_tokens": tokens}
    return Side(label, model, part.prompt, parameters | model.parameters, seed)


# people


def human_conversations(n: int, *, exchanges: int = 4, seed: int = 0) -> list[Conversation]:
    """Return a seeded sample of n chats between people, each cut after so many exchanges.

    The chats are those of `records.texts.chats`. A larger n begins with the smaller one's chats.
    Person A spoke first and asks, person B is the one under judgement. `exchanges` is also the
    least that a chat must have; 4 of them are 8 turns.
    """
    check_whole("exchanges", exchanges, 1)
    turns = 2 * exchanges
    long = [chat for chat in chats() if len(chat["turns"]) >= turns]
    if n > len(long):
        have = f"{len(long)} chats have {turns} turns or more"
        raise InputError(f"{have}, and {n} were asked for; ask for fewer.")
    shuffled = random.Random(f"chats {seed}").sample(long, len(long))
    conversations = []
    for chat in shuffled[:n]:
        said = []
        for turn in chat["turns"][:turns]:
            more = {"timestamp": turn["timestamp"]}
            said.append(Turn(SPEAKERS[turn["speaker"]], turn["text"], more=more))
        name = f"chitchat {chat['chat_id']}"
        meta = {"topic": chat["topic"]}
        conversations.append(Conversation(name, said, "human", SPEAKERS["B"], meta=meta))
    return conversations


async def forced_context(
    client: Client,
    agent: Model | None,
    conversations: Sequence[Conversation],
    persona: str = "stranger",
    **how,
) -> list[Conversation]:
    """Have a model answer in the place of the speaker under judgement.

    Returns one conversation for each that is given, or none where nobody answers in any. At every
    turn it reads the conversation as it was, with the answers that the person had given, and writes
    its own; so the questions of a pair are equal, and only the answers differ. The turn keeps the
    person's as `instead_of` (`Conversation.context` shows it to judges of later turns), and meta
    names the `pair`. No answer waits for another; one that fails is recorded as such. Your own
    transcripts are replayed in the same way. how: as in `side`.
    """
    part = roles.role(persona, roles.personas(), "persona")
    if not any(conversation.exchanges() for conversation in conversations):
        return []
    answering = side("agent", part, agent, **how)
    requests = []
    for conversation in conversations:
        system = answering.system
        if conversation.meta.get("topic"):
            system += f" The topic proposed for the chat: {conversation.meta['topic']}"
        in_place = replace(answering, label=conversation.agent, system=system)
        for place in _places_of_answers(conversation):
            requests.append(in_place.request(conversation.turns[:place]))
    responses = iter(await client.chat_all(requests, "answers"))
    controls = []
    for conversation in conversations:
        turns = []
        for exchange in conversation.exchanges():
            turn = as_turn("agent", next(responses))
            turn = replace(turn, more={"instead_of": exchange.answer} | turn.more)
            turns += [Turn("interrogator", exchange.question), turn]
        meta = conversation.meta | {
            "agent_model": answering.model.id,
            "persona": persona,
            "seed": answering.seed,
            "pair": conversation.conversation_id,
        }
        name = f"{answering.model.id} {persona} in {conversation.conversation_id}"
        source = "human" if part.typed else "model"
        controls.append(Conversation(name, turns, source, meta=meta))
    return controls


def _places_of_answers(conversation: Conversation) -> list[int]:
    """Return for every exchange how many turns stand before its answer."""
    places = []
    agent_spoke_before = False
    for place, turn in enumerate(conversation.turns):
        is_agent = turn.speaker == conversation.agent
        if is_agent and not agent_spoke_before:
            places.append(place)
        agent_spoke_before = is_agent
    return places
