"""Comparisons beyond one evaluator in one condition: of conditions, of models, and of readings of the same texts.

condition_contrasts   the same evaluators under two conditions, as differences paired by prompt
result_contrasts      the same evaluators in two results, such as of May and of November, paired by prompt
paired_models         two evaluators on the same prompts, as differences of their statistics
reading_gaps          the likelihood of a text under a model's own weights against what the model says
existence_table       names of real models against invented ones

A reading is a way to tell an evaluator's own texts from others': its answers, the likelihood under its own weights,
that likelihood against all other candidates' (the oracle, which no single model can compute), a classifier of style
that knows no model. Each is a condition of prediction records, `reading=<name>`; each has an AUC within prompts and,
but for the own likelihood, J. The gap is the AUC of the own likelihood minus another reading's, paired by prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from selfeval.condition import LEFT_OUT, condition_label, conditions, varying_parts
from selfeval.recognition import counts
from selfeval.recognition.counts import BINARY, PAIRWISE, Tally
from selfeval.recognition.measures import measures_of
from selfeval.statistics.classifier import out_of_fold
from selfeval.statistics.intervals import Difference, Rate, Settings
from selfeval.statistics.table import CHANGE, COLUMNS, INVERTED, Measure, adjust_p, side_of, write

CONTRASTED = ("self_accuracy", "false_claim_rate", "discrimination", "advantage", "cross_accuracy", "accuracy",
              "overall_accuracy", "corrected_advantage", "peer_corrected")  # fmt: skip
ORACLE, OWN, STYLE = "oracle", "own likelihood", "style"
COMPARED = "auc_within_prompt"
TOLD = {"told=true": "told", "told=false": "untold", ";": ", "}
SAID = {BINARY: "yes or no"}  # other tasks: "names the author"


def _measures(tally: Tally, policy: str = "") -> dict[str, Measure]:
    """Return the rates and differences per evaluator, under policy `all`, of pairs `answered`, unless one is named."""
    found = measures_of(tally, policy or ("answered" if tally.task == PAIRWISE else "all"))
    return {m.statistic: m for m in found if m.value.ndim == 1 and isinstance(m.of, Rate | Difference)}


def _depends_on_no_answers(difference: Difference, among_answers: Difference, z: float) -> tuple[np.ndarray, str]:
    """Return where a difference and that among answers lie on different sides of 0, and the note that says so."""
    sides = [side_of(0, *of.interval(z)) for of in (difference, among_answers)]
    known = ~np.isnan(sides).any(0)
    return known & (sides[0] != sides[1]), "depends_on_no_answers"


def condition_contrasts(predictions: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Compare every two conditions of a task that differ in one thing: second minus first, paired by prompt.

    predictions: prediction records, as for `recognition_table`; only prompts and evaluators that both conditions have
    are compared (note `common_prompts` where that leaves some out). Policy `all`: no answer is no claim; of pairs
    `answered`, and neutral judges are left out.

    Returns `stats.COLUMNS` and `field` (what differs), `first`, `second` (its values); `condition` is what does not
    differ, p_holm is over evaluators. The interval is MOVER over the two estimates with the correlation of their
    prompts; p is its inversion. Empty without such pairs.
    """
    how, parts, rows = Settings(level=level), [], predictions.reset_index(drop=True)
    frame = rows.assign(unit=counts.prompts(rows)[0])[~counts.neutral_rows(rows)]
    labels = conditions(rows)
    for task, of_task in frame.groupby("task_type", sort=True):
        for first, second in combinations(sorted(labels[of_task.index].unique()), 2):
            differs = {part.partition("=")[0] for part in set(first.split(";")) ^ set(second.split(";"))}
            if len(differs) == 1:
                parts += _contrast(of_task, labels, task, first, second, differs.pop(), how)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, *CHANGE])


def _contrast(frame, labels, task, first, second, field, how: Settings) -> list[pd.DataFrame]:
    sides = [frame[labels[frame.index] == label] for label in (first, second)]
    common = common_rows(sides)
    if any(side.empty for side in common):
        return []
    both = {t.condition: t for t in counts.tallies(pd.concat(common))}
    one, two = (_measures(both[label]) for label in (first, second))
    parts = [dict(part.partition("=")[::2] for part in label.split(";")) for label in (first, second)]
    values = [part.get(field, LEFT_OUT.get(field, "not set")) for part in parts]
    rest = ";".join(part for part in first.split(";") if part.partition("=")[0] != field)
    both_have = [side["evaluator_model"].isin(common[0]["evaluator_model"]).sum() for side in sides]
    note = "common_prompts" * (both_have != [*map(len, common)])
    who = {"evaluator": both[first].evaluators, "policy": "answered" if task == PAIRWISE else "all"}
    found = [
        Measure(name, two[name].of - one[name].of, who, n=one[name].rows + two[name].rows, test=INVERTED)
        for name in CONTRASTED if name in one and name in two
    ]  # fmt: skip
    if task != PAIRWISE and any((both[label].answer < 0).any() for label in (first, second)):
        one, two = (_measures(both[label], "answered") for label in (first, second))
        for m in found:
            m.notes = [_depends_on_no_answers(m.of, two[m.statistic].of - one[m.statistic].of, how.z)]
    table = adjust_p(write(found, how, task=task, condition=rest, note=note), ["statistic"], compared=True)
    return [table.assign(**dict(zip(CHANGE, [field, *values], strict=True)))]


