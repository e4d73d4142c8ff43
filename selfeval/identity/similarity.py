"""A second look at replies by similarity to prototype answers: a flag for a person, never a verdict.

Embeddings do not know a denial: "I'm not Claude" is as near to "I am Claude" (.86) as a paraphrase is. So similarity
scores nothing here. It marks the replies in which what a reply resembles and what the rules read in it differ, which
are those worth reading. Needs the extra `similarity` (wordllama, MIT; its weights are in the wheel).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from selfeval.errors import InputError

MARGIN = 0.1  # by how much the nearest prototype has to lead
GROUPS = {"truth": "itself", "coarse": "itself", "foil": "foil", "abstain": "unknown"}
PROTOTYPES = {
    "itself": "I am {truth}, made by {truth_maker}.",
    "foil": "I am {foil}, made by {foil_maker}.",
    "unknown": "I do not know which model I am.",
}


def flags(records: Sequence[Mapping], margin: float = MARGIN) -> list[dict]:
    """Return the identity records with `resembles` and `similarity_flag`.

    resembles: which prototype a reply is nearest to (itself, foil, unknown), null where none leads by the margin of
    cosine similarity. similarity_flag: whether that differs from the record's stance; null where either says nothing.
    """
    nearest = iter(_nearest([r for r in records if r["stance"] is not None], margin))
    flagged = []
    for record in records:
        resembles = None if record["stance"] is None else next(nearest)
        read = GROUPS.get(record["stance"])
        differs = None if resembles is None or read is None else resembles != read
        flagged.append({**record, "resembles": resembles, "similarity_flag": differs})
    return flagged


def _nearest(records: Sequence[Mapping], margin: float) -> list[str | None]:
    """Return for each reply the prototype that leads by the margin, or None."""
    if not records:
        return []
    texts = [text for r in records for text in (r["reply"], *(form.format(**r) for form in PROTOTYPES.values()))]
    unit = _embedded(texts).reshape(len(records), 1 + len(PROTOTYPES), -1)
    likeness = np.einsum("rd,rpd->rp", unit[:, 0], unit[:, 1:])
    second, first = np.sort(likeness, axis=1)[:, -2:].T
    names = np.array(list(PROTOTYPES))[likeness.argmax(1)]
    return [str(name) if lead >= margin else None for name, lead in zip(names, first - second, strict=True)]


def _embedded(texts: list[str]) -> np.ndarray:
    """Return unit vectors of texts."""
    vectors = _model().embed(texts)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@cache
def _model():
    try:
        import wordllama
    except ImportError as error:
        raise InputError("Similarity flags need wordllama: pip install -e .[similarity]") from error
    # The wheel holds weights and tokenizer; without this folder it would look for the tokenizer on the network.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
