"""Blind evaluators in small designs: how often tests reject, intervals cover, and words are said.

Run it for `small.csv`, `family.csv`, `unanswered.csv`, `words.csv`, `habits.csv`, `power.csv` and `regression.csv` in
`data/validation/`:
python bench/simulate_small.py 4000

An evaluator says yes with one chance, whoever wrote the text. Answers go together as real ones do: on a prompt, and on
an author's texts for a prompt. With two authors and one row each, J is also the claim discrimination of one reply per
arm, and the share of pairs ordered rightly is also the paired accuracy of a jury. What is measured is what the package
reports.

For `words.csv` every author evaluates, and an evaluator claims a text with the probit of its habit, of a taste for the
author that all share (or its own), of the prompt and the text, and of what it recognises in its own texts.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats
from scipy.special import ndtr, ndtri

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from selfeval.recognition.contrasts import d_prime  # noqa: E402
from selfeval.recognition.peers import beyond_peers_p  # noqa: E402
from selfeval.statistics import tests  # noqa: E402
from selfeval.statistics.intervals import Area, Difference, Rate, Statistic, check_level, oppose, ratio  # noqa: E402
from selfeval.statistics.resampling import Settings  # noqa: E402
from selfeval.statistics.table import INVERTED, Measure, adjust_p, write  # noqa: E402
from selfeval.statistics.tests import detectable_rates, holm, inverted_p, permutation_p  # noqa: E402
from selfeval.stats import recognition_table  # noqa: E402

Z, ALPHA = check_level(0.95), 0.05
PROMPTS, AUTHORS, ROWS = (6, 8, 12, 20, 40), (2, 3, 6), (1, 3)
RATES = (0.1, 0.3, 0.5, 0.8)  # chance of a yes
TOGETHER = {
    "alone": (0.0, 0.0),
    "by text": (0.6, 0.2),
    "by prompt": (0.2, 0.5),
}  # follows the author's texts, the prompt
ORDERED = (0.5, 0.92)  # true AUC within prompts
FOLDER = Path(__file__).resolve().parent.parent / "data" / "validation"


def draws(shape: tuple[int, int, int, int], by_text: float, by_prompt: float, rng: np.random.Generator) -> np.ndarray:
    """Draw uniform numbers (prompts, tables, authors, rows) that partly follow the author's texts and the prompt."""
    prompts, tables, authors, _ = shape
    own = rng.random(shape)
    of_text = rng.random((prompts, tables, authors, 1))
    of_prompt = rng.random((prompts, tables, 1, 1))
    found = np.where(rng.random(shape) < by_text, of_text, own)
    return np.where(rng.random(shape) < by_prompt, of_prompt, found)


def discrimination(claims: np.ndarray) -> Difference:
    """Return J of tables of claims (prompts, tables, authors, rows); the first author is the evaluator."""
    counts = claims.sum(3)
    each = Rate.of(counts, np.full(counts.shape, claims.shape[3]))
    own, others = each.pick((slice(None), 0)), each.pick((slice(None), slice(1, None)))
    return own - others.mean(np.ones(others.value.shape))


def ordered_pairs(scores: np.ndarray) -> Statistic:
    """Return the AUC within prompts of tables of scores, shaped as claims are."""
    own, others = scores[:, :, 0], scores[:, :, 1:].reshape(*scores.shape[:2], -1)
    wins = (own[..., None] > others[:, :, None]).sum((2, 3))
    return Area.within(Rate.of(wins, np.full(wins.shape, own.shape[2] * others.shape[2])))


def outcome(of: Statistic, null: float, truth: float) -> dict[str, float]:
    """Return how often the interval leaves out the null, how often it covers the truth, and its mean width."""
    low, high = of.interval(Z)
    return {
        "rejected": float(((low > null) | (high < null)).mean()),
        "coverage": float(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).mean()),
        "mean_width": float(np.nanmean(high - low)),
    }


def designs():
    """Yield authors, rows and prompts of every small design."""
    for authors in AUTHORS:
        for rows in ROWS:
            for prompts in PROMPTS:
                yield authors, rows, prompts


