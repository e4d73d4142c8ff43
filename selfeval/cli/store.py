"""`store`: look at and share the stored replies."""

import contextlib
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import FILES, FilePath, print_table


@main.group()
def store() -> None:
    """Look at and share the stored replies."""


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
def export(file: Path) -> None:
    """Write the stored replies to FILE (.jsonl, .jsonl.xz)."""
    with _opened() as replies:
        click.echo(f"{replies.export_file(file)} replies written to {file}")


@store.command("import")
@FILES
def import_(files: tuple[Path, ...]) -> None:
    """Add the replies of exported FILES (.jsonl, .jsonl.xz) to the store."""
    with _opened() as replies:
        for file in files:
            new, known = replies.import_file(file)
            click.echo(f"{file}: {new} new replies, {known} already stored")


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
