"""The committed comparison of scorers."""

import pandas as pd

from selfeval.paths import ROOT


def test_the_committed_comparison_says_that_similarity_reads_worse_than_claims():
    table = pd.read_csv(ROOT / "data" / "validation" / "scorers.csv").set_index(["scorer", "half"])
    held_out = table.xs("held_out", level="half")["accuracy"]
    assert held_out["claims"] > 0.9 > held_out["semantic_similarity"]
