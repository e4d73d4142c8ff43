"""The report: every notebook a page, inert whatever it holds, without keys and paths, and a list with conclusions."""

import html.parser
import json
import re
import shutil

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from written_files import run_command

import selfeval as se
from selfeval import DATA, ROOT
from selfeval.errors import InputError
from selfeval.estimates import summaries
from selfeval.sweep.findings import FINDING
from selfeval.sweep.report import build

KEY = "sk-" + "report0123" * 3
LIVE = ("script", "svg", "iframe", "object", "embed", "base", "form")
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one red dot
)
SHOWN = "title markdown html plain markdown-output stdout stderr traceback code status cause models conclusion".split()


def hostile(place):
    """Return what would run: a script, handlers, and what leaves an attribute."""
    return (
        f"{place}! <script>hit()</script><img src=x onerror=hit()><svg onload=hit()>"
        "\" onmouseover=\"hit()\" x=' onfocus='hit()'></script><b onclick=hit()>z"
    )


def notebook(folder):
    """Return a notebook with HTML in all of its parts, and with a key, a path, and what a terminal obeys."""
    data = [
        {"text/html": f"<table><tr><td>{hostile('html')}</td></tr></table>", "text/plain": "x"},
        {"text/plain": hostile("plain")},
        {"text/markdown": hostile("markdown-output")},
        {"application/x": hostile("json"), "image/svg+xml": "<svg onload=hit()></svg>"},
        {"application/javascript": "hit()"},
        {"image/png": PIXEL},
        {"image/png": hostile("no picture")},
    ]
    outputs = [
        *(new_output("display_data", each, metadata={"width": "1 onload=hit()"}) for each in data),
        new_output("stream", name="stderr", text=hostile("stderr")),
        new_output("stream", text=f"\x1b[32mgreen\x1b[0m \u202egnp.exe {KEY} {folder}/file\n{hostile('stdout')}"),
        new_output("error", ename="E", traceback=[hostile("traceback")], evalue=""),
    ]
    cells = [
        new_markdown_cell(f"# A title? {hostile('title')}"),
        new_markdown_cell(hostile("markdown")),
        new_code_cell(f"1  # {hostile('code')}", outputs=outputs, execution_count=1),
        new_raw_cell(hostile("raw")),
    ]
    cells[2].metadata["tags"] = [f"parameters{hostile('tag')}"]
    return nbformat.writes(new_notebook(cells=cells))


