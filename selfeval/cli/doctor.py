"""What works on this machine: `doctor`, and the registry with `models`."""

import importlib.util
import sys

import click

from selfeval.cli.group import LAB, main
from selfeval.cli.options import print_table
from selfeval.errors import SelfevalError
from selfeval.paths import INSTALLED
from selfeval.providers.models import GGUF, Model, Provider, get, providers
from selfeval.providers.models import models as registered


@main.command()
def models() -> None:
    """List the registry, models that can be asked now first."""
    from selfeval.api import list_models

    print_table(list_models())


@main.command()
def doctor() -> None:
    """Check this machine and say how to fix problems."""
    lines = []
    if not importlib.util.find_spec("papermill"):
        lines.append(f"optional notebooks, and the commands that run them: {LAB}")
    for provider in providers().values():
        if provider.embedded and provider.name != GGUF:
            lines.append(_embedded(provider))
    lines += [_own_file(model) for model in registered().values() if model.gguf]
    click.echo("\n".join(lines))
    sys.exit(int(any(line.startswith("MISSING") for line in lines)))


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
