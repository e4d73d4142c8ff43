"""Who plays which part of simulated models, and the client that has them.

Simulated models give real answers to the real prompts, drawn from rates that are known:
`simulation` in `data/models.yaml` holds the rates. With a `role` a model plays that part alone;
without one it plays them all, and knows by what it is asked which it plays.
"""

from collections.abc import Awaitable, Callable

from selfeval.existence import simulated as existence
from selfeval.identity import simulated as identity
from selfeval.identity import simulated_attacker as attack
from selfeval.providers import client
from selfeval.providers.client import Asking
from selfeval.recognition import simulated as recognition
from selfeval.roleplay import simulated as roleplay

PLAYERS = {
    "roleplay": roleplay,
    "attack": attack,
    "existence": existence,
    "recognition": recognition,
    "identity": identity,  # the last, who has all that is left
}


class Client(client.Client):  # noqa: D101
    __doc__ = client.Client.__doc__
    players = PLAYERS


def ask(work: Callable[[client.Client], Awaitable[client.R]], asking: Asking) -> client.R:
    """Return what work with a client returns, or what it would cost."""
    return client.ask(work, asking, Client)
