"""Statistics of juries: hand-computed cases, outside references, planted truths, and what cannot be estimated."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from planted_jury import JURORS, conversations, coverage, debate_effect, judge, planted_records, truths
from sklearn.metrics import brier_score_loss, roc_auc_score

from selfeval.asking.simulated import Simulated, author_of
from selfeval.errors import InputError
from selfeval.models import get
from selfeval.roleplay.simulated import SILENT, planted
from selfeval.stats.debate import peer_means, peers
from selfeval.stats.jury import (
    COLUMNS,
    baseline_auc,
    calibration_bins,
    conversations_needed,
    jury_table,
    statistics,
)
from selfeval.stats.resampled import effective_clusters, slope, slope_parts
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


def found(table, statistic, arm=None, method=None, juror="", source=None, round=None):
    rows = table[(table["statistic"] == statistic) & (table["juror"] == juror)]
    for column, wanted in (("arm", arm), ("method", method), ("source", source), ("round", round)):
        rows = rows if wanted is None else rows[rows[column] == wanted]
    return rows.iloc[0]


# ---------------------------------------------------------------------------------------------------------------
# Hand-computed cases and outside references


def test_means_and_no_answers_by_hand():
    table = jury_table(votes({"a": [0.2, 0.4, None, 0.6], "b": [0.4, None, None, 0.8]}), **FAST)
    mean = found(table, "mean_score")
    assert mean["estimate"] == pytest.approx((0.3 + 0.4 + 0.7) / 3) and mean["n_conversations"] == 3
    assert "no_verdict=1" in mean["note"] and mean["source"] == "model"
    assert found(table, "no_answer_rate")["estimate"] == 3 / 8
    assert found(table, "no_answer_rate", juror="b")["estimate"] == 0.5
    assert found(table, "mean_score_if_0")["estimate"] == pytest.approx((0.3 + 0.2 + 0 + 0.7) / 4)
    assert found(table, "mean_score_if_1")["estimate"] == pytest.approx((0.3 + 0.7 + 1 + 0.7) / 4)
    assert "mean_score_if_0" not in set(jury_table(votes({"a": [0.1, 0.2]}), **FAST)["statistic"])


def test_the_conversation_is_the_unit_and_its_turns_weigh_together():
    frame = votes({"a": [0.1, 0.5]})
    frame = pd.concat([frame, frame[frame["conversation_id"] == "0"].assign(turn=2, score=0.3)])
    mean = found(jury_table(frame, **FAST), "mean_score")
    assert mean["estimate"] == pytest.approx((0.2 + 0.5) / 2) and (mean["n"], mean["n_conversations"]) == (3, 2)


def paired_arms(rng, conversations=12, **arms):
    base = rng.normal(0.5, 0.1, conversations)
    frames = [
        votes({j: base + shift + rng.normal(0, 0.05, conversations) for j in "abc"}, arm) for arm, shift in arms.items()
    ]
    return pd.concat(frames)


def test_differences_are_t_tests_over_conversations():
    frame = paired_arms(np.random.default_rng(0), debate=0.03, reask=0.0, independent=0.01)
    table = jury_table(frame, **FAST)
    wide = frame.groupby(["arm", "conversation_id"])["score"].mean().unstack(0)
    gap = wide["debate"] - wide["reask"]
    row, reference = found(table, "difference", "debate - reask"), sps.ttest_1samp(gap, 0)
    assert row["method"] == "clustered_t" and row["note"] == "few_conversations"
    assert (row["estimate"], row["p"]) == pytest.approx((gap.mean(), reference.pvalue))
    assert (row["low"], row["high"]) == pytest.approx(tuple(reference.confidence_interval(0.95)))
    same = found(table, "equivalence", "debate - reask")
    one_sided = [sps.ttest_1samp(gap, m, alternative=a).pvalue for m, a in ((-0.05, "greater"), (0.05, "less"))]
    assert same["p"] == pytest.approx(max(one_sided)) and same["level"] == pytest.approx(0.9)
    assert (same["low"], same["high"]) == pytest.approx(tuple(reference.confidence_interval(0.9)))
    p = table[(table["statistic"] == "difference") & table["p"].notna()]
    assert len(p) == 2 and sorted(p["p_holm"]) == sorted(np.minimum(1, np.maximum.accumulate(
        np.sort(p["p"]) * [2, 1])))  # fmt: skip
    boot = found(table, "difference", "debate - reask", "percentile")
    assert boot["seed"] == 0 and abs(boot["low"] - row["low"]) < 0.02 and np.isnan(boot["p"])


def test_a_juror_that_is_silent_in_one_arm_is_left_out_of_the_difference():
    """Else its leniency would look like an effect."""
    one = votes({"a": [0.2, 0.3, 0.4], "b": [0.9, 0.9, None]}, "debate")
    other = votes({"a": [0.1, 0.2, 0.3], "b": [0.8, None, 0.7]}, "reask")
    row = found(jury_table(pd.concat([one, other]), **FAST), "difference")
    assert row["estimate"] == pytest.approx(0.1) and row["n"] == 4


def test_leniency_is_over_the_others_on_the_same_answers():
    table = jury_table(votes({"a": [0.6, 0.9], "b": [0.5, None], "c": [0.1, 0.4]}), **FAST)
    assert found(table, "leniency", juror="a")["estimate"] == pytest.approx((0.3 + 0.5) / 2)
    assert found(table, "leniency", juror="c")["estimate"] == pytest.approx((-0.45 - 0.5) / 2)


def test_areas_and_calibration_match_scikit_learn():
    frame = planted_records(1, conversations=15, silent=0.05)
    frame = frame[frame["arm"] == "personas"]
    table = jury_table(frame, **FAST)
    jury = frame.groupby(["conversation_id", "source", "turn", "pair"])["score"].mean().reset_index().dropna()
    human = jury["source"] == "human"
    assert found(table, "auc")["estimate"] == pytest.approx(roc_auc_score(human, jury["score"]))
    assert found(table, "brier")["estimate"] == pytest.approx(brier_score_loss(human, jury["score"]))
    offset = jury["score"].mean() - human.mean()
    assert found(table, "calibration_offset")["estimate"] == pytest.approx(offset)
    slope = np.polyfit(jury["score"], human, 1)[0]
    assert found(table, "calibration_slope")["estimate"] == pytest.approx(slope)
    bins = calibration_bins(frame, 5)
    assert bins["n"].sum() == len(jury) and (bins["mean_score"].between(bins["low"], bins["high"])).all()
    stern = frame[frame["juror"] == "stern"].dropna(subset="score")
    area = roc_auc_score(stern["source"] == "human", stern["score"])
    assert found(table, "auc", juror="stern")["estimate"] == pytest.approx(area)


def test_paired_accuracy_by_hand():
    human = votes({"a": [0.9, 0.4, 0.5, 0.7]}, source="human")
    model = votes({"a": [0.1, 0.6, 0.5, None]}).assign(conversation_id=["m0", "m1", "m2", "m3"], pair=list("0123"))
    table = jury_table(pd.concat([human, model]), **FAST)
    row = found(table, "paired_accuracy")
    assert (row["estimate"], row["n"], row["n_conversations"]) == (0.5, 3, 3)
    assert 0 < row["low"] < 0.5 < row["high"] < 1
    assert found(table, "auc")["estimate"] == pytest.approx(roc_auc_score([1] * 4 + [0] * 3, [9, 4, 5, 7, 1, 6, 5]))
    loose = jury_table(pd.concat([human, model.drop(columns="pair")]), **FAST)  # no pairs: the area alone
    assert found(loose, "paired_accuracy")["note"] == "not_estimable; no_pairs"
    assert found(loose, "auc")["estimate"] == found(table, "auc")["estimate"]


def test_an_area_of_one_has_an_interval():
    human, model = votes({"a": [0.8, 0.9, 0.7]}, source="human"), votes({"a": [0.1, 0.2, 0.3]})
    row = found(jury_table(pd.concat([human, model]), **FAST), "auc")
    assert row["method"] == "wilson_effective_n" and row["estimate"] == row["high"] == 1 and 0.3 < row["low"] < 0.6


def test_a_baseline_has_the_same_rows():
    rng = np.random.default_rng(2)
    human = np.tile([True, False], 30)
    words, turn = rng.poisson(9 + 4 * human), np.repeat([1, 2], 30)
    conversation = np.repeat(np.arange(15), 2)
    table = baseline_auc(words, human, np.tile(conversation, 2), turn, name="length", **FAST)
    assert list(table.columns) == list(COLUMNS) and set(table["arm"]) == {"length"}
    assert found(table, "auc")["estimate"] == pytest.approx(roc_auc_score(human, words))
    assert found(table, "paired_accuracy")["n"] == 30
    wins = [(w[0] > w[1]) + (w[0] == w[1]) / 2 for w in words.reshape(-1, 2)]
    assert found(table, "paired_accuracy")["estimate"] == np.mean(wins)
    with pytest.raises(InputError, match="one value per answer"):
        baseline_auc([1, 2], [True], ["a"])


# ---------------------------------------------------------------------------------------------------------------
# Debates


def rounds(arm: str, scores: list[list[float | None]], order=(1, 2, 3)) -> pd.DataFrame:
    """Build one conversation's records: a list of rounds, each with the scores of jurors a, b, c."""
    frames = [
        votes(dict(zip("abc", ([s] for s in given), strict=True)), arm, round=k).assign(position=list(order))
        for k, given in enumerate(scores, 1)
    ]
    return pd.concat(frames)


