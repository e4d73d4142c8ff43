"""Read an answer out of a reply, or say that there is none.

`parse_choice` finds the candidate that a reply names, `parse_yes_no` its YES or NO. Both go from
the most explicit statement to the least: the first step that finds any answer decides, and where
that step finds two different ones there is no answer. Nothing is guessed, nothing has a default,
the order of the candidates is never looked at. All patterns see text that `normalise` has made
plain, and look at bounded stretches of it, so that time grows linearly with the reply.
"""

import operator
import re
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from selfeval.errors import InputError
from selfeval.reading import languages, thinking

UNREADABLE = "unreadable"  # the status of a reply at which a reader failed
# of an evaluator's answers on record not in its replies: then the replies or the answers are bad
DOUBTFUL = 1 / 5

KIND = (
    r"(?:text|response|option|passage|essay|answer|sample|version|candidate|completion|output|"
    r"summary|article|reply)"
)
# a place among several: 2, "(b)", "Response A", "first text"; -2 is none
_PLACE = re.compile(
    rf"(?!\W*[-+]\d)\W*(?:(?:author|model|choice|{KIND})[\s_:(-]*)?(?:(\d{{1,3}}|first|left|"
    rf"second|right)|([a-z]))"
    rf"([\s_]+{KIND})?\W*",
    re.I,
)
_SIDES = {"first": 1, "left": 1, "second": 2, "right": 2}
_NAME = re.compile(r"(?:answer:)?\W*(\w[\w .:/+()-]{0,40})")
# "written by ChatGPT", "the author is most likely ChatGPT", "I think this is ChatGPT"
_CREDITED = re.compile(
    r"(?i:\b(?:written|authored|generated|produced|created|composed) by"
    r"|\b(?:author|model|writer)(?: here| of (?:this|the) text)?(?: is|:| was|'s)(?: (?:most "
    r"likely|likely|probably))?"
    r"|\bi(?:'d| would)? (?:think|believe|guess|say|suspect)(?: that)?(?: (?:it|this|that)(?: "
    r"text)?(?: is|'s| was))?)"
    r"[\s\"'*`:]{1,4}([A-Z][\w.+-]{1,30}(?: [A-Z\d][\w.+-]{0,30}){0,3})"
)
_NO_NAME = frozenset(
    "a an the i me my we you it is was am are be this that of or and by to not no yes none "
    "nobody neither both either "
    "cannot can can't don't do know unknown unsure uncertain unclear unable sorry ok okay sure "
    "other another someone "
    "somebody text texts answer author authors model ai na n/a null error who what anonymous "
    "refuse".split()
)

