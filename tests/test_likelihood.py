"""The likelihood of a given text, and what follows from it: requests, faults, scores and gaps, without a model."""

import math

import numpy as np
import pandas as pd
import pytest
from fake_server import FakeServer, chance, pieces
from test_client import within

import selfeval as se
from selfeval.errors import InputError
from selfeval.providers.models import get_all
from selfeval.providers.store import Store
from selfeval.recognition import texts as texts_of
from selfeval.recognition.texts import collect_likelihoods, implicit_predictions

REGISTRY = """models:
  - {id: mine/sailor, provider: llamacpp, model: sailor, display: Sailor, system: Ahoy., parameters: {temperature: 1.3}}
"""


def written(author, words, prompt="p0", text_id=0):
    """Return a text record."""
    return {"text_id": text_id, "prompt_id": prompt, "prompt": "Write.", "sample": 0, "author": author,
            "author_display": author, "text": words, "words_asked": 5}  # fmt: skip


@pytest.fixture
def ask(monkeypatch, tmp_path, registry):
    """A function that collects the likelihoods of texts under a model of a fake server; returns (rows, ledger)."""
    registry(REGISTRY)

    def asked(model, *texts, show_prompt=True, **faults):
        def work(client):
            return collect_likelihoods(client, get_all(model), [written("a", text) for text in texts], show_prompt)

        with FakeServer(**faults) as server:
            monkeypatch.setenv("LLAMACPP_BASE_URL", server.url)
            return within(Store(tmp_path / "store.sqlite"), work, 1), server.ledger

    return asked


def of_text(model, text):
    return pytest.approx(sum(chance(model, piece) for piece in pieces(text)))


# asking ---------------------------------------------------------------------------------------------------------------


def test_a_grammar_of_token_ids_forces_the_text(ask):
    [row], [tokenized, chat] = ask("mine/sailor", "The rain fell.")
    assert tokenized["path"] == "/tokenize"
    assert tokenized["body"] == {"content": "The rain fell.", "add_special": False, "parse_special": False}
    body = chat["body"]
    assert body["grammar"] == "root ::= <[0]> <[1]> <[2]>" and body["max_tokens"] == 4 and body["logprobs"] is True
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"].startswith("Write.\n\nWrite about 5 words")
    assert body["cache_prompt"] is False and not {"temperature", "likelihood"} & {*body}
    assert (row["candidate"], row["status"], row["tokens"], row["characters"]) == ("mine/sailor", "ok", 3, 14)
    assert row["logprob"] == of_text("sailor", "The rain fell.")


def test_without_its_prompt_a_text_answers_a_request_that_names_only_its_length(ask):
    text = written("a", "Rain.") | {"prompt": "Describe the rain."}
    assert texts_of.build_request(text)[0]["content"].startswith("Describe the rain.")
    [row], [*_, chat] = ask("llamacpp:a", "Rain.", show_prompt=False)
    assert chat["body"]["messages"] == texts_of.build_writing("Write a text.", 5)
    assert row["show_prompt"] is False and row["logprob"] == of_text("a", "Rain.")


def test_a_token_without_a_row_makes_the_likelihood_null_and_another_reply_is_an_error(ask):
    rows, _ = ask("llamacpp:a", "Rain \u2614 fell.", "Rain fell.")
    assert [(row["logprob"], row["tokens"], row["status"]) for row in rows] == [
        (None, None, "ok"), (of_text("a", "Rain fell."), 2, "ok"),
    ]  # fmt: skip
    [row], ledger = ask("llamacpp:b", "Snow fell.", reply="Snow melts.")
    assert (row["status"], row["logprob"], len(ledger)) == ("error", None, 2)
    assert "wrote 'Snow melts.' instead of the text" in row["error"]


@pytest.mark.parametrize(("place", "fault"), [(0, "500"), (0, "empty"), (1, "500"), (1, "200-error"), (1, "empty")])
def test_a_failed_call_is_made_again_from_its_start(ask, place, fault):
    [row], ledger = ask("llamacpp:a", "Rain fell.", faults={place: fault})
    assert row["logprob"] == of_text("a", "Rain fell.")
    paths = [entry["path"].rpartition("/")[2] for entry in ledger]
    both = ["tokenize", "completions"]
    assert paths == [*both[: place + 1], *both]


