"""Records: files whole or not at all, and files made elsewhere through the path of 03: what was planted is found."""

import json
import random

import pandas as pd
import pytest

import selfeval as se
from selfeval import stats
from selfeval.errors import InputError
from selfeval.records import tables as record_files
from selfeval.records.foreign import read_predictions
from selfeval.records.tables import read_jsonl
from selfeval.records.texts import chats, prompt_id_of, read_prompts, read_texts

AUTHORS = {"lab/amber": "Amber One", "lab/basalt": "Basalt Two", "lab/cobalt": "Cobalt Three"}


def write(path, *rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


# files and texts ------------------------------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    record_files.write_jsonl(path, [{"text": "é 😀 \ud800 \x00"}, {"text": "b"}])
    assert read_jsonl(path) == [{"text": "é 😀 \ud800 \x00"}, {"text": "b"}]
    with pytest.raises(TypeError):
        record_files.write_jsonl(path, [{"text": object()}])
    assert len(read_jsonl(path)) == 2 and [p.name for p in path.parent.iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize(("content", "message"), [
    ('{"a": 1}\n{"a": \n', "line 2: not valid JSON"), ("", "holds no record"), ("[1, 2]", "not a record"),
    ("[" * 100_000, "line 1: not valid JSON"),
])  # fmt: skip
def test_a_broken_file_is_named_with_its_line(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read_jsonl(write(tmp_path / "x.jsonl", content))


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="cannot be read"):
        read_jsonl(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match=r"no file or corpus 'nowhere'.*corpora are .*sample"):
        read_texts("nowhere")
    with pytest.raises(InputError, match=r"holds no `predictions_\*.jsonl`"):
        read_predictions(tmp_path)
    with pytest.raises(InputError, match="must be named by a non-empty text, got ' '"):
        read_texts(" ")


def test_chats_between_people_have_two_speakers_in_turn_and_no_turn_that_is_long_or_blank():
    for chat in chats():
        turns = chat["turns"]
        assert [turn["speaker"] for turn in turns] == ["AB"[n % 2] for n in range(len(turns))] and len(turns) > 1
        assert all(0 < len(turn["text"]) <= 1000 for turn in turns)


def test_the_published_corpus_and_a_csv_of_ones_own_are_read(tmp_path):
    published = {"text": "Once upon", "model": "a/one", "model_display_name": "One", "prompt": "Tell", "word_count": 2}
    other = published | {"text": "Then", "model": "a/two", "model_display_name": "Two", "sample": "2"}
    texts = read_texts(str(write(tmp_path / "texts.jsonl", published, other)))
    assert [(t["author"], t["sample"]) for t in texts] == [("a/one", 0), ("a/two", 2)]
    assert texts[0]["prompt_id"] == texts[1]["prompt_id"] and texts[0]["text_id"] != texts[1]["text_id"]
    assert read_texts(str(tmp_path)) == texts and texts[0]["author_display"] == "One"
    frame = pd.DataFrame({"author": ["human", "me"], "prompt": ["p", "q"], "text": ["a b", "NA"]})
    frame.to_csv(tmp_path / "my.csv")
    frame.to_excel(tmp_path / "my.xlsx")
    for mine in map(read_texts, (tmp_path / "my.csv", tmp_path / "my.xlsx", frame, frame.to_dict("records"))):
        assert [(t["author"], t["text"], t["words"]) for t in mine] == [("human", "a b", 2), ("me", "NA", 1)]


def test_a_file_beside_you_is_read_first_and_which_one_is_printed(tmp_path, monkeypatch, capsys):
    texts = pd.DataFrame({"author": ["a"], "prompt": ["p"], "text": ["t"]})
    monkeypatch.chdir(tmp_path)
    texts.to_csv("my.csv")
    pd.DataFrame({"prompt": ["p", "q"], "words": [30, None]}).to_csv("p.csv")
    assert read_texts("./my.csv")[0]["text"] == "t" and capsys.readouterr().out == ""
    assert [(p["prompt_id"], p["words"]) for p in read_prompts("p.csv", 1)] == [(prompt_id_of("p"), 30)]
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "my own"}')
    assert [row["prompt"] for row in read_prompts("prompts.jsonl")] == ["my own"]
    assert f"is read from {tmp_path / 'prompts.jsonl'}; {se.DATA / 'prompts.jsonl'} has" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"no file or corpus 'mi.csv', neither in .*did you mean 'my.csv'\?"):
        read_texts("mi.csv")


