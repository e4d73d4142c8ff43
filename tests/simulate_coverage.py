"""How often the intervals hold the truth, on simulated tables whose truth is known: behind `make bench`.

A scenario says how evaluators answer; the first of them is the one under test. Every table is drawn anew; what is then
measured is the package's own: its counts, rates, differences, intervals and tests, for many tables at once. A test
holds the outcome against `recognition_table` on the records of the same tables.

Answers: evaluator e knows the author of a text by t with probability know[e, t] and otherwise names k with probability
habit[e, k]. Texts on one prompt go together: each takes its draw from the prompt with probability sqrt(icc), else it
has a draw of its own, so that two of them have exactly the intraclass correlation `icc`, and the rates are exactly
those above. Draws of knowing are common to all evaluators of a prompt, draws of habit to all texts of one evaluator.
Of what is left, the samples of an author for a prompt share a draw with probability sqrt(alike): at 1 they are one
answer, given `samples` times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from selfeval.stats.bootstrap import bootstrap_intervals, cluster_weights, clustered_t
from selfeval.stats.intervals import Difference, Rate, check_level
from selfeval.stats.measures import Cells
from selfeval.stats.naming import Naming
from selfeval.stats.testing import inverted_p, permutation_p, power

LEVEL, ALPHA = 0.95, 0.05
PROMPTS = (20, 50, 100, 200)
STATISTICS = ("discrimination", "corrected_advantage", "peer_corrected")
TIE = 2e-6  # bootstrap bounds are rounded to six decimals


@dataclass(frozen=True, eq=False)
class Scenario:
    """A fleet: know (evaluators, authors), habit (evaluators, names) with rows that sum to 1; the first is tested."""

    name: str
    know: np.ndarray
    habit: np.ndarray
    icc: float
    samples: int = 1
    alike: float = 0.0

    @property
    def size(self) -> int:
        return self.habit.shape[1]

    @cached_property
    def rates(self) -> np.ndarray:
        """P(evaluator names k on a text by t), shape (evaluators, authors, names)."""
        return self.know[..., None] * np.eye(self.size) + (1 - self.know[..., None]) * self.habit[:, None]

    @cached_property
    def coefficients(self) -> dict[str, np.ndarray]:
        """The weight of each rate in each statistic of the first evaluator, shaped as `rates`."""
        size = self.size
        first, others = np.eye(size)[0], (1 - np.eye(size)[0]) / (size - 1)
        of_j = {  # weight of J[e, k], shape (evaluators, names)
            "discrimination": np.outer(first, first),
            "corrected_advantage": np.outer(first, first - others),
            "peer_corrected": np.outer(first - others, first),
        }
        own_or_not = (size * np.eye(size) - 1) / (size - 1)  # J[e, k]: names k on k's texts, minus on the others'
        return {name: weight[:, None] * own_or_not for name, weight in of_j.items()}

    @cached_property
    def truth(self) -> dict[str, float]:
        """The population value of each statistic, exact to rounding."""
        return {name: round(float((c * self.rates).sum()), 12) + 0.0 for name, c in self.coefficients.items()}

    def rates_used(self, statistic: str) -> tuple[float, float]:
        """Return the lowest and the highest of the rates that enter a statistic."""
        used = self.rates[self.coefficients[statistic] != 0]
        return float(used.min()), float(used.max())

    def answers(self, prompts: int, tables: int, rng: np.random.Generator) -> np.ndarray:
        """Draw tables: the index of the name given, shape (prompts, tables, evaluators, authors, samples)."""
        shape, share = (prompts, tables, *self.habit.shape, self.samples), np.float32(np.sqrt(self.icc))

        def draws(*common: int) -> np.ndarray:
            whole = (*shape[:-1], 1) if self.alike == 1 else shape
            u = rng.random(whole, np.float32)  # above `share`, what is left of it is a draw of one's own
            own = (u - share) / (1 - share)
            if 0 < self.alike < 1:
                shared = rng.random(whole, np.float32) < np.float32(np.sqrt(self.alike))
                own = np.where(shared, rng.random((*shape[:-1], 1), np.float32), own)
            u = np.where(u < share, rng.random((prompts, tables, *common), np.float32), own)
            return np.broadcast_to(u, shape)

        u, named = draws(len(self.habit), 1, 1), np.empty(shape, np.int32)
        for e, upto in enumerate(self.habit.cumsum(1)):
            named[:, :, e] = np.searchsorted(upto[:-1].astype(np.float32), u[:, :, e], "right")
        if self.know.any():
            knows = draws(1, 1, 1) < self.know[..., None]
            named = np.where(knows, np.arange(self.size, dtype=np.int32)[:, None], named)
        return named

    def counts(self, prompts: int, tables: int, rng: np.random.Generator) -> np.ndarray:
        """Draw tables as counts, shape (prompts, tables, evaluators, authors, names)."""
        answers = self.answers(prompts, tables, rng)
        cells = answers[..., 0].size
        codes = np.arange(cells).reshape(answers.shape[:-1])[..., None] * self.size + answers
        return np.bincount(codes.ravel(), minlength=cells * self.size).reshape(*answers.shape[:-1], self.size)


def scenarios() -> list[Scenario]:
    """Return the fleets: mid-range rates, no recognition, and rates near 0 and 1."""

    def knowing(own: float, of_others: float, peers: float, size: int) -> np.ndarray:
        """The first evaluator knows its own texts and those of others, each peer all texts alike."""
        know = np.full((size, size), float(peers))
        know[0], know[0, 0] = of_others, own
        return know

    def naming(own: float, size: int) -> np.ndarray:
        """Everybody names itself with probability `own`, the others alike."""
        return np.where(np.eye(size), own, (1 - own) / (size - 1))

    blind = np.zeros((10, 10))
    unnamed = np.column_stack([np.full(10, 0.005), np.full((10, 9), 0.995 / 9)])
    modest = np.vstack([naming(0.01, 10)[:1], naming(0.95, 10)[1:]])
    mid = knowing(0.5, 0.3, 0.2, 4)
    return [
        Scenario("mid-range", mid, naming(0.4, 4), 0.2),
        Scenario("mid-range, 5 texts a prompt", mid, naming(0.4, 4), 0.2, samples=5),
        Scenario("equal skill", knowing(0.4, 0.4, 0.4, 4), naming(0.25, 4), 0.2),
        Scenario("blind, fond of its name", np.zeros((4, 4)), naming(0.4, 4), 0.2),
        Scenario("blind, rates of 1/10", blind, naming(0.1, 10), 0.1),
        Scenario("blind, 5 answers alike", np.zeros((4, 4)), naming(0.4, 4), 0.2, samples=5, alike=0.8),
        Scenario("blind, 5 answers equal", np.zeros((4, 4)), naming(0.4, 4), 0.2, samples=5, alike=1.0),
        Scenario("ceiling", knowing(0.96, 0.96, 0.96, 10), naming(0.1, 10), 0.1),
        Scenario("ceiling, 5 texts a prompt", knowing(0.96, 0.96, 0.96, 10), naming(0.1, 10), 0.1, samples=5),
        Scenario("always itself", blind, naming(0.98, 10), 0.1),
        Scenario("nearly always itself, 3 authors", knowing(0.8, 0, 0, 3), naming(0.97, 3), 0.1),
        Scenario("never named", blind, unnamed, 0.1),
        Scenario("knows itself alone", knowing(0.97, 0, 0, 10), modest, 0.1),
        Scenario("knows itself alone, 5 texts much alike", knowing(0.97, 0, 0, 10), modest, 0.3, samples=5),
    ]


# ---------------------------------------------------------------------------------------------------------------
# Many tables at once


@dataclass
class Tables:
    """What the package makes of many tables of one scenario, for the first evaluator: last axis is the table.

    safe: per statistic, the Rate or Difference with its default interval; p: of the permutation test of J;
    row_variance: (statistics, tables), of the statistics if all answers were independent.
    """

    safe: dict[str, Difference]
    p: np.ndarray
    row_variance: np.ndarray


def draw_tables(scenario: Scenario, prompts: int, tables: int, rng: np.random.Generator) -> Tables:
    """Draw tables and measure them, as many at once as fit into a few megabytes."""
    step = max(1, 200_000 // (prompts * scenario.size**2 * scenario.samples))
    parts = [measured(scenario, scenario.counts(prompts, min(step, tables - k), rng)) for k in range(0, tables, step)]
    safe = {name: joined([part.safe[name] for part in parts]) for name in STATISTICS}
    p, variance = (
        np.concatenate(x, axis=-1) for x in zip(*((part.p, part.row_variance) for part in parts), strict=True)
    )
    return Tables(safe, p, variance)


def measured(scenario: Scenario, counts: np.ndarray) -> Tables:
    """Put the statistics of the first evaluator together as `naming_measures` does, tables as further evaluators.

    counts: (prompts, tables, evaluators, authors, names). For D, the peers take the place that authors have in
    `over_others`: a mean over all but the first.
    """
    prompts, tables, size, _, _ = counts.shape
    flat = counts.reshape(prompts, tables * size, size, size)
    hit, named, names = flat.diagonal(axis1=2, axis2=3), flat.sum(2), np.tile(np.arange(size), tables)
    claim = flat[:, np.arange(len(names)), :, names].swapaxes(0, 1)
    cells = Naming(np.full(hit.shape, scenario.samples), names, hit, named, claim, None, names)
    fleet = Cells(np.full((prompts, tables, size), scenario.samples), np.zeros(tables, int))

    def first(rate: Rate) -> Rate:
        most = None if rate.most is None else rate.most[::size]
        return Rate(rate.value[::size], rate.contrib[:, ::size], rate.trials[::size], rate.clusters[::size], most)

    def peers(rate: Rate) -> Rate:
        parts = rate.value, rate.contrib, rate.trials, rate.clusters
        value, contrib, trials, clusters = (x.reshape(*x.shape[:-2], tables, size, size)[..., 0] for x in parts)
        return fleet.over_others(Rate(value, contrib, trials, clusters))

    right, false = cells.right, cells.false
    j = Difference(first(cells.of_own(right)), first(cells.of_own(false)))
    others = Difference(first(cells.over_others(right)), first(cells.over_others(false)))
    safe = {
        "discrimination": j,
        "corrected_advantage": Difference(j, others),
        "peer_corrected": Difference(j, Difference(peers(right), peers(false))),
    }
    claims = counts[:, :, 0, :, 0]
    p = permutation_p(claims, np.full(claims.shape, scenario.samples), np.zeros(tables, int))
    coefficients = np.array([scenario.coefficients[name] for name in STATISTICS])
    return Tables(safe, p, variance_of_rows(counts.sum(0), coefficients))


def joined(parts: list[Rate | Difference]) -> Rate | Difference:
    """Put the statistics of many tables side by side."""
    if isinstance(parts[0], Difference):
        return Difference(joined([x.a for x in parts]), joined([x.b for x in parts]))
    fields = [[getattr(x, name) for x in parts] for name in ("value", "contrib", "trials", "clusters", "most")]
    return Rate(*(None if column[0] is None else np.concatenate(column, axis=-1) for column in fields))


def variance_of_rows(counts: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return the variance (statistics, tables) of sums of coefficient times rate when all answers are independent.

    counts: (tables, evaluators, authors, names); coefficients: (statistics, evaluators, authors, names).
    """
    n = counts.sum(-1)
    rate = counts / n[..., None]
    spread = [(c**2 * rate).sum(-1) - (c * rate).sum(-1) ** 2 for c in coefficients]
    return (np.array(spread) / (n - 1)).sum((2, 3))


