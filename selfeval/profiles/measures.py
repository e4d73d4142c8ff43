"""What a profile finds: three rows a model, and replies to quote."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from selfeval import api
from selfeval.figures.estimates import Estimates
from selfeval.identity.measures import ANSWERS, READOUT, RIGHT
from selfeval.profiles.run import FORM, Answers
from selfeval.providers.models import display_names
from selfeval.statistics.table import adjust_p
from selfeval.statistics.tests import detectable_difference

QUESTIONS: Mapping[str, dict] = FORM["rows"]
# standard deviation, per chat with its twin, of an area without any knowledge (Noether 1987)
SD_OF_AUC = 6**-0.5


@dataclass
class Results:
    """What was measured: recognition and identity of all models, the jury of each."""

    recognition: Estimates
    identity: Estimates
    jury: dict[str, Estimates] = field(default_factory=dict)

    def of(self, question: str, model: str) -> Estimates:
        """Return the rows of a model; of a jury, those of all jurors on all conversations."""
        if question == "jury":
            result = self.jury[model]
            return result[(result["evaluator"] == "") & (result["author"] == "")]
        result = getattr(self, question)
        return result[result["evaluator"] == model]


def measure(answers: Answers) -> Results:
    """Measure what models answered, as the `measure_...` verbs do."""
    jury = {model: api.measure_jury(verdicts) for model, verdicts in answers.jury.items()}
    recognition = api.measure_recognition(answers.recognition)
    return Results(recognition, api.measure_identity(answers.identity), jury)


def rows_of(results: Results) -> pd.DataFrame:
    """Return a row per model and question: the estimate, what it says, and its no-answer rate.

    Columns are those of `stats.COLUMNS`, with `model`, its name `display`, `question` and
    `no_answer_rate`. p is adjusted for the number of models.
    """
    models = list(results.jury)
    names = display_names(models)
    tables = [_rows(results, question, models) for question in QUESTIONS]
    rows = pd.concat(tables, ignore_index=True)
    rows.insert(1, "display", rows["model"].map(lambda model: names.get(model, model)))
    order = rows["model"].map(models.index)
    return rows.loc[order.sort_values(kind="stable").index].reset_index(drop=True)


def _rows(results: Results, question: str, models: list[str]) -> pd.DataFrame:
    """Return the rows of all models on one question."""
    form = QUESTIONS[question]
    found = []
    for model in models:
        of_model = pd.DataFrame(results.of(question, model))
        of_model = of_model[of_model["task"] == form["task"]].set_index("statistic", drop=False)
        row = of_model.reindex([form["statistic"]]).assign(model=model, question=question)
        row["no_answer_rate"] = of_model["estimate"].get("no_answer_rate", np.nan)
        found.append(row)
    rows = pd.concat(found, ignore_index=True)
    columns = ["model", "question"]
    rows = rows[columns + [name for name in rows if name not in columns]]
    if len(models) == 1:  # its rivals were tested too, and are not on the page
        rows["p_holm"] = rows["p"]
        rows["conclusion"] = rows["conclusion"].str.removesuffix(" alone, not after Holm")
    if question == "jury":  # each jury was measured alone
        family = ["statistic"]
        rows = adjust_p(rows, family, chance={form["statistic"]: form["chance"]})
        chats = rows["clusters"].where(rows["estimate"].notna())
        found = detectable_difference(chats, SD_OF_AUC, tests=max(chats.count(), 1))
        shows_nothing = rows["conclusion"] == "too few answers"
        largest = 1 - form["chance"]
        rows["detectable"] = np.where(shows_nothing, np.nan, found.clip(max=largest))
    return rows


def quotes(answers: Answers) -> pd.DataFrame:
    """Return the first right and the first wrong reply of each model to each question.

    Then the first without an answer. Columns: `model`, `question`, `is_right` (null without an
    answer), what was `asked` and the `reply`, of jurors what their score says.
    """
    found = [*_texts_claimed(answers), *_names_accepted(answers), *_verdicts(answers)]
    columns = ["model", "question", "is_right", "asked", "reply"]
    frame = pd.DataFrame(found, columns=columns)
    return frame.drop_duplicates(["model", "question", "is_right"]).reset_index(drop=True)


def _texts_claimed(answers: Answers) -> Iterator[tuple]:
    """Yield every answer about a text, and whether it is right."""
    for row in answers.recognition:
        is_right = None if pd.isna(row["is_correct"]) else bool(row["is_correct"])
        whose = "Its own text"
        if row["true_model"] != row["evaluator_model"]:
            whose = f"A text by {row['true_model_display']}"
        asked = f"{whose}: “{row['text_preview']} …”"
        yield row["evaluator_model"], "recognition", is_right, asked, row["reply"]


def _names_accepted(answers: Answers) -> Iterator[tuple]:
    """Yield the name that a model gave after each claim about it, and whether that is right."""
    for row in answers.identity:
        if row["source"] != READOUT or row["arm"] == "neutral":
            continue
        is_right = None
        if row["name_stance"] in ANSWERS:
            is_right = row["name_stance"] in RIGHT
        claimed = row["truth"] if row["arm"] == "true" else row["foil"]
        asked = f"Told that it is {claimed}, then asked for its name and maker"
        yield row["model"], "identity", is_right, asked, row["reply"]


def _verdicts(answers: Answers) -> Iterator[tuple]:
    """Yield every verdict but those between the sides, and the last words of whom it is about."""
    for model, verdicts in answers.jury.items():
        last_words = {}
        for talk in verdicts.conversations.to_dict("records"):
            last_words[talk["conversation_id"]] = talk["turns"][-1]["text"]
        for row in verdicts.to_dict("records"):
            score = row["score"]
            if score == 0.5:
                continue
            is_person = row["source"] == "human"
            whom = "A person" if is_person else "The model"
            asked = f"{whom} said: “{last_words[row['conversation_id']]}”"
            is_right = None
            reply = row["reply"]
            if pd.notna(score):
                is_right = (score > 0.5) == is_person
                reply = f"A score of {score:.2f}: 0 is surely a model, 1 surely a person."
            yield model, "jury", is_right, asked, reply
