"""Scorers of replies held against each other, and a rate corrected for the errors of its scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.bootstrap import jackknife_contrib
from selfeval.stats.counts import truth_codes
from selfeval.stats.intervals import Rate, ratio
from selfeval.stats.measures import Measure
from selfeval.stats.naming import kappa_of
from selfeval.stats.templates import COLUMNS, LABELS, Batch, rate_measure, settings, table_of

AGREEMENT_COLUMNS = tuple(name for name in COLUMNS[len(LABELS) + 1 :] if name not in ("p", "p_holm"))


class Agreement(NamedTuple):
    """Hold the estimates (`kappa`, `agreement`), the table of both scorers' verdicts, and each one's shares."""

    table: pd.DataFrame
    confusion: pd.DataFrame
    prevalence: pd.DataFrame


def cohen_kappa(
    a: Sequence, b: Sequence, cluster: Sequence, *, n_resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> Agreement:
    """Compare two scorers' verdicts on the same replies: Cohen's kappa (Cohen 1960) and the share of agreement.

    a, b: one verdict per reply, of any kind; a reply that one of them left null is left out and counted in the note.
    cluster: the template of each reply. Kappa depends on prevalence, so read it beside both scorers' shares.

    The default interval of kappa is Wilson's for the agreement, at the effective sample size that its variance over
    templates (leave one out) gives, mapped by (x - pe) / (1 - pe) with the expected agreement pe; so it also holds
    where the scorers always agree. `percentile` and `bca` resample templates; `clustered_t` is the jackknife's.
    """
    frame = pd.DataFrame({name: pd.Series(list(x), dtype=object) for name, x in (("a", a), ("b", b), ("c", cluster))})
    if not len(a) == len(b) == len(cluster):
        raise InputError(f"Verdicts and clusters must be of one length, got {len(a)}, {len(b)} and {len(cluster)}.")
    scored = frame.dropna(subset=["a", "b"])
    if scored.empty:
        raise InputError("There is no reply that both scorers judged.")
    using = settings(n_resamples, level, seed)
    found = pd.unique(scored[["a", "b"]].to_numpy().ravel())
    order = sorted(found, key=str)
    one, other = (pd.Index(order, dtype=object).get_indexer(scored[name]) for name in ("a", "b"))
    codes, _ = pd.factorize(scored["c"], use_na_sentinel=False)
    counts = np.zeros((codes.max() + 1, len(order), len(order)))
    np.add.at(counts, (codes, one, other), 1)
    left_out = len(frame) - len(scored)
    table = _kappa_rows(counts, using, f"left_out={left_out}" if left_out else "")
    total = counts.sum(0).astype(int)
    index, columns = pd.Index(order, name="a"), pd.Index(order, name="b")
    shares = {"a": total.sum(1) / total.sum(), "b": total.sum(0) / total.sum()}
    return Agreement(table, pd.DataFrame(total, index, columns), pd.DataFrame(shares, pd.Index(order, name="label")))


def _kappa_rows(counts: np.ndarray, using, note: str) -> pd.DataFrame:
    """Return the rows of kappa and agreement from counts (clusters, verdict of a, verdict of b)."""

    def parts(x):  # agreements, a's verdicts, b's verdicts, on the last axis
        return np.diagonal(x, axis1=-2, axis2=-1), x.sum(-1), x.sum(-2)

    total, weights = counts.sum(0), using.weights(len(counts))
    rows, agree = total.sum(), np.trace(total)
    expected = (total.sum(0) * total.sum(1)).sum() / rows**2
    kappa = np.array([kappa_of(*parts(total))])
    contrib = np.zeros((len(counts), 1))
    if len(counts) > 1:
        contrib[:, 0] = np.nan_to_num(jackknife_contrib(kappa_of(*parts(total - counts)))) * (1 - expected)
    value, trials, clusters = np.array([agree / rows]), np.array([rows]), np.array([len(counts)])
    base = Rate(np.where(np.isnan(kappa), np.nan, value), contrib, trials, clusters, few_clusters=True)
    notes = [(np.array([bool(note)]), note)]
    m = rate_measure(base, transform=lambda x: ratio(x - expected, 1 - expected), notes=notes)
    m.value = kappa
    drawn = (weights.T.astype(float) @ counts.reshape(len(counts), -1)).reshape(-1, *total.shape)
    share = Rate.of(np.einsum("pkk->p", counts)[:, None], counts.sum((1, 2))[:, None])
    share.few_clusters = True
    agreed, seen = np.einsum("bkk->b", drawn), drawn.sum((1, 2))
    batches = [
        Batch.of(("kappa",), m, kappa_of(*parts(drawn))[None], using),
        Batch.of(("agreement",), rate_measure(share, notes=notes), ratio(agreed, seen)[None], using),
    ]
    return table_of([batch.columns(using) for batch in batches], using)[list(AGREEMENT_COLUMNS)]


def rogan_gladen(
    scored: pd.Series,
    labelled: pd.Series,
    cluster: pd.Series,
    *,
    random_sample: bool,
    n_resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Correct the rate at which a scorer says true for its errors: (rate + sp - 1) / (se + sp - 1), within [0, 1].

    scored: the scorer's verdict on every reply of a run (true, false or null), indexed by reply. labelled: the true
    verdict on a random sample of these same replies. cluster: the template of every reply. Sensitivity and
    specificity of another run, or of replies picked by hand, do not carry over: a label for a reply that is not among
    `scored`, a sample that is not random, or one without both verdicts is an error, and there is no correction.

    Returns `apparent_rate`, `sensitivity`, `specificity` and `corrected_rate` (Rogan and Gladen 1978). Templates are
    resampled with their replies and labels, so the interval of the corrected rate (`percentile` first) has the
    uncertainty of all three. Notes: not_estimable (the scorer is no better than chance), perfect_in_sample (no error
    of one kind among the labels: the interval is optimistic), unstable (over 1 % of the resamples are not estimable).
    """
    if random_sample is not True:
        raise InputError(
            "A correction needs labels of a random sample of this run's replies; confirm random_sample=True."
        )
    for name, series in (("scored", scored), ("labelled", labelled)):
        if not series.index.is_unique:
            raise InputError(
                f"`{name}` must have each reply once, but {series.index[series.index.duplicated()][0]!r} is twice."
            )
    foreign = labelled.index.difference(scored.index)
    if len(foreign):
        raise InputError(f"Labels must be of this run's own replies, but {foreign[0]!r} is not among them.")
    said = pd.Series(truth_codes(scored, "scored"), scored.index)
    true = pd.Series(truth_codes(labelled, "labelled"), labelled.index).reindex(scored.index, fill_value=-1)
    keep = said >= 0
    said, true = said[keep].to_numpy(), true[keep].to_numpy()
    codes, _ = pd.factorize(cluster.reindex(scored.index)[keep], use_na_sentinel=False)
    if not ((true == 1).any() and (true == 0).any()):
        raise InputError("A correction needs labelled replies of both kinds, true and false.")
    cells = [
        np.ones(len(said), bool),
        said == 1,
        true == 1,
        (true == 1) & (said == 1),
        true == 0,
        (true == 0) & (said == 0),
    ]
    counts = np.stack([np.bincount(codes, cell.astype(float)) for cell in cells], 1)
    using = settings(n_resamples, level, seed)
    return _corrected_rows(counts, using)[list(AGREEMENT_COLUMNS)]


