"""Semantic similarity as a scorer: whether a reply is nearest to a statement of who the model is, by embeddings.

It counts as the model's own identity where the cosine to one of its statements ("I am NAME, made by MAKER.") is at
least `THRESHOLD` and above that of every other configured name. Embeddings hardly see a denial: how often it errs is
in `data/validation/scorers.csv`.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from selfeval.asking.client import Client
from selfeval.asking.request import Request, user
from selfeval.errors import InputError
from selfeval.identity.names import Names, entity
from selfeval.models import Model

METHOD = "semantic_similarity"
THRESHOLD = 0.65  # the most accurate on the development half of the labelled replies, with wordllama
ABSENT = (
    "`scoring` is 'semantic_similarity', which needs embeddings: pip install 'selfeval[similarity]', "
    "or name an embedding model of the registry as `judge`."
)


class Nearness(NamedTuple):
    """The cosine of a reply to the nearest statement of who the model is, and to the nearest of another model."""

    own: float
    other: float

    @property
    def stance(self) -> str:
        """Return whom the reply names: truth (the model itself), foil (another), or none."""
        if max(self) < THRESHOLD:
            return "none"
        return "truth" if self.own > self.other else "foil"


def statement(name: str, known: Names) -> str:
    """Return what a model of this name would say of itself, with its maker where the lexicon knows one."""
    who = entity(name, known)
    return f"I am {name}, made by {who.developer}." if who and who.developer else f"I am {name}."


def statements(names: Sequence[str], known: Names) -> list[str]:
    """Return a statement for each name."""
    return [statement(name, known) for name in names if name]


def nearness(reply: str, own: Sequence[str], others: Sequence[str], vectors: Mapping) -> Nearness | None:
    """Return how near a reply is to own and to others' statements; None where an embedding is missing."""
    if not all(text in vectors for text in (reply, *own, *others)):
        return None

    def nearest(texts: Sequence[str]) -> float:
        return max((float(vectors[reply] @ vectors[text]) for text in texts), default=-1.0)

    return Nearness(nearest(own), nearest(others))


async def embed(client: Client, model: Model | None, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Return {text: vector of length 1}, without the texts whose embedding failed.

    model: an embedding model, whose replies are bought once like all others; None: wordllama, on this machine.
    """
    different = list(dict.fromkeys(texts))
    if model is None:
        found = static_model().embed(different) if different else []
        return _of_length_1(dict(zip(different, found, strict=True)))
    if client.batch:
        raise InputError("Embeddings are not asked in batches; leave `batch` out, the replies are stored already.")
    how = {"embedding": "float", "max_tokens": 1}
    responses = await client.chat_all([Request(model, user(text), how) for text in different], "embeddings")
    read = {text: _vector(response.text) for text, response in zip(different, responses, strict=True)}
    return _of_length_1({text: vector for text, vector in read.items() if vector is not None})


def _vector(written: str) -> np.ndarray | None:
    """Return the vector that a response holds as JSON, None where it holds none."""
    try:
        vector = np.array(json.loads(written), dtype=float)
    except (ValueError, TypeError):
        return None
    return vector if vector.ndim == 1 and vector.size else None


def _of_length_1(vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    lengths = {text: float(np.linalg.norm(vector)) for text, vector in vectors.items()}
    return {text: vector / lengths[text] for text, vector in vectors.items() if lengths[text] > 0}


@cache
def static_model():
    """Return wordllama's model; raise `InputError` with the remedy where it is not installed. It downloads nothing."""
    try:
        import wordllama
    except ImportError as error:
        raise InputError(ABSENT) from error
    folder = Path(wordllama.__file__).parent  # its own search misses the tokenizer beside its weights
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
