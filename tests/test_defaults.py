"""What a study's command asks its notebooks for, without an option and at the option's edge.

The options are those of the commands themselves, so that a new one without an entry here fails. That a notebook heeds
a parameter is seen in test_parameters.py.
"""

import shlex

import click
import pytest
from test_cli import selfeval

from selfeval import DATA, sweep
from selfeval.cli import main

CSV = "author,prompt,text\nAnna,rain,a\nBert,rain,b\nAnna,snow,c\nBert,snow,d\n"
SHARED = {"yes", "dry_run", "batch", "max_cost", "out"}  # what all studies do alike, below

RECOGNISE = "recognise --models openai/gpt-4.1,openai/gpt-4o"
OF_TEXTS = "recognise my.csv --models openai/gpt-4.1 --authors Anna=openai/gpt-4.1"
IDENTITY = "identity --models openai/gpt-4.1"
JURY = "jury --models openai/gpt-4.1 --jurors openai/gpt-4o,openai/gpt-4o-mini"
PROFILE = "profile openai/gpt-4.1"
BOTH = ["openai/gpt-4.1", "openai/gpt-4o"]

# {command: {its option: [(line, stage, parameter, value)]}}
ASKED = {
    "recognise": {
        "models": [(RECOGNISE, "texts", "models", BOTH), (RECOGNISE, "answers", "models", BOTH)],
        "limit": [
            (RECOGNISE, "texts", "limit", 20),
            (f"{RECOGNISE} --limit 1", "texts", "limit", 1),
            (OF_TEXTS, "answers", "limit", 0),
            (f"{OF_TEXTS} --limit 2", "answers", "limit", 2),
        ],
        "texts": [(OF_TEXTS, "answers", "corpus", "{here}/my.csv")],
        "authors": [
            (RECOGNISE, "recognition", "authors", {}),
            (f"{RECOGNISE} --authors Bot=openai/gpt-4o", "recognition", "authors", {"Bot": "openai/gpt-4o"}),
            (f"{RECOGNISE} --authors Bot=", "recognition", "authors", {"Bot": None}),
            (OF_TEXTS, "answers", "authors", {"Anna": "openai/gpt-4.1"}),
            (OF_TEXTS, "recognition", "authors", {}),
        ],
        "allow_strangers": [
            (OF_TEXTS, "answers", "asking", {"allow_strangers": False}),
            (f"{OF_TEXTS} --allow-strangers", "answers", "asking", {"allow_strangers": True}),
        ],
    },
    "identity": {
        "ids": [(IDENTITY, "04_identity", "models", BOTH[:1])],
        "limit": [
            (IDENTITY, "04_identity", "limit", 18),
            (f"{IDENTITY} --limit 0", "04_identity", "limit", 0),
        ],
        "scoring": [
            (IDENTITY, "04_identity", "scoring", "claims"),
            (f"{IDENTITY} --scoring regex", "04_identity", "scoring", "regex"),
        ],
        "config": [],  # no notebook: test_studies.py
    },
    "jury": {
        "agent": [(JURY, "06_jury", "agent", "openai/gpt-4.1")],
        "jurors": [(JURY, "06_jury", "jurors", ["openai/gpt-4o", "openai/gpt-4o-mini"])],
        "people": [(JURY, "06_jury", "humans", 20), (f"{JURY} --people 1", "06_jury", "humans", 1)],
        "words": [
            (JURY, "06_jury", "how", {"words": 60}),
            (f"{JURY} --words 0", "06_jury", "how", {"words": 0}),
            (f"{JURY} --words 150", "06_jury", "how", {"words": 150}),
        ],
    },
    "profile": {
        "models": [(PROFILE, "profile", "models", BOTH[:1]), (f"{PROFILE} openai/gpt-4o", "profile", "models", BOTH)],
        "prompts": [
            (PROFILE, "profile", "size", {"prompts": 0, "templates": 0, "people": 0}),
            (f"{PROFILE} --prompts 1", "profile", "size", {"prompts": 1, "templates": 0}),
        ],
        "templates": [(f"{PROFILE} --templates 1", "profile", "size", {"templates": 1, "people": 0})],
        "people": [(f"{PROFILE} --people 1", "profile", "size", {"people": 1, "prompts": 0})],
        "jurors": [
            (PROFILE, "profile", "jurors", []),
            (f"{PROFILE} --jurors openai/gpt-4o", "profile", "jurors", ["openai/gpt-4o"]),
        ],
        "rivals": [
            (PROFILE, "profile", "rivals", []),
            (f"{PROFILE} --rivals openai/gpt-4o", "profile", "rivals", ["openai/gpt-4o"]),
        ],
    },
}
OPTIONS = [
    (command, option.name)
    for command in ASKED
    for option in main.commands[command].params
    if isinstance(option, click.Parameter) and option.name not in SHARED
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that types a line and returns the runs that it would execute, and what else it says of them."""
    (tmp_path / "my.csv").write_text(CSV)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENROUTER_API_KEY", "none")

    def typed(line):
        said = {}

        def listen(file, workers=None, out=None, **options):
            said.update(options, file=file, out=out)
            return 1  # nothing is executed

        monkeypatch.setattr(sweep, "run_file", listen)
        done = selfeval(*shlex.split(line))
        assert said, done.output
        return sweep.load(said["file"], said["out"], said["variables"]).runs, said

    return typed


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_without_an_option_and_at_its_edge_the_notebooks_are_given_what_the_help_says(command, option, run, tmp_path):
    for line, stage, parameter, expected in ASKED[command][option]:
        runs, _ = run(line)
        [asked] = [each for each in runs if each.stage == stage]
        value = asked.parameters[parameter]
        if isinstance(expected, str):
            expected = expected.replace("{here}", str(tmp_path))
        if isinstance(expected, dict) and expected and parameter not in ("authors",):
            value = {name: value.get(name) for name in expected}
        assert value == expected, line


@pytest.mark.parametrize("line", [RECOGNISE, IDENTITY, JURY, PROFILE])
def test_all_studies_ask_before_they_buy_and_know_a_ceiling_and_a_folder(line, run, tmp_path):
    _, usual = run(line)
    assert usual["dry_run"] and usual["confirm"] and usual["max_cost"] is None
    assert usual["out"].parent == DATA / "runs"
    assert run(f"{line} --yes")[1]["confirm"] is None
    _, given = run(f"{line} --max-cost 0 --out there")
    assert given["max_cost"] == 0 and given["out"] == tmp_path / "there"
