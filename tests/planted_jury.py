"""Verdict records of jurors whose leniency, conformity and discrimination are known: by numpy, or simulated jurors."""

import asyncio
import random
from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.asking.client import Client
from selfeval.asking.simulated import WORDS
from selfeval.models import get
from selfeval.roleplay import hearing
from selfeval.roleplay.simulated_jurors import talk
from selfeval.roleplay.transcripts import Conversation, Turn

ARMS = ("independent", "personas", "reask", "sham", "debate")
CONFORMITY, TO_STRANGERS = 0.4, 0.3  # of all jurors alike: the table has one slope
JURORS = {  # leniency, conformity, discrimination
    "lenient": (0.12, CONFORMITY, 0.05),
    "stern": (-0.10, CONFORMITY, 0.25),
    "blind": (0.0, CONFORMITY, 0.0),
}


def planted_records(
    seed, conversations=30, turns=3, jurors=JURORS, noise=0.06, redraw=False, wanted=ARMS
) -> pd.DataFrame:
    """Return one row per statement: pairs of a person's and a model's conversation, judged in five arms.

    What is judged differs by conversation and turn; a juror adds its leniency, half its discrimination for or against,
    and noise. In a second round it moves to the mean of the scores it has heard with its conformity as weight, in the
    arm sham to what strangers say. redraw: it also votes anew around what it thinks in every round, which looks like
    conformity where nobody listens.
    """
    rng = np.random.default_rng(seed)
    lenient, weight, tells = (np.array(x)[None] for x in zip(*jurors.values(), strict=True))
    seats = len(jurors)
    grid = np.array([(c, s, t) for c in range(conversations) for s in (0, 1) for t in range(turns)])
    conversation, human, turn = grid.T
    mood = rng.normal(0, 0.06, conversations)[conversation] + rng.normal(0, 0.05, len(grid))
    mind = 0.5 + mood[:, None] + lenient + tells * (human[:, None] - 0.5)
    order = np.array([np.roll(np.arange(seats), -k) for k in range(seats)])[np.arange(len(grid)) % seats]
    rows = np.arange(len(grid))

    def vote(of=None):
        return np.clip((mind if of is None or redraw else of) + rng.normal(0, noise, mind.shape), 0, 1)

    nobody = np.full(mind.shape, np.nan)
    arms = {"independent": [(vote(), nobody)], "personas": [(vote(), nobody)]}
    first = vote()
    arms["reask"] = [(first, nobody), (vote(first), nobody)]
    first, strangers = vote(), rng.uniform(0.2, 0.8, mind.shape)
    swayed = (1 - TO_STRANGERS) * vote(first) + TO_STRANGERS * strangers
    arms["sham"] = [(first, nobody), (np.clip(swayed, 0, 1), strangers)]
    first = vote()
    now, own, peers = first.copy(), vote(first), nobody.copy()
    for k in range(seats):  # one by one: each hears the latest score of every other
        who = order[:, k]
        peers[rows, who] = (now.sum(1) - now[rows, who]) / (seats - 1)
        moved = (1 - weight[0, who]) * own[rows, who] + weight[0, who] * peers[rows, who]
        now[rows, who] = np.clip(moved, 0, 1)
    arms["debate"] = [(first, nobody), (now, peers)]
    source = np.where(human, "human", "model")
    common = pd.DataFrame({
        "conversation_id": np.repeat([f"{c}-{s}" for c, s in zip(conversation, source, strict=True)], seats),
        "pair": np.repeat(conversation, seats), "source": np.repeat(source, seats), "turn": np.repeat(turn, seats),
        "juror": np.tile(list(jurors), len(grid)),
    })  # fmt: skip
    frames = [
        common.assign(arm=arm, round=number, score=scores.ravel(), peer_mean=heard.ravel())
        for arm in wanted for number, (scores, heard) in enumerate(arms[arm], 1)
    ]  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def conversations(n: int) -> list[Conversation]:
    """Return pairs of a person's and a simulated model's conversation with the same two questions."""
    draw, made = random.Random(0), []
    for k in range(n):
        questions = [talk(get("sim/talker"), draw) for _ in range(2)]
        for source in ("human", "model"):
            said = []
            for question in questions:
                answer = talk(get("sim/talker"), draw) if source == "model" else " ".join(draw.sample(WORDS, 9))
                said += [Turn("A", question), Turn("B", answer)]
            meta = {"pair": f"{k}-human", "agent_model": "sim/talker"} if source == "model" else {}
            made.append(Conversation(f"{k}-{source}", said, source, "B", meta=meta))
    return made


def judge(jurors: Sequence[str], talks: Sequence[Conversation], arms: Sequence[str]) -> pd.DataFrame:
    """Return the records of the real engine."""

    async def run() -> list[dict]:
        async with Client() as client:
            return await hearing.hold(client, hearing.Jury(tuple(map(get, jurors))), talks, arms, label=None)

    return pd.DataFrame(asyncio.run(run()))
