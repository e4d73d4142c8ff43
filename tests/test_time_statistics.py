"""The files and designs that the speed of the statistics is measured on are what they are said to be."""

import numpy as np
import time_statistics

from selfeval.recognition.answers import rescore
from selfeval.records import read_predictions
from selfeval.stats import recognition_table


def test_the_large_file_is_one_that_is_read_and_whose_replies_hold_the_answers_on_record(tmp_path):
    file = tmp_path / "predictions_made.jsonl"
    time_statistics.write_predictions(file, 2_000)
    records, changes = rescore(read_predictions(file))
    assert len(records) == 2_000 and changes["changed"].sum() == 0 and changes["no raw reply"].sum() == 0
    assert 0.01 < changes["removed"].sum() / 2_000 < 0.1  # replies that name two, or nobody
    assert records["reply"].nunique() > 1_000
    counts = records.groupby(["task_type", "evaluator_model", "true_model"]).size()
    assert len(counts) == 200 and (counts == 10).all()


def test_the_crossed_design_has_its_size_and_its_rate():
    frame = time_statistics.crossed(4, 300)
    table = recognition_table(frame, n_resamples=1)
    j = table[(table["statistic"] == "discrimination") & (table["author"] == "")].drop_duplicates("evaluator")
    assert len(frame) == 4 * 4 * 300 and np.allclose(j["estimate"], 0.3, atol=0.04)
