"""The `selfeval` command: sweeps, the registry, the store, and what works on this machine."""

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import yaml

from selfeval.bounds import read_yaml
from selfeval.errors import SelfevalError, elsewhere, same_as
from selfeval.paths import (
    DATA,
    HOME,
    INSTALLED,
    ROOT,
    check_begins,
    check_writable,
    is_open_to_others,
    shipped,
)
from selfeval.providers.models import GGUF, Model, Provider, check_part, get, get_all, providers
from selfeval.providers.models import models as registered
from selfeval.secrets import visible

LAB = "pip install 'selfeval[lab]'"  # what runs notebooks


class _OneSentence(click.Group):
    """Print errors of this package as a sentence, and after Ctrl-C or TERM how to resume."""

    def parse_args(self, context: click.Context, args: list[str]):
        joined: list[str] = []
        for argument in args:
            if joined[-2:-1] in (["--models"], ["--jurors"]) and _is_id(argument):
                joined[-1] += f",{argument}"  # ids may be separated by blanks, too
            else:
                joined.append(argument)
        return super().parse_args(context, joined)

    def invoke(self, context: click.Context):
        _end_as_interrupted()
        try:
            return super().invoke(context)
        except click.NoSuchOption as error:
            raise _with_what_is_meant(error) from error
        except (SelfevalError, OSError) as error:
            command = self.commands.get(context.invoked_subcommand or "")
            sentence = _with_options(str(error), command)
            click.echo(visible(f"selfeval: {sentence}"), err=True)
            context.exit(1)
        except ModuleNotFoundError as error:
            needs = f"this command needs `{error.name}`, which is not installed"
            click.echo(f"selfeval: {needs}; run: {LAB}", err=True)
            context.exit(1)
        except KeyboardInterrupt:
            again = "run the same command again to resume: stored replies are free"
            click.echo(f"\nselfeval: stopped; {again}", err=True)
            context.exit(130)


def _is_id(argument: str) -> bool:
    """Tell whether an argument is the id of a model, and no option and no file."""
    if "/" not in argument or re.search(r"^-|\.(csv|jsonl?|xlsx?|txt)$", argument):
        return False
    return not Path(argument).exists() and not shipped(argument).exists()


def _end_as_interrupted() -> None:
    """Have TERM end a command as Ctrl-C does, which is ignored in the background of a script."""
    end = signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:

        def end(*_):
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, end)


def _with_what_is_meant(error: click.NoSuchOption) -> click.UsageError:
    """Return an error that says what an option is called here, or where that is done."""
    context = error.ctx or click.get_current_context()
    options = {option.name: option.opts[0] for option in context.command.params}
    word = error.option_name.lstrip("-").replace("-", "_")
    sentences = [error.format_message()]
    ours = same_as(word, options)
    if ours:
        sentences = [error.message, f"Did you mean {options[ours[0]]}?"]
    elif elsewhere(word):
        sentences = [error.message, f"{elsewhere(word)}."]
    names = [option for option in options.values() if option.startswith("-")]
    sentences.append(f"{context.command_path} has {', '.join(names) or 'no options'}.")
    return click.UsageError(" ".join(sentences), context)


def _with_options(sentence: str, command: click.Command | None) -> str:
    """Return a sentence about keywords of Python with the options of a command in their place."""
    if command:
        for option in command.params:
            if option.opts[0].startswith("--"):
                sentence = sentence.replace(f"`{option.name}`", option.opts[0])
    return re.sub(r"\{author: '(.+?)'\}", r"AUTHOR=\1", sentence)


def ids(text: str) -> list[str]:
    """Split ids or names by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _variable(text: str) -> tuple:
    """Return NAME=VALUE as (name, value), the value read as YAML."""
    name, equals, value = text.partition("=")
    if name.strip() and equals:
        with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):
            return name.strip(), read_yaml(value)
    raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE.")


def _author(text: str) -> tuple[str, str | None]:
    """Return AUTHOR=ID as (author, id); without an ID somebody else's."""
    author, equals, model = text.partition("=")
    if not (author.strip() and equals):
        raise click.BadParameter(f"{text!r} is not of the form AUTHOR=ID.")
    return author.strip(), model.strip() or None


_Path = functools.partial(click.Path, path_type=Path)
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
FILES = click.argument("files", nargs=-1, required=True, type=_Path(exists=True, dir_okay=False))


