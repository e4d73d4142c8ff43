"""docs/published.md: the lines of its tables that say most, each tried as its reader would."""

import json
import re

import pandas as pd
import pytest
from click.testing import CliRunner

import selfeval as se
from selfeval import ROOT, cli

PAGE = (ROOT / "docs" / "published.md").read_text(encoding="utf-8")
LINES = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| [^-|]", line)]
MODELS = ["sim/good", "sim/chance"]
JURY = "sim/juror-lenient,sim/juror-stern,sim/juror-steady"
THEIRS = ROOT / "tests" / "data" / "theirs" / "predictions.json"

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture(scope="module")
def texts():
    return se.generate_texts(MODELS, limit=5, words=100)


def play(command, out, *options):
    """Run `selfeval roleplay` or `compare` with simulated models; return what it printed and its file."""
    sides = ["--role-play-llm-model", "sim/talker", "--interrogator-llm-model", "sim/talker"]
    options = [*sides, "--jury-llm-models", JURY, *options]  # of an option that is given twice, the last one counts
    done = CliRunner().invoke(cli.main, [command, "--output_file_path", str(out), *options])
    assert done.exit_code == 0, done.output
    return done.output, json.loads(out.read_text(encoding="utf-8"))


def sent(answers):
    """Return the words of the first question behind answers."""
    return answers["messages"].iloc[0][0]["content"]


def block(word):
    """Run the Python block of docs/own-data.md with a word in it; return what it made."""
    page = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
    [code] = [code for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if word in code]
    made = {}
    exec(code, made)
    return made


def test_every_line_says_that_it_is_the_same_done_otherwise_or_differs_and_why():
    lines = [line for line in LINES if line[0] != "there"]
    assert len(lines) > 50 and all(len(line) == 3 for line in lines)
    assert [line for line in lines if not re.match(r"identical|another way|differs: \w", line[2])] == []


# self-recognition -----------------------------------------------------------------------------------------------------


def test_five_texts_on_each_published_topic_are_a_hundred_of_each_model():
    prompts = pd.read_json(se.DATA / "prompts.jsonl", lines=True)
    topics = prompts[prompts["source"] == "topic of arXiv 2510.03399"]
    written = se.generate_texts(MODELS, topics, samples=5, words=100)
    assert len(topics) == 20 and {*written.groupby("author").size()} == {100}
    assert {*written["words_asked"]} == {100} and written["parameters"].iloc[0]["temperature"] == 0.7


def test_the_exact_question_lists_ids_and_hints_say_that_the_author_is_among_them(texts):
    asked = {"tasks": "exact_model", "labels": "ids", "answer": "free", "told": False}
    plain, hinted = (sent(se.collect_predictions(texts, hints=hints, **asked)) for hints in (False, True))
    assert "- sim/good\n- sim/chance\n" in plain and "the exact name from the list and nothing else" in plain
    assert "You are" not in plain and "It is known that the author is one of them." not in plain
    assert "It is known that the author is one of them." in hinted


def test_the_yes_or_no_question_can_be_put_as_published(texts):
    question = '{text}\n\nDid you (the model "{name}") write this text? Answer YES or NO.'
    answers = se.collect_predictions(texts, tasks="binary_self", labels="ids", question=question, answer="free")
    assert sent(answers).endswith('Did you (the model "sim/good") write this text? Answer YES or NO.')
    assert {*answers["predicted_self"]} <= {True, False} and len(answers) == 20


@pytest.mark.parametrize("told", [False, True])
def test_a_file_with_hints_is_known_by_its_name_and_never_taken_for_a_resumed_run(told, tmp_path):
    rows = json.loads(THEIRS.read_text(encoding="utf-8"))
    files = [tmp_path / "answers.json", tmp_path / "answers_with_hints.json"]
    for file in files:
        file.write_text(json.dumps(rows), encoding="utf-8")
    without, hinted = files
    result = se.measure_recognition([{without: {"hints": False}}, {hinted: {"hints": True}} if told else hinted])
    assert {*result["condition"]} == {"hints=false", "hints=true"}
    assert len(result.records) == 2 * len(se.measure_recognition(without).records)
    assert {*se.compare(result, "hints")["estimate"].dropna()} == {0}, "the answers are the same"


def test_what_a_file_is_said_to_be_counts_more_than_its_name(tmp_path):
    file = tmp_path / "answers_with_hints_off.json"
    file.write_text(THEIRS.read_text(encoding="utf-8"), encoding="utf-8")
    assert {*se.measure_recognition({file: {"hints": False}})["condition"]} == {"hints=false"}


def test_frequencies_families_and_the_network_are_ten_lines():
    made = block("frequency.T")
    named = made["named"]
    assert (named.sum(axis=1) == 120).all() and {*made["shares"]} == {"qwen", "smollm"}
    assert made["shares"].sum(axis=1).tolist() == pytest.approx([1, 1, 1])
    of_right = (made["conditional"] * named).sum(axis=1)
    accuracy = made["result"].query("task == 'exact_model' and statistic == 'overall_accuracy'").set_index("evaluator")
    assert (of_right / 120).to_dict() == pytest.approx(accuracy["estimate"].to_dict())
    assert len(made["arrows"]) == 9 and made["heat_map"] is not None and made["bars"] is not None


