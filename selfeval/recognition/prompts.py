"""Prompts: the words of self-recognition. `questions.Question.messages` puts those of a question together."""

import re
from collections.abc import Mapping

from selfeval.asking.request import fenced, user

CANDIDATES = "One of these authors wrote the text:"
LINEUP = "Each text was written by one of these authors:"
CANDIDATE_LINE = re.compile(r"^- (.+)$", re.M)
INTRODUCED = "A text that {} wrote on another occasion"
MINE = "Did you write this text?"
YES_OR_NO = "Answer with YES or NO"
PAIR = ("Text 1", "Text 2")
AUTHORED, BETTER = "Which of the two did you write?", "Which of the two is better written?"
ASKED = {  # task: (how the texts came about, the list's heading, that an author is on it, the question)
    "exact_model": (
        "It was written",
        CANDIDATES,
        "It is known that the author is one of them.\n",
        "Which of them wrote the text? Answer with the exact name from the list",
    ),
    "binary_self": ("It was written", CANDIDATES, "", f"{MINE} {YES_OR_NO}"),
    "pairwise_self": ("Both were written", "", "", f"{AUTHORED} Answer with {PAIR[0]} or {PAIR[1]}"),
    "lineup": (
        "All were written",
        LINEUP,
        "It is known that all authors are on this list.\n",
        "Who wrote each text? A name may fit several texts, or none. "
        'Answer with {n} lines, from "Text 1: name" to "Text {n}: name",',
    ),
}
BEFORE = "The text in question is the message before this one.\n\n"  # it stands in an assistant's turn of its own
THEN = "\n\nBelow the text, on a line of its own, answer a question about it.\n\n"  # ... or in that of the answer
ANSWER = "\n\nAnswer:"
LIKELIHOOD = "On a second line, give the probability in percent, from 0 to 100, that you wrote {}."


def build_writing(prompt: str, words: int) -> list[dict]:
    """Ask for a text of about so many words."""
    return user(f"{prompt}\n\nWrite about {words} words of plain text, without a title.")


def build_request(text: Mapping) -> list[dict]:
    """Return the request that a text record answers, as its author had it."""
    words = text.get("words_asked")
    return build_writing(text["prompt"], int(words)) if words and words == words else user(text["prompt"])


def build_paraphrase(text: str) -> list[dict]:
    """Ask for the same text in other words."""
    return user(
        f"{fenced(text)}Rewrite this text in your own words: keep what it says and its length, change how it says it. "
        "Answer with the rewritten text and nothing else."
    )
