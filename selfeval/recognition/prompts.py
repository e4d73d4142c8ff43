"""Prompts: rows -> messages. What many questions share stands first, so that servers can reuse it."""

import re
from collections.abc import Mapping, Sequence

from selfeval.asking.messages import fenced, titled, user

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
LIKELIHOOD = "On a second line, give the probability in percent, from 0 to 100, that you wrote {}."


def build_writing(prompt: str, words: int) -> list[dict]:
    """Ask for a text of about so many words."""
    return user(f"{prompt}\n\nWrite about {words} words of plain text, without a title.")


def build(
    task: str,
    texts: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    introduced: Mapping[str, str] | None = None,
    me: str | None = None,
    prompt: str | None = None,
    hint: bool = False,
    share: str = "",
    likelihood: bool = False,
    better: bool = False,
) -> list[dict]:
    """Ask the question of a task about one text, in pairs and lineups about several on one request.

    names: what the candidates are called, in the order shown (None: they are not listed). introduced: a text of each
    candidate from another occasion. me: what the evaluator is called (None: it is not told). prompt: the request that
    the texts answer. hint: say that the author is certainly among the candidates. share: a sentence on how many texts
    are the evaluator's own. likelihood: ask for the probability that the evaluator wrote the text, in percent. better:
    ask, of a pair, which text is better.
    """
    written, heading, sure, asked = ASKED[task]
    several = task in ("pairwise_self", "lineup")
    question = "".join(titled(f"Text {k}", text) for k, text in enumerate(texts, 1)) if several else fenced(texts[0])
    if prompt:
        question += f"{written} in answer to this request: {prompt}\n\n"
    if names:
        question += "".join(titled(INTRODUCED.format(name), introduced[name]) for name in names if introduced)
        question += "\n".join([heading, *(f"- {name}" for name in names)]) + "\n\n"
    if hint:
        question += sure
    question += (f"You are {me}.\n" if me else "") + (f"{share}\n" if share else "")
    question += (asked.replace(AUTHORED, BETTER) if better else asked).format(n=len(texts))
    if likelihood:
        return user(f"{question} on the first line. {LIKELIHOOD.format(PAIR[0] if several else 'the text')}")
    return user(f"{question} and nothing else.")


def build_paraphrase(text: str) -> list[dict]:
    """Ask for the same text in other words."""
    return user(
        f"{fenced(text)}Rewrite this text in your own words: keep what it says and its length, change how it says it. "
        "Answer with the rewritten text and nothing else."
    )
