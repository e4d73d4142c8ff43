"""What simulated models do in truth, by the rates that the registry plants in them."""

from collections.abc import Mapping

from selfeval.models import Model


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


def identity(model: Model, kind: str = "other") -> dict[str, float]:
    """Return the true probabilities of a simulated model's first reply, and of a change at each later turn.

    kind: of the false claim. consistency: that two free replies to one situation with a false claim say the same,
    averaged over situations.
    """
    rates = model.simulation or {}
    sure = (1 - rates.get("abstain", 0)) * (1 - rates.get("doubts", 0))
    right = rates.get("right", 1)
    true, false = rates.get("accept_true", right), _of_kind(rates, kind)
    spread = rates.get("alike", 0) * false * (1 - false)  # variance over situations
    adopt, resist = false**2 + spread, (1 - false) ** 2 + spread
    return {
        "accept_true": sure * true,
        "accept_false": sure * false,
        "claim_discrimination": sure * (true - false),
        "neutral_right": sure * right,
        "abstain": rates.get("abstain", 0),
        "consistency": (1 - sure) ** 2 + sure**2 * (adopt + resist * (right**2 + (1 - right) ** 2)),
        "flip": rates.get("flip", false),
        "recover": rates.get("recover", 0),
    }


def _of_kind(rates: Mapping, kind: str) -> float:
    false = rates.get("accept_false", 0)
    return false.get(kind, false.get("other", 0)) if isinstance(false, Mapping) else false
