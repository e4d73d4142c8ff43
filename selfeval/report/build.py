"""Writing the report: which pages there are, in which order they are made, and where they go."""

import base64
import hashlib
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from selfeval.errors import InputError
from selfeval.files import write_whole
from selfeval.paths import DATA, ROOT
from selfeval.report import notebooks, records
from selfeval.report.sources import Source, cleaner, find

HERE = Path(__file__).parent
READERS = {".ipynb": notebooks.pages, ".jsonl": records.pages}
TEMPLATES = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
STYLE = (HERE / "page.css").read_text("utf-8") + HtmlFormatter().get_style_defs(".highlight")
TEMPLATES.globals["style"] = Markup(STYLE)


def build(folders: Sequence[Path | str] = (), out: Path | str | None = None) -> Path:
    """Write the report of folders to a folder of pages and return its start page.

    folders: of sweeps or runs, or with notebooks, records and results; none: data/runs, or where there is no sweep
    notebooks/ and data/. out: data/report unless named. Raises `InputError` where a folder is missing or holds nothing
    to report, or where `out` holds something else.
    """
    out, runs = Path(out or DATA / "report"), DATA / "runs"
    if out.exists() and any(out.iterdir()) and not (out / "tables.js").is_file():
        raise InputError(f"The folder {out} holds files that are no report; name an empty one with --out.")
    sources = find([*map(Path, folders)] or ([runs] if runs.is_dir() else [ROOT / "notebooks", DATA]))
    clean, problems, sets, listed = cleaner(sources), [], [], []  # sets of results: until executed notebooks show them
    shutil.rmtree(out / "pages", ignore_errors=True)
    for number, source in enumerate(sources, 1):
        pages = []
        for title, body, said in _contents(source, clean, problems):
            pages.append((f"pages/{number:03}-{len(pages) + 1:03}.html", title, said))
            write_whole(out / pages[-1][0], _page("page.html.j2", title, body, source=clean(source.name)))
        listed.append((source.name, source.about, pages))
    if not any([sets, *(about or pages for _, about, pages in listed)]):
        raise InputError(f"{', '.join(map(str, folders))} holds no run, notebook, result or record to report.")
    title = ", ".join(dict.fromkeys(source.name.partition("/")[0] for source in sources))
    content = clean({"title": title, "problems": problems, "sets": sets, "listed": listed})
    write_whole(out / "tables.js", records.script())
    write_whole(out / "index.html", _page("start.html.j2", **content))
    print(*(f"Warning: {problem}\n" for problem in content["problems"]), sep="", end="", file=sys.stderr)
    return out / "index.html"


def _page(template: str, title: str, body: str = "", **content) -> str:
    """Return a page; the only scripts that run are tables.js and those in its body, by their hashes."""
    scripts = [hashlib.sha256(s.encode()).digest() for s in re.findall("<script[^>]*>(.*?)</script>", body, re.S)]
    hashes = Markup(" ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in scripts))
    return TEMPLATES.get_template(template).render(title=title, body=Markup(body), hashes=hashes, **content)


def _contents(source: Source, clean: Callable, problems: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (title, HTML, sentences for the start page) of each page of a source; note what failed or is unreadable."""
    if source.manifest.get("status", "ok") not in ("ok", "skipped"):
        problems.append(f"{source.name}: {source.about}")
    for ending, pages in READERS.items():
        for file in source.files(ending):
            try:
                yield from pages(file, clean)
            except InputError as error:
                problems.append(f"{source.name}: {error}")
