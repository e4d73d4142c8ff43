"""The kernel of a run: Jupyter's own, over sockets that no other user of this host can reach."""

import signal
import sys

from jupyter_client.manager import AsyncKernelManager


class KernelManager(AsyncKernelManager):
    """A manager of one kernel, which talks over Unix sockets in a folder of this user's.

    Ports of this machine are open to all its users, and who listens to a kernel's needs no key to
    read what it sends.

    folder: where the sockets are. options: of the kernel's process (`env`, `cwd`, `stdout`,
    `stderr`) as `subprocess.Popen` takes them. stopped: tells whether the kernel is to end.
    """

    folder = ""
    options = None
    stopped = staticmethod(bool)

    def __init__(self, **traits):
        super().__init__(**traits, transport="ipc", ip=f"{self.folder}/kernel")

    async def _async_pre_start_kernel(self, **kw):
        # where the kernel `python3` is registered for another environment
        self.kernel_spec.argv[0] = sys.executable
        return await super()._async_pre_start_kernel(**kw, **self.options)

    async def _async_is_alive(self):
        """Tell whether the kernel runs, which is asked every second.

        Where it is to end, end it with what it started.

        What a notebook started in a session of its own, like the shared server of the embedded
        model, stays.
        """
        if self.stopped():
            await self._async_signal_kernel(signal.SIGKILL)
        return await super()._async_is_alive()
