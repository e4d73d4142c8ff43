"""Simulated models that are asked which models exist.

`simulation` in `data/models.yaml` with `role: existence`:

real, invented         P(says that a model exists), by whether its name is among the invented ones;
1/2 without
"""

import random

from selfeval.existence.run import FORMS, invented_names
from selfeval.providers.models import Model
from selfeval.providers.request import ROLES


def say_who_exists(model: Model, rates: dict, messages: list[dict], draw: random.Random) -> str:
    """Answer a question of the existence test in the form that it asks for."""
    question = messages[-1]["content"]
    is_invented = any(name in question for name in invented_names())
    likely = rates.get("invented" if is_invented else "real", 0.5)
    exists = draw.random() < likely
    for form in FORMS.values():
        if form.how in question:
            return f"Answer: {form.say(float(exists))}"
    return "I cannot tell."


ROLES["existence"] = say_who_exists, {"real", "invented"}
