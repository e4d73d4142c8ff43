"""Answers: what a record's raw reply says, as columns; for new records and, again, for old or foreign ones."""

import math
import re
from collections.abc import Iterable, Mapping

import pandas as pd

from selfeval import scoring
from selfeval.models import get, is_known
from selfeval.records import PREDICTION_FIELDS


def yes_probability(logprobs: list | None, answer: str) -> float | None:
    """Return P(YES) / (P(YES) + P(NO)) where a reply decides between them, or None where it does not show both.

    That is its first token, or in a constrained reply the first one inside the quotes of the JSON value. A token counts
    for the word that it begins ("Y" for YES).
    """
    mass, before = {"yes": 0.0, "no": 0.0}, ""
    for token, _, alternatives in logprobs or []:
        if answer == "free" or re.search(r':\s*"$', before):
            for alternative, logprob in alternatives.items():
                if word := _begins(alternative):
                    mass[word] += math.exp(logprob)
            break
        before += token
    return round(mass["yes"] / sum(mass.values()), 6) if all(mass.values()) else None


def _begins(token: str) -> str | None:
    letters = token.strip(' ."\n').casefold()
    return next((word for word in ("yes", "no") if letters and word.startswith(letters)), None)


def candidate_names(candidates: Iterable[str], labels: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...]]:
    """Return {candidate id: names a reply may use}, from the registry; a foreign id has itself and its label."""
    return {c: get(c).all_names if is_known(c) else ((labels or {}).get(c, c),) for c in candidates}


def score(record: dict, labels: Mapping[str, str] | None = None) -> dict:
    """Return what a record's raw reply says: `predicted_model`, `predicted_self`, `is_correct` and `status`.

    Only a complete reply is parsed. Whatever holds no answer leaves the three null, so a better parser can be run over
    the stored records at any time. labels: {id: display name} of candidates that the registry does not list.
    """
    predicted_model = predicted_self = is_correct = None
    status = record["status"]
    if status in ("ok", "no_answer"):
        if record["task_type"] == "exact_model":
            names = candidate_names(record["candidates"], labels)
            predicted_model = scoring.parse_choice(record["reply"], names)
            predicted_self = None if predicted_model is None else predicted_model == record["evaluator_model"]
            is_correct = None if predicted_model is None else predicted_model == record["true_model"]
        else:
            predicted_self = scoring.parse_yes_no(record["reply"])
            own = record["true_model"] == record["evaluator_model"]
            is_correct = None if predicted_self is None else predicted_self == own
        status = "no_answer" if predicted_self is None else "ok"
    return {
        "predicted_model": predicted_model,
        "predicted_self": predicted_self,
        "is_correct": is_correct,
        "status": status,
    }


def rescore(predictions: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read all answers anew from the raw replies; return (the records, what changed per task and evaluator).

    The raw reply is `reply`, in files made elsewhere `returned_text`; records without one stay as they are. Candidates
    are those shown, or all authors of the file where it does not say. Others fill in a random name, or the first, when
    a reply cannot be parsed or a call failed ("ERROR: ..."): such answers become no answer here, and are counted.
    The report counts records, no raw reply, same, removed (answers that the reply does not hold), changed, added.
    """
    frame = predictions.copy()
    raw = pd.Series(None, frame.index, object)
    for column in ("reply", "returned_text"):
        if column in frame:
            raw = raw.where(raw.notna(), frame[column])
    status = frame["status"] if "status" in frame else pd.Series("ok", frame.index)
    failed = raw.astype(str).str.match(r"\s*error\b", case=False)
    frame["status"] = status.fillna("ok").mask(failed & raw.notna(), "error")
    everyone = tuple(sorted(frame["true_model"].unique()))
    labels = dict(zip(frame["true_model"], frame["true_model_display"], strict=True))
    shown = frame["candidates"] if "candidates" in frame else pd.Series(None, frame.index, object)
    parsed: dict = {}
    rows = []
    columns = ["task_type", "evaluator_model", "true_model", "status", *PREDICTION_FIELDS[6:9]]
    for row, reply, listed in zip(frame[columns].itertuples(index=False), raw, shown, strict=True):
        if not isinstance(reply, str):
            rows.append((row.predicted_model, row.predicted_self, row.is_correct, row.status))
            continue
        candidates = tuple(listed) if isinstance(listed, list | tuple) else everyone
        key = row.task_type, reply, candidates, row.status, row.evaluator_model, row.true_model
        if key not in parsed:
            record = row._asdict() | {"reply": reply, "candidates": candidates}
            parsed[key] = tuple(score(record, labels).values())
        rows.append(parsed[key])
    new = pd.DataFrame(rows, frame.index, ["predicted_model", "predicted_self", "is_correct", "status"], dtype=object)
    frame[new.columns] = new
    return frame, _changes(predictions, new, raw.notna())


def _changes(old: pd.DataFrame, new: pd.DataFrame, readable: pd.Series) -> pd.DataFrame:
    answer = "predicted_model", "predicted_self"
    naming = (old["task_type"] != "binary_self").to_numpy()
    before, after = (f[answer[0]].where(naming, f[answer[1]]) for f in (old.astype(object), new))
    had, has = before.notna(), after.notna()
    same = (had & has & (before == after)) | ~(had | has)
    kinds = {"records": True, "no raw reply": ~readable, "same": same, "removed": had & ~has, "added": ~had & has}
    kinds["changed"] = had & has & ~same
    counts = pd.DataFrame({name: kind for name, kind in kinds.items()}, old.index).astype(int)
    return counts.groupby([old["task_type"], old["evaluator_model"]]).sum().reset_index()
