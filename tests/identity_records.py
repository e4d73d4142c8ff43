"""Identity records of simulated responders whose rates are planted: for the tests and the benchmarks.

Templates differ: each draws its own rates from a beta (or Dirichlet) distribution, so that the planted value is the
mean over templates that could have been written, and what is expected of repeats and turns has a closed form.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betaincinv, ndtr

COLUMNS = "model family condition template_id arm language truth foil repeat turn source stance accepts status".split()
ARMS = ("neutral", "false-far", "false-near", "placebo", "true", "mention")


@dataclass(frozen=True)
class Claims:
    """Answers to single questions: mean rates at which a claim is accepted, and how alike templates are.

    concentration: a + b of the beta distribution of a template's rate (large: all templates are alike); alike: the
    correlation of a template's willingness over arms.
    """

    true: float = 0.9
    false: float = 0.3
    placebo: float = 0.2
    mention: float = 0.05
    neutral: float = 0.0
    concentration: float = 4.0
    alike: float = 0.5

    def rate(self, arm: str) -> float:
        return getattr(self, arm.split("-")[0])

    @property
    def discrimination(self) -> float:
        return self.true - self.false

    @property
    def consistency(self) -> float:
        """Expected chance that two repeats agree: 1 - 2 E[p] + 2 E[p^2], over arms."""
        p = np.array([self.rate(arm) for arm in ARMS])
        square = p**2 + p * (1 - p) / (self.concentration + 1)
        return float((1 - 2 * p + 2 * square).mean())

    def records(self, rng: np.random.Generator, templates: int, repeats: int, **labels) -> pd.DataFrame:
        shared, own = rng.normal(size=(templates, 1)), rng.normal(size=(templates, len(ARMS)))
        will = ndtr(np.sqrt(self.alike) * shared + np.sqrt(1 - self.alike) * own)
        mean = np.array([self.rate(arm) for arm in ARMS])
        a, b = np.clip(mean, 1e-9, 1) * self.concentration, np.clip(1 - mean, 1e-9, 1) * self.concentration
        p = np.where(mean <= 0, 0, np.where(mean >= 1, 1, betaincinv(a, b, will)))
        accepts = rng.random((templates, len(ARMS), repeats)) < p[..., None]
        t, arm, repeat = (x.ravel() for x in np.indices(accepts.shape))
        arms = np.array(ARMS, object)[arm]
        accepts = accepts.ravel()
        stance = np.where(arms == "true", np.where(accepts, "truth", "denied"), np.where(accepts, "foil", "truth"))
        return _frame(t, arms, repeat, 0, stance, accepts, **labels)


@dataclass(frozen=True)
class Pressure:
    """Conversations of k turns after a right answer: chances per turn to flip and to abstain, and to be right at 0.

    concentration: of the Dirichlet distribution of a template's (flip, abstain, stay). abstainers_leave: abstaining
    ends the conversation's risk; if not, an abstainer flips at the next turn like everybody.
    """

    flip: float = 0.1
    abstain: float = 0.0
    turns: int = 6
    concentration: float = 4.0
    right: float = 1.0
    abstainers_leave: bool = False

    def incidence(self) -> np.ndarray:
        """Expected flips by turns 1 ... k."""
        a = self.concentration
        gone = self.flip + (self.abstain if self.abstainers_leave else 0)
        i = np.arange(self.turns)
        stay = np.cumprod(np.r_[1, (a * (1 - gone) + i[:-1]) / (a + 1 + i[:-1])])  # E[h s^i] / E[h]
        return np.cumsum(self.flip * stay)

    @property
    def restricted_mean(self) -> float:
        return float(1 + (1 - self.incidence()[:-1]).sum())

    def records(self, rng: np.random.Generator, templates: int, repeats: int, **labels) -> pd.DataFrame:
        means = np.array([self.flip, self.abstain, 1 - self.flip - self.abstain])
        p = rng.dirichlet(np.maximum(means, 1e-9) * self.concentration, templates)
        u = rng.random((templates, repeats, self.turns + 1))
        flips = u < p[:, 0, None, None]
        abstains = ~flips & (u < (p[:, 0] + p[:, 1])[:, None, None])
        start = rng.random((templates, repeats)) < self.right
        flips[..., 0] = abstains[..., 0] = False
        if self.abstainers_leave:
            abstains = np.maximum.accumulate(abstains & ~np.maximum.accumulate(flips, -1), -1)
            flips &= ~abstains
        stance = np.where(flips, "foil", np.where(abstains, "abstain", "truth")).astype(object)
        stance[..., 0] = np.where(start, "truth", "other")
        t, repeat, turn = (x.ravel() for x in np.indices(stance.shape))
        stance = stance.ravel()
        return _frame(t, np.full(len(t), "false-far", object), repeat, turn, stance, stance == "foil", **labels)


def _frame(template, arm, repeat, turn, stance, accepts, **labels) -> pd.DataFrame:
    labels = {"model": "sim/one", "family": "claims", "condition": "one"} | labels
    frame = pd.DataFrame({
        **labels, "template_id": [f"{labels['condition']}-{t}" for t in template], "arm": arm, "language": "en",
        "truth": "One", "foil": np.array(["GPT-4", "Gemini", "Llama", "Qwen", "Mistral"], object)[template % 5],
        "repeat": repeat, "turn": turn, "source": "readout", "stance": stance, "accepts": accepts, "status": "ok",
    })  # fmt: skip
    return frame[COLUMNS]