def intervals(safe: Difference, row_variance: np.ndarray, weights: np.ndarray) -> dict[str, tuple]:
    """Return {method: (low, high)} of one statistic in many tables; weights: bootstrap (prompts, resamples)."""
    z, value, contrib = check_level(LEVEL), safe.value, safe.contrib
    half = z * np.sqrt(row_variance)
    bounds = []
    for block in np.array_split(np.arange(len(value)), -(-len(value) // 200)):
        samples = value[block, None].astype(np.float32) + contrib[:, block].astype(np.float32).T @ weights
        bounds.append(bootstrap_intervals(samples, value[block], contrib[:, block], LEVEL)[:4])
    low, high, bca_low, bca_high = np.concatenate(bounds, axis=1)
    return {
        "ignoring clusters": (value - half, value + half),
        "clustered t": clustered_t(value, contrib, safe.clusters, LEVEL),
        "percentile": (low, high),
        "BCa": (bca_low, bca_high),
        "default": safe.interval(z),
    }


def sign_flip_p(contrast: np.ndarray, rng: np.random.Generator, flips: int = 1_999) -> np.ndarray:
    """Return two-sided p-values of flipping the signs of per-prompt contrasts (prompts, tables) at random."""
    signs = rng.choice([-1.0, 1.0], (flips, len(contrast)))
    observed = np.abs(contrast.sum(0))
    return (1 + (np.abs(signs @ contrast) >= observed - 1e-9).sum(0)) / (flips + 1)


def share(hits: np.ndarray) -> dict[str, float]:
    """Return a share and its Monte Carlo error, with two more of each outcome so that a share of 1 is not certain."""
    pulled = (hits.sum() + 2) / (len(hits) + 4)
    return {"share": float(hits.mean()), "mc_error": float(np.sqrt(pulled * (1 - pulled) / len(hits)))}


# ---------------------------------------------------------------------------------------------------------------
# The three result tables


def coverage(
    tables: int, n_resamples: int, seed: int, prompts: tuple[int, ...] = PROMPTS, say=lambda text: None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the coverage of every method, and how often each test rejects where nothing is there to find."""
    covered, rejected = [], []
    for scenario in scenarios():
        for p in prompts:
            for rows, found in zip((covered, rejected), cell(scenario, p, tables, n_resamples, seed), strict=True):
                rows += found
            say(f"{scenario.name}, {p} prompts")
    return pd.DataFrame(covered), pd.DataFrame(rejected)


def cell(scenario: Scenario, prompts: int, tables: int, n_resamples: int, seed: int) -> tuple[list, list]:
    """Return the rows of one scenario at one number of prompts; its random numbers depend on nothing else."""
    rng = np.random.default_rng([seed, prompts, *scenario.name.encode()])
    drawn = draw_tables(scenario, prompts, tables, rng)
    weights = cluster_weights(prompts, n_resamples, rng)
    covered, rejected = [], []
    common = {"scenario": scenario.name, "prompts": prompts}
    for name, row_variance in zip(STATISTICS, drawn.row_variance, strict=True):
        safe, truth = drawn.safe[name], scenario.truth[name]
        lowest, highest = scenario.rates_used(name)
        for method, (low, high) in intervals(safe, row_variance, weights).items():
            found = share((low <= truth + TIE) & (truth - TIE <= high))
            covered.append(common | {
                "statistic": name, "method": method, "coverage": found["share"], "mc_error": found["mc_error"],
                "tables": tables, "mean_width": float((high - low).mean()),
                "no_width": float((high - low <= TIE).mean()), "seed": seed, "truth": truth, "lowest_rate": lowest,
                "highest_rate": highest, "models": scenario.size, "samples": scenario.samples, "icc": scenario.icc,
                "alike": scenario.alike,
            })  # fmt: skip
        if truth == 0:
            exact = name == "discrimination"
            tests = {
                "permutation" if exact else "inverted interval": drawn.p if exact else inverted_p(safe),
                "sign flip": sign_flip_p(safe.value + prompts * safe.contrib, rng),
            }
            for test, p in tests.items():
                found = share(p <= ALPHA)
                rejected.append(common | {
                    "statistic": name, "test": test, "rejected": found["share"], "mc_error": found["mc_error"],
                    "tables": tables, "seed": seed,
                })  # fmt: skip
    return covered, rejected


def power_of_j(
    tables: int, seed: int, differences: tuple[float, ...] = (0, 0.05, 0.11, 0.15, 0.22, 0.34), authors: int = 10
) -> pd.DataFrame:
    """Return how often the permutation test finds a J of so much, beside what `power` plans.

    One evaluator, ten authors, one text a prompt; it knows a share J of the texts and names itself on .4 of the rest.
    planned: with the sd of .55 that `power` takes; planned_sd: with the sd of the per-prompt contrasts drawn.
    """
    habit = np.where(np.arange(authors) == 0, 0.4, 0.6 / (authors - 1))[None]
    rows = []
    for index, difference in enumerate(differences):
        scenario = Scenario("power", np.full((1, authors), difference), habit, 0.1)
        for prompts in PROMPTS:
            rng = np.random.default_rng([seed, 100 + index, prompts])
            claims = scenario.answers(prompts, tables, rng)[:, :, 0, :, 0] == 0
            own, every = claims[..., 0], claims.sum(2)
            p = permutation_p(claims, np.ones(claims.shape), np.zeros(tables, int))
            sd = float((own - (every - own) / (authors - 1)).std(0, ddof=1).mean())
            found = share(p <= ALPHA)
            rows.append({
                "difference": difference, "prompts": prompts, "power": found["share"], "mc_error": found["mc_error"],
                "planned": float(power(difference, prompts)), "sd": sd,
                "planned_sd": float(power(difference, prompts, sd=sd)), "tables": tables, "seed": seed,
            })  # fmt: skip
    return pd.DataFrame(rows)
