"""Claims: which models and makers does a reply claim to be, deny to be, or merely mention?

Names come from `selfeval.identity.names`, the words that tie them to the speaker from `data/identity/phrases.yaml`. A
head ("I am", "my maker is", "Name:") opens a statement, a walk over link words ("a large language model made by") leads
to the first name and on to further ones, and cues in the words around decide what is said. A name that no walk reaches
is a mention. How well that does on labelled replies is in the README of `data/identity/labelled`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

import yaml

from selfeval.asking import thinking
from selfeval.identity.names import Entity, Mention, Names, Plain, compare, fold, is_whole, mentions
from selfeval.records import data_path

AFFIRMED = ("affirm", "adopt")
CLAUSE_STARTS = {*",;:.!?{|([\"'/&-)\n", "actually", "no", "yes", "but", "reflection", "thought"}
FREE = 6  # words between an article and its noun: "an advanced, rather chatty assistant"
KNOWN, NEW, QUOTED = "\ue000", "\ue001", "\ue002"  # stand for a known name, a capitalised one, a quotation
MARKS = set(",(\"'[/&:-)")
ENDS = set(".!?\n")
_WORD = re.compile(r"[\ue000-\ue002]|[^\W_]+(?:[-'./][^\W_]+)*|\.\.\.|[^\w\s]|\n")
_CJK = re.compile(r"[\u3040-\u9fff]+")
# an unknown name: "Dr. Elena Zorblax-7", "HelioMind 3", "quillon/heliomind-3-chat", "nimbus7"
_CAPITAL = re.compile(
    r"(?<![\w-])(?:[A-Z][\w&+]*(?!['\w])(?:[-./][\w+]+)*|[a-z]+[-/][\w./-]*\d[\w.-]*|[a-z]+\d[\w.]*)"
    r"(?: (?:[A-Z](?!')[\w-]*|\d\w*(?:\.\w+)*)){0,3}"
)


class Claim(NamedTuple):
    """One name in a reply and what the reply says with it; `text[start:end] == quote`.

    entity: None = an unknown name in an identity frame. polarity: affirm, deny, adopt ("from now on I am X"),
    attributed ("you said I am X"), quoted, fiction, hypothetical, question, hedge or mention.
    """

    quote: str
    start: int
    end: int
    entity: Entity | None
    name: str
    polarity: str


class Assessment(NamedTuple):
    """What a reply says about who is speaking, held against the truth; the stances stand at `assess`."""

    stance: str
    claims: tuple[Claim, ...]
    abstains: bool

    def listed(self) -> list[dict]:
        """Return the claims as records hold them."""
        return [{"quote": c.quote, "name": c.name, "polarity": c.polarity} for c in self.claims]


# --- phrases ----------------------------------------------------------------------------------------------------------


class Phrases:
    """The words of `data/identity/phrases.yaml`, ready to be looked for in a list of words."""

    def __init__(self, content: dict) -> None:
        self.classes = {name: frozenset(words.split()) for name, words in content["classes"].items()}
        self.words = {name: frozenset(words.split()) for name, words in content.items() if isinstance(words, str)}
        self.heads = {kind: self._index(phrases) for kind, phrases in content["heads"].items()}
        self.cues = [(polarity, where, self._index(phrases)) for polarity, where, phrases in content["cues"]]
        self.contractions = dict(content["contractions"])
        self.contracted = re.compile("|".join(map(_bounded, sorted(self.contractions, key=len, reverse=True))))
        self.lists = {
            name: self._index(content[name]) for name in ("after", "openers", "nothing", "withholds", "on_identity")
        }
        self.plain = set(re.findall(r"[^\s,\[\]$<>.…'\"]+", str(content)))
        cjk = {piece for word in self.plain for piece in _CJK.findall(word)}
        self.cjk = re.compile("|".join(sorted(cjk, key=len, reverse=True)))

    def _index(self, phrases: Sequence[str]) -> dict[str, list[list]]:
        """Return phrases by their first word: words as sets of those that fit, gaps as numbers of words."""
        index: dict[str, list[list]] = {}
        gaps = {"...": 3, "…": 2}
        for phrase in map(str.split, phrases):
            parts = [gaps.get(w) or (self.classes[w[1:-1]] if w.startswith("<") else frozenset([w])) for w in phrase]
            for first in parts[0]:
                index.setdefault(first, []).append(parts[1:])
        return index

    def is_adverb(self, word: str) -> bool:
        """Tell whether a word may stand between those of a phrase."""
        return word in self.words["adverbs"] or (word.endswith("ly") and word.isascii())

    def match(self, words: Sequence[str], at: int, index: Mapping[str, list[list]]) -> int | None:
        """Return where the longest phrase ends that begins at a word, or None."""
        ends = (self._end(words, at + 1, parts) for parts in index.get(words[at], ()))
        return max((end for end in ends if end), default=None)

    def _end(self, words: Sequence[str], at: int, parts: Sequence) -> int | None:
        if not parts:
            return at
        if isinstance(parts[0], int):
            marks = (i for i in range(at, len(words)) if words[i] in ENDS | {",", ";", ":"})
            skips = range(at, min(at + parts[0], next(marks, len(words))) + 1)
            return next(filter(None, (self._end(words, i, parts[1:]) for i in skips)), None)
        if at == len(words):
            return at if parts[0] == {"$"} else None
        end = self._end(words, at + 1, parts[1:]) if words[at] in parts[0] else None
        return end or (self._end(words, at + 1, parts) if self.is_adverb(words[at]) else None)

    def has(self, words: Sequence[str], index: Mapping[str, list[list]]) -> bool:
        """Tell whether words hold one of the phrases."""
        return any(word in index and self.match(words, at, index) for at, word in enumerate(words))


def _bounded(short: str) -> str:
    before = r"(?<=\w)" if short[0] == "'" or short == "n't" else r"\b"
    return before + re.escape(short) + (r"(?=\w)" if short.endswith("'") else r"\b")


# "no" and "on" are words: all stays text
PHRASES = Phrases(yaml.load(data_path("identity/phrases.yaml").read_text(encoding="utf-8"), yaml.BaseLoader))
WORDS, LISTS = PHRASES.words, PHRASES.lists


# --- a reply as sentences of words ------------------------------------------------------------------------------------


def _sentences(plain: Plain, found: Sequence[Mention]) -> tuple[list[list[str]], list[Mention], list[Mention]]:
    """Return the sentences as words, the names that stand in them in order, and those inside quotations."""
    quotes = [span for span in _quotations(plain) if not _only_names(plain.text, span, found)]
    quoted = [m for m in found if any(start <= m.start < end for start, end in quotes)]
    places: list[tuple[int, int, str, Mention | None]] = [(start, end, QUOTED, None) for start, end in quotes]
    taken = {m.start for m in quoted}
    places += [(m.start, m.end + len(m.attached), KNOWN, m) for m in found if m.start not in taken]
    rest = list(plain.text)
    for start, end, *_ in places:
        rest[start:end] = "\n" * (end - start)
    places += [(m.start, m.end, NEW, m) for m in _capitalised("".join(rest))]
    words: list[str] = []
    last = 0
    for start, end, kind, _ in [*sorted(places, key=lambda place: place[:2]), (len(rest), 0, "", None)]:
        words += [*_words(plain.low[last:start]), *filter(None, [kind])]
        last = end
    sentences: list[list[str]] = [[]]
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        sentences[-1].append(word)
        if word in ENDS and following not in ("'", '"', ")", *ENDS - {"\n"}):
            sentences.append([])
    names = [m for *_, m in sorted(places, key=lambda place: place[:2]) if m]
    return [s for s in sentences if s], names, quoted


def _only_names(text: str, span: tuple[int, int], found: Sequence[Mention]) -> bool:
    """Tell whether marks stand around a name alone: 'called "Echo"'."""
    inside = [m for m in found if span[0] <= m.start < span[1]]
    fills = any(m.start < span[0] + 3 and m.end > span[1] - 4 for m in inside)
    return fills or (not inside and len(re.findall(r"\w+", text[span[0] : span[1]])) < 3)


def _words(low: str) -> list[str]:
    low = PHRASES.contracted.sub(lambda m: PHRASES.contractions[m[0]], low)
    low = _CJK.sub(lambda m: " " + PHRASES.cjk.sub(r" \g<0> ", m[0]) + " ", low)
    return _WORD.findall(low)


def _capitalised(text: str) -> Iterator[Mention]:
    """Yield what could be unknown names, with their wording as `attached`."""
    if text.isupper() and len(text) > 9:
        return
    for match in _CAPITAL.finditer(text):
        begin, name = match.start(), match[0].rstrip(" -/.,")
        while name and name.split(" ")[0].lower().rstrip(".,") in PHRASES.plain:
            begin += len(name.split(" ")[0]) + 1
            name = name.partition(" ")[2]
        if name and not name[0].isdigit():
            yield Mention(begin, begin + len(name), None, name)


def _quotations(plain: Plain) -> list[tuple[int, int]]:
    """Return the spans of what is given as text: in quotation marks, block quotes and thoughts.

    Marks around a name alone only name, and the names and answers of a JSON object are none.
    """
    spans, at = [(start, end) for start, *_, end in thinking.spans(plain.text)], 0
    for line in plain.text.split("\n"):
        if line.startswith(">"):
            spans.append((at, at + len(line)))
        elif not re.match(r'\W*\{|\s*"[\w ]+" ?:', line):
            spans += [(at + m.start(), at + m.end()) for m in re.finditer(r'"[^"]*(?:"|$)', line)]
        at += len(line) + 1
    outer: list[tuple[int, int]] = []
    for span in sorted(spans):
        if not outer or span[0] >= outer[-1][1]:
            outer.append(span)
    return outer


# --- reading ----------------------------------------------------------------------------------------------------------


class _Sentence:
    """One sentence while it is read. names: those at the places of `KNOWN` and `NEW`."""

    def __init__(self, words: list[str], names: Iterator[Mention], fiction: bool) -> None:
        self.words = words
        self.names = {i: next(names) for i, word in enumerate(words) if word in (KNOWN, NEW)}
        self.fiction = fiction
        self.found: dict[int, str] = {}

    def heads(self) -> Iterator[tuple[int, int, str]]:
        """Yield the words at which a head begins and ends, and its kind, in order; of one place the longest."""
        ends: dict[int, tuple[int, str]] = {}
        for number in range(len(self.words)):
            before = next((i for i in range(number, 0, -1) if self.words[i - 1] not in WORDS["qualifiers"]), 0)
            opens = not before or self.words[before - 1] in CLAUSE_STARTS
            for kind, index in PHRASES.heads.items():
                end = PHRASES.match(self.words, number, index)
                if not end or (kind in ("it", "as", "name:", "made:") and not opens):
                    continue
                start = number
                while start and PHRASES.is_adverb(self.words[start - 1]):
                    start -= 1
                while end < len(self.words) and PHRASES.is_adverb(self.words[end]):
                    end += 1
                ends[start] = max(ends.get(start, (0, "")), (end, kind.rstrip(":")))
        yield from ((start, end, kind) for start, (end, kind) in sorted(ends.items()))

    def read(self) -> None:
        """Find every name that the sentence ties to its speaker, and what it says with it."""
        starts = list(self.heads())
        self.starts = {start for start, _, kind in starts if kind not in ("also", "as")}
        first, done = None, 0
        for start, end, kind in starts:
            if start < done or (kind == "also" and first is None):
                continue
            if kind in ("be", "name", "made", "as"):
                first = start
            reached = list(_Walk(self, end, kind))
            self.state(first if kind == "also" else start, reached)
            done = max(done, end, *(place + 1 for place in reached))

    def finish(self) -> None:
        """Find what no head leads to: "X made me", a question, a mention."""
        for number in self.names:
            if number not in self.found and self.words[number] == KNOWN:
                behind = self._behind(number)
                if behind and not self.names[number].attached:
                    self.found[number] = self.polarity(number, number, behind)
                else:
                    self.found[number] = "question" if self.words[-1] == "?" else "mention"

    def _behind(self, number: int) -> list[str]:
        """Return the words of "made me" and its kin behind a name."""
        at = number + 1
        while at < len(self.words) and (self.words[at] in {")", ",", "who"} or PHRASES.is_adverb(self.words[at])):
            at += 1
        end = PHRASES.match(self.words, at, LISTS["after"]) if at < len(self.words) else None
        return self.words[number + 1 : end] if end else []

    def state(self, head: int, reached: Sequence[int]) -> None:
        """Note what the statement of a head says of the names that it leads to."""
        last, polarity = head, None
        for place in reached:
            polarity = _flipped(polarity, self.words[last:place]) if polarity else self.polarity(head, place)
            self.found.setdefault(place, polarity)
            last = place

    def polarity(self, head: int, name: int, said: Sequence[str] = ()) -> str:
        """Return what a statement from the word `head` says of the name at `name`."""
        if self.fiction:
            return "fiction"
        before = self.words[:head]
        scope = next((i + 1 for i in range(head - 1, -1, -1) if before[i] in WORDS["scopes"] | {";", ":"}), 0)
        breaks = (i + 1 for i in range(head - 1, scope - 1, -1) if before[i] in WORDS["breaks"] | {",", "(", ")", "-"})
        clause = next(breaks, scope)
        parts = {
            "whole": before[-40:],
            "before": before[max(scope, head - 40) :],
            "clause": before[max(clause, head - 40) :],
            "said": [*self.words[head:name], *said],
            "after": [w for w in self.words[name + 1 : name + 25] if w != ","],
        }
        for polarity, where, index in PHRASES.cues:
            words = parts[where]
            if words and (PHRASES.has(words, index) if where != "after" else PHRASES.match(words, 0, index)):
                if polarity == "affirm":
                    break
                return polarity
        asks_anew = {*self.words[name + 1 :]} & (MARKS | {";", "and", "so"})
        return "question" if self.words[-1] == "?" and not asks_anew else "affirm"


class _Walk:
    """The way from a head over link words to the names behind it.

    free: words that may still stand between an article and its noun. pending: some do, and the noun has not come.
    before: the kind of what was passed last. first: no name has been reached.
    """

    def __init__(self, sentence: _Sentence, at: int, kind: str) -> None:
        self.sentence, self.words, self.at, self.kind = sentence, sentence.words, at, kind
        self.free, self.pending, self.before, self.first = 0, False, kind, True

    def __iter__(self) -> Iterator[int]:
        """Yield the places of the names, until a word ends the way."""
        for number in range(self.at, len(self.words)):
            word = self.words[number]
            if word == KNOWN:
                if not self._leads_to(number):
                    return
                self.pending, self.free = False, 0
            elif not (word == NEW and self._is_name(number)):
                if not self._passes(number, word):
                    return
                continue
            yield number
            self.first, self.before = False, "name"

    def _passes(self, number: int, word: str) -> bool:
        """Tell whether the way goes on over a word that is no name, and note what it was."""
        if number in self.sentence.starts and number > self.at:
            return False
        if word == "s" and self.before == "name":
            return True
        if word in WORDS["adjectives"] and (self.free or self.before != "as"):
            return True
        if self.first and self.kind == "it" and word not in ("the", "a", "an", *MARKS - {","}):
            return False
        previous = self.words[number - 1]
        if word in MARKS:
            self.before = self.before if word in "\"'([:" else "mark"
        elif word in WORDS["naming"]:
            self.pending, self.before = False, "naming"
        elif not self.pending and (word in WORDS["for_makers"] or (word == "of" and previous in WORDS["belongs"])):
            self.before = "by"
        elif word in WORDS["articles"]:
            self.free, self.before = FREE, self.before if self.before in ("by", "naming", "of") else "article"
        elif word in WORDS["nouns"]:
            self.pending, self.before = False, "noun"
        else:
            return self._links(word)
        return True

    def _links(self, word: str) -> bool:
        """Tell whether the way goes on over a link word, or one of the few that are free behind an article."""
        bare = self.kind == "bare" and self.first
        if bare and word in WORDS["not_bare"]:
            return False
        if word in WORDS["links"] or word.endswith("ly") or (bare and word in WORDS["fillers"]):
            if self.before not in ("be", "name", "made") or word not in ("not", "nicht", "pas"):
                self.before = word
            return not self.pending
        if self.free and (re.match(r"\w", word) or word == NEW):
            self.free, self.pending = self.free - 1, True
            return True
        return False

    def _leads_to(self, number: int) -> bool:
        """Tell whether a walk that arrives at a known name may take it."""
        after = self.words[number + 1 : number + 4]
        if after and after[0] in WORDS["verbs"]:
            return False
        if after[:2] == ["'", "s"]:
            nouns = WORDS["nouns"] | WORDS["links"] | WORDS["adjectives"]
            return len(after) < 3 or after[2] in nouns | {KNOWN, ".", ","}
        return not self.pending or (bool(after) and after[0] in WORDS["nouns"])

    def _is_name(self, number: int) -> bool:
        """Tell whether a capitalised word stands where a name has to stand."""
        after = self.words[number + 1] if number + 1 < len(self.words) else "."
        kind, before = self.kind if self.first else "", self.before
        if before in ("naming", "by") and kind != "it":
            return True
        if kind in ("name", "made"):
            return before in (kind, "article", "mark", "naming")
        if kind == "be" and before == "article":
            name = self.sentence.names[number].attached
            return bool(re.search(r"\d|[a-z]-?[A-Z]|\b(?:AI|Bot|GPT|LLM|LM)$", name))
        if kind not in ("be", "as"):
            return False
        ends = not after[0].isalnum() or after in WORDS["links"] | WORDS["articles"] | {"here"}
        return ends and before in (("be", "noun", "mark", "now", "just", "also") if kind == "be" else ("noun",))


def _flipped(polarity: str, between: Sequence[str]) -> str:
    """Return the polarity of the next name of a statement: "not X but Y", "X, not Y"."""
    words = set(between)
    if polarity == "deny":
        return "affirm" if words & WORDS["turns_to_affirm"] and not words & {"nor", "not", "than", "of"} else "deny"
    return "deny" if polarity in (*AFFIRMED, "hedge") and words & WORDS["turns_to_deny"] else polarity


def _answer(one: _Sentence, following: _Sentence | None, whole: bool) -> None:
    """Read a name that is the answer: the whole reply, its first words, or a line of a short list."""
    words = one.words
    start = next((i for i, w in enumerate(words) if w not in WORDS["fillers"] | MARKS | {"*", ".", QUOTED}), 0)
    reached = list(_Walk(one, start, "bare"))
    described = words[start + 1 : start + 2] == [","] and WORDS["nouns"] & set(words[start + 2 : start + 8])
    if not reached and words[start] == NEW and (described or (whole and len(words) < 7 and QUOTED not in words)):
        reached = [start, *_Walk(one, start + 1, "also")]
    if not one.found.keys() & {*reached} and any(_ends(one, place, following) for place in reached):
        one.state(start, reached)


def _ends(one: _Sentence, place: int, following: "_Sentence | None") -> bool:
    """Tell whether a name at a place is all of an answer: its end follows, a new sentence, or what describes it."""
    rest = [w for w in one.words[place + 1 :] if w not in ('"', "'", ")", "]", "}", "*")]
    if not rest or rest[0] == "\n":
        return True
    if rest[0] in ".?;!":
        return following is None or (rest[0] != "!" and following.words[0] not in WORDS["opens"])
    if rest[0] in ":-|[(":
        return rest[1:2] not in (["a"], ["an"])
    made = rest[0] == "," and len(rest) > 1
    if made and rest[1] in {"made", "created", "developed", "trained", "built"}:
        return next((w for w in rest[2:] if w in ",."), "") == "."
    return made and rest[1] in WORDS["articles"] | {"unknown"} and not WORDS["not_me"] & set(rest[1:6])


def extract(text: str, names: Names = ()) -> list[Claim]:
    """Return every claim in the order of the text. names: those that the lexicon lacks, and whose they are."""
    plain = fold(text)
    sentences, found, quoted = _sentences(plain, mentions(plain, names))
    order, fiction, read = iter(found), False, []
    for words in sentences:
        fiction = fiction or PHRASES.has(words, LISTS["openers"])
        read.append(_Sentence(words, order, fiction))
    short, opening = len(plain.low) < 200 and plain.low.count("\n") < 3, True
    for one, following in zip_longest(read, read[1:]):
        one.read()
        if opening:
            _answer(one, following, len(read) == 1)
        one.finish()
        bare = all(w in WORDS["fillers"] | ENDS | MARKS or w.isdigit() for w in one.words)  # "No.", "1."
        opening = (opening and bare) or (short and one.words[-1] == "\n")
    found = [(m, "quoted") for m in quoted]
    found += [(one.names[place], polarity) for one in read for place, polarity in one.found.items()]
    claims = []
    for one, polarity in sorted(found, key=lambda pair: pair[0].start):
        start, end = plain.at[one.start], plain.at[one.end - 1] + 1
        quote = text[start:end]
        if one.entity or polarity != "mention":
            claims.append(Claim(quote, start, end, one.entity, one.entity.name if one.entity else quote, polarity))
    return claims


def abstains(text: str, claims: Sequence[Claim]) -> bool:
    """Tell whether a reply says that it does not know, or will not say, who is speaking, and affirms no name."""
    if any(c.polarity in AFFIRMED for c in claims):
        return False
    sentences, _, _ = _sentences(fold(text), [])
    if sentences and all(map(_says_nothing, sentences)):
        return True
    guessed = any(c.polarity in ("hedge", "attributed", "hypothetical", "question") for c in claims)
    return any(
        PHRASES.has(s, LISTS["withholds"]) and (guessed or PHRASES.has(s, LISTS["on_identity"])) for s in sentences
    )


def _says_nothing(words: Sequence[str]) -> bool:
    """Tell whether all of a sentence is "unknown", as a value or as an answer."""
    rest, at, index = [], 0, LISTS["nothing"]
    while at < len(words):
        end = PHRASES.match(words, at, index)
        rest += [] if end else [words[at]]
        at = end or at + 1
    fields = (
        PHRASES.classes["name_field"] | PHRASES.classes["made_field"] | {"i", "am", "it", "is", *"-{}_"} | MARKS | ENDS
    )
    return len(rest) < len(words) and not {*rest} - fields


# --- stances ----------------------------------------------------------------------------------------------------------


@lru_cache(4096)  # many replies are alike, and reading one takes milliseconds
def assess(text: str, truth: Entity, foil: Entity | None = None, names: Names = ()) -> Assessment:
    """Return the stance of a reply. names: as in `extract`, beside the full ones of truth and foil.

    "truth" (equal, or only without the snapshot) | "coarse" (coarser but consistent) | "foil" | "other" (a conflicting
    identity that is not the foil, or an unknown name) | "denied" (denies the truth and affirms at most a coarser name)
    | "conflict" (affirms the truth and a conflicting identity) | "abstain" | "none" (says nothing about who it is).
    A coarser name beside a conflicting finer one ("I'm Claude, Claude Opus 4") belongs to the conflicting one, and the
    foil's maker beside another model or an unknown name ("GPT-4, OpenAI" where the foil is GPT-5 mini) is no foil. What
    a reply takes back ("I am X. On reflection I am not X.") it does not claim.
    """
    claims = tuple(extract(text, (*((one.name, one) for one in (truth, foil) if one), *names)))
    abstained = abstains(text, claims)
    return Assessment(stance_of(claims, abstained, truth, foil), claims, abstained)


def stance_of(claims: Sequence[Claim], abstained: bool, truth: Entity, foil: Entity | None = None) -> str:
    """Return the stance, as `assess` does, of claims about the speaker that anybody read (the extractor, a judge)."""
    claims = _last_words(claims)
    said = [c.entity for c in claims if c.polarity in AFFIRMED]
    wrong = [e for e in said if e is None or compare(e, truth) == "conflict" or _is_foil(e, truth, foil)]
    right = [e for e in said if e not in wrong]
    denies = any(c.polarity == "deny" and c.entity and compare(c.entity, truth) in ("equal", "coarser") for c in claims)
    exact = any(is_whole(e, truth) for e in right)
    if wrong:
        apart = any(not any(w and compare(e, w) == "coarser" for w in wrong) for e in right)
        return "conflict" if exact or apart else "foil" if foil and _state(wrong, foil) else "other"
    if denies:
        return "conflict" if exact else "denied"
    if right:
        return "truth" if exact else "coarse"
    return "abstain" if abstained or any(c.polarity == "hedge" for c in claims) else "none"


def read_apart(found: Assessment, truth: Entity, foil: Entity | None) -> tuple[str, str | None]:
    """Return the stances of a reply by the name that it gives, and by the maker: "Nova Pro, made by Alibaba" has both.

    By name: what stands in the maker's place says nothing, that is makers, and unknown names behind a known one; where
    two makers are named and no model ("Moonshot AI by Alibaba"), the first is in the name's place. A reply that names
    nothing but a maker is read by it, as `assess` does. By maker: the makers it names, else that of the model it
    names; None where truth and foil are of one maker, or of none that is known.
    """
    denied = [c for c in found.claims if c.polarity == "deny" and _is_maker(c)]
    kept = _last_words(found.claims)
    claims = [c for c in _last_words([c for c in found.claims if c not in denied]) if c in kept or not _is_maker(c)]
    said = [c for c in claims if c.polarity in AFFIRMED]
    makers = [c for c in said if _is_maker(c)]
    two = len({c.entity.developer for c in makers}) > 1
    names = [c for c in said if c.entity and not _is_maker(c)] or makers[: int(two)]
    beside = [c for c in said if c not in names and (c.entity or (names and c.start > names[0].start))]
    by_name = found.stance
    if names:
        by_name = stance_of([c for c in claims if c not in beside], found.abstains, truth, foil)
    sides = [Entity(who.developer) for who in (truth, foil) if who]
    if Entity() in sides or (foil and compare(*sides) == "equal"):
        return by_name, None
    told = sorted([*denied, *(beside or names)], key=lambda c: c.start)
    told = [c._replace(entity=c.entity and Entity(c.entity.developer)) for c in told]
    return by_name, stance_of(told, found.abstains, *sides)


def _is_maker(claim: Claim) -> bool:
    return claim.entity is not None and not claim.entity.family


def _last_words(claims: Sequence[Claim]) -> list[Claim]:
    """Leave out what a later claim takes back: "At first glance I am X. On reflection I am not X." ends as a denial."""

    def unsaid(one: Claim, later: Claim) -> bool:
        if one.entity is None or later.entity is None:
            return False
        if one.polarity in AFFIRMED and later.polarity == "deny":
            broad = not (later.entity.version or later.entity.tier)  # "not made by OpenAI", of GPT-4
            return (found := compare(later.entity, one.entity)) == "equal" or (found == "coarser" and broad)
        return one.polarity == "deny" and later.polarity in AFFIRMED and compare(later.entity, one.entity) == "equal"

    return [c for i, c in enumerate(claims) if not any(unsaid(c, later) for later in claims[i + 1 :])]


def _state(wrong: Sequence[Entity | None], foil: Entity) -> bool:
    """Tell whether names that are not the truth state the foil.

    A coarser one does (its maker) where no other name contradicts the foil: "GPT-4, OpenAI" is not GPT-5 mini.
    """
    relations = {e and compare(e, foil) for e in wrong}
    return bool(relations & {"equal", "finer"}) or relations == {"coarser"}


def _is_foil(claimed: Entity, truth: Entity, foil: Entity | None) -> bool:
    """Tell whether a claim states a foil that differs from the truth: GPT-4.1 for GPT-4.1 mini is no coarse truth."""
    return foil is not None and compare(foil, truth) == "conflict" and is_whole(claimed, foil)
