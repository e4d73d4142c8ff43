"""The report: one folder of HTML pages, made from executed notebooks, manifests and records, that opens from disk.

  build      writes it (`selfeval report`, `make report`)
  sources    which runs, notebooks and records there are, and what must not leave this machine
  notebooks  an executed notebook as a page, with nothing live in it
  tables, transcripts   records as tables to search and filter: runs, predictions, conversations
  start, figures   the start page; figures and tables with their captions, from their index
  pages      the frame of a page; page.css, browse.js

Equal input makes equal files: no page says when it was made.
"""

from selfeval.report.build import build

__all__ = ["build"]
