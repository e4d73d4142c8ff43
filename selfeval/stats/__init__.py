"""Statistics: DataFrames in, estimates with intervals out; no I/O, no network, no clock.

`table` is the front door (`recognition_table`); `counts` turns records into counts; `naming`, `binary` and `measures`
hold the statistics of the tasks; `intervals` holds what works on arrays of any origin. `jury` (`jury_table`) does the
same for verdicts of a jury, with `votes`, `panel`, `debate`, `agreement` and `resampled` behind it.
"""

from selfeval.stats.counts import confusion
from selfeval.stats.intervals import detectable_difference, holm, power
from selfeval.stats.table import COLUMNS, recognition_table

__all__ = ["COLUMNS", "confusion", "detectable_difference", "holm", "power", "recognition_table"]
