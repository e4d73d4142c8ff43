"""What simulated models do in truth, by the rates that the registry plants in them."""

from selfeval.providers.models import Model


def recognition(model: Model, n_candidates: int | None = None) -> tuple[float, float]:
    """Return P(names itself | own text) and P(names itself | another's text); n_candidates None: the binary task."""
    rates = model.simulation or {}
    answers = 1 - rates.get("no_answer", 0)
    if n_candidates is None:
        return tuple(answers * rates.get(name, 0.5) for name in ("hit", "false_claim"))
    first = rates.get("position", 0)
    return tuple(
        answers * (first / n_candidates + (1 - first) * rates.get(name, 1 / n_candidates))
        for name in ("hit", "false_claim")
    )
