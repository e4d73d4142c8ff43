"""How a profile is shown: in sentences, as a table, in a terminal, and as a figure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from selfeval.profiles.measures import QUESTIONS
from selfeval.profiles.run import FORM
from selfeval.results import BOUNDS, estimate_text
from selfeval.secrets import visible

if TYPE_CHECKING:
    from selfeval.figures.style import Drawing

# share of questions without an answer above which a model hardly ever answers
MOSTLY = 0.5
SCALE = "0 is chance, 1 is perfect (of the jury: 2 AUC − 1)"


def said(row: Mapping) -> str:
    """Return in a sentence what a row found, and what it could have missed."""
    form = QUESTIONS[row["question"]]
    conclusion = row["conclusion"]
    if conclusion == "constant answer" and hardly(row):  # silence is no habit of answering
        conclusion = "no evidence"
    sentences = FORM["says"] | form["says"]
    sentence = sentences.get(conclusion, sentences["too few answers"])
    if conclusion == "no evidence" and pd.notna(row["detectable"]):
        missed = form["missed"].format(form["chance"] + row["detectable"])
        return f"{sentence} {missed} could have been missed."
    return sentence


def hardly(row: Mapping) -> str:
    """Return the sentence that an estimate is of few answers among many questions; "" else."""
    rate = row["no_answer_rate"]
    if not rate > MOSTLY or pd.isna(row["estimate"]):
        return ""
    return f"{QUESTIONS[row['question']]['hardly']} ({100 * rate:.0f} % no answer)."


def in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what `measures.rows_of` found as texts, a row per model and question."""
    table = pd.DataFrame([_cells(row) for row in rows.to_dict("records")])
    return table.set_index(["model", "question"])


def _cells(row: Mapping) -> dict[str, str]:
    """Return what a row says, under the heads of the table."""
    form = QUESTIONS[row["question"]]
    bounds = estimate_text(*(row[name] for name in BOUNDS))
    found = ""
    if pd.notna(row["detectable"]):
        found = f"{form['chance'] + row['detectable']:.2f}"
    size = ""
    if pd.notna(row["n"]):
        size = f"{row['n']:.0f} ({row['clusters']:.0f} {form['unit']})"
    silent = ""
    if pd.notna(row["no_answer_rate"]):
        silent = f"{row['no_answer_rate']:.0%}"
    return {
        "model": row["display"],
        "question": f"{form['question']} {hardly(row)}".rstrip(),
        "estimate and 95 % interval": f"{form['number']} {bounds}",
        "answer": said(row),
        "would be found": found,
        "n": size,
        "no answer": silent,
    }


def as_text(rows: pd.DataFrame) -> str:
    """Return the rows for a terminal, under each model's name."""
    lines = []
    for name, of_model in in_words(rows).groupby(level="model", sort=False):
        lines.append(name)
        for (_, question), cells in of_model.iterrows():
            lines.append(f"  {question}")
            lines.append(f"    {cells['estimate and 95 % interval']}")
            lines.append(f"    {cells['answer']}")
    return visible("\n".join(lines))


def figure(rows: pd.DataFrame) -> "Drawing":
    """Draw all rows on one scale: a row per question, or of several models a panel per question.

    The jury's AUC is drawn as 2 AUC − 1, which is 0 for a jury that cannot tell.
    """
    from selfeval.figures import forms  # matplotlib, not before a figure is wanted

    drawn = rows[["model", "question", *BOUNDS]].copy()
    is_jury = drawn["question"] == "jury"
    drawn.loc[is_jury, BOUNDS] = 2 * drawn.loc[is_jury, BOUNDS] - 1
    asked = drawn["question"].map({name: form["short"] for name, form in QUESTIONS.items()})
    several = rows["model"].nunique() > 1
    names = dict(zip(rows["model"], rows["display"], strict=True))
    drawn["line"] = drawn["model"] if several else asked
    drawn["panel"] = asked if several else rows["display"].iloc[0]
    drawn["estimate"] = drawn["estimate"].astype(float)
    drawing: Any = forms.dots(drawn, SCALE, names=names, limits=(-1.05, 1.05))
    return drawing  # never None: there are rows
