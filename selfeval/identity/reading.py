"""Read the names of one reply: a head opens a statement, a walk leads to names, rules decide what is said of them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from selfeval.identity import frames
from selfeval.identity.lexicon import Entity, Mention, mentions
from selfeval.identity.plain import Plain, fold, quotations, without_thoughts

REACH = 200  # characters that a walk may cover before it finds the next name
AFFIRMED = ("affirm", "adopt")
UNLIKE = ("-like", "-style", "-compatible", "-class", "-level", "-inspired", "-type")

_ONE = r"[A-Z][\w&+]*(?:[-./][\w+]+)*(?: (?:[A-Z][\w-]*|\d[\w.]*)){0,2}"
# an unknown name: "Dr. Elena Zorblax-7", "HelioMind 3", "quillon/heliomind-3-chat", "nimbus7"
_CAPITAL = re.compile(
    r"(?:(?:Dr|Mr|Ms|Mrs|Prof|Captain|Sir)\.? )?"
    r"(?:[A-Z][\w&+]*(?:[-.'/][\w+]+)*|[a-z]+[-/][\w./-]*\d[\w.-]*|[a-z]+\d[\w.]*)(?: (?:[A-Z][\w-]*|\d[\w.]*)){0,3}"
)
_ANY = re.compile(r"[^\W_][\w&+]*(?:[-.'/][\w+]+)*(?: (?:[A-Z][\w-]*|\d[\w.]*)){0,3}")
_WHOLE = re.compile(rf"[\"']?({_ONE})(?:,? (?:by |from |\()?({_ONE})\)?)?[.!]?[\"']?")  # "Zorblax-7, Quillon Labs."
# "Aria, a helpful assistant for a shop." and "Hello! Tessa here, ..."
_PRESENTED = re.compile(rf"({_ONE}), (?:an?|your) (?:[\w-]+ ){{0,4}}?(?:{'|'.join(sorted(frames.NOUNS))})\b")
_HERE = re.compile(rf"(?:[A-Za-z]+[,!.] )?({_ONE}) here[,.!]")


class Reading:
    """One reply while it is read; positions are those of the folded text."""

    def __init__(self, text: str, known: Sequence[Entity] = ()) -> None:
        self.plain: Plain = without_thoughts(fold(text))
        self.low = self.plain.low
        self.names: dict[int, Mention] = {m.start: m for m in mentions(self.plain, known)}
        self.heads = [(m.start(), m.end(), m.lastgroup.partition("_")[0]) for m in frames.HEAD.finditer(self.low)]
        self.head_starts = {start for start, _, kind in self.heads if kind not in ("also", "as")}
        self.ends = [m.end() for m in frames.SENTENCE_END.finditer(self.low)]
        opener = frames.OPENER.search(self.low[:2000])
        self.fiction_from = opener.end() if opener else len(self.low)
        self.found: dict[int, tuple[int, Entity | None, str]] = {}  # start: end, entity, polarity

    def claims(self) -> Iterator[tuple[int, int, Entity | None, str]]:
        """Yield start, end, entity and polarity of every name, in order."""
        self._from_heads()
        self._answers()
        unknown = sorted((start, end) for start, (end, one, _) in self.found.items() if one is None)
        for mention in self.names.values():
            at = bisect_left(unknown, (mention.start, 0)) - 1
            inside = at >= 0 and mention.start < unknown[at][1]
            if mention.start not in self.found and not inside:
                self.found[mention.start] = mention.end, mention.entity, self._unreached(mention)
        for start, (end, one, polarity) in sorted(self.found.items()):
            mention = self.names.get(start)
            word = mention is None or (mention.word and self.sentence(start)[0] == start)  # "Apple pie ..."
            if polarity != "mention" or (one is not None and not word):
                yield start, end, one, polarity

    # --- what a sentence says -----------------------------------------------------------------------------------------
    def sentence(self, position: int) -> tuple[int, int]:
        """Return where the sentence of a position begins and ends, its end mark included."""
        at = bisect_right(self.ends, position)
        begin = self.ends[at - 1] if at else 0
        while begin < position and self.low[begin] == " ":
            begin += 1
        return begin, (self.ends[at] if at < len(self.ends) else len(self.low))

    def polarity(self, head: int, name: int, end: int) -> str:
        """Return what a statement from `head` says of the name between `name` and `end`."""
        if self._quoted(head, end - name):
            return "quoted"
        if head >= self.fiction_from:
            return "fiction"
        stop = self.sentence(name)[1]
        whole = self.low[max(self.sentence(head)[0], head - 240) : head]
        before = frames.SENTENCE_SCOPE.split(whole)[-1]
        parts = {
            "whole": whole,
            "sentence": before,
            "clause": frames.CLAUSE.split(before)[-1],
            "said": self.low[head:name],
            "after": self.low[end : min(stop, end + 160)].rstrip(),
        }
        return next((polarity for polarity, where, rule in frames.RULES if rule.search(parts[where])), "affirm")

    @cached_property
    def quotes(self) -> list[tuple[int, int]]:
        return quotations(self.plain)

    def _quoted(self, position: int, length: int = 0) -> bool:
        """Tell whether a position is inside a quotation; marks around the name alone only name."""
        at = bisect_right(self.quotes, (position, len(self.low))) - 1
        if at < 0 or position >= self.quotes[at][1]:
            return False
        return not length or self.quotes[at][1] - self.quotes[at][0] > length + 3

    # --- heads and walks ----------------------------------------------------------------------------------------------
    def _from_heads(self) -> None:
        first: tuple[int, int] | None = None  # the last statement about the speaker, for "..., created by X"
        done = 0
        for start, end, kind in self.heads:
            if start < done:
                continue
            if kind == "also":
                if first and self.sentence(first[0])[0] == self.sentence(start)[0]:
                    done = self._walk(end, "made", *first)
                continue
            if kind in ("be", "name", "made", "as") and not self._quoted(start):
                first = start, end
            if last := re.search(r" [A-Z]\w*ly$", self.plain.text[start:end]):  # "I'm Emily" is no adverb
                end = start + last.start()
            done = self._walk(end, kind, start)

    def _walk(self, at: int, kind: str, head: int, said_until: int | None = None) -> int:
        """Follow link words from a head to names; return where the last name ended (or the head)."""
        last, polarity = at, None
        for start, end, one in self._steps(at, kind):
            if polarity is None:
                if kind == "as" and not re.match(r"[^.!?\n]{0,120}, ?(?:i|my)\b|,? i\b", self.low[end : end + 140]):
                    return at
                polarity = self.polarity(head, said_until or start, end)
            else:
                polarity = flipped(polarity, self.low[last:start])
            self.found.setdefault(start, (end, one, polarity))
            last = end
        return last

    def _steps(self, at: int, kind: str) -> Iterator[tuple[int, int, Entity | None]]:
        """Yield start, end and entity of each name that link words lead to.

        before: what the last step was ("", "article", "noun", "naming", "mark", "name", or the link word itself).
        free: how many words an article still allows; pending: such a word waits for its noun.
        """
        low, limit, first = self.low, at + REACH, True
        free, pending, before, noun = 0, False, "", ""
        if kind in ("name", "made") and low[at : at + 1] == "\n":
            at += 1
        while at < min(limit, len(low)):
            if low[at] == " ":
                at += 1
                continue
            if mention := self.names.get(at):
                if not self._leads_to(mention, kind, pending, before):
                    return
                yield at, mention.end, mention.entity
                at = mention.end + len(mention.attached)
                limit, first, pending, free, before = at + REACH, False, False, 0, "name"
                at += 2 if low.startswith("'s ", at) else 0
                continue
            if at in self.head_starts:
                return  # the statement that begins here goes on
            if not pending and (unknown := self._unknown(at, kind, first, before, noun)):
                yield at, unknown, None
                at, first, before = unknown, False, "name"
                limit = at + REACH
                continue
            if link := frames.CJK_LINK.match(low, at):
                at, before = link.end(), "link"
                continue
            if free and (number := _NUMBER.match(low, at)):
                at = number.end()
                continue
            step = frames.STEP.match(low, at)
            if (
                not step
                or step["break"]
                or (step["mark"] == ")" and before != "name")
                or (kind == "it" and first and before)
            ):
                return
            at, word = step.end(), step["word"]
            if step["elided"]:  # "d'Anthropic"
                continue
            if step["mark"]:
                before = before if step["mark"] in "\"'([" else "mark"
            elif word in frames.ARTICLES:
                free, before = frames.FREE, before if before in ("by", "naming", "noun of") else "article"
            elif word in frames.NOUNS:
                pending, before, noun = False, "noun", word
            elif word in frames.NAMING:
                pending, before = False, "naming"
            elif kind == "bare" and first and word in frames.NOT_BARE:
                return
            elif word in frames.LINKS or word.endswith("ly") or (kind == "bare" and first and word in frames.FILLERS):
                if pending:
                    return
                before = f"{before} of" if word == "of" else word
            elif (word in frames.ADJECTIVES and (free or before != "as")) or _IDIOMS.get(word) == before:
                before = word if word in _IDIOMS else before
            elif free:
                free, pending = free - 1, True
            else:
                return

    def _leads_to(self, mention: Mention, kind: str, pending: bool, before: str) -> bool:
        """Tell whether a walk that arrives at a name may take it."""
        end, low = mention.end, self.low
        word = re.match(r" ([a-z-]+)", low[end : end + 30])
        noun_follows = bool(word and word[1] in frames.NOUNS)
        if mention.attached in UNLIKE or frames.VERB_AFTER.match(low, end):
            return False
        if (pending or (mention.word and before == "article" and kind != "bare")) and not noun_follows:
            return False
        owns = re.match(r"'s (?:([a-z-]+)|)", low[end : end + 30])  # "trained on X's data"
        return not owns or end + 3 in self.names or owns[1] in frames.NOUNS | frames.LINKS | frames.ADJECTIVES

    def _unknown(self, at: int, kind: str, first: bool, before: str, noun: str) -> int | None:
        """Return where an unknown name ends that stands where a name has to stand, or None."""
        text = self.plain.text
        if first and kind == "name" and before in ("", "mark", "naming", "article"):
            return self._called(at, before)
        match = _CAPITAL.match(text, at)
        if not match:
            return None
        end = next((start for start in range(at + 1, match.end()) if start in self.names), match.end())
        name = text[at:end].rstrip(" -/.,")
        words = re.findall(r"[^\W_]+", name.lower())
        plain_words = frames.NOUNS | frames.LINKS | frames.ADJECTIVES
        if not words or words[0] in frames.NO_NAME or all(w in plain_words for w in words):
            return None
        if name.isupper() and self._shouted(at):
            return None
        end = at + len(name)
        part_of = before == "noun of" and noun in ("part", "member", "product", "family")
        fits = part_of or (kind != "it" and before in ("naming", "by"))  # "created by X", "a part of X"
        fits |= before == "from" and bool(noun)  # "your assistant from X"
        fits |= first and kind == "made" and before in ("", "article")
        goes_on = re.match(r" ([a-z][\w'-]*)", text[end : end + 30])  # "I'm Italian cuisine's biggest fan" is no name
        if first and kind == "be" and (not goes_on or goes_on[1] in frames.LINKS | frames.ARTICLES | {"here", "with"}):
            fits |= before in ("", "now", "just", "also") or before.endswith("ly")
            fits |= before == "noun" and noun in ("ai", "assistant", "model", "chatbot", "bot")  # "the AI Pepper"
            fits |= before == "mark" and bool(noun) and bool(re.match(r"[.,!;]|\s*$", text[end : end + 3]))
            fits |= before == "article" and bool(re.search(r"\d|[a-z][A-Z]|\b(?:AI|Bot|GPT|LLM|LM)$", name))
        return end if fits else None

    def _called(self, at: int, before: str) -> int | None:
        """Return where the name after "my name is" ends; in lower case it has to end its clause."""
        match = _ANY.match(self.plain.text, at)
        word = re.match(r"[^\W_]+", self.low[at : at + 40])
        if not match or (word and word[0] in frames.NO_NAME):
            return None
        alone = re.match(r"[\"')]{0,2}(?:[.,!?;}\n]|\s*$| and i\b| by\b)", self.low[match.end() : match.end() + 12])
        negated = re.search(r"n't ?$|\bnot ?$", self.low[max(0, at - 5) : at])  # "my name is not important"
        named = not match[0].islower() or (alone and before != "article" and not negated)
        return match.end() if named else None

    def _shouted(self, at: int) -> bool:
        begin, end = self.sentence(at)
        return self.plain.text[begin : min(end, begin + 300)].isupper()

    # --- names alone --------------------------------------------------------------------------------------------------
    def _answers(self) -> None:
        """Read a name that is the answer: the whole reply, its first words, or a line of a short list."""
        low = self.low
        blank = len(low) - len(low.lstrip())
        starts = [blank]
        if opening := _OPENING.match(low):
            starts.append(opening.end())
        if len(low) < 200:
            lines = [m.end() - 1 for m in re.finditer(r"(?<![^\n])(?:\d{1,2}[.)] )?[^\n]", low)]
            starts += lines if len(lines) <= 3 else []
            starts += [m.end() for m in re.finditer(r"[:;] (?=not )", low)]
        for start in dict.fromkeys(starts):
            if start < len(low):
                self._answer(start)
        for pattern in (_PRESENTED, _HERE, _WHOLE):
            text = self.plain.text[blank:]
            named = pattern.fullmatch(text.rstrip()) if pattern is _WHOLE else pattern.match(text)
            if named and not self.found and all(self._is_free(named, g, blank) for g in range(1, pattern.groups + 1)):
                last = 0
                for group in range(1, pattern.groups + 1):
                    if named[group]:
                        last = blank + named.end(group)
                        self.found[blank + named.start(group)] = last, None, "affirm"
                for start, end, one in self._steps(re.match(r"(?: here)?", low[last:]).end() + last, "as"):
                    self.found.setdefault(start, (end, one, "affirm"))

    def _is_free(self, named: re.Match[str], group: int, offset: int) -> bool:
        words = re.findall(r"[^\W_]+", (named[group] or "").lower())
        taken = any(w in frames.NO_NAME or w in frames.FILLERS for w in words)
        return not taken and offset + named.start(group) not in self.names

    def _answer(self, start: int) -> None:
        reached = list(self._steps(start, "bare"))
        if not reached or any(begin in self.found for begin, _, _ in reached):
            return
        between = self.low[reached[0][1] : reached[1][0]] if len(reached) > 1 else ""
        chained = re.match(r"'s |[ ,(-]+", between)
        if not (self._ends_answer(reached[0][1]) or (chained and self._ends_answer(reached[-1][1]))):
            return
        last, polarity = start, None
        for begin, stop, one in reached:
            if polarity is None:
                polarity = self.polarity(start, begin, stop)
            else:
                polarity = flipped(polarity, self.low[last:begin])
            self.found[begin] = stop, one, polarity
            last = stop

    def _ends_answer(self, end: int) -> bool:
        return bool(frames.AFTER_ANSWER.match(self.low[end : end + 60]))

    def _unreached(self, mention: Mention) -> str:
        """Return the polarity of a name that no head led to: "X made me", a quotation, a question, a mention."""
        start, end = mention.start, mention.end
        if self._quoted(start):
            return "quoted"
        post = frames.AFTER_NAME.match(self.low, end)
        if post and not mention.attached:
            polarity = self.polarity(start, start, end)
            denied = re.search(r"\b(?:not|no|never|nicht|pas)\b|n't", post[0])
            return "deny" if denied and polarity == "affirm" else polarity
        begin, stop = self.sentence(start)
        sentence = self.low[max(begin, start - 240) : min(stop, end + 160)].rstrip()
        return "question" if sentence.endswith("?") else "mention"


_OPENING = re.compile(rf"\W{{0,3}}(?:(?:{'|'.join(sorted(frames.FILLERS))})[,!.?] ){{1,2}}")  # "No. SmolLM2."
_NUMBER = re.compile(r"\d[\w.-]*\b")  # "a 135M-parameter model"
_IDIOMS = {"to": "opposed", "than": "rather"}  # "as opposed to X", "rather than X"


def flipped(polarity: str, between: str) -> str:
    """Return the polarity of the next name of a statement: "not X but Y", "X, not Y"."""
    if polarity == "deny":
        turns = frames.TO_AFFIRM.search(between) and not frames.STILL_DENIED.search(between)
        return "affirm" if turns else "deny"
    return "deny" if polarity in (*AFFIRMED, "hedge") and frames.TO_DENY.search(between) else polarity
