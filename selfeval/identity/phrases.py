"""The phrases of `data/identity/phrases.yaml`, and how they are found in a sentence.

All phrases of a list are one automaton that takes a word at a time, so that the time grows with the
length of a text and not with the number of phrases.
"""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from selfeval.paths import shipped

ENDS = frozenset(".!?\n")
_STOPS = ENDS | {*",;:"}  # no gap of a phrase reaches over them
_GAPS = {"...": 3, "…": 2}  # words at most
_END = frozenset("$")  # the words end here
_REACH = 24  # words from the first of a phrase to its last, adverbs between them included
_STATES = 20_000  # kept at most
_CJK = re.compile(r"[\u3040-\u9fff]+")

Part = frozenset | int  # words one of which fits, or how many words may stand there
Phrase = tuple[Part, ...]


class _State:
    """Phrases that have begun.

    open: (number of the phrase, its next part, words that its gap may still take).
    """

    def __init__(self, open_parts: frozenset, phrases: Sequence[tuple[Hashable, Phrase]]) -> None:
        self.open = open_parts
        self.after: dict[str, _State] = {}
        self.said: list = []  # labels of the phrases that are complete
        self.said_at_the_end: list = []  # and of those that are if no word follows
        for number, part, _ in open_parts:
            label, phrase = phrases[number]
            if part == len(phrase):
                self.said.append(label)
            elif phrase[part] >= _END:
                self.said_at_the_end.append(label)


class Automaton:
    """Finds labelled phrases.

    anywhere: from the first word on, else those that begin at a given word.
    """

    def __init__(
        self,
        phrases: Iterable[tuple[Hashable, Phrase]],
        adverbs: Collection[str],
        *,
        anywhere: bool = False,
    ) -> None:
        self.phrases = list(phrases)
        self.adverbs = adverbs
        begin = frozenset((number, 0, 0) for number in range(len(self.phrases)))
        self.carried: frozenset = begin if anywhere else frozenset()
        self.states: dict[frozenset, _State] = {}
        self.begin = self._state(begin)
        words = {*adverbs, *_STOPS}
        for _, phrase in self.phrases:
            words.update(*(part for part in phrase if isinstance(part, frozenset)))
        self.words = words
        begins: Any = [phrase[0] for _, phrase in self.phrases]
        self.first = frozenset().union(*begins)

    def _state(self, open_parts: frozenset) -> _State:
        if open_parts not in self.states:
            self.states[open_parts] = _State(open_parts, self.phrases)
        return self.states[open_parts]

    def step(self, state: _State, word: str) -> _State:
        """Return the state after a further word."""
        if word not in self.words:
            word = "-ly" if _is_made_adverb(word) else ""
        following = state.after.get(word)
        if following is None:
            following = state.after[word] = self._state(self._opened(state, word))
            if len(self.states) > _STATES:
                self.states.clear()
                self.begin.after.clear()
        return following

    def _opened(self, state: _State, word: str) -> frozenset:
        opened = set()
        is_adverb = word in self.adverbs or _is_made_adverb(word)
        for number, part, gap in state.open | self.carried:
            _, phrase = self.phrases[number]
            if part == len(phrase):
                continue
            if word in phrase[part]:
                opened.add(self._next(number, part + 1))
            if gap and word not in _STOPS:
                opened.add((number, part, gap - 1))
            if part and is_adverb:
                opened.add((number, part, 0))
        return frozenset(opened)

    def _next(self, number: int, part: int) -> tuple[int, int, Any]:
        _, phrase = self.phrases[number]
        if part < len(phrase) and isinstance(phrase[part], int):
            return number, part + 1, phrase[part]
        return number, part, 0

    def at(self, words: Sequence[str], start: int) -> Iterator[tuple[int, Any, bool]]:
        """Yield end and label of the phrases that begin at a word.

        True if the words must end where the phrase does.
        """
        if words[start] not in self.first:
            return
        state = self.begin
        for number in range(start, min(start + _REACH, len(words))):
            state = self.step(state, words[number])
            if not state.open:
                return
            for label in state.said:
                yield number + 1, label, False
            for label in state.said_at_the_end:
                yield number + 1, label, True

    def longest(self, words: Sequence[str], start: int) -> int | None:
        """Return where the longest phrase ends that begins at a word, or None."""
        longest = None
        for end, _, only_at_the_end in self.at(words, start):
            if not only_at_the_end or end == len(words):
                longest = end
        return longest

    def said_in(self, words: Sequence[str]) -> set:
        """Return the labels of all phrases that stand anywhere in words."""
        said: set = set()
        state = self.begin
        for word in words:
            state = self.step(state, word)
            said.update(state.said)
        return said.union(state.said_at_the_end)