@click.group(cls=_OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("selfeval"))
def main() -> None:
    """Measure what a language model knows about itself."""
    if own := os.environ.get("SELFEVAL_MODELS"):  # notebooks run in another folder
        os.environ["SELFEVAL_MODELS"] = str(Path(own).absolute())


@main.command()
@click.argument("file", type=_Path())
@click.option("--workers", type=COUNT, help="How many notebooks run at a time here; by default 2.")
@click.option("--out", type=_Path(), help="Folder for the runs instead of data/runs/NAME.")
@click.option(
    "--set",
    "chosen",
    multiple=True,
    type=_variable,
    metavar="NAME=VALUE",
    help="models=[a,b]; repeatable.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="A stage, or STAGE/RUN; * and ? work; repeatable.",
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

    --only: the runs they depend on must have finished. --max-cost: a sweep may exceed it by at most
    what is in flight.

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


# a study in one command


def _study(command):
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
            type=_Path(),
            help="Folder; by default one of its own in data/runs.",
        ),
    ):
        command = option(command)
    return command


@main.command()
@click.argument("texts", required=False, metavar="[TEXTS]")
@click.option(
    "--models", required=True, type=ids, metavar="ID,ID,...", help="Models, separated by commas."
)
@click.option(
    "--authors", multiple=True, type=_author, metavar="AUTHOR=ID", help="Who AUTHOR is; repeatable."
)
@click.option("--prompts", help="File of writing prompts instead of the packaged ones.")
@click.option("--limit", type=COUNT, help="How many prompts; by default 20, or all of TEXTS.")
@click.option("--allow-strangers", is_flag=True, help="Also ask models that wrote none of TEXTS.")
@click.option(
    "--question",
    default="",
    metavar="FILE",
    help="A question of your own: words with {text}, or a file.",
)
@click.option(
    "--read", default="", metavar="MODULE:F", help="A function of your own that reads the answers."
)
@_study
def recognise(
    texts,
    models: list[str],
    authors: tuple,
    prompts,
    limit: int | None,
    allow_strangers: bool,
    question,
    read,
    **how,
):
    """Test whether models recognise their own texts.

    TEXTS is a CSV with the columns author, prompt and text, or a corpus; without it the models
    write texts first.

    --authors: which model TEXTS, or replies, call AUTHOR; without ID it is somebody else, and with
    "no answer" as ID nobody.

    --question: one with {candidates} is answered with a name, another one with YES or NO.
    """
    from selfeval.identity.scorers import as_scorer
    from selfeval.recognition.prompts import Condition, own_question
    from selfeval.records.fields import NO_ANSWER
    from selfeval.records.tables import corpus_to_read

    file = corpus_to_read(texts).absolute() if texts else None
    asked = [part for part in (question, read) if part]
    title, out = _named("recognise", file or "", models, how.pop("out"), asked)
    # what cannot be read or asked is refused before anything runs
    asking = {}
    if file:
        if prompts:
            rule = "TEXTS are written already, and --prompts is for new ones"
            raise click.UsageError(f"{rule}; give one of the two.")
        variables, called = _about_texts(file, models, dict(authors), limit or 0, allow_strangers)
        asking["allow_strangers"] = allow_strangers
    else:
        variables = _about_new_texts(prompts, out, models, limit or 20)
        called = dict(authors)
        variables["authors"] = called
    for model in called.values():
        if model not in (None, NO_ANSWER):
            get(model)
    if question:
        words = own_question(question)
        Condition(question=words)
        variables["question"] = words
        variables["tasks"] = ["exact_model" if "{candidates}" in words else "binary_self"]
    if read:
        as_scorer(read)
        asking["read"] = read
    variables |= {"models": models, "asking": asking}
    _run_study("texts" if texts else "recognition", variables, models, out, title, **how)


def _about_texts(
    file: Path, models: list[str], authors: dict, limit: int, allow_strangers: bool
) -> tuple[dict, dict]:
    """Return the parameters of a study of texts, and who is called what in replies alone."""
    from selfeval.recognition.run import match_authors
    from selfeval.records.texts import read_texts

    rows = read_texts(file, limit)
    names = {row["author"] for row in rows} | {row["author_display"] for row in rows}
    called = {name: model for name, model in authors.items() if name not in names}
    wrote = {name: model for name, model in authors.items() if name in names}
    judges = get_all(models, "recognise texts")
    match_authors(rows, judges, wrote, allow_strangers=allow_strangers)
    parameters = {"authors": wrote, "corpus": str(file), "limit": limit, "called": called}
    return parameters, called


