"""What a person sees: the package's face, docstrings, records as cards and tables, errors in a notebook."""

import html
import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest
from written_files import run_kernel

import selfeval
from selfeval.providers.models import Provider
from selfeval.providers.request import Response
from selfeval.records.foreign import read_predictions
from selfeval.records.texts import read_texts
from selfeval.results import Records, card
from selfeval.secrets import visible

HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m \u202egnp.exe <img src=x onerror=alert(2)> $x^2$ \ud800 \x00"


# --- the face of the package ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["selfeval", "selfeval.providers.models", "selfeval.cli"])
def test_importing_is_light(module):
    heavy = {"pandas", "openai", "pydantic", "matplotlib", "scipy", "IPython"}
    code = f"import sys, {module}; print(*{{m.partition('.')[0] for m in sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not heavy & {*found.split()}


def test_completion_offers_the_handful_and_all_of_it_is_there():
    offered = [name for name in dir(selfeval) if not name.startswith("_")]
    assert {*offered} < {*selfeval.__all__} and len(offered) == 33
    assert all(inspect.getdoc(getattr(selfeval, name)) for name in offered)
    assert all(re.search(rf"\b{name}\b", selfeval.__doc__) for name in offered)
    meant = {"plto": "'plot'", "recognise": "'measure_recognition'", "measure": ".*'measure_jury'"}
    for name, sentence in meant.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean {sentence}"):
            getattr(selfeval, name)


def test_the_example_of_the_package_runs(monkeypatch):
    """Its lines as they stand, with simulated models in place of paid ones."""
    code = "\n".join(line[4:] for line in selfeval.__doc__.splitlines() if line.startswith("    "))
    code = re.sub(r"texts\(\[.*?\]", "texts(['sim/good', 'sim/chance']", code)
    assert "sim/good" in code
    monkeypatch.setenv("TQDM_DISABLE", "1")
    scope = {}
    exec(code, scope)
    assert set(scope["result"]["evaluator"]) == {"sim/good", "sim/chance"}


# --- records ----------------------------------------------------------------------------------------------------------


def identity_record(reply="I'm GPT-4."):
    messages = [{"role": "system", "content": "You are GPT-4."}, {"role": "user", "content": "Who are you?"}]
    row = {"model": "sim/x", "truth": "Claude", "source": "readout", "reply": reply, "passed": False}
    return row | {"messages": messages, "usage": {"prompt": 3}, "served_by": "Acme", "status": None, "_own": 1}


def prediction():
    return read_predictions("predictions/sample/predictions_binary_self.jsonl").iloc[0]


@pytest.mark.parametrize(("make", "expected"), [
    (identity_record, ["truth: Claude", "system: You are GPT-4.", "usage: {'prompt': 3}", "served by: Acme"]),
    (prediction, ["binary_self", "predicted self: True", '"answer": "YES"']),
])  # fmt: skip
def test_a_record_is_a_card_with_what_it_says(make, expected, capsys):
    selfeval.show(make())
    shown, page = capsys.readouterr().out, card(make())._repr_html_()
    for text in expected:
        assert text in shown and all(html.escape(part) in page for part in text.split(": "))
    assert "None" not in shown and "nan" not in shown


@pytest.mark.parametrize("make", [identity_record, Response, lambda text: {text: text}])
def test_what_a_reply_holds_is_shown_and_inert(make):
    page, text = card(make(HOSTILE))._repr_html_(), str(card(make(HOSTILE)))
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;alert(1)" in page
    for shown in (page, text):
        assert not set("\x1b\u202e\ud800\x00") & set(shown) and "‹ESC›[31mred" in shown and "‹U+202E›" in shown
    page.encode()


def test_what_every_language_needs_stays_as_it_is():
    text = "naïve\tمرحبا 👩\u200d🔬 שלום\nप्रयोग"
    assert visible(text) == text and visible("a\r\nb\rc") == "a\nb‹CR›c"


class Cells(HTMLParser):
    """The rows of a page's tables as lists of texts; styles do not matter, as on GitHub, which strips them."""

    def __init__(self, page):
        super().__init__()
        self.rows = []
        self.feed(page)

    def handle_starttag(self, tag, _):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        elif tag == "br":
            self.rows[-1][-1] += "\n"

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip("\n")


