"""What a profile finds: three rows a model, replies to quote, and changes since an earlier one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from selfeval import api
from selfeval.estimates.comparisons import compare
from selfeval.figures.estimates import Estimates
from selfeval.identity.measures import ANSWERS, READOUT, RIGHT
from selfeval.profiles.run import FORM, Answers
from selfeval.providers.models import display_names
from selfeval.recognition.contrasts import AREA, D_PRIME
from selfeval.statistics.intervals import Area, mover
from selfeval.statistics.table import adjust_p
from selfeval.statistics.tests import detectable_difference, holm, inverted_p

SENSITIVITIES = {AREA: "sensitivity (AUC of P(YES))", D_PRIME: "sensitivity (d′)"}
QUESTIONS: Mapping[str, dict] = FORM["rows"]
# share of questions without an answer above which a model hardly ever answers
MOSTLY = 0.5
LEVEL = 0.95
Z = float(ndtri((1 + LEVEL) / 2))
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


def changes(now: Results, before: Results) -> pd.DataFrame:
    """Return how each row differs from an earlier profile's, now minus before.

    Recognition is paired by prompt, identity by template; verdicts of juries are not. Of
    recognition the sensitivity is tested, and J, whose size moves with the habit, is shown as well.
    p is adjusted for all rows together. Raises `InputError` where the two have no model or no
    prompt in common.
    """
    parts = []
    common = [model for model in now.jury if model in before.jury]
    for question in ("recognition", "identity"):
        form = QUESTIONS[question]
        paired = pd.DataFrame(compare(getattr(now, question), getattr(before, question)))
        is_row = paired["statistic"].isin([form["statistic"], *SENSITIVITIES])
        is_row &= (paired["task"] == form["task"]) & paired["evaluator"].isin(common)
        parts.append(paired[is_row].assign(question=question))
    parts[0]["p"] = parts[0]["p"].where(parts[0]["statistic"].isin(SENSITIVITIES))
    parts.append(pd.DataFrame([_change_of_jury(now, before, model) for model in common]))
    table = pd.concat(parts, ignore_index=True).rename(columns={"evaluator": "model"})
    table["p_holm"] = holm(table["p"])
    columns = "model question statistic estimate low high p p_holm n clusters cluster_unit"
    return table[columns.split()]


@dataclass(frozen=True)
class Unpaired:
    """The difference of two areas of different verdicts; its interval is Newcombe's (MOVER)."""

    now: Area
    before: Area

    @property
    def value(self) -> float:
        return self.now.value - self.before.value

    def interval(self, z: float) -> tuple:
        """Return low and high at normal quantile z."""
        now = (self.now.value, *self.now.interval(z))
        return mover(*now, self.before.value, *self.before.interval(z))


def _change_of_jury(now: Results, before: Results, model: str) -> dict:
    """Return how a model's AUC differs; verdicts of two times are not paired."""
    change: Any = Unpaired(_area(now.jury[model]), _area(before.jury[model]))
    low, high = change.interval(Z)
    return {
        "evaluator": model,
        "question": "jury",
        "statistic": QUESTIONS["jury"]["statistic"],
        "estimate": float(change.value),
        "low": float(low),
        "high": float(high),
        "p": float(inverted_p(change, 0, Z)),
        "n": int(change.now.n + change.before.n),
        "clusters": int(min(change.now.clusters, change.before.clusters)),
        "cluster_unit": "conversation",
    }


def _area(result: Estimates) -> Area:
    """Return the area of people's scores above the model's; a chat and its twin are a cluster."""
    verdicts = result.tables["verdicts"].dropna(subset="score")
    records: Any = result.records
    twins = records.drop_duplicates("conversation_id").set_index("conversation_id")["pair"]
    chat = verdicts["conversation_id"].map(twins).fillna(verdicts["conversation_id"])
    is_person = verdicts["source"] == "human"
    score = verdicts["score"]
    return Area.of(score[is_person], chat[is_person], score[~is_person], chat[~is_person])
