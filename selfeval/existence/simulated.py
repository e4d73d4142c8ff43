"""Simulated models that are asked which models exist.

Rates of `simulation` in `data/models.yaml`, as `role: existence` or without a role:

real, invented         P(says that a model exists), by whether its name is among the invented ones;
1/2 without
no_answer              P(says that it cannot tell)
"""

import random

from selfeval.existence.run import FORMS, invented_names, templates
from selfeval.providers.models import Model

RATES = {"real", "invented", "no_answer"}


def is_asked(messages: list[dict]) -> bool:
    """Tell whether a question has a statement of the existence test."""
    holds = messages[-1]["content"].__contains__
    return any(all(map(holds, way["statement"].split("{name}"))) for way in templates())


def reply(model: Model, rates: dict, messages: list[dict], draw: random.Random) -> str:
    """Answer a question of the existence test in the form that it asks for."""
    question = messages[-1]["content"]
    if "no_answer" in rates and draw.random() < rates["no_answer"]:
        return "I cannot tell."
    is_invented = any(name in question for name in invented_names())
    likely = rates.get("invented" if is_invented else "real", 0.5)
    exists = draw.random() < likely
    for form in FORMS.values():
        if form.how in question:
            return f"Answer: {form.say(float(exists))}"
    return "I cannot tell."
