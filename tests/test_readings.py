"""Readings side by side, on simulated models with known likelihood ratios and answer habits."""

import pandas as pd
import pytest
import simulate_readings as simulate

from selfeval import DATA

KEY = ["statistic", "evaluator"]


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
    means = sum(simulate.estimates(simulate.PROMPTS, seed)["estimate"] for seed in range(8)) / 8
    assert means.to_dict() == pytest.approx(table["mean"].to_dict(), abs=0.12)  # 8 of the 1,000 tables
