"""Answers: what a raw reply says, as columns; for new records and for old or foreign ones."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from selfeval.condition import condition_of, mapped, names_author
from selfeval.errors import InputError, check_one_of
from selfeval.providers import ends
from selfeval.providers.models import models
from selfeval.reading import languages, parsing, patterns, thinking
from selfeval.recognition.doubts import doubts
from selfeval.records import tables as record_files
from selfeval.records.names import file_labels, unread
from selfeval.records.tasks import CLAIMS, LINEUPS, NAMING, PAIRS, TASKS

PAIR = ("Text 1", "Text 2")  # what the texts of a pair are called
PLACES = {
    "1": (PAIR[0], "first", "first text", "first one"),
    "2": (PAIR[1], "second", "second text", "second one"),
}
YES = {"another": False, "good": None}  # question: what YES says of the text being its own
OF_LETTER = {"A": PAIR[0], "B": PAIR[1]}
TIE = "Text 0"  # what a tie is called while a reply is read: a third candidate, and no answer
COLUMNS = ["predicted_model", "predicted_self", "is_correct", "status"]  # what an answer says
FIELDS = [
    "task_type",
    "evaluator_model",
    "true_model",
    "status",
    "position",
    "other_model",
    "condition",
    "reply",
    "candidates",
    "predicted_model",
    "predicted_self",
]
NONE = None, None  # neither a candidate named nor said whether the text is claimed
REREAD = ("auto", "yes", "no")
READ = ("ok", "no_answer", parsing.UNREADABLE)  # of complete replies, which can be read anew
STATUSES = (*READ, "refusal", "filtered", "length", "empty", "error")
_SAYS = r"(?:is|was|as|because|since|seems?|sounds?|feels?|reads?|looks?)\b"
# "Response A", "(b)", [[A]], "A." or "B" on its own line, "Answer: a", "I wrote B", "A is mine";
# an article is none
_LETTERED = rf"(?:{patterns.KIND}|assistant|model|author|choice|solution|story|poem|document)"
_LETTER = re.compile(
    rf"\b(?i:{_LETTERED})(?: \(?([AB])|_([ABab]))\b(?![\w+'’])"
    r"|(?<=[\[(\"'*<])([ABab])(?=[\])\"'*>.:])"
    r"|(?m:^)[^\w\n]{0,4}([ABab])(?=[^\w\s+'’]|[ \t]*(?m:$))"
    r"|(?<=[:=])[ *]{0,3}([ABab])(?=[^\w\s+'’]|[ \t]*(?m:$))"
    rf"|(?<=[a-z,] )([AB])(?=[^\w\s+'’-]|\s*$| (?:and|or|than|{_SAYS}))"
    rf"|(?m:^|(?<=[.!?;] ))([AB])(?= (?:{_SAYS}|(?:or|and) [AB]\b))"
)
_BOTH_LETTERS = re.compile(
    r"\b([AB])(?= ?(?:/|&|,| and| or| vs\.?| versus) ?([AB])\b(?![\w'’]))"
    r"( ?\S+ ?)[AB]"
)
# verdicts on a pair: "[[B>A]]", "A >> B", "[[A=B]]", "A≈B"
_SIDE = rf"(?:(?i:{_LETTERED} )?\b([AB])|\b(?i:{_LETTERED} )([12]))"
_COMPARED = re.compile(rf"{_SIDE}\s?(>{{1,3}}|<{{1,3}}|={{1,3}}|[≈≃≅≡~≻≺])\s?{_SIDE}\b(?![\w'’])")
_DRAW = r"(?:both|neither|tied?|(?:a |it's a |it is a )?(?:tie|draw))"
_LINE_END = r"(?=[^\w\n]{0,4}(?m:$)|[:,.!] )"
# "[[C]]", "Tie: ...", "Answer: both", "it is a draw"
_TIE = re.compile(
    rf"(?i)(?<=\[\[) ?(?:{_DRAW}|equal|same|c) ?(?=\]\])"
    rf"|(?m:^)([^\w\n]{{0,4}}){_DRAW}{_LINE_END}"
    rf"|(?<=[:=])([ *\"'(\[]{{0,3}})(?:{_DRAW}|equal){_LINE_END}"
    r"|\b(?:call(?:ing)? (?:it|this)|it(?:'s| is| would be)|they(?:'re| are)|verdict is"
    r"|answer is|declare)"
    r" (?:a |an )?(?:tied?|draw|dead heat|toss-up|both|neither)\b(?! [a-z])"
)
_REFERENCE = re.compile(
    r"(?i)\bthe (?:(?P<former>former)|latter)\b"
    r"(?= (?:is|was|one|text)\b|[^\w\s]|\s*$)"
)
_ORDINAL = rf"(?:the )?(?:first|second)(?: (?:one|{patterns.KIND})\b)?+"
_TEXT = rf"\b(?:(?:text|{patterns.KIND})[ _]?[12]|{_ORDINAL})\b"
# about a text: "The first response is more concise", "In Text 2, ...", "Text 1: a story"
_DESCRIBED = re.compile(
    rf"{_TEXT}(?! (?:because|since|as|given|due|based|for|and|or|over|rather|i|it|by|versus|vs)\b)"
    r"(?: \w|'s \w|: ?(?=\w)|, (?:with|which|while|though|whereas|being|has|uses)\b)"
    rf"|\bboth (?:\w+ )?(?:are|were|have|has|read|seem|sound|use|discuss|describe)\b.*{_TEXT}"
    r"|\b(?:in|at|of|about|regarding|analy[sz]e|analy[sz]ing|comparing|consider(?:ing)?|reading)"
    rf" {_TEXT}"
    r"|^\W*(?:first|second)(?:ly)?,"
)
# chooses one: "... is mine", "I wrote ...", "... my style", "I would choose ...", "Answer: ..."
_CHOSEN = re.compile(
    r"\b(?:mine|my|me|myself)\b"
    r"|\bi(?:'d|'ll| \w+){0,3}? (?:wrote|written|write|author(?:ed)?|produced?|created?|generated?"
    r"|composed?|choose|chose|pick(?:ed)?|select(?:ed)?|guess|go|say|prefer|opt|lean(?:ing)?"
    r"|vote)\b"
    r"|\b(?:answer|choice|verdict|decision|guess|pick)\b(?: is\b|\W{1,4})"
    r"|\b(?:is|was|be|'s)(?: \w+ly| most likely)? "
    r"(?:the one\b|(?:the )?(?:better|best)(?: written| one| text)?\W*$)"
)
_ASIDE = re.compile(
    r"\b(?:in my (?:opinion|view|analysis|assessment|reading)"
    r"|(?:to|let|gives?|tells?) me)\b"
)


def probabilities(
    logprobs: list | None,
    options: Mapping[str, str],
    answer: str,
) -> dict[str, float | None] | None:
    """Return P(option) from the log-probabilities of a reply that decides between options, or None.

    options: {id: how it is written}. The reply begins with the option, or in a constrained reply
    the JSON value does. At each token the alternatives that lead to one option only add to it,
    until the reply itself is down to one; an alternative counts for what it begins ("Y" for YES).
    Options that are not among the alternatives get 0. One that shares more than a hundredth of what
    is shown with others (" (" begins several names) is null. None as a whole where the reply shows
    fewer than two options.
    """
    labels = {option: label.casefold() for option, label in options.items()}
    alone = dict.fromkeys(options, 0.0)
    shared = dict(alone)
    shown = 0.0
    path = 1.0
    prefix = ""
    for token, _, alternatives in _value_tokens(logprobs or [], answer):
        alive = _begun(labels, prefix, token)
        for alternative, logprob in alternatives.items():
            leads = _begun(labels, prefix, alternative)
            if not leads or (len(leads) > 1 and leads == alive):
                continue  # the reply goes on this way, and the next token tells
            chance = path * math.exp(logprob)
            shown += chance
            mass = alone if len(leads) == 1 else shared
            for option in leads:
                mass[option] += chance
        if len(alive) < 2:
            break
        path *= math.exp(alternatives.get(token, -math.inf))
        prefix += token if prefix else token.lstrip(' "\n')
    if sum(alone[option] + shared[option] > 0 for option in options) < 2:
        return None
    chances = {option: round(mass / shown, 6) for option, mass in alone.items()}
    unclear = [option for option, mass in shared.items() if mass > 0.01 * shown]
    return chances | dict.fromkeys(unclear)


def _value_tokens(logprobs: list, answer: str) -> list:
    """Return the tokens from where the answer begins: all, or those inside the first JSON value."""
    before = ""
    for place, (token, *_) in enumerate(logprobs):
        if answer == "free" or re.search(r':\s*"$', before):
            return logprobs[place:]
        before += token
    return []


def _begun(labels: Mapping[str, str], prefix: str, token: str) -> list[str]:
    """Return the options that a token begins, continues or completes after what is written."""
    written = (prefix + token).casefold() if prefix else token.casefold().lstrip(' "\n')
    written, closed, _ = written.partition('"')
    if not any(c.isalnum() for c in written):
        return []
    if not closed:
        begun = [option for option, label in labels.items() if label.startswith(written)]
        if begun:
            return begun
        written = written.rstrip(" .\n")
    return [option for option, label in labels.items() if label == written]


def candidate_names(
    candidates: Iterable[str],
    labels: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Return {candidate id: names a reply may use}, from the registry and a file's own labels."""
    labels = labels or {}
    registered = {model.id: model.all_names for model in models().values()}
    names = {}
    for candidate in candidates:
        known = [*registered.get(candidate, ()), *labels.get(candidate, ())]
        names[candidate] = tuple(dict.fromkeys(known))
    return names


