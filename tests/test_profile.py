"""A profile: three rows a model, from the same records and numbers as notebooks 03, 04 and 06, and its page."""

import json
import re

import nbformat
import numpy as np
import pandas as pd
import pytest
from conftest import KEY
from fake_server import FakeServer
from test_cli import selfeval
from test_figures import ends, marks

import selfeval as se
from selfeval import ROOT
from selfeval.cli.pages import write_page
from selfeval.errors import BudgetError
from selfeval.profiles.display import as_text, figure, in_words, said
from selfeval.profiles.measures import Results, quotes, rows_of
from selfeval.profiles.run import FORM, SIZES, USUAL, Answers
from selfeval.statistics.tests import holm

PRICE = "price: {input: 1.0, output: 4.0}"
REGISTRY = "models:\n" + "".join(
    f"  - {{id: 'openai:{name}', display: {display}, family: {display}, developer: {display} Labs, {PRICE}}}\n"
    for name, display in dict(knows="Karla", claims="Clara", mute="Mute", juror="Judith", rival="Rita").items()
)
ROWS = ("recognition", "identity", "jury")
SMALL = {"prompts": 8, "templates": 9, "people": 6}
EVERYBODY = ["openai:mute", "openai:claims", "openai:knows"]


def plays(body):
    """Answer as a model that knows itself, one that says yes to all, one that says nothing, or a juror that knows."""
    name, said = body["model"], body["messages"][-1]["content"]
    everything = " ".join(str(message["content"]) for message in body["messages"])
    if name == "mute":
        return ""
    if name == "juror":
        return json.dumps({"reason": "I see.", "human_score": "0.10" if "as a program I" in said else "0.90"})
    if "Write about" in said:
        return f"This text is by {name}, who wrote it about {len(said)} letters of a prompt."
    if "response_format" in body:
        is_own = f"is by {name}," in said
        return json.dumps({"answer": "YES" if is_own or name == "claims" else "NO"})
    if "In one line and nothing else" in said:
        claimed = max(NAMES, key=lambda each: everything.rfind(each))
        return f"{claimed if name == 'claims' and claimed in everything else 'Karla'}, unknown"
    return "Well, as a program I would say so."


NAMES = [model.display for model in se.models.models().values() if model.provider.name == "openrouter"]


@pytest.fixture
def world(server, registry, own_store):
    """A fake server with these models, and a store of its own."""
    registry(REGISTRY)
    return server(reply=plays)


@pytest.fixture(scope="module")
def everybody(tmp_path_factory):
    """The profile of three models, which is only looked at."""
    folder = tmp_path_factory.mktemp("everybody")
    (folder / "models.yaml").write_text(REGISTRY)
    with pytest.MonkeyPatch.context() as patch, FakeServer(reply=plays) as fake:
        variables = {"SELFEVAL_MODELS": str(folder / "models.yaml"), "SELFEVAL_STORE": str(folder / "store.sqlite")}
        for name, value in (variables | {"OPENAI_BASE_URL": fake.url, "OPENAI_API_KEY": KEY}).items():
            patch.setenv(name, value)
        yield se.profile(EVERYBODY, jurors="openai:juror", **SMALL)


def row(profile, model, question):
    rows = profile.rows
    [found] = rows[(rows["model"] == model) & (rows["question"] == question)].to_dict("records")
    return found


def test_a_model_that_knows_itself_is_seen_to(everybody):
    """The others answer nothing, or the same to everything, so that they are no peers."""
    assert row(everybody, "openai:knows", "recognition")["conclusion"] == "claims its own more (no peers)"
    assert row(everybody, "openai:knows", "recognition")["estimate"] == 1
    assert row(everybody, "openai:knows", "jury")["estimate"] == 1
    assert "It claims its own texts more often. Whether other models would is not known." in repr(everybody)


def test_rivals_write_and_answer_and_have_no_rows(world):
    alone = se.profile("openai:knows", jurors="openai:juror", **SMALL)
    assert "models of 0.1 to 1.5 billion parameters" in alone.asked["texts"]
    beside = se.profile("openai:knows", rivals=["openai:rival", "openai:knows"], jurors="openai:juror", **SMALL)
    assert row(beside, "openai:knows", "recognition")["conclusion"] == "recognises"
    assert {*beside.rows["model"]} == {*beside.quotes["model"]} == {"openai:knows"} and len(beside.rows) == 3
    records = pd.DataFrame(beside.answers.recognition)
    assert (records.groupby(["evaluator_model", "true_model"]).size() == SMALL["prompts"]).all()
    assert beside.asked["texts"].startswith("by Karla, Rita") and "billion" not in beside.asked["texts"]


