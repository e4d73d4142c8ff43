"""Statistics of self-recognition: prediction records in, one long table of estimates out.

`recognition_table` is the front door. A naming evaluator that never looks at the text and names
itself with probability q has advantage A = (N q - 1) / (N - 1), at ten authors from -0.11 to +1.00;
its discrimination J is 0. So A is for comparison with other studies; read J and its corrections.

    H  self_accuracy         own texts claimed (naming tasks: named correctly)
    F  false_claim_rate      others' texts claimed, mean over their authors
    x  cross_accuracy        accuracy on others' texts, mean over their authors (binary: 1 - F)
    A  advantage             H - x (Bai et al. 2025, arXiv 2510.03399)
    J  discrimination        H - F; per author m: names m on m's texts, minus on the others' texts
       corrected_advantage   J[e,e] minus the mean over others m of J[e,m]
    D  peer_corrected        J[e,e] minus the mean over peers j of J[j,e]; where no author is named
                             J[j,e] is what j claims of e's texts minus what it claims of others'

Policy `all`: every row is in the denominator and no answer counts as "did not claim" (so as a
correct rejection in the binary task). Policy `answered`: rows with an answer only. The sampled unit
is the prompt. What is measured of pairs of texts: `selfeval.recognition.pairs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from selfeval.condition import condition_of, conditions
from selfeval.reading.parsing import DOUBTFUL
from selfeval.recognition.counts import Tally, tallies
from selfeval.recognition.pairs import beyond_neutral, neutral_measures, pair_measures
from selfeval.recognition.peers import FEW_AUTHORS, claims_p
from selfeval.records.tasks import CLAIMS, PAIRS
from selfeval.statistics.intervals import (
    Area,
    Count,
    Difference,
    Rate,
    Statistic,
    check_level,
    oppose,
    ratio,
)
from selfeval.statistics.resampling import Settings
from selfeval.statistics.table import (
    HALF,
    INVERTED,
    PERCENTILE,
    RECOGNISES,
    Measure,
    adjust_p,
    answers_differ,
    policies_note,
    side_of,
    write,
)
from selfeval.statistics.tests import detectable_rates, one_sided_p, permutation_p

ANSWERED_FIRST = (  # read first under policy `answered`, as are all statistics of pairs
    "overall_accuracy",
    "accuracy",
    "always_no_accuracy",
    "balanced_accuracy",
    "f1",
    "position_bias",
)
OF_SCORES = ("auc", "mean_probability")  # how statistics of scores begin
# Prompts below which Holm's adjustment holds less than it says.
FEW_TESTED = 20
CHANCE = {"discrimination": 0.0, "auc": HALF, "auc_within_prompt": HALF}
# In pairs of texts; elsewhere these statistics mean something else.
CHANCE_OF_PAIRS = {
    "self_accuracy": HALF,
    "own_minus_neutral": 0.0,
    "pair_fixed": 0.0,
}
# Of the prompts that an evaluator was asked about, the share with own and others' texts below which
# only these count, and how many of these there must be for a conclusion.
SHARED = 0.8
LEAST_SHARED = 6
# Columns of ROC curves.
POINTS = ["task", "condition", "evaluator", "false_claims", "hits", "area"]


def recognition_table(
    predictions: pd.DataFrame | Iterable[Tally],
    *,
    n_resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute all statistics with intervals and tests, one row per statistic and method.

    predictions: prediction records, or their tallies; needs `evaluator_model`, `true_model`,
    `task_type`, `text_id`, and `predicted_model` (naming tasks) or `predicted_self` (others); uses
    `prompt_id` (else `prompt_used`), `condition`, `score`, `position`, `other_model`,
    `other_text_id` and `repeat` where present. Each (task, condition) is analysed by itself; its
    authors are the candidates.

    Returns `stats.COLUMNS`. The first row of a statistic is the default, by the rules of
    `statistics.intervals`; of advantage and discrimination `percentile`, the bootstrap over
    prompts, follows (`seed`; not per author). The second policy is reported where it differs.

    p on the default row inverts the default interval, so that the two never disagree: of
    discrimination, advantage, corrected_advantage, peer_corrected and own_minus_neutral against 0,
    of auc and auc_within_prompt against .5. self_accuracy and mean_probability of pairs have the
    exchange of the own text and the other within a prompt, against .5 (`rearranged_p`).
    p_permutation, of discrimination and both AUCs, permutes which author of a prompt is the
    evaluator (`permutation_p`: exact, or 9,999 draws with `seed`), and is empty where the
    authors of a prompt have unequal numbers of rows. Alone it finds blind evaluators out too often
    where own answers are alike over repeats and others' are not (.09 to .16 at .05). p_holm adjusts
    the larger of p and p_permutation over the evaluators of a task and condition.
    conclusion and detectable: see `statistics.table`.

    Notes:
    not_estimable: no estimate (NaN).
    wrote_nothing: of J and the AUCs, no text here is its own.
    no_answer: the evaluator gave none. Only no_answer_rate and what rests on scores is estimable.
    no_interval: an estimate without one, from a single prompt or where nothing varies.
    constant_answer: it claimed every text or none; a result, J = 0.
    few_prompts, few_texts: below 40, so intervals are wide and other methods' optimistic.
    few_prompts_dominate: a few hold most rows (Kish's number below 10; below 2 no estimate).
    answers_differ: the share without an answer differs between own and others' texts.
    depends_on_no_answers: the two policies lie on different sides of chance, or one has no
    interval. too_few_answers: nothing is left among answers alone.
    shared_prompts: of prompts with own and others' texts alone, fewer than four in five.
    few_shared_prompts: fewer than six of these, so nothing is concluded.
    no_peers: no other evaluator was asked about its texts and a third author's, or none varies.
    peers_p=P: of J, the AUCs and pairs above chance, the one-sided p beyond the peers (`peers`).
    few_authors: recognised among fewer than 20, where a taste of its own would look the same.
    holm_few_prompts: several evaluators are tested on fewer than 20 prompts.
    constant: every resample is alike, so the interval has no width and no meaning.
    no_scores, partly_scored: of AUC, no row has a score, or under nine in ten.
    least_p=P: of pairs, so few prompts can be exchanged that no p is below P.
    one_order: of pairs, the own text always stood at one place, and a habit would look the same.
    clusters_are_texts: the file names no prompt, so `clusters` counts texts.
    few_answers: more than a fifth of this evaluator's questions have no answer.
    """
    settings = Settings(n_resamples, level, seed)
    parts = [_of_tally(tally, settings) for tally in tallies(predictions)]
    return _few_answers(pd.concat(parts, ignore_index=True))