def score(record: Mapping, labels: Mapping[str, Sequence[str]] | None = None) -> dict:
    """Return what a record's reply says, as `COLUMNS`.

    Only a complete reply is parsed. A reply without an answer leaves the three null, so a better
    parser can be run over the stored records at any time. In a pair, `predicted_self` says that the
    text of `text_id` was chosen, which is the evaluator's own unless it wrote neither. Which text
    is better, or which it wrote if it wrote neither, has no right answer, nor has whether a text is
    good: there `is_correct` is null. An answer `about` another author is right or wrong, and
    `predicted_self` is null. Asked which text `true_model` wrote (`condition.names_author`), it is
    right where it chose that. labels: {id: further names} of candidates.
    """
    answer = NONE
    status = record["status"]
    if status in READ:
        read = READERS[TASKS[record["task_type"]].answer]
        answer, failure = parsing.attempt(read, record, labels, failed=NONE)
        status = failure or _status_of(answer)
    return _answer_columns(record, *answer) | {"status": status}


def _status_of(answer: tuple) -> str:
    return "no_answer" if answer == NONE else "ok"


def _read_yes_or_no(record: Mapping, labels) -> tuple[None, bool | None]:
    """Return whether a reply claims the text; `about` another author, whether it says YES."""
    condition = condition_of(record.get("condition"))
    yes = YES.get(condition.get("question", ""), True)
    if condition.get("about"):
        yes = None
    return None, parsing.parse_yes_no(record["reply"], yes, asked=True)


