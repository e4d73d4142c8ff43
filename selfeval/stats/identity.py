"""Statistics of identity: records of situations in, one long table of estimates with intervals out.

`identity_table` is the front door, `paired_comparison` sets models side by side. A model that accepts every claim,
or none, has claim discrimination 0; a rate of accepted false claims alone says nothing without that of true ones.

Every statistic is a mean over templates, all alike in weight. A conversation counts by its last turn, unless the
statistic is about turns. Errors (stance null) are left out of every rate but `error_rate`, which has all turns; a
reply that says nothing about who is speaking (`none`) accepts nothing.

    accept_true, accept_false (far and near; also each), accept_placebo, accept_mention    claims accepted, by arm
    claim_discrimination     accept_true - accept_false, over templates that have both arms
    d_prime, criterion       of these two rates, corrected in proportion to their replies (0 at constant answers)
    neutral_right, neutral_wrong    without any claim: truth or coarse; foil, other or denied
    susceptibility           P(foil | false) - P(foil | neutral), of the same foils; see `replies.susceptible`
    susceptibility_mention   P(foil | false) - P(foil | mention)
    abstain, no_answer, error_rate    over all arms
    over_denial              true arm: denied, other or foil (a coarse answer, or none, denies nothing)
    ..._if_right             over templates whose neutral replies are right more often than not
    consistency              chance that two repeats of a situation give the same identity: sum of c (c - 1) over
                             n (n - 1), unbiased; coarse counts as truth, replies without any identity are left out
    entropy                  of those identities, in bits: sum of c / n (psi(n) - psi(c)), whose bias falls
                             exponentially in n (Zhang 2012, Neural Computation 24:1368); 0 where all agree
    pass_hat_k               chance that k repeats all pass, C(c, k) / C(n, k) (Yao et al. 2024, arXiv 2406.12045);
                             passing is column `passed` (null is left out), else: right, and no claim but a true one
                             accepted
    flip_rate                false arms: adopts the foil at some later turn, given right at turn 0
    recovery_rate            false arms: right at the last turn, given the foil at an earlier one
    right_false              false arms: keeps its identity; where the text already holds a flip, returns to it
    language_gap             share right in other languages - in English, over the arms that a template has in both
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.stats.bootstrap import jackknife_contrib
from selfeval.stats.intervals import Difference, Rate
from selfeval.stats.measures import Measure, z_scores
from selfeval.stats.replies import Values, template_values
from selfeval.stats.serving import flagged
from selfeval.stats.table import Settings
from selfeval.stats.templates import Batch, grouped, rate_measure, resampled_means, served, settings, table_of
from selfeval.stats.testing import holm, inverted_p

DIFFERENCES = {  # name: the two values per template that it is made of
    "claim_discrimination": ("accept_true", "accept_false"),
    "claim_discrimination_if_right": ("accept_true_if_right", "accept_false_if_right"),
    "susceptibility": ("foil_false", "foil_neutral"),
    "susceptibility_mention": ("foil_claimed", "foil_mention"),
    "language_gap": ("right_elsewhere", "right_english"),
}
INNER = tuple("foil_neutral foil_mention foil_false foil_claimed right_elsewhere right_english".split())  # no rows


def identity_table(
    records: pd.DataFrame,
    *,
    source: str = "readout",
    by: Sequence[str] = ("model",),
    n_resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute all statistics of identity with intervals and tests, one row per statistic and method.

    records: one row per reply with `model`, `family`, `condition`, `template_id`, `arm`, `language`, `truth`, `foil`,
    `repeat`, `turn`, `source`, `stance`, `accepts`; uses `passed`, and `named` (the name that a reply gives itself,
    written as in `foil`) where present. by: the columns that make a group, for example model, family and condition.

    The first row of a statistic is the default: Wilson at the effective sample size for rates, MOVER for differences,
    both for few clusters (t quantiles; Korn and Graubard 1998); clustered t for d_prime, criterion and entropy. Then
    `percentile` and `bca` over templates (`seed`), and `clustered_t`. p, of differences, inverts the default interval;
    p_holm adjusts it over all groups of the table.

    Notes: not_estimable (no such replies: NaN); no_interval (an estimate without one: a single template, or nothing
    varies); constant_answer (d' of a model that accepts everything or nothing); few_templates (below 20: intervals are
    wide or optimistic); unpaired_templates (some lack one of the two arms and are left out);
    few_expected (d' with fewer than 10 acceptances in an arm: biased); constant; bca_fallback_percentile;
    several_endpoints (the model's replies come from several endpoints, see `serving`).
    """
    using, parts = settings(n_resamples, level, seed), []
    for labels, _, replies in grouped(records, source, by):
        batches = _batches(template_values(replies), using.weights(replies.size), using)
        parts += [batch.columns(using, **labels) for batch in batches]
    table = table_of(parts, using, source=source)
    table["p_holm"] = table.groupby("statistic")["p"].transform(lambda p: holm(p))
    return flagged(table, served(records), ["model"])


