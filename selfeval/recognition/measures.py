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
    D  peer_corrected        J[e,e] minus the mean over peers j of J[j,e]
       interaction           corrected advantage of e minus what the peers have for e over third authors
       family_discrimination J with each name taken for its family: names its own family on that family's texts, minus
                             names it on texts of other families (each family weighs alike)

Policy `all`: every row is in the denominator and no answer counts as "did not claim" (so as a correct rejection in
the binary task). Policy `answered`: rows with an answer only. The sampled unit is the prompt.

Pairs have names of their own where H, F and J have no meaning: see `selfeval.recognition.pairs`. There `answered` comes
first, and rows of judges that wrote neither text are never pooled with those of evaluators that wrote one. Per author
`answered` comes first in every task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from selfeval.condition import conditions
from selfeval.reading.parsing import DOUBTFUL
from selfeval.recognition.counts import BINARY, NAMING, PAIRWISE, Tally, tallies
from selfeval.recognition.pairs import neutral_measures, pair_measures
from selfeval.statistics.intervals import (
    Area,
    Function,
    Rate,
    Settings,
    Statistic,
    check_level,
    permutation_p,
    ratio,
    stack,
    z_scores,
)
from selfeval.statistics.table import HALF, INVERTED, RESAMPLED, Measure, adjust_p, side_of, write

ANSWERED_FIRST = frozenset(
    "author_accuracy overall_accuracy accuracy always_no_accuracy balanced_accuracy f1 position_bias".split()
)
FEW_TESTED = 20  # prompts below which Holm's adjustment over several evaluators holds less than it says
ON_REQUEST = ("precision", "author_accuracy")  # no row of committed tables
POINTS = ["task", "condition", "evaluator", "false_claims", "hits", "area"]  # of ROC curves


def recognition_table(
    predictions: pd.DataFrame | Iterable[Tally],
    *,
    n_resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    families: Mapping[str, str] | None = None,
    more: Sequence[str] = (),
) -> pd.DataFrame:
    """Compute all statistics of recognition with intervals and tests, one row per statistic and method.

    predictions: prediction records, or their tallies; needs `evaluator_model`, `true_model`, `task_type`, `text_id`,
    and `predicted_model` (naming tasks) or `predicted_self` (others); uses `prompt_id` (else `prompt_used`),
    `condition`, `score`, `position`, `other_model`, `other_text_id` and `repeat` where present. Each (task,
    condition) is analysed by itself; its authors are the candidates. In pairs, evaluators that wrote neither text are
    neutral judges: what they left unanswered is `neutral_no_answer_rate`, and `own_minus_neutral` compares own choices
    with theirs on the same pairs. Where the condition has no `question`, they were asked which text `true_model` wrote:
    `neutral_accuracy` is how often they are right, `pair_fixed` an evaluator's accuracy on its own texts less theirs on
    the same pairs (without an evaluator: the mean over evaluators), `judge_fixed` less its own as a neutral judge; both
    are tested as `own_minus_neutral` is. families: {model: family}, for `family_discrimination` in naming tasks; it has
    rows where the authors are of two families or more, for evaluators whose family has two authors or more (with one,
    it would be discrimination again). An author that is not in it is a family of its own.
    more: of `ON_REQUEST`, precision (of the claims, the share about own texts) and author_accuracy (per evaluator and
    author), not of pairs.

    Returns `stats.COLUMNS`. The first row of a statistic is the default, by the rules of `stats.engine`; of advantage
    and discrimination `percentile` and `bca` over prompts follow (`seed`; not per author).

    p on the default row inverts the default interval, so that the two never disagree: of discrimination, advantage,
    corrected_advantage, peer_corrected, family_discrimination and own_minus_neutral against 0, of auc and
    auc_within_prompt against .5. self_accuracy and mean_probability of pairs have the exchange of the own text and the
    other within a prompt, against .5 (`engine.rearranged_p`). p_permutation, of discrimination and both AUCs, permutes
    which author of a prompt is the evaluator (`engine.permutation_p`: exact, or 9,999 draws with `seed`), and is empty
    where the authors of a prompt have unequal numbers of rows. Alone it finds blind evaluators out too often where own
    answers are alike over repeats and others' are not (.09 to .16 at .05). p_holm adjusts the larger of p and
    p_permutation over the evaluators of a task and condition. The second policy is reported where it differs.

    conclusion and detectable: see `stats.table`.

    Notes: not_estimable (no estimate: NaN); wrote_nothing (of J and the AUCs: no text here is its own); no_answer
    (the evaluator gave none: only no_answer_rate and what rests on scores is estimable, and it is nobody's peer);
    no_interval (an estimate without one: a single prompt, or nothing varies); constant_answer (it claimed every text
    or none: a result, J = 0); few_prompts, few_texts (below 40: wide intervals, those of the other methods
    optimistic); few_prompts_dominate (a few hold most rows: as many that weigh alike, by Kish's number, would be
    below 10; below 2 nothing is estimable); answers_differ (the share of unanswered
    questions about own and about others' texts differs); depends_on_no_answers (the two policies lie on different sides
    of chance); holm_few_prompts (several evaluators tested on fewer than 20 prompts); few_expected (d' with fewer
    than 10 hits or false claims: biased, test J instead); constant (every resample is alike: the interval has no
    width and no meaning); no_scores, partly_scored (of AUC: no row has a score, or under nine in ten); least_p=P (of
    pairs: so few prompts can be exchanged that no p is below P); one_order (of pairs: the own text always stood at
    the same place, so a habit of place would look the same); bca_fallback_percentile; clusters_are_texts (the file
    names no prompt, so `clusters` counts texts); few_answers (more than a fifth of this evaluator's questions have no
    answer).
    """
    how = Settings(n_resamples, level, seed)
    table = pd.concat(
        [_of_tally(tally, how, families or {}, more) for tally in tallies(predictions)], ignore_index=True
    )
    return _few_answers(table)


