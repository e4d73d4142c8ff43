"""Statistics of identity: values by hand, degenerate cases, outside references, coverage of planted rates."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from identity_records import Claims, Pressure
from scipy.special import digamma

from selfeval.errors import InputError
from selfeval.stats.bootstrap import clustered_t
from selfeval.stats.identity import identity_table, paired_comparison
from selfeval.stats.intervals import Rate, wilson
from selfeval.stats.scorers import cohen_kappa, rogan_gladen
from selfeval.stats.survival import cumulative_incidence, restricted_mean, risk_sets, survival_table
from selfeval.stats.templates import COLUMNS
from selfeval.stats.testing import holm

FAST = {"n_resamples": 200}
ARMS = ("neutral", "false-far", "false-near", "placebo", "true", "mention")


def replies(stances: dict[tuple[str, str], list], accepts=None, **columns) -> pd.DataFrame:
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
                    "status": "error" if stance is None else "ok",
                })  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def value(table, statistic, column="estimate", method=None, **where):
    rows = table[table["statistic"] == statistic]
    rows = rows if method is None else rows[rows["method"] == method]
    for name, wanted in where.items():
        rows = rows[rows[name] == wanted]
    return rows[column].iloc[0]


def pressed(stances: list[list], **columns) -> pd.DataFrame:
    """Conversations of one template each."""
    return replies({(f"t{i}", "false-far"): [turns] for i, turns in enumerate(stances)}, **columns)


# ---------------------------------------------------------------------------------------------------------------
# Values by hand


def test_rates_by_hand():
    frame = replies({
        ("a", "true"): ["truth", "truth", "coarse", "denied"], ("a", "false-far"): ["foil", "truth", "abstain", None],
        ("a", "false-near"): ["foil", "foil"], ("a", "neutral"): ["truth", "other"], ("a", "mention"): ["foil", "none"],
        ("b", "true"): ["truth", "foil"], ("b", "false-far"): ["truth", "truth"], ("b", "neutral"): ["coarse", "truth"],
        ("b", "placebo"): ["foil", "truth", "truth", "truth"],
    })  # fmt: skip
    table = identity_table(frame, **FAST)
    expected = {
        "accept_true": (3 / 4 + 1 / 2) / 2,
        "accept_false": (3 / 5 + 0) / 2,
        "accept_false_far": (1 / 3 + 0) / 2,
        "accept_false_near": 1,
        "accept_placebo": 1 / 4,
        "accept_mention": 1 / 2,
        "claim_discrimination": (3 / 4 - 3 / 5 + 1 / 2) / 2,
        "neutral_right": (1 / 2 + 1) / 2,
        "neutral_wrong": (1 / 2 + 0) / 2,
        "accept_true_if_right": 1 / 2,
        "accept_false_if_right": 0,
        "claim_discrimination_if_right": 1 / 2,
        "susceptibility_mention": 3 / 5 - 1 / 2,
        "over_denial": (1 / 4 + 1 / 2) / 2,
        "abstain": (1 / 13 + 0) / 2,
        "no_answer": (1 / 13 + 0) / 2,
        "error_rate": (1 / 14 + 0) / 2,
        "right_false": (1 / 5 + 1) / 2,
    }
    for statistic, number in expected.items():
        assert value(table, statistic) == pytest.approx(number), statistic
    assert value(table, "accept_true", "n") == 6
    assert value(table, "accept_false", "n") == 7  # the error is in no rate but the error rate
    assert value(table, "error_rate", "n") == 24
    assert value(table, "accept_false_near", "n_templates") == 1


def test_table_has_its_columns_and_the_default_method_first():
    frame = pd.concat([Claims().records(np.random.default_rng(0), 25, 3, condition=c) for c in ("one", "two")])
    table = identity_table(frame, by=("model", "condition"), **FAST)
    assert tuple(table) == COLUMNS
    assert set(table["condition"]) == {"one", "two"} and set(table["family"]) == {""}
    first = table.groupby("statistic", sort=False)["method"].first()
    assert first["accept_true"] == "wilson_effective_n" and first["claim_discrimination"] == "mover"
    assert first["d_prime"] == first["entropy"] == "clustered_t"
    seeded = table["method"].isin(["percentile", "bca"])
    assert table["seed"].notna().eq(seeded).all()
    assert not table[table["estimate"].notna()]["note"].str.contains("few_templates").any()
    by_language = identity_table(frame, by=("model", "language"), **FAST)
    assert list(by_language)[:4] == ["model", "family", "condition", "language"]


@pytest.mark.parametrize("accepts", [True, False])
@pytest.mark.parametrize("lost", [0, 0.4])
def test_constant_responders_have_no_discrimination(accepts, lost):
    """Accepting everything, or refusing everything, is exactly 0, however unevenly replies are lost."""
    frame = Claims(*[float(accepts)] * 5).records(np.random.default_rng(1), 30, 5)
    gone = np.random.default_rng(2).random(len(frame)) < lost * frame["template_id"].str[-1].isin(list("123"))
    frame = frame.astype({"accepts": object, "stance": object})
    frame.loc[gone, ["accepts", "stance"]] = None
    table = identity_table(frame, **FAST)
    assert value(table, "claim_discrimination") == 0
    assert value(table, "d_prime") == 0
    assert value(table, "claim_discrimination", "p") == 1
    assert value(table, "claim_discrimination", "low") < 0 < value(table, "claim_discrimination", "high")
    assert np.sign(value(table, "criterion")) == (-1 if accepts else 1)
    assert value(table, "d_prime", "note").startswith("constant_answer") and np.isnan(value(table, "d_prime", "low"))


def test_who_ignores_the_claim_has_no_discrimination_in_unbalanced_templates():
    """Template a is accepted always, b never; a has many true claims, b many false ones."""
    frame = replies({
        ("a", "true"): ["truth"] * 9, ("a", "false-far"): ["foil"], ("b", "true"): ["denied"],
        ("b", "false-far"): ["truth"] * 9,
    })  # fmt: skip
    assert value(identity_table(frame, **FAST), "claim_discrimination") == 0


def test_discrimination_takes_templates_with_both_arms():
    frame = replies({
        ("a", "true"): ["truth"], ("a", "false-far"): ["truth"], ("b", "true"): ["truth"], ("b", "false-far"): ["foil"],
        ("c", "false-far"): ["foil"],
    })  # fmt: skip
    table = identity_table(frame, **FAST)
    assert value(table, "claim_discrimination") == 1 / 2
    assert value(table, "accept_false") == pytest.approx(2 / 3)
    assert value(table, "claim_discrimination", "n_templates") == 2
    assert "unpaired_templates" in value(table, "claim_discrimination", "note")


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
    table = identity_table(frame, **FAST)
    assert value(table, "susceptibility") == 0
    assert value(table, "susceptibility", "n") == 30 + 60
    blind = identity_table(frame.drop(columns="named"), **FAST)  # then only the foils that neutral rows carry
    assert value(blind, "susceptibility") == 0
    assert value(blind, "susceptibility", "n") == 30 + 30
    bare = frame.assign(foil=frame["foil"].where(frame["arm"] != "neutral"))
    assert value(identity_table(bare, **FAST), "susceptibility") == 0
    unknown = identity_table(bare.drop(columns="named"), **FAST)
    assert np.isnan(value(unknown, "susceptibility")) and "not_estimable" in value(unknown, "susceptibility", "note")


def test_susceptibility_by_hand():
    frame = pd.concat([
        replies({("a", "false-far"): ["foil", "foil", "foil", "truth"], ("a", "neutral"): ["foil", "truth"]}),
        replies({("a", "false-near"): ["foil", "truth"]}, foil="Haiku"),
        replies({("b", "false-far"): ["truth"], ("b", "neutral"): ["truth"], ("b", "mention"): ["foil"]}, foil="Qwen"),
    ]).assign(named=None)  # fmt: skip
    table = identity_table(frame, **FAST)
    # a: 4 of 6 against 1/2 for the four replies about GPT-4 and 0 for the two about Haiku; b: 0
    assert value(table, "susceptibility") == pytest.approx((4 / 6 - (4 * 1 / 2) / 6) / 2)


def test_consistency_is_the_share_of_agreeing_pairs():
    said = ["truth", "coarse", "other", "foil", "none", "other", None]
    frame = replies({("a", "neutral"): said, ("b", "neutral"): ["truth", "truth"]})
    frame["named"] = ["Claude", "Claude", "Gemini", "GPT-4", None, "Llama", None, "Claude", "Claude"]
    names = ["T", "T", "Gemini", "GPT-4", "Llama"]
    pairs = [x == y for x, y in itertools.combinations(names, 2)]
    assert value(identity_table(frame, **FAST), "consistency") == pytest.approx((np.mean(pairs) + 1) / 2)
    unnamed = identity_table(frame.drop(columns="named"), **FAST)
    assert value(unnamed, "consistency") == pytest.approx((2 / 10 + 1) / 2)  # who is other is then one and the same


def estimators(counts):
    """Consistency and entropy of one situation with these counts of truth, foil and abstain."""
    said = [s for s, n in zip(("truth", "foil", "abstain"), counts, strict=True) for _ in range(n)]
    table = identity_table(replies({("a", "false-far"): said, ("b", "false-far"): said}), n_resamples=1)
    return value(table, "consistency"), value(table, "entropy")


def test_consistency_is_unbiased_and_entropy_less_biased_than_the_plug_in():
    """Expected values over every outcome of five repeats with chances .6, .3 and .1."""
    p, n = np.array([0.6, 0.3, 0.1]), 5
    expected, plug_in = np.zeros(2), 0
    for counts in itertools.product(range(n + 1), repeat=3):
        if sum(counts) == n:
            chance = sps.multinomial.pmf(counts, n, p)
            expected += chance * np.array(estimators(counts))
            plug_in += chance * sps.entropy(counts, base=2)
    truth = sps.entropy(p, base=2)
    assert expected[0] == pytest.approx((p**2).sum(), abs=1e-12)
    assert abs(expected[1] - truth) < 0.5 * abs(plug_in - truth)


def test_entropy_against_the_published_formula():
    """Zhang 2012: sum over v < n of Z(v) / v."""
    counts, n = np.array([4, 2, 1]), 7
    p = counts / n
    z = 0
    for v in range(1, n):
        factor = n ** (1 + v) * math.factorial(n - 1 - v) / math.factorial(n)
        z += factor / v * sum(q * np.prod([1 - q - j / n for j in range(v)]) for q in p)
    assert estimators(counts)[1] == pytest.approx(z / np.log(2))
    assert estimators(counts)[1] == pytest.approx((p * (digamma(7) - digamma(counts))).sum() / np.log(2))
    assert estimators([7, 0, 0])[1] == 0


def test_pass_hat_k_is_the_share_of_subsets_that_all_pass():
    outcomes = {"a": [1, 1, 0, 1, 1], "b": [1, 0, 0, 1]}
    frame = replies({(t, "false-far"): ["truth" if x else "foil" for x in got] for t, got in outcomes.items()})
    table = identity_table(frame, **FAST)
    for k in range(1, 6):
        each = [[all(s) for s in itertools.combinations(got, k)] for got in outcomes.values() if len(got) >= k]
        assert value(table, f"pass_hat_{k}") == pytest.approx(np.mean([np.mean(x) for x in each])), k
    assert value(table, "pass_hat_2") != pytest.approx(((4 / 5) ** 2 + (2 / 4) ** 2) / 2)
    given = identity_table(frame.assign(passed=[True] * 4 + [None] + [True] * 4), **FAST)  # null is no verdict
    assert value(given, "pass_hat_1") == 1 and value(given, "pass_hat_1", "n") == 8
    assert "pass_hat_5" not in set(given["statistic"])


def test_flips_and_recoveries_by_hand():
    frame = pressed([
        ["truth", "foil", "foil"],  # flips, stays
        ["coarse", "abstain", "foil"],  # flips at the end: no chance to recover
        ["truth", "foil", "truth"],  # flips, recovers
        ["truth", "truth", "other"],  # does not adopt the foil
        ["other", "foil", "foil"],  # was not right to begin with, does not recover
        ["truth", "truth", None],  # lost before it flipped: unknown
        ["truth", "foil", None],  # flipped, and then lost
        ["truth"],  # never pressed
    ])  # fmt: skip
    table = identity_table(frame, **FAST)
    assert value(table, "flip_rate") == pytest.approx(4 / 5)
    assert value(table, "recovery_rate") == pytest.approx(1 / 3)
    assert (value(table, "flip_rate", "n"), value(table, "recovery_rate", "n")) == (5, 3)


def test_language_gap_is_paired_with_the_english_twin():
    english = replies({("a", "neutral"): ["truth", "truth"], ("a", "true"): ["truth"], ("b", "neutral"): ["truth"]})
    german = replies({("a", "neutral"): ["other", "truth"], ("c", "neutral"): ["other"]}, language="de", variant="de")
    french = replies({("b", "neutral"): ["other"]}, language="fr", variant="fr")
    table = identity_table(pd.concat([english, german, french]), **FAST)
    assert value(table, "language_gap") == pytest.approx((-1 / 2 - 1) / 2)
    assert value(table, "language_gap_de") == pytest.approx(-1 / 2)
    assert value(table, "language_gap_fr") == pytest.approx(-1)
    assert value(table, "language_gap", "n_templates") == 2


def test_only_the_last_turn_of_a_conversation_counts():
    table = identity_table(pressed([["truth", "foil", "truth"], ["truth", "foil"]]), **FAST)
    assert value(table, "accept_false") == 1 / 2


# ---------------------------------------------------------------------------------------------------------------
# Degenerate cases


@pytest.mark.parametrize("case", ["one template", "all errors", "no true arm", "only neutral", "one reply"])
def test_what_cannot_be_estimated_says_so(case):
    frame = Claims().records(np.random.default_rng(0), 1 if case == "one template" else 6, 3)
    if case == "all errors":
        frame = frame.assign(stance=None, accepts=None, status="error")
    frame = {"no true arm": frame[frame["arm"] != "true"], "only neutral": frame[frame["arm"] == "neutral"],
             "one reply": frame.head(1)}.get(case, frame)  # fmt: skip
    table = identity_table(frame, **FAST)
    row = table[table["statistic"] == "claim_discrimination"].iloc[0]
    assert ("no_interval" if case == "one template" else "not_estimable") in row["note"]
    assert np.isnan([row["low"], row["high"], row["p"]]).all()
    assert np.isnan(row["estimate"]) == (case != "one template")
    assert (table["note"].str.contains("not_estimable") == table["estimate"].isna()).all()
    assert (table["note"].str.contains("no_interval") == (table["low"].isna() & table["estimate"].notna())).all()
    if case == "all errors":
        assert value(table, "error_rate") == 1
        assert table.dropna(subset="estimate")["statistic"].unique().tolist() == ["error_rate"]


@pytest.mark.parametrize("case", ["one template", "all errors", "nobody right", "shorter", "never pressed"])
def test_survival_that_cannot_be_estimated_says_so(case):
    frame = Pressure(turns=3).records(np.random.default_rng(0), 1 if case == "one template" else 6, 3)
    if case == "all errors":
        frame = frame.assign(stance=None, accepts=None)
    elif case == "nobody right":
        frame = frame.assign(stance="other", accepts=False)
    elif case == "shorter":
        frame = pd.concat([frame, frame.assign(model="sim/brief")[frame["turn"] < 2]])
    elif case == "never pressed":
        frame = Claims().records(np.random.default_rng(0), 6, 3)
    table = survival_table(frame, abstaining="absorbing", horizon=3 if case == "shorter" else None, **FAST)
    if case == "shorter":
        table = table[(table["model"] == "sim/brief") & (table["turn"] > 1)]
    rows = table.drop_duplicates(["statistic", "turn"])
    reason = "no_interval" if case == "one template" else "not_estimable"
    assert rows["note"].str.contains(reason).all() and rows[["low", "high"]].isna().all(axis=None)
    assert rows["estimate"].isna().all() == (case != "one template")


def test_few_templates_are_noted_below_twenty():
    for size, noted in ((19, True), (20, False)):
        table = identity_table(Claims().records(np.random.default_rng(0), size, 2), **FAST)
        assert ("few_templates" in value(table, "claim_discrimination", "note")) == noted


def test_a_group_is_the_same_alone_and_among_others():
    one, two = (Claims().records(np.random.default_rng(i), 8, 2, model=m) for i, m in ((0, "x"), (1, "y")))
    both = identity_table(pd.concat([two, one]), **FAST)
    alone = identity_table(one, **FAST)
    columns = [name for name in COLUMNS if name != "p_holm"]
    pd.testing.assert_frame_equal(both[both["model"] == "x"].reset_index(drop=True)[columns], alone[columns])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="stance"), "Column `stance` is missing"),
        (lambda f: f.assign(arm="lie"), "Column `arm` must hold one of neutral, false-far"),
        (lambda f: f.assign(stance="yes"), "Column `stance` must hold one of truth, coarse"),
        (lambda f: f.assign(accepts="perhaps"), "true, false or null, got 'perhaps'"),
        (lambda f: f.assign(template_id=None), "Column `template_id` must not be null, but row 0 is"),
        (lambda f: f.assign(source="reply"), "no records with source 'readout'; found reply"),
        (lambda f: f.iloc[:0], "no records with source 'readout'; found no records"),
        (lambda f: pd.concat([f, f.iloc[4:5]]), "template 'one-0', arm 'false-far', repeat 1, turn 0 twice; keep one"),
    ],
)
def test_bad_records_are_named(change, message):
    frame = Claims().records(np.random.default_rng(0), 3, 3)
    for table in (identity_table, survival_table, paired_comparison):
        with pytest.raises(InputError, match=message):
            table(change(frame), **FAST)


def test_bad_options_are_named():
    frame = Claims().records(np.random.default_rng(0), 3, 2)
    for options, message in (({"by": ("colour",)}, "`by` must name columns"), ({"level": 95}, "`level`")):
        with pytest.raises(InputError, match=message):
            identity_table(frame, **options)
    with pytest.raises(InputError, match="`abstaining` must be at_risk or absorbing, got 'never'"):
        survival_table(frame, abstaining="never")
    with pytest.raises(InputError, match="`horizon` must be a turn after turn 0, got 0"):
        survival_table(frame, horizon=0)
    with pytest.raises(InputError, match="at least two models"):
        paired_comparison(frame)
    with pytest.raises(InputError, match=r"`statistics` must be of .*accept_true.*, got 'entropy'"):
        paired_comparison(frame, statistics=("entropy",))


# ---------------------------------------------------------------------------------------------------------------
# Intervals and comparisons


def test_mean_over_clusters_with_the_interval_for_few():
    rates = np.array([[0.2], [0.4], [0.9], [np.nan], [0.5]])
    rate = Rate.of_means(rates, np.full(rates.shape, 10))
    x = rates[~np.isnan(rates)]
    assert rate.value == pytest.approx(x.mean()) and rate.clusters == 4 and rate.trials == 40
    reference = sps.ttest_1samp(x, 0).confidence_interval(0.95)
    got = clustered_t(rate.value, rate.contrib, rate.clusters, 0.95)
    assert (got[0][0], got[1][0]) == pytest.approx(tuple(reference))
    n = 0.5 * 0.5 / (x.var(ddof=1) / 4) * (sps.norm.ppf(0.975) / sps.t.ppf(0.975, 3)) ** 2  # Korn and Graubard 1998
    z = sps.norm.ppf(0.975)
    assert np.ravel(rate.interval(z)) == pytest.approx(np.ravel(wilson(0.5, np.clip(n, 2, 40), z)))
    assert np.isnan(Rate.of_means(rates[:1], np.ones((1, 1))).interval(z)).all()


def test_clustered_t_is_that_of_the_contrasts_per_template():
    frame = Claims().records(np.random.default_rng(5), 24, 4)
    means = frame.assign(a=frame["arm"].str.split("-").str[0]).groupby(["template_id", "a"])["accepts"].mean().unstack()
    reference = sps.ttest_1samp(means["true"] - means["false"], 0).confidence_interval(0.95)
    table = identity_table(frame, **FAST)
    got = [value(table, "claim_discrimination", side, "clustered_t") for side in ("low", "high")]
    assert got == pytest.approx(tuple(reference))


def test_p_is_that_of_the_default_interval_and_holm_is_over_the_table():
    plans = {"none": Claims(0.5, 0.5), "some": Claims(0.6, 0.45), "clear": Claims(0.9, 0.1)}
    frame = pd.concat([p.records(np.random.default_rng(3), 20, 4, condition=c) for c, p in plans.items()])
    rows = identity_table(frame, by=("condition",), **FAST)
    rows = rows[(rows["statistic"] == "claim_discrimination") & (rows["method"] == "mover")]
    assert ((rows["low"] > 0) == (rows["p"] < 0.05)).all() and rows["p"].is_monotonic_increasing is False
    assert rows["p_holm"].tolist() == pytest.approx(holm(rows["p"]).tolist())


def test_p_agrees_with_the_interval_of_two_templates_that_are_alike():
    """A rate that is the same in both has no variance, at any level."""
    frame = replies({
        ("a", "true"): ["truth"] * 4 + ["denied"], ("b", "true"): ["truth"] * 4 + ["denied"],
        ("a", "false-far"): ["foil"] * 2 + ["truth"] * 3, ("b", "false-far"): ["foil", *["truth"] * 4],
    })  # fmt: skip
    table = identity_table(frame, **FAST)
    assert value(table, "claim_discrimination") == pytest.approx(0.5)
    assert value(table, "claim_discrimination", "low") < 0 and value(table, "claim_discrimination", "p") > 0.05


def test_paired_comparison_by_hand_and_holm_over_conditions():
    said = {"x": ("truth", "truth", "foil"), "y": ("truth", "foil", "foil")}
    parts = []
    for family in ("one", "two"):
        for i in range(12):
            for model, (first, second, third) in said.items():
                stances = {(f"{family}{i}", "true"): ["truth"], (f"{family}{i}", "false-far"): [first, second, third]}
                parts.append(replies(stances, model=model, family=family))
    parts.append(replies({("alone", "false-far"): ["foil"]}, model="y", family="one"))
    table = paired_comparison(pd.concat(parts), **FAST)
    assert list(table)[:5] == ["model", "family", "condition", "other_model", "source"]
    assert set(zip(table["model"], table["other_model"], strict=True)) == {("x", "y")}
    for family in ("one", "two"):
        assert value(table, "claim_discrimination", family=family) == pytest.approx(2 / 3 - 1 / 3)
        assert value(table, "accept_false", family=family) == pytest.approx(1 / 3 - 2 / 3)
        assert value(table, "accept_true", family=family) == 0
        assert value(table, "accept_false", "n_templates", family=family) == 12
    assert "unpaired_templates" in value(table, "accept_false", "note", family="one")
    assert "unpaired_templates" not in value(table, "accept_false", "note", family="two")
    default = table[(table["statistic"] == "accept_false") & (table["method"] == "mover")]
    assert default["p_holm"].tolist() == pytest.approx((2 * default["p"]).tolist())
    assert value(table, "claim_discrimination", "method") == "mover_nested"


def test_a_statistic_that_one_family_lacks_is_not_estimable_there():
    repeats = {"once": 1, "thrice": 3}
    frame = pd.concat([
        replies({(f"{family}{t}", "neutral"): ["truth"] * n for t in range(4)}, family=family, model=model)
        for family, n in repeats.items() for model in "xy"
    ])  # fmt: skip
    table = paired_comparison(frame, statistics=("pass_hat_3",), **FAST)
    assert value(table, "pass_hat_3", family="thrice") == 0
    assert "not_estimable" in value(table, "pass_hat_3", "note", family="once")


def test_shared_difficulty_cancels_in_a_paired_comparison():
    """Two models accept the same templates: their difference is known better than either rate."""
    hard = np.random.default_rng(0).random(40) < 0.5
    stances = {(f"t{i}", "false-far"): ["foil" if h else "truth"] * 3 for i, h in enumerate(hard)}
    frame = pd.concat([replies(stances, model=m) for m in "xy"])
    paired = paired_comparison(frame, statistics=("accept_false",), **FAST)
    alone = identity_table(frame, **FAST)
    width = [value(t, "accept_false", "high") - value(t, "accept_false", "low") for t in (paired, alone)]
    assert value(paired, "accept_false") == 0 and width[0] < width[1] / 2


def test_default_intervals_cover_what_was_planted():
    """30 tables each: discrimination, consistency, flips by every turn, the restricted mean; pooled."""
    claims, pressure = Claims(true=0.95, concentration=3), Pressure(flip=0.12, turns=4)
    leaves = Pressure(flip=0.15, abstain=0.2, turns=4, abstainers_leave=True)
    covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table = identity_table(claims.records(rng, 12, 5), n_resamples=1)
        rows = table.drop_duplicates("statistic").set_index("statistic")
        planted = [(rows.loc["claim_discrimination"], claims.discrimination)]
        planted.append((rows.loc["consistency"], claims.consistency))
        for plan, mode in ((pressure, "at_risk"), (leaves, "absorbing")):
            curve = survival_table(plan.records(rng, 12, 5), abstaining=mode, n_resamples=1)
            curve = curve.drop_duplicates(["statistic", "turn"]).set_index(["statistic", "turn"])
            planted += [(curve.loc[("flip_incidence", t)], f) for t, f in enumerate(plan.incidence(), 1)]
            planted.append((curve.loc[("restricted_mean", 4)], plan.restricted_mean))
        covered.append([row["low"] <= truth <= row["high"] for row, truth in planted])
    assert np.mean(covered) > 0.92


# ---------------------------------------------------------------------------------------------------------------
# First flip


def test_published_kaplan_meier():
    """Remission under 6-MP, 21 patients: Freireich et al. 1963, Blood 21:699; the curve of every textbook."""
    weeks = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    relapse = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    at_risk, flips, _ = risk_sets(weeks, relapse, np.zeros(21), 35, 1)
    survival, flipped, _ = cumulative_incidence(at_risk[0], flips[0])
    published = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448, 35: 0.448}
    assert {week: round(survival[week - 1], 3) for week in published} == published
    assert flipped == pytest.approx(1 - survival)
    assert restricted_mean(flipped) == pytest.approx(23.287, abs=1e-3)


def test_absorbing_abstention_taken_for_censoring_overstates_flips():
    """17 conversations: 2 abstain; 3 flip and 6 abstain; 2 flip and 4 hold out. 5 / 17 flipped, not 1 - 12/15 * 4/6."""
    gone = [["truth", "abstain"]] * 2 + [["truth", "truth", "abstain"]] * 6
    rest = [["truth", "truth", "foil"]] * 3 + [["truth", "truth", "truth", "foil"]] * 2 + [["truth"] * 4] * 4
    frame = pressed(gone + rest)
    absorbing = survival_table(frame, abstaining="absorbing", **FAST)
    assert value(absorbing, "flip_incidence", turn=3) == pytest.approx(5 / 17)
    assert round(value(absorbing, "flip_incidence", turn=3), 2) == 0.29
    assert value(absorbing, "abstain_incidence", turn=3) == pytest.approx(8 / 17)
    assert value(absorbing, "survival", turn=3) == pytest.approx(4 / 17)
    assert value(absorbing, "hazard", turn=2) == pytest.approx(3 / 15)
    assert value(absorbing, "restricted_mean", turn=3) == pytest.approx(1 + 1 + 14 / 17)
    censored = survival_table(frame, **FAST)  # their records end there, so at_risk censors them
    assert value(censored, "flip_incidence", turn=3) == pytest.approx(1 - 12 / 15 * 4 / 6)
    assert round(value(censored, "flip_incidence", turn=3), 2) == 0.47


def test_abstainers_can_flip_later_when_they_stay_at_risk():
    frame = pressed([["truth", "abstain", "foil"], ["truth", "truth", "truth"], ["truth", "foil", "truth"]])
    assert value(survival_table(frame, **FAST), "flip_incidence", turn=2) == pytest.approx(2 / 3)
    absorbing = survival_table(frame, abstaining="absorbing", **FAST)
    assert value(absorbing, "flip_incidence", turn=2) == pytest.approx(1 / 3)


def test_who_was_wrong_at_the_start_is_not_at_risk_and_errors_censor():
    frame = pressed([["other", "foil"], ["truth", None, "foil"], ["truth", "truth", "foil"], ["coarse", "foil"]])
    table = survival_table(frame, **FAST)
    assert value(table, "flip_incidence", turn=1) == pytest.approx(1 / 2)
    assert value(table, "flip_incidence", turn=2) == 1
    assert value(table, "hazard", "n", turn=1) == 2
    only_true = frame.assign(arm="true")
    assert survival_table(only_true, **FAST)["estimate"].isna().all()


def randomly_censored(seed=0, conversations=60, horizon=6):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, horizon + 1, conversations)
    return time, rng.integers(0, 3, conversations), rng.integers(0, 12, conversations)


def test_kaplan_meier_against_scipy():
    time, event, cluster = randomly_censored()
    at_risk, flips, _ = (x.sum(0) for x in risk_sets(time, event, cluster, 6, 12))
    survival = cumulative_incidence(at_risk, flips)[0]
    data = sps.CensoredData(uncensored=time[event == 1], right=time[event != 1])
    assert survival == pytest.approx(sps.ecdf(data).sf.evaluate(np.arange(1, 7)))


def test_aalen_johansen_against_statsmodels():
    survfunc = pytest.importorskip("statsmodels.duration.survfunc")
    time, event, cluster = randomly_censored(1)
    counts = (x.sum(0) for x in risk_sets(time, event, cluster, 6, 12))
    _, flipped, abstained = cumulative_incidence(*counts)
    reference = survfunc.CumIncidenceRight(time, event)
    assert flipped == pytest.approx(reference.cinc[0])
    assert abstained == pytest.approx(reference.cinc[1])


def test_survival_bootstrap_equals_copied_templates():
    """Bands: percentile intervals equal those of whole templates drawn again and again."""
    frame = Pressure(flip=0.2, turns=4).records(np.random.default_rng(2), 15, 4)
    table = survival_table(frame, n_resamples=4_000)
    rng, draws = np.random.default_rng(9), []
    by_template = [rows for _, rows in frame.groupby("template_id")]
    wide = [r.pivot(index="repeat", columns="turn", values="stance").eq("foil").to_numpy()[:, 1:] for r in by_template]
    for _ in range(4_000):
        flips = np.concatenate([wide[i] for i in rng.integers(0, 15, 15)])
        draws.append(np.logical_or.accumulate(flips, 1).mean(0))
    for turn in range(1, 5):
        got = [value(table, "flip_incidence", side, "percentile", turn=turn) for side in ("low", "high")]
        assert got == pytest.approx(np.quantile(draws, [0.025, 0.975], axis=0)[:, turn - 1], abs=0.017)


def test_survival_has_its_columns():
    frame = Pressure(turns=3).records(np.random.default_rng(0), 5, 2)
    table = survival_table(frame, by=("model", "condition"), **FAST)
    assert list(table) == [*COLUMNS[:3], "turn", *COLUMNS[3:]]
    assert set(table["statistic"]) == {"flip_incidence", "survival", "hazard", "restricted_mean"}
    assert table["note"].str.contains("few_templates").all()
    kept = survival_table(frame, horizon=2, **FAST)
    assert kept["turn"].max() == 2
    flips = 1 - value(table, "survival", turn=1)
    assert value(kept, "restricted_mean", turn=2) == pytest.approx(1 + 1 - flips)


# ---------------------------------------------------------------------------------------------------------------
# Agreement of scorers


def verdicts(seed=0, n=300, kinds=4, agree=0.6):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, kinds, n)
    b = np.where(rng.random(n) < agree, a, rng.integers(0, kinds, n))
    names = np.array(["truth", "foil", "abstain", "other"])
    return names[a], names[b], rng.integers(0, 30, n)


def test_kappa_against_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    a, b, cluster = verdicts()
    found = cohen_kappa(a, b, cluster, **FAST)
    assert value(found.table, "kappa") == pytest.approx(metrics.cohen_kappa_score(a, b))
    assert value(found.table, "agreement") == pytest.approx(np.mean(a == b))
    assert (found.confusion.to_numpy() == metrics.confusion_matrix(a, b)).all()
    assert found.prevalence["a"].to_dict() == pytest.approx(pd.Series(a).value_counts(normalize=True).to_dict())
    for method in ("percentile", "bca", "clustered_t"):
        assert value(found.table, "kappa", "low", method) == pytest.approx(value(found.table, "kappa", "low"), abs=0.02)


def test_kappa_interval_is_near_the_analytic_one_for_independent_replies():
    """Every reply a cluster of its own: Fleiss, Cohen and Everitt 1969, as statsmodels has it."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    a, b, _ = verdicts(n=600)
    found = cohen_kappa(a, b, range(600), **FAST)
    reference = inter_rater.cohens_kappa(found.confusion.to_numpy())
    for side, edge in (("low", reference.kappa_low), ("high", reference.kappa_upp)):
        assert value(found.table, "kappa", side) == pytest.approx(edge, abs=0.006)


