"""Figures for print, and how results show themselves.

Four forms draw everything: `dots` (estimates with intervals), `against` (estimates against another number), `cells`
(heat maps) and `steps` (curves).
`selfeval.plot` chooses one for a result; `save` writes a figure as PDF, SVG and PNG, `latex` a table for a paper.
"""

from importlib import import_module

_HOME = dict.fromkeys(("against", "cells", "dots", "steps"), "forms") | {"latex": "papers"}
_HOME |= dict.fromkeys(("save", "use_style"), "style") | dict.fromkeys(("estimate_text", "p_text"), "tables")

__all__ = sorted(_HOME)


def __getattr__(name: str):
    """Import a function with what it draws by when it is first used: cards and tables need no matplotlib."""
    if name in _HOME:
        return getattr(import_module(f"selfeval.figures.{_HOME[name]}"), name)
    raise AttributeError(f"module 'selfeval.figures' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