def _few_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Note what rests on the answers of evaluators that left more than a fifth of their questions without one."""
    one = pd.MultiIndex.from_frame(table[["task", "condition", "evaluator"]])
    rate = table["statistic"].str.endswith("no_answer_rate")
    few = one.isin(one[rate & table["estimate"].between(DOUBTFUL, 1, "neither")])
    few &= ~rate & ~table["statistic"].str.startswith("auc")
    return table.assign(note=table["note"].where(~few, (table["note"] + "; few_answers").str.removeprefix("; ")))


def _of_tally(tally: Tally, how: Settings, families: Mapping[str, str], more: Sequence[str]) -> pd.DataFrame:
    """Return the table of one task and condition: by evaluator, author and statistic, the policy to read first."""
    policies = [*(("answered", "all") if tally.task == PAIRWISE else ("all", "answered"))]
    policies = policies if (tally.answer < 0).any() else ["all"]
    measures = []
    for policy in policies:
        of_policy = measures_of(tally, policy) + family_measures(tally, policy, families)
        if tally.task != PAIRWISE:
            of_policy += [m for m in requested_measures(tally, policy) if m.statistic in more]
        measures += [replace(m, labels=m.labels | {"policy": policy}) for m in of_policy]
    how = Settings(how.n_resamples, how.level, how.seed, "text" if tally.note else "prompt")
    about = {"task": tally.task, "condition": tally.condition, "note": tally.note}
    table = write(measures, how, **about)
    if len(policies) > 1 and tally.task != PAIRWISE:
        table = _note_dependence(table)
    answered = table["statistic"].isin(ANSWERED_FIRST) | (tally.task == PAIRWISE)
    answered &= ~table["statistic"].str.endswith("no_answer_rate")
    if len(policies) == 1:  # both policies are one
        table["policy"] = np.where(answered, "answered", "all")
    second, each = (table["policy"] == "answered") != answered, table["author"] != ""
    again = table.duplicated(["evaluator", "author", "statistic", "method", "estimate", "n"], keep=False)
    table = table.assign(place=pd.factorize(table["statistic"])[0], later=second ^ (each & ~answered))
    table = table[~(again & second)].sort_values(["evaluator", "author", "place", "later"], kind="stable")
    table = table.drop(columns=["place", "later"])
    return adjust_p(table, ["policy", "statistic", table["author"] != "", table["evaluator"] != ""], FEW_TESTED)


def _note_dependence(table: pd.DataFrame) -> pd.DataFrame:
    """Note what is recognised under one policy and not under the other: the missing answers may have made it."""
    discrimination = table[(table["statistic"] == "discrimination") & ~table["method"].isin(RESAMPLED)]
    side = side_of(0, discrimination["low"], discrimination["high"])
    of_each = discrimination.assign(side=side).groupby(["evaluator", "author"])["side"]
    depends = of_each.transform("nunique") > 1
    note = table["note"].copy()
    for row in depends.index[depends]:
        note[row] = f"{note[row]}; depends_on_no_answers".removeprefix("; ")
    return table.assign(note=note)


def answers_differ(tally: Tally) -> np.ndarray:
    """Return which evaluators left more, or fewer, questions about their own texts unanswered than about others'."""
    cells = Cells(tally.count(), tally.own)
    unanswered = Rate.of(tally.count(tally.answer < 0), cells.n)
    low, high = (cells.of_own(unanswered) - cells.over_others(unanswered)).interval(check_level(0.95))
    return (low > 0) | (high < 0)


