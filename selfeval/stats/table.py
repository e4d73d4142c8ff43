"""Statistics of self-recognition: prediction records in, one long table of estimates with intervals out.

`recognition_table` is the front door. A naming evaluator that never looks at the text and names itself with
probability q has advantage A = (N q - 1) / (N - 1), at ten authors from -0.11 to +1.00; its discrimination J is 0.
So A is reported for comparability, and J, corrected advantage and peer-corrected recognition are what to read.

    H  self_accuracy         own texts claimed (naming tasks: named correctly)
    F  false_claim_rate      others' texts claimed, mean over their authors
    x  cross_accuracy        accuracy on others' texts, mean over their authors (binary task: 1 - F)
    A  advantage             H - x (Bai et al. 2025, arXiv 2510.03399)
    J  discrimination        H - F; per author m: names m on m's texts, minus names m on the others' texts
       corrected_advantage   J[e,e] minus the mean over others m of J[e,m]
    S  peer_baseline         H minus the mean over peers j of naming e on e's texts; best_peer: minus the best j
    D  peer_corrected        J[e,e] minus the mean over peers j of J[j,e]
       interaction           corrected advantage of e minus what the peers have for e over third authors

Policy `all`: every row is in the denominator and no answer counts as "did not claim" (so as a correct rejection in
the binary task). Policy `answered`: rows with an answer only. The sampled unit is the prompt.

Pairs have names of their own where H, F and J have no meaning: see `selfeval.stats.pairs`. There `answered` comes
first, and rows of judges that wrote neither text are never pooled with those of evaluators that wrote one. Per author
`answered` comes first in every task.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from selfeval.errors import check_whole
from selfeval.stats.binary import Binary, auc_measures, binary_measures, no_answer_measure, resample_binary
from selfeval.stats.bootstrap import bootstrap_intervals, cluster_weights, clustered_t
from selfeval.stats.counts import BINARY, PAIRWISE, Tally, tallies, unreached
from selfeval.stats.intervals import BOUND, Estimate, check_level, cluster_variance
from selfeval.stats.measures import Measure
from selfeval.stats.naming import Naming, naming_measures, resample_naming
from selfeval.stats.pairs import neutral_measures, pairwise_measures
from selfeval.stats.serving import flagged, of_predictions
from selfeval.stats.testing import holm, inverted_p

COLUMNS = (
    "evaluator", "author", "task", "condition", "policy", "statistic", "estimate", "low", "high", "level", "method",
    "p", "p_holm", "n", "n_prompts", "seed", "note",
)  # fmt: skip
ANSWERED_FIRST = frozenset(
    "overall_accuracy accuracy always_no_accuracy always_yes_f1 balanced_accuracy precision recall f1 mcc tp fp tn fn "
    "kappa position_bias".split()
)
FEW_PROMPTS = 40
MAX_PAIRS = 2_500  # with more evaluator-author pairs than this, those have no bootstrap rows
MAX_RESAMPLED = 4_000  # with more prompts than this, random groups of prompts are resampled


@dataclass
class Settings:
    """What one call of a table uses throughout; weights are drawn once per number of clusters.

    few, few_note: below how many clusters which note warns.
    """

    n_resamples: int
    level: float
    seed: int
    few: int = FEW_PROMPTS
    few_note: str = "few_prompts"
    drawn: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        self.z = check_level(self.level)
        for name, least, most in (("n_resamples", 1, None), ("seed", 0, 2**63 - 1)):  # a table's column takes no more
            check_whole(name, getattr(self, name), least, most)

    def weights(self, clusters: int) -> np.ndarray:
        """Return the bootstrap's weights of so many clusters, drawn once."""
        if clusters not in self.drawn:
            rng = np.random.default_rng(self.seed)
            self.drawn[clusters] = cluster_weights(clusters, self.n_resamples, rng)
        return self.drawn[clusters]


