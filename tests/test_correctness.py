"""Other people's correctness methods stand beside ours and change nothing."""

import asyncio

import pandas as pd
import pytest

from selfeval.asking.client import Client
from selfeval.models import from_callable
from selfeval.recognition import correctness

RECORD = {
    "text_id": 0, "true_model": "openai/gpt-4.1-mini", "true_model_display": "GPT-4.1 mini", "is_correct": False,
    "evaluator_model": "x/y", "task_type": "exact_model", "predicted_model": "openai/gpt-4.1",
}  # fmt: skip


@pytest.mark.parametrize(("reply", "exact", "fuzzy", "partial"), [
    ("openai/gpt-4.1-mini", True, True, True), ("GPT-4.1 mini", True, True, True),
    ("gpt-4.1-mni", False, True, False), ("openai/gpt-4.1", False, True, True), ("gpt-4.1", False, False, True),
    ("It was not gpt-4.1-mini.", False, False, True), ("claude", False, False, False),
    ('{"author": "GPT-4.1 mini"}', True, True, True), ("", False, False, False),
])  # fmt: skip
def test_methods(reply, exact, fuzzy, partial):
    before = pd.DataFrame([RECORD | {"reply": reply}])
    scored = correctness.correct_by(before)
    found = scored[["correct_exact", "correct_fuzzy", "correct_partial"]].iloc[0].tolist()
    assert found == [exact, fuzzy, partial]
    assert scored["is_correct"].tolist() == [False] and scored["predicted_model"].tolist() == ["openai/gpt-4.1"]
    assert "correct_exact" not in before


def test_a_record_without_a_reply_is_neither_right_nor_wrong_and_the_table_counts_what_differs():
    frame = pd.DataFrame([RECORD | {"reply": None}, RECORD | {"returned_text": None, "reply": "gpt-4.1"}])
    scored = correctness.correct_by(frame)
    assert scored["correct_partial"].tolist() == [None, True]
    table = correctness.compared(scored).iloc[0]
    assert table["partial differs"] == 1 and table["partial"] == 0.5 and table["ours"] == 0 and table["records"] == 2
    assert correctness.compared(correctness.correct_by(pd.DataFrame([RECORD]))).empty
    assert correctness.compared(correctness.correct_by(frame.assign(task_type="binary_self"))).empty


def test_a_judge_says_yes_no_or_nothing():
    replies = iter(["YES", "NO", "Perhaps."])
    judge = from_callable(lambda messages, **_: next(replies), "mine/judge")
    frame = pd.DataFrame([RECORD | {"reply": text} for text in ("a", "b", "c")] + [RECORD | {"reply": None}])

    async def run():
        async with Client() as client:
            return await correctness.correct_by_judge(client, frame, judge)

    assert asyncio.run(run())["correct_judge"].tolist() == [True, False, None, None]
