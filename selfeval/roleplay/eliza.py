"""A scripted support agent in the manner of ELIZA (Weizenbaum 1966): patterns and reflections, nothing understood.

It is the floor of the comparison: a jury that does not place it below people has not noticed what it read.
"""

import random
import re
from collections.abc import Callable

REFLECTED = dict(
    pair.split(":")
    for pair in "i:you me:you my:your mine:yours myself:yourself am:are was:were i'm:you're i've:you've i'll:you'll "
    "you:I your:my yours:mine yourself:myself you're:I'm you've:I've you'll:I'll we:you our:your us:you".split()
)
RULES: list[tuple[str, list[str]]] = [
    (r"\b(?:are you|am i (?:talking|speaking|chatting) (?:to|with)) (?:a |an )?(?:\w+ )?(bot|robot|machine|ai|computer|"
     r"human|person)\b", ["Why do you ask whether I am a {0}?", "Would it change anything if I were a {0}?",
                          "Do you often think about talking to a {0}?"]),
    (r"\b(?:screenshot|upload\w*|attach\w*|picture|photo)\b", ["Please tell me more about it in words.",
                                                               "What would I have seen there?"]),
    (r"\b(?:your|the) (?:shift|day|lunch|weekend|office|desk)\b", ["Let us talk about you. What can I help with?",
                                                                   "We were discussing your problem, not mine."]),
    (r"\b(?:hello|hi|hey|good (?:morning|afternoon|evening))\b", ["Hello. What brings you to support today?",
                                                                  "Hi there. Please describe your problem."]),
    (r"\bbecause (.+)", ["Is that the only reason?", "Does {0} explain anything else?"]),
    (r"\bi (?:can't|cannot|can not|could not|couldn't) (.+)", ["How do you know that you cannot {0}?",
                                                               "What happens when you try to {0}?"]),
    (r"\bi need (.+)", ["Why do you need {0}?", "Would {0} really solve it?"]),
    (r"\b(?:i feel|i am|i'm) (.+)", ["How long have you been {0}?", "Since when are you {0}?"]),
    (r"\bmy ([\w ]+?) (?:is|are|was|were|won't|doesn't|don't|keeps?|opens?) (.+)",
     ["When did your {0} last work as it should?", "What makes you say that your {0} is the problem?"]),
    (r"\b(?:error|crash\w*|broken|bug|freez\w+|read-only)\b", ["When did you first see this?",
                                                               "And what happened just before that?"]),
    (r"\b(?:thanks|thank you|cheers)\b", ["You are welcome. Is there anything else?"]),
    (r"^(?:what|how|who|when|where|why|which)\b.*\?", ["Why do you ask?", "What answer would help you most?",
                                                       "What do you think yourself?"]),
    (r"\b(?:can|could|would|will) you (.+)", ["What if I could {0}?", "Perhaps you would like to {0} yourself."]),
    (r"\b(?:yes|yeah|ok|okay|sure|right)\b", ["I see. And then?", "You seem quite sure."]),
    (r"\b(?:no|not|never|nope)\b", ["Why not?", "Are you saying no just to be negative?"]),
]  # fmt: skip
ANYTHING = ["I see. Please go on.", "Can you say that in other words?", "What else comes to your mind about it?"]


def reflect(words: str) -> str:
    """Return words of the customer as said to the customer: "my file" becomes "your file"."""
    return " ".join(REFLECTED.get(word.lower(), word) for word in words.split())


def answer(text: str, draw: random.Random) -> str:
    """Return an answer to one message: that of the first rule which fits, its variant drawn."""
    plain = " ".join(text.replace("’", "'").split())
    for pattern, variants in RULES:
        if found := re.search(pattern, plain, re.I):
            part = re.split(r"[.,;:!?]", found[1])[0].strip() if found.groups() else ""
            return draw.choice(variants).format(reflect(part) or "it")
    return draw.choice(ANYTHING)


def agent(seed: int) -> Callable:
    """Return ELIZA as a callable on messages; the same messages and seed have the same answer."""

    def reply(messages: list[dict], **_) -> str:
        heard = [message["content"] for message in messages if message["role"] == "user"]
        return answer(heard[-1], random.Random(f"{seed}\n" + "\n".join(heard)))

    return reply