def _add_note(table: pd.DataFrame, rows, note: str) -> pd.DataFrame:
    """Return the table with a note more on some rows (a mask)."""
    longer = (table["note"] + "; " + note).str.removeprefix("; ")
    return table.assign(note=table["note"].mask(rows, longer))


def _few_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Note what rests on the answers of evaluators that left more than a fifth unanswered."""
    evaluators = pd.MultiIndex.from_frame(table[["task", "condition", "evaluator"]])
    is_rate = table["statistic"].str.endswith("no_answer_rate")
    is_doubtful = is_rate & table["estimate"].between(DOUBTFUL, 1, "neither")
    rests_on_scores = table["statistic"].str.startswith("auc")
    few = evaluators.isin(evaluators[is_doubtful]) & ~is_rate & ~rests_on_scores
    return _add_note(table, few, "few_answers")


def _of_tally(tally: Tally, settings: Settings) -> pd.DataFrame:
    """Return the table of one task and condition, in each group the policy to read first first."""
    is_pairs = tally.task in PAIRS
    policies = ["all"]
    if (tally.answer < 0).any():
        policies = ["answered", "all"] if is_pairs else ["all", "answered"]
    measures = []
    for policy in policies:
        of_policy = measures_of(tally, policy)
        measures += [replace(m, labels={**m.labels, "policy": policy}) for m in of_policy]
    settings = replace(settings, unit="text" if tally.note else "prompt")
    table = write(measures, settings, task=tally.task, condition=tally.condition, note=tally.note)
    gives_scores = table["evaluator"].isin(tally.evaluators[tally.scores_alone])  # and no answer
    table = table[~gives_scores | table["statistic"].str.startswith(OF_SCORES)]
    if len(policies) > 1 and not is_pairs:
        table = _note_dependence(table)
    table = _ordered(table, is_pairs, len(policies) == 1)
    by_author = table["author"] != ""
    by_evaluator = table["evaluator"] != ""
    table = adjust_p(
        table,
        ["policy", "statistic", by_author, by_evaluator],
        FEW_TESTED,
        chance=_chance(table),
    )
    is_recognised = table["conclusion"].str.startswith(RECOGNISES)
    are_few = len(tally.authors) + is_pairs < FEW_AUTHORS
    return _add_note(table, is_recognised & are_few, "few_authors")


def _chance(table: pd.DataFrame) -> pd.Series:
    """Return what each row is for who tells nothing apart; NaN where nothing is concluded.

    Which text of a pair is better, or whether a text is good, is a question about quality. Nothing
    is concluded of names for single authors' texts, nor of questions about another author.
    """
    is_pairwise = table["task"].isin(PAIRS)
    of_pairs = table["statistic"].map(CHANCE_OF_PAIRS).where(is_pairwise)
    chance = table["statistic"].map(CHANCE).fillna(of_pairs)
    asked = condition_of(table["condition"].iloc[0])
    if asked.get("question") in ("better", "good") or asked.get("about"):
        return chance * np.nan
    return chance.mask(table["author"] != "")


def _ordered(table: pd.DataFrame, is_pairs: bool, policies_agree: bool) -> pd.DataFrame:
    """Return rows by evaluator, author and statistic, without a second policy that says the same.

    Per author `answered` comes first in every task.
    """
    answered_first = table["statistic"].isin(ANSWERED_FIRST) | is_pairs
    answered_first &= ~table["statistic"].str.endswith("no_answer_rate")
    if policies_agree:
        table["policy"] = np.where(answered_first, "answered", "all")
    is_second = (table["policy"] == "answered") != answered_first
    swapped = (table["author"] != "") & ~answered_first
    said = ["evaluator", "author", "statistic", "method", "estimate", "n"]
    says_the_same = table.duplicated(said, keep=False)
    table = table.assign(place=pd.factorize(table["statistic"])[0], later=is_second ^ swapped)
    table = table[~(says_the_same & is_second)]
    table = table.sort_values(["evaluator", "author", "place", "later"], kind="stable")
    return table.drop(columns=["place", "later"])


def _note_dependence(table: pd.DataFrame) -> pd.DataFrame:
    """Note what is recognised under one policy and not under the other."""
    is_default = (table["statistic"] == "discrimination") & (table["method"] != PERCENTILE)
    rows = table[is_default]
    rows = rows.assign(side=side_of(0, rows["low"], rows["high"]))
    sides = rows.pivot(index=["evaluator", "author"], columns="policy", values="side")
    sides = sides.reindex(columns=["all", "answered"])  # of scores alone there are none
    notes = pd.Series(policies_note(sides["all"], sides["answered"]), sides.index)
    note_of = rows.set_index(["evaluator", "author"]).index.map(notes)
    for note in notes[notes != ""].unique():
        table = _add_note(table, table.index.isin(rows.index[note_of == note]), note)
    return table


def measures_of(tally: Tally, policy: str) -> list[Measure]:
    """Return all statistics of a task and condition under a policy.

    Of an evaluator without a single answer only what rests on scores is known (note no_answer); it
    is nobody's peer.
    """
    if tally.task in PAIRS:
        measure = neutral_measures if tally.neutral else pair_measures
        measures = measure(tally, policy)
        if not np.isnan(tally.score).all() and not tally.neutral:
            p_beyond = beyond_neutral(tally, measures)
            measures += auc_measures(tally.by_place(), beyond=p_beyond)
    else:
        shared, notes = on_shared_prompts(tally)
        measures = _of_single_texts(shared, policy, notes)
        if not np.isnan(tally.score).all():
            measures += auc_measures(shared, notes)
    if policy == "all":
        unanswered = tally.count(tally.answer < 0)
        rate = Rate.of(unanswered.sum(2), tally.count().sum(2))
        name = "no_answer_rate"
        if tally.neutral:
            name = "neutral_no_answer_rate"
        measures.append(Measure(name, rate, {"evaluator": tally.evaluators}))
    return measures


def on_shared_prompts(tally: Tally) -> tuple[Tally, list[tuple]]:
    """Return the tally of prompts with own and others' texts, where a fifth have not, and notes.

    Own texts on one set of prompts against others' on another would be a comparison of prompts.
    Where fewer than six have both, all rows stay and nothing is concluded.
    """
    asked = tally.count() > 0
    is_own = np.arange(asked.shape[2]) == tally.own[:, None]
    has_both = (asked & is_own).any(2) & (asked & ~is_own).any(2)
    shared = has_both.sum(0)
    is_known = (tally.own >= 0) & (tally.note == "")
    are_few = is_known & (shared < LEAST_SHARED)
    is_partial = is_known & ~are_few & (shared < SHARED * asked.any(2).sum(0))
    notes = [(is_partial, "shared_prompts"), (are_few, "few_shared_prompts")]
    if is_partial.any():
        rows = ~is_partial[tally.evaluator] | has_both[tally.prompt, tally.evaluator]
        tally = tally.kept(rows)
    return tally, notes


def _of_single_texts(tally: Tally, policy: str, notes: Sequence[tuple]) -> list[Measure]:
    """Return the statistics of a question about one text, with notes (which evaluators, text)."""
    heard = tally.kept(tally.heard[tally.evaluator])
    measure = binary_measures if tally.task in CLAIMS else naming_measures
    measures = measure(heard, policy)
    cells = Cells(tally.count(), tally.own)
    unanswered = Rate.of(tally.count(tally.answer < 0), cells.n)
    sides = cells.of_own(unanswered), cells.over_others(unanswered)
    differ, note = answers_differ(check_level(0.95), *sides)
    for m in measures:
        by_author = m.value.ndim > 1
        of_all = [(~tally.heard, "no_answer"), *notes]
        m.notes = [*m.notes, *((_column(where, by_author), text) for where, text in of_all)]
        if m.statistic in ("discrimination", "advantage"):
            m.notes.append((_column(differ, by_author), note))
    return measures


def _column(mask: np.ndarray, by_author: bool) -> np.ndarray:
    """Return a mask of evaluators, as a column where values are by author too."""
    return mask[:, None] if by_author else mask


# --------------------------------------------------------------------------------------------------
# Means of rates over authors and over peers


@dataclass(eq=False)
class Cells:
    """Counts n of a task (prompts, evaluators, authors), and evaluators' author indices or -1."""

    n: np.ndarray
    own: np.ndarray

    def __post_init__(self):
        self.wrote = self.own >= 0
        self.own_author = np.maximum(self.own, 0)
        self.evaluator = np.arange(len(self.own))
        self.is_own = np.arange(self.n.shape[2]) == self.own[:, None]
        self.valid = self.n.sum(0) > 0

    def of_own(self, statistic: Statistic) -> Statistic:
        """Return each evaluator's value for its own name; NaN where it wrote nothing."""
        return statistic.pick((self.evaluator, self.own_author), self.wrote)

    def over_others(self, rate: Rate) -> Rate:
        """Return each evaluator's mean over the authors other than itself."""
        return rate.mean(self.valid & ~self.is_own)

    def false_claims(self, claims: np.ndarray) -> Rate:
        """Return the mean over other authors of the rate at which their texts are claimed.

        claims: counts, as `n`. Where every author has as many rows of a prompt, it is a rate of
        counts. NaN where the evaluator wrote nothing.
        """
        is_other = np.arange(self.n.shape[2]) != self.own_author[:, None]
        if (self.n == self.n[:, :, :1]).all():
            rate = Rate.of((claims * is_other).sum(2), (self.n * is_other).sum(2))
        else:
            rate = Rate.of(claims, self.n).mean(self.valid & is_other)
        return rate.pick((self.evaluator,), self.wrote)

    def by_peers(self, claims: np.ndarray) -> Difference:
        """Return what peers claim of each evaluator's texts, minus what of third authors' texts."""
        of_others = claims * ~self.is_own
        asked = self.n * ~self.is_own
        hits = of_others.sum(2, keepdims=True) - of_others
        thirds = Rate.of(hits, asked.sum(2, keepdims=True) - asked)
        is_known = self.valid & ~np.isnan(thirds.value)
        everywhere = np.s_[:, :]
        of_texts = Rate.of(claims, self.n).pick(everywhere, is_known)
        return self.over_peers(of_texts) - self.over_peers(thirds.pick(everywhere, is_known))

    def over_peers(self, rate: Rate) -> Rate:
        """Return each evaluator's mean over the others of their rates for its name."""
        rate_for_name = rate.pick((slice(None), self.own_author))
        is_peer = self.evaluator[:, None] != self.evaluator
        return rate_for_name.mean(is_peer & self.wrote, axis=-2)


