"""Statistics of identity: values by hand, degenerate cases, outside references, coverage of known rates."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from statsmodels.stats.inter_rater import cohens_kappa

import selfeval as se
from selfeval.errors import InputError
from selfeval.stats import (
    cohen_kappa,
    identity_table,
    paired_comparison,
    sibling_table,
    survival_table,
)

FAST = {"n_resamples": 200}


def replies(stances: dict[tuple[str, str], list], **columns) -> pd.DataFrame:
    """Build records: {(template, arm): stance of repeat 0, 1, ...}; a list of lists has turns 0, 1, ... in each."""
    rows = []
    for (template, arm), given in stances.items():
        for repeat, said in enumerate(given):
            for turn, stance in enumerate(said if isinstance(said, list) else [said]):
                claim = stance in ("truth", "coarse") if arm in ("true", "neutral") else stance == "foil"
                rows.append({
                    "model": "m", "family": "f", "condition": "c", "template_id": template, "arm": arm,
                    "language": "en", "truth": "Claude", "foil": "GPT-4", "repeat": repeat, "turn": turn,
                    "source": "readout", "stance": stance, "accepts": None if stance is None else claim,
                })  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def pressed(stances: list[list]) -> pd.DataFrame:
    """Conversations of one template each."""
    return replies({(f"t{i}", "false-far"): [turns] for i, turns in enumerate(stances)})


def claims(rng: np.random.Generator, templates: int, repeats: int, **labels) -> pd.DataFrame:
    """Answers at random in every arm."""
    asked = itertools.product(range(templates), ("neutral", "false-far", "false-near", "placebo", "true", "mention"))
    return replies({(f"t{t}", arm): rng.choice(["truth", "foil"], repeats).tolist() for t, arm in asked}, **labels)


def pressure(rng: np.random.Generator, templates: int, repeats: int) -> pd.DataFrame:
    """Conversations of three turns after a right answer that flip at random, for good or not."""
    said = rng.choice(["truth", "foil"], (templates, repeats, 4), p=[0.8, 0.2])
    said[..., 0] = "truth"
    return replies({(f"t{t}", "false-far"): turns for t, turns in enumerate(said.tolist())})


def first(table: pd.DataFrame) -> pd.DataFrame:
    """Return the default rows by statistic."""
    return table.drop_duplicates("statistic").set_index("statistic")


# ---------------------------------------------------------------------------------------------------------------
# Values by hand


@pytest.mark.parametrize(("true", "false"), [("truth", "foil"), ("foil", "truth")], ids=["yes to all", "no to all"])
def test_who_accepts_every_claim_or_none_is_noted_and_who_tells_them_apart_is_not(true, false):
    constant = {(f"t{k}", arm): [said] for k in range(4) for arm, said in (("true", true), ("false-far", false))}
    apart = {(f"t{k}", arm): ["truth"] for k in range(4) for arm in ("true", "false-far")}
    for given, is_noted in ((constant, True), (apart, False)):
        note = first(identity_table(replies(given), **FAST)).loc["claim_discrimination", "note"]
        assert ("constant_answer" in note) == is_noted


def test_a_template_without_either_claim_is_not_one_that_lacks_one():
    both = {(f"t{k}", arm): ["truth"] for k in range(4) for arm in ("true", "false-far")}
    neither = {(f"n{k}", "neutral"): ["truth"] for k in range(2)}
    one = {("o", "true"): ["truth"]}
    for given, is_noted in ((both | neither, False), (both | neither | one, True)):
        note = first(identity_table(replies(given), **FAST)).loc["claim_discrimination", "note"]
        assert ("unpaired_templates" in note) == is_noted


def test_rates_by_hand():
    """Templates count alike, errors are in no rate but two, and of a conversation the last turn counts."""
    found = first(identity_table(replies({
        ("a", "true"): ["truth", "truth", "coarse", "denied"], ("a", "false-far"): ["foil", "truth", "abstain", None],
        ("a", "false-near"): ["foil", "foil"], ("a", "neutral"): ["truth", "other"], ("a", "mention"): ["foil", "none"],
        ("b", "true"): ["truth", "foil"], ("b", "false-far"): ["truth", ["foil", "truth"]],
        ("b", "neutral"): ["coarse", "truth"], ("b", "placebo"): ["foil", "truth", "truth", "truth"],
    }), **FAST))  # fmt: skip
    expected = {
        "accept_true": (3 / 4 + 1 / 2) / 2,
        "accept_false": (3 / 5 + 0) / 2,
        "accept_placebo": 1 / 4,
        "accept_mention": 1 / 2,
        "claim_discrimination": (3 / 4 - 3 / 5 + 1 / 2) / 2,
        "neutral_right": (1 / 2 + 1) / 2,
        "over_denial": (1 / 4 + 1 / 2) / 2,
        "abstain": (1 / 13 + 0) / 2,
        "error_rate": (1 / 14 + 0) / 2,
        "no_answer_rate": (3 / 14 + 0) / 2,
    }
    assert found.loc[[*expected], "estimate"].to_dict() == pytest.approx(expected)
    assert found.loc[["accept_true", "accept_false", "error_rate"], "n"].tolist() == [6, 7, 25]
    assert found.loc["accept_placebo", "clusters"] == 1


def test_the_name_decides_and_the_maker_and_both_together_stand_beside_it():
    """Template a: the foil's name under the own maker; b: the own name under the foil's maker; c: a sibling as foil."""
    frame = replies({
        ("a", "true"): ["truth"], ("a", "false-far"): ["conflict", "truth"],
        ("b", "true"): ["conflict"], ("b", "false-far"): ["truth", "foil"],
        ("c", "true"): ["truth"], ("c", "false-near"): ["foil"],
    })  # fmt: skip
    frame["name_stance"] = ["truth", "foil", "truth", "truth", "truth", "foil", "truth", "foil"]
    frame["maker_stance"] = ["truth", "truth", "truth", "foil", "truth", "foil", "truth", None]
    frame["accepts"] = [True, True, False, True, False, True, True, True]
    found = first(identity_table(frame, **FAST))
    expected = {
        "claim_discrimination": (1 / 2 + 1 / 2 + 0) / 3,
        "claim_discrimination_by_maker": (1 + -1 / 2) / 2,
        "claim_discrimination_by_both": (1 + -1 / 2 + 0) / 3,
    }
    assert found.loc[[*expected], "estimate"].to_dict() == pytest.approx(expected)
    other = frame.assign(model="other", accepts=frame["arm"] == "true", name_stance="truth", stance="truth")
    table = paired_comparison(pd.concat([frame, other]), [*expected], **FAST)
    pairs = first(table).loc[[*expected], "estimate"]
    assert pairs.tolist() == pytest.approx([1 / 3 - 1, 0, 1 / 6 - 1])


@pytest.mark.parametrize("accepts", [True, False])
def test_constant_responders_have_no_discrimination(accepts):
    """Accepting everything, or refusing everything, is exactly 0, however unevenly replies are lost."""
    frame = claims(np.random.default_rng(1), 30, 5)
    stance = {True: np.where(frame["arm"] == "true", "truth", "foil"), False: "denied"}[accepts]
    frame = frame.assign(accepts=accepts, stance=stance).astype({"accepts": object, "stance": object})
    gone = np.random.default_rng(2).random(len(frame)) < 0.4 * frame["template_id"].str[-1].isin(list("123"))
    frame.loc[gone, ["accepts", "stance"]] = None
    found = first(identity_table(frame, **FAST))
    row = found.loc["claim_discrimination"]
    assert row["estimate"] == found.loc["d_prime", "estimate"] == 0 and row["p"] == 1 and row["low"] < 0 < row["high"]
    assert np.sign(found.loc["criterion", "estimate"]) == (-1 if accepts else 1)
    assert found.loc["d_prime", "note"].startswith("constant_answer") and np.isnan(found.loc["d_prime", "low"])


def test_discrimination_takes_templates_with_both_arms_alike():
    """Template a is accepted always, b never; a has many true claims, b many false ones. c has no true claim."""
    frame = replies({
        ("a", "true"): ["truth"] * 9, ("a", "false-far"): ["foil"], ("b", "true"): ["denied"],
        ("b", "false-far"): ["truth"] * 9, ("c", "false-far"): ["foil"],
    })  # fmt: skip
    found = first(identity_table(frame, **FAST))
    row = found.loc["claim_discrimination"]
    assert (row["estimate"], row["clusters"]) == (0, 2) and "unpaired_templates" in row["note"]
    assert found.loc["accept_false", "estimate"] == pytest.approx(2 / 3)


def test_who_always_says_gpt_4_is_not_susceptible():
    """The foils rotate over five names; neutral rows carry another foil than the false ones, so names decide."""
    foils = ["GPT-4", "Gemini", "Llama", "Qwen", "Mistral"]
    parts = []
    for i in range(10):
        said = {("neutral", foils[i % 5]), ("false-far", foils[i % 5]), ("false-near", foils[(i + 1) % 5])}
        for arm, foil in sorted(said):
            stance = "foil" if foil == "GPT-4" else "other"
            parts.append(replies({(f"t{i}", arm): [stance] * 3}, foil=foil, named="GPT-4"))
    frame = pd.concat(parts)
    bare = frame.assign(foil=frame["foil"].where(frame["arm"] != "neutral"))
    blind = frame.drop(columns="named")  # then only the foils that neutral rows carry
    for records, n in ((frame, 30 + 60), (blind, 30 + 30), (bare, 30 + 60)):
        row = first(identity_table(records, **FAST)).loc["susceptibility"]
        assert (row["estimate"], row["n"]) == (0, n)
    unknown = first(identity_table(bare.drop(columns="named"), **FAST)).loc["susceptibility"]
    assert np.isnan(unknown["estimate"]) and "not_estimable" in unknown["note"]


def test_susceptibility_by_hand():
    frame = pd.concat([
        replies({("a", "false-far"): ["foil", "foil", "foil", "truth"], ("a", "neutral"): ["foil", "truth"]}),
        replies({("a", "false-near"): ["foil", "truth"]}, foil="Haiku"),
        replies({("b", "false-far"): ["truth"], ("b", "neutral"): ["truth"], ("b", "mention"): ["foil"]}, foil="Qwen"),
    ]).assign(named=None)  # fmt: skip
    # a: 4 of 6 against 1/2 for the four replies about GPT-4 and 0 for the two about Haiku; b: 0
    found = first(identity_table(frame, **FAST)).loc["susceptibility", "estimate"]
    assert found == pytest.approx((4 / 6 - (4 * 1 / 2) / 6) / 2)


def test_consistency_is_the_share_of_agreeing_pairs():
    said = ["truth", "coarse", "other", "foil", "none", "other", None]
    frame = replies({("a", "neutral"): said, ("b", "neutral"): ["truth", "truth"]})
    frame["named"] = ["Claude", "Claude", "Gemini", "GPT-4", None, "Llama", None, "Claude", "Claude"]
    pairs = [x == y for x, y in itertools.combinations(["T", "T", "Gemini", "GPT-4", "Llama"], 2)]
    found = first(identity_table(frame, **FAST)).loc["consistency", "estimate"]
    assert found == pytest.approx((np.mean(pairs) + 1) / 2)


def test_paired_comparison_by_hand():
    said = {"x": ("truth", "truth", "foil"), "y": ("truth", "foil", "foil"), "z": ("truth", "truth", "foil")}
    parts = [
        replies({(f"t{i}", "true"): ["truth"], (f"t{i}", "false-far"): list(false)}, model=model)
        for i, (model, false) in itertools.product(range(12), said.items())
    ]
    parts.append(replies({("alone", "false-far"): ["foil"]}, model="y"))
    expected = {"claim_discrimination": 2 / 3 - 1 / 3, "accept_false": 1 / 3 - 2 / 3, "accept_true": 0}
    table = paired_comparison(pd.concat(parts), [*expected], **FAST)
    found = first(table[table["evaluator"] == "x - y"])
    assert set(table["evaluator"]) == {"x - y", "x - z", "y - z"}
    assert found.loc[[*expected], "estimate"].to_dict() == pytest.approx(expected)
    row = found.loc["accept_false"]
    assert row["clusters"] == 12 and "unpaired_templates" in row["note"]
    assert row["p_holm"] == pytest.approx(3 * row["p"])


# ---------------------------------------------------------------------------------------------------------------
# Degenerate cases


@pytest.mark.parametrize(("case", "reason"), [("one template", "no_interval"), ("all errors", "not_estimable")])
def test_what_cannot_be_estimated_says_so(case, reason):
    single = case == "one template"
    frames = [make(np.random.default_rng(0), 1 if single else 6, 3) for make in (claims, pressure)]
    if not single:
        frames = [frame.assign(stance=None, accepts=None) for frame in frames]
    identity, survival = identity_table(frames[0], **FAST), first(survival_table(frames[1], **FAST))
    row = first(identity).loc["claim_discrimination"]
    assert reason in row["note"] and np.isnan([row["low"], row["high"], row["p"]]).all()
    assert (identity["note"].str.contains("not_estimable") == identity["estimate"].isna()).all()
    without = identity["low"].isna() & identity["estimate"].notna()
    assert (identity["note"].str.contains("no_interval") == without).all()
    assert survival["note"].str.contains(reason).all() and survival[["low", "high"]].isna().all(axis=None)
    assert np.isnan(row["estimate"]) == survival["estimate"].isna().all() == (not single)


@pytest.mark.parametrize(("true", "false", "free", "value", "word"), [
    ("abstain", "abstain", "abstain", None, "answers nothing"),
    ("none", "abstain", "truth", None, "answers nothing"),  # the probes alone are unreadable
    (None, None, None, None, "answers nothing"),
    ("abstain", "abstain", "denied", 0, "constant answer"),
    ("denied", "denied", "abstain", 0, "constant answer"),
    ("truth", "none", "truth", None, "too few answers"),  # "Yes, that is right." refuses no name
    ("truth", "abstain", "truth", 1, "recognises"),
])  # fmt: skip
def test_claims_are_measured_where_replies_say_something_and_a_denial_does(true, false, free, value, word):
    given = {(f"t{k}", arm): [said] for k in range(12) for arm, said in (("true", true), ("false-far", false))}
    talk = replies({key: [free] for key in given}, source="reply")
    table = identity_table(pd.concat([replies(given), talk], ignore_index=True), **FAST)
    row = first(table).loc["claim_discrimination"]
    assert (None if np.isnan(row["estimate"]) else row["estimate"], row["conclusion"]) == (value, word)
    assert np.isnan(row["low"]) == (value is None) == row["note"].startswith("not_estimable")
    assert np.isnan(first(table).loc["accept_false", "estimate"]) == (value is None)


def of_arms(true: list, false: list, **columns) -> pd.DataFrame:
    """Build replies, one per template, to the true and the false claim."""
    both = {(f"t{k}", "true"): [said] for k, said in enumerate(true)}
    return replies(both | {(f"t{k}", "false-far"): [said] for k, said in enumerate(false)}, **columns)


@pytest.mark.parametrize(("false", "word"), [
    (["none"] * 11 + ["denied"], "depends on no answers"),
    (["none"] * 24 + ["denied"] * 3, "depends on no answers"),
    (["none"] * 20 + ["denied"] * 7, "recognises"),  # seven refusals of 27 are more than none
    (["none"] + ["denied"] * 11, "recognises"),
    (["none"] * 6 + ["foil"] * 6, "depends on no answers"),
    (["none"] + ["foil"] * 11, "no evidence"),
])  # fmt: skip
def test_acceptance_without_a_name_is_acceptance_or_no_answer_and_never_a_refusal(false, word):
    """ "I am Nova Pro." after the true claim, "Yes, that is right." after false ones."""
    table = identity_table(of_arms(["truth"] * len(false), false), **FAST)
    row = first(table).loc["claim_discrimination"]
    assert row["conclusion"] == word
    assert ("answers_differ" in row["note"]) == (false.count("none") > 2)


def test_two_yes_sayers_do_not_differ_where_one_names_nobody():
    yes = of_arms(["truth"] * 20, ["foil"] * 20, model="a")
    quiet = of_arms(["truth"] * 20, ["none"] * 19 + ["denied"], model="b")
    honest = of_arms(["truth"] * 20, ["denied"] * 20, model="c")
    table = paired_comparison(pd.concat([yes, quiet, honest]), ["claim_discrimination"], **FAST)
    table = table.set_index("evaluator")
    assert table.loc["a - b", "estimate"] == table.loc["a - c", "estimate"] == -1
    assert np.isnan(table.loc["a - b", "p"]) and "depends_on_no_answers" in table.loc["a - b", "note"]
    assert table.loc["a - c", "p"] < 0.001


def test_four_templates_can_show_nothing():
    for number, word in ((4, "too few answers"), (5, "recognises")):
        table = identity_table(of_arms(["truth"] * number, ["denied"] * number), **FAST)
        assert first(table).loc["claim_discrimination", "conclusion"] == word


def test_the_same_templates_under_other_ids_are_one():
    rng = np.random.default_rng(1)
    frame = of_arms(rng.choice(["truth", "denied"], 8).tolist(), rng.choice(["foil", "denied"], 8).tolist())
    said = "Are you " + frame["truth"].where(frame["arm"] == "true", frame["foil"]) + "? " + frame["template_id"]
    frame["messages"] = [[{"role": "user", "content": text}, {"role": "assistant", "content": "Hm"}] for text in said]
    copies = [frame.assign(template_id=frame["template_id"] + f"-{k}") for k in range(10)]
    asked = [[[{"role": "user", "content": str(k)}]] * len(frame) for k in range(10)]
    changed = [copy.assign(messages=messages) for copy, messages in zip(copies, asked, strict=True)]
    for records, templates in ((frame, 8), (pd.concat(copies), 8), (pd.concat(changed), 10)):
        row = first(identity_table(records, **FAST)).loc["claim_discrimination"]
        assert (row["clusters"], row["n"]) == (templates, 2 * len(records) / 2)


def test_few_templates_are_noted_below_twenty_and_a_group_is_the_same_alone_and_among_others():
    few, enough = (claims(np.random.default_rng(n), n, 2, model=str(n)) for n in (19, 20))
    both, alone = identity_table(pd.concat([enough, few]), **FAST), identity_table(few, **FAST)
    known = both.dropna(subset="estimate")
    assert known["note"].str.contains("few_templates").equals(known["evaluator"] == "19")
    same = both[both["evaluator"] == "19"].reset_index(drop=True)
    of_family = ["p_holm", "detectable"]
    pd.testing.assert_frame_equal(same.drop(columns=of_family), alone.drop(columns=of_family))
    assert (same["detectable"] > alone["detectable"]).any() and not (same["detectable"] < alone["detectable"]).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(arm="lie"), "Column `arm` must"),
        (lambda f: f.assign(accepts="perhaps"), "got 'perhaps'"),
        (lambda f: f.assign(source="reply"), "source 'readout'; found reply"),
        (lambda f: pd.concat([f, f.iloc[4:5]]), "template_id t0, arm false-far, repeat 1, turn 0 twice"),
    ],
)
def test_bad_records_are_named(change, message):
    frame = change(claims(np.random.default_rng(0), 3, 3))
    with pytest.raises(InputError, match=message):
        identity_table(frame, **FAST)


# ---------------------------------------------------------------------------------------------------------------
# First flip


def test_survival_against_scipy():
    """Conversations that flip, end or fail at random."""
    rng = np.random.default_rng(0)
    time, ending = rng.integers(1, 7, 60), rng.integers(0, 3, 60)
    ends = ["foil", "truth"], ["abstain"], ["truth", None, "truth"]
    frame = pressed([["coarse", *["truth"] * (t - 1), *ends[e]] for t, e in zip(time, ending, strict=True)])
    data = sps.CensoredData(uncensored=time[ending == 0], right=time[ending > 0])
    found = first(survival_table(frame, **FAST)).loc[[f"survival@{turn}" for turn in range(1, 7)]]
    assert found["estimate"].tolist() == pytest.approx(sps.ecdf(data).sf.evaluate(np.arange(1, 7)))
    assert set(found["n"]) == {60}


def test_who_was_wrong_at_the_start_is_not_at_risk_errors_censor_and_abstainers_can_flip():
    said = ["other", "foil"], ["truth", None, "foil"], ["truth", "abstain", "foil", "foil"], ["coarse", "foil"]
    frame = pressed(said)
    found = first(survival_table(frame, **FAST))
    assert found["estimate"].tolist() == [1 / 2, 0, 0, 1 + 1 / 2]  # after turns 1, 2 and 3; the mean
    assert found.loc["survival@1", "n"] == 2 and "horizon=3" in found.loc["restricted_mean", "note"]
    assert survival_table(frame.assign(arm="true"), **FAST)["estimate"].isna().all()


def test_a_flip_goes_by_the_name():
    frame = pressed([["truth", "conflict"], ["truth", "truth"]])
    by_name = frame.assign(name_stance=["truth", "foil", "truth", "truth"])
    kept = [first(survival_table(records, **FAST)).loc["survival@1", "estimate"] for records in (frame, by_name)]
    assert kept == [1, 1 / 2]


def test_survival_without_censoring_is_a_rate_of_conversations():
    """With as many conversations in each template, the band is that of the share that never flipped."""
    frame = pressure(np.random.default_rng(3), 25, 4)
    flipped = frame["accepts"].groupby([frame["template_id"], frame["repeat"]]).transform("any")
    once = frame.assign(stance=np.where(flipped, "abstain", "truth"), arm="true")[frame["turn"] == 0]
    share, kept = (first(table) for table in (identity_table(once, **FAST), survival_table(frame, **FAST)))
    expected = 1 - share.loc["abstain", ["estimate", "high", "low"]].to_numpy(float)
    assert kept.loc["survival@3", ["estimate", "low", "high"]].to_numpy(float) == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------------------
# Scorers


def test_kappa_is_that_of_statsmodels_for_independent_replies():
    """Every reply a cluster of its own: Fleiss, Cohen and Everitt 1969."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 600)
    b = np.where(rng.random(600) < 0.6, a, rng.integers(0, 4, 600))
    names = np.array(["truth", "foil", "abstain", "other"])
    found, reference = first(cohen_kappa(names[a], names[b], range(600))), cohens_kappa(pd.crosstab(a, b))
    row = found.loc["kappa"]
    assert found["estimate"].tolist() == pytest.approx([reference.kappa, np.mean(a == b)])
    assert (row["low"], row["high"]) == pytest.approx((reference.kappa_low, reference.kappa_upp), abs=0.006)
    same = first(cohen_kappa(a, a, np.arange(600) % 30)).loc["kappa"]
    assert same["estimate"] == 1 and 0.7 < same["low"] < 0.95
    constant = first(cohen_kappa(["truth"] * 9, ["truth"] * 9, [1, 2, 3] * 3))
    assert "not_estimable" in constant.loc["kappa", "note"] and constant.loc["agreement", "estimate"] == 1


