"""The three jobs in one command each, and sweeps over lists of models."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import yaml
from sweep_files import keep_parameters, reply
from test_cli import selfeval

import selfeval as se
from selfeval import DATA, ROOT, sweep

SWEEPS = ROOT / "notebooks" / "sweeps"


@pytest.fixture
def texts(tmp_path):
    """A CSV of one's own: two authors on two prompts each."""
    path = tmp_path / "my.csv"
    rows = [(author, prompt, f"{author} on {prompt}") for author in ("Anna", "Bert") for prompt in ("rain", "snow")]
    pd.DataFrame(rows, columns=["author", "prompt", "text"]).to_csv(path, index=False)
    return path


# commands -------------------------------------------------------------------------------------------------------------


def test_texts_of_ones_own_are_priced_asked_about_and_shown(server, registry, texts, own_store, tmp_path):
    price = "price: {input: 1.0, output: 4.0}"
    registry(f"models: [{{id: 'openai:a', display: Anna, {price}}}, {{id: 'openai:b', display: Bert, {price}}}]")
    fake, out = server(reply=reply), tmp_path / "out"
    command = ["recognise", texts, "--models", "openai:a,openai:b", "--out", out]
    refused = selfeval(*command, typed="n\n")
    assert refused.exit_code == 1 and "Make 16 calls?" in refused.stdout and not fake.ledger
    assert re.search(r"openai:a +0 +8( +\d+){4} +0\.\d+ +0\.\d+\n", refused.stdout)
    done = selfeval(*command, typed="y\n")
    assert done.exit_code == 0 and len(fake.ledger) == 16, done.output
    *_, table, sentence, paths = done.stdout.split("\n\n")
    assert sentence == "No model is shown to recognise its own texts."
    assert "self_accuracy" in table and "conclusion" in table and "Anna" in table
    assert max(map(len, table.splitlines())) <= 120 and not re.search("[0-9a-f]{10}", table)
    figure, report = re.fullmatch("figure: (.+\\.png)\nreport: (.+/index.html)\n", paths).groups()
    assert (tmp_path / figure).is_file() and (tmp_path / report).is_file()
    assert {*se.runs(out)["tasks"]} == {"exact_model, binary_self"}  # of the stage before


def test_recognise_ends_with_its_answer_in_a_sentence(tmp_path):
    models = "sim/good,sim/chance,sim/perfect"
    done = selfeval("recognise", "--models", models, "--limit", 40, "--yes", "--out", tmp_path)
    assert "\nGood and Perfect recognise texts of their own. This is not shown for Chance.\n" in done.stdout, (
        done.output
    )


def test_where_nothing_is_to_buy_nothing_is_asked_and_results_are_read_again(tmp_path):
    models = ["sim/identity-wavers", "sim/identity-susceptible"]
    done = selfeval("identity", "--models", ",".join(models), "--limit", 6, "--out", tmp_path)
    assert done.exit_code == 0 and "Make" not in done.stdout and " simulated replies" in done.stdout, done.output
    assert "Wavers" in done.stdout and ".png" in done.stdout.split("figure: ")[1]
    [result] = se.read_results(tmp_path)
    assert result.kind == "identity" and set(result["evaluator"]) == set(models) and se.plot(result)
    told = se.runs(os.path.relpath(tmp_path))  # as a command names it, from here
    assert set(told["limit"]) == {6} and set(told["models"]) == {", ".join(models)}
    assert not told.duplicated(["evaluator", "statistic", "task", "condition", "author"]).any()
    assert len(se.runs(tmp_path, all=True)) > len(told)
    same = told.merge(result, on=["evaluator", "statistic", "task", "condition"], suffixes=("", "_read"))
    assert len(same) >= len(result) and same["estimate"].equals(same["estimate_read"])


CHAIN = {  # notebook: parameters, of a small chain; {} stands for a folder
    "01_generate_texts": {"models": ["sim/good", "sim/chance"], "limit": 3, "temperature": 0.5, "corpus": "{}/texts"},
    "02_collect_predictions": {
        "models": ["sim/good", "sim/chance"], "tasks": "binary_self", "told": False, "corpus": "{}/texts",
        "out": "{}/answers",
    },
    "03_self_recognition": {"predictions": ["{}/answers"], "n_resamples": 50, "out": "{}/result"},
}  # fmt: skip
PLACES = ["corpus", "predictions", "out", "result"]


