"""Execute a sweep: notebooks over grids of parameters, resumable, with a manifest each and the causes of failure.

A run has the repository as working directory and leaves `<stage>/<slug>/` with `notebook.ipynb`, `parameters.yaml`,
`manifest.json`, `log.txt` and what the notebook writes to its `out`. The folder belongs to the sweep: an ok run removes
what an older run left in it. A run is skipped when its parameters, its notebook's code, the package, the input data,
the models and their addresses, the runs that it waited for, and the files that it read and wrote elsewhere are what
they were when it ended ok. Otherwise it runs again, and the response store makes that free.

`file` reads a sweep file, `runs` says what is to do and how it ended, `execute` does it by `engine` and `kernels`, here
or on a `cluster`; `dryrun` only counts; `show` tells.
"""

from importlib import import_module

_HOME = {"load": "file", "run": "execute", "run_file": "execute"}
__all__ = [*_HOME]


def __getattr__(name):
    """Import what is asked for only then: a kernel imports this package too."""
    if name not in _HOME:
        raise AttributeError(f"module 'selfeval.sweep' has no attribute {name!r}")
    return getattr(import_module(f"selfeval.sweep.{_HOME[name]}"), name)
