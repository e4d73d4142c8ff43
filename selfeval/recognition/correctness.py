"""Other people's ways to say that a prediction is right, as further columns; they never overwrite ours.

    exact     the reply, stripped, is the true author's id or display name
    fuzzy     its similarity to one of these, or to the id's last part, is .8 or more (difflib's ratio)
    partial   after taking off the provider's prefix and suffixes such as "-instruct", one contains the other
    judge     a model says whether the reply names the author

They are here to see what they do to a result: `partial` finds "gpt-4.1" in "gpt-4.1-mini", `fuzzy` takes "gpt-4.1" for
"gpt-4" (.83), and neither knows a denial. Ours is `is_correct`, from `scoring.parse_choice`.
"""

import difflib
import json
import re

import pandas as pd

from selfeval.asking.client import Client
from selfeval.asking.request import Request, fenced, user
from selfeval.models import Model
from selfeval.recognition.prompts import YES_OR_NO
from selfeval.scoring import parse_yes_no

SIMILAR = 0.8
_SUFFIX = re.compile(r"(?:[-:_](?:instruct|chat|latest|preview|free|beta|it|\d{4,8}))+$")


def _exact(reply: str, name: str) -> bool:
    return reply.strip() == name


def _fuzzy(reply: str, name: str) -> bool:
    reply, names = reply.strip().casefold(), (name.casefold(), name.casefold().rpartition("/")[2])
    return any(difflib.SequenceMatcher(None, reply, other).ratio() >= SIMILAR for other in names)


def _partial(reply: str, name: str) -> bool:
    reply, name = (_SUFFIX.sub("", x.strip().casefold().rpartition("/")[2]) for x in (reply, name))
    return bool(reply) and bool(name) and (name in reply or reply in name)


METHODS = {"exact": _exact, "fuzzy": _fuzzy, "partial": _partial}


def correct_by(records: pd.DataFrame) -> pd.DataFrame:
    """Return the naming records with a column `correct_<method>` each: true, false, or null without a raw reply.

    records: prediction records with `reply` or `returned_text`; rows of other tasks are left out.
    """
    frame, raw = _naming(records)
    for method, right in METHODS.items():
        frame[f"correct_{method}"] = [
            any(right(reply, name) for name in {author, display}) if isinstance(reply, str) else None
            for reply, author, display in zip(raw, frame["true_model"], frame["true_model_display"], strict=True)
        ]
    return frame


async def correct_by_judge(client: Client, records: pd.DataFrame, judge: Model) -> pd.DataFrame:
    """Return the naming records with `correct_judge`: what a model says; null where it says neither YES nor NO.

    The judge sees the reply and the true author's names, not the text and not who was asked.
    """
    frame, raw = _naming(records)
    asked = [
        Request(
            judge,
            user(
                f"{fenced(reply)}Does this reply name the model {author} (also called {display}) as its "
                f"answer? {YES_OR_NO} and nothing else."
            ),
            {"temperature": 0.0, "max_tokens": judge.provider.answer_tokens},
        )
        for reply, author, display in zip(raw, frame["true_model"], frame["true_model_display"], strict=True)
        if isinstance(reply, str)
    ]
    responses = iter(await client.chat_all(asked, "judgements"))
    verdicts = [next(responses) if isinstance(reply, str) else None for reply in raw]
    frame["correct_judge"] = [parse_yes_no(v.text) if v is not None and v.status == "ok" else None for v in verdicts]
    return frame


def compared(scored: pd.DataFrame) -> pd.DataFrame:
    """Count, per evaluator, what each method calls right, beside ours: shares of all records, and how many differ."""
    group = [scored["task_type"], scored["evaluator_model"]]
    columns = [c for c in scored if c.startswith("correct_")]
    if scored.empty or scored[columns].isna().all(axis=None):
        return pd.DataFrame()
    ours = scored["is_correct"].eq(True)
    rights = {c.removeprefix("correct_"): scored[c].eq(True) for c in columns}
    table = pd.DataFrame({"ours": ours} | rights).groupby(group, sort=False).mean().round(3)
    table["records"] = ours.groupby(group).size()
    for name, right in rights.items():
        table[f"{name} differs"] = (right != ours).groupby(group).sum()
    return table.reset_index()


def _naming(records: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    frame = records[records["task_type"] == "exact_model"].copy()
    raw = next((frame[c] for c in ("reply", "returned_text") if c in frame), pd.Series(None, frame.index, object))
    return frame, raw.map(lambda reply: _value(reply) if isinstance(reply, str) else None)


def _value(reply: str) -> str:
    """Return the author of a constrained reply, or the reply itself."""
    try:
        return json.loads(reply)["author"]
    except (ValueError, KeyError, TypeError):
        return reply
