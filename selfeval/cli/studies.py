"""A study in one command: `recognise`, `jury` and `profile`."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import COUNT, WORDS, author, ids, study_options
from selfeval.cli.running import named_study, run_study
from selfeval.paths import shipped
from selfeval.providers.models import can_choose, check_part, get, get_all


@main.command()
@click.argument("texts", required=False, metavar="[TEXTS]")
@click.option(
    "--models", required=True, type=ids, metavar="ID,ID,...", help="Models, separated by commas."
)
@click.option(
    "--authors", multiple=True, type=author, metavar="AUTHOR=ID", help="Who AUTHOR is; repeatable."
)
@click.option("--limit", type=COUNT, help="How many prompts; by default 20, or all of TEXTS.")
@click.option("--allow-strangers", is_flag=True, help="Also ask models that wrote none of TEXTS.")
@study_options
def recognise(
    texts, models: list[str], authors: tuple, limit: int | None, allow_strangers: bool, out, **how
):
    """Test whether models recognise their own texts.

    TEXTS is a CSV with the columns author, prompt and text, or a corpus; without it the models
    write texts first.

    --authors: which model TEXTS, or replies, call AUTHOR; without ID it is somebody else, and with
    "no answer" as ID nobody.
    """
    from selfeval.records.fields import NO_ANSWER
    from selfeval.records.tables import corpus_to_read

    file = corpus_to_read(texts).absolute() if texts else None
    title, out = named_study("recognise", file or "", models, out)
    # what cannot be read or asked is refused before anything runs
    if file:
        variables = _about_texts(file, models, dict(authors), limit or 0, allow_strangers)
        called = variables["called"]
    else:
        get_all(models, "write texts")
        called = dict(authors)
        variables = {"corpus": str(out / "texts"), "limit": limit or 20, "authors": called}
        variables["prompts"] = str(shipped("prompts.jsonl"))
    for model in called.values():
        if model not in (None, NO_ANSWER):
            get(model)
    can_choose(get_all(models))
    variables["models"] = models
    run_study("texts" if texts else "recognition", variables, models, out, title, **how)


def _about_texts(
    file: Path, models: list[str], authors: dict, limit: int, allow_strangers: bool
) -> dict:
    """Return the parameters of a study of texts; `called` says who is who in replies alone."""
    from selfeval.recognition.run import match_authors
    from selfeval.records.texts import read_texts

    rows = read_texts(file, limit)
    names = {row["author"] for row in rows} | {row["author_display"] for row in rows}
    called = {name: model for name, model in authors.items() if name not in names}
    wrote = {name: model for name, model in authors.items() if name in names}
    judges = get_all(models, "recognise texts")
    match_authors(rows, judges, wrote, allow_strangers=allow_strangers)
    asking = {"allow_strangers": allow_strangers}
    about = {"authors": wrote, "corpus": str(file), "limit": limit, "called": called}
    return about | {"asking": asking}


@main.command()
@click.option(
    "--models",
    "agent",
    required=True,
    metavar="ID",
    help="Who answers in people's place.",
)
@click.option(
    "--jurors",
    required=True,
    type=ids,
    metavar="ID,ID,...",
    help="Who judges; one takes all personas.",
)
@click.option(
    "--people",
    default=20,
    show_default=True,
    type=COUNT,
    help="Chats between people.",
)
@WORDS
@study_options
def jury(agent: str, jurors: list[str], people: int, words: int, out: Path | None, **how) -> None:
    """Test whether a jury tells a model from people.

    It judges alone, after a second look, and in a debate. Each chat between people has a twin in
    which the model answers in one person's place.
    """
    check_part(get(agent), "play the agent")
    for juror in jurors:
        check_part(get(juror), "judge")
    variables = {"agent": agent, "jurors": jurors, "people": people, "words": words}
    title, out = named_study("jury", "", [agent, *jurors], out)
    run_study("jury", variables, [agent, *jurors], out, title, **how)


@main.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--prompts", default=0, type=click.IntRange(0), help="Writing prompts; 0: by price.")
@click.option("--templates", default=0, type=click.IntRange(0), help="Situations; 0: by price.")
@click.option("--people", default=0, type=click.IntRange(0), help="Chats of people; 0: by price.")
@click.option(
    "--jurors", default="", type=ids, metavar="ID,ID,...", help="Who judges; by default MODELs."
)
@click.option(
    "--rivals", default="", type=ids, metavar="ID,ID,...", help="Models of like strength beside it."
)
@study_options
def profile(
    models: Sequence[str],
    prompts: int,
    templates: int,
    people: int,
    jurors: Sequence[str],
    rivals: Sequence[str],
    out: Path | None,
    **how,
) -> None:
    """Put on one page what each MODEL knows about itself.

    Does it recognise its texts, does it know its name, does a jury tell it from people? With
    --max-cost, as much is asked as half of it pays for by a dry run. The packaged texts of others
    are by small models: --rivals write as well, and are asked about the same texts.
    """
    from selfeval.identity.run import identity as who_is

    models = list(itertools.chain.from_iterable(map(ids, models)))
    asked = get_all(models, "write texts")
    for model in asked:
        who_is(model)
    can_choose(asked)
    size = {"prompts": prompts, "templates": templates, "people": people}
    variables = {"models": models, "jurors": jurors, "rivals": rivals, "size": size}
    variables["max_cost"] = how["max_cost"]
    title, out = named_study("profile", "", models, out, [str(size), *jurors, *rivals])
    run_study("profile", variables, [*models, *jurors, *rivals], out, title, **how)
