"""The report: executed notebooks as pages that open from disk, and a page that lists them.

Nothing on a page runs or loads: nbconvert's HTML is cleaned once more as a whole, since its
templates do not escape everything that a model may have said, and a content security policy forbids
all scripts.
"""

import contextlib
import re
import sysconfig
from collections.abc import Sequence
from html import escape
from pathlib import Path

import bleach
import nbformat
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

from selfeval.errors import InputError
from selfeval.paths import DATA, HOME, ROOT, make_private_folder, read_json, write_whole
from selfeval.records.tables import data_path
from selfeval.secrets import plain, redact, visible
from selfeval.sweep.findings import given_to, without_findings

TAGS = (
    "br caption details div h1 h2 h3 h4 h5 h6 hr img p pre span sub summary sup "
    "table tbody td tfoot th thead tr"
)


def _is_of_image(_, name: str, value: str) -> bool:
    """Tell whether an image may have an attribute: a text, or a picture that it holds itself."""
    return name == "alt" or (name == "src" and value.startswith("data:image/"))


ATTRIBUTES = {
    "*": ["class", "title", "colspan", "rowspan"],
    "a": ["href"],
    "img": _is_of_image,
}
CLEANER = bleach.Cleaner(
    {*bleach.ALLOWED_TAGS, *TAGS.split()}, ATTRIBUTES, {"http", "https", "mailto", "data"}
)
# what would stand there as text
DROPPED = re.compile(r"<(style|script)\b.*?</\1\s*>", re.I | re.S)
EXPORTER = HTMLExporter(template_name="basic", exclude_anchor_links=True)
# parameters that name models
ASKED = ("models", "evaluators", "agent", "jurors")
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
HEADS = ("title", "run", "models", "date", "conclusion", "ended")
PAGE = """{mark}<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
{body}
</body></html>
"""


def build(
    folders: Sequence[Path | str] = (), out: Path | str | None = None, title: str = "Runs"
) -> Path:
    """Write a page for each notebook below folders, and one that lists them; return the latter.

    folders: of sweeps or runs, or with notebooks; none: data/runs, or where there is no sweep
    notebooks/. out: data/report unless named. title: of the list. Raises `InputError` where a
    folder is missing or has no notebook, or where `out` holds something else.
    """
    out = Path(out or DATA / "report")
    earlier = _pages_of(out)
    places = [Path(folder) for folder in folders]
    if not places:
        runs = DATA / "runs"
        places = [runs if runs.is_dir() else ROOT / "notebooks"]
    files = _notebooks(places)
    for page in earlier:
        page.unlink()
    make_private_folder(out)
    rows = [_row([f"<b>{head}</b>" for head in HEADS])]
    for number, file in enumerate(files, 1):
        above = _above(file, places)
        heading, body = _page(file, above)
        name = f"pages/{number:03}.html"
        back = '<p><a href="../index.html">All runs</a></p>'
        write_whole(out / name, _html(heading, f"{back}\n{body}"))
        link = f'<a href="{name}">{escape(heading)}</a>'
        rows.append(_row([link, *_facts(file, above)]))
    table = "\n".join(["<table>", *rows, "</table>"])
    write_whole(out / "index.html", _html(title, f"<h1>{escape(title)}</h1>\n{table}"))
    return out / "index.html"


def _row(cells: Sequence[str]) -> str:
    """Return a row of a table, in HTML."""
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _pages_of(out: Path) -> list[Path]:
    """Return the pages of the report in a folder; refuse one that holds anything else."""
    below = out / "pages"
    pages = []
    for file in [*_files_of(out), *_files_of(below)]:
        if file == below and file.is_dir() and not file.is_symlink():
            continue
        is_named = file == out / "index.html" or file.parent == below
        if not (is_named and _is_page(file)):
            such = f"such as {file.relative_to(out)}"
            rule = f"The folder {out} holds files that are not of a report, {such}"
            raise InputError(f"{rule}; name an empty one with --out.")
        pages.append(file)
    return pages


