"""What the captions of figures and tables say was found is what the committed tables show.

Each finding of notebooks/captions.yaml has a check here, which returns the words with numbers that it must have.
"""

import re

import pandas as pd
import pytest
import yaml

from selfeval import DATA, ROOT
from selfeval.stats import default_rows

SAID = yaml.safe_load((ROOT / "notebooks/captions.yaml").read_text(encoding="utf-8"))
BLANK = dict.fromkeys(["evaluator", "author", "task", "condition", "policy", "note"], "")
SMOLLM, CAPTAIN = "local/smollm2-135m", "local/smollm2-135m-captain"
QWEN = "local/qwen2.5-coder-1.5b"
CHECKS = {}


def read(file):
    return pd.read_csv(DATA / "results" / f"{file}.csv", dtype=dict.fromkeys(BLANK, str)).fillna(BLANK)


def defaults(file, *statistics):
    """Return the default rows of statistics over all authors and families, those that can be estimated."""
    rows = default_rows(read(file), *statistics)
    rows = rows[(rows["author"] == "") if "author" in rows else slice(None)]
    return rows.dropna(subset=["estimate", "low"])


def includes(rows, value):
    return bool(((rows["low"] <= value) & (rows["high"] >= value)).all())


def finding(*names):
    """Let a function check the findings of these figures (f:) or tables (t:)."""

    def keep(check):
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return keep


@finding("f:published_j")
def published():
    said = SAID["figures"]["published_j"]
    cases = read("published/evaluators")
    cases = cases[~cases["study"].str.contains("pairs|naming both")]
    found = cases[cases["usual_low"] > 0]
    kept = found["j_low"] > 0
    assert f"Of {len(cases)} tests" in said["about"]
    assert f"{found['study'].str.startswith('Erlikhman').sum()} of the {len(found)})" in said["about"]
    assert {*found.loc[kept, "tier"]} == {"frontier models of 2026"}
    tiers = ["frontier models of 2026", "open-weight models", "judges of 2024"]
    frontier, open_weights, old = found["tier"].value_counts()[tiers]
    assert f"{kept.sum()} of the {frontier} by frontier models stay above 0" in said["alt"]
    assert f"none of the {open_weights} by open-weight models or of the {old} by judges of 2024" in said["alt"]
    beyond = found[found["left"] == "beyond its peers"]
    assert (beyond["peers"] == "one by one").all() and (beyond[["j_low", "log_odds_low"]] > 0).all(axis=None)
    left = f"in {kept.sum()}, all of frontier models of 2026, of which {len(beyond)} are shown to be beyond"
    return f"{len(found)} published tests find self-recognition by the usual score; by J it is left {left}"


@finding("f:words_and_weights")
def answers_order_worse_than_likelihood_and_style():
    rows = read("words_and_weights/secondary").query("statistic == 'auc_within_prompt'").set_index("what")
    rows = rows[~rows["evaluator"].str.endswith("-writer")]
    answers = rows.loc["prompt shown, free reply"].set_index("evaluator")
    for score in ("own likelihood, per character", "a simple reader of style"):
        other = rows.loc[score].set_index("evaluator")
        assert len(answers) == 3 and (answers["high"] < other["low"].reindex(answers.index)).all()


@finding("f:words_and_weights_claims")
def no_in_a_free_reply_and_yes_in_json():
    rows = read("words_and_weights/secondary").query("when == 'prompt shown' and statistic != 'auc_within_prompt'")
    rows = rows[~rows["evaluator"].str.endswith("-writer")]
    assert (
        rows.loc[rows["form"] == "free reply", "high"].max()
        < 0.5
        < rows.loc[rows["form"] == "JSON choice", "low"].min()
    )


@finding("f:implicit_readings")
def no_answer_orders_and_most_likelihoods_do():
    rows = pd.concat(
        [defaults(f"families/{name}/implicit", "auc_within_prompt") for name in ("implicit", "implicit-people")]
    )
    assert includes(rows[rows["condition"].str.contains("yes or no|names the author")], 0.5)
    own = rows[rows["condition"] == "reading=own likelihood"]
    return f"in {(own['low'] > 0.5).sum()} of {len(own)} cases"


@finding("t:implicit")
def no_answer_orders():
    no_answer_orders_and_most_likelihoods_do()


@finding("f:recognition_advantage", "t:recognition")
def two_models_by_a_and_none_by_j():
    table = read("families/recognition/self_recognition").query("author == ''")
    assert includes(default_rows(table, "discrimination"), 0)
    a = default_rows(table.query("method == 'percentile'"), "advantage")
    assert {*a.loc[a["low"] > 0, "evaluator"]} == {SMOLLM, CAPTAIN}
    assert (a.loc[a["evaluator"] == QWEN, "low"] < 0).all()


