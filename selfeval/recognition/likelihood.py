"""Implicit recognition: how likely is each text under each model's weights?

The log-likelihood of a text given the request that it answers, log P(text | prompt, model), is the sum over its tokens.
Two scores follow, divided by the number of characters, since models of two families cut a text into different tokens:

own     of one candidate alone: what its weights hold. It says how ordinary a text is for the model.
oracle  the candidate's minus the logarithm of the mean likelihood of the other candidates, before the division: what a
        reader with all candidates sees, and no single model. By Bayes' rule its sign and size per text are those of the
        probability of having written it, where all candidates write equally often.

`implicit_predictions` makes prediction records of them, so that the statistics of answers are those of likelihoods: who
is the likeliest candidate (`predicted_model`), and the score of the candidate itself, mapped to 0..1.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import expit, logsumexp

from selfeval.asking.client import Client
from selfeval.asking.request import Request
from selfeval.errors import InputError
from selfeval.models import Model
from selfeval.recognition.texts import build_request
from selfeval.stats.readings import ORACLE, OWN


async def collect_likelihoods(client: Client, models: Sequence[Model], texts: Sequence[dict]) -> list[dict]:
    """Return one row per candidate and text: its log-likelihood in nats, null where a token's is missing."""
    design = [(model, text) for model in models for text in texts]
    requests = [
        Request(model, [*build_request(text), {"role": "assistant", "content": text["text"]}],
                {"likelihood": model.provider.likelihood})
        for model, text in design
    ]  # fmt: skip
    responses = await client.chat_all(requests, "likelihoods")
    rows = []
    for (model, text), response in zip(design, responses, strict=True):
        chances = [logprob for _, logprob, *_ in response.logprobs or ()]
        rows.append({
            "text_id": text["text_id"], "prompt_id": text["prompt_id"], "sample": text["sample"],
            "author": text["author"], "candidate": model.id, "logprob": sum(chances) if chances else None,
            "tokens": len(chances) or None, "characters": len(text["text"]), "status": response.status,
            "error": response.error, "served_model": response.served_model, "served_by": response.served_by,
        })  # fmt: skip
    return rows


def implicit_predictions(likelihoods: pd.DataFrame) -> pd.DataFrame:
    """Return prediction records of the task `exact_model`, one per text, candidate and score (`condition`).

    likelihoods: rows of `collect_likelihoods`. A text without the likelihood of a candidate is left out. Raises
    `InputError` where none is left, and for a single candidate.
    """
    wide = likelihoods.pivot_table(index="text_id", columns="candidate", values="logprob", sort=False, dropna=False)
    wide = wide.astype(float).dropna()
    if wide.empty or len(wide.columns) < 2:
        raise InputError("No text has a likelihood under each of two candidates or more; ask more `models`.")
    about = likelihoods.drop_duplicates("text_id").set_index("text_id").loc[wide.index]
    values, length, parts = wide.to_numpy(), about["characters"].to_numpy(), []
    for place, candidate in enumerate(wide.columns):
        own, others = values[:, place], np.delete(values, place, axis=1)
        scores = {ORACLE: own - logsumexp(others, axis=1) + np.log(others.shape[1]), OWN: own}
        for name, score in scores.items():
            rows = about[["prompt_id", "sample"]].assign(
                true_model=about["author"], evaluator_model=candidate, task_type="exact_model",
                score=expit(score / length),
                predicted_model=wide.columns[values.argmax(1)], status="ok", condition=f"reading={name}",
            )  # fmt: skip
            parts.append(rows.reset_index())
    return pd.concat(parts, ignore_index=True)