def test_a_conversation_is_a_table_that_keeps_speakers_apart_from_what_they_say_without_any_style():
    turns = [{"speaker": "A", "text": "Who are\nyou?"}, {"speaker": "B", "text": "A colleague of yours."}]
    page = card({"source": "model", "turns": turns})._repr_html_()
    assert Cells(page).rows == [["source", "model"], ["A", "Who are\nyou?"], ["B", "A colleague of yours."]]
    assert "break-all" not in page and "anywhere" not in page


def test_a_long_text_in_a_table_of_records_ends_behind_a_word_with_an_ellipsis():
    reply = "The interrogator asked about something which nobody in this office remembers"
    shown = Records({"model": ["sim/x"], "reply": [reply]})
    for form in (repr(shown), shown._repr_html_()):
        assert "which nobody in this office …" in form and "remem" not in form


def test_once_the_style_is_used_a_table_of_pandas_cuts_no_text():
    verdict = "puts its own texts first; not shown that its own likelihood does that"
    with pd.option_context("display.max_colwidth", 50):
        selfeval.figures.use_style()
        assert verdict in pd.DataFrame({"verdict": [verdict]}).to_html()


def test_objects_are_cards_and_a_password_of_an_address_is_not_shown(capsys):
    selfeval.show(Provider("mine", base_url="http://me:secret@127.0.0.1:1/v1"), Response("Hello", usage={"prompt": 2}))
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("127.0.0.1:1/v1", "Hello", "'prompt': 2")) and "secret" not in shown


def test_of_many_records_the_first_are_shown(capsys):
    selfeval.show(pd.DataFrame(read_texts("sample")), limit=2)
    shown = capsys.readouterr().out
    assert shown.count("author display: ") == 2 and "… and 28 more" in shown


def test_of_many_records_five_are_shown_unless_another_number_is_asked_for(capsys):
    selfeval.show([{"author": f"a{n}"} for n in range(7)])
    shown = capsys.readouterr().out
    assert "a4" in shown and "a5" not in shown and "… and 2 more" in shown


def test_tables_made_from_records_and_estimates_show_what_their_rows_are():
    """A pivot of likelihoods was shown without its authors, and estimates by evaluator raised a KeyError."""
    texts = Records(read_texts("sample"))
    pivot = texts.pivot_table(index="author", columns="prompt_id", values="words")
    page = pivot._repr_html_()
    assert all(f"<th>{name}</th>" in page for name in {*texts["author"], *texts["prompt_id"], "author"})
    assert "<th>0</th>" not in texts._repr_html_(), "of records the numbers of rows say nothing"
    assert "<th>finish_reason</th>" in texts[["text", "finish_reason"]]._repr_html_(), "what was chosen is shown"
    result = selfeval.measure_recognition("predictions/sample", statistics="discrimination", n_resamples=1)
    for table in (result.set_index("evaluator"), result.pivot_table(index="evaluator", columns="task", values="n")):
        assert all(name in table._repr_html_() and name in repr(table) for name in set(result["evaluator"]))
    some = result[["statistic", "estimate", "low", "high"]]
    assert f"{result['low'].iloc[0]:.3g}" in some._repr_html_(), "without the columns that say whose they are"


# --- errors in a notebook ---------------------------------------------------------------------------------------------

NO_KEY = "import os\nos.environ['OPENAI_API_KEY'] = ''\n\nselfeval.generate_texts('openai:gpt-4.1', prompts=1)"
CELLS = [
    ("import selfeval\n\nselfeval.collect_predictions('nonsense')", "InputError", "no file or corpus 'nonsense'", 3),
    (NO_KEY, "ProviderError", "set OPENAI_API_KEY", 4),
]


def test_in_a_kernel_an_error_is_one_sentence_with_the_line_that_met_it(tmp_path):
    errors = [cell.outputs for cell in run_kernel(*(source for source, *_ in CELLS), folder=str(tmp_path))]
    for (source, name, text, line), [error] in zip(CELLS, errors, strict=True):
        assert (error.output_type, error.ename) == ("error", name) and text in error.evalue
        where = f"  in line {line}: {source.splitlines()[line - 1].strip()}"
        assert error.traceback == [f"{name}: {error.evalue}", where]
