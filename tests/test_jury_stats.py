"""Statistics of juries: hand-computed cases, outside references, known truths, and what cannot be estimated."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from recognition_records import row
from simulate_jury import planted_records

import selfeval as se
from selfeval.errors import InputError
from selfeval.results import Records
from selfeval.roleplay.votes import icc, krippendorff_alpha
from selfeval.stats import jury_table

NAN = np.nan
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", part E: four observers, twelve units.
KRIPPENDORFF = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]).T  # fmt: skip
# Shrout and Fleiss 1979, table 2: four judges' ratings of six targets.
SHROUT = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
Z = sps.norm.ppf(0.975)


def votes(scores: dict[str, list], arm="independent", **columns) -> pd.DataFrame:
    """Build records of one arm and round: {juror: score of conversation 0, 1, ...}."""
    given = [(str(c), juror, score) for juror, said in scores.items() for c, score in enumerate(said)]
    frame = pd.DataFrame(given, columns=["conversation_id", "juror", "score"])
    return frame.assign(**{"arm": arm, "source": "model", "turn": 1, "round": 1} | columns)


def rounds(arm: str, scores: list[list[float | None]], **columns) -> pd.DataFrame:
    """Build one conversation's records: a list of rounds, each with the scores of jurors a, b, c."""
    said = [{name: [score] for name, score in zip("abc", given, strict=True)} for given in scores]
    return pd.concat(votes(one, arm, **{"round": k} | columns) for k, one in enumerate(said, 1))


def found(table, statistic, task=None, evaluator=""):
    """Return the first row of a statistic, whoever was judged."""
    return row(table, statistic, evaluator, None, task=task)


def both_sources(people, models) -> pd.DataFrame:
    """Build records of people's and of models' conversations that are no pairs."""
    models = votes(models)
    return pd.concat([votes(people, source="human"), models.assign(conversation_id="m" + models["conversation_id"])])


# ---------------------------------------------------------------------------------------------------------------
# Hand-computed cases and outside references


def test_a_score_that_only_touches_one_half_has_not_changed_sides():
    said = [[0.5, 0.6, 0.2], [0.7, 0.5, 0.8]]  # from .5, to .5, and across
    table = jury_table(pd.concat([rounds("debate", said, conversation_id=name) for name in "xyz"]))
    assert found(table, "crossing").estimate == pytest.approx(1 / 3)


def test_a_judge_that_decides_after_the_jury_is_no_juror():
    jury = votes({"a": [0.2, 0.4, 0.6], "b": [0.3, 0.5, 0.9]}).assign(role="juror")
    judge = votes({"c": [1.0, 1.0, 1.0]}).assign(role="judge")
    pd.testing.assert_frame_equal(jury_table(pd.concat([jury, judge])), jury_table(jury))


def test_the_verdict_is_that_of_the_last_round():
    talks = [rounds("debate", [[0.1, 0.2, 0.3], [0.7, 0.8, 0.9]], conversation_id=str(k)) for k in range(3)]
    assert found(jury_table(pd.concat(talks)), "mean_score")["estimate"] == pytest.approx(0.8)


def test_a_mean_score_has_its_interval_within_0_and_1():
    high, low = votes({"a": [1.0, 1.0, 1.0, 0.7]}), votes({"a": [0.0, 0.0, 0.0, 0.3]})
    for scores, bound in ((high, "high"), (low, "low")):
        mean = found(jury_table(scores), "mean_score")
        assert 0 <= mean["low"] < mean["estimate"] < mean["high"] <= 1, bound


def test_means_and_no_answers_by_hand():
    table = jury_table(votes({"a": [0.2, 0.4, None, 0.6], "b": [0.4, None, None, 0.8]}))
    mean = found(table, "mean_score")
    assert (mean["estimate"], mean["clusters"], mean["author"]) == (pytest.approx((0.3 + 0.4 + 0.7) / 3), 3, "model")
    assert "no_verdict=1" in mean["note"] and mean["cluster_unit"] == "conversation"
    assert found(table, "no_answer_rate")["estimate"] == 3 / 8
    assert found(table, "no_answer_rate", evaluator="b")["estimate"] == 0.5
    assert found(table, "mean_score_if_0")["estimate"] == pytest.approx((0.3 + 0.2 + 0 + 0.7) / 4)
    assert found(table, "mean_score_if_1")["estimate"] == pytest.approx((0.3 + 0.7 + 1 + 0.7) / 4)
    frame = votes({"a": [0.1, 0.5]})  # the turns of a conversation weigh together
    frame = pd.concat([frame, frame[frame["conversation_id"] == "0"].assign(turn=2, score=0.3)])
    mean = found(jury_table(frame), "mean_score")
    assert (mean["estimate"], mean["n"], mean["clusters"]) == (pytest.approx((0.2 + 0.5) / 2), 3, 2)


