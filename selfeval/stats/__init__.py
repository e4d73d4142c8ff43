"""Statistics: DataFrames in, estimates with intervals out; no I/O, no network, no clock.

Self-recognition: `table` is the front door (`recognition_table`); `counts` turns records into counts; `naming`,
`binary`, `pairs`, `roc` and `measures` hold the statistics of the tasks; `contrasts` compares conditions and speaks of
models in general; `existence` is the test of names. Identity: `identity` (`identity_table`, `paired_comparison`) and
`survival` (`survival_table`); `templates` checks the records and writes the rows, `replies` gives each template's
values. Juries: `jury` (`jury_table`), with `votes`, `panel`, `debate` and `resampled` behind it.
`scorers` holds two scorers of a reply against each other, `agreement` many raters; `intervals` holds what works on
arrays of any origin.
"""

from selfeval.stats.contrasts import condition_contrasts, models_in_general
from selfeval.stats.counts import confusion
from selfeval.stats.existence import existence_table
from selfeval.stats.identity import identity_table, paired_comparison
from selfeval.stats.roc import roc_points
from selfeval.stats.scorers import cohen_kappa, rogan_gladen
from selfeval.stats.survival import survival_table
from selfeval.stats.table import COLUMNS, recognition_table
from selfeval.stats.testing import detectable_difference, holm, power

__all__ = [
    "COLUMNS", "cohen_kappa", "condition_contrasts", "confusion", "detectable_difference", "existence_table", "holm",
    "identity_table", "models_in_general", "paired_comparison", "power", "recognition_table", "roc_points",
    "rogan_gladen", "survival_table",
]  # fmt: skip
