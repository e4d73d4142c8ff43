"""The `selfeval store` commands: look at, share and merge the stored replies."""

from datetime import datetime
from pathlib import Path

import click

from selfeval.asking.recordings import STORED
from selfeval.figures.cards import columns


@click.group()
def store() -> None:
    """Look at, share and merge the stored replies."""


@store.command()
def stats() -> None:
    """Count the stored replies with their tokens and cost per model, and what went wrong."""
    from selfeval.asking.store import Store

    replies = Store()
    rows = [("PROVIDER", "MODEL", "REPLIES", "TOKENS IN", "TOKENS OUT", "USD")]
    for row in replies.statistics():
        money = "?" if row["unpriced"] == row["replies"] else f"{row['cost']:.4f}" + "+?" * bool(row["unpriced"])
        tokens = ("?" if row[name] is None else row[name] for name in ("prompt_tokens", "completion_tokens"))
        rows.append((row["provider"], row["model"], row["replies"], *tokens, money))
    click.echo(columns(rows))
    for outcome, count in replies.outcomes().items():
        click.echo(f"{count} attempts without a reply: {outcome}")
    click.echo(str(replies.path))


@store.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--model", default="%", help="Only API names LIKE this pattern, e.g. 'openai/%'.")
def export(file: Path, model: str) -> None:
    """Write the stored replies to FILE as JSON lines."""
    from selfeval.asking.store import Store

    click.echo(f"{Store().export_file(file, model)} replies written to {file}")


@store.command()
@click.option("--model", default="%", help="Only API names of this pattern, e.g. 'openai/%'; % is any text.")
@click.option("--status", multiple=True, type=click.Choice(STORED), help="Only replies of this status; repeatable.")
@click.option("--since", type=click.DateTime(), help="Only replies stored at this local time or later.")
@click.option("--dry-run", is_flag=True, help="Count what would go, and delete nothing.")
def forget(model: str, status: tuple[str, ...], since: datetime | None, dry_run: bool) -> None:
    """Delete stored replies, to ask and pay for them anew; give at least one of the first three options."""
    from selfeval.asking.store import Store

    if model == "%" and not status and not since:
        raise click.UsageError("forget needs --model, --status or --since; without any it would delete every reply.")
    replies = Store()
    counts = replies.forget(model, status, since.timestamp() if since else 0.0, dry_run=dry_run)
    replies.close()
    click.echo(columns([("MODEL", "STATUS", "REQUESTS"), *((*what, n) for what, n in sorted(counts.items()))]))
    click.echo(f"{sum(counts.values())} requests with their replies {'would be' if dry_run else 'are'} forgotten")


@store.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def import_(files: tuple[Path, ...]) -> None:
    """Add the replies of exported FILES to the store."""
    from selfeval.asking.store import Store

    _add(files, Store.import_file)


@store.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def merge(files: tuple[Path, ...]) -> None:
    """Add the replies and failed attempts of other hosts' stores, FILES, to the store; a second time adds nothing."""
    from selfeval.asking.store import Store

    _add(files, Store.merge)


def _add(files: tuple[Path, ...], add) -> None:
    """Add files to the store by one of its methods, and say of each how many replies were new."""
    from selfeval.asking.store import Store

    replies = Store()
    for file in files:
        new, known = add(replies, file)
        click.echo(f"{file}: {new} new replies, {known} already stored")
    replies.close()