def test_what_a_juror_has_heard():
    """One by one: who spoke before in this round, the others as of the round before; without a score, as before."""
    frame = rounds("debate", [[0.1, 0.2, 0.6], [0.3, None, 0.5]], order=(2, 1, 3))
    heard = peer_means(read_votes(frame)["debate"])[0, :, 1]
    assert heard == pytest.approx([(0.2 + 0.6) / 2, (0.1 + 0.6) / 2, (0.3 + 0.2) / 2])
    at_once = peer_means(read_votes(frame.assign(arm="simultaneous"))["simultaneous"])[0, :, 1]
    assert at_once == pytest.approx([0.4, 0.35, 0.15])
    told = frame.assign(peer_mean=np.where((frame["round"] == 2) & (frame["juror"] == "a"), 0.9, np.nan))
    assert peer_means(read_votes(told)["debate"])[0, 0, 1] == 0.9


def test_conformity_shift_and_crossing_by_hand():
    one = rounds("simultaneous", [[0.2, 0.4, 0.9], [0.3, 0.6, 0.7]])
    other = rounds("simultaneous", [[0.1, 0.3, 0.5], [0.1, 0.4, 0.2]]).assign(conversation_id="1")
    table = jury_table(pd.concat([one, other]), **FAST)
    distance = [0.45, 0.15, -0.6, 0.3, 0.0, -0.3]
    change = [0.1, 0.2, -0.2, 0.0, 0.1, -0.3]
    assert found(table, "conformity")["estimate"] == pytest.approx(np.polyfit(distance, change, 1)[0])
    assert found(table, "shift")["estimate"] == pytest.approx((0.1 / 3 - 0.2 / 3) / 2)
    assert found(table, "shift")["round"] == 2
    assert found(table, "absolute_shift")["estimate"] == pytest.approx((0.5 / 3 + 0.4 / 3) / 2)
    assert found(table, "crossing")["estimate"] == pytest.approx(1 / 6)  # 0.5 is on neither side
    notes = [found(table, "alpha", round=k)["note"] for k in (1, 2)]
    assert ["reliability" in n for n in notes] == [True, False] and "consensus" in notes[1]


