"""The start page and the page of figures: what there is, what failed, what the figures and the notebooks say."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from selfeval.report import pages
from selfeval.report.figures import Figure, Shown, main_ones
from selfeval.report.pages import escape
from selfeval.report.sources import Sources
from selfeval.report.tables import Table
from selfeval.stats.serving import MARK

MOST = 20  # failed runs, notebooks with conclusions, and sentences of one of them
FIRST = 3  # sentences of one notebook that are seen at once
ABOUT_ANSWERS = (
    "Share of questions by what became of the reply. Only <code>ok</code> holds an answer; the others are no answer, "
    "and never a guess."
)


def body(found: Sources, shown: Shown, answers: pd.DataFrame, browsed: Mapping[str, Table], books: Sequence) -> str:
    """Return the start page: what there is, what failed, main figures, conclusions, and who gave no answer."""
    counts = [(f"{len(books):,}", "executed notebooks")] * bool(books)
    for table in browsed.values():
        number = table.size + table.left_out
        counts.append((f"{number:,}", f"{table.noun}{'s' * (number != 1)}"))
    parts = [pages.numbers(counts), _state(found), _several(found)]
    if shown.figures:
        main = "".join(_figure(one, found.clean, f"{one.set}: ") for one in main_ones(shown.figures))
        more = f'<p><a href="figures.html">All {len(shown.figures)} figures and {len(shown.tables)} tables</a></p>'
        parts.append(f'<h2>Main figures</h2><div class="figures">{main}</div>{more}')
    concluding = [book for book in books if book.conclusions]
    if concluding:
        parts += ["<h2>What the data allow to say</h2>", *map(_conclusions, concluding[:MOST])]
        if len(concluding) > MOST:
            parts.append(f'<p><a href="notebooks.html">{len(concluding) - MOST} more notebooks</a> conclude.</p>')
    if len(answers):
        table = pages.plain_table(_shares(answers), found.clean, "Answers and no answers")
        parts.append(f"<h2>Answers and no answers</h2><p>{ABOUT_ANSWERS}</p>{table}")
    return "\n".join(parts)


def _several(found: Sources) -> str:
    """Name the models that several endpoints served."""
    said = [
        f"{MARK.strip()} {model} was served by several endpoints, which may differ in weights and filters: "
        f"{', '.join(served)}. Its numbers mix them."
        for model, served in found.several.items()
    ]
    return "".join(f'<p class="note">{escape(found.clean(sentence))}</p>' for sentence in said)


def all_figures(shown: Shown, clean: Callable[[str], str]) -> str:
    """Return all figures and tables of a folder, set by set."""
    parts = []
    for name in dict.fromkeys(one.set for one in (*shown.figures, *shown.tables)):
        drawn = [one for one in shown.figures if one.set == name]
        kept = [one for one in shown.tables if one.set == name]
        origin = [one.origin for one in (*drawn, *kept) if one.origin][:1]
        parts.append(f"<h2>{escape(clean(name))}</h2>")
        parts += [f'<p class="note">{escape(clean(text))}</p>' for text in origin]
        for one in kept:
            parts.append(f"<h3>{escape(clean(one.caption))}</h3>{pages.plain_table(one.frame, clean, one.caption)}")
        notes = dict.fromkeys(note for one in kept for note in one.notes)
        parts.append("".join(f'<p class="note">{escape(clean(note))}</p>' for note in notes))
        parts.append(f'<div class="figures">{"".join(_figure(one, clean) for one in drawn)}</div>' * bool(drawn))
    return "\n".join(parts)


def _figure(one: Figure, clean: Callable[[str], str], before: str = "") -> str:
    return pages.figure(one.file, clean(one.name), clean(before + one.caption))


def _conclusions(book) -> str:
    link = f'<a href="{book.file}">'
    said = [f"<li>{escape(sentence)}</li>" for sentence in book.conclusions[:MOST]]
    if len(book.conclusions) > MOST:
        said.append(f"<li>{link}{len(book.conclusions) - MOST} more in the notebook</a></li>")
    first, rest = "".join(said[:FIRST]), "".join(said[FIRST:])
    more = f"<details><summary>{len(book.conclusions) - FIRST} more</summary><ul>{rest}</ul></details>" if rest else ""
    return f"<h3>{link}{escape(book.title)}</a></h3><ul>{first}</ul>{more}"


def _shares(answers: pd.DataFrame) -> pd.DataFrame:
    first = ["task", "condition", "evaluator", "questions"]
    rest = [name for name in answers if name not in first]
    shares = answers[[name for name in first if answers[name].astype(str).any()]]
    return shares.join(answers[rest].map(lambda share: f"{share:.3f}" if share else "0"))


def _state(found: Sources) -> str:
    """Return what ran, with which versions, and everything that failed or could not be read."""
    parts = [f'<p class="problem">{escape(found.clean(problem))}</p>' for problem in found.problems]
    if not found.runs:
        return "".join([*parts, "<p>No sweep: notebooks and records with what they held when they were saved.</p>"])
    statuses = Counter(str(run.manifest.get("status") or "unknown") for run in found.runs)
    versions = {(run.manifest.get("code") or {}).get("hash") for run in found.runs} - {None}
    ran = ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
    parts.append(f"<p>Runs of sweeps: {escape(ran)}.</p>")
    if len(versions) > 1:
        link = '<a href="runs.html">Runs</a>'
        parts.append(f'<p class="problem">The runs come from {len(versions)} versions of the code; see {link}.</p>')
    failed = [run for run in found.runs if run.manifest.get("status") not in ("ok", "skipped")]
    for run in failed[:MOST]:
        cause = run.manifest.get("cause") or "it did not end"
        parts.append(f'<p class="problem"><strong>{escape(run.name)}</strong>: {escape(found.clean(cause))}</p>')
    if len(failed) > MOST:
        parts.append(f'<p><a href="runs.html#status=failed">All {len(failed)} runs that did not end well</a></p>')
    return "".join(parts)
