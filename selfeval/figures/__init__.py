"""Figures and tables for print.

Three forms draw everything: `dots` (estimates with intervals), `cells` (heat maps) and `steps` (curves). `draw` gives
all figures of a result, `save` writes one, `results.save` keeps a whole result, `paper.make` draws the paper's.
"""

from importlib import import_module

_HOME = {
    "drawing": ("draw",),
    "printed": ("save_table", "set_tables"),
    "results": ("find",),
    "style": ("save", "show", "use_style"),
    "tables": tuple(
        "about_intervals beside_bootstrap ceiling claims claims_by_developer families in_general leaking overview "
        "paired positions preference show_table statuses which_interval".split()
    ),
}

__all__ = sorted(name for names in _HOME.values() for name in names)


def __getattr__(name: str):
    """Import a function with what it draws by when it is first used: cards and tables need no matplotlib."""
    if home := next((home for home, names in _HOME.items() if name in names), None):
        return getattr(import_module(f"selfeval.figures.{home}"), name)
    raise AttributeError(f"module 'selfeval.figures' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