def test_seconds_on_the_critical_path():
    scores = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]]
    seconds = [1, 2, 4, 3, 1, 1]
    for arm, expected in (("debate", 12), ("simultaneous", 7), ("reask", 5)):
        table = jury_table(rounds(arm, scores).assign(latency=seconds), **FAST)
        assert found(table, "critical_seconds_per_verdict")["estimate"] == expected
        assert found(table, "seconds_per_verdict")["estimate"] == 12
    used = rounds("debate", scores).assign(usage=[{"prompt": 10, "completion": 2}] * 6, cost=[0.5] * 5 + [None])
    table = jury_table(used, **FAST)
    assert found(table, "prompt_tokens_per_verdict")["estimate"] == 60
    assert not table["statistic"].str.startswith(("cost", "cached")).any()  # one unknown: unknown


def test_one_model_in_three_personas():
    seats = [("m", name) for name in ("x", "y", "z")]
    rng = np.random.default_rng(0)
    frames = [votes({"m": rng.random(6)}, arm, persona=name, round=r).assign(position=k)
              for k, (_, name) in enumerate(seats) for arm in ("personas", "debate") for r in (1, 2)
              if (arm, r) != ("personas", 2)]  # fmt: skip
    alone = votes({"m": rng.random(6)})
    table = jury_table(pd.concat([alone, *frames]), **FAST)
    assert {"m (x)", "m (y)", "m (z)"} < set(table["juror"])
    assert found(table, "icc_a1", "personas")["n"] == 18
    assert found(table, "difference", "debate - independent")["n"] == 6
    assert "one_rater" in found(table, "icc_a1", "independent")["note"]


