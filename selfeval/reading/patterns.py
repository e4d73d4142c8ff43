"""The patterns of the readers, each with something that it reads and something that it does not.

All see text that `parsing.normalise` has made plain, and look at bounded stretches of it. What each
reads and passes over is tested row by row (tests/test_patterns.py).
"""

import re

KIND = (
    r"(?:text|response|option|passage|essay|answer|sample|version|candidate|completion|output|"
    r"summary|article|reply)"
)
# a place among several
# reads "2", "(b)", "Response A", "first text"; not "-2"
PLACE = re.compile(
    rf"(?!\W*[-+]\d)\W*(?:(?:author|model|choice|{KIND})[\s_:(-]*)?(?:(\d{{1,3}}|first|left|"
    rf"second|right)|([a-z]))"
    rf"([\s_]+{KIND})?\W*",
    re.I,
)
SIDES = {"first": 1, "left": 1, "second": 2, "right": 2}
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
# wrappers of an answer
# reads "<answer>Grok 4</answer>"; not "<b>Grok 4</b>"
TAG = re.compile(
    r"(?i)<(/?)(?:final[_ -]?)?(?:answer|choice|author|prediction|verdict|winner|decision)>"
    r"|<\|(?:begin|(end))_of_box\|>",
)
# reads "\boxed{B}", "BOXED[A]"; not "a box {B}"
BOX = re.compile(
    r"(?i)(\\{0,2})(?:(?<=\\)f?box(?:ed)?|(?<!\w)boxed)(?:\{([^{}\n]{0,200})\}"
    r"|\[([^\]\n]{0,200})\])",
)
# reads "\text{B}"; not "\section{B}"
STYLED = re.compile(
    r"\\{1,2}(?:text|mathrm|mathbf|textbf|texttt)\{([^{}\n]{0,200})\}",
)
# reads "$B$", "\(B\)"; not "(B)"
MATHS = re.compile(
    r"\$|\\[()\[\]]|\\(?=[%_])",
)
# a pair of an object whose value is text or a truth value
# reads "{"answer": "Grok 4"}", "{"answer": true}"; not "{"answer": 2}"
PAIR = re.compile(
    r"""["']([^"'\n]{1,40})["']\s*:\s*["']?"""
    r"""((?<=")[^"\n]*(?=")|(?<=')[^'\n]*(?=')|(?:true|false)\b)["']?""",
)
# reads "{"answer": 2}", "{"answer": 2.0}"; not "{"answer": 22}"
DIGIT = re.compile(
    r"""["']([^"'\n]{1,40})["']\s*:\s*(\d)(?:\.0)?(?=\s*[,}])""",
)
ANSWER_KEYS = frozenset(
    "final_answer|final answer|answer|author|model|prediction|choice|verdict|winner|decision"
    "|preferred|selected"
    "|antwort|respuesta|réponse|reponse|risposta|resposta|antwoord"
    "|ответ|答案|回答|答え|답|답변|الإجابة".split("|")
)
# reads "final answer: x", "my final choice is x"; not "finally, an answer"
FINAL = re.compile(
    r"\bfinal (?:answer|choice|guess|decision|verdict|pick)\b(?: is\b| would be\b)?",
)
# reads "answer: x", "my best guess is x", "i'd go with x"; not "my first guess is x"
CHOSEN = re.compile(
    r"(?<!first )(?<!second )(?<!initial )"
    r"\b(?:answer|guess|choice|prediction|verdict|conclusion|decision|winner|pick)\b"
    r"(?:[^\w\n]{0,6}[:=]| is\b| would be\b| would have to be\b| must be\b)"
    r"|\bi(?:'d|'ll| would| will| must| have to| had to)? "
    r"(?:choose|pick|guess|go with|select|opt for|settle on|say|answer|lean(?: towards?)?|vote)\b"
    r"(?:[^.!?,\n]{0,40}, it(?:'s| is| would be)\b)?"
    r"|\bi can(?: only)? say\b"
    r"|\bi(?:'m| am) (?:going with|going to (?:say|go with|answer)|choosing|leaning(?: "
    r"towards?)?)\b",
)
# an entry of a lineup: its number or letter, and what is said of it
# reads "text 2: grok 4", "2) grok 4", "text b: grok 4"; not "grok 4"
ENTRY = re.compile(
    rf"\W{{0,4}}(?:(?:{KIND}\W{{0,2}})?(\d{{1,3}})\b|{KIND} ?\(?([a-z])\b|([a-z])(?= "
    rf"?[:.)=-]|\]))\W{{1,4}}(.*)",
)
# between "answer:" and what is answered; it may be nothing, so it has no example
LEAD = re.compile(r"[ \n:=\-\"']{0,8}")
# reads "it is x. i think"; not "gpt-4.1 it is"
SENTENCE_END = re.compile(
    r"[.!?;](?=[\s\"')]|$)|\n",
)
# what follows may take the answer back
# reads ". on reflection it is x", ", but actually x", "- wait, x"; not ". on the whole it is x"
TURN = re.compile(
    r"(?:[.!?;:)\n]|,? but\b|-)\s?(?:(?:hmm+|oh|no|but|so|well)\b[,.]? ?){0,4}"
    r"(?:(?:on|upon|after) (?:\w+ )?reflection"
    r"|(?:on|upon|after) (?:second|further|closer|deeper) (?:thoughts?|consideration"
    r"|inspection|reading|look)"
    r"|actually|wait|correction|scratch that|strike that|i take (?:that|it|this) back|i(?:'ve| "
    r"have)? changed? my mind"
    r"|i was (?:wrong|mistaken))\b",
)
# takes back without a name
# reads "it is not.", "it wasn't me", "i cannot tell", "no."; not "it is not only x"
UNSAID = re.compile(
    r"\b(?:it|that|this|i) (?:is|was|do|does|did|would)(?: \w+ly)?(?:n't| not)"
    r"(?= ?[.,!;:)\n]|$| (?:it|that|him|her|them|right|correct|true|the case|mine|me)\b)"
    r"|\b(?:cannot|can't|can not|couldn't|could not) (?:\w+ )?(?:tell|say|know|decide|be sure)\b"
    r"|\bnot (?:sure|certain)\b|\bunsure\b|\b(?:wrong|mistaken|take (?:that|it|this) back"
    r"|changed? my mind)\b"
    r"|\b(?:scratch|strike) that\b|\bno(?= ?[,.!;]|$)",
)
# what was asked for
# reads "you asked me to answer 1 or 2"; not "it is gpt-5"
INSTRUCTION = re.compile(
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
    r"(?:(?!, (?:so|and|but|i)\b)[^.!?:;\n]){0,200}",
)

