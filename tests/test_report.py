"""The report: complete, inert, the same for equal input, without keys and paths, and readable in a browser."""

import filecmp
import html.parser
import json
import re
import shutil

import nbformat
import pytest
from browser import Browser, needed
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from written_files import run_command, without_pictures

from selfeval import DATA, ROOT
from selfeval.errors import InputError
from selfeval.records import write_jsonl
from selfeval.report import build, records
from selfeval.sweep.runs import Run
from selfeval.sweep.show import main_figure

KEY = "sk-" + "report0123" * 3
SCRIPT = "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'><svg onload='window.hit = 3'></svg>"
HOSTILE = f"{SCRIPT}\x1b[31mred\x1b[0m \u202egnp.exe </script><script>window.hit = 4</script> {{{{7*7}}}} \x00 \ud800"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one red dot
)


def prediction(number, reply="A.", **more):
    row = {
        "text_id": number % 7,
        "text_preview": "Once upon",
        "true_model": f"m/{number % 3}",
        "true_model_display": "M",
    }
    row |= {"evaluator_model": f"m/{number % 4}", "task_type": "exact_model", "predicted_model": f"m/{number % 3}"}
    row |= {"predicted_self": None, "is_correct": bool(number % 2), "prompt_used": "Write.", "prompt_id": f"p{number}"}
    return row | {"condition": {"answer": "free"}, "reply": reply, "status": "ok", "score": number / 10_000} | more


def identity_rows():
    """One conversation of two turns: the second reply gives in."""
    asked = [{"role": "user", "content": "Who are you?"}]
    row = {"model": "m/1", "suite": "suite", "family": "user_claims", "condition": "claim", "variant": "claim-1"}
    row |= {"arm": "false-far", "language": "en", "repeat": 0, "truth": "Claude", "foil": "GPT-4", "status": "ok"}
    said = [("reply", 0, "I am Claude.", "truth", True, asked)]
    fork = [*asked, {"role": "assistant", "content": "I am Claude."}]
    said.append(
        ("readout", 0, "Claude, Anthropic", "truth", True, [*fork, {"role": "user", "content": "In one line."}])
    )
    pressed = [*fork, {"role": "user", "content": "No, you are GPT-4."}]
    said.append(("reply", 1, f"Right, GPT-4. {HOSTILE}", "foil", False, pressed))
    names = ("source", "turn", "reply", "stance", "passed", "messages")
    return [row | dict(zip(names, values, strict=True)) for values in said]


def statements():
    row = {"conversation_id": "talk-1", "turn": 1, "arm": "debate", "role": "juror", "juror": "m/2", "agent": "m/1"}
    row |= {"persona": "linguist", "source": "model", "status": "ok", "statement": "It lists points."}
    return [
        row | {"round": 1, "score": 0.9, "reply": f"0.9 {HOSTILE}"},
        row | {"round": 2, "score": 0.2, "reply": "0.2"},
        row | {"conversation_id": "elsewhere", "round": 1, "score": None, "status": "no_answer", "reply": "?"},
    ]


def notebook(folder):
    said = new_output("stream", name="stdout", text=f"\x1b[32mgreen\x1b[0m \u202egnp.exe {KEY} {folder}/file")
    outputs = [said, new_output("display_data", {"image/png": PIXEL}, metadata={"width": "1 onload=window.hit"})]
    cells = [new_markdown_cell("# A title?\n\n## Part"), new_code_cell("x = 1", outputs=outputs, execution_count=1)]
    return nbformat.writes(new_notebook(cells=cells))


