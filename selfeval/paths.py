"""Where things are: what came with the package, and what is the user's own."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (_PACKAGE / "data").is_dir()  # from a wheel, which holds what a clone has beside the package
ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent
HOME = Path.cwd() if INSTALLED else ROOT  # of what is the user's own
DATA = Path(os.environ.get("SELFEVAL_DATA") or HOME / "data").absolute()  # a dry run has a shadow of it


def shipped(name: Path | str) -> Path:
    """Return a file or folder to read below data/: the user's own, or where there is none that of the package."""
    installed = ROOT / "data" / name
    return installed if INSTALLED and installed.exists() and not (DATA / name).exists() else DATA / name
