"""Writing the report: which pages there are, and what the start page says."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from selfeval import DATA, FIGURES
from selfeval.errors import InputError
from selfeval.records import write_whole
from selfeval.report import figures, notebooks, pages, sources, tables, transcripts
from selfeval.report.pages import escape
from selfeval.report.sources import Sources

OUT = DATA / "report"
ABOUT_RUNS = (
    "One row per run of a sweep, from its manifest. Open a row for its parameters and versions; its name leads to the "
    "executed notebook."
)
ABOUT_PREDICTIONS = (
    "One row per question. Open a row for the raw reply; what hides in it is made visible, as ‹U+202E› or ‹ESC›."
)
ABOUT_TRANSCRIPTS = (
    "Conversations: identity, with the read-out after each reply, and role-play, with what the jury said of each "
    "answer. A read-out asks a fork of the conversation who the model is; the conversation goes on without it."
)
ABOUT_ANSWERS = (
    "Share of questions by what became of the reply. Only <code>ok</code> holds an answer; the others are no answer, "
    "and never a guess."
)


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
    before = _earlier(out)
    pictures = pictures or (None if runs else FIGURES)
    shown, results = figures.read(Path(pictures)) if pictures else ([], [])
    site = _pages(found, shown, results, rows)
    for name, text in site.items():
        write_whole(out / name, text)
    for old in before - {out / name for name in site}:
        old.unlink()
    return out / "index.html"


def _earlier(out: Path) -> set[Path]:
    """Return the pages of an earlier report in a folder; raise `InputError` where it is not a report's."""
    files = {file for file in out.rglob("*") if file.is_file()} if out.exists() else set()
    ours = {f for f in files if f.suffix == ".html" and pages.GENERATOR in f.read_text("utf-8", "replace")[:2000]}
    if files and not ours:
        raise InputError(f"The folder {out} holds files that are no report; name an empty one with --out.")
    return ours


def _pages(found: Sources, shown: list[figures.Figure], results: list, most: int) -> dict[str, str]:
    """Return every page: {file: text}."""
    books, addresses = _notebooks(found)
    run_table = tables.runs(found, addresses)
    predicted, answers = tables.predictions(found, most)
    talks = transcripts.transcripts(found, most)
    browsed = {
        "runs.html": ("Runs", run_table, ABOUT_RUNS),
        "predictions.html": ("Predictions", predicted, ABOUT_PREDICTIONS),
        "transcripts.html": ("Transcripts", talks, ABOUT_TRANSCRIPTS),
    }
    browsed = {file: entry for file, entry in browsed.items() if entry[1].size}
    there = {"index.html": "", **browsed}
    there |= {"figures.html": ""} if shown else {}
    there |= {"notebooks.html": ""} if books else {}
    site = {
        file: pages.page(title, pages.browser(table, about), there, file, pages.SCRIPT)
        for file, (title, table, about) in browsed.items()
    }
    for file, (title, body) in books.items():
        site[file] = pages.page(title, body, there, file)
    if books:
        site["notebooks.html"] = pages.page("Notebooks", _listed(books, addresses), there, "notebooks.html")
    if shown:
        site["figures.html"] = pages.page("Figures", _figures(shown), there, "figures.html")
    start = _start(found, shown, results, answers, {file: table for file, (_, table, _) in browsed.items()})
    site["index.html"] = pages.page("Report", start, there, "index.html")
    return site


