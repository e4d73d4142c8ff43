"""The simulations behind `data/validation/` measure what the package reports, many tables at once."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import simulate_coverage
import simulate_designs
import simulate_jury
import simulate_readings
import simulate_small
import words_and_weights
from scipy.special import stdtrit

from selfeval import DATA
from selfeval.roleplay.measures import conformity
from selfeval.roleplay.votes import read_votes
from selfeval.statistics.intervals import check_level
from selfeval.statistics.tests import inverted_p
from selfeval.stats import jury_table, recognition_table

KEY = ["statistic", "evaluator"]


def test_simulated_tables_have_the_intervals_and_p_of_recognition_table():
    scenario = next(s for s in simulate_coverage.scenarios() if s.name == "mid-range, 5 texts a prompt")
    size, samples, prompts = scenario.size, scenario.samples, 12
    names = np.array([f"m{i}" for i in range(size)])
    drawn = simulate_coverage.draw_tables(scenario, prompts, 1, np.random.default_rng(4))
    answers = scenario.answers(prompts, 1, np.random.default_rng(4))[:, 0]
    p, e, t, s = (x.ravel() for x in np.indices(answers.shape))
    records = pd.DataFrame({
        "text_id": (t * prompts + p) * samples + s, "prompt_id": p, "true_model": names[t],
        "evaluator_model": names[e], "predicted_model": names[answers.ravel()], "task_type": "exact_model",
    })  # fmt: skip
    table = recognition_table(records, n_resamples=500, seed=0)
    rows = table[(table["evaluator"] == "m0") & (table["author"] == "")].drop_duplicates(["statistic", "method"])
    rows = rows.set_index(["statistic", "method"])
    assert rows.loc[("discrimination", "mover"), "p"] == pytest.approx(
        inverted_p(drawn.found["discrimination"], 0, check_level(0.95))[0]
    )
    for statistic, methods in simulate_coverage.intervals(drawn, 500, 0).items():
        if statistic in simulate_coverage.LISTED:  # the package has them no more
            continue
        default = rows.loc[statistic].index[0]
        assert rows.loc[(statistic, default), "estimate"] == pytest.approx(drawn.found[statistic].value[0])
        bounds = methods["default"][0][0], methods["default"][1][0]
        assert bounds == pytest.approx(tuple(rows.loc[(statistic, default), ["low", "high"]]), abs=3e-6), statistic


def test_simulated_designs_have_the_intervals_of_recognition_table():
    designs = {f"{design.group}, {design.name}": design for design in simulate_designs.designs(20)}
    design = designs["dominating, 10 rows in two prompts, 0.5 alike"]
    scores = design.draws(2, np.random.default_rng(3))
    prompt, author, row = (at[~np.isnan(scores[:, 1])] for at in np.indices(scores[:, 1].shape))
    score = scores[:, 1][prompt, author, row]
    records = pd.DataFrame({
        "text_id": [f"{p}-{a}-{r}" for p, a, r in zip(prompt, author, row, strict=True)], "prompt_id": prompt,
        "true_model": author.astype(str), "evaluator_model": "0", "task_type": "binary_self",
        "predicted_self": score > 1 - design.rates[author], "score": score,
    })  # fmt: skip
    table = recognition_table(records, n_resamples=1).drop_duplicates("statistic").set_index("statistic")
    z = check_level(0.95)
    ends = {key: np.array(of.interval(z)) for key, (of, *_) in design.measured(scores).items()}
    for key, (low, high) in (ends | {"auc": design.areas(scores)}).items():
        assert (low[1], high[1]) == pytest.approx(tuple(table.loc[key, ["low", "high"]]), abs=1e-9), key


def test_blind_evaluators_of_lineups_are_seldom_found_out():
    found = simulate_small.lineups(1000, 0)
    assert len(found) == 60 and found["rejected"].max() <= 0.06


def test_planted_readings_are_covered_in_a_thousand_tables():
    """The committed run of simulate_readings.py; that it is this code's is the next test."""
    table = pd.read_csv(DATA / "validation" / "readings.csv").set_index(KEY)
    assert (table["tables"] == 1000).all() and (table["coverage"] >= 0.93).all()
    assert (table["truth"] - table["mean"]).abs().max() < 0.01  # no bias
    claims = table.loc["discrimination", "truth"]  # a habit of saying yes or no gives no discrimination
    assert claims[["a", "c"]].abs().max() < 0.01 < 0.15 < claims["b"]
    assert (table.loc["auc_within_prompt", "truth"].sort_index().diff().dropna() < -0.05).all()


def test_the_simulation_measures_what_it_measured():
    table = pd.read_csv(DATA / "validation" / "readings.csv").set_index(KEY)
    means = sum(simulate_readings.estimates(simulate_readings.PROMPTS, seed)["estimate"] for seed in range(8)) / 8
    assert means.to_dict() == pytest.approx(table["mean"].to_dict(), abs=0.12)  # 8 of the 1,000 tables


