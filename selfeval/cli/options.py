"""What several commands take, ask and print."""

import contextlib
import functools
import os
from pathlib import Path

import click
import yaml

from selfeval.bounds import read_yaml
from selfeval.secrets import visible


def ids(text: str) -> list[str]:
    """Split ids or names by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def variable(text: str) -> tuple:
    """Return NAME=VALUE as (name, value), the value read as YAML."""
    name, equals, value = text.partition("=")
    if name.strip() and equals:
        with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):
            return name.strip(), read_yaml(value)
    raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE.")


def author(text: str) -> tuple[str, str | None]:
    """Return AUTHOR=ID as (author, id); without an ID somebody else's."""
    author, equals, model = text.partition("=")
    if not (author.strip() and equals):
        raise click.BadParameter(f"{text!r} is not of the form AUTHOR=ID.")
    return author.strip(), model.strip() or None


FilePath = functools.partial(click.Path, path_type=Path)
SEED = click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
COUNT = click.IntRange(1)
AMOUNT = click.FloatRange(0)
IN_FLIGHT = click.option(
    "--concurrency", default=16, show_default=True, type=COUNT, help="Calls in flight."
)
CEILING = click.option(
    "--max-cost", type=AMOUNT, metavar="USD", help="The most to spend, in US dollars."
)

YES = click.option("--yes", "-y", is_flag=True, help="Do not ask before calls are made.")
COUNTED = "Only print the calls, tokens and dollars it would take."
DRY_RUN = click.option("--dry-run", is_flag=True, help=COUNTED)
ARGUED = "How long a juror argues before its score; 0: one short sentence."
WORDS = click.option(
    "--words", default=60, show_default=True, type=click.IntRange(0, 150), help=ARGUED
)


def _batch(_context, _option, given: bool) -> None:
    if given:
        os.environ["SELFEVAL_BATCH"] = "1"  # for notebooks too


BATCH = click.option(
    "--batch", is_flag=True, expose_value=False, callback=_batch, help="Half price, up to 24 hours."
)
FILES = click.argument("files", nargs=-1, required=True, type=FilePath(exists=True, dir_okay=False))


def study_options(command):
    """Add the options that all studies take."""
    for option in (
        YES,
        DRY_RUN,
        BATCH,
        CEILING,
        click.option(
            "--out",
            "--output",
            "out",
            type=FilePath(),
            help="Folder; by default one of its own in data/runs.",
        ),
    ):
        command = option(command)
    return command


def confirm_calls(calls: int) -> None:
    """Ask whether so many calls may be made, and end the command if not."""
    click.confirm(f"Make {calls:,} calls? (--yes skips this question)", abort=True)


def print_table(frame) -> None:
    """Print a DataFrame, its first column to the left, and what is not known as a question mark."""
    frame = frame.astype(object).where(frame.notna(), "?").set_index(frame.columns[0])
    click.echo(visible(frame.rename_axis(None).to_string(float_format="{:.10g}".format)))
