"""What the prose of notebooks says in numbers is what the cells beside it print, or has a reason in `prose.yaml`.

Read are decimals and percentages in markdown cells, outside of code, links and formulas. A number is printed where an
output of the three code cells before it or the two behind it, rounded to as many digits, is equal to it; a percentage
also as a share. Of sentences under FURTHER_UP, any cell of the notebook will do.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from selfeval import ROOT

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
REASONS = yaml.safe_load(Path(__file__).with_name("prose.yaml").read_text(encoding="utf-8"))
FURTHER_UP = "printed further up"
NUMBER = re.compile(r"(?<![\w.,/^-])([-−]?\d*\.\d+|[-−]?\d+)( ?%)?(?![\w/])")
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
    """Yield (sentence, match) of the decimals and percentages in a text."""
    for sentence in re.split(r"(?<=[.?!:;])\s+|\n", LITERAL.sub(" ", prose)):
        for match in NUMBER.finditer(sentence):
            if "." in match[1] or match[2]:
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
        beside = [*filter(is_code, cells[:place])][-3:] + [*filter(is_code, cells[place:])][:2]
        numbers = printed(beside)
        for sentence, match in stated("".join(cell["source"])):
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


def test_a_number_that_no_cell_beside_it_prints_is_found():
    table = {"cell_type": "code", "outputs": [{"text": "median 1.82, 1.08; share 0.724"}]}
    said = {"cell_type": "markdown", "source": "# A title\nIt is 1.8 times as wide, 2.3 elsewhere; in 72 %, then 73 %."}
    wrong = [each.split(" in ")[0] for each in unfounded([table, said], {})]
    assert wrong == ["2.3", "73 %"] and unfounded([table, said], {"why": ["elsewhere", "73 %"]}) == []
    far = [table, *[{"cell_type": "code", "outputs": []}] * 3, said | {"source": "It is 1.8 times as wide."}]
    assert unfounded(far, {}) and not unfounded(far, {FURTHER_UP: ["times as wide"]})