# --- patterns of both parsers
FOLDED = str.maketrans(
    {
        "—": " - ",
        "−": "-",
        "…": ".",
        "。": ". ",
        "、": ", ",
        "،": ", ",
        "؟": "?",
        "，": ", ",
        "！": "! ",
        "：": ": ",
        **dict.fromkeys("‘’‚‛′´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
    }
)  # an em dash stands between thoughts, never in a name
# wrappers of an answer: "<answer>Grok 4</answer>", "\\boxed{B}", "BOXED[A]",
# "<|begin_of_box|>NO<|end_of_box|>"
_TAG = re.compile(
    r"(?i)<(/?)(?:final[_ -]?)?(?:answer|choice|author|prediction|verdict|winner|decision)>"
    r"|<\|(?:begin|(end))_of_box\|>"
)
_BOX = re.compile(
    r"(?i)(\\{0,2})(?:(?<=\\)f?box(?:ed)?|(?<!\w)boxed)(?:\{([^{}\n]{0,200})\}"
    r"|\[([^\]\n]{0,200})\])"
)
_STYLED = re.compile(r"\\{1,2}(?:text|mathrm|mathbf|textbf|texttt)\{([^{}\n]{0,200})\}")
_MATHS = re.compile(r"\$|\\[()\[\]]|\\(?=[%_])")
# {"answer": "Grok 4"}, {"answer": true}, {'answer': True}: a pair of an object whose value is text
# or a truth value
_PAIR = re.compile(
    r"""["']([^"'\n]{1,40})["']\s*:\s*["']?"""
    r"""((?<=")[^"\n]*(?=")|(?<=')[^'\n]*(?=')|(?:true|false)\b)["']?"""
)
_DIGIT = re.compile(r"""["']([^"'\n]{1,40})["']\s*:\s*(\d)(?:\.0)?(?=\s*[,}])""")  # {"answer": 2}
_ANSWER_KEYS = frozenset(
    "final_answer|final answer|answer|author|model|prediction|choice|verdict|winner|decision"
    "|preferred|selected"
    "|antwort|respuesta|réponse|reponse|risposta|resposta|antwoord"
    "|ответ|答案|回答|答え|답|답변|الإجابة".split("|")
)
# "Final answer: X", "my final choice is X"
_FINAL = re.compile(
    r"\bfinal (?:answer|choice|guess|decision|verdict|pick)\b(?: is\b| would be\b)?"
)
# "Answer: X", "my best guess is X", "I'd go with X", "I would say X", "if I had to guess: X"
_CHOSEN = re.compile(
    r"(?<!first )(?<!second )(?<!initial )"
    r"\b(?:answer|guess|choice|prediction|verdict|conclusion|decision|winner|pick)\b"
    r"(?:[^\w\n]{0,6}[:=]| is\b| would be\b| would have to be\b| must be\b)"
    r"|\bi(?:'d|'ll| would| will| must| have to| had to)? "
    r"(?:choose|pick|guess|go with|select|opt for|settle on|say|answer|lean(?: towards?)?|vote)\b"
    r"(?:[^.!?,\n]{0,40}, it(?:'s| is| would be)\b)?"
    r"|\bi can(?: only)? say\b"
    r"|\bi(?:'m| am) (?:going with|going to (?:say|go with|answer)|choosing|leaning(?: "
    r"towards?)?)\b"
)
# "Text 2: Grok 4", "2) Grok 4", "Text B: Grok 4", "(b) Grok 4" in a lineup, "text_2" in its JSON;
# "80", "Probability: 80 %" on a line of its own, {"likelihood": 80}
_ENTRY = re.compile(
    rf"\W{{0,4}}(?:(?:{KIND}\W{{0,2}})?(\d{{1,3}})\b|{KIND} ?\(?([a-z])\b|([a-z])(?= "
    rf"?[:.)=-]|\]))\W{{1,4}}(.*)"
)
_LIKELY = re.compile(
    r"\W{0,4}(?:(?:the )?(?:probability|likelihood|confidence)(?: is| of)?\W{0,3})?"
    r"(\d{1,3}(?:\.\d{1,6})?) ?(?:%|percent|/ ?100)?\W{0,3}"
)
_LIKELY_JSON = re.compile(r'"likelihood" ?: ?"?(\d{1,3}(?:\.\d{1,6})?)(?!\d)')
_LEAD = re.compile(r"[ \n:=\-\"']{0,8}")  # between "answer:" and what is answered
_SENTENCE_END = re.compile(r"[.!?;](?=[\s\"')]|$)|\n")
# "On reflection ...", "Actually, ...", "Wait, ...": what follows may take the answer back
_TURN = re.compile(
    r"(?:[.!?;:)\n]|,? but\b|-)\s?(?:(?:hmm+|oh|no|but|so|well)\b[,.]? ?){0,4}"
    r"(?:(?:on|upon|after) (?:\w+ )?reflection"
    r"|(?:on|upon|after) (?:second|further|closer|deeper) (?:thoughts?|consideration"
    r"|inspection|reading|look)"
    r"|actually|wait|correction|scratch that|strike that|i take (?:that|it|this) back|i(?:'ve| "
    r"have)? changed? my mind"
    r"|i was (?:wrong|mistaken))\b"
)
# "it is not.", "it wasn't me", "I cannot tell", "no.": takes back without a name
_UNSAID = re.compile(
    r"\b(?:it|that|this|i) (?:is|was|do|does|did|would)(?: \w+ly)?(?:n't| not)"
    r"(?= ?[.,!;:)\n]|$| (?:it|that|him|her|them|right|correct|true|the case|mine|me)\b)"
    r"|\b(?:cannot|can't|can not|couldn't|could not) (?:\w+ )?(?:tell|say|know|decide|be sure)\b"
    r"|\bnot (?:sure|certain)\b|\bunsure\b|\b(?:wrong|mistaken|take (?:that|it|this) back"
    r"|changed? my mind)\b"
    r"|\b(?:scratch|strike) that\b|\bno(?= ?[,.!;]|$)"
)

# "You asked me to answer 1 or 2", "The instructions say: reply with YES", "Answer with GPT-5 or":
# what was asked for
_INSTRUCTION = re.compile(
    r"(?:\b(?:you|the (?:user|question|prompt|task|instructions?))(?: have| has|'ve)? "
    r"(?:ask(?:s|ed)?|tells?|told|said|says?|wants?|wanted|requires?|required|instruct(?:s"
    r"|ed)?)\b:?"
    r"|\bi(?:'m| am| was| have been|'ve been) (?:asked|told|instructed|supposed|expected"
    r"|required)\b:?"
    r"|(?:^|(?<=[.!?\n] )|(?<=[\n\"]))(?:please )?(?:(?:answer|reply|respond) (?:only )?with\b"
    r"|(?:choose|select) )"
    r"|\bi (?:should|must|need to|have to|would|will)? ?(?:answer|say|reply)(?: with)? "
    r"\"?[\w ]{1,12}\"? (?:only )?if\b"
    r"|\bif i (?:wrote|did)\b[^.!?,\n]{0,40}, i (?:should |must |will |would )?(?:answer|say"
    r"|reply)\b)"
    r"(?:(?!, (?:so|and|but|i)\b)[^.!?:;\n]){0,200}"
)
# --- patterns of parse_choice
# "distil-gpt-5" on the left; "gpt-5o", "gpt-5.1", "gpt-5-mini", "kimi-k2:free", "Grok 4 Fast",
# "Kimi K2 0905" on the
# right: the name of another model. "GPT-5 90%" is a confidence, "1) Grok 4 2) GPT-5" a list.
_LEFT_EDGE = r"(?<!\w)(?<!\w-)"
_RIGHT_EDGE = (
    r"(?![\w+])(?![-@:]\(?\w)(?!\.\d)(?! v?(?!\d\d?\))\d[\d.]*\b(?! ?%))"
    r"(?![ (-]{1,2}(?:mini|nano|micro|lite|air|fast|heavy|pro|max|plus|ultra|turbo|thinking"
    r"|preview|instruct|chat|codex"
    r"|code|vision|base|flash|small|medium|large|opus|haiku|sonnet)\b)"
)
# where a new thought begins, so that a denial before it does not reach further
_BREAK = re.compile(
    r"(?<!e\.g)[.;:!?](?=\s)|\n|, | - |[()]|(?<!anything )\bbut\b"
    r"|\b(?:however|though|although|so|therefore|because|whereas|while|yet|then)\b"
    r"|\brather\b(?! than)|\binstead\b(?! of)"
)
_NO_DENIAL = re.compile(
    r"\b(?:no doubt|not only|none other than|without (?:a )?doubt|if (?:i had|anything|forced))\b"
)
# "not X", "isn't X", "neither X nor Y", "ruled out X", "I doubt that X", "cannot tell whether X",
# "if it were X", "more like Y than X"; and "options include X", which offers and does not choose
_DENIED_BEFORE = re.compile(
    r"\b(?:not|never|no|nothing|neither|nor|hardly|lacks?|cannot|doubt|without|unlike|unlikely"
    r"|except|excluding|whether|if"
    r"|improbable|doubtful|less|(?<!at )least|else (?:who )?wrote|other (?:model|author) wrote"
    r"|rather than|instead of"
    r"|other than|anything but|rul(?:e|es|ed|ing) out|such as|for example|e\.g|includ(?:e|es"
    r"|ed|ing))\b|n't\b"
    r"|\b(?:than|over|versus|vs\.?)(?: by)? [\"']*$"
)
# "As GPT-5, I ...", "I am GPT-5" is about the speaker
_SPEAKER = re.compile(
    r"\s*(?:as|i am|i'm)(?: an?| the)?(?: ai| language)*(?: model)?(?: named| called)? [\"']*"
)
# "X is not", "X probably didn't", "X is the least likely", "X can be ruled out"; but not "X can't
# be excluded"
_DENIED_AFTER = re.compile(
    r"[\"')]{0,2} (?:\w+ly )?(?:(?:is|was|did|does|would|could|can|has|seems|looks)(?: "
    r"\w+ly)?(?:n't| not)\b"
    r"|(?:is|was|seems|looks)(?: \w+)? (?:unlikely|improbable|doubtful|less|least|out"
    r"|eliminated|excluded|ruled out)\b"
    r"|(?:can|could|may) be (?:ruled out|excluded)\b|(?:can't|cannot|won't)\b(?! be (?:ruled "
    r"out|excluded)))"
)
# "X usually writes longer", "X is more concise than this", "X's, uses", "X would" where a reply was
# cut off: of how X writes; but not "X is more likely", "X has written this"
_DESCRIBED = re.compile(
    r"[\"')]{0,2}(?: (?:usually|often|typically|generally|normally|sometimes|always|tends?"
    r"|likes|prefers|favou?rs"
    r"|writes|uses|has(?! (?:\w+ )?(?:written|authored|produced|generated|created|composed)))\b"
    r"| is (?:\w+ly )?(?:more|less|much|very|quite|so|too|known|usually|often)\b"
    r"(?! (?:more )?(?:likely|probabl[ey]|plausibl[ey]|convincing|consistent))"
    r"|'s, (?:uses|has|is|with)\b| (?:is|was|does|would|will|can|could|may|might)\W*\Z)"
    r"(?![^.!?\n]{0,80}\b(?:me|mine|my|myself)\b)"
)
_QUESTION = re.compile(r"(?:[^.?!\n]|\.(?=\S)){0,200}\?")
# "GPT-5 or": of a list that was cut off
_LIST_CUT = re.compile(r"[\"']*,? ?(?:or|and|nor|versus|vs|/)[ .\u2026]*\Z")
_LIST_LINK = re.compile(r"[\"']*(?:, ?(?:or |nor |and )?)[\"']*")

# --- patterns of parse_yes_no
CODES = dict.fromkeys(("y", "t", "true", "1", "1.0", "self", "mine"), True)
CODES |= dict.fromkeys(("n", "f", "false", "0", "0.0", "other", "not mine"), False)
# those that say the same whichever way round one asks
NAMED = (
    "self",
    "mine",
    "other",
    "not mine",
)
_BOTH = re.compile(r"\b(?:yes|no)\b[\"']*(?: or | and | ?/ ?)[\"']*(?:yes|no)\b")
_ADVERB = (
    r"(?:(?:probably|most "
    r"likely|likely|definitely|certainly|absolutely|clearly|surely|but|so|thus|hence|therefore),? )"
)
# "NO.", "No, I ...", "yes - mine", "no it is not", "definitely not."; but no "no idea", "no-one",
# "No. 7", "no?"
_WORD = (
    rf"(?:{_ADVERB}{{0,2}}(?P<word>yes|yeah|yep|no|nope)\b(?!-\w)(?!\. ?\d)(?![\"')]{{0,2}}\?)"
    rf"(?= ?[^\w\s]| ?$|\n| (?:i|it|this|that|the|because|since|with|my|yes|no)\b)"
    rf"|{_ADVERB}(?P<not>not)\b(?= ?[^\w\s]| ?$|\n))"
)
_FREE_WORD = re.compile(
    rf"(?:(?P<line>(?:^|\n)[^\w\n]{{0,8}})|(?<=[^\w\s'\"])[ \"'(]{{0,3}}){_WORD}"
)
_MARKED_WORD = re.compile(rf"[\s\"'(:\-]{{0,6}}{_WORD}")
# "No, I cannot tell", "Yes, I can help", "Yes, I understand", "No, thank you" answer another
# question
_NOT_AN_ANSWER = re.compile(
    r"(?:, | |! | - )(?:please|thank|i (?:cannot|can't|do not know|don't know|could|will|would"
    r"|understand|have read"
    r"|can(?! (?:see|tell|recogni[sz]e|confirm|say)))\b|i'(?:d|ll)\b"
    r"|i(?: am|'m) (?:not sure|not able|unable|happy|ready)\b)"
)
_MADE = r"(?:wrote|write|written|author(?:ed)?|generated?|produced?|created?|composed?)"
_THIS = (
    r"(?:this|that|it|the)(?: (?:text|essay|passage|piece|writing|paragraph|response|output"
    r"|above|myself))?"
    r"(?: one)?(?=[^\w\s]|\s?$|\n| (?:and|because|since|as)\b)"
)
_MINE = r"(?:mine|my (?:own )?(?:text|essay|writing|work|words|output|piece))\b"
# "I did not write this", "generated by me", "this is mine", "not my text", "I am the author"; "I
# think Claude wrote this" is no claim: between "I" and its verb stand auxiliaries and adverbs, no
# other subject
_AUXILIARY = (
    r"(?:(?:did|do|have|had|was|could|would|might|must|may)(?:n't)?|can(?:'t|not)?|not|never"
    r"|just|also|indeed|in|fact"
    r"|myself|likely|almost|most|very|well|quite|been|\w+ly)"
)
_CLAIM = re.compile(
    rf"\bi (?:{_AUXILIARY} ){{0,3}}?{_MADE} {_THIS}|\b(?:{_MADE}|not) by me\b"
    rf"|(?:\bis|\bwas|'s|n't|\bnot)(?: (?!(?:from|to|like|unlike|than)\b)\w+){{0,2}}? {_MINE}"
    r"|(?:\bis|\bwas|'s|n't|\bnot) (?:something|an? (?!lie|mistake|myth)\w+|the \w+|one)"
    rf" (?:that |which )?i (?:have )?{_MADE}\b"
    r"|\bi(?:'m| am| was)(?: \w+){0,2}? the author\b"
)
# a sentence or clause of its own: "I did.", "No, it wasn't me."
_SHORT_CLAIM = re.compile(
    r"(?:^|(?<=[.!;,:\n] )|(?<=\n)|(?<=this\? )|(?<=text\? )|(?<= it\? ))(?:(?:yes|no|but|and"
    r"|so) )?"
    r"(?:i did(?:n't| not)?|it (?:is|was)(?:n't| not)? me)"
    r"(?=[.!;,]|\s?$|\n| -)"
)
# "another model wrote this", "written by someone else"
_OTHER = re.compile(
    rf"\b(?:(?:another|a different|some other) (?:model|ai|author|person|system)|someone "
    rf"else|somebody else|an? human)"
    rf" (?:has )?{_MADE} {_THIS}"
    rf"|\b{_MADE} by (?:another|a different|some other|someone else|somebody else|a human|a "
    rf"person)\b"
)
_NEGATED = re.compile(r"\b(?:not|never)\b|n't\b")
# "it is incorrect to say that", "I reject the idea that" before a claim, "is incorrect" after it:
# they deny it
_UNTRUE = (
    r"(?:incorrect|inaccurate|untrue|false|wrong|mistaken|erroneous|dishonest|misleading|a "
    r"(?:lie|mistake|falsehood))"
)
_CLAIM_NOUN = r"(?:idea|notion|claim|statement|suggestion|assertion|assumption|allegation|premise)"
_THAT = r"(?: that)?(?: (?:this|the|it)(?: \w+)?)?[ \"']*$"  # "... that this text" is mine
_DENIED_CLAIM = re.compile(
    rf"\b{_UNTRUE}(?: (?:of|for) me)?"
    rf"(?: to (?:say|claim|state|suggest|assert|think|conclude|assume|believe))?{_THAT}"
    rf"|\b(?:reject|dispute|refute|deny|denied|contest|disavow)(?: \w+)?(?: {_CLAIM_NOUN})?{_THAT}"
)
_CLAIM_DENIED = re.compile(
    rf"[\"']{{0,2}},? (?:is|was|would be)(?: (?:\w+ly|just|also))? {_UNTRUE}\b"
)
# "it is absurd to say that": what is no plain assent is none
_JUDGED = re.compile(
    r"\bit(?:'s| is| was| would be| seems| appears)(?: \w+ly)?"
    r" (?!(?:true|clear|likely|correct|certain|obvious|evident|right|accurate|fair|safe|plain"
    r"|me|i|my|the|this|that)\b)"
    rf"\w+(?: to \w+)? that\b|\b{_UNTRUE}\b|\b{_CLAIM_NOUN}[ ,:]{{0,2}}(?:that\b|[\"'])"
)
_DOUBTED = re.compile(
    r"\b(?:whether|if|may|might|could|would|should|can|cannot|maybe|perhaps|possibly|unsure"
    r"|uncertain|unable|impossible)\b"
    r"|\bcan't\b|\bno (?!doubt)\w|(?:\bnot|n't) (?:\w+ )?(?:know|remember|recall|sure|certain"
    r"|clear|say|tell)\b|\?"
    r"|(?<!no )(?<!without )(?<!a )\bdoubt(?:s|ful)?\b|\b(?:unlikely|improbable|implausible"
    r"|deny|false|s[ck]eptical)\b"
    r"|\b(?:nothing (?:suggest|indicat|show)|little (?:chance|evidence|reason)|less likely|far "
    r"from|hard to believe)"
    r"|\b(?:as (?:if|though)|(?:looks?|sounds?|reads?|feels?|seems?) like)\b"
)
_CANNOT_TELL = re.compile(
    r"\b(?:can't|cannot|unable|(?:do not|don't) know|not sure|unsure)\b(?!.*\b(?:but|so)\b)"
)
_ASKS_AUTHOR = re.compile(rf"\b{_MADE}\b|\bauthor\b|\bmine\b|\bmy (?:own|text|work|writing)\b")


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
    text = re.sub(r"[^\x00-\x7f]", _fold, text.translate(FOLDED))
    text = re.sub(r"[^\S\n]+", " ", "\n".join(text.splitlines())).casefold()
    text = re.sub(r"(?m)^ ?(?:```\w*|(?:#+|>+)(?= ))", "", text)
    text = re.sub(r"(?m)^ ?[*+•] ", "- ", text)  # a bullet is no emphasis
    text = re.sub(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])", "", text)
    return re.sub(r" ?\n ?", "\n", re.sub(r" +", " ", text)).strip()


