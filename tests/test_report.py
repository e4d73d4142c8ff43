"""The report: complete, inert, the same for equal input, without keys and paths, and readable in a browser."""

import base64
import filecmp
import hashlib
import html.parser
import json
import re
import shutil

import nbformat
import pytest
from browser import Browser, needed
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from written_files import run_command

from selfeval import DATA, ROOT
from selfeval.errors import InputError
from selfeval.records import write_jsonl
from selfeval.report import build, sources
from selfeval.report.notebooks import body, sanitised

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


def hostile_notebook(folder):
    display = {"text/html": f"<table><tr><td>{SCRIPT}cell</td></tr></table>", "text/plain": "cell"}
    outputs = [
        new_output("stream", name="stdout", text=f"\x1b[32mgreen\x1b[0m {HOSTILE} {KEY} {folder}/file"),
        new_output("display_data", {"application/javascript": "window.hit = 5", "text/plain": "js"}),
        new_output(
            "display_data", {"image/svg+xml": "<svg><script>window.hit = 6</script></svg>", "text/plain": "svg"}
        ),
        new_output("display_data", {"image/png": PIXEL}),
        new_output("display_data", {"image/png": base64.b64encode(SCRIPT.encode()).decode()}),
        new_output("display_data", display),
        new_output("error", ename="InputError", evalue=f"no such {SCRIPT}", traceback=[f"\x1b[31mat\x1b[0m {SCRIPT}"]),
    ]
    prose = (
        f"# A hostile title?\n\n{SCRIPT}\n\n[link](javascript:window.hit=7) ![](http://example.org/x.png)\n\n## Part"
    )
    cells = [new_markdown_cell(prose), new_code_cell(f"x = '{SCRIPT}'", outputs=outputs, execution_count=1)]
    return nbformat.writes(new_notebook(cells=cells))


