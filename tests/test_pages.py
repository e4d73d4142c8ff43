"""The pages that people read: every link, path, parameter, command, target, name and snippet in them is real."""

import contextlib
import importlib
import io
import json
import re
import shlex
import shutil
import tomllib

import pytest
import yaml
from dictionary import anchor
from papermill import inspect_notebook

import selfeval
from selfeval import DATA, ROOT, sweep
from selfeval.cli import main
from selfeval.providers.models import get

NOTEBOOKS = {path.stem: path for path in ROOT.glob("notebooks/*.ipynb")}
PLACES = ("*.md", "docs/*.md", "data/**/*.md", "notebooks/*.md", "notebooks/*.ipynb", "figures/*.md")
README = ROOT / "README.md"
THEIRS = ROOT / "tests" / "data" / "theirs"  # invented files in the form of published studies
PAGES = sorted({path for place in PLACES for path in ROOT.glob(place)})
IGNORED = [line for line in (ROOT / ".gitignore").read_text().split() if line.endswith("/") and line[0] != "*"]
OF_A_RUN = "notebook.ipynb log.txt runs/ store/ results/ report/ mine.py".split()
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page):
    """Return a page's text, of a notebook that of its prose."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def blocks(page, language):
    """Return the fenced blocks of a page in a language; "" for plain ones, which hold commands."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text_of(page), re.M | re.S)
    return [block for kind, block in found if kind == language]


def prose(page):
    return re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)


