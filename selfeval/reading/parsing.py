"""Read an answer out of a reply, or say that there is none.

`parse_choice` finds the candidate that a reply names, `parse_yes_no` its YES or NO. Both go from
the most explicit statement to the least: the first step that finds any answer decides, and where
that step finds two different ones there is no answer. Nothing is guessed, nothing has a default,
the order of the candidates is never looked at. All patterns see text that `normalise` has made
plain, and look at bounded stretches of it, so that time grows linearly with the reply.
"""

import re
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from selfeval.errors import InputError
from selfeval.reading import languages, patterns, thinking

UNREADABLE = "unreadable"  # the status of a reply at which a reader failed
# of an evaluator's answers on record not in its replies: then the replies or the answers are bad
DOUBTFUL = 1 / 5


def attempt(read: Callable, *args, failed=None) -> tuple[Any, str | None]:
    """Return what a reader finds and None, or `failed` and UNREADABLE where it raises, and say so.

    One reply never ends a measurement. `InputError` is about the question and is raised.
    """
    try:
        return read(*args), None
    except InputError:
        raise
    except Exception as error:
        said = f"A reply could not be read ({type(error).__name__}: {error}) and is no answer."
        warnings.warn(said, stacklevel=2)
        return failed, UNREADABLE


def normalise(text: str) -> str:
    """Fold away how a reply is typed: width, hyphens, quotes, markdown, spacing and case.

    Line breaks stay, because an answer on a line of its own is a clear one. Characters are folded
    one at a time: NFKC over a whole text is quadratic where somebody piles up accents.
    """
    text = re.sub(r"[^\x00-\x7f]", _fold, text.translate(patterns.FOLDED))
    text = re.sub(r"[^\S\n]+", " ", "\n".join(text.splitlines())).casefold()
    text = re.sub(r"(?m)^ ?(?:```\w*|(?:#+|>+)(?= ))", "", text)
    text = re.sub(r"(?m)^ ?[*+•] ", "- ", text)  # a bullet is no emphasis
    text = re.sub(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])", "", text)
    return re.sub(r" ?\n ?", "\n", re.sub(r" +", " ", text)).strip()


def _fold(match: re.Match[str]) -> str:
    kind = unicodedata.category(match[0])
    if kind == "Pd":
        return "-"
    if kind == "Cf":  # signs that nobody sees
        return ""
    return unicodedata.normalize("NFKC", match[0])


def without_thinking(reply: str) -> str:
    """Return a reply without its thinking, wherever that stands, and without a template's marks."""
    return thinking.split(reply, anywhere=True)[1].strip()


def unwrap(text: str, marker: str = "\nAnswer: ") -> str:
    """Return a text without what is put around an answer: tags, boxes and the signs of LaTeX.

    A box and an answer tag say that this is the answer: a marker takes their place.
    """

    def unboxed(box: re.Match[str]) -> str:
        inside = box[2] or box[3] or ""
        is_in_json = len(box[1]) == 2
        return inside if is_in_json else f"{marker}{inside}\n"

    text = patterns.MATHS.sub("", patterns.BOX.sub(unboxed, patterns.STYLED.sub(r"\1", text)))
    return patterns.TAG.sub(lambda tag: "\n" if tag[1] or tag[2] else marker, text)


def plain_answer(reply: str | None) -> str:
    """Return the part of a reply that can hold an answer, normalised; empty where there is none.

    Dropped: thinking, texts that begin with "error", and of a JSON object all but its answer (or
    its text values if no key says so). An answer tag and a box become "answer:" on a line of its
    own, and so do the words of other languages for it.
    """
    text = normalise(unwrap(without_thinking(reply or "")))
    if re.match(r"\W{0,8}error\b", text):
        return ""
    if text.startswith("{") and text.endswith("}"):
        pairs = patterns.PAIR.findall(text)
        answers = []
        for key, value in [*pairs, *patterns.DIGIT.findall(text)]:
            if key in patterns.ANSWER_KEYS:
                answers.append(value)
        text = "\n".join(answers or [value for _, value in pairs])
    return languages.in_english(text)