def measures_of(tally: Tally, policy: str) -> list[Measure]:
    """Return all statistics of a task and condition under a policy.

    Of an evaluator without a single answer only what rests on scores is known (note no_answer); it is nobody's peer.
    """
    heard, scored = tally.kept(tally.heard[tally.evaluator]), not np.isnan(tally.score).all()
    if tally.task == PAIRWISE:
        found = (neutral_measures if tally.neutral else pair_measures)(tally, policy)
        found += auc_measures(tally.by_place()) if scored and not tally.neutral else []
    else:
        found = (binary_measures if tally.task == BINARY else naming_measures)(heard, policy)
        unlike = answers_differ(tally)
        for m in found:
            notes = [(~tally.heard, "no_answer")]
            if m.statistic in ("discrimination", "advantage"):
                notes.append((unlike, "answers_differ"))
            by_author = m.value.ndim > 1
            m.notes = [*m.notes, *((where[:, None] if by_author else where, note) for where, note in notes)]
        found += auc_measures(tally) if scored else []
    if policy == "all":
        rate = Rate.of(tally.count(tally.answer < 0).sum(2), tally.count().sum(2))
        name = "neutral_no_answer_rate" if tally.neutral else "no_answer_rate"
        found.append(Measure(name, rate, {"evaluator": tally.evaluators}))
    return found


# ---------------------------------------------------------------------------------------------------------------
# Means of rates over authors and over peers


@dataclass(eq=False)
class Cells:
    """Counts n of one task (prompts, evaluators, authors), and the author index of each evaluator (-1: none)."""

    n: np.ndarray
    own: np.ndarray

    def __post_init__(self):
        self.wrote = self.own >= 0
        self.at = np.maximum(self.own, 0)
        self.e = np.arange(len(self.own))
        self.is_own = (np.arange(self.n.shape[2]) == self.own[:, None]) & self.wrote[:, None]
        self.total = self.n.sum(0)
        self.valid = self.total > 0

    def of_own(self, statistic: Statistic) -> Statistic:
        """Return each evaluator's value for its own name; NaN where it wrote nothing."""
        return statistic.pick((self.e, self.at), self.wrote)

    def over_others(self, rate: Rate) -> Rate:
        """Return each evaluator's mean over the authors other than itself."""
        return rate.mean(self.valid & ~self.is_own)

    def over_peers(self, rate: Rate) -> Rate:
        """Return for each evaluator e the mean over the other evaluators j of j's rate for e's name."""
        of_each = rate.pick((slice(None), self.at))
        return of_each.mean((self.e[:, None] != self.e) & self.wrote, axis=-2)

    def third_parties(self) -> np.ndarray:
        """Return the operator (E, T, T) from j's J to: J for t minus the mean over authors not t and not j."""
        others, eye = self.valid & ~self.is_own, np.eye(self.n.shape[2])
        use = others[:, None, :] & (eye == 0)
        return eye - use / np.maximum(use.sum(2, keepdims=True), 1)


def sensitivity(hits, n1, claims, n, labels) -> list[Measure]:
    """Return d' and criterion from counts (prompts, E): claims on own texts, own texts, claims on all, all texts."""
    sums = np.stack([hits, n1, claims - hits, n - n1], -1)
    h, _, f, _ = np.moveaxis(sums.sum(0), -1, 0)
    flat = ((h + f == 0) | (h + f == n.sum(0))) & (n.sum(0) > 0)
    notes = [(flat, "constant_answer"), ((h < 10) | (f < 10), "few_expected")]
    more = {"n": n.sum(0), "clusters": (n > 0).sum(0)}
    found = [Function.of(sums, lambda s, k=k: z_scores(*np.moveaxis(s, -1, 0))[k], **more) for k in (0, 1)]
    named = zip(("d_prime", "criterion"), found, strict=True)
    return [Measure(name, of, labels | {}, notes=notes) for name, of in named]


# ---------------------------------------------------------------------------------------------------------------
# Naming an author (exact_model, lineup)


