"""Statistics: DataFrames in, estimates with intervals out; no I/O, no network, no clock.

Every table has the columns of `COLUMNS`. Recognition: `recognition_table`, `roc_points`,
`confusion`, contrasts of conditions and of models. Identity: `identity_table` and its
comparisons. Juries: `jury_table`. `intervals` has the rates, differences and areas themselves with
their intervals, `tests` permutations, Holm's adjustment and power.
"""

from selfeval.condition import condition_label
from selfeval.existence.measures import existence_table
from selfeval.identity.attacked import attack_table
from selfeval.identity.measures import (
    identity_table,
    paired_comparison,
    sibling_table,
    survival_table,
)
from selfeval.recognition.contrasts import condition_contrasts, paired_models
from selfeval.recognition.counts import confusion
from selfeval.recognition.measures import recognition_table, roc_points
from selfeval.roleplay.measures import jury_table
from selfeval.roleplay.votes import cohen_kappa
from selfeval.statistics import intervals, tests
from selfeval.statistics.classifier import out_of_fold
from selfeval.statistics.table import COLUMNS, conclusion, default_rows
