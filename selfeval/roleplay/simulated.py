"""Simulated people of the role-play: jurors whose leniency, conformity and discrimination are known, and talkers.

A simulated juror reads the real prompts: which answer it judges, what it said itself and what it
heard from others. It takes an answer that carries a simulated model's tell for a model's, any other
for a person's. Its private vote is

  0.5 + mood of the answer + leniency + discrimination (half of it up for a person, down for a
  model) + noise

and where it has heard others (1 - conformity) * own + conformity * mean of their latest scores +
noise, own being what it said last, or else its private vote. The mood is the same for all jurors.
`simulation` in data/models.yaml, with `role: roleplay`, all optional:

  leniency, discrimination, conformity   as above, 0 by default
  noise, spread    standard deviations of the noise (.05) and of the mood (.05)
  no_answer        P(gives no score, also when it is asked again)

Asked for a summary it repeats the scores, as a presiding judge it takes their mean, and any other
message it answers with a short text that carries its tell, so that it can play agent and
interrogator.
"""

import hashlib
import random
import re

from selfeval.providers.models import Model
from selfeval.providers.request import ROLES, WORDS, author_of, write
from selfeval.roleplay.prompts import JUDGED, MESSAGE, RULES, SEAT, STATEMENT, SUMMARY

DEFAULTS = {
    "leniency": 0.0, "discrimination": 0.0, "conformity": 0.0, "noise": 0.05, "spread": 0.05, "no_answer": 0.0,
}  # fmt: skip
TAG = re.compile(r"^(\w+)=$", re.M)  # as a prompt asks for it
SCORE = re.compile(r"^HUMAN_SCORE=([\d.]+)$", re.M)
SUMMED = re.compile(r"^Juror (\d+): ([\d.]+)$", re.M)
SILENT = "It could be either, and I would rather not put a number on it."


def reply(model: Model, rates: dict, messages: list[dict], draw: random.Random) -> str:
    """Answer as a simulated juror, presiding judge, summariser or talker, whichever the messages ask for."""
    question = next(
        m["content"] for m in messages if m["role"] == "user"
    )  # of a repair: the juror's prompt
    if not question.startswith(RULES.partition("{")[0]):
        return write(
            model, "14 words", draw
        )  # a chat message of two sentences that carries its tell
    heard = scores(question)
    if "\nSummarise what the jurors said" in question:
        return (
            "\n".join(f"Juror {number}: {score:.3f}" for number, score in heard.items())
            or "Nobody gave a score."
        )
    rates = DEFAULTS | rates
    if (
        _draw("mute", model.id, question).random() < rates["no_answer"]
    ):  # the same when it is asked again
        return SILENT
    if "\nYou preside over this jury" in question:
        score = sum(heard.values()) / len(heard) if heard else _private(question, rates, draw)
    else:
        score = _vote(question, heard, rates, draw)
    tags = TAG.findall(question)
    score = min(max(score, 0.0), 1.0)
    lines = [f"{tag}={score if tag == 'HUMAN_SCORE' else draw.random():.3f}" for tag in tags]
    return "\n".join([f"It reads {draw.choice(WORDS)} and {draw.choice(WORDS)} to me.", *lines])


def scores(question: str) -> dict[int, float]:
    """Return the latest visible score of each juror by its number, those of a summary first."""
    summary = SUMMARY.search(question)
    found = (
        {int(number): float(score) for number, score in SUMMED.findall(summary[2])}
        if summary
        else {}
    )
    for _, number, _, text in STATEMENT.findall(question):
        if given := SCORE.findall(text):
            found[int(number)] = float(given[-1])
    return found


def _vote(question: str, heard: dict[int, float], rates: dict, draw: random.Random) -> float:
    """Return a juror's score after what it has heard and said."""
    seat = SEAT.findall(question)
    me = int(seat[-1]) if seat else 0
    peers = [score for number, score in heard.items() if number != me]
    own = heard[me] if me in heard else _private(question, rates, draw)
    if not peers:
        return own + (draw.gauss(0, rates["noise"]) if me in heard else 0)
    pull = rates["conformity"]
    return (1 - pull) * own + pull * sum(peers) / len(peers) + draw.gauss(0, rates["noise"])


def _private(question: str, rates: dict, draw: random.Random) -> float:
    answers = {int(turn): text for turn, who, _, text in MESSAGE.findall(question) if who == "B"}
    asked = JUDGED.findall(question)
    judged = [answers[int(asked[-1])]] if asked and asked[-1] else list(answers.values())
    human = sum(author_of(text) is None for text in judged) / max(len(judged), 1)
    mood = _draw("mood", *judged).gauss(0, rates["spread"])
    return (
        0.5
        + mood
        + rates["leniency"]
        + rates["discrimination"] * (human - 0.5)
        + draw.gauss(0, rates["noise"])
    )


def _draw(*parts: str) -> random.Random:
    return random.Random(int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:8]))


ROLES["roleplay"] = reply, DEFAULTS
