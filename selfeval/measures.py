"""The statistics of recognition on counts: values, prompt contributions and bootstrap resamples.

Counts have shape (prompts, evaluators, authors); rates (evaluators, authors). Each function returns `Measure`s:
one statistic for all evaluators (or evaluator-author pairs) of a task at once. Formulas: see `selfeval.stats`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from selfeval.counts import Tally
from selfeval.intervals import Difference, Estimate, Rate, jackknife_contrib, permutation_p, ratio, stratified_size

EXACT_WORK = 1e11  # multiply-adds up to which an unbalanced design is resampled cell by cell, beyond: linearised


@dataclass(eq=False)
class Measure:
    """One statistic: `value` (S,), or (E, T) when it is per author; contrib (prompts, S) or (prompts, E, T).

    safe: the Rate or Difference whose interval is the default, mapped by `transform`; None if there is none.
    rows: rows used. samples: (S, resamples) and boot (what `bootstrap_intervals` returns) are filled by the bootstrap.
    p: the test of no recognition, if it has one; invert: it is the inversion of the default interval.
    second: not the statistic's default policy; keep: which values are worth a row, None for all.
    """

    name: str
    value: np.ndarray
    rows: np.ndarray
    clusters: np.ndarray
    contrib: np.ndarray | None = None
    safe: Rate | Difference | None = None
    transform: Callable | None = None
    samples: np.ndarray | None = None
    p: np.ndarray | None = None
    invert: bool = False
    notes: list[tuple[np.ndarray, str]] = field(default_factory=list)
    boot: list[np.ndarray] | None = None
    estimates: list[Estimate] = field(default_factory=list)
    second: bool = False
    keep: np.ndarray | None = None

    @property
    def per_author(self) -> bool:
        return np.ndim(self.value) == 2


def measure(name: str, safe: Rate | Difference, rows, transform: Callable | None = None, **more) -> Measure:
    """Build the measure of a Rate or Difference."""
    value = transform(safe.value) if transform else safe.value
    return Measure(name, value, rows, safe.clusters, safe.contrib, safe, transform, **more)


# ---------------------------------------------------------------------------------------------------------------
# Means of rates over authors and over peers


@dataclass(eq=False)
class Cells:
    """Counts of one task: n rows, `present` where there are any, own author index of each evaluator (-1: none)."""

    n: np.ndarray
    own: np.ndarray

    def __post_init__(self):
        self.n = np.asarray(self.n, float)
        self.present = self.n > 0
        self.total = self.n.sum(0)
        self.valid = self.total > 0
        self.wrote = self.own >= 0
        self.at = np.maximum(self.own, 0)
        self.e = np.arange(len(self.own))
        self.is_own = (np.arange(self.n.shape[2]) == self.own[:, None]) & self.wrote[:, None]
        self.crossed = bool((self.n == self.n[:, :, :1]).all())

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n.shape

    def of_own(self, rate: Rate) -> Rate:
        """Return each evaluator's rate for its own name; NaN where it wrote nothing."""
        pick = lambda x: x[..., self.e, self.at]  # noqa: E731
        value = np.where(self.wrote, pick(rate.value), np.nan)
        return Rate(value, pick(rate.contrib) * self.wrote, pick(rate.trials), pick(rate.clusters))

    def over_others(self, rate: Rate) -> Rate:
        """Return each evaluator's mean over the authors other than itself."""
        use = self.valid & ~self.is_own & ~np.isnan(rate.value)
        weight = use / np.maximum(use.sum(1, keepdims=True), 1)
        value = np.where(use.any(1), (weight * np.nan_to_num(rate.value)).sum(1), np.nan)
        contrib = np.einsum("pet,et->pe", rate.contrib, weight)
        most = stratified_size(rate.value, rate.trials, weight, 1)
        return Rate(value, contrib, (use * rate.trials).sum(1), (self.present & use).any(2).sum(0), most)

    def over_peers(self, rate: Rate) -> Rate:
        """Return for each evaluator e the mean over the other evaluators j of j's rate for e's name."""
        value, trials = rate.value[:, self.at], rate.trials[:, self.at]
        use = (self.e[:, None] != self.e) & self.wrote & ~np.isnan(value)
        weight = use / np.maximum(use.sum(0), 1)
        mean = np.where(use.any(0), (weight * np.nan_to_num(value)).sum(0), np.nan)
        contrib = np.einsum("pje,je->pe", rate.contrib[:, :, self.at], weight)
        clusters = np.max(np.where(use, rate.clusters[:, self.at], 0), axis=0, initial=0)
        return Rate(mean, contrib, (use * trials).sum(0), clusters, stratified_size(value, trials, weight, 0))

    def best_peer(self, rate: Rate) -> tuple[Rate, np.ndarray]:
        """Return for each evaluator the highest rate of a peer for its name, and which peer (-1: none)."""
        value = rate.value[:, self.at].copy()
        value[(self.e[:, None] == self.e) | ~self.wrote | np.isnan(value)] = -np.inf
        best = value.argmax(0)
        some = np.isfinite(value.max(0))
        pick = lambda x: x[..., best, self.at]  # noqa: E731
        value = np.where(some, pick(rate.value), np.nan)
        return Rate(value, pick(rate.contrib), pick(rate.trials), pick(rate.clusters)), np.where(some, best, -1)

    def third_parties(self) -> np.ndarray:
        """Return the operator (E, T, T) from j's rates to: rate for t minus the mean over authors not t and not j."""
        others = self.valid & ~self.is_own
        use = others[:, None, :] & ~np.eye(self.shape[2], dtype=bool)
        return np.eye(self.shape[2]) - use / np.maximum(use.sum(2, keepdims=True), 1)