def naming_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of a task in which the evaluator names an author."""
    inside = (tally.answer >= 0) & (tally.answer < len(tally.authors))
    cells = Cells(tally.count(None if policy == "all" else tally.answer >= 0), tally.own)
    hit = tally.count(tally.answer == tally.author)
    named = tally.count(inside, author=np.where(inside, tally.answer, 0))
    claims_it = inside & (tally.answer == tally.own[tally.evaluator])
    claim, permuted = tally.count(claims_it), partial(_permuted_claims, tally, claims_it, policy)
    own, others, peers = cells.of_own, cells.over_others, cells.over_peers
    right, false = Rate.of(hit, cells.n), false_rate(tally, cells, hit, named, inside)
    h, f, x, j_each = own(right), own(false), others(right), right - false
    j = h - f
    n, claims = cells.n.sum(2), claim.sum(2)
    every = n.sum(0)
    flat = (claims.sum(0) == 0) | (claims.sum(0) == every)
    hits, n_own = (x[:, cells.e, cells.at] * cells.wrote for x in (hit, cells.n))
    one = {"evaluator": tally.evaluators}
    of_peers = peers(right) - peers(false.pick((slice(None), slice(None)), cells.valid))
    return [
        Measure("self_accuracy", h, dict(one)),
        Measure("cross_accuracy", x, dict(one)),
        Measure("overall_accuracy", Rate.of(hit.sum(2), n), dict(one)),
        Measure("advantage", h - x, dict(one), test=INVERTED, resampled=True),
        Measure("false_claim_rate", f, dict(one)),
        Measure("discrimination", j, dict(one), test=INVERTED, permutation=permuted, resampled=True,
                notes=[(flat & ~np.isnan(j.value), "constant_answer"), (~cells.wrote, "wrote_nothing")]),
        Measure("corrected_advantage", j - (x - others(false)), dict(one), n=every, test=INVERTED),
        Measure("peer_corrected", j - of_peers, dict(one), n=every.sum(), test=INVERTED),
        Measure("interaction", interaction(cells, j_each, right.weight), dict(one), n=every.sum()),
        *sensitivity(hits, n_own, claims, n, one),
        Measure("discrimination", j_each, {"evaluator": tally.evaluators[:, None], "author": tally.authors},
                n=every[:, None]),
    ]  # fmt: skip


def family_measures(tally: Tally, policy: str, families: Mapping[str, str]) -> list[Measure]:
    """Return J of a naming task with answers and authors taken for their families; families: see `recognition_table`.

    Families have unequal numbers of texts, so which of them is the evaluator's cannot be permuted.
    """
    if tally.task not in NAMING or len({families[name] for name in tally.authors if name in families}) < 2:
        return []
    tally = tally.kept(tally.heard[tally.evaluator])
    kinds, of = np.unique([families.get(name, name) for name in tally.authors], return_inverse=True)
    own = pd.Index(kinds).get_indexer([families.get(name, name) for name in tally.evaluators])
    answer = np.append(of, [len(kinds), -1])[tally.answer]  # behind the authors: another name, and no answer
    mapped = replace(tally, authors=kinds, own=own, author=of[tally.author], answer=answer)
    [j] = [m for m in naming_measures(mapped, policy) if m.statistic == "discrimination" and m.value.ndim == 1]
    at = (own >= 0) & (np.bincount(of)[own] > 1)
    notes = [(where[at], note) for where, note in j.notes]
    labels = {"evaluator": tally.evaluators[at]}
    return [Measure("family_discrimination", j.of.pick((at,)), labels, test=INVERTED, notes=notes)] * bool(at.any())


def requested_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return precision, and the accuracy of each evaluator on the texts of each author."""
    tally = tally.kept(tally.heard[tally.evaluator])
    cells = Cells(tally.count(None if policy == "all" else tally.answer >= 0), tally.own)
    if tally.task == BINARY:
        is_claim = tally.answer == 1
        claim = tally.count(is_claim)
        right = np.where(cells.is_own, claim, cells.n - claim)
    else:
        is_claim = (tally.answer >= 0) & (tally.answer == tally.own[tally.evaluator])
        claim = tally.count(is_claim)
        right = tally.count(tally.answer == tally.author)
    own_claims = (claim * cells.is_own).sum(2)
    by_author = {"evaluator": tally.evaluators[:, None], "author": tally.authors}
    notes = [(~cells.wrote, "wrote_nothing"), (~tally.heard, "no_answer")]
    precision = Rate.of(own_claims, claim.sum(2))
    return [
        Measure("precision", precision.pick((cells.e,), cells.wrote), {"evaluator": tally.evaluators}, notes=notes),
        Measure("author_accuracy", Rate.of(right, cells.n), by_author),
    ]


