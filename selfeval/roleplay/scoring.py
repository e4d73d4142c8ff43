"""What jurors say: the score in a reply, and what the scores of a verdict come to.

A score is a number from 0 (surely a program) to 1 (surely a human being), in a JSON object or after
its tag at the beginning of a line. Anything else (85, 20 %, nan, 7/10, a range) is no score:
nothing is rescaled, guessed, or given a default. The last valid score of a reply counts, but not
one that the reply quotes from the text under judgement.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from selfeval.reading.parsing import normalise, unwrap, without_thinking

TAG = "HUMAN_SCORE"
# the same, in JSON
FIELD = TAG.lower()
VERDICT = ["conversation_id", "turn", "arm"]
# characters of a reason that other jurors see; longer ones are cut
LONGEST = 1200
# What may follow the number: an end, a comment, "/1"; no other digit, percent sign, scale, range or
# second number, and no sentence about the score.
_NUMBER = (
    r"(?P<value>\d{0,20}[.,]?\d{1,20})(?:\s?/\s?1(?:\.0+)?| out of 1(?:\.0+)?)?"
    r"(?![\d%/e]|[.,]\d|[\"'`]? (?:is|was|in|appears|looks)\b"
    r"|\s?(?:%|/|out of|percent|per cent|points|to |or |and |-\s?\d|\.\.|~|\(?±|[,|]\s?\d))"
)
# "0.8 -> 0.6", "0.8, revised to 0.6": whoever writes so has taken back the first, and may take back
# the second
_REVISED = (
    r"(?P<revised>\d?[.,]?\d{1,20}[\s\"'`)\]}]{0,3}(?:[-=]{1,3}>|>+\s?\d|[→⇒➔➜↦]"
    r"|\W{0,3}(?:then|now|on (?:second thoughts?|reflection)|actually|wait"
    r"|revised|changed|updated|adjusted|lowered|raised|corrected)\b[^\d\n]{0,30}\d))"
)
_FIGURE = rf"(?!\W{{0,3}}<\s?[\d.,]+\s?(?![>\d.,]))[\s\"'<(\[{{]{{0,3}}(?:{_REVISED}|{_NUMBER})"
# a whole reply that is a score
_BARE = re.compile(r"\d?[.,]\d{1,20}\.?")
# "I'd say HUMAN_SCORE: 0.65", "Je penche ... : HUMAN_SCORE=0.6": a sentence of the writer's own
_OWN = re.compile(
    r"\W{0,4}(?:(?:so|thus|therefore|overall|hence|and|then)\b,? )?"
    r"(?:(?:i|i'd|i'll|my|we)\b|(?:je|j'|ich|yo|io|eu|ik|я)\b|我|私)"
)
_OTHERS = re.compile(
    r"\"|\b(?:not|never|cannot|if|unless|see|saw|read|told|quot\w+)\b|n't\b"
    r"|\b(?:it|he|she|they|b|text|reply|answer|candidate)\b [^.]{0,20}"
    r"\b(?:says?|said|writes?|wrote|claims?|has|contains?)\b"
)
_BEFORE = r"\W{0,4}(?:\d{1,2}[.)] ?)?(?:(?:the )?(?:my|final|overall) ){0,2}\W{0,3}"
_NUMERAL = re.compile(r"\d*\.?\d+")
_NAME = r"human\\?[_ -]?score"
# a line of the score, normalised; `value` is None where no number follows
_LINE = re.compile(rf"{_BEFORE}{_NAME}\W{{0,3}}[=:](?:{_FIGURE})?")
# the tag and its score within a line
_SPOKEN = re.compile(
    rf"(?<!\w){_NAME}(?:\W{{0,3}}(?P<sign>[=:])| (?:at|is|would be|as)\b){_FIGURE}"
)


class Verdict(NamedTuple):
    """What a reply says: a score (0 to 1, or None), and the juror's reason."""

    score: float | None = None
    reason: str = ""


def read(reply: str | None, judged: str = "") -> Verdict:
    """Return a reply's score and reason.

    judged: the texts that the juror was shown, whose scores are not its own. Thinking is dropped. A
    reply that is a JSON object has its score under the tag's name, in any case. Otherwise a score
    stands at the beginning of a line, with `=` or `:`, in any markdown but a quotation.
    """
    text = without_thinking(reply or "")
    whole = _object(re.sub(r"^```\w*\s*|\s*```$", "", text.strip()))
    if whole is not None:
        reasons = [str(whole[name]) for name in whole if name.casefold().startswith("reason")]
        return Verdict(_field(whole), shorten(reasons[0] if reasons else ""))
    written = [line for line in text.splitlines() if not line.lstrip().startswith((">", "＞"))]
    lines = [_plain(line) for line in written]
    shown = [_plain(line) for line in judged.splitlines()]
    score = _last(text, lines, shown, judged)
    bare = _plain(text).strip()
    if _BARE.fullmatch(bare):
        score = _score(bare.removesuffix("."))
    reason = []
    for line, plain in zip(written, lines, strict=True):
        if not _LINE.match(plain):
            reason.append(line)
    return Verdict(score, shorten("\n".join(reason)))


