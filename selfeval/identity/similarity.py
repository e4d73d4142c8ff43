"""Semantic similarity as a scorer.

Whether a reply is nearest to a statement of who the model is, by embeddings. It counts as the
model's own identity where the cosine to one of its statements ("I am NAME, made by MAKER.") is at
least `THRESHOLD` and above that of every other configured name. Embeddings hardly see a denial: how
often it errs is in `data/validation/scorers.csv`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from selfeval.errors import InputError
from selfeval.identity.names import Names, entity
from selfeval.providers.client import Client
from selfeval.providers.models import Model
from selfeval.providers.request import Request, user

METHOD = "semantic_similarity"
# the most accurate on the development half of the labelled replies, with wordllama
THRESHOLD = 0.65
ABSENT = (
    "`scoring` is 'semantic_similarity', which needs embeddings: pip install "
    "'selfeval[similarity]', "
    "or name an embedding model of the registry as `judge`."
)


class Nearness(NamedTuple):
    """The cosines of a reply to the nearest statement of its model and of another one."""

    own: float
    other: float

    @property
    def stance(self) -> str:
        """Return whom the reply names: truth (the model itself), foil (another), or none."""
        if max(self) < THRESHOLD:
            return "none"
        return "truth" if self.own > self.other else "foil"


def statement(name: str, known: Names) -> str:
    """Return what a model of this name would say of itself.

    It says its maker, too, where the lexicon knows one.
    """
    who = entity(name, known)
    return f"I am {name}, made by {who.developer}." if who and who.developer else f"I am {name}."


def statements(names: Sequence[str], known: Names) -> list[str]:
    """Return a statement for each name."""
    return [statement(name, known) for name in names if name]


def nearness(
    reply: str, own: Sequence[str], others: Sequence[str], vectors: Mapping
) -> Nearness | None:
    """Return how near a reply is to own and to others' statements.

    None where an embedding is missing.
    """
    if not all(text in vectors for text in (reply, *own, *others)):
        return None

    def nearest(texts: Sequence[str]) -> float:
        return max((float(vectors[reply] @ vectors[text]) for text in texts), default=-1.0)

    return Nearness(nearest(own), nearest(others))


async def embed(client: Client, model: Model | None, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Return {text: vector of length 1}, without the texts whose embedding failed.

    model: an embedding model, whose replies are bought once like all others; None: wordllama, on
    this machine.
    """
    different = list(dict.fromkeys(texts))
    if not different:
        return {}
    if model is None:
        return _of_length_1(zip(different, static_model().embed(different), strict=True))
    if client.batch:
        raise InputError(
            "Embeddings are not asked in batches; leave `batch` out, the replies are stored "
            "already."
        )
    how = {"embedding": "float", "max_tokens": 1}
    responses = await client.chat_all(
        [Request(model, user(text), how) for text in different], "embeddings"
    )
    return _of_length_1(
        zip(different, [_vector(response.text) for response in responses], strict=True)
    )


def _vector(written: str) -> np.ndarray:
    """Return the vector that a response holds as JSON, one of zeros where it holds none."""
    try:
        return np.array(json.loads(written), dtype=float).ravel()
    except (ValueError, TypeError):
        return np.zeros(1)


def _of_length_1(vectors: Iterable[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return vectors divided by their length; one of zeros has no direction and is left out."""
    found = {}
    for text, vector in vectors:
        if length := np.linalg.norm(vector):
            found[text] = vector / length
    return found


@cache
def static_model():
    """Return wordllama's model.

    Raises `InputError` with the remedy where it is not installed. It downloads nothing.
    """
    try:
        import wordllama
    except ImportError as error:
        raise InputError(ABSENT) from error
    folder = Path(
        wordllama.__file__
    ).parent  # its own search misses the tokenizer beside its weights
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
