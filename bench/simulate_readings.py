"""Planted readings: authors with known likelihood ratios and answer habits, and how often intervals hold the truth.

Run it for `data/validation/readings.csv`: python bench/simulate_readings.py 1000
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from selfeval.recognition.contrasts import reading_gaps  # noqa: E402
from selfeval.recognition.texts import implicit_predictions  # noqa: E402
from selfeval.stats import recognition_table  # noqa: E402

PROMPTS, AUTHORS = 40, ("a", "b", "c")
KNOWS = {"a": 2.0, "b": 0.7, "c": 0.0}  # how much likelier a text is under its author's weights, in sds of the noise
SAYS = {"a": 0.0, "b": 0.6, "c": 0.0}  # how much of it shows in the words
HABIT = {"a": 1.5, "b": 0.0, "c": -1.2}  # how readily the evaluator says "mine"


def world(prompts: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return likelihoods and answers of three models about each other's texts.

    A text has what it shares with its prompt, and its noise under one candidate and in one evaluator's answer go
    together, so that the two readings are not independent.
    """
    draw = np.random.default_rng(seed)
    texts = pd.DataFrame({"prompt_id": np.repeat(np.arange(prompts), 3), "author": AUTHORS * prompts})
    texts["text_id"], ease = np.arange(len(texts)), np.repeat(draw.normal(0, 2, prompts), 3)
    likelihoods, answers = [], []
    for name in AUTHORS:
        own, noise = texts["author"] == name, draw.normal(0, 1, len(texts))
        likelihoods.append(texts.assign(candidate=name, logprob=-80 + ease + KNOWS[name] * own + noise))
        mixed = 0.6 * noise + 0.8 * draw.normal(0, 1, len(texts))
        score = SAYS[name] * own + mixed + HABIT[name] + 0.3 * ease
        answers.append(texts.assign(evaluator_model=name, score=1 / (1 + np.exp(-score)), predicted_self=score > 0))
    answers = pd.concat(answers, ignore_index=True).rename(columns={"author": "true_model"})
    answers = answers.assign(task_type="binary_self", condition="reading=yes or no")
    return pd.concat(likelihoods, ignore_index=True).assign(characters=1, sample=0), answers


def estimates(prompts: int, seed: int) -> pd.DataFrame:
    """Return the oracle's AUC, explicit J and the gap of AUC of every model, with their intervals."""
    likelihoods, answers = world(prompts, seed)
    readings = pd.concat([implicit_predictions(likelihoods), answers], ignore_index=True)
    table = recognition_table(readings, n_resamples=1).drop_duplicates(
        ["condition", "evaluator", "author", "statistic"]
    )
    chosen = table[table["author"] == ""].query(
        "(condition == 'reading=oracle' and statistic == 'auc_within_prompt')"
        " or (condition == 'reading=yes or no' and statistic == 'discrimination')"
    )
    gaps = reading_gaps(readings).assign(statistic="gap")
    return pd.concat([chosen, gaps]).set_index(["statistic", "evaluator"])[["estimate", "low", "high"]]


def coverage(seeds: range) -> pd.DataFrame:
    """Return per statistic and model the truth (of 40,000 prompts) and the share of intervals that hold it."""
    truth = estimates(40_000, 10**6)["estimate"]
    tables = [estimates(PROMPTS, seed) for seed in seeds]
    held = sum(((t["low"] <= truth) & (truth <= t["high"])).astype(float) for t in tables) / len(tables)
    mean = sum(t["estimate"] for t in tables) / len(tables)
    return pd.DataFrame({"truth": truth, "mean": mean, "coverage": held}).assign(tables=len(tables)).reset_index()


if __name__ == "__main__":
    found = coverage(range(int(sys.argv[1])))
    print(found.to_string())
    out = Path(__file__).resolve().parent.parent / "data" / "validation" / "readings.csv"
    found.to_csv(out, index=False, float_format="%.4f")
