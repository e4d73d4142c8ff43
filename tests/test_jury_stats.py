"""Statistics of juries: hand-computed cases, outside references, planted truths, and what cannot be estimated."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from planted_jury import CONFORMITY, conversations, judge, planted_records
from sklearn.metrics import brier_score_loss, roc_auc_score
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from selfeval.asking.simulated import Simulated, author_of
from selfeval.errors import InputError
from selfeval.models import get
from selfeval.roleplay.simulated import SILENT
from selfeval.stats import COLUMNS, conversations_needed, jury_table
from selfeval.stats.jury import baseline_auc, conformity, differences
from selfeval.stats.votes import read_votes

FAST = {"n_resamples": 200}


def votes(scores: dict[str, list], arm="independent", **columns) -> pd.DataFrame:
    """Build records of one arm and round: {juror: score of conversation 0, 1, ...}."""
    rows = [
        {"conversation_id": str(c), "source": "model", "turn": 1, "arm": arm, "round": 1, "position": k,
         "juror": juror, "score": score}
        for k, (juror, given) in enumerate(scores.items(), 1) for c, score in enumerate(given)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def found(table, statistic, task=None, evaluator="", **where):
    """Return the first row of a statistic; a round is the condition."""
    where = {"task": task, "evaluator": evaluator} | where
    rows = table[table["statistic"] == statistic]
    for column, wanted in where.items():
        rows = rows if wanted is None else rows[rows[column] == wanted]
    return rows.iloc[0]


def both_sources(people, models, **columns) -> pd.DataFrame:
    """Build records of people's and of models' conversations that are no pairs."""
    models = votes(models)
    return pd.concat([votes(people, source="human"), models.assign(conversation_id="m" + models["conversation_id"])])


# ---------------------------------------------------------------------------------------------------------------
# Hand-computed cases and outside references


def test_means_and_no_answers_by_hand():
    table = jury_table(votes({"a": [0.2, 0.4, None, 0.6], "b": [0.4, None, None, 0.8]}), **FAST)
    mean = found(table, "mean_score")
    assert mean["estimate"] == pytest.approx((0.3 + 0.4 + 0.7) / 3)
    assert (mean["clusters"], mean["cluster_unit"], mean["author"]) == (3, "conversation", "model")
    assert "no_verdict=1" in mean["note"]
    assert found(table, "no_answer_rate")["estimate"] == 3 / 8
    assert found(table, "no_answer_rate", evaluator="b")["estimate"] == 0.5
    assert found(table, "mean_score_if_0")["estimate"] == pytest.approx((0.3 + 0.2 + 0 + 0.7) / 4)
    assert found(table, "mean_score_if_1")["estimate"] == pytest.approx((0.3 + 0.7 + 1 + 0.7) / 4)
    frame = votes({"a": [0.1, 0.5]})  # the turns of a conversation weigh together
    frame = pd.concat([frame, frame[frame["conversation_id"] == "0"].assign(turn=2, score=0.3)])
    table = jury_table(frame, **FAST)
    mean = found(table, "mean_score")
    assert mean["estimate"] == pytest.approx((0.2 + 0.5) / 2) and (mean["n"], mean["clusters"]) == (3, 2)
    assert "mean_score_if_0" not in set(table["statistic"])


def test_differences_are_t_tests_over_conversations():
    rng = np.random.default_rng(0)
    base = rng.normal(0.5, 0.1, 12)
    frame = pd.concat(
        votes({j: base + shift + rng.normal(0, 0.05, 12) for j in "abc"}, arm)
        for arm, shift in (("debate", 0.03), ("reask", 0.0), ("independent", 0.01))
    )
    table = jury_table(frame, **FAST)
    wide = frame.groupby(["arm", "conversation_id"])["score"].mean().unstack(0)
    gap = wide["debate"] - wide["reask"]
    row, reference = found(table, "difference", "debate - reask"), sps.ttest_1samp(gap, 0)
    assert (row["method"], row["note"]) == ("clustered_t", "few_conversations")
    assert (row["estimate"], row["p"]) == pytest.approx((gap.mean(), reference.pvalue))
    assert (row["low"], row["high"]) == pytest.approx(tuple(reference.confidence_interval(0.95)))
    same = found(table, "equivalence", "debate - reask")
    assert same["p"] == pytest.approx(ttost_paired(wide["debate"], wide["reask"], -0.05, 0.05)[0])
    assert (same["low"], same["high"]) == pytest.approx(tuple(reference.confidence_interval(0.9)))
    assert same["level"] == pytest.approx(0.9) and "margin=0.05" in same["note"]
    tested = table[(table["statistic"] == "difference") & table["p"].notna()]
    assert len(tested) == 2 and tested["p_holm"].to_numpy() == pytest.approx(
        multipletests(tested["p"], 0.05, "holm")[1]
    )
    boot = found(table, "difference", "debate - reask", method="percentile")
    assert boot["seed"] == 0 and abs(boot["low"] - row["low"]) < 0.02 and np.isnan(boot["p"])


def test_a_juror_counts_where_it_is_compared_on_the_same_answers():
    """Else its leniency would look like an effect of the arm, or that of the answers like its leniency."""
    one = votes({"a": [0.2, 0.3, 0.4], "b": [0.9, 0.9, None]}, "debate")
    other = votes({"a": [0.1, 0.2, 0.3], "b": [0.8, None, 0.7]}, "reask")
    row = found(jury_table(pd.concat([one, other]), **FAST), "difference")
    assert row["estimate"] == pytest.approx(0.1) and row["n"] == 4
    table = jury_table(votes({"a": [0.6, 0.9], "b": [0.5, None], "c": [0.1, 0.4]}), **FAST)
    assert found(table, "leniency", evaluator="a")["estimate"] == pytest.approx((0.3 + 0.5) / 2)
    assert found(table, "leniency", evaluator="c")["estimate"] == pytest.approx((-0.45 - 0.5) / 2)


def test_areas_and_calibration_match_scikit_learn():
    frame = planted_records(1, conversations=15, silent=0.05).query("arm == 'personas'")
    table = jury_table(frame, **FAST)
    verdict = frame.groupby(["conversation_id", "source", "turn", "pair"])["score"].mean().reset_index().dropna()
    human = verdict["source"] == "human"
    assert found(table, "auc")["estimate"] == pytest.approx(roc_auc_score(human, verdict["score"]))
    skill = 1 - brier_score_loss(human, verdict["score"]) / brier_score_loss(human, np.full(len(human), human.mean()))
    assert found(table, "brier_skill")["estimate"] == pytest.approx(skill)
    assert found(table, "calibration_slope")["estimate"] == pytest.approx(np.polyfit(verdict["score"], human, 1)[0])
    stern = frame[frame["juror"] == "stern"].dropna(subset="score")
    area = roc_auc_score(stern["source"] == "human", stern["score"])
    assert found(table, "auc", evaluator="stern")["estimate"] == pytest.approx(area)


def test_paired_accuracy_by_hand():
    """Ids are numbers in one file and text in the other, and those of pairs floats: models' have them alone."""
    human = votes({"a": [0.9, 0.4, 0.5, 0.7]}, source="human")
    model = votes({"a": [0.1, 0.6, 0.5, None]}).assign(conversation_id=[6, 7, 8, 9], pair=[0, 1, 2, 3])
    table = jury_table(pd.concat([human, model]), **FAST)
    row = found(table, "paired_accuracy")
    assert (row["estimate"], row["n"], row["clusters"]) == (0.5, 3, 3)
    assert 0 < row["low"] < 0.5 < row["high"] < 1
    assert found(table, "auc")["estimate"] == pytest.approx(roc_auc_score([1] * 4 + [0] * 3, [9, 4, 5, 7, 1, 6, 5]))
    loose = jury_table(pd.concat([human, model.drop(columns="pair")]), **FAST)  # no pairs: the area alone
    assert found(loose, "paired_accuracy")["note"] == "not_estimable; no_pairs"
    assert found(loose, "auc")["estimate"] == found(table, "auc")["estimate"]


