"""The figures of coverage and power draw the numbers of their tables."""

import pandas as pd
import pytest

from selfeval import figures
from selfeval.figures.validation import mid_range


@pytest.fixture
def covered():
    rows = [
        {"scenario": scenario, "prompts": prompts, "statistic": statistic, "method": method, "mc_error": 0.01,
         "coverage": 0.9 + 0.01 * len(method) / prompts, "lowest_rate": low, "highest_rate": 0.9}
        for scenario, low in (("middle", 0.1), ("edge", 0.01)) for prompts in (20, 50)
        for statistic in ("discrimination", "peer_corrected") for method in ("clustered t", "BCa", "default")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_scenario_is_mid_range_where_every_rate_is():
    rates = pd.DataFrame({"lowest_rate": [0.1, 0.0999999, 0.09, 0.2], "highest_rate": [0.9, 0.5, 0.5, 0.91]})
    assert list(mid_range(rates)) == [True, True, False, False]


def test_coverage_has_a_panel_per_statistic_and_method_and_a_line_per_scenario(covered):
    fig = figures.coverage(covered, promise=0.93)
    assert [ax.get_title() for ax in fig.axes[:3]] == ["clustered t", "BCa", "default"]
    assert [ax.get_ylabel() for ax in (fig.axes[0], fig.axes[3])] == ["Discrimination J", "Peer-corrected D"]
    for panel, method in zip(fig.axes, ["clustered t", "BCa", "default"] * 2, strict=True):
        drawn = [sorted(bars[0].get_ydata()) for bars in panel.containers]
        shown = covered[(covered["method"] == method) & (covered["statistic"] == "discrimination")]
        assert drawn == [sorted(line["coverage"]) for _, line in shown.groupby("scenario")]
        assert len({bars[0].get_color() for bars in panel.containers}) == 2  # mid-range and near the bounds


def test_power_is_drawn_on_its_plan():
    table = pd.DataFrame({
        "difference": [0, 0.2] * 2, "prompts": [20, 20, 50, 50], "power": [0.05, 0.5, 0.04, 0.8], "mc_error": 0.01,
        "planned": [0.05, 0.4, 0.05, 0.7], "planned_sd": [0.05, 0.5, 0.05, 0.8],
    })  # fmt: skip
    (ax,) = figures.power_curves(table).axes
    assert [list(bars[0].get_ydata()) for bars in ax.containers] == [[0.05, 0.5], [0.04, 0.8]]
    plans = [list(line.get_ydata()) for line in ax.lines if line.get_linestyle() in ("-", ":")]
    assert plans == [[0.05, 0.4], [0.05, 0.5], [0.05, 0.7], [0.05, 0.8]]
