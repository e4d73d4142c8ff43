"""The `selfeval` command itself: how commands end, and what an unknown option may have meant."""

import importlib.metadata
import importlib.util
import os
import re
import signal
from pathlib import Path

import click

from selfeval.errors import SelfevalError, elsewhere, same_as
from selfeval.paths import shipped
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


@click.group(cls=_OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("selfeval"))
def main() -> None:
    """Measure what a language model knows about itself."""
    if own := os.environ.get("SELFEVAL_MODELS"):  # notebooks run in another folder
        os.environ["SELFEVAL_MODELS"] = str(Path(own).absolute())