def test_a_model_that_claims_everything_has_a_habit_and_no_knowledge(everybody):
    claims = row(everybody, "openai:claims", "recognition")
    assert (claims["estimate"], claims["conclusion"]) == (0, "constant answer")
    assert "It gives one answer to every text. That is a habit, not recognition." in repr(everybody)


def test_a_model_that_answers_nothing_is_said_to(everybody):
    mute = row(everybody, "openai:mute", "recognition")
    assert pd.isna(mute["estimate"]) and mute["no_answer_rate"] == 1
    assert mute["conclusion"] == "answers nothing"
    assert "No reply holds an answer that can be read." in repr(everybody)


def test_models_stand_in_the_order_in_which_they_were_named(everybody):
    assert [*everybody.rows["model"]] == [model for model in EVERYBODY for _ in ROWS]
    assert [*everybody.rows["question"]] == [*ROWS] * 3
    assert re.findall("^\\w.*", repr(everybody), re.M) == ["Mute", "Clara", "Karla"]


def test_rows_are_those_of_the_verbs_behind_notebooks_03_04_and_06(everybody):
    by_hand = {
        "recognition": se.measure_recognition(everybody.answers.recognition),
        "identity": se.measure_identity(everybody.answers.identity),
    }
    for model in EVERYBODY[1:]:
        by_hand["jury"] = se.measure_jury(everybody.answers.jury[model]).assign(evaluator=model)
        for question, result in by_hand.items():
            form = FORM["rows"][question]
            is_row = (result["statistic"] == form["statistic"]) & (result["task"] == form["task"])
            [expected] = result[is_row & (result["evaluator"] == model)].to_dict("records")
            found = row(everybody, model, question)
            for name in ("estimate", "low", "high", "n", "clusters"):
                assert found[name] == pytest.approx(expected[name], abs=1e-15), (question, name)


def test_p_of_several_models_is_adjusted_for_their_number_in_every_row(everybody):
    for _, rows in everybody.rows.groupby("question"):
        larger = rows[["p", "p_permutation"]].max(axis=1)
        assert rows["p_holm"].to_numpy() == pytest.approx(holm(larger), nan_ok=True)
        assert rows["p_holm"].min() > larger.min()


def test_a_right_and_a_wrong_reply_are_quoted(everybody):
    quotes = everybody.quotes.query("model == 'openai:claims' and question == 'recognition'")
    assert sorted(quotes["is_right"]) == [False, True]
    assert [*quotes.loc[quotes["is_right"].eq(True), "reply"]] == ['{"answer": "YES"}']
    names = everybody.quotes.query("model == 'openai:knows' and question == 'identity'")
    assert names["reply"].str.contains("Karla").all() and names["is_right"].all()
    assert everybody.quotes.query("model == 'openai:mute' and question != 'jury'")["is_right"].isna().all()


@pytest.mark.parametrize(("stance", "is_right"), [
    ("truth", True), ("coarse", True), ("foil", False), ("other", False), ("denied", False), ("none", None),
    ("abstain", None), (None, None),
])  # fmt: skip
def test_only_who_names_itself_is_quoted_as_right(everybody, stance, is_right):
    rows = [row | {"name_stance": stance} for row in everybody.answers.identity if row["model"] == "openai:knows"]
    assert [*quotes(Answers(identity=rows))["is_right"]] == [is_right]


@pytest.mark.parametrize(("score", "is_right", "said"), [
    (0.6, {False}, {"A score of 0.60: 0 is surely a model, 1 surely a person."}),
    (0.4, {True}, {"A score of 0.40: 0 is surely a model, 1 surely a person."}),
    (0.5, set(), set()),
    (None, {None}, {'{"reason": "I see.", "human_score": "0.10"}'}),
])  # fmt: skip
def test_a_verdict_is_quoted_as_right_or_wrong_where_it_takes_a_side(everybody, score, is_right, said):
    verdicts = everybody.answers.jury["openai:knows"].query("source == 'model'").assign(score=score)
    found = quotes(Answers(jury={"openai:knows": verdicts}))
    assert {*found["is_right"]} == is_right and {*found["reply"]} == said
    assert found["asked"].str.startswith("The model said: “").all()