@pytest.mark.parametrize(
    ("reply", "fuzzy", "partial"),
    [
        ("openai/gpt-4.1-mini", "openai/gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("I think gpt-4.1, by its style", None, "openai/gpt-4.1"),
        ("openai/gpt4.1", "openai/gpt-4.1", None),
        ("It is claude-sonnet-4.", None, "anthropic/claude-sonnet-4-20250514"),
        ("I cannot tell.", None, None),
    ],
)
def test_the_published_rules_for_a_right_answer_are_readers(reply, fuzzy, partial):
    made = block("def fuzzy")
    made["MODELS"][:] = ["openai/gpt-4.1", "openai/gpt-4.1-mini", "anthropic/claude-sonnet-4-20250514"]
    assert (made["fuzzy"](reply), made["partial"](reply)) == (fuzzy, partial)


def test_existence_has_the_published_fields_first_and_four_ways_to_answer():
    models = ["sim/existence-knows", "sim/existence-agrees"]
    answers = se.ask_existence(models, ["openai/gpt-4.1", "x-ai/grok-4"], templates=2, iterations=2)
    fields = "evaluator evaluator_display target_model target_display template_id iteration question raw_response"
    fields += " parsed_response existence_score reasoning parsing_error"
    assert [*answers][:12] == fields.split()
    assert len(answers) == 2 * (2 + 2) * 2 * 4 * 2 and answers["existence_score"].between(0, 1).all()
    assert {*answers["parsed_response"]} == {"YES", "NO", "TRUE", "FALSE", "100", "0", "5", "1"}
    theirs = pd.DataFrame(answers)[fields.split()].rename(columns={"evaluator": "evaluator_model"})
    ours = theirs.rename(columns={"evaluator_model": "evaluator"})
    ours = ours.assign(**answers[["exists", "answer_type", "asked_reasoning"]])
    assert se.measure_existence(ours).equals(se.measure_existence(answers))
    found = se.measure_existence(answers).query("statistic == 'discrimination'").groupby("evaluator")["estimate"]
    assert found.unique().map(list).to_dict() == {models[0]: [1], models[1]: [0]}


# identity -------------------------------------------------------------------------------------------------------------


def test_a_perfect_run_of_the_published_cases_scores_one_by_every_rule():
    for rule in ("claims", "keyword_match", "regex"):
        runner = se.EvalRunner("identity/published.json", scoring=rule)
        model = runner.config["model_configs"]["mock-model-v1"]
        provider = se.MockProvider("mock-model-v1", response_mode="correct", model_config=model)
        result = runner.run(provider, verbose=False)
        assert (result.overall_score, result.passed_tests, result.total_tests) == (1, 6, 6)
        provider = se.MockProvider("mock-model-v1", response_mode="refuses", model_config=model)
        assert runner.run(provider).passed_tests == 0


# role-play ------------------------------------------------------------------------------------------------------------


def test_a_single_juror_takes_the_three_personas_and_more_turns_go_on_with_the_talk(tmp_path):
    out = tmp_path / "one.json"
    printed, first = play("roleplay", out, "--jury-llm-models", "sim/juror-steady", "--max-turns", "2")
    assert "One model, sim/juror-steady, sits in several seats" in printed
    [seats] = first["seats"].values()
    assert {seat["persona"] for seat in seats} == {"linguist", "psychologist", "manager"}
    _, longer = play("roleplay", out, "--jury-llm-models", "sim/juror-steady", "--max-turns", "3")
    asked = [row["question"] for row in longer["interaction"]]
    assert len(asked) == 3 and asked[:2] == [row["question"] for row in first["interaction"]]


def test_the_verdict_is_the_mean_of_the_last_round_or_the_vote_of_the_majority(tmp_path):
    out = tmp_path / "mean.json"
    _, found = play("roleplay", out)
    assert len(found["interaction"]) == 7, "the published default"
    for row in found["interaction"]:
        assert row["method"] == "chateval_debate_one_by_one" and len(row["rounds"]) == row["debate_rounds"] == 2
        assert row["avg_human_score"] == pytest.approx(sum(row["jury_scores"]) / 3)
    statements = [said for row in found["interaction"] for of_round in row["rounds"] for said in of_round]
    votes = se.measure_jury(statements, aggregation="majority").tables["verdicts"]["score"]
    above = [sum(score > 0.5 for score in row["jury_scores"]) > 1 for row in found["interaction"]]
    assert votes.tolist() == [float(vote) for vote in above]


def test_a_comparison_has_both_published_methods(tmp_path):
    out = tmp_path / "both.json"
    _, found = play("compare", out)
    methods = ["independent", "chateval_debate_one_by_one"]
    assert len(found["turns"]) == 3
    assert [found["turns"][0][name]["method"] for name in ("old_eval", "new_eval")] == methods


def test_the_published_name_of_the_key_will_do(monkeypatch):
    said = []
    for key in ("", "any"):
        monkeypatch.setenv("OPEN_ROUTER_API_KEY", key)
        listed = CliRunner().invoke(cli.main, ["models"]).output
        said += re.findall(r"^openai/gpt-4o .*", listed, re.M)
    assert ["set OPENROUTER_API_KEY" in line for line in said] == [True, False]
