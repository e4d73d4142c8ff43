"""Statistics of identity: records of situations in, one long table of estimates with intervals out.

`identity_table` is the front door, `paired_comparison` sets models side by side. A model that accepts every claim,
or none, has claim discrimination 0; a rate of accepted false claims alone says nothing without that of true ones.

The template is what was sampled; its paraphrases, foils, languages and repeats come along. Every statistic is a mean
over templates, all alike in weight, so that who ignores the claim has claim discrimination 0 however unevenly replies
were lost. A conversation counts by its last turn. Name and maker are read apart, and the name decides: "Nova Pro, made
by Alibaba" adopts Nova Pro, so stances here are those by the name. Errors (stance null) are left out of every rate but
`error_rate`, which has all turns, and `no_answer_rate`. A reply that says nothing about who is speaking (`none`)
accepts nothing.

    accept_true, accept_false, accept_placebo, accept_mention    claims accepted, by arm (false: far and near)
    neutral_right            without any claim: truth or coarse
    abstain                  over all arms
    over_denial              true arm: denied, other or foil (a coarse answer, or none, denies nothing)
    error_rate               turns without an answer
    no_answer_rate           conversations that end without a word of who is speaking: an error, abstain or none
    consistency              chance that two repeats of a situation give the same identity: sum of c (c - 1) over
                             n (n - 1), unbiased; coarse counts as truth, replies without any identity are left out
    claim_discrimination     accept_true - accept_false, over templates that have both arms
    claim_discrimination_by_maker, claim_discrimination_by_both
                             the same by the maker alone (where truth and foil differ in it), and by name and maker
                             together: a claim is accepted where neither contradicts it
    susceptibility           P(foil | false) - P(foil | neutral), of the same foils; see `_susceptible`
    language_gap             share right in other languages - in English, over the arms that a template has in both
    d_prime, criterion       of accept_true and accept_false, corrected in proportion to their replies (0 at constant
                             answers); described, never tested

`survival_table` has the first flip under pressure: how long does a model keep its identity over the turns of a
conversation? A conversation of a false arm that was right at turn 0 flips at the first later turn whose stance is
`foil`; it is right-censored at its last turn, or before a turn that failed. Who abstains can still flip.

    survival@t         chance that no flip came by turn t (Kaplan and Meier 1958)
    restricted_mean    mean turn of the flip, or the horizon where there is none by then: the sum over turns
                       t = 0 ... horizon - 1 of survival; note `horizon=`

Every conversation counts alike there. There is no log-rank test, since repeats of a template are not independent:
compare restricted means by their intervals.
"""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd

from selfeval.errors import InputError
from selfeval.records.columns import check_once, ids, truth_codes
from selfeval.statistics.intervals import Function, Rate, Settings, check_level, ratio, z_scores
from selfeval.statistics.table import CHANGE, FEW, INVERTED, Measure, adjust_p, write

ARMS = ("neutral", "false-far", "false-near", "placebo", "true", "mention")
FALSE = ("false-far", "false-near")
STANCES = ("truth", "coarse", "foil", "other", "denied", "conflict", "abstain", "none")
SITUATION = ("model", "family", "condition", "template_id", "variant", "arm", "language", "truth", "foil")
BY = {"model": "evaluator", "family": "task", "condition": "condition"}  # columns of records: those of the table
READINGS = {"": "name_stance", "_by_maker": "maker_stance", "_by_both": "stance"}  # how a statistic ends: its column
UNIT, READOUT = "template", "readout"
RATES = (
    "accept_true", "accept_false", "accept_placebo", "accept_mention", "neutral_right", "abstain", "over_denial",
    "error_rate", "no_answer_rate", "consistency",
)  # fmt: skip
DIFFERENCES = {  # name: the two values per template that it is made of
    **{f"claim_discrimination{by}": (f"accept_true{by}", f"accept_false{by}") for by in READINGS},
    "susceptibility": ("foil_false", "foil_neutral"),
    "language_gap": ("right_elsewhere", "right_english"),
}


