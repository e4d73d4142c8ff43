"""A Dask cluster of three workers on this host, on loopback alone."""

import contextlib
from pathlib import Path


@contextlib.contextmanager
def three_hosts(folder: Path, threads: int = 1):
    """Yield the cluster; each of its workers executes so many notebooks at a time; their store is in `folder`."""
    import distributed

    def nanny(host):
        options = {"host": host, "nthreads": threads, "dashboard_address": f"{host}:0", "local_directory": str(folder)}
        options |= {"memory_limit": 0, "env": {"SELFEVAL_STORE": str(folder / "store.sqlite")}}
        return {"cls": distributed.Nanny, "options": options}

    options = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": distributed.Scheduler, "options": options}
    workers = {f"worker-{i}": nanny(f"127.0.0.{i}") for i in (1, 2, 3)}
    with distributed.SpecCluster(workers, scheduler, silence_logs=50) as cluster:
        yield cluster
