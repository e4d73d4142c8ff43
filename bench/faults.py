"""The fault suite in full: every test marked `fault("row")`, then a table of what each row took; see `make faults`.

Tests say what they counted with the fixture `counted`; requests to fake servers count themselves. In `make test` the
same tests run with fewer kills.
"""

import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

COUNTS = ("kills", "calls", "requests", "repeats", "lost")
ROWS = {
    "kill": "SIGKILL of sweep or kernel at random times, then resume",
    "signal": "Ctrl-C and TERM: out without its replies, no child left, says how to resume",
    "same keys": "4 processes with the same keys: one call per key, no lock error",
    "disk full": "disk full (store, notebook, figure)",
    "throttled": "429 storm; Retry-After in seconds, date, ms, none",
    "refused": "401, 402, 403, 404, quota, Retry-After 3600: that model stops",
    "broken reply": "5xx, drop, short, truncated, empty, HTML, bad UTF-8, 200 with error",
    "deadline": "hang, trickle: over at the deadline",
    "no answer": "empty, reasoning only, filter, refusal, length: exact status, counted",
    "odd text": "lone surrogate, NUL, bidi, 1 MB, emoji: stored and shown",
    "hostile text": "HTML, JS, SVG, ANSI, LaTeX, CSV formula: nothing live",
    "forged": "judged text with fake delimiters, scores, turns, 50 kB",
    "model ids": "a/b:free, ../../x, 300 characters, case twins",
    "key": "API key in environment, in a 401, in a verbose traceback: no hit",
    "no code": "hostile pickle, YAML, parameter name, store: nothing runs",
    "loopback": "servers listen on loopback only",
    "replay": "replay mode, network blocked: no outside attempt, a miss says why",
    "changed": "prompt or parameters changed between resumes: kept apart",
    "storm": "3 notebooks x 4 models with faults of every kind: equal results",
}


class Table:
    """A pytest plugin that keeps, row by row, what became of the tests and what they counted."""

    def __init__(self):
        self.outcomes: dict[str, Counter] = defaultdict(Counter)
        self.counts: dict[str, Counter] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report):
        for row in (value for name, value in report.user_properties if name == "row"):
            if row not in ROWS:
                raise pytest.UsageError(f"{report.nodeid}: no row {row!r}")
            if report.when == "call" or report.outcome != "passed":
                self.outcomes[row][report.outcome] += 1
            if report.when == "teardown":
                self.counts[row].update({name: n for name, n in report.user_properties if name in COUNTS})

    def missed(self) -> list[str]:
        """Return the rows of which a test failed, was skipped or is not there, or that lost a reply."""
        return [row for row in ROWS if {*self.outcomes[row]} != {"passed"} or self.counts[row]["lost"]]

    def __str__(self) -> str:
        width = max(map(len, ROWS.values()))
        lines = [f"{'fault':{width}}" + "".join(f"{name:>9}" for name in (*COUNTS, "tests")) + "  passed"]
        for row, title in ROWS.items():
            counts = [str(self.counts[row].get(name, "")) for name in COUNTS]
            cells = [*counts, str(self.outcomes[row].total())]
            passed = "NO" if row in self.missed() else "yes"
            lines.append(f"{title:{width}}" + "".join(f"{cell:>9}" for cell in cells) + f"  {passed}")
        return "\n".join(lines)


def main() -> int:
    os.environ["SELFEVAL_FAULTS"] = "full"
    table = Table()
    tests = Path(__file__).parents[1] / "tests"
    options = ["-q", "-m", "fault and not model", "-n", "2", "--dist", "worksteal", "--rootdir", str(tests.parent)]
    options += ["--timeout", "1800"]  # 25 kills
    options += sys.argv[1:]  # -k kill: a part
    status = pytest.main([*options, str(tests)], [table])
    print(f"\n{table}")
    return int(bool(status or table.missed()))


if __name__ == "__main__":
    sys.exit(main())
