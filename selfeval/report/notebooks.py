"""An executed notebook as a page by nbconvert: prose, code, outputs and pictures, with nothing that runs or loads."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import bleach
import nbformat
from bleach.css_sanitizer import ALLOWED_CSS_PROPERTIES, CSSSanitizer
from nbconvert import HTMLExporter

from selfeval.errors import InputError

TAGS = {*bleach.ALLOWED_TAGS} | set(
    "br caption dd del details div dl dt h1 h2 h3 h4 h5 h6 hr img p pre s small span sub summary sup table tbody td "
    "tfoot th thead tr u".split()
)
PICTURE = re.compile(r"data:image/(png|jpeg);base64,[\w+/=\s]+", re.ASCII)
ATTRIBUTES = {
    "*": ["class", "style", "title", "colspan", "rowspan"],
    "a": ["href"],
    "img": lambda _, name, value: name == "alt" or (name == "src" and PICTURE.fullmatch(value)),
}
STYLES = CSSSanitizer([*ALLOWED_CSS_PROPERTIES, "border", "border-left", "margin", "max-height", "padding"])
CLEANER = bleach.Cleaner(TAGS, ATTRIBUTES, {"http", "https", "mailto", "data"}, css_sanitizer=STYLES)
DROPPED = re.compile(r"<(style|script)\b.*?</\1\s*>", re.I | re.S)  # else they would stand there as text
COLOUR = re.compile(r"(?<!\\)\\u001b\[[0-9;]*m")  # of a terminal, as a notebook's file has it
EXPORTER = HTMLExporter(template_name="basic", sanitize_html=True, exclude_anchor_links=True)
EXPORTER.register_filter("clean_html", lambda page: CLEANER.clean(DROPPED.sub("", str(page))))


def pages(file: Path, clean: Callable) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (title, HTML, what it concludes) of a notebook; raise `InputError` for one that is none, or was cut off.

    The HTML is nbconvert's, cleaned once more as a whole, since its templates do not escape everything.
    """
    try:
        notebook = clean(nbformat.reads(COLOUR.sub("", file.read_text("utf-8")), as_version=4))
        nbformat.validate(notebook)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        raise InputError(f"The notebook {file.name} cannot be read: {' '.join(str(error).split())[:200]}.") from error
    notebook, headings, said = nbformat.from_dict(notebook), [], []
    for cell in notebook.cells:
        headings += re.findall(r"^#+ +(.+)$", cell.source, re.M) if cell.cell_type == "markdown" else []
        cell.metadata = {"alt": (headings or ["A figure"])[-1]}
        for output in cell.get("outputs", []):
            output.get("metadata", {}).clear()  # which is not escaped where it becomes an attribute
            if "conclusions(" in cell.source or "conclude(" in cell.source:
                said += (output.get("text") or output.get("data", {}).get("text/plain", "")).splitlines()
    yield (headings or [clean(file.stem)])[0], CLEANER.clean(EXPORTER.from_notebook_node(notebook)[0]), said
