"""Execute a sweep: notebooks over grids of parameters, in stages, to be stopped and resumed.

A run has the working directory of the command and leaves `<stage>/<slug>/` with `notebook.ipynb`,
`parameters.yaml`, `manifest.json`, `log.txt` and what the notebook writes to its `out`. The folder
belongs to the sweep: a run that starts empties it. A run is done, and is not executed again, when
it ended well with the same parameters and the same code in its notebook, after the runs that it
depends on. To execute it again, delete its folder: stored replies are free.

`file` reads a sweep file, `runs` knows what is done and how a run ended, `execute` submits runs to
this machine's `kernels` or to a Dask cluster, `plan` only counts their calls, `report` makes pages
of them.
"""

from functools import partial

from selfeval.sweep.execute import cluster, run, threads
from selfeval.sweep.file import load
from selfeval.sweep.plan import count

__all__ = ["load", "run_file"]


def run_file(path, workers=None, out=None, *, variables=None, scheduler=None, dry_run=False, **how):
    """Execute the sweep file at `path` and return the exit status (`execute.run`).

    workers: runs at a time on this machine, by default 2. out: a folder that replaces
    `data/runs/<name>`. variables: {name: value} of the file's. scheduler: the address of a Dask
    scheduler whose workers execute the runs. dry_run: only print what would be done and cost
    (`plan.count`). how: `only`, `max_cost` and `confirm`, as these functions take them.
    """
    sweep = load(path, out, variables)
    here = partial(threads, workers or 2)
    if dry_run:
        return count(sweep, here, **how)
    return run(sweep, partial(cluster, scheduler) if scheduler else here, **how)
