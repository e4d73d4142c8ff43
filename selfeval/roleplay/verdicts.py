"""Read the scores out of a juror's reply, or say that there are none.

A score is a number from 0 (surely a program) to 1 (surely a human being), in a JSON object or after its tag at the
beginning of a line. Anything else (85, 20 %, nan, 7/10, a range) is no score: nothing is rescaled, guessed, or given a
default. The last valid score of a reply counts, but not one that the reply quotes from the text under judgement.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selfeval.scoring import normalise, without_thinking

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


@dataclass(frozen=True)
class Verdict:
    """What a reply says: scores by tag (0 to 1, or None), and the reason in the juror's own words."""

    scores: dict[str, float | None]
    reason: str = ""


def read(reply: str | None, tags: Sequence[str] = ("HUMAN_SCORE",), judged: str = "") -> Verdict:
    """Return a reply's scores and reason; judged: the texts that the juror was shown, whose scores are not its own.

    Text between think tags is dropped, also from a tag that is never closed. A reply that is a JSON object has its
    scores under the tags' names, in any case. Otherwise a score stands at the beginning of a line, with `=` or `:`, in
    any markdown but a quotation.
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
    found = []  # (score, repeats the judged text)
    for line in lines:
        match = pattern.match(line)
        if match and match["value"] and (score := _score(match["value"])) is not None:
            found.append((score, line in quoted))
    for source, values in _objects(text):
        if (score := _field(values, tag)) is not None:
            found.append((score, source in judged))
    own = [score for score, repeated in found if not repeated]
    if own or not found:
        return own[-1] if own else None
    last = next((line for line in reversed(lines) if line), "")
    return found[-1][0] if pattern.match(last) else None


def _pattern(tag: str) -> re.Pattern[str]:
    """Return the pattern of a tag's line, normalised; `value` is None where what follows the tag is no number."""
    name = re.escape(tag.casefold()).replace("_", r"\\?[_ -]?")
    return re.compile(rf"{_BEFORE}{name}\W{{0,3}}[=:](?:[\s\"'<(\[{{]{{0,3}}{_NUMBER})?")


def _score(value: str) -> float | None:
    number = value.replace(",", ".")
    return float(number) if _NUMERAL.fullmatch(number) and 0 <= float(number) <= 1 else None


def _field(values: dict, tag: str) -> float | None:
    for key, value in values.items():
        if key.casefold().replace(" ", "_") == tag.casefold():
            if isinstance(value, str):
                return _score(value.strip())
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return float(value) if number and 0 <= value <= 1 else None
    return None


def _object(text: str) -> dict | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(text: str) -> Iterator[tuple[str, dict]]:
    """Yield the flat JSON objects inside a text, with their source."""
    for match in re.finditer(r"\{[^{}]{1,4000}\}", text):
        if (value := _object(match[0])) is not None:
            yield match[0], value
