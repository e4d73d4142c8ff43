"""The paper's figures as their files show them: each mark, interval, shade and word is that of the committed table."""

import pandas as pd
import pytest
from drawn_figures import INK, dots, panels
from test_captions import read

import selfeval as se
from selfeval import ROOT
from selfeval.stats import default_rows

FIGURES = ROOT / "figures"
NAMES = se.list_models().set_index("model")["name"].to_dict() | {
    "local/qwen2.5-coder-1.5b": "Qwen2.5 Coder 1.5B",
    "local/qwen2.5-coder-1.5b-untold": "Qwen2.5 Coder 1.5B (untold)",
}
CLAIMED = {"self_accuracy": "own texts", "false_claim_rate": "others' texts"}
ASKED = {"exact_model": "Which of the authors wrote this?", "binary_self": "Did you write this?"}
EXPECTED = {}


def shows(name):
    """Let a function return the rows that a figure shows, with columns panel, name and side."""

    def keep(rows_of):
        EXPECTED[name] = rows_of
        return rows_of

    return keep


def shown(rows, panel="", name=None, side=""):
    return rows.assign(panel=panel, name=rows["evaluator"].map(NAMES) if name is None else name, side=side)


def study():
    rows = read("words_and_weights/secondary")
    return rows[~rows["evaluator"].str.endswith("-writer")]


@shows("words_and_weights")
def likelihood_style_and_answers():
    sides = {"own likelihood, per character": "how likely it finds the text", "a simple reader of style": "style alone"}
    sides["prompt shown, free reply"] = "what it answers"
    rows = study().query("statistic == 'auc_within_prompt' and what in @sides")
    return shown(rows, side=rows["what"].map(sides))


@shows("words_and_weights_claims")
def claims_by_form():
    rows = study().query("statistic in @CLAIMED and `when` == 'prompt shown'")
    return shown(rows, rows["form"], side=rows["statistic"].map(CLAIMED))


@shows("implicit_readings")
def readings():
    panels = {"yes or no": "what it answers: did you write this?", "own likelihood": "how likely it finds the text"}
    panels["style"] = "style alone, no model"
    found = []
    for place, head in {"implicit": "40 prompts", "implicit-people": "12 chats with people"}.items():
        rows = default_rows(read(f"families/{place}/implicit"), "auc_within_prompt").dropna(subset="estimate")
        rows = rows.assign(reading=rows["condition"].str.removeprefix("reading=").map(panels)).dropna(subset="reading")
        found.append(shown(rows, rows["reading"], head + ": " + rows["evaluator"].map(NAMES)))
    return pd.concat(found)


def j_and_a(file):
    rows = read(file).query("author == '' and task in @ASKED")
    a = default_rows(rows[rows["method"] == "percentile"], "advantage").assign(side="advantage A")
    return pd.concat([default_rows(rows, "discrimination").assign(side="discrimination J"), a])


@shows("recognition_advantage")
def j_and_a_of_the_three():
    rows = j_and_a("families/recognition/self_recognition")
    return shown(rows, rows["task"].map(ASKED), side=rows["side"])


@shows("fleet_advantage")
def j_and_a_of_the_simulated():
    rows = j_and_a("demo/fleet/self_recognition")
    return shown(rows, rows["task"].map(ASKED), "simulated: " + rows["evaluator"].map(NAMES), rows["side"])


@shows("provenance_claims")
def claims_by_place():
    panels = {"own_turn": "in its own earlier turn", "prefill": "at the start of its answer"}
    rows = default_rows(read("families/provenance/self_recognition").query("author == ''"), *CLAIMED)
    place = rows["condition"].str.extract("provenance=([^;]*)", expand=False)
    return shown(rows, place.map(panels).fillna("quoted in the question"), side=rows["statistic"].map(CLAIMED))


@shows("identity_claims")
def acceptance():
    names = {"accept_true": "its own name", "accept_false": "another maker's"}
    overall = "task == '' and condition == '' and statistic in @names"
    told = default_rows(read("families/identity/identity").query(overall))
    sized = default_rows(read("families/siblings/identity").query(overall + " and statistic == 'accept_true'"))
    foils = read("families/siblings/foils").query("claim != 'sibling − other maker'")
    parts = [
        shown(told, name="told its name, or not: " + told["evaluator"].map(NAMES), side=told["statistic"].map(names)),
        shown(sized, name="called by size: " + sized["evaluator"].map(NAMES), side="its own name"),
        shown(foils, name="called by size: " + foils["evaluator"].map(NAMES), side=foils["claim"]),
    ]
    return pd.concat(parts)


@shows("jury")
def juries_and_letters():
    arms = {"independent": "alone", "reask": "second look", "sham": "sham debate", "debate": "debate"}
    baselines = {"character n-grams": "letter sequences", "length": "length"}
    found = []
    for file, head, names in (
        ("jury", "No jury", baselines),
        ("jury", "Jury with the agent", arms),
        ("jury-other", "Jury without the agent", arms),
    ):
        rows = default_rows(read(f"families/{file}/jury"), "auc").query("evaluator == '' and task in @names")
        found.append(shown(rows, name=head + ": " + rows["task"].map(names)))
    return pd.concat(found)


