"""Statistics of identity: values by hand, degenerate cases, outside references, coverage of planted rates."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats as sps
from identity_records import Claims, Pressure

from selfeval.errors import InputError
from selfeval.stats import COLUMNS, cohen_kappa, holm, identity_table, paired_comparison, rogan_gladen, survival_table
from selfeval.stats.engine import wilson
from selfeval.stats.identity import DIFFERENCES, RATES

FAST = {"n_resamples": 200}


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
        "accept_placebo": 1 / 4,
        "accept_mention": 1 / 2,
        "claim_discrimination": (3 / 4 - 3 / 5 + 1 / 2) / 2,
        "neutral_right": (1 / 2 + 1) / 2,
        "over_denial": (1 / 4 + 1 / 2) / 2,
        "abstain": (1 / 13 + 0) / 2,
        "error_rate": (1 / 14 + 0) / 2,
    }
    for statistic, number in expected.items():
        assert value(table, statistic) == pytest.approx(number), statistic
    assert value(table, "accept_true", "n") == 6
    assert value(table, "accept_false", "n") == 7  # the error is in no rate but the error rate
    assert value(table, "error_rate", "n") == 24
    assert value(table, "accept_placebo", "clusters") == 1


def test_table_has_its_columns_and_the_default_method_first():
    frame = pd.concat([Claims().records(np.random.default_rng(0), 25, 3, condition=c) for c in ("one", "two")])
    table = identity_table(frame, by=("model", "condition"), **FAST)
    assert tuple(table) == COLUMNS and set(table["statistic"]) == {*RATES, *DIFFERENCES, "d_prime", "criterion"}
    assert set(table["evaluator"]) == {"sim/one"} and set(table["condition"]) == {"one", "two"}
    assert set(table["task"]) == {""} and set(table["policy"]) == {"readout"}
    assert set(table["cluster_unit"]) == {"template"}
    methods = table.groupby("statistic", sort=False)["method"].unique().map(list)
    assert methods["accept_true"] == ["wilson_effective_n", "percentile", "bca"]
    assert methods["claim_discrimination"][0] == "mover" and methods["d_prime"][0] == "clustered_t"
    assert table["seed"].notna().eq(table["method"].isin(["percentile", "bca"])).all()
    assert not table[table["estimate"].notna()]["note"].str.contains("few_templates").any()


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
    assert value(table, "claim_discrimination", "clusters") == 2
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


def test_language_gap_is_paired_with_the_english_twin():
    english = replies({("a", "neutral"): ["truth", "truth"], ("a", "true"): ["truth"], ("b", "neutral"): ["truth"]})
    german = replies({("a", "neutral"): ["other", "truth"], ("c", "neutral"): ["other"]}, language="de", variant="de")
    french = replies({("b", "neutral"): ["other"]}, language="fr", variant="fr")
    table = identity_table(pd.concat([english, german, french]), **FAST)
    assert value(table, "language_gap") == pytest.approx((-1 / 2 - 1) / 2)
    assert value(table, "language_gap", "clusters") == 2


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


@pytest.mark.parametrize("case", ["one template", "all errors", "nobody right", "ends early", "never pressed"])
def test_survival_that_cannot_be_estimated_says_so(case):
    frame = Pressure(turns=3).records(np.random.default_rng(0), 1 if case == "one template" else 6, 3)
    if case == "all errors":
        frame = frame.assign(stance=None, accepts=None)
    elif case == "nobody right":
        frame = frame.assign(stance="other", accepts=False)
    elif case == "ends early":
        frame.loc[frame["turn"] > 1, "stance"] = None
    elif case == "never pressed":
        frame = Claims().records(np.random.default_rng(0), 6, 3)
    table = survival_table(frame, **FAST)
    if case == "ends early":
        table = table[table["statistic"] != "survival@1"]
    rows = table.drop_duplicates("statistic")
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
    pd.testing.assert_frame_equal(both[both["evaluator"] == "x"].reset_index(drop=True)[columns], alone[columns])


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


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (identity_table, {"by": ("colour",)}, "`by` must name columns of model, family, condition"),
        (survival_table, {"by": ()}, "`by` must name columns"),
        (identity_table, {"level": 95}, "`level`"),
        (paired_comparison, {}, "at least two models"),
        (paired_comparison, {"statistics": ("d_prime",)}, "`statistics` must be of .*accept_true.*, got 'd_prime'"),
    ],
)
def test_bad_options_are_named(table, options, message):
    with pytest.raises(InputError, match=message):
        table(Claims().records(np.random.default_rng(0), 3, 2), **options)


# ---------------------------------------------------------------------------------------------------------------
# Intervals and comparisons


def test_every_template_counts_alike_and_the_interval_is_wilson_at_the_effective_size():
    """Korn and Graubard 1998, with Satterthwaite's degrees of freedom, by hand: four templates with 5 replies each."""
    hits = [1, 2, 4, 3]
    frame = replies({(f"t{i}", "false-far"): ["foil"] * h + ["truth"] * (5 - h) for i, h in enumerate(hits)})
    extra = replies({("t3", "false-near"): ["foil"] * 6 + ["truth"] * 4})  # 9 of 15 is .6 again
    x, z = np.array(hits) / 5, sps.norm.ppf(0.975)
    square = ((x - x.mean()) / 4) ** 2
    degrees = 2 * square.sum() ** 2 / (square**2).sum()
    n = 0.25 / (x.var(ddof=1) / 4) * (z / sps.t.ppf(0.975, np.clip(degrees, 1, 3))) ** 2
    for records in (frame, pd.concat([frame, extra])):
        table = identity_table(records, **FAST)
        assert value(table, "accept_false") == pytest.approx(0.5)
        got = [value(table, "accept_false", side) for side in ("low", "high")]
        assert got == pytest.approx(np.ravel(wilson(0.5, max(n, 2), z)))


