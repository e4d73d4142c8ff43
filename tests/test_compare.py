"""Two sets of answers, measured as one and compared by what tells them apart; frames cut from a comparison."""

import pandas as pd
import pytest
from recognition_records import FAST, naming

import selfeval as se
from selfeval.errors import InputError

PROMPTS = 24


def recognition(own_right: int, first_prompt=0, condition="told=true", evaluators=("a", "b")):
    """Return a result in which `a` names itself on its first `own_right` texts, and nobody else ever does."""
    answers = {(evaluator, author): ["b"] * PROMPTS for evaluator in evaluators for author in "ab"}
    answers["a", "a"] = ["a"] * own_right + ["b"] * (PROMPTS - own_right)
    frame = naming({key: given for key, given in answers.items() if key[0] in evaluators}, condition=condition)
    frame["prompt_id"] += first_prompt
    frame["text_id"] = frame["true_model"] + "-" + frame["prompt_id"].astype(str)
    more = {"evaluator_model": "evaluator_model", "prompt_used": "", "is_correct": None, "text_preview": "a text"}
    display = {"true_model_display": frame["true_model"]}
    frame = frame.assign(**{name: value for name, value in more.items() if name not in frame}, **display)
    return se.measure_recognition(frame, **FAST)


@pytest.fixture(scope="module")
def may():
    return recognition(own_right=18)


def own(table: pd.DataFrame) -> pd.Series:
    return table[(table["evaluator"] == "a") & (table["statistic"] == "self_accuracy")].iloc[0]


def test_two_files_are_compared_by_what_tells_them_apart(may, tmp_path):
    files = {}
    for month, right in {"May": 18, "June": 12}.items():
        file = tmp_path / f"{month}.csv"
        recognition(own_right=right).records.drop(columns="recorded").to_csv(file, index=False)
        files[file] = {"month": month}
    both = se.measure_recognition(files, **FAST)
    [change] = [own(se.compare(both, by)) for by in ("month",)]
    assert change[["field", "first", "second"]].tolist() == ["month", "June", "May"]
    assert change["estimate"] == pytest.approx((18 - 12) / PROMPTS) and change["p"] < 0.05
    with pytest.raises(InputError, match="evaluator, condition, month"):
        se.compare(both, "told")


def test_what_has_no_comparison_is_refused(may):
    existence = se.measure_existence(se.ask_existence("sim/existence-knows", names=2, templates=1))
    with pytest.raises(InputError, match="'existence' have no comparison by 'evaluator'"):
        se.compare(existence)
    with pytest.raises(InputError, match="measure it first"):
        se.compare(may.records)


def test_one_evaluator_alone_has_no_pairs_and_cut_frames_raise_as_pandas_does(may):
    pairs = se.compare(recognition(own_right=12, evaluators=("a",)))
    assert pairs.empty and "evaluator" in pairs and repr(pairs)
    for frame in (may[["evaluator", "estimate"]], may.records[["evaluator_model"]], se.compare(may)[["evaluator"]]):
        with pytest.raises(KeyError, match="low"):
            frame["low"]
