"""The simulation behind the coverage table: its truths, its draws, and that it measures what the package reports."""

import numpy as np
import pandas as pd
import pytest
import simulate_coverage as simulate

from selfeval.stats import recognition_table
from selfeval.stats.engine import Statistic, check_level

SCENARIOS = {s.name: s for s in simulate.scenarios()}
by_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


@by_scenario
def test_planted_truth_is_the_definition_on_the_planted_rates(scenario):
    rates, size = scenario.rates, scenario.size
    assert scenario.habit.sum(1) == pytest.approx(1) and rates.sum(2) == pytest.approx(1)
    j = {(e, k): rates[e, k, k] - np.mean([rates[e, t, k] for t in range(size) if t != k])
         for e in range(size) for k in range(size)}  # fmt: skip
    others = range(1, size)
    assert scenario.truth["discrimination"] == pytest.approx(j[0, 0])
    assert scenario.truth["corrected_advantage"] == pytest.approx(j[0, 0] - np.mean([j[0, k] for k in others]))
    deltas = [j[e, 0] - np.mean([j[e, k] for k in others if k != e]) for e in others] if size > 2 else []
    assert scenario.truth["interaction"] == pytest.approx(scenario.truth["corrected_advantage"] - np.mean(deltas))
    assert scenario.truth["peer_corrected"] == pytest.approx(j[0, 0] - np.mean([j[e, 0] for e in others]))


@pytest.mark.parametrize("name", ["mid-range, 5 texts a prompt", "knows itself alone"])
def test_draws_have_the_planted_rates(name):
    scenario = SCENARIOS[name]
    answers = scenario.answers(10_000, 2, np.random.default_rng(1))
    assert answers.shape == (10_000, 2, scenario.size, scenario.size, scenario.samples)
    share = (answers[..., None] == np.arange(scenario.size)).mean((0, 1, 4))
    error = np.sqrt(scenario.rates * (1 - scenario.rates) / 20_000)
    assert (np.abs(share - scenario.rates) <= 4.5 * error + 1e-4).all()


def test_texts_on_a_prompt_have_the_stated_intraclass_correlation():
    scenario = simulate.Scenario("one", np.zeros((1, 4)), np.array([[0.3, 0.2, 0.2, 0.3]]), 0.2)
    claims = scenario.answers(40_000, 1, np.random.default_rng(2))[:, 0, 0, :, 0] == 0
    off = np.corrcoef(claims.T)[~np.eye(4, dtype=bool)]
    assert off == pytest.approx(0.2, abs=0.025)
    knowing = simulate.Scenario("one", np.full((1, 4), 0.9), np.array([[0, 1.0, 0, 0]]), 0.1)
    right = (knowing.answers(40_000, 1, np.random.default_rng(3))[:, 0, 0, :, 0] == np.arange(4))[:, [0, 2, 3]]
    assert np.corrcoef(right.T)[~np.eye(3, dtype=bool)] == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("name", ["mid-range, 5 texts a prompt", "always itself"])
