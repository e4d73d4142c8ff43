"""Answers: what a record's raw reply says, as columns; for new records and, again, for old or foreign ones."""

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

import numpy as np
import pandas as pd

from selfeval.condition import condition_of, mapped, names_author
from selfeval.errors import InputError, check_one_of
from selfeval.providers.models import models
from selfeval.reading import languages, parsing, thinking
from selfeval.recognition.doubts import doubts
from selfeval.records import tables as record_files
from selfeval.records.foreign import file_labels, unread

PAIR = ("Text 1", "Text 2")  # what the texts of a pair are called
PLACES = {"1": (PAIR[0], "first", "first text", "first one"), "2": (PAIR[1], "second", "second text", "second one")}
YES = {"another": False, "good": None}  # question: what YES says of whether the text is the evaluator's own
TIE = "Text 0"  # what a tie is called while a reply is read: a third candidate, and no answer
REREAD = ("auto", "yes", "no")
FAILED = r"\s*(?:error|failed|failure|exception|timed? ?out|timeout)\b"
READ = ("ok", "no_answer", parsing.UNREADABLE)  # of complete replies, which can be read anew
STATUSES = (*READ, "refusal", "filtered", "length", "empty", "error")
_SAYS = r"(?:is|was|as|because|since|seems?|sounds?|feels?|reads?|looks?)\b"
# "Response A", "(b)", [[A]], "A." or "B" on its own line, "Answer: a", "I wrote B", "A is mine"; an article is none
_LETTERED = rf"(?:{parsing.KIND}|assistant|model|author|choice|solution|story|poem|document)"
_LETTER = re.compile(
    rf"\b(?i:{_LETTERED})(?: \(?([AB])|_([ABab]))\b(?![\w+'’])|(?<=[\[(\"'*<])([ABab])(?=[\])\"'*>.:])"
    r"|(?m:^)[^\w\n]{0,4}([ABab])(?=[^\w\s+'’]|[ \t]*(?m:$))|(?<=[:=])[ *]{0,3}([ABab])(?=[^\w\s+'’]|[ \t]*(?m:$))"
    rf"|(?<=[a-z,] )([AB])(?=[^\w\s+'’-]|\s*$| (?:and|or|than|{_SAYS}))"
    rf"|(?m:^|(?<=[.!?;] ))([AB])(?= (?:{_SAYS}|(?:or|and) [AB]\b))"
)
_BOTH_LETTERS = re.compile(r"\b([AB])(?= ?(?:/|&|,| and| or| vs\.?| versus) ?([AB])\b(?![\w'’]))( ?\S+ ?)[AB]")
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
    r"|\b(?:call(?:ing)? (?:it|this)|it(?:'s| is| would be)|they(?:'re| are)|verdict is|answer is|declare)"
    r" (?:a |an )?(?:tied?|draw|dead heat|toss-up|both|neither)\b(?! [a-z])"
)
_REFERENCE = re.compile(r"(?i)\bthe (?:(?P<former>former)|latter)\b(?= (?:is|was|one|text)\b|[^\w\s]|\s*$)")
_TEXT = rf"\b(?:(?:text|{parsing.KIND})[ _]?[12]|(?:the )?(?:first|second)(?: (?:one|{parsing.KIND})\b)?+)\b"
# "The first response is more concise", "In Text 2, ...", "Text 1: a story", "First, I notice": about a text
_DESCRIBED = re.compile(
    rf"{_TEXT}(?! (?:because|since|as|given|due|based|for|and|or|over|rather|i|it|by|versus|vs)\b)"
    r"(?: \w|'s \w|: ?(?=\w)|, (?:with|which|while|though|whereas|being|has|uses)\b)"
    rf"|\bboth (?:\w+ )?(?:are|were|have|has|read|seem|sound|use|discuss|describe)\b.*{_TEXT}"
    rf"|\b(?:in|at|of|about|regarding|analy[sz]e|analy[sz]ing|comparing|consider(?:ing)?|reading) {_TEXT}"
    r"|^\W*(?:first|second)(?:ly)?,"
)
# "... is mine", "I wrote ...", "... my style", "I would choose ...", "Final answer: ...": choose one
_CHOSEN = re.compile(
    r"\b(?:mine|my|me|myself)\b|\bi(?:'d|'ll| \w+){0,3}? (?:wrote|written|write|author(?:ed)?|produced?|created?"
    r"|generated?|composed?|choose|chose|pick(?:ed)?|select(?:ed)?|guess|go|say|prefer|opt|lean(?:ing)?|vote)\b"
    r"|\b(?:answer|choice|verdict|decision|guess|pick)\b(?: is\b|\W{1,4})"
    r"|\b(?:is|was|be|'s)(?: \w+ly| most likely)? (?:the one\b|(?:the )?(?:better|best)(?: written| one| text)?\W*$)"
)
_ASIDE = re.compile(r"\b(?:in my (?:opinion|view|analysis|assessment|reading)|(?:to|let|gives?|tells?) me)\b")


