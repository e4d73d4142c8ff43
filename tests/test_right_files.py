"""Prediction files made elsewhere, through the path of 03: what was planted is found, or one sentence says why not."""

import json
import random

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest

from selfeval import ROOT, stats
from selfeval.errors import InputError
from selfeval.figures import tables
from selfeval.recognition import answers
from selfeval.records import read_predictions

AUTHORS = {"lab/amber": "Amber One", "lab/basalt": "Basalt Two", "lab/cobalt": "Cobalt Three"}
HIT, FALSE = 0.7, 0.3  # J = .4


def exact(n_prompts=60, seed=0, names=None, **more):
    """Make records of the exact task: an evaluator names itself on .7 of its own and .3 of others' texts."""
    draw, names, rows = random.Random(seed), names or {a: a for a in AUTHORS}, []
    for prompt in range(n_prompts):
        for k, author in enumerate(AUTHORS):
            for evaluator in AUTHORS:
                claims = draw.random() < (HIT if author == evaluator else FALSE)
                named = evaluator if claims else draw.choice([a for a in AUTHORS if a != evaluator])
                rows.append({"text_id": prompt * 3 + k, "true_model": author, "true_model_display": AUTHORS[author],
                             "evaluator_model": evaluator, "task_type": "exact_model", "predicted_model": names[named],
                             "prompt_used": f"Write about topic {prompt}.", "text_preview": f"{author} on {prompt}",
                             "returned_text": f"It reads like {AUTHORS[named]}."} | more)  # fmt: skip
    return rows


def pairs(n_prompts=60, seed=0):
    """Make pairs in both orders with letters for places: an evaluator chooses its own text in .75 of them."""
    draw, rows = random.Random(seed), []
    letters, says = (
        "AB",
        ["{}", "Response {}", "({})", "**{}**", "I believe Text {} is mine.", "Answer: {}", "{} is mine."],
    )
    for prompt in range(n_prompts):
        for own in AUTHORS:
            for other in AUTHORS:
                for place in letters if own != other else "":
                    right = draw.random() < 0.75
                    chosen = place if right else letters[place == "A"]
                    rows.append({"text_id": f"{own}{prompt}", "other_text_id": f"{other}{prompt}", "true_model": own,
                                 "other_model": other, "evaluator_model": own, "task_type": "pairwise_self",
                                 "position": place, "prompt_used": f"Write about topic {prompt}.",
                                 "predicted_self": right, "reply": draw.choice(says).format(chosen)})  # fmt: skip
    return rows


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def analysed(predictions, columns=None, reread="auto"):
    """Go the way of 03; return (records, changes, lines above the first table, default rows of the result table)."""
    records, changes = answers.rescore(read_predictions(predictions, columns), reread)
    table = stats.recognition_table(records, n_resamples=1)
    assert "lab/judge" in set(table["evaluator"]) or tables.conclusions(table)
    return records, changes, tables.reading(records, changes, AUTHORS), tables.default_rows(table)


def holds(rows, statistic, value):
    """Say whether every evaluator's interval of a statistic is there and most of them hold the planted value."""
    found = rows[rows["statistic"] == statistic]
    inside = (found["low"] <= value) & (value <= found["high"])
    assert len(found) == 3 and found["low"].notna().all()
    return inside.sum() >= 2


# ---------------------------------------------------------------------------------------------------------------
# Eight foreign shapes


def test_a_resumed_run_counts_its_records_once(tmp_path):
    rows = exact()
    resumed = written(tmp_path / "resumed.jsonl", [r | {"usage": {"prompt": 9}} for r in rows[:200]] + rows)
    once = analysed(written(tmp_path / "once.jsonl", rows))
    records, _, lines, found = analysed(resumed)
    assert len(records) == len(rows) and holds(found, "discrimination", HIT - FALSE)
    assert lines == ["200 records repeat others in question and answer, as after a resumed run, and count once."]
    pd.testing.assert_frame_equal(found, once[3])