def small(tables: int, seed: int) -> pd.DataFrame:
    """Return J, the difference of two evaluators' J, and the AUC within prompts: a row per design and rate of yes."""
    found = []
    for authors, rows, prompts in designs():
        shape = (prompts, tables, authors, rows)
        for number, (name, follows) in enumerate(TOGETHER.items()):
            about = {"authors": authors, "rows": rows, "prompts": prompts, "together": name}
            rng = np.random.default_rng([seed, authors, rows, prompts, number])
            for rate in RATES:
                first, second = (discrimination(draws(shape, *follows, rng) < rate) for _ in range(2))
                for statistic, of in {"discrimination": first, "compare": first - second}.items():
                    found.append({"statistic": statistic, **about, "truth": rate, **outcome(of, 0, 0)})
            for auc in ORDERED:
                scores = ndtri(draws(shape, *follows, rng))
                scores[:, :, 0] += np.sqrt(2) * ndtri(auc)
                scores += rng.normal(scale=1e-6, size=shape)  # equal answers to two texts are put in an order by chance
                of = ordered_pairs(scores)
                truth = 0.5 if auc == 0.5 else float(of.value.mean())
                found.append({"statistic": "auc_within_prompt", **about, "truth": auc, **outcome(of, 0.5, truth)})
    return pd.DataFrame(found).assign(tables=tables, seed=seed)


def family(tables: int, seed: int) -> pd.DataFrame:
    """Return how often one or more of several blind evaluators has p_holm <= .05; they are the authors.

    As in `stats.table.adjust_p`, the larger of p and p_permutation is adjusted.
    """
    found = []
    for evaluators in (5, 10):
        for rows in ROWS:
            for prompts in PROMPTS:
                for number, (name, follows) in enumerate(TOGETHER.items()):
                    for rate in (1 / evaluators, 0.5):
                        rng = np.random.default_rng([seed, evaluators, rows, prompts, number, round(100 * rate)])
                        shape = (prompts, tables * evaluators, evaluators, rows)
                        claims = draws(shape, *follows, rng) < rate
                        p = inverted_p(discrimination(claims), 0, Z)
                        p = larger_p(p, claims).reshape(tables, evaluators)
                        least = np.array([np.nanmin(holm(each)) for each in p])
                        found.append({
                            "evaluators": evaluators, "rows": rows, "prompts": prompts, "together": name,
                            "rate": rate, "family_wise": float((least <= ALPHA).mean()),
                        })  # fmt: skip
    return pd.DataFrame(found).assign(tables=tables, seed=seed)


def larger_p(p: np.ndarray, claims: np.ndarray) -> np.ndarray:
    """Return the larger of p and p by permutation, which is looked at where p alone would be found."""
    prompts, _, authors, rows = claims.shape
    prompt, author, _ = (at.ravel() for at in np.indices((prompts, authors, rows)))
    larger = p.copy()
    for table in np.flatnonzero(p <= ALPHA):
        permuted = permutation_p(claims[:, table].ravel(), prompt, author, 0)
        larger[table] = np.fmax(p[table], permuted)
    return larger


def unanswered(tables: int, seed: int) -> pd.DataFrame:
    """Return how often a blind evaluator that leaves more of others' texts unanswered is said to recognise its own."""
    found = []
    for prompts in (20, 40, 100):
        for yes in (0.5, 0.9, 1.0):
            for own, others in ((0.02, 0.3), (0.1, 0.2), (0.1, 0.1)):
                rng = np.random.default_rng([seed, prompts, round(100 * yes), round(100 * others)])
                prompt, author = (at.ravel() for at in np.indices((prompts, 2)))
                silent = np.where(author == 0, own, others)
                said = []
                for _ in range(tables):
                    answer = (rng.random(len(prompt)) < yes).astype(object)
                    answer[rng.random(len(prompt)) < silent] = None
                    records = pd.DataFrame({
                        "text_id": 2 * prompt + author, "prompt_id": prompt, "true_model": author.astype(str),
                        "evaluator_model": "0", "task_type": "binary_self", "predicted_self": answer,
                    })  # fmt: skip
                    table = recognition_table(records, n_resamples=1)
                    j = table[table["statistic"] == "discrimination"].iloc[0]
                    said.append({"word": j["conclusion"], "noted": "answers_differ" in j["note"]})
                said = pd.DataFrame(said)
                found.append({
                    "prompts": prompts, "yes": yes, "unanswered_own": own, "unanswered_others": others,
                    "recognises": said["word"].isin(["recognises", "avoids"]).mean(),
                    "depends": (said["word"] == "depends on no answers").mean(), "noted": said["noted"].mean(),
                })  # fmt: skip
    return pd.DataFrame(found).assign(tables=tables, seed=seed)