def test_people_and_models_that_are_no_pairs_count_each_for_their_side():
    """DeLong's variance and Welch's test by hand; three people among fifty models are three."""
    rng = np.random.default_rng(3)
    people, models = rng.normal(0.6, 0.1, 4), rng.normal(0.5, 0.1, 16)
    table = jury_table(both_sources({"a": people}, {"a": models}), **FAST)
    wins = people[:, None] > models
    by_person, by_model = wins.mean(1), wins.mean(0)
    variance = by_person.var(ddof=1) / 4, by_model.var(ddof=1) / 16
    df = sum(variance) ** 2 / (variance[0] ** 2 / 3 + variance[1] ** 2 / 15)
    area, p = found(table, "auc"), wins.mean()
    half = sps.t.ppf(0.975, df) * np.sqrt(sum(variance)) / (p * (1 - p))
    logits = np.log(p / (1 - p)) + half * np.array([-1, 1])
    assert (area["low"], area["high"]) == pytest.approx(tuple(1 / (1 + np.exp(-logits)))) and area[
        "method"
    ] == "logit_t"
    gap, welch = found(table, "discrimination"), sps.ttest_ind(people, models, equal_var=False)
    assert (gap["p"], gap["low"]) == pytest.approx((welch.pvalue, welch.confidence_interval().low))
    few = found(jury_table(both_sources({"a": [0.8, 0.9, 0.7]}, {"a": [0.1] * 25 + [0.2] * 25}), **FAST), "auc")
    assert few["estimate"] == few["high"] == 1 and few["low"] == pytest.approx(3 / (3 + sps.norm.ppf(0.975) ** 2))
    one = jury_table(both_sources({"a": [0.8]}, {"a": [0.1, 0.3, 0.9]}), **FAST)
    assert all("no_interval" in found(one, name)["note"] for name in ("auc", "discrimination"))
    assert found(one, "auc", method="bca")["note"] == "few_conversations; bca_fallback_percentile"