def corrected(counts) -> np.ndarray:
    """Return the corrected rate from counts on the last axis: n, said true, true, hits, false, correct rejections."""
    n, said, true, hits, false, rejected = np.moveaxis(np.asarray(counts, float), -1, 0)
    informed = ratio(hits, true) + ratio(rejected, false) - 1
    return np.clip(ratio(ratio(said, n) + ratio(rejected, false) - 1, np.where(informed > 0, informed, np.nan)), 0, 1)


def _corrected_rows(counts: np.ndarray, using) -> pd.DataFrame:
    total, weights = counts.sum(0), using.weights(len(counts))
    drawn = weights.T.astype(float) @ counts
    rates = Rate.of(counts[:, [1, 3, 5]], counts[:, [0, 2, 4]])
    rates.few_clusters = True
    plain = Batch.of(
        ("apparent_rate", "sensitivity", "specificity"), rate_measure(rates),
        ratio(drawn[:, [1, 3, 5]], drawn[:, [0, 2, 4]]).T, using,
    )  # fmt: skip
    samples = corrected(drawn)
    contrib = np.zeros((len(counts), 1))
    if len(counts) > 1:
        contrib[:, 0] = np.nan_to_num(jackknife_contrib(corrected(total - counts)))
    notes = [
        (np.array([total[2] == total[3] or total[4] == total[5]]), "perfect_in_sample"),
        (np.array([np.isnan(samples).mean() > 0.01]), "unstable"),
    ]
    m = Measure("", corrected(total)[None], total[:1], np.array([len(counts)]), contrib, notes=notes)
    last = Batch.of(("corrected_rate",), m, samples[None], using)
    table = table_of([plain.columns(using), last.columns(using)], using)
    is_t = (table["statistic"] == "corrected_rate") & (table["method"] == "clustered_t")
    return pd.concat([table[~is_t], table[is_t]], ignore_index=True)
