"""What speaks against a table of predictions and no single record shows: a sentence for each.

The statistics are computed as the records have it. Where one of these sentences appears, look at
the file first.
"""

import pandas as pd

from selfeval.recognition.texts import leaks
from selfeval.records.columns import TRUTH
from selfeval.records.tasks import PAIRS
from selfeval.records.texts import is_text

WEIGHTS = {
    "weight",
    "weights",
    "sample_weight",
    "sampling_weight",
    "survey_weight",
    "importance_weight",
}
ENOUGH = 10  # answers of either kind before scores are held against them
AGAINST = 0.25  # area under the curve below which scores and answers say opposite things
LONGER = 3  # times as many words, from which on length alone tells authors apart
FEW = 0.5  # share of ids with two authors from which on each author's ids begin anew


def doubts(frame: pd.DataFrame, on_record: pd.Series | None) -> list[str]:
    """Return sentences on records whose answers were read.

    on_record: `is_correct` as the file has it.
    """
    sentences = [
        _contradicted(frame, on_record),
        _scores_against(frame),
        _weights(frame),
        _two_authors(frame),
        _two_authors_of_an_id(frame),
        _never_on_one_prompt(frame),
        _leaks(frame),
    ]
    said = [sentence for sentence in sentences if sentence]
    if "text_full" in frame:
        texts = frame.drop_duplicates("text_id").dropna(subset="text_full")
        words = texts["text_full"].astype(str).str.split().str.len()
        said += lengths_differ(texts["true_model"], words)
    return said


def lengths_differ(author: pd.Series, words: pd.Series) -> list[str]:
    """Say whose texts are the longest and the shortest, where the medians differ threefold."""
    median = words.groupby(author).median()
    if median.empty or median.max() < LONGER * median.min():
        return []
    longest = median.idxmax()
    shortest = median.idxmin()
    return [
        f"Texts by {longest!r} have {median[longest]:.0f} words, those by {shortest!r} "
        f"{median[shortest]:.0f} (medians): their length tells who wrote them. Ask about texts of "
        "one length (the control `truncated`)."
    ]


def _leaks(frame: pd.DataFrame) -> str:
    """Say how many texts name a model, or whoever made it."""
    texts = frame.drop_duplicates("text_id")
    if "leak" in texts:
        is_leak = texts["leak"].eq(True)
    else:
        shown = texts.get("text_full", texts.get("text_preview", pd.Series(dtype=object)))
        is_leak = shown.map(lambda text: bool(leaks(text)) if is_text(text) else False)
    if not is_leak.any():
        return ""
    return (
        f"{is_leak.sum()} of {len(texts)} texts name a model or a maker, or speak as an AI (the "
        f"first by {texts['true_model'][is_leak.idxmax()]!r}): one word may tell who wrote them. "
        "Measure without them as well."
    )


def _contradicted(frame: pd.DataFrame, on_record: pd.Series | None) -> str:
    """Say in how many records `is_correct` does not follow from an answer that stayed."""
    if on_record is None or not on_record.notna().any():
        return ""
    truth = {value: TRUTH.get(str(value).strip().lower()) for value in on_record.dropna().unique()}
    said = on_record.map(truth)
    right = frame["is_correct"].map({True: 1, False: 0})
    both = said.notna() & right.notna() & frame["recorded"].isna()
    wrong = both & (said != right)
    if not wrong.any():
        return ""
    first = wrong.idxmax()
    task = frame["task_type"][first]
    evaluator = frame["evaluator_model"][first]
    return (
        f"`is_correct` contradicts the answer in {wrong.sum()} of {both.sum()} records (the first "
        f"is record {first + 1}, {task} of {evaluator!r}). It is computed anew from answer and "
        "author: check that `true_model` is the author, and that `predicted_self` is true where "
        "the text is claimed."
    )


