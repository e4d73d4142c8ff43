"""What people wrote: `chitchat-dataset` (MIT), 7,168 chats of a university's chat competition in 2018.

Speakers and times are real. Read as they are, the chats hold surprises: 3,150 have a single message, 33 messages are
blank, a speaker often sends several in a row, and in quick chats questions and answers cross. A `chat` here has two
speakers; messages in a row are one turn, joined by line breaks; blank ones are left out, and chats with a turn of more
than MOST characters, a link or a tag are not used. Nothing is corrected, and nothing rude is taken out.
"""

import json
import random
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from selfeval.errors import InputError, check_whole
from selfeval.records import text_id

MOST = 1000
ODD = re.compile(r"https?://|www\.|<[^>]*>")
AUTHOR, DISPLAY = "human", "Human"


@cache
def chats() -> tuple[dict, ...]:
    """Return all chats of two speakers in the dataset's order: `chat_id`, `topic` (what the site proposed, or "") and
    `turns` of `speaker` (A spoke first), `text` and `timestamp` (of the first message, UTC).
    """
    package = find_spec("chitchat_dataset")
    path = Path(package.origin).with_name("dataset.json") if package else None
    if path is None or not path.exists():
        raise InputError("The package chitchat-dataset is not installed: pip install -r requirements.txt")
    raw = json.loads(path.read_text(encoding="utf-8"))
    found = ({"chat_id": i, "topic": chat.get("prompt") or "", "turns": _turns(chat)} for i, chat in raw.items())
    return tuple(chat for chat in found if _is_usable(chat["turns"]))


def _turns(chat: dict) -> list[dict]:
    turns: list[dict] = []
    speakers: dict[str, str] = {}
    for message in (message for group in chat["messages"] for message in group):
        if not message["text"].strip():
            continue
        speaker = speakers.setdefault(message["sender"], "AB"[len(speakers)] if len(speakers) < 2 else "?")
        text = message["text"].strip()
        if turns and turns[-1]["speaker"] == speaker:
            turns[-1]["text"] += f"\n{text}"
        else:
            turns.append({"speaker": speaker, "text": text, "timestamp": message["timestamp"]})
    return turns


def _is_usable(turns: list[dict]) -> bool:
    speakers = {turn["speaker"] for turn in turns}
    return speakers == {"A", "B"} and not any(len(t["text"]) > MOST or ODD.search(t["text"]) for t in turns)


def sample(n: int, least: int, seed: int = 0) -> list[dict]:
    """Return a seeded sample of n chats with at least so many turns; a larger n begins with the smaller one's chats."""
    for name, value, lowest in (("n", n, 1), ("least", least, 1), ("seed", seed, 0)):
        check_whole(name, value, lowest)
    long = [chat for chat in chats() if len(chat["turns"]) >= least]
    if n > len(long):
        raise InputError(f"{len(long)} chats have {least} turns or more, and {n} were asked for; ask for fewer.")
    return random.Random(f"chats {seed}").sample(long, len(long))[:n]


def human_texts(n: int, *, words: int = 25, before: int = 4, seed: int = 0) -> tuple[list[dict], list[dict]]:
    """Return (writing prompts, text records of the author `human`), one of each from n chats.

    A prompt shows the beginning of a chat, of `before` turns or a few more, and asks for the next message; the record's
    text is what the person wrote there. words: the length to ask the models for; the people's texts are chosen within
    half of it. Both kinds of rows are as `prompts.read_prompts` and `writing.generate_texts` return them.
    """
    for name, value, lowest in (("n", n, 1), ("words", words, 2), ("before", before, 1)):
        check_whole(name, value, lowest)
    asked, texts = [], []
    long = [chat for chat in chats() if len(chat["turns"]) > before]
    for chat in random.Random(f"texts {seed}").sample(long, len(long)):
        place = _reply_of_length(chat["turns"], before, words)
        if place is None:
            continue
        prompt = {"prompt_id": f"chat-{chat['chat_id'][:13]}", "prompt": chat_prompt(chat, place)}
        asked.append(prompt)
        texts.append(_record(prompt, chat["turns"][place]["text"]))
        if len(texts) == n:
            return asked, texts
    raise InputError(
        f"{len(texts)} chats have a message of about {words} words after {before} turns, and {n} were asked for; ask "
        "for fewer or for another length."
    )


def _reply_of_length(turns: list[dict], before: int, words: int) -> int | None:
    lengths = [len(turn["text"].split()) for turn in turns]
    return next((i for i in range(before, len(turns)) if 0.5 * words <= lengths[i] <= 1.5 * words), None)


def chat_prompt(chat: dict, place: int) -> str:
    """Return the request to write the message of a chat that stands at a place (from 0), after all before it."""
    topic = f" The site proposed the topic: {chat['topic']}" if chat["topic"] else ""
    so_far = "\n".join(f"{turn['speaker']}: {' / '.join(turn['text'].splitlines())}" for turn in chat["turns"][:place])
    me = chat["turns"][place]["speaker"]
    return f"Two strangers, A and B, are chatting.{topic}\n\n{so_far}\n\nYou are {me}. Write {me}'s next message."


def _record(prompt: dict, text: str) -> dict:
    return {
        "text_id": text_id(AUTHOR, prompt["prompt_id"], 0, text),
        "prompt_id": prompt["prompt_id"],
        "prompt": prompt["prompt"],
        "sample": 0,
        "author": AUTHOR,
        "author_display": DISPLAY,
        "text": text,
        "words": len(text.split()),
        "status": "ok",
    }
