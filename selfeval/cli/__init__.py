"""The `selfeval` command: sweeps, the registry, the store, and what works on this machine."""

from selfeval.cli import (  # noqa: F401  each adds its commands
    conversations,
    doctor,
    identity,
    store,
    studies,
    sweeps,
)
from selfeval.cli.group import main

__all__ = ["main"]