HABITS = {"equal": (0.3, 0.3), "bold": (0.5, 0.05), "shy": (0.05, 0.5), "ceiling": (0.98, 0.98)}  # first, its peers


@dataclass(frozen=True)
class Cell:
    """A design: real is who recognises its own by 1 probit, `none`, the first (`one`) or `all`; taste, own_taste: sd.

    special: what else is the matter (`records_of`).
    """

    real: str
    taste: float
    habits: str
    authors: int
    prompts: int
    own_taste: float = 0.0
    special: str = ""

    def claims(self, rng: np.random.Generator) -> np.ndarray:
        """Draw claims (prompts, evaluators, authors)."""
        first, peers = HABITS[self.habits]
        own = np.zeros(self.authors)
        own[: {"none": 0, "one": 1, "all": self.authors}[self.real]] = 1
        shape = self.prompts, self.authors, self.authors
        inclined = ndtri(np.r_[first, np.full(self.authors - 1, peers)])[:, None] + np.diag(own)
        taste = self.taste * rng.normal(size=self.authors)
        strength = np.ones(self.authors)
        if self.special == "twice the taste":
            strength[0] = 2
        inclined = inclined + strength[:, None] * taste + self.own_taste * rng.normal(size=shape[1:])
        of_prompt, of_text = (
            0.5 * rng.normal(size=(self.prompts, 1, 1)),
            0.5 * rng.normal(size=(self.prompts, 1, shape[2])),
        )
        if self.special == "long texts":  # all like long texts, and authors write texts of unequal length
            of_text = of_text + np.linspace(-0.5, 0.5, self.authors)
        if self.special == "other prompts":
            of_prompt = 2 * of_prompt
        return ndtr(inclined + of_prompt + of_text) > rng.random(shape)

    def words(self, tables: int, rng: np.random.Generator) -> np.ndarray:
        """Return what is concluded of each evaluator of each table, (tables, evaluators)."""
        drawn = np.stack([self.claims(rng) for _ in range(tables)], 1)
        if self.special not in ("", "twice the taste", "long texts"):
            return np.array([said_of(records_of(claims, self.special, rng)) for claims in np.moveaxis(drawn, 1, 0)])
        return tables_of(drawn)["conclusion"].to_numpy().reshape(tables, -1)


def tables_of(claims: np.ndarray, arms: bool = False) -> pd.DataFrame:
    """Return the rows of J of tables of claims (prompts, tables, evaluators, authors), as the package makes them.

    Evaluator e wrote the texts of author e; `author` is the table. arms: the two authors are the true and the false arm
    of an identity suite, for every evaluator.
    """
    prompts, tables, evaluators, authors = claims.shape
    e = np.arange(evaluators)
    writes = np.zeros(evaluators, int) if arms else e
    n = np.ones(claims.shape)
    is_other = np.arange(authors) != writes[:, None]
    own = Rate.of(claims[:, :, e, writes], n[..., 0])
    j = own - Rate.of((claims * is_other).sum(3), (n * is_other).sum(3))
    prompt, author = (at.ravel() for at in np.indices((prompts, authors)))

    def permuted(_):
        """Look where p alone would be found."""
        p = np.full(j.value.shape, np.nan)
        low, high = j.interval(Z)
        for table, e in np.argwhere((low > 0) | (high < 0)):
            p[table, e] = permutation_p(claims[:, table, e].ravel(), prompt, author, e)
        return p

    def beyond(where):
        p = np.full(j.value.shape, np.nan)
        for table, e in np.argwhere(where):
            p[table, e] = beyond_peers_p(claims[:, table], n[:, table], writes, e)
        return p

    labels = {"author": np.arange(tables)[:, None].astype(str), "evaluator": e.astype(str)}
    detectable = detectable_rates(j, of_peers(claims), tests=evaluators)
    measure = Measure("discrimination", j, labels, test=INVERTED, detectable=detectable)
    if not arms:
        measure = replace(measure, permutation=permuted if evaluators > 1 else None, beyond=beyond)
    return adjust_p(write([measure], Settings()), ["author"], chance={"discrimination": 0.0})


