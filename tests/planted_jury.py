"""Verdict records of jurors whose leniency, conformity and discrimination are known, drawn with numpy."""

import numpy as np
import pandas as pd

JURORS = {  # leniency, conformity, discrimination
    "lenient": (0.12, 0.5, 0.05),
    "stern": (-0.10, 0.2, 0.25),
    "blind": (0.0, 0.8, 0.0),
}


def planted_records(
    seed, conversations=30, turns=3, jurors=JURORS, conform=True, silent=0.0, noise=0.06, sham=0.0, redraw=False
) -> pd.DataFrame:
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
    names, place = np.array(list(jurors)), order.argsort(1) + 1
    frames = []
    for arm, rounds in arms.items():
        for number, scores in enumerate(rounds, 1):
            frames.append(pd.DataFrame({
                "conversation_id": [f"{c}-{'human' if h else 'model'}" for c, h in zip(conversation, human, strict=True)
                                    for _ in range(seats)],
                "pair": np.repeat(conversation, seats), "source": np.repeat(np.where(human, "human", "model"), seats),
                "turn": np.repeat(turn, seats), "arm": arm, "round": number, "position": place.ravel(),
                "juror": np.tile(names, len(grid)), "score": scores.ravel(),
                "peer_mean": strangers.ravel() if arm == "sham" and number == 2 else np.nan,
            }))  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    frame.loc[rng.random(len(frame)) < silent, "score"] = np.nan
    return frame


def truths(jurors=JURORS, conform=True) -> dict[tuple[str, str, str], float]:
    """Return {(arm, statistic, juror): planted value}."""
    found = {}
    lenient = np.array([traits[0] for traits in jurors.values()])
    for k, (name, (leniency, weight, tells)) in enumerate(jurors.items()):
        found["independent", "leniency", name] = leniency - np.delete(lenient, k).mean()
        found["independent", "discrimination", name] = tells
        found["debate", "conformity", name] = weight if conform else 0.0
    return found