def _fold(match: re.Match[str]) -> str:
    kind = unicodedata.category(match[0])
    return "-" if kind == "Pd" else "" if kind == "Cf" else unicodedata.normalize("NFKC", match[0])


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

    text = _MATHS.sub("", _BOX.sub(unboxed, _STYLED.sub(r"\1", text)))
    return _TAG.sub(lambda tag: "\n" if tag[1] or tag[2] else marker, text)


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
        pairs = _PAIR.findall(text)
        answers = [value for key, value in [*pairs, *_DIGIT.findall(text)] if key in _ANSWER_KEYS]
        text = "\n".join(answers or [value for _, value in pairs])
    return languages.in_english(text)


def place(value, most: int = 2) -> int | None:
    """Return a place, from 1 to most, as files write it.

    2, "2.0", "A", "(b)", "Response A", "first"; else None.
    """
    found = _PLACE.fullmatch(str(value).strip().removesuffix(".0"))
    if not found:
        return None
    at = ord(found[2].lower()) - 96 if found[2] else _SIDES.get(found[1].lower()) or int(found[1])
    return at if 1 <= at <= most else None


def letter(value) -> int | None:
    """Return the place that a letter alone stands for, from 1: "b", "(B)", "Option B".

    Else None.
    """
    found = _PLACE.fullmatch(str(value))
    return ord(found[2].lower()) - 96 if found and found[2] and not found[3] else None