def _files_of(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_page(file: Path) -> bool:
    """Tell whether a file is a page that a report wrote."""
    if file.is_symlink() or not file.is_file():
        return False
    with file.open(encoding="utf-8", errors="replace") as page:
        return page.read(len(MARK)) == MARK


def _notebooks(folders: list[Path]) -> list[Path]:
    """Return the notebooks below folders, those of runs as they began."""
    notebooks = []
    for folder in folders:
        files = [*folder.resolve().rglob("*.ipynb")]
        files = [file for file in files if ".ipynb_checkpoints" not in file.parts]
        if not files:
            remedy = "name a sweep's, such as data/runs/demo"
            raise InputError(f"There is no notebook below {folder} to report; {remedy}.")
        notebooks += files
    return sorted(notebooks, key=lambda file: (str(_manifest(file).get("started")), file))


def _manifest(file: Path) -> dict:
    """Return the manifest of the run of a notebook, {} without one."""
    return read_json(file.with_name("manifest.json"))


def _above(file: Path, folders: Sequence[Path]) -> list[str]:
    """Return the beginnings of paths that say where on this machine something lies, longest first.

    They are the project, the home, where Python and its packages are, what is above the folders of
    the report, and what is above any other file or folder that a parameter of the run names.
    """
    folders = [*map(Path.absolute, folders), *map(Path.resolve, folders)]
    parameters = _manifest(file).get("parameters", {})
    with contextlib.suppress(Exception):  # of whatever is cut off; its page says so
        parameters = given_to(nbformat.read(file, as_version=4)) | parameters
    places = {HOME, ROOT, Path.cwd(), Path.home()}
    # tracebacks have these
    places |= {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")}
    places |= {folder.parent for folder in folders}
    for text in _texts(parameters):
        if text.startswith("/") and text.isprintable():
            path = Path(text)
            if not any(path.is_relative_to(folder) for folder in folders):
                places.add(path.parent)
    beginnings = {f"{place}/" for place in places} - {"//"}
    return sorted(beginnings, key=len, reverse=True)


def _texts(value) -> list[str]:
    """Return all texts in a value, also those in lists and dictionaries."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, str):
        return [value]
    texts = []
    if isinstance(value, list | tuple):
        for part in value:
            texts += _texts(part)
    return texts


def _page(file: Path, above: Sequence[str]) -> tuple[str, str]:
    """Return title and HTML of a notebook; of one that is cut off, the reason."""
    try:
        notebook = without_findings(nbformat.read(file, as_version=4))
        page = _clean(EXPORTER.from_notebook_node(notebook)[0], above)
    except Exception as error:  # of whatever a file holds that is cut off
        why = f"The notebook {file.name} cannot be read: {plain(str(error))}"
        return file.parent.name, escape(_clean(why, above))
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#+ +(.+)$", prose, re.M)
    title = heading[1] if heading else file.stem
    return _clean(title, above), CLEANER.clean(DROPPED.sub("", page))


def _facts(file: Path, above: Sequence[str]) -> list[str]:
    """Return what the list says about a notebook besides its title, as HTML."""
    manifest = _manifest(file)
    parameters = manifest.get("parameters", {})
    named = [str(parameters[name]) for name in ASKED if name in parameters]
    results = data_path(parameters.get("out") or file.parent)
    if not results.is_dir():  # the runs were moved, and with them what stands beside the notebook
        results = file.parent
    facts = {
        "run": str(file.parent) if manifest else file.name,
        "models": re.sub(r"[\[\]']", "", " ".join(named)),
        "date": manifest.get("ended", "")[:10],
        "conclusion": _conclusion(results),
        "ended": f"{manifest.get('status', '')} {manifest.get('cause', '')}",
    }
    return [escape(_clean(text, above)) for text in facts.values()]


def _conclusion(folder: Path) -> str:
    """Return what the main table of a run's result concludes; "" where there is none."""
    from selfeval.estimates import saved, summaries  # with it come pandas and the evaluations

    if not any((folder / name).is_file() for name in saved.MAIN):
        return ""
    try:
        return " ".join(summaries.verdict(result) for result in saved.read_results(folder))
    except (InputError, ValueError, KeyError):  # of a table that is cut off, or not one of ours
        return ""


def _html(title: str, body: str) -> str:
    style = STYLE + HtmlFormatter().get_style_defs(".highlight")
    return PAGE.format(mark=MARK, title=escape(title), body=body, style=style)


def _clean(text: str, above: Sequence[str]) -> str:
    """Return a text without keys and without these beginnings of paths; what hides is shown."""
    for beginning in above:
        text = text.replace(beginning, "")
    return visible(redact(text))
