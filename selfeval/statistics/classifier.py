"""The reader of style: a classifier on character n-grams, always asked about unseen groups."""

from __future__ import annotations

import numpy as np
import pandas as pd

from selfeval.errors import InputError

FOLDS = 5


def out_of_fold(texts, labels, groups) -> pd.DataFrame:
    """Return P(label) of every text, each from a classifier that saw none of the text's group.

    There is one column per label. texts: one per row, in the order of the result. groups: what has
    to stay together (the prompt, the conversation). The classifier is logistic regression on TF-IDF
    of character 2- to 4-grams within words; a ceiling on what a reader of style could know, and a
    baseline for judges. Raises `InputError` where there are fewer than two labels or groups.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    texts = np.asarray(texts, object)
    labels = np.asarray(labels)
    groups = np.asarray(groups)
    groups_of_labels = pd.Series(groups).groupby(labels).nunique()
    if (groups_of_labels > 1).sum() < 2:
        raise InputError("A classifier of style needs two labels that each have two groups.")

    features = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    regression = LogisticRegression(C=10, max_iter=1000, class_weight="balanced")
    n_groups = len(np.unique(groups))
    folds = GroupKFold(min(FOLDS, n_groups), shuffle=True, random_state=0)
    learnt = [labels[rows] for rows, _ in folds.split(texts, labels, groups)]
    if min(len(np.unique(of_fold)) for of_fold in learnt) < 2:
        # Both groups of a rare label were in one fold.
        folds = GroupKFold(n_groups)
    # With more threads, notebooks side by side take ten times as long.
    with threadpool_limits(1, "blas"):
        chances = cross_val_predict(
            make_pipeline(features, regression),
            texts,
            labels,
            groups=groups,
            cv=folds,
            method="predict_proba",
        )
    return pd.DataFrame(chances, columns=np.unique(labels))