def test_who_gives_no_likelihood_is_named_or_left_out(capsys):
    texts = [written("sim/good", "Rain.", text_id=0), written("sim/chance", "Snow.", text_id=1)]
    with pytest.raises(InputError, match=r"The server of 'sim/good' gives no log-probabilities .*llama\.cpp"):
        se.likelihoods(texts, "sim/good")
    assert se.likelihoods(texts).empty
    assert "'sim/chance' gives no log-probabilities of a text; it is left out." in capsys.readouterr().out


# scores ---------------------------------------------------------------------------------------------------------------

LOGPROBS = {("p0", "a"): (-10, -20, -30), ("p0", "b"): (-40, -20, -30), ("p1", "a"): (-8, -8.5, -9)}


def test_scores_are_the_ratio_to_the_others_mean_and_the_own_likelihood_per_character():
    rows = [
        {"text_id": i, "prompt_id": prompt, "sample": 0, "author": author, "candidate": name, "logprob": logprob,
         "characters": 10 * (i + 1)}
        for i, ((prompt, author), values) in enumerate(LOGPROBS.items())
        for name, logprob in zip("abc", values, strict=True)
    ]  # fmt: skip
    rows += [{**rows[0], "text_id": 9, "candidate": name, "logprob": None if name == "c" else -1} for name in "abc"]
    found = implicit_predictions(pd.DataFrame(rows)).set_index(["condition", "evaluator_model", "text_id"]).sort_index()
    per_condition = found.groupby("condition").size()
    assert (per_condition[["reading=oracle", "reading=own likelihood"]] == 3 * 3).all(), (
        "a text without a likelihood is left out"
    )
    assert found.loc[("reading=oracle", "a"), "predicted_model"].tolist() == ["a", "b", "a"]
    assert found.loc[("reading=oracle", "c"), "true_model"].tolist() == ["a", "b", "a"]
    for i, values in enumerate(LOGPROBS.values()):
        own, *others = values
        ratio = own - math.log(sum(map(math.exp, others)) / 2)
        for name, value in {"oracle": ratio, "own likelihood": own}.items():
            score = found.loc[(f"reading={name}", "a", i), "score"]
            assert math.log(score / (1 - score)) == pytest.approx(value / (10 * (i + 1)))
    with pytest.raises(InputError, match="with and without the prompt apart"):
        implicit_predictions(pd.DataFrame(2 * rows))
    with pytest.raises(InputError, match="under each of two candidates"):
        implicit_predictions(pd.DataFrame(rows).query("candidate == 'a'"))


def known(prompts=12):
    """Return likelihoods that know all but one text of each author, and answers that say yes to every third text."""
    draw, likelihoods, answers = np.random.default_rng(0), [], []
    for i, (prompt, author) in enumerate((p, a) for p in range(prompts) for a in ("sim/good", "sim/chance")):
        about = {"text_id": i, "prompt_id": f"p{prompt}", "sample": 0}
        for name in ("sim/good", "sim/chance"):
            likely = -20 - 10 * ((name != author) != (prompt == 3)) + draw.normal()
            more = {"author": author, "candidate": name, "logprob": likely, "characters": 40}
            likelihoods.append(about | more)
            asked = {"true_model": author, "evaluator_model": name, "predicted_self": i % 3 == 0, "status": "ok"}
            score = (i % 3 == 0) / 2 + draw.uniform(0, 0.5)
            answers.append(about | asked | {"task_type": "binary_self", "score": score, "condition": {"told": True}})
    return likelihoods, answers