def code(page):
    """Return what stands in backticks in a page's prose."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def commands(page):
    """Return the command lines of a page, from blocks and from the prose, without comments."""
    lines = [line for block in blocks(page, "") for line in block.splitlines()] + code(page)
    found = [line.split("  #")[0].strip() for line in lines]
    return [line for line in found if re.match(r"(selfeval|make|papermill|python|git) \S", line)]


def headings(page):
    return {anchor(title) for title in re.findall(r"^#+ (.+)", prose(page), re.M)}


@by_page
def test_links_paths_and_notebooks_exist(page):
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", prose(page)):
        name, _, place = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists() and (not place or place in headings(file)), f"{page.name} links to {target}"
    for name in code(page):
        assert not re.fullmatch(r"\d\d_\w+", name) or name in NOTEBOOKS, f"{page.name} names the notebook {name}"
        ends, begins = r"\.(py|yaml|ipynb|md|toml|cfg|cff|txt)$", ("data/", "tests/", "bench/", "selfeval/")
        is_path = re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*/?", name) and (re.search(ends, name) or name.startswith(begins))
        if is_path and not name.startswith((*IGNORED, *OF_A_RUN)):
            places = (ROOT, DATA, page.parent, ROOT / "tests", ROOT / "notebooks", ROOT / "selfeval" / "recognition")
            assert any(list(place.glob(name)) for place in places), f"{page.name} names {name}"


@by_page
def test_names_of_the_package_and_of_the_environment_exist(page):
    for name in code(page):
        if match := re.fullmatch(r"(selfeval(?:\.\w+)+)(\(.*\))?", name):
            module, _, attribute = match[1].rpartition(".")
            try:
                importlib.import_module(match[1])
            except ModuleNotFoundError:
                assert hasattr(importlib.import_module(module), attribute), f"{page.name} names {name}"
    files = (*ROOT.glob("selfeval/**/*.py"), DATA / "models.yaml")
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    for piece in [*code(page), *blocks(page, "")]:
        for name in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", piece):
            assert name in sources, f"{page.name} names the variable {name}"


@by_page
def test_commands_have_their_options_and_targets(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in commands(page):
        program, *words = shlex.split(line)
        if program == "make":
            for word in words:
                variable, is_set, _ = word.partition("=")
                pattern = rf"^{variable} \?=|\$\({variable}\)" if is_set else rf"^{word}:"
                assert re.search(pattern, makefile, re.M), f"{page.name}: {line}"
        elif program == "selfeval":
            check_selfeval(words, f"{page.name}: {line}")
        elif program == "papermill":
            [notebook, *_] = [ROOT / word for word in words if word.endswith(".ipynb")] or [NOTEBOOKS["00_tour"]]
            known = set(inspect_notebook(str(notebook)))
            given = {words[i + 1] for i, word in enumerate(words) if word == "-p"}
            given |= {name for i, word in enumerate(words) if word == "-y" for name in yaml.safe_load(words[i + 1])}
            assert given <= known, f"{page.name}: {line}"
    if page.suffix == ".ipynb":
        named = {match[1] for piece in code(page) if (match := re.match(r"(\w+) = ", piece))}
        assert named <= set(inspect_notebook(str(page))), f"{page.name} names a parameter that it does not have"
    for parameter, notebook in re.findall(r"`(\w+)` of `(\d\d_\w+)`", prose(page)):
        assert parameter in inspect_notebook(str(NOTEBOOKS[notebook])), f"{page.name}: {parameter} of {notebook}"


def check_selfeval(words, where):
    command, words = main, list(words)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert command is not main or words[0].startswith("-"), f"{where}: no such command"
    options = {name for parameter in command.params for name in parameter.opts} | {"--help", "-h"}
    assert {word for word in words if word.startswith("-")} <= options, where


def test_every_command_target_and_notebook_is_on_a_page():
    pages = "\n".join(text_of(page) for page in PAGES)
    for name, command in main.commands.items():
        if command.hidden:  # another spelling
            continue
        for inner in getattr(command, "commands", None) or [""]:
            assert re.search(rf"selfeval {name} {inner}".strip() + r"\b", pages), (name, inner)
    [targets] = re.findall(r"^\.PHONY: (.+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for target in targets.split():
        assert f"make {target}" in pages, f"`make {target}` is on no page"
    for stem in NOTEBOOKS:
        assert f"* [{stem}](notebooks/{stem}.ipynb): " in text_of(README), f"{stem} is not in the index"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_snippets_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(THEIRS, tmp_path, dirs_exist_ok=True))
    for block in blocks(page, "python"):
        if "data/runs/curve" in block:  # test_pooled.py runs the sweep that it reads
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page.name, "exec"), {"__name__": "snippet"})
        for promised in re.findall(r"^print\(.*\)  # (.+)$", block, re.M):
            assert promised in printed.getvalue().splitlines(), f"{page.name} promises {promised!r}"


# The README's commands and the how-tos of docs/, as somebody who tries them


def block_with(language, word):
    found = [block for page in PAGES if page.parent.name == "docs" for block in blocks(page, language)]
    [block] = [block for block in found if word in block]
    return block


def test_prompts_of_ones_own(tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(block_with("jsonl", "prompt_id"), encoding="utf-8")
    texts = selfeval.generate_texts("sim/good", prompts)
    assert [*zip(texts["prompt_id"], texts["words_asked"], strict=True)] == [("rain", 60), ("queue", 30)]


@pytest.mark.parametrize("word, evaluator, statistic, estimate", [
    ("predictions.json", "openai/gpt-4.1", "discrimination", 2 / 3),
    ("predictions.json", "x-ai/grok-4", "no_answer_rate", 1 / 6),  # drawn where the reply was an error
    ("recognition_score", "gpt35", "auc_within_prompt", 7 / 8),
    ("forward_detection", "gpt4", "self_accuracy", 12 / 16),
    ("verdict_extract", "gpt-4-turbo", "discrimination", 3 / 4 - 1 / 4),
    ("arena.csv", "gpt-4o", "self_accuracy", (4 / 5 + 5 / 6) / 2),  # of either place; one is a tie
    ("arena.csv", "gpt-4o", "neutral_rate", 1 / 2),
])  # fmt: skip
def test_files_in_the_form_of_published_studies_are_read_as_the_page_says(
    word, evaluator, statistic, estimate, monkeypatch
):
    """The files are invented; those of the studies have more columns and rows."""
    monkeypatch.chdir(THEIRS)
    made = {}
    exec(block_with("python", word), made)
    found = made["result"].set_index(["evaluator", "statistic"])["estimate"]
    assert found[evaluator, statistic] == pytest.approx(estimate)


def test_an_identity_template_of_ones_own(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(block_with("yaml", "claimed_name"), encoding="utf-8")
    replies = selfeval.ask_identity("sim/identity-wavers", suite=suite)
    records = {*zip(replies["template_id"], replies["arm"], strict=True)}
    assert records == {("good-morning", arm) for arm in ("neutral", "false-far", "true")}


def test_a_juror_persona_of_ones_own():
    own = yaml.safe_load(block_with("yaml", "persona:"))
    known = yaml.safe_load((DATA / "roleplay" / "jurors.yaml").read_text(encoding="utf-8"))
    assert all(entry.keys() == next(iter(known.values())).keys() for entry in own.values())


def test_a_registry_of_ones_own(registry):
    registry(block_with("yaml", "gpu.lab"))
    assert get("my/terse-gpt").system == "Be brief." and get("my/terse-gpt").provider.name == "openrouter"
    assert get("my/llama").provider.base_url == "http://gpu.lab:8000/v1"
    registry(block_with("yaml", "azure"))
    for name in ("azure/gpt-4.1", "azure/gpt-4o"):
        assert get(name).provider.missing_variable == "AZURE_OPENAI_API_KEY"


def test_the_sweep_file_of_the_page_is_one(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(block_with("yaml", "name: mine"), encoding="utf-8")
    assert [len(runs) for runs in sweep.load(file, tmp_path / "runs").stages.values()] == [1, 2, 1, 1]


def test_the_citation_names_the_version_and_the_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"] and citation["license"] == project["license"]
    assert f"## [{project['version']}] - {citation['date-released']}" in text_of(ROOT / "CHANGELOG.md")
