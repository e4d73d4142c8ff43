"""The tasks in which the evaluator names an author (exact_model, lineup): statistics and their resamples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from selfeval.stats.bootstrap import jackknife_contrib
from selfeval.stats.counts import Tally
from selfeval.stats.intervals import Difference, Rate, ratio
from selfeval.stats.measures import Cells, Measure, measure, resampled_rate, sensitivity, z_scores
from selfeval.stats.testing import permutation_p

EXACT_WORK = 1e11  # multiply-adds up to which an unbalanced design is resampled cell by cell, beyond: to first order


@dataclass(eq=False)
class Naming(Cells):
    """Counts of a naming task: `hit` by author, `named` by the name given (any author's text), and pair counts.

    claim: texts by each author on which the evaluator named itself. pairs(e): texts by author t on which e named m,
    shape (prompts, T, T); needed when the design is not crossed.
    """

    hit: np.ndarray
    named: np.ndarray
    claim: np.ndarray
    pairs: Callable[[int], np.ndarray]
    names: np.ndarray

    def __post_init__(self):
        super().__post_init__()
        self.right = Rate.of(self.hit, self.n)
        self.false = self._false_rate()

    @classmethod
    def of(cls, tally: Tally, policy: str) -> Naming:
        """Count the rows of a tally under a policy."""
        keep = None if policy == "all" else tally.answer >= 0
        inside = (tally.answer >= 0) & (tally.answer < len(tally.authors))
        name = np.where(inside, tally.answer, 0)
        size = len(tally.authors)

        def pairs(e):
            rows = np.flatnonzero(inside & (tally.evaluator == e))
            cell = (tally.prompt[rows] * size + tally.author[rows]) * size + name[rows]
            return np.bincount(cell, minlength=tally.n_prompts * size**2).reshape(-1, size, size)

        hit, named = tally.count(tally.answer == tally.author), tally.count(inside, author=name)
        claim = tally.count(inside & (tally.answer == tally.own[tally.evaluator]))
        return cls(tally.count(keep), tally.own, hit, named, claim, pairs, tally.evaluators)

    def known(self) -> dict[str, np.ndarray]:
        """Return where (E, T) recognition, J, and J against third authors can be computed."""
        others = self.valid & ~self.is_own
        j = self.valid & ~np.isnan(self.false.value)
        return {"right": self.valid, "j": j, "third": j & (others.sum(1, keepdims=True) > others)}

    def _false_rate(self) -> Rate:
        """Return per (e, m) the mean over t other than m of the rate at which e names m on t's texts."""
        size = self.shape[2]
        if self.crossed:
            return Rate.of(self.named - self.hit, (size - 1) * self.n)
        total = np.where(self.valid, self.total, 1)
        others = np.maximum(self.valid.sum(1, keepdims=True) - self.valid, 0)
        value, contrib = np.empty(self.total.shape), np.empty(self.n.shape)
        for e in range(len(self.own)):
            count = self.pairs(e) * ~np.eye(size, dtype=bool)
            share = 1 / total[e]
            rate = count.sum(0) * share[:, None]
            value[e] = ratio(rate.sum(0), others[e])
            contrib[:, e] = np.einsum("ptm,t->pm", count, share) - (self.n[:, e] * share) @ rate
        trials = self.total.sum(1, keepdims=True) - self.total
        clusters = ((self.n.sum(2, keepdims=True) - self.n) > 0).sum(0)
        return Rate(value, contrib / np.maximum(others, 1), trials, clusters)


def naming_measures(cells: Naming) -> tuple[list[Measure], list[Measure]]:
    """Return the measures per evaluator and those per author."""
    own, others, peers = cells.of_own, cells.over_others, cells.over_peers
    h, f, x = own(cells.right), own(cells.false), others(cells.right)
    j_each = Difference(cells.right, cells.false)
    j = Difference(h, f)
    best, who = cells.best_peer(cells.right)
    n_own, n_all = h.trials, cells.total.sum(1)
    n_peers = peers(cells.right).trials
    claims = cells.claim.sum(2)
    hits, n_each = (x[:, cells.e, cells.at] * cells.wrote for x in (cells.hit, cells.n))
    p = permutation_p(cells.claim, cells.n, cells.own)
    flat = (claims.sum(0) == 0) | (claims.sum(0) == n_all)
    peer_notes = [(who == k, f"peer={cells.names[k]}") for k in np.unique(who[who >= 0])]
    found = [
        measure("self_accuracy", h, n_own),
        measure("cross_accuracy", x, n_all - n_own),
        measure("overall_accuracy", Rate.of(cells.hit.sum(2), cells.n.sum(2)), n_all),
        measure("advantage", Difference(h, x), n_all),
        measure("false_claim_rate", f, n_all - n_own),
        measure("discrimination", j, n_all, p=p, notes=[(flat, "constant_answer")]),
        measure("corrected_advantage", Difference(j, Difference(x, others(cells.false))), n_all, invert=True),
        measure("peer_baseline", Difference(h, peers(cells.right)), n_own + n_peers),
        measure("best_peer", Difference(h, best), n_own + best.trials, notes=peer_notes),
        measure("peer_corrected", Difference(j, Difference(peers(cells.right), peers(cells.false))),
                np.broadcast_to(n_all.sum(), n_all.shape), invert=True),
        interaction(cells, j_each),
        *sensitivity(hits, n_each, claims, cells.n.sum(2)),
        kappa(cells),
    ]  # fmt: skip
    per_author = [
        measure("author_accuracy", cells.right, cells.total),
        measure("discrimination", j_each, np.broadcast_to(n_all[:, None], cells.total.shape)),
    ]
    return found, per_author


def interaction(cells: Naming, j_each: Difference) -> Measure:
    """Return the interaction: e's corrected advantage minus its peers' for e over third authors."""
    operator = cells.third_parties()
    value = np.einsum("etm,em->et", operator, np.nan_to_num(j_each.value))
    value = np.where(cells.known()["third"], value, np.nan)
    by_evaluator = np.ascontiguousarray(j_each.contrib.transpose(1, 2, 0))
    contrib = np.matmul(operator, by_evaluator).transpose(2, 0, 1)
    each = Rate(value, contrib, cells.total, j_each.clusters)
    mine, theirs = cells.of_own(each), cells.over_peers(each)
    n = np.broadcast_to(cells.total.sum(), mine.value.shape)
    return Measure("interaction", mine.value - theirs.value, n, mine.clusters, mine.contrib - theirs.contrib)


def kappa_of(hit, named, n):
    """Return Cohen's kappa from counts by author on the last axis (multi-class agreement with the truth)."""
    rows = n.sum(-1)
    observed, expected = ratio(hit.sum(-1), rows), ratio((n * named).sum(-1), rows**2)
    return ratio(observed - expected, 1 - expected)


def kappa(cells: Naming) -> Measure:
    """Return kappa per evaluator."""
    totals = [x.sum(0) for x in (cells.hit, cells.named, cells.n)]
    leave_out = kappa_of(*(t - x for t, x in zip(totals, (cells.hit, cells.named, cells.n), strict=True)))
    contrib = jackknife_contrib(np.nan_to_num(leave_out))
    return Measure("kappa", kappa_of(*totals), cells.total.sum(1), cells.present.any(2).sum(0), contrib)


def resample_naming(cells: Naming, weights: np.ndarray, found: dict[str, Measure], per_author_done: Callable) -> None:
    """Fill the measures' samples; per_author_done(e, {name: samples (T, B)}) takes those of one evaluator at a time.

    weights: (prompts, B). One evaluator at a time bounds memory to a few arrays (authors, B), in single precision,
    which holds counts exactly and sorts five times faster. A resample that misses a cell keeps its full-sample rate.
    """
    n_eval, n_auth, size = *cells.shape[1:], weights.shape[1]
    put = {name: np.full((n_eval, size), np.nan, np.float32) for name in found}
    own_third, best_rate = (np.full((n_eval, size), np.nan, np.float32) for _ in range(2))
    best = cells.best_peer(cells.right)[1]
    known = cells.known()
    operator = cells.third_parties().astype(np.float32)
    sums = {name: np.zeros((n_auth, size), np.float32) for name in known}
    for e in range(n_eval):
        n, hit, named = _weighted(cells, e, weights)
        right = resampled_rate(hit, n, cells.right.value[e][:, None])
        j = right - _false_resampled(cells, e, weights, n, hit, named)
        third = operator[e] @ _known(j, known["j"][e])
        for name, value in (("right", right), ("j", j), ("third", third)):
            sums[name] += _known(value, known[name][e])
        best_rate[best == e] = right[cells.at[best == e]]
        rows, others = n.sum(0), cells.valid[e] & ~cells.is_own[e]
        put["overall_accuracy"][e] = ratio(hit.sum(0), rows)
        put["kappa"][e] = kappa_of(hit.T, named.T, n.T)
        if others.any():
            put["cross_accuracy"][e] = right[others].sum(0) / others.sum()
        if cells.wrote[e]:
            o = cells.own[e]
            put["self_accuracy"][e], put["discrimination"][e], own_third[e] = right[o], j[o], third[o]
            put["d_prime"][e], put["criterion"][e] = z_scores(hit[o], n[o], named[o] - hit[o], rows - n[o])
        per_author_done(e, {"author_accuracy": right, "discrimination": j})
    _resample_peers(cells, put, known, sums, own_third, best_rate)
    for name, samples in put.items():
        found[name].samples = samples


def _resample_peers(cells: Naming, put: dict, known: dict, sums: dict, own_third, best_rate) -> None:
    """Fill the differences, and what needs every evaluator's resamples: S, D and the interaction."""
    put["false_claim_rate"][:] = put["self_accuracy"] - put["discrimination"]
    put["advantage"][:] = put["self_accuracy"] - put["cross_accuracy"]
    put["corrected_advantage"][:] = own_third
    put["best_peer"][:] = put["self_accuracy"] - best_rate
    for name, mine, out in (
        ("right", put["self_accuracy"], "peer_baseline"),
        ("j", put["discrimination"], "peer_corrected"),
        ("third", own_third, "interaction"),
    ):
        peers = known[name].sum(0)[cells.at] - known[name][cells.e, cells.at]
        put[out][:] = mine - ratio(sums[name][cells.at] - mine, peers[:, None])


def _weighted(cells: Naming, e: int, weights):
    """Return the resampled counts n, hit, named of one evaluator, each (authors, B)."""
    n = cells.n[:, e, :1] if cells.crossed else cells.n[:, e]
    stack = np.concatenate([n, cells.hit[:, e], cells.named[:, e]], axis=1).astype(weights.dtype)
    product = stack.T @ weights
    width, size = n.shape[1], cells.shape[2]
    n, hit, named = np.split(product, [width, width + size])
    return np.broadcast_to(n, hit.shape), hit, named


def _known(value, valid):
    """Return the values with 0 where there is no cell."""
    return value if valid.all() else np.where(valid[:, None], value, 0)


def _false_resampled(cells: Naming, e: int, weights, n, hit, named):
    """Return the resampled false-name rates of one evaluator, (authors, B).

    From two counts in a crossed design; cell by cell otherwise, or to first order where that takes too long.
    """
    full, size = cells.false.value[e][:, None], len(n)
    if cells.crossed:
        return resampled_rate(named - hit, (size - 1) * n, full)
    if float(len(cells.own)) * size**2 * weights.size > EXACT_WORK:
        return (full + cells.false.contrib[:, e].astype(np.float32).T @ weights).astype(np.float32)
    count, total, out = cells.pairs(e), cells.total[e], np.zeros_like(hit)
    seen = np.flatnonzero(cells.valid[e])
    for block in np.array_split(seen, -(-len(seen) * size // 200) or 1):  # about 200 columns a product
        columns = count[:, block].reshape(len(count), -1).astype(weights.dtype)
        for t, hits in zip(block, (columns.T @ weights).reshape(len(block), *n.shape), strict=True):
            rate = resampled_rate(hits, n[t], (count[:, t].sum(0) / total[t])[:, None])
            rate[t] = 0
            out += rate
    others = cells.valid[e].sum() - cells.valid[e]
    return np.where(others[:, None] > 0, out / np.maximum(others, 1)[:, None], full).astype(np.float32)
