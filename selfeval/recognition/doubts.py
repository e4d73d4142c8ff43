"""What speaks against a table of predictions and no single record shows: a sentence for each, for its reader to judge.

The statistics are computed as the records have it. Where one of these sentences appears, look at the file first.
"""

import numpy as np
import pandas as pd

from selfeval.recognition.counts import PAIRWISE
from selfeval.records.columns import TRUTH
from selfeval.records.texts import is_text

WEIGHTS = ("weight", "weights", "sample_weight", "sampling_weight", "survey_weight", "importance_weight")
ENOUGH = 10  # answers of either kind before scores are held against them
AGAINST = 0.25  # area under the curve of a score for the answer beside it, below which the two say opposite things
FEW = 0.5  # share of ids below which two authors of an id are no numbering that begins anew for each author


def doubts(frame: pd.DataFrame, on_record: pd.Series | None) -> list[str]:
    """Return sentences on records whose answers were read; on_record: `is_correct` as the file has it."""
    found = [_contradicted(frame, on_record), _scores_against(frame), _weights(frame)]
    found += [_two_authors(frame), _two_authors_of_an_id(frame), _never_on_one_prompt(frame)]
    return [sentence for sentence in found if sentence]


def _contradicted(frame: pd.DataFrame, on_record: pd.Series | None) -> str:
    """Say in how many records `is_correct` is not what follows from the answer, where reading changed no answer."""
    if on_record is None or not on_record.notna().any():
        return ""
    said = on_record.map({value: TRUTH.get(str(value).strip().lower()) for value in on_record.dropna().unique()})
    right = frame["is_correct"].map({True: 1, False: 0})
    both = said.notna() & right.notna() & frame["recorded"].isna()
    wrong = both & (said != right)
    if not wrong.any():
        return ""
    task, evaluator = frame.loc[wrong.idxmax(), ["task_type", "evaluator_model"]]
    return (
        f"`is_correct` contradicts the answer in {wrong.sum()} of {both.sum()} records (the first is record "
        f"{wrong.idxmax() + 1}, {task} of {evaluator!r}). It is computed anew from answer and author: check that "
        "`true_model` is the author, and that `predicted_self` is true where the text is claimed."
    )


def _scores_against(frame: pd.DataFrame) -> str:
    """Say which evaluators have scores that are lower where they claim a text."""
    if "score" not in frame or not frame["score"].notna().any():
        return ""
    score = pd.to_numeric(frame["score"], errors="coerce")
    scored = score.notna() & frame["predicted_self"].notna()
    if not scored.any():
        return ""
    rows = pd.DataFrame({
        "task": frame["task_type"][scored], "evaluator": frame["evaluator_model"][scored],
        "score": score[scored], "claimed": frame["predicted_self"][scored].astype(bool),
    })  # fmt: skip
    rows["rank"] = rows.groupby(["task", "evaluator"])["score"].rank()
    found = []
    for (task, evaluator), group in rows.groupby(["task", "evaluator"]):
        claimed = group["claimed"].sum()
        other = len(group) - claimed
        if min(claimed, other) < ENOUGH:
            continue
        above = group["rank"][group["claimed"]].sum() - claimed * (claimed + 1) / 2
        area = above / (claimed * other)
        if area < AGAINST:
            found.append(f"{evaluator!r} in {task} (AUC {area:.2f} for its own answers)")
    if not found:
        return ""
    return (
        f"`score` is lower where the text is claimed, of {', '.join(found)}. It must be P(the text is its own): if it "
        "is P(it is not), give 1 - score; if it is the confidence in the answer, leave it out."
    )


def _weights(frame: pd.DataFrame) -> str:
    for name in frame:
        if str(name).strip().lower() in WEIGHTS and frame[name].nunique() > 1:
            return f"`{name}` is not used: every record counts once."
    return ""


def _two_authors(frame: pd.DataFrame) -> str:
    """Say how many texts have two authors: nobody can tell whose such a text is."""
    if "text_full" not in frame:
        return ""
    texts = frame[["text_full", "true_model"]].drop_duplicates()
    texts = texts[texts["text_full"].map(is_text)]
    shared = texts[texts.duplicated("text_full", keep=False)]
    if shared.empty:
        return ""
    [words, author], other = shared.iloc[0], shared["true_model"][shared["text_full"] == shared["text_full"].iloc[0]]
    return (
        f"{shared['text_full'].nunique()} of {texts['text_full'].nunique()} texts have two authors (the first, "
        f"{words[:40]!r}, {author!r} and {other.iloc[1]!r}): nobody can tell whose these are; mend `true_model`, or "
        "leave them out."
    )


def _two_authors_of_an_id(frame: pd.DataFrame) -> str:
    """Say how many ids of texts have two authors, where most have one: else every author's begin anew."""
    if "text_id" not in frame:
        return ""
    texts = frame[["text_id", "true_model"]].drop_duplicates()
    ids = texts["text_id"].nunique()
    shared = texts[texts.duplicated("text_id", keep=False)]
    count = shared["text_id"].nunique()
    if not 0 < count < FEW * ids:
        return ""
    first, author = shared.iloc[0]
    other = shared["true_model"][shared["text_id"] == first].iloc[1]
    return (
        f"{count} of {ids} `text_id` have two authors (the first, {first!r}, {author!r} and {other!r}), and count as "
        "different texts; mend `true_model` if they are not."
    )


def _never_on_one_prompt(frame: pd.DataFrame) -> str:
    """Say which evaluators have own and others' texts, and no prompt with both."""
    prompt = next((name for name in ("prompt_id", "prompt_used") if name in frame and frame[name].notna().all()), "")
    if not prompt:
        return ""
    one_text = (frame["task_type"] != PAIRWISE).to_numpy()
    own = (frame["true_model"] == frame["evaluator_model"]).to_numpy()
    task = pd.factorize(frame["task_type"])[0]
    evaluator, evaluators = pd.factorize(frame["evaluator_model"])
    prompts, names = pd.factorize(frame[prompt])
    asked = task * len(evaluators) + evaluator  # an evaluator under a task
    on_prompt = asked * len(names) + prompts
    mine, others = np.unique(on_prompt[one_text & own]), np.unique(on_prompt[one_text & ~own])
    with_both = np.intersect1d(mine // len(names), others // len(names))
    on_one_prompt = np.intersect1d(mine, others) // len(names)
    never = np.setdiff1d(with_both, on_one_prompt) % len(evaluators)
    unpaired = sorted({evaluators[at] for at in never})
    if not unpaired:
        return ""
    shown = ", ".join(map(repr, unpaired[:3])) + (f" and {len(unpaired) - 3} more" if len(unpaired) > 3 else "")
    if "text_id" in frame and (frame[prompt].astype(str) == frame["text_id"].astype(str)).all():
        return (
            f"`{prompt}` is `text_id` in every record, so each text is its own prompt: intervals treat texts on one "
            "prompt as unrelated. Give what was asked for in `prompt_id`, the same for all authors who wrote on it."
        )
    return (
        f"No prompt has both own and others' texts of {shown}: own and others' texts differ in their prompts too, and "
        "nothing is compared within a prompt. If they were written on the same prompts, give these one `prompt_id`."
    )