def chain_in(folder):
    """Return the chain with a folder as its place."""
    return json.loads(json.dumps(CHAIN).replace("{}", str(folder)))


def by_papermill(chain, folder):
    """Execute a chain as a shell loop would; lists are passed as YAML, to a notebook that asks also as a text."""
    folder.mkdir()
    for name, given in chain.items():
        command = [sys.executable, "-m", "papermill", ROOT / f"notebooks/{name}.ipynb", folder / f"{name}.ipynb"]
        for key, value in given.items():
            if isinstance(value, list) and name != "02_collect_predictions":
                command += ["-y", json.dumps({key: value})]
            else:
                command += ["-p", key, json.dumps(value) if isinstance(value, list) else str(value)]
        subprocess.run(command, check=True, capture_output=True)


def test_plain_papermill_in_a_loop_gives_the_columns_that_a_sweep_gives(tmp_path, own_store):
    stages = [{"notebook": name, "parameters": given} for name, given in chain_in(tmp_path / "a").items()]
    stages[-1]["parameters"].pop("out")  # a sweep has a folder of its own for each run
    (tmp_path / "a.yaml").write_text(json.dumps({"name": "a", "stages": stages}))
    assert sweep.run_file(tmp_path / "a.yaml", out=tmp_path / "a") == 0
    by_papermill(chain_in(tmp_path / "b"), tmp_path / "b")
    swept, looped = (se.runs(tmp_path / one).drop(columns=PLACES) for one in "ab")
    pd.testing.assert_frame_equal(swept, looped, check_like=True)  # papermill sorts what it keeps
    assert {*looped["temperature"]} == {0.5} and {*looped["models"]} == {"sim/good, sim/chance"}
    assert {*looped["told"]} == {False} and {*looped["tasks"]} == {"binary_self"}


def test_notebooks_that_name_no_folder_lead_to_their_results(tmp_path, own_store, monkeypatch):
    (tmp_path / "data").mkdir()
    for inputs in DATA.iterdir():
        if inputs.name != "runs":
            (tmp_path / "data" / inputs.name).symlink_to(inputs)
    monkeypatch.setenv("SELFEVAL_DATA", str(tmp_path / "data"))
    by_papermill({"07_existence": {"models": "sim/existence-knows", "names": 2, "templates": 1}}, tmp_path / "c")
    code = "import sys, selfeval as se; f = se.runs(sys.argv[1]); print({*f['names']}, {*f['models']}, {*f['kind']})"
    told = subprocess.run([sys.executable, "-c", code, tmp_path / "c"], check=True, capture_output=True, text=True)
    assert told.stdout == "{2} {'sim/existence-knows'} {'existence'}\n"


def test_a_notebook_that_is_cut_off_is_said(tmp_path):
    se.save(se.measure_existence(se.ask_existence("sim/existence-knows", names=2, templates=1)), tmp_path)
    (tmp_path / "07_existence.ipynb").write_text('{"cells": [')
    with pytest.warns(UserWarning, match="07_existence.ipynb is no whole notebook"):
        assert "names" not in se.runs(tmp_path)


def add_result(folder, **parameters):
    """Write a result of a run with these parameters."""
    keep_parameters(folder, out=str(folder), **parameters)
    shutil.copy(DATA / "results" / "sample" / "existence" / "existence.csv", folder)


@pytest.mark.parametrize(("limits", "told"), [((3, 3), 3), ((3, 4), "3, 4")])
def test_a_parameter_that_runs_before_had_otherwise_is_told_with_all_its_values(limits, told, tmp_path):
    for name, limit in zip("ab", limits, strict=True):
        keep_parameters(tmp_path / name, out=f"mine/{name}", limit=limit)
    add_result(tmp_path / "result", predictions=["mine/a", "mine/b"])
    assert {*se.runs(tmp_path)["limit"]} == {told}


