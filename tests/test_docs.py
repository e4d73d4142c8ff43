"""The data dictionary against the project: every field of every file that is read or written, its type, its nulls."""

import asyncio
import contextlib
import dataclasses
import json
import re
import sqlite3

import pandas as pd
import yaml
from dictionary import Dictionary
from fake_server import FakeServer
from written_files import AUTHORS, run_commands, run_notebook, run_notebooks, without_pictures

from selfeval import DATA
from selfeval.asking.http import _usage
from selfeval.asking.request import Response
from selfeval.asking.store import Store, opener
from selfeval.identity import EvalRunner
from selfeval.identity.simulated import KNOWN as IDENTITY_RATES
from selfeval.identity.suite import Template
from selfeval.models import Model, Provider
from selfeval.recognition.questions import Condition
from selfeval.recognition.simulated_evaluators import KNOWN as RATES
from selfeval.roleplay.conversation import said
from selfeval.roleplay.simulated import DEFAULTS as ROLEPLAY_RATES
from selfeval.sweep import run_file

COLLECTIONS = {"results": "results/<out>", "predictions": "predictions/<out>", "corpora": "corpora/<corpus>",
               "conversations": "conversations/<out>"}  # fmt: skip
INPUTS = {  # section: files below data/
    "promptsjsonl": "prompts.jsonl", "existenceyaml": "existence.yaml", "identityfoilsyaml": "identity/foils.yaml",
    "identitypublishedjson": "identity/published.json", "identitylabelledjsonl": "identity/labelled/*.jsonl",
    "roleplayelizayaml": "roleplay/eliza.yaml",
    "samplejsonl": "sample/*.jsonl", "figuresindexjson": "../figures/index.json",
}  # fmt: skip
ENTRIES = {  # section: files whose entries it describes
    "roleplayagentsyaml": "roleplay/agents.yaml", "roleplayinterrogatorsyaml": "roleplay/interrogators.yaml",
    "roleplayjurorsyaml": "roleplay/jurors.yaml", "roleplayrubricsyaml": "roleplay/rubrics.yaml",
    "identitylexiconyaml": "identity/lexicon.yaml",
}  # fmt: skip
COMMANDS = {"role-play-output": "play.json", "comparison-output": "both.json",
            "resultsoutpublishedjson": "published.json", "figuresindexjson": "figures/index.json"}  # fmt: skip
FIELDS_OF = {  # section: the fields that the code reads
    "modelsyaml-providers": {field.name for field in dataclasses.fields(Provider)} - {"name"},
    "modelsyaml-models": {f.name for f in dataclasses.fields(Model)} - {"api_name", "call", "listed"} | {"model"},
    "evaluator": {*RATES}, "identity-model": {*IDENTITY_RATES, "role"}, "role-player": {*ROLEPLAY_RATES, "role"},
    "response": {field.name for field in dataclasses.fields(Response)},
}  # fmt: skip


def content_of(path):
    with opener(path)(path, "rt", encoding="utf-8") as file:
        text = file.read()
    if ".jsonl" in path.suffixes:
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def hold_file(dictionary, section, path):
    if path.suffix == ".csv":
        return dictionary.hold_csv(section, pd.read_csv(path, dtype=str, keep_default_na=False))
    content = content_of(path)
    for row in content if isinstance(content, list) else [content]:
        dictionary.hold(section, row)


def section_of(dictionary, relative):
    """Return the section whose heading names a file, `<...>` standing for any name."""
    folder, *_, name = relative.parts
    inner = next((f"/{part}" for part in ("tables", "paper") if part in relative.parts), "")
    wanted = f"{COLLECTIONS[folder]}{inner}/{name}"
    titles = {key: re.sub(r"(?<=_)<\w+>", r"\\w+", s.title.strip("`")) for key, s in dictionary.sections.items()}
    return next((key for key, title in titles.items() if re.fullmatch(title, wanted)), None)


def every_response():
    """A response in which every field holds something."""
    usage = _usage({"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1},
                    "completion_tokens_details": {"reasoning_tokens": 1}})  # fmt: skip
    return Response(
        "text", "ok", "stop", usage, 0.1, "model", "host", "id", 0.1, 1, "reasons", [["t", -0.1, {"t": -0.1}]],
        {"max_tokens": "max_completion_tokens"}, "message", ["empty"],
    )  # fmt: skip


def weigh(out, registry, monkeypatch):
    """Run the notebook of likelihoods, with authors that a server of ours now plays."""
    registry("models:\n" + "".join(f"- {{id: {name}, provider: llamacpp, display: {name}}}\n" for name in AUTHORS))
    texts, answers = str(out / "corpora" / "own"), str(out / "predictions" / "told")
    with FakeServer() as server:
        monkeypatch.setenv("LLAMACPP_BASE_URL", server.url)
        run_notebook("10_implicit_explicit", corpus=texts, models=AUTHORS, predictions=answers, n_resamples=20,
                     out=str(out / "results" / "implicit"))  # fmt: skip
    monkeypatch.delenv("SELFEVAL_MODELS")


def hold_written(dictionary, out):
    """Hold what notebooks and commands wrote, and the committed files of the same kinds."""
    for root, pattern in ((out, "{}/**/*"), (DATA, "{}/sample*/**/*"), (DATA, "{}/demo/**/*")):
        files = [file for folder in COLLECTIONS for file in sorted(root.glob(pattern.format(folder)))]
        files = [file for file in files if "figures" not in file.parts]  # what 09 drew, if it was executed before
        for path in (file for file in files if file.suffix in (".csv", ".jsonl", ".json")):
            section = section_of(dictionary, path.relative_to(root))
            assert section, f"{path.relative_to(root)} is not documented"
            hold_file(dictionary, section, path)
    for section, name in COMMANDS.items():
        hold_file(dictionary, section, out / name)
    text = (DATA / "README.md").read_text(encoding="utf-8")
    tables = [pd.read_csv(path) for path in out.glob("results/*/*.csv")]
    methods = set().union(*(table["method"] for table in tables if "method" in table))
    assert methods and not [method for method in sorted(methods) if f"`{method}`" not in text]


