"""The existence test: what a model says of real models against what it says of invented ones."""

from __future__ import annotations

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.counts import check_frame, ids, same_codes, shares, truth_codes
from selfeval.stats.intervals import Difference, Rate, check_level
from selfeval.stats.serving import flagged, served_by_several
from selfeval.stats.testing import holm, inverted_p

FEW_TARGETS = 20


def existence_table(records: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Estimate, per evaluator and way of answering, the mean score of real and invented names, and their difference.

    records: as `existence.collect_existence` makes them; needs evaluator, target_model, exists, existence_score,
    answer_type; uses asked_reasoning, and template_id, question and iteration to find a question that is there twice.
    The sampled unit is the target: all questions about one name come along. Real and invented names are independent
    samples. A model that says yes to every name has discrimination 0.

    Returns evaluator, author (empty), task, condition, statistic (score_real, score_invented, discrimination,
    no_answer_rate), estimate, low, high, level, method, p, p_holm (over evaluators), n, n_targets, note. No answer is
    left out of the scores. Notes: not_estimable; few_targets (below 20: the interval is optimistic); several_endpoints
    (the evaluator's replies come from several endpoints, see `serving`).
    """
    z = check_level(level)
    frame = _checked(records)
    rows = []
    groups = frame.groupby(["answer_type", "asked_reasoning", "evaluator"], sort=False)
    for (answer, reasoned, evaluator), group in groups:
        condition = f"answer={answer};reasoning={str(bool(reasoned)).lower()}"
        target = pd.factorize(group["target_model"])[0]
        score, exists = group["existence_score"].to_numpy(), group["exists"].to_numpy()
        real, invented = (_rate(target, score, side & ~np.isnan(score)) for side in (exists, ~exists))
        silent = Rate.of(np.bincount(target, np.isnan(score)), np.bincount(target))
        measures = {"score_real": real, "score_invented": invented, "discrimination": Difference(real, invented),
                    "no_answer_rate": silent}  # fmt: skip
        for name, measured in measures.items():
            low, high = measured.interval(z)
            clusters = int(real.clusters + invented.clusters) if name == "discrimination" else int(measured.clusters)
            unknown = np.isnan(measured.value)
            rows.append({
                "evaluator": evaluator, "author": "", "task": "existence", "condition": condition, "statistic": name,
                "estimate": float(measured.value), "low": float(low), "high": float(high), "level": level,
                "method": measured.method, "p": float(inverted_p(measured)) if name == "discrimination" else np.nan,
                "n": int(measured.trials), "n_targets": clusters,
                "note": "not_estimable" if unknown else "few_targets" if clusters < FEW_TARGETS else "",
            })  # fmt: skip
    table = pd.DataFrame(rows)
    tested = table.groupby(["condition", "statistic"], sort=False)["p"].transform(lambda p: holm(p.to_numpy()))
    table.insert(table.columns.get_loc("p") + 1, "p_holm", tested)
    return flagged(table, served(records), ["evaluator"])


def served(records: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return the endpoints of the evaluators that several of them served."""
    return served_by_several(records, ("evaluator", "served_model", "served_by"))


def _checked(records: pd.DataFrame) -> pd.DataFrame:
    """Return the fields that count, `exists` and `asked_reasoning` as booleans; every question is there once."""
    check_frame(records, "Existence records")
    missing = {"evaluator", "target_model", "exists", "existence_score", "answer_type"} - set(records)
    if missing:
        raise InputError(f"Existence records need the fields {', '.join(sorted(missing))}.")
    frame = records.reset_index(drop=True)
    for name in ("evaluator", "target_model", "answer_type"):
        ids(frame, name)
    told = [name for name in ("exists", "asked_reasoning") if name in frame]
    truth = {name: truth_codes(frame[name], name) for name in told}
    for name, codes in truth.items():
        if (codes < 0).any():
            raise InputError(f"Column `{name}` must hold true or false, but row {int(np.argmax(codes < 0))} is null.")
    score = shares(frame["existence_score"], "existence_score")
    frame = frame.assign(existence_score=score, **{name: codes == 1 for name, codes in truth.items()})
    if "asked_reasoning" not in frame:
        frame["asked_reasoning"] = False
    sides = frame.groupby("target_model", sort=False)["exists"].nunique()
    if (sides > 1).any():
        raise InputError(f"The target {sides.idxmax()!r} is both real and invented in the records; correct `exists`.")
    if "template_id" in frame:  # without it, questions about one name cannot be told apart
        key = ["evaluator", "target_model", "answer_type", "asked_reasoning", "template_id", "question", "iteration"]
        twice = pd.DataFrame({name: same_codes(frame[name], name) for name in key if name in frame}).duplicated()
        if twice.any():
            row = frame.loc[twice.idxmax()]
            raise InputError(
                f"Evaluator {row['evaluator']!r} was asked about {row['target_model']!r} twice by the template "
                f"{row['template_id']!r} (row {twice.idxmax()}); keep one, or number them by `iteration`."
            )
    return frame


def _rate(target: np.ndarray, score: np.ndarray, use: np.ndarray) -> Rate:
    """Return the mean score of the rows in use, with targets as clusters."""
    size = target.max(initial=-1) + 1
    total = np.bincount(target[use], np.nan_to_num(score)[use], minlength=size)
    return Rate.of(total, np.bincount(target[use], minlength=size))
