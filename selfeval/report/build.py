"""Writing the report: which pages there are, in which order they are made, and where they go."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from selfeval import DATA, FIGURES
from selfeval.errors import InputError
from selfeval.records import write_whole
from selfeval.report import figures, notebooks, pages, sources, start, tables, transcripts
from selfeval.report.pages import escape
from selfeval.report.sources import Sources
from selfeval.stats.serving import MARK

OUT = DATA / "report"
ABOUT = {
    "runs.html": "One row per run of a sweep, from its manifest. Open a row for its parameters and versions; its name "
    "leads to the executed notebook.",
    "predictions.html": "One row per question. Open a row for the raw reply; what hides in it is made visible, as "
    "‹U+202E› or ‹ESC›.",
    "transcripts.html": "Conversations: identity, with the read-out after each reply, and role-play, with what the "
    "jury said of each answer. A read-out asks a fork of the conversation who the model is; the conversation goes on "
    "without it.",
}


@dataclass(frozen=True)
class Book:
    """A notebook's page: its name, file, title, and the sentences that the notebook concludes with."""

    name: str
    file: str
    title: str
    conclusions: tuple[str, ...] = ()


def build(
    runs: Sequence[Path | str] = (),
    out: Path | str | None = None,
    pictures: Path | str | None = None,
    rows: int = tables.MOST,
) -> Path:
    """Write the report of runs to a folder and return its start page.

    runs: folders of sweeps, runs, notebooks and records, or such files; none: all sweeps of data/runs, or where there
    is none the committed notebooks. pictures: the folder of figures for the start page; by default `figures/`, unless
    runs are named. out: data/report unless named. rows: most rows of a page. Raises `InputError` where there is
    nothing to report, or where `out` holds something else.
    """
    out, found = Path(out or OUT), sources.find(runs)
    for problem in found.problems:
        print(f"Warning: {found.clean(problem)}", file=sys.stderr)
    old = _earlier(out)
    pictures = pictures or (None if runs else FIGURES)
    shown = figures.read(Path(pictures)) if pictures else figures.Shown()
    for file, page in _pages(found, shown, rows):
        write_whole(out / file, page)
        old.discard(out / file)
    for file in old:
        file.unlink()
    return out / "index.html"


def _earlier(out: Path) -> set[Path]:
    """Return the pages of an earlier report in a folder; raise `InputError` where it is not a report's."""
    files = {file for file in out.rglob("*") if file.is_file()} if out.exists() else set()
    ours = {f for f in files if f.suffix == ".html" and pages.GENERATOR in f.read_text("utf-8", "replace")[:2000]}
    if files and not ours:
        raise InputError(f"The folder {out} holds files that are no report; name an empty one with --out.")
    return ours


def _pages(found: Sources, shown: figures.Shown, most: int) -> Iterator[tuple[str, str]]:
    """Yield (file, page) one at a time: the notebooks of a large sweep would not fit into memory together."""
    addresses = _addresses(found.notebooks)
    predicted, answers = tables.predictions(found, most)
    browsed = {
        "runs.html": tables.runs(found, addresses),
        "predictions.html": predicted,
        "transcripts.html": transcripts.transcripts(found, most),
    }
    browsed = {file: table for file, table in browsed.items() if table.size}
    several = found.several  # by the records that were read for these tables
    for table in browsed.values():
        table.mark(several)
    answers["evaluator"] = answers["evaluator"].map(lambda name: name + MARK if name in several else name)
    there = {"index.html", *browsed, *(["notebooks.html"] if addresses else []), *(["figures.html"] if shown else [])}
    for file, table in browsed.items():
        yield file, pages.page(pages.PAGES[file], pages.browser(table, ABOUT[file]), there, file, pages.SCRIPT)
    books = []
    for name, file in addresses.items():
        book, body = _book(found, name, file)
        books.append(book)
        yield file, pages.page(book.title, body, there, file)
    if books:
        yield "notebooks.html", pages.page("Notebooks", _listed(books), there, "notebooks.html")
    if shown:
        yield (
            "figures.html",
            pages.page("Figures and tables", start.all_figures(shown, found.clean), there, "figures.html"),
        )
    yield "index.html", pages.page("Report", start.body(found, shown, answers, browsed, books), there, "index.html")


def _addresses(names: Sequence[str]) -> dict[str, str]:
    """Return the page of each notebook; names that look alike as file names are told apart."""
    files: dict[str, str] = {}
    for name in names:
        file = "notebooks/" + re.sub(r"[^\w.-]+", "-", name) + ".html"
        while file in files.values():
            file = file.replace(".html", "-.html")
        files[name] = file
    return files


def _book(found: Sources, name: str, file: str) -> tuple[Book, str]:
    """Return a notebook's page; where the notebook cannot be read, the page says why."""
    lead = f'<p class="note">{escape(found.clean(name))}</p>\n'
    try:
        notebook = notebooks.read(found.notebooks[name])
    except InputError as error:
        found.problems[f"{name}: {error}"] = None
        problem = f'<p class="problem">{escape(found.clean(error))}</p>'
        return Book(name, file, found.clean(name)), lead + problem
    title = found.clean(notebooks.title_of(notebook, name))
    book = Book(name, file, title, tuple(notebooks.conclusions(notebook, found.clean)))
    return book, lead + notebooks.body(notebook, found.clean)


def _listed(books: Sequence[Book]) -> str:
    rows = (f'<li><a href="{book.file}">{escape(book.name)}</a>: {escape(book.title)}</li>' for book in books)
    return f"<p>Executed notebooks with their outputs.</p><ul>{''.join(rows)}</ul>"