def place(value, most: int = 2) -> int | None:
    """Return a place, from 1 to most, as files write it.

    2, "2.0", "A", "(b)", "Response A", "first"; else None.
    """
    found = patterns.PLACE.fullmatch(str(value).strip().removesuffix(".0"))
    if not found:
        return None
    if found[2]:
        at = _number_of(found[2])
    else:
        at = patterns.SIDES.get(found[1].lower()) or int(found[1])
    return at if 1 <= at <= most else None


def _number_of(letter: str) -> int:
    """Return the place of a letter in the alphabet, from 1."""
    return ord(letter.lower()) - ord("a") + 1


def parse_choice(reply: str | None, candidates: Mapping[str, Sequence[str]]) -> str | None:
    """Return the id of the one candidate that a reply names, or None.

    `candidates` maps ids to further names. The id and its last path part are names too, the last
    part only while no other candidate lays claim to it. Case, hyphens, spaces and quotes do not
    matter; the longest name wins, and a name inside the longer name of a model that is no candidate
    ("gpt-4.1-nano") is not named. A name in a question, denied ("not X", "X is unlikely", "rather
    than X") or doubted ("whether X") does not count.

    What counts as a clear choice, the first that names anybody deciding: 1. the sentence after
    "final answer" (choice, guess, ...); 2. the sentence after "answer:", "my guess is", "I would
    choose" and the like; 3. lines that hold a name and nothing else, list items apart; 4. the whole
    reply, where it says more of a candidate than how it writes ("X usually writes longer"). Two
    candidates at the deciding step are no answer, nor is one that the reply takes back ("On
    reflection it is not X") or doubts anew ("Actually, X or Y"). Raises `InputError` when two
    candidates share a name.
    """
    return choice_in(plain_answer(reply), candidates)


def choice_in(answer: str, candidates: Mapping[str, Sequence[str]]) -> str | None:
    """Return the id of the one candidate that a `plain_answer` names, or None.

    As `parse_choice` does for a reply.
    """
    table = []
    for owner, names in candidates.items():
        several = (names,) if isinstance(names, str) else tuple(names)
        table.append((owner, several))
    pattern, alone, owners = _names(tuple(sorted(table)))
    text = patterns.INSTRUCTION.sub(" ", answer)
    mentions = _Mentions(text, pattern, owners)
    if not mentions.places:
        return None
    for marker in (patterns.FINAL, patterns.CHOSEN):
        found, end = mentions.behind(marker)
        if found:
            return mentions.settled(found, end)
    lines = list(alone.finditer(text))
    if lines:
        found = {owners[_key(line[1])] for line in lines}
        return mentions.settled(found, lines[-1].end(1))
    found = mentions.named(0, len(text))
    if not found <= mentions.plainly_named():
        found = set()
    _, first_end, _ = mentions.places[0]
    return mentions.settled(found, first_end)


class _Mentions:
    """The names in an answer. places: where each begins and ends, and whose it is, in order."""

    def __init__(self, text: str, pattern: re.Pattern[str], owners: Mapping[str, str]):
        self.text = text
        self.places: list[tuple[int, int, str]] = []
        for match in pattern.finditer(text):
            self.places.append((match.start(), match.end(), owners[_key(match[0])]))
        self.starts = [start for start, _, _ in self.places]

    def said(self, begin: int, end: int) -> tuple[set[str], set[str]]:
        """Return who is named and who is denied between two places."""
        inside = slice(bisect_left(self.starts, begin), bisect_left(self.starts, end))
        return _names_in(self.text, self.places[inside], begin)

    def named(self, begin: int, end: int) -> set[str]:
        """Return who is named there and not denied."""
        yes, no = self.said(begin, end)
        return yes - no

    def behind(self, marker: re.Pattern[str]) -> tuple[set[str], int]:
        """Return who is named behind the marks of an answer, and where the last such part ends."""
        found = set()
        end = 0
        for match in marker.finditer(self.text):
            lead: Any = patterns.LEAD.match(self.text, match.end())  # it may be empty
            begin = lead.end()  # perhaps on a later line
            end = _end(self.text, begin)
            found |= self.named(begin, end)
        return found, end

    def plainly_named(self) -> set[str]:
        """Return who is named somewhere without saying how they write."""
        owners = set()
        for _, end, owner in self.places:
            if not patterns.DESCRIBED.match(self.text, end):
                owners.add(owner)
        return owners

    def settled(self, found: set[str], end: int) -> str | None:
        """Return the one candidate found, unless what follows its end takes it back."""
        turn = patterns.TURN.search(self.text, end)
        if turn:
            yes, no = self.said(turn.end(), len(self.text))
            if yes or no:
                found = (found | yes) - no
            elif _takes_back(self.text, turn):
                found = set()
        return _only(found)


