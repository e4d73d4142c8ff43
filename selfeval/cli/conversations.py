"""`roleplay` and `compare`, the published commands."""

import sys
from pathlib import Path

import click

from selfeval.cli.group import main
from selfeval.cli.options import (
    AMOUNT,
    BATCH,
    CEILING,
    COUNT,
    DRY_RUN,
    IN_FLIGHT,
    SEED,
    WORDS,
    YES,
    FilePath,
    confirm_calls,
    ids,
)
from selfeval.secrets import visible

JURY = "openai/chatgpt-4o-latest,google/gemma-3-12b-it,anthropic/claude-3-haiku"
SMALL = "meta-llama/llama-3.1-8b-instruct"


@main.command(context_settings={"show_default": True})
@click.option(
    "--out",
    "--output_file_path",
    "--output-file-path",
    "out",
    required=True,
    type=FilePath(),
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
@click.option(
    "--context",
    flag_value="rolling",
    default="isolated",
    show_default=False,
    help="Show jurors the conversation so far, not the one exchange.",
)
@WORDS
@click.option("--agent-persona", default="support", help="See data/roleplay/.")
@click.option("--strategy", default="probing", help="See data/roleplay/.")
@click.option("--max-tokens", default=0, help="Limit of a message; 0: none is sent.")
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
    from selfeval.roleplay.published import play as hold_and_judge
    from selfeval.roleplay.shown import render
    from selfeval.simulated import ask

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
            confirm_calls(calls)
    conversation, statements = play()
    click.echo(visible(str(render(conversation, statements))))
    click.echo(f"{out}: {len(conversation.exchanges())} of {options['max_turns']} turns")
    if conversation.status != "ok":
        last = conversation.turns[-1]
        error = last.more.get("error", "no text")
        why = visible(f"the {last.speaker}'s message is {last.status}: {error}")
        sentence = f"selfeval: the conversation ended early ({why})"
        click.echo(f"{sentence}; run the same command again: replies are stored.", err=True)
        sys.exit(1)
