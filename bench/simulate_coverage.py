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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from selfeval.recognition.counts import tallies
from selfeval.recognition.measures import binary_measures
from selfeval.statistics.intervals import Function, Rate, Statistic, check_level, within_range
from selfeval.statistics.resampling import Settings, bootstrap
from selfeval.statistics.tests import inverted_p, z_scores

LEVEL, ALPHA = 0.95, 0.05
PROMPTS = (20, 50, 100, 200)
STATISTICS = ("discrimination", "corrected_advantage", "peer_corrected")
LISTED = ("interaction", "d_prime")  # listed, and not held to the promise
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
            "interaction": np.outer(first, first - others) - others[:, None] * (first - third_parties(size)),
        }
        own_or_not = (size * np.eye(size) - 1) / (size - 1)  # J[e, k]: names k on k's texts, minus on the others'
        return {name: weight[:, None] * own_or_not for name, weight in of_j.items()}

    @cached_property
    def truth(self) -> dict[str, float]:
        """The population value of each statistic, exact to rounding."""
        found = {name: round(float((c * self.rates).sum()), 12) + 0.0 for name, c in self.coefficients.items()}
        hit, false = self.rates[0, 0, 0], self.rates[0, 1:, 0].mean()
        return found | {"d_prime": float(ndtri(hit) - ndtri(false))}

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


def third_parties(size: int) -> np.ndarray:
    """Return, per peer, the weights of a mean over the names that are neither its own nor the first."""
    use = 1 - np.eye(size)
    use[:, 0] = 0
    return use / use.sum(1, keepdims=True)


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
    """What the package makes of many tables of one scenario, for the first evaluator: the axis of a value is the table.

    found: the statistics with their default intervals; row_variance: (statistics, tables), of J, corrected advantage
    and peer-corrected recognition if all answers were independent.
    """

    found: dict[str, Statistic]
    row_variance: np.ndarray


