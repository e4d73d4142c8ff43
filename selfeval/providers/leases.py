"""Who holds a claim on a request: a process, by its host, number and start."""

import os
import socket
import time
from functools import lru_cache

import psutil

BATCH = "batch "  # how the owner of a claim begins that is a batch
# seconds after which a claim from another host, of which nothing is known, is taken over
OTHER_HOST_SECONDS = 600.0


def own_name() -> str:
    """Return this process's name as the owner of claims.

    Host, process and its start in seconds since the boot.
    """
    return _own(os.getpid())


@lru_cache(1)
def _own(pid: int) -> str:
    return _name(psutil.Process(pid))


def _name(process: psutil.Process) -> str:
    started = process.create_time() - psutil.boot_time()  # both move when the clock is set
    return f"{socket.gethostname()}:{process.pid}:{started:.2f}"


def has_ended(owner: str, since: float) -> bool:
    """Tell whether the process that owns a claim is gone, so that nobody will give it back.

    A batch never is.
    """
    if owner.startswith(BATCH):
        return False
    try:
        host, pid, _ = owner.rsplit(":", 2)
        if host != socket.gethostname():
            return time.time() > since + OTHER_HOST_SECONDS
        process = psutil.Process(int(pid))
        return process.status() == psutil.STATUS_ZOMBIE or _name(process) != owner
    except (psutil.Error, ValueError):
        return True
