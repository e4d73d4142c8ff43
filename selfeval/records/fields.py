"""The fields of prediction records."""

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
    "status",
    "score",
    "condition",
)
# what may be said of a whole file
FOR_ALL = ("task_type", "evaluator_model", "true_model", "repeat")
# of each of these, one at least
NEEDED = (
    ("text_id",),
    ("true_model",),
    ("evaluator_model",),
    ("task_type",),
    ("prompt_used", "prompt_id"),
    ("reply", "predicted_model", "predicted_self", "score"),
)
# what the published files call a reply
PUBLISHED = {"returned_text": "reply", "returned_reasoning": "reasoning"}
# most of a file, and nothing that statistics need
SENT = ("messages", "evaluation_prompt", "adapted")
NAMES = ("true_model", "evaluator_model", "other_model", "predicted_model", "candidates")
# blanks around these are none
IDS = (
    "task_type",
    "text_id",
    "other_text_id",
    "prompt_id",
    "prompt_used",
    "true_model",
    "evaluator_model",
    "other_model",
)
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
# in the name of a published file whose questions had the hint
HINTED = "_with_hints"
NULLS = dict.fromkeys(("", "none", "null", "nan", "n/a"))
TRUTH = patterns.CODES | {"yes": True, "no": False} | NULLS
WHERE = (
    "`columns`, {theirs: ours}, renames fields, {path: {field: value}} adds one; "
    "data/README.md explains them."
)
