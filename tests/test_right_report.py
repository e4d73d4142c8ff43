"""HTML in every cell of every page of the report: planted in each field of each kind of file, it stays text."""

import json
import re
import shutil

import nbformat
import pytest
from browser import Browser, needed
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from test_report import PIXEL, Page, all_pages, identity_rows, prediction, statements

from selfeval import DATA
from selfeval.records import write_jsonl
from selfeval.report import build

LIVE = ("svg", "iframe", "object", "embed", "base", "form")
EXISTENCE = {
    "evaluator": "m/1", "target_display": "GPT-9", "target_model": None, "raw_response": "Yes.", "status": "ok",
    "answer_type": "yes_no", "parsed_response": "yes", "existence_score": 1.0, "question": "Is there a GPT-9?",
    "exists": False, "template_id": "t1", "usage": {"completion": 3}, "iteration": 0, "request_id": "r1",
}  # fmt: skip
PREDICTION = prediction(1) | {
    "text_full": "Once upon a time", "candidates": ["m/1", "m/2"], "position": 1, "other_model": "m/3",
    "scores": {"m/1": 0.5}, "usage": {"completion": 2}, "sample": 0, "repeat": 0, "request_id": "r2",
}  # fmt: skip
TALK = {
    "conversation_id": "talk", "source": "model", "agent_model": "m/1", "status": "ok",
    "persona": "support", "strategy": "probing", "interrogator_model": "m/2", "topic": "tea",
    "turns": [{"speaker": "interrogator", "text": "Hi?"}, {"speaker": "agent", "text": "Hello.", "status": "ok"}],
}  # fmt: skip
MANIFEST = {
    "status": "ok", "stage": "asked", "notebook": "notebooks/02_collect_predictions.ipynb", "cause": "none",
    "started": "2026-01-02T03:04:05+00:00", "seconds": 3.25, "counts": {"calls": 5, "cost": 0.25},
    "before": {"calls": 1},
    "parameters": {"limit": 3, "tasks": ["binary_self"]}, "packages": {"python": "3.12"}, "outputs": ["a.csv"],
    "code": {"commit": "abc", "hash": "0123"}, "written": {"b.jsonl": "0123"}, "read": {"c.jsonl": "4567"},
}  # fmt: skip
# What a reader must find on a page: kind and field, "*" for what stands in a list or is a key of a mapping.
SHOWN = {
    "predictions": "true_model evaluator_model task_type predicted_model prompt_used prompt_id reply status text_full "
    "candidates_* scores_* usage_* request_id condition_*",
    "existence": "evaluator target_display raw_response status answer_type parsed_response question template_id "
    "request_id",
    "identity": "model arm condition family language truth foil variant status stance reply messages_*_content",
    "statements": "arm juror persona status statement reply",
    "conversations": "conversation_id turns_*_text agent_model",
    "manifest": "status cause",
    "results": "id display served setting value",
    "notebook": "markdown title code stdout stderr html plain markdown-output traceback said heading",
}


class Plants:
    """HTML that would run, numbered, so that a page tells which one stands on it and where it was planted."""

    def __init__(self):
        self.places = []

    def __call__(self, place):
        """Return what is planted there: a script, handlers, and what leaves an attribute."""
        self.places.append(place)
        n = len(self.places)
        return (
            f"<script>hit({n})</script><img src=x onerror=hit({n})><svg onload=hit({n})>"
            f"\" onmouseover=\"hit({n})\" x=' onfocus='hit({n})'></script><b onclick=hit({n})>z"
        )

    def sow(self, value, place, skip=()):
        """Return a value with HTML behind each of its texts and among the names of each mapping; numbers stay."""
        if isinstance(value, dict):
            sown = {k: v if k in skip else self.sow(v, f"{place} {k}") for k, v in value.items()}
            return {**sown, self(f"{place} *"): "x"}
        if isinstance(value, list):
            return [self.sow(each, f"{place} *") for each in value]
        return value + self(place) if isinstance(value, str) else value


