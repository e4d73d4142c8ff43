"""A papermill engine that forks each kernel from a warm process: `papermill --engine forked NOTEBOOK OUTPUT`.

A sweep shares one warm process (`SELFEVAL_WARM` names it); a lone papermill makes one for itself, which pays only where
one Python process executes several notebooks.
"""

import atexit
import functools
import os
import subprocess
import sys
import uuid
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager
from papermill.engines import NBClientEngine, papermill_engines
from papermill.log import logger

from selfeval.sweep import kernels


class ForkedEngine(NBClientEngine):
    """Papermill's own engine but for how the kernel is started."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **kwargs):
        """Execute a notebook on a forked kernel, or on an ordinary one where forking is not to be had."""
        if reason := kernels.obstacle():
            _say(reason)
        else:
            kwargs["kernel_manager_class"] = ForkedKernelManager
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


class ForkedKernelManager(AsyncKernelManager):
    """A kernel manager whose kernel comes out of the warm process, and talks over Unix sockets.

    A free TCP port may be taken by another program before the kernel binds it; among many kernels that happens.
    """

    def __init__(self, **options):
        name = f"@selfeval-{uuid.uuid4().hex}"  # in Linux's abstract namespace: no file to leave behind
        super().__init__(**options, transport="ipc", ip=name)

    async def _async_launch_kernel(self, kernel_cmd, **kw):
        if not _is_ours(kernel_cmd):
            _say(f"the kernel {self.kernel_name} is not `{sys.executable} -m ipykernel_launcher`")
            return await super()._async_launch_kernel(kernel_cmd, **kw)
        env, cwd = kw.get("env") or os.environ, kw.get("cwd") or Path.cwd()
        with open(os.devnull, "rb") as stdin:  # noqa: PTH123, ASYNC230
            files = [stdin.fileno(), *(_descriptor(kw.get(name), fd) for name, fd in (("stdout", 1), ("stderr", 2)))]
            try:
                process = kernels.start(_address(), kernel_cmd, cwd, env, files).started()
            except OSError as error:
                _say(str(error))
                return await super()._async_launch_kernel(kernel_cmd, **kw)
        provisioner = self.provisioner
        provisioner.process, provisioner.pid, provisioner.pgid = process, process.pid, process.pid
        provisioner.cwd = cwd
        self._reconcile_connection_info(provisioner.connection_info)


def _is_ours(command: list[str]) -> bool:
    """Tell whether a kernel is IPython's on this interpreter and no other environment's."""
    python, ours = Path(command[0]), Path(sys.executable)
    same = python.parent == ours.parent and python.resolve() == ours.resolve()
    return same and command[1:3] == ["-m", "ipykernel_launcher"]


def _descriptor(file, default: int) -> int:
    if file in (None, subprocess.STDOUT, subprocess.PIPE):
        return default
    return file if isinstance(file, int) else file.fileno()


@functools.cache
def _own() -> kernels.WarmProcess:
    own = kernels.WarmProcess()
    atexit.register(own.close)
    return own


def _address() -> str:
    return os.environ.get("SELFEVAL_WARM") or _own().address


@functools.cache
def _say(reason: str) -> None:
    logger.warning(f"selfeval: an ordinary kernel instead of a forked one: {reason}")


papermill_engines.register("forked", ForkedEngine)  # also where the package was installed before it had this engine
