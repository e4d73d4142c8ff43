"""What jurors say: the scores in a reply, or that there are none; and what the scores of a verdict come to.

A score is a number from 0 (surely a program) to 1 (surely a human being), in a JSON object or after its tag at the
beginning of a line. Anything else (85, 20 %, nan, 7/10, a range) is no score: nothing is rescaled, guessed, or given a
default. The last valid score of a reply counts, but not one that the reply quotes from the text under judgement.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from selfeval.scoring import normalise, without_thinking

VERDICT = ["conversation_id", "turn", "arm"]
LONGEST = 1200  # characters of a reason that other jurors see; longer ones are cut
# What may follow the number: an end, a comment, "/1"; no other digit, percent sign, scale, range or second number,
# and no sentence about the score.
_NUMBER = (
    r"(?P<value>\d{0,20}[.,]?\d{1,20})(?:\s?/\s?1(?:\.0+)?| out of 1(?:\.0+)?)?"
    r"(?![\d%/e]|[.,]\d|[\"'`]? (?:is|was|in|appears|looks)\b"
    r"|\s?(?:%|/|out of|percent|per cent|points|to |or |and |-\s?\d|\.\.|~|±|,\s?\d))"
)
_BEFORE = r"\W{0,4}(?:\d{1,2}[.)] ?)?(?:(?:the )?(?:my|final|overall) ){0,2}\W{0,3}"
_NUMERAL = re.compile(r"\d*\.?\d+")


class Verdict(NamedTuple):
    """What a reply says: scores by tag (0 to 1, or None), and the reason in the juror's own words."""

    scores: dict[str, float | None]
    reason: str = ""


def read(reply: str | None, tags: Sequence[str] = ("HUMAN_SCORE",), judged: str = "") -> Verdict:
    """Return a reply's scores and reason; judged: the texts that the juror was shown, whose scores are not its own.

    Thinking is dropped. A reply that is a JSON object has its scores under the tags' names, in any case. Otherwise a
    score stands at the beginning of a line, with `=` or `:`, in any markdown but a quotation.
    """
    text = without_thinking(reply or "")
    whole = _object(re.sub(r"^```\w*\s*|\s*```$", "", text.strip()))
    if whole is not None:
        reason = next((str(v) for k, v in whole.items() if k.casefold().startswith("reason")), "")
        return Verdict({tag: _field(whole, tag) for tag in tags}, shorten(reason))
    quoted = {line for line in normalise(judged).split("\n") if line}
    lines = [(raw, normalise(raw)) for raw in text.splitlines() if not raw.lstrip().startswith((">", "＞"))]
    scores = {tag: _last(text, [line for _, line in lines], tag, quoted, judged) for tag in tags}
    patterns = [_pattern(tag) for tag in tags]
    kept = [raw for raw, line in lines if not any(p.match(line) for p in patterns)]
    return Verdict(scores, shorten("\n".join(kept)))


def shorten(reason: str) -> str:
    """Return a reason without blank lines, cut to the length that other jurors are shown."""
    text = "\n".join(line.strip() for line in reason.splitlines() if line.strip())
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def _last(text: str, lines: Sequence[str], tag: str, quoted: set[str], judged: str) -> float | None:
    """Return the last valid score; one that repeats the judged text counts only as the last word of a reply."""
    pattern = _pattern(tag)
    matches = [(match, line in quoted) for line in lines if (match := pattern.match(line))]
    found = [(_score(match["value"]), repeated) for match, repeated in matches]
    for part in re.findall(r"\{[^{}]{1,4000}\}", text):
        found.append((_field(_object(part) or {}, tag), part in judged))
    valid = [(score, repeated) for score, repeated in found if score is not None]
    own = [score for score, repeated in valid if not repeated]
    if own or not valid:
        return own[-1] if own else None
    last = next((line for line in reversed(lines) if line), "")
    return valid[-1][0] if pattern.match(last) else None


def _pattern(tag: str) -> re.Pattern[str]:
    """Return the pattern of a tag's line, normalised; `value` is None where what follows the tag is no number."""
    name = re.escape(tag.casefold()).replace("_", r"\\?[_ -]?")
    return re.compile(rf"{_BEFORE}{name}\W{{0,3}}[=:](?:[\s\"'<(\[{{]{{0,3}}{_NUMBER})?")


def _score(value) -> float | None:
    number = str(value).strip().replace(",", ".")
    return float(number) if _NUMERAL.fullmatch(number) and 0 <= float(number) <= 1 else None


def _field(values: dict, tag: str) -> float | None:
    return _score(next((v for k, v in values.items() if k.casefold().replace(" ", "_") == tag.casefold()), None))


def _object(text: str) -> dict | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def last_round(records: Sequence[Mapping]) -> list[Mapping]:
    """Return the jurors' records of a verdict's last round, in speaking order."""
    rows = [row for row in records if row["role"] == "juror"]
    last = max((row["round"] for row in rows), default=0)
    return sorted((row for row in rows if row["round"] == last), key=lambda row: row["position"] or 0)


def decide(records: Sequence[Mapping], aggregation: str = "mean") -> float | None:
    """Return the jury's score of one verdict: the judge's if there is one, else from the jurors' last round.

    mean: of the valid scores. majority: 1 where more than half of them lie above .5, 0 where more than half lie below,
    else .5. None without a valid score, which is no vote.
    """
    if judge := _scores(row for row in records if row["role"] == "judge"):
        return judge[-1]
    scores = _scores(last_round(records))
    if not scores:
        return None
    if aggregation == "mean":
        return sum(scores) / len(scores)
    human, bot = sum(score > 0.5 for score in scores), sum(score < 0.5 for score in scores)
    return 1.0 if human > len(scores) / 2 else 0.0 if bot > len(scores) / 2 else 0.5


def verdict_scores(records: pd.DataFrame, aggregation: str = "mean") -> pd.DataFrame:
    """Return one row per verdict: conversation, turn, arm, source, agent, `score` (null without any valid score)."""
    first = records.drop_duplicates(VERDICT).set_index(VERDICT)[["source", "agent"]]
    parts = records.groupby(VERDICT, sort=False)
    scores = {name: decide(part.to_dict("records"), aggregation) for name, part in parts}
    return first.assign(score=pd.Series(scores, dtype=float)).reset_index()


def _scores(rows: Iterable[Mapping]) -> list[float]:
    return [row["score"] for row in rows if row["score"] is not None and row["score"] == row["score"]]  # not NaN