def false_rate(tally: Tally, cells: Cells, hit, named, inside) -> Rate:
    """Return per (e, m) the mean over t other than m of the rate at which e names m on t's texts.

    Where every author has as many rows of a prompt, it is a rate of counts.
    """
    size = len(tally.authors)
    if (cells.n == cells.n[:, :, :1]).all():
        return Rate.of(named - hit, (size - 1) * cells.n)
    other, rates = ~np.eye(size, dtype=bool), []
    for e in range(len(tally.evaluators)):
        rows = np.flatnonzero(inside & (tally.evaluator == e))
        cell = (tally.prompt[rows] * size + tally.author[rows]) * size + tally.answer[rows]
        pairs = np.bincount(cell, minlength=tally.n_prompts * size**2).reshape(-1, size, size)
        rate = Rate.of(pairs, cells.n[:, e, :, None]).mean(other & cells.valid[e][:, None], axis=-2)
        rates.append(rate)
    return stack(rates)


def interaction(cells: Cells, j_each: Statistic, weight) -> Statistic:
    """Return the interaction: e's corrected advantage minus its peers' for e over third authors."""
    operator, valid = cells.third_parties(), cells.valid & ~np.isnan(j_each.value)
    others = cells.valid & ~cells.is_own
    there = valid & (others.sum(1, keepdims=True) > others)
    value = np.where(there, np.einsum("etm,em->et", operator, np.nan_to_num(j_each.value)), np.nan)
    contrib = np.matmul(operator, np.ascontiguousarray(j_each.contrib.transpose(1, 2, 0))).transpose(2, 0, 1)
    each = Rate(value, contrib, cells.total, j_each.clusters, None, weight)
    mine = cells.of_own(each)
    found = mine - cells.over_peers(each)
    return Statistic(found.value, found.contrib, found.n, mine.clusters)


# ---------------------------------------------------------------------------------------------------------------
# Yes or no (binary_self), and scores