def _about_new_texts(prompts: str | None, out: Path, models: list[str], limit: int) -> dict:
    """Return the parameters of a study whose models write the texts first."""
    from selfeval.records.tables import path_to_read
    from selfeval.records.texts import read_prompts

    get_all(models, "write texts")
    file = path_to_read(prompts).absolute() if prompts else shipped("prompts.jsonl")
    read_prompts(file)
    return {"corpus": str(out / "texts"), "prompts": str(file), "limit": limit}


@main.command()
@click.option(
    "--models",
    "--agent",
    "agent",
    required=True,
    metavar="ID",
    help="Who answers in people's place.",
)
@click.option(
    "--jurors",
    required=True,
    type=ids,
    metavar="ID,ID,...",
    help="Who judges; one takes all personas.",
)
@click.option(
    "--people",
    "--limit",
    "people",
    default=20,
    show_default=True,
    type=COUNT,
    help="Chats between people.",
)
@WORDS
@_study
def jury(agent: str, jurors: list[str], people: int, words: int, out: Path | None, **how) -> None:
    """Test whether a jury tells a model from people.

    It judges alone, after a second look, and in a debate. Each chat between people has a twin in
    which the model answers in one person's place.
    """
    check_part(get(agent), "play the agent")
    for juror in jurors:
        check_part(get(juror), "judge")
    variables = {"agent": agent, "jurors": jurors, "people": people, "words": words}
    title, out = _named("jury", "", [agent, *jurors], out)
    _run_study("jury", variables, [agent, *jurors], out, title, **how)


@main.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--prompts", default=0, type=click.IntRange(0), help="Writing prompts; 0: by price.")
@click.option("--templates", default=0, type=click.IntRange(0), help="Situations; 0: by price.")
@click.option("--people", default=0, type=click.IntRange(0), help="Chats of people; 0: by price.")
@click.option(
    "--jurors", default="", type=ids, metavar="ID,ID,...", help="Who judges; by default MODELs."
)
@click.option(
    "--texts", default="", metavar="TEXTS", help="Other authors' texts; some are packaged."
)
@click.option("--against", type=_Path(exists=True), help="Folder of an earlier profile to compare.")
@_study
@SEED
def profile(
    models: Sequence[str], texts, against: Path | None, out: Path | None, **options
) -> None:
    """Put on one page what each MODEL knows about itself.

    Does it recognise its texts, does it know its name, does a jury tell it from people? With
    --max-cost, as much is asked as half of it pays for by a dry run.
    """
    from selfeval.profiles.run import FORM
    from selfeval.records.tables import corpus_to_read

    running = {name: options.pop(name) for name in ("yes", "dry_run", "max_cost")}
    models = list(itertools.chain.from_iterable(map(ids, models)))
    jurors = options.pop("jurors")
    corpus = str(corpus_to_read(texts).absolute()) if texts else FORM["corpus"]
    variables = {"models": models, "jurors": jurors, "corpus": corpus}
    variables["against"] = str(against.absolute()) if against else ""
    variables["size"] = {name: options.pop(name) for name in ("prompts", "templates", "people")}
    variables |= options | {"max_cost": running["max_cost"]}
    title, out = _named("profile", texts, models, out, [str(variables["size"]), *jurors])
    _run_study("profile", variables, [*models, *jurors], out, title, **running)


def _named(
    command: str, file: Path | str, ids: list[str], out: Path | None, asked: Sequence[str] = ()
) -> tuple[str, Path]:
    """Return the title of a study and its folder, by default one of its own.

    Its name holds command, file and models, and a hash of these and of what is asked.
    """
    from selfeval.sweep.file import slug

    digest = hashlib.sha256(json.dumps([str(file), *ids, *asked]).encode()).hexdigest()
    texts = Path(file).name
    models = [model.rpartition("/")[2] for model in ids]
    title = f"{command} {texts}".strip() + f": {', '.join(models)}"
    if out is None:
        parts = {"command": command, "texts": texts, "models": " ".join(models)}
        out = DATA / "runs" / slug(parts, digest[:6])
    return title, out.absolute()