def of_peers(claims: np.ndarray) -> Difference | None:
    """Return what peers claim of each evaluator's texts, minus what of third authors'; None without peers."""
    evaluators, authors = claims.shape[2:]
    if evaluators == 1 or authors == 2:
        return None
    e, author = np.arange(evaluators), np.arange(authors)
    is_peer = e != e[:, None]
    is_third = is_peer[..., None] & (author != e[:, None, None]) & (author != e[:, None])
    texts = np.einsum("ptea,fe,fa->ptf", claims, is_peer, author == e[:, None])
    thirds = np.einsum("ptea,fea->ptf", claims, is_third)
    return Rate.of(texts, is_peer.sum(1)) - Rate.of(thirds, is_third.sum((1, 2)))


def said_of(records: pd.DataFrame) -> list[str]:
    """Return what `recognition_table` concludes of each evaluator by J."""
    table = recognition_table(records, n_resamples=1)
    j = table[(table["statistic"] == "discrimination") & (table["author"] == "")]
    return j.drop_duplicates("evaluator")["conclusion"].tolist()


def records_of(claims: np.ndarray, special: str, rng: np.random.Generator) -> pd.DataFrame:
    """Return the records of claims (prompts, evaluators, authors), of which something is the matter."""
    prompt, evaluator, author = (at.ravel() for at in np.indices(claims.shape))
    own, said = evaluator == author, claims.ravel().astype(object)
    records = pd.DataFrame({
        "text_id": prompt * claims.shape[2] + author, "prompt_id": prompt, "true_model": author.astype(str),
        "evaluator_model": evaluator.astype(str), "task_type": "binary_self", "predicted_self": said,
    })  # fmt: skip
    if special == "unanswered":
        records["predicted_self"] = np.where(rng.random(len(said)) < np.where(own, 0.02, 0.3), None, said)
    elif special == "others unanswered":
        records["predicted_self"] = np.where(own, said, None)
    elif special == "ten times":
        again = [
            records.assign(prompt_id=10_000 * k + prompt, text_id=10_000 * k + records["text_id"]) for k in range(10)
        ]
        records = pd.concat(again).assign(prompt_used=np.tile(prompt, 10).astype(str))
    elif special == "other prompts":  # of own texts: six are common
        records = records[(prompt < 6) | (own == (prompt % 2 == 0))]
    elif special == "two evaluators":
        records = records[evaluator < 2]
    elif special == "names":  # who does not claim a text names another author, whoever it is
        other = (evaluator + rng.integers(1, claims.shape[1], len(said))) % claims.shape[1]
        named = np.where(claims.ravel(), evaluator, other).astype(str)
        records = records.assign(task_type="exact_model", predicted_model=named, predicted_self=None)
    elif special == "all know all":
        named = np.where(rng.random(len(said)) < 0.4, author, rng.integers(0, claims.shape[1], len(said))).astype(str)
        records = records.assign(task_type="exact_model", predicted_model=named, predicted_self=None)
    return records