def test_the_answers_of_a_notebook_that_named_no_folder_lead_to_its_parameters(tmp_path):
    given = {"corpus": "mine", "limit": 5}
    given_by_papermill = {
        "01_generate_texts": {"corpus": "mine", "temperature": 0.5}, "02_collect_predictions": given,
    }  # fmt: skip
    for name, parameters in given_by_papermill.items():
        about = {"papermill": {"parameters": parameters, "input_path": f"{name}.ipynb"}}
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": [], "metadata": about}))
    usual = yaml.safe_load((DATA / "committed.yaml").read_text())["02_collect_predictions"]["parameters"]
    add_result(tmp_path / "result", predictions=se.output_folder("02_collect_predictions", usual | given))
    told = se.runs(tmp_path)
    assert {*told["limit"]} == {5} and {*told["temperature"]} == {0.5}


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["recognise", "{texts}", "--models", "sim/good"], "say in --authors who is who (AUTHOR=sim/good)"),
    (["recognise", "{texts}", "--models", "sim/good", "--authors", "Anna"], "'Anna' is not of the form AUTHOR=ID"),
    (["recognise", "{broken}", "--models", "sim/good"], "wanted are `author` or `model`, `prompt`, `text`"),
    (["recognise", "--models", "openai:a"], "set OPENAI_API_KEY"),
    (["jury", "--models", "sim/talker", "--jurors", "sim/jurr-stern"], "Unknown model 'sim/jurr-stern'"),
    (["sweep", SWEEPS / "jury.yaml", "--set", "model=sim/good"], "has no variable 'model'; it has agent, jurors"),
])  # fmt: skip
def test_what_is_wrong_with_a_study_is_said_before_anything_runs(arguments, sentence, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "run_file", lambda *_, **given: sweep.load(_[0], tmp_path / "out", given["variables"]))
    (tmp_path / "broken.csv").write_text("who,topic,text\na,b,c\n")
    named = {"{texts}": texts, "{broken}": tmp_path / "broken.csv"}
    result = selfeval(*(re.sub(r"\{\w+\}", lambda part: str(named[part[0]]), str(each)) for each in arguments))
    assert result.exit_code in (1, 2) and sentence in " ".join(result.output.split()), result.output
    assert "Traceback" not in result.output and {each.name for each in tmp_path.iterdir()} <= {"my.csv", "broken.csv"}


def test_an_author_may_be_said_by_the_name_that_a_corpus_shows(tmp_path, monkeypatch):
    corpus, seen = tmp_path / "corpus.jsonl", []
    rows = [
        {"author": id_, "author_display": name, "prompt": prompt, "text": f"{name} on {prompt}."}
        for id_, name in {"lab-1": "Tom", "lab-2": "Ann"}.items() for prompt in ("rain", "snow")
    ]  # fmt: skip
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(sweep, "run_file", lambda *_, **given: seen.append(given["variables"]) or 1)
    result = selfeval("recognise", corpus, "--models", "sim/good", "--authors", "Tom=sim/good", "--authors", "Max=")
    assert result.exit_code == 1 and seen, result.output
    assert (seen[0]["authors"], seen[0]["called"]) == ({"Tom": "sim/good"}, {"Max": None})


RECOGNISE = ["recognise", "{texts}", "--models"]
JURY = ["jury", "--people", "1", "--models", "openai:gpt-4-turbo", "--jurors"]