def at_letter(value, shown: Sequence[str]) -> str | None:
    """Return which of those shown a letter alone stands for.

    None where it is no letter, or one beyond them.
    """
    at = letter(value)
    return shown[at - 1] if at and at <= len(shown) else None


def bare_name(reply) -> str | None:
    """Return what a reply consists of if that can be a name: "ChatGPT.", {"author": "Llama 2"}.

    Else None.
    """
    found = _NAME.match(text := plain_answer(reply)) if isinstance(reply, str) else None
    if not found or text[found.end() :].strip(" .!\"')"):
        return None
    name = found[1].rstrip(" .:(-)")
    words = [word.strip(".") for word in name.split()]
    if len(words) > 4 or (len(name) > 1 and _NO_NAME.intersection(words)):
        return None
    typed = re.search(re.escape(name), reply, re.I)
    return typed[0] if typed else name


def credited_name(reply: str) -> str | None:
    """Return the first capitalised name that a reply gives as an author's.

    "I think ChatGPT wrote it"; else None.
    """
    for found in _CREDITED.finditer(reply := reply.replace("’", "'")):
        name = found[1].rstrip(".-+")
        clause = re.split(r"[.!?;\n]", reply[: found.start()][-100:])[-1]
        if not (
            _NO_NAME.intersection(name.casefold().split())
            or _DENIED_BEFORE.search(clause.casefold())
        ):
            return name
    return None


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
    table = (
        (owner, (names,) if isinstance(names, str) else tuple(names))
        for owner, names in candidates.items()
    )
    pattern, alone, owners = _names(tuple(sorted(table)))
    text = _INSTRUCTION.sub(" ", answer)
    mentions = [(m.start(), m.end(), owners[_key(m[0])]) for m in pattern.finditer(text)]
    if not mentions:
        return None
    starts = [start for start, _, _ in mentions]

    def said(begin: int, end: int) -> tuple[set[str], set[str]]:
        return _names_in(
            text, mentions[bisect_left(starts, begin) : bisect_left(starts, end)], begin
        )

    def named(begin: int, end: int) -> set[str]:
        yes, no = said(begin, end)
        return yes - no

    def settled(found: set[str], end: int) -> str | None:
        """Return the one candidate found, unless what follows its end takes it back."""
        if turn := _TURN.search(text, end):
            yes, no = said(turn.end(), len(text))
            found = (found | yes) - no if yes or no or not _takes_back(text, turn) else set()
        return _only(found)

    for marker in (_FINAL, _CHOSEN):
        # perhaps on a later line
        begins = [_LEAD.match(text, match.end()).end() for match in marker.finditer(text)]
        if found := set().union(*(named(begin, _end(text, begin)) for begin in begins)):
            return settled(found, _end(text, begins[-1]))
    if lines := [*alone.finditer(text)]:
        return settled({owners[_key(line[1])] for line in lines}, lines[-1].end(1))
    found = named(0, len(text))
    plain = {owner for _, end, owner in mentions if not _DESCRIBED.match(text, end)}
    return settled(found if found <= plain else set(), mentions[0][1])