@pytest.mark.parametrize("weight", [1 / 3, 0.6])
def test_the_first_speakers_weight(weight):
    estimates = []
    for seed in range(10):
        frame = planted_records(seed, conversations=40, conform=False, wanted=("personas", "debate"))
        last = (frame["arm"] == "debate") & (frame["round"] == 2)
        opening = frame[(frame["arm"] == "debate") & (frame["round"] == 1)]
        key = ["conversation_id", "turn"]
        first = opening[opening["position"] == 1].set_index(key)["score"]
        rest = opening[opening["position"] > 1].groupby(key)["score"].mean()
        verdict = weight * first + (1 - weight) * rest
        frame.loc[last, "score"] = verdict.reindex(pd.MultiIndex.from_frame(frame.loc[last, key])).to_numpy()
        [row] = [r for r in peers(read_votes(frame)) if r.statistic == "first_speaker_weight"]
        estimates.append(row.value.value)
    mean, error = np.mean(estimates), np.std(estimates, ddof=1) / np.sqrt(10)
    assert abs(mean - weight) < 3 * error < 0.05


# ---------------------------------------------------------------------------------------------------------------
# Planted truths


def test_planted_traits_are_covered_and_no_conformity_is_no_effect():
    """Within three standard errors of the level, over fixed seeds."""
    covered, small, seeds = [], [], 30
    for seed in range(seeds):
        found = coverage(planted_records(seed, wanted=("independent", "debate")), truths())
        assert len(found) == 9
        covered += found.values()
        still = planted_records(seed, conform=False, wanted=("reask", "debate"))
        small.append(debate_effect(still).p() < 0.05)
    assert abs(np.mean(covered) - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / (9 * seeds))
    assert np.mean(small) <= 0.05 + 3 * np.sqrt(0.95 * 0.05 / seeds)