def _notebooks(found: Sources) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return {file: (title, body)} and {name of a notebook or run: file}."""
    books, addresses = {}, {}
    for name, path in found.notebooks.items():
        try:
            notebook = notebooks.read(path)
        except InputError as error:
            found.problems[f"{name}: {error}"] = None
            continue
        slug = re.sub(r"[^\w.-]+", "-", name)
        file = f"notebooks/{slug}.html"
        while file in books:
            file = file.replace(".html", "-.html")
        title = found.clean(notebooks.title_of(notebook, name))
        lead = f'<p class="note">{escape(found.clean(name))}</p>\n'
        books[file] = title, lead + notebooks.body(notebook, found.clean)
        addresses[name] = file
    return books, addresses


def _listed(books: dict, addresses: dict[str, str]) -> str:
    rows = (
        f'<li><a href="{file}">{escape(name)}</a>: {escape(books[file][0])}</li>' for name, file in addresses.items()
    )
    return f"<p>Executed notebooks with their outputs.</p><ul>{''.join(rows)}</ul>"


def _figures(shown: list[figures.Figure]) -> str:
    parts = []
    for name in dict.fromkeys(one.set for one in shown):
        of_set = [one for one in shown if one.set == name]
        drawn = "".join(pages.figure(one.file, one.name, one.caption) for one in of_set)
        origin = f'<p class="note">{escape(of_set[0].origin)}</p>' * bool(of_set[0].origin)
        parts.append(f'<h2>{escape(name)}</h2>{origin}<div class="figures">{drawn}</div>')
    return "".join(parts)


def _start(found: Sources, shown: list[figures.Figure], results: list, answers: pd.DataFrame, browsed: dict) -> str:
    """Return the start page: what there is, what failed, the main figures and tables, who gave no answer."""
    counts = [(f"{len(found.notebooks):,}", "executed notebooks")] if found.notebooks else []
    counts += [
        (f"{table.size + table.left_out:,}", f"{table.noun}{'s' * (table.size != 1)}") for table in browsed.values()
    ]
    parts = [pages.numbers(counts), _state(found)]
    if shown:
        main = "".join(pages.figure(one.file, one.name, one.caption) for one in figures.main_ones(shown))
        more = f'<p><a href="figures.html">All {len(shown)} figures</a></p>'
        parts.append(f'<h2>Main figures</h2><div class="figures">{main}</div>{more}')
    if results:
        parts.append("<h2>Main results</h2>")
        for caption, table in results:
            parts.append(f"<h3>{escape(caption)}</h3>{pages.plain_table(table, found.clean, caption)}")
    if len(answers):
        table = pages.plain_table(_shares(answers), found.clean, "Answers")
        parts.append(f"<h2>Answers and no answers</h2><p>{ABOUT_ANSWERS}</p>{table}")
    return "\n".join(parts)


def _shares(answers: pd.DataFrame) -> pd.DataFrame:
    first = ["task", "condition", "evaluator", "questions"]
    rest = [name for name in answers if name not in first]
    shares = answers[[name for name in first if answers[name].astype(str).any()]]
    return shares.join(answers[rest].map(lambda share: f"{share:.3f}" if share else "0"))


def _state(found: Sources) -> str:
    """Return what ran, with which versions, and everything that failed or could not be read."""
    parts = [f'<p class="problem">{escape(found.clean(problem))}</p>' for problem in found.problems]
    if not found.runs:
        return (
            "".join(parts)
            + "<p>No sweep was run here: this shows notebooks with the outputs that they were saved with.</p>"
        )
    statuses = Counter(str(run.manifest.get("status") or "unknown") for run in found.runs)
    versions = Counter((run.manifest.get("code") or {}).get("hash") or "unknown" for run in found.runs)
    ran = ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
    parts.append(f"<p>Runs of sweeps: {escape(ran)}.</p>")
    if len(versions) > 1:
        link = '<a href="runs.html">Runs</a>'
        parts.append(f'<p class="problem">The runs come from {len(versions)} versions of the code; see {link}.</p>')
    failed = [run for run in found.runs if run.manifest.get("status") not in ("ok", "skipped")]
    for run in failed[:20]:
        cause = run.manifest.get("cause") or "it did not end"
        parts.append(f'<p class="problem"><strong>{escape(run.name)}</strong>: {escape(found.clean(cause))}</p>')
    if len(failed) > 20:
        parts.append(f'<p><a href="runs.html#status=failed">All {len(failed)} runs that failed</a></p>')
    return "".join(parts)
