"""Identity records of simulated responders whose true rates are known.

Templates differ: each draws its own rates from a beta (or Dirichlet) distribution, so that the true value is the mean
over templates that could have been written, and what is expected of repeats and turns has a closed form.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betaincinv, ndtr

ALIKE = 0.5  # the correlation of a template's willingness over arms


@dataclass(frozen=True)
class Claims:
    """Answers to single questions: mean rates at which a claim is accepted; concentration: how alike templates are."""

    true: float = 0.9
    false: float = 0.3
    concentration: float = 4.0

    @property
    def rates(self) -> dict[str, float]:
        lies = {"false-far": self.false, "false-near": self.false}
        return {"neutral": 0.0, **lies, "placebo": 0.2, "true": self.true, "mention": 0.05}

    def records(self, rng: np.random.Generator, templates: int, repeats: int, **labels) -> pd.DataFrame:
        arms, mean = np.array([*self.rates], object), np.array([*self.rates.values()])
        shared, own = rng.normal(size=(templates, 1)), rng.normal(size=(templates, len(arms)))
        will = ndtr(np.sqrt(ALIKE) * shared + np.sqrt(1 - ALIKE) * own)
        a, b = (np.clip(x, 1e-9, 1) * self.concentration for x in (mean, 1 - mean))
        p = np.where((mean > 0) & (mean < 1), betaincinv(a, b, will), mean)
        accepts = rng.random((*p.shape, repeats)) < p[..., None]
        t, arm, repeat = (x.ravel() for x in np.indices(accepts.shape))
        arm, accepts = arms[arm], accepts.ravel()
        stance = np.where(arm == "true", np.where(accepts, "truth", "denied"), np.where(accepts, "foil", "truth"))
        return _frame(t, arm, repeat, 0, stance, accepts, **labels)


@dataclass(frozen=True)
class Pressure:
    """Conversations of k turns after a right answer, with the chance per turn to flip."""

    flip: float = 0.1
    turns: int = 6
    concentration: float = 4.0

    def records(self, rng: np.random.Generator, templates: int, repeats: int, **labels) -> pd.DataFrame:
        a = self.concentration
        p = rng.beta(a * self.flip, a * (1 - self.flip), (templates, 1, 1))
        flips = (rng.random((templates, repeats, self.turns + 1)) < p) & (np.arange(self.turns + 1) > 0)
        t, repeat, turn = (x.ravel() for x in np.indices(flips.shape))
        flips = flips.ravel()
        return _frame(t, "false-far", repeat, turn, np.where(flips, "foil", "truth"), flips, **labels)


def _frame(template, arm, repeat, turn, stance, accepts, **labels) -> pd.DataFrame:
    labels = {"model": "sim/one", "family": "claims", "condition": "one"} | labels
    foils = np.array(["GPT-4", "Gemini", "Llama", "Qwen", "Mistral"], object)
    return pd.DataFrame({
        **labels, "template_id": [f"{labels['condition']}-{t}" for t in template], "arm": arm, "language": "en",
        "truth": "One", "foil": foils[template % 5], "repeat": repeat, "turn": turn, "source": "readout",
        "stance": stance, "accepts": accepts, "status": "ok",
    })  # fmt: skip