def _run_study(
    name: str, variables: dict, ids: list[str], out: Path, title: str, *, yes, dry_run, max_cost
) -> None:
    """Run a ready study after a question, then print its table, and where figure and report are.

    Nothing is asked where nothing is to buy: simulated models, which are not counted first either,
    and replies that are stored.
    """
    from selfeval.providers.embedded import require
    from selfeval.providers.request import is_computed
    from selfeval.sweep import load, run_file
    from selfeval.sweep.report import build

    if not dry_run:
        for model in ids:
            require(get(model))
    file = ROOT / "notebooks" / "sweeps" / f"{name}.yaml"
    study = {"out": out, "variables": variables, "max_cost": max_cost}
    if dry_run or not all(is_computed(get(model)) for model in ids):
        confirm = None if yes or dry_run else _confirm
        status = run_file(file, dry_run=True, confirm=confirm, **study)
        if status or dry_run:
            sys.exit(status)
    status = run_file(file, **study)
    if status in (0, 3):
        folders = [run.folder for run in load(file, out, variables).runs]
        if name == "profile":
            _print_profile(folders[-1])
        else:
            _print_results(folders)
            click.echo(f"report: {build([out], out / 'report', title)}")
    sys.exit(status)


def _print_profile(folder: Path) -> None:
    """Print the rows of a profile, and where its page is."""
    import pandas as pd

    from selfeval.estimates.saved import read_table
    from selfeval.profiles.page import as_text

    tables = []
    for name in ("profile", "changes"):
        file = folder / f"{name}.csv"
        tables.append(read_table(file) if file.exists() else pd.DataFrame())
    click.echo(f"\n{as_text(*tables)}\n")
    click.echo(f"page: {folder / 'profile.html'}")


def _print_results(folders: list[Path]) -> None:
    """Print what the analysis in the last of a study's folders says, and where its figure is."""
    from selfeval.estimates import saved, summaries

    analysis = folders[-1]
    [result] = saved.read_results(analysis)
    shown = summaries.main_table(result).to_string(index=False, float_format="{:.2f}".format)
    click.echo(f"\n{visible(shown)}\n")
    claims = summaries.claims_table(result)
    if len(claims):
        own = "own texts claimed (TP) and denied (FN)"
        click.echo(f"yes or no: {own}, others' claimed (FP) and denied (TN)")
        click.echo(f"{visible(claims.to_string(index=False))}\n")
    answer = summaries.answer(result)
    if answer:
        click.echo(f"{visible(answer)}\n")
    why = summaries.why_without_value(result)
    if why:
        kept = [folder for folder in folders if any(folder.glob("*.jsonl"))]
        answers = kept[-1] if kept else analysis  # the last ones hold the answers
        click.echo(f"{why} The answers are kept in {answers}")
    for sentence in summaries.silence(result):
        click.echo(visible(sentence))
    for figure in sorted(analysis.glob("*.png"))[:1]:
        click.echo(f"figure: {figure}")


def _confirm(calls: int) -> None:
    click.confirm(f"Make {calls:,} calls? (--yes skips this question)", abort=True)


@main.command()
def models() -> None:
    """List the registry, models that can be asked now first."""
    from selfeval.providers.embedded import list_models

    _print_table(list_models())


def _print_table(frame) -> None:
    """Print a DataFrame, its first column to the left, and what is not known as a question mark."""
    frame = frame.astype(object).where(frame.notna(), "?").set_index(frame.columns[0])
    click.echo(visible(frame.rename_axis(None).to_string(float_format="{:.10g}".format)))


