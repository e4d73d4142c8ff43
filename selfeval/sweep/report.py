"""The report: executed notebooks as pages that open from disk without a network, and a page that lists them.

Nothing on a page runs or loads: nbconvert's HTML is cleaned once more as a whole, since its templates do not escape
everything that a model may have said, and a content security policy forbids all scripts.
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

TAGS = "br caption details div h1 h2 h3 h4 h5 h6 hr img p pre span sub summary sup table tbody td tfoot th thead tr"
ATTRIBUTES = {
    "*": ["class", "title", "colspan", "rowspan"],
    "a": ["href"],
    "img": lambda _, name, value: (
        name == "alt" or (name == "src" and value.startswith("data:image/"))
    ),
}
CLEANER = bleach.Cleaner(
    {*bleach.ALLOWED_TAGS, *TAGS.split()}, ATTRIBUTES, {"http", "https", "mailto", "data"}
)
DROPPED = re.compile(
    r"<(style|script)\b.*?</\1\s*>", re.I | re.S
)  # else they would stand there as text
EXPORTER = HTMLExporter(template_name="basic", exclude_anchor_links=True)
ASKED = ("models", "evaluators", "agent", "jurors")  # parameters that name models
STYLE = """body { font: 1rem/1.5 Helvetica, Arial, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
img { max-width: 100%; } pre { white-space: pre-wrap; } pre, p { overflow-wrap: anywhere; }
td { overflow-wrap: anywhere; } table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem; }
"""
MARK = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
"""  # how every page of a report begins, so that the next report knows what it may replace
PAGE = """{mark}<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
{body}
</body></html>
"""


def build(
    folders: Sequence[Path | str] = (), out: Path | str | None = None, title: str = "Runs"
) -> Path:
    """Write a page for each notebook below folders, and one that lists them; return the latter.

    folders: of sweeps or runs, or with notebooks; none: data/runs, or where there is no sweep notebooks/. out:
    data/report unless named. title: of the list. Raises `InputError` where a folder is missing or has no notebook,
    or where `out` holds something else.
    """
    out, runs = Path(out or DATA / "report"), DATA / "runs"
    earlier = _pages_of(out)
    folders = [*map(Path, folders)] or [runs if runs.is_dir() else ROOT / "notebooks"]
    files = _notebooks(folders)
    for page in earlier:
        page.unlink()
    make_private_folder(out)
    rows = [
        [f"<b>{head}</b>" for head in ("title", "run", "models", "date", "conclusion", "ended")]
    ]
    for number, file in enumerate(files, 1):
        above = _above(file, folders)
        name, (heading, body) = f"pages/{number:03}.html", _page(file, above)
        write_whole(
            out / name, _html(heading, f'<p><a href="../index.html">All runs</a></p>\n{body}')
        )
        rows.append((f'<a href="{name}">{escape(heading)}</a>', *_facts(file, above)))
    table = "\n".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    write_whole(
        out / "index.html", _html(title, f"<h1>{escape(title)}</h1>\n<table>\n{table}\n</table>")
    )
    return out / "index.html"


def _pages_of(out: Path) -> list[Path]:
    """Return the pages of the report in a folder; raise `InputError` where it holds anything else."""
    found = []
    for file in [*_files_of(out), *_files_of(out / "pages")]:
        if file == out / "pages" and file.is_dir() and not file.is_symlink():
            continue
        is_named = file == out / "index.html" or file.parent == out / "pages"
        if not (is_named and _is_page(file)):
            raise InputError(
                f"The folder {out} holds files that are not of a report, such as {file.relative_to(out)}; name an "
                "empty one with --out."
            )
        found.append(file)
    return found


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
    found = []
    for folder in folders:
        these = [
            file
            for file in folder.resolve().rglob("*.ipynb")
            if ".ipynb_checkpoints" not in file.parts
        ]
        if not these:
            raise InputError(
                f"There is no notebook below {folder} to report; name a sweep's, such as data/runs/demo."
            )
        found += these
    return sorted(
        found,
        key=lambda file: (str(read_json(file.with_name("manifest.json")).get("started")), file),
    )


def _above(file: Path, folders: Sequence[Path]) -> list[str]:
    """Return the beginnings of paths that say where on this machine something lies, longest first.

    They are the project, the home, where Python and its packages are, what is above the folders of the report, and what
    is above any other file or folder that a parameter of the run names.
    """
    folders = [*map(Path.absolute, folders), *map(Path.resolve, folders)]
    given = read_json(file.with_name("manifest.json")).get("parameters", {})
    with contextlib.suppress(
        Exception
    ):  # whatever a notebook holds that is cut off; its page says so
        given = given_to(nbformat.read(file, as_version=4)) | given
    named = [Path(text) for text in _texts(given) if text.startswith("/") and text.isprintable()]
    elsewhere = [
        place for place in named if not any(place.is_relative_to(folder) for folder in folders)
    ]
    python = [
        Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")
    ]  # tracebacks have them
    places = [
        HOME,
        ROOT,
        Path.cwd(),
        Path.home(),
        *python,
        *(place.parent for place in (*folders, *elsewhere)),
    ]
    return sorted({f"{place}/" for place in places} - {"//"}, key=len, reverse=True)


def _texts(value) -> list[str]:
    """Return all texts in a value, also those in lists and dictionaries."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []


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
    return _clean(heading[1] if heading else file.stem, above), CLEANER.clean(DROPPED.sub("", page))


def _facts(file: Path, above: Sequence[str]) -> list[str]:
    """Return what the list says about a notebook besides its title, as HTML."""
    manifest = read_json(file.with_name("manifest.json"))
    given = manifest.get("parameters", {})
    models = re.sub(r"[\[\]']", "", " ".join(str(given[name]) for name in ASKED if name in given))
    run, date = str(file.parent) if manifest else file.name, manifest.get("ended", "")[:10]
    ended = " ".join(manifest.get(name, "") for name in ("status", "cause"))
    results = data_path(given.get("out") or file.parent)
    if not results.is_dir():  # the runs were moved, and with them what stands beside the notebook
        results = file.parent
    return [
        escape(_clean(text, above)) for text in (run, models, date, _conclusion(results), ended)
    ]


def _conclusion(folder: Path) -> str:
    """Return what the main table of a run's result concludes, as the command prints it; "" where there is none."""
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
