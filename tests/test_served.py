"""Who served a model and what was asked again, as self-recognition shows it: tables, figures, files, the dry run."""

import pandas as pd
import pytest
from sweep_files import write
from written_files import run_notebook

from selfeval import figures, stats, sweep
from selfeval.errors import ProviderError
from selfeval.figures import paper, results, tables
from selfeval.stats import serving

ROUTED = "several_endpoints"


def records(prompts=30, task="exact_model", condition="told=true"):
    """Make answers of the evaluators a and b about texts of a and b, each naming a every time."""
    rows = []
    for prompt in range(prompts):
        for author in "ab":
            for evaluator in "ab":
                own = evaluator == "a"
                rows.append(
                    {"text_id": 2 * prompt + (author == "b"), "true_model": author, "evaluator_model": evaluator,
                     "task_type": task, "predicted_model": "a", "predicted_self": own, "is_correct": author == "a",
                     "prompt_id": str(prompt), "condition": condition, "candidates": ["a", "b"], "status": "ok",
                     "served_model": "one", "served_by": None, "text_served_model": "one", "text_served_by": None,
                     "asked_again": None}
                )  # fmt: skip
    return pd.DataFrame(rows)


def routed():
    """Return records whose evaluator b was served by two upstreams in turn."""
    frame = records()
    of_b = frame["evaluator_model"] == "b"
    return frame.assign(served_by=frame["text_id"].mod(2).map({0: "East", 1: "West"}).where(of_b))


def asked(share, which="b"):
    """Return records in which an evaluator was asked again for a share of its questions."""
    frame = records(50)
    rows = frame.index[frame["evaluator_model"] == which][: round(share * 100)]
    frame.loc[rows, "asked_again"] = pd.Series([["empty"]] * len(rows), rows)
    return frame


def test_a_model_that_two_upstreams_served_is_found_as_evaluator_and_author():
    assert serving.of_predictions(routed()) == {"b": {"one via East": 30, "one via West": 30}}
    frame = records()
    assert serving.of_predictions(frame) == {}
    frame["text_served_model"] = frame["true_model"].map({"a": "one", "b": "two"})
    assert serving.of_predictions(frame) == {"b": {"one": 60, "two": 30}}  # each text once, and its answers


def test_replies_that_do_not_say_who_served_them_show_nothing():
    frame = routed()
    frame.loc[frame["served_by"] == "West", "served_by"] = None  # kept by an older version
    assert serving.of_predictions(frame) == {}
    old = frame.drop(columns=["served_model", "served_by", "text_served_model", "text_served_by", "asked_again"])
    assert serving.of_predictions(old) == {} and "asked again" not in tables.overview(old)


def test_the_note_is_on_every_row_of_such_a_model_and_on_no_other():
    frame = pd.concat([routed(), records(condition="told=false")], ignore_index=True)
    for rows in (stats.recognition_table(frame, n_resamples=1), stats.condition_contrasts(frame)):
        of_b = rows["evaluator"].eq("b") | rows.get("author", rows["evaluator"]).eq("b")
        assert of_b.any() and not of_b.all()
        assert rows["note"].str.contains(ROUTED).tolist() == of_b.tolist()


def test_the_mark_is_in_tables_figures_latex_and_the_set_of_a_paper(tmp_path):
    frame = routed()
    several = serving.of_predictions(frame)
    display = serving.marked({"b": "Bert"}, several)
    table = stats.recognition_table(frame, n_resamples=1)
    summary = tables.summary(table, ["discrimination"], display)
    assert summary["evaluator"].tolist() == ["a", "Bert ‡"]
    tex = figures.save_table(summary, tmp_path, "t", notes=serving.sentences(display, several))[1].read_text()
    assert "Bert \\ddag{} & " in tex and "\\item \\ddag{} Bert was served by 2 endpoints: one via East (30" in tex
    found = {"recognition": table, "counts": stats.confusion(frame), "roc": stats.roc_points(frame)}
    found["contrasts"] = stats.condition_contrasts(frame)
    drawn = figures.draw("recognition", found, display)
    assert "Bert ‡" in [label.get_text() for label in drawn["forest_exact_model"].axes[0].get_yticklabels()]
    results.save(tmp_path, "recognition", frame, found, {}, {}, display)
    [one] = results.find(str(tmp_path))
    assert "Bert ‡ is b (answered by one via East, one via West)" in paper.notes(one)[0]
    assert any("‡ Several endpoints served this model" in note for note in paper.notes(one))


def test_the_overview_has_the_share_asked_again():
    assert tables.overview(asked(0.1)).set_index("evaluator")["asked again"].to_dict() == {"a": 0, "b": 0.1}


def test_authors_that_write_nothing_stop_01_with_a_sentence_and_again_helps(tmp_path, server, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    said = [""]
    server(reply=lambda body: said[0])
    asked = {"models": ["openai:m"], "limit": 2, "corpus": str(tmp_path / "corpus")}
    with pytest.raises(
        ProviderError, match=r"^No author wrote a text. openai:m .* 2 of its requests \(empty\): `again"
    ):
        run_notebook("01_generate_texts", **asked)
    said[0] = "A text."
    printed = run_notebook("01_generate_texts", **asked, again="empty")
    assert "2 of them asked again" in printed and "no text: 0 of 2" in printed


def test_a_dry_run_names_models_that_openrouter_may_have_served_by_anybody(tmp_path, registry, monkeypatch, capsys):
    pins = {"free": "{}", "one": "{only: [x]}", "two": "{only: [x, y]}", "first": "{order: [x]}"}
    lines = [f"{{id: r/{name}, display: {name}, parameters: {{provider: {pin}}}}}" for name, pin in pins.items()]
    registry("\n  - ".join(["models:", *lines]))
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    parameters = {"models": [f"r/{name}" for name in pins], "limit": 1, "corpus": str(tmp_path / "corpus")}
    path = write(tmp_path, {"notebook": "01_generate_texts", "parameters": parameters})
    assert sweep.run_file(path, 1, tmp_path / "out", "forked", dry_run=True) == 0
    assert "OpenRouter may have r/first, r/free, r/two served by any endpoint" in capsys.readouterr().out
