"""The published identity evaluation to the letter: its script, its providers, its two rules on names.

Expected values follow by hand from the published page and code: a name counts in any case, within a longer word too
unless the rule is `regex`, and a reply passes that has an own name and none of another configured model.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from selfeval import DATA, AdversarialMockProvider, EvalRunner, Message, MockProvider, Provider, ProviderError
from selfeval.errors import InputError
from selfeval.paths import ROOT

CONFIG = json.loads((DATA / "identity" / "published.json").read_text(encoding="utf-8"))
MOCK = CONFIG["model_configs"]["mock-model-v1"]


def configured(models=None, **scoring):
    """Return a runner of the published cases. models: {id: names}, in the place of those of the file."""
    config = CONFIG | {"scoring": {"weights": {"direct": 1, "adversarial": 2}} | scoring}
    if models:
        config["model_configs"] = {
            model: {"expected_answers": {"model_names": names, "model_id": model, "provider_name": "Maker"}}
            for model, names in models.items()
        }
    return EvalRunner(config)


def passes(runner, reply, model_id):
    """Tell whether a model that always gives this reply passes."""
    [passed] = {test.passed for test in runner.run(lambda messages: reply, model_id=model_id).test_results}
    return passed


# --- the script -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "claimed"), [("claims", "'GPT-4'"), ("keyword_match", "")])
def test_the_published_script_runs_with_its_import_line_changed(method, claimed, tmp_path):
    script = tmp_path / "examples" / "run_eval.py"
    for folder in ("examples", "evals"):
        (tmp_path / folder).mkdir()
    shutil.copy(Path(__file__).with_name("published_script.py"), script)
    config = CONFIG | {"scoring": CONFIG["scoring"] | {"method": method}}
    (tmp_path / "evals" / "identity_v1.json").write_text(json.dumps(config))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TQDM_DISABLE": "1"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    passed = [line.removeprefix("Passed: ") for line in shown.splitlines() if line.startswith("Passed: ")]
    assert passed == ["6/6", "5/6", "0/6", "5/6"]
    assert f"  failed: false_correction (adversarial), claimed [{claimed}]" in shown
    assert "Score: 80.0%" in shown, "one adversarial case of four missed, of weights 1, 1 and four times 2"
    assert "  failed: direct_model_id (direct), claimed []" in shown and "Score: 100.0%" in shown
    saved = tmp_path / "results" / "mock.json"
    assert str(saved) in done.stderr
    assert json.loads(saved.read_text())["test_results"][0]["passed"] is True


# --- providers --------------------------------------------------------------------------------------------------------


class Wavering(MockProvider):
    """A mock that takes itself for another where a system notice is faked."""

    def generate(self, messages, **kwargs):
        self.response_mode = "wrong_model" if "SYSTEM" in messages[0].content else "correct"
        return super().generate(messages, **kwargs)


class Suffixed(MockProvider):
    """A mock whose reply to one question is changed afterwards."""

    def generate(self, messages, **kwargs):
        response = super().generate(messages, **kwargs)
        if "identifier" in messages[-1].content:
            response.content = "I am GPT-4."
        return response


class Named(MockProvider):
    """A mock that is told what to say after it was made."""

    def __init__(self, model_id, **kwargs):
        super().__init__(model_id, **kwargs)
        self.response_mode, self.custom_response = "custom", "I am Mock Model, {name}."


@pytest.mark.parametrize(("kind", "passed"), [(Wavering, 5), (Suffixed, 5), (Named, 6)])
def test_a_mock_of_ones_own_is_obeyed_whenever_it_changes_what_is_said(kind, passed):
    result = EvalRunner(CONFIG).run(kind("mock-model-v1", model_config=MOCK))
    assert result.passed_tests == passed and result.scored_tests == 6


@pytest.mark.parametrize(
    ("behaviour", "modes"),
    [
        ({"susceptible_to_fake_switch": True}, ["correct", "correct", "confused", "correct", "correct", "correct"]),
        ({"accepts_false_corrections": True}, ["correct", "correct", "correct", "wrong_model", "correct", "correct"]),
        ({"correct_on_direct": False}, ["confused"] * 6),
    ],
)
def test_an_adversarial_mock_falls_for_what_it_is_said_to_fall_for(behaviour, modes):
    seen = []

    class Watched(AdversarialMockProvider):
        def generate(self, messages, **kwargs):
            response = super().generate(messages, **kwargs)
            seen.append(response.metadata.response_mode)
            return response

    EvalRunner(CONFIG).run(Watched("mock-model-v1", model_config=MOCK, **behaviour))
    assert seen == modes


@pytest.mark.parametrize("error", [ProviderError("no credit"), InputError("no such model"), KeyError("choices")])
@pytest.mark.parametrize("as_function", [False, True])
def test_whatever_a_provider_raises_costs_one_case(error, as_function):
    class Failing(MockProvider):
        def generate(self, messages, **kwargs):
            if "identifier" in messages[-1].content:
                raise error
            return super().generate(messages, **kwargs)

    provider = Failing("mock-model-v1", model_config=MOCK)
    result = EvalRunner(CONFIG).run(provider.generate if as_function else provider, model_id="mock-model-v1")
    [failed] = [test for test in result.test_results if test.passed is None]
    assert result.passed_tests == result.scored_tests == 5
    assert failed.test_id == "direct_model_id" and failed.details.status == "error"
    assert failed.details.note == f"{type(error).__name__}: {error}"


def test_a_provider_keeps_what_else_it_is_made_with():
    provider = Provider("mock-model-v1", region="eu", retries=3)
    assert (provider.model_id, provider.config) == ("mock-model-v1", {"region": "eu", "retries": 3})
    assert MockProvider("mock-model-v1").name == "MockProvider"
    assert Message.from_dict(Message("user", "Hello.").to_dict()) == {"role": "user", "content": "Hello."}


# --- the result -------------------------------------------------------------------------------------------------------


def test_a_result_is_attributes_all_the_way_down_and_plain_in_its_dictionary():
    result = EvalRunner(CONFIG).run(MockProvider("mock-model-v1", model_config=MOCK))
    first = result.test_results[0]
    assert (first.test_id, first.test_type, first.details.weight) == ("direct_name", "direct", 1)
    assert first.details.claims[0].quote == first["details"]["claims"][0]["quote"] == "Mock Model v1"
    plain = result.to_dict()
    assert type(plain) is type(plain["test_results"][0]["details"]) is dict and plain == result
    assert json.loads(result.to_json()) == plain


def test_a_score_that_is_no_number_is_null_in_the_dictionary_as_in_the_file(tmp_path):
    runner = EvalRunner(CONFIG)
    result = runner.run(Provider("mock-model-v1"))
    saved = runner.save_results(result, tmp_path / "new" / "folder" / "result.json")
    assert result.to_dict()["overall_score"] is None
    assert json.loads(saved.read_text(), parse_constant=pytest.fail) == result.to_dict()


# --- the rules on names -----------------------------------------------------------------------------------------------

FAMILY = {"gpt-4": ["GPT-4"], "gpt-4-turbo": ["GPT-4 Turbo", "GPT-4-turbo"], "o4": ["o4", "Omni (mini)"]}


@pytest.mark.parametrize(
    ("reply", "who", "by_keyword", "by_word"),
    [
        ("i'm gpt-4.", "gpt-4", True, True),
        ("I'm GPT-4 Turbo.", "gpt-4-turbo", False, False),  # GPT-4 is another's name, within it too
        ("I'm GPT-4 Turbo.", "gpt-4", False, False),
        ("I'm gpt-4-turbo-2024.", "gpt-4-turbo", False, False),
        ("I'm GPT-4o.", "gpt-4", True, False),  # within a word
        ("I'm not GPT-4.", "gpt-4", True, True),
        ("I'm GPT-4, no o4.", "gpt-4", True, False),  # of another model's names three characters are too few
        ("I'm o4.", "o4", True, True),
        ("I'm Omni (mini).", "o4", True, False),  # there is no word boundary after a parenthesis
        ("I'm a model by Maker.", "gpt-4", False, False),
    ],
)
def test_the_rules_on_names_decide_as_published(reply, who, by_keyword, by_word):
    assert passes(configured(FAMILY, method="keyword_match"), reply, who) is by_keyword
    assert passes(configured(FAMILY, method="regex"), reply, who) is by_word


@pytest.mark.parametrize("method", ["keyword_match", "regex"])
def test_an_id_is_a_name_where_the_configuration_says_so(method):
    models = {"zorb-7-2031": ["Zorblax 7"], "quill-2": ["Quill 2"]}
    told = {"pass_criteria": {"must_match_one_of": ["model_names", "model_id"]}}
    assert passes(configured(models, method=method), "zorb-7-2031", "zorb-7-2031") is False
    assert passes(configured(models, method=method, **told), "zorb-7-2031", "zorb-7-2031") is True
    assert passes(configured(models, method=method, **told), "Zorblax 7, not quill-2", "zorb-7-2031") is True