def draw_tables(scenario: Scenario, prompts: int, tables: int, rng: np.random.Generator) -> Tables:
    """Draw tables, as many at once as fit into a few megabytes, and measure them."""
    step = max(1, 200_000 // (prompts * scenario.size**2 * scenario.samples))
    parts = [summed(scenario, scenario.counts(prompts, min(step, tables - k), rng)) for k in range(0, tables, step)]
    *sums, variance = zip(*parts, strict=True)
    return measured(scenario, *(np.concatenate(x, axis=1) for x in sums), np.concatenate(variance, axis=1))


def summed(scenario: Scenario, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return of counts (prompts, tables, evaluators, authors, names) what the statistics of the first evaluator need.

    right, false: how often the first evaluator names each author rightly and wrongly, then how often each peer the
    first; claims: how often the first names itself, by author; contrast: the interaction of each prompt.
    """
    hit = counts.diagonal(axis1=3, axis2=4)
    false = counts.sum(3) - hit
    right, false = (np.concatenate([x[:, :, 0], x[:, :, 1:, 0]], -1) for x in (hit, false))
    contrast = np.tensordot(counts, scenario.coefficients["interaction"], 3)
    coefficients = np.array([scenario.coefficients[name] for name in STATISTICS])
    return right, false, counts[:, :, 0, :, 0], contrast, variance_of_rows(counts.sum(0), coefficients)


def measured(scenario: Scenario, right, false, claims, contrast, row_variance) -> Tables:
    """Put the statistics of the first evaluator together as `recognition.naming_measures` does, many tables at once."""
    size, n, every = scenario.size, scenario.samples, slice(None)
    right, false = Rate.of(right, n), Rate.of(false, n * (size - 1))
    h, f = (rate.pick((every, 0)) for rate in (right, false))
    own, peers = slice(1, size), slice(size, None)
    others, of_peers = (
        right.pick((every, part)).mean(np.ones(size - 1)) - false.pick((every, part)).mean(np.ones(size - 1))
        for part in (own, peers)
    )
    mean = contrast.mean(0) / n
    interaction = Statistic(mean, (contrast / n - mean) / len(contrast), h.n, h.clusters, None)
    texts = np.full(claims.shape[:2], n)
    sums = np.stack([claims[..., 0], texts, claims[..., 1:].sum(-1), texts * (size - 1)], -1)
    found = {
        "discrimination": h - f,
        "corrected_advantage": h - f - others,
        "peer_corrected": h - f - of_peers,
        "interaction": interaction,
        "d_prime": Function.of(sums, lambda s: z_scores(*np.moveaxis(s, -1, 0))[0], h.n),
    }
    return Tables(found, row_variance)


def variance_of_rows(counts: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return the variance (statistics, tables) of sums of coefficient times rate when all answers are independent.

    counts: (tables, evaluators, authors, names); coefficients: (statistics, evaluators, authors, names).
    """
    n = counts.sum(-1)
    rate = counts / n[..., None]
    spread = [(c**2 * rate).sum(-1) - (c * rate).sum(-1) ** 2 for c in coefficients]
    return (np.array(spread) / (n - 1)).sum((2, 3))


def intervals(drawn: Tables, n_resamples: int, seed: int) -> dict[str, dict[str, tuple]]:
    """Return {statistic: {method: (low, high)}} of many tables."""
    z = check_level(LEVEL)
    linear = [replace(drawn.found[name], at=_linear(drawn.found[name])) for name in STATISTICS]
    drawn_bounds = bootstrap(linear, Settings(n_resamples, LEVEL, seed))
    found = {}
    for statistic, variance, name, bounds in zip(linear, drawn.row_variance, STATISTICS, drawn_bounds, strict=True):
        half = z * np.sqrt(variance)
        found[name] = {
            "ignoring clusters": (statistic.value - half, statistic.value + half),
            "clustered t": Statistic.interval(statistic, z),
            "percentile": (bounds[0], bounds[1]),
            "default": statistic.interval(z),
        }
    return found | {name: {"default": drawn.found[name].interval(z)} for name in LISTED}


def _linear(statistic: Statistic):
    """Return the function of weights that a statistic is where all cells have as many rows: much faster, and equal."""
    value, contrib = (np.ascontiguousarray(x.T, np.float32) for x in (statistic.value, statistic.contrib))
    return lambda weights: value[:, None] + contrib @ weights


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
# The result tables


def coverage(
    tables: int, n_resamples: int, seed: int, prompts: tuple[int, ...] = PROMPTS, say=lambda text: None
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the coverage of every method; that of what is only listed; how often each test rejects a true null."""
    found = [], [], []
    for scenario in scenarios():
        for p in prompts:
            for rows, of_cell in zip(found, cell(scenario, p, tables, n_resamples, seed), strict=True):
                rows += of_cell
            say(f"{scenario.name}, {p} prompts")
    return tuple(map(pd.DataFrame, found))


def cell(scenario: Scenario, prompts: int, tables: int, n_resamples: int, seed: int) -> tuple[list, list, list]:
    """Return the rows of one scenario at one number of prompts; its random numbers depend on nothing else."""
    rng = np.random.default_rng([seed, prompts, *scenario.name.encode()])
    drawn = draw_tables(scenario, prompts, tables, rng)
    bounds = intervals(drawn, n_resamples, int(rng.integers(2**31)))
    common = {"scenario": scenario.name, "prompts": prompts}
    made = {"tables": tables, "seed": seed}
    covered, rejected = [], []
    for name, methods in bounds.items():
        truth = scenario.truth[name]
        for method, (low, high) in methods.items():
            found = share((low <= truth + TIE) & (truth - TIE <= high))
            covered.append(common | {
                "statistic": name, "method": method, "coverage": found["share"], "mc_error": found["mc_error"], **made,
                "mean_width": float(np.nanmean(high - low)), "no_width": float((~(high - low > TIE)).mean()),
                "truth": truth,
            })  # fmt: skip
    for name in STATISTICS:
        if scenario.truth[name] == 0:
            statistic = drawn.found[name]
            contrast = statistic.value + prompts * statistic.contrib
            p = inverted_p(statistic, 0, check_level(LEVEL))
            tests = {"inverted interval": p, "sign flip": sign_flip_p(contrast, rng)}
            for test, p in tests.items():
                found = share(p <= ALPHA)
                of_test = {"test": test, "rejected": found["share"], "mc_error": found["mc_error"]}
                rejected.append(common | {"statistic": name} | of_test | made)
    held = [row | described(scenario, row["statistic"]) for row in covered if row["statistic"] in STATISTICS]
    return held, [row for row in covered if row["statistic"] in LISTED], rejected


def described(scenario: Scenario, statistic: str) -> dict:
    """Return what a row of the table says about its fleet."""
    lowest, highest = scenario.rates_used(statistic)
    return {"lowest_rate": lowest, "highest_rate": highest, "models": scenario.size, "samples": scenario.samples,
            "icc": scenario.icc, "alike": scenario.alike}  # fmt: skip


def general(tables: int, seed: int, prompts: int = 30) -> pd.DataFrame:
    """Return how often intervals hold the mean discrimination, .3, of models that differ (sd .15)."""
    rows = []
    for size in (4, 6, 10, 20):
        rng = np.random.default_rng([seed, size])
        found = pd.concat([models_in_general(differing_models(rng, size, prompts)) for _ in range(tables)])
        for method, of in found.groupby("method"):
            held = share((of["low"] <= 0.3) & (of["high"] >= 0.3))
            rows.append({
                "scenario": f"{size} models that differ", "prompts": prompts, "statistic": "discrimination",
                "method": method, "coverage": held["share"], "mc_error": held["mc_error"], "tables": tables,
                "seed": seed, "mean_width": (of["high"] - of["low"]).mean(), "no_width": float(of["low"].isna().mean()),
                "truth": 0.3,
            })  # fmt: skip
    return pd.DataFrame(rows)


def models_in_general(records: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """Estimate the mean discrimination over models, a row for models like these and one for these models.

    `two_way_t` takes models as a sample, crossed with prompts: variance (MS of prompts + MS of models - MS of the rest,
    but at least the larger of the first two) / cells with Satterthwaite's degrees of freedom (Clark 1973; Westfall,
    Kenny and Judd 2014). `clustered_t` takes them as given. Both intervals stay within -1 and 1.
    """
    [tally] = tallies(records)
    [j] = [m.of for m in binary_measures(tally, "all") if m.statistic == "discrimination"]
    cells = j.value + tally.n_prompts * j.contrib
    prompts, models = cells.shape
    mean = cells.mean()
    by_prompt = cells.mean(1, keepdims=True) - mean
    by_model = cells.mean(0) - mean
    rest = cells - mean - by_prompt - by_model
    df = np.array([prompts - 1, models - 1, (prompts - 1) * (models - 1)])
    squares = np.array([models * (by_prompt**2).sum(), prompts * (by_model**2).sum(), (rest**2).sum()]) / df
    crossed = max(squares @ [1, 1, -1], squares[0], squares[1])
    crossed_df = crossed**2 / (squares**2 / df).sum()
    rows = []
    for method, square, of_t in (("two_way_t", crossed, crossed_df), ("clustered_t", squares[0], df[0])):
        low, high = within_range(mean, square / cells.size, stdtrit(of_t, (1 + level) / 2), -1, 1)
        rows.append({"method": method, "estimate": mean, "low": float(low), "high": float(high)})
    return pd.DataFrame(rows)


def differing_models(rng: np.random.Generator, models: int, prompts: int) -> pd.DataFrame:
    """Return yes/no records of models whose recognition differs: each claims .1 of all texts, and more of its own."""
    p, e, t = (x.ravel() for x in np.indices((prompts, models, models)))
    names = np.array([f"m{k}" for k in range(models)], object)
    more = np.clip(rng.normal(0.3, 0.15, models), 0, 0.9)
    claims = rng.random(len(p)) < 0.1 + more[e] * (e == t)
    return pd.DataFrame({
        "text_id": t * prompts + p, "prompt_id": p, "true_model": names[t], "evaluator_model": names[e],
        "task_type": "binary_self", "predicted_self": claims, "predicted_model": None,
    })  # fmt: skip
