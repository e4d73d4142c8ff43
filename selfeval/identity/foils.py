"""Who a model is, and who it may be told that it is: real models of other makers, siblings, names nobody bears."""

import difflib
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from selfeval import DATA, models
from selfeval.errors import InputError

FILE = DATA / "identity" / "foils.yaml"
ALIKE = 0.7  # difflib's ratio from which an invented name resembles a real one
FEW = 3  # so many siblings of its own family are enough, and so many models of one maker are far foils


@dataclass(frozen=True)
class Identity:
    """Who a model is, or is said to be. family as in a text ("Claude"); id: for its maker's API; aliases: others."""

    name: str
    maker: str
    family: str
    id: str | None = None
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return everything that names this very model."""
        return tuple(filter(None, (self.name, *self.aliases, self.id)))


@dataclass(frozen=True)
class Foils:
    """The content of `data/identity/foils.yaml`. families: the registry's family name -> as written in a text."""

    families: dict[str, str]
    real: tuple[Identity, ...]
    invented: tuple[Identity, ...]


@cache
def read_foils(path: Path = FILE) -> Foils:
    """Return the foils of a file.

    Raises `InputError` where it is not of its form, or an invented name resembles a real one, of it or the registry.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        families = dict(content["families"])
        real = tuple(Identity(m["name"], m["maker"], families[m["family"]], m["id"]) for m in content["models"])
        invented = tuple(Identity(m["name"], m["maker"], m["family"], m["id"]) for m in content["invented"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"The foils {path} cannot be read as YAML: {error}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The foils {path} must have `families`, `models` and `invented`: {error!r}.") from error
    taken = sorted({name for one in real for name in (one.name, one.maker)} | registry_names())
    for name in (name for one in invented for name in (one.name, one.maker)):
        near = difflib.get_close_matches(name.casefold(), [t.casefold() for t in taken], 1, ALIKE)
        if near:
            raise InputError(f"The foils {path} have the invented name {name!r}, too much like {near[0]!r}.")
    return Foils(families, real, invented)


def registry_names() -> set[str]:
    """Return what the registry calls its models and their makers; simulated ones have words for names."""
    listed = [m for m in models.models().values() if m.provider.name != "sim"]
    return {name for m in listed for name in (*m.all_names, m.developer) if name}


def identity(model: models.Model | str) -> Identity:
    """Return who a model is by the registry; a simulated one is who it plays, "GPT-4.1 (terse)" is GPT-4.1.

    Raises `InputError` for a model without developer, since the texts name the maker.
    """
    model = models.get(model) if isinstance(model, str) else model
    if plays := (model.simulation or {}).get("plays"):
        return identity(plays)
    if not model.developer:
        raise InputError(
            f"The model {model.id!r} has no `developer`, and the texts must name its maker; list it in the registry "
            "(data/models.yaml, or the file that SELFEVAL_MODELS names) with `display`, `family` and `developer`."
        )
    name = re.sub(r" \([^()]*\)$", "", model.display)
    family = read_foils().families.get(model.family) or (model.family if _is_name(model.family) else name)
    called = model.api_name.rpartition("/")[2]
    called = called if _is_name(called) else re.sub(r"\W+", "-", name.casefold())
    return Identity(name, model.developer, family, called, tuple(model.names))


def _is_name(word: str | None) -> bool:
    """Tell whether a word names somebody: "chat" or "model", as deployments are called, stands in any text."""
    return bool(word) and not re.fullmatch(r"[a-z]+", word)


def foils(truth: Identity, seed: int = 0) -> dict[str, list[Identity]]:
    """Return who a model may be told that it is: {false-far, false-near, placebo: identities in a seeded order}.

    Far: another maker, makers taking turns, up to three models of each. Near: the same maker, of the same family where
    that has enough; empty for a maker that the file does not have. Placebo: nobody.
    """
    known = read_foils()
    real = [one for one in known.real if contradict(truth, one)]
    own = [one for one in real if same_maker(one, truth)]
    family = [one for one in own if one.family == truth.family]
    pools = {
        "false-far": [one for one in real if not same_maker(one, truth) and one.maker != "selfeval"],
        "false-near": family if len(family) >= FEW else own,
        "placebo": list(known.invented),
    }
    for arm, pool in pools.items():
        random.Random(f"{seed}/{arm}/{truth.name}").shuffle(pool)
    rounds: dict[Identity, int] = {}
    seen: Counter = Counter()
    for one in pools["false-far"]:
        rounds[one] = seen[one.maker]
        seen[one.maker] += 1
    pools["false-far"] = sorted((one for one in rounds if rounds[one] < FEW), key=rounds.get)
    return pools


def same_maker(one: Identity, other: Identity) -> bool:
    """Tell whether two models are of one maker."""
    return one.maker.casefold() == other.maker.casefold()


def contradict(one: Identity, other: Identity) -> bool:
    """Tell whether a model cannot be both: their names differ, and none begins with the other, word by word.

    Somebody who is GPT-4 Turbo may well say GPT-4.
    """
    shared = {n.casefold() for n in one.names} & {n.casefold() for n in other.names}
    # ChatGPT is the GPT of the chat: who is ChatGPT-4o may say GPT-4o.
    words = [re.split(r"[\s\-_/]+", x.name.casefold().replace("chatgpt", "gpt")) for x in (one, other)]
    return not shared and any(a != b for a, b in zip(*words, strict=False))
