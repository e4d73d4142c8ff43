"""Statistics: DataFrames in, estimates with intervals out; no I/O, no network, no clock.

Self-recognition: `table` is the front door (`recognition_table`); `counts` turns records into counts; `naming`,
`binary` and `measures` hold the statistics of the tasks. Identity: `identity` (`identity_table`, `paired_comparison`)
and `survival` (`survival_table`); `templates` checks the records and writes the rows, `replies` gives each template's
values; `agreement` compares scorers. `intervals` holds what works on arrays of any origin.
"""

from selfeval.stats.agreement import cohen_kappa, rogan_gladen
from selfeval.stats.counts import confusion
from selfeval.stats.identity import identity_table, paired_comparison
from selfeval.stats.intervals import detectable_difference, holm, power
from selfeval.stats.survival import survival_table
from selfeval.stats.table import COLUMNS, recognition_table

__all__ = [
    "COLUMNS",
    "cohen_kappa",
    "confusion",
    "detectable_difference",
    "holm",
    "identity_table",
    "paired_comparison",
    "power",
    "recognition_table",
    "rogan_gladen",
    "survival_table",
]
