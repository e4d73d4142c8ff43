"""Execute a sweep: one papermill process per run, resumable, with a manifest each and the causes of failure at the end.

Stages run in order. A run has the repository as working directory and leaves `<stage>/<slug>/` with `notebook.ipynb`,
`parameters.yaml`, `manifest.json`, `log.txt` and what the notebook writes to its `out`. The folder belongs to the
sweep: an ok run removes what an older run left in it. A run is skipped when its parameters, its notebook's code, the
package, the input data, the runs of all earlier stages (they may feed it through a corpus) and the files it wrote are
what they were when it ended ok. Otherwise it runs again, and the response store makes that free.
"""

from selfeval.sweep.execute import run
from selfeval.sweep.file import load

__all__ = ["load", "run", "run_file"]


def run_file(path, workers=2, out=None):
    """Execute the sweep file at `path` and return the exit status; `out` replaces the folder `data/runs/<name>`."""
    return run(load(path, out), workers=workers)
