"""Figures for print, and how results show themselves.

Three forms draw everything: `dots` (estimates with intervals), `cells` (heat maps) and `steps` (curves).
`selfeval.plot` chooses one for a result; `save` writes a figure as PDF, SVG and PNG.
"""

from importlib import import_module

_HOME = {"forms": ("cells", "dots", "steps"), "style": ("save", "show", "use_style")}

__all__ = sorted(name for names in _HOME.values() for name in names)


def __getattr__(name: str):
    """Import a function with what it draws by when it is first used: cards and tables need no matplotlib."""
    if home := next((home for home, names in _HOME.items() if name in names), None):
        return getattr(import_module(f"selfeval.figures.{home}"), name)
    raise AttributeError(f"module 'selfeval.figures' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