def parse_yes_no(reply: str | None, yes: bool | None = True, asked: bool = False) -> bool | None:
    """Return True for YES, False for NO, None for anything else.

    A whole reply may be a code (Y, true, self, ...).

    What counts, the first that finds an answer deciding:
    1. the word after "final answer" (verdict, ...);
    2. the word after "answer:", "I would say" and the like;
    3. the word as the first of the reply or of a line, as the last of the reply, or after the
       writer's own question who wrote the text, set off by punctuation or followed by a clause
       ("No, I did not"); not in "no idea", "maybe yes", "yes or no", "Yes, I can help", "No, I
       cannot tell", in speech, or after a question about something else;
    4. a sentence on who wrote the text ("I did not write this", "this is mine"), unless it doubts
       or asks.
    Two different answers at the deciding step are no answer, nor is a word whose own sentence says
    the opposite, or one that the reply takes back ("On reflection I did not write this").
    Style ("does not sound like me") says nothing about authorship, and "cannot know" holds no NO.

    yes: False where YES says that another wrote the text, and True is returned for NO; None where
    the question was another one, so that what a sentence says of the author answers nothing. asked:
    YES or NO was asked for, so that one word of another language ("ja") and nothing else is one.
    """
    if not asked and languages.is_lone_word(normalise(reply or "")):
        return None
    text = patterns.BOTH.sub(" ", patterns.INSTRUCTION.sub(" ", plain_answer(reply)))
    if yes is None:
        text = languages.without_claims(patterns.CLAIM.sub(" ", patterns.OTHER.sub(" ", text)))
    code = text.strip(" .!\"'()")
    if code in patterns.CODES:
        names_itself = yes is not False or code in patterns.NAMED
        return patterns.CODES[code] == names_itself
    for marker in (patterns.FINAL, patterns.CHOSEN):
        found = set()
        end = 0
        for lead in marker.finditer(text):
            word = patterns.MARKED_WORD.match(text, lead.end())
            if word:
                found |= _word_verdicts(text, word, yes)
                end = word.end()
        if found:
            return _only(_after_turns(text, found, end, yes))
    found, end = _free_words(text, yes)
    if found:
        return _only(_after_turns(text, found, end, yes))
    return None if yes is None else _only(_claims(text))


def _free_words(text: str, yes: bool | None) -> tuple[set[bool], int]:
    """Return what words say that no marker stands before, and where the last of them ends."""
    last = len(text)
    while last and not text[last - 1].isalnum():
        last -= 1
    found = set()
    end = len(text)
    for match in patterns.FREE_WORD.finditer(text):
        if _counts(text, match, last):
            found |= _word_verdicts(text, match, yes)
            end = match.end()
    return found, end


def _counts(text: str, match: re.Match[str], last: int) -> bool:
    """Tell whether a word stands where an answer does.

    First in a line, last, or after who wrote the text was asked.
    """
    before = text[max(0, match.start() - 300) : match.start()].rstrip()
    after_question = before.endswith("?")
    if after_question and not patterns.ASKS_AUTHOR.search(_last_sentence(before)):
        return False
    if match["line"] is not None:
        behind = text[match.end() : match.end() + 8]
        is_speech = '"' in match["line"] and re.match(r"[^\w\n]{0,6}\w", behind)
        return not is_speech
    ends_reply = match.end() >= last and not patterns.CANNOT_TELL.search(_last_sentence(before))
    return after_question or ends_reply


def _last_sentence(text: str) -> str:
    return patterns.SENTENCE_END.split(text.removesuffix("?"))[-1]


