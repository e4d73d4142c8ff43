"""Reading and writing records: whole or not at all, foreign files, and one clear sentence for broken ones."""

import json

import pandas as pd
import pytest

from selfeval import records
from selfeval.errors import InputError
from selfeval.records import read_prompts

FOREIGN = {
    "text_id": 0, "text_preview": "Once", "true_model": "a/one", "true_model_display": "One",
    "evaluator_model": "a/two", "task_type": "exact_model", "predicted_model": "a/one", "predicted_self": False,
    "is_correct": True, "prompt_used": "Tell",
}  # fmt: skip


def write(path, *rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.fault("odd text")
def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    records.write_jsonl(path, [{"text": "é 😀 \ud800 \x00"}, {"text": "b"}])
    assert records.read_jsonl(path) == [{"text": "é 😀 \ud800 \x00"}, {"text": "b"}]
    with pytest.raises(TypeError):
        records.write_jsonl(path, [{"text": object()}])
    assert len(records.read_jsonl(path)) == 2 and [p.name for p in path.parent.iterdir()] == ["rows.jsonl"]


def test_the_sweep_is_told_what_was_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_WRITTEN", str(tmp_path / "written.txt"))
    records.write_jsonl(tmp_path / "a.jsonl", [{"a": 1}])
    records.write_csv(tmp_path / "b.csv", pd.DataFrame({"a": [1]}))
    assert (tmp_path / "written.txt").read_text().split() == [str(tmp_path / "a.jsonl"), str(tmp_path / "b.csv")]


@pytest.mark.parametrize(("content", "message"), [
    ('{"a": 1}\n{"a": \n', "line 2: not valid JSON"), ("", "holds no record"), ("[1, 2]", "not a record"),
    ("[{", "not valid JSON"), ("\n\n", "holds no record"), ("[" * 100_000, "not valid JSON"),
    ('{"a": ' * 100_000, "line 1: not valid JSON"),
])  # fmt: skip
def test_a_broken_file_is_named_with_its_line(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        records.read_jsonl(write(tmp_path / "x.jsonl", content))


def test_an_unreadable_file_is_named(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="cannot be read"):
        records.read_jsonl(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match=r"no corpus 'nowhere'.*known are .*sample"):
        records.read_texts("nowhere")
    with pytest.raises(InputError, match=r"no predictions at .*nowhere"):
        records.read_predictions("nowhere")
    with pytest.raises(InputError, match="a folder with `predictions_"):
        records.read_predictions(tmp_path)


def test_the_published_corpus_and_a_csv_of_ones_own_are_read(tmp_path):
    published = {"text": "Once upon", "model": "a/one", "model_display_name": "One", "prompt": "Tell", "word_count": 2}
    other = published | {"text": "Then", "model": "a/two", "model_display_name": "Two"}
    texts = records.read_texts(str(write(tmp_path / "texts.jsonl", published, other)))
    assert [t["author"] for t in texts] == ["a/one", "a/two"] and texts[0]["author_display"] == "One"
    assert texts[0]["prompt_id"] == texts[1]["prompt_id"] and texts[0]["text_id"] != texts[1]["text_id"]
    assert records.read_texts(str(tmp_path)) == texts
    pd.DataFrame({"author": ["human", "me"], "prompt": ["p", "q"], "text": ["a b", "NA"]}).to_csv(tmp_path / "my.csv")
    mine = records.read_texts(str(tmp_path / "my.csv"))
    assert [(t["author"], t["text"], t["words"]) for t in mine] == [("human", "a b", 2), ("me", "NA", 1)]


@pytest.mark.parametrize("row", [
    {"author": "a", "prompt": "p"}, {"author": "a", "prompt": "p", "text": " "}, {"prompt": "p", "text": "t"},
    {"author": "a", "prompt": None, "text": "t"}, {"author": "a", "prompt": " ", "text": "t"},
    {"author": 5, "prompt": "p", "text": "t"}, {"author": ["a"], "prompt": "p", "text": "t"},
    {"author": "a", "author_display": ["A"], "prompt": "p", "text": "t"}, {"author": "a", "prompt": ["p"], "text": "t"},
])  # fmt: skip
def test_a_text_that_lacks_something_is_named(tmp_path, row):
    with pytest.raises(InputError, match="record 1: a text needs"):
        records.read_texts(str(write(tmp_path / "texts.jsonl", row)))


@pytest.mark.parametrize(("field", "value"), [
    ("text_id", 1.5), ("text_id", "abc"), ("text_id", float("inf")), ("text_id", True), ("text_id", [1]),
    ("sample", "x"), ("sample", 0.5), ("sample", [1]), ("prompt_id", ["p"]), ("prompt_id", {"p": 1}),
])  # fmt: skip
def test_a_number_of_a_text_that_is_none_is_named(tmp_path, field, value):
    row = {"author": "a", "prompt": "p", "text": "t", field: value}
    with pytest.raises(InputError, match=rf"texts.jsonl, record 2: `{field}` must be a .*got "):
        records.read_texts(str(write(tmp_path / "texts.jsonl", {"author": "a", "prompt": "p", "text": "u"}, row)))


def test_numbers_of_texts_may_be_written_as_a_csv_with_gaps_has_them(tmp_path):
    rows = [{"author": "a", "prompt": "p", "text": f"t{i}", "text_id": i, "sample": i} for i in (1.0, "2", 3)]
    texts = records.read_texts(str(write(tmp_path / "texts.jsonl", *rows)))
    assert [(text["text_id"], text["sample"]) for text in texts] == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("read", [records.read_texts, records.read_predictions, records.data_path])
@pytest.mark.parametrize("name", [5, None, "", " ", "a\0", "~nouser/x", "x" * 300])
def test_what_no_file_is_called_is_one_sentence(read, name):
    with pytest.raises(InputError, match=r"must be named by a non-empty text, got|cannot be used: \w"):
        read(name)


def test_two_texts_with_one_id_are_refused_and_limit_counts_prompts(tmp_path):
    rows = [{"text_id": i, "author": "a", "prompt_id": f"p{i // 2}", "prompt": "p", "text": "t"} for i in range(6)]
    path = str(write(tmp_path / "texts.jsonl", *rows))
    assert [t["text_id"] for t in records.read_texts(path, limit=2)] == [0, 1, 2, 3]
    with pytest.raises(InputError, match="`limit` must be a number of prompts"):
        records.read_texts(path, limit=-1)
    with pytest.raises(InputError, match="`text_id` 3 twice"):
        records.read_texts(str(write(tmp_path / "twice.jsonl", *rows, rows[3])))


def test_predictions_made_elsewhere_are_read(tmp_path):
    one = write(tmp_path / "predictions_a.jsonl", FOREIGN)
    full = {("text_full" if k == "text_preview" else k): v for k, v in FOREIGN.items()} | {"returned_text": "One"}
    two = write(tmp_path / "predictions_b.jsonl", full | {"text_id": 1})
    frame = records.read_predictions([one, two])
    assert list(frame["text_preview"]) == ["Once", "Once"] and list(frame["text_id"]) == [0, 1]
    assert len(records.read_predictions(tmp_path)) == 2
    labelled = write(tmp_path / "labelled.jsonl", FOREIGN | {"predicted_model": "One"})
    assert list(records.read_predictions(labelled)["predicted_model"]) == ["a/one"]
    assert len(records.read_predictions([labelled, labelled])) == 1, "one file named twice"
    shown = {"is_correct", "true_model_display", "text_preview"}
    bare = records.read_predictions(write(tmp_path / "c.jsonl", {k: v for k, v in FOREIGN.items() if k not in shown}))
    assert bare["true_model_display"][0] == "a/one" and bare["is_correct"].isna().all()
    with pytest.raises(InputError, match="lacks the field true_model of a prediction record: it has text_id, "):
        records.read_predictions(write(tmp_path / "d.jsonl", {k: v for k, v in FOREIGN.items() if k != "true_model"}))


def test_a_label_of_two_authors_is_no_answer(tmp_path):
    other = FOREIGN | {"text_id": 1, "true_model": "b/one"}
    by_id = records.read_predictions(write(tmp_path / "ids.jsonl", FOREIGN, other))
    assert list(by_id["predicted_model"]) == ["a/one", "a/one"]
    with pytest.raises(InputError, match=r"labels.jsonl gives two authors the label 'One', which is an answer"):
        records.read_predictions(write(tmp_path / "labels.jsonl", FOREIGN, other | {"predicted_model": "One"}))


@pytest.mark.parametrize("field", ["true_model", "true_model_display", "predicted_model", "text_id", "prompt_used"])
def test_a_list_in_the_place_of_a_text_is_named_with_its_record(tmp_path, field):
    with pytest.raises(InputError, match=rf"x.jsonl, record 2: `{field}` must be no list or object, got \['a'\]"):
        records.read_predictions(write(tmp_path / "x.jsonl", FOREIGN, FOREIGN | {field: ["a"]}))


def test_a_table_of_predictions_is_that_of_its_rows_and_keeps_equal_values_once(tmp_path, monkeypatch):
    rows = [
        FOREIGN | {"text_id": i, "reply": ["a", "b", "['x']"][i % 3], "score": [0.5, None][i % 2]} for i in range(9)
    ]
    rows[2] |= {"candidates": ["x"], "usage": {"prompt": 1, "cached": True}}
    rows[3] |= {"candidates": ["x"], "usage": {"prompt": 1, "cached": 1}}
    rows[4]["late"] = None
    read = records.read_predictions(write(tmp_path / "rows.jsonl", *rows))
    pd.testing.assert_frame_equal(read, pd.DataFrame(rows))
    assert read["candidates"][2] is read["candidates"][3] and read["usage"][2]["cached"] is True
    assert type(read["reply"][2]) is str and read["usage"][3]["cached"] is not True
    monkeypatch.setattr(records, "REMEMBERED", 2)
    pd.testing.assert_frame_equal(records.read_predictions(tmp_path / "rows.jsonl"), pd.DataFrame(rows))


def test_one_json_list_is_read_like_lines(tmp_path):
    (tmp_path / "rows.json").write_text(f"\ufeff\n {json.dumps([FOREIGN, FOREIGN | {'text_id': 1}])}", encoding="utf-8")
    assert list(records.read_predictions(tmp_path / "rows.json")["text_id"]) == [0, 1]


@pytest.mark.parametrize(("lines", "message"), [
    (['{"prompt_id": "a", "prompt": "x"}', "{"], "line 2"), (['{"prompt_id": "a"}'], "record 1"), ([], "no record"),
    (["[" * 100_000], "line 1"), (['{"prompt_id": ["a"], "prompt": "x"}'], r"record 1: .* got \['a'\]"),
    (['{"prompt_id": "a", "prompt": "x"}'] * 2, "record 2: .*no other has, got 'a'"),
    (['{"prompt_id": "a", "prompt": " "}'], "record 1: .*non-empty"),
])  # fmt: skip
def test_writing_prompts_are_checked(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        read_prompts(write(tmp_path / "prompts.jsonl", *lines))
