"""An executed notebook as a page: prose, code, outputs and pictures, with nothing in it that could run or load."""

import base64
import binascii
import html
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import bleach
import nbformat
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.filters import ansi2html, markdown2html
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from selfeval.errors import InputError
from selfeval.report.pages import framed
from selfeval.report.tables import IN_WORDS
from selfeval.stats.serving import NOTE

TAGS = set(
    "a b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i li ol p pre s small span strong "
    "sub summary sup table tbody td tfoot th thead tr u ul".split()
)
ATTRIBUTES = {
    "*": ["style", "title"],
    "a": lambda tag, name, value: name == "href" and re.match(r"(https?://|mailto:|#)", value),
    "details": ["open"],
    "td": ["colspan", "rowspan"],
    "th": ["colspan", "rowspan", "scope"],
}
STYLES = set(
    "background background-color border border-collapse border-left border-radius color font-family font-size "
    "font-style font-weight line-height margin margin-right margin-top max-height max-width opacity overflow "
    "overflow-wrap padding text-align text-decoration vertical-align white-space width word-break".split()
)
PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
NAME = 80  # characters of a line that can be the name of the picture below it
LONGEST = 200_000  # characters of one output
_CLEANER = bleach.Cleaner(TAGS, ATTRIBUTES, {"http", "https", "mailto"}, css_sanitizer=CSSSanitizer(STYLES))
_DROPPED = re.compile(r"<(style|script)\b.*?</\1\s*>|<!--.*?-->", re.I | re.S)
_CODE = HtmlFormatter(nowrap=True)


def sanitised(page: str) -> str:
    """Return HTML of an output or of prose with harmless tags alone; any other is shown as text, scripts are dropped.

    What could load something goes too: pictures, forms, style sheets, and styles with an address.
    """
    cleaned = _CLEANER.clean(_DROPPED.sub("", page))
    return re.sub(r'\sstyle="[^"]*(?:url|\(|\\|@)[^"]*"', "", cleaned)


def read(path: Path) -> nbformat.NotebookNode:
    """Return the notebook in a file; raise `InputError` for one that is none, or was cut off while it was written."""
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        raise InputError(f"The notebook {path.name} cannot be read: {' '.join(str(error).split())[:200]}.") from error


def title_of(notebook: nbformat.NotebookNode, name: str) -> str:
    """Return a notebook's first heading, else its name."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (found := re.search(r"^# +(.+)$", cell.source, re.M)):
            return found[1].strip().replace("`", "")
    return name


def conclusions(notebook: nbformat.NotebookNode, clean: Callable[[str], str]) -> list[str]:
    """Return the sentences that a notebook draws from its tables: what the cells that call `conclusions` print."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and "conclusions(" in cell.source]
    printed = [output.text for cell in cells for output in cell.get("outputs", []) if output.output_type == "stream"]
    return [line for line in clean("\n".join(printed)).splitlines() if line.strip()]


def body(notebook: nbformat.NotebookNode, clean: Callable[[str], str]) -> str:
    """Return the cells of a notebook as HTML, without its title; `clean` is applied to every text before."""
    pictures, heading, cells = itertools.count(1), "", []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (found := re.findall(r"^##+ +(.+)$", cell.source, re.M)):
            heading = found[-1].strip().replace("`", "")
        cells.append(_cell(cell, clean, heading, pictures))
    page = "\n".join(cells)
    page = re.sub(r"<h1\b.*?</h1>", "", page, count=1, flags=re.S)  # the page has it already
    return re.sub(r"(</?)h1\b", r"\1h2", page)


def _cell(cell: nbformat.NotebookNode, clean: Callable[[str], str], heading: str, pictures: Iterator[int]) -> str:
    if cell.cell_type == "markdown":
        return f'<div class="prose">{_prose(clean(cell.source))}</div>'
    if cell.cell_type != "code":
        return f"<pre>{html.escape(clean(cell.source))}</pre>"
    count = cell.get("execution_count")
    code = highlight(clean(cell.source), PythonLexer(), _CODE)
    tagged = " · parameters" * any("parameters" in tag for tag in cell.metadata.get("tags", []))
    head = f'<div class="label">In [{html.escape(str(count or " "))}]{tagged}</div>'
    parts = (
        [f'<div class="step">{head}<pre class="code" tabindex="0"><code>{code}</code></pre>'] if code.strip() else []
    )
    said = ""
    for output in cell.get("outputs", []):
        said = (output.get("text", "").strip().splitlines() or [said])[-1]
        parts.append(f'<div class="output">{_output(output, clean, [heading, said], pictures)}</div>')
    return "\n".join([*parts, "</div>"]) if parts else ""


def _prose(source: str) -> str:
    return sanitised(markdown2html(source)).replace("&#182;", "").replace("¶", "")


def _output(
    output: nbformat.NotebookNode, clean: Callable[[str], str], about: list[str], pictures: Iterator[int]
) -> str:
    """Return one output; `about`: what names a picture, the heading above and what the cell printed last."""
    if output.output_type == "stream":
        return f'<pre class="{"stderr" if output.name == "stderr" else "stdout"}">{_ansi(output.text, clean)}</pre>'
    if output.output_type == "error":
        trace = _ansi("\n".join(output.traceback), clean)
        what = f"<strong>{html.escape(clean(output.ename))}</strong>: {html.escape(clean(output.evalue))}"
        trace = f"<details><summary>Traceback</summary><pre>{trace}</pre></details>"
        return f'<div class="error" role="note">{what}{trace}</div>'
    data = output.get("data", {})
    for kind in PICTURES:
        if kind in data:
            return _picture(kind, data[kind], [clean(text) for text in about], next(pictures))
    if "text/html" in data:
        page = sanitised(clean(data["text/html"])).replace(NOTE, IN_WORDS)
        return f'<div class="scroll" role="region" aria-label="Output" tabindex="0">{page}</div>'
    if "text/markdown" in data:
        return f'<div class="prose">{_prose(clean(data["text/markdown"]))}</div>'
    text = data.get("text/plain") or json.dumps(data, sort_keys=True)
    return f"<pre>{html.escape(_cut(clean(text)))}</pre>"


def _picture(kind: str, encoded: str, about: list[str], number: int) -> str:
    """Return a picture inside the page, checked to be of its kind; SVG, which can hold scripts, is never one."""
    try:
        content = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if not content.startswith(PICTURES[kind]):
        return "<p>(an output that says it is a picture, and is none)</p>"
    heading, said = about
    named = said.replace("_", " ") if len(said) <= NAME else ""
    what = f"{heading} ({named})" if heading and named else heading or named
    return framed(kind, content, f"Figure {number}", f"Figure {number}" + f": {what}" * bool(what))


def _ansi(text: str, clean: Callable[[str], str]) -> str:
    """Return printed text with its colours as classes; every other control character is shown."""
    colours = re.split(r"(\x1b\[[0-9;]*m)", _cut(text))
    return ansi2html("".join(part if k % 2 else clean(part) for k, part in enumerate(colours)))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… ({len(text) - LONGEST:,} more characters)"