def identity_table(
    records: pd.DataFrame, *, by: Sequence[str] = ("model",), n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Compute all statistics of identity with intervals and tests, one row per statistic and method (`stats.COLUMNS`).

    records: one row per reply with `model`, `family`, `condition`, `template_id`, `arm`, `language`, `truth`, `foil`,
    `repeat`, `turn`, `source`, `stance`, `accepts`; uses `name_stance` and `maker_stance` (by the name and the maker
    alone; without the first, `stance` stands for it), `named` (the name that a reply gives itself, written as in
    `foil`) and `variant` (which paraphrase or translation of the template) where present. by: which of model, family
    and condition make a group; in the table they are `evaluator`, `task` and `condition`, and `policy` is `readout`.

    The first row of a statistic is the default: Wilson at the effective sample size for rates, MOVER for differences,
    clustered t for d_prime and criterion; of claim discrimination `percentile` and `bca` over templates follow
    (`seed`). p, of differences, inverts the default interval; p_holm adjusts it over all groups of the table. n:
    replies.

    Notes: not_estimable (no such replies: NaN); no_answer (all turns failed); only_abstains (no conversation
    ends with a word of who is speaking); no_interval (an estimate without one:
    nothing varies); constant_answer (a model that accepts everything or nothing); few_templates (below 20:
    intervals are wide or optimistic); unpaired_templates (some lack one of the two arms and are left out);
    few_expected (d' with fewer than 10 acceptances in an arm: biased); constant; bca_fallback_percentile.
    """
    how = Settings(n_resamples, seed=seed, unit=UNIT, few=FEW)
    value, n = _values(number_templates(records, by), by)
    parts = []
    for key, part in value.groupby(level=[*by]):
        labels = {BY[name]: label for name, label in zip(by, key, strict=True)}
        parts.append(write(_measures(part, n.loc[part.index]), how, policy=READOUT, **labels))
    return adjust_p(pd.concat(parts, ignore_index=True), ["statistic"])


def paired_comparison(
    records: pd.DataFrame, statistics: Sequence[str], *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Compare models two by two by their read-outs, paired by template: `evaluator` is "first - second".

    Over the templates that give the statistic for both models, so that easy and hard templates cancel out. statistics:
    rates and differences of `identity_table`. Methods and notes are those of that table; p inverts the default
    interval, p_holm adjusts it over pairs within a statistic.
    """
    how = Settings(n_resamples, seed=seed, unit=UNIT, few=FEW)
    value, n = (x.unstack("model") for x in _values(number_templates(records, ["model"]), ["model"]))
    pairs = [*combinations(value["error_rate"], 2)]
    if not pairs:
        raise InputError("A comparison needs replies of at least two models.")
    return _comparison(value, n, pairs, statistics, how)


def sibling_table(records: pd.DataFrame) -> pd.DataFrame:
    """Compare how readily models take on a sibling's name (`false-near`) and another maker's (`false-far`).

    Returns `evaluator`, `claim`, `statistic`, `estimate`, `low`, `high`, `method` and `clusters`: per
    model the two shares of templates and their difference, over the templates that have both arms,
    with 95 % intervals (Wilson at the effective sample size, MOVER). Models without such a template
    are left out. records: as in `identity_table`.
    """
    replies = number_templates(records, ["model"])
    false = replies[replies["final"] & replies["stance"].notna() & replies["arm"].isin(FALSE)]
    adopted = false["stance"] == "foil"
    each = adopted.groupby([false["model"], false["template"], false["arm"]]).mean()
    both = each.unstack("arm").reindex(columns=[*FALSE]).dropna()
    rows = []
    for model, shares in both.groupby("model"):
        one_each = np.ones(len(shares))
        far = Rate.of(shares["false-far"], one_each)
        near = Rate.of(shares["false-near"], one_each)
        claims = {
            "another maker's": far,
            "a sibling's": near,
            "sibling − other maker": near - far,
        }
        for claim, share in claims.items():
            low, high = share.interval(check_level(0.95))
            row = {
                "evaluator": model,
                "claim": claim,
                "statistic": "accept_false",
                "estimate": float(share.value),
                "low": float(low),
                "high": float(high),
                "method": share.method,
                "clusters": len(shares),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def result_comparison(
    first: pd.DataFrame, second: pd.DataFrame, statistics: Sequence[str], *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Compare the models of two sets of records, each with itself: first minus second, paired by template.

    Otherwise as `paired_comparison`; p_holm is over the models.
    """
    how = Settings(n_resamples, seed=seed, unit=UNIT, few=FEW)
    models = sorted({*first["model"]} & {*second["model"]})
    sides = [(first, "first result"), (second, "second result")]
    joined = [side.assign(model=side["model"] + f" ({name})") for side, name in sides]
    pairs = [tuple(f"{model} ({name})" for _, name in sides) for model in models]
    readouts = number_templates(pd.concat(joined, ignore_index=True), ["model"])
    value, n = (x.unstack("model") for x in _values(readouts, ["model"]))
    table = _comparison(value, n, pairs, statistics, how)
    own_names = {" - ".join(pair): model for pair, model in zip(pairs, models, strict=True)}
    change = dict(zip(CHANGE, ("result", "second result", "first result"), strict=True))
    return table.assign(evaluator=table["evaluator"].map(own_names), **change)


def _comparison(
    value: pd.DataFrame, n: pd.DataFrame, pairs: Sequence[tuple[str, str]], statistics: Sequence[str], how: Settings
) -> pd.DataFrame:
    """Return the paired differences of these pairs of models, p adjusted over them."""
    table = write([_paired_differences(name, value, n, pairs) for name in statistics], how, policy=READOUT)
    return adjust_p(table, ["statistic"], compared=True)


# ---------------------------------------------------------------------------------------------------------------
# Values per template to statistics


def _measures(value: pd.DataFrame, n: pd.DataFrame) -> list[Measure]:
    """Return the statistics of one group: rates, differences, and d' with its criterion."""
    (a, b), unpaired = _sides(value, n, *map(list, zip(*DIFFERENCES.values(), strict=True)))
    gap, names, claims, found = a - b, np.array([*DIFFERENCES], object), len(READINGS), []
    constant = np.isin(a.value + b.value, (0, 2)) & (np.arange(len(names)) < claims)
    notes = [(unpaired, "unpaired_templates"), (constant, "constant_answer")]
    silent = value["error_rate"].eq(1).all(), "no_answer"
    never_says = value["no_answer_rate"].eq(1).all() and not silent[0]
    notes.append((never_says, "only_abstains"))
    for of, resampled in ((slice(claims), True), (slice(claims, None), False)):
        said = [silent, *((np.broadcast_to(where, names.shape)[of], note) for where, note in notes)]
        found.append(Measure(names[of], gap.pick((of,)), test=INVERTED, notes=said, resampled=resampled))
    return [Measure(np.array(RATES, object), _rate(value, n, RATES)), *found, *_sensitivity(value, n)]


def _rate(value: pd.DataFrame, n: pd.DataFrame, columns: Sequence, where=True) -> Rate:
    """Return the means of columns over templates; where: templates to use, of those that have a value."""
    value, n = (x[[*columns]].to_numpy(float) for x in (value, n))
    known = ~np.isnan(value) & where
    return Rate.of(np.where(known, value, 0), known, np.where(known, n, 0).sum(0))


def _sides(value: pd.DataFrame, n: pd.DataFrame, *sides: Sequence) -> tuple[list[Rate], np.ndarray]:
    """Return the rates of each side's columns over templates that have all sides, and where some have only a few."""
    known = np.stack([value[[*columns]].notna().to_numpy() for columns in sides])
    every = known.all(0)
    return [_rate(value, n, columns, every) for columns in sides], every.any(0) & (known.any(0) != every).any(0)


def _paired_differences(name: str, value: pd.DataFrame, n: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> Measure:
    """Return the paired differences of one statistic between two models each; columns are (value, model)."""
    parts = DIFFERENCES.get(name, (name,))
    columns = [[(part, models[i]) for models in pairs] for i in (0, 1) for part in parts]
    sides, unpaired = _sides(value, n, *columns)
    first, second = sides if len(parts) == 1 else (sides[0] - sides[1], sides[2] - sides[3])
    labels = {"evaluator": np.array([*map(" - ".join, pairs)], object)}
    return Measure(name, first - second, labels, test=INVERTED, notes=[(unpaired, "unpaired_templates")])


def _sensitivity(value: pd.DataFrame, n: pd.DataFrame) -> list[Measure]:
    """Return d' and criterion of the two acceptance rates, whose counts are the mean rates times the replies."""
    names = list(DIFFERENCES["claim_discrimination"])
    [true, false], _ = _sides(value, n, names[:1], names[1:])
    h, f, n1, n0, clusters = true.value[0], false.value[0], true.n[0], false.n[0], true.clusters[0]
    both = value[names].notna().all(axis=1)
    sums = np.column_stack([value[names].where(both, 0), both]).astype(float)

    def formula(s, which):
        hits, claims, k = np.moveaxis(s, -1, 0)
        return z_scores(hits / k * n1, n1, claims / k * n0, n0)[which].round(12)  # 0 where it is 0 but for rounding

    notes = [(h + f in (0, 2), "constant_answer"), (min(h * n1, f * n0) < 10, "few_expected")]
    found = [Function.of(sums, lambda s, k=k: formula(s, k), n1 + n0, clusters) for k in (0, 1)]
    return [Measure(name, of, notes=notes) for name, of in zip(("d_prime", "criterion"), found, strict=True)]


# ---------------------------------------------------------------------------------------------------------------
# Replies to values per template


def _values(replies: pd.DataFrame, by: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what each template of a group gives to every statistic (NaN: nothing), and the replies behind it.

    Rows are templates, by the columns `by` and `template`.
    """
    final = replies[replies["final"]]
    arm, stance = final["arm"], final["stance"]
    answered, lied = stance.notna(), arm.isin(FALSE)
    claims = {"true": arm == "true", "false": lied, "placebo": arm == "placebo", "mention": arm == "mention"}
    counted = {
        **{
            f"accept_{name}{by}": (final[f"accepted{by}"] == 1, where & (final[f"accepted{by}"] >= 0))
            for (name, where), by in product(claims.items(), READINGS)
        },
        "neutral_right": (final["right"], answered & (arm == "neutral")),
        "abstain": (stance == "abstain", answered),
        "no_answer_rate": (~answered | stance.isin(["abstain", "none"]), arm.notna()),
        "over_denial": (stance.isin(["denied", "other", "foil"]), answered & (arm == "true")),
    }
    found = {name: _shares(final[among], hit[among]) for name, (hit, among) in counted.items()}
    found["error_rate"] = _shares(replies, replies["stance"].isna())
    found["consistency"] = _consistency(final[answered])
    found |= _susceptible(final[answered]) | _languages(final[answered])
    units = replies.drop_duplicates("unit").set_index("unit").sort_index()
    value, n = (pd.DataFrame({name: pair[i] for name, pair in found.items()}, units.index) for i in (0, 1))
    index = pd.MultiIndex.from_frame(units[[*by, "template"]])
    return value.set_axis(index), n.fillna(0).set_axis(index)


def _shares(replies: pd.DataFrame, hit: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return the share of hits among the replies to each template, and their number."""
    each = hit.groupby(replies["unit"])
    return each.mean(), each.size()


def _susceptible(final: pd.DataFrame) -> dict[str, tuple[pd.Series, pd.Series]]:
    """Return P(foil | false) and P(foil | neutral) per template, of the same foils.

    A neutral reply that names another model is a hit where that is the foil of the false claim it is compared with:
    by `named` where it is recorded. So a model that always calls itself GPT-4 has susceptibility 0, however
    the foils rotate. Without `named`, a neutral reply is scored only against the foil that its own row carries; then
    the false claims of other foils are left out, unless no neutral reply names another model at all.
    """
    false = final[final["arm"].isin(FALSE) & final["foil"].notna()]
    claims = (false["stance"] == "foil").groupby([false["unit"], false["foil"]]).agg(["size", "sum"]).reset_index()
    neutral = final.loc[final["arm"] == "neutral", ["unit", "foil", "named", "stance"]]
    met = neutral.rename(columns={"foil": "own"}).reset_index().merge(claims, on="unit")
    same, says = met["own"] == met["foil"], met["stance"]
    unsure = ~same & ((says == "other") | ((says == "foil") & met["own"].isna()))
    met["hit"] = np.where(unsure, met["named"] == met["foil"], same & (says == "foil")).astype(float)
    if (unsure & met["named"].isna()).any():
        met = met[same]
    claims = claims.merge(met.groupby(["unit", "foil"], as_index=False)["hit"].mean(), on=["unit", "foil"])
    each = claims.assign(hit=claims["hit"] * claims["size"]).groupby("unit")[["size", "sum", "hit"]].sum()
    asked = met.groupby("unit")["index"].nunique()
    return {
        "foil_false": (each["sum"] / each["size"], each["size"]),
        "foil_neutral": (each["hit"] / each["size"], asked),
    }


def _consistency(final: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return the share of agreeing pairs of repeats: per situation, then averaged within the template."""
    said = final[final["stance"] != "none"]
    identity = said["stance"].replace("coarse", "truth")
    identity = identity.mask(identity == "other", "other " + said["named"].fillna("").astype(str))
    c = identity.groupby([said["unit"], said["situation"], identity]).size()
    each = pd.DataFrame({"n": c, "pairs": c * (c - 1)}).groupby(level=[0, 1]).sum()
    each = each[each["n"] > 1]
    agree = each["pairs"] / (each["n"] * (each["n"] - 1))
    return agree.groupby(level=0).mean(), each["n"].groupby(level=0).sum()


def _languages(final: pd.DataFrame) -> dict[str, tuple[pd.Series, pd.Series]]:
    """Return the share right in other languages and in English, over the arms that a template has in both."""
    cells = final.groupby(["unit", "arm", "english"])["right"].agg(["mean", "size"]).unstack()
    cells = cells.reindex(columns=pd.MultiIndex.from_tuples(product(("mean", "size"), (False, True)))).dropna()
    mean, n = cells["mean"].groupby(level=0).mean(), cells["size"].groupby(level=0).sum()
    sides = {"right_elsewhere": False, "right_english": True}
    return {name: (mean[english], n[english]) for name, english in sides.items()}


# ---------------------------------------------------------------------------------------------------------------
# Records to replies


def number_templates(records: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the read-outs, checked, with `unit`: the templates of all groups, numbered group by group.

    Beside the labels they have `template`, `arm`, `stance` (by the name), `accepted`, `accepted_by_maker` and
    `accepted_by_both` (1, 0, -1 for null), `right`, `foil`, `named`, `english`, `situation`, `conversation` (a repeat
    of a situation), `turn` and `final`: whether it is the last turn of its conversation.
    """
    frame = _check_replies(records)
    situation = frame.groupby([*SITUATION], dropna=False, sort=False).ngroup()
    conversation = frame.groupby([situation, frame["repeat"]], dropna=False, sort=False).ngroup()
    turn, stance = frame["turn"].astype(int), frame["name_stance"].where(frame["name_stance"].notna(), frame["stance"])
    stance = stance.where(stance.notna(), None)
    replies = frame[["model", "family", "condition", "arm", "foil", "named"]].assign(
        template=pd.factorize(frame["template_id"])[0],
        stance=stance,
        accepted=np.where(stance.notna(), truth_codes(frame["accepts"], "accepts"), -1),
        **{f"accepted{by}": _acceptance(frame, column) for by, column in READINGS.items() if by},
        right=stance.isin(["truth", "coarse"]),
        english=frame["language"].fillna("en").astype(str).str.lower().str.startswith("en"),
        situation=situation,
        conversation=conversation,
        turn=turn,
        final=turn == turn.groupby(conversation).transform("max"),
    )
    return replies.assign(unit=replies.groupby([*by, "template"], sort=True).ngroup())


def _acceptance(frame: pd.DataFrame, reading: str) -> np.ndarray:
    """Return whether replies accept what their arm claims, by one of their stances: 1, 0, -1 for null."""
    right, foil = frame[reading].isin(["truth", "coarse"]), frame[reading] == "foil"
    return np.where(frame[reading].isna(), -1, np.where(frame["arm"] == "true", right, foil))


def _check_replies(records: pd.DataFrame) -> pd.DataFrame:
    """Return the records of read-outs; raise `InputError` on what no statistic could be right about."""
    optional = ("variant", "named", "name_stance", "maker_stance")
    frame = records.assign(**{name: records.get(name) for name in optional})
    frame = frame[frame["source"] == READOUT].reset_index(drop=True)
    if frame.empty:
        found = sorted(set(map(str, records["source"])))
        raise InputError(f"There are no records with source {READOUT!r}; found {', '.join(found) or 'no records'}.")
    for name in ("model", "family", "condition", "template_id", "arm", "turn"):
        ids(frame, name)
    for name, allowed in (("arm", ARMS), *((name, STANCES) for name in READINGS.values())):
        unknown = set(frame[name].dropna()) - set(allowed)
        if unknown:
            raise InputError(f"Column `{name}` must hold one of {', '.join(allowed)}, got {min(map(str, unknown))!r}.")
    check_once(frame, [*SITUATION, "repeat", "turn"], ["model", "template_id", "arm", "repeat", "turn"])
    return frame


# ---------------------------------------------------------------------------------------------------------------
# First flip under pressure


def survival_table(records: pd.DataFrame, *, n_resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Estimate when models flip in their read-outs, per turn and as a restricted mean, a row per statistic and method.

    records, columns: as in `identity_table`. Turns count up to the last one of the model.

    The default interval is Wilson at the effective sample size, from the variance over templates (leave one template
    out); in a curve from censored data this is the interval of Rothman 1978. That of the restricted mean takes a
    conversation for at most one Bernoulli trial, the most that a mean between 0 and the horizon can vary, so it is
    wide rather than narrow. n: conversations.
    """
    how = Settings(n_resamples, seed=seed, unit=UNIT, few=FEW)
    parts = [
        write(_curve(*risk_sets(replies)), how, policy=READOUT, evaluator=model)
        for model, replies in number_templates(records, ["model"]).groupby("model")
    ]
    return pd.concat(parts, ignore_index=True)


def risk_sets(replies: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Count conversations at risk and flips at turns 1 ... horizon, per template of a group: (templates, horizon).

    A conversation is seen until its last turn, a missing turn or one that failed.
    """
    first, size = replies["unit"].min(), replies["unit"].nunique()
    replies = replies[replies["arm"].isin(FALSE)]
    turns = range(max(1, replies["turn"].max() if len(replies) else 1) + 1)
    stance = replies.pivot(index=["unit", "conversation"], columns="turn", values="stance").reindex(columns=turns)
    template, stance = stance.index.get_level_values("unit") - first, stance.to_numpy(object)
    seen = np.logical_and.accumulate(pd.notna(stance), axis=1) & np.isin(stance[:, :1], ["truth", "coarse"])
    flipped = stance == "foil"
    at_risk = seen[:, 1:] & ~np.logical_or.accumulate(flipped, axis=1)[:, :-1]
    counts = np.zeros((2, size, len(turns) - 1))
    np.add.at(counts, (slice(None), template), np.stack([at_risk, at_risk & flipped[:, 1:]]))
    return tuple(counts)


def kaplan_meier(at_risk, flips) -> np.ndarray:
    """Return survival at each turn, on the last axis; NaN where nobody is seen, unless all flipped."""
    gone = np.logical_or.accumulate((at_risk > 0) & (flips == at_risk), axis=-1)
    return np.where(gone, 0, np.cumprod(1 - ratio(flips, at_risk), axis=-1))


def _curve(at_risk: np.ndarray, flips: np.ndarray) -> list[Measure]:
    """Return survival at every turn, and the restricted mean."""
    horizon = at_risk.shape[1]
    sums = np.concatenate([at_risk, flips], 1)

    def rate(formula):
        """Return a mean of chances as a rate, with the contributions of the jackknife."""
        of = Function.of(sums, lambda s: formula(kaplan_meier(s[..., :horizon], s[..., horizon:])), entered)
        return Rate(of.value, of.contrib, of.n, of.clusters, of.at, ratio(at_risk[:, 0], entered))

    entered = at_risk[:, 0].sum()
    curve = [rate(lambda kept, t=t: kept[..., t]) for t in range(horizon)]
    mean = rate(lambda kept: np.where(np.isnan(kept[..., 0]), np.nan, 1 + kept[..., :-1].sum(-1)) / horizon)
    return [
        *(Measure(f"survival@{turn}", of) for turn, of in enumerate(curve, 1)),
        Measure("restricted_mean", mean.mapped(lambda v: v * horizon), notes=[(True, f"horizon={horizon}")]),
    ]
