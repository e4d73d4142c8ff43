"""Execute a sweep: one papermill process per run, resumable, with a manifest each and the causes of failure at the end.

A run has the repository as working directory and leaves `<stage>/<slug>/` with `notebook.ipynb`, `parameters.yaml`,
`manifest.json`, `log.txt` and what the notebook writes to its `out`. The folder belongs to the sweep: an ok run removes
what an older run left in it. A run is skipped when its parameters, its notebook's code, the package, the input data,
the models and their addresses, the runs that it waited for, and the files that it read and wrote elsewhere are what
they were when it ended ok. Otherwise it runs again, and the response store makes that free.

`file` reads a sweep file, `todo` says what is to do and why, `execute` does it by a `launch.Launcher`, `outcome`
settles how a run ended, `show` and `left` tell.
"""

from selfeval.sweep.execute import run
from selfeval.sweep.file import load

__all__ = ["load", "run", "run_file"]


def run_file(path, workers=2, out=None, **options):
    """Execute the sweep file at `path` and return the exit status (`execute.run`, which takes the options).

    out: a folder that replaces `data/runs/<name>`.
    """
    return run(load(path, out), workers, **options)
