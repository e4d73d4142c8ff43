"""Papermill's own engine, by the name that installations of earlier versions gave to papermill.

Papermill cannot be imported where a name is registered that is not there; `pip install -e .` takes it away.
"""

from papermill.engines import NBClientEngine as ForkedEngine

__all__ = ["ForkedEngine"]