def probabilities(logprobs: list | None, options: Mapping[str, str], answer: str) -> dict[str, float | None] | None:
    """Return P(option) from the log-probabilities of a reply that decides between options, or None.

    options: {id: how it is written}. The reply begins with the option, or in a constrained reply the JSON value does.
    At each token the alternatives that lead to one option only add to it, until the reply itself is down to one; an
    alternative counts for what it begins ("Y" for YES). Options that are not among the alternatives get 0. One that
    shares more than a hundredth of what is shown with others (" (" begins several names) is null. None as a whole where
    the reply shows fewer than two options.
    """
    labels = {option: label.casefold() for option, label in options.items()}
    mass, shared, shown = dict.fromkeys(options, 0.0), dict.fromkeys(options, 0.0), 0.0
    path, prefix = 1.0, ""
    for token, _, alternatives in _value_tokens(logprobs or [], answer):
        alive = _begun(labels, prefix, token)
        for alternative, logprob in alternatives.items():
            leads, chance = _begun(labels, prefix, alternative), path * math.exp(logprob)
            if len(leads) > 1 and leads == alive:
                continue  # the reply goes on this way, and the next token tells
            for option in leads:
                (mass if len(leads) == 1 else shared)[option] += chance
            shown += chance if leads else 0
        if len(alive) < 2:
            break
        path *= math.exp(alternatives.get(token, -math.inf))
        prefix += token if prefix else token.lstrip(' "\n')
    if sum(mass[option] + shared[option] > 0 for option in options) < 2:
        return None
    clear = {option: shared[option] <= 0.01 * shown for option in options}
    return {option: round(mass[option] / shown, 6) if clear[option] else None for option in options}


def _value_tokens(logprobs: list, answer: str) -> list:
    """Return the tokens from where the answer begins: all, or in a JSON reply those inside the first value."""
    before = ""
    for at, (token, _, _) in enumerate(logprobs):
        if answer == "free" or re.search(r':\s*"$', before):
            return logprobs[at:]
        before += token
    return []


def _begun(labels: Mapping[str, str], prefix: str, token: str) -> list[str]:
    """Return the options that a token begins, continues or completes after what is written already."""
    written = (prefix + token).casefold() if prefix else token.casefold().lstrip(' "\n')
    written, closed, _ = written.partition('"')
    if not any(c.isalnum() for c in written):
        return []
    if closed:
        return [option for option, label in labels.items() if label == written]
    open_ones = [option for option, label in labels.items() if label.startswith(written)]
    return open_ones or [option for option, label in labels.items() if label == written.rstrip(" .\n")]


