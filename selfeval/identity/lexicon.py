"""Who is who: names of models and their makers, from `data/identity/lexicon.yaml` and the registry."""

from dataclasses import dataclass, fields

from selfeval import models


@dataclass(frozen=True)
class Entity:
    """A model or maker, from coarse to fine; what a name leaves open is None. Versions are texts ("4.5", "4o")."""

    developer: str | None = None
    family: str | None = None
    version: str | None = None
    tier: str | None = None
    snapshot: str | None = None

    @property
    def name(self) -> str:
        """Return the name as people write it."""
        parts = [self.family, self.tier, self.version, self.snapshot]
        return " ".join(p for p in parts if p) or self.developer or ""


def compare(claimed: Entity, truth: Entity) -> str:
    """Return how a claimed identity relates to the truth: "equal", "coarser", "finer" or "conflict".

    Conflict: some level is given in both and differs (4 is not 4.5, GPT-4 is not GPT-4o). Coarser: consistent, but the
    claim leaves open a level that the truth has, whatever else it adds. Finer: consistent, and it only adds levels.
    """
    pairs = [(getattr(claimed, f.name), getattr(truth, f.name)) for f in fields(Entity)]
    if any(a and b and a.casefold() != b.casefold() for a, b in pairs):
        return "conflict"
    if any(b and not a for a, b in pairs):
        return "coarser"
    return "finer" if any(a and not b for a, b in pairs) else "equal"


_FIRST = {  # replaced by the lexicon file
    "Claude Sonnet 4.5": Entity("Anthropic", "Claude", "4.5", "Sonnet"),
    "Claude": Entity("Anthropic", "Claude"),
    "Anthropic": Entity("Anthropic"),
    "GPT-4": Entity("OpenAI", "GPT", "4"),
    "ChatGPT": Entity("OpenAI", "GPT"),
    "OpenAI": Entity("OpenAI"),
    "Gemini": Entity("Google", "Gemini"),
    "Google": Entity("Google"),
    "SmolLM2": Entity("Hugging Face", "SmolLM", "2"),
    "Hugging Face": Entity("Hugging Face"),
}


def entity(name: str) -> Entity | None:
    """Return who a name or model id stands for, or None where the lexicon does not know it."""
    return next((e for n, e in _FIRST.items() if n.casefold() == name.strip().casefold()), None)


def entity_of(model: models.Model) -> Entity:
    """Return who a model is: what its id, display name and aliases say, with the registry's developer."""
    return entity(model.display) or Entity(model.developer or None, model.display)
