"""Answers: what a record's raw reply says, as columns; for new records and, again, for old or foreign ones."""

import math
import re
from collections.abc import Iterable, Mapping

import pandas as pd

from selfeval import scoring
from selfeval.errors import InputError
from selfeval.models import models
from selfeval.prompts import PAIR
from selfeval.records import PREDICTION_FIELDS

PLACES = {"1": (PAIR[0], "first", "first text", "first one"), "2": (PAIR[1], "second", "second text", "second one")}
PAIR_FIELDS = ("position", "other_model")


def probabilities(logprobs: list | None, options: Mapping[str, str], answer: str) -> dict[str, float | None] | None:
    """Return P(option) from the log-probabilities of a reply that decides between options, or None.

    options: {id: how it is written}. The reply begins with the option, or in a constrained reply the JSON value does.
    At each token the alternatives that lead to one option only add to it, until the reply itself is down to one; an
    alternative counts for what it begins ("Y" for YES). Options that are not among the alternatives get 0. One that
    shares more than a hundredth of what is shown with others (" (" begins several names) is null. None as a whole where
    the reply shows fewer than two options.
    """
    labels = {option: label.casefold() for option, label in options.items()}
    mass, shared, shown = dict.fromkeys(options, 0.0), dict.fromkeys(options, 0.0), 0.0
    path, prefix = 1.0, ""
    for token, _, alternatives in _value_tokens(logprobs or [], answer):
        alive = _begun(labels, prefix, token)
        for alternative, logprob in alternatives.items():
            leads, chance = _begun(labels, prefix, alternative), path * math.exp(logprob)
            if len(leads) > 1 and leads == alive:
                continue  # the reply goes on this way, and the next token tells
            for option in leads:
                (mass if len(leads) == 1 else shared)[option] += chance
            shown += chance if leads else 0
        if len(alive) < 2:
            break
        path *= math.exp(alternatives.get(token, -math.inf))
        prefix += token if prefix else token.lstrip(' "\n')
    if sum(mass[option] + shared[option] > 0 for option in options) < 2:
        return None
    clear = {option: shared[option] <= 0.01 * shown for option in options}
    return {option: round(mass[option] / shown, 6) if clear[option] else None for option in options}


def _value_tokens(logprobs: list, answer: str) -> list:
    """Return the tokens from where the answer begins: all, or in a JSON reply those inside the first value."""
    before = ""
    for at, (token, _, _) in enumerate(logprobs):
        if answer == "free" or re.search(r':\s*"$', before):
            return logprobs[at:]
        before += token
    return []


def _begun(labels: Mapping[str, str], prefix: str, token: str) -> list[str]:
    """Return the options that a token begins, continues or completes after what is written already."""
    written = (prefix + token).casefold() if prefix else token.casefold().lstrip(' "\n')
    written, closed, _ = written.partition('"')
    if not any(c.isalnum() for c in written):
        return []
    if closed:
        return [option for option, label in labels.items() if label == written]
    open_ones = [option for option, label in labels.items() if label.startswith(written)]
    return open_ones or [option for option, label in labels.items() if label == written.rstrip(" .\n")]


def candidate_names(candidates: Iterable[str], labels: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...]]:
    """Return {candidate id: names a reply may use}, from the registry; a foreign id has itself and its label."""
    listed = models()
    return {c: listed[c].all_names if c in listed else ((labels or {}).get(c, c),) for c in candidates}


def shown_names(record: Mapping, labels: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...]]:
    """Return {candidate id: names a reply may use} of a record's question: letters where authors were anonymous."""
    candidates = record["candidates"]
    if condition_of(record).get("labels") == "anonymous":
        return {c: (label,) for c, label in zip(candidates, anonymous(len(candidates)), strict=True)}
    return candidate_names(candidates, labels)


def anonymous(n: int) -> list[str]:
    """Return the names of n anonymous authors: Author A, Author B, ..."""
    if n > 26:
        raise InputError(
            f"Anonymous authors have the letters A to Z, and there are {n}; use labels = 'names' or 'ids'."
        )
    return [f"Author {chr(65 + k)}" for k in range(n)]


def condition_of(record: Mapping) -> dict:
    """Return a record's condition as a mapping; a file may have it as text ("key=value;...")."""
    condition = record.get("condition")
    if isinstance(condition, str):
        return dict(part.split("=", 1) for part in condition.split(";") if "=" in part)
    return condition if isinstance(condition, dict) else {}


