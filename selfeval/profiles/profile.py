"""The verb `profile`: ask the three questions and measure the answers."""

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pandas as pd

from selfeval.api import Ids
from selfeval.identity.run import identity
from selfeval.paths import make_private_folder
from selfeval.profiles import display
from selfeval.profiles.measures import Results, measure, quotes, rows_of
from selfeval.profiles.run import FORM, SIZES, USUAL, Answers, Size, affordable, ask_all, size_of
from selfeval.providers import client, dry_runs
from selfeval.providers.client import Asking, verb
from selfeval.providers.models import get_all
from selfeval.records import tables as record_files
from selfeval.records.tables import Rows

if TYPE_CHECKING:
    from selfeval.figures.style import Drawing


@dataclass
class Profile:
    """What models know about themselves.

    rows: one per model and question (`selfeval.profiles.measures.rows_of`). quotes: a right and a
    wrong reply each, and one without an answer. asked: in words, what was asked of whom and at what
    price. answers, results: what these come from.
    """

    rows: pd.DataFrame
    quotes: pd.DataFrame
    asked: dict[str, str]
    answers: Answers = field(repr=False)
    results: Results = field(repr=False)

    def __repr__(self) -> str:
        return display.as_text(self.rows)

    def _repr_html_(self) -> str:
        return display.in_words(self.rows).to_html(border=0)

    def figure(self) -> "Drawing":
        """Draw all rows on one scale, where 0 is chance and 1 is perfect."""
        return display.figure(self.rows)

    def records(self) -> dict[str, list[dict]]:
        """Return {name of a file: all records that `save` writes there}."""
        kept = {
            "predictions_binary_self": self.answers.recognition,
            "identity": self.answers.identity,
        }
        for model, verdicts in self.answers.jury.items():
            folder = f"jury/{model.replace('/', '_')}"
            kept[f"{folder}/verdicts"] = record_files.rows_of(verdicts)
            kept[f"{folder}/conversations"] = record_files.rows_of(verdicts.conversations)
        return kept

    def failed(self) -> int:
        """Return how many calls failed; the same profile again makes only these."""
        records = itertools.chain.from_iterable(self.records().values())
        return sum(record["status"] == "error" for record in records)

    def save(self, out: str | Path) -> Path:
        """Write figure, rows, quotes and all records to a folder below data/, and return it."""
        folder = record_files.data_path(out)
        make_private_folder(folder)
        self.figure().save(folder / "profile")
        record_files.write_csv(folder / "profile.csv", self.rows)
        record_files.write_csv(folder / "quotes.csv", self.quotes)
        for name, records in self.records().items():
            record_files.write_jsonl(folder / f"{name}.jsonl", records)
        return folder


@verb
def profile(
    models: Ids,
    *,
    prompts: int = 0,
    templates: int = 0,
    people: int = 0,
    jurors: Ids = (),
    rivals: Ids = (),
    corpus: Rows = FORM["corpus"],
    seed: int = 0,
    **asking: Unpack[Asking],
) -> Profile:
    """Ask models the three questions of this package, and measure the answers.

    Does a model recognise its texts, does it know its name, does a jury tell it from people?

    models: ids. prompts, templates, people: how many writing prompts, situations of the identity
    suite and chats between people; 0 for the usual numbers, or with `max_cost` for the largest that
    half of it pays for by a dry run. jurors: who judges; none for the models themselves. rivals:
    models of like strength, who write too and are asked about the same texts; several `models` are
    each other's rivals. corpus: a name, file or rows with the texts of other authors, on whose
    prompts the models write; unless given, texts that come with the package. seed: of texts, foils
    and replies. The result has `rows`, `quotes`, `figure()` and `save(out)`; `00_profile` shows it.
    """
    asked = [model.id for model in get_all(models, "write texts")]
    for model in asked:
        identity(model)  # before texts are paid for
    judges = [model.id for model in get_all(jurors or asked, "judge")]
    writers = get_all(rivals, "write texts") if rivals else []
    beside = [model.id for model in writers if model.id not in asked]
    dry_run = asking.pop("dry_run", False)
    max_cost = asking.pop("max_cost", None)
    given = {"prompts": prompts, "templates": templates, "people": people}

    def ask(size: Size, calls: Callable = lambda: asking) -> Answers:
        return ask_all(asked, beside, size, corpus, judges, seed, calls)

    size = size_of(USUAL, **given)
    more = ""
    if max_cost is not None:
        sizes = dict.fromkeys(size_of(each, **given) for each in SIZES)
        affordable_size, more = affordable(ask, list(sizes), max_cost)
        size = affordable_size or size
    if dry_run:
        with dry_runs.counting() as counts:
            ask(size)
            return dry_runs.prices(counts)
    spending = Spending(max_cost)
    answers = ask(size, partial(spending.keywords, asking))
    results = measure(answers)
    words = {
        "asked": f"{size}; jurors: {', '.join(judges)}",
        "texts": _said_of_texts(answers, corpus),
        "calls": str(spending.so_far()),
    }
    if more:
        words["a larger size"] = more
    quoted = quotes(answers)
    quoted = quoted[quoted["model"].isin(asked)].reset_index(drop=True)  # without rivals
    return Profile(rows_of(results), quoted, words, answers, results)


def _said_of_texts(answers: Answers, corpus: Rows) -> str:
    """Return who wrote the texts that were asked about, and what these can show of one model."""
    rows = pd.DataFrame(answers.recognition)
    said = f"by {', '.join(rows['true_model_display'].unique())}"
    if rows["evaluator_model"].nunique() > 1 or str(corpus) != FORM["corpus"]:
        return said
    return f"{said}. {FORM['others']}"


class Spending:
    """What the calls of a profile may spend together, and what they did spend.

    most: US dollars, None for any. Where a sweep has set a ceiling for all its runs, that holds.
    """

    def __init__(self, most: float | None):
        self.most = most
        self.start = len(client.tallies)  # every verb has a client of its own

    def keywords(self, asking: Asking) -> Asking:
        """Return the keywords of a verb that asks, with what is left of the ceiling."""
        if self.most is None or os.environ.get("SELFEVAL_MAX_COST"):
            return asking
        return asking | {"max_cost": max(self.most - self.so_far().cost, 0)}

    def so_far(self) -> client.Tally:
        """Return what the calls took so far, and how many replies were stored or simulated."""
        return sum(client.tallies[self.start :], client.Tally())
