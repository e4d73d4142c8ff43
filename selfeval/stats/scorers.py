"""Scorers of replies held against each other, and a rate corrected for the errors of its scorer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.engine import Function, Rate, Settings
from selfeval.stats.identity import FEW, UNIT
from selfeval.stats.records import truth_codes
from selfeval.stats.table import Measure, write


def cohen_kappa(
    a: Sequence, b: Sequence, cluster: Sequence, *, n_resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Compare two scorers' verdicts on the same replies: `kappa` (Cohen 1960) and `agreement`, the share of it.

    a, b: one verdict per reply, of any kind; a reply that one of them left null is left out and counted in the note
    `left_out=`. cluster: the template of each reply. Kappa depends on prevalence: read it beside both scorers' shares.

    Kappa is the agreement x mapped by (x - pe) / (1 - pe) with the expected agreement pe, and so is its interval:
    Wilson's of x, with the variance of kappa over templates (leave one out). So it holds where scorers always agree.
    """
    if not len(a) == len(b) == len(cluster):
        raise InputError(f"Verdicts and clusters must be of one length, got {len(a)}, {len(b)} and {len(cluster)}.")
    frame = pd.DataFrame({name: pd.Series(list(x), dtype=object) for name, x in (("a", a), ("b", b), ("c", cluster))})
    scored = frame.dropna(subset=["a", "b"])
    if scored.empty:
        raise InputError("There is no reply that both scorers judged.")
    verdict, found = pd.factorize(scored[["a", "b"]].to_numpy().ravel())
    size, template = len(found), pd.factorize(scored["c"], use_na_sentinel=False)[0]
    counts = np.zeros((template.max() + 1, size, size))
    np.add.at(counts, (template, verdict[::2], verdict[1::2]), 1)
    total, n = counts.sum(0), np.array(len(scored))
    expected = (total.sum(0) * total.sum(1)).sum() / n**2

    def formula(sums):
        table = sums.reshape(*sums.shape[:-1], size, size)
        rows = sums.sum(-1)
        chance = (table.sum(-1) * table.sum(-2)).sum(-1) / rows**2
        return (np.trace(table, axis1=-2, axis2=-1) / rows - chance) / (1 - chance)

    kappa = Function.of(counts.reshape(len(counts), -1), formula, n)
    agreement = Rate.of(np.trace(counts, axis1=1, axis2=2), counts.sum((1, 2)))
    beyond = Rate(agreement.value, kappa.contrib * (1 - expected), n, kappa.clusters,
                  lambda w: expected + kappa.at(w) * (1 - expected), agreement.present)  # fmt: skip
    left_out = len(frame) - len(scored)
    return write(
        [
            Measure("kappa", beyond.mapped(lambda x: (x - expected) / (1 - expected if expected < 1 else np.nan))),
            Measure("agreement", agreement),
        ],
        Settings(n_resamples, level, seed, UNIT, FEW),
        note=f"left_out={left_out}" if left_out else "",
    )


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

    Returns `apparent_rate`, `sensitivity`, `specificity` and `corrected_rate` (Rogan and Gladen 1978). The intervals of
    the corrected rate, by leaving out and by resampling templates with their replies and labels, have the uncertainty
    of all three. Notes: not_estimable (the scorer is no better than chance), perfect_in_sample (no error of one kind
    among the labels: the interval is optimistic).
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
    known = truth_codes(scored, "scored") >= 0
    said = truth_codes(scored, "scored")[known] == 1
    label = pd.Series(truth_codes(labelled, "labelled"), labelled.index).reindex(scored.index, fill_value=-1)[known]
    template = pd.factorize(cluster.reindex(scored.index)[known], use_na_sentinel=False)[0]
    true, false = label.to_numpy() == 1, label.to_numpy() == 0
    if not (true.any() and false.any()):
        raise InputError("A correction needs labelled replies of both kinds, true and false.")
    cells = (said, true & said, false & ~said, np.ones(len(said)), true, false)
    counts = np.stack([np.bincount(template, cell) for cell in cells], 1)
    total = counts.sum(0)
    corrected = Function.of(counts, _corrected, total[3], within=(0, 1))
    perfect = total[1] == total[4] or total[2] == total[5]
    return write(
        [
            Measure(
                np.array(["apparent_rate", "sensitivity", "specificity"], object), Rate.of(counts[:, :3], counts[:, 3:])
            ),
            Measure("corrected_rate", corrected, notes=[(perfect, "perfect_in_sample")]),
        ],
        Settings(n_resamples, level, seed, UNIT, FEW),
    )


def _corrected(sums):
    """Return the corrected rate from sums of: said true, hits, correct rejections, replies, labelled true and false."""
    said, hits, rejected, n, true, false = np.moveaxis(sums, -1, 0)
    specificity = rejected / false
    informed = hits / true + specificity - 1
    return np.clip((said / n + specificity - 1) / np.where(informed > 0, informed, np.nan), 0, 1)