def counted_rows(tally: Tally, policy: str) -> np.ndarray:
    """Return which rows a policy counts."""
    return (tally.answer >= 0) | (policy == "all")


def _counted_cells(tally: Tally, policy: str) -> Cells:
    """Return the cells of the rows that a policy counts."""
    return Cells(tally.count(counted_rows(tally, policy)), tally.own)


def claimed_rows(tally: Tally) -> np.ndarray:
    """Return which rows claim the text for the evaluator; not of pairs."""
    if tally.task in CLAIMS:
        return tally.answer == 1
    return (tally.answer >= 0) & (tally.answer == tally.own[tally.evaluator])


def claims_apart(tally: Tally, policy: str) -> Difference:
    """Return J of each evaluator, with the mean over other authors of the rates at which it claims.

    NaN where it gave no answer.
    """
    tally = tally.kept(tally.heard[tally.evaluator])
    cells = _counted_cells(tally, policy)
    claim_rate = Rate.of(tally.count(claimed_rows(tally)), cells.n)
    return cells.of_own(claim_rate) - cells.over_others(claim_rate)


def _discrimination(tally: Tally, cells: Cells, of: Difference, by_peers, policy: str) -> Measure:
    """Return J with its tests and notes; by_peers: what is taken off for D."""
    rows = cells.n.sum((0, 2))
    by_cell = tally.count(claimed_rows(tally))
    claims = by_cell.sum((0, 2))
    is_constant = (claims == 0) | (claims == rows)
    is_constant &= ~np.isnan(of.value)
    has_interval = ~np.isnan(of.value) & (of.kish > 1)
    return Measure(
        "discrimination",
        of,
        {"evaluator": tally.evaluators},
        test=INVERTED,
        permutation=partial(_permuted_claims, tally, policy),
        beyond=partial(claims_p, tally, by_cell),
        detectable=detectable_rates(of, by_peers, tests=has_interval.sum()),
        resampled=True,
        notes=[(is_constant, "constant_answer"), (~cells.wrote, "wrote_nothing")],
    )


