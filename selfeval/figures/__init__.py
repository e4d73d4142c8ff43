"""Figures for print, tables for papers, and estimates that draw themselves.

Three forms draw everything: `dots` (estimates with intervals), `cells` (heat maps) and `steps`
(curves). `selfeval.plot` chooses one for a result; `save` writes a figure as PDF, SVG and PNG,
`latex` a table for a paper.
"""

from importlib import import_module

_HOME = {
    "cells": "selfeval.figures.forms",
    "dots": "selfeval.figures.forms",
    "steps": "selfeval.figures.forms",
    "latex": "selfeval.figures.papers",
    "save": "selfeval.figures.style",
    "use_style": "selfeval.figures.style",
    "estimate_text": "selfeval.results",
    "p_text": "selfeval.results",
}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    """Import a function when it is first used: tables need no matplotlib."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    offered = f"it has {', '.join(__all__)}"
    raise AttributeError(f"module 'selfeval.figures' has no attribute {name!r}; {offered}")


def __dir__() -> list[str]:
    return __all__
