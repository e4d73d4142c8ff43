"""Where notebooks write (what is committed only with the committed parameters), and what `make clean` keeps."""

import ast
import hashlib
import re
import shutil
import subprocess

import nbformat
import pytest
from written_files import run_notebook, stand_in

import selfeval as se
from selfeval import ROOT
from selfeval.paths import committed_runs, own_parameters

NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
WRITERS = [name for name, known in committed_runs().items() if "writes" in known]
FLEET = ["sim/good", "sim/chance"]
WRITTEN = re.compile(r"^The results go to (\S+), a folder for these parameters", re.M)
PLACE_KNOWN = re.compile(r"output_folder")  # the cell of imports: what follows is the same with any place


def parameters(notebook):
    """Return {parameter: default} of a notebook, as they stand in its cell."""
    cells = nbformat.read(NOTEBOOKS[notebook], as_version=4).cells
    [cell] = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    return {line.target.id: ast.literal_eval(line.value) for line in ast.parse(cell.source).body}


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_defaults_of_a_notebook_are_those_of_the_committed_run(notebook):
    now = parameters(notebook)
    if notebook in WRITERS:
        assert now.pop("corpus" if notebook == "01_generate_texts" else "out") == ""
    assert now == committed_runs()[notebook]["parameters"], "write what changed into data/committed.yaml"


def test_every_notebook_that_writes_is_known():
    sources = {name: path.read_text("utf-8") for name, path in NOTEBOOKS.items()}
    asking = {name for name, text in sources.items() if f'se.output_folder(\\"{name}\\", globals())' in text}
    assert asking == {*WRITERS} == {*NOTEBOOKS} - {"00_tour", "15_identity_details"}


def test_defaults_write_where_the_committed_notebook_wrote_and_say_nothing(capsys):
    for notebook in WRITERS:
        known = committed_runs()[notebook]
        assert se.output_folder(notebook, known["parameters"] | {"np": None}) == known["writes"]
    assert capsys.readouterr().out == ""


def test_the_same_parameters_come_to_the_same_folder_and_others_to_another():
    usual = committed_runs()["03_self_recognition"]["parameters"]
    one, same, other = (se.output_folder("03_self_recognition", usual | {"seed": seed}) for seed in (1, 1, 2))
    assert one == same != other and one.startswith(str(se.DATA / "runs" / "03_self_recognition_"))


def test_a_part_of_a_dict_that_is_as_it_was_is_no_parameter_of_ones_own():
    usual = committed_runs()["02_collect_predictions"]["parameters"]
    assert own_parameters(usual, {"condition": {"show_prompt": False}, "models": usual["models"]}) == []
    assert own_parameters(usual, {"condition": {"show_prompt": True}, "limit": 1}) == ["condition", "limit"]


# a stranger's run of every notebook, without a place for its results --------------------------------------------------


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of data/ which stands in its place, with texts, answers and conversations of a stranger's own."""
    folder = tmp_path_factory.mktemp("clone") / "data"
    shutil.copytree(se.DATA, folder, ignore=shutil.ignore_patterns("recorded", "runs", "store", "weights", "report"))
    with pytest.MonkeyPatch.context() as patch:
        stand_in(patch, folder)
        mine = folder.parent / "mine"
        texts = se.generate_texts(FLEET, prompts=6, corpus=str(mine / "texts"))
        se.collect_predictions(texts, out=str(mine / "answers"))
        se.converse(
            "sim/talker", "sim/talker", turns=1, conversations=2, people=2, exchanges=1, out=str(mine / "talks")
        )
        yield folder


