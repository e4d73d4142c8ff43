"""Execute a sweep: notebooks over grids of parameters, in stages, several at a time, to be stopped and resumed.

A run has the repository as working directory and leaves `<stage>/<slug>/` with `notebook.ipynb`, `parameters.yaml`,
`manifest.json`, `log.txt` and what the notebook writes to its `out`. The folder belongs to the sweep: a run that starts
empties it. A run is done, and is not executed again, when it ended well with the same parameters and the same code in
its notebook, after the runs that it depends on. To execute it again, delete its folder: stored replies are free.

`file` reads a sweep file, `runs` knows what is done and how a run ended, `execute` submits runs to this machine's
`kernels` or to a Dask cluster, `dryrun` only counts their calls, `report` makes pages of them.
"""

from selfeval.sweep.execute import run_file
from selfeval.sweep.file import load

__all__ = ["load", "run_file"]