def test_a_slope_counts_the_conversations_in_which_there_is_something_to_see():
    rng = np.random.default_rng(0)
    cluster, x = np.repeat(np.arange(6), 4), np.tile([-1.0, 1.0], 12)
    assert effective_clusters(slope_parts(x, x), cluster) == pytest.approx(6)
    far = np.where(cluster < 2, 10 * x, x)
    few = slope(slope_parts(far, far + rng.normal(size=24)), cluster)
    assert few.effective == pytest.approx((2 * 100 + 4) ** 2 / (2 * 100**2 + 4)) and few.clusters == 6
    low, high = few.interval()
    assert (high - low) / 2 == pytest.approx(sps.t.ppf(0.975, few.effective - 1) * np.sqrt(few.variance))


def test_regression_to_the_mean_is_told_from_conformity():
    """Jurors that vote anew each round seem to conform; the arm in which they hear nobody takes it away."""
    slopes = {"conformity": [], "conformity_minus_reask": []}
    for seed in range(8):
        rows = {(r.arm, r.statistic, r.juror): r.value for r in peers(read_votes(planted_records(
            seed, conversations=40, conform=False, redraw=True, wanted=("reask", "debate"))))}  # fmt: skip
        for name, values in slopes.items():
            values.append(rows["debate", name, "lenient"].value)
    assert np.mean(slopes["conformity"]) > 0.3
    assert abs(np.mean(slopes["conformity_minus_reask"])) < 0.05


def test_the_sham_slope_is_taken_off():
    rows = {(r.arm, r.statistic, r.juror): r.value for r in statistics(planted_records(0, sham=0.3))}
    for name, (_, weight, _) in JURORS.items():
        low, high = rows["sham", "conformity", name].interval()
        assert low <= 0.3 <= high
        low, high = rows["debate", "conformity_minus_sham", name].interval()
        assert low <= weight - 0.3 <= high
    unknown = planted_records(0).drop(columns="peer_mean")
    row = found(jury_table(unknown, **FAST), "conformity_minus_sham")
    assert row["note"].startswith("not_estimable; peers_unknown")


def test_sizes():
    assert [conversations_needed(0.05, sd) for sd in (0.10, 0.15, 0.20)] == [32, 71, 126]
    with pytest.raises(InputError, match="other than 0"):
        conversations_needed(0.0)
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(InputError, match="A size needs"):
            conversations_needed(wrong)


# ---------------------------------------------------------------------------------------------------------------
# What cannot be estimated, and wrong records


