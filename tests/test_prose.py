"""What the prose of notebooks says in numbers is what the cells beside it print, or has a reason in `prose.yaml`.

Read are decimals, percentages and counts ("8 of 12") in markdown cells, outside of code, links and formulas. A number
is printed where an output of the three code cells before it or the two behind it, rounded to as many digits, is equal
to it; a percentage also as a share. Of sentences under FURTHER_UP and of the answer below the title, any cell of the
notebook will do.

The other pages print nothing: such numbers are tied to a table in `sentences.yaml` or have a reason here, and
figures/README.md has the captions that 09_paper_figures prints. test_sentences.py reads README.md and docs/results.md.
"""

import json
import re
from pathlib import Path

import pytest
import yaml
from test_sentences import PIECES, TIED_THROUGHOUT, text_of

from selfeval import ROOT
from selfeval.sweep.execute import FINDING

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
PAGES = [page for page in [*DOCS, "notebooks/README.md", "figures/README.md"] if page not in TIED_THROUGHOUT]
REASONS = yaml.safe_load(Path(__file__).with_name("prose.yaml").read_text(encoding="utf-8"))
FURTHER_UP = "printed further up"
ANSWER = "**Answer**"  # begins the cell below the title
CONSTANTS = {".5", "0.5", ".05", "95 %"}  # chance and levels
OF_OUR_DATA = ("04", "08", "12", "13")  # whose runs are about data of this project, with any parameters
NUMBER = re.compile(r"(?<![\w.,/^-])([-−]?\d*\.\d+|[-−]?\d+)( ?%)?(?![\w/])")
COUNT = re.compile(r"(?<![\w.,])\d+ of \d+")
LITERAL = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|\$[^$]*\$|^#[^\n]*", re.S | re.M)


def cells_of(name):
    return json.loads((ROOT / "notebooks" / name).read_text(encoding="utf-8"))["cells"]


def is_code(cell):
    return cell["cell_type"] == "code"


def printed(cells):
    """Return all numbers in the outputs of cells."""
    texts = []
    for output in (output for cell in cells for output in cell["outputs"]):
        data = output.get("data", {})
        texts += [output.get("text", ""), data.get("text/plain", ""), data.get("text/html", "")]
    return [float(number) for number in re.findall(r"-?\d*\.?\d+", " ".join(map("".join, texts)))]


def stated(prose):
    """Yield (sentence, match) of the decimals, percentages and counts in a text."""
    for sentence in re.split(r"(?<=[.?!:;])\s+|\n", LITERAL.sub(" ", prose)):
        counts = [count.span() for count in COUNT.finditer(sentence)]
        for match in NUMBER.finditer(sentence):
            counted = any(start <= match.start() < end for start, end in counts)
            if "." in match[1] or match[2] or counted:
                yield sentence.strip(), match


def is_printed(match, numbers):
    """Tell whether a number is among those printed, rounded as it is written."""
    written = match[1].replace("−", "-")
    value, near = float(written), 0.5 * 10.0 ** -len(written.partition(".")[2]) + 1e-9
    scales = (1, 100) if match[2] else (1,)
    return any(abs(scale * number - value) <= near for number in numbers for scale in scales)


def unfounded(cells, reasons):
    """Return the sentences with a number that no cell beside them prints and that no reason covers."""
    found = []
    everywhere = printed(filter(is_code, cells))
    further_up = reasons.get(FURTHER_UP, [])
    other_reasons = [words for why, given in reasons.items() for words in given if why != FURTHER_UP]
    for place, cell in enumerate(cells):
        if is_code(cell):
            continue
        source = "".join(cell["source"])
        beside = [*filter(is_code, cells[:place])][-3:] + [*filter(is_code, cells[place:])][:2]
        numbers = everywhere if source.startswith(ANSWER) else printed(beside)
        for sentence, match in stated(source):
            looked_at = everywhere if any(words in sentence for words in further_up) else numbers
            if not is_printed(match, looked_at) and not any(words in sentence for words in other_reasons):
                found.append(f"{match[0].strip()} in {sentence!r}")
    return found


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_number_in_the_prose_is_printed_beside_it_or_has_a_reason(name):
    reasons = REASONS.get(name[:2], {})
    prose = LITERAL.sub(" ", "\n".join("".join(cell["source"]) for cell in cells_of(name) if not is_code(cell)))
    unsaid = [words for given in reasons.values() for words in given if words not in prose]
    assert unsaid == [], f"prose.yaml has reasons for what {name} does not say"
    assert unfounded(cells_of(name), reasons) == []


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name[:2] not in OF_OUR_DATA])
def test_what_a_run_found_stands_in_cells_that_reports_of_other_runs_leave_out(name):
    reasons = [words for given in REASONS.get(name[:2], {}).values() for words in given]
    found = []
    for cell in cells_of(name):
        if is_code(cell) or FINDING in cell["metadata"].get("tags", ()):
            continue
        for sentence, match in stated("".join(cell["source"])):
            if match[0] not in CONSTANTS and not any(words in sentence for words in reasons):
                found.append(f"{match[0]} in {sentence!r}")
    assert found == [], f"give their cells the tag {FINDING!r}"


