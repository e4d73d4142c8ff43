"""The registry: ids and their providers, suggestions, a registry of one's own, and what it refuses in one sentence."""

import re

import pytest

from selfeval import models
from selfeval.errors import InputError
from selfeval.models import from_callable, get, get_all


def test_the_projects_registry_has_the_models_of_the_study_and_no_name_twice():
    listed = models.models()
    study = """openai/gpt-4.1-mini moonshotai/kimi-k2 openai/gpt-4.1 deepseek/deepseek-chat-v3-0324 z-ai/glm-4.5
    x-ai/grok-4 qwen/qwen3-235b-a22b-2507 openai/gpt-5 anthropic/claude-sonnet-4 google/gemini-2.5-flash""".split()
    assert list(listed)[:10] == study
    names = [name.casefold() for model in listed.values() for name in model.all_names]
    assert len(names) == len(set(names))
    assert all(model.family and model.developer for model in listed.values())
    assert sum(model.provider.name == "local" for model in listed.values()) >= 3
    assert sum(model.provider.name == "sim" for model in listed.values()) >= 6


@pytest.mark.parametrize(
    "model_id, provider, api_name, display",
    [
        ("openai/gpt-4.1", "openrouter", "openai/gpt-4.1", "GPT-4.1"),
        ("openai:gpt-4.1", "openai", "gpt-4.1", "GPT-4.1"),
        ("openrouter:openai/gpt-4.1", "openrouter", "openai/gpt-4.1", "GPT-4.1"),
        ("openrouter:moonshotai/kimi-k2:free", "openrouter", "moonshotai/kimi-k2:free", "kimi-k2:free"),
        ("moonshotai/kimi-k2:free", "openrouter", "moonshotai/kimi-k2:free", "kimi-k2:free"),
        ("somebody/new-model", "openrouter", "somebody/new-model", "new-model"),
        ("ollama:llama3.2:1b", "ollama", "llama3.2:1b", "llama3.2:1b"),
        ("vllm:Qwen/Qwen3-8B", "vllm", "Qwen/Qwen3-8B", "Qwen3-8B"),
        ("local/smollm2-135m", "local", "smollm2-135m", "SmolLM2"),
        ("local/smollm2-135m-hot", "local", "smollm2-135m", "SmolLM2 (hot)"),
        ("sim/perfect", "sim", "perfect", "Perfect"),
    ],
)
def test_an_id_names_its_provider(model_id, provider, api_name, display):
    model = get(model_id)
    assert (model.provider.name, model.api_name, model.display) == (provider, api_name, display)


def test_a_model_at_another_provider_keeps_its_names_and_not_its_price():
    there, here = get("openai:gpt-4o"), get("openai/gpt-4o")
    assert there.id == "openai:gpt-4o" and there.all_names == here.all_names and there.developer == "OpenAI"
    assert here.price and there.price is None
    assert get("openrouter:openai/gpt-4o") == here


@pytest.mark.parametrize(
    "wrong, suggestion",
    [
        ("gpt-4.1", "openai/gpt-4.1"),
        ("local/smollm", "local/smollm2-135m"),
        ("sim/perfekt", "sim/perfect"),
        ("sim:perfect", "sim/perfect"),
        ("qqqq", None),
        ("openrouter:", None),
        ("/x", None),
        ("openai/", None),
    ],
)
def test_an_unknown_id_is_one_sentence_with_a_suggestion(wrong, suggestion):
    with pytest.raises(InputError) as caught:
        get(wrong)
    assert f"Unknown model {wrong!r}: " in str(caught.value) and "`developer/model` (OpenRouter)" in str(caught.value)
    assert suggestion is None or f"did you mean {suggestion!r}?" in str(caught.value)


def test_a_provider_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(InputError, match="'nosuch:gpt': there is no provider 'nosuch'; known are openrouter, openai, "):
        get("nosuch:gpt")
    with pytest.raises(InputError, match="Unknown model 'openai:': `selfeval models` lists"):
        get("openai:")


@pytest.mark.parametrize("wrong", ["", "  ", None, 5, ["sim/perfect"], {}])
def test_an_id_is_a_text(wrong):
    with pytest.raises(InputError, match=re.escape(f"A model id must be a non-empty text, got {wrong!r}.")):
        get(wrong)


def test_a_list_of_models():
    mine = from_callable(lambda messages: "x", "mine", "Mine")
    assert [m.id for m in get_all(["sim/good", mine])] == ["sim/good", "mine"]
    assert get_all("sim/good") == [get("sim/good")] and get_all(mine) == [mine]
    with pytest.raises(InputError, match=r"must name at least one, got \[\]"):
        get_all([])
    with pytest.raises(InputError, match="'sim/good' is in the list twice"):
        get_all(["sim/good", "sim/perfect", "sim/good"])


@pytest.mark.parametrize("wrong", [None, "gpt", 5])
def test_a_model_is_made_of_a_function(wrong):
    with pytest.raises(InputError, match=re.escape(f"A model is made of a function of messages, got {wrong!r}.")):
        from_callable(wrong, "my/y")