def test_differences_have_the_interval_of_t_and_the_p_of_exchanged_signs():
    rng = np.random.default_rng(0)
    base = rng.normal(0.5, 0.1, 24)
    frame = pd.concat(
        votes({j: base + shift + rng.normal(0, 0.05, 24) for j in "abc"}, arm)
        for arm, shift in (("debate", 0.015), ("reask", 0.0))
    )
    table = jury_table(frame)
    wide = frame.groupby(["arm", "conversation_id"])["score"].mean().unstack(0)
    row = found(table, "difference", "debate - reask")
    gaps = wide["debate"] - wide["reask"]
    interval = sps.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx(tuple(interval))
    reference = sps.permutation_test((gaps,), np.mean, permutation_type="samples", rng=1)
    assert row["p"] == pytest.approx(reference.pvalue, abs=0.02) and 0.001 < row["p"] < 0.5
    assert row["detectable"] > 0 and "untested" not in row["note"]


@pytest.mark.parametrize(
    ("conversations", "jumps", "is_tested"), [(19, 19, False), (20, 20, True), (40, 4, False), (40, 20, True)]
)
def test_few_changes_and_rare_ones_are_not_tested(conversations, jumps, is_tested):
    """Shift, difference and leniency, of jurors b and c who change alike."""
    change = 0.5 * (np.arange(conversations) < jumps)
    first = votes({"a": [0.3] * conversations, "b": [0.3] * conversations}, "reask")
    second = votes({"a": [0.3] * conversations, "b": 0.3 + change}, "reask", round=2)
    table = jury_table(pd.concat([first, second, first.assign(arm="independent")]))
    for name, evaluator in (("shift", ""), ("leniency", "b")):
        row = found(table, name, "reask", evaluator)
        assert (row["p"] < 0.001) == (not np.isnan(row["p"])) == is_tested != ("untested" in row["note"]), name
    other = pd.concat([second.assign(round=1), first.assign(arm="personas")])
    row = found(jury_table(other), "difference")
    assert np.isnan([row["p"], row["detectable"]]).all() == (not is_tested)


def test_a_juror_counts_where_it_is_compared_on_the_same_answers():
    """Else its leniency would look like an effect of the arm, or that of the answers like its leniency."""
    one = votes({"a": [0.2, 0.3, 0.4], "b": [0.9, 0.9, None], "c": [0.9, 0.9, 0.9]}, "debate")
    other = votes({"a": [0.1, 0.2, 0.3], "b": [0.8, None, 0.7]}, "reask")
    row = found(jury_table(pd.concat([one, other])), "difference")
    assert (row["estimate"], row["n"]) == (pytest.approx(0.1), 4)
    table = jury_table(votes({"a": [0.6, 0.9], "b": [0.5, None], "c": [0.1, 0.4]}))
    assert found(table, "leniency", evaluator="a")["estimate"] == pytest.approx((0.3 + 0.5) / 2)
    assert found(table, "leniency", evaluator="c")["estimate"] == pytest.approx((-0.45 - 0.5) / 2)


def test_paired_accuracy_by_hand():
    """Ids are numbers in one file and text in the other, and those of pairs floats: models' have them alone."""
    human = votes({"a": [0.9, 0.4, 0.5, 0.7]}, source="human")
    model = votes({"a": [0.1, 0.6, 0.5, None]}).assign(conversation_id=[6, 7, 8, 9], pair=[0, 1, 2, 3])
    row = found(jury_table(pd.concat([human, model])), "paired_accuracy")
    assert (row["estimate"], row["n"], row["clusters"]) == (0.5, 3, 3)
    assert 0 < row["low"] < 0.5 < row["high"] < 1
    loose = jury_table(pd.concat([human, model.drop(columns="pair")]))  # no pairs: the area alone
    assert found(loose, "paired_accuracy")["note"] == "not_estimable; no_pairs" and found(loose, "auc")["low"] > 0