def cells() -> list[Cell]:
    """Return the designs of `words.csv`."""
    found = []
    for habits in ("equal", "bold", "shy"):
        for authors in (3, 4, 10):
            for prompts in (6, 12, 40, 120):
                found += [Cell("none", taste, habits, authors, prompts) for taste in (0, 0.1, 0.25, 0.5)]
                if prompts > 6:
                    found += [Cell("one", taste, habits, authors, prompts) for taste in (0, 0.5)]
        for prompts in (12, 40, 120):
            found += [Cell("all", taste, habits, 4, prompts) for taste in (0, 0.5)]
    for prompts in (40, 120):
        found += [Cell("none", taste, "ceiling", 4, prompts) for taste in (0, 0.25, 0.5)]
        found += [Cell("none", 0, "equal", authors, prompts, own_taste=0.25) for authors in (3, 4, 10)]
        specials = ("long texts", "unanswered", "others unanswered", "other prompts", "two evaluators", "names")
        found += [Cell("none", 0.5, "equal", 4, prompts, special=special) for special in specials]
        found += [
            Cell("none", 0.5, "equal", 4, prompts, special=special) for special in ("all know all", "twice the taste")
        ]
    return [*found, Cell("none", 0.5, "equal", 4, 8, special="ten times"), Cell("none", 0.5, "equal", 4, 8)]


def words(tables: int, seed: int) -> pd.DataFrame:
    """Return how often any blind evaluator of a table `recognises` (family-wise), and how often each that does.

    claims_more: the same, of `recognises` and `claims its own more`. One that is not blind is one in its cell or all.
    """
    found = []
    tests.DRAWS = 999
    for number, cell in enumerate(cells()):
        rng = np.random.default_rng([seed, number])
        real = {"none": 0, "one": 1, "all": cell.authors}[cell.real]
        said = cell.words(tables, rng)
        is_recognised = said == "recognises"
        claims_more = is_recognised | np.isin(said, ["claims its own more", "claims its own more (no peers)"])
        blind = is_recognised[:, real:].any(1).mean() if real < said.shape[1] else np.nan
        power = is_recognised[:, :real].mean() if real else np.nan
        share = power if real else blind
        found.append(asdict(cell) | {
            "blind_recognises": blind, "blind_claims_more": claims_more[:, real:].any(1).mean(), "power": power,
            "mc_error": np.sqrt(max(share * (1 - share), 1 / tables) / tables),
        })  # fmt: skip
    return pd.DataFrame(found).assign(tables=tables, seed=seed)


SENSITIVITIES = (0, 1, 2)  # d'
CLAIMED = ((0.05, 0.02), (0.2, 0.05), (0.5, 0.02), (0.9, 0.02), (0.5, 0.5), (0.9, 0.5), (0.3, 0.001))


def habits(tables: int, seed: int) -> pd.DataFrame:
    """Return how often two evaluators' J and d' are said to differ: equally sensitive ones, and one that is blind.

    Each claims others' texts at a rate of its own. The difference of d' also has its coverage.
    """
    found = []
    for authors in (2, 4):
        for prompts in (12, 20, 40, 120):
            for first in SENSITIVITIES:
                for second in {first, 0}:
                    for number, rates in enumerate(CLAIMED):
                        rng = np.random.default_rng([seed, authors, prompts, first, second, number])
                        sides = two_of_a_habit((first, second), rates, (prompts, tables, authors), rng)
                        truth = (first - second) / np.sqrt(1.5)
                        j, sensitivity = sides[0] - sides[1], d_prime(sides[0]) - d_prime(sides[1])
                        of = outcome(sensitivity, 0, truth)
                        found.append({
                            "authors": authors, "prompts": prompts, "first": first, "second": second,
                            "claims": f"{rates[0]} and {rates[1]}",
                            "j_differs": outcome(j, 0, 0)["rejected"], "differ": of["rejected"],
                            "coverage": of["coverage"],
                        })  # fmt: skip
    return pd.DataFrame(found)


def two_of_a_habit(sensitivities, rates, shape, rng: np.random.Generator) -> list[Difference]:
    """Draw J of two evaluators of the same texts, which are alike on a prompt and for both.

    sensitivities: d' before what prompts and texts have in common, which takes a part of it.
    """
    prompts, tables, authors = shape
    common = 0.5 * rng.normal(size=(prompts, tables, 1)) + 0.5 * rng.normal(size=shape)
    found = []
    for sensitivity, rate in zip(sensitivities, rates, strict=True):
        inclined = np.sqrt(1.5) * ndtri(rate) + sensitivity * (np.arange(authors) == 0)
        claims = ndtr(inclined + common) > rng.random(shape)
        found.append(discrimination(claims[..., None]))
    return found