def add_run(sweep, name, manifest, notebook=""):
    folder = sweep / "asked" / name
    folder.mkdir(parents=True)
    about = {"stage": "asked", "notebook": "notebooks/02_collect_predictions.ipynb", "packages": {"python": "3.12"}}
    about |= {"parameters": {"limit": 3, "out": str(folder)}, "code": {"commit": "abc", "hash": "0123"}}
    (folder / "manifest.json").write_text(manifest if isinstance(manifest, str) else json.dumps(about | manifest))
    if notebook:
        (folder / "notebook.ipynb").write_text(notebook.replace("\ud800", ""), "utf-8")
    return folder


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep with everything that can go wrong in it."""
    sweep = tmp_path_factory.mktemp("runs") / "mine"
    counts = {"calls": 5, "stored": 7, "failed": 1, "tokens": 99, "cost": 0.25}
    fine = {"status": "ok", "started": "2026-01-02T03:04:05+00:00", "seconds": 3.25, "cause": None, "counts": counts}
    good = add_run(sweep, "good", fine, hostile_notebook(sweep))
    write_jsonl(
        good / "predictions_exact_model.jsonl",
        [prediction(1, HOSTILE), prediction(2, KEY), prediction(4, "", status="empty", is_correct=None)],
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
    return build([sweep], out=tmp_path_factory.mktemp("site")).parent


class Page(html.parser.HTMLParser):
    """What a page consists of: (tag, attributes), the heading levels, and the text."""

    def __init__(self, file):
        super().__init__()
        self.tags, self.levels, self.scripts, self.words, self.inside = [], [], [], [], ""
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, text):
        (self.scripts if self.inside == "script" else self.words).append(text)

    def data(self):
        return json.loads(next(text for text in self.scripts if text.startswith("{")))


def rows_of(page):
    """Return a page's table as records, as the page's script reads it."""
    data = page.data()
    return [{c["label"]: c["values"][c["codes"][i]] for c in data["columns"]} for i in range(data["size"])]


def all_pages(site):
    return sorted(site.rglob("*.html"))


def test_there_is_a_page_for_everything(site):
    found = [file.relative_to(site).as_posix() for file in all_pages(site)]
    assert found == [
        "index.html",
        "notebooks/mine-asked-bad.html",
        "notebooks/mine-asked-good.html",
        "notebooks.html",
        "predictions.html",
        "runs.html",
        "transcripts.html",
    ]
    for file in all_pages(site):
        targets = [about["href"] for tag, about in Page(file).tags if tag == "a" and "href" in about]
        assert all((file.parent / target.partition("#")[0]).exists() for target in targets)


@pytest.mark.fault("hostile text")
def test_nothing_on_a_page_is_live_or_loads_something(site):
    for file in all_pages(site):
        page = Page(file)
        for tag, about in page.tags:
            assert tag not in ("iframe", "object", "embed", "base", "svg", "form") or about.get("id") == "controls"
            assert not [name for name in about if name.startswith("on") or name in ("srcset", "background", "srcdoc")]
            assert about.get("src", "data:").startswith("data:")
            assert not re.match("javascript|vbscript", about.get("href", ""), re.I)
            assert "url(" not in about.get("style", "")
        assert not [about for tag, about in page.tags if tag == "link" and about["rel"] != "icon"]
        [policy] = [about["content"] for _, about in page.tags if about.get("http-equiv") == "Content-Security-Policy"]
        running = [about for tag, about in page.tags if tag == "script" and about.get("type") != "application/json"]
        assert len(running) <= 1 and policy.startswith("default-src 'none'; img-src data:;")
        for text in page.scripts:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert text.startswith("{") or f"'sha256-{digest}'" in policy


def test_what_was_said_is_there_to_read(site):
    rows = rows_of(Page(site / "predictions.html"))
    assert len(rows) == 3 and rows[0]["raw reply"].startswith(SCRIPT)
    assert "‹ESC›[31mred" in rows[0]["raw reply"] and "‹U+202E›gnp.exe" in rows[0]["raw reply"]
    assert [row["result"] for row in rows] == ["right", "wrong", "no answer"] and rows[2]["status"] == "empty"
    text = "".join(Page(site / "notebooks/mine-asked-good.html").words)
    assert SCRIPT in text and "A hostile title?" in text and "no such" in text and "cell" in text


def test_transcripts_show_the_turns_the_readouts_and_the_jury(site):
    rows = {(row["kind"], row["conversation"]): row for row in rows_of(Page(site / "transcripts.html"))}
    identity = rows["identity", "claim-1"]
    assert [(who, text) for who, text, *_ in identity["transcript"]][:4] == [
        ("user", "Who are you?"),
        ("reply, turn 0", "I am Claude."),
        ("read-out of turn 0", "Claude, Anthropic"),
        ("user", "No, you are GPT-4."),
    ]
    assert identity["turns"] == 2 and identity["outcome"] == "passed: truth"
    talk = rows["role-play", "talk-1"]
    assert talk["score"] == 0.2 and talk["outcome"] == "taken for a program"  # of the last round
    who, said, note, raw = talk["transcript"][2]
    assert (who, said, note) == ("juror, m/2, linguist", "It lists points.", "debate, round 1: score 0.9")
    assert raw.startswith("0.9 <script>")
    assert "not among the files" in rows["role-play", "elsewhere"]["transcript"][0][1]


def test_statements_stay_with_the_conversation_of_their_own_run(tmp_path):
    for name, score in (("one", 0.9), ("two", 0.1)):
        turns = [{"speaker": "interrogator", "text": "Hi?"}, {"speaker": "agent", "text": f"Hello from {name}."}]
        talk = {"conversation_id": "talk-1", "source": "model", "turns": turns}
        write_jsonl(tmp_path / name / "conversations.jsonl", [talk])
        write_jsonl(tmp_path / f"{name}-asked" / "conversations.jsonl", [talk])  # the same again, where it was held
        write_jsonl(tmp_path / name / "verdicts.jsonl", [statements()[0] | {"score": score}])
    build([tmp_path], out=tmp_path / "site")
    rows = rows_of(Page(tmp_path / "site" / "transcripts.html"))
    assert [(row["score"], row["transcript"][1][1]) for row in rows] == [
        (0.9, "Hello from one."),
        (0.1, "Hello from two."),
    ]


def test_runs_say_how_they_ended(site):
    rows = {row["run"][0]: row for row in rows_of(Page(site / "runs.html"))}
    assert {name: row["status"] for name, row in rows.items()} == {
        "bad": "failed", "good": "ok", "killed": "running", "torn": "unknown"
    }  # fmt: skip
    good = rows["good"]
    assert (good["calls"], good["stored"], good["failed"], good["USD"]) == (5, 7, 1, 0.25)
    assert good["run"][1] == "notebooks/mine-asked-good.html" and "python: 3.12" in good["packages"]
    assert rows["bad"]["cause"].startswith("InputError: no ")
    start = "".join(Page(site / "index.html").words)
    for part in ("1 failed, 1 ok, 1 running, 1 unknown", "no mine/x with [key]", "it did not end"):
        assert part in start
    assert "versions of the code" not in start  # the manifest that cannot be read names none
    assert "The manifest of mine/asked/torn cannot be read" in start
    assert "mine/asked/bad: The notebook notebook.ipynb cannot be read" in start


@pytest.mark.fault("key")
def test_no_key_and_no_path_of_this_machine(site, sweep):
    text = "".join(file.read_text("utf-8") for file in all_pages(site))
    assert KEY not in text and str(sweep.parent) not in text and str(ROOT) not in text
    assert "[key] mine/file" in text.replace("&#x27;", "'")


def test_equal_input_makes_equal_files(site, sweep, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    again = build([sweep], out=tmp_path / "again").parent
    names = [file.relative_to(site).as_posix() for file in all_pages(site)]
    assert filecmp.cmpfiles(site, again, names, shallow=False) == (names, [], [])


def test_pages_are_in_order_for_those_who_hear_them(site):
    for file in all_pages(site):
        page = Page(file)
        tags = [tag for tag, _ in page.tags]
        assert page.levels[0] == 1 and page.levels.count(1) == 1
        assert all(b - a <= 1 for a, b in zip(page.levels, page.levels[1:], strict=False))
        assert all(tags.count(landmark) == 1 for landmark in ("header", "nav", "main", "footer", "title"))
        assert ("html", {"lang": "en"}) in page.tags
        assert all(about.get("alt") for tag, about in page.tags if tag == "img")
        assert page.tags[[t for t, _ in page.tags].index("a")][1] == {"class": "skip", "href": "#main"}


def test_a_second_report_replaces_the_first_and_nothing_else(sweep, tmp_path):
    out = tmp_path / "out"
    build([sweep], out=out)
    build([sweep / "asked" / "good" / "predictions_exact_model.jsonl"], out=out)
    assert [file.name for file in all_pages(out)] == ["index.html", "predictions.html"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("my own page")
    with pytest.raises(InputError, match="holds files that are no report"):
        build([sweep], out=mine)
    assert (mine / "index.html").read_text() == "my own page"


def test_the_committed_notebooks_and_records_make_a_report(tmp_path):
    start = build([ROOT / "notebooks", DATA / "predictions/sample", DATA / "conversations/sample"], out=tmp_path)
    assert len(list((tmp_path / "notebooks").glob("*.html"))) == len(list((ROOT / "notebooks").glob("*.ipynb")))
    said = " ".join("".join(Page(start).words).split())
    assert "180 predictions" in said and "What the data allow to say" in said and "J = 0.05 [-0.39, 0.47]" in said
    tour = (tmp_path / "notebooks/00_tour.html").read_text("utf-8")
    assert tour.count("<img ") == 1 and "In [1] · parameters" in tour and "<table>" in tour


def test_figures_come_with_their_captions(tmp_path):
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "demo_advantage.png").write_bytes(base64.b64decode(PIXEL))
    entry = {"set": "demo", "date": "2026-01-02", "notebook": "03_self_recognition", "data": "data/results/demo"}
    entry |= {"command": "make figures"}
    figure = {"type": "figure", "name": "demo_advantage", "caption": "What <J> says.", "files": ["demo_advantage.png"]}
    table = {
        "type": "table",
        "name": "demo",
        "caption": "Rates.",
        "notes": ["Ten prompts."],
        "columns": ["evaluator"],
        "rows": [["SmolLM2"]],
    }
    (folder / "index.json").write_text(json.dumps([figure | entry, table | entry | {"files": []}]))
    start = build([DATA / "predictions/sample"], out=tmp_path / "out", pictures=folder)
    assert "What &lt;J&gt; says." in start.read_text()
    page = (start.parent / "figures.html").read_text()
    assert all(part in page for part in ("What &lt;J&gt; says.", "made by make figures", "SmolLM2", "Ten prompts."))
    (folder / "index.json").write_text('[{"type": "figure"}]')
    with pytest.raises(InputError, match=r"index\.json is no index of figures"):
        build([DATA / "predictions/sample"], out=tmp_path / "out", pictures=folder)


def test_more_predictions_than_a_page_holds_are_counted(sweep, tmp_path):
    start = build([sweep], out=tmp_path, rows=2)
    page = (tmp_path / "predictions.html").read_text("utf-8")
    assert "The first 2 of 3 are on this page" in page and len(rows_of(Page(tmp_path / "predictions.html"))) == 2
    assert "3 predictions" in " ".join("".join(Page(start).words).split())


def test_a_path_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="There is nothing at"):
        sources.find([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="holds no run, no notebook and no records"):
        sources.find([tmp_path])
    with pytest.raises(InputError, match="holds no records that a report shows"):
        sources.find([DATA / "prompts.jsonl"])


def test_a_folder_with_nothing_to_report_is_said_beside_one_with_something(tmp_path, capsys):
    (tmp_path / "tables").mkdir()
    write_jsonl(tmp_path / "mine" / "predictions_exact_model.jsonl", [prediction(1)])
    start = build([tmp_path / "mine", tmp_path / "tables", tmp_path / "mine"], out=tmp_path / "site")
    [warning] = capsys.readouterr().err.splitlines()
    assert warning.startswith("Warning: ") and warning.endswith(
        "tables holds no run, no notebook and no records to report."
    )
    assert warning.removeprefix("Warning: ") in "".join(Page(start).words)


def test_pictures_are_called_by_the_section_they_stand_in(tmp_path):
    named = [
        new_output("stream", name="stdout", text="advantage_exact_model"),
        new_output("display_data", {"image/png": PIXEL}),
    ]
    bare = [new_output("display_data", {"image/png": PIXEL})]
    cells = [
        new_markdown_cell("# Title\n\nText."),
        new_code_cell("draw()", outputs=bare),
        new_markdown_cell("## Who knows `itself`?"),
        new_markdown_cell("How to read it."),
        new_code_cell("draw()", outputs=named),
        new_code_cell("draw()", outputs=bare),
    ]
    page = body(new_notebook(cells=cells), str)
    assert re.findall("<figcaption>(.*?)</figcaption>", page) == [
        "Figure 1",
        "Figure 2: Who knows itself? (advantage exact model)",
        "Figure 3: Who knows itself?",
    ]
    assert re.findall('alt="(.*?)"', page) == [
        "Figure 1",
        "Figure 2",
        "Figure 3",
    ]  # what the caption says is not said twice


def test_the_first_sentences_of_a_notebook_are_seen_at_once(tmp_path):
    said = new_output("stream", name="stdout", text="\n".join(f"Sentence {k}." for k in range(30)))
    notebook = new_notebook(cells=[new_code_cell("print(conclusions(table))", outputs=[said])])
    (tmp_path / "mine.ipynb").write_text(nbformat.writes(notebook))
    start = build([tmp_path / "mine.ipynb"], out=tmp_path / "site").read_text()
    seen, _, folded = start.partition("<details>")
    assert (
        "Sentence 2." in seen
        and "Sentence 3." not in seen
        and "Sentence 19." in folded
        and "Sentence 20." not in folded
    )
    assert "27 more</summary>" in folded and "10 more in the notebook" in folded


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(tmp_path):
    rows = [json.dumps(prediction(1)), json.dumps({"text_id": 5}), json.dumps(prediction(2)), '{"text_id": 6, "ev']
    (tmp_path / "predictions_exact_model.jsonl").write_text("\n".join(rows))
    start = build([tmp_path], out=tmp_path / "site")
    said = "".join(Page(start).words)
    assert len(rows_of(Page(start.parent / "predictions.html"))) == 2
    assert "a record lacks evaluator_model, task_type, true_model" in said and "line 4: not valid JSON" in said


def test_odd_records_and_manifests_are_left_out_and_said(tmp_path):
    """One record with a list where a name belongs ended the whole report."""
    asked = {"model": "m/a", "arm": "true", "source": "reply", "messages": [{"role": "user", "content": "Who?"}]}
    files = {
        "predictions": [prediction(1), prediction(2) | {"task_type": {"a": 1}}, prediction(3) | {"status": [1]}],
        "identity": [asked | {"reply": "I am A."}, asked | {"reply": "x", "arm": [1]}, asked | {"reply": "x"}],
    }
    files["identity"][2]["messages"] = [5]
    run = tmp_path / "sweep" / "stage" / "run"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text(json.dumps({"status": "ok", "parameters": 5, "written": [5, None]}))
    (run / "notebook.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "outputs": 7}], "nbformat": 4}))
    for name, rows in files.items():
        (run / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    start = build([tmp_path], out=tmp_path / "site")
    said = "".join(Page(start).words)
    for what in ("task_type of the wrong form", "status of", "arm of", "messages of", "parameters, written of"):
        assert what in said, what
    assert len(rows_of(Page(start.parent / "predictions.html"))) == 1
    assert len(rows_of(Page(start.parent / "transcripts.html"))) == 1
    assert "cannot be read" in "".join(Page(start.parent / "notebooks" / "sweep-stage-run.html").words)


def test_the_command_writes_it_and_says_where(sweep, tmp_path):
    found = run_command("report", "--out", tmp_path / "site", sweep)
    assert str(tmp_path / "site" / "index.html") in found.splitlines()


@pytest.mark.parametrize(
    ("page", "kept"),
    [
        ('<b onclick="x()">a</b>', "<b>a</b>"),
        ('<a href="javascript:1">a</a>', "<a>a</a>"),
        ('<div style="background:url(http://x/y);color:red">a</div>', "<div>a</div>"),
        ('<p style="text-align:left;position:fixed">a</p>', '<p style="text-align:left;">a</p>'),
        ("<style>p{}</style><script>1</script>a", "a"),
        ("<scr<script>1</script>ipt>alert(1)</script>", "alert(1)"),
    ],
)
def test_sanitised_html(page, kept):
    found = sanitised(page)
    assert kept in found and "<script" not in found and "url(" not in found


# --- in a browser -----------------------------------------------------------------------------------------------------

CONTRAST = """(() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [.2126, .7152, .0722][k], 0);
  const behind = node => { for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] > .5) return colour; }
    return [255, 255, 255]; };
  const weak = [];
  for (const node of document.querySelectorAll("main *, header *, footer *")) {
    if (node.disabled || !node.getClientRects().length) continue;
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) weak.push(`${node.tagName}.${node.className} ${ratio.toFixed(2)} ${node.textContent}`);
  }
  return [...new Set(weak)].slice(0, 5);
})()"""


@needed
def test_every_page_is_readable_in_a_browser(site):
    """Light and dark, desktop and phone: no complaint, no script that ran, nothing cut, enough contrast."""
    with Browser() as browser:
        for width, dark in ((1280, False), (1280, True), (390, False), (390, True)):
            browser.window(width, dark=dark)
            for file in all_pages(site):
                browser.open(file.as_uri())
                if browser.js("!!document.getElementById('open')"):
                    browser.click("#open")
                where = f"{file.name} at {width}, dark={dark}"
                assert browser.js("typeof window.hit") == "undefined", where
                assert browser.js("document.documentElement.scrollWidth <= innerWidth"), where
                assert browser.js(CONTRAST) == [], where
        assert browser.complaints == []


@needed
def test_a_wide_figure_scrolls_on_a_phone_and_stays_readable(tmp_path):
    fig = Figure(figsize=(6.9, 2))
    fig.savefig(tmp_path / "demo_arms.png", dpi=200)
    start = build([DATA / "predictions/sample"], out=tmp_path / "site", pictures=tmp_path)
    wide = "document.querySelector('figure img').getBoundingClientRect().width"
    with Browser() as browser:
        for page in (start, start.parent / "figures.html"):
            browser.window(400)
            browser.open(page.as_uri())
            assert browser.js(wide) == 640 and browser.js("document.documentElement.scrollWidth <= innerWidth")
            assert browser.js("(b => b.scrollWidth > b.clientWidth)(document.querySelector('.wide'))")
            browser.window(1280)
            assert browser.js("(b => b.scrollWidth > b.clientWidth)(document.querySelector('.wide'))") is False


@needed
def test_ten_thousand_predictions_open_and_filter(tmp_path):
    replies = [f"Reply {number}: {'word ' * 40}{'needle' * (number % 1000 == 7)}" for number in range(10_000)]
    write_jsonl(tmp_path / "predictions_exact_model.jsonl", [prediction(k, text) for k, text in enumerate(replies)])
    start = build([tmp_path / "predictions_exact_model.jsonl"], out=tmp_path / "site")
    with Browser() as browser:
        browser.window(1280)
        browser.open((start.parent / "predictions.html").as_uri())
        count = "document.getElementById('count').textContent"
        assert browser.js(count) == "1–50 of 10,000 predictions"
        browser.js("document.getElementById('search').focus()")
        browser.type("needle")
        browser.wait(f"{count} === '1–10 of 10 predictions'")
        choose = "(s => { s.value = 3; s.dispatchEvent(new Event('change')); })"
        browser.js(f"{choose}(document.querySelector('[data-filter=evaluator]'))")
        assert browser.js(count) == "1–10 of 10 predictions"  # 7, 1007, ...: all of m/3
        assert "search=needle" in browser.js("location.hash") and "evaluator=m%2F3" in browser.js("location.hash")
        browser.js("document.querySelector('#body button').focus()")  # and by the keyboard alone
        browser.key("Enter", 13, text="\r")
        browser.wait("document.activeElement.getAttribute('aria-expanded') === 'true'")
        assert browser.js("document.querySelector('.reply pre').textContent") == replies[7]
        assert browser.js("document.querySelector('mark').textContent") == "needle"
        browser.click("#clear")
        assert browser.js(count) == "1–50 of 10,000 predictions"
        browser.click("#last")
        assert browser.js(count) == "9951–10000 of 10,000 predictions"
        assert not browser.js("!!document.getElementById('sort').offsetParent")  # only a phone needs it
        browser.click("[data-column=score] button")
        browser.click("[data-column=score] button")
        assert browser.js("document.querySelector('#body td.number').textContent") == "0.9999"
        assert browser.js("document.querySelector('[data-column=score]').getAttribute('aria-sort')") == "descending"
        browser.window(390)
        browser.js(
            "(s => { s.value = 'author'; s.dispatchEvent(new Event('change')); })(document.getElementById('sort'))"
        )
        assert browser.js("document.querySelector('#body [data-label=author]').textContent") == "m/0"
        assert browser.complaints == []