def test_people_and_models_that_are_no_pairs_count_each_for_their_side():
    """DeLong's variance by hand; three people among fifty models are three."""
    rng = np.random.default_rng(3)
    people, models = rng.normal(0.6, 0.1, 4), rng.normal(0.5, 0.1, 16)
    table = jury_table(both_sources({"a": people}, {"a": models}))
    wins = people[:, None] > models
    variance = wins.mean(1).var(ddof=1) / 4, wins.mean(0).var(ddof=1) / 16
    df = sum(variance) ** 2 / (variance[0] ** 2 / 3 + variance[1] ** 2 / 15)
    area, p = found(table, "auc"), wins.mean()
    half = sps.t.ppf(0.975, df) * np.sqrt(sum(variance)) / (p * (1 - p))
    logits = np.log(p / (1 - p)) + half * np.array([-1, 1])
    assert (area["low"], area["high"]) == pytest.approx(tuple(1 / (1 + np.exp(-logits))))
    few = found(jury_table(both_sources({"a": [0.8, 0.9, 0.7]}, {"a": [0.1] * 25 + [0.2] * 25})), "auc")
    assert few["estimate"] == few["high"] == 1 and few["low"] == pytest.approx(3 / (3 + Z**2))
    assert few["p"] == pytest.approx(2 * sps.norm.sf(np.sqrt(3)))  # where 3 / (3 + z^2) is one half
    one = jury_table(both_sources({"a": [0.8]}, {"a": [0.1, 0.3, 0.9]}))
    assert "no_interval" in found(one, "auc")["note"]


# ---------------------------------------------------------------------------------------------------------------
# Debates


@pytest.mark.parametrize(
    ("arm", "shown", "heard"), [("debate", [0.4, 0.35, 0.25], [0.4, 0.35, 0.25]), ("reask", None, [0.4, 0.35, 0.15])]
)
def test_conformity_is_the_slope_on_what_a_juror_has_heard(arm, shown, heard):
    """As the record says; in the arm reask on what it would have heard."""
    first, last = np.array([0.1, 0.2, 0.6]), np.array([0.3, np.nan, 0.5])
    frame = rounds(arm, [first, last])
    frame["peer_mean"] = [None] * 3 + (shown or [None] * 3)
    other = rounds(arm, [[0.1, 0.3, 0.5], [0.2, 0.3, 0.4]], peer_mean=shown and 0.3, conversation_id="1")
    distance = np.array([*heard, *([0.3] * 3 if shown else (0.4, 0.3, 0.2))]) - [*first, 0.1, 0.3, 0.5]
    change = np.array([*(last - first), 0.1, 0, -0.1])
    known = ~np.isnan(change)
    row = found(jury_table(pd.concat([frame, other])), "conformity")
    assert (row["estimate"], row["n"]) == (pytest.approx(np.polyfit(distance[known], change[known], 1)[0]), 5)


@pytest.mark.parametrize(("arm", "meanings"), [
    ("debate", ["consensus", "consensus"]), ("reask", ["reliability", "reliability"]),
])  # fmt: skip
def test_agreement_is_consensus_as_soon_as_a_juror_has_heard_another(arm, meanings):
    said = [rounds(arm, [[0.1, 0.2, 0.6], [0.3, 0.4, 0.5]], conversation_id=str(k)) for k in range(3)]
    table = jury_table(pd.concat(said))
    for name in ("alpha", "icc_a1"):
        rows = table[table["statistic"] == name].sort_values("condition")
        assert [note.split(";")[0] for note in rows["note"]] == meanings