@pytest.mark.parametrize(("change", "message"), [
    ({"text": " "}, "`text` is empty"), ({"author": ["a"]}, "`author` is .*write a text"), ({"prompt": None}, "empty"),
    ({"text_id": 1.5}, "text_id: .* valid integer.* got 1.5"), ({"sample": "x"}, "sample: .* valid integer"),
    ({"prompt_id": ["p"]}, "`prompt_id` must be a text or a number"),
])  # fmt: skip
def test_a_text_that_lacks_something_is_named(tmp_path, change, message):
    row = {"author": "a", "prompt": "p", "text": "t"}
    with pytest.raises(InputError, match=f"texts.jsonl, record 2: .*{message}"):
        read_texts(str(write(tmp_path / "texts.jsonl", row, row | {"text": "u"} | change)))
    with pytest.raises(InputError, match=r"record 1: there is no `author` or `model`: wanted .* and there are who"):
        read_texts([{"who": "a", "text": "b"}])


def test_two_texts_with_one_id_are_refused_and_limit_counts_prompts(tmp_path):
    rows = [{"text_id": i, "author": "a", "prompt_id": f"p{i // 2}", "prompt": "p", "text": "t"} for i in range(6)]
    path = str(write(tmp_path / "texts.jsonl", *rows))
    assert [t["text_id"] for t in read_texts(path, limit=2)] == [0, 1, 2, 3]
    with pytest.raises(InputError, match="`limit` must be a whole number of at least 0, got -1"):
        read_texts(path, limit=-1)
    with pytest.raises(InputError, match="record 7: the text 't' has the same `text_id` as record 4"):
        read_texts(str(write(tmp_path / "twice.jsonl", *rows, rows[3])))


