"""The verb `profile`: ask the three questions, measure, and put the answers on a page."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pandas as pd

from selfeval.api import Ids, judge
from selfeval.errors import InputError
from selfeval.identity.run import identity
from selfeval.paths import make_private_folder, write_whole
from selfeval.profiles import page
from selfeval.profiles.measures import Results, changes, measure, quotes, rows_of
from selfeval.profiles.run import FORM, SIZES, USUAL, Answers, Size, affordable, ask_all, size_of
from selfeval.providers import client, dry_runs
from selfeval.providers.client import Asking, verb
from selfeval.providers.models import get_all
from selfeval.records import tables as record_files
from selfeval.records.tables import Rows

if TYPE_CHECKING:
    from selfeval.figures.style import Drawing

RECORDS = {"recognition": "predictions_binary_self", "identity": "identity"}


@dataclass
class Profile:
    """What models know about themselves.

    rows: one per model and question (`selfeval.profiles.measures.rows_of`). quotes: a right and a
    wrong reply each, and one without an answer. changes: since an earlier profile, empty without
    one. asked: in words, what was asked of whom, when and at what price. answers, results: what
    these come from.
    """

    rows: pd.DataFrame
    quotes: pd.DataFrame
    changes: pd.DataFrame
    asked: dict[str, str]
    answers: Answers = field(repr=False)
    results: Results = field(repr=False)

    def __repr__(self) -> str:
        return page.as_text(self.rows, self.changes)

    def _repr_html_(self) -> str:
        return page.table(self.rows)

    def figure(self) -> "Drawing":
        """Draw all rows on one scale, where 0 is chance and 1 is perfect."""
        return page.figure(self.rows)

    def page(self) -> str:
        """Return the page as HTML, in one file that loads nothing."""
        return page.write(self.rows, self.quotes, self.changes, self.asked, self.figure())

    def failed(self) -> int:
        """Return how many calls failed; the same profile again makes only these."""
        records = [*self.answers.recognition, *self.answers.identity]
        for verdicts in self.answers.jury.values():
            records += verdicts.to_dict("records")
        return sum(record["status"] == "error" for record in records)

    def save(self, out: str | Path) -> Path:
        """Write profile.html, its figure and tables, and all records.

        out: a folder below data/, which is returned; `against` reads it again.
        """
        folder = record_files.data_path(out)
        make_private_folder(folder)
        self.figure().save(folder / "profile")
        write_whole(folder / "profile.html", self.page())
        tables = {"profile": self.rows, "quotes": self.quotes, "changes": self.changes}
        for name, table in tables.items():
            if len(table):
                record_files.write_csv(folder / f"{name}.csv", table)
        for question, name in RECORDS.items():
            records = getattr(self.answers, question)
            record_files.write_jsonl(folder / f"{name}.jsonl", records)
        for model, verdicts in self.answers.jury.items():
            inside = folder / "jury" / model.replace("/", "_")
            kept = {"verdicts": verdicts, "conversations": verdicts.conversations}
            for name, records in kept.items():
                rows = record_files.rows_of(records)
                record_files.write_jsonl(inside / f"{name}.jsonl", rows)
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
    against: str | Path = "",
    seed: int = 0,
    **asking: Unpack[Asking],
) -> Profile:
    """Ask models the three questions of this package, and return one page on the answers.

    Does a model recognise its texts, does it know its name, does a jury tell it from people?

    models: ids. prompts, templates, people: how many writing prompts, situations of the identity
    suite and chats between people; 0 for the usual numbers, or with `max_cost` for the largest that
    half of it pays for by a dry run. jurors: who judges; none for the models themselves. rivals:
    models of like strength, who write too and are asked about the same texts; several `models` are
    each other's rivals. corpus: a name, file or rows with the texts of other authors, on whose
    prompts the models write; unless given, texts that come with the package. against: the folder of
    an earlier profile, with which each row is compared. seed: of texts, foils and replies. The
    result has `rows`, `figure()`, `page()` and `save(out)`.
    """
    asked = [model.id for model in get_all(models, "write texts")]
    for model in asked:
        identity(model)  # before texts are paid for
    judges = [model.id for model in get_all(jurors or asked, "judge")]
    writers = get_all(rivals, "write texts") if rivals else []
    beside = [model.id for model in writers if model.id not in asked]
    dry_run = asking.pop("dry_run", False)
    max_cost = asking.pop("max_cost", None)
    earlier = read_answers(against) if against else None
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
    found = changes(results, measure(earlier)) if earlier else pd.DataFrame()
    words = {
        "asked": f"{size}; jurors: {', '.join(judges)}",
        "texts": _said_of_texts(answers, corpus),
        "when": f"{datetime.now(UTC):%Y-%m-%d}",
        "served by": _servers(answers),
        "price": spending.said(),
    }
    if more:
        words["a larger size"] = more
    quoted = quotes(answers)
    quoted = quoted[quoted["model"].isin(asked)].reset_index(drop=True)  # without rivals
    return Profile(rows_of(results), quoted, found, words, answers, results)


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
        return asking | {"max_cost": max(self.most - self._so_far().cost, 0)}

    def said(self) -> str:
        """Return what was spent, and how many replies had been bought or were simulated."""
        now = self._so_far()
        parts = [f"${now.cost:,.2f} for {now.calls} calls"]
        if now.unpriced:
            parts.append(f"the price of {now.unpriced} of them is unknown")
        for name, count in {"stored": now.stored, "simulated": now.simulated}.items():
            if count:
                parts.append(f"{count} {name} replies")
        return ", ".join(parts)

    def _so_far(self) -> client.Tally:
        return sum(client.tallies[self.start :], client.Tally())


def _servers(answers: Answers) -> str:
    """Return which model answered under which id, and who served it behind a router."""
    served: dict[str, None] = {}
    for row in (*answers.recognition, *answers.identity):
        model = row.get("evaluator_model") or row["model"]
        names = [row[name] for name in ("served_model", "served_by") if row[name]]
        if names:
            served[f"{model}: {' via '.join(names)}"] = None
    return "; ".join(served)


def read_answers(folder: str | Path) -> Answers:
    """Return the answers that `Profile.save` kept in a folder; raise `InputError` for another."""
    place = record_files.path_to_read(folder)
    file = place / "profile.csv"
    if not file.is_file():
        raise InputError(f"{place} holds no profile.csv; name the folder of an earlier profile.")
    kept: dict = {
        name: record_files.read_jsonl(place / f"{stem}.jsonl") for name, stem in RECORDS.items()
    }
    answers = Answers(**kept)
    for model in pd.read_csv(file)["model"].unique():
        verdicts = place / "jury" / model.replace("/", "_") / "verdicts.jsonl"
        answers.jury[model] = judge((), (), verdicts=verdicts)
    return answers