def hashes(folder):
    """Return {file: hash} of a folder, without what runs write to folders of their own."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and "runs" not in file.parts]
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


# {notebook: (parameters of a stranger's own, the last cell to run: None for all, what is in the folder then)}
OWN = {
    "00_profile": ({"size": {"prompts": 8}}, PLACE_KNOWN, []),
    "01_generate_texts": ({"models": FLEET, "limit": 2}, None, ["texts.jsonl"]),
    "02_collect_predictions": ({"models": FLEET, "corpus": "{mine}/texts"}, None, ["predictions_exact_model.jsonl"]),
    "03_self_recognition": (
        {"predictions": ["{mine}/answers"], "n_resamples": 50},
        None,
        ["self_recognition.csv", "self_recognition.pdf"],
    ),
    "04_identity": (
        {"models": ["sim/identity-wavers"], "limit": 4, "n_resamples": 20},
        None,
        ["identity.csv", "published.json"],
    ),
    "05_role_play": (
        {"agent": "sim/talker", "interrogator": "sim/talker", "turns": 1},
        None,
        ["conversations.jsonl"],
    ),
    "06_jury": (
        {"conversations": ["{mine}/talks/conversations.jsonl"], "jurors": ["sim/juror-lenient", "sim/juror-stern"]},
        None,
        ["jury.csv", "verdicts.jsonl"],
    ),
    "07_existence": ({"models": ["sim/existence-knows"], "names": 2, "templates": 1}, None, ["existence.csv"]),
    "08_validation": ({"from_prompts": 30}, PLACE_KNOWN, []),
    "09_paper_figures": ({"results": "results/mine"}, PLACE_KNOWN, []),
    "10_implicit_explicit": ({"corpus": "{mine}/texts", "models": FLEET}, PLACE_KNOWN, []),
    "11_recognition_details": (
        {"predictions": ["{mine}/answers"], "corpus": "{mine}/texts", "n_resamples": 50},
        None,
        ["paired.csv"],
    ),
    "12_words_and_weights": ({"predictions": ["{mine}/answers"]}, PLACE_KNOWN, []),
    "13_published_studies": ({"n_resamples": 50}, PLACE_KNOWN, []),
    "14_interrogation": (
        {"models": ["sim/identity-yields"], "attacker": "sim/attacker", "limit": 2, "turns": 2, "n_resamples": 20},
        None,
        ["identity.csv", "attack.csv"],
    ),
}


@pytest.mark.parametrize("notebook", WRITERS)
def test_a_run_of_ones_own_without_a_place_leaves_what_is_committed_and_says_where_it_writes(notebook, copy):
    given, until, files = OWN[notebook]
    given = {name: filled(value, copy.parent / "mine") for name, value in given.items()}
    before = hashes(copy)
    printed = run_notebook(notebook, until=until, **given)
    [folder] = WRITTEN.findall(printed)
    assert hashes(copy) == before
    assert folder.startswith(f"{copy}/runs/{notebook}_")
    written = {file.name for file in (copy / "runs").glob(f"{notebook}_*/*")}
    assert {*files} <= written


def test_the_details_of_identity_show_siblings_and_lasting_names_where_a_run_has_them(copy):
    every_arm = ["neutral", "false-far", "false-near", "true"]
    run = {"models": ["sim/identity-wavers"], "arms": every_arm, "limit": 12, "n_resamples": 20}
    before = hashes(copy)
    printed = run_notebook("15_identity_details", **run)
    assert "sibling − other maker" in printed and "horizon=" in printed
    assert hashes(copy) == before


def filled(value, mine):
    """Return a parameter with the folder that {mine} stands for."""
    if isinstance(value, list):
        return [filled(each, mine) for each in value]
    return value.replace("{mine}", str(mine)) if isinstance(value, str) else value


# make clean -----------------------------------------------------------------------------------------------------------

STAYS = (
    "data/store/responses.sqlite",
    "data/store/responses.sqlite-wal",
    "data/store/recorded/responses.sqlite",
    "data/corpora/mine/texts.jsonl",
    "data/predictions/mine/predictions_binary_self.jsonl",
    "data/conversations/mine/conversations.jsonl",
    "data/results/mine/self_recognition.csv",
    "data/models.yaml",
    ".env",
)
GOES = (
    "data/store/recording/responses.sqlite",
    "data/runs/demo/notebook.ipynb",
    "data/report/index.html",
    "data/results/mine/self_recognition.pdf",
    ".venv/bin/python",
    "selfeval/__pycache__/x.pyc",
)


def test_make_clean_removes_what_can_be_rebuilt_and_nothing_else(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in STAYS + GOES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    said = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert [name for name in STAYS if not (tmp_path / name).exists()] == []
    assert [name for name in GOES if (tmp_path / name).exists()] == []
    assert "data/store/" in said and "data/corpora/ and data/predictions/ stay" in said


# the other targets, with programs that only say how they are called

PROGRAM = """#!/bin/sh
echo "replay=$SELFEVAL_REPLAY store=${SELFEVAL_STORE#$PWD/} faults=$SELFEVAL_FAULTS $(basename $0) $*" >> calls.txt
"""
TARGETS = {
    "sweep": ["selfeval sweep notebooks/sweeps/demo.yaml --workers 2"],
    "sweep FILE=mine.yaml WORKERS=5": ["selfeval sweep mine.yaml --workers 5"],
    "report": ["selfeval report"],
    "report RUNS=data/runs/mine": ["selfeval report data/runs/mine"],
    "demo": ["replay= .*selfeval profile local/smollm2-135m .*--yes --out data/runs/demo"],
    "lab LAB_FLAGS=--no-browser": ["jupyter lab .*--no-browser notebooks/00_tour.ipynb"],
    "bench": ["python bench/bench.py"],
    "faults": ["faults=full pytest .*tests/test_faults_text.py"],
    "test": ["ruff check", "ruff format --check", "mypy", "faults= pytest .*--nbval .*tests bench notebooks"],
    "reproduce": ["papermill notebooks/13_published_studies.ipynb", r"python -c .*contains\(''\)"],
    "reproduce STUDY=Davidson": ["papermill notebooks/13_published", r"python -c .*contains\('Davidson'\)"],
    "figures": ["replay=data/recorded .*selfeval sweep notebooks/sweeps/demo.yaml --workers 2"],
    "figures FIGURES=other": [],
    "notebooks": ["replay=1 .*papermill notebooks/02_", "replay=1 .*jupyter nbconvert .*01_a.ipynb", "python .*tidy"],
    "record-part PART=roleplay NOTEBOOKS=notebooks/05.ipynb": [
        "replay= store=data/store/recording/.*jupyter nbconvert .*05.ipynb",
        "replay= store=data/store/recording/.*selfeval store export data/sample/roleplay.jsonl",
    ],
}


@pytest.mark.parametrize("words", TARGETS)
def test_a_target_of_make_calls(words, tmp_path, monkeypatch):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.txt", "requirements-model.txt", "pyproject.toml", "data/recorded/demo.jsonl.xz",
                 "notebooks/01_a.ipynb", "tests/test_faults_text.py", "data/sample/roleplay.jsonl"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("selfeval", "python", "pytest", "ruff", "mypy", "jupyter", "papermill", "pip"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    (tmp_path / ".venv" / ".ready").touch()
    for name in ("SELFEVAL_STORE", "SELFEVAL_REPLAY", "SELFEVAL_FAULTS"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["make", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    calls = tmp_path / "calls.txt"
    said = calls.read_text().splitlines() if calls.exists() else []
    assert len(said) == len(TARGETS[words]), said
    for line, wanted in zip(said, TARGETS[words], strict=True):
        assert re.search(wanted, line), line