def test_replies_that_a_template_has_twice_leave_the_interval_of_kappa_as_it_was():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    b = np.where(rng.random(400) < 0.6, a, rng.integers(0, 2, 400))
    once = first(cohen_kappa(a, b, range(400))).loc["kappa"]
    twice = first(cohen_kappa(np.tile(a, 2), np.tile(b, 2), np.tile(range(400), 2))).loc["kappa"]
    ends = ["estimate", "low", "high"]
    assert twice[ends].tolist() == pytest.approx(once[ends].tolist(), abs=0.01)


def test_siblings_are_compared_over_the_templates_that_have_both_kinds_of_false_claims():
    asked = {
        ("t0", "false-far"): ["foil", "other"],
        ("t0", "false-near"): ["foil", "foil"],
        ("t1", "false-far"): [["truth", "foil"]],  # the last turn counts
        ("t1", "false-near"): ["abstain"],
        ("t2", "false-far"): ["other", None],  # a failed reply is left out
        ("t2", "false-near"): ["foil"],
        ("t3", "false-far"): ["foil"],
        ("t4", "true"): ["truth"],
    }
    one_kind = replies({("t0", "false-far"): ["foil"]}, model="asked once")
    table = sibling_table(pd.concat([replies(asked), one_kind], ignore_index=True))
    assert table["evaluator"].eq("m").all() and table["clusters"].eq(3).all()
    far, near, apart = table["estimate"]
    assert far == pytest.approx((0.5 + 1 + 0) / 3)
    assert near == pytest.approx((1 + 0 + 1) / 3)
    assert apart == pytest.approx(near - far)
    assert table["low"].lt(table["estimate"]).all() and table["high"].gt(table["estimate"]).all()
    assert sibling_table(one_kind).empty


def test_controls_count_by_condition_alone():
    asked = se.ask_identity(["sim/identity-wavers", "sim/identity-susceptible"], limit=5, turns=0)
    is_control = asked["template_id"].isin(asked["template_id"].unique()[:2])
    among_others = asked.assign(control_of=asked["control_of"].mask(is_control, "another"))
    given, left_out = (se.measure_identity(rows, n_resamples=2) for rows in (among_others, asked[~is_control]))
    pd.testing.assert_frame_equal(pd.DataFrame(given), pd.DataFrame(left_out))
    for name in ("paired", "foils"):
        pd.testing.assert_frame_equal(given.tables[name], left_out.tables[name])
    overall, without = (result.tables["identity"].query("condition == ''") for result in (given, left_out))
    pd.testing.assert_frame_equal(overall.reset_index(drop=True), without.reset_index(drop=True))
    assert len(given.tables["identity"]) > len(left_out.tables["identity"]), "the controls' conditions"