def test_weights_and_words_stand_side_by_side_with_their_gap():
    likelihoods, answers = known()
    result = se.measure_implicit(likelihoods, answers, n_resamples=20)
    estimates = result[result["author"] == ""].drop_duplicates(["condition", "evaluator", "statistic"])
    found = estimates.set_index(["condition", "evaluator", "statistic"])["estimate"]
    assert found["reading=oracle", "sim/good", "discrimination"] == pytest.approx(11 / 12 - 1 / 12)
    assert {name for reading, _, name in found.index if reading == "reading=own likelihood"} == {
        "auc", "auc_within_prompt",
    }  # fmt: skip
    gaps = result.tables["gaps"].query("first != 'length'")
    assert {*gaps["first"]} == {"yes or no"} and {*gaps["second"]} == {"own likelihood"}
    for gap in gaps.itertuples():
        both = [found[f"reading={name}", gap.evaluator, gap.statistic] for name in ("own likelihood", "yes or no")]
        assert gap.estimate == pytest.approx(both[0] - both[1]) and gap.low < gap.estimate < gap.high
    assert len(gaps) == 2 and (gaps["clusters"] == 12).all() and (gaps["note"] == "few_prompts").all()


def test_answers_without_probabilities_have_no_gap(tmp_path):
    likelihoods, answers = known()
    result = se.measure_implicit(likelihoods, [answer | {"score": None} for answer in answers], n_resamples=1)
    assert {*result.tables["gaps"]["first"]} == {"length"} and (se.save(result, tmp_path) / "gaps.csv").is_file()


def test_a_gap_pairs_prompts_whatever_their_order_and_leaves_out_those_of_one_reading():
    likelihoods, answers = known()
    shuffled = pd.DataFrame(answers).sample(frac=1, random_state=1).to_dict("records")
    straight, other = (
        se.measure_implicit(likelihoods, each, n_resamples=1).tables["gaps"] for each in (answers, shuffled)
    )
    pd.testing.assert_frame_equal(straight, other)
    some = se.measure_implicit(likelihoods, answers[:32], n_resamples=1).tables["gaps"].query("first != 'length'")
    assert (some["clusters"] == 8).all() and some["note"].str.contains("common_prompts").all()


@pytest.mark.parametrize(("easy", "short", "own", "said"), [
    (3, 0, 0, "claims its own more"),  # every model finds the texts of a likely
    (0, 1, 0, "claims its own more"),  # the first words are the unlikely ones, so that a short text is unlikely
    (0, 0, 3, "recognises"),
    (0, 1, 3, "claims its own more"),
    (0, 0, 0, "no evidence"),
])  # fmt: skip
def test_a_model_recognises_by_likelihood_what_neither_others_nor_the_length_tell(easy, short, own, said):
    draw, likelihoods, answers = np.random.default_rng(1), [], []
    for i, (prompt, author) in enumerate((p, a) for p in range(40) for a in "abc"):
        about = {"text_id": i, "prompt_id": f"p{prompt}", "sample": 0}
        characters = 100 + int(draw.integers(10)) + 40 * short * (author == "a")
        for name in "abc":
            each = -1 + 0.1 * (easy * (author == "a") + own * (author == name)) - short * (characters < 120) / 2
            likely = characters * (each + 0.1 * draw.normal())
            likelihoods.append(
                about | {"author": author, "candidate": name, "logprob": likely, "characters": characters}
            )
            asked = {"true_model": author, "evaluator_model": name, "predicted_self": i % 2 == 0, "status": "ok"}
            answers.append(about | asked | {"task_type": "binary_self"})
    result = se.measure_implicit(likelihoods, answers, n_resamples=1)
    of_a = result.query("evaluator == 'a' and statistic == 'auc_within_prompt'").set_index("condition")
    assert of_a.loc["reading=own likelihood", "conclusion"] == said
    rivals = ["reading=length", "reading=likelihood of b", "reading=likelihood of c"]
    assert (of_a.loc[rivals, "conclusion"] == "").all()
    assert (of_a.loc["reading=own likelihood", "estimate"] > 0.9) == (said != "no evidence")


def test_without_texts_by_third_authors_nobody_says_whether_a_text_is_likely_for_all():
    likelihoods, answers = known(40)
    result = se.measure_implicit(likelihoods, answers, n_resamples=1)
    own = result.query("condition == 'reading=own likelihood'")
    assert {*own["conclusion"]} == {"claims its own more (no peers)"} and own["note"].str.contains("no_peers").all()