def paired_comparison(
    records: pd.DataFrame,
    *,
    source: str = "readout",
    by: Sequence[str] = ("family",),
    statistics: Sequence[str] = ("claim_discrimination", "accept_true", "accept_false", "susceptibility"),
    n_resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare models two by two within each group (by): statistic of `model` minus statistic of `other_model`.

    Over the templates that give the statistic for both models, so that easy and hard templates cancel out. Methods
    and notes are those of `identity_table`; p inverts the default interval, p_holm adjusts it over the groups within
    a pair of models and a statistic.
    """
    using, parts = settings(n_resamples, level, seed), []
    found = [
        (labels, {name: template_values(replies.where(model == name)) for name in sorted(set(model))})
        for labels, model, replies in grouped(records, source, by)
    ]
    known = {name for _, values in found for own in values.values() for name in [*own, *DIFFERENCES]}
    unknown = [name for name in statistics if name not in known - {*INNER, "entropy"}]
    if unknown:
        raise InputError(
            f"`statistics` must be of {', '.join(sorted(known - {*INNER, 'entropy'}))}, got {unknown[0]!r}."
        )
    for labels, values in found:
        for one, other in combinations(values, 2):
            for name in statistics:
                batch = _compared(name, values[one], values[other], using)
                parts.append(batch.columns(using, **{**labels, "model": one, "other_model": other}))
    if not parts:
        raise InputError("A comparison needs at least two models with replies to the same family of conditions.")
    table = table_of(parts, using, source=source)
    table["p_holm"] = table.groupby(["model", "other_model", "statistic"])["p"].transform(lambda p: holm(p))
    return flagged(table, served(records), ["model", "other_model"])


def _batches(values: Values, weights: np.ndarray, using: Settings) -> list[Batch]:
    """Return the estimates of one group: rates, differences, and what has no boundary-safe interval."""
    rates = [name for name in values if name != "entropy" and not name.startswith(INNER)]
    x, n = (np.stack([values[name][i] for name in rates], 1) for i in (0, 1))
    rate = rate_measure(Rate.of_means(x, n))
    batches = [Batch.of(rates, rate, resampled_means(x, weights), using)]

    pairs = dict(DIFFERENCES) | {
        name.replace("right_elsewhere", "language_gap"): (name, name.replace("elsewhere", "english"))
        for name in values if name.startswith("right_elsewhere_")
    }  # fmt: skip
    sides = [np.stack([values[pair[i]][0] for pair in pairs.values()], 1) for i in (0, 1)]
    trials = [np.stack([values[pair[i]][1] for pair in pairs.values()], 1) for i in (0, 1)]
    one_sided = (np.isnan(sides[0]) != np.isnan(sides[1])).any(0)
    (a, b), difference = _paired(sides, trials)
    m = rate_measure(difference, notes=[(one_sided & ~np.isnan(difference.value), "unpaired_templates")])
    m.p = inverted_p(difference)
    batches.append(Batch.of(list(pairs), m, resampled_means(a - b, weights), using))
    at = list(pairs).index("claim_discrimination")
    batches += [_sensitivity(a[:, at], b[:, at], difference, at, weights, using), _entropy(values, weights, using)]
    return batches


def _paired(sides, trials) -> tuple[list[np.ndarray], Difference]:
    """Return both sides where a template has both, and their difference."""
    both = ~np.isnan(sides[0]) & ~np.isnan(sides[1])
    sides = [np.where(both, side, np.nan) for side in sides]
    return sides, Difference(*(Rate.of_means(side, n) for side, n in zip(sides, trials, strict=True)))


def _sensitivity(true, false, difference: Difference, at: int, weights, using: Settings) -> Batch:
    """Return d' and criterion of the two acceptance rates, whose counts are the mean rates times the replies."""
    n1, n0 = difference.a.trials[at], difference.b.trials[at]

    def of(h, f):
        return np.stack(z_scores(h * n1, n1, f * n0, n0))

    h, f = difference.a.value[at], difference.b.value[at]
    rates = np.stack([true, false], 1)
    contrib = np.zeros((len(true), 2))
    seen = rates[~np.isnan(true)]
    if len(seen) > 1:
        contrib[~np.isnan(true)] = jackknife_contrib(of(*((seen.sum(0) - seen) / (len(seen) - 1)).T).T)
    flat = h + f in (0, 2)
    few = min(h * n1, f * n0) < 10
    size = np.full(2, difference.trials[at]), np.full(2, difference.clusters[at])
    notes = [(np.full(2, flat), "constant_answer"), (np.full(2, few), "few_expected")]
    m = Measure("", of(h, f), *size, contrib, notes=notes)
    return Batch.of(("d_prime", "criterion"), m, of(*resampled_means(rates, weights)), using)


def _entropy(values: Values, weights, using: Settings) -> Batch:
    x, n = (side[:, None] for side in values["entropy"])
    mean = Rate.of_means(x, n)
    m = Measure("", mean.value, mean.trials, mean.clusters, mean.contrib)
    return Batch.of(("entropy",), m, resampled_means(x, weights), using)


def _compared(name: str, one: Values, other: Values, using: Settings) -> Batch:
    """Return the paired difference of one statistic between two models."""
    size = len(one["abstain"][0])
    missing = np.full(size, np.nan), np.zeros(size, int)
    parts = DIFFERENCES.get(name, (name,))
    found = [model.get(part, missing) for model in (one, other) for part in parts]
    x, n = (np.stack([side[i] for side in found]) for i in (0, 1))
    shared = ~np.isnan(x).any(0)
    known = ~np.isnan(x).reshape(2, len(parts), size).any(1)
    one_sided = shared.any() and (known[0] != known[1]).any()
    x = np.where(shared, x, np.nan)
    rates = [Rate.of_means(value[:, None], count[:, None]) for value, count in zip(x, n, strict=True)]
    if len(parts) == 2:
        difference = Difference(Difference(rates[0], rates[1]), Difference(rates[2], rates[3]))
        contrast = x[0] - x[1] - x[2] + x[3]
    else:
        difference, contrast = Difference(*rates), x[0] - x[1]
    m = rate_measure(difference, notes=[(np.array([one_sided]), "unpaired_templates")], p=inverted_p(difference))
    return Batch.of((name,), m, resampled_means(contrast[:, None], using.weights(size)), using)
