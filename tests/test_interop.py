"""Logs of Inspect AI: read, measured by hand, written, read again, also by Inspect itself."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import norm, t

import selfeval as se
from selfeval.cli import main
from selfeval.errors import InputError

FIXTURES = Path(__file__).parent / "data"
FILES = [FIXTURES / "inspect" / f"{name}.json" for name in ("careful", "hasty")]
LOGS = [json.loads(file.read_text()) for file in FILES]


def written(folder, planned=0, status="success", **values):
    """Write a log of one sample per value, {scorer: values}, and return its file."""
    scores = pd.DataFrame(values, dtype=object).map(lambda value: {"value": value}).to_dict("records")
    log = {"version": 2, "status": status, "eval": {"model": "m", "task": "t"}, "results": {"total_samples": planned}}
    log["samples"] = [{"id": k, "scores": each, "unknown": 1} for k, each in enumerate(scores)]
    (folder / "log.json").write_text(json.dumps(log))
    return folder / "log.json"


def by_hand(log):
    """Return p, low, high and the contributions of samples to p, with pandas and numpy."""
    rows = [(s["id"], {"C": 1, "I": 0}[s["scores"]["match"]["value"]]) for s in log["samples"] if s.get("scores")]
    each = pd.DataFrame(rows, columns=["id", "right"]).groupby("id")["right"].agg(["sum", "count"])
    n, z = each["count"].sum(), norm.ppf(0.975)
    p, weight = each["sum"].sum() / n, each["count"] / n
    k = 1 / (weight**2).sum()
    contrib = (each["sum"] - p * each["count"]) / n
    square = (contrib * (1 - 1 / k) / (1 - weight)) ** 2
    size = np.clip(p * (1 - p) / (k / (k - 1) * square.sum()), k / 2, n)
    df = np.clip(2 * square.sum() ** 2 / (square**2).sum(), min(max(k / 2, 7), k - 1), k - 1)
    size = max(size * (z / t.ppf(0.975, df)) ** 2, min(size, k / 2))
    centre = (p + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * math.sqrt(p * (1 - p) / size + z**2 / (4 * size**2))
    return p, centre - half, centre + half, contrib


def test_rate_interval_and_paired_difference_of_a_real_log_are_those_computed_by_hand(capsys):
    result = se.measure_log(FILES)
    assert capsys.readouterr().out == "Logs of Inspect AI, version 2: 2.\n"
    rates = result[result["statistic"] == "rate"]
    (a, la, ha, ca), (b, lb, hb, cb) = map(by_hand, LOGS)
    np.testing.assert_allclose(rates[["estimate", "low", "high"]], [[a, la, ha], [b, lb, hb]])
    assert rates["n"].tolist() == [18, 17] and rates["clusters"].tolist() == [6, 6]
    r = (ca * cb).sum() / math.sqrt((ca**2).sum() * (cb**2).sum())
    r *= 1 - 3 / (17**2 / (5 * 3**2 + 2**2))  # shrunk, by Kish's number of the six samples
    low = a - b - math.sqrt((a - la) ** 2 - 2 * r * (a - la) * (hb - b) + (hb - b) ** 2)
    gap = se.compare(result).query("statistic == 'rate'").iloc[0]
    assert (gap["estimate"], gap["low"]) == pytest.approx((a - b, low)) and gap["p"] == gap["p_holm"] > 0.05
    found = result.set_index(["statistic", "condition"])[["estimate", "n"]]
    scores = [sample["scores"]["closeness"]["value"] for sample in LOGS[0]["samples"]]
    assert found.loc["mean_score"].iloc[0].tolist() == pytest.approx([np.nanmean(scores), 17])
    missing = found.loc["no_answer_rate"]["estimate"]  # NaN, and an error without scores
    assert missing.tolist() == pytest.approx([0, 1 / 18, 1 / 18, 1 / 18])


def test_letters_parts_missing_samples_and_other_values(tmp_path, capsys):
    values = ["C", "I", "P", "N"], [True, "No", "0.5", math.nan], [{"x": 1, "y": 5}] * 4, ["A", "B", 1, 0]
    file = written(tmp_path, status="error", **dict(zip("abcd", values, strict=True)))
    told = se.measure_log([file]).set_index(["condition", "statistic"])["estimate"]
    for scorer, mean, missing in (("a", 0.5, 0.25), ("b", 0.5, 0.25), ("c.x", 1, 0), ("c.y", 5, 0)):
        rows = told[f"scorer={scorer}"]
        assert (rows["rate" if mean == 1 else "mean_score"], rows["no_answer_rate"]) == (mean, missing)
    se.measure_log([written(tmp_path, planned=5, a=[1, 0]), FILES[0], FILES[0]])
    said = capsys.readouterr().out
    for sentence in ("left out: d.", "is 'error'; the 4 samples", "2 of 5 samples are in", "36 scores are in two logs"):
        assert sentence in said
    theirs, letters = FIXTURES / "theirs" / "predictions.json", written(tmp_path, a=["x"])
    for logs, sentence in ((theirs, "no log of Inspect AI"), (letters, "no numeric score"), (FILES, "no 'passage' in")):
        with pytest.raises(InputError, match=sentence):
            se.measure_log(logs, cluster="passage" * (logs is FILES))


def test_a_retry_counts_once_other_arguments_are_another_condition_and_a_log_without_scores_is_named(tmp_path, capsys):
    def log(name, of, samples=None, **about):
        made = of | {"eval": of["eval"] | about, "samples": samples or of["samples"]}
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
        return tmp_path / f"{name}.json"

    careful, hasty = LOGS
    failed = [careful["samples"][0] | {"scores": None, "uuid": "before"}, *careful["samples"][1:]]
    retried = [FILES[0], log("failed", careful, failed, created="2026-01-01T00:00:00+00:00")]
    pd.testing.assert_frame_equal(pd.DataFrame(se.measure_log(retried)), pd.DataFrame(se.measure_log(FILES[0])))
    shots = [log(k, of, task_args={"shots": k}) for k, of in enumerate(LOGS)]
    found = se.measure_log(shots)
    assert not len(se.compare(found)) and {c.split(";")[1] for c in found["condition"]} == {"shots=0", "shots=1"}
    capsys.readouterr()
    se.measure_log([FILES[0], log("none", hasty, [each | {"scores": None} for each in hasty["samples"]])])
    assert "none.json: none of its 18 samples has a score" in capsys.readouterr().out
    with pytest.raises(InputError, match="has no 'passage' in its metadata"):
        se.measure_log(
            log("null", careful, [each | {"metadata": {"passage": None}} for each in failed]), cluster="passage"
        )


def log_of(folder, name, values, **eval_fields):
    """Write a log of one score per sample, C or I; a sample whose value is None was invalidated by hand."""
    about = {"timestamp": "2026-01-02T00:00:00+00:00", "author": "me", "reason": "a broken tool"}
    samples = [
        {"id": k, "epoch": 1, "scores": {"s": {"value": value or "I"}}, "invalidation": None if value else about}
        for k, value in enumerate(values)
    ]
    made = {"version": 2, "status": "success", "invalidated": None in [*values], "samples": samples}
    made["eval"] = {"model": "m", "task": "t", "task_id": "T"} | eval_fields
    (folder / f"{name}.json").write_text(json.dumps(made))
    return folder / f"{name}.json"


def test_the_clusters_that_are_asked_for_count_before_those_that_a_log_says(tmp_path):
    path = log_of(tmp_path, "a", "CCIICI", metadata={"selfeval_cluster": "prompt_id"})
    log = json.loads(path.read_text())
    for number, sample in enumerate(log["samples"]):
        sample["metadata"] = {"prompt_id": number, "passage": number // 2}
    path.write_text(json.dumps(log))
    assert se.measure_log(path)["clusters"][0] == 6 and se.measure_log(path, cluster="passage")["clusters"][0] == 3


@pytest.mark.parametrize(("failed", "retried"), [
    ("2026-03-29T10:30:00+02:00", "2026-03-29T09:00:00+00:00"),
    ("2026-03-29T08:30:00.123456+00:00", "2026-03-29T09:00:00Z"),
    ("2026-11-01T01:59:00-04:00", "2026-11-01T01:01:00-05:00"),  # the end of summer time
    ("2026-03-29T09:00:00", "2026-03-29T09:30:00+00:00"),
])  # fmt: skip
def test_of_two_logs_the_later_moment_counts_whatever_the_offset(failed, retried, tmp_path):
    logs = log_of(tmp_path, "a", "III", created=failed), log_of(tmp_path, "b", "CCC", created=retried)
    for order in (logs, logs[::-1]):
        result = se.measure_log(order).set_index("statistic")["estimate"]
        assert result["rate"] == 1


def test_invalidated_samples_are_left_out_aloud_and_of_nothing_else_there_is_no_result(tmp_path, capsys):
    result = se.measure_log(log_of(tmp_path, "one", ["C", "I", None, "C", None])).set_index("statistic")
    assert result.loc["rate", ["estimate", "n"]].tolist() == [pytest.approx(2 / 3), 3]
    assert result.loc["no_answer_rate", "estimate"] == 0
    assert "Samples that are marked as invalidated are left out: 2." in capsys.readouterr().out
    first = log_of(tmp_path, "first", [None, "C", "C"], created="2026-01-01T00:00:00Z")
    again = log_of(tmp_path, "again", ["C", "C", "C"], created="2026-01-01T01:00:00Z")
    assert se.measure_log([first, again]).set_index("statistic").loc["rate", "n"] == 3
    assert "invalidated" not in capsys.readouterr().out, "the retry took its place"
    with pytest.raises(InputError, match=r"All samples in .* are marked as invalidated"):
        se.measure_log(log_of(tmp_path, "none", [None, None]))


@pytest.mark.parametrize("status", ["error", "cancelled", "started"])
def test_a_log_of_a_run_that_did_not_end_says_so(status, tmp_path, capsys):
    se.measure_log(written(tmp_path, status=status, a=[1, 0]))
    assert (
        f"log.json: the run's status is {status!r}; the 2 samples that it has are counted." in capsys.readouterr().out
    )


def test_an_eval_file_is_read_by_inspect_and_without_it_a_sentence_says_what_to_do(tmp_path, monkeypatch):
    from inspect_ai import log  # takes seconds

    file = tmp_path / "log.eval"
    log.write_eval_log(log.read_eval_log(str(FILES[1])), str(file))
    pd.testing.assert_frame_equal(pd.DataFrame(se.measure_log(tmp_path)), pd.DataFrame(se.measure_log(FILES[1])))
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(InputError, match=r"log.eval is read by the package inspect-ai, .* inspect log convert"):
        se.measure_log(file)


def test_two_results_of_logs_are_compared_at_their_level(tmp_path):
    widths = []
    for level in (0.95, 0.8):
        results = []
        for name, said in {"one": [1, 0, 1, 1, 0, 1], "two": [0, 0, 1, 0, 0, 1]}.items():
            (tmp_path / f"{name}{level}").mkdir()
            results.append(se.measure_log(written(tmp_path / f"{name}{level}", s=said), level=level))
        gap = se.compare(*results).query("statistic == 'rate'").iloc[0]
        widths.append(gap["high"] - gap["low"])
    assert widths[1] < widths[0]


@pytest.mark.parametrize(("of_second", "said"), [
    ({"task_args": {"shots": 1}}, "t: the first result has shots=0, the second shots=1; these are compared."),
    ({"task_args": {"shots": 0}}, "u is in one result alone and is left out."),
])  # fmt: skip
def test_what_two_results_of_logs_do_not_share_is_said(of_second, said, tmp_path, capsys):
    first = [log_of(tmp_path, "a", "CICI", task_args={"shots": 0}), log_of(tmp_path, "b", "CICC", task="u")]
    second = log_of(tmp_path, "c", "CCCI", **of_second)
    se.compare(se.measure_log(first), se.measure_log(second))
    assert said in capsys.readouterr().out


def test_the_command_prints_the_table_the_comparison_and_the_figure(tmp_path):
    said = CliRunner().invoke(main, ["measure", str(FILES[0].parent), "--out", str(tmp_path)])
    assert said.exit_code == 0 and "p_holm" in said.output and f"figure: {tmp_path}/inspect_log.png" in said.output
    assert f"outputs: {tmp_path}\n" in said.output
    assert len(se.compare(*se.read_results(tmp_path))) == 2 and "nothing to draw" not in said.output


@pytest.fixture(scope="module")
def results():
    answers = se.collect_predictions(se.generate_texts(["sim/good", "sim/chance", "sim/no-answer"], 6))
    verdicts = se.judge(se.converse("sim/talker", "sim/talker", turns=1), ["sim/juror-lenient", "sim/juror-stern"])
    identity = se.measure_identity(se.ask_identity("sim/identity-wavers", limit=3, turns=1), n_resamples=20)
    existence = se.measure_existence(se.ask_existence("sim/existence-knows", names=2, templates=1))
    found = {"answers": answers, "recognition": se.measure_recognition(answers), "identity": identity}
    return found | {"jury": se.measure_jury(verdicts), "existence": existence}


def test_logs_of_ours_are_predictions_again_to_the_digit_and_name_no_answer(results, tmp_path):
    for name in ("recognition", "answers", "recognition"):  # the second time over the first
        folder = se.save(results[name], tmp_path / name, form="inspect")
        again = se.measure_recognition(folder)
        for table, was in results["recognition"].tables.items():
            pd.testing.assert_frame_equal(again.tables[table], was, check_exact=True)
    files = [*folder.glob("*.json")]
    assert len(files) == 6 and set(se.measure_log(folder)["cluster_unit"]) == {"prompt"}
    samples = [sample for file in files for sample in json.loads(file.read_text())["samples"]]
    none = [score for s in samples for score in s["scores"].values() if score["value"] not in ("C", "I")]
    assert none and all(math.isnan(s["value"]) and s["metadata"]["status"] == "no_answer" for s in none)
    with pytest.raises(InputError, match="lacks the fields text_id, true_model"):
        se.measure_recognition(FILES[0])
    with pytest.raises(InputError, match="needs answers, replies or verdicts"):
        se.save(se.read_results("results/demo")[0], tmp_path, form="inspect")


def test_inspect_itself_reads_what_we_write_and_converts_it(results, tmp_path):
    from inspect_ai import log  # takes seconds

    for kind in ("answers", "recognition", "identity", "jury"):
        folder = se.save(results[kind], tmp_path / kind, form="inspect")
        for each in log.list_eval_logs(str(folder)):  # `inspect view` reads the head alone
            assert (
                len(log.read_eval_log(each).samples) == log.read_eval_log(each, header_only=True).results.total_samples
            )
    log.convert_eval_logs(str(tmp_path / "answers"), "eval", str(tmp_path / "eval"))
    again = se.measure_recognition(tmp_path / "eval")  # whose samples stand in another order
    pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(results["recognition"]), rtol=1e-9)


def test_what_inspect_itself_invalidates_is_left_out(tmp_path, capsys):
    from inspect_ai import log

    read = log.read_eval_log(str(FILES[0]))
    uuids = [sample.uuid for sample in read.samples[:2]]
    changed = log.invalidate_samples(read, uuids, log.ProvenanceData(author="me", reason="a broken tool"))
    before = se.measure_log(FILES[0]).set_index(["condition", "statistic"])["n"]
    for name in ("log.json", "log.eval"):
        log.write_eval_log(changed, str(tmp_path / name))
        after = se.measure_log(tmp_path / name).set_index(["condition", "statistic"])["n"]
        assert (before - after).max() == 2 and "invalidated are left out: 2." in capsys.readouterr().out


def test_tokens_stand_in_a_log_as_inspect_counts_them(tmp_path):
    from inspect_ai import log

    answers = se.collect_predictions(se.generate_texts(["sim/good", "sim/chance"], 2), "sim/good", tasks="binary_self")
    spent = [{"prompt": 10 + k, "completion": 1 + k} for k in range(len(answers))]
    folder = se.save(answers.assign(usage=spent), tmp_path, form="inspect")
    [file] = folder.glob("*.json")
    usage = [sample.output.usage for sample in log.read_eval_log(str(file)).samples]
    counted = [(each.input_tokens, each.output_tokens, each.total_tokens) for each in usage]
    assert sorted(counted) == [(10 + k, 1 + k, 11 + 2 * k) for k in range(len(answers))]


def test_statements_of_all_rounds_are_samples_of_their_own(tmp_path):
    talks = se.converse("sim/talker", "sim/talker", turns=1, people=1)
    verdicts = se.judge(talks, ["sim/juror-stern", "sim/juror-lenient"], "debate", rounds=2)
    se.save(verdicts, tmp_path, form="inspect")
    logs = [json.loads(file.read_text()) for file in tmp_path.rglob("*.json")]
    samples = [sample for log in logs for sample in log["samples"]]
    assert len(samples) == len(verdicts) and {sample["epoch"] for sample in samples} == {1}
    assert all(len({sample["id"] for sample in log["samples"]}) == len(log["samples"]) for log in logs)


def test_models_are_compared_over_the_samples_that_both_answered(tmp_path):
    """Both are right about the first six; the last four, which a alone answered, it has wrong."""
    for model, values in {"a": [1] * 6 + [0] * 4, "b": [1] * 6 + [None] * 4}.items():
        file = written(tmp_path, s=values)
        log = json.loads(file.read_text())
        log["eval"]["model"] = model
        for sample in log["samples"]:
            if sample["scores"]["s"]["value"] is None:
                sample["scores"] = {}
        (tmp_path / f"{model}.json").write_text(json.dumps(log))
        file.unlink()
    gap = se.compare(se.measure_log(tmp_path)).query("statistic == 'rate'").iloc[0]
    assert gap["estimate"] == 0 and gap["clusters"] == 6