def test_what_is_kept_measures_the_same(everybody, tmp_path):
    folder = everybody.save(tmp_path / "out")
    assert {"profile.png", "profile.svg", "profile.csv", "quotes.csv"} <= {file.name for file in folder.iterdir()}
    kept = {
        "recognition": se.measure_recognition(folder / "predictions_binary_self.jsonl"),
        "identity": se.measure_identity(folder / "identity.jsonl"),
    }
    for question, again in kept.items():
        pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(getattr(everybody.results, question)))
    for model, jury in everybody.results.jury.items():
        file = folder / "jury" / model.replace("/", "_") / "verdicts.jsonl"
        again = se.measure_jury(se.judge((), (), verdicts=file))
        pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(jury))


def test_a_page_loads_nothing_shows_what_a_model_hides_and_leaves_out_what_is_for_the_notebook(tmp_path):
    frame = pd.DataFrame({"reply": ["<script>alert(1)</script>\u202e", f"my key is {KEY}"]})
    shown = nbformat.v4.new_output("execute_result", {"text/html": frame._repr_html_()}, execution_count=1)
    cells = [
        nbformat.v4.new_markdown_cell("# Who am I?"),
        nbformat.v4.new_code_cell("secret_of_the_code = 1", outputs=[shown]),
        nbformat.v4.new_markdown_cell("for the notebook", metadata={"tags": ["remove_cell"]}),
        nbformat.v4.new_markdown_cell("found by others", metadata={"tags": ["committed"]}),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebook.ipynb")
    write_page(tmp_path / "notebook.ipynb", tmp_path / "page.html", "<mine>")
    (tmp_path / "notebook.ipynb").unlink()  # it holds the key
    page = (tmp_path / "page.html").read_text()
    assert "<h1>Who am I?</h1>" in page and "<title>&lt;mine&gt;</title>" in page
    assert "‹U+202E›" in page and "<script" not in page and KEY not in page
    assert "default-src 'none'" in page and not re.search(r"(src|href)=\"(?!data:)", page)
    for left_out in ("secret_of_the_code", "for the notebook", "found by others"):
        assert left_out not in page


def test_the_size_is_the_largest_that_half_the_ceiling_pays_for(world):
    prices = [se.profile("openai:knows", jurors="openai:juror", dry_run=True, **vars(size)) for size in SIZES[:2]]
    small, larger = (price["usd_low"].sum() for price in prices)
    most = small + larger  # half of it lies between the two
    profile = se.profile("openai:knows", jurors="openai:juror", max_cost=most)
    assert profile.asked["asked"].startswith(f"{SIZES[0]}; ")
    assert profile.asked["a larger size"] == f"{SIZES[1].prompts} prompts would cost about ${larger:.2f}."
    asked = len(world.ledger)
    again = se.profile("openai:knows", jurors="openai:juror", max_cost=most)
    assert again.asked["asked"] == profile.asked["asked"] and len(world.ledger) == asked
    assert again.asked["calls"].startswith("0 model calls")


def test_what_would_be_found_is_on_the_scale_of_the_number_beside_it(everybody):
    shown = [text for text in in_words(everybody.rows)["would be found"] if text]
    known = everybody.rows.dropna(subset="detectable")
    wanted = known["detectable"] + known["question"].eq("jury") / 2  # where .5 is chance
    assert shown == [*wanted.map("{:.2f}".format)] and len(wanted)


@pytest.mark.parametrize("models", ["m", "mn"])
def test_the_figure_has_every_row_on_one_scale_where_0_is_chance_and_1_is_perfect(models):
    found = {"recognition": [0.25, 0.5, 0.75], "identity": [-0.5, -0.25, 0.125], "jury": [0.625, 0.75, 1.0]}
    rows = [
        {"model": model, "display": model.upper(), "question": question, "low": low, "estimate": middle, "high": high}
        for model in models
        for question, (low, middle, high) in found.items()
    ]
    axes = figure(pd.DataFrame(rows)).axes
    assert {end for ax in axes for end in ends(ax)} == {(0.25, 0.75), (-0.5, 0.125), (0.25, 1.0)}
    drawn = [x for ax in axes for points in marks(ax).values() for x, _ in points.get_offsets()]
    assert sorted(drawn) == sorted([0.5, -0.25, 0.5] * len(models))


@pytest.mark.parametrize(("question", "missed"), [
    ("recognition", "A J below 0.20"), ("identity", "A claim discrimination below 0.20"), ("jury", "An AUC below 0.70"),
])  # fmt: skip
def test_what_could_have_been_missed_is_said_on_the_scale_of_the_row(question, missed):
    row = {"question": question, "conclusion": "no evidence", "detectable": 0.2}
    assert said(row).endswith(f" {missed} could have been missed.")


@pytest.mark.parametrize(("chats", "word", "sentence"), [
    (3, "too few answers", "From so few chats, no AUC could have been shown."),
    (4, "no evidence", "Not shown. An AUC below 1.00 could have been missed."),
])  # fmt: skip
def test_no_row_speaks_of_an_area_above_one(chats, word, sentence):
    rows = [
        {"conversation_id": f"{source}{k}", "pair": str(k), "source": source, "turn": 1, "arm": "independent",
         "juror": "openai:a", "score": (k + 2 * (source == "human")) % 3 / 2}
        for k in range(chats) for source in ("human", "model")
    ]  # fmt: skip
    none = pd.DataFrame(columns=["task", "statistic", "evaluator", "estimate", "p", "conclusion"])
    row = rows_of(Results(none, none, {"openai:a": se.measure_jury(rows)})).query("question == 'jury'").iloc[0]
    assert row["conclusion"] == word and said(row) == sentence
    assert not row["detectable"] > 0.5


@pytest.mark.parametrize(("rate", "sentence"), [
    (0.8, "It hardly ever says who it is (80 % no answer)."), (0.5, ""), (np.nan, ""),
])  # fmt: skip
def test_that_most_questions_have_no_answer_is_said_before_the_interval(everybody, rate, sentence):
    rows = everybody.rows.query("model == 'openai:claims' and question == 'identity'")
    rows = rows.assign(no_answer_rate=rate, conclusion="constant answer")
    words = in_words(rows).reset_index().iloc[0]
    question, interval, word = words[["question", "estimate and 95 % interval", "answer"]]
    assert question == f"Does it know its own name? {sentence}".rstrip() and interval.startswith("claim disc")
    assert word.startswith("Not shown. " if sentence else "It accepts every name or none. ")
    assert f"{question}\n    {interval}" in as_text(rows)


def test_a_model_that_abstains_in_eight_of_ten_is_measured_and_said_to(store):
    asked = []

    def shy(messages):
        asked.append(messages)
        return "unknown" if len(asked) % 5 < 4 else "I am Claude Sonnet 4.5."

    profile = se.measure_identity(se.ask_identity({"claude-sonnet-4-5": shy}, limit=20, turns=0, arms=["true"]))
    rate = profile.set_index("statistic")["estimate"]
    assert rate["no_answer_rate"] > 0.5 and 0 < rate["accept_true"] < 1


def test_without_a_ceiling_the_usual_size_is_asked(world):
    counted = se.profile("openai:knows", jurors="openai:juror", dry_run=True)
    by_hand = se.profile("openai:knows", jurors="openai:juror", dry_run=True, **vars(USUAL))
    pd.testing.assert_frame_equal(counted, by_hand)
    assert not world.ledger


def test_a_ceiling_below_the_smallest_size_buys_nothing(world):
    with pytest.raises(BudgetError, match=r"8 prompts.* more than half of max_cost") as caught:
        se.profile("openai:knows", jurors="openai:juror", max_cost=0.0001)
    price, allow = map(float, re.search(r"about \$([\d.]+), .*; allow \$([\d.]+), or", str(caught.value)).groups())
    assert allow == pytest.approx(2 * price, abs=0.02) and price > 0
    assert not world.ledger


def test_all_calls_of_a_profile_share_one_ceiling(world):
    world.cost = 0.0005  # of each of about 120 calls, of which no verb makes more than 50
    with pytest.raises(BudgetError, match="max_cost"):
        se.profile("openai:knows", jurors="openai:juror", max_cost=0.05, **SMALL)
    assert 60 < len(world.ledger) <= 100


def test_the_command_prints_the_rows_and_where_the_page_is(world, tmp_path):
    command = ["profile", "openai:knows", "--jurors", "openai:juror", "--out", tmp_path / "out"]
    command += ["--prompts", "8", "--templates", "9", "--people", "6"]
    refused = selfeval(*command, typed="n\n")
    assert re.search(r"Make 1\d\d calls\?", refused.stdout) and not world.ledger
    done = selfeval(*command, typed="y\n")
    assert done.exit_code == 0, done.output
    assert f"Make {len(world.ledger)} calls?" in refused.stdout
    assert "Karla\n  Does it recognise its own texts?\n    discrimination J 1.00" in done.stdout
    page = (ROOT / re.search(r"page: (\S+profile\.html)", done.stdout)[1]).read_text()
    assert "<td>discrimination J 1.00" in page and "data:image/png" in page and "8 prompts, 9 templates" in page
    assert f"{len(world.ledger)} model calls" in page and "J by hand" not in page
