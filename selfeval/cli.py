"""The `selfeval` command: sweeps, the registry, the store, and what works on this machine."""

import contextlib
import importlib.metadata
import math
import os
import shutil
import signal
import sys
from pathlib import Path

import click

from selfeval.asking.commands import store
from selfeval.errors import SelfevalError
from selfeval.figures.cards import columns
from selfeval.keys import visible

LONGEST = 255  # bytes of a file's name


class _OneSentence(click.Group):
    """Print this package's errors as one sentence instead of a traceback, and after Ctrl-C or TERM how to go on."""

    def invoke(self, context: click.Context):
        try:
            with _term_as_interrupt() as stopped:
                return super().invoke(context)
        except SelfevalError as error:
            click.echo(visible(f"selfeval: {error}"), err=True)
            context.exit(1)
        except KeyboardInterrupt:
            number = signal.Signals(stopped[0] if stopped else signal.SIGINT)
            again = "run the same command again to go on: stored replies are free"
            click.echo(f"\nselfeval: stopped by {number.name}; {again}", err=True)
            context.exit(128 + number)


@contextlib.contextmanager
def _term_as_interrupt():
    """Let TERM end a command as Ctrl-C does; yield the list that then holds it."""
    stopped = []

    def stop(number, frame):
        stopped.append(number)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGTERM, before)


class _Number(click.FloatRange):
    """A number, and neither nan nor inf, which no range keeps out."""

    def convert(self, value, param, ctx):
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


class _Path(click.Path):
    """A path that a file can have: not empty (that would be the folder one is in), and no name too long for a disk."""

    def __init__(self, **options):
        super().__init__(path_type=Path, **options)

    def convert(self, value, param, ctx):
        if not os.fspath(value):
            self.fail("an empty text is no path.", param, ctx)
        if any(len(os.fsencode(name)) > LONGEST for name in Path(value).parts):
            self.fail(f"'{os.fspath(value)[:60]}...' has a name of more than {LONGEST} bytes.", param, ctx)
        return super().convert(value, param, ctx)


@click.group(cls=_OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("selfeval"))
def main() -> None:
    """Measure what a language model knows about itself."""


@main.command()
@click.argument("file", type=_Path())
@click.option(
    "--workers", type=click.IntRange(1), help="Notebooks at a time; by default 2, or all that a cluster takes."
)
@click.option("--out", type=_Path(), help="Folder for the runs instead of data/runs/NAME.")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Only these: a stage, or STAGE/RUN, with * and ?; may be repeated. What they need must be done.",
)
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Only runs that failed, were stopped or broken off, or are incomplete; no new and no outdated ones.",
)
@click.option("--fail-fast", is_flag=True, help="After the first failed run start none; let end what is running.")
@click.option(
    "--max-cost",
    type=_Number(0),
    metavar="USD",
    help="The most that this command may spend; a call that could go beyond is not made.",
)
@click.option(
    "--engine",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "forked", "ordinary"]),
    help="Fork the runs from one process that has the imports done, or start each anew; auto: fork from four runs on.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask scheduler (README, cluster).")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only print what would be executed, and how many calls, tokens and dollars that would take; buys nothing.",
)
def sweep(file: Path, workers: int | None, out: Path | None, **options) -> None:
    """Run the notebooks of a sweep FILE over their grids of parameters; run it again to do what is missing.

    A run that ended ok is skipped while nothing that it depends on has changed; if one fails, only what needs it is not
    started. A run is incomplete when its notebook ended but calls failed: their answers are null, later stages use it,
    and the next time it makes only these calls again.

    \b
    Exit status:
      0      everything is done and ok
      1      a run failed or could not start, or the file is not right
      2      an option is not right
      3      every run ended, but in some of them calls failed
      4      the ceiling of --max-cost is reached
      128+n  stopped by signal n
    """
    from selfeval.sweep import run_file

    sys.exit(run_file(file, workers, out, **options))


@main.command()
def models() -> None:
    """List the registry, and whether each model can be asked from here."""
    from selfeval import models as registry
    from selfeval.asking.request import require
    from selfeval.errors import ProviderError

    rows, ready = [("ID", "NAME", "PROVIDER", "USD PER MILLION IN/OUT", "READY")], {}
    for model in registry.models().values():
        name = model.provider.name
        if name not in ready:
            try:
                require(model)
                ready[name] = "yes"
            except ProviderError:
                ready[name] = (
                    f"no: set {model.provider.keys[0]}" if model.provider.keys else "no: see `selfeval doctor`"
                )
        free = bool(model.provider.embedded) or name == "sim"
        price = "0" if free else "{input:g}/{output:g}".format(**model.price) if model.price else "?"
        rows.append((model.id, model.display, name, price, ready[name]))
    click.echo(columns(rows))


