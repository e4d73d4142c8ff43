"""Pages as text: the frame that all share, a page that filters a table, small tables, figures with captions.

A page is one file that loads nothing: style and script stand in it, pictures are data addresses, and a content security
policy forbids the rest, also where something got through.
"""

import base64
import hashlib
import html
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd

from selfeval.errors import InputError
from selfeval.report.tables import Table, said

HERE = Path(__file__).parent
STYLE = (HERE / "page.css").read_text("utf-8")
SCRIPT = (HERE / "browse.js").read_text("utf-8")
SHORT = 30  # characters of a cell that stays on one line, such as an estimate with its interval
WIDE = 640  # pixels of a picture that does not fit on a phone
GENERATOR = '<meta name="generator" content="selfeval report">'
PAGES = {"index.html": "Start", "figures.html": "Figures", "notebooks.html": "Notebooks", "runs.html": "Runs",
         "predictions.html": "Predictions", "transcripts.html": "Transcripts"}  # fmt: skip


def escape(text) -> str:
    """Return text for HTML."""
    return html.escape(str(text))


def page(title: str, body: str, pages: Iterable[str], here: str, script: str = "") -> str:
    """Return a whole page. pages: those of this report; here: this one's file; script: the only one that may run."""
    up = "../" * here.count("/")
    links = "".join(
        f'<li><a href="{up}{file}"{" aria-current=page" * (file == here)}>{label}</a></li>'
        for file, label in PAGES.items()
        if file in pages
    )
    allowed = f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" if script else "'none'"
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
{GENERATOR}
<link rel="icon" href="data:,">
<title>{escape(title)} · selfeval</title>
<style>
{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">to the content</a>
<header><nav aria-label="Pages of this report"><ul>{links}</ul></nav></header>
<main id="main" tabindex="-1">
<h1>{escape(title)}</h1>
{body}
</main>
<footer>Made by <code>selfeval report</code> from notebooks and records; this page loads nothing.</footer>
{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""


def browser(table: Table, about: str) -> str:
    """Return the body of a page that shows a table, searched and filtered by its reader."""
    left = ""
    if table.left_out:
        shown = f"The first {table.size:,} of {table.size + table.left_out:,}"
        left = f'<p class="problem">{shown} are on this page; <code>selfeval report --rows</code> shows more.</p>'
    moves = "".join(
        f'<button type="button" id="{name}">{name}</button>' for name in ("first", "previous", "next", "last")
    )
    data = json.dumps(table.data(), ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return f"""<p>{about}</p>{left}
<noscript><p class="problem">This table needs JavaScript, which stands in this file alone.</p></noscript>
<form id="controls" role="search" aria-label="Choose {table.noun}s"></form>
<div class="pager"><span id="count" role="status"></span>{moves}<button type="button" id="open">open all</button></div>
<div class="scroll"><table class="rows" aria-label="{table.noun.capitalize()}s"><thead id="head"></thead>
<tbody id="body"></tbody></table></div>
<script type="application/json" id="data">{data}</script>
"""


def plain_table(frame: pd.DataFrame, clean: Callable[[str], str], label: str) -> str:
    """Return a small table as HTML, wide ones with a scroll bar of their own."""
    head = "".join(f'<th scope="col">{escape(clean(name))}</th>' for name in frame.columns)
    rows = ("".join(_cell(value, clean) for value in row) for row in frame.itertuples(index=False))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll" role="region" aria-label="{escape(clean(label))}" tabindex="0">{table}</div>'


def _cell(value, clean: Callable[[str], str]) -> str:
    text = "" if value is None or value != value else clean(said(value))
    return f"<td{' class=short' * (len(text) <= SHORT)}>{escape(text)}</td>"


def figure(file: Path, name: str, caption: str) -> str:
    """Return a picture inside the page with its caption."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"The figure {file.name} cannot be read: {error.strerror}.") from error
    return framed("image/png", content, name, caption, name)


def framed(kind: str, content: bytes, alt: str, caption: str, name: str = "") -> str:
    """Return a picture with its caption; on a phone a wide one scrolls instead of becoming too small to read."""
    picture = f'<img src="data:{kind};base64,{base64.b64encode(content).decode()}" alt="{escape(alt)}">'
    if kind == "image/png" and int.from_bytes(content[16:20], "big") > WIDE:
        picture = f'<div class="scroll wide" role="region" aria-label="{escape(alt)}" tabindex="0">{picture}</div>'
    called = f' id="{escape(name)}"' if name else ""
    return f"<figure{called}>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def numbers(counts: Sequence[tuple[str, str]]) -> str:
    """Return what there is as a row of large numbers."""
    return '<ul class="big">' + "".join(f"<li><strong>{n}</strong> {escape(what)}</li>" for n, what in counts) + "</ul>"
