"""How much texts give away by style alone: a classifier on character n-grams, always asked about unseen groups."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.errors import InputError

FOLDS = 5


def out_of_fold(texts: Sequence[str], labels: Sequence[str], groups: Sequence) -> pd.DataFrame:
    """Return P(label) of every text, one column per label, each from a classifier that saw none of the text's group.

    texts: one per row, in the order of the result. groups: what has to stay together (the prompt, the conversation).
    The classifier is logistic regression on TF-IDF of character 2- to 4-grams within words; a ceiling on what a reader
    of style could know, and a baseline for judges. Raises `InputError` where there are fewer than two labels or groups.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline

    texts, labels, groups = np.asarray(texts, object), np.asarray(labels), np.asarray(groups)
    names, n_groups = np.unique(labels), len(np.unique(groups))
    if len(names) < 2 or n_groups < 2:
        raise InputError(
            f"A classifier of style needs two labels and two groups of texts, got {len(names)} and {n_groups}."
        )
    found = pd.DataFrame(0.0, range(len(texts)), names)
    for train, test in GroupKFold(min(FOLDS, n_groups), shuffle=True, random_state=0).split(texts, labels, groups):
        features = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
        model = make_pipeline(features, LogisticRegression(C=10, max_iter=1000, class_weight="balanced"))
        model.fit(texts[train], labels[train])
        found.loc[test, model.classes_] = model.predict_proba(texts[test])
    return found


def predict_authors(texts: Sequence[dict]) -> pd.DataFrame:
    """Return prediction records of the classifier as an evaluator named `style`: whom it takes for the author.

    texts: text records. It never sees another text on the same prompt. What it recognises is in the texts, so its J per
    author (`stats.recognition_table`) is a floor of what there is to know, and a ceiling for readers of style.
    """
    frame, chances = _judged(texts)
    return frame.assign(predicted_model=chances.idxmax(axis=1), evaluator_model="style")


def read_for_authors(texts: Sequence[dict]) -> pd.DataFrame:
    """Return prediction records of the classifier as a reader for each author: `score` is P(that author wrote it)."""
    frame, chances = _judged(texts)
    named = chances.idxmax(axis=1)
    parts = [frame.assign(predicted_model=named, evaluator_model=name, score=chances[name]) for name in chances]
    return pd.concat(parts, ignore_index=True)


def _judged(texts: Sequence[dict]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what records say of the texts, and P(author) of each."""
    frame = pd.DataFrame(texts)
    chances = out_of_fold(frame["text"], frame["author"], frame["prompt_id"])
    return frame[["text_id", "prompt_id"]].assign(true_model=frame["author"], task_type="exact_model"), chances
