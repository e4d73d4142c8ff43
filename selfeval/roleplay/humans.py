"""Conversations between people, and the same conversations with a model in one person's place."""

import random
from collections.abc import Sequence
from dataclasses import replace

from selfeval.asking.client import Client
from selfeval.errors import InputError, check_whole
from selfeval.models import Model
from selfeval.records import chats
from selfeval.roleplay import cast
from selfeval.roleplay.conversation import check_models, said, side
from selfeval.roleplay.transcripts import Conversation, Turn

SPEAKERS = {"A": "person A", "B": "person B"}


def human_conversations(n: int, *, exchanges: int = 4, seed: int = 0) -> list[Conversation]:
    """Return a seeded sample of n chats between people (`records.chats`), each cut after so many exchanges.

    A larger n begins with the smaller one's chats. Person A spoke first and asks, person B is the one under judgement.
    `exchanges` is also the least that a chat must have; 4 of them are 8 turns.
    """
    check_whole("exchanges", exchanges, 1)
    turns = 2 * exchanges
    long = [chat for chat in chats() if len(chat["turns"]) >= turns]
    if n > len(long):
        raise InputError(f"{len(long)} chats have {turns} turns or more, and {n} were asked for; ask for fewer.")
    found = []
    for chat in random.Random(f"chats {seed}").sample(long, len(long))[:n]:
        said = [
            Turn(SPEAKERS[turn["speaker"]], turn["text"], more={"timestamp": turn["timestamp"]})
            for turn in chat["turns"][:turns]
        ]
        meta = {"topic": chat["topic"]}
        found.append(Conversation(f"chitchat {chat['chat_id']}", said, "human", SPEAKERS["B"], meta=meta))
    return found


async def forced_context(
    client: Client,
    agent: Model | None,
    conversations: Sequence[Conversation],
    *,
    persona: str = "stranger",
    temperature: float = 0.7,
    tokens: int = 0,
    seed: int = 0,
) -> list[Conversation]:
    """Have a model answer in the place of the speaker under judgement; return one conversation for each given.

    At every turn it reads the conversation as it was, with the answers that the person had given, and writes its own;
    so the questions of a pair are equal, and only the answers differ. The turn keeps the person's as `instead_of`
    (`Conversation.context` shows it to judges of later turns), and meta names the `pair`. No answer waits for another;
    one that fails is recorded as such. Your own transcripts are replayed in the same way.
    """
    part = cast.role(persona, cast.personas(), "persona")
    if not conversations:
        return []
    answering = side("agent", part, agent, temperature, tokens, seed)
    places = [(one, i, e) for one in conversations for i, e in zip(_last_before(one), one.exchanges(), strict=True)]
    requests = []
    for one, place, _ in places:
        topic = one.meta.get("topic")
        system = f"{answering.system} The topic proposed for the chat: {topic}" if topic else answering.system
        requests.append(replace(answering, label=one.agent, system=system).request(one.turns[:place], 0, seed))
    if requests:
        check_models(client, requests[0], [answering.model])
    responses = await client.chat_all(requests, "answers")
    twins = {}
    for one in conversations:
        meta = {"agent_model": answering.model.id, "persona": persona, "seed": seed, "pair": one.conversation_id}
        name = f"{answering.model.id} {persona} in {one.conversation_id}"
        twins[one.conversation_id] = Conversation(name, [], cast.source(persona), meta=one.meta | meta)
    for (one, _, exchange), response in zip(places, responses, strict=True):
        turn = said("agent", response)
        turn = replace(turn, more={"instead_of": exchange.answer} | turn.more)
        twins[one.conversation_id].turns.extend([Turn("interrogator", exchange.question), turn])
    return list(twins.values())


def _last_before(conversation: Conversation) -> list[int]:
    """Return for every exchange how many turns stand before its answer."""
    me, turns = conversation.agent, conversation.turns
    return [i for i, turn in enumerate(turns) if turn.speaker == me and (i == 0 or turns[i - 1].speaker != me)]
