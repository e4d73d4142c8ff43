"""Execute a sweep: notebooks over grids of parameters, resumable, with a manifest each and the causes of failure.

A run has the repository as working directory and leaves `<stage>/<slug>/` with `notebook.ipynb`, `parameters.yaml`,
`manifest.json`, `log.txt` and what the notebook writes to its `out`. The folder belongs to the sweep: a run that starts
empties it. A run is skipped when its parameters, its notebook's code, the package, the input data,
the models and their addresses, the runs that it waited for, and the files that it read and wrote elsewhere are what
they were when it ended ok. Otherwise it runs again, and the response store makes that free.

`file` reads a sweep file, `runs` says what is to do and how it ended, `execute` does it by `engine` and `kernels`, here
or on a `cluster`; `dryrun` only counts; `show` tells.
"""

import functools
import sys
from importlib import import_module

_HOME = {"load": "file", "run": "execute"}
__all__ = [*_HOME, "run_file"]
SLOW = "rfc3987_syntax"  # jsonschema does without: its import takes a second, for a format that no notebook has
WORTH_FORKING = 4  # runs: for fewer, the imports of a fork server cost more than they save


def run_file(path, workers=None, out=None, engine="auto", *, variables=None, scheduler=None, dry_run=False, **options):
    """Execute the sweep file at `path` and return the exit status (`execute.run`, which takes the options).

    out: a folder that replaces `data/runs/<name>`. variables: {name: value} of the file's. engine: `forked`,
    `ordinary`, or `auto`, which forks the kernels of all but the smallest sweeps. scheduler: the address of a Dask
    scheduler whose workers execute the runs. workers: runs at a time, by default 2, or what the cluster takes. dry_run:
    only print what would be done and cost.
    """
    from selfeval.sweep import cluster, dryrun, execute, file  # a kernel imports this package too

    sys.modules.setdefault(SLOW, None)

    read = functools.partial(file.load, path, variables=variables)
    sweep = read(out)
    forked = engine == "forked" or (engine == "auto" and len(sweep.runs) >= WORTH_FORKING)
    launcher = functools.partial(execute.Notebooks, forked)
    if dry_run:
        return dryrun.dry_run(read, sweep, workers or 2, launcher, **options)
    if scheduler:
        launcher = functools.partial(cluster.Cluster, scheduler, sweep.folder, forked)
    return execute.run(sweep, workers, launcher, **options)


def __getattr__(name):
    """Import what is asked for only then."""
    if name not in _HOME:
        raise AttributeError(f"module 'selfeval.sweep' has no attribute {name!r}")
    return getattr(import_module(f"selfeval.sweep.{_HOME[name]}"), name)
