"""An executed notebook as a page: without its code, in one file that opens from disk.

Nothing that a model said runs or loads anything: the content security policy forbids that.
"""

from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert import HTMLExporter

from selfeval.paths import write_whole
from selfeval.secrets import redact, visible

# tags of cells that are for readers of the notebook, and of what papermill adds on an error
LEFT_OUT = {"remove_cell", "committed", "papermill-error-cell-tag"}
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title><style>
body { font: 1rem/1.5 Helvetica, Arial, sans-serif; margin: 0 auto; max-width: 72rem; }
body { padding: 1rem; } img { max-width: 100%; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { border-top: 1px solid #ddd; padding: .35rem .6rem; overflow-wrap: anywhere; }
th, td { text-align: left; vertical-align: top; }
</style></head><body>
$body
<p>$date</p>
</body></html>
""")


def write_page(notebook: Path, page: Path, title: str) -> None:
    """Write what an executed notebook shows to an HTML file, without keys; hidden signs are shown.

    Cells with a tag of `LEFT_OUT` do not stand there. Below stands the day of its execution, where
    papermill executed it.
    """
    shown = nbformat.read(notebook, as_version=4)
    cells = shown.cells
    shown.cells = [cell for cell in cells if LEFT_OUT.isdisjoint(cell.metadata.get("tags", ()))]
    exporter = HTMLExporter(
        template_name="basic",
        exclude_input=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    body, _ = exporter.from_notebook_node(shown)
    date = shown.metadata.get("papermill", {}).get("end_time", "")[:10]
    text = PAGE.substitute(title=escape(title), body=body, date=escape(date))
    write_whole(page, visible(redact(text)))