def binary_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of the task with a yes or no; under `all`, no answer is no claim."""
    cells = Cells(tally.count(None if policy == "all" else tally.answer >= 0), tally.own)
    claim, mine = tally.count(tally.answer == 1), cells.is_own
    permuted = partial(_permuted_claims, tally, tally.answer == 1, policy)
    claims = Rate.of(claim, cells.n)
    h, f = cells.of_own(claims), cells.over_others(claims)
    j = h - f
    tp, n1 = (claim * mine).sum(2), (cells.n * mine).sum(2)
    fp, n0 = claim.sum(2) - tp, cells.n.sum(2) - n1
    n = n1 + n0
    every = n.sum(0)
    flat = (tp + fp).sum(0) % np.maximum(every, 1) == 0
    own_share = ratio(n1.sum(0), every)
    one = {"evaluator": tally.evaluators}
    return [
        Measure("self_accuracy", h, dict(one)),
        Measure("cross_accuracy", f.complement(), dict(one)),
        Measure("advantage", h - f.complement(), dict(one), test=INVERTED, resampled=True),
        Measure("false_claim_rate", f, dict(one)),
        Measure("discrimination", j, dict(one), test=INVERTED, permutation=permuted, resampled=True,
                notes=[(flat & ~np.isnan(j.value), "constant_answer"), (~cells.wrote, "wrote_nothing")]),
        *sensitivity(tp, n1, tp + fp, n, one),
        Measure("accuracy", Rate.of(tp + n0 - fp, n), dict(one)),
        Measure("always_no_accuracy", Count(1 - own_share, 0 * n, every, (n > 0).sum(0)), dict(one)),
        Measure("balanced_accuracy", j.mapped(lambda v: (1 + v) / 2), dict(one)),
        Measure("f1", Rate.of(tp, fp + n1).mapped(lambda v: 2 * v / (1 + v)), dict(one)),
    ]  # fmt: skip


def auc_measures(tally: Tally) -> list[Measure]:
    """Return the area under the ROC of the score for own texts, over all pairs and over pairs within a prompt.

    auc_within_prompt is the share of (own, other) pairs of one prompt that the score orders rightly: it is free of
    differences between prompts. Rows without a score are left out; where they are more than a tenth, what is left is
    selected by the replies themselves and nothing is estimated (note `partly_scored`).
    """
    (tally, [(partly, note)]), found = tally.scored(), []
    for e, evaluator in enumerate(tally.evaluators):
        rows = np.flatnonzero((tally.evaluator == e) & ~np.isnan(tally.score))
        score, prompt, author = tally.score[rows], tally.prompt[rows], tally.author[rows]
        own = author == tally.own[e]
        wins, pairs = _wins_within(score, prompt, own, tally.n_prompts)
        areas = {
            "auc": Area.of(score[own], prompt[own], score[~own], prompt[~own], tally.n_prompts),
            "auc_within_prompt": Area.within(Rate.of(wins, pairs)),
        }
        nothing = not len(rows) and not partly[e], "no_scores"
        notes = [(partly[e], note), (tally.own[e] < 0, "wrote_nothing"), nothing]
        for name, area in areas.items():
            permuted = partial(_permuted_ranks, score, prompt, author, tally.own[e], name != "auc")
            labels, tests = {"evaluator": evaluator}, {"test": HALF, "permutation": permuted}
            found.append(Measure(name, area, labels, n=np.array(len(rows)), notes=notes, **tests))
    return found


def _wins_within(score, prompt, own, n_prompts: int) -> tuple[np.ndarray, np.ndarray]:
    """Count, per prompt, pairs of an own and another text, and those in which the own scores higher, ties half."""
    rank = pd.Series(score).groupby(prompt).rank().to_numpy(float)
    mine, others = (np.bincount(prompt[side], minlength=n_prompts) for side in (own, ~own))
    wins = np.bincount(prompt[own], rank[own], n_prompts) - mine * (mine + 1) / 2
    return wins, mine * others


class Count(Statistic):
    """A number that is counted, without an interval."""

    method = "count"


def _permuted_claims(tally: Tally, claim, policy: str, seed: int) -> np.ndarray:
    """Return p by permutation of discrimination per evaluator; claim: which rows claim the text."""
    keep, found = (tally.answer >= 0) | (policy == "all"), []
    for e, own in enumerate(tally.own):
        rows = np.flatnonzero(keep & (tally.evaluator == e))
        found.append(permutation_p(claim[rows], tally.prompt[rows], tally.author[rows], own, seed=seed))
    return np.array(found)


def _permuted_ranks(score, prompt, author, own: int, within: bool, seed: int) -> float:
    """Return p by permutation of an AUC: AUC - 1/2 is in proportion to the sum of the own texts' ranks.

    within: ranks within the prompt.
    """
    rank = rankdata(score)
    if within:
        order = rankdata(prompt * 4.0 + score)  # scores lie within 0 and 1
        rank = order - (np.bincount(prompt, order) / np.maximum(np.bincount(prompt), 1))[prompt]
    return permutation_p(rank, prompt, author, own, seed=seed)


# ---------------------------------------------------------------------------------------------------------------
# ROC curves: how well a probability tells own texts from others', over all thresholds


def roc_points(records: pd.DataFrame, table: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the ROC curve of each evaluator's `score` for its own texts, a row per threshold, falling.

    Columns: task, condition, evaluator, false_claims (share of others' texts at or above the threshold), hits (of own
    texts), area. table: a result table; then only evaluators whose AUC it estimates, for replies without a score would
    choose the texts otherwise. Empty without scores for own and others' texts.
    """
    from sklearn.metrics import auc, roc_curve  # takes a second

    if "score" not in records:
        return pd.DataFrame(columns=POINTS)
    design = ["task_type", "condition", "evaluator_model"]
    frame = records.assign(condition=conditions(records).astype(object))
    frame = frame[frame["score"].notna() & (frame["task_type"] != PAIRWISE)]  # there a score is of two texts
    if table is not None:
        known = table[(table["statistic"] == "auc") & table["estimate"].notna()]
        known = pd.MultiIndex.from_frame(known[["task", "condition", "evaluator"]])
        frame = frame[pd.MultiIndex.from_frame(frame[design]).isin(known)]
    parts = []
    for key, rows in frame.groupby(design, sort=False):
        own = (rows["true_model"] == rows["evaluator_model"]).to_numpy()
        if own.any() and not own.all():
            x, y, _ = roc_curve(own, rows["score"].astype(float), drop_intermediate=False)
            parts.append(pd.DataFrame(dict(zip(POINTS, [*key, x, y, auc(x, y)], strict=True))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=POINTS)
