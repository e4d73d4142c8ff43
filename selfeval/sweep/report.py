"""The report: executed notebooks as pages that open from disk without a network, and a page that lists them.

Nothing on a page runs or loads: nbconvert's HTML is cleaned once more as a whole, since its templates do not escape
everything that a model may have said, and a content security policy forbids all scripts.
"""

import csv
import re
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path

import bleach
import nbformat
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

from selfeval.errors import InputError
from selfeval.files import write_whole
from selfeval.keys import redact, visible
from selfeval.paths import DATA, HOME, ROOT
from selfeval.records import data_path
from selfeval.sweep.file import plain, read_json

TAGS = {*bleach.ALLOWED_TAGS} | set(
    "br caption dd del details div dl dt h1 h2 h3 h4 h5 h6 hr img p pre s small span sub summary sup table tbody td "
    "tfoot th thead tr u".split()
)
PICTURE = re.compile(r"data:image/(png|jpeg);base64,[\w+/=\s]+", re.ASCII)
ATTRIBUTES = {
    "*": ["class", "title", "colspan", "rowspan"],
    "a": ["href"],
    "img": lambda _, name, value: name == "alt" or (name == "src" and PICTURE.fullmatch(value)),
}
CLEANER = bleach.Cleaner(TAGS, ATTRIBUTES, {"http", "https", "mailto", "data"})
DROPPED = re.compile(r"<(style|script)\b.*?</\1\s*>", re.I | re.S)  # else they would stand there as text
EXPORTER = HTMLExporter(template_name="basic", exclude_anchor_links=True)
ASKED = ("models", "evaluators", "agent", "jurors")  # parameters that name models
STYLE = """body { font: 1rem/1.5 Helvetica, Arial, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
img { max-width: 100%; } pre { white-space: pre-wrap; } pre, p, td { overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: .9rem; } th, td { text-align: left; vertical-align: top; padding: .3rem; }
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
{body}
</body></html>
"""


def build(folders: Sequence[Path | str] = (), out: Path | str | None = None) -> Path:
    """Write a page for each notebook below folders, and one that lists them; return the latter.

    folders: of sweeps or runs, or with notebooks; none: data/runs, or where there is no sweep notebooks/. out:
    data/report unless named. Raises `InputError` where a folder is missing or has no notebook, or where `out` holds
    something else.
    """
    out, runs = Path(out or DATA / "report"), DATA / "runs"
    if out.exists() and {each.name for each in out.iterdir()} - {"index.html", "pages"}:
        raise InputError(f"The folder {out} holds files that are no report; name an empty one with --out.")
    files = _notebooks([*map(Path, folders)] or [runs if runs.is_dir() else ROOT / "notebooks"])
    shutil.rmtree(out / "pages", ignore_errors=True)
    rows = []
    for number, file in enumerate(files, 1):
        name, (title, body) = f"pages/{number:03}.html", _page(file)
        write_whole(out / name, _html(title, f'<p><a href="../index.html">All runs</a></p>\n{body}'))
        rows.append({"title": f'<a href="{name}">{escape(title)}</a>'} | _facts(file))
    heads = "".join(f"<th>{name}</th>" for name in rows[0])
    lines = ["".join(f"<td>{cell}</td>" for cell in row.values()) for row in rows]
    table = "\n".join(f"<tr>{line}</tr>" for line in (heads, *lines))
    write_whole(out / "index.html", _html("Runs", f"<h1>Runs</h1>\n<table>\n{table}\n</table>"))
    return out / "index.html"


def _notebooks(folders: list[Path]) -> list[Path]:
    """Return the notebooks below folders, those of runs as they began."""
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"There is no folder {folder} to report; name a sweep's, such as data/runs/demo.")
    found = [file for folder in folders for file in sorted(folder.resolve().rglob("*.ipynb"))]
    found = [file for file in found if ".ipynb_checkpoints" not in file.parts]
    if not found:
        raise InputError(f"{', '.join(map(str, folders))} holds no notebook to report; run a sweep first.")
    return sorted(found, key=lambda file: str(read_json(file.with_name("manifest.json")).get("started")))


def _page(file: Path) -> tuple[str, str]:
    """Return title and HTML of a notebook; of one that is cut off, the reason."""
    try:
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # of whatever a file holds that is cut off
        return file.parent.name, escape(_clean(f"The notebook {file.name} cannot be read: {plain(str(error))}"))
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#+ +(.+)$", prose, re.M)
    page = _clean(EXPORTER.from_notebook_node(notebook)[0])
    return _clean(heading[1] if heading else file.stem), CLEANER.clean(DROPPED.sub("", page))


def _facts(file: Path) -> dict[str, str]:
    """Return what the list says about a notebook besides its title, as HTML."""
    manifest = read_json(file.with_name("manifest.json"))
    given = manifest.get("parameters") or {}
    models = " ".join(str(given[name]) for name in ASKED if name in given)
    row = {"run": "/".join(file.parts[-4:-1]) if manifest else file.name, "models": re.sub(r"[\[\]']", "", models)}
    row |= {"date": str(manifest.get("ended", ""))[:10], "conclusion": _conclusion(file.parent, given)}
    row["ended"] = " ".join(str(manifest[name]) for name in ("status", "cause") if manifest.get(name))
    return {name: escape(_clean(text)) for name, text in row.items()}


def _conclusion(folder: Path, given: dict) -> str:
    """Return what the first row of a run's results concludes about whom, "" where none does."""
    out = data_path(str(given["out"])) if given.get("out") else folder
    for file in sorted(out.glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row.get("conclusion"):
                    return ": ".join(filter(None, (row.get("evaluator"), row["conclusion"])))
    return ""


def _html(title: str, body: str) -> str:
    style = STYLE + HtmlFormatter().get_style_defs(".highlight")
    return PAGE.format(title=escape(title), body=body, style=style)


def _clean(text: str) -> str:
    """Return a text without keys and without what is above the project or the home; what hides is shown."""
    for above in sorted({f"{HOME}/", f"{ROOT}/", f"{Path.home()}/"} - {"//"}, key=len, reverse=True):
        text = text.replace(above, "")
    return visible(redact(text))
