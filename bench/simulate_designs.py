"""Evaluators that know no more than planted, in designs with unequal rows, dominating prompts and rare claims.

Run it for `data/validation/designs.csv`: python bench/simulate_designs.py 1000

One evaluator claims texts of author t, its own first, with probability rates[t]. Answers go together as real ones do: a
row takes its draw from the prompt with probability `TOGETHER`, else from the author's texts on the prompt with
probability alike[t], else it has one of its own, so that the rates are exactly those above and the ranks of the scores
are blind where the rates are equal. Many tables are drawn at once; what is measured is the package's own.
"""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from selfeval.statistics.intervals import Area, Rate, Statistic, check_level  # noqa: E402

LEVEL, ALPHA, TOGETHER = 0.95, 0.05, 0.1
MORE, TOO_OFTEN = (
    4_000,
    0.065,
)  # tables of a second run, where the first finds blind evaluators out more often than this
FOLDER = Path(__file__).resolve().parent.parent / "data" / "validation"


@dataclass(frozen=True, eq=False)
class Design:
    """rows (prompts, authors): how many of an author's texts on a prompt are asked about; the first is the evaluator.

    rates, alike: per author; group: what the design is an example of.
    """

    group: str
    name: str
    rows: np.ndarray
    rates: np.ndarray
    alike: np.ndarray
    scored: bool = False

    def draws(self, tables: int, rng: np.random.Generator) -> np.ndarray:
        """Draw scores, higher for a claim: (prompts, tables, authors, rows), NaN where there is no row."""
        prompts, authors = self.rows.shape
        shape = (prompts, tables, authors, self.rows.max())
        u = np.where(rng.random(shape) < self.alike[:, None], rng.random((*shape[:3], 1)), rng.random(shape))
        u = np.where(rng.random(shape) < TOGETHER, rng.random((prompts, tables, 1, 1)), u)
        return np.where(np.arange(shape[3]) < self.rows[:, None, :, None], 1 - u, np.nan)

    def measured(self, scores: np.ndarray) -> dict[str, tuple[Statistic, float, float | None]]:
        """Return {statistic: (its values, the truth, what it is if blind: None where that is not tested)}."""
        claims = (scores > 1 - self.rates[:, None]).sum(3)
        each = Rate.of(claims, self.rows[:, None])
        h, f = each.pick((slice(None), 0)), each.pick((slice(None), slice(1, None)))
        f = f.mean(np.ones(f.value.shape))
        own, other = self.rates[0], self.rates[1:].mean()
        blind = 0.0 if own == other else None
        found = {
            "discrimination": (h - f, own - other, blind),
            "advantage": (h - f.complement(), own + other - 1, None),
        }
        if not self.scored:
            return found
        mine, others = scores[:, :, 0], scores[:, :, 1:].reshape(*scores.shape[:2], -1)
        wins = (mine[..., None] > others[:, :, None]) + 0.5 * (mine[..., None] == others[:, :, None])
        pairs = ~np.isnan(mine)[..., None] & ~np.isnan(others)[:, :, None]
        within = Area.within(Rate.of((wins * pairs).sum((2, 3)), pairs.sum((2, 3))))
        return found | {"auc_within_prompt": (within, 0.5, 0.5)}

    def areas(self, scores: np.ndarray) -> np.ndarray:
        """Return the ends of AUC over all pairs, (2, tables)."""
        prompt = np.indices(scores.shape)[0]
        ends, there = [], ~np.isnan(scores)
        for t in range(scores.shape[1]):
            own, other = ((slice(None), t, side) for side in (slice(0, 1), slice(1, None)))
            parts = [x[part][there[part]] for part in (own, other) for x in (scores, prompt)]
            ends.append(Area.of(*parts).interval(check_level(LEVEL)))
        return np.array(ends).T


