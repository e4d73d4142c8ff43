"""What the jury's notebook shows, from conversations to sentences, with simulated jurors."""

import asyncio

import pandas as pd
import pytest

from selfeval import figures, models
from selfeval.asking.client import Client
from selfeval.asking.store import Store
from selfeval.errors import InputError
from selfeval.roleplay import report
from selfeval.roleplay.jury import Jury, hold
from selfeval.roleplay.transcripts import Conversation, Turn, render, write_conversations
from selfeval.stats.jury import jury_table

JURY = Jury([f"sim/juror-{name}" for name in ("lenient", "stern", "stubborn")])


def judged(humans, arms, jury=JURY, files=(), exchanges=2):
    async def run():
        async with Client(8, Store("unused.sqlite", replay=True)) as client:
            talker = models.get("sim/talker")
            cases = await report.docket(client, files, humans=humans, exchanges=exchanges, agent=talker)
            return cases, pd.DataFrame(await hold(client, jury, cases, arms, label=None))

    return asyncio.run(run())


@pytest.fixture(scope="module")
def run():
    cases, records = judged(6, ["personas", "reask", "debate"])
    table = jury_table(records, n_resamples=50)
    return cases, records, table, report.baselines(JURY, cases, n_resamples=50)


def test_controls_come_in_pairs_with_equal_questions(run):
    cases = run[0]
    assert [case.source for case in cases] == ["human"] * 6 + ["model"] * 6
    for person, twin in zip(cases[:6], cases[6:], strict=True):
        assert twin.meta["pair"] == person.conversation_id
        assert [e.question for e in twin.exchanges()] == [e.question for e in person.exchanges()]
        assert [e.answer for e in twin.exchanges()] != [e.answer for e in person.exchanges()]


def test_verdicts_are_means_of_the_last_round(run):
    _, records, _, _ = run
    found = report.verdicts(records)
    assert len(found) == 12 * 2 * 3
    for row in found.sample(10, random_state=0).itertuples():
        part = records[(records[report.VERDICT] == [row.conversation_id, row.turn, row.arm]).all(axis=1)]
        assert row.score == pytest.approx(part[part["round"] == part["round"].max()]["score"].mean())
    assert set(report.verdicts(records, "majority")["score"]) <= {0.0, 0.5, 1.0}


def test_costs_count_statements_and_missing_scores():
    _, records = judged(2, ["personas"], Jury("sim/juror-silent"))
    [row] = report.costs(records).to_dict("records")
    silent = int(records["score"].isna().sum())
    assert 0 < silent == row["no_score"] == row["repaired"] and row["statements"] == len(records) == 4 * 2 * 3
    assert row["prompt_tokens"] > 0 and row["dollars"] == 0


def test_tables_and_sentences_say_what_was_planted(run):
    *_, table, base = run
    areas = report.summary(pd.concat([table, base]), ["auc", "paired_accuracy"])
    assert list(areas["arm"]) == ["personas", "reask", "debate", "length", "character n-grams"]
    assert all("[" in text for text in areas["auc"])
    sentences = " ".join(report.conclusions(table, base))
    shorter = " ".join(report.conclusions(table, base.assign(estimate=0.05, low=0.0, high=0.38)))
    assert "baseline length: AUC 0.05 [0.00, 0.38], p = " in shorter
    assert "; people's answers are the shorter ones, which reversed is 0.95 [0.62, 1.00]" in shorter
    assert "debate: tells people from models (AUC" in sentences and "baseline length: AUC" in sentences
    assert "relative to a second look" in sentences
    assert report.summary(table, ["leniency"], jurors=True)["juror"].nunique() == 3
    assert report.summary(table, ["no such statistic"]).empty


def test_every_figure_is_drawn_and_fewer_without_people(run):
    _, records, table, base = run
    both = pd.concat([table, base], ignore_index=True)
    kinds = {f"{kind}_jury" for kind in ("arms", "differences", "turns", "shifts", "areas")}
    assert set(figures.draw("jury", {"jury": both, "verdicts": report.verdicts(records)})) == kinds
    models_alone = records[records["source"] == "model"]
    alone = {"jury": jury_table(models_alone, n_resamples=50), "verdicts": report.verdicts(models_alone)}
    assert set(figures.draw("jury", alone)) == kinds - {"areas_jury"}


@pytest.mark.parametrize("score", [1.0, None])
@pytest.mark.filterwarnings("error")
def test_a_jury_that_always_says_the_same_or_nothing_can_be_looked_at(run, score):
    """The embedded model gives nearly everybody 1.00: figures, tables and sentences have to stand that."""
    _, records, *_ = run
    same = records.assign(score=score, status="ok" if score else "no_answer").astype({"score": float})
    table = jury_table(same, n_resamples=50)
    drawn = figures.draw("jury", {"jury": table, "verdicts": report.verdicts(same)})
    assert ("turns_jury" in drawn) == (score is not None)
    sentences = report.conclusions(table)
    assert len(sentences) == 4 and ("changed no mean score" in sentences[-1]) == (score is not None)
    assert all("not shown to tell" in s or "cannot be estimated" in s for s in sentences[:3])


def test_without_people_there_is_no_baseline_and_the_sentence_says_so(run):
    cases, records, *_ = run
    assert report.baselines(JURY, cases[6:]).empty and report.baselines(JURY, [cases[0], cases[6]]).empty
    table = jury_table(records[records["source"] == "model"], n_resamples=50)
    assert all("AUC" not in sentence for sentence in report.conclusions(table))


def test_a_conversation_is_shown_with_every_verdict_and_nothing_in_it_is_code(run):
    cases, records, *_ = run
    statements = records.to_dict("records")
    page = render(cases[0], statements, {"sim/juror-stern": "Stern"})._repr_html_()
    assert "B is</div>" in page and ">a person</pre>" in page and "Stern, " in page
    text = str(render(cases[0], statements))
    first = report.verdicts(records).query("conversation_id == @cases[0].conversation_id").iloc[0]
    assert f"jury on answer 1, {first.arm}: {first.score:.2f}" in text
    assert text.count("jury on answer") == 2 * 3 and text.count("round 2, sim/juror-stern, ") == 2 * 2
    assert text.index("A, question 1") < text.index("B, answer 1") < text.index("jury on answer 1, personas")
    evil = "<script>alert(1)</script> <b>bold\x1b[2J"
    conversation = Conversation(evil, [Turn("customer", evil), Turn("agent", evil)], meta={"agent_model": evil})
    shown = render(conversation, statements)
    assert str(shown) == str(render(conversation)) and "\x1b" not in str(shown)
    assert "<script" not in shown._repr_html_() and shown._repr_html_().count("&lt;script&gt;") == 4


def test_files_and_controls_are_judged_together(tmp_path):
    path = tmp_path / "mine.jsonl"
    turns = [Turn("customer", "Hi"), Turn("agent", "Hello, how are you?")]
    write_conversations(path, [Conversation("mine", turns)])
    cases, records = judged(1, ["independent"], files=[str(path)])
    assert [case.source for case in cases] == ["model", "human", "model"] and len(records) == (1 + 2 + 2) * 3


@pytest.mark.parametrize(
    ("humans", "said"), [(0, "There is nothing to judge"), (-1, "`humans` must be a whole number")]
)
def test_nothing_to_judge_is_one_sentence(humans, said):
    with pytest.raises(InputError, match=said):
        judged(humans, ["independent"])