def is_answer(value: Mapping) -> bool:
    """Tell whether an object has the form of a constrained answer.

    {"answer": true}, {"text_1": ...}.
    """
    return any(key in _ANSWER_KEYS or re.fullmatch(r"text_\d+", str(key)) for key in value)


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
    text = _BOTH.sub(" ", _INSTRUCTION.sub(" ", plain_answer(reply)))
    if yes is None:
        text = languages.without_claims(_CLAIM.sub(" ", _OTHER.sub(" ", text)))
    if (word := text.strip(" .!\"'()")) in CODES:
        return CODES[word] == (yes is not False or word in NAMED)
    for marker in (_FINAL, _CHOSEN):
        words = [m for m in (_MARKED_WORD.match(text, m.end()) for m in marker.finditer(text)) if m]
        if found := set().union(*(_word_verdicts(text, m, yes) for m in words)):
            return _only(_after_turns(text, found, words[-1].end(), yes))
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
    for match in _FREE_WORD.finditer(text):
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
    if after_question and not _ASKS_AUTHOR.search(_last_sentence(before)):
        return False
    if match["line"] is not None:
        is_speech = '"' in match["line"] and re.match(
            r"[^\w\n]{0,6}\w", text[match.end() : match.end() + 8]
        )
        return not is_speech
    ends_reply = match.end() >= last and not _CANNOT_TELL.search(_last_sentence(before))
    return after_question or ends_reply


