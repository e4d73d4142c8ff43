"""The `selfeval` command itself, and how commands end."""

import importlib.metadata
import os
import re
import signal
from pathlib import Path

import click

from selfeval.errors import SelfevalError
from selfeval.secrets import visible

LAB = "pip install 'selfeval[lab]'"  # what runs notebooks


class _OneSentence(click.Group):
    """Print errors of this package as a sentence, and after Ctrl-C or TERM how to resume."""

    def invoke(self, context: click.Context):
        _end_as_interrupted()
        try:
            return super().invoke(context)
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


def _end_as_interrupted() -> None:
    """Have TERM end a command as Ctrl-C does, which is ignored in the background of a script."""
    end = signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:

        def end(*_):
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, end)


def _with_options(sentence: str, command: click.Command | None) -> str:
    """Return a sentence about keywords of Python with the options of a command in their place."""
    if command:
        for option in command.params:
            if option.opts[0].startswith("--"):
                sentence = sentence.replace(f"`{option.name}`", option.opts[0])
    return re.sub(r"\{author: '(.+?)'\}", r"AUTHOR=\1", sentence)


@click.group(cls=_OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("selfeval"))
def main() -> None:
    """Measure what a language model knows about itself."""
    if own := os.environ.get("SELFEVAL_MODELS"):  # notebooks run in another folder
        os.environ["SELFEVAL_MODELS"] = str(Path(own).absolute())
