"""Count how the replies of `labelled/forms.csv` are read: right, misread (as something else), or lost (as less).

Run `python tests/read_forms.py`: a table by reader and language, and one by reader and class of form. The replies
were written and labelled by somebody who had not seen the readers.
"""

import json
from pathlib import Path

import pandas as pd
from conftest import labelled

from selfeval.identity.claims import extract
from selfeval.identity.names import entity
from selfeval.reading.parsing import parse_choice, parse_yes_no
from selfeval.recognition.scoring import parse_place
from selfeval.roleplay import scoring as verdicts

CANDIDATES = json.loads((Path(__file__).parent / "labelled" / "candidates.json").read_text(encoding="utf-8"))
WORDS = {True: "YES", False: "NO", None: ""}
SIGNS = {"affirm": "+", "adopt": "+", "deny": "-"}
OUTCOMES = ["right", "misread", "lost"]


def read_yes_no(reply: str) -> str:
    return WORDS[parse_yes_no(reply)]


def read_pair(reply: str) -> str:
    return str(parse_place(reply) or "")


def read_exact_model(reply: str) -> str:
    return parse_choice(reply, CANDIDATES) or ""


def read_score(reply: str) -> str:
    score = verdicts.read(reply).score
    return "" if score is None else f"{score:g}"


def read_identity(reply: str) -> str:
    stated = [claim for claim in extract(reply) if claim.polarity in SIGNS]
    return "|".join(claim.quote + SIGNS[claim.polarity] for claim in stated)


READERS = {
    "yes_no": read_yes_no,
    "pair": read_pair,
    "exact_model": read_exact_model,
    "score": read_score,
    "identity": read_identity,
}


def read_forms() -> pd.DataFrame:
    """Return the labelled replies with `read`, what the reader of their task finds, and `outcome`."""
    table = pd.DataFrame(labelled("forms"))
    table["read"] = [READERS[row.task](row.reply) for row in table.itertuples()]
    table["outcome"] = [outcome(row.task, row.expected, row.read) for row in table.itertuples()]
    return table


def outcome(task: str, expected: str, read: str) -> str:
    """Compare what is read with the label. A reply that says several things is lost if some of them are missing."""
    wanted, found = _statements(task, expected), _statements(task, read)
    if found == wanted:
        return "right"
    return "lost" if found < wanted else "misread"


def _statements(task: str, said: str) -> set:
    """Return each thing said once. Names are those of models and makers, however they are spelled."""
    parts = {part for part in said.split("|") if part}
    if task != "identity":
        return parts
    return {(entity(part[:-1]) or part[:-1], part[-1]) for part in parts}


def count(table: pd.DataFrame, group: pd.Series) -> pd.DataFrame:
    """Return n and the number of replies with each outcome, by task and group."""
    counts = pd.crosstab([table["task"], group], table["outcome"])
    counts = counts.reindex(columns=OUTCOMES, fill_value=0)
    counts.insert(0, "n", counts.sum(axis=1))
    return counts


if __name__ == "__main__":
    replies = read_forms()
    english = replies["language"].where(replies["language"] == "en", "other")
    print(count(replies, english), end="\n\n")
    form_class = replies["form"].str.partition(":")[0].rename("form")
    print(count(replies, form_class), end="\n\n")
    print(count(replies, replies["half"]))
