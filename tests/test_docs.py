"""The documentation against the project: every field of every file, every path, command and snippet."""

import asyncio
import contextlib
import dataclasses
import json
import re
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
import yaml
from dictionary import Dictionary
from written_files import run_commands, run_notebooks, without_pictures

from selfeval import DATA, ROOT
from selfeval.asking.http import _usage
from selfeval.asking.request import Response
from selfeval.identity import EvalRunner
from selfeval.identity.simulated import KNOWN as IDENTITY_RATES
from selfeval.identity.suite import Template
from selfeval.models import Model, Provider
from selfeval.recognition.questions import Condition
from selfeval.recognition.simulated import KNOWN as RATES
from selfeval.roleplay.conversation import said
from selfeval.roleplay.simulated import DEFAULTS as ROLEPLAY_RATES
from selfeval.sweep import run_file

FIGURES = {".pdf", ".png", ".svg"}
COLLECTIONS = {"results": "results/<out>", "predictions": "predictions/<out>", "corpora": "corpora/<corpus>",
               "conversations": "conversations/<out>"}  # fmt: skip


@pytest.fixture(scope="module")
def dictionary():
    return Dictionary((DATA / "README.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with all files that notebooks and commands write."""
    out = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELFEVAL_STORE", str(out / "store.sqlite"))
        patch.setenv("TQDM_DISABLE", "1")
        without_pictures(patch)
        run_notebooks(out)
        run_commands(out)
    return out


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def hold_file(dictionary, section, path):
    if path.suffix == ".csv":
        dictionary.hold_csv(section, pd.read_csv(path, dtype=str, keep_default_na=False))
    elif path.suffix == ".jsonl":
        for row in rows_of(path):
            dictionary.hold(section, row)
    else:
        content = json.loads(path.read_text(encoding="utf-8"))
        for row in content if isinstance(content, list) else [content]:
            dictionary.hold(section, row)


def section_of(dictionary, relative):
    """Return the section whose heading names a file, `<...>` standing for any name."""
    folder, *_, name = relative.parts
    inner = next((f"/{part}" for part in ("tables", "paper") if part in relative.parts), "")
    wanted = f"{COLLECTIONS[folder]}{inner}/{name}"
    for key, section in dictionary.sections.items():
        pattern = re.sub(r"(?<=_)<\w+>", r"\\w+", section.title.strip("`"))
        if section.title.startswith("`") and re.fullmatch(pattern, wanted):
            return key
    return None


def test_every_file_that_notebooks_write_is_in_the_dictionary_field_by_field(dictionary, written):
    held = set()
    for path in sorted(p for folder in COLLECTIONS for p in (written / folder).rglob("*") if p.is_file()):
        section = section_of(dictionary, path.relative_to(written))
        if path.suffix in (".csv", ".jsonl", ".json"):
            assert section, f"{path.relative_to(written)} is not documented"
            hold_file(dictionary, section, path)
            held.add(section)
        else:
            assert path.suffix in {*FIGURES, ".tex"}, f"{path} is no figure and no table"
    documented = {key for key, s in dictionary.sections.items()
                  if (s.fields or s.also) and s.title.startswith(tuple(f"`{c}/" for c in COLLECTIONS))}  # fmt: skip
    assert held == documented
    text = (DATA / "README.md").read_text(encoding="utf-8")
    tables = [pd.read_csv(path) for path in written.glob("results/*/*.csv")]
    methods = set().union(*(table["method"] for table in tables if "method" in table))
    assert methods and not [method for method in sorted(methods) if f"`{method}`" not in text]
    for file in ("corpora/sample/texts.jsonl", "conversations/sample/conversations.jsonl"):
        hold_file(dictionary, section_of(dictionary, Path(file)), DATA / file)
    for file in sorted(DATA.glob("predictions/*/*.jsonl")):
        hold_file(dictionary, section_of(dictionary, file.relative_to(DATA)), file)
    for file in sorted(DATA.glob("results/*/*/paper/*")):
        hold_file(dictionary, section_of(dictionary, file.relative_to(DATA)), file)
    hold_file(dictionary, "figuresindexjson", written / "figures" / "index.json")
    hold_file(dictionary, "figuresindexjson", ROOT / "figures" / "index.json")
    kept = said("agent", every_response())
    dictionary.hold("turn", kept.to_dict())
    dictionary.hold("turn", said("agent", dataclasses.replace(every_response(), text="<think>x</think> y")).to_dict())
    hold_file(dictionary, "role-play-output", written / "play.json")
    hold_file(dictionary, "comparison-output", written / "both.json")
    hold_file(dictionary, "resultsoutpublishedjson", written / "published.json")
    silent = EvalRunner("identity/published.json").run(lambda messages: "", model_id="gpt-4-turbo")
    dictionary.hold("resultsoutpublishedjson", silent)
    spoken = EvalRunner("identity/published.json").run(lambda messages, **_: every_response(), model_id="gpt-4-turbo")
    dictionary.hold("resultsoutpublishedjson", spoken)
    dictionary.hold("condition", dataclasses.asdict(Condition(effort="low")))
    assert sorted(set(dictionary.wrong)) == []
    shared = {"usage", "condition", "estimate", "claim", "test-result", "details", "turn", "interaction", "seat",
              "play", "averages", "compared-turn", "evaluation", "role-play-output", "comparison-output",
              "figuresindexjson"}  # fmt: skip
    assert {key: dictionary.unseen(key) for key in documented | shared if dictionary.unseen(key)} == {}


def every_response():
    """A response in which every field holds something."""
    usage = _usage({"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1},
                    "completion_tokens_details": {"reasoning_tokens": 1}})  # fmt: skip
    return Response(
        "text", "ok", "stop", usage, 0.1, "model", "host", "id", 0.1, 1, "reasons", [["t", -0.1, {"t": -0.1}]],
        {"max_tokens": "max_completion_tokens"}, "message", ["empty"],
    )  # fmt: skip


# Inputs


def yaml_of(name):
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def fields_of(kind, *without):
    return {field.name for field in dataclasses.fields(kind)} - set(without)


def assert_equal(dictionary, section, expected):
    assert set(dictionary.sections[section].fields) == set(expected), section


def test_the_registry_is_documented_as_the_code_reads_it(dictionary):
    assert_equal(dictionary, "modelsyaml-providers", fields_of(Provider, "name"))
    models = fields_of(Model, "api_name", "call", "listed") | {"model"}
    assert_equal(dictionary, "modelsyaml-models", models)
    assert_equal(dictionary, "evaluator", RATES)
    assert_equal(dictionary, "identity-model", IDENTITY_RATES | {"role"})
    assert_equal(dictionary, "role-player", set(ROLEPLAY_RATES) | {"role"})
    registry = yaml_of("models.yaml")
    for entry in registry["providers"].values():
        dictionary.hold("modelsyaml-providers", entry)
    played = {"identity": "identity-model", "roleplay": "role-player", None: "evaluator"}
    for entry in registry["models"]:
        dictionary.hold("modelsyaml-models", entry)
        if "simulation" in entry:
            dictionary.hold(played[entry["simulation"].get("role")], entry["simulation"])
    assert dictionary.wrong == [] and not dictionary.unseen("price") and not dictionary.unseen("embedded")


def test_inputs_are_documented_as_they_stand(dictionary):
    for row in rows_of(DATA / "prompts.jsonl"):
        dictionary.hold("promptsjsonl", row)
    assert dictionary.unseen("promptsjsonl") == ["words"]  # read by `writing.generate_texts`, of prompts of one's own
    whole = {"existenceyaml": "existence.yaml", "identityfoilsyaml": "identity/foils.yaml"}
    whole |= {"roleplayelizayaml": "roleplay/eliza.yaml"}
    for section, name in whole.items():
        dictionary.hold(section, yaml_of(name))
    hold_file(dictionary, "identitypublishedjson", DATA / "identity" / "published.json")
    for developer in yaml_of("identity/lexicon.yaml").values():
        dictionary.hold("identitylexiconyaml", developer or {})
    assert {len(language) for language in yaml_of("identity/readout.yaml")} == {2}
    for path in sorted(DATA.glob("identity/labelled/*.jsonl")):
        hold_file(dictionary, "identitylabelledjsonl", path)
    for name in ("agents", "interrogators", "jurors", "rubrics"):
        for entry in yaml_of(f"roleplay/{name}.yaml").values():
            dictionary.hold(f"roleplay{name}yaml", entry)
    hold_file(dictionary, "roleplaysham_statementsjsonl", DATA / "roleplay" / "sham_statements.jsonl")
    for path in sorted(DATA.glob("validation/*.csv")):
        hold_file(dictionary, f"validation{path.stem}csv", path)
    assert dictionary.wrong == []
    inputs = [
        key
        for key, section in dictionary.sections.items()
        if re.match(r"`(identity|roleplay|val|exist)", section.title)
    ]
    nested = ["way-to-ask", "test-case", "foil", "family", "label"]
    assert {key: dictionary.unseen(key) for key in [*inputs, *nested] if dictionary.unseen(key)} == {}


def test_the_suite_has_a_dictionary_of_its_own():
    text = (DATA / "identity" / "suite" / "README.md").read_text(encoding="utf-8")
    first_column = " ".join(re.findall(r"^\|([^|]*)\|", text, re.M))
    assert set(re.findall(r"`(\w+)`", first_column)) == fields_of(Template) | {"content"}  # of a turn


def test_recordings_and_exports_are_documented_as_they_stand(dictionary, store, tmp_path):
    for path in sorted(DATA.glob("sample/*.jsonl")):
        hold_file(dictionary, "samplejsonl", path)
    response = every_response()
    request = '{"provider":{"provider":"openai"},"model":"m","messages":[],"parameters":{},"sample":0}'
    asyncio.run(store.put("0" * 64, request, response.to_dict()))
    store.export_file(tmp_path / "export.jsonl")
    hold_file(dictionary, "samplejsonl", tmp_path / "export.jsonl")
    assert dictionary.wrong == []
    assert_equal(dictionary, "response", fields_of(Response))
    with contextlib.closing(sqlite3.connect(store.path)) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {name: [row[1] for row in file.execute(f"PRAGMA table_info({name})")] for name in tables}
    assert columns == {
        key.removeprefix("store-"): list(section.fields)
        for key, section in dictionary.sections.items()
        if key.startswith("store-")
    }
    assert {key: dictionary.unseen(key) for key in ("samplejsonl", "request", "response", "message")
            if dictionary.unseen(key)} == {}  # fmt: skip


def test_a_sweep_leaves_what_is_documented(dictionary, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    corpus = {"corpus": str(tmp_path / "corpus")}
    stages = [
        {"notebook": "01_generate_texts", "parameters": {"models": ["sim/good", "sim/first"], "limit": 2, **corpus}},
        {"notebook": "02_collect_predictions", "parameters": {"evaluators": "sim/good", "answer": "free", **corpus}},
    ]
    file = tmp_path / "sweep.yaml"
    file.write_text(yaml.safe_dump({"name": "documented", "stages": stages}), encoding="utf-8")
    assert run_file(file, 1, tmp_path / "runs", "forked") == 0
    prefix = "runssweepstagerun"
    folders = sorted(path.parent for path in (tmp_path / "runs").glob("*/*/manifest.json"))
    for folder in folders:
        for name in ("manifest", "progress"):
            hold_file(dictionary, f"{prefix}{name}json", folder / f"{name}.json")
    manifest = json.loads((folders[1] / "manifest.json").read_text(encoding="utf-8"))
    text = (DATA / "README.md").read_text(encoding="utf-8")
    outputs = {*manifest["outputs"], "manifest.json"}
    beside = {path.name for path in folders[0].iterdir()} - outputs
    assert {"parameters.yaml", "progress.json"} <= beside
    assert [name for name in sorted(beside) if f"`{name}`" not in text] == []
    assert dictionary.wrong == []
    sections = [f"{prefix}manifestjson", f"{prefix}progressjson", "code", "environment", "counts"]
    assert {key: dictionary.unseen(key) for key in sections if dictionary.unseen(key)} == {}
