"""The table of the fault suite misses nothing: a row that failed, was skipped, lost a reply or has no test."""

from types import SimpleNamespace

import pytest
from faults import ROWS, Table


def ran(table, row, outcome="passed", **counts):
    """Tell the table of one test of a row."""
    for when in ("setup", "call", "teardown"):
        result = outcome if when == "call" else "passed"
        properties = [("row", row), *(counts.items() if when == "teardown" else [])]
        table.pytest_runtest_logreport(
            SimpleNamespace(nodeid=row, when=when, outcome=result, user_properties=properties)
        )


@pytest.mark.parametrize("change", [{"outcome": "failed"}, {"outcome": "skipped"}, {"lost": 1}, None])
def test_a_row_that_is_not_wholly_fine_is_missed(change):
    table = Table()
    for row in ROWS:
        if row != "kill":
            ran(table, row, requests=3)
        elif change:
            ran(table, row, **change)
    assert table.missed() == ["kill"] and " NO" in str(table)
    ran(fine := Table(), "kill", kills=25, repeats=2, lost=0)
    ran(fine, "kill", kills=3)
    assert "kill" not in fine.missed() and fine.counts["kill"]["kills"] == 28
    [line] = [line for line in str(fine).splitlines() if line.startswith(ROWS["kill"])]
    assert line.split()[-5:] == ["28", "2", "0", "2", "yes"]


def test_a_test_of_no_row_is_an_error():
    with pytest.raises(pytest.UsageError, match="no row 'nowhere'"):
        ran(Table(), "nowhere")
