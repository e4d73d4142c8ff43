"""Figures and tables for print.

Functions take the result table of `selfeval.stats.recognition_table` or the counts of `selfeval.stats.confusion` (of
one task and condition) and return a Figure; intervals are drawn from the columns low and high as given. `display`
maps a model id to its label; ids without one are shown as they are.
"""

from importlib import import_module

_HOME = {
    "curves": ("roc",),
    "existence": ("existence_figures",),
    "intervals": ("advantage_and_discrimination", "contrasts", "default_rows", "forest"),
    "latex": ("save_table",),
    "recognition": ("designs", "recognition_figures"),
    "shares": ("accuracy_heatmap", "claim_bars", "discrimination_matrix", "prediction_heatmap"),
    "style": ("DOUBLE", "PALETTE", "SINGLE", "STYLE", "save", "show", "use_style"),
    "validation": ("coverage", "power_curves", "validation_figures"),
}

__all__ = sorted(name for names in _HOME.values() for name in names)


def __getattr__(name: str):
    """Import a function with what it draws by when it is first used: cards and tables need no matplotlib."""
    if home := next((home for home, names in _HOME.items() if name in names), None):
        return getattr(import_module(f"selfeval.figures.{home}"), name)
    raise AttributeError(f"module 'selfeval.figures' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
