"""Statistics: DataFrames in, estimates with intervals out; no I/O, no network, no clock.

`table` is the front door (`recognition_table`); `counts` turns records into counts; `naming`, `binary` and `measures`
hold the statistics of the tasks; `contrasts` compares conditions and speaks of models in general; `intervals` holds
what works on arrays of any origin.
"""

from selfeval.stats.contrasts import condition_contrasts, models_in_general
from selfeval.stats.counts import confusion
from selfeval.stats.intervals import detectable_difference, holm, power
from selfeval.stats.table import COLUMNS, recognition_table

__all__ = [
    "COLUMNS", "condition_contrasts", "confusion", "detectable_difference", "holm", "models_in_general", "power",
    "recognition_table",
]  # fmt: skip
