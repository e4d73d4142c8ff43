"""Papermill on the kernels of `selfeval.sweep.kernels`: `papermill --engine forked NOTEBOOK OUTPUT`.

Papermill imports this module by its entry point; whoever imports it first has to import papermill before.
"""

from papermill.engines import NBClientEngine

from selfeval.sweep.kernels import KernelManager


class ForkedEngine(NBClientEngine):
    """Papermill's own engine, but for how the kernel is started."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, kernel_manager_class=KernelManager, **kwargs):
        """Execute a notebook."""
        return super().execute_managed_notebook(
            nb_man, kernel_name, kernel_manager_class=kernel_manager_class, **kwargs
        )