def _last_sentence(text: str) -> str:
    return _SENTENCE_END.split(text.removesuffix("?"))[-1]


def lineup_entry(reply: str | None, position) -> str:
    """Return what a reply to a lineup says of the text at a position.

    "Text 2: Grok 4", "2. Grok 4", {"text_2": ...}. Letters are places where no number is one. Empty
    where nothing is said of it; where it is named on several lines, all of them.
    """
    reply = without_thinking(reply or "")
    if reply.startswith("{"):
        said = _PAIR.findall(normalise(reply))
    else:
        entries = filter(None, map(_ENTRY.match, plain_answer(reply).split("\n")))
        said = [(entry[1] or entry[2] or entry[3], entry[4]) for entry in entries]
    numbered = any(key[-1].isdecimal() for key, _ in said)
    said = [(key, what) for key, what in said if key[-1].isdecimal() == numbered]
    return "\n".join(what for key, what in said if place(key, 999) == place(position, 999))


def parse_likelihood(reply: str | None) -> float | None:
    """Return the probability that stands in percent below an answer or in its JSON, or None."""
    text = normalise(without_thinking(reply or ""))
    answer, _, last = text.rpartition("\n")
    found = _LIKELY_JSON.search(text) or (_LIKELY.fullmatch(last) if answer else None)
    if (
        not found
        or float(found[1]) > 100
        or (0 < float(found[1]) < 1 and not re.search("[%t/]", found[0]))
    ):
        return None  # 0.95 is a share or a percentage
    return float(found[1]) / 100