DEGENERATE = {
    "one conversation": planted_records(0, conversations=1),
    "one turn of one conversation": planted_records(0, conversations=1, turns=1),
    "two conversations": planted_records(0, conversations=2, turns=1),
    "constant": planted_records(0, conversations=4).assign(score=0.5),
    "all null": planted_records(0, conversations=4).assign(score=None),
    "people only": planted_records(0, conversations=4).query("source == 'human'"),
    "models only": planted_records(0, conversations=4).query("source == 'model'"),
    "one juror": planted_records(0, conversations=4).query("juror == 'stern'"),
    "one round": planted_records(0, conversations=4).query("round == 1"),
    "no order": planted_records(0, conversations=4).drop(columns=["position", "peer_mean", "pair"]),
    "few columns": planted_records(0, conversations=4).query("arm == 'independent' and turn == 0")[
        ["conversation_id", "arm", "juror", "score"]
    ],
    "half the arms' conversations": pd.concat([
        planted_records(0, conversations=2).query("arm == 'debate'"),
        planted_records(0, conversations=4).query("arm == 'reask' and pair > 1"),
    ]),
    "a silent juror": planted_records(0, conversations=4).assign(
        score=lambda f: f["score"].where(f["juror"] != "stern")
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_records_give_notes_and_no_exception(name):
    table = jury_table(DEGENERATE[name], **FAST)
    assert list(table.columns) == list(COLUMNS) and len(table)
    missing = table["estimate"].isna() | table["low"].isna()
    assert (table["estimate"].isna() == table["note"].str.contains("not_estimable")).all()
    assert ((missing & table["estimate"].notna()) == table["note"].str.contains("no_interval")).all()
    few = ~table["estimate"].isna()
    assert table.loc[few, "note"].str.contains("few_conversations").all()
    inside = table[~missing]
    assert (inside["low"] <= inside["estimate"] + 1e-9).all() and (inside["estimate"] <= inside["high"] + 1e-9).all()


def test_what_one_conversation_or_one_source_leaves_out():
    table = jury_table(DEGENERATE["one conversation"], **FAST)
    assert table["low"].isna().all() and found(table, "mean_score")["estimate"] > 0
    table = jury_table(DEGENERATE["people only"], **FAST)
    assert found(table, "auc")["note"] == "not_estimable; one_source"
    assert not np.isnan(found(table, "difference")["low"])
    table = jury_table(DEGENERATE["all null"], **FAST)
    assert found(table, "no_answer_rate")["estimate"] == 1 and np.isnan(found(table, "mean_score")["estimate"])
    assert found(table, "mean_score_if_0")["estimate"] == 0
    table = jury_table(DEGENERATE["constant"], **FAST)
    assert found(table, "mean_score")["note"].startswith("no_interval; constant")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="juror"), "no column `juror`"),
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
    one, same, other = (jury_table(frame, n_resamples=300, seed=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one, same)
    default = ~one["method"].isin(["percentile", "bca"])
    pd.testing.assert_frame_equal(one[default], other[default])
    assert not one["low"].equals(other["low"])
    shuffled = frame.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(jury_table(shuffled, n_resamples=300, seed=1), one)


# ---------------------------------------------------------------------------------------------------------------
# Simulated jurors in the real engine


def test_planted_jurors_in_the_real_engine():
    names = ("lenient", "stern", "blind")
    records = judge(
        [f"sim/juror-{name}" for name in names],
        conversations(24),
        ("independent", "personas", "reask", "sham", "debate", "simultaneous"),
    )
    table = jury_table(records, **FAST)
    traits = {f"sim/juror-{name}": planted(get(f"sim/juror-{name}")) for name in names}
    covered = []
    for name, truth in traits.items():
        others = np.mean([t["leniency"] for n, t in traits.items() if n != name])
        wanted = [("independent", "leniency", truth["leniency"] - others),
                  ("personas", "discrimination", truth["discrimination"]),
                  ("debate", "conformity", truth["conformity"]), ("simultaneous", "conformity", truth["conformity"]),
                  ("sham", "conformity", truth["conformity"]), ("debate", "conformity_minus_sham", 0)]  # fmt: skip
        for arm, statistic, value in wanted:
            row = found(table, statistic, arm, juror=name)
            assert abs(row["estimate"] - value) < 0.7 * (row["high"] - row["low"])
            covered.append(row["low"] <= value <= row["high"])
    assert np.mean(covered) >= 0.85  # of 18, one or two may be missed
    assert found(table, "paired_accuracy", "personas")["n"] == 48
    heard = records[(records["arm"] == "debate") & (records["round"] == 2)]
    computed = peer_means(read_votes(records.drop(columns="peer_mean"))["debate"])[:, :, 1]
    assert np.nanmean(computed) == pytest.approx(heard["peer_mean"].mean())  # what was shown is what is computed


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


def test_a_test_is_never_surer_than_its_clusters_can_be_exchanged():
    """Three pairs and two further models can be exchanged in 2³ ways, three people among eight in 56."""
    pairs = baseline_auc([1, 2, 3, 9, 8, 7, 6, 6], [1, 1, 1, 0, 0, 0, 0, 0], list("abcabcde"))
    assert [*pairs.loc[pairs["p"].notna(), "p"]] == [0.25, 0.25]
    apart = baseline_auc(range(80), [*[1] * 30, *[0] * 50], [f"c{i // 10}" for i in range(80)])
    assert apart["p"].max() == 2 / 56
    many = baseline_auc(range(80), [*[1] * 30, *[0] * 50], range(80))
    assert many["p"].max() == 1 / 10_000  # of 9,999 arrangements drawn and the observed one
