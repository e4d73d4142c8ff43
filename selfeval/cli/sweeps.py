"""`sweep` runs notebooks, and `report` makes pages of them."""

import sys
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import BATCH, CEILING, COUNT, FilePath, variable


@main.command()
@click.argument("file", type=FilePath())
@click.option("--workers", type=COUNT, help="How many notebooks run at a time here; by default 2.")
@click.option("--out", type=FilePath(), help="Folder for the runs instead of data/runs/NAME.")
@click.option(
    "--set",
    "chosen",
    multiple=True,
    type=variable,
    metavar="NAME=VALUE",
    help="models=[a,b]; repeatable.",
)
@CEILING
@BATCH
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this Dask scheduler (docs/cluster.md).",
)
@click.option(
    "--dry-run", is_flag=True, help="Only print what would run, with calls, tokens and dollars."
)
def sweep(file: Path, workers: int | None, out: Path | None, chosen: tuple, **options) -> None:
    """Run the notebooks of a sweep FILE over their parameters.

    --max-cost: a sweep may exceed it by at most what is in flight.

    Run the same command again to resume: a run is done if it ended well with the same parameters
    and the same code in its notebook, and no file that they name has changed since. If one fails,
    only the runs that depend on it are not started.

    \b
    Exit status:
      0    everything is done
      1    a run failed or could not start, or the file is wrong
      2    an option is wrong
      3    every run ended, but in some of them calls failed
      130  stopped by Ctrl-C or TERM
    """
    from selfeval.sweep import run_file

    sys.exit(run_file(file, workers, out, variables=dict(chosen), **options))


@main.command()
@click.argument("folders", nargs=-1, type=FilePath(), metavar="[FOLDER]")
@click.option(
    "--out", type=FilePath(file_okay=False), help="Folder to write instead of data/report."
)
def report(folders: tuple[Path, ...], out: Path | None) -> None:
    """Turn the executed notebooks of FOLDER into HTML pages.

    FOLDER is a sweep's, such as data/runs/mine; without it, all sweeps in data/runs. An index lists
    the pages. They open from disk and load nothing from the network; keys are removed, and paths of
    the project, of your home and above FOLDER.
    """
    from selfeval.sweep.report import build

    click.echo(str(build(folders, out)))