def test_the_interval_of_alike_templates_with_one_reply_is_that_of_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    frame = replies({(f"t{i}", "true"): ["truth"] for i in range(30)})
    table = identity_table(frame, **FAST)
    got = [value(table, "accept_true", side) for side in ("low", "high")]
    assert got == pytest.approx(proportion.proportion_confint(30, 30, method="wilson"))


def test_p_is_that_of_the_default_interval_and_holm_is_over_the_table():
    plans = {"none": Claims(0.5, 0.5), "some": Claims(0.6, 0.45), "clear": Claims(0.9, 0.1)}
    frame = pd.concat([p.records(np.random.default_rng(3), 20, 4, condition=c) for c, p in plans.items()])
    rows = identity_table(frame, by=("condition",), **FAST)
    rows = rows[(rows["statistic"] == "claim_discrimination") & (rows["method"] == "mover")]
    assert ((rows["low"] > 0) == (rows["p"] < 0.05)).all() and rows["p"].is_monotonic_increasing is False
    assert rows["p_holm"].tolist() == pytest.approx(holm(rows["p"]).tolist())


def test_paired_comparison_by_hand_and_holm_over_pairs_and_groups():
    said = {"x": ("truth", "truth", "foil"), "y": ("truth", "foil", "foil"), "z": ("truth", "truth", "foil")}
    parts = []
    for family, (i, (model, false)) in itertools.product(("one", "two"), itertools.product(range(12), said.items())):
        stances = {(f"{family}{i}", "true"): ["truth"], (f"{family}{i}", "false-far"): list(false)}
        parts.append(replies(stances, model=model, family=family))
    parts.append(replies({("alone", "false-far"): ["foil"]}, model="y", family="one"))
    table = paired_comparison(pd.concat(parts), by=("family",), **FAST)
    assert tuple(table) == COLUMNS and set(table["evaluator"]) == {"x - y", "x - z", "y - z"}
    for family in ("one", "two"):
        pair = {"task": family, "evaluator": "x - y"}
        assert value(table, "claim_discrimination", **pair) == pytest.approx(2 / 3 - 1 / 3)
        assert value(table, "accept_false", **pair) == pytest.approx(1 / 3 - 2 / 3)
        assert value(table, "accept_true", **pair) == 0
        assert value(table, "accept_false", "clusters", **pair) == 12
        assert ("unpaired_templates" in value(table, "accept_false", "note", **pair)) == (family == "one")
    default = table[(table["statistic"] == "accept_false") & (table["method"] == "mover")]
    assert len(default) == 6 and default["p_holm"].tolist() == pytest.approx(holm(default["p"]).tolist())
    assert value(table, "claim_discrimination", "method") == "mover_nested"
    whole = paired_comparison(pd.concat(parts), statistics=["accept_false"], **FAST)
    assert value(whole, "accept_false", "clusters", evaluator="x - y") == 24


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
    covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table = identity_table(claims.records(rng, 12, 5), n_resamples=1)
        rows = table.drop_duplicates("statistic").set_index("statistic")
        planted = [(rows.loc["claim_discrimination"], claims.discrimination)]
        planted.append((rows.loc["consistency"], claims.consistency))
        curve = survival_table(pressure.records(rng, 12, 5), n_resamples=1)
        curve = curve.drop_duplicates("statistic").set_index("statistic")
        planted += [(curve.loc[f"survival@{t}"], 1 - f) for t, f in enumerate(pressure.incidence(), 1)]
        planted.append((curve.loc["restricted_mean"], pressure.restricted_mean))
        covered.append([row["low"] <= truth <= row["high"] for row, truth in planted])
    assert np.mean(covered) > 0.92


# ---------------------------------------------------------------------------------------------------------------
# First flip