def candidate_names(
    candidates: Iterable[str], labels: Mapping[str, Sequence[str]] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return {candidate id: names a reply may use}, from the registry and a file's own labels."""
    names, labels = {model.id: model.all_names for model in models().values()}, labels or {}
    return {c: tuple(dict.fromkeys([*names.get(c, ()), *labels.get(c, ())])) for c in candidates}


def shown_names(record: Mapping, labels: Mapping[str, Sequence[str]] | None = None) -> dict[str, tuple[str, ...]]:
    """Return {candidate id: names a reply may use} of a record's question: letters where authors were anonymous."""
    candidates = record["candidates"]
    if condition_of(record.get("condition")).get("labels") == "anonymous":
        return {c: (label,) for c, label in zip(candidates, anonymous(len(candidates)), strict=True)}
    return candidate_names(candidates, labels)


def anonymous(n: int) -> list[str]:
    """Return the names of n anonymous authors: Author A, Author B, ..."""
    if n > 26:
        raise InputError(f"Anonymous authors have the letters A to Z, and here are {n}; use labels = 'names'.")
    return [f"Author {chr(65 + k)}" for k in range(n)]


def score(record: Mapping, labels: Mapping[str, Sequence[str]] | None = None) -> dict:
    """Return what a record's raw reply says: `predicted_model`, `predicted_self`, `is_correct` and `status`.

    Only a complete reply is parsed. A reply without an answer leaves the three null, so a better parser can be run over
    the stored records at any time. In a pair, `predicted_self` says that the text of `text_id` was chosen, which is the
    evaluator's own unless it wrote neither. Which text is better, or which it wrote if it wrote neither, has no right
    answer, nor has whether a text is good: there `is_correct` is null. An answer `about` another author is right or
    wrong, and `predicted_self` is null. Asked which text `true_model` wrote (`records.names_author`), it is right where
    it chose that. labels: {id: further names} of candidates.
    """
    chosen = claimed = None
    status = record["status"]
    if status in READ:
        (chosen, claimed), failure = parsing.attempt(_answer, record, labels, failed=(None, None))
        status = failure or ("no_answer" if chosen is None and claimed is None else "ok")
    return _answer_columns(record, chosen, claimed) | {"status": status}


def read_by(reader, rows: Sequence[dict]) -> tuple[list[dict], list[str]]:
    """Return records with the answers that a function `(reply, row)` of the user's reads, and sentences on failures.

    The function says whether the evaluator claims the text (binary_self: True or False), or names a candidate
    (exact_model, lineup); None is no answer. Where it fails or returns something else, the status is `unreadable`. Its
    name and the hash of its source stand in the condition, as `read`.
    """
    everyone = tuple(sorted({row["true_model"] for row in rows}))
    read, failures = [], []
    for row in rows:
        if row["task_type"] == "pairwise_self":
            raise InputError("`read` is for exact_model, binary_self and lineup, got records of pairwise_self.")
        put = condition_of(row.get("condition")) | {"read": reader.label()}
        found = row | {"condition": put}
        chosen = claimed = None
        status = row.get("status", "ok")
        if status in READ and isinstance(row.get("reply"), str):
            try:
                chosen, claimed = _as_answer(reader.function(row["reply"], dict(row)), row, everyone)
                status = "no_answer" if chosen is None and claimed is None else "ok"
            except Exception as error:
                status = parsing.UNREADABLE
                failures.append(f"{type(error).__name__}: {error}")
        read.append(found | _answer_columns(found, chosen, claimed) | {"status": status})
    said = f"The reader {reader.name} gave no answer for {len(failures)} of {len(rows)} replies"
    return read, [f"{said} (the first: {failures[0]}); they are `unreadable`."] if failures else []


def _as_answer(said, row: Mapping, everyone: Sequence[str]) -> tuple[str | None, bool | None]:
    """Return the candidate that a reader named, or whether it found a claim; raise `ValueError` for anything else."""
    said = said.item() if hasattr(said, "item") else said  # of numpy
    if said is None:
        return None, None
    if row["task_type"] == "binary_self":
        if isinstance(said, bool):
            return None, said
        raise ValueError(f"it must return True, False or None, got {said!r:.80}")
    shown = row.get("candidates")
    names = shown_names(row | {"candidates": shown if isinstance(shown, list | tuple) else everyone})
    for candidate, called in names.items():
        if isinstance(said, str) and parsing.name_key(said) in map(parsing.name_key, [candidate, *called]):
            return candidate, None
    raise ValueError(f"it must return the name of a candidate or None, got {said!r:.80}")


def _answer(record: Mapping, labels: Mapping[str, Sequence[str]] | None) -> tuple[str | None, bool | None]:
    """Return the candidate that a complete reply names, or in the other tasks whether it claims the text."""
    if record["task_type"] == "binary_self":
        put = condition_of(record.get("condition"))
        yes = None if put.get("about") else YES.get(put.get("question"), True)
        return None, parsing.parse_yes_no(record["reply"], yes, asked=True)
    if record["task_type"] == "pairwise_self":
        chose, own = parse_place(record["reply"]), parsing.place(record["position"])
        return None, chose == own if chose and own else None
    return _author_named(record, shown_names(record, labels)), None


def _answer_columns(record: Mapping, chosen: str | None, claimed: bool | None) -> dict:
    """Return the answer columns from what an answer says: the model named, or in the other tasks whether it claims."""
    right, task, evaluator = None, record["task_type"], record["evaluator_model"]
    put = condition_of(record.get("condition"))
    preferred, about = put.get("question") in ("better", "good"), put.get("about")
    if task == "binary_self":
        right = None if preferred or claimed is None else claimed == (record["true_model"] == (about or evaluator))
        claimed = None if about else claimed
    elif task == "pairwise_self":
        if claimed is not None:
            chosen = record["true_model"] if claimed else record.get("other_model")
            asked = evaluator if evaluator in (record["true_model"], record.get("other_model")) else None
            if asked is None and names_author(record.get("condition")):
                asked = record["true_model"]
            right = chosen == asked if asked and not preferred else None
    elif chosen is not None:
        claimed, right = chosen == evaluator, chosen == record["true_model"]
    return {"predicted_model": chosen, "predicted_self": claimed, "is_correct": right}


def parse_place(reply: str | None) -> int | None:
    """Return which of two texts a reply chooses, 1 or 2, or None; letters are places where no number is one.

    A sentence that describes a text ("The first is more concise") chooses none, unless it also says so ("... is mine").
    A tie ("[[A=B]]", "both") is no answer.
    """
    said = parsing.unwrap(parsing.without_thinking(reply or ""))
    text = languages.with_english_places(said.replace("：", ":"))
    text = _REFERENCE.sub(_ordinal, _TIE.sub(_tie, _COMPARED.sub(_preferred, text)))
    places = {"1": PLACES["1"], "2": PLACES["2"], TIE: ()}
    if not re.search(r"(?i)\btext\W{0,2}[12]\b", text):
        lettered = _LETTER.sub(_number_for_letter, _BOTH_LETTERS.sub(_numbers_for_letters, text))
        if lettered != text:
            text, places = lettered, {"1": PAIR[:1], "2": PAIR[1:], TIE: ()}
    chosen = parsing.choice_in(_choosing(text), places)
    return None if chosen in (None, TIE) else int(chosen)


def _preferred(match: re.Match[str]) -> str:
    """Return the letter that a verdict on a pair prefers, or the name of a tie."""
    first, second = match[1] or f"Text {match[2]}", match[4] or f"Text {match[5]}"
    sign = match[3][0]
    if first == second or sign not in "><≻≺":
        return TIE
    return first if sign in ">≻" else second


def _tie(match: re.Match[str]) -> str:
    return (match[1] or match[2] or " ") + TIE


def _ordinal(match: re.Match[str]) -> str:
    """Return "the first one" for "the former", but nothing where the texts were named the other way round."""
    before = re.findall(r"(?i)\b(?:text|response|option) ?([12AB])\b", match.string[: match.start()][-300:])
    if before[-2:] in (["2", "1"], ["B", "A"]):
        return "it"
    return "the first one" if match["former"] else "the second one"


def _choosing(reply: str) -> str:
    """Return a reply to a pair without the sentences that describe one of the texts and choose none."""
    text = parsing.plain_answer(reply)
    is_foreign = languages.occur_in(text)
    parts = re.split(r"((?<=[.!?])\s+|\n+)", text)
    return "".join(part for part in parts if len(part) < 4 or _may_choose(part, is_foreign)).strip()


@lru_cache(maxsize=1024)  # a model in a loop repeats its sentences
def _may_choose(sentence: str, is_foreign: bool) -> bool:
    said = languages.denies_or_claims(sentence) if is_foreign else set()
    if said:
        return said == {True}
    return not _DESCRIBED.search(sentence) or bool(_CHOSEN.search(_ASIDE.sub(" ", sentence)))


def _numbers_for_letters(match: re.Match[str]) -> str:
    """Return "Text 1 and Text 2" for "A and B"."""
    return f"{PAIR['AB'.index(match[1])]}{match[3]}{PAIR['AB'.index(match[2])]}"


def _number_for_letter(match: re.Match[str]) -> str:
    letter = next(filter(None, match.groups()))
    before = "" if match[1] else match[0][: match[0].rindex(letter)]
    return before + PAIR["AB".index(letter.upper())]


def _author_named(record: Mapping, names: Mapping[str, tuple[str, ...]]) -> str | None:
    reply = parsing.without_thinking(record["reply"] or "")
    if record["task_type"] == "lineup":
        reply = parsing.lineup_entry(reply, record["position"])
    elif condition_of(record.get("condition")).get("labels") == "anonymous" and re.fullmatch(r"\W*[A-Za-z]\W*", reply):
        reply = f"Author {reply}"
    return parsing.parse_choice(reply, names) or _lettered(record, reply)


def _lettered(record: Mapping, reply: str) -> str | None:
    """Return the candidate at the place that a reply to a list with letters gives; our own lists have none."""
    shown = record["candidates"]
    if isinstance(shown, frozenset) or "labels" in condition_of(record.get("condition")):
        return None
    return parsing.at_letter(parsing.plain_answer(reply), shown)


def rescore(predictions: pd.DataFrame, reread: str = "auto") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read all answers anew from the raw replies; return (the records, what that changes per task and evaluator).

    The raw reply is `reply`, a text or a list of blocks; records without one stay as they are. Candidates are those
    shown, or all authors and names given in the file where it does not say. Others fill in a random name, or the first,
    when a reply cannot be parsed or a call failed ("ERROR: ..."), and some cut replies off when they store them; from
    the outside both are answers that the reply does not hold.
    reread: `yes` takes these back; `auto` too, but keeps an evaluator's recorded answers in a task where that would
    take back more than a fifth of those beside a reply that is no error message; `no` keeps all recorded answers.

    The records get `is_correct` and the other answer columns anew, `recorded` (the answer on record where the reply
    holds another or none), and `unverified`: the answer in use is in no raw reply. Answers `about` another
    author, which claim nothing, are left out. The report counts records, answers on record, no raw reply, same, removed
    (answers that the reply does not hold), added, changed, and says which `answers` are in use.
    """
    check_one_of("reread", reread, REREAD)
    frame = _claims_only(_with_replies(predictions))
    correct_on_record = frame.get("is_correct")
    old, new = _read(frame)
    before, after = (f["predicted_model"].where(_naming(frame), f["predicted_self"]) for f in (old, new))
    had, has, readable = before.notna(), after.notna(), frame["reply"].notna()
    same = (before == after) | ~(had | has)
    taken, final = had & ~same, ~frame["status"].isin(READ)

    group = [frame["task_type"], frame["evaluator_model"]]
    cell = frame.groupby(group).ngroup()
    beside = had & readable & ~final
    not_held, of = (np.bincount(cell, rows)[cell] for rows in (taken & beside, beside))
    keep = readable & {"yes": False, "no": True, "auto": (not_held > parsing.DOUBTFUL * of) & ~final}[reread]
    old["status"] = frame["status"].where(~keep, had.map({True: "ok", False: "no_answer"}))
    frame[[*new]] = new.where(~keep, old)
    frame["recorded"] = before.where(taken, None)
    notes = [*frame.attrs.get("notes", ()), *unread(frame, had), *doubts(frame, correct_on_record)]
    unreadable = int(frame["status"].eq(parsing.UNREADABLE).sum())
    if unreadable:
        notes.append(f"{unreadable} replies could not be read and count as no answer (status `unreadable`).")
    frame.attrs["notes"] = notes
    frame["unverified"] = had & (~readable | (keep & taken))
    kinds = {"records": had | ~had, "on record": had, "no raw reply": ~readable, "same": same}
    kinds |= {"removed": had & ~has, "added": ~had & has, "changed": taken & has, "answers": keep}
    changes = pd.DataFrame(kinds).astype(int).groupby(group).sum().reset_index()
    changes["answers"] = np.where(changes["answers"] > 0, "as recorded", "as read")
    return frame, changes


def _claims_only(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the records without those about another author than the evaluator, and say how many these are."""
    put = frame["condition"].tolist() if "condition" in frame else [None] * len(frame)
    other = pd.Series(mapped(put, lambda said: bool(condition_of(said).get("about"))), frame.index, bool)
    if not other.any():
        return frame
    said = f"{other.sum()} answers say whether another author wrote a text (`about`) and claim nothing"
    if other.all():
        raise InputError(f"All {said}; compare their `score` with that of the same question about the evaluator.")
    frame = frame[~other].reset_index(drop=True)
    frame.attrs["notes"] = [*frame.attrs.get("notes", ()), f"{said}: left out."]
    return frame


def _with_replies(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the records with the raw reply as a text, and one of `STATUSES`.

    A status that says so, or a reply that begins with "ERROR", is an error; another one that we do not know is "ok".
    """
    frame = predictions.copy()
    frame["reply"] = raw = pd.Series(mapped(frame["reply"].tolist(), _reply_text), frame.index, object)
    status = frame["status"] if "status" in frame else pd.Series("ok", frame.index)
    known = status.isin(STATUSES)
    failed = pd.Series(mapped(raw.tolist(), lambda said: bool(re.match(r"(?i)\s*error\b", said or ""))), frame.index)
    failed[~known] |= status[~known].astype(str).str.match(FAILED, case=False)
    return frame.assign(status=status.where(known, "ok").mask(failed, "error"))


def _reply_text(value) -> str | None:
    """Return a reply that is a text or has blocks of text ([{"type": "text", "text": ...}], in a CSV as JSON)."""
    if isinstance(value, str) and value.startswith("[{"):
        with contextlib.suppress(ValueError):
            blocks = json.loads(value)
            value = blocks if all(isinstance(b, dict) and "type" in b for b in blocks) else value
    if isinstance(value, list | dict):
        return thinking.of_parts(value, between="\n")[1]
    return value if isinstance(value, str) else None


def _read(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the answers on record and those that the raw replies hold, each with what follows from them.

    Equal answers to equal questions are read once. Names are read in any order of the candidates, letters in theirs.
    """
    given = frame["predicted_model"][_naming(frame)].dropna()  # the candidates of a file that lists none: all its names
    everyone = (*dict.fromkeys([*sorted(frame["true_model"].unique()), *sorted(given.unique())]),)
    labels = _labels(frame)
    others = frozenset(frame.attrs.get("called", ())) - {*everyone}
    design = ["task_type", "evaluator_model", "true_model", "status", "position", "other_model"]
    fields = [*design, "condition", "predicted_model", "predicted_self", "reply", "candidates"]
    values = {name: record_files.with_nulls(column).tolist() for name, column in frame.reindex(columns=fields).items()}
    put, values["condition"] = values["condition"], mapped(values["condition"], str)
    conditions = dict(zip(values["condition"], put, strict=True))
    shown = mapped(values["candidates"], lambda shown: tuple(shown) if isinstance(shown, list | tuple) else everyone)
    values["candidates"] = shown

    @cache
    def read(said: str, reply: str, shown: frozenset | tuple, *row) -> tuple:
        record = dict(zip(design, row, strict=True)) | {"condition": conditions[said], "reply": reply}
        return tuple(score(record | {"candidates": shown}, labels).values())

    distinct: dict[tuple, int] = {}
    at = [distinct.setdefault(row, len(distinct)) for row in zip(*values.values(), strict=True)]
    before, after = [], []
    for *row, said, chosen, claimed, reply, shown in distinct:
        record = dict(zip(design, row, strict=True)) | {"condition": conditions[said]}
        before.append(_answer_on_record(record, chosen, claimed))
        places = shown is not everyone and "labels" not in said and parsing.letter(reply)
        among = shown if places or "anonymous" in said else frozenset(shown) | others
        is_read = isinstance(reply, str) and "read" not in condition_of(record["condition"])  # by no other reader
        after.append(read(said, reply, among, *row) if is_read else before[-1])
    columns = ["predicted_model", "predicted_self", "is_correct", "status"]
    both = (pd.DataFrame(answers, columns=columns, dtype=object) for answers in (before, after))
    return tuple(answers.take(at).set_axis(frame.index) for answers in both)


def _answer_on_record(record: dict, chosen: str | None, claimed: bool | None) -> tuple:
    """Return the answer columns of an answer on record; of a pair that may be the author of the text chosen."""
    task = record["task_type"]
    if task == "pairwise_self" and claimed is None and chosen in (record["true_model"], record.get("other_model")):
        claimed = chosen == record["true_model"]
    elif task in ("exact_model", "lineup"):
        claimed = None
    return *_answer_columns(record, chosen, claimed).values(), record["status"]


def _labels(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return {author: further names}: the file's label, if it is no name of another author too, and what is said."""
    of = {author: names[-1] for author, names in file_labels(frame).items()}
    authors = candidate_names(frame["true_model"].unique())
    names = Counter(parsing.name_key(name) for author, known in authors.items() for name in {author, *known})
    names += Counter(parsing.name_key(label) for author, label in of.items() if label not in {author, *authors[author]})
    found = {author: [*of] for author, of in frame.attrs.get("called", {}).items()}
    for author, label in of.items():
        found.setdefault(author, []).extend([label] * (names[parsing.name_key(label)] < 2))
    return found


def _naming(frame: pd.DataFrame) -> pd.Series:
    return frame["task_type"].isin(["exact_model", "lineup"])