main.add_command(store)


@main.command()
@click.argument("config", type=_Path())
@click.option("--model", "ids", multiple=True, required=True, metavar="ID", help="Model to ask; may be repeated.")
@click.option("--output", required=True, type=_Path(dir_okay=False), help="JSON file to write.")
@click.option("--scoring", help="keyword_match, regex, claims or judge, instead of what CONFIG says.")
@click.option(
    "--repeats", default=1, show_default=True, type=click.IntRange(1, 10_000), help="Times to ask every case."
)
@click.option("--judge", metavar="ID", help="Model that judges, for --scoring judge.")
@click.option("--temperature", default=0.7, show_default=True, type=_Number(0), help="Of the models asked.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--concurrency", default=16, show_default=True, type=click.IntRange(1), help="Calls in flight.")
def identity(config: Path, ids: tuple[str, ...], output: Path, **options) -> None:
    """Ask models who they are, in the situations of CONFIG (data/identity/published.json has the form).

    Writes the result object of one model, or a list with one for each of several.
    """
    from selfeval.asking.request import require
    from selfeval.files import check_writable
    from selfeval.identity.framework import EvalRunner, save_results
    from selfeval.models import get_all

    runner, asked = EvalRunner(config), get_all(list(ids))
    for model in asked:  # a missing key is said before the first model is paid for
        require(model)
        runner.answers(model)
    check_writable(output)
    results = [runner.run(model, verbose=True, **options) for model in asked]
    save_results(results[0] if len(results) == 1 else results, output)
    click.echo(f"written to {output}")


@main.command()
@click.argument("paths", nargs=-1, required=True, type=_Path())
def scan(paths: tuple[Path, ...]) -> None:
    """Find API keys in files and folders: those of this environment by value, well-known ones by their shape.

    Exit status 0: clean; 1: keys found; 2: something could not be read.
    """
    from selfeval import keys, models

    models.providers()  # which reads their keys
    report = keys.scan(paths)
    click.echo(str(report))
    sys.exit(report.status)


@main.command()
@click.argument("runs", nargs=-1, type=_Path())
@click.option("--out", type=_Path(file_okay=False), help="Folder to write instead of data/report.")
@click.option("--figures", type=_Path(exists=True, file_okay=False), help="Folder of figures.")
@click.option("--rows", default=20_000, show_default=True, type=click.IntRange(1), help="Most rows of a page.")
def report(runs: tuple[Path, ...], out: Path | None, figures: Path | None, rows: int) -> None:
    """Write one folder of HTML pages about RUNS: folders of sweeps or runs, notebooks, files of records.

    Without RUNS, about all sweeps of data/runs, or the committed notebooks where there is none. It opens from disk and
    loads nothing; keys and paths of this machine are taken out.
    """
    from selfeval.report import build

    click.echo(str(build(runs, out=out, pictures=figures, rows=rows)))


@main.command()
def doctor() -> None:
    """Say what works on this machine, and the remedy for what does not."""
    checks = (_python, _packages, _embedded_model, _servers, _keys, _store, _disk)
    fine = [check() for check in checks]
    sys.exit(0 if all(fine) else 1)


def _say(fine: bool, text: str, remedy: str = "") -> bool:
    click.echo(f"{'ok     ' if fine else 'MISSING'}  {text}" + (f"\n         {remedy}" if not fine and remedy else ""))
    return fine


def _python() -> bool:
    version = ".".join(map(str, sys.version_info[:3]))
    return _say(sys.version_info >= (3, 11), f"Python {version}", "selfeval needs Python 3.11 or newer.")


