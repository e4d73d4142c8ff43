"""The report: one folder of HTML pages about executed notebooks and records, which opens from disk without network.

  build      writes it (`selfeval report FOLDER`, `make report`): the start page with figures and estimates first
  sources    the runs, notebooks, results and records below a folder, and what must not leave this machine
  notebooks  an executed notebook by nbconvert, with nothing live in it
  records    records as `itables` to filter, with messages and replies; evaluators side by side; conversations

page.html.j2 is the frame of every page. Its content security policy lets no script run but the tables' own.
"""

from selfeval.report.build import build

__all__ = ["build"]
