"""Verdict records of jurors whose leniency, conformity and discrimination are known: by numpy, or simulated jurors."""

import asyncio
import random
from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.asking.client import Client
from selfeval.asking.simulated import WORDS
from selfeval.models import get
from selfeval.roleplay import jury
from selfeval.roleplay.jury import Jury
from selfeval.roleplay.simulated import talk
from selfeval.roleplay.transcripts import Conversation, Turn

ARMS = ("independent", "personas", "reask", "sham", "debate")
CONFORMITY = 0.4  # of all jurors alike: the table has one slope
JURORS = {  # leniency, conformity, discrimination
    "lenient": (0.12, CONFORMITY, 0.05),
    "stern": (-0.10, CONFORMITY, 0.25),
    "blind": (0.0, CONFORMITY, 0.0),
}


def planted_records(
    seed, conversations=30, turns=3, jurors=JURORS, conform=True, silent=0.0, noise=0.06, sham=0.0, redraw=False,
    wanted=ARMS,
) -> pd.DataFrame:  # fmt: skip
    """Return one row per statement: pairs of a person's and a model's conversation, judged in five arms.

    What is judged differs by conversation and turn; a juror adds its leniency, half its discrimination for or against,
    and noise. In a second round it moves to the mean of the scores it has heard with its conformity as weight
    (conform=False: not at all; sham: the weight of what strangers say). redraw: it also votes anew around what it
    thinks in every round, which looks like conformity where nobody listens. silent: P(no score).
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

    def vote(of=None, around=mind):
        opinion = around if of is None or redraw else of
        return np.clip(opinion + rng.normal(0, noise, mind.shape), 0, 1)

    def heard(own, peers, share):
        return (1 - share) * own + share * peers

    arms = {"independent": [vote()], "personas": [vote()]}
    first = vote()
    arms["reask"] = [first, vote(first)]
    first, strangers = vote(), rng.uniform(0.2, 0.8, mind.shape)
    arms["sham"] = [first, np.clip(heard(vote(first), strangers, sham), 0, 1)]
    first = vote()
    now = first.copy()
    own = vote(first)
    for k in range(seats):  # one by one: each hears the latest score of every other
        who = order[:, k]
        peers = (now.sum(1) - now[rows, who]) / (seats - 1)
        share = weight[0, who] if conform else 0
        now[rows, who] = np.clip(heard(own[rows, who], peers, share), 0, 1)
    arms["debate"] = [first, now]
    source = np.where(human, "human", "model")
    common = pd.DataFrame({
        "conversation_id": np.repeat([f"{c}-{s}" for c, s in zip(conversation, source, strict=True)], seats),
        "pair": np.repeat(conversation, seats), "source": np.repeat(source, seats), "turn": np.repeat(turn, seats),
        "position": (order.argsort(1) + 1).ravel(), "juror": np.tile(list(jurors), len(grid)), "peer_mean": np.nan,
    })  # fmt: skip
    frames = [
        common.assign(arm=arm, round=number, score=scores.ravel())
        for arm, rounds in arms.items() if arm in wanted for number, scores in enumerate(rounds, 1)
    ]  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    told = (frame["arm"] == "sham") & (frame["round"] == 2)
    frame.loc[told, "peer_mean"] = strangers.ravel()[: told.sum()]
    frame.loc[rng.random(len(frame)) < silent, "score"] = np.nan
    return frame


def conversations(n: int, turns: int = 2, seed: int = 0) -> list[Conversation]:
    """Return pairs of a person's and a simulated model's conversation with the same questions."""
    draw, made = random.Random(seed), []
    for k in range(n):
        questions = [talk(get("sim/talker"), draw) for _ in range(turns)]
        for source in ("human", "model"):
            said = []
            for question in questions:
                answer = talk(get("sim/talker"), draw) if source == "model" else " ".join(draw.sample(WORDS, 9))
                said += [Turn("A", question), Turn("B", answer)]
            meta = {"pair": f"{k}-human", "agent_model": "sim/talker"} if source == "model" else {}
            made.append(Conversation(f"{k}-{source}", said, source, "B", meta=meta))
    return made


def judge(jurors: Sequence[str], talks: Sequence[Conversation], arms: Sequence[str], **options) -> pd.DataFrame:
    """Return the records of the real engine."""

    async def run() -> list[dict]:
        async with Client() as client:
            return await jury.hold(client, Jury(tuple(map(get, jurors)), **options), talks, arms, label=None)

    return pd.DataFrame(asyncio.run(run()))
