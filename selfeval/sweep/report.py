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
from selfeval.keys import plain, redact, visible
from selfeval.paths import DATA, HOME, ROOT, read_json, write_whole
from selfeval.records import data_path

TAGS = "br caption details div h1 h2 h3 h4 h5 h6 hr img p pre span sub summary sup table tbody td tfoot th thead tr"
ATTRIBUTES = {
    "*": ["class", "title", "colspan", "rowspan"],
    "a": ["href"],
    "img": lambda _, name, value: name == "alt" or (name == "src" and value.startswith("data:image/")),
}
CLEANER = bleach.Cleaner({*bleach.ALLOWED_TAGS, *TAGS.split()}, ATTRIBUTES, {"http", "https", "mailto", "data"})
DROPPED = re.compile(r"<(style|script)\b.*?</\1\s*>", re.I | re.S)  # else they would stand there as text
EXPORTER = HTMLExporter(template_name="basic", exclude_anchor_links=True)
ASKED = ("models", "evaluators", "agent", "jurors")  # parameters that name models
STYLE = """body { font: 1rem/1.5 Helvetica, Arial, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
img { max-width: 100%; } pre { white-space: pre-wrap; } pre, p { overflow-wrap: anywhere; }
td { overflow-wrap: anywhere; } table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem; }
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
{body}
</body></html>
"""


def build(folders: Sequence[Path | str] = (), out: Path | str | None = None, title: str = "Runs") -> Path:
    """Write a page for each notebook below folders, and one that lists them; return the latter.

    folders: of sweeps or runs, or with notebooks; none: data/runs, or where there is no sweep notebooks/. out:
    data/report unless named. title: of the list. Raises `InputError` where a folder is missing or has no notebook,
    or where `out` holds something else.
    """
    out, runs = Path(out or DATA / "report"), DATA / "runs"
    if out.exists() and {each.name for each in out.iterdir()} - {"index.html", "pages"}:
        raise InputError(f"The folder {out} holds files that are not of a report; name an empty one with --out.")
    files = _notebooks([*map(Path, folders)] or [runs if runs.is_dir() else ROOT / "notebooks"])
    shutil.rmtree(out / "pages", ignore_errors=True)
    rows = [[f"<b>{head}</b>" for head in ("title", "run", "models", "date", "conclusion", "ended")]]
    for number, file in enumerate(files, 1):
        name, (heading, body) = f"pages/{number:03}.html", _page(file)
        write_whole(out / name, _html(heading, f'<p><a href="../index.html">All runs</a></p>\n{body}'))
        rows.append((f'<a href="{name}">{escape(heading)}</a>', *_facts(file)))
    table = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    write_whole(out / "index.html", _html(title, f"<h1>{escape(title)}</h1>\n<table>\n{table}\n</table>"))
    return out / "index.html"


def _notebooks(folders: list[Path]) -> list[Path]:
    """Return the notebooks below folders, those of runs as they began."""
    found = []
    for folder in folders:
        these = [file for file in folder.resolve().rglob("*.ipynb") if ".ipynb_checkpoints" not in file.parts]
        if not these:
            raise InputError(f"There is no notebook below {folder} to report; name a sweep's, such as data/runs/demo.")
        found += these
    return sorted(found, key=lambda file: (str(read_json(file.with_name("manifest.json")).get("started")), file))


def _page(file: Path) -> tuple[str, str]:
    """Return title and HTML of a notebook; of one that is cut off, the reason."""
    try:
        notebook = nbformat.read(file, as_version=4)
        page = _clean(EXPORTER.from_notebook_node(notebook)[0])
    except Exception as error:  # of whatever a file holds that is cut off
        return file.parent.name, escape(_clean(f"The notebook {file.name} cannot be read: {plain(str(error))}"))
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#+ +(.+)$", prose, re.M)
    return _clean(heading[1] if heading else file.stem), CLEANER.clean(DROPPED.sub("", page))


def _facts(file: Path) -> list[str]:
    """Return what the list says about a notebook besides its title, as HTML."""
    manifest = read_json(file.with_name("manifest.json"))
    given = manifest.get("parameters", {})
    models = re.sub(r"[\[\]']", "", " ".join(str(given[name]) for name in ASKED if name in given))
    run, date = "/".join(file.parts[-4:-1]) if manifest else file.name, manifest.get("ended", "")[:10]
    ended = " ".join(manifest.get(name, "") for name in ("status", "cause"))
    results = data_path(given["out"]) if given.get("out") else file.parent
    return [escape(_clean(text)) for text in (run, models, date, _conclusion(results), ended)]


def _conclusion(folder: Path) -> str:
    """Return what the first row of a run's results concludes about whom, "" where none does."""
    texts = (file.read_text("utf-8") for file in sorted(folder.glob("*.csv")))
    rows = (row for text in texts for row in csv.DictReader(text.splitlines()))
    row = next((row for row in rows if row.get("conclusion")), {})
    return ": ".join(row[name] for name in ("evaluator", "conclusion") if row.get(name))


def _html(title: str, body: str) -> str:
    style = STYLE + HtmlFormatter().get_style_defs(".highlight")
    return PAGE.format(title=escape(title), body=body, style=style)


def _clean(text: str) -> str:
    """Return a text without keys and without what is above the project or the home; what hides is shown."""
    for above in sorted({f"{each}/" for each in (HOME, ROOT, Path.cwd(), Path.home())} - {"//"}, key=len, reverse=True):
        text = text.replace(above, "")
    return visible(redact(text))
