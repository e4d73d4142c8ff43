"""Statistics: DataFrames in, estimates with intervals out; no I/O, no network, no clock.

`engine` has rates, differences, areas and functions of sums with their intervals, the bootstrap and the tests;
`table` writes the one long table that every evaluation has. Self-recognition: `tallies` counts predictions,
`recognition` is the front door, `pairs` and `contrasts` beside it. Identity: `identity`. Juries: `jury`,
with `votes`, where scorers are held against each other too.
"""

from selfeval.stats.contrasts import (
    condition_contrasts,
    existence_table,
    models_in_general,
    paired_models,
    result_contrasts,
)
from selfeval.stats.identity import (
    identity_table,
    paired_comparison,
    result_comparison,
    sibling_table,
    survival_table,
)
from selfeval.stats.jury import jury_table
from selfeval.stats.recognition import recognition_table, roc_points
from selfeval.stats.table import COLUMNS, conclusion, default_rows
from selfeval.stats.tallies import condition_label, confusion
from selfeval.stats.votes import cohen_kappa, rogan_gladen