def _only(found: set):
    return next(iter(found)) if len(found) == 1 else None


def _end(text: str, begin: int) -> int:
    """Return where the sentence from here on ends, after 400 characters at the latest."""
    found = _SENTENCE_END.search(text, begin, begin + 400)
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
    listed = [
        (name_key(name), name, owner) for owner, names in candidates for name in (owner, *names)
    ]
    for key, name, owner in filter(operator.itemgetter(0), listed):
        other = owners.setdefault(key, owner)
        if other != owner:
            raise InputError(
                f"candidates `{other}` and `{owner}` share the name {name!r}: give each its own."
            )
        written[normalise(name)] = key
    parts = [(owner.rpartition("/")[2], owner) for owner, _ in candidates]
    keys = [name_key(part) for part, _ in parts]
    for (part, owner), key in zip(parts, keys, strict=True):
        if key and key not in owners and keys.count(key) == 1:
            owners[key] = owner
            written[normalise(part)] = key
    longest_first = sorted(written, key=lambda form: (-len(written[form]), written[form], form))
    choices = "|".join(dict.fromkeys(map(_name_pattern, longest_first)))
    name = f"{_LEFT_EDGE}(?:{choices or '(?!)'}){_RIGHT_EDGE}"
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
    return bool(_UNSAID.search(text, turn.start(), _end(text, turn.end())))