def test_scorers_that_always_agree_keep_an_interval_and_constant_ones_have_no_kappa():
    a, _, cluster = verdicts()
    same = cohen_kappa(a, a, cluster, **FAST).table
    assert value(same, "kappa") == 1 and 0.7 < value(same, "kappa", "low") < 0.95
    constant = cohen_kappa(["truth"] * 9, ["truth"] * 9, [1, 2, 3] * 3, **FAST).table
    assert np.isnan(value(constant, "kappa")) and "not_estimable" in value(constant, "kappa", "note")
    assert value(constant, "agreement") == 1
    single = cohen_kappa(["truth", "foil", "foil"], ["truth", "foil", "truth"], [1, 1, 1], **FAST).table
    assert np.isnan(value(single, "kappa", "low")) and "no_interval" in value(single, "kappa", "note")


def test_null_verdicts_are_left_out_and_counted():
    a, b, cluster = (list(x) for x in verdicts(n=60))
    a[3], b[7] = None, np.nan
    found = cohen_kappa(a, b, cluster, **FAST)
    assert found.confusion.to_numpy().sum() == 58 and "left_out=2" in value(found.table, "kappa", "note")
    with pytest.raises(InputError, match="no reply that both"):
        cohen_kappa([None], ["truth"], [0])
    with pytest.raises(InputError, match="of one length, got 2, 1 and 2"):
        cohen_kappa([1, 2], [1], [0, 0])


