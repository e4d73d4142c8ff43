"""`identity`: the built-in suite."""

import itertools
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import ids, study_options
from selfeval.cli.running import named_study, run_study
from selfeval.providers.models import get_all


@main.command()
@click.option(
    "--models", "--model", "ids", multiple=True, required=True, type=ids, metavar="ID,ID,..."
)
@click.option(
    "--scoring",
    default="claims",
    show_default=True,
    type=click.Choice(["claims", "keyword_match", "regex"]),
    help="How replies are scored.",
)
@click.option(
    "--limit",
    default=18,
    show_default=True,
    type=click.IntRange(0),
    help="How many templates; 0: all.",
)
@study_options
def identity(ids, scoring, limit: int, out: Path | None, **how):
    """Ask models who they are, with the built-in suite."""
    from selfeval.identity.run import identity as who_is

    ids = [*itertools.chain.from_iterable(ids)]
    for model in get_all(ids, "say which model they are"):
        who_is(model)
    variables = {"models": ids, "scoring": scoring, "limit": limit}
    title, out = named_study("identity", "", ids, out)
    run_study("identity", variables, ids, out, title, **how)