# --- patterns of parse_choice
# What may not stand beside a name, or it is another model's: "distil-gpt-5" on the left, and
# "gpt-5o", "gpt-5.1", "gpt-5-mini", "kimi-k2:free", "Grok 4 Fast", "Kimi K2 0905" on the right.
# "GPT-5 90%" is a confidence, "1) Grok 4 2) GPT-5" a list.
LEFT_EDGE = r"(?<!\w)(?<!\w-)"
RIGHT_EDGE = (
    r"(?![\w+])(?![-@:]\(?\w)(?!\.\d)(?! v?(?!\d\d?\))\d[\d.]*\b(?! ?%))"
    r"(?![ (-]{1,2}(?:mini|nano|micro|lite|air|fast|heavy|pro|max|plus|ultra|turbo|thinking"
    r"|preview|instruct|chat|codex"
    r"|code|vision|base|flash|small|medium|large|opus|haiku|sonnet)\b)"
)
# where a new thought begins, so that a denial before it does not reach further
# reads "not x, but y", "x; so y"; not "not x or y"
BREAK = re.compile(
    r"(?<!e\.g)[.;:!?](?=\s)|\n|, | - |[()]|(?<!anything )\bbut\b"
    r"|\b(?:however|though|although|so|therefore|because|whereas|while|yet|then)\b"
    r"|\brather\b(?! than)|\binstead\b(?! of)",
)
# reads "no doubt x", "none other than x"; not "not x"
NO_DENIAL = re.compile(
    r"\b(?:no doubt|not only|none other than|without (?:a )?doubt|if (?:i had|anything|forced))\b",
)
# a name behind it is denied, or offered and not chosen
# reads "not x", "isn't x", "neither x nor y", "ruled out x"; not "it is x"
DENIED_BEFORE = re.compile(
    r"\b(?:not|never|no|nothing|neither|nor|hardly|lacks?|cannot|doubt|without|unlike|unlikely"
    r"|except|excluding|whether|if"
    r"|improbable|doubtful|less|(?<!at )least|else (?:who )?wrote|other (?:model|author) wrote"
    r"|rather than|instead of"
    r"|other than|anything but|rul(?:e|es|ed|ing) out|such as|for example|e\.g|includ(?:e|es"
    r"|ed|ing))\b|n't\b"
    r"|\b(?:than|over|versus|vs\.?)(?: by)? [\"']*$",
)
# a name behind it is the speaker's
# reads "as an ai model named", "i am"; not "i think i am"
SPEAKER = re.compile(
    r"\s*(?:as|i am|i'm)(?: an?| the)?(?: ai| language)*(?: model)?(?: named| called)? [\"']*",
)
# a name before it is denied
# reads "is not", "probably didn't", "is the least likely"; not "can't be excluded"
DENIED_AFTER = re.compile(
    r"[\"')]{0,2} (?:\w+ly )?(?:(?:is|was|did|does|would|could|can|has|seems|looks)(?: "
    r"\w+ly)?(?:n't| not)\b"
    r"|(?:is|was|seems|looks)(?: \w+)? (?:unlikely|improbable|doubtful|less|least|out"
    r"|eliminated|excluded|ruled out)\b"
    r"|(?:can|could|may) be (?:ruled out|excluded)\b|(?:can't|cannot|won't)\b(?! be (?:ruled "
    r"out|excluded)))",
)
# a name before it is told how it writes, or the reply was cut off
# reads "usually writes longer", "is more concise than this"; not "is more likely"
DESCRIBED = re.compile(
    r"[\"')]{0,2}(?: (?:usually|often|typically|generally|normally|sometimes|always|tends?"
    r"|likes|prefers|favou?rs"
    r"|writes|uses|has(?! (?:\w+ )?(?:written|authored|produced|generated|created|composed)))\b"
    r"| is (?:\w+ly )?(?:more|less|much|very|quite|so|too|known|usually|often)\b"
    r"(?! (?:more )?(?:likely|probabl[ey]|plausibl[ey]|convincing|consistent))"
    r"|'s, (?:uses|has|is|with)\b| (?:is|was|does|would|will|can|could|may|might)\W*\Z)"
    r"(?![^.!?\n]{0,80}\b(?:me|mine|my|myself)\b)",
)
# reads "or y?"; not "or y."
QUESTION = re.compile(
    r"(?:[^.?!\n]|\.(?=\S)){0,200}\?",
)
# a list was cut off behind a name
# reads "or", ", and ..."; not "or y"
LIST_CUT = re.compile(
    r"[\"']*,? ?(?:or|and|nor|versus|vs|/)[ .\u2026]*\Z",
)
# between two names of a list; it may be nothing, so it has no example
LIST_LINK = re.compile(r"[\"']*(?:, ?(?:or |nor |and )?)[\"']*")