def lineups(tables: int, seed: int) -> pd.DataFrame:
    """Return how often J of a blind evaluator that gives each name once is said to be off 0.

    linked: whether the table says which texts stood in one lineup.
    """
    found = []
    for authors in (2, 3, 4, 5, 6, 10):
        for number in (8, 12, 20, 40, 120):
            rng = np.random.default_rng([seed, authors, number])
            named = rng.integers(authors, size=(number, tables, 1, 1)) == np.arange(authors)[:, None]
            linked = discrimination(named)
            own, others = named[:, :, 0, 0], named[:, :, 1:, 0].transpose(0, 2, 1).reshape(-1, tables)
            of_own = np.r_[np.ones(len(own)), np.zeros(len(others))][:, None]
            claims = np.concatenate([own, others])
            each = [Rate.of(claims * side, np.broadcast_to(side, claims.shape)) for side in (of_own, 1 - of_own)]
            unlinked = oppose(each[0] - each[1])
            for name, of in {"linked": linked, "unlinked": unlinked}.items():
                about = {"authors": authors, "lineups": number, "texts": name}
                found.append(about | {"rejected": outcome(of, 0, 0)["rejected"]})
    return pd.DataFrame(found).assign(tables=tables, seed=seed)


@dataclass(frozen=True)
class Plan:
    """Some evaluators who claim a share of all texts, their habit; what is found of the first.

    identity: templates with a true and a false arm, in place of own texts and others'.
    """

    task: str
    authors: int
    evaluators: int
    prompts: int
    habit: float
    together: str

    def first(self, difference: float, tables: int, rng: np.random.Generator) -> pd.DataFrame:
        """Return the first evaluator's rows; it knows so many of the texts, and the others are blind."""
        chance = np.full((self.evaluators, self.authors), self.habit)
        chance[0] *= 1 - difference
        chance[0, 0] += difference
        u = draws((self.prompts, tables * self.evaluators, self.authors, 1), *TOGETHER[self.together], rng)
        claims = u.reshape(self.prompts, tables, *chance.shape) < chance
        table = tables_of(claims, arms=self.task == "identity")
        return table[table["evaluator"] == "0"]


def plans():
    """Yield the designs of `power.csv`."""
    texts = product([(2, 1), (5, 1), (10, 1), (3, 3), (4, 3), (10, 3), (5, 5), (10, 5)], (6, 12, 20, 40, 120))
    arms = product([(2, 1), (2, 3), (2, 5)], (7, 12, 18, 27, 60))
    for task, designs in {"recognition": texts, "identity": arms}.items():
        for (authors, evaluators), prompts in designs:
            for habit, together in product((0.05, 0.2, 0.5), ("alone", "by prompt")):
                yield Plan(task, authors, evaluators, prompts, habit, together)