def test_a_baseline_has_the_same_rows():
    rng = np.random.default_rng(2)
    human = np.tile([True, False], 30)
    words, turn = rng.poisson(9 + 4 * human), np.repeat([1, 2], 30)
    table = baseline_auc(words, human, np.tile(np.repeat(np.arange(15), 2), 2), turn, name="length", **FAST)
    assert list(table.columns) == list(COLUMNS) and set(table["task"]) == {"length"}
    assert found(table, "auc")["estimate"] == pytest.approx(roc_auc_score(human, words))
    wins = [(w[0] > w[1]) + (w[0] == w[1]) / 2 for w in words.reshape(-1, 2)]
    assert (found(table, "paired_accuracy")["estimate"], found(table, "paired_accuracy")["n"]) == (np.mean(wins), 30)
    many = baseline_auc(range(80), [*[1] * 30, *[0] * 50], range(80), n_resamples=1)
    assert many["p"].max() == 1 / 10_000  # of 9,999 arrangements drawn and the observed one
    with pytest.raises(InputError, match="one value per answer"):
        baseline_auc([1, 2], [True], ["a"])


# ---------------------------------------------------------------------------------------------------------------
# Debates


def rounds(arm: str, scores: list[list[float | None]], order=(1, 2, 3), **columns) -> pd.DataFrame:
    """Build one conversation's records: a list of rounds, each with the scores of jurors a, b, c."""
    return pd.concat(
        votes(dict(zip("abc", ([s] for s in given), strict=True)), arm, round=k).assign(position=list(order), **columns)
        for k, given in enumerate(scores, 1)
    )


