"""`measure`: what logs of Inspect AI say."""

from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import FilePath
from selfeval.cli.running import named_study
from selfeval.secrets import visible


@main.command()
@click.argument("logs", nargs=-1, required=True, type=FilePath(exists=True))
@click.option(
    "--out",
    type=FilePath(),
    help="Folder for the tables and the figure; by default one of its own.",
)
def measure(logs: tuple[Path, ...], out: Path | None) -> None:
    """Measure LOGS of Inspect AI, files or folders.

    Prints the rate or mean score of each model with its interval, and the differences between
    models, paired by sample.
    """
    from selfeval import api
    from selfeval.estimates import comparisons, saved
    from selfeval.sweep.execute import named

    result = api.measure_log(logs)
    for table in (result, comparisons.compare(result)):
        click.echo()
        if len(table):
            click.echo(visible(table.short().to_string(index=False)))
    _, out = named_study("measure", logs[0].name, [*map(str, logs)], out)
    folder = saved.save(result, out)
    for figure in sorted(folder.glob("*.png")):
        click.echo(f"figure: {figure}")
    click.echo(f"outputs: {named(folder)}")
