"""Replies in the forms of today's models, read as a careful person reads them; `read_forms.py` prints the counts.

The readers that were there when the 439 replies were labelled read 300 right, misread 12 and lost 127. The holdout half
was not looked at while they were mended.
"""

import pytest
from read_forms import READERS, read_forms


@pytest.fixture(scope="module")
def replies():
    return read_forms()


def test_of_all_replies_at_most_one_in_a_hundred_is_misread_and_at_most_five_are_lost(replies):
    wrong = replies[replies["outcome"] != "right"]
    said = wrong[["outcome", "language", "reply", "expected", "read"]].to_dict("records")
    share = replies["outcome"].value_counts(normalize=True)
    assert share.get("misread", 0) <= 0.01 and share.get("lost", 0) <= 0.05, said


# the most that a reader misreads and loses, so that none gets worse
MOST = {"exact_model": (1, 6), "identity": (0, 4), "pair": (0, 7), "score": (0, 2), "yes_no": (2, 1)}


@pytest.mark.parametrize("task", READERS)
def test_no_reader_gets_worse(replies, task):
    outcomes = replies.loc[replies["task"] == task, "outcome"].value_counts()
    misread, lost = MOST[task]
    assert outcomes.get("misread", 0) <= misread and outcomes.get("lost", 0) <= lost