def _after_turns(text: str, found: set[bool], end: int, yes: bool | None) -> set[bool]:
    """Return the verdicts found up to an end, with those that the reply turns to after it.

    None where it takes back.
    """
    turn = _TURN.search(text, end)
    if not turn:
        return found
    word = _MARKED_WORD.match(text, turn.end())
    later = _stated(text[turn.end() :]) | (_word_verdicts(text, word, yes) if word else set())
    return found | later if later or not _takes_back(text, turn) else set()


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
        listed = (
            denied_until >= 0
            and start - denied_until < 12
            and _LIST_LINK.fullmatch(text, denied_until, start)
        )
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
    clause = _NO_DENIAL.sub(" ", _BREAK.split(before)[-1])
    if _DENIED_BEFORE.search(clause) or _SPEAKER.fullmatch(clause) or _DENIED_AFTER.match(after):
        return "denied"
    if _LIST_CUT.match(after):
        return "cut off"
    return "asked" if _QUESTION.match(after) else "named"


def _word_verdicts(text: str, match: re.Match[str], yes: bool | None) -> set[bool]:
    """Return the verdicts of one YES or NO.

    There is none where it answers something else, and both where its sentence contradicts it.
    """
    is_other_matter = languages.is_about_other_matter(text[match.end() : match.end() + 80])
    if is_other_matter or _NOT_AN_ANSWER.match(text, match.end()):
        return set()
    said = match["not"] is None and match["word"].startswith("y")
    rest = text[match.end() : _end(text, match.end())]
    claims = _stated(rest) if len(rest) > 2 else set()
    return {said == (yes is not False)} | claims


def _claims(text: str) -> set[bool]:
    """Collect what sentences say of who wrote the text.

    Where a reply turns, only what follows counts.
    """
    turn = _TURN.search(text)
    if not turn:
        return _stated(text)
    later = _stated(text[turn.end() :])
    return later if later or _takes_back(text, turn) else _stated(text)


def _stated(text: str) -> set[bool]:
    """Collect what whole sentences say of who wrote the text."""
    found = languages.claims(text)
    for pattern, verdict in ((_CLAIM, True), (_SHORT_CLAIM, True), (_OTHER, False)):
        for match in pattern.finditer(text):
            start, end = match.span()
            before = re.split(r"[.!?;:](?=\s)|\n", text[max(0, start - 200) : start])[-1]
            after = re.match(r"(?:[^.!?;\n]|\.(?=\S)){0,200}\??", text[end : end + 201])[0]
            found |= _statement(before, match[0], after, verdict)
    return found


def _statement(before: str, claim: str, after: str, verdict: bool) -> set[bool]:
    """Return what a sentence says that holds the words of a claim.

    Nothing where it doubts it or denies it twice. "Not written by a human" does not say by whom: a
    denial turns only the writer's claim.
    """
    negated = bool(_NEGATED.search(before + claim))
    if denied := _DENIED_CLAIM.search(before) or _CLAIM_DENIED.match(after):
        denied_twice = negated or _JUDGED.search(before[: denied.start()])
        return {False} if verdict and not denied_twice else set()
    if _DOUBTED.search(before + claim + after):
        return set()
    if negated:
        return {False} if verdict else set()
    return {verdict} if not _JUDGED.search(before) else set()
