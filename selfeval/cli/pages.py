"""An executed notebook as a page: without its code, in one file that opens from disk.

Nothing on a page runs or loads, whatever a model said: its content security policy forbids that.
"""

from html import escape
from pathlib import Path
from string import Template

import nbformat
from nbconvert import HTMLExporter

from selfeval.paths import write_whole
from selfeval.secrets import redact, visible

# tags of cells that are for readers of the notebook
LEFT_OUT = {"remove_cell", "committed"}
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title><style>
body { font: 1rem/1.5 Helvetica, Arial, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
div { overflow-x: auto; } img { max-width: 100%; } table { border-collapse: collapse; font-size: .9rem; }
th, td { border-top: 1px solid #ddd; padding: .35rem .6rem; text-align: left; vertical-align: top; }
</style></head><body>
$body
</body></html>
""")


def write_page(notebook: Path, page: Path, title: str) -> None:
    """Write what an executed notebook shows to an HTML file, without keys and hidden signs.

    Cells with a tag of `LEFT_OUT` do not stand there.
    """
    shown = nbformat.read(notebook, as_version=4)
    shown.cells = [cell for cell in shown.cells if LEFT_OUT.isdisjoint(cell.metadata.get("tags", ()))]
    exporter = HTMLExporter(
        template_name="basic",
        exclude_input=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    body, _ = exporter.from_notebook_node(shown)
    text = PAGE.substitute(title=escape(title), body=body)
    write_whole(page, visible(redact(text)))