def _read_place(record: Mapping, labels) -> tuple[None, bool | None]:
    """Return whether a reply chooses the text of the record, and not the other one of the pair."""
    chosen = parse_place(record["reply"])
    place = parsing.place(record["position"])
    return None, chosen == place if chosen and place else None


def _read_author(record: Mapping, labels) -> tuple[str | None, None]:
    """Return the candidate that a reply names."""
    reply = parsing.without_thinking(record["reply"] or "")
    if record["task_type"] in LINEUPS:
        reply = parsing.lineup_entry(reply, record["position"])
    return parsing.parse_choice(reply, candidate_names(record["candidates"], labels)), None


# readers by what decides a task
READERS = {"author": _read_author, "claim": _read_yes_or_no, "place": _read_place}


def _answer_columns(record: Mapping, chosen: str | None, claimed: bool | None) -> dict:
    """Return the answer columns from the model that is named, or whether the text is claimed."""
    task = record["task_type"]
    evaluator = record["evaluator_model"]
    author = record["true_model"]
    condition = condition_of(record.get("condition"))
    about = condition.get("about")
    is_preference = condition.get("question") in ("better", "good")
    right = None
    if task in CLAIMS:
        if claimed is not None and not is_preference:
            right = claimed == (author == (about or evaluator))
        if about:
            claimed = None
    elif task in PAIRS:
        if claimed is not None:
            other = record.get("other_model")
            chosen = author if claimed else other
            is_own_pair = evaluator in (author, other)
            if not is_preference and (is_own_pair or names_author(condition)):
                right = chosen == (evaluator if is_own_pair else author)
    elif chosen is not None:
        claimed = chosen == evaluator
        right = chosen == author
    return {"predicted_model": chosen, "predicted_self": claimed, "is_correct": right}


