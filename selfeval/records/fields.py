"""The fields of prediction records, and what others call them."""

import re

from selfeval.reading import patterns
from selfeval.records.tables import PREDICTION_FIELDS

# fields that hold no lists and no objects
PLAIN = {
    *PREDICTION_FIELDS,
    "text_full",
    "prompt_id",
    "sample",
    "score",
    "position",
    "other_model",
    "other_text_id",
}
# fields of question and answer
FIELDS = (
    *PREDICTION_FIELDS,
    "text_full",
    "prompt_id",
    "sample",
    "candidates",
    "other_text_id",
    "other_model",
    "position",
    "repeat",
    "reply",
    "returned_text",
    "status",
    "score",
    "condition",
    "first",
    "second",
    "chosen",
)
# what may be said of a whole file
FOR_ALL = ("task_type", "evaluator_model", "true_model", "repeat")
# {field: what others call it}
HEADINGS = {
    "evaluator_model": ("evaluator", "judge", "rater", "model"),
    "true_model": ("author", "true_author", "writer"),
    "prompt_used": ("prompt", "question"),
}
# what others call what was answered
ANSWERS = ("answer", "response", "predicted", "prediction", "guess")
# of each of these, one at least
NEEDED = (
    ("text_id",),
    ("true_model",),
    ("evaluator_model",),
    ("task_type",),
    ("prompt_used", "prompt_id"),
    ("reply", "predicted_model", "predicted_self", "score"),
)
# most of a file, and nothing that statistics need
SENT = ("messages", "evaluation_prompt", "adapted")
NAMES = ("true_model", "evaluator_model", "other_model", "predicted_model", "candidates")
# those with one name
NAMED = NAMES[:-1]
# the authors of a pair's texts as they were shown, where `chosen` says which was chosen
PLACED = ("first", "second")
# two spellings of a name in these are one
SPELLED = ("true_model", "other_model", *PLACED, "evaluator_model")
# blanks around these are none
IDS = ("task_type", "text_id", "other_text_id", "prompt_id", "prompt_used")
# what tells one question to an evaluator from another
QUESTION = (
    "task_type",
    "evaluator_model",
    "text_id",
    "other_text_id",
    "position",
    "repeat",
    "condition",
)
# what `authors` says of words such as "unknown"
NO_ANSWER = "no answer"
# in the text of a list of one, as tables have it
ONLY_NAME = re.compile(r"""^\[\s*(["'])([^"']+)\1\s*\]$""")
# in the name of a published file whose questions had the hint
HINTED = "_with_hints"
# times that a reply names nobody, where it may be a slip
REPEATED = 3
NULLS = dict.fromkeys(("", "none", "null", "nan", "n/a"))
TRUTH = patterns.CODES | {"yes": True, "no": False} | NULLS
WHERE = (
    "`columns`, {theirs: ours}, renames fields, {path: {field: value}} adds one; "
    "data/README.md explains them."
)