def power(tables: int, seed: int) -> pd.DataFrame:
    """Return how often what is printed as `detectable` is found, by the verdict's own rule.

    detectable: the median of blind evaluators, a fifth as many tables; detectable_found: of those who have it.
    """
    found = []
    tests.DRAWS = 999
    for number, plan in enumerate(plans()):
        rng = np.random.default_rng([seed, number])
        detectable = plan.first(0, tables // 5, rng)["detectable"].median()
        row = asdict(plan) | {"detectable": detectable}
        if detectable > 0:
            first = plan.first(detectable, tables, rng)
            is_found = first["conclusion"].isin(["recognises", "claims its own more (no peers)"])
            row |= {"power": is_found.mean(), "mc_error": is_found.std() / np.sqrt(tables)}
            row |= {"detectable_found": first["detectable"].median()}
        found.append(row)
    return pd.DataFrame(found).assign(tables=tables, seed=seed)


def regression(tables: int, seed: int) -> pd.DataFrame:
    """Return how often a coefficient that is 0 is found by the jackknife's t and by the wild cluster bootstrap.

    As in 12_words_and_weights: three texts a prompt, centred on the prompt. One of two predictors may be skewed, and
    the outcome varies more where it is large.
    """
    found = []
    for prompts in (8, 20, 40, 120):
        for skewed in (False, True):
            rng = np.random.default_rng([seed, prompts, skewed])
            prompt = np.repeat(np.arange(prompts), 3)
            p = [coefficient_p(prompt, skewed, rng) for _ in range(tables)]
            jackknife, wild = (np.array(p) <= ALPHA).mean(0)
            found.append({"prompts": prompts, "skewed": skewed, "jackknife": jackknife, "wild_bootstrap": wild})
    return pd.DataFrame(found).assign(tables=tables, seed=seed)


def wild_cluster_p(x, y, cluster, which: int = 0, *, draws: int = 9_999, seed: int = 0) -> float:
    """Return the two-sided p of one least-squares coefficient by the wild cluster bootstrap of 12_words_and_weights.

    x: predictors (rows, k), centred, without an intercept; y: (rows,). The residuals of the fit without the coefficient
    keep or change their signs cluster by cluster (Rademacher), and its cluster-robust t is compared with those of the
    draws (Cameron et al. 2008). It holds where predictors are skewed and clusters few.
    """
    x = np.asarray(x, float)
    y = np.asarray(y, float)
    codes = np.unique(np.asarray(cluster), return_inverse=True)[1]
    rows_of = [codes == code for code in range(codes.max() + 1)]
    cross = np.array([x[rows].T @ x[rows] for rows in rows_of])
    inverse = np.linalg.inv(cross.sum(0))
    others = np.delete(x, which, axis=1)
    residual = y - others @ np.linalg.lstsq(others, y, rcond=None)[0]
    scores = np.array([x[rows].T @ residual[rows] for rows in rows_of])

    def squared_t(signs):
        """Return t squared for each row of signs (draws, clusters)."""
        # By how much each draw moves the coefficients.
        moved = signs @ scores @ inverse
        fitted = moved @ (cross @ inverse[which]).T
        left_over = signs * (scores @ inverse[which]) - fitted
        return ratio(moved[:, which] ** 2, (left_over**2).sum(1))

    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, len(rows_of)))
    observed = squared_t(np.ones((1, len(rows_of))))[0]
    beyond = (squared_t(signs) >= observed - 1e-12).sum()
    return float((1 + beyond) / (1 + draws))


def coefficient_p(prompt: np.ndarray, skewed: bool, rng: np.random.Generator) -> tuple[float, float]:
    """Draw one table and return p of its first coefficient, by the jackknife and by the bootstrap."""
    rows, k = len(prompt), prompt.max() + 1

    def centred(values):
        return values - (np.bincount(prompt, values) / 3)[prompt]

    first = rng.normal(size=rows)
    if skewed:
        first = rng.lognormal(0, 1.5, rows) + rng.lognormal(0, 1.5, k)[prompt]
    outcome = centred(rng.normal(size=rows) * (1 + 0.5 * first / first.std()))
    x = np.column_stack([centred(first), centred(rng.normal(size=rows))])
    cross = np.array([x[prompt == g].T @ x[prompt == g] for g in range(k)])
    with_outcome = np.array([x[prompt == g].T @ outcome[prompt == g] for g in range(k)])
    value = np.linalg.solve(cross.sum(0), with_outcome.sum(0))[0]
    without = np.linalg.solve(cross.sum(0) - cross, (with_outcome.sum(0) - with_outcome)[..., None])[:, 0, 0]
    error = np.sqrt((k - 1) / k * ((without - without.mean()) ** 2).sum())
    return 2 * scipy.stats.t.sf(abs(value) / error, k - 1), wild_cluster_p(x, outcome, prompt, draws=499)


if __name__ == "__main__":
    number, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    small(number, seed).round(6).to_csv(FOLDER / "small.csv", index=False)
    family(number // 4, seed).round(6).to_csv(FOLDER / "family.csv", index=False)
    unanswered(number // 20, seed).round(6).to_csv(FOLDER / "unanswered.csv", index=False)
    words(number // 10, seed).round(6).to_csv(FOLDER / "words.csv", index=False)
    habits(number // 2, seed).round(6).to_csv(FOLDER / "habits.csv", index=False)
    power(number // 8, seed).round(6).to_csv(FOLDER / "power.csv", index=False)
    regression(number // 4, seed).round(6).to_csv(FOLDER / "regression.csv", index=False)