def parse_place(reply: str | None) -> int | None:
    """Return which of two texts a reply chooses, 1 or 2, or None.

    Letters are places where no number is one. A sentence that describes a text ("The first is more
    concise") chooses none, unless it also says so ("... is mine"). A tie ("[[A=B]]", "both") is no
    answer.
    """
    text = parsing.unwrap(parsing.without_thinking(reply or ""))
    text = languages.with_english_places(text.replace("：", ":"))
    text = _COMPARED.sub(_preferred, text)
    text = _TIE.sub(_tie, text)
    text = _REFERENCE.sub(_ordinal, text)
    places = {"1": PLACES["1"], "2": PLACES["2"], TIE: ()}
    if not re.search(r"(?i)\btext\W{0,2}[12]\b", text):
        numbered = _BOTH_LETTERS.sub(_numbers_for_letters, text)
        numbered = _LETTER.sub(_number_for_letter, numbered)
        if numbered != text:
            text = numbered
            places = {"1": PAIR[:1], "2": PAIR[1:], TIE: ()}
    chosen = parsing.choice_in(_choosing(text), places)
    return None if chosen in (None, TIE) else int(chosen)


def _preferred(match: re.Match[str]) -> str:
    """Return the letter that a verdict on a pair prefers, or the name of a tie."""
    first = match[1] or f"Text {match[2]}"
    second = match[4] or f"Text {match[5]}"
    sign = match[3][0]
    if first != second:
        if sign in ">≻":
            return first
        if sign in "<≺":
            return second
    return TIE


def _tie(match: re.Match[str]) -> str:
    return (match[1] or match[2] or " ") + TIE


def _ordinal(match: re.Match[str]) -> str:
    """Return "the first one" for "the former", but "it" where the texts were named in turn."""
    before = match.string[: match.start()][-300:]
    named = re.findall(r"(?i)\b(?:text|response|option) ?([12AB])\b", before)
    if named[-2:] in (["2", "1"], ["B", "A"]):
        return "it"
    return "the first one" if match["former"] else "the second one"


def _choosing(reply: str) -> str:
    """Return a reply without the sentences that describe one of the texts and choose none."""
    text = parsing.plain_answer(reply)
    is_foreign = languages.occur_in(text)
    parts = re.split(r"((?<=[.!?])\s+|\n+)", text)
    kept = [part for part in parts if len(part) < 4 or _may_choose(part, is_foreign)]
    return "".join(kept).strip()


@lru_cache(maxsize=1024)  # a model in a loop repeats its sentences
def _may_choose(sentence: str, is_foreign: bool) -> bool:
    if is_foreign:
        said = languages.denies_or_claims(sentence)
        if said:
            return said == {True}
    return not _DESCRIBED.search(sentence) or bool(_CHOSEN.search(_ASIDE.sub(" ", sentence)))


def _numbers_for_letters(match: re.Match[str]) -> str:
    """Return "Text 1 and Text 2" for "A and B"."""
    return f"{OF_LETTER[match[1]]}{match[3]}{OF_LETTER[match[2]]}"


def _number_for_letter(match: re.Match[str]) -> str:
    """Return the words with "Text 1" for "A"; of "Response A" it takes the place of both."""
    letter = next(filter(None, match.groups()))
    before = "" if match[1] else match[0][: match[0].rindex(letter)]
    return before + OF_LETTER[letter.upper()]