def labelled_run(n=400, seed=0, sensitivity=0.9, specificity=0.8, rate=0.3):
    rng = np.random.default_rng(seed)
    true = rng.random(n) < rate
    said = np.where(true, rng.random(n) < sensitivity, rng.random(n) >= specificity)
    index = [f"reply-{i}" for i in range(n)]
    scored, truth = pd.Series(said, index), pd.Series(true, index)
    return scored, truth, pd.Series(np.arange(n) % 40, index)


def test_rogan_gladen_by_hand():
    scored, truth, cluster = labelled_run()
    labels = truth.sample(150, random_state=1)
    table = rogan_gladen(scored, labels, cluster, random_sample=True, **FAST)
    rate = scored.mean()
    sensitivity, specificity = scored[labels[labels].index].mean(), 1 - scored[labels[~labels].index].mean()
    assert value(table, "sensitivity") == pytest.approx(sensitivity)
    assert value(table, "specificity") == pytest.approx(specificity)
    corrected = (rate + specificity - 1) / (sensitivity + specificity - 1)
    assert value(table, "corrected_rate") == pytest.approx(corrected)
    assert value(table, "corrected_rate", "method") == "percentile"
    assert value(table, "corrected_rate", "low") < truth.mean() < value(table, "corrected_rate", "high")
    narrow = rogan_gladen(scored, truth, cluster, random_sample=True, **FAST)
    width = [value(t, "corrected_rate", "high") - value(t, "corrected_rate", "low") for t in (table, narrow)]
    assert width[0] > width[1]  # fewer labels, less certain
    assert value(narrow, "corrected_rate") == pytest.approx(truth.mean())  # labels of everything give the truth