def _is_made_adverb(word: str) -> bool:
    return word.endswith("ly") and word.isascii()


class Phrases:
    """What `data/identity/phrases.yaml` holds, ready to be looked for in a list of words."""

    def __init__(self, content: dict) -> None:
        self.classes = {
            name: frozenset(words.split()) for name, words in content["classes"].items()
        }
        self.words = {
            name: frozenset(words.split())
            for name, words in content.items()
            if isinstance(words, str)
        }
        self.words["links"] |= self.classes["made"]
        self.heads = self._automaton(content["heads"])
        self.cues = [(polarity, where) for polarity, where, _ in content["cues"]]
        by_rank = {rank: phrases for rank, (_, _, phrases) in enumerate(content["cues"])}
        self.before = self._automaton(
            {rank: by_rank[rank] for rank in by_rank if self.cues[rank][1] != "after"}
        )
        self.after = self._automaton(
            {rank: by_rank[rank] for rank in by_rank if self.cues[rank][1] == "after"}
        )
        self.behind = self._automaton({"after": content["after"]})
        self.takes_back = self._automaton({"takes_back": content["takes_back"]})
        self.nothing = self._automaton({"nothing": content["nothing"]})
        topics = {name: content[name] for name in ("openers", "withholds", "on_identity")}
        self.topics = self._automaton(topics, anywhere=True)
        self.contractions = dict(content["contractions"])
        longest_first = sorted(self.contractions, key=len, reverse=True)
        self.contracted = re.compile("|".join(map(_bounded, longest_first)))
        self.plain = set(re.findall(r"[^\s,\[\]$<>.…'\"]+", str(content)))
        cjk = {piece for word in self.plain for piece in _CJK.findall(word)}
        self.cjk = re.compile("|".join(sorted(cjk, key=len, reverse=True)))

    def _automaton(
        self, lists: Mapping[Any, Sequence[str]], *, anywhere: bool = False
    ) -> Automaton:
        phrases = [(label, self._parts(text)) for label, texts in lists.items() for text in texts]
        return Automaton(phrases, self.words["adverbs"], anywhere=anywhere)

    def _parts(self, text: str) -> Phrase:
        return tuple(map(self._part, text.split()))

    def _part(self, word: str) -> Part:
        if word.startswith("<"):
            return self.classes[word[1:-1]]
        return _GAPS.get(word) or frozenset([word])

    def is_adverb(self, word: str) -> bool:
        """Tell whether a word may stand between those of a phrase."""
        return word in self.words["adverbs"] or _is_made_adverb(word)

    def words_of(self, low: str) -> str:
        """Return a folded text in lower case, contractions written out, CJK words apart."""
        low = self.contracted.sub(lambda short: self.contractions[short[0]], low)
        return _CJK.sub(lambda run: " " + self.cjk.sub(r" \g<0> ", run[0]) + " ", low)


def _bounded(short: str) -> str:
    before = r"(?<=\w)" if short[0] == "'" or short == "n't" else r"\b"
    return before + re.escape(short) + (r"(?=\w)" if short.endswith("'") else r"\b")


# "no" and "on" are words: all stays text
_CONTENT = yaml.load(shipped("identity/phrases.yaml").read_text(encoding="utf-8"), yaml.BaseLoader)
PHRASES = Phrases(_CONTENT)
WORDS = PHRASES.words