@pytest.mark.parametrize(
    ("arm", "told", "heard"),
    [
        # One by one: who spoke before in this round, the others as of the round before; without a score, as before.
        ("debate", None, [(0.2 + 0.6) / 2, (0.1 + 0.6) / 2, (0.3 + 0.2) / 2]),
        ("simultaneous", None, [0.4, 0.35, 0.15]),
        ("simultaneous", 0.9, [0.9, 0.35, 0.15]),  # what the record says that juror a was shown
    ],
)
def test_conformity_is_the_slope_on_what_a_juror_has_heard(arm, told, heard):
    first, last = np.array([0.1, 0.2, 0.6]), np.array([0.3, np.nan, 0.5])
    frame = rounds(arm, [first, last], order=(2, 1, 3))
    frame["peer_mean"] = np.where((frame["round"] == 2) & (frame["juror"] == "a"), told, None)
    other = rounds(arm, [[0.1, 0.3, 0.5], [0.2, 0.3, 0.4]], peer_mean=0.25, conversation_id="1")
    distance, change = np.array([*heard, 0.25, 0.25, 0.25]) - [*first, 0.1, 0.3, 0.5], [*(last - first), 0.1, 0, -0.1]
    known = ~np.isnan(change)
    row = found(jury_table(pd.concat([frame, other]), **FAST), "conformity")
    assert (
        row["estimate"] == pytest.approx(np.polyfit(distance[known], np.array(change)[known], 1)[0]) and row["n"] == 5
    )


def test_shift_crossing_and_the_kind_of_agreement_by_hand():
    one = rounds("simultaneous", [[0.2, 0.4, 0.9], [0.3, 0.6, 0.7]])
    other = rounds("simultaneous", [[0.1, 0.3, 0.5], [0.1, 0.4, 0.2]], conversation_id="1")
    table = jury_table(pd.concat([one, other]), **FAST)
    assert found(table, "shift")["estimate"] == pytest.approx((0.1 / 3 - 0.2 / 3) / 2)
    assert found(table, "shift")["condition"] == "round=2"
    assert found(table, "absolute_shift")["estimate"] == pytest.approx((0.5 / 3 + 0.4 / 3) / 2)
    assert found(table, "crossing")["estimate"] == pytest.approx(1 / 6)  # 0.5 is on neither side
    assert "reliability" in found(table, "alpha", condition="round=1")["note"]
    assert "consensus" in found(table, "alpha", condition="round=2")["note"]


def test_what_a_verdict_takes():
    scores, seconds = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]], [1, 2, 4, 3, 1, 1]
    for arm, expected in (("debate", 12), ("simultaneous", 7), ("reask", 5)):
        table = jury_table(rounds(arm, scores).assign(latency=seconds), **FAST)
        assert found(table, "critical_seconds_per_verdict")["estimate"] == expected
    used = rounds("debate", scores).assign(usage=[{"prompt": 10, "completion": 2}] * 6, cost=[0.5] * 5 + [None])
    table = jury_table(used, **FAST)
    assert found(table, "prompt_tokens_per_verdict")["estimate"] == 60
    assert not table["statistic"].str.startswith(("cost", "cached")).any()  # one unknown: unknown


def test_one_model_on_several_seats():
    rng = np.random.default_rng(0)
    frames = [votes({"m": rng.random(6)}, arm, persona=name, round=r).assign(position=k)
              for k, name in enumerate("xyz") for arm in ("personas", "debate") for r in (1, 2)
              if (arm, r) != ("personas", 2)]  # fmt: skip
    table = jury_table(pd.concat([votes({"m": rng.random(6)}), *frames]), **FAST)
    assert {"m (x)", "m (y)", "m (z)"} < set(table["evaluator"])
    assert found(table, "icc_a1", "personas")["n"] == 18
    assert found(table, "difference", "debate - independent")["n"] == 6
    assert np.isnan(found(table, "icc_a1", "independent")["estimate"])
    alike = pd.concat([votes({"m": [0.1, 0.2]}), votes({"m": [0.3, 0.6]}).assign(position=2)])
    gap = found(jury_table(alike, **FAST), "leniency", evaluator="m (no persona) #2")
    assert gap["estimate"] == pytest.approx(0.3)


