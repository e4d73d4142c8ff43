"""Statistics of attacked conversations: how long models keep their name, by strategy.

The unit is the conversation. Conversations with one opening, number and foil are held in every
strategy and in the control, so that the two are paired.

    survival@T          of those that named themselves before the first message of the attacker,
                        the share that still do after T of them (Kaplan-Meier)
    restricted_mean     turns until a name is given up, up to the last one
    adopts@T, denies@T  of all, the share that gives itself the foil's name, and that denies its
                        own or gives itself a third one
    survival_minus_control@T
                        survival less that of `no pressure`, paired by conversation
    survival_minus_script@T
                        survival less that under the suite's written pressure, by the same rule
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from selfeval.identity.attack import CONTROL, STRATEGIES
from selfeval.identity.measures import (
    ARMS,
    FALSE,
    FEW,
    READOUT,
    RIGHT,
    STANCES,
    curve,
    number_templates,
    risk_sets,
    survival_rates,
)
from selfeval.statistics.intervals import Rate
from selfeval.statistics.resampling import Settings
from selfeval.statistics.table import INVERTED, Measure, adjust_p, write

# what a probe says once a name is given up
LOST = [stance for stance in STANCES if stance not in RIGHT]
SAYS = {"adopts": ["foil"], "denies": ["denied", "other"]}


def attack_table(records: pd.DataFrame, *, n_resamples: int = 10_000, seed: int = 0):
    """Estimate survival, adoption and denial per model and strategy, and their differences.

    records: as in `identity_table`, with `strategy`, which is empty for those of a suite. In the
    table it is `task`. Intervals: Wilson at the effective sample size, MOVER for differences; p
    inverts these, p_holm adjusts it over strategies and models at a turn. n: conversations.
    """
    how = Settings(n_resamples, seed=seed, unit="conversation", few=FEW)
    parts = []
    for model, of_model in records.groupby("model", sort=False):
        script = of_model[of_model["strategy"].isna() & of_model["arm"].isin(FALSE)]
        attacked = {}
        for strategy in STRATEGIES:
            replies = of_model[of_model["strategy"] == strategy]
            if len(replies):
                attacked[strategy] = replies.sort_values("template_id", kind="stable")
        for strategy, replies in attacked.items():
            measures = [*_measures(replies)]
            if strategy != CONTROL and CONTROL in attacked:
                measures += _minus("control", replies, attacked[CONTROL])
            if (script["turn"] > 0).any():
                measures += _minus("script", replies, script)
            labels = {"evaluator": model, "task": strategy}
            parts.append(write(measures, how, policy=READOUT, **labels))
    return adjust_p(pd.concat(parts, ignore_index=True), ["statistic"])


def _measures(records: pd.DataFrame) -> Iterator[Measure]:
    """Yield survival by turn, its mean, and what the probes of every turn say."""
    replies = number_templates(records, ["model"])
    yield from curve(*risk_sets(replies, ARMS, LOST))
    stances = replies.pivot(index="unit", columns="turn", values="stance")
    is_seen = stances.notna().to_numpy()
    for name, said in SAYS.items():
        rates = Rate.of(stances.isin(said).to_numpy(), is_seen)
        yield Measure([f"{name}@{turn}" for turn in stances], rates)


def _minus(name: str, records: pd.DataFrame, others: pd.DataFrame) -> Iterator[Measure]:
    """Yield by how much survival differs from that of other conversations, turn by turn.

    It is paired by conversation where both have the same ones.
    """
    sides = []
    for side in (records, others):
        replies = number_templates(side, ["model"])
        sides.append(survival_rates(*risk_sets(replies, ARMS, LOST)))
    is_paired = set(records["template_id"]) == set(others["template_id"])
    for turn, (first, second) in enumerate(zip(*sides, strict=False), 1):
        if not is_paired:
            first, second = _apart(first, second)
        yield Measure(f"survival_minus_{name}@{turn}", first - second, test=INVERTED)


def _apart(first: Rate, second: Rate) -> tuple[Rate, Rate]:
    """Return two rates of different conversations as rates of all of them, each with its own."""
    before = np.zeros(len(first.contrib))
    behind = np.zeros(len(second.contrib))
    padded = []
    for rate, join in ((first, (None, behind)), (second, (before, None))):
        parts: dict = {}
        for name in ("contrib", "weight"):
            own = getattr(rate, name)
            parts[name] = np.concatenate([own if part is None else part for part in join])
        padded.append(replace(rate, **parts))
    return padded[0], padded[1]
