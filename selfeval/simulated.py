"""Simulated models: real answers to the real prompts, drawn from rates that are known.

`simulation` in `data/models.yaml` holds the rates. With a `role` a model plays that part alone;
without one it plays them all, and knows by what it is asked which it plays.
"""

from selfeval.errors import InputError, check_one_of
from selfeval.existence import simulated as existence
from selfeval.identity import simulated as identity
from selfeval.identity import simulated_attacker as attack
from selfeval.providers.request import Request, Response, canonical, seeded
from selfeval.recognition import simulated as recognition
from selfeval.roleplay import simulated as roleplay

# role: who plays it. Each knows the prompts of its part by `is_asked`, but for the last, who has
# all that is left: anything may be said before a model is asked who it is.
PLAYERS = {
    "roleplay": roleplay,
    "attack": attack,
    "existence": existence,
    "recognition": recognition,
    "identity": identity,
}


def answer(request: Request, messages: list[dict], **parameters) -> Response:
    """Return what a simulated model answers to the messages of a request.

    Every draw is seeded by the request, so the same request always has the same reply. Raises
    `InputError` for a role or rate that nobody knows.
    """
    model = request.model
    rates = dict(model.simulation or {})
    role = rates.pop("role", None)
    if role:
        check_one_of(f"role` of `{model.id}", role, PLAYERS)
    players = [PLAYERS[role]] if role else [*PLAYERS.values()]
    if unknown := rates.keys() - {rate for player in players for rate in player.RATES}:
        raise InputError(
            f"The model {model.id!r} has the unknown simulation parameter `{min(unknown)}`."
        )
    player = next((each for each in players[:-1] if each.is_asked(messages)), players[-1])
    seed = canonical({"m": model.id, "x": messages, "s": request.sample, "seed": request.seed})
    text = player.reply(model, rates, messages, seeded(seed))
    usage = {"prompt": len(messages[-1]["content"].split()), "completion": len(text.split())}
    return Response(text, finish_reason="stop", usage=usage, cost=0.0, served_model=model.id)