# --- patterns of parse_yes_no
CODES = dict.fromkeys(("y", "t", "true", "1", "1.0", "self", "mine"), True)
CODES |= dict.fromkeys(("n", "f", "false", "0", "0.0", "other", "not mine"), False)
# codes whose meaning does not turn where the question is whether another wrote the text
NAMED = (
    "self",
    "mine",
    "other",
    "not mine",
)
# reads "yes or no", "no / yes"; not "yes, no"
BOTH = re.compile(
    r"\b(?:yes|no)\b[\"']*(?: or | and | ?/ ?)[\"']*(?:yes|no)\b",
)
ADVERB = (
    r"(?:(?:probably|most "
    r"likely|likely|definitely|certainly|absolutely|clearly|surely|but|so|thus|hence|therefore),? )"
)
# "NO.", "No, I ...", "yes - mine", "no it is not", "definitely not."; but no "no idea", "no-one",
# "No. 7", "no?"
WORD = (
    rf"(?:{ADVERB}{{0,2}}(?P<word>yes|yeah|yep|no|nope)\b(?!-\w)(?!\. ?\d)(?![\"')]{{0,2}}\?)"
    rf"(?= ?[^\w\s]| ?$|\n| (?:i|it|this|that|the|because|since|with|my|yes|no)\b)"
    rf"|{ADVERB}(?P<not>not)\b(?= ?[^\w\s]| ?$|\n))"
)
# reads "no.", "no, i ...", "yes - mine", "no it is not"; not "no idea"
FREE_WORD = re.compile(
    rf"(?:(?P<line>(?:^|\n)[^\w\n]{{0,8}})|(?<=[^\w\s'\"])[ \"'(]{{0,3}}){WORD}",
)
# reads "no.", "yes - mine"; not "no idea"
MARKED_WORD = re.compile(
    rf"[\s\"'(:\-]{{0,6}}{WORD}",
)
# the word before it answers another question
# reads ", i cannot tell", ", i can help", ", i understand"; not ", i can tell"
NOT_AN_ANSWER = re.compile(
    r"(?:, | |! | - )(?:please|thank|i (?:cannot|can't|do not know|don't know|could|will|would"
    r"|understand|have read"
    r"|can(?! (?:see|tell|recogni[sz]e|confirm|say)))\b|i'(?:d|ll)\b"
    r"|i(?: am|'m) (?:not sure|not able|unable|happy|ready)\b)",
)
MADE = r"(?:wrote|write|written|author(?:ed)?|generated?|produced?|created?|composed?)"
THIS = (
    r"(?:this|that|it|the)(?: (?:text|essay|passage|piece|writing|paragraph|response|output"
    r"|above|myself))?"
    r"(?: one)?(?=[^\w\s]|\s?$|\n| (?:and|because|since|as)\b)"
)
MINE = r"(?:mine|my (?:own )?(?:text|essay|writing|work|words|output|piece))\b"
AUXILIARY = (
    r"(?:(?:did|do|have|had|was|could|would|might|must|may)(?:n't)?|can(?:'t|not)?|not|never"
    r"|just|also|indeed|in|fact"
    r"|myself|likely|almost|most|very|well|quite|been|\w+ly)"
)
# between "I" and its verb stand auxiliaries and adverbs, no other subject
# reads "i did not write this", "generated by me", "this is mine"; not "i think claude wrote this"
CLAIM = re.compile(
    rf"\bi (?:{AUXILIARY} ){{0,3}}?{MADE} {THIS}|\b(?:{MADE}|not) by me\b"
    rf"|(?:\bis|\bwas|'s|n't|\bnot)(?: (?!(?:from|to|like|unlike|than)\b)\w+){{0,2}}? {MINE}"
    r"|(?:\bis|\bwas|'s|n't|\bnot) (?:something|an? (?!lie|mistake|myth)\w+|the \w+|one)"
    rf" (?:that |which )?i (?:have )?{MADE}\b"
    r"|\bi(?:'m| am| was)(?: \w+){0,2}? the author\b",
)
# a sentence or clause of its own
# reads "i did.", "no, it wasn't me."; not "i did read it."
SHORT_CLAIM = re.compile(
    r"(?:^|(?<=[.!;,:\n] )|(?<=\n)|(?<=this\? )|(?<=text\? )|(?<= it\? ))(?:(?:yes|no|but|and"
    r"|so) )?"
    r"(?:i did(?:n't| not)?|it (?:is|was)(?:n't| not)? me)"
    r"(?=[.!;,]|\s?$|\n| -)",
)
# reads "another model wrote this", "written by someone else"; not "written by me"
OTHER = re.compile(
    rf"\b(?:(?:another|a different|some other) (?:model|ai|author|person|system)|someone "
    rf"else|somebody else|an? human)"
    rf" (?:has )?{MADE} {THIS}"
    rf"|\b{MADE} by (?:another|a different|some other|someone else|somebody else|a human|a "
    rf"person)\b",
)
# reads "never", "didn't"; not "nothing"
NEGATED = re.compile(
    r"\b(?:not|never)\b|n't\b",
)
# "it is incorrect to say that", "I reject the idea that" before a claim, "is incorrect" after it:
# they deny it
UNTRUE = (
    r"(?:incorrect|inaccurate|untrue|false|wrong|mistaken|erroneous|dishonest|misleading|a "
    r"(?:lie|mistake|falsehood))"
)
CLAIM_NOUN = r"(?:idea|notion|claim|statement|suggestion|assertion|assumption|allegation|premise)"
THAT = r"(?: that)?(?: (?:this|the|it)(?: \w+)?)?[ \"']*$"  # "... that this text" is mine
# a claim behind it is denied
# reads "it is incorrect to say that", "i reject the idea that"; not "it is right to say that"
DENIED_CLAIM = re.compile(
    rf"\b{UNTRUE}(?: (?:of|for) me)?"
    rf"(?: to (?:say|claim|state|suggest|assert|think|conclude|assume|believe))?{THAT}"
    rf"|\b(?:reject|dispute|refute|deny|denied|contest|disavow)(?: \w+)?(?: {CLAIM_NOUN})?{THAT}",
)
# a claim before it is denied
# reads "is incorrect"; not "is correct"
CLAIM_DENIED = re.compile(
    rf"[\"']{{0,2}},? (?:is|was|would be)(?: (?:\w+ly|just|also))? {UNTRUE}\b",
)
# what is no plain assent is none
# reads "it is absurd to say that"; not "it is true that"
JUDGED = re.compile(
    r"\bit(?:'s| is| was| would be| seems| appears)(?: \w+ly)?"
    r" (?!(?:true|clear|likely|correct|certain|obvious|evident|right|accurate|fair|safe|plain"
    r"|me|i|my|the|this|that)\b)"
    rf"\w+(?: to \w+)? that\b|\b{UNTRUE}\b|\b{CLAIM_NOUN}[ ,:]{{0,2}}(?:that\b|[\"'])",
)
# reads "whether", "i do not know", "it looks like"; not "no doubt it is"
DOUBTED = re.compile(
    r"\b(?:whether|if|may|might|could|would|should|can|cannot|maybe|perhaps|possibly|unsure"
    r"|uncertain|unable|impossible)\b"
    r"|\bcan't\b|\bno (?!doubt)\w|(?:\bnot|n't) (?:\w+ )?(?:know|remember|recall|sure|certain"
    r"|clear|say|tell)\b|\?"
    r"|(?<!no )(?<!without )(?<!a )\bdoubt(?:s|ful)?\b|\b(?:unlikely|improbable|implausible"
    r"|deny|false|s[ck]eptical)\b"
    r"|\b(?:nothing (?:suggest|indicat|show)|little (?:chance|evidence|reason)|less likely|far "
    r"from|hard to believe)"
    r"|\b(?:as (?:if|though)|(?:looks?|sounds?|reads?|feels?|seems?) like)\b",
)
# reads "i cannot tell"; not "i cannot tell, but"
CANNOT_TELL = re.compile(
    r"\b(?:can't|cannot|unable|(?:do not|don't) know|not sure|unsure)\b(?!.*\b(?:but|so)\b)",
)
_PRAISED = "".join(rf"(?<!\b{how}[ -])" for how in ("well", "better", "badly", "poorly", "clearly"))
# reads "who wrote it", "is it mine", "was it written by me"; not "is it good"
ASKS_AUTHOR = re.compile(
    rf"{_PRAISED}\b{MADE}\b|\bauthor\b|\bmine\b|\bmy (?:own|text|work|writing)\b",
)