def _scores_against(frame: pd.DataFrame) -> str:
    """Say which evaluators have scores that are lower where they claim a text."""
    if "score" not in frame:
        return ""
    score = pd.to_numeric(frame["score"], errors="coerce")
    is_scored = score.notna() & frame["predicted_self"].notna()
    scored = frame[is_scored].assign(score=score)
    against = []
    for (task, evaluator), group in scored.groupby(["task_type", "evaluator_model"]):
        is_claimed = group["predicted_self"].astype(bool)
        n_claimed = is_claimed.sum()
        n_other = len(group) - n_claimed
        if min(n_claimed, n_other) < ENOUGH:
            continue
        ranks = group["score"].rank()[is_claimed].sum()
        above = ranks - n_claimed * (n_claimed + 1) / 2
        area = above / (n_claimed * n_other)
        if area < AGAINST:
            against.append(f"{evaluator!r} in {task} (AUC {area:.2f} for its own answers)")
    if not against:
        return ""
    return (
        f"`score` is lower where the text is claimed, of {', '.join(against)}. It must be P(the "
        "text is its own): if it is P(it is not), give 1 - score; if it is the confidence in the "
        "answer, leave it out."
    )


def _weights(frame: pd.DataFrame) -> str:
    """Say which column of weights is not used."""
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
    n_texts = texts["text_full"].nunique()
    n_shared = shared["text_full"].nunique()
    text = shared["text_full"].iloc[0]
    first, second, *_ = shared["true_model"][shared["text_full"] == text]
    return (
        f"{n_shared} of {n_texts} texts have two authors (the first, {text[:40]!r}, {first!r} and "
        f"{second!r}): nobody can tell whose these are; mend `true_model`, or leave them out."
    )


def _two_authors_of_an_id(frame: pd.DataFrame) -> str:
    """Say how many ids of texts have two authors, where most have one."""
    if "text_id" not in frame:
        return ""
    texts = frame[["text_id", "true_model"]].drop_duplicates()
    shared = texts[texts.duplicated("text_id", keep=False)]
    n_ids = texts["text_id"].nunique()
    n_shared = shared["text_id"].nunique()
    if n_shared == 0 or n_shared >= FEW * n_ids:
        return ""
    text_id = shared["text_id"].iloc[0]
    first, second, *_ = shared["true_model"][shared["text_id"] == text_id]
    return (
        f"{n_shared} of {n_ids} `text_id` have two authors (the first, {text_id!r}, {first!r} and "
        f"{second!r}), and count as different texts; mend `true_model` if they are not."
    )


def _never_on_one_prompt(frame: pd.DataFrame) -> str:
    """Say which evaluators have own and others' texts, and no prompt with both."""
    known = [name for name in ("prompt_id", "prompt_used") if name in frame]
    complete = [name for name in known if frame[name].notna().all()]
    if not complete:
        return ""
    prompt = complete[0]
    texts = frame.loc[~frame["task_type"].isin(PAIRS), ["task_type", "evaluator_model", prompt]]
    is_own = (frame["true_model"] == frame["evaluator_model"])[texts.index]
    own = texts[is_own].drop_duplicates()
    others = texts[~is_own].drop_duplicates()
    asked = ["task_type", "evaluator_model"]
    with_both = own[asked].drop_duplicates().merge(others[asked].drop_duplicates())
    on_one_prompt = own.merge(others)[asked].drop_duplicates()
    compared = with_both.merge(on_one_prompt, how="left", indicator=True)
    never = compared["evaluator_model"][compared["_merge"] == "left_only"]
    unpaired = sorted(never.unique())
    if not unpaired:
        return ""
    shown = ", ".join(map(repr, unpaired[:3]))
    if len(unpaired) > 3:
        shown += f" and {len(unpaired) - 3} more"
    return (
        f"No prompt has both own and others' texts of {shown}, so nothing is concluded from their "
        "discrimination: they differ in prompts, too. If they were written on the same prompts, "
        "give these one `prompt_id`, the same for all authors."
    )