def test_a_registry_of_ones_own_adds_and_replaces(registry):
    registry("""
providers:
  lab: {base_url: 'http://127.0.0.1:1/v1', keys: [LAB_KEY], seeded: true, deadline: 9}
models:
  - {id: lab/a, provider: lab, model: a-7b, display: A, names: [Model A], price: {input: 1, output: 2.5}}
  - {id: 'lab:b', display: B, system: Be B., parameters: {temperature: null}}
  - {id: openai/gpt-4o, display: Our 4o}
""")
    assert (get("lab/a").provider.name, get("lab/a").api_name, get("lab/a").names) == ("lab", "a-7b", ("Model A",))
    assert (get("lab:b").api_name, get("lab:b").parameters) == ("b", {"temperature": None})
    assert get("lab:c").provider.deadline == 9 and not get("lab:c").listed
    assert get("openai/gpt-4o").display == "Our 4o" and get("openai/gpt-4.1").display == "GPT-4.1"
    assert models.display_names(["lab/a", "human", "lab:c"]) == {"lab/a": "A"}


WRONG = {
    "models: [{id: a/b, display: B, famly: x}]": "unknown field `famly` in 'a/b'; did you mean `family`?",
    "providers: {p: {bse_url: x}}": "unknown field `bse_url` in 'p'; did you mean `base_url`?",
    "models: [{id: a/b, display: B, zzz: x}]": "unknown field `zzz` in 'a/b'; known are id, ",
    "models: [{id: a/b}]": "a model without `id` or `display`: {'id': 'a/b'}",
    "models: [{display: B}]": "a model without `id` or `display`",
    "models: [7]": "a model without `id` or `display`: 7",
    "models: [{id: b, display: B}]": "gives 'b' a provider that it does not define",
    "models: [{id: a/b, display: B, provider: nobody}]": "gives 'a/b' a provider that it does not define",
    "models: [{id: a/b, display: 4.1}]": "in 'a/b' a `display` of the wrong form: 4.1",
    "models: [{id: a/b, display: B, names: Claude}]": "in 'a/b' a `names` of the wrong form: 'Claude'",
    "models: [{id: a/b, display: B, names: [4.1]}]": "in 'a/b' a `names` of the wrong form: [4.1]",
    "models: [{id: a/b, display: B, price: {input: 1}}]": "in 'a/b' a `price` of the wrong form: {'input': 1}",
    "models: [{id: a/b, display: B, call: os.system}]": "in 'a/b' a `call` of the wrong form: 'os.system'",
    "models: [{id: a/b, display: B, parameters: 3}]": "in 'a/b' a `parameters` of the wrong form: 3",
    "providers: {p: {base_url: x, concurrency: 0}}": "in 'p' a `concurrency` of the wrong form: 0",
    "providers: {p: {base_url: x, deadline: soon}}": "in 'p' a `deadline` of the wrong form: 'soon'",
    "providers: {p: http://x}": "must give the provider 'p' fields, got 'http://x'",
    "providers: [p]": "must have `providers` (by name) and `models` (a list) and no more",
    "model: []": "must have `providers` (by name) and `models` (a list) and no more",
    "just text": "must have `providers` (by name) and `models` (a list) and no more",
    "models: [{id: a/b, display: B, price: {input: -1, output: 1}}]": "a `price` of the wrong form: {'input': -1,",
    "models: [{id: a/b, display: B, price: {input: .nan, output: 1}}]": "a `price` of the wrong form: {'input': nan,",
    "models: [{id: a/b, display: B, price: {input: 1, output: .inf}}]": "a `price` of the wrong form: {'input': 1, 'o",
    "models: [{id: a/b, display: B, price: {input: 1, output: true}}]": "a `price` of the wrong form: {'input': 1, 'o",
    "models: [{id: a/b, display: ' '}]": "in 'a/b' a `display` of the wrong form: ' '",
    "models: [{id: ' ', display: B, provider: openai}]": "in ' ' a `id` of the wrong form: ' '",
    "models: [{id: a/b, display: B}, {id: a/c, display: b}]": "gives the display 'b' to two models; each needs its own",
    "models: [{id: a/b, display: B}, {id: a/b, display: C}]": "gives the id 'a/b' to two models; each needs its own",
    "models: [{id: a/b, display: B, provider: [openrouter]}]": "gives 'a/b' a provider that it does not define",
    "models: [{id: a/b, display: B, 1: 2}]": "unknown field `1` in 'a/b'; known are id, ",
    "models: [{1: 2}]": "a model without `id` or `display`: {1: 2}",
    "models: [{id: a/b, display: 2026-13-45}]": "cannot be read: month must be in 1..12",
    f"models: {'[' * 5000}": "cannot be read: maximum recursion depth exceeded",
    "providers: {p: {base_url: x, concurrency: true}}": "in 'p' a `concurrency` of the wrong form: True",
    "models: [": "cannot be read: while parsing",
    "models: !!python/object/apply:os.system [true]": "cannot be read: could not determine a constructor",
}


@pytest.mark.parametrize("text, message", WRONG.items())
def test_a_wrong_registry_is_one_sentence_that_names_the_file(registry, text, message):
    path = registry(text)
    with pytest.raises(InputError, match=re.escape(f"The registry {path} ")) as caught:
        get("sim/perfect")
    assert message in str(caught.value)


def test_a_registry_that_is_not_there_or_not_text(tmp_path, monkeypatch):
    for name, content in (("none.yaml", None), ("latin.yaml", "models: [{id: a/b, display: é}]".encode("latin-1"))):
        if content:
            (tmp_path / name).write_bytes(content)
        monkeypatch.setenv("SELFEVAL_MODELS", str(tmp_path / name))
        with pytest.raises(InputError, match=rf"The registry .*{name} cannot be read: "):
            models.models()