def test_one_model_in_several_personas_has_as_many_seats():
    rng = np.random.default_rng(0)
    frames = [
        votes({"m": rng.random(6)}, arm, persona=name, round=r)
        for name in "xyz" for arm, r in (("personas", 1), ("debate", 1), ("debate", 2))
    ]  # fmt: skip
    table = jury_table(pd.concat([votes({"m": rng.random(6)}), *frames]))
    assert {"m (x)", "m (y)", "m (z)"} < set(table["evaluator"])
    assert found(table, "icc_a1", "personas")["n"] == 18
    assert found(table, "difference", "debate - independent")["n"] == 6
    assert np.isnan(found(table, "icc_a1", "independent")["estimate"])


# ---------------------------------------------------------------------------------------------------------------
# Agreement


def alone(build, ratings):
    """Build a measure of agreement in which every unit is a cluster of its own."""
    return build(np.asarray(ratings, float), np.arange(len(ratings)))


def test_published_coefficients():
    """Krippendorff's .849; Shrout and Fleiss' ICC(2,1) = .29, from units that all have rated."""
    ratings = np.vstack([SHROUT, [NAN, 1, 2, 3]])
    assert round(float(alone(krippendorff_alpha, KRIPPENDORFF).value), 3) == 0.849
    assert round(float(alone(icc, ratings).value), 2) == 0.29
    shifted = SHROUT[:, :1] + np.array([0, 1, 2, 3])  # leniency counts against absolute agreement
    assert alone(icc, shifted).value < 0.9 and alone(icc, SHROUT[:, [0, 0]]).value == pytest.approx(1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("build", "ratings"), [
    (krippendorff_alpha, [[1, NAN], [NAN, 2]]), (krippendorff_alpha, np.full((5, 3), 0.1)),
    (krippendorff_alpha, np.empty((0, 3))), (icc, np.full((5, 3), 0.1)), (icc, [[0.1], [0.2]]), (icc, [[0.1, 0.2]]),
])  # fmt: skip
def test_what_is_not_defined_is_nan(build, ratings):
    """No two ratings, constant ones, no unit, one rater, a single complete unit."""
    statistic = alone(build, ratings)
    assert np.isnan([statistic.value, *statistic.interval(Z)]).all()


def test_agreement_has_no_interval():
    table = jury_table(planted_records(0))
    rows = table[table["statistic"].isin(["alpha", "icc_a1"])]
    assert rows["estimate"].notna().all() and rows[["low", "high"]].isna().all(axis=None)


# ---------------------------------------------------------------------------------------------------------------
# What a jury can show


def conclude(people: dict, models: dict) -> tuple[str, str]:
    row = found(jury_table(both_sources(people, models)), "auc")
    return row["conclusion"], row["note"]


def test_a_jury_that_gives_everybody_the_same_score_is_constant():
    for scores in ({"a": [0.5] * 12}, {"a": [0.2] * 12, "b": [0.9] * 12}):
        assert conclude(scores, scores)[0] == "constant answer"
    assert conclude({"a": [0.5] * 12}, {"a": [0.5] * 11 + [0.6]})[0] == "no evidence"


def test_three_conversations_a_side_can_show_nothing_and_four_can():
    for number, word in ((2, "too few answers"), (3, "too few answers"), (4, "recognises")):
        said, note = conclude({"a": [0.9] * number}, {"a": [0.1] * number})
        assert said == word and ("too_few_conversations" in note) == (word != "recognises")
    assert conclude({"a": [0.9, 0.2, 0.5]}, {"a": [0.1, 0.3] * 20})[0] == "too few answers", "three people"
    nearly = {"a": [0.9, 0.8, 0.7]}, {"a": [0.1, 0.2, 0.3, 0.75] * 10}
    assert conclude(*nearly)[0] == "too few answers", "nor what is less clear"


def test_jurors_who_answer_for_one_side_alone_tell_nobody_apart():
    """A lenient one of people, a stern one of models."""
    silent = [None] * 20
    lenient, stern = [0.9] * 20, [0.1] * 20
    said, note = conclude({"a": lenient, "b": silent}, {"a": silent, "b": stern})
    assert said == "depends on no answers" and "answers_differ" in note
    once = {"a": [0.9, *silent[1:]], "b": stern}
    assert conclude({"a": lenient, "b": [0.1, *silent[1:]]}, once)[0] == "depends on no answers"
    together = {"a": lenient, "b": [0.8] * 19 + [None]}, {"a": [0.2] * 19 + [None], "b": stern}
    assert conclude(*together)[0] == "recognises", "one answer each is missing"