def common_rows(sides: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Keep the rows on prompts that the same evaluator has on both sides."""
    keys = [pd.MultiIndex.from_frame(side[["evaluator_model", "unit"]]) for side in sides]
    return [side[key.isin(other)] for side, key, other in zip(sides, keys, keys[::-1], strict=True)]


def result_contrasts(
    first: pd.DataFrame, second: pd.DataFrame, *, level: float = 0.95
) -> tuple[pd.DataFrame, list[str]]:
    """Compare two sets of prediction records: first minus second, paired by prompt, with sentences on what was met.

    Equal conditions of a task are compared. Where a task has no equal ones but a single condition in each set, these
    two are, and a sentence says how they differ. Returns the table of `condition_contrasts`, with `result` as field.
    """
    labels = [conditions(frame).astype(object) for frame in (first, second)]
    parts, told = [], []
    for task in sorted({*first["task_type"]} | {*second["task_type"]}):
        of_first, of_second = (
            sorted(said[frame["task_type"] == task].unique())
            for said, frame in zip(labels, (first, second), strict=True)
        )
        pairs, sentences = paired_labels(task, of_first, of_second)
        told += sentences
        for one, two in pairs:
            sides = [
                frame[(frame["task_type"] == task) & (said == label)]
                for frame, said, label in zip((first, second), labels, (one, two), strict=True)
            ]
            common = ";".join(part for part in one.split(";") if part and part in two.split(";"))
            parts += _result_contrast(task, common, sides, Settings(level=level))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, *CHANGE])
    return table, told


def paired_labels(task: str, first: Sequence[str], second: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return which conditions of two results are compared, and sentences on those that differ or are left out."""
    pairs = [(label, label) for label in first if label in second]
    if not pairs and len(first) == len(second) == 1:
        pairs = [(first[0], second[0])]
        only = [
            ", ".join(part for part in one.split(";") if part not in other.split(";")) or "nothing more"
            for one, other in ((first[0], second[0]), (second[0], first[0]))
        ]
        return pairs, [f"{task}: the first result has {only[0]}, the second {only[1]}; these are compared."]
    left = [label for label in [*first, *second] if (label, label) not in pairs]
    if not first or not second:
        return [], [f"{task} is in one result alone and is left out."]
    differs = varying_parts([*first, *second])
    return pairs, [f"{task}: in one result alone, and left out: {differs[label]}." for label in left]


def _result_contrast(task: str, common: str, sides: Sequence[pd.DataFrame], how: Settings) -> list[pd.DataFrame]:
    """Return the contrast of one condition in two results, whose label becomes the part that differs."""
    named = [f"result={name} result" for name in ("first", "second")]
    written = [f"{common};{name}".removeprefix(";") for name in named]
    joined = [side.assign(condition=label) for side, label in zip(sides, written, strict=True)]
    frame = pd.concat(joined, ignore_index=True)
    frame = frame.assign(unit=counts.prompts(frame)[0])[~counts.neutral_rows(frame)]
    labels = conditions(frame)
    ordered = [condition_label(label) for label in written]
    return _contrast(frame, labels, task, ordered[1], ordered[0], "result", how)  # the latter minus the former


def paired_models(predictions: pd.DataFrame | Iterable[Tally], *, level: float = 0.95) -> pd.DataFrame:
    """Compare every two evaluators' discrimination in a task and condition, paired by prompt: first minus second.

    Returns `stats.COLUMNS`: `evaluator` is "first - second", p inverts the interval (MOVER with the correlation over
    prompts), p_holm is over the pairs of evaluators. Policy `all`; pairs of texts are left out.
    """
    how, parts = Settings(level=level), []
    for tally in counts.tallies(predictions):
        asked, by_prompts, found = tally.count().any(2), {}, []
        for pair in combinations(range(len(tally.evaluators) * (tally.task != PAIRWISE)), 2):
            by_prompts.setdefault(asked[:, pair].all(1).tobytes(), []).append(pair)
        for common, pairs in by_prompts.items():  # one, where all evaluators were asked about the same prompts
            common, (first, second) = np.frombuffer(common, bool), np.transpose(pairs)
            part = tally.kept(common[tally.prompt])
            if (j := _measures(part).get("discrimination")) is not None:
                who = {"evaluator": tally.evaluators[first] + " - " + tally.evaluators[second], "policy": "all"}
                fewer = (asked[:, first] | asked[:, second])[~common].any(0), "common_prompts"
                difference = j.of.pick((first,)) - j.of.pick((second,))
                notes = [fewer]
                if (part.answer < 0).any():
                    answered = _measures(part, "answered")["discrimination"].of
                    among_answers = answered.pick((first,)) - answered.pick((second,))
                    notes.append(_depends_on_no_answers(difference, among_answers, how.z))
                found.append(Measure("discrimination", difference, who, test=INVERTED, notes=notes))
        if found:
            about = {"task": tally.task, "condition": tally.condition, "note": tally.note}
            parts.append(adjust_p(write(found, how, **about), ["statistic"], compared=True))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS))


