"""Claims: which models and makers does a reply claim to be, deny to be, or merely mention?

Names come from `selfeval.identity.names`, the words that tie them to the speaker from
`data/identity/phrases.yaml`. A head ("I am", "my maker is", "Name:") opens a statement, a walk over
link words ("a large language model made by") leads to the first name and on to further ones, and
cues in the words around decide what is said. A name that no walk reaches is a mention. How well
that does on labelled replies is in the README of `data/identity/labelled`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

from selfeval.identity.names import Entity, Mention, Names, Plain, fold, mentions
from selfeval.identity.phrases import ENDS, PHRASES, WORDS
from selfeval.reading import thinking

AFFIRMED = ("affirm", "adopt")
CLAUSE_STARTS = {*",;:.!?{|([\"'/&-)\n", "actually", "no", "yes", "but", "reflection", "thought"}
FREE = 6  # words between an article and its noun: "an advanced, rather chatty assistant"
# stand for a known name, a capitalised one, a quotation
KNOWN = "\ue000"
NEW = "\ue001"
QUOTED = "\ue002"
MARKS = set(",(\"'[/&:-)")
SCOPES = WORDS["scopes"] | {";", ":"}
BREAKS = WORDS["breaks"] | {",", "(", ")", "-"}
FIELDS = (
    PHRASES.classes["name_field"]
    | PHRASES.classes["made_field"]
    | {"i", "am", "it", "is", *"-{}_"}
    | MARKS
    | ENDS
)
ASKS_ANEW = MARKS | {";", "and", "so"}  # behind a name they end the question that it stands in
# of a reply that repeats itself without end, what stands behind so many is not read
MOST_NAMES = 1_000
REACH = 40  # words before a head, or between a head and its name, that say something of it
_WORD = re.compile(r"[\ue000-\ue002]|[^\W_]+(?:[-'./][^\W_]+)*|\.\.\.|[^\w\s]|\n")
# a particle follows a name without a space
_OTHER_SCRIPT = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]")
# an unknown name: "Dr. Elena Zorblax-7", "HelioMind 3", "quillon/heliomind-3-chat", "nimbus7"
_CAPITAL = re.compile(
    r"(?<![\w-])(?:[A-Z][\w&+]*(?!['\w])(?:[-./][\w+]+)*|[a-z]+[-/][\w./-]{0,60}\d[\w.-]*"
    r"|[a-z]+\d[\w.]*)"
    r"(?: (?:(?!I\b)[A-Z](?!')[\w-]*|\d\w*(?:\.\w+)*)){0,3}"
)


class Claim(NamedTuple):
    """One name in a reply and what the reply says with it; `text[start:end] == quote`.

    entity: None = an unknown name in an identity frame. polarity: affirm, deny, adopt ("from now on
    I am X"), attributed ("you said I am X"), quoted, fiction, hypothetical, question, hedge or
    mention.
    """

    quote: str
    start: int
    end: int
    entity: Entity | None
    name: str
    polarity: str


# --- a reply as sentences of words


class _Place(NamedTuple):
    """Where a word stands for something else: a quotation, a known name, one that could be new."""

    start: int
    end: int
    word: str
    mention: Mention | None = None


def _sentences(
    plain: Plain, found: Sequence[Mention]
) -> tuple[list[list[str]], list[Mention], list[Mention]]:
    """Return the sentences as words, the names in them, and those inside quotations."""
    quotes, quoted = _quoted(plain, found)
    places = [_Place(start, end, QUOTED) for start, end in quotes]
    taken = {mention.start for mention in quoted}
    for mention in found:
        if mention.start not in taken:
            end = mention.end + len(mention.attached)
            places.append(_Place(mention.start, end, KNOWN, mention))
    rest = list(plain.text)
    for place in places:
        rest[place.start : place.end] = "\n" * (place.end - place.start)
    for mention in _capitalised("".join(rest)):
        places.append(_Place(mention.start, mention.end, NEW, mention))
    places.sort(key=lambda place: (place.start, place.end))
    names = [place.mention for place in places if place.mention]
    return _divided(_words(plain.low, places)), names, quoted


def _quoted(plain: Plain, found: Sequence[Mention]) -> tuple[list[tuple[int, int]], list[Mention]]:
    """Return the spans of quotations, and the names inside them."""
    starts = [mention.start for mention in found]
    quotes = []
    quoted = []
    for start, end in _quotations(plain):
        inside = found[bisect_left(starts, start) : bisect_left(starts, end)]
        if not _only_names(plain.text[start:end], start, inside):
            quotes.append((start, end))
            quoted += inside
    return quotes, quoted


def _words(low: str, places: Sequence[_Place]) -> list[str]:
    """Return a text as words, with a word for each place in it."""
    words = []
    last = 0
    for place in places:
        words += _WORD.findall(PHRASES.words_of(low[last : place.start]))
        words.append(place.word)
        last = place.end
    return words + _WORD.findall(PHRASES.words_of(low[last:]))


def _divided(words: Sequence[str]) -> list[list[str]]:
    """Return words by sentence; line breaks in a row are one."""
    sentences: list[list[str]] = [[]]
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word == following == "\n":
            continue
        sentences[-1].append(word)
        if word in ENDS and following not in ("'", '"', ")", *ENDS - {"\n"}):
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


def _only_names(text: str, at: int, inside: Sequence[Mention]) -> bool:
    """Tell whether marks stand around a name alone.

    'called "Echo"'. text: what stands at a place, marks included.
    """
    if not inside:
        return len(re.findall(r"\w+", text)) < 3
    first = at + 3
    last = at + len(text) - 4
    return any(mention.start < first and mention.end > last for mention in inside)


def _capitalised(text: str) -> Iterator[Mention]:
    """Yield what could be unknown names, with their wording as `attached`."""
    if text.isupper() and len(text) > 9:
        return
    for match in _CAPITAL.finditer(text):
        begin = match.start()
        name = match[0].rstrip(" -/.,")
        while name and name.split(" ")[0].lower().rstrip(".,") in PHRASES.plain:
            begin += len(name.split(" ")[0]) + 1
            name = name.partition(" ")[2]
        name = _OTHER_SCRIPT.split(name)[0]
        if name and not name[0].isdigit():
            yield Mention(begin, begin + len(name), None, name)


def _quotations(plain: Plain) -> list[tuple[int, int]]:
    """Return the spans of what is given as text: in quotation marks, block quotes and thoughts.

    Marks around a name alone only name, and the names and answers of a JSON object are none.
    """
    spans = [(start, end) for start, *_, end in thinking.spans(plain.text)]
    at = 0
    for line in plain.text.split("\n"):
        if line.startswith(">"):
            spans.append((at, at + len(line)))
        elif '"' in line and not re.match(r'\W*\{|\s*"[\w ]+" ?:', line):
            for match in re.finditer(r'"[^"]*(?:"|$)', line):
                spans.append((at + match.start(), at + match.end()))
        at += len(line) + 1
    outer: list[tuple[int, int]] = []
    for span in sorted(spans):
        if not outer or span[0] >= outer[-1][1]:
            outer.append(span)
    return outer


# --- reading


class _Sentence:
    """One sentence while it is read. names: those at the places of `KNOWN` and `NEW`."""

    def __init__(self, words: list[str], names: Iterator[Mention]) -> None:
        self.words = words
        self.topics = PHRASES.topics.said_in(words)
        self.fiction = False
        self.names = {i: next(names) for i, word in enumerate(words) if word in (KNOWN, NEW)}
        self.found: dict[int, str] = {}

    def heads(self) -> Iterator[tuple[int, int, str]]:
        """Yield the words at which a head begins and ends, and its kind, in order.

        Of one place the longest.
        """
        ends: dict[int, tuple[int, str]] = {}
        begin, after = self._beside_adverbs()
        for number, opens in enumerate(self._openings()):
            for end, kind, _ in PHRASES.heads.at(self.words, number):
                if opens or kind not in ("it", "as", "name:", "made:"):
                    start = begin[number]
                    ends[start] = max(ends.get(start, (0, "")), (after[end], kind.rstrip(":")))
        yield from ((start, end, kind) for start, (end, kind) in sorted(ends.items()))

    def _beside_adverbs(self) -> tuple[list[int], list[int]]:
        """Return per word where the adverbs before it begin, and where those at it end."""
        count = len(self.words)
        begin = list(range(count + 1))
        after = list(range(count + 1))
        is_adverb = [*map(PHRASES.is_adverb, self.words)]
        for number in range(count):
            if is_adverb[number]:
                begin[number + 1] = begin[number]
        for number in range(count - 1, -1, -1):
            if is_adverb[number]:
                after[number] = after[number + 1]
        return begin, after

    def _openings(self) -> Iterator[bool]:
        """Yield for every word whether a clause opens there; `qualifiers` may stand before."""
        opens = True
        for word in self.words:
            yield opens
            if word not in WORDS["qualifiers"]:
                opens = word in CLAUSE_STARTS

    def says_no_more(self) -> bool:
        """Tell whether nothing stands here that could be an answer: "No.", "1."."""
        empty = WORDS["fillers"] | ENDS | MARKS
        return all(word in empty or word.isdigit() for word in self.words)

    def read(self) -> None:
        """Find every name that the sentence ties to its speaker, and what it says with it."""
        starts = list(self.heads())
        self.starts = {start for start, _, kind in starts if kind not in ("also", "as")}
        first: int | None = None
        done = 0
        for start, end, kind in starts:
            if start < done:
                continue
            begin = start
            if kind == "also":
                if first is None:
                    continue
                begin = first
            if kind in ("be", "name", "made", "as"):
                first = start
            reached = list(_Walk(self, end, kind))
            self.state(begin, reached)
            done = max(done, end, *(place + 1 for place in reached))

    def finish(self) -> None:
        """Find what no head leads to: "X made me", a question, a mention."""
        for number in self.names:
            if number not in self.found and self.words[number] == KNOWN:
                end = self._end_behind(number)
                if end and not self.names[number].attached:
                    self.found[number] = self.polarity(number, number, (number + 1, end))
                    self._follow(number)
                else:
                    self.found[number] = "question" if self.words[-1] == "?" else "mention"

    def _follow(self, number: int) -> None:
        """Read what else is said of a name that the words behind it tie to the speaker.

        "X here, made by Y".
        """
        for start, end, kind in self.heads():
            if start > number and kind == "also":
                self.state(number, list(_Walk(self, end, kind)))

    def _end_behind(self, number: int) -> int | None:
        """Return where the words of "made me" and its kin end behind a name."""
        for at in range(number + 1, len(self.words)):
            word = self.words[at]
            if word not in {")", ",", "who"} and not PHRASES.is_adverb(word):
                return PHRASES.behind.longest(self.words, at)
        return None

    def takes_back(self) -> int | None:
        """Return the word from which on the sentence takes back what stands before.

        "Scratch that", "No, I'm not.".
        """
        words = self.words[:-1] if self.words[-1] == "\n" else self.words
        opens = True
        for number, word in enumerate(words):
            if opens and PHRASES.takes_back.longest(words, number):
                return number
            stays_open = word in WORDS["fillers"] or PHRASES.is_adverb(word)
            opens = word in CLAUSE_STARTS or (opens and stays_open)
        return None

    def deny_before(self, end: int) -> None:
        """Deny the names before a word that are affirmed."""
        for place, polarity in self.found.items():
            if place < end and polarity in AFFIRMED:
                self.found[place] = "deny"

    def state(self, head: int, reached: Sequence[int]) -> None:
        """Note what the statement of a head says of the names that it leads to."""
        last = head
        polarity = None
        for place in reached:
            if polarity:
                polarity = _flipped(polarity, self.words[last:place])
                if polarity in AFFIRMED and self.is_denied_behind(place):
                    polarity = "deny"
            else:
                polarity = self.polarity(head, place, (head, min(place, head + REACH)))
            self.found.setdefault(place, polarity)
            last = place

    def polarity(self, head: int, name: int, said: tuple[int, int]) -> str:
        """Return what a statement from the word `head` says of the name at `name`.

        said: where the words that tie the name to the speaker begin and end.
        """
        if self.fiction:
            return "fiction"
        scope, clause = self._clause(head)
        windows = {
            "whole": (head - REACH, head),
            "before": (scope, head),
            "clause": (clause, head),
            "said": said,
        }
        last_said = max(name, said[1] - 1) if said[0] > name else name
        ranks = [rank for _, rank, _ in PHRASES.after.at(self._behind(last_said), 0)]
        for start in (*range(max(0, head - REACH), head), *range(*said)):
            for end, rank, is_last in self.cues.get(start, ()):
                first, last = windows[PHRASES.cues[rank][1]]
                if start >= first and (end == last if is_last else end <= last):
                    ranks.append(rank)
        polarity = PHRASES.cues[min(ranks)][0] if ranks else "affirm"
        if polarity == "affirm" and self.words[-1] == "?" and self.last_mark <= name:
            return "question"
        return polarity

    def is_denied_behind(self, name: int) -> bool:
        """Tell whether the words behind a name deny it, as in Korean."""
        cues = PHRASES.after.at(self._behind(name), 0)
        return any(PHRASES.cues[rank][0] == "deny" for _, rank, _ in cues)

    def is_judged(self, name: int) -> bool:
        """Tell whether words behind a name speak of the statement it stands in: "is false"."""
        return any(PHRASES.after.at(self._behind(name), 0))

    def _clause(self, head: int) -> tuple[int, int]:
        """Return where the words before a head that belong to it begin, and where its clause."""
        first = max(0, head - REACH)
        scope = clause = first
        for number in range(first, head):
            if self.words[number] in SCOPES:
                scope = clause = number + 1
            elif self.words[number] in BREAKS:
                clause = number + 1
        return scope, clause

    def _behind(self, name: int) -> list[str]:
        return [word for word in self.words[name + 1 : name + 25] if word != ","] or [""]

    @cached_property
    def cues(self) -> dict[int, list[tuple[int, int, bool]]]:
        """Return per word the cues that begin there.

        End, rank, and whether nothing may stand behind them.
        """
        return {start: [*PHRASES.before.at(self.words, start)] for start in range(len(self.words))}

    @cached_property
    def last_mark(self) -> int:
        """Return the place of the last word behind which something else is asked."""
        places = [place for place, word in enumerate(self.words) if word in ASKS_ANEW]
        return max(places, default=-1)


class _Walk:
    """The way from a head over link words to the names behind it.

    free: words that may still stand between an article and its noun. pending: some do, and the noun
    has not come. before: the kind of what was passed last. first: no name has been reached.
    """

    def __init__(self, sentence: _Sentence, at: int, kind: str) -> None:
        self.sentence = sentence
        self.words = sentence.words
        self.at = at
        self.kind = kind
        self.free = 0
        self.pending = False
        self.before = kind
        self.first = True

    def __iter__(self) -> Iterator[int]:
        """Yield the places of the names, until a word ends the way."""
        since = self.at
        for number in range(self.at, len(self.words)):
            if number == since + REACH:
                return
            word = self.words[number]
            if word == KNOWN:
                if not self._leads_to(number):
                    return
                self.pending = False
                self.free = 0
            elif not (word == NEW and self._is_name(number)):
                if not self._passes(number, word):
                    return
                continue
            yield number
            since = number
            self.first = False
            self.before = "name"

    def _passes(self, number: int, word: str) -> bool:
        """Tell whether the way goes on over a word that is no name, and note what it was."""
        if number in self.sentence.starts and number > self.at:
            return False
        is_possessive = word == "s" and self.before == "name"
        is_adjective = word in WORDS["adjectives"] and (self.free or self.before != "as")
        if is_possessive or is_adjective:
            return True
        if self.first and self.kind == "it" and word not in ("the", "a", "an", *MARKS - {","}):
            return False
        if word in MARKS:
            if word not in "\"'([:":
                self.before = "mark"
        elif word in WORDS["naming"]:
            self.pending = False
            self.before = "naming"
        elif not self.pending and self._leads_to_maker(number, word):
            self.before = "by"
        elif word in WORDS["articles"]:
            self.free = FREE
            if self.before not in ("by", "naming", "of"):
                self.before = "article"
        elif word in WORDS["nouns"]:
            self.pending = False
            self.before = "noun"
        else:
            return self._links(word)
        return True

    def _leads_to_maker(self, number: int, word: str) -> bool:
        """Tell whether a word leads to a maker: "by", and "of" behind a word such as "product"."""
        if word in WORDS["for_makers"]:
            return True
        return word == "of" and self.words[number - 1] in WORDS["belongs"]

    def _links(self, word: str) -> bool:
        """Tell whether the way goes on over a link word, or a free one behind an article."""
        bare = self.kind == "bare" and self.first
        if bare and word in WORDS["not_bare"]:
            return False
        if word in WORDS["links"] or word.endswith("ly") or (bare and word in WORDS["fillers"]):
            if self.before not in ("be", "name", "made") or word not in ("not", "nicht", "pas"):
                self.before = word
            return not self.pending
        if self.free and (re.match(r"\w", word) or word == NEW):
            self.free -= 1
            self.pending = True
            return True
        return False

    def _leads_to(self, number: int) -> bool:
        """Tell whether a walk that arrives at a known name may take it."""
        after = self.words[number + 1 : number + 4]
        if self.at and self.words[self.at - 1] == "|" and after not in (["|"], ["|", "\n"]):
            return False  # a table that compares models
        if after and after[0] in WORDS["verbs"]:
            return self.first and self.sentence.is_judged(number)
        if after[:2] == ["'", "s"]:
            nouns = WORDS["nouns"] | WORDS["links"] | WORDS["adjectives"]
            return len(after) < 3 or after[2] in nouns | {KNOWN, ".", ","}
        return not self.pending or (bool(after) and after[0] in WORDS["nouns"])

    def _is_name(self, number: int) -> bool:
        """Tell whether a capitalised word stands where a name has to stand."""
        after = self.words[number + 1] if number + 1 < len(self.words) else "."
        kind = self.kind if self.first else ""
        before = self.before
        if before in ("naming", "by") and kind != "it":
            return True
        if kind in ("name", "made"):
            return before in (kind, "article", "mark", "naming")
        if kind == "be" and before == "article":
            name = self.sentence.names[number].attached
            return bool(re.search(r"\d|[a-z]-?[A-Z]|\b(?:AI|Bot|GPT|LLM|LM)$", name))
        if kind not in ("be", "as"):
            return False
        if after[0].isalnum() and after not in WORDS["links"] | WORDS["articles"] | {"here"}:
            return False  # a longer name, or something else
        if kind == "as":
            return before == "noun"
        return before in ("be", "noun", "mark", "now", "just", "also")


def _flipped(polarity: str, between: Sequence[str]) -> str:
    """Return the polarity of the next name of a statement: "not X but Y", "X, not Y"."""
    words = set(between)
    if polarity == "deny":
        turns = words & WORDS["turns_to_affirm"] and not words & {"nor", "not", "than", "of"}
        return "affirm" if turns else "deny"
    if polarity in (*AFFIRMED, "hedge") and words & WORDS["turns_to_deny"]:
        return "deny"
    return polarity


def _answer(one: _Sentence, following: Sequence[_Sentence], whole: bool) -> None:
    """Read a name that is the answer: the whole reply, its first words, or a line of a short list.

    following: the next sentence, if there is one.
    """
    words = one.words
    passed = WORDS["fillers"] | MARKS | {"*", ".", QUOTED}
    start = next((i for i, word in enumerate(words) if word not in passed), 0)
    reached = list(_Walk(one, start, "bare"))
    if not reached and words[start] == NEW:
        has_comma = words[start + 1 : start + 2] == [","]
        is_described = has_comma and WORDS["nouns"] & set(words[start + 2 : start + 8])
        is_alone = whole and len(words) < 7 and QUOTED not in words and not one.starts
        if is_described or is_alone:
            reached = [start, *_Walk(one, start + 1, "also")]
    is_new = not any(place in one.found for place in reached)
    if is_new and any(_ends(one, place, following) for place in reached):
        one.state(start, reached)


def _ends(one: _Sentence, place: int, following: Sequence[_Sentence]) -> bool:
    """Tell whether a name at a place is all of an answer.

    Its end follows, a new sentence, or what describes it.
    """
    behind = one.words[place + 1 : place + REACH]
    rest = [word for word in behind if word not in ('"', "'", ")", "]", "}", "*")]
    if not rest or rest[0] == "\n":
        return True
    if rest[0] in ".?;!":
        if not following:
            return True
        return rest[0] != "!" and following[0].words[0] not in WORDS["opens"]
    if rest[0] in ":-|[(":
        return rest[1:2] not in (["a"], ["an"])
    if rest[0] != "," or len(rest) == 1:
        return False
    if rest[1] in {"made", "created", "developed", "trained", "built"}:
        return next((word for word in rest[2:] if word in ",."), "") == "."
    is_described = rest[1] in WORDS["articles"] | {"unknown"}
    return is_described and not WORDS["not_me"] & set(rest[1:6])


class Reply:
    """A reply while it is read. names: those that the lexicon lacks, and whose they are."""

    def __init__(self, text: str, names: Names) -> None:
        self.text = text
        self.plain = fold(text)
        named = mentions(self.plain, names, MOST_NAMES)
        if len(named) == MOST_NAMES:
            end = named[-1].end + len(named[-1].attached)
            parts: Any = [part[:end] for part in self.plain]
            self.plain = Plain(*parts)
        sentences, found, self.quoted = _sentences(self.plain, named)
        order = iter(found)
        fiction = False
        self.sentences: list[_Sentence] = []
        for words in sentences:
            sentence = _Sentence(words, order)
            fiction = fiction or "openers" in sentence.topics
            sentence.fiction = fiction
            self.sentences.append(sentence)

    def claims(self) -> list[Claim]:
        """Return every claim in the order of the text."""
        self._read()
        found = [(mention, "quoted") for mention in self.quoted]
        for sentence in self.sentences:
            for place, polarity in sentence.found.items():
                found.append((sentence.names[place], polarity))
        found.sort(key=lambda pair: pair[0].start)
        claims = []
        for mention, polarity in found:
            if mention.entity or polarity != "mention":
                claims.append(self._claim(mention, polarity))
        return claims

    def _read(self) -> None:
        low = self.plain.low
        short = len(low) < 200 and low.count("\n") < 3
        opening = True  # an answer may stand here
        for number, sentence in enumerate(self.sentences):
            if sentence.names:
                sentence.read()
                if opening:
                    following = self.sentences[number + 1 : number + 2]
                    _answer(sentence, following, len(self.sentences) == 1)
                sentence.finish()
            self._take_back(number)
            ends_line = sentence.words[-1] == "\n"
            opening = (opening and sentence.says_no_more()) or (short and ends_line)

    def _take_back(self, number: int) -> None:
        """Deny what is affirmed before words that take it back, there or one sentence before."""
        sentence = self.sentences[number]
        before = self.sentences[number - 1] if number else None
        if before and before.words == ["\n"] and number > 1:
            before = self.sentences[number - 2]
        if not sentence.found and not (before and before.found):
            return
        at = sentence.takes_back()
        if at is None:
            return
        if any(place < at for place in sentence.found):
            sentence.deny_before(at)
        elif before:
            before.deny_before(len(before.words))

    def _claim(self, mention: Mention, polarity: str) -> Claim:
        start = self.plain.at[mention.start]
        end = self.plain.at[mention.end - 1] + 1
        quote = self.text[start:end]
        who = mention.entity
        return Claim(quote, start, end, who, who.name if who else quote, polarity)

    def abstains(self, claims: Sequence[Claim]) -> bool:
        """Tell whether the reply does not know, or will not say, who speaks; it affirms no name."""
        if any(c.polarity in AFFIRMED for c in claims):
            return False
        if self.sentences and all(_says_nothing(sentence.words) for sentence in self.sentences):
            return True
        guesses = ("hedge", "attributed", "hypothetical", "question")
        guessed = any(claim.polarity in guesses for claim in claims)
        for sentence in self.sentences:
            if "withholds" in sentence.topics and (guessed or "on_identity" in sentence.topics):
                return True
        return False


def extract(text: str, names: Names = ()) -> list[Claim]:
    """Return every claim in the order of the text.

    names: those that the lexicon lacks, and whose they are.
    """
    return Reply(text, names).claims()


def abstains(text: str, claims: Sequence[Claim]) -> bool:
    """Tell whether a reply does not know, or will not say, who is speaking; it affirms no name."""
    return Reply(text, ()).abstains(claims)


def _says_nothing(words: Sequence[str]) -> bool:
    """Tell whether all of a sentence is "unknown", as a value or as an answer."""
    if len(words) > 100:
        return False
    rest = []
    at = 0
    while at < len(words):
        end = PHRASES.nothing.longest(words, at)
        if not end:
            rest.append(words[at])
        at = end or at + 1
    return len(rest) < len(words) and set(rest) <= FIELDS
