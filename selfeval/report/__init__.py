"""The report: one folder of HTML pages, made from executed notebooks, manifests and records, that opens from disk.

  build      writes it (`selfeval report`, `make report`)
  sources    which runs, notebooks and records there are, and what must not leave this machine
  notebooks  an executed notebook as a page, with nothing live in it
  tables, transcripts   records as tables to search and filter: runs, predictions, conversations
  start, figures   the start page; figures and tables with their captions, from their index
  pages      the frame of a page; page.css, browse.js

Equal input makes equal files: no page says when it was made. The tables are filtered by a script
of 200 lines that puts everything into the page as text; a table library would be many times that in every page, for
features that nobody needs here. 10,000 predictions with raw replies are one file of 7 MB that opens in about a second.
"""

from selfeval.report.build import build

__all__ = ["build"]
