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
from selfeval.sweep.forked import ForkedProcesses
from selfeval.sweep.launch import LocalProcesses

__all__ = ["load", "run", "run_file"]


WORTH_WARMING = 4  # runs: for fewer, the imports of a warm process cost more than they save


def run_file(path, workers=None, out=None, engine="auto", *, scheduler=None, dry_run=False, **options):
    """Execute the sweep file at `path` and return the exit status (`execute.run`, which takes the options).

    out: a folder that replaces `data/runs/<name>`. engine: `forked`, `ordinary`, or `auto`, which forks the runs of all
    but the smallest sweeps. scheduler: the address of a Dask scheduler whose workers execute the runs. workers: runs at
    a time, by default 2, or what the cluster takes. dry_run: only print what would be done, and what it would cost.
    """
    sweep = load(path, out)
    forked = engine == "forked" or (engine == "auto" and len(sweep.runs) >= WORTH_WARMING)
    launcher = ForkedProcesses if forked else LocalProcesses
    if scheduler and not dry_run:
        from selfeval.sweep.cluster import Cluster

        with Cluster(scheduler, sweep.folder, forked=engine != "ordinary") as cluster:
            return run(sweep, cluster.places() if workers is None else workers, cluster.launch, **options)
    workers = 2 if workers is None else workers
    if dry_run:
        from selfeval.sweep import dryrun

        decided = {name: options[name] for name in ("only", "retry_failed", "max_cost") if name in options}
        return dryrun.dry_run(sweep, workers, launcher, **decided)
    return run(sweep, workers, launcher, **options)