# ---------------------------------------------------------------------------------------------------------------
# Planted truths


def test_planted_conformity_is_covered_and_none_is_no_effect():
    """Within three standard errors of the level, over fixed seeds."""
    covered, small, seeds = [], [], 40
    for seed in range(seeds):
        [slope] = conformity(read_votes(planted_records(seed, wanted=("debate",))))
        low, high = slope.of.interval(sps.norm.ppf(0.975))
        covered.append(low <= CONFORMITY <= high)
        still = read_votes(planted_records(seed, conform=False, wanted=("reask", "debate")))
        small.append(next(differences(still, 0.05, 0.95)).test(0)[0] < 0.05)
    assert abs(np.mean(covered) - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / seeds)
    assert np.mean(small) <= 0.05 + 3 * np.sqrt(0.95 * 0.05 / seeds)


def test_a_slope_counts_the_conversations_in_which_there_is_something_to_see():
    """Two of six conversations have distances ten times as large: (2 * 100 + 4)² / (2 * 100² + 4) = 2.08 count."""
    rng = np.random.default_rng(0)
    own = np.where(np.arange(6) < 2, 0.4, 0.04)
    frame = pd.concat(
        rounds("simultaneous", [[0.5, 0.5 + x, 0.5 - x], 0.5 + rng.normal(0, 0.05, 3)], conversation_id=str(c),
               peer_mean=0.5)
        for c, x in enumerate(own)
    )  # fmt: skip
    row = found(jury_table(frame, n_resamples=1), "conformity")
    df = (2 * 100 + 4) ** 2 / (2 * 100**2 + 4) - 1
    t = sps.t.ppf(1 - row["p"] / 2, df)  # which the p-value used
    assert (row["high"] - row["low"]) / 2 == pytest.approx(abs(row["estimate"]) / t * sps.t.ppf(0.975, df))
    assert row["clusters"] == 6


def test_conformity_is_told_from_regression_to_the_mean_and_from_a_sham():
    """Jurors that vote anew seem to conform: the arm in which they hear nobody, or strangers, takes it away."""
    slopes, alike = [], dict.fromkeys("abc", (0.0, 0.0, 0.1))
    for seed in range(8):
        records = planted_records(seed, conversations=40, jurors=alike, redraw=True, wanted=("reask", "debate"))
        slopes.append([m.of.value for m in conformity(read_votes(records)) if m.labels["task"] == "debate"])
    apparent, corrected = np.mean(slopes, 0)
    assert apparent > 0.25 and abs(corrected) < 0.05
    records = planted_records(0, sham=0.3)
    table = jury_table(records, **FAST)
    for row, truth in (
        (found(table, "conformity", "sham"), 0.3),
        (found(table, "conformity_minus_sham"), CONFORMITY - 0.3),
    ):
        assert row["low"] <= truth <= row["high"] and row["high"] - row["low"] < 0.15
    unknown = found(jury_table(records.drop(columns="peer_mean"), **FAST), "conformity_minus_sham")
    assert unknown["note"].startswith("not_estimable; peers_unknown")


def test_sizes():
    assert [conversations_needed(0.05, sd) for sd in (0.10, 0.15, 0.20)] == [32, 71, 126]
    for wrong in (0.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="A size needs a difference other than 0"):
            conversations_needed(wrong)


# ---------------------------------------------------------------------------------------------------------------
# What cannot be estimated, and wrong records

