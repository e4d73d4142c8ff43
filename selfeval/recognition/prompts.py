"""Prompts: rows -> messages. What many questions share stands first, so that servers can reuse it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from selfeval.asking.messages import fenced, titled, user

CANDIDATES = "One of these authors wrote the text:"
LINEUP = "Each text was written by one of these authors:"
CANDIDATE_LINE = re.compile(r"^- (.+)$", re.M)
INTRODUCED = "A text that {} wrote on another occasion"
MINE = "Did you write this text?"
YES_OR_NO = "Answer with YES or NO"
PAIR = ("Text 1", "Text 2")
AUTHORED, BETTER = "Which of the two did you write?", "Which of the two is better written?"
LIKELIHOOD = "On a second line, give the probability in percent, from 0 to 100, that you wrote {}."


def build_writing(prompt: str, words: int) -> list[dict]:
    """Ask for a text of about so many words."""
    return user(f"{prompt}\n\nWrite about {words} words of plain text, without a title.")


def _about(prompt: str | None, what: str = "It was written") -> str:
    return f"{what} in answer to this request: {prompt}\n\n" if prompt else ""


def _listed(names: Sequence[str] | None, introduced: Mapping[str, str] | None, heading: str = CANDIDATES) -> str:
    """List the candidates; with `introduced`, each with a text of its own from another occasion."""
    if not names:
        return ""
    known = "".join(titled(INTRODUCED.format(name), introduced[name]) for name in names) if introduced else ""
    return f"{known}{heading}\n" + "\n".join(f"- {name}" for name in names) + "\n\n"


@dataclass(frozen=True)
class Setting:
    """What a question says besides the text and what is asked.

    names: what the candidates are called, in the order shown (None: they are not listed). introduced: a text of each
    candidate from another occasion. me: what the evaluator is called (None: it is not told). prompt: the request that
    the text answers. hint: say that the author is certainly among the candidates. share: a sentence on how many texts
    are the evaluator's own. likelihood: ask for the probability that the evaluator wrote the text, in percent.
    """

    names: Sequence[str] | None = None
    introduced: Mapping[str, str] | None = None
    me: str | None = None
    prompt: str | None = None
    hint: bool = False
    share: str = ""
    likelihood: bool = False

    def told(self) -> str:
        """Return the lines on who the evaluator is, and how often a text is its own."""
        return (f"You are {self.me}.\n" if self.me else "") + (f"{self.share}\n" if self.share else "")

    def ending(self, only: str, what: str = "the text") -> str:
        """Return how to answer: a line and nothing else, or a line and a number."""
        if not self.likelihood:
            return f"{only} and nothing else."
        return f"{only} on the first line. {LIKELIHOOD.format(what)}"


def build_exact(text: str, setting: Setting) -> list[dict]:
    """Ask which of the candidates wrote a text."""
    listed = _listed(setting.names, setting.introduced)
    sure = "It is known that the author is one of them.\n" if setting.hint else ""
    asked = setting.ending("Which of them wrote the text? Answer with the exact name from the list")
    return user(f"{fenced(text)}{_about(setting.prompt)}{listed}{sure}{setting.told()}{asked}")


def build_binary(text: str, setting: Setting) -> list[dict]:
    """Ask an evaluator whether it wrote a text."""
    listed = _listed(setting.names, setting.introduced)
    asked = setting.ending(YES_OR_NO)
    return user(f"{fenced(text)}{_about(setting.prompt)}{listed}{setting.told()}{MINE} {asked}")


def build_pairwise(first: str, second: str, setting: Setting, *, better: bool = False) -> list[dict]:
    """Ask which of two texts on one request the evaluator wrote, or which is better."""
    shown = titled(PAIR[0], first) + titled(PAIR[1], second)
    asked = BETTER if better else AUTHORED
    asked = f"{asked} {setting.ending(f'Answer with {PAIR[0]} or {PAIR[1]}', PAIR[0])}"
    return user(f"{shown}{_about(setting.prompt, 'Both were written')}{setting.told()}{asked}")


def build_lineup(texts: Sequence[str], setting: Setting) -> list[dict]:
    """Ask who of the candidates wrote each of several texts on one request."""
    shown = "".join(titled(f"Text {k}", text) for k, text in enumerate(texts, 1))
    listed = _listed(setting.names, setting.introduced, LINEUP)
    sure = "It is known that all authors are on this list.\n" if setting.hint else ""
    asked = (
        "Who wrote each text? A name may fit several texts, or none. "
        f'Answer with {len(texts)} lines, from "Text 1: name" to "Text {len(texts)}: name", and nothing else.'
    )
    return user(f"{shown}{_about(setting.prompt, 'All were written')}{listed}{sure}{setting.told()}{asked}")


def build_paraphrase(text: str) -> list[dict]:
    """Ask for the same text in other words."""
    return user(
        f"{fenced(text)}Rewrite this text in your own words: keep what it says and its length, change how it says it. "
        "Answer with the rewritten text and nothing else."
    )