def test_conformity_is_told_from_regression_to_the_mean_and_from_a_sham():
    """Jurors that vote anew seem to conform: the arm in which they hear nobody, or strangers, takes it away."""
    slopes, alike = [], dict.fromkeys("abc", (0.0, 0.0, 0.1))
    for seed in range(8):
        records = simulate_jury.planted_records(
            seed, conversations=40, jurors=alike, redraw=True, wanted=("reask", "debate")
        )
        slopes.append([m.of.value for m in conformity(read_votes(records)) if m.labels["task"] == "debate"])
    apparent, corrected = np.mean(slopes, 0)
    assert apparent > 0.25 and abs(corrected) < 0.05
    records = simulate_jury.planted_records(0)
    beyond, unknown = (
        jury_table(said).query("statistic == 'conformity_minus_sham'").iloc[0]
        for said in (records, records.drop(columns="peer_mean"))
    )
    assert beyond["low"] <= simulate_jury.CONFORMITY - simulate_jury.TO_STRANGERS <= beyond["high"]
    assert unknown["note"].startswith("not_estimable; peers_unknown")


def test_the_cells_of_12_tell_apart_what_words_follow_and_their_numbers_follow_from_the_records(tmp_path):
    """One fleet of those whose committed rows are in words_and_weights.csv."""
    table = pd.read_csv(DATA / "validation" / "words_and_weights.csv")
    assert table["told_apart"].iloc[0] >= 9
    habit = table[table["words_follow"] == "habit"].iloc[0]
    assert habit["any_of_six"] < 0.1 and max(habit["a_rejected"], habit["b_rejected"]) < 0.08
    given = words_and_weights.write_fleet(tmp_path, 120, 1, words_and_weights.rotated(1))
    said = words_and_weights.analysed(given, until="primary")["follows"]
    truth = dict(zip(words_and_weights.MODELS, words_and_weights.rotated(1), strict=True))
    assert {name: words_and_weights.SAID.get(of, of) for name, of in said.items()} == truth
    again = [given["texts"], *given["predictions"], *given["likelihoods"], tmp_path / "out" / "primary.csv"]
    subprocess.run([sys.executable, Path(__file__).with_name("recompute.py"), *again], check=True)


def test_the_registered_numbers_follow_from_the_published_records():
    kept = DATA / "predictions" / "confirm"
    places = [DATA / "corpora" / "confirm" / "texts.jsonl", kept / "predictions_binary_self.jsonl.xz"]
    places += [kept / "likelihoods.jsonl.xz", DATA / "results" / "words_and_weights" / "primary.csv"]
    subprocess.run([sys.executable, Path(__file__).with_name("recompute.py"), *places], check=True)


def recognising(always: int, on_even_prompts: int, models: int = 8, prompts: int = 30) -> pd.DataFrame:
    """Return yes/no records of models that claim own texts always, or on even prompts, or never, and nothing else."""
    p, e, t = (x.ravel() for x in np.indices((prompts, models, models)))
    knows = (e < always) | ((e < always + on_even_prompts) & (p % 2 == 0))
    return pd.DataFrame({
        "text_id": t * prompts + p, "prompt_id": p, "true_model": t.astype(str), "evaluator_model": e.astype(str),
        "task_type": "binary_self", "predicted_self": knows & (e == t), "predicted_model": None,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("always", "on_even", "mean", "variance", "df"),
    [
        # Half of the models always, half never: all variance is over models, s²/8 = .25 * 8/7 / 8.
        (4, 0, 0.5, 0.25 / 7, 7),
        # All on even prompts: all variance is over prompts, .25 / 29.
        (0, 8, 0.5, 0.25 / 29, 29),
        # Half always, half on even prompts: J is 1 or .5 over models (.0625 / 7); 1 or .5 over prompts (.0625 / 29);
        # less what is left in the cells, +-.25 everywhere, with 7 * 29 degrees of freedom.
        (4, 4, 0.75, 0.0625 / 7 + 0.0625 / 29 - 0.0625 / 203, 10.05),
    ],
)
def test_the_interval_of_models_like_these_by_hand(always, on_even, mean, variance, df):
    """Wilson's interval of the place (1 + J) / 2 in the range, at the size (1 - J²) / variance, with t for z."""
    found = simulate_coverage.models_in_general(recognising(always, on_even)).set_index("method").loc["two_way_t"]
    t = stdtrit(df, 0.975)
    p, n = (1 + mean) / 2, (1 - mean**2) / variance
    width = 4 * t / (1 + t**2 / n) * np.sqrt(p * (1 - p) / n + t**2 / (4 * n**2))
    assert found["estimate"] == pytest.approx(mean)
    assert found["high"] - found["low"] == pytest.approx(width, rel=0.005)
    assert -1 < found["low"] < mean < found["high"] < 1