FOUR = planted_records(0, conversations=4)
DEGENERATE = {
    "one conversation": planted_records(0, conversations=1),
    "constant": FOUR.assign(score=0.1),
    "all null": FOUR.assign(score=None),
    "people only": FOUR.query("source == 'human'"),
    "one person": FOUR.query("source == 'model' or pair == 0").drop(columns="pair"),
    "one juror": FOUR.query("juror == 'stern'"),
    "no order": FOUR.drop(columns=["position", "peer_mean", "pair"]),
    "few columns": FOUR.query("arm == 'independent' and turn == 0")[["conversation_id", "arm", "juror", "score"]],
    "half the arms' conversations": pd.concat([FOUR.query("arm == 'debate' and pair < 2"),
                                               FOUR.query("arm == 'reask' and pair > 1")]),
    "a silent juror": FOUR.assign(score=lambda f: f["score"].where(f["juror"] != "stern")),
    "one deviating answer": votes({"a": [0.1] * 4, "b": [0.1, 0.1, 0.1, 0.9]}),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_records_give_notes_and_no_exception(name):
    table = jury_table(DEGENERATE[name], **FAST)
    assert list(table.columns) == list(COLUMNS) and len(table)
    known, bounded, note = table["estimate"].notna(), table["low"].notna(), table["note"]
    assert ((~known) == note.str.contains("not_estimable")).all()
    assert ((known & ~bounded) == note.str.contains("no_interval")).all()
    assert note[known].str.contains("few_conversations").all()
    inside = table[bounded & ~table["method"].isin(["percentile", "bca"])]
    assert (inside["low"] <= inside["estimate"] + 1e-9).all() and (inside["estimate"] <= inside["high"] + 1e-9).all()
    assert ((table["low"] == table["high"])[bounded] == note[bounded].str.contains("constant")).all()


def test_what_one_conversation_or_one_source_leaves_out():
    table = jury_table(DEGENERATE["one conversation"], **FAST)
    assert found(table, "mean_score")["estimate"] > 0 and np.isnan(found(table, "mean_score")["low"])
    table = jury_table(DEGENERATE["people only"], **FAST)
    for name in ("auc", "discrimination", "brier_skill", "calibration_slope"):
        assert found(table, name)["note"] == "not_estimable; one_source"
    assert not np.isnan(found(table, "difference")["low"])
    table = jury_table(DEGENERATE["all null"], **FAST)
    rates = [found(table, name)["estimate"] for name in ("no_answer_rate", "mean_score_if_0", "mean_score_if_1")]
    assert rates == [1, 0, 1] and np.isnan(found(table, "mean_score")["estimate"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="juror"), "no column `juror`"),
        (lambda f: f.assign(juror=[None, "a"]), "`juror` must not be null, but row 0 is"),
        (lambda f: f.assign(arm="vote"), "`arm` must be one of independent, .*, got 'vote'"),
        (lambda f: f.assign(source="bot"), "`source` must be one of human, model, got 'bot'"),
        (lambda f: f.assign(score=85), "`score` must hold numbers from 0 to 1 or null, got 85"),
        (lambda f: f.assign(score="0.5 or so"), "`score` must hold numbers .* got '0.5 or so'"),
        (lambda f: f.assign(round=None), "`round` must hold numbers"),
        (lambda f: f.assign(role="judge"), "no verdict records"),
        (lambda f: pd.concat([f, f]), "'a' in arm 'independent', round 1, .* '0', turn 1, is given twice"),
    ],
)
def test_wrong_records(change, message):
    with pytest.raises(InputError, match=message):
        jury_table(change(votes({"a": [0.1, 0.2]})))


def test_wrong_arguments_and_the_seed():
    frame = planted_records(0, conversations=5, turns=1)
    for wrong, message in (({"margin": 0}, "`margin`"), ({"level": 95}, "`level`"), ({"seed": -1}, "`seed`")):
        with pytest.raises(InputError, match=message):
            jury_table(frame, **wrong)
    one, other = (jury_table(frame, n_resamples=300, seed=s) for s in (1, 2))
    default = ~one["method"].isin(["percentile", "bca"])
    pd.testing.assert_frame_equal(one[default], other[default])
    assert not one["low"].equals(other["low"])
    shuffled = frame.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(jury_table(shuffled, n_resamples=300, seed=1), one)