def in_turn(prompts: int, authors: int, samples: int) -> np.ndarray:
    """Return the rows of a balanced design: for each own text one other, of the other authors in turn."""
    rows = np.zeros((prompts, authors), int)
    rows[:, 0] = samples
    for turn in range(prompts * samples):
        rows[turn // samples, 1 + turn % (authors - 1)] += 1
    return rows


def designs(prompts: int) -> list[Design]:
    """Return the designs that failed an outside test, with this many prompts."""

    def design(group, name, rows, rates, alike=0.0, scored=False) -> Design:
        authors = rows.shape[1]
        return Design(group, name, rows, np.broadcast_to(rates, authors), np.broadcast_to(alike, authors), scored)

    def even(authors: int, *rows: int) -> np.ndarray:
        return np.broadcast_to([rows[0], *[rows[-1]] * (authors - 1)], (prompts, authors))

    def first_two(rows: int) -> np.ndarray:
        return np.where(np.arange(prompts)[:, None] < 2, rows, 1) * np.ones((1, 3), int)

    found = []
    for authors in (3, 10):
        for samples in (2, 5):
            rows, name = in_turn(prompts, authors, samples), f"{authors} authors, {samples} samples"
            alike = {"": 0.0, ", all alike": 0.8, ", own alike": np.r_[0.9, np.zeros(authors - 1)]}
            found += [design("balanced", name + how, rows, 0.3, x, True) for how, x in alike.items()]
            found.append(design("balanced", name + ", J = .4", rows, np.r_[0.7, np.full(authors - 1, 0.3)], 0.5))
    own = np.array([1.0, 0, 0, 0])
    found += [
        design("own alike", f"{n} repeats, {s:g} alike", even(4, n), 0.3, s * own, True)
        for n in (2, 5)
        for s in (0.8, 1)
    ]
    found += [
        design("unequal rows", f"{a} own, {b} of others", even(4, a, b), 0.3, 0.8, True) for a, b in ((5, 1), (1, 5))
    ]
    found.append(design("unequal rows", "5 own alike, 1 of others", even(4, 5, 1), 0.3, own, True))
    for rows in (10, 20):
        name = f"{rows} rows in two prompts"
        found += [design("dominating", f"{name}, {s:g} alike", first_two(rows), 0.3, s, True) for s in (0, 0.5)]
        found.append(design("dominating", f"{name}, J = .4", first_two(rows), [0.7, 0.3, 0.3], 0.5))
    for rate in (0.025, 0.05):
        for rows in (1, 2):
            found.append(design("rare", f"rates of {rate:g}, {rows} rows", even(4, rows), rate))
            found.append(design("rare", f"H .1, F {rate:g}, {rows} rows", even(4, rows), [0.1, *[rate] * 3]))
    found.append(design("rare", "rates of 0.05, 5 rows alike", even(4, 5), 0.05, 0.8))
    found.append(design("ceiling", "H .98, F .02, 3 models", even(3, 1), [0.98, 0.02, 0.02]))
    for own, others in ((0.98, 0.02), (0.99, 0.01)):
        name = f"H {own:.2f}, F {others:.2f}, 2 models".replace("0.", ".")
        found.append(design("ceiling", name, even(2, 1), [own, others]))
    return found


def share(hits: np.ndarray) -> tuple[float, float]:
    """Return a share and its Monte Carlo error, with two more of each outcome so that a share of 1 is not certain."""
    pulled = (hits.sum() + 2) / (len(hits) + 4)
    return float(hits.mean()), float(np.sqrt(pulled * (1 - pulled) / len(hits)))


def measured(design: Design, tables: int, seed: int) -> list[dict]:
    """Return a row per statistic: how often the default interval holds the truth, and p <= .05 of the blind.

    p inverts the interval, so it is at most .05 where the interval leaves out what is tested.
    """
    rng = np.random.default_rng([seed, len(design.rows), zlib.crc32(f"{design.group} {design.name}".encode())])
    ends, step = {}, max(1, 2_000_000 // (design.rows.size * design.rows.max()))
    for start in range(0, tables, step):
        scores = design.draws(min(step, tables - start), rng)
        for name, (of, truth, blind) in design.measured(scores).items():
            ends.setdefault((name, truth, blind), []).append(of.interval(check_level(LEVEL)))
        if design.scored:
            ends.setdefault(("auc", 0.5, 0.5), []).append(design.areas(scores))
    rows = []
    for (name, truth, blind), parts in ends.items():
        low, high = np.concatenate(parts, axis=1)
        covered, error = share((low <= truth + 1e-9) & (truth - 1e-9 <= high))
        found = share((low > blind) | (high < blind)) if blind is not None else (np.nan, np.nan)
        rows.append({
            "group": design.group, "scenario": design.name, "prompts": len(design.rows), "statistic": name,
            "truth": round(truth, 6), "coverage": covered, "mc_error": error, "rejected": found[0],
            "rejected_error": found[1], "mean_width": float(np.nanmean(high - low)), "tables": tables, "seed": seed,
            "lowest_rate": design.rates.min(), "highest_rate": design.rates.max(),
        })  # fmt: skip
    return rows


def simulate(tables: int, seed: int = 0, prompts: tuple[int, ...] = (20, 50), say=print) -> pd.DataFrame:
    """Return every design's rows; where blind evaluators are found out in more than .065 of tables, of 4,000 more."""
    rows = []
    for number in prompts:
        for design in designs(number):
            found = measured(design, tables, seed)
            if any(row["rejected"] > TOO_OFTEN for row in found):
                found = measured(design, MORE, seed + 1)
            rows += found
            say(
                f"{number} prompts, {design.group}: {design.name}", *(f"{r['coverage']:.3f}" for r in found), flush=True
            )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    number = int(sys.argv[1])
    simulate(number).round(6).to_csv(FOLDER / "designs.csv", index=False)
