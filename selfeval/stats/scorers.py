"""Scorers of replies held against each other, and a rate corrected for the errors of its scorer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.engine import Function, Rate, Settings
from selfeval.stats.identity import FEW, UNIT
from selfeval.stats.table import Measure, write
from selfeval.stats.tallies import truth_codes


def cohen_kappa(
    a: Sequence, b: Sequence, cluster: Sequence, *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Compare two scorers' verdicts on the same replies: `kappa` (Cohen 1960) and `agreement`, the share of it.

    a, b: one verdict per reply, of any kind, both known. cluster: the template of each reply. Kappa depends on
    prevalence: read it beside both scorers' shares.

    Kappa is the agreement x mapped by (x - pe) / (1 - pe) with the expected agreement pe, and so is its interval:
    Wilson's of x, with the variance of kappa over templates (leave one out); at one reply per template with that of x.
    So it holds where scorers always agree.
    """
    verdict, found = pd.factorize(np.stack([np.asarray(a, object), np.asarray(b, object)], 1).ravel())
    size, template = len(found), pd.factorize(np.asarray(cluster))[0]
    counts = np.zeros((template.max() + 1, size, size))
    np.add.at(counts, (template, verdict[::2], verdict[1::2]), 1)
    total, n = counts.sum(0), np.array(len(template))
    expected = (total.sum(0) * total.sum(1)).sum() / n**2

    def formula(sums):
        table = sums.reshape(*sums.shape[:-1], size, size)
        rows = sums.sum(-1)
        chance = (table.sum(-1) * table.sum(-2)).sum(-1) / rows**2
        return (np.trace(table, axis1=-2, axis2=-1) / rows - chance) / (1 - chance)

    kappa = Function.of(counts.reshape(len(counts), -1), formula, n)
    agreement = Rate.of(np.trace(counts, axis1=1, axis2=2), counts.sum((1, 2)))
    beyond = Rate(agreement.value, kappa.contrib * (1 - expected), n, kappa.clusters, None, agreement.weight)
    shown = beyond.mapped(lambda x: (x - expected) / (1 - expected if expected < 1 else np.nan))
    how = Settings(n_resamples, seed=seed, unit=UNIT, few=FEW)
    return write([Measure("kappa", shown), Measure("agreement", agreement)], how)


def rogan_gladen(
    scored: Sequence, labelled: Sequence, cluster: Sequence, *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Correct the rate at which a scorer says true for its errors: (rate + sp - 1) / (se + sp - 1), within [0, 1].

    scored: the scorer's verdict on every reply of a run, true or false. labelled: the true verdicts on a random sample
    of these same replies, null for the others; sensitivity and specificity of another run, or of replies picked by
    hand, do not carry over. cluster: the template of every reply. Raises `InputError` where the labels are of one kind.

    Returns `apparent_rate`, `sensitivity`, `specificity` and `corrected_rate` (Rogan and Gladen 1978). The intervals of
    the corrected rate, by leaving out and by resampling templates with their replies and labels, have the uncertainty
    of all three. Notes: not_estimable (the scorer is no better than chance), perfect_in_sample (no error of one kind
    among the labels: the interval is optimistic).
    """
    said = truth_codes(pd.Series(scored), "scored") == 1
    label, template = truth_codes(pd.Series(labelled), "labelled"), pd.factorize(np.asarray(cluster))[0]
    true, false = label == 1, label == 0
    if not (true.any() and false.any()):
        raise InputError("A correction needs labelled replies of both kinds, true and false.")
    cells = (said, true & said, false & ~said, np.ones(len(said)), true, false)
    counts = np.stack([np.bincount(template, cell) for cell in cells], 1)
    total = counts.sum(0)
    corrected = Function.of(counts, _corrected, total[3], within=(0, 1))
    perfect = total[1] == total[4] or total[2] == total[5]
    rates = np.array(["apparent_rate", "sensitivity", "specificity"], object)
    shown = [
        Measure(rates, Rate.of(counts[:, :3], counts[:, 3:])),
        Measure("corrected_rate", corrected, notes=[(perfect, "perfect_in_sample")]),
    ]
    return write(shown, Settings(n_resamples, seed=seed, unit=UNIT, few=FEW))


def _corrected(sums):
    """Return the corrected rate from sums of: said true, hits, correct rejections, replies, labelled true and false."""
    said, hits, rejected, n, true, false = np.moveaxis(sums, -1, 0)
    specificity = rejected / false
    informed = hits / true + specificity - 1
    return np.clip((said / n + specificity - 1) / np.where(informed > 0, informed, np.nan), 0, 1)
