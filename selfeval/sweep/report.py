"""The report: executed notebooks as pages that open from disk, and a page that lists them.

Nothing on a page runs or loads: nbconvert's HTML is cleaned once more as a whole, since its
templates do not escape everything that a model may have said, and a content security policy forbids
all scripts.
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

import bleach
import nbformat
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

from selfeval.errors import InputError
from selfeval.paths import DATA, HOME, ROOT, make_private_folder, read_json, write_whole
from selfeval.secrets import plain, redact, visible
from selfeval.sweep.execute import FINDING

TAGS = (
    "br caption details div h1 h2 h3 h4 h5 h6 hr img p pre span sub summary sup "
    "table tbody td tfoot th thead tr"
)


CLEANER = bleach.Cleaner(
    {*bleach.ALLOWED_TAGS, *TAGS.split()},
    {"*": ["class", "title", "colspan", "rowspan"], "a": ["href"], "img": ["alt", "src"]},
    {"http", "https", "mailto", "data"},
)
# what would stand there as text
DROPPED = re.compile(r"<(style|script)\b.*?</\1\s*>", re.I | re.S)
EXPORTER = HTMLExporter(template_name="basic", exclude_anchor_links=True)
STYLE = """body { font: 1rem/1.5 Helvetica, Arial, sans-serif; margin: 0 auto; padding: 1rem; }
body { max-width: 72rem; }
img { max-width: 100%; } pre { white-space: pre-wrap; } pre, p { overflow-wrap: anywhere; }
td { overflow-wrap: anywhere; } table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem; }
"""
# how every page of a report begins, so that the next report knows what it may replace
MARK = (
    "<!doctype html>\n"
    '<html lang="en"><head><meta charset="utf-8">\n'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
)


def build(
    folders: Sequence[Path | str] = (), out: Path | str | None = None, title: str = "Runs"
) -> Path:
    """Write a page for each notebook below folders, and one that lists them; return the latter.

    folders: of sweeps or runs, or with notebooks; by default data/runs. out: data/report unless
    named. title: of the list. Raises `InputError` where a folder has no notebook, or where `out`
    holds something else than a report.
    """
    out = Path(out or DATA / "report")
    places = [Path(folder) for folder in folders or [DATA / "runs"]]
    files = _notebooks(places)
    _empty(out)
    # of paths that say where on this machine something lies
    above = {HOME, ROOT, Path.cwd(), Path.home(), *(place.resolve().parent for place in places)} - {
        Path("/")
    }
    beginnings = sorted((f"{place}/" for place in above), key=len, reverse=True)
    rows = ["<tr><th>notebook<th>run<th>models<th>ended"]
    for number, file in enumerate(files, 1):
        heading, page = _page(file, beginnings)
        name = f"pages/{number:03}.html"
        back = '<p><a href="../index.html">All runs</a></p>'
        write_whole(out / name, _html(heading, f"{back}\n{page}"))
        about = _about(file)
        facts = [str(file.parent), about["parameters"].get("models", ""), about["end_time"]]
        cells = [escape(_clean(str(fact), beginnings)) for fact in facts]
        rows.append(f'<tr><td><a href="{name}">{escape(heading)}</a><td>{"<td>".join(cells)}')
    table = "\n".join(["<table>", *rows, "</table>"])
    write_whole(out / "index.html", _html(title, f"<h1>{escape(title)}</h1>\n{table}"))
    return out / "index.html"


def _notebooks(folders: Sequence[Path]) -> list[Path]:
    """Return the notebooks below folders, those of runs as they began."""
    notebooks = []
    for folder in folders:
        files = [
            file
            for file in folder.resolve().rglob("*.ipynb")
            if ".ipynb_checkpoints" not in file.parts
        ]
        if not files:
            remedy = "name a sweep's, such as data/runs/demo"
            raise InputError(f"There is no notebook below {folder} to report; {remedy}.")
        notebooks += files
    return sorted(notebooks, key=lambda file: (_about(file)["start_time"], file))


def _about(file: Path) -> dict:
    """Return what papermill wrote about an executed notebook."""
    about = read_json(file).get("metadata", {}).get("papermill", {})
    return {"parameters": {}, "start_time": "", "end_time": ""} | about


def _empty(out: Path) -> None:
    """Make the folder of a report, without the pages of an earlier one; refuse any other."""
    make_private_folder(out)
    index = out / "index.html"
    if any(out.iterdir()) and not (index.is_file() and index.read_text("utf-8").startswith(MARK)):
        rule = f"The folder {out} holds files that are not of a report"
        raise InputError(f"{rule}; name an empty one with --out.")
    for page in (out / "pages").glob("[0-9]*.html"):
        page.unlink()


def _page(file: Path, above: Sequence[str]) -> tuple[str, str]:
    """Return title and HTML of a notebook; of one that is cut off, the reason."""
    try:
        notebook = nbformat.read(file, as_version=4)
        notebook.cells = [
            cell for cell in notebook.cells if FINDING not in cell.metadata.get("tags", ())
        ]
        page = _clean(EXPORTER.from_notebook_node(notebook)[0], above)
    except Exception as error:  # of whatever a file holds that is cut off
        why = f"The notebook {file.name} cannot be read: {plain(str(error))}"
        return file.parent.name, escape(_clean(why, above))
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#+ +(.+)$", prose, re.M)
    title = heading[1] if heading else file.stem
    return _clean(title, above), CLEANER.clean(DROPPED.sub("", page))


def _html(title: str, body: str) -> str:
    style = STYLE + HtmlFormatter().get_style_defs(".highlight")
    head = f"<title>{escape(title)}</title><style>{style}</style></head>"
    return f"{MARK}{head}<body>\n{body}\n</body></html>\n"


def _clean(text: str, above: Sequence[str]) -> str:
    """Return a text without keys and without these beginnings of paths; what hides is shown."""
    for beginning in above:
        text = text.replace(beginning, "")
    return visible(redact(text))
