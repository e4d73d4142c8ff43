"""The registry: ids and their providers, suggestions, a registry of one's own, and what it refuses in one sentence."""

import re
from dataclasses import replace

import pytest

import selfeval as se
from selfeval import ROOT
from selfeval.errors import InputError
from selfeval.identity.run import identity
from selfeval.providers import models
from selfeval.providers.models import from_callable, get, get_all


def test_the_projects_registry_has_the_models_of_the_study_and_no_name_twice():
    listed = models.models()
    study = """openai/gpt-4.1-mini moonshotai/kimi-k2 openai/gpt-4.1 deepseek/deepseek-chat-v3-0324 z-ai/glm-4.5
    x-ai/grok-4 qwen/qwen3-235b-a22b-2507 openai/gpt-5 anthropic/claude-sonnet-4 google/gemini-2.5-flash""".split()
    assert list(listed)[:10] == study
    names = [name.casefold() for model in listed.values() for name in model.all_names]
    assert len(names) == len(set(names))
    assert all(model.family and model.developer for model in listed.values())


@pytest.mark.parametrize(("model_id", "provider", "api_name", "display"), [
    ("openai/gpt-4.1", "openrouter", "openai/gpt-4.1", "GPT-4.1"), ("openai:gpt-4.1", "openai", "gpt-4.1", "GPT-4.1"),
    ("openrouter:openai/gpt-4.1", "openrouter", "openai/gpt-4.1", "GPT-4.1"),
    ("moonshotai/kimi-k2:free", "openrouter", "moonshotai/kimi-k2:free", "kimi-k2:free"),
    ("ollama:llama3.2:1b", "ollama", "llama3.2:1b", "llama3.2:1b"), ("sim/perfect", "sim", "perfect", "Perfect"),
    ("local/smollm2-135m-hot", "local", "smollm2-135m", "SmolLM2 (hot)"),
])  # fmt: skip
def test_an_id_names_its_provider(model_id, provider, api_name, display):
    model = get(model_id)
    assert (model.provider.name, model.api_name, model.display) == (provider, api_name, display)


def test_a_model_at_another_provider_keeps_its_names_and_not_its_price():
    there, here = get("openai:gpt-4o"), get("openai/gpt-4o")
    assert there.id == "openai:gpt-4o" and there.all_names == here.all_names and there.developer == "OpenAI"
    assert here.price and there.price is None and get("openrouter:openai/gpt-4o") == here


@pytest.mark.parametrize(("wrong", "suggestion"), [
    ("gpt-4.1", "openai/gpt-4.1"), ("sim:perfect", "sim/perfect"), ("openrouter:", None), ("openai/", None),
    ("nosuch:gpt", None), ("", None),
])  # fmt: skip
def test_an_unknown_id_is_one_sentence_with_a_suggestion_and_the_providers(wrong, suggestion):
    with pytest.raises(InputError, match=re.escape(f"Unknown model {wrong!r}")) as caught:
        get(wrong)
    assert "(by openrouter, openai, " in str(caught.value)
    assert suggestion is None or f"; did you mean {suggestion!r}?" in str(caught.value)
    with pytest.raises(InputError, match=r"A model must be an id \(a text\) or a Python function, got"):
        get([wrong])


def test_a_list_of_models():
    mine = from_callable(lambda messages: "x", "mine", "Mine")
    assert [m.id for m in get_all(["sim/good", mine])] == ["sim/good", "mine"]
    assert get_all("sim/good") == [get("sim/good")] and get_all(mine) == [mine]
    with pytest.raises(InputError, match=r"must name at least one, got \[\]"):
        get_all([])
    with pytest.raises(InputError, match="'sim/good' is in the list twice"):
        get_all(["sim/good", "sim/perfect", "sim/good"])


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
    assert get("lab:c").provider.deadline == 9
    assert get("openai/gpt-4o").display == "Our 4o" and get("openai/gpt-4.1").display == "GPT-4.1"
    assert models.display_names(["lab/a", "human", "lab:c"]) == {"lab/a": "A"}