@main.command()
@click.argument("logs", nargs=-1, required=True, type=_Path(exists=True))
@click.option(
    "--out", type=_Path(), help="Folder for the tables and the figure; by default one of its own."
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
    _, out = _named("measure", logs[0].name, [*map(str, logs)], out)
    folder = saved.save(result, out)
    for figure in sorted(folder.glob("*.png")):
        click.echo(f"figure: {figure}")
    click.echo(f"outputs: {named(folder)}")


# the store


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
            _print_table(pd.DataFrame(rows))
        for outcome, count in replies.outcomes().items():
            click.echo(f"{count} attempts without a reply: {outcome}")
        click.echo(str(replies.path))


@store.command()
@click.argument("file", type=_Path(dir_okay=False))
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
    with _opened() as replies:
        click.echo(f"{replies.forget_batch(batch)} requests of the batch {batch} can be sent again")


def _add(files: tuple[Path, ...], method: str) -> None:
    """Add files to the store by one of its methods, and say of each how many replies were new."""
    with _opened() as replies:
        for file in files:
            new, known = getattr(replies, method)(file)
            click.echo(f"{file}: {new} new replies, {known} already stored")


# the rest


@main.command()
@click.argument("config", required=False, type=_Path())
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
    help="Model that scores (judge), or embeds (semantic_similarity).",
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
@_study
@SEED
@IN_FLIGHT
def identity(config: Path | None, ids, out: Path | None, limit: int | None, **options):
    """Ask models who they are, with the built-in suite or your own CONFIG.

    CONFIG has the form of data/identity/published.json; --out is then the JSON file to write: the
    result object of one model, or a list with one for each of several.

    --attacker sees each conversation and writes its next message, by the strategies of
    data/identity/attack.yaml.
    """
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
    get_all(ids, "say which model they are")
    asked = [*ids]
    if options["judge"]:
        asked.append(options["judge"])
    title, out = _named("identity", "", ids, out)
    _run_study("identity", {"models": ids} | options, asked, out, title, **running)


def _run_attack(
    ids: list[str], attack: dict, out: Path | None, limit: int, *, yes, dry_run, max_cost, **options
) -> None:
    """Run a study of conversations with an attacker."""
    import selfeval.identity.simulated  # noqa: F401  who plays an attacker
    from selfeval.errors import check_names
    from selfeval.identity.attack import STRATEGIES, TURNS

    get_all(attack["attacker"], "attack")
    strategies = attack["strategies"] or list(STRATEGIES)
    check_names("strategies", strategies, STRATEGIES)
    get_all(ids, "say which model they are")
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
    title, out = _named("interrogation", "", asked, out, strategies)
    running = {"yes": yes, "dry_run": dry_run, "max_cost": max_cost}
    _run_study("interrogation", variables, asked, out, title, **running)


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
    if options["judge"] and scoring not in ("judge", "semantic_similarity"):
        used = "--judge is only used with --scoring judge or semantic_similarity"
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
        _confirm(to_buy)
    results = runner.run_all(asked, max_cost=max_cost, verbose=True, **options)
    save_results(results[0] if len(results) == 1 else results, out)
    click.echo(f"written to {out}")


@main.command()
@click.argument("folders", nargs=-1, type=_Path(), metavar="[FOLDER]")
@click.option("--out", type=_Path(file_okay=False), help="Folder to write instead of data/report.")
def report(folders: tuple[Path, ...], out: Path | None) -> None:
    """Turn the executed notebooks of FOLDER into HTML pages.

    FOLDER is a sweep's, such as data/runs/mine; without it, all sweeps in data/runs. An index lists
    the pages. They open from disk and load nothing from the network; keys and paths of this machine
    are removed.
    """
    from selfeval.sweep.report import build

    click.echo(str(build(folders, out)))


@main.command()
def doctor() -> None:
    """Check this machine and say how to fix problems."""
    lines = []
    wrong = _other_packages()
    if wrong:
        lines.append(f"MISSING  {'; '.join(wrong)}; pip install -r requirements.txt")
    elif PINNED.is_file():
        lines.append("ok       packages as in requirements.txt")
    elif not importlib.util.find_spec("papermill"):
        lines.append(f"optional notebooks, and the commands that run them: {LAB}")
    for provider in providers().values():
        if provider.embedded and provider.name != GGUF:
            lines.append(_embedded(provider))
    lines += [_own_file(model) for model in registered().values() if model.gguf]
    files = _open_to_others()
    if files:
        who = f"other users of this machine can read {', '.join(files)}"
        lines.append(f"open     {who}; run: chmod -R go= {' '.join(files)}")
    click.echo("\n".join(lines))
    sys.exit(int(any(line.startswith("MISSING") for line in lines)))


PINNED = ROOT / "requirements.txt"  # of a clone


def _open_to_others() -> list[str]:
    """Return the files of keys, replies, runs and reports that other users can read."""
    from selfeval.providers.store import place

    kept = [HOME / ".env", place(), DATA / "report", *sorted((DATA / "runs").glob("*"))]
    return [shlex.quote(str(path)) for path in kept if is_open_to_others(path)]


def _own_file(model: Model) -> str:
    """Return a line about a GGUF file of the user's registry, with its hash."""
    try:
        embedded = get(model).provider.embedded or {}
        sha256 = embedded["sha256"]
    except SelfevalError as error:
        return f"MISSING  {model.id}: {error}"
    return f"ok       {model.id}, weights {model.gguf}, SHA-256 {sha256}"


def _embedded(provider: Provider) -> str:
    """Return a line about an embedded model; the first is served, and must be there in a clone."""
    from selfeval.providers import embedded

    models = [model.id for model in registered().values() if model.provider.name == provider.name]
    name = models[0] if models else provider.name
    is_first = provider.name == "local"
    try:
        if is_first:
            return f"ok       {name}, served at {embedded.url(provider)}"
        return f"ok       {name}, weights {embedded.model_file(provider)}"
    except SelfevalError as error:
        if is_first and not INSTALLED:
            return f"MISSING  {name}: {error}"
        weights = f"weights of {get(name).display} ({name})"
        return f"optional {weights} are not installed; docs/models.md says how"


def _other_packages() -> list[str]:
    """Return which packages are not there in the version of requirements.txt."""
    if not PINNED.is_file():
        return []
    versions = {}
    for package in importlib.metadata.distributions():
        versions[package.name.lower().replace("_", "-")] = package.version
    wrong = []
    for pin in PINNED.read_text().splitlines():
        requirement = pin.partition(";")[0].strip()  # without "; python_version ..."
        name, _, wanted = requirement.partition("==")
        installed = versions.get(name.partition("[")[0].lower(), "missing")
        if wanted and installed != wanted:
            wrong.append(f"{name} {installed} instead of {wanted}")
    return wrong


JURY = "openai/chatgpt-4o-latest,google/gemma-3-12b-it,anthropic/claude-3-haiku"
SMALL = "meta-llama/llama-3.1-8b-instruct"


@main.command(context_settings={"show_default": True})
@click.option(
    "--out",
    "--output_file_path",
    "--output-file-path",
    "out",
    required=True,
    type=_Path(),
    help="A file.",
)
@click.option("--role-play-llm-model", default="deepseek/deepseek-v3.2", help="Who answers.")
@click.option("--interrogator-llm-model", default="openai/gpt-4o", help="Who asks.")
@click.option(
    "--jury-llm-models",
    default=JURY,
    type=ids,
    help="Separated by commas; one named k times gets k seats.",
)
@click.option("--max-turns", default=7, type=COUNT)
@click.option("--debate-rounds", default=2, type=COUNT)
@WORDS
@click.option("--agent-persona", default="support", help="See data/roleplay/.")
@click.option("--strategy", default="probing", help="See data/roleplay/.")
@click.option("--max-tokens", default=0, help="Limit of a message; 0: the provider's own.")
@click.option("--temperature", default=0.7, type=AMOUNT, help="Of agent and interrogator.")
@SEED
@IN_FLIGHT
@CEILING
@BATCH
@DRY_RUN
@YES
def roleplay(**options) -> None:
    """Let an agent play a human, and have a jury debate who it is.

    The jury judges every answer to an interrogator. Run the same command again to resume, and with
    more --max-turns to go on with the conversation: what is stored is not bought again. The persona
    or the strategy `person` lets you type that side. For other juries, use `selfeval.judge` in
    Python.
    """
    _play(("debate",), **options)


def _compare(**options) -> None:
    """Judge one conversation by single jurors and by a debate."""
    _play(("independent", "debate"), **options)


OTHERS = {"role_play_llm_model": SMALL, "interrogator_llm_model": SMALL, "max_turns": 3}
OTHERS["jury_llm_models"] = JURY.replace("openai/chatgpt-4o-latest", SMALL)
# the published commands have other defaults
COMPARED = {
    "show_default": True,
    "default_map": OTHERS,
}
main.add_command(
    click.Command("compare", COMPARED, _compare, roleplay.params, help=_compare.__doc__)
)


def _play(arms: tuple[str, ...], *, out: Path, yes: bool, dry_run: bool, **options) -> None:
    from selfeval.providers import dry_runs
    from selfeval.providers.client import ask
    from selfeval.roleplay.published import play as hold_and_judge
    from selfeval.roleplay.shown import render

    asking = {name: options.pop(name) for name in ("concurrency", "max_cost")}

    def play():
        # the ids of both sides are set in the options
        return ask(lambda client: hold_and_judge(client, out, arms, dict(options)), asking)

    if dry_run or not yes:
        with dry_runs.counting() as counts:
            play()
            calls = dry_runs.print_calls(dry_runs.prices(counts))
        if dry_run:
            return
        if calls:
            _confirm(calls)
    conversation, statements = play()
    click.echo(visible(str(render(conversation, statements))))
    click.echo(f"{out}: {len(conversation.exchanges())} of {options['max_turns']} turns")
    if conversation.status != "ok":
        last = conversation.turns[-1]
        error = last.more.get("error", "no text")
        why = visible(f"the {last.speaker}'s message is {last.status}: {error}")
        sentence = f"selfeval: the conversation ended early ({why})"
        click.echo(f"{sentence}; run the same command again to resume.", err=True)
        sys.exit(1)