def _packages() -> bool:
    from selfeval import ROOT

    wrong = []
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if version and (installed := _version(name.partition("[")[0])) != version:
            wrong.append(f"{name} {installed or 'missing'} instead of {version}")
    return _say(
        not wrong,
        "packages as in requirements.txt" if not wrong else "; ".join(wrong),
        "pip install -r requirements.txt",
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _embedded_model() -> bool:
    from selfeval.asking import embedded
    from selfeval.models import providers

    try:
        return _say(True, f"embedded model, served at {embedded.url(providers()['local'])}")
    except SelfevalError as error:
        return _say(False, "embedded model", str(error))


def _servers() -> bool:
    """Say which servers of this machine answer, of those that the registry lists."""
    import httpx2

    from selfeval.models import providers

    for provider in providers().values():
        if not provider.on_loopback:
            continue
        try:
            reply = httpx2.get(f"{provider.url.rstrip('/')}/models", timeout=2, trust_env=False)
            state = "answers" if reply.is_success else f"answers with HTTP {reply.status_code}"
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            state = f"no answer ({error}): needed only for its models"
        click.echo(f"         server of {provider.name} at {provider.address}: {state}")
    return True


def _keys() -> bool:
    from selfeval.models import providers

    for provider in providers().values():
        if provider.keys:
            state = "set" if provider.key else f"not set ({provider.keys[0]}): needed only for its models"
            click.echo(f"         key of {provider.name}: {state}")
    return True


def _store() -> bool:
    from selfeval.asking.store import Store

    replies = Store()
    count = sum(row["replies"] for row in replies.statistics())
    return _say(True, f"response store with {count} replies at {replies.path}")


def _disk() -> bool:
    from selfeval import DATA

    free = shutil.disk_usage(DATA).free / 1e9
    return _say(free > 1, f"{free:.0f} GB free for data/", "Make room: a full disk stops a sweep.")


def _role_play_options(agent: str, interrogator: str, jury: str, turns: int):
    """Return a decorator with the published arguments and their defaults, then ours."""
    options = (
        click.option("--output_file_path", "--output-file-path", "out", required=True, type=_Path()),
        click.option("--role-play-llm-model", "agent", default=agent, show_default=True, help="Who answers."),
        click.option("--interrogator-llm-model", "interrogator", default=interrogator, show_default=True),
        click.option(
            "--jury-llm-models",
            "jurors",
            default=jury,
            show_default=True,
            help="Separated by commas; one that is named k times takes k seats.",
        ),
        click.option("--max-turns", "turns", default=turns, show_default=True, type=click.IntRange(1)),
        click.option("--debate-rounds", "rounds", default=2, show_default=True, type=click.IntRange(1)),
        click.option("--agent-persona", "persona", default="support", show_default=True, help="See data/roleplay/."),
        click.option("--strategy", default="probing", show_default=True, help="See data/roleplay/."),
        click.option(
            "--max-tokens", "tokens", default=0, help="Of a message; 0 = the provider's own.", show_default=True
        ),
        click.option(
            "--temperature", default=0.7, show_default=True, type=_Number(0), help="Of agent and interrogator."
        ),
        click.option("--feedback", is_flag=True, help="The interrogator is told each verdict before it goes on."),
        click.option("--seed", default=0, show_default=True, type=click.IntRange(0)),
        click.option("--concurrency", default=16, show_default=True, type=click.IntRange(1), help="Calls in flight."),
        click.option("--force", is_flag=True, help="Overwrite an output file of another set-up."),
    )

    def decorate(function):
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@main.command()
@_role_play_options(
    "deepseek/deepseek-v3.2",
    "openai/gpt-4o",
    "openai/chatgpt-4o-latest,google/gemma-3-12b-it,anthropic/claude-3-haiku",
    turns=7,
)
def roleplay(**options) -> None:
    """Let an agent pass for a human before an interrogator, and have a jury debate every answer.

    Run it again to go on where it was stopped. The persona or the strategy `person` lets you type that side.
    """
    from selfeval.roleplay import commands

    _play(("debate",), commands.interaction, **options)


@main.command()
@_role_play_options(
    "meta-llama/llama-3.1-8b-instruct",
    "meta-llama/llama-3.1-8b-instruct",
    "meta-llama/llama-3.1-8b-instruct,google/gemma-3-12b-it,anthropic/claude-3-haiku",
    turns=3,
)
def compare(**options) -> None:
    """Judge one conversation by independent jurors and by a debate, and write both beside each other."""
    from selfeval.roleplay import commands

    _play(("independent", "debate"), commands.comparison, **options)


def _play(arms: tuple[str, ...], report, *, out: Path, agent: str, interrogator: str, jurors: str, **options) -> None:
    import asyncio

    from selfeval.asking.client import Client
    from selfeval.models import get
    from selfeval.roleplay import commands, panel

    jury = panel.Jury(
        tuple(name.strip() for name in jurors.split(",") if name.strip()),
        rounds=options.pop("rounds"),
        seed=options["seed"],
    )
    concurrency = options.pop("concurrency")
    play = commands.Play(out, get(agent), get(interrogator), jury, arms, **options)
    for warning in play.warnings():
        click.echo(f"selfeval: {warning}", err=True)

    async def run() -> tuple:
        async with Client(concurrency) as client:
            return await commands.run(client, play, report, tell=click.echo), client.tally

    log, tally = asyncio.run(run())
    click.echo(f"{out}: {len(log.exchanges())} of {play.turns} turns; {tally}")
    if log.conversation.status != "ok":
        click.echo(f"selfeval: the conversation ended early ({visible(log.ending())}); run again to try on.", err=True)
        sys.exit(1)