# ---------------------------------------------------------------------------------------------------------------
# Simulated jurors in the real engine


def test_planted_jurors_in_the_real_engine(registry):
    """What is computed of the peers is what the jurors were shown."""
    traits = {"sim/mild": (0.12, 0.05), "sim/stern": (-0.1, 0.25), "sim/blind": (0.0, 0.0)}
    of = "{id: %s, display: %s, simulation: {role: roleplay, conformity: 0.5, leniency: %s, discrimination: %s}}"
    registry(f"models: [{', '.join(of % (name, name, *values) for name, values in traits.items())}]")
    records = judge([*traits], conversations(20), ("personas", "sham", "debate", "simultaneous"))
    table = jury_table(records, **FAST)
    rows = [(found(table, "conformity", arm), 0.5) for arm in ("debate", "simultaneous", "sham")]
    for name, (lenient, tells) in traits.items():
        rows.append((found(table, "leniency", "personas", name), (lenient - 0.02 / 3) * 3 / 2))
        rows.append((found(table, "discrimination", "personas", name), tells))
    assert all(abs(row["estimate"] - truth) < 0.7 * (row["high"] - row["low"]) for row, truth in rows)
    assert sum(row["low"] <= truth <= row["high"] for row, truth in rows) >= 8  # of 9
    assert found(table, "conformity_minus_sham", "debate")["low"] < 0 < found(table, "conformity_minus_sham")["high"]
    assert found(table, "paired_accuracy", "personas")["n"] == 40
    computed = jury_table(records[records["arm"] == "debate"].drop(columns="peer_mean"), **FAST)
    shown = found(table, "conformity", "debate")["estimate"]
    assert found(computed, "conformity")["estimate"] == pytest.approx(shown, abs=1e-3)


def test_a_silent_juror_is_counted_and_stays_silent_when_asked_again():
    records = judge(["sim/juror-silent", "sim/juror-lenient"], conversations(40, 1), ("independent",))
    mute = records["juror"] == "sim/juror-silent"
    assert records.loc[mute, "repair_reply"].dropna().eq(SILENT).all()
    assert abs(records.loc[mute, "score"].isna().mean() - 0.3) < 4 * np.sqrt(0.21 / 80)
    assert records.loc[~mute, "score"].notna().all()


@pytest.mark.parametrize("arm", ["simultaneous_summary", "debate"])
def test_simulated_jurors_in_the_other_forms(arm):
    """Summaries, a blind vote, a judge, further dimensions, a whole conversation: scores everywhere."""
    options = {"blind": True, "judge": get("sim/juror-blind"), "dimensions": ("identity",), "scope": "conversation"}
    records = judge(["sim/juror-lenient", "sim/juror-blind"], conversations(3), (arm,), **options)
    asked = records[records["role"] != "summary"]
    assert asked["score"].notna().all() and set(records["role"]) >= {"juror", "judge"}
    assert asked["dimensions"].map(lambda d: d["identity"]).notna().all()
    said = records[records["role"] == "summary"]["statement"]
    assert said.str.startswith("Juror 1: 0.").all() and len(said) == (12 if arm != "debate" else 0)
    assert len(jury_table(records, **FAST))


def test_a_simulated_talker_carries_its_tell_and_unknown_parameters_are_errors(registry):
    text = Simulated(get("sim/talker"))([{"role": "system", "content": "x"}, {"role": "user", "content": "Hi?"}]).text
    assert author_of(text) == "sim/talker" and 10 <= len(text.split()) <= 20
    registry("models: [{id: sim/odd, display: Odd, simulation: {role: roleplay, lenient: 1}}]")
    with pytest.raises(InputError, match="'sim/odd' has the unknown simulation parameter `lenient`; known are leni"):
        Simulated(get("sim/odd"))([{"role": "user", "content": "Hi?"}])
