"""`store`: look at, share and merge the stored replies."""

import contextlib
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import FILES, FilePath, print_table


@main.group()
def store() -> None:
    """Look at, share and merge the stored replies."""


def _opened():
    from selfeval.providers.store import Store

    return contextlib.closing(Store())


@store.command()
def stats() -> None:
    """Count stored replies, their tokens and cost, and failures."""
    import pandas as pd

    with _opened() as replies:
        if rows := replies.statistics():
            print_table(pd.DataFrame(rows))
        for outcome, count in replies.outcomes().items():
            click.echo(f"{count} attempts without a reply: {outcome}")
        click.echo(str(replies.path))


@store.command()
@click.argument("file", type=FilePath(dir_okay=False))
@click.option(
    "--model", default="%", help="Only models whose API name is LIKE this, e.g. 'openai/%'."
)
def export(file: Path, model: str) -> None:
    """Write the stored replies to FILE (.jsonl, .jsonl.xz)."""
    with _opened() as replies:
        click.echo(f"{replies.export_file(file, model)} replies written to {file}")


@store.command("import")
@FILES
def import_(files: tuple[Path, ...]) -> None:
    """Add the replies of exported FILES (.jsonl, .jsonl.xz) to the store."""
    _add(files, "import_file")


@store.command()
@FILES
def merge(files: tuple[Path, ...]) -> None:
    """Add the replies of other hosts' stores, FILES, to the store.

    A second time adds nothing.
    """
    _add(files, "merge")


@store.command("forget-batch")
@click.argument("batch", metavar="ID")
def forget_batch(batch: str) -> None:
    """Free the requests of a batch to be sent again.

    ID is the one that their errors name. Look first whether the provider lists the batch: what it
    has will be paid for.
    """
    from selfeval.providers.batches import forget

    with _opened() as replies:
        click.echo(f"{forget(replies, batch)} requests of the batch {batch} can be sent again")


def _add(files: tuple[Path, ...], method: str) -> None:
    """Add files to the store by one of its methods, and say of each how many replies were new."""
    with _opened() as replies:
        for file in files:
            new, known = getattr(replies, method)(file)
            click.echo(f"{file}: {new} new replies, {known} already stored")
