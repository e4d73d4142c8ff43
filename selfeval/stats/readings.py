"""Readings of the same texts side by side: what a model says, what its weights hold, what others can see.

A reading is a way to tell an evaluator's own texts from others': its answers, the likelihood under its own weights,
that likelihood against all other candidates' (the oracle, which no single model can compute), a classifier of style
that knows no model. Each is a condition of prediction records, `reading=<name>`; each has an AUC within prompts and,
but for the own likelihood, J. The gap is the AUC of the own likelihood minus another reading's, paired by prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.contrasts import FIELDS, common_rows
from selfeval.stats.engine import Settings, Statistic
from selfeval.stats.recognition import measures_of
from selfeval.stats.table import COLUMNS, INVERTED, Measure, adjusted, write
from selfeval.stats.tallies import BINARY, Tally, conditions, prompts, tallies, varying_parts

ORACLE, OWN, STYLE = "oracle", "own likelihood", "style"
COMPARED = "auc_within_prompt"
FOLDS = 5  # of the classifier of style
TOLD = {"told=true": "told", "told=false": "untold", ";": ", "}
SAID = {BINARY: "yes or no"}  # other tasks: "names the author"


def as_readings(answers: pd.DataFrame) -> pd.DataFrame:
    """Return prediction records of the exact and yes/no tasks with their reading as `condition`."""
    frame = answers[answers["task_type"].isin(["exact_model", BINARY])]
    labels, parts = conditions(frame).astype(object), []
    for task, of_task in frame.groupby("task_type", sort=True):
        varying = varying_parts(labels[of_task.index].unique())
        said = labels[of_task.index].map(varying).replace(TOLD, regex=True)
        name = SAID.get(task, "names the author")
        parts.append(of_task.assign(condition="reading=" + name + said.where(said == "", ", " + said)))
    return pd.concat(parts)


def reading_gaps(readings: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Return the AUC within prompts of a model's own likelihood minus that of its words, and of the style.

    readings: prediction records with `reading=...` as condition, one of them `reading=own likelihood`. Only prompts and
    evaluators of both are compared (note `common_prompts`). Intervals are MOVER over the two with the correlation of
    their prompts, p is its inversion, p_holm over evaluators. Returns `stats.COLUMNS`, `field` ("reading"), `first`
    (the other reading) and `second`; empty where no other reading is of the same prompts.
    """
    frame, parts = readings.reset_index(drop=True), []
    frame = frame.assign(unit=prompts(frame)[0], reading=frame["condition"].str.removeprefix("reading="))
    weights = frame[frame["reading"] == OWN]
    for (task, name), other in frame.groupby(["task_type", "reading"], sort=False):
        sides = common_rows([other, weights], ("unit", "evaluator_model"))
        if name in (OWN, ORACLE) or any(side.empty for side in sides):
            continue
        both = {tally.condition: _by_evaluator(tally) for tally in tallies(pd.concat(sides))}  # which have one order
        one, two = both[f"reading={name}"], both[f"reading={OWN}"]
        found = [
            Measure(COMPARED, two[name] - one[name], {"evaluator": name, "policy": "all"}, test=INVERTED)
            for name in one if name in two
        ]  # fmt: skip
        if not found:
            continue  # no answer has a probability
        whole = max(side["unit"].nunique() for side in (other, weights))
        note = "common_prompts" * (sides[0]["unit"].nunique() < whole)
        table = adjusted(write(found, Settings(level=level), task=task, note=note), ["statistic"], compared=True)
        parts.append(table.assign(**dict(zip(FIELDS, ["reading", name, OWN], strict=True))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, *FIELDS])


def _by_evaluator(tally: Tally) -> dict[str, Statistic]:
    """Return {evaluator: its AUC within prompts} of one reading."""
    return {m.labels["evaluator"]: m.of for m in measures_of(tally, "all") if m.statistic == COMPARED}


# the reader of style: a classifier on character n-grams, always asked about unseen groups --------------------------


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