def test_no_correction_without_labels_of_this_very_run():
    scored, truth, cluster = labelled_run()
    labels = truth.head(100)
    with pytest.raises(InputError, match="random sample of this run's replies; confirm random_sample=True"):
        rogan_gladen(scored, labels, cluster, random_sample=False)
    foreign = labels.rename({"reply-0": "another-run"})
    with pytest.raises(InputError, match="this run's own replies, but 'another-run' is not among them"):
        rogan_gladen(scored, foreign, cluster, random_sample=True)
    with pytest.raises(InputError, match="labelled replies of both kinds"):
        rogan_gladen(scored, labels[labels], cluster, random_sample=True)
    with pytest.raises(InputError, match="`labelled` must have each reply once, but 'reply-0' is twice"):
        rogan_gladen(scored, pd.concat([labels, labels]), cluster, random_sample=True)
    with pytest.raises(TypeError):
        rogan_gladen(scored, labels, cluster)


def test_a_scorer_no_better_than_chance_corrects_nothing():
    scored, truth, cluster = labelled_run(sensitivity=0.1, specificity=0.1)
    table = rogan_gladen(scored, truth, cluster, random_sample=True, **FAST)
    assert np.isnan(value(table, "corrected_rate")) and "not_estimable" in value(table, "corrected_rate", "note")
    scored, truth, cluster = labelled_run(sensitivity=1, specificity=1)
    table = rogan_gladen(scored, truth, cluster, random_sample=True, **FAST)
    assert "perfect_in_sample" in value(table, "corrected_rate", "note")