def test_what_is_said_of_few_of_a_side_is_not_said_of_the_side():
    """Scores of 5 of 40 model's answers; a difference in silence is noted."""
    said, note = conclude({"a": [0.9] * 40}, {"a": [0.1] * 5 + [None] * 35})
    assert said == "depends on no answers" and {"answers_differ", "depends_on_no_answers"} <= {*note.split("; ")}
    said, note = conclude({"a": [0.9] * 20}, {"a": [0.1] * 3 + [None] * 17})
    assert said == "depends on no answers" and "answers_differ" in note


def test_the_same_chats_under_other_ids_are_one_cluster():
    talks = [
        {"conversation_id": f"{side}{k}", "source": side, "pair": str(k), "agent": "b",
         "turns": [{"speaker": "a", "text": f"Hi {k}"}, {"speaker": "b", "text": f"{side} {k}"}]}
        for k in range(6) for side in ("human", "model")
    ]  # fmt: skip
    copies = []
    for number in range(4):
        for talk in talks:
            name = f"{number}-{talk['conversation_id']}"
            copies.append(talk | {"conversation_id": name, "pair": f"{number}-{talk['pair']}"})
    rng = np.random.default_rng(0)

    def judged(talks):
        rows = [
            {"conversation_id": talk["conversation_id"], "source": talk["source"], "pair": talk["pair"], "turn": 1,
             "arm": "independent", "juror": "a", "score": round(rng.random(), 2)} for talk in talks
        ]  # fmt: skip
        verdicts = Records(pd.DataFrame(rows))
        verdicts.conversations = talks
        return se.measure_jury(verdicts).query("statistic == 'auc'").set_index("task")

    once, often = judged(talks), judged(copies)
    assert once["clusters"].tolist() == often["clusters"].tolist() == [6] * len(once)
    assert often.loc["independent", "n"] == 4 * once.loc["independent", "n"]


# ---------------------------------------------------------------------------------------------------------------
# What cannot be estimated, and wrong records

FOUR = planted_records(0, conversations=4)
DEGENERATE = {
    "one conversation": planted_records(0, conversations=1),
    "constant": FOUR.assign(score=0.1),
    "all null": FOUR.assign(score=None),
    "people only": FOUR.query("source == 'human'"),
}


@pytest.mark.parametrize("size", [3, 5])
def test_equal_means_of_several_jurors_are_ties_whoever_gave_which_score(size):
    scores = [0.1, 0.2, 0.3, 0.7, 0.9][:size]
    forward = {str(k): [score] for k, score in enumerate(scores)}
    backward = {str(k): [score] for k, score in enumerate(reversed(scores))}
    shifted = {str(k): [score] for k, score in enumerate(scores[1:] + scores[:1])}
    for people, models in ((forward, backward), (backward, shifted), (shifted, forward)):
        assert found(jury_table(both_sources(people, models)), "auc")["estimate"] == 0.5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_records_give_notes_and_no_exception(name):
    table = jury_table(DEGENERATE[name])
    known, bounded, note = table["estimate"].notna(), table["low"].notna(), table["note"]
    assert ((~known) == note.str.contains("not_estimable")).all()
    assert ((known & ~bounded) == note.str.contains("no_interval")).all()
    inside = table[bounded]
    assert (inside["low"] <= inside["estimate"] + 1e-9).all() and (inside["estimate"] <= inside["high"] + 1e-9).all()
    if name == "people only":
        assert found(table, "auc")["note"] == "not_estimable; one_source" and found(table, "difference")["low"] < 1
    if name == "all null":
        rates = [found(table, name)["estimate"] for name in ("no_answer_rate", "mean_score_if_0", "mean_score_if_1")]
        assert rates == [1, 0, 1] and np.isnan(found(table, "mean_score")["estimate"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(arm="vote"), "`arm`"),
        (lambda f: f.assign(score=85), "`score`"),
        (lambda f: pd.concat([f, f]), "juror a, .* twice"),
    ],
)
def test_wrong_records(change, message):
    with pytest.raises(InputError, match=message):
        jury_table(change(votes({"a": [0.1, 0.2]})))