def test_tables_side_by_side_are_what_the_package_reports_for_each(name):
    """Through `recognition_table`, on records: values, default and bootstrap bounds, p of J."""
    scenario, prompts, tables = SCENARIOS[name], 12, 3
    size, samples = scenario.size, scenario.samples
    names = np.array([f"m{i}" for i in range(size)])
    drawn = simulate.draw_tables(scenario, prompts, tables, np.random.default_rng(4))
    answers = scenario.answers(prompts, tables, np.random.default_rng(4))
    found = simulate.intervals(drawn, 500, 0)
    for k in range(tables):
        p, e, t, s = (x.ravel() for x in np.indices(answers[:, k].shape))
        records = pd.DataFrame({
            "text_id": (t * prompts + p) * samples + s, "prompt_id": p, "true_model": names[t],
            "evaluator_model": names[e], "predicted_model": names[answers[:, k].ravel()], "task_type": "exact_model",
        })  # fmt: skip
        table = recognition_table(records, n_resamples=500, seed=0)
        rows = table[(table["evaluator"] == "m0") & (table["author"] == "")].drop_duplicates(["statistic", "method"])
        rows = rows.set_index(["statistic", "method"])
        assert rows.loc[("discrimination", "mover"), "p"] == pytest.approx(drawn.p[k])
        for statistic, methods in found.items():
            default = rows.loc[statistic].index[0]
            assert rows.loc[(statistic, default), "estimate"] == pytest.approx(drawn.found[statistic].value[k])
            for ours, theirs in (("default", default), ("percentile", "percentile"), ("BCa", "bca")):
                if ours in methods:
                    bounds = methods[ours][0][k], methods[ours][1][k]
                    reported = tuple(rows.loc[(statistic, theirs), ["low", "high"]])
                    assert bounds == pytest.approx(reported, abs=3e-6, nan_ok=True), (statistic, ours)


def test_the_other_methods_are_what_they_are_called():
    drawn = simulate.draw_tables(SCENARIOS["mid-range"], 30, 4, np.random.default_rng(5))
    found = simulate.intervals(drawn, 50, 0)["discrimination"]
    j, z = drawn.found["discrimination"], check_level(0.95)
    assert np.array(found["clustered t"]) == pytest.approx(np.array(Statistic.interval(j, z)))
    rates = [(part.value, part.n) for part in (j.a, j.b)]
    alone = sum(p * (1 - p) / (n - 1) for p, n in rates)  # of own texts exactly, of others' by author nearly
    low, high = found["ignoring clusters"]
    assert high - low == pytest.approx(2 * z * np.sqrt(alone), rel=0.03)


def test_sign_flips():
    rng = np.random.default_rng(8)
    alike = np.ones((8, 1))  # only all plus or all minus are as far from 0: 2 in 256
    assert simulate.sign_flip_p(alike, rng, 200_000) == pytest.approx([2 / 256], abs=0.001)
    assert simulate.sign_flip_p(np.array([[1.0], [-1.0]]), rng) == pytest.approx([1])


def test_shares_have_an_error_also_where_all_agree():
    assert simulate.share(np.array([True, False] * 50)) == pytest.approx({"share": 0.5, "mc_error": 0.05})
    assert simulate.share(np.ones(100, bool))["mc_error"] > 0.01


def test_result_tables(monkeypatch):
    monkeypatch.setattr(simulate, "scenarios", lambda: [SCENARIOS["mid-range"], SCENARIOS["blind, fond of its name"]])
    covered, listed, rejected = simulate.coverage(150, 200, 0, prompts=(50,))
    for one, again in zip((covered, listed, rejected), simulate.coverage(150, 200, 0, prompts=(50,)), strict=True):
        pd.testing.assert_frame_equal(one, again)
    assert len(covered) == 2 * 3 * 5 and covered["coverage"].between(0.87, 1).all()
    assert (covered["mean_width"] > 0.1).all() and (covered["no_width"] == 0).all()
    assert set(listed["statistic"]) == {"interaction", "d_prime"} and listed["coverage"].between(0.87, 1).all()
    assert set(rejected["scenario"]) == {"blind, fond of its name"} and rejected["rejected"].between(0, 0.13).all()
    assert dict(rejected.groupby("test").size()) == {"inverted interval": 2, "permutation": 1, "sign flip": 3}


def test_power_grows_with_the_difference_and_is_near_the_plan(monkeypatch):
    monkeypatch.setattr(simulate, "PROMPTS", (50,))
    found = simulate.power_of_j(300, 0, (0, 0.15, 0.34))
    assert found["power"].is_monotonic_increasing and found["power"][0] < 0.1
    assert found["power"].to_numpy() == pytest.approx(found["planned_sd"].to_numpy(), abs=0.1)