def score(record: Mapping, labels: Mapping[str, str] | None = None) -> dict:
    """Return what a record's raw reply says: `predicted_model`, `predicted_self`, `is_correct` and `status`.

    Only a complete reply is parsed. Whatever holds no answer leaves the three null, so a better parser can be run over
    the stored records at any time. In a pair, `predicted_self` says that the text of `text_id` was chosen, which is the
    evaluator's own unless it wrote neither; which text is better, or whose it is where it wrote neither, has no right
    answer, so there `is_correct` is null. labels: {id: display name} of candidates that the registry does
    not list.
    """
    chosen = claimed = right = None
    status, task, evaluator = record["status"], record["task_type"], record["evaluator_model"]
    if status in ("ok", "no_answer"):
        if task == "binary_self":
            claimed = scoring.parse_yes_no(record["reply"])
            right = None if claimed is None else claimed == (record["true_model"] == evaluator)
        elif task == "pairwise_self":
            place = scoring.parse_choice(record["reply"], PLACES)
            if place is not None:
                claimed = place == str(int(record["position"]))
                chosen = record["true_model"] if claimed else record["other_model"]
                wrote = evaluator in (record["true_model"], record["other_model"])
                right = chosen == evaluator if wrote and condition_of(record).get("question") != "better" else None
        else:
            chosen = _named(record, shown_names(record, labels))
            if chosen is not None:
                claimed, right = chosen == evaluator, chosen == record["true_model"]
        status = "no_answer" if claimed is None else "ok"
    return {"predicted_model": chosen, "predicted_self": claimed, "is_correct": right, "status": status}


def _named(record: Mapping, names: Mapping[str, tuple[str, ...]]) -> str | None:
    reply = record["reply"]
    if record["task_type"] == "lineup":
        reply = scoring.lineup_entry(reply, int(record["position"]))
    elif condition_of(record).get("labels") == "anonymous" and re.fullmatch(r"\W*[A-Za-z]\W*", reply):
        reply = f"Author {reply}"
    return scoring.parse_choice(reply, names)


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
    sets: dict = {}  # one object for each set of candidates
    rows = []
    design = ["task_type", "evaluator_model", "true_model", "status", *[c for c in PAIR_FIELDS if c in frame]]
    conditions = frame["condition"] if "condition" in frame else pd.Series(None, frame.index, object)
    before = frame[list(PREDICTION_FIELDS[6:9])].itertuples(index=False)
    for row, was, reply, listed, condition in zip(
        frame[design].itertuples(index=False), before, raw, shown, conditions, strict=True
    ):
        if not isinstance(reply, str):
            rows.append((*was, row.status))
            continue
        candidates = tuple(listed) if isinstance(listed, list | tuple) else everyone
        among = frozenset(candidates)
        key = *row, reply, sets.setdefault(among, among), str(condition)
        if "anonymous" in key[-1]:  # letters follow the order shown; names are read in any order
            key = *key, candidates
        if key not in parsed:
            record = row._asdict() | {"reply": reply, "candidates": candidates, "condition": condition}
            parsed[key] = tuple(score(record, labels).values())
        rows.append(parsed[key])
    new = pd.DataFrame(rows, frame.index, ["predicted_model", "predicted_self", "is_correct", "status"], dtype=object)
    frame[new.columns] = new
    return frame, _changes(predictions, new, raw.notna())


def _changes(old: pd.DataFrame, new: pd.DataFrame, readable: pd.Series) -> pd.DataFrame:
    answer = "predicted_model", "predicted_self"
    naming = old["task_type"].isin(["exact_model", "lineup"]).to_numpy()
    before, after = (f[answer[0]].where(naming, f[answer[1]]) for f in (old.astype(object), new))
    had, has = before.notna(), after.notna()
    same = (had & has & (before == after)) | ~(had | has)
    kinds = {"records": True, "no raw reply": ~readable, "same": same, "removed": had & ~has, "added": ~had & has}
    kinds["changed"] = had & has & ~same
    counts = pd.DataFrame({name: kind for name, kind in kinds.items()}, old.index).astype(int)
    return counts.groupby([old["task_type"], old["evaluator_model"]]).sum().reset_index()
