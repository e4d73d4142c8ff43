"""Conversations between people, and the same conversations with a model in one person's place."""

import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from selfeval.asking.client import Client
from selfeval.errors import InputError, check_whole
from selfeval.models import Model
from selfeval.records import chats
from selfeval.roleplay import cast
from selfeval.roleplay.conversation import check_models, said, sides
from selfeval.roleplay.transcripts import Conversation, Turn

SPEAKERS = {"A": "person A", "B": "person B"}


def human_conversations(n: int, *, exchanges: int = 4, seed: int = 0) -> list[Conversation]:
    """Return a seeded sample of n chats between people (`records.chats`), each cut after so many.

    Person A spoke first and asks, person B is the one under judgement. `exchanges` is also the least that a chat must
    have; 4 of them are 8 turns.
    """
    check_whole("exchanges", exchanges, 1)
    return [
        Conversation(
            f"chitchat {chat['chat_id']}",
            [
                Turn(SPEAKERS[turn["speaker"]], turn["text"], more={"timestamp": turn["timestamp"]})
                for turn in chat["turns"][: 2 * exchanges]
            ],
            source="human",
            agent=SPEAKERS["B"],
            meta={"topic": chat["topic"]},
        )
        for chat in sample(n, 2 * exchanges, seed)
    ]


def sample(n: int, least: int, seed: int = 0) -> list[dict]:
    """Return a seeded sample of n chats with at least so many turns; a larger n begins with the smaller one's chats."""
    for name, value, lowest in (("n", n, 1), ("least", least, 1), ("seed", seed, 0)):
        check_whole(name, value, lowest)
    long = [chat for chat in chats() if len(chat["turns"]) >= least]
    if n > len(long):
        raise InputError(f"{len(long)} chats have {least} turns or more, and {n} were asked for; ask for fewer.")
    return random.Random(f"chats {seed}").sample(long, len(long))[:n]


async def forced_context(
    client: Client,
    agent: Model | None,
    conversations: Sequence[Conversation],
    *,
    persona: str = "stranger",
    temperature: float = 0.7,
    tokens: int = 0,
    seed: int = 0,
    label: str | None = "answers",
) -> list[Conversation]:
    """Have a model answer in the place of the speaker under judgement; return one conversation for each given.

    At every turn it reads the conversation as it was, with the answers that the person had given, and writes its own;
    so the questions of a pair are equal, and only the answers differ. The turn keeps the person's as `instead_of`
    (`Conversation.context` shows it to judges of later turns), and meta names the `pair`. No answer waits for another;
    one that fails is recorded as such. Transcripts of one's own are replayed in the same way.
    """
    _, answering = sides(None, agent, "fixed", persona, temperature, tokens, seed)
    places = [(c, i, e) for c in conversations for i, e in zip(_last_before(c), c.exchanges(), strict=True)]
    requests = []
    for conversation, place, _ in places:
        topic = conversation.meta.get("topic")
        system = f"{answering.system} The topic proposed for the chat: {topic}" if topic else answering.system
        mine = replace(answering, label=conversation.agent, system=system)
        requests.append(mine.request(conversation.turns[:place], 0, seed))
    if requests:
        check_models(client, requests[0], [answering.model])
    responses = await client.chat_all(requests, label)
    made: dict[str, list[Turn]] = {c.conversation_id: [] for c in conversations}
    for (conversation, _, exchange), response in zip(places, responses, strict=True):
        turn = said("agent", response)
        made[conversation.conversation_id] += [
            Turn("interrogator", exchange.question),
            replace(turn, more={"instead_of": exchange.answer} | turn.more),
        ]
    meta = {"agent_model": answering.model.id, "persona": persona, "seed": seed}
    return [
        Conversation(
            f"{answering.model.id} {persona} in {conversation.conversation_id}",
            made[conversation.conversation_id],
            source=cast.source(persona),
            meta=conversation.meta | meta | {"pair": conversation.conversation_id},
        )
        for conversation in conversations
    ]


def _last_before(conversation: Conversation) -> list[int]:
    """Return for every exchange how many turns stand before its answer."""
    me, turns = conversation.agent, conversation.turns
    return [i for i, turn in enumerate(turns) if turn.speaker == me and (i == 0 or turns[i - 1].speaker != me)]


QUOTES = str.maketrans("‘’‚‛“”„‟«»—–‑…", '\'\'\'\'""""""---.')


def plain_style(text: str) -> str:
    """Return a text without what gives its writer's manners away: case, marks, emphasis, lists, pictures, line breaks.

    Lower case; of the punctuation remain the apostrophe, the hyphen within words, and "." or "?" between sentences.
    """
    text = unicodedata.normalize("NFKC", text.translate(QUOTES)).lower()
    text = re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", text, flags=re.M)
    text = re.sub(r"[\s.!?]*\?[\s.!?]*", "? ", text)
    text = re.sub(r"[.!;:]+(?=\s|$)|\n+", ". ", text)
    text = re.sub(r"(?<!\w)['-]|['-](?!\w)|[^\w\s.?'-]|_", "", text)
    text = re.sub(r"\s+([.?])", r"\1", " ".join(text.split()))
    return re.sub(r"([.?])(?:\s*\.)+", r"\1", text).strip(" .")


def in_plain_style(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Return the conversations with all texts in plain style and ids that say so: the ablation of style."""

    def plain(turn: Turn) -> Turn:
        other = turn.more.get("instead_of")
        more = turn.more | ({"instead_of": plain_style(other)} if isinstance(other, str) else {})
        return replace(turn, text=plain_style(turn.text), more=more)

    return [
        replace(
            c,
            conversation_id=f"{c.conversation_id} (plain)",
            turns=[plain(turn) for turn in c.turns],
            meta=c.meta | {"style": "plain"} | ({"pair": f"{c.meta['pair']} (plain)"} if "pair" in c.meta else {}),
        )
        for c in conversations
    ]
