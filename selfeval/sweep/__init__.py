"""Sweeps: notebooks over lists of models, in stages, to be stopped and resumed.

`file` reads a sweep file into runs, `execute` runs them by papermill on this machine or on a Dask
cluster, or only counts their calls, and `report` makes pages of the executed notebooks.
"""

from selfeval.sweep.execute import run_file
from selfeval.sweep.file import load

__all__ = ["load", "run_file"]