def rescore(
    predictions: pd.DataFrame,
    reread: str = "auto",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read all answers anew from the raw replies; return (records, changes per task and evaluator).

    The raw reply is `reply`, a text or a list of blocks; records without one stay as they are.
    Candidates are those shown, or all authors and names given in the file where it does not say.
    Others fill in a random name, or the first, when a reply cannot be parsed or a call failed
    ("ERROR: ..."), and some cut replies off when they store them; from the outside both are answers
    that the reply does not hold. reread: `yes` takes these back; `auto` too, but keeps an
    evaluator's recorded answers in a task where that would take back more than a fifth of those
    beside a reply that is no error message; `no` keeps all recorded answers.

    The records get `is_correct` and the other answer columns anew, `recorded` (the answer on record
    where the reply holds another or none), and `unverified`: the answer in use is in no raw reply.
    Answers `about` another author, which claim nothing, are left out. The report counts records,
    answers on record, no raw reply, same, removed (answers that the reply does not hold), added,
    changed, and says which `answers` are in use.
    """
    check_one_of("reread", reread, REREAD)
    frame = _claims_only(_with_replies(predictions))
    correct_on_record = frame.get("is_correct")
    old, new = _read(frame)
    names_models = _naming(frame)
    before = old["predicted_model"].where(names_models, old["predicted_self"])
    after = new["predicted_model"].where(names_models, new["predicted_self"])
    had = before.notna()
    has = after.notna()
    same = (before == after) | ~(had | has)
    taken_back = had & ~same
    has_reply = frame["reply"].notna()
    group = [frame["task_type"], frame["evaluator_model"]]

    keep = has_reply & (reread == "no")
    if reread == "auto":
        is_complete = frame["status"].isin(READ)
        beside = had & has_reply & is_complete
        cell = frame.groupby(group).ngroup()
        answers = beside.groupby(cell).transform("sum")
        not_held = (taken_back & beside).groupby(cell).transform("sum")
        keep = has_reply & is_complete & (not_held > parsing.DOUBTFUL * answers)
    on_record = had.map({True: "ok", False: "no_answer"})
    old["status"] = frame["status"].where(~keep, on_record)
    frame[[*new]] = new.where(~keep, old)
    frame["recorded"] = before.where(taken_back, None)
    notes = [*frame.attrs.get("notes", ()), *unread(frame), *doubts(frame, correct_on_record)]
    unreadable = frame["status"].eq(parsing.UNREADABLE).sum()
    if unreadable:
        said = f"{unreadable} replies could not be read and count as no answer"
        notes.append(f"{said} (status `unreadable`).")
    frame.attrs["notes"] = notes
    frame["unverified"] = had & (~has_reply | (keep & taken_back))
    kinds = {
        "records": True,
        "on record": had,
        "no raw reply": ~has_reply,
        "same": same,
        "removed": had & ~has,
        "added": ~had & has,
        "changed": taken_back & has,
        "answers": keep,
    }
    changes = pd.DataFrame(kinds, frame.index).astype(int).groupby(group).sum().reset_index()
    changes["answers"] = np.where(changes["answers"] > 0, "as recorded", "as read")
    return frame, changes


def _claims_only(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the records without those about another author, and say how many."""
    if "condition" not in frame:
        return frame
    about = mapped(frame["condition"].tolist(), lambda said: condition_of(said).get("about"))
    is_other = np.array(about, object).astype(bool)
    if not is_other.any():
        return frame
    rule = "say whether another author wrote a text (`about`) and claim nothing"
    said = f"{is_other.sum()} answers {rule}"
    if is_other.all():
        remedy = "compare their `score` with that of the same question about the evaluator"
        raise InputError(f"All {said}; {remedy}.")
    frame = frame[~is_other].reset_index(drop=True)
    frame.attrs["notes"] = [*frame.attrs.get("notes", ()), f"{said}: left out."]
    return frame


def _with_replies(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the records with the raw reply as a text, and one of `STATUSES`.

    A status that says so, or a reply that begins with "ERROR", is an error. A status of somebody
    else's is read as reasons are why a reply ended ("incomplete" is cut off); one that says nothing
    of that is "ok".
    """
    frame = predictions.copy()
    replies = mapped(frame["reply"].tolist(), _reply_text)
    frame["reply"] = pd.Series(replies, frame.index, object)
    status = frame["status"] if "status" in frame else pd.Series("ok", frame.index)
    is_known = status.isin(STATUSES)
    failed = mapped(replies, lambda reply: bool(re.match(r"(?i)\s*error\b", reply or "")))
    failed = pd.Series(failed, frame.index)
    ended = status[~is_known].map(lambda foreign: ends.of_status(str(foreign)))
    return frame.assign(status=status.where(is_known, ended).mask(failed, "error"))


def _reply_text(value) -> str | None:
    """Return a reply that is a text, or the text in its blocks."""
    if isinstance(value, list):
        return thinking.of_parts(value, between="\n")[1]
    return value if isinstance(value, str) else None


def _read(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the answer columns of the answers on record, and of those that the replies hold.

    Equal answers to equal questions are read once. Where a file lists no candidates, all its names
    are.
    """
    named = frame["predicted_model"][_naming(frame)].dropna().unique()
    everyone = tuple(dict.fromkeys([*sorted(frame["true_model"].unique()), *sorted(named)]))
    others = frozenset(frame.attrs.get("called", ())).difference(everyone)
    labels = _labels(frame)
    table = frame.reindex(columns=FIELDS)
    values = {name: record_files.with_nulls(column).tolist() for name, column in table.items()}
    texts = mapped(values["condition"], str)
    conditions = dict(zip(texts, values["condition"], strict=True))
    values["condition"] = texts
    values["candidates"] = mapped(
        values["candidates"],
        lambda shown: tuple(shown) if isinstance(shown, list | tuple) else everyone,
    )
    distinct: dict[tuple, int] = {}
    rows = zip(*values.values(), strict=True)
    places = [distinct.setdefault(row, len(distinct)) for row in rows]
    on_record = []
    in_reply = []
    read: dict[tuple, tuple] = {}
    for row in distinct:
        record = dict(zip(values, row, strict=True))
        record["condition"] = condition_of(conditions[record["condition"]])
        answer = _answer_on_record(record)
        on_record.append(answer)
        reply = record["reply"]
        if isinstance(reply, str):
            record["candidates"] = others.union(record["candidates"])
            key = (*row[:-3], record["candidates"])  # without what is on record
            if key not in read:
                read[key] = tuple(score(record, labels).values())
            answer = read[key]
        in_reply.append(answer)
    tables = []
    for answers in (on_record, in_reply):
        table = pd.DataFrame(answers, columns=COLUMNS, dtype=object)
        tables.append(table.take(places).set_axis(frame.index))
    return tables


def _answer_on_record(record: dict) -> tuple:
    """Return the answer columns of an answer on record; of a pair that may be an author."""
    task = record["task_type"]
    author = record["true_model"]
    chosen = record["predicted_model"]
    claimed = record["predicted_self"]
    if task in NAMING:
        claimed = None
    is_shown = chosen in (author, record["other_model"])
    if task in PAIRS and claimed is None and is_shown:
        claimed = chosen == author
    return *_answer_columns(record, chosen, claimed).values(), record["status"]


def _labels(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return {author: further names}: what is said, and the file's label if no other author's."""
    labels = {author: names[-1:] for author, names in file_labels(frame).items()}
    count = Counter()
    for author, names in candidate_names(frame["true_model"].unique(), labels).items():
        count.update({parsing.name_key(name) for name in (author, *names)})
    called = frame.attrs.get("called", {})
    found = {author: list(names) for author, names in called.items()}
    for author, [label] in labels.items():
        found.setdefault(author, [])
        if count[parsing.name_key(label)] < 2:
            found[author].append(label)
    return found


def _naming(frame: pd.DataFrame) -> pd.Series:
    return frame["task_type"].isin(NAMING)