WRONG = {
    "models: [{id: a/b, display: B, famly: x}]": "models.a/b.famly: unknown field; did you mean 'family'?; known",
    "model: []": "model: unknown field; did you mean 'models'?; known are providers, models.",
    "models: [7]": "models.0: Input should be a valid dictionary, got 7",
    "models: [{display: B}]": "models.0.id: Field required",
    "models: [{id: a/b, display: B, names: [4.1]}]": "models.a/b.names.0: Input should be a valid string, got 4.1",
    "models: [{id: a/b, display: B, price: {input: 1}}]": "price: Dictionary should have at least 2 items",
    "models: [{id: a/b, display: B, price: {input: -1, output: 1}}]": "price.input: Input should be greater than or",
    "models: [{id: a/b, display: B, price: {input: 1, output: .inf}}]": "price.output: Input should be less than",
    "providers: {p: {base_url: x, concurrency: 0}}": "providers.p.concurrency: Input should be greater than 0, got 0",
    "models: [{id: a/b, display: B}, {id: a/c, display: b}]": "gives the display 'b' to two models; each needs its own",
    f"models: {'[' * 5000}": "cannot be read: maximum recursion depth exceeded",
    "models: !!python/object/apply:os.system [true]": "cannot be read: could not determine a constructor",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_a_wrong_registry_is_one_sentence_that_names_the_file(registry, text, message):
    path = registry(text)
    with pytest.raises(InputError, match=re.escape(f"The registry {path} ")) as caught:
        get("sim/perfect")
    assert message in str(caught.value)


def always_yes(messages, **_):
    return "YES"


def test_what_was_given_answers_in_every_later_verb(own_store, server):
    fake = server()
    for given in (from_callable(always_yes, "mine/claude"), {"mine/q": always_yes}, always_yes):
        texts = se.generate_texts(given, prompts=2)
        texts = [*texts.to_dict("records"), *se.generate_texts("sim/good", prompts=2).to_dict("records")]
        answers = se.collect_predictions(texts, tasks="binary_self")
        [name] = set(answers["evaluator_model"]) - {"sim/good"}
        assert set(answers[answers["evaluator_model"] == name]["reply"]) == {"YES"}
        talks = se.converse(name, "sim/talker", turns=1)
        verdicts = se.judge(talks, name, "independent")
        assert set(verdicts["status"]) == {"no_answer"} and set(verdicts["juror"]) == {name}
        about = se.ask_existence(name, names=1, templates=1, answer_types="yes_no", constrained=True)
        assert set(about["raw_response"]) == {"YES"}
    assert not fake.ledger


def test_a_model_object_keeps_what_was_changed_in_it(own_store):
    heard = []
    loud = from_callable(lambda messages: heard.append(messages[0]["content"]) or "Rain.", "mine/loud")
    loud = replace(loud, system="Speak up.", developer="Me")
    texts = se.generate_texts([loud, "sim/good"], prompts=1)
    se.collect_predictions(texts, tasks="binary_self")
    se.ask_identity("mine/loud", limit=1, arms="neutral", turns=0)
    assert len(heard) > 3 and set(heard) == {"Speak up."}


@pytest.mark.parametrize("taken", ["openai/gpt-4.1", "sim/good", "openai:anything", "gguf:/my/file"])
def test_an_id_that_means_another_model_is_refused_for_a_function(taken):
    with pytest.raises(InputError, match=f"The id '{taken}' .*; give yours an id of its own"):
        get_all([from_callable(always_yes, taken)])
    with pytest.raises(InputError, match="give yours an id of its own"):
        get_all({taken: always_yes})


def test_a_changed_model_needs_an_id_of_its_own():
    with pytest.raises(InputError, match="give yours an id of its own"):
        get_all([replace(get("openai/gpt-4.1"), system="Be brief.")])
    assert get_all([get("openai/gpt-4.1")]) == [get("openai/gpt-4.1")]


def test_texts_of_a_function_of_an_earlier_program_ask_nobody_of_its_name(
    own_store, server, tmp_path, monkeypatch, capsys
):
    mine = from_callable(lambda messages: "It rains.", "openai-mine/claude")
    file = tmp_path / "texts.jsonl"
    se.generate_texts([mine, "sim/good"], prompts=2).to_json(file, orient="records", lines=True)
    monkeypatch.setattr(models, "GIVEN", {})  # another program
    capsys.readouterr()
    counted = se.collect_predictions(file, tasks="binary_self", dry_run=True)
    assert counted.empty and "'openai-mine/claude' wrote texts and is not asked" in capsys.readouterr().out
    served = tmp_path / "served.jsonl"
    server()
    se.generate_texts(["openai:m", "sim/good"], prompts=2).to_json(served, orient="records", lines=True)
    assert [*se.collect_predictions(served, tasks="binary_self", dry_run=True)["model"]] == ["openai:m"]


def test_a_misspelt_id_is_said_to_be_in_no_list_before_it_is_paid_for(own_store, capsys):
    se.generate_texts(["openai/gtp-4.1", "nobody/knows", "openai/gpt-4.1"], prompts=1, dry_run=True)
    printed = capsys.readouterr().out
    assert "'openai/gtp-4.1' is in no list here, and may be misspelt; did you mean 'openai/gpt-4.1'?" in printed
    assert "'nobody/knows' is in no list here, and may be misspelt." in printed


def test_every_model_that_readme_names_has_a_price():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = models.models()
    named = {name for name in re.findall(r"[\w.-]+/[\w.-]+", readme) if name in listed}
    paid = {name for name in named if not name.startswith(("sim/", "local/"))}
    assert len(paid) > 3 and not {name for name in paid if listed[name].price is None}


@pytest.mark.parametrize("asked", ["ollama:llama3.1", "mistralai/mistral-large", "vllm:x"])
def test_who_made_a_model_is_asked_for_in_an_entry_that_can_be_pasted(asked, registry, own_store):
    with pytest.raises(InputError) as refused:
        se.ask_identity(asked, limit=1)
    [entry] = re.findall("`(models: .*)`", str(refused.value))
    registry(entry.replace("FAMILY", "llama").replace("MAKER", "Meta"))
    assert identity(asked).maker == "Meta"
    for ask in (se.profile, se.EvalRunner("identity/published.json").run):
        models._read.cache_clear()
        registry("models: []")
        with pytest.raises(InputError, match=re.escape(f"The model {asked!r} has no `developer`")):
            ask(asked)