def lineup_entry(reply: str | None, position) -> str:
    """Return what a reply to a lineup says of the text at a position.

    "Text 2: Grok 4", "2. Grok 4", {"text_2": ...}. Letters are places where no number is one. Empty
    where nothing is said of it; where it is named on several lines, all of them.
    """
    reply = without_thinking(reply or "")
    if reply.startswith("{"):
        said = patterns.PAIR.findall(normalise(reply))
    else:
        entries = filter(None, map(patterns.ENTRY.match, plain_answer(reply).split("\n")))
        said = [(entry[1] or entry[2] or entry[3], entry[4]) for entry in entries]
    numbered = any(key[-1].isdecimal() for key, _ in said)
    wanted = place(position, 999)
    lines = []
    for key, what in said:
        if key[-1].isdecimal() == numbered and place(key, 999) == wanted:
            lines.append(what)
    return "\n".join(lines)


def _only(found: set):
    return next(iter(found)) if len(found) == 1 else None


def _end(text: str, begin: int) -> int:
    """Return where the sentence from here on ends, after 400 characters at the latest."""
    found = patterns.SENTENCE_END.search(text, begin, begin + 400)
    return found.start() if found else min(len(text), begin + 400)


def name_key(name: str) -> str:
    """Return a name without what typing changes: case, spaces, hyphens, quotes.

    Equal names have equal keys.
    """
    return _key(normalise(name))


@lru_cache(maxsize=1024)
def _key(name: str) -> str:
    return "".join(_tokens(name)).replace("(", "")


def _tokens(name: str) -> list[str]:
    """Split a name into words, numbers (4.1 is one) and the few signs that tell names apart."""
    return re.findall(r"[^\W\d_]+|\d+(?:\.\d+)*|[/:@+(]", name)


@lru_cache(maxsize=64)
def _names(
    candidates: tuple[tuple[str, tuple[str, ...]], ...],
) -> tuple[re.Pattern, re.Pattern, dict[str, str]]:
    """Build the patterns of a name, longest first, and of a line with nothing else.

    And {a name's key: its owner}.
    """
    owners: dict[str, str] = {}
    written: dict[str, str] = {}  # {a name as it is written: its key}
    for owner, names in candidates:
        for name in (owner, *names):
            key = name_key(name)
            if not key:
                continue
            other = owners.setdefault(key, owner)
            if other != owner:
                both = f"candidates `{other}` and `{owner}`"
                raise InputError(f"{both} share the name {name!r}: give each its own.")
            written[normalise(name)] = key
    parts = [(owner.rpartition("/")[2], owner) for owner, _ in candidates]
    keys = [name_key(part) for part, _ in parts]
    for (part, owner), key in zip(parts, keys, strict=True):
        if key and key not in owners and keys.count(key) == 1:
            owners[key] = owner
            written[normalise(part)] = key
    longest_first = sorted(written, key=lambda form: (-len(written[form]), written[form], form))
    choices = "|".join(dict.fromkeys(map(_name_pattern, longest_first)))
    name = f"{patterns.LEFT_EDGE}(?:{choices or '(?!)'}){patterns.RIGHT_EDGE}"
    return re.compile(name), re.compile(rf"(?m)^(?!-)[^\w\n]*({name})[^\w\n?]*$"), owners


def _name_pattern(name: str) -> str:
    """Match a name however its parts are joined.

    "GPT-4.1 mini", "gpt 4.1-mini", "GPT4.1_mini", "GPT-4.1 (mini".
    """
    pattern = ""
    before = ""
    for token in _tokens(name):
        if token == "(":
            continue
        if before:
            pattern += _join(before[-1], token[0])
        pattern += re.escape(token)
        before = token
    return pattern


def _join(before: str, after: str) -> str:
    """Return the pattern of what may stand between two signs of a name."""
    if not (before.isalnum() and after.isalnum()):
        return " ?"
    gap = r"(?:[-_ ]?\(|[-_ ])"
    is_change = before.isdigit() != after.isdigit()
    return f"{gap}?" if is_change else gap


def _takes_back(text: str, turn: re.Match[str]) -> bool:
    """Tell whether a sentence with a turn ("On reflection it is not") denies without a name."""
    return bool(patterns.UNSAID.search(text, turn.start(), _end(text, turn.end())))