def hold_calls(dictionary, out):
    """Hold what keeps a response whole: turns, published results, exports and the store."""
    full = every_response()
    for response in (full, dataclasses.replace(full, text="<think>x</think> y")):
        dictionary.hold("turn", said("agent", response).to_dict())
    for says in (lambda messages, **_: "", lambda messages, **_: full):
        result = EvalRunner("identity/published.json").run(says, model_id="gpt-4-turbo")
        dictionary.hold("resultsoutpublishedjson", result)
    dictionary.hold("condition", dataclasses.asdict(Condition(effort="low")))
    store = Store(out / "own.sqlite", recorded=out / "recorded")
    request = '{"provider":{"provider":"openai"},"model":"m","messages":[],"parameters":{},"sample":0}'
    asyncio.run(store.put("0" * 64, request, full.to_dict()))
    store.export_file(out / "export.jsonl")
    store.close()
    hold_file(dictionary, "samplejsonl", out / "export.jsonl")
    with contextlib.closing(sqlite3.connect(store.path)) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in tables:
            columns = [row[1] for row in file.execute(f"PRAGMA table_info({name})")]
            assert columns == list(dictionary.sections[f"store-{name}"].fields)


def hold_inputs(dictionary):
    inputs = INPUTS | {f"validation{path.stem}csv": f"validation/{path.name}" for path in DATA.glob("validation/*.csv")}
    for section, pattern in inputs.items():
        for path in sorted(DATA.glob(pattern) if "*" in pattern else [DATA / pattern]):
            hold_file(dictionary, section, path)
    for path in DATA.glob("recorded/*"):
        hold_file(dictionary, "samplejsonl", path)
    registry = content_of(DATA / "models.yaml")
    played = {"identity": "identity-model", "roleplay": "role-player", None: "evaluator"}
    function = {"id": "my/model", "provider": "python", "model": "mine:answer", "display": "Mine", "stored": True}
    for model in [*registry["models"], function]:
        dictionary.hold("modelsyaml-models", model)
        if "simulation" in model:
            dictionary.hold(played[model["simulation"].get("role")], model["simulation"])
    for provider in registry["providers"].values():
        dictionary.hold("modelsyaml-providers", provider)
    for section, name in ENTRIES.items():
        for entry in content_of(DATA / name).values():
            dictionary.hold(section, entry or {})


def hold_sweep(dictionary, out):
    """Hold what a sweep of two stages leaves beside its notebooks."""
    corpus = {"corpus": str(out / "corpus")}
    stages = [
        {"notebook": "01_generate_texts", "parameters": {"models": ["sim/good", "sim/first"], "limit": 2, **corpus}},
        {"notebook": "02_collect_predictions", "parameters": {"evaluators": "sim/good", "answer": "free", **corpus}},
    ]
    file = out / "sweep.yaml"
    file.write_text(yaml.safe_dump({"name": "documented", "stages": stages}), encoding="utf-8")
    assert run_file(file, 1, out / "runs", "forked") == 0
    folders = sorted(path.parent for path in (out / "runs").glob("*/*/manifest.json"))
    for folder in folders:
        for name in ("manifest", "progress"):
            hold_file(dictionary, f"runssweepstagerun{name}json", folder / f"{name}.json")
    outputs = {*content_of(folders[1] / "manifest.json")["outputs"], "manifest.json"}
    beside = {path.name for path in folders[0].iterdir()} - outputs
    text = (DATA / "README.md").read_text(encoding="utf-8")
    assert "parameters.yaml" in beside and [name for name in sorted(beside) if f"`{name}`" not in text] == []


def test_every_file_is_in_the_dictionary_field_by_field(tmp_path, monkeypatch, registry):
    monkeypatch.setenv("SELFEVAL_STORE", str(tmp_path / "store.sqlite"))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    without_pictures(monkeypatch)
    dictionary = Dictionary((DATA / "README.md").read_text(encoding="utf-8"))
    run_notebooks(tmp_path)
    run_commands(tmp_path)
    weigh(tmp_path, registry, monkeypatch)
    hold_written(dictionary, tmp_path)
    hold_calls(dictionary, tmp_path)
    hold_inputs(dictionary)
    hold_sweep(dictionary, tmp_path)
    assert sorted(set(dictionary.wrong)) == []
    for section, fields in FIELDS_OF.items():
        assert set(dictionary.sections[section].fields) == fields, section
    elsewhere = {*FIELDS_OF, "promptsjsonl", "published-predictions"}  # `words` is of prompts of one's own; test_said
    held = {key for key in dictionary.sections if key not in elsewhere and not key.startswith("store-")}
    assert {key: dictionary.unseen(key) for key in held if dictionary.unseen(key)} == {}


def test_the_suite_has_a_dictionary_of_its_own():
    text = (DATA / "identity" / "suite" / "README.md").read_text(encoding="utf-8")
    first_column = " ".join(re.findall(r"^\|([^|]*)\|", text, re.M))
    fields = {field.name for field in dataclasses.fields(Template)}
    assert set(re.findall(r"`(\w+)`", first_column)) == fields | {"content"}  # of a turn