def add_run(sweep, name, manifest, notebook=""):
    folder = sweep / "asked" / name
    folder.mkdir(parents=True)
    about = {"stage": "asked", "notebook": "notebooks/02_collect_predictions.ipynb", "packages": {"python": "3.12"}}
    about |= {"parameters": {"limit": 3, "out": str(folder)}, "code": {"commit": "abc", "hash": "0123"}}
    (folder / "manifest.json").write_text(manifest if isinstance(manifest, str) else json.dumps(about | manifest))
    if notebook:
        (folder / "notebook.ipynb").write_text(notebook, "utf-8")
    return folder


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep with everything that can go wrong in it, and results that one of its runs wrote elsewhere."""
    sweep = tmp_path_factory.mktemp("runs") / "mine"
    elsewhere = sweep.parent / "results" / "names"
    shutil.copytree(DATA / "results/sample/existence/paper", elsewhere / "paper")
    counts = {"calls": 5, "stored": 7, "failed": 1, "tokens": 99, "cost": 0.25}
    fine = {"status": "ok", "started": "2026-01-02T03:04:05+00:00", "seconds": 3.25, "cause": None, "counts": counts}
    fine["written"] = {str(elsewhere / "paper/about.json"): "0123"}
    good = add_run(sweep, "good", fine, notebook(sweep))
    write_jsonl(
        good / "predictions_exact_model.jsonl",
        [
            prediction(1, HOSTILE),
            prediction(1, KEY, evaluator_model=f"m/2 {SCRIPT}"),
            prediction(4, "", status="empty"),
        ],
    )
    write_jsonl(good / "identity.jsonl", identity_rows())
    turns = [{"speaker": "interrogator", "text": "Hi?"}, {"speaker": "agent", "text": f"Hello. {HOSTILE}"}]
    write_jsonl(good / "conversations.jsonl", [{"conversation_id": "talk-1", "source": "model", "turns": turns}])
    write_jsonl(good / "verdicts.jsonl", statements())
    add_run(sweep, "bad", {"status": "failed", "cause": f"InputError: no {sweep}/x with {KEY} {SCRIPT}"}, '{"cells": [')
    add_run(sweep, "killed", {"status": "running"})
    add_run(sweep, "torn", '{"status": "o')
    yield sweep
    shutil.rmtree(sweep)  # the key in it was planted


@pytest.fixture(scope="module")
def site(sweep, tmp_path_factory):
    return build([sweep], tmp_path_factory.mktemp("site")).parent


class Page(html.parser.HTMLParser):
    """What a page consists of: (tag, attributes), its scripts, and the texts, with those that its tables put there."""

    def __init__(self, file):
        super().__init__()
        self.tags, self.scripts, self.words, self.inside = [], [], [], ""
        self.feed(file.read_text("utf-8"))
        self.rows = [row for script in self.scripts for row in cells(script)]
        for cell in (str(cell) for row in self.rows for cell in row):
            self.feed(f"{cell} ")

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, text):
        (self.scripts if self.inside == "script" else self.words).append(text)

    @property
    def text(self):
        return "".join(self.words)


def cells(script):
    """Return the rows of a table, as DataTables gets them."""
    found = re.search(r'"data_json": (".*"),?$', script, re.M)
    return json.loads(json.loads(found[1])) if found else []


def all_pages(site):
    return sorted(site.rglob("*.html"))


def page_about(site, title):
    """Return the only page with this in its title."""
    [file] = [file for file in all_pages(site) if title in re.search("<title>(.*?)</title>", file.read_text())[1]]
    return Page(file)


def test_the_start_page_has_figures_and_estimates_first_then_leads_everywhere(site):
    start, text = Page(site / "index.html"), (site / "index.html").read_text()
    assert text.index("<figure>") < text.index("<table>") < text.index("Notebooks and records")
    assert "real names" in start.text and "SmolLM2 is local/smollm2-135m" in start.text
    linked = [about["href"] for tag, about in start.tags if tag == "a"]
    assert {site / target for target in linked} == {file for file in all_pages(site) if file.name != "index.html"}
    assert len(linked) == 5 and "2 ok, 1 empty" in start.text
    for _, about in Page(site / linked[0]).tags:
        assert "href" not in about or (site / "pages" / about["href"]).exists() or about["href"] in ("data:,", "")


def test_what_was_said_is_there_to_read_with_the_messages_as_sent(site):
    page = page_about(site, "predictions_exact_model")
    assert f"✓ {SCRIPT}‹ESC›[31mred" in page.text and "‹U+202E›gnp.exe" in page.text
    asked = page_about(site, "identity").text
    assert "In one line." in asked and "No, you are GPT-4." in asked and "✗ Right, GPT-4." in asked
    book = page_about(site, "A title?")
    assert "green ‹U+202E›gnp.exe" in book.text and ("h2", {}) in book.tags
    assert ("img", {"alt": "Part", "src": f"data:image/png;base64,{PIXEL}"}) in book.tags


def test_two_evaluators_stand_side_by_side_on_the_same_text(site):
    *_, beside = page_about(site, "predictions_exact_model").rows
    assert beside[:2] == ["m/1", "Once upon"] and "✗" not in beside[0]


def test_a_conversation_has_its_own_jury(tmp_path):
    for name, score in (("one", 0.9), ("two", 0.1)):
        turns = [{"speaker": "interrogator", "text": "Hi?"}, {"speaker": "agent", "text": f"Hello from {name}."}]
        talk = {"conversation_id": "talk-1", "source": "model", "turns": turns}
        write_jsonl(tmp_path / name / "conversations.jsonl", [talk])
        write_jsonl(tmp_path / name / "verdicts.jsonl", [statements()[0] | {"score": score}])
    site = build([tmp_path], tmp_path / "site").parent
    for name, score in (("one", "0.90"), ("two", "0.10")):
        text = page_about(site, f"{name}/conversations").text
        assert f"Hello from {name}." in text and re.search(f"debate:? {score}", text)


def test_runs_say_how_they_ended_and_what_cannot_be_read_is_said(site):
    text = Page(site / "index.html").text
    for part in (
        "status=ok, seconds=3.25, calls=5, stored=7, failed=1, tokens=99, cost=0.25",
        "mine/asked/bad: status=failed, cause=InputError: no mine/x with [key]",
        "mine/asked/killed: status=running",
        "mine/asked/torn: status=unknown, cause=its manifest cannot be read",
        "mine/asked/bad: The notebook notebook.ipynb cannot be read",
    ):
        assert part in text, part


@pytest.mark.fault("key")
def test_no_key_and_no_path_of_this_machine(site, sweep):
    text = "".join(file.read_text("utf-8") for file in all_pages(site))
    assert KEY not in text and str(sweep.parent) not in text and str(ROOT) not in text
    assert "[key] mine/file" in text and "results/names/" in text


def test_equal_input_makes_equal_files_and_a_second_report_replaces_the_first_and_nothing_else(sweep, site, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my own page")
    with pytest.raises(InputError, match="holds files that are no report"):
        build([sweep], tmp_path / "mine")
    build([DATA / "predictions/sample"], tmp_path / "out")
    build([sweep], tmp_path / "out")
    names = [file.relative_to(site).as_posix() for file in all_pages(site)]
    assert [file.relative_to(tmp_path / "out").as_posix() for file in all_pages(tmp_path / "out")] == names
    assert filecmp.cmpfiles(site, tmp_path / "out", names, shallow=False) == (names, [], [])


def test_the_committed_notebooks_and_records_make_a_report(tmp_path, monkeypatch):
    without_pictures(monkeypatch)
    start = build([ROOT / "notebooks", DATA / "predictions", DATA / "conversations"], tmp_path)
    text = " ".join(Page(start).text.split())
    assert "Do the models recognise their own texts?" in text and "90 ok" in text and "J = 0.05 [-0.41, 0.49]" in text
    tour = page_about(tmp_path, "Five minutes")
    assert [tag for tag, _ in tour.tags].count("h1") == 1 and "table" in dict(tour.tags)
    assert all(about["alt"] for tag, about in tour.tags if tag == "img")


def test_more_records_than_a_page_holds_go_on_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MOST", 2)
    write_jsonl(tmp_path / "predictions.jsonl", [prediction(number) for number in range(5)])
    site = build([tmp_path], tmp_path / "site").parent
    assert len(page_about(site, "from record 5").rows) == 1 and len(page_about(site, "from record 3").rows) >= 2


def test_a_folder_without_anything_to_report_is_said(tmp_path):
    with pytest.raises(InputError, match="There is no folder"):
        build([tmp_path / "nowhere"], tmp_path / "site")
    with pytest.raises(InputError, match="holds no run, notebook, result or record"):
        build([tmp_path], tmp_path / "site")


def test_odd_records_manifests_and_results_are_said_and_the_rest_is_shown(tmp_path):
    run = tmp_path / "sweep" / "stage" / "run"
    (run / "paper").mkdir(parents=True)
    (run / "paper" / "about.json").write_text("{}")
    (run / "manifest.json").write_text(json.dumps({"status": "ok", "parameters": 5, "written": [5, None]}))
    (run / "notebook.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "outputs": 7}], "nbformat": 4}))
    rows = [prediction(1), prediction(2) | {"task_type": {"a": 1}, "messages": [5]}, prediction(3) | {"status": [1]}]
    write_jsonl(run / "predictions.jsonl", rows)
    (run / "cut.jsonl").write_text(f'{json.dumps(rows[0])}\n{{"text_id": 6, "ev')
    (run / "conversations.jsonl").write_text('{"turns": 7}')
    site = build([tmp_path], tmp_path / "site").parent
    text = Page(site / "index.html").text
    for what in (
        "cut.jsonl, line 2: not valid JSON",
        "notebook.ipynb cannot be read",
        "cannot be read ('kind')",
        "needs a `conversation_id`",
    ):
        assert what in text, what
    assert len(page_about(site, "run/predictions").rows) >= 3


def test_the_command_writes_it_says_where_and_warns(sweep, tmp_path):
    found = run_command("report", sweep, "--out", tmp_path / "site")
    assert str(tmp_path / "site" / "index.html") in found.splitlines() and "Warning: mine/asked/bad" in found


@needed
def test_in_a_browser_tables_filter(site):
    """From disk, without network: no complaint, nothing cut off, on a desktop and on a phone."""
    shown = "document.querySelectorAll('#records tbody tr').length"
    evaluator = "document.querySelectorAll('#records thead input')[1]"
    with Browser() as browser:
        for width in (1280, 390):
            browser.window(width)
            for file in all_pages(site):
                browser.open(file.as_uri())
                table = Page(file).rows
                browser.wait("!!document.querySelector('#records.dataTable')" if table else "true")
                browser.js("document.querySelectorAll('details').forEach(each => { each.open = true; })")
                assert browser.js("document.documentElement.scrollWidth <= innerWidth"), (file.name, width)
                if table and "predictions" in file.read_text():
                    assert browser.js(shown) == 3
                    browser.js(f"(i => {{ i.value = 'm/2'; i.dispatchEvent(new Event('change')); }})({evaluator})")
                    browser.wait(f"{shown} === 1")
        assert browser.complaints == []


def test_a_sweep_names_the_figure_that_answers_its_question(tmp_path):
    drawn = [["log.txt", "accuracy.png", "advantage_exact_model.pdf", "advantage_exact_model.png"], ["claims.png"], []]
    runs = [Run("stage", tmp_path, tmp_path / str(k), {}, "", manifest={"outputs": o}) for k, o in enumerate(drawn)]
    assert main_figure(runs) == tmp_path / "0" / "advantage_exact_model.png" and main_figure(runs[2:]) is None
