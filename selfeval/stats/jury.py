"""Statistics of juries: verdict records in, one long table of estimates with intervals out.

`jury_table` is the front door. The sampled unit is the conversation (or matched pair), never the turn or the juror.
The effect of debate is debate - reask: both arms speak equally often, only one hears its peers. The published
difference, debate - independent, also holds personas and the second look. A high score proves nothing without human
controls: read `auc` and `paired_accuracy` (can the jury tell?) before `mean_score`.

    no_answer_rate      statements without a valid score; mean_score_if_0, _if_1: bounds on the mean, whatever they were
    mean_score          mean over conversations of the verdict (mean of the jurors' last scores), per source
    difference          between two arms, on the answers and jurors that both have; equivalence: TOST within +-margin
    alpha, icc_a1, icc_c1, fleiss_kappa (score above .5 or not), effective_votes    per round. While nobody has heard
                        the others it is reliability, afterwards consensus; the note says which
    shift, absolute_shift, crossing   change since the round before: signed, absolute, share that changes sides of .5
    conformity          slope of a juror's change on the distance to its peers' mean; 1 = adopts it. In the arm reask
                        the peers are unheard: what the slope shows there is regression to the mean.
                        conformity_minus_sham, conformity_minus_reask: less the slope of that arm
    first_speaker_weight   of the opening in the jury's last verdict; the fair share is one over the number of jurors
    leniency            of a juror over the others, on the same answers; family_gap: of the agent's own family
    discrimination      mean score of people minus that of models; auc, paired_accuracy (within conversation and turn)
    auc_difference      between two arms, on the same answers
    brier, brier_skill (1 = perfect, 0 = the base rate), calibration_offset (mean score minus share of people),
    calibration_slope (of truth on score; 1 = calibrated, 0 = knows nothing)
    ..._tokens, cost, seconds, critical_seconds   per verdict; the last counts what has to wait for something else
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
from scipy import stats as sps
from scipy.special import ndtri

from selfeval.errors import InputError
from selfeval.stats import debate, panel
from selfeval.stats.intervals import Estimate
from selfeval.stats.panel import Row
from selfeval.stats.serving import flagged, served_by_several
from selfeval.stats.table import Settings
from selfeval.stats.testing import holm
from selfeval.stats.votes import Units, read_votes

COLUMNS = (
    "arm", "source", "round", "juror", "statistic", "estimate", "low", "high", "level", "method", "p", "p_holm", "n",
    "n_conversations", "seed", "note",
)  # fmt: skip
FEW = 40  # conversations
JUROR = ("juror", "served_model", "served_by")  # who made a statement, and who served it


def jury_table(
    records: pd.DataFrame, *, n_resamples: int = 10_000, level: float = 0.95, seed: int = 0, margin: float = 0.05,
    several: Mapping[str, Mapping] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Compute all statistics of a jury with intervals and tests, one row per statistic and method.

    records: verdict records, one row per statement. Needs `conversation_id`, `arm`, `juror`, `score` (0 to 1 or null);
    uses `source` (human | model), `agent`, `turn`, `round`, `position`, `persona`, `same_family`, `usage`, `cost`,
    `latency`, `role` (rows that are not "juror" are left out), `pair` (what a conversation with a person and the same
    one with a model have in common) and `peer_mean` (mean of the peers' scores that the juror was shown; needed for
    the arm sham, computed for the debates) where present. margin: differences within +-margin count as none.
    several: the models that several endpoints served (`served`), by default as far as the records say it.

    Returns the columns `COLUMNS`; "" in arm, source and juror means all. The first row of a statistic is the default:
    t over conversations on the jackknife (slopes: with the effective number of conversations), Wilson at the effective
    sample size for rates and areas, and for mean scores and agreement within their range, which no interval leaves;
    then `percentile` and `bca` (`seed`). p tests no effect; of auc and paired_accuracy that is .5, by exchanging people
    and models among the conversations or within pairs (`seed`); p_holm adjusts it within statistic and source. In
    `equivalence`, p is that of the two one-sided tests and the interval has level 2 * level - 1.

    Notes: not_estimable (NaN) or no_interval, with the reason; few_conversations (below 40: intervals are optimistic);
    constant; bca_fallback_percentile; reliability, consensus; openings_seen (no private votes: the first round stands
    in); no_verdict=K (answers judged without any score in the last round); least_p=P (so few conversations can be
    exchanged that no p is below P, whatever the interval says); several_endpoints (they served this juror, or of a
    row of all jurors one of these or a model judged).
    """
    how = Settings(n_resamples, level, seed)
    if not 0 < margin < 1:
        raise InputError(f"`margin` must lie between 0 and 1, got {margin!r}.")
    rows = list(statistics(records))
    lines = [line for row in rows for line in _lines(row, how)]
    lines += [_equivalence(row, level, margin) for row in rows if row.statistic == "difference"]
    table, records = _table(lines, seed), pd.DataFrame(records)
    several = served(records) if several is None else several
    return flagged(table.assign(mixed=_mixed(table, records, several)), several, ["mixed"]).drop(columns="mixed")