def _after_turns(text: str, found: set[bool], end: int, yes: bool | None) -> set[bool]:
    """Return the verdicts found up to an end, with those that the reply turns to after it.

    None where it takes back.
    """
    turn = patterns.TURN.search(text, end)
    if not turn:
        return found
    later = _stated(text[turn.end() :])
    word = patterns.MARKED_WORD.match(text, turn.end())
    if word:
        later |= _word_verdicts(text, word, yes)
    if not later and _takes_back(text, turn):
        return set()
    return found | later


def _names_in(
    text: str, mentions: Sequence[tuple[int, int, str]], begin: int
) -> tuple[set[str], set[str]]:
    """Return who is named and who is denied.

    `begin` is where the thought starts at the earliest.
    """
    yes: set[str] = set()
    no: set[str] = set()
    denied_until = -1
    for start, end, owner in mentions:
        is_near = denied_until >= 0 and start - denied_until < 12
        listed = is_near and patterns.LIST_LINK.fullmatch(text, denied_until, start)
        stance = _stance(text[max(begin, start - 100) : start], text[end : end + 300])
        if listed or stance == "denied":
            no.add(owner)
            denied_until = end
            continue
        denied_until = -1
        if stance == "cut off":
            yes.clear()
        elif stance == "named":
            yes.add(owner)
    return yes, no


@lru_cache(maxsize=4096)
def _stance(before: str, after: str) -> str:
    """Return how a name stands between what is before and after it.

    Denied, asked, cut off in a list, or named.
    """
    clause = patterns.NO_DENIAL.sub(" ", patterns.BREAK.split(before)[-1])
    if patterns.DENIED_BEFORE.search(clause) or patterns.SPEAKER.fullmatch(clause):
        return "denied"
    if patterns.DENIED_AFTER.match(after):
        return "denied"
    if patterns.LIST_CUT.match(after):
        return "cut off"
    return "asked" if patterns.QUESTION.match(after) else "named"


def _word_verdicts(text: str, match: re.Match[str], yes: bool | None) -> set[bool]:
    """Return the verdicts of one YES or NO.

    There is none where it answers something else, and both where its sentence contradicts it.
    """
    is_other_matter = languages.is_about_other_matter(text[match.end() : match.end() + 80])
    if is_other_matter or patterns.NOT_AN_ANSWER.match(text, match.end()):
        return set()
    said = match["not"] is None and match["word"].startswith("y")
    rest = text[match.end() : _end(text, match.end())]
    claims = _stated(rest) if len(rest) > 2 else set()
    return {said == (yes is not False)} | claims


def _claims(text: str) -> set[bool]:
    """Collect what sentences say of who wrote the text.

    Where a reply turns, only what follows counts.
    """
    turn = patterns.TURN.search(text)
    if not turn:
        return _stated(text)
    later = _stated(text[turn.end() :])
    return later if later or _takes_back(text, turn) else _stated(text)


def _stated(text: str) -> set[bool]:
    """Collect what whole sentences say of who wrote the text."""
    found = languages.claims(text)
    verdicts = {patterns.CLAIM: True, patterns.SHORT_CLAIM: True, patterns.OTHER: False}
    for pattern, verdict in verdicts.items():
        for match in pattern.finditer(text):
            start, end = match.span()
            before = re.split(r"[.!?;:](?=\s)|\n", text[max(0, start - 200) : start])[-1]
            [after] = re.findall(r"^(?:[^.!?;\n]|\.(?=\S)){0,200}\??", text[end : end + 201])
            found |= _statement(before, match[0], after, verdict)
    return found


def _statement(before: str, claim: str, after: str, verdict: bool) -> set[bool]:
    """Return what a sentence says that holds the words of a claim.

    Nothing where it doubts it or denies it twice. "Not written by a human" does not say by whom: a
    denial turns only the writer's claim.
    """
    negated = bool(patterns.NEGATED.search(before + claim))
    denied = patterns.DENIED_CLAIM.search(before) or patterns.CLAIM_DENIED.match(after)
    if denied:
        denied_twice = negated or patterns.JUDGED.search(before[: denied.start()])
        return {False} if verdict and not denied_twice else set()
    if patterns.DOUBTED.search(before + claim + after):
        return set()
    if negated:
        return {False} if verdict else set()
    return {verdict} if not patterns.JUDGED.search(before) else set()