def add_run(sweep, name, text, **manifest):
    folder = sweep / "asked" / name
    folder.mkdir(parents=True)
    (folder / "notebook.ipynb").write_text(text)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The report on a sweep with everything that can go wrong in it."""
    sweep = tmp_path_factory.mktemp("runs") / "mine"
    end, plain = "2026-01-02T03:04:05+00:00", nbformat.writes(new_notebook(cells=[new_markdown_cell("# Fine")]))
    manifest = {name: hostile(name) for name in ("status", "cause")}
    given = {"evaluators": [hostile("models"), "sim/good"], "models": "sim/chance"}
    bad = add_run(sweep, "hostile<b onclick=hit()>", notebook(ROOT), **manifest, ended=end, parameters=given)
    rows = pd.read_csv(DATA / "results" / "sample" / "existence" / "existence.csv")
    rows = rows[(rows["statistic"] == "discrimination") & rows["condition"].str.startswith("answer=true")]
    rows.assign(evaluator="m/2", conclusion=hostile("conclusion")).to_csv(bad / "existence.csv", index=False)
    fine = add_run(sweep, "fine", plain, status="ok", started="2026", ended=end, parameters={"agent": "sim/talker"})
    (fine / "counts.csv").write_text("a\n1\n")
    add_run(sweep, "cut", '{"cells": [')
    yield build([sweep], tmp_path_factory.mktemp("site")).parent
    shutil.rmtree(sweep)  # the key in it was planted


class Page(html.parser.HTMLParser):
    """What a page consists of: (tag, attributes), and the texts."""

    def __init__(self, file):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, text):
        self.text += text


def test_the_list_has_every_run_with_models_date_and_conclusion(site):
    start = Page(site / "index.html")
    pages = [about["href"] for tag, about in start.tags if tag == "a"]
    assert {site / name for name in pages} == {*site.glob("pages/*.html")} and len(pages) == 3
    assert "Fine" in start.text and "mine/asked/fine" in start.text and "sim/talker" in start.text
    assert "2026-01-02" in start.text and "conclusion! " in start.text and ": m/2" in start.text
    assert any("cannot be read" in Page(site / name).text for name in pages)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_runs_conclusion_is_that_of_its_results_wherever_they_are_and_once_moved_of_those_beside_it(
    is_there, tmp_path
):
    results = tmp_path / "results"
    run = add_run(
        tmp_path / "mine", "run", nbformat.writes(new_notebook()), status="ok", parameters={"out": str(results)}
    )
    rows = pd.read_csv(DATA / "results" / "sample" / "existence" / "existence.csv")
    rows = rows[(rows["statistic"] == "discrimination") & rows["condition"].str.startswith("answer=true")]
    rows.assign(evaluator="m/2", conclusion="beside").to_csv(run / "existence.csv", index=False)
    if is_there:
        results.mkdir()
        rows.assign(evaluator="m/2", conclusion="elsewhere").to_csv(results / "existence.csv", index=False)
    listed = Page(build([tmp_path / "mine"], tmp_path / "site")).text
    assert ("elsewhere: m/2" in listed, "beside: m/2" in listed) == (is_there, not is_there)


def test_html_in_every_part_of_a_notebook_is_text_on_every_page(site):
    text = ""
    for file in site.rglob("*.html"):
        page = Page(file)
        text += page.text
        for tag, about in page.tags:
            assert tag not in LIVE and not any(name[:2] == "on" for name in about), (file.name, tag, about)
            assert about.get("src", "data:image/").startswith("data:image/")
            assert not re.match("javascript|vbscript", about.get("href") or "", re.I)
        [policy] = [about["content"] for _, about in page.tags if about.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "script" not in policy
    assert [place for place in SHOWN if f"{place}! " not in text] == []
    assert "green ‹U+202E›gnp.exe" in text


def test_no_key_and_no_path_of_this_machine(site):
    text = "".join(file.read_text("utf-8") for file in site.rglob("*.html"))
    assert KEY not in text and str(ROOT) not in text and "[key] file" in text
    assert f"data:image/png;base64,{PIXEL}" in text


def test_a_report_replaces_a_report_and_nothing_else(site, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.ipynb").write_text(nbformat.writes(new_notebook()))
    for _ in range(2):
        assert build([tmp_path / "run"], tmp_path / "out") == tmp_path / "out" / "index.html"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "page.html").write_text("my own page")
    for folder, out, why in (
        ("run", "mine", "holds files that are not of a report"),
        ("nowhere", "out", "There is no notebook below"),
        ("mine", "out", "There is no notebook below"),
    ):
        with pytest.raises(InputError, match=why):
            build([tmp_path / folder], tmp_path / out)


# a study far from the project: one verdict, no path, no finding of ours -----------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study on simulated models in a folder of its own: (folder, what the terminal said)."""
    folder = tmp_path_factory.mktemp("scratch") / "mine"
    said = run_command("recognise", "--models", "sim/good,sim/chance,sim/perfect", "--limit", 30, "-y", "--out", folder)
    return folder, said


def site_text(index):
    """Return what stands in all files of a report."""
    return "".join(file.read_text("utf-8") for file in index.parent.rglob("*.html"))


def test_the_list_the_terminal_and_the_result_have_one_verdict(study):
    folder, said = study
    of_names = "recognises: Perfect; recognises alone, not after Holm: Good; no evidence: Chance"
    verdict = f"binary_self – recognises: Good, Perfect; no evidence: Chance. exact_model – {of_names}"
    lines = [line for line in said.splitlines() if line.startswith(("exact_model", "binary_self"))]
    in_terminal = {tuple(line.split()[:2]): re.search(r" \d+ +([a-z].*)$", line)[1] for line in lines}
    assert len(lines) == 6 and {*in_terminal.values()} >= {"recognises", "no evidence"}
    assert {model for (_, model), conclusion in in_terminal.items() if conclusion == "no evidence"} == {"Chance"}
    assert verdict in Page(folder / "report" / "index.html").text
    [result] = se.read_results(folder / "recognition")
    assert summaries.verdict(result) == verdict