def served(records: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return the endpoints of the models that several of them served, whatever seats they took on the jury."""
    seat = records["juror"].astype(str)
    return served_by_several(records.assign(juror=seat.str.split(" #").str[0]), JUROR)


def seated(juror: str, models: Iterable[str]) -> str:
    """Return which of these models a juror of the table is ("m", "m #2", "m (linguist)"); "" where it is none."""
    return next((model for model in models if juror == model or juror.startswith((f"{model} #", f"{model} ("))), "")


def _mixed(table: pd.DataFrame, records: pd.DataFrame, several: Mapping[str, Mapping]) -> list[str]:
    """Return for each row of the table a model that several endpoints served and that it is about; "" for none."""
    jury = next(filter(None, (seated(str(juror), several) for juror in records["juror"].unique())), "")
    judged = next((name for name in several if name in set(records.get("agent", ()))), "")
    whole = {"human": jury, "model": jury or judged, "": jury or judged}
    return [
        seated(juror, several) if juror else whole[source]
        for juror, source in zip(table["juror"], table["source"], strict=True)
    ]


def statistics(records: pd.DataFrame) -> Iterator[Row]:
    """Yield the statistics of `jury_table`, not yet estimated."""
    votes = read_votes(records)
    for arm in votes.values():
        for part in panel.PARTS:
            yield from part(arm)
    yield from debate.peers(votes)
    yield from debate.differences(votes)


def baseline_auc(
    scores, human, cluster, turn=None, *, n_resamples: int = 10_000, level: float = 0.95, seed: int = 0,
    name: str = "baseline",
) -> pd.DataFrame:  # fmt: skip
    """Return the rows auc and paired_accuracy of any score of the same answers, as in `jury_table`; `name` is the arm.

    scores: one per answer, higher where it speaks for a person (length in words, P(human) of a classifier that did not
    see the conversation); NaN is left out. human: true or false. cluster: the conversation or pair. turn: pairs share
    it; without it every person's answer is compared with every model's of its cluster.
    """
    scores, human, cluster = np.asarray(scores, float), np.asarray(human, bool), np.asarray(cluster).astype(str)
    turn = np.zeros(len(scores), int) if turn is None else np.asarray(turn)
    if not len(scores) == len(human) == len(cluster) == len(turn):
        raise InputError("`scores`, `human`, `cluster` and `turn` must have one value per answer each.")
    pair = pd.DataFrame({"c": cluster, "t": turn}).groupby(["c", "t"]).ngroup().to_numpy()
    how, units = Settings(n_resamples, level, seed), Units(cluster, human, pair)
    rows = [Row(name, statistic, value) for statistic, value in panel.discriminating(scores, units)]
    return _table([line for row in rows for line in _lines(row, how)], seed)


def calibration_bins(records: pd.DataFrame, bins: int = 10) -> pd.DataFrame:
    """Return per arm and bin of the verdict: low, high, mean score, share of people, n; for a reliability diagram."""
    frames = []
    for arm in read_votes(records).values():
        frame = pd.DataFrame({"score": arm.verdict, "human": arm.units.human}).dropna()
        at = np.minimum((frame["score"] * bins).astype(int), bins - 1)
        found = frame.groupby(at).agg(mean_score=("score", "mean"), share_human=("human", "mean"), n=("human", "size"))
        frames.append(found.assign(arm=arm.arm, low=found.index / bins, high=(found.index + 1) / bins))
    return pd.concat(frames)[["arm", "low", "high", "mean_score", "share_human", "n"]].reset_index(drop=True)


def conversations_needed(difference: float = 0.05, sd: float = 0.15, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return how many conversations show a paired difference (normal approximation, two-sided).

    sd: of the per-conversation difference. For .05: 32, 71, 126 at sd .10, .15, .20.
    """
    if not (0 < sd < np.inf and 0 < power < 1 and 0 < alpha < 1 and 0 < abs(difference) < np.inf):
        raise InputError(
            f"A size needs a difference other than 0, sd > 0, power and alpha between 0 and 1; got {difference!r}, "
            f"{sd!r}, {power!r}, {alpha!r}."
        )
    return int(np.ceil(((ndtri(1 - alpha / 2) + ndtri(power)) * sd / difference) ** 2))


# ---------------------------------------------------------------------------------------------------------------
# Rows of the table


def _lines(row: Row, how: Settings) -> Iterator[dict]:
    """Yield the table's lines of a statistic, default method first."""
    for k, estimate in enumerate(row.value.estimates(how)):
        p, least = (np.nan, 0.0) if k else row.value.test(how.seed)
        few = f"least_p={least:.3g}" if not np.isnan(p) and least > 1 - how.level else ""
        note = "; ".join(filter(None, [row.note, few]))
        yield _line(row._replace(note=note), estimate, p)


def _line(row: Row, estimate: Estimate, p: float) -> dict:
    few = "few_conversations" if 0 < estimate.n_prompts < FEW and not np.isnan(estimate.value) else ""
    return {
        "arm": row.arm, "source": row.source, "round": row.round, "juror": row.juror, "statistic": row.statistic,
        "estimate": estimate.value, "low": estimate.low, "high": estimate.high, "level": estimate.level,
        "method": estimate.method, "p": p, "n": estimate.n, "n_conversations": estimate.n_prompts,
        "note": "; ".join(filter(None, [estimate.note, few, row.note])),
    }  # fmt: skip


def _equivalence(row: Row, level: float, margin: float) -> dict:
    """Return the line of two one-sided t tests (Schuirmann 1987): p small means that |difference| < margin."""
    found, low, high, p = row.value, np.nan, np.nan, np.nan
    if not found.note:
        half = found.half_width(2 * level - 1)
        low, high = found.value - half, found.value + half
        p = float(sps.t.sf((margin - abs(found.value)) / np.sqrt(found.variance), found.df))
    estimate = Estimate(found.value, low, high, 2 * level - 1, found.rows, found.clusters, "tost_t", found.note)
    return _line(row._replace(statistic="equivalence", note=f"margin={margin:g}"), estimate, p)


def _table(lines: list[dict], seed: int) -> pd.DataFrame:
    table = pd.DataFrame(lines)
    table["p_holm"] = table.groupby(["statistic", "source"])["p"].transform(holm)
    resampled = table["method"].isin(["percentile", "bca"])
    table["seed"] = pd.Series(seed, table.index, "Int64").where(resampled)
    table["round"] = table["round"].astype("Int64")
    return table.loc[:, list(COLUMNS)]


def default_rows(table: pd.DataFrame, *statistics: str) -> pd.DataFrame:
    """Return the first method's rows of some statistics of `jury_table`."""
    rows = table[table["statistic"].isin(statistics)]
    return rows.drop_duplicates(["arm", "source", "round", "juror", "statistic"])