@finding("t:recognition_demo")
def no_variant_recognises():
    assert includes(defaults("demo/recognition/self_recognition", "discrimination"), 0)


@finding("f:recognition_claimed")
def habits_not_texts():
    counts = read("families/recognition/counts")
    own = counts["n"].where(counts["predicted"] == counts["evaluator"], 0)
    sums = counts.assign(own=own).groupby(["task", "evaluator", "author"])[["own", "n"]].sum()
    shares = (sums["own"] / sums["n"]).unstack()
    assert ((shares.max(axis=1) - shares.min(axis=1)) < 0.12).all(), "a row is of one colour"


@finding("f:provenance_claims")
def more_of_others_texts_at_the_start_of_an_answer():
    rows = defaults("families/provenance/self_recognition", "discrimination", "false_claim_rate")
    place = rows["condition"].str.extract("provenance=([^;]*)")[0].fillna("quoted")
    assert includes(rows[rows["statistic"] == "discrimination"], 0)
    others = rows[rows["statistic"] == "false_claim_rate"].assign(place=place)
    others = others.pivot(index="evaluator", columns="place", values="estimate")
    assert len(others) == 3 and (others["prefill"] > others["quoted"] + 0.2).all()


@finding("f:identity_claims", "t:identity")
def no_model_prefers_its_own_name():
    for study in ("identity", "siblings"):
        rows = read(f"families/{study}/identity").query("task == '' and condition == ''")
        assert includes(default_rows(rows, "claim_discrimination"), 0)
        shares = default_rows(rows, "accept_true", "accept_false")
        of_qwen = shares["evaluator"].str.contains("qwen")
        assert shares.loc[of_qwen, "estimate"].min() > 0.5 > 0.2 > shares.loc[~of_qwen, "estimate"].max()


@finding("f:jury", "t:jury")
def letters_tell_and_juries_do_not():
    for study in ("jury", "jury-other"):
        rows = default_rows(read(f"families/{study}/jury"), "auc").query("evaluator == ''").set_index("task")
        assert rows.loc["character n-grams", "low"] > 0.5
        assert includes(rows.drop(["character n-grams", "length"]), 0.5)


@finding("f:fleet_advantage")
def j_finds_skill_and_a_rewards_a_habit():
    table = read("demo/fleet/self_recognition").query("author == ''")
    j = default_rows(table, "discrimination").groupby("evaluator")["low"]
    assert {*j.min()[j.min() > 0].index} == {"sim/perfect", "sim/good", "sim/no-answer"}
    a = default_rows(table.query("method == 'percentile'"), "advantage").set_index("evaluator")["estimate"]
    return f"A is {a.loc['sim/perfect'].max():g} for the perfect one and {a.loc['sim/always-itself'].min():g} for one"


@finding("f:validation_coverage")
def the_default_covers_where_others_fail():
    rows = read("validation/coverage").query("statistic == 'discrimination' and prompts <= 50")
    least = rows.groupby("method")["coverage"].min()
    assert least["default"] > 0.87 > 0.7 > least.drop("default").max()


@finding("t:registered")
def both_qwens_say_yes_to_their_own_and_no_answer_follows_its_likelihood():
    rows = read("words_and_weights/primary").dropna(subset="p_holm")
    answers = rows[rows["outcome"] == "a"].set_index("evaluator")
    shown = answers.index[(answers["low"] > 0.5) & (answers["p_holm"] < 0.05)]
    assert {*shown} == {QWEN, "local/qwen2.5-coder-0.5b"}
    own = rows[rows["outcome"] == "b"]
    assert len(own) == 3 and includes(own, 0) and (own["p_holm"] > 0.05).all()


@finding("t:existence")
def no_variant_tells_real_names_from_invented():
    assert includes(defaults("demo/existence/existence", "discrimination"), 0)


ALL = {f"{kind[0]}:{name}": said for kind in ("figures", "tables") for name, said in SAID[kind].items()}


@pytest.mark.parametrize("name", ALL)
def test_what_a_caption_says_was_found_is_so(name):
    words = CHECKS[name]() or ""
    said = ALL[name]["finding"]
    numbers = re.findall(r"\d+ of \d+|\d+", re.sub(r"SmolLM2", "", said))
    assert words in said and (numbers == [] or words), f"{name}: the tables say {words!r}"


@pytest.mark.parametrize("name", ALL)
def test_the_first_sentence_of_a_caption_is_the_finding_and_a_figure_has_an_alt_text(name):
    said = ALL[name]
    assert said["finding"].endswith(".") and said["about"].endswith(".")
    assert "committed run" not in said["finding"]
    assert name.startswith("t:") or 20 < len(said["alt"]) < 300