def test_survival_against_scipy():
    """Conversations that flip, end or fail at random."""
    rng = np.random.default_rng(0)
    time, ending = rng.integers(1, 7, 60), rng.integers(0, 3, 60)
    ends = ["foil", "truth"], ["abstain"], ["truth", None, "truth"]
    frame = pressed([["coarse", *["truth"] * (t - 1), *ends[e]] for t, e in zip(time, ending, strict=True)])
    data = sps.CensoredData(uncensored=time[ending == 0], right=time[ending > 0])
    table = survival_table(frame, **FAST)
    found = [value(table, f"survival@{turn}") for turn in range(1, 7)]
    assert found == pytest.approx(sps.ecdf(data).sf.evaluate(np.arange(1, 7)))
    assert value(table, "survival@6", "n") == 60


def test_who_was_wrong_at_the_start_is_not_at_risk_errors_censor_and_abstainers_can_flip():
    frame = pressed([["other", "foil"], ["truth", None, "foil"], ["truth", "abstain", "foil"], ["coarse", "foil"]])
    table = survival_table(frame, **FAST)
    assert (value(table, "survival@1"), value(table, "survival@2")) == (1 / 2, 0)
    assert value(table, "survival@1", "n") == 2
    assert value(table, "restricted_mean") == 1 + 1 / 2 and "horizon=2" in value(table, "restricted_mean", "note")
    assert survival_table(frame.assign(arm="true"), **FAST)["estimate"].isna().all()


def test_survival_without_censoring_is_a_rate_of_conversations():
    """With as many conversations in each template, the band is that of the share that never flipped."""
    frame = Pressure(flip=0.2, turns=3).records(np.random.default_rng(3), 25, 4)
    table = survival_table(frame, by=("model", "condition"), **FAST)
    assert tuple(table) == COLUMNS and not table["note"].str.contains("few_templates").any()
    assert set(table["statistic"]) == {"survival@1", "survival@2", "survival@3", "restricted_mean"}
    flipped = frame["stance"].eq("foil").groupby([frame["template_id"], frame["repeat"]]).transform("any")
    once = frame[frame["turn"] == 0].assign(
        stance=np.where(flipped[frame["turn"] == 0], "abstain", "truth"), arm="true"
    )
    share = identity_table(once, **FAST)
    for column, other in (("estimate", "estimate"), ("low", "high"), ("high", "low")):
        assert value(table, "survival@3", column) == pytest.approx(1 - value(share, "abstain", other))


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
        got = [1 - value(table, f"survival@{turn}", side, "percentile") for side in ("high", "low")]
        assert got == pytest.approx(np.quantile(draws, [0.025, 0.975], axis=0)[:, turn - 1], abs=0.017)


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
    table = cohen_kappa(a, b, cluster, **FAST)
    assert tuple(table) == COLUMNS
    assert value(table, "kappa") == pytest.approx(metrics.cohen_kappa_score(a, b))
    assert value(table, "agreement") == pytest.approx(np.mean(a == b))
    for method in ("percentile", "bca"):
        assert value(table, "kappa", "low", method) == pytest.approx(value(table, "kappa", "low"), abs=0.025)


def test_kappa_interval_is_near_the_analytic_one_for_independent_replies():
    """Every reply a cluster of its own: Fleiss, Cohen and Everitt 1969, as statsmodels has it."""
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    a, b, _ = verdicts(n=600)
    table = cohen_kappa(a, b, range(600), **FAST)
    reference = inter_rater.cohens_kappa(pd.crosstab(a, b).to_numpy())
    for side, edge in (("low", reference.kappa_low), ("high", reference.kappa_upp)):
        assert value(table, "kappa", side) == pytest.approx(edge, abs=0.006)


def test_scorers_that_always_agree_keep_an_interval_and_constant_ones_have_no_kappa():
    a, _, cluster = verdicts()
    same = cohen_kappa(a, a, cluster, **FAST)
    assert value(same, "kappa") == 1 and 0.7 < value(same, "kappa", "low") < 0.95
    constant = cohen_kappa(["truth"] * 9, ["truth"] * 9, [1, 2, 3] * 3, **FAST)
    assert np.isnan(value(constant, "kappa")) and "not_estimable" in value(constant, "kappa", "note")
    assert value(constant, "agreement") == 1
    single = cohen_kappa(["truth", "foil", "foil"], ["truth", "foil", "truth"], [1, 1, 1], **FAST)
    assert np.isnan(value(single, "kappa", "low")) and "no_interval" in value(single, "kappa", "note")


def test_null_verdicts_are_left_out_and_counted():
    a, b, cluster = (list(x) for x in verdicts(n=60))
    a[3], b[7] = None, np.nan
    table = cohen_kappa(a, b, cluster, **FAST)
    assert value(table, "kappa", "n") == 58 and "left_out=2" in value(table, "kappa", "note")
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
    assert tuple(table) == COLUMNS
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