# --------------------------------------------------------------------------------------------------
# Naming an author (exact_model, lineup)


def naming_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of a task in which the evaluator names an author."""
    cells = _counted_cells(tally, policy)
    names_author = (tally.answer >= 0) & (tally.answer < len(tally.authors))
    claims = tally.count(claimed_rows(tally))
    hits = tally.count(tally.answer == tally.author)

    accuracy = Rate.of(hits, cells.n)
    false_rate = wrong_name_rate(tally, cells, names_author)
    self_accuracy = cells.of_own(accuracy)
    cross_accuracy = cells.over_others(accuracy)
    false_claim_rate = cells.false_claims(claims)
    discrimination = self_accuracy - false_claim_rate
    for_other_names = cross_accuracy - cells.over_others(false_rate)
    known_false_rate = false_rate.pick((slice(None), slice(None)), cells.valid)
    by_peers = cells.over_peers(accuracy) - cells.over_peers(known_false_rate)

    rows = cells.n.sum(2)
    rows_each = rows.sum(0)
    who = {"evaluator": tally.evaluators}
    by_author = {"evaluator": tally.evaluators[:, None], "author": tally.authors}
    of_names = accuracy - false_rate
    if tally.is_unlinked:
        discrimination = oppose(discrimination)
        of_names = oppose(of_names)
    corrected = discrimination - for_other_names
    peer_corrected = discrimination - by_peers
    advantage = self_accuracy - cross_accuracy
    return [
        Measure("self_accuracy", self_accuracy, who),
        Measure("cross_accuracy", cross_accuracy, who),
        Measure("overall_accuracy", Rate.of(hits.sum(2), rows), who),
        Measure("advantage", advantage, who, test=INVERTED, resampled=True),
        Measure("false_claim_rate", false_claim_rate, who),
        _discrimination(tally, cells, discrimination, by_peers, policy),
        Measure("corrected_advantage", corrected, who, n=rows_each, test=INVERTED),
        Measure("peer_corrected", peer_corrected, who, n=rows_each.sum(), test=INVERTED),
        Measure("discrimination", of_names, by_author, n=rows_each[:, None]),
    ]


def wrong_name_rate(tally: Tally, cells: Cells, names_author) -> Rate:
    """Return per (e, m) the mean over t other than m of the rate at which e names m on t's texts.

    names_author: which rows name an author. Not to be resampled.
    """
    size = len(tally.authors)
    is_other = ~np.eye(size, dtype=bool)
    value = np.empty(cells.valid.shape)
    n = np.empty(cells.valid.shape, int)
    contrib = np.empty(cells.n.shape)
    weight = np.empty(cells.n.shape)
    for e in range(len(tally.evaluators)):
        rows = tally.kept(names_author & (tally.evaluator == e))
        asked = cells.n[:, e].astype(float)
        total = asked.sum(0)[:, None]
        named = np.zeros((size, size))
        np.add.at(named, (rows.author, rows.answer), 1)

        # What one row of an author (first axis) says of a name (second axis).
        is_counted = is_other & cells.valid[e][:, None]
        authors = np.maximum(is_counted.sum(0), 1)
        share = is_counted / authors / np.maximum(total, 1)
        hits = np.zeros((tally.n_prompts, size))
        np.add.at(hits, (rows.prompt, rows.answer), share[rows.author, rows.answer])

        value[e] = np.where(is_counted.any(0), (share * named).sum(0), np.nan)
        n[e] = (is_counted * total).sum(0)
        expected = asked @ (share * named / np.maximum(total, 1))
        contrib[:, e] = hits - expected
        weight[:, e] = asked @ share
    return Rate(value, contrib, n, (weight > 0).sum(0), weight=weight)


# --------------------------------------------------------------------------------------------------
# Yes or no (binary_self), and scores


def binary_measures(tally: Tally, policy: str) -> list[Measure]:
    """Return the statistics of the task with a yes or no; under `all`, no answer is no claim."""
    cells = _counted_cells(tally, policy)
    claims = tally.count(claimed_rows(tally))
    claim_rate = Rate.of(claims, cells.n)
    self_accuracy = cells.of_own(claim_rate)
    false_claim_rate = cells.over_others(claim_rate)
    cross_accuracy = false_claim_rate.complement()
    discrimination = self_accuracy - false_claim_rate
    balanced_accuracy = discrimination.mapped(lambda j: (1 + j) / 2)

    n = cells.n.sum(2)
    n_own = (cells.n * cells.is_own).sum(2)
    n_other = n - n_own
    own_claims = (claims * cells.is_own).sum(2)
    false_claims = claims.sum(2) - own_claims
    right = own_claims + n_other - false_claims
    rows = n.sum(0)
    other_share = 1 - ratio(n_own.sum(0), rows)
    always_no = Count(other_share, np.zeros(n.shape), rows, (n > 0).sum(0))
    jaccard = Rate.of(own_claims, false_claims + n_own)  # F1 is 2 v / (1 + v) of it
    f1 = jaccard.mapped(lambda v: 2 * v / (1 + v))
    who = {"evaluator": tally.evaluators}
    advantage = self_accuracy - cross_accuracy
    by_peers = cells.by_peers(claims)
    peer_corrected = discrimination - by_peers
    return [
        Measure("self_accuracy", self_accuracy, who),
        Measure("cross_accuracy", cross_accuracy, who),
        Measure("advantage", advantage, who, test=INVERTED, resampled=True),
        Measure("false_claim_rate", false_claim_rate, who),
        _discrimination(tally, cells, discrimination, by_peers, policy),
        Measure("peer_corrected", peer_corrected, who, n=rows.sum(), test=INVERTED),
        Measure("accuracy", Rate.of(right, n), who),
        Measure("always_no_accuracy", always_no, who),
        Measure("balanced_accuracy", balanced_accuracy, who),
        Measure("f1", f1, who),
    ]


def auc_measures(
    tally: Tally, notes_of_all: Sequence[tuple] = (), beyond: np.ndarray | None = None
) -> list[Measure]:
    """Return the area under the ROC of the score for own texts, over all pairs and within a prompt.

    auc_within_prompt is the share of (own, other) pairs of one prompt that the score orders
    rightly: it is free of differences between prompts. Rows without a score are left out; where
    they are more than a tenth, what is left is selected by the replies themselves and nothing is
    estimated (note `partly_scored`). auc_peer_corrected is auc_within_prompt minus the mean over
    peers of the same by their scores. notes_of_all: (which evaluators, text). beyond: p beyond the
    peers, of pairs.
    """
    tally, [(partly, partly_scored)] = tally.scored()
    measures = []
    for e, evaluator in enumerate(tally.evaluators):
        own_author = tally.own[e]
        rows = tally.kept((tally.evaluator == e) & ~np.isnan(tally.score))
        score = rows.score
        prompt = rows.prompt
        is_own = rows.author == own_author
        own_side = score[is_own], prompt[is_own]
        other_side = score[~is_own], prompt[~is_own]
        notes = [
            (partly[e], partly_scored),
            (own_author < 0, "wrote_nothing"),
            (len(score) == 0 and not partly[e], "no_scores"),
            *((where[e], note) for where, note in notes_of_all),
        ]
        areas = {
            "auc": Area.of(*own_side, *other_side, tally.n_prompts),
            "auc_within_prompt": area_within_prompts(rows, own_author),
        }
        if beyond is None:
            corrected = areas["auc_within_prompt"] - _peer_area(tally, e)
            who = {"evaluator": evaluator}
            measures.append(Measure("auc_peer_corrected", corrected, who, test=INVERTED))
            p_beyond = one_sided_p(corrected, check_level(0.95))
        else:
            p_beyond = beyond[e]
        for name, area in areas.items():
            within = name == "auc_within_prompt"
            measures.append(
                Measure(
                    name,
                    area,
                    {"evaluator": evaluator},
                    n=np.array(len(score)),
                    test=HALF,
                    permutation=partial(_permuted_ranks, rows, own_author, within),
                    beyond=partial(np.where, True, p_beyond),
                    notes=notes,
                )
            )
    return measures


def area_within_prompts(rows: Tally, own_author: int) -> Statistic:
    """Return how often the score of rows orders an own and another text of one prompt rightly."""
    is_own = rows.author == own_author
    wins, pairs = _wins_within(rows.score, rows.prompt, is_own, rows.n_prompts)
    return Area.within(Rate.of(wins, pairs))


def _peer_area(tally: Tally, e: int) -> Rate:
    """Return the mean over peers of how their scores order e's texts and third authors'."""
    rows = tally.kept(~np.isnan(tally.score) & (tally.author != tally.own[tally.evaluator]))
    n_prompts, size, _ = tally.shape
    cell = rows.prompt * size + rows.evaluator
    counted = _wins_within(rows.score, cell, rows.author == tally.own[e], n_prompts * size)
    wins, pairs = (number.reshape(n_prompts, size) for number in counted)
    return Rate.of(wins, pairs).mean(np.arange(size) != e)


def _wins_within(score, prompt, is_own, n_prompts: int) -> tuple[np.ndarray, np.ndarray]:
    """Count, per prompt, pairs in which the own text scores higher, ties half, and all pairs."""
    rank = pd.Series(score).groupby(prompt).rank().to_numpy(float)
    n_own = np.bincount(prompt[is_own], minlength=n_prompts)
    n_other = np.bincount(prompt[~is_own], minlength=n_prompts)
    own_ranks = np.bincount(prompt[is_own], rank[is_own], n_prompts)
    return own_ranks - n_own * (n_own + 1) / 2, n_own * n_other


def _permuted_claims(tally: Tally, policy: str, seed: int) -> np.ndarray:
    """Return p by permutation of J per evaluator."""
    counted = counted_rows(tally, policy)
    p = np.empty(len(tally.own))
    for e, own_author in enumerate(tally.own):
        rows = tally.kept(counted & (tally.evaluator == e))
        claims = claimed_rows(rows)
        p[e] = permutation_p(claims, rows.prompt, rows.author, own_author, seed=seed)
    return p


def _permuted_ranks(rows: Tally, own_author: int, within: bool, seed: int) -> float:
    """Return p by permutation of an AUC, by the sum of the own texts' ranks, which grows with it.

    within: ranks within the prompt.
    """
    prompt = rows.prompt
    rank = pd.Series(rows.score).rank().to_numpy()
    if within:
        # Scores lie within 0 and 1.
        order = pd.Series(prompt * 4.0 + rows.score).rank().to_numpy()
        size = np.maximum(np.bincount(prompt), 1)
        mean_order = np.bincount(prompt, order) / size
        rank = order - mean_order[prompt]
    return permutation_p(rank, prompt, rows.author, own_author, seed=seed)


# --------------------------------------------------------------------------------------------------
# ROC curves: how well a probability tells own texts from others', over all thresholds


def roc_points(records: pd.DataFrame, table: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return each evaluator's ROC curve of `score` for own texts, a row per threshold, falling.

    Columns: task, condition, evaluator, false_claims (share of others' texts at or above the
    threshold), hits (of own texts), area. table: a result table; then only evaluators whose AUC it
    estimates, for replies without a score would choose the texts otherwise. Empty without scores
    for own and others' texts.
    """
    curves = [pd.DataFrame(columns=POINTS)]
    if "score" not in records or records["score"].isna().all():
        return curves[0]
    from sklearn.metrics import auc, roc_curve  # takes a second

    design = ["task_type", "condition", "evaluator_model"]
    frame = records.assign(condition=conditions(records).astype(object))
    of_one_text = ~frame["task_type"].isin(PAIRS)
    frame = frame[frame["score"].notna() & of_one_text]
    if table is not None:
        estimated = table[(table["statistic"] == "auc") & table["estimate"].notna()]
        keys = pd.MultiIndex.from_frame(estimated[["task", "condition", "evaluator"]])
        frame = frame[pd.MultiIndex.from_frame(frame[design]).isin(keys)]
    for (task, condition, evaluator), rows in frame.groupby(design, sort=False):
        is_own = (rows["true_model"] == evaluator).to_numpy()
        if is_own.all() or not is_own.any():
            continue
        score = rows["score"].astype(float)
        false_claims, hits, _ = roc_curve(is_own, score, drop_intermediate=False)
        curve = pd.DataFrame({"false_claims": false_claims, "hits": hits})
        area = auc(false_claims, hits)
        curve = curve.assign(task=task, condition=condition, evaluator=evaluator, area=area)
        curves.append(curve[POINTS])
    return pd.concat(curves[1:] or curves, ignore_index=True)