@pytest.mark.parametrize(("place", "verdict"), [
    ("results/families/recognition",
     "binary_self – constant answer: SmolLM2; no evidence: Qwen2.5 Coder, SmolLM2 (captain). "
     "exact_model – no evidence: Qwen2.5 Coder, SmolLM2, SmolLM2 (captain)"),
    ("results/families/identity", "no evidence: Qwen2.5 Coder, Qwen2.5 Coder (untold), SmolLM2"),
    ("results/families/jury", "no evidence: debate, independent, reask"),
    ("results/families/implicit-people",
     "binary_self, reading=yes or no – no evidence: Qwen2.5 Coder, SmolLM2, SmolLM2 (captain). "
     "exact_model, reading=names the author – no evidence: Qwen2.5 Coder, SmolLM2, SmolLM2 (captain). "
     "exact_model, reading=oracle – claims its own more: Qwen2.5 Coder, SmolLM2, SmolLM2 (captain). "
     "exact_model, reading=own likelihood – recognises: Qwen2.5 Coder; claims its own more: SmolLM2, "
     "SmolLM2 (captain). "
     "exact_model, reading=style – claims its own more: Qwen2.5 Coder, SmolLM2, SmolLM2 (captain)"),
])  # fmt: skip
def test_each_kind_of_result_is_told_in_a_line(place, verdict):
    [result] = se.read_results(place)
    assert summaries.verdict(result) == verdict


def test_no_path_is_left_of_a_study_that_lies_elsewhere_or_was_moved(study, tmp_path):
    folder, _ = study
    text = site_text(folder / "report" / "index.html")
    assert str(folder.parent) not in text and "mine/answers/" in text, "where it lies within the study stays"
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved, ignore=shutil.ignore_patterns("report"))
    text = site_text(build([moved], tmp_path / "site"))
    assert str(folder.parent) not in text and str(tmp_path) not in text
    assert "recognises: Good, Perfect" in text


def test_a_file_that_a_parameter_names_is_told_without_where_it_lies(tmp_path):
    lab, away = tmp_path / "lab", tmp_path / "away" / "deep"
    cells = [new_code_cell('out: str = ""', metadata={"tags": ["parameters"]})]
    given = f'out = "{away}/run"\nprompts = ["{lab}/prompts.csv"]'
    cells.append(new_code_cell(given, metadata={"tags": ["injected-parameters"]}))
    cells.append(new_code_cell("1", outputs=[new_output("stream", text=f"read {lab}/prompts.csv, {away}/run/x.csv")]))
    (tmp_path / "runs").mkdir()
    nbformat.write(new_notebook(cells=cells), tmp_path / "runs" / "a.ipynb")
    text = site_text(build([tmp_path / "runs"], tmp_path / "site"))
    assert str(tmp_path) not in text and "read prompts.csv, run/x.csv" in text


def test_of_a_project_below_the_home_no_folder_between_the_two_is_told(tmp_path, monkeypatch):
    project = tmp_path / "home" / "secret-client" / "project"
    (project / "runs").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    cell = new_code_cell("1", outputs=[new_output("stream", text=f"read {project}/mine.csv")])
    nbformat.write(new_notebook(cells=[cell]), project / "runs" / "a.ipynb")
    text = site_text(build([project / "runs"], tmp_path / "site"))
    assert "read mine.csv" in text and "secret-client" not in text


COMMITTED = sorted((ROOT / "notebooks").glob("*.ipynb"))


def findings(path):
    """Return the longest plain words of each cell that says what a committed notebook found."""
    cells = nbformat.read(path, as_version=4).cells
    tagged = [cell.source for cell in cells if FINDING in cell.metadata.get("tags", ())]
    said = [source for source in tagged if not source.startswith(("back:", "next:"))]
    return [max(re.findall(r"[\w ,]+", source), key=len).strip() for source in said]


def prose(cells):
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_a_study_of_ones_own_says_nothing_about_ours(study):
    folder, _ = study
    notebooks = [*folder.rglob("notebook.ipynb")]
    assert len(notebooks) == 3
    ours = [words for path in COMMITTED for words in findings(path)]
    pages = [site_text(folder / "report" / "index.html")]
    for file in notebooks:
        pages.append(prose(nbformat.read(file, as_version=4).cells))
        assert "#" in pages[-1]
    assert len(ours) > 14
    assert [words for words in ours for page in pages if words in page] == []


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_report_leaves_out_our_findings_where_papermill_gave_other_parameters(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "markdown" or "tags" in cell.metadata]
    [place] = [number for number, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    for name, injected in {"same": "", "own": "seed = 77\nresults = 'mine'\nfolder = 'mine'"}.items():
        run = nbformat.from_dict(notebook)
        if injected:
            run.cells.insert(place + 1, new_code_cell(injected, metadata={"tags": ["injected-parameters"]}))
        (tmp_path / name).mkdir()
        nbformat.write(run, tmp_path / name / "out.ipynb")
    same = site_text(build([tmp_path / "same"], tmp_path / "site"))
    own = site_text(build([tmp_path / "own"], tmp_path / "site"))
    found = findings(path)
    assert [words for words in found if words in own] == []
    assert [words for words in found if words not in same] == []
    assert found or path.stem == "09_paper_figures"
