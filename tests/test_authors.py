"""Which author of a corpus an evaluator is: by names, by hand, and never by a guess."""

import pytest
from fake_server import FakeServer
from recognition_records import texts_of

import selfeval as se
from selfeval.errors import InputError
from selfeval.providers.models import from_callable, get, get_all
from selfeval.recognition.prompts import Condition
from selfeval.recognition.run import design, match_authors


def matched(names, evaluators, **said):
    """Return the authors of the first prompt's texts after they were matched."""
    texts = match_authors(texts_of(*names), get_all(evaluators), **said)
    return [text["author"] for text in texts if text["prompt_id"] == "p0"]


def refused(names, evaluators, **said):
    """Return the sentence that says why these cannot be matched."""
    with pytest.raises(InputError) as caught:
        matched(names, evaluators, **said)
    return str(caught.value)


def test_a_table_with_display_names_counts_an_evaluators_own_texts_as_its_own(own_store, registry):
    """It was told that it is GPT-4.1, said yes to the texts of GPT-4.1, and each yes was a false claim."""
    with FakeServer(reply="YES") as server:
        registry(f"providers: {{openrouter: {{base_url: '{server.url}'}}}}")
        how = {"tasks": "binary_self", "answer": "free", "score": "none"}
        records = se.collect_predictions(texts_of("GPT-4.1", "Ann"), "openai/gpt-4.1", **how)
        assert all("You are GPT-4.1." in entry["body"]["messages"][0]["content"] for entry in server.ledger)
    assert records[["true_model", "predicted_self", "is_correct"]].to_numpy().tolist() == (
        [["openai/gpt-4.1", True, True], ["Ann", True, False]] * 2
    )


@pytest.mark.parametrize(
    "author, evaluator",
    [
        ("openai/gpt-4.1", "openai/gpt-4.1"),
        ("gpt 4.1", "openai/gpt-4.1"),
        ("kimi-k2-instruct", "moonshotai/kimi-k2"),  # another name of the registry
        (("m1", "GPT-4.1"), "openai/gpt-4.1"),
        ("openai/gpt-4.1", "openai:gpt-4.1"),  # the same model of another provider
    ],
)
def test_an_author_is_the_evaluator_that_is_called_so(author, evaluator):
    assert matched([author, "Ann"], [evaluator]) == [evaluator, "Ann"]


def test_authors_are_said_by_hand_by_name_or_by_display_name():
    authors = [("m1", "Mystery one"), "m2", "human"]
    ids = ["openai/gpt-4.1", "x-ai/grok-4"]
    assert matched(authors, ids, authors={"Mystery one": ids[1], "m2": ids[0]}) == [ids[1], ids[0], "human"]
    mine = from_callable(lambda messages, **_: "NO", "mine/f")
    assert matched(["a", "b"], [mine], authors={"b": "mine/f"}) == ["a", "mine/f"]
    for wrong, sentence in (({"m3": ids[0]}, "names 'm3'"), ({"m2": "gtp"}, "'gtp'"), ("m2", "got 'm2'")):
        assert sentence in refused(authors, ids, authors=wrong)


def test_a_name_of_two_is_an_error(registry):
    twins = ["openai/gpt-4.1", "openai:gpt-4.1"]
    assert "'GPT-4.1' of the corpus and 'openai/gpt-4.1', 'openai:" in refused(["GPT-4.1", "Ann"], twins)
    assert "'GPT-4.1', 'gpt-4.1' of the corpus and 'openai" in refused(["GPT-4.1", "gpt-4.1", "Ann"], twins[:1])
    registry("models: [{id: my/variant, display: GPT-4.1 (terse), names: [GPT-4.1]}]")
    both = ["openai/gpt-4.1", "my/variant"]  # a variant may answer to the name of its base, and is not its base
    assert matched(["openai/gpt-4.1", "my/variant"], both) == both
    assert "'my/variant' wrote no text" in refused(["openai/gpt-4.1", "Ann"], ["my/variant"])


def test_an_author_whose_name_two_models_bear_is_none_of_them(registry, own_store):
    registry("models: [{id: 'openai:a', display: A, names: [Twin]}, {id: 'openai:b', display: B, names: [Twin]}]")
    asked = se.collect_predictions(texts_of("Twin", "openai/gpt-4.1"), tasks="binary_self", dry_run=True)
    assert [*asked["model"]] == ["openai/gpt-4.1"]


def test_an_evaluator_that_wrote_nothing_is_refused_unless_strangers_are_allowed():
    asked = ["Ann", "GPT-4"], ["openai:gpt-4o"]
    assert refused(*asked).startswith("'openai:gpt-4o' wrote no text of the corpus") and "`allow" in refused(*asked)
    assert matched(*asked, allow_strangers=True) == ["Ann", "GPT-4"]


def test_a_stranger_that_is_called_like_an_author_is_not_asked(registry):
    """Also without `match_authors`, and where strangers are allowed."""
    for authors in (["GPT-4.1", "Ann"], ["openai/gpt-4.1", "Ann"], [("m1", "GPT-4.1"), "Ann"]):
        with pytest.raises(InputError, match=r"'openai:gpt-4.1' is called 'GPT-4.1', like an author of the corpus"):
            design([get("openai:gpt-4.1")], texts_of(*authors), Condition(), tasks="exact_model")