# ---------------------------------------------------------------------------------------------------------------
# Readings of the same texts side by side


def as_readings(answers: pd.DataFrame) -> pd.DataFrame:
    """Return prediction records of the exact and yes/no tasks with their reading as `condition`."""
    frame = answers[answers["task_type"].isin(["exact_model", BINARY])]
    labels, parts = conditions(frame).astype(object), []
    for task, of_task in frame.groupby("task_type", sort=True):
        varying = varying_parts(labels[of_task.index].unique())
        said = labels[of_task.index].map(varying).replace(TOLD, regex=True)
        name = SAID.get(task, "names the author")
        parts.append(of_task.assign(condition="reading=" + name + said.where(said == "", ", " + said)))
    return pd.concat(parts)


def reading_gaps(readings: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Return the AUC within prompts of a model's own likelihood minus that of its words, and of the style.

    readings: prediction records with `reading=...` as condition, one of them `reading=own likelihood`. Only prompts and
    evaluators of both are compared (note `common_prompts`). Intervals are MOVER over the two with the correlation of
    their prompts, p is its inversion, p_holm over evaluators. Returns `stats.COLUMNS`, `field` ("reading"), `first`
    (the other reading) and `second`; empty where no other reading is of the same prompts.
    """
    frame, parts = readings.reset_index(drop=True), []
    frame = frame.assign(unit=counts.prompts(frame)[0], reading=frame["condition"].str.removeprefix("reading="))
    weights = frame[frame["reading"] == OWN]
    for (task, name), other in frame.groupby(["task_type", "reading"], sort=False):
        sides = common_rows([other, weights])
        if name in (OWN, ORACLE) or any(side.empty for side in sides):
            continue
        both = {
            tally.condition: {m.labels["evaluator"]: m.of for m in measures_of(tally, "all") if m.statistic == COMPARED}
            for tally in counts.tallies(pd.concat(sides))  # which have one order
        }
        one, two = both[f"reading={name}"], both[f"reading={OWN}"]
        found = [
            Measure(COMPARED, two[name] - one[name], {"evaluator": name, "policy": "all"}, test=INVERTED)
            for name in one if name in two
        ]  # fmt: skip
        if not found:
            continue  # no answer has a probability
        whole = max(side["unit"].nunique() for side in (other, weights))
        note = "common_prompts" * (sides[0]["unit"].nunique() < whole)
        table = adjust_p(write(found, Settings(level=level), task=task, note=note), ["statistic"], compared=True)
        parts.append(table.assign(**dict(zip(CHANGE, ["reading", name, OWN], strict=True))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, *CHANGE])


# ---------------------------------------------------------------------------------------------------------------
# The reader of style: a classifier on character n-grams, always asked about unseen groups


def read_for_authors(texts: Sequence[dict]) -> pd.DataFrame:
    """Return prediction records of the classifier as a reader for each author: `score` is P(that author wrote it).

    texts: text records. It never sees another text on the same prompt. What it recognises is in the texts, so its J
    (`stats.recognition_table`) is a floor of what there is to know, and a ceiling for readers of style.
    """
    frame = pd.DataFrame(texts)
    chances = out_of_fold(frame["text"], frame["author"], frame["prompt_id"])
    about = frame[["text_id", "prompt_id"]].assign(
        true_model=frame["author"], task_type="exact_model", predicted_model=chances.idxmax(axis=1)
    )
    return pd.concat([about.assign(evaluator_model=name, score=chances[name]) for name in chances], ignore_index=True)


# ---------------------------------------------------------------------------------------------------------------
# The existence test: what a model says of real models against what it says of invented ones
