"""The report: every notebook a page, inert whatever it holds, without keys and paths, and a list of them."""

import html.parser
import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from written_files import run_command

from selfeval import ROOT
from selfeval.errors import InputError
from selfeval.sweep.execute import FINDING
from selfeval.sweep.report import build

KEY = "sk-" + "report0123" * 3
LIVE = ("script", "svg", "iframe", "object", "embed", "base", "form")
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one red dot
)
SHOWN = "title markdown html plain markdown-output stdout stderr traceback code models".split()


OURS = new_markdown_cell("We found it.", metadata={"tags": [FINDING]})


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
    return new_notebook(cells=cells)


def add_run(sweep, name, notebook, **about):
    """Write an executed notebook, with what papermill notes about it."""
    folder = sweep / "asked" / name
    folder.mkdir(parents=True)
    notebook.metadata["papermill"] = about
    nbformat.write(notebook, folder / "notebook.ipynb")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The report on a sweep with everything that can go wrong in it."""
    sweep = tmp_path_factory.mktemp("runs") / "mine"
    given = {"models": [hostile("models"), "sim/good"]}
    add_run(sweep, "hostile<b onclick=hit()>", notebook(ROOT), start_time="2027", parameters=given)
    fine = new_notebook(cells=[new_markdown_cell("# Fine"), OURS])
    times = {"start_time": "2026", "end_time": "2026-01-02T03:04:05"}
    add_run(sweep, "fine", fine, **times, parameters={"models": "sim/talker", "out": f"{sweep}/out"})
    (sweep / "cut").mkdir()
    (sweep / "cut" / "a.ipynb").write_text('{"cells": [')
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


def test_the_list_has_every_run_in_its_order_with_models_and_date(site):
    start = Page(site / "index.html")
    pages = [about["href"] for tag, about in start.tags if tag == "a"]
    assert {site / name for name in pages} == {*site.glob("pages/*.html")} and len(pages) == 3
    assert "mine/asked/fine" in start.text and "sim/talker" in start.text and "2026-01-02" in start.text
    assert start.text.index("Fine") < start.text.index("A title?")
    cut, fine, _ = (Page(site / name).text for name in pages)
    assert "cannot be read" in cut and "Fine" in fine and "found" not in fine, "what our own runs found stays away"


def test_html_in_every_part_of_a_notebook_is_text_on_every_page(site):
    text = ""
    for file in site.rglob("*.html"):
        page = Page(file)
        text += page.text
        for tag, about in page.tags:
            assert tag not in LIVE and not any(name[:2] == "on" for name in about), (file.name, tag, about)
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
    add_run(tmp_path / "run", "a", new_notebook())
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


def test_of_a_project_below_the_home_no_folder_between_the_two_is_told(tmp_path, monkeypatch):
    project = tmp_path / "home" / "secret-client" / "project"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cell = new_code_cell("1", outputs=[new_output("stream", text=f"read {project}/mine.csv")])
    add_run(project / "runs", "a", new_notebook(cells=[cell]))
    monkeypatch.chdir(project)
    build([project / "runs"], tmp_path / "site")
    text = "".join(file.read_text("utf-8") for file in (tmp_path / "site").rglob("*.html"))
    assert "read mine.csv" in text and "secret-client" not in text


def test_a_study_of_ones_own_says_nothing_about_ours_and_no_path_is_left_of_it(tmp_path):
    folder = tmp_path / "mine"
    run_command("recognise", "--models", "sim/good,sim/chance", "--limit", 6, "-y", "--out", folder)
    text = "".join(file.read_text("utf-8") for file in (folder / "report").rglob("*.html"))
    assert str(folder.parent) not in text and "mine/answers/" in text, "where it lies within the study stays"
    notebooks = [*folder.rglob("notebook.ipynb")]
    assert len(notebooks) == 3
    for file in notebooks:
        assert FINDING not in [tag for cell in nbformat.read(file, 4).cells for tag in cell.metadata.get("tags", ())]