def planted_notebook(plant):
    def page(**data):
        return new_output("display_data", {kind.replace("_", "/"): text for kind, text in data.items()})

    outputs = [
        page(text_html=f"<table><tr><td>{plant('notebook html')}</td></tr></table>", text_plain="x"),
        page(text_plain=plant("notebook plain")),
        page(text_markdown=plant("notebook markdown-output")),
        page(application_x=plant("notebook json")),
        new_output("stream", name="stderr", text=plant("notebook stderr")),
        new_output("error", ename=plant("notebook ename"), evalue=plant("notebook evalue"),
                   traceback=[plant("notebook traceback")]),
        new_output("stream", name="stdout", text=f"{plant('notebook stdout')}\n{plant('notebook said')}"),
        page(image_png=PIXEL),
        page(image_png=plant("notebook no picture")),
    ]  # fmt: skip
    cells = [
        new_markdown_cell(f"# Title {plant('notebook title')}"),
        new_markdown_cell(plant("notebook markdown")),
        new_markdown_cell(f"## Part {plant('notebook heading')}"),
        new_code_cell(f"print(conclusions(x))  # {plant('notebook code')}", outputs=outputs, execution_count=1),
        new_raw_cell(plant("notebook raw")),
    ]
    notebook = new_notebook(cells=cells)
    notebook.cells[3].metadata["tags"] = [f"parameters{plant('notebook tag')}"]
    return nbformat.v4.writes_json(notebook)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The pages of a report whose sources hold HTML everywhere, and where it was planted."""
    plant, base = Plants(), tmp_path_factory.mktemp("planted")
    sweep = base / "<img src=x onerror=hit(0)>"
    run, torn = (sweep / "asked<b onclick=hit(0)>" / f"{name}<script>hit(0)<" for name in ("run", "torn"))
    run.mkdir(parents=True)
    torn.mkdir()
    (run / "manifest.json").write_text(json.dumps(plant.sow(MANIFEST, "manifest")))
    notebook = planted_notebook(plant)
    (run / "notebook.ipynb").write_text(notebook)
    counted = notebook.replace('"execution_count": 1', f'"execution_count": {json.dumps(plant("notebook count"))}')
    (run / "counted.ipynb").write_text(counted)
    (torn / "notebook.ipynb").write_text(plant("notebook unreadable"))
    (torn / "manifest.json").write_text(f'{{"status": {plant("manifest broken")}')
    talk = plant.sow(TALK, "conversations", ("source",)) | {"agent": None}
    heard = [plant.sow(row, "statements", ("source", "role")) for row in statements()]
    rows = {"conversations": [talk], "verdicts": [row | {"conversation_id": talk["conversation_id"]} for row in heard]}
    rows["predictions"] = [plant.sow(PREDICTION | {"evaluator_model": name}, "predictions") for name in ("m/1", "m/2")]
    rows["existence"] = [plant.sow(EXISTENCE, "existence")]
    rows["identity"] = [plant.sow(row, "identity") for row in identity_rows()]
    for name, records in rows.items():
        write_jsonl(run / f"{name}.jsonl", records)
    shutil.copytree(DATA / "results/sample/existence/paper", run / "paper")
    about = json.loads((run / "paper/about.json").read_text())
    model = about["models"][0]
    about["settings"] |= {plant("results setting"): plant("results value")}
    table = (run / "paper/existence.csv").read_text()
    known, planted = model["id"], plant("results id")
    quoted = '"' + planted.replace('"', '""') + '"'
    (run / "paper/existence.csv").write_text(table.replace(known, quoted))
    model |= {"id": planted, "display": plant("results display"), "served": plant("results served")}
    (run / "paper/about.json").write_text(json.dumps(about))
    return build([sweep], base / "site").parent, plant.places


@pytest.mark.fault("hostile text")
def test_html_in_every_field_of_every_file_is_text_on_every_page(planted):
    site, places = planted
    for file in all_pages(site):
        page = Page(file)  # with the cells that its tables put there
        live = [f"{tag} {about}" for tag, about in page.tags if tag in LIVE or any(n[:2] == "on" for n in about)]
        live += re.findall(r"<script>\w*hit.*?>|<img src=x.*?>", file.read_text("utf-8"))
        numbers = re.findall(r"hit\((\d+)\)", " ".join(live))
        assert not live, (file.name, {places[int(n) - 1] for n in numbers}, live[:3])
        for _, about in page.tags:
            assert about.get("src", "data:").startswith(("data:", "../tables.js"))
            assert not re.match("javascript|vbscript", about.get("href") or "", re.I)
            assert "url(" not in (about.get("style") or "")
        [policy] = [about["content"] for _, about in page.tags if about.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; img-src data:;")
        assert ("script-src 'none'" in policy) != bool(page.rows) and "unsafe-eval" not in policy


@needed
@pytest.mark.fault("hostile text")
def test_nothing_planted_runs_in_a_browser(planted):
    site, _ = planted
    with Browser() as browser:
        for file in all_pages(site):
            browser.open(file.as_uri())
            browser.wait("!!document.querySelector('#records.dataTable')" if Page(file).rows else "true")
            browser.js("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert browser.complaints == []  # such as: hit is not defined


def test_what_was_planted_is_there_to_read(planted):
    """So that a page without HTML is not a page without the field."""
    site, places = planted
    text = "".join(Page(file).text for file in all_pages(site))
    there = {places[int(n) - 1] for n in re.findall(r"hit\((\d+)\)", text) if int(n)}
    wanted = {f"{kind} {field.replace('_*', ' *')}" for kind, fields in SHOWN.items() for field in fields.split()}
    wanted = {name.replace("*_", "* ") for name in wanted}
    assert len(wanted) > 60 and sorted(wanted - there) == []
