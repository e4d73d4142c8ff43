"""`identity`: the built-in suite, a configuration of the published form, or an attacker."""

import itertools
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import COUNT, IN_FLIGHT, SEED, FilePath, confirm_calls, ids, study_options
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
    "--repeats",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Times to ask each case.",
)
@click.option(
    "--judge",
    default="",
    metavar="ID",
    help="Model that scores, with --scoring judge.",
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    help="How many templates (by default 18), or cases of CONFIG; 0: all. Of an attack, openings.",
)
@click.option(
    "--attacker", default="", metavar="ID", help="Model that writes the messages, not a suite."
)
@click.option(
    "--strategies", type=ids, metavar="NAME,NAME,...", help="Of the attacker; by default all."
)
@click.option("--turns", type=COUNT, help="Messages of the attacker; by default 6.")
@study_options
@SEED
@IN_FLIGHT
def identity(config: Path | None, ids, out: Path | None, limit: int | None, **options):
    """Ask models who they are, with the built-in suite or your own CONFIG.

    CONFIG has the form of data/identity/published.json; --out is then the JSON file to write: the
    result object of one model, or a list with one for each of several.

    --attacker sees each conversation and writes its next message, by the strategies of
    data/identity/attack.yaml.
    """
    from selfeval.identity.run import identity as who_is
    from selfeval.identity.scorers import as_scorer

    ids = [*itertools.chain.from_iterable(ids)]
    attack = {name: options.pop(name) for name in ("attacker", "strategies", "turns")}
    if attack["attacker"]:
        if config is not None or options["judge"] or options["scoring"]:
            rule = "--attacker takes the place of CONFIG, and its probes are read by their claims"
            raise click.UsageError(f"{rule}; leave out CONFIG, --scoring and --judge.")
        _run_attack(ids, attack, out, limit or 0, **options)
        return
    if any(attack.values()):
        raise click.UsageError("--strategies and --turns are of an attack; name an --attacker.")
    if config is not None:
        if out is None:
            raise click.UsageError("With a CONFIG, --out names the JSON file to write.")
        _run_config(config, ids, out, limit, **options)
        return
    running = {name: options.pop(name) for name in ("yes", "dry_run", "max_cost")}
    as_scorer(options["scoring"] or "")  # a function that is not there is said at once
    options["scoring"] = options["scoring"] or "claims"
    options["limit"] = 18 if limit is None else limit
    for model in get_all(ids, "say which model they are"):
        who_is(model)
    asked = [*ids]
    if options["judge"]:
        asked.append(options["judge"])
    title, out = named_study("identity", "", ids, out)
    run_study("identity", {"models": ids} | options, asked, out, title, **running)


def _run_attack(
    ids: list[str], attack: dict, out: Path | None, limit: int, *, yes, dry_run, max_cost, **options
) -> None:
    """Run a study of conversations with an attacker."""
    from selfeval.errors import check_names
    from selfeval.identity.attack import STRATEGIES, TURNS
    from selfeval.identity.run import identity as who_is

    get_all(attack["attacker"], "attack")
    strategies = attack["strategies"] or list(STRATEGIES)
    check_names("strategies", strategies, STRATEGIES)
    for model in get_all(ids, "say which model they are"):
        who_is(model)
    asked = [*ids, attack["attacker"]]
    variables = {
        "models": ids,
        "attacker": attack["attacker"],
        "strategies": strategies,
        "turns": attack["turns"] or TURNS,
        "limit": limit,
        "repeats": options["repeats"],
        "seed": options["seed"],
        "concurrency": options["concurrency"],
    }
    title, out = named_study("interrogation", "", asked, out, strategies)
    running = {"yes": yes, "dry_run": dry_run, "max_cost": max_cost}
    run_study("interrogation", variables, asked, out, title, **running)


def _run_config(
    config: Path, ids: list[str], out: Path, limit: int | None, *, yes, dry_run, max_cost, **options
):
    """Run a configuration of the published form after a question, and write the results."""
    from selfeval.identity.published import EvalRunner, save_results
    from selfeval.providers import dry_runs
    from selfeval.providers.embedded import require

    runner = EvalRunner(config)
    runner.config["test_cases"] = runner.config["test_cases"][: limit or None]
    asked = get_all(ids, "say which model they are")
    scoring = options["scoring"] or runner.scoring.get("method")
    if options["judge"] and scoring != "judge":
        used = "--judge is only used with --scoring judge"
        raise click.UsageError(f"{used}; add one, or leave --judge out.")
    judges = get_all(options["judge"]) if options["judge"] else []
    if not dry_run:
        for model in (*asked, *judges):  # before the first is paid for
            require(model)
    check_writable(out)
    check_begins(out, b'{ "model_id": ""')
    with dry_runs.counting() as counts:
        runner.run_all(asked, **options)
        to_buy = dry_runs.print_calls(dry_runs.prices(counts))
    if dry_run:
        return
    if to_buy and not yes:
        confirm_calls(to_buy)
    results = runner.run_all(asked, max_cost=max_cost, verbose=True, **options)
    save_results(results[0] if len(results) == 1 else results, out)
    click.echo(f"written to {out}")
