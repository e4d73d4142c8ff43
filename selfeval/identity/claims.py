"""Claims: which models and makers does a reply claim to be, deny to be, or merely mention?

Names come from the lexicon; what ties them to the speaker from the tables of `selfeval.identity.frames`. A head ("I am",
"my maker is", "Name:") opens a statement; a walk over link words ("a large language model made by") leads to the first
name and on to further ones; rules on the words around decide the polarity. A name that no walk reaches is a mention.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selfeval.identity import frames
from selfeval.identity.lexicon import Entity, Mention, compare, entity, entity_of, mentions
from selfeval.identity.plain import Plain, fold

__all__ = ["Assessment", "Claim", "Entity", "abstains", "assess", "compare", "entity", "entity_of", "extract"]

REACH = 200  # characters that a walk may cover before it finds the next name
AFFIRMED = ("affirm", "adopt")


@dataclass(frozen=True)
class Claim:
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


@dataclass(frozen=True)
class Assessment:
    """What a reply says about who is speaking, held against the truth; the stances stand at `assess`."""

    stance: str
    claims: tuple[Claim, ...]
    abstains: bool


def extract(text: str, known: Sequence[Entity] = ()) -> list[Claim]:
    """Return every claim in the order of the text. known: further models, matched by their names (invented foils)."""
    reply = _Reply(text, known)
    return [reply.claim(start, end, one, polarity) for start, end, one, polarity in reply.read()]


class _Reply:
    """One reply while it is read; positions are those of the folded text."""

    def __init__(self, text: str, known: Sequence[Entity]) -> None:
        self.typed = text
        self.plain: Plain = _without_thoughts(fold(text))
        self.low = self.plain.low
        self.names: dict[int, Mention] = {m.start: m for m in mentions(self.plain, known)}
        self.heads = [(m.start(), m.end(), m.lastgroup.partition("_")[0]) for m in frames.HEAD.finditer(self.low)]
        self.head_starts = {start for start, _, kind in self.heads if kind not in ("also", "as")}
        self.ends = [m.end() for m in frames.SENTENCE_END.finditer(self.low)]
        self.quotes = _quotes(self.low)
        opener = frames.OPENER.search(self.low[:2000])
        self.fiction_from = opener.end() if opener else len(self.low)
        self.found: dict[int, tuple[int, Entity | None, str]] = {}

    def claim(self, start: int, end: int, one: Entity | None, polarity: str) -> Claim:
        begin, stop = self.plain.origin(start, end)
        quote = self.typed[begin:stop]
        return Claim(quote, begin, stop, one, one.name if one else quote, polarity)

    def read(self) -> Iterator[tuple[int, int, Entity | None, str]]:
        """Yield start, end, entity and polarity of every name."""
        self._from_heads()
        self._bare()
        ends = [(start, end) for start, (end, one, _) in sorted(self.found.items()) if one is None]
        for mention in self.names.values():
            at = bisect_left(ends, (mention.start, 0)) - 1
            inside = at >= 0 and mention.start < ends[at][1]
            if mention.start not in self.found and not inside:
                self.found[mention.start] = mention.end, mention.entity, self._unreached(mention)
        for start, (end, one, polarity) in sorted(self.found.items()):
            mention = self.names.get(start)
            if polarity != "mention" or (one is not None and not (mention and mention.word)):
                yield start, end, one, polarity

    # --- sentences ----------------------------------------------------------------------------------------------------
    def sentence(self, position: int) -> tuple[int, int]:
        """Return where the sentence of a position begins and ends, its end mark included."""
        at = bisect_right(self.ends, position)
        return (self.ends[at - 1] if at else 0), (self.ends[at] if at < len(self.ends) else len(self.low))

    def polarity(self, head: int, name: int, end: int) -> str:
        """Return what a statement from `head` says of the name between `name` and `end`."""
        if self._quoted(head):
            return "quoted"
        begin, stop = self.sentence(name)
        begin = min(begin, self.sentence(head)[0])
        if head >= self.fiction_from:
            return "fiction"
        before = frames.SENTENCE_SCOPE.split(self.low[max(begin, head - 240) : head])[-1]
        clause = frames.CLAUSE.split(before)[-1]
        parts = {
            "sentence": before,
            "clause": clause,
            "said": self.low[head:name],
            "after": self.low[end : min(stop, end + 160)].rstrip(),
        }
        return next((polarity for polarity, where, rule in frames.RULES if rule.search(parts[where])), "affirm")

    def _quoted(self, position: int) -> bool:
        at = bisect_right(self.quotes, (position, len(self.low))) - 1
        return at >= 0 and self.quotes[at][0] <= position < self.quotes[at][1]

    # --- heads and walks ----------------------------------------------------------------------------------------------
    def _from_heads(self) -> None:
        first: tuple[int, int] | None = None  # the last statement about the speaker, for "..., created by X"
        done = 0
        for start, end, kind in self.heads:
            if start < done:
                continue
            if kind == "also":
                if first is None or self.sentence(first[0])[0] != self.sentence(start)[0]:
                    continue
                done = self._walk(end, "made", first, first[1])
                continue
            if kind in ("be", "name", "made", "as") and not self._quoted(start):
                first = start, end
            done = self._walk(end, kind, (start, end))

    def _walk(self, at: int, kind: str, head: tuple[int, int], said_until: int | None = None) -> int:
        """Follow link words from a head to names; return where the last name ended (or the head)."""
        last, polarity, done = at, None, at
        for start, end, one in self._steps(at, kind):
            if polarity is None:
                if kind == "as" and not re.match(r"[^.!?\n]{0,120}, ?(?:i|my)\b|,? i\b", self.low[end : end + 140]):
                    return done
                polarity = self.polarity(head[0], said_until or start, end)
            else:
                polarity = _flipped(polarity, self.low[last:start])
            self.found.setdefault(start, (end, one, polarity))
            last = done = end
        return done

    def _steps(self, at: int, kind: str) -> Iterator[tuple[int, int, Entity | None]]:
        """Yield start, end and entity of each name that link words lead to."""
        low, limit, first = self.low, at + REACH, True
        free, pending, before, noun = 0, False, "", ""
        if kind in ("name", "made") and low[at : at + 1] == "\n":
            at += 1
        while at < min(limit, len(low)):
            if low[at] == " ":
                at += 1
                continue
            mention = self.names.get(at)
            if mention:
                if mention.attached in ("-like", "-style", "-compatible", "-class", "-level", "-inspired", "-type"):
                    return
                if (pending and not self._noun_follows(mention.end)) or self._is_subject(mention.end):
                    return
                if mention.word and before == "article" and kind != "bare" and not self._noun_follows(mention.end):
                    return
                owns = re.match(r"'s (?:([a-z-]+)|)", low[mention.end : mention.end + 30])
                if owns and mention.end + 3 not in self.names and owns[1] not in frames.NOUNS | frames.LINKS:
                    return  # "trained on Google's data"
                yield at, mention.end, mention.entity
                at = mention.end + len(mention.attached)
                limit, first, pending, free, before = at + REACH, False, False, 0, "name"
                if low.startswith("'s ", at):
                    at += 2
                continue
            if at in self.head_starts:
                return  # which goes on from there
            unknown = self._unknown(at, kind, first, before, noun) if not pending else None
            if unknown:
                yield at, unknown, None
                at, first, before = unknown, False, "name"
                limit = at + REACH
                continue
            cjk = frames.CJK_LINK.match(low, at)
            if cjk:
                at, before = cjk.end(), "link"
                continue
            if free and (number := re.compile(r"\d[\w.-]*\b").match(low, at)):
                at = number.end()
                continue
            step = frames.STEP.match(low, at)
            if not step or step["break"]:
                return
            at = step.end()
            if step["mark"]:
                if step["mark"] == ")" and before != "name":
                    return
                before = before if step["mark"] in "\"'([" else "mark"
                continue
            word = step["word"]
            if word in frames.ARTICLES:
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
            elif word in frames.ADJECTIVES and (free or before != "as"):
                pass
            elif word == "to" and before == "opposed":
                before = word
            elif free:
                free, pending = free - 1, True
            else:
                return

    def _noun_follows(self, end: int) -> bool:
        word = re.match(r" ([a-z-]+)", self.low[end : end + 30])
        return bool(word and word[1] in frames.NOUNS)

    def _is_subject(self, end: int) -> bool:
        """Tell whether a name begins a clause of its own: "I am sure Claude is ..."."""
        return bool(frames.VERB_AFTER.match(self.low, end))

    def _unknown(self, at: int, kind: str, first: bool, before: str, noun: str) -> int | None:
        """Return where an unknown name ends that stands where a name has to stand, or None."""
        text, low = self.plain.text, self.low
        naming = before in ("naming", "by") or (before == "noun of" and noun in ("part", "member", "product", "family"))
        if first and kind == "name" and before in ("", "mark", "naming", "article"):
            match = re.compile(r"[^\W_][\w&+]*(?:[-.'/][\w+]+)*(?: (?:[A-Z][\w-]*|\d[\w.]*)){0,3}").match(text, at)
            word = re.match(r"[^\W_]+", low[at : at + 40])
            if not match or (word and word[0] in frames.NO_NAME):
                return None
            alone = before != "article" and re.match(
                r"[\"')]{0,2}(?:[.,!?;]|\s*$| and i\b| by\b)", low[match.end() : match.end() + 12]
            )
            if match[0].islower() and not alone:
                return None
            return match.end()
        match = _CAPITAL.match(text, at)
        if not match:
            return None
        end = match.end()
        for start in range(at + 1, end):
            if start in self.names:
                end = start
                break
        name = text[at:end].rstrip(" -/.,")
        words = re.findall(r"[^\W_]+", name.lower())
        plain_word = frames.NOUNS | frames.LINKS | frames.ADJECTIVES
        if not words or words[0] in frames.NO_NAME or all(w in plain_word for w in words):
            return None
        if name.isupper() and self._shouted(at):
            return None
        if naming or (first and kind == "made" and before in ("", "article")):
            return at + len(name)
        if first and kind == "be" and before == "noun" and noun in ("ai", "assistant", "model", "chatbot", "bot"):
            return at + len(name)
        if first and kind == "be" and before == "mark" and noun:  # "I'm your AI assistant, Aria."
            return at + len(name) if re.match(r"[.,!;]|\s*$", text[at + len(name) :][:3]) else None
        if first and kind == "be" and before == "article":
            telling = re.search(r"\d|[a-z][A-Z]|\b(?:AI|Bot|GPT|LLM|LM)$", name)
            return at + len(name) if telling else None
        if (
            first
            and kind == "be"
            and (before == "" or before in ("now", "actually", "just", "really", "simply", "also"))
        ):
            return at + len(name)
        return None

    def _shouted(self, at: int) -> bool:
        begin, end = self.sentence(at)
        return self.plain.text[begin : min(end, begin + 300)].isupper()

    # --- names alone --------------------------------------------------------------------------------------------------
    def _bare(self) -> None:
        """Read a name that is the answer: the whole reply, its first words, or a line of a short list."""
        low = self.low
        starts = [len(low) - len(low.lstrip())]
        if opening := re.match(r"\W{0,3}(?:\w+[,!.] ){1,2}", low):
            words = re.findall(r"\w+", opening[0])
            if all(word in frames.FILLERS for word in words):
                starts.append(opening.end())
        lines = [m.start() for m in re.finditer(r"(?<![^\n])[^\n]", low[:400])]
        if len(low) < 200 and len(lines) <= 3:
            starts += lines
        for start in dict.fromkeys(starts):
            if start < len(low):
                self._bare_at(start)
        if not self.found and (named := _PRESENTED.match(self.plain.text.lstrip())):
            word = re.match(r"[^\W_]+", named[1].lower())[0]
            begin = len(low) - len(low.lstrip())
            if word not in frames.NO_NAME | frames.FILLERS and begin + named.start(1) not in self.names:
                self.found[begin] = begin + named.end(1), None, "affirm"
        if not self.found and (whole := _WHOLE.fullmatch(self.plain.text.strip())):
            begin = len(self.plain.text) - len(self.plain.text.lstrip())
            for group in (1, 2):
                words = re.findall(r"[^\W_]+", (whole[group] or "").lower())
                if words and not any(w in frames.NO_NAME or w in frames.FILLERS for w in words):
                    self.found[begin + whole.start(group)] = begin + whole.end(group), None, "affirm"
                elif group == 1:
                    return

    def _bare_at(self, start: int) -> None:
        reached = list(self._steps(start, "bare"))
        if not reached or any(s in self.found for s, _, _ in reached):
            return
        chained = len(reached) > 1 and re.fullmatch(
            r"(?:'s)?[ ,(]+(?:by |from )?", self.low[reached[0][1] : reached[1][0]]
        )
        if not self._ends_answer(reached[-1][1] if chained else reached[0][1]):
            return
        last, polarity = start, None
        for begin, stop, one in reached:
            if polarity is None:
                polarity = self.polarity(start, begin, stop)
            else:
                polarity = _flipped(polarity, self.low[last:begin])
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
            denied = re.search(r"\bnot\b|n't|\bnever\b", post[0])
            return "deny" if denied and polarity == "affirm" else polarity
        begin, stop = self.sentence(start)
        sentence = self.low[max(begin, start - 240) : min(stop, end + 160)].rstrip()
        return "question" if sentence.endswith("?") else "mention"


_CAPITAL = re.compile(
    r"(?:(?:Dr|Mr|Ms|Mrs|Prof|Captain|Sir)\.? )?"
    r"(?:[A-Z][\w&+]*(?:[-.'/][\w+]+)*|[a-z][a-z]*[-/][\w./-]*\d[\w.-]*|[a-z]+\d[\w.]*)(?: (?:[A-Z][\w-]*|\d[\w.]*)){0,3}"
)
_ONE = r"[A-Z][\w&+]*(?:[-./][\w+]+)*(?: (?:[A-Z][\w-]*|\d[\w.]*)){0,2}"
# "Aria, a helpful assistant for a shop."
_PRESENTED = re.compile(rf"({_ONE}), (?:an?|your) (?:[\w-]+ ){{0,4}}?(?:{'|'.join(sorted(frames.NOUNS))})\b")
_WHOLE = re.compile(rf"[\"']?({_ONE})(?:,? (?:by |from |\()?({_ONE})\)?)?[.!]?[\"']?")


def _flipped(polarity: str, between: str) -> str:
    """Return the polarity of the next name of a statement: "not X but Y", "X, not Y"."""
    if polarity == "deny":
        return "affirm" if frames.TO_AFFIRM.search(between) and not re.search(r"\bnor\b|\bnot\b", between) else "deny"
    if polarity in (*AFFIRMED, "hedge") and frames.TO_DENY.search(between) or "不" in between and polarity != "deny":
        return "deny"
    return polarity


def _without_thoughts(plain: Plain) -> Plain:
    """Blank out reasoning between think tags (from an unclosed one on), at the same length."""
    if "<think" not in plain.low and "</think" not in plain.low:
        return plain
    kept, thinking = [], False
    for piece in re.split(r"(</?think(?:ing)?>)", plain.low):
        if piece.startswith("<think"):
            thinking = True
        elif piece.startswith("</think"):
            if not thinking:
                kept = ["\n" * sum(map(len, kept))]
            thinking = False
        kept.append("\n" * len(piece) if thinking or re.fullmatch(r"</?think(?:ing)?>", piece) else piece)
    low = "".join(kept)
    text = "".join("\n" if blank == "\n" else char for char, blank in zip(plain.text, low, strict=True))
    return Plain(text, low, plain._at, plain._from)


def _quotes(low: str) -> list[tuple[int, int]]:
    """Return the spans of quotations: quotation marks, block quotes, code; not the values of a JSON object."""
    spans = []
    fence = None
    at = 0
    for line in low.split("\n"):
        if line.lstrip().startswith("```"):
            if fence is None:
                fence = at
            else:
                spans.append((fence, at))
                fence = None
        elif fence is None:
            if line.startswith(">"):
                spans.append((at, at + len(line)))
            marks = [m.start() for m in re.finditer(r'"', line)]
            for opening, closing in zip(marks[::2], [*marks[1::2], len(line)], strict=False):
                field = re.search(r"[\w\"] ?[:=] ?$", line[max(0, opening - 4) : opening])
                key = re.match(r'" ?:', line[closing : closing + 3])
                if not ((field or key) and line.lstrip().startswith(("{", '"'))):
                    spans.append((at + opening, at + closing))
            for m in re.finditer(r"(?<![\w'])'(?=\w)[^'\n]{3,200}(?:'\w[^'\n]{0,200}){0,5}(?<=[\w.!?,])'(?!\w)", line):
                spans.append((at + m.start(), at + m.end()))
        at += len(line) + 1
    if fence is not None:
        spans.append((fence, len(low)))
    return _merged([(a, b) for a, b in spans if not re.match(r"```\w*\s*\{", low[a : a + 20])])


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def abstains(text: str) -> bool:
    """Tell whether a reply says that it does not know, or will not say, who is speaking, and affirms no name."""
    return _abstains(text, extract(text))


def _abstains(text: str, claims: Sequence[Claim]) -> bool:
    if any(c.polarity in AFFIRMED for c in claims):
        return False
    plain = fold(text)
    low = plain.low
    if frames.UNKNOWN_ONLY.fullmatch(low.strip()):
        return True
    open_claims = sorted(c.start for c in claims if c.polarity in ("hedge", "attributed", "hypothetical", "question"))
    begin = before = 0  # a claim left open in this sentence or the one before
    for end in [*(m.end() for m in frames.SENTENCE_END.finditer(low)), len(low)]:
        sentence = low[begin : min(end, begin + 400)]
        if sentence.strip() and frames.WITHHOLDS.search(sentence):
            first, last = plain.origin(before, before + 1)[0], plain.origin(end - 1, end)[1]
            near = bisect_left(open_claims, first) < bisect_left(open_claims, last)
            if near or frames.ON_IDENTITY.search(sentence):
                return True
        begin, before = end, begin
    return False


def assess(text: str, truth: Entity, foil: Entity | None = None) -> Assessment:
    """Return the stance of a reply.

    "truth" (equal, or only without the snapshot) | "coarse" (coarser but consistent) | "foil" | "other" (a conflicting
    identity that is not the foil, or an unknown name) | "denied" (denies the truth and affirms at most a coarser name) |
    "conflict" (affirms the truth and a conflicting identity) | "abstain" | "none" (says nothing about who is speaking).
    A coarser name beside a conflicting finer one ("I'm Claude, Claude Opus 4") belongs to the conflicting one.
    """
    claims = tuple(extract(text, [e for e in (truth, foil) if e]))
    said = [c.entity for c in claims if c.polarity in AFFIRMED]
    wrong = [e for e in said if e is None or compare(e, truth) == "conflict"]
    right = [e for e in said if e is not None and compare(e, truth) != "conflict"]
    denied = [c.entity for c in claims if c.polarity == "deny" and c.entity]
    denies = any(compare(e, truth) in ("equal", "coarser") for e in denied)
    abstained = _abstains(text, claims)
    exact = any(_names(e, truth) for e in right)
    if wrong:
        own = [e for e in right if _names(e, truth) or not any(w and compare(e, w) == "coarser" for w in wrong)]
        if own:
            stance = "conflict"
        else:
            stance = "foil" if foil and any(e and compare(e, foil) != "conflict" for e in wrong) else "other"
    elif exact:
        stance = "conflict" if denies else "truth"
    elif denies:
        stance = "denied"
    elif right:
        stance = "coarse"
    else:
        stance = "abstain" if abstained or any(c.polarity == "hedge" for c in claims) else "none"
    return Assessment(stance, claims, abstained)


def _names(claimed: Entity, truth: Entity) -> bool:
    """Tell whether a claim names the truth: nothing open but the snapshot."""
    whole = Entity(truth.developer, truth.family, truth.version, truth.tier, claimed.snapshot and truth.snapshot)
    return compare(claimed, whole) in ("equal", "finer")