@lru_cache(maxsize=1024)
def _plain(line: str) -> str:
    """Return a line normalised, without wrappers.

    A row of a table ("| HUMAN_SCORE | 0.4 |") has a colon then.
    """
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if line.lstrip().startswith("|") and len(cells) > 1:
        line = f"{cells[0]}: {'|'.join(cells[1:])}"
    line = re.sub(r"(?i)<(\w{0,30}score)>([^<>]{0,60})</\1>", r"\1: \2", line)
    return normalise(unwrap(line, " "))


def shorten(reason: str) -> str:
    """Return a reason without blank lines, cut to the length that other jurors are shown."""
    lines = [line.strip() for line in reason.splitlines()]
    text = "\n".join(filter(None, lines))
    if len(text) <= LONGEST:
        return text
    return text[:LONGEST].rsplit(" ", 1)[0] + " …"


def _last(text: str, lines: Sequence[str], shown: Sequence[str], judged: str) -> float | None:
    """Return the last valid score of a reply.

    One that repeats the judged text counts only as the last word of the reply. A score that is
    revised in its own line ("0.8 -> 0.6") is none, and takes back those before it.
    """
    said = []  # (score, whether it repeats what was judged)
    quoted = set(filter(None, shown))
    for line in shown:
        quoted.update(match[0] for match in _SPOKEN.finditer(line))
    for line in lines:
        match = _statement(line)
        if not match:
            continue
        if match["revised"] or _says_two(line):
            said = []
        else:
            said.append((_score(match["value"]), line in quoted or match[0] in quoted))
    for part in re.findall(r"\{[^{}]{1,4000}\}", text):
        said.append((_field(_object(part) or {}), part in judged))
    valid = [(score, is_repeated) for score, is_repeated in said if score is not None]
    own = [score for score, is_repeated in valid if not is_repeated]
    if own:
        return own[-1]
    filled = list(filter(None, lines))
    if valid and filled and _statement(filled[-1]):
        return valid[-1][0]
    return None


def _statement(line: str) -> re.Match[str] | None:
    """Return where a line states a score: at its beginning, or in the writer's own sentence."""
    at_beginning = _LINE.match(line)
    if at_beginning:
        return at_beginning
    for match in _SPOKEN.finditer(line):
        before = line[max(0, match.start() - 150) : match.start()]
        sentence = re.split(r"[.!?] ", before)[-1]
        if _is_own(sentence):
            return match
        is_last_sentence = not sentence and before and not line[match.end() :].strip(" .!\"')]")
        if is_last_sentence and match["sign"]:
            return match
    return None


def _says_two(line: str) -> bool:
    """Tell whether a line gives two scores."""
    return len({said["value"] for said in _SPOKEN.finditer(line)}) > 1


def _is_own(sentence: str) -> bool:
    return bool(_OWN.match(sentence)) and not _OTHERS.search(sentence)


def _score(value) -> float | None:
    """Return a number from 0 to 1, None for anything else."""
    number = unwrap(str(value), "").strip().replace(",", ".")
    if _NUMERAL.fullmatch(number) and 0 <= float(number) <= 1:
        return float(number)
    return None


def _field(values: dict) -> float | None:
    """Return the score under the tag's name, in any case."""
    for name, value in values.items():
        if name.casefold().replace(" ", "_") == FIELD:
            return _score(value)
    return None


def _object(text: str) -> dict | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def last_round(records: Sequence[Mapping]) -> list[Mapping]:
    """Return the jurors' records of a verdict's last round, in speaking order."""
    rows = [row for row in records if row["role"] == "juror"]
    last = max([row["round"] for row in rows], default=0)
    of_last = [row for row in rows if row["round"] == last]
    return sorted(of_last, key=lambda row: row["position"] or 0)


def decide(records: Sequence[Mapping], aggregation: str = "mean") -> float | None:
    """Return the jury's score of one verdict, from the jurors' last round.

    mean: of the valid scores. majority: 1 where more than half of them lie above .5, 0 where more
    than half lie below, else .5. None without a valid score, which is no vote.
    """
    scores = [row["score"] for row in last_round(records) if pd.notna(row["score"])]
    if not scores:
        return None
    if aggregation == "mean":
        return math.fsum(scores) / len(scores)
    half = len(scores) / 2
    if sum(score > 0.5 for score in scores) > half:
        return 1.0
    if sum(score < 0.5 for score in scores) > half:
        return 0.0
    return 0.5


def verdict_scores(records: pd.DataFrame, aggregation: str = "mean") -> pd.DataFrame:
    """Return one row per verdict: conversation, turn, arm, source, agent, `score` or null."""
    first = records.drop_duplicates(VERDICT).set_index(VERDICT)[["source", "agent"]]
    parts = records.groupby(VERDICT, sort=False)
    scores = {name: decide(part.to_dict("records"), aggregation) for name, part in parts}
    return first.assign(score=pd.Series(scores, dtype=float)).reset_index()