@pytest.mark.parametrize(("lines", "message"), [
    (['{"prompt_id": ["a"], "prompt": "x"}'], r"record 1: .* got \['a'\]"),
    (['{"prompt": "x", "words": 40.5}'], "record 1: .* valid integer.* got 40.5"),
    (['{"prompt_id": "a", "prompt": "x"}'] * 2, "record 2: the prompt 'x' has the same `prompt_id` as record 1"),
])  # fmt: skip
def test_writing_prompts_are_checked(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        read_prompts(write(tmp_path / "prompts.jsonl", *lines))


def test_the_prompts_of_the_registered_study_are_120_and_none_of_the_packaged_ones():
    fresh, packaged = (read_prompts(record_files.data_path(f"prompts{which}.jsonl")) for which in ("-confirm", ""))
    assert len(fresh) == 120
    for field in ("prompt_id", "topic", "prompt"):
        values = {row[field] for row in fresh}
        assert len(values) == 120 and not values & {row[field] for row in packaged}


# forms of files -------------------------------------------------------------------------------------------------------

TEXTS = [{"author": a, "prompt": f"p{k}", "text": f"Text {k} of {a}, so; {k},5"} for k in range(3) for a in ("me", "é")]


def as_csv(**how):
    return lambda frame, path: frame.to_csv(path, index=False, **how)


def as_json(made, **how):
    return lambda frame, path: path.write_text(json.dumps(made(frame.to_dict("records")), indent=2), **how)


def with_lines(before="", after=""):
    return lambda frame, path: path.write_text(before + frame.to_csv(index=False) + after, encoding="utf-8")


FORMS = {  # name of the file: how somebody's program writes it
    "plain.csv": as_csv(), "excel.csv": as_csv(encoding="utf-8-sig"), "packed.csv.gz": as_csv(),
    "packed.csv.xz": as_csv(), "commas-below.csv": with_lines(after=",,\n ,,\n"),
    "index.csv": lambda frame, path: frame.to_csv(path), "rows.xlsx": lambda frame, path: frame.to_excel(path),
    "packed.jsonl.gz": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "list.json": as_json(lambda rows: rows),
}  # fmt: skip
OTHER_FORMS = {  # what is refused: the sentence says what is there and what is read
    "continental.csv": (as_csv(sep=";"), "has one column, 'author;prompt;text'"),
    "tabs.csv": (as_csv(sep="\t"), "has one column"), "tabs.tsv": (as_csv(sep="\t"), "not valid JSON"),
    "unicode.csv": (as_csv(encoding="utf-16"), "cannot be read"), "odd.xls": (as_csv(), "not valid JSON"),
    "under-data.json": (as_json(lambda rows: {"data": rows}), "there are data"),
    "columns.json": (lambda frame, path: frame.to_json(path), "`author` is {'0': 'me'"),
    "sheets.xlsx": (None, "has the sheets Sheet1, Sheet2"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_table_is_read_in_the_forms_that_programs_write(name, tmp_path):
    FORMS[name](pd.DataFrame(TEXTS), tmp_path / name)
    found = read_texts(tmp_path / name)
    assert [{field: text[field] for field in TEXTS[0]} for text in found] == TEXTS


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_a_table_in_another_form_is_refused_in_a_sentence(name, tmp_path):
    written, message = OTHER_FORMS[name]
    if written:
        written(pd.DataFrame(TEXTS), tmp_path / name)
    else:
        with pd.ExcelWriter(tmp_path / name) as book:
            for sheet in ("Sheet1", "Sheet2"):
                pd.DataFrame(TEXTS).to_excel(book, sheet_name=sheet)
    with pytest.raises(InputError, match=message) as caught:
        read_texts(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_prompts_that_are_numbers_with_a_point_or_with_zeros_in_front_stay_apart(tmp_path):
    rows = [{"prompt_id": k, "author": "a", "prompt": f"p{k}", "text": f"t{k}"} for k in ("1.1", "1.10", "7", "07")]
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    assert [text["prompt_id"] for text in read_texts(tmp_path / "t.csv")] == ["1.1", "1.10", "7", "07"]


@pytest.mark.parametrize(("name", "content", "message"), [
    ("x.zip", b"PK", "not valid JSON"), ("x.csv.gz", b"no gzip", "cannot be read"),
    ("x.jsonl.gz", b"no gzip", "cannot be read"), ("x.jsonl.gz", b"\x1f\x8b\x08\x00", "cannot be read"),
    ("x.jsonl.xz", b"no xz", "cannot be read"), ("x.csv", b"author,prompt,text\n,,\n", "one at least"),
    ("x.csv", "author,prompt,text\né,p,t".encode("cp1252"), "read other files with pandas"),
])  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_sentence(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_texts(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_names_and_ids_are_read_without_blanks_and_two_spellings_of_an_author_are_refused():
    rows = [{" author": f"{a} ", "prompt": "p ", "prompt_id": " q", "text ": f"{a}."} for a in ("Ann", "bob")]
    found = read_texts(rows)
    assert [(t["author"], t["prompt_id"], t["text"]) for t in found] == [("Ann", "q", "Ann."), ("bob", "q", "bob.")]
    for first, second in (("Ann", "ann"), ("a\u200bnn", "ann"), ("GPT 4", "gpt-4"), ("ann", "ａｎｎ")):
        two = [{"author": a, "prompt": f"p{k}", "text": f"t{k}"} for k, a in enumerate((first, second))]
        with pytest.raises(InputError, match=r"spell one author in two ways, .*; rename one"):
            read_texts(two)


def test_a_text_of_two_authors_is_said(capsys):
    read_texts([{"author": a, "prompt": "p", "text": t} for a, t in (("a", "Same."), ("b", "Same. "), ("b", "Other."))])
    assert (
        "1 text of two authors each in the same words (the first, 'Same.', of 'a' and 'b')" in capsys.readouterr().out
    )


@pytest.mark.parametrize("given", [
    ["a b", "c d"], pd.Series(["a b", "c d"]), pd.DataFrame({"Prompt": ["a b", "c d"]}),
    [{"prompt_id": " one", "prompt": "a b"}, {"prompt": "c d"}],
], ids=lambda given: type(given).__name__)  # fmt: skip
def test_prompts_may_be_texts_in_any_list(given):
    found = read_prompts(given)
    assert [row["prompt"] for row in found] == ["a b", "c d"]
    assert found[0]["prompt_id"] in ("one", prompt_id_of("a b "))


def test_who_wrote_a_text_is_its_author_and_without_one_its_model():
    rows = [{"author": "ann", "model": "m"}, {"author": None, "model": "m"}, {"model": "m"}]
    texts = read_texts([row | {"prompt": "p", "text": f"t{n}"} for n, row in enumerate(rows)])
    assert [text["author"] for text in texts] == ["ann", "m", "m"]


# predictions made elsewhere -------------------------------------------------------------------------------------------


def exact(n_prompts=60, seed=0, names=None, **more):
    """Make records of the exact task: an evaluator names itself on .7 of its own and .3 of others' texts."""
    draw, names, rows = random.Random(seed), names or {a: a for a in AUTHORS}, []
    for prompt in range(n_prompts):
        for k, author in enumerate(AUTHORS):
            for evaluator in AUTHORS:
                claims = draw.random() < (0.7 if author == evaluator else 0.3)
                named = evaluator if claims else draw.choice([a for a in AUTHORS if a != evaluator])
                rows.append({"text_id": prompt * 3 + k, "true_model": author, "true_model_display": AUTHORS[author],
                             "evaluator_model": evaluator, "task_type": "exact_model", "predicted_model": names[named],
                             "prompt_used": f"Write about topic {prompt}.", "text_preview": f"{author} on {prompt}",
                             "returned_text": f"It reads like {AUTHORS[named]}."} | more)  # fmt: skip
    return rows


@pytest.fixture
def analysed(tmp_path, capsys):
    """The way of 03, from rows or what names files to (records, changes, lines printed, default rows)."""

    def analyse(given, columns=None, reread="auto", authors=None):
        rows = isinstance(given, list) and isinstance(given[0], dict) and "prompt_used" in given[0]
        source = write(tmp_path / "theirs.jsonl", *given) if rows else given
        found = se.measure_recognition(source, n_resamples=1, columns=columns, reread=reread, authors=authors)
        return found.records, found.tables["changes"], capsys.readouterr().out.splitlines(), found

    return analyse


def test_a_folder_a_list_of_files_and_one_json_list_are_read_and_equal_values_kept_once(tmp_path):
    rows = [row | {"usage": {"cached": i % 2 == 0}, "evaluation_prompt": "?"} for i, row in enumerate(exact(2))]
    del rows[0]["true_model_display"]
    full = [{("text_full" if k == "text_preview" else k): v for k, v in row.items()} for row in rows]
    write(tmp_path / "predictions_a.jsonl", *rows[:9])
    (tmp_path / "predictions_b.jsonl").write_text(f"\ufeff\n{json.dumps(full[9:])}", encoding="utf-8")
    frame = read_predictions(tmp_path)
    assert frame["text_id"].tolist() == [row["text_id"] for row in rows] and frame["is_correct"].isna().all()
    assert frame["text_preview"].tolist() == [row["text_preview"] for row in rows]
    assert frame["reply"].tolist() == [row["returned_text"] for row in rows] and "evaluation_prompt" not in frame
    assert frame["true_model_display"][0] == "lab/amber" and frame["usage"][0] is frame["usage"][2]
    both = [tmp_path / "predictions_a.jsonl", tmp_path / "predictions_b.jsonl", tmp_path / "predictions_a.jsonl"]
    pd.testing.assert_frame_equal(read_predictions(both), frame)


def test_a_resumed_run_counts_its_records_once(analysed):
    rows = exact()
    once = analysed(rows)
    found, _, lines, table = analysed([row | {"usage": {"prompt": 9}} for row in rows[:200]] + rows)
    assert [*found.index] == [*range(len(rows))]
    assert lines == ["200 records repeat others in question and answer, as after a resumed run, and count once."]
    pd.testing.assert_frame_equal(table, once[3])


def test_ids_that_begin_anew_for_every_author_name_different_texts(analysed):
    found = analysed([row | {"text_id": row["text_id"] // 3} for row in exact()])
    assert len(found[0]) == len(exact()) and not found[2]
    pd.testing.assert_frame_equal(found[3], analysed(exact())[3])


def test_display_names_of_the_file_are_names(analysed):
    rows = [row | {"evaluator_model": AUTHORS[row["evaluator_model"]]} for row in exact(names=AUTHORS)]
    found, changes, lines, _ = analysed([row | {"candidates": list(AUTHORS.values())} for row in rows])
    assert {*found["evaluator_model"]} == {*AUTHORS} == {*found["predicted_model"]} and not found["unverified"].any()
    assert lines[0] == "The evaluator 'Amber One' is read as the author 'lab/amber'." and len(lines) == 3
    assert changes["same"].sum() == len(rows)
    two = [row | {"true_model_display": "Amber One"} if row["true_model"] == "lab/basalt" else row for row in rows]
    with pytest.raises(InputError, match="The records call two authors 'Amber One'; give answers and evaluators by id"):
        analysed(two)


def test_a_reply_may_be_a_list_of_blocks(analysed):
    think = {"type": "thinking", "thinking": "Amber One? Basalt Two?"}
    rows = [row | {"returned_text": [think, {"type": "text", "text": row["returned_text"]}], "predicted_model": None}
            for row in exact()]  # fmt: skip
    found, changes, _, _ = analysed(rows)
    assert changes["added"].sum() == len(rows)
    assert found["predicted_model"].tolist() == [row["predicted_model"] for row in exact()]


# answers on record and raw replies ------------------------------------------------------------------------------------


def test_replies_that_were_cut_off_when_stored_do_not_destroy_the_answers(analysed):
    cut = "The tone is warm, the sentences are short, and the"
    rows = [row | {"returned_text": cut} if i // 3 % 3 else row for i, row in enumerate(exact())]
    found, changes, lines, _ = analysed(rows)
    assert set(changes["answers"]) == {"as recorded"}
    assert found["predicted_model"].tolist() == [row["predicted_model"] for row in rows]
    assert len(lines) == 3 and "(67%) are not in the raw replies" in lines[0] and "reread: yes" in lines[0]
    assert found.groupby("evaluator_model")["unverified"].mean().round(3).tolist() == [0.667] * 3
    found, _, lines, _ = analysed(rows, reread="yes")
    assert found["predicted_model"].isna().sum() == 360 and "They are taken back" in lines[0]
    assert not found["unverified"].any()


def filled_in(share, n=100):
    """Make records of which a share has a reply without an answer, or an error, and a name filled in."""
    rows = [row | {"text_id": i} for i, row in enumerate(exact(60)) if row["evaluator_model"] == "lab/amber"][:n]
    return [row | {"returned_text": ["I cannot know.", "ERROR: 429"][i % 2]} if i < share * n else row
            for i, row in enumerate(rows)]  # fmt: skip


def test_names_filled_in_are_taken_back_and_those_beside_an_error_always(analysed):
    found, changes, lines, _ = analysed(filled_in(0.1))
    assert changes[["removed", "answers"]].iloc[0].tolist() == [10, "as read"]
    assert [line.partition(";")[0] for line in lines] == ["Replies without an answer: 'I cannot know.' (5 times)"]
    assert found["predicted_model"].isna().sum() == 10
    found, changes, lines, _ = analysed(filled_in(0.6))
    assert changes[["removed", "answers"]].iloc[0].tolist() == [60, "as recorded"]
    assert "60 of 100 answers on record (60%)" in lines[0]
    assert found["predicted_model"].isna().sum() == 30 and (found["status"] == "error").sum() == 30
    assert found["unverified"].sum() == 30
    kept = analysed(filled_in(0.6), reread="no")[0]
    assert kept["predicted_model"].notna().all() and set(kept["status"]) == {"ok"} and kept["unverified"].sum() == 60
    with pytest.raises(InputError, match="`reread` must be one of auto, yes, no, got 'maybe'"):
        analysed(filled_in(0.6), reread="maybe")


def test_names_filled_in_beside_errors_do_not_count_against_the_replies(analysed):
    found, changes, _, _ = analysed(filled_in(0.3))  # 15 of the 85 that are no error
    assert changes[["removed", "answers"]].iloc[0].tolist() == [30, "as read"]
    assert found["predicted_model"].isna().sum() == 30


@pytest.mark.parametrize(("share", "is_told"), [(0.2, False), (0.6, True)])
def test_answers_that_are_others_in_the_replies_are_told_where_they_are_many(share, is_told, analysed):
    rows = filled_in(0)
    authors = sorted({row["true_model"] for row in rows})
    for row in rows[: int(share * len(rows))]:
        row["returned_text"] = next(name for name in authors if name != row["predicted_model"])
    _, changes, lines, _ = analysed(rows)
    number = int(share * len(rows))
    assert changes[["changed", "removed"]].iloc[0].tolist() == [number, 0]
    assert any(f"{number} of 100 answers on record" in line for line in lines) is is_told


def test_one_evaluator_that_cannot_be_read_changes_nothing_for_the_others(analysed):
    rows = [row | {"returned_text": "cut"} if row["evaluator_model"] == "lab/basalt" else row for row in exact(20)]
    rows[0] |= {"returned_text": "I cannot know."}
    rows[3] |= {"predicted_model": "lab/dolomite", "returned_text": "lab/dolomite", "status": "success"}
    found, changes, _, _ = analysed(rows, authors={"lab/dolomite": None})
    assert changes["answers"].tolist() == ["as read", "as recorded", "as read"]
    assert changes["removed"].tolist() == [1, 60, 0] and found["predicted_model"][3] == "lab/dolomite"


def test_answers_without_a_reply_are_unverified_and_what_follows_from_them_is_computed(analysed):
    shown = ("returned_text", "true_model_display", "text_preview")
    rows = [{k: v for k, v in row.items() if k not in shown} for row in exact(20)]
    found, _, _, _ = analysed(rows)
    assert found.groupby("evaluator_model")["unverified"].mean().round(3).tolist() == [1.0] * 3
    assert found["is_correct"].tolist() == [row["predicted_model"] == row["true_model"] for row in rows]
    assert found["predicted_self"].tolist() == [row["predicted_model"] == row["evaluator_model"] for row in rows]


# conditions, headings, sentences --------------------------------------------------------------------------------------


def test_what_is_said_of_a_whole_file_is_part_of_its_condition(tmp_path, analysed):
    one = str(write(tmp_path / "with.jsonl", *exact(seed=1)))
    two = str(write(tmp_path / "without.jsonl", *exact(seed=2, condition={"told": True})))
    found, _, _, table = analysed([{one: {"hints": True, "told": True}}, {two: {"hints": False}}])
    assert len(found) == 1080 and set(table["condition"]) == {"hints=true;told=true", "hints=false;told=true"}
    contrasts = stats.condition_contrasts(found)
    assert set(contrasts["field"]) == {"hints"} and set(contrasts["evaluator"]) == set(AUTHORS)
    with pytest.raises(InputError, match="a mapping such as hints: true, got 'hints'"):
        analysed([{one: "hints"}])


def test_a_table_with_other_headings_is_read_without_a_script(tmp_path, analysed):
    rows = pd.DataFrame(exact()).drop(columns=["task_type", "text_preview", "true_model_display", "returned_text"])
    rows["condition"] = (rows["text_id"] % 2 == 0).map({True: "hinted=true", False: "hinted=false"})
    names = {"source": "true_model", "judge": "evaluator_model", "guess": "predicted_model", "topic": "prompt_used",
             "item": "text_id"}  # fmt: skip
    file = str(tmp_path / "theirs.csv")
    rows.rename(columns={ours: theirs for theirs, ours in names.items()}).to_csv(file, index=False)
    given = {file: {"task_type": "exact_model"}}
    assert analysed(given, names)[0]["predicted_model"].tolist() == rows["predicted_model"].tolist()
    assert set(analysed(given, names)[3]["condition"]) == {"hinted=true", "hinted=false"}
    missing = "text_id, true_model, task_type, prompt_used .*it has item, source.*data/README.md"
    with pytest.raises(InputError, match=f"lacks the fields {missing}"):
        analysed(file)
    for columns, message in (
        (names | {"nobody": "sample"}, "`columns` names 'nobody', a field that no file"),
        (names | {"guess": "answer"}, "`columns` must be one of text_id, .*got 'answer'"),
        (names | {"item": ["text_id", "who"]}, "`columns` must be one of"), (["a"], "`columns` must be a mapping"),
        (names | {"condition": "text_id"}, "gives `text_id` twice"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            analysed(given, columns)


PAIR = {
    "text_id": "a1", "other_text_id": "b1", "true_model": "lab/amber", "other_model": "lab/basalt",
    "evaluator_model": "lab/amber", "task_type": "pairwise_self", "position": "A", "prompt_used": "Write.",
    "predicted_self": True, "reply": "Response A",
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [
    ({"true_model": None}, "`true_model` is null, and must be a non-empty text"), ({"text_id": None}, "`text_id` is n"),
    ({"true_model": ["a"]}, "`true_model` must be no list or object"), ({"task_type": "guess"}, "`task_type` is 'gues"),
    ({"position": None}, "`position` is null, and must say where the pair's own text stood, as 1 or 2, A or B"),
    ({"position": "C"}, "`position` is 'C'"), ({"other_model": None}, "`other_model` is null"),
    ({"predicted_self": "perhaps"}, "`predicted_self` is 'perhaps'"), ({"score": 85}, "`score` is 85.*from 0 to 1"),
    ({"true_model": "lab/cobalt", "other_model": "lab/amber"}, "the evaluator 'lab/amber' wrote the pair's other text"),
    ({"other_model": "lab/amber"}, "the evaluator 'lab/amber' wrote the pair's .*both"),
    ({"task_type": "lineup", "position": "last"}, "`position` is 'last', and must be the text's place in the lineup"),
])  # fmt: skip
def test_what_is_missing_or_wrong_is_one_sentence_with_file_record_and_rule(change, message, analysed):
    with pytest.raises(InputError, match=rf"theirs.jsonl, record 2: {message}"):
        analysed([PAIR, PAIR | change])


@pytest.mark.parametrize(("field", "task", "rule"), [
    ("other_model", "pairwise_self", "must name the author of the pair's other text"),
    ("position", "pairwise_self", "must say where the pair's own text stood"),
    ("position", "lineup", "must be the text's place in the lineup"),
])  # fmt: skip
def test_a_column_that_a_task_cannot_do_without_is_named_where_it_is_missing(field, task, rule, analysed):
    rows = [{**PAIR, "task_type": task, "text_id": f"a{n}", "candidates": ["lab/amber"]} for n in range(2)]
    for row in rows:
        del row[field]
    with pytest.raises(InputError, match=f"theirs.jsonl lacks the field {field}: it {rule}"):
        analysed(rows)
