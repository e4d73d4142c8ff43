"""Simulated people of the role-play: jurors whose traits are known, and talkers.

A simulated juror reads the real prompts: which answer it judges, what it said itself and what it
heard from others. It takes an answer that carries a simulated model's tell for a model's, any other
for a person's. Its private vote is

  0.5 + mood of the answer + leniency + discrimination (half of it up for a person, down for a
  model) + noise

and where it has heard others (1 - conformity) * own + conformity * mean of their latest scores +
noise, own being what it said last, or else its private vote. The mood is the same for all jurors,
and has the standard deviation of the noise, .05.
Rates of `simulation` in data/models.yaml, as `role: roleplay` or without a role, all optional:

  leniency, discrimination, conformity   as above, 0 by default
  no_answer        P(gives no score, also when it is asked again)

Any other message it answers with a short text that carries its tell, so that it can play agent
and interrogator.
"""

import math
import random
import re

from selfeval.providers.models import Model
from selfeval.providers.request import WORDS, author_of, seeded, write
from selfeval.roleplay import roles
from selfeval.roleplay.prompts import JUDGED, MESSAGE, RULES, SEAT, STATEMENT
from selfeval.roleplay.scoring import TAG

RATES = {
    "leniency": 0.0,
    "discrimination": 0.0,
    "conformity": 0.0,
    "no_answer": 0.0,
}
DEVIATION = 0.05  # of the noise, and of the mood of answers
SCORE = re.compile(rf"^{TAG}=([\d.]+)$", re.M)
SILENT = "It could be either, and I would rather not put a number on it."


def is_asked(messages: list[dict]) -> bool:
    """Tell whether messages begin as a jury's, or with what an agent or interrogator is told."""
    parts = roles.personas() | roles.strategies()
    told = [part.prompt or RULES for part in parts.values()]
    return messages[0]["content"].startswith((RULES, *told))


def reply(model: Model, rates: dict, messages: list[dict], draw: random.Random) -> str:
    """Answer as a juror or a talker, whichever the messages ask for."""
    # of a repair, the first question is the juror's prompt
    question = next(message["content"] for message in messages if message["role"] == "user")
    if not question.startswith(RULES):
        return write(model, "14 words", draw)  # two sentences that carry its tell
    rates = RATES | rates
    # the same when it is asked again
    is_mute = seeded("mute", model.id, question).random() < rates["no_answer"]
    if is_mute:
        return SILENT
    score = _vote(question, scores(question), rates, draw)
    score = min(max(score, 0.0), 1.0)
    reason = f"It reads {draw.choice(WORDS)} and {draw.choice(WORDS)} to me."
    return f"{reason}\n{TAG}={score:.3f}"


def scores(question: str) -> dict[int, float]:
    """Return the latest visible score of each juror by its number."""
    latest = {}
    for _, number, _, text in STATEMENT.findall(question):
        for score in SCORE.findall(text):
            latest[int(number)] = float(score)
    return latest


def _vote(question: str, heard: dict[int, float], rates: dict, draw: random.Random) -> float:
    """Return a juror's score after what it has heard and said."""
    seat = SEAT.findall(question)
    me = int(seat[-1]) if seat else 0
    peers = [score for number, score in heard.items() if number != me]
    has_spoken = me in heard
    own = heard[me] if has_spoken else _private(question, rates, draw)
    if not peers and not has_spoken:
        return own
    score = own
    if peers:
        pull = rates["conformity"]
        score = (1 - pull) * own + pull * math.fsum(peers) / len(peers)
    return score + draw.gauss(0, DEVIATION)


def _private(question: str, rates: dict, draw: random.Random) -> float:
    """Return a juror's vote before it has heard anybody."""
    answers = {}
    for turn, who, _, text in MESSAGE.findall(question):
        if who == "B":
            answers[turn] = text
    judged = list(answers.values())
    turns = JUDGED.findall(question)
    if turns and turns[-1]:  # one answer, and not all
        judged = [answers[turns[-1]]]
    by_people = [author_of(text) is None for text in judged]
    human = sum(by_people) / max(len(judged), 1)
    mood = seeded("mood", *judged).gauss(0, DEVIATION)
    noise = draw.gauss(0, DEVIATION)
    return 0.5 + mood + rates["leniency"] + rates["discrimination"] * (human - 0.5) + noise
