"""Prediction records for tests of the statistics: from answers, from pairs, and drawn."""

from itertools import product

import numpy as np
import pandas as pd

from selfeval.providers.models import Model
from selfeval.records.texts import text_fields

FAST = {"n_resamples": 50}


def naming(answers: dict[tuple[str, str], list], task="exact_model", **columns) -> pd.DataFrame:
    """Build records: {(evaluator, author): answer for prompt 0, 1, ...}."""
    rows = [
        {"text_id": f"{author}-{prompt}", "true_model": author, "evaluator_model": evaluator, "task_type": task,
         "predicted_model": answer, "predicted_self": None, "prompt_id": prompt}
        for (evaluator, author), given in answers.items() for prompt, answer in enumerate(given)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def texts_of(*authors, prompts=2, samples=1):
    """Return a text of every author on every prompt; an author is a model, a name, or (name, display name)."""
    named = [(one.id, one.display) if isinstance(one, Model) else one for one in authors]
    named = [one if isinstance(one, tuple) else (one, one) for one in named]
    return [
        text_fields(*name, f"p{p}", f"Write about thing {p}.", s, f"{p} {s} of {k}.") | {"text_id": number}
        for number, (p, s, (k, name)) in enumerate(product(range(prompts), range(samples), enumerate(named)))
    ]


def binary(answers: dict[tuple[str, str], list]) -> pd.DataFrame:
    frame = naming(answers, "binary_self")
    return frame.assign(predicted_self=frame["predicted_model"], predicted_model=None)


def everybody(n_authors: int, n_prompts: int, say) -> pd.DataFrame:
    """Every evaluator answers `say(evaluator, author, prompt)`, over all authors."""
    ids = [f"m{i}" for i in range(n_authors)]
    return naming({(e, t): [say(e, t, p) for p in range(n_prompts)] for e in ids for t in ids})


def simulated(seed, n_models=3, n_prompts=30, samples=1, know=0.4, none=0.0, drop=0.0, task="exact_model"):
    rng = np.random.default_rng(seed)
    ids = np.array([f"m{i}" for i in range(n_models)] + [None], object)
    e, t, p, s = (x.ravel() for x in np.indices((n_models, n_models, n_prompts, samples)))
    answer = np.where(rng.random(len(e)) < know, t, rng.integers(0, n_models, len(e)))
    answer = np.where(rng.random(len(e)) < none, -1, answer)
    mine = np.where(answer < 0, None, answer == e)
    frame = pd.DataFrame({
        "text_id": (t * n_prompts + p) * samples + s, "true_model": ids[t], "evaluator_model": ids[e],
        "task_type": task, "prompt_id": p, "predicted_model": ids[answer] if task != "binary_self" else None,
        "predicted_self": mine if task == "binary_self" else None,
    })  # fmt: skip
    return frame[rng.random(len(frame)) >= drop]


def row(table: pd.DataFrame, statistic: str, evaluator: str = "a", author: str = "", **where) -> pd.Series:
    """Return the first row of a statistic that fits: the default. None fits all."""
    for column, value in {"statistic": statistic, "evaluator": evaluator, "author": author, **where}.items():
        table = table if value is None else table[table[column] == value]
    return table.iloc[0]