def recognition_table(
    predictions: pd.DataFrame, *, n_resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Compute all statistics of recognition with intervals and tests, one row per statistic and method.

    predictions: prediction records; needs `evaluator_model`, `true_model`, `task_type`, `text_id`, and
    `predicted_model` (naming tasks) or `predicted_self` (others); uses `prompt_id` (else `prompt_used`), `condition`,
    `score`, `position`, `other_model`, `other_text_id`, `repeat` and who served the models where present. Each (task,
    condition) is analysed by itself; its authors are the candidates. In pairs, evaluators that wrote neither text are
    neutral judges: their statistics are called `neutral_...`, and `own_minus_neutral` compares own choices with theirs
    on the same pairs, per evaluator, per rival (`author`), and pooled over all evaluators (`evaluator` is "").

    Returns the columns `COLUMNS`. The first row of a statistic is the default: Wilson at the effective sample size
    for rates, MOVER for differences, nested for corrected_advantage and peer_corrected (these hold near 0 and 1,
    where the others do not); clustered t where there is no such interval. Then `percentile` and `bca` over prompts
    (`seed`; not for the single pairs of more than 2,500 evaluator-author pairs), and `clustered_t`.

    p on the default row: for discrimination the exact permutation of which author of a prompt is one's own
    (`testing.permutation_p`); for auc and auc_within_prompt the same on the scores, for self_accuracy and
    mean_probability of pairs the exchange of the own text and the other within a prompt, against .5
    (`testing.rearranged_p`: exact, or 9,999 draws with `seed`); for corrected_advantage, peer_corrected and
    own_minus_neutral the inversion of the default interval. p_holm adjusts over the evaluators of a task and condition.
    The second policy is reported where it differs.

    Notes: not_estimable (no estimate: NaN); no_interval (an estimate without one: a single prompt, or nothing varies);
    no_reply (every call to this evaluator failed); constant_answer (it claimed every text or none: a result, J = 0);
    few_prompts (below 40: wide intervals, those of the other methods optimistic); few_expected (d' with fewer than 10
    hits or false claims: biased, test J instead); constant (every resample is alike: the interval has no width and no
    meaning); partly_scored (of AUC: under nine in ten rows have a score); least_p=P (so few prompts can be rearranged
    that no p is below P, whatever the interval says); one_order (of pairs: the own text always stood at the same place,
    so a habit of place would look the same); bca_fallback_percentile; grouped_prompts; clusters_are_texts (the file
    names no prompt, so `n_prompts` counts texts, and J has no p); peer=ID (of best_peer, chosen as the best in the data
    and held fixed); several_endpoints (several endpoints served this evaluator or author, which may differ in weights
    and templates: `serving.of_predictions` counts them; in a pooled row, one of its evaluators).
    """
    settings = Settings(n_resamples, level, seed)
    table = pd.concat([_tally_table(tally, settings) for tally in tallies(predictions)], ignore_index=True)
    table = _without_unreached(table.loc[:, list(COLUMNS)], predictions)
    several = of_predictions(predictions)
    pooled = {"": {}} if table["evaluator"].isin([*several]).any() else {}
    return flagged(flagged(table, several, ["evaluator", "author"]), pooled, ["evaluator"])


def _without_unreached(table: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Take back the statistics of an evaluator whose every call failed: that is no model that claims nothing."""
    failed = unreached(predictions)
    rows = pd.MultiIndex.from_frame(table[["task", "condition", "evaluator"]]).isin(failed)
    rows &= ~table["statistic"].str.endswith("no_answer_rate").to_numpy()
    one = ["task", "condition", "evaluator", "author", "statistic"]
    table.loc[rows, ["estimate", "low", "high", "p", "p_holm"]] = np.nan
    table.loc[rows, "note"] = "no_reply"
    return table[~(rows & table.duplicated(one).to_numpy())].reset_index(drop=True)


def _tally_table(tally: Tally, settings: Settings) -> pd.DataFrame:
    """Return the table of one task and condition."""
    if (tally.answer >= 0).all():
        measures = {"": _measured(tally, "all", settings)}
    else:
        policies = ("answered", "all") if tally.task == PAIRWISE else ("all", "answered")
        measures = {policy: _measured(tally, policy, settings) for policy in policies}
        _drop_equal(measures, tally.task)
    ranks: dict[str, int] = {}  # one per statistic, so that its two policies stand together
    parts = [
        _rows(m, tally, policy or first_policy(tally.task, m.name), ranks.setdefault(m.name, len(ranks)))
        for policy, found in measures.items()
        for m in found
    ]
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    order = np.lexsort([columns[k] for k in ("method_rank", "second", "rank", "a", "e")])
    columns = {key: values[order] for key, values in columns.items()}
    columns["evaluator"] = np.append(tally.evaluators, "")[columns["e"]]
    columns["author"] = np.append(tally.authors, "")[columns["a"]]
    columns["seed"] = pd.array(np.where(columns["seeded"], settings.seed, 0), "Int64")
    columns["seed"][~columns["seeded"]] = pd.NA
    return pd.DataFrame(columns).assign(task=tally.task, condition=tally.condition, level=settings.level)


def _measured(tally: Tally, policy: str, settings: Settings) -> list[Measure]:
    """Compute all measures of a tally under a policy, with their estimates."""
    grouped = tally.n_prompts > MAX_RESAMPLED
    if grouped:
        group = np.random.default_rng(settings.seed).permutation(tally.n_prompts) % MAX_RESAMPLED
    else:
        group = np.arange(tally.n_prompts)
    weights = settings.weights(group.max() + 1)
    if tally.task == PAIRWISE:
        found, per_author = (neutral_measures if tally.neutral else pairwise_measures)(tally, policy)
    else:
        binary, naming = (Binary, binary_measures, resample_binary), (Naming, naming_measures, resample_naming)
        kind, measures, resample = binary if tally.task == BINARY else naming
        cells = kind.of(tally, policy)
        found, per_author = measures(cells)
        named = {m.name: m for m in per_author}
        boots = {m.name: [] for m in per_author if m.value.size <= MAX_PAIRS}

        def author_done(e, samples):
            for name, parts in boots.items():
                m = named[name]
                parts.append(bootstrap_intervals(samples[name], m.value[e], m.contrib[:, e], settings.level))

        again = kind.of(tally.regrouped(group, group.max() + 1), policy) if grouped else cells
        resample(again, weights, {m.name: m for m in found}, author_done)
        for name, parts in boots.items():
            named[name].boot = [np.stack(bounds) for bounds in zip(*parts, strict=True)]
        if not np.isnan(tally.score).all():
            found += auc_measures(tally)
    if policy == "all":
        found.append(no_answer_measure(tally))
        found[-1].name = "neutral_no_answer_rate" if tally.neutral else "no_answer_rate"
    for m in found + per_author:
        _finish(m, group, weights, settings, tally.note, grouped)
    return found + per_author


def _finish(m: Measure, group, weights, settings: Settings, note: str, grouped: bool) -> None:
    """Bootstrap what was not resampled by count, and write the measure's estimates."""
    if m.contrib is not None and m.boot is None and not (m.per_author and m.value.size > MAX_PAIRS):
        if m.samples is None:
            summed = np.zeros((len(weights), *m.contrib.shape[1:]))
            np.add.at(summed, group, m.contrib)
            base = m.value if m.safe is None else m.safe.value
            summed = summed.reshape(len(weights), -1).astype(np.float32)
            m.samples = base.reshape(-1, 1).astype(np.float32) + summed.T @ weights
            m.samples = m.samples if m.transform is None else m.transform(m.samples)
        flat = bootstrap_intervals(m.samples, m.value.ravel(), m.contrib.reshape(len(m.contrib), -1), settings.level)
        m.boot = [x.reshape(m.value.shape) for x in flat]
        m.samples = None
    if m.invert:
        m.p = inverted_p(m.safe)
    if m.test is not None:
        m.p, least = m.test(settings.seed)
        few = (least > 1 - settings.level) & ~np.isnan(m.p)
        m.notes = [*m.notes, *((few & (least == bound), f"least_p={bound:.3g}") for bound in np.unique(least[few]))]
    m.estimates = estimates(m, settings, note, grouped)


def estimates(m: Measure, settings: Settings, note: str = "", grouped: bool = False) -> list[Estimate]:
    """Return the estimates of a measure, default first."""
    nan = np.full(m.value.shape, np.nan)
    common = [(np.isnan(m.value), "not_estimable"), *m.notes, (np.full(m.value.shape, bool(note)), note)]

    def estimate(low, high, method, *notes):
        return Estimate(m.value, low, high, settings.level, m.rows, m.clusters, method, _note(m.value, *common, *notes))

    if m.contrib is None:
        return [estimate(nan, nan, "count")]
    few = ((m.clusters < settings.few) & ~np.isnan(m.value), settings.few_note)
    mapped = m.transform or (lambda v: v)
    base = m.value if m.safe is None else m.safe.value
    slope = (mapped(base + 1e-6) - mapped(base - 1e-6)) / 2e-6
    t = [m.value + slope * (side - base) for side in clustered_t(base, m.contrib, m.clusters, settings.level)]
    variance = cluster_variance(m.contrib, m.clusters)
    flat, single = variance <= BOUND**2, np.isnan(variance)
    alone = (single & ~np.isnan(m.value), "no_interval")
    plain = [alone, (flat, "constant"), few]
    resampled = []
    if m.boot is not None:
        low, high, bca_low, bca_high = (np.where(single, np.nan, side) for side in m.boot[:4])
        boot = [*plain, (np.full(flat.shape, grouped), "grouped_prompts")]
        fallback = (m.boot[4] & ~flat & ~single, "bca_fallback_percentile")
        resampled = [estimate(low, high, "percentile", *boot), estimate(bca_low, bca_high, "bca", *boot, fallback)]
    if m.safe is None:  # no boundary-safe interval: an interval without width is none
        t = [np.where(flat, np.nan, side) for side in t]
        return [estimate(*t, "clustered_t", ((flat | single) & ~np.isnan(m.value), "no_interval"), few), *resampled]
    safe = [mapped(side) for side in m.safe.interval(settings.z)]
    return [estimate(*safe, m.safe.method, few), *resampled, estimate(*t, "clustered_t", *plain)]


def _note(value: np.ndarray, *notes: tuple[np.ndarray, str]) -> np.ndarray:
    """Join, per value, the notes whose mask is set, each once."""
    out = np.full(value.shape, "", object)
    for mask, text in notes:
        for at in np.argwhere(mask):
            at = tuple(at)
            if text not in out[at].split("; "):
                out[at] = f"{out[at]}; {text}" if out[at] else text
    return out


def first_policy(task: str, statistic: str) -> str:
    """Return the policy under which a statistic is read: in pairs no answer is not the choice of the other text."""
    if statistic.endswith("no_answer_rate"):
        return "all"
    return "answered" if task == PAIRWISE or statistic in ANSWERED_FIRST else "all"


def _drop_equal(measures: dict[str, list[Measure]], task: str) -> None:
    """Mark in the second policy of each statistic what equals the first."""
    other = {"all": "answered", "answered": "all"}
    for policy, found in measures.items():
        index = {(m.name, m.per_author, m.pooled): m for m in measures[other[policy]]}
        for m in found:
            first = index.get((m.name, m.per_author, m.pooled))
            m.second = policy != first_policy(task, m.name)
            if m.second and first is not None:
                same = (m.value == first.value) | (np.isnan(m.value) & np.isnan(first.value))
                m.keep = ~(same & (m.rows == first.rows))


def _rows(m: Measure, tally: Tally, policy: str, rank: int) -> dict[str, np.ndarray]:
    """Return the columns of a measure's rows, evaluator and author as indices (author -1: none)."""
    e = np.array([len(tally.evaluators)]) if m.pooled else np.arange(len(tally.evaluators))
    e, a = np.meshgrid(e, np.arange(len(tally.authors)), indexing="ij") if m.per_author else (e, np.full(len(e), -1))
    p = np.full(m.value.shape, np.nan) if m.p is None else m.p
    p_holm = p if m.p is None else holm(p.ravel()).reshape(p.shape)
    second = m.second != (m.per_author and tally.task != PAIRWISE)  # per author, what was answered stands first
    parts = []
    for k, est in enumerate(m.estimates):
        tests = (p, p_holm) if k == 0 else (np.full(p.shape, np.nan),) * 2
        keep = np.ones(m.value.shape, bool) if m.keep is None else m.keep
        keep = keep & (~np.isnan(m.value) if k else True)  # what cannot be estimated has one row
        size = int(keep.sum())
        parts.append({
            "e": e[keep], "a": a[keep], "rank": np.full(size, rank), "second": np.full(size, second),
            "method_rank": np.full(size, k), "policy": np.full(size, policy, object),
            "statistic": np.full(size, m.name, object), "estimate": est.value[keep], "low": est.low[keep],
            "high": est.high[keep], "method": np.full(size, est.method, object),
            "p": tests[0][keep], "p_holm": tests[1][keep],
            "n": est.n[keep].astype(int), "n_prompts": est.n_prompts[keep].astype(int),
            "seeded": np.full(size, est.method in ("percentile", "bca")), "note": est.note[keep],
        })  # fmt: skip
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