# ---------------------------------------------------------------------------------------------------------------
# Naming tasks: exact_model, lineup


@dataclass(eq=False)
class Naming(Cells):
    """Counts of a naming task: `hit` by author, `named` by the name given (any author's text), and pair counts.

    pairs(e): texts by author t on which e named m, shape (prompts, T, T); needed when the design is not crossed.
    """

    hit: np.ndarray
    named: np.ndarray
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
        return cls(tally.count(keep), tally.own, hit, named, pairs, tally.evaluators)

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
    claims = cells.named[:, cells.e, cells.at] * cells.wrote
    hits, n_each = (x[:, cells.e, cells.at] * cells.wrote for x in (cells.hit, cells.n))
    p = permutation_p(hits, n_each, claims, cells.n.sum(2))
    flat = (claims.sum(0) == 0) | (claims.sum(0) == n_all)
    peer_notes = [(who == k, f"peer={cells.names[k]}") for k in np.unique(who[who >= 0])]
    found = [
        measure("self_accuracy", h, n_own),
        measure("cross_accuracy", x, n_all - n_own),
        measure("overall_accuracy", Rate.of(cells.hit.sum(2), cells.n.sum(2)), n_all),
        measure("advantage", Difference(h, x), n_all),
        measure("false_claim_rate", f, n_all - n_own),
        measure("discrimination", j, n_all, p=p, notes=[(flat, "not_estimable")]),
        measure("corrected_advantage", Difference(j, Difference(x, others(cells.false))), n_all, invert=True),
        measure("peer_baseline", Difference(h, peers(cells.right)), n_own + n_peers),
        measure("best_peer", Difference(h, best), n_own + best.trials, notes=peer_notes),
        measure("peer_corrected", Difference(j, Difference(peers(cells.right), peers(cells.false))),
                np.broadcast_to(n_all.sum(), n_all.shape), invert=True),
        interaction(cells, j_each),
        *sensitivity(cells, claims),
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


def z_scores(h, n1, f, n0):
    """Return d' and criterion with the correction in proportion to prevalence: exactly 0 at constant answers.

    The usual +0.5 / +1 (Hautus 1995) gives an evaluator that never claims a d' above 0 when n1 and n0 differ.
    """
    total = np.maximum(n0 + n1, 1)
    a, b = n1 / total, n0 / total
    with np.errstate(divide="ignore", invalid="ignore"):
        zh, zf = ndtri(np.asarray((h + a) / (n1 + 2 * a))), ndtri(np.asarray((f + b) / (n0 + 2 * b)))
    return zh - zf, -(zh + zf) / 2


def sensitivity(cells: Cells, claims) -> list[Measure]:
    """Return d' and criterion from claims of authorship, shape (prompts, E), on all texts."""
    n = cells.n.sum(2)
    n1 = cells.n[:, cells.e, cells.at] * cells.wrote
    hits = (cells.claim if isinstance(cells, Binary) else cells.hit)[:, cells.e, cells.at] * cells.wrote
    parts = [hits, n1, claims - hits, n - n1]
    total = [x.sum(0) for x in parts]
    values = z_scores(*total)
    leave_out = z_scores(*(t - x for t, x in zip(total, parts, strict=True)))
    h, _, f, _ = total
    notes = [((h + f == 0) | (h + f == n.sum(0)), "not_estimable"), ((h < 10) | (f < 10), "few_expected")]
    clusters = (n > 0).sum(0)
    return [
        Measure(name, value, n.sum(0), clusters, jackknife_contrib(np.nan_to_num(out)), notes=notes)
        for name, value, out in zip(("d_prime", "criterion"), values, leave_out, strict=True)
    ]


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
        right = _rate(hit, n, cells.right.value[e][:, None])
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


def _rate(hits, n, full):
    """Divide resampled counts; a cell without rows keeps its full-sample rate."""
    if n.all():
        return hits / n
    return np.where(n > 0, hits / np.where(n > 0, n, 1), full).astype(hits.dtype)


def _false_resampled(cells: Naming, e: int, weights, n, hit, named):
    """Return the resampled false-name rates of one evaluator, (authors, B).

    From two counts in a crossed design; cell by cell otherwise, or to first order where that takes too long.
    """
    full, size = cells.false.value[e][:, None], len(n)
    if cells.crossed:
        return _rate(named - hit, (size - 1) * n, full)
    if float(len(cells.own)) * size**2 * weights.size > EXACT_WORK:
        return (full + cells.false.contrib[:, e].astype(np.float32).T @ weights).astype(np.float32)
    count, total, out = cells.pairs(e), cells.total[e], np.zeros_like(hit)
    seen = np.flatnonzero(cells.valid[e])
    for block in np.array_split(seen, -(-len(seen) * size // 200) or 1):  # about 200 columns a product
        columns = count[:, block].reshape(len(count), -1).astype(weights.dtype)
        for t, hits in zip(block, (columns.T @ weights).reshape(len(block), *n.shape), strict=True):
            rate = _rate(hits, n[t], (count[:, t].sum(0) / total[t])[:, None])
            rate[t] = 0
            out += rate
    others = cells.valid[e].sum() - cells.valid[e]
    return np.where(others[:, None] > 0, out / np.maximum(others, 1)[:, None], full).astype(np.float32)


# ---------------------------------------------------------------------------------------------------------------
# The binary task, pairs, scores


@dataclass(eq=False)
class Binary(Cells):
    """Counts of the binary task: `claim` has the texts that the evaluator calls its own."""

    claim: np.ndarray

    @classmethod
    def of(cls, tally: Tally, policy: str) -> Binary:
        """Count the rows of a tally under a policy; under `all`, no answer is no claim."""
        keep = None if policy == "all" else tally.answer >= 0
        return cls(tally.count(keep), tally.own, tally.count(tally.answer == 1))

    def table(self) -> tuple[np.ndarray, ...]:
        """Return TP, FP, TN, FN per prompt and evaluator."""
        own = self.is_own
        tp, n1 = (self.claim * own).sum(2), (self.n * own).sum(2)
        fp, n0 = self.claim.sum(2) - tp, self.n.sum(2) - n1
        return tp, fp, n0 - fp, n1 - tp


def mcc_of(tp, fp, tn, fn):
    """Return Matthews' correlation; NaN where a margin is empty."""
    return ratio(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def binary_measures(cells: Binary) -> tuple[list[Measure], list[Measure]]:
    """Return the measures per evaluator and those per author."""
    claims = Rate.of(cells.claim, cells.n)
    h, f = cells.of_own(claims), cells.over_others(claims)
    x, j = f.complement(), Difference(h, f)
    table = cells.table()
    tp, fp, tn, fn = table
    n, n1 = cells.n.sum(2), tp + fn
    total, n_own = n.sum(0), n1.sum(0)
    flat = (tp + fp).sum(0) % np.maximum(total, 1) == 0
    p = permutation_p(tp, n1, tp + fp, n)
    clusters = (n > 0).sum(0)
    leave_out = mcc_of(*(part.sum(0) - part for part in table))
    own_share = ratio(n_own, total)
    found = [
        measure("self_accuracy", h, n_own),
        measure("cross_accuracy", x, total - n_own),
        measure("advantage", Difference(h, x), total),
        measure("false_claim_rate", f, total - n_own),
        measure("discrimination", j, total, p=p, notes=[(flat, "not_estimable")]),
        *sensitivity(cells, tp + fp),
        *(Measure(k, v.sum(0), total, clusters) for k, v in zip(("tp", "fp", "tn", "fn"), table, strict=True)),
        measure("accuracy", Rate.of(tp + tn, n), total),
        Measure("always_no_accuracy", 1 - own_share, total, clusters),
        measure("balanced_accuracy", j, total, transform=lambda v: (1 + v) / 2),
        measure("precision", Rate.of(tp, tp + fp), (tp + fp).sum(0)),
        measure("recall", Rate.of(tp, n1), n_own),
        measure("f1", Rate.of(tp, tp + fp + fn), (tp + fp + fn).sum(0), transform=lambda v: 2 * v / (1 + v)),
        Measure("always_yes_f1", ratio(2 * own_share, 1 + own_share), total, clusters),
        Measure("mcc", mcc_of(*(part.sum(0) for part in table)), total, clusters,
                jackknife_contrib(np.nan_to_num(leave_out))),
    ]  # fmt: skip
    sign = np.where(cells.is_own, 1, -1)
    value = np.where(cells.is_own, claims.value, 1 - claims.value)
    right = Rate(value, sign * claims.contrib, claims.trials, claims.clusters)
    return found, [measure("author_accuracy", right, cells.total)]


def resample_binary(cells: Binary, weights: np.ndarray, found: dict[str, Measure], per_author_done: Callable) -> None:
    """Fill the measures' samples (weights: (prompts, B)); as `resample_naming`."""
    size, rate = weights.shape[1], ratio(cells.claim.sum(0), cells.total)
    resampled = [name for name, m in found.items() if m.contrib is not None]
    put = {name: np.full((len(cells.own), size), np.nan, np.float32) for name in resampled}
    for e in range(len(cells.own)):
        stack = np.concatenate([cells.n[:, e], cells.claim[:, e]], axis=1).astype(weights.dtype)
        n, claim = np.split(stack.T @ weights, 2)
        claims = _rate(claim, n, rate[e][:, None])
        own, others = cells.is_own[e], cells.valid[e] & ~cells.is_own[e]
        h = claims[own][0] if own.any() else np.full(size, np.nan)
        f = claims[others].mean(0) if others.any() else np.full(size, np.nan)
        tp, n1 = claim[own].sum(0), n[own].sum(0)
        fp, n0 = claim[~own].sum(0), n[~own].sum(0)
        values = {
            "self_accuracy": h, "cross_accuracy": 1 - f, "advantage": h - (1 - f), "false_claim_rate": f,
            "discrimination": h - f, "balanced_accuracy": (1 + h - f) / 2, "accuracy": ratio(tp + n0 - fp, n1 + n0),
            "precision": ratio(tp, tp + fp), "recall": ratio(tp, n1), "f1": ratio(2 * tp, tp + fp + n1),
            "mcc": mcc_of(tp, fp, n0 - fp, n1 - tp),
        }  # fmt: skip
        values["d_prime"], values["criterion"] = z_scores(tp, n1, fp, n0)
        for name, value in values.items():
            put[name][e] = value
        per_author_done(e, {"author_accuracy": np.where(own[:, None], claims, 1 - claims)})
    for name, samples in put.items():
        found[name].samples = samples


def pairwise_measures(tally: Tally, policy: str) -> tuple[list[Measure], list[Measure]]:
    """Return P(chooses its own text) with both orders averaged, per rival too, and the position bias.

    `own` in a pair's records is the text asked about; authors are the rivals. Position bias is P(first) - 1/2 among
    answers, both orders averaged, so that recognition cancels out.
    """
    keep = np.ones(len(tally.answer), bool) if policy == "all" else tally.answer >= 0
    orders = [o for o in (0, 1, 2) if (tally.position == o).any()]
    each = [(tally.count(keep & (tally.position == o)), tally.count((tally.answer == 1) & (tally.position == o)))
            for o in orders]  # fmt: skip
    overall = _mean_rate([Rate.of(chosen.sum(2), n.sum(2)) for n, chosen in each])
    rival = _mean_rate([Rate.of(chosen, n) for n, chosen in each])
    found = [measure("self_accuracy", overall, overall.trials)]
    answered = tally.answer >= 0
    if policy != "all" or answered.all():
        first = (tally.answer == 1) == (tally.position == 1)
        known = [answered & (tally.position == o) for o in (1, 2)]
        sides = [Rate.of(tally.count(k & first).sum(2), tally.count(k).sum(2)) for k in known]
        bias = _mean_rate(sides)
        bias.value = np.where(np.isnan([s.value for s in sides]).any(0), np.nan, bias.value)  # needs both orders
        found.append(measure("position_bias", bias, bias.trials, transform=lambda v: v - 0.5))
    return found, [measure("author_accuracy", rival, rival.trials)]


def _mean_rate(rates: list[Rate]) -> Rate:
    """Return the mean of rates over the orders that occur."""
    known = np.array([~np.isnan(r.value) for r in rates])
    weight = known / np.maximum(known.sum(0), 1)
    value = sum(w * np.nan_to_num(r.value) for w, r in zip(weight, rates, strict=True))
    contrib = sum(w * r.contrib for w, r in zip(weight, rates, strict=True))
    clusters = np.max([r.clusters for r in rates], axis=0)
    return Rate(np.where(known.any(0), value, np.nan), contrib, sum(r.trials for r in rates), clusters)


def no_answer_measure(tally: Tally) -> Measure:
    """Return the share of rows without an answer."""
    rate = Rate.of(tally.count(tally.answer < 0).sum(2), tally.count().sum(2))
    return measure("no_answer_rate", rate, rate.trials)


def auc_measures(tally: Tally) -> list[Measure]:
    """Return the area under the ROC of the score for one's own texts, over all pairs and over pairs within a prompt.

    Contributions: placements summed by prompt (DeLong 1988; Obuchowski 1997 for clusters). auc_within_prompt is the
    share of (own, other) pairs of one prompt that the score orders rightly: it is free of differences between prompts.
    """
    size = (tally.n_prompts, len(tally.evaluators))
    value, within = np.full(size[1], np.nan), np.full(size[1], np.nan)
    contrib, contrib_within = np.zeros(size), np.zeros(size)
    rows, clusters = np.zeros(size[1], int), np.zeros((2, size[1]), int)
    for e in range(size[1]):
        keep = np.flatnonzero((tally.evaluator == e) & ~np.isnan(tally.score))
        score, prompt, own = tally.score[keep], tally.prompt[keep], tally.author[keep] == tally.own[e]
        n1, n0 = own.sum(), (~own).sum()
        rows[e], clusters[0, e] = len(keep), len(np.unique(prompt))
        if not n1 or not n0:
            continue
        place = np.empty(len(keep))
        ranks = rankdata(score)
        place[own] = (ranks[own] - rankdata(score[own])) / n0
        place[~own] = 1 - (ranks[~own] - rankdata(score[~own])) / n1
        value[e] = place[own].mean()
        weight = np.where(own, 1 / n1, 1 / n0) * (place - value[e])
        contrib[:, e] = np.bincount(prompt, weight, minlength=size[0])
        pairs = np.bincount(prompt[own], minlength=size[0]) * np.bincount(prompt[~own], minlength=size[0])
        wins = _wins_within(score, prompt, own, size[0])
        rate = Rate.of(wins, pairs)
        within[e], contrib_within[:, e], clusters[1, e] = rate.value, rate.contrib, rate.clusters
    return [
        Measure("auc", value, rows, clusters[0], contrib),
        Measure("auc_within_prompt", within, rows, clusters[1], contrib_within),
    ]


def _wins_within(score, prompt, own, n_prompts: int) -> np.ndarray:
    """Count, per prompt, pairs in which the own text scores higher, ties half."""
    order = np.lexsort((score, prompt))
    prompt, own = prompt[order], own[order]
    start = np.r_[True, (np.diff(prompt) != 0) | (np.diff(score[order]) != 0)]
    tie = np.cumsum(start) - 1
    others = np.cumsum(~own)
    first = np.flatnonzero(start)
    before = others[first] - ~own[first]
    until = others[np.r_[first[1:] - 1, len(own) - 1]]
    offset = before[np.searchsorted(prompt[first], np.arange(n_prompts))[prompt]]
    return np.bincount(prompt, own * ((before + until)[tie] / 2 - offset), minlength=n_prompts)
