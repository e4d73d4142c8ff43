"""What a profile asks a model: about texts, about its name, and to talk before a jury."""

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pandas as pd

from selfeval import api
from selfeval.bounds import read_yaml
from selfeval.errors import BudgetError, check_whole
from selfeval.paths import shipped
from selfeval.providers import dry_runs
from selfeval.records.tables import Rows, rows_of
from selfeval.records.texts import read_texts

FORM: dict = read_yaml(shipped("profile.yaml").read_text(encoding="utf-8"))
TRUE_AND_FALSE = ("neutral", "false-far", "true")
# of --max-cost, what the estimated price may be: replies are longer than estimated, and asked again
SHARE = 0.5


@dataclass(frozen=True)
class Size:
    """How much a profile asks: prompts of recognition, templates of identity, chats of people."""

    prompts: int
    templates: int
    people: int

    def __str__(self) -> str:
        return f"{self.prompts} prompts, {self.templates} templates, {self.people} chats"


SIZES = [Size(**size) for size in FORM["sizes"]]
USUAL = Size(**FORM["usual"])


@dataclass
class Answers:
    """What models answered: records of recognition and identity; of juries, verdicts by agent."""

    recognition: list[dict] = field(default_factory=list)
    identity: list[dict] = field(default_factory=list)
    jury: dict[str, pd.DataFrame] = field(default_factory=dict)


def size_of(usual: Size, **given: int) -> Size:
    """Return a size with the numbers that are given; 0 is for the usual one."""
    for name, number in given.items():
        check_whole(name, number)
    return Size(**asdict(usual) | {name: number for name, number in given.items() if number})


def ask_all(
    models: Sequence[str],
    rivals: Sequence[str],
    size: Size,
    corpus: Rows,
    jurors: Sequence[str],
    seed: int,
    asking: Callable[[], Mapping],
) -> Answers:
    """Ask every model everything, and rivals about texts alone; return the answers.

    Models and rivals all write, and are all asked about all texts. asking: returns the keywords of
    each call, with what is left of the ceiling.
    """
    others, prompts = _texts_of_others(corpus, size.prompts)
    answers = Answers()
    writers = [*models, *rivals]
    written = rows_of(api.generate_texts(writers, prompts, seed=seed, **asking()))
    others = [row for row in others if row["author"] not in writers]
    for row in (*written, *others):  # one condition for all: a corpus may not say what was asked
        row.pop("words_asked", None)
    for model in writers:
        claims = api.collect_predictions(
            written + others,
            model,
            tasks=FORM["rows"]["recognition"]["task"],
            allow_strangers=True,
            seed=seed,
            **asking(),
        )
        answers.recognition += rows_of(claims)
    for model in models:
        replies = api.ask_identity(
            model, arms=TRUE_AND_FALSE, limit=size.templates, turns=0, seed=seed, **asking()
        )
        answers.identity += rows_of(replies)
        talks = api.converse(model, people=size.people, seed=seed, **asking())
        answers.jury[model] = api.judge(
            talks,
            jurors,
            FORM["rows"]["jury"]["task"],
            scope="conversation",
            words=0,
            seed=seed,
            **asking(),
        )
    return answers


def _texts_of_others(corpus: Rows, limit: int) -> tuple[list[dict], list[dict]]:
    """Return the texts of a corpus on its first prompts, and these prompts with their length.

    Of the packaged corpus only texts by the authors that data/profile.yaml names.
    """
    rows = read_texts(corpus, limit)
    if isinstance(corpus, str) and corpus == FORM["corpus"]:
        rows = [row for row in rows if row["author"] in FORM["authors"]]
    prompts = {}
    for row in rows:
        asked = {"prompt_id": row["prompt_id"], "prompt": row["prompt"]}
        if row.get("words_asked"):
            asked["words"] = row["words_asked"]
        prompts[row["prompt_id"]] = asked
    return rows, list(prompts.values())


def affordable(
    count: Callable[[Size], object], sizes: Sequence[Size], max_cost: float
) -> tuple[Size | None, str]:
    """Return the largest size whose price is half of `max_cost`, and what the next would cost.

    None where nobody knows a price. count: asks everything at a size; here it is a dry run, in
    which stored replies count as if they were bought, so that an interrupted profile resumes at its
    own size. Raises `BudgetError` where even the smallest costs more.
    """
    size = None
    for larger in sizes:
        price = _price(count, larger)
        if price is None:
            return None, "Nobody knows what these models cost, so the size is the usual one."
        if price > SHARE * max_cost:
            break
        size = larger
    else:
        return size, ""
    if size is None:
        rule = f"{larger} cost about ${price:,.2f}, more than half of max_cost (${max_cost:g})"
        raise BudgetError(f"{rule}; allow ${price / SHARE:,.2f}, or ask fewer models.")
    return size, f"{larger.prompts} prompts would cost about ${price:,.2f}."


def _price(count: Callable[[Size], object], size: Size) -> float | None:
    """Return the dollars that a size takes for replies of typical length; None if unknown."""
    silent = contextlib.redirect_stdout(io.StringIO())
    with silent, dry_runs.counting(from_nothing=True) as counts:
        count(size)
        dollars = dry_runs.prices(counts)["usd_low"]
    return None if dollars.isna().any() else float(dollars.sum())