def test_two_answers_to_one_question_are_told_apart_by_a_field_and_nothing_is_to_be_deleted(tmp_path):
    rows = exact(20)
    other = {"lab/amber": "lab/basalt", "lab/basalt": "lab/cobalt", "lab/cobalt": "lab/amber"}
    again = [r | {"predicted_model": other[r["predicted_model"]], "returned_text": None, "run": 2} for r in rows]
    both = written(tmp_path / "both.jsonl", [r | {"run": 1} for r in rows] + again)
    with pytest.raises(InputError, match="has text_id 0 twice") as error:
        analysed(both)
    assert "columns: {theirs: repeat}" in str(error.value)
    assert not {"delete", "remove", "keep one"} & {
        word for word in ("delete", "remove", "keep one") if word in str(error.value)
    }
    records, _, _, found = analysed(both, {"run": "repeat"})
    assert len(records) == 2 * len(rows) and found["clusters"].max() == 20


def test_ids_that_begin_anew_for_every_author_name_different_texts(tmp_path):
    rows = [row | {"text_id": row["text_id"] // 3} for row in exact()]
    records, _, lines, found = analysed(written(tmp_path / "restarted.jsonl", rows))
    assert len(records) == len(rows) == found.loc[found["statistic"] == "no_answer_rate", "n"].sum() and not lines
    assert holds(found, "discrimination", HIT - FALSE)
    pd.testing.assert_frame_equal(found, analysed(written(tmp_path / "own.jsonl", exact()))[3])


def test_display_names_of_the_file_are_names(tmp_path):
    rows = [row | {"evaluator_model": AUTHORS[row["evaluator_model"]]} for row in exact(names=AUTHORS)]
    rows = [row | {"candidates": list(AUTHORS.values())} for row in rows]
    records, changes, lines, found = analysed(written(tmp_path / "names.jsonl", rows))
    assert set(records["evaluator_model"]) == set(AUTHORS) == set(records["predicted_model"])
    assert changes["same"].sum() == len(rows) and not records["unverified"].any()
    assert lines[0] == "names.jsonl: the evaluator 'Amber One' is the author 'lab/amber'." and len(lines) == 3
    assert holds(found, "discrimination", HIT - FALSE)


def test_a_label_of_the_file_counts_beside_the_names_of_the_registry(tmp_path):
    rows = [{"text_id": i, "true_model": author, "true_model_display": label, "evaluator_model": "openai/gpt-4.1",
             "task_type": "exact_model", "predicted_model": author, "prompt_used": "p", "text_preview": f"t{i}",
             "returned_text": f"I would say {said}."}
            for i, (author, label, said) in enumerate([
                ("openai/gpt-4.1", "The Forty-One", "The Forty-One"), ("openai/gpt-4.1", "The Forty-One", "GPT-4.1"),
                ("lab/basalt", "Basalt Two", "lab/basalt"), ("lab/basalt", "Basalt Two", "basalt two"),
            ])]  # fmt: skip
    _, changes, lines, _ = analysed(written(tmp_path / "labels.jsonl", rows))
    assert changes[["same", "removed", "changed"]].iloc[0].tolist() == [4, 0, 0] and not lines


def test_a_reply_may_be_a_list_of_blocks(tmp_path):
    rows = exact()
    think = {"type": "thinking", "thinking": "Amber One? Basalt Two?"}
    blocks = [r | {"returned_text": [think, {"type": "text", "text": r["returned_text"]}], "predicted_model": None}
              for r in rows]  # fmt: skip
    _, changes, _, found = analysed(written(tmp_path / "blocks.jsonl", blocks))
    assert changes["added"].sum() == len(rows) and holds(found, "discrimination", HIT - FALSE)
    pd.DataFrame(blocks).assign(returned_text=[json.dumps(r["returned_text"]) for r in blocks]).to_csv(
        tmp_path / "blocks.csv", index=False
    )
    assert analysed(str(tmp_path / "blocks.csv"))[1]["added"].sum() == len(rows)


def test_letters_are_places(tmp_path):
    rows = pairs()
    records, changes, lines, found = analysed(written(tmp_path / "letters.jsonl", rows))
    assert changes["same"].sum() == len(rows) and not lines and set(records["position"]) == {1, 2}
    assert holds(found, "self_accuracy", 0.75) and not records["unverified"].any()
    bare = [{k: v for k, v in row.items() if k != "predicted_self"} for row in rows]
    again = analysed(written(tmp_path / "bare.jsonl", bare))
    assert again[1]["added"].sum() == len(rows)
    pd.testing.assert_frame_equal(again[3], found)


@pytest.mark.parametrize(("reply", "chosen"), [
    ("A", 1), ("b", 2), ("(a)", 1), ("Response B", 2), ("Option A.", 1), ("**B**", 2), ("[[A]]", 1), ("A) it is", 1),
    ("My answer is B, because of the tone.", 2), ("Answer: A", 1), ('{"text": "B"}', 2), ("I wrote A.", 1),
    ("Text B sounds more like me than Text A.", 2), ("The first thing I notice is the tone. Response B.", 2),
    ("A is mine.", 1), ("Text 1 or Text 2", None), ("A or B", None), ("I cannot tell A from B.", None),
    ("A careful reading shows that Text 2 is mine", 2), ("It is a text a person would write.", None),
    ("A model would not write this.", None), ("Text 1", 1), ("the second", 2), ("", None), (None, None),
])  # fmt: skip
def test_a_letter_in_a_reply_to_a_pair_is_a_place_and_an_article_is_none(reply, chosen):
    assert answers.parse_place(reply) == chosen


@pytest.mark.parametrize(("written_as", "place"), [
    (1, 1), (2.0, 2), ("A", 1), ("b", 2), ("Response A", 1), ("Text B", 2), ("option a", 1), ("(b)", 2), ("first", 1),
    ("second text", 2), ("text_1", 1),
])  # fmt: skip
def test_the_statistics_read_places_as_replies_are_read(written_as, place):
    rows = [{"text_id": p, "true_model": "a", "other_model": "b", "evaluator_model": "a", "prompt_id": p,
             "task_type": "pairwise_self", "predicted_self": True, "position": at}
            for p in range(10) for at in (written_as, 3 - place)]  # fmt: skip
    table = stats.recognition_table(pd.DataFrame(rows), n_resamples=1)
    bias = table[table["statistic"] == "position_bias"]["estimate"]
    assert bias.iloc[0] == 0  # both orders occur: one place more would leave it without an estimate


def test_pairs_that_a_neutral_judge_saw_are_read(tmp_path):
    rows = [row | {"evaluator_model": "lab/judge"} for row in pairs()]
    _, changes, lines, found = analysed(written(tmp_path / "judge.jsonl", rows))
    assert changes["same"].sum() == len(rows) and not lines
    assert set(found["evaluator"]) == {"lab/judge"}


def test_replies_that_were_cut_off_when_stored_do_not_destroy_the_answers(tmp_path):
    cut = "The tone is warm, the sentences are short, and the"
    rows = [row | {"returned_text": cut} if i // 3 % 3 else row for i, row in enumerate(exact())]
    file = written(tmp_path / "cut.jsonl", rows)
    records, changes, lines, found = analysed(file)
    assert holds(found, "discrimination", HIT - FALSE)
    assert set(changes["answers"]) == {"as recorded"} and records["predicted_model"].notna().all()
    heads = [line for line in lines if not line.startswith("    ")]
    assert (
        len(heads) == 3 and len(lines) == 3 * 6 and "(67%) are not in the raw replies. The answers on rec" in heads[0]
    )
    assert "reread: yes" in heads[0] and "on record, reply: 'The tone is warm" in lines[1]
    assert tables.overview(records)["unverified"].tolist() == [0.667] * 3
    records, _, lines, _ = analysed(file, reread="yes")
    assert records["predicted_model"].isna().sum() == 360 and "They are taken back" in lines[0]
    assert not records["unverified"].any() and len(lines) == 3 * 6


def test_scores_alone_are_read(tmp_path):
    rng = np.random.default_rng(0)
    rows = [{"text_id": row["text_id"], "true_model": row["true_model"], "evaluator_model": row["evaluator_model"],
             "task_type": "binary_self", "prompt_id": row["prompt_used"],
             "score": float(np.clip(rng.normal(0.5 + 0.1 * (row["true_model"] == row["evaluator_model"]), 0.15), 0, 1))}
            for row in exact()]  # fmt: skip
    records, _, lines, found = analysed(written(tmp_path / "scores.jsonl", rows))
    assert len(records) == len(rows) and not lines and not records["unverified"].any()
    assert holds(found, "auc", 0.681)  # P(z1 > z0) where the means are 2/3 of a standard deviation apart


# ---------------------------------------------------------------------------------------------------------------
# Answers on record and raw replies


def filled_in(share, n=100):
    """Make records of which a share has a reply without an answer, or an error, and a name filled in."""
    rows = [row | {"text_id": i} for i, row in enumerate(exact(60)) if row["evaluator_model"] == "lab/amber"][:n]
    return [row | {"returned_text": ["I cannot know.", "ERROR: 429"][i % 2]} if i < share * n else row
            for i, row in enumerate(rows)]  # fmt: skip


def test_names_filled_in_are_taken_back_and_those_beside_an_error_always(tmp_path):
    records, changes, lines, _ = analysed(written(tmp_path / "few.jsonl", filled_in(0.1)))
    assert changes[["removed", "answers"]].iloc[0].tolist() == [10, "as read"] and not lines
    assert records["predicted_model"].isna().sum() == 10
    records, changes, lines, _ = analysed(written(tmp_path / "many.jsonl", filled_in(0.6)))
    assert changes[["removed", "answers"]].iloc[0].tolist() == [60, "as recorded"] and len(lines) == 6
    assert "60 of 100 answers on record (60%)" in lines[0]
    assert records["predicted_model"].isna().sum() == 30 and (records["status"] == "error").sum() == 30
    assert records["unverified"].sum() == 30
    errors = [row for row in filled_in(0.6) if row["returned_text"] != "I cannot know."]
    records, changes, lines, _ = analysed(written(tmp_path / "errors.jsonl", errors))
    assert changes["answers"].tolist() == ["as read"] and records["unverified"].sum() == 0
    assert "They are taken back" in lines[0] and "'ERROR: 429'" in lines[1]
    kept = analysed(str(tmp_path / "many.jsonl"), reread="no")[0]
    assert kept["predicted_model"].notna().all() and set(kept["status"]) == {"ok"} and kept["unverified"].sum() == 60
    with pytest.raises(InputError, match="`reread` must be one of auto, yes, no, got 'maybe'"):
        analysed(str(tmp_path / "many.jsonl"), reread="maybe")


def test_one_evaluator_that_cannot_be_read_changes_nothing_for_the_others(tmp_path):
    rows = [row | {"returned_text": "cut"} if row["evaluator_model"] == "lab/basalt" else row for row in exact(20)]
    rows[0] |= {"returned_text": "I cannot know."}
    _, changes, lines, _ = analysed(written(tmp_path / "one.jsonl", rows))
    assert changes["answers"].tolist() == ["as read", "as recorded", "as read"]
    assert changes["removed"].tolist() == [1, 60, 0] and len(lines) == 6


def test_answers_without_a_reply_are_unverified_and_what_follows_from_them_is_computed(tmp_path):
    shown = ("returned_text", "true_model_display", "text_preview")
    rows = [{k: v for k, v in row.items() if k not in shown} for row in exact(20)]
    records, _, _, _ = analysed(written(tmp_path / "bare.jsonl", rows))
    assert tables.overview(records)["unverified"].tolist() == [1.0] * 3
    right = [row["predicted_model"] == row["true_model"] for row in rows]
    assert records["is_correct"].tolist() == right
    claimed = [row["predicted_model"] == row["evaluator_model"] for row in rows]
    assert records["predicted_self"].tolist() == claimed


def test_an_answer_outside_the_authors_stays_one(tmp_path):
    rows = [row | {"predicted_model": "lab/dolomite", "returned_text": "lab/dolomite"} if i % 9 == 0 else row
            for i, row in enumerate(exact(20))]  # fmt: skip
    records, changes, _, _ = analysed(written(tmp_path / "outside.jsonl", rows))
    assert changes["same"].sum() == len(rows) and (records["predicted_model"] == "lab/dolomite").sum() == 20


def test_a_status_in_other_words_deletes_no_answer(tmp_path):
    rows = [row | {"status": "success"} for row in exact(20)]
    rows[0] |= {"status": "timeout", "returned_text": "none"}
    records, changes, _, _ = analysed(written(tmp_path / "status.jsonl", rows))
    assert changes["removed"].sum() == 1 and records["status"].value_counts().to_dict() == {"ok": 179, "error": 1}


# ---------------------------------------------------------------------------------------------------------------
# Conditions, headings, sentences


def test_two_files_of_two_conditions_are_analysed_together(tmp_path):
    one = written(tmp_path / "with.jsonl", exact(seed=1))
    two = written(tmp_path / "without.jsonl", exact(seed=2))
    for given in ([{one: {"hints": True}}, {two: {"hints": False}}], {one: {"hints": True}, two: {"hints": False}}):
        records, _, _, found = analysed(given)
        assert len(records) == 1080 and set(found["condition"]) == {"hints=true", "hints=false"}
    contrasts = stats.condition_contrasts(records)
    assert set(contrasts["field"]) == {"hints"} and set(contrasts["evaluator"]) == set(AUTHORS)
    with pytest.raises(InputError, match="says two things of it"):
        analysed([one, {one: {"hints": True}}])
    marked = written(tmp_path / "marked.jsonl", exact(5, condition={"hints": False, "told": True}))
    assert set(analysed([{marked: {"words": 100}}])[3]["condition"]) == {"hints=false;told=true;words=100"}
    with pytest.raises(InputError, match="has hints = False in `condition`, and `predictions` says True"):
        analysed([{marked: {"hints": True}}])
    with pytest.raises(InputError, match="a mapping such as hints: true, got 'hints'"):
        analysed([{marked: "hints"}])


def test_a_table_with_other_headings_is_read_without_a_script(tmp_path):
    rows = pd.DataFrame(exact()).drop(columns=["task_type", "text_preview", "true_model_display", "returned_text"])
    rows["hinted"] = rows["text_id"] % 2 == 0
    rows = rows.rename(columns={"true_model": "source", "evaluator_model": "judge", "predicted_model": "guess",
                                "prompt_used": "topic", "text_id": "item"})  # fmt: skip
    rows.to_csv(tmp_path / "theirs.csv", index=False)
    names = {"source": "true_model", "judge": "evaluator_model", "guess": "predicted_model", "topic": "prompt_used",
             "item": "text_id"}  # fmt: skip
    given = {str(tmp_path / "theirs.csv"): {"task_type": "exact_model"}}
    _, _, _, found = analysed(given, names)
    assert holds(found, "discrimination", HIT - FALSE)
    assert set(analysed(given, names | {"hinted": "condition"})[3]["condition"]) == {"hinted=true", "hinted=false"}
    with pytest.raises(
        InputError, match="lacks the fields text_id, true_model, evaluator_model, task_type, prompt_used"
    ) as e:
        analysed(str(tmp_path / "theirs.csv"))
    assert "it has item, source, judge, guess, topic, hinted; `columns: {theirs: ours}`" in str(e.value)
    assert "data/README.md" in str(e.value)
    for columns, message in (
        (names | {"nobody": "sample"}, "`columns` names 'nobody', a field that no file"),
        (names | {"guess": "answer"}, "`columns` must be one of text_id, .*got 'answer'"),
        (names | {"hinted": "text_id"}, "gives `text_id` twice"), (["a"], "`columns` must be a mapping"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            analysed(given, columns)


@pytest.mark.parametrize(("change", "message"), [
    ({"true_model": None}, "`true_model` is null, and must be a non-empty text"),
    ({"true_model": 7}, "`true_model` is 7, and must be a non-empty text"),
    ({"evaluator_model": None}, "`evaluator_model` is null"), ({"text_id": None}, "`text_id` is null"),
    ({"task_type": "guess"}, "`task_type` is 'guess', and must be one of exact_model"),
    ({"position": None}, "`position` is null, and must say where the pair's own text stood, as 1 or 2, A or B"),
    ({"position": "C"}, "`position` is 'C', and must say where"), ({"position": 3}, "`position` is 3, and must say"),
    ({"other_model": None}, "`other_model` is null, and must name the author of the pair's other text"),
    ({"predicted_self": "perhaps"}, "`predicted_self` is 'perhaps', and must be true, false or null"),
    ({"score": 85}, "`score` is 85.*from 0 to 1"), ({"true_model": "lab/cobalt", "other_model": "lab/amber"},
     "the evaluator 'lab/amber' wrote the pair's other text"),
])  # fmt: skip
def test_what_is_missing_or_wrong_is_one_sentence_with_file_record_and_remedy(tmp_path, change, message):
    rows = pairs(2)
    file = written(tmp_path / "x.jsonl", [rows[0], rows[1], rows[2] | change, rows[3]])
    with pytest.raises(InputError, match=rf"x.jsonl, record 3: {message}"):
        analysed(file)


@pytest.mark.parametrize("field", ["position", "other_model"])
def test_a_field_that_pairs_lack_is_one_sentence(tmp_path, field):
    rows = [{k: v for k, v in row.items() if k != field} for row in pairs(2)]
    with pytest.raises(InputError, match=rf"x.jsonl lacks the field {field}: it must .* `columns: \{{theirs: ours\}}`"):
        analysed(written(tmp_path / "x.jsonl", rows))


# ---------------------------------------------------------------------------------------------------------------
# The notebook itself


def test_the_notebook_says_above_its_first_table_what_reading_took_back(tmp_path):
    cut = [r | {"returned_text": "It reads", "predicted_model": AUTHORS[r["predicted_model"]]} for r in exact(20)]
    csv = pd.DataFrame(cut + cut[:30]).rename(columns={"true_model": "source"})
    csv.to_csv(tmp_path / "theirs.csv", index=False)
    given = {"predictions": {str(tmp_path / "theirs.csv"): {"hints": True}}, "columns": {"source": "true_model"},
             "corpus": "", "n_resamples": 20, "out": str(tmp_path / "out")}  # fmt: skip
    source, done = ROOT / "notebooks" / "03_self_recognition.ipynb", tmp_path / "done.ipynb"
    papermill.execute_notebook(source, done, given, engine_name="forked", progress_bar=False)
    outputs = [c.outputs for c in nbformat.read(done, as_version=4).cells if c.cell_type == "code" and c.outputs]
    texts = ["".join(part.get("text", "") for part in of_cell) for of_cell in outputs]
    said = texts[0]
    assert said.startswith("30 records repeat others") and "60 of 60 answers on record (100%)" in said
    assert said.count("on record, reply: 'It reads'") == 15 and "unverified" in outputs[0][-1]["data"]["text/plain"]