@pytest.mark.parametrize(("arguments", "said", "faults", "why", "kept"), [
    ([*RECOGNISE, "openai:x", "--allow-strangers"], "YES", (), "no model that was asked wrote any", "answers/"),
    ([*RECOGNISE, "openai:x", "--authors", "Anna=openai:x"], "", (), "no question was answered", "answers/"),
    (["identity", "--models", "gpt-4-turbo", "--limit", "1"], "", ["400"], "no question was answered", "04_identity/"),
    ([*JURY, "openai:x,openai:y,openai:z"], "xyzzy {", (), "no question was answered", "06_jury/"),
    ([*JURY, "openai:x"], "", (), "no question was answered", "06_jury/"),
])  # fmt: skip
def test_a_study_without_its_number_says_why_and_where_the_answers_are(
    arguments, said, faults, why, kept, server, texts, own_store, tmp_path
):
    fake = server(reply=said, faults=faults)
    done = selfeval(*(str(texts) if each == "{texts}" else each for each in arguments), "-y", "--out", tmp_path / "out")
    assert done.exit_code in ((3,) if faults else (0, 3)) and fake.ledger, done.output
    [sentence] = re.findall("^There is no .+", done.stdout, re.M)
    folder = sentence.partition("The answers are kept in ")[2]
    assert why in sentence and f"/out/{kept}" in folder
    assert any(file.stat().st_size for file in Path(folder).glob("*.jsonl"))


# sweeps over lists ----------------------------------------------------------------------------------------------------


def test_a_list_of_models_replaces_a_variable(tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr(sweep, "run_file", lambda file, *_, variables, **options: seen.update(variables) or 0)
    both = ["openai/gpt-4.1", "anthropic/claude-sonnet-4"]
    assert selfeval("sweep", SWEEPS / "recognition.yaml", "--set", f"models=[{','.join(both)}]").exit_code == 0
    assert seen == {"models": both}
    texts, answers, analysis = sweep.load(SWEEPS / "recognition.yaml", tmp_path, seen).runs
    assert texts.parameters["models"] == answers.parameters["models"] == both
    assert analysis.parameters["predictions"] == [str(answers.folder)]
    for study in ("texts", "identity", "jury"):
        loaded = sweep.load(SWEEPS / f"{study}.yaml", tmp_path)
        assert not re.search(r'"\{\w+\}"', json.dumps([run.parameters for run in loaded.runs]))


# installed elsewhere --------------------------------------------------------------------------------------------------

STUDY = """import selfeval as se
texts = se.generate_texts(["sim/good", "sim/chance"], 2, corpus="mine")
assert len(texts) == 4 and len(se.generate_texts(["sim/good"], "prompts-confirm.jsonl", limit=1)) == 1
assert len(se.collect_predictions("mine", limit=1)) == 8
assert len(se.ask_identity("sim/identity-wavers", limit=1)) and se.converse("sim/talker", people=1) is not None
assert len(se.ask_existence("sim/existence-knows")) and se.DATA.is_dir()
"""


def test_an_installed_package_reads_its_own_inputs_and_writes_to_the_users_folder(tmp_path):
    """Laid out as the wheel is, by what `pyproject.toml` says of it."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site, here = tmp_path / "site", tmp_path / "here"
    here.mkdir()
    for part in wheel["only-include"]:
        top, *rest = part.split("/")
        target = site.joinpath(wheel["sources"].get(top, top), *rest)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copyfile
        copy(ROOT / part, target)
    shutil.rmtree(site / "selfeval" / "__pycache__", ignore_errors=True)
    env = {k: v for k, v in os.environ.items() if k not in ("SELFEVAL_DATA", "SELFEVAL_STORE")}
    how = {"cwd": here, "env": env | {"PYTHONPATH": str(site)}, "capture_output": True, "text": True}
    before = sorted(site.rglob("*.*"))
    listed = subprocess.run([sys.executable, "-m", "selfeval", "models"], **how)
    assert "sim/good" in listed.stdout, listed.stderr
    ran = subprocess.run([sys.executable, "-c", STUDY], **how)
    assert ran.returncode == 0, ran.stderr
    assert {file.name for file in (here / "data").rglob("*.*")} >= {"texts.jsonl", "responses.sqlite"}
    assert [file for file in sorted(site.rglob("*.*")) if file.suffix != ".pyc"] == [
        file for file in before if file.suffix != ".pyc"
    ]
    sweep_file = site / "selfeval" / "notebooks" / "sweeps" / "jury.yaml"
    dry = subprocess.run([sys.executable, "-m", "selfeval", "sweep", sweep_file, "--dry-run"], **how)
    assert "1 of 1 runs to do" in dry.stdout, dry.stderr
