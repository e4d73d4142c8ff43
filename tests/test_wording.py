"""Prose is plain English: the phrases of wording.txt read as translated or cryptic, and none of them comes back."""

import ast
import json
import re

import pytest

from selfeval import ROOT

PHRASES = "|".join((ROOT / "tests" / "wording.txt").read_text(encoding="utf-8").splitlines())
WRONG = re.compile(rf"\b({PHRASES})", re.I)
PAGES = ("*.md", "docs/*.md", "notebooks/*.md", "data/**/*.md")
OTHERS = ("notebooks/*.ipynb", "selfeval/**/*.py")
NOT_OURS = {"CHANGELOG.md", "results"}  # it quotes old names; and what 09 drew, if it was executed before
PLACES = [path for place in (*PAGES, *OTHERS) for path in ROOT.glob(place) if not NOT_OURS & {*path.parts}]


def sentences(path):
    """Return what a person reads of a file: prose, docstrings, sentences of the code, printed output."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        return [one for one in strings if isinstance(one, str) and " " in one]
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        said = [output.get("text", "") for cell in cells for output in cell.get("outputs", ())]
        prose = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
        return ["".join(each) for each in (*said, *prose)]
    return [re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)]


@pytest.mark.parametrize("path", PLACES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_forbidden_phrase(path):
    texts = (" ".join(re.sub(r"`[^`\n]*`", "``", text).split()) for text in sentences(path))
    found = [text[max(0, m.start() - 60) : m.end() + 40] for text in texts for m in WRONG.finditer(text)]
    assert not found, found
