"""Records as tables to filter, offline: by `itables`, a row each, with a card of the reply and the messages as sent.

Every text is escaped here, before a table is made: what goes into a table is HTML of this file, and no other. What
others rendered goes through the notebooks' cleaner. So no page holds a script but the tables' own, which it may run.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from itertools import islice
from pathlib import Path

import pandas as pd
from itables import to_html_datatable
from itables.javascript import generate_init_offline_itables_html
from itables.options import dt_bundle

from selfeval.figures.cards import card, short
from selfeval.records import json_rows
from selfeval.report.notebooks import CLEANER
from selfeval.roleplay.transcripts import read_conversations, read_verdicts, render

MOST = 5000  # records of one page
LETTERS = 80  # of a reply that are seen before it is opened
REPLIES = {"reply", "raw_response", "returned_text"}
COLUMNS = (  # that a table may have; a record's card has all its fields
    "evaluator_model evaluator model juror true_model target_display agent other_model text_preview task_type family "
    "arm condition variant conversation_id prompt_id turn round source persona predicted_model predicted_self "
    "is_correct parsed_response named stance passed exists score existence_score status"
).split()


def script() -> str:
    """Return what all tables of a report run, as a file of its own: the bundle of `itables`."""
    return re.search(r"<script>(.*?)</script>", generate_init_offline_itables_html(dt_bundle), re.S)[1]


def pages(file: Path, clean: Callable) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (title, HTML, how many there are of which status) of the pages about a file's records or conversations.

    Nothing for files of another kind, such as stored replies. Raises `InputError` for a broken one.
    """
    name, first = clean(str(file.with_suffix(""))), next(json_rows(file), {})
    if "turns" in first:
        verdicts = file.with_name("verdicts.jsonl")
        heard = read_verdicts([verdicts])[0] if verdicts.is_file() else []
        shown = [CLEANER.clean(clean(render(one, heard)._repr_html_())) for one in read_conversations([file])]
        yield name, "<hr>".join(shown), [f"{len(shown):,} conversations"]
    elif REPLIES & first.keys():
        rows, start = map(clean, json_rows(file)), 1
        while part := list(islice(rows, MOST)):
            statuses = Counter(str(row.get("status")) for row in part).most_common()
            said = ", ".join(f"{n:,} {status}" for status, n in statuses)
            yield f"{name}, from record {start:,}", _tables(part), [said]
            start += len(part)


def _tables(rows: list[dict]) -> str:
    """Return records as a table of the fields in which they differ; below, evaluators side by side on the same text."""
    frame = pd.DataFrame([{name: _text(row.get(name)) for name in (*COLUMNS, "text_id")} for row in rows])
    frame["reply"], beside = [escape(_reply(row)) for row in rows], ""
    if frame["evaluator_model"].nunique() > 1:
        texts = frame.pivot_table("reply", ["text_id", "true_model", "text_preview"], "evaluator_model", "<hr>".join)
        beside = f"<h2>Evaluators side by side</h2>{_table(texts.fillna('').reset_index(level=[1, 2]), 'beside')}"
    shown = [name for name in COLUMNS if frame[name].nunique() > 1]
    opened = [f"<summary>{escape(_reply(row)[:LETTERS])}</summary>{card(row)._repr_html_()}" for row in rows]
    frame.insert(0, "reply and messages", [f"<details>{each}</details>" for each in opened])
    return _table(frame[["reply and messages", *shown]], "records") + beside


def _table(frame: pd.DataFrame, name: str) -> str:
    """Return a table of cells that are HTML already, with a filter over each column and one over all."""
    frame = frame.replace({"\n": "&#10;", "\t": "&#9;"}, regex=True)  # which itables would show as \n and \t
    how = {"classes": "display compact", "style": "width:100%", "showIndex": False, "display_logo_when_loading": False}
    how |= {"pageLength": 25, "column_filters": "header", "maxBytes": 0, "maxColumns": 0}
    return to_html_datatable(frame, table_id=name, connected=False, allow_html=True, **how)


def _text(value) -> str:
    return "" if value is None else escape(short(value))


def _reply(row: dict) -> str:
    reply = next((row[name] for name in sorted(REPLIES & row.keys()) if row[name]), "(no reply)")
    mark = {True: "✓ ", False: "✗ "}.get(row.get("is_correct", row.get("passed")), "")
    return f"{mark}{reply}"
