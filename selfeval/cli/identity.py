"""`identity`: the built-in suite, or a configuration of the published form."""

import itertools
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import FilePath, confirm_calls, ids, study_options
from selfeval.cli.running import named_study, run_study
from selfeval.paths import check_begins, check_writable
from selfeval.providers.models import get_all


@main.command()
@click.argument("config", required=False, type=FilePath())
@click.option(
    "--models", "--model", "ids", multiple=True, required=True, type=ids, metavar="ID,ID,..."
)
@click.option(
    "--scoring",
    metavar="METHOD",
    help="How replies are scored; mine:f is the function f of mine.py.",
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    help="How many templates (by default 18), or cases of CONFIG; 0: all.",
)
@study_options
def identity(config: Path | None, ids, scoring, limit: int | None, out: Path | None, **how):
    """Ask models who they are, with the built-in suite or your own CONFIG.

    CONFIG has the form of data/identity/published.json; --out is then the JSON file to write: the
    result object of one model, or a list with one for each of several.
    """
    from selfeval.identity.run import identity as who_is
    from selfeval.identity.scorers import as_scorer

    ids = [*itertools.chain.from_iterable(ids)]
    if config is not None:
        if out is None:
            raise click.UsageError("With a CONFIG, --out names the JSON file to write.")
        _run_config(config, ids, scoring, limit, out, **how)
        return
    as_scorer(scoring or "")  # a function that is not there is said at once
    for model in get_all(ids, "say which model they are"):
        who_is(model)
    variables = {
        "models": ids,
        "scoring": scoring or "claims",
        "limit": 18 if limit is None else limit,
    }
    title, out = named_study("identity", "", ids, out)
    run_study("identity", variables, ids, out, title, **how)


def _run_config(
    config: Path, ids: list[str], scoring, limit: int | None, out: Path, *, yes, dry_run, max_cost
):
    """Run a configuration of the published form after a question, and write the results."""
    from selfeval.identity.published import EvalRunner, save_results
    from selfeval.providers import dry_runs
    from selfeval.providers.embedded import require

    runner = EvalRunner(config)
    runner.config["test_cases"] = runner.config["test_cases"][: limit or None]
    asked = get_all(ids, "say which model they are")
    if not dry_run:
        for model in asked:  # before the first is paid for
            require(model)
    check_writable(out)
    check_begins(out, b'{ "model_id": ""')
    with dry_runs.counting() as counts:
        runner.run_all(asked, scoring=scoring)
        to_buy = dry_runs.print_calls(dry_runs.prices(counts))
    if dry_run:
        return
    if to_buy and not yes:
        confirm_calls(to_buy)
    results = runner.run_all(asked, scoring=scoring, max_cost=max_cost, verbose=True)
    save_results(results[0] if len(results) == 1 else results, out)
    click.echo(f"written to {out}")
