"""The reader of style: a classifier on character n-grams, always asked about unseen groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.errors import InputError

FOLDS = 5  # of the classifier of style


def out_of_fold(texts: Sequence[str], labels: Sequence[str], groups: Sequence) -> pd.DataFrame:
    """Return P(label) of every text, one column per label, each from a classifier that saw none of the text's group.

    texts: one per row, in the order of the result. groups: what has to stay together (the prompt, the conversation).
    The classifier is logistic regression on TF-IDF of character 2- to 4-grams within words; a ceiling on what a reader
    of style could know, and a baseline for judges. Raises `InputError` where there are fewer than two labels or groups.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    texts, labels, groups = np.asarray(texts, object), np.asarray(labels), np.asarray(groups)
    names, n_groups = np.unique(labels), len(np.unique(groups))
    if sum(len(np.unique(groups[labels == name])) > 1 for name in names) < 2:
        raise InputError("A classifier of style needs two labels that each have two groups.")
    features = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    model = make_pipeline(
        features, LogisticRegression(C=10, max_iter=1000, class_weight="balanced")
    )
    folds = GroupKFold(min(FOLDS, n_groups), shuffle=True, random_state=0)
    if any(len(np.unique(labels[learnt])) < 2 for learnt, _ in folds.split(texts, labels, groups)):
        folds = GroupKFold(n_groups)  # both groups of a rare label were in one fold
    with threadpool_limits(1, "blas"):  # with more, notebooks side by side take ten times as long
        found = cross_val_predict(
            model, texts, labels, groups=groups, cv=folds, method="predict_proba"
        )
    return pd.DataFrame(found, columns=names)
