"""Verdict records of jurors of known leniency, conformity and discrimination, and how often intervals hold these.

`python bench/simulate_jury.py 2000` prints, over a tenth as many tables, the coverage of the interval of conformity,
and how often jurors who do not listen seem to be changed by a debate (5 %); and writes to `data/validation/jury.csv`,
over so many tables a row, how often a mean difference of nothing is found (`untested`: how often there is no p).
"""

import sys

import numpy as np
import pandas as pd
from scipy import stats

from selfeval import DATA
from selfeval.roleplay.measures import conformity, difference, differences
from selfeval.roleplay.votes import read_votes

Z = stats.norm.ppf(0.975)
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


def covered(seeds: range) -> dict[str, float]:
    """Return the share of tables whose interval holds the conformity, and that of false effects of a debate."""
    deaf = {name: (lenient, 0, 0) for name, lenient in (("a", 0.1), ("b", -0.1), ("c", 0))}
    held, rejected = [], []
    for seed in seeds:
        [slope] = conformity(read_votes(planted_records(seed, wanted=("debate",))))
        low, high = slope.of.interval(Z)
        held.append(low <= CONFORMITY <= high)
        still = read_votes(planted_records(seed, jurors=deaf, wanted=("reask", "debate")))
        rejected.append(next(differences(still)).test(0)[0] < 0.05)
    return {"coverage": float(np.mean(held)), "rejected": float(np.mean(rejected)), "tables": len(held)}


def changes(shape: str, conversations: int, rng: np.random.Generator) -> np.ndarray:
    """Return changes of conversations, as likely up as down: many small ones, or none but a few large jumps."""
    size = rng.normal(0, 0.1, conversations)
    if shape == "rare jumps":
        size = 0.8 * (rng.random(conversations) < 0.1)
    elif shape == "some jumps":
        size = np.where(rng.random(conversations) < 0.1, 0.8, 0.05)
    elif shape == "half without":
        size *= rng.random(conversations) < 0.55
    return size * rng.choice([-1, 1], conversations)


def levels(tables: int, seed: int) -> pd.DataFrame:
    """Return how often a mean difference is found where there is none, by signs exchanged and by the interval of t."""
    found = []
    for number, shape in enumerate(("small", "some jumps", "half without", "rare jumps")):
        for conversations in (12, 20, 40, 80):
            rng = np.random.default_rng([seed, number, conversations])
            p, outside = [], []
            for _ in range(tables):
                of = difference("shift", changes(shape, conversations, rng), np.arange(conversations), {})
                p.append(of.test(0)[0])
                low, high = of.of.interval(Z)
                outside.append(low > 0 or high < 0)
            found.append({
                "changes": shape, "conversations": conversations, "rejected": np.mean(np.array(p) <= 0.05),
                "rejected_by_t": np.mean(outside), "untested": np.mean(np.isnan(p)), "tables": tables, "seed": seed,
            })  # fmt: skip
    return pd.DataFrame(found)


if __name__ == "__main__":
    number = int(sys.argv[1])
    print(covered(range(number // 10)))
    levels(number, 7).round(6).to_csv(DATA / "validation" / "jury.csv", index=False)