def test_a_number_that_no_cell_beside_it_prints_is_found():
    table = {"cell_type": "code", "outputs": [{"text": "median 1.82, 1.08; share 0.724"}]}
    said = {"cell_type": "markdown", "source": "# A title\nIt is 1.8 times as wide, 2.3 elsewhere; in 72 %, then 73 %."}
    wrong = [each.split(" in ")[0] for each in unfounded([table, said], {})]
    assert wrong == ["2.3", "73 %"] and unfounded([table, said], {"why": ["elsewhere", "73 %"]}) == []
    far = [table, *[{"cell_type": "code", "outputs": []}] * 3, said | {"source": "It is 1.8 times as wide."}]
    assert unfounded(far, {}) and not unfounded(far, {FURTHER_UP: ["times as wide"]})


def without_reason(text, reasons):
    """Return the sentences of a text with a decimal, percentage or count that no reason covers."""
    words = [words for given in reasons.values() for words in given]
    sentences = {sentence: f"{match[0].strip()} in {sentence!r}" for sentence, match in stated(text)}
    return [found for sentence, found in sentences.items() if not any(each in sentence for each in words)]


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_a_page_is_tied_to_a_table_or_has_a_reason(page):
    text, reasons = text_of(page), REASONS.get(page, {})
    for piece in PIECES:
        if piece.page == page:
            text = piece.pattern.sub("", text, count=1)
    prose = LITERAL.sub(" ", text)
    unsaid = [words for given in reasons.values() for words in given if words not in prose]
    assert unsaid == [], f"prose.yaml has reasons for what {page} does not say"
    assert without_reason(text, reasons) == []


def test_a_number_of_a_page_without_a_reason_is_found():
    text = "| AUC | .71 |\n\nIt costs 3.1 USD, as said. Half of it is 1.6 USD."
    assert without_reason(text, {"definition": ["as said"]}) == [
        ".71 in '| AUC | .71 |'",
        "1.6 in 'Half of it is 1.6 USD.'",
    ]


@pytest.mark.parametrize(
    ("assumed", "given"),
    [
        ("as above", {}),
        ("small models: 0.05 and 0.20 USD a million", {"usd_in": 0.05, "usd_out": 0.20}),
        (
            "large models: 3 and 15 USD, which think for 500 tokens, 10 s a call",
            {"usd_in": 3, "usd_out": 15, "tokens_out": 10 + 500, "seconds_per_call": 10},
        ),
        ("500 requests, 200,000 tokens a minute", {"requests_per_minute": 500, "tokens_per_minute": 200_000}),
    ],
)
def test_a_large_study_costs_what_the_function_beside_the_table_says(assumed, given):
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(def plan.*?)^print", page, re.M | re.S)
    made = {}
    exec(code, made)
    calls, tokens, usd, hours = made["plan"](**given)
    of_four = ", ".join(f"{hour:g}" for hour in hours.values())
    row = f"| {assumed} | {calls / 1e6:g} million | {tokens / 1e9:g} billion | {usd:,} | {of_four} |"
    assert row in page, f"docs/cluster.md does not have the row {row}"


def test_the_answer_below_the_title_may_say_what_any_cell_prints():
    code = {"cell_type": "code", "outputs": []}
    far = [code, code, code, {"cell_type": "code", "outputs": [{"text": "J = 0.042"}]}]
    answer = {"cell_type": "markdown", "source": "**Answer** (two models): no. J is 0.04, A 0.31."}
    wrong = unfounded([answer, *far], {})
    assert [each.split(" in ")[0] for each in wrong] == ["0.31"]


def test_a_count_that_no_cell_beside_it_prints_is_found():
    table = {"cell_type": "code", "outputs": [{"text": "24 cases of 53 are above"}]}
    said = {"cell_type": "markdown", "source": "Above are 24 of 53 cases. By J it is 15 of 53, of 5 studies."}
    assert unfounded([table, said], {}) == ["15 in 'By J it is 15 of 53, of 5 studies.'"]


def test_the_page_of_figures_has_the_captions_that_09_prints():
    outputs = [output for cell in cells_of("09_paper_figures.ipynb") if is_code(cell) for output in cell["outputs"]]
    shown = "".join("".join(output.get("text", "")) for output in outputs)
    _, how, *blocks = (ROOT / "figures/README.md").read_text(encoding="utf-8").split("\n\n")
    captions = [block for block in blocks if not block.startswith(("#", "!", "* "))]
    assert len(captions) > 10 and "nothing here is edited by hand" in how
    assert [caption for caption in captions if caption.strip() not in shown] == []