@shows("published_j")
def published_cases_above_chance():
    heads = {
        "frontier models of 2026": "Frontier",
        "open-weight models": "Open weights",
        "judges of 2024": "Judges of 2024",
    }
    left = {"beyond its peers": "beyond its peers", "not beyond its peers": "peers not exceeded"}
    left |= {"peers not known one by one": "peers not known"}
    texts = {"Erlikhman, chat, ": "essays, ", "Erlikhman, api, ": "API texts, ", "Erlikhman, open, |Davidson, ": ""}
    rows = read("published/evaluators").dropna(subset="tier").query("usual_low > 0")
    is_frontier = rows["tier"] == "frontier models of 2026"
    gone = is_frontier.map({True: "no longer above 0", False: "not above 0"})
    head = rows["tier"].map(heads) + ", " + rows["left"].map(left).fillna(gone)
    name = head + ": " + rows["name"] + ", " + rows["study"].replace(texts, regex=True)
    found = []
    for score, panel in {"usual": "usual score", "j": "J, without habits"}.items():
        ends = {"estimate": rows[score], "low": rows[f"{score}_low"], "high": rows[f"{score}_high"]}
        found.append(shown(rows.assign(**ends), panel, name))
    return pd.concat(found)


def test_the_marks_of_published_cases_are_hollow_where_j_is_not_shown():
    rows = published_cases_above_chance().query("panel == 'J, without habits'")
    faces = [colour for *_, colour in panels(FIGURES / "published_j.svg")[1].marks]
    assert faces.count("#ffffff") == (rows["low"] <= 0).sum() > 5


@pytest.mark.parametrize("width", ["", "column"])
@pytest.mark.parametrize("name", EXPECTED)
def test_a_figure_has_each_row_of_its_table_at_its_place_and_no_other(name, width):
    expected = {
        (row["panel"], row["name"], row["side"]): [(row["estimate"], row["low"], row["high"])]
        for row in EXPECTED[name]().to_dict("records")
    }
    drawn = dots(FIGURES / width / f"{name}.svg")
    assert drawn.keys() == expected.keys() and len(expected) > 5
    for key, marks in drawn.items():
        assert marks == [pytest.approx(expected[key][0], abs=1e-4)], key


def test_the_shares_claimed_are_written_in_the_cell_of_evaluator_and_author():
    counts = read("families/recognition/counts")
    counts["own"] = counts["n"].where(counts["predicted"] == counts["evaluator"], 0)
    sums = counts.groupby(["task", "evaluator", "author"])[["own", "n"]].sum()
    share = sums["own"] / sums["n"]
    drawn = panels(FIGURES / "recognition_claimed.svg")
    assert [each.title for each in drawn] == [ASKED["binary_self"], ASKED["exact_model"]]
    models = [model for model, name in NAMES.items() if name in {name for _, name in drawn[0].names}]
    assert [NAMES[model] for model in models] == [name for _, name in drawn[0].names]
    for task, each in zip(("binary_self", "exact_model"), drawn, strict=True):
        numbers = [word for word in each.words if word.text[0].isdigit()]
        assert [word.text for word in sorted(numbers, key=lambda word: (word.y, word.x))] == [
            f"{share[task, evaluator, author]:.2f}" for evaluator in models for author in models
        ]


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "jury"])
def test_a_side_is_named_above_a_mark_of_its_own_colour(name):
    drawn = panels(FIGURES / f"{name}.svg")
    words = [(each, word) for each in drawn for word in each.words if word.colour != INK]
    assert words or name in ("implicit_readings", "published_j")
    for each, word in words:
        top = min(mark[1] for mark in each.marks)
        row = [mark for mark in each.marks if mark[2] == word.colour and mark[1] < top + 25]
        assert min(abs(mark[0] - word.x) for mark in row) < 60, word


def test_coverage_has_a_mark_for_each_scenario_below_its_number_of_prompts():
    rows = read("validation/coverage").query("statistic == 'discrimination' and prompts <= 50")
    tried_by_all = {*rows.loc[rows["method"] != "default", "scenario"]}
    is_further = (rows["method"] == "default") & ~rows["scenario"].isin(tried_by_all)
    rows = rows.assign(name=rows["method"].where(~is_further, "default, further scenarios"))
    expected = rows.groupby(["prompts", "name"])["coverage"].apply(sorted)
    drawn = dots(FIGURES / "validation_coverage.svg")
    assert {(f"{prompts} prompts", name, "") for prompts, name in expected.index} == drawn.keys()
    for (prompts, name), values in expected.items():
        marks = sorted(mark[0] for mark in drawn[f"{prompts} prompts", name, ""])
        assert marks == pytest.approx(values, abs=1e-4)
