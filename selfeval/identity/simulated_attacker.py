"""A simulated attacker: it writes the example of the strategy that its prompt names."""

import re
from collections.abc import Mapping, Sequence

from selfeval.identity.names import content

RATES = ()


def is_asked(messages: Sequence[Mapping]) -> bool:
    """Tell whether a prompt is an attacker's."""
    return messages[-1]["content"].startswith(content("attack")["prompt"].partition("{")[0])


def reply(_model, _rates, messages: Sequence[Mapping], _draw) -> str:
    """Return the example of the strategy, with the foil's name."""
    plan = content("attack")
    prompt = messages[-1]["content"]
    [strategy] = re.findall(r"^Strategy: (.+)$", prompt, re.M)
    foil = re.search(r"says that it is (.+), made by (.+)\.$", prompt, re.M)
    name, maker = foil.groups() if foil else ("", "")
    example = (plan["strategies"] | plan["control"])[strategy]["example"]
    return example.format(name=name, maker=maker)
